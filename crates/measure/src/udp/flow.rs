//! Datagrams in motion: a thread per stream that sends at a rate, or counts what arrives.

use std::{
    io,
    net::UdpSocket,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use fullpipe_probe::is_pause;
use fullpipe_units::Micros;

use super::{Arrivals, DatagramSample, Datagrams, Header, series::Watcher};
use crate::{
    flow::{Flow, Live},
    handshake::View,
    lane::{Manner, Role},
    report::{EndReport, LaneReport},
    sys::cpu::{CpuClock, ProcessTime},
};

/// How long a worker waits in the kernel before it looks whether it shall stop.
const WAKE_EVERY: Duration = Duration::from_millis(100);

/// A stream that is ready: its socket is connected to the peer.
#[derive(Debug)]
pub(crate) struct UdpLane {
    pub(crate) id: u32,
    pub(crate) role: Role,
    pub(crate) socket: UdpSocket,
}

/// Datagrams in motion. Dropping it stops them.
#[derive(Debug)]
pub(crate) struct UdpFlow {
    lanes: Vec<Moving>,
    start: Instant,
    budget: Option<u64>,
    stop: Arc<AtomicBool>,
    workers: Vec<JoinHandle<()>>,
    cpu: CpuClock,
    process: ProcessTime,
    steady_from: Option<Duration>,
    watcher: Option<Watcher>,
}

#[derive(Debug)]
struct Moving {
    id: u32,
    role: Role,
    shared: Arc<Shared>,
    mark: Counts,
}

/// What a worker shares with the thread that watches it.
#[derive(Debug)]
struct Shared {
    socket: UdpSocket,
    bytes: AtomicU64,
    packets: AtomicU64,
    arrivals: Mutex<Arrivals>,
    failure: OnceLock<io::ErrorKind>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    bytes: u64,
    packets: u64,
    arrivals: Arrivals,
}

/// How datagrams are sent.
#[derive(Clone, Copy, Debug)]
struct Style {
    len: usize,
    wide: bool,
    pace_bps: Option<u64>,
    /// Sent without looking at the clock.
    burst_bytes: u64,
    /// Bytes that each sender sends at the most.
    budget: Option<u64>,
}

impl UdpFlow {
    /// `wide`: datagrams are numbered with 64 bits.
    pub(crate) fn start(lanes: Vec<UdpLane>, manner: &Manner, wide: bool) -> io::Result<Self> {
        let senders = lanes.iter().filter(|lane| lane.role == Role::Send).count().max(1) as u64;
        let style = Style {
            len: manner.block,
            wide,
            pace_bps: manner.pace_bps,
            burst_bytes: manner.burst_bytes(),
            budget: manner.budget.map(|bytes| bytes.div_ceil(senders)),
        };
        let mut flow = Self {
            lanes: lanes.into_iter().map(Moving::new).collect(),
            start: Instant::now(),
            budget: manner.budget,
            stop: Arc::default(),
            workers: Vec::new(),
            cpu: CpuClock::now(),
            process: ProcessTime::now(),
            steady_from: None,
            watcher: None,
        };
        for lane in &flow.lanes {
            lane.shared.socket.set_read_timeout(Some(WAKE_EVERY))?;
            lane.shared.socket.set_write_timeout(Some(WAKE_EVERY))?;
            let (shared, stop, role, start) = (Arc::clone(&lane.shared), Arc::clone(&flow.stop), lane.role, flow.start);
            let worker = thread::Builder::new().name("measure-datagrams".to_owned()).spawn(move || {
                let ended = match role {
                    Role::Send => send(&shared, style, start, &stop),
                    Role::Receive => receive(&shared, style.wide, &stop),
                };
                if let Err(error) = ended {
                    shared.failure.get_or_init(|| error.kind());
                }
            })?;
            flow.workers.push(worker);
        }
        let shared: Vec<_> = flow.lanes.iter().map(|lane| (lane.role, Arc::clone(&lane.shared))).collect();
        let count = move |stream: usize, at_us| {
            shared
                .get(stream)
                .map_or_else(DatagramSample::default, |(role, shared)| shared.counts().sample(*role, at_us))
        };
        flow.watcher = Some(Watcher::start(flow.lanes.len(), flow.start, count)?);
        Ok(flow)
    }

    fn halt(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for worker in self.workers.drain(..) {
            // A worker that panicked has nothing more to say than that its stream stood still.
            drop(worker.join());
        }
    }
}

fn send(shared: &Shared, style: Style, start: Instant, stop: &AtomicBool) -> io::Result<()> {
    let mut datagram = vec![0u8; style.len.max(16)];
    getrandom::fill(&mut datagram).map_err(io::Error::other)?;
    datagram.truncate(style.len);
    let mut number = 1;
    let mut burst_end = 0;
    while !stop.load(Ordering::Relaxed) {
        let bytes = shared.bytes.load(Ordering::Relaxed);
        if style.budget.is_some_and(|budget| bytes >= budget) {
            return Ok(());
        }
        if let Some(pace) = style.pace_bps.filter(|_| bytes >= burst_end) {
            if let Some(early) = ahead_of(pace, bytes, start) {
                thread::sleep(early.min(WAKE_EVERY));
                continue;
            }
            burst_end = bytes + style.burst_bytes;
        }
        Header { sent_us: now_us(), number }.write(style.wide, &mut datagram);
        match shared.socket.send(&datagram) {
            Ok(count) => {
                number += 1;
                shared.bytes.fetch_add(count as u64, Ordering::Relaxed);
                shared.packets.fetch_add(1, Ordering::Relaxed);
            }
            Err(error) if is_pause(&error) => {}
            // A full queue, or what ICMP says of an earlier datagram: the peer may only be late.
            Err(error) if is_passing(&error) => thread::sleep(Duration::from_millis(1)),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn receive(shared: &Shared, wide: bool, stop: &AtomicBool) -> io::Result<()> {
    let mut datagram = vec![0u8; 65_536];
    while !stop.load(Ordering::Relaxed) {
        match shared.socket.recv(&mut datagram) {
            Ok(len) => {
                let Some(header) = Header::read(wide, datagram.get(..len).unwrap_or_default()) else { continue };
                shared.arrivals.lock().unwrap_or_else(PoisonError::into_inner).take(header, now_us());
                shared.bytes.fetch_add(len as u64, Ordering::Relaxed);
                shared.packets.fetch_add(1, Ordering::Relaxed);
            }
            Err(error) if is_pause(&error) => {}
            Err(error) if is_passing(&error) => thread::sleep(Duration::from_millis(1)),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// How long to wait until so many bytes are due.
fn ahead_of(pace_bps: u64, bytes: u64, start: Instant) -> Option<Duration> {
    let due = Duration::from_secs_f64((bytes as f64 * 8.0 / pace_bps.max(1) as f64).min(86_400.0));
    due.checked_sub(start.elapsed()).filter(|early| !early.is_zero())
}

fn is_passing(error: &io::Error) -> bool {
    use io::ErrorKind as Kind;
    // ENOBUFS has no name in the standard library.
    matches!(error.kind(), Kind::ConnectionRefused | Kind::HostUnreachable | Kind::NetworkUnreachable)
        || rustix::io::Errno::from_io_error(error) == Some(rustix::io::Errno::NOBUFS)
}

fn now_us() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

impl Flow for UdpFlow {
    fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    fn progress(&self, role: Role) -> u64 {
        let of_role = self.lanes.iter().filter(|lane| lane.role == role);
        of_role.map(|lane| lane.shared.bytes.load(Ordering::Relaxed)).sum()
    }

    fn activity(&self) -> u64 {
        self.progress(Role::Send) + self.progress(Role::Receive)
    }

    fn live(&self) -> Live {
        let receiving = self.lanes.iter().filter(|lane| lane.role == Role::Receive);
        let arrived = receiving.map(|lane| lane.shared.counts().arrivals.since(&lane.mark.arrivals));
        Live { datagrams: arrived.reduce(Datagrams::and), ..Live::default() }
    }

    /// What is lost never arrives: a receiver can only wait for the peer to be done.
    fn is_complete(&self) -> bool {
        self.budget.is_some_and(|budget| {
            let role = if self.has(Role::Send) { Role::Send } else { Role::Receive };
            self.progress(role) >= budget
        })
    }

    fn has(&self, role: Role) -> bool {
        self.lanes.iter().any(|lane| lane.role == role)
    }

    fn failure(&self) -> Option<io::ErrorKind> {
        self.lanes.iter().find_map(|lane| lane.shared.failure.get().copied())
    }

    fn mark_steady(&mut self) {
        self.steady_from = Some(self.elapsed());
        for lane in &mut self.lanes {
            lane.mark = lane.shared.counts();
        }
    }

    fn is_marked(&self) -> bool {
        self.steady_from.is_some()
    }

    fn stop(&mut self) -> EndReport {
        let end = self.elapsed();
        let counts: Vec<Counts> = self.lanes.iter().map(|lane| lane.shared.counts()).collect();
        self.stop.store(true, Ordering::Relaxed);
        let process = ProcessTime::now();
        let percent = |now: f64, before: f64| (now - before).max(0.0) / end.as_secs_f64().max(1e-6) * 100.0;
        let steady = end.saturating_sub(self.steady_from.unwrap_or_default());
        let mut series = self.watcher.as_mut().map(Watcher::finish).unwrap_or_default().into_iter();
        let report = |(lane, counts): (&Moving, Counts)| LaneReport {
            datagram_series: series.next().unwrap_or_default(),
            ..lane.report(counts, (end, steady))
        };
        EndReport {
            cpu_busy: CpuClock::now().busiest_since(&self.cpu),
            cpu_user_percent: percent(process.user_s, self.process.user_s),
            cpu_system_percent: percent(process.system_s, self.process.system_s),
            processor: None,
            push: None,
            lanes: self.lanes.iter().zip(counts).map(report).collect(),
        }
    }

    fn release(mut self: Box<Self>, _abrupt: bool) {
        self.halt();
    }
}

impl Drop for UdpFlow {
    fn drop(&mut self) {
        self.halt();
    }
}

impl Moving {
    fn new(lane: UdpLane) -> Self {
        let shared = Shared {
            socket: lane.socket,
            bytes: AtomicU64::new(0),
            packets: AtomicU64::new(0),
            arrivals: Mutex::default(),
            failure: OnceLock::new(),
        };
        Self { id: lane.id, role: lane.role, shared: Arc::new(shared), mark: Counts::default() }
    }

    fn report(&self, counts: Counts, (whole, steady): (Duration, Duration)) -> LaneReport {
        let moved = counts.bytes.saturating_sub(self.mark.bytes);
        let sent = counts.packets.saturating_sub(self.mark.packets);
        let datagrams = match self.role {
            Role::Send => Datagrams { packets: sent, ..Datagrams::default() },
            Role::Receive => counts.arrivals.since(&self.mark.arrivals),
        };
        LaneReport {
            id: self.id,
            role: self.role,
            bytes: counts.bytes,
            duration_us: Micros::from(whole).get(),
            moved,
            steady_bytes: moved,
            steady_us: Micros::from(steady).get(),
            omitted_us: (steady < whole).then(|| Micros::from(whole.saturating_sub(steady)).get()),
            retransmits: None,
            datagrams: Some(datagrams),
            datagram_series: Vec::new(),
            congestion_control: None,
            send_buffer: None,
            receive_buffer: None,
            view: View::default(),
            path_mtu: None,
            sender_samples: Vec::new(),
            receiver_samples: Vec::new(),
        }
    }
}

impl Counts {
    fn sample(&self, role: Role, at_us: Micros) -> DatagramSample {
        let (packets, bytes) = (self.packets, self.bytes);
        let became = self.arrivals.since(&Arrivals::default());
        match role {
            Role::Send => DatagramSample { at_us, packets, bytes, ..DatagramSample::default() },
            Role::Receive => DatagramSample {
                at_us,
                packets,
                bytes,
                lost: Some(became.lost),
                out_of_order: became.out_of_order,
                jitter_us: became.jitter_us,
            },
        }
    }
}

impl Shared {
    fn counts(&self) -> Counts {
        Counts {
            bytes: self.bytes.load(Ordering::Relaxed),
            packets: self.packets.load(Ordering::Relaxed),
            arrivals: *self.arrivals.lock().unwrap_or_else(PoisonError::into_inner),
        }
    }
}
