//! Windows: the registry before Vista, the automatic tuning level from then on.

use fullpipe_units::{Bytes, window_limited_rate};

use super::{
    PlatformRequest,
    platform::{Ask, Draft},
    sizing::UNSCALED,
};
use crate::{
    Address, TuningLevel,
    packets::{ETHERNET, ETHERNET_HEADER},
};

const PARAMETERS: &str = r"HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters";
/// The smallest default window on Ethernet that Microsoft's documents name (KB314053).
const SMALLEST_DEFAULT: u64 = 8760;
/// The most that TcpWindowSize takes (KB224829).
const LARGEST_WINDOW: u64 = 0x3FFF_C000;

pub(super) fn plan(request: &PlatformRequest<'_>, draft: &mut Draft<'_>) {
    if draft.is_at_least("vista") {
        automatic(request, draft);
    } else {
        registry(request, draft);
    }
}

/// Windows 2000, XP and Server 2003.
fn registry(request: &PlatformRequest<'_>, draft: &mut Draft<'_>) {
    let (window, arithmetic) = draft.pipe.window(request.goal);
    if draft.pipe.bdp.get() <= SMALLEST_DEFAULT {
        draft.note(format!("{}: the default window fills this path; nothing is to be set", draft.pipe.arithmetic));
        return;
    }
    // Windows are set in whole segments.
    let segment = draft.segment;
    let fitting = draft.within_bound(window, request.memory_bound);
    let unscaled = UNSCALED.get() / segment * segment;
    let plain = draft.pipe.bdp.get() <= unscaled;
    let largest = if plain { unscaled } else { LARGEST_WINDOW / segment * segment };
    let mut bytes = window.round_up_to(segment).get().min(largest);
    if fitting < window {
        bytes = bytes.min(fitting.get() / segment * segment);
    }
    if bytes == 0 {
        draft
            .note("the memory bound leaves less than one segment for each connection; nothing is to be set".to_owned());
        return;
    }
    let arithmetic = if plain {
        format!(
            "{}; {} x {segment} = {}, which needs no window scaling (at most {unscaled})",
            draft.pipe.arithmetic,
            bytes / segment,
            Bytes::new(bytes)
        )
    } else {
        format!("{arithmetic} of window; {} x {segment} = {}", bytes / segment, Bytes::new(bytes))
    };
    if !plain {
        let knob = parameter("Tcp1323Opts");
        let options = draft.now(&knob).and_then(super::platform::number).unwrap_or(0);
        if options & 1 == 0 {
            draft.ask(Ask {
                knob,
                // Bit 1, the timestamps, stays as it is.
                to: Some(((options & 2) | 1).to_string()),
                reason: "a window above 65,535 B needs the window-scale option; bit 0 turns it on".to_owned(),
                arithmetic: draft.pipe.arithmetic.clone(),
                memory: None,
            });
        }
        draft.note("Microsoft's KB314053 gives XP's TcpWindowSize a range up to 65,535, its texts for 2000 and 2003 a larger one: read the value back after the restart, and look at the window in the SYN".to_owned());
    }
    let memory = Some(Bytes::new(bytes.saturating_mul(draft.connections)));
    for name in ["GlobalMaxTcpWindowSize", "TcpWindowSize"] {
        let knob = parameter(name);
        if draft.now(&knob).and_then(super::platform::number).is_some_and(|now| now >= bytes) {
            continue;
        }
        draft.ask(Ask {
            knob,
            to: Some(bytes.to_string()),
            reason: "the receive window is fixed here, and its default of one to four segments can't fill the path"
                .to_owned(),
            arithmetic: arithmetic.clone(),
            // Both bound the same window: it is paid for once.
            memory: memory.filter(|_| name == "TcpWindowSize"),
        });
    }
    if plain {
        draft.note(format!(
            "a larger window, such as the 128,480 B that some vendors advise, needs Tcp1323Opts and fills this path no better: {} are its bandwidth-delay product (RFC 7323, section 2: without scaling 65,535 B are the end)",
            draft.pipe.bdp
        ));
    }
    draft.note("set for all adapters, because a value of one adapter above 65,535 was seen to be ignored on XP without a word; restart, read back, measure".to_owned());
    draft.note("sending is bounded by the peer's window and by the application's SO_SNDBUF (8 KB by default): the application has to set that".to_owned());
}

