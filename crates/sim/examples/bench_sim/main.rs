//! What the simulator can do: data segments per second of one thread's processor time, beside smoltcp in virtual time, and
//! the time of a sweep of a thousand points, and many connections beside one. Run by `cargo xtask bench sim`, which says with
//! `--netsim` where smoltcp's `netsim` is as its own package builds it (`xtask/netsim`); with a number of connections as its argument
//! (and seconds, 1 by default) it runs these once, for whoever counts instructions.

mod clock;
mod smoltcp;

use std::{
    error::Error,
    fmt::Display,
    process::Command,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use fullpipe_path::{QueueSize, Random as Chance};
use fullpipe_sim::{HostSpec, Prediction, Range, Spec, knob, predict, run};
use fullpipe_units::{Bytes, Micros, Rate};
use rustix::time::ClockId;

use clock::{processor_time, seconds};

/// The link, its round-trip time, and the receive window, which holds less than the path.
const RATE_BPS: u64 = 1_000_000_000;
const RTT_US: u64 = 10_000;
const WINDOW: u32 = 1_000_000;
/// Packets.
const QUEUE: u32 = 10_000;
/// Payload of one run.
const BYTES: u64 = 400_000_000;
/// Losses towards the receiver that are tried, one in so many packets.
const LOSSES: [Option<u32>; 2] = [None, Some(1_000)];
/// In each round everything runs once, in turn: on a machine with neighbours, figures of one round are alike and those of two may not be.
const ROUNDS: usize = 15;
const CROWD_ROUNDS: usize = 5;
const POINTS: usize = 1_000;
/// Connections at one bottleneck, each for so long.
const CROWDS: [u32; 3] = [1, 100, 1_000];
const CROWD_TIME: Micros = Micros::from_secs(4);

/// What one run took.
#[derive(Clone, Copy)]
struct Figures {
    /// Segments with data that were sent.
    segments: u64,
    /// Processor time; s.
    seconds: f64,
    /// Time in the simulation; s.
    virtual_seconds: f64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let netsim = match &arguments[..] {
        [] => None,
        [option, program] if option == "--netsim" => Some(program.as_str()),
        [flows, rest @ ..] => {
            // No clock: valgrind has none of the kernel's.
            let seconds = rest.first().map_or(Ok(1), |text| text.parse())?;
            let [arrived, sent] = crowd(flows.parse()?, Micros::from_secs(seconds))?;
            println!("{sent} data segments sent, {arrived} arrived");
            return Ok(());
        }
    };
    println!("one connection, {BYTES} B over 1 Gbit/s and {RTT_US} us, window {WINDOW} B, {ROUNDS} runs each;");
    println!("data segments per second of processor time of one thread, SACK and timestamps on");
    let mut found = [const { Vec::new() }; LOSSES.len()];
    // The same path, and lines that only delay.
    let peers = [Some((RATE_BPS, QUEUE as u64)), None];
    let mut of_peers = [const { Vec::new() }; 2];
    let mut of_own_build = Vec::new();
    for _ in 0..ROUNDS {
        // In turn, so that whatever else the machine does hits all of them.
        for (found, loss) in found.iter_mut().zip(LOSSES) {
            found.push(engine(loss)?);
        }
        for (found, limit) in of_peers.iter_mut().zip(peers) {
            let begun = processor_time();
            let (segments, virtual_seconds) = smoltcp::transfer(BYTES, RTT_US, WINDOW as usize, limit)?;
            found.push(Figures { segments, seconds: processor_time() - begun, virtual_seconds });
        }
        if let Some(program) = netsim {
            of_own_build.push(own_build(program)?);
        }
    }
    for (found, loss) in found.iter().zip(LOSSES) {
        let case = loss.map_or_else(|| "no loss".to_owned(), |one_in| format!("one packet in {one_in} lost"));
        let middle = print(&case, found);
        println!("  {:<26} {} segments in {:.1} s of the simulation", "", middle.segments, middle.virtual_seconds);
    }
    let cases = ["smoltcp, the same path", "smoltcp, lines that delay", "smoltcp, its own build"];
    let of_peers = of_peers.into_iter().chain(netsim.is_some().then_some(of_own_build));
    for ((of_peer, case), aim) in of_peers.zip(cases).zip([" (aim 3)", "", " (aim 3)"]) {
        let [low, middle, high] = ratios(&found[0], &of_peer);
        let peer = print(case, &of_peer);
        println!("  {:<26} {} segments in {:.1} s of the simulation", "", peer.segments, peer.virtual_seconds);
        println!("  ratio without loss         {middle:.2}{aim}; of half of the rounds {low:.2} to {high:.2}");
    }
    crowds()?;
    sweep()
}

/// The peer has a congestion window, too.
fn prepare(socket: &mut ::smoltcp::socket::tcp::Socket<'_>) {
    socket.set_congestion_control(::smoltcp::socket::tcp::CongestionControl::Reno);
}

/// Of packets nobody keeps a log.
const fn trace(_: &impl Display) {}

/// The same path once more, by the program that has smoltcp's `netsim` as its own package builds it.
fn own_build(program: &str) -> Result<Figures, Box<dyn Error>> {
    let numbers = [BYTES, RATE_BPS, RTT_US, QUEUE.into(), WINDOW.into()].map(|number| number.to_string());
    let ran = Command::new(program).args(numbers).output().map_err(|error| format!("run {program}: {error}"))?;
    let text = String::from_utf8_lossy(&ran.stdout);
    let [segments, virtual_seconds, seconds] = text.split_whitespace().collect::<Vec<_>>()[..] else {
        return Err(format!("{program} says nothing of use: {}", String::from_utf8_lossy(&ran.stderr)).into());
    };
    Ok(Figures { segments: segments.parse()?, seconds: seconds.parse()?, virtual_seconds: virtual_seconds.parse()? })
}

/// What a segment costs among many connections, beside one.
fn crowds() -> Result<(), Box<dyn Error>> {
    println!("connections at one bottleneck of 1 Gbit/s and {RTT_US} us, data segments that arrive:");
    let mut found = [const { Vec::new() }; CROWDS.len()];
    let mut parts = [0.0; CROWDS.len()];
    for _ in 0..CROWD_ROUNDS {
        for ((found, part), flows) in found.iter_mut().zip(&mut parts).zip(CROWDS) {
            let begun = processor_time();
            let [segments, sent] = crowd(flows, CROWD_TIME)?;
            let seconds = processor_time() - begun;
            found.push(Figures { segments, seconds, virtual_seconds: CROWD_TIME.as_secs_f64() });
            // As in each round.
            *part = segments as f64 / sent as f64;
        }
    }
    for ((of_crowd, part), flows) in found.iter().zip(parts).zip(CROWDS) {
        print(&format!("{flows}"), of_crowd);
        let [_, arrived, _] = ratios(&found[0], of_crowd);
        let sent = arrived * part / parts[0];
        println!("  {:<26} {arrived:.2} times the cost of one (aim 2), {sent:.2} by segments sent", "");
    }
    Ok(())
}

/// So many connections at one bottleneck; how many segments with data arrived, and how many were sent.
fn crowd(flows: u32, time: Micros) -> Result<[u64; 2], Box<dyn Error>> {
    let mut spec = spec(RATE_BPS, RTT_US, None)?;
    if flows == 1 {
        knob::set(&mut spec, "receiver.window", &WINDOW.to_string())?;
    }
    (spec.flows, spec.time) = (flows, time);
    let outcome = run(&spec)?;
    let bytes = outcome.others.iter().map(|bytes| bytes.get()).sum::<u64>() + outcome.transfer.bytes.get();
    Ok([bytes / 1_448, outcome.segments_of_all])
}

/// How many times as fast one is as the other in the same round: the lower quartile, the median and the upper quartile.
fn ratios(one: &[Figures], other: &[Figures]) -> [f64; 3] {
    let mut ratios: Vec<f64> = one.iter().zip(other).map(|(one, other)| one.speed() / other.speed()).collect();
    ratios.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| ratios[(ratios.len() - 1) * quarter / 4])
}

