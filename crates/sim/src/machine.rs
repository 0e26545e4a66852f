//! A machine with settings by the names of the catalogue (`net.ipv4.tcp_rmem`, `netsh tcp global autotuninglevel`, `call
//! SetSocketTxBuffers`), as a host that can be simulated.
//!
//! What is *not* here: whether a version honours a setting (`fullpipe-knobs`), and files.

use std::collections::BTreeMap;

use fullpipe_tcp::congestion::Algorithm;
use fullpipe_units::{Bytes, Micros};

use crate::{
    platform::{Platform, nearest},
    scenario::{receive_triple, send_triple},
    spec::{HostSpec, ReceiveBuffer, SimError},
};

/// The published device's time per packet (scenario netburner-lan).
const DEVICE: Micros = Micros::new(138);
/// The largest buffer that is simulated.
const MOST: u64 = 32 << 20;

/// What a setting does, in the order in which settings are applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Does {
    Scaling,
    Timestamps,
    Rfc1323,
    Options1323,
    Sack,
    Congestion,
    InitialWindow,
    DelayedAck,
    AckEvery,
    Level,
    TemplateLevel,
    GlobalWindow,
    AdapterWindow,
    ReceiveTriple,
    SendTriple,
    ReceiveStart,
    SendStart,
    ReceiveMost,
    SendMost,
    ReceiveGrows,
    SendGrows,
    BothGrow,
    SocketMost,
    RouteWindow,
    SocketReceive,
    SocketSend,
    NoNagle,
    Mtu,
    RxBuffers,
    TxBuffers,
    UnackBuffers,
    OutOfOrderBuffers,
}

/// Which direction of the machine's transfers a setting acts on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acts {
    /// Those that it receives.
    pub receives: bool,
    /// Those that it sends.
    pub sends: bool,
}

const RECEIVES: Acts = Acts { receives: true, sends: false };
const SENDS: Acts = Acts { receives: false, sends: true };
const BOTH: Acts = Acts { receives: true, sends: true };

/// A family (any where it is empty), a name in which `*` stands for anything, and what it does.
type Row = (&'static str, &'static str, Does, Acts);

