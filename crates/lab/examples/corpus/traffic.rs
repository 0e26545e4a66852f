//! What the two applications do. Everything is counted by the one that receives.

use std::{
    io::{self, Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use fullpipe_lab::{Lab, Side, raise_priority, unacknowledged};
use fullpipe_units::Rate;
use rustix::net::{AddressFamily, SendFlags, SocketType, sockopt};

use crate::cases::{Handicap, MadePath};

/// One conversation, as both ends know it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Traffic {
    pub(crate) sender: Side,
    congestion: &'static str,
    pattern: Pattern,
    send_buffer: Option<usize>,
    receive_buffer: Option<usize>,
    read_rate: Option<Rate>,
    /// For how long the receiver reads.
    reads_for: Option<Duration>,
}

#[derive(Clone, Copy, Debug)]
enum Pattern {
    /// As much as goes.
    Bulk,
    /// The same in records of so many bytes. A send buffer is no hard limit in Linux: a write may fill up the last
    /// segment that waits, and so a sender of large segments is never held. A record ends its segment.
    Records(usize),
    /// So many bytes at once.
    Once(usize),
    /// So many bytes every so often.
    Every(Duration, usize),
    /// Two writes of 100 bytes, then a wait for 100 bytes of an answer.
    WriteWriteRead,
    /// A small request that is answered, then a large one.
    LargeRequest,
    /// Requests of so many bytes, each when the one before was answered.
    Requests(usize),
    /// Segment by segment, each when the one before was acknowledged.
    OneByOne(usize),
}

/// What the receiving application saw.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Received {
    pub(crate) bytes: u64,
    pub(crate) span: Duration,
}

/// How long the sender goes on.
pub(crate) const SPAN: Duration = Duration::from_secs(6);
/// No path's round trip, nor one with the time to send a write: an application that writes just when an acknowledgement
/// comes looks like one that waits for it.
const PERIOD: Duration = Duration::from_millis(130);
/// Nothing here takes longer; an application that hangs is better named than waited for.
const LIMIT: Duration = Duration::from_secs(40);
/// The sockets stay for so long when all is said, so that the last counts of the kernel can be read.
const LINGER: Duration = Duration::from_millis(700);
const PORT: u16 = 5_201;

impl Traffic {
    pub(crate) fn new(handicap: Handicap, path: &MadePath, sender: Side, congestion: &'static str) -> Self {
        let bdp = path.bdp_bytes();
        let pattern = match handicap {
            // Four flights from an initial window of 10 segments (RFC 6928): 10 + 20 + 40 + 80.
            Handicap::Short => Pattern::Once(150 * 1_448),
            Handicap::SendBuffer => Pattern::Records(4 * 1_448),
            Handicap::Idle => Pattern::Every(PERIOD, 16 << 10),
            Handicap::Nagle => Pattern::WriteWriteRead,
            Handicap::BlackHole => Pattern::LargeRequest,
            Handicap::TailLoss => Pattern::Requests(3 * 1_448),
            Handicap::DelayedAck => Pattern::OneByOne(1_448),
            Handicap::LostSyn | Handicap::LostSynAck => Pattern::Once(14 * 1_448),
            // 2 + 4 + 8 + 16 + 18, where an initial window of 10 takes three flights.
            Handicap::InitialWindow => Pattern::Once(48 * 1_448),
            _ => Pattern::Bulk,
        };
        Self {
            sender,
            congestion,
            pattern,
            // Linux doubles what is asked for, for its own bookkeeping: a sender of large blocks has nearly all of it
            // for payload and one more record, a receiver offers half.
            send_buffer: (handicap == Handicap::SendBuffer).then_some(bdp / 16),
            receive_buffer: match handicap {
                Handicap::ReceiveBuffer => Some(bdp / 6),
                // Soon full when nobody reads.
                Handicap::StuckReader => Some(bdp.max(64 << 10)),
                _ => None,
            },
            read_rate: (handicap == Handicap::SlowReader).then(|| Rate::from_bps(path.payload_rate().bps() / 4)),
            reads_for: (handicap == Handicap::StuckReader).then_some(Duration::from_secs(1)),
        }
    }

