//! The rules: what a value does that the person who copied it did not want.
//!
//! Those for Windows are in `windows`, those for the calls of a device in `device`.

use fullpipe_units::{
    Bytes, Micros,
    sizing::{LARGEST_SHIFT, UNSCALED},
    window_limited_rate,
};

use super::{Finding, Level, Setting, device, finding, meant, shown, windows};
use crate::{
    Address, Family,
    catalogue::{Honoured, Knob},
    packets::{ETHERNET, ETHERNET_HEADER, mtu_of_frame},
    planner::{
        bsd::{self, Inflight},
        sizing::meant_as_bytes,
        templates::FAST,
    },
    value::three,
};

/// All rules that speak of a setting.
pub(super) fn apply(setting: &Setting<'_>) -> Vec<Finding> {
    match setting.knob {
        Address::Sysctl(name) => sysctl(setting, name),
        Address::Registry { value, .. } => windows::registry(setting, value),
        Address::Netsh { parameter, .. } => windows::netsh(setting, parameter),
        Address::TcpSetting { template, parameter } => windows::template_parameter(setting, template, parameter),
        Address::Named { kind, name } if kind == "netoffload" || kind == "adapter" => windows::offload(setting, name),
        Address::Named { kind, name } if kind == "call" => device::device_call(setting, name),
        Address::Named { kind, name } if kind == "transportfilter" => {
            windows::no_template(setting, name).into_iter().collect()
        }
        Address::Socket(option) => socket(setting, option),
        Address::Link { property, .. } if property.starts_with("*R") || property.starts_with("*Lso") => {
            windows::adapter_offload(setting, property)
        }
        Address::Link { device, property } => match property.strip_prefix("offload ") {
            Some(offload) => offload_off(setting, device, offload).into_iter().collect(),
            None => packet_size(setting, property),
        },
        Address::Route { attribute, .. } if attribute == "window" => route_window(setting).into_iter().collect(),
        Address::Route { attribute, .. } if attribute == "congctl" => congestion_control(setting).into_iter().collect(),
        _ => Vec::new(),
    }
}

/// A command that resets: not the undo that it is taken for.
pub(super) fn reset(line: u32, what: &str) -> Finding {
    let words = match what {
        "netsh tcp reset" => {
            "puts TCP's global and template parameters back to Windows' own values (its exact reach is not documented); values that were there before it are lost: save `netsh interface tcp show global` and Get-NetTCPSetting first"
        }
        "netsh winsock reset" => {
            "resets the Winsock catalogue, no TCP parameter; filters of security and proxy programs are lost; restart needed"
        }
        _ => {
            "removes all addresses and routes that were configured, not only TCP's values; restart needed; it is no undo for tuning"
        }
    };
    finding(line, Level::Warning, "reset-is-no-undo", words.to_owned())
}

/// A registry value of another type than the one that Windows reads there.
pub(super) fn wrong_type(setting: &Setting<'_>, value_type: &str) -> Option<Finding> {
    let Address::Registry { value: name, .. } = setting.knob else { return None };
    if value_type != "REG_DWORD" || number(setting.value).is_some() || setting.value.starts_with("dword:") {
        return None;
    }
    let text = setting.value.trim_matches('"');
    let fix =
        number(text).map(|number| format!("\"{name}\"=dword:{number:08x}, or `reg add ... /t REG_DWORD /d {number}`"));
    let words = format!(
        "{name} = {} is no REG_DWORD, and Windows reads nothing else there: the line does nothing",
        shown(setting.value)
    );
    Some(setting.error("wrong-type", words, fix))
}

/// A line of the boot loader's file that sets nothing, because the name is a sysctl of the running system alone, and one of
/// the running system that comes too late.
pub(super) fn wrong_file(setting: &Setting<'_>) -> Option<Finding> {
    let Address::Sysctl(name) = setting.knob else { return None };
    let version = &setting.platform.version;
    if !setting.at_start && setting.catalogue.is_only_at_start(setting.knob, version) {
        let words = format!(
            "{name} is fixed when {} starts: a later write changes the number that is shown, and not the pool",
            setting.platform
        );
        let fix = format!("write `{name}=\"{}\"` into /boot/loader.conf", shown(setting.value));
        return Some(setting.warning("only-at-start", words, Some(fix)));
    }
    // What rc.conf calls by a name of its own has none with dots.
    if !setting.at_start || !setting.catalogue.is_no_tunable(setting.knob, version) {
        return None;
    }
    let words = format!(
        "{name} is no loader tunable on {}: in /boot/loader.conf the line does nothing, and the value stays as it is",
        setting.platform
    );
    let fix = match name.as_str() {
        // Their own line comes too late for what is sized at the start.
        "kern.ipc.nmbjumbop" | "kern.ipc.nmbjumbo9" => {
            "raise kern.ipc.nmbclusters here, of which it is a part, or write the line into /etc/sysctl.conf".to_owned()
        }
        _ => format!("write `{name}={}` into /etc/sysctl.conf", shown(setting.value)),
    };
    Some(setting.warning("no-tunable", words, Some(fix)))
}

