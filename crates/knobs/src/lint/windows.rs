//! Rules for Windows: registry values, netsh, templates and offloads.

use fullpipe_units::{Bytes, Micros, window_limited_rate};

use super::{
    Finding, Setting, meant,
    rules::{EACH_AT_ONCE, large_start, largest_of, malformed, no_limit, number, packet_size},
    shown,
};
use crate::{
    Address, TuningLevel,
    catalogue::Honoured,
    planner::{
        templates::{ADAPTER, too_short},
        windows::{SMALLEST_DEFAULT, queue_behind},
    },
    reading::windows::{TEMPLATES, template_name},
    recipe::{ALL_TEMPLATES, is_set_net_tcp_setting},
};

pub(super) fn registry(setting: &Setting<'_>, name: &str) -> Vec<Finding> {
    let value = number(setting.value);
    match name.to_ascii_lowercase().as_str() {
        "tcpackfrequency" => {
            let words = match value {
                Some(0) => "0 is taken as 2, the default",
                Some(2) => "2 is the default",
                _ => {
                    "this is delayed acknowledgement at the receiver, not Nagle's algorithm; 1 doubles the acknowledgements of bulk data, and Microsoft does not recommend changing it without study"
                }
            };
            vec![setting.note("copied-advice", words.to_owned())]
        }
        "tcpwindowsize" | "globalmaxtcpwindowsize" => fixed_window(setting, name, value),
        "mtu" => packet_size(setting, "mtu"),
        "disabletaskoffload" if value.is_some_and(|value| value != 0) => vec![no_offload(setting)],
        "tcpmaxdataretransmissions" => soon_given_up(setting, value).into_iter().collect(),
        "nonbesteffortlimit" => {
            vec![setting.note(
                "does-nothing",
                "no bandwidth is reserved unless a program asks for it: there is nothing to free (KB316666)".to_owned(),
            )]
        }
        _ => Vec::new(),
    }
}

/// Fewer retransmissions than Windows' own five: the timeout doubles each time.
fn soon_given_up(setting: &Setting<'_>, value: Option<u64>) -> Option<Finding> {
    const USUAL: u64 = 5;
    let times = value.filter(|times| *times < USUAL)?;
    let seconds = |times: u64| 0.3 * (2_u64 << times).saturating_sub(1) as f64;
    let words = format!(
        "a connection is dropped after {times} retransmissions, with the least timeout of 300 ms in {:.0} s, instead of {USUAL} in {:.0} s by default, where RFC 1122 (4.2.3.5) asks for 100 s: it does not survive a short outage. Old security baselines ask for 3, against peers that never acknowledge",
        seconds(times).max(1.0),
        seconds(USUAL)
    );
    Some(setting.warning("harmful", words, Some("delete the line: the default is 5".to_owned())))
}

fn no_offload(setting: &Setting<'_>) -> Finding {
    setting.warning(
        "harmful",
        "the processor computes every checksum and cuts every segment itself: meant for finding a faulty driver"
            .to_owned(),
        Some("delete the line".to_owned()),
    )
}

/// A receive window before Vista.
fn fixed_window(setting: &Setting<'_>, name: &str, value: Option<u64>) -> Vec<Finding> {
    let Some(bytes) = value else { return vec![malformed(setting, "a number of bytes")] };
    let scaling = setting.all.iter().any(|(knob, value)| {
        matches!(knob, Address::Registry { value: name, .. } if name.eq_ignore_ascii_case("Tcp1323Opts"))
            && number(value).is_some_and(|bits| bits & 1 == 1)
    });
    if bytes == 0 {
        let words = format!("{name} = 0 is no window: Windows takes its default");
        return vec![setting.warning("no-gain", words, Some("delete the line, or give a size".to_owned()))];
    }
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
    found.extend(only_a_ceiling(setting, name, bytes));
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
    let window = |bytes: u64| {
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
    };
    if name.eq_ignore_ascii_case("TcpWindowSize") {
        found.extend(more_than_a_slow_path_holds(setting, bytes, &window));
    }
    found.extend(largest_of(setting, Bytes::new(bytes), 1, window));
    found
}

