//! One direction of a followed connection as the transfer that the judge understands. What is *not* here: any decision.

use core::net::IpAddr;

use fullpipe_diagnose::{
    Drop, Drops, End, Opening, PacketSample, ReceiverSample, RttSummary, SenderSample, Source, SynFacts, Transfer,
};
use fullpipe_units::{Bytes, Micros, Rate};

use super::{facts, micros};
use crate::{
    Endpoint, Sender,
    connection::{Connection, bins::Bin, half::Half, other},
    fingerprint,
};

/// `None` where the direction carried no payload. Its samples lie in the memory of `samples`, which is left empty.
pub(super) fn transfer(
    connection: &Connection,
    sender: Sender,
    [from, to]: [Endpoint; 2],
    samples: &mut Vec<SenderSample>,
) -> Option<Transfer> {
    let half = connection.half(sender);
    let bins = half.flight.bins.as_ref()?;
    let trip_ns = connection.trip_ns();
    let (coarse, width_ns) = bins.coarse(connection.step_ns());
    // A sender before a closed window has more to send, for as long as it asks.
    let last_ns = if half.closed { connection.last_ns } else { half.last_data_ns };
    let sending_ns = last_ns.saturating_sub(bins.start_ns());
    // The last flight counts until it is acknowledged.
    let until = if half.closed { sending_ns / width_ns } else { (sending_ns + trip_ns).div_ceil(width_ns) }.max(1);
    let coarse = &coarse[..coarse.len().min(usize::try_from(until).unwrap_or(usize::MAX))];
    let series = Series {
        width_ns,
        mss: mss(connection, sender),
        trip_ns,
        near_ns: half.near_ns(),
        sees_queues: half.sees_queues(),
        sees_windows: !is_scale_hidden(connection, sender),
    };
    let idle = micros(trip_ns);
    Some(Transfer {
        source: Source::Capture,
        sender: end(connection, sender, from),
        receiver: end(connection, other(sender), to),
        bytes: Bytes::new(super::carried(half, connection.half(other(sender)))),
        duration_us: micros(sending_ns),
        idle_rtt: (trip_ns > 0).then_some(RttSummary { min_us: idle, p50_us: idle, count: half.round_trips }),
        path_mtu: connection.too_big_mtu,
        lost_size: half.lost_size(announced(connection, sender), silent_ns(connection, half)),
        full_size_passed: half.full_size_passed(),
        opening: opening(connection, half),
        drops: drops(half, bins.start_ns()),
        write: half.write().map(Bytes::new),
        write_every_us: half.writes_every_ns().map(micros),
        link_rate: half.link_rate(),
        path_rate: None,
        sender_samples: series.senders(coarse, core::mem::take(samples)),
        receiver_samples: series.receivers(coarse),
        blind: blind(connection, sender, half),
    })
}

/// Whether smaller segments got through than those that were lost.
pub(super) fn is_outgrown(connection: &Connection, sender: Sender) -> bool {
    let half = connection.half(sender);
    half.outgrown_size(announced(connection, sender), silent_ns(connection, half)).is_some()
}

/// The largest segment that the receiver takes.
fn announced(connection: &Connection, sender: Sender) -> Option<u16> {
    connection.half(other(sender)).syn.and_then(|syn| syn.mss)
}

/// From the handshake to the first payload.
fn silent_ns(connection: &Connection, half: &Half) -> u64 {
    let opened_ns = connection.opened_ns.map(|took_ns| connection.first_ns.saturating_add(took_ns));
    opened_ns.zip(half.first_data_ns).map_or(0, |(opened_ns, first_ns)| first_ns.saturating_sub(opened_ns))
}

fn drops(half: &Half, start_ns: u64) -> Option<Drops> {
    let points: Vec<_> = half.drops.passed();
    let point = |(at_ns, passed): (u64, u64)| Drop {
        at_us: micros(at_ns.saturating_sub(start_ns)),
        passed: Bytes::new(passed),
    };
    (!points.is_empty()).then(|| Drops {
        bytes: Bytes::new(half.drops.bytes()),
        wait_us: half.drops.wait_us().filter(|_| half.sees_queues()).map(Micros::new),
        list: points.into_iter().map(point).collect(),
    })
}

fn opening(connection: &Connection, half: &Half) -> Option<Opening> {
    let took_ns = connection.opened_ns?;
    let initial_window = (half.counters.initial_window > 0).then(|| Bytes::new(half.counters.initial_window));
    Some(Opening {
        took_us: micros(took_ns),
        silent_us: micros(silent_ns(connection, half)),
        syn_retransmissions: connection.syn_retransmissions,
        syn_ack_retransmissions: connection.syn_ack_retransmissions,
        initial_window,
        packets: connection.handshake[0].zip(connection.handshake[2].or(connection.handshake[1])).map(<[u64; 2]>::from),
    })
}

