//! The two applications at work: a writer on the sending host, a reader on the receiving one.

use fullpipe_tcp::socket::Info;
use fullpipe_units::Instant;

use crate::{
    application::{Application, Left, Reader, nanos},
    end::End,
    spec::{SendBuffer, Spec},
};

static ZEROS: [u8; 64 << 10] = [0; 64 << 10];
/// A send buffer that grows holds so many congestion windows of payload, in tenths: Linux reserves twice the window in
/// buffers of 2,304 B for each 1,448 B (`tcp_sndbuf_expand`), of which 83 % is payload.
const WINDOWS_TENTHS: u64 = 26;

/// Payload of the largest segment that Linux hands to a device that cuts it up.
const LARGEST_SEGMENT: u64 = 65_495;

/// The most that the receiving application reads at once, in bytes: iperf3's.
const MOST_READ: usize = 128 << 10;

/// The sending application.
#[derive(Debug)]
pub(crate) struct Writer {
    application: Application,
    left: Left,
    buffer: SendBuffer,
    budgets: bool,
    /// Bytes that the send buffer takes now.
    pub(crate) limit: u64,
    /// Bytes of the write under way that are not in the buffer yet.
    current: u64,
    /// Waits for room.
    pub(crate) blocked: bool,
    /// When it does something by itself.
    pub(crate) next_at: Option<Instant>,
    /// Bytes of requests and answers that it read.
    asked: u64,
    closed: bool,
    started: bool,
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
            limit: if spec.sender.budgets { held } else { buffer.initial.get() },
            current: 0,
            blocked: false,
            next_at: None,
            asked: 0,
            closed: false,
            started: false,
        }
    }

    /// Reads what the other end sent, and writes what is due.
    pub(crate) fn work(&mut self, now: Instant, end: &mut End) {
        let Some(id) = end.socket else { return };
        if !matches!(self.application, Application::Bulk { .. } | Application::Paced { .. } | Application::Waits) {
            let mut heard = [0; 2048];
            while let Ok(len @ 1..) = end.stack.read(now, id, &mut heard) {
                self.asked += len as u64;
            }
        }
        let Some(info) = end.stack.info(id).filter(|info| info.state.is_synchronized()) else { return };
        if !self.budgets {
            self.limit = self.limit.max((u64::from(info.cwnd) * WINDOWS_TENTHS / 10).min(self.buffer.max.get()));
        }
        let mut queued = u64::from(info.outstanding + info.unsent);
        if self.blocked && !self.is_woken(queued) {
            return;
        }
        loop {
            if self.current == 0 && !self.begin(now, &info, end) {
                break;
            }
            let room = if self.budgets { u64::MAX } else { self.room(queued, &info) };
            let len = self.current.min(room).min(ZEROS.len() as u64) as usize;
            let taken = end.stack.write(now, id, &ZEROS[..len]).unwrap_or(0) as u64;
            queued += taken;
            self.current -= taken;
            self.left.take(taken);
            self.blocked = self.current > 0 && (taken < len as u64 || len == 0);
            if self.blocked {
                return;
            }
            if matches!(self.application, Application::Messages { .. }) && self.next_at.is_some() {
                break;
            }
        }
        if self.left.is_over() && self.current == 0 && !self.closed {
            self.closed = end.stack.shutdown_write(now, id).is_ok();
        }
    }

    /// What the next write can leave in the buffer.
    fn room(&self, queued: u64, info: &Info) -> u64 {
        let room = self.limit.saturating_sub(queued);
        if room == 0 || !self.buffer.fills_segments {
            return room;
        }
        // One super-packet, of at most half of the window (`tcp_bound_to_half_wnd`).
        let mss = u64::from(info.mss.max(1));
        room.max((LARGEST_SEGMENT.min(u64::from(info.snd_wnd) / 2) / mss).max(1) * mss)
    }

    fn is_woken(&self, queued: u64) -> bool {
        let most = if self.buffer.wakes_at_third { self.limit * 2 / 3 } else { self.limit.saturating_sub(1) };
        self.budgets || queued <= most
    }

    /// Begins the next write; whether there is one now.
    fn begin(&mut self, now: Instant, info: &Info, end: &mut End) -> bool {
        let most = match self.application {
            Application::Bulk { write } => u64::from(write),
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
pub(crate) struct Reading {
    reader: Reader,
    application: Application,
    /// Payload that it has read.
    pub(crate) read: u64,
    next_at: Option<Instant>,
    /// Bytes of the response or message under way that are missing.
    missing: u64,
    is_open: bool,
    asks_at: Option<Instant>,
    pub(crate) ended: bool,
    waits_for_data: bool,
    acks_when_read: bool,
    /// A segment that was pushed has come and was not acknowledged for that yet.
    pub(crate) pushed: bool,
}

impl Reading {
    pub(crate) fn new(spec: &Spec) -> Self {
        let asks_at = matches!(spec.application, Application::Responses { .. }).then_some(Instant::ZERO);
        let missing = if let Application::Messages { size } = spec.application { size.into() } else { 0 };
        Self {
            reader: spec.reader,
            application: spec.application,
            read: 0,
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

    /// Reads what it may, and asks or answers.
    pub(crate) fn work(&mut self, now: Instant, end: &mut End) {
        let Some(id) = end.socket else { return };
        if !end.stack.socket(id).is_some_and(|socket| socket.state().is_synchronized()) {
            return;
        }
        self.is_open = true;
        match self.reader {
            Reader::Eager => {
                // Where nothing waits and more can come, a read would only say so.
                while !self.ended && end.stack.socket(id).is_some_and(|socket| socket.has_news_to_read()) {
                    match end.stack.discard(now, id, MOST_READ) {
                        Ok(0) => self.ended = true,
                        Ok(len) => self.took(now, len as u64, end),
                        Err(_) => break,
                    }
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
    fn acknowledge(&mut self, now: Instant, end: &mut End) {
        if core::mem::take(&mut self.pushed)
            && self.acks_when_read
            && let Some(id) = end.socket
        {
            end.stack.acknowledge(now, id).ok();
        }
    }

    fn took(&mut self, now: Instant, len: u64, end: &mut End) {
        self.read += len;
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
