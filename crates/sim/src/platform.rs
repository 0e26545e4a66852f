//! Platforms as data: what a connection of each gets where nobody set anything.
//!
//! The engine's profiles carry the wire behaviour; buffers and the rules of the writer are here. Each line names where its
//! figures come from. What could not be confirmed is marked `verified: false`, and a report says so.

use fullpipe_tcp::{
    congestion::Algorithm,
    profile::{AckPolicy, Budgets, EcnPolicy, Nagle, Profile, ReceivePolicy, Rto},
    wire::tcp::{OptionKind, OptionLayout},
};
use fullpipe_units::{Bytes, Micros};

use crate::spec::{HostSpec, ReceiveBuffer, SendBuffer, SimError};

/// What a platform does by default.
#[derive(Clone, Copy, Debug)]
pub struct Platform {
    /// Its name in catalogue spelling.
    pub name: &'static str,
    /// The wire behaviour.
    profile: Profile,
    /// Receive buffer at the start and at most, in payload bytes.
    receive: (u64, u64),
    /// Send buffer at the start and at most, in payload bytes.
    send: (u64, u64),
    /// Linux: its rules for writers that wait and for readers that have caught up.
    is_linux: bool,
    budgets: bool,
    /// Where the figures come from.
    pub source: &'static str,
    /// Whether every figure has a source; else some are the nearest relative's.
    pub verified: bool,
}

const K: u64 = 1024;
const M: u64 = 1024 * K;
const SECOND: u32 = 1_000_000;

/// Options as Windows orders them: MSS, window scale, SACK; timestamps off by default.
const WINDOWS_LAYOUT: OptionLayout = OptionLayout {
    order: &[OptionKind::Mss, OptionKind::WindowScale, OptionKind::SackPermitted, OptionKind::Timestamps],
    pad_lone_sack: false,
    fill_fast_open: false,
};

const WINDOWS: Profile = Profile {
    name: "windows",
    layout: WINDOWS_LAYOUT,
    timestamps: false,
    ecn: EcnPolicy::Accept,
    ttl: 128,
    rto: Rto {
        initial_us: SECOND,
        min_us: 300_000,
        margin_us: 0,
        adds_margin: false,
        max_us: 64 * SECOND,
        after_lost_syn_us: 3 * SECOND,
    },
    ack: AckPolicy { segments: 2, delay_us: 40_000, quick: 0 },
    nagle: Nagle::AnyOutstanding,
    window_shift: Some(8),
    ..Profile::DEFAULT
};

const WINDOWS_2012: Profile = Profile {
    name: "windows-2012",
    rto: Rto { initial_us: 3 * SECOND, ..WINDOWS.rto },
    ack: AckPolicy { segments: 2, delay_us: 50_000, quick: 0 },
    congestion: Algorithm::NewReno,
    rack: false,
    initial_window: 4,
    ..WINDOWS
};

const WINDOWS_XP: Profile = Profile {
    name: "windows-xp",
    window_scaling: false,
    window_shift: None,
    ecn: EcnPolicy::Off,
    rto: Rto {
        initial_us: 3 * SECOND,
        min_us: 300_000,
        margin_us: 0,
        adds_margin: false,
        max_us: 240 * SECOND,
        after_lost_syn_us: 3 * SECOND,
    },
    ack: AckPolicy { segments: 2, delay_us: 200_000, quick: 0 },
    initial_window: 2,
    retries: 5,
    ..WINDOWS_2012
};

/// FreeBSD 4 to 6: scaling and timestamps on, no autotuning, NewReno; SACK since 5.3.
const OLD_BSD: Profile = Profile {
    name: "freebsd-6",
    congestion: Algorithm::NewReno,
    rack: false,
    ecn: EcnPolicy::Off,
    ack: AckPolicy { segments: 2, delay_us: 100_000, quick: 0 },
    initial_window: 4,
    window_shift: None,
    ..Profile::FREEBSD
};

/// lwIP as it comes: no options but MSS, window 4 segments.
const LWIP: Profile = Profile {
    name: "lwip",
    ack: AckPolicy { segments: 2, delay_us: 250_000, quick: 0 },
    rto: Rto {
        initial_us: 3 * SECOND,
        min_us: 500_000,
        margin_us: 0,
        adds_margin: false,
        max_us: 64 * SECOND,
        after_lost_syn_us: 3 * SECOND,
    },
    budgets: Budgets { receive: 4, out_of_order: 4, transmit: 2, unacknowledged: 2 },
    ..Profile::NETBURNER
};

