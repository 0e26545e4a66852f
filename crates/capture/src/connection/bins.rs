//! A timeline of bounded size: bins of equal width that double it when there is no room for more. Between packets nothing
//! happens but that time passes: such bins are alike, and kept once. What is *not* here: what the figures mean.

use std::borrow::Cow;

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
    /// Joins with it what follows, so many bins that are alike.
    #[inline(never)]
    fn absorb(&mut self, later: &Self, times: u32) {
        let (many, few) = (u64::from(times), times);
        self.acked += later.acked * many;
        self.delivered += later.delivered * many;
        self.sent += later.sent * many;
        self.unprompted += later.unprompted * many;
        self.prompted += later.prompted * many;
        self.prompts += later.prompts * few;
        self.hidden += later.hidden * many;
        self.credited += later.credited * many;
        self.credits += later.credits * few;
        self.starved_ns += later.starved_ns * many;
        self.clocked += later.clocked * few;
        self.woken += later.woken * few;
        self.written += later.written * few;
        self.asked += later.asked * few;
        self.asked_ns += later.asked_ns * many;
        self.dry_ns += later.dry_ns * many;
        // One after the other: a product would be rounded in another way.
        (0..times).for_each(|_| self.flight_ns += later.flight_ns);
        self.peak = self.peak.max(later.peak);
        self.busy_ns += later.busy_ns * many;
        self.held_ns += later.held_ns * many;
        self.closed_ns += later.closed_ns * many;
        self.window = later.window.or(self.window);
        self.rtt_ns = shortest(self.rtt_ns, later.rtt_ns);
        self.retransmits += later.retransmits * few;
        self.retransmitted += later.retransmitted * many;
        self.timeouts += later.timeouts * few;
        self.tails += later.tails * few;
        self.probes += later.probes * few;
        self.reordered += later.reordered * few;
        self.dsacks += later.dsacks * few;
        self.out_of_order += later.out_of_order * few;
        self.marked += later.marked * few;
        self.nagle += later.nagle * few;
        self.nagle_ns += later.nagle_ns * many;
        self.delayed += later.delayed * few;
        self.delayed_ns += later.delayed_ns * many;
        self.packets = match (self.packets, later.packets) {
            (Some((first, _)), Some((_, last))) => Some((first, last)),
            (one, other) => one.or(other),
        };
    }

    /// Whether another one says the same. One with packets never does.
    fn is_like(&self, other: &Self) -> bool {
        self.packets.is_none() && self == other
    }
}

/// The shorter of two round trips, as far as they were seen.
pub(crate) fn shortest(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    one.into_iter().chain(other).min()
}

/// Bins in a row that are alike.
#[derive(Clone, Copy, Debug)]
struct Run {
    bin: Bin,
    /// How many: at least one.
    count: u32,
}

/// Bins one after the other.
#[derive(Clone, Debug, Default)]
struct Row {
    runs: Vec<Run>,
    /// How many bins these are.
    count: usize,
}

impl Row {
    /// Adds so many that are alike, of which there is at least one.
    #[inline(never)]
    fn push(&mut self, bin: &Bin, count: u32) {
        self.count += count as usize;
        match self.runs.last_mut().filter(|last| bin.is_like(&last.bin)) {
            Some(last) => last.count += count,
            None => self.runs.push(Run { bin: *bin, count }),
        }
    }

    /// Takes the last one away.
    fn pop(&mut self) -> Option<Bin> {
        let last = self.runs.last_mut()?;
        let bin = last.bin;
        last.count -= 1;
        if last.count == 0 {
            self.runs.pop();
        }
        self.count -= 1;
        Some(bin)
    }

    /// The bin at a place, apart from those that were like it.
    fn get_mut(&mut self, place: usize) -> Option<&mut Bin> {
        if place >= self.count {
            return None;
        }
        self.part(place + 1);
        let run = self.part(place);
        Some(&mut self.runs[run].bin)
    }

