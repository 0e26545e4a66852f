//! `fullpipe measure` beside iperf3 and nuttcp: the same path, the same message size, one after the other, over and over.
//!
//! Throughput is the receiver's, processor time that of both processes. Runs alternate, because the machine is never as
//! fast twice: the ratios are medians of the ratios of each round. Every sender uses CUBIC, because the pacing timers of
//! BBR would be measured otherwise. `--max` is measured after its trials.

use std::{
    env, fs,
    io::{BufRead, BufReader},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use serde_json::Value;
use xshell::{Shell, cmd};

use super::Arguments;
use crate::archive;

/// Of one run: Gbit/s, and processor seconds of both ends per 10^9 B.
#[derive(Clone, Copy, Debug)]
struct Figures {
    gbps: f64,
    seconds_per_gb: f64,
    retransmits: f64,
}

/// Where a run goes: what stands before the command of each end, and the server's address.
struct Route {
    name: &'static str,
    server: &'static [&'static str],
    client: &'static [&'static str],
    address: &'static str,
}

const ROUTES: &[Route] = &[
    Route { name: "loopback", server: &[], client: &[], address: "127.0.0.1" },
    Route {
        name: "veth",
        server: &["ip", "netns", "exec", "fp-bench-b"],
        client: &["ip", "netns", "exec", "fp-bench-a"],
        address: "10.81.0.2",
    },
];

/// As every tool takes them; each tool's own default comes first.
const SIZES: &[&str] = &["default", "4K", "16K", "64K", "128K", "1M"];

const STREAMS: &[&str] = &["1", "4"];

/// The processors of client and server; where nobody runs a test pinned, the scheduler puts them where it likes.
const PLACEMENTS: &[(&str, Option<[&str; 2]>)] =
    &[("apart", Some(["0", "1"])), ("together", Some(["0", "0"])), ("free", None)];

/// What is run, with the words that make it special; the first is what the others are compared with.
const TOOLS: &[(&str, &[&str])] = &[
    ("iperf3", &[]),
    ("iperf3 -Z", &["-Z"]),
    ("fullpipe", &[]),
    ("fullpipe --copy", &["--copy"]),
    ("fullpipe --max", &["--max"]),
    ("nuttcp", &[]),
];

const PORT: &str = "15201";

/// Seconds of a run: what is measured is steady after a tenth of one.
const SECONDS: &str = "2";

/// The programs that are compared.
struct Programs {
    fullpipe: String,
    iperf3: String,
}

/// One line's conditions.
struct Line<'a> {
    route: &'a Route,
    streams: &'a str,
    size: &'a str,
    placement: &'a str,
    processors: Option<[&'a str; 2]>,
}

/// Runs everything as often as asked and prints the medians.
pub(super) fn run(shell: &Shell, arguments: &Arguments) -> Result<()> {
    let programs = Programs { fullpipe: fullpipe(shell, arguments)?, iperf3: iperf3(shell, arguments)? };
    let iperf3 = &programs.iperf3;
    let version = cmd!(shell, "{iperf3} --version").quiet().read()?;
    println!("{}", version.lines().next().unwrap_or_default());
    let veth = Veth::make(shell);
    if let Err(error) = &veth {
        eprintln!("bench: skipped veth: {error:#}");
    }
    let busy = arguments.busy.then(Busy::start).transpose()?;
    let before = (Processors::now()?, archive::children_s()?);
    println!("path      streams  size     placement  tool               Gbit/s    s/GB  sent again  of iperf3");
    for route in ROUTES.iter().filter(|route| route.client.is_empty() || veth.is_ok()) {
        for &streams in STREAMS {
            for &size in SIZES {
                for &(placement, processors) in PLACEMENTS {
                    let words = [route.name, streams, size, placement];
                    if arguments.only.iter().all(|only| words.contains(&only.as_str())) {
                        line(&Line { route, streams, size, placement, processors }, &programs, arguments);
                    }
                }
            }
        }
    }
    let (after, own) = (Processors::now()?, archive::children_s()? - before.1);
    println!("{}", after.since(&before.0).words(own + busy.map_or(0.0, |busy| busy.seconds())));
    Ok(())
}

