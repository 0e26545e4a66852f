//! What the lab can do on this machine, with both ends on it.

use std::{
    fmt, fs,
    io::{self, Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::Arc,
    thread::JoinHandle,
    time::{Duration, Instant},
};

use fullpipe_path::{HopSpec, IpVersions, PathHop, PathSpec, QueueSize, QueueSpec, Side};
use fullpipe_units::{Bytes, Micros, Rate};

use crate::{Lab, LabError, LabOptions, PathError, Priority, driver::PATH_THREAD};

/// What came out.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report {
    /// In the order of [`CASES`].
    pub cases: Vec<Case>,
    /// What the path's thread ran as.
    pub priority: Option<Priority>,
}

/// All transfers over one path.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Case {
    /// The path's rate; `None` for no limit, where the machine itself is the limit.
    pub rate: Option<Rate>,
    /// The path's round-trip time.
    pub rtt: Micros,
    /// Connections at once.
    pub flows: usize,
    /// One per repetition.
    pub samples: Vec<Sample>,
}

const GIGABIT: Option<Rate> = Some(Rate::from_bps(1_000_000_000));

/// What is tried: rate, round-trip time in milliseconds, connections that share the path. The second and the third carry 5 and 3 Gbit/s of
/// payload, 1448 of each 1500 bytes, with results that shall be valid; without a limit it is the machine that decides. With a long round
/// trip many packets are on the way.
pub const CASES: [(Option<Rate>, u64, usize); 9] = [
    (None, 10, 1),
    (Some(Rate::from_bps(5_200_000_000)), 10, 1),
    (Some(Rate::from_bps(3_200_000_000)), 10, 1),
    (GIGABIT, 10, 1),
    (GIGABIT, 40, 1),
    (GIGABIT, 200, 1),
    (GIGABIT, 10, 64),
    (Some(Rate::from_bps(100_000_000)), 10, 1),
    (Some(Rate::from_bps(10_000_000)), 10, 1),
];

/// One transfer from a to b, on all connections.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Sample {
    /// Payload that the receiver read.
    pub goodput: Rate,
    /// The lab's error meanwhile.
    pub error: PathError,
    /// How much of a processor the path's thread took, where the system tells.
    pub processor: Option<f64>,
    /// Whether the lab calls it valid.
    pub valid: bool,
}

/// Tries each of [`CASES`] in turn, and that `repeats` times, for `seconds` each.
///
/// # Errors
/// Where no lab can be made or a transfer fails.
pub fn run(seconds: u32, repeats: u32) -> Result<Report, LabError> {
    let cases =
        CASES.map(|(rate, rtt, flows)| Case { rate, rtt: Micros::from_millis(rtt), flows, samples: Vec::new() });
    let mut report = Report { cases: cases.into(), priority: None };
    for _ in 0..repeats {
        for case in &mut report.cases {
            let lab = Lab::join(&path(case.rate, case.rtt), 1, LabOptions::default())?;
            report.priority = Some(lab.priority());
            case.samples.push(sample(&lab, case, Duration::from_secs(seconds.into()))?);
        }
    }
    Ok(report)
}

/// Half of the round trip each way, with a queue of two bandwidth-delay products where there is a rate.
fn path(rate: Option<Rate>, rtt: Micros) -> PathSpec {
    let queue = QueueSpec { size: QueueSize::Bdp { multiple: 2.0, at_least: 64 }, ..QueueSpec::default() };
    let hop = HopSpec { rate, queue, delay: Micros::new(rtt.get() / 2), ..HopSpec::default() };
    let hops = vec![PathHop { name: None, ab: hop.clone(), ba: hop }];
    PathSpec { mtu: 1_500, ip: IpVersions::V4, hops }
}

