//! The thread that moves packets: reads, releases, and sleeps until the next planned time.
//!
//! Both directions share one thread: a lab's machine also runs both ends, and a second thread would take its core from
//! one of them. It runs above all normal threads where it may (`SCHED_FIFO`), sleeps to the nanosecond (timer slack 1)
//! and never spins itself; idle threads keep the processors from sleeping (`awake`). It leaves a part of its processor to
//! others, a little at a time, before the kernel takes it in one go (`Rest`).

use std::{
    io,
    num::NonZeroU64,
    os::fd::{AsFd, OwnedFd},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant as SystemInstant},
};

use fullpipe_units::Instant;
use rustix::{
    event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll},
    io::Errno,
    thread::{CpuSet, sched_getcpu, sched_setaffinity},
    time::{ClockId, clock_gettime},
};

use crate::{
    awake::Awake,
    lane::{Lane, LaneSpec},
    stats::LATE_US,
    sys,
};

/// The name that the system knows the thread by.
pub(crate) const PATH_THREAD: &str = "lab-path";

/// After a release the next one waits at least so long. A busy path then costs 20,000 wake-ups a second at most, each
/// of which releases what became due meanwhile; below 1,500 B / 50 us = 240 Mbit/s every segment still leaves alone.
const QUANTUM: Duration = Duration::from_micros(50);

/// Nanoseconds of the monotonic clock since the lab began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    origin: SystemInstant,
}

impl Clock {
    fn start() -> Self {
        Self { origin: SystemInstant::now() }
    }

    pub(crate) fn now(&self) -> Instant {
        Instant::ZERO + self.origin.elapsed()
    }
}

/// What the driving thread runs as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Priority {
    /// SCHED_FIFO: before all normal threads.
    RealTime,
    /// A normal thread with a better nice value.
    Nice,
    /// A thread like any other: this user has no right to more. Release errors will be larger on a busy machine.
    Normal,
}

/// The driving thread. Dropping this stops it.
#[derive(Debug)]
pub(crate) struct Driver {
    control: Arc<Control>,
    thread: Option<thread::JoinHandle<()>>,
    priority: Priority,
    // Ends after the driving thread: a late processor harms nobody any more.
    _awake: Option<Awake>,
}

#[derive(Debug)]
struct Control {
    wake: OwnedFd,
    stop: AtomicBool,
    /// Nanoseconds to stand still, once.
    stall: AtomicU64,
}

impl Driver {
    /// Starts it; on `processor`, where there is one and the thread is real-time: a normal one would have to share it.
    pub(crate) fn start(
        specs: [LaneSpec; 2],
        realtime: bool,
        keep_awake: bool,
        processor: Option<usize>,
    ) -> io::Result<Self> {
        let pulse = Arc::new(Pulse::start());
        let awake = keep_awake.then(|| Awake::start(&pulse)).transpose()?;
        let control = Arc::new(Control {
            wake: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            stop: AtomicBool::new(false),
            stall: AtomicU64::new(0),
        });
        let [LaneSpec { rtt, .. }, _] = specs;
        let rest = Rest::new(Duration::from_micros(rtt.get()));
        let (send, receive) = std::sync::mpsc::sync_channel(1);
        let ours = Arc::clone(&control);
        let thread = thread::Builder::new().name(PATH_THREAD.into()).spawn(move || {
            let priority = if realtime { raise_priority() } else { Priority::Normal };
            if let Some(processor) = processor.filter(|_| priority == Priority::RealTime) {
                let mut own = CpuSet::new();
                own.set(processor);
                // Elsewhere it is no worse than without.
                sched_setaffinity(None, &own).ok();
            }
            // Without it, sleeps end up to 50 us late. Where it fails, the release error shows it.
            rustix::thread::set_current_timer_slack(NonZeroU64::new(1)).ok();
            send.send(priority).ok();
            drive(specs.map(Lane::new), rest, &ours, &pulse);
        })?;
        let priority = receive.recv().map_err(|_| io::Error::other("the path's thread ended at once"))?;
        Ok(Self { control, thread: Some(thread), priority, _awake: awake })
    }

    pub(crate) fn priority(&self) -> Priority {
        self.priority
    }

    /// Makes the thread stand still.
    pub(crate) fn stall(&self, span: Duration) {
        self.control.stall.store(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX), Relaxed);
        self.control.wake();
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.control.stop.store(true, Relaxed);
        self.control.wake();
        if let Some(thread) = self.thread.take() {
            // A panic over there was printed by its own thread, and there is nobody to hand it to.
            drop(thread.join());
        }
    }
}

