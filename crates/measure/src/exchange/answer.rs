//! The server's side: reads requests and writes responses.

use std::{
    io::{self, Read, Write},
    net::{Shutdown, TcpStream},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use fullpipe_probe::is_pause;

use super::Pattern;
use crate::{
    flow::{Flow, Live},
    lane::{Lane, Role},
    report::EndReport,
    sys::{
        cpu::{CpuClock, ProcessTime},
        host, wait,
    },
};

/// How long a worker waits in the kernel before it looks whether it shall stop.
const WAKE_EVERY: Duration = Duration::from_millis(100);

/// A client that opened a connection for one request has this long to make it.
const ONE_REQUEST: Duration = Duration::from_secs(5);

/// More workers than this would only keep each other from running.
const MOST_SPINNERS: usize = 4;

/// What a test shares with the connections that come for it one by one.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    /// Set once the test is ready for them.
    pattern: OnceLock<Pattern>,
    count: AtomicU64,
}

impl Answers {
    /// The pattern, where connections are to be answered one by one.
    pub(crate) fn pattern(&self) -> Option<Pattern> {
        self.pattern.get().copied()
    }

    /// How many requests were answered.
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Answers the one request of a connection.
    pub(crate) fn answer(&self, stream: &TcpStream, pattern: Pattern, stop: &AtomicBool) {
        let until = Instant::now() + ONE_REQUEST;
        let answered = stream.set_read_timeout(Some(WAKE_EVERY)).and_then(|()| {
            let mut buffers = Buffers::new(pattern);
            buffers.read(stream, pattern, || stop.load(Ordering::Relaxed) || Instant::now() > until)?;
            buffers.write(stream, || Instant::now() > until)
        });
        if answered.is_ok() {
            self.count.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Connections that are answered. Dropping it ends them.
#[derive(Debug)]
pub(crate) struct Answering {
    streams: Vec<Arc<TcpStream>>,
    answers: Arc<Answers>,
    processor: Arc<AtomicU64>,
    start: Instant,
    stop: Arc<AtomicBool>,
    workers: Vec<JoinHandle<()>>,
    cpu: CpuClock,
    process: ProcessTime,
    marked: bool,
}

impl Answering {
    pub(crate) fn start(lanes: Vec<Lane>, pattern: Pattern, answers: &Arc<Answers>) -> io::Result<Self> {
        let pattern = Pattern { spin: pattern.spin && lanes.len() <= MOST_SPINNERS, ..pattern };
        if pattern.connect {
            answers.pattern.get_or_init(|| pattern);
        }
        let mut answering = Self {
            streams: lanes.into_iter().map(|lane| Arc::new(lane.stream)).collect(),
            answers: Arc::clone(answers),
            processor: Arc::new(AtomicU64::new(u64::MAX)),
            start: Instant::now(),
            stop: Arc::default(),
            workers: Vec::new(),
            cpu: CpuClock::now(),
            process: ProcessTime::now(),
            marked: false,
        };
        for stream in &answering.streams {
            stream.set_read_timeout(Some(WAKE_EVERY))?;
            stream.set_write_timeout(Some(WAKE_EVERY))?;
            stream.set_nonblocking(pattern.spin)?;
            let (stream, stop, answers) = (Arc::clone(stream), Arc::clone(&answering.stop), Arc::clone(answers));
            let processor = Arc::clone(&answering.processor);
            let worker = thread::Builder::new().name("measure-answer".to_owned()).spawn(move || {
                let mut buffers = Buffers::new(pattern);
                let stopped = || stop.load(Ordering::Relaxed);
                // The client says on the control connection how it ended.
                while !stopped()
                    && buffers.read(&stream, pattern, stopped).is_ok()
                    && buffers.write(&stream, stopped).is_ok()
                {
                    answers.count.fetch_add(1, Ordering::Relaxed);
                }
                processor.store(host::processor().map_or(u64::MAX, u64::from), Ordering::Relaxed);
            })?;
            answering.workers.push(worker);
        }
        Ok(answering)
    }

    fn halt(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for stream in &self.streams {
            // Wakes a worker that sleeps in the kernel.
            drop(stream.shutdown(Shutdown::Both));
        }
        for worker in self.workers.drain(..) {
            drop(worker.join());
        }
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.halt();
    }
}

impl Flow for Answering {
    fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// Requests, not bytes.
    fn progress(&self, _: Role) -> u64 {
        self.answers.count.load(Ordering::Relaxed)
    }

    fn activity(&self) -> u64 {
        self.answers.count.load(Ordering::Relaxed)
    }

    fn live(&self) -> Live {
        Live::default()
    }

    fn is_complete(&self) -> bool {
        false
    }

    fn has(&self, _: Role) -> bool {
        false
    }

    fn failure(&self) -> Option<io::ErrorKind> {
        None
    }

    fn mark_steady(&mut self) {
        self.marked = true;
    }

    fn is_marked(&self) -> bool {
        self.marked
    }

    fn stop(&mut self) -> EndReport {
        let wall = self.elapsed().as_secs_f64().max(1e-6);
        let process = ProcessTime::now();
        let percent = |now: f64, before: f64| (now - before).max(0.0) / wall * 100.0;
        let busy = CpuClock::now().busiest_since(&self.cpu);
        self.halt();
        EndReport {
            cpu_busy: busy,
            cpu_user_percent: percent(process.user_s, self.process.user_s),
            cpu_system_percent: percent(process.system_s, self.process.system_s),
            processor: u32::try_from(self.processor.load(Ordering::Relaxed)).ok(),
            push: None,
            lanes: Vec::new(),
        }
    }

    fn release(mut self: Box<Self>, _abrupt: bool) {
        self.halt();
    }
}

/// A request to read into and a response to write from.
pub(super) struct Buffers {
    request: Vec<u8>,
    response: Vec<u8>,
}

impl Buffers {
    fn new(pattern: Pattern) -> Self {
        Self { request: vec![0; pattern.request as usize], response: vec![7; pattern.response as usize] }
    }

    fn read(&mut self, stream: &TcpStream, pattern: Pattern, stopped: impl Fn() -> bool) -> io::Result<()> {
        read_all(stream, &mut self.request, pattern.spin, stopped)
    }

    fn write(&self, stream: &TcpStream, stopped: impl Fn() -> bool) -> io::Result<()> {
        write_all(stream, &self.response, stopped)
    }
}

/// Reads until the buffer is full; `spin` on a socket that does not block.
pub(super) fn read_all(
    mut stream: &TcpStream,
    buffer: &mut [u8],
    spin: bool,
    stopped: impl Fn() -> bool,
) -> io::Result<()> {
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match stream.read(rest) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => filled += count,
            Err(error) if is_pause(&error) => {
                if stopped() {
                    return Err(io::ErrorKind::Interrupted.into());
                }
                if spin {
                    std::hint::spin_loop();
                }
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

pub(super) fn write_all(mut stream: &TcpStream, mut bytes: &[u8], stopped: impl Fn() -> bool) -> io::Result<()> {
    while !bytes.is_empty() {
        match stream.write(bytes) {
            Ok(count) => bytes = bytes.get(count..).unwrap_or_default(),
            Err(error) if is_pause(&error) => {
                if stopped() {
                    return Err(io::ErrorKind::Interrupted.into());
                }
                wait::writable(stream, WAKE_EVERY)?;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
