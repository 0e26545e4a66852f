//! The segments of connections that are not followed yet, 32 bytes each, so that what nobody will look at takes little
//! room: everything but SACK blocks, the options of a SYN, and when it
//! came on the capture's clock. What is *not* here: when a list has become too long.
//!
//! Two records fill a line of the cache; a connection's records are a chain of such lines.

use fullpipe_units::SeqNum;

use super::seen::{Parts, Seen};
use crate::{Flags, Sender, slab::Slab};

/// One record, or what didn't fit into the one before it.
type Record = [u64; 4];

/// Two records; the second one of the last line may be unused.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Line([Record; 2]);

/// Lines of all lists.
#[derive(Clone, Debug, Default)]
pub(super) struct Journal {
    lines: Slab<Line>,
    /// The line before each one in its chain; nothing for the first one.
    before: Vec<u32>,
    free: Vec<u32>,
}

/// The list of one connection, oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct List {
    first_ns: u64,
    first_number: u64,
    /// The last line of the chain.
    tail: u32,
    /// Records in the chain.
    records: u16,
    /// Segments in it.
    segments: u16,
    /// What most segments of one end have in common, from the first one of each end.
    links: [u32; 2],
    hop_limits: [u8; 2],
    has_sent: [bool; 2],
    /// Segments with payload.
    pub(super) data: u8,
    /// Which ends closed the connection, a bit for each.
    pub(super) closed: u8,
    /// Whether the capture cut options of any of them.
    pub(super) options_cut: bool,
}

/// Lengths of headers (IP and TCP) that a record has a code for, which is the place here; 0 says that a second record
/// follows.
const HEADERS: [u32; 8] = [0, 40, 44, 48, 52, 60, 72, 80];

/// The codes of headers, by their lengths in units of 4 bytes: a look at this instead of a search for each segment.
const CODES: [u8; 21] = {
    let mut codes = [0; 21];
    let mut code = 1;
    while code < HEADERS.len() {
        codes[HEADERS[code] as usize / 4] = code as u8;
        code += 1;
    }
    codes
};

/// Bits of a record's last 16: the flags, then these, then the code of the header's length.
mod bit {
    pub(super) const HIGH: u64 = 8;
    pub(super) const TIMESTAMPS: u64 = 9;
    pub(super) const ID: u64 = 10;
    pub(super) const ECN: u64 = 11;
    pub(super) const HEADER: u64 = 13;
}

/// Times of a record count from the first segment: 18 minutes fit.
const TIME_BITS: u32 = 40;
/// So do packets' numbers.
const NUMBER_BITS: u32 = 24;

impl List {
    pub(super) const fn len(&self) -> usize {
        self.segments as usize
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.segments == 0
    }

    /// Whether both ends sent something.
    pub(super) const fn is_from_both(&self) -> bool {
        self.has_sent[0] && self.has_sent[1]
    }

    /// Whether this end sent something.
    pub(super) const fn is_from(&self, sender: Sender) -> bool {
        self.has_sent[sender as usize]
    }

    /// The number of the first packet.
    pub(super) const fn first_number(&self) -> u64 {
        self.first_number
    }

    /// Something of the list that lies where the next segment will look.
    #[inline]
    pub(super) const fn touch(&self) -> u64 {
        self.tail as u64
    }
}

impl Journal {
    /// Adds a segment.
    #[inline]
    pub(super) fn push(&mut self, list: &mut List, seen: &Seen) {
        let own = seen.sender() as usize;
        if list.segments == 0 {
            (list.first_ns, list.first_number) = (seen.at_ns, seen.number);
        }
        if !list.has_sent[own] {
            list.has_sent[own] = true;
            (list.links[own], list.hop_limits[own]) = (seen.link, seen.hop_limit);
        }
        list.segments += 1;
        let header = code(list, seen);
        self.append(list, plain(list, seen, header));
        if header == 0 {
            self.append(list, rest(seen));
        }
    }