impl Control {
    fn wake(&self) {
        // It fails only where the counter is full, and then the thread wakes anyway.
        rustix::io::write(&self.wake, &1_u64.to_ne_bytes()).ok();
    }

    fn woken(&self) {
        rustix::io::read(&self.wake, &mut [0_u8; 8]).ok();
        thread::sleep(Duration::from_nanos(self.stall.swap(0, Relaxed)));
    }
}

/// Puts the calling thread before all normal threads, as far as this user may: for what has to keep time.
pub fn raise_priority() -> Priority {
    if sys::set_realtime(sys::RealTime::Clock).is_ok() {
        Priority::RealTime
    } else if sys::set_nice(-20).is_ok() {
        Priority::Nice
    } else {
        Priority::Normal
    }
}

/// What the threads that keep the processors awake may know of the path's.
#[derive(Debug)]
pub(crate) struct Pulse {
    clock: Clock,
    /// How often it has read packets.
    pub(crate) reads: AtomicU64,
    /// The processor on which it ran last.
    processor: AtomicUsize,
    /// When it wants to run next, in nanoseconds of the clock; 0 while it runs.
    due: AtomicU64,
}

impl Pulse {
    /// What counts as late. A timer of a virtual machine often ends a sleep some tens of microseconds late.
    const SLACK: Duration = Duration::from_micros(LATE_US);

    pub(crate) fn start() -> Self {
        Self {
            clock: Clock::start(),
            reads: AtomicU64::new(0),
            processor: AtomicUsize::new(usize::MAX),
            due: AtomicU64::new(u64::MAX),
        }
    }

    fn sleeps(&self, until: Option<Instant>) {
        self.due.store(until.map_or(u64::MAX, Instant::as_nanos), Relaxed);
    }

    fn woke(&self, processor: usize) {
        self.processor.store(processor, Relaxed);
        self.due.store(0, Relaxed);
    }

    /// Whether the path's thread would run on `processor` now, if whoever asks didn't.
    pub(crate) fn is_kept_waiting_on(&self, processor: usize) -> bool {
        self.processor.load(Relaxed) == processor && self.has_waited_at(self.clock.now())
    }

    fn has_waited_at(&self, now: Instant) -> bool {
        Duration::from_nanos(now.as_nanos().saturating_sub(self.due.load(Relaxed))) > Self::SLACK
    }
}

/// Leaves a part of the processor to others, a little at a time.
///
/// A real-time thread gets 950 ms of a second (`sched_rt_runtime_us`, where the kernel still has it: `CONFIG_RT_GROUP_SCHED`),
/// and newer kernels give normal threads that it kept from running 50 ms (the deadline server of the fair class). Either
/// way a thread that fills its processor stands still for up to 50 ms, both seen on 6.18. The ends are real-time, too.
/// Rests cost little, because what is due after one leaves in fewer writes.
#[derive(Debug)]
struct Rest {
    /// How long one is.
    span: Duration,
    /// What the thread ran beyond its part.
    beyond: Duration,
    seen: Moment,
}

/// What the lab's clock shows, and how long the thread has run.
#[derive(Clone, Copy, Debug, Default)]
struct Moment {
    wall: Duration,
    thread: Duration,
}

impl Moment {
    fn now(clock: &Clock) -> Self {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        let thread = Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0));
        Self { wall: clock.origin.elapsed(), thread }
    }
}

impl Rest {
    /// Time off the processor makes up for so many times as much on it: a seventh of it is left.
    const MAKES_UP_FOR: u32 = 6;
    /// Running up to this needs no rest.
    const AT_ONCE: Duration = Duration::from_millis(20);

    /// For a path with this round-trip time: a rest takes a hundredth of it, 50 to 200 us, and packets leave later by as much.
    fn new(rtt: Duration) -> Self {
        let span = (rtt / 100).clamp(QUANTUM, Duration::from_micros(200));
        Self { span, beyond: Duration::ZERO, seen: Moment::default() }
    }

    /// Whether a rest is due.
    fn is_due(&mut self, now: Moment) -> bool {
        let ran = now.thread.saturating_sub(self.seen.thread);
        let off = now.wall.saturating_sub(self.seen.wall).saturating_sub(ran);
        self.seen = now;
        // However long it ran at once: one rest at a time.
        self.beyond = (self.beyond + ran).saturating_sub(off * Self::MAKES_UP_FOR).min(Self::AT_ONCE + self.span);
        self.beyond > Self::AT_ONCE
    }
}

