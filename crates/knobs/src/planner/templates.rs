//! Windows 8 and later: what the parameters of the TCP templates and the offloads are, against what they should be.
//!
//! Only what a file tells is judged: nothing of it is needed where the machine has its defaults.

use fullpipe_units::{Micros, Rate, window_limited_rate};

use super::{
    PlatformRequest,
    platform::{Ask, Draft, number},
    windows::parameter,
};
use crate::{
    Address, TuningLevel,
    catalogue::Honoured,
    tuning_level::{self, LOCAL, Policy},
};

/// Up to this round-trip time the template Automatic gives connections Datacenter (Microsoft's blog on Server 2019).
const DATACENTER_RTT: Micros = Micros::from_millis(10);
/// From here on a processor that does the adapter's work is a limit.
pub(crate) const FAST: Rate = Rate::from_bps(1_000_000_000);

/// Offloads of an adapter by the beginning of the driver's keyword, and what it means to lack them.
pub(crate) const ADAPTER: [(&str, &str); 3] = [
    ("*RSS", "one processor takes all packets and becomes the limit"),
    ("*Rsc", "each received segment passes the stack by itself: several times the work for the processor"),
    ("*Lso", "the processor cuts every large send into segments itself"),
];

pub(super) fn plan(request: &PlatformRequest<'_>, draft: &mut Draft<'_>) {
    task_offload(request, draft);
    if !draft.is_at_least("8") {
        return;
    }
    let before = draft.plan.changes.len();
    let level = tuning_level::for_all();
    // The level of all templates is planned already, or none is to be.
    let memory = draft.pipe.window(request.goal).0.get().saturating_mul(draft.connections);
    let level_is_settled = draft.plan.changes.iter().any(|change| change.knob == level)
        || draft.settings().and_then(Policy::in_force).is_some()
        || request.memory_bound.is_some_and(|bound| bound.get() < memory);
    for (template, parameter, value) in draft.templates() {
        // They hold no values of their own, or none that modern applications get.
        if ["Automatic", "Compat"].contains(&template) {
            continue;
        }
        if parameter == LOCAL {
            if !level_is_settled {
                tuning_level(request, draft, template, value);
            }
            continue;
        }
        if let Some((to, why)) = wanted(request, draft, [template, parameter, value]) {
            change(draft, [template, parameter], to, why);
        }
    }
    offloads(request, draft);
    adapters(request, draft);
    let words = if !draft.is_at_least("8.1") {
        return;
    } else if draft.is_at_least("10") && !draft.is_at_least("2016") {
        "on Windows 10 MinRtoMs, InitialCongestionWindowMss, AutomaticUseCustom, CongestionProvider, CwndRestart and DelayedAckTimeoutMs are read-only: a script that sets them fails or does nothing"
    } else if draft.is_at_least("2016") && !draft.is_at_least("2022") {
        if draft.plan.changes.len() > before {
            "on Server 2016 and 2019 custom and built-in templates can be changed (Set-NetTCPSetting)"
        } else {
            "on Server 2016 and 2019 custom and built-in templates can be changed (Set-NetTCPSetting); nothing of them is needed to fill this path"
        }
    } else {
        "Microsoft doesn't say which template parameters can be changed on this version: try, and read back"
    };
    draft.note(words.to_owned());
}

