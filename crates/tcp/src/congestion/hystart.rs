//! HyStart as Linux has it (`net/ipv4/tcp_cubic.c`): slow start ends where acknowledgements tell that the path is full,
//! before it overflows. RFC 9406 grew out of it, and keeps only the second of its two signs.

use fullpipe_units::SeqNum;

use super::{Sample, Window};
use crate::{
    IS_DEVICE,
    divide::{by, by_small},
};

/// Below so many segments nothing is looked for.
const LOW_WINDOW: u32 = 16;
/// Acknowledgements that follow each other within this time belong to one train; us.
const TRAIN_GAP_US: u32 = 2_000;
/// A train may be longer by the time that four of the largest segments which Linux hands to a device take at the rate at which it
/// would pace (`hystart_ack_delay`): bytes of two of them, because that rate is twice the window's in slow start; and by so
/// much at the most, in us.
const CUSHION: (u64, u32) = (2 * 65_215, 1_000);
/// Samples of a round before its least round-trip time counts.
const SAMPLES: u8 = 8;
/// By how much the round-trip time must have grown: an eighth, within these bounds; us.
const GROWTH_US: (u32, u32) = (4_000, 16_000);

/// What one round of slow start has shown.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HyStart {
    /// The round is over when this is acknowledged.
    round_end: SeqNum,
    /// When the round began, and when the last acknowledgement of its train came; us, modulo 2^32.
    round_start: u32,
    last_ack: u32,
    /// The least round-trip time of the round, and of all; us.
    round_rtt: u32,
    least_rtt: u32,
    samples: u8,
    has_begun: bool,
    is_found: bool,
    /// A timeout came before the round, whose acknowledgements are no train then.
    is_late: bool,
}

impl HyStart {
    /// After a timeout it looks anew.
    pub(super) fn after_timeout() -> Self {
        Self { is_late: true, ..Self::default() }
    }

    /// Whether it has samples, and has not found what it looks for: then Linux goes on looking while a loss is repaired, with a window
    /// below the threshold (`cubictcp_acked`). A device, whose flash is counted, doesn't.
    pub(super) const fn looks_on(&self) -> bool {
        self.has_begun && !self.is_found && !IS_DEVICE
    }

    pub(super) fn on_sample(&mut self, window: &mut Window, sample: &Sample) {
        let rtt = sample.rtt_us.max(1);
        self.least_rtt = if self.least_rtt == 0 { rtt } else { self.least_rtt.min(rtt) };
        if self.is_found || !window.in_slow_start() {
            return;
        }
        let now = by_small(sample.now.as_nanos(), 1_000) as u32;
        if !self.has_begun || sample.una.after(self.round_end) {
            (self.has_begun, self.round_end) = (true, sample.nxt);
            let gap = if core::mem::take(&mut self.is_late) { TRAIN_GAP_US + 1 } else { 0 };
            (self.round_start, self.last_ack) = (now, now.wrapping_sub(gap));
            (self.round_rtt, self.samples) = (u32::MAX, 0);
        }
        if window.cwnd < LOW_WINDOW * sample.mss {
            return;
        }
        let mut is_full = false;
        if now.wrapping_sub(self.last_ack) <= TRAIN_GAP_US {
            self.last_ack = now;
            // A train as long as the way there: as much is under way as the path holds.
            let cushion = by(CUSHION.0 * u64::from(sample.srtt_us), window.cwnd).min(CUSHION.1.into()) as u32;
            is_full = now.wrapping_sub(self.round_start) > self.least_rtt.saturating_add(cushion) / 2;
        }
        self.round_rtt = self.round_rtt.min(rtt);
        if self.samples < SAMPLES {
            self.samples += 1;
        } else {
            let growth = (self.least_rtt / 8).clamp(GROWTH_US.0, GROWTH_US.1);
            is_full |= self.round_rtt > self.least_rtt.saturating_add(growth);
        }
        if is_full {
            self.is_found = true;
            window.ssthresh = window.cwnd;
        }
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use fullpipe_units::Instant;

    use super::*;

    const MSS: u32 = 1_000;

    /// Rounds of slow start until it ends; `ack` gives the time of the `n`th acknowledgement in a round, and its round-trip
    /// time.
    fn rounds(ack: impl Fn(u32, u32) -> (u32, u32)) -> Option<u32> {
        let mut hystart = HyStart::default();
        let mut window = Window::new(10 * MSS, u32::MAX);
        let (mut begin, mut seq) = (0_u64, 0_u32);
        for round in 1..=10 {
            let segments = window.cwnd / MSS;
            for n in 1..=segments {
                let (at_us, rtt_us) = ack(segments, n);
                let una = SeqNum::new(seq + n * MSS);
                let nxt = SeqNum::new(seq + window.cwnd + n * MSS);
                let now = Instant::ZERO + Duration::from_micros(begin + u64::from(at_us));
                hystart.on_sample(&mut window, &Sample { now, rtt_us, srtt_us: rtt_us, una, nxt, mss: MSS });
                if !window.in_slow_start() {
                    return Some(round);
                }
            }
            seq += window.cwnd;
            window.cwnd *= 2;
            begin += 100_000;
        }
        None
    }

    #[test]
    fn slow_start_goes_on_while_the_path_has_room() {
        assert_eq!(rounds(|_, n| (n, 100_000)), None);
    }

    #[test]
    fn a_train_of_half_a_round_trip_ends_slow_start() {
        // Acknowledgements 200 us apart: 250 and more of them last longer than 50 ms. Windows are 10, 20, .., 320.
        assert_eq!(rounds(|_, n| (200 * n, 100_000)), Some(6));
    }

    /// `hystart_ack_delay`: on short paths what a host hands to its device at once is as long as the path.
    #[test]
    fn a_train_on_a_short_path_may_be_longer_by_half_a_millisecond() {
        // A round trip of 1.4 ms: 1.2 ms and not 0.7. Larger windows are paced faster, and have less.
        assert_eq!(rounds(|segments, n| ((if segments < 320 { 1_100 } else { 700 }) * n / segments, 1_400)), None);
        assert_eq!(rounds(|segments, n| (1_350 * n / segments, 1_400)), Some(2));
    }

    #[test]
    fn a_growing_round_trip_time_ends_slow_start() {
        // 12.5 ms more than the least, with acknowledgements too far apart for a train.
        assert_eq!(rounds(|segments, n| (3_000 * n, if segments < 80 { 100_000 } else { 113_000 })), Some(4));
        assert_eq!(rounds(|segments, n| (3_000 * n, if segments < 80 { 100_000 } else { 112_000 })), None);
    }
}
