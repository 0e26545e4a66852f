//! How Linux fills a send queue (`tcp_sendmsg_locked`): segments of up to 64 KB, for which room is looked for only when they begin.
//!
//! What is *not* here: what leaves, which the engine decides, and when a writer that waits is woken.

use std::collections::VecDeque;

use fullpipe_tcp::socket::Info;

/// Payload of the largest segment that Linux hands to a device that cuts it up.
const LARGEST_SEGMENT: u64 = 65_495;
/// What Linux charges a send buffer for each segment that it hands to the device, besides the payload: seen on Linux 6.18
/// (`ss -tm`: 41,008 B for eleven segments with 31,856 B, 809,808 B for 217 with 628,432 B).
const SEGMENT_OVERHEAD: u64 = 832;

/// The largest segment that Linux fills: at most half of the window (`tcp_bound_to_half_wnd`).
fn goal(info: &Info) -> u64 {
    let mss = u64::from(info.mss.max(1));
    (LARGEST_SEGMENT.min(u64::from(info.max_wnd) / 2) / mss).max(1) * mss
}

/// What happens after a part of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    /// The next part.
    GoOn,
    /// One piece of the only segment leaves first (`tcp_push_one`).
    PushPiece,
    /// All that there is leaves first.
    PushAll,
}

/// The queue as Linux counts it.
#[derive(Debug, Default)]
pub(crate) struct Filling {
    /// Bytes written and bytes sent, in all.
    written: u64,
    sent: u64,
    /// Bytes in the last of the segments that were not sent, which is filled before room is looked for.
    last: u64,
    /// Bytes since all was last sent that there was (`pushed_seq`).
    since_push: u64,
    /// Where the pieces end that were handed to the device and not acknowledged: each is charged for.
    pieces: VecDeque<u64>,
    /// How many pieces left when something was last let go.
    left_at_once: u32,
}

impl Filling {
    /// What is written next can be so long, where the buffer is free or not.
    pub(crate) fn room(&mut self, info: &Info, is_free: bool) -> u64 {
        let goal = goal(info);
        if self.last > 0 && self.last < goal {
            goal - self.last
        } else if is_free {
            self.last = 0;
            goal
        } else {
            0
        }
    }

    /// Part of a write was taken.
    pub(crate) const fn add(&mut self, taken: u64) {
        self.written += taken;
        self.since_push += taken;
        self.last += taken;
    }

    /// What happens next.
    pub(crate) fn then(&mut self, is_write_over: bool, info: &Info) -> Then {
        let is_full = self.last >= goal(info);
        if is_write_over || (is_full && self.since_push > u64::from(info.max_wnd / 2)) {
            // After half of the window, too (`forced_push`).
            self.since_push = 0;
            Then::PushAll
        } else if is_full && self.last == u64::from(info.unsent) {
            Then::PushPiece
        } else {
            Then::GoOn
        }
    }

    /// The writer waits: before that all is sent that there is.
    pub(crate) const fn wait(&mut self, info: &Info) {
        if info.unsent > 0 {
            self.since_push = 0;
        }
    }

    /// What was written has left as far as the windows let it, in pieces of `burst` bytes.
    pub(crate) fn note_sent(&mut self, info: &Info, burst: u32) {
        let sent = self.written.saturating_sub(info.unsent.into());
        self.left_at_once = 0;
        while self.sent < sent {
            self.left_at_once += 1;
            self.sent = sent.min(self.sent + u64::from(burst.max(1)));
            self.pieces.push_back(self.sent);
        }
        let acknowledged = self.acknowledged(info);
        while self.pieces.front().is_some_and(|end| *end <= acknowledged) {
            self.pieces.pop_front();
        }
        self.last = self.last.min(info.unsent.into());
    }

    /// Nothing could leave.
    pub(crate) const fn note_nothing_sent(&mut self) {
        self.left_at_once = 0;
    }

    /// Whether the congestion window was used up throughout when something was last let go: Linux looks after each piece
    /// (`tcp_event_new_data_sent`).
    pub(crate) const fn used_window_up(&self, info: &Info) -> bool {
        let mss = if info.mss > 0 { info.mss } else { 1 };
        self.left_at_once < 2 && info.in_flight.div_ceil(mss) >= info.cwnd / mss
    }

