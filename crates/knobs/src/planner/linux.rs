//! Linux: which of its settings hold a window or a send buffer down.

use std::collections::BTreeMap;

use fullpipe_diagnose::{Detail, End, SynFacts};
use fullpipe_units::{Bytes, Rate};

use super::{
    Flow, Goal, PlanHost, PlanRequest,
    notes::arrow,
    route,
    sizing::{Pipe, Share, UNSCALED},
};
use crate::{Address, Catalogue, Family, Plan, Settings, value};

const SCALING: &str = "net.ipv4.tcp_window_scaling";
const MODERATE: &str = "net.ipv4.tcp_moderate_rcvbuf";

/// What the flows ask of each host, merged, so that two directions don't contradict each other.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    hosts: BTreeMap<String, HostWants>,
}

/// What is asked of one host.
#[derive(Debug, Default)]
pub(super) struct HostWants {
    /// Switches to turn on, in this order.
    pub(super) switches: Vec<Want>,
    /// The third value of `tcp_rmem`.
    pub(super) receive: Option<BufferWant>,
    /// The third value of `tcp_wmem`.
    pub(super) send: Option<BufferWant>,
    /// Route attributes to remove.
    pub(super) clamps: Vec<Want>,
}

/// One value that shall be set (or removed).
#[derive(Debug)]
pub(super) struct Want {
    pub(super) knob: Address,
    pub(super) to: Option<String>,
    pub(super) reason: String,
    pub(super) arithmetic: String,
}

/// A buffer that shall be able to grow.
#[derive(Debug)]
pub(super) struct BufferWant {
    /// To this size.
    pub(super) buffer: Bytes,
    /// But only where it can't grow to this one now. Zero where it isn't the limit: the want then only counts for the
    /// memory that all buffers share, so that planning again comes to the same values.
    pub(super) unless: Bytes,
    pub(super) reason: String,
    pub(super) arithmetic: String,
}

impl Wanted {
    /// What is asked of the host named `name`.
    pub(super) fn of(&self, name: &str) -> Option<&HostWants> {
        self.hosts.get(name)
    }

    fn host(&mut self, name: &str) -> &mut HostWants {
        self.hosts.entry(name.to_owned()).or_default()
    }

    /// Asks for a switch to be on.
    pub(super) fn switch(&mut self, host: &str, knob: Address, to: &str, reason: String) {
        let switches = &mut self.host(host).switches;
        if switches.iter().all(|want| want.knob != knob) {
            switches.push(Want { knob, to: Some(to.to_owned()), reason, arithmetic: String::new() });
        }
    }

    fn unclamp(&mut self, host: &str, want: Want) {
        let clamps = &mut self.host(host).clamps;
        if clamps.iter().all(|known| known.knob != want.knob) {
            clamps.push(want);
        }
    }
}

/// The larger of two wants for the same buffer.
fn merge(slot: &mut Option<BufferWant>, want: BufferWant) {
    match slot {
        Some(known) if known.buffer >= want.buffer => known.unless = known.unless.max(want.unless.min(known.buffer)),
        Some(known) => {
            let unless = known.unless.max(want.unless);
            *known = BufferWant { unless, ..want };
        }
        None => *slot = Some(want),
    }
}

/// Whether a limit was found by the diagnosis, or would be the next one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    Now,
    Next,
}

/// The rate from which on sequence numbers wrap within half a minute.
const WRAPS_SOON: Rate = Rate::from_bps(1_000_000_000);

/// What recovers losses and tells old segments from new ones, where a host has it off.
pub(super) fn recovery(request: &PlanRequest<'_>, wanted: &mut Wanted) {
    let is_fast = |flow: &Flow<'_>| flow.transfer.path_rate.is_some_and(|path| path.rate_bps >= WRAPS_SOON);
    for host in &request.hosts {
        wanted.switch(host.name, Address::sysctl(SACK), "1", without_sack().to_owned());
        if request.flows.iter().any(is_fast) {
            let reason = "without timestamps nothing tells old segments from new ones where sequence numbers wrap, every 34 s at 1 Gbit/s (RFC 7323, section 5)".to_owned();
            wanted.switch(host.name, Address::sysctl("net.ipv4.tcp_timestamps"), "1", reason);
        }
    }
}

