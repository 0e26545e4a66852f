//! The size of packets: jumbo frames where all of a path take them, and what a tunnel leaves.
//!
//! It comes after the window: where that is the limit, larger packets alone gain little (a gigabit LAN of 2007: 134
//! Mbit/s became 626 with both, and jumbo frames alone raised the latency).

use fullpipe_units::{Bytes, Rate};

use super::{
    PlatformRequest,
    platform::{Ask, Draft, number},
    windows,
};
use crate::{
    Address, Family,
    catalogue::Honoured,
    packets::{ETHERNET, ETHERNET_HEADER, Packets, Segment},
};

/// What a frame takes on the wire beyond its packet: 8 preamble, 14 header, 4 checksum, 12 gap.
const ON_THE_WIRE: u32 = 38;

pub(super) fn plan(request: &PlatformRequest<'_>, draft: &mut Draft<'_>) {
    let packets = request.packets;
    if packets.here.is_some() {
        jumbo(request, draft);
    }
    if packets.ipsec.is_some() || packets.overhead > 0 {
        tunnel(request, draft);
    }
}

fn jumbo(request: &PlatformRequest<'_>, draft: &mut Draft<'_>) {
    let packets = request.packets;
    let Some(mtu) = packets.common() else {
        draft.note(format!("no larger packets: {}; the MTU stays as it is", disagreement(packets)));
        return;
    };
    if request.platform.family == Family::NetBurner {
        draft.note(format!("packets of {mtu} B would pass, but a NetBurner's buffers hold 1,500 B: its MTU stays"));
        return;
    }
    let arithmetic = arithmetic(packets, (mtu, now(draft, packets)), request.rate);
    let window_first = draft.plan.changes.is_empty();
    match change(request, draft, mtu, &arithmetic) {
        Outcome::Planned => {}
        Outcome::There => return,
        Outcome::NoDevice => {
            draft.note(format!(
                "an MTU of {mtu} is what both ends and every hop take ({arithmetic}), but nothing says which interface: name it with --device"
            ));
            return;
        }
    }
    let held: Vec<String> = packets
        .parties()
        .into_iter()
        .filter(|(_, sizes)| sizes.largest() < widest(packets))
        .map(|(name, sizes)| format!("{name} takes {}", sizes.words()))
        .collect();
    if widest(packets) > mtu {
        draft.note(format!("the MTU is {mtu} and not {}: {}", widest(packets), held.join(", ")));
    }
    let window = if window_first { "the window fills the path as it is" } else { "the window comes first" };
    draft.note(format!(
        "{window}; measure before and after the MTU alone, and keep it only where it helps: on a LAN whose windows were small, jumbo frames alone raised the latency and gained almost nothing"
    ));
    draft.note(format!(
        "set the same MTU at the other end and on every switch first; one station of the network that stays at {ETHERNET} drops what is larger without a word. Check with a ping that must not be fragmented: {}",
        ping(request.platform.family, mtu)
    ));
    memory(request, draft, mtu);
}

/// What became of the wish for an MTU.
enum Outcome {
    Planned,
    There,
    NoDevice,
}

fn change(request: &PlatformRequest<'_>, draft: &mut Draft<'_>, mtu: u32, arithmetic: &str) -> Outcome {
    let device = draft.device(request.packets);
    if request.platform.family == Family::Windows && !draft.is_at_least("vista") {
        windows::registry_mtu(draft, device.as_deref(), mtu, arithmetic);
        return Outcome::Planned;
    }
    let Some(device) = device else { return Outcome::NoDevice };
    let knob = Address::Link { device: device.clone(), property: "mtu".to_owned() };
    let now = draft.now(&knob).and_then(number);
    if now == Some(u64::from(mtu)) {
        draft.note(format!("{knob} is {mtu} already"));
        return Outcome::There;
    }
    if request.platform.family == Family::Windows {
        windows::jumbo_packet(draft, &device, mtu);
    }
    draft.ask(Ask {
        knob,
        to: Some(mtu.to_string()),
        reason: match now {
            Some(now) if now > u64::from(mtu) => {
                format!("it is {now}, more than the path takes: packets above {mtu} B are dropped without a word")
            }
            _ => "both ends and every hop take larger packets: fewer of them for the same data".to_owned(),
        },
        arithmetic: arithmetic.to_owned(),
        memory: None,
    });
    Outcome::Planned
}

