//! NetBurner devices: packet buffers of each socket, out of one small pool.
//!
//! How many a path wants comes from a model of the device, not from the bandwidth-delay product alone: a slow device is
//! busy with each packet, and its application waits for a set of buffers to be acknowledged before it writes the next.

use fullpipe_units::{Bytes, Micros, Rate};

use super::{
    PlatformRequest,
    platform::{Ask, Draft, number},
};
use crate::{Address, settings::SocketBuffers};

/// A full packet: 43 of them stay below a window of 65,535 B, and the stack is not known to scale windows.
const PACKET: u64 = 1500;
/// The most buffers of one list that have an effect.
pub(crate) const MOST: u64 = 65_535 / PACKET;
/// The fewest that SetSocketRxBuffers and its siblings take: the default (NetBurner: Optimizing TCP Configurations).
pub(crate) const LEAST: u64 = 5;
/// Memory of one buffer of the pool, and how many there are (NetBurner: Optimizing TCP Configurations).
const BUFFER: u64 = 1548;
pub(crate) const POOL: u64 = 256;
/// The call that says how many packets may be kept out of order.
const OUT_OF_ORDER: &str = "SetOutOfOrderBuffers";
/// The step in which counts are looked for.
const STEP: u64 = 5;
/// The device's time for a packet, in microseconds: 138 for the packet (scenario netburner-lan, fitted to the published
/// 0.658 s with 20 buffers), and half of that again for its share of an acknowledgement.
const DEVICE_US: f64 = 138.0 * 1.5;
/// Preamble, header, check sequence and gap of Ethernet.
const ON_THE_WIRE: u64 = 38;
/// Below this gain of five more buffers the plateau is reached. Chosen so that a LAN's is at 20, beyond which the article
/// saw no gain (between 2.2 and 3.6 % give that); the 40 of the Internet come out of it.
const WORTH: f64 = 0.025;

pub(super) fn plan(request: &PlatformRequest<'_>, draft: &mut Draft<'_>) {
    // Its buffers hold no jumbo frame.
    let segment = draft.segment.min(PACKET - 40);
    let model = Model { rate: request.rate, rtt: request.rtt, segment };
    let wanted = model.plateau();
    let pool = request.memory_bound.map_or(POOL, |bound| bound.get() / BUFFER);
    let share = Share { buffers: free(pool) / draft.connections, kept: kept(draft) };
    let sockets = sockets(draft);
    if request.connections.is_none() && sockets.len() > 1 {
        draft.note(format!(
            "the settings have {} sockets, which share the pool: planned for as many (--connections says otherwise)",
            sockets.len()
        ));
    }
    let Some(packets) = share.packets(wanted) else {
        draft.note(too_many(draft.connections, pool));
        return;
    };
    let reached = model.reached(packets);
    if wanted == MOST {
        draft.note(format!(
            "more than {MOST} packets of {PACKET} B have no effect: a window ends at 65,535 B; {packets} are {reached} at most on this path"
        ));
    }
    if packets < wanted {
        draft.note(format!(
            "the pool has {pool} buffers for everything on the device; with {} connections {packets} in each list is what leaves a quarter of them free ({wanted} would be best; BUFFER_POOL_SIZE makes more, GetFreeCount() shows what is left)",
            draft.connections
        ));
    }
    let memory = Bytes::new(packets * BUFFER * draft.connections);
    for (function, what) in [
        ("SetSocketRxBuffers", "what the device can receive in one round trip"),
        ("SetSocketTxBuffers", "what the device can have ready to send"),
        ("SetSocketUnackBuffers", "what the device may have sent and not yet acknowledged"),
    ] {
        // A file tells the value of its last call; another socket may have another.
        if now(draft, function) == Some(packets) && sockets.iter().all(|socket| socket.of(function) == Some(packets)) {
            continue;
        }
        draft.ask(Ask {
            knob: call(function),
            to: Some(packets.to_string()),
            reason: format!("the number of buffers bounds {what}"),
            arithmetic: model.words(packets),
            memory: Some(memory),
        });
    }
    let late = share.out_of_order(packets);
    if share.kept.is_some_and(|kept| kept > late) {
        draft.ask(Ask {
            knob: call(OUT_OF_ORDER),
            to: Some(late.to_string()),
            reason: "of the packets that a socket can receive all but one can come out of order: more buffers for them are taken from the other sockets".to_owned(),
            arithmetic: format!("{packets} receive buffers - 1, at least the default of {LEAST}"),
            memory: Some(Bytes::new(late * BUFFER * draft.connections)),
        });
    }
    draft.note(format!(
        "{} at most {} of {pool} buffers with {late} for packets out of order each: the pool can't run dry by them",
        if draft.connections == 1 {
            "one connection takes".to_owned()
        } else {
            format!("{} connections take", draft.connections)
        },
        of_socket(packets, late) * draft.connections
    ));
    draft.note("the device's time per packet is that of the published module (scenario netburner-lan); another device is faster or slower: measure with 5, 20 and 40, `fullpipe stack table` shows how".to_owned());
    draft.note("call them on each socket after connect() or accept(); headers of 2009 call SetSocketUnackBuffers setsocketackbuffers".to_owned());
    if share.kept.is_none() {
        draft.note(share.advice(packets));
    }
    draft.note("a peer that vanishes keeps its buffers: close dead sockets, with TcpSendKeepAlive and TcpGetLastRxTime to find them".to_owned());
}

