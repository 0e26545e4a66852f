//! Transfers between two applications of our own making, each as others write theirs.

use std::{
    fs::File,
    io::{self, Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    os::fd::{AsFd, OwnedFd},
    thread,
    time::{Duration, Instant},
};

use fullpipe_lab::{Lab, Side, raise_priority};
use rustix::{
    event::{PollFd, PollFlags, epoll, poll},
    net::{AddressFamily, SendFlags, SocketType, sockopt},
};

use super::sys::{self, RingWriter};

/// How bytes get into the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Writer {
    /// write(2), which sleeps until all of it is in the buffer.
    Blocking,
    /// write(2) until it would block, then poll(2).
    Poll,
    /// The same with an epoll instance that tells edges.
    Epoll,
    /// sendfile(2), which sleeps.
    Sendfile,
    /// send(2) with `MSG_ZEROCOPY`, which sleeps.
    ZeroCopy,
    /// A send through io_uring at a time.
    Ring,
}

/// When bytes get out of the socket.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Reader {
    AsTheyCome,
    /// So many bytes a second, every 20 ms.
    Constant(f64),
    /// So many bytes, then a pause.
    Bursts(usize, Duration),
    /// Reads for so long, then not for so long, then as they come.
    Stops(Duration, Duration),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Pattern {
    /// Writes of so many bytes, for so long.
    Bulk { write: usize, span: Duration },
    /// So many bytes and no more.
    Once(usize),
    /// Every so often so many bytes.
    Every(Duration, usize),
    /// The receiver asks with so many bytes, and is answered with so many in one write or more, when the sender thought
    /// for so long; it asks again after a pause.
    Ask { request: usize, answer: usize, writes: usize, think: Duration, pause: Duration, span: Duration },
    /// One request of a hundred bytes is answered, then all at once.
    Late(usize),
}

#[derive(Clone, Debug)]
pub(crate) struct Flow {
    pub(crate) pattern: Pattern,
    pub(crate) writer: Writer,
    pub(crate) reader: Reader,
    pub(crate) nodelay: bool,
    pub(crate) send_buffer: Option<usize>,
    pub(crate) receive_buffer: Option<usize>,
    pub(crate) window_clamp: Option<u32>,
    pub(crate) most_per_segment: Option<u32>,
    /// In bits a second.
    pub(crate) pacing: Option<f64>,
}

const PORT: u16 = 5_201;
/// Nothing here takes longer.
const LIMIT: Duration = Duration::from_secs(30);
/// The sockets stay for so long, so that the kernel's last counts can be read.
const LINGER: Duration = Duration::from_millis(500);

impl Flow {
    pub(crate) fn bulk(span: Duration) -> Self {
        Self {
            pattern: Pattern::Bulk { write: 64 << 10, span },
            writer: Writer::Blocking,
            reader: Reader::AsTheyCome,
            nodelay: false,
            send_buffer: None,
            receive_buffer: None,
            window_clamp: None,
            most_per_segment: None,
            pacing: None,
        }
    }

    /// Runs it over `lab`; the server is host b.
    pub(crate) fn run(&self, lab: &Lab, sender: Side) -> io::Result<()> {
        let address = SocketAddr::new(lab.host(Side::B).address(), PORT);
        let listener = || -> io::Result<TcpListener> {
            let listener = TcpListener::bind(address)?;
            self.set_up(&listener, Side::B == sender)?;
            Ok(listener)
        };
        let listener = lab.host(Side::B).run(listener).map_err(io::Error::other)??;
        let flow = self.clone();
        let server = lab.host(Side::B).spawn("server", move || {
            let (stream, _) = listener.accept()?;
            flow.talk(&stream, Side::B == sender)
        });
        let client = || -> io::Result<()> {
            let family = if address.is_ipv6() { AddressFamily::INET6 } else { AddressFamily::INET };
            let socket = rustix::net::socket(family, SocketType::STREAM, None)?;
            self.set_up(&socket, Side::A == sender)?;
            rustix::net::connect(&socket, &address)?;
            self.talk(&socket.into(), Side::A == sender)
        };
        let client = lab.host(Side::A).run(client).map_err(io::Error::other)?;
        let server = server.map_err(io::Error::other)?.join().map_err(|_| io::Error::other("the server panicked"))?;
        client.and(server)
    }

