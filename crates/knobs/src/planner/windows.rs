//! Windows: the registry before Vista, the automatic tuning level from then on.

use fullpipe_units::{Bytes, Micros, Rate, sizing::standing_queue};

use super::{
    PlatformRequest, autotuning,
    platform::{Ask, Draft},
    sizing::UNSCALED,
    templates,
};
use crate::{
    Address,
    packets::{ETHERNET, ETHERNET_HEADER},
};

const PARAMETERS: &str = r"HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters";
/// The smallest default window on Ethernet that Microsoft's documents name (KB314053), and the usual one, of twelve segments of
/// 1,460 B.
pub(crate) const SMALLEST_DEFAULT: u64 = 8760;
const USUAL_DEFAULT: u64 = 17_520;
/// The most that TcpWindowSize takes (KB224829).
const LARGEST_WINDOW: u64 = 0x3FFF_C000;

pub(super) fn plan(request: &PlatformRequest<'_>, draft: &mut Draft<'_>) {
    if draft.is_at_least("vista") {
        autotuning::plan(request, draft);
        templates::plan(request, draft);
    } else {
        registry(request, draft);
    }
}

/// NT 4.0, Windows 2000, XP and Server 2003.
fn registry(request: &PlatformRequest<'_>, draft: &mut Draft<'_>) {
    switches(draft);
    let (window, arithmetic) = draft.pipe.window(request.goal);
    if draft.pipe.bdp.get() <= SMALLEST_DEFAULT {
        if take_away(request, draft) {
            return;
        }
        draft.note(format!("{}: the default window fills this path; nothing to set", draft.pipe.arithmetic));
        return;
    }
    // Windows are set in whole segments.
    let segment = segment(request, draft);
    let fitting = draft.within_bound(window, request.memory_bound);
    let unscaled = UNSCALED.get() / segment * segment;
    // NT 4.0 has no window scaling (KB199947).
    let scales = draft.is_at_least("2000");
    let plain = !scales || draft.pipe.bdp.get() <= unscaled;
    let largest = if plain { unscaled } else { LARGEST_WINDOW / segment * segment };
    let mut bytes = window.round_up_to(segment).get().min(largest);
    if fitting < window {
        bytes = bytes.min(fitting.get() / segment * segment);
    }
    if bytes == 0 {
        draft.note("the memory bound leaves less than one segment for each connection; nothing to set".to_owned());
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
    adapters(request, draft, bytes, &arithmetic);
    let is_scaled = draft.now(&parameter("Tcp1323Opts")).and_then(super::platform::number).unwrap_or(0) & 1 == 1;
    let is_needless = |now: u64| plain && !is_scaled && now > UNSCALED.get();
    // A larger window that stays must not be bounded by the maximum.
    let window_now = draft.now(&parameter("TcpWindowSize")).and_then(super::platform::number);
    let crowds = |now: u64| crowding(request, now).filter(|_| now > bytes);
    let stays = window_now.filter(|now| *now > bytes && !is_needless(*now) && crowds(*now).is_none());
    for name in ["GlobalMaxTcpWindowSize", "TcpWindowSize"] {
        let knob = parameter(name);
        if stays.is_some() && draft.now(&knob).is_none() {
            continue;
        }
        let bytes = stays.unwrap_or(bytes);
        let now = draft.now(&knob).and_then(super::platform::number).filter(|now| *now >= bytes);
        let reason = match now {
            Some(now) if is_needless(now) => format!(
                "{now} B need the window-scale option (Tcp1323Opts), which is off, and this path does not need them"
            ),
            Some(now) => match crowds(now).filter(|_| name == "TcpWindowSize") {
                Some(why) => why,
                None => continue,
            },
            None if stays.is_some() => format!("it bounds the window of {bytes} B that is set already"),
            None => "the receive window is fixed here, and its default of one to four segments is smaller than the bandwidth-delay product"
                .to_owned(),
        };
        draft.ask(Ask {
            knob,
            to: Some(bytes.to_string()),
            reason,
            arithmetic: arithmetic.clone(),
            // Both bound the same window: it is paid for once.
            memory: memory.filter(|_| name == "TcpWindowSize"),
        });
    }
    if !scales && draft.pipe.bdp.get() > unscaled {
        draft.note(format!(
            "{} would fill this path, and NT 4.0 does not support the window-scale option (KB199947): {unscaled} B is its most",
            draft.pipe.bdp
        ));
    } else if plain {
        draft.note(format!(
            "a larger window, such as the 128,480 B that some vendors advise, needs Tcp1323Opts and fills this path no better: {} are its bandwidth-delay product (RFC 7323, section 2: without scaling 65,535 B are the end)",
            draft.pipe.bdp
        ));
    }
    draft.note("set for all adapters, because a value of one adapter above 65,535 was seen to be ignored on XP without a word; restart, read back (`fullpipe plan --verify BEFORE AFTER` compares two exports), measure".to_owned());
    draft.note("where the path changes from day to day, take the values away again with the undo file: it removes what was absent before, and needs a restart, too".to_owned());
    draft.note("sending is bounded by the peer's window and by the application's SO_SNDBUF (8 KB by default): the application has to set that".to_owned());
}

/// Takes windows away that are far above what a slow path needs, where the default fills it; whether there were any.
fn take_away(request: &PlatformRequest<'_>, draft: &mut Draft<'_>) -> bool {
    let mut windows = draft.registry_below(&format!(r"{PARAMETERS}\Interfaces\"), "TcpWindowSize");
    let for_all = parameter("TcpWindowSize");
    windows.extend(draft.now(&for_all).and_then(super::platform::number).map(|now| (for_all.clone(), now)));
    let before = draft.plan.changes.len();
    for (knob, now) in windows {
        let Some(why) = crowding(request, now) else { continue };
        // The maximum was there for this window only.
        let maximum = parameter("GlobalMaxTcpWindowSize");
        if knob == for_all && draft.now(&maximum).is_some() {
            let reason = format!(
                "it was there to let a window of {} be; without it the default has its own bound",
                Bytes::new(now)
            );
            draft.ask(Ask { knob: maximum, to: None, reason, arithmetic: draft.pipe.arithmetic.clone(), memory: None });
        }
        let reason = format!("{why}; without the value the default is back, which fills this path");
        draft.ask(Ask { knob, to: None, reason, arithmetic: draft.pipe.arithmetic.clone(), memory: None });
    }
    let taken = draft.plan.changes.len() > before;
    if taken {
        draft.note("the values are read at the start: restart, then measure; the undo file brings them back for the faster path".to_owned());
    }
    taken
}

/// How long the end of a fixed window waits in the queue of a slow path, where that is a second and more. No less than the usual
/// default counts.
pub(crate) fn queue_behind(window: u64, (rate, rtt): (Rate, Micros)) -> Option<Micros> {
    standing_queue(Bytes::new(window), rate, rtt).filter(|_| window > USUAL_DEFAULT)
}

/// Why a fixed window is too large for a slow path; `None` where it isn't.
fn crowding(request: &PlatformRequest<'_>, window: u64) -> Option<String> {
    let wait = queue_behind(window, (request.rate, request.rtt))?;
    Some(format!(
        "a fixed window of {} is far more than the bandwidth-delay product: the rest can stand in the bottleneck's queue, {wait} of it, and delays whatever comes behind",
        Bytes::new(window)
    ))
}

/// What was turned off on advice that helps no path.
fn switches(draft: &mut Draft<'_>) {
    for name in ["SackOpts", "EnablePMTUDiscovery"] {
        draft.turn_on(parameter(name));
    }
}

/// The payload of a full segment, which an adapter's own MTU makes smaller where the plan does not set another one.
fn segment(request: &PlatformRequest<'_>, draft: &mut Draft<'_>) -> u64 {
    /// The headers of IPv4 and TCP, and the smallest MTU that IPv4 knows (RFC 791).
    const HEADERS: u64 = 40;
    const SMALLEST: u64 = 68;
    let all = draft.registry_below(&format!(r"{PARAMETERS}\Interfaces\"), "MTU");
    let smallest = all.into_iter().map(|(_, mtu)| mtu).filter(|mtu| *mtu >= SMALLEST).min();
    let own = smallest.map(|mtu| mtu - HEADERS).filter(|own| request.packets.here.is_none() && *own < draft.segment);
    let Some(own) = own else { return draft.segment };
    draft.note(format!("an adapter has an MTU of {}: windows are planned in segments of {own} B", own + HEADERS));
    own
}

/// The windows of single adapters, which win over the one for all.
fn adapters(request: &PlatformRequest<'_>, draft: &mut Draft<'_>, bytes: u64, arithmetic: &str) {
    for (knob, now) in draft.registry_below(&format!(r"{PARAMETERS}\Interfaces\"), "TcpWindowSize") {
        let crowds = crowding(request, now).filter(|_| now > bytes);
        if now >= bytes && now <= UNSCALED.get() && crowds.is_none() {
            continue;
        }
        // A larger one was seen to be passed over on XP: without a value of its own the adapter has the one for all.
        let to = (bytes <= UNSCALED.get()).then(|| bytes.to_string());
        let reason = crowds.unwrap_or_else(|| match to {
            Some(_) if now < bytes => {
                format!("this adapter has a window of its own, {now} B, which wins over the one for all adapters")
            }
            Some(_) => format!(
                "this adapter has a window of its own, {now} B, which is above 65,535: such a value of one adapter was seen to be ignored, and 17,520 B used"
            ),
            None => format!(
                "this adapter has a window of its own, {now} B, which wins over the one for all adapters; without it the adapter takes that one"
            ),
        });
        draft.ask(Ask { knob, to, reason, arithmetic: arithmetic.to_owned(), memory: None });
    }
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

pub(super) fn parameter(name: &str) -> Address {
    Address::Registry { key: PARAMETERS.to_owned(), value: name.to_owned() }
}
