//! What a simulation gives.

use fullpipe_diagnose::{Diagnosis, Transfer, diagnose};
use fullpipe_units::{Bytes, Micros, Rate};

use crate::{Capture, Truth};

/// What came of one simulated connection.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The connection's story, as a live test would tell it.
    pub transfer: Transfer,
    /// What the engine knows of it.
    pub truth: Truth,
    /// Payload rate after the omitted time.
    pub steady_bps: Option<Rate>,
    /// From the first SYN to the moment when the receiver had read everything; absent where that did not happen.
    pub finished: Option<Micros>,
    /// Segments retransmitted.
    pub retransmits: u64,
    /// Timeouts.
    pub timeouts: u64,
    /// Bytes out of order that the receiver dropped for lack of buffers.
    pub early_dropped: u64,
    /// The mean wait in the queue of the bottleneck, towards the receiver.
    pub queue_delay: Micros,
    /// The most that waited there.
    pub queue_max: Bytes,
    /// The most payload that both hosts held in buffers at one time each, added.
    pub memory: Bytes,
    /// Data segments that were sent, retransmissions among them.
    pub data_segments: u64,
    /// What the sender's interface saw, where it was asked for.
    pub capture: Option<Capture>,
    /// What the receiver's interface saw, where it was asked for.
    pub receiver_capture: Option<Capture>,
    /// Payload that the other connections at the bottleneck received meanwhile, each.
    pub others: Vec<Bytes>,
    /// Data segments that all connections at the bottleneck sent, retransmissions among them.
    pub segments_of_all: u64,
    /// Why the connection ended early, if it did.
    pub failure: Option<String>,
}

impl Outcome {
    /// The judge's word on it.
    pub fn diagnosis(&self) -> Diagnosis {
        diagnose(&self.transfer)
    }

    /// Payload rate: the steady one where a part was omitted.
    pub fn rate(&self) -> Rate {
        self.steady_bps.or_else(|| self.transfer.rate()).unwrap_or_default()
    }

    /// A hash of the whole series (FNV-1a over every sample): the same spec and seed give the same one everywhere.
    pub fn digest(&self) -> u64 {
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        let mut add = |value: u64| {
            for byte in value.to_le_bytes() {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
            }
        };
        let bytes = |value: Option<Bytes>| value.map_or(u64::MAX, Bytes::get);
        let time = |value: Option<Micros>| value.map_or(u64::MAX, Micros::get);
        for sample in &self.transfer.sender_samples {
            let of = [sample.in_flight, sample.not_sent, sample.offered_window, sample.cwnd, sample.ssthresh];
            of.into_iter().for_each(|value| add(bytes(value)));
            [sample.rtt_us, sample.rwnd_limited_us, sample.sndbuf_limited_us].into_iter().for_each(|t| add(time(t)));
            add(sample.at_us.get());
            add(sample.acked.get());
            add(sample.retransmits.unwrap_or(u64::MAX));
        }
        for sample in &self.transfer.receiver_samples {
            [sample.offered_window, sample.unread].into_iter().for_each(|value| add(bytes(value)));
            add(sample.received.get());
        }
        add(self.transfer.bytes.get());
        add(self.transfer.duration_us.get());
        add(self.data_segments);
        hash
    }
}
