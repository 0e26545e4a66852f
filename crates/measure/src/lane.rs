//! One data connection and the thread that fills or empties it.

use std::{
    fs::File,
    io::{self, IoSlice, Read, Write},
    net::TcpStream,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use fullpipe_diagnose::SynFacts;
use fullpipe_probe::is_pause;
use fullpipe_socket::{Info, unread};
use serde::{Deserialize, Serialize};

use crate::{
    max,
    sys::{host, send_file, sockopt, wait},
};

/// What this end does on a data connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Role {
    Send,
    Receive,
}

/// A connection that is ready for payload.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) id: u32,
    pub(crate) role: Role,
    pub(crate) stream: TcpStream,
    /// The SYN as it arrived, where this end answered it.
    pub(crate) saved_syn: Option<SynFacts>,
    /// Whether this end opened it.
    pub(crate) opened: bool,
    /// What the opener sent before any payload.
    pub(crate) preamble: u64,
}

/// How payload is moved, the same for all lanes of a test.
#[derive(Clone, Debug)]
pub(crate) struct Manner {
    /// The size of one write, and of one read.
    pub(crate) block: usize,
    /// Read into a buffer instead of discarding in the kernel.
    pub(crate) copy: bool,
    /// Bytes after which the senders stop, all together.
    pub(crate) budget: Option<u64>,
    /// Send from a file, which the kernel need not copy.
    pub(crate) zerocopy: bool,
    /// Bits per second that each sender paces itself to.
    pub(crate) pace_bps: Option<u64>,
    /// Blocks that a sender with a pace writes without a pause, as iperf3's `-b RATE/N`; 0 for one.
    pub(crate) burst: u32,
    /// Bits per second beyond which no receiver reads.
    pub(crate) read_bps: Option<u64>,
    /// Whether the kernel is asked about the connections while payload moves.
    pub(crate) sampling: bool,
    /// As fast as this host can, found by trials in so much time.
    pub(crate) max: Option<Duration>,
}

impl Manner {
    /// What the kernel may pace senders to: not where they are to send in bursts.
    pub(crate) fn kernel_pace_bps(&self) -> Option<u64> {
        self.pace_bps.filter(|_| self.burst <= 1)
    }

    /// Bytes that a sender with a pace writes without looking at the clock.
    pub(crate) fn burst_bytes(&self) -> u64 {
        if self.burst > 1 { u64::from(self.burst) * self.block as u64 } else { 0 }
    }
}

/// What a worker shares with the thread that watches it.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) stream: TcpStream,
    /// Written or read by the application.
    moved: AtomicU64,
    /// Microseconds since the start of the transfer, plus one; 0 for "not yet".
    first: AtomicU64,
    last: AtomicU64,
    failure: OnceLock<io::ErrorKind>,
}

/// Why all workers stop.
#[derive(Debug, Default)]
pub(crate) struct Brakes {
    /// Senders write no more.
    pub(crate) senders: AtomicBool,
    /// Receivers read no more.
    pub(crate) receivers: AtomicBool,
}

/// The noise that a block is made of, at the most: it fits into the second-level cache of whatever runs this, beside what
/// the kernel copies it to, and is longer than the memory of a compressor on the way (deflate has 32 KiB).
pub(crate) const NOISE: usize = 128 << 10;

/// A block of 16 MiB, the longest that a server takes, has so many parts.
const MOST_PARTS: usize = (16 << 20) / NOISE;

/// A worker calls nothing deep, and there may be thousands.
const STACK: usize = 256 << 10;

/// How long a worker sleeps in the kernel before it looks whether it shall stop.
const WAKE_EVERY: Duration = Duration::from_millis(200);

impl Shared {
    pub(crate) fn new(stream: TcpStream) -> Self {
        let zero = || AtomicU64::new(0);
        Self { stream, moved: zero(), first: zero(), last: zero(), failure: OnceLock::new() }
    }

    /// Payload that the application has written or read.
    pub(crate) fn moved(&self) -> u64 {
        self.moved.load(Ordering::Relaxed)
    }

    /// When the first payload moved, since the start.
    pub(crate) fn first(&self) -> Option<Duration> {
        self.first.load(Ordering::Relaxed).checked_sub(1).map(Duration::from_micros)
    }

    /// When the last payload was read, since the start, of a receiver in a test that bytes end.
    pub(crate) fn last(&self) -> Option<Duration> {
        self.last.load(Ordering::Relaxed).checked_sub(1).map(Duration::from_micros)
    }

    pub(crate) fn failure(&self) -> Option<io::ErrorKind> {
        self.failure.get().copied()
    }

    pub(crate) fn begin(&self, start: Instant) {
        // At small messages looking at the clock each time would cost a tenth of the rate.
        if self.first.load(Ordering::Relaxed) == 0 {
            self.first.store(micros_since(start), Ordering::Relaxed);
        }
    }