fn drive(mut lanes: [Lane; 2], mut rest: Rest, control: &Control, pulse: &Pulse) {
    let clock = pulse.clock;
    let mut last_release = Instant::ZERO;
    while !control.stop.load(Relaxed) {
        let planned = lanes.iter().filter_map(Lane::next_timeout).min();
        let until = planned.map(|at| at.max(last_release + QUANTUM));
        if rest.is_due(Moment::now(&clock)) {
            pulse.sleeps(Some(clock.now() + rest.span));
            thread::sleep(rest.span);
        }
        pulse.sleeps(until);
        let Ok(ready) = wait(&lanes, control, until, &clock) else { return };
        pulse.woke(sched_getcpu());
        if ready.control {
            control.woken();
        }
        for (lane, ready) in lanes.iter_mut().zip(ready.lanes) {
            if ready {
                pulse.reads.fetch_add(1, Relaxed);
                lane.receive(&clock);
            }
        }
        for lane in &mut lanes {
            if lane.release(&clock) {
                last_release = clock.now();
            }
        }
    }
}

/// Who has something to read.
#[derive(Clone, Copy, Debug, Default)]
struct Ready {
    lanes: [bool; 2],
    control: bool,
}

fn wait(lanes: &[Lane; 2], control: &Control, until: Option<Instant>, clock: &Clock) -> Result<Ready, Errno> {
    let [first, second] = lanes;
    let mut descriptors = [
        PollFd::from_borrowed_fd(first.source().as_fd(), PollFlags::IN),
        PollFd::from_borrowed_fd(second.source().as_fd(), PollFlags::IN),
        PollFd::from_borrowed_fd(control.wake.as_fd(), PollFlags::IN),
    ];
    let timeout = until.map(|until| {
        let span = until.since(clock.now());
        Timespec { tv_sec: span.as_secs() as _, tv_nsec: span.subsec_nanos().into() }
    });
    match poll(&mut descriptors, timeout.as_ref()) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(error),
    }
    // The device was deleted by hand. Nothing will ever be read again, and it would be reported without end; the lab
    // says so through its counters.
    if descriptors.iter().any(|descriptor| descriptor.revents().intersects(PollFlags::ERR | PollFlags::NVAL)) {
        return Err(Errno::NODEV);
    }
    let [one, two, three] = descriptors.map(|descriptor| descriptor.revents().contains(PollFlags::IN));
    Ok(Ready { lanes: [one, two], control: three })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Runs for pieces of 100 us, each followed by time off the processor, for a second. Returns how long the rests were.
    fn rests_of_a_second(rtt: Duration, off: Duration) -> Duration {
        let mut rest = Rest::new(rtt);
        let (mut now, mut rests) = (Moment::default(), Duration::ZERO);
        while now.wall < 1_000 * MS {
            now = Moment { wall: now.wall + MS / 10 + off, thread: now.thread + MS / 10 };
            if rest.is_due(now) {
                now.wall += rest.span;
                rests += rest.span;
            }
        }
        rests
    }

    #[test]
    fn a_thread_that_never_waits_leaves_a_seventh_of_its_processor() {
        for rtt in [MS, 10 * MS, 200 * MS] {
            let rests = rests_of_a_second(rtt, Duration::ZERO);
            assert!(rests > 130 * MS && rests < 150 * MS, "{rtt:?}: {rests:?}");
        }
    }

    #[test]
    fn a_thread_that_waits_often_enough_takes_no_rest() {
        assert_eq!(rests_of_a_second(40 * MS, MS / 50), Duration::ZERO);
        assert_ne!(rests_of_a_second(40 * MS, MS / 100), Duration::ZERO);
    }

    #[test]
    fn a_long_run_is_not_made_up_for_by_a_long_rest() {
        let mut rest = Rest::new(40 * MS);
        let now = Moment { wall: 5_000 * MS, thread: 5_000 * MS };
        assert!(rest.is_due(now));
        assert!(!rest.is_due(Moment { wall: now.wall + rest.span, ..now }));
    }

    #[test]
    fn others_know_when_the_path_waits_for_their_processor() {
        let (pulse, at) = (Pulse::start(), |us| Instant::ZERO + Duration::from_micros(us));
        assert!(!pulse.is_kept_waiting_on(1), "it has never run");
        pulse.sleeps(Some(at(1_000)));
        assert!(!pulse.has_waited_at(at(1_190)));
        assert!(pulse.has_waited_at(at(1_210)));
        pulse.woke(1);
        assert!(pulse.has_waited_at(at(210)), "it runs, and so does another there");
        thread::sleep(Pulse::SLACK * 2);
        assert!(pulse.is_kept_waiting_on(1) && !pulse.is_kept_waiting_on(0));
        pulse.sleeps(None);
        assert!(!pulse.is_kept_waiting_on(1), "nothing to do");
    }
}
