//! What the presets do to small messages, to requests, to pieces as they come and to bulk in small writes: segments, bytes
//! on the wire, latency.
//!
//! The engine at end a of a path against the kernel at end b; each trial has a path and a connection of its own. Segments
//! and bytes are what the path itself counted, from the end of the handshake to the last acknowledgement.

use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    num::NonZeroU64,
    sync::{atomic::AtomicBool, mpsc},
    thread,
    time::{Duration, Instant},
};

use fullpipe_lab::{Lab, LabOptions, raise_priority};
use fullpipe_path::{Direction, Scenario, Side};
use fullpipe_tcp::socket::SocketOptions;

use super::undisturbed;
use crate::{
    Connection, Settings, StackError,
    session::{self, LOOK, MadePath, Until, patiently, write_all},
};

const PORT: u16 = 5001;
const BLOCK: usize = 64 << 10;
/// Longer than any of these trials.
const LIMIT: Duration = Duration::from_secs(300);
/// Longer than any delayed acknowledgement (RFC 9293, section 3.8.6.3: less than 0.5 s; the profiles and Linux: 0.2 s).
const QUIET: Duration = Duration::from_millis(300);

/// What an application does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// A message now and then, one way.
    Messages,
    /// A request, written as a head and a body, and then its answer; the next one when it is there.
    Requests,
    /// Pieces of a message's size in steady succession, as a sensor or a log makes them; nobody waits for one.
    Pieces,
    /// Much, in writes of a message's size, as fast as it goes.
    Bulk,
}

impl Work {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Messages, Self::Requests, Self::Pieces, Self::Bulk];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Messages => "messages",
            Self::Requests => "requests",
            Self::Pieces => "pieces",
            Self::Bulk => "bulk",
        }
    }
}

/// How much of each.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Bytes of a message, of a request, of an answer, of a piece and of a write in bulk.
    pub message_bytes: usize,
    /// From one message to the next.
    pub gap: Duration,
    /// How many messages, and how many requests.
    pub messages: u32,
    /// How many pieces.
    pub pieces: u32,
    /// From one piece to the next.
    pub piece_gap: Duration,
    /// Bytes in bulk.
    pub bulk_bytes: u64,
}

impl Load {
    /// Payload of work of which only the end is looked at.
    fn whole(&self, work: Work) -> Option<u64> {
        match work {
            Work::Messages | Work::Requests => None,
            Work::Pieces => Some(u64::from(self.pieces) * self.message_bytes as u64),
            Work::Bulk => Some(self.bulk_bytes),
        }
    }
}

/// What is tried.
#[derive(Clone, Debug)]
pub struct PresetTrial {
    /// What the application does.
    pub work: Work,
    /// How much of it.
    pub load: Load,
    /// The stack.
    pub settings: Settings,
    /// The connection.
    pub options: SocketOptions,
}

/// What came out.
#[derive(Clone, Debug, PartialEq)]
pub struct PresetOutcome {
    /// From the first write to the arrival of the last byte, or of the last answer.
    pub seconds: f64,
    /// Payload that the engine wrote.
    pub bytes: u64,
    /// From the write of each message to its arrival, or of each request to its answer, in ascending order; nothing for
    /// pieces and bulk.
    pub latencies: Vec<Duration>,
    /// Data segments of the engine.
    pub data_segments: u64,
    /// Acknowledgements of the engine without data.
    pub acks: u64,
    /// Acknowledgements of the kernel without data; an answer that it retransmitted counts as one.
    pub peer_acks: u64,
    /// Bytes of IP packets, both ways.
    pub wire_bytes: u64,
    /// Data segments retransmitted.
    pub retransmits: u32,
    /// Whether the path kept its promises.
    pub valid: bool,
}

impl PresetOutcome {
    /// The latency that this part of the messages, of 0 to 1, did not exceed.
    pub fn latency(&self, part: f64) -> Option<Duration> {
        let rank = (self.latencies.len() as f64 * part).ceil() as usize;
        self.latencies.get(rank.max(1) - 1).copied()
    }
}

/// Runs a trial over the path of `scenario`; again where this machine did not keep up with it. `stop` ends it.
///
/// # Errors
/// No lab can be made, the connection fails, or it was stopped.
pub fn preset_trial(scenario: &Scenario, trial: &PresetTrial, stop: &AtomicBool) -> Result<PresetOutcome, StackError> {
    undisturbed(|| once(scenario, trial, stop), |outcome| outcome.valid)
}

