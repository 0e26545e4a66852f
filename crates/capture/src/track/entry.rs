//! What is kept of one connection until it is worth following: a list of its segments. What is *not* here: when it is over
//! (`follower`), and how a list is stored (`journal`).

use fullpipe_units::SeqNum;

use super::{
    journal::{Journal, List},
    options::{Options, SynOptions},
    seen::Seen,
};
use crate::{
    Flags, Sender,
    connection::Connection,
    story::{LEAST_PAYLOAD, is_worth_judging},
};

/// Fewer segments with payload than this are not enough evidence (`diagnose` says so, too): until then, a connection is
/// a list of them.
const WORTH_FOLLOWING: u8 = 20;

/// ... and a list of this many of any kind is longer than what following takes.
const LONGEST_LIST: usize = 64;

/// A connection that both ends closed is over this long after its last packet: twice the longest life of a segment that
/// systems assume (60 s; RFC 9293, section 3.4.2, says 4 minutes and that implementations choose).
const LINGER_S: u32 = 60;

/// What is known of a connection; with its key, two lines of the cache.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub(super) struct Entry {
    /// When the last segment came, on the capture's clock.
    pub(super) last_s: u32,
    pub(super) followed: Option<Box<Connection>>,
    pub(super) list: List,
    pub(super) syn: [SynOptions; 2],
}

impl Entry {
    /// Whether nothing more belongs to it at a time of the capture's clock: it is closed, or was not heard of for `idle_s`,
    /// which is longer than a closed one lingers.
    #[inline]
    pub(super) fn is_over(&self, clock_s: u32, idle_s: u32) -> bool {
        let silent_s = clock_s.saturating_sub(self.last_s);
        silent_s > LINGER_S && (silent_s > idle_s || self.is_closed())
    }

    /// Whether it is a SYN alone, sent once or more often, that nobody answered for `seconds` of the capture's clock.
    pub(super) fn is_unanswered(&self, clock_s: u32, seconds: u32, journal: &Journal) -> bool {
        if self.followed.is_some() || self.list.is_empty() || clock_s.saturating_sub(self.last_s) < seconds {
            return false;
        }
        let mut is_alone = !self.list.is_from_both();
        if is_alone {
            journal.each(&self.list, |seen| is_alone &= seen.flags.has(Flags::SYN) && !seen.flags.has(Flags::ACK));
        }
        is_alone
    }

    /// Whether this end sent something, as far as it was seen.
    pub(super) fn is_from(&self, sender: Sender) -> bool {
        let counted = |connection: &Connection| connection.half(sender).counters.packets > 0;
        self.followed.as_deref().map_or_else(|| self.list.is_from(sender), counted)
    }

    fn is_closed(&self) -> bool {
        self.followed.as_ref().map_or(self.list.closed == 3, |connection| connection.is_closed())
    }