const TABLE: &[Row] = &[
    ("linux", "net.ipv4.tcp_rmem", Does::ReceiveTriple, RECEIVES),
    ("linux", "net.ipv4.tcp_wmem", Does::SendTriple, SENDS),
    ("linux", "net.ipv4.tcp_moderate_rcvbuf", Does::ReceiveGrows, RECEIVES),
    ("linux", "net.ipv4.tcp_window_scaling", Does::Scaling, BOTH),
    ("linux", "net.ipv4.tcp_timestamps", Does::Timestamps, BOTH),
    ("linux", "net.ipv4.tcp_sack", Does::Sack, BOTH),
    ("linux", "net.ipv4.tcp_congestion_control", Does::Congestion, SENDS),
    ("linux", "route * initcwnd", Does::InitialWindow, SENDS),
    ("linux", "route * congctl", Does::Congestion, SENDS),
    ("linux", "route * window", Does::RouteWindow, RECEIVES),
    ("linux", "route * mtu", Does::Mtu, BOTH),
    ("windows", "registry *\\tcpip\\parameters\\tcpwindowsize", Does::GlobalWindow, RECEIVES),
    ("windows", "registry *\\interfaces\\*\\tcpwindowsize", Does::AdapterWindow, RECEIVES),
    ("windows", "registry *\\tcp1323opts", Does::Options1323, BOTH),
    ("windows", "registry *\\sackopts", Does::Sack, BOTH),
    ("windows", "registry *\\interfaces\\*\\mtu", Does::Mtu, BOTH),
    ("windows", "registry *\\tcpackfrequency", Does::AckEvery, RECEIVES),
    ("windows", "registry *\\tcpnodelay", Does::NoNagle, SENDS),
    ("windows", "netsh tcp global autotuninglevel", Does::Level, RECEIVES),
    ("windows", "netsh tcp global timestamps", Does::Timestamps, BOTH),
    ("windows", "tcpsetting * autotuninglevellocal", Does::TemplateLevel, RECEIVES),
    ("windows", "tcpsetting * initialcongestionwindowmss", Does::InitialWindow, SENDS),
    ("windows", "tcpsetting * congestionprovider", Does::Congestion, SENDS),
    ("windows", "tcpsetting * delayedacktimeoutms", Does::DelayedAck, RECEIVES),
    ("windows", "tcpsetting * delayedackfrequency", Does::AckEvery, RECEIVES),
    ("freebsd", "net.inet.tcp.recvspace", Does::ReceiveStart, RECEIVES),
    ("freebsd", "net.inet.tcp.sendspace", Does::SendStart, SENDS),
    ("freebsd", "net.inet.tcp.recvbuf_max", Does::ReceiveMost, RECEIVES),
    ("freebsd", "net.inet.tcp.sendbuf_max", Does::SendMost, SENDS),
    ("freebsd", "net.inet.tcp.recvbuf_auto", Does::ReceiveGrows, RECEIVES),
    ("freebsd", "net.inet.tcp.sendbuf_auto", Does::SendGrows, SENDS),
    ("freebsd", "kern.ipc.maxsockbuf", Does::SocketMost, BOTH),
    ("freebsd", "net.inet.tcp.rfc1323", Does::Rfc1323, BOTH),
    ("freebsd", "net.inet.tcp.sack.enable", Does::Sack, BOTH),
    ("freebsd", "net.inet.tcp.cc.algorithm", Does::Congestion, SENDS),
    ("freebsd", "net.inet.tcp.initcwnd_segments", Does::InitialWindow, SENDS),
    ("freebsd", "net.inet.tcp.delacktime", Does::DelayedAck, RECEIVES),
    ("macos", "net.inet.tcp.recvspace", Does::ReceiveStart, RECEIVES),
    ("macos", "net.inet.tcp.sendspace", Does::SendStart, SENDS),
    ("macos", "net.inet.tcp.autorcvbufmax", Does::ReceiveMost, RECEIVES),
    ("macos", "net.inet.tcp.autosndbufmax", Does::SendMost, SENDS),
    ("macos", "net.inet.tcp.doautorcvbuf", Does::BothGrow, RECEIVES),
    ("macos", "kern.ipc.maxsockbuf", Does::SocketMost, BOTH),
    ("macos", "net.inet.tcp.sack", Does::Sack, BOTH),
    ("macos", "net.inet.tcp.do_timestamps", Does::Timestamps, BOTH),
    ("netburner", "call setsocketrxbuffers", Does::RxBuffers, RECEIVES),
    ("netburner", "call setsockettxbuffers", Does::TxBuffers, SENDS),
    ("netburner", "call setsocketunackbuffers", Does::UnackBuffers, SENDS),
    ("netburner", "call setsocketackbuffers", Does::UnackBuffers, SENDS),
    ("netburner", "call setoutoforderbuffers", Does::OutOfOrderBuffers, RECEIVES),
    ("netburner", "call setsockoption so_nonagle", Does::NoNagle, SENDS),
    ("", "socket so_rcvbuf", Does::SocketReceive, RECEIVES),
    ("", "socket so_sndbuf", Does::SocketSend, SENDS),
    ("", "socket tcp_nodelay", Does::NoNagle, SENDS),
    ("", "socket tcp_congestion", Does::Congestion, SENDS),
    ("", "link * mtu", Does::Mtu, BOTH),
];

/// Settings that a person expects to act and that nothing here answers to, with the reason.
const INERT: &[(&str, &str)] = &[
    ("net.core.rmem_max", "it bounds what an application asks for, and the simulated one asks for nothing"),
    ("net.core.wmem_max", "it bounds what an application asks for, and the simulated one asks for nothing"),
    (
        "registry *\\globalmaxtcpwindowsize",
        "it bounds windows that an application asks for; TcpWindowSize is simulated",
    ),
    ("kern.ipc.nmbclusters", "the simulated host does not run out of memory"),
    ("build buffer_pool_size", "the simulated device has one socket; `fullpipe share` shares a pool out"),
    ("net.ipv4.tcp_mtu_probing", "the simulated path has no black hole"),
    ("transportfilter *", "it says which connections a template is for, and there is one connection"),
];

/// A machine: its platform, and the settings that are in force there.
#[derive(Clone, Debug)]
pub struct Machine {
    platform: &'static Platform,
    is_exact: bool,
    name: String,
    settings: BTreeMap<Does, String>,
}

