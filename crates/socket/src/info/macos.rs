//! macOS: `struct tcp_connection_info` of bsd/netinet/tcp.h, the answer to `TCP_CONNECTION_INFO` (10.11 and later).
//!
//! Times are whole milliseconds there, so that a round trip below one is reported as zero, and is absent here. Not reported: the
//! bytes under way (the send buffer's content is reported with them in it), the path MTU, the smallest round-trip time. The
//! offsets are Apple's header's, in which all Fast Open flags share one word; the `libc` crate gives each a word of its own.

use fullpipe_units::Micros;

use super::{Fields, Info};

const TIMESTAMPS: u32 = 1;
const SACK: u32 = 2;
const WSCALE: u32 = 4;
/// `TCP_MAXWIN << TCP_MAX_WINSHIFT`: where the threshold starts.
const INFINITE_SSTHRESH: u64 = 65_535 << 14;

/// Reads what `getsockopt(TCP_CONNECTION_INFO)` filled.
pub fn read(raw: &[u8]) -> Info {
    let at = Fields(raw);
    let option = |bit: u32| at.u32(4).map(|options| options & bit != 0);
    let scaling = option(WSCALE);
    let shift = |offset: usize| at.u8(offset).filter(|_| scaling == Some(true));
    Info {
        timestamps: option(TIMESTAMPS),
        sack: option(SACK),
        scaling,
        peer_shift: shift(1),
        own_shift: shift(2),
        mss: at.u32(16).filter(|&mss| mss > 0),
        ssthresh: at.bytes(20).filter(|bytes| bytes.get() < INFINITE_SSTHRESH),
        cwnd: at.bytes(24),
        send_window: at.bytes(28),
        send_queued: at.bytes(32),
        receive_window: at.bytes(36),
        rtt: at.u32(44).filter(|&ms| ms > 0).map(|ms| Micros::from_millis(ms.into())),
        rtt_var: at.u32(48).map(|ms| Micros::from_millis(ms.into())),
        bytes_retransmitted: at.u64(72),
        retransmits: at.u64(104),
        // Segments are not counted: as many as the bytes fill.
        out_of_order: Some(()).and_then(|()| {
            let (bytes, mss) = (at.u64(96)?, at.u32(16).filter(|&mss| mss > 0)?);
            u32::try_from(bytes.div_ceil(mss.into())).ok()
        }),
        ..Info::default()
    }
}

#[cfg(test)]
mod tests {
    use fullpipe_units::Bytes;

    use super::*;

    #[test]
    fn apples_layout_is_read_field_by_field() {
        let mut raw = vec![4u8, 6, 5, 0];
        let words: [u32; 13] = [
            TIMESTAMPS | SACK | WSCALE, // tcpi_options
            0,                          // tcpi_flags
            230,                        // tcpi_rto
            1_448,                      // tcpi_maxseg
            1_073_725_440,              // tcpi_snd_ssthresh: still where it starts
            40_000,                     // tcpi_snd_cwnd
            131_072,                    // tcpi_snd_wnd
            5_000,                      // tcpi_snd_sbbytes
            262_144,                    // tcpi_rcv_wnd
            11,                         // tcpi_rttcur
            15,                         // tcpi_srtt
            6,                          // tcpi_rttvar
            u32::MAX,                   // the flags of Fast Open, one word
        ];
        words.iter().for_each(|word| raw.extend_from_slice(&word.to_ne_bytes()));
        // txpackets, txbytes, txretransmitbytes, rxpackets, rxbytes, rxoutoforderbytes, txretransmitpackets
        let counters: [u64; 7] = [1_000, 1_400_000, 4_200, 900, 77_000, 2_900, 3];
        counters.iter().for_each(|count| raw.extend_from_slice(&count.to_ne_bytes()));
        assert_eq!(raw.len(), 112);
        let info = read(&raw);
        assert_eq!((info.timestamps, info.sack, info.scaling), (Some(true), Some(true), Some(true)));
        assert_eq!((info.peer_shift, info.own_shift), (Some(6), Some(5)));
        assert_eq!((info.mss, info.ssthresh, info.cwnd), (Some(1_448), None, Some(Bytes::new(40_000))));
        assert_eq!((info.send_window, info.receive_window), (Some(Bytes::new(131_072)), Some(Bytes::new(262_144))));
        assert_eq!((info.rtt, info.send_queued), (Some(Micros::from_millis(15)), Some(Bytes::new(5_000))));
        assert_eq!(info.rtt_var, Some(Micros::from_millis(6)));
        assert_eq!((info.retransmits, info.bytes_retransmitted, info.out_of_order), (Some(3), Some(4_200), Some(3)));
        assert_eq!(info.in_flight, None);
    }

    #[test]
    fn a_round_trip_below_a_millisecond_is_not_zero() {
        assert_eq!(read(&[0; 112]).rtt, None);
        assert_eq!(read(&[]), Info::default());
    }
}