/// Bulk transfers from a to b over IPv4, under CUBIC, with buffers that don't limit them.
fn sample(lab: &Lab, case: &Case, span: Duration) -> Result<Sample, LabError> {
    for host in Side::ALL {
        lab.host(host).run(raise_buffers)?.map_err(|error| LabError::system("raise tcp_rmem and tcp_wmem", error))?;
    }
    let address = SocketAddr::new(lab.host(Side::B).address(), 5201);
    let listener = lab.host(Side::B).run(|| TcpListener::bind(address))?;
    let listener = Arc::new(listener.map_err(|error| LabError::system("listen", error))?);
    let (mut receivers, mut senders) = (Vec::new(), Vec::new());
    let warm_up = WARM_UP.max(Duration::from(case.rtt) * SLOW_START);
    let from = Instant::now() + warm_up;
    for at in 0..case.flows {
        let listener = listener.clone();
        receivers.push(lab.host(Side::B).spawn("receiver", move || receive(&listener, from, span))?);
        if at > 0 {
            senders.push(lab.host(Side::A).spawn("sender", move || send(address, warm_up, span, || {}))?);
        }
    }
    let mut began = None;
    let sent = lab.host(Side::A).run(|| {
        send(address, warm_up, span, || {
            lab.reset_error_stats();
            began = path_time().map(|used| (Instant::now(), used));
        })
    })?;
    let processor =
        began.zip(path_time()).map(|((at, used), now)| (now - used).as_secs_f64() / at.elapsed().as_secs_f64());
    let (error, valid) = (lab.path_error(), lab.valid().is_ok());
    sent.map_err(|error| LabError::system("send", error))?;
    for sender in senders {
        joined(sender).map_err(|error| LabError::system("send", error))?;
    }
    let mut bytes = 0;
    for receiver in receivers {
        bytes += joined(receiver).map_err(|error| LabError::system("receive", error))?;
    }
    let goodput = Rate::from_bytes(Bytes::new(bytes), span.into()).unwrap_or_default();
    Ok(Sample { goodput, error, processor, valid })
}

fn joined<T>(thread: JoinHandle<io::Result<T>>) -> io::Result<T> {
    thread.join().map_err(|_| io::Error::other("its thread panicked")).flatten()
}

/// Processor time of this program's path threads (`schedstat`, Documentation/scheduler/sched-stats.rst of the kernel).
fn path_time() -> Option<Duration> {
    let mut used = None;
    for task in fs::read_dir("/proc/self/task").ok()? {
        let task = task.ok()?.path();
        if fs::read_to_string(task.join("comm")).is_ok_and(|name| name.trim_end() == PATH_THREAD) {
            let stat = fs::read_to_string(task.join("schedstat")).ok()?;
            let nanos = Duration::from_nanos(stat.split(' ').next()?.parse().ok()?);
            used = Some(used.unwrap_or_default() + nanos);
        }
    }
    used
}

/// 64 MB at most: four times what 10 Gbit/s over 10 ms needs.
fn raise_buffers() -> io::Result<()> {
    for buffer in ["rmem", "wmem"] {
        fs::write(format!("/proc/sys/net/ipv4/tcp_{buffer}"), "4096 131072 67108864")?;
    }
    Ok(())
}

const BLOCK: usize = 256 << 10;
const WARM_UP: Duration = Duration::from_secs(1);
/// Slow start and what it lost, which is not what this measures, have come and gone after so many round trips.
const SLOW_START: u32 = 50;

fn send(address: SocketAddr, warm_up: Duration, span: Duration, warmed_up: impl FnOnce()) -> io::Result<()> {
    let mut stream = TcpStream::connect(address)?;
    rustix::net::sockopt::set_tcp_congestion(&stream, "cubic")?;
    let block = vec![0x5a; BLOCK];
    let mut warmed_up = Some(warmed_up);
    let start = Instant::now();
    while start.elapsed() < warm_up + span {
        if start.elapsed() >= warm_up
            && let Some(warmed_up) = warmed_up.take()
        {
            warmed_up();
        }
        stream.write_all(&block)?;
    }
    stream.shutdown(Shutdown::Write)
}

/// Reads to the end; how many bytes came within `span` from `from` on, which are the same for all connections.
fn receive(listener: &TcpListener, from: Instant, span: Duration) -> io::Result<u64> {
    let (mut stream, _) = listener.accept()?;
    let mut block = vec![0; BLOCK];
    let mut bytes = 0;
    loop {
        match stream.read(&mut block)? {
            0 => return Ok(bytes),
            read if (from..from + span).contains(&Instant::now()) => bytes += read as u64,
            _ => {}
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let priority = self.priority.unwrap_or(Priority::Normal);
        writeln!(f, "both ends and the path on {cores} cores, CUBIC, MTU 1500, path thread {priority:?}")?;
        for case in &self.cases {
            let rate = case.rate.map_or_else(|| "no rate limit".to_owned(), |rate| rate.to_string());
            match case.flows {
                1 => writeln!(f, "{rate}, {}:", case.rtt)?,
                flows => writeln!(f, "{rate}, {}, {flows} connections:", case.rtt)?,
            }
            for Sample { goodput, error, processor, valid } in &case.samples {
                let PathError { released, lost, .. } = error;
                let verdict = if *valid { "valid" } else { "not valid" };
                let processor =
                    processor.map_or_else(String::new, |part| format!(", {:.0} % of a processor", part * 100.0));
                writeln!(
                    f,
                    "  goodput {goodput}, {error} over {released} segments, {lost} lost outside the path{processor}: {verdict}"
                )?;
            }
        }
        Ok(())
    }
}