/// Why a setting can't be simulated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotSimulated(pub String);

impl Machine {
    /// A machine that nobody has tuned; where there is no such version, its nearest relative stands for it.
    ///
    /// # Errors
    /// The family is unknown.
    pub fn new(name: &str) -> Result<Self, SimError> {
        let (platform, is_exact) = nearest(name)?;
        Ok(Self { platform, is_exact, name: name.to_owned(), settings: BTreeMap::new() })
    }

    /// What the reader of a prediction must know of this machine.
    pub fn note(&self) -> Option<String> {
        if !self.is_exact {
            return Some(format!("{} is simulated as {}, its nearest relative", self.name, self.platform.name));
        }
        let verified = self.platform.verified;
        (!verified)
            .then(|| format!("not every figure of {} was confirmed: {}", self.platform.name, self.platform.source))
    }

    /// Sets one thing, or takes it back to what the platform has where `value` is absent; gives what it acts on.
    ///
    /// # Errors
    /// Nothing in the simulator answers to it, with the reason.
    pub fn set(&mut self, knob: &str, value: Option<&str>) -> Result<Acts, NotSimulated> {
        let family = self.platform.name.split('-').next().unwrap_or_default();
        let name = knob.to_ascii_lowercase();
        let row = TABLE.iter().find(|row| (row.0.is_empty() || row.0 == family) && is_like(row.1, &name));
        let Some(&(_, _, does, acts)) = row else {
            let reason = INERT.iter().find(|(pattern, _)| is_like(pattern, &name)).map(|(_, reason)| *reason);
            return Err(NotSimulated(reason.unwrap_or("the simulator has no such setting").to_owned()));
        };
        if name.starts_with("tcpsetting ") && ["datacenter", "compat", "automatic"].iter().any(|own| name.contains(own))
        {
            return Err(NotSimulated("the template is for other connections; Internet's are simulated".to_owned()));
        }
        let Some(value) = value else {
            self.settings.remove(&does);
            return Ok(acts);
        };
        // A value that can't be read would silently leave the platform's own.
        apply(&mut self.platform.host(), does, value)
            .ok_or_else(|| NotSimulated(format!("its value {value:?} is not one that the simulator can read")))?;
        self.settings.insert(does, value.to_owned());
        Ok(acts)
    }

    /// The host with all of it.
    pub fn host(&self) -> HostSpec {
        let mut host = self.platform.host();
        host.platform.clone_from(&self.name);
        if host.budgets {
            host.per_packet = DEVICE;
        }
        for (does, value) in &self.settings {
            apply(&mut host, *does, value).unwrap_or_default();
        }
        if !host.profile.window_scaling {
            let most = Bytes::new(65_535);
            host.receive.initial = host.receive.initial.min(most);
            host.receive.max = host.receive.max.min(most);
        }
        host
    }

    /// Whether its settings are numbers of packet buffers.
    pub fn is_device(&self) -> bool {
        self.platform.host().budgets
    }
}

/// Whether `name` has the form of `pattern`, in which `*` stands for anything.
fn is_like(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    true
}

/// A number as the platforms write it: `64240`, `0xfaf0`, `dword:0000faf0`.
fn number(text: &str) -> Option<u64> {
    let text = text.trim();
    let hex = text.strip_prefix("0x").or_else(|| text.strip_prefix("dword:"));
    hex.map_or_else(|| text.parse().ok(), |digits| u64::from_str_radix(digits, 16).ok())
}

fn bytes(text: &str) -> Option<Bytes> {
    number(text).filter(|bytes| *bytes > 0).map(|bytes| Bytes::new(bytes.clamp(536, MOST)))
}

fn is_on(text: &str) -> Option<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "1" | "on" | "enabled" | "allowed" | "yes" => Some(true),
        "0" | "off" | "disabled" | "no" => Some(false),
        other => number(other).map(|value| value != 0),
    }
}

fn buffers(text: &str) -> Option<u16> {
    number(text).and_then(|count| u16::try_from(count).ok()).filter(|count| (1..=4_096).contains(count))
}

