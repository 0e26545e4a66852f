//! What each address has going here, so that none takes the places of the others.
//!
//! As sshd's PerSourceMaxStartups and PerSourcePenalties have it: an address has a share of every kind of place, and one
//! whose connections say nothing or nonsense, or have a wrong key, is turned away for a while, for longer the more of them
//! there were. IPv6
//! addresses count by their network of 64 bits, which one host usually has to itself. What is *not* here: the limits on
//! all addresses together.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr, TcpStream},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// What a connection that says nothing until its time is over costs its address.
pub(super) const SILENCE: Duration = Duration::from_secs(10);

/// What a connection that says nonsense, or leaves without a word, costs.
pub(super) const NONSENSE: Duration = Duration::from_secs(1);

/// What a wrong key or password costs (sshd's `authfail`).
pub(super) const WRONG_KEY: Duration = Duration::from_secs(5);

/// An address is turned away once its penalties reach this, and then until they have passed, which takes no longer than the
/// other (sshd's `min` and `max`).
const ENFORCED: Duration = Duration::from_secs(15);
const LONGEST: Duration = Duration::from_secs(600);

/// How many requests the conversations of an address may ask at once, beyond one in [`EACH`]: more than a client of ours asks in
/// a whole test, and little of a processor.
const AT_ONCE: u32 = 200;
const EACH: Duration = Duration::from_millis(10);

/// Addresses whose penalties, and whose requests, are remembered.
const MOST_SOURCES: usize = 10_000;

/// Everybody who is here, by address.
#[derive(Debug, Default)]
pub(super) struct Sources {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// Connections whose cookie has not come yet, oldest first.
    guests: Vec<(u64, IpAddr, Option<TcpStream>)>,
    /// Places taken by kind.
    places: HashMap<(Kind, IpAddr), usize>,
    penalties: HashMap<IpAddr, Penalty>,
    /// Until when the requests so far have their time.
    requests: HashMap<IpAddr, Instant>,
}

/// What an address has against it.
#[derive(Clone, Copy, Debug)]
struct Penalty {
    until: Instant,
    /// There was enough of it once.
    is_enforced: bool,
}

/// A kind of place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    /// Control connections, whatever they want.
    Session,
    /// Tests.
    Test,
    /// Conversations.
    Talk,
}

/// A place; dropping it gives it back.
#[derive(Debug)]
pub(super) struct Place<'a> {
    sources: &'a Sources,
    key: (Kind, IpAddr),
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut inner = self.sources.inner();
        if let Some(count) = inner.places.get_mut(&self.key) {
            *count -= 1;
            if *count == 0 {
                inner.places.remove(&self.key);
            }
        }
    }
}