const LINUX_2_6: Profile = Profile {
    name: "linux-2.6",
    initial_window: 3,
    rack: false,
    compresses_sacks: false,
    rto: Rto { initial_us: 3 * SECOND, ..LINUX.rto },
    ..LINUX
};

/// The bound of the receive buffer is the platform's.
const LINUX: Profile = Profile {
    gathers_bursts: true,
    compresses_sacks: true,
    receive: ReceivePolicy::Follow { max: 0 },
    ..Profile::LINUX
};

/// The window shift follows the largest receive buffer (`tcp_select_initial_window`).
const LINUX_6_18: Profile = Profile { window_shift: Some(10), ..LINUX };

const LINUX_SOURCE: &str = "kernel documentation (ip-sysctl), net/ipv4/tcp_input.c, tcp_output.c; tcp_rmem up to 32 MB on 6.18 and 6 MB before, of which 51 to 58 % are payload, as 83 % of a send buffer: seen on Linux 6.18";

/// The platforms that are known.
pub const PLATFORMS: &[Platform] = &[
    linux("linux-6.18", LINUX_6_18, 32 * M * 51 / 100, true),
    linux("linux-5.x", LINUX, 6 * M * 58 / 100, false),
    linux("linux-4.x", LINUX, 6 * M * 58 / 100, false),
    linux("linux-2.6", LINUX_2_6, 6 * M * 58 / 100, false),
    windows("windows-11", WINDOWS, (64 * K, 16 * M), false),
    windows("windows-10", WINDOWS, (64 * K, 16 * M), false),
    windows("windows-2025", WINDOWS, (64 * K, 16 * M), false),
    windows("windows-2022", WINDOWS, (64 * K, 16 * M), false),
    windows("windows-2019", WINDOWS, (64 * K, 16 * M), false),
    windows("windows-2012", WINDOWS_2012, (64 * K, 16 * M), false),
    Platform {
        name: "windows-xp",
        profile: WINDOWS_XP,
        receive: (17_520, 17_520),
        send: (17_520, 17_520),
        is_linux: false,
        budgets: false,
        source: "Windows XP TCP/IP documentation: TcpWindowSize 17,520 B on Ethernet, Tcp1323Opts off; delayed ACK 200 ms",
        verified: false,
    },
    freebsd("freebsd-14", Profile::FREEBSD, true),
    freebsd("freebsd-13", Profile { congestion: Algorithm::NewReno, ..Profile::FREEBSD }, false),
    Platform {
        name: "freebsd-6",
        profile: OLD_BSD,
        receive: (64 * K, 64 * K),
        send: (32 * K, 32 * K),
        is_linux: false,
        budgets: false,
        source: "FreeBSD 4 to 6 tcp(4): net.inet.tcp.recvspace 65,536, sendspace 32,768, no autotuning",
        verified: false,
    },
    Platform {
        name: "macos-14",
        profile: Profile { name: "macos", ..Profile::FREEBSD },
        receive: (128 * K, 4 * M),
        send: (128 * K, 4 * M),
        is_linux: false,
        budgets: false,
        source: "sysctl net.inet.tcp: recvspace and sendspace 131,072, autorcvbufmax and autosndbufmax 4 MB; the rest is FreeBSD's",
        verified: false,
    },
    Platform {
        name: "netburner",
        profile: Profile::NETBURNER,
        receive: (5 * 1460, 5 * 1460),
        send: (10 * 1460, 10 * 1460),
        is_linux: false,
        budgets: true,
        source: "2009 NNDK headers (delayed ACK 200 ms, initial RTO 3 s, minimum 0.5 s); 5 buffers from a vendor article",
        verified: false,
    },
    Platform {
        name: "lwip",
        profile: LWIP,
        receive: (4 * 1460, 4 * 1460),
        send: (2 * 1460, 2 * 1460),
        is_linux: false,
        budgets: true,
        source: "lwIP opt.h: TCP_WND 4 MSS, TCP_SND_BUF 2 MSS, no SACK, no scaling, no timestamps",
        verified: false,
    },
];