/// Applies one setting; `None` where the value can't be read.
fn apply(host: &mut HostSpec, does: Does, value: &str) -> Option<()> {
    match does {
        Does::Scaling => host.profile.window_scaling = is_on(value)?,
        Does::Timestamps => host.profile.timestamps = is_on(value)?,
        Does::Rfc1323 => {
            let on = is_on(value)?;
            (host.profile.window_scaling, host.profile.timestamps) = (on, on);
        }
        Does::Options1323 => {
            let bits = number(value)?;
            host.profile.window_scaling = bits & 1 != 0;
            host.profile.timestamps = bits & 2 != 0;
            host.profile.window_shift = None;
        }
        Does::Sack => host.profile.sack = is_on(value)?,
        Does::Congestion => {
            // Windows' word for it.
            let is_none = value.trim().eq_ignore_ascii_case("none");
            let name = if is_none { "reno" } else { value.trim() };
            host.profile.congestion = Algorithm::from_name(name)?;
        }
        Does::InitialWindow => host.profile.initial_window = number(value)?.clamp(2, 64) as u8,
        Does::DelayedAck => host.profile.ack.delay_us = (number(value)?.min(499) * 1_000) as u32,
        Does::AckEvery => host.profile.ack.segments = number(value)?.clamp(1, 2) as u8,
        Does::Level | Does::TemplateLevel => level(host, value)?,
        Does::GlobalWindow | Does::AdapterWindow => receive(host, bytes(value)?, false),
        Does::ReceiveTriple => host.receive = receive_triple(value)?,
        Does::SendTriple => (host.send.initial, host.send.max) = send_triple(value)?,
        Does::ReceiveStart => {
            // Where the platform grows its buffers, this is only the start.
            let grows = host.receive.max > host.receive.initial;
            host.receive.initial = bytes(value)?;
            host.receive.max = if grows { host.receive.max.max(host.receive.initial) } else { host.receive.initial };
        }
        Does::SendStart => {
            let grows = host.send.max > host.send.initial;
            host.send.initial = bytes(value)?;
            host.send.max = if grows { host.send.max.max(host.send.initial) } else { host.send.initial };
        }
        Does::ReceiveMost => host.receive.max = bytes(value)?.max(host.receive.initial),
        Does::SendMost => host.send.max = bytes(value)?.max(host.send.initial),
        Does::ReceiveGrows | Does::BothGrow => {
            if !is_on(value)? {
                host.receive.max = host.receive.initial;
            }
        }
        Does::SendGrows => {
            if !is_on(value)? {
                host.send.max = host.send.initial;
            }
        }
        // A socket's buffer has 8/9 of it for payload (sb_max_adj in sys/kern/uipc_sockbuf.c).
        Does::SocketMost => {
            let most = Bytes::new(bytes(value)?.get() * 8 / 9);
            host.receive.max = host.receive.max.min(most);
            host.receive.initial = host.receive.initial.min(most);
            host.send.max = host.send.max.min(most);
            host.send.initial = host.send.initial.min(most);
        }
        Does::RouteWindow => {
            let window = bytes(value)?;
            host.profile.window_shift = (window.get() <= 65_535).then_some(0);
            receive(host, window, false);
        }
        Does::SocketReceive => {
            // Linux doubles what it is given, and keeps its own overhead in it.
            let asked = bytes(value)?;
            let linux = host.send.wakes_at_third;
            receive(host, if linux { Bytes::new(asked.get() * 2 * 58 / 100) } else { asked }, true);
        }
        Does::SocketSend => {
            let asked = bytes(value)?;
            let linux = host.send.wakes_at_third;
            let own = if linux { Bytes::new(asked.get() * 2 * 83 / 100) } else { asked };
            (host.send.initial, host.send.max, host.send.pinned) = (own, own, true);
        }
        Does::NoNagle => host.no_nagle = is_on(value)?,
        Does::Mtu => host.mtu = Some(number(value)?.clamp(576, 9_216) as u16),
        Does::RxBuffers => host.profile.budgets.receive = buffers(value)?,
        Does::TxBuffers => host.profile.budgets.transmit = buffers(value)?,
        Does::UnackBuffers => host.profile.budgets.unacknowledged = buffers(value)?,
        Does::OutOfOrderBuffers => host.profile.budgets.out_of_order = buffers(value)?,
    }
    Some(())
}

fn receive(host: &mut HostSpec, bytes: Bytes, pinned: bool) {
    host.receive = ReceiveBuffer { initial: bytes, max: bytes, pinned };
}

