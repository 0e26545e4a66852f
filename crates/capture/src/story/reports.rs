//! The reports of a capture: those that were judged as they are, the others packed, so that a million connections take
//! 115 MB and not a gigabyte, or still to be summed up where their segments were kept to the end. What is *not* here: what is in
//! a report.

use std::{borrow::Cow, cmp::Ordering};

use fullpipe_diagnose::{Detail, Limiter, SenderSample};
use fullpipe_units::Bytes;

use super::{
    Report,
    packed::{pack, unpack},
    report, shared, sizes,
};
use crate::{
    Key, Slot,
    connection::Connection,
    track::{Keep, listed::Listed},
};

/// Reports, in the order of their first packets, or worst first.
#[derive(Clone, Debug, Default)]
pub struct Reports {
    keep: Keep,
    entries: Vec<Entry>,
    parts: Vec<Part>,
    /// Used again for each connection: it is a quarter of a megabyte, which the kernel would clear each time.
    samples: Vec<SenderSample>,
}

/// What order is made by, and where the report is: 32 bytes, because there is one for each connection.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Until all are numbered, that of its first packet.
    number: u64,
    payload: u64,
    weight: f64,
    /// Its place among the judged ones, or where its bytes begin in units of [`UNIT`], or its slot.
    place: u32,
    /// There is one for each follower.
    part: u16,
    kind: Kind,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Judged,
    Packed,
    Listed,
}

impl Entry {
    fn worse(&self, other: &Self) -> Ordering {
        let by_weight = other.weight.partial_cmp(&self.weight).unwrap_or(Ordering::Equal);
        by_weight.then_with(|| other.payload.cmp(&self.payload)).then_with(|| self.number.cmp(&other.number))
    }
}

/// Packed reports begin at multiples of this, so that 32 bits reach as far as memory does.
const UNIT: usize = 8;

/// What one follower reported.
#[derive(Clone, Debug, Default)]
struct Part {
    judged: Vec<Report>,
    /// What the judged ones hold for the look at all of them together.
    room: shared::Room,
    packed: Vec<u8>,
    listed: Option<Box<Listed>>,
}

impl Reports {
    pub(crate) const fn new(keep: Keep) -> Self {
        Self { keep, entries: Vec::new(), parts: Vec::new(), samples: Vec::new() }
    }

