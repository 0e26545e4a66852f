//! How far this system sizes a buffer by itself, and how large a call can make one.
//!
//! What is *not* here: changing any of it. `fullpipe plan` does that, with its way back.

use fullpipe_units::{Bytes, sizing::PayloadShare};

/// One of a socket's two buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Buffer {
    /// `SO_RCVBUF`.
    Receive,
    /// `SO_SNDBUF`.
    Send,
}

/// What this system does with one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How large it becomes by itself; `None` where the system doesn't size it, or nobody knows that it does.
    pub automatic: Option<Bytes>,
    /// How large a call can make it; `None` where nothing tells.
    pub settable: Option<Bytes>,
    /// What a new socket has; `None` where nothing tells.
    pub initial: Option<Bytes>,
    /// How much of it is payload.
    pub share: PayloadShare,
    /// Whether the system makes it twice what a call asks for.
    pub doubled: bool,
    /// Which setting lifts `automatic`.
    pub lifts_automatic: &'static str,
    /// Which setting lifts `settable`.
    pub lifts_settable: &'static str,
}

impl Limits {
    /// Reads them, for the network namespace of the calling thread.
    #[cfg(target_os = "linux")]
    pub fn read(buffer: Buffer) -> Self {
        let (three, most, lifts_automatic, lifts_settable) = match buffer {
            Buffer::Receive => ("ipv4/tcp_rmem", "core/rmem_max", "net.ipv4.tcp_rmem", "net.core.rmem_max"),
            Buffer::Send => ("ipv4/tcp_wmem", "core/wmem_max", "net.ipv4.tcp_wmem", "net.core.wmem_max"),
        };
        let moderated = buffer == Buffer::Send || words("ipv4/tcp_moderate_rcvbuf").first() != Some(&0);
        let values = words(three);
        let value = |at: usize| values.get(at).copied().map(Bytes::new);
        Self {
            automatic: value(2).filter(|_| moderated),
            // Linux takes what a call asks for up to this, and doubles it for its own overhead (socket(7)).
            settable: words(most).first().map(|bytes| Bytes::new(bytes.saturating_mul(2))),
            initial: value(1),
            share: PayloadShare::HALF,
            doubled: true,
            lifts_automatic,
            lifts_settable,
        }
    }

    /// Reads them.
    #[cfg(target_os = "freebsd")]
    pub fn read(buffer: Buffer) -> Self {
        let (switch, most, initial, lifts_automatic) = match buffer {
            Buffer::Receive => (
                c"net.inet.tcp.recvbuf_auto",
                c"net.inet.tcp.recvbuf_max",
                c"net.inet.tcp.recvspace",
                "net.inet.tcp.recvbuf_max",
            ),
            Buffer::Send => (
                c"net.inet.tcp.sendbuf_auto",
                c"net.inet.tcp.sendbuf_max",
                c"net.inet.tcp.sendspace",
                "net.inet.tcp.sendbuf_max",
            ),
        };
        Self::of_bsd([switch, most, initial], lifts_automatic)
    }

    /// Reads them.
    #[cfg(target_vendor = "apple")]
    pub fn read(buffer: Buffer) -> Self {
        let (switch, most, initial, lifts_automatic) = match buffer {
            Buffer::Receive => (
                c"net.inet.tcp.doautorcvbuf",
                c"net.inet.tcp.autorcvbufmax",
                c"net.inet.tcp.recvspace",
                "net.inet.tcp.autorcvbufmax",
            ),
            Buffer::Send => (
                c"net.inet.tcp.doautosndbuf",
                c"net.inet.tcp.autosndbufmax",
                c"net.inet.tcp.sendspace",
                "net.inet.tcp.autosndbufmax",
            ),
        };
        Self::of_bsd([switch, most, initial], lifts_automatic)
    }

    #[cfg(any(target_os = "freebsd", target_vendor = "apple"))]
    fn of_bsd([switch, most, initial]: [&std::ffi::CStr; 3], lifts_automatic: &'static str) -> Self {
        use crate::sys::sysctl;
        let on = sysctl(switch).is_some_and(|on| on != 0);
        Self {
            automatic: sysctl(most).filter(|_| on).map(Bytes::new),
            settable: sysctl(c"kern.ipc.maxsockbuf").map(of_maxsockbuf),
            initial: sysctl(initial).map(Bytes::new),
            share: PayloadShare::ALL,
            doubled: false,
            lifts_automatic,
            lifts_settable: "kern.ipc.maxsockbuf",
        }
    }

    /// What Microsoft documents of the level of automatic tuning, which netsh tells once for each process; where it doesn't,
    /// "normal" is taken, the default. A level that Group Policy sets is not read. Whether a send buffer grows by itself is
    /// not certain, so nobody counts on it here.
    #[cfg(windows)]
    pub fn read(buffer: Buffer) -> Self {
        static LEVEL: std::sync::OnceLock<TuningLevel> = std::sync::OnceLock::new();
        let level =
            || *LEVEL.get_or_init(|| crate::sys::show_global().map_or(TuningLevel::Normal, |text| tuning_level(&text)));
        Self {
            automatic: if buffer == Buffer::Receive { level().largest() } else { None },
            settable: None,
            initial: None,
            share: PayloadShare::ALL,
            doubled: false,
            lifts_automatic: "netsh interface tcp set global autotuninglevel",
            lifts_settable: "the system's memory",
        }
    }