/// The levels of Windows' receive window tuning: the window-scale shift that each offers.
fn level(host: &mut HostSpec, value: &str) -> Option<()> {
    let shift = match value.trim().to_ascii_lowercase().as_str() {
        "disabled" => None,
        "highlyrestricted" => Some(2),
        "restricted" => Some(4),
        "normal" => Some(8),
        "experimental" => Some(14),
        _ => return None,
    };
    host.profile.window_scaling = shift.is_some();
    host.profile.window_shift = shift;
    host.receive.max = Bytes::new((65_535 << shift.unwrap_or(0)).min(MOST));
    host.receive.initial = host.receive.initial.min(host.receive.max);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_reach_the_host_by_the_names_of_the_catalogue() {
        let host = |platform: &str, set: &[(&str, &str)]| {
            let mut machine = Machine::new(platform).unwrap();
            for (knob, value) in set {
                machine.set(knob, Some(value)).unwrap();
            }
            machine.host()
        };
        let of = |host: HostSpec| (host.receive.max.get(), host.send.max.get());
        let linux = host("linux-6.1", &[("net.ipv4.tcp_rmem", "4096\t131072\t20000000")]);
        assert_eq!(linux.receive.max.get(), 11_600_000);
        let parameters = "registry HKLM\\SYSTEM\\CurrentControlSet\\Services\\Tcpip\\Parameters";
        let (window, options) = (format!("{parameters}\\TcpWindowSize"), format!("{parameters}\\Tcp1323Opts"));
        assert_eq!(of(host("windows-xp", &[(&window, "0x1f5e0")])).0, 65_535, "without scaling");
        assert_eq!(of(host("windows-xp", &[(&options, "1"), (&window, "128480")])).0, 128_480);
        assert_eq!(of(host("windows-2012-r2", &[("netsh tcp global autotuninglevel", "restricted")])).0, 1_048_560);
        assert_eq!(of(host("windows-10", &[("tcpsetting Internet AutoTuningLevelLocal", "Disabled")])).0, 65_535);
        assert_eq!(of(host("freebsd-6", &[("net.inet.tcp.recvspace", "262144")])).0, 262_144);
        assert_eq!(of(host("freebsd-14", &[("kern.ipc.maxsockbuf", "900000")])), (800_000, 800_000));
        let device = host("netburner", &[("call SetSocketTxBuffers", "20"), ("call setsocketackbuffers", "18")]);
        assert_eq!((device.profile.budgets.transmit, device.profile.budgets.unacknowledged), (20, 18));
        assert_eq!(host("linux-6.18", &[("link eth0 mtu", "1400")]).mtu, Some(1_400));
    }

    #[test]
    fn what_can_not_be_simulated_says_why() {
        let mut machine = Machine::new("linux-6.18").unwrap();
        for (knob, value, why) in [
            ("net.core.rmem_max", "1", "it bounds"),
            ("net.ipv4.tcp_fastopen", "3", "the simulator has no such"),
            ("net.ipv4.tcp_rmem", "many", "its value"),
            ("net.ipv4.tcp_congestion_control", "vegas", "its value"),
            ("netsh tcp global autotuninglevel", "normal", "the simulator has no such"),
        ] {
            let error = machine.set(knob, Some(value)).unwrap_err();
            assert!(error.0.starts_with(why), "{knob}: {error:?}");
        }
        assert!(Machine::new("amiga-3").is_err());
    }

    #[test]
    fn a_setting_that_is_taken_away_leaves_what_the_platform_has() {
        let mut machine = Machine::new("freebsd-14").unwrap();
        let before = machine.host().receive;
        machine.set("net.inet.tcp.recvbuf_max", Some("8388608")).unwrap();
        assert_ne!(machine.host().receive, before);
        machine.set("net.inet.tcp.recvbuf_max", None).unwrap();
        assert_eq!(machine.host().receive, before);
    }

    #[test]
    fn names_match_with_anything_in_the_place_of_a_star() {
        assert!(is_like("route * window", "route 10.0.0.0/24 window"));
        assert!(!is_like("route * window", "route 10.0.0.0/24 mtu"));
        assert!(is_like("a*b*c", "a1b2c") && !is_like("a*b*c", "a1c") && !is_like("abc", "abcd"));
    }
}
