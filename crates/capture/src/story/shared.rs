//! Connections of one capture that go through one bottleneck: which of them may, and what becomes of their verdicts. What is *not* here: whether
//! they do (`diagnose::shared`).

use core::net::IpAddr;
use std::collections::BTreeMap;

use fullpipe_diagnose::{CommonEnd, Diagnosis, Passage, Transfer, shared_bottleneck};

use super::Report;
use crate::{Address, PARTS, connection::half::Half};

/// Less payload than this, without a loss, makes no difference to what all get through: 200 segments of an Ethernet path.
const LEAST_PAYLOAD: u64 = 200 * 1_448;

/// What `transfer` shows of a bottleneck that others may share, where it is worth keeping.
pub(super) fn passage(half: &Half, transfer: &Transfer) -> Option<Passage> {
    let bins = half.flight.bins.as_ref()?;
    let has_losses = transfer.drops.as_ref().is_some_and(|drops| !drops.list.is_empty());
    let is_much = half.counters.payload >= LEAST_PAYLOAD;
    (has_losses || is_much).then(|| Passage::new(transfer, super::micros(bins.start_ns()).get())).flatten()
}

/// What the passages of one follower take at the most, in moments of 24 bytes each: 24 MB of all followers, and three times that while those
/// that have an end in common are looked at.
const MOST: usize = (1 << 20) / PARTS;

/// What passages take so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Room(usize);

impl Room {
    /// Counts what `report` holds, or has it let go of that where there is no room left: then it is judged alone, as it has been.
    pub(super) fn take(&mut self, report: &mut Report) {
        for verdict in report.sides.iter_mut().filter_map(|side| side.verdict.as_mut()) {
            let Some(passage) = &verdict.passage else { continue };
            if self.0 + passage.len() > MOST {
                verdict.passage = None;
            } else {
                self.0 += passage.len();
            }
        }
    }
}

/// Looks at those together that have an end in common, and keeps nothing of what that took.
pub(super) fn look(reports: &mut [&mut Report]) {
    for end in [CommonEnd::Receiver, CommonEnd::Sender] {
        let mut groups: BTreeMap<(Address, u32), Vec<(usize, usize)>> = BTreeMap::new();
        for (place, report) in reports.iter().enumerate() {
            for side in 0..2 {
                if passage_of(report, side).is_some() {
                    groups.entry((common(report, side, end), report.outer)).or_default().push((place, side));
                }
            }
        }
        for ((address, _), group) in groups.into_iter().filter(|(_, group)| group.len() > 1) {
            let passages: Vec<(&Passage, &Diagnosis)> =
                group.iter().filter_map(|&(place, side)| passage_of(reports[place], side)).collect();
            let Some(bottleneck) = shared_bottleneck(&passages) else { continue };
            let name = IpAddr::from(address).to_string();
            for (place, side) in group {
                if let Some(verdict) = &mut reports[place].sides[side].verdict {
                    bottleneck.explain(&mut verdict.diagnosis, &mut verdict.runs, end, &name);
                    verdict.passage = None;
                }
            }
        }
    }
    let verdicts = reports.iter_mut().flat_map(|report| &mut report.sides).filter_map(|side| side.verdict.as_mut());
    verdicts.for_each(|verdict| verdict.passage = None);
}

fn passage_of(report: &Report, side: usize) -> Option<(&Passage, &Diagnosis)> {
    let verdict = report.sides[side].verdict.as_ref()?;
    Some((verdict.passage.as_deref()?, &verdict.diagnosis))
}

/// The address of the end that what this side sends has in common with others.
fn common(report: &Report, side: usize, end: CommonEnd) -> Address {
    let [own, other] = if side == 0 { [report.a, report.b] } else { [report.b, report.a] };
    match end {
        CommonEnd::Sender => own.address,
        CommonEnd::Receiver => other.address,
    }
}
