//! One direction of a connection: its sequence space, which bytes were seen again, what the other end acknowledged, and
//! what that says of round trips and losses. What is *not* here: the handshake, and time as the sender sees it
//! (`flight`).

use std::collections::VecDeque;

use fullpipe_units::{Rate, SeqNum};

use super::{
    bins::shortest,
    clock::{Echo, Queueing},
    drops::{Drop, Drops},
    flight::{Ack, Flight},
    ranges::Ranges,
    repeats::Repeats,
    spacing::Spacing,
    writes::Writes,
};
use crate::Flags;
use crate::track::{
    options::{Options, SynOptions},
    seen::Seen,
};

/// Positions in the stream count from here, so that there is room for bytes before the first that was seen.
const BASE: u64 = 1 << 32;

/// Segments whose acknowledgement is awaited.
const MOST_SENT: usize = 1_024;

/// An acknowledgement of more than this beyond what was captured does not wait for it: 10 ms hold as much at 1.6 Gbit/s.
const MOST_AHEAD: u32 = 1 << 21;

/// A retransmission timer never runs for less than this: 200 ms (Linux), 300 ms (Windows), 1 s (RFC 6298, section 2.4).
const LEAST_RTO_NS: u64 = 200_000_000;

/// Two times of a capture, each rounded to a microsecond, are this far apart or less where they are the same; and so much
/// more payload's worth of options do the segments of a handshake carry than others do.
const ROUNDING_NS: u64 = 2_000;
const HANDSHAKE_OPTIONS: u64 = 40;

/// What an end waits at least before it acknowledges on purpose: see `diagnose::thresholds::ACK_DELAY_US`.
const ACK_DELAY_NS: std::ops::RangeInclusive<u64> = 25_000_000..=500_000_000;

/// An answer within this is one to the acknowledgement before it.
const PROMPT_NS: u64 = 4_000_000;

/// ... and no more than this before the shortest way there and back: the clock of the capture.
const EARLY_NS: u64 = 1_000_000;

/// Room that is left unused for this part of a round trip, and this long, is unused for want of data: pacing sends two
/// segments at a time, and a window of ten has five such gaps.
const STARVED_PART: u64 = 5;
const LEAST_STARVED_NS: u64 = 5_000_000;

/// A queue stands where a round trip takes longer than the shortest by this part of it and this time, as the judge has it (`QUEUE_FACTOR`,
/// `SHARED_STANDING_US`).
const QUEUED_PART: u64 = 4;
const QUEUED_NS: u64 = 3_000_000;

/// Beside the receiver, the way to it takes less than this part of the way to the sender.
const WAIT_PART: u64 = 8;

/// Less than this part of the way to the receiver is no way.
const BESIDE_PART: u64 = 50;

/// Less far than this and it doesn't matter.
const LEAST_NEARER_NS: u64 = 200_000;

/// A sender that sends nothing new for this part of a round trip, and this long, pauses: pacing leaves about a millisecond
/// between the bursts that it makes (Linux: `tcp_tso_autosize`), or the time of two segments.
const PAUSE_PART: u64 = 20;
const LEAST_PAUSE_NS: u64 = 2_500_000;

/// What is sent within this, or this part of a round trip, is one burst.
const SAME_BURST_NS: u64 = 1_000_000;
const SAME_BURST_PART: u64 = 100;

/// ... and longer than the usual gap between two segments by this factor, in tenths.
const LONGER_TENTHS: u64 = 14;

/// What is sent within this after an acknowledgement is sent because of it: a writer is woken in 0.1 ms.
const PROMPT_WAKE_NS: u64 = 500_000;

/// An application that the other one asks for more does so within this.
const CREDIT_NS: u64 = 1_000_000;

/// A writer that waits for its buffer is woken when at least this part of what was in flight still is: two thirds of the
/// buffer (Linux), less where one super-segment of 64 KB went beyond a small buffer.
const WOKEN_PART: u64 = 6;

/// ... and no more than this percentage of it: a third of the buffer is free by then.
const FREED_PERCENT: u64 = 85;

/// What comes so many times later than it takes comes after a pause.
const PAUSE_TIMES: u64 = 4;

/// What ended a pause of a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Resumption {
    /// The first acknowledgement that made room: a window was used up.
    Clocked,
    /// A later one: a writer that waits for its send buffer is woken when a part of it is free, and not before.
    Woken,
    /// None: the application wrote.
    Written,
}

/// The sender answered sooner than the way to it and back was thought to take: a host may be slow to answer a SYN-ACK.
#[derive(Clone, Copy, Debug, Default)]
struct Nearer {
    times: u32,
    most_ns: u64,
}

impl Nearer {
    /// So often is no chance.
    const LEAST: u32 = 4;
}

/// Nothing came for a while, and then this.
#[derive(Clone, Copy, Debug, Default)]
struct Silence {
    ns: u64,
    ended_ns: u64,
    /// The payload of the first segment after it.
    len: u32,
    /// Segments with payload up to that one.
    packets: u64,
}

/// How a sender spaces what it sends.
#[derive(Clone, Copy, Debug, Default)]
struct Pace {
    /// When the last full segment of new data was sent.
    sent_ns: u64,
    /// New data since the last gap.
    burst: u64,
    /// Between two bursts, and within one, smoothed.
    gap_ns: u64,
    inner_ns: u64,
    /// Most in flight since the last pause.
    top: u64,
    /// What follows sooner than this is the same burst.
    same_ns: u64,
}

/// What is known of when new data was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Cause {
    /// Right after an acknowledgement that made room.
    Prompted,
    /// Long after the last one.
    Unprompted,
    /// It came right behind other data, and may have waited for it.
    Hidden,
    /// Neither.
    #[default]
    Nothing,
}

/// What came right behind each other: only of the first it shows when it was sent.
#[derive(Clone, Copy, Debug, Default)]
struct Train {
    began_ns: u64,
    cause: Cause,
}

