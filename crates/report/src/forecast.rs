//! What the changes of a plan are predicted to do, ready to be shown.

use fullpipe_diagnose::{Detail, Limiter};
use fullpipe_units::Rate;

/// What `plan --simulate` adds to a plan.
#[derive(Clone, Debug, Default)]
pub struct PlanForecast {
    /// Each change of the plan, in its order, with those before it in force.
    pub changes: Vec<ChangeForecast>,
    /// All changes together, a direction each.
    pub whole: Vec<ForecastRow>,
    /// What the reader must know besides.
    pub notes: Vec<String>,
}

/// What one change does.
#[derive(Clone, Debug, Default)]
pub struct ChangeForecast {
    /// The directions that it acts on.
    pub rows: Vec<ForecastRow>,
    /// Why nothing is predicted.
    pub not_predicted: Option<String>,
}

/// One direction without and with a change.
#[derive(Clone, Copy, Debug)]
pub struct ForecastRow {
    /// `receives` or `sends`: what the machine does.
    pub direction: &'static str,
    /// Without.
    pub before: ForecastPoint,
    /// With.
    pub after: ForecastPoint,
}

/// What is expected.
#[derive(Clone, Copy, Debug)]
pub struct ForecastPoint {
    /// Payload rate after slow start.
    pub rate: Rate,
    /// What limits it.
    pub limiter: Limiter,
    /// How.
    pub detail: Option<Detail>,
}
