//! Which connections have a tunnel for one direction only: those of a server that answers past its load balancer (direct server
//! return), or behind a network that filters attacks (GRE from there, and straight to the client). What is *not* here: finding a
//! connection whose directions are carried alike, as nearly all are (`Table`).

use crate::{Key, Slot, Table};

/// The tunnelled connection between two ends.
#[derive(Clone, Copy, Debug, Default)]
struct Way {
    slot: Option<Slot>,
    /// Its two directions are known to be carried differently.
    is_apart: bool,
}

/// By the ends of tunnelled connections, and of those that turned out to be.
#[derive(Debug)]
pub(super) struct Ways(Table<Way>);

impl Ways {
    /// None seen yet. `seed` is the follower's.
    pub(super) fn new(seed: u64) -> Self {
        Self(Table::new(seed))
    }

    /// Whether nothing is carried by a tunnel.
    #[inline]
    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The connection between the ends of a key, where its directions are known to be carried differently: whatever carries a segment
    /// between these ends, it is one of this connection.
    pub(super) fn apart(&self, key: &Key) -> Option<Slot> {
        self.find(key).filter(|way| way.is_apart).and_then(|way| way.slot)
    }

    /// The tunnelled connection between the ends of a key.
    pub(super) fn tunnelled(&self, key: &Key) -> Option<Slot> {
        self.find(key).and_then(|way| way.slot)
    }

    fn find(&self, key: &Key) -> Option<&Way> {
        self.0.find(&key.ends()).map(|place| self.0.value(place))
    }

    fn set(&mut self, key: &Key, way: Way) {
        let (place, _) = self.0.find_or_insert(&key.ends());
        *self.0.value_mut(place) = way;
    }

    /// Notes a new connection, where a tunnel carries it.
    pub(super) fn note(&mut self, key: &Key, slot: Slot) {
        if key.is_tunnelled() {
            self.set(key, Way { slot: Some(slot), is_apart: false });
        }
    }

    /// Notes that a connection's directions are not carried alike.
    pub(super) fn join(&mut self, key: &Key, slot: Slot) {
        self.set(key, Way { slot: Some(slot), is_apart: true });
    }

    /// Forgets a connection that is over.
    pub(super) fn forget(&mut self, key: &Key, slot: Slot) {
        let place = self.0.find(&key.ends()).filter(|place| self.0.value(*place).slot == Some(slot));
        if let Some(place) = place {
            self.0.remove(place);
        }
    }
}