    /// Hands over all segments of a list, oldest first, without SACK blocks and the options of a SYN.
    #[inline]
    pub(super) fn each(&self, list: &List, mut take: impl FnMut(&Seen)) {
        let count = lines(list);
        let mut chain = [0_u32; MOST_LINES];
        let mut line = list.tail;
        for place in chain[..count].iter_mut().rev() {
            *place = line;
            line = self.before.get(line as usize).copied().unwrap_or(0);
        }
        let (mut left, mut begun) = (usize::from(list.records), None);
        for Line(records) in chain[..count].iter().filter_map(|line| self.lines.get(*line)) {
            for record in &records[..left.min(2)] {
                let (parts, is_whole) = match begun.take() {
                    Some(parts) => (read_rest(parts, record), true),
                    None => (read_plain(list, record), record[3] >> 48 >> bit::HEADER != 0),
                };
                if is_whole {
                    take(&Seen::new(parts));
                } else {
                    begun = Some(parts);
                }
            }
            left = left.saturating_sub(2);
        }
    }

    /// Brings a list into the cache.
    pub(super) fn touch(&self, list: &List) -> u64 {
        let (mut line, mut sum) = (list.tail, 0);
        for _ in 0..lines(list) {
            sum ^= self.lines.get(line).map_or(0, |Line([[word, ..], _])| *word);
            line = self.before.get(line as usize).copied().unwrap_or(0);
        }
        sum
    }

    /// Gives the room of a list back, which is empty then.
    pub(super) fn clear(&mut self, list: &mut List) {
        let mut line = list.tail;
        for _ in 0..lines(list) {
            self.free.push(line);
            line = self.before.get(line as usize).copied().unwrap_or(0);
        }
        *list = List::default();
    }

    fn append(&mut self, list: &mut List, record: Record) {
        if list.records % 2 == 1 {
            if let Some(Line([_, second])) = self.lines.get_mut(list.tail) {
                *second = record;
            }
        } else {
            let line = Line([record, [0; 4]]);
            let before = list.tail;
            list.tail = match self.free.pop() {
                Some(number) => {
                    if let (Some(free), Some(link)) = (self.lines.get_mut(number), self.before.get_mut(number as usize))
                    {
                        (*free, *link) = (line, before);
                    }
                    number
                }
                None => {
                    self.before.push(before);
                    self.lines.push(line)
                }
            };
        }
        list.records += 1;
    }
}

/// Lines of the longest list: each segment may take two records, and there are 64 (`LONGEST_LIST`) or one more.
const MOST_LINES: usize = 68;

fn lines(list: &List) -> usize {
    usize::from(list.records).div_ceil(2).min(MOST_LINES)
}

/// The code of the header's length, or 0 where something of the segment doesn't fit into one record.
#[inline]
fn code(list: &List, seen: &Seen) -> u64 {
    let own = seen.sender() as usize;
    let fits = seen.at_ns >= list.first_ns
        && (seen.at_ns - list.first_ns) >> TIME_BITS == 0
        && seen.number >= list.first_number
        && (seen.number - list.first_number) >> NUMBER_BITS == 0
        && seen.flags.0 < 256
        && seen.len <= 0xFFFF
        && seen.link == list.links[own]
        && seen.hop_limit == list.hop_limits[own];
    let header = seen.length.wrapping_sub(seen.len);
    if !fits || !header.is_multiple_of(4) {
        return 0;
    }
    CODES.get(header as usize / 4).map_or(0, |code| u64::from(*code))
}

#[inline]
fn plain(list: &List, seen: &Seen, header: u64) -> Record {
    let time = seen.at_ns.wrapping_sub(list.first_ns) & ((1 << TIME_BITS) - 1);
    let number = seen.number.wrapping_sub(list.first_number) & ((1 << NUMBER_BITS) - 1);
    let [value, echo] = seen.timestamps().unwrap_or_default();
    let bits = u64::from(seen.flags.0 & 0xFF)
        | (seen.sender() as u64) << bit::HIGH
        | u64::from(seen.timestamps().is_some()) << bit::TIMESTAMPS
        | u64::from(seen.id().is_some()) << bit::ID
        | u64::from(seen.ecn()) << bit::ECN
        | header << bit::HEADER;
    [
        time | number << TIME_BITS,
        u64::from(seen.seq.get()) | u64::from(seen.ack.get()) << 32,
        u64::from(value) | u64::from(echo) << 32,
        u64::from(seen.window)
            | u64::from(seen.id().unwrap_or(0)) << 16
            | u64::from(seen.len & 0xFFFF) << 32
            | bits << 48,
    ]
}

