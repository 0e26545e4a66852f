//! What held the sender back, by the engine's own knowledge: the ground truth that a judge is compared with.
//!
//! At every moment exactly one thing holds a sender ([`Held`]). Whether a sender that congestion control holds fills the
//! path can only be said of a span: where the bottleneck delivered all that it can for two round trips around it, the
//! path was full and is the limiter, whatever else was used up meanwhile.

use std::collections::BTreeMap;

use fullpipe_diagnose::Limiter;
use fullpipe_units::{Instant, Micros};

/// Of what the bottleneck can deliver, the part from which on it is full. Headers and acknowledgements aside it is 1; a
/// span of some round trips cuts packets at both of its ends.
const FULL: f64 = 0.95;
/// ... and of what a policer passes, of which what was dropped at its token bucket is missing.
const POLICED: f64 = 0.8;
/// The part of a span for which a device was busy, from which on it is the limiter.
const BUSY: f64 = 0.9;

/// What holds a sender at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Held {
    /// Its application has nothing to send.
    Application,
    /// The window that the receiver offers is used up.
    ReceiveWindow,
    /// The send buffer is full, and all of it was sent.
    SendBuffer,
    /// The congestion window is used up.
    Congestion,
    /// Everything arrived, and the receiver has not acknowledged it yet; or Nagle's algorithm waits for that.
    AckDelay,
    /// Something was lost, and only a timer will tell.
    Timeout,
    /// The device itself is busy.
    Device,
}

const KINDS: usize = 7;

/// Cumulative figures at one moment.
#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    at: u64,
    held: [u64; KINDS],
    wire: u64,
    busy: u64,
}

/// The engine's knowledge of a transfer.
#[derive(Clone, Debug, Default)]
pub struct Truth {
    /// The part of the time, 0 to 1, for which each limiter was the limit.
    pub shares: BTreeMap<Limiter, f64>,
    /// Spans of time since the first payload byte, each with what limited most of it.
    pub spans: Vec<(Micros, Micros, Limiter)>,
}

impl Truth {
    /// What limited most of the time.
    pub fn limiter(&self) -> Option<Limiter> {
        self.shares.iter().max_by(|a, b| a.1.total_cmp(b.1)).map(|(limiter, _)| *limiter)
    }

    /// What limited at least `share` of the time.
    pub fn limited(&self, limiter: Limiter) -> f64 {
        self.shares.get(&limiter).copied().unwrap_or(0.0)
    }
}

/// Keeps the books while a transfer runs.
#[derive(Debug)]
pub(crate) struct Ledger {
    since: Instant,
    state: Option<Held>,
    now: Mark,
    marks: Vec<Mark>,
    /// Since when the kernel that is simulated counts its sender as held by the send buffer, and nanoseconds before that.
    counted_since: Option<Instant>,
    counted: u64,
}

impl Ledger {
    pub(crate) const fn new() -> Self {
        Self {
            since: Instant::ZERO,
            state: None,
            now: Mark { at: 0, held: [0; KINDS], wire: 0, busy: 0 },
            marks: Vec::new(),
            counted_since: None,
            counted: 0,
        }
    }

    /// Whether the kernel that is simulated counts its sender as held by the send buffer from `now` on.
    pub(crate) fn count(&mut self, now: Instant, is_held: bool) {
        if is_held == self.counted_since.is_some() {
            return;
        }
        match self.counted_since.take() {
            Some(since) => self.counted += now.since(since).as_nanos() as u64,
            None => self.counted_since = Some(now),
        }
    }

    /// Time counted so far; us.
    pub(crate) fn counted_us(&self, now: Instant) -> Micros {
        let open = self.counted_since.map_or(0, |since| now.since(since).as_nanos() as u64);
        Micros::new((self.counted + open) / 1_000)
    }

    /// From `now` on the sender is held by `state`.
    pub(crate) fn set(&mut self, now: Instant, state: Held) {
        if self.state != Some(state) {
            self.settle(now);
            self.state = Some(state);
        }
    }

