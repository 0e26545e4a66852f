//! The neighbours of a link: a fixed number, each in a state of RFC 4861, section 7.3.2, which IPv4's are as well.
//!
//! What protects against forged claims: an address that works is replaced only by the answer to a question of this host's
//! own; anything else that contradicts it makes the neighbour itself be asked. What nobody asked for takes free places only.

use core::net::IpAddr;

use fullpipe_units::Instant;

use crate::{time, wire::ethernet::Mac};

/// RFC 4861, section 10: RETRANS_TIMER; RFC 1122, section 2.3.2.1: at most one question a second.
const RETRY_US: u32 = 1_000_000;
/// MAX_MULTICAST_SOLICIT and MAX_UNICAST_SOLICIT.
const TRIES: u8 = 3;
/// REACHABLE_TIME.
const REACHABLE_US: u32 = 30_000_000;
/// DELAY_FIRST_PROBE_TIME.
const DELAY_US: u32 = 5_000_000;

/// What is known of a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Free,
    /// Asked for; no hardware address yet.
    Incomplete,
    /// It answered of late.
    Reachable,
    /// It answered once, or was heard of.
    Stale,
    /// Used while stale: asked soon, unless it gives a sign.
    Delay,
    /// Being asked itself.
    Probe,
}

/// What a claim to a hardware address is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hint {
    /// It may answer a question of this host's.
    Answer {
        /// It may replace another hardware address (RFC 4861, section 4.4, the override flag).
        replaces: bool,
    },
    /// Its owner asks for this host.
    Question,
    /// It was announced to everybody.
    Rumour,
}

/// Where a neighbour is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// There.
    At(Mac),
    /// It is being looked for.
    Asked,
    /// All places are taken by neighbours that are being looked for.
    Full,
}

#[derive(Clone, Copy, Debug)]
struct Neighbour<const HELD: usize> {
    addr: IpAddr,
    mac: Mac,
    state: State,
    tries: u8,
    /// A question wants to leave.
    asks: bool,
    /// When the state ends.
    due: Instant,
    /// When a packet was last sent there.
    used: Instant,
    held: [u8; HELD],
    held_len: u16,
}

impl<const HELD: usize> Neighbour<HELD> {
    const FREE: Self = Self {
        addr: IpAddr::V4(core::net::Ipv4Addr::UNSPECIFIED),
        mac: Mac([0; 6]),
        state: State::Free,
        tries: 0,
        asks: false,
        due: Instant::FAR_FUTURE,
        used: Instant::ZERO,
        held: [0; HELD],
        held_len: 0,
    };

    fn ask(&mut self, now: Instant, state: State) {
        (self.state, self.tries, self.asks) = (state, 1, true);
        self.due = time::after(now, RETRY_US);
    }

    fn settle(&mut self, now: Instant, state: State, mac: Mac) {
        (self.state, self.mac, self.asks) = (state, mac, false);
        self.due = if state == State::Reachable { time::after(now, REACHABLE_US) } else { Instant::FAR_FUTURE };
    }

    const fn has_mac(&self) -> bool {
        !matches!(self.state, State::Free | State::Incomplete)
    }
}

/// The neighbours.
#[derive(Debug)]
pub(super) struct Cache<const N: usize, const HELD: usize> {
    entries: [Neighbour<HELD>; N],
}

impl<const N: usize, const HELD: usize> Cache<N, HELD> {
    pub(super) const fn new() -> Self {
        Self { entries: [Neighbour::FREE; N] }
    }

    fn entry(&mut self, addr: IpAddr) -> Option<&mut Neighbour<HELD>> {
        self.entries.iter_mut().find(|entry| entry.state != State::Free && entry.addr == addr)
    }

    pub(super) fn mac_of(&self, addr: IpAddr) -> Option<Mac> {
        let entry = self.entries.iter().find(|entry| entry.has_mac() && entry.addr == addr);
        entry.map(|entry| entry.mac)
    }

    /// Where to send a packet for `addr`; who is not known is asked for (RFC 4861, sections 7.2.2 and 7.3.3).
    pub(super) fn find(&mut self, now: Instant, addr: IpAddr) -> Found {
        if let Some(entry) = self.entry(addr) {
            entry.used = now;
            if entry.state == State::Stale {
                entry.state = State::Delay;
                entry.due = time::after(now, DELAY_US);
            }
            return if entry.has_mac() { Found::At(entry.mac) } else { Found::Asked };
        }
        let Some(place) = self.place(true) else { return Found::Full };
        *place = Neighbour { addr, used: now, ..Neighbour::FREE };
        place.ask(now, State::Incomplete);
        Found::Asked
    }

