//! Fast open (RFC 7413): data in the SYN, for a peer that has shown a cookie before.
//!
//! Here are the policy, the cookie that a server gives, and what a client remembers of servers. What one connection
//! does of it is in `socket/fast.rs`, the option in [`crate::wire::fast_open`]. It is off unless a profile and a
//! socket's options both ask for it, because data in a SYN may reach an application twice (section 6.1): only for
//! requests that may be repeated.

use core::net::IpAddr;

use fullpipe_units::Instant;

use crate::{
    SecretKey, hash,
    socket::Tuple,
    wire::{
        fast_open::{Cookie, FastOpen, Format},
        tcp::Segment,
    },
};

/// What a stack does about fast open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FastOpenPolicy {
    /// Whether connections that ask for it may be opened so.
    pub client: bool,
    /// Whether listeners that ask for it give cookies and take data in SYNs.
    pub server: bool,
    /// Clients send data to peers that never gave a cookie: only inside one administration (section 6.3.4).
    pub client_without_cookie: bool,
    /// Servers take data without a cookie: only where no source address is forged.
    pub server_without_cookie: bool,
    /// Whether the option's old form is understood, and tried where a server did not answer the new one.
    pub experimental: bool,
    /// Failures in a row after which a peer is opened as always for a while (section 4.1.3.1).
    pub strikes: u8,
    /// Whether a server that gave no cookie when asked has failed, too.
    pub refusal_is_failure: bool,
    /// For how many seconds.
    pub pause_s: u32,
}

impl FastOpenPolicy {
    /// Never.
    pub const OFF: Self = Self {
        client: false,
        server: false,
        client_without_cookie: false,
        server_without_cookie: false,
        experimental: false,
        strikes: 2,
        refusal_is_failure: false,
        pause_s: 3_600,
    };

    /// Both ways, as the RFC has it.
    pub const ON: Self = Self { client: true, server: true, ..Self::OFF };

    /// Linux 6.x: clients may, servers are switched on; the drafts' form is known.
    pub const LINUX: Self = Self { client: true, experimental: true, ..Self::OFF };

    /// FreeBSD 14: clients may, and a server that fails once is left alone for a quarter of an hour.
    pub const FREEBSD: Self = Self { client: true, strikes: 1, refusal_is_failure: true, pause_s: 900, ..Self::OFF };
}

/// Section 4.1.2: a message authentication code of both addresses under the server's key. Several servers behind one
/// address share the key, and one that changes it takes the old one's cookies for a while.
pub(crate) fn cookie(key: SecretKey, tuple: &Tuple) -> Cookie {
    Cookie::new(&hash::of_addresses(key, tuple.remote.addr, tuple.local.addr).to_le_bytes()).unwrap_or(Cookie::NONE)
}

/// What became of a SYN that asked for a cookie or carried data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Some of the data was acknowledged, or there was none but a cookie.
    Taken,
    /// There was a cookie and data, and the data was not acknowledged.
    Ignored,
    /// A cookie was asked for; whether it came is in the answer.
    Asked,
    /// It had to be retransmitted, as a plain SYN.
    Lost,
    /// The plain SYN was answered: the failure has been counted.
    Late,
}

/// Peers that a client remembers.
const PEERS: usize = 8;

/// What is known of a peer.
#[derive(Clone, Copy, Debug)]
struct Peer {
    addr: Option<IpAddr>,
    cookie: Cookie,
    format: Format,
    tried_experimental: bool,
    /// Its segment size (section 4.1.3, SHOULD).
    mss: u16,
    /// Failures in a row, and the latest.
    failures: u8,
    failed_at: Instant,
    used_at: Instant,
}

impl Peer {
    const NOBODY: Self = Self {
        addr: None,
        cookie: Cookie::NONE,
        format: Format::Standard,
        tried_experimental: false,
        mss: 0,
        failures: 0,
        failed_at: Instant::ZERO,
        used_at: Instant::ZERO,
    };

    const fn is_paused(&self, now: Instant, policy: &FastOpenPolicy) -> bool {
        let pause = policy.pause_s as u64 * 1_000_000_000;
        self.failures >= policy.strikes && now.as_nanos() < self.failed_at.as_nanos().saturating_add(pause)
    }
}

