//! Makes a labelled corpus of captures: `cargo run --release -p fullpipe-lab --example corpus -- DIR [--only CASE]
//! [--part train|held|drawn [--seed N] [--most N] [--family FAMILY]] [--jobs N] [--watch FULLPIPE]`. `cargo xtask corpus` runs it and judges what it made.
//!
//! Each run is one transfer between two kernels over an emulated path, captured by tcpdump at both ends, with `ss` beside it,
//! and recorded by that program's `watch` at the sender: `NAME.jsonl`.
//! `DIR/corpus.json` says of each what a judge may find. What is there already and valid is kept, and labelled anew.

mod capture;
mod cases;
mod strangers;
mod traffic;

use std::{
    collections::BTreeMap,
    error::Error,
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::{Mutex, PoisonError},
    thread,
    time::Duration,
};

use fullpipe_lab::{Lab, LabHost, LabOptions, Side, enter_user_namespace};
use serde::{Deserialize, Serialize};

use crate::{
    capture::{Capture, Live},
    cases::{Allowed, CASES, Case, MadePath},
    traffic::{Received, Traffic},
};

/// One line of the index.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Run {
    name: String,
    case: String,
    path: String,
    congestion: String,
    /// Which host sends: `a`, the client, or `b`.
    sender: String,
    /// What the receiving application read, and in what time.
    bytes: u64,
    seconds: f64,
    /// The most payload that the path carries.
    payload_bps: u64,
    rtt_us: u64,
    /// Why it can't be used, where it can't.
    invalid: Option<String>,
    /// By host: the capture, and what may be said of it.
    vantages: BTreeMap<String, Vantage>,
    /// `ss -tin` at the sender, every 250 ms.
    tcp_info: String,
    #[serde(default)]
    family: String,
    #[serde(default)]
    stack: String,
    #[serde(default)]
    part: String,
    /// How the capture was changed afterwards.
    #[serde(default)]
    variant: Option<String>,
    /// The part of the path's payload rate that was used.
    #[serde(default)]
    fill: Option<f64>,
    /// What the label rests on.
    #[serde(default)]
    measured: Option<strangers::Measured>,
    #[serde(default)]
    busy_ms: u64,
    #[serde(default)]
    rwnd_ms: u64,
    #[serde(default)]
    sndbuf_ms: u64,
    #[serde(default)]
    retrans: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Vantage {
    file: String,
    allowed: Vec<Allowed>,
}

/// An application that is woken later than this makes a pause of its own: a fifth of the shortest round trip here.
const LATEST: Duration = Duration::from_millis(2);

/// How long to wait before each further try.
const PAUSES: [Duration; 3] = [Duration::ZERO, Duration::from_secs(2), Duration::from_secs(10)];

/// Where runs go, and what judges them live.
#[derive(Clone, Copy)]
struct Place<'a> {
    dir: &'a Path,
    watch: Option<&'a Path>,
}

impl Place<'_> {
    /// Begins to record the run of this name at `host`.
    fn record(self, host: &LabHost, name: &str) -> std::io::Result<Option<Live>> {
        let file = self.dir.join(format!("{name}.jsonl"));
        self.watch.map(|program| Live::start(host, program, &file)).transpose()
    }
}

/// A run to be made.
#[derive(Clone, Copy)]
struct Order {
    number: usize,
    case: &'static Case,
    path: MadePath,
    congestion: &'static str,
    sender: Side,
}

struct Arguments {
    dir: PathBuf,
    only: Option<String>,
    jobs: usize,
    part: Option<strangers::Part>,
    family: Option<String>,
    most: usize,
    watch: Option<PathBuf>,
}

fn main() -> ExitCode {
    let Some(arguments) = arguments() else {
        eprintln!(
            "usage: corpus DIR [--only CASE] [--part train|held|drawn [--seed N] [--most N] [--family FAMILY]] [--jobs N] \
             [--watch FULLPIPE]"
        );
        return ExitCode::from(2);
    };
    match enter_user_namespace().map_err(Into::into).and_then(|()| make(&arguments)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("corpus: {error}");
            ExitCode::FAILURE
        }
    }
}

