//! Connections of one capture that go through one bottleneck: which of them may, and what becomes of their verdicts. What is *not* here: whether
//! they do (`diagnose::shared`).

use core::net::IpAddr;
use std::collections::BTreeMap;

use fullpipe_diagnose::{
    CapturePlace, CommonEnd, Diagnosis, Passage, SharedBottleneck, Transfer, own_link, shared_bottleneck,
};

use super::{Report, Side};
use crate::{Address, PARTS, connection::half::Half};

/// Less payload than this, without a loss, makes no difference to what all get through: ten segments of an Ethernet path, with which most
/// connections begin (RFC 6928).
const LEAST_PAYLOAD: u64 = 10 * 1_448;

/// With less than this, and without a loss, one makes a difference only together with many like it: 200 segments.
const LITTLE_PAYLOAD: u64 = 200 * 1_448;

/// Whether so much was sent that it is worth comparing with what others sent meanwhile.
pub(crate) fn is_worth_comparing(half: &Half) -> bool {
    half.counters.payload >= LEAST_PAYLOAD
}

/// What `transfer` shows of a bottleneck that others may share, where it is worth keeping.
pub(super) fn passage(half: &Half, transfer: &Transfer) -> Option<Passage> {
    let bins = half.flight.bins.as_ref()?;
    let has_losses = transfer.drops.as_ref().is_some_and(|drops| !drops.list.is_empty());
    if !has_losses && !is_worth_comparing(half) {
        return None;
    }
    let start_ns = bins.start_ns();
    let began_us = super::micros(start_ns).get();
    let mut passage = if half.is_beside_receiver() {
        Passage::beside_receiver(transfer, began_us)?
    } else {
        let last_us = transfer.sender_samples.last()?.at_us.get();
        let rest = bins.delivered_after(start_ns.saturating_add(last_us.saturating_mul(1_000)));
        let rest = rest.map(|(at_ns, bytes)| (super::micros(at_ns).get(), bytes));
        Passage::new(transfer, began_us)?.with_rest(rest)
    };
    if let Some(far_ns) = half.far.least_ns.filter(|_| is_worth_comparing(half)) {
        let departures = bins.departures();
        let list = departures.iter().map(|(at_ns, bytes)| (super::micros(at_ns).get() as f64, bytes as f64));
        let [every_us, to_sender_us, to_receiver_us] =
            [departures.width_ns(), half.near_ns(), far_ns].map(|ns| ns as f64 / 1e3);
        let queued = f64::from(half.queued_trips) / f64::from(half.round_trips.max(1));
        passage = passage.with_departures(every_us, CapturePlace { to_sender_us, to_receiver_us, queued }, list);
    }
    Some(passage)
}

/// Round trips over the empty path are the same to within this factor.
const NEAR: f64 = 1.25;

/// What the passages of one follower take at the most, in moments of 32 bytes each: 32 MB of all followers, and four times that while those
/// that have an end in common are looked at.
const MOST: usize = (1 << 20) / PARTS;

/// ... and those with little payload, which may be very many.
const MOST_OF_LITTLE: usize = MOST / 2;

/// What passages take so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Room {
    moments: usize,
    /// There was none left for one with little payload.
    is_short: bool,
}

impl Room {
    /// Counts what `report` holds, or has it let go of that where there is no room left: then it is judged alone, as it has been.
    pub(super) fn take(&mut self, report: &mut Report) {
        for side in &mut report.sides {
            let is_little = has_little(side);
            let Some(verdict) = &mut side.verdict else { continue };
            let Some(passage) = &verdict.passage else { continue };
            if self.moments + passage.moments() > if is_little { MOST_OF_LITTLE } else { MOST } {
                verdict.passage = None;
                self.is_short |= is_little;
            } else {
                self.moments += passage.moments();
            }
        }
    }
}

/// Whether what a side sent makes a difference only together with many like it.
fn has_little(side: &Side) -> bool {
    let passage = side.verdict.as_ref().and_then(|verdict| verdict.passage.as_deref());
    side.counters.payload < LITTLE_PAYLOAD && !passage.is_some_and(Passage::has_losses)
}

/// A part of those with little payload would make a sum that is no bottleneck's: it is all of them or none.
pub(super) fn leave_out_little(reports: &mut [&mut Report], rooms: impl IntoIterator<Item = Room>) {
    if !rooms.into_iter().any(|room| room.is_short) {
        return;
    }
    for side in reports.iter_mut().flat_map(|report| &mut report.sides).filter(|side| has_little(side)) {
        if let Some(verdict) = &mut side.verdict {
            verdict.passage = None;
        }
    }
}

/// Looks at those together that have an end in common, and keeps nothing of what that took.
pub(super) fn look(reports: &mut [&mut Report]) {
    // A link that all leave their sender by comes before any other one, and no round trip tells of it.
    for (end, is_own) in [(CommonEnd::Sender, true), (CommonEnd::Receiver, false), (CommonEnd::Sender, false)] {
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
            for group in at_once(reports, group) {
                if is_own {
                    look_at(reports, &group, (end, &name), own_link);
                } else {
                    share_round_trips(reports, &group, end);
                    look_at(reports, &group, (end, &name), shared_bottleneck);
                }
            }
        }
    }
    let verdicts = reports.iter_mut().flat_map(|report| &mut report.sides).filter_map(|side| side.verdict.as_mut());
    verdicts.for_each(|verdict| verdict.passage = None);
}

