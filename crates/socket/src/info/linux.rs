//! Linux: `struct tcp_info` of include/uapi/linux/tcp.h, which only ever grows at its end.
//!
//! Read by the length that the kernel returned, so that each field is there only where the kernel has it. The versions
//! named are the first kernels that fill a field.

use fullpipe_units::{Bytes, Micros};

use super::{Fields, Info, rate};

const TIMESTAMPS: u8 = 1;
const SACK: u8 = 2;
const WSCALE: u8 = 4;

/// `snd_ssthresh` at or above this means "still infinite" (TCP_INFINITE_SSTHRESH).
const INFINITE_SSTHRESH: u32 = 0x7fff_ffff;

/// All ones where the sender does not pace, or may as fast as it likes.
fn is_paced(rate: &u64) -> bool {
    *rate != u64::MAX && *rate != u64::from(u32::MAX)
}

/// Reads what `getsockopt(TCP_INFO)` filled.
pub fn read(raw: &[u8]) -> Info {
    let at = Fields(raw);
    let option = |bit: u8| at.u8(5).map(|options| options & bit != 0);
    let scaling = option(WSCALE);
    // tcpi_snd_wscale is the peer's shift, tcpi_rcv_wscale this end's.
    let shifts = at.halves(6).filter(|_| scaling == Some(true));
    let mss = at.u32(16);
    let segments = |count: Option<u32>| Some(Bytes::new(u64::from(count?) * u64::from(mss?)));
    let micros = |time: Option<u32>| time.map(|us| Micros::new(us.into()));
    let delivery_rate = at.u64(160).map(rate);
    Info {
        congestion_state: at.u8(1),
        timestamps: option(TIMESTAMPS),
        sack: option(SACK),
        scaling,
        own_shift: shifts.map(|[_, own]| own),
        peer_shift: shifts.map(|[peer, _]| peer),
        // 4.9, as the rate.
        delivery_app_limited: delivery_rate.and_then(|_| {
            let first = if cfg!(target_endian = "little") { 1 } else { 0x80 };
            at.u8(7).map(|byte| byte & first != 0)
        }),
        mss,
        in_flight: segments(at.u32(24)),
        lost: at.u32(32),
        path_mtu: at.u32(60),
        rtt: micros(at.u32(68).filter(|&rtt| rtt > 0)),
        rtt_var: micros(at.u32(72)),
        ssthresh: segments(at.u32(76).filter(|&count| count < INFINITE_SSTHRESH)),
        cwnd: segments(at.u32(80)),
        advertised_mss: at.u32(84),
        receive_space: at.bytes(96),
        retransmits: at.u32(100).map(u64::from),
        pacing_rate: at.u64(104).filter(is_paced).map(rate),
        max_pacing_rate: at.u64(112).filter(is_paced).map(rate),
        // 4.1, as the next.
        bytes_acked: at.u64(120),
        bytes_received: at.u64(128),
        // 4.2.
        segments_received: at.u32(140),
        // 4.6, as the next, which is all ones before the first measurement.
        not_sent: at.bytes(144),
        min_rtt: micros(at.u32(148).filter(|&rtt| rtt > 0 && rtt != u32::MAX)),
        delivery_rate,
        // 4.10, as the next two.
        busy: at.u64(168).map(Micros::new),
        rwnd_limited: at.u64(176).map(Micros::new),
        sndbuf_limited: at.u64(184).map(Micros::new),
        // 4.18.
        delivered_ce: at.u32(196),
        // 4.19, as the next three.
        bytes_sent: at.u64(200),
        bytes_retransmitted: at.u64(208),
        dsacks: at.u32(216),
        reordering_seen: at.u32(220),
        // 5.4, as the next.
        out_of_order: at.u32(224),
        send_window: at.bytes(228),
        // 6.2.
        receive_window: at.bytes(232),
        // 6.7.
        timeouts: at.u16(240).map(u64::from),
        receive_buffer: None,
        send_queued: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_answer_of_an_old_kernel_has_only_its_fields() {
        // Linux 3.x returned 104 bytes: everything up to total_retrans.
        let mut raw = [0u8; 104];
        raw[16..20].copy_from_slice(&1448u32.to_ne_bytes());
        let info = read(&raw);
        assert_eq!((info.mss, info.retransmits), (Some(1448), Some(0)));
        assert_eq!((info.bytes_acked, info.pacing_rate, info.send_window), (None, None, None));
        assert_eq!((info.delivery_app_limited, info.own_shift), (None, None));
    }

    #[test]
    fn an_infinite_threshold_is_absent_and_windows_are_bytes() {
        let mut raw = [0u8; 104];
        raw[16..20].copy_from_slice(&1000u32.to_ne_bytes());
        raw[76..80].copy_from_slice(&0x7fff_ffffu32.to_ne_bytes());
        raw[80..84].copy_from_slice(&10u32.to_ne_bytes());
        assert_eq!((read(&raw).ssthresh, read(&raw).cwnd), (None, Some(Bytes::new(10_000))));
        raw[76..80].copy_from_slice(&7u32.to_ne_bytes());
        assert_eq!(read(&raw).ssthresh, Some(Bytes::new(7_000)));
    }

    #[test]
    fn shifts_are_told_only_where_both_syns_had_the_option() {
        let mut raw = [0u8; 104];
        raw[6] = if cfg!(target_endian = "little") { 0x7a } else { 0xa7 };
        assert_eq!((read(&raw).scaling, read(&raw).own_shift), (Some(false), None));
        raw[5] = WSCALE;
        assert_eq!((read(&raw).own_shift, read(&raw).peer_shift), (Some(7), Some(10)));
    }
}
