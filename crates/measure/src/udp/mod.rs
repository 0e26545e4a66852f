//! Tests with datagrams, on iperf3's wire: what is lost stays lost, and is counted.
//!
//! A datagram begins with the moment when it was sent (seconds and microseconds, 32 bits each) and its number, from 1,
//! in 32 or 64 bits, all big endian; the rest is noise. Control is that of a TCP test. What is *not* here: any pacing by
//! what arrives, since there is no way back but the results.

mod door;
mod flow;
mod series;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use self::series::DatagramSample;
pub(crate) use self::{
    door::{Door, Doorkeeper, HELLO},
    flow::{UdpFlow, UdpLane},
};

/// What became of the datagrams of a stream, as the end that reports it knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Datagrams {
    /// Sent, as far as this end knows: the sender's count, or the highest number that arrived.
    pub packets: u64,
    /// Of these never arrived; 0 where this end sent.
    pub lost: u64,
    /// Arrived after one with a higher number; absent where the peer does not tell.
    pub out_of_order: Option<u64>,
    /// How much the time on the way varies (RFC 3550, section 6.4.1), in microseconds.
    pub jitter_us: Option<f64>,
}

impl Datagrams {
    /// Two streams together; their jitter is the mean.
    pub(crate) fn and(self, other: Self) -> Self {
        let both = |a: Option<u64>, b: Option<u64>| Some(a?.saturating_add(b?));
        let weight = |part: u64| part as f64 / (self.packets.saturating_add(other.packets)).max(1) as f64;
        Self {
            packets: self.packets.saturating_add(other.packets),
            lost: self.lost.saturating_add(other.lost),
            out_of_order: both(self.out_of_order, other.out_of_order),
            jitter_us: match (self.jitter_us, other.jitter_us) {
                (Some(a), Some(b)) => Some(a * weight(self.packets) + b * weight(other.packets)),
                (a, b) => a.or(b),
            },
        }
    }

    /// Lost of sent, 0 to 1.
    pub fn loss(&self) -> Option<f64> {
        (self.packets > 0).then(|| self.lost as f64 / self.packets as f64)
    }
}

impl fmt::Display for Datagrams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} datagrams lost", self.lost, self.packets)?;
        if let Some(share) = self.loss() {
            write!(f, " ({:.2} %)", share * 100.0)?;
        }
        if let Some(count) = self.out_of_order.filter(|&count| count > 0) {
            write!(f, ", {count} out of order")?;
        }
        match self.jitter_us {
            Some(jitter) => write!(f, ", jitter {:.3} ms", jitter / 1e3),
            None => Ok(()),
        }
    }
}

/// The beginning of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// When it was sent, on the sender's clock.
    pub(crate) sent_us: u64,
    pub(crate) number: u64,
}

impl Header {
    /// Writes it into the beginning of a datagram that is long enough.
    pub(crate) fn write(&self, wide: bool, datagram: &mut [u8]) {
        let mut header = [0u8; 16];
        let word = |number: u64| ((number & 0xffff_ffff) as u32).to_be_bytes();
        header[..4].copy_from_slice(&word(self.sent_us / 1_000_000));
        header[4..8].copy_from_slice(&word(self.sent_us % 1_000_000));
        let len = if wide {
            header[8..].copy_from_slice(&self.number.to_be_bytes());
            16
        } else {
            header[8..12].copy_from_slice(&word(self.number));
            12
        };
        if let Some(place) = datagram.get_mut(..len) {
            place.copy_from_slice(header.get(..len).unwrap_or_default());
        }
    }

    /// `None` for a datagram that is too short to be one of a test, such as a greeting that came twice.
    pub(crate) fn read(wide: bool, datagram: &[u8]) -> Option<Self> {
        let word = |at: usize| -> Option<u64> {
            let bytes: [u8; 4] = datagram.get(at..at + 4)?.try_into().ok()?;
            Some(u64::from(u32::from_be_bytes(bytes)))
        };
        let number = if wide { (word(8)? << 32) | word(12)? } else { word(8)? };
        Some(Self { sent_us: word(0)? * 1_000_000 + word(4)?, number })
    }
}

