//! Arithmetic on times that an embedded CPU does in 32 bits: spans are microseconds in a `u32` (71 minutes at most,
//! longer ones saturate), points are [`Instant`]s, kept as [`Stamp`]s, or as [`Millis`] where a millisecond is exact enough.

use fullpipe_units::Instant;

use crate::divide::by_small;

/// The point `us` microseconds after `now`.
#[cfg_attr(all(target_pointer_width = "32", not(target_family = "wasm")), inline(never))]
pub(crate) const fn after(now: Instant, us: u32) -> Instant {
    Instant::from_nanos(now.as_nanos().saturating_add(us as u64 * 1_000))
}

/// Microseconds from `earlier` to `now`; zero where that is negative.
#[cfg_attr(all(target_pointer_width = "32", not(target_family = "wasm")), inline(never))]
pub(crate) fn us_since(now: Instant, earlier: Instant) -> u32 {
    u32::try_from(by_small(now.as_nanos().saturating_sub(earlier.as_nanos()), 1_000)).unwrap_or(u32::MAX)
}

/// An [`Instant`] as it is kept: what holds it needs not start at a multiple of eight bytes, and is copied as words.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stamp([u32; 2]);

impl Stamp {
    pub(crate) const fn new(at: Instant) -> Self {
        Self([at.as_nanos() as u32, (at.as_nanos() >> 32) as u32])
    }

    pub(crate) const fn instant(self) -> Instant {
        Instant::from_nanos((self.0[1] as u64) << 32 | self.0[0] as u64)
    }
}

/// A point in time to the millisecond. Points more than 49 days apart look nearer than they are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Millis(u32);

impl Millis {
    pub(crate) const fn new(now: Instant) -> Self {
        Self(millis(now))
    }

    /// Milliseconds from `earlier` to this point.
    pub(crate) const fn since(self, earlier: Self) -> u32 {
        self.0.wrapping_sub(earlier.0)
    }
}

/// Microseconds modulo 2^32.
#[cfg(feature = "bbr")]
pub(crate) const fn micros(now: Instant) -> u32 {
    by_small(now.as_nanos(), 1_000) as u32
}

/// The millisecond clock that timestamps show (RFC 7323, section 5.4: between 1 ms and 1 s a tick).
pub(crate) const fn millis(now: Instant) -> u32 {
    by_small(by_small(now.as_nanos(), 1_000), 1_000) as u32
}

/// The clock of initial sequence numbers (RFC 9293, section 3.4.1).
pub(crate) const fn ticks_of_4_us(now: Instant) -> u32 {
    by_small(now.as_nanos(), 4_000) as u32
}

/// A clock of 2^30 ns, about a second, that doesn't come round in a century.
pub(crate) const fn about_seconds(now: Instant) -> u32 {
    (now.as_nanos() >> 30) as u32
}

/// Whole seconds.
pub(crate) const fn seconds(now: Instant) -> u64 {
    by_small(by_small(by_small(now.as_nanos(), 1_000), 1_000), 1_000)
}