/// Prints the median speed and the range; the run in the middle.
fn print(case: &str, found: &[Figures]) -> Figures {
    let mut sorted = found.to_vec();
    sorted.sort_by(|a, b| a.speed().total_cmp(&b.speed()));
    let middle = sorted[sorted.len() / 2];
    let ends = [sorted[0], sorted[sorted.len() - 1]].map(|one| one.speed() / 1e6);
    println!("  {case:<26} {:.2} M/s ({:.2} to {:.2})", middle.speed() / 1e6, ends[0], ends[1]);
    middle
}

impl Figures {
    fn speed(&self) -> f64 {
        self.segments as f64 / self.seconds
    }
}

fn spec(rate_bps: u64, rtt_us: u64, loss: Option<u32>) -> Result<Spec, Box<dyn Error>> {
    let queue = QueueSize::Packets(QUEUE);
    let loss = loss.map_or(0.0, |one_in| 1.0 / f64::from(one_in));
    let path = knob::path(Rate::from_bps(rate_bps), Micros::new(rtt_us), loss, queue)?;
    let mut spec = Spec::new(path, HostSpec::named("linux-6.18")?, HostSpec::named("linux-6.18")?);
    spec.series = false;
    Ok(spec)
}

/// Linux at both ends, with SACK and timestamps.
fn engine(loss: Option<u32>) -> Result<Figures, Box<dyn Error>> {
    let mut spec = spec(RATE_BPS, RTT_US, loss)?;
    knob::set(&mut spec, "receiver.window", &WINDOW.to_string())?;
    spec.bytes = Some(Bytes::new(BYTES));
    spec.time = Micros::from_secs(3_600);
    let begun = processor_time();
    let outcome = run(&spec)?;
    let seconds = processor_time() - begun;
    let finished = outcome.finished.ok_or("the transfer did not end")?;
    Ok(Figures { segments: outcome.data_segments, seconds, virtual_seconds: finished.as_secs_f64() })
}