    fn set_up(&self, socket: impl AsFd, sends: bool) -> io::Result<()> {
        if let Some(bytes) = self.most_per_segment {
            sys::set_most_per_segment(&socket, bytes)?;
        }
        match (sends, self.send_buffer, self.receive_buffer) {
            (true, Some(bytes), _) => sockopt::set_socket_send_buffer_size(&socket, bytes)?,
            (false, _, Some(bytes)) => sockopt::set_socket_recv_buffer_size(&socket, bytes)?,
            _ => {}
        }
        match (sends, self.pacing, self.window_clamp) {
            (true, Some(bps), _) => sys::set_pacing(&socket, (bps / 8.0) as u32)?,
            (false, _, Some(bytes)) => sys::set_window_clamp(&socket, bytes)?,
            _ => {}
        }
        Ok(())
    }

    fn talk(&self, stream: &TcpStream, sends: bool) -> io::Result<()> {
        // A busy machine must not make applications of these that pause.
        raise_priority();
        stream.set_read_timeout(Some(LIMIT))?;
        stream.set_write_timeout(Some(LIMIT))?;
        stream.set_nodelay(self.nodelay)?;
        if sends { self.send(stream) } else { self.receive(stream) }
    }

    fn send(&self, mut stream: &TcpStream) -> io::Result<()> {
        let begun = Instant::now();
        let mut out = Out::new(stream, self.writer)?;
        match self.pattern {
            Pattern::Bulk { write, span } => {
                let block = vec![0x5a; write];
                while begun.elapsed() < span {
                    out.write_all(&block)?;
                }
            }
            Pattern::Once(bytes) => out.write_all(&vec![0x5a; bytes])?,
            Pattern::Every(period, bytes) => {
                let block = vec![0x5a; bytes];
                for tick in 1..=(Duration::from_secs(5).as_micros() / period.as_micros()) as u32 {
                    out.write_all(&block)?;
                    thread::sleep((begun + period * tick).saturating_duration_since(Instant::now()));
                }
            }
            Pattern::Ask { request, answer, writes, think, .. } => {
                let block = vec![0x5a; answer];
                let mut asked = vec![0; request];
                while stream.read_exact(&mut asked).is_ok() {
                    thread::sleep(think);
                    for part in block.chunks(answer.div_ceil(writes)) {
                        out.write_all(part)?;
                    }
                }
            }
            Pattern::Late(bytes) => {
                stream.set_nodelay(true)?;
                stream.write_all(&[0x5a; 100])?;
                stream.read_exact(&mut [0; 100])?;
                // Where none of it arrives this ends by its time limit.
                stream.set_write_timeout(Some(Duration::from_secs(8)))?;
                let all = vec![0x5a; bytes];
                if stream.write_all(&all).is_err() {
                    sockopt::set_socket_linger(stream, Some(Duration::ZERO))?;
                    return Ok(());
                }
                stream.set_read_timeout(Some(Duration::from_secs(10)))?;
            }
        }
        stream.shutdown(Shutdown::Write)?;
        // The other end closes when it has read all.
        match stream.read(&mut [0; 1]) {
            Err(_) if matches!(self.pattern, Pattern::Late(_)) => {
                sockopt::set_socket_linger(stream, Some(Duration::ZERO))?;
                Ok(())
            }
            end => end.map(drop),
        }
    }

