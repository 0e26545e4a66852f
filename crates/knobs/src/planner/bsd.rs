//! FreeBSD and macOS: socket buffers below one ceiling.

use fullpipe_units::{Bytes, Micros};

use super::{
    PlatformRequest,
    platform::{Ask, Draft, number},
};
use crate::{Address, catalogue::Honoured};

/// FreeBSD counts an mbuf (256 B) with each cluster (2048 B): a socket may use 2048 / 2304 of `kern.ipc.maxsockbuf`
/// (`sb_max_adj` in sys/kern/uipc_sockbuf.c).
const CLUSTER: u64 = 2048;
const CLUSTER_AND_MBUF: u64 = 2304;
/// MJUMPAGESIZE of sys/sys/param.h where pages have 4 KB.
const PAGE: u64 = 4096;

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
    for switch in [
        "net.inet.tcp.rfc1323",
        "net.inet.tcp.sack.enable",
        "net.inet.tcp.path_mtu_discovery",
        "net.inet.tcp.recvbuf_auto",
        "net.inet.tcp.sendbuf_auto",
    ] {
        draft.turn_on(Address::sysctl(switch));
    }
    let burst = Address::sysctl("net.inet.tcp.abc_l_var");
    if let Some(segments) = draft.now(&burst).and_then(number).filter(|segments| *segments > 2) {
        draft.ask(Ask {
            knob: burst,
            to: Some("2".to_owned()),
            reason: format!("an acknowledgement may add {segments} segments in slow start, which leave as one burst; RFC 3465 (2.3) bounds that at two"),
            arithmetic: String::new(),
            memory: None,
        });
    }
    draft.note("copied advice makes kern.ipc.maxsockbuf four times the buffers: 9/8 of the larger one is what the system asks for (sb_max_adj in sys/kern/uipc_sockbuf.c), and more only lets applications take more".to_owned());
    draft.note("a socket buffer above 8/9 of kern.ipc.maxsockbuf makes new sockets fail with ENOBUFS: raise maxsockbuf first, and undo in reverse order".to_owned());
    inflight(request, draft);
}

/// What 4.7 to 8.x's own limiter of data in flight does where it is on: one judgement for plans and for recipes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inflight {
    /// Nothing: the round trip is below net.inet.tcp.inflight.rttthresh (6.1 release notes).
    SwitchesItselfOff,
    /// It becomes the limiter.
    Harms,
    /// It may be the limiter.
    MayBound,
}

impl Inflight {
    /// Below this round-trip time its estimate is inefficient on a fast network (8.2 release notes), and from 6.1 on it
    /// switches itself off there.
    const THRESHOLD: Micros = Micros::from_millis(10);
    pub(crate) const HARM: &str = "it holds each window down to an estimate, which is inefficient on a fast network below 10 ms of round-trip time (FreeBSD 8.2 release notes) and becomes the limiter";

    /// For a version that can switch it off by itself or not, and a round-trip time where one is known.
    pub(crate) fn judge(switches_off: bool, rtt: Option<Micros>) -> Self {
        match rtt {
            Some(rtt) if rtt < Self::THRESHOLD && switches_off => Self::SwitchesItselfOff,
            Some(rtt) if rtt < Self::THRESHOLD => Self::Harms,
            _ => Self::MayBound,
        }
    }

    pub(crate) fn may_bound(name: &str) -> String {
        format!(
            "{name} holds the window down to an estimate and can be the limiter; where transfers stay below their path, measure with {name}=0"
        )
    }
}

/// Its switch, by the name that it has on this version.
fn inflight(request: &PlatformRequest<'_>, draft: &mut Draft<'_>) {
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
    match Inflight::judge(draft.is_at_least("6.1"), Some(request.rtt)) {
        Inflight::SwitchesItselfOff => draft.note(format!(
            "{knob} is on {whose} and switches itself off below {} of round-trip time (net.inet.tcp.inflight.rttthresh): it stays as it is",
            Inflight::THRESHOLD
        )),
        Inflight::Harms => draft.ask(Ask {
            knob,
            to: Some("0".to_owned()),
            reason: Inflight::HARM.to_owned(),
            arithmetic: String::new(),
            memory: None,
        }),
        Inflight::MayBound => draft.note(format!("{}; it is on {whose}", Inflight::may_bound(&knob.to_string()))),
    }
}

/// SB_MAX of xnu: sysctl refuses more.
pub(crate) const MACOS_LARGEST: u64 = 8 << 20;

