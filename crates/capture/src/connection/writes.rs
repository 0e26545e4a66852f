//! How much an application writes at a time, where that shows. What is *not* here: which segments end a write (`half`).

/// What an application writes at a time: the last segment of what a sender was given is pushed (RFC 9293, section 3.9.1)
/// and seldom full. Those before it may be pushed too, where the sender paces.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Writes {
    begun: u64,
    count: u32,
    /// The size that was seen last, and how often in all.
    size: u64,
    same: u32,
}

impl Writes {
    /// Fewer say nothing, and of more, all but one in five are of one size.
    const LEAST: u32 = 10;

    /// A segment that ends a write ends at `at`.
    pub(super) fn end(&mut self, at: u64) {
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
}
