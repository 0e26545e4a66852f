//! The two applications at work: a writer on the sending host, a reader on the receiving one.

use std::sync::LazyLock;

use fullpipe_tcp::{congestion::Algorithm, socket::Info};
use fullpipe_units::Instant;

use crate::{
    application::{Application, Left, Reader, nanos},
    end::End,
    filling::{Filling, Then},
    spec::{SendBuffer, Spec},
};

/// What applications write, and what segments carry.
pub(crate) static ZEROS: LazyLock<Box<[u8]>> = LazyLock::new(|| vec![0; 64 << 10].into_boxed_slice());
/// A send buffer that grows holds so many congestion windows of payload, in tenths: Linux reserves twice the window in
/// buffers of 2,304 B for each 1,448 B (`tcp_sndbuf_expand`), of which 83 % is payload.
const WINDOWS_TENTHS: u64 = 26;

/// Payload of a full send buffer of paced segments, in percent; what a specification calls a buffer is payload.
const SEND_PAYLOAD: u64 = 83;
/// What Linux reserves for each segment of the congestion window, twice, or three times with BBR (`tcp_sndbuf_expand`).
const SEGMENT_RESERVE: u64 = 2_304;

/// The most that the receiving application reads at once, in bytes: iperf3's.
const MOST_READ: usize = 128 << 10;

/// A buffer that holds so much payload, as its platform counts it: Linux charges headers, too.
fn counted(buffer: SendBuffer, payload: u64) -> u64 {
    if buffer.fills_segments { payload * 100 / SEND_PAYLOAD } else { payload }
}

/// Payload that was written and not acknowledged.
fn queued(info: &Info) -> u64 {
    u64::from(info.outstanding + info.unsent)
}

/// What a writer asks of its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Nothing more: what it wrote leaves as far as the windows let it.
    Rest,
    /// What it wrote leaves as far as the windows let it, then it goes on.
    All,
    /// So many segments leave at once, as far as the windows let them, then it goes on.
    Piece(u8),
}

/// The sending application.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Writer {
    /// Waits for room.
    pub(crate) blocked: bool,
    closed: bool,
    budgets: bool,
    /// Nothing of the write under way was written yet.
    is_new: bool,
    /// Linux counts the writer as held by the buffer (`TCP_CHRONO_SNDBUF_LIMITED`).
    pub(crate) counts_as_held: bool,
    /// Something was sent since Linux was last asked who holds the sender.
    has_sent: bool,
    started: bool,
    /// When it does something by itself.
    pub(crate) next_at: Option<Instant>,
    /// Bytes that the send buffer takes now, as its platform counts them.
    pub(crate) limit: u64,
    /// How often Linux reserves room for the congestion window.
    reserves: u64,
    /// The congestion window and the segment size for which the limit was looked at last, as it is when a connection begins.
    grown_for: Option<(u32, u32)>,
    buffer: SendBuffer,
    /// Bytes of the write under way that are not in the buffer yet.
    current: u64,
    /// The queue as Linux fills it.
    filling: Filling,
    /// Since when the writer waits for room, and nanoseconds that the write under way waited before.
    waits_since: Option<Instant>,
    left: Left,
    application: Application,
    /// Bytes of requests and answers that it read.
    asked: u64,
    waited: u64,
}

impl Writer {
    pub(crate) fn new(spec: &Spec) -> Self {
        let buffer = spec.sender.send;
        let budgets = spec.sender.profile.budgets;
        let held = u64::from(budgets.transmit + budgets.unacknowledged) * u64::from(spec.path.mtu - 40);
        Self {
            application: spec.application,
            left: Left::new(spec.bytes),
            buffer,
            budgets: spec.sender.budgets,
            reserves: if spec.sender.profile.congestion == Algorithm::Bbr { 3 } else { 2 },
            limit: if spec.sender.budgets { held } else { counted(buffer, buffer.initial.get()) },
            current: 0,
            blocked: false,
            next_at: None,
            asked: 0,
            closed: false,
            started: false,
            filling: Filling::default(),
            grown_for: None,
            is_new: true,
            waits_since: None,
            waited: 0,
            has_sent: false,
            counts_as_held: false,
        }
    }

