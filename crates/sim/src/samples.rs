//! The timeline of a simulated connection, read from the engine as a live test reads a kernel.

use fullpipe_diagnose::{CongestionState, ReceiverSample, SenderSample};
use fullpipe_tcp::socket::{Counts, Info};
use fullpipe_units::{Bytes, Micros};

use crate::{
    truth::{Held, Ledger},
    writer::Writer,
};

/// The sender now. Time is since the simulation began.
pub(crate) fn sender(
    at: Micros,
    info: &Info,
    counts: &Counts,
    writer: &Writer,
    (ledger, counted): (&Ledger, Micros),
) -> SenderSample {
    let bytes = |value: u32| Some(Bytes::new(value.into()));
    let time = |us: u32| (us > 0).then(|| Micros::new(us.into()));
    let state = match (info.in_recovery, info.after_timeout) {
        (true, true) => CongestionState::Loss,
        (true, false) => CongestionState::Recovery,
        (false, _) if info.sacked > 0 => CongestionState::Disorder,
        (false, _) => CongestionState::Open,
    };
    let held = |kind| ledger.held_us(kind);
    SenderSample {
        at_us: at,
        acked: Bytes::new(counts.bytes_acked),
        in_flight: bytes(info.outstanding),
        not_sent: bytes(info.unsent),
        offered_window: bytes(info.snd_wnd),
        cwnd: bytes(info.cwnd),
        ssthresh: Some(info.ssthresh).filter(|value| *value != u32::MAX).map(|value| Bytes::new(value.into())),
        mss: Some(info.mss),
        rtt_us: time(info.srtt_us),
        min_rtt_us: info.min_rtt_us.map(|us| Micros::new(us.into())),
        retransmits: Some(counts.retransmits.into()),
        retransmitted: Some(Bytes::new(counts.bytes_retransmitted)),
        timeouts: Some(counts.timeouts.into()),
        lost: Some(info.lost.div_ceil(info.mss.max(1))),
        congestion_state: Some(state),
        rwnd_limited_us: Some(held(Held::ReceiveWindow)),
        sndbuf_limited_us: Some(if writer.counts_as_linux() { counted } else { held(Held::SendBuffer) }),
        send_buffer: Some(Bytes::new(writer.limit)),
        send_queued: Some(Bytes::new(writer.charged(info))),
        ..SenderSample::default()
    }
}

/// The receiver now.
pub(crate) fn receiver(at: Micros, info: &Info, counts: &Counts) -> ReceiverSample {
    ReceiverSample {
        at_us: at,
        received: Bytes::new(counts.bytes_received),
        offered_window: Some(Bytes::new(info.rcv_wnd.into())),
        unread: Some(Bytes::new(info.readable.into())),
        out_of_order: Some(counts.out_of_order),
        ..ReceiverSample::default()
    }
}
