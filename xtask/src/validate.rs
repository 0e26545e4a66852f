//! The simulator beside real kernels: the same scenario files through `fullpipe lab run` and `fullpipe sim`.

mod paths;
mod processor;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use clap::Args;
use serde::{Deserialize, Serialize};
use xshell::{Shell, cmd};

use self::{paths::Drawn, processor::Share};
use crate::{corpus, lab_run::Document};

/// The aims: the median and the 90th percentile of the error of goodput, and the part of verdicts that agree.
const MEDIAN: f64 = 0.05;
const P90: f64 = 0.15;
const AGREEMENT: f64 = 0.95;
/// How often a run of the lab is tried that says nothing, before it is taken as it is.
const ATTEMPTS: u32 = 3;
/// Below this part of paths that the lab carried as they are described, there is nothing to say.
const USABLE: f64 = 0.8;

/// Which paths.
#[derive(Args)]
pub(crate) struct Arguments {
    /// How many paths.
    #[arg(long, default_value_t = 40, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    paths: u32,
    /// What they are drawn from: the same seed gives the same paths.
    #[arg(long, default_value_t = 15)]
    seed: u64,
    /// Runs of each path in the lab, each with a seed of its own; the medians are compared.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=99))]
    runs: u32,
    /// Only these of the paths, such as `p003,p017`; the aims are not held against a part.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// One JSON object instead of the table.
    #[arg(long)]
    json: bool,
    /// Keep the scenario files and what the lab measured in this folder; what is there already is not measured again.
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Start no further run of the lab after so many seconds; the paths that are left out are counted.
    #[arg(long, default_value_t = 1_800)]
    within: u64,
    /// Use this `fullpipe` instead of building one.
    #[arg(long, value_name = "FILE")]
    with: Option<PathBuf>,
}

/// What one run found.
#[derive(Clone, Serialize, Deserialize)]
struct Found {
    rate_bps: f64,
    retransmits: u64,
    limiter: String,
    detail: Option<String>,
}

/// One run in the lab.
#[derive(Clone, Serialize, Deserialize)]
struct Measured {
    found: Found,
    /// Whether the path kept its rate and its delay.
    path_valid: bool,
    /// What the hosts got of the processors.
    processor: Share,
    /// The largest window that the receiver was seen to offer.
    offered: Option<u64>,
}

impl Measured {
    /// Whether it says something about the kernel.
    fn is_usable(&self) -> bool {
        self.path_valid && self.processor.is_ample()
    }
}

/// One path, both ways.
#[derive(Serialize)]
struct Compared {
    path: Drawn,
    /// Medians of the runs that can be used; of all, where none can.
    lab: Found,
    sim: Found,
    runs: Vec<Measured>,
    /// The simulated goodput against the measured one: the median of the runs, each against the simulation with its seed,
    /// because which packets are lost decides more of a short run than any model.
    error: f64,
    /// The slowest and the fastest of the runs that can be used: what the lab itself varies by, from run to run.
    spread_bps: (f64, f64),
    /// The part by which the simulated goodput lies outside of that: zero within.
    beyond: f64,
    /// In half of the runs at least.
    agrees: bool,
    /// Whether the lab carried the path as it is described, with hosts that had the processor when they needed it.
    valid: bool,
}

impl Compared {
    /// Whether the lab's own runs say the same.
    fn is_alike(&self) -> bool {
        let mut limiters = self.runs.iter().filter(|run| run.is_usable()).map(|run| &run.found.limiter);
        limiters.next().is_none_or(|first| limiters.all(|limiter| limiter == first))
    }
}

/// All of them.
#[derive(Serialize)]
struct Report {
    seed: u64,
    paths: Vec<Compared>,
    left_out: usize,
    median_error: f64,
    p90_error: f64,
    /// The 90th percentile of what lies outside of the lab's own runs, where there are several of a path.
    p90_beyond: Option<f64>,
    agreement: f64,
}

/// What all comparisons have in common.
struct Asked<'a> {
    shell: &'a Shell,
    program: &'a Path,
    dir: &'a Path,
    runs: u32,
}

