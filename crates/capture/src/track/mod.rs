//! From segments to connections: finds the connection of each, keeps little of one until it is worth following, and lets
//! go of those that are over. What is *not* here: what happens within a connection (`connection`).

pub(crate) mod options;
pub(crate) mod seen;

#[cfg(test)]
mod tests;

use crate::{
    Flags, Key, Segment, Sink, Table, TooBig,
    connection::Connection,
    story::{Report, Stories, is_worth_judging},
};
use options::{Options, SynOptions};
use seen::{Kept, Seen};

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

/// ... and after this long while more connections are open than `MANY`, so that a flood of SYNs takes bounded room.
const IDLE_AMONG_MANY_NS: u64 = 120_000_000_000;
const MANY: usize = 1_000_000;

/// Connections without payload beyond this many are counted and not told one by one.
const MOST_SILENT: u64 = 1_000_000;

/// Follows the connections of a capture.
#[derive(Debug)]
pub struct Tracker {
    table: Table,
    entries: Vec<Entry>,
    stories: Stories,
    silent: u64,
    unlisted: u64,
    segments: u64,
    now_ns: u64,
}

/// What is to be kept of the stories.
#[derive(Clone, Copy, Debug, Default)]
pub struct Keep {
    /// The transfers that were judged, sample by sample, of every connection that was worth following.
    pub transfers: bool,
}

/// What a capture held.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// The connections, in the order of their first packets.
    pub connections: Vec<Report>,
    /// Connections without payload that are not among them, because there were too many.
    pub unlisted: u64,
    /// TCP segments.
    pub segments: u64,
}

/// A slot of the table.
#[derive(Debug)]
enum Entry {
    Free,
    /// A list of segments, and what doesn't fit into it.
    Young(Young),
    Followed(Box<Connection>),
}

#[derive(Debug, Default)]
struct Young {
    kept: Vec<Kept>,
    syn: [SynOptions; 2],
    isn: [Option<u32>; 2],
    last_ns: u64,
    data: u8,
    closed: u8,
    cut: bool,
}

impl Tracker {
    /// Nothing seen yet. `seed` must be one that the author of a capture can't foresee (see [`Table::new`]).
    pub fn new(seed: u64, keep: Keep) -> Self {
        Self {
            table: Table::new(seed),
            entries: Vec::new(),
            stories: Stories::new(keep),
            silent: 0,
            unlisted: 0,
            segments: 0,
            now_ns: 0,
        }
    }

    /// The stories of all connections.
    pub fn finish(mut self) -> Findings {
        let slots: Vec<_> = self.table.slots().collect();
        for slot in slots {
            let entry = core::mem::replace(&mut self.entries[slot.index()], Entry::Free);
            let key = *self.table.key(slot);
            self.tell(&key, entry);
        }
        Findings { connections: self.stories.in_order(), unlisted: self.unlisted, segments: self.segments }
    }

    fn tell(&mut self, key: &Key, entry: Entry) {
        let connection = match entry {
            Entry::Free => return,
            Entry::Young(young) => match young.sum_up() {
                Some(connection) => connection,
                None => return,
            },
            Entry::Followed(connection) => *connection,
        };
        if connection.halves.iter().all(|half| half.counters.data_packets == 0) {
            self.silent += 1;
            if self.silent > MOST_SILENT {
                self.unlisted += 1;
                return;
            }
        }
        self.stories.tell(key, &connection);
    }

    /// Looks at two slots for each new one, so that none is forgotten.
    fn patrol(&mut self) {
        let idle_ns = if self.table.len() > MANY { IDLE_AMONG_MANY_NS } else { IDLE_NS };
        let now_ns = self.now_ns;
        let mut over = Vec::new();
        let entries = &mut self.entries;
        self.table.patrol(2, |slot| {
            let Some(entry) = entries.get_mut(slot.index()) else { return false };
            let (last_ns, is_closed) = entry.age();
            let is_over = now_ns.saturating_sub(last_ns) > if is_closed { LINGER_NS } else { idle_ns };
            if is_over {
                over.push((slot, core::mem::replace(entry, Entry::Free)));
            }
            is_over
        });
        for (slot, entry) in over {
            let key = *self.table.key(slot);
            self.tell(&key, entry);
        }
    }
}