/// The maximum of a window that no line sets.
fn only_a_ceiling(setting: &Setting<'_>, name: &str, bytes: u64) -> Option<Finding> {
    let sets_a_window =
        |knob: &Address| matches!(knob, Address::Registry { value, .. } if value.eq_ignore_ascii_case("TcpWindowSize"));
    if !name.eq_ignore_ascii_case("GlobalMaxTcpWindowSize") || setting.all.keys().any(sets_a_window) {
        return None;
    }
    let words = "this bounds the receive window and sets none: without TcpWindowSize, which no line of this file sets, Windows takes its default, 8,760 or 17,520 B on Ethernet (KB314053)";
    match setting.wanted() {
        Some((bdp, _)) if bdp.get() <= SMALLEST_DEFAULT => None,
        Some((bdp, _)) => Some(setting.warning(
            "only-a-ceiling",
            format!("{words}; this path takes {bdp}"),
            Some(format!("add TcpWindowSize = {bytes}")),
        )),
        None => Some(setting.note("only-a-ceiling", words.to_owned())),
    }
}

/// A window that is fixed so far above what a slow path holds that the rest waits in front of it.
fn more_than_a_slow_path_holds(setting: &Setting<'_>, bytes: u64, window: &impl Fn(u64) -> String) -> Option<Finding> {
    let (rate, rtt) = setting.path?;
    let (bdp, wanted) = setting.wanted()?;
    let wait = queue_behind(bytes, (rate, rtt))?;
    let fix = if bdp.get() <= SMALLEST_DEFAULT {
        "delete the line: the default fills this path".to_owned()
    } else {
        window(wanted.get())
    };
    let words = format!(
        "{rate} x {rtt} / 8 = {bdp} is the bandwidth-delay product; of a fixed window of {} the rest can stand in the bottleneck's queue, {wait} of it, and delays whatever comes behind",
        Bytes::new(bytes)
    );
    Some(setting.warning("too-large", words, Some(fix)))
}

