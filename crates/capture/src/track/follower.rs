//! Finds the connection of each segment, keeps little of one until it is worth following, and lets go of those that are
//! over. What is *not* here: what happens within a connection (`connection`).

use std::collections::VecDeque;

use super::{
    Findings, Keep,
    batch::{Batch, Note, PARTS},
    entry::Entry,
    journal::Journal,
    listed::Listed,
    options::Options,
    ways::Ways,
};
use crate::{
    Flags, Key, Slot, Table, TooBig,
    connection::{Connection, other},
    story::Reports,
};

/// One that is open is let go after this long without a packet, twice the interval of keep-alives (RFC 9293, section
/// 3.8.4); what comes later is reported as another connection.
const IDLE_S: u32 = 4 * 3_600;

/// ... and after this long while more connections of a part are open than `MANY` (a million of all parts), so that a
/// flood of SYNs takes bounded room.
const IDLE_AMONG_MANY_S: u32 = 120;
const MANY: usize = 1_000_000 / PARTS;

/// ... but a SYN that nobody answered for this long then, three times the first retransmission timeout (RFC 6298, section 2),
/// and at once where an eighth more is open: those are counted and not listed, and a hundred thousand in a second take no more
/// room than these.
const UNANSWERED_S: u32 = 3;
const TOO_MANY: usize = MANY + MANY / 8;

/// One that both ends closed takes no more room than its story once it has been silent for this long. A busy server closes thousands in
/// the minute before they are let go, and a timeline that may still go on takes up to 140 kB.
const QUIET_S: u32 = 2;

/// Connections without payload beyond this many of a part are counted and not listed one by one.
const MOST_SILENT: u64 = 2_000_000 / PARTS as u64;

/// So many look-ups wait for memory at once. More than a core can have under way, so that the last of one round of
/// reading has come when the next round begins.
const AT_ONCE: usize = 32;

/// So many connections' lists are read at once where all are listed: they have some five lines each.
const TOLD_AT_ONCE: usize = 8;

/// Fewer connections than this stay in the cache anyway.
const SPARSE: usize = 1_024;

/// Follows the connections of one part.
#[derive(Debug)]
pub struct Follower {
    table: Table<Entry>,
    ways: Ways,
    journal: Journal,
    reports: Reports,
    /// Connections that were never followed are read into this one, over and over.
    brief: Option<Box<Connection>>,
    /// Followed connections that both ends closed, each once, and since when they may be silent.
    closed: VecDeque<(Slot, u32)>,
    silent: u64,
    unlisted: u64,
    unanswered: u64,
    segments: u64,
    clock_s: u32,
}

impl Follower {
    /// Nothing seen yet. `seed` is that of the [`super::Sorter`].
    pub fn new(seed: u64, keep: Keep) -> Self {
        Self {
            table: Table::new(seed),
            ways: Ways::new(seed),
            journal: Journal::default(),
            reports: Reports::new(keep),
            brief: None,
            closed: VecDeque::new(),
            silent: 0,
            unlisted: 0,
            unanswered: 0,
            segments: 0,
            clock_s: 0,
        }
    }

    /// Follows what is in a batch of its part.
    pub fn follow(&mut self, batch: &Batch) {
        let mut messages = batch.too_big.iter();
        let mut message = messages.next();
        let mut rare = batch.rare();
        for (round, notes) in batch.notes.chunks(AT_ONCE).enumerate() {
            self.touch(notes);
            for (place, note) in notes.iter().enumerate() {
                while let Some((before, notice)) = message
                    && *before <= round * AT_ONCE + place
                {
                    self.too_big(notice);
                    message = messages.next();
                }
                let options = if note.is_rare { rare.next() } else { None };
                self.segment(note, options.unwrap_or(&Options::NONE));
            }
        }
        message.into_iter().chain(messages).for_each(|(_, notice)| self.too_big(notice));
    }

    /// The stories of all connections.
    pub fn finish(mut self) -> Findings {
        let slots: Vec<_> = self.table.slots().collect();
        for slots in slots.chunks(TOLD_AT_ONCE) {
            let lists = slots.iter().map(|slot| &self.table.value(*slot).list);
            core::hint::black_box(lists.fold(0, |sum, list| sum ^ self.journal.touch(list)));
            for slot in slots {
                let key = *self.table.key(*slot);
                let (mut teller, table, _) = self.parts();
                teller.tell_last(*slot, &key, table.value_mut(*slot));
            }
        }
        self.reports.take_lists(Listed::new(self.table, self.journal));
        Findings {
            connections: self.reports,
            unlisted: self.unlisted,
            unanswered: self.unanswered,
            segments: self.segments,
        }
    }