/// The value that a parameter of a template should have, and why; `None` where it is fine.
fn wanted(
    request: &PlatformRequest<'_>,
    draft: &Draft<'_>,
    [template, parameter, value]: [&str; 3],
) -> Option<(String, String)> {
    let internet = template.starts_with("Internet");
    let now = number(value);
    let default = default(draft, template, parameter);
    match parameter {
        "DelayedAckFrequency" if now? > 2 => Some((
            "2".to_owned(),
            format!("acknowledges every {value} segments only; RFC 9293 (3.8.6.3) asks for one for every second full segment at least: the sender's clock, and its start, slow down by that"),
        )),
        "DelayedAckTimeoutMs" if now? > default.as_deref().and_then(number)? => {
            let default = default?;
            let words = format!("a last or single segment is acknowledged after {value} ms instead of {default}: a peer that waits for it (Nagle's algorithm, requests in two writes) stops that long, {} round trips of this path", rounds(now?, request.rtt));
            Some((default, words))
        }
        "MinRtoMs" => {
            let why = too_short(template, now?, request.rtt)?;
            Some((default.unwrap_or_else(|| "300".to_owned()), why))
        }
        "InitialCongestionWindowMss" if now? < 10 && default.as_deref().and_then(number) == Some(10) => Some((
            "10".to_owned(),
            format!("begins with {value} segments instead of ten (RFC 6928): one round trip or two more for each new connection"),
        )),
        "CongestionProvider" if value.eq_ignore_ascii_case("DCTCP") && internet => Some((
            if draft.is_at_least("2016") { "CUBIC" } else { "CTCP" }.to_owned(),
            "DCTCP must not be used on the public Internet (RFC 8257): without marks from every switch it takes more than its share or collapses".to_owned(),
        )),
        "CongestionProvider"
            if value.eq_ignore_ascii_case("DCTCP") && !internet && draft.is_at_least("2019") && !marks(draft, template) =>
        {
            let marks = Address::tcp_setting(template, "EcnCapability");
            let asks = if draft.now(&marks).is_some() { "this template does not ask for them" } else { "no file says that this template asks for them" };
            Some(("CUBIC".to_owned(), format!("the default of an older Windows: DCTCP lives on marks (RFC 8257), and {asks} (EcnCapability)")))
        }
        "CongestionProvider" if value.eq_ignore_ascii_case("CTCP") && has_cubic(draft) => Some((
            "CUBIC".to_owned(),
            "the default of an older Windows; CUBIC (RFC 9438), the default since 1709, regains its window sooner after a loss on a long path".to_owned(),
        )),
        "MemoryPressureProtection" if value.eq_ignore_ascii_case("Disabled") && is_server(draft) => Some((
            "Enabled".to_owned(),
            "switched off, a flood that eats the memory takes the whole server along; switched on, connections are ended and SYNs dropped only while memory is short and an attack is seen (KB974288): windows are no smaller by it".to_owned(),
        )),
        _ => None,
    }
}

/// Why a least retransmission timeout of `ms` is too short for the connections of a template over a path of `rtt`; `None` where it
/// isn't.
pub(crate) fn too_short(template: &str, ms: u64, rtt: Micros) -> Option<String> {
    let internet = template.to_ascii_lowercase().starts_with("internet");
    (internet && ms < 300 && rtt > Micros::from_millis(10)).then(|| {
        format!("a least retransmission timeout of {ms} ms on a path of {rtt} retransmits what was only late, and each time the congestion window starts again")
    })
}

/// The level of one template against the window that the path needs.
fn tuning_level(request: &PlatformRequest<'_>, draft: &mut Draft<'_>, template: &str, value: &str) {
    let normal = TuningLevel::Normal.largest_window();
    let Some(largest) = TuningLevel::named(value).map(TuningLevel::largest_window).filter(|most| *most < normal) else {
        return;
    };
    let (window, arithmetic) = draft.pipe.window(request.goal);
    let knob = Address::tcp_setting(template, LOCAL);
    // Automatic gives Datacenter to connections of at most 10 ms, and Internet to all others.
    let for_lan = template.starts_with("Datacenter") && request.rtt > DATACENTER_RTT;
    if for_lan {
        draft.note(format!(
            "{knob} is {value} (windows up to {largest}): connections over this path get another template, since Datacenter is for round trips of at most {DATACENTER_RTT}; within the data centre it caps each at {}",
            window_limited_rate(largest, DATACENTER_RTT).map_or_else(String::new, |rate| format!("{rate} over {DATACENTER_RTT}"))
        ));
        return;
    }
    if largest >= window {
        draft.note(format!("{knob} is {value}: windows up to {largest}, enough for this path ({window})"));
        return;
    }
    let why = format!("holds every window of this template down to {largest}: {arithmetic} of window");
    change(draft, [template, LOCAL], "Normal".to_owned(), why);
}

/// Whether a template asks for the marks that DCTCP lives on.
fn marks(draft: &Draft<'_>, template: &str) -> bool {
    let knob = Address::tcp_setting(template, "EcnCapability");
    draft.now(&knob).is_some_and(|now| now.eq_ignore_ascii_case("Enabled"))
}

/// Whether CUBIC is this version's default: from 1709 on, which every supported Windows 10 is.
fn has_cubic(draft: &Draft<'_>) -> bool {
    draft.is_at_least("10") && (draft.is_at_least("2019") || !draft.is_at_least("2016"))
}

