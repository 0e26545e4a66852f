//! Random simulated transfers, judged from three places, against what the engine knows to have limited them:
//! `cargo xtask corpus --sim N`. Arguments: how many, the first seed, how many threads, and a folder
//! for what was judged wrongly (captures of both ends and the live verdict), if anybody wants it.

mod draw;

use std::{
    collections::BTreeMap,
    error::Error,
    fmt, fs,
    path::{Path, PathBuf},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use fullpipe_capture::{Keep, Reader, Tracker};
use fullpipe_diagnose::{Confidence, Detail, Diagnosis, Limiter};
use fullpipe_path::Direction;
use fullpipe_sim::{Capture, Outcome, run};

use self::draw::{Drawn, draw};

/// A transfer has a label where one limiter held it for this part of the time.
const LABEL: f64 = 0.75;
const VIEWS: [&str; 3] = ["live view", "sender's capture", "receiver's capture"];
/// Failing seeds that are named, of each kind.
const NAMED: usize = 6;

/// What holds a transfer. A full path and a policer are told apart: whoever is told of a policer complains to its operator.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Holder {
    limiter: Limiter,
    is_policer: bool,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_policer { f.pad("policer") } else { f.pad(&self.limiter.to_string()) }
    }
}

/// A view, the truth, the verdict, and the family.
type Miss = (usize, Holder, Holder, &'static str);

#[derive(Default)]
struct Tally {
    /// By view, truth and verdict.
    counts: [BTreeMap<(Holder, Holder), u64>; 3],
    /// By view, truth, verdict and family: seeds with their words.
    wrong: BTreeMap<Miss, Vec<(u64, String)>>,
    /// By view: verdicts called high, and those of them that are wrong.
    sure: [[u64; 2]; 3],
    labelled: u64,
    ambiguous: u64,
    failed: Vec<(u64, String)>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |name: &str| -> Result<u64, Box<dyn Error>> {
        Ok(arguments.next().ok_or_else(|| format!("{name} is missing"))?.parse()?)
    };
    let (count, first, threads) = (number("the number")?, number("the first seed")?, number("the number of threads")?);
    let folder = arguments.next().map(PathBuf::from);
    let next = AtomicU64::new(first);
    let tally = Mutex::new(Tally::default());
    thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + count {
                        break;
                    }
                    one(seed, &tally, folder.as_deref());
                }
            });
        }
    });
    print(&mut tally.into_inner().unwrap_or_else(PoisonError::into_inner));
    Ok(())
}

/// One situation, simulated and judged.
fn one(seed: u64, tally: &Mutex<Tally>, folder: Option<&Path>) {
    let done = draw(seed).and_then(|drawn| run(&drawn.spec).map(|outcome| (drawn, outcome)));
    let (drawn, outcome) = match done {
        Ok(done) => done,
        Err(error) => return locked(tally).failed.push((seed, error.to_string())),
    };
    let Some(truth) = outcome.truth.limiter().filter(|truth| outcome.truth.limited(*truth) >= LABEL) else {
        locked(tally).ambiguous += 1;
        return;
    };
    let is_policed = drawn.spec.path.policer(Direction::AToB).is_some();
    let truth = Holder { limiter: truth, is_policer: truth == Limiter::Path && is_policed };
    let verdicts = [
        Some(outcome.diagnosis()),
        of_capture(outcome.capture.as_ref()),
        of_capture(outcome.receiver_capture.as_ref()),
    ]
    .map(|diagnosis| diagnosis.map_or((NOBODY, false), sureness));
    if let Some(folder) = folder.filter(|_| verdicts.iter().any(|verdict| verdict.0 != truth))
        && let Err(error) = keep(folder, seed, &drawn, &outcome, truth)
    {
        eprintln!("seed {seed}: {}: {error}", folder.display());
    }
    note(&mut locked(tally), seed, &drawn, &outcome, truth, verdicts);
}

const NOBODY: Holder = Holder { limiter: Limiter::InsufficientEvidence, is_policer: false };