/// Figures of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Segments, those without payload too.
    pub packets: u64,
    /// Bytes of IP packets.
    pub ip_bytes: u64,
    /// Segments with payload.
    pub data_packets: u64,
    /// Payload, without repeats.
    pub payload: u64,
    /// Of that, what is known to have got through: it was acknowledged, or nothing of the other end was captured.
    pub carried: u64,
    /// Segments that carried bytes which had been seen before (`tcptrace`'s "rexmt").
    pub retransmissions: u64,
    /// Payload of which a copy had been seen before.
    pub retransmitted: u64,
    /// Segments below the highest byte that carried nothing seen before (`tcptrace`'s "out of order").
    pub out_of_order: u64,
    /// Of those, the ones that only came late, and were not retransmitted.
    pub reordered: u64,
    /// Duplicate acknowledgements of this direction's data (RFC 5681, section 2).
    pub duplicate_acks: u64,
    /// Selective acknowledgements of bytes that had arrived before (RFC 2883).
    pub dsacks: u64,
    /// Retransmissions that only a timer can explain.
    pub timeouts: u64,
    /// Keep-alive segments.
    pub keep_alives: u64,
    /// Probes of a closed window.
    pub window_probes: u64,
    /// Acknowledgements of this direction's data that closed the window.
    pub zero_windows: u64,
    /// Bytes that were acknowledged and never seen: the capture lost them.
    pub unseen: u64,
    /// Payload sent before the first acknowledgement of any.
    pub initial_window: u64,
    /// The largest payload of one packet as it was captured, offloads included.
    pub largest: u32,
    /// Packets with a congestion mark (RFC 3168).
    pub marked: u64,
    /// The largest window that the receiver of this direction offered, scaled where the scale is known.
    pub largest_window: u64,
    /// Messages of routers that packets of this direction were too big.
    pub too_big: u64,
}

/// A segment whose acknowledgement is awaited.
#[derive(Clone, Copy, Debug)]
struct Sent {
    end: u64,
    at_ns: u64,
    /// Payload that had passed before it.
    carried: u64,
}

/// A hole in the sequence space.
#[derive(Clone, Copy, Debug)]
struct Hole {
    born_ns: u64,
    /// Payload that had passed before it.
    carried: u64,
    /// Timestamp value of the segment above it.
    above: Option<u32>,
    /// How long that one queued on the way here.
    waited_ns: Option<u64>,
}

/// The last segment with payload, and the acknowledgement of it.
#[derive(Clone, Copy, Debug, Default)]
struct Lone {
    sent_ns: u64,
    is_small: bool,
    /// It was alone in flight.
    is_alone: bool,
    acked_ns: Option<u64>,
}

/// One direction.
#[derive(Clone, Debug)]
pub(crate) struct Half {
    pub(crate) counters: Counters,
    pub(crate) syn: Option<SynOptions>,
    pub(crate) syn_window: Option<u16>,
    origin: Option<SeqNum>,
    snd_max: u64,
    una: u64,
    acked: bool,
    holes: Ranges<Hole>,
    sacked: Ranges<()>,
    sent: VecDeque<Sent>,
    /// Round trips of bytes below this can't be measured (Karn).
    karn: u64,
    duplicates: u32,
    srtt_ns: u64,
    rttvar_ns: u64,
    /// From the place of capture to the receiver and back.
    pub(crate) far: Echo,
    /// From the place of capture to the sender and back.
    pub(crate) near: Echo,
    queueing: Queueing,
    pub(crate) flight: Flight,
    lone: Lone,
    writes: Writes,
    /// The receiver's window is closed.
    pub(crate) closed: bool,
    raw_window: u16,
    /// How many round trips from the place of capture were seen.
    pub(crate) round_trips: u32,
    /// Of those, so much longer than the shortest from the place of capture that a queue stood behind that.
    pub(crate) queued_trips: u32,
    first_from: Option<u64>,
    /// The payload of the first segment that has any.
    first_len: u32,
    /// Where the first full-size segment ended, which offload may have sent together with others.
    full_end: Option<u64>,
    /// When acknowledgements began to pass again after longer than the way to the sender and back takes.
    train_ns: u64,
    last_ack_ns: u64,
    nearer: Nearer,
    /// How long nothing had been sent when the last segment was.
    quiet_ns: u64,
    /// What the receiver wants next reached the sender, which had nothing left to send.
    is_asked: bool,
    /// When a message of the receiver's application last reached the sender while something was in flight, and when those
    /// will that are on their way.
    credit_ns: u64,
    credits: VecDeque<u64>,
    repeats: Repeats,
    pub(crate) drops: Drops,
    pace: Pace,
    spacing: Spacing,
    train: Train,
    pub(crate) first_data_ns: Option<u64>,
    pub(crate) last_data_ns: u64,
    pub(crate) fin: Option<u64>,
    /// Segments that were retransmitted and again at one size without being acknowledged: the largest such size.
    stuck: Option<(u64, u32, u32)>,
    pub(crate) black_hole: Option<(u32, u32)>,
    /// The size at which a segment was repeated until a smaller one took its place.
    too_large: Option<u32>,
    /// The first data to arrive lay beyond a hole of several segments: more had been sent before, and nothing of it came.
    begins_beyond: bool,
    /// The longest before data, beside a receiver.
    silence: Silence,
    /// A silence ended with small segments from both sides of a hole.
    is_hollow: bool,
}

impl Default for Half {
    fn default() -> Self {
        Self::new()
    }
}

impl Half {
    fn new() -> Self {
        Self {
            counters: Counters::default(),
            syn: None,
            syn_window: None,
            origin: None,
            snd_max: BASE,
            una: BASE,
            acked: false,
            holes: Ranges::new(),
            sacked: Ranges::new(),
            sent: VecDeque::new(),
            karn: 0,
            duplicates: 0,
            srtt_ns: 0,
            rttvar_ns: 0,
            far: Echo::default(),
            near: Echo::default(),
            queueing: Queueing::default(),
            flight: Flight::default(),
            lone: Lone::default(),
            writes: Writes::default(),
            closed: false,
            raw_window: 0,
            round_trips: 0,
            queued_trips: 0,
            first_from: None,
            first_len: 0,
            full_end: None,
            train_ns: 0,
            last_ack_ns: 0,
            nearer: Nearer::default(),
            quiet_ns: 0,
            is_asked: false,
            credit_ns: 0,
            credits: VecDeque::new(),
            repeats: Repeats::default(),
            drops: Drops::default(),
            pace: Pace::default(),
            spacing: Spacing::default(),
            train: Train::default(),
            first_data_ns: None,
            last_data_ns: 0,
            fin: None,
            stuck: None,
            black_hole: None,
            too_large: None,
            begins_beyond: false,
            silence: Silence::default(),
            is_hollow: false,
        }
    }

