//! An Ethernet device's side of a stack: frames in, frames out, and who is behind which address (RFC 826, RFC 4861).
//!
//! It has the house's shape: frames go to [`Link::on_frame`], which hands back the IP packet for
//! [`Stack::on_packet`](crate::stack::Stack::on_packet); what the stack sends gets its header from [`Link::send`]; frames
//! of the link's own (questions, answers, packets that waited for an answer) come from [`Link::poll_transmit`].
//! What is *not* here: routers' advertisements, redirects and address configuration (addresses, prefixes and gateways are
//! given), VLANs, bridging.

mod neighbours;
#[cfg(test)]
mod tests;

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use fullpipe_units::Instant;

use self::neighbours::{Cache, Found, Hint};
use crate::{
    stack::Transmit,
    wire::{
        Malformed, arp,
        checksum::Checksum,
        ethernet::{self, Frame, HEADER, Mac},
        ip::{self, Packet},
        ndp, set_be16,
        tcp::CHECKSUM_AT,
    },
};

/// Answers that may wait at one time: more questions are dropped.
const ANSWERS: usize = 4;
/// RFC 4291, section 2.7.1.
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

/// An address of this host and the length of its link's prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    /// The address.
    pub addr: IpAddr,
    /// How many of its leading bits all neighbours share.
    pub bits: u8,
}

impl Prefix {
    fn contains(&self, other: IpAddr) -> bool {
        match (self.addr, other) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                let mask = u32::MAX.checked_shl(32_u32.saturating_sub(self.bits.into())).unwrap_or(0);
                (own.to_bits() ^ other.to_bits()) & mask == 0
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                let mask = u128::MAX.checked_shl(128_u32.saturating_sub(self.bits.into())).unwrap_or(0);
                (own.to_bits() ^ other.to_bits()) & mask == 0
            }
            _ => false,
        }
    }
}

/// How a link is set up.
#[derive(Clone, Copy, Debug)]
pub struct LinkSetup {
    /// This host's hardware address.
    pub mac: Mac,
    /// Its addresses, the stack's own.
    pub prefixes: [Option<Prefix>; 4],
    /// Who forwards what is beyond the link.
    pub gateway_v4: Option<Ipv4Addr>,
    /// The same for IPv6.
    pub gateway_v6: Option<Ipv6Addr>,
}

/// What a link has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounts {
    /// Frames that were dropped on arrival.
    pub dropped: u32,
    /// Claims about a neighbour that nobody had asked for and that contradict what is known: not believed.
    pub ignored: u32,
    /// Claims to one of this host's own addresses (RFC 5227, section 1.1).
    pub conflicts: u32,
    /// Questions that found no room for an answer.
    pub unanswered: u32,
    /// Packets dropped on their way out: no way there, no free place among the neighbours, or too long to wait.
    pub unsent: u32,
    /// Neighbours given up.
    pub unreachable: u32,
}

/// Why a frame was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DroppedFrame {
    /// It can't be read.
    Malformed(Malformed),
    /// It is for another station, or for a group.
    Address,
    /// It carries what this stack does not speak.
    Protocol,
}

/// An answer that is owed.
#[derive(Clone, Copy, Debug)]
struct Answer {
    own: IpAddr,
    to: IpAddr,
    mac: Mac,
}

/// The link of one device, with room for `N` neighbours.
///
/// A packet to a neighbour that is still looked for waits, the latest of up to `HELD` bytes with its header (RFC 1122,
/// section 2.3.2.2: at least one). What opens a conversation is short; a long packet is dropped, and TCP sends it again.
#[derive(Debug)]
pub struct Link<const N: usize = 8, const HELD: usize = 142> {
    setup: LinkSetup,
    cache: Cache<N, HELD>,
    answers: [Option<Answer>; ANSWERS],
    counts: LinkCounts,
    frame: [u8; HEADER + ndp::LEN],
}

