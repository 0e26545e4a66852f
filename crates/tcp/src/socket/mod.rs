//! One connection: the state machine of RFC 9293 over the two halves in `recv` and `send`.
//!
//! A socket has the house's shape: `on_segment`, `on_timeout`, `poll_transmit`, `next_timeout`. It knows neither IP
//! headers nor other sockets; the [stack](crate::stack) does. What it needs from outside comes with each call in a
//! `Context`.

mod ack;
mod arrive;
mod calls;
mod fast;
mod info;
mod kept;
mod leave;
mod open;
#[cfg_attr(not(feature = "bbr"), path = "unpaced.rs")]
mod pace;
mod path;
mod rack;
mod search;
#[cfg(all(test, feature = "platforms", feature = "alloc"))]
mod short_ways;
mod timer;
mod train;
mod vocabulary;

use fullpipe_units::{Instant, SeqNum};

#[cfg(feature = "path-search")]
use self::search::Search;
pub(crate) use self::{calls::Writing, fast::Part, leave::Outgoing, open::Opening};
pub use self::{
    info::Info,
    vocabulary::{Counts, Endpoint, Events, Failure, SocketOptions, State, Tuple},
};
use self::{kept::Kept, rack::Rack, timer::Timers};
use crate::{
    congestion::{Controller, Window},
    pool::Pool,
    profile::Profile,
    recv::Receiver,
    rtt::Rtt,
    send::Sender,
    tally::Tally,
    time::{Millis, Stamp},
    wire::tcp::{Options, SackBlocks},
};

/// What a call into a socket needs from outside.
pub(crate) struct Context<'a, 'p> {
    pub(crate) now: Instant,
    pub(crate) profile: &'a Profile,
    pub(crate) pool: &'a mut Pool<'p>,
    /// Bytes that the device takes in one burst; the segment size where it doesn't split.
    pub(crate) burst: u32,
}

/// What the arrival of a segment asks for besides what `poll_transmit` gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// Nothing.
    None,
    /// A reset for the segment itself (RFC 9293, section 3.10.7).
    Reset,
    /// In TIME-WAIT, a new connection may begin with this SYN, at a sequence number past this one.
    Reopen(SeqNum),
}

/// How the handshake's own SYN stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Syn {
    /// To be sent.
    Due,
    /// Sent.
    Waiting,
    /// To be retransmitted.
    Again,
    /// Acknowledged.
    Done,
}

/// How the FIN stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fin {
    /// The application has not closed.
    Open,
    /// To be sent behind the data, or retransmitted.
    Due,
    /// Sent.
    Waiting,
    /// Acknowledged.
    Done,
}

/// What makes a segment leave that the windows would not let leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Probe {
    None,
    /// RFC 8985, section 7.
    TailLoss,
    /// RFC 9293, section 3.8.6.1, and keepalive (3.8.4): an empty segment from before the window.
    Window,
}

/// Where congestion control stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Nothing is lost.
    Open,
    /// Fast recovery.
    Recovery,
    /// After a timeout.
    Loss,
}

/// Whether common segments go a short way, which does what the long one would: not on a small device, whose flash is counted.
#[cfg(not(all(test, feature = "platforms", feature = "alloc")))]
pub(crate) const fn takes_short_ways() -> bool {
    cfg!(feature = "platforms") && !crate::IS_DEVICE
}

/// The same; a test compares the two.
#[cfg(all(test, feature = "platforms", feature = "alloc"))]
pub(crate) fn takes_short_ways() -> bool {
    short_ways::are_on()
}

