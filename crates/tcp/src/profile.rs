//! Profiles: the policy of a stack as data, so that the engine can wear another platform's.
//!
//! A profile holds what differs between implementations that all keep the RFCs: which options in what order, timer
//! bounds, initial window, when to acknowledge, when to push. Mechanism is elsewhere. Figures come from
//! the sources named beside them; where a platform has no counterpart the engine's own default stands.

#[cfg(feature = "fast-open")]
use crate::fast_open::FastOpenPolicy;
use crate::{
    congestion::Algorithm,
    wire::tcp::{OptionKind, OptionLayout},
};

/// How many packet buffers of the pool a socket may hold, by what they hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budgets {
    /// Received in order and not yet read. The offered window follows what is free of it.
    pub receive: u16,
    /// Received out of order. What exceeds it is dropped, and the peer sends it again.
    pub out_of_order: u16,
    /// Written and not yet sent.
    pub transmit: u16,
    /// Sent and not yet acknowledged.
    pub unacknowledged: u16,
}

impl Budgets {
    /// The least and the most useful number without window scaling: 65,535 / 1500 = 43.
    pub const UNSCALED: core::ops::RangeInclusive<u16> = 5..=43;

    /// The same number for everything.
    pub const fn all(buffers: u16) -> Self {
        Self { receive: buffers, out_of_order: buffers, transmit: buffers, unacknowledged: buffers }
    }
}

/// What becomes of the receive budget while data arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceivePolicy {
    /// It stays.
    Fixed,
    /// It doubles whenever the application reads at least a quarter of it within a round trip, up to `max` buffers:
    /// dynamic right-sizing.
    Grow {
        /// The bound in buffers.
        max: u16,
    },
    /// As Linux does it (`tcp_rcvbuf_grow`, `tcp_grow_window`): by two buffers for each segment that arrives, up to a bound that
    /// follows what the application reads in a round trip: twice as much, and more by twice the part by which that grows.
    Follow {
        /// The largest bound in buffers.
        max: u16,
    },
}

impl ReceivePolicy {
    /// The bound in buffers up to which the budget grows; `None` where it does not grow.
    pub const fn max(self) -> Option<u16> {
        match self {
            Self::Fixed => None,
            Self::Grow { max } | Self::Follow { max } => Some(max),
        }
    }

    /// The bound when a connection begins with so many buffers. Linux offers half of its memory at first, and five eighths of it once
    /// a segment has told what segments take (`tcp_measure_rcv_mss`; `scaling_ratio=160` of 256, as its tracepoint
    /// `tcp_rcvbuf_grow` tells of Linux 6.18).
    pub(crate) const fn bound_at_first(self, buffers: u16) -> u16 {
        match self {
            Self::Follow { max } => {
                let bound = (buffers as u32 * 5 / 4) as u16;
                if bound < max { bound } else { max }
            }
            Self::Fixed | Self::Grow { .. } => 0,
        }
    }

    /// The same policy up to another bound; one that does not grow stays.
    #[must_use]
    pub const fn with_max(self, max: u16) -> Self {
        match self {
            Self::Fixed => Self::Fixed,
            Self::Grow { .. } => Self::Grow { max },
            Self::Follow { .. } => Self::Follow { max },
        }
    }
}

/// Bounds of the retransmission timeout, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rto {
    /// Before the first sample: RFC 6298, section 2.1 says 1 s.
    pub initial_us: u32,
    /// RFC 6298, section 2.4 says 1 s (SHOULD); most platforms use 200 to 500 ms.
    pub min_us: u32,
    /// The least that is added to the round-trip time, the G of RFC 6298, section 2.3. A steady path would else time
    /// out just when a retransmission's acknowledgement is due. Linux and FreeBSD add 200 ms.
    pub margin_us: u32,
    /// Whether the margin is added to what the estimate and its doubling give, instead of being the least of a part
    /// (`TCPT_RANGESET` and its `rexmit_slop`): FreeBSD.
    pub adds_margin: bool,
    /// RFC 6298, section 2.5: at least 60 s.
    pub max_us: u32,
    /// After a SYN was lost: RFC 6298, section 5.7 says 3 s.
    pub after_lost_syn_us: u32,
}

