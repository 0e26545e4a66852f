//! From labelled intervals to shares, a verdict and how sure it is. What is *not* here: its words (`sentences`).

use std::collections::BTreeMap;

use fullpipe_units::Rate;

use crate::{
    Alternative, Confidence, Detail, Diagnosis, Limiter, Opening, Shares, Source, Transfer,
    classify::{Case, Label},
    guard, opening, packets,
    pauses::{Pauses, Sign},
    receiver, sentences, stats, thresholds,
    timeline::{self, Interval},
    windows,
};

/// Says what limited `transfer`, for which share of its time, and what to do about it. Total: any content.
pub fn diagnose(transfer: &Transfer) -> Diagnosis {
    judge(transfer, 0.0)
}

/// A span of time with one limiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Since the transfer began.
    pub from_us: u64,
    /// Likewise.
    pub to_us: u64,
    /// What limited it.
    pub limiter: Limiter,
    /// How.
    pub detail: Option<Detail>,
}

/// What limited `transfer` when: the labels behind its diagnosis, neighbours that agree joined.
pub fn runs(transfer: &Transfer) -> Vec<Run> {
    let case = Case::new(transfer, 0.0);
    joined(&case, &named(&case, case.labels()))
}

/// [`diagnose`] and [`runs`] for the price of one of them.
pub fn diagnose_with_runs(transfer: &Transfer) -> (Diagnosis, Vec<Run>) {
    let case = Case::new(transfer, 0.0);
    let labels = case.labels();
    (rule(&case, &labels), joined(&case, &named(&case, labels)))
}

/// The labels with those of the verdict under the name that it has.
fn named(case: &Case<'_>, mut labels: Vec<Label>) -> Vec<Label> {
    if !is_small(case) {
        return labels;
    }
    let ruling = Ruling::new(case, &labels[..opening::judged(&case.timeline, &labels)]);
    if ruling.under != ruling.limiter {
        let name = Label { limiter: ruling.limiter, detail: ruling.detail };
        let of = (ruling.under, false);
        labels.iter_mut().filter(|label| group(**label) == of).for_each(|label| *label = name);
    }
    labels
}

/// Segments carry far less than the path would take.
fn is_small(case: &Case<'_>) -> bool {
    let most = |mtu: u32| thresholds::SMALL_MSS * (f64::from(mtu) - thresholds::HEADERS);
    case.transfer.path_mtu.is_some_and(|mtu| case.timeline.mss < most(mtu))
}

fn joined(case: &Case<'_>, labels: &[Label]) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for (label, interval) in labels.iter().zip(&case.timeline.intervals) {
        let Label { limiter, detail } = *label;
        push_joined(&mut runs, Run { from_us: interval.from_us, to_us: interval.to_us, limiter, detail });
    }
    runs
}

/// Adds a run, to the last one where that has the same limiter.
pub(crate) fn push_joined(runs: &mut Vec<Run>, run: Run) {
    match runs.last_mut() {
        Some(last) if (last.limiter, last.detail) == (run.limiter, run.detail) => last.to_us = run.to_us,
        _ => runs.push(run),
    }
}

/// `others` is the rate of the other streams of the same test, in bit/s.
pub(crate) fn judge(transfer: &Transfer, others: f64) -> Diagnosis {
    let case = Case::new(transfer, others);
    rule(&case, &case.labels())
}

fn rule(case: &Case<'_>, labels: &[Label]) -> Diagnosis {
    let transfer = case.transfer;
    if case.timeline.intervals.is_empty() && !transfer.receiver_samples.is_empty() {
        return receiver::judge(transfer);
    }
    let labels = &labels[..opening::judged(&case.timeline, labels)];
    let shares = shares(case, labels);
    if let Some((opening, share)) = slow_opening(case) {
        return sentences::handshake(case, opening, share, shares);
    }
    if let Some((opening, share)) = silent_opening(case) {
        return sentences::silence(case, opening, share, shares);
    }
    if let Some(reason) = missing(case) {
        return sentences::insufficient(transfer, shares, reason);
    }
    let ruling = Ruling::new(case, labels);
    if let Some(reason) = ambiguous(case, &ruling) {
        return sentences::insufficient(transfer, shares, reason);
    }
    let shares = renamed(shares, &ruling);
    let is_link_unseen = is_link_unseen(case, &ruling);
    let diagnosis = Diagnosis {
        limiter: ruling.limiter,
        detail: ruling.detail,
        share: ruling.share.min(shares.get(&ruling.limiter).copied().unwrap_or(0.0)),
        attainable_bps: attainable(case, &ruling),
        confidence: confidence(case, &ruling, is_link_unseen),
        evidence: sentences::evidence(case, &ruling),
        blind: sentences::blind(transfer),
        action: sentences::action(case, &ruling),
        or: alternatives(case, &ruling, is_link_unseen),
        shares,
    };
    guard::checked(case, &ruling, diagnosis)
}

