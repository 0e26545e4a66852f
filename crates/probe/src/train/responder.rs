//! The side that answers: counts the trains that come, and sends those that are asked for, to its prober only.

use std::{
    io,
    net::UdpSocket,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use fullpipe_units::Rate;
use socket2::SockRef;

use super::{Header, Kind, MOST_IN_TRAIN, Seen, send};
use crate::{TOKEN_LEN, sys::stamp};

/// No search takes longer, and nobody keeps the socket beyond it.
const LONGEST: Duration = Duration::from_secs(120);

/// Two directions of thirty trains each, with those that got lost.
const MOST_DATAGRAMS: u32 = 100_000;

/// What an IP packet of Ethernet's size carries, and that of a jumbo frame.
const SIZES: std::ops::RangeInclusive<u16> = 64..=8_972;

/// The room that a whole train needs in a socket, with the kernel's overhead.
const SOCKET_ROOM: usize = 4 << 20;

/// A thread that answers. Dropping it ends it.
#[derive(Debug)]
pub struct Responder {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Responder {
    /// Begins to answer. `socket` is connected to the prober; `limit` is the highest rate at which trains are sent.
    ///
    /// # Errors
    /// The socket's, or the system has no thread.
    pub fn start(socket: UdpSocket, token: [u8; TOKEN_LEN], limit: Option<Rate>) -> io::Result<Self> {
        roomy(&socket);
        stamp::enable(&socket)?;
        socket.set_read_timeout(Some(Duration::from_millis(50)))?;
        socket.set_write_timeout(Some(Duration::from_millis(50)))?;
        let stop = Arc::new(AtomicBool::new(false));
        let answering = Answering { socket, token, stop: Arc::clone(&stop), limit };
        let thread = thread::Builder::new().name("probe-train".to_owned()).spawn(move || {
            // What fails here shows at the client as trains that nobody answers.
            drop(answering.run());
        })?;
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It has nothing to return.
            drop(thread.join());
        }
    }
}

/// As much as the system allows: a train comes faster than a program wakes up.
pub(super) fn roomy(socket: &UdpSocket) {
    let socket = SockRef::from(socket);
    drop((socket.set_recv_buffer_size(SOCKET_ROOM), socket.set_send_buffer_size(SOCKET_ROOM)));
}

struct Answering {
    socket: UdpSocket,
    token: [u8; TOKEN_LEN],
    stop: Arc<AtomicBool>,
    limit: Option<Rate>,
}

impl Answering {
    fn run(&self) -> io::Result<()> {
        let until = Instant::now() + LONGEST;
        let mut buffer = vec![0u8; 65_536];
        let mut seen = Seen::default();
        let mut datagrams = 0;
        while !self.stop.load(Ordering::Relaxed) && Instant::now() < until && datagrams < MOST_DATAGRAMS {
            let Ok((len, came_ns)) = stamp::recv(&self.socket, &mut buffer) else { continue };
            let header = buffer.get(..len).and_then(Header::parse).filter(|header| header.token == self.token);
            let Some(header) = header else { continue };
            datagrams += 1;
            match header.kind {
                Kind::Probe => seen.add(header, came_ns),
                Kind::ReportRequest => {
                    let known = if seen.train == header.train { seen } else { Seen::default() };
                    let report = Header {
                        kind: Kind::Report,
                        count: known.count,
                        index: known.pairs,
                        ns: known.came_ns,
                        gap_ns: known.sent_ns,
                        ..header
                    };
                    // Lost or refused: the client asks again.
                    drop(self.socket.send(&report.datagram(0)));
                }
                Kind::TrainRequest => datagrams += self.depart(header)?,
                Kind::Report | Kind::TrainSent => {}
            }
        }
        Ok(())
    }

    fn depart(&self, header: Header) -> io::Result<u32> {
        if !SIZES.contains(&header.size) || !(2..=MOST_IN_TRAIN).contains(&header.count) {
            return Ok(0);
        }
        let least_ns = self.limit.map_or(0, |limit| u64::from(header.size) * 8_000_000_000 / limit.bps().max(1));
        let train = Header { kind: Kind::Probe, gap_ns: header.gap_ns.max(least_ns), ..header };
        send(&self.socket, train, &self.stop)?;
        let sent = Header { kind: Kind::TrainSent, ..header }.datagram(0);
        // Twice, as one may get lost.
        drop((self.socket.send(&sent), self.socket.send(&sent)));
        Ok(header.count.into())
    }
}