    /// Runs it over `lab`; the server is host b. Tells how late a thread like theirs was woken, too.
    pub(crate) fn run_watched(self, lab: &Lab) -> io::Result<(Received, Duration)> {
        let (received, late) = watched(|| self.run(lab))?;
        Ok((received?, late))
    }

    /// Runs it over `lab`; the server is host b.
    fn run(self, lab: &Lab) -> io::Result<Received> {
        let address = SocketAddr::new(lab.host(Side::B).address(), PORT);
        let listener = lab.host(Side::B).run(|| self.listen(address)).map_err(io::Error::other)??;
        let server = lab.host(Side::B).spawn("server", move || {
            let (stream, _) = listener.accept()?;
            self.talk(stream, Side::B)
        });
        let client = lab.host(Side::A).run(|| self.talk(self.connect(address)?, Side::A)).map_err(io::Error::other)?;
        let server = server.map_err(io::Error::other)?.join().map_err(|_| io::Error::other("the server panicked"))?;
        match self.sender {
            Side::A => client.and(server),
            Side::B => server.and(client),
        }
    }

    fn listen(self, address: SocketAddr) -> io::Result<TcpListener> {
        let listener = TcpListener::bind(address)?;
        // Taken over by what it accepts, and in time for the SYN-ACK.
        self.set_up(&listener, Side::B)?;
        Ok(listener)
    }

    fn connect(self, address: SocketAddr) -> io::Result<TcpStream> {
        let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None)?;
        self.set_up(&socket, Side::A)?;
        rustix::net::connect(&socket, &address)?;
        Ok(socket.into())
    }

    fn set_up(self, socket: impl std::os::fd::AsFd, side: Side) -> io::Result<()> {
        sockopt::set_tcp_congestion(&socket, self.congestion)?;
        match (side == self.sender, self.send_buffer, self.receive_buffer) {
            (true, Some(bytes), _) => sockopt::set_socket_send_buffer_size(&socket, bytes)?,
            (false, _, Some(bytes)) => sockopt::set_socket_recv_buffer_size(&socket, bytes)?,
            _ => {}
        }
        Ok(())
    }

    fn talk(self, stream: TcpStream, side: Side) -> io::Result<Received> {
        // A busy machine must not make applications of these that pause.
        raise_priority();
        stream.set_read_timeout(Some(LIMIT))?;
        stream.set_write_timeout(Some(LIMIT))?;
        if side == self.sender {
            return match self.send(stream) {
                // A reader that is stuck is closed at last, with data unread.
                Err(error) if self.reads_for.is_some() && is_hung_up(&error) => Ok(Received::default()),
                sent => sent.map(|()| Received::default()),
            };
        }
        self.receive(stream)
    }

    fn send(self, mut stream: TcpStream) -> io::Result<()> {
        let begun = Instant::now();
        let block = vec![0x5a; 256 << 10];
        match self.pattern {
            Pattern::Bulk => {
                while begun.elapsed() < SPAN {
                    // Small enough that a slow path is left in time, large enough that no write ends a flight.
                    stream.write_all(&block[..64 << 10])?;
                }
            }
            Pattern::Records(bytes) => {
                // Else Nagle's algorithm holds what a record ends with, and waits for a delayed acknowledgement.
                stream.set_nodelay(true)?;
                while begun.elapsed() < SPAN {
                    let mut rest = &block[..bytes];
                    while !rest.is_empty() {
                        rest = &rest[rustix::net::send(&stream, rest, SendFlags::EOR)?..];
                    }
                }
            }
            Pattern::Once(bytes) => stream.write_all(&block[..bytes])?,
            Pattern::Every(period, bytes) => {
                for tick in 1.. {
                    stream.write_all(&block[..bytes])?;
                    let next = begun + period * tick;
                    if next > begun + SPAN {
                        break;
                    }
                    thread::sleep(next.saturating_duration_since(Instant::now()));
                }
            }
            Pattern::WriteWriteRead => {
                while begun.elapsed() < SPAN {
                    stream.write_all(&block[..100])?;
                    stream.write_all(&block[..100])?;
                    stream.read_exact(&mut [0; 100])?;
                }
            }
            Pattern::LargeRequest => return large_request(stream, &block[..10_000]),
            Pattern::Requests(bytes) => {
                while begun.elapsed() < SPAN {
                    stream.write_all(&block[..bytes])?;
                    stream.read_exact(&mut [0; 100])?;
                }
            }
            Pattern::OneByOne(bytes) => {
                stream.set_nodelay(true)?;
                while begun.elapsed() < SPAN {
                    // More is to come: without a push flag Linux acknowledges by its timer, not when it was read.
                    let mut rest = &block[..bytes];
                    while !rest.is_empty() {
                        rest = &rest[rustix::net::send(&stream, rest, SendFlags::MORE)?..];
                    }
                    while unacknowledged(&stream)? > 0 {
                        thread::sleep(Duration::from_micros(500));
                    }
                }
            }
        }
        stream.shutdown(Shutdown::Write)?;
        // The other end closes when it has read all.
        let _end = stream.read(&mut [0; 1])?;
        Ok(())
    }

    fn receive(self, mut stream: TcpStream) -> io::Result<Received> {
        let begun = Instant::now();
        let mut received = Received::default();
        let mut block = vec![0; 256 << 10];
        // 20 ms of data at a time.
        let most = self.read_rate.map_or(block.len(), |rate| (rate.bps() / 8 / 50) as usize).max(1_448);
        loop {
            let read = match stream.read(&mut block[..most]) {
                Ok(read) => read,
                // A sender that gives up, as the one behind a black hole does.
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => 0,
                Err(error) => return Err(error),
            };
            if read == 0 {
                break;
            }
            let before = received.bytes;
            received = Received { bytes: before + read as u64, span: begun.elapsed() };
            self.answer(&mut stream, before..received.bytes)?;
            if self.reads_for.is_some_and(|span| begun.elapsed() >= span) {
                thread::sleep(SPAN.saturating_sub(begun.elapsed()));
                return Ok(received);
            }
            if let Some(rate) = self.read_rate {
                let due = Duration::from_secs_f64(received.bytes as f64 * 8.0 / rate.bps() as f64);
                thread::sleep(due.saturating_sub(begun.elapsed()));
            }
        }
        thread::sleep(LINGER);
        Ok(received)
    }

    /// 100 bytes for each request that is complete.
    fn answer(self, stream: &mut TcpStream, arrived: std::ops::Range<u64>) -> io::Result<()> {
        let complete = match self.pattern {
            Pattern::WriteWriteRead => arrived.end / 200 > arrived.start / 200,
            Pattern::LargeRequest => arrived.start == 0,
            Pattern::Requests(bytes) => arrived.end / bytes as u64 > arrived.start / bytes as u64,
            _ => false,
        };
        if complete { stream.write_all(&[0x5a; 100]) } else { Ok(()) }
    }
}

