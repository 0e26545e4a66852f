//! The side that asks for trains, sends them and searches.

use std::{
    io,
    net::UdpSocket,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use fullpipe_units::Rate;
use serde::Serialize;

use super::{
    Header, Kind, Seen,
    responder::roomy,
    search::{self, Arrival, Found, Train},
    send,
};
use crate::{
    TOKEN_LEN, is_pause,
    sys::{fragment, stamp},
};

/// What rate one direction takes, in bits of IP packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Available {
    /// The rate that is available; absent where too few trains arrived.
    pub available_bps: Option<Rate>,
    /// Trains of this rate arrived as they were sent.
    pub low_bps: Option<Rate>,
    /// Trains of this rate arrived stretched; absent where the sender could send none that did, so that the path may take
    /// any rate above.
    pub high_bps: Option<Rate>,
    /// At which trains arrived that were sent back to back: the rate of the narrowest link, less what others send there.
    pub burst_bps: Option<Rate>,
    /// Trains that were sent.
    pub trains: u32,
    /// Datagrams in them.
    pub datagrams: u64,
    /// Of these never arrived.
    pub lost: u64,
    /// The size of an IP packet.
    pub packet_bytes: u32,
}

/// What a search found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measured {
    /// All of it, or what was found until the caller stopped it.
    pub available: Available,
    /// The caller stopped it before its time.
    pub cancelled: bool,
}

/// Ethernet's: larger packets may not pass everywhere.
const USUAL_MTU: u32 = 1_500;

/// Times that a train is asked for, and its account.
const ATTEMPTS: u32 = 3;

/// Neighbours in a train that were sent as planned, of which the train says something.
const LEAST_PAIRS: u16 = 10;

/// Why a search ended early.
enum Ended {
    Cancelled,
    Failed(io::Error),
}

/// The end that sends a train.
#[derive(Clone, Copy)]
enum Sender {
    Prober,
    Responder,
}

/// One side of a connected UDP socket, with a [`super::Responder`] at the other.
#[derive(Debug)]
pub struct Prober {
    socket: UdpSocket,
    token: [u8; TOKEN_LEN],
    rtt: Duration,
    /// IP and UDP headers.
    overhead: u32,
    packet: u32,
    /// The number of the last train.
    train: u32,
}

impl Prober {
    /// `socket` is connected to the responder, `token` the one that it was started with, and `rtt` the round-trip time of
    /// the path.
    ///
    /// # Errors
    /// Those of the socket.
    pub fn new(socket: UdpSocket, token: [u8; TOKEN_LEN], rtt: Duration) -> io::Result<Self> {
        let peer = socket.peer_addr()?;
        roomy(&socket);
        stamp::enable(&socket)?;
        let is_v4 = peer.ip().to_canonical().is_ipv4();
        let packet = fragment::path_mtu(&socket, peer.is_ipv4()).unwrap_or(USUAL_MTU).clamp(576, USUAL_MTU);
        Ok(Self { socket, token, rtt, overhead: if is_v4 { 28 } else { 48 }, packet, train: 0 })
    }

    /// The rate that is available from this end to the responder. `cancel` ends the search early with what was found until
    /// then.
    ///
    /// # Errors
    /// Those of the socket.
    pub fn towards(&mut self, cancel: &AtomicBool) -> io::Result<Measured> {
        self.measure(Sender::Prober, cancel)
    }

    /// The same from the responder to this end.
    ///
    /// # Errors
    /// Those of the socket.
    pub fn from_there(&mut self, cancel: &AtomicBool) -> io::Result<Measured> {
        self.measure(Sender::Responder, cancel)
    }

    fn measure(&mut self, sender: Sender, cancel: &AtomicBool) -> io::Result<Measured> {
        let mut available = Available { packet_bytes: self.packet, ..Available::default() };
        let (found, ended) = search::search(f64::from(self.packet) * 8.0, |train| {
            if cancel.load(Ordering::Relaxed) {
                return Err(Ended::Cancelled);
            }
            let arrival = self.send(sender, train, cancel).map_err(Ended::Failed)?;
            available.count(train, arrival);
            Ok(arrival)
        });
        available.found(found);
        match ended {
            Err(Ended::Failed(error)) => Err(error),
            Err(Ended::Cancelled) => Ok(Measured { available, cancelled: true }),
            Ok(()) => Ok(Measured { available, cancelled: false }),
        }
    }