    /// As new, with the room that the lists had.
    pub(super) fn restart(&mut self, is_timeless: bool) {
        // In place and by name, as the connection does it.
        let Self {
            counters,
            syn,
            syn_window,
            origin,
            snd_max,
            una,
            acked,
            holes,
            sacked,
            sent,
            karn,
            duplicates,
            srtt_ns,
            rttvar_ns,
            far,
            near,
            queueing,
            flight,
            lone,
            writes,
            closed,
            raw_window,
            round_trips,
            queued_trips,
            first_from,
            first_len,
            full_end,
            train_ns,
            last_ack_ns,
            nearer,
            quiet_ns,
            is_asked,
            credit_ns,
            credits,
            repeats,
            drops,
            pace,
            spacing,
            train,
            first_data_ns,
            last_data_ns,
            fin,
            stuck,
            black_hole,
            too_large,
            begins_beyond,
            silence,
            is_hollow,
        } = self;
        (*counters, *syn, *syn_window, *origin) = (Counters::default(), None, None, None);
        (*snd_max, *una, *acked, *karn, *duplicates) = (BASE, BASE, false, 0, 0);
        (*srtt_ns, *rttvar_ns, *queueing) = (0, 0, Queueing::default());
        (*lone, *writes, *closed, *raw_window) = (Lone::default(), Writes::default(), false, 0);
        (*round_trips, *queued_trips) = (0, 0);
        (*first_from, *full_end, *first_data_ns, *last_data_ns) = (None, None, None, 0);
        (*fin, *stuck, *black_hole) = (None, None, None);
        (*too_large, *begins_beyond) = (None, false);
        (*silence, *is_hollow) = (Silence::default(), false);
        (*first_len, *train_ns, *last_ack_ns, *nearer) = (0, 0, 0, Nearer::default());
        (*quiet_ns, *is_asked, *credit_ns, *repeats, *pace) = (0, false, 0, Repeats::default(), Pace::default());
        (*spacing, *train) = (Spacing::default(), Train::default());
        drops.restart();
        holes.empty();
        sacked.empty();
        sent.clear();
        credits.clear();
        far.empty();
        near.empty();
        flight.restart(is_timeless);
    }

    /// The payload of a full segment, as the SYN of the receiver allows and as was seen.
    pub(crate) fn mss(&self, announced: Option<u16>, timestamps: bool) -> u32 {
        // RFC 6691: options are not part of the announced size; timestamps take 12 bytes of each segment.
        let allowed = announced.map(|mss| u32::from(mss).saturating_sub(if timestamps { 12 } else { 0 }).max(1));
        match (allowed, self.counters.largest) {
            (Some(allowed), largest) if largest < allowed && self.is_bulk() => largest,
            (Some(allowed), _) => allowed,
            (None, 0) => 1_460,
            // Without a SYN, what exceeds an Ethernet frame is more likely an offload than a jumbo frame.
            // And what is smaller than every path carries is a message.
            (None, largest) => largest.clamp(536, 1_460),
        }
    }

    /// Segments that are nearly all of one size are full, unless they are messages: those of one size that is below what
    /// every path carries (RFC 9293, section 3.7.1).
    fn is_bulk(&self) -> bool {
        let counters = &self.counters;
        counters.data_packets >= 100
            && counters.largest >= 536
            && counters.payload >= counters.data_packets.saturating_mul(u64::from(counters.largest)) / 10 * 9
    }

    /// From the place of capture to the sender and back, now: the least seen, and what queues on the way here.
    #[inline]
    pub(crate) fn shift_ns(&self, now_ns: u64) -> u64 {
        let near_ns = self.near_ns();
        // Beside the sender it is the time that a host takes to answer, which it doesn't take each time.
        let is_beside = near_ns < self.far.least_ns.unwrap_or(0) / BESIDE_PART;
        let early_ns = ROUNDING_NS.max(self.spacing.takes_ns(HANDSHAKE_OPTIONS));
        if is_beside { 0 } else { near_ns.saturating_sub(early_ns) }.saturating_add(self.queueing_ns(now_ns))
    }

    /// What queues on the way from the sender, now: no more than its clock says, and no more than it takes to answer. The
    /// clocks of two machines drift apart, and some clocks go in steps; an answer may wait for the application.
    #[inline]
    fn queueing_ns(&self, now_ns: u64) -> u64 {
        match self.queueing.now_ns() {
            0 => 0,
            by_clock => {
                let by_echo = self.near.excess_ns(now_ns, self.far.least_ns.unwrap_or(0));
                by_echo.map_or(by_clock, |by_echo| by_clock.min(by_echo))
            }
        }
    }

    /// From the place of capture to the sender and back, at least. Where nothing tells a way from a sender that waits, and the way to
    /// the receiver is a good part of it, the place is taken for the sender's own.
    pub(crate) fn near_ns(&self) -> u64 {
        let near_ns = self.near.least_ns.unwrap_or(0);
        let waits = !self.near.is_way && self.far.least_ns.is_some_and(|far_ns| far_ns >= near_ns / WAIT_PART);
        if waits { 0 } else { near_ns }
    }

    /// Whether a queue anywhere on the path would show: most of the path is behind the place of capture, or timestamps
    /// tell what happens before it.
    pub(crate) fn sees_queues(&self) -> bool {
        let (near_ns, far_ns) = (self.near_ns(), self.far.least_ns.unwrap_or(0));
        self.queueing.is_known() || near_ns < 2_000_000 || near_ns <= far_ns / 3
    }

    /// What its application writes at a time, where that is nearly always the same.
    pub(crate) fn write(&self) -> Option<u64> {
        self.writes.size()
    }

    /// ... and how long after one the next comes, where that is, too.
    pub(crate) fn writes_every_ns(&self) -> Option<u64> {
        self.writes.every_ns()
    }

    /// The payload that the narrowest link would carry if it were never idle, where the spacing of full segments shows that.
    pub(crate) fn link_rate(&self) -> Option<Rate> {
        self.spacing.link_rate()
    }

    /// The size of segments that the path takes without a word, where that shows: one of that size was repeated until a
    /// smaller one took its place, or beside the receiver, nothing came for `silent_ns` after the handshake, and then
    /// smaller ones than were `announced`, from the middle of what had been sent.
    pub(crate) fn lost_size(&self, announced: Option<u16>, silent_ns: u64) -> Option<u32> {
        let stuck = || self.black_hole.filter(|_| !self.acked).map(|(size, _)| size);
        self.outgrown_size(announced, silent_ns).or_else(stuck)
    }

    /// The same where smaller ones got through.
    pub(crate) fn outgrown_size(&self, announced: Option<u16>, silent_ns: u64) -> Option<u32> {
        let allowed = announced.map_or(0, u32::from);
        let was_silent = silent_ns >= LEAST_RTO_NS.max(self.near_ns().saturating_mul(4));
        let begins_late =
            self.is_beside_receiver() && was_silent && self.begins_beyond && self.first_len < allowed / 20 * 19;
        let largest = self.counters.largest;
        // Offloads join segments.
        let segment = largest.div_ceil(largest.div_ceil(allowed.max(1)).max(1));
        // Timestamps take 12 bytes of each segment (RFC 6691).
        let none_is_full = segment + 12 < allowed;
        let is_hollow = (begins_late || self.is_hollow) && none_is_full;
        self.too_large.or_else(|| is_hollow.then_some(allowed))
    }

    /// Whether a full-size segment is known to have got through.
    pub(crate) fn full_size_passed(&self) -> bool {
        self.full_end.is_some_and(|end| end <= self.una)
    }

    /// The sequence number of its SYN.
    pub(crate) fn isn(&self) -> Option<u32> {
        self.origin.filter(|_| self.syn.is_some()).map(SeqNum::get)
    }

