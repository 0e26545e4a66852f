//! `fullpipe what-if`.

mod base;
pub(super) mod page;

use std::{
    sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    thread,
};

use fullpipe_path::Direction;
use fullpipe_report::{
    PredictionRow, WhatIf,
    html::Charts,
    json,
    text::{self, Look},
};
use fullpipe_sim::{PLATFORMS, Prediction, Range, SimError, Spec, knob, plateau, predict};
use fullpipe_units::{Bytes, Micros, Rate};
use serde_json::Value;

use self::base::Base;
use super::{Ended, printed};
use crate::{args::WhatIfArgs, exit::Exit, failure::Failure, output::Output};

/// What every prediction rests on.
pub(super) const NOTE: &str =
    "a prediction: the TCP engine over an emulated path in virtual time; nothing was measured";
/// What one rests on that begins with a measurement.
const SEEN_NOTE: &str =
    "a prediction: the TCP engine over an emulated path in virtual time, with the path as in the file";
/// The most virtual payload of all points of a sweep together, in bytes: about an hour of one processor.
const MOST_WORK: f64 = 2e13;

type Settings = Vec<(String, String)>;

pub(super) fn run(args: &WhatIfArgs, output: Output) -> Ended {
    args.page.check()?;
    let is_help = |name: &Option<String>| name.as_deref() == Some("help");
    if args.set.iter().any(|set| set == "help") || is_help(&args.from) || is_help(&args.to) {
        let help = help();
        let document = || json::page("what-if", &text::lists(&help, Look::default()));
        return printed(output.result(document, |look| text::lists(&help, look)));
    }
    if args.open || args.interactive.is_some() {
        return page::run(args, output);
    }
    let found = found(args, &AtomicBool::new(false))?;
    args.page.result(
        output,
        || json::what_if("what-if", &found),
        Charts::default,
        |look| text::what_if(&found, look),
    )?;
    Ok(Exit::Ok)
}

/// What `--json` prints of the predictions, unless it is told to stop first.
pub(crate) fn document(args: &WhatIfArgs, stop: &AtomicBool) -> Result<Value, Failure> {
    found(args, stop).map(|found| json::what_if("what-if", &found))
}

fn found(args: &WhatIfArgs, stop: &AtomicBool) -> Result<WhatIf, Failure> {
    let sets = args.set.iter().map(|set| settings(set)).collect::<Result<Vec<_>, _>>()?;
    let bases = base::all(args)?;
    let note = if args.seen.is_some() { SEEN_NOTE } else { NOTE };
    let mut found = WhatIf { seed: args.seed, notes: vec![note.to_owned()], ..WhatIf::default() };
    let mut situations: Vec<&str> = bases.iter().map(|base| base.situation.as_str()).collect();
    situations.dedup();
    found.situation = situations.join("; ");
    for base in &bases {
        let named = |note: &String| match &base.direction {
            Some(direction) if bases.len() > 1 => format!("{direction}: {note}"),
            _ => note.clone(),
        };
        found.notes.extend(base.notes.iter().map(named));
    }
    match (&args.sweep, bases.as_slice()) {
        (Some(sweep), [base]) => swept(args, sweep, sets, base, &mut found, stop)?,
        (Some(_), _) => {
            let names: Vec<_> = bases.iter().filter_map(|base| base.direction.as_deref()).collect();
            let message = format!(
                "a sweep is for one direction, and the file has {}; add --direction \"{}\"",
                names.join(", "),
                names.first().unwrap_or(&"a->b")
            );
            return Err(Failure::new(Exit::Usage, &message));
        }
        (None, _) => {
            let points: Vec<Settings> = [Vec::new()].into_iter().chain(sets).collect();
            for base in &bases {
                let mut rows = all(&base.spec, &points, stop)?;
                if let Some(first) = rows.first_mut() {
                    first.measured = base.measured;
                }
                rows.iter_mut().for_each(|row| row.direction.clone_from(&base.direction));
                found.predictions.extend(rows);
            }
        }
    }
    Ok(found)
}