/// What all processors did since the machine started; seconds.
struct Processors {
    all: f64,
    busy: f64,
    stolen: f64,
}

impl Processors {
    /// proc_stat(5): user, nice, system, idle, iowait, irq, softirq, steal; in hundredths of a second.
    fn now() -> Result<Self> {
        let text = fs::read_to_string("/proc/stat").context("read /proc/stat")?;
        let first = text.lines().next().unwrap_or_default();
        let ticks: Vec<f64> = first.split_whitespace().skip(1).take(8).filter_map(|word| word.parse().ok()).collect();
        let [user, nice, system, idle, waits, irq, softirq, stolen] = ticks[..] else {
            bail!("/proc/stat says `{first}`")
        };
        let busy = user + nice + system + irq + softirq;
        Ok(Self { all: (busy + idle + waits + stolen) / 100.0, busy: busy / 100.0, stolen: stolen / 100.0 })
    }

    fn since(&self, before: &Self) -> Self {
        Self { all: self.all - before.all, busy: self.busy - before.busy, stolen: self.stolen - before.stolen }
    }

    /// How noisy the machine was, where `own` seconds were the bench's.
    fn words(&self, own: f64) -> String {
        let part = |seconds: f64| 100.0 * seconds.max(0.0) / self.all.max(f64::MIN_POSITIVE);
        format!(
            "meanwhile other programs took {:.1} % of the processors' time, and {:.1} % were stolen by the hypervisor",
            part(self.busy - own),
            part(self.stolen)
        )
    }
}

/// Work that keeps the last processor busy for half of the time, in turns of five milliseconds, until it is dropped.
struct Busy {
    ends: Arc<AtomicBool>,
    worker: Option<thread::JoinHandle<()>>,
    began: Instant,
}

impl Busy {
    const TURN: Duration = Duration::from_millis(5);

    fn start() -> Result<Self> {
        let last = thread::available_parallelism().map_or(1, usize::from) - 1;
        let ends = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&ends);
        let (pinned, outcome) = mpsc::channel();
        let worker = thread::spawn(move || {
            let mut processors = rustix::thread::CpuSet::new();
            processors.set(last);
            if pinned.send(rustix::thread::sched_setaffinity(None, &processors)).is_err() {
                return;
            }
            while !until.load(Ordering::Relaxed) {
                let began = Instant::now();
                while began.elapsed() < Self::TURN {
                    std::hint::spin_loop();
                }
                thread::sleep(Self::TURN);
            }
        });
        outcome.recv()?.with_context(|| format!("stay on processor {last}"))?;
        println!("processor {last} is half busy");
        Ok(Self { ends, worker: Some(worker), began: Instant::now() })
    }

    /// What it took of a processor, near enough.
    fn seconds(&self) -> f64 {
        self.began.elapsed().as_secs_f64() / 2.0
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        if let Some(worker) = self.worker.take() {
            drop(worker.join());
        }
    }
}

fn fullpipe(shell: &Shell, arguments: &Arguments) -> Result<String> {
    if let Some(program) = &arguments.fullpipe {
        return Ok(program.to_string_lossy().into_owned());
    }
    cmd!(shell, "cargo build --release --locked --quiet --package fullpipe").run()?;
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| shell.current_dir().join("target"), PathBuf::from);
    Ok(target.join("release/fullpipe").to_string_lossy().into_owned())
}

fn iperf3(shell: &Shell, arguments: &Arguments) -> Result<String> {
    if let Some(program) = &arguments.iperf3 {
        return Ok(program.to_string_lossy().into_owned());
    }
    let mut built = shell.read_dir("target/tools").unwrap_or_default();
    built.retain(|folder| folder.join("src/iperf3").is_file());
    built.sort();
    Ok(built
        .pop()
        .map_or_else(|| "iperf3".to_owned(), |folder| folder.join("src/iperf3").to_string_lossy().into_owned()))
}