pub(super) fn macos(request: &PlatformRequest<'_>, draft: &mut Draft<'_>) {
    const LARGEST: u64 = MACOS_LARGEST;
    let mut sizes = sizes(request, draft);
    if sizes.largest().get() > LARGEST {
        draft.note(format!("macOS refuses socket buffers above {}: use several connections", Bytes::new(LARGEST)));
        sizes.receive.0 = sizes.receive.0.min(Bytes::new(LARGEST));
        sizes.send.0 = sizes.send.0.min(Bytes::new(LARGEST));
    }
    ceiling(draft, sizes.largest(), |bytes| bytes);
    spaces(draft, ["net.inet.tcp.autorcvbufmax", "net.inet.tcp.autosndbufmax"], &sizes);
    for switch in ["net.inet.tcp.sack", "net.inet.tcp.path_mtu_discovery", "net.inet.tcp.doautorcvbuf"] {
        draft.turn_on(Address::sysctl(switch));
    }
    draft.note("a value set with sysctl does not outlast a restart; a launchd job that runs the command keeps it (not verified on every version)".to_owned());
}

/// The clusters of each pool, before the buffers that they have to hold; where the memory for them is known and not
/// there, the buffers shrink to what it holds.
///
/// `fixed` are the names of the sizes that every socket has; without them buffers grow as far as the path needs.
fn clusters(draft: &mut Draft<'_>, sizes: &mut Sizes, fixed: Option<[&str; 2]>) {
    let mbufs = draft.mbufs();
    let (in_use, pages_in_use) = (mbufs.clusters_in_use.unwrap_or(0), mbufs.pages_in_use.unwrap_or(0));
    within_memory(draft, sizes, in_use);
    // What is larger already stays, and needs its clusters all the same.
    let held = |at: usize, wanted: Bytes| {
        let there = fixed.and_then(|names| draft.number(&Address::sysctl(names[at])));
        there.unwrap_or(0).max(wanted.get()).saturating_mul(draft.connections)
    };
    let sent = held(1, sizes.send.0);
    let both = held(0, sizes.receive.0).saturating_add(sent);
    for (denied, which, in_use, max) in [
        (mbufs.denied, "buffers", mbufs.clusters_in_use, mbufs.clusters_max),
        (mbufs.pages_denied, "clusters of a page", mbufs.pages_in_use, mbufs.pages_max),
    ] {
        if let Some(denied) = denied.filter(|denied| *denied > 0) {
            // A request is denied, too, where the machine has no free page for it.
            let why = match in_use.zip(max) {
                Some((in_use, max)) if in_use < max / 2 => {
                    format!("clusters or the memory for them ran out ({in_use} of {max} are in use now)")
                }
                _ => "clusters have run out".to_owned(),
            };
            draft.note(format!("{denied} requests for {which} were denied since the machine started: {why}"));
        }
    }
    let small = Pool { knob: "kern.ipc.nmbclusters", each: CLUSTER, holds: both, in_use, known: mbufs.clusters_max };
    let pages =
        Pool { knob: "kern.ipc.nmbjumbop", each: PAGE, holds: sent, in_use: pages_in_use, known: mbufs.pages_max };
    // sys/kern/uipc_mbuf.c, m_getm2: from 7.0 on writes above 2,048 B lie in clusters of a page. Smaller ones, and what is
    // received in packets of an Ethernet, lie in those of 2,048 B, so that these may have to hold all.
    if !draft.is_at_least("7.0") {
        return plan_pool(draft, &small, "");
    }
    // sys/kern/kern_mbuf.c, tunable_mbinit: of 9.1 it makes nmbjumbop half of nmbclusters and reads no tunable for it;
    // that of 9.3 reads one.
    if !draft.is_at_least("9.3") && pages.known(draft).is_some_and(|known| known < pages.wanted()) {
        return plan_both(draft, &small, &pages);
    }
    plan_pool(draft, &small, "");
    plan_pool(draft, &pages, " in writes above 2,048 B");
}

