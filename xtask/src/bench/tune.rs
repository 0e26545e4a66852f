//! `fullpipe lab run` over a grid of emulated paths and handicaps: how much of each path is reached with the plan in force, what the
//! buffers are beside the bandwidth-delay product, how long it took, and what was changed where nothing was wrong.

use std::{
    collections::BTreeSet,
    fs,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use xshell::Shell;

use super::Arguments;
use crate::{
    corpus,
    lab_run::{Document, Transfer},
};

const RATES: [(&str, f64); 5] = [("10M", 10e6), ("30M", 30e6), ("100M", 100e6), ("300M", 300e6), ("1G", 1e9)];
const ROUND_TRIPS_MS: [u32; 5] = [1, 10, 40, 100, 200];

/// The part of a path that is to be reached, and in how many cells.
const REACHED: f64 = 0.95;
const IN_CELLS: f64 = 0.95;
/// What Linux's buffers take for a byte of payload (tcp(7): twice), and a second window, with which a round of loss recovery does
/// not stop the sender.
const NEEDED: f64 = 2.0 * 2.0;
/// How far above the need the memory may be.
const MEMORY: f64 = 1.25;
/// Payload of a packet of 1,500 B, with timestamps.
const PAYLOAD: f64 = 1448.0 / 1500.0;
/// How often a cell is tried whose path the machine could not keep.
const ATTEMPTS: u32 = 3;

/// What is wrong with a cell's hosts: those of the reference experiments.
#[derive(Clone, Copy)]
struct Handicap {
    name: &'static str,
    /// The settings of the sender, and of the receiver; `@` stands for a buffer of eight products.
    a: &'static str,
    b: &'static str,
    /// The payload that the worse of them lets be in flight; `None` where nothing is wrong.
    window: Option<f64>,
}

const AMPLE: &str = "\"net.ipv4.tcp_rmem\" = \"4096 131072 @\"\n\"net.ipv4.tcp_wmem\" = \"4096 16384 @\"\n";

const HANDICAPS: [Handicap; 6] = [
    Handicap { name: "none", a: AMPLE, b: AMPLE, window: None },
    Handicap { name: "default", a: "", b: "", window: Some(2.8e6) },
    Handicap {
        name: "xp",
        a: "",
        b: "\"net.ipv4.tcp_window_scaling\" = \"0\"\n\"net.ipv4.tcp_timestamps\" = \"0\"\n\
            \"net.ipv4.tcp_rmem\" = \"4096 31000 31000\"\n",
        window: Some(17_520.0),
    },
    Handicap { name: "shift-0", a: "", b: "\"route 10.80.0.0/24 window\" = \"64512\"\n", window: Some(65_535.0) },
    Handicap { name: "send", a: "\"net.ipv4.tcp_wmem\" = \"4096 16384 77824\"\n", b: "", window: Some(64_000.0) },
    Handicap {
        name: "both",
        a: "\"net.ipv4.tcp_wmem\" = \"4096 16384 77824\"\n",
        b: "\"route 10.80.0.0/24 window\" = \"64512\"\n",
        window: Some(64_000.0),
    },
];

/// A path and what is wrong there.
struct Cell {
    rate: (&'static str, f64),
    rtt_ms: u32,
    handicap: Handicap,
}

/// What came of a cell.
struct Found {
    before: f64,
    after: f64,
    /// The largest buffer that was set, in products.
    memory: Option<f64>,
    seconds: f64,
    changes: usize,
    path_valid: bool,
    lateness: Option<String>,
}

impl Cell {
    fn product(&self) -> f64 {
        self.rate.1 * f64::from(self.rtt_ms) / 8e3
    }

    /// Whether the handicap holds this path below what it can carry.
    fn is_wrong(&self) -> bool {
        self.handicap.window.is_some_and(|window| window < REACHED * PAYLOAD * self.product())
    }

    fn scenario(&self) -> String {
        let ample = (8.0 * self.product()).clamp(6_291_456.0, 1_073_741_824.0) as u64;
        let [a, b] = [self.handicap.a, self.handicap.b].map(|text| text.replace('@', &ample.to_string()));
        // Twelve round trips of slow start, then what is looked at: thirty at least, and so long that CUBIC's first loss and what
        // follows it is a part of it and not the whole.
        let omit = (self.rtt_ms * 12).div_ceil(1_000).max(1);
        let seconds = (self.rtt_ms * 30).div_ceil(1_000).max(4).max(self.recovers_twice_in());
        // Linux holds back a small send buffer as the reference experiment has it only while it paces.
        let pacing =
            if self.handicap.a.contains("77824") { "[a.application]\nmax_pacing_rate = \"2G\"\n\n" } else { "" };
        format!(
            "schema = 1\nname = \"cell\"\nsummary = \"a cell of the grid\"\nseed = 7\n\n[path]\nmtu = 1500\nip = \"v4\"\n\n\
             [[path.hops]]\nname = \"link\"\nrate = \"{}\"\ndelay = \"{}us\"\nqueue = {{ bdp = 1.0, at_least = 64 }}\n\n\
             [a.settings]\n{a}\n{pacing}[b.settings]\n{b}\n[test]\nseconds = {seconds}\nomit = {omit}\ncongestion = \"cubic\"\n\n\
             [expect.\"a->b\"]\nlimiter = \"path\"\nafter = 0.5\n",
            self.rate.0,
            self.rtt_ms * 500,
        )
    }

    /// How long CUBIC takes for two ways back to the window that filled path and queue, at most 30 s: K of RFC 9438, section 4.2, twice.
    fn recovers_twice_in(&self) -> u32 {
        const MOST_S: f64 = 30.0;
        let segments = 2.0 * self.product() / 1_500.0;
        let k_s = (segments * (1.0 - 0.7) / 0.4).cbrt();
        (2.0 * k_s).min(MOST_S).ceil() as u32
    }

    fn run(&self, program: &Path, file: &Path) -> Result<Found> {
        fs::write(file, self.scenario()).with_context(|| format!("write {}", file.display()))?;
        let mut last = None;
        for _ in 0..ATTEMPTS {
            let begun = Instant::now();
            let output = Command::new(program).args(["lab", "run", "--json", "--quiet"]).arg(file).output()?;
            let seconds = begun.elapsed().as_secs_f64();
            let document = Document::read(&String::from_utf8_lossy(&output.stdout), "lab run")?;
            let found = self.found(&document, seconds)?;
            let is_valid = found.path_valid;
            last = Some(found);
            if is_valid {
                break;
            }
        }
        last.context("no run")
    }

    fn found(&self, document: &Document, seconds: f64) -> Result<Found> {
        let rate = |transfers: &[Transfer]| transfers.first().map(|transfer| transfer.bps() / (self.rate.1 * PAYLOAD));
        let before = rate(&document.transfers).context("no transfer came back")?;
        let changes = document.plan.as_ref().map_or(&[][..], |plan| &plan.changes);
        let buffers =
            changes.iter().filter(|change| ["net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"].contains(&&*change.knob));
        let largest = buffers.filter_map(|change| change.to.as_deref()?.split_whitespace().last()?.parse::<f64>().ok());
        Ok(Found {
            before,
            after: rate(&document.transfers_after).unwrap_or(before),
            memory: largest.reduce(f64::max).map(|bytes| bytes / self.product()),
            seconds,
            changes: changes.len(),
            path_valid: document.is_valid(),
            lateness: document.lateness(),
        })
    }
}

/// Runs the cells, prints them, and fails beyond the aims.
pub(super) fn run(shell: &Shell, arguments: &Arguments) -> Result<()> {
    let program = match &arguments.fullpipe {
        Some(program) => std::path::absolute(program)?,
        None => corpus::build(shell)?,
    };
    let own = shell.create_temp_dir()?;
    let file = own.path().join("cell.toml");
    let begun = Instant::now();
    let (mut cells, mut left_out, mut unusable) = (Vec::new(), 0, 0);
    println!("rate  rtt ms  handicap  before   after  buffer / product  changes  seconds");
    for rate in RATES {
        for rtt_ms in ROUND_TRIPS_MS {
            for handicap in HANDICAPS {
                let cell = Cell { rate, rtt_ms, handicap };
                let names: BTreeSet<String> =
                    [rate.0.to_owned(), format!("{rtt_ms}ms"), handicap.name.to_owned()].into();
                if !arguments.only.iter().all(|only| names.contains(only)) {
                    continue;
                }
                if begun.elapsed() > Duration::from_secs(arguments.within) {
                    left_out += 1;
                    continue;
                }
                let found = cell.run(&program, &file)?;
                let percent = |part: f64| format!("{:.1} %", part * 100.0);
                println!(
                    "{:<4}  {rtt_ms:>6}  {:<8}  {:>7} {:>7}  {:>16}  {:>7}  {:>7.1}{}",
                    rate.0,
                    handicap.name,
                    percent(found.before),
                    percent(found.after),
                    found.memory.map_or_else(|| "-".to_owned(), |memory| format!("{memory:.2}")),
                    found.changes,
                    found.seconds,
                    if found.path_valid { String::new() } else { too_slow(found.lateness.as_deref()) },
                );
                if found.path_valid {
                    cells.push((cell, found));
                } else {
                    unusable += 1;
                }
            }
        }
    }
    let names = HANDICAPS.map(|handicap| handicap.name).join(", ");
    ensure!(
        !cells.is_empty() || unusable + left_out > 0,
        "no cell was measured: `--only` takes a rate ({}), a round trip ({}ms) and a handicap ({names})",
        RATES.map(|(name, _)| name).join(", "),
        ROUND_TRIPS_MS.map(|ms| ms.to_string()).join("ms, "),
    );
    ensure!(
        !cells.is_empty(),
        "no cell counts: {unusable} whose path the machine could not keep (a quieter machine may), {left_out} left out for want of time",
    );
    judge(&cells, left_out, unusable)
}

fn too_slow(lateness: Option<&str>) -> String {
    let lateness = lateness.map_or_else(String::new, |lateness| format!(": {lateness}"));
    format!("  the machine could not keep the path{lateness}")
}

fn judge(cells: &[(Cell, Found)], left_out: usize, unusable: usize) -> Result<()> {
    let count = cells.len();
    let reached = cells.iter().filter(|(_, found)| found.after >= REACHED).count();
    // What filled its path before needs nothing.
    let needless =
        cells.iter().filter(|(cell, found)| !cell.is_wrong() && found.before >= REACHED && found.changes > 0).count();
    let mut seconds: Vec<f64> = cells.iter().map(|(_, found)| found.seconds).collect();
    seconds.sort_by(f64::total_cmp);
    let most = cells.iter().filter_map(|(_, found)| found.memory).fold(0.0, f64::max);
    println!(
        "\ncells: {count}; {left_out} left out for want of time, {unusable} whose path the machine could not keep\n\
         at least {:.0} % of the path: {reached} of {count} (aim {:.0} %)\n\
         largest buffer: {most:.2} products, {:.2} of the need (aim {MEMORY})\n\
         changes where nothing was wrong: {needless} (aim 0)\n\
         seconds of a run, proof included: median {:.0}, longest {:.0}",
        REACHED * 100.0,
        IN_CELLS * 100.0,
        most / NEEDED,
        seconds[count / 2],
        seconds[count - 1],
    );
    ensure!(reached as f64 >= IN_CELLS * count as f64, "too few cells reach their path");
    ensure!(most <= MEMORY * NEEDED, "more memory than the path needs");
    ensure!(needless == 0, "something was changed where nothing was wrong");
    Ok(())
}
