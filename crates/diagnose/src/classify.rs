//! One limiter for each interval.
//!
//! Windows and buffers are judged moment by moment (`windows`) and overruled where the path is full (`path`). What is
//! left, a sender held by congestion control or pacing, looks the same whether the path is full or loses packets at
//! random: that is decided once for the whole transfer ([`NetworkCause`]). What is *not* here: the verdict.

use crate::{
    CongestionState, Detail, Limiter, Transfer,
    loss::Losses,
    opening,
    packets::{self, Level},
    path::{Path, Suspect},
    pauses::{Pauses, Sign},
    policer, stats, thresholds,
    timeline::{self, Interval, Timeline},
    windows::{self, Holding, Offer},
};

/// What limited an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Label {
    pub(crate) limiter: Limiter,
    pub(crate) detail: Option<Detail>,
}

impl Label {
    const fn new(limiter: Limiter, detail: Option<Detail>) -> Self {
        Self { limiter, detail }
    }
}

const SATURATED: Label = Label::new(Limiter::Path, Some(Detail::Saturated));
const SLOW_START: Label = Label::new(Limiter::CongestionWindow, Some(Detail::SlowStart));
const APPLICATION: Label = Label::new(Limiter::Application, None);
const LOSS: Label = Label::new(Limiter::CongestionWindow, Some(Detail::Loss));
const TAIL_LOSS: Label = Label::new(Limiter::CongestionWindow, Some(Detail::TailLoss));

/// Everything that is known before any interval is labelled.
#[derive(Clone, Debug)]
pub(crate) struct Case<'a> {
    pub(crate) transfer: &'a Transfer,
    pub(crate) timeline: Timeline<'a>,
    pub(crate) path: Path,
    pub(crate) losses: Losses,
    pub(crate) offer: Offer,
    /// The rate of a policer on the path, in bit/s.
    policed: Option<f64>,
    /// What requests and answers cost, where the transfer consists of them.
    pub(crate) answers: Option<packets::Answers>,
    /// As packets tell of the whole transfer ([`packets::is_credited`], [`packets::is_timed`],
    /// [`packets::is_one_write_each_trip`], [`packets::is_unprompted`], [`packets::is_emptied`]).
    pub(crate) is_credited: bool,
    pub(crate) is_timed: bool,
    pub(crate) is_one_write: bool,
    is_unprompted: bool,
    is_emptied: bool,
    /// Whether acknowledgements wait until the receiver's application has read.
    is_read_late: bool,
}

impl<'a> Case<'a> {
    /// `others` is what other streams of the same test carried meanwhile, in bit/s.
    pub(crate) fn new(transfer: &'a Transfer, others: f64) -> Self {
        let timeline = Timeline::new(transfer);
        let path = Path::new(transfer, &timeline, others);
        let losses = Losses::new(transfer, &timeline);
        let offer = Offer::new(transfer, &timeline);
        let answers = packets::Answers::new(&timeline);
        Self {
            policed: policer::rate(transfer, &timeline, &path, &losses, answers),
            answers,
            is_credited: packets::is_credited(&timeline),
            is_timed: packets::is_timed(transfer, &timeline),
            is_one_write: packets::is_one_write_each_trip(transfer, &timeline),
            is_unprompted: packets::is_unprompted(&timeline),
            is_emptied: packets::is_emptied(&timeline),
            is_read_late: windows::is_read_late(&timeline, &offer, &losses, &path),
            path,
            losses,
            offer,
            timeline,
            transfer,
        }
    }

    /// One label per interval of the timeline.
    pub(crate) fn labels(&self) -> Vec<Label> {
        let holdings = self.holdings();
        let opened = self.opened_us();
        let later: Vec<&Interval<'_>> = self.timeline.intervals.iter().filter(|i| i.to_us > opened).collect();
        // A connection that the path limits carries what several together do. The queue of one that falls short of that is its own bursts.
        let is_short = self.path.carries_more_than(&later);
        let cause = self.network_cause(&holdings, opened);
        // Busy processors delay what a window or a buffer lets go; it still holds the sender.
        let is_held = is_short
            && matches!(cause, NetworkCause::Window | NetworkCause::Held)
            && self.held_part(&holdings) >= thresholds::ENDS_HOLD;
        let at_a_window = |holding: &Holding| !matches!(holding, Holding::Network | Holding::ClosedWindow);
        let held = self.timeline.intervals.iter().zip(&holdings);
        let held: Vec<&Interval<'_>> = held.filter(|(_, holding)| at_a_window(holding)).map(|(i, _)| i).collect();
        // A deep queue can't be: the path carried more at another time.
        let stands = |held: &[&Interval<'_>]| {
            self.path.has_standing_queue(held) && (!is_short || self.path.has_deep_queue(held))
        };
        let window = Suspect::Window { standing: stands(&held) };
        let is_supplied = |holding: &Holding| matches!(holding, Holding::SendBuffer | Holding::Supply { .. });
        let supplied = self.timeline.intervals.iter().zip(&holdings).filter(|(_, holding)| is_supplied(holding));
        let mut supplied: Vec<&Interval<'_>> = supplied.map(|(interval, _)| interval).collect();
        let is_queued = stands(&supplied);
        // Before the window has opened, any path runs dry.
        supplied.retain(|interval| interval.to_us > opened);
        let standing = is_queued && !self.path.runs_dry(&supplied);
        let supply = Suspect::Window { standing };
        // What it holds at the end of its data is all sent: that doesn't make it the application's.
        let is_opening = opening::is_all(&self.timeline);
        let label = |(interval, &holding): (&Interval<'_>, &Holding)| match holding {
            Holding::Network | Holding::Supply { idle: false }
                if is_opening && !self.path.is_full(interval, Suspect::Congestion) =>
            {
                SLOW_START
            }
            Holding::Network => self.network(interval, opened, cause, is_short, is_held),
            _ => self.end(interval, holding, if is_supplied(&holding) { supply } else { window }),
        };
        let mut labels: Vec<Label> = self.timeline.intervals.iter().zip(&holdings).map(label).collect();
        for held_back in windows::held_back(&self.timeline) {
            labels[held_back].fill(Label::new(Limiter::AckDelay, Some(Detail::Nagle)));
        }
        self.mark_stalls(&mut labels);
        self.relabel_half_empty_buffers(&mut labels);
        labels
    }