/// Bounds the buffers to what the memory holds of their clusters.
fn within_memory(draft: &mut Draft<'_>, sizes: &mut Sizes, in_use: u64) {
    let connections = draft.connections;
    let both = sizes.receive.0.get().saturating_add(sizes.send.0.get());
    let needed = both.saturating_mul(connections).div_ceil(CLUSTER);
    // The system itself lets mbufs have half of the memory (sys/kern/kern_mbuf.c: maxmbufmem = realmem / 2).
    let affordable = draft.memory().map(|memory| (memory.get() / 2 / CLUSTER_AND_MBUF).saturating_sub(in_use));
    let Some(affordable) = affordable.filter(|affordable| needed > *affordable) else { return };
    let each = Bytes::new(affordable.saturating_mul(CLUSTER) / (2 * connections) / 4096 * 4096);
    draft.note(format!(
        "{needed} clusters would be needed for {connections} connections, and half of the memory holds {affordable}: each buffer is planned with {each}, so the pipe may not be filled; plan for fewer connections"
    ));
    sizes.receive.0 = sizes.receive.0.min(each);
    sizes.send.0 = sizes.send.0.min(each);
}

/// Clusters of one size, and the payload that connections can have in them.
struct Pool {
    knob: &'static str,
    /// The payload of one.
    each: u64,
    holds: u64,
    /// By others.
    in_use: u64,
    /// How many there may be, where `netstat -m` tells.
    known: Option<u64>,
}

impl Pool {
    fn raise(&self, draft: &mut Draft<'_>, now: u64, wanted: u64, words: &str) {
        /// sys/sys/param.h: MSIZE, which comes to each cluster.
        const MBUF: u64 = 256;
        let to = wanted.checked_next_multiple_of(1024).unwrap_or(wanted);
        draft.ask(Ask {
            knob: Address::sysctl(self.knob),
            to: Some(to.to_string()),
            reason: format!(
                "the buffers can use more clusters than the {now} that there are; where they run out, the whole machine's network stops. Restart with it before buffers are raised"
            ),
            arithmetic: format!(
                "{words}; rounded up to {to}, at most {} of memory with their mbufs",
                Bytes::new(to.saturating_mul(self.each + MBUF))
            ),
            // The same memory as that of the buffers.
            memory: None,
        });
        if draft.memory().is_none() {
            draft.note(format!(
                "no file tells how much memory this machine has (`sysctl hw.physmem` with --settings does): where {} are more than half of it, plan with --memory, or for fewer connections",
                Bytes::new(to.saturating_mul(self.each + MBUF))
            ));
        }
    }

    fn words(&self, connections: u64, why: &str) -> String {
        let Self { each, holds, in_use, .. } = *self;
        let others = if in_use > 0 { format!(", and {in_use} are in use") } else { String::new() };
        format!(
            "{connections} connections can hold {}{why} = {} clusters of {}{others}",
            Bytes::new(holds),
            holds.div_ceil(each),
            Bytes::new(each),
        )
    }

    fn wanted(&self) -> u64 {
        self.holds.div_ceil(self.each).saturating_add(self.in_use)
    }

    fn known(&self, draft: &Draft<'_>) -> Option<u64> {
        self.known.or_else(|| draft.now(&Address::sysctl(self.knob)).and_then(number))
    }
}

/// Both pools by the one name that the boot loader takes.
fn plan_both(draft: &mut Draft<'_>, small: &Pool, pages: &Pool) {
    let Some(now) = small.known(draft) else { return plan_pool(draft, small, "") };
    let needed = pages.wanted();
    let words = format!(
        "{}; {}, and {} is half of {} after a start",
        small.words(draft.connections, ""),
        pages.words(draft.connections, " in writes above 2,048 B"),
        pages.knob,
        small.knob,
    );
    if now < small.wanted() || now / 2 < needed {
        return small.raise(draft, now, small.wanted().max(needed.saturating_mul(2)), &words);
    }
    draft.note(format!(
        "{words}: {} = {now} was raised while the system ran; the same line in /boot/loader.conf and a restart make {} {}, or sysctl {}={needed} raises it at once, before the buffers",
        small.knob,
        pages.knob,
        now / 2,
        pages.knob,
    ));
}

fn plan_pool(draft: &mut Draft<'_>, pool: &Pool, why: &str) {
    let (knob, wanted) = (pool.knob, pool.wanted());
    let words = pool.words(draft.connections, why);
    match pool.known(draft) {
        Some(now) if now >= wanted => draft.note(format!("{words}: {knob} = {now} has them")),
        Some(now) => pool.raise(draft, now, wanted, &words),
        None => draft.note(format!(
            "{words}: compare that with {knob} (`netstat -m`; with its output in --settings they are planned, too); where clusters run out, the whole machine's network stops, so raise them in /boot/loader.conf before the buffers"
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
