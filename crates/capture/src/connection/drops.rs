//! Where payload was lost: when, how much had passed until then, and how long what passed next had to wait. What is *not*
//! here: how a loss is noticed (`half`), and whether a queue or a policer took it (`diagnose::policer`).

/// Losses that are kept apart; beyond that, neighbours become one.
const MOST: usize = 1_024;

/// A loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Drop {
    /// When the lost segment passed, or beside the receiver, the first one beyond it.
    pub(crate) at_ns: u64,
    /// Payload that had passed the place of capture until then, repeats included.
    pub(crate) carried: u64,
    pub(crate) bytes: u64,
    /// It passed the place of capture, and is part of what later losses count as carried.
    pub(crate) is_carried: bool,
}

/// The losses of one direction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Drops {
    list: Vec<Drop>,
    /// How long segments right behind a loss waited beyond the shortest way, in microseconds.
    waits_us: Vec<u32>,
    /// Payload that has passed so far.
    pub(crate) carried: u64,
}

impl Drops {
    /// As new, with the room that the lists had.
    pub(super) fn restart(&mut self) {
        let Self { list, waits_us, carried } = self;
        list.clear();
        waits_us.clear();
        *carried = 0;
    }

    pub(super) fn note(&mut self, drop: Drop) {
        if let Some(last) = self.list.last_mut().filter(|last| last.at_ns == drop.at_ns) {
            last.bytes += drop.bytes;
            return;
        }
        if self.list.len() >= MOST {
            self.halve();
        }
        self.list.push(drop);
    }

    /// Joins neighbours: the earlier time and both amounts.
    fn halve(&mut self) {
        let join = |pair: &[Drop]| Drop { bytes: pair.iter().map(|drop| drop.bytes).sum(), ..pair[0] };
        self.list = self.list.chunks(2).map(join).collect();
    }

    /// What was sent right behind a loss arrived, `wait_ns` later than the shortest way takes.
    pub(super) fn note_wait(&mut self, wait_ns: u64) {
        if self.waits_us.len() < MOST {
            self.waits_us.push(u32::try_from(wait_ns / 1_000).unwrap_or(u32::MAX));
        }
    }

    /// The losses in the order in which they happened, each with what had reached the bottleneck's far side until then.
    pub(crate) fn passed(&self) -> Vec<(u64, u64)> {
        let mut list = self.list.clone();
        list.sort_by_key(|drop| drop.at_ns);
        let mut lost = 0;
        let passed = |drop: Drop| {
            let point = (drop.at_ns, drop.carried.saturating_sub(lost));
            lost += if drop.is_carried { drop.bytes } else { 0 };
            point
        };
        list.into_iter().map(passed).collect()
    }

    /// Payload that was lost.
    pub(crate) fn bytes(&self) -> u64 {
        self.list.iter().map(|drop| drop.bytes).sum()
    }

    /// The median wait behind a loss, in microseconds; `None` where none could be measured.
    pub(crate) fn wait_us(&self) -> Option<u64> {
        let mut waits = self.waits_us.clone();
        let middle = waits.len().checked_sub(1)? / 2;
        Some(u64::from(*waits.select_nth_unstable(middle).1))
    }
}