impl Sink for Tracker {
    fn segment(&mut self, segment: &Segment<'_>) {
        self.segments += 1;
        self.now_ns = self.now_ns.max(segment.at_ns);
        let (key, sender) = Key::of(&segment.flow);
        let (slot, is_new) = self.table.find_or_insert(&key);
        let index = slot.index();
        if is_new {
            if index >= self.entries.len() {
                self.entries.push(Entry::Free);
            }
            self.entries[index] = Entry::Young(Young::default());
        }
        let options = Options::parse(segment.options);
        let seen = Seen::of(segment, sender, options);
        if self.entries[index].is_another(&seen) {
            let old = core::mem::replace(&mut self.entries[index], Entry::Young(Young::default()));
            self.tell(&key, old);
        }
        let entry = &mut self.entries[index];
        match entry {
            Entry::Followed(connection) => {
                connection.options_cut |= segment.options_cut;
                connection.on(&seen);
            }
            Entry::Young(young) => {
                young.cut |= segment.options_cut;
                if young.keep(&seen)
                    && let Some(mut connection) = core::mem::take(young).follow()
                {
                    if options.sack_count > 0 {
                        connection.on(&seen);
                    }
                    *entry = Entry::Followed(Box::new(connection));
                }
            }
            Entry::Free => {}
        }
        if is_new {
            self.patrol();
        }
    }

    fn too_big(&mut self, notice: &TooBig) {
        let (key, sender) = Key::of(&notice.about);
        let Some(slot) = self.table.find(&key) else { return };
        let Some(entry) = self.entries.get_mut(slot.index()) else { return };
        if let Entry::Young(young) = entry
            && let Some(connection) = core::mem::take(young).follow()
        {
            *entry = Entry::Followed(Box::new(connection));
        }
        if let Entry::Followed(connection) = entry {
            connection.on_too_big(notice, sender);
        }
    }
}

impl Entry {
    /// When it was last heard of, and whether it is closed.
    fn age(&self) -> (u64, bool) {
        match self {
            Self::Free => (0, true),
            Self::Young(young) => (young.last_ns, young.closed == 3),
            Self::Followed(connection) => (connection.last_ns, connection.is_closed()),
        }
    }

    /// Whether a SYN with another initial sequence number begins another connection between the same ports.
    fn is_another(&self, seen: &Seen) -> bool {
        if !seen.flags.has(Flags::SYN) || seen.flags.has(Flags::ACK) {
            return false;
        }
        let isn = match self {
            Self::Free => return false,
            Self::Young(young) if young.kept.is_empty() => return false,
            Self::Young(young) => young.isn[seen.sender as usize],
            Self::Followed(connection) => connection.half(seen.sender).isn(),
        };
        isn.is_none_or(|isn| isn != seen.seq.get()) && !self.is_simultaneous(seen)
    }

    /// Whether this SYN crosses another one that was not answered yet (RFC 9293, section 3.5).
    fn is_simultaneous(&self, seen: &Seen) -> bool {
        let Self::Young(young) = self else { return false };
        young.isn[seen.sender as usize].is_none() && young.kept.iter().all(Kept::is_syn)
    }
}

impl Young {
    /// Notes a segment; says whether the connection is now worth following. One with SACK blocks is, and is not kept,
    /// because there is no room for them here.
    fn keep(&mut self, seen: &Seen) -> bool {
        let own = seen.sender as usize;
        self.last_ns = self.last_ns.max(seen.at_ns);
        if seen.flags.has(Flags::SYN) {
            self.isn[own] = Some(seen.seq.get());
            self.syn[own] = seen.options.syn;
        }
        if seen.flags.has(Flags::RST) {
            self.closed = 3;
        } else if seen.flags.has(Flags::FIN) {
            self.closed |= 1 << own;
        }
        if seen.options.sack_count > 0 && !self.kept.is_empty() {
            return true;
        }
        // 4, 10, 19, 32, ...: most lists stay short, and doubling would leave a third of their room empty.
        if self.kept.len() == self.kept.capacity() {
            self.kept.reserve_exact(self.kept.len() / 2 + 4);
        }
        self.kept.push(Kept::of(seen));
        self.data += u8::from(seen.len > 0);
        self.data >= WORTH_FOLLOWING || self.kept.len() >= LONGEST_LIST
    }

    /// The connection after the segments of the list. One that is over has a timeline only if it will be judged.
    fn sum_up(self) -> Option<Connection> {
        let connection = self.replay(Connection::timeless)?;
        if connection.halves.iter().any(|half| is_worth_judging(&connection, half)) {
            self.follow()
        } else {
            Some(connection)
        }
    }

    /// The connection as it is after the segments of the list.
    fn follow(self) -> Option<Connection> {
        self.replay(Connection::new)
    }

    fn replay(&self, begin: impl Fn(&Seen) -> Connection) -> Option<Connection> {
        let mut connection = begin(&self.kept.first()?.seen());
        connection.options_cut = self.cut;
        for kept in &self.kept {
            let mut seen = kept.seen();
            if seen.flags.has(Flags::SYN) {
                seen.options.syn = self.syn[seen.sender as usize];
            }
            connection.on(&seen);
        }
        Some(connection)
    }
}
