//! From a measurement to judged directions, and what the path carries besides.

use fullpipe_diagnose::{End, Limiter, PathRate, Transfer, diagnose_streams, held_share};
use fullpipe_measure::{DirectionMeasurement, Measurement};
use fullpipe_path::{Headers, PathSpec};
use fullpipe_units::{Bytes, Micros, Rate};

use crate::outcome::Direction;

/// The names of both ends, as directions show them.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    pub(crate) client: String,
    pub(crate) server: String,
}

impl Names {
    /// `client->server` or `server->client`.
    pub(crate) fn direction(&self, direction: fullpipe_measure::Direction) -> String {
        let (from, to) = self.ends(direction);
        format!("{from}->{to}")
    }

    /// Sender and receiver.
    pub(crate) fn ends(&self, direction: fullpipe_measure::Direction) -> (&str, &str) {
        match direction {
            fullpipe_measure::Direction::Up => (&self.client, &self.server),
            fullpipe_measure::Direction::Down => (&self.server, &self.client),
        }
    }
}

/// Judges every direction of a measurement; `path_rate` is what the path was seen to carry apart from it.
pub(crate) fn directions(measurement: Measurement, names: &Names, path_rate: Option<PathRate>) -> Vec<Direction> {
    measurement.directions.into_iter().map(|measured| direction(measured, names, path_rate)).collect()
}

fn direction(measured: DirectionMeasurement, names: &Names, path_rate: Option<PathRate>) -> Direction {
    let name = names.direction(measured.direction);
    let (bytes, duration_us) = measured.whole();
    let (sender, receiver) = names.ends(measured.direction);
    let mut transfers = measured.transfers;
    for transfer in &mut transfers {
        sender.clone_into(&mut transfer.sender.name);
        receiver.clone_into(&mut transfer.receiver.name);
        transfer.path_rate = transfer.path_rate.or(path_rate);
    }
    let diagnosis = diagnose_streams(&transfers);
    Direction {
        name,
        rate_bps: Rate::from_bytes(bytes, duration_us).unwrap_or(Rate::ZERO),
        steady_bps: measured.steady_bps,
        // What the verdict takes for the empty path's.
        rtt_us: transfers.iter().filter_map(Transfer::base_rtt).chain(measured.idle_rtt.map(|rtt| rtt.min_us)).min(),
        loaded_rtt_us: measured.loaded_rtt.map(|rtt| rtt.p50_us),
        bytes,
        duration_us,
        retransmits: whole_retransmits(&transfers).or(measured.retransmits),
        congestion_control: transfers.iter().find_map(|transfer| transfer.sender.congestion_control.clone()),
        diagnosis,
        transfers,
    }
}

/// Segments retransmitted in all of the time that `bytes` and `duration_us` cover; a foreign sender tells less.
fn whole_retransmits(transfers: &[Transfer]) -> Option<u64> {
    // Saturating: a far end may say anything.
    transfers.iter().try_fold(0, |sum: u64, transfer| Some(sum.saturating_add(transfer.retransmits()?)))
}

impl Direction {
    /// The rate that proofs compare: without the slow start, where it was left out.
    pub(crate) fn compared_rate(&self) -> Rate {
        self.steady_bps.unwrap_or(self.rate_bps)
    }

    /// Whether a window or buffer limits it, or may: then one stream says little of what the path carries.
    ///
    /// A window that is sent in bursts queues behind itself at a slow link, and the round trip grows as it does before a
    /// full one. Several streams together tell the two apart.
    pub(crate) fn hides_the_path(&self) -> bool {
        match self.diagnosis.limiter {
            Limiter::ReceiveWindow | Limiter::SendBuffer => true,
            Limiter::Path => self.transfers.iter().any(|transfer| held_share(transfer) >= MOSTLY),
            Limiter::Application
            | Limiter::CongestionWindow
            | Limiter::AckDelay
            | Limiter::SegmentSize
            | Limiter::Reordering
            | Limiter::Handshake
            | Limiter::Cpu
            | Limiter::InsufficientEvidence => false,
        }
    }

    /// The most payload that `path` carries with the headers of this measurement's segments.
    pub(crate) fn payload_rate(&self, path: &PathSpec, direction: fullpipe_path::Direction) -> Option<Rate> {
        let syn = |end: &End| end.syn.is_none_or(|syn| syn.timestamps);
        let timestamps = self.transfers.iter().all(|transfer| syn(&transfer.sender) && syn(&transfer.receiver));
        path.payload_rate(direction, Headers { ipv6: !path.ip.has_v4(), timestamps })
    }