fn once(scenario: &Scenario, trial: &PresetTrial, stop: &AtomicBool) -> Result<PresetOutcome, StackError> {
    // Wire-size packets at both ends: a super-packet would count as one.
    let options = LabOptions { offload: false, ..LabOptions::default() };
    let path = MadePath::with(scenario, trial.settings.clone(), options)?;
    let until = Until { time: Instant::now() + LIMIT, stop };
    let (peer, kernel) = kernel_end(&path, trial)?;
    let connection = session::open(path.host(), peer, trial.options, &until)?;
    // The acknowledgement that ends the handshake is still under way.
    thread::sleep(scenario.path.rtt().into());
    path.lab().reset_error_stats();
    let (before, counted) = (Wire::new(path.lab()), connection.counts().unwrap_or_default());
    let written = write(&connection, trial, &until)?;
    while !connection.flush_acknowledged(Some(LOOK))? {
        until.left()?;
    }
    thread::sleep(QUIET);
    let (after, counts) = (Wire::new(path.lab()), connection.counts().unwrap_or_default());
    let valid = path.lab().valid().is_ok();
    connection.shutdown_write()?;
    let arrived = kernel.end()?;
    let retransmits = counts.retransmits - counted.retransmits;
    let data_segments = u64::from(counts.delivered - counted.delivered + retransmits);
    let answers = if trial.work == Work::Requests { u64::from(trial.load.messages) } else { 0 };
    let last = arrived.iter().chain(&written.answered).max();
    let seconds = last.zip(written.at.first()).map_or(0.0, |(last, first)| last.duration_since(*first).as_secs_f64());
    Ok(PresetOutcome {
        seconds,
        bytes: counts.bytes_sent - counted.bytes_sent,
        latencies: latencies(trial.work, &written, &arrived),
        data_segments,
        acks: (after.packets[0] - before.packets[0]).saturating_sub(data_segments),
        peer_acks: (after.packets[1] - before.packets[1]).saturating_sub(answers),
        wire_bytes: after.bytes - before.bytes,
        retransmits,
        valid,
    })
}

fn latencies(work: Work, written: &Written, arrived: &[Instant]) -> Vec<Duration> {
    let ends = match work {
        Work::Messages => arrived,
        Work::Requests => &written.answered,
        Work::Pieces | Work::Bulk => &[],
    };
    let mut all: Vec<Duration> = ends.iter().zip(&written.at).map(|(end, at)| end.duration_since(*at)).collect();
    all.sort_unstable();
    all
}

/// What the path has counted.
struct Wire {
    /// Packets that came into it: from the engine, from the kernel.
    packets: [u64; 2],
    /// Bytes that came out of it, both ways.
    bytes: u64,
}

impl Wire {
    fn new(lab: &Lab) -> Self {
        let stats = Direction::ALL.map(|direction| lab.path_stats(direction));
        Self {
            packets: [&stats[0], &stats[1]].map(|hops| hops.first().map_or(0, |hop| hop.arrived)),
            bytes: stats.iter().filter_map(|hops| hops.last()).map(|hop| hop.delivered_bytes).sum(),
        }
    }
}

/// When the engine's application did what.
#[derive(Default)]
struct Written {
    /// Began to write a message.
    at: Vec<Instant>,
    /// Had its answer.
    answered: Vec<Instant>,
}

fn write(connection: &Connection, trial: &PresetTrial, until: &Until<'_>) -> Result<Written, StackError> {
    let Load { message_bytes, gap, messages, pieces, piece_gap, bulk_bytes } = trial.load;
    let message = vec![0x5a; message_bytes];
    let mut written = Written::default();
    let start = Instant::now();
    // Without it, sleeps end up to 50 us late.
    rustix::thread::set_current_timer_slack(NonZeroU64::new(1)).ok();
    match trial.work {
        Work::Messages | Work::Pieces => {
            let (count, gap) = if trial.work == Work::Messages { (messages, gap) } else { (pieces, piece_gap) };
            for nth in 0..count {
                thread::sleep((start + gap * nth).saturating_duration_since(Instant::now()));
                written.at.push(Instant::now());
                write_all(connection, &message, until)?;
            }
        }
        Work::Requests => {
            let (head, body) = message.split_at(message_bytes / 2);
            for _ in 0..messages {
                written.at.push(Instant::now());
                write_all(connection, head, until)?;
                write_all(connection, body, until)?;
                read_whole(connection, message_bytes, until)?;
                written.answered.push(Instant::now());
            }
        }
        Work::Bulk => {
            written.at.push(start);
            let mut left = bulk_bytes;
            while left > 0 {
                let len = left.min(message_bytes as u64);
                write_all(connection, &message[..len as usize], until)?;
                left -= len;
            }
        }
    }
    if trial.load.whole(trial.work).is_some() {
        // Whoever has no more to say closes: what is held leaves.
        connection.shutdown_write()?;
    }
    Ok(written)
}