impl<const N: usize, const HELD: usize> Link<N, HELD> {
    /// A link that knows nobody.
    pub const fn new(setup: LinkSetup) -> Self {
        let counts = LinkCounts { dropped: 0, ignored: 0, conflicts: 0, unanswered: 0, unsent: 0, unreachable: 0 };
        Self { setup, cache: Cache::new(), answers: [None; ANSWERS], counts, frame: [0; HEADER + ndp::LEN] }
    }

    /// What was counted.
    pub const fn counts(&self) -> &LinkCounts {
        &self.counts
    }

    /// The hardware address of a neighbour, where it is known.
    pub fn neighbour(&self, addr: IpAddr) -> Option<Mac> {
        self.cache.mac_of(addr)
    }

    /// Takes a frame; gives the IP packet in it, if it is one for the stack.
    ///
    /// # Errors
    /// Why the frame was dropped; it has been counted.
    pub fn on_frame<'a>(&mut self, now: Instant, data: &'a [u8]) -> Result<Option<&'a [u8]>, DroppedFrame> {
        let result = self.sort(now, data);
        if result.is_err() {
            self.counts.dropped = self.counts.dropped.saturating_add(1);
        }
        result
    }

    fn sort<'a>(&mut self, now: Instant, data: &'a [u8]) -> Result<Option<&'a [u8]>, DroppedFrame> {
        let frame = Frame::parse(data).map_err(DroppedFrame::Malformed)?;
        let to_us = frame.dst == self.setup.mac;
        if !(to_us || frame.dst.0[0] & 1 != 0) || !frame.src.is_unicast() {
            return Err(DroppedFrame::Address);
        }
        match frame.ether_type {
            ethernet::ARP => {
                let message = arp::Message::parse(frame.payload).map_err(DroppedFrame::Malformed)?;
                self.on_arp(now, &message);
                return Ok(None);
            }
            ethernet::IPV6 if cfg!(feature = "ipv6") && is_icmpv6(frame.payload) => {
                let packet = Packet::parse(frame.payload).map_err(DroppedFrame::Malformed)?;
                if let Some(message) = ndp::Message::parse(&packet).map_err(DroppedFrame::Malformed)? {
                    self.on_ndp(now, &packet, frame.src, message);
                    return Ok(None);
                }
            }
            ethernet::IPV4 | ethernet::IPV6 => {}
            _ => return Err(DroppedFrame::Protocol),
        }
        // RFC 1122, section 3.3.6: one host's packets don't come by broadcast.
        if to_us { Ok(Some(frame.payload)) } else { Err(DroppedFrame::Address) }
    }

    fn is_own(&self, addr: IpAddr) -> bool {
        self.setup.prefixes.iter().flatten().any(|prefix| prefix.addr == addr)
    }

    fn is_on_link(&self, addr: IpAddr) -> bool {
        let local = matches!(addr, IpAddr::V6(addr) if addr.is_unicast_link_local());
        local || self.setup.prefixes.iter().flatten().any(|prefix| prefix.contains(addr))
    }

    /// RFC 826, "Packet Reception", with RFC 5227 for claims to an own address.
    fn on_arp(&mut self, now: Instant, message: &arp::Message) {
        let (sender, target) = (IpAddr::V4(message.sender), IpAddr::V4(message.target));
        if self.is_own(sender) {
            if message.sender_mac != self.setup.mac {
                self.counts.conflicts = self.counts.conflicts.saturating_add(1);
            }
            return;
        }
        let to_us = self.is_own(target);
        if !message.sender.is_unspecified() && message.sender_mac.is_unicast() && self.is_on_link(sender) {
            let hint = match message.operation {
                arp::Operation::Reply if to_us => Hint::Answer { replaces: true },
                arp::Operation::Request if to_us => Hint::Question,
                _ => Hint::Rumour,
            };
            self.learn(now, sender, message.sender_mac, hint);
        }
        if to_us && message.operation == arp::Operation::Request {
            self.owe(Answer { own: target, to: sender, mac: message.sender_mac });
        }
    }

    /// RFC 4861, sections 7.2.3 to 7.2.5.
    fn on_ndp(&mut self, now: Instant, packet: &Packet<'_>, src_mac: Mac, message: ndp::Message) {
        match message {
            ndp::Message::Solicitation { target, mac } => {
                if !self.is_own(target.into()) {
                    return;
                }
                if packet.src == IpAddr::V6(Ipv6Addr::UNSPECIFIED) {
                    // Somebody is about to take this address: it is announced to everybody (section 7.2.4).
                    let mac = Mac::of_group(ALL_NODES);
                    return self.owe(Answer { own: target.into(), to: ALL_NODES.into(), mac });
                }
                if let Some(mac) = mac.filter(|mac| mac.is_unicast() && self.is_on_link(packet.src)) {
                    self.learn(now, packet.src, mac, Hint::Question);
                }
                self.owe(Answer { own: target.into(), to: packet.src, mac: mac.unwrap_or(src_mac) });
            }
            ndp::Message::Advertisement { target, mac, solicited, replaces } => {
                if self.is_own(target.into()) {
                    self.counts.conflicts = self.counts.conflicts.saturating_add(1);
                    return;
                }
                if let Some(mac) = mac.filter(|mac| mac.is_unicast()) {
                    let hint = if solicited { Hint::Answer { replaces } } else { Hint::Rumour };
                    self.learn(now, target.into(), mac, hint);
                }
            }
        }
    }

    fn learn(&mut self, now: Instant, addr: IpAddr, mac: Mac, hint: Hint) {
        if !self.cache.learn(now, addr, mac, hint) {
            self.counts.ignored = self.counts.ignored.saturating_add(1);
        }
    }

    fn owe(&mut self, answer: Answer) {
        match self.answers.iter_mut().find(|slot| slot.is_none()) {
            Some(slot) => *slot = Some(answer),
            None => self.counts.unanswered = self.counts.unanswered.saturating_add(1),
        }
    }

    /// The header of the frame that takes a packet to its neighbour. `None` where the packet waits for the neighbour to be
    /// found, or was dropped, which has been counted.
    pub fn send(&mut self, now: Instant, packet: &Transmit<'_>) -> Option<[u8; HEADER]> {
        let hop = packet.destination().and_then(|dst| self.next_hop(dst));
        let found = hop.map(|hop| (hop, self.cache.find(now, hop)));
        match found {
            Some((hop, Found::At(mac))) => {
                return Some(ethernet::header(mac, self.setup.mac, ethernet::type_of(hop)));
            }
            Some((hop, Found::Asked)) => {
                let own = self.setup.mac;
                let held = self.cache.hold(hop).and_then(|(held, len)| {
                    let (head, rest) = held.split_at_mut_checked(HEADER)?;
                    // Whom it goes to is put in when it leaves.
                    head.copy_from_slice(&ethernet::header(Mac::default(), own, ethernet::type_of(hop)));
                    let filled = packet.copy_to(rest)?;
                    complete_checksum(packet, rest.get_mut(..filled)?);
                    *len = (HEADER + filled) as u16;
                    Some(())
                });
                if held.is_some() {
                    return None;
                }
            }
            Some((_, Found::Full)) | None => {}
        }
        self.counts.unsent = self.counts.unsent.saturating_add(1);
        None
    }

    fn next_hop(&self, dst: IpAddr) -> Option<IpAddr> {
        if self.is_on_link(dst) {
            return Some(dst);
        }
        match dst {
            IpAddr::V4(_) => self.setup.gateway_v4.map(IpAddr::V4),
            IpAddr::V6(_) => self.setup.gateway_v6.map(IpAddr::V6),
        }
    }

    /// Does what is due.
    pub fn on_timeout(&mut self, now: Instant) {
        let lost = self.cache.on_timeout(now);
        self.counts.unreachable = self.counts.unreachable.saturating_add(lost);
    }

    /// When [`on_timeout`](Self::on_timeout) has something to do.
    pub fn next_timeout(&self) -> Option<Instant> {
        self.cache.next_timeout()
    }

    /// The next frame of the link's own.
    pub fn poll_transmit(&mut self) -> Option<&[u8]> {
        if let Some(answer) = self.answers.iter_mut().find_map(Option::take) {
            let len = self.write_answer(&answer);
            return self.frame.get(..len);
        }
        if let Some((addr, mac)) = self.cache.poll_question() {
            let len = self.write_question(addr, mac);
            return self.frame.get(..len);
        }
        self.cache.poll_held()
    }

    fn write_answer(&mut self, answer: &Answer) -> usize {
        let own_mac = self.setup.mac;
        let (head, body) = self.frame.split_at_mut(HEADER);
        head.copy_from_slice(&ethernet::header(answer.mac, own_mac, control_type(answer.own)));
        HEADER
            + match (answer.own, answer.to) {
                (IpAddr::V4(sender), IpAddr::V4(target)) => {
                    let operation = arp::Operation::Reply;
                    arp::Message { operation, sender_mac: own_mac, sender, target_mac: answer.mac, target }.write(body)
                }
                (IpAddr::V6(own), IpAddr::V6(to)) => {
                    let solicited = to != ALL_NODES;
                    ndp::Message::Advertisement { target: own, mac: Some(own_mac), solicited, replaces: true }
                        .write(body, own, to)
                }
                _ => 0,
            }
    }

    /// Who has `addr`? Asked of everybody, or of the neighbour itself where one is known (RFC 1122, section 2.3.2.1;
    /// RFC 4861, section 7.3.3).
    fn write_question(&mut self, addr: IpAddr, mac: Option<Mac>) -> usize {
        let own_mac = self.setup.mac;
        let prefixes = self.setup.prefixes.iter().flatten();
        let near = prefixes.clone().find(|prefix| prefix.contains(addr));
        let own = near.or_else(|| prefixes.clone().find(|prefix| prefix.addr.is_ipv6() == addr.is_ipv6()));
        let Some(own) = own.map(|prefix| prefix.addr) else { return 0 };
        let (head, body) = self.frame.split_at_mut(HEADER);
        let (dst_mac, len) = match (own, addr) {
            (IpAddr::V4(sender), IpAddr::V4(target)) => {
                let (operation, target_mac) = (arp::Operation::Request, Mac::default());
                let message = arp::Message { operation, sender_mac: own_mac, sender, target_mac, target };
                (mac.unwrap_or(Mac::BROADCAST), message.write(body))
            }
            (IpAddr::V6(own), IpAddr::V6(target)) => {
                let group = ndp::solicited_node(target);
                let dst = if mac.is_some() { target } else { group };
                let message = ndp::Message::Solicitation { target, mac: Some(own_mac) };
                (mac.unwrap_or_else(|| Mac::of_group(group)), message.write(body, own, dst))
            }
            _ => return 0,
        };
        head.copy_from_slice(&ethernet::header(dst_mac, own_mac, control_type(addr)));
        HEADER + len
    }
}

const fn control_type(addr: IpAddr) -> u16 {
    if addr.is_ipv6() { ethernet::IPV6 } else { ethernet::ARP }
}

/// Whether an IPv6 packet carries ICMPv6 at once: neighbour messages have no extension headers in front.
fn is_icmpv6(packet: &[u8]) -> bool {
    packet.get(6) == Some(&ip::ICMPV6)
}

/// A packet that waits leaves later by itself: what the device would have summed is summed here.
fn complete_checksum(packet: &Transmit<'_>, bytes: &mut [u8]) {
    if packet.needs_checksum() {
        let start = packet.ip_header_len();
        let sum = Checksum::new().bytes(bytes.get(start..).unwrap_or(&[])).finish();
        set_be16(bytes, start + CHECKSUM_AT, sum);
    }
}
