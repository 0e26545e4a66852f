//! What a connection is called, where it stands, and what may be set and counted.

use core::net::IpAddr;

use crate::{
    profile::{AckPolicy, Budgets, Keepalive, Profile},
    wire::{ip, udp},
};

/// An address and a port.
#[derive(Clone, Copy, Debug, Eq)]
pub struct Endpoint {
    /// The address.
    pub addr: IpAddr,
    /// The port.
    pub port: u16,
}

impl Endpoint {
    /// The endpoint `addr`:`port`.
    pub const fn new(addr: IpAddr, port: u16) -> Self {
        Self { addr, port }
    }
}

impl PartialEq for Endpoint {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.port == other.port && ip::is_same(self.addr, other.addr)
    }
}

impl core::fmt::Display for Endpoint {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        core::net::SocketAddr::new(self.addr, self.port).fmt(f)
    }
}

/// The two ends of a connection, seen from here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tuple {
    /// This end.
    pub local: Endpoint,
    /// The other end.
    pub remote: Endpoint,
    /// Its UDP port, where segments travel in UDP datagrams; zero where they don't.
    #[cfg(feature = "platforms")]
    udp_port: u16,
}

impl Tuple {
    /// The connection between two ends.
    #[inline]
    pub const fn new(local: Endpoint, remote: Endpoint) -> Self {
        Self {
            local,
            remote,
            #[cfg(feature = "platforms")]
            udp_port: 0,
        }
    }

    /// The same ports over UDP, to this port of the other end; zero for IP itself. It is another connection.
    #[cfg(feature = "platforms")]
    #[must_use]
    pub const fn over_udp(mut self, port: u16) -> Self {
        self.udp_port = port;
        self
    }

    /// The other end's UDP port, where segments travel in UDP datagrams.
    #[inline]
    pub const fn udp_port(&self) -> Option<u16> {
        #[cfg(feature = "platforms")]
        if self.udp_port > 0 {
            return Some(self.udp_port);
        }
        None
    }

    /// Whether these are its ends, and segments don't travel in UDP datagrams.
    #[cfg(all(feature = "platforms", feature = "large-tables"))]
    #[inline]
    pub(crate) fn is_between(&self, local: &Endpoint, remote: &Endpoint) -> bool {
        self.udp_port == 0 && self.remote == *remote && self.local == *local
    }

    /// The length of the headers between IP and TCP.
    #[inline]
    pub(crate) const fn between(&self) -> usize {
        if self.udp_port().is_some() { udp::HEADER } else { 0 }
    }
}

/// The states of RFC 9293, section 3.3.2. LISTEN belongs to the [stack](crate::stack).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// No connection.
    Closed,
    /// A SYN was sent.
    SynSent,
    /// A SYN was received, and sent.
    SynReceived,
    /// Data flows.
    Established,
    /// Closed here, the FIN not yet acknowledged.
    FinWait1,
    /// Closed here; the peer may still send.
    FinWait2,
    /// The peer has closed; this end may still send.
    CloseWait,
    /// Both closed at once, the FIN not yet acknowledged.
    Closing,
    /// The peer has closed, then this end; the FIN not yet acknowledged.
    LastAck,
    /// Both have closed; late segments are waited out.
    TimeWait,
}

impl State {
    /// Whether the connection's sequence numbers are agreed upon.
    pub const fn is_synchronized(self) -> bool {
        !matches!(self, Self::Closed | Self::SynSent | Self::SynReceived)
    }

    /// Whether the peer's data is still wanted.
    pub(super) const fn can_receive(self) -> bool {
        matches!(self, Self::Established | Self::FinWait1 | Self::FinWait2)
    }

    /// Whether data may be sent, or is still being sent.
    pub(super) const fn can_send(self) -> bool {
        matches!(self, Self::Established | Self::CloseWait | Self::FinWait1 | Self::Closing | Self::LastAck)
    }
}

impl core::fmt::Display for State {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Closed => "CLOSED",
            Self::SynSent => "SYN-SENT",
            Self::SynReceived => "SYN-RECEIVED",
            Self::Established => "ESTABLISHED",
            Self::FinWait1 => "FIN-WAIT-1",
            Self::FinWait2 => "FIN-WAIT-2",
            Self::CloseWait => "CLOSE-WAIT",
            Self::Closing => "CLOSING",
            Self::LastAck => "LAST-ACK",
            Self::TimeWait => "TIME-WAIT",
        })
    }
}

/// Why a connection ended before both ends had closed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Failure {
    /// The peer refused the connection.
    Refused,
    /// The peer reset it.
    Reset,
    /// The peer no longer answers: retransmissions, keepalive, the user timeout or the age limit gave up.
    TimedOut,
    /// ICMP says that the peer or its port can't be reached.
    Unreachable,
    /// This end aborted it.
    Aborted,
}

/// What has happened to a socket since it was last asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Events(u8);

impl Events {
    /// The handshake is over.
    pub const CONNECTED: Self = Self(1);
    /// More data can be read, or the peer's end of data has come.
    pub const READABLE: Self = Self(2);
    /// More data can be written.
    pub const WRITABLE: Self = Self(4);
    /// The connection has ended.
    pub const CLOSED: Self = Self(8);

    /// Whether any of `other` is set.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether nothing has happened.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(crate) const fn set(&mut self, other: Self) {
        self.0 |= other.0;
    }

    /// Clears `other`; whether it was set.
    pub(crate) const fn take(&mut self, other: Self) -> bool {
        let had = self.has(other);
        self.0 &= !other.0;
        had
    }
}