pub(super) fn mss(connection: &Connection, sender: Sender) -> u32 {
    let (half, peer) = (connection.half(sender), connection.half(other(sender)));
    half.mss(peer.syn.and_then(|syn| syn.mss), has_timestamps(half, peer))
}

/// Whether both ends sent timestamps, as far as their SYNs were seen.
fn has_timestamps(half: &Half, peer: &Half) -> bool {
    half.syn.zip(peer.syn).is_some_and(|(own, other)| own.timestamps && other.timestamps)
}

fn end(connection: &Connection, sender: Sender, endpoint: Endpoint) -> End {
    let half = connection.half(sender);
    End {
        name: IpAddr::from(endpoint.address).to_string(),
        platform: fingerprint::guess(connection, sender).map(|platform| platform.catalogue.to_owned()),
        syn: half.syn.map(|syn| SynFacts { ..facts(syn, half.syn_window) }),
        opened: connection.opener.map(|opener| opener == sender),
        ..End::default()
    }
}

fn blind(connection: &Connection, sender: Sender, half: &Half) -> Vec<String> {
    let mut blind = vec![
        "a capture shows neither the sender's congestion window nor its buffer: what held it is inferred from what it did"
            .to_owned(),
    ];
    let peer = connection.half(other(sender));
    if half.near.least_ns.is_none() {
        blind.push(
            "how far the place of capture is from the sender is unknown (no handshake, no timestamps): what was in \
             flight is a guess"
                .to_owned(),
        );
    }
    if !half.sees_queues() {
        let timestamps = if has_timestamps(half, peer) {
            "the sender's timestamps tell too little"
        } else {
            "the sender sent no timestamps"
        };
        blind.push(format!(
            "it was captured behind most of the path and {timestamps}: a queue before the place of capture doesn't show, so \
             that a send buffer or an application that writes steadily looks like a full path"
        ));
    }
    let (near_ns, far_ns) = (half.near_ns(), half.far.least_ns.unwrap_or(0));
    if near_ns > far_ns && half.counters.retransmissions + half.counters.out_of_order > 0 {
        let late = match half.counters.out_of_order {
            0 => String::new(),
            late => format!("; {late} that came out of order count as retransmitted"),
        };
        blind.push(format!(
            "it was captured behind most of the path, where segments that were lost before are never seen{late}; a pause may \
             be the sender's retransmission timer"
        ));
    }
    if peer.counters.packets == 0 {
        blind.push("only one direction was captured: no acknowledgement of this data was seen".to_owned());
    }
    if half.counters.unseen > 0 {
        let lost = Bytes::new(half.counters.unseen);
        blind.push(format!("the capture lost packets: {lost} were acknowledged that it doesn't have"));
    }
    let carried = super::carried(half, peer);
    if carried < half.counters.payload && !connection.is_closed() {
        let pending = Bytes::new(half.counters.payload - carried);
        blind.push(format!("the capture ends before {pending} that were sent had been acknowledged"));
    }
    if is_scale_hidden(connection, sender) {
        blind.push(
            "the scale of the receiver's window is unknown, because its SYN was not seen, and more was in flight than the \
             window says without one: whether the window was used up can't be determined"
                .to_owned(),
        );
    } else if connection.shift(other(sender)).is_none() {
        blind.push("the window scale is unknown, so that the offered window is taken as unscaled".to_owned());
    }
    if connection.options_cut {
        blind.push("the capture cut off TCP options: raise its snapshot length".to_owned());
    }
    blind
}

/// Windows are scaled by an amount that was not seen.
fn is_scale_hidden(connection: &Connection, sender: Sender) -> bool {
    connection.shift(other(sender)).is_none() && connection.half(sender).flight.is_beyond
}

struct Series {
    width_ns: u64,
    mss: u32,
    trip_ns: u64,
    /// From the place of capture to the sender and back, at least.
    near_ns: u64,
    /// Otherwise the windows lack a scale that was not seen, and say no more than by how much they change.
    sees_windows: bool,
    /// Otherwise the round trips that were taken are no more than a part of what the sender saw.
    sees_queues: bool,
}

impl Series {
    fn senders(&self, bins: &[Bin], mut samples: Vec<SenderSample>) -> Vec<SenderSample> {
        let mut sample = SenderSample {
            mss: Some(self.mss),
            retransmits: Some(0),
            retransmitted: Some(Bytes::ZERO),
            timeouts: Some(0),
            reordering_seen: Some(0),
            dsacks: Some(0),
            busy_us: Some(Micros::ZERO),
            in_flight: Some(Bytes::ZERO),
            packets: Some(PacketSample::default()),
            ..SenderSample::default()
        };
        samples.clear();
        samples.reserve(bins.len() + 1);
        samples.push(sample);
        for (index, bin) in bins.iter().enumerate() {
            sample = self.next(sample, bin);
            sample.delivery_rate_bps = self.delivery(bins, index);
            samples.push(sample);
        }
        samples
    }

