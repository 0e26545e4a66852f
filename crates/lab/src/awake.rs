//! Keeps the processors from going to sleep while packets are under way.
//!
//! A processor that sleeps takes time to wake: some 100 us out of a deep idle state of real hardware, and milliseconds in
//! a virtual machine, whose host may have given the processor to somebody else meanwhile. A path that releases a packet
//! every few milliseconds would be late with nearly each one. So one thread for each processor spins, under SCHED_IDLE: it
//! runs only while the processor has nothing else to do and gives way to anybody at once.
//!
//! Measured on a virtual machine with two processors, 3.5 Mbit/s over 40 ms: p99 of the release error 8 ms without, 130
//! us with these threads.
//!
//! SCHED_IDLE is not enough to give way to a thread that fills its processor. Newer kernels let normal threads that
//! real-time ones have kept from running go first for 50 ms of a second (the deadline server of the fair class), these
//! among them, and Linux 6.18 was seen to go on with it each second, starved or not. So a thread that finds itself in the
//! path's way sleeps.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::{driver::Pulse, sys};

/// How long after the last packet the processors are still kept awake: longer than the longest pause between two packets
/// of a test on any path that is worth measuring.
const LINGER: Duration = Duration::from_secs(1);
/// How often a thread looks for new packets while there are none, and how long it stays out of the path's way.
const SLEEP: Duration = Duration::from_millis(2);

/// The spinning threads. Dropping this ends them.
#[derive(Debug)]
pub(crate) struct Awake {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Awake {
    /// Keeps every processor that this thread may use awake for as long as the path reads packets.
    ///
    /// # Errors
    /// What the kernel said where a thread could not be started. One that may not spin at idle priority doesn't spin.
    pub(crate) fn start(path: &Arc<Pulse>) -> io::Result<Self> {
        let mut awake = Self { stop: Arc::new(AtomicBool::new(false)), threads: Vec::new() };
        let allowed = sched_getaffinity(None)?;
        for processor in (0..CpuSet::MAX_CPU).filter(|&processor| allowed.is_set(processor)) {
            let (stop, path) = (Arc::clone(&awake.stop), Arc::clone(path));
            let thread = thread::Builder::new().name("lab-awake".into()).spawn(move || {
                let mut own = CpuSet::new();
                own.set(processor);
                // The nice value matters to the accounting alone: /proc/stat shows the spinning as `nice`, not as `user`, and
                // whoever asks how busy the machine is can tell it from work.
                let gives_way = sys::set_idle_priority().and_then(|()| sys::set_nice(19));
                if gives_way.is_ok() && sched_setaffinity(None, &own).is_ok() {
                    spin(&stop, &path, processor);
                }
            })?;
            awake.threads.push(thread);
        }
        Ok(awake)
    }
}

impl Drop for Awake {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        for thread in self.threads.drain(..) {
            // A panic over there was printed by its own thread.
            drop(thread.join());
        }
    }
}

fn spin(stop: &AtomicBool, path: &Pulse, processor: usize) {
    let mut seen = path.reads.load(Relaxed);
    let mut last = Instant::now();
    while !stop.load(Relaxed) {
        let count = path.reads.load(Relaxed);
        if count != seen {
            (seen, last) = (count, Instant::now());
        } else if last.elapsed() > LINGER {
            thread::sleep(SLEEP);
            continue;
        }
        if path.is_kept_waiting_on(processor) {
            thread::sleep(SLEEP);
        }
        for _ in 0..1_000 {
            std::hint::spin_loop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_threads_end_when_stopped() {
        let path = Arc::new(Pulse::start());
        let awake = Awake::start(&path).unwrap();
        assert!(!awake.threads.is_empty());
        path.reads.fetch_add(1, Relaxed);
        drop(awake);
        assert_eq!(Arc::strong_count(&path), 1, "every thread has let go of it");
    }
}
