//! Rates, sizes, times, networks, TCP sequence numbers and flags.
//!
//! `no_std` and free of dependencies, because every other room stands on it. What is *not* here: clocks
//! (time is an argument everywhere), wire formats, and anything that knows a platform.
//!
//! Read first: RFC 9293 section 3.4 (sequence numbers), RFC 7323 section 2 (why a window bounds a rate).
#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

mod bytes;
mod flags;
mod network;
mod parse;
mod rate;
mod seq;
pub mod sizing;
mod time;

pub use bytes::Bytes;
pub use flags::TcpFlags;
pub use network::{Network, ParseNetworkError};
pub use parse::ParseUnitError;
pub use rate::Rate;
pub use seq::SeqNum;
pub use time::{Instant, Micros};

/// The bandwidth-delay product: the bytes in flight that use all of the rate of a path of `rate` and round-trip time `rtt`.
///
/// Rounded up, so that a window of this size really fills the path. Saturates instead of overflowing.
pub fn bdp(rate: Rate, rtt: Micros) -> Bytes {
    let bits = u128::from(rate.bps()) * u128::from(rtt.get());
    Bytes::new(u64::try_from(bits.div_ceil(8_000_000)).unwrap_or(u64::MAX))
}

/// The rate that a window bounds: one window per round trip (RFC 7323, section 1.1).
///
/// Returns `None` for a round-trip time of zero, for which the bound is infinite.
pub fn window_limited_rate(window: Bytes, rtt: Micros) -> Option<Rate> {
    let bits = u128::from(window.get()) * 8_000_000;
    let bps = bits.checked_div(u128::from(rtt.get()))?;
    Some(Rate::from_bps(u64::try_from(bps).unwrap_or(u64::MAX)))
}

/// How long `bytes` take at `rate`: what waits in a queue that drains so fast delays the next packet by that.
///
/// Rounded up; saturates instead of overflowing. Returns `None` for a rate of zero.
pub fn time_at_rate(bytes: Bytes, rate: Rate) -> Option<Micros> {
    let bits = u128::from(bytes.get()) * 8_000_000;
    (rate > Rate::ZERO).then(|| Micros::new(u64::try_from(bits.div_ceil(u128::from(rate.bps()))).unwrap_or(u64::MAX)))
}

/// A part of one: `0.1%` or `0.001`. Whether it is one at all, 0 to 1, is the caller's affair.
///
/// Returns `None` for a text that is no number.
pub fn fraction(text: &str) -> Option<f64> {
    let (number, divisor) = text.strip_suffix('%').map_or((text, 1.0), |percent| (percent, 100.0));
    number.trim().parse::<f64>().ok().map(|value| value / divisor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fraction_is_a_number_or_in_percent() {
        assert_eq!(
            ["0.5%", "0.5 %", "0.25", "1e-3"].map(fraction),
            [Some(0.005), Some(0.005), Some(0.25), Some(0.001)]
        );
        assert_eq!(["", "%", "some", "0.5%%", "0.5% "].map(fraction), [None; 5]);
    }

    #[test]
    fn a_window_of_128480_bytes_takes_20_seconds_at_50_kbit() {
        assert_eq!(time_at_rate(Bytes::new(128_480), Rate::from_bps(50_000)), Some(Micros::new(20_556_800)));
        assert_eq!(time_at_rate(Bytes::new(1), Rate::ZERO), None);
    }

    #[test]
    fn a_100_mbit_path_of_80_ms_holds_a_million_bytes() {
        assert_eq!(bdp(Rate::from_bps(100_000_000), Micros::from_millis(80)), Bytes::new(1_000_000));
    }

    #[test]
    fn a_64512_byte_window_at_80_ms_caps_at_6_45_mbit() {
        let rate = window_limited_rate(Bytes::new(64_512), Micros::from_millis(80));
        assert_eq!(rate, Some(Rate::from_bps(6_451_200)));
    }

    #[test]
    fn no_round_trip_means_no_bound() {
        assert_eq!(window_limited_rate(Bytes::new(1), Micros::ZERO), None);
    }

    #[test]
    fn the_extremes_saturate() {
        assert_eq!(bdp(Rate::from_bps(u64::MAX), Micros::new(u64::MAX)), Bytes::new(u64::MAX));
        assert_eq!(window_limited_rate(Bytes::new(u64::MAX), Micros::new(1)), Some(Rate::from_bps(u64::MAX)));
    }
}