    /// What is charged besides the payload.
    pub(crate) fn overhead(&self, info: &Info) -> u64 {
        let acknowledged = self.acknowledged(info);
        // Few are, since something last left: they are counted from the front, where the cache has them.
        let pieces = self.pieces.len() - self.pieces.iter().take_while(|end| **end <= acknowledged).count();
        (pieces as u64 + u64::from(info.unsent).div_ceil(goal(info))) * SEGMENT_OVERHEAD
    }

    fn acknowledged(&self, info: &Info) -> u64 {
        self.written.saturating_sub(u64::from(info.unsent) + u64::from(info.outstanding))
    }
}

#[cfg(test)]
mod tests {
    use fullpipe_tcp::socket::State;

    use super::*;

    const MSS: u32 = 1_000;

    /// A connection with a largest segment of 20,000 B.
    fn info(outstanding: u32, unsent: u32) -> Info {
        Info {
            state: State::Established,
            mss: MSS,
            cwnd: 30_000,
            ssthresh: u32::MAX,
            in_flight: outstanding,
            outstanding,
            sacked: 0,
            lost: 0,
            repaired: 0,
            unsent,
            is_window_used: false,
            snd_wnd: 40_000,
            max_wnd: 40_000,
            rcv_wnd: 40_000,
            snd_shift: 0,
            rcv_shift: 0,
            srtt_us: 10_000,
            rttvar_us: 1_000,
            min_rtt_us: None,
            backoff: 0,
            timestamps: true,
            sack: true,
            ecn: false,
            in_recovery: false,
            after_timeout: false,
            syn_data: false,
            reordering: 3,
            readable: 0,
            early_dropped: 0,
        }
    }

    /// What a writer with an empty queue and a free buffer does first.
    fn begun() -> Filling {
        let mut filling = Filling::default();
        assert_eq!(filling.room(&info(0, 0), true), 20_000);
        filling.add(20_000);
        filling
    }

    #[test]
    fn a_segment_is_filled_up_after_each_piece_without_a_look_at_the_buffer() {
        let mut filling = begun();
        assert_eq!(filling.then(false, &info(0, 20_000)), Then::PushPiece);
        filling.note_sent(&info(4_000, 16_000), 4_000);
        assert_eq!(filling.room(&info(4_000, 16_000), false), 4_000);
        filling.add(4_000);
        assert_eq!(
            filling.then(false, &info(4_000, 20_000)),
            Then::PushAll,
            "more than half of the window was written"
        );
    }

    #[test]
    fn a_full_segment_that_cannot_leave_stays_and_the_next_one_needs_room() {
        let mut filling = begun();
        filling.then(false, &info(0, 20_000));
        filling.note_sent(&info(0, 20_000), 4_000);
        assert_eq!(filling.room(&info(0, 20_000), false), 0);
        // An acknowledgement has let go a part of it: it is filled up, whatever the buffer says.
        filling.note_sent(&info(2_000, 18_000), 4_000);
        assert_eq!(filling.room(&info(2_000, 18_000), false), 2_000);
    }

    #[test]
    fn each_piece_is_charged_until_all_of_it_is_acknowledged() {
        let mut filling = begun();
        filling.note_sent(&info(10_000, 10_000), 4_000);
        // Three pieces, and what was not sent.
        assert_eq!(filling.overhead(&info(10_000, 10_000)), 4 * SEGMENT_OVERHEAD);
        assert_eq!(filling.overhead(&info(7_000, 10_000)), 4 * SEGMENT_OVERHEAD);
        assert_eq!(filling.overhead(&info(6_000, 10_000)), 3 * SEGMENT_OVERHEAD);
    }

    #[test]
    fn between_two_pieces_the_window_is_not_used_up() {
        let full = info(30_000, 5_000);
        let mut filling = Filling { written: 35_000, sent: 26_000, ..Filling::default() };
        filling.note_sent(&full, 4_000);
        assert!(filling.used_window_up(&full));
        let mut filling = Filling { written: 35_000, sent: 22_000, ..Filling::default() };
        filling.note_sent(&full, 4_000);
        assert!(!filling.used_window_up(&full));
    }
}
