//! FreeBSD and macOS: socket buffers below one ceiling.

use fullpipe_units::{Bytes, Micros};

use super::{
    PlatformRequest,
    platform::{Ask, Draft},
};
use crate::{Address, catalogue::Honoured};

/// FreeBSD counts an mbuf (256 B) with each cluster (2048 B): a socket may use 2048 / 2304 of `kern.ipc.maxsockbuf`
/// (`sb_max_adj` in sys/kern/uipc_sockbuf.c).
const CLUSTER: u64 = 2048;
const CLUSTER_AND_MBUF: u64 = 2304;

pub(super) fn freebsd(request: &PlatformRequest<'_>, draft: &mut Draft<'_>) {
    let automatic = draft.is_at_least("7.0");
    let [receive, send] = if automatic {
        ["net.inet.tcp.recvbuf_max", "net.inet.tcp.sendbuf_max"]
    } else {
        ["net.inet.tcp.recvspace", "net.inet.tcp.sendspace"]
    };
    let mut sizes = sizes(request, draft);
    clusters(draft, &mut sizes, (!automatic).then_some([receive, send]));
    ceiling(draft, sizes.largest(), |bytes| bytes.saturating_mul(CLUSTER_AND_MBUF).div_ceil(CLUSTER));
    spaces(draft, [receive, send], &sizes);
    for (switch, why) in [
        ("net.inet.tcp.rfc1323", "without it no window exceeds 65,535 B"),
        ("net.inet.tcp.sack.enable", "without it several losses in one window cost a timeout"),
        ("net.inet.tcp.path_mtu_discovery", "without it packets may be fragmented on the way"),
        ("net.inet.tcp.recvbuf_auto", "without it the receive buffer stays at recvspace"),
        ("net.inet.tcp.sendbuf_auto", "without it the send buffer stays at sendspace"),
    ] {
        draft.turn_on(Address::sysctl(switch), why);
    }
    draft.note("copied advice makes kern.ipc.maxsockbuf four times the buffers: 9/8 of the larger one is what the system asks for (sb_max_adj in sys/kern/uipc_sockbuf.c), and more only lets applications take more".to_owned());
    draft.note("a socket buffer above 8/9 of kern.ipc.maxsockbuf makes new sockets fail with ENOBUFS: raise maxsockbuf first, and undo in reverse order".to_owned());
    inflight(request, draft);
}

/// The limiter of data in flight that 4.7 to 8.x have, by the name that it has on this version.
fn inflight(request: &PlatformRequest<'_>, draft: &mut Draft<'_>) {
    /// Below this round-trip time its estimate is inefficient on a fast network (8.2 release notes), and from 6.1 on it
    /// switches itself off there (net.inet.tcp.inflight.rttthresh, 6.1 release notes).
    const THRESHOLD: Micros = Micros::from_millis(10);
    let names = ["net.inet.tcp.inflight_enable", "net.inet.tcp.inflight.enable"];
    let known = names.map(Address::sysctl).into_iter().find_map(|knob| {
        let span = draft.span(&knob).filter(|span| span.honoured == Honoured::Yes)?;
        Some((knob, span))
    });
    let Some((knob, span)) = known else { return };
    let given = draft.now(&knob).map(str::trim);
    if given.unwrap_or(&span.default) != "1" {
        return;
    }
    let whose = if given.is_some() { "as the settings say" } else { "by default" };
    if draft.is_at_least("6.1") && request.rtt < THRESHOLD {
        draft.note(format!(
            "{knob} is on {whose} and switches itself off below {THRESHOLD} of round-trip time (net.inet.tcp.inflight.rttthresh): it stays as it is"
        ));
        return;
    }
    if given.is_some() && request.rtt < THRESHOLD {
        draft.ask(Ask {
            knob,
            to: Some("0".to_owned()),
            reason: "it holds each window down to an estimate, which is inefficient on a fast network below 10 ms of round-trip time (FreeBSD 8.2 release notes) and becomes the limiter".to_owned(),
            arithmetic: String::new(),
            memory: None,
        });
        return;
    }
    draft.note(format!(
        "{knob} is on {whose}: it holds the window down to an estimate and can be the limiter; where it is, 0 turns it off"
    ));
}