/// What a client remembers of its peers (section 4.1.3); the one that was used longest ago makes room.
#[derive(Debug)]
pub(crate) struct Cache([Peer; PEERS]);

/// What a SYN to a peer may carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offer {
    /// The option's form, where it is sent at all.
    pub(crate) option: Option<Format>,
    /// The segment size of which the SYN's data has to be part; zero for no data.
    pub(crate) mss: u16,
}

impl Cache {
    pub(crate) const fn new() -> Self {
        Self([Peer::NOBODY; PEERS])
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::new();
    }

    fn find(&self, addr: IpAddr) -> Option<&Peer> {
        self.0.iter().find(|peer| peer.addr == Some(addr))
    }

    /// What to send to `addr`, whose segments are at most `mss` long.
    pub(crate) fn offer(&self, now: Instant, addr: IpAddr, mss: u16, policy: &FastOpenPolicy) -> Option<Offer> {
        let peer = self.find(addr).copied().unwrap_or(Peer::NOBODY);
        if !policy.client || peer.is_paused(now, policy) {
            return None;
        }
        let known = if peer.mss == 0 { mss } else { peer.mss.min(mss) };
        Some(if policy.client_without_cookie {
            Offer { option: None, mss: known }
        } else if peer.cookie.is_none() {
            Offer { option: Some(peer.format), mss: 0 }
        } else {
            Offer { option: Some(peer.format), mss: known }
        })
    }

    pub(crate) fn cookie(&self, addr: IpAddr) -> Cookie {
        self.find(addr).map_or(Cookie::NONE, |peer| peer.cookie)
    }

    fn entry(&mut self, now: Instant, addr: IpAddr) -> &mut Peer {
        let found = self.0.iter().position(|peer| peer.addr == Some(addr));
        let oldest = || (0..PEERS).min_by_key(|at| self.0[*at].used_at).unwrap_or(0);
        let at = found.unwrap_or_else(oldest);
        let peer = &mut self.0[at];
        if found.is_none() {
            *peer = Peer { addr: Some(addr), ..Peer::NOBODY };
        }
        peer.used_at = now;
        peer
    }

    /// Takes what a SYN-ACK, or its absence, says.
    pub(crate) fn note(
        &mut self,
        now: Instant,
        addr: IpAddr,
        answer: Answer,
        segment: Option<&Segment<'_>>,
        policy: &FastOpenPolicy,
    ) {
        let option = segment.and_then(|segment| segment.options.fast_open).filter(|option| !option.cookie.is_none());
        let peer = self.entry(now, addr);
        if let Some(mss) = segment.and_then(|segment| segment.options.mss) {
            peer.mss = mss.max(64);
        }
        // An unsolicited cookie is not kept.
        if let (Some(FastOpen { cookie, format }), false) = (option, policy.client_without_cookie) {
            (peer.cookie, peer.format, peer.failures) = (cookie, format, 0);
            return;
        }
        let failed = match answer {
            Answer::Taken => {
                peer.failures = 0;
                return;
            }
            Answer::Late => return,
            Answer::Asked if !peer.cookie.is_none() => return,
            Answer::Asked => {
                // The form of the drafts is tried once.
                let tries = policy.experimental && !core::mem::replace(&mut peer.tried_experimental, true);
                peer.format = if tries { Format::Experimental } else { Format::Standard };
                policy.refusal_is_failure
            }
            Answer::Ignored | Answer::Lost => true,
        };
        if failed {
            // Section 4.1.3.1: negative responses MUST be remembered.
            (peer.failures, peer.failed_at) = (peer.failures.saturating_add(1), now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::tcp::{Flags, Options};
    use fullpipe_units::SeqNum;

    fn peer(host: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, host])
    }

    fn answer(cookie: &[u8], mss: u16) -> Segment<'static> {
        let fast_open = (!cookie.is_empty())
            .then(|| FastOpen { cookie: Cookie::new(cookie).expect("a good length"), format: Format::Standard });
        Segment {
            src_port: 80,
            dst_port: 5_000,
            seq: SeqNum::new(0),
            ack: SeqNum::new(1),
            flags: Flags::SYN.with(Flags::ACK),
            window: 1_000,
            options: Options { mss: Some(mss), fast_open, ..Options::default() },
            payload: &[],
        }
    }

