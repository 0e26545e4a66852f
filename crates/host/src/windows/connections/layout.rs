//! The structures of Windows' per-connection TCP statistics, as `tcpestats.h` lays them out (version 0, the only one).
//!
//! They are the same on every system that compiles this, so that what is made of them is tested everywhere; their sizes
//! and offsets are asserted when this is compiled. What is *not* here: asking Windows for them (`system.rs`).

use std::mem::{offset_of, size_of};

/// A group of counters that is switched on, and read, by itself: `TCP_ESTATS_TYPE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Group {
    /// Bytes: `TcpConnectionEstatsData`.
    Data = 1,
    /// What sending waits for: `TcpConnectionEstatsSndCong`.
    SndCong = 2,
    /// Round-trip times: `TcpConnectionEstatsPath`.
    Path = 3,
    /// Queues of the sender: `TcpConnectionEstatsSendBuff`.
    SendBuff = 4,
    /// The window that this end offers: `TcpConnectionEstatsRec`.
    Rec = 5,
    /// The window that the other end offers: `TcpConnectionEstatsObsRec`.
    ObsRec = 6,
}

impl Group {
    /// All that the judgement takes.
    pub const ALL: [Self; 6] = [Self::Data, Self::SndCong, Self::Path, Self::SendBuff, Self::Rec, Self::ObsRec];
}

/// `TCP_ESTATS_DATA_ROD_v0`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
#[expect(missing_docs, reason = "the names are those of RFC 4898 and of Microsoft's documents")]
pub struct DataRod {
    pub data_bytes_out: u64,
    pub data_segs_out: u64,
    pub data_bytes_in: u64,
    pub data_segs_in: u64,
    pub segs_out: u64,
    pub segs_in: u64,
    pub soft_errors: u32,
    pub soft_error_reason: u32,
    pub snd_una: u32,
    pub snd_nxt: u32,
    pub snd_max: u32,
    pub thru_bytes_acked: u64,
    pub rcv_nxt: u32,
    pub thru_bytes_received: u64,
}

/// `TCP_ESTATS_SND_CONG_ROD_v0`; the times are milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
#[expect(missing_docs, reason = "the names are those of RFC 4898 and of Microsoft's documents")]
pub struct SndCongRod {
    pub snd_lim_trans_rwin: u32,
    pub snd_lim_time_rwin: u32,
    pub snd_lim_bytes_rwin: usize,
    pub snd_lim_trans_cwnd: u32,
    pub snd_lim_time_cwnd: u32,
    pub snd_lim_bytes_cwnd: usize,
    pub snd_lim_trans_snd: u32,
    pub snd_lim_time_snd: u32,
    pub snd_lim_bytes_snd: usize,
    pub slow_start: u32,
    pub cong_avoid: u32,
    pub other_reductions: u32,
    pub cur_cwnd: u32,
    pub max_ss_cwnd: u32,
    pub max_ca_cwnd: u32,
    pub cur_ssthresh: u32,
    pub max_ssthresh: u32,
    pub min_ssthresh: u32,
}

/// `TCP_ESTATS_PATH_ROD_v0`: forty counters, of which the round-trip times count here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct PathRod {
    /// From `FastRetran` to `DsackDups`.
    pub losses: [u32; 26],
    /// The newest round-trip time in milliseconds.
    pub sample_rtt: u32,
    /// The smoothed round-trip time in milliseconds.
    pub smoothed_rtt: u32,
    /// From `RttVar` to `SpuriousRtoDetections`.
    pub rest: [u32; 12],
}

/// `TCP_ESTATS_SEND_BUFF_ROD_v0`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
#[expect(missing_docs, reason = "the names are those of RFC 4898 and of Microsoft's documents")]
pub struct SendBuffRod {
    pub cur_retx_queue: usize,
    pub max_retx_queue: usize,
    pub cur_app_w_queue: usize,
    pub max_app_w_queue: usize,
}

/// `TCP_ESTATS_REC_ROD_v0`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
#[expect(missing_docs, reason = "the names are those of RFC 4898 and of Microsoft's documents")]
pub struct RecRod {
    pub cur_rwin_sent: u32,
    pub max_rwin_sent: u32,
    pub min_rwin_sent: u32,
    pub lim_rwin: u32,
    pub dup_ack_episodes: u32,
    pub dup_acks_out: u32,
    pub ce_rcvd: u32,
    pub ecn_sent: u32,
    pub ecn_nonces_rcvd: u32,
    pub cur_reasm_queue: u32,
    pub max_reasm_queue: u32,
    pub cur_app_r_queue: usize,
    pub max_app_r_queue: usize,
    /// 255 (the document's -1) where the option was not sent.
    pub win_scale_sent: u8,
}