    /// Called by the connection's own worker alone.
    pub(crate) fn add(&self, count: usize) {
        self.moved.store(self.moved.load(Ordering::Relaxed) + count as u64, Ordering::Relaxed);
    }

    fn note_last(&self, start: Instant) {
        self.last.store(micros_since(start), Ordering::Relaxed);
    }

    /// Read by the application so far, or acknowledged by the peer: what the kernel says, else what the worker counted.
    pub(crate) fn progress(&self, role: Role, baseline: &Baseline) -> u64 {
        let kernel = || {
            let info = Info::read(&self.stream).ok()?;
            match role {
                Role::Send => Some(info.bytes_acked?.saturating_sub(baseline.acked)),
                Role::Receive => {
                    let unread = unread(&self.stream)?.get();
                    Some(info.bytes_received?.saturating_sub(baseline.received + unread))
                }
            }
        };
        kernel().unwrap_or_else(|| self.moved())
    }
}

/// The kernel's counters before the first payload: the cookie, and on some kernels the SYN, are in them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Baseline {
    pub(crate) acked: u64,
    pub(crate) received: u64,
    pub(crate) retransmits: u64,
    /// Whether this end opened the connection.
    pub(crate) opened: bool,
}

impl Baseline {
    /// Computed, not read: the cookie may still be on its way to be acknowledged, and the peer's first payload may already
    /// be here. Before the payload only the opener sends, and that is the cookie; Linux also counts its SYN.
    pub(crate) fn from_info(info: &Info, opened: bool, preamble: u64) -> Self {
        Self {
            acked: if opened { preamble + 1 } else { 0 },
            received: if opened { 0 } else { preamble },
            retransmits: info.retransmits.unwrap_or(0),
            opened,
        }
    }
}

/// Starts the thread that fills or empties a connection until a brake is set or the connection ends.
pub(crate) fn start_worker(
    shared: &Arc<Shared>,
    role: Role,
    (manner, crowd): (&Manner, bool),
    run: &Arc<Run>,
) -> io::Result<JoinHandle<()>> {
    shared.stream.set_read_timeout(Some(WAKE_EVERY))?;
    shared.stream.set_write_timeout(Some(WAKE_EVERY))?;
    // Windows does not tell how much of a write was done that timed out: there a sender waits for room before it writes.
    shared.stream.set_nonblocking(cfg!(windows) && role == Role::Send)?;
    let (shared, manner, run) = (Arc::clone(shared), manner.clone(), Arc::clone(run));
    let builder = thread::Builder::new().name(format!("measure-{role:?}").to_lowercase()).stack_size(STACK);
    builder.spawn(move || {
        // A thousand workers leave the thread that watches the clock its turn every few seconds only, unless they give way.
        if crowd {
            host::give_way();
        }
        let end = match role {
            Role::Send => send(&shared, &manner, &run),
            Role::Receive => receive(&shared, &manner, &run),
        };
        if let Err(error) = end {
            shared.failure.get_or_init(|| error.kind());
        }
    })
}

/// What the workers of one test share.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) start: Instant,
    pub(crate) brakes: Brakes,
    /// What the senders may still send, where bytes end the test.
    pub(crate) left: Option<AtomicU64>,
    /// Noise, of which every sender makes its blocks by repeating it.
    pub(crate) payload: Vec<u8>,
    /// The same block in a file, where it is to be sent without copying.
    pub(crate) file: Option<File>,
    /// Who says how payload moves, where that is tried.
    pub(crate) pilot: Option<Arc<max::Pilot>>,
}

fn send(shared: &Shared, manner: &Manner, run: &Run) -> io::Result<()> {
    if let Some(pilot) = run.pilot.as_ref().filter(|_| manner.pace_bps.is_none()) {
        return max::send(shared, manner, run, pilot);
    }
    let stream = &shared.stream;
    let mut burst_end = 0;
    while !run.brakes.senders.load(Ordering::Relaxed) {
        if let Some(pace) = manner.pace_bps.filter(|_| shared.moved() >= burst_end) {
            if is_ahead_of(pace, shared.moved(), run.start) {
                thread::sleep(Duration::from_millis(1));
                continue;
            }
            burst_end = shared.moved() + manner.burst_bytes();
        }
        let claim = run.claim(manner.block);
        if claim == 0 {
            return Ok(());
        }
        shared.begin(run.start);
        let written = match &run.file {
            Some(file) => send_file::send(stream, file, claim),
            None => write_repeating(stream, &run.payload, claim),
        };
        run.give_back(claim - written.as_ref().copied().unwrap_or(0));
        let complete = written.as_ref().is_ok_and(|count| *count == claim);
        match written {
            Ok(count) => shared.add(count),
            Err(error) if is_pause(&error) => {}
            Err(error) => return Err(error),
        }
        if !complete {
            wait_for_room(stream, run)?;
        }
    }
    Ok(())
}

