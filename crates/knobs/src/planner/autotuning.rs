//! Windows from Vista on: the automatic tuning level, what overrules it, and what to do where it already reads normal.

use fullpipe_units::{Bytes, window_limited_rate};

use super::{
    PlatformRequest,
    platform::{Ask, Draft},
    sizing::UNSCALED,
};
use crate::{
    Address, TuningLevel,
    tuning_level::{self, LOCAL, Policy},
};

pub(super) fn plan(request: &PlatformRequest<'_>, draft: &mut Draft<'_>) {
    let (window, arithmetic) = draft.pipe.window(request.goal);
    let normal = TuningLevel::Normal.largest_window();
    let local = draft.settings().and_then(tuning_level::local);
    let local_level = local.and_then(TuningLevel::named);
    let policy = draft.settings().and_then(Policy::in_force);
    let level = policy.as_ref().map_or(local_level, |policy| policy.level);
    let is_enough = |level: TuningLevel| level >= TuningLevel::Normal || level.largest_window() >= window;
    let enough = level.is_some_and(is_enough);
    let at_normal = level.is_some_and(|level| level >= TuningLevel::Normal);
    let memory = Bytes::new(normal.min(window).get().saturating_mul(draft.connections));
    if let Some(policy) = &policy {
        draft.note(ruled(policy, enough, window));
    }
    // The steps of a plan that is a sequence, which ends where one of them helped.
    let mut steps = Steps(0);
    stop_heuristics(draft, enough);
    let too_much = request.memory_bound.filter(|bound| *bound < memory);
    if let Some(bound) = too_much {
        draft.note(beyond_memory(draft.connections, memory, bound));
    } else if let Some(policy) = &policy {
        if let (false, Some(level), Some(knob)) = (enough, policy.level, &policy.knob) {
            lift_policy(draft, (level, knob), format!("{arithmetic} of window"), &mut steps);
            let why = "the policy bounds automatic sizing only, which such a socket does without; look at the scale in its SYN (`fullpipe read`)";
            sockets(draft, (window, &arithmetic), &format!("while the policy stands: {why}"), &mut steps);
        }
    } else if !enough {
        let reason = local_level.map_or_else(
            || "normal is the default; the command changes nothing where it stands, and undoes the advice to restrict it".to_owned(),
            |level| format!("the level holds every window down to {}", level.largest_window()),
        );
        let reason = if has_steps(draft) { format!("step {}: {reason}", steps.next()) } else { reason };
        let ask = Ask {
            knob: tuning_level::for_all(),
            to: Some("normal".to_owned()),
            reason,
            arithmetic: format!("{arithmetic} of window; normal offers shift 8: up to {normal}"),
            memory: Some(memory),
        };
        draft.ask_from(ask, local.map(str::to_ascii_lowercase));
    }
    if draft.pipe.bdp > normal {
        let at_most = window_limited_rate(normal, request.rtt);
        let rate = at_most.map_or_else(String::new, |rate| format!(", {rate} at this round-trip time"));
        draft.note(format!(
            "the bandwidth-delay product of {} is more than the largest window of the level normal ({normal}{rate}); `experimental` is for research and can hurt much: use several connections",
            draft.pipe.bdp
        ));
    }
    if at_normal && policy.is_none() {
        look_first(draft);
    }
    let fits = too_much.is_none() && window > UNSCALED && policy.is_none();
    if fits && has_steps(draft) {
        custom_template(request, draft, &arithmetic, &mut steps);
        let earlier = if steps.0 > 0 { format!(", or step {} changed nothing", steps.0) } else { String::new() };
        let when = format!("only where the application sets a smaller one itself{earlier}");
        sockets(draft, (window, &arithmetic), &when, &mut steps);
    }
    notes(draft, window, policy.is_some());
}

/// Where Windows' heuristics are on, they may bring any level down again, whatever is set: before 8.1.
fn stop_heuristics(draft: &mut Draft<'_>, enough: bool) {
    let knob = Address::netsh("tcp heuristics", "wsh");
    let acts = draft.span(&knob).is_some_and(|span| span.honoured == crate::catalogue::Honoured::Yes);
    let is_on = draft.now(&knob).is_some_and(|now| now.eq_ignore_ascii_case("enabled"));
    if enough || !acts || !is_on {
        return;
    }
    draft.ask(Ask {
        knob,
        to: Some("disabled".to_owned()),
        reason: "first: Windows' scaling heuristics lower the level by themselves on networks where they once took window scaling to fail: the level that is shown may be theirs".to_owned(),
        arithmetic: String::new(),
        memory: None,
    });
}

