//! A client that fixes its buffers at 64 KB, and the same client with the library's lines, over the lab's path.

use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};

use fullpipe_lab::{Lab, LabOptions, Side};
use fullpipe_path::{HopSpec, IpVersions, PathHop, PathSpec, QueueSize, QueueSpec};
use fullpipe_socket::{Bytes, Memory, Micros, Path, Rate, Tuned, Wish};
use socket2::{Domain, SockRef, Socket, Type};

/// The machine's own default may be another, and another one's figures are others.
const DOWN: &[u8] = b"cubic";
/// One that paces: without pacing Linux goes on filling begun segments beyond a send buffer's limit (3 MB were seen in one of
/// 128 KiB), and a fixed buffer is hardly a limit.
const UP: &[u8] = b"bbr";

/// What a run shows.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// What was read by the application, after the part that doesn't count.
    pub(crate) rate: Rate,
    /// The largest of each, at the client.
    pub(crate) memory: Memory,
    /// What the library said, where it was asked.
    pub(crate) said: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Download,
    Upload,
}

/// For how long a transfer runs, and how much of that does not count.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) whole: Duration,
    pub(crate) omit: Duration,
}

/// Two kernels and a path of `rate` with a round-trip time, and a queue of one bandwidth-delay product.
pub(crate) fn lab(rate: Rate, rtt: Micros) -> Lab {
    let queue = QueueSpec { size: QueueSize::Bdp { multiple: 1.0, at_least: 64 }, ..QueueSpec::default() };
    let hop = HopSpec { rate: Some(rate), delay: Micros::new(rtt.get() / 2), queue, ..HopSpec::default() };
    let path =
        PathSpec { mtu: 1_500, ip: IpVersions::V4, hops: vec![PathHop { name: None, ab: hop.clone(), ba: hop }] };
    Lab::join(&path, 7, LabOptions::default()).expect("the lab starts")
}

/// Moves data for a time. `wish` is what the library is asked for; without, the client is the naive one.
pub(crate) fn run(lab: &Lab, direction: Direction, wish: Option<Wish>, span: Span) -> io::Result<Outcome> {
    let address = SocketAddr::new(lab.host(Side::B).address(), 5201);
    let listener = lab.host(Side::B).run(|| TcpListener::bind(address)).map_err(io::Error::other)??;
    let arrived = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&arrived);
    let server = lab.host(Side::B).spawn("server", move || serve(&listener, &counted)).map_err(io::Error::other)?;
    let outcome =
        lab.host(Side::A).run(|| client(address, direction, wish, span, &arrived)).map_err(io::Error::other)?;
    server.join().expect("the server ends")?;
    outcome
}

fn client(
    address: SocketAddr,
    direction: Direction,
    wish: Option<Wish>,
    span: Span,
    arrived: &AtomicU64,
) -> io::Result<Outcome> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    let control = if direction == Direction::Download { DOWN } else { UP };
    // Not every kernel has it.
    socket.set_tcp_congestion(control).or_else(|_| socket.set_tcp_congestion(DOWN))?;
    socket.set_recv_buffer_size(65_536)?;
    socket.set_send_buffer_size(65_536)?;
    // The first two of the three lines.
    let path = wish.map(|_| Path::to(address, Duration::from_secs(3))).transpose()?;
    let mut tuned = path.zip(wish).map(|(path, wish)| Tuned::before_handshake(&socket, path, wish)).transpose()?;

    socket.connect(&address.into())?;
    socket.set_read_timeout(Some(Duration::from_millis(100)))?;
    let mut stream = TcpStream::from(socket);
    stream.write_all(if direction == Direction::Download { b"d" } else { b"u" })?;
    let start = Instant::now();
    let mut block = vec![0u8; 16 << 10];
    let (mut mark, mut looked) = (None, start);
    let (over, watched) = (Arc::new(AtomicBool::new(false)), stream.try_clone()?);
    let watch = {
        let over = Arc::clone(&over);
        thread::spawn(move || watch(&watched, &over))
    };
    while start.elapsed() < span.whole {
        let moved = match direction {
            Direction::Download => stream.read(&mut block).inspect(|&count| {
                arrived.fetch_add(count as u64, Relaxed);
            }),
            Direction::Upload => stream.write(&block),
        };
        match moved {
            Err(error) if !matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                return Err(error);
            }
            _ => {}
        }
        if looked.elapsed() >= Duration::from_millis(50) {
            looked = Instant::now();
            // The third line.
            tuned.as_mut().map(|tuned| tuned.look_again(&stream)).transpose()?;
        }
        if mark.is_none() && start.elapsed() >= span.omit {
            mark = Some((Instant::now(), arrived.load(Relaxed)));
        }
    }
    let (since, before) = mark.unwrap_or((start, 0));
    let (bytes, time) = (Bytes::new(arrived.load(Relaxed) - before), Micros::from(since.elapsed()));
    over.store(true, Relaxed);
    let memory = watch.join().unwrap_or_default();
    // What is still on its way is of no use to anybody.
    SockRef::from(&stream).set_linger(Some(Duration::ZERO))?;
    Ok(Outcome {
        rate: Rate::from_bytes(bytes, time).unwrap_or(Rate::ZERO),
        memory,
        said: tuned.map(|tuned| tuned.to_string()),
    })
}

/// The largest of each that a thread of its own sees: a writer that looked at itself would do so only between its writes,
/// which is when its buffer has just got room.
fn watch(stream: &TcpStream, over: &AtomicBool) -> Memory {
    let mut memory = Memory::default();
    while !over.load(Relaxed) {
        memory = largest(memory, Memory::read(stream).unwrap_or_default());
        thread::sleep(Duration::from_millis(2));
    }
    memory
}

fn largest(one: Memory, other: Memory) -> Memory {
    Memory {
        receive_buffer: one.receive_buffer.max(other.receive_buffer),
        receive_used: one.receive_used.max(other.receive_used),
        send_buffer: one.send_buffer.max(other.send_buffer),
        send_used: one.send_used.max(other.send_used),
    }
}

/// Answers connections until one has moved data. One that closes at once only looked.
fn serve(listener: &TcpListener, arrived: &AtomicU64) -> io::Result<()> {
    SockRef::from(listener).set_tcp_congestion(DOWN)?;
    loop {
        let (mut stream, _) = listener.accept()?;
        let mut asked = [0u8];
        if stream.read(&mut asked)? == 0 {
            continue;
        }
        let mut block = vec![0u8; 128 << 10];
        // A client that has enough resets the connection.
        if asked == *b"d" {
            while stream.write(&block).is_ok() {}
        } else {
            while let Ok(count) = stream.read(&mut block)
                && count > 0
            {
                arrived.fetch_add(count as u64, Relaxed);
            }
        }
        return Ok(());
    }
}