    /// Reads what the other end sent, and writes what is due.
    pub(crate) fn work(&mut self, now: Instant, end: &mut End) -> Next {
        let Some(id) = end.socket else { return Next::Rest };
        if !matches!(self.application, Application::Bulk { .. } | Application::Paced { .. } | Application::Waits) {
            let mut heard = [0; 2048];
            while let Ok(len @ 1..) = end.stack.read(now, id, &mut heard) {
                self.asked += len as u64;
            }
        }
        let Some(socket) = end.stack.socket(id).filter(|socket| socket.state().is_synchronized()) else {
            return Next::Rest;
        };
        let mut info = socket.info();
        if !self.budgets {
            self.grow(&info);
        }
        // What is queued is most of what is charged, and mostly enough to know.
        if self.blocked && !(self.is_woken(queued(&info)) && self.is_woken(self.charged(&info))) {
            return Next::Rest;
        }
        if self.blocked {
            (self.counts_as_held, self.has_sent) = (false, false);
        }
        self.wake(now);
        loop {
            if self.current == 0 && !self.begin(now, &info, end) {
                break;
            }
            let len = self.current.min(self.room(&info)).min(ZEROS.len() as u64) as usize;
            let data = &ZEROS[..len];
            let taken = if self.is_new { end.stack.write(now, id, data) } else { end.stack.write_on(now, id, data) }
                .unwrap_or(0) as u64;
            self.is_new = false;
            info.unsent += taken as u32;
            self.current -= taken;
            self.left.take(taken);
            self.blocked = self.current > 0 && (taken < len as u64 || len == 0);
            if self.counts_as_linux() {
                self.filling.add(taken);
            }
            if self.blocked {
                self.filling.wait(&info);
                self.waits_since = Some(now);
                return Next::Rest;
            }
            if self.counts_as_linux() {
                match self.filling.then(self.current == 0, &info) {
                    // The end of a write is sent before the next one begins.
                    Then::PushAll if self.current > 0 || !self.left.is_over() => return Next::All,
                    Then::PushPiece => {
                        // What was written has not left: the burst is what it was.
                        let burst = end.stack.socket(id).map_or(1, |socket| socket.burst() / info.mss.max(1));
                        return Next::Piece(burst.clamp(1, u8::MAX.into()) as u8);
                    }
                    Then::PushAll | Then::GoOn => {}
                }
            }
            if matches!(self.application, Application::Messages { .. }) && self.next_at.is_some() {
                break;
            }
        }
        if self.left.is_over() && self.current == 0 && !self.closed {
            self.closed = end.stack.shutdown_write(now, id).is_ok();
        }
        Next::Rest
    }

    /// What was written has left as far as it may; whether any of it did.
    pub(crate) fn note_left(&mut self, any: bool, end: &mut End) {
        if !self.counts_as_linux() {
            return;
        }
        if !any {
            self.filling.note_nothing_sent();
        } else if let Some(socket) = end.socket.and_then(|id| end.stack.socket(id)) {
            self.filling.note_sent(&socket.info(), socket.burst());
        }
    }

    /// Something was sent, while the writer waits or not.
    pub(crate) const fn note_sent(&mut self) {
        self.has_sent = true;
    }

    /// Notes whether the send buffer holds the sender by the rule of Linux (`tcp_cwnd_validate`): it is asked only when something
    /// is sent, and says so where all was sent then, the writer waits, and the congestion window is not used up. It stands until the
    /// writer is woken.
    pub(crate) const fn note_held(&mut self, info: &Info) {
        let begins = self.has_sent && info.unsent == 0 && !info.is_window_used;
        self.counts_as_held = self.blocked && (self.counts_as_held || begins);
        self.has_sent = false;
    }

    /// The writer no longer waits; a write that did so for too long has ended.
    fn wake(&mut self, now: Instant) {
        let Some(since) = self.waits_since.take() else { return };
        self.waited += now.since(since).as_nanos() as u64;
        if let Application::Bulk { patience: Some(patience), .. } = self.application
            && self.waited >= patience.get() * 1_000
        {
            self.current = 0;
        }
    }

    /// Whether the buffer is counted, and the wait for it, as Linux does it.
    pub(crate) const fn counts_as_linux(&self) -> bool {
        self.buffer.fills_segments && !self.budgets
    }

