//! A whole recording as one interval: what each connection did on average, and what held it for most of its time.

use std::{
    collections::{BTreeMap, HashMap},
    io::BufRead,
    net::SocketAddr,
};

use fullpipe_diagnose::{Diagnosis, Limiter};
use fullpipe_units::Rate;

use super::{RecordError, read};
use crate::{
    filter::Filter,
    frame::{Frame, Listener, Row, Sort},
    notes::Note,
};

/// A recording, summed up.
#[derive(Clone, Debug, PartialEq)]
pub struct Whole {
    /// All of it as one interval, each connection with its averages.
    pub frame: Frame,
    /// How many intervals it was.
    pub intervals: usize,
    /// When the first one ended; [`Frame::time`] is the end of the last.
    pub from: Option<String>,
}

/// One connection through all its intervals.
struct Summed {
    last: Row,
    /// For how long it was among those recorded, in seconds.
    time_s: f64,
    /// Payload sent and received, in bits, where the system counts it.
    bits: [Option<f64>; 2],
    retransmissions: Option<u64>,
    /// Of each limiter, the judgement in which it had the largest share.
    judgements: BTreeMap<Limiter, Diagnosis>,
    notes: Vec<Note>,
}

/// Reads all of it.
///
/// # Errors
/// What is wrong, and where.
pub fn whole(file: impl BufRead, filter: &Filter) -> Result<Whole, RecordError> {
    let mut sums: Vec<Summed> = Vec::new();
    // The newest connection with these ends.
    let mut newest: HashMap<(SocketAddr, SocketAddr), usize> = HashMap::new();
    let mut listeners: BTreeMap<SocketAddr, Listener> = BTreeMap::new();
    let mut whole = Whole { frame: Frame::default(), intervals: 0, from: None };
    read(file, |frame| {
        whole.intervals += 1;
        whole.from = whole.from.take().or_else(|| frame.time.clone());
        whole.frame.interval_s += frame.interval_s;
        (whole.frame.time, whole.frame.at_s) = (frame.time, frame.at_s);
        whole.frame.missing.extend(frame.missing);
        whole.frame.remarks.extend(frame.remarks);
        listeners.extend(frame.listeners.into_iter().map(|listener| (listener.local, listener)));
        for row in frame.rows.into_iter().filter(|row| filter.passes(&row.id(), row.owner.as_ref())) {
            let at = newest.get(&(row.local, row.peer)).copied();
            // The same ends again, but younger than before, are another connection.
            match at.filter(|&at| row.seen_s >= sums[at].last.seen_s) {
                Some(at) => sums[at].add(row, frame.interval_s),
                None => {
                    newest.insert((row.local, row.peer), sums.len());
                    sums.push(Summed::new(row, frame.interval_s));
                }
            }
        }
        true
    })?;
    whole.frame.missing.sort();
    whole.frame.missing.dedup();
    whole.frame.remarks.sort();
    whole.frame.remarks.dedup();
    whole.frame.listeners = listeners.into_values().collect();
    whole.frame.rows = sums.into_iter().map(Summed::row).collect();
    whole.frame.connections = whole.frame.rows.len();
    whole.frame.matching = whole.frame.rows.len();
    whole.frame.active = whole.frame.rows.iter().filter(|row| row.rate() > Some(Rate::ZERO)).count();
    Sort::Worst.apply(&mut whole.frame.rows);
    Ok(whole)
}

impl Summed {
    fn new(row: Row, interval_s: f64) -> Self {
        let mut sums = Self {
            last: row.clone(),
            time_s: 0.0,
            bits: [None; 2],
            retransmissions: None,
            judgements: BTreeMap::new(),
            notes: Vec::new(),
        };
        sums.add(row, interval_s);
        sums
    }

    fn add(&mut self, mut row: Row, interval_s: f64) {
        self.time_s += interval_s;
        for (bits, rate) in self.bits.iter_mut().zip([row.sent_bps, row.received_bps]) {
            if let Some(rate) = rate {
                *bits.get_or_insert_default() += rate.bps() as f64 * interval_s;
            }
        }
        if let Some(count) = row.retransmissions {
            *self.retransmissions.get_or_insert_default() += count;
        }
        if let Some(diagnosis) = row.diagnosis.take() {
            let best = self.judgements.get(&diagnosis.limiter);
            if best.is_none_or(|best| diagnosis.share >= best.share) {
                self.judgements.insert(diagnosis.limiter, diagnosis);
            }
        }
        for note in row.notes.drain(..) {
            self.notes.retain(|known| known.subject != note.subject);
            self.notes.push(note);
        }
        self.last = row;
    }

    fn row(mut self) -> Row {
        let mean = |bits: f64| Rate::from_bps(if self.time_s > 0.0 { (bits / self.time_s) as u64 } else { 0 });
        let [sent, received] = self.bits.map(|bits| bits.map(mean));
        let all: f64 = self.last.seconds.values().sum();
        let most = self.last.seconds.iter().max_by(|a, b| a.1.total_cmp(b.1)).map(|(limiter, _)| *limiter);
        let limiter = most.unwrap_or(Limiter::InsufficientEvidence);
        let diagnosis = self.judgements.remove(&limiter).map(|mut diagnosis| {
            if all > 0.0 {
                diagnosis.shares = self.last.seconds.iter().map(|(limiter, time)| (*limiter, time / all)).collect();
                diagnosis.share = diagnosis.shares.get(&limiter).copied().unwrap_or(0.0);
            }
            diagnosis
        });
        Row {
            sent_bps: sent,
            received_bps: received,
            retransmissions: self.retransmissions,
            now: most,
            diagnosis,
            notes: self.notes,
            ..self.last
        }
    }
}

#[cfg(test)]
mod tests;