/// What looks the same in packets: a writer that waits for its buffer and answers acknowledgements late, and one that has
/// no more to write; and a link whose rate changes.
fn alternatives(case: &Case<'_>, ruling: &Ruling<'_>, is_link_unseen: bool) -> Vec<Alternative> {
    let (sender, from_packets) = (sentences::sender(case.transfer), case.transfer.source == Source::Capture);
    let pauses = Pauses::from_intervals(ruling.intervals.iter().copied());
    let sign = pauses.sign(0.0);
    let waits = case.answers.is_some_and(|answers| answers.is_much());
    if from_packets && waits && matches!(ruling.detail, Some(Detail::Loss | Detail::SlowStart)) {
        let receiver = sentences::receiver(case.transfer);
        let decided_by = format!(
            "asking for the next piece on {receiver} before the last one is there (pipelining), or over several connections: \
             what becomes faster by it had waited for requests"
        );
        return vec![Alternative { limiter: Limiter::Application, decided_by }];
    }
    let mut others = Vec::new();
    if is_link_unseen {
        let decided_by = format!(
            "a capture on {sender}, or one of a connection with TCP timestamps: its round trips show whether there is a queue at \
             the bottleneck, whose rate may change"
        );
        others.push(Alternative { limiter: Limiter::Path, decided_by });
    }
    let limiter = match (ruling.limiter, ruling.detail) {
        _ if !from_packets => return others,
        (Limiter::SendBuffer, _) if sign == Some(Sign::Unclear) => Limiter::Application,
        (Limiter::Application, None)
            if sign == Some(Sign::Unclear)
                || is_masked(case, &pauses)
                || case.is_one_write
                || packets::meets_one_top(case.transfer, &case.timeline) =>
        {
            Limiter::SendBuffer
        }
        (Limiter::CongestionWindow, None) => Limiter::SendBuffer,
        _ => return others,
    };
    let decided_by =
        format!("`ss -tim` on {sender} while it runs: `sndbuf_limited` counts the time that a full buffer held it");
    others.push(Alternative { limiter, decided_by });
    others
}

/// Whether an application limits the transfer by all that shows, and a radio link might: a capture on the receiver without timestamps shows
/// no round trips, and so no queue. A radio link delivers bursts at a rate that changes, as does an application that writes now and then;
/// only one that keeps to a rate, a size or a period shows itself.
fn is_link_unseen(case: &Case<'_>, ruling: &Ruling<'_>) -> bool {
    let rate = |part| stats::quantile(ruling.intervals.iter().map(|i| (i.rate, i.len())), part);
    let is_uneven = rate(0.1).zip(rate(0.9)).is_some_and(|(low, high)| low <= thresholds::UNEVEN * high);
    (ruling.limiter, ruling.detail) == (Limiter::Application, None)
        && case.transfer.source == Source::Capture
        && case.timeline.intervals.iter().all(|i| i.rtt().is_none())
        && case.transfer.write.is_none()
        && !case.is_credited
        && !case.is_timed
        && !packets::is_mostly_asked(&case.timeline)
        && is_uneven
}

/// Writes of no one size, a good part of which left soon after acknowledgements: a slow machine's writer that is woken late writes so,
/// too.
fn is_masked(case: &Case<'_>, pauses: &Pauses) -> bool {
    case.transfer.write.is_none()
        && !case.is_credited
        && !packets::is_even(&case.timeline)
        && !packets::is_mostly_asked(&case.timeline)
        && pauses.are_many()
        && pauses.unprompted() < thresholds::OWN_MASTER
}