    /// A free place, or that of the neighbour not used for longest, if that may be.
    fn place(&mut self, may_replace: bool) -> Option<&mut Neighbour<HELD>> {
        let age = |entry: &&mut Neighbour<HELD>| match entry.state {
            State::Free => Some(Instant::ZERO),
            State::Stale | State::Reachable if may_replace => Some(entry.used),
            _ => None,
        };
        self.entries
            .iter_mut()
            .filter(|entry| age(entry).is_some())
            .min_by_key(|entry| (entry.state != State::Free, age(entry)))
    }

    /// Where a packet waits: its bytes, and how many it has. An earlier one makes room.
    pub(super) fn hold(&mut self, addr: IpAddr) -> Option<(&mut [u8], &mut u16)> {
        self.entry(addr).map(|entry| (&mut entry.held[..], &mut entry.held_len))
    }

    /// Takes a claim. Whether it was believed or fits what is known.
    pub(super) fn learn(&mut self, now: Instant, addr: IpAddr, mac: Mac, hint: Hint) -> bool {
        let Some(entry) = self.entry(addr) else {
            // RFC 826: whoever asks for this host will talk to it. RFC 4861, section 7.2.5: nobody else is of interest.
            if hint == Hint::Question
                && let Some(place) = self.place(false)
            {
                *place = Neighbour { addr, ..Neighbour::FREE };
                place.settle(now, State::Stale, mac);
            }
            return true;
        };
        match (entry.state, hint) {
            (State::Incomplete, Hint::Answer { .. }) => entry.settle(now, State::Reachable, mac),
            (State::Incomplete, Hint::Question) => entry.settle(now, State::Stale, mac),
            (State::Incomplete, Hint::Rumour) => {}
            (State::Probe, Hint::Answer { replaces }) if replaces || entry.mac == mac => {
                entry.settle(now, State::Reachable, mac);
            }
            (State::Stale | State::Delay, Hint::Answer { .. }) if entry.mac == mac => {
                entry.settle(now, State::Reachable, mac);
            }
            _ if entry.mac == mac => {}
            _ => {
                // Who is right? The one that is known is asked; if it is gone, all are.
                if matches!(entry.state, State::Stale | State::Delay) {
                    entry.ask(now, State::Probe);
                }
                return false;
            }
        }
        true
    }

    /// Does what is due; how many neighbours were given up.
    pub(super) fn on_timeout(&mut self, now: Instant) -> u32 {
        let mut lost = 0;
        for entry in self.entries.iter_mut().filter(|entry| entry.due <= now) {
            match entry.state {
                State::Free | State::Stale => entry.due = Instant::FAR_FUTURE,
                State::Reachable => {
                    entry.state = State::Stale;
                    entry.due = Instant::FAR_FUTURE;
                }
                State::Delay => entry.ask(now, State::Probe),
                State::Incomplete | State::Probe if entry.tries < TRIES => {
                    entry.tries += 1;
                    entry.asks = true;
                    entry.due = time::after(now, RETRY_US);
                }
                State::Incomplete | State::Probe => {
                    *entry = Neighbour::FREE;
                    lost += 1;
                }
            }
        }
        lost
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        let due = self.entries.iter().map(|entry| entry.due).min()?;
        (due != Instant::FAR_FUTURE).then_some(due)
    }

    /// The next question: for whom, and at which hardware address if not of everybody.
    pub(super) fn poll_question(&mut self) -> Option<(IpAddr, Option<Mac>)> {
        let entry = self.entries.iter_mut().find(|entry| entry.asks)?;
        entry.asks = false;
        Some((entry.addr, (entry.state == State::Probe).then_some(entry.mac)))
    }

    /// The next packet whose neighbour was found, with its header.
    pub(super) fn poll_held(&mut self) -> Option<&[u8]> {
        let entry = self.entries.iter_mut().find(|entry| entry.held_len > 0 && entry.has_mac())?;
        let len = usize::from(core::mem::take(&mut entry.held_len));
        entry.held.get_mut(..6)?.copy_from_slice(&entry.mac.0);
        entry.held.get(..len)
    }
}
