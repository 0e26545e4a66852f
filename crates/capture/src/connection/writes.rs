//! How much an application writes at a time and how often, where that shows. What is *not* here: which segments end a write (`half`).

/// What an application writes at a time: the last segment of what a sender was given is pushed (RFC 9293, section 3.9.1)
/// and seldom full. Those before it may be pushed too, where the sender paces.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Writes {
    begun: u64,
    count: u32,
    /// The size that was seen last, and how often in all.
    size: u64,
    same: u32,
    /// The time from one to the next, likewise.
    every_ns: u64,
    even: u32,
    last_ns: u64,
}

impl Writes {
    /// Fewer say nothing, and of more, all but one in five are of one size.
    const LEAST: u32 = 10;

    /// A timer wakes an application within this part of its period, but where the machine is busy.
    const EVEN_PART: u64 = 8;

    /// A segment that ends a write ends at `at`, and came at `now_ns`.
    pub(super) fn end(&mut self, at: u64, now_ns: u64) {
        let every_ns = now_ns.saturating_sub(self.last_ns);
        self.last_ns = now_ns;
        if every_ns.abs_diff(self.every_ns) <= self.every_ns / Self::EVEN_PART {
            self.even += 1;
        } else if self.even <= self.count / 2 {
            (self.every_ns, self.even) = (every_ns, 1);
        }
        let size = at.saturating_sub(self.begun);
        self.begun = at;
        self.count += 1;
        if size == self.size {
            self.same += 1;
        } else if self.same <= self.count / 2 {
            (self.size, self.same) = (size, 1);
        }
    }

    /// The size of nearly all of them.
    pub(super) const fn size(self) -> Option<u64> {
        if self.count >= Self::LEAST && self.same >= self.count / 5 * 4 { Some(self.size) } else { None }
    }

    /// How long after one of them the next comes, where nearly all are of one size and as far apart.
    pub(super) const fn every_ns(self) -> Option<u64> {
        if self.size().is_some() && self.even >= self.count / 5 * 4 { Some(self.every_ns) } else { None }
    }
}
