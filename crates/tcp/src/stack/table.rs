//! The socket table: which entry belongs to which connection, which entries want to send, which have news, and which
//! timer is next. All lists are links inside the entries, so the table needs no memory of its own.

use fullpipe_units::Instant;

use super::listen::Listener;
use crate::{
    socket::{Endpoint, Socket, Tuple},
    wire::ip,
};

/// No entry.
pub(super) const NIL: u16 = u16::MAX;

/// What an entry is.
#[derive(Debug)]
#[repr(u8)]
#[expect(clippy::large_enum_variant, reason = "entries are the sockets' storage: they are as large as a socket")]
pub(super) enum Role {
    Free,
    Connection(Socket),
    Listener(Listener),
}

/// One entry of the table: room for a connection or a listener.
#[derive(Debug)]
pub struct Entry {
    pub(super) role: Role,
    /// Counts the owners of the entry, so that an old name does not reach a new owner.
    pub(super) generation: u16,
    /// The listener that a connection came from, until it is accepted.
    pub(super) parent: u16,
    /// Next in the same hash bucket; next free; next listener.
    next: u16,
    /// Of a connection, the next to be accepted; of a listener, the first.
    accept_next: u16,
    /// Whether a connection is on its listener's list to be accepted.
    is_acceptable: bool,
    /// The first connection in the bucket of this index.
    bucket: u16,
    ready_next: u16,
    is_ready: bool,
    news_next: u16,
    has_news: bool,
    /// The entry at this index of the timer heap.
    heap_item: u16,
    /// This entry's place in the heap.
    heap_place: u16,
    due: Instant,
}

impl Entry {
    /// A free entry. It is all zeros, so that a table that stands in a static takes no room in a program's image; the
    /// table sets the links when the first entry is [taken](Table::take).
    pub const FREE: Self = Self {
        role: Role::Free,
        generation: 0,
        parent: 0,
        next: 0,
        accept_next: 0,
        is_acceptable: false,
        bucket: 0,
        ready_next: 0,
        is_ready: false,
        news_next: 0,
        has_news: false,
        heap_item: 0,
        heap_place: 0,
        due: Instant::ZERO,
    };
}

/// A first-in first-out list of entries.
#[derive(Clone, Copy, Debug)]
pub(super) struct List {
    head: u16,
    tail: u16,
}

impl List {
    const EMPTY: Self = Self { head: NIL, tail: NIL };
}

/// The heads of the table's lists.
#[derive(Debug)]
pub(super) struct Heads {
    ready: List,
    news: List,
    heap_len: u16,
    /// Entries from here on were never used.
    untouched: u16,
    free: u16,
    listeners: u16,
    in_use: u16,
}

impl Heads {
    pub(super) const fn new() -> Self {
        Self { ready: List::EMPTY, news: List::EMPTY, heap_len: 0, untouched: 0, free: NIL, listeners: NIL, in_use: 0 }
    }

    /// The number of entries that are not free.
    pub(super) const fn in_use(&self) -> u16 {
        self.in_use
    }
}

/// The table for the length of a call.
#[derive(Debug)]
pub(super) struct Table<'a> {
    pub(super) entries: &'a mut [Entry],
    pub(super) heads: &'a mut Heads,
}