/// What is wanted to find the reason of a wrong verdict.
fn keep(folder: &Path, seed: u64, drawn: &Drawn, outcome: &Outcome, truth: Holder) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    let words = format!("{}: {}\ntruth: {truth}\nlive: {:#?}\n", drawn.family, drawn.words, outcome.diagnosis());
    fs::write(folder.join(format!("{seed}-live.txt")), words)?;
    for (end, capture) in [("sender", &outcome.capture), ("receiver", &outcome.receiver_capture)] {
        if let Some(capture) = capture {
            fs::write(folder.join(format!("{seed}-{end}.pcap")), capture.to_pcap())?;
        }
    }
    Ok(())
}

/// The verdict, and whether it is called sure.
fn sureness(diagnosis: Diagnosis) -> (Holder, bool) {
    let Diagnosis { limiter, detail, confidence, .. } = diagnosis;
    (Holder { limiter, is_policer: detail == Some(Detail::Policed) }, confidence == Confidence::High)
}

fn note(tally: &mut Tally, seed: u64, drawn: &Drawn, outcome: &Outcome, truth: Holder, verdicts: [(Holder, bool); 3]) {
    tally.labelled += 1;
    for (view, (verdict, is_sure)) in verdicts.into_iter().enumerate() {
        tally.sure[view][0] += u64::from(is_sure);
        tally.sure[view][1] += u64::from(is_sure && verdict != truth);
        *tally.counts[view].entry((truth, verdict)).or_default() += 1;
        if verdict != truth {
            let words = format!("{} (truth {:.0} %)", drawn.words, outcome.truth.limited(truth.limiter) * 100.0);
            tally.wrong.entry((view, truth, verdict, drawn.family)).or_default().push((seed, words));
        }
    }
}

fn locked(tally: &Mutex<Tally>) -> std::sync::MutexGuard<'_, Tally> {
    tally.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the judge says of a capture, read as a file.
fn of_capture(capture: Option<&Capture>) -> Option<Diagnosis> {
    let file = capture?.to_pcap();
    let mut tracker = Tracker::new(1, Keep::default());
    let mut reader = Reader::new();
    let used = reader.read(&file, &mut tracker).ok()?;
    reader.finish(&file[used..], &mut tracker).ok()?;
    let found = tracker.finish();
    let report = found.connections.get(0)?;
    Some(report.main_side().verdict.as_ref()?.diagnosis.clone())
}

fn print(tally: &mut Tally) {
    println!(
        "{} transfers with one limiter for {:.0} % of their time, {} without, {} not possible",
        tally.labelled,
        LABEL * 100.0,
        tally.ambiguous,
        tally.failed.len()
    );
    for (view, name) in VIEWS.iter().enumerate() {
        let counts = &tally.counts[view];
        let right: u64 = counts.iter().filter(|((truth, verdict), _)| truth == verdict).map(|(_, count)| count).sum();
        let silent = |((_, verdict), _): &(&(Holder, Holder), &u64)| *verdict == NOBODY;
        let silent: u64 = counts.iter().filter(silent).map(|(_, count)| count).sum();
        let all = tally.labelled.max(1) as f64;
        println!(
            "\n{name}: {:.1} % right, {:.1} % without a verdict; {} called high, {} of them wrong",
            right as f64 * 100.0 / all,
            silent as f64 * 100.0 / all,
            tally.sure[view][0],
            tally.sure[view][1]
        );
        for truth in counts.keys().map(|(truth, _)| *truth).collect::<std::collections::BTreeSet<_>>() {
            let row = counts.iter().filter(|((own, _), _)| *own == truth);
            let row: Vec<String> = row.map(|((_, verdict), count)| format!("{verdict} {count}")).collect();
            println!("  truth {:<18} {}", truth.to_string(), row.join(", "));
        }
    }
    println!("\nverdicts that differ from the truth:");
    for ((view, truth, verdict, family), seeds) in &mut tally.wrong {
        seeds.sort_unstable();
        println!("  {}, {family}: {truth} taken for {verdict}, {} times", VIEWS[*view], seeds.len());
        for (seed, words) in seeds.iter().take(NAMED) {
            println!("    seed {seed}: {words}");
        }
    }
    tally.failed.sort_unstable();
    for (seed, error) in tally.failed.iter().take(NAMED) {
        println!("  seed {seed} can't be simulated: {error}");
    }
}
