//! What is in flight in one direction, as its sender sees it: acknowledgements that pass the place of capture act only
//! when they have reached the sender. What is *not* here: which bytes were seen twice (`half`).

use std::collections::VecDeque;

use super::bins::{Bin, Bins};

/// Acknowledgements on their way to the sender that are kept apart; beyond that, the newest two become one.
const MOST_PENDING: usize = 4_096;

/// The window counts as used up with this many segments of room or fewer (Siekkinen 2008; `diagnose` has the same).
const SLACK_SEGMENTS: u64 = 3;

/// A full link delivers all the time: nothing for this part of a round trip, and this long, and it was not full.
const DRY_PART: u64 = 10;
const LEAST_DRY_NS: u64 = 2_500_000;

/// ... but for data, beside the receiver of a short path, this part of it, and this long.
const SHORT_TRIP_PART: u64 = 4;
const LEAST_SHORT_DRY_NS: u64 = 500_000;

/// An acknowledgement of more than this many segments ends a burst.
const ONE_ACK_SEGMENTS: u64 = 3;

/// An acknowledgement on its way.
#[derive(Clone, Copy, Debug)]
struct Pending {
    at_ns: u64,
    ack: Ack,
}

/// The flight of one direction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flight {
    una: u64,
    edge: Option<u64>,
    closed: bool,
    /// The largest window that was offered.
    largest: u64,
    pending: VecDeque<Pending>,
    /// What the last acknowledgement said, since the timeline began, and when it reaches the sender.
    ack: Option<Ack>,
    ack_ns: u64,
    since_ns: u64,
    /// When the last acknowledgement reached the sender that made room, and the one before.
    prompted_ns: u64,
    prompted_before_ns: u64,
    /// When the last acknowledgement of something in flight passed, of how much, and how far apart they are, smoothed.
    acked_ns: u64,
    acked_bytes: u64,
    ack_gap_ns: u64,
    /// The shortest round trip, as far as it is known.
    pub(super) trip_ns: u64,
    /// When the first one did since the last new data was sent.
    pub(super) room_ns: Option<u64>,
    /// The largest segment: offloads send many at once.
    pub(crate) burst: u64,
    pub(crate) mss: u64,
    /// More than twice the window was in flight: it must be scaled by more than is known.
    pub(crate) is_beyond: bool,
    pub(crate) bins: Option<Bins>,
    /// Whether a timeline is of no use: most connections are too short for one, and it is most of the work.
    is_timeless: bool,
}

/// What an acknowledgement says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ack {
    pub(crate) una: u64,
    /// How far it lets the sender send.
    pub(crate) edge: u64,
    pub(crate) closed: bool,
}

impl Flight {
    /// As new, with the room that the list had. In place and by name, as the connection does it.
    pub(super) fn restart(&mut self, timeless: bool) {
        let Self {
            una,
            edge,
            closed,
            largest,
            pending,
            ack,
            ack_ns,
            since_ns,
            prompted_ns,
            prompted_before_ns,
            acked_ns,
            acked_bytes,
            ack_gap_ns,
            trip_ns,
            room_ns,
            burst,
            mss,
            is_beyond,
            bins,
            is_timeless,
        } = self;
        (*una, *edge, *closed, *largest, *ack, *ack_ns) = (0, None, false, 0, None, 0);
        (*since_ns, *prompted_ns, *prompted_before_ns, *room_ns, *burst, *mss) = (0, 0, 0, None, 0, 0);
        (*acked_ns, *acked_bytes, *ack_gap_ns, *trip_ns) = (0, 0, 0, 0);
        (*is_beyond, *bins, *is_timeless) = (false, None, timeless);
        pending.clear();
    }

    /// Begins the timeline with the first payload.
    pub(crate) fn begin(&mut self, at_ns: u64, una: u64) {
        if self.bins.is_none() && !self.is_timeless {
            self.bins = Some(Bins::starting(at_ns));
            (self.since_ns, self.prompted_ns, self.acked_ns) = (at_ns, at_ns, at_ns);
            self.una = self.una.max(una);
            self.say_again(at_ns);
        }
    }