    /// A full send buffer is never far from full: its writer refills it as soon as a third is free. Where the transfer needed less of
    /// it than that (Little's law), the path and the buffer were empty for most of the time: the application wrote no more. A capture
    /// beside the receiver shows the sender's pauses, and not what ended them.
    fn relabel_half_empty_buffers(&self, labels: &mut [Label]) {
        let is_buffer = |label: &Label| label.limiter == Limiter::SendBuffer;
        let held = self.timeline.intervals.iter().zip(&*labels).filter(|(_, label)| is_buffer(label));
        let held: Vec<&Interval<'_>> = held.map(|(interval, _)| interval).collect();
        if packets::is_half_empty(&held, self.path.base_rtt) {
            labels.iter_mut().filter(|label| is_buffer(label)).for_each(|label| *label = APPLICATION);
        }
    }

    /// What held data back in each interval.
    fn holdings(&self) -> Vec<Holding> {
        let mut holdings: Vec<Holding> =
            self.timeline.intervals.iter().map(|i| windows::holding(&self.timeline, i)).collect();
        // A loss takes room away that an acknowledgement seems to make.
        let room_is_seen = Losses::ratio_after_first(&self.timeline) < thresholds::STARVED_LOSS;
        // What losses hold down is level by chance.
        let levels = packets::levels(&self.timeline, self.transfer.write, !room_is_seen);
        // At the rate at which it lost before, a sender is held by what took the losses, however level it goes.
        let is_policed = |interval: &Interval<'_>| {
            self.policed.is_some_and(|rate| (interval.rate - rate).abs() <= thresholds::AGREEMENT * rate)
        };
        // A sender that paces learns the rate at which the other end reads, and keeps a little below what it offers.
        let is_read_slowly = |interval: &Interval<'_>| {
            let near = |most: f64| {
                // Where the scale of windows was not seen, that they shrink to less than half and stay there is enough.
                interval.offered().is_none_or(|window| most >= (1.0 - thresholds::SLACK_OF_WINDOW) * window)
            };
            self.offer.is_slow_reader() && packets::peak(interval).is_some_and(near)
        };
        let signs = self.signs();
        let calm = self.losses.calm(&self.timeline);
        for ((((holding, interval), level), sign), is_calm) in
            holdings.iter_mut().zip(&self.timeline.intervals).zip(levels).zip(signs).zip(calm)
        {
            let room_is_seen = room_is_seen || is_calm && self.policed.is_none();
            *holding = match (*holding, level) {
                (Holding::Network | Holding::SendBuffer | Holding::Supply { idle: false }, _)
                    if is_read_slowly(interval) =>
                {
                    Holding::OfferedWindow
                }
                (Holding::Network, _) if room_is_seen && sign == Some(Sign::Window) => Holding::OfferedWindow,
                (Holding::Network, _) if room_is_seen && sign == Some(Sign::Buffer) => Holding::SendBuffer,
                (Holding::Network, _) if room_is_seen && sign == Some(Sign::Application) => {
                    Holding::Supply { idle: false }
                }
                (Holding::Network, _) if room_is_seen && packets::is_starved(interval) => {
                    Holding::Supply { idle: false }
                }
                (Holding::Network, Some(_)) if is_policed(interval) => Holding::Network,
                (Holding::Network, Some(Level::Ceiling)) => Holding::SendBuffer,
                (Holding::Network, Some(Level::Writes)) => Holding::Supply { idle: false },
                (holding, _) => holding,
            };
            if (self.is_credited || self.is_timed || self.is_emptied) && *holding == Holding::SendBuffer {
                *holding = Holding::Supply { idle: false };
            }
        }
        holdings
    }

    /// What the pauses around each interval say.
    fn signs(&self) -> Vec<Option<Sign>> {
        let intervals = &self.timeline.intervals;
        let base = self.timeline.base_rtt.filter(|base| self.timeline.span_us >= thresholds::PAUSES_ROUND_TRIPS * base);
        let Some(base) = base else { return vec![None; intervals.len()] };
        let reach = thresholds::PAUSES_ROUND_TRIPS * base;
        let round_trips = 2.0 * thresholds::PAUSES_ROUND_TRIPS;
        let all = Some(Pauses::from_intervals(intervals)).filter(Pauses::are_many);
        let says_buffer = |all: &&Pauses| all.sign(self.timeline.span_us / base) == Some(Sign::Buffer);
        let whole = all.as_ref().filter(says_buffer).map(|all| (Sign::Buffer, all));
        let sign = |pauses: &Pauses| match pauses.sign_within(round_trips, whole) {
            Some(_) if pauses.are_held() => Some(Sign::Window),
            sign => sign,
        };
        // Before a full link a sender waits for acknowledgements, too.
        let is_open = |interval: &&Interval<'_>| !self.path.is_full(interval, Suspect::Congestion);
        // A window that opens doesn't use the buffer up.
        let opened = self.opened_us();
        let holds = |sign: &Sign, i: &Interval<'_>| is_open(&i) && (*sign != Sign::Buffer || i.to_us > opened);
        let around = Pauses::around(intervals, reach);
        around.iter().zip(intervals).map(|(pauses, i)| sign(pauses).filter(|sign| holds(sign, i))).collect()
    }

    /// What an end does, unless the path is full meanwhile.
    fn end(&self, interval: &Interval<'_>, holding: Holding, window: Suspect) -> Label {
        if let Some(detail) = self.ack_delay(interval) {
            return Label::new(Limiter::AckDelay, Some(detail));
        }
        let full = self.path.is_full(interval, window);
        match holding {
            Holding::ClosedWindow => Label::new(Limiter::ReceiveWindow, self.offer.detail()),
            Holding::Supply { idle: true } => Label::new(Limiter::Application, Some(Detail::Idle)),
            // Data lies unread only because it came faster than it was read: the path had more to give. And a receiver
            // whose window doesn't grow acknowledges when its application reads, so that round trips mean nothing.
            Holding::OfferedWindow if self.offer.is_slow_reader() => {
                Label::new(Limiter::ReceiveWindow, self.offer.detail())
            }
            Holding::OfferedWindow if self.is_read_late || !full && self.is_acknowledged_late(interval) => {
                Label::new(Limiter::ReceiveWindow, Some(Detail::SlowReader))
            }
            _ if full => SATURATED,
            Holding::OfferedWindow => Label::new(Limiter::ReceiveWindow, self.offer.detail()),
            Holding::SendBuffer => Label::new(Limiter::SendBuffer, Some(self.send_buffer_detail())),
            Holding::Supply { idle: false } if is_busy(self.transfer.sender.cpu_busy) => Label::new(Limiter::Cpu, None),
            Holding::Supply { idle: false } | Holding::Network => APPLICATION,
        }
    }

    /// The round trip is longer than the path's while the path is empty for a good part of the time: it is the receiver
    /// that acknowledges late, when its application has read.
    fn is_acknowledged_late(&self, interval: &Interval<'_>) -> bool {
        let is_dry = interval.dry.is_some_and(|dry| dry >= thresholds::DRY);
        let is_large = interval.offered().is_some_and(|window| window >= thresholds::LEAST_CEILING * self.timeline.mss);
        let late = interval.rtt().zip(self.path.base_rtt).is_some_and(|(rtt, base)| {
            rtt >= thresholds::QUEUE_FACTOR * base && rtt - base >= *thresholds::ACK_DELAY_US.start()
        });
        is_dry && is_large && late && self.offer.detail() == Some(Detail::WindowCeiling)
    }

    /// `is_short`: the path is known to carry more than the transfer does; `is_held`: a window or a buffer explains that.
    fn network(
        &self,
        interval: &Interval<'_>,
        opened: u64,
        cause: NetworkCause,
        is_short: bool,
        is_held: bool,
    ) -> Label {
        // A burst that a window or a buffer lets go queues behind itself.
        let shows_no_queue = match cause {
            NetworkCause::Policed | NetworkCause::Refilled => true,
            NetworkCause::Window | NetworkCause::Held => is_short,
            _ => false,
        };
        if !shows_no_queue && self.path.is_full(interval, Suspect::Congestion) {
            return SATURATED;
        }
        // Without a queue, a steady rate of a sender that always had room is its application's.
        if interval.to_us > opened && self.is_unprompted && !self.path.is_full(interval, Suspect::Congestion) {
            return APPLICATION;
        }
        if interval.to_us <= opened {
            return SLOW_START;
        }
        if !is_held && self.is_cpu(interval) {
            return Label::new(Limiter::Cpu, None);
        }
        if bound_by_application(interval).is_some() {
            return APPLICATION;
        }
        match cause {
            NetworkCause::Saturated if interval.rate >= thresholds::TROUGH * self.path.plateau => SATURATED,
            NetworkCause::Saturated | NetworkCause::Loss => self.after_loss(interval, LOSS),
            NetworkCause::Policed => Label::new(Limiter::Path, Some(Detail::Policed)),
            NetworkCause::Reordering => self.after_loss(interval, Label::new(Limiter::Reordering, None)),
            NetworkCause::Opening => SLOW_START,
            NetworkCause::Paced => APPLICATION,
            NetworkCause::Held if self.is_credited || self.is_timed => APPLICATION,
            NetworkCause::Answers { fill: true } => SATURATED,
            NetworkCause::Answers { fill: false } => APPLICATION,
            NetworkCause::Held | NetworkCause::Refilled => {
                Label::new(Limiter::SendBuffer, Some(self.send_buffer_detail()))
            }
            NetworkCause::Window => Label::new(Limiter::ReceiveWindow, self.offer.detail()),
            NetworkCause::Unknown => Label::new(Limiter::CongestionWindow, None),
        }
    }

    /// `label`, unless nothing had been lost yet that could hold the window down.
    fn after_loss(&self, interval: &Interval<'_>, label: Label) -> Label {
        let has_lost = self.losses.first_us.is_some_and(|first| interval.to_us > first);
        if has_lost { label } else { Label::new(Limiter::CongestionWindow, None) }
    }

    /// The end of the first opening of the window: the plateau, a full path or a loss, whichever comes first.
    fn opened_us(&self) -> u64 {
        let opened = |i: &&Interval<'_>| {
            i.retransmits > 0.0 || self.path.at_plateau(i) || self.path.is_full(i, Suspect::Congestion)
        };
        let intervals = &self.timeline.intervals;
        let Some(index) = intervals.iter().position(|i| opened(&i)) else { return u64::MAX };
        intervals[packets::opened(&self.timeline, index)].from_us
    }

    /// Less than a segment in flight, room for more, and a round trip longer by a delayed-ACK timer.
    fn ack_delay(&self, interval: &Interval<'_>) -> Option<Detail> {
        let (nagle, delayed) = packets::ack_delays(interval);
        if nagle.max(delayed) >= thresholds::MOST_OF_INTERVAL {
            return Some(if nagle >= delayed { Detail::Nagle } else { Detail::DelayedAck });
        }
        let mss = self.timeline.mss_at(interval);
        let (in_flight, room) = (interval.in_flight()?, interval.cwnd()?.min(interval.offered()?));
        let delay = interval.rtt()? - self.path.base_rtt?;
        let lone = in_flight > 0.0 && in_flight <= mss && in_flight <= 0.5 * room;
        let waiting = interval.not_sent().unwrap_or(0.0);
        if !lone || interval.timeouts > 0 || waiting >= mss {
            return None;
        }
        // Of two writes the first is acknowledged late and the second by the answer: the smoothed round trip has half of it.
        let (delay, detail) = if waiting > 0.0 { (2.0 * delay, Detail::Nagle) } else { (delay, Detail::DelayedAck) };
        thresholds::ACK_DELAY_US.contains(&delay).then_some(detail)
    }

    fn send_buffer_detail(&self) -> Detail {
        match self.transfer.sender.send_buffer {
            Some(buffer) if buffer.pinned => Detail::PinnedByApplication,
            _ => Detail::BufferCap,
        }
    }

    /// A processor is full, data waits, and neither congestion control nor pacing explains it.
    fn is_cpu(&self, interval: &Interval<'_>) -> bool {
        let full = is_busy(self.transfer.sender.cpu_busy) || is_busy(self.transfer.receiver.cpu_busy);
        let paced = interval.at.pacing_rate_bps.is_some_and(|r| (r.bps() as f64) < thresholds::PACED * interval.rate);
        let room = interval.in_flight().zip(interval.cwnd()).is_some_and(|(f, c)| f < thresholds::SUPPLY_SHORT * c);
        full && room && !paced
    }

    /// Timeouts, the silence that leads to each, and what follows until recovery ends; or the black hole behind them.
    fn mark_stalls(&self, labels: &mut [Label]) {
        let intervals = &self.timeline.intervals;
        let black_hole = self.is_black_hole();
        let mut silence_from = 0;
        let mut acked_until = 0;
        for index in 0..intervals.len() {
            let interval = &intervals[index];
            if self.probes_a_loss(index) {
                labels[silence_from..=index].fill(TAIL_LOSS);
            } else if interval.timeouts > 0 {
                // A timer runs while something is in flight. Where that was not seen, it was lost before the place of capture.
                let is_unseen = silence_from == index && self.transfer.lost_size.is_some();
                let from = if is_unseen { acked_until } else { silence_from };
                for label in &mut labels[from..=index] {
                    *label = stall(interval, black_hole);
                }
            } else if interval.at.congestion_state == Some(CongestionState::Loss) {
                labels[index] = stall(interval, black_hole);
            }
            if interval.acked > 0.0
                || interval.in_flight() == Some(0.0)
                || labels[index].limiter == Limiter::ReceiveWindow
            {
                silence_from = index + 1;
            }
            if interval.acked > 0.0 {
                acked_until = index + 1;
            }
        }
    }

    /// Whether the last segment was sent again unasked, and nothing says that it had arrived: two round trips of silence instead of a
    /// timer's (RFC 8985, section 7.2).
    fn probes_a_loss(&self, index: usize) -> bool {
        let Some(later) = self.timeline.intervals.get(index..) else { return false };
        let answered_us = later.first().map_or(0.0, |i| i.to_us as f64) + 2.0 * self.timeline.base_rtt.unwrap_or(0.0);
        let mut until_answered = later.iter().take_while(|i| i.from_us as f64 <= answered_us);
        later.first().is_some_and(|i| i.at.packets.is_some_and(|packets| packets.probes > 0))
            && until_answered.all(|i| i.dsacks <= 0.0)
    }

    /// Full-size segments vanish: the path's MTU is known to be smaller, or progress resumed with smaller segments, or
    /// it never began.
    fn is_black_hole(&self) -> bool {
        if self.transfer.lost_size.is_some() {
            return true;
        }
        let intervals = &self.timeline.intervals;
        // Each waits twice as long as the one before: a story of a few seconds doesn't reach back to the first of them.
        let in_a_row = intervals.iter().filter_map(|i| i.at.backoffs).max().unwrap_or(0);
        if self.losses.timeouts.max(in_a_row.into()) < thresholds::BLACK_HOLE_TIMEOUTS {
            return false;
        }
        let mss = |i: &Interval<'_>| self.timeline.mss_at(i);
        let largest = intervals.iter().map(mss).fold(0.0, f64::max);
        let too_large = self.transfer.path_mtu.is_some_and(|mtu| largest + thresholds::HEADERS > f64::from(mtu));
        let shrunk = intervals.iter().rfind(|i| i.acked > 0.0).is_some_and(|last| mss(last) <= 0.95 * largest);
        let never_began = !self.transfer.full_size_passed
            && self.timeline.acked() <= thresholds::SLACK_SEGMENTS * largest
            && intervals.last().and_then(Interval::in_flight).is_some_and(|bytes| bytes >= largest);
        too_large || shrunk || never_began
    }

    fn network_cause(&self, holdings: &[Holding], opened: u64) -> NetworkCause {
        match self.sole_cause(holdings, opened) {
            // What the path doesn't carry while it waits for the next request, losses don't take.
            cause @ (NetworkCause::Loss | NetworkCause::Reordering) => self
                .answers
                .filter(|answers| answers.is_most())
                .map_or(cause, |answers| NetworkCause::Answers { fill: answers.dry < thresholds::DRY }),
            cause => cause,
        }
    }

    /// As if the sender had been given all its data at once.
    fn sole_cause(&self, holdings: &[Holding], opened: u64) -> NetworkCause {
        let held = self.timeline.intervals.iter().zip(holdings);
        let held: Vec<&Interval<'_>> =
            held.filter(|(i, h)| **h == Holding::Network && i.to_us > opened).map(|(i, _)| i).collect();
        let rate = timeline::mean_rate(&held);
        let lost = self.losses.are_any();
        let by_loss = if self.losses.are_reordering() { NetworkCause::Reordering } else { NetworkCause::Loss };

        let has_packets = self.timeline.has_packets();
        let by_counters = policer::can_show_in_counters(self.transfer, &self.timeline);
        if self.policed.is_some() || (by_counters && self.is_policed(&held, rate)) {
            NetworkCause::Policed
        } else if !has_packets && self.is_refilled(holdings, opened) {
            // Its bursts overflow queues by themselves: what they lose there is the buffer's doing, and that the path would
            // carry more doesn't change it.
            NetworkCause::Refilled
        } else if has_packets && !self.path.delivered_through(&held) && self.is_refilled_late(holdings, opened) {
            NetworkCause::Held
        } else if self.path.has_room_above(rate) {
            match (lost, self.is_growing(&held)) {
                (true, _) => by_loss,
                (false, true) => NetworkCause::Opening,
                (false, false) => self.end_cause(holdings, opened, &held).unwrap_or(NetworkCause::Unknown),
            }
        } else if self.is_model_based()
            || !(self.is_steady(&held) && self.path.delivered_evenly(&held)) && self.is_beyond_loss(&held, rate)
        {
            self.model_based_cause(&held, rate, by_loss, self.end_cause(holdings, opened, &held))
        } else if !lost {
            let later =
                self.timeline.intervals.iter().zip(holdings).filter(|(i, holding)| {
                    i.to_us > opened && matches!(holding, Holding::Network | Holding::SendBuffer)
                });
            let later: Vec<&Interval<'_>> = later.map(|(interval, _)| interval).collect();
            let is_growing = self.is_growing(&held) && (!has_packets || self.is_growing(&later));
            let later = if has_packets { &later } else { &held };
            self.lossless_cause((&held, later, is_growing), has_packets, self.end_cause(holdings, opened, &held))
        } else if self.is_steady(&held) && self.path.delivered_evenly(&held)
            || self.path.delivered_through(&held)
                && (self.is_queueing(&held) || self.is_full_between_losses(&held, has_packets))
        {
            NetworkCause::Saturated
        } else {
            by_loss
        }
    }

    /// Losses at one height, or few of them beside a steady rate. Where samples tell of round trips, what lost something was full
    /// before, and shows it: four losses strike at one height by chance, too.
    fn is_full_between_losses(&self, held: &[&Interval<'_>], has_packets: bool) -> bool {
        let is_unseen = held.iter().all(|i| i.rtt().is_none());
        let is_likely =
            self.losses.are_repeatable() || self.is_steady(held) && (self.losses.episodes <= 2 || is_unseen);
        is_likely && (has_packets || is_unseen || self.is_probing_a_queue(held))
    }

    /// Only loss, a mark or a queue stops a sender: without them it is still on its way up, or something at its own end
    /// stops it. A level rate alone is no evidence of a full path. What its window and its pauses do shows in `later`, all of the time
    /// since it opened in which nothing else tells.
    fn lossless_cause(
        &self,
        (held, later, is_growing): (&[&Interval<'_>], &[&Interval<'_>], bool),
        has_packets: bool,
        by_end: Option<NetworkCause>,
    ) -> NetworkCause {
        let is_level = self.is_steady(held) && !is_growing && self.is_long(held);
        if let Some(by_end) = by_end.filter(|_| is_level) {
            return by_end;
        }
        let is_queueing = || self.is_probing_a_queue(held);
        // Where no round trips were seen, a queue wouldn't show; that the path delivered all the time is all there is.
        let sees_queues = held.iter().any(|i| i.rtt().is_some());
        let is_left_idle = !sees_queues && self.is_link_left_idle(held);
        if is_level
            && !is_left_idle
            && (!has_packets || self.path.delivered_through(held) && (!sees_queues || is_queueing()))
        {
            return NetworkCause::Saturated;
        }
        if !has_packets || is_growing || !self.is_long(held) {
            return NetworkCause::Opening;
        }
        let pauses = Pauses::from_intervals(later.iter().copied());
        let time: f64 = later.iter().map(|i| i.len()).sum();
        let waits = self.path.base_rtt.and_then(|base| pauses.sign(time / base)) == Some(Sign::Window);
        match pauses.is_clocked() {
            // At a level rate that leaves the path no gap, a little queue tells a full link from a sender that paces.
            clocked if is_level && clocked != Some(false) && self.is_just_full(held) => NetworkCause::Saturated,
            _ if packets::is_even(&self.timeline) => NetworkCause::Paced,
            Some(false) if !waits => NetworkCause::Paced,
            // The path had gaps, nothing was lost, no queue formed, and the window that was offered had room: a congestion
            // window would have grown.
            _ if self.is_larger_late(later) => NetworkCause::Unknown,
            // ... and where the receiver closes it again and again, what is in flight says nothing of the sender's buffer.
            _ if self.offer.closed => NetworkCause::Unknown,
            _ if is_left_idle || !self.path.delivered_through(held) || self.is_too_few_to_be_congestion(held) => {
                NetworkCause::Held
            }
            _ => NetworkCause::Unknown,
        }
    }

    /// Full segments arrived at the spacing of the narrowest link, and that link would have carried clearly more: no queue stood before
    /// it. Where it would have carried far more, the spacing may come from receive coalescing, and says nothing.
    pub(crate) fn is_link_left_idle(&self, held: &[&Interval<'_>]) -> bool {
        let link = self.transfer.link_rate.map_or(0.0, |link| link.bps() as f64);
        (thresholds::LEAST_LINK * link..thresholds::PATH_FULL * link).contains(&timeline::mean_rate(held))
    }

    /// The send buffer's writer is what the sender waits for most of the time, and the path runs dry meanwhile.
    fn is_refilled(&self, holdings: &[Holding], opened: u64) -> bool {
        let later = self.timeline.intervals.iter().zip(holdings).filter(|(i, _)| i.to_us > opened);
        let (mut all, mut waited, mut time) = (Vec::new(), 0.0, 0.0);
        for (interval, holding) in later {
            waited += if *holding == Holding::SendBuffer { interval.len() } else { 0.0 };
            time += interval.len();
            all.push(interval);
        }
        self.timeline.over_full >= thresholds::OVER_FULL
            && waited >= thresholds::REFILLS * time
            && self.path.runs_dry(&all)
    }

    /// Long after any loss, what is in flight falls far below its top in each round trip. A window that losses hold down is used up as
    /// soon as an acknowledgement makes room; a writer that its buffer wakes late lets the flight fall.
    fn is_refilled_late(&self, holdings: &[Holding], opened: u64) -> bool {
        let is_held = |index: usize, interval: &Interval<'_>| {
            holdings[index] == Holding::Network && interval.to_us > opened && !packets::is_idle(interval)
        };
        let calm = self.losses.calm(&self.timeline);
        let (filled, calm_us) = packets::filled(&self.timeline, |index, i| is_held(index, i) && calm[index]);
        let held = self.timeline.intervals.iter().enumerate().filter(|(index, i)| is_held(*index, i));
        let all_us: f64 = held.map(|(_, interval)| interval.len()).sum();
        let is_long = self.path.base_rtt.is_some_and(|base| calm_us >= thresholds::FLAT_ROUND_TRIPS * base);
        is_long && calm_us >= thresholds::MOSTLY_CALM * all_us && filled <= thresholds::LATE_FILLED
    }

    /// A window or a buffer that held the sender again and again, by what counters tell, holds it at the same rate in between, too:
    /// samples that fall between two bursts, or into the pacing of one, find a part of it free. A path that is full shows a
    /// queue, at the latest where the sender goes up to its window, and several connections together carry no more; and a rate that heeds
    /// the window or buffer is theirs.
    fn end_cause(&self, holdings: &[Holding], opened: u64, held: &[&Interval<'_>]) -> Option<NetworkCause> {
        let has_packets = held.iter().any(|i| i.at.packets.is_some());
        let later: Vec<_> = self.timeline.intervals.iter().zip(holdings).filter(|(i, _)| i.to_us > opened).collect();
        let all: Vec<&Interval<'_>> = later.iter().map(|(interval, _)| *interval).collect();
        let is_short = self.path.carries_more_than(&all);
        if has_packets
            || !self.is_long(&all)
            || self.losses.ratio >= thresholds::STARVED_LOSS
            || self.is_probing_a_queue(&all) && !is_short
        {
            return None;
        }
        let (mut time, mut window, mut buffer) = (0.0, 0.0, 0.0);
        for (interval, holding) in later {
            time += interval.len();
            // What the kernel counts is the time itself; what samples show is the part of them. The kernel doesn't count while the
            // congestion window is used up, too, or while a burst waits: where the path carries more, samples count.
            let part = |holds: Holding, counted: Option<f64>| match counted {
                Some(counted) if !is_short => counted * interval.len(),
                _ if *holding == holds => interval.len(),
                _ => counted.unwrap_or(0.0) * interval.len(),
            };
            window += part(Holding::OfferedWindow, interval.at.rwnd_limited_us.map(|_| interval.rwnd_limited));
            buffer += part(Holding::SendBuffer, interval.at.sndbuf_limited_us.map(|_| interval.sndbuf_limited));
        }
        let most = window.max(buffer);
        match () {
            () if most <= 0.0 || most < thresholds::END_HOLDS * time => None,
            () if window >= buffer => Some(NetworkCause::Window),
            () => Some(NetworkCause::Held),
        }
    }

    /// The part of the time in which samples find the offered window or the send buffer used up.
    fn held_part(&self, holdings: &[Holding]) -> f64 {
        let is_held = |holding: &Holding| matches!(holding, Holding::OfferedWindow | Holding::SendBuffer);
        let held = self.timeline.intervals.iter().zip(holdings).filter(|(_, holding)| is_held(holding));
        let time: f64 = held.map(|(interval, _)| interval.len()).sum();
        stats::fraction(time, self.timeline.span_us)
    }

    /// The highest round trips show a queue, as those of a sender do that now and then tries for more than a full path carries.
    fn is_probing_a_queue(&self, held: &[&Interval<'_>]) -> bool {
        self.is_queueing_by(held, thresholds::PROBING_QUANTILE, thresholds::QUEUE_FACTOR_WINDOW)
    }

    /// So few segments for so many round trips without a loss that no congestion window can have been the reason: it grows by
    /// half a segment at least in each (RFC 5681, section 3.1, with an acknowledgement for every second segment).
    fn is_too_few_to_be_congestion(&self, held: &[&Interval<'_>]) -> bool {
        let most = held.iter().filter_map(|i| packets::peak(i)).fold(0.0, f64::max);
        let time: f64 = held.iter().map(|i| i.len()).sum();
        let round_trips = self.path.base_rtt.map_or(0.0, |base| time / base);
        most > self.timeline.mss
            && most <= thresholds::FEW_SEGMENTS * self.timeline.mss
            && round_trips >= thresholds::FEW_ROUND_TRIPS
    }

    /// The path had no gap, and the highest round trips are a little longer than the lowest.
    fn is_just_full(&self, held: &[&Interval<'_>]) -> bool {
        self.path.delivered_evenly(held)
            && self.is_queueing_by(held, thresholds::PROBING_QUANTILE, thresholds::QUEUE_FACTOR_LEAST)
    }

    /// BBR stays at the path's rate through losses that are not too many; those of its start don't count.
    fn model_based_cause(
        &self,
        held: &[&Interval<'_>],
        rate: f64,
        by_loss: NetworkCause,
        by_end: Option<NetworkCause>,
    ) -> NetworkCause {
        let late = Losses::ratio_in(&held[held.len() / 2..], &self.timeline);
        let level = self.is_steady(held) || rate >= thresholds::MODEL_LEVEL * self.path.plateau;
        let level = level && self.path.delivered_through(held);
        match (level && late < thresholds::MODEL_LOSS, self.losses.are_any()) {
            (true, _) => by_end.unwrap_or(NetworkCause::Saturated),
            (false, true) => by_loss,
            (false, false) => NetworkCause::Opening,
        }
    }

    /// Faster than what losses let a sender of the known loss-based kinds reach, where its kind is not known.
    fn is_beyond_loss(&self, held: &[&Interval<'_>], rate: f64) -> bool {
        self.transfer.sender.congestion_control.is_none()
            && Losses::ratio_in(&held[held.len() / 2..], &self.timeline) >= thresholds::BEYOND_LOSS_LEAST
            && rate >= thresholds::BEYOND_LOSS * self.rate_through_loss(held)
    }

    /// What losses that strike at random would let a sender of the known loss-based kinds reach, in bit/s: the larger of
    /// 1.22 / sqrt p segments in flight (Mathis 1997) and 1.054 x (RTT / p)^0.75 (RFC 9438, section 5.1).
    fn rate_through_loss(&self, held: &[&Interval<'_>]) -> f64 {
        let late = Losses::ratio_in(&held[held.len() / 2..], &self.timeline);
        let Some(rtt) = self.path.base_rtt else { return f64::INFINITY };
        let segments = (1.22 / late.sqrt()).max(1.054 * (rtt / 1e6 / late).powf(0.75));
        segments * self.timeline.mss * 8e6 / rtt
    }

    fn is_steady(&self, held: &[&Interval<'_>]) -> bool {
        let time: f64 = held.iter().map(|i| i.len()).sum();
        let level: f64 = held.iter().filter(|i| self.path.at_plateau(i)).map(|i| i.len()).sum();
        level >= thresholds::STEADY_SHARE * time
    }

    /// Long enough for a steady rate to mean something.
    fn is_long(&self, held: &[&Interval<'_>]) -> bool {
        let time: f64 = held.iter().map(|i| i.len()).sum();
        self.path.base_rtt.is_none_or(|base| time >= thresholds::PLATEAU_ROUND_TRIPS * base)
    }

    /// The congestion window is larger at the end than at the beginning, and what it added stands in no queue.
    fn is_growing(&self, held: &[&Interval<'_>]) -> bool {
        let window = |i: &Interval<'_>| i.cwnd().or_else(|| packets::peak(i));
        let third = held.len().div_ceil(3);
        let typical = |part: &[&Interval<'_>]| timeline::median(part, window);
        let grown = typical(&held[..third]).zip(typical(&held[held.len() - third..]));
        let has_packets = held.iter().any(|i| i.at.packets.is_some());
        // In slow start Linux lets a window grow while more than half of it is in flight, and later only while all of it is
        // (`tcp_is_cwnd_limited`): one that has grown beyond that holds nothing back.
        let most = held.iter().filter_map(|i| i.in_flight()).reduce(f64::max);
        let is_used = |window: f64| has_packets || most.is_none_or(|most| most >= thresholds::WINDOW_GROWS * window);
        // Nothing but a loss makes a congestion window smaller.
        let between = held.get(third..held.len() - third).unwrap_or_default();
        let thirds = typical(between).zip(grown).filter(|_| has_packets);
        let shrinks = thirds.is_some_and(|(middle, (first, last))| {
            middle >= thresholds::GROWING * last || first >= thresholds::GROWING * middle
        });
        let marked = self.transfer.sender_samples.last().and_then(|s| s.delivered_ce).is_some_and(|marks| marks > 0);
        // Where packets are all there is, a flight that is a little larger is no window that grows.
        let time: f64 = held.iter().map(|i| i.len()).sum();
        let round_trips = self.path.base_rtt.map_or(0.0, |base| time / base) * 2.0 / 3.0;
        let least = if has_packets { thresholds::GROWING_SEGMENTS * self.timeline.mss * round_trips } else { 0.0 };
        let is_larger =
            |(first, last): (f64, f64)| last >= thresholds::GROWING * first && last - first >= least && is_used(last);
        grown.is_some_and(is_larger)
            && !shrinks
            && !marked
            && !self.is_queueing_by(held, thresholds::QUEUE_QUANTILE, thresholds::QUEUE_FACTOR_SLIGHT)
    }

    /// What was in flight late was more than what was early.
    fn is_larger_late(&self, held: &[&Interval<'_>]) -> bool {
        let third = held.len().div_ceil(3);
        let typical = |part: &[&Interval<'_>]| timeline::median(part, packets::peak);
        let grown = typical(&held[..third]).zip(typical(&held[held.len() - third..]));
        grown.is_none_or(|(first, last)| last > (1.0 + thresholds::USUAL_SLACK) * first)
    }

    /// BBR of any version: it keeps to the path's rate whether a packet is lost now and then or not.
    pub(crate) fn is_model_based(&self) -> bool {
        self.transfer.sender.congestion_control.as_deref().is_some_and(|name| name.starts_with("bbr"))
    }

    /// The upper quartile of round trips shows a queue: a loss-based sender visits it before each loss.
    fn is_queueing(&self, held: &[&Interval<'_>]) -> bool {
        self.is_queueing_by(held, thresholds::QUEUE_QUANTILE, thresholds::QUEUE_FACTOR_CONGESTION)
    }

    /// Two segments' share of what is in flight is allowed for, as in [`Path::is_full`].
    fn is_queueing_by(&self, held: &[&Interval<'_>], quantile: f64, factor: f64) -> bool {
        let excess = held.iter().filter_map(|i| {
            let allowance = self.path.allowance(i.in_flight().unwrap_or(0.0));
            Some((i.rtt()? - allowance * self.path.base_rtt?, i.len()))
        });
        let Some((high, base)) = stats::quantile(excess, quantile).zip(self.path.base_rtt) else { return false };
        high - base >= ((factor - 1.0) * base).max(thresholds::LEAST_QUEUE_US)
    }

    /// A burst, then much loss at a steady lower rate, without a queue: what counters tell, where packets tell more
    /// (`policer`).
    fn is_policed(&self, held: &[&Interval<'_>], rate: f64) -> bool {
        let (early, late) = held.split_at(held.len() / 2);
        // What a retransmission frees is acknowledged at once. Where samples show that apart, only what comes before the first loss of all is
        // a burst.
        let is_fine = self.timeline.has_fine_samples();
        let is_burst = |i: &&&Interval<'_>| !is_fine || !self.losses.are_earlier && i.retransmits == 0.0;
        let burst = early.iter().take_while(is_burst).map(|i| i.rate).fold(0.0, f64::max);
        let late_rate = timeline::mean_rate(late);
        let level = late.iter().filter(|i| (i.rate - late_rate).abs() <= thresholds::AGREEMENT * late_rate).count();
        let is_level = level as f64 >= thresholds::POLICED_LEVEL * late.len() as f64;
        let is_much = |part: &[&Interval<'_>]| {
            Losses::ratio_in(part, &self.timeline) >= thresholds::POLICED_LOSS
                && part.iter().map(|i| i.retransmits).sum::<f64>() >= thresholds::POLICED_LEAST
        };
        // Losses at random would not have let this sender be so fast: they come together, and the rate ignores them.
        let beyond = if self.is_model_based() { 0.0 } else { stats::fraction(rate, self.rate_through_loss(held)) };
        let has_burst = burst >= thresholds::POLICED_BURST * late_rate && is_level;
        let is_by_burst = is_much(late) && (beyond >= thresholds::BEYOND_LOSS || has_burst) && !self.is_queueing(held);
        rate > 0.0 && (is_by_burst || self.is_losing_without_queue(held, (rate, beyond), is_much(held)))
    }

    /// A policer whose first burst isn't seen, because the story begins later. A full path shows a queue at the latest where its
    /// sender tries for more; and a sender that heeds losses is slower where chance takes its segments, one by one.
    fn is_losing_without_queue(&self, held: &[&Interval<'_>], (rate, beyond): (f64, f64), is_much: bool) -> bool {
        let (lowest, is_losing) = if self.is_model_based() {
            (1.0 - thresholds::AGREEMENT, is_much)
        } else {
            let in_bursts = thresholds::POLICED_BURST_SEGMENTS * self.losses.episodes as f64;
            let is_losing = self.losses.retransmits >= thresholds::POLICED_LEAST.max(in_bursts);
            (thresholds::TROUGH, is_losing && beyond >= thresholds::POLICED_BEYOND)
        };
        let is_near = |i: &&&Interval<'_>| (lowest * rate..=(1.0 + thresholds::AGREEMENT) * rate).contains(&i.rate);
        let near = held.iter().filter(is_near).count();
        is_losing
            && near as f64 >= thresholds::POLICED_LEVEL * held.len() as f64
            && held.iter().any(|i| i.rtt().is_some())
            && !self.is_probing_a_queue(held)
    }
}

/// Why the network holds the sender back, decided once for the transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NetworkCause {
    Saturated,
    Policed,
    Loss,
    Reordering,
    /// The sender was asked again and again, and each time the path ran dry until what was asked for came; `fill` where it carried
    /// data for most of the time in spite of it.
    Answers {
        fill: bool,
    },
    /// The window grows all the time.
    Opening,
    /// What is sent follows no acknowledgements, at a level rate without a queue.
    Paced,
    /// What is in flight doesn't grow, and nothing on the path or at the receiver keeps it from that.
    Held,
    /// A writer that its buffer wakes late refills the path with bursts, which queue behind themselves and leave it empty in between.
    Refilled,
    /// The receiver's window was used up again and again, and no queue formed in between.
    Window,
    /// The path would carry more, nothing is lost, and nothing else shows.
    Unknown,
}

/// The rate that the application lets the sender pace to, where it is all that it has, in bit/s.
pub(crate) fn bound_by_application(interval: &Interval<'_>) -> Option<f64> {
    let most = interval.at.max_pacing_rate_bps?.bps() as f64;
    (interval.rate >= thresholds::PATH_NOT_FULL * most).then_some(most)
}

fn is_busy(cpu: Option<f64>) -> bool {
    cpu.is_some_and(|busy| busy >= thresholds::CPU_BUSY)
}

/// A stall that ends in a timeout: at the end of what there is to send nothing but the timer finds the loss.
fn stall(interval: &Interval<'_>, black_hole: bool) -> Label {
    if black_hole {
        return Label::new(Limiter::SegmentSize, Some(Detail::MtuBlackHole));
    }
    if interval.not_sent() == Some(0.0) || packets::is_tail(interval) {
        return TAIL_LOSS;
    }
    Label::new(Limiter::CongestionWindow, Some(Detail::Rto))
}
