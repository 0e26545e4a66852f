//! The application's calls (RFC 9293, section 3.10), and how a connection ends.

use fullpipe_units::Instant;

use super::{Context, Events, Failure, Fin, Kept, Probe, Socket, SocketOptions, State, info::size_goal, timer::Timer};
use crate::{
    divide,
    pool::Pool,
    profile::{Budgets, ReceivePolicy, WindowUpdate},
    time::{self, Millis, Stamp},
};

/// How a write is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Writing {
    /// As any.
    New,
    /// One that waited for room goes on.
    GoesOn,
    /// More follows at once.
    More,
}

impl Socket {
    /// Copies what fits of `data` into the send queue (RFC 9293, section 3.10.2) and returns how much.
    pub(crate) fn write(&mut self, cx: &mut Context<'_, '_>, data: &[u8], how: Writing) -> usize {
        if self.fin != Fin::Open || self.failure.is_some() || matches!(self.state, State::Closed | State::TimeWait) {
            return 0;
        }
        self.kept.set_more(how == Writing::More);
        // Behind what waits already, for Nagle's algorithm or a window, the time begins, too, where it has not begun.
        if self.gathers() && (self.tx.unsent_bytes() == 0 || !self.timers.is_set(Timer::NoPush)) {
            self.timers.set(Timer::NoPush, cx.now, cx.profile.no_push_us);
        }
        self.raise_after_a_while(cx);
        self.train = 0;
        let mss = self.mss();
        if how != Writing::GoesOn {
            self.note_application_limit(mss);
        }
        let data = match self.kept.unsent_low() {
            Some(mark) => &data[..data.len().min(self.below_mark(mark, mss) as usize)],
            None => data,
        };
        self.tx.write(cx.pool, data, mss, how != Writing::More)
    }

    /// Bytes that a write takes where it ends at `mark` bytes that wait: as many as fill what leaves at once.
    fn below_mark(&self, mark: u32, mss: u32) -> u32 {
        let (waits, chunk) = (self.tx.unsent_bytes(), size_goal(self.max_wnd, mss));
        mark.max(waits).div_ceil(chunk).saturating_mul(chunk).saturating_sub(waits)
    }

    /// Whether partial segments wait for more data.
    pub(super) const fn gathers(&self) -> bool {
        self.kept.gathers()
    }

    /// What waits for more data leaves.
    pub(crate) fn flush(&mut self) {
        self.force_small = self.tx.unsent_bytes() > 0;
    }

    /// See [`Stack::touch`](crate::stack::Stack::touch).
    #[cfg(feature = "platforms")]
    pub(crate) fn touch(&self, pool: &Pool<'_>, buffers: u16) -> u32 {
        self.tx.touch(pool, buffers)
    }

    /// So many segments leave without waiting for more.
    #[cfg(feature = "platforms")]
    pub(crate) const fn push(&mut self, segments: u8) {
        self.burst_left = segments;
    }

    /// What is written next goes into a segment of its own.
    pub(crate) fn end_record(&mut self, cx: &mut Context<'_, '_>) {
        self.tx.end_record(cx.pool);
    }

    /// Whether a write would be taken, in part at least.
    pub(crate) fn can_write(&self, pool: &Pool<'_>) -> bool {
        self.fin == Fin::Open
            && matches!(self.state, State::SynSent | State::SynReceived | State::Established | State::CloseWait)
            && self.kept.unsent_low().is_none_or(|mark| self.tx.unsent_bytes().saturating_mul(2) < mark)
            && self.tx.has_room(pool, self.mss())
    }

    /// Whether the application may still write.
    pub(crate) const fn is_write_open(&self) -> bool {
        matches!(self.fin, Fin::Open) && !matches!(self.state, State::Closed | State::TimeWait)
    }

    /// Gives up to `most` bytes of what has arrived to `take` (RFC 9293, section 3.10.3), piece by piece, and returns how much.
    #[inline]
    pub(crate) fn read(&mut self, cx: &mut Context<'_, '_>, most: usize, take: impl FnMut(&[u8])) -> usize {
        if self.is_waiting() {
            return 0;
        }
        let len = self.rx.read(cx.pool, most, take);
        if len > 0 {
            self.after_read(cx);
        }
        len
    }

    /// Whether a read would give data, the end of it or an error rather than "not yet".
    #[inline]
    pub const fn has_news_to_read(&self) -> bool {
        self.rx.readable > 0 || !self.state.can_receive() || self.failure.is_some()
    }

