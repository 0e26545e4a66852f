//! The scoreboard: what of the sent data has arrived out of order, and what is lost.

use fullpipe_units::{Instant, SeqNum};

use super::{Delivered, KNOWN, Sender, sent_after};
use crate::{
    pool::{BufferId, Mark, NONE, Pool},
    time,
    wire::tcp::SackBlock,
};

impl Sender {
    /// Takes the SACK blocks of an ACK. Blocks that name what was never sent, or is acknowledged, are ignored
    /// (RFC 2018, section 5; RFC 2883 explains the latter).
    pub(crate) fn sack(&mut self, pool: &mut Pool<'_>, blocks: &[SackBlock], delivered: &mut Delivered) {
        let mut next_known = [SackBlock { start: self.una, end: self.una }; KNOWN];
        for (at, block) in blocks.iter().enumerate() {
            // A FIN beyond the data may be inside a block.
            let (start, end) = (block.start.later(self.una), block.end.earlier(self.nxt));
            if block.start.before(self.una) || !start.before(end) || block.end.after(self.nxt + 1) {
                continue;
            }
            if let Some(slot) = next_known.get_mut(at) {
                *slot = SackBlock { start, end };
            }
            self.sack_news(pool, start, end, delivered);
        }
        self.known = next_known;
    }

    /// Marks what of `start..end` the previous ACK's blocks did not cover.
    fn sack_news(&mut self, pool: &mut Pool<'_>, start: SeqNum, end: SeqNum, delivered: &mut Delivered) {
        let mut at = start;
        while at.before(end) {
            let covering = self.known.iter().find(|known| known.start.at_or_before(at) && known.end.after(at));
            if let Some(known) = covering {
                at = known.end;
                continue;
            }
            let mut until = end;
            for known in &self.known {
                if known.start.after(at) && known.end.after(known.start) {
                    until = until.earlier(known.start);
                }
            }
            self.mark_sacked(pool, at, until, delivered);
            at = until;
        }
    }

    fn mark_sacked(&mut self, pool: &mut Pool<'_>, start: SeqNum, end: SeqNum, delivered: &mut Delivered) {
        // News is behind the highest report, near the last news, or anywhere.
        let behind = |id: BufferId| id != NONE && pool.slot(id).first().at_or_before(start);
        let mut id = if behind(self.sack_high) {
            self.sack_high
        } else if behind(self.sack_hint) {
            self.sack_hint
        } else {
            self.queue.head
        };
        while id != NONE {
            let slot = *pool.slot(id);
            if slot.first().at_or_after(end) || slot.sent_len() == 0 {
                break;
            }
            let covered = slot.first().at_or_after(start) && slot.last().at_or_before(end) && slot.sent == slot.end;
            // A buffer that was reported in two halves by two ACKs stays unreported: it may be sent once too often.
            if covered && !slot.mark.has(Mark::SACKED) {
                self.mark_one(pool, id, delivered);
            }
            id = slot.next;
        }
    }

    fn mark_one(&mut self, pool: &mut Pool<'_>, id: BufferId, delivered: &mut Delivered) {
        self.unlist(pool, id);
        let slot = pool.slot_mut(id);
        slot.mark.set(Mark::SACKED);
        let len = slot.sent_len();
        if slot.mark.has(Mark::LOST) {
            slot.mark.clear(Mark::LOST);
            self.lost -= len;
        }
        if slot.mark.has(Mark::REPAIR) {
            slot.mark.clear(Mark::REPAIR);
            self.repaired -= len.min(self.repaired);
        }
        self.sacked += len;
        delivered.segments += 1;
        delivered.bytes += len;
        delivered.sacked += len;
        delivered.add(slot.sent_at, slot.last(), slot.retransmits > 0);
        if slot.retransmits == 0 && delivered.clean_sent_at.is_none() {
            delivered.clean_sent_at = Some(slot.sent_at);
        }
        let last = slot.last();
        #[cfg(feature = "bbr")]
        if self.rates.is_on {
            delivered.note_rate(pool, id);
        }
        self.sack_hint = id;
        if self.sack_high == NONE || last.after(pool.slot(self.sack_high).last()) {
            self.sack_high = id;
        }
    }

    /// Deems one buffer lost; returns whether it was not before.
    fn mark_lost(&mut self, pool: &mut Pool<'_>, id: BufferId) -> bool {
        let slot = pool.slot_mut(id);
        if slot.mark.has(Mark::LOST) || slot.mark.has(Mark::SACKED) || slot.sent_len() == 0 {
            return false;
        }
        slot.mark.set(Mark::LOST);
        slot.mark.clear(Mark::RESENT);
        slot.resent = slot.start;
        let (first, len) = (slot.first(), slot.sent_len());
        if slot.mark.has(Mark::REPAIR) {
            slot.mark.clear(Mark::REPAIR);
            self.repaired -= len.min(self.repaired);
        }
        let hint = self.lost_hint;
        if self.lost == 0 || (hint != NONE && first.before(pool.slot(hint).first())) {
            self.lost_hint = id;
        }
        self.lost += len;
        #[cfg(feature = "bbr")]
        {
            self.rates.lost = self.rates.lost.wrapping_add(len);
        }
        self.unlist(pool, id);
        true
    }