    /// `None` where nothing is known of the train.
    fn send(&mut self, sender: Sender, train: Train, cancel: &AtomicBool) -> io::Result<Option<Arrival>> {
        self.train += 1;
        let bits = f64::from(self.packet) * 8.0;
        let gap = train.bps.map_or(Duration::ZERO, |bps| Duration::from_secs_f64((bits / bps.max(1.0)).min(1.0)));
        let header = Header {
            token: self.token,
            kind: Kind::Probe,
            train: self.train,
            count: train.count,
            index: 0,
            size: u16::try_from(self.packet.saturating_sub(self.overhead)).unwrap_or(u16::MAX),
            ns: 0,
            gap_ns: u64::try_from(gap.as_nanos()).unwrap_or(u64::MAX),
        };
        let start = Instant::now();
        let arrival = match sender {
            Sender::Prober => self.up(header, cancel)?,
            Sender::Responder => self.down(header)?,
        };
        // What it left in queues has gone when the next one comes.
        thread::sleep(start.elapsed().clamp(Duration::from_millis(5), Duration::from_millis(200)));
        // Fewer say too little.
        Ok(arrival.filter(|seen| seen.pairs >= LEAST_PAIRS && seen.came_ns > 0).map(|seen| {
            let rate = |ns: u64| f64::from(seen.pairs) * bits / ns.max(1) as f64 * 1e9;
            Arrival {
                sent_bps: rate(seen.sent_ns),
                arrived_bps: rate(seen.came_ns),
                lost: 1.0 - f64::from(seen.count.min(train.count)) / f64::from(train.count),
            }
        }))
    }

    fn up(&self, header: Header, cancel: &AtomicBool) -> io::Result<Option<Seen>> {
        let start = Instant::now();
        send(&self.socket, header, cancel)?;
        let took = start.elapsed();
        let ask = Header { kind: Kind::ReportRequest, ..header }.datagram(0);
        for _ in 0..ATTEMPTS {
            self.say(&ask)?;
            let until = Instant::now() + self.wait(took);
            while let Some((report, _)) = self.hear(until)? {
                if report.train == header.train && report.kind == Kind::Report {
                    return Ok(Some(Seen {
                        train: report.train,
                        count: report.count,
                        pairs: report.index,
                        sent_ns: report.gap_ns,
                        came_ns: report.ns,
                        last: None,
                    }));
                }
            }
        }
        Ok(None)
    }

    fn down(&self, header: Header) -> io::Result<Option<Seen>> {
        let planned = Duration::from_nanos(header.gap_ns).saturating_mul(header.count.into());
        let ask = Header { kind: Kind::TrainRequest, ..header }.datagram(0);
        for _ in 0..ATTEMPTS {
            self.say(&ask)?;
            let until = Instant::now() + planned + self.wait(planned);
            let mut seen = Seen::default();
            while let Some((heard, came_ns)) = self.hear(until)? {
                match heard.kind {
                    Kind::Probe if heard.train == header.train => seen.add(heard, came_ns),
                    Kind::TrainSent if heard.train == header.train => return Ok(Some(seen)),
                    _ => {}
                }
            }
        }
        Ok(None)
    }

    /// Twice the round trip and as long as the train again, since it may queue, and time for programs to wake up.
    fn wait(&self, train: Duration) -> Duration {
        self.rtt * 2 + train + Duration::from_millis(200)
    }

    fn say(&self, datagram: &[u8]) -> io::Result<()> {
        match self.socket.send(datagram) {
            Err(error) if !is_pause(&error) && error.kind() != io::ErrorKind::ConnectionRefused => Err(error),
            _ => Ok(()),
        }
    }

    /// The next datagram of ours, and when it came.
    fn hear(&self, until: Instant) -> io::Result<Option<(Header, u64)>> {
        let mut buffer = [0u8; 9_000];
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            self.socket.set_read_timeout(Some(left))?;
            match stamp::recv(&self.socket, &mut buffer) {
                Ok((len, came_ns)) => {
                    let header = buffer.get(..len).and_then(Header::parse);
                    if let Some(header) = header.filter(|header| header.token == self.token) {
                        return Ok(Some((header, came_ns)));
                    }
                }
                Err(error) if is_pause(&error) || error.kind() == io::ErrorKind::ConnectionRefused => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl Available {
    fn count(&mut self, train: Train, arrival: Option<Arrival>) {
        self.trains += 1;
        self.datagrams += u64::from(train.count);
        self.lost += (f64::from(train.count) * arrival.map_or(1.0, |arrival| arrival.lost)).round() as u64;
    }

    fn found(&mut self, found: Found) {
        let rate = |bps: Option<f64>| bps.map(|bps| Rate::from_bps(bps.round() as u64));
        self.available_bps = rate(found.best_bps);
        self.low_bps = rate(found.low_bps);
        self.high_bps = rate(found.high_bps);
        self.burst_bps = rate(found.burst_bps);
    }
}