/// What an application may set on a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketOptions {
    /// Buffers of the pool.
    pub budgets: Budgets,
    /// SO_NONAGLE: small segments leave without waiting for acknowledgements (RFC 9293, section 3.7.4).
    pub no_nagle: bool,
    /// SO_NOPUSH: no PSH, and partial segments wait for more data, at most [`Profile::no_push_us`].
    pub no_push: bool,
    /// TCP_CORK: partial segments wait as under SO_NOPUSH; PSH is where it always is. Without the feature `platforms` it
    /// does nothing.
    pub corked: bool,
    /// TCP_NOTSENT_LOWAT: a write takes more only while fewer bytes than this wait to be sent, and fills what leaves at
    /// once; there is room again when half of it waits. What an application has not written it can still replace.
    #[cfg(feature = "platforms")]
    pub unsent_low: Option<u32>,
    /// Delayed acknowledgements.
    pub ack: AckPolicy,
    /// Keepalive.
    pub keepalive: Option<Keepalive>,
    /// Data unacknowledged for so many milliseconds ends the connection (RFC 9293, section 3.9.1, the user timeout).
    pub user_timeout_ms: Option<u32>,
    /// A peer silent for so many milliseconds is taken for dead and the connection aborted, so that its buffers come
    /// back, whether or not it owes an answer.
    pub reap_after_ms: Option<u32>,
    /// The largest segment to announce and to send, where that is less than the device's (RFC 9293, section 3.7.1).
    pub max_segment: u16,
    /// How often the SYN is retransmitted.
    pub syn_retries: u8,
    /// The peer's UDP port, for a connection whose segments are to travel in UDP datagrams (FreeBSD's
    /// `TCP_REMOTE_UDP_ENCAPS_PORT`), where [`Config::udp_port`](crate::stack::Config::udp_port) says so of this host.
    #[cfg(feature = "platforms")]
    pub udp_port: Option<core::num::NonZeroU16>,
    /// What arrives in order is thrown away at once, as an application would that waits for it and
    /// [discards](crate::stack::Stack::discard) it: for one that only counts bytes. What has filled a gap is read as always.
    #[cfg(feature = "platforms")]
    pub discards: bool,
    /// TCP_NOOPT: a SYN without any option, and none of the peer's is taken. Without the feature `platforms` it does nothing.
    pub no_options: bool,
    /// For how many milliseconds opening is tried at the most (FreeBSD's `TCP_KEEPINIT`). Without the feature `platforms` it
    /// does nothing.
    pub open_timeout_ms: Option<u32>,
    /// Fast open (RFC 7413), where the profile allows it: a connection may send, a listener take data in a SYN. Such
    /// data may arrive twice.
    #[cfg(feature = "fast-open")]
    pub fast_open: bool,
}

impl SocketOptions {
    /// What a profile gives a new socket.
    pub const fn from_profile(profile: &Profile) -> Self {
        Self {
            budgets: profile.budgets,
            no_nagle: false,
            no_push: false,
            corked: false,
            #[cfg(feature = "platforms")]
            unsent_low: None,
            ack: profile.ack,
            keepalive: profile.keepalive,
            user_timeout_ms: None,
            reap_after_ms: None,
            max_segment: u16::MAX,
            syn_retries: profile.syn_retries,
            no_options: false,
            open_timeout_ms: profile.open_timeout_ms,
            #[cfg(feature = "platforms")]
            udp_port: None,
            #[cfg(feature = "platforms")]
            discards: false,
            #[cfg(feature = "fast-open")]
            fast_open: false,
        }
    }

    /// For small messages that can't wait: no Nagle, every write pushed.
    #[must_use]
    pub const fn low_latency(mut self) -> Self {
        (self.no_nagle, self.no_push) = (true, false);
        self
    }

    /// For long transfers: full segments only, `buffers` for everything.
    #[must_use]
    pub const fn bulk(mut self, buffers: u16) -> Self {
        (self.no_nagle, self.no_push) = (false, true);
        self.budgets = Budgets::all(buffers);
        self
    }
}

/// What a socket has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Counts {
    /// Data bytes received in order.
    pub bytes_received: u64,
    /// Data bytes acknowledged.
    pub bytes_acked: u64,
    /// Data bytes sent for the first time.
    pub bytes_sent: u64,
    /// Segments received, of any kind.
    pub segments_received: u32,
    /// Segments sent, of any kind.
    pub segments_sent: u32,
    /// Data segments acknowledged, by number or by SACK.
    pub delivered: u32,
    /// Segments out of order.
    pub out_of_order: u32,
    /// Data segments retransmitted, of any cause.
    pub retransmits: u32,
    /// Timeouts.
    pub timeouts: u32,
    /// Entries into fast recovery.
    pub recoveries: u32,
    /// Tail loss probes.
    pub probes: u32,
    /// Reductions for an ECN echo.
    pub ecn_reductions: u32,
    /// Challenge ACKs.
    pub challenges: u32,
    /// Data bytes retransmitted.
    pub bytes_retransmitted: u64,
}

impl Counts {
    pub(super) const NONE: Self = Self {
        bytes_sent: 0,
        bytes_retransmitted: 0,
        bytes_acked: 0,
        bytes_received: 0,
        delivered: 0,
        segments_sent: 0,
        segments_received: 0,
        retransmits: 0,
        timeouts: 0,
        recoveries: 0,
        probes: 0,
        ecn_reductions: 0,
        out_of_order: 0,
        challenges: 0,
    };
}