/// Where `count` packets in a list of a socket are fewer than a path wants and the pool has for so many sockets: what is
/// planned instead, and why.
pub(crate) fn more_than(
    count: u64,
    (rate, rtt): (Rate, Micros),
    (sockets, pool): (u64, u64),
    kept: Option<u64>,
) -> Option<(u64, String)> {
    let model = Model { rate, rtt, segment: PACKET - 40 };
    let share = Share { buffers: free(pool) / sockets.max(1), kept };
    let packets = share.packets(model.plateau()).filter(|packets| *packets > count)?;
    Some((packets, format!("{} at most with {count}, {} with {packets}", model.reached(count), model.reached(packets))))
}

/// What sockets may take of a pool: a quarter stays for everything else.
pub(crate) const fn free(pool: u64) -> u64 {
    pool * 3 / 4
}

/// The most that one socket takes with so many buffers in each of its three lists, and in the one for packets out of order.
const fn of_socket(packets: u64, out_of_order: u64) -> u64 {
    3 * packets + out_of_order
}

fn call(function: &str) -> Address {
    Address::Named { kind: "call".to_owned(), name: function.to_owned() }
}

/// The sockets that files set up.
fn sockets<'a>(draft: &Draft<'a>) -> &'a [SocketBuffers] {
    draft.settings().map_or(&[], |settings| &settings.sockets)
}

/// The most buffers for packets out of order that files give a socket.
fn kept(draft: &Draft<'_>) -> Option<u64> {
    sockets(draft).iter().filter_map(|socket| socket.out_of_order).max().or_else(|| now(draft, OUT_OF_ORDER))
}

/// The number that a file gives a call.
fn now(draft: &Draft<'_>, function: &str) -> Option<u64> {
    draft.now(&call(function)).and_then(number)
}

/// What one socket may take of the pool.
///
/// Received, written and unacknowledged packets wait in lists of their own, and those out of order in a fourth.
struct Share {
    buffers: u64,
    /// The buffers for packets out of order, where a file sets them.
    kept: Option<u64>,
}

impl Share {
    /// The most in each of the three lists, up to `wanted`; `None` where that is less than the calls take.
    fn packets(&self, wanted: u64) -> Option<u64> {
        let fits = |packets: &u64| of_socket(*packets, self.out_of_order(*packets)) <= self.buffers;
        (LEAST..=wanted).rev().find(fits)
    }

    /// The buffers for packets out of order: as many as the file sets, but no more than can be used.
    fn out_of_order(&self, packets: u64) -> u64 {
        self.kept.map_or(LEAST, |kept| kept.min(packets.saturating_sub(1).max(LEAST)))
    }

    /// What to set on a network that loses packets, and what the pool leaves of that.
    fn advice(&self, packets: u64) -> String {
        let best = packets.saturating_sub(1);
        let left = self.buffers.saturating_sub(of_socket(packets, 0));
        if left >= best {
            return format!(
                "on a network that loses packets, {OUT_OF_ORDER}(fd, {best}): one less than the receive buffers"
            );
        }
        format!(
            "on a network that loses packets, {OUT_OF_ORDER}(fd, {left}): one less than the receive buffers would be {best}, and the pool leaves {left} to each socket (with {OUT_OF_ORDER}(fd, {best}) in --settings the other lists are planned smaller)"
        )
    }
}