#[inline]
fn read_plain(list: &List, [when, sequence, stamps, rest]: &Record) -> Parts {
    let bits = rest >> 48;
    let has = |place: u64| bits >> place & 1 == 1;
    let sender = if has(bit::HIGH) { Sender::High } else { Sender::Low };
    let len = (rest >> 32) as u32 & 0xFFFF;
    Parts {
        number: list.first_number.wrapping_add(when >> TIME_BITS),
        clock_s: 0,
        at_ns: list.first_ns.wrapping_add(when & ((1 << TIME_BITS) - 1)),
        sender,
        seq: SeqNum::new(*sequence as u32),
        ack: SeqNum::new((sequence >> 32) as u32),
        timestamps: has(bit::TIMESTAMPS).then_some([*stamps as u32, (stamps >> 32) as u32]),
        flags: Flags(bits as u16 & 0xFF),
        window: *rest as u16,
        len,
        length: len + HEADERS[(bits >> bit::HEADER) as usize % HEADERS.len()],
        id: has(bit::ID).then_some((rest >> 16) as u16),
        hop_limit: list.hop_limits[sender as usize],
        ecn: (bits >> bit::ECN) as u8 & 3,
        link: list.links[sender as usize],
    }
}

/// What may not fit into a record, whole.
fn rest(seen: &Seen) -> Record {
    [
        seen.at_ns,
        // Packets' numbers beyond 2^40 would be those of a petabyte.
        seen.number & ((1 << 40) - 1) | u64::from(seen.hop_limit) << 40 | u64::from(seen.flags.0) << 48,
        u64::from(seen.len) | u64::from(seen.length) << 32,
        u64::from(seen.link),
    ]
}

fn read_rest(parts: Parts, [at_ns, number, lengths, link]: &Record) -> Parts {
    Parts {
        at_ns: *at_ns,
        number: number & ((1 << 40) - 1),
        hop_limit: (number >> 40) as u8,
        flags: Flags((number >> 48) as u16),
        len: *lengths as u32,
        length: (lengths >> 32) as u32,
        link: *link as u32,
        ..parts
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    impl Journal {
        pub(in crate::track) fn bytes(&self) -> usize {
            self.lines.len() * size_of::<Line>() + self.before.capacity() * size_of::<u32>()
        }
    }

    fn seen(at_ns: u64, [seq, ack, len, more]: [u32; 4], bits: u32) -> Seen {
        // Mostly what fits into one record.
        let usual = bits & 0b1111 != 0;
        Seen::new(Parts {
            number: if usual { at_ns % 1_000 } else { at_ns },
            at_ns: if usual { 1_000 + u64::from(more) } else { at_ns },
            clock_s: 0,
            sender: if bits & 16 == 0 { Sender::Low } else { Sender::High },
            seq: SeqNum::new(seq),
            ack: SeqNum::new(ack),
            flags: Flags(bits as u16 & 0x1FF),
            window: more as u16,
            len: if usual { len & 0xFFFF } else { len },
            length: if usual { (len & 0xFFFF) + 52 } else { more },
            timestamps: (bits & 64 != 0).then_some([seq, more]),
            id: (bits & 32 != 0).then_some(ack as u16),
            hop_limit: if usual { 64 } else { 63 },
            ecn: bits as u8 & 3,
            link: if usual { 5 } else { more },
        })
    }

    proptest! {
        #[test]
        fn what_is_kept_comes_back(raw in proptest::collection::vec((0_u64..1 << 39, any::<[u32; 4]>(), any::<u32>(), 0_usize..3), 0..180)) {
            let mut journal = Journal::default();
            let mut lists = [(); 3].map(|()| (List::default(), Vec::new()));
            for (at_ns, words, bits, which) in raw {
                let (list, kept) = &mut lists[which];
                if list.len() >= 65 {
                    journal.clear(list);
                    kept.clear();
                }
                let seen = seen(at_ns, words, bits);
                journal.push(list, &seen);
                kept.push(format!("{seen:?}"));
            }
            for (list, kept) in &lists {
                let mut back = Vec::new();
                journal.each(list, |seen| back.push(format!("{seen:?}")));
                prop_assert_eq!(&back, kept);
            }
            for (mut list, _) in lists {
                journal.clear(&mut list);
            }
            prop_assert_eq!(journal.free.len(), journal.lines.len(), "no line is lost");
        }
    }
}