pub(super) const SACK: &str = "net.ipv4.tcp_sack";

/// What is lost without selective acknowledgements, as the catalogue words it.
pub(super) fn without_sack() -> &'static str {
    let row = Catalogue::for_family(Family::Linux).and_then(|catalogue| catalogue.find(&Address::sysctl(SACK)));
    row.and_then(|row| row.off.as_deref()).unwrap_or_default()
}

/// A flow that the receive window limits.
pub(super) fn receive_window(request: &PlanRequest<'_>, flow: &Flow<'_>, wanted: &mut Wanted, plan: &mut Plan) {
    let receiver = &flow.transfer.receiver;
    let note = |words: String| format!("{}: {words}", arrow(flow));
    if matches!(flow.diagnosis.detail, Some(Detail::ZeroWindow | Detail::SlowReader)) {
        plan.notes.push(note(format!(
            "the application on {} reads more slowly than data arrives; no setting of the system changes that",
            receiver.name
        )));
        return;
    }
    let pipe = Pipe::from_request(request, flow);
    if pipe.is_none() {
        plan.notes.push(note(
            "nothing tells what the path carries or how long it is, so buffers can't be sized; name a rate and a round-trip time"
                .to_owned(),
        ));
    }
    receiver_side(request, flow, pipe.as_ref(), Found::Now, wanted, plan);
    if let Some(pipe) = &pipe {
        sender_side(request, flow, pipe, Found::Next, wanted, plan);
    }
}

/// A flow that the send buffer limits.
pub(super) fn send_buffer(request: &PlanRequest<'_>, flow: &Flow<'_>, wanted: &mut Wanted, plan: &mut Plan) {
    let Some(pipe) = Pipe::from_request(request, flow) else {
        plan.notes.push(format!(
            "{}: nothing tells what the path carries or how long it is, so the send buffer can't be sized; name a rate and a round-trip time",
            arrow(flow)
        ));
        return;
    };
    sender_side(request, flow, &pipe, Found::Now, wanted, plan);
    receiver_side(request, flow, Some(&pipe), Found::Next, wanted, plan);
}

/// The settings of a Linux host by the name of an end, or a note on what to do there by hand.
fn linux_host<'r, 'a>(
    request: &'r PlanRequest<'a>,
    name: &str,
    by_hand: impl FnOnce() -> String,
    plan: &mut Plan,
) -> Option<&'r PlanHost<'a>> {
    let host = request.host(name).filter(|host| host.settings.platform.family == Family::Linux);
    if host.is_none() {
        plan.notes.push(by_hand());
    }
    host
}

fn receiver_side(
    request: &PlanRequest<'_>,
    flow: &Flow<'_>,
    pipe: Option<&Pipe>,
    found: Found,
    wanted: &mut Wanted,
    plan: &mut Plan,
) {
    let name = flow.transfer.receiver.name.as_str();
    if pinned(flow, pipe, found, plan) {
        return;
    }
    let needs_scaling = scaling(request, flow, pipe, found, wanted, plan);
    let target = pipe.map(|pipe| window_target(request, pipe, needs_scaling));
    let by_hand = || {
        let window = target.as_ref().map_or_else(String::new, |(window, _)| format!(" of at least {window}"));
        format!(
            "{}: the settings of {name} could not be planned for; there, let the receive window grow to a size{window} (on Linux the third value of net.ipv4.tcp_rmem bounds it, and a route's `window`)",
            arrow(flow)
        )
    };
    let host = match found {
        Found::Now => linux_host(request, name, by_hand, plan),
        Found::Next => request.host(name).filter(|host| host.settings.platform.family == Family::Linux),
    };
    let Some(host) = host else { return };
    let unclamped = clamps(flow, host, pipe, target.as_ref(), found, wanted);
    let (Some(pipe), Some((window, arithmetic))) = (pipe, target) else { return };
    let cause = unclamped || needs_scaling == Some(Scaling::Missing);
    receive_buffer(flow, host, Window { pipe, window, arithmetic, cause, found }, wanted, plan);
}