/// All tools in alternation; a tool that fails is named and left out.
fn line(line: &Line<'_>, programs: &Programs, arguments: &Arguments) {
    let wanted = |(name, _): &&(&str, &[&str])| {
        arguments.tools.is_empty() || *name == "iperf3" || arguments.tools.iter().any(|tool| tool == name)
    };
    let tools: Vec<_> = TOOLS.iter().filter(wanted).collect();
    let mut rounds: Vec<Vec<Option<Figures>>> = Vec::new();
    for _ in 0..arguments.rounds {
        let round = tools.iter().map(|(tool, words)| {
            once(tool, words, line, programs)
                .inspect_err(|error| eprintln!("bench: {tool} {} {}: {error:#}", line.route.name, line.size))
                .ok()
        });
        rounds.push(round.collect());
    }
    for (index, (tool, _)) in tools.iter().enumerate() {
        let runs = || rounds.iter().filter_map(|round| round.get(index).copied().flatten());
        let pairs = || rounds.iter().filter_map(|round| Some((round.first().copied()??, round.get(index).copied()??)));
        let Some(gbps) = median(runs().map(|f| f.gbps)) else { continue };
        let seconds = median(runs().map(|f| f.seconds_per_gb)).unwrap_or_default();
        let again = median(runs().map(|f| f.retransmits)).unwrap_or_default();
        let faster = median(pairs().map(|(base, f)| f.gbps / base.gbps)).unwrap_or_default();
        let dearer = median(pairs().map(|(base, f)| f.seconds_per_gb / base.seconds_per_gb)).unwrap_or_default();
        let (path, streams, size, placement) = (line.route.name, line.streams, line.size, line.placement);
        println!(
            "{path:<9} {streams:>7}  {size:<8} {placement:<9}  {tool:<16} {gbps:>8.1} {seconds:>7.3} {again:>11.0}  \
             {faster:.2}x at {dearer:.2}x"
        );
    }
}

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