fn arguments() -> Option<Arguments> {
    let mut words = std::env::args().skip(1);
    let dir = words.next()?.into();
    let mut arguments = Arguments { dir, only: None, jobs: 1, part: None, family: None, most: usize::MAX, watch: None };
    let (mut part, mut seed) = (None, 1);
    while let Some(word) = words.next() {
        let value = words.next()?;
        match word.as_str() {
            "--only" => arguments.only = Some(value),
            "--family" => arguments.family = Some(value),
            "--part" => part = Some(value),
            "--seed" => seed = value.parse().ok()?,
            "--most" => arguments.most = value.parse().ok()?,
            "--watch" => arguments.watch = Some(value.into()),
            "--jobs" => arguments.jobs = value.parse().ok()?,
            _ => return None,
        }
    }
    if let Some(name) = part {
        arguments.part = Some(strangers::Part::named(&name, seed)?);
    }
    Some(arguments)
}

fn make(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    if let Some(part) = arguments.part {
        let is_wanted = |scene: &strangers::Scene| {
            arguments.only.as_deref().is_none_or(|only| only == scene.case)
                && arguments.family.as_deref().is_none_or(|family| family == scene.family)
        };
        let place = Place { dir: &arguments.dir.join(part.as_str()), watch: arguments.watch.as_deref() };
        return strangers::make(place, part, arguments.most, arguments.jobs, is_wanted);
    }
    fs::create_dir_all(&arguments.dir)?;
    let index = arguments.dir.join("corpus.json");
    let old: BTreeMap<String, Run> = match fs::read(&index) {
        Ok(text) => serde_json::from_slice::<Vec<Run>>(&text)?.into_iter().map(|run| (run.name.clone(), run)).collect(),
        Err(_) => BTreeMap::new(),
    };
    let is_wanted = |order: &Order| arguments.only.as_deref().is_none_or(|only| only == order.case.name);
    let queue = Mutex::new(orders().filter(is_wanted));
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
    let known = Mutex::new(old.clone());
    let place = Place { dir: &arguments.dir, watch: arguments.watch.as_deref() };
    let worker = || -> Result<(), String> {
        while let Some(order) = next() {
            let run = order.kept(&old).unwrap_or_else(|| order.make_valid(place));
            let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
            known.insert(run.name.clone(), run);
            // After each, so that whatever ends this leaves an index of what is there.
            write(&index, &known).map_err(|error| format!("write {}: {error}", index.display()))?;
        }
        Ok(())
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..arguments.jobs.max(1)).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().unwrap_or_else(|_| Err("a worker panicked".to_owned())))
    })?;
    Ok(())
}

fn write(index: &Path, known: &BTreeMap<String, Run>) -> std::io::Result<()> {
    let runs: Vec<&Run> = known.values().collect();
    fs::write(index, serde_json::to_vec_pretty(&runs)?)
}

/// Every case on each of its paths under either congestion control. The sender is the client or the server in turn, so
/// that each case is seen both ways.
fn orders() -> impl Iterator<Item = Order> {
    let pairs = CASES.iter().flat_map(|case| case.paths.iter().map(move |path| (case, *path)));
    pairs.enumerate().flat_map(|(place, (case, path))| {
        ["cubic", "bbr"].into_iter().enumerate().map(move |(turn, congestion)| {
            let sender = if (place + turn) & 1 == 0 { Side::A } else { Side::B };
            Order { number: place * 2 + turn, case, path, congestion, sender }
        })
    })
}

impl Order {
    fn name(&self) -> String {
        format!("{}.{}.{}", self.case.name, self.path.name, self.congestion)
    }

    /// What an earlier run of this left, with the label that this version gives.
    fn kept(&self, old: &BTreeMap<String, Run>) -> Option<Run> {
        let run = old.get(&self.name()).filter(|run| run.invalid.is_none())?;
        let received = Received { bytes: run.bytes, span: Duration::from_secs_f64(run.seconds) };
        Some(self.labelled(received, None))
    }