/// The largest that anybody of the path takes.
fn widest(packets: &Packets) -> u32 {
    let ends = [&packets.here, &packets.peer];
    // A switch that takes more than the ends is the rule and not worth a word.
    ends.into_iter().flatten().map(crate::FrameSizes::largest).max().unwrap_or(ETHERNET)
}

/// Who keeps the path from larger packets.
fn disagreement(packets: &Packets) -> String {
    if packets.peer.is_none() {
        return "nothing says what the other end takes (--peer-mtu)".to_owned();
    }
    if packets.hops.is_none() {
        return "nothing says what the switches between the ends take (--hop-mtu for each, `--hop-mtu direct` for a cable)"
            .to_owned();
    }
    let small: Vec<String> =
        packets.parties().into_iter().filter(|(_, sizes)| sizes.largest() <= ETHERNET).map(|(name, _)| name).collect();
    if !small.is_empty() {
        return format!("{} takes no more than {ETHERNET} B", small.join(" and "));
    }
    let all: Vec<String> =
        packets.parties().into_iter().map(|(name, sizes)| format!("{name} takes {}", sizes.words())).collect();
    format!("no size above {ETHERNET} B is common to all: {}", all.join("; "))
}

/// The MTU of the interface, as far as a file tells it.
fn now(draft: &Draft<'_>, packets: &Packets) -> u32 {
    let knob = draft.device(packets).map(|device| Address::Link { device, property: "mtu".to_owned() });
    let now = knob.and_then(|knob| draft.now(&knob)).and_then(number);
    now.and_then(|now| now.try_into().ok()).unwrap_or(ETHERNET)
}

fn arithmetic(packets: &Packets, (mtu, now): (u32, u32), rate: Rate) -> String {
    let segment = |outer| Segment { outer, inner: outer };
    let share = |outer: u32| f64::from(segment(outer).mss()) * 100.0 / f64::from(outer + ON_THE_WIRE);
    let micros = |outer: u32| f64::from(outer + ON_THE_WIRE) * 8e6 / rate.bps() as f64;
    let sizes: Vec<String> =
        packets.parties().into_iter().map(|(name, sizes)| format!("{name} {}", sizes.words())).collect();
    format!(
        "{}: {mtu} is the largest common one; MSS {mtu} - 40 = {} instead of {}; payload {:.1} % of the line instead of {:.1} %; a frame takes {:.1} us at {rate} instead of {:.1} us, on each hop that stores it",
        sizes.join(", "),
        segment(mtu).mss(),
        segment(now).mss(),
        share(mtu),
        share(now),
        micros(mtu),
        micros(now),
    )
}

fn ping(family: Family, mtu: u32) -> String {
    // 20 of IPv4 and 8 of ICMP.
    let payload = mtu.saturating_sub(28);
    match family {
        Family::Windows => format!("`ping -f -l {payload} PEER`"),
        Family::Linux => format!("`ping -M do -s {payload} PEER`"),
        Family::FreeBsd | Family::MacOs | Family::NetBurner | Family::Unknown => format!("`ping -D -s {payload} PEER`"),
    }
}

