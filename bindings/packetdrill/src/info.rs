//! `TCP_INFO` in Linux's layout.

use fullpipe_tcp::socket::State;
use fullpipe_units::Instant;

use crate::{calls::Kind, host::Host};

/// The structure's length, with room for what later kernels have added; packetdrill takes what it knows.
const LEN: usize = 320;

/// A structure being filled, by offsets.
struct Fields([u8; LEN]);

impl Fields {
    fn u8(&mut self, at: usize, value: u8) {
        self.0[at] = value;
    }

    fn u32(&mut self, at: usize, value: u32) {
        self.0[at..at + 4].copy_from_slice(&value.to_ne_bytes());
    }

    fn u64(&mut self, at: usize, value: u64) {
        self.0[at..at + 8].copy_from_slice(&value.to_ne_bytes());
    }
}

/// Linux's number of a state.
const fn number(state: State) -> u8 {
    match state {
        State::Established => 1,
        State::SynSent => 2,
        State::SynReceived => 3,
        State::FinWait1 => 4,
        State::FinWait2 => 5,
        State::TimeWait => 6,
        State::Closed => 7,
        State::CloseWait => 8,
        State::LastAck => 9,
        State::Closing => 11,
    }
}

const fn millis(at: Instant) -> u32 {
    (at.as_nanos() / 1_000_000) as u32
}

/// What Linux calls the threshold before a loss.
const INFINITE: u32 = 0x7fff_ffff;

/// The structure for a socket.
pub(crate) fn tcp_info(host: &mut Host, fd: i32) -> Result<[u8; LEN], i32> {
    let mut fields = Fields([0; LEN]);
    let now = host.now;
    let file = host.file(fd)?;
    let (last_data, max_segment) = (file.last_data.1, file.options.max_segment);
    let (busy_us, window_us) = file.times.spent_us(now);
    let (host_now_ms, last_data_ms) = (millis(host.now), millis(last_data));
    let id = match host.file(fd)?.kind {
        Kind::Connected(id) => id,
        kind => {
            fields.u8(0, if kind == Kind::Fresh { 7 } else { 10 });
            return Ok(fields.0);
        }
    };
    let Some(socket) = host.stack.socket(id) else {
        fields.u8(0, 7);
        return Ok(fields.0);
    };
    let (info, counts) = (socket.info(), *socket.counts());
    let mss = info.mss.max(1);
    let in_segments = |bytes: u32| bytes.div_ceil(mss);
    // Open, disorder, recovery, loss.
    let phase = match (info.in_recovery, info.backoff) {
        (true, _) if info.after_timeout => 4,
        (true, _) => 3,
        (false, _) if info.sacked > 0 => 1,
        (false, _) => 0,
    };
    fields.u8(0, number(info.state));
    fields.u8(1, phase);
    fields.u8(2, info.backoff);
    fields.u8(4, info.backoff);
    let scaling = info.snd_shift > 0 || info.rcv_shift > 0;
    fields.u8(
        5,
        u8::from(info.timestamps)
            | u8::from(info.sack) << 1
            | u8::from(scaling) << 2
            | u8::from(info.ecn) << 3
            | u8::from(info.syn_data) << 5,
    );
    fields.u8(6, info.snd_shift | info.rcv_shift << 4);
    fields.u32(16, mss);
    fields.u32(20, mss);
    fields.u32(24, in_segments(info.outstanding));
    fields.u32(28, in_segments(info.sacked));
    // Linux counts as lost what was sent again, too, until it is reported.
    fields.u32(32, in_segments(info.lost + info.repaired));
    fields.u32(36, in_segments(info.repaired));
    fields.u32(52, host_now_ms.saturating_sub(last_data_ms));
    fields.u32(68, info.srtt_us);
    fields.u32(72, info.rttvar_us);
    fields.u32(76, if info.ssthresh == u32::MAX { INFINITE } else { info.ssthresh / mss });
    fields.u32(80, info.cwnd / mss);
    let announced = (u32::from(host.flags.mtu) - 40).min(max_segment.into());
    fields.u32(84, announced - if info.timestamps { 12 } else { 0 });
    fields.u32(88, info.reordering.into());
    fields.u32(100, counts.retransmits);
    fields.u64(120, counts.bytes_acked);
    fields.u64(128, counts.bytes_received);
    fields.u32(136, counts.segments_sent);
    fields.u32(140, counts.segments_received);
    fields.u32(144, info.unsent);
    fields.u32(148, info.min_rtt_us.unwrap_or(u32::MAX));
    fields.u64(168, busy_us);
    fields.u64(176, window_us);
    // The handshake counts as a segment.
    let opened = !matches!(info.state, State::SynSent | State::SynReceived);
    fields.u32(192, counts.delivered + u32::from(opened));
    fields.u64(200, counts.bytes_sent + counts.bytes_retransmitted);
    fields.u64(208, counts.bytes_retransmitted);
    fields.u32(228, info.snd_wnd);
    fields.u32(232, info.rcv_wnd);
    Ok(fields.0)
}