/// When to acknowledge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckPolicy {
    /// After this many full-sized segments: 2 at the most (RFC 9293, section 3.8.6.3, SHLD-19); 1 turns delaying off.
    pub segments: u8,
    /// Otherwise after this time: under 0.5 s (MUST-40).
    pub delay_us: u32,
    /// This many data segments at the start of a connection are acknowledged at once.
    pub quick: u8,
}

/// Keepalive probes (RFC 9293, section 3.8.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keepalive {
    /// Silence before the first probe, in seconds; two hours where the application does not say (MUST-27). More than 24
    /// days count as that.
    pub idle_s: u32,
    /// Seconds between probes. More than 71 minutes count as that.
    pub interval_s: u32,
    /// So many unanswered probes end the connection.
    pub probes: u8,
}

impl Keepalive {
    /// Two hours of silence, then nine probes, 75 s apart: what most platforms do when it is turned on.
    pub const USUAL: Self = Self { idle_s: 7_200, interval_s: 75, probes: 9 };
}

/// What a stack does about ECN (RFC 3168).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EcnPolicy {
    /// Never.
    Off,
    /// When the peer asks.
    Accept,
    /// Asks, and agrees.
    Request,
}

/// Where a sender puts PSH (RFC 9293, section 3.9.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Push {
    /// On the segment that carries the last byte of a write.
    WriteEnd,
    /// On the segment that empties the send queue.
    QueueEmpty,
    /// At a write's end, and on the last of several segments that leave at once: Linux, for receivers that merge them.
    TrainEnd,
}

/// Which resets and SYNs in the window end a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlindDefence {
    /// RFC 5961: a reset with exactly the next sequence number; others are challenged.
    Challenge,
    /// RFC 793: any in the window. Old stacks, and FreeBSD with `insecure_rst` and `insecure_syn`.
    None,
}

/// Which data segments count towards [`AckPolicy::segments`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckCount {
    /// As many bytes as so many full-sized segments have (RFC 9293, section 3.8.6.3).
    FullSized,
    /// Segments of any size: FreeBSD.
    Any,
}

/// By how much the right edge of the offered window moves (RFC 9293, section 3.8.6.2.2, MUST-39).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowStep {
    /// By a segment or half of the buffer at least, as the RFC words it.
    Segment,
    /// By any number of bytes while the whole window is at least a segment or a quarter of the buffer, so that it never is
    /// silly: FreeBSD and Linux.
    Byte,
}

/// When a small segment waits for acknowledgements (RFC 9293, section 3.7.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nagle {
    /// While anything is unacknowledged, as the RFC words it.
    AnyOutstanding,
    /// While another small segment is: Minshall's variant, by which a write of several segments never waits for its
    /// tail. Linux.
    SmallOutstanding,
}

/// When a window that reading has opened is advertised immediately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowUpdate {
    /// When it has grown by two segments, or by half of the buffer.
    Segments,
    /// When it has doubled, too: Linux.
    Double,
}

/// Which ICMP errors end a connection that is being opened (RFC 9293, section 3.9.2.2). None ends one that is open
/// (RFC 5927, section 5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IcmpErrors {
    /// None: FreeBSD without `icmp_may_rst`.
    None,
    /// Hard ones.
    Hard,
    /// Also those that say that something is prohibited: FreeBSD.
    Prohibited,
    /// Soft ones too (RFC 5461, section 4.1): Linux.
    All,
}

/// What a SYN with FIN is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SynFin {
    /// Nothing: nobody sends one but to find out what a host is.
    Ignored,
    /// A SYN for a connection that is being opened, nothing for a listener: Linux.
    Crossing,
    /// A SYN; the FIN comes again.
    Syn,
}

/// What a segment in TIME-WAIT is answered with, besides a new connection's beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeWait {
    /// An ACK where it is unacceptable, or a FIN (RFC 9293, section 3.10.7.4).
    Unacceptable,
    /// An ACK where it has one itself and is not just the ACK of the FIN: FreeBSD.
    AnyButTheAck,
}

