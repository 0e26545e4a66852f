//! `TCP_INFO`, read by the length that the kernel returns, so that each field is there only where the kernel has it.
//!
//! Offsets: `struct tcp_info` of include/uapi/linux/tcp.h, which only ever grows at its end. The versions named are the
//! first kernels that fill a field.

use std::{io, net::TcpStream};

use super::sockopt;

/// One reading.
#[derive(Clone, Debug)]
pub(crate) struct TcpInfo {
    raw: [u8; 320],
    len: usize,
}

const TCPI_OPT_TIMESTAMPS: u8 = 1;
const TCPI_OPT_SACK: u8 = 2;
const TCPI_OPT_WSCALE: u8 = 4;

/// `snd_ssthresh` at or above this means "still infinite" (TCP_INFINITE_SSTHRESH).
const INFINITE_SSTHRESH: u32 = 0x7fff_ffff;

impl TcpInfo {
    pub(crate) fn of(socket: &TcpStream) -> io::Result<Self> {
        let mut raw = [0u8; 320];
        let len = sockopt::tcp_info(socket, &mut raw)?;
        Ok(Self { raw, len })
    }

    #[cfg(test)]
    pub(crate) fn from_raw(bytes: &[u8]) -> Self {
        let mut raw = [0u8; 320];
        let len = bytes.len().min(raw.len());
        raw[..len].copy_from_slice(&bytes[..len]);
        Self { raw, len }
    }

    pub(crate) fn congestion_state(&self) -> Option<u8> {
        self.u8_at(1)
    }

    pub(crate) fn timestamps(&self) -> Option<bool> {
        self.option(TCPI_OPT_TIMESTAMPS)
    }

    pub(crate) fn sack(&self) -> Option<bool> {
        self.option(TCPI_OPT_SACK)
    }

    /// Whether both SYNs carried the window-scale option (RFC 7323, section 2.2).
    pub(crate) fn scaling(&self) -> Option<bool> {
        self.option(TCPI_OPT_WSCALE)
    }

    /// The shift that the peer announced; meaningful only with [`Self::scaling`].
    pub(crate) fn peer_shift(&self) -> Option<u8> {
        self.u8_at(6).map(|byte| if cfg!(target_endian = "little") { byte & 0xf } else { byte >> 4 })
    }

    /// The shift that this end announced; meaningful only with [`Self::scaling`].
    pub(crate) fn own_shift(&self) -> Option<u8> {
        self.u8_at(6).map(|byte| if cfg!(target_endian = "little") { byte >> 4 } else { byte & 0xf })
    }

    /// Whether the delivery rate was taken while the application had nothing to send (4.9).
    pub(crate) fn delivery_app_limited(&self) -> Option<bool> {
        self.delivery_rate()?;
        self.u8_at(7).map(|byte| byte & if cfg!(target_endian = "little") { 1 } else { 0x80 } != 0)
    }

    pub(crate) fn send_mss(&self) -> Option<u32> {
        self.u32_at(16)
    }

    pub(crate) fn unacked(&self) -> Option<u32> {
        self.u32_at(24)
    }

    pub(crate) fn lost(&self) -> Option<u32> {
        self.u32_at(32)
    }

    pub(crate) fn path_mtu(&self) -> Option<u32> {
        self.u32_at(60)
    }

    /// Smoothed, in microseconds; `None` before the first measurement.
    pub(crate) fn rtt_us(&self) -> Option<u32> {
        self.u32_at(68).filter(|&rtt| rtt > 0)
    }

    /// In segments; `None` while still infinite.
    pub(crate) fn ssthresh(&self) -> Option<u32> {
        self.u32_at(76).filter(|&segments| segments < INFINITE_SSTHRESH)
    }

    /// In segments.
    pub(crate) fn cwnd(&self) -> Option<u32> {
        self.u32_at(80)
    }

    /// The MSS that this end announced.
    pub(crate) fn advertised_mss(&self) -> Option<u32> {
        self.u32_at(84)
    }

    pub(crate) fn receive_space(&self) -> Option<u32> {
        self.u32_at(96)
    }

    pub(crate) fn total_retransmits(&self) -> Option<u32> {
        self.u32_at(100)
    }

    /// In bytes per second; `None` where the sender does not pace.
    pub(crate) fn pacing_rate(&self) -> Option<u64> {
        self.u64_at(104).filter(|&rate| rate != u64::MAX && rate != u64::from(u32::MAX))
    }