    fn at(s: u64) -> Instant {
        Instant::from_nanos(s * 1_000_000_000)
    }

    #[test]
    fn a_cookie_is_the_hash_of_the_client_s_address_and_the_server_s() {
        // SipHash-2-4 of 192.0.2.1, 192.168.0.1, made with an independent implementation.
        let mut key = [0; 16];
        for (at, byte) in key.iter_mut().enumerate() {
            *byte = [0xa1, 0xb2, 0xc3, 0xd4][at / 4];
        }
        let end = |addr: [u8; 4], port| crate::socket::Endpoint::new(IpAddr::from(addr), port);
        let tuple = Tuple::new(end([192, 168, 0, 1], 8080), end([192, 0, 2, 1], 5_000));
        assert_eq!(cookie(SecretKey(key), &tuple).as_slice(), [0x30, 0x21, 0xb9, 0xd8, 0x89, 0x01, 0x7e, 0xeb]);
    }

    #[test]
    fn a_cookie_and_the_segment_size_are_remembered() {
        let (mut cache, policy) = (Cache::new(), FastOpenPolicy::ON);
        let asks = Offer { option: Some(Format::Standard), mss: 0 };
        assert_eq!(cache.offer(at(0), peer(1), 1_460, &policy), Some(asks));
        cache.note(at(0), peer(1), Answer::Asked, Some(&answer(&[1, 2, 3, 4], 940)), &policy);
        let sends = Offer { option: Some(Format::Standard), mss: 940 };
        assert_eq!(cache.offer(at(1), peer(1), 1_460, &policy), Some(sends));
        assert_eq!(cache.cookie(peer(1)).as_slice(), [1, 2, 3, 4]);
        assert_eq!(cache.offer(at(1), peer(2), 1_460, &policy), Some(asks));
        assert_eq!(cache.offer(at(1), peer(1), 1_460, &FastOpenPolicy::OFF), None);
    }

    #[test]
    fn a_path_that_fails_is_left_alone_for_a_while() {
        let (mut cache, policy) = (Cache::new(), FastOpenPolicy::ON);
        cache.note(at(0), peer(1), Answer::Asked, Some(&answer(&[1, 2, 3, 4], 940)), &policy);
        cache.note(at(1), peer(1), Answer::Lost, None, &policy);
        assert!(cache.offer(at(2), peer(1), 1_460, &policy).is_some(), "once may be chance");
        cache.note(at(2), peer(1), Answer::Late, Some(&answer(&[], 940)), &policy);
        cache.note(at(3), peer(1), Answer::Ignored, Some(&answer(&[], 940)), &policy);
        assert_eq!(cache.offer(at(4), peer(1), 1_460, &policy), None);
        assert_eq!(cache.offer(at(3_602), peer(1), 1_460, &policy), None);
        assert!(cache.offer(at(3_604), peer(1), 1_460, &policy).is_some(), "and then tried again");
    }

    #[test]
    fn the_form_of_the_drafts_is_tried_once() {
        let (mut cache, policy) = (Cache::new(), FastOpenPolicy::LINUX);
        let mut seen = std::vec::Vec::new();
        for second in 0..4 {
            seen.push(cache.offer(at(second), peer(1), 1_460, &policy).and_then(|offer| offer.option));
            cache.note(at(second), peer(1), Answer::Asked, Some(&answer(&[], 1_460)), &policy);
        }
        let forms = [Format::Standard, Format::Experimental, Format::Standard, Format::Standard];
        assert_eq!(seen, forms.map(Some));
    }

    #[test]
    fn the_peer_that_was_used_longest_ago_makes_room() {
        let (mut cache, policy) = (Cache::new(), FastOpenPolicy::ON);
        for host in 0..=PEERS as u8 {
            cache.note(at(host.into()), peer(host), Answer::Asked, Some(&answer(&[host; 4], 1_000)), &policy);
        }
        assert!(cache.cookie(peer(0)).is_none());
        assert_eq!(cache.cookie(peer(1)).as_slice(), [1; 4]);
    }
}
