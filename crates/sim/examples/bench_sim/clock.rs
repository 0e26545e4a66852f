//! The clocks of the bench and of the peer that it runs (`xtask/netsim`).

use rustix::time::{ClockId, clock_gettime};

/// Processor time of this thread; s.
pub(crate) fn processor_time() -> f64 {
    seconds(ClockId::ThreadCPUTime)
}

/// A clock of the kernel; s.
pub(crate) fn seconds(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
