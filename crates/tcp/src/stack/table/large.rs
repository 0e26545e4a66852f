//! A table of many entries: connections are in hash buckets, timers in a heap, both made of links in the entries.

use fullpipe_units::Instant;

use super::{Entry, NIL, Role, Table};
#[cfg(feature = "platforms")]
use crate::socket::Endpoint;
use crate::{socket::Tuple, time::Stamp};

/// An entry's part in the buckets and the heap.
#[derive(Debug)]
pub(super) struct Place {
    /// The first connection in the bucket of this index.
    bucket: u16,
    /// The entry at this index of the heap.
    heap_item: u16,
    /// This entry's place in the heap.
    heap_place: u16,
}

impl Place {
    pub(super) const FREE: Self = Self { bucket: 0, heap_item: 0, heap_place: 0 };
}

impl Table<'_> {
    /// Before its first use: no bucket has a connection, and no entry is in the heap.
    pub(super) fn place_nowhere(&mut self) {
        for entry in &mut *self.entries {
            (entry.place.bucket, entry.place.heap_place) = (NIL, NIL);
            entry.due = Stamp::new(Instant::FAR_FUTURE);
        }
    }

    fn bucket_of(&self, hash: u64) -> usize {
        // The number of buckets is that of the entries; multiplying spreads as a remainder would, without dividing.
        (((hash >> 32) * self.entries.len() as u64) >> 32) as usize
    }

    /// Puts a connection into its bucket.
    pub(in crate::stack) fn link(&mut self, at: u16, hash: u64) {
        let bucket = self.bucket_of(hash);
        let first = core::mem::replace(&mut self.entries[bucket].place.bucket, at);
        self.entries[usize::from(at)].next = first;
    }

    /// Takes a connection out of its bucket.
    pub(in crate::stack) fn unlink(&mut self, at: u16, hash: u64) {
        let bucket = self.bucket_of(hash);
        let next = self.entries[usize::from(at)].next;
        if self.entries[bucket].place.bucket == at {
            self.entries[bucket].place.bucket = next;
            return;
        }
        let mut before = self.entries[bucket].place.bucket;
        while before != NIL {
            let entry = &mut self.entries[usize::from(before)];
            if entry.next == at {
                entry.next = next;
                return;
            }
            before = entry.next;
        }
    }

    /// A connection that is over, and that an application still holds, makes room for another between the same ends.
    pub(in crate::stack) fn replace(&mut self, at: u16, hash: u64) {
        self.unlink(at, hash);
        if self.heads.last == at {
            self.heads.last = NIL;
        }
    }

    /// The connection between two ends.
    pub(in crate::stack) fn find(&self, tuple: &Tuple, hash: u64) -> Option<u16> {
        if self.heads.untouched == 0 {
            return None;
        }
        let mut at = self.entries.get(self.bucket_of(hash))?.place.bucket;
        while at != NIL {
            let entry = self.entries.get(usize::from(at))?;
            if let Role::Connection(socket) = &entry.role
                && socket.tuple == *tuple
            {
                return Some(at);
            }
            at = entry.next;
        }
        None
    }

    /// The connection found last, if it is the one between these ends and does not go over UDP.
    #[cfg(feature = "platforms")]
    #[inline]
    pub(in crate::stack) fn same_as_last(&self, local: &Endpoint, remote: &Endpoint) -> Option<u16> {
        let last = self.heads.last;
        let Role::Connection(socket) = &self.entries.get(usize::from(last))?.role else { return None };
        socket.tuple.is_between(local, remote).then_some(last)
    }

    /// The connection between two ends, where most packets are for the one that the packet before was for; hashing is saved then.
    pub(in crate::stack) fn find_again(&mut self, tuple: &Tuple, hash: impl FnOnce() -> u64) -> Option<u16> {
        let last = self.heads.last;
        if let Some(Entry { role: Role::Connection(socket), .. }) = self.entries.get(usize::from(last))
            && socket.tuple == *tuple
        {
            return Some(last);
        }
        let at = self.find(tuple, hash())?;
        self.heads.last = at;
        Some(at)
    }

    /// The earliest time in the heap.
    #[inline]
    pub(in crate::stack) fn next_due(&self) -> Instant {
        self.heads.first_due.instant()
    }

    /// The heap's first item may be another one.
    #[inline]
    fn note_first(&mut self) {
        let first = if self.heads.heap_len == 0 { Instant::FAR_FUTURE } else { self.due_at(0) };
        self.heads.first_due = Stamp::new(first);
    }

    /// The entry whose time has come.
    pub(in crate::stack) fn pop_due(&mut self, now: Instant) -> Option<u16> {
        if self.next_due() > now {
            return None;
        }
        let at = self.entries[0].place.heap_item;
        self.forget_due(at);
        Some(at)
    }

    #[inline]
    fn due_at(&self, place: u16) -> Instant {
        self.entries[usize::from(self.entries[usize::from(place)].place.heap_item)].due.instant()
    }

    /// Tells when an entry's next timer expires. One that moves to a later time is left where it is until it comes
    /// up: most timers are restarted long before they expire.
    #[inline]
    pub(in crate::stack) fn schedule(&mut self, at: u16, due: Instant) {
        if due < self.entries[usize::from(at)].due.instant() {
            self.schedule_sooner(at, due);
        }
    }

    /// The same, where it is not in the heap, or comes up later than that. Whatever is not there has a time far in the future.
    #[inline(never)]
    fn schedule_sooner(&mut self, at: u16, due: Instant) {
        let entry = &mut self.entries[usize::from(at)];
        entry.due = Stamp::new(due);
        if entry.place.heap_place == NIL {
            entry.place.heap_place = self.heads.heap_len;
            self.entries[usize::from(self.heads.heap_len)].place.heap_item = at;
            self.heads.heap_len += 1;
        }
        self.sift_up(self.entries[usize::from(at)].place.heap_place);
        self.note_first();
    }

    /// An entry has no timer any more.
    pub(super) fn forget_due(&mut self, at: u16) {
        let place = core::mem::replace(&mut self.entries[usize::from(at)].place.heap_place, NIL);
        if place == NIL {
            return;
        }
        self.entries[usize::from(at)].due = Stamp::new(Instant::FAR_FUTURE);
        self.heads.heap_len -= 1;
        let last = self.heads.heap_len;
        if place < last {
            let moved = self.entries[usize::from(last)].place.heap_item;
            self.put(place, moved);
            self.sift_up(place);
            self.sift_down(self.entries[usize::from(moved)].place.heap_place);
        }
        self.note_first();
    }

    fn put(&mut self, place: u16, at: u16) {
        self.entries[usize::from(place)].place.heap_item = at;
        self.entries[usize::from(at)].place.heap_place = place;
    }

    fn swap(&mut self, a: u16, b: u16) {
        let (in_a, in_b) = (self.entries[usize::from(a)].place.heap_item, self.entries[usize::from(b)].place.heap_item);
        self.put(a, in_b);
        self.put(b, in_a);
    }

    fn sift_up(&mut self, mut place: u16) {
        while place > 0 && self.due_at(place) < self.due_at((place - 1) / 2) {
            self.swap(place, (place - 1) / 2);
            place = (place - 1) / 2;
        }
    }

    fn sift_down(&mut self, mut place: u16) {
        loop {
            let left = 2 * place + 1;
            let mut least = place;
            for child in [left, left + 1] {
                if child < self.heads.heap_len && self.due_at(child) < self.due_at(least) {
                    least = child;
                }
            }
            if least == place {
                return;
            }
            self.swap(place, least);
            place = least;
        }
    }
}