    /// Has a run begin at a place, and says which one.
    fn part(&mut self, place: usize) -> usize {
        let (mut run, mut begin) = (self.runs.len(), self.count);
        // Most that is looked for is near the end.
        while begin > place {
            run -= 1;
            begin -= self.runs[run].count as usize;
        }
        if begin == place {
            return run;
        }
        self.cut(run, (place - begin) as u32);
        run + 1
    }

    /// Makes two of a run, the first one with so many.
    fn cut(&mut self, run: usize, first: u32) {
        let second = Run { count: self.runs[run].count - first, ..self.runs[run] };
        self.runs[run].count = first;
        self.runs.insert(run + 1, second);
    }
}

/// The bins of one direction, from its first payload byte on.
#[derive(Clone, Debug)]
pub(crate) struct Bins {
    start_ns: u64,
    width_ns: u64,
    /// When the bin that is being filled ends.
    end_ns: u64,
    full: Row,
    /// The one after them, which is being filled: nearly every packet looks for it.
    now: Bin,
    /// What was sent when, more exactly than in bins that have been joined for good.
    settled: Option<Departures>,
}

/// What was sent in each bin in which something was.
#[derive(Clone, Debug)]
pub(crate) struct Departures {
    start_ns: u64,
    width_ns: u64,
    /// The number of the bin, and the payload, repeats included.
    list: Box<[(u16, u32)]>,
}

impl Departures {
    pub(crate) const fn width_ns(&self) -> u64 {
        self.width_ns
    }

    /// When each bin begins, and how much payload it has.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        let begins = |place: u16| self.start_ns.saturating_add(self.width_ns.saturating_mul(place.into()));
        self.list.iter().map(move |&(place, sent)| (begins(place), sent.into()))
    }
}

impl Bins {
    pub(crate) fn starting(start_ns: u64) -> Self {
        let end_ns = start_ns.saturating_add(FIRST_WIDTH_NS);
        Self { start_ns, width_ns: FIRST_WIDTH_NS, end_ns, full: Row::default(), now: Bin::default(), settled: None }
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
        self.full.count + 1
    }

    /// When the bin at a place begins.
    const fn begun_ns(&self, place: usize) -> u64 {
        self.start_ns.saturating_add(self.width_ns.saturating_mul(place as u64))
    }

    /// Charges the `span_ns` before `now_ns` to `part` of the bins that it lies in.
    pub(crate) fn spread(&mut self, now_ns: u64, span_ns: u64, part: fn(&mut Bin) -> &mut u64) {
        let mut left_ns = span_ns.min(now_ns.saturating_sub(self.start_ns));
        let here_ns = now_ns.saturating_sub(self.begun_ns(self.full.count)).min(left_ns);
        *part(&mut self.now) += here_ns;
        left_ns -= here_ns;
        // Bins from `place` on have their part, or begin later: a merged capture's packets may be dated earlier than those before.
        let begun = now_ns.saturating_sub(self.start_ns).div_ceil(self.width_ns.max(1));
        let mut place = usize::try_from(begun).unwrap_or(usize::MAX).min(self.full.count);
        let mut run = self.full.part(place);
        while left_ns > 0 && run > 0 {
            run -= 1;
            let end_ns = now_ns.min(self.begun_ns(place));
            let here_ns = end_ns.saturating_sub(self.begun_ns(place - 1)).min(left_ns);
            let count = self.full.runs[run].count;
            // As many as lie in the span from end to end get the same.
            let whole = (left_ns / self.width_ns.max(1)).min(count.into()) as u32;
            let many = if here_ns == self.width_ns { whole.max(1) } else { 1 };
            if many < count {
                self.full.cut(run, count - many);
                run += 1;
            }
            *part(&mut self.full.runs[run].bin) += here_ns;
            left_ns -= here_ns * u64::from(many);
            place -= many as usize;
        }
    }

    /// Begins the next bin.
    pub(crate) fn next(&mut self) {
        if self.count() >= MOST {
            self.halve();
            // After halving an even number of bins, the last one is full just as it was.
        }
        self.full.push(&self.now, 1);
        self.now = Bin { window: self.now.window, ..Bin::default() };
        self.note_end();
    }

