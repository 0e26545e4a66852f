//! When what was written left and was acknowledged (`SO_TIMESTAMPING`), and what held a connection for how long.

use std::collections::VecDeque;

use fullpipe_tcp::socket::Socket;
use fullpipe_units::Instant;

/// What a time is of, as `SCM_TSTAMP_*`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Sent = 0,
    Scheduled = 1,
    Acked = 2,
}

/// A time that an application asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) stage: Stage,
    /// The number of the write's last byte.
    pub(crate) key: u32,
    pub(crate) at: Instant,
}

/// A write whose times are wanted.
#[derive(Clone, Copy, Debug)]
struct Write {
    end: u64,
    key: u32,
    has_left: bool,
}

/// What holds a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Limit {
    Idle,
    Busy,
    PeersWindow,
}

/// The times of one socket.
#[derive(Clone, Debug)]
pub(crate) struct Times {
    writes: VecDeque<Write>,
    stamps: VecDeque<Stamp>,
    limit: Limit,
    since: Instant,
    busy_us: u64,
    window_us: u64,
}

const TX_SOFTWARE: i32 = 1 << 1;
const TX_SCHED: i32 = 1 << 8;
const TX_ACK: i32 = 1 << 9;

impl Times {
    pub(crate) const fn new(now: Instant) -> Self {
        Self {
            writes: VecDeque::new(),
            stamps: VecDeque::new(),
            limit: Limit::Idle,
            since: now,
            busy_us: 0,
            window_us: 0,
        }
    }

    /// A write ended at this place of the stream.
    pub(crate) fn wrote(&mut self, end: u64, key: u32) {
        self.writes.push_back(Write { end, key, has_left: false });
    }

    /// The next time to tell.
    pub(crate) fn take(&mut self) -> Option<Stamp> {
        self.stamps.pop_front()
    }

    /// Looks at where the connection stands now; `wanted` are the flags of `SO_TIMESTAMPING`.
    pub(crate) fn note(&mut self, now: Instant, socket: &Socket, wanted: i32) {
        let (info, acked) = (socket.info(), socket.counts().bytes_acked);
        let left = acked + u64::from(info.outstanding);
        (self.busy_us, self.window_us) = self.spent_us(now);
        self.since = now;
        let has_room = info.snd_wnd.saturating_sub(info.outstanding) >= info.unsent.min(info.mss);
        let may_send = info.cwnd.saturating_sub(info.in_flight) >= info.mss;
        self.limit = match info.outstanding + info.unsent {
            0 => Limit::Idle,
            _ if info.unsent > 0 && !has_room && may_send => Limit::PeersWindow,
            _ => Limit::Busy,
        };
        let asked = |flag: i32| wanted & flag != 0;
        for write in self.writes.iter_mut().filter(|write| !write.has_left && write.end <= left) {
            write.has_left = true;
            let stages = [(Stage::Scheduled, asked(TX_SCHED)), (Stage::Sent, asked(TX_SOFTWARE))];
            let wanted = stages.into_iter().filter(|(_, asked)| *asked);
            self.stamps.extend(wanted.map(|(stage, _)| Stamp { stage, key: write.key, at: now }));
        }
        while let Some(write) = self.writes.front().copied().filter(|write| write.end <= acked) {
            self.writes.pop_front();
            if asked(TX_ACK) {
                self.stamps.push_back(Stamp { stage: Stage::Acked, key: write.key, at: now });
            }
        }
    }

    /// For how long it has been busy, and of that held by the peer's window, in microseconds.
    pub(crate) fn spent_us(&self, now: Instant) -> (u64, u64) {
        let us = (now.as_nanos() - self.since.as_nanos()) / 1_000;
        let busy = if self.limit == Limit::Idle { 0 } else { us };
        let window = if self.limit == Limit::PeersWindow { us } else { 0 };
        (self.busy_us + busy, self.window_us + window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_counts_from_when_it_began() {
        let at = |us: u64| Instant::from_nanos(us * 1_000);
        let mut times = Times::new(at(0));
        assert_eq!(times.spent_us(at(500)), (0, 0));
        (times.limit, times.since) = (Limit::PeersWindow, at(500));
        assert_eq!(times.spent_us(at(800)), (300, 300));
        (times.busy_us, times.window_us) = times.spent_us(at(800));
        (times.limit, times.since) = (Limit::Busy, at(800));
        assert_eq!(times.spent_us(at(900)), (400, 300));
    }
}
