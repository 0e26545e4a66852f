//! A table of few entries, which are looked at one after the other: less code than buckets and a heap.

use fullpipe_units::Instant;

use super::{Role, Table};
#[cfg(feature = "platforms")]
use crate::socket::Endpoint;
use crate::{
    socket::{State, Tuple},
    time::Stamp,
};

#[expect(clippy::unused_self, reason = "the calls are those of a table of many entries")]
impl Table<'_> {
    /// Before its first use: no entry has a timer.
    pub(super) fn place_nowhere(&mut self) {
        for entry in &mut *self.entries {
            entry.due = Stamp::new(Instant::FAR_FUTURE);
        }
    }

    pub(in crate::stack) const fn link(&self, _: u16, _: u64) {}

    pub(in crate::stack) const fn unlink(&self, _: u16, _: u64) {}

    /// A connection that is over, and that an application still holds, makes room for another between the same ends.
    pub(in crate::stack) const fn replace(&self, _: u16, _: u64) {}

    /// The connection between two ends.
    pub(in crate::stack) fn find(&self, tuple: &Tuple, _: u64) -> Option<u16> {
        // One that is over may have been replaced already.
        let is_it = |role: &Role| matches!(role, Role::Connection(socket) if socket.tuple == *tuple && socket.state() != State::Closed);
        self.entries.iter().position(|entry| is_it(&entry.role)).map(|at| at as u16)
    }

    #[cfg(feature = "platforms")]
    pub(in crate::stack) const fn same_as_last(&self, _: &Endpoint, _: &Endpoint) -> Option<u16> {
        None
    }

    pub(in crate::stack) fn find_again(&self, tuple: &Tuple, _: impl FnOnce() -> u64) -> Option<u16> {
        self.find(tuple, 0)
    }

    /// The earliest time.
    pub(in crate::stack) fn next_due(&self) -> Instant {
        self.earliest().1
    }

    /// The entry whose time has come.
    pub(in crate::stack) fn pop_due(&mut self, now: Instant) -> Option<u16> {
        let (at, due) = self.earliest();
        if due > now {
            return None;
        }
        self.forget_due(at);
        Some(at)
    }

    fn earliest(&self) -> (u16, Instant) {
        let mut earliest = (0, Instant::FAR_FUTURE);
        // Before the first use no time means anything.
        for at in 0..self.heads.untouched {
            let due = self.entries[usize::from(at)].due.instant();
            if due < earliest.1 {
                earliest = (at, due);
            }
        }
        earliest
    }

    /// Tells when an entry's next timer expires.
    pub(in crate::stack) fn schedule(&mut self, at: u16, due: Instant) {
        self.entries[usize::from(at)].due = Stamp::new(due);
    }

    /// An entry has no timer any more.
    pub(super) fn forget_due(&mut self, at: u16) {
        self.schedule(at, Instant::FAR_FUTURE);
    }
}