/// What rules, and whether that is enough.
fn ruled(policy: &Policy, enough: bool, window: Bytes) -> String {
    let level = policy.level.map_or_else(
        || "a level that the files don't tell".to_owned(),
        |level| format!("{} (windows up to {})", level.name(), level.largest_window()),
    );
    let verdict = match policy.level {
        _ if enough => "that is enough for this path".to_owned(),
        Some(_) => format!("this path wants {window}, and a local level changes nothing while the policy is there"),
        None => format!(
            "this path wants {window}: see whether the policy allows that (`gpresult /scope computer /h gp.html` names it)"
        ),
    };
    format!("Group Policy sets the automatic tuning level to {level} and wins over a local one: {verdict}")
}

/// The policy is changed where policies are made; this machine only shows it.
fn lift_policy(draft: &mut Draft<'_>, (level, knob): (TuningLevel, &Address), arithmetic: String, steps: &mut Steps) {
    draft.ask_elsewhere(Ask {
        knob: knob.clone(),
        to: Some("NotConfigured".to_owned()),
        reason: format!(
            "step {}: the level {} of Group Policy holds every window down to {}; have the policy changed where it is made (`gpresult /scope computer /h gp.html` names it), then `gpupdate /force`; it ends when the policy is configured again",
            steps.next(),
            level.name(),
            level.largest_window()
        ),
        arithmetic,
        memory: None,
    });
}

/// Why nothing is set, and which level keeps the memory within its bound, if one does.
fn beyond_memory(connections: u64, memory: Bytes, bound: Bytes) -> String {
    let of = |level: TuningLevel| Bytes::new(level.largest_window().get().saturating_mul(connections));
    let lower = [TuningLevel::Restricted, TuningLevel::HighlyRestricted, TuningLevel::Disabled];
    let name = |level: TuningLevel| level.name().to_ascii_lowercase();
    let way_out = match lower.into_iter().find(|level| of(*level) <= bound) {
        Some(level) => format!(
            "`{}` keeps them below ({} x {connections} = {}) and holds each connection down",
            name(level),
            level.largest_window(),
            of(level)
        ),
        None => format!(
            "no level keeps them below: even `disabled` gives {} x {connections} = {}",
            TuningLevel::Disabled.largest_window(),
            of(TuningLevel::Disabled)
        ),
    };
    format!(
        "{connections} connections could take {memory}, more than the memory bound of {bound}; {way_out}: nothing is set. Plan for fewer connections, or allow more memory"
    )
}

/// What tells why a window stays small although the level is normal.
fn look_first(draft: &mut Draft<'_>) {
    let templates = if draft.is_at_least("8") {
        "`Get-NetTCPSetting | Format-List SettingName, AutoTuningLevel*` (Effective: GroupPolicy means that a policy rules, whatever Local says), `Get-NetTCPConnection -RemoteAddress PEER | Format-List AppliedSetting, OwningProcess` (which template the connection has, and whose it is), `Get-NetTransportFilter` (who gets another template)"
    } else {
        "`netsh interface tcp show global` and `netsh interface tcp show heuristics`"
    };
    draft.note(format!(
        "the level is normal, which lets windows grow to {}. Where a connection stays at 64 KB all the same, look first: {templates}, and the SYN in a capture (`fullpipe read`): window scale 8 is this level at work; scale 0, or none, and a window below 65,536 means that the application set SO_RCVBUF before it connected",
        TuningLevel::Normal.largest_window()
    ));
}