    pub(crate) fn snd_max(&self) -> u64 {
        self.snd_max
    }

    pub(crate) fn in_flight(&self) -> u64 {
        self.snd_max.saturating_sub(self.una)
    }

    /// Whether all of a segment lies below the highest byte seen.
    pub(crate) fn is_below(&self, seq: SeqNum, len: u32) -> bool {
        let Some(origin) = self.origin else { return false };
        (seq + len).at_or_before(origin + self.snd_max as u32)
    }

    /// Whether anything of this direction was seen.
    pub(crate) const fn is_begun(&self) -> bool {
        self.origin.is_some()
    }

    /// What was sent so far gives no round trip: it is not known how long it took.
    pub(crate) fn forget_round_trips(&mut self) {
        self.karn = self.karn.max(self.snd_max);
        self.near.forget();
    }

    /// Whether data that are acknowledged up to `ack`, and selectively up to `edge`, were not seen, and may be yet: little beyond the
    /// highest byte (a FIN takes a number, too), or in a hole that the receiver has asked for.
    #[inline]
    pub(crate) fn lacks(&self, ack: SeqNum, edge: SeqNum) -> bool {
        let Some(origin) = self.origin else { return false };
        let ahead = edge.distance_from(origin + self.snd_max as u32);
        let is_ahead = (1..=MOST_AHEAD).contains(&ahead) && (ahead > 1 || self.fin.is_none());
        let has_begun = self.first_data_ns.is_some() || self.syn.is_some();
        (is_ahead && has_begun) || (!self.holes.is_empty() && self.has_asked_below(origin, ack))
    }

    /// Whether the receiver, which is near, asked for a hole that `ack` is beyond. What only the capture lacks nobody asks for.
    fn has_asked_below(&self, origin: SeqNum, ack: SeqNum) -> bool {
        let is_asked = self.duplicates > 0 || !self.sacked.is_empty();
        is_asked
            && self.holes.first() == Some(self.una)
            && self.is_beside_receiver()
            && (origin + self.una as u32).before(ack)
    }

    /// Whether an acknowledgement is no news.
    pub(crate) fn is_acked(&self, ack: SeqNum) -> bool {
        let Some(origin) = self.origin else { return false };
        ack.at_or_before(origin + self.una as u32)
    }

    fn position(&mut self, seq: SeqNum) -> u64 {
        let Some(origin) = self.origin else {
            self.origin = Some(seq);
            return BASE;
        };
        // BASE is a multiple of 2^32, so the low half of a position is the distance from the origin.
        let reference = origin + self.snd_max as u32;
        let delta = seq.distance_from(reference).cast_signed();
        self.snd_max.saturating_add_signed(i64::from(delta))
    }

    /// A segment of this direction's sender.
    pub(crate) fn on_segment(&mut self, seen: &Seen, peer_mss: Option<u16>) {
        self.counters.packets += 1;
        self.counters.ip_bytes += u64::from(seen.length);
        if seen.ecn() == 3 {
            self.counters.marked += 1;
        }
        let is_syn = seen.flags.has(Flags::SYN);
        let mut from = self.position(seen.seq);
        if is_syn {
            from += 1;
            self.snd_max = self.snd_max.max(from);
            self.una = self.una.max(from);
        }
        if let Some(value) = seen.value() {
            self.queueing.on(seen.at_ns, value, self.near_ns());
        }
        if seen.len > 0 {
            self.on_data(seen, from, peer_mss);
        } else if from.wrapping_add(1) == self.snd_max && self.in_flight() == 0 && !seen.flags.has(Flags(0x07)) {
            self.note_probe();
        }
        if seen.flags.has(Flags::FIN) {
            self.fin = Some(from + u64::from(seen.len));
        }
    }

    /// A segment from before what is wanted next asks a closed window whether it still is (RFC 9293, section 3.8.6.1; Linux:
    /// `tcp_xmit_probe_skb`), and else whether the other end is still there.
    fn note_probe(&mut self) {
        if self.closed || self.flight.is_shut() {
            self.counters.window_probes += 1;
        } else {
            self.counters.keep_alives += 1;
        }
    }

    /// Payload that is known to have got through.
    pub(crate) fn carried(&self) -> u64 {
        let start = if self.syn.is_some() { BASE + 1 } else { self.first_from.unwrap_or(self.una) };
        // A FIN takes a number, too.
        self.una.saturating_sub(start).min(self.counters.payload)
    }

    fn on_data(&mut self, seen: &Seen, from: u64, peer_mss: Option<u16>) {
        let end = from + u64::from(seen.len);
        let now = seen.at_ns;
        self.counters.largest = self.counters.largest.max(seen.len);
        let mss = self.mss(peer_mss, seen.timestamps().is_some());
        self.flight.mss = u64::from(mss);
        self.flight.burst = self.flight.burst.max(u64::from(seen.len));
        self.counters.data_packets += 1;
        if self.first_data_ns.is_none() {
            self.first_data_ns = Some(now);
            self.first_len = seen.len;
            if !self.acked {
                self.una = self.una.min(from);
            }
            self.flight.begin(now, self.una);
        }
        let is_repeat = end <= self.snd_max;
        // One byte of garbage before the next (RFC 9293, section 3.8.4); a message of one byte that is retransmitted is pushed.
        if seen.len == 1 && is_repeat && end == self.snd_max && self.in_flight() == 0 && !seen.flags.has(Flags::PSH) {
            self.note_probe();
            return;
        }
        // A receiver that closed its window is probed with data at its edge (RFC 9293, section 3.8.6.1); what it has acknowledged
        // all of is repeated.
        if self.closed && from <= self.una.saturating_add(1) && end > self.una {
            self.counters.window_probes += 1;
            return;
        }
        self.quiet_ns = now.saturating_sub(self.last_data_ns);
        self.last_data_ns = self.last_data_ns.max(now);
        if self.counters.data_packets > 1 && self.is_beside_receiver() {
            let len = u64::from(seen.len);
            if seen.len >= mss {
                self.spacing.on(self.quiet_ns, len);
            }
            self.flight.note_data(now, self.quiet_ns, self.spacing.takes_ns(len));
        }
        if self.counters.data_packets > 1 && self.quiet_ns > LEAST_RTO_NS.max(self.silence.ns) {
            let packets = self.counters.data_packets;
            self.silence = Silence { ns: self.quiet_ns, ended_ns: now, len: seen.len, packets };
        }
        let (unseen, hole) = self.holes.take(from.min(self.snd_max), end.min(self.snd_max));
        let fresh = end.saturating_sub(self.snd_max.max(from));
        let again = u64::from(seen.len).saturating_sub(unseen + fresh);
        self.counters.payload += unseen + fresh;
        self.note_bin(seen, fresh > 0 && unseen + again == 0);
        if again > 0 {
            self.on_retransmission(seen, (from, end), again);
        } else if let Some(hole) = hole {
            self.on_late(seen, (from, end), hole);
        }
        if fresh > 0 {
            self.on_fresh(seen, (from, end), mss);
        }
        self.drops.carried += u64::from(seen.len);
    }