/// The verdict with the figures of the time for which it held.
#[derive(Clone, Debug)]
pub(crate) struct Ruling<'a> {
    pub(crate) limiter: Limiter,
    pub(crate) detail: Option<Detail>,
    /// What the intervals are labelled with, where the verdict names the reason behind it.
    under: Limiter,
    /// The intervals that it holds for.
    pub(crate) intervals: Vec<&'a Interval<'a>>,
    /// The part of the transfer's time that they take.
    pub(crate) share: f64,
    /// The payload rate in them, in bit/s.
    pub(crate) rate: f64,
    /// The median round trip in them, in microseconds.
    pub(crate) rtt: Option<f64>,
}

impl<'a> Ruling<'a> {
    /// The limiter with the largest share; slow start stands apart from a window that losses hold down.
    fn new(case: &'a Case<'_>, labels: &[Label]) -> Self {
        let mut times: BTreeMap<(Limiter, bool), f64> = BTreeMap::new();
        for (label, interval) in labels.iter().zip(&case.timeline.intervals) {
            *times.entry(group(*label)).or_default() += interval.len();
        }
        let largest = times.iter().max_by(|a, b| a.1.total_cmp(b.1)).map(|(&group, _)| group);
        let (limiter, starting) = largest.unwrap_or((Limiter::InsufficientEvidence, false));
        let held =
            labels.iter().zip(&case.timeline.intervals).filter(|(label, _)| group(**label) == (limiter, starting));
        let mut details: BTreeMap<Option<Detail>, f64> = BTreeMap::new();
        for (label, interval) in held.clone() {
            *details.entry(label.detail).or_default() += interval.len();
        }
        let intervals: Vec<&Interval<'_>> = held.map(|(_, interval)| interval).collect();
        let time: f64 = intervals.iter().map(|i| i.len()).sum();
        // A congestion window that nothing else explains is explained by what explains a good part of its time.
        let is_known =
            |(detail, part): &(&Option<Detail>, &f64)| detail.is_some() && **part >= thresholds::KNOWN_PART * time;
        if limiter == Limiter::CongestionWindow && details.iter().any(|known| is_known(&known)) {
            details.remove(&None);
        }
        let ruling = Self {
            limiter,
            under: limiter,
            detail: details.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).and_then(|(detail, _)| detail),
            share: stats::fraction(time, span_us(case, labels)).min(1.0),
            rate: timeline::mean_rate(&intervals),
            rtt: timeline::median(&intervals, |i| i.rtt())
                .or_else(|| case.path.base_rtt.filter(|_| case.transfer.source == Source::Capture)),
            intervals,
        };
        ruling.or_small_segments(case)
    }

    /// Where loss or a processor limits the segments per second, small segments are the reason that can be changed.
    fn or_small_segments(self, case: &Case<'_>) -> Self {
        let per_segment = matches!((self.limiter, self.detail), (Limiter::Cpu, _) | (_, Some(Detail::Loss)));
        if per_segment && is_small(case) {
            Self { limiter: Limiter::SegmentSize, detail: Some(Detail::SmallMss), ..self }
        } else {
            self
        }
    }

    /// The median of a figure over the time of the verdict.
    pub(crate) fn median(&self, figure: impl Fn(&Interval<'_>) -> Option<f64>) -> Option<f64> {
        timeline::median(&self.intervals, figure)
    }
}

fn group(label: Label) -> (Limiter, bool) {
    (label.limiter, label.detail == Some(Detail::SlowStart))
}

/// The time that these labels are of, which begin where the transfer does.
fn span_us(case: &Case<'_>, labels: &[Label]) -> f64 {
    let rest = case.timeline.intervals.iter().skip(labels.len()).map(|interval| interval.len());
    case.timeline.span_us - rest.sum::<f64>()
}

fn shares(case: &Case<'_>, labels: &[Label]) -> Shares {
    let (mut shares, span_us) = (Shares::new(), span_us(case, labels));
    // Sums of whole microseconds are exact, and those of parts are not: all of the time is 1.
    for (label, interval) in labels.iter().zip(&case.timeline.intervals) {
        *shares.entry(label.limiter).or_insert(0.0) += interval.len();
    }
    for share in shares.values_mut() {
        *share = stats::fraction(*share, span_us).clamp(0.0, 1.0);
    }
    shares
}