impl Sources {
    /// A place of this kind, where the address has fewer than `most`.
    pub(super) fn take(&self, kind: Kind, address: IpAddr, most: usize) -> Option<Place<'_>> {
        let key = (kind, block(address));
        let mut inner = self.inner();
        let count = inner.places.entry(key).or_default();
        if *count >= most {
            return None;
        }
        *count += 1;
        Some(Place { sources: self, key })
    }

    /// Whether the address has a place of this kind.
    pub(super) fn has(&self, kind: Kind, address: IpAddr) -> bool {
        self.inner().places.contains_key(&(kind, block(address)))
    }

    /// Notes a connection that has yet to say who it is. Where `most` are here already, one of the address that has most
    /// of them makes room; false where that is this very address.
    pub(super) fn arrive(&self, order: u64, address: IpAddr, stream: &TcpStream, most: usize) -> bool {
        let address = block(address);
        let mut inner = self.inner();
        if inner.guests.len() >= most {
            let mut counts: HashMap<IpAddr, usize> = HashMap::new();
            for (_, source, _) in &inner.guests {
                *counts.entry(*source).or_default() += 1;
            }
            let own = counts.get(&address).copied().unwrap_or(0);
            let Some((crowd, _)) =
                counts.into_iter().filter(|(_, count)| *count > own + 1).max_by_key(|(_, count)| *count)
            else {
                return false;
            };
            if let Some(at) = inner.guests.iter().position(|(_, source, _)| *source == crowd) {
                let (_, _, stream) = inner.guests.remove(at);
                // Its thread finds the connection closed and goes.
                drop(stream.map(|stream| stream.shutdown(std::net::Shutdown::Both)));
            }
        }
        // Without a second descriptor it can't be asked to make room, and its own deadline ends it.
        inner.guests.push((order, address, stream.try_clone().ok()));
        true
    }

    /// The connection has said who it is, or is gone.
    pub(super) fn known(&self, order: u64) {
        self.inner().guests.retain(|(own, _, _)| *own != order);
    }

    /// Counts something against an address.
    pub(super) fn penalise(&self, address: IpAddr, penalty: Duration, now: Instant) {
        // Whoever is on this machine has other ways.
        if address.is_loopback() {
            return;
        }
        let mut inner = self.inner();
        if inner.penalties.len() >= MOST_SOURCES {
            inner.penalties.retain(|_, penalty| penalty.until > now);
        }
        if inner.penalties.len() >= MOST_SOURCES {
            return;
        }
        let source = inner.penalties.entry(block(address)).or_insert(Penalty { until: now, is_enforced: false });
        source.is_enforced &= source.until > now;
        source.until = (source.until.max(now) + penalty).min(now + LONGEST);
        source.is_enforced |= source.until.saturating_duration_since(now) >= ENFORCED;
    }

    /// Whether an address is turned away for what it did.
    pub(super) fn is_penalised(&self, address: IpAddr, now: Instant) -> bool {
        let inner = self.inner();
        inner.penalties.get(&block(address)).is_some_and(|penalty| penalty.is_enforced && penalty.until > now)
    }

    /// How long a request that comes now waits: whoever asks without end would cost a processor.
    pub(super) fn pause(&self, address: IpAddr, now: Instant) -> Duration {
        let mut inner = self.inner();
        if inner.requests.len() >= MOST_SOURCES {
            inner.requests.retain(|_, until| *until > now);
        }
        let until = inner.requests.entry(block(address)).or_insert(now);
        *until = (*until).max(now) + EACH;
        until.saturating_duration_since(now).saturating_sub(EACH * AT_ONCE)
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        // Nothing is left half done under this lock.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What counts as one address.
fn block(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    fn address(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    #[test]
    fn an_address_has_a_share_and_gives_it_back() {
        let sources = Sources::default();
        let places: Vec<_> = (0..4).map(|_| sources.take(Kind::Talk, address(1), 4)).collect();
        assert!(places.iter().all(Option::is_some));
        assert!(sources.take(Kind::Talk, address(1), 4).is_none());
        assert!(sources.take(Kind::Test, address(1), 4).is_some(), "another kind");
        assert!(sources.take(Kind::Talk, address(2), 4).is_some(), "another address");
        assert!(sources.has(Kind::Talk, address(1)) && !sources.has(Kind::Talk, address(2)));
        drop(places);
        assert!(!sources.has(Kind::Talk, address(1)));
        assert!(sources.take(Kind::Talk, address(1), 4).is_some());
        for kind in [Kind::Session, Kind::Test] {
            let _one = sources.take(kind, address(3), 1).expect("the first");
            assert!(sources.take(kind, address(3), 1).is_none(), "{kind:?}");
        }
        let near: [IpAddr; 2] = ["2001:db8::1", "2001:db8::2"].map(|text| text.parse().expect("an address"));
        let _one = sources.take(Kind::Talk, near[0], 1).expect("the first");
        assert!(sources.take(Kind::Talk, near[1], 1).is_none(), "one network of 64 bits");
    }

    #[test]
    fn silent_connections_of_one_address_make_room_for_another() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
        let connect = || TcpStream::connect(listener.local_addr().expect("an address")).expect("connected");
        let sources = Sources::default();
        let flood: Vec<_> = (0..8).map(|order| (order, connect())).collect();
        assert!(flood.iter().all(|(order, stream)| sources.arrive(*order, address(1), stream, 8)));
        assert!(!sources.arrive(8, address(1), &connect(), 8), "the crowd itself waits");
        assert!(sources.arrive(9, address(2), &connect(), 8), "another address comes in");
        let mut one = [0u8; 1];
        let closed = std::io::Read::read(&mut (&flood[0].1), &mut one);
        assert!(closed.is_ok_and(|count| count == 0), "the oldest of the crowd went");
        for order in 0..10 {
            sources.known(order);
        }
        assert!(sources.arrive(10, address(1), &connect(), 1));
    }

    #[test]
    fn whoever_asks_without_end_waits_and_another_address_does_not() {
        let (sources, now) = (Sources::default(), Instant::now());
        let pause = |last, now| sources.pause(address(last), now);
        assert!((0..AT_ONCE).all(|_| pause(1, now).is_zero()));
        assert_eq!((pause(1, now), pause(1, now)), (EACH, EACH * 2));
        assert!(pause(2, now).is_zero(), "another address");
        assert_eq!(pause(1, now + EACH * 2), EACH, "two had their time");
        let rested = now + EACH * AT_ONCE * 3;
        assert!((0..AT_ONCE).all(|_| pause(1, rested).is_zero()), "and no more than that after any rest");
        assert_eq!(pause(1, rested), EACH);
        for number in 0..u32::try_from(MOST_SOURCES).expect("a few") * 2 {
            sources.pause(IpAddr::from(number.to_be_bytes()), rested + EACH * number);
        }
        assert!(sources.inner().requests.len() <= MOST_SOURCES, "those whose time is over are forgotten");
    }

    #[test]
    fn penalties_add_up_are_enforced_and_pass() {
        let (sources, now) = (Sources::default(), Instant::now());
        sources.penalise(address(1), SILENCE, now);
        assert!(!sources.is_penalised(address(1), now), "once may happen to anybody");
        sources.penalise(address(1), SILENCE, now);
        assert!(sources.is_penalised(address(1), now) && !sources.is_penalised(address(2), now));
        let (nearly, over) = (SILENCE + SILENCE / 2, SILENCE * 2);
        assert!(sources.is_penalised(address(1), now + nearly), "all of it has to pass");
        assert!(!sources.is_penalised(address(1), now + over));
        sources.penalise(address(1), NONSENSE, now + over);
        assert!(!sources.is_penalised(address(1), now + over), "it begins anew");
        for _ in 0..1_000 {
            sources.penalise(address(1), SILENCE, now + over);
        }
        assert!(!sources.is_penalised(address(1), now + over + LONGEST), "never for longer");
        let here = IpAddr::from([127, 0, 0, 1]);
        (0..100).for_each(|_| sources.penalise(here, SILENCE, now));
        assert!(!sources.is_penalised(here, now));
    }
}