    fn note_bin(&mut self, seen: &Seen, is_new: bool) {
        if self.flight.bins.is_none() {
            return;
        }
        let in_flight = self.flight.in_flight(self.snd_max);
        // The end of a write waits for its acknowledgement where Nagle's algorithm says so, whatever holds the rest.
        let is_full = is_new && u64::from(seen.len) >= self.flight.mss;
        let resumed = if is_full { self.resumption(seen) } else { None };
        let waited_ns = self.unprompted_ns(seen.at_ns, u64::from(seen.len));
        let cause = if is_new { self.cause(seen, waited_ns, in_flight) } else { Cause::Nothing };
        while let Some(credit_ns) = self.credits.pop_front_if(|credit_ns| *credit_ns <= seen.at_ns) {
            self.credit_ns = credit_ns;
        }
        let credited = is_new && seen.at_ns.wrapping_sub(self.credit_ns) <= CREDIT_NS;
        let starved_ns = if is_full { self.flight.fill(seen.at_ns) } else { 0 };
        let trip_ns = self.near_ns() + self.far.least_ns.unwrap_or(0);
        let Some(bins) = &mut self.flight.bins else { return };
        // After an acknowledgement just before, the sender waited for that one.
        if waited_ns > PROMPT_NS && is_new && starved_ns >= LEAST_STARVED_NS && starved_ns >= trip_ns / STARVED_PART {
            bins.spread(seen.at_ns, starved_ns, |bin| &mut bin.starved_ns);
        }
        let bin = bins.now();
        match resumed {
            Some(Resumption::Clocked) => bin.clocked += 1,
            Some(Resumption::Woken) => bin.woken += 1,
            Some(Resumption::Written) => bin.written += 1,
            None => {}
        }
        bin.sent += u64::from(seen.len);
        match cause {
            Cause::Prompted => bin.prompted += u64::from(seen.len),
            Cause::Unprompted => bin.unprompted += u64::from(seen.len),
            Cause::Hidden => bin.hidden += u64::from(seen.len),
            Cause::Nothing => {}
        }
        bin.credited += if credited { u64::from(seen.len) } else { 0 };
        bin.peak = bin.peak.max(in_flight + if is_new { u64::from(seen.len) } else { 0 });
        bin.marked += u32::from(seen.ecn() == 3);
        match &mut bin.packets {
            Some((_, last)) => *last = seen.number,
            none => *none = Some((seen.number, seen.number)),
        }
    }

    /// Most of the path is before the place of capture.
    pub(crate) fn is_beside_receiver(&self) -> bool {
        self.far.least_ns.is_some_and(|far_ns| self.near_ns() > far_ns)
    }

    /// How much longer a segment of `len` bytes takes the narrowest link than the one that gave the distance to the sender.
    fn longer_ns(&self, len: u64) -> u64 {
        self.spacing.takes_ns(len.saturating_sub(self.near.least_len.into()))
    }

    /// How long before `len` bytes that come now were sent an acknowledgement had made room, give or take what they take.
    fn unprompted_ns(&self, now: u64, len: u64) -> u64 {
        let slack_ns = self.spacing.takes_ns(len).min(PROMPT_WAKE_NS);
        self.flight.unprompted_ns(now.saturating_sub(self.longer_ns(len)), slack_ns)
    }

    /// Whether an acknowledgement prompted new data. What came right behind other data may have been sent with it: it counts
    /// as that does, for a round trip.
    fn cause(&mut self, seen: &Seen, waited_ns: u64, in_flight: u64) -> Cause {
        let own = match () {
            () if waited_ns <= PROMPT_WAKE_NS || waited_ns <= self.prompt_ns() => Cause::Prompted,
            () if waited_ns > PROMPT_NS && in_flight > 0 => Cause::Unprompted,
            () => Cause::Nothing,
        };
        let takes_ns = self.spacing.takes_ns(u64::from(seen.len));
        if self.counters.data_packets <= 1 || !self.spacing.is_behind(self.quiet_ns, u64::from(seen.len)) {
            // Behind a link that is never empty for long, trains begin by chance.
            let is_pause = self.quiet_ns >= takes_ns.saturating_mul(PAUSE_TIMES);
            self.train = Train { began_ns: seen.at_ns, cause: if is_pause { own } else { Cause::Nothing } };
            return own;
        }
        let is_near = seen.at_ns.saturating_sub(self.train.began_ns) <= self.flight.trip_ns;
        match self.train.cause {
            Cause::Nothing => Cause::Hidden,
            cause if is_near => cause,
            _ => Cause::Hidden,
        }
    }

    /// How long after an acknowledgement what is sent may count as its answer: where the place of capture is away from the
    /// sender, the way there and back varies.
    fn prompt_ns(&self) -> u64 {
        PROMPT_WAKE_NS + (self.rttvar_ns / 2).min(self.near_ns() / 50)
    }

    /// The same after a pause: the first full segment takes the narrowest link longer than those of the handshake did.
    fn wake_ns(&self) -> u64 {
        self.prompt_ns().max(PROMPT_WAKE_NS + self.pace.inner_ns.saturating_mul(2).min(self.near_ns() / 50))
    }

    /// After a pause, an acknowledgement comes and then data, with none before it for longer than `near` says: the sender
    /// answered it, and is nearer. Timestamps would have shown it.
    #[inline]
    fn note_nearer(&mut self, now: u64, gap_ns: u64) {
        let near_ns = self.near_ns();
        let answered_ns = now.saturating_sub(self.train_ns);
        if self.near.is_known || near_ns < LEAST_NEARER_NS || self.train_ns == 0 || answered_ns >= gap_ns {
            return;
        }
        let is_answer = answered_ns < near_ns && self.flight.in_flight(self.snd_max) > 0;
        let Nearer { times, most_ns } = &mut self.nearer;
        if is_answer {
            (*times, *most_ns) = (*times + 1, (*most_ns).max(answered_ns));
        }
        if *times >= Nearer::LEAST {
            self.near.note(*most_ns, self.flight.mss as u32);
            self.nearer = Nearer::default();
        }
    }

    /// What ended a pause of the sender before new data, if there was one.
    #[inline]
    fn resumption(&mut self, seen: &Seen) -> Option<Resumption> {
        let now = seen.at_ns;
        let len = u64::from(seen.len);
        let in_flight = self.flight.in_flight(self.snd_max);
        let pace = &mut self.pace;
        pace.top = pace.top.max(in_flight);
        let gap_ns = now.saturating_sub(core::mem::replace(&mut pace.sent_ns, now));
        if gap_ns < pace.same_ns {
            self.note_nearer(now, gap_ns);
            let pace = &mut self.pace;
            pace.burst += len;
            pace.inner_ns = pace.inner_ns - pace.inner_ns / 8 + gap_ns / 8;
            return None;
        }
        self.after_gap(now, gap_ns, in_flight, len)
    }