/// Those of a group whose connections lasted at the same time, or are linked by others that did: what held them at another time may be another
/// bottleneck.
fn at_once(reports: &[&mut Report], mut group: Vec<(usize, usize)>) -> Vec<Vec<(usize, usize)>> {
    // In an order that does not depend on where each was kept: sums of fractions do.
    group.sort_by_key(|&(place, side)| (reports[place].started_ns, reports[place].first_packet, side));
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
fn share_round_trips(reports: &mut [&mut Report], group: &[(usize, usize)], end: CommonEnd) {
    let other = match end {
        CommonEnd::Sender => CommonEnd::Receiver,
        CommonEnd::Receiver => CommonEnd::Sender,
    };
    let mut pairs: BTreeMap<(Address, u32), Vec<(usize, usize)>> = BTreeMap::new();
    for &(place, side) in group {
        pairs.entry((common(reports[place], side, other), 0)).or_default().push((place, side));
    }
    for pair in pairs.into_values() {
        let passages = pair.iter().filter_map(|&(place, side)| passage_of(reports[place], side));
        let shortest = shortest(passages.map(|(passage, _)| passage.base_rtt()).collect());
        for (place, side) in pair {
            let verdict = reports[place].sides[side].verdict.as_mut();
            if let Some(passage) = verdict.and_then(|verdict| verdict.passage.as_mut()) {
                passage.set_empty_rtt(shortest);
            }
        }
    }
}

/// The shortest of them that one in a hundred comes near to: a capture that lacks packets gives a connection now and then a round trip that
/// never was.
fn shortest(mut all: Vec<f64>) -> f64 {
    all.sort_unstable_by(f64::total_cmp);
    let others = all.len().saturating_sub(1) / 100;
    let has_others = |place: &usize| all.get(place + others).is_some_and(|last| *last <= NEAR * all[*place]);
    let place = (0..all.len()).find(has_others).unwrap_or_default();
    all.get(place).copied().unwrap_or(f64::MAX)
}

/// What finds a bottleneck that connections share.
type Find = fn(&[(&Passage, &Diagnosis)]) -> Option<SharedBottleneck>;

fn look_at(reports: &mut [&mut Report], group: &[(usize, usize)], (end, name): (CommonEnd, &str), find: Find) {
    let passages: Vec<(&Passage, &Diagnosis)> =
        group.iter().filter_map(|&(place, side)| passage_of(reports[place], side)).collect();
    let Some(bottleneck) = find(&passages) else { return };
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Keep, Reader, Tracker};

    /// What a capture held, each verdict with its passage as before the look.
    fn told(name: &str) -> Vec<Report> {
        let path = format!("{}/tests/data/strangers/{name}.pcap", env!("CARGO_MANIFEST_DIR"));
        let bytes = std::fs::read(path).unwrap();
        let mut tracker = Tracker::new(1, Keep { transfers: true });
        let mut reader = Reader::new();
        let used = reader.read(&bytes, &mut tracker).unwrap();
        reader.finish(&bytes[used..], &mut tracker).unwrap();
        let mut reports: Vec<Report> = tracker.finish().connections.iter().map(|report| report.into_owned()).collect();
        for verdict in reports.iter_mut().flat_map(|report| &mut report.sides).filter_map(|side| side.verdict.as_mut())
        {
            verdict.passage = verdict.transfer.as_ref().and_then(|transfer| Passage::new(transfer, 0)).map(Box::new);
        }
        reports
    }

    /// How many passages are kept, and how many of them with little payload.
    fn kept(reports: &[Report]) -> [usize; 2] {
        let has_one = |side: &&Side| side.verdict.as_ref().is_some_and(|verdict| verdict.passage.is_some());
        let sides: Vec<&Side> = reports.iter().flat_map(|report| &report.sides).filter(has_one).collect();
        [sides.len(), sides.iter().filter(|side| has_little(side)).count()]
    }

    #[test]
    fn a_round_trip_that_only_few_of_many_saw_is_none() {
        let found = |all: Vec<f64>| shortest(all) as u64;
        assert_eq!(found(vec![3.0, 1.0, 2.0]), 1);
        let of = |few: usize| found((0..few).map(|_| 1.0).chain((0..300 - few).map(|_| 10.0)).collect());
        assert_eq!([of(1), of(2), of(3), of(300)], [10, 10, 1, 1]);
        assert_eq!(found(Vec::new()), u64::MAX);
        // None is near to two others: nobody knows better.
        assert_eq!(found((0..300).map(|number| 2.0_f64.powi(number)).collect()), 1);
    }

    #[test]
    fn where_little_ones_are_too_many_none_of_them_is_looked_at_and_the_others_are() {
        let [mut many, mut others] = ["short-downloads-a", "shared-policer-b"].map(told);
        let [all, little] = kept(&many);
        assert!(little > 5 && kept(&others) == [4, 0]);
        let mut room = Room { moments: MOST_OF_LITTLE, is_short: false };
        many.iter_mut().chain(&mut others).for_each(|report| room.take(report));
        assert_eq!((room.is_short, kept(&many), kept(&others)), (true, [all - little, 0], [4, 0]));
        let mut many = told("short-downloads-a");
        let mut reports: Vec<&mut Report> = many.iter_mut().collect();
        leave_out_little(&mut reports, [Room::default()]);
        leave_out_little(&mut reports, [Room::default(), room]);
        assert_eq!(kept(&many), [all - little, 0]);
    }
}
