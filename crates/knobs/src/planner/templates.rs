//! Windows 8 and later: what the parameters of the TCP templates and the offloads are, against what they should be.
//!
//! Only what a file tells is judged: nothing of it is needed where the machine has its defaults.

use fullpipe_units::{Micros, Rate};

use super::{
    PlatformRequest,
    platform::{Ask, Draft, number},
};
use crate::Address;

/// From here on a processor that does the adapter's work is a limit.
const FAST: Rate = Rate::from_bps(1_000_000_000);

pub(super) fn plan(request: &PlatformRequest<'_>, draft: &mut Draft<'_>) {
    if !draft.is_at_least("8") {
        return;
    }
    let before = draft.plan.changes.len();
    for (template, parameter, value) in draft.templates() {
        // They hold no values of their own, or none that modern applications get.
        if ["Automatic", "Compat"].contains(&template) {
            continue;
        }
        if let Some((to, why)) = wanted(request, draft, [template, parameter, value]) {
            change(draft, [template, parameter], to, why);
        }
    }
    offloads(request, draft);
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
        "MinRtoMs" if internet && now? < 300 && request.rtt > Micros::from_millis(10) => Some((
            default.unwrap_or_else(|| "300".to_owned()),
            format!("a least retransmission timeout of {value} ms on a path of {} retransmits what was only late, and each time the congestion window starts again", request.rtt),
        )),
        "InitialCongestionWindowMss" if now? < 10 && default.as_deref().and_then(number) == Some(10) => Some((
            "10".to_owned(),
            format!("begins with {value} segments instead of ten (RFC 6928): one round trip or two more for each new connection"),
        )),
        "CongestionProvider" if value.eq_ignore_ascii_case("DCTCP") && internet => Some((
            if draft.is_at_least("2016") { "CUBIC" } else { "CTCP" }.to_owned(),
            "DCTCP must not be used on the public Internet (RFC 8257): without marks from every switch it takes more than its share or collapses".to_owned(),
        )),
        _ => None,
    }
}

fn rounds(ms: u64, rtt: Micros) -> u64 {
    (ms * 1000).div_ceil(rtt.get().max(1))
}

/// The number that a template starts with on this version, as the catalogue words it: `2`, `Internet 40, Datacenter 10`.
fn default(draft: &Draft<'_>, template: &str, parameter: &str) -> Option<String> {
    let knob = Address::TcpSetting { template: template.to_owned(), parameter: parameter.to_owned() };
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
    let custom_only = !draft.is_at_least("8.1") && template != "Custom";
    let knob = Address::TcpSetting { template: template.to_owned(), parameter: parameter.to_owned() };
    if custom_only {
        draft.note(format!("{knob}: {reason}; it should be {to}, but on Server 2012 only the template Custom can be changed: give that to the peer (--peer)"));
        return;
    }
    let refused = draft.span(&knob).is_some_and(|span| span.honoured == crate::catalogue::Honoured::ReadOnly);
    if refused {
        draft.note(format!("{knob}: {reason}; it should be {to}, but is read-only on this version: `netsh interface tcp reset` and a restart put it back to Windows' own value (save what is there first: `fullpipe plan --procedure reset`)"));
        return;
    }
    draft.ask(Ask { knob, to: Some(to), reason, arithmetic: String::new(), memory: None });
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