/// Server 2012: the built-in templates can't be changed, but Custom can, and a filter gives it to the peer's connections.
fn custom_template(request: &PlatformRequest<'_>, draft: &mut Draft<'_>, arithmetic: &str, steps: &mut Steps) {
    let Some(peer) = request.peer else {
        draft.note("on Server 2012 the templates Internet and Datacenter can't be changed: with --peer PREFIX the plan sets the custom template (Set-NetTCPSetting -SettingName Custom) and gives it to the peer's connections (New-NetTransportFilter -SettingName Custom -DestinationPrefix PREFIX); its initial window is 4 segments; 10 is usual today".to_owned());
        return;
    };
    let step = steps.next();
    // Custom begins as a copy of Datacenter: DCTCP must not meet the Internet (RFC 8257), and a least retransmission
    // timeout of 20 ms is below a long path's round-trip time.
    let long = request.rtt > fullpipe_units::Micros::from_millis(10);
    let of_internet: &[(&str, &str, &str)] = &[
        ("MinRtoMs", "300", "Custom begins with Datacenter's 20 ms, which a long path's variation exceeds"),
        (
            "CongestionProvider",
            "CTCP",
            "Custom begins with Datacenter's DCTCP, which must not be used on the Internet (RFC 8257)",
        ),
        (
            "CwndRestart",
            "False",
            "Custom begins with Datacenter's True: the congestion window would start again after each pause",
        ),
    ];
    let always: &[(&str, &str, &str)] = &[
        (LOCAL, "Normal", "the window may grow to what the path needs"),
        ("InitialCongestionWindowMss", "10", "ten segments at the start (RFC 6928) instead of four"),
    ];
    for (name, to, why) in of_internet.iter().filter(|_| long).chain(always) {
        let knob = Address::tcp_setting("Custom", name);
        if draft.now(&knob).is_some_and(|now| now.eq_ignore_ascii_case(to)) {
            continue;
        }
        draft.ask(Ask {
            knob,
            to: Some((*to).to_owned()),
            reason: format!("step {step}, where the level is normal and the SYN's window still 64 KB: built-in templates can't be changed on this version; {why}"),
            arithmetic: arithmetic.to_owned(),
            memory: None,
        });
    }
    draft.ask(Ask {
        knob: Address::Named { kind: "transportfilter".to_owned(), name: "Custom".to_owned() },
        to: Some(peer.to_owned()),
        reason: format!("step {step}: gives connections with this peer the Custom template; it ends when the filter is removed, which the undo does"),
        arithmetic: String::new(),
        memory: None,
    });
}

/// Whether the plan is a sequence that ends where a step helped: on Server 2012.
fn has_steps(draft: &Draft<'_>) -> bool {
    draft.is_at_least("8") && !draft.is_at_least("8.1")
}

/// The steps of such a plan.
struct Steps(u32);

impl Steps {
    const fn next(&mut self) -> u32 {
        self.0 += 1;
        self.0
    }
}

/// What only the application can do.
fn sockets(draft: &mut Draft<'_>, (window, arithmetic): (Bytes, &str), when: &str, steps: &mut Steps) {
    let step = steps.next();
    for (option, why) in [
        ("SO_RCVBUF", "before connect() or listen(), because the window scale is fixed in the SYN"),
        ("SO_SNDBUF", "at both ends that send: what is in flight is copied there"),
    ] {
        draft.ask(Ask {
            knob: Address::Socket(option.to_owned()),
            to: Some(window.get().to_string()),
            reason: format!("step {step}, {when}: setsockopt with this size, {why}; it ends when the application leaves the option out, which also gives automatic sizing back"),
            arithmetic: arithmetic.to_owned(),
            memory: None,
        });
    }
}

fn notes(draft: &mut Draft<'_>, window: Bytes, by_policy: bool) {
    if !by_policy {
        let look =
            if draft.is_at_least("8") { "AutoTuningLevelEffective in Get-NetTCPSetting" } else { "`gpresult /r`" };
        draft.note(format!("Group Policy wins over the local level: look at {look}"));
    }
    draft.note(format!(
        "an application that sets SO_RCVBUF or SO_SNDBUF switches automatic sizing off for its sockets; it then has to ask for {window} or more, before it connects"
    ));
    draft.note("TcpWindowSize, GlobalMaxTcpWindowSize and Tcp1323Opts in the registry do nothing here: they ended with Server 2003".to_owned());
    draft.note(format!("where tuning changed nothing, other settings may be in the way: save what is there, `netsh interface tcp reset`, restart, apply this again and measure again (`fullpipe plan --platform {} --procedure reset --write DIR` writes that as a folder); the reset is no undo, and neither is `netsh int ip reset`", draft.platform));
    if !draft.is_at_least("7") {
        draft.note(
            "this version sizes no send buffer by itself: an application has to set SO_SNDBUF, or send overlapped"
                .to_owned(),
        );
    }
}
