//! What the lab can do on this machine, with both ends on it.

use std::{
    fmt, fs,
    io::{self, Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    time::{Duration, Instant},
};

use fullpipe_path::{HopSpec, IpVersions, PathHop, PathSpec, QueueSize, QueueSpec, Side};
use fullpipe_units::{Bytes, Micros, Rate};

use crate::{Lab, LabError, LabOptions, PathError, Priority};

/// What came out.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report {
    /// In the order of [`RATES`].
    pub cases: Vec<Case>,
    /// What the path's thread ran as.
    pub priority: Option<Priority>,
}

/// All transfers at one rate.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Case {
    /// The path's rate; `None` for no limit, where the machine itself is the limit.
    pub rate: Option<Rate>,
    /// One per repetition.
    pub samples: Vec<Sample>,
}

/// The rates that are tried, each over 10 ms. The second one carries 3 Gbit/s of payload, 1448 of each 1500 bytes, which
/// the lab shall manage with results that are valid; without a limit it is the machine that decides.
pub const RATES: [Option<Rate>; 4] =
    [None, Some(Rate::from_bps(3_200_000_000)), Some(Rate::from_bps(1_000_000_000)), Some(Rate::from_bps(100_000_000))];

/// One transfer from a to b.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Sample {
    /// Payload that the receiver read.
    pub goodput: Rate,
    /// The lab's error meanwhile.
    pub error: PathError,
    /// Whether the lab calls it valid.
    pub valid: bool,
}

/// Tries every rate of [`RATES`] in turn, and that `repeats` times, for `seconds` each.
///
/// # Errors
/// Where no lab can be made or a transfer fails.
pub fn run(seconds: u32, repeats: u32) -> Result<Report, LabError> {
    let mut report = Report { cases: RATES.map(|rate| Case { rate, samples: Vec::new() }).into(), priority: None };
    for _ in 0..repeats {
        for case in &mut report.cases {
            let lab = Lab::join(&path(case.rate), 1, LabOptions::default())?;
            report.priority = Some(lab.priority());
            case.samples.push(sample(&lab, Duration::from_secs(seconds.into()))?);
        }
    }
    Ok(report)
}

/// 5 ms each way, with a queue of two bandwidth-delay products where there is a rate.
fn path(rate: Option<Rate>) -> PathSpec {
    let queue = QueueSpec { size: QueueSize::Bdp { multiple: 2.0, at_least: 64 }, ..QueueSpec::default() };
    let hop = HopSpec { rate, queue, delay: Micros::from_millis(5), ..HopSpec::default() };
    let hops = vec![PathHop { name: None, ab: hop.clone(), ba: hop }];
    PathSpec { mtu: 1_500, ip: IpVersions::V4, hops }
}

/// One bulk transfer from a to b over IPv4, under CUBIC, with buffers that don't limit it.
fn sample(lab: &Lab, span: Duration) -> Result<Sample, LabError> {
    for host in Side::ALL {
        lab.host(host).run(raise_buffers)?.map_err(|error| LabError::system("raise tcp_rmem and tcp_wmem", error))?;
    }
    let address = SocketAddr::new(lab.host(Side::B).address(), 5201);
    let listener = lab.host(Side::B).run(|| TcpListener::bind(address))?;
    let listener = listener.map_err(|error| LabError::system("listen", error))?;
    let receiver = lab.host(Side::B).spawn("receiver", move || receive(&listener))?;
    // Slow start has come and gone after a second at most; it is not what this measures.
    let sent = lab.host(Side::A).run(|| send(address, span, || lab.reset_error_stats()))?;
    sent.map_err(|error| LabError::system("send", error))?;
    let goodput = receiver.join().map_err(|_| io::Error::other("the receiver panicked")).flatten();
    let goodput = goodput.map_err(|error| LabError::system("receive", error))?;
    Ok(Sample { goodput, error: lab.path_error(), valid: lab.valid().is_ok() })
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

fn send(address: SocketAddr, span: Duration, warmed_up: impl FnOnce()) -> io::Result<()> {
    let mut stream = TcpStream::connect(address)?;
    rustix::net::sockopt::set_tcp_congestion(&stream, "cubic")?;
    let block = vec![0x5a; BLOCK];
    let mut warmed_up = Some(warmed_up);
    let start = Instant::now();
    while start.elapsed() < WARM_UP + span {
        if start.elapsed() >= WARM_UP
            && let Some(warmed_up) = warmed_up.take()
        {
            warmed_up();
        }
        stream.write_all(&block)?;
    }
    stream.shutdown(Shutdown::Write)
}

/// Reads to the end; the rate is that after the warm-up.
fn receive(listener: &TcpListener) -> io::Result<Rate> {
    let (mut stream, _) = listener.accept()?;
    let mut block = vec![0; BLOCK];
    let accepted = Instant::now();
    let (mut bytes, mut start) = (0_u64, None);
    loop {
        let read = stream.read(&mut block)?;
        let Some(start) = start else {
            start = (accepted.elapsed() >= WARM_UP).then(Instant::now);
            continue;
        };
        if read == 0 {
            let span: Duration = Instant::elapsed(&start);
            return Ok(Rate::from_bytes(Bytes::new(bytes), span.into()).unwrap_or_default());
        }
        bytes += read as u64;
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let priority = self.priority.unwrap_or(Priority::Normal);
        writeln!(f, "both ends and the path on {cores} cores, 10 ms, CUBIC, MTU 1500, path thread {priority:?}")?;
        for case in &self.cases {
            match case.rate {
                Some(rate) => writeln!(f, "{rate}:")?,
                None => writeln!(f, "no rate limit:")?,
            }
            for Sample { goodput, error, valid } in &case.samples {
                let PathError { p50_us, p99_us, max_us, released, lost, .. } = error;
                let verdict = if *valid { "valid" } else { "not valid" };
                writeln!(
                    f,
                    "  goodput {goodput}, release error p50 {p50_us} us, p99 {p99_us} us, max {max_us} us over \
                     {released} segments, {lost} lost outside the path: {verdict}"
                )?;
            }
        }
        Ok(())
    }
}
