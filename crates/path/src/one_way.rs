//! One direction of a path: hops in a row.

use core::time::Duration;
use std::collections::VecDeque;

use fullpipe_units::{Instant, Micros};

use crate::{Departure, Fate, Hop, HopSpec, HopStats, Machine, Random, Segment, hop::Place};

/// One direction of a path. See [`Machine`] for how to drive it.
#[derive(Debug)]
pub struct OneWay<T> {
    hops: Vec<Hop<T>>,
    /// Per hop, the least time from its end to the next place where something can leave the path.
    tails: Vec<Duration>,
    refused: VecDeque<Departure<T>>,
    /// The latest time seen: a clock that steps back must not upset the order.
    latest: Instant,
}

impl<T: Clone> OneWay<T> {
    /// A direction of `hops`, none of which makes a path that delivers at once.
    ///
    /// `rtt` is the path's whole round-trip time and `mtu` its largest packet in bytes (for queues that are measured
    /// in bandwidth-delay products); `seed` must differ between the two directions of a path.
    pub fn new(hops: &[HopSpec], rtt: Micros, mtu: u32, seed: u64) -> Self {
        let hops: Vec<Hop<T>> = hops
            .iter()
            .enumerate()
            .map(|(index, spec)| {
                let seed = Random::seed_of(seed, "hop").wrapping_add(index as u64);
                Hop::new(spec, Place { index, rtt, mtu, seed })
            })
            .collect();
        let mut tails = vec![Duration::ZERO; hops.len()];
        for i in (1..hops.len()).rev() {
            let next = &hops[i];
            tails[i - 1] = if next.answers() { Duration::ZERO } else { next.min_delay() + tails[i] };
        }
        Self { hops, tails, refused: VecDeque::new(), latest: Instant::ZERO }
    }

    /// Lets packets of others go before: what is lost of those that follow is what would be lost behind them.
    pub fn pass(&mut self, packets: u32) {
        self.hops.iter_mut().for_each(|hop| hop.pass(packets));
    }

    /// What each hop counted, first hop first.
    pub fn stats(&self) -> impl Iterator<Item = HopStats> + '_ {
        self.hops.iter().map(Hop::stats)
    }

    /// Whether each packet's departure is known when it enters: one plain hop, see [`OneWay::depart_until`].
    pub fn knows_departures(&self) -> bool {
        matches!(self.hops.as_slice(), [hop] if hop.knows_departures())
    }

    /// The least time from one end to the other, leaving serialisation aside.
    pub fn min_delay(&self) -> Duration {
        self.hops.iter().map(Hop::min_delay).sum()
    }

    /// Packets inside, those among them that are lost and have not left yet, where departures are known; else 0.
    #[inline]
    pub fn packets_inside(&self) -> usize {
        self.hops.last().map_or(0, Hop::packets_inside)
    }

    /// When the last packet inside leaves, where that is known. Whatever enters later leaves later.
    #[inline]
    pub fn last_departure(&self) -> Option<Instant> {
        self.hops.last()?.last_departure()
    }

    /// The next packet that leaves by `until`, where departures are known ([`OneWay::knows_departures`]). Unlike with
    /// [`Machine::poll_transmit`], the clock does not advance: packets may still enter before `until`.
    #[inline]
    pub fn depart_until(&mut self, until: Instant) -> Option<Departure<T>> {
        self.hops.last_mut()?.poll_transmit(until)
    }

    fn latest(&mut self, now: Instant) -> Instant {
        self.latest = self.latest.max(now);
        self.latest
    }

    /// Moves what is due until `now` from hop to hop, up to the last.
    #[inline]
    fn advance(&mut self, now: Instant) {
        for i in 1..self.hops.len() {
            let (before, after) = self.hops.split_at_mut(i);
            let (Some(from), Some(to)) = (before.last_mut(), after.first_mut()) else { return };
            while let Some(departure) = from.poll_transmit(now) {
                to.on_packet(departure.at, departure.segment);
                if let Some(refused) = to.take_refused() {
                    self.refused.push_back(refused);
                }
            }
        }
    }
}

impl<T: Clone> Machine<T> for OneWay<T> {
    #[inline]
    fn on_packet(&mut self, now: Instant, segment: Segment<T>) {
        let now = self.latest(now);
        match self.hops.first_mut() {
            Some(first) => {
                first.on_packet(now, segment);
                if let Some(refused) = first.take_refused() {
                    self.refused.push_back(refused);
                }
            }
            // No hop: it leaves as it came.
            None => self.refused.push_back(Departure { at: now, segment, fate: Fate::Delivered }),
        }
    }

    #[inline]
    fn poll_transmit(&mut self, now: Instant) -> Option<Departure<T>> {
        let now = self.latest(now);
        self.advance(now);
        self.refused.pop_front().or_else(|| self.hops.last_mut()?.poll_transmit(now))
    }

    #[inline]
    fn next_timeout(&self) -> Option<Instant> {
        if let ([hop], true) = (self.hops.as_slice(), self.refused.is_empty()) {
            return hop.next_timeout();
        }
        let hops = self.hops.iter().zip(&self.tails).filter_map(|(hop, tail)| Some(hop.next_timeout()? + *tail));
        self.refused.front().map(|refused| refused.at).into_iter().chain(hops).min()
    }
}