/// Runs both, compares, and fails beyond the aims.
pub(crate) fn run(shell: &Shell, arguments: &Arguments) -> Result<()> {
    let program = match &arguments.with {
        Some(program) => program.clone(),
        None => corpus::build(shell)?,
    };
    let own = shell.create_temp_dir()?;
    let dir = arguments.keep.clone().unwrap_or_else(|| own.path().to_owned());
    fs::create_dir_all(&dir).with_context(|| format!("create {}", dir.display()))?;
    if !arguments.json {
        print_head();
    }
    let begun = Instant::now();
    let mut report = Report {
        seed: arguments.seed,
        paths: Vec::new(),
        left_out: 0,
        median_error: 1.0,
        p90_error: 1.0,
        p90_beyond: None,
        agreement: 0.0,
    };
    let is_asked = |drawn: &Drawn| arguments.only.is_empty() || arguments.only.contains(&drawn.name);
    let drawn: Vec<Drawn> = paths::draw(arguments.paths, arguments.seed).into_iter().filter(is_asked).collect();
    if drawn.is_empty() {
        bail!("none of the paths has that name; they are p000 to p{:03}", arguments.paths - 1);
    }
    let asked = Asked { shell, program: &program, dir: &dir, runs: arguments.runs };
    for drawn in drawn {
        let has_time = begun.elapsed() < Duration::from_secs(arguments.within);
        let Some(compared) = compare(&asked, drawn, has_time)? else {
            report.left_out += 1;
            continue;
        };
        if !arguments.json {
            print_line(&compared);
        }
        report.paths.push(compared);
    }
    report.sum_up();
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        report.print();
    }
    if arguments.only.is_empty() { report.judge() } else { Ok(()) }
}

/// One path in the lab and in the simulator; nothing where the lab has no time left for it.
fn compare(asked: &Asked<'_>, drawn: Drawn, has_time: bool) -> Result<Option<Compared>> {
    let mut runs = Vec::new();
    for run in 0..u64::from(asked.runs) {
        let own = Drawn { seed: drawn.seed + run, ..drawn.clone() };
        let scenario = asked.dir.join(format!("{}.{run}.toml", drawn.name));
        let kept = asked.dir.join(format!("{}.{run}.lab.json", drawn.name));
        let text = own.scenario();
        let is_same = fs::read_to_string(&scenario).is_ok_and(|there| there == text);
        fs::write(&scenario, text).with_context(|| format!("write {}", scenario.display()))?;
        let there = if is_same { fs::read_to_string(&kept).ok() } else { None };
        runs.push(match there {
            Some(text) => serde_json::from_str(&text).with_context(|| format!("read {}", kept.display()))?,
            None if !has_time => return Ok(None),
            None => measure(asked.program, &scenario, &kept)?,
        });
    }
    let valid = runs.iter().any(Measured::is_usable);
    let (mut measured, mut simulated, mut errors, mut agreeing) = (Vec::new(), Vec::new(), Vec::new(), 0);
    for (run, lab) in (0_u64..).zip(&runs).filter(|(_, lab)| !valid || lab.is_usable()) {
        let own = Drawn {
            seed: drawn.seed + run,
            ..lab.offered.map_or_else(|| drawn.clone(), |window| drawn.offering(window))
        };
        let (program, scenario) = (asked.program, asked.dir.join(format!("{}.{run}.sim.toml", drawn.name)));
        fs::write(&scenario, own.scenario()).with_context(|| format!("write {}", scenario.display()))?;
        let text = cmd!(asked.shell, "{program} sim {scenario} --json").quiet().ignore_status().read()?;
        let sim = found(&Document::read(&text, "sim")?, "sim")?;
        errors.push(sim.rate_bps / lab.found.rate_bps.max(1.0) - 1.0);
        agreeing += usize::from(sim.limiter == lab.found.limiter);
        measured.push(lab.found.clone());
        simulated.push(sim);
    }
    let agrees = agreeing * 2 >= errors.len();
    errors.sort_by(f64::total_cmp);
    let error = *errors.get((errors.len() - 1) / 2).context("no run in the lab")?;
    let spread_bps = spread(&measured).context("no run in the lab")?;
    let (lab, sim) = (middle(measured).context("no run in the lab")?, middle(simulated).context("no simulation")?);
    let beyond = beyond(sim.rate_bps, spread_bps);
    Ok(Some(Compared { error, spread_bps, beyond, agrees, path: drawn, lab, sim, runs, valid }))
}

/// The slowest and the fastest of several runs.
fn spread(runs: &[Found]) -> Option<(f64, f64)> {
    let rates = || runs.iter().map(|run| run.rate_bps);
    Some((rates().min_by(f64::total_cmp)?, rates().max_by(f64::total_cmp)?))
}

/// By which part of the nearer end a rate lies outside of a spread.
fn beyond(rate_bps: f64, (slowest, fastest): (f64, f64)) -> f64 {
    rate_bps / rate_bps.clamp(slowest, fastest).max(1.0) - 1.0
}

