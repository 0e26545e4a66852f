//! `fullpipe what-if`.

use std::{
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    thread,
};

use fullpipe_report::{PredictionRow, WhatIf, json, text};
use fullpipe_sim::{HostSpec, PLATFORMS, Prediction, Range, SimError, Spec, knob, plateau, platform, predict};
use fullpipe_units::{Bytes, Micros, Rate};

use super::{Ended, printed};
use crate::{args::WhatIfArgs, exit::Exit, failure::Failure, output::Output};

/// What every prediction rests on.
pub(super) const NOTE: &str = "a prediction: the TCP engine over a made path in virtual time; nothing was measured";
/// The most virtual payload of all points of a sweep together, in bytes: about an hour of one processor.
const MOST_WORK: f64 = 2e13;

type Settings = Vec<(String, String)>;

pub(super) fn run(args: &WhatIfArgs, output: Output) -> Ended {
    if args.set.iter().any(|set| set == "help") || args.from == "help" || args.to == "help" {
        return printed(output.page("what-if", &help()));
    }
    let spec = spec(args)?;
    let sets = args.set.iter().map(|set| settings(set)).collect::<Result<Vec<_>, _>>()?;
    let mut found = WhatIf { situation: situation(args), seed: args.seed, notes: notes(args)?, ..WhatIf::default() };
    if let Some(sweep) = &args.sweep {
        let range = Range::parse(sweep, args.points)?;
        let work = range.values.len() as f64 * args.rate.bps() as f64 / 8.0 * args.seconds.as_secs_f64();
        if work > MOST_WORK && args.bytes.is_none() {
            let message = "the sweep is too large: it would carry more than 20 TB; give fewer --points or --seconds";
            return Err(Failure::new(Exit::Usage, message));
        }
        // What is set besides holds for every point.
        let common: Settings = sets.into_iter().flatten().collect();
        let with = |value: &u64| common.iter().cloned().chain([range.setting(*value)]).collect();
        let points: Vec<Settings> = range.values.iter().map(with).collect();
        found.predictions = all(&Spec { series: true, ..spec }, &points)?;
        for (row, value) in found.predictions.iter_mut().zip(&range.values) {
            row.value = Some(written(&range.key, *value));
        }
        let rates: Vec<Rate> = found.predictions.iter().map(|row| row.rate).collect();
        found.plateau = plateau(&rates).map(|place| (range.key.clone(), place));
    } else {
        let points: Vec<Settings> = [Vec::new()].into_iter().chain(sets).collect();
        found.predictions = all(&spec, &points)?;
    }
    printed(output.result(|| json::what_if("what-if", &found), |look| text::what_if(&found, look)))?;
    Ok(Exit::Ok)
}

fn spec(args: &WhatIfArgs) -> Result<Spec, SimError> {
    let loss = knob::fraction("--loss", &args.loss)?;
    let path = knob::path(args.rate, args.rtt, loss, knob::queue(&args.queue)?)?;
    let mut spec = Spec::new(path, HostSpec::of(&args.from)?, HostSpec::of(&args.to)?);
    // The same bounds as by --set.
    knob::set(&mut spec, "path.rtt", &format!("{}us", args.rtt.get()))?;
    (spec.seed, spec.bytes, spec.time) = (args.seed, args.bytes, args.seconds);
    Ok(spec)
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
fn all(spec: &Spec, points: &[Settings]) -> Result<Vec<PredictionRow>, SimError> {
    let workers = thread::available_parallelism().map_or(1, usize::from).min(points.len());
    let next = AtomicUsize::new(0);
    let made = thread::scope(|scope| {
        let work = || {
            let mut made = Vec::new();
            loop {
                let place = next.fetch_add(1, Relaxed);
                let Some(set) = points.get(place) else { return made };
                made.push((place, predict(spec, set)));
            }
        };
        let started: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        let joined = started.into_iter().map(|worker| worker.join().unwrap_or_else(|e| std::panic::resume_unwind(e)));
        joined.flatten().collect::<Vec<_>>()
    });
    let mut made = made;
    made.sort_by_key(|(place, _)| *place);
    made.into_iter().map(|(_, prediction)| prediction.map(row)).collect()
}

/// As the report shows it.
pub(super) fn row(prediction: Prediction) -> PredictionRow {
    PredictionRow {
        direction: None,
        set: prediction.set,
        value: None,
        rate: prediction.rate,
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

fn situation(args: &WhatIfArgs) -> String {
    let loss = if args.loss == "0" { String::new() } else { format!(", loss {}", args.loss) };
    format!("{} over {}{loss}, queue {}, from {} to {}", args.rate, args.rtt, args.queue, args.from, args.to)
}

fn notes(args: &WhatIfArgs) -> Result<Vec<String>, SimError> {
    let mut notes = vec![NOTE.to_owned()];
    let mut names = vec![&args.from, &args.to];
    names.dedup();
    for name in names {
        let known = platform(name)?;
        if !known.verified {
            notes.push(format!("not every figure of {} was confirmed: {}", known.name, known.source));
        }
    }
    Ok(notes)
}

fn help() -> String {
    let mut text = String::from("Settings:\n");
    for knob in knob::KNOBS {
        text += &format!("  {:<24} {}\n", knob.key, knob.meaning);
    }
    text += "\nPlatforms:\n";
    for platform in PLATFORMS {
        let mark = if platform.verified { "" } else { " (not every figure confirmed)" };
        text += &format!("  {:<24} {}{mark}\n", platform.name, platform.source);
    }
    text
}