    /// The timeline has yet to hear what was said before it began.
    fn say_again(&mut self, now_ns: u64) {
        if self.ack_ns <= now_ns {
            self.ack = None;
        } else if let Some(ack) = self.ack.filter(|_| self.pending.is_empty()) {
            self.pending.push_back(Pending { at_ns: self.ack_ns, ack });
        }
    }

    /// An acknowledgement that reaches the sender at `at_ns`.
    #[inline]
    pub(crate) fn record(&mut self, at_ns: u64, ack: Ack) {
        if self.is_timeless {
            return;
        }
        self.ack_ns = self.ack_ns.max(at_ns);
        // What a sender of data acknowledges meanwhile is nearly always the same, and then nothing changes.
        if self.has_recorded(ack) {
            return;
        }
        self.ack = Some(ack);
        let pending = Pending { at_ns: self.ack_ns, ack };
        if self.pending.len() >= MOST_PENDING
            && let Some(last) = self.pending.back_mut()
        {
            *last = pending;
            return;
        }
        self.pending.push_back(pending);
    }

    /// Whether the last acknowledgement that was recorded said the same.
    #[inline]
    pub(crate) fn has_recorded(&self, ack: Ack) -> bool {
        self.ack == Some(ack)
    }

    /// Everything up to `now_ns` has happened; `snd_max` was sent before the first of it.
    #[inline]
    pub(crate) fn advance(&mut self, now_ns: u64, snd_max: u64) {
        if self.is_timeless {
            return;
        }
        if !self.pending.is_empty() {
            self.arrive(now_ns, snd_max);
        }
        self.pass(now_ns, snd_max);
    }

    /// What reaches the sender until then does.
    fn arrive(&mut self, now_ns: u64, snd_max: u64) {
        while let Some(&Pending { at_ns, ack }) = self.pending.front()
            && at_ns <= now_ns
        {
            self.pending.pop_front();
            self.pass(at_ns, snd_max);
            let makes_room = ack.una > self.una || self.edge.is_none_or(|edge| ack.edge > edge);
            if makes_room {
                self.prompted_before_ns = self.prompted_ns;
                self.prompted_ns = at_ns;
                self.room_ns = self.room_ns.or(Some(at_ns));
            }
            if let Some(bins) = &mut self.bins {
                let bin = bins.now();
                bin.prompts += u32::from(makes_room);
                bin.acked += ack.una.saturating_sub(self.una);
                bin.window = Some(ack.edge.saturating_sub(ack.una));
            }
            self.una = self.una.max(ack.una);
            self.edge = self.edge.max(Some(ack.edge));
            self.largest = self.largest.max(ack.edge.saturating_sub(ack.una));
            self.closed = ack.closed;
        }
    }

    /// An acknowledgement of something in flight passes, of `acked` new bytes: how long had nothing arrived at the receiver
    /// before? No link was full meanwhile.
    #[inline]
    pub(super) fn note_arrival(&mut self, at_ns: u64, acked: u64) {
        let gap_ns = at_ns.saturating_sub(self.acked_ns);
        let (usual_ns, bytes) = (self.ack_gap_ns, self.acked_bytes);
        self.ack_gap_ns = usual_ns - usual_ns / 8 + gap_ns.min(self.trip_ns.max(LEAST_DRY_NS)) / 8;
        (self.acked_ns, self.acked_bytes) = (at_ns, acked);
        if gap_ns >= LEAST_DRY_NS {
            self.note_gap(at_ns, gap_ns, usual_ns, bytes);
        }
    }

    /// At a low rate acknowledgements are far apart, and evenly.
    fn note_gap(&mut self, at_ns: u64, gap_ns: u64, usual_ns: u64, bytes: u64) {
        let is_odd = gap_ns >= usual_ns.saturating_mul(3) || bytes > ONE_ACK_SEGMENTS * self.mss;
        if let Some(bins) = self.bins.as_mut().filter(|_| is_odd && gap_ns >= self.trip_ns / DRY_PART) {
            bins.spread(at_ns, gap_ns, |bin| &mut bin.dry_ns);
        }
    }

