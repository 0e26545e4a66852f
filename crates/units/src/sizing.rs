//! How large a window and a buffer a path needs: one piece of arithmetic for the planner, which sets a host's limits, and
//! for the socket library, which sets one socket's buffers.
//!
//! What is *not* here: which limit or socket option takes the value, and what a platform's buffers cost beside payload
//! beyond a [`PayloadShare`].

use crate::{Bytes, Micros, Rate, bdp, time_at_rate};

/// The largest window without the window-scale option (RFC 9293, section 3.1).
pub const UNSCALED: Bytes = Bytes::new(65_535);

/// The largest shift that the option can say (RFC 7323, section 2.3).
pub const LARGEST_SHIFT: u8 = 14;

/// What a connection is tuned for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Goal {
    /// Throughput: room for a round of loss recovery.
    #[default]
    Bulk,
    /// Short queues: no more room than a full pipe needs.
    Interactive,
}

/// A multiple of the bandwidth-delay product, and why that much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// The bytes.
    pub bytes: Bytes,
    /// How many hundredths of the bandwidth-delay product that is.
    pub percent: u64,
    /// What the room beyond it is for.
    pub why: &'static str,
}

/// What a path needs in flight, and therefore in buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// One bandwidth-delay product.
    pub bdp: Bytes,
    /// The window that the receiver has to offer.
    pub window: Room,
    /// The payload that the sender has to hold until it is acknowledged.
    pub unacknowledged: Room,
}

/// Bulk doubles the product: while a lost segment is being repaired, the receiver holds one round trip's data that it
/// can't hand on, and the next round trip's data needs room, too (the kernel's own automatic sizing aims at twice what
/// was read in a round trip for this reason).
const BULK: (u64, &str) = (200, "room for one round of loss recovery");
/// Interactive keeps the queue that one connection can build to a quarter of a round trip.
const INTERACTIVE_WINDOW: (u64, &str) = (125, "no more queue than a quarter of a round trip");
/// A Linux sender wakes its application only when a third of the send buffer is free (`sk_stream_is_writeable`: free
/// space of at least half of what is queued), so that two thirds of it must hold the bandwidth-delay product.
const INTERACTIVE_SEND: (u64, &str) = (150, "the writer is woken when a third of the buffer is free");

impl Sizes {
    /// For a path of `rate` and round-trip time `rtt`.
    pub fn new(rate: Rate, rtt: Micros, goal: Goal) -> Self {
        Self::of_bdp(bdp(rate, rtt), goal)
    }

    /// For a path that holds `bdp`.
    pub fn of_bdp(bdp: Bytes, goal: Goal) -> Self {
        let (window, unacknowledged) = match goal {
            Goal::Bulk => (BULK, BULK),
            Goal::Interactive => (INTERACTIVE_WINDOW, INTERACTIVE_SEND),
        };
        let room = |(percent, why): (u64, &'static str)| Room {
            bytes: bytes((u128::from(bdp.get()) * u128::from(percent)).div_ceil(100)),
            percent,
            why,
        };
        Self { bdp, window: room(window), unacknowledged: room(unacknowledged) }
    }
}

/// The first retransmission timeout (RFC 6298, section 2): packets that wait longer in a queue are sent again although nothing was lost.
const LONGEST_WAIT: Micros = Micros::from_secs(1);

/// How long the end of a full window waits at the bottleneck, where a window that is fixed holds so much more than the path and room
/// for repairs take that this is a second and more; `None` where it isn't.
///
/// Automatic sizing keeps below its maximum; a fixed window is used up whenever the bottleneck's queue is long enough.
pub fn standing_queue(fixed_window: Bytes, rate: Rate, rtt: Micros) -> Option<Micros> {
    let Sizes { bdp, window, .. } = Sizes::new(rate, rtt, Goal::Bulk);
    let beyond = |size: Bytes| time_at_rate(Bytes::new(fixed_window.get().saturating_sub(size.get())), rate);
    beyond(window.bytes).filter(|wait| *wait >= LONGEST_WAIT).and_then(|_| beyond(bdp))
}

/// How much of a buffer is payload, in 1/256 as Linux counts it (`scaling_ratio`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PayloadShare(u64);

impl PayloadShare {
    /// All of it: a system that charges a socket for payload alone.
    pub const ALL: Self = Self(256);
    /// Half: where Linux 6.6 and newer start from with a receive buffer, and what it reckons with when it sizes a send
    /// buffer.
    pub const HALF: Self = Self(128);

    /// `of_256` parts of 256, at least one and at most all.
    pub const fn new(of_256: u64) -> Self {
        Self(if of_256 == 0 {
            1
        } else if of_256 > 256 {
            256
        } else {
            of_256
        })
    }

    /// In whole hundredths.
    pub const fn percent(self) -> u64 {
        self.0 * 100 / 256
    }

    /// The payload that a buffer of `buffer` holds.
    pub fn payload_in(self, buffer: Bytes) -> Bytes {
        let payload = u128::from(buffer.get()) * u128::from(self.0) / 256;
        bytes(payload)
    }

    /// The smallest buffer that holds `payload`, rounded up to a value that is easy to read.
    pub fn buffer_for(self, payload: Bytes) -> Bytes {
        let buffer = (u128::from(payload.get()) * 256).div_ceil(u128::from(self.0));
        let buffer = bytes(buffer);
        // 64 KiB steps once that is less than a sixteenth, pages below.
        buffer.round_up_to(if buffer.get() >= 1 << 20 { 1 << 16 } else { 1 << 12 })
    }
}

/// The largest that there is instead of an overflow.
fn bytes(count: u128) -> Bytes {
    Bytes::new(u64::try_from(count).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUND_TRIP: Micros = Micros::from_millis(80);

    #[test]
    fn bulk_has_room_for_a_round_of_recovery_and_interactive_for_a_quarter_of_a_queue() {
        let rate = Rate::from_bps(100_000_000);
        let bulk = Sizes::new(rate, ROUND_TRIP, Goal::Bulk);
        let interactive = Sizes::new(rate, ROUND_TRIP, Goal::Interactive);
        assert_eq!(bulk.bdp, Bytes::new(1_000_000));
        assert_eq!((bulk.window.bytes, bulk.unacknowledged.bytes), (Bytes::new(2_000_000), Bytes::new(2_000_000)));
        assert_eq!(interactive.window.bytes, Bytes::new(1_250_000));
        assert_eq!(interactive.unacknowledged.bytes, Bytes::new(1_500_000));
    }

    #[test]
    fn a_buffer_holds_its_payload_and_is_easy_to_read() {
        for (share, payload, buffer) in [
            (PayloadShare::ALL, 65_535, 65_536),
            (PayloadShare::HALF, 65_535, 131_072),
            (PayloadShare::HALF, 2_000_000, 4_063_232),
            (PayloadShare::new(0), 1, 4_096),
        ] {
            let got = share.buffer_for(Bytes::new(payload));
            assert_eq!(got, Bytes::new(buffer), "{share:?} {payload}");
            assert!(share.payload_in(got) >= Bytes::new(payload));
        }
    }

    #[test]
    fn the_largest_sizes_saturate() {
        let sizes = Sizes::of_bdp(Bytes::new(u64::MAX), Goal::Bulk);
        assert_eq!(sizes.window.bytes, Bytes::new(u64::MAX));
        assert_eq!(PayloadShare::HALF.buffer_for(sizes.window.bytes), Bytes::new(u64::MAX));
    }
}