/// The median rate and count of retransmissions, and the most frequent limiter.
fn middle(mut runs: Vec<Found>) -> Option<Found> {
    runs.sort_by(|a, b| a.rate_bps.total_cmp(&b.rate_bps));
    let mut retransmits: Vec<u64> = runs.iter().map(|run| run.retransmits).collect();
    retransmits.sort_unstable();
    let mut limiters: BTreeMap<&str, usize> = BTreeMap::new();
    for run in &runs {
        *limiters.entry(&run.limiter).or_default() += 1;
    }
    let most = limiters.into_iter().max_by_key(|(_, count)| *count)?.0;
    let named = runs.iter().find(|run| run.limiter == most)?;
    Some(Found {
        rate_bps: runs.get((runs.len() - 1) / 2)?.rate_bps,
        retransmits: *retransmits.get((runs.len() - 1) / 2)?,
        limiter: named.limiter.clone(),
        detail: named.detail.clone(),
    })
}

/// In the lab; again where it could not keep up.
fn measure(program: &Path, scenario: &Path, kept: &Path) -> Result<Measured> {
    let mut last = None;
    for _ in 0..ATTEMPTS {
        let mut command = Command::new(program);
        command.args(["lab", "run"]).arg(scenario).args(["--check", "--json"]);
        let (text, processor) = processor::watched(&mut command)?;
        let document = Document::read(&text, "lab")?;
        let path_valid = document.is_valid();
        let offered = document.transfers.first().and_then(|transfer| transfer.seen.as_ref()?.offered_window_bytes);
        let measured = Measured { found: found(&document, "lab")?, path_valid, processor, offered };
        let is_usable = measured.is_usable();
        last = Some(measured);
        if is_usable {
            break;
        }
    }
    let measured = last.context("no run in the lab")?;
    let text = serde_json::to_string_pretty(&measured)?;
    fs::write(kept, text).with_context(|| format!("write {}", kept.display()))?;
    Ok(measured)
}

fn found(document: &Document, which: &str) -> Result<Found> {
    let transfer = document.transfers.first().with_context(|| format!("{which}: no transfer came back"))?;
    Ok(Found {
        rate_bps: transfer.bps(),
        retransmits: transfer.retransmissions.unwrap_or(0),
        limiter: transfer.diagnosis.limiter.clone(),
        detail: transfer.diagnosis.detail.clone(),
    })
}

impl Report {
    fn sum_up(&mut self) {
        let mut errors: Vec<f64> = self.valid().map(|path| path.error.abs()).collect();
        errors.sort_by(f64::total_cmp);
        self.median_error = percentile(&errors, 0.5);
        self.p90_error = percentile(&errors, 0.9);
        if self.has_spreads() {
            let mut beyond: Vec<f64> = self.valid().map(|path| path.beyond.abs()).collect();
            beyond.sort_by(f64::total_cmp);
            self.p90_beyond = Some(percentile(&beyond, 0.9));
        }
        let agreeing = self.valid().filter(|path| path.agrees).count();
        self.agreement = agreeing as f64 / errors.len().max(1) as f64;
    }

    fn valid(&self) -> impl Iterator<Item = &Compared> {
        self.paths.iter().filter(|path| path.valid)
    }

    /// Whether the lab ran paths several times, so that it tells what it varies by.
    fn has_spreads(&self) -> bool {
        self.paths.iter().any(|path| path.runs.len() > 1)
    }

    fn print(&self) {
        let valid = self.valid().count();
        println!(
            "\n{valid} paths; {} not usable (the lab could not keep up, or its hosts lacked the processor)",
            self.paths.len() - valid
        );
        if self.left_out > 0 {
            println!("{} paths left out: the time was over", self.left_out);
        }
        let percent = |part: f64| part * 100.0;
        println!("error of goodput: median {:.1} % (aim {:.0} %)", percent(self.median_error), percent(MEDIAN));
        println!("         90th percentile {:.1} % (aim {:.0} %)", percent(self.p90_error), percent(P90));
        if let Some(p90) = self.p90_beyond {
            let far = || self.valid().filter(|path| path.error.abs() > P90);
            let within = far().filter(|path| path.beyond == 0.0).count();
            println!(
                "         outside of what the lab varies by: 90th percentile {:.1} %; of {} paths that are off by more \
                 than {:.0} %, {within} lie between the lab's own runs",
                percent(p90),
                far().count(),
                percent(P90)
            );
        }
        println!("same verdict: {:.0} % (aim {:.0} %)", percent(self.agreement), percent(AGREEMENT));
        if self.has_spreads() {
            let alike = || self.valid().filter(|path| path.is_alike());
            let same = alike().filter(|path| path.agrees).count();
            println!("         where all runs of the lab say the same: {same} of {}", alike().count());
        }
    }