    /// Nothing changes from `since_ns` on, until when all is charged, to `to_ns`: `charge` is given each bin that this lies in, and how
    /// much of it.
    #[inline(never)]
    pub(crate) fn go_on(&mut self, mut since_ns: u64, to_ns: u64, charge: impl Fn(&mut Bin, u64)) {
        self.reach(to_ns);
        while since_ns < to_ns {
            let is_new = self.end_ns <= since_ns;
            if is_new {
                self.next();
            }
            let until_ns = self.end_ns.min(to_ns);
            let span_ns = until_ns.saturating_sub(since_ns);
            charge(&mut self.now, span_ns);
            since_ns = until_ns;
            if is_new && span_ns == self.width_ns {
                // The whole bins after it are like it.
                let room = MOST - self.count().min(MOST);
                let more = ((to_ns - until_ns) / self.width_ns).min(room as u64) as u32;
                if more > 0 {
                    self.full.push(&self.now, more);
                    self.note_end();
                    since_ns = self.end_ns;
                }
            }
        }
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
    #[cold]
    fn halve(&mut self) {
        let mut joined = Row::default();
        let mut first: Option<Bin> = None;
        for Run { bin, mut count } in self.runs() {
            if let Some(mut first) = first.take() {
                first.absorb(&bin, 1);
                joined.push(&first, 1);
                count -= 1;
            }
            if count >= 2 {
                let mut both = bin;
                both.absorb(&bin, 1);
                joined.push(&both, count / 2);
            }
            first = (count % 2 == 1).then_some(bin);
        }
        self.now = first.or_else(|| joined.pop()).unwrap_or_default();
        self.full = joined;
        self.width_ns = self.width_ns.saturating_mul(2);
        self.note_end();
    }

    fn note_end(&mut self) {
        self.end_ns = self.begun_ns(self.count());
    }

    /// All of them, with the one that is being filled.
    fn runs(&self) -> impl Iterator<Item = Run> {
        self.full.runs.iter().copied().chain([Run { bin: self.now, count: 1 }])
    }

    /// Neighbours joined until each spans at least `least_ns`; with the width that results.
    pub(crate) fn coarse(&self, least_ns: u64) -> (Vec<Bin>, u64) {
        let factor = least_ns.div_ceil(self.width_ns.max(1)).max(1);
        let many = u32::try_from(factor).unwrap_or(u32::MAX);
        let mut joined: Vec<Bin> = Vec::with_capacity(self.count().div_ceil(many as usize));
        // How many the last one lacks.
        let mut room = 0;
        for Run { bin, count: mut left } in self.runs() {
            while left > 0 {
                if room == 0 {
                    joined.push(bin);
                    (room, left) = (many - 1, left - 1);
                }
                let more = room.min(left);
                if let Some(last) = joined.last_mut().filter(|_| more > 0) {
                    last.absorb(&bin, more);
                }
                (room, left) = (room - more, left - more);
            }
        }
        (joined, self.width_ns.saturating_mul(factor))
    }

    /// What reached the receiver after a moment: when each bin of that ends, and how much it has.
    pub(crate) fn delivered_after(&self, from_ns: u64) -> impl Iterator<Item = (u64, u64)> {
        let past = usize::try_from(from_ns.saturating_sub(self.start_ns) / self.width_ns.max(1)).unwrap_or(usize::MAX);
        let delivered = self.runs().flat_map(|run| core::iter::repeat_n(run.bin.delivered, run.count as usize));
        let bins = delivered.enumerate().skip(past).filter(|(_, delivered)| *delivered > 0);
        bins.map(|(place, delivered)| (self.begun_ns(place + 1), delivered))
    }

    /// What was sent when.
    pub(crate) fn departures(&self) -> Cow<'_, Departures> {
        self.settled.as_ref().map(Cow::Borrowed).unwrap_or_else(|| {
            let (mut list, mut place) = (Vec::new(), 0_u16);
            for Run { bin, count } in self.runs() {
                let next = place + count as u16;
                if bin.sent > 0 {
                    let sent = u32::try_from(bin.sent).unwrap_or(u32::MAX);
                    list.extend((place..next).map(|place| (place, sent)));
                }
                place = next;
            }
            Cow::Owned(Departures { start_ns: self.start_ns, width_ns: self.width_ns, list: list.into() })
        })
    }

