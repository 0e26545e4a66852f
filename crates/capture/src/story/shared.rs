//! Connections of one capture that go through one bottleneck: which of them may, and what becomes of their verdicts. What is *not* here: whether
//! they do (`diagnose::shared`).

use core::net::IpAddr;
use std::collections::BTreeMap;

use fullpipe_diagnose::{CommonEnd, Diagnosis, Passage, Transfer, shared_bottleneck};

use super::Report;
use crate::{Address, PARTS, connection::half::Half};

/// Less payload than this, without a loss, makes no difference to what all get through: ten segments of an Ethernet path, with which most
/// connections begin (RFC 6928).
const LEAST_PAYLOAD: u64 = 10 * 1_448;

/// What `transfer` shows of a bottleneck that others may share, where it is worth keeping.
pub(super) fn passage(half: &Half, transfer: &Transfer) -> Option<Passage> {
    let bins = half.flight.bins.as_ref()?;
    let has_losses = transfer.drops.as_ref().is_some_and(|drops| !drops.list.is_empty());
    let is_much = half.counters.payload >= LEAST_PAYLOAD;
    if !has_losses && !is_much {
        return None;
    }
    let start_ns = bins.start_ns();
    let began_us = super::micros(start_ns).get();
    if half.is_beside_receiver() {
        return Passage::beside_receiver(transfer, began_us);
    }
    let last_us = transfer.sender_samples.last()?.at_us.get();
    let rest = bins.delivered_after(start_ns.saturating_add(last_us.saturating_mul(1_000)));
    let rest = rest.map(|(at_ns, bytes)| (super::micros(at_ns).get(), bytes));
    Some(Passage::new(transfer, began_us)?.with_rest(rest))
}

/// What the passages of one follower take at the most, in moments of 32 bytes each: 32 MB of all followers, and four times that while those
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
    verdicts.for_each(|verdict| verdict.passage = None);
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
        until_ns = until_ns.max(report.ended_ns());
    }
    groups
}

/// The shortest round trip between two ends is that of the empty path for all connections between them.
fn share_round_trips(reports: &mut [&mut Report], group: &[(usize, usize)]) {
    let mut shortest: BTreeMap<[Address; 2], f64> = BTreeMap::new();
    for &(place, side) in group {
        if let Some((passage, _)) = passage_of(reports[place], side) {
            let rtt = shortest.entry(reports[place].ends(side)).or_insert(f64::MAX);
            *rtt = rtt.min(passage.base_rtt());
        }
    }
    for &(place, side) in group {
        let rtt = shortest.get(&reports[place].ends(side)).copied();
        let verdict = reports[place].sides[side].verdict.as_mut();
        if let Some((passage, rtt)) = verdict.and_then(|verdict| verdict.passage.as_mut()).zip(rtt) {
            passage.set_empty_rtt(rtt);
        }
    }
}

fn look_at(reports: &mut [&mut Report], group: &[(usize, usize)], end: CommonEnd, name: &str) {
    share_round_trips(reports, group);
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
    let [sender, receiver] = report.ends(side);
    match end {
        CommonEnd::Sender => sender,
        CommonEnd::Receiver => receiver,
    }
}
