//! The two applications at work: a writer on the sending host, a reader on the receiving one.

use std::sync::LazyLock;

use fullpipe_tcp::{congestion::Algorithm, socket::Info};
use fullpipe_units::Instant;

use crate::{
    application::{Application, Left, Reader, nanos},
    end::End,
    spec::{SendBuffer, Spec},
};

/// What applications write, and what segments carry.
pub(crate) static ZEROS: LazyLock<Box<[u8]>> = LazyLock::new(|| vec![0; 64 << 10].into_boxed_slice());
/// A send buffer that grows holds so many congestion windows of payload, in tenths: Linux reserves twice the window in
/// buffers of 2,304 B for each 1,448 B (`tcp_sndbuf_expand`), of which 83 % is payload.
const WINDOWS_TENTHS: u64 = 26;

/// Payload of the largest segment that Linux hands to a device that cuts it up.
const LARGEST_SEGMENT: u64 = 65_495;
/// What Linux charges a send buffer for each segment that it hands to the device, besides the payload: seen on Linux 6.18
/// (`ss -tm`: 41,008 B for eleven segments with 31,856 B, 809,808 B for 217 with 628,432 B).
const SEGMENT_OVERHEAD: u64 = 832;
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

/// The largest segment that Linux fills: at most half of the window (`tcp_bound_to_half_wnd`).
fn goal(info: &Info) -> u64 {
    let mss = u64::from(info.mss.max(1));
    (LARGEST_SEGMENT.min(u64::from(info.max_wnd) / 2) / mss).max(1) * mss
}

/// The sending application.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Writer {
    /// Waits for room.
    pub(crate) blocked: bool,
    closed: bool,
    budgets: bool,
    /// A part of that segment has left, and the rest is filled up again.
    fills: bool,
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
    buffer: SendBuffer,
    /// Bytes in the last of the segments that were not sent, which Linux fills before it looks for room for another.
    last: u64,
    /// Bytes of the write under way that are not in the buffer yet.
    current: u64,
    /// Bytes since Linux last had all sent that there was (`pushed_seq`).
    since_push: u64,
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
            last: 0,
            fills: false,
            since_push: 0,
            is_new: true,
            waits_since: None,
            waited: 0,
            has_sent: false,
            counts_as_held: false,
        }
    }

    /// Reads what the other end sent, and writes what is due. Whether it goes on as soon as what it wrote has left.
    pub(crate) fn work(&mut self, now: Instant, end: &mut End) -> bool {
        let Some(id) = end.socket else { return false };
        if !matches!(self.application, Application::Bulk { .. } | Application::Paced { .. } | Application::Waits) {
            let mut heard = [0; 2048];
            while let Ok(len @ 1..) = end.stack.read(now, id, &mut heard) {
                self.asked += len as u64;
            }
        }
        let Some(socket) = end.stack.socket(id).filter(|socket| socket.state().is_synchronized()) else { return false };
        let mut info = socket.info();
        if !self.budgets {
            self.grow(&info);
        }
        let mut queued = u64::from(info.outstanding + info.unsent);
        // What is charged is no less than the payload.
        if self.blocked && !self.is_woken(queued) {
            return false;
        }
        let burst = socket.burst();
        if self.blocked && !self.is_woken(self.charged(queued, &info, burst)) {
            return false;
        }
        self.counts_as_held = false;
        self.wake(now);
        let goal = goal(&info);
        // Linux sends a segment piece by piece and fills it up again after each; here all of it has left at once.
        let is_ahead = core::mem::take(&mut self.fills) && info.unsent == 0;
        self.last = if is_ahead { goal - u64::from(burst) } else { self.last.min(info.unsent.into()) };
        loop {
            if self.current == 0 && !self.begin(now, &info, end) {
                break;
            }
            let room =
                if self.budgets { u64::MAX } else { self.room(queued, goal, self.charged(queued, &info, burst)) };
            let len = self.current.min(room).min(ZEROS.len() as u64) as usize;
            let data = &ZEROS[..len];
            let taken = if self.is_new { end.stack.write(now, id, data) } else { end.stack.write_on(now, id, data) }
                .unwrap_or(0) as u64;
            self.is_new = false;
            queued += taken;
            info.unsent += taken as u32;
            self.current -= taken;
            self.left.take(taken);
            self.blocked = self.current > 0 && (taken < len as u64 || len == 0);
            if self.blocked {
                // Before it waits, Linux has all sent that there is.
                self.since_push = if info.unsent > 0 { 0 } else { self.since_push };
                self.waits_since = Some(now);
                return false;
            }
            if self.buffer.fills_segments {
                self.since_push += taken;
                self.last = if self.last < goal { self.last + taken } else { taken };
                if self.current == 0 && !self.left.is_over() {
                    // The end of a write is sent before the next one begins.
                    (self.since_push, self.fills) = (0, false);
                    return true;
                }
                if self.current > 0 && self.last >= goal {
                    if self.since_push > u64::from(info.max_wnd / 2) {
                        // After half of the window all leaves that there is (`forced_push`), and a new segment needs room.
                        (self.since_push, self.fills) = (0, false);
                        return true;
                    }
                    if is_ahead || self.last == u64::from(info.unsent) {
                        // A piece of the segment leaves, and it is filled up again; one that leaves whole isn't.
                        self.fills = u64::from(burst) < goal;
                        return true;
                    }
                }
            }
            if matches!(self.application, Application::Messages { .. }) && self.next_at.is_some() {
                break;
            }
        }
        if self.left.is_over() && self.current == 0 && !self.closed {
            self.closed = end.stack.shutdown_write(now, id).is_ok();
        }
        false
    }

    /// What was written has left as far as the windows let it; whether any of it did.
    pub(crate) const fn note_left(&mut self, any: bool) {
        // With nothing gone, the segment is as full as it was.
        self.fills = self.fills && any;
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

    /// The limit of a buffer that grows with the congestion window.
    fn grow(&mut self, info: &Info) {
        let windows = u64::from(info.cwnd);
        let wanted = if self.buffer.fills_segments {
            windows * self.reserves * SEGMENT_RESERVE / u64::from(info.mss.max(1))
        } else {
            windows * WINDOWS_TENTHS / 10
        };
        self.limit = self.limit.max(wanted.min(counted(self.buffer, self.buffer.max.get())));
    }

    /// What `queued` bytes of payload take of the buffer.
    pub(crate) fn charged(&self, queued: u64, info: &Info, burst: u32) -> u64 {
        if !self.buffer.fills_segments {
            return queued;
        }
        let sent = u64::from(info.outstanding).div_ceil(burst.max(1).into());
        queued + (sent + u64::from(info.unsent).div_ceil(goal(info))) * SEGMENT_OVERHEAD
    }

    /// What the next write can leave in the buffer, of which `charged` is taken.
    const fn room(&self, queued: u64, goal: u64, charged: u64) -> u64 {
        if !self.buffer.fills_segments {
            self.limit.saturating_sub(queued)
        } else if self.last > 0 && self.last < goal {
            goal - self.last
        } else if charged < self.limit {
            goal
        } else {
            0
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
