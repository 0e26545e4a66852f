//! A capture's clock that was set back (by NTP, or by a virtual machine's host) while a connection went on. The order of the
//! file says what came first; without this, all that the clock shows twice would pass in no time, and a round trip in which it
//! was set back would be the shortest of all. What is *not* here: a clock that was set forward, which looks like a pause.

use crate::track::seen::LATEST_NS;

/// What is dated earlier than what was captured before it changed places on the way to the file, up to this much: queues of a
/// card, and mirrored ports, are emptied in turn. A clock is set by more (`ntpd` steps it where it is off by more than 128 ms).
const LEAST_NS: u64 = 20_000_000;

/// A clock is not set more often than this in one connection: packets are in disorder.
const MOST: u8 = 4;

/// A packet alone from the past, or two, came late to the file, if the next one is dated this part of the way back after the one
/// before them.
const STRAY_PART: u64 = 16;
const MOST_STRAYS: u64 = 2;

/// How far a capture's clock is behind what it showed when a connection began.
#[derive(Clone, Debug, Default)]
pub(crate) struct Setting {
    behind_ns: u64,
    last: Back,
    times: u8,
    /// The first packet after it was set back, and by how much.
    pub(crate) first: Option<(u64, u64)>,
}

/// A step back.
#[derive(Clone, Copy, Debug, Default)]
struct Back {
    by_ns: u64,
    /// What the clock showed before.
    before_ns: u64,
    packets: u64,
}

impl Setting {
    /// Whether times of this connection are not those of the clock.
    #[inline]
    pub(super) const fn is_behind(&self) -> bool {
        self.behind_ns > 0
    }

    /// The time of a packet for which the clock shows `shown_ns`.
    pub(super) fn time_ns(&mut self, shown_ns: u64) -> u64 {
        let Back { by_ns, before_ns, packets } = self.last;
        let is_right_again = shown_ns >= before_ns && shown_ns - before_ns < by_ns / STRAY_PART;
        if packets <= MOST_STRAYS && is_right_again {
            self.behind_ns = self.behind_ns.saturating_sub(by_ns);
            self.last = Back::default();
            self.first = self.first.filter(|_| self.behind_ns > 0);
        }
        self.last.packets += 1;
        shown_ns.saturating_add(self.behind_ns).min(LATEST_NS)
    }

    /// Packet `number` was dated `by_ns` earlier than the one before it, which came at `last_ns`; says whether the clock was set back.
    pub(super) fn goes_back(&mut self, by_ns: u64, last_ns: u64, number: u64) -> bool {
        let is_set = by_ns >= LEAST_NS && self.times < MOST;
        if is_set {
            self.last = Back { by_ns, before_ns: last_ns.saturating_sub(self.behind_ns), packets: 1 };
            self.behind_ns = self.behind_ns.saturating_add(by_ns);
            self.times += 1;
            self.first.get_or_insert((number, by_ns));
        }
        is_set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// The times of packets for which a clock shows `shown`, all in milliseconds, as a connection takes them; and whether the clock
    /// was set back.
    fn times<const N: usize>(shown: [u64; N]) -> ([u64; N], bool) {
        let (mut setting, mut last_ns) = (Setting::default(), 0);
        let times = shown.map(|shown| {
            let time_ns = setting.time_ns(shown * MS);
            if time_ns < last_ns {
                setting.goes_back(last_ns - time_ns, last_ns, 1);
            }
            last_ns = last_ns.max(time_ns);
            last_ns / MS
        });
        (times, setting.first.is_some())
    }

    #[test]
    fn time_goes_on_after_a_clock_was_set_back() {
        assert_eq!(times([1_000, 1_010, 960, 970, 980, 1_030]), ([1_000, 1_010, 1_010, 1_020, 1_030, 1_080], true));
        assert_eq!(times([1_000, 1_010, 960, 970, 900, 930]), ([1_000, 1_010, 1_010, 1_020, 1_020, 1_050], true));
        // A packet in each round trip of 80 ms.
        assert_eq!(times([1_000, 1_080, 1_110, 1_190]), ([1_000, 1_080, 1_110, 1_190], false), "nothing shows it");
        assert_eq!(times([1_000, 1_080, 1_030, 1_110]), ([1_000, 1_080, 1_080, 1_160], true));
    }

    #[test]
    fn sums_of_times_fit_whatever_a_file_says() {
        let (mut setting, mut last_ns) = (Setting::default(), 0);
        for shown_ns in [LATEST_NS, 0, LATEST_NS, 1, 2, LATEST_NS, 0] {
            let time_ns = setting.time_ns(shown_ns);
            assert!(time_ns <= LATEST_NS, "{time_ns}");
            if time_ns < last_ns {
                setting.goes_back(last_ns - time_ns, last_ns, 1);
            }
            last_ns = last_ns.max(time_ns);
        }
    }

    #[test]
    fn a_packet_out_of_place_moves_no_other() {
        assert_eq!(times([1_000, 1_010, 900, 1_015, 1_030]), ([1_000, 1_010, 1_010, 1_015, 1_030], false));
        // Two clocks in turn, and packets that changed places.
        assert_eq!(times([1_000, 900, 1_005, 905, 1_010]), ([1_000, 1_000, 1_005, 1_005, 1_010], false));
        assert_eq!(times([1_000, 1_010, 1_005, 1_015]), ([1_000, 1_010, 1_010, 1_015], false));
    }
}
