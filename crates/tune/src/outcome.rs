//! What `check`, `tune`, `demo` and `lab run` found and did: one type, which the report shows.

use fullpipe_diagnose::{
    Diagnosis, Transfer,
    proof::{Decision, Proof},
};
use fullpipe_host::RunId;
use fullpipe_knobs::{Address, Plan, Settings};
use fullpipe_units::{Bytes, Micros, Rate};
use serde::Serialize;

/// The whole story of one run of the loop, as far as it went.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Outcome {
    /// The names of `a`, this end, and `b`; empty in the lab, whose ends have no others.
    pub ends: Option<[String; 2]>,
    /// The scenario, where the path was an emulated one.
    pub scenario: Option<ScenarioFacts>,
    /// What was measured first, a direction each.
    pub before: Vec<Direction>,
    /// How the hosts were set, before any change; without those whose settings could not be read.
    pub hosts: Vec<HostSettings>,
    /// What to set; empty where nothing would help.
    pub plan: Plan,
    /// Whether the plan helped, a direction each; empty where nothing was tried.
    pub proofs: Vec<DirectionProof>,
    /// What was kept, a run each.
    pub kept: Vec<KeptRun>,
    /// What was measured last with the changes in force: those on trial, or those that were kept.
    pub after: Vec<Direction>,
    /// Whether the hosts read as at the start, where everything was undone.
    pub restored: Vec<Restored>,
    /// How exactly the emulated path kept its promises.
    pub path_error: Option<PathErrorSummary>,
    /// How the figures compare with what the scenario, or the user, expects.
    pub expectations: Vec<Expectation>,
    /// What the reader must know besides: an imitation, a kernel that can't tell, a change that waits for a restart.
    pub notes: Vec<String>,
}

/// How a host is set.
#[derive(Clone, Debug, Serialize)]
pub struct HostSettings {
    /// Its name.
    pub host: String,
    /// What was read.
    pub settings: Settings,
}

/// What a reader must know of an emulated path.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ScenarioFacts {
    /// Its name.
    pub name: String,
    /// One sentence.
    pub summary: String,
    /// Which ends imitate another system, and how: never to be mistaken for that system itself.
    pub imitations: Vec<String>,
    /// The figures that were published for the situation, as a quotation.
    pub published: Option<String>,
}

/// One direction of a measurement, with its judgement.
#[derive(Clone, Debug, Serialize)]
pub struct Direction {
    /// `a->b`: the sender's name, then the receiver's.
    pub name: String,
    /// Payload rate over the whole measurement, as the receiver counted.
    pub rate_bps: Rate,
    /// Payload rate after the slow start was left out; `None` where nothing was left out.
    pub steady_bps: Option<Rate>,
    /// Round-trip time without load.
    pub rtt_us: Option<Micros>,
    /// Median round-trip time under load, as the sender's kernel saw it.
    pub loaded_rtt_us: Option<Micros>,
    /// Payload bytes.
    pub bytes: Bytes,
    /// How long.
    pub duration_us: Micros,
    /// Segments retransmitted; `None` where the sender could not be read.
    pub retransmits: Option<u64>,
    /// The sender's congestion control.
    pub congestion_control: Option<String>,
    /// The judgement over all streams.
    pub diagnosis: Diagnosis,
    /// The stories of the streams, for whoever wants the samples.
    #[serde(skip)]
    pub transfers: Vec<Transfer>,
}

/// The proof for one direction.
#[derive(Clone, Debug, Serialize)]
pub struct DirectionProof {
    /// The direction that the changes are for.
    pub direction: String,
    /// Which settings were tried together.
    pub knobs: Vec<Address>,
    /// What came out.
    pub proof: Proof,
    /// What the pairs show.
    pub decision: Decision,
    /// Whether the settings helped: a direction that they are for gained, and none lost.
    pub helped: bool,
    /// Whether the changes were kept. False in a demonstration even where they helped: there everything is undone.
    pub kept: bool,
    /// What a simulation expects of the changes, where somebody made one.
    pub predicted: Option<PredictedGain>,
}

/// Changes that were kept, as the journal of their host numbers them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KeptRun {
    /// The host.
    pub host: String,
    /// The run in the journal there.
    pub run: RunId,
    /// All of it lasts beyond a restart.
    pub lasts: bool,
    /// The boot-time files that were written.
    pub boot_files: Vec<String>,
    /// What lasts only until the next reboot although more was asked for: a sentence for each, with the way out.
    pub until_reboot: Vec<String>,
}

/// Payload rates that a simulation expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PredictedGain {
    /// Without the changes.
    pub before_bps: Rate,
    /// With them.
    pub after_bps: Rate,
}

impl PredictedGain {
    /// After / before.
    pub fn ratio(&self) -> f64 {
        self.after_bps.bps() as f64 / self.before_bps.bps().max(1) as f64
    }
}

/// Whether one host reads as at the start.
#[derive(Clone, Debug, Serialize)]
pub struct Restored {
    /// The host.
    pub host: String,
    /// How many settings were compared.
    pub compared: usize,
    /// Those that differ; empty where the host reads as before.
    pub differences: Vec<Difference>,
}

/// A setting that reads differently from the start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Which setting.
    pub knob: Address,
    /// What it was at the start; `None` where it was absent.
    pub before: Option<String>,
    /// What it is now.
    pub now: Option<String>,
}

/// Planned against actual release of the packets of an emulated path.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct PathErrorSummary {
    /// Median error.
    pub p50_us: u64,
    /// 99 of 100 packets were released no later than this after their planned time.
    pub p99_us: u64,
    /// The largest error.
    pub max_us: u64,
    /// Whether the path kept up, so that the result is valid.
    pub valid: bool,
}

/// One expectation of a scenario and what came out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Expectation {
    /// The direction.
    pub direction: String,
    /// What was expected, in words and figures.
    pub expected: String,
    /// What came out.
    pub found: String,
    /// Whether the two agree.
    pub met: bool,
}

impl Outcome {
    /// Whether every expectation of the scenario was met and every host reads as before. Whether the emulated path was exact
    /// enough for that to count is another question: [`PathErrorSummary::valid`].
    pub fn as_expected(&self) -> bool {
        self.expectations.iter().all(|e| e.met) && self.restored.iter().all(|r| r.differences.is_empty())
    }
}
