//! Finds the connection of each segment, keeps little of one until it is worth following, and lets go of those that are
//! over. What is *not* here: what happens within a connection (`connection`).

use super::{
    Findings, Keep,
    batch::{Batch, Note, PARTS},
    journal::{Journal, List},
    options::{Options, SynOptions},
    seen::Seen,
};
use crate::{
    Flags, Key, Table, TooBig,
    connection::Connection,
    story::{Reports, is_worth_judging},
};

/// Fewer segments with payload than this are not enough evidence (`diagnose` says so, too): until then, a connection is
/// a list of them.
const WORTH_FOLLOWING: u8 = 20;

/// ... and a list of this many of any kind is longer than what following takes.
const LONGEST_LIST: usize = 64;

/// A connection that both ends closed is over this long after its last packet: twice the longest life of a segment that
/// systems assume (60 s; RFC 9293, section 3.4.2, says 4 minutes and that implementations choose).
const LINGER_NS: u64 = 60_000_000_000;

/// One that is open is let go after this long without a packet, twice the interval of keep-alives (RFC 9293, section
/// 3.8.4); what comes later is told as another connection.
const IDLE_NS: u64 = 4 * 3_600_000_000_000;

/// ... and after this long while more connections of a part are open than `MANY` (a million of all parts), so that a
/// flood of SYNs takes bounded room.
const IDLE_AMONG_MANY_NS: u64 = 120_000_000_000;
const MANY: usize = 1_000_000 / PARTS;

/// Connections without payload beyond this many of a part are counted and not told one by one.
const MOST_SILENT: u64 = 2_000_000 / PARTS as u64;

/// So many look-ups wait for memory at once. More than a core can have under way, so that the last of one round of
/// reading has come when the next round begins.
const AT_ONCE: usize = 32;

/// So many connections' lists are read at once where all are told: they have some five lines each.
const TOLD_AT_ONCE: usize = 8;

/// Fewer connections than this stay in the cache anyway.
const SPARSE: usize = 1_024;

/// Follows the connections of one part.
#[derive(Debug)]
pub struct Follower {
    table: Table<Entry>,
    journal: Journal,
    reports: Reports,
    /// Connections that were never followed are told by this one, over and over.
    brief: Option<Box<Connection>>,
    silent: u64,
    unlisted: u64,
    segments: u64,
    now_ns: u64,
}

/// What is known of a connection; with its key, two lines of the cache.
#[derive(Debug, Default)]
#[repr(C)]
struct Entry {
    last_ns: u64,
    followed: Option<Box<Connection>>,
    list: List,
    syn: [SynOptions; 2],
}

impl Follower {
    /// Nothing seen yet. `seed` is that of the [`super::Sorter`].
    pub fn new(seed: u64, keep: Keep) -> Self {
        Self {
            table: Table::new(seed),
            journal: Journal::default(),
            reports: Reports::new(keep),
            brief: None,
            silent: 0,
            unlisted: 0,
            segments: 0,
            now_ns: 0,
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
                let (mut teller, table) = self.parts();
                teller.tell_last(&key, table.value_mut(*slot));
            }
        }
        Findings { connections: self.reports, unlisted: self.unlisted, segments: self.segments }
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
        self.now_ns = self.now_ns.max(seen.at_ns);
        let (slot, is_new) = self.table.find_or_insert_tagged(note.tag, &note.key);
        let (mut teller, table) = self.parts();
        let entry = table.value_mut(slot);
        if note.opens() && !is_new && entry.is_another(seen, teller.journal) {
            teller.tell(&note.key, entry);
        }
        match &mut entry.followed {
            Some(connection) => {
                if note.options_cut {
                    connection.options_cut = true;
                }
                connection.on(seen, options);
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
            self.patrol();
        }
    }

    fn too_big(&mut self, notice: &TooBig) {
        let (key, sender) = Key::of(&notice.about);
        let Some(slot) = self.table.find(&key) else { return };
        let entry = self.table.value_mut(slot);
        if entry.followed.is_none() {
            entry.follow(&mut self.journal);
        }
        if let Some(connection) = &mut entry.followed {
            connection.on_too_big(notice, sender);
        }
    }

    /// Looks at two slots for each new one, so that none is forgotten.
    fn patrol(&mut self) {
        let idle_ns = if self.table.len() > MANY { IDLE_AMONG_MANY_NS } else { IDLE_NS };
        let now_ns = self.now_ns;
        let (mut teller, table) = self.parts();
        table.patrol(2, |key, entry| {
            let (last_ns, is_closed) = entry.age();
            let is_over = now_ns.saturating_sub(last_ns) > if is_closed { LINGER_NS } else { idle_ns };
            if is_over {
                teller.tell(key, entry);
            }
            is_over
        });
    }

    fn parts(&mut self) -> (Teller<'_>, &mut Table<Entry>) {
        let Self { table, journal, reports, brief, silent, unlisted, .. } = self;
        (Teller { journal, reports, brief, silent, unlisted }, table)
    }
}