impl Table<'_> {
    #[cfg_attr(target_pointer_width = "32", inline(never))]
    pub(super) fn socket(&mut self, at: u16) -> Option<&mut Socket> {
        match self.entries.get_mut(usize::from(at))?.role {
            Role::Connection(ref mut socket) => Some(socket),
            _ => None,
        }
    }

    pub(super) fn listener(&mut self, at: u16) -> Option<&mut Listener> {
        match self.entries.get_mut(usize::from(at))?.role {
            Role::Listener(ref mut listener) => Some(listener),
            _ => None,
        }
    }

    pub(super) fn entry(&mut self, at: u16) -> Option<&mut Entry> {
        self.entries.get_mut(usize::from(at))
    }

    /// Whether an entry is free.
    pub(super) const fn has_free(&self) -> bool {
        (self.heads.in_use as usize) < self.entries.len()
    }

    /// Takes a free entry.
    pub(super) fn take(&mut self, role: Role) -> Option<u16> {
        let at = if self.heads.free == NIL {
            let at = self.heads.untouched;
            if usize::from(at) >= self.entries.len().min(usize::from(NIL)) {
                return None;
            }
            if at == 0 {
                self.unlink_all();
            }
            self.heads.untouched += 1;
            at
        } else {
            self.heads.free
        };
        let entry = self.entries.get_mut(usize::from(at))?;
        if self.heads.free == at {
            self.heads.free = entry.next;
        }
        (entry.next, entry.accept_next, entry.is_acceptable) = (NIL, NIL, false);
        entry.parent = NIL;
        entry.role = role;
        self.heads.in_use += 1;
        Some(at)
    }

    /// Before its first use: no bucket has a connection, and no entry is in the heap.
    fn unlink_all(&mut self) {
        for entry in &mut *self.entries {
            (entry.bucket, entry.heap_place) = (NIL, NIL);
        }
    }

    /// Frees an entry, which must be in no bucket.
    pub(super) fn give(&mut self, at: u16) {
        self.heap_remove(at);
        let free = self.heads.free;
        let Some(entry) = self.entries.get_mut(usize::from(at)) else { return };
        entry.role = Role::Free;
        entry.generation = entry.generation.wrapping_add(1);
        entry.next = free;
        self.heads.free = at;
        self.heads.in_use -= 1;
    }

    fn bucket_of(&self, hash: u64) -> usize {
        // The number of buckets is that of the entries; multiplying spreads as a remainder would, without dividing.
        (((hash >> 32) * self.entries.len() as u64) >> 32) as usize
    }

    /// Puts a connection into its bucket.
    pub(super) fn link(&mut self, at: u16, hash: u64) {
        let bucket = self.bucket_of(hash);
        let first = core::mem::replace(&mut self.entries[bucket].bucket, at);
        self.entries[usize::from(at)].next = first;
    }

    /// Takes a connection out of its bucket.
    pub(super) fn unlink(&mut self, at: u16, hash: u64) {
        let bucket = self.bucket_of(hash);
        let next = self.entries[usize::from(at)].next;
        if self.entries[bucket].bucket == at {
            self.entries[bucket].bucket = next;
            return;
        }
        let mut before = self.entries[bucket].bucket;
        while before != NIL {
            let entry = &mut self.entries[usize::from(before)];
            if entry.next == at {
                entry.next = next;
                return;
            }
            before = entry.next;
        }
    }

    /// The connection between two ends.
    pub(super) fn find(&self, tuple: &Tuple, hash: u64) -> Option<u16> {
        if self.heads.untouched == 0 {
            return None;
        }
        let mut at = self.entries.get(self.bucket_of(hash))?.bucket;
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

    /// Puts a listener on the list of listeners.
    pub(super) fn link_listener(&mut self, at: u16) {
        let first = core::mem::replace(&mut self.heads.listeners, at);
        self.entries[usize::from(at)].next = first;
    }

    /// Takes a listener off that list.
    pub(super) fn unlink_listener(&mut self, at: u16) {
        let next = self.entries[usize::from(at)].next;
        if self.heads.listeners == at {
            self.heads.listeners = next;
            return;
        }
        let mut before = self.heads.listeners;
        while let Some(entry) = self.entries.get_mut(usize::from(before)) {
            if entry.next == at {
                entry.next = next;
                return;
            }
            before = entry.next;
        }
    }

    /// The listener for an address and port; one for the very address before one for all.
    pub(super) fn find_listener(&self, local: Endpoint) -> Option<u16> {
        let (mut for_all, mut at) = (None, self.heads.listeners);
        while let Some(entry) = self.entries.get(usize::from(at)) {
            if let Role::Listener(listener) = &entry.role
                && listener.port == local.port
            {
                match listener.addr {
                    Some(addr) if ip::is_same(addr, local.addr) => return Some(at),
                    None => for_all = Some(at),
                    Some(_) => {}
                }
            }
            at = entry.next;
        }
        for_all
    }

    /// Puts a connection behind those that its listener has to be accepted, once.
    pub(super) fn push_acceptable(&mut self, child: u16) {
        let entry = &mut self.entries[usize::from(child)];
        if core::mem::replace(&mut entry.is_acceptable, true) {
            return;
        }
        // The list is as long as a backlog at the most.
        let mut before = entry.parent;
        while let Some(entry) = self.entries.get_mut(usize::from(before)) {
            if entry.accept_next == NIL {
                entry.accept_next = child;
                return;
            }
            before = entry.accept_next;
        }
    }

    /// Whether listener `at` has a connection to be accepted.
    pub(super) fn has_acceptable(&mut self, at: u16) -> bool {
        self.entry(at).is_some_and(|entry| entry.accept_next != NIL)
    }

    /// Takes the first connection that listener `at` has to be accepted.
    pub(super) fn pop_acceptable(&mut self, at: u16) -> Option<u16> {
        let child = self.entries.get(usize::from(at))?.accept_next;
        let next = core::mem::replace(&mut self.entries.get_mut(usize::from(child))?.accept_next, NIL);
        self.entries[usize::from(child)].is_acceptable = false;
        self.entries[usize::from(at)].accept_next = next;
        Some(child)
    }

    /// The listener of a connection is no more.
    pub(super) fn forget_parent(&mut self, child: u16) {
        self.remove_acceptable(child);
        self.entries[usize::from(child)].parent = NIL;
    }

    /// Takes a connection that has ended off its listener's list.
    pub(super) fn remove_acceptable(&mut self, child: u16) {
        let entry = &mut self.entries[usize::from(child)];
        if !core::mem::replace(&mut entry.is_acceptable, false) {
            return;
        }
        let next = core::mem::replace(&mut entry.accept_next, NIL);
        let mut before = entry.parent;
        while let Some(entry) = self.entries.get_mut(usize::from(before)) {
            if entry.accept_next == child {
                entry.accept_next = next;
                return;
            }
            before = entry.accept_next;
        }
    }

    /// Marks an entry as wanting to send.
    pub(super) fn make_ready(&mut self, at: u16) {
        let Some(entry) = self.entries.get_mut(usize::from(at)) else { return };
        if core::mem::replace(&mut entry.is_ready, true) {
            return;
        }
        entry.ready_next = NIL;
        let tail = core::mem::replace(&mut self.heads.ready.tail, at);
        match self.entries.get_mut(usize::from(tail)) {
            Some(last) => last.ready_next = at,
            None => self.heads.ready.head = at,
        }
    }

    /// Takes the entry off the list that has waited longest.
    pub(super) fn pop_ready(&mut self) -> Option<u16> {
        let at = self.heads.ready.head;
        let entry = self.entries.get_mut(usize::from(at))?;
        entry.is_ready = false;
        self.heads.ready.head = entry.ready_next;
        if self.heads.ready.head == NIL {
            self.heads.ready.tail = NIL;
        }
        Some(at)
    }

    /// Marks an entry as having something to tell the application.
    pub(super) fn add_news(&mut self, at: u16) {
        let Some(entry) = self.entries.get_mut(usize::from(at)) else { return };
        if core::mem::replace(&mut entry.has_news, true) {
            return;
        }
        entry.news_next = NIL;
        let tail = core::mem::replace(&mut self.heads.news.tail, at);
        match self.entries.get_mut(usize::from(tail)) {
            Some(last) => last.news_next = at,
            None => self.heads.news.head = at,
        }
    }

    pub(super) fn pop_news(&mut self) -> Option<u16> {
        let at = self.heads.news.head;
        let entry = self.entries.get_mut(usize::from(at))?;
        entry.has_news = false;
        self.heads.news.head = entry.news_next;
        if self.heads.news.head == NIL {
            self.heads.news.tail = NIL;
        }
        Some(at)
    }

    /// The earliest time in the heap.
    pub(super) fn next_due(&self) -> Instant {
        if self.heads.heap_len == 0 { Instant::FAR_FUTURE } else { self.due_at(0) }
    }

    /// The entry whose time has come.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<u16> {
        if self.next_due() > now {
            return None;
        }
        let at = self.entries[0].heap_item;
        self.heap_remove(at);
        Some(at)
    }

    fn due_at(&self, place: u16) -> Instant {
        self.entries[usize::from(self.entries[usize::from(place)].heap_item)].due
    }

    /// Tells when an entry's next timer expires. One that moves to a later time is left where it is until it comes
    /// up: most timers are restarted long before they expire.
    pub(super) fn schedule(&mut self, at: u16, due: Instant) {
        let entry = &mut self.entries[usize::from(at)];
        if entry.heap_place == NIL {
            if due == Instant::FAR_FUTURE {
                return;
            }
            let place = self.heads.heap_len;
            self.heads.heap_len += 1;
            entry.due = due;
            entry.heap_place = place;
            self.entries[usize::from(place)].heap_item = at;
            self.sift_up(place);
        } else if due < entry.due {
            entry.due = due;
            let place = entry.heap_place;
            self.sift_up(place);
        }
    }

    fn heap_remove(&mut self, at: u16) {
        let place = core::mem::replace(&mut self.entries[usize::from(at)].heap_place, NIL);
        if place == NIL {
            return;
        }
        self.heads.heap_len -= 1;
        let last = self.heads.heap_len;
        if place == last {
            return;
        }
        let moved = self.entries[usize::from(last)].heap_item;
        self.put(place, moved);
        self.sift_up(place);
        self.sift_down(self.entries[usize::from(moved)].heap_place);
    }

    fn put(&mut self, place: u16, at: u16) {
        self.entries[usize::from(place)].heap_item = at;
        self.entries[usize::from(at)].heap_place = place;
    }

    fn swap(&mut self, a: u16, b: u16) {
        let (in_a, in_b) = (self.entries[usize::from(a)].heap_item, self.entries[usize::from(b)].heap_item);
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

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, vec::Vec};

    use proptest::prelude::*;

    use super::*;

    /// What an application pays for each socket besides the pool. The aim is 640 bytes.
    #[test]
    fn an_entry_stays_small() {
        let size = size_of::<Entry>();
        assert!(size <= 776, "{size}");
    }

    proptest! {
        /// Entries come up in the order of their times, and each with a time comes up.
        #[test]
        fn the_heap_gives_the_earliest(steps in prop::collection::vec((0_u16..20, 0_u64..100, any::<bool>()), 0..200)) {
            let mut entries: Vec<Entry> = (0..20).map(|_| Entry::FREE).collect();
            let mut heads = Heads::new();
            let mut table = Table { entries: &mut entries, heads: &mut heads };
            table.unlink_all();
            let mut model: BTreeMap<u16, u64> = BTreeMap::new();
            for (at, due, pop) in steps {
                if pop {
                    let at = table.pop_due(Instant::from_nanos(due));
                    let least = model.values().min().copied();
                    match at {
                        Some(at) => prop_assert_eq!(model.remove(&at), least),
                        None => prop_assert!(least.is_none_or(|least| least > due)),
                    }
                } else {
                    table.schedule(at, Instant::from_nanos(due));
                    let known = model.entry(at).or_insert(due);
                    *known = due.min(*known);
                }
                prop_assert_eq!(table.next_due(), model.values().min().map_or(Instant::FAR_FUTURE, |at| Instant::from_nanos(*at)));
            }
        }
    }
}
