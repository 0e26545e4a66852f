//! Evidence that contradicts itself: a rate above what the verdict's arithmetic allows, more in flight than was offered,
//! less attainable than carried, more timeouts than retransmissions, losses where all arrived, payload that got through
//! where none was acknowledged. It lowers the confidence or withdraws the verdict, and says so. What is *not* here: how a
//! verdict comes about (`classify`, `verdict`).

use fullpipe_units::{Bytes, Micros, Rate, window_limited_rate};

use crate::{
    Alternative, Confidence, Detail, Diagnosis, Limiter, classify::Case, sentences, thresholds, verdict::Ruling,
};

/// One contradiction.
#[derive(Clone, Debug, PartialEq)]
struct Contradiction {
    text: String,
    /// It leaves nothing of the verdict, not only less of its certainty.
    is_fatal: bool,
}

/// `diagnosis` as far as it may stand.
pub(crate) fn checked(case: &Case<'_>, ruling: &Ruling<'_>, mut diagnosis: Diagnosis) -> Diagnosis {
    // A path that carried more carries more.
    let carried = case.transfer.rate();
    diagnosis.attainable_bps = diagnosis.attainable_bps.map(|bps| carried.map_or(bps, |carried| bps.max(carried)));
    let found: Vec<Contradiction> =
        [window(case, ruling), flight(case, ruling), counts(case), losses(case, ruling), silence(case, ruling)]
            .into_iter()
            .flatten()
            .collect();
    let mut diagnosis = weighed(
        diagnosis,
        "a longer transfer: slow start and what came after it are weighed apart, and took more of the time together",
    );
    if found.is_empty() {
        return diagnosis;
    }
    let texts = || found.iter().map(|contradiction| format!("the evidence contradicts itself: {}", contradiction.text));
    if found.iter().any(|contradiction| contradiction.is_fatal) {
        let reason = texts().collect::<Vec<_>>().join("; ");
        let withdrawn = sentences::insufficient(case.transfer, diagnosis.shares, reason);
        let or = Alternative {
            limiter: diagnosis.limiter,
            decided_by: "a capture at the sender, or a live test, whose round trips can be trusted".to_owned(),
        };
        return Diagnosis { or: vec![or], ..withdrawn };
    }
    diagnosis.blind.extend(texts());
    Diagnosis { confidence: Confidence::Low, ..diagnosis }
}

/// With the limiters beside it that took more of the time than the verdict's, the largest first, and `decided_by` what.
pub(crate) fn weighed(mut diagnosis: Diagnosis, decided_by: &str) -> Diagnosis {
    let least = diagnosis.share + thresholds::SAME_SHARE;
    let mut larger: Vec<(Limiter, f64)> = diagnosis.shares.iter().map(|(&limiter, &share)| (limiter, share)).collect();
    larger.retain(|&(limiter, share)| limiter != diagnosis.limiter && share > least);
    if larger.is_empty() {
        return diagnosis;
    }
    larger.sort_by(|a, b| b.1.total_cmp(&a.1));
    let named = |(limiter, _)| Alternative { limiter, decided_by: decided_by.to_owned() };
    let mut or: Vec<Alternative> = larger.into_iter().map(named).collect();
    diagnosis.or.retain(|other| or.iter().all(|larger| larger.limiter != other.limiter));
    or.append(&mut diagnosis.or);
    Diagnosis { or, confidence: Confidence::Low, ..diagnosis }
}

/// A window that opens and closes bounds nothing by its median.
fn is_moving(case: &Case<'_>) -> bool {
    case.offer.closed || case.offer.is_slow_reader()
}

/// Faster than a window allows that was never exceeded.
fn window(case: &Case<'_>, ruling: &Ruling<'_>) -> Option<Contradiction> {
    if is_moving(case) {
        return None;
    }
    let held = match ruling.limiter {
        Limiter::ReceiveWindow => ruling.median(|i| i.offered())?,
        Limiter::SendBuffer => ruling.intervals.iter().filter_map(|i| i.in_flight()).reduce(f64::max)?,
        _ => return None,
    };
    let (held, rtt) = (Bytes::new(held.round() as u64), Micros::new(ruling.rtt?.round() as u64));
    let (bound, measured) = (window_limited_rate(held, rtt)?, Rate::from_bps(ruling.rate.round() as u64));
    let factor = measured.bps() as f64 / bound.bps().max(1) as f64;
    (factor > thresholds::ABOVE_BOUND).then(|| Contradiction {
        text: format!("{held} x 8 / {rtt} = {bound} at most, and {measured} were measured"),
        is_fatal: factor > thresholds::FAR_ABOVE_BOUND,
    })
}

/// More in flight than the receiver offered.
fn flight(case: &Case<'_>, ruling: &Ruling<'_>) -> Option<Contradiction> {
    if ruling.limiter != Limiter::ReceiveWindow || is_moving(case) {
        return None;
    }
    let (in_flight, offered) = (ruling.median(|i| i.in_flight())?, ruling.median(|i| i.offered())?);
    let slack = thresholds::SLACK_SEGMENTS * case.timeline.mss;
    let is_beyond = |factor: f64| in_flight > factor * offered + slack;
    is_beyond(thresholds::ABOVE_BOUND).then(|| Contradiction {
        text: format!("{in_flight:.0} B were in flight and {offered:.0} B offered (medians)"),
        is_fatal: is_beyond(thresholds::FAR_ABOVE_BOUND),
    })
}

/// Each timeout retransmits.
fn counts(case: &Case<'_>) -> Option<Contradiction> {
    let (timeouts, retransmits) = (case.losses.timeouts, case.losses.retransmits);
    (timeouts as f64 > retransmits && case.transfer.retransmits().is_some()).then(|| Contradiction {
        text: format!("{timeouts} timeouts and {retransmits:.0} retransmissions"),
        is_fatal: false,
    })
}

/// Losses hold a window down, and all that was sent again had arrived.
fn losses(case: &Case<'_>, ruling: &Ruling<'_>) -> Option<Contradiction> {
    let (retransmits, timeouts) = (case.losses.retransmits, case.losses.timeouts);
    let needless = case.losses.spurious * retransmits;
    let is_baseless = ruling.detail == Some(Detail::Loss) && timeouts == 0 && needless >= retransmits;
    is_baseless.then(|| Contradiction {
        text: format!(
            "{retransmits:.0} retransmissions, and {needless:.0} of what they carried had arrived: nothing was lost"
        ),
        is_fatal: false,
    })
}

/// A black hole lets nothing of its size through: what was carried was acknowledged, and no more.
fn silence(case: &Case<'_>, ruling: &Ruling<'_>) -> Option<Contradiction> {
    let acked = case.timeline.intervals.last()?.at.acked;
    let carried = case.transfer.bytes;
    (ruling.detail == Some(Detail::MtuBlackHole) && carried > acked)
        .then(|| Contradiction { text: format!("{carried} were carried and {acked} acknowledged"), is_fatal: false })
}