    /// What ended a gap between bursts, if it was a pause.
    fn after_gap(&mut self, now: u64, gap_ns: u64, in_flight: u64, len: u64) -> Option<Resumption> {
        let trip_ns = self.near_ns() + self.far.least_ns.unwrap_or(0);
        self.flight.trip_ns = trip_ns;
        self.note_nearer(now, gap_ns);
        let pace = &mut self.pace;
        pace.same_ns = SAME_BURST_NS.max(trip_ns / SAME_BURST_PART);
        let (top, usual_ns) = (pace.top, pace.gap_ns);
        let burst = core::mem::replace(&mut pace.burst, len);
        pace.gap_ns = usual_ns - usual_ns / 8 + gap_ns.min(trip_ns) / 8;
        // Pacing leaves a gap behind each two segments at a low rate, and a pause is longer.
        let is_longer = burst.max(len) > 2 * self.flight.mss || gap_ns >= (usual_ns / 10).saturating_mul(LONGER_TENTHS);
        let is_pause = gap_ns >= LEAST_PAUSE_NS.max(trip_ns / PAUSE_PART) && is_longer;
        // While something is missing, selective acknowledgements make room, too.
        if !is_pause || self.duplicates > 0 || self.una < self.karn {
            return None;
        }
        pace.top = in_flight;
        let prompt_ns = self.wake_ns();
        if self.is_asked {
            return Some(Resumption::Written);
        }
        let mss = self.flight.mss;
        let sent_ns = now.saturating_sub(self.longer_ns(len));
        let waited_ns = self.flight.room_ns.map(|room_ns| sent_ns.saturating_sub(room_ns));
        let is_prompted = self.unprompted_ns(now, len) <= prompt_ns;
        Some(match waited_ns {
            Some(waited_ns) if waited_ns <= prompt_ns => Resumption::Clocked,
            // A little room is used late where acknowledgements or segments are coalesced.
            Some(_) if is_prompted && in_flight > top / 100 * FREED_PERCENT => Resumption::Clocked,
            // One write in the buffer at a time, or a part of it: a writer that waits for neither is its own master.
            Some(_) if is_prompted && (in_flight >= top / WOKEN_PART || in_flight < mss) => Resumption::Woken,
            _ => Resumption::Written,
        })
    }

    fn on_fresh(&mut self, seen: &Seen, (from, end): (u64, u64), mss: u32) {
        let now = seen.at_ns;
        if from > self.snd_max {
            let (carried, waited_ns) = (self.drops.carried, self.queueing.here_ns());
            self.holes.push(self.snd_max, from, Hole { born_ns: now, carried, above: seen.value(), waited_ns });
            self.note_hollow(from - self.snd_max);
            self.begins_beyond |= self.counters.data_packets <= 3 && from - self.snd_max >= 2 * self.flight.mss;
        }
        // As the sender saw it: beside the receiver, the first acknowledgement passes before the second segment comes.
        if self.flight.una() <= *self.first_from.get_or_insert(from) {
            self.counters.initial_window += u64::from(seen.len);
        }
        let is_small = seen.len < mss;
        if !is_small {
            self.full_end.get_or_insert_with(|| from + u64::from(mss));
        }
        self.note_question(now);
        self.note_answer(now, from, is_small);
        // Every second full segment is acknowledged at once (RFC 9293, section 3.8.6.3).
        let is_alone = self.una >= from && seen.len <= mss;
        self.lone = Lone { sent_ns: now, is_small, is_alone, acked_ns: None };
        if seen.flags.has(Flags::PSH) && !seen.len.is_multiple_of(mss) {
            self.writes.end(end, seen.at_ns);
        }
        self.snd_max = end;
        if self.sent.len() < MOST_SENT {
            self.sent.push_back(Sent { end, at_ns: now, carried: self.drops.carried });
        }
    }

    /// Beside the receiver, a hole of `bytes` opens: right after a long silence, and where only small segments come, what
    /// was sent meanwhile vanished.
    fn note_hollow(&mut self, bytes: u64) {
        let Silence { ns, ended_ns, len, packets } = self.silence;
        let near_ns = self.near_ns();
        let is_beside_receiver = near_ns > self.far.least_ns.unwrap_or(u64::MAX);
        let is_after = ns >= LEAST_RTO_NS.max(near_ns.saturating_mul(4)) && self.counters.data_packets - packets <= 2;
        let is_small = u64::from(len.max(self.counters.largest)) < self.flight.mss / 20 * 19;
        if is_beside_receiver && is_after && is_small && bytes >= 2 * self.flight.mss && !self.is_hollow {
            self.is_hollow = true;
            self.counters.timeouts += 1;
            if let Some(bins) = &mut self.flight.bins {
                let bin = bins.at(ended_ns);
                (bin.timeouts, bin.retransmits) = (bin.timeouts + 1, bin.retransmits + 1);
            }
        }
    }

    /// Everything had been sent and acknowledged before the receiver asked for this.
    fn note_question(&mut self, now: u64) {
        if core::mem::take(&mut self.is_asked)
            && let Some(bins) = &mut self.flight.bins
        {
            bins.now().asked += 1;
            bins.spread(now, now.saturating_sub(self.lone.sent_ns), |bin| &mut bin.asked_ns);
        }
    }

    /// Whether this segment waited for the acknowledgement of the one before, and that one was delayed on purpose.
    fn note_answer(&mut self, now: u64, from: u64, is_small: bool) {
        let lone = self.lone;
        let Some(acked_ns) = lone.acked_ns.filter(|_| from == self.snd_max && lone.is_alone) else { return };
        let least = self.far.least_ns.unwrap_or(0);
        let delay_ns = acked_ns.saturating_sub(lone.sent_ns).saturating_sub(least);
        // No sooner than the acknowledgement can have reached the sender and the answer come back, and not much later.
        let answered_ns = now.saturating_sub(acked_ns);
        let near_ns = self.near_ns();
        let prompt = (near_ns.saturating_sub(EARLY_NS)..=self.shift_ns(now) + PROMPT_NS).contains(&answered_ns);
        if !prompt || !ACK_DELAY_NS.contains(&delay_ns) {
            return;
        }
        let Some(bins) = &mut self.flight.bins else { return };
        // The round trip is waited for as well as the delay: without either the write would have left at once.
        let waited_ns = now.saturating_sub(lone.sent_ns);
        // Nagle's algorithm holds back what is smaller than a segment (RFC 9293, section 3.7.4).
        if lone.is_small && is_small {
            bins.now().nagle += 1;
            bins.spread(now, waited_ns, |bin| &mut bin.nagle_ns);
        } else {
            bins.now().delayed += 1;
            bins.spread(now, waited_ns, |bin| &mut bin.delayed_ns);
        }
    }