fn read_whole(connection: &Connection, bytes: usize, until: &Until<'_>) -> Result<(), StackError> {
    let mut answer = vec![0; bytes];
    let mut got = 0;
    while got < bytes {
        match patiently(until, || connection.read_within(&mut answer[got..], Some(LOOK)))? {
            0 => return Err(StackError::system("read an answer", io::ErrorKind::UnexpectedEof)),
            len => got += len,
        }
    }
    Ok(())
}

/// The kernel's application.
struct KernelEnd {
    /// It closes when this is dropped, so that its FIN is not counted.
    release: mpsc::Sender<()>,
    thread: thread::JoinHandle<io::Result<Vec<Instant>>>,
}

impl KernelEnd {
    /// When each message, or all of the bulk, was there.
    fn end(self) -> Result<Vec<Instant>, StackError> {
        drop(self.release);
        let arrived = self.thread.join().unwrap_or_else(|payload| std::panic::resume_unwind(payload));
        arrived.map_err(|source| StackError::system("exchange messages at the kernel's end", source))
    }
}

fn kernel_end(path: &MadePath, trial: &PresetTrial) -> Result<(SocketAddr, KernelEnd), StackError> {
    let address = SocketAddr::new(path.kernel(), PORT);
    let host = path.lab().host(Side::B);
    let listener = host.run(|| TcpListener::bind(address))?;
    let listener = listener.map_err(|source| StackError::system("listen at the kernel's end", source))?;
    let (release, released) = mpsc::channel();
    let (work, load) = (trial.work, trial.load);
    let thread = host.spawn("kernel-end", move || {
        let arrived = take(&listener, work, load);
        // An error is the other end's way to say the same.
        released.recv().ok();
        arrived.map(|(_open, arrived)| arrived)
    })?;
    Ok((address, KernelEnd { release, thread }))
}

fn take(listener: &TcpListener, work: Work, load: Load) -> io::Result<(TcpStream, Vec<Instant>)> {
    raise_priority();
    let (mut stream, _) = listener.accept()?;
    rustix::net::sockopt::set_tcp_congestion(&stream, "cubic")?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(LIMIT))?;
    let mut arrived = Vec::new();
    if let Some(mut left) = load.whole(work) {
        let mut block = vec![0; BLOCK];
        while left > 0 {
            match stream.read(&mut block)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                len => left = left.saturating_sub(len as u64),
            }
        }
        arrived.push(Instant::now());
        return Ok((stream, arrived));
    }
    let mut message = vec![0; load.message_bytes];
    for _ in 0..load.messages {
        stream.read_exact(&mut message)?;
        arrived.push(Instant::now());
        if work == Work::Requests {
            stream.write_all(&message)?;
        }
    }
    Ok((stream, arrived))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_latency_is_one_that_was_seen() {
        let of = |count: u64| PresetOutcome {
            seconds: 0.0,
            bytes: 0,
            latencies: (1..=count).map(Duration::from_millis).collect(),
            data_segments: 0,
            acks: 0,
            peer_acks: 0,
            wire_bytes: 0,
            retransmits: 0,
            valid: true,
        };
        let seen = |count, part| of(count).latency(part).map(|span| span.as_millis());
        assert_eq!([seen(100, 0.5), seen(100, 0.99), seen(100, 1.0)], [Some(50), Some(99), Some(100)]);
        assert_eq!([seen(1, 0.5), seen(1, 0.99)], [Some(1), Some(1)]);
        assert_eq!([seen(3, 0.5), seen(3, 0.99), seen(3, 0.0)], [Some(2), Some(3), Some(1)]);
        assert_eq!(seen(0, 0.5), None);
    }
}