/// What a receiver makes of the numbers and times of the datagrams that arrive.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Arrivals {
    highest: u64,
    lost: u64,
    out_of_order: u64,
    jitter_us: f64,
    transit_us: Option<i64>,
}

impl Arrivals {
    /// `at_us` is on this end's clock: the difference of the two clocks cancels out.
    pub(crate) fn take(&mut self, header: Header, at_us: u64) {
        if header.number > self.highest {
            self.lost = self.lost.saturating_add(header.number - self.highest - 1);
            self.highest = header.number;
        } else {
            // One that was counted as lost has come after all.
            self.out_of_order = self.out_of_order.saturating_add(1);
            self.lost = self.lost.saturating_sub(1);
        }
        let transit = at_us.cast_signed().wrapping_sub(header.sent_us.cast_signed());
        if let Some(before) = self.transit_us {
            let difference = transit.wrapping_sub(before).unsigned_abs() as f64;
            // RFC 3550, section 6.4.1: the estimate moves a sixteenth of the way.
            self.jitter_us += (difference - self.jitter_us) / 16.0;
        }
        self.transit_us = Some(transit);
    }

    /// Since `mark`.
    pub(crate) fn since(&self, mark: &Self) -> Datagrams {
        Datagrams {
            packets: self.highest.saturating_sub(mark.highest),
            lost: self.lost.saturating_sub(mark.lost),
            out_of_order: Some(self.out_of_order.saturating_sub(mark.out_of_order)),
            jitter_us: Some(self.jitter_us),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn arrivals(numbers: &[u64]) -> Datagrams {
        let mut arrivals = Arrivals::default();
        for &number in numbers {
            arrivals.take(Header { sent_us: number * 1_000, number }, number * 1_000 + 7);
        }
        arrivals.since(&Arrivals::default())
    }

    #[test]
    fn gaps_are_losses_until_the_missing_one_comes() {
        let lost = arrivals(&[1, 2, 4, 5]);
        assert_eq!((lost.packets, lost.lost, lost.out_of_order), (5, 1, Some(0)));
        let late = arrivals(&[1, 2, 4, 3, 5]);
        assert_eq!((late.packets, late.lost, late.out_of_order), (5, 0, Some(1)));
    }

    #[test]
    fn an_even_flow_has_no_jitter() {
        assert_eq!(arrivals(&[1, 2, 3]).jitter_us.map(|us| us < 1e-9), Some(true));
    }

    #[test]
    fn a_clock_that_is_off_does_not_matter() {
        let mut arrivals = Arrivals::default();
        for number in 1..10 {
            arrivals.take(Header { sent_us: u64::MAX / 2 + number * 10, number }, number * 10);
        }
        assert!(arrivals.since(&Arrivals::default()).jitter_us.unwrap() < 1e-9);
    }

    proptest! {
        #[test]
        fn a_header_survives_the_wire(sent_us in 0u64..1 << 51, number in 0u64..1 << 32, wide: bool) {
            let mut datagram = [0u8; 20];
            let header = Header { sent_us, number };
            header.write(wide, &mut datagram);
            prop_assert_eq!(Header::read(wide, &datagram), Some(header));
        }

        #[test]
        fn no_datagram_panics(datagrams in proptest::collection::vec(any::<[u8; 16]>(), 0..20), wide: bool) {
            let mut arrivals = Arrivals::default();
            for datagram in datagrams {
                if let Some(header) = Header::read(wide, &datagram) {
                    arrivals.take(header, 5);
                }
            }
            prop_assert!(arrivals.since(&Arrivals::default()).jitter_us.unwrap() >= 0.0);
        }
    }
}
