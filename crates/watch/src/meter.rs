//! What each interval adds, summed up by process and destination, as OpenMetrics has it.
//!
//! Whoever makes connections chooses addresses, and a process chooses its name: labels of these could grow without end. So a
//! name gets labels of its own only for a connection that the judge has judged, and no more than [`MOST_PAIRS`] do; the rest
//! is counted together as `other`. The number of series has a bound, [`MOST_SERIES`], whatever comes and goes.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    net::IpAddr,
    sync::{Arc, atomic::AtomicU64},
};

use fullpipe_diagnose::Limiter;
use fullpipe_socket::Fixed;
use fullpipe_units::{Micros, Network};
use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::{Registry, Unit},
};

use crate::owner::Owner;

/// Pairs of a process and a destination that have labels of their own.
pub const MOST_PAIRS: usize = 128;
/// Processes, and destinations, of those pairs.
pub const MOST_NAMES: usize = 32;
/// What is counted together has this label.
const OTHER: &str = "other";
/// Upper bounds of round trips, in seconds: a data centre, a country, a continent, the world, a queue.
const ROUND_TRIPS: &[f64] = &[0.000_1, 0.000_5, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0];
/// A histogram has a series for each bound, one for what is above, one for the sum and one for the count.
const ROUND_TRIP_SERIES: usize = ROUND_TRIPS.len() + 3;
/// Limiters that hold for a time: all but "insufficient evidence".
const LIMITERS: usize = Limiter::ALL.len() - 1;
/// Those without labels of a name.
const SINGLE_SERIES: usize = 9;
/// There are never more series than this.
pub const MOST_SERIES: usize =
    (MOST_PAIRS + 1) * (LIMITERS + 4) + (MOST_NAMES + 1) * ROUND_TRIP_SERIES + (MOST_NAMES + 1) * 2 + SINGLE_SERIES;

/// What the last interval added to one connection's figures.
pub(crate) struct Slice<'a> {
    pub(crate) peer: IpAddr,
    pub(crate) owner: Option<&'a Owner>,
    /// Payload acknowledged and received.
    pub(crate) moved: [u64; 2],
    /// Segments with payload sent, and retransmitted among them.
    pub(crate) segments: [u64; 2],
    /// The round trip, where it did anything.
    pub(crate) rtt: Option<Micros>,
    /// Seconds by limiter, where it was judged.
    pub(crate) seconds: Option<&'a BTreeMap<Limiter, f64>>,
    /// Which buffers its application set.
    pub(crate) fixed: Fixed,
}

/// What there is besides connections' own figures.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) connections: usize,
    pub(crate) active: usize,
    pub(crate) unjudged: usize,
    pub(crate) full_listeners: usize,
    /// Connections that listeners dropped in the interval.
    pub(crate) overflows: u64,
    pub(crate) hides_owners: bool,
    /// What looking took in the interval, in seconds.
    pub(crate) look_s: f64,
}

/// How destinations are distinguished.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destinations {
    /// By the first bits of IPv4 and of IPv6 addresses, the first ones that come.
    Bits {
        /// Of IPv4.
        v4: u8,
        /// Of IPv6.
        v6: u8,
    },
    /// These, no more than [`MOST_NAMES`] of them.
    Named(Vec<Network>),
}

impl Default for Destinations {
    /// What is routed as one thing in the Internet.
    fn default() -> Self {
        Self::Bits { v4: 24, v6: 48 }
    }
}

