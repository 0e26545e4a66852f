//! From a measurement to judged directions, and what the path carries besides.

use fullpipe_diagnose::{Limiter, PathRate, diagnose_streams};
use fullpipe_measure::{DirectionMeasurement, Measurement};
use fullpipe_units::{Micros, Rate};

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
        rate_bps: measured.rate_bps.unwrap_or(Rate::ZERO),
        steady_bps: measured.steady_bps,
        rtt_us: measured.idle_rtt.map(|rtt| rtt.min_us),
        loaded_rtt_us: measured.loaded_rtt.map(|rtt| rtt.p50_us),
        bytes: measured.bytes,
        duration_us: Micros::new((measured.seconds * 1e6) as u64),
        retransmits: measured.retransmits,
        congestion_control: transfers.iter().find_map(|transfer| transfer.sender.congestion_control.clone()),
        diagnosis,
        transfers,
    }
}

impl Direction {
    /// The rate that proofs compare: without the slow start, where it was left out.
    pub(crate) fn compared_rate(&self) -> Rate {
        self.steady_bps.unwrap_or(self.rate_bps)
    }

    /// Whether a window or buffer limits it, or may: then one stream says little of what the path carries.
    ///
    /// A window that is sent in bursts queues behind itself at a slow link, and the round trip grows as it does before a
    /// full one. What tells the two apart is loss, which a window that fits the queue never meets, or several streams
    /// together.
    pub(crate) fn hides_the_path(&self) -> bool {
        match self.diagnosis.limiter {
            Limiter::ReceiveWindow | Limiter::SendBuffer => true,
            Limiter::Path => self.retransmits.is_none_or(|segments| segments == 0),
            _ => false,
        }
    }

    /// Judges again, knowing what the path carries.
    pub(crate) fn judge_with(&mut self, path_rate: PathRate) {
        for transfer in &mut self.transfers {
            transfer.path_rate = Some(path_rate);
        }
        self.diagnosis = diagnose_streams(&self.transfers);
    }
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

    #[test]
    fn streams_that_still_add_up_give_a_lower_bound_only() {
        let rate = |kbps: u64| Rate::from_bps(kbps * 1_000);
        // wan-80ms: eight windows of 6.45 Mbit/s fit into 100 Mbit/s, thirty-two do not.
        assert!(path_rate(rate(6_450), 8, rate(51_500)).lower_bound);
        assert!(path_rate(rate(6_450), 8, rate(43_000)).lower_bound);
        assert!(!path_rate(rate(6_450), 32, rate(94_000)).lower_bound);
    }
}