    /// Nothing is known of this system.
    #[cfg(not(any(target_os = "linux", target_os = "freebsd", target_vendor = "apple", windows)))]
    pub fn read(_: Buffer) -> Self {
        Self {
            automatic: None,
            settable: None,
            initial: None,
            share: PayloadShare::ALL,
            doubled: false,
            lifts_automatic: "the system's limits",
            lifts_settable: "the system's limits",
        }
    }
}

/// `kern.ipc.maxsockbuf` counts the mbufs, too: of each 2,048 B cluster and its 256 B mbuf a call gets the cluster
/// (`sb_max_adj`). Above that FreeBSD refuses with ENOBUFS.
#[cfg_attr(not(any(target_os = "freebsd", target_vendor = "apple")), cfg(test))]
fn of_maxsockbuf(bytes: u64) -> Bytes {
    const CLUSTER: u128 = 2_048;
    const MBUF: u128 = 256;
    Bytes::new(u64::try_from(u128::from(bytes) * CLUSTER / (CLUSTER + MBUF)).unwrap_or(u64::MAX))
}

/// How far Windows lets receive windows grow (Microsoft: Performance tuning network adapters).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(windows), cfg(test))]
enum TuningLevel {
    Disabled,
    HighlyRestricted,
    Restricted,
    Normal,
    Experimental,
}

#[cfg_attr(not(windows), cfg(test))]
impl TuningLevel {
    /// The largest window; `None` where windows don't grow and no scale is offered.
    fn largest(self) -> Option<Bytes> {
        let shift = match self {
            Self::Disabled => return None,
            Self::HighlyRestricted => 2,
            Self::Restricted => 4,
            Self::Normal => 8,
            Self::Experimental => 14,
        };
        Some(Bytes::new(65_535 << shift))
    }
}

/// The level in what `netsh interface tcp show global` prints. Windows' language changes the labels and not the words of
/// the levels; "disabled" is a word of other lines, too, so that it counts only behind the English label.
#[cfg_attr(not(windows), cfg(test))]
fn tuning_level(text: &str) -> TuningLevel {
    let values = || text.lines().filter_map(|line| line.rsplit_once(':').map(|(label, value)| (label, value.trim())));
    for (word, level) in [
        ("highlyrestricted", TuningLevel::HighlyRestricted),
        ("restricted", TuningLevel::Restricted),
        ("normal", TuningLevel::Normal),
        ("experimental", TuningLevel::Experimental),
    ] {
        if values().any(|(_, value)| value.eq_ignore_ascii_case(word)) {
            return level;
        }
    }
    let off =
        |(label, value): (&str, &str)| label.contains("Auto-Tuning Level") && value.eq_ignore_ascii_case("disabled");
    if values().any(off) { TuningLevel::Disabled } else { TuningLevel::Normal }
}

/// The numbers of a file below /proc/sys/net; none where it can't be read.
#[cfg(target_os = "linux")]
fn words(file: &str) -> Vec<u64> {
    let text = std::fs::read_to_string(format!("/proc/sys/net/{file}")).unwrap_or_default();
    text.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maxsockbuf_counts_the_mbufs() {
        assert_eq!(of_maxsockbuf(2 << 20), Bytes::new(1_864_135));
        assert_eq!(of_maxsockbuf(256 << 10), Bytes::new(233_016));
    }

    #[test]
    fn the_level_of_windows_bounds_what_it_sizes_by_itself() {
        let english = |level: &str| {
            format!(
                "TCP Global Parameters\n----------\nReceive-Side Scaling State          : enabled\nReceive Window Auto-Tuning Level    : {level}\nECN Capability                      : disabled\n"
            )
        };
        for (level, largest) in [
            ("disabled", None),
            ("highlyrestricted", Some(262_140)),
            ("restricted", Some(1_048_560)),
            ("normal", Some(16_776_960)),
            ("experimental", Some(1_073_725_440)),
        ] {
            assert_eq!(tuning_level(&english(level)).largest(), largest.map(Bytes::new), "{level}");
        }
        let german = "Zustand der empfangsseitigen Skalierung : enabled\nAutom. Abstimmungsgrad Empfangsfenster    : restricted\nECN-Funktion                               : disabled\n";
        assert_eq!(tuning_level(german), TuningLevel::Restricted);
        // Nothing that is known, as Wine's netsh prints it: the default.
        for text in ["", "ECN-Funktion : disabled"] {
            assert_eq!(tuning_level(text), TuningLevel::Normal);
        }
    }

    /// Run under Wine, whose netsh tells nothing; on a Windows not run.
    #[cfg(windows)]
    #[test]
    fn a_level_that_nobody_tells_is_the_default() {
        let receive = Limits::read(Buffer::Receive);
        assert!(receive.automatic.is_none_or(|bytes| bytes >= Bytes::new(262_140)), "{receive:?}");
        assert_eq!(Limits::read(Buffer::Send).automatic, None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_kernels_limits_are_read() {
        for buffer in [Buffer::Receive, Buffer::Send] {
            let limits = Limits::read(buffer);
            assert!(limits.initial.is_some() && limits.initial <= limits.automatic, "{limits:?}");
        }
    }
}