/// The shares with the ruling's under the name that it has.
fn renamed(mut shares: Shares, ruling: &Ruling<'_>) -> Shares {
    if ruling.under != ruling.limiter {
        let moved = shares.get(&ruling.under).map_or(0.0, |share| share.min(ruling.share));
        shares.entry(ruling.under).and_modify(|share| *share -= moved);
        *shares.entry(ruling.limiter).or_insert(0.0) += moved;
    }
    shares
}

/// The setting-up of the connection, where it had to be repeated and took longer than all that followed; with its part.
fn slow_opening<'a>(case: &Case<'a>) -> Option<(&'a Opening, f64)> {
    let opening = case.transfer.opening.as_ref()?;
    let took = opening.took_us.get() as f64;
    let share = stats::fraction(took, took + case.timeline.span_us);
    (opening.syn_retransmissions + opening.syn_ack_retransmissions > 0 && share >= thresholds::CLEAR_SHARE)
        .then_some((opening, share))
}

/// Nothing arrived after the handshake for longer than all that followed took, because segments were too large; with its
/// part of the time.
fn silent_opening<'a>(case: &Case<'a>) -> Option<(&'a Opening, f64)> {
    let opening = case.transfer.opening.as_ref().filter(|_| case.transfer.lost_size.is_some())?;
    let silent = opening.silent_us.get() as f64;
    let share = stats::fraction(silent, silent + case.timeline.span_us);
    (share >= thresholds::CLEAR_SHARE).then_some((opening, share))
}

/// Why there is too little to judge, if there is.
fn missing(case: &Case<'_>) -> Option<String> {
    let timeline = &case.timeline;
    if timeline.intervals.len() < thresholds::LEAST_INTERVALS {
        return Some(format!("only {} intervals between samples were seen", timeline.intervals.len()));
    }
    let is_opening = packets::is_opening(case.transfer, timeline) || opening::is_all(timeline);
    let too_few = |base: &f64| timeline.span_us < thresholds::LEAST_ROUND_TRIPS * base && !is_opening;
    if let Some(base) = timeline.base_rtt.filter(too_few) {
        let trips = timeline.span_us / base;
        return Some(format!("the transfer lasted only {trips:.1} round trips"));
    }
    // A connection that stands still sends little: that is its story, not a lack of one.
    let waits = packets::ack_delay_count(timeline) + windows::held_back(timeline).len() as u64;
    let waited = waits >= thresholds::LEAST_ACK_DELAYS;
    let asked = packets::asked(timeline) >= thresholds::LEAST_EXCHANGES && packets::is_mostly_asked(timeline);
    let stalled = case.losses.timeouts > 0 || case.offer.closed_at_end || waited || asked;
    let segments = timeline.acked() / timeline.mss;
    (segments < thresholds::LEAST_SEGMENTS && !stalled && !opening::is_all(timeline))
        .then(|| format!("only {segments:.0} segments were acknowledged"))
}

/// Why the ruling could as well be another, if it could.
fn ambiguous(case: &Case<'_>, ruling: &Ruling<'_>) -> Option<String> {
    let windows_unseen = case.transfer.sender_samples.iter().all(|sample| sample.offered_window.is_none());
    let most = ruling.intervals.iter().filter_map(|i| packets::peak(i)).reduce(f64::max)?;
    // A sender that waits for a window sends as soon as there is room.
    let is_told = match Pauses::from_intervals(ruling.intervals.iter().copied()).sign(0.0) {
        // A buffer that is full is never empty.
        Some(Sign::Buffer) => ruling.limiter == Limiter::SendBuffer && !packets::is_often_empty(&ruling.intervals),
        Some(Sign::Application) => ruling.limiter == Limiter::Application,
        _ => false,
    };
    let is_either = match (ruling.limiter, ruling.detail) {
        (Limiter::SendBuffer, _) | (Limiter::CongestionWindow, None) => true,
        (Limiter::Application, None) => !packets::is_mostly_asked(&case.timeline),
        _ => false,
    };
    // What needs so little of its window or its buffer is held by neither.
    let is_half_empty =
        ruling.limiter == Limiter::Application && packets::is_half_empty(&ruling.intervals, case.path.base_rtt);
    (is_either && windows_unseen && !is_told && !is_half_empty).then(|| {
        format!(
            "never more than {most:.0} B were in flight: that is the receiver's window, the sender's buffer or what its \
             application wrote, and only the SYN packets, which were not seen, tell what the window is"
        )
    })
}