    /// Data came, `gap_ns` after what came before it, and the narrowest link takes `takes_ns` for it.
    #[inline]
    pub(super) fn note_data(&mut self, at_ns: u64, gap_ns: u64, takes_ns: u64) {
        let empty_ns = gap_ns.saturating_sub(takes_ns);
        let least_ns = (self.trip_ns / SHORT_TRIP_PART).clamp(LEAST_SHORT_DRY_NS, LEAST_DRY_NS);
        if empty_ns >= least_ns
            && empty_ns >= self.trip_ns / DRY_PART
            && let Some(bins) = &mut self.bins
        {
            bins.spread(at_ns, empty_ns, |bin| &mut bin.dry_ns);
        }
    }

    /// Time goes on, and nothing changes.
    #[inline]
    fn pass(&mut self, to_ns: u64, snd_max: u64) {
        if self.bins.is_none() || to_ns <= self.since_ns {
            self.since_ns = self.since_ns.max(to_ns);
            return;
        }
        let in_flight = self.in_flight(snd_max);
        let held = in_flight > 0 && self.is_window_used(in_flight);
        let closed = self.closed || in_flight == 0 && self.is_silly();
        let Some(bins) = &mut self.bins else { return };
        if to_ns <= bins.end_ns() {
            charge(bins.now(), to_ns - self.since_ns, in_flight, held, closed);
        } else {
            bins.go_on(self.since_ns, to_ns, |bin, span_ns| charge(bin, span_ns, in_flight, held, closed));
        }
        self.since_ns = to_ns;
    }

    /// What the sender knows to have arrived.
    pub(crate) const fn una(&self) -> u64 {
        self.una
    }

    #[inline]
    pub(crate) const fn in_flight(&self, snd_max: u64) -> u64 {
        snd_max.saturating_sub(self.una)
    }

    /// How long before `sent_ns`, give or take `slack_ns`, an acknowledgement made room for more.
    pub(crate) const fn unprompted_ns(&self, sent_ns: u64, slack_ns: u64) -> u64 {
        let is_later = self.prompted_ns > sent_ns.saturating_add(slack_ns);
        sent_ns.saturating_sub(if is_later { self.prompted_before_ns } else { self.prompted_ns })
    }

    /// New data is sent: for how long was there room for it?
    pub(crate) fn fill(&mut self, now_ns: u64) -> u64 {
        self.room_ns.take().map_or(0, |room_ns| now_ns.saturating_sub(room_ns))
    }

    /// Whether the sender, with nothing in flight, finds no room for a segment.
    pub(crate) fn is_shut(&self) -> bool {
        self.closed || self.is_silly()
    }

    /// Whether what is offered is less than a segment and less than half of what ever was: nothing is sent into that (RFC 9293,
    /// section 3.8.6.2.1).
    #[inline]
    fn is_silly(&self) -> bool {
        let Some(edge) = self.edge else { return false };
        let window = edge.saturating_sub(self.una);
        window < self.mss && window < self.largest / 2
    }

    /// Whether no more fits into the offered window.
    #[inline]
    fn is_window_used(&mut self, in_flight: u64) -> bool {
        let Some(edge) = self.edge else { return false };
        let window = edge.saturating_sub(self.una);
        if in_flight > 2 * window.max(self.mss) {
            self.is_beyond = true;
        }
        let free = window.saturating_sub(in_flight);
        // Small windows would count as used when half empty: never while more than a quarter of them is free.
        free <= (window / 4).max(self.mss) && free <= (SLACK_SEGMENTS * self.mss).max(self.burst).max(window / 10)
    }
}

/// Charges a span of time to the bin that it lies in.
#[inline]
fn charge(bin: &mut Bin, span_ns: u64, in_flight: u64, held: bool, closed: bool) {
    if in_flight > 0 {
        bin.busy_ns += span_ns;
        // Neither reaches 2^63; unsigned, each would take six instructions to convert.
        bin.flight_ns += in_flight.cast_signed() as f64 * span_ns.cast_signed() as f64;
        bin.peak = bin.peak.max(in_flight);
    }
    bin.held_ns += if held { span_ns } else { 0 };
    bin.closed_ns += if closed { span_ns } else { 0 };
}