/// The policy of a stack.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Profile {
    /// Bounds of the retransmission timeout.
    pub rto: Rto,
    /// Whether the receive budget grows.
    pub receive: ReceivePolicy,
    /// TTL and hop limit.
    pub ttl: u8,
    /// What counts towards the number of segments after which to acknowledge.
    pub ack_count: AckCount,
    /// When the window's growth is advertised.
    pub window_update: WindowUpdate,
    /// By how much the window grows.
    pub window_step: WindowStep,
    /// Whether acknowledgements that only report what arrived out of order are gathered, after the first three: for a twentieth of a
    /// round trip, a millisecond at the most (`tcp_comp_sack_delay_ns`): Linux from 4.18 on.
    pub compresses_sacks: bool,
    /// Whether losses are found by time (RFC 8985) where SACK is on; by counting (RFC 6675) otherwise.
    pub rack: bool,
    /// Whether a sender that has room for a part of what it would hand to the device at once waits for more, where an
    /// acknowledgement is near (`tcp_tso_should_defer`): Linux. Packets leave in bursts, which short queues feel. None of
    /// the profiles here says so, because a sender is no faster for it; a simulation of Linux does.
    pub gathers_bursts: bool,
    /// Segments of a train that is pushed at its end, at the least, where [`Push::TrainEnd`] is the way.
    pub least_train: u8,
    /// Where PSH goes.
    pub push: Push,
    /// When small segments wait.
    pub nagle: Nagle,
    /// Whether each acknowledgement counts in full for the smoothed round-trip time (RFC 6298), instead of those of a round trip
    /// together (RFC 7323, appendix G): Linux.
    pub smooths_each_ack: bool,
    /// Whether CUBIC is that of Linux (net/ipv4/tcp_cubic.c): it leaves slow start before the first loss, when acknowledgements
    /// tell that the path is full (`hystart`, which RFC 9406 grew out of); until the first loss it grows by a twentieth in a round
    /// trip at least; a timeout lets it begin anew; and the window that Reno would have grows by 8/15 of a segment throughout.
    pub linux_cubic: bool,
    /// Whether a loss reduces the congestion window itself, instead of what was in flight (RFC 5681, section 3.1, equation 4):
    /// Linux. A sender that something else holds has a window of up to twice its flight, and loses no speed.
    pub reduces_window: bool,
    /// Whether the window is reduced after an idle time (RFC 5681, section 4.1).
    pub restart_after_idle: bool,
    /// Segments by which slow start may grow for one ACK; zero for no bound.
    pub slow_start_limit: u8,
    /// Whether full segments that time out twice are taken for too large, where no ICMP says so (RFC 4821, section 7.7),
    /// and larger ones are searched for (section 7), without which the largest are tried again after ten minutes.
    pub mtu_probing: bool,
    /// Whether all that the buffer holds is taken, even what the window field is too small to offer: FreeBSD.
    pub takes_unoffered: bool,
    /// Whether the offered window stays zero between the handshake and `accept`.
    pub zero_window_until_accept: bool,
    /// How often data is retransmitted in a row before the connection is given up (R2).
    pub retries: u8,
    /// A name for reports.
    pub name: &'static str,
    /// The options of a SYN, in order.
    pub layout: OptionLayout,
    /// Whether window scaling (RFC 7323) is offered and accepted.
    pub window_scaling: bool,
    /// The shift to announce instead of the least that the largest budget needs.
    pub window_shift: Option<u8>,
    /// Whether timestamps (RFC 7323) are offered and accepted.
    pub timestamps: bool,
    /// Whether SACK (RFC 2018) is offered and accepted.
    pub sack: bool,
    /// ECN.
    pub ecn: EcnPolicy,
    /// How many retransmissions of a SYN ask for ECN too; those that follow do without (RFC 3168, section 6.1.1.1).
    pub ecn_retries: u8,
    /// The segment size towards a peer that sent no MSS option: 536, or 1220 over IPv6 (RFC 9293, MUST-15).
    pub default_mss: u16,
    /// Buffers of a new socket.
    pub budgets: Budgets,
    /// How often a SYN is retransmitted. RFC 9293, section 3.8.3, MUST-23: for at least 3 minutes; platforms wait less.
    pub syn_retries: u8,
    /// From this retransmission of a SYN on it has no option but the segment size, in case they are why it is lost
    /// (FreeBSD's `rexmit_drop_options`, by default off there too).
    pub plain_syn_after: Option<u8>,
    /// For how long opening is tried at the most, however many SYNs that makes (FreeBSD's `keepinit`).
    pub open_timeout_ms: Option<u32>,
    /// How often a SYN-ACK is retransmitted.
    pub syn_ack_retries: u8,
    /// How long TIME-WAIT lasts: 2 MSL, 4 minutes by RFC 9293; platforms use 60 s.
    pub time_wait_us: u32,
    /// How long a closed socket waits in FIN-WAIT-2 for the peer's FIN.
    pub fin_wait_2_us: u32,
    /// Keepalive of a new socket; off by default (RFC 9293, section 3.8.4, MUST-25).
    pub keepalive: Option<Keepalive>,
    /// Delayed acknowledgements.
    pub ack: AckPolicy,
    /// The congestion control of a new socket.
    pub congestion: Algorithm,
    /// The initial window in segments, 2 to 64; 10 by RFC 6928, which also bounds it to 14,600 bytes or 2 segments.
    pub initial_window: u8,
    /// What protects against blind resets.
    pub blind_defence: BlindDefence,
    /// Whether this end's FIN is retransmitted with the ACK of the peer's, when both have closed at once: FreeBSD.
    pub repeats_fin: bool,
    /// Challenge ACKs that a socket sends in a second at the most (RFC 5961, section 7).
    pub challenge_acks: u8,
    /// How long partial segments wait under SO_NOPUSH.
    pub no_push_us: u32,
    /// The segment size from which that search begins (RFC 4821, section 7.2); the largest without.
    #[cfg(feature = "path-search")]
    pub initial_mss: Option<u16>,
    /// Which ICMP errors end a connection that is being opened.
    pub icmp_errors: IcmpErrors,
    /// What a SYN with FIN is.
    pub syn_fin: SynFin,
    /// What segments in TIME-WAIT are answered with.
    pub time_wait: TimeWait,
    /// Whether the text of a SYN that crosses this end's is dropped, to come again, and that SYN reported as a copy when it comes
    /// with an ACK, where RFC 9293, section 3.10.7.3, keeps it: Linux.
    pub drops_crossing_text: bool,
    /// Whether a SYN-ACK for a listening port is dropped, where RFC 9293, section 3.10.7.2, asks for a reset: FreeBSD.
    pub drops_syn_ack: bool,
    /// Whether a peer that no longer answers data is sent a reset when it is given up, in case it lives. One that fails
    /// keepalive is in any case.
    pub resets_the_silent: bool,
    /// Data in SYNs, for sockets that ask for it.
    #[cfg(feature = "fast-open")]
    pub fast_open: FastOpenPolicy,
}