    /// Whether its writer waits for room that may come with what leaves.
    pub(crate) const fn waits_as_linux(&self) -> bool {
        self.blocked && self.counts_as_linux()
    }

    /// The limit of a buffer that grows with the congestion window.
    fn grow(&mut self, info: &Info) {
        if !self.buffer.fills_segments {
            let wanted = u64::from(info.cwnd) * WINDOWS_TENTHS / 10;
            self.limit = self.limit.max(wanted.min(self.buffer.max.get()));
            return;
        }
        // Linux looks where the writer waits, and not while the window is used up (`tcp_should_expand_sndbuf`).
        let window = (info.cwnd, info.mss);
        if self.grown_for != Some(window)
            && (self.grown_for.is_none() || (self.blocked && !self.filling.used_window_up(info)))
        {
            self.grown_for = Some(window);
            let mss = info.mss.max(1);
            let wanted = u64::from(info.cwnd / mss) * self.reserves * SEGMENT_RESERVE;
            self.limit = self.limit.max(wanted.min(counted(self.buffer, self.buffer.max.get())));
        }
    }

    /// What is queued takes so much of the buffer.
    pub(crate) fn charged(&self, info: &Info) -> u64 {
        let queued = queued(info);
        if self.counts_as_linux() { queued + self.filling.overhead(info) } else { queued }
    }

    /// What the next write can leave in the buffer.
    fn room(&mut self, info: &Info) -> u64 {
        if self.budgets {
            u64::MAX
        } else if self.counts_as_linux() {
            let is_free = self.charged(info) < self.limit;
            self.filling.room(info, is_free)
        } else {
            self.limit.saturating_sub(self.charged(info))
        }
    }

    fn is_woken(&self, charged: u64) -> bool {
        let most = if self.buffer.wakes_at_third { self.limit * 2 / 3 } else { self.limit.saturating_sub(1) };
        self.budgets || charged <= most
    }

    /// Begins the next write; whether there is one now.
    fn begin(&mut self, now: Instant, info: &Info, end: &mut End) -> bool {
        let most = match self.application {
            Application::Bulk { write, .. } => u64::from(write),
            Application::Paced { rate, write } => {
                let due = *self.next_at.get_or_insert(now);
                if due > now {
                    return false;
                }
                self.next_at = Some(due + core::time::Duration::from_nanos(nanos(write.into(), rate)));
                u64::from(write)
            }
            Application::Responses { request, response, .. } => {
                if self.asked < u64::from(request) {
                    return false;
                }
                self.asked -= u64::from(request);
                u64::from(response)
            }
            Application::Messages { size } => {
                // Two pieces, the second right behind the first, with a chance for the first to leave alone; then an
                // answer of one byte is waited for.
                let half = u64::from(size / 2).max(1);
                if self.next_at.take().is_some() {
                    u64::from(size) - half
                } else if !self.started || self.asked > 0 {
                    self.asked -= u64::from(self.started);
                    self.started = true;
                    self.next_at = Some(now);
                    half
                } else {
                    return false;
                }
            }
            Application::Waits => {
                let held = end.socket.and_then(|id| end.stack.socket(id)).map(fullpipe_tcp::socket::Socket::buffers);
                if held.is_none_or(|held| held.transmit + held.unacknowledged > 0) {
                    return false;
                }
                let budget = end.stack.config().profile.budgets.transmit;
                u64::from(budget) * u64::from(info.mss)
            }
        };
        (self.is_new, self.waited) = (true, 0);
        self.current = self.left.most(most);
        self.current > 0
    }

    /// Whether its next write depends on what the other end says to the last one.
    pub(crate) const fn awaits_answer(&self) -> bool {
        matches!(self.application, Application::Responses { .. } | Application::Messages { .. })
    }

    /// Whether all was written.
    pub(crate) const fn is_done(&self) -> bool {
        self.closed
    }

    /// When it acts by itself.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.next_at.filter(|_| !self.blocked && !self.closed)
    }
}

/// The receiving application.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Reading {
    is_open: bool,
    pub(crate) ended: bool,
    waits_for_data: bool,
    acks_when_read: bool,
    /// A segment that was pushed has come and was not acknowledged for that yet.
    pub(crate) pushed: bool,
    next_at: Option<Instant>,
    asks_at: Option<Instant>,
    reader: Reader,
    application: Application,
    /// Bytes of the response or message under way that are missing.
    missing: u64,
}