    fn on_retransmission(&mut self, seen: &Seen, (from, end): (u64, u64), again: u64) {
        self.counters.retransmissions += 1;
        self.counters.retransmitted += again;
        let place = self.sent.partition_point(|sent| sent.end <= from);
        let last_sent_ns = self.sent.get(place).map(|sent| sent.at_ns);
        let by_timer = last_sent_ns.is_some_and(|sent_ns| self.is_timeout(seen.at_ns.saturating_sub(sent_ns)));
        let before = self
            .sent
            .get_mut(place)
            .map(|sent| core::mem::replace(sent, Sent { at_ns: seen.at_ns, carried: self.drops.carried, ..*sent }));
        self.note_loss(again, by_timer);
        // Beside the receiver, what is seen twice arrived twice.
        let near_ns = self.near_ns();
        if !by_timer && near_ns >= 2_000_000 && near_ns / 10 > self.far.least_ns.unwrap_or(u64::MAX) {
            self.note_needless();
        } else {
            self.repeats.add(end, seen.at_ns);
            if let Some(Sent { at_ns, carried, .. }) = before {
                self.drops.note(Drop { at_ns, carried, bytes: again, is_carried: true });
            }
        }
        // Three segments above the hole would have been reported by as many duplicate acknowledgements (RFC 5681).
        let is_tail = by_timer && self.snd_max.saturating_sub(from) <= 3 * self.flight.mss;
        // Sooner than a timer and unasked, the last segment is sent again as a question (RFC 8985, section 7.3).
        // A FIN takes a number, too.
        let is_probe = !by_timer && self.duplicates == 0 && self.snd_max.saturating_sub(end) <= 1;
        if let Some(bins) = &mut self.flight.bins {
            bins.now().tails += u32::from(is_tail);
            bins.now().probes += u32::from(is_probe);
        }
        self.note_stuck(from, end, seen.len);
        self.karn = self.karn.max(self.snd_max);
    }

    /// A segment below the highest byte that carries what was not seen yet: late, or retransmitted upstream.
    fn on_late(&mut self, seen: &Seen, range: (u64, u64), hole: Hole) {
        self.counters.out_of_order += 1;
        let age_ns = seen.at_ns.saturating_sub(hole.born_ns);
        let near_ns = self.near_ns();
        let trip_ns = near_ns + self.far.least_ns.unwrap_or(0);
        let is_original = match (seen.value(), hole.above) {
            // What was sent after the segment above it was retransmitted.
            (Some(value), Some(above)) if value != above => above.wrapping_sub(value).cast_signed() > 0,
            _ => age_ns < (trip_ns / 2).max(3_000_000),
        };
        // Beside the sender nothing is reordered yet: the capture itself was late.
        let beside_sender = near_ns < 2_000_000 && near_ns * 10 < trip_ns;
        let bin = self.flight.bins.as_mut().map(|bins| bins.now());
        if is_original {
            self.counters.reordered += u64::from(!beside_sender);
            if let Some(bin) = bin {
                bin.out_of_order += 1;
                bin.reordered += u32::from(!beside_sender);
            }
            return;
        }
        if let Some(bin) = bin {
            bin.out_of_order += 1;
        }
        let by_timer = self.is_timeout(age_ns);
        let bytes = range.1 - range.0;
        if let Some(waited_ns) = hole.waited_ns {
            self.drops.note_wait(waited_ns);
        }
        self.drops.note(Drop { at_ns: hole.born_ns, carried: hole.carried, bytes, is_carried: false });
        self.note_loss(bytes, by_timer);
        self.karn = self.karn.max(self.snd_max);
    }

    /// Whether `gap_ns` without three duplicate acknowledgements (RFC 5681, section 3.2) is long enough for a timer. Nothing
    /// is sent while one runs out; what is repeated right after a repeat follows from that one.
    fn is_timeout(&self, gap_ns: u64) -> bool {
        let rto_ns = self.srtt_ns.saturating_add(self.rttvar_ns.saturating_mul(4));
        self.duplicates < 3 && self.quiet_ns >= LEAST_RTO_NS && gap_ns >= LEAST_RTO_NS.max(rto_ns)
    }

    /// A retransmission turned out to be of what had arrived.
    fn note_needless(&mut self) {
        self.repeats.unreported += 1;
        if let Some(bins) = &mut self.flight.bins {
            bins.now().dsacks += 1;
        }
    }

    fn note_loss(&mut self, bytes: u64, by_timer: bool) {
        self.counters.timeouts += u64::from(by_timer);
        if let Some(bins) = &mut self.flight.bins {
            let bin = bins.now();
            // A packet of an offload is several segments.
            bin.retransmits += bytes.div_ceil(self.flight.mss.max(1)) as u32;
            bin.retransmitted += bytes;
            bin.timeouts += u32::from(by_timer);
        }
    }

    /// The same bytes at the same size again and again, and nothing of them acknowledged.
    fn note_stuck(&mut self, from: u64, end: u64, len: u32) {
        let times = match self.stuck {
            Some((at, size, times)) if at == from && size == len => times + 1,
            // What could not pass at one size is tried at a smaller one (RFC 4821, section 7.7).
            Some((at, size, times)) if at == from && size > len && times >= 2 => {
                self.too_large = Some(size);
                1
            }
            _ => 1,
        };
        self.stuck = Some((from, len, times));
        if times >= 3 && end > self.una {
            self.black_hole = Some((len, times));
        }
    }

    /// An acknowledgement of this direction's data, from its receiver. `shift` is the receiver's window scale.
    pub(crate) fn on_ack(&mut self, seen: &Seen, options: &Options, shift: u8) {
        if !seen.flags.has(Flags::ACK) || seen.flags.has(Flags::RST) {
            return;
        }
        let now = seen.at_ns;
        let is_syn = seen.flags.has(Flags::SYN);
        let una = self.position(seen.ack);
        let window = if is_syn { u64::from(seen.window) } else { u64::from(seen.window) << shift };
        let closed = seen.window == 0 && !is_syn && !seen.flags.has(Flags::FIN);
        let ack = Ack { una, edge: una.saturating_add(window), closed };
        // What a sender of data acknowledges meanwhile is nearly always the same, and then nothing changes.
        if self.in_flight() > 0 || options.sack_count > 0 || !self.flight.has_recorded(ack) {
            self.on_news(seen, options, ack);
        }
        self.raw_window = seen.window;
        if now.saturating_sub(self.last_ack_ns) > self.near_ns().saturating_mul(2) {
            self.train_ns = now;
        }
        self.last_ack_ns = now;
        let at_sender_ns = now.saturating_add(self.shift_ns(now));
        if seen.len > 0 {
            self.note_message(at_sender_ns);
        }
        self.flight.record(at_sender_ns, ack);
    }