/// Ten seconds of a flow at 25 Mbit/s and 40 ms for each of a thousand windows, on all processors.
fn sweep() -> Result<(), Box<dyn Error>> {
    let spec = spec(25_000_000, 40_000, None)?;
    let range = Range::parse("receiver.window=16k..8M", POINTS)?;
    let threads = thread::available_parallelism()?.get().min(2);
    let next = AtomicUsize::new(0);
    let begun = seconds(ClockId::Monotonic);
    let work = || {
        let begun = processor_time();
        let mut all: Vec<Prediction> = Vec::new();
        while let Some(&value) = range.values.get(next.fetch_add(1, Ordering::Relaxed)) {
            all.push(predict(&spec, &[range.setting(value)]).map_err(|error| error.to_string())?);
        }
        Ok::<_, String>((all, processor_time() - begun))
    };
    let done: Vec<_> = thread::scope(|scope| {
        let started: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        started.into_iter().map(|thread| thread.join()).collect()
    });
    let elapsed = seconds(ClockId::Monotonic) - begun;
    let (mut points, mut processor, mut bytes) = (0, 0.0, 0.0);
    for part in done {
        let (all, seconds) = part.map_err(|_| "a thread panicked")??;
        points += all.len();
        processor += seconds;
        bytes += all.iter().map(|prediction| prediction.rate.bps() as f64 / 8.0 * 10.0).sum::<f64>();
    }
    println!(
        "sweep of {points} windows, 10 s each at 25 Mbit/s and 40 ms, {threads} threads: {elapsed:.1} s ({processor:.1} s of \
         processor time, about {:.1} M data segments)",
        bytes / 1_448.0 / 1e6
    );
    Ok(())
}
