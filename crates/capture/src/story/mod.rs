//! A connection's story: its figures, the transfers of both directions, and what limited each. What is *not* here:
//! following it packet by packet (`connection`), and judging (`diagnose`).

mod packed;
mod reports;
mod shared;
mod sizes;
mod transfer;

pub use reports::Reports;
pub(crate) use shared::is_worth_comparing;

use fullpipe_diagnose::{
    Detail, Diagnosis, Limiter, Passage, Run, SenderSample, SynFacts, Transfer, diagnose_with_runs,
};
use fullpipe_units::{Bytes, Micros, Rate};

use self::sizes::Sizes;
use crate::{
    Address, Endpoint, Key, Sender,
    connection::{
        Connection,
        half::{Counters, Half},
        other,
    },
    fingerprint::{self, Platform},
    track::{Keep, options::SynOptions},
};

/// One connection of a capture.
#[derive(Clone, Debug)]
pub struct Report {
    /// Its number, from 1, in the order of first packets.
    pub number: u64,
    /// The end that opened it, where that was seen; else the one that sent the first packet.
    pub a: Endpoint,
    /// The other end.
    pub b: Endpoint,
    /// What carried it: 0 where nothing did.
    pub outer: u32,
    /// The first packet.
    pub first_packet: u64,
    /// When that was captured, in nanoseconds since 1970.
    pub started_ns: u64,
    /// From the first packet to the last.
    pub lasted: Micros,
    /// The shortest round trip between the ends.
    pub rtt: Option<Micros>,
    /// What a sends, and what b sends.
    pub sides: [Side; 2],
    /// The handshake.
    pub handshake: Handshake,
    /// Packets that were captured twice, which count once.
    pub copies: u64,
    /// The capture's clock was set back in the middle.
    pub clock_set_back: Option<ClockSetBack>,
    /// Which side sent a reset first: 0 is a.
    pub reset_by: Option<u8>,
}

/// One end and what it sends.
#[derive(Clone, Debug)]
pub struct Side {
    /// Its figures.
    pub counters: Counters,
    /// The payload of a full segment in this direction.
    pub mss: u32,
    /// What its SYN said.
    pub syn: Option<SynFacts>,
    /// What it probably is, from its SYN.
    pub platform: Option<Platform>,
    /// From the place of capture to it and back.
    pub away: Option<Micros>,
    /// From its first payload to its last.
    pub sending: Micros,
    /// The rate of the payload that got through, in that time.
    pub rate: Option<Rate>,
    /// The judgement of what it sent, where there was enough to judge.
    pub verdict: Option<Box<Verdict>>,
}

/// A judged direction.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// What limited it.
    pub diagnosis: Diagnosis,
    /// Which limiter held when.
    pub runs: Vec<Run>,
    /// The median round trip while it sent.
    pub loaded_rtt: Option<Micros>,
    /// What was judged, where that was asked for.
    pub transfer: Option<Transfer>,
    /// What it shows of a bottleneck that others share, until all of them have been looked at together.
    passage: Option<Box<Passage>>,
    /// What it says of the sizes that pass, until then, too.
    sizes: Sizes,
}

/// The capture's clock was set back while a connection went on. From there on, its times are what they would be without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockSetBack {
    /// The first packet that is dated earlier than one before it. The clock may have been set back later, too.
    pub packet: u64,
    /// By how much, at least.
    pub by: Micros,
}

/// How a connection began, as far as it was seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Handshake {
    /// Packets with a SYN.
    pub syns: u32,
    /// The numbers of the SYN, the SYN-ACK and the acknowledgement of it.
    pub packets: [Option<u64>; 3],
    /// From the (last) SYN to the acknowledgement of the SYN-ACK.
    pub took: Option<Micros>,
    /// Both ends sent a SYN at once.
    pub simultaneous: bool,
}

impl Report {
    /// Which side sent more payload: 0 is a.
    pub fn main(&self) -> usize {
        usize::from(self.sides[1].counters.payload > self.sides[0].counters.payload)
    }

    /// The side that sent more payload.
    pub fn main_side(&self) -> &Side {
        &self.sides[self.main()]
    }

    /// Packets of both directions, copies apart.
    pub fn packets(&self) -> u64 {
        self.sides.iter().map(|side| side.counters.packets).sum()
    }

    /// Payload of both directions, repeats apart.
    pub fn payload(&self) -> Bytes {
        Bytes::new(self.sides.iter().map(|side| side.counters.payload).sum())
    }

    /// When its last packet came, on the clock of `started_ns`.
    fn ended_ns(&self) -> u64 {
        self.started_ns.saturating_add(self.lasted.get().saturating_mul(1_000))
    }

    /// From whom to whom a side sends.
    fn ends(&self, side: usize) -> [Address; 2] {
        let [a, b] = [self.a.address, self.b.address];
        if side == 0 { [a, b] } else { [b, a] }
    }

    /// How much a person would gain by looking at it: the time that something which can be lifted took.
    pub fn weight(&self) -> f64 {
        let side = self.main_side();
        let Some(verdict) = &side.verdict else { return 0.0 };
        let part = match (verdict.diagnosis.limiter, verdict.diagnosis.detail) {
            (Limiter::InsufficientEvidence, _) => 0.0,
            (Limiter::Path, Some(Detail::Saturated)) => 0.01,
            (Limiter::Application, _) => 0.02,
            _ => 1.0,
        };
        1.0 + part * verdict.diagnosis.share * side.sending.as_secs_f64()
    }
}