    /// The first piece of what has arrived, in place.
    pub(crate) fn peek<'p>(&self, pool: &'p Pool<'_>) -> &'p [u8] {
        if self.is_waiting() { &[] } else { self.rx.peek(pool) }
    }

    /// Copies what has arrived into `out`, leaves it there, and returns how much.
    pub(crate) fn peek_into(&self, pool: &Pool<'_>, out: &mut [u8]) -> usize {
        if self.is_waiting() { 0 } else { self.rx.peek_into(pool, out) }
    }

    /// Whether what came with the peer's SYN has to wait for the handshake's end (RFC 9293, section 3.10.7.3, fourth).
    fn is_waiting(&self) -> bool {
        self.state == State::SynReceived && !self.is_early()
    }

    /// Drops `len` bytes of that piece.
    pub(crate) fn consume(&mut self, cx: &mut Context<'_, '_>, len: usize) {
        self.rx.consume(cx.pool, len);
        self.after_read(cx);
    }

    /// A window update is sent immediately: the peer may be waiting for it.
    #[cfg_attr(not(all(target_pointer_width = "32", not(target_family = "wasm"))), inline)]
    pub(super) fn after_read(&mut self, cx: &Context<'_, '_>) {
        self.grow_budget(cx);
        let growth = self.rx.window_growth(cx.pool, self.window_limit());
        if self.state.can_receive() && growth > 0 {
            // An update for each segment read would double the traffic: one for what the peer could miss.
            let half = self.rx.capacity() / 2;
            let mss = u32::from(self.own_mss);
            let least = match cx.profile.window_update() {
                WindowUpdate::Segments => half.min(2 * mss),
                WindowUpdate::Double => self.rx.window().max(half.min(2 * mss)),
            };
            if growth >= least || self.rx.window() < mss {
                self.ack_now = true;
            }
        }
    }

    /// What waits for a delayed acknowledgement gets it now.
    pub(crate) fn acknowledge(&mut self) {
        // Behind a gap what waits is a report.
        self.ack_now = self.ack_now || (self.timers.is_set(Timer::DelayedAck) && !self.rx.has_gap());
    }

    /// Doubles the budget until it is four times what the application reads in a round trip: twice for a sender that fills
    /// it each round trip, and as much again so that a sender in slow start, which doubles, is not held back.
    fn grow_budget(&mut self, cx: &Context<'_, '_>) {
        let policy = cx.profile.receive();
        let Some(max) = policy.max() else { return };
        if self.rx.budget >= max || cx.now < self.grow_at.instant() {
            return;
        }
        let read_to = self.rx.nxt - self.rx.readable;
        let copied = read_to.distance_from(self.grow_from);
        if matches!(policy, ReceivePolicy::Follow { .. }) {
            self.follow(copied, max);
        } else {
            while copied >= self.rx.capacity() / 4 && self.rx.budget < max {
                self.rx.budget = self.rx.budget.saturating_mul(2).min(max);
                self.rx.early_budget = self.rx.early_budget.max(self.rx.budget);
            }
        }
        self.grow_from = read_to;
        self.grow_at = Stamp::new(time::after(cx.now, self.rtt.srtt().max(1_000)));
    }

    /// The bound up to which the budget grows, when `copied` bytes were read in a round trip.
    fn follow(&mut self, copied: u32, max: u16) {
        const AT_FIRST: u32 = 10;
        let segment = u32::from(self.own_mss.max(1));
        // `tcp_init_buffer_space`: no more than the first window.
        let before = if self.grow_read > 0 { self.grow_read } else { self.rx.capacity().min(AT_FIRST * segment) };
        if !cfg!(feature = "platforms") || copied <= before {
            return;
        }
        self.grow_read = copied;
        let twice = 2 * u64::from(copied);
        let bound = twice + 2 * divide::by(twice * u64::from(copied - before), before);
        let bound = u16::try_from(divide::by(bound, segment)).unwrap_or(u16::MAX);
        self.grow_to = self.grow_to.max(bound.min(max));
    }

    /// Whether everything that the peer will ever send has been read.
    pub(crate) const fn is_at_end(&self) -> bool {
        self.rx.readable == 0 && !self.state.can_receive() && !matches!(self.state, State::SynSent | State::SynReceived)
    }