const SECOND: u32 = 1_000_000;

impl Profile {
    /// The engine's own: every extension on, RFC values.
    pub const DEFAULT: Self = Self {
        name: "fullpipe",
        layout: OptionLayout {
            order: &[OptionKind::Mss, OptionKind::SackPermitted, OptionKind::Timestamps, OptionKind::WindowScale],
            pad_lone_sack: true,
            fill_fast_open: true,
        },
        window_scaling: true,
        window_shift: None,
        timestamps: true,
        sack: true,
        ecn: EcnPolicy::Accept,
        ecn_retries: 1,
        default_mss: 536,
        ttl: 64,
        budgets: Budgets::all(5),
        receive: ReceivePolicy::Fixed,
        zero_window_until_accept: false,
        rto: Rto {
            initial_us: SECOND,
            min_us: SECOND / 5,
            margin_us: SECOND / 5,
            adds_margin: false,
            max_us: 120 * SECOND,
            after_lost_syn_us: 3 * SECOND,
        },
        smooths_each_ack: false,
        syn_retries: 6,
        plain_syn_after: None,
        open_timeout_ms: None,
        syn_ack_retries: 5,
        retries: 15,
        time_wait_us: 60 * SECOND,
        fin_wait_2_us: 60 * SECOND,
        keepalive: None,
        ack: AckPolicy { segments: 2, delay_us: 40_000, quick: 0 },
        #[cfg(feature = "cubic")]
        congestion: Algorithm::Cubic,
        #[cfg(not(feature = "cubic"))]
        congestion: Algorithm::NewReno,
        initial_window: 10,
        slow_start_limit: 0,
        reduces_window: false,
        linux_cubic: false,
        gathers_bursts: false,
        compresses_sacks: false,
        restart_after_idle: true,
        rack: true,
        push: Push::WriteEnd,
        ack_count: AckCount::FullSized,
        blind_defence: BlindDefence::Challenge,
        repeats_fin: false,
        takes_unoffered: false,
        window_step: WindowStep::Segment,
        challenge_acks: 10,
        no_push_us: 200_000,
        mtu_probing: false,
        #[cfg(feature = "path-search")]
        initial_mss: None,
        least_train: 2,
        nagle: Nagle::AnyOutstanding,
        window_update: WindowUpdate::Segments,
        icmp_errors: IcmpErrors::Hard,
        syn_fin: SynFin::Crossing,
        time_wait: TimeWait::Unacceptable,
        drops_crossing_text: false,
        drops_syn_ack: false,
        resets_the_silent: true,
        #[cfg(feature = "fast-open")]
        fast_open: FastOpenPolicy::OFF,
    };