impl Reading {
    pub(crate) fn new(spec: &Spec) -> Self {
        let asks_at = matches!(spec.application, Application::Responses { .. }).then_some(Instant::ZERO);
        let missing = if let Application::Messages { size } = spec.application { size.into() } else { 0 };
        Self {
            reader: spec.reader,
            application: spec.application,
            next_at: None,
            missing,
            is_open: false,
            asks_at,
            ended: false,
            waits_for_data: false,
            acks_when_read: spec.receiver.acks_when_read
                && !matches!(spec.application, Application::Responses { .. } | Application::Messages { .. }),
            pushed: false,
        }
    }

    /// Whether it takes all that arrives at once, whatever it is.
    pub(crate) const fn only_counts(spec: &Spec) -> bool {
        matches!(spec.reader, Reader::Eager)
            && !matches!(spec.application, Application::Responses { .. } | Application::Messages { .. })
    }

    /// Reads what it may, and asks or answers.
    pub(crate) fn work(&mut self, now: Instant, end: &mut End) {
        let Some(id) = end.socket else { return };
        let Some(socket) = end.stack.socket(id).filter(|socket| socket.state().is_synchronized()) else { return };
        let mut has_news = socket.has_news_to_read();
        self.is_open = true;
        match self.reader {
            Reader::Eager => {
                // Where nothing waits and more can come, a read would only say so.
                while !self.ended && has_news {
                    match end.stack.discard(now, id, MOST_READ) {
                        Ok(0) => self.ended = true,
                        Ok(len) => self.took(now, len as u64, end),
                        Err(_) => break,
                    }
                    has_news = end.stack.socket(id).is_some_and(|socket| socket.has_news_to_read());
                }
                self.acknowledge(now, end);
            }
            Reader::Slow { rate, chunk } => {
                while !self.ended && self.next_at.is_none_or(|at| at <= now) {
                    let most = (chunk as usize).min(MOST_READ);
                    match end.stack.discard(now, id, most) {
                        Ok(0) => self.ended = true,
                        Ok(len) => {
                            let from = self.next_at.filter(|_| !self.waits_for_data).unwrap_or(now);
                            self.next_at = Some(from + core::time::Duration::from_nanos(nanos(len as u64, rate)));
                            self.waits_for_data = false;
                            self.took(now, len as u64, end);
                        }
                        Err(_) => {
                            self.waits_for_data = true;
                            self.acknowledge(now, end);
                            break;
                        }
                    }
                }
            }
        }
        if let (Some(at), Application::Responses { request, response, .. }) = (self.asks_at, self.application)
            && at <= now
        {
            self.asks_at = None;
            self.missing = response.into();
            let ask = &ZEROS[..(request as usize).min(ZEROS.len())];
            // A request is small: the buffer of a host that sends nothing else always takes it.
            end.stack.write(now, id, ask).ok();
        }
    }

    /// Everything was read: what was pushed is acknowledged.
    #[inline]
    fn acknowledge(&mut self, now: Instant, end: &mut End) {
        if core::mem::take(&mut self.pushed)
            && self.acks_when_read
            && let Some(id) = end.socket
        {
            end.stack.acknowledge(now, id).ok();
        }
    }

    fn took(&mut self, now: Instant, len: u64, end: &mut End) {
        if self.missing == 0 {
            return;
        }
        self.missing = self.missing.saturating_sub(len);
        if self.missing > 0 {
            return;
        }
        match self.application {
            Application::Responses { think, .. } => self.asks_at = Some(now + think.into()),
            Application::Messages { size } => {
                self.missing = size.into();
                if let Some(id) = end.socket {
                    end.stack.write(now, id, &ZEROS[..1]).ok();
                }
            }
            _ => {}
        }
    }

    /// When it acts by itself.
    pub(crate) fn next(&self) -> Option<Instant> {
        let reads = self.next_at.filter(|_| !self.waits_for_data && !self.ended);
        match (reads, self.asks_at.filter(|_| self.is_open)) {
            (Some(reads), Some(asks)) => Some(reads.min(asks)),
            (reads, asks) => reads.or(asks),
        }
    }
}