    /// No more will be written (RFC 9293, section 3.10.4); what was written is still sent, then the FIN.
    pub(crate) fn shutdown_write(&mut self) {
        if self.fin != Fin::Open {
            return;
        }
        if matches!(self.state, State::SynSent | State::SynReceived | State::Established | State::CloseWait) {
            self.fin = Fin::Due;
        }
    }

    /// The application lets go: no more is written or read. Unread data means that the peer's was lost, which it is
    /// notified by a reset (RFC 9293, section 3.6.1, SHLD-3; RFC 2525, section 2.17).
    pub(crate) fn close(&mut self, cx: &mut Context<'_, '_>) {
        self.orphan = true;
        if self.state == State::TimeWait {
            self.rx.clear(cx.pool);
            return;
        }
        if self.rx.readable > 0 && self.failure.is_none() {
            self.abort(cx);
            return;
        }
        if self.state == State::SynSent && self.tx.unsent_bytes() + self.tx.outstanding() == 0 {
            // RFC 9293, section 3.10.4: nothing was sent, with the SYN neither, and nothing is to be.
            self.end(cx, None);
            return;
        }
        self.shutdown_write();
        if self.state == State::FinWait2 {
            self.timers.set(Timer::State, cx.now, cx.profile.fin_wait_2_us);
        }
    }

    /// RFC 9293, section 3.10.5: a reset, and everything is dropped.
    pub(crate) fn abort(&mut self, cx: &mut Context<'_, '_>) {
        let tell = self.state.is_synchronized() && self.state != State::TimeWait || self.state == State::SynReceived;
        self.end(cx, Some(Failure::Aborted));
        // A second call does not take the first one's reset back.
        self.reset_due |= tell;
    }

    /// Whether the slot can be used for another connection.
    pub(crate) const fn is_free(&self) -> bool {
        matches!(self.state, State::Closed)
            && (self.orphan || self.unaccepted && self.rx.readable == 0)
            && !self.reset_due
    }

    /// Whether the application has let go.
    pub(crate) const fn is_orphan(&self) -> bool {
        self.orphan
    }

    /// The connection is over: buffers go back to the pool, except what the application may still read after an
    /// orderly end.
    pub(super) fn end(&mut self, cx: &mut Context<'_, '_>, failure: Option<Failure>) {
        self.state = State::Closed;
        self.failure = self.failure.or(failure);
        self.tx.clear(cx.pool);
        match failure {
            // What came in order before the peer, or the path, ended it has been acknowledged: it is still read.
            None | Some(Failure::Reset | Failure::Refused | Failure::Unreachable) if !self.orphan => {
                self.rx.clear_early(cx.pool);
            }
            _ => self.rx.clear(cx.pool),
        }
        self.timers.stop_all();
        self.probe = Probe::None;
        self.ack_now = false;
        self.events.set(Events::CLOSED);
        self.events.set(Events::READABLE);
        self.events.set(Events::WRITABLE);
    }

    /// Both ends have closed; the socket only answers late segments.
    pub(super) fn enter_time_wait(&mut self, cx: &mut Context<'_, '_>) {
        self.state = State::TimeWait;
        self.tx.clear(cx.pool);
        self.timers.stop_all();
        self.timers.set(Timer::State, cx.now, cx.profile.time_wait_us);
        self.events.set(Events::CLOSED);
    }

    /// A new connection between the same ends begins before TIME-WAIT is over.
    pub(crate) fn leave_time_wait(&mut self, cx: &mut Context<'_, '_>) {
        self.end(cx, None);
    }

    /// Gives everything back, whatever the state.
    pub(crate) fn release(&mut self, cx: &mut Context<'_, '_>) {
        self.end(cx, None);
        self.rx.clear(cx.pool);
    }

    /// Buffers held: received, early, waiting, sent.
    pub fn buffers(&self) -> Budgets {
        let (receive, out_of_order) = self.rx.held();
        let (transmit, unacknowledged) = (self.tx.held_waiting(), self.tx.held_sent());
        Budgets { receive, out_of_order, transmit, unacknowledged }
    }

    /// Sets options; budgets take effect for what comes.
    pub(crate) fn set_options(&mut self, options: SocketOptions, now: Instant) {
        self.kept = Kept::new(&options);
        self.rx.budget = options.budgets.receive;
        self.rx.early_budget = options.budgets.out_of_order;
        self.tx.transmit_budget = options.budgets.transmit;
        self.tx.unacknowledged_budget = options.budgets.unacknowledged;
        self.last_heard = Millis::new(now);
        self.arm_silence(now);
        self.note_user_timeout(now);
    }
}
