//! Which sizes of segments a path takes, by what all connections between two ends got through. What is *not* here: what one connection shows by
//! itself (`connection::half`, `diagnose`).

use core::cmp::Ordering;
use std::collections::BTreeMap;

use fullpipe_diagnose::{Detail, Diagnosis, Evidence, Run, Transfer, diagnose_with_runs};
use fullpipe_units::Bytes;

use super::Report;
use crate::Address;

/// What one connection says of the sizes that pass.
#[derive(Clone, Debug, Default)]
pub(super) struct Sizes {
    /// The payload of a full-size segment that got through.
    passed: Option<u32>,
    /// What it would be judged if the path were known to take its segments, where it seems that they vanish for their size.
    otherwise: Option<Box<(Diagnosis, Vec<Run>)>>,
}

impl Sizes {
    /// What `transfer`, of segments of `mss` bytes, says. `is_outgrown`: smaller ones got through than those that were lost.
    pub(super) fn new(transfer: &mut Transfer, diagnosis: &Diagnosis, mss: u32, is_outgrown: bool) -> Self {
        let passed = transfer.full_size_passed;
        let is_open = diagnosis.detail == Some(Detail::MtuBlackHole) && !is_outgrown;
        let otherwise = is_open.then(|| {
            // Not a copy of it: its samples take a quarter of a megabyte.
            let lost = transfer.lost_size.take();
            transfer.full_size_passed = true;
            let verdict = Box::new(diagnose_with_runs(transfer));
            (transfer.lost_size, transfer.full_size_passed) = (lost, passed);
            verdict
        });
        Self { passed: passed.then_some(mss), otherwise }
    }
}

/// The largest size that passed, and from when to when connections lasted that got it through.
#[derive(Clone, Copy, Debug)]
struct Passed {
    size: u32,
    from_ns: u64,
    to_ns: u64,
}

impl Passed {
    fn and(self, other: Self) -> Self {
        match self.size.cmp(&other.size) {
            Ordering::Less => other,
            Ordering::Greater => self,
            Ordering::Equal => {
                Self { from_ns: self.from_ns.min(other.from_ns), to_ns: self.to_ns.max(other.to_ns), ..self }
            }
        }
    }
}

/// A connection that got nothing through may have been starved: where another one from the same sender to the same receiver got segments of
/// that size through meanwhile, they don't vanish for it.
pub(super) fn look(reports: &mut [&mut Report]) {
    let mut verdicts = reports.iter().flat_map(|report| &report.sides).filter_map(|side| side.verdict.as_ref());
    if verdicts.any(|verdict| verdict.sizes.otherwise.is_some()) {
        let passed = passed(reports);
        for report in reports.iter_mut() {
            for side in 0..2 {
                look_at(report, side, &passed);
            }
        }
    }
    let verdicts = reports.iter_mut().flat_map(|report| &mut report.sides).filter_map(|side| side.verdict.as_mut());
    verdicts.for_each(|verdict| verdict.sizes = Sizes::default());
}

/// By sender, receiver and network.
type ByWay = BTreeMap<([Address; 2], u32), Passed>;

fn passed(reports: &[&mut Report]) -> ByWay {
    let mut all = ByWay::new();
    for report in reports {
        for (place, side) in report.sides.iter().enumerate() {
            let Some(size) = side.verdict.as_ref().and_then(|verdict| verdict.sizes.passed) else { continue };
            let passed = Passed { size, from_ns: report.started_ns, to_ns: report.ended_ns() };
            let way = (report.ends(place), report.outer);
            all.entry(way).and_modify(|before| *before = before.and(passed)).or_insert(passed);
        }
    }
    all
}

fn look_at(report: &mut Report, place: usize, passed: &ByWay) {
    let (from_ns, to_ns, way) = (report.started_ns, report.ended_ns(), (report.ends(place), report.outer));
    let side = &mut report.sides[place];
    let is_meanwhile = |passed: &&Passed| passed.size >= side.mss && passed.from_ns <= to_ns && passed.to_ns >= from_ns;
    if let Some(Passed { size, .. }) = passed.get(&way).filter(is_meanwhile)
        && let Some(verdict) = &mut side.verdict
        && let Some(otherwise) = verdict.sizes.otherwise.take()
    {
        (verdict.diagnosis, verdict.runs) = *otherwise;
        let size = Bytes::new(u64::from(*size));
        let text = format!("the path takes segments of {size}: another connection between these two got them through");
        let evidence = &mut verdict.diagnosis.evidence;
        evidence.insert(evidence.len().saturating_sub(1), Evidence { text, from_us: None, to_us: None, packets: None });
    }
}