    /// Bytes deemed lost in the buffers that hold something of what lies between two numbers.
    #[cfg(feature = "path-search")]
    pub(crate) fn lost_between(&self, pool: &Pool<'_>, start: SeqNum, end: SeqNum) -> u32 {
        let (mut lost, mut id) = (0, self.queue.head);
        while id != NONE && pool.slot(id).first().before(end) {
            let slot = pool.slot(id);
            if slot.mark.has(Mark::LOST) && slot.sent_end().after(start) {
                lost += slot.sent_len();
            }
            id = slot.next;
        }
        lost
    }

    /// Deems what lies between two numbers lost, as far as it is outstanding.
    #[cfg(feature = "path-search")]
    pub(crate) fn mark_lost_between(&mut self, pool: &mut Pool<'_>, start: SeqNum, end: SeqNum) {
        let mut id = self.queue.head;
        while id != NONE && pool.slot(id).first().before(end) {
            if pool.slot(id).sent_end().after(start) {
                self.mark_lost(pool, id);
            }
            id = pool.slot(id).next;
        }
    }

    /// Deems the first buffer lost (RFC 6582, section 3.2, steps 2 and 3); returns whether it was not before.
    pub(crate) fn mark_first_lost(&mut self, pool: &mut Pool<'_>) -> bool {
        self.queue.head != NONE && self.mark_lost(pool, self.queue.head)
    }

    /// A timeout: everything that was not SACKED is lost (RFC 6298, section 5.4; RFC 6675, section 5.1).
    pub(crate) fn mark_all_lost(&mut self, pool: &mut Pool<'_>) {
        let mut id = self.queue.head;
        while id != NONE && pool.slot(id).sent_len() > 0 {
            self.mark_lost(pool, id);
            id = pool.slot(id).next;
        }
        self.lost_hint = self.queue.head;
    }

    /// Forgets all SACK reports: the receiver may have (RFC 2018, section 8).
    pub(crate) fn forget_sacks(&mut self, pool: &mut Pool<'_>) {
        let mut id = self.queue.head;
        while id != NONE && self.sacked > 0 {
            let slot = pool.slot_mut(id);
            if slot.mark.has(Mark::SACKED) {
                slot.mark.clear(Mark::SACKED);
                self.sacked -= slot.sent_len();
            }
            id = slot.next;
        }
        (self.sacked, self.sack_high, self.sack_hint) = (0, NONE, NONE);
        self.known = [SackBlock { start: self.una, end: self.una }; KNOWN];
    }

    /// Whether the first buffer was SACKED, though an acknowledgement of it would have come: the receiver reneged.
    pub(crate) fn reneged(&self, pool: &Pool<'_>) -> bool {
        self.queue.head != NONE && pool.slot(self.queue.head).mark.has(Mark::SACKED)
    }

    /// RFC 6675, section 4, `IsLost`: more than two segments' worth has been SACKED above. Returns whether any
    /// segment is lost now that was not before.
    pub(crate) fn mark_lost_by_count(&mut self, pool: &mut Pool<'_>, mss: u32) -> bool {
        let (mut above, mut any, mut id) = (self.sacked, false, self.queue.head);
        while id != NONE && above > 2 * mss {
            let slot = *pool.slot(id);
            if slot.mark.has(Mark::SACKED) {
                above -= slot.sent_len();
            } else if !slot.mark.has(Mark::RESENT) {
                any |= self.mark_lost(pool, id);
            }
            id = slot.next;
        }
        any
    }

    /// RFC 8985, section 6.2, step 5: of the segments sent before `latest`, those sent more than `allowed_us` ago
    /// are lost. Returns whether any was found, and after how many microseconds the next would be.
    #[inline]
    pub(crate) fn mark_lost_by_time(
        &mut self,
        pool: &mut Pool<'_>,
        latest: (Instant, SeqNum),
        now: Instant,
        allowed_us: u32,
    ) -> (bool, Option<u32>) {
        let (mut any, mut wait) = (false, None);
        while self.tx_head != NONE {
            let slot = pool.slot(self.tx_head);
            if !sent_after(latest.0, latest.1, slot.sent_at, slot.sent_end()) {
                break;
            }
            let due = time::after(slot.sent_at, allowed_us);
            if due > now {
                // The list is in the order of transmission: all others are due later. The RFC arms its timer for the
                // last of them; for the first is earlier, and as right.
                wait = Some(time::us_since(due, now).max(1));
                break;
            }
            let id = self.tx_head;
            any |= self.mark_lost(pool, id);
            self.unlist(pool, id);
        }
        (any, wait)
    }
}