    /// Linux 6.x as it comes: quick acknowledgements at the start, a receive buffer that grows.
    #[cfg(feature = "platforms")]
    pub const LINUX: Self = Self {
        name: "linux",
        budgets: Budgets { receive: 45, out_of_order: 1_000, transmit: 1_000, unacknowledged: 2_900 },
        receive: ReceivePolicy::Grow { max: 2_100 },
        ack: AckPolicy { segments: 2, delay_us: 40_000, quick: 16 },
        window_shift: Some(7),
        push: Push::TrainEnd,
        window_step: WindowStep::Byte,
        #[cfg(feature = "fast-open")]
        fast_open: FastOpenPolicy::LINUX,
        nagle: Nagle::SmallOutstanding,
        window_update: WindowUpdate::Double,
        icmp_errors: IcmpErrors::All,
        drops_crossing_text: true,
        resets_the_silent: false,
        reduces_window: true,
        linux_cubic: true,
        smooths_each_ack: true,
        ..Self::DEFAULT
    };

    /// FreeBSD 14: MSS, scale, SACK, timestamps in that order; 30 ms of least timeout.
    #[cfg(feature = "platforms")]
    pub const FREEBSD: Self = Self {
        name: "freebsd",
        layout: OptionLayout {
            order: &[OptionKind::Mss, OptionKind::WindowScale, OptionKind::SackPermitted, OptionKind::Timestamps],
            pad_lone_sack: false,
            fill_fast_open: false,
        },
        budgets: Budgets { receive: 45, out_of_order: 1_000, transmit: 23, unacknowledged: 1_440 },
        receive: ReceivePolicy::Grow { max: 1_440 },
        rto: Rto {
            initial_us: SECOND,
            min_us: 30_000,
            margin_us: SECOND / 5,
            adds_margin: true,
            max_us: 64 * SECOND,
            after_lost_syn_us: 3 * SECOND,
        },
        syn_retries: 12,
        open_timeout_ms: Some(75_000),
        retries: 12,
        ack: AckPolicy { segments: 2, delay_us: 40_000, quick: 0 },
        push: Push::QueueEmpty,
        ack_count: AckCount::Any,
        repeats_fin: true,
        takes_unoffered: true,
        window_step: WindowStep::Byte,
        window_shift: Some(6),
        #[cfg(feature = "fast-open")]
        fast_open: FastOpenPolicy::FREEBSD,
        icmp_errors: IcmpErrors::Prohibited,
        syn_fin: SynFin::Syn,
        time_wait: TimeWait::AnyButTheAck,
        drops_syn_ack: true,
        ..Self::DEFAULT
    };

