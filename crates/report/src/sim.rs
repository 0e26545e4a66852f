//! What the simulator found, ready to be shown.

use std::collections::BTreeMap;

use fullpipe_diagnose::{Detail, Limiter};
use fullpipe_tune::Outcome;
use fullpipe_units::Rate;

/// What `sim` found.
#[derive(Clone, Debug)]
pub struct SimRun {
    /// What the judge says of each direction, and how that compares with the scenario.
    pub outcome: Outcome,
    /// What decides every random element.
    pub seed: u64,
    /// What only a simulation knows, a direction each.
    pub known: Vec<SimKnown>,
    /// Whether JSON shall have every sample.
    pub series: bool,
}

/// What the engine knows of one direction.
#[derive(Clone, Debug)]
pub struct SimKnown {
    /// `a->b`.
    pub direction: String,
    /// The fraction of time for which each limiter was the limit.
    pub truth: BTreeMap<Limiter, f64>,
    /// Mean wait in front of the narrowest link; us.
    pub queue_delay_us: u64,
    /// A hash of the whole series.
    pub digest: u64,
}

/// What `what-if` predicts.
#[derive(Clone, Debug, Default)]
pub struct WhatIf {
    /// The situation, in words.
    pub situation: String,
    /// What decides every random element.
    pub seed: u64,
    /// What the reader must know besides.
    pub notes: Vec<String>,
    /// One prediction for each set of settings.
    pub predictions: Vec<PredictionRow>,
    /// The setting that was swept, and the place of the smallest value on the plateau.
    pub plateau: Option<(String, usize)>,
}

/// One prediction.
#[derive(Clone, Debug)]
pub struct PredictionRow {
    /// The direction, where there are two.
    pub direction: Option<String>,
    /// The settings, `key=value` each; none for things as they are.
    pub set: Vec<String>,
    /// The value that was swept, as a person writes it.
    pub value: Option<String>,
    /// Payload rate.
    pub rate: Rate,
    /// The payload rate that was measured with these settings, where one was.
    pub measured: Option<Rate>,
    /// The judge's limiter.
    pub limiter: Limiter,
    /// How it acts.
    pub detail: Option<Detail>,
    /// What the engine knows.
    pub truth: Option<Limiter>,
    /// How long the transfer takes; s.
    pub seconds: Option<f64>,
    /// Segments retransmitted.
    pub retransmits: u64,
    /// Mean wait in front of the narrowest link; us.
    pub queue_delay_us: u64,
    /// Payload that both hosts held at most; B.
    pub memory_bytes: u64,
    /// Why the connection ended early.
    pub failure: Option<String>,
}

/// The table of the published situations.
#[derive(Clone, Debug, Default)]
pub struct ReferenceTable {
    /// A line for each case.
    pub rows: Vec<ReferenceRow>,
    /// What the reader must know besides.
    pub notes: Vec<String>,
}

/// One line of it.
#[derive(Clone, Debug)]
pub struct ReferenceRow {
    /// The situation.
    pub scenario: &'static str,
    /// What of it.
    pub case: &'static str,
    /// The published figure.
    pub published: Option<&'static str>,
    /// What the arithmetic says, and how.
    pub arithmetic: Option<(ReferenceFigure, String)>,
    /// What the simulator gives.
    pub simulated: ReferenceFigure,
    /// What limits it there.
    pub limiter: Option<Limiter>,
    /// What the lab gave.
    pub lab: Option<&'static str>,
}

/// A rate, or the time of a transfer in seconds.
#[derive(Clone, Copy, Debug)]
pub enum ReferenceFigure {
    /// Payload rate.
    Rate(Rate),
    /// Seconds.
    Seconds(f64),
}

impl std::fmt::Display for ReferenceFigure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Rate(rate) => rate.fmt(f),
            Self::Seconds(seconds) => write!(f, "{seconds:.2} s"),
        }
    }
}
