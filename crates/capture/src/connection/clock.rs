//! How far the place of capture is from a sender, and how long its segments queued on the way here, from timestamps
//! (RFC 7323). What is *not* here: round trips between the place of capture and the receiver (`half`).

use std::collections::VecDeque;

/// Timestamps whose echo is awaited.
const MOST_AWAITED: usize = 512;

/// Clock ticks in nanoseconds that systems use: 1 ms (Linux, FreeBSD, macOS, Windows), 10 ms and 100 ms (older Windows),
/// 4 ms (Linux with 250 Hz before timestamps had a rate of their own), 1 us.
const TICKS_NS: [f64; 5] = [1e6, 1e7, 1e8, 4e6, 1e3];

/// A tick is known after this long.
const LEAST_SPAN_NS: u64 = 200_000_000;

/// So many spans from one segment on are tried, each twice as long as the one before: a queue that grows hides the tick of a short one.
const SPANS: u8 = 4;

/// How fast two clocks drift apart at most, as a part: 30 in a million.
const DRIFT: f64 = 30e-6;

/// The delay from a sender to the place of capture, above its minimum.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queueing {
    first: Option<(u32, u64)>,
    /// Spans from there that showed no tick.
    spans: u8,
    tick_ns: Option<f64>,
    least: Option<(f64, u64)>,
    epoch_until_ns: u64,
    epoch_least: f64,
    last_ns: f64,
    /// Of the last value.
    here_ns: f64,
}

impl Queueing {
    /// A segment with timestamp `value` passed. A queue stands if it is there for all of a round trip, `trip_ns`: a burst
    /// queues behind itself, and what answers an acknowledgement after it doesn't.
    pub(crate) fn on(&mut self, at_ns: u64, value: u32, trip_ns: u64) {
        let Some((first, first_ns)) = self.first else {
            self.first = Some((value, at_ns));
            return;
        };
        let (ticks, span_ns) = (f64::from(value.wrapping_sub(first).cast_signed()), at_ns.saturating_sub(first_ns));
        if self.tick_ns.is_none() {
            if span_ns >= LEAST_SPAN_NS << self.spans {
                let near = |tick: &&f64| (ticks * **tick / span_ns as f64 - 1.0).abs() < 0.15;
                self.tick_ns = TICKS_NS.iter().find(near).copied();
                // It became known in the middle of a burst, perhaps.
                self.epoch_until_ns = at_ns.saturating_add(trip_ns);
                if self.tick_ns.is_none() {
                    // Clocks of any other rate say nothing; look again with a longer span. What begins in the middle of a full queue takes
                    // it for an empty one.
                    self.spans += 1;
                    if self.spans == SPANS {
                        (self.spans, self.first) = (0, Some((value, at_ns)));
                    }
                }
            }
            return;
        }
        let Some(tick_ns) = self.tick_ns else { return };
        let offset = span_ns as f64 - ticks * tick_ns;
        let least = match self.least {
            Some((least, since_ns)) => (least + at_ns.saturating_sub(since_ns) as f64 * DRIFT).min(offset),
            // The first segment is the nearest to an empty path that there is.
            None => offset.min(0.0),
        };
        self.least = Some((least, at_ns));
        if at_ns >= self.epoch_until_ns {
            self.last_ns = self.epoch_least;
            self.epoch_until_ns = at_ns.saturating_add(trip_ns.max((4.0 * tick_ns) as u64));
            self.epoch_least = f64::MAX;
        }
        // The least of a few ticks: one value alone is blurred by a whole tick.
        self.epoch_least = self.epoch_least.min(offset - least);
        self.here_ns = offset - least;
    }

    /// How long the last segment queued, give or take a tick; `None` where the sender's clock could not be read.
    pub(crate) fn here_ns(&self) -> Option<u64> {
        let tick_ns = self.tick_ns?;
        Some((self.here_ns - tick_ns).max(0.0) as u64)
    }

    /// Whether the sender's clock could be read.
    pub(crate) const fn is_known(&self) -> bool {
        self.tick_ns.is_some()
    }

    /// Less than a tick is no queue: where the sender pauses, a few values in a row have the same blur.
    pub(crate) fn now_ns(&self) -> u64 {
        let is_seen = self.tick_ns.is_some_and(|tick_ns| self.last_ns >= tick_ns);
        if is_seen { self.last_ns as u64 } else { 0 }
    }
}

/// The least time for which a queue must stand to be distinguished from a burst.
const LEAST_EPOCH_NS: u64 = 20_000_000;

/// What is on its way to an end beside the place of capture was seen less than this before the end has it.
const LEAST_PASSED_NS: u64 = 1_000_000;