/// The window to aim at: within 65,535 bytes where that fills the pipe and scaling is off anyway.
fn window_target(request: &PlanRequest<'_>, pipe: &Pipe, needs_scaling: Option<Scaling>) -> (Bytes, String) {
    let (window, arithmetic) = pipe.window(request.goal);
    if needs_scaling == Some(Scaling::OffAndNotNeeded) && window > UNSCALED {
        let arithmetic = format!(
            "{}, which a window without scaling holds, so that scaling may stay off: its most, {UNSCALED}",
            pipe.arithmetic
        );
        return (UNSCALED, arithmetic);
    }
    (window, arithmetic)
}

/// An application that set its receive buffer itself: says so. True where nothing else can help.
fn pinned(flow: &Flow<'_>, pipe: Option<&Pipe>, found: Found, plan: &mut Plan) -> bool {
    let receiver = &flow.transfer.receiver;
    let Some(buffer) = receiver.receive_buffer.filter(|buffer| buffer.pinned) else {
        return false;
    };
    // Taken at its word: a buffer that could hold the pipe is not what limits.
    let ample = pipe.is_some_and(|pipe| buffer.largest > pipe.bdp);
    if ample && flow.diagnosis.detail != Some(Detail::PinnedByApplication) {
        return false;
    }
    if found == Found::Now {
        let size = pipe.map_or_else(String::new, |pipe| format!(" of at least {}", pipe.bdp));
        plan.notes.push(format!(
            "{}: the application on {} set SO_RCVBUF itself ({} in the kernel's count), which switches automatic sizing off; no tcp_rmem helps. Leave the option out, or ask for a window{size}: net.core.rmem_max bounds what it gets",
            arrow(flow),
            receiver.name,
            buffer.largest
        ));
    }
    true
}

/// What window scaling has to do with it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scaling {
    /// It is off, and the pipe is larger than a window without it.
    Missing,
    /// It is off, and a window without it fills the pipe.
    OffAndNotNeeded,
}

fn scaling(
    request: &PlanRequest<'_>,
    flow: &Flow<'_>,
    pipe: Option<&Pipe>,
    found: Found,
    wanted: &mut Wanted,
    plan: &mut Plan,
) -> Option<Scaling> {
    let ends = [&flow.transfer.sender, &flow.transfer.receiver];
    let off = |name: &str| {
        let host = request.host(name).filter(|host| host.settings.platform.family == Family::Linux);
        host.is_some_and(|host| host.settings.sysctl(SCALING).map(str::trim) == Some("0"))
    };
    let left_out = |syn: Option<SynFacts>| syn.is_some_and(|syn| syn.window_scale.is_none());
    let absent = flow.diagnosis.detail == Some(Detail::ScalingAbsent) || ends.iter().any(|end| left_out(end.syn));
    let switched_off: Vec<&str> = ends.iter().map(|end| end.name.as_str()).filter(|name| off(name)).collect();
    if !absent && switched_off.is_empty() {
        return None;
    }
    if pipe.is_some_and(|pipe| pipe.bdp <= UNSCALED && !pipe.lower_bound) {
        return Some(Scaling::OffAndNotNeeded);
    }
    for name in &switched_off {
        let reason = format!(
            "{name} leaves the window-scale option out, so that no window of {} exceeds {UNSCALED} (RFC 7323, section 2.2)",
            arrow(flow)
        );
        wanted.switch(name, Address::sysctl(SCALING), "1", reason);
    }
    if switched_off.is_empty() && found == Found::Now {
        // An answer without the option follows from a question without it: then only the end that opened left it out.
        let both = ends.iter().all(|end| left_out(end.syn));
        let opened = ends.iter().any(|end| end.opened == Some(true));
        let at_fault = |end: &End| left_out(end.syn) && !(both && opened && end.opened != Some(true));
        let who: Vec<&str> = ends.iter().filter(|end| at_fault(end)).map(|end| end.name.as_str()).collect();
        let who = if who.is_empty() { "one end".to_owned() } else { who.join(" and ") };
        plan.notes.push(format!(
            "{}: {who} left the window-scale option out, and no setting that was read explains it; where {SCALING} is 1 there, a device on the path takes the option away, or the other system has it off",
            arrow(flow)
        ));
    }
    Some(Scaling::Missing)
}

