//! FreeBSD: `struct tcp_info` of sys/netinet/tcp.h, filled by `tcp_fill_info` of sys/netinet/tcp_usrreq.c.
//!
//! Fields that begin with two underscores there are Linux's and stay zero: the path MTU, the segments under way and lost,
//! the smallest round-trip time by another name. Windows and thresholds are bytes, not segments. The struct has had the
//! same size since 8.0, with padding, so that its length does not tell which fields a version fills.

use fullpipe_units::{Bytes, Micros};

use super::{Fields, Info};

const TIMESTAMPS: u8 = 1;
const SACK: u8 = 2;
const WSCALE: u8 = 4;
/// `TCP_MAXWIN << TCP_MAX_WINSHIFT`: where the threshold starts.
const INFINITE_SSTHRESH: u64 = 65_535 << 14;

/// Reads what `getsockopt(TCP_INFO)` filled.
pub fn read(raw: &[u8]) -> Info {
    let at = Fields(raw);
    let option = |bit: u8| at.u8(5).map(|options| options & bit != 0);
    let scaling = option(WSCALE);
    let shifts = at.halves(6).filter(|_| scaling == Some(true));
    // 14.0 and later fill both; their sequence numbers are random, so that zero in both is padding of an older one.
    let sequence = at.u32(176).zip(at.u32(180)).filter(|&numbers| numbers != (0, 0));
    Info {
        timestamps: option(TIMESTAMPS),
        sack: option(SACK),
        scaling,
        own_shift: shifts.map(|[_, own]| own),
        peer_shift: shifts.map(|[peer, _]| peer),
        mss: at.u32(16).filter(|&mss| mss > 0),
        rtt: at.u32(68).filter(|&rtt| rtt > 0).map(|us| Micros::new(us.into())),
        rtt_var: at.u32(72).map(|us| Micros::new(us.into())),
        ssthresh: at.bytes(76).filter(|bytes| bytes.get() < INFINITE_SSTHRESH),
        cwnd: at.bytes(80),
        receive_window: at.bytes(96),
        send_window: at.bytes(100),
        retransmits: at.u32(120).map(u64::from),
        out_of_order: at.u32(124),
        in_flight: sequence.map(|(una, max)| Bytes::new(max.wrapping_sub(una).into())),
        ..Info::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `struct tcp_info` of FreeBSD 14, field after field.
    fn laid_out(extensions: [u32; 13], later: [u32; 5]) -> Vec<u8> {
        // State, four of Linux's, options (timestamps and scaling), shifts 6 of the peer and 9 of this end.
        let shifts = if cfg!(target_endian = "little") { 0x96 } else { 0x69 };
        let mut raw = vec![4, 0, 0, 0, 0, TIMESTAMPS | WSCALE, shifts, 0];
        let mut put = |word: u32| raw.extend_from_slice(&word.to_ne_bytes());
        // rto, __ato, snd_mss, rcv_mss
        [230_000, 0, 1_448, 1_448].into_iter().for_each(&mut put);
        // __unacked .. __fackets, __last_data_sent, __last_ack_sent, last_data_recv, __last_ack_recv
        [0; 9].into_iter().for_each(&mut put);
        // __pmtu, __rcv_ssthresh, rtt, rttvar, snd_ssthresh, snd_cwnd, __advmss, __reordering, __rcv_rtt, rcv_space
        [0, 0, 20_125, 3_000, 1_073_725_440, 144_800, 0, 0, 0, 65_536].into_iter().for_each(&mut put);
        // snd_wnd, snd_bwnd, snd_nxt, rcv_nxt, toe_tid, snd_rexmitpack, rcv_ooopack, snd_zerowin, then five of ECN
        extensions.into_iter().for_each(&mut put);
        // three more of ECN, total_tlp, total_tlp_bytes (eight bytes)
        [0; 6].into_iter().for_each(&mut put);
        // snd_una, snd_max, rcv_numsacks, rcv_adv, dupacks
        later.into_iter().for_each(&mut put);
        [0; 10].into_iter().for_each(&mut put);
        raw
    }

    #[test]
    fn every_field_that_the_kernel_fills_is_read() {
        let extensions = [131_072, 0, 77, 78, 0, 12, 5, 0, 0, 0, 0, 0, 0];
        let info = read(&laid_out(extensions, [u32::MAX - 9, 20, 0, 0, 0]));
        assert_eq!((info.timestamps, info.sack, info.scaling), (Some(true), Some(false), Some(true)));
        assert_eq!((info.own_shift, info.peer_shift), (Some(9), Some(6)));
        assert_eq!((info.mss, info.rtt), (Some(1_448), Some(Micros::new(20_125))));
        assert_eq!(info.rtt_var, Some(Micros::new(3_000)));
        assert_eq!((info.cwnd, info.ssthresh), (Some(Bytes::new(144_800)), None));
        assert_eq!((info.send_window, info.receive_window), (Some(Bytes::new(131_072)), Some(Bytes::new(65_536))));
        assert_eq!((info.retransmits, info.out_of_order), (Some(12), Some(5)));
        assert_eq!(info.in_flight, Some(Bytes::new(30)), "sequence numbers wrap");
        assert_eq!((info.path_mtu, info.lost), (None, None), "Linux's fields stay zero there");
    }

    #[test]
    fn a_version_before_14_has_padding_where_sequence_numbers_are_later() {
        assert_eq!(read(&laid_out([0; 13], [0; 5])).in_flight, None);
    }
}