impl Destinations {
    fn of(&self, address: IpAddr) -> Option<Network> {
        match self {
            Self::Bits { v4, v6 } => Some(Network::new(address, if address.is_ipv4() { *v4 } else { *v6 })),
            Self::Named(prefixes) => {
                prefixes.iter().filter(|prefix| prefix.contains(address)).max_by_key(|prefix| prefix.length()).copied()
            }
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Pair {
    process: String,
    destination: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Limited {
    limiter: String,
    process: String,
    destination: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Destination {
    destination: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Pinned {
    process: String,
    buffer: &'static str,
}

type Seconds = Counter<f64, AtomicU64>;

/// The figures, as they grow.
pub struct Meter {
    registry: Arc<Registry>,
    destinations: Destinations,
    /// The pairs that have labels of their own.
    pairs: HashMap<(String, Network), Pair>,
    /// Those that these name.
    processes: HashSet<String>,
    prefixes: HashSet<Network>,
    other: Pair,
    limited: Family<Limited, Seconds>,
    sent: Family<Pair, Counter>,
    received: Family<Pair, Counter>,
    segments: Family<Pair, Counter>,
    retransmitted: Family<Pair, Counter>,
    round_trips: Family<Destination, Histogram>,
    pinned: Family<Pinned, Gauge>,
    connections: Gauge,
    active: Gauge,
    unjudged: Gauge,
    named: Gauge,
    full_listeners: Gauge,
    overflows: Counter,
    hides_owners: Gauge,
    looks: Counter,
    look_seconds: Seconds,
}

/// What a [`Meter`] reports to whoever asks, at any time.
#[derive(Clone)]
pub struct Exposition(Arc<Registry>);

impl Exposition {
    /// As OpenMetrics 1.0 has it.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        encode(&mut text, &self.0).unwrap_or_default();
        text
    }
}

impl Meter {
    /// With nothing in it.
    pub fn new(destinations: Destinations) -> Self {
        let mut meter = Self {
            registry: Arc::default(),
            destinations,
            pairs: HashMap::new(),
            processes: HashSet::new(),
            prefixes: HashSet::new(),
            other: Pair { process: OTHER.to_owned(), destination: OTHER.to_owned() },
            limited: Family::default(),
            sent: Family::default(),
            received: Family::default(),
            segments: Family::default(),
            retransmitted: Family::default(),
            round_trips: Family::new_with_constructor(|| Histogram::new(ROUND_TRIPS.iter().copied())),
            pinned: Family::default(),
            connections: Gauge::default(),
            active: Gauge::default(),
            unjudged: Gauge::default(),
            named: Gauge::default(),
            full_listeners: Gauge::default(),
            overflows: Counter::default(),
            hides_owners: Gauge::default(),
            looks: Counter::default(),
            look_seconds: Seconds::default(),
        };
        meter.registry = Arc::new(meter.registered());
        meter
    }

    fn registered(&self) -> Registry {
        let mut all = Registry::with_prefix("fullpipe");
        let limited = "Time for which each limiter held, summed over connections; the 512 busiest are judged";
        all.register_with_unit("limited", limited, Unit::Seconds, self.limited.clone());
        all.register_with_unit("sent", "Payload that peers acknowledged", Unit::Bytes, self.sent.clone());
        all.register_with_unit("received", "Payload that was received", Unit::Bytes, self.received.clone());
        let segments = "Segments with payload that were sent, retransmissions included";
        all.register("sent_segments", segments, self.segments.clone());
        all.register("retransmitted_segments", "Segments that were sent again", self.retransmitted.clone());
        let round_trips = "Smoothed round trips of active connections, one of each in each interval";
        all.register_with_unit("round_trip", round_trips, Unit::Seconds, self.round_trips.clone());
        let pinned = "Open sockets whose application set SO_RCVBUF or SO_SNDBUF, of those that have been judged";
        all.register("pinned_sockets", pinned, self.pinned.clone());
        all.register("connections", "TCP connections that are open", self.connections.clone());
        all.register("active_connections", "Connections in which payload moved or waited", self.active.clone());
        all.register("unjudged_connections", "Active connections beyond those that are judged", self.unjudged.clone());
        let named = "Pairs of process and destination with labels of their own; 128 at the most";
        all.register("named_pairs", named, self.named.clone());
        all.register("full_listen_queues", "Listeners whose queue is full", self.full_listeners.clone());
        let overflows = "Connections that were dropped because a listen queue was full";
        all.register("listen_overflows", overflows, self.overflows.clone());
        let hides = "1 where rights are missing to see processes of other users";
        all.register("hidden_processes", hides, self.hides_owners.clone());
        all.register("looks", "Looks at all connections", self.looks.clone());
        all.register_with_unit("look", "Time that looking took", Unit::Seconds, self.look_seconds.clone());
        all
    }

    /// For whoever asks.
    pub fn exposition(&self) -> Exposition {
        Exposition(Arc::clone(&self.registry))
    }

    /// Adds an interval.
    pub(crate) fn add<'a>(&mut self, slices: impl Iterator<Item = Slice<'a>>, totals: Totals) {
        let mut pinned: HashMap<(String, &'static str), i64> = HashMap::new();
        for slice in slices {
            self.add_one(&slice, &mut pinned);
        }
        self.put_pinned(pinned);
        let gauge = |gauge: &Gauge, count: usize| {
            gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
        };
        gauge(&self.connections, totals.connections);
        gauge(&self.active, totals.active);
        gauge(&self.unjudged, totals.unjudged);
        gauge(&self.named, self.pairs.len());
        gauge(&self.full_listeners, totals.full_listeners);
        gauge(&self.hides_owners, totals.hides_owners.into());
        self.overflows.inc_by(totals.overflows);
        self.looks.inc();
        self.look_seconds.inc_by(totals.look_s);
    }

    fn add_one(&mut self, slice: &Slice<'_>, pinned: &mut HashMap<(String, &'static str), i64>) {
        let is_judged = slice.seconds.is_some_and(|seconds| !seconds.is_empty());
        let has_moved = slice.moved != [0; 2] || slice.segments != [0; 2];
        if !is_judged && !has_moved && slice.rtt.is_none() && slice.fixed == Fixed::default() {
            return;
        }
        let pair = self.pair(slice, is_judged);
        for (limiter, time) in slice.seconds.into_iter().flatten() {
            let labels = Limited {
                limiter: word(*limiter),
                process: pair.process.clone(),
                destination: pair.destination.clone(),
            };
            self.limited.get_or_create(&labels).inc_by(*time);
        }
        let count = |family: &Family<Pair, Counter>, count: u64| {
            if count > 0 {
                family.get_or_create(&pair).inc_by(count);
            }
        };
        count(&self.sent, slice.moved[0]);
        count(&self.received, slice.moved[1]);
        if slice.segments[0] > 0 {
            self.segments.get_or_create(&pair).inc_by(slice.segments[0]);
            // Also where there is none: a part of nothing can't be asked for.
            self.retransmitted.get_or_create(&pair).inc_by(slice.segments[1]);
        }
        if let Some(rtt) = slice.rtt {
            let destination = Destination { destination: pair.destination.clone() };
            self.round_trips.get_or_create(&destination).observe(rtt.get() as f64 / 1e6);
        }
        for (is_set, buffer) in [(slice.fixed.receive, "receive"), (slice.fixed.send, "send")] {
            if is_set {
                *pinned.entry((pair.process.clone(), buffer)).or_default() += 1;
            }
        }
    }

    /// The labels of a connection; with `may_name`, they may be given to it now.
    fn pair(&mut self, slice: &Slice<'_>, may_name: bool) -> Pair {
        let Some(prefix) = self.destinations.of(slice.peer) else { return self.other.clone() };
        let process = slice.owner.map_or_else(|| "unknown".to_owned(), |owner| tame(&owner.process));
        let key = (process, prefix);
        if let Some(pair) = self.pairs.get(&key) {
            return pair.clone();
        }
        let has_room = |count: usize, is_known: bool| is_known || count < MOST_NAMES;
        let may = may_name
            && self.pairs.len() < MOST_PAIRS
            && has_room(self.processes.len(), self.processes.contains(&key.0))
            && has_room(self.prefixes.len(), self.prefixes.contains(&prefix));
        if !may {
            return self.other.clone();
        }
        let pair = Pair { process: key.0.clone(), destination: format!("{}/{}", prefix.address(), prefix.length()) };
        self.processes.insert(key.0.clone());
        self.prefixes.insert(prefix);
        self.pairs.insert(key, pair.clone());
        pair
    }

    fn put_pinned(&self, pinned: HashMap<(String, &'static str), i64>) {
        // What has no such socket any more is not reported any more.
        self.pinned.clear();
        pinned.into_iter().for_each(|((process, buffer), count)| {
            self.pinned.get_or_create(&Pinned { process, buffer }).set(count);
        });
    }
}

/// As JSON spells it.
fn word(limiter: Limiter) -> String {
    serde_json::to_value(limiter).ok().and_then(|value| Some(value.as_str()?.to_owned())).unwrap_or_default()
}

/// A name that a process chose, as a label: letters, digits and signs that mean nothing in any text format.
fn tame(name: &str) -> String {
    let is_tame = |character: char| character.is_ascii_alphanumeric() || "-_.:/@+#()[] ".contains(character);
    name.chars().map(|character| if is_tame(character) { character } else { '_' }).collect()
}

#[cfg(test)]
mod tests;