/// `samples` is memory for what is judged.
fn report(key: &Key, connection: &Connection, keep: Keep, samples: &mut Vec<SenderSample>) -> Report {
    let flow = key.flow();
    let a = connection.opener.unwrap_or(connection.first_sender);
    let b = other(a);
    let end = |sender| if sender == Sender::Low { flow.from } else { flow.to };
    let place = |sender: Sender| u8::from(sender != a);
    let trip_ns = connection.trip_ns();
    Report {
        number: 0,
        a: end(a),
        b: end(b),
        outer: flow.outer,
        first_packet: connection.first_number,
        started_ns: connection.first_ns,
        lasted: micros(connection.last_ns - connection.first_ns),
        rtt: (trip_ns > 0).then(|| micros(trip_ns)),
        sides: [(a, b), (b, a)].map(|(from, to)| side(connection, from, [end(from), end(to)], keep, samples)),
        handshake: Handshake {
            syns: connection.syns,
            packets: connection.handshake,
            took: connection.handshake_ns.map(micros),
            simultaneous: connection.simultaneous,
        },
        copies: connection.copied,
        clock_set_back: connection.setting.first.map(|(packet, by_ns)| ClockSetBack { packet, by: micros(by_ns) }),
        reset_by: connection.reset_by.map(place),
    }
}

fn median(mut trips: Vec<Micros>) -> Option<Micros> {
    let middle = trips.len().checked_sub(1)? / 2;
    Some(*trips.select_nth_unstable(middle).1)
}

fn side(
    connection: &Connection,
    sender: Sender,
    ends: [Endpoint; 2],
    keep: Keep,
    samples: &mut Vec<SenderSample>,
) -> Side {
    let half = connection.half(sender);
    let peer = connection.half(other(sender));
    let sending = micros(half.last_data_ns.saturating_sub(half.first_data_ns.unwrap_or(half.last_data_ns)));
    let carried = carried(half, peer);
    let mss = transfer::mss(connection, sender);
    let verdict = is_worth_judging(connection, half)
        .then(|| transfer::transfer(connection, sender, ends, samples))
        .flatten()
        .map(|mut transfer| {
            let (diagnosis, runs) = diagnose_with_runs(&transfer);
            let diagnosis = unseen(half, peer).map_or(diagnosis, |reason| Diagnosis::insufficient(reason.to_owned()));
            let loaded_rtt = median(transfer.sender_samples.iter().filter_map(|sample| sample.rtt_us).collect());
            let passage = shared::passage(half, &transfer).map(Box::new);
            let sizes = Sizes::new(&mut transfer, &diagnosis, mss, transfer::is_outgrown(connection, sender));
            let transfer = if keep.transfers {
                Some(transfer)
            } else {
                *samples = transfer.sender_samples;
                None
            };
            Box::new(Verdict { diagnosis, runs, loaded_rtt, transfer, passage, sizes })
        });
    Side {
        counters: Counters { carried, ..half.counters },
        mss,
        syn: half.syn.map(|syn| facts(syn, half.syn_window)),
        platform: fingerprint::guess(connection, sender),
        away: half.near.least_ns.map(|_| micros(half.near_ns())),
        sending,
        rate: Rate::from_bytes(Bytes::new(carried), sending),
        verdict,
    }
}

/// Payload that is known to have got through: all, where nothing of the other end was captured that could tell.
fn carried(half: &Half, peer: &Half) -> u64 {
    if peer.counters.packets == 0 { half.counters.payload } else { half.carried() }
}

/// What was not captured, and leaves nothing to judge.
fn unseen(half: &Half, peer: &Half) -> Option<&'static str> {
    if half.counters.payload > 0 && peer.counters.packets == 0 {
        return Some("only one direction was captured: without a single acknowledgement nothing tells what arrived");
    }
    // A window that stays closed says enough.
    let nowhere = half.near.least_ns.is_none() && half.counters.payload > 0 && !half.closed;
    nowhere.then_some(
        "neither a handshake nor timestamps show how far the sender is from the place of capture: what it had in flight, \
         and why no more, can't be determined",
    )
}

/// Twenty segments of an Ethernet path: less is judged only where something stopped it.
pub(crate) const LEAST_PAYLOAD: u64 = 20 * 1_448;

/// Whether there is enough of a direction to be judged, or something stopped it.
pub(crate) fn is_worth_judging(connection: &Connection, half: &Half) -> bool {
    let stalls = half.counters.timeouts > 0
        || half.counters.zero_windows > 0
        || half.black_hole.is_some()
        || connection.syn_retransmissions + connection.syn_ack_retransmissions > 0;
    // Offloads make few packets of many segments.
    half.counters.data_packets >= 20 || half.counters.payload >= LEAST_PAYLOAD || (half.counters.payload > 0 && stalls)
}

pub(crate) fn facts(syn: SynOptions, window: Option<u16>) -> SynFacts {
    SynFacts {
        mss: syn.mss,
        window_scale: syn.window_scale,
        sack_permitted: syn.sack_permitted,
        timestamps: syn.timestamps,
        window,
    }
}

pub(crate) const fn micros(ns: u64) -> Micros {
    Micros::new(ns / 1_000)
}
