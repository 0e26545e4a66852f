//! A timeline of bounded size: bins of equal width that double it when there is no room for more. What is *not* here:
//! what the figures mean.

/// Most bins of one direction. The judge looks at round trips, and a transfer of this many is a long one.
const MOST: usize = 512;

/// The first width: no round trip worth judging takes less.
const FIRST_WIDTH_NS: u64 = 250_000;

/// What happened in one span of time to the payload of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Bin {
    /// Payload acknowledged.
    pub(crate) acked: u64,
    /// Payload that reached the receiver: acknowledged, selectively too.
    pub(crate) delivered: u64,
    /// Payload sent, repeats included.
    pub(crate) sent: u64,
    /// Of that, sent while no acknowledgement made room for it.
    pub(crate) unprompted: u64,
    /// Of that, sent right after an acknowledgement that made room, and how many of these there were.
    pub(crate) prompted: u64,
    pub(crate) prompts: u32,
    /// Of that, what came right behind other data, and no acknowledgement tells whether it was sent with it.
    pub(crate) hidden: u64,
    /// Of that, sent right after a message of the receiver's application, and how many of these came.
    pub(crate) credited: u64,
    pub(crate) credits: u32,
    /// Time in which there was room for more, for a good part of a round trip, and nothing was sent.
    pub(crate) starved_ns: u64,
    /// Pauses that the first acknowledgement to make room ended, a later one, and none.
    pub(crate) clocked: u32,
    pub(crate) woken: u32,
    pub(crate) written: u32,
    /// Requests of the receiver that came when everything had been sent and acknowledged.
    pub(crate) asked: u32,
    /// Time in which everything had been sent and acknowledged before the receiver asked for more.
    pub(crate) asked_ns: u64,
    /// Time in which nothing arrived at the receiver, though something was in flight.
    pub(crate) dry_ns: u64,
    /// Bytes in flight times nanoseconds.
    pub(crate) flight_ns: f64,
    /// Most in flight.
    pub(crate) peak: u64,
    /// Time with something in flight.
    pub(crate) busy_ns: u64,
    /// Of that, with the offered window used up.
    pub(crate) held_ns: u64,
    /// Time in which the receiver's window was closed.
    pub(crate) closed_ns: u64,
    /// Offered window at the end.
    pub(crate) window: Option<u64>,
    /// The shortest round trip, but for the shortest way between sender and place of capture, which may become known
    /// later: a queue that stands lengthens all, a burst or a delayed acknowledgement only some.
    pub(crate) rtt_ns: Option<u64>,
    pub(crate) retransmits: u32,
    pub(crate) retransmitted: u64,
    pub(crate) timeouts: u32,
    /// Of those, with fewer than three segments behind what was lost.
    pub(crate) tails: u32,
    /// Last segments of a flight that were sent again before a timer ran out, and unasked.
    pub(crate) probes: u32,
    /// Segments that were late: sent once, overtaken.
    pub(crate) reordered: u32,
    pub(crate) dsacks: u32,
    pub(crate) out_of_order: u32,
    pub(crate) marked: u32,
    /// Writes held back by Nagle's algorithm until a delayed acknowledgement.
    pub(crate) nagle: u32,
    pub(crate) nagle_ns: u64,
    /// Other segments that waited for a delayed acknowledgement.
    pub(crate) delayed: u32,
    pub(crate) delayed_ns: u64,
    /// Numbers of the first and last packet.
    pub(crate) packets: Option<(u64, u64)>,
}

impl Bin {
    fn absorb(&mut self, later: &Self) {
        self.acked += later.acked;
        self.delivered += later.delivered;
        self.sent += later.sent;
        self.unprompted += later.unprompted;
        self.prompted += later.prompted;
        self.prompts += later.prompts;
        self.hidden += later.hidden;
        self.credited += later.credited;
        self.credits += later.credits;
        self.starved_ns += later.starved_ns;
        self.clocked += later.clocked;
        self.woken += later.woken;
        self.written += later.written;
        self.asked += later.asked;
        self.asked_ns += later.asked_ns;
        self.dry_ns += later.dry_ns;
        self.flight_ns += later.flight_ns;
        self.peak = self.peak.max(later.peak);
        self.busy_ns += later.busy_ns;
        self.held_ns += later.held_ns;
        self.closed_ns += later.closed_ns;
        self.window = later.window.or(self.window);
        self.rtt_ns = shortest(self.rtt_ns, later.rtt_ns);
        self.retransmits += later.retransmits;
        self.retransmitted += later.retransmitted;
        self.timeouts += later.timeouts;
        self.tails += later.tails;
        self.probes += later.probes;
        self.reordered += later.reordered;
        self.dsacks += later.dsacks;
        self.out_of_order += later.out_of_order;
        self.marked += later.marked;
        self.nagle += later.nagle;
        self.nagle_ns += later.nagle_ns;
        self.delayed += later.delayed;
        self.delayed_ns += later.delayed_ns;
        self.packets = match (self.packets, later.packets) {
            (Some((first, _)), Some((_, last))) => Some((first, last)),
            (one, other) => one.or(other),
        };
    }
}