/// A line of sysctl.conf that sets nothing, as its version reads it.
pub(super) fn sets_nothing(setting: &Setting<'_>) -> Option<Finding> {
    let (rule, words) = setting.sets_nothing?;
    Some(setting.error(rule, words.clone(), Some(format!("{}={}", setting.knob, shown(setting.value)))))
}

/// A registry value that Windows reads under another key of TCP than the one that the recipe names.
pub(super) fn wrong_place(setting: &Setting<'_>) -> Option<Finding> {
    /// Below them nobody but TCP and its sockets has values of these names.
    const OURS: [&str; 2] =
        [r"HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\", r"HKLM\SYSTEM\CurrentControlSet\Services\AFD\"];
    let Address::Registry { key, value } = setting.knob else { return None };
    let is_ours = |key: &str| {
        let below = |root: &str| key.get(..root.len()).is_some_and(|start| start.eq_ignore_ascii_case(root));
        OURS.into_iter().any(below)
    };
    if !is_ours(key) {
        return None;
    }
    let mut known = false;
    let mut places: Vec<&str> = Vec::new();
    for knob in &setting.catalogue.knobs {
        let Address::Registry { key, value: name } = &knob.address else { continue };
        if !name.eq_ignore_ascii_case(value) {
            continue;
        }
        known = true;
        let span = setting.catalogue.span(knob, &setting.platform.version);
        if span.is_none_or(|span| !matches!(span.honoured, Honoured::Ignored | Honoured::Absent)) {
            places.push(key);
        }
    }
    let name = shown(value);
    let Some(first) = places.first() else {
        // Where it is documented it does nothing on this version, either.
        let words = format!("{name} does nothing on {}, under this key or another", setting.platform);
        return known.then(|| setting.warning("does-nothing", words, Some("delete the line".to_owned())));
    };
    let words = format!("{name} does nothing under this key: documented is {}", places.join(", and "));
    // What another program reads under its own key is no place for TCP's.
    if !places.iter().any(|place| is_ours(place)) {
        let words = format!("{words}, which is for another program alone");
        return Some(setting.warning("wrong-place", words, Some("delete the line".to_owned())));
    }
    let fix = format!("set {name} under {first}, or delete the line");
    Some(setting.warning("wrong-place", words, Some(fix)))
}

/// A switch that every path wants on, and that is off.
pub(super) fn switched_off(setting: &Setting<'_>, knob: &Knob) -> Option<Finding> {
    let loss = knob.off.as_deref()?;
    let is_off = number(setting.value) == Some(0) || setting.value.trim().eq_ignore_ascii_case("disabled");
    let name = match setting.knob {
        Address::Registry { value, .. } => value.clone(),
        Address::Netsh { parameter, .. } if is_off => {
            return Some(setting.warning("harmful", loss.to_owned(), Some(format!("{parameter}=enabled"))));
        }
        knob => knob.to_string(),
    };
    // How large a window is without it, only the path says.
    let scaling = ["tcp_window_scaling", "rfc1323", "Tcp1323Opts"].iter().any(|end| name.ends_with(end));
    let rate = if scaling { format!(": {}", unscaled_rate(setting)) } else { String::new() };
    is_off.then(|| setting.error("harmful", format!("{loss}{rate}"), Some(format!("{name} = 1"))))
}

fn sysctl(setting: &Setting<'_>, name: &str) -> Vec<Finding> {
    let value = setting.value.trim();
    let off = value == "0";
    match name {
        "net.ipv4.tcp_timestamps" if off => vec![setting.warning(
            "harmful",
            format!("saves 12 bytes a segment and gives up protection against wrapped sequence numbers, which wrap in {}", wraps(setting)),
            Some(format!("{name} = 1")),
        )],
        "net.ipv4.tcp_tw_recycle" if !off => vec![setting.error(
            "harmful",
            "refuses clients behind address translators at random; removed in Linux 4.12".to_owned(),
            Some("delete the line".to_owned()),
        )],
        "net.ipv4.tcp_tw_reuse" if value == "1" => vec![setting.note(
            "no-gain",
            "makes no transfer faster: it lets outgoing connections reuse ports sooner; the kernel's document asks not to change it without advice".to_owned(),
        )],
        "net.ipv4.ip_no_pmtu_disc" if !off => vec![setting.warning(
            "harmful",
            "one ICMP message now takes the path MTU down to its smallest; against black holes use net.ipv4.tcp_mtu_probing = 1".to_owned(),
            Some("net.ipv4.tcp_mtu_probing = 1".to_owned()),
        )],
        "kern.polling.enable" if !off => {
            let note = setting.span_of(setting.knob).map_or("", |span| span.note.as_str());
            let words = format!("{note}; a packet waits for the next tick of the clock, which costs latency");
            vec![setting.note("needs-kernel-option", words)]
        }
        "net.inet.tcp.inflight_enable" | "net.inet.tcp.inflight.enable" if value == "1" => {
            inflight(setting, name).into_iter().collect()
        }
        "net.ipv4.tcp_congestion_control" => congestion_control(setting).into_iter().collect(),
        "net.inet.tcp.cc.algorithm" => congestion_control(setting).or_else(|| not_loaded(setting)).into_iter().collect(),
        "net.ipv4.tcp_mem" => tcp_mem(setting),
        "net.ipv4.tcp_retries2" if number(value).is_some_and(|n| (1..8).contains(&n)) => vec![setting.warning(
            "harmful",
            format!("{value} retransmissions are over in less than the 100 s that RFC 1122 (4.2.3.5) asks for: connections are dropped in outages that they would survive; the kernel's document says 8 at least"),
            Some(format!("{name} = 15")),
        )],
        "net.ipv4.tcp_syn_retries" => syns(setting).into_iter().collect(),
        "net.inet.tcp.initcwnd_segments" => large_start(setting).into_iter().collect(),
        "net.inet.tcp.abc_l_var" if number(value).is_some_and(|n| n > 2) => vec![setting.warning(
            "harmful",
            "RFC 3465 (2.3) bounds what one acknowledgement adds in slow start at two segments: beyond, an ACK that covers many segments releases a burst".to_owned(),
            Some(format!("{name}=2")),
        )],
        "net.inet.tcp.delayed_ack" if off => vec![setting.note("no-gain", EACH_AT_ONCE.to_owned())],
        "net.inet.tcp.autorcvbufmax" | "net.inet.tcp.autosndbufmax" | "kern.ipc.maxsockbuf"
            if setting.platform.family == Family::MacOs && number(value).is_some_and(|bytes| bytes > bsd::MACOS_LARGEST) =>
        {
            let words = format!("macOS refuses socket buffers above {}", Bytes::new(bsd::MACOS_LARGEST));
            vec![setting.error("out-of-range", words, Some(format!("{name}={}", bsd::MACOS_LARGEST)))]
        }
        "kern.ipc.maxsockbuf" if setting.platform.family == Family::FreeBsd => ceiling(setting).into_iter().collect(),
        "net.inet.tcp.tso" if off => no_tso(setting).into_iter().collect(),
        "net.ipv4.tcp_rmem" | "net.ipv4.tcp_wmem" => linux_buffers(setting, name),
        "net.core.rmem_max" | "net.core.wmem_max" => {
            let automatic = if name.contains("rmem") { "net.ipv4.tcp_rmem" } else { "net.ipv4.tcp_wmem" };
            vec![setting.note(
                "not-automatic",
                format!("bounds only what applications ask with setsockopt; automatic sizing is bounded by the third value of {automatic}"),
            )]
        }
        "net.core.netdev_max_backlog" if number(value).is_some_and(|n| n >= 100_000) => vec![setting.warning(
            "too-large",
            "such a queue hides an overloaded processor behind latency; look for drops in /proc/net/softnet_stat first".to_owned(),
            None,
        )],
        "net.inet.tcp.recvbuf_max" | "net.inet.tcp.sendbuf_max" | "net.inet.tcp.recvspace" | "net.inet.tcp.sendspace" => {
            freebsd_space(setting, name)
        }
        _ => Vec::new(),
    }
}

/// Delayed acknowledgement switched off.
pub(super) const EACH_AT_ONCE: &str = "acknowledges each segment at once: twice the acknowledgements of bulk data; what waited for a delayed one no longer does";

/// A congestion control that a system doesn't have.
fn congestion_control(setting: &Setting<'_>) -> Option<Finding> {
    /// Linux 6.18's (net/ipv4/Kconfig), and Google's successors of BBR.
    const LINUX: [&str; 19] = [
        "reno",
        "cubic",
        "bbr",
        "bbr2",
        "bbr3",
        "bic",
        "cdg",
        "dctcp",
        "highspeed",
        "htcp",
        "hybla",
        "illinois",
        "lp",
        "nv",
        "scalable",
        "vegas",
        "veno",
        "westwood",
        "yeah",
    ];
    /// FreeBSD's modules cc_*(4).
    const FREEBSD: [&str; 8] = ["newreno", "cubic", "htcp", "hd", "vegas", "chd", "cdg", "dctcp"];
    let known: Vec<&str> = match setting.platform.family {
        Family::Linux => LINUX.to_vec(),
        Family::FreeBsd => FREEBSD.to_vec(),
        _ => return None,
    };
    let written = setting.value.trim().trim_matches(['"', '\'']);
    if known.contains(&written) {
        return None;
    }
    let title = setting.platform.family.title();
    if let Some(meant) = known.iter().find(|name| name.len() > 2 && meant::is_slip(written, name)) {
        let words = format!("{} is no congestion control of {title}; did you mean {meant}?", shown(written));
        return Some(setting.warning("misspelt", words, Some(format!("write {meant}"))));
    }
    let words = format!(
        "{} is none of {title}'s own congestion controls: the line fails where no module of that name is loaded",
        shown(written)
    );
    Some(setting.note("unknown-algorithm", words))
}

/// A line of the boot loader's file that loads a congestion control of FreeBSD.
pub(super) fn module(setting: &Setting<'_>) -> Option<Finding> {
    let Address::Sysctl(name) = setting.knob else { return None };
    let control = name.strip_prefix("cc_")?.strip_suffix("_load")?;
    if setting.platform.family != Family::FreeBsd {
        return None;
    }
    let words = format!(
        "loads the module of the congestion control {control}; net.inet.tcp.cc.algorithm chooses it (mod_cc(4))"
    );
    Some(finding(setting.line, Level::Ok, "fine", words))
}

/// A congestion control of FreeBSD that is a module: the kernel has NewReno alone, and CUBIC from 14.0 on (mod_cc(4)).
fn not_loaded(setting: &Setting<'_>) -> Option<Finding> {
    let name = setting.value.trim().trim_matches(['"', '\'']);
    let built_in = setting.catalogue.is_at_least(&setting.platform.version, "14.0") != Some(false);
    if name == "newreno" || (name == "cubic" && built_in) {
        return None;
    }
    let module = format!("cc_{name}_load");
    let loads = setting.all.keys().any(|knob| matches!(knob, Address::Sysctl(name) if *name == module));
    let words = format!("{name} is a module (mod_cc(4)): without it the line fails, and the default stays");
    (!loads).then(|| Finding {
        fix: Some(format!("`kldload cc_{name}` now, and {module}=\"YES\" in /boot/loader.conf")),
        ..setting.note("needs-module", words)
    })
}

/// An initial window above that of RFC 6928.
pub(super) fn large_start(setting: &Setting<'_>) -> Option<Finding> {
    let segments = number(setting.value).filter(|segments| *segments > 10)?;
    let words = format!(
        "an initial window of {segments} segments is a burst into a path of which nothing is known; RFC 6928 has ten: short queues drop it"
    );
    Some(setting.note("above-usual", words))
}

/// How long connect() tries on Linux, and whether a peer that is away for a moment is never reached.
fn syns(setting: &Setting<'_>) -> Option<Finding> {
    let retries = number(setting.value)?;
    let seconds = gives_up_after(setting, retries);
    if retries >= 3 {
        let words = format!("how often a SYN is retransmitted: connect() gives up after {seconds} s");
        return Some(finding(setting.line, Level::Ok, "fine", words));
    }
    let usual = setting
        .default_of(setting.knob)
        .map_or_else(String::new, |usual| format!(" instead of {} s", gives_up_after(setting, usual)));
    let words = format!(
        "connect() gives up after about {seconds} s{usual}: a peer that is away for a moment is never reached, and no transfer is faster"
    );
    Some(setting.note("no-gain", words))
}

/// The seconds after which Linux' connect() gives up: the first timeout is a second, each further one twice as long, up to two
/// minutes. From 6.5 on as many as `tcp_syn_linear_timeouts` come first, a second each, which `tcp_syn_retries` doesn't count
/// (`tcp_write_timeout` and `tcp_retransmit_timer` in net/ipv4/tcp_timer.c).
fn gives_up_after(setting: &Setting<'_>, retries: u64) -> u64 {
    const LONGEST: u64 = 120;
    const MOST: u64 = 127;
    let linear = Address::sysctl("net.ipv4.tcp_syn_linear_timeouts");
    let given = setting.all.get(&linear).and_then(|text| number(text)).map(|given| given.min(MOST));
    let has = setting.span_of(&linear).is_some_and(|span| span.honoured != Honoured::Absent);
    let linear = given.or_else(|| setting.default_of(&linear)).filter(|_| has).unwrap_or(0);
    let doubled: u64 = (0..=retries.min(MOST)).map(|nth| (1 << nth.min(7)).min(LONGEST)).sum();
    linear + doubled
}

/// The time in which sequence numbers wrap at the path's rate.
fn wraps(setting: &Setting<'_>) -> String {
    let Some((rate, _)) = setting.path else { return "34 s at 1 Gbit/s".to_owned() };
    let seconds = (1_u64 << 35) as f64 / rate.bps().max(1) as f64;
    let digits = usize::from(seconds < 10.0);
    format!("{seconds:.digits$} s at {rate}")
}

/// The note on what the processor does instead of the adapter, `why`, where the path is too slow for that to be a limit.
pub(super) fn no_limit(setting: &Setting<'_>, why: &str) -> Option<Finding> {
    let (rate, _) = setting.path.filter(|(rate, _)| *rate < FAST)?;
    Some(setting.note("no-gain", format!("{why}; at {rate} that is no limit, and no gain")))
}

/// Segmentation in the adapter, switched off for all of them.
fn no_tso(setting: &Setting<'_>) -> Option<Finding> {
    let why = "the processor cuts every large send into segments itself";
    no_limit(setting, why).or_else(|| {
        Some(setting.warning(
            "harmful",
            format!("{why}; meant for a faulty driver"),
            Some("net.inet.tcp.tso=1".to_owned()),
        ))
    })
}

/// What a window without scaling carries on this path, or on one of 80 ms.
fn unscaled_rate(setting: &Setting<'_>) -> String {
    let rtt = setting.path.map_or(Micros::from_millis(80), |(_, rtt)| rtt);
    window_limited_rate(UNSCALED, rtt).map_or_else(String::new, |rate| format!("{rate} at {rtt}"))
}

/// An offload of Linux that is switched off.
fn offload_off(setting: &Setting<'_>, device: &str, offload: &str) -> Option<Finding> {
    let why = match offload {
        "tso" | "gso" => "the processor cuts every large send into segments itself",
        "gro" => "each received segment passes the stack by itself: several times the work for the processor",
        _ => return None,
    };
    if !setting.value.trim().eq_ignore_ascii_case("off") {
        return None;
    }
    if let Some(note) = no_limit(setting, why) {
        return Some(note);
    }
    let words =
        format!("{why}; meant for a faulty driver, or for captures that shall show packets as they are on the wire");
    Some(setting.warning("harmful", words, Some(format!("ethtool -K {} {offload} on", shown(device)))))
}

/// FreeBSD's limiter of data in flight, which is one itself.
fn inflight(setting: &Setting<'_>, name: &str) -> Option<Finding> {
    let switches_off = setting.catalogue.is_at_least(&setting.platform.version, "6.1") == Some(true);
    match Inflight::judge(switches_off, setting.path.map(|(_, rtt)| rtt)) {
        Inflight::SwitchesItselfOff => None,
        Inflight::Harms => Some(setting.warning("harmful", Inflight::HARM.to_owned(), Some(format!("{name}=0")))),
        Inflight::MayBound => Some(setting.note("estimated-window", Inflight::may_bound(name))),
    }
}

/// The window of a route is a clamp: no connection over it offers more, and one that needs no scaling gets none
/// (`tcp_select_initial_window` in Linux' net/ipv4/tcp_output.c).
fn route_window(setting: &Setting<'_>) -> Option<Finding> {
    // 0 is no bound.
    let window = number(setting.value).filter(|bytes| *bytes > 0).map(Bytes::new)?;
    let fix = Some("leave `window` out, or write `window 0`: automatic sizing takes over".to_owned());
    if let Some((bdp, _)) = setting.wanted().filter(|(bdp, _)| window < *bdp) {
        let (rate, rtt) = setting.path?;
        let reached = window_limited_rate(window, rtt)
            .map_or_else(String::new, |reached| format!(" and caps it at about {reached}"));
        let words = format!(
            "{rate} x {rtt} / 8 = {bdp} must be in flight; a route's window of {window} can't hold that{reached}"
        );
        return Some(setting.warning("too-small", words, fix));
    }
    if window <= UNSCALED && setting.path.is_none() {
        let words = format!(
            "no connection over this route offers more than {window}, and none of them window scaling: {}",
            unscaled_rate(setting)
        );
        return Some(setting.warning("harmful", words, fix));
    }
    let words = format!("no connection over this route offers more than {window}, whatever its path takes");
    Some(setting.note("clamps-window", words))
}

fn tcp_mem(setting: &Setting<'_>) -> Vec<Finding> {
    let Some([low, pressure, high]) = three(setting.value) else {
        return vec![malformed(setting, "three numbers of pages")];
    };
    if !(low <= pressure && pressure <= high) {
        return vec![setting.error("not-ascending", "the three values must be ascending".to_owned(), None)];
    }
    let bytes = Bytes::new(high.saturating_mul(4096));
    if meant_as_bytes([low, pressure, high]) {
        return vec![setting.error(
            "wrong-unit",
            format!("the unit is pages, not bytes: {high} pages of 4,096 B are {bytes}"),
            Some("delete the line: the kernel sizes it by memory".to_owned()),
        )];
    }
    vec![setting.note("machine-wide", format!("bounds all TCP sockets together at {bytes} with pages of 4,096 B; the kernel's own value follows the memory"))]
}

/// Beyond this a socket that nobody uses costs too much.
const LARGE_INITIAL: u64 = 1 << 20;

fn linux_buffers(setting: &Setting<'_>, name: &str) -> Vec<Finding> {
    /// What memory pressure leaves to every socket: more than this is no small matter.
    const LARGE_LEAST: u64 = 1 << 20;
    /// Ten segments of 1,460 B as window are half of it.
    const SMALL_INITIAL: u64 = 2 * 10 * 1460;
    let Some([least, initial, largest]) = three(setting.value) else {
        return vec![malformed(setting, "three sizes in bytes: smallest, initial, largest")];
    };
    if !(least <= initial && initial <= largest) {
        return vec![setting.error(
            "not-ascending",
            "the three values must be ascending: smallest, initial, largest".to_owned(),
            None,
        )];
    }
    let mut found = Vec::new();
    let receives = name.ends_with("rmem");
    let usual = if receives { 131_072 } else { 16_384 };
    if receives && initial < SMALL_INITIAL {
        found.push(setting.warning(
            "small-initial",
            format!(
                "a connection begins with a window of half of {} at most, less than the ten segments of RFC 6928: each one starts more slowly",
                Bytes::new(initial)
            ),
            Some(format!("{name} = {least} {usual} {}", largest.max(usual))),
        ));
    }
    let (given, least) = (least, if least > usual { 4096 } else { least });
    if initial > LARGE_INITIAL {
        found.push(setting.warning(
            "large-initial",
            format!(
                "every socket starts with {}; the initial size need not fill a path, the largest does",
                Bytes::new(initial)
            ),
            Some(format!("{name} = {least} {usual} {largest}")),
        ));
    }
    if given > LARGE_LEAST {
        found.push(setting.warning(
            "large-least",
            format!("every socket keeps {} even where memory is short: the kernel's own is a page", Bytes::new(given)),
            Some(format!("{name} = 4096 {} {largest}", if initial > LARGE_INITIAL { usual } else { initial })),
        ));
    }
    found.extend(largest_of(setting, Bytes::new(largest), 2, |bytes| format!("{name} = {least} {initial} {bytes}")));
    found
}

/// Too small or too large for the path: `per_payload` bytes of buffer hold one byte of payload.
pub(super) fn largest_of(
    setting: &Setting<'_>,
    largest: Bytes,
    per_payload: u64,
    line: impl Fn(u64) -> String,
) -> Option<Finding> {
    /// Sixteen times what the path takes can only turn into queue and memory.
    const FAR_TOO_LARGE: u64 = 16;
    const HUGE: u64 = 512 << 20;
    if let Some((bdp, wanted)) = setting.wanted() {
        let (rate, rtt) = setting.path?;
        let fitting = Bytes::new(wanted.get().saturating_mul(per_payload)).round_up_to(4096);
        let smallest = bdp.get().saturating_mul(per_payload);
        // A window in whole segments ends below the largest one, by less than what an unscaled one holds.
        let most = UNSCALED.get() << LARGEST_SHIFT;
        if largest.get() < smallest && largest.get() / per_payload + UNSCALED.get() > most {
            let words = format!(
                "{rate} x {rtt} / 8 = {bdp} must be in flight, and no window is larger than {} (RFC 7323): use several connections",
                Bytes::new(most)
            );
            return Some(setting.note("at-the-limit", words));
        }
        if largest.get() < smallest {
            let reached = window_limited_rate(Bytes::new(largest.get() / per_payload), rtt);
            let reached = reached.map_or_else(String::new, |reached| format!(" and caps it at about {reached}"));
            return Some(setting.warning(
                "too-small",
                format!("{rate} x {rtt} / 8 = {bdp} must be in flight; a buffer of {largest} can't hold that{reached}"),
                Some(line(fitting.get())),
            ));
        }
        if largest.get() > fitting.get().saturating_mul(FAR_TOO_LARGE) && largest.get() > 64 << 20 {
            return Some(setting.note(
                "too-large",
                format!("{fitting} is enough for {rate} x {rtt}; the rest can only become queue and memory pressure"),
            ));
        }
    }
    // What this path takes is no matter of taste, however large.
    let fits = |wanted: Bytes| largest.get() <= wanted.get().saturating_mul(per_payload).saturating_mul(2);
    if setting.wanted().is_some_and(|(_, wanted)| fits(wanted)) {
        return None;
    }
    (largest.get() >= HUGE).then(|| {
        setting.warning(
            "too-large",
            format!(
                "one connection may take {largest}: a few slow readers put the whole machine under memory pressure"
            ),
            None,
        )
    })
}

/// What counts of FreeBSD's kern.ipc.maxsockbuf: a cluster of 2,048 B stands for its mbuf of 256 B, too.
const fn counts_of(ceiling: u64) -> u64 {
    ceiling / 9 * 8
}

/// How far a buffer grows below what the ceiling lets count. From 13.0 on receive buffers grow by halves (`tcp_autorcvbuf`),
/// and the first step that is refused is the last; before, and for send buffers, the steps are small.
fn grows_to(setting: &Setting<'_>, name: &str, counts: u64) -> u64 {
    let step = Address::sysctl("net.inet.tcp.recvbuf_inc");
    let by_halves = name.ends_with("recvbuf_max")
        && setting.span_of(&step).is_some_and(|span| span.honoured == Honoured::Absent)
        && setting.is_automatic();
    if !by_halves {
        return counts;
    }
    let space = Address::sysctl("net.inet.tcp.recvspace");
    let given = setting.all.get(&space).and_then(|text| number(text)).or_else(|| setting.default_of(&space));
    let mut size = given.unwrap_or(0).clamp(4096, counts.max(4096));
    while size.saturating_add(size / 2) <= counts {
        size += size / 2;
    }
    size
}

/// FreeBSD's ceiling of all buffers, which fills no path by itself.
fn ceiling(setting: &Setting<'_>) -> Option<Finding> {
    let counts = counts_of(number(setting.value)?);
    let (bdp, wanted) = setting.wanted()?;
    let (rate, rtt) = setting.path?;
    if !setting.is_automatic() || counts < bdp.get() {
        return None;
    }
    let short: Vec<(String, u64)> = ["recvbuf_max", "sendbuf_max"]
        .into_iter()
        .filter_map(|end| {
            let knob = Address::sysctl(&format!("net.inet.tcp.{end}"));
            // One that a line sets is judged there, and a space that holds the path needs no growing.
            let own = setting.default_of(&knob).filter(|_| !setting.all.contains_key(&knob))?;
            let space = Address::sysctl(&format!("net.inet.tcp.{}", end.replace("buf_max", "space")));
            let begins = setting.all.get(&space).and_then(|text| number(text)).unwrap_or(0);
            (own.max(begins) < bdp.get()).then(|| (knob.to_string(), own))
        })
        .collect();
    let (_, own) = short.first()?;
    let names: Vec<&str> = short.iter().map(|(name, _)| name.as_str()).collect();
    let lines: Vec<String> = names.iter().map(|name| format!("{name}={}", wanted.get().min(counts))).collect();
    let words = format!(
        "bounds what buffers may be; automatic sizing ends at {}, {} by default, which no line raises, and {rate} x {rtt} / 8 = {bdp} must be in flight",
        names.join(" and "),
        Bytes::new(*own)
    );
    Some(Finding { fix: Some(lines.join(", ")), ..setting.note("not-automatic", words) })
}

fn freebsd_space(setting: &Setting<'_>, name: &str) -> Vec<Finding> {
    let Some(bytes) = number(setting.value) else { return vec![malformed(setting, "a size in bytes")] };
    let knob = Address::sysctl("kern.ipc.maxsockbuf");
    let given = setting.all.get(&knob).and_then(|text| number(text));
    let ceiling = given.or_else(|| setting.default_of(&knob));
    let grows = name.ends_with("buf_max");
    // A release sets its maxima to its ceiling, which is no fault of a line that says the same.
    let is_own = given.is_none() && setting.default_of(setting.knob) == Some(bytes);
    let line = |bytes: u64| format!("{name}={bytes}");
    let needed = |bytes: u64| Bytes::new(bytes.saturating_mul(9).div_ceil(8)).round_up_to(4096).get();
    if let Some(ceiling) = ceiling.filter(|ceiling| u128::from(bytes) * 9 > u128::from(*ceiling) * 8) {
        let counts = counts_of(ceiling);
        let reached = grows_to(setting, name, counts);
        if grows && is_own {
            let both = |bytes: u64| format!("{}, after kern.ipc.maxsockbuf={}", line(bytes), needed(bytes));
            return largest_of(setting, Bytes::new(reached), 1, both).into_iter().collect();
        }
        let sure = given.is_some() || setting.span_of(&knob).is_some_and(|span| span.confirmed);
        let whose = match (given, sure) {
            (Some(_), _) => "",
            (None, true) => ", this version's default, which no line raises",
            (None, false) => ", this version's default (unverified), which no line raises",
        };
        let ends = format!("buffers stop growing at {}", Bytes::new(reached));
        let fills = setting.wanted().map(|(bdp, _)| bdp.get() <= reached);
        let (effect, enough) = match fills {
            _ if !grows => ("new sockets fail with ENOBUFS".to_owned(), false),
            Some(true) => (format!("{ends}, enough for this path"), true),
            Some(false) => (ends, false),
            None => (ends, bytes <= ceiling),
        };
        let words = format!(
            "{name} is more than 8/9 of kern.ipc.maxsockbuf = {ceiling}{whose}: mbufs are counted, too, so {} count, and {effect}",
            Bytes::new(counts)
        );
        let fix = Some(format!("kern.ipc.maxsockbuf={}, before this line", needed(bytes)));
        let level = match (enough, sure) {
            (true, _) => Level::Note,
            (false, true) => Level::Error,
            (false, false) => Level::Warning,
        };
        return vec![Finding { level, ..setting.error("conflicts-with", words, fix) }];
    }
    // Where buffers grow by themselves, a space is only where they begin, and no path has to fit into it.
    if let Some(way) = name.strip_suffix("space").filter(|_| setting.is_automatic()) {
        let switch = Address::sysctl(&format!("{way}buf_auto"));
        let off = setting.all.get(&switch).is_some_and(|value| value.trim() == "0");
        if !off && bytes > LARGE_INITIAL {
            let largest = Address::sysctl(&format!("{way}buf_max"));
            let wanted = setting.wanted().map_or(bytes, |(_, wanted)| wanted.get());
            let fits = ceiling.is_none_or(|ceiling| wanted <= counts_of(ceiling));
            let after = if fits { String::new() } else { format!(", after kern.ipc.maxsockbuf={}", needed(wanted)) };
            let words = format!(
                "every socket starts with {}; it need not fill a path, {largest} does, up to which buffers grow by themselves",
                Bytes::new(bytes)
            );
            let fix = Some(format!("delete the line, and {largest}={wanted}{after}"));
            return vec![setting.warning("large-initial", words, fix)];
        }
        let fits = setting.wanted().is_none_or(|(bdp, _)| Bytes::new(bytes) < bdp);
        if !off && fits {
            return Vec::new();
        }
    }
    largest_of(setting, Bytes::new(bytes), 1, line).into_iter().collect()
}

/// The MTU of an interface, or the frames of its driver.
pub(super) fn packet_size(setting: &Setting<'_>, property: &str) -> Vec<Finding> {
    let bytes = number(setting.value).and_then(|bytes| u32::try_from(bytes).ok());
    let (Some(bytes), true) = (bytes, ["mtu", "mtu ipv6", "*JumboPacket"].contains(&property)) else {
        return Vec::new();
    };
    let header = if property.starts_with("mtu") { 0 } else { ETHERNET_HEADER };
    let packet = bytes.saturating_sub(header);
    if header == 0
        && let Some(mtu) = mtu_of_frame(bytes)
    {
        let words = format!(
            "{bytes} is what drivers list, with the Ethernet header; an MTU is without it, and stations that are set to {bytes} there take packets of {mtu} B"
        );
        return vec![setting.warning("frame-for-mtu", words, Some(mtu.to_string()))];
    }
    if header > 0 && mtu_of_frame(bytes + header) == Some(bytes) {
        let words = format!(
            "the driver's figure counts the Ethernet header of {header} B: for an MTU of {bytes} it is {}",
            bytes + header
        );
        return vec![setting.warning("frame-for-mtu", words, Some((bytes + header).to_string()))];
    }
    // 20 of IPv4 and 8 of ICMP come to the payload of a ping.
    if property == "mtu" && [1472, 1464].contains(&bytes) {
        let mtu = bytes + 28;
        let words = format!(
            "{bytes} is the payload of the largest ping that passes where the MTU is {mtu} (20 of IPv4 and 8 of ICMP come to it): as an MTU it wastes 28 B of each packet"
        );
        return vec![setting.warning("ping-for-mtu", words, Some(mtu.to_string()))];
    }
    if packet > ETHERNET {
        let words = format!(
            "packets of {packet} B pass only where the other end and every switch take them, too; what does not drops them without a word. `fullpipe plan --mtu --peer-mtu --hop-mtu` finds the largest common size"
        );
        return vec![setting.note("all-must-agree", words)];
    }
    Vec::new()
}

/// A buffer that an application asks for.
fn socket(setting: &Setting<'_>, option: &str) -> Vec<Finding> {
    if option != "SO_RCVBUF" && option != "SO_SNDBUF" {
        return Vec::new();
    }
    let mut found = Vec::new();
    if let Some((bdp, wanted)) = setting.wanted()
        && let Some((rate, rtt)) = setting.path
        && let Some(bytes) = number(setting.value).map(Bytes::new)
        && bytes < bdp
    {
        let reached =
            window_limited_rate(bytes, rtt).map_or_else(String::new, |rate| format!(" and caps it at about {rate}"));
        found.push(setting.warning(
            "too-small",
            format!("{rate} x {rtt} / 8 = {bdp} must be in flight; a buffer of {bytes} can't hold that{reached}"),
            Some(if setting.is_automatic() {
                format!("{}, or leave the option out", wanted.get())
            } else {
                wanted.get().to_string()
            }),
        ));
    }
    let when = if option == "SO_RCVBUF" {
        "; set it before connect() or listen(), because the window scale is fixed in the SYN"
    } else {
        ""
    };
    let pins = if setting.is_automatic() {
        format!("an explicit {option} turns automatic sizing off for this socket: it keeps this size on every path")
    } else {
        format!("this socket keeps this {option} on every path")
    };
    found.push(setting.note("pins-buffer", format!("{pins}{when}")));
    found
}

pub(super) fn malformed(setting: &Setting<'_>, expected: &str) -> Finding {
    setting.error("malformed", format!("`{}` is not {expected}", shown(setting.value)), None)
}

/// A number in decimal or, as `reg add` takes it, with `0x`.
pub(super) fn number(text: &str) -> Option<u64> {
    let text = text.trim();
    let hex = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    hex.map_or_else(|| text.parse().ok(), |digits| u64::from_str_radix(digits, 16).ok())
}