    /// Joins them for good as [`Bins::coarse`] would: 512 of them take 140 kB, where no two are alike. Where `keeps_departures`, what was sent
    /// when is remembered as it was, in 8 bytes for each bin with any.
    pub(crate) fn settle(&mut self, least_ns: u64, keeps_departures: bool) {
        self.settled = keeps_departures.then(|| self.departures().into_owned());
        let (joined, width_ns) = self.coarse(least_ns);
        let mut full = Row::default();
        joined.iter().for_each(|bin| full.push(bin, 1));
        self.now = full.pop().unwrap_or_default();
        full.runs.shrink_to_fit();
        (self.full, self.width_ns) = (full, width_ns);
        self.note_end();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    impl Bins {
        fn all(&self) -> Vec<Bin> {
            self.coarse(0).0
        }
    }

    /// The same with each bin by itself.
    struct OneByOne {
        start_ns: u64,
        width_ns: u64,
        bins: Vec<Bin>,
    }

    impl OneByOne {
        fn end_ns(&self) -> u64 {
            self.start_ns + self.width_ns * self.bins.len() as u64
        }

        fn now(&mut self) -> &mut Bin {
            self.bins.last_mut().unwrap()
        }

        fn at(&mut self, at_ns: u64) -> &mut Bin {
            let place = (at_ns.saturating_sub(self.start_ns) / self.width_ns) as usize;
            let last = self.bins.len() - 1;
            &mut self.bins[place.min(last)]
        }

        fn halve(&mut self) {
            self.bins = self.coarse(2);
            self.width_ns *= 2;
        }

        fn go_on(&mut self, mut since_ns: u64, to_ns: u64, charge: impl Fn(&mut Bin, u64)) {
            while self.start_ns + self.width_ns * MOST as u64 <= to_ns.saturating_sub(1) {
                self.halve();
            }
            while since_ns < to_ns {
                if self.end_ns() <= since_ns {
                    let window = self.now().window;
                    self.bins.push(Bin { window, ..Bin::default() });
                }
                let until_ns = self.end_ns().min(to_ns);
                charge(self.now(), until_ns - since_ns);
                since_ns = until_ns;
            }
        }

        fn spread(&mut self, now_ns: u64, span_ns: u64, part: fn(&mut Bin) -> &mut u64) {
            let from_ns = now_ns.saturating_sub(span_ns).max(self.start_ns);
            let last = self.bins.len() - 1;
            for (place, bin) in self.bins.iter_mut().enumerate() {
                let begun_ns = self.start_ns + self.width_ns * place as u64;
                let end_ns = if place == last { u64::MAX } else { begun_ns + self.width_ns };
                *part(bin) += end_ns.min(now_ns).saturating_sub(begun_ns.max(from_ns));
            }
        }

        fn coarse(&self, many: usize) -> Vec<Bin> {
            let join = |group: &[Bin]| {
                group.iter().skip(1).fold(group[0], |mut first, bin| {
                    first.absorb(bin, 1);
                    first
                })
            };
            self.bins.chunks(many).map(join).collect()
        }
    }

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Pass { span_ns: u64, in_flight: u64 },
        Packet { bytes: u64, window: u64 },
        Pause { span_ns: u64, ago_ns: u64 },
        Late { ago_ns: u64 },
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let span = || {
            prop_oneof![
                1..1_000_u64,
                1..2_000_000_u64,
                1..60_000_000_u64,
                (1..400_u64).prop_map(|count| count * FIRST_WIDTH_NS)
            ]
        };
        let step = prop_oneof![
            5 => (span(), 0..3_u64).prop_map(|(span_ns, in_flight)| Step::Pass { span_ns, in_flight: in_flight * 1_460 }),
            3 => (1..9_u64, 0..3_u64).prop_map(|(bytes, window)| Step::Packet { bytes, window }),
            2 => (span(), prop_oneof![3 => Just(0), 1 => span()])
                .prop_map(|(span_ns, ago_ns)| Step::Pause { span_ns, ago_ns }),
            1 => span().prop_map(|ago_ns| Step::Late { ago_ns }),
        ];
        prop::collection::vec(step, 1..120)
    }

