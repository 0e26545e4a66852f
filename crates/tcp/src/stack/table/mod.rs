//! The socket table: which entry belongs to which connection, which entries want to send, which have news, and which
//! timer is next. All lists are links inside the entries, so the table needs no memory of its own.
//!
//! Finding a connection and the next timer is in `large`, by a hash and a heap, or, without the feature `large-tables`,
//! in `small`, by looking at one entry after the other.

#[cfg(feature = "large-tables")]
mod large;
#[cfg(not(feature = "large-tables"))]
mod small;

use fullpipe_units::Instant;

#[cfg(feature = "large-tables")]
use self::large::Place;
use super::listen::Listener;
use crate::{
    socket::{Endpoint, Socket},
    time::Stamp,
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
#[repr(C)]
pub struct Entry {
    /// When its next timer expires, as far as that is known.
    due: Stamp,
    #[cfg(feature = "large-tables")]
    place: Place,
    /// Counts the owners of the entry, so that an old name does not reach a new owner.
    pub(super) generation: u16,
    ready_next: u16,
    news_next: u16,
    is_ready: bool,
    has_news: bool,
    /// Whether a connection is on its listener's list to be accepted.
    is_acceptable: bool,
    /// The listener that a connection came from, until it is accepted.
    pub(super) parent: u16,
    /// Next free; next listener; next in the same hash bucket.
    next: u16,
    /// Of a connection, the next to be accepted; of a listener, the first.
    accept_next: u16,
    pub(super) role: Role,
}

/// What an application pays for each socket besides the pool: at most 640 bytes where bytes are counted, and what a model of the
/// path takes.
#[cfg(any(target_pointer_width = "32", test))]
const LARGEST: usize = if cfg!(feature = "bbr") { 808 } else { 640 };
#[cfg(target_pointer_width = "32")]
const _: () = assert!(size_of::<Entry>() <= LARGEST, "a socket takes too much memory");

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
        ready_next: 0,
        is_ready: false,
        news_next: 0,
        has_news: false,
        due: Stamp::new(Instant::ZERO),
        #[cfg(feature = "large-tables")]
        place: Place::FREE,
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
    /// The earliest time in the heap.
    #[cfg(feature = "large-tables")]
    first_due: Stamp,
    #[cfg(feature = "large-tables")]
    heap_len: u16,
    /// Found last.
    #[cfg(feature = "large-tables")]
    last: u16,
    /// Entries from here on were never used.
    untouched: u16,
    free: u16,
    listeners: u16,
    in_use: u16,
}

impl Heads {
    pub(super) const fn new() -> Self {
        Self {
            ready: List::EMPTY,
            news: List::EMPTY,
            #[cfg(feature = "large-tables")]
            first_due: Stamp::new(Instant::FAR_FUTURE),
            #[cfg(feature = "large-tables")]
            heap_len: 0,
            #[cfg(feature = "large-tables")]
            last: NIL,
            untouched: 0,
            free: NIL,
            listeners: NIL,
            in_use: 0,
        }
    }

    /// Whether an entry wants to send.
    pub(super) const fn has_ready(&self) -> bool {
        self.ready.head != NIL
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
    #[cfg_attr(all(target_pointer_width = "32", not(target_family = "wasm")), inline(never))]
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
                self.place_nowhere();
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

    /// Frees an entry, which must be in no bucket.
    pub(super) fn give(&mut self, at: u16) {
        self.forget_due(at);
        let free = self.heads.free;
        let Some(entry) = self.entries.get_mut(usize::from(at)) else { return };
        entry.role = Role::Free;
        entry.generation = entry.generation.wrapping_add(1);
        entry.next = free;
        self.heads.free = at;
        self.heads.in_use -= 1;
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
    #[cfg_attr(not(all(target_pointer_width = "32", not(target_family = "wasm"))), inline)]
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
    #[inline]
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
    #[inline]
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
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, vec::Vec};

    use proptest::prelude::*;

    use super::*;

    /// The same as on a microcontroller, where the build checks it: nothing in an entry is as large as a pointer.
    #[test]
    fn an_entry_stays_small() {
        let size = size_of::<Entry>();
        assert!(size <= LARGEST, "{size}");
    }

    proptest! {
        /// Entries come up in the order of their times, and each with a time comes up.
        #[test]
        fn what_is_due_comes_in_the_order_of_time(steps in prop::collection::vec((0_u16..20, 0_u64..100, any::<bool>()), 0..200)) {
            let mut entries: Vec<Entry> = (0..20).map(|_| Entry::FREE).collect();
            let mut heads = Heads::new();
            let mut table = Table { entries: &mut entries, heads: &mut heads };
            let taken: Vec<u16> = (0..20).filter_map(|_| table.take(Role::Free)).collect();
            prop_assert_eq!(taken.len(), 20);
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
                    // A heap leaves a timer that moves to a later time where it is.
                    *known = if cfg!(feature = "large-tables") { due.min(*known) } else { due };
                }
                prop_assert_eq!(table.next_due(), model.values().min().map_or(Instant::FAR_FUTURE, |at| Instant::from_nanos(*at)));
            }
        }
    }
}
