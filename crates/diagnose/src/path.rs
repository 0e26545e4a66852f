//! Whether the path is full at some moment: by its known rate, by the queue in front of its bottleneck, or by a rate
//! that stays where it is. What is *not* here: what a full path means for the verdict (`classify`).

use crate::{
    CongestionState, Transfer, packets, stats, thresholds,
    timeline::{self, Interval, Timeline},
};

/// What is known of the path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path {
    /// The smallest round trip, in microseconds.
    pub(crate) base_rtt: Option<f64>,
    /// Payload of a full segment.
    mss: f64,
    /// The rate that the transfer reaches and keeps, in bit/s.
    pub(crate) plateau: f64,
    /// What the path carries, in bit/s, measured separately from this transfer.
    pub(crate) known: Option<f64>,
    /// Whether the path may carry more than that.
    pub(crate) lower_bound: bool,
    /// What the other streams of the same test carried meanwhile, in bit/s.
    pub(crate) others: f64,
    /// Whether the receiver acknowledges at least every second full segment on arrival ([`packets::acks_in_pairs`]), so that longer round
    /// trips are the path's.
    pub(crate) acks_in_pairs: bool,
}

/// What an interval is compared for: how much queueing proves that the path is full.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Suspect {
    /// The congestion window: nothing else makes the round trip grow.
    Congestion,
    /// A window or a buffer; whether a queue stood through most of the time that it was used up.
    Window { standing: bool },
}

impl Path {
    pub(crate) fn new(transfer: &Transfer, timeline: &Timeline<'_>, others: f64) -> Self {
        let rates = timeline.intervals.iter().map(|i| (i.rate, i.len()));
        let by_time = stats::quantile(rates, thresholds::PLATEAU_QUANTILE).unwrap_or(0.0);
        // Cumulative acknowledgements jump when a hole is repaired; the kernel's estimate counts selective ones too and
        // is never far below what really arrived.
        let delivered = timeline.intervals.iter().filter_map(|i| i.at.delivery_rate_bps).map(|rate| rate.bps() as f64);
        let known = transfer.path_rate.filter(|path| path.rate_bps.bps() > 0);
        Self {
            base_rtt: timeline.base_rtt,
            mss: timeline.mss,
            plateau: delivered.reduce(f64::max).filter(|&most| most > 0.0).map_or(by_time, |most| by_time.min(most)),
            known: known.map(|path| path.rate_bps.bps() as f64),
            lower_bound: known.is_some_and(|path| path.lower_bound),
            others,
            acks_in_pairs: packets::acks_in_pairs(timeline),
        }
    }

    /// Whether the path was full in `interval`.
    pub(crate) fn is_full(&self, interval: &Interval<'_>, suspect: Suspect) -> bool {
        let may_be_full = !matches!(suspect, Suspect::Window { standing: false });
        if may_be_full && self.is_queued_deeply(interval) {
            return true;
        }
        if let Some(known) = self.known {
            let total = interval.rate + self.others;
            if total >= thresholds::PATH_FULL * known {
                // At a rate that is only a lower bound, the queue must speak too.
                return !self.lower_bound || self.is_queueing(interval, suspect);
            }
            if total < thresholds::PATH_NOT_FULL * known {
                return false;
            }
        }
        self.is_queueing(interval, suspect)
    }

    /// Whether so much is queued in `interval` that the link is busy, whatever its rate was before and after, or when it was measured: a
    /// radio link's changes.
    fn is_queued_deeply(&self, interval: &Interval<'_>) -> bool {
        interval.rtt().is_some_and(|rtt| self.is_deep(rtt, interval.in_flight_over(rtt)))
            && (self.acks_in_pairs || interval.dry.is_none_or(|dry| dry < thresholds::DEEP_DRY))
    }

    /// Whether the round trip shows a queue in `interval` while the rate is near its plateau.
    fn is_queueing(&self, interval: &Interval<'_>, suspect: Suspect) -> bool {
        let factor = match suspect {
            Suspect::Congestion => thresholds::QUEUE_FACTOR_CONGESTION,
            Suspect::Window { standing: true } => thresholds::QUEUE_FACTOR_WINDOW,
            Suspect::Window { standing: false } => return false,
        };
        let Some((rtt, base)) = interval.rtt().zip(self.base_rtt) else { return false };
        if is_dry(interval) {
            return false;
        }
        let in_flight = interval.in_flight_over(rtt);
        // A long queue at a low rate is a bottleneck that others share; a short one may be left over from a burst.
        let long = matches!(suspect, Suspect::Congestion) && self.is_inflated(rtt, in_flight, thresholds::QUEUE_FACTOR);
        self.is_inflated(rtt, in_flight, factor)
            && rtt - base >= thresholds::LEAST_QUEUE_US
            && (long || interval.rate >= thresholds::TROUGH * self.plateau)
    }

    /// Whether `rtt` exceeds `factor` times the smallest one, with `in_flight` bytes under way.
    ///
    /// Two segments' share of these are allowed for: a full-size segment and the wait of a delayed ACK for its second
    /// one lengthen the round trip without any queue.
    pub(crate) fn is_inflated(&self, rtt: f64, in_flight: f64, factor: f64) -> bool {
        self.base_rtt.is_some_and(|base| rtt >= (factor + self.allowance(in_flight)) * base)
    }

    /// Whether `rtt` shows a longer queue than a window that leaves the link idle can build, with `in_flight` bytes under way.
    fn is_deep(&self, rtt: f64, in_flight: f64) -> bool {
        self.is_inflated(rtt, in_flight, thresholds::DEEP_QUEUE)
            && self.base_rtt.is_some_and(|base| rtt - base >= thresholds::DEEP_QUEUE_US)
    }