/// Route attributes that hold the window down. True where there is one.
fn clamps(
    flow: &Flow<'_>,
    host: &PlanHost<'_>,
    pipe: Option<&Pipe>,
    target: Option<&(Bytes, String)>,
    found: Found,
    wanted: &mut Wanted,
) -> bool {
    let offered = largest_offered(flow);
    let mut any = false;
    for (knob, limit) in route::windows_towards(host.settings, host.peer) {
        let too_small = match (target, pipe, found) {
            (Some((window, _)), _, Found::Now) => limit < *window,
            (_, Some(pipe), Found::Next) => limit < pipe.bdp,
            // Without a target: only one that stands where the window stood.
            _ => offered.is_some_and(|offered| offered <= limit && offered.get() * 10 >= limit.get() * 9),
        };
        if !too_small {
            continue;
        }
        any = true;
        let reason = format!(
            "this route holds every window that {} offers down to {limit}; without the attribute automatic sizing takes over",
            host.name
        );
        let arithmetic = target.map_or_else(String::new, |(_, arithmetic)| format!("{arithmetic} of window wanted"));
        wanted.unclamp(host.name, Want { knob, to: None, reason, arithmetic });
    }
    any
}

fn largest_offered(flow: &Flow<'_>) -> Option<Bytes> {
    let by_receiver = flow.transfer.receiver_samples.iter().filter_map(|sample| sample.offered_window);
    let by_sender = flow.transfer.sender_samples.iter().filter_map(|sample| sample.offered_window);
    by_receiver.chain(by_sender).max()
}

/// The window that is wanted, and what is known of it.
struct Window<'a> {
    pipe: &'a Pipe,
    window: Bytes,
    arithmetic: String,
    /// Whether a route or the missing option already explains the small window.
    cause: bool,
    found: Found,
}

/// `tcp_rmem` and the switch of automatic sizing.
fn receive_buffer(flow: &Flow<'_>, host: &PlanHost<'_>, asked: Window<'_>, wanted: &mut Wanted, plan: &mut Plan) {
    let Some([_, initial, largest]) = three(host.settings, "net.ipv4.tcp_rmem") else {
        plan.notes.push(format!("{}: net.ipv4.tcp_rmem could not be read, so it is left alone", host.name));
        return;
    };
    let by_buffer = match flow.diagnosis.detail {
        Some(Detail::WindowCeiling) => true,
        // Well below what a header without scaling can say, the buffer is what bounds it.
        Some(Detail::ScalingAbsent) => {
            largest_offered(flow).is_some_and(|offered| offered.get() * 10 < UNSCALED.get() * 9)
        }
        _ => false,
    };
    let trust = by_buffer && !asked.cause && asked.found == Found::Now;
    let share = Share::of_receive_buffer(flow, host.settings, !trust);
    let buffer = share.buffer_for(asked.window);
    let unless = match asked.found {
        Found::Now => buffer,
        Found::Next => share.buffer_for(asked.pipe.bdp),
    };
    let fixed = host.settings.sysctl(MODERATE).map(str::trim) == Some("0");
    if fixed && initial < unless {
        let reason = format!(
            "automatic sizing is off on {}, so that receive buffers stay at their initial {initial}, the second value of tcp_rmem",
            host.name
        );
        wanted.switch(host.name, Address::sysctl(MODERATE), "1", reason);
    }
    let seen = flow.transfer.receiver_samples.iter().filter_map(|sample| sample.receive_buffer).max();
    let mut unless = unless;
    // While a send buffer holds the sender back, the receive buffer grows no further, whatever it may have.
    if asked.found == Found::Now && !asked.cause && !fixed && below_ceiling(seen, largest) {
        unless = Bytes::ZERO;
        plan.notes.push(format!(
            "{}: the receive buffer never came near the {largest} that tcp_rmem allows on {}, so raising it would not help; look at TCP_WINDOW_CLAMP and at how the application reads",
            arrow(flow),
            host.name
        ));
    }
    let why = match asked.found {
        Found::Now => format!("the receive window limits {}", arrow(flow)),
        Found::Next => format!("with the send buffer raised, the receive window would limit {} next", arrow(flow)),
    };
    // What was seen is a better figure than what the buffer should hold.
    let offers = match largest_offered(flow).filter(|_| asked.found == Found::Now) {
        Some(offered) => format!("offered at most {offered}"),
        None => format!("can offer at most {}", share.payload_in(largest)),
    };
    let reason = format!("{why}: {} {offers} with the buffer it may have now", host.name);
    let arithmetic = format!("{} of window; {}: {buffer} of buffer", asked.arithmetic, share.words);
    merge(&mut wanted.host(host.name).receive, BufferWant { buffer, unless, reason, arithmetic });
}

