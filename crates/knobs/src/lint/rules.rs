//! The rules: what a value does that the person who copied it did not want.

use std::collections::BTreeMap;

use fullpipe_units::{Bytes, Micros, window_limited_rate};

use super::{Finding, Level, Setting, finding, meant, shown};
use crate::{
    Address, TuningLevel,
    catalogue::Honoured,
    packets::{ETHERNET, ETHERNET_HEADER, mtu_of_frame},
    planner::{
        netburner::{LEAST, MOST, POOL, free},
        templates::{ADAPTER, FAST},
    },
    reading::windows::{TEMPLATES, template_name},
    recipe::{ALL_TEMPLATES, Action, Step},
};

/// All rules that speak of a setting.
pub(super) fn apply(setting: &Setting<'_>) -> Vec<Finding> {
    match setting.knob {
        Address::Sysctl(name) => sysctl(setting, name),
        Address::Registry { value, .. } => registry(setting, value),
        Address::Netsh { parameter, .. } => netsh(setting, parameter),
        Address::TcpSetting { template, parameter } => template_parameter(setting, template, parameter),
        Address::Named { kind, name } if kind == "netoffload" || kind == "adapter" => offload(setting, name),
        Address::Named { kind, name } if kind == "call" => device_call(setting, name),
        Address::Named { kind, name } if kind == "transportfilter" => no_template(setting, name).into_iter().collect(),
        Address::Socket(option) => socket(setting, option),
        Address::Link { property, .. } if property.starts_with("*R") || property.starts_with("*Lso") => {
            adapter_offload(setting, property)
        }
        Address::Link { property, .. } => packet_size(setting, property),
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

/// A registry value that Windows reads under another key of TCP than the one that the recipe names.
pub(super) fn wrong_place(setting: &Setting<'_>) -> Option<Finding> {
    /// Below them nobody but TCP and its sockets has values of these names.
    const OURS: [&str; 2] =
        [r"HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\", r"HKLM\SYSTEM\CurrentControlSet\Services\AFD\"];
    let Address::Registry { key, value } = setting.knob else { return None };
    let below = |root: &str| key.get(..root.len()).is_some_and(|start| start.eq_ignore_ascii_case(root));
    if !OURS.into_iter().any(below) {
        return None;
    }
    let places: Vec<&str> = setting
        .catalogue
        .knobs
        .iter()
        .filter_map(|knob| match &knob.address {
            Address::Registry { key, value: name } if name.eq_ignore_ascii_case(value) => Some(key.as_str()),
            _ => None,
        })
        .collect();
    let first = places.first()?;
    let name = shown(value);
    let words = format!("{name} does nothing under this key: documented is {}", places.join(", and "));
    let fix = format!("set {name} under {first}, or delete the line");
    Some(setting.warning("wrong-place", words, Some(fix)))
}

fn sysctl(setting: &Setting<'_>, name: &str) -> Vec<Finding> {
    let value = setting.value.trim();
    let off = value == "0";
    let harmful = |why: &str| vec![setting.error("harmful", why.to_owned(), Some(format!("{name} = 1")))];
    match name {
        "net.ipv4.tcp_window_scaling" | "net.inet.tcp.rfc1323" if off => {
            harmful("without window scaling no window exceeds 65,535 B in either direction: 6.55 Mbit/s at 80 ms")
        }
        "net.ipv4.tcp_sack" | "net.inet.tcp.sack.enable" | "net.inet.tcp.sack" if off => {
            harmful("without selective acknowledgements each further loss in a window costs a round trip")
        }
        "net.ipv4.tcp_moderate_rcvbuf" | "net.inet.tcp.recvbuf_auto" | "net.inet.tcp.sendbuf_auto" | "net.inet.tcp.doautorcvbuf"
            if off =>
        {
            harmful("buffers stay at their initial size, whatever the path")
        }
        "net.ipv4.tcp_timestamps" if off => vec![setting.warning(
            "harmful",
            "saves 12 bytes a segment and gives up protection against wrapped sequence numbers, which wrap in 34 s at 1 Gbit/s".to_owned(),
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
        "net.inet.tcp.inflight_enable" | "net.inet.tcp.inflight.enable" if value == "1" => {
            inflight(setting, name).into_iter().collect()
        }
        "net.inet.tcp.path_mtu_discovery" if off => {
            harmful("routers cut packets that are too large, or the segments stay small, whatever the path takes")
        }
        "net.ipv4.tcp_mem" => tcp_mem(setting),
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

/// FreeBSD's limiter of data in flight, which is one itself.
fn inflight(setting: &Setting<'_>, name: &str) -> Option<Finding> {
    /// Below it the estimate is inefficient on a fast network (8.2 release notes), and 6.1 and later switch themselves off
    /// (net.inet.tcp.inflight.rttthresh, 6.1 release notes).
    const THRESHOLD: Micros = Micros::from_millis(10);
    let switches_off = setting.catalogue.is_at_least(&setting.platform.version, "6.1") == Some(true);
    let near = setting.path.is_none_or(|(_, rtt)| rtt < THRESHOLD);
    match (switches_off, near) {
        (true, true) => None,
        (false, true) => Some(setting.warning(
            "harmful",
            "holds each window down to an estimate, which is inefficient on a fast network below 10 ms of round-trip time (FreeBSD 8.2 release notes), and becomes the limiter".to_owned(),
            Some(format!("{name}=0")),
        )),
        (_, false) => Some(setting.note(
            "estimated-window",
            format!("holds each window down to an estimate; where transfers stay below their path, measure with {name}=0"),
        )),
    }
}

fn tcp_mem(setting: &Setting<'_>) -> Vec<Finding> {
    let Some([low, pressure, high]) = triple(setting.value) else {
        return vec![malformed(setting, "three numbers of pages")];
    };
    if !(low <= pressure && pressure <= high) {
        return vec![setting.error("not-ascending", "the three values must be ascending".to_owned(), None)];
    }
    // 16 GiB and more occur on large servers, but then as the kernel's own ratio 3 : 4 : 6. Three equal values, or a
    // first one of the size of one buffer, were meant as bytes.
    let bytes = Bytes::new(high.saturating_mul(4096));
    if high >= 1 << 22 && (low == high || low <= 1 << 16) {
        return vec![setting.error(
            "wrong-unit",
            format!("the unit is pages, not bytes: {high} pages of 4,096 B are {bytes}"),
            Some("delete the line: the kernel sizes it by memory".to_owned()),
        )];
    }
    vec![setting.note("machine-wide", format!("bounds all TCP sockets together at {bytes} with pages of 4,096 B; the kernel's own value follows the memory"))]
}

fn linux_buffers(setting: &Setting<'_>, name: &str) -> Vec<Finding> {
    /// Beyond this a socket that nobody uses costs too much.
    const LARGE_INITIAL: u64 = 1 << 20;
    let Some([least, initial, largest]) = triple(setting.value) else {
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
    if initial > LARGE_INITIAL {
        let usual = if name.ends_with("rmem") { 131_072 } else { 16_384 };
        found.push(setting.warning(
            "large-initial",
            format!(
                "every socket starts with {}; the initial size need not fill a path, the largest does",
                Bytes::new(initial)
            ),
            Some(format!("{name} = {least} {usual} {largest}")),
        ));
    }
    found.extend(largest_of(setting, Bytes::new(largest), 2, |bytes| format!("{name} = {least} {initial} {bytes}")));
    found
}

/// Too small or too large for the path: `per_payload` bytes of buffer hold one byte of payload.
fn largest_of(
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

fn freebsd_space(setting: &Setting<'_>, name: &str) -> Vec<Finding> {
    let Some(bytes) = number(setting.value) else { return vec![malformed(setting, "a size in bytes")] };
    let knob = Address::sysctl("kern.ipc.maxsockbuf");
    let given = setting.all.get(&knob).and_then(|text| number(text));
    let ceiling = given.or_else(|| setting.default_of(&knob));
    if let Some(ceiling) = ceiling.filter(|ceiling| u128::from(bytes) * 9 > u128::from(*ceiling) * 8) {
        let sure = given.is_some() || setting.span_of(&knob).is_some_and(|span| span.confirmed);
        let needed = Bytes::new(bytes.saturating_mul(9).div_ceil(8)).round_up_to(4096);
        let whose = match (given, sure) {
            (Some(_), _) => "",
            (None, true) => ", this version's default, which no line raises",
            (None, false) => ", this version's default (unverified), which no line raises",
        };
        let effect =
            if name.ends_with("buf_max") { "buffers stop growing below it" } else { "new sockets fail with ENOBUFS" };
        let found = setting.error(
            "conflicts-with",
            format!(
                "{name} is more than 8/9 of kern.ipc.maxsockbuf = {ceiling}{whose}: mbufs are counted, too, so {} count, and {effect}",
                Bytes::new(ceiling / 9 * 8)
            ),
            Some(format!("kern.ipc.maxsockbuf={}, before this line", needed.get())),
        );
        return vec![Finding { level: if sure { Level::Error } else { Level::Warning }, ..found }];
    }
    largest_of(setting, Bytes::new(bytes), 1, |bytes| format!("{name}={bytes}")).into_iter().collect()
}

fn registry(setting: &Setting<'_>, name: &str) -> Vec<Finding> {
    let value = number(setting.value);
    match name.to_ascii_lowercase().as_str() {
        "tcpackfrequency" => {
            let words = match value {
                Some(0) => "0 is taken as 2, the default",
                _ => {
                    "this is delayed acknowledgement at the receiver, not Nagle's algorithm; 1 doubles the acknowledgements of bulk data, and Microsoft does not recommend changing it without study"
                }
            };
            vec![setting.note("copied-advice", words.to_owned())]
        }
        "tcpwindowsize" | "globalmaxtcpwindowsize" => fixed_window(setting, name, value),
        "mtu" => packet_size(setting, "mtu"),
        "tcp1323opts" if value == Some(0) => vec![setting.error(
            "harmful",
            "without window scaling no window exceeds 65,535 B".to_owned(),
            Some("Tcp1323Opts = 1".to_owned()),
        )],
        "sackopts" if value == Some(0) => vec![setting.error(
            "harmful",
            "without selective acknowledgements each further loss in a window costs a round trip".to_owned(),
            Some("SackOpts = 1".to_owned()),
        )],
        "disabletaskoffload" if value.is_some_and(|value| value != 0) => vec![no_offload(setting)],
        "nonbesteffortlimit" => {
            vec![setting.note(
                "does-nothing",
                "no bandwidth is reserved unless a program asks for it: there is nothing to free (KB316666)".to_owned(),
            )]
        }
        "enablepmtudiscovery" if value == Some(0) => vec![setting.error(
            "harmful",
            "packets off the subnet shrink to 576 bytes".to_owned(),
            Some("EnablePMTUDiscovery = 1".to_owned()),
        )],
        _ => Vec::new(),
    }
}

fn no_offload(setting: &Setting<'_>) -> Finding {
    setting.warning(
        "harmful",
        "the processor computes every checksum and cuts every segment itself: meant for finding a faulty driver"
            .to_owned(),
        Some("delete the line".to_owned()),
    )
}

/// The MTU of an interface, or the frames of its driver.
fn packet_size(setting: &Setting<'_>, property: &str) -> Vec<Finding> {
    let bytes = number(setting.value).and_then(|bytes| u32::try_from(bytes).ok());
    let (Some(bytes), true) = (bytes, ["mtu", "*JumboPacket"].contains(&property)) else { return Vec::new() };
    let header = if property == "mtu" { 0 } else { ETHERNET_HEADER };
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
    if header == 0 && [1472, 1464].contains(&bytes) {
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

/// A receive window before Vista.
fn fixed_window(setting: &Setting<'_>, name: &str, value: Option<u64>) -> Vec<Finding> {
    let Some(bytes) = value else { return vec![malformed(setting, "a number of bytes")] };
    let scaling = setting.all.iter().any(|(knob, value)| {
        matches!(knob, Address::Registry { value: name, .. } if name.eq_ignore_ascii_case("Tcp1323Opts"))
            && number(value).is_some_and(|bits| bits & 1 == 1)
    });
    let mut found = Vec::new();
    if bytes > 65_535 && setting.platform.version.eq_ignore_ascii_case("nt4") {
        let words = "NT 4.0 does not support the window-scale option: a window ends at 65,535 B (KB199947)";
        found.push(setting.error("not-accepted", words.to_owned(), Some("64240".to_owned())));
    } else if bytes > 65_535 && !scaling {
        found.push(setting.error(
            "needs-scaling",
            format!("{} needs the window-scale option, and no line sets Tcp1323Opts to 1 or 3", Bytes::new(bytes)),
            Some("Tcp1323Opts = 1, or a window of 64240".to_owned()),
        ));
    }
    let of_adapter =
        matches!(setting.knob, Address::Registry { key, .. } if key.to_ascii_lowercase().contains(r"\interfaces\"));
    let xp = setting.platform.version.eq_ignore_ascii_case("xp");
    if bytes > 65_535 && xp && name.eq_ignore_ascii_case("TcpWindowSize") {
        let words = if of_adapter {
            "XP takes 0 to 65,535 for one adapter (KB314053): a larger value was seen to be passed over without a word, and 17,520 B used"
        } else {
            "KB314053 gives XP's TcpWindowSize a range up to 65,535, its texts for 2000 and 2003 a larger one"
        };
        let words = format!("{words}; read back what came of {}", Bytes::new(bytes));
        if of_adapter {
            found.push(setting.error("not-accepted", words, Some("64240".to_owned())));
        } else if scaling {
            found.push(setting.note("read-back", words));
        }
    }
    let ceiling = setting.all.iter().find_map(|(knob, value)| match knob {
        Address::Registry { value: name, .. } if name.eq_ignore_ascii_case("GlobalMaxTcpWindowSize") => number(value),
        _ => None,
    });
    if let Some(ceiling) = ceiling.filter(|ceiling| bytes > *ceiling) {
        found.push(setting.error(
            "above-ceiling",
            format!(
                "{} is above GlobalMaxTcpWindowSize = {ceiling} of this file, which caps every window",
                Bytes::new(bytes)
            ),
            Some(format!("GlobalMaxTcpWindowSize = {bytes}, or {ceiling} here")),
        ));
    }
    if bytes % 1460 != 0 {
        found.push(
            setting.note(
                "not-whole-segments",
                format!("{} is no multiple of 1,460 B; Windows rounds it", Bytes::new(bytes)),
            ),
        );
    }
    // What the plan says, too: in whole segments, and no larger than this line may be.
    let unscaled = 65_535 / 1460 * 1460;
    let plain = setting.wanted().is_some_and(|(bdp, _)| bdp.get() <= unscaled);
    let nt4 = setting.platform.version.eq_ignore_ascii_case("nt4");
    found.extend(largest_of(setting, Bytes::new(bytes), 1, |bytes| {
        let whole = bytes.div_ceil(1460).saturating_mul(1460);
        match () {
            () if plain => unscaled.min(whole).to_string(),
            () if nt4 => format!("{unscaled}, the most of NT 4.0"),
            () if xp && of_adapter => {
                format!("delete the line, and for all adapters TcpWindowSize = {whole} with Tcp1323Opts = 1")
            }
            () if scaling => whole.to_string(),
            () => format!("{whole}, with Tcp1323Opts = 1"),
        }
    }));
    found
}

fn netsh(setting: &Setting<'_>, parameter: &str) -> Vec<Finding> {
    let value = setting.value.to_ascii_lowercase();
    match (parameter, value.as_str()) {
        ("autotuninglevel", level) => tuning_level(setting, level),
        ("rss", "disabled") => vec![switched_off(setting, "*RSS", "netsh interface tcp set global rss=enabled")],
        ("rsc", "disabled") => vec![switched_off(setting, "*Rsc", "netsh interface tcp set global rsc=enabled")],
        ("netdma", "enabled") if other_is(setting, "chimney", "enabled") => vec![setting.warning(
            "conflicts-with",
            "NetDMA and TCP Chimney can't be used together, and another line enables TCP Chimney".to_owned(),
            Some("netsh interface tcp set global chimney=disabled".to_owned()),
        )],
        ("autotuning", "off") => vec![setting.error(
            "harmful",
            "send buffers stay at their fixed size, whatever the path".to_owned(),
            Some("netsh winsock set autotuning on".to_owned()),
        )],
        _ => Vec::new(),
    }
}

/// Whether the recipe gives another parameter of `netsh interface tcp set global` this value.
fn other_is(setting: &Setting<'_>, parameter: &str, wanted: &str) -> bool {
    let knob = Address::Netsh { context: "tcp global".to_owned(), parameter: parameter.to_owned() };
    setting.all.get(&knob).is_some_and(|value| value.eq_ignore_ascii_case(wanted))
}

/// The automatic tuning level, by netsh or for a template.
fn tuning_level(setting: &Setting<'_>, level: &str) -> Vec<Finding> {
    let fix = Some(match setting.knob {
        Address::TcpSetting { template, .. } => {
            format!("Set-NetTCPSetting -SettingName {} -AutoTuningLevelLocal Normal", shown(template))
        }
        _ => "netsh interface tcp set global autotuninglevel=normal".to_owned(),
    });
    let window = match TuningLevel::named(level) {
        Some(low @ (TuningLevel::Disabled | TuningLevel::HighlyRestricted | TuningLevel::Restricted)) => {
            low.largest_window()
        }
        Some(TuningLevel::Experimental) => {
            let words = "for research: it can hurt common uses much, says netsh itself";
            return vec![setting.warning("harmful", words.to_owned(), fix)];
        }
        Some(TuningLevel::Normal) => return Vec::new(),
        None if level == "default" => return Vec::new(),
        None => return vec![malformed(setting, "disabled, highlyrestricted, restricted, normal or experimental")],
    };
    let (rtt, of_path) = match setting.path {
        Some((_, rtt)) => (rtt, ""),
        None => (Micros::from_millis(80), " for example"),
    };
    let capped =
        window_limited_rate(window, rtt).map_or_else(String::new, |rate| format!(": {rate} at {rtt}{of_path}"));
    let words = format!("holds every receive window down to {window}{capped}");
    let enough = setting.wanted().is_some_and(|(bdp, _)| bdp <= window);
    if enough && level != "disabled" {
        return vec![setting.note("lowers-ceiling", format!("{words}; enough for this path, and no gain"))];
    }
    vec![setting.error("harmful", words, fix)]
}

/// A template that there is none of.
fn no_template(setting: &Setting<'_>, template: &str) -> Option<Finding> {
    if template == ALL_TEMPLATES || template_name(template).is_some() {
        return None;
    }
    let lower = template.to_ascii_lowercase();
    if let Some(meant) = TEMPLATES.into_iter().find(|known| meant::is_slip(&lower, &known.to_ascii_lowercase())) {
        let words = format!("there is no template {}; did you mean {meant}?", shown(template));
        return Some(setting.error("misspelt", words, Some(format!("write {meant}"))));
    }
    let words = format!("there is no template {}: Windows has {}", shown(template), TEMPLATES.join(", "));
    Some(setting.error("no-template", words, None))
}

fn template_parameter(setting: &Setting<'_>, template: &str, parameter: &str) -> Vec<Finding> {
    if let Some(none) = no_template(setting, template) {
        return vec![none];
    }
    let value = setting.value.to_ascii_lowercase();
    let bounds = |low: u64, high: u64, step: u64| {
        let bad = number(&value).is_none_or(|n| n < low || n > high || n % step != 0);
        bad.then(|| {
            setting.error(
                "out-of-range",
                format!("{parameter} takes {low} to {high} in steps of {step}, not `{}`", shown(setting.value)),
                None,
            )
        })
    };
    let mut level = Vec::new();
    let found = match parameter.to_ascii_lowercase().as_str() {
        "congestionprovider" => provider(setting, template, &value),
        "autotuninglevellocal" => {
            level = tuning_level(setting, &value);
            None
        }
        "delayedacktimeoutms" if bounds(10, 600, 10).is_none() => delayed_ack(setting, template, &value),
        "delayedackfrequency" if number(&value).is_some_and(|n| n > 2) => Some(setting.warning(
            "harmful",
            format!("acknowledges every {value} segments only; RFC 9293 (3.8.6.3) asks for one for every second full segment at least: the peer's sending slows down by that"),
            Some("2, the default".to_owned()),
        )),
        "minrtoms" => bounds(20, 300, 10),
        "initialcongestionwindowmss" => bounds(2, 64, 2),
        "delayedacktimeoutms" => bounds(10, 600, 10),
        "initialrtoms" => bounds(300, 3000, 10),
        "maxsynretransmissions" => bounds(2, 8, 1),
        _ => None,
    };
    let mut found: Vec<Finding> = found.into_iter().chain(level).collect();
    let custom = template.to_ascii_lowercase().ends_with("custom");
    let no_custom = setting.catalogue.is_at_least(&setting.platform.version, "8.1") == Some(false);
    if !custom && no_custom {
        // What can't be set there is no way out.
        for finding in &mut found {
            finding.fix = None;
        }
        found.push(setting.error(
            "read-only",
            format!("the template {} can't be changed on Server 2012, only custom ones", shown(template)),
            Some("Set-NetTCPSetting -SettingName Custom, with New-NetTransportFilter for the peer".to_owned()),
        ));
    } else if custom && found.is_empty() {
        let automatic =
            Address::TcpSetting { template: template.to_owned(), parameter: "AutomaticUseCustom".to_owned() };
        let honoured = setting.span_of(&automatic).map(|span| span.honoured);
        let or = if honoured == Some(Honoured::Absent) { "" } else { " (or AutomaticUseCustom)" };
        found.push(setting.note(
            "needs-filter",
            format!("no connection uses {} until New-NetTransportFilter{or} gives it to them", shown(template)),
        ));
    }
    found
}

/// The congestion providers of Windows, each with the first version that may have it. Microsoft's document of
/// Set-NetTCPSetting for Windows 8 and 8.1 has the first three alone. The builds of Windows 10 that brought CUBIC (1709),
/// NewReno and LEDBAT are not told apart here; BBR2 was seen from Windows 11 22H2 on.
const PROVIDERS: [(&str, &str); 7] = [
    ("default", "8"),
    ("ctcp", "8"),
    ("dctcp", "8"),
    ("cubic", "10"),
    ("newreno", "10"),
    ("ledbat", "10"),
    ("bbr2", "11"),
];

/// A congestion provider that this version has not.
fn no_provider(setting: &Setting<'_>, value: &str) -> Option<Finding> {
    // netsh has a word for none of the add-ons, and PowerShell takes the number of a provider.
    if value == "none" || number(value).is_some() {
        return None;
    }
    let version = &setting.platform.version;
    let has = |since: &str| setting.catalogue.is_at_least(version, since) != Some(false);
    let known: Vec<String> = PROVIDERS.iter().filter(|(_, since)| has(since)).map(|(name, _)| title(name)).collect();
    if known.iter().any(|name| name.eq_ignore_ascii_case(value)) {
        return None;
    }
    let near = PROVIDERS.iter().find(|(name, _)| meant::is_slip(value, name)).filter(|(_, since)| has(since));
    let written = shown(setting.value);
    let words = match (PROVIDERS.iter().find(|(name, _)| *name == value), near) {
        (Some((name, since)), _) => {
            format!("{} came with Windows {since}: {} has {}", title(name), setting.platform, known.join(", "))
        }
        (None, Some((name, _))) => format!("{written} is not a congestion provider; did you mean {}?", title(name)),
        (None, None) => {
            format!("{written} is not a congestion provider; {} has {}", setting.platform, known.join(", "))
        }
    };
    let fix = near.map(|(name, _)| format!("write {}", title(name)));
    Some(setting.error("no-provider", words, fix))
}

/// A provider as PowerShell spells it.
fn title(provider: &str) -> String {
    match provider {
        "default" => "Default".to_owned(),
        "newreno" => "NewReno".to_owned(),
        other => other.to_ascii_uppercase(),
    }
}

fn provider(setting: &Setting<'_>, template: &str, value: &str) -> Option<Finding> {
    if let Some(none) = no_provider(setting, value) {
        return Some(none);
    }
    let internet = template.to_ascii_lowercase().starts_with("internet") || template.eq_ignore_ascii_case("custom");
    match value {
        "dctcp" if internet => Some(setting.error(
            "harmful",
            "DCTCP must not be used on the public Internet (RFC 8257): without marks from every switch it takes more than its share or collapses".to_owned(),
            Some("CUBIC, or the default".to_owned()),
        )),
        "ctcp" if setting.catalogue.is_at_least(&setting.platform.version, "2019") == Some(true) => Some(setting.warning(
            "outdated",
            "replaces CUBIC, the newer default, by its predecessor".to_owned(),
            Some("delete the line".to_owned()),
        )),
        "bbr2" => Some(setting.warning(
            "harmful",
            "on Windows 11 24H2 it broke programs that use the loopback interface, local proxies above all".to_owned(),
            Some("CUBIC".to_owned()),
        )),
        _ => None,
    }
}

fn offload(setting: &Setting<'_>, name: &str) -> Vec<Finding> {
    let off = setting.value.eq_ignore_ascii_case("disabled");
    if name.eq_ignore_ascii_case("TaskOffload") && off {
        return vec![no_offload(setting)];
    }
    if name.eq_ignore_ascii_case("ReceiveSegmentCoalescing") && off {
        let fix = "Set-NetOffloadGlobalSetting -ReceiveSegmentCoalescing Enabled";
        return vec![switched_off(setting, "*Rsc", fix)];
    }
    if name.eq_ignore_ascii_case("ChecksumOffload") && off {
        return vec![
            setting.warning(
                "harmful",
                "the processor computes every checksum itself, and large send offload, which needs it, ends with it"
                    .to_owned(),
                Some("delete the line, or Enable-NetAdapterChecksumOffload".to_owned()),
            ),
        ];
    }
    if name.eq_ignore_ascii_case("ReceiveSideScaling") && off {
        let fix = "Set-NetOffloadGlobalSetting -ReceiveSideScaling Enabled, and Enable-NetAdapterRss";
        return vec![switched_off(setting, "*RSS", fix)];
    }
    Vec::new()
}

/// An offload of one adapter by the driver's keyword.
fn adapter_offload(setting: &Setting<'_>, keyword: &str) -> Vec<Finding> {
    if setting.value.trim() != "0" {
        return Vec::new();
    }
    let noun = ["Rss", "Rsc", "Lso"]
        .into_iter()
        .find(|noun| keyword.get(1..1 + noun.len()).is_some_and(|start| start.eq_ignore_ascii_case(noun)));
    let Some(noun) = noun else { return Vec::new() };
    vec![switched_off(setting, keyword, &format!("delete the line, or Enable-NetAdapter{noun}"))]
}

/// An offload that is switched off, by the beginning of its keyword; the plan has the same words for it.
fn switched_off(setting: &Setting<'_>, keyword: &str, fix: &str) -> Finding {
    let why = ADAPTER.iter().find(|(start, _)| keyword.starts_with(start)).map_or("", |(_, why)| why);
    let lso = if keyword.starts_with("*Lso") {
        " (checksums stay with the adapter); meant for a faulty driver or a virtual switch that has trouble with it"
    } else {
        ""
    };
    if let Some((rate, _)) = setting.path.filter(|(rate, _)| *rate < FAST) {
        return setting.note("no-gain", format!("{why}{lso}; at {rate} that is no limit, and no gain"));
    }
    let fix = Some(fix.to_owned());
    if keyword == "*RSS" {
        return setting.error("harmful", format!("without receive-side scaling {why}"), fix);
    }
    setting.warning("harmful", format!("{why}{lso}"), fix)
}

/// The timer of delayed acknowledgements must stay below the peer's and this machine's retransmission timeout.
fn delayed_ack(setting: &Setting<'_>, template: &str, value: &str) -> Option<Finding> {
    let ms = number(value)?;
    let least = setting.all.iter().find_map(|(knob, value)| match knob {
        Address::TcpSetting { template: other, parameter }
            if other.eq_ignore_ascii_case(template) && parameter.eq_ignore_ascii_case("MinRtoMs") =>
        {
            number(value)
        }
        _ => None,
    });
    if let Some(least) = least.filter(|least| ms >= *least) {
        let words = format!(
            "{ms} ms is not below MinRtoMs = {least} of this file, as Microsoft asks for: segments are retransmitted whose acknowledgement was only late"
        );
        return Some(setting.error("conflicts-with", words, Some(format!("a timeout below {least}"))));
    }
    (ms >= 200).then(|| {
        setting.warning(
            "harmful",
            format!("a single segment is acknowledged after {ms} ms: a peer that waits for it (Nagle's algorithm, requests in two writes) stops that long each time"),
            Some("40, or 10 in a data centre: the defaults of Server 2019".to_owned()),
        )
    })
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

/// The value of a call of a device's library that belongs to a line: sockets are set up one after another, so it is the
/// nearest of that name.
fn beside<'a>(steps: &'a [Step], line: u32, name: &str) -> Option<&'a str> {
    /// Calls for one socket stand together.
    const AROUND: usize = 64;
    let at = steps.partition_point(|step| step.line < line);
    let around = steps.get(at.saturating_sub(AROUND)..steps.len().min(at + AROUND))?;
    let of_name = around.iter().filter_map(|step| match &step.action {
        Action::Set(Address::Named { kind, name: called }, value) if kind == "call" && called == name => {
            Some((step.line, value.as_str()))
        }
        _ => None,
    });
    of_name.min_by_key(|(found, _)| found.abs_diff(line)).map(|(_, value)| value)
}

/// A count of buffers of a NetBurner socket.
fn device_call(setting: &Setting<'_>, name: &str) -> Vec<Finding> {
    if let Some(option) = name.strip_prefix("setsockoption ") {
        return opposed(setting, option).into_iter().collect();
    }
    let Some(count) = number(setting.value).filter(|_| name.ends_with("Buffers") || name.ends_with("ackbuffers"))
    else {
        return Vec::new();
    };
    let mut found = Vec::new();
    if count > MOST {
        found.push(setting.warning(
            "no-gain",
            format!("a window ends at 65,535 B = {MOST} buffers of 1,500 B: {count} take memory from other sockets and have no effect"),
            Some(MOST.to_string()),
        ));
    }
    let of_call = |wanted: &str| beside(setting.steps, setting.line, wanted).and_then(number);
    if name.starts_with("SetSocket") && count < LEAST {
        let words = format!("the range begins at {LEAST}, the default: {count} hold less than a short path needs");
        found.push(setting.warning("too-small", words, Some(LEAST.to_string())));
    }
    if name == "SetSocketTxBuffers" {
        let unacknowledged = of_call("SetSocketUnackBuffers").or_else(|| of_call("setsocketackbuffers"));
        if let Some(most) = unacknowledged.filter(|most| count > *most) {
            let words = format!(
                "{count} packets may wait to be sent, and only {most} may be sent and not acknowledged (SetSocketUnackBuffers): a round trip carries {most}, and the rest holds buffers of the pool"
            );
            let fix = format!("SetSocketUnackBuffers(fd, {}), or {most} here", count.min(MOST));
            found.push(setting.warning("above-unacknowledged", words, Some(fix)));
        }
    }
    if name == "SetOutOfOrderBuffers" {
        let receive = of_call("SetSocketRxBuffers");
        if let Some(receive) = receive.filter(|receive| count >= *receive) {
            found.push(setting.note(
                "more-than-received",
                format!("{count} is not below SetSocketRxBuffers = {receive}: one less is enough, because the packet that is missing has a place, too"),
            ));
        }
    }
    found
}

/// Nagle's algorithm off and PUSH off: the one sends at once what the other holds back.
fn opposed(setting: &Setting<'_>, option: &str) -> Option<Finding> {
    let is_on = beside(setting.steps, setting.line, "setsockoption SO_NONAGLE") == Some("on");
    // Held back for a while and let go afterwards is what the option is for.
    let let_go = setting.steps.iter().any(|step| {
        step.line > setting.line
            && matches!(&step.action, Action::Set(knob, value) if knob == setting.knob && value == "off")
    });
    // Said once, at the line that holds back.
    (option == "SO_NOPUSH" && setting.value == "on" && is_on && !let_go).then(|| {
        setting.warning(
            "conflicts-with",
            "SO_NONAGLE sends small writes at once, and SO_NOPUSH holds data until a segment is full: together they give neither short response times nor large segments for sure".to_owned(),
            Some("clrsockoption(fd, SO_NOPUSH) for short response times; clrsockoption(fd, SO_NONAGLE) for bulk data".to_owned()),
        )
    })
}

/// Calls for sockets that are opened in a loop: how many of them the pool of buffers holds.
pub(super) fn repeated(
    line: u32,
    times: Option<u64>,
    steps: &[Step],
    all: &BTreeMap<Address, String>,
) -> Option<Finding> {
    let call = |name: &str| beside(steps, line, name).and_then(number);
    let lists = [
        call("SetSocketRxBuffers"),
        call("SetSocketTxBuffers"),
        call("SetSocketUnackBuffers").or_else(|| call("setsocketackbuffers")),
        call("SetOutOfOrderBuffers"),
    ];
    let each: u64 = lists.into_iter().map(|count| count.unwrap_or(LEAST)).fold(0, u64::saturating_add);
    let size = Address::Named { kind: "build".to_owned(), name: "BUFFER_POOL_SIZE".to_owned() };
    let pool = all.get(&size).and_then(|value| number(value)).unwrap_or(POOL);
    let most = pool / each.max(1);
    if times.is_some_and(|times| times.saturating_mul(each) <= free(pool)) {
        return None;
    }
    let many = times.map_or_else(
        || "set in a loop whose end the file doesn't tell".to_owned(),
        |times| format!("set for {times} sockets: {} buffers at worst", times.saturating_mul(each)),
    );
    let words = format!(
        "{many}; each socket can take {each} of the pool of {pool}, so {most} of them run it dry, and then the device can't communicate at all"
    );
    let fix = format!(
        "fewer buffers for each, no more than {} sockets at once, or a larger BUFFER_POOL_SIZE; GetFreeCount() tells what is left",
        free(pool) / each.max(1)
    );
    Some(Finding { fix: Some(fix), ..finding(line, Level::Warning, "pool-runs-dry", words) })
}

fn malformed(setting: &Setting<'_>, expected: &str) -> Finding {
    setting.error("malformed", format!("`{}` is not {expected}", shown(setting.value)), None)
}

fn triple(value: &str) -> Option<[u64; 3]> {
    let mut words = value.split_whitespace().map(|word| word.parse().ok());
    let found = [words.next()??, words.next()??, words.next()??];
    words.next().is_none().then_some(found)
}

/// A number in decimal or, as `reg add` takes it, with `0x`.
fn number(text: &str) -> Option<u64> {
    let text = text.trim();
    let hex = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    hex.map_or_else(|| text.parse().ok(), |digits| u64::from_str_radix(digits, 16).ok())
}