    fn receive(&self, mut stream: &TcpStream) -> io::Result<()> {
        let begun = Instant::now();
        let mut block = vec![0; 256 << 10];
        if let Pattern::Ask { request, answer, pause, span, .. } = self.pattern {
            let asked = vec![0x5a; request];
            let mut answered = vec![0; answer];
            while begun.elapsed() < span {
                stream.write_all(&asked)?;
                stream.read_exact(&mut answered)?;
                thread::sleep(pause);
            }
            thread::sleep(LINGER);
            return Ok(());
        }
        if let Pattern::Late(_) = self.pattern {
            stream.read_exact(&mut [0; 100])?;
            stream.write_all(&[0x5a; 100])?;
        }
        let (mut all, mut in_burst, mut has_stopped) = (0_u64, 0, false);
        loop {
            let most = match self.reader {
                Reader::Constant(bps) => ((bps / 8.0 / 50.0) as usize).clamp(1_448, block.len()),
                Reader::Bursts(bytes, _) => (bytes - in_burst).min(block.len()),
                _ => block.len(),
            };
            let read = match stream.read(&mut block[..most]) {
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => 0,
                read => read?,
            };
            if read == 0 {
                break;
            }
            all += read as u64;
            match self.reader {
                Reader::AsTheyCome => {}
                Reader::Constant(bps) => {
                    let due = Duration::from_secs_f64(all as f64 * 8.0 / bps);
                    thread::sleep(due.saturating_sub(begun.elapsed()));
                }
                Reader::Bursts(bytes, pause) => {
                    in_burst += read;
                    if in_burst == bytes {
                        in_burst = 0;
                        thread::sleep(pause);
                    }
                }
                Reader::Stops(after, pause) => {
                    if !has_stopped && begun.elapsed() > after {
                        has_stopped = true;
                        thread::sleep(pause);
                    }
                }
            }
        }
        thread::sleep(LINGER);
        Ok(())
    }
}

/// A stream with what one kind of writer needs besides.
struct Out<'a> {
    stream: &'a TcpStream,
    writer: Writer,
    ring: Option<RingWriter>,
    epoll: Option<OwnedFd>,
    file: Option<File>,
    writes: u32,
}

impl<'a> Out<'a> {
    fn new(stream: &'a TcpStream, writer: Writer) -> io::Result<Self> {
        let mut out = Self { stream, writer, ring: None, epoll: None, file: None, writes: 0 };
        match writer {
            Writer::Blocking => {}
            Writer::Poll => stream.set_nonblocking(false)?,
            Writer::Epoll => {
                let instance = epoll::create(epoll::CreateFlags::CLOEXEC)?;
                let flags = epoll::EventFlags::OUT | epoll::EventFlags::ET;
                epoll::add(&instance, stream, epoll::EventData::new_u64(0), flags)?;
                out.epoll = Some(instance);
            }
            Writer::Sendfile => {
                let file = File::from(rustix::fs::memfd_create("sent", rustix::fs::MemfdFlags::CLOEXEC)?);
                file.set_len(4 << 20)?;
                out.file = Some(file);
            }
            Writer::ZeroCopy => sys::allow_zerocopy(stream)?,
            Writer::Ring => out.ring = Some(RingWriter::new()?),
        }
        Ok(out)
    }

    fn write_all(&mut self, mut rest: &[u8]) -> io::Result<()> {
        while !rest.is_empty() {
            let written = match self.write(rest) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.wait()?;
                    continue;
                }
                written => written?,
            };
            rest = &rest[written..];
        }
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writes += 1;
        if let Some(ring) = &mut self.ring {
            return ring.send(self.stream, bytes);
        }
        if let Some(file) = &self.file {
            return Ok(rustix::fs::sendfile(self.stream, file, Some(&mut 0), bytes.len())?);
        }
        let flags = match self.writer {
            Writer::ZeroCopy => {
                if self.writes.is_multiple_of(16) {
                    sys::forget_notes(self.stream);
                }
                SendFlags::from_bits_retain(sys::MSG_ZEROCOPY)
            }
            Writer::Poll | Writer::Epoll => SendFlags::DONTWAIT,
            _ => SendFlags::empty(),
        };
        match rustix::net::send(self.stream, bytes, flags) {
            // Too many notes of writes without a copy.
            Err(rustix::io::Errno::NOBUFS) => {
                sys::forget_notes(self.stream);
                thread::sleep(Duration::from_millis(1));
                Ok(0)
            }
            written => Ok(written?),
        }
    }

    fn wait(&self) -> io::Result<()> {
        if let Some(instance) = &self.epoll {
            let mut events = Vec::with_capacity(1);
            epoll::wait(instance, rustix::buffer::spare_capacity(&mut events), None)?;
        } else {
            poll(&mut [PollFd::new(&self.stream, PollFlags::OUT)], None)?;
        }
        Ok(())
    }
}