pub(super) fn macos(request: &PlatformRequest<'_>, draft: &mut Draft<'_>) {
    /// SB_MAX of xnu: sysctl refuses more.
    const LARGEST: u64 = 8 << 20;
    let mut sizes = sizes(request, draft);
    if sizes.largest().get() > LARGEST {
        draft.note(format!("macOS refuses socket buffers above {}: use several connections", Bytes::new(LARGEST)));
        sizes.receive.0 = sizes.receive.0.min(Bytes::new(LARGEST));
        sizes.send.0 = sizes.send.0.min(Bytes::new(LARGEST));
    }
    ceiling(draft, sizes.largest(), |bytes| bytes);
    spaces(draft, ["net.inet.tcp.autorcvbufmax", "net.inet.tcp.autosndbufmax"], &sizes);
    draft.note("a value set with sysctl does not outlast a restart; a launchd job that runs the command keeps it (not verified on every version)".to_owned());
}

/// `kern.ipc.nmbclusters`, before the buffers that it has to hold; where the memory for them is known and not there, the
/// buffers shrink to what it holds.
///
/// `fixed` are the names of the sizes that every socket has; without them buffers grow as far as the path needs.
fn clusters(draft: &mut Draft<'_>, sizes: &mut Sizes, fixed: Option<[&str; 2]>) {
    let knob = Address::sysctl("kern.ipc.nmbclusters");
    let mbufs = draft.mbufs();
    let known = mbufs.clusters_max.or_else(|| draft.now(&knob).and_then(super::platform::number));
    let others = mbufs.clusters_in_use.unwrap_or(0);
    let connections = draft.connections;
    let needed = |sizes: &Sizes| {
        let both = sizes.receive.0.get().saturating_add(sizes.send.0.get());
        both.saturating_mul(connections).div_ceil(CLUSTER)
    };
    // The system itself lets mbufs have half of the memory (sys/kern/kern_mbuf.c: maxmbufmem = realmem / 2).
    let affordable = draft.memory().map(|memory| (memory.get() / 2 / CLUSTER_AND_MBUF).saturating_sub(others));
    if let Some(affordable) = affordable.filter(|affordable| needed(sizes) > *affordable) {
        let each = Bytes::new(affordable.saturating_mul(CLUSTER) / (2 * connections) / 4096 * 4096);
        draft.note(format!(
            "{} clusters would be needed for {connections} connections, and half of the memory holds {affordable}: each buffer is planned with {each}, so the pipe may not be filled; plan for fewer connections",
            needed(sizes)
        ));
        sizes.receive.0 = sizes.receive.0.min(each);
        sizes.send.0 = sizes.send.0.min(each);
    }
    // What is larger already stays, and needs its clusters all the same.
    let held = |at: usize, wanted: Bytes| {
        let there = fixed.and_then(|names| draft.number(&Address::sysctl(names[at])));
        there.unwrap_or(0).max(wanted.get())
    };
    let both = held(0, sizes.receive.0).saturating_add(held(1, sizes.send.0));
    let worst = both.saturating_mul(connections);
    let wanted = worst.div_ceil(CLUSTER).saturating_add(others);
    let words = format!(
        "{connections} connections can hold {} = {} clusters of 2,048 B{}",
        Bytes::new(worst),
        worst.div_ceil(CLUSTER),
        if others > 0 { format!(", and {others} are in use") } else { String::new() },
    );
    if let Some(denied) = mbufs.denied.filter(|denied| *denied > 0) {
        draft.note(format!(
            "{denied} requests for buffers were denied since the machine started: clusters have run out"
        ));
    }
    match known {
        Some(now) if now >= wanted => draft.note(format!("{words}: kern.ipc.nmbclusters = {now} has them")),
        Some(now) => {
            let to = wanted.checked_next_multiple_of(1024).unwrap_or(wanted);
            draft.ask(Ask {
                knob,
                to: Some(to.to_string()),
                reason: format!(
                    "the buffers can use more clusters than the {now} that there are; where they run out, the whole machine's network stops. Restart with it before buffers are raised"
                ),
                arithmetic: format!(
                    "{words}; rounded up to {to}, at most {} of memory with their mbufs",
                    Bytes::new(to.saturating_mul(CLUSTER_AND_MBUF))
                ),
                // The same memory as that of the buffers.
                memory: None,
            });
        }
        None => draft.note(format!(
            "{words}: compare that with kern.ipc.nmbclusters (`netstat -m`; with its output in --settings they are planned, too); where clusters run out, the whole machine's network stops, so raise them in /boot/loader.conf before the buffers"
        )),
    }
}