/// Vista, Server 2008 and later.
fn automatic(request: &PlatformRequest<'_>, draft: &mut Draft<'_>) {
    let (window, arithmetic) = draft.pipe.window(request.goal);
    let knob = Address::Netsh { context: "tcp global".to_owned(), parameter: "autotuninglevel".to_owned() };
    let now = draft.now(&knob).and_then(TuningLevel::named);
    let normal = TuningLevel::Normal.largest_window();
    let enough = now.is_some_and(|level| level.largest_window() >= window);
    let at_normal = matches!(now, Some(TuningLevel::Normal | TuningLevel::Experimental));
    let memory = Bytes::new(normal.min(window).get().saturating_mul(draft.connections));
    if request.memory_bound.is_some_and(|bound| bound < memory) {
        draft.note(format!(
            "{} connections could take {memory}, more than the memory bound, and no level but `restricted` ({}) keeps them below: nothing is set",
            draft.connections,
            TuningLevel::Restricted.largest_window()
        ));
    } else if !enough && !at_normal {
        let reason = now.map_or_else(
            || "normal is the default; the command changes nothing where it stands, and undoes the advice to restrict it".to_owned(),
            |level| format!("the level holds every window down to {}", level.largest_window()),
        );
        draft.ask(Ask {
            knob,
            to: Some("normal".to_owned()),
            reason,
            arithmetic: format!("{arithmetic} of window; normal offers shift 8: up to {normal}"),
            memory: Some(memory),
        });
    }
    if window > normal {
        let at_most = window_limited_rate(normal, request.rtt);
        let rate = at_most.map_or_else(String::new, |rate| format!(", {rate} at this round-trip time"));
        draft.note(format!(
            "a window of {window} is more than the level normal gives ({normal}{rate}); `experimental` is for research and can hurt much: use several connections"
        ));
    }
    draft.note(
        "Group Policy wins over the local level: look at AutoTuningLevelEffective in Get-NetTCPSetting".to_owned(),
    );
    draft.note(format!(
        "an application that sets SO_RCVBUF or SO_SNDBUF switches automatic sizing off for its sockets; it then has to ask for {window} or more, before it connects"
    ));
    draft.note("TcpWindowSize, GlobalMaxTcpWindowSize and Tcp1323Opts in the registry do nothing here: they ended with Server 2003".to_owned());
    draft.note("where tuning changed nothing, other settings may be in the way: save what is there, `netsh interface tcp reset`, restart, apply this again and measure again; the reset is no undo, and neither is `netsh int ip reset`".to_owned());
    if !draft.is_at_least("7") {
        draft.note(
            "this version sizes no send buffer by itself: an application has to set SO_SNDBUF, or send overlapped"
                .to_owned(),
        );
    }
    templates(draft);
}

/// What the TCP templates allow on this version.
fn templates(draft: &mut Draft<'_>) {
    if !draft.is_at_least("8") {
        return;
    }
    let words = if !draft.is_at_least("8.1") {
        "on Server 2012 the templates Internet and Datacenter can't be changed: set the custom template (Set-NetTCPSetting -SettingName Custom) and give it to the peer's connections with New-NetTransportFilter -SettingName Custom -DestinationPrefix <peer>; its first congestion window is 4 segments, of which 10 is the usual today"
    } else if draft.is_at_least("10") && !draft.is_at_least("2016") {
        "on Windows 10 MinRtoMs, InitialCongestionWindowMss, AutomaticUseCustom, CongestionProvider, CwndRestart and DelayedAckTimeoutMs are read-only: a script that sets them fails or does nothing"
    } else if draft.is_at_least("2016") && !draft.is_at_least("2022") {
        "on Server 2016 and 2019 custom and built-in templates can be changed (Set-NetTCPSetting); nothing of them is needed to fill this path"
    } else {
        "Microsoft doesn't say which template parameters can be changed on this version: try, and read back"
    };
    draft.note(words.to_owned());
}

/// The MTU of one adapter before Vista. The driver decides how large it may be.
pub(super) fn registry_mtu(draft: &mut Draft<'_>, device: Option<&str>, mtu: u32, arithmetic: &str) {
    let guid = |device: &&str| device.starts_with('{') && device.ends_with('}');
    let adapter = device.filter(guid).unwrap_or("{GUID}");
    let knob = Address::Registry { key: format!(r"{PARAMETERS}\Interfaces\{adapter}"), value: "MTU".to_owned() };
    draft.ask(Ask {
        knob,
        to: Some(mtu.to_string()),
        reason: "the largest packet that this adapter sends; without the value it is what the driver says".to_owned(),
        arithmetic: arithmetic.to_owned(),
        memory: None,
    });
    if mtu > ETHERNET {
        draft.note(format!(
            "the driver comes first: in the adapter's properties (Device Manager, Advanced) choose Jumbo Frame or Jumbo Packet {} ({mtu} B with the Ethernet header of 14 B; some drivers list {mtu}); no file sets that before Vista, where each driver has a name of its own for it, and MTU in the registry can only lower what the driver allows (KB314053)",
            mtu + ETHERNET_HEADER
        ));
    }
}

/// What the driver of an adapter has to allow first.
pub(super) fn jumbo_packet(draft: &mut Draft<'_>, device: &str, mtu: u32) {
    let frame = mtu + ETHERNET_HEADER;
    draft.ask(Ask {
        knob: Address::Link { device: device.to_owned(), property: "*JumboPacket".to_owned() },
        to: Some(frame.to_string()),
        reason: "the driver must allow the larger frame before Windows sends it; the adapter restarts and its connections break".to_owned(),
        arithmetic: format!("{mtu} + {ETHERNET_HEADER} (Ethernet header) = {frame}, as drivers list it"),
        memory: None,
    });
}

fn parameter(name: &str) -> Address {
    Address::Registry { key: PARAMETERS.to_owned(), value: name.to_owned() }
}
