//! Fast open's part of the stack: cookies given, cookies kept (RFC 7413, section 4.1).

use fullpipe_units::Instant;

use super::{Core, Parts, Stack, Storage};
use crate::{
    SecretKey, fast_open,
    socket::{Endpoint, Opening, Outgoing, Part, SocketOptions, Tuple},
    wire::{
        fast_open::Format,
        tcp::{Flags, Segment},
    },
};

impl Core {
    /// A connection to be opened: what its SYN may carry.
    pub(super) fn offer(&self, now: Instant, opening: Opening) -> Opening {
        let (policy, peer) = (&self.config.profile.fast_open, opening.tuple.remote.addr);
        let offer = self.peers.offer(now, peer, opening.path_mss, policy).filter(|_| opening.options.fast_open);
        Opening { fast: offer.map(Part::of_client).unwrap_or_default(), ..opening }
    }

    /// A SYN for a listener: whether its data is taken, and whether it gets a cookie (section 4.2.2). The backlog bounds
    /// how many do at a time (section 5.1).
    pub(super) fn grant(&self, opening: Opening, syn: &Segment<'_>) -> Opening {
        let policy = &self.config.profile.fast_open;
        if !(policy.server && opening.options.fast_open) {
            return opening;
        }
        let option = syn.options.fast_open.filter(|option| policy.experimental || option.format == Format::Standard);
        let fast = match option {
            None => Part::of_server(policy.server_without_cookie && !syn.payload.is_empty(), None),
            Some(option) => {
                let is_of = |key| fast_open::cookie(key, &opening.tuple) == option.cookie;
                let is_good = policy.server_without_cookie || is_of(self.config.fast_open_key);
                // A former key's cookie opens, and is replaced.
                let is_early = is_good || self.former_key.is_some_and(is_of);
                Part::of_server(is_early, (!is_good).then_some(option.format))
            }
        };
        Opening { fast, ..opening }
    }

    /// The cookie of a SYN or a SYN-ACK that leaves; and a SYN that has to be retransmitted is news.
    #[inline]
    pub(super) fn add_cookie(&mut self, now: Instant, parts: &mut Parts<'_>, at: u16, out: &mut Outgoing) {
        if !out.flags.has(Flags::SYN) {
            return;
        }
        let Some(tuple) = parts.table.socket(at).map(|socket| socket.tuple) else { return };
        self.note_fast_open(now, parts, at, None);
        if let Some(option) = &mut out.options.fast_open {
            option.cookie = if out.flags.has(Flags::ACK) {
                fast_open::cookie(self.config.fast_open_key, &tuple)
            } else {
                self.peers.cookie(tuple.remote.addr)
            };
        }
    }

    /// Takes what a connection has learnt about its peer.
    #[inline]
    pub(super) fn note_fast_open(
        &mut self,
        now: Instant,
        parts: &mut Parts<'_>,
        at: u16,
        segment: Option<&Segment<'_>>,
    ) {
        let Some(socket) = parts.table.socket(at) else { return };
        if let Some(answer) = socket.take_answer() {
            self.peers.note(now, socket.tuple.remote.addr, answer, segment, &self.config.profile.fast_open);
        }
    }
}

impl<S: Storage> Stack<S> {
    /// The data bytes that the SYN of a new connection to `remote` would carry: zero where no cookie is known, or fast
    /// open is off for such a connection. What is written before the SYN leaves goes with it.
    pub fn syn_room(&mut self, now: Instant, remote: Endpoint, options: &SocketOptions) -> u16 {
        let (core, _) = self.parts();
        let local = Endpoint::new(remote.addr, 0);
        let opening = core.opening(now, &Tuple::new(local, remote), fullpipe_units::SeqNum::new(0), *options);
        core.offer(now, opening).fast.room()
    }

    /// Changes the key of fast-open cookies (section 4.1.2 asks for it now and then). The former key's cookies are taken
    /// until the next change, and replaced.
    pub const fn set_fast_open_key(&mut self, key: SecretKey) {
        self.core.former_key = Some(self.core.config.fast_open_key);
        self.core.config.fast_open_key = key;
    }

    /// Forgets all cookies of peers and that peers failed.
    pub fn forget_peers(&mut self) {
        self.core.peers.clear();
    }
}
