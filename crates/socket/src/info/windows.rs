//! Windows: `TCP_INFO_v0` and `TCP_INFO_v1` of mstcpip.h, as Microsoft's reference for that header describes them (Windows
//! 10 1703 and Server 2016 for v0).
//!
//! What they don't tell: whether the window is scaled, the slow-start threshold, what was acknowledged, what is not sent
//! yet, the path MTU. `BytesOut` ("bytes sent") and `BytesIn` are left out: whether they count retransmitted and
//! duplicate bytes is documented nowhere.

use fullpipe_units::Micros;

use super::{Fields, Info};

/// Reads what `WSAIoctl(SIO_TCP_INFO)` filled: 88 bytes of version 0, 136 of version 1.
pub fn read(raw: &[u8]) -> Info {
    let at = Fields(raw);
    let micros = |offset: usize| at.u32(offset).filter(|&us| us > 0).map(|us| Micros::new(us.into()));
    let mss = at.u32(4).filter(|&mss| mss > 0);
    let retransmitted = at.u32(68).map(u64::from);
    Info {
        mss,
        timestamps: at.u8(16).map(|flag| flag != 0),
        rtt: micros(20),
        // All ones are no round-trip time.
        min_rtt: micros(24).filter(|rtt| rtt.get() != u64::from(u32::MAX)),
        in_flight: at.bytes(28),
        cwnd: at.bytes(32),
        send_window: at.bytes(36),
        receive_window: at.bytes(40),
        receive_buffer: at.bytes(44),
        bytes_retransmitted: retransmitted,
        // Segments are not counted: as many as the bytes fill.
        retransmits: Some(()).and_then(|()| Some(retransmitted?.div_ceil(mss?.into()))),
        timeouts: at.u32(80).map(u64::from),
        // Version 1, in milliseconds, as RFC 4898 has it. "Sender limited" is more than a full send buffer, and left out.
        rwnd_limited: at.u32(92).map(|ms| Micros::from_millis(ms.into())),
        ..Info::default()
    }
}

#[cfg(test)]
mod tests {
    use fullpipe_units::Bytes;

    use super::*;

    /// The fields of `TCP_INFO_v1` in the order and with the sizes of Microsoft's page, aligned as C aligns them.
    fn laid_out() -> Vec<u8> {
        let mut raw = Vec::new();
        let mut put = |bytes: &[u8]| {
            while !raw.len().is_multiple_of(bytes.len()) {
                raw.push(0);
            }
            raw.extend_from_slice(bytes);
        };
        put(&4u32.to_ne_bytes()); // State
        put(&1_460u32.to_ne_bytes()); // Mss
        put(&12_345u64.to_ne_bytes()); // ConnectionTimeMs
        put(&[1]); // TimestampsEnabled
        for field in [80_500u32, 80_100, 63_000, 70_080, 64_512, 65_700, 65_536] {
            put(&field.to_ne_bytes()); // RttUs, MinRttUs, BytesInFlight, Cwnd, SndWnd, RcvWnd, RcvBuf
        }
        put(&9_000_000u64.to_ne_bytes()); // BytesOut
        put(&17u64.to_ne_bytes()); // BytesIn
        for field in [3u32, 2_921, 2, 7, 1] {
            put(&field.to_ne_bytes()); // BytesReordered, BytesRetrans, FastRetrans, DupAcksIn, TimeoutEpisodes
        }
        put(&[0]); // SynRetrans
        for time in [4_321u32, 210, 99] {
            put(&1u32.to_ne_bytes()); // SndLimTransRwin, ..Cwnd, ..Snd
            put(&time.to_ne_bytes()); // SndLimTimeRwin, ..
            put(&5u64.to_ne_bytes()); // SndLimBytesRwin, ..
        }
        raw
    }

    #[test]
    fn version_1_is_read_field_by_field() {
        let raw = laid_out();
        assert_eq!(raw.len(), 136);
        let info = read(&raw);
        assert_eq!((info.mss, info.timestamps), (Some(1_460), Some(true)));
        assert_eq!((info.rtt, info.min_rtt), (Some(Micros::new(80_500)), Some(Micros::new(80_100))));
        assert_eq!((info.in_flight, info.cwnd), (Some(Bytes::new(63_000)), Some(Bytes::new(70_080))));
        assert_eq!((info.send_window, info.receive_window), (Some(Bytes::new(64_512)), Some(Bytes::new(65_700))));
        assert_eq!(info.receive_buffer, Some(Bytes::new(65_536)));
        assert_eq!((info.bytes_retransmitted, info.retransmits, info.timeouts), (Some(2_921), Some(3), Some(1)));
        assert_eq!(info.rwnd_limited, Some(Micros::from_millis(4_321)));
        assert_eq!((info.scaling, info.bytes_acked, info.sndbuf_limited), (None, None, None));
    }

    #[test]
    fn version_0_lacks_the_times() {
        let raw = laid_out();
        let info = read(&raw[..88]);
        assert_eq!((info.timeouts, info.rwnd_limited), (Some(1), None));
        assert_eq!(read(&[]), Info::default());
    }
}
