//! Which connections have a tunnel for one direction only: those of a server that answers past its load balancer (direct server
//! return), or behind a network that filters attacks (GRE from there, and straight to the client). What is *not* here: finding a
//! connection whose directions are carried alike, as nearly all are (`Table`).

use std::collections::HashMap;

use crate::{Key, Slot};

/// The tunnelled connection between two ends.
#[derive(Clone, Copy, Debug)]
struct Way {
    slot: Slot,
    /// Its other direction came otherwise carried.
    is_apart: bool,
}

/// By the ends of tunnelled connections, and of those that turned out to be.
#[derive(Debug, Default)]
pub(super) struct Ways(HashMap<Key, Way>);

impl Ways {
    /// Whether nothing is carried by a tunnel.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The connection that goes on, however what comes is carried.
    pub(super) fn apart(&self, key: &Key) -> Option<Slot> {
        self.0.get(&key.ends()).filter(|way| way.is_apart).map(|way| way.slot)
    }

    /// The tunnelled connection between the ends of a key.
    pub(super) fn tunnelled(&self, key: &Key) -> Option<Slot> {
        self.0.get(&key.ends()).map(|way| way.slot)
    }

    /// Notes a new connection, where a tunnel carries it.
    pub(super) fn note(&mut self, key: &Key, slot: Slot) {
        if key.is_tunnelled() {
            self.0.insert(key.ends(), Way { slot, is_apart: false });
        }
    }

    /// Notes that a connection's directions are not carried alike.
    pub(super) fn join(&mut self, key: &Key, slot: Slot) {
        self.0.insert(key.ends(), Way { slot, is_apart: true });
    }

    /// Forgets a connection that is over.
    pub(super) fn forget(&mut self, key: &Key, slot: Slot) {
        let ends = key.ends();
        if self.0.get(&ends).is_some_and(|way| way.slot == slot) {
            self.0.remove(&ends);
        }
    }
}