fn attainable(case: &Case<'_>, ruling: &Ruling<'_>) -> Option<Rate> {
    let known = case.path.known.map(|known| (known - case.path.others).max(0.0));
    let bps = match ruling.limiter {
        // The median, because the rates of single round trips contain the bursts of acknowledgements. Where most of the time
        // is such a burst, as after each pause of a virtual machine, a longer stretch carried less: a quarter of the time,
        // so that most stretches lie within it.
        Limiter::Path => {
            let time: f64 = ruling.intervals.iter().map(|i| i.len()).sum();
            let longer = case.timeline.median_over(&ruling.intervals, time / 4.0);
            ruling.median(|i| Some(i.rate)).map(|median| longer.map_or(median, |longer| median.min(longer)))
        }
        // A path known to carry less than what was seen is not known.
        _ => known.filter(|&known| known >= ruling.rate),
    };
    bps.map(|bps| Rate::from_bps(bps.round() as u64))
}

fn confidence(case: &Case<'_>, ruling: &Ruling<'_>, is_link_unseen: bool) -> Confidence {
    let one_end = case.transfer.source == Source::LiveOneEnd || case.transfer.receiver_samples.is_empty();
    let clear = ruling.share >= thresholds::CLEAR_SHARE;
    let most = if !clear || is_link_unseen {
        Confidence::Low
    } else if one_end {
        Confidence::Medium
    } else {
        Confidence::High
    };
    let reached = if agrees(case, ruling) { Confidence::High } else { Confidence::Medium };
    most.min(reached)
}

/// Whether a second line of evidence, with arithmetic, agrees with the measured rate.
fn agrees(case: &Case<'_>, ruling: &Ruling<'_>) -> bool {
    let near = |figure: f64| (figure - ruling.rate).abs() <= thresholds::AGREEMENT * ruling.rate.max(1.0);
    let per_round_trip =
        |bytes: Option<f64>| bytes.zip(ruling.rtt).is_some_and(|(bytes, rtt)| near(stats::fraction(bytes * 8e6, rtt)));
    match ruling.limiter {
        // It is small besides: which of the two reasons counts depends on what is needed.
        Limiter::ReceiveWindow if ruling.detail == Some(Detail::ScalingAbsent) && case.offer.is_small() => false,
        Limiter::ReceiveWindow => per_round_trip(ruling.median(|i| i.offered())),
        Limiter::SendBuffer => {
            let full = ruling.median(|i| timeline::send_memory(i).map(|(queued, buffer)| queued / buffer));
            per_round_trip(ruling.median(|i| i.in_flight())) && full.is_some_and(|f| f >= thresholds::SEND_BUFFER_FULL)
        }
        Limiter::Path => match case.path.known {
            Some(known) => near((known - case.path.others).max(0.0)),
            None => {
                let inflated = ruling.rtt.zip(case.path.base_rtt);
                let inflated = inflated.is_some_and(|(rtt, base)| rtt >= thresholds::QUEUE_FACTOR_CONGESTION * base);
                inflated && per_round_trip(ruling.median(|i| i.in_flight()))
            }
        },
        // Where something was lost, a pause may be a timer's. On the wire a writer that waits for a small buffer to drain, or for a
        // reader that pauses, is silent, too.
        Limiter::Application => {
            let least = if case.transfer.source == Source::Capture { thresholds::IDLE_ALONE } else { 0.0 };
            ruling.detail == Some(Detail::Idle) && case.losses.retransmits <= 0.0 && ruling.share >= least
        }
        Limiter::CongestionWindow if ruling.detail == Some(Detail::Loss) => case.path.has_room_above(ruling.rate),
        _ => false,
    }
}
