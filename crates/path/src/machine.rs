//! The shape that a link, a delay line, a hop and a whole direction share.

use fullpipe_units::Instant;

/// The ECN field of an IP header (RFC 3168, section 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Ecn {
    /// The transport does not take marks: congestion drops the packet.
    #[default]
    NotEct = 0b00,
    /// ECN-capable, codepoint ECT(1).
    Ect1 = 0b01,
    /// ECN-capable, codepoint ECT(0).
    Ect0 = 0b10,
    /// Congestion experienced.
    Ce = 0b11,
}

impl Ecn {
    /// The codepoint in the two low bits of an IPv4 TOS or IPv6 traffic-class byte.
    pub const fn from_bits(tos: u8) -> Self {
        match tos & 0b11 {
            0b00 => Self::NotEct,
            0b01 => Self::Ect1,
            0b10 => Self::Ect0,
            _ => Self::Ce,
        }
    }

    /// Whether a queue may mark instead of drop.
    pub const fn is_capable(self) -> bool {
        !matches!(self, Self::NotEct)
    }
}

/// One IP packet as the wire sees it. A driver that reads 64 KB super-packets splits them first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment<T> {
    /// Length in bytes from the first byte of the IP header to the last of the payload.
    pub len: u32,
    /// The ECN field; a queue that marks sets it to [`Ecn::Ce`].
    pub ecn: Ecn,
    /// Of which connection it is an acknowledgement and nothing else, so that a later one of the same says all that it
    /// says; nothing where it is more, or where the driver does not tell.
    pub ack_of: Option<u32>,
    /// The driver's own name for the packet. Dropping a packet drops its handle; a duplicate is a clone of it.
    pub handle: T,
}

impl<T> Segment<T> {
    /// A segment of `len` bytes that takes no ECN marks.
    pub const fn new(len: u32, handle: T) -> Self {
        Self { len, ecn: Ecn::NotEct, ack_of: None, handle }
    }
}

/// What to do with a segment that leaves the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Hand it to the receiving end.
    Delivered,
    /// It did not fit: send the sender an ICMP "fragmentation needed" (RFC 1191) or ICMPv6 "packet too big"
    /// (RFC 4443, section 3.2).
    TooBig {
        /// The MTU of the hop that refused it, in bytes.
        mtu: u32,
        /// The hop that refused it, 0 for the first in this direction.
        hop: usize,
    },
}

/// A segment that leaves a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure<T> {
    /// When it was planned to leave. How far the driver's own clock is past this is the driver's error; it never adds
    /// up, because the next machine reckons from here too.
    pub at: Instant,
    /// What leaves.
    pub segment: Segment<T>,
    /// Where to.
    pub fate: Fate,
}

/// A machine that packets pass through, with time as an argument.
///
/// The contract: `now` never runs backwards from one call to the next. A machine reckons with planned times only: a
/// driver that calls late gets the same departures with the same times as one that calls exactly then, provided that
/// it reports every arrival with its true time. Nothing is allocated per packet once the buffers have grown.
pub trait Machine<T> {
    /// A segment arrives at `now`.
    fn on_packet(&mut self, now: Instant, segment: Segment<T>);

    /// The next segment whose planned time is not after `now`. Call until it returns `None`.
    ///
    /// There is no separate `on_timeout`: this is what a driver does when [`next_timeout`](Self::next_timeout) comes.
    fn poll_transmit(&mut self, now: Instant) -> Option<Departure<T>>;

    /// The time before which [`poll_transmit`](Self::poll_transmit) can have nothing, unless another segment arrives;
    /// `None` where the machine is empty. At that time there may still be nothing (the segment was lost, or more
    /// delay was drawn than the least possible); then the next answer is later.
    fn next_timeout(&self) -> Option<Instant>;
}
