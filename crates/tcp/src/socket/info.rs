//! A socket's figures, for reports.

use super::{Phase, Socket, State};

/// A snapshot of a socket, as `TCP_INFO` gives one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Info {
    /// The state.
    pub state: State,
    /// Data bytes of a full segment.
    pub mss: u32,
    /// Congestion window in bytes.
    pub cwnd: u32,
    /// Slow-start threshold in bytes; `u32::MAX` before the first loss.
    pub ssthresh: u32,
    /// Bytes thought to be in the network.
    pub in_flight: u32,
    /// Bytes sent and not acknowledged by number.
    pub outstanding: u32,
    /// Of these, bytes that the peer has reported by SACK.
    pub sacked: u32,
    /// Of these, bytes deemed lost and not retransmitted since.
    pub lost: u32,
    /// Of these, bytes that were deemed lost and retransmitted, and have not been reported since.
    pub repaired: u32,
    /// Bytes written and not sent.
    pub unsent: u32,
    /// Whether the congestion window was used up in the flight under way, or half of it, while it doubles.
    pub is_window_used: bool,
    /// The window that the peer offers, in bytes.
    pub snd_wnd: u32,
    /// The largest window that the peer has offered.
    pub max_wnd: u32,
    /// The window that this end has promised and that has not been used, in bytes.
    pub rcv_wnd: u32,
    /// The peer's window shift.
    pub snd_shift: u8,
    /// This end's window shift.
    pub rcv_shift: u8,
    /// Smoothed round-trip time in microseconds, zero before the first sample.
    pub srtt_us: u32,
    /// Its variation in microseconds.
    pub rttvar_us: u32,
    /// The least sample in microseconds.
    pub min_rtt_us: Option<u32>,
    /// How often the retransmission timer has expired in a row.
    pub backoff: u8,
    /// Whether timestamps are in force.
    pub timestamps: bool,
    /// Whether SACK is in force.
    pub sack: bool,
    /// Whether ECN is in force.
    pub ecn: bool,
    /// Whether a loss is being repaired.
    pub in_recovery: bool,
    /// Whether a timeout found that loss.
    pub after_timeout: bool,
    /// Whether data of the SYN was acknowledged (RFC 7413).
    pub syn_data: bool,
    /// By how many segments the peer has reported one to be overtaken, at the most, up to 255; three where it was never more.
    #[cfg(feature = "platforms")]
    pub reordering: u8,
    /// Bytes that can be read.
    pub readable: u32,
    /// Bytes out of order dropped for lack of budget or buffers.
    pub early_dropped: u32,
}

impl Info {
    /// Data bytes of what leaves at once, in one piece for a device to split: whole segments, half of the largest window of the
    /// peer's at the most (Linux: `tcp_xmit_size_goal`).
    pub fn size_goal(&self) -> u32 {
        size_goal(self.max_wnd, self.mss.max(1))
    }
}

pub(super) fn size_goal(max_wnd: u32, mss: u32) -> u32 {
    /// The longest IP packet.
    const MOST: u32 = 65_535;
    let half = if max_wnd > 536 { max_wnd / 2 } else { max_wnd };
    (half.min(MOST) / mss * mss).max(mss)
}

impl Socket {
    /// A snapshot for reports.
    #[inline]
    pub fn info(&self) -> Info {
        Info {
            state: self.state,
            mss: self.mss(),
            cwnd: self.window.cwnd,
            ssthresh: self.window.ssthresh,
            in_flight: self.in_flight(),
            outstanding: self.tx.outstanding(),
            sacked: self.tx.sacked,
            lost: self.tx.lost,
            repaired: self.tx.repaired,
            unsent: self.tx.unsent_bytes(),
            is_window_used: self.is_window_used(),
            snd_wnd: self.snd_wnd,
            max_wnd: self.max_wnd,
            rcv_wnd: self.rx.window(),
            snd_shift: self.snd_shift,
            rcv_shift: self.rcv_shift,
            srtt_us: self.rtt.srtt(),
            rttvar_us: self.rtt.rttvar(),
            min_rtt_us: self.rtt.min(),
            backoff: self.rtt.backoff(),
            timestamps: self.uses_timestamps(),
            sack: self.uses_sack(),
            ecn: self.uses_ecn(),
            in_recovery: self.phase != Phase::Open,
            after_timeout: self.phase == Phase::Loss,
            syn_data: self.syn_data_taken(),
            #[cfg(feature = "platforms")]
            reordering: self.rack.reordering(),
            readable: self.rx.readable,
            early_dropped: self.rx.dropped,
        }
    }
}