/// The buffers that are wanted, each with its arithmetic.
struct Sizes {
    receive: (Bytes, String),
    send: (Bytes, String),
}

impl Sizes {
    fn largest(&self) -> Bytes {
        self.receive.0.max(self.send.0)
    }
}

fn sizes(request: &PlatformRequest<'_>, draft: &mut Draft<'_>) -> Sizes {
    let (receive, receive_words) = draft.pipe.window(request.goal);
    let (send, send_words) = draft.pipe.unacknowledged(request.goal);
    // Both buffers of a connection share the bound.
    let half = request.memory_bound.map(|bound| Bytes::new(bound.get() / 2));
    let round = |bytes: Bytes, bounded: bool| if bounded { bytes } else { bytes.round_up_to(4096) };
    if let Some((bound, half)) = request.memory_bound.zip(half)
        && half.get() / draft.connections < receive.max(send).get()
    {
        draft.note(format!(
            "the memory bound of {bound} is for both buffers of all connections: {half} for receiving and {half} for sending"
        ));
    }
    let receive_fits = draft.within_bound(receive, half);
    let send_fits = if send == receive { receive_fits } else { draft.within_bound(send, half) };
    Sizes {
        receive: (round(receive_fits, half.is_some()), receive_words),
        send: (round(send_fits, half.is_some()), send_words),
    }
}

/// `kern.ipc.maxsockbuf`, first because the others fail above it.
fn ceiling(draft: &mut Draft<'_>, largest: Bytes, with_overhead: impl Fn(u64) -> u64) {
    let knob = Address::sysctl("kern.ipc.maxsockbuf");
    let needed = Bytes::new(with_overhead(largest.get())).round_up_to(4096);
    if draft.number(&knob).is_some_and(|now| now >= needed.get()) {
        return;
    }
    draft.ask(Ask {
        knob,
        to: Some(needed.get().to_string()),
        reason: "no socket buffer grows past it, and the window scale follows from it".to_owned(),
        arithmetic: format!("{largest} for the largest buffer, with the system's own overhead {needed}"),
        memory: None,
    });
}

fn spaces(draft: &mut Draft<'_>, names: [&str; 2], sizes: &Sizes) {
    for (name, (bytes, arithmetic)) in names.into_iter().zip([&sizes.receive, &sizes.send]) {
        let knob = Address::sysctl(name);
        if draft.number(&knob).is_some_and(|now| now >= bytes.get()) {
            continue;
        }
        draft.ask(Ask {
            knob,
            to: Some(bytes.get().to_string()),
            reason: "the buffer may not grow to what the path holds".to_owned(),
            arithmetic: format!("{arithmetic}; the buffer counts payload, so it is set to {bytes}"),
            memory: Some(Bytes::new(bytes.get().saturating_mul(draft.connections))),
        });
    }
}