/// Why nothing is set, and what would do.
fn too_many(connections: u64, pool: u64) -> String {
    let each = of_socket(LEAST, LEAST);
    let all = each * connections;
    let dry = if all > pool {
        format!("{} more than there are: the pool can run dry", all - pool)
    } else {
        format!("{} more than leave a quarter of them free", all - free(pool))
    };
    format!(
        "the pool can't give more: {connections} connections with the least of {LEAST} buffers in each list, which is also the default, can take {each} x {connections} = {all} of {pool}, {dry}. Nothing is set; plan for {} connections at most, or build with BUFFER_POOL_SIZE {}",
        free(pool) / each,
        (all * 4).div_ceil(3),
    )
}

/// The device on a path.
struct Model {
    rate: Rate,
    rtt: Micros,
    segment: u64,
}

impl Model {
    /// The time of one packet with `buffers` in a set: its share of the round trip, and the slower of line and device.
    fn per_packet_us(&self, buffers: u64) -> f64 {
        self.rtt.get() as f64 / buffers as f64 + self.slower_us()
    }

    fn slower_us(&self) -> f64 {
        let line = (self.segment + 40 + ON_THE_WIRE) as f64 * 8e6 / self.rate.bps() as f64;
        line.max(DEVICE_US)
    }

    fn reached(&self, buffers: u64) -> Rate {
        Rate::from_bps((self.segment as f64 * 8e6 / self.per_packet_us(buffers)) as u64)
    }

    /// The smallest count, in steps of five, from which five more gain next to nothing.
    fn plateau(&self) -> u64 {
        let flat = |count: &u64| {
            let more = (count + STEP).min(MOST);
            self.per_packet_us(*count) / self.per_packet_us(more) - 1.0 < WORTH
        };
        (1..).map(|step| step * STEP).take_while(|count| *count < MOST).find(flat).unwrap_or(MOST)
    }

    fn words(&self, packets: u64) -> String {
        let more = (packets + STEP).min(MOST);
        let gain = (self.per_packet_us(packets) / self.per_packet_us(more) - 1.0) * 100.0;
        let beyond = if packets < MOST {
            format!("{more} buffers give {gain:.1} % more")
        } else {
            format!("a window without scaling holds no more than {MOST} segments")
        };
        format!(
            "a packet takes {} / {packets} + {:.0} us (the slower of line and device) = {:.0} us: {} at most; {beyond}",
            self.rtt,
            self.slower_us(),
            self.per_packet_us(packets),
            self.reached(packets),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(rate: &str, rtt: &str) -> Model {
        Model { rate: rate.parse().unwrap(), rtt: rtt.parse().unwrap(), segment: 1460 }
    }

    // The paths of the scenarios netburner-lan and netburner-wan. The article tells no round-trip time: the LAN's is
    // assumed, and the line's is fitted to the published 5.66 s with 5 buffers. The device's time per packet is fitted to
    // the LAN's 0.658 s with 20. Nothing else of what follows is. A plan knows nothing of a line's token bucket, so that
    // this model takes the line as a serial link of its rate, which needs another round trip for the same 5.66 s.
    const LAN: (&str, &str) = ("100M", "500us");
    const LINE: (&str, &str) = ("25M", "7454us");
    const LINE_WITH_BUCKET: (&str, &str) = ("25M", "9400us");

    fn seconds(path: (&str, &str), buffers: u64) -> f64 {
        4e6 / 1460.0 * model(path.0, path.1).per_packet_us(buffers) / 1e6
    }

    /// Published: no gain beyond 20 buffers on a LAN (to which the threshold is fitted), the best result with 40 over
    /// 25 Mbit/s (to which nothing is).
    #[test]
    fn the_plateaus_are_the_published_ones() {
        assert_eq!([LAN, LINE, LINE_WITH_BUCKET].map(|path| model(path.0, path.1).plateau()), [20, 40, 40]);
        assert_eq!(model("25M", "80ms").plateau(), MOST);
    }

    #[test]
    fn the_points_that_were_fitted_are_met() {
        for (path, buffers, published) in [(LAN, 20, 0.658), (LINE, 5, 5.66)] {
            let ours = seconds(path, buffers);
            assert!((ours / published - 1.0).abs() < 0.07, "{path:?} {buffers}: {ours:.3} s, published {published}");
        }
    }

    #[test]
    fn the_times_that_nothing_was_fitted_to_are_near_the_published_ones() {
        for (path, buffers, published) in [(LAN, 5, 0.907), (LINE, 20, 2.12), (LINE, 40, 1.72)] {
            let ours = seconds(path, buffers);
            assert!((ours / published - 1.0).abs() < 0.12, "{path:?} {buffers}: {ours:.3} s, published {published}");
        }
    }
}
