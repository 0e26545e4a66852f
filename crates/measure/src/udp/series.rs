//! How the counts of a test with datagrams grew: what intervals are cut from.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use fullpipe_units::Micros;
use serde::{Deserialize, Serialize};

use crate::sampler::{MAX_SAMPLES, every_other};

/// Between two samples, as long as there are few.
const EVERY: Duration = Duration::from_millis(100);

/// What an end had counted at a moment, since the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "Row", into = "Row")]
pub struct DatagramSample {
    /// Since the beginning.
    pub at_us: Micros,
    /// Datagrams that arrived, or that were sent where only the sender was seen.
    pub packets: u64,
    /// Their payload.
    pub bytes: u64,
    /// Never arrived, as far as the numbers tell; absent where only the sender was seen.
    pub lost: Option<u64>,
    /// Arrived after one with a higher number.
    pub out_of_order: Option<u64>,
    /// How much the time on the way varies (RFC 3550, section 6.4.1), in microseconds.
    pub jitter_us: Option<f64>,
}

/// On the wire.
type Row = (u64, u64, u64, Option<u64>, Option<u64>, Option<f64>);

impl From<Row> for DatagramSample {
    fn from((at_us, packets, bytes, lost, out_of_order, jitter_us): Row) -> Self {
        Self { at_us: Micros::new(at_us), packets, bytes, lost, out_of_order, jitter_us }
    }
}

impl From<DatagramSample> for Row {
    fn from(sample: DatagramSample) -> Self {
        let DatagramSample { at_us, packets, bytes, lost, out_of_order, jitter_us } = sample;
        (at_us.get(), packets, bytes, lost, out_of_order, jitter_us.map(|us| (us * 10.0).round() / 10.0))
    }
}

impl DatagramSample {
    /// About what a sample takes on the wire.
    pub(crate) const LONGEST_TEXT: usize = 70;

    /// Adds another stream that was counted at the same moments; the jitter is the larger of both.
    pub(crate) fn add(all: &mut Vec<Self>, stream: &[Self]) {
        if all.is_empty() {
            return all.extend_from_slice(stream);
        }
        let sum = |a: Option<u64>, b: Option<u64>| Some(a?.saturating_add(b?));
        for (all, stream) in all.iter_mut().zip(stream) {
            all.packets = all.packets.saturating_add(stream.packets);
            all.bytes = all.bytes.saturating_add(stream.bytes);
            all.lost = sum(all.lost, stream.lost);
            all.out_of_order = sum(all.out_of_order, stream.out_of_order);
            all.jitter_us = all.jitter_us.zip(stream.jitter_us).map(|(a, b)| a.max(b));
        }
    }
}

/// A thread that samples all streams of a test. Dropping it ends it.
#[derive(Debug)]
pub(super) struct Watcher {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Vec<Vec<DatagramSample>>>>,
}

impl Watcher {
    /// `count` tells what each stream has counted by now.
    pub(super) fn start(
        streams: usize,
        start: Instant,
        count: impl Fn(usize, Micros) -> DatagramSample + Send + 'static,
    ) -> std::io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let thread = thread::Builder::new().name("measure-datagram-series".to_owned()).spawn(move || {
            let mut all = vec![Vec::new(); streams];
            let mut every = EVERY;
            loop {
                let last = seen.load(Ordering::Relaxed);
                let at = Micros::from(start.elapsed());
                for (stream, series) in all.iter_mut().enumerate() {
                    series.push(count(stream, at));
                }
                if last {
                    return all;
                }
                if all.first().is_none_or(|series| series.len() >= MAX_SAMPLES) {
                    all.iter_mut().for_each(every_other);
                    every *= 2;
                }
                thread::park_timeout(every);
            }
        })?;
        Ok(Self { stop, thread: Some(thread) })
    }

    /// Takes a last sample of each stream and returns all, in their order.
    pub(super) fn finish(&mut self) -> Vec<Vec<DatagramSample>> {
        self.stop.store(true, Ordering::Relaxed);
        let Some(thread) = self.thread.take() else { return Vec::new() };
        thread.thread().unpark();
        thread.join().unwrap_or_default()
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.finish();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_survives_the_wire() {
        let seen = DatagramSample { lost: Some(3), jitter_us: Some(1.5), packets: 9, ..DatagramSample::default() };
        for sample in [seen, DatagramSample::default()] {
            let text = serde_json::to_string(&sample).unwrap();
            assert!(text.len() < DatagramSample::LONGEST_TEXT, "{text}");
            assert_eq!(serde_json::from_str::<DatagramSample>(&text).unwrap(), sample);
        }
    }

    #[test]
    fn streams_are_added_up() {
        let sample = DatagramSample { packets: 2, bytes: 20, lost: Some(1), ..DatagramSample::default() };
        let mut all = Vec::new();
        DatagramSample::add(&mut all, &[sample]);
        DatagramSample::add(&mut all, &[DatagramSample { packets: u64::MAX, ..sample }]);
        assert_eq!((all[0].packets, all[0].bytes, all[0].lost), (u64::MAX, 40, Some(2)));
    }
}
