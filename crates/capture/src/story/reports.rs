//! The reports of a capture: those that were judged as they are, the others packed, so that a million connections take
//! 130 MB and not a gigabyte. What is *not* here: what is in a report.

use std::{borrow::Cow, cmp::Ordering};

use super::{
    Report,
    packed::{pack, unpack},
    report,
};
use crate::{Key, connection::Connection, track::Keep};

/// Reports, in the order of their first packets, or worst first.
#[derive(Clone, Debug, Default)]
pub struct Reports {
    keep: Keep,
    told: Vec<Told>,
    parts: Vec<Part>,
}

/// What order is made by, and where the report is.
#[derive(Clone, Copy, Debug)]
struct Told {
    number: u64,
    first_packet: u64,
    payload: u64,
    weight: f64,
    part: u32,
    place: Place,
}

impl Told {
    fn worse(&self, other: &Self) -> Ordering {
        let by_weight = other.weight.partial_cmp(&self.weight).unwrap_or(Ordering::Equal);
        by_weight.then_with(|| other.payload.cmp(&self.payload)).then_with(|| self.number.cmp(&other.number))
    }
}

#[derive(Clone, Copy, Debug)]
enum Place {
    /// Its place among those that were judged.
    Whole(u32),
    /// Where its bytes begin, in units of [`UNIT`].
    Packed(u32),
}

/// Packed reports begin at multiples of this, so that 32 bits reach as far as memory does.
const UNIT: usize = 8;

/// What one follower told.
#[derive(Clone, Debug, Default)]
struct Part {
    judged: Vec<Report>,
    packed: Vec<u8>,
}

impl Reports {
    pub(crate) const fn new(keep: Keep) -> Self {
        Self { keep, told: Vec::new(), parts: Vec::new() }
    }

    /// How many there are.
    pub const fn len(&self) -> usize {
        self.told.len()
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.told.is_empty()
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = Cow<'_, Report>> {
        self.told.iter().map(|told| self.report(told))
    }

    /// The one at `place` of the order.
    pub fn get(&self, place: usize) -> Option<Cow<'_, Report>> {
        self.told.get(place).map(|told| self.report(told))
    }

    /// The one with that number.
    pub fn numbered(&self, number: u64) -> Option<Cow<'_, Report>> {
        self.told.iter().find(|told| told.number == number).map(|told| self.report(told))
    }

    /// Forgets all but the one with that number; tells whether there is one.
    pub fn keep_numbered(&mut self, number: u64) -> bool {
        self.told.retain(|told| told.number == number);
        !self.told.is_empty()
    }

    /// Puts those first in which most time was lost to something that can be lifted, then those that carried most: as many
    /// as will be looked at, the others in any order.
    pub fn worst_first(&mut self, looked_at: usize) {
        if looked_at < self.told.len() {
            self.told.select_nth_unstable_by(looked_at, Told::worse);
        }
        let first = looked_at.min(self.told.len());
        self.told[..first].sort_unstable_by(Told::worse);
    }

    pub(crate) fn tell(&mut self, key: &Key, connection: &Connection) {
        let report = report(key, connection, self.keep);
        if self.parts.is_empty() {
            self.parts.push(Part::default());
        }
        let last = self.parts.len() - 1;
        let part = &mut self.parts[last];
        let (first_packet, payload, weight) = (report.first_packet, report.payload().get(), report.weight());
        let place = if report.sides.iter().any(|side| side.verdict.is_some()) {
            part.judged.push(report);
            Place::Whole((part.judged.len() - 1) as u32)
        } else {
            let from = part.packed.len() / UNIT;
            pack(&report, &mut part.packed);
            part.packed.resize(part.packed.len().next_multiple_of(UNIT), 0);
            Place::Packed(from as u32)
        };
        self.told.push(Told { number: 0, first_packet, payload, weight, part: last as u32, place });
    }

    /// Adds those of another part.
    pub(crate) fn append(&mut self, other: Self) {
        let before = self.parts.len() as u32;
        self.parts.extend(other.parts);
        self.told.extend(other.told.into_iter().map(|told| Told { part: told.part + before, ..told }));
    }

    /// Numbers them, in the order of their first packets.
    pub(crate) fn number(&mut self) {
        // What each part tells is nearly in order: a stable sort merges what it finds sorted.
        self.told.sort_by_key(|told| told.first_packet);
        for (number, told) in (1..).zip(&mut self.told) {
            told.number = number;
            if let Place::Whole(place) = told.place {
                self.parts[told.part as usize].judged[place as usize].number = number;
            }
        }
    }

    fn report(&self, told: &Told) -> Cow<'_, Report> {
        let part = &self.parts[told.part as usize];
        match told.place {
            Place::Whole(place) => Cow::Borrowed(&part.judged[place as usize]),
            Place::Packed(from) => {
                Cow::Owned(Report { number: told.number, ..unpack(&part.packed[from as usize * UNIT..]) })
            }
        }
    }
}

#[cfg(test)]
mod tests;
