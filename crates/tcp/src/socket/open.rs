//! How a connection begins: active, passive, or from a cookie.

use fullpipe_units::{Instant, SeqNum};

use super::{
    Context, Counts, Events, Fin, Kept, Part, Phase, Probe, Socket, SocketOptions, State, Syn, Tuple,
    rack::Rack,
    timer::{Timer, Timers},
};
use crate::{
    congestion::{Controller, Window},
    profile::EcnPolicy,
    recv::Receiver,
    rtt::Rtt,
    send::Sender,
    tally::Tally,
    time::{self, Millis, Stamp},
    wire::{
        ip,
        tcp::{Flags, MAX_SHIFT, Options, Segment},
    },
};

/// How a new socket starts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opening {
    pub(crate) tuple: Tuple,
    pub(crate) iss: SeqNum,
    pub(crate) ts_offset: u32,
    /// The announced segment size, by the device's MTU.
    pub(crate) own_mss: u16,
    /// What the path is known to take of it, and since when.
    pub(crate) path_mss: u16,
    pub(crate) path_learnt_at: Instant,
    pub(crate) options: SocketOptions,
    pub(crate) fast: Part,
}

impl Socket {
    /// A closed socket, for a free slot.
    fn closed(cx: &Context<'_, '_>, opening: &Opening) -> Self {
        let Opening { tuple, iss, ts_offset, own_mss, path_mss, path_learnt_at, options, fast } = *opening;
        let profile = cx.profile;
        let budgets = options.budgets;
        let now = Millis::new(cx.now);
        let mut socket = Self {
            tuple,
            state: State::Closed,
            kept: Kept::new(&options),
            failure: None,
            events: Events::default(),
            counts: Tally::new(Counts::NONE),
            timers: Timers::new(),
            irs: SeqNum::new(0),
            syn: Syn::Due,
            fin: Fin::Open,
            passive: false,
            orphan: false,
            reset_due: false,
            unaccepted: false,
            rx: Receiver::new(budgets.receive, budgets.out_of_order, profile.window_step()),
            tx: Sender::new(budgets.transmit, budgets.unacknowledged),
            snd_wnd: 0,
            max_wnd: 0,
            snd_wl1: SeqNum::new(0),
            snd_wl2: SeqNum::new(0),
            snd_shift: 0,
            rcv_shift: 0,
            scaling: false,
            // Until the peer has said: data written early is cut for what is likely.
            peer_mss: own_mss,
            own_mss,
            path_mss,
            // Without a heap no path is remembered (`stack::paths`): a second conversion of `now` would only cost flash.
            path_learnt_at: if cfg!(feature = "alloc") { Millis::new(path_learnt_at) } else { now },
            #[cfg(feature = "path-search")]
            path_pause_s: 0,
            #[cfg(feature = "path-search")]
            search: super::search::Search::new(if path_mss < own_mss { path_mss } else { u16::MAX }),
            timestamps_on: false,
            sack_on: false,
            ecn_on: false,
            ts_recent: 0,
            ts_recent_at: time::about_seconds(cx.now),
            ts_offset,
            last_ack_sent: SeqNum::new(0),
            ack_now: false,
            reports: 0,
            duplicates_due: 0,
            unacked_rx: 0,
            quick_left: options.ack.quick,
            echo_ce: false,
            challenge_window: now,
            challenges_left: profile.challenge_acks,
            rtt: Rtt::new(),
            window: Window::new(0, u32::MAX),
            controller: Controller::new(profile.congestion),
            phase: Phase::Open,
            recover: iss,
            duplicate_acks: 0,
            reno_credit: 0,
            prr_delivered: 0,
            prr_out: 0,
            prr_flight: 0,
            rack: Rack::default(),
            #[cfg(feature = "bbr")]
            pacer: super::pace::Pacer::default(),
            probe: Probe::None,
            probes_unanswered: 0,
            cwnd_limited: false,
            most_in_flight: 0,
            most_until: iss,
            last_data_sent: Stamp::new(cx.now),
            last_heard: now,
            waiting_since: now,
            cwr_due: false,
            cwr_until: iss,
            persist_backoff: 0,
            force_small: false,
            small_end: iss,
            train: 0,
            burst_left: 0,
            seen_mss: 1,
            fast,
            grow_from: SeqNum::new(0),
            grow_read: 0,
            grow_to: profile.receive().bound_at_first(budgets.receive),
            grow_at: Stamp::new(cx.now),
        };
        socket.rx.set_segment(own_mss, cx.pool);
        socket.tx.start(iss + 1);
        socket.take_samples();
        socket
    }