/// What larger packets cost.
fn memory(request: &PlatformRequest<'_>, draft: &mut Draft<'_>, mtu: u32) {
    if request.platform.family != Family::FreeBsd {
        let slots = |mtu: u32| Bytes::new(1024 * u64::from(mtu + ETHERNET_HEADER));
        draft.note(format!(
            "each slot of the adapter's receive ring has to hold a whole frame: 1,024 slots take {} at least instead of {}",
            slots(mtu),
            slots(ETHERNET),
        ));
        return;
    }
    let jumbo = Address::sysctl("kern.ipc.nmbjumbo9");
    if mtu + ETHERNET_HEADER > 2048
        && let Some(span) = draft.span(&jumbo).filter(|span| span.honoured != Honoured::Yes)
    {
        let each = (mtu + ETHERNET_HEADER).div_ceil(2048);
        draft.note(format!(
            "packets of {mtu} B take {each} clusters of 2,048 B each: a receive ring of 1,024 takes {} instead of {}; kern.ipc.nmbclusters bounds them (`netstat -m`: denied must stay 0). {jumbo}: {}",
            Bytes::new(1024 * 2048 * u64::from(each)),
            Bytes::new(1024 * 2048),
            span.note,
        ));
        return;
    }
    // sys/sys/param.h: MJUMPAGESIZE is a page, MJUM9BYTES 9 KB, MJUM16BYTES 16 KB.
    let (limit, cluster) = match mtu + ETHERNET_HEADER {
        0..=2048 => ("kern.ipc.nmbclusters", 2048),
        2049..=4096 => ("kern.ipc.nmbjumbop", 4096),
        4097..=9216 => ("kern.ipc.nmbjumbo9", 9216),
        _ => ("kern.ipc.nmbjumbo16", 16_384),
    };
    draft.note(format!(
        "packets of {mtu} B come in clusters of {}: a receive ring of 1,024 takes {} instead of {}, and the receive windows of {} connections one cluster for each {} B; {limit} bounds them (`netstat -m`: denied must stay 0), and clusters above a page need memory in one piece, which can run short on a machine that has been up for long",
        Bytes::new(cluster),
        Bytes::new(1024 * cluster),
        Bytes::new(1024 * 2048),
        draft.connections,
        Segment { outer: mtu, inner: mtu }.mss(),
    ));
}

fn tunnel(request: &PlatformRequest<'_>, draft: &mut Draft<'_>) {
    let packets = request.packets;
    let segment = packets.segment();
    let (inner, mss) = (segment.inner, segment.mss());
    let packet = segment.outer.saturating_sub(packets.overhead);
    let mut words = Vec::new();
    if packets.overhead > 0 {
        words.push(format!("{} - {} (--overhead) = {packet}", segment.outer, packets.overhead));
    }
    if let Some(ipsec) = packets.ipsec {
        words.push(format!("{}: {}", ipsec.words(), ipsec.arithmetic(packet)));
    }
    draft.note(format!(
        "{}: packets of up to {inner} B pass, an MSS of {mss} (over IPv6 20 B less; 12 B less with timestamps)",
        words.join("; ")
    ));
    let whole = Segment { outer: segment.outer, inner: segment.outer }.mss();
    draft.note(format!(
        "it costs {:.1} % of the payload rate, because {mss} instead of {whole} B of each packet are payload: at most {} of {}; windows count payload, so those above are enough with it, and windows in whole segments are multiples of {mss}",
        100.0 - f64::from(mss) * 100.0 / f64::from(whole),
        Rate::from_bps(u64::try_from(u128::from(request.rate.bps()) * u128::from(mss) / u128::from(whole)).unwrap_or(u64::MAX)),
        request.rate,
    ));
    draft.note(format!(
        "set it where the tunnel begins and not on every host: an MTU of {inner} on the tunnel's interface, or the MSS of passing connections held to {mss} (Linux: `iptables -t mangle -A FORWARD -p tcp --tcp-flags SYN,RST SYN -j TCPMSS --set-mss {mss}`; pf: `scrub max-mss {mss}`); and let ICMP `fragmentation needed` through, without which larger packets vanish"
    ));
    // With larger packets asked for, the interface that is named is the adapter.
    if packets.here.is_none() && packets.device.is_some() {
        tunnel_interface(request, draft, inner);
    }
}

/// The MTU of the tunnel's own interface, where that is named.
fn tunnel_interface(request: &PlatformRequest<'_>, draft: &mut Draft<'_>, inner: u32) {
    let Some(device) = request.packets.device.clone() else { return };
    let reason = "what is larger does not fit into the tunnel's packets".to_owned();
    let arithmetic = format!("{inner} B are left of {}", request.packets.segment().outer);
    if request.platform.family == Family::Windows && !draft.is_at_least("vista") {
        windows::registry_mtu(draft, Some(&device), inner, &arithmetic);
        return;
    }
    if request.platform.family == Family::NetBurner {
        return;
    }
    let knob = Address::Link { device, property: "mtu".to_owned() };
    if draft.now(&knob).and_then(number) == Some(u64::from(inner)) {
        return;
    }
    draft.ask(Ask { knob, to: Some(inner.to_string()), reason, arithmetic, memory: None });
}