/// `TCP_ESTATS_OBS_REC_ROD_v0`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
#[expect(missing_docs, reason = "the names are those of RFC 4898 and of Microsoft's documents")]
pub struct ObsRecRod {
    pub cur_rwin_rcvd: u32,
    pub max_rwin_rcvd: u32,
    pub min_rwin_rcvd: u32,
    /// 255 (the document's -1) where the option was not received.
    pub win_scale_rcvd: u8,
}

/// Everything that is known of one connection at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Bytes.
    pub data: DataRod,
    /// What sending waited for.
    pub congestion: SndCongRod,
    /// Round-trip times.
    pub path: PathRod,
    /// Queues of the sender.
    pub send: SendBuffRod,
    /// The window that this end offers.
    pub receive: RecRod,
    /// The window that the other end offers.
    pub observed: ObsRecRod,
}

// As mingw-w64's and Microsoft's headers lay them out on 64 bits; there the compilers of both agree.
#[cfg(target_pointer_width = "64")]
const _: () = {
    assert!(size_of::<DataRod>() == 96 && offset_of!(DataRod, thru_bytes_received) == 88);
    assert!(offset_of!(DataRod, soft_errors) == 48 && offset_of!(DataRod, thru_bytes_acked) == 72);
    assert!(size_of::<SndCongRod>() == 88 && offset_of!(SndCongRod, snd_lim_bytes_rwin) == 8);
    assert!(offset_of!(SndCongRod, snd_lim_time_snd) == 36 && offset_of!(SndCongRod, cur_cwnd) == 60);
    assert!(size_of::<SendBuffRod>() == 32 && offset_of!(SendBuffRod, max_retx_queue) == 8);
    assert!(size_of::<RecRod>() == 72 && offset_of!(RecRod, cur_app_r_queue) == 48);
    assert!(offset_of!(RecRod, win_scale_sent) == 64);
};
const _: () = {
    assert!(size_of::<PathRod>() == 160 && offset_of!(PathRod, smoothed_rtt) == 108);
    assert!(size_of::<ObsRecRod>() == 16 && offset_of!(ObsRecRod, win_scale_rcvd) == 12);
};

// Microsoft's own description of the same structures, from which windows-sys is generated.
#[cfg(windows)]
const _: () = {
    use windows_sys::Win32::NetworkManagement::IpHelper as theirs;

    assert!(size_of::<DataRod>() == size_of::<theirs::TCP_ESTATS_DATA_ROD_v0>());
    assert!(offset_of!(DataRod, thru_bytes_acked) == offset_of!(theirs::TCP_ESTATS_DATA_ROD_v0, ThruBytesAcked));
    assert!(offset_of!(DataRod, thru_bytes_received) == offset_of!(theirs::TCP_ESTATS_DATA_ROD_v0, ThruBytesReceived));
    assert!(size_of::<SndCongRod>() == size_of::<theirs::TCP_ESTATS_SND_CONG_ROD_v0>());
    assert!(offset_of!(SndCongRod, snd_lim_time_snd) == offset_of!(theirs::TCP_ESTATS_SND_CONG_ROD_v0, SndLimTimeSnd));
    assert!(offset_of!(SndCongRod, cur_cwnd) == offset_of!(theirs::TCP_ESTATS_SND_CONG_ROD_v0, CurCwnd));
    assert!(size_of::<PathRod>() == size_of::<theirs::TCP_ESTATS_PATH_ROD_v0>());
    assert!(offset_of!(PathRod, smoothed_rtt) == offset_of!(theirs::TCP_ESTATS_PATH_ROD_v0, SmoothedRtt));
    assert!(size_of::<SendBuffRod>() == size_of::<theirs::TCP_ESTATS_SEND_BUFF_ROD_v0>());
    assert!(offset_of!(SendBuffRod, max_retx_queue) == offset_of!(theirs::TCP_ESTATS_SEND_BUFF_ROD_v0, MaxRetxQueue));
    assert!(size_of::<RecRod>() == size_of::<theirs::TCP_ESTATS_REC_ROD_v0>());
    assert!(offset_of!(RecRod, win_scale_sent) == offset_of!(theirs::TCP_ESTATS_REC_ROD_v0, WinScaleSent));
    assert!(size_of::<ObsRecRod>() == size_of::<theirs::TCP_ESTATS_OBS_REC_ROD_v0>());
    assert!(offset_of!(ObsRecRod, win_scale_rcvd) == offset_of!(theirs::TCP_ESTATS_OBS_REC_ROD_v0, WinScaleRcvd));
    assert!(Group::Data as i32 == theirs::TcpConnectionEstatsData);
    assert!(Group::SndCong as i32 == theirs::TcpConnectionEstatsSndCong);
    assert!(Group::Path as i32 == theirs::TcpConnectionEstatsPath);
    assert!(Group::SendBuff as i32 == theirs::TcpConnectionEstatsSendBuff);
    assert!(Group::Rec as i32 == theirs::TcpConnectionEstatsRec);
    assert!(Group::ObsRec as i32 == theirs::TcpConnectionEstatsObsRec);
};
