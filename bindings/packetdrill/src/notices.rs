//! What Linux tells about writes with `MSG_ZEROCOPY`: which of them, by number, have been acknowledged. The data is
//! copied here all the same, which is reported too, as Linux does on a loopback or where it had to.

use std::collections::VecDeque;

/// The writes of one socket.
#[derive(Clone, Debug, Default)]
pub(crate) struct Notices {
    /// The number of the next write.
    next: u32,
    /// Where in the stream the writes end that were not reported, the oldest first.
    ends: VecDeque<u64>,
}

impl Notices {
    /// A write ended at this place of the stream.
    pub(crate) fn wrote(&mut self, end: u64) {
        self.ends.push_back(end);
        self.next = self.next.wrapping_add(1);
    }

    fn done(&self, acked: u64) -> usize {
        self.ends.iter().take_while(|end| **end <= acked).count()
    }

    /// Whether there is something to tell.
    pub(crate) fn has_any(&self, acked: u64) -> bool {
        self.done(acked) > 0
    }

    /// The first and the last of the writes that are done and not reported.
    pub(crate) fn take(&mut self, acked: u64) -> Option<(u32, u32)> {
        let done = self.done(acked);
        let first = self.next.wrapping_sub(self.ends.len() as u32);
        self.ends.drain(..done);
        let last = first.wrapping_add(done as u32).wrapping_sub(1);
        (done > 0).then_some((first, last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_are_told_of_once_and_together() {
        let mut notices = Notices::default();
        [10, 20, 30].into_iter().for_each(|end| notices.wrote(end));
        assert_eq!(notices.take(9), None);
        assert_eq!((notices.take(25), notices.take(25)), (Some((0, 1)), None));
        assert!(!notices.has_any(29) && notices.has_any(30));
        assert_eq!(notices.take(30), Some((2, 2)));
    }
}