    proptest! {
        #[test]
        fn bins_that_are_alike_are_as_each_by_itself(steps in steps(), start_ns in 0..3_u64, least in 1..9_u64) {
            let mut bins = Bins::starting(start_ns);
            let mut plain = OneByOne { start_ns, width_ns: FIRST_WIDTH_NS, bins: vec![Bin::default()] };
            let (mut now_ns, mut number) = (start_ns, 0);
            for step in steps {
                match step {
                    Step::Pass { span_ns, in_flight } => {
                        let charge = |bin: &mut Bin, span_ns: u64| {
                            bin.busy_ns += if in_flight > 0 { span_ns } else { 0 };
                            bin.flight_ns += in_flight as f64 * span_ns as f64;
                            bin.peak = bin.peak.max(in_flight);
                        };
                        bins.go_on(now_ns, now_ns + span_ns, charge);
                        plain.go_on(now_ns, now_ns + span_ns, charge);
                        now_ns += span_ns;
                    }
                    Step::Packet { bytes, window } => {
                        number += 1;
                        for bin in [bins.now(), plain.now()] {
                            bin.sent += bytes;
                            bin.window = Some(window);
                            // Acknowledgements that reach the sender have none.
                            if bytes > 4 {
                                bin.packets = Some((bin.packets.map_or(number, |(first, _)| first), number));
                            }
                        }
                    }
                    Step::Pause { span_ns, ago_ns } => {
                        let at_ns = now_ns.saturating_sub(ago_ns).max(start_ns);
                        bins.spread(at_ns, span_ns, |bin| &mut bin.dry_ns);
                        plain.spread(at_ns, span_ns, |bin| &mut bin.dry_ns);
                    }
                    Step::Late { ago_ns } => {
                        let at_ns = now_ns.saturating_sub(ago_ns);
                        bins.at(at_ns).timeouts += 1;
                        plain.at(at_ns).timeouts += 1;
                    }
                }
                prop_assert_eq!(bins.end_ns(), plain.end_ns());
            }
            prop_assert_eq!(&bins.all(), &plain.bins);
            let many = plain.width_ns * least;
            prop_assert_eq!(bins.coarse(many), (plain.coarse(least as usize), many));
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
    fn time_in_which_nothing_happens_takes_no_room() {
        let mut bins = Bins::starting(0);
        bins.now().sent = 1;
        bins.go_on(0, 100_000_000, |bin, span_ns| bin.busy_ns += span_ns);
        assert_eq!((bins.count(), bins.full.runs.len()), (400, 2));
        assert_eq!(bins.all().iter().map(|bin| bin.busy_ns).sum::<u64>(), 100_000_000);
    }

    #[test]
    fn settled_bins_say_what_they_would_have_said() {
        for count in 1..40_u64 {
            let mut bins = Bins::starting(5);
            for step in 0..count {
                bins.now().acked += 1 << step;
                bins.now().sent += (step + 1) % 2;
                bins.next();
            }
            let least_ns = 3 * FIRST_WIDTH_NS - 1;
            let (before, sent) = (bins.coarse(least_ns), bins.departures().into_owned());
            bins.settle(least_ns, true);
            assert!(sent.iter().eq(bins.departures().iter()), "{count} bins");
            assert_eq!(sent.iter().count() as u64, count.div_ceil(2));
            assert_eq!(bins.coarse(least_ns), before, "{count} bins");
            assert_eq!(bins.end_ns, 5 + before.0.len() as u64 * before.1);
        }
    }
}
