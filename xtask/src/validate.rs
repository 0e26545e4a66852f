//! The simulator beside real kernels: the same scenario files through `fullpipe lab run` and `fullpipe sim`.

mod paths;

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use clap::Args;
use serde::{Deserialize, Serialize};
use xshell::{Shell, cmd};

use self::paths::Drawn;
use crate::corpus;

/// The aims: the median and the 90th percentile of the error of goodput, and the part of verdicts that agree.
const MEDIAN: f64 = 0.05;
const P90: f64 = 0.15;
const AGREEMENT: f64 = 0.95;
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
    #[arg(long, default_value_t = 480)]
    within: u64,
    /// Use this `fullpipe` instead of building one.
    #[arg(long, value_name = "FILE")]
    with: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Document {
    #[serde(default)]
    transfers: Vec<Transfer>,
    path_valid: Option<bool>,
    error: Option<Problem>,
}

#[derive(Deserialize)]
struct Problem {
    message: String,
}

#[derive(Deserialize)]
struct Transfer {
    rate_bps: f64,
    steady_bps: Option<f64>,
    #[serde(rename = "retransmissions")]
    retransmits: Option<u64>,
    diagnosis: Diagnosis,
}

#[derive(Deserialize)]
struct Diagnosis {
    limiter: String,
    detail: Option<String>,
}

/// What one of the two found.
#[derive(Serialize)]
struct Found {
    rate_bps: f64,
    retransmits: u64,
    limiter: String,
    detail: Option<String>,
}

/// One path, both ways.
#[derive(Serialize)]
struct Compared {
    path: Drawn,
    lab: Found,
    sim: Found,
    /// The simulated goodput against the measured one.
    error: f64,
    agrees: bool,
    /// Whether the lab carried the path as it is described.
    valid: bool,
}

/// All of them.
#[derive(Serialize)]
struct Report {
    seed: u64,
    paths: Vec<Compared>,
    left_out: usize,
    median_error: f64,
    p90_error: f64,
    agreement: f64,
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
        agreement: 0.0,
    };
    let is_asked = |drawn: &Drawn| arguments.only.is_empty() || arguments.only.contains(&drawn.name);
    let drawn: Vec<Drawn> = paths::draw(arguments.paths, arguments.seed).into_iter().filter(is_asked).collect();
    if drawn.is_empty() {
        bail!("none of the paths has that name; they are p000 to p{:03}", arguments.paths - 1);
    }
    for drawn in drawn {
        let has_time = begun.elapsed() < Duration::from_secs(arguments.within);
        let Some(compared) = compare(shell, &program, &dir, drawn, has_time)? else {
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
fn compare(shell: &Shell, program: &Path, dir: &Path, drawn: Drawn, has_time: bool) -> Result<Option<Compared>> {
    let scenario = dir.join(format!("{}.toml", drawn.name));
    let kept = dir.join(format!("{}.lab.json", drawn.name));
    let text = drawn.scenario();
    let is_same = fs::read_to_string(&scenario).is_ok_and(|there| there == text);
    fs::write(&scenario, text).with_context(|| format!("write {}", scenario.display()))?;
    let there = if is_same { fs::read_to_string(&kept).ok() } else { None };
    let lab = match there {
        Some(text) => read(&text)?,
        None if !has_time => return Ok(None),
        None => measure(shell, program, &scenario, &kept)?,
    };
    let sim = read(&cmd!(shell, "{program} sim {scenario} --json").quiet().ignore_status().read()?)?;
    let valid = lab.path_valid == Some(true);
    let (lab, sim) = (found(lab, "lab")?, found(sim, "sim")?);
    Ok(Some(Compared {
        error: sim.rate_bps / lab.rate_bps.max(1.0) - 1.0,
        agrees: lab.limiter == sim.limiter,
        path: drawn,
        lab,
        sim,
        valid,
    }))
}

/// In the lab; once more where it could not keep up.
fn measure(shell: &Shell, program: &Path, scenario: &Path, kept: &Path) -> Result<Document> {
    let once = || cmd!(shell, "{program} lab run {scenario} --check --json").quiet().ignore_status().read();
    let mut text = once()?;
    let mut document = read(&text)?;
    if document.path_valid == Some(false) {
        text = once()?;
        document = read(&text)?;
    }
    if document.error.is_none() {
        fs::write(kept, text).with_context(|| format!("write {}", kept.display()))?;
    }
    Ok(document)
}

fn read(text: &str) -> Result<Document> {
    serde_json::from_str(text).context("the program's JSON is not what was expected")
}

fn found(document: Document, which: &str) -> Result<Found> {
    if let Some(error) = document.error {
        bail!("{which}: {}", error.message);
    }
    let transfer = document.transfers.into_iter().next().with_context(|| format!("{which}: no transfer came back"))?;
    Ok(Found {
        rate_bps: transfer.steady_bps.unwrap_or(transfer.rate_bps),
        retransmits: transfer.retransmits.unwrap_or(0),
        limiter: transfer.diagnosis.limiter,
        detail: transfer.diagnosis.detail,
    })
}

impl Report {
    fn sum_up(&mut self) {
        let mut errors: Vec<f64> = self.valid().map(|path| path.error.abs()).collect();
        errors.sort_by(f64::total_cmp);
        self.median_error = percentile(&errors, 0.5);
        self.p90_error = percentile(&errors, 0.9);
        let agreeing = self.valid().filter(|path| path.agrees).count();
        self.agreement = agreeing as f64 / errors.len().max(1) as f64;
    }

    fn valid(&self) -> impl Iterator<Item = &Compared> {
        self.paths.iter().filter(|path| path.valid)
    }

    fn print(&self) {
        let valid = self.valid().count();
        println!("\n{valid} paths; {} not usable (the lab could not keep up)", self.paths.len() - valid);
        if self.left_out > 0 {
            println!("{} paths left out: the time was over", self.left_out);
        }
        let percent = |part: f64| part * 100.0;
        println!("error of goodput: median {:.1} % (aim {:.0} %)", percent(self.median_error), percent(MEDIAN));
        println!("         90th percentile {:.1} % (aim {:.0} %)", percent(self.p90_error), percent(P90));
        println!("same verdict: {:.0} % (aim {:.0} %)", percent(self.agreement), percent(AGREEMENT));
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
    let Compared { path, lab, sim, error, agrees, valid } = compared;
    let verdict = |found: &Found| match &found.detail {
        Some(detail) => format!("{}/{detail}", found.limiter),
        None => found.limiter.clone(),
    };
    let verdicts = if verdict(lab) == verdict(sim) {
        verdict(lab)
    } else {
        format!("{} {} {}", verdict(lab), if *agrees { "~" } else { "<>" }, verdict(sim))
    };
    println!(
        "{:<6} {:>8.1} {:>8.1} {:>6.2} {:>6.2} {:<22} {:<5}  {:>8.2} {:>8.2} {:>+6.1}% {:>6} {:>6}  {verdicts}{}",
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_one_of_the_values() {
        let four = [1.0, 2.0, 3.0, 4.0];
        let found = [0.25, 0.5, 0.9].map(|part| percentile(&four, part) as u32);
        assert_eq!(found, [1, 2, 4]);
    }
}
