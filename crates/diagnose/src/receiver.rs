//! The judgement where only the receiver was seen (a foreign sender): little can be determined, and that is said.
//!
//! The receiver knows the window that it offers and how fast data comes in. It doesn't know what is in flight, nor the
//! congestion window or send buffer of the other end.

use fullpipe_units::{Bytes, Micros, Rate, window_limited_rate};

use crate::{
    Confidence, Detail, Diagnosis, Evidence, Limiter, Shares, Transfer, sentences, thresholds, windows::Scaling,
};

/// Judges by the window that the receiver offers, the idle round trip and the rate.
pub(crate) fn judge(transfer: &Transfer) -> Diagnosis {
    let insufficient = |reason: &str| sentences::insufficient(transfer, Shares::new(), reason.into());
    let samples = &transfer.receiver_samples;
    if samples.len() <= thresholds::LEAST_INTERVALS {
        return insufficient("only a few samples of the receiver were taken");
    }
    let Some(rate) = transfer.rate().filter(|rate| rate.bps() > 0) else {
        return insufficient("no data was received");
    };
    let Some(window) = samples.iter().filter_map(|s| s.offered_window).max() else {
        return insufficient("the offered window was not seen");
    };
    let behind = samples.iter().filter(|s| {
        s.unread.zip(s.offered_window).is_some_and(|(unread, offered)| {
            unread.get() as f64 >= thresholds::UNREAD * (unread.get() as f64 + offered.get() as f64) && unread.get() > 0
        })
    });
    let behind = behind.count() as f64 / samples.len() as f64;
    if behind >= thresholds::CLEAR_SHARE {
        return slow_reader(transfer, behind);
    }
    let Some(rtt) = transfer.idle_rtt.map(|rtt| rtt.min_us).filter(|rtt| rtt.get() > 0) else {
        return insufficient("without a round-trip time the window can't be compared with the rate");
    };
    match window_limited_rate(window, rtt) {
        Some(bound) if agree(bound, rate) && !reaches_path(transfer, rate) => by_window(transfer, window, rtt, rate),
        _ => insufficient(
            "the receiver's window did not bound the rate, and what did (path, congestion window, send buffer or \
             application) shows only at the sender",
        ),
    }
}

fn agree(bound: Rate, rate: Rate) -> bool {
    (bound.bps() as f64 - rate.bps() as f64).abs() <= thresholds::AGREEMENT * rate.bps() as f64
}

fn reaches_path(transfer: &Transfer, rate: Rate) -> bool {
    let known = transfer.path_rate.filter(|path| path.rate_bps.bps() > 0 && !path.lower_bound);
    known.is_some_and(|path| rate.bps() as f64 >= thresholds::PATH_FULL * path.rate_bps.bps() as f64)
}

fn by_window(transfer: &Transfer, window: Bytes, rtt: Micros, rate: Rate) -> Diagnosis {
    let scaling = Scaling::from_transfer(transfer);
    let bound = window_limited_rate(window, rtt).unwrap_or(rate);
    let share = (rate.bps() as f64 / bound.bps().max(1) as f64).min(1.0);
    let pinned = transfer.receiver.receive_buffer.is_some_and(|buffer| buffer.pinned);
    let detail = match scaling {
        Scaling::ReceiverOmits | Scaling::SenderOmits => Detail::ScalingAbsent,
        Scaling::Shift(0) => Detail::ScaleZero,
        _ if pinned => Detail::PinnedByApplication,
        _ => Detail::WindowCeiling,
    };
    let text = format!(
        "the receiver offered at most {window} ({}) and the idle round trip took {rtt}: {window} x 8 / {rtt} = \
         {bound}; measured {rate}",
        scaling.words()
    );
    Diagnosis {
        limiter: Limiter::ReceiveWindow,
        detail: Some(detail),
        share,
        attainable_bps: transfer.path_rate.map(|path| path.rate_bps).filter(|&known| known > rate),
        or: Vec::new(),
        confidence: Confidence::Low,
        shares: Shares::from([(Limiter::ReceiveWindow, share)]),
        evidence: vec![Evidence { text, from_us: None, to_us: None, packets: None }],
        blind: sentences::blind(transfer),
        action: format!("raise the receive window of {}, then measure again", sentences::receiver(transfer)),
    }
}

fn slow_reader(transfer: &Transfer, share: f64) -> Diagnosis {
    let text = format!(
        "in {:.0} % of the receiver's samples at least half of its buffer held data that the application had not read",
        share * 100.0
    );
    Diagnosis {
        limiter: Limiter::ReceiveWindow,
        detail: Some(Detail::SlowReader),
        share,
        attainable_bps: None,
        or: Vec::new(),
        confidence: Confidence::Medium,
        shares: Shares::from([(Limiter::ReceiveWindow, share)]),
        evidence: vec![Evidence { text, from_us: None, to_us: None, packets: None }],
        blind: sentences::blind(transfer),
        action: format!("let the application on {} read faster: no window helps it", sentences::receiver(transfer)),
    }
}