    /// Whether a SYN with another initial sequence number begins another connection between the same ports.
    pub(super) fn is_another(&self, syn: &Seen, journal: &Journal) -> bool {
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
    pub(super) fn keep(&mut self, seen: &Seen, options: &Options, journal: &mut Journal) -> bool {
        let own = seen.sender() as usize;
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
    pub(super) fn sum_up(&self, room: Option<Box<Connection>>, journal: &Journal) -> Option<Box<Connection>> {
        let mut connection = self.replay(room, true, journal)?;
        connection.end();
        if connection.halves.iter().any(|half| is_worth_judging(&connection, half)) {
            connection = self.replay(Some(connection), false, journal)?;
            connection.end();
        }
        Some(connection)
    }

    /// Its outline, where a look at the list is enough to know that nothing in it will be judged: what each end sent
    /// came in order, once, found an open window, and was little. `None` says nothing: that needs [`Entry::sum_up`].
    pub(super) fn in_order(&self, journal: &Journal) -> Option<Outline> {
        if self.followed.is_some() || self.list.is_empty() {
            return None;
        }
        let (mut ends, mut payload, mut is_plain) = ([End::default(); 2], 0, true);
        journal.each(&self.list, |seen| {
            is_plain &= End::took(&mut ends, seen);
            payload += u64::from(seen.len);
        });
        let (first_number, has_payload) = (self.list.first_number(), self.list.data > 0);
        (is_plain && payload < LEAST_PAYLOAD).then_some(Outline { first_number, payload, has_payload })
    }

    /// What following it would have found, without a timeline.
    pub(super) fn restore(&self, journal: &Journal) -> Option<Box<Connection>> {
        let mut connection = self.replay(None, true, journal)?;
        connection.end();
        Some(connection)
    }

    /// From now on, it is followed.
    pub(super) fn follow(&mut self, journal: &mut Journal) {
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

/// What must be known of a connection before its story is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Outline {
    pub(super) first_number: u64,
    /// Of both directions.
    pub(super) payload: u64,
    pub(super) has_payload: bool,
}

/// What comes next from one end, if it comes in order.
#[derive(Clone, Copy, Debug, Default)]
struct End {
    next: Option<SeqNum>,
    /// Its SYN, and whether that answered one.
    syn: Option<bool>,
    has_sent_fin: bool,
}

impl End {
    /// Whether a segment continues what both ends sent.
    #[inline]
    fn took(ends: &mut [Self; 2], seen: &Seen) -> bool {
        let (is_syn, is_fin) = (seen.flags.has(Flags::SYN), seen.flags.has(Flags::FIN));
        let own = seen.sender() as usize;
        let end = &mut ends[own];
        let next = *end.next.get_or_insert(seen.seq);
        let mut is_plain = true;
        if is_syn {
            let answers = seen.flags.has(Flags::ACK);
            is_plain &= end.syn.is_none() && seen.len == 0 && seen.seq == next && !is_fin;
            (end.syn, end.next) = (Some(answers), Some(seen.seq + 1));
            is_plain &= ends[1 - own].syn != Some(answers);
        }
        let end = &mut ends[own];
        if seen.len > 0 || is_fin {
            is_plain &= !end.has_sent_fin && seen.seq == next;
            (end.has_sent_fin, end.next) = (is_fin, Some(seen.seq + seen.len + u32::from(is_fin)));
        }
        if seen.flags.has(Flags::ACK) && !seen.flags.has(Flags::RST) {
            let acked = *ends[1 - own].next.get_or_insert(seen.ack);
            is_plain &= seen.ack.at_or_before(acked) && (seen.window > 0 || is_syn || is_fin);
        }
        is_plain
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Key, track::seen::Parts};

    #[test]
    fn what_is_not_worth_following_takes_two_lines_of_the_cache_and_32_bytes_for_each_segment() {
        assert_eq!(size_of::<Key>() + size_of::<Entry>(), 128);
    }

    /// What one end sends: whether it is the high end, flags, length, how far from its order, and its window.
    type Step = (bool, u16, u32, u32, u16);

    const HANDSHAKE: [Step; 2] = [(false, 0x02, 0, 0, 1_000), (true, 0x12, 0, 0, 1_000)];

    /// A connection of these steps, one each second.
    fn after(steps: impl IntoIterator<Item = Step>) -> (Entry, Journal) {
        let (mut journal, mut entry, mut next) = (Journal::default(), Entry::default(), [100_u32, 900]);
        for (nth, (back, flags, len, off, window)) in (0..).zip(steps) {
            let (own, peer) = (usize::from(back), usize::from(!back));
            let seen = Seen::new(Parts {
                at_ns: nth * 1_000_000_000,
                clock_s: 0,
                number: nth,
                sender: if back { Sender::High } else { Sender::Low },
                seq: SeqNum::new(next[own].wrapping_sub(off)),
                ack: SeqNum::new(next[peer].wrapping_add(off / 3)),
                timestamps: None,
                len,
                length: len + 40,
                link: 0,
                window,
                flags: Flags(flags),
                id: None,
                hop_limit: 64,
                ecn: 0,
            });
            entry.keep(&seen, &Options::NONE, &mut journal);
            next[own] = next[own] + len + u32::from(flags & 2 != 0) + u32::from(flags & 1 != 0) - off.min(1);
        }
        (entry, journal)
    }

    #[test]
    fn an_ordinary_short_connection_is_in_order_and_one_that_repeats_is_not() {
        let usual = [(false, 0x10, 0, 0, 9), (false, 0x18, 300, 0, 9), (true, 0x18, 900, 0, 9), (true, 0x11, 0, 0, 9)];
        let (entry, journal) = after(HANDSHAKE.into_iter().chain(usual));
        let outline = Outline { first_number: 0, payload: 1_200, has_payload: true };
        assert_eq!(entry.in_order(&journal), Some(outline));
        for odd in [(true, 0x11, 0, 1, 9), (false, 0x10, 300, 300, 9), (false, 0x10, 0, 0, 0), (false, 0x12, 0, 0, 9)] {
            let (entry, journal) = after(HANDSHAKE.into_iter().chain(usual).chain([odd]));
            assert_eq!(entry.in_order(&journal), None, "{odd:?}");
        }
    }

    fn step() -> impl Strategy<Value = Step> {
        let flags =
            prop_oneof![8 => Just(0x10_u16), 2 => Just(0x18), 1 => Just(0x11), 1 => Just(0x14), 1 => 0_u16..0x20];
        let window = prop_oneof![20 => Just(1_000_u16), 1 => Just(0)];
        (any::<bool>(), flags, 0_u32..3, prop_oneof![20 => Just(0_u32), 1 => 0_u32..4], window)
    }

    proptest! {
        #[test]
        fn what_came_in_order_is_not_worth_judging_and_has_the_payload_of_its_segments(
            has_handshake: bool, steps in proptest::collection::vec(step(), 1..18),
        ) {
            let (entry, journal) = after(HANDSHAKE.into_iter().filter(|_| has_handshake).chain(steps));
            let report = entry.sum_up(None, &journal).unwrap();
            if let Some(outline) = entry.in_order(&journal) {
                prop_assert!(!report.halves.iter().any(|half| is_worth_judging(&report, half)), "{report:?}");
                let payload: u64 = report.halves.iter().map(|half| half.counters.payload).sum();
                let has_payload = report.halves.iter().any(|half| half.counters.data_packets > 0);
                let first_number = report.first_number;
                prop_assert_eq!(outline, Outline { first_number, payload, has_payload });
            }
        }
    }
}
