//! Several parallel streams of one test as one diagnosis.
//!
//! Each stream is judged knowing what the others carried, because streams that are each limited by a window may fill
//! the path together. What is *not* here: whether they share a bottleneck at all; that is assumed.

use std::collections::BTreeMap;

use fullpipe_units::Rate;

use crate::{
    CommonEnd, Confidence, Detail, Diagnosis, Evidence, Limiter, Passage, Shares, Transfer, guard, sentences,
    shared_bottleneck, thresholds, verdict,
};

/// Judges parallel streams of one test together; shares are weighted by bytes. Total: any number of streams.
pub fn diagnose_streams(transfers: &[Transfer]) -> Diagnosis {
    let rates: Vec<f64> = transfers.iter().map(|t| t.rate().map_or(0.0, |rate| rate.bps() as f64)).collect();
    let total: f64 = rates.iter().sum();
    let mut single: Vec<Diagnosis> =
        transfers.iter().zip(&rates).map(|(transfer, rate)| verdict::judge(transfer, total - rate)).collect();
    look_together(transfers, &mut single);
    match single.len() {
        0 => sentences::insufficient(&Transfer::default(), Shares::new(), "there was no stream".into()),
        1 => single.into_iter().next().unwrap_or_else(|| unreachable!("the length is one")),
        _ => merge(transfers, single, total),
    }
}

/// What all of them are held by together, in the place of what each of them seems to be.
fn look_together(transfers: &[Transfer], single: &mut [Diagnosis]) {
    // One test begins them all at once.
    let passages: Vec<Passage> = transfers.iter().filter_map(|transfer| Passage::new(transfer, 0)).collect();
    if passages.len() < transfers.len() {
        return;
    }
    if let Some(bottleneck) = shared_bottleneck(&passages.iter().zip(&*single).collect::<Vec<_>>()) {
        let receiver = transfers.first().map(sentences::receiver).unwrap_or_default();
        for (passage, diagnosis) in passages.iter().zip(single) {
            bottleneck.explain(passage, diagnosis, &mut Vec::new(), CommonEnd::Receiver, &receiver);
        }
    }
}

fn merge(transfers: &[Transfer], single: Vec<Diagnosis>, total: f64) -> Diagnosis {
    // A stream without bytes still has a say, if the smallest.
    let weights: Vec<f64> = transfers.iter().map(|t| t.bytes.get() as f64 + 1.0).collect();
    let whole: f64 = weights.iter().sum();
    let mut shares = Shares::new();
    let mut verdicts: BTreeMap<(Limiter, Option<Detail>), f64> = BTreeMap::new();
    for (diagnosis, weight) in single.iter().zip(&weights) {
        let part = weight / whole;
        for (&limiter, share) in &diagnosis.shares {
            *shares.entry(limiter).or_insert(0.0) += share * part;
        }
        *verdicts.entry((diagnosis.limiter, diagnosis.detail)).or_default() += part;
    }
    let mut limiters: BTreeMap<Limiter, f64> = BTreeMap::new();
    for (&(limiter, _), part) in &verdicts {
        *limiters.entry(limiter).or_default() += part;
    }
    let largest = |a: &(&Limiter, &f64), b: &(&Limiter, &f64)| a.1.total_cmp(b.1);
    let limiter = limiters.iter().max_by(largest).map_or(Limiter::InsufficientEvidence, |(&limiter, _)| limiter);
    let agreeing = limiters.get(&limiter).copied().unwrap_or(0.0);
    // The heaviest stream with that verdict speaks for all.
    let speaker = single
        .iter()
        .zip(&weights)
        .filter(|(diagnosis, _)| diagnosis.limiter == limiter)
        .max_by(|a, b| a.1.total_cmp(b.1))
        .map(|(diagnosis, _)| diagnosis.clone());
    // Of a stream with the same verdict, what that says; a window that opens is only a part of the congestion window's time.
    let own = |diagnosis: &Diagnosis| {
        let all = diagnosis.shares.get(&limiter).copied().unwrap_or(0.0);
        if diagnosis.limiter == limiter { diagnosis.share.min(all) } else { all }
    };
    let share: f64 = single.iter().zip(&weights).map(|(diagnosis, weight)| own(diagnosis) * weight / whole).sum();
    let Some(speaker) = speaker else {
        return sentences::insufficient(&Transfer::default(), shares, "no stream could be judged".into());
    };
    let count = transfers.len();
    let alike = single.iter().filter(|diagnosis| diagnosis.limiter == limiter).count();
    let text = format!(
        "{count} streams carried {} together; {alike} of them have this verdict",
        Rate::from_bps(total.round() as u64)
    );
    let mut evidence = vec![Evidence { text, from_us: None, to_us: None, packets: None }];
    evidence.extend(speaker.evidence);
    let diagnosis = Diagnosis {
        share: share.clamp(0.0, 1.0),
        attainable_bps: attainable(transfers, limiter, total),
        // Streams that disagree make no sure verdict.
        confidence: if agreeing < thresholds::CLEAR_SHARE { Confidence::Low } else { speaker.confidence },
        evidence,
        shares,
        ..speaker
    };
    guard::weighed(
        diagnosis,
        "one stream at a time: each has a verdict of its own, and over all of them this took more of the time",
    )
}

/// What all streams may carry together.
fn attainable(transfers: &[Transfer], limiter: Limiter, total: f64) -> Option<Rate> {
    let known = transfers.iter().filter_map(|t| t.path_rate).map(|path| path.rate_bps).max();
    let measured = Rate::from_bps(total.round() as u64);
    match limiter {
        Limiter::Path => Some(known.unwrap_or(measured).max(measured)),
        _ => known.filter(|&known| known >= measured),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_stream_is_no_evidence() {
        let diagnosis = diagnose_streams(&[]);
        assert_eq!(diagnosis.limiter, Limiter::InsufficientEvidence);
        assert!(!diagnosis.action.is_empty());
    }
}