    /// 4.1.
    pub(crate) fn bytes_acked(&self) -> Option<u64> {
        self.u64_at(120)
    }

    /// In order, read by the application or not (4.1).
    pub(crate) fn bytes_received(&self) -> Option<u64> {
        self.u64_at(128)
    }

    /// 4.6.
    pub(crate) fn not_sent(&self) -> Option<u32> {
        self.u32_at(144)
    }

    /// 4.6; `None` before the first measurement.
    pub(crate) fn min_rtt_us(&self) -> Option<u32> {
        self.u32_at(148).filter(|&rtt| rtt > 0 && rtt != u32::MAX)
    }

    /// In bytes per second (4.9).
    pub(crate) fn delivery_rate(&self) -> Option<u64> {
        self.u64_at(160)
    }

    /// 4.10, as the two below.
    pub(crate) fn busy_us(&self) -> Option<u64> {
        self.u64_at(168)
    }

    pub(crate) fn rwnd_limited_us(&self) -> Option<u64> {
        self.u64_at(176)
    }

    pub(crate) fn sndbuf_limited_us(&self) -> Option<u64> {
        self.u64_at(184)
    }

    /// 4.18.
    pub(crate) fn delivered_ce(&self) -> Option<u32> {
        self.u32_at(196)
    }

    /// With retransmissions (4.19, as the three below).
    pub(crate) fn bytes_sent(&self) -> Option<u64> {
        self.u64_at(200)
    }

    pub(crate) fn bytes_retransmitted(&self) -> Option<u64> {
        self.u64_at(208)
    }

    pub(crate) fn dsacks(&self) -> Option<u32> {
        self.u32_at(216)
    }

    pub(crate) fn reordering_seen(&self) -> Option<u32> {
        self.u32_at(220)
    }

    /// 5.4.
    pub(crate) fn out_of_order(&self) -> Option<u32> {
        self.u32_at(224)
    }

    /// The window that the peer offers, scaled (5.4).
    pub(crate) fn send_window(&self) -> Option<u32> {
        self.u32_at(228)
    }

    /// The window that this end offers (6.2).
    pub(crate) fn receive_window(&self) -> Option<u32> {
        self.u32_at(232)
    }

    /// Retransmission timeouts (6.7).
    pub(crate) fn timeouts(&self) -> Option<u16> {
        self.bytes_at(240).map(u16::from_ne_bytes)
    }

    fn option(&self, bit: u8) -> Option<bool> {
        self.u8_at(5).map(|options| options & bit != 0)
    }

    fn u8_at(&self, offset: usize) -> Option<u8> {
        self.bytes_at::<1>(offset).map(|[byte]| byte)
    }

    fn u32_at(&self, offset: usize) -> Option<u32> {
        self.bytes_at(offset).map(u32::from_ne_bytes)
    }

    fn u64_at(&self, offset: usize) -> Option<u64> {
        self.bytes_at(offset).map(u64::from_ne_bytes)
    }

    fn bytes_at<const N: usize>(&self, offset: usize) -> Option<[u8; N]> {
        self.raw.get(..self.len)?.get(offset..offset + N)?.try_into().ok()
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_short_answer_of_an_old_kernel_has_only_its_fields() {
        // Linux 3.x returned 104 bytes: everything up to total_retrans.
        let mut raw = [0u8; 104];
        raw[16..20].copy_from_slice(&1448u32.to_ne_bytes());
        let info = TcpInfo::from_raw(&raw);
        assert_eq!(info.send_mss(), Some(1448));
        assert_eq!(info.total_retransmits(), Some(0));
        assert_eq!((info.bytes_acked(), info.pacing_rate(), info.send_window()), (None, None, None));
        assert_eq!(info.delivery_app_limited(), None);
    }

    #[test]
    fn an_infinite_threshold_is_absent() {
        let mut raw = [0u8; 104];
        raw[76..80].copy_from_slice(&0x7fff_ffffu32.to_ne_bytes());
        assert_eq!(TcpInfo::from_raw(&raw).ssthresh(), None);
        raw[76..80].copy_from_slice(&10u32.to_ne_bytes());
        assert_eq!(TcpInfo::from_raw(&raw).ssthresh(), Some(10));
    }

    #[test]
    fn the_kernel_answers_for_a_real_socket() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let info = TcpInfo::of(&client).unwrap();
        assert!(info.send_mss().unwrap() > 500);
        assert!(info.rtt_us().is_some());
    }
}