    fn next(&self, before: SenderSample, bin: &Bin) -> SenderSample {
        let width_ns = self.width_ns;
        let sum = |count: Option<u64>, more: u32| count.map(|count| count + u64::from(more));
        let small = |count: Option<u32>, more: u32| count.map(|count| count.saturating_add(more));
        let idle_ns = width_ns.saturating_sub(bin.busy_ns);
        let in_flight = if bin.busy_ns > 0 { (bin.flight_ns / bin.busy_ns as f64) as u64 } else { 0 };
        let rtt = bin.rtt_ns.filter(|_| self.sees_queues).map(|rtt_ns| micros(rtt_ns.saturating_add(self.near_ns)));
        SenderSample {
            at_us: Micros::new(before.at_us.get() + width_ns / 1_000),
            acked: Bytes::new(before.acked.get() + bin.acked),
            in_flight: Some(Bytes::new(in_flight)),
            offered_window: bin.window.filter(|_| self.sees_windows).map(Bytes::new).or(before.offered_window),
            rtt_us: rtt.or(before.rtt_us),
            retransmits: sum(before.retransmits, bin.retransmits),
            retransmitted: before.retransmitted.map(|bytes| Bytes::new(bytes.get() + bin.retransmitted)),
            timeouts: sum(before.timeouts, bin.timeouts),
            reordering_seen: small(before.reordering_seen, bin.reordered),
            dsacks: small(before.dsacks, bin.dsacks),
            delivered_ce: None,
            busy_us: before.busy_us.map(|busy| Micros::new(busy.get() + bin.busy_ns / 1_000)),
            packets: Some(PacketSample {
                peak: Bytes::new(bin.peak),
                held_us: if self.sees_windows { micros(bin.held_ns) } else { Micros::ZERO },
                closed_us: micros(bin.closed_ns),
                idle_us: micros(idle_ns),
                delivered: Bytes::new(bin.delivered),
                sent: Bytes::new(bin.sent),
                unprompted: Bytes::new(bin.unprompted),
                prompted: Bytes::new(bin.prompted),
                hidden: Bytes::new(bin.hidden),
                prompts: bin.prompts,
                credited: Bytes::new(bin.credited),
                credits: bin.credits,
                starved_us: micros(bin.starved_ns),
                clocked: bin.clocked,
                woken: bin.woken,
                written: bin.written,
                asked: bin.asked,
                asked_us: micros(bin.asked_ns),
                dry_us: micros(bin.dry_ns),
                nagle: bin.nagle,
                nagle_us: micros(bin.nagle_ns),
                delayed: bin.delayed,
                delayed_us: micros(bin.delayed_ns),
                tails: bin.tails,
                probes: bin.probes,
                first: bin.packets.map(|(first, _)| first),
                last: bin.packets.map(|(_, last)| last),
            }),
            ..before
        }
    }

    /// What arrived per time around a bin: two round trips to either side.
    fn delivery(&self, bins: &[Bin], index: usize) -> Option<Rate> {
        let reach = usize::try_from((2 * self.trip_ns).div_ceil(self.width_ns.max(1))).unwrap_or(1).max(1);
        let (low, high) = (index.saturating_sub(reach), bins.len().min(index + reach + 1));
        let around = bins.get(low..high)?;
        let bytes = around.iter().map(|bin| bin.delivered).sum();
        Rate::from_bytes(Bytes::new(bytes), micros(self.width_ns * around.len() as u64))
    }

    fn receivers(&self, bins: &[Bin]) -> Vec<ReceiverSample> {
        let mut sample = ReceiverSample { out_of_order: Some(0), ..ReceiverSample::default() };
        let mut largest = 0;
        let step = |bin: &Bin| {
            largest = bin.window.map_or(largest, |window| largest.max(window));
            sample = ReceiverSample {
                at_us: Micros::new(sample.at_us.get() + self.width_ns / 1_000),
                received: Bytes::new(sample.received.get() + bin.delivered),
                offered_window: bin.window.map(Bytes::new).or(sample.offered_window),
                // A receiver that offered more has as much room still, and the rest of it is taken.
                unread: bin.window.map(|window| Bytes::new(largest - window)).or(sample.unread),
                out_of_order: sample.out_of_order.map(|count| count.saturating_add(bin.out_of_order)),
                ..sample
            };
            sample
        };
        bins.iter().map(step).collect()
    }
}