pub(super) fn netsh(setting: &Setting<'_>, parameter: &str) -> Vec<Finding> {
    if let Address::Netsh { context, .. } = setting.knob
        && let Some(template) = context.strip_prefix("tcp supplemental ")
        && let Some(none) = no_template(setting, template)
    {
        return vec![none];
    }
    let value = setting.value.to_ascii_lowercase();
    match (parameter, value.as_str()) {
        ("autotuninglevel", level) => tuning_level(setting, level),
        ("wsh", "enabled") => vec![setting.warning(
            "harmful",
            "Windows may lower the autotuning level by itself on networks where it once took window scaling to fail, and only `show global` says so".to_owned(),
            Some("netsh interface tcp set heuristics disabled".to_owned()),
        )],
        ("rss", "disabled") => vec![switched_off(setting, "*RSS", "netsh interface tcp set global rss=enabled")],
        ("rsc", "disabled") => vec![switched_off(setting, "*Rsc", "netsh interface tcp set global rsc=enabled")],
        ("netdma", "enabled") if other_is(setting, "chimney", "enabled") => vec![setting.warning(
            "conflicts-with",
            "NetDMA and TCP Chimney can't be used together, and another line enables TCP Chimney".to_owned(),
            Some("netsh interface tcp set global chimney=disabled".to_owned()),
        )],
        ("chimney", "enabled" | "automatic") => vec![setting.note(
            "outdated",
            "TCP Chimney is deprecated, and Microsoft says not to use it: connections that an adapter handles can do less than the system's own".to_owned(),
        )],
        ("initialrto", _) => first_timeout(setting, &value).into_iter().collect(),
        ("hystart", "disabled") => vec![setting.warning(
            "harmful",
            "without HyStart slow start ends with a queue that overflows: the first losses of a connection are many (RFC 9406)".to_owned(),
            Some("netsh interface tcp set global hystart=default".to_owned()),
        )],
        ("prr", "disabled") => vec![setting.warning(
            "harmful",
            "without proportional rate reduction a sender falls silent or bursts while it recovers losses (RFC 9937)".to_owned(),
            Some("netsh interface tcp set global prr=default".to_owned()),
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
    let knob = Address::netsh("tcp global", parameter);
    setting.all.get(&knob).is_some_and(|value| value.eq_ignore_ascii_case(wanted))
}

/// The automatic tuning level, by netsh or for a template.
fn tuning_level(setting: &Setting<'_>, level: &str) -> Vec<Finding> {
    let fix = Some(match setting.knob {
        Address::TcpSetting { template, .. } if template == ALL_TEMPLATES => {
            "Get-NetTCPSetting | Set-NetTCPSetting -AutoTuningLevelLocal Normal".to_owned()
        }
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
        None => {
            let names = TuningLevel::ALL.map(TuningLevel::name);
            let meant = meant::word(level, &names);
            let expected = "disabled, highlyrestricted, restricted, normal or experimental";
            let near =
                meant.map_or_else(String::new, |meant| format!("; did you mean {}?", meant.to_ascii_lowercase()));
            let fix = meant.map(|meant| format!("write {}", meant.to_ascii_lowercase()));
            return vec![Finding { fix, ..malformed(setting, &format!("{expected}{near}")) }];
        }
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

/// Whether this version, Windows 8 or Server 2012, has one template that can be changed: Custom.
fn has_custom_alone(setting: &Setting<'_>) -> bool {
    setting.catalogue.is_at_least(&setting.platform.version, "8.1") == Some(false)
}

/// A template that there is none of.
pub(super) fn no_template(setting: &Setting<'_>, template: &str) -> Option<Finding> {
    if has_custom_alone(setting)
        && ["internetcustom", "datacentercustom"].contains(&template.to_ascii_lowercase().as_str())
    {
        let words = format!(
            "there is no template {} on {}: its only one that can be changed is Custom",
            shown(template),
            setting.platform
        );
        return Some(setting.error("no-template", words, Some("write Custom".to_owned())));
    }
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

pub(super) fn template_parameter(setting: &Setting<'_>, template: &str, parameter: &str) -> Vec<Finding> {
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
        "delayedackfrequency" if number(&value) == Some(1) => Some(setting.note(
            "no-gain",
            EACH_AT_ONCE.to_owned(),
        )),
        "minrtoms" => bounds(20, 300, 10).or_else(|| short_timeout(setting, template, &value)),
        "initialcongestionwindowmss" => bounds(2, 64, 2).or_else(|| large_start(setting)),
        "delayedacktimeoutms" => bounds(10, 600, 10),
        "initialrtoms" => bounds(300, 3000, 10).or_else(|| first_timeout(setting, &value)),
        "cwndrestart" if value == "true" => Some(setting.note(
            "slower-after-idle",
            "after a pause of a retransmission timeout the congestion window starts anew, as RFC 5681 (4.1) asks for: connections with pauses take the round trips of slow start again each time".to_owned(),
        )),
        "maxsynretransmissions" => bounds(2, 8, 1),
        _ => None,
    };
    let mut found: Vec<Finding> = found.into_iter().chain(level).collect();
    let custom = template.to_ascii_lowercase().ends_with("custom");
    if !custom && has_custom_alone(setting) {
        // What can't be set there is no way out.
        for finding in &mut found {
            finding.fix = None;
        }
        found.push(setting.error(
            "read-only",
            format!("the template {} can't be changed on Server 2012, only custom ones", shown(template)),
            Some("Set-NetTCPSetting -SettingName Custom, with New-NetTransportFilter for the peer".to_owned()),
        ));
    } else if custom && found.is_empty() && !has_filter(setting, template) {
        let automatic = Address::tcp_setting(template, "AutomaticUseCustom");
        let honoured = setting.span_of(&automatic).map(|span| span.honoured);
        let or = if honoured == Some(Honoured::Absent) { "" } else { " (or AutomaticUseCustom)" };
        found.push(setting.note(
            "needs-filter",
            format!("no connection uses {} until New-NetTransportFilter{or} gives it to them", shown(template)),
        ));
    }
    found
}

/// A least retransmission timeout that is too short for the path: as the plan says.
fn short_timeout(setting: &Setting<'_>, template: &str, value: &str) -> Option<Finding> {
    let (_, rtt) = setting.path?;
    let words = too_short(template, number(value)?, rtt)?;
    Some(setting.warning("harmful", words, Some("300, the default of Internet".to_owned())))
}

/// A timeout for SYNs other than the second of RFC 6298 (2.1).
fn first_timeout(setting: &Setting<'_>, value: &str) -> Option<Finding> {
    let ms = number(value)?;
    if ms >= 1000 {
        let usual = setting.default_of(setting.knob).filter(|usual| ms > *usual)?;
        let words = format!(
            "a lost SYN is sent again after {ms} ms only, and RFC 6298 (2.1) asks for a second: such a connection opens later, and none opens sooner"
        );
        return Some(setting.warning("harmful", words, Some(usual.to_string())));
    }
    if let Some((_, rtt)) = setting.path.filter(|(_, rtt)| *rtt >= Micros::from_millis(ms)) {
        let words = format!("on a path of {rtt} each SYN is sent again after {ms} ms, before its answer can be here");
        return Some(setting.warning("harmful", words, Some("1000".to_owned())));
    }
    let words = format!(
        "a SYN is sent again after {ms} ms, and RFC 6298 (2.1) asks for a second: a lost one costs less, a slow answer is asked for twice, and no transfer is faster"
    );
    Some(setting.note("no-gain", words))
}

/// Whether a line of the recipe gives the template to connections.
fn has_filter(setting: &Setting<'_>, template: &str) -> bool {
    setting.all.iter().any(|(knob, value)| match knob {
        Address::Named { kind, name } => kind == "transportfilter" && name.eq_ignore_ascii_case(template),
        Address::TcpSetting { parameter, .. } => {
            parameter.eq_ignore_ascii_case("AutomaticUseCustom") && value.eq_ignore_ascii_case("enabled")
        }
        _ => false,
    })
}

/// A parameter that a command does not have: the whole line is refused.
pub(super) fn no_such_parameter(setting: &Setting<'_>) -> Option<Finding> {
    Some(setting.error("no-parameter", without_parameter(setting)?, Some("delete it".to_owned())))
}

/// What a command says to a slip of one of its parameters; `None` where it takes it, as it does a beginning that stands for
/// `meant` alone.
pub(super) fn refuses(setting: &Setting<'_>, meant: &str) -> Option<String> {
    let written = match setting.knob {
        Address::TcpSetting { parameter, .. } | Address::Netsh { parameter, .. } => parameter.to_ascii_lowercase(),
        _ => return None,
    };
    let whole = meant.trim_start_matches('-').to_ascii_lowercase();
    without_parameter(setting).filter(|_| !whole.starts_with(&written))
}

fn without_parameter(setting: &Setting<'_>) -> Option<String> {
    let (command, parameter) = match setting.knob {
        Address::TcpSetting { parameter, .. } if !is_set_net_tcp_setting(parameter) => {
            ("Set-NetTCPSetting", format!("-{parameter}"))
        }
        Address::Netsh { context, parameter } if context == "tcp global" => {
            ("netsh interface tcp set global", parameter.clone())
        }
        _ => return None,
    };
    Some(format!("{command} has no parameter {}: it refuses the line, and nothing of it is set", shown(&parameter)))
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
    // What a filter gives to Custom may be a data centre's.
    let is_short = setting.path.is_some_and(|(_, rtt)| rtt < Micros::from_millis(10));
    let internet =
        template.to_ascii_lowercase().starts_with("internet") || (template.eq_ignore_ascii_case("custom") && !is_short);
    match value {
        "dctcp" if internet => Some(setting.error(
            "harmful",
            "DCTCP must not be used on the public Internet (RFC 8257): without marks from every switch it takes more than its share or collapses".to_owned(),
            Some("CUBIC, or the default".to_owned()),
        )),
        "dctcp" => Some(setting.note(
            "needs-marks",
            "DCTCP acts on marks of the switches: without ECN at both ends and on every switch it falls back to what losses tell, and beside other traffic it takes more than its share (RFC 8257, 5)".to_owned(),
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

pub(super) fn offload(setting: &Setting<'_>, name: &str) -> Vec<Finding> {
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
pub(super) fn adapter_offload(setting: &Setting<'_>, keyword: &str) -> Vec<Finding> {
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
    if let Some(note) = no_limit(setting, &format!("{why}{lso}")) {
        return note;
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