/// Does `work` and tells how late a thread was woken meanwhile.
pub(crate) fn watched<T>(work: impl FnOnce() -> T) -> io::Result<(T, Duration)> {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let watch = scope.spawn(|| latest_wake_up(&is_over));
        let done = work();
        is_over.store(true, Ordering::Relaxed);
        let late = watch.join().map_err(|_| io::Error::other("the watch panicked"))?;
        Ok((done, late))
    })
}

/// The hundredth of the worst wake-ups begins there: a single one costs a flight at most.
fn latest_wake_up(is_over: &AtomicBool) -> Duration {
    const TICK: Duration = Duration::from_millis(2);
    raise_priority();
    let mut late = Vec::new();
    while !is_over.load(Ordering::Relaxed) {
        let begun = Instant::now();
        thread::sleep(TICK);
        late.push(begun.elapsed().saturating_sub(TICK));
    }
    late.sort_unstable();
    late.get(late.len() * 99 / 100).copied().unwrap_or_default()
}

fn is_hung_up(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe)
}

/// Waits for an answer that never comes, and gives up with a reset.
fn large_request(mut stream: TcpStream, request: &[u8]) -> io::Result<()> {
    // Else Nagle's algorithm holds the small tail back, the one part that a black hole lets pass.
    stream.set_nodelay(true)?;
    stream.write_all(&request[..100])?;
    stream.read_exact(&mut [0; 100])?;
    stream.write_all(request)?;
    thread::sleep(SPAN + Duration::from_secs(2));
    sockopt::set_socket_linger(&stream, Some(Duration::ZERO))?;
    Ok(())
}