/// The shorter of two round trips, as far as they were seen.
pub(crate) fn shortest(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    one.into_iter().chain(other).min()
}

/// The bins of one direction, from its first payload byte on.
#[derive(Clone, Debug)]
pub(crate) struct Bins {
    start_ns: u64,
    width_ns: u64,
    /// When the bin that is being filled ends.
    end_ns: u64,
    full: Vec<Bin>,
    /// The one after them, which is being filled: nearly every packet looks for it.
    now: Bin,
}

impl Bins {
    pub(crate) fn starting(start_ns: u64) -> Self {
        let end_ns = start_ns.saturating_add(FIRST_WIDTH_NS);
        Self { start_ns, width_ns: FIRST_WIDTH_NS, end_ns, full: Vec::new(), now: Bin::default() }
    }

    pub(crate) const fn start_ns(&self) -> u64 {
        self.start_ns
    }

    /// The bin that is being filled.
    #[inline]
    pub(crate) const fn now(&mut self) -> &mut Bin {
        &mut self.now
    }

    /// The bin of an earlier moment.
    pub(crate) fn at(&mut self, at_ns: u64) -> &mut Bin {
        let place = at_ns.saturating_sub(self.start_ns) / self.width_ns.max(1);
        usize::try_from(place).ok().and_then(|place| self.full.get_mut(place)).unwrap_or(&mut self.now)
    }

    /// When the bin that is being filled ends.
    #[inline]
    pub(crate) const fn end_ns(&self) -> u64 {
        self.end_ns
    }

    const fn count(&self) -> usize {
        self.full.len() + 1
    }

    /// Charges the `span_ns` before `now_ns` to `part` of the bins that it lies in.
    pub(crate) fn spread(&mut self, now_ns: u64, span_ns: u64, part: fn(&mut Bin) -> &mut u64) {
        let mut left_ns = span_ns.min(now_ns.saturating_sub(self.start_ns));
        let mut end_ns = now_ns;
        let places = (0..self.count()).rev();
        for (index, bin) in places.zip(core::iter::once(&mut self.now).chain(self.full.iter_mut().rev())) {
            let begun_ns = self.start_ns.saturating_add(self.width_ns.saturating_mul(index as u64));
            let here_ns = end_ns.saturating_sub(begun_ns).min(left_ns);
            *part(bin) += here_ns;
            left_ns -= here_ns;
            end_ns = end_ns.min(begun_ns);
            if left_ns == 0 {
                break;
            }
        }
    }

    /// Begins the next bin.
    pub(crate) fn next(&mut self) {
        if self.count() >= MOST {
            self.halve();
            // After halving an even number of bins, the last one is full just as it was.
        }
        let new = Bin { window: self.now.window, ..Bin::default() };
        self.full.push(core::mem::replace(&mut self.now, new));
        self.note_end();
    }

    /// Makes the bins as wide as they have to be for `to_ns`. Many calls of [`Bins::next`] come to the same, but after a
    /// long pause each would fill all bins before it halves them.
    #[inline]
    pub(crate) fn reach(&mut self, to_ns: u64) {
        let span_ns = to_ns.saturating_sub(self.start_ns);
        while self.width_ns.saturating_mul(MOST as u64) < span_ns {
            self.halve();
        }
    }

    /// Joins neighbours. The last bin of an odd number stays as it is: half full.
    fn halve(&mut self) {
        let count = self.count();
        self.full.push(self.now);
        for index in 0..count / 2 {
            let mut bin = self.full[2 * index];
            bin.absorb(&self.full[2 * index + 1]);
            self.full[index] = bin;
        }
        if count % 2 == 1 {
            self.full.swap(count / 2, count - 1);
        }
        self.full.truncate(count.div_ceil(2));
        self.now = self.full.pop().unwrap_or_default();
        self.width_ns = self.width_ns.saturating_mul(2);
        self.note_end();
    }