    /// An acknowledgement that says what the one before didn't, or comes while something is in flight.
    fn on_news(&mut self, seen: &Seen, options: &Options, Ack { una: ack, edge, closed }: Ack) {
        let now = seen.at_ns;
        self.counters.largest_window = self.counters.largest_window.max(edge - ack);
        if ack > self.snd_max {
            self.on_unseen(ack);
        }
        if closed && !self.closed {
            self.counters.zero_windows += 1;
        }
        self.closed = closed;
        if self.in_flight() > 0 && (ack > self.una || seen.len == 0) && !self.is_beside_receiver() {
            self.flight.note_arrival(now, ack.saturating_sub(self.una));
        }
        if ack > self.una || !self.acked {
            self.on_new_ack(now, ack, seen.len == 0);
        } else if ack == self.una && seen.len == 0 && self.in_flight() > 0 && seen.window == self.raw_window {
            self.counters.duplicate_acks += 1;
            self.duplicates += 1;
        }
        if options.sack_count > 0 {
            let delivered = self.on_sack(now, options, ack);
            if let Some(bins) = &mut self.flight.bins {
                bins.now().delivered += delivered;
            }
        }
    }

    /// A message of the receiver's application reaches the sender at `at_ns`.
    fn note_message(&mut self, at_ns: u64) {
        if self.in_flight() == 0 {
            self.is_asked = true;
            return;
        }
        if self.credits.len() < MOST_SENT {
            self.credits.push_back(at_ns);
        }
        if let Some(bins) = &mut self.flight.bins {
            bins.now().credits += 1;
        }
    }

    /// The receiver has what the capture has not.
    fn on_unseen(&mut self, ack: u64) {
        // A FIN that was not seen is no payload, and neither is what came before the capture.
        if self.first_data_ns.is_some() || self.acked {
            self.note_unseen((ack - self.snd_max).saturating_sub(1));
        }
        self.snd_max = ack;
    }

    /// So many bytes got through that are not in the capture.
    fn note_unseen(&mut self, bytes: u64) {
        self.counters.unseen += bytes;
        self.drops.carried += bytes;
    }

    fn on_new_ack(&mut self, now: u64, ack: u64, is_pure: bool) {
        let mut newest = None;
        while let Some(sent) = self.sent.front().copied().filter(|sent| sent.end <= ack) {
            self.sent.pop_front();
            newest = Some(sent);
        }
        let unseen = self.holes.forget_below(ack);
        // Where the capture lacks what was sent before, what it has may have been sent again.
        if let Some(sent) = newest.filter(|sent| sent.end > self.karn && unseen == 0) {
            self.on_round_trip(now, now.saturating_sub(sent.at_ns));
        }
        if is_pure && ack >= self.snd_max && self.lone.acked_ns.is_none() {
            self.lone.acked_ns = Some(now);
        }
        let least_ns = self.far.least_ns.unwrap_or(0);
        for _ in 0..self.repeats.needless(ack, now, least_ns) {
            self.note_needless();
        }
        let moved = ack.saturating_sub(self.una.max(BASE));
        let sacked = self.sacked.forget_below(ack);
        if let Some(bins) = &mut self.flight.bins {
            bins.now().delivered += moved.saturating_sub(sacked);
        }
        self.note_unseen(unseen);
        self.una = self.una.max(ack);
        if self.first_data_ns.is_some() && moved > 0 {
            self.acked = true;
        }
        self.duplicates = 0;
    }

    /// A round trip from the place of capture; the sender saw a longer one by the way between.
    fn on_round_trip(&mut self, now: u64, trip_ns: u64) {
        self.far.note(trip_ns, 0);
        let whole_ns = trip_ns.saturating_add(self.shift_ns(now));
        self.round_trips = self.round_trips.saturating_add(1);
        if self.far.least_ns.is_some_and(|least_ns| trip_ns >= least_ns + (least_ns / QUEUED_PART).max(QUEUED_NS)) {
            self.queued_trips = self.queued_trips.saturating_add(1);
        }
        // RFC 6298, section 2.
        if self.srtt_ns == 0 {
            (self.srtt_ns, self.rttvar_ns) = (whole_ns, whole_ns / 2);
        } else {
            self.rttvar_ns = self.rttvar_ns - self.rttvar_ns / 4 + self.srtt_ns.abs_diff(whole_ns) / 4;
            self.srtt_ns = self.srtt_ns - self.srtt_ns / 8 + whole_ns / 8;
        }
        let seen_ns = trip_ns.saturating_add(self.queueing_ns(now));
        if let Some(bins) = &mut self.flight.bins {
            let bin = bins.now();
            bin.rtt_ns = shortest(bin.rtt_ns, Some(seen_ns));
        }
    }

    /// Notes the blocks; tells how many bytes are newly known to have arrived.
    fn on_sack(&mut self, now: u64, options: &Options, ack: u64) -> u64 {
        let mut delivered = 0;
        for (index, &(left, right)) in options.sack().iter().enumerate() {
            let (from, to) = (self.position(left), self.position(right));
            if from >= to || to > self.snd_max {
                continue;
            }
            // RFC 2883, section 4: a first block below the acknowledgement, or within the second, is a duplicate.
            if index == 0 && (to <= ack || self.is_within_second(options, (from, to))) {
                self.counters.dsacks += 1;
                if !self.repeats.is_known_needless()
                    && let Some(bins) = &mut self.flight.bins
                {
                    bins.now().dsacks += 1;
                }
                continue;
            }
            if to > self.una {
                let new = self.sacked.add(from.max(self.una), to, ());
                delivered += new;
                // What was lost before it came here waited there.
                if new == to - from && !self.holes.ends_at(from) {
                    self.note_behind_hole(now, to);
                }
            }
        }
        delivered
    }

    /// The segment that ends at `end` is the first to be known to have arrived behind a hole.
    fn note_behind_hole(&mut self, now: u64, end: u64) {
        let place = self.sent.partition_point(|sent| sent.end < end);
        let trip_ns = self.sent.get(place).map(|sent| now.saturating_sub(sent.at_ns));
        if let Some((trip_ns, least_ns)) = trip_ns.zip(self.far.least_ns) {
            self.drops.note_wait(trip_ns.saturating_sub(least_ns) + self.queueing_ns(now));
        }
    }

    fn is_within_second(&mut self, options: &Options, (from, to): (u64, u64)) -> bool {
        let Some(&(left, right)) = options.sack().get(1) else { return false };
        let (low, high) = (self.position(left), self.position(right));
        low <= from && to <= high
    }
}