    /// Tries again, and again later: a shared machine can be too busy for a moment.
    fn make_valid(&self, place: Place<'_>) -> Run {
        let mut run = self.make(place);
        for pause in PAUSES {
            if run.invalid.is_none() {
                break;
            }
            thread::sleep(pause);
            run = self.make(place);
        }
        let state = run.invalid.as_deref().unwrap_or("valid");
        let bps = run.bytes as f64 * 8.0 / run.seconds.max(1e-9);
        eprintln!("{:<34} sender {} {:>8.2} Mbit/s: {state}", run.name, run.sender, bps / 1e6);
        run
    }

    fn make(&self, place: Place<'_>) -> Run {
        match self.carry_out(place) {
            Ok((received, invalid)) => self.labelled(received, invalid),
            Err(error) => self.labelled(Received::default(), Some(error.to_string())),
        }
    }

    fn carry_out(&self, place: Place<'_>) -> Result<(Received, Option<String>), Box<dyn Error>> {
        let dir = place.dir;
        let handicap = self.case.handicap;
        let lab = Lab::join(&self.path.spec(handicap, self.sender), self.number as u64, LabOptions::default())?;
        // The namespace's own default too: a socket that begins under BBR goes on pacing under CUBIC.
        let common = [
            ("net.ipv4.tcp_rmem", "4096 131072 16777216"),
            ("net.ipv4.tcp_wmem", "4096 131072 16777216"),
            ("net.ipv4.tcp_congestion_control", self.congestion),
        ];
        let common = common.map(|(address, value)| (address.to_owned(), value.to_owned()));
        for side in Side::ALL {
            lab.host(side).apply(&common.clone().into())?;
        }
        lab.host(self.sender).apply(&handicap.sender_settings())?;
        lab.host(self.sender.other()).apply(&handicap.receiver_settings())?;
        let captures = [
            Capture::start(lab.host(Side::A), &dir.join(self.file(Side::A)))?,
            Capture::start(lab.host(Side::B), &dir.join(self.file(Side::B)))?,
        ];
        let watch = capture::watch_sockets(lab.host(self.sender), &dir.join(self.tcp_info()))?;
        let live = place.record(lab.host(self.sender), &self.name())?;
        lab.reset_error_stats();
        let traffic = Traffic::new(handicap, &self.path, self.sender, self.congestion);
        let (received, late) = traffic.run_watched(&lab)?;
        let mut invalid = lab.valid().err().map(|error| error.to_string());
        if late > LATEST {
            invalid.get_or_insert_with(|| format!("the applications were woken up to {late:?} late"));
        }
        watch.stop()?;
        live.map(Live::stop).transpose()?;
        // What tcpdump has not been given yet comes within its timeout of a second.
        thread::sleep(Duration::from_millis(1_200));
        for capture in captures {
            let dropped = capture.stop()?;
            if dropped > 0 {
                invalid = Some(format!("the capture lacks {dropped} packets"));
            }
        }
        Ok((received, invalid))
    }

    fn labelled(&self, received: Received, invalid: Option<String>) -> Run {
        let payload = self.path.payload_rate();
        let seconds = received.span.as_secs_f64();
        let fill = received.bytes as f64 * 8.0 / seconds.max(1e-9) / payload.bps() as f64;
        let vantage = |side: Side| {
            let allowed = self.case.handicap.allowed(fill, side == self.sender, side == Side::A);
            (side.as_str().to_owned(), Vantage { file: self.file(side), allowed })
        };
        Run {
            name: self.name(),
            case: self.case.name.to_owned(),
            path: self.path.name.to_owned(),
            congestion: self.congestion.to_owned(),
            sender: self.sender.as_str().to_owned(),
            bytes: received.bytes,
            seconds,
            payload_bps: payload.bps(),
            rtt_us: self.path.rtt().get(),
            invalid,
            vantages: Side::ALL.map(vantage).into(),
            tcp_info: self.tcp_info(),
            family: "lab".to_owned(),
            stack: "linux".to_owned(),
            part: "lab".to_owned(),
            variant: None,
            fill: Some(fill),
            measured: None,
            busy_ms: 0,
            rwnd_ms: 0,
            sndbuf_ms: 0,
            retrans: 0,
        }
    }

    fn file(&self, side: Side) -> String {
        format!("{}.{}.pcap", self.name(), side.as_str())
    }

    fn tcp_info(&self) -> String {
        format!("{}.ss.txt", self.name())
    }
}
