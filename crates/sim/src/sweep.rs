//! "What if": a prediction for each set of settings, and the smallest value that is as good as any larger one.

use fullpipe_diagnose::{Detail, Limiter};
use fullpipe_units::{Bytes, Micros, Rate};

use crate::{
    knob::{self, Kind},
    spec::{SimError, Spec},
    world,
};

/// The most points of a sweep.
const MOST_POINTS: usize = 10_000;
/// A value is on the plateau from this part of the best rate on: less than the step from one point to the next.
const PLATEAU: f64 = 0.97;

/// What is to be expected with some settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// The settings, `key=value` each.
    pub set: Vec<String>,
    /// Payload rate.
    pub rate: Rate,
    /// What limits it.
    pub limiter: Limiter,
    /// How.
    pub detail: Option<Detail>,
    /// What the engine knows to limit it.
    pub truth: Option<Limiter>,
    /// How long the transfer takes; absent without a number of bytes, or where it isn't over in time.
    pub seconds: Option<f64>,
    /// Segments retransmitted.
    pub retransmits: u64,
    /// Mean wait in the queue of the bottleneck.
    pub queue_delay: Micros,
    /// Payload that both hosts held at most.
    pub memory: Bytes,
    /// Why the connection ended early, if it did.
    pub failure: Option<String>,
}

/// Predicts what comes of `spec` with these settings.
///
/// # Errors
/// A setting is unknown or can't be, or the connection can't be opened.
pub fn predict(spec: &Spec, set: &[(String, String)]) -> Result<Prediction, SimError> {
    let spec = knob::with(spec, set)?;
    let outcome = world::run(&spec)?;
    let diagnosis = outcome.diagnosis();
    Ok(Prediction {
        set: set.iter().map(|(key, value)| format!("{key}={value}")).collect(),
        rate: outcome.rate(),
        limiter: diagnosis.limiter,
        detail: diagnosis.detail,
        truth: outcome.truth.limiter(),
        seconds: spec.bytes.and(outcome.finished).map(Micros::as_secs_f64),
        retransmits: outcome.retransmits,
        queue_delay: outcome.queue_delay,
        memory: outcome.memory,
        failure: outcome.failure,
    })
}

/// A setting and the values that it is tried with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range {
    /// `receiver.window`.
    pub key: String,
    /// From the smallest to the largest.
    pub values: Vec<u64>,
    suffix: &'static str,
}

impl Range {
    /// Reads `receiver.window=16k..8M`, in `points` steps of the same ratio; whole numbers that are few are all tried.
    ///
    /// # Errors
    /// It is no range of a setting that has an order, or it has too many points.
    pub fn parse(text: &str, points: usize) -> Result<Self, SimError> {
        let wrong = |reason: &str| SimError::value("--sweep", text, reason);
        let (key, range) = text.split_once('=').ok_or_else(|| wrong("expected KEY=FROM..TO"))?;
        let knob = knob::find(key)?;
        let (from, to) = range.split_once("..").ok_or_else(|| wrong("expected KEY=FROM..TO"))?;
        if !(2..=MOST_POINTS).contains(&points) {
            return Err(SimError::value("--points", points, format!("a sweep has from 2 to {MOST_POINTS} points")));
        }
        let read = |text: &str| {
            let value = match knob.kind {
                Kind::Size | Kind::Queue => text.parse::<Bytes>().map(Bytes::get).map_err(|error| error.to_string()),
                Kind::Rate => text.parse::<Rate>().map(Rate::bps).map_err(|error| error.to_string()),
                Kind::Time => text.parse::<Micros>().map(Micros::get).map_err(|error| error.to_string()),
                Kind::Count => text.trim().parse().map_err(|_| "expected whole numbers".to_owned()),
                Kind::Fraction | Kind::Switch | Kind::Word => {
                    Err("only sizes, rates, times and numbers can be swept".to_owned())
                }
            };
            value.map_err(|reason| wrong(&reason))
        };
        let suffix = if knob.kind == Kind::Time { "us" } else { "" };
        let (from, to) = (read(from)?, read(to)?);
        if from == 0 || from >= to {
            return Err(wrong("the range must begin above 0 and end above its beginning"));
        }
        let all = to - from < points as u64 || knob.kind == Kind::Count && to - from < 64;
        let mut values: Vec<u64> = if all {
            (from..=to).collect()
        } else {
            let step = (to as f64 / from as f64).ln() / (points - 1) as f64;
            (0..points).map(|at| (from as f64 * (step * at as f64).exp()).round() as u64).collect()
        };
        if let Some(last) = values.last_mut() {
            *last = to;
        }
        values.dedup();
        Ok(Self { key: knob.key.to_owned(), values, suffix })
    }

    /// The settings of one point.
    pub fn setting(&self, value: u64) -> (String, String) {
        (self.key.clone(), format!("{value}{}", self.suffix))
    }
}

/// The smallest value from which on every rate is as good as the best, within 3 %; its index.
pub fn plateau(rates: &[Rate]) -> Option<usize> {
    let best = rates.iter().map(|rate| rate.bps()).max()? as f64;
    rates.iter().position(|rate| rate.bps() as f64 >= PLATEAU * best)
}