/// Servers have a year for a name.
fn is_server(draft: &Draft<'_>) -> bool {
    draft.version().starts_with("20")
}

fn rounds(ms: u64, rtt: Micros) -> u64 {
    (ms * 1000).div_ceil(rtt.get().max(1))
}

/// The number that a template starts with on this version, as the catalogue words it: `2`, `Internet 40, Datacenter 10`.
fn default(draft: &Draft<'_>, template: &str, parameter: &str) -> Option<String> {
    let knob = Address::tcp_setting(template, parameter);
    let text = &draft.span(&knob)?.default;
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(text.clone());
    }
    let family = template.trim_end_matches("Custom");
    text.split(", ").find_map(|part| {
        let number = part.strip_prefix(family)?.trim();
        number.bytes().all(|byte| byte.is_ascii_digit()).then(|| number.to_owned()).filter(|n| !n.is_empty())
    })
}

fn change(draft: &mut Draft<'_>, [template, parameter]: [&str; 2], to: String, reason: String) {
    let honoured = draft.span(&Address::tcp_setting(template, parameter)).map(|span| span.honoured);
    // What this version does not have can't be what it lacks: the file is of another one, which the plan says.
    if honoured == Some(Honoured::Absent) {
        return;
    }
    let custom_only = !draft.is_at_least("8.1") && template != "Custom";
    let knob = Address::tcp_setting(template, parameter);
    if draft.plan.changes.iter().any(|change| change.knob == knob) {
        return;
    }
    if custom_only {
        draft.note(format!("{knob}: {reason}; it should be {to}, but on Server 2012 only the template Custom can be changed: give that to the peer (--peer)"));
        return;
    }
    if honoured == Some(Honoured::ReadOnly) {
        draft.note(format!("{knob}: {reason}; it should be {to}, but is read-only on this version: `netsh interface tcp reset` and a restart put it back to Windows' own value (save what is there first: `fullpipe plan --platform {} --procedure reset --write DIR` writes all of that)", draft.platform));
        return;
    }
    draft.ask(Ask { knob, to: Some(to), reason, arithmetic: String::new(), memory: None });
}

/// The registry's way to take all offloads away.
fn task_offload(request: &PlatformRequest<'_>, draft: &mut Draft<'_>) {
    let knob = parameter("DisableTaskOffload");
    if request.rate >= FAST && draft.now(&knob).and_then(number).is_some_and(|now| now != 0) {
        let reason = format!(
            "set, the processor computes every checksum and cuts every segment itself; at {} that counts",
            request.rate
        );
        draft.ask(Ask { knob, to: Some("0".to_owned()), reason, arithmetic: String::new(), memory: None });
    }
}

fn offloads(request: &PlatformRequest<'_>, draft: &mut Draft<'_>) {
    if request.rate < FAST {
        return;
    }
    for (name, why) in [
        ("ReceiveSideScaling", "one processor takes all packets and becomes the limit"),
        (
            "ReceiveSegmentCoalescing",
            "each segment passes the stack by itself: several times the work for the processor",
        ),
        ("TaskOffload", "the processor computes every checksum and cuts every segment itself"),
    ] {
        let knob = Address::Named { kind: "netoffload".to_owned(), name: name.to_owned() };
        if draft.now(&knob).is_some_and(|now| now.eq_ignore_ascii_case("disabled")) {
            let reason = format!("switched off, {why}; at {} that counts", request.rate);
            draft.ask(Ask { knob, to: Some("Enabled".to_owned()), reason, arithmetic: String::new(), memory: None });
        }
    }
}

/// The offloads of single adapters that are switched off.
fn adapters(request: &PlatformRequest<'_>, draft: &mut Draft<'_>) {
    for (device, property) in draft.links_with("0") {
        let Some((_, why)) = ADAPTER.iter().find(|(keyword, _)| property.starts_with(keyword)) else { continue };
        let knob = Address::Link { device: device.to_owned(), property: property.to_owned() };
        if request.rate < FAST {
            draft.note(format!("{knob} is off: {why}; at {} that is no limit, so it is left as it is", request.rate));
            continue;
        }
        let reason = format!("switched off for this adapter, {why}; at {} that counts", request.rate);
        draft.ask(Ask { knob, to: Some("1".to_owned()), reason, arithmetic: String::new(), memory: None });
    }
}