    /// How many there are.
    pub const fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = Cow<'_, Report>> {
        self.entries.iter().map(|entry| self.report(entry))
    }

    /// The one at `place` of the order.
    pub fn get(&self, place: usize) -> Option<Cow<'_, Report>> {
        self.entries.get(place).map(|entry| self.report(entry))
    }

    /// The one with that number.
    pub fn numbered(&self, number: u64) -> Option<Cow<'_, Report>> {
        self.entries.iter().find(|entry| entry.number == number).map(|entry| self.report(entry))
    }

    /// What limits each of them, where it was judged, and its payload, repeats apart.
    pub fn limits(&self) -> impl Iterator<Item = (Option<(Limiter, Option<Detail>)>, Bytes)> {
        self.entries.iter().map(|entry| {
            let part = &self.parts[usize::from(entry.part)];
            let judged = matches!(entry.kind, Kind::Judged).then(|| part.judged[entry.place as usize].main_side());
            let verdict = judged.and_then(|side| side.verdict.as_ref());
            let limit = verdict.map(|verdict| (verdict.diagnosis.limiter, verdict.diagnosis.detail));
            (limit, Bytes::new(entry.payload))
        })
    }

    /// Forgets all but the one with that number; tells whether there is one.
    pub fn keep_numbered(&mut self, number: u64) -> bool {
        self.entries.retain(|entry| entry.number == number);
        !self.entries.is_empty()
    }

    /// Puts those first in which most time was lost to something that can be lifted, then those that carried most: as many
    /// as will be looked at, the others in any order.
    pub fn worst_first(&mut self, looked_at: usize) {
        if looked_at < self.entries.len() {
            self.entries.select_nth_unstable_by(looked_at, Entry::worse);
        }
        let first = looked_at.min(self.entries.len());
        self.entries[..first].sort_unstable_by(Entry::worse);
    }

    pub(crate) fn tell(&mut self, key: &Key, connection: &Connection) {
        let mut report = report(key, connection, self.keep, &mut self.samples);
        let (last, part) = self.last_part();
        part.room.take(&mut report);
        let (number, payload) = (report.first_packet, report.payload().get());
        let (kind, place) = if report.sides.iter().any(|side| side.verdict.is_some()) {
            part.judged.push(report);
            (Kind::Judged, part.judged.len() - 1)
        } else {
            let from = part.packed.len() / UNIT;
            pack(&report, &mut part.packed);
            part.packed.resize(part.packed.len().next_multiple_of(UNIT), 0);
            (Kind::Packed, from)
        };
        // Those that share a bottleneck are weighed when all of them are known.
        self.entries.push(Entry { number, payload, weight: 0.0, place: place as u32, part: last as u16, kind });
    }

    /// One that is summed up from what [`Reports::take_lists`] is given, when it is asked for.
    pub(crate) fn list(&mut self, number: u64, payload: u64, slot: Slot) {
        let (last, _) = self.last_part();
        let place = slot.index() as u32;
        self.entries.push(Entry { number, payload, weight: 0.0, place, part: last as u16, kind: Kind::Listed });
    }

    /// Takes the lists of this part.
    pub(crate) fn take_lists(&mut self, listed: Listed) {
        self.last_part().1.listed = Some(Box::new(listed));
    }

    fn last_part(&mut self) -> (usize, &mut Part) {
        if self.parts.is_empty() {
            self.parts.push(Part::default());
        }
        let last = self.parts.len() - 1;
        (last, &mut self.parts[last])
    }

    /// Adds those of another part.
    pub(crate) fn append(&mut self, other: Self) {
        let before = self.parts.len() as u16;
        self.parts.extend(other.parts);
        self.entries.extend(other.entries.into_iter().map(|entry| Entry { part: entry.part + before, ..entry }));
    }

    /// Makes room for as many.
    pub(crate) fn reserve(&mut self, count: usize) {
        self.entries.reserve_exact(count);
    }

    /// Numbers them, in the order of their first packets, and looks at those together that may share a bottleneck.
    pub(crate) fn number(&mut self) {
        // What each part tells is nearly in order: a stable sort merges what it finds sorted.
        self.entries.sort_by_key(|entry| entry.number);
        for (number, entry) in (1..).zip(&mut self.entries) {
            entry.number = number;
            if matches!(entry.kind, Kind::Judged) {
                self.parts[usize::from(entry.part)].judged[entry.place as usize].number = number;
            }
        }
        let rooms: Vec<_> = self.parts.iter().map(|part| part.room).collect();
        let mut judged: Vec<_> = self.parts.iter_mut().flat_map(|part| &mut part.judged).collect();
        sizes::look(&mut judged);
        shared::leave_out_little(&mut judged, rooms);
        shared::look(&mut judged);
        for entry in self.entries.iter_mut().filter(|entry| matches!(entry.kind, Kind::Judged)) {
            entry.weight = self.parts[usize::from(entry.part)].judged[entry.place as usize].weight();
        }
    }

    #[expect(clippy::expect_used, reason = "who lists one keeps its list")]
    fn report(&self, entry: &Entry) -> Cow<'_, Report> {
        let (part, place) = (&self.parts[usize::from(entry.part)], entry.place as usize);
        match entry.kind {
            Kind::Judged => Cow::Borrowed(&part.judged[place]),
            Kind::Packed => Cow::Owned(Report { number: entry.number, ..unpack(&part.packed[place * UNIT..]) }),
            Kind::Listed => {
                let listed = part.listed.as_ref().expect("its part's lists were kept");
                let (key, connection) = listed.connection(Slot::new(entry.place)).expect("a list that is not empty");
                Cow::Owned(Report { number: entry.number, ..report(key, &connection, self.keep, &mut Vec::new()) })
            }
        }
    }
}

#[cfg(test)]
mod tests;
