//! Connections of one capture that go through one bottleneck: which of them may, and what becomes of their verdicts. What is *not* here: whether
//! they do (`diagnose::shared`).

use core::{cmp::Ordering, net::IpAddr};
use std::collections::BTreeMap;

use fullpipe_diagnose::{
    CommonEnd, Detail, Diagnosis, Evidence, Passage, Transfer, diagnose_with_runs, shared_bottleneck,
};
use fullpipe_units::Bytes;

use super::{Report, Sizes};
use crate::{Address, PARTS, connection::half::Half};

/// Less payload than this, without a loss, makes no difference to what all get through: 200 segments of an Ethernet path.
const LEAST_PAYLOAD: u64 = 200 * 1_448;

/// What `transfer` shows of a bottleneck that others may share, where it is worth keeping.
pub(super) fn passage(half: &Half, transfer: &Transfer) -> Option<Passage> {
    let bins = half.flight.bins.as_ref()?;
    let has_losses = transfer.drops.as_ref().is_some_and(|drops| !drops.list.is_empty());
    let is_much = half.counters.payload >= LEAST_PAYLOAD;
    let passage =
        if has_losses || is_much { Passage::new(transfer, super::micros(bins.start_ns()).get()) } else { None };
    passage.map(|passage| passage.beside_receiver(half.is_beside_receiver()))
}

/// What the passages of one follower take at the most, in moments of 32 bytes each: 32 MB of all followers, and four times that while those
/// that have an end in common are looked at.
const MOST: usize = (1 << 20) / PARTS;

/// What `transfer`, of segments of `mss` bytes, says of the sizes that pass. `is_outgrown`: smaller ones got through than those that were lost.
pub(super) fn sizes(transfer: &Transfer, diagnosis: &Diagnosis, mss: u32, is_outgrown: bool) -> Sizes {
    let otherwise =
        || Box::new(diagnose_with_runs(&Transfer { full_size_passed: true, lost_size: None, ..transfer.clone() }));
    let is_open = diagnosis.detail == Some(Detail::MtuBlackHole) && !is_outgrown;
    Sizes { passed: transfer.full_size_passed.then_some(mss), otherwise: is_open.then(otherwise) }
}

/// What passages take so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Room(usize);

impl Room {
    /// Counts what `report` holds, or has it let go of that where there is no room left: then it is judged alone, as it has been.
    pub(super) fn take(&mut self, report: &mut Report) {
        for verdict in report.sides.iter_mut().filter_map(|side| side.verdict.as_mut()) {
            let Some(passage) = &verdict.passage else { continue };
            if self.0 + passage.moments() > MOST {
                verdict.passage = None;
            } else {
                self.0 += passage.moments();
            }
        }
    }
}

/// Looks at those together that have an end in common, and keeps nothing of what that took.
pub(super) fn look(reports: &mut [&mut Report]) {
    look_at_sizes(reports);
    for end in [CommonEnd::Receiver, CommonEnd::Sender] {
        let mut groups: BTreeMap<(Address, u32), Vec<(usize, usize)>> = BTreeMap::new();
        for (place, report) in reports.iter().enumerate() {
            for side in 0..2 {
                if passage_of(report, side).is_some() {
                    groups.entry((common(report, side, end), report.outer)).or_default().push((place, side));
                }
            }
        }
        for ((address, _), group) in groups {
            let name = IpAddr::from(address).to_string();
            at_once(reports, group).iter().for_each(|group| look_at(reports, group, end, &name));
        }
    }
    let verdicts = reports.iter_mut().flat_map(|report| &mut report.sides).filter_map(|side| side.verdict.as_mut());
    verdicts.for_each(|verdict| (verdict.passage, verdict.sizes) = (None, Sizes::default()));
}

/// A connection that got nothing through may have been starved: where another one from the same sender to the same receiver got segments of
/// that size through meanwhile, they don't vanish for it.
fn look_at_sizes(reports: &mut [&mut Report]) {
    let mut verdicts = reports.iter().flat_map(|report| &report.sides).filter_map(|side| side.verdict.as_ref());
    if !verdicts.any(|verdict| verdict.sizes.otherwise.is_some()) {
        return;
    }
    let lasted = |report: &Report| {
        (report.started_ns, report.started_ns.saturating_add(report.lasted.get().saturating_mul(1_000)))
    };
    // The largest size that passed, and from when to when connections lasted that got it through.
    let mut passed: BTreeMap<(Address, Address, u32), (u32, u64, u64)> = BTreeMap::new();
    for report in reports.iter() {
        let (from_ns, to_ns) = lasted(report);
        for (side, ends) in report.sides.iter().zip(ways(report)) {
            let Some(size) = side.verdict.as_ref().and_then(|verdict| verdict.sizes.passed) else { continue };
            let most = passed.entry(ends).or_insert((size, from_ns, to_ns));
            *most = match size.cmp(&most.0) {
                Ordering::Less => *most,
                Ordering::Equal => (size, most.1.min(from_ns), most.2.max(to_ns)),
                Ordering::Greater => (size, from_ns, to_ns),
            };
        }
    }
    for report in reports.iter_mut() {
        let ((from_ns, to_ns), ways) = (lasted(report), ways(report));
        for (side, ends) in report.sides.iter_mut().zip(ways) {
            let Some((verdict, &(size, from, to))) = side.verdict.as_mut().zip(passed.get(&ends)) else { continue };
            if size >= side.mss
                && from <= to_ns
                && to >= from_ns
                && let Some(otherwise) = verdict.sizes.otherwise.take()
            {
                (verdict.diagnosis, verdict.runs) = *otherwise;
                let size = Bytes::new(u64::from(size));
                let text =
                    format!("the path takes segments of {size}: another connection between these two got them through");
                let last = verdict.diagnosis.evidence.len().saturating_sub(1);
                verdict.diagnosis.evidence.insert(last, Evidence { text, from_us: None, to_us: None, packets: None });
            }
        }
    }
}

/// From whom to whom each side of it sends, and over which network.
fn ways(report: &Report) -> [(Address, Address, u32); 2] {
    let (a, b) = (report.a.address, report.b.address);
    [(a, b, report.outer), (b, a, report.outer)]
}

/// Those of a group whose connections lasted at the same time, or are linked by others that did: what held them at another time may be another
/// bottleneck.
fn at_once(reports: &[&mut Report], mut group: Vec<(usize, usize)>) -> Vec<Vec<(usize, usize)>> {
    group.sort_by_key(|&(place, _)| reports[place].started_ns);
    let mut groups: Vec<Vec<(usize, usize)>> = Vec::new();
    let mut until_ns = 0;
    for one in group {
        let report = &reports[one.0];
        match groups.last_mut() {
            Some(group) if report.started_ns <= until_ns => group.push(one),
            _ => groups.push(vec![one]),
        }
        until_ns = until_ns.max(report.started_ns.saturating_add(report.lasted.get().saturating_mul(1_000)));
    }
    groups
}

fn look_at(reports: &mut [&mut Report], group: &[(usize, usize)], end: CommonEnd, name: &str) {
    let passages: Vec<(&Passage, &Diagnosis)> =
        group.iter().filter_map(|&(place, side)| passage_of(reports[place], side)).collect();
    let Some(bottleneck) = shared_bottleneck(&passages) else { return };
    for &(place, side) in group {
        // What is explained is no part of another group.
        if let Some(verdict) = &mut reports[place].sides[side].verdict
            && let Some(passage) = verdict.passage.take()
        {
            bottleneck.explain(&passage, &mut verdict.diagnosis, &mut verdict.runs, end, name);
        }
    }
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