/// One write of `len` bytes, which repeats the payload as often as it takes: what the kernel copies from then stays in the
/// processor's cache (1 MB from 128 KiB of noise is a quarter faster than from 1 MB).
pub(crate) fn write_repeating(mut stream: &TcpStream, payload: &[u8], len: usize) -> io::Result<usize> {
    if let Some(block) = payload.get(..len) {
        return stream.write(block);
    }
    let mut slices = [IoSlice::new(&[]); MOST_PARTS];
    let mut used = 0;
    let mut left = len;
    for slice in &mut slices {
        let Some(part) = payload.get(..left.min(payload.len())).filter(|part| !part.is_empty()) else { break };
        *slice = IoSlice::new(part);
        left -= part.len();
        used += 1;
    }
    stream.write_vectored(slices.get(..used).unwrap_or_default())
}

/// Waits until the kernel would wake a writer, or a brake is set.
///
/// A write that starts anew on a full send buffer adds up to a large segment to the last one that is not sent yet, beyond
/// the buffer's limit (Linux, `tcp_sendmsg_locked`). An application that blocks starts anew only once there is room; one
/// that wakes up to look at its brake must not, or no send buffer would limit it.
pub(crate) fn wait_for_room(stream: &TcpStream, run: &Run) -> io::Result<()> {
    while !run.brakes.senders.load(Ordering::Relaxed) {
        if wait::writable(stream, WAKE_EVERY)? {
            break;
        }
    }
    Ok(())
}

fn receive(shared: &Shared, manner: &Manner, run: &Run) -> io::Result<()> {
    let mut stream = &shared.stream;
    let mut buffer = vec![0u8; if manner.copy { manner.block } else { 0 }];
    let stopped = || run.brakes.receivers.load(Ordering::Relaxed);
    // The moment of the first byte, before a large read waits for many.
    while shared.first().is_none() && !stopped() {
        match stream.peek(&mut [0u8]) {
            Ok(0) => return Ok(()),
            Ok(_) => shared.begin(run.start),
            Err(error) if is_pause(&error) => {}
            Err(error) => return Err(error),
        }
    }
    if let Some(pilot) = run.pilot.as_ref().filter(|_| manner.read_bps.is_none()) {
        return max::receive(shared, run, pilot);
    }
    while !stopped() {
        if manner.read_bps.is_some_and(|limit| is_ahead_of(limit, shared.moved(), run.start)) {
            thread::sleep(Duration::from_millis(1));
            continue;
        }
        // What a limit allows in a hundredth of a second, so that it holds over short times, too.
        let block = manner.read_bps.map_or_else(
            || manner.block.max(1 << 20),
            |limit| usize::try_from(limit / 800).unwrap_or(usize::MAX).clamp(1_500, 1 << 20),
        );
        // A read that waits for its whole block costs the fewest system calls; where bytes end the test it would
        // overlook the last ones until its timeout.
        let count = match (manner.copy, manner.budget) {
            (true, _) => stream.read(buffer.get_mut(..block.min(manner.block)).unwrap_or_default()),
            (false, None) => sockopt::discard(stream, block),
            (false, Some(_)) => sockopt::discard_available(stream, block),
        };
        match count {
            Ok(0) => return Ok(()),
            Ok(count) => {
                shared.add(count);
                if manner.budget.is_some() {
                    shared.note_last(run.start);
                }
            }
            Err(error) if is_pause(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

impl Run {
    fn claim(&self, wanted: usize) -> usize {
        let Some(left) = &self.left else { return wanted };
        let take = |left: u64| left.min(wanted as u64);
        let update = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| Some(left - take(left)));
        usize::try_from(update.map_or(0, take)).unwrap_or(wanted)
    }

    fn give_back(&self, count: usize) {
        if let Some(left) = &self.left {
            left.fetch_add(count as u64, Ordering::Relaxed);
        }
    }
}

pub(crate) fn is_ahead_of(pace_bps: u64, moved: u64, start: Instant) -> bool {
    moved as f64 * 8.0 > start.elapsed().as_secs_f64() * pace_bps as f64
}

/// What the kernel shall pace a sending connection to, in bytes per second: what was asked for, or where the sender paces
/// itself a quarter more than that, so that the kernel spreads each write out and never holds the sender back.
pub(crate) fn pacing(asked_bps: Option<u64>, own_pace_bps: Option<u64>) -> Option<u32> {
    let bps = asked_bps.or_else(|| Some(own_pace_bps?.saturating_mul(5) / 4))?;
    Some(u32::try_from(bps / 8).unwrap_or(u32::MAX - 1).max(1))
}

/// Plus one, so that zero stays free for "not yet".
fn micros_since(start: Instant) -> u64 {
    u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX - 1) + 1
}