    fn note_end(&mut self) {
        self.end_ns = self.start_ns.saturating_add(self.width_ns.saturating_mul(self.count() as u64));
    }

    /// Neighbours joined until each spans at least `least_ns`; with the width that results.
    pub(crate) fn coarse(&self, least_ns: u64) -> (Vec<Bin>, u64) {
        let factor = least_ns.div_ceil(self.width_ns.max(1)).max(1);
        let many = usize::try_from(factor).unwrap_or(usize::MAX);
        let mut joined: Vec<Bin> = Vec::with_capacity(self.count().div_ceil(many));
        for (place, bin) in self.full.iter().chain([&self.now]).enumerate() {
            match joined.last_mut().filter(|_| !place.is_multiple_of(many)) {
                Some(last) => last.absorb(bin),
                None => joined.push(*bin),
            }
        }
        (joined, self.width_ns.saturating_mul(factor))
    }

    /// What reached the receiver after a moment: when each bin of that ends, and how much it has.
    pub(crate) fn delivered_after(&self, from_ns: u64) -> impl Iterator<Item = (u64, u64)> {
        let past = usize::try_from(from_ns.saturating_sub(self.start_ns) / self.width_ns.max(1)).unwrap_or(usize::MAX);
        let ends = (1..).map(|place: u64| self.start_ns.saturating_add(self.width_ns.saturating_mul(place)));
        let bins = self.full.iter().chain([&self.now]).zip(ends).skip(past);
        bins.filter(|(bin, _)| bin.delivered > 0).map(|(bin, end_ns)| (end_ns, bin.delivered))
    }

    /// Joins them for good as [`Bins::coarse`] would: 512 of them take 170 kB.
    pub(crate) fn settle(&mut self, least_ns: u64) {
        let (joined, width_ns) = self.coarse(least_ns);
        (self.full, self.width_ns) = (joined, width_ns);
        self.now = self.full.pop().unwrap_or_default();
        self.full.shrink_to_fit();
        self.note_end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Bins {
        fn all(&self) -> Vec<Bin> {
            self.coarse(0).0
        }
    }

    #[test]
    fn a_long_pause_comes_to_the_same_as_many_steps() {
        for count in 1..9 {
            let (mut one, mut other) = (Bins::starting(0), Bins::starting(0));
            for step in 1..=count {
                one.now().acked += step;
                other.now().acked += step;
                if step < count {
                    one.next();
                    other.next();
                }
            }
            let late_ns = 1_000_000_007;
            one.reach(late_ns);
            for bins in [&mut one, &mut other] {
                while bins.end_ns() <= late_ns {
                    bins.next();
                }
                bins.now().acked += 100;
            }
            assert_eq!((one.width_ns, one.all()), (other.width_ns, other.all()), "{count} bins before the pause");
        }
    }

    #[test]
    fn time_without_end_takes_bounded_room_and_loses_nothing() {
        let mut bins = Bins::starting(5);
        let mut total = 0;
        for step in 0..5_000_u64 {
            bins.now().acked += step;
            total += step;
            bins.next();
            assert!(bins.count() <= MOST);
        }
        assert_eq!(bins.all().iter().map(|bin| bin.acked).sum::<u64>(), total);
        assert!(bins.width_ns > FIRST_WIDTH_NS);
        let (coarse, width) = bins.coarse(bins.width_ns * 3);
        assert_eq!(coarse.iter().map(|bin| bin.acked).sum::<u64>(), total);
        assert_eq!(width, bins.width_ns * 3);
    }

    #[test]
    fn settled_bins_say_what_they_would_have_said() {
        for count in 1..40_u64 {
            let mut bins = Bins::starting(5);
            for step in 0..count {
                bins.now().acked += 1 << step;
                bins.next();
            }
            let least_ns = 3 * FIRST_WIDTH_NS - 1;
            let before = bins.coarse(least_ns);
            bins.settle(least_ns);
            assert_eq!(bins.coarse(least_ns), before, "{count} bins");
            assert_eq!(bins.end_ns, 5 + before.0.len() as u64 * before.1);
        }
    }
}