/// How long timestamps take from the place of capture to an end and, echoed, back here.
#[derive(Clone, Debug, Default)]
pub(crate) struct Echo {
    awaited: VecDeque<(u32, u64)>,
    /// The newest that ever was: one that is repeated after its echo came back is no news.
    newest: Option<u32>,
    pub(crate) least_ns: Option<u64>,
    /// The payload of the segment measured: what is longer takes a slow link longer.
    pub(crate) least_len: u32,
    /// Whether an echo was measured, and not only the handshake.
    pub(crate) is_known: bool,
    /// Whether it is the way that takes that long, and not the end that waits: the handshake was seen, or an echo of one value passed
    /// a newer one that was on its way. Who sends only when everything was acknowledged echoes the newest each time, wherever it is.
    pub(super) is_way: bool,
    epoch_until_ns: u64,
    epoch_least_ns: Option<u64>,
    /// The least of the epoch before: what stands in a queue all the time lengthens it, too.
    recent_ns: Option<u64>,
}

impl Echo {
    /// As new, with the room that the list had.
    pub(super) fn empty(&mut self) {
        let Self { awaited, newest, least_ns, least_len, is_known, is_way, epoch_until_ns, epoch_least_ns, recent_ns } =
            self;
        awaited.clear();
        (*newest, *least_len, *is_known, *is_way) = (None, 0, false, false);
        (*least_ns, *epoch_until_ns, *epoch_least_ns, *recent_ns) = (None, 0, None, None);
    }

    /// Awaits none of the values so far.
    pub(super) fn forget(&mut self) {
        self.awaited.clear();
    }

    /// A segment towards the end carried `value`.
    #[inline]
    pub(crate) fn sent(&mut self, at_ns: u64, value: u32) {
        if self.newest.is_some_and(|newest| !is_before(newest, value)) {
            return;
        }
        self.newest = Some(value);
        if self.awaited.len() < MOST_AWAITED {
            self.awaited.push_back((value, at_ns));
        }
    }

    /// A segment from the end, of `len` bytes, echoed `value`.
    #[inline]
    pub(crate) fn echoed(&mut self, at_ns: u64, value: u32, len: u32) {
        while let Some((awaited, sent_ns)) = self.awaited.front().copied() {
            if is_before(value, awaited) {
                return;
            }
            self.awaited.pop_front();
            if awaited == value {
                let took_ns = at_ns.saturating_sub(sent_ns);
                self.note(took_ns, len);
                self.is_known = true;
                let newer = self.awaited.front();
                self.is_way |= newer.is_some_and(|(_, sent_ns)| at_ns.saturating_sub(*sent_ns) >= LEAST_PASSED_NS);
                self.note_recent(at_ns, took_ns);
            }
        }
    }

    /// By how much the least time of the last round trip exceeds the least of all; `None` where nothing was echoed in it, nor in
    /// the `rest_ns` that the rest of the path takes: whoever sends a burst in each round trip echoes nothing in between.
    pub(crate) fn excess_ns(&self, now_ns: u64, rest_ns: u64) -> Option<u64> {
        let is_fresh = now_ns <= self.epoch_until_ns.saturating_add(self.epoch_ns().max(rest_ns));
        let recent = self.epoch_least_ns.into_iter().chain(self.recent_ns).min().filter(|_| is_fresh)?;
        Some(recent.saturating_sub(self.least_ns?))
    }

    fn epoch_ns(&self) -> u64 {
        self.least_ns.unwrap_or(0).max(LEAST_EPOCH_NS)
    }

    fn note_recent(&mut self, at_ns: u64, took_ns: u64) {
        if at_ns >= self.epoch_until_ns {
            self.recent_ns = self.epoch_least_ns;
            self.epoch_least_ns = None;
            self.epoch_until_ns = at_ns.saturating_add(self.epoch_ns());
        }
        self.epoch_least_ns = Some(self.epoch_least_ns.map_or(took_ns, |least| least.min(took_ns)));
    }

    /// A time that was found otherwise, with a segment of `len` bytes.
    pub(crate) fn note(&mut self, took_ns: u64, len: u32) {
        if self.least_ns.is_none_or(|least| took_ns < least) {
            (self.least_ns, self.least_len) = (Some(took_ns), len);
        }
    }
}

