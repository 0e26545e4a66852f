//! Arithmetic on times that an embedded CPU does in 32 bits: spans are microseconds in a `u32` (71 minutes at most,
//! longer ones saturate), points are [`Instant`]s.

use fullpipe_units::Instant;

use crate::divide::by_small;

/// The point `us` microseconds after `now`.
#[cfg_attr(target_pointer_width = "32", inline(never))]
pub(crate) const fn after(now: Instant, us: u32) -> Instant {
    Instant::from_nanos(now.as_nanos().saturating_add(us as u64 * 1_000))
}

/// Microseconds from `earlier` to `now`; zero where that is negative.
#[cfg_attr(target_pointer_width = "32", inline(never))]
pub(crate) fn us_since(now: Instant, earlier: Instant) -> u32 {
    u32::try_from(by_small(now.as_nanos().saturating_sub(earlier.as_nanos()), 1_000)).unwrap_or(u32::MAX)
}

/// The millisecond clock that timestamps show (RFC 7323, section 5.4: between 1 ms and 1 s a tick).
pub(crate) const fn millis(now: Instant) -> u32 {
    by_small(by_small(now.as_nanos(), 1_000), 1_000) as u32
}

/// The clock of initial sequence numbers (RFC 9293, section 3.4.1).
pub(crate) const fn ticks_of_4_us(now: Instant) -> u32 {
    by_small(now.as_nanos(), 4_000) as u32
}

/// Whole seconds.
pub(crate) const fn seconds(now: Instant) -> u64 {
    by_small(by_small(by_small(now.as_nanos(), 1_000), 1_000), 1_000)
}