fn swept(
    args: &WhatIfArgs,
    sweep: &str,
    sets: Vec<Settings>,
    base: &Base,
    found: &mut WhatIf,
    stop: &AtomicBool,
) -> Result<(), Failure> {
    let range = Range::parse(sweep, args.points)?;
    let rate = base.spec.path.bottleneck(Direction::AToB).unwrap_or_default();
    let work = range.values.len() as f64 * rate.bps() as f64 / 8.0 * base.spec.time.as_secs_f64();
    if work > MOST_WORK && args.bytes.is_none() {
        let message = "the sweep is too large: it would carry more than 20 TB; give fewer --points or --seconds";
        return Err(Failure::new(Exit::Usage, message));
    }
    // What is set besides holds for every point.
    let common: Settings = sets.into_iter().flatten().collect();
    let with = |value: &u64| common.iter().cloned().chain([range.setting(*value)]).collect();
    let points: Vec<Settings> = range.values.iter().map(with).collect();
    // A value that can't be is refused before the others take their time.
    for point in &points {
        knob::with(&base.spec, point)?;
    }
    found.predictions = all(&Spec { series: true, ..base.spec.clone() }, &points, stop)?;
    for (row, value) in found.predictions.iter_mut().zip(&range.values) {
        row.value = Some(written(&range.key, *value));
        row.direction.clone_from(&base.direction);
    }
    let rates: Vec<Rate> = found.predictions.iter().map(|row| row.rate).collect();
    found.plateau = plateau(&rates).map(|place| (range.key.clone(), place));
    Ok(())
}

fn settings(text: &str) -> Result<Settings, Failure> {
    text.split(',')
        .map(|one| match one.split_once('=') {
            Some((key, value)) => Ok((key.trim().to_owned(), value.trim().to_owned())),
            None => Err(Failure::new(
                Exit::Usage,
                &format!("{one:?} is no setting: KEY=VALUE is; `fullpipe what-if --set help` lists them"),
            )),
        })
        .collect()
}

/// One prediction for each point, shared out over the processors; their order is that of the points.
fn all(spec: &Spec, points: &[Settings], stop: &AtomicBool) -> Result<Vec<PredictionRow>, Failure> {
    let workers = thread::available_parallelism().map_or(1, usize::from).min(points.len());
    let next = AtomicUsize::new(0);
    let made = thread::scope(|scope| {
        let work = || {
            let mut made = Vec::new();
            loop {
                let place = next.fetch_add(1, Relaxed);
                let Some(set) = points.get(place).filter(|_| !stop.load(Relaxed)) else { return made };
                made.push((place, predict(spec, set)));
            }
        };
        let started: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        let joined = started.into_iter().map(|worker| worker.join().unwrap_or_else(|e| std::panic::resume_unwind(e)));
        joined.flatten().collect::<Vec<_>>()
    });
    if stop.load(Relaxed) {
        return Err(Failure::new(Exit::Interrupted, "stopped before all points were simulated"));
    }
    let mut made = made;
    made.sort_by_key(|(place, _)| *place);
    let rows: Result<_, SimError> = made.into_iter().map(|(_, prediction)| prediction.map(row)).collect();
    Ok(rows?)
}

/// As the report shows it.
pub(super) fn row(prediction: Prediction) -> PredictionRow {
    PredictionRow {
        direction: None,
        set: prediction.set,
        value: None,
        rate: prediction.rate,
        measured: None,
        limiter: prediction.limiter,
        detail: prediction.detail,
        truth: prediction.truth,
        seconds: prediction.seconds,
        retransmits: prediction.retransmits,
        queue_delay_us: prediction.queue_delay.get(),
        memory_bytes: prediction.memory.get(),
        failure: prediction.failure,
    }
}

fn written(key: &str, value: u64) -> String {
    match knob::find(key).map(|knob| knob.kind) {
        Ok(knob::Kind::Size | knob::Kind::Queue) => Bytes::new(value).to_string(),
        Ok(knob::Kind::Rate) => Rate::from_bps(value).to_string(),
        Ok(knob::Kind::Time) => Micros::new(value).to_string(),
        _ => value.to_string(),
    }
}

/// The settings and the platforms by name.
fn help() -> [(&'static str, Vec<(String, String)>); 2] {
    let settings = knob::KNOBS.iter().map(|knob| (knob.key.to_owned(), knob.meaning.to_owned()));
    let platforms = PLATFORMS.iter().map(|platform| {
        let mark = if platform.verified { "" } else { " (not every figure confirmed)" };
        (platform.name.to_owned(), format!("{}{mark}", platform.source))
    });
    [("Settings", settings.collect()), ("Platforms", platforms.collect())]
}