fn sender_side(
    request: &PlanRequest<'_>,
    flow: &Flow<'_>,
    pipe: &Pipe,
    found: Found,
    wanted: &mut Wanted,
    plan: &mut Plan,
) {
    let sender = &flow.transfer.sender;
    let (payload, arithmetic) = pipe.unacknowledged(request.goal);
    if let Some(buffer) = sender.send_buffer.filter(|buffer| buffer.pinned) {
        if found == Found::Now {
            plan.notes.push(format!(
                "{}: the application on {} set SO_SNDBUF itself ({} in the kernel's count), which switches automatic sizing off; no tcp_wmem helps. Leave the option out, or ask for at least {payload}: net.core.wmem_max bounds what it gets",
                arrow(flow), sender.name, buffer.largest
            ));
        }
        return;
    }
    let by_hand = || {
        format!(
            "{}: the settings of {} could not be planned for; there, let the send buffer hold at least {payload} (on Linux the third value of net.ipv4.tcp_wmem bounds it)",
            arrow(flow),
            sender.name
        )
    };
    let host = match found {
        Found::Now => linux_host(request, &sender.name, by_hand, plan),
        Found::Next => request.host(&sender.name).filter(|host| host.settings.platform.family == Family::Linux),
    };
    let Some(host) = host else { return };
    let Some([_, _, largest]) = three(host.settings, "net.ipv4.tcp_wmem") else {
        plan.notes.push(format!("{}: net.ipv4.tcp_wmem could not be read, so it is left alone", host.name));
        return;
    };
    let share = Share::of_send_buffer(flow);
    let buffer = share.buffer_for(payload);
    let (mut unless, why) = match found {
        Found::Now => (buffer, format!("the send buffer limits {}", arrow(flow))),
        // Two thirds of it must hold the product: the writer is woken no sooner than a third is free.
        Found::Next => (
            share.buffer_for(pipe.unacknowledged(Goal::Interactive).0),
            format!("with the window opened, the send buffer would limit {} next", arrow(flow)),
        ),
    };
    let seen = flow.transfer.sender_samples.iter().filter_map(|sample| sample.send_buffer).max();
    if found == Found::Now && below_ceiling(seen, largest) {
        plan.notes.push(format!(
            "{}: the send buffer never came near the {largest} that tcp_wmem allows on {}, so raising it would not help; look at how the application writes, at tcp_notsent_lowat and at tcp_mem",
            arrow(flow), host.name
        ));
        unless = Bytes::ZERO;
    }
    let reason = format!(
        "{why}: {} can have at most {} unacknowledged with the buffer it may have now",
        host.name,
        share.payload_in(largest)
    );
    let arithmetic = format!("{arithmetic} unacknowledged; {}: {buffer} of buffer", share.words);
    merge(&mut wanted.host(host.name).send, BufferWant { buffer, unless, reason, arithmetic });
}

/// Whether a buffer was seen and stayed clearly below what it was allowed: then the allowance was not the limit.
fn below_ceiling(seen: Option<Bytes>, allowed: Bytes) -> bool {
    seen.is_some_and(|seen| u128::from(seen.get()) * 10 < u128::from(allowed.get()) * 9)
}

/// The three values of a sysctl such as `tcp_rmem`.
pub(super) fn three(settings: &Settings, name: &str) -> Option<[Bytes; 3]> {
    Some(value::three(settings.sysctl(name)?)?.map(Bytes::new))
}