    /// Where one stream hides what the path carries, judges again with what `path` does: the lab measures it with several
    /// streams, and a simulated one knows it.
    pub fn judge_on(&mut self, path: &PathSpec, direction: fullpipe_path::Direction) {
        if self.transfers.len() == 1
            && self.hides_the_path()
            && let Some(rate_bps) = self.payload_rate(path, direction)
        {
            self.judge_with(PathRate { rate_bps, lower_bound: false });
        }
    }

    /// What all streams together carried once they had started: the median of several parts of the second half.
    ///
    /// The mean would count what was delivered before a hole was repaired, and read more than the link can carry. Where
    /// the receivers were not seen, the mean has to do.
    pub(crate) fn carried(&self) -> Rate {
        median_rate(&self.transfers).unwrap_or_else(|| self.compared_rate())
    }

    /// What the path was seen to carry: apart from this measurement, else in it.
    pub(crate) fn path_rate(&self) -> PathRate {
        let apart = self.transfers.iter().find_map(|transfer| transfer.path_rate);
        apart.unwrap_or_else(|| PathRate { rate_bps: self.carried(), lower_bound: false })
    }

    /// Judges again, knowing what the path carries.
    pub(crate) fn judge_with(&mut self, path_rate: PathRate) {
        for transfer in &mut self.transfers {
            transfer.path_rate = Some(path_rate);
        }
        self.diagnosis = diagnose_streams(&self.transfers);
    }
}

/// The part of a transfer's time from which on a window counts as its possible limit.
const MOSTLY: f64 = 0.5;

/// Into so many parts the second half of a test is cut: few enough for 100 ms each in a short one.
const PARTS: u64 = 9;

/// The median of what all receivers took in over each of `PARTS` parts of the second half.
fn median_rate(transfers: &[Transfer]) -> Option<Rate> {
    let end =
        transfers.iter().filter_map(|transfer| transfer.receiver_samples.last()).map(|last| last.at_us.get()).min()?;
    let part = end / 2 / PARTS;
    if part == 0 || transfers.iter().any(|transfer| transfer.receiver_samples.is_empty()) {
        return None;
    }
    // Saturating: a far end may say anything.
    let received = |at| transfers.iter().fold(0, |sum: u64, transfer| sum.saturating_add(received_by(transfer, at)));
    let steps: Vec<u64> = (0..=PARTS).map(|step| received(end - part * (PARTS - step))).collect();
    let over = |parts: usize| -> Vec<Rate> {
        let length = Micros::new(part * parts as u64);
        steps
            .windows(parts + 1)
            .filter_map(|stretch| Rate::from_bytes(Bytes::new(stretch[parts].saturating_sub(stretch[0])), length))
            .collect()
    };
    let mut rates = over(1);
    rates.sort_unstable();
    // Where most parts make up for others in which all stood still, no longer stretch carried as much.
    let longer = over(PARTS as usize / 2 + 1).into_iter().max();
    rates.get(rates.len() / 2).copied().min(longer)
}

/// Bytes received up to `at_us`, in a straight line between samples.
fn received_by(transfer: &Transfer, at_us: u64) -> u64 {
    let samples = &transfer.receiver_samples;
    let next = samples.partition_point(|sample| sample.at_us.get() <= at_us);
    let after = samples.get(next).or_else(|| samples.last());
    let (Some(before), Some(after)) = (samples.get(next.saturating_sub(1)), after) else { return 0 };
    let (from, to) = (before.at_us.get(), after.at_us.get());
    let gained = after.received.get().saturating_sub(before.received.get());
    let part = u128::from(at_us.saturating_sub(from)) * u128::from(gained) / u128::from(to.saturating_sub(from).max(1));
    before.received.get() + u64::try_from(part).unwrap_or(u64::MAX).min(gained)
}

/// The next number of parallel streams to try when looking for what the path carries.
pub(crate) const PROBE_STREAMS: [u32; 3] = [8, 32, 128];

