//! How much Linux hands to a device at once: what leaves in about a millisecond (`tcp_tso_autosize`), at most half of a window
//! (`tcp_bound_to_half_wnd`).

use super::Socket;
use crate::IS_DEVICE;

/// Bytes that are handed to a device at once, at the most.
const LONGEST: u64 = 65_536;

/// What the length of a train depends on. Most who ask compare it: [`is_below`](Self::is_below) does so without a division, which
/// takes longer than all else here.
#[derive(Clone, Copy, Debug)]
struct Train {
    /// Bytes that it has at least, and at the most.
    least: u32,
    most: u32,
    /// The smoothed round-trip time; us, zero before the first sample.
    srtt_us: u32,
    /// The rate at which the windows let data leave, times the round-trip time: bytes a second times microseconds.
    rate_in_srtt: u64,
    /// The rate at which data is paced, where it is; bytes a second.
    paced: Option<u32>,
    /// By how many bytes it is longer on a short path.
    near: u64,
}

impl Train {
    /// Bytes, before they are cut to whole segments.
    #[inline]
    fn bytes(&self) -> u32 {
        let bytes = if self.srtt_us == 0 {
            LONGEST
        } else {
            let rate = self.paced.map_or_else(|| self.rate_in_srtt / u64::from(self.srtt_us), u64::from);
            ((rate >> 10) + self.near).min(LONGEST)
        };
        (bytes as u32).max(self.least).min(self.most)
    }

    /// Whether it has fewer than so many bytes, before they are cut to whole segments.
    #[inline]
    fn is_below(&self, bytes: u32) -> bool {
        if self.most < bytes {
            return true;
        }
        if self.least >= bytes {
            return false;
        }
        if self.srtt_us == 0 || LONGEST < u64::from(bytes) {
            return LONGEST < u64::from(bytes);
        }
        let Some(rest) = u64::from(bytes).checked_sub(self.near) else { return false };
        match self.paced {
            None => self.rate_in_srtt < (rest << 10) * u64::from(self.srtt_us),
            Some(rate) => u64::from(rate) >> 10 < rest,
        }
    }
}

impl Socket {
    /// What leaves next at once, of `least` segments where the windows have room for them: a millisecond at twice the rate that the
    /// congestion window makes, or at 1.2 times that rate from half of the slow-start threshold on.
    #[inline]
    fn next_train(&self, least: u8) -> Train {
        let mss = self.mss();
        let percent = if self.window.cwnd < self.window.ssthresh / 2 { 200 } else { 120 };
        let half = if self.max_wnd > 536 { self.max_wnd / 2 } else { self.max_wnd };
        Train {
            least: u32::from(least) * mss,
            most: half.min(self.window.cwnd / 2).max(mss),
            srtt_us: self.rtt.srtt(),
            rate_in_srtt: u64::from(self.window.cwnd.max(self.in_flight())) * 10_000 * percent,
            paced: self.pacing(),
            near: self.rtt.min().map_or(0, |us| LONGEST.checked_shr(us >> 9).unwrap_or(0)),
        }
    }

    /// Whole segments of it.
    #[cfg_attr(all(target_pointer_width = "32", not(target_family = "wasm")), inline(never))]
    pub(super) fn train_segments(&self, least: u8) -> u32 {
        self.next_train(least).bytes() / self.mss()
    }

    /// Whether it has so many segments at the most.
    #[inline]
    pub(super) fn is_train_within(&self, least: u8, segments: u32) -> bool {
        // A small device has no flash to spare for the way without a division.
        if IS_DEVICE {
            self.train_segments(least) <= segments
        } else {
            self.next_train(least).is_below((segments + 1) * self.mss())
        }
    }

    /// Bytes that Linux would hand to the device at once.
    #[inline]
    pub fn burst(&self) -> u32 {
        self.train_segments(2) * self.mss()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_comparison_without_a_division_is_one_with_it(
            mss in 1_u32..20_000,
            least in 0_u32..4,
            most in 0_u32..1 << 30,
            srtt_us in prop_oneof![Just(0), 1_u32..100_000, any::<u32>()],
            window in prop_oneof![1_u64..1 << 20, 1_u64..1 << 30],
            percent in prop_oneof![Just(120_u64), Just(200)],
            paced in prop_oneof![4 => Just(None), 1 => any::<u32>().prop_map(Some)],
            near in prop_oneof![Just(0), 0..=LONGEST],
            bytes in prop_oneof![0_u32..70_000, any::<u32>()],
            off in -2_i64..=2,
        ) {
            let (least, most) = (least * mss, most.max(mss));
            let train = Train { least, most, srtt_us, rate_in_srtt: window * 10_000 * percent, paced, near };
            prop_assert_eq!(train.is_below(bytes), train.bytes() < bytes);
            // Where it matters most.
            let close = (i64::from(train.bytes()) + off) as u32;
            prop_assert_eq!(train.is_below(close), train.bytes() < close);
        }
    }
}