/// Timestamps compare as sequence numbers do (RFC 7323, section 5.2).
const fn is_before(a: u32, b: u32) -> bool {
    b.wrapping_sub(a).cast_signed() > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_echo_counts_once_and_the_least_counts() {
        let mut echo = Echo::default();
        for value in 0..5 {
            echo.sent(u64::from(value) * 1_000, value);
        }
        echo.echoed(10_000, 1, 0);
        assert_eq!(echo.least_ns, Some(9_000));
        echo.echoed(10_100, 1, 0);
        echo.echoed(10_200, 0, 0);
        echo.echoed(11_000, 4, 0);
        assert_eq!(echo.least_ns, Some(7_000));
    }

    #[test]
    fn newer_values_are_passed_on_a_way_and_never_beside_an_end_that_waits() {
        let (mut waiting, mut away) = (Echo::default(), Echo::default());
        for step in 0..100_u32 {
            let sent_ns = u64::from(step) * 1_000_000;
            waiting.sent(sent_ns, step);
            away.sent(sent_ns, step);
            if step % 10 == 9 {
                waiting.echoed(sent_ns + 900_000, step, 1_448);
            }
            if step >= 40 {
                away.echoed(sent_ns, step - 40, 1_448);
            }
        }
        assert!(!waiting.is_way && away.is_way);
        assert_eq!(away.least_ns, Some(40_000_000));
    }

    #[test]
    fn a_value_that_is_sent_again_after_its_echo_says_nothing() {
        let mut echo = Echo::default();
        echo.sent(0, 7);
        echo.echoed(5_000, 7, 0);
        // The clock of the other end has not gone on meanwhile; what comes next was under way already.
        echo.sent(9_000, 7);
        echo.echoed(9_002, 7, 0);
        assert_eq!(echo.least_ns, Some(5_000));
    }

    #[test]
    fn a_queue_that_stands_lengthens_each_answer_and_an_old_answer_says_nothing() {
        let mut echo = Echo::default();
        for step in 0..100_u32 {
            let sent_ns = u64::from(step) * 2_000_000;
            let queue_ns = if step >= 50 { 15_000_000 } else { 0 };
            echo.sent(sent_ns, step);
            echo.echoed(sent_ns + 1_000_000 + queue_ns, step, 0);
        }
        assert_eq!(echo.excess_ns(215_000_000, 0), Some(15_000_000));
        assert_eq!(echo.excess_ns(900_000_000, 40_000_000), None);
        // Between two bursts the answers to the last one still tell.
        assert_eq!(echo.excess_ns(245_000_000, 0), None);
        assert_eq!(echo.excess_ns(245_000_000, 40_000_000), Some(15_000_000));
    }

    #[test]
    fn bursts_without_a_queue_show_none() {
        let mut queueing = Queueing::default();
        // Ten packets at once, at any moment within a tick of the sender's clock.
        for burst in 0..200_u64 {
            let sent_us = burst * 61_370;
            for _ in 0..10 {
                queueing.on((sent_us + 7_000) * 1_000, (sent_us / 1_000) as u32, 0);
            }
            assert_eq!(queueing.now_ns(), 0, "burst {burst}");
        }
    }

    #[test]
    fn a_burst_that_queues_behind_itself_is_no_standing_queue() {
        let mut queueing = Queueing::default();
        for burst in 0..100_u64 {
            let sent_us = burst * 130_000;
            for place in 0..12 {
                queueing.on((sent_us + 7_000 + place * 1_200) * 1_000, (sent_us / 1_000) as u32, 100_000_000);
                assert_eq!(queueing.now_ns(), 0, "burst {burst}");
            }
        }
    }

    #[test]
    fn a_queue_that_grows_while_the_tick_is_looked_for_shows() {
        let mut queueing = Queueing::default();
        for step in 0..2_000_u64 {
            let sent_us = step * 500;
            // 40 ms after a tenth of a second, which makes 240 ms of 200.
            let queue_us = step.saturating_sub(100).min(100) * 400;
            queueing.on((sent_us + 7_000 + queue_us) * 1_000, (sent_us / 1_000) as u32, 0);
        }
        let here_ms = queueing.here_ns().unwrap() / 1_000_000;
        assert!((38..=40).contains(&here_ms), "{here_ms}");
    }

    #[test]
    fn a_queue_shows_in_the_timestamps_whatever_their_rate() {
        for tick_us in [1_u64, 1_000, 10_000] {
            let mut queueing = Queueing::default();
            for step in 0..4_000_u64 {
                let sent_us = step * 500;
                let queue_us = if step > 2_000 { 30_000 } else { 0 };
                queueing.on((sent_us + 7_000 + queue_us) * 1_000, (sent_us / tick_us) as u32, 0);
            }
            let seen = queueing.now_ns() / 1_000;
            assert!((29_000..31_000).contains(&seen), "{tick_us}: {seen}");
        }
    }
}