/// What `streams` parallel streams say of the path, when one of them alone reached `single`.
///
/// Where they reach at least half of `streams` times as much, most of them are still held by their own windows, and the
/// path may carry more: the next number of streams decides. Half, because a path that is full leaves four times as many
/// streams at a quarter of that, and starting many connections costs a short test far less.
pub(crate) fn path_rate(single: Rate, streams: u32, together: Rate) -> PathRate {
    let multiple = single.bps().saturating_mul(u64::from(streams));
    PathRate { rate_bps: together, lower_bound: together.bps() >= multiple / 2 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Loopback: 11 us before the load, and the kernel of a connection with payload has seen 6.
    #[test]
    fn a_report_has_one_round_trip_of_the_empty_path() {
        let us = Micros::new;
        let idle = fullpipe_diagnose::RttSummary { min_us: us(11), p50_us: us(14), count: 5 };
        let sample = fullpipe_diagnose::SenderSample { min_rtt_us: Some(us(6)), ..Default::default() };
        let transfer = Transfer { idle_rtt: Some(idle), sender_samples: vec![sample], ..Transfer::default() };
        let nothing = DirectionMeasurement::nothing(fullpipe_measure::Direction::Up);
        let measured = DirectionMeasurement { idle_rtt: Some(idle), transfers: vec![transfer], ..nothing };
        let names = Names { client: "a".to_owned(), server: "b".to_owned() };
        let judged = direction(measured, &names, None);
        assert_eq!(judged.rtt_us, Some(us(6)));
        assert_eq!(judged.rtt_us, judged.transfers[0].base_rtt());
    }

    #[test]
    fn a_repaired_hole_does_not_raise_what_the_path_carries() {
        // 12,500 B each 10 ms; 100 ms of it stand still behind a hole, and come all at once.
        let received = |step: u64| match step {
            60..70 => 60 * 12_500,
            _ => step * 12_500,
        };
        let sample = |step| fullpipe_diagnose::ReceiverSample {
            at_us: Micros::from_millis(10 * step),
            received: Bytes::new(received(step)),
            ..fullpipe_diagnose::ReceiverSample::default()
        };
        let transfer = Transfer { receiver_samples: (0..=100).map(sample).collect(), ..Transfer::default() };
        let carried = median_rate(&[transfer.clone(), transfer]).unwrap().bps();
        assert!((19_900_000..=20_100_000).contains(&carried), "{carried}");
        assert_eq!(median_rate(&[Transfer::default()]), None);
        assert_eq!(median_rate(&[]), None);
    }

    #[test]
    fn pauses_that_are_made_up_for_do_not_raise_what_the_path_carries() {
        // 12,500 B each 10 ms; of each 100 ms, 30 pass with nothing, as where the machine below stands still.
        let received = |step: u64| step / 10 * 125_000 + (step % 10).saturating_sub(3) * 125_000 / 7;
        let sample = |step| fullpipe_diagnose::ReceiverSample {
            at_us: Micros::from_millis(10 * step),
            received: Bytes::new(received(step)),
            ..fullpipe_diagnose::ReceiverSample::default()
        };
        let transfer = Transfer { receiver_samples: (0..=100).map(sample).collect(), ..Transfer::default() };
        let carried = median_rate(&[transfer]).unwrap().bps();
        assert!((9_000_000..=10_300_000).contains(&carried), "{carried}");
    }

    #[test]
    fn counts_that_no_connection_reaches_saturate() {
        let end = |at_us| {
            let at_us = Micros::new(at_us);
            let received =
                fullpipe_diagnose::ReceiverSample { at_us, received: Bytes::new(u64::MAX), ..Default::default() };
            let sent = fullpipe_diagnose::SenderSample { at_us, retransmits: Some(at_us.get()), ..Default::default() };
            (received, sent)
        };
        let (received, sent) = [end(0), end(u64::MAX)].into_iter().unzip();
        let transfer = Transfer { receiver_samples: received, sender_samples: sent, ..Transfer::default() };
        let transfers = [transfer.clone(), transfer];
        assert_eq!(median_rate(&transfers), Some(Rate::ZERO));
        assert_eq!(whole_retransmits(&transfers), Some(u64::MAX));
    }

    #[test]
    fn streams_that_still_add_up_give_a_lower_bound_only() {
        let rate = |kbps: u64| Rate::from_bps(kbps * 1_000);
        // wan-80ms: eight windows of 6.45 Mbit/s fit into 100 Mbit/s, thirty-two do not.
        assert!(path_rate(rate(6_450), 8, rate(51_500)).lower_bound);
        assert!(path_rate(rate(6_450), 8, rate(43_000)).lower_bound);
        assert!(!path_rate(rate(6_450), 32, rate(94_000)).lower_bound);
    }
}