/// What telling a connection's story needs.
struct Teller<'a> {
    journal: &'a mut Journal,
    reports: &'a mut Reports,
    brief: &'a mut Option<Box<Connection>>,
    silent: &'a mut u64,
    unlisted: &'a mut u64,
}

impl Teller<'_> {
    /// Tells the story of an entry, which is as new then.
    fn tell(&mut self, key: &Key, entry: &mut Entry) {
        self.tell_last(key, entry);
        self.journal.clear(&mut entry.list);
        *entry = Entry::default();
    }

    /// The same where nothing comes after it.
    fn tell_last(&mut self, key: &Key, entry: &mut Entry) {
        if let Some(connection) = entry.followed.take() {
            self.report(key, &connection);
        } else if let Some(connection) = entry.sum_up(self.brief.take(), self.journal) {
            self.report(key, &connection);
            *self.brief = Some(connection);
        }
    }

    fn report(&mut self, key: &Key, connection: &Connection) {
        if connection.halves.iter().all(|half| half.counters.data_packets == 0) {
            *self.silent += 1;
            if *self.silent > MOST_SILENT {
                *self.unlisted += 1;
                return;
            }
        }
        self.reports.tell(key, connection);
    }
}

impl Entry {
    /// When it was last heard of, and whether it is closed.
    fn age(&self) -> (u64, bool) {
        match &self.followed {
            None => (self.last_ns, self.list.closed == 3),
            Some(connection) => (connection.last_ns, connection.is_closed()),
        }
    }

    /// Whether a SYN with another initial sequence number begins another connection between the same ports.
    fn is_another(&self, syn: &Seen, journal: &Journal) -> bool {
        let (sender, seq) = (syn.sender(), syn.seq.get());
        if let Some(connection) = &self.followed {
            return connection.half(sender).isn().is_none_or(|isn| isn != seq);
        }
        if self.list.is_empty() {
            return false;
        }
        let (mut own, mut syns) = (None, 0);
        journal.each(&self.list, |kept| {
            if kept.flags.has(Flags::SYN) {
                syns += 1;
                own = Some(kept).filter(|kept| kept.sender() == sender).map(|kept| kept.seq.get()).or(own);
            }
        });
        match own {
            Some(kept) => kept != seq,
            // It crosses another one that was not answered yet (RFC 9293, section 3.5).
            None => syns < self.list.len(),
        }
    }

    /// Notes a segment; says whether the connection is now worth following. One with SACK blocks is, and is not kept,
    /// because there is no room for them here.
    #[inline]
    fn keep(&mut self, seen: &Seen, options: &Options, journal: &mut Journal) -> bool {
        let own = seen.sender() as usize;
        self.last_ns = self.last_ns.max(seen.at_ns);
        if seen.flags.has(Flags::SYN) {
            self.syn[own] = options.syn;
        }
        if seen.flags.has(Flags::RST) {
            self.list.closed = 3;
        } else if seen.flags.has(Flags::FIN) {
            self.list.closed |= 1 << own;
        }
        if options.sack_count > 0 && !self.list.is_empty() {
            return true;
        }
        journal.push(&mut self.list, seen);
        self.list.data += u8::from(seen.len > 0);
        self.list.data >= WORTH_FOLLOWING || self.list.len() >= LONGEST_LIST
    }

    /// The connection after the segments of the list, in `room`. One that is over has a timeline only if it will be
    /// judged.
    fn sum_up(&self, room: Option<Box<Connection>>, journal: &Journal) -> Option<Box<Connection>> {
        let mut connection = self.replay(room, true, journal)?;
        if connection.halves.iter().any(|half| is_worth_judging(&connection, half)) {
            connection = self.replay(Some(connection), false, journal)?;
        }
        Some(connection)
    }

    /// From now on, it is followed.
    fn follow(&mut self, journal: &mut Journal) {
        self.followed = self.replay(None, false, journal);
        journal.clear(&mut self.list);
    }

    fn replay(&self, room: Option<Box<Connection>>, is_timeless: bool, journal: &Journal) -> Option<Box<Connection>> {
        if self.list.is_empty() {
            return None;
        }
        let mut connection = room.unwrap_or_default();
        let mut is_first = true;
        journal.each(&self.list, |seen| {
            if is_first {
                connection.restart(seen, is_timeless);
                connection.options_cut = self.list.options_cut;
                is_first = false;
            }
            if seen.flags.has(Flags::SYN) {
                connection.on(seen, &Options { syn: self.syn[seen.sender() as usize], ..Options::NONE });
            } else {
                connection.on(seen, &Options::NONE);
            }
        });
        Some(connection)
    }
}

#[cfg(test)]
impl Follower {
    /// Connections that there is room for, whether or not they are over.
    pub(super) fn places(&self) -> usize {
        self.table.places()
    }

    /// Bytes of what is kept of connections that are not followed.
    pub(super) fn room(&self) -> usize {
        self.table.places() * 128 + self.table.index_bytes() + self.journal.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_worth_following_takes_two_lines_of_the_cache_and_32_bytes_for_each_segment() {
        assert_eq!(size_of::<Key>() + size_of::<Entry>(), 128);
    }
}