fn once(tool: &str, special: &[&'static str], line: &Line<'_>, programs: &Programs) -> Result<Figures> {
    let &Line { route, streams, size, processors, .. } = line;
    let listening = format!("{}:{PORT}", route.address);
    let sized = |flag: &'static str| if size == "default" { vec![] } else { vec![flag, size] };
    let (fullpipe, iperf3) = (programs.fullpipe.as_str(), programs.iperf3.as_str());
    let (server, client): (Vec<&str>, Vec<&str>) = if tool.starts_with("iperf3") {
        let client = [iperf3, "-c", route.address, "-p", PORT, "-J", "-t", SECONDS, "-C", "cubic", "-P", streams];
        (vec![iperf3, "-s", "-1", "-p", PORT, "--forceflush"], [&client[..], &sized("-l")[..], special].concat())
    } else if tool.starts_with("fullpipe") {
        let client = [fullpipe, "measure", &listening, "--json", "-t", SECONDS, "-C", "cubic", "-P", streams];
        (vec![fullpipe, "serve", &listening, "--no-settings"], [&client[..], &sized("-l")[..], special].concat())
    } else {
        let client = ["nuttcp", "-P", PORT, "-T", SECONDS, "-fparse", "-N", streams];
        (vec!["nuttcp", "-S", "-1", "-P", PORT], [&client[..], &sized("-l")[..], &[route.address][..]].concat())
    };
    let pinned = |end: usize| processors.map_or_else(Vec::new, |processors| vec!["taskset", "-c", processors[end]]);
    let _running = start(&[route.server, &pinned(1)[..], &server[..]].concat(), tool == "nuttcp")?;
    let words = [route.client, &pinned(0)[..], &client[..]].concat();
    let output = Command::new(words[0]).args(&words[1..]).output().context("starting the client")?;
    if !output.status.success() {
        bail!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    figures(tool, &text).with_context(|| format!("no figures in {text}"))
}

fn figures(tool: &str, text: &str) -> Option<Figures> {
    let number = |document: &Value, pointer: &str| document.pointer(pointer)?.as_f64();
    let per_gb = |gbps: f64, percent: f64, retransmits: f64| Figures {
        gbps,
        seconds_per_gb: percent / 100.0 / (gbps / 8.0),
        retransmits,
    };
    if tool.starts_with("iperf3") {
        let document: Value = serde_json::from_str(text).ok()?;
        let gbps = number(&document, "/end/sum_received/bits_per_second")? / 1e9;
        let cpu = |end: &str| number(&document, &format!("/end/cpu_utilization_percent/{end}_total"));
        Some(per_gb(gbps, cpu("host")? + cpu("remote")?, number(&document, "/end/sum_sent/retransmits")?))
    } else if tool.starts_with("fullpipe") {
        let document: Value = serde_json::from_str(text).ok()?;
        let of = |end: &str| number(&document, &format!("/processor/{end}/seconds_per_gb"));
        let rate = if document["max"].is_object() { "/directions/0/steady_bps" } else { "/directions/0/rate_bps" };
        if let Some(choice) = document.pointer("/max/own/sending") {
            let receiving = document.pointer("/max/far/receiving/mechanism");
            eprintln!("bench: chose {} and {:?}, left {}", choice["mechanism"], receiving, choice["left"]);
        }
        Some(Figures {
            gbps: number(&document, rate)? / 1e9,
            seconds_per_gb: of("own")? + of("far")?,
            retransmits: number(&document, "/directions/0/retransmissions").unwrap_or_default(),
        })
    } else {
        let field = |name: &str| -> Option<f64> {
            text.split_ascii_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('=')?.parse().ok())
        };
        let retransmits = field("retrans").unwrap_or_default();
        Some(per_gb(field("rate_Mbps")? / 1e3, field("tx_cpu")? + field("rx_cpu")?, retransmits))
    }
}

/// A server that is ended with the run.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Waits until the server says that it listens; a silent one gets a moment.
fn start(words: &[&str], silent: bool) -> Result<Running> {
    let mut child = Command::new(words[0]).args(&words[1..]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let output = child.stdout.take();
    let running = Running(child);
    if silent {
        thread::sleep(Duration::from_millis(300));
        return Ok(running);
    }
    let mut lines = BufReader::new(output.context("the server has no output")?).lines();
    if !lines.any(|line| line.is_ok_and(|line| line.contains("listening"))) {
        bail!("the server never listened");
    }
    // Nobody may let its pipe run full.
    thread::spawn(move || lines.count());
    Ok(running)
}

/// Two namespaces with a pair of interfaces between them; removed when it is dropped.
struct Veth<'a>(&'a Shell);

impl<'a> Veth<'a> {
    fn make(shell: &'a Shell) -> Result<Self> {
        if !rustix::process::geteuid().is_root() {
            bail!("it takes root");
        }
        let veth = Self(shell);
        for line in [
            "netns add fp-bench-a",
            "netns add fp-bench-b",
            "link add fpa netns fp-bench-a type veth peer name fpb netns fp-bench-b",
            "-n fp-bench-a address add 10.81.0.1/24 dev fpa",
            "-n fp-bench-b address add 10.81.0.2/24 dev fpb",
            "-n fp-bench-a link set fpa up",
            "-n fp-bench-b link set fpb up",
        ] {
            let words: Vec<&str> = line.split(' ').collect();
            cmd!(shell, "ip {words...}").quiet().run()?;
        }
        Ok(veth)
    }
}

impl Drop for Veth<'_> {
    fn drop(&mut self) {
        for name in ["fp-bench-a", "fp-bench-b"] {
            drop(cmd!(self.0, "ip netns delete {name}").quiet().ignore_stderr().run());
        }
    }
}