    /// Brings what the notes are about into the cache, all at once: one after another, each would wait for memory two or
    /// three times.
    fn touch(&self, notes: &[Note]) {
        if self.table.len() < SPARSE {
            return;
        }
        let index = notes.iter().fold(0, |sum, note| sum ^ self.table.touch_index(note.tag));
        core::hint::black_box(index);
        let places = notes.iter().filter_map(|note| self.table.touch_place(note.tag));
        core::hint::black_box(places.fold(0, |sum, (key, entry)| sum ^ key ^ entry.list.touch() ^ entry.syn[0].layout));
    }

    #[inline]
    fn segment(&mut self, note: &Note, options: &Options) {
        let seen = &note.seen;
        self.segments += 1;
        self.clock_s = seen.clock_s;
        let (slot, is_new) = self.slot(note);
        let (mut teller, table, _) = self.parts();
        let mut entry = table.value_mut(slot);
        // Not when the scan comes by, which is by chance.
        let is_over = entry.is_over(seen.clock_s, IDLE_S);
        if !is_new && (is_over || note.opens() && entry.is_another(seen, teller.journal)) {
            let key = *table.key(slot);
            entry = table.value_mut(slot);
            teller.tell(&key, entry);
        }
        entry.last_s = seen.clock_s;
        match &mut entry.followed {
            Some(connection) => {
                if note.options_cut {
                    connection.options_cut = true;
                }
                let may_close = seen.flags.has(Flags::FIN.with(Flags::RST)) && !connection.is_closed();
                connection.on(seen, options);
                if may_close && connection.is_closed() {
                    self.settle(slot);
                }
            }
            None => {
                entry.list.options_cut |= note.options_cut;
                if entry.keep(seen, options, teller.journal) {
                    entry.follow(teller.journal);
                    if let Some(connection) = entry.followed.as_mut().filter(|_| options.sack_count > 0) {
                        connection.on(seen, options);
                    }
                }
            }
        }
        if is_new {
            self.scan();
        }
    }

    /// The connection of a note, and whether it is new.
    #[inline]
    fn slot(&mut self, note: &Note) -> (Slot, bool) {
        if self.ways.is_empty() && !note.key.is_tunnelled() {
            return self.table.find_or_insert_tagged(note.tag, &note.key);
        }
        match self.table.find_tagged(note.tag, &note.key) {
            Some(slot) => (slot, false),
            None => self.otherwise_carried(note),
        }
    }

    /// The same where no connection has the key of the segment, which may be the other direction of one that is carried differently.
    #[cold]
    fn otherwise_carried(&mut self, note: &Note) -> (Slot, bool) {
        let Note { key, seen, .. } = note;
        if let Some(slot) = self.ways.apart(key) {
            return (slot, false);
        }
        let plain = if key.is_tunnelled() { self.table.find(&key.ends()) } else { None };
        let other = plain.or_else(|| self.ways.tunnelled(key)).filter(|slot| {
            let entry = self.table.value(*slot);
            !entry.is_over(seen.clock_s, IDLE_S) && entry.is_from(other(seen.sender())) && !entry.is_from(seen.sender())
        });
        if let Some(slot) = other {
            self.ways.join(key, slot);
            return (slot, false);
        }
        let (slot, is_new) = self.table.find_or_insert_tagged(note.tag, key);
        self.ways.note(key, slot);
        (slot, is_new)
    }

    /// Notes that both ends closed a connection, and has those that have been silent since take less room.
    #[cold]
    fn settle(&mut self, slot: Slot) {
        let clock_s = self.clock_s;
        self.closed.push_back((slot, clock_s));
        while let Some((slot, _)) = self.closed.pop_front_if(|(_, at_s)| clock_s.saturating_sub(*at_s) >= QUIET_S) {
            let entry = self.table.value_mut(slot);
            // Another one may have taken its place.
            let Some(connection) = entry.followed.as_mut().filter(|connection| connection.is_closed()) else {
                continue;
            };
            if clock_s.saturating_sub(entry.last_s) >= QUIET_S {
                connection.settle();
            } else {
                self.closed.push_back((slot, clock_s));
            }
        }
    }