    /// An active open (RFC 9293, section 3.10.1): the SYN leaves at the next `poll_transmit`.
    pub(crate) fn connect(cx: &Context<'_, '_>, opening: &Opening) -> Self {
        let mut socket = Self::closed(cx, opening);
        socket.state = State::SynSent;
        // Until the peer answers, everything that the profile offers is on offer.
        let offers = !socket.kept.no_options();
        socket.timestamps_on = cx.profile.timestamps && offers;
        socket.sack_on = cfg!(feature = "sack") && cx.profile.sack && offers;
        socket.ecn_on = Self::asks_for_ecn(cx);
        socket.scaling = cx.profile.window_scaling && offers;
        socket.rcv_shift = if offers { socket.shift_to_announce(cx) } else { 0 };
        socket.arm_silence(cx.now);
        if let Some(ms) = opening.options.open_timeout_ms.filter(|_| cfg!(feature = "platforms")) {
            socket.timers.set(Timer::State, cx.now, ms.saturating_mul(1_000));
        }
        socket
    }

    /// A passive open: `syn` arrived at a listening port (RFC 9293, section 3.10.7.2, third).
    pub(crate) fn accept(cx: &Context<'_, '_>, opening: &Opening, syn: &Segment<'_>) -> Self {
        let mut socket = Self::closed(cx, opening);
        socket.state = State::SynReceived;
        socket.passive = true;
        socket.unaccepted = true;
        socket.arm_silence(cx.now);
        socket.take_peer_syn(cx, syn);
        let asks = syn.flags.has(Flags::ECE) && syn.flags.has(Flags::CWR);
        socket.ecn_on = cfg!(feature = "ecn") && cx.profile.ecn != EcnPolicy::Off && asks;
        socket
    }

    /// A connection whose handshake a SYN cookie carried: `ack` is the peer's third segment, `syn` what the cookie
    /// remembers of the first.
    pub(crate) fn from_cookie(cx: &Context<'_, '_>, opening: &Opening, syn: &Segment<'_>) -> Self {
        let mut socket = Self::accept(cx, opening, syn);
        socket.syn = Syn::Waiting;
        socket.last_ack_sent = socket.rx.nxt;
        socket.offered_window(cx);
        socket
    }

    /// Sequence numbers, segment size and options of the peer's SYN.
    pub(super) fn take_peer_syn(&mut self, cx: &Context<'_, '_>, syn: &Segment<'_>) {
        let first = matches!(self.state, State::SynReceived) && self.passive;
        // What this end would not tell it doesn't hear, but for the size of what the peer takes.
        let none = Options { mss: syn.options.mss, ..Options::default() };
        let offered = if self.kept.no_options() { &none } else { &syn.options };
        self.irs = syn.seq;
        self.rx.start(syn.seq + 1);
        self.grow_from = syn.seq + 1;
        // RFC 9293, section 3.7.1, MUST-15: the default where the option is absent. A size of nothing is a lie; 64
        // bytes keep the option space of a segment inside it.
        let default = if ip::is_v6(self.tuple.remote.addr) { 1220 } else { cx.profile.default_mss };
        self.peer_mss = offered.mss.unwrap_or(default).max(64);
        // RFC 7323, section 2.2: both SYNs must carry the option, and shifts above 14 count as 14.
        let scales = if first { cx.profile.window_scaling } else { self.scaling };
        let scaling = scales && offered.window_scale.is_some();
        self.scaling = scaling;
        self.snd_shift = if scaling { offered.window_scale.unwrap_or(0).min(MAX_SHIFT) } else { 0 };
        self.rcv_shift = if scaling { self.shift_to_announce(cx) } else { 0 };
        let timestamps = if first { cx.profile.timestamps } else { self.uses_timestamps() };
        self.timestamps_on = timestamps && offered.timestamps.is_some();
        if let (true, Some(timestamps)) = (self.uses_timestamps(), offered.timestamps) {
            (self.ts_recent, self.ts_recent_at) = (timestamps.val, time::about_seconds(cx.now));
        }
        let sack = if first { cx.profile.sack } else { self.uses_sack() };
        self.sack_on = sack && offered.sack_permitted;
        // RFC 7323, section 2.2: the window in a SYN is never scaled.
        self.snd_wnd = u32::from(syn.window);
        self.max_wnd = self.max_wnd.max(self.snd_wnd);
        (self.snd_wl1, self.snd_wl2) = (syn.seq, self.tx.una);
    }

    /// The least shift that lets the largest receive budget be offered.
    fn shift_to_announce(&self, cx: &Context<'_, '_>) -> u8 {
        if !cx.profile.window_scaling {
            return 0;
        }
        if let Some(shift) = cx.profile.window_shift() {
            return shift.min(MAX_SHIFT);
        }
        let most = cx.profile.receive().max().unwrap_or(0).max(self.rx.budget);
        let bytes = u32::from(most) * u32::from(self.own_mss);
        (0..MAX_SHIFT).find(|shift| bytes >> shift <= u32::from(u16::MAX)).unwrap_or(MAX_SHIFT)
    }
}