    fn settle(&mut self, now: Instant) {
        if let Some(state) = self.state {
            self.now.held[state as usize] += now.since(self.since).as_nanos() as u64;
        }
        self.since = now;
    }

    /// So many bytes left the bottleneck, as it counts them.
    pub(crate) const fn delivered(&mut self, bytes: u64) {
        self.now.wire += bytes;
    }

    /// Keeps the figures of this moment.
    pub(crate) fn mark(&mut self, now: Instant, busy: u64) {
        self.settle(now);
        self.now.at = now.as_nanos();
        self.now.busy = busy;
        self.marks.push(self.now);
    }

    /// Time held so far; us.
    pub(crate) fn held_us(&self, kind: Held) -> Micros {
        Micros::new(self.now.held[kind as usize] / 1_000)
    }

    /// The truth of what was marked, from `start` on: `full` tells the bits that the bottleneck carries between two moments.
    pub(crate) fn truth(
        &self,
        start: Instant,
        full: Option<&dyn Fn(Instant, Instant) -> f64>,
        policed: bool,
        rtt_nanos: u64,
    ) -> Truth {
        let part = if policed { POLICED } else { FULL };
        let mut times: BTreeMap<Limiter, f64> = BTreeMap::new();
        let mut spans: Vec<(Micros, Micros, Limiter)> = Vec::new();
        let marks = &self.marks;
        let (mut low, mut high) = (0, 0);
        for index in 1..marks.len() {
            let (from, to) = (marks[index - 1], marks[index]);
            let len = to.at.saturating_sub(from.at);
            if len == 0 {
                continue;
            }
            while low + 1 < index && marks[low + 1].at + rtt_nanos <= from.at {
                low += 1;
            }
            high = high.max(index);
            while high + 1 < marks.len() && marks[high].at < to.at + rtt_nanos {
                high += 1;
            }
            let around = marks[high].at.saturating_sub(marks[low].at).max(1) as f64;
            let carried = (marks[high].wire - marks[low].wire) as f64 * 8.0;
            let busy = (marks[high].busy - marks[low].busy) as f64 / around;
            let mut own: BTreeMap<Limiter, f64> = BTreeMap::new();
            let most = |full: &dyn Fn(Instant, Instant) -> f64| {
                full(Instant::from_nanos(marks[low].at), Instant::from_nanos(marks[high].at)) * part
            };
            if full.is_some_and(|full| carried >= most(full)) {
                own.insert(Limiter::Path, len as f64);
            } else if busy >= BUSY {
                own.insert(Limiter::Cpu, len as f64);
            } else {
                for (kind, limiter) in LIMITERS.iter().enumerate() {
                    *own.entry(*limiter).or_default() += (to.held[kind] - from.held[kind]) as f64;
                }
            }
            let Some((&main, _)) = own.iter().max_by(|a, b| a.1.total_cmp(b.1)) else { continue };
            for (limiter, time) in own.into_iter().filter(|(_, time)| *time > 0.0) {
                *times.entry(limiter).or_default() += time;
            }
            let us = |at: u64| Micros::new(at.saturating_sub(start.as_nanos()) / 1_000);
            match spans.last_mut() {
                Some(last) if last.2 == main => last.1 = us(to.at),
                _ => spans.push((us(from.at), us(to.at), main)),
            }
        }
        let all: f64 = times.values().sum();
        Truth { shares: times.into_iter().map(|(limiter, time)| (limiter, time / all.max(1.0))).collect(), spans }
    }
}

/// In the order of [`Held`].
const LIMITERS: [Limiter; KINDS] = [
    Limiter::Application,
    Limiter::ReceiveWindow,
    Limiter::SendBuffer,
    Limiter::CongestionWindow,
    Limiter::AckDelay,
    Limiter::CongestionWindow,
    Limiter::Cpu,
];