    /// Whether the typical round trip of `held` does.
    pub(crate) fn has_deep_queue(&self, held: &[&Interval<'_>]) -> bool {
        let typical = timeline::median(held, |i| i.rtt()).zip(timeline::median(held, |i| i.in_flight()));
        typical.is_some_and(|(rtt, in_flight)| self.is_deep(rtt, in_flight))
    }

    /// The part of a round trip by which full-size segments lengthen it without any queue.
    pub(crate) fn allowance(&self, in_flight: f64) -> f64 {
        stats::fraction(2.0 * self.mss, in_flight).min(1.0)
    }

    /// Whether a queue stood through most of `held`, the time in which a window or buffer was used up.
    ///
    /// What is in flight must not run dry meanwhile, and it must be more than the rate and the empty path explain (Little's
    /// law): bursts with pauses between them queue behind themselves.
    pub(crate) fn has_standing_queue(&self, held: &[&Interval<'_>]) -> bool {
        let in_flight = |part| stats::quantile(held.iter().filter_map(|i| Some((i.in_flight()?, i.len()))), part);
        let rtt = timeline::median(held, |i| i.rtt());
        let Some(((low, typical), rtt)) = in_flight(0.1).zip(in_flight(0.5)).zip(rtt) else { return false };
        low >= thresholds::NEVER_DRY * typical
            && self.is_inflated(rtt, typical, thresholds::QUEUE_FACTOR_WINDOW)
            && self.holds_a_queue(held, typical, rtt)
    }

    /// Whether `in_flight` is more than the rate and the smallest round trip explain, by a good part of what would have to
    /// stand in the queue that `rtt` shows.
    fn holds_a_queue(&self, held: &[&Interval<'_>], in_flight: f64, rtt: f64) -> bool {
        let rate = timeline::median(held, |i| Some(i.rate));
        let Some((rate, base)) = rate.zip(self.base_rtt) else { return true };
        let product = rate * base / 8e6;
        let queued = rate * (rtt - base) / 8e6;
        // Packets tell by themselves whether the path ran dry meanwhile.
        let is_enough = queued >= thresholds::STANDING_SEGMENTS * self.mss || self.delivered_evenly(held);
        is_enough && in_flight - product >= thresholds::QUEUE_HELD * queued
    }

    /// Whether samples show what is in flight to fall below what the empty path holds at that rate, or at the one that is known to
    /// be the path's, early and late: by Little's law no queue stands then, nor is a link busy that more would fill, and what round trips show is a burst behind itself. What a loss takes out of the flight is no sign
    /// of that. Packets tell more ([`Interval::dry`]).
    pub(crate) fn runs_dry(&self, held: &[&Interval<'_>]) -> bool {
        let rate = timeline::mean_rate(held);
        let full = self.known.map_or(rate, |known| rate.max(known - self.others)) / 8e6;
        let is_open = |i: &&&Interval<'_>| {
            let is_calm =
                matches!(i.at.congestion_state, None | Some(CongestionState::Open | CongestionState::Disorder));
            is_calm && i.retransmits <= 0.0
        };
        let open: Vec<&Interval<'_>> = held.iter().filter(is_open).copied().collect();
        let (early, late) = open.split_at(open.len() / 2);
        let falls = |part: &[&Interval<'_>]| {
            let in_flight = part.iter().filter_map(|i| Some((i.in_flight()?, i.len())));
            let low = stats::quantile(in_flight, thresholds::LOW_FLIGHT);
            low.zip(self.base_rtt).is_some_and(|(low, base)| low < thresholds::RUNS_DRY * full * base)
        };
        let has_packets = held.iter().any(|i| i.at.packets.is_some());
        // Several connections together carried no more: what ran dry was the machine, for a moment.
        let is_all = self.known.is_some() && !self.carries_more_than(held);
        !has_packets && !is_all && falls(early) && falls(late)
    }

    /// Whether the path is known to carry more than it did through `held`.
    pub(crate) fn carries_more_than(&self, held: &[&Interval<'_>]) -> bool {
        let rate = timeline::mean_rate(held);
        self.known.is_some_and(|known| rate + self.others < thresholds::PATH_FULL * known)
    }

    /// Whether the path is known to carry clearly more than `rate`.
    pub(crate) fn has_room_above(&self, rate: f64) -> bool {
        self.known.is_some_and(|known| rate + self.others < thresholds::PATH_NOT_FULL * known)
    }

    /// Whether the path can have been full through `held`: it delivered all the time, as far as packets tell.
    pub(crate) fn delivered_through(&self, held: &[&Interval<'_>]) -> bool {
        timeline::median(held, |i| i.dry).is_none_or(|dry| dry < thresholds::DRY)
    }

    /// Whether packets show that it did, with hardly a gap.
    pub(crate) fn delivered_evenly(&self, held: &[&Interval<'_>]) -> bool {
        timeline::median(held, |i| i.dry).is_some_and(|dry| dry < thresholds::EVEN)
    }

    pub(crate) fn at_plateau(&self, interval: &Interval<'_>) -> bool {
        interval.rate >= thresholds::AT_PLATEAU * self.plateau
    }
}

/// Whether the path was empty for a good part of the time around an interval.
fn is_dry(interval: &Interval<'_>) -> bool {
    interval.dry.is_some_and(|dry| dry >= thresholds::DRY)
}