    fn judge(&self) -> Result<()> {
        let drawn = self.paths.len() + self.left_out;
        if (self.valid().count() as f64) < USABLE * drawn as f64 {
            bail!("only {} of {drawn} paths can be compared; a quieter machine is needed", self.valid().count());
        }
        if self.median_error > MEDIAN || self.p90_error > P90 || self.agreement < AGREEMENT {
            bail!("the simulator is further from the kernel than the aims allow");
        }
        Ok(())
    }
}

/// The smallest value that at least `part` of all are not above.
fn percentile(sorted: &[f64], part: f64) -> f64 {
    let rank = (sorted.len() as f64 * part).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(1.0)
}

fn print_head() {
    println!(
        "{:<6} {:>8} {:>8} {:>6} {:>6} {:<22} {:<5}  {:>8} {:>8} {:>7} {:>6} {:>6}  verdicts",
        "path", "Mbit/s", "RTT ms", "loss%", "queue", "windows", "cc", "lab", "sim", "error", "retr", "retr"
    );
}

fn print_line(compared: &Compared) {
    let Compared { path, lab, sim, runs, error, spread_bps, agrees, valid, .. } = compared;
    let verdict = |found: &Found| match &found.detail {
        Some(detail) => format!("{}/{detail}", found.limiter),
        None => found.limiter.clone(),
    };
    let verdicts = if verdict(lab) == verdict(sim) {
        verdict(lab)
    } else {
        format!("{} {} {}", verdict(lab), if *agrees { "~" } else { "<>" }, verdict(sim))
    };
    let spread = if runs.iter().filter(|run| !valid || run.is_usable()).count() > 1 {
        format!("; the lab {:.2} to {:.2}", spread_bps.0 / 1e6, spread_bps.1 / 1e6)
    } else {
        String::new()
    };
    println!(
        "{:<6} {:>8.1} {:>8.1} {:>6.2} {:>6.2} {:<22} {:<5}  {:>8.2} {:>8.2} {:>+6.1}% {:>6} {:>6}  {verdicts}{spread}{}",
        path.name,
        path.rate_bps as f64 / 1e6,
        path.rtt_us as f64 / 1e3,
        path.loss * 100.0,
        path.queue,
        path.windows.to_string(),
        path.congestion,
        lab.rate_bps / 1e6,
        sim.rate_bps / 1e6,
        error * 100.0,
        lab.retransmits,
        sim.retransmits,
        if *valid { "" } else { " (lab not valid)" }
    );
    for run in runs.iter().filter(|run| !run.is_usable()) {
        println!(
            "       not usable: {:.2} Mbit/s; the path {}; threads waited {:.1} % of the time, the busiest ran {:.0} %",
            run.found.rate_bps / 1e6,
            if run.path_valid { "kept its plan" } else { "was late" },
            run.processor.waiting * 100.0,
            run.processor.running * 100.0
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_several_runs_is_taken() {
        let run = |rate_bps, retransmits, limiter: &str| Found {
            rate_bps,
            retransmits,
            limiter: limiter.to_owned(),
            detail: None,
        };
        let runs = vec![run(3.0, 9, "path"), run(1.0, 1, "path"), run(2.0, 4, "application")];
        let middle = middle(runs).unwrap();
        assert_eq!((middle.rate_bps as u32, middle.retransmits, middle.limiter.as_str()), (2, 4, "path"));
    }

    #[test]
    fn a_rate_between_the_runs_of_the_lab_is_not_beyond_them() {
        let spread = (20.0, 40.0);
        let found = [10.0, 20.0, 30.0, 40.0, 50.0].map(|rate| beyond(rate, spread));
        assert_eq!(found.map(|part| (part * 100.0) as i32), [-50, 0, 0, 0, 25]);
        assert_eq!(found[2].to_bits(), 0.0_f64.to_bits());
    }

    #[test]
    fn a_percentile_is_one_of_the_values() {
        let four = [1.0, 2.0, 3.0, 4.0];
        let found = [0.25, 0.5, 0.9].map(|part| percentile(&four, part) as u32);
        assert_eq!(found, [1, 2, 4]);
    }
}