/// One connection.
#[derive(Debug)]
#[repr(C)]
pub struct Socket {
    // What each segment asks for; the halves and the counts begin with that, too.
    state: State,
    syn: Syn,
    fin: Fin,
    phase: Phase,
    probe: Probe,
    failure: Option<Failure>,
    pub(crate) events: Events,
    /// The application has let go of the socket.
    orphan: bool,
    reset_due: bool,
    /// Waiting for `accept`, with the window shut.
    pub(crate) unaccepted: bool,
    timestamps_on: bool,
    sack_on: bool,
    ecn_on: bool,
    ack_now: bool,
    /// ECN: echo until the peer says CWR.
    echo_ce: bool,
    /// The override of silly-window avoidance: the next segment may be of any size.
    force_small: bool,
    /// Segments that still leave with the burst that has begun.
    burst_left: u8,
    /// Data segments that have left at once: since the last call or arrival. Two are a train.
    train: u8,
    quick_left: u8,
    /// Acknowledgements since data last came in order that only report what is out of order, and segments that wait for one.
    reports: u8,
    /// Without SACK the peer counts duplicate ACKs: as many are owed as segments came out of order.
    duplicates_due: u8,
    snd_shift: u8,
    rcv_shift: u8,
    probes_unanswered: u8,
    /// Zero-window probes since the window last opened.
    persist_backoff: u8,
    duplicate_acks: u8,
    /// Whether the congestion window was used up in the flight under way.
    cwnd_limited: bool,
    /// ECN: a reduction is to be announced; none more until `cwr_until` is acknowledged.
    cwr_due: bool,
    /// What this end announces, by the device's MTU.
    own_mss: u16,
    /// The largest data segment received, at most `own_mss`: what counts as full-sized for acknowledging.
    seen_mss: u16,
    /// What the peer announced.
    peer_mss: u16,
    /// What the path is known to take: TCP payload without options.
    path_mss: u16,
    grow_to: u16,
    snd_wnd: u32,
    max_wnd: u32,
    snd_wl1: SeqNum,
    snd_wl2: SeqNum,
    ts_recent: u32,
    /// In about seconds.
    ts_recent_at: u32,
    ts_offset: u32,
    last_ack_sent: SeqNum,
    last_heard: Millis,
    /// Bytes received since the last ACK.
    unacked_rx: u32,
    grow_at: Stamp,
    /// Receive-buffer growth: what was read since, until when.
    grow_from: SeqNum,
    timers: Timers,
    rx: Receiver,
    kept: Kept,
    counts: Tally<Counts>,
    tx: Sender,
    // What a sender asks for.
    rtt: Rtt,
    window: Window,
    rack: Rack,
    /// The most bytes outstanding of late, and until what is acknowledged that and `cwnd_limited` stand.
    most_in_flight: u32,
    most_until: SeqNum,
    /// When the oldest unacknowledged data began to wait, for the user timeout.
    waiting_since: Millis,
    last_data_sent: Stamp,
    /// Recovery ends when this is acknowledged (RFC 6582's recover).
    recover: SeqNum,
    /// Segments that duplicate ACKs without SACK tell to have left the network, in bytes.
    reno_credit: u32,
    /// The end of the last small segment sent.
    small_end: SeqNum,
    prr_out: u32,
    #[cfg(feature = "path-search")]
    search: Search,
    controller: Controller,
    // What is seldom asked for.
    #[cfg(feature = "bbr")]
    pacer: pace::Pacer,
    irs: SeqNum,
    /// When that was last learnt.
    path_learnt_at: Millis,
    challenge_window: Millis,
    /// Proportional rate reduction (RFC 9937): delivered and sent since recovery began, the flight when it began.
    prr_delivered: u32,
    prr_flight: u32,
    cwr_until: SeqNum,
    /// The most that was read in a round trip, and the buffers up to which the budget grows for it.
    grow_read: u32,
    /// Fast open.
    pub(crate) fast: Part,
    pub(crate) tuple: Tuple,
    /// Seconds that have to pass from then before a larger one is tried.
    #[cfg(feature = "path-search")]
    path_pause_s: u16,
    /// Whether this end opened passively (RFC 9293, section 3.10.7.4: what a reset in SYN-RECEIVED does).
    passive: bool,
    /// Whether both SYNs carry the window-scale option.
    scaling: bool,
    challenges_left: u8,
}

impl Socket {
    /// The state.
    pub const fn state(&self) -> State {
        self.state
    }

    /// Why the connection ended, if it ended badly.
    pub const fn failure(&self) -> Option<Failure> {
        self.failure
    }

    /// What was counted; without the feature `counts`, nothing.
    pub const fn counts(&self) -> &Counts {
        self.counts.or(&Counts::NONE)
    }

    /// Whether the application may read and write: the handshake is over, or fast open does not wait for it.
    pub fn is_open(&self) -> bool {
        self.state.is_synchronized() || self.is_early()
    }

    /// The number of this end's SYN, which nothing has acknowledged yet.
    fn iss(&self) -> SeqNum {
        self.tx.una - 1
    }

    /// `SND.NXT`, the FIN and the SYN included.
    #[inline]
    fn snd_nxt(&self) -> SeqNum {
        if self.syn == Syn::Due {
            return self.iss();
        }
        match self.fin {
            Fin::Waiting | Fin::Done => self.tx.nxt + 1,
            // A FIN to be retransmitted was sent once: the state tells.
            Fin::Due if self.fin_was_sent() => self.tx.nxt + 1,
            Fin::Open | Fin::Due => self.tx.nxt,
        }
    }

    /// `SND.UNA`, the FIN and the SYN included.
    #[inline]
    fn snd_una(&self) -> SeqNum {
        match (self.syn, self.fin) {
            (Syn::Due | Syn::Waiting | Syn::Again, _) => self.iss(),
            (Syn::Done, Fin::Done) => self.tx.una + 1,
            (Syn::Done, _) => self.tx.una,
        }
    }

    const fn fin_was_sent(&self) -> bool {
        matches!(self.state, State::FinWait1 | State::Closing | State::LastAck)
    }

    /// Whether SACK is agreed upon.
    const fn uses_sack(&self) -> bool {
        cfg!(feature = "sack") && self.sack_on
    }

    /// Whether timestamps are agreed upon.
    const fn uses_timestamps(&self) -> bool {
        cfg!(feature = "timestamps") && self.timestamps_on
    }

    /// Whether ECN is agreed upon.
    const fn uses_ecn(&self) -> bool {
        cfg!(feature = "ecn") && self.ecn_on
    }

    /// The data bytes of a full segment now: the peer's limit and the path's, less the options (RFC 6691).
    #[cfg_attr(all(target_pointer_width = "32", not(target_family = "wasm")), inline(never))]
    fn mss(&self) -> u32 {
        let options = if self.uses_timestamps() { 12 } else { 0 };
        u32::from(self.peer_mss.min(self.path_mss)).saturating_sub(options).max(1)
    }

    /// The largest window that the header can tell.
    fn window_limit(&self) -> u32 {
        u32::from(u16::MAX) << self.rcv_shift
    }

    /// The next time at which `on_timeout` has something to do.
    #[inline]
    pub(crate) fn next_timeout(&self) -> Instant {
        self.timers.next()
    }
}

/// The options of a segment that this socket sends, before SACK blocks are added.
fn base_options(timestamps: Option<crate::wire::tcp::Timestamps>) -> Options {
    Options { timestamps, sack: SackBlocks::EMPTY, ..Options::default() }
}
