//! What each interval adds, summed up by process and destination, as OpenMetrics and OTLP have it.
//!
//! Whoever makes connections chooses addresses, and a process chooses its name: labels of these could grow without end. So a
//! name gets labels of its own only for a connection that the judge has judged, or to a destination that was named, and no more than
//! [`MOST_PAIRS`] do; the rest is counted together as `other`. The number of series has a bound, [`MOST_SERIES`], whatever comes and goes.

#[cfg(feature = "otlp")]
use std::time::SystemTime;
use std::{
    collections::{BTreeMap, HashMap, HashSet},
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use figures::{Figures, Metric, ROUND_TRIPS};
use fullpipe_diagnose::Limiter;
use fullpipe_socket::Fixed;
use fullpipe_units::{Micros, Network};
#[cfg(feature = "otlp")]
pub use otlp::Resource;

use crate::owner::Owner;

mod figures;
mod open_metrics;
#[cfg(feature = "otlp")]
mod otlp;

/// Pairs of a process and a destination that have labels of their own.
pub const MOST_PAIRS: usize = 128;
/// Processes, and destinations, of those pairs.
pub const MOST_NAMES: usize = 32;
/// What is counted together has this label.
const OTHER: &str = "other";
/// A histogram has a series for each bound, one for what is above, one for the sum and one for the count.
const ROUND_TRIP_SERIES: usize = ROUND_TRIPS.len() + 3;
/// Limiters that hold for a time: all but "insufficient evidence".
const LIMITERS: usize = Limiter::ALL.len() - 1;
/// Why connections are aborted: by a reset, or without one that came through.
pub(crate) const REASONS: [&str; 5] = ["reset_by_peer", "reset_here", "refused", "timed_out", "failed"];
/// Those without labels of a name.
const SINGLE_SERIES: usize = 11;
/// There are never more series than this.
pub const MOST_SERIES: usize = (MOST_PAIRS + 1) * (LIMITERS + 5 + REASONS.len())
    + (MOST_NAMES + 1) * ROUND_TRIP_SERIES
    + (MOST_NAMES + 1) * 2
    + SINGLE_SERIES;

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
    /// How often a receive window of this host was closed in the interval; `None` where the system does not tell.
    pub(crate) closed_windows: Option<u64>,
    pub(crate) hides_owners: bool,
    /// What looking took in the interval, in seconds.
    pub(crate) look_s: f64,
    /// Connections of whose end nothing is known, since the watch began; `None` where ends are not followed.
    pub(crate) lost_ends: Option<u64>,
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Closed,
    /// One of [`REASONS`].
    Aborted(&'static str),
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

/// The labels of what is counted together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Pair {
    process: String,
    destination: String,
}

/// The figures, as they grow.
pub struct Meter {
    figures: Arc<Mutex<Figures>>,
    destinations: Destinations,
    /// The pairs that have labels of their own.
    pairs: HashMap<(String, Network), Pair>,
    /// Those that these name.
    processes: HashSet<String>,
    prefixes: HashSet<Network>,
    other: Pair,
}

/// What a [`Meter`] reports to whoever asks, at any time.
#[derive(Clone)]
pub struct Exposition(Arc<Mutex<Figures>>);

impl Exposition {
    /// As OpenMetrics 1.0 has it.
    pub fn text(&self) -> String {
        open_metrics::text(self.metrics())
    }

    /// As OTLP has it in JSON: the body of an `ExportMetricsServiceRequest`.
    #[cfg(feature = "otlp")]
    pub fn otlp(&self, resource: &Resource, now: SystemTime) -> String {
        otlp::json(&self.metrics(), resource, now)
    }

    fn metrics(&self) -> Vec<Metric> {
        locked(&self.0).metrics()
    }
}

impl Meter {
    /// With nothing in it.
    pub fn new(destinations: Destinations) -> Self {
        Self {
            figures: Arc::default(),
            destinations,
            pairs: HashMap::new(),
            processes: HashSet::new(),
            prefixes: HashSet::new(),
            other: Pair { process: OTHER.to_owned(), destination: OTHER.to_owned() },
        }
    }

    /// For whoever asks.
    pub fn exposition(&self) -> Exposition {
        Exposition(Arc::clone(&self.figures))
    }

    /// Adds an interval.
    pub(crate) fn add<'a>(&mut self, slices: impl Iterator<Item = Slice<'a>>, totals: Totals) {
        // What has no pinned socket any more is not reported any more.
        let mut pinned = BTreeMap::new();
        let figures = Arc::clone(&self.figures);
        let mut figures = locked(&figures);
        for slice in slices {
            self.add_one(&slice, &mut figures, &mut pinned);
        }
        figures.pinned = pinned;
        figures.named = self.pairs.len();
        figures.overflows += totals.overflows;
        figures.closed_windows = totals.closed_windows.map(|count| figures.closed_windows.unwrap_or(0) + count);
        figures.looks += 1;
        figures.look_s += totals.look_s;
        figures.now = totals;
    }

    /// Adds a connection that ended: `slice` is what no interval has had of it.
    pub(crate) fn add_end(&mut self, slice: &Slice<'_>, end: End) {
        let pair = self.pair(slice, false);
        let mut figures = locked(&self.figures);
        if let Some(rtt) = slice.rtt {
            figures.round_trips.entry(pair.destination.clone()).or_default().observe(rtt.get() as f64 / 1e6);
        }
        let sums = figures.pairs.entry(pair).or_default();
        sums.add(slice);
        sums.end(end);
    }

    fn add_one(
        &mut self,
        slice: &Slice<'_>,
        figures: &mut Figures,
        pinned: &mut BTreeMap<(String, &'static str), u64>,
    ) {
        let is_judged = slice.seconds.is_some_and(|seconds| !seconds.is_empty());
        let has_moved = slice.moved != [0; 2] || slice.segments != [0; 2];
        if !is_judged && !has_moved && slice.rtt.is_none() && slice.fixed == Fixed::default() {
            return;
        }
        let pair = self.pair(slice, is_judged);
        if let Some(rtt) = slice.rtt {
            figures.round_trips.entry(pair.destination.clone()).or_default().observe(rtt.get() as f64 / 1e6);
        }
        for (is_set, buffer) in [(slice.fixed.receive, "receive"), (slice.fixed.send, "send")] {
            if is_set {
                *pinned.entry((pair.process.clone(), buffer)).or_default() += 1;
            }
        }
        if is_judged || has_moved {
            figures.pairs.entry(pair).or_default().add(slice);
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
        // Who names destinations has bounded them; otherwise a port scan would take all labels.
        let may_name = may_name || matches!(self.destinations, Destinations::Named(_));
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
}

/// Also after a panic of whoever held it: each figure by itself is whole.
fn locked(figures: &Mutex<Figures>) -> MutexGuard<'_, Figures> {
    figures.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A name that a process chose, as a label: letters, digits and signs that mean nothing in any text format.
fn tame(name: &str) -> String {
    let is_tame = |character: char| character.is_ascii_alphanumeric() || "-_.:/@+#()[] ".contains(character);
    name.chars().map(|character| if is_tame(character) { character } else { '_' }).collect()
}

#[cfg(test)]
mod tests;