    fn too_big(&mut self, notice: &TooBig) {
        let (key, sender) = Key::from_flow(&notice.about);
        let Some(slot) = self.table.find(&key).or_else(|| self.ways.apart(&key)) else { return };
        let entry = self.table.value_mut(slot);
        if entry.followed.is_none() {
            entry.follow(&mut self.journal);
        }
        if let Some(connection) = &mut entry.followed {
            connection.on_too_big(notice, sender);
        }
    }

    /// Looks at two slots for each new one, so that none is forgotten.
    fn scan(&mut self) {
        let idle_s = if self.table.len() > MANY { IDLE_AMONG_MANY_S } else { IDLE_S };
        let clock_s = self.clock_s;
        let unanswered_s = match self.table.len() {
            len if len > TOO_MANY => Some(0),
            len if len > MANY => Some(UNANSWERED_S),
            _ => None,
        };
        let (mut teller, table, ways) = self.parts();
        table.scan(2, |slot, key, entry| {
            let is_unanswered =
                unanswered_s.is_some_and(|seconds| entry.is_unanswered(clock_s, seconds, teller.journal));
            let is_over = is_unanswered || entry.is_over(clock_s, idle_s);
            if is_unanswered {
                teller.count(entry);
            } else if is_over {
                teller.tell(key, entry);
            }
            if is_over && !ways.is_empty() {
                ways.forget(key, slot);
            }
            is_over
        });
    }

    fn parts(&mut self) -> (Teller<'_>, &mut Table<Entry>, &mut Ways) {
        let Self { table, ways, journal, reports, brief, silent, unlisted, unanswered, .. } = self;
        (Teller { journal, reports, brief, silent, unlisted, unanswered }, table, ways)
    }
}

/// What telling a connection's story needs.
struct Teller<'a> {
    journal: &'a mut Journal,
    reports: &'a mut Reports,
    brief: &'a mut Option<Box<Connection>>,
    silent: &'a mut u64,
    unlisted: &'a mut u64,
    unanswered: &'a mut u64,
}

impl Teller<'_> {
    /// Tells the story of an entry, which is as new then.
    fn tell(&mut self, key: &Key, entry: &mut Entry) {
        self.tell_whole(key, entry);
        self.journal.clear(&mut entry.list);
        *entry = Entry::default();
    }

    /// The same where nothing comes after it: what needs no judgement stays as it is until it is asked for.
    fn tell_last(&mut self, slot: Slot, key: &Key, entry: &mut Entry) {
        match entry.in_order(self.journal) {
            Some(plain) if plain.has_payload || self.is_room_for_silent() => {
                self.reports.list(plain.first_number, plain.payload, slot);
            }
            Some(_) => {}
            None => self.tell_whole(key, entry),
        }
    }

    /// Counts an entry that is nothing but an unanswered SYN, which is as new then.
    fn count(&mut self, entry: &mut Entry) {
        *self.unanswered += 1;
        *self.unlisted += 1;
        self.journal.clear(&mut entry.list);
        *entry = Entry::default();
    }

    fn tell_whole(&mut self, key: &Key, entry: &mut Entry) {
        if let Some(mut connection) = entry.followed.take() {
            connection.end();
            self.report(key, &connection);
        } else if let Some(connection) = entry.sum_up(self.brief.take(), self.journal) {
            self.report(key, &connection);
            *self.brief = Some(connection);
        }
    }

    fn report(&mut self, key: &Key, connection: &Connection) {
        let is_silent = connection.halves.iter().all(|half| half.counters.data_packets == 0);
        if !is_silent || self.is_room_for_silent() {
            self.reports.tell(key, connection);
        }
    }

    /// Counts one without payload.
    fn is_room_for_silent(&mut self) -> bool {
        *self.silent += 1;
        let is_room = *self.silent <= MOST_SILENT;
        *self.unlisted += u64::from(!is_room);
        is_room
    }
}

#[cfg(test)]
impl Follower {
    /// Connections that there is room for, whether or not they are over.
    pub(super) fn places(&self) -> usize {
        self.table.places()
    }

    /// Bins of all connections that are followed.
    pub(super) fn bins(&self) -> usize {
        let followed = self.table.slots().filter_map(|slot| self.table.value(slot).followed.as_ref());
        let halves = followed.flat_map(|connection| &connection.halves);
        halves.filter_map(|half| half.flight.bins.as_ref()).map(|bins| bins.coarse(0).0.len()).sum()
    }

    /// Bytes of what is kept of connections that are not followed.
    pub(super) fn room(&self) -> usize {
        self.table.places() * 128 + self.table.index_bytes() + self.journal.bytes()
    }
}