    /// NetBurner as its 2009 headers tell: no extensions, 0.2 s of delayed ACK, 3 s of initial timeout.
    pub const NETBURNER: Self = Self {
        name: "netburner",
        layout: OptionLayout { order: &[OptionKind::Mss], pad_lone_sack: false, fill_fast_open: false },
        window_scaling: false,
        timestamps: false,
        sack: false,
        ecn: EcnPolicy::Off,
        default_mss: 512,
        budgets: Budgets::all(5),
        zero_window_until_accept: true,
        rto: Rto {
            initial_us: 3 * SECOND,
            min_us: SECOND / 2,
            margin_us: SECOND / 20,
            adds_margin: false,
            max_us: 64 * SECOND,
            after_lost_syn_us: 3 * SECOND,
        },
        retries: 12,
        ack: AckPolicy { segments: 2, delay_us: 200_000, quick: 0 },
        congestion: Algorithm::NewReno,
        initial_window: 2,
        slow_start_limit: 1,
        rack: false,
        ..Self::DEFAULT
    };

    /// The initial window in bytes for segments of `mss` bytes (RFC 6928, section 2, with the number configurable).
    pub fn initial_window_bytes(&self, mss: u32) -> u32 {
        let segments = u32::from(self.initial_window.clamp(2, 64));
        (segments * mss).min((segments * 1460).max(2 * mss))
    }
}

/// What is in force of the fields that only other platforms need: without the feature `platforms` what
/// [`Profile::DEFAULT`] says, so that the rest is compiled out.
impl Profile {
    const fn worn(&self) -> &Self {
        const PLAIN: &Profile = &Profile::DEFAULT;
        if cfg!(feature = "platforms") { self } else { PLAIN }
    }

    pub(crate) const fn receive(&self) -> ReceivePolicy {
        self.worn().receive
    }

    pub(crate) const fn smooths_each_ack(&self) -> bool {
        self.worn().smooths_each_ack
    }

    pub(crate) const fn push(&self) -> Push {
        self.worn().push
    }

    pub(crate) const fn ack_count(&self) -> AckCount {
        self.worn().ack_count
    }

    pub(crate) const fn blind_defence(&self) -> BlindDefence {
        self.worn().blind_defence
    }

    pub(crate) const fn window_step(&self) -> WindowStep {
        self.worn().window_step
    }

    pub(crate) const fn window_shift(&self) -> Option<u8> {
        self.worn().window_shift
    }

    pub(crate) const fn nagle(&self) -> Nagle {
        self.worn().nagle
    }

    pub(crate) const fn window_update(&self) -> WindowUpdate {
        self.worn().window_update
    }

    pub(crate) const fn icmp_errors(&self) -> IcmpErrors {
        self.worn().icmp_errors
    }

    pub(crate) const fn syn_fin(&self) -> SynFin {
        self.worn().syn_fin
    }

    pub(crate) const fn drops_crossing_text(&self) -> bool {
        self.worn().drops_crossing_text
    }

    pub(crate) const fn drops_syn_ack(&self) -> bool {
        self.worn().drops_syn_ack
    }

    pub(crate) const fn plain_syn_after(&self) -> Option<u8> {
        self.worn().plain_syn_after
    }

    pub(crate) const fn time_wait(&self) -> TimeWait {
        self.worn().time_wait
    }

    pub(crate) const fn resets_the_silent(&self) -> bool {
        self.worn().resets_the_silent
    }

    pub(crate) const fn repeats_fin(&self) -> bool {
        self.worn().repeats_fin
    }

    pub(crate) const fn takes_unoffered(&self) -> bool {
        self.worn().takes_unoffered
    }
}

impl Default for Profile {
    fn default() -> Self {
        Self::DEFAULT
    }
}
