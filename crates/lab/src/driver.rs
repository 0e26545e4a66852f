//! The thread that moves packets: reads, releases, and sleeps until the next planned time.
//!
//! Both directions share one thread: a lab's machine also runs both ends, and a second thread would take its core from
//! one of them. It runs above all normal threads where it may (`SCHED_FIFO`), sleeps to the nanosecond (timer slack 1)
//! and never spins itself; idle threads keep the processors from sleeping (`awake`).

use std::{
    io,
    num::NonZeroU64,
    os::fd::{AsFd, OwnedFd},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant as SystemInstant},
};

use fullpipe_units::Instant;
use rustix::{
    event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll},
    io::Errno,
};

use crate::{
    awake::Awake,
    lane::{Lane, LaneSpec},
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
    pub(crate) fn start(specs: [LaneSpec; 2], realtime: bool, keep_awake: bool) -> io::Result<Self> {
        let packets = Arc::new(AtomicU64::new(0));
        let awake = keep_awake.then(|| Awake::start(&packets)).transpose()?;
        let control = Arc::new(Control {
            wake: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            stop: AtomicBool::new(false),
            stall: AtomicU64::new(0),
        });
        let (send, receive) = std::sync::mpsc::sync_channel(1);
        let ours = Arc::clone(&control);
        let thread = thread::Builder::new().name(PATH_THREAD.into()).spawn(move || {
            let priority = if realtime { raise_priority() } else { Priority::Normal };
            // Without it, sleeps end up to 50 us late. Where it fails, the release error shows it.
            rustix::thread::set_current_timer_slack(NonZeroU64::new(1)).ok();
            send.send(priority).ok();
            drive(specs.map(Lane::new), &ours, &packets);
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

fn drive(mut lanes: [Lane; 2], control: &Control, packets: &AtomicU64) {
    let clock = Clock::start();
    let mut last_release = Instant::ZERO;
    while !control.stop.load(Relaxed) {
        let planned = lanes.iter().filter_map(Lane::next_timeout).min();
        let Ok(ready) = wait(&lanes, control, planned.map(|at| at.max(last_release + QUANTUM)), &clock) else { return };
        if ready.control {
            control.woken();
        }
        for (lane, ready) in lanes.iter_mut().zip(ready.lanes) {
            if ready {
                packets.fetch_add(1, Relaxed);
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