const fn linux(name: &'static str, profile: Profile, receive: u64, verified: bool) -> Platform {
    Platform {
        name,
        profile,
        // tcp_rmem 4096 131072 33554432 or 6291456; tcp_wmem 4096 16384 4194304.
        receive: (64 * K, receive),
        send: (16 * K * 83 / 100, 4 * M * 83 / 100),
        is_linux: true,
        budgets: false,
        source: LINUX_SOURCE,
        verified,
    }
}

const fn windows(name: &'static str, profile: Profile, receive: (u64, u64), verified: bool) -> Platform {
    Platform {
        name,
        profile,
        receive,
        // Dynamic send buffering follows the ideal send backlog; its bound is not documented: as the window's.
        send: (64 * K, 16 * M),
        is_linux: false,
        budgets: false,
        source: "Windows documentation: autotuning level normal has shift 8, 16 MB at most; send buffers follow the path",
        verified,
    }
}

const fn freebsd(name: &'static str, profile: Profile, verified: bool) -> Platform {
    Platform {
        name,
        profile,
        // recvspace 65536, sendspace 32768, recvbuf_max and sendbuf_max 2 MB.
        receive: (64 * K, 2 * M),
        send: (32 * K, 2 * M),
        is_linux: false,
        budgets: false,
        source: "FreeBSD tcp(4): recvspace 65,536, sendspace 32,768, recvbuf_max and sendbuf_max 2,097,152",
        verified,
    }
}

/// The platform of that name.
///
/// # Errors
/// It is unknown; the nearest name is in the error.
pub fn platform(name: &str) -> Result<&'static Platform, SimError> {
    let names = PLATFORMS.iter().map(|platform| platform.name);
    PLATFORMS
        .iter()
        .find(|platform| platform.name.eq_ignore_ascii_case(name.trim()))
        .ok_or_else(|| SimError::unknown("platform", name, names))
}

/// The platform of that name in catalogue spelling, or where that version is not here, its nearest relative; and whether it
/// is the one that was asked for.
///
/// # Errors
/// The family is unknown.
pub(crate) fn nearest(name: &str) -> Result<(&'static Platform, bool), SimError> {
    if let Ok(exact) = platform(name) {
        return Ok((exact, true));
    }
    let lower = name.trim().to_ascii_lowercase();
    let (family, version) = lower.split_once('-').unwrap_or((&lower, ""));
    let major: u32 = version.split(['.', '-']).next().and_then(|part| part.parse().ok()).unwrap_or(u32::MAX);
    let relative = match (family, version) {
        ("linux", _) => match major {
            ..=3 => "linux-2.6",
            4 => "linux-4.x",
            5 => "linux-5.x",
            _ => "linux-6.18",
        },
        ("windows", "nt4" | "2000" | "xp" | "2003") => "windows-xp",
        ("windows", "vista" | "2008" | "2008-r2" | "7" | "8" | "8.1" | "2012-r2") => "windows-2012",
        ("windows", "2016") => "windows-2019",
        ("windows", _) => "windows-11",
        ("freebsd", _) => match major {
            ..=6 => "freebsd-6",
            7..=13 => "freebsd-13",
            _ => "freebsd-14",
        },
        ("macos", _) => "macos-14",
        // Let the error name what there is.
        _ => name,
    };
    // A later minor version of the very line is the same here.
    let is_same =
        platform(relative).is_ok_and(|found| version.is_empty() || lower.starts_with(&format!("{}.", found.name)));
    Ok((platform(relative)?, is_same))
}

impl Platform {
    /// A host that nobody has tuned.
    pub fn host(&self) -> HostSpec {
        let bytes = Bytes::new;
        HostSpec {
            platform: self.name.to_owned(),
            profile: self.profile,
            receive: ReceiveBuffer { initial: bytes(self.receive.0), max: bytes(self.receive.1), pinned: false },
            send: SendBuffer {
                initial: bytes(self.send.0),
                max: bytes(self.send.1),
                pinned: false,
                wakes_at_third: self.is_linux,
                fills_segments: self.is_linux,
            },
            acks_when_read: self.is_linux,
            budgets: self.budgets,
            no_nagle: false,
            mtu: None,
            per_packet: Micros::ZERO,
        }
    }
}
