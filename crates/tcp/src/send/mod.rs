//! The sending half: the queue of written data and the scoreboard over what was sent of it.
//!
//! One queue holds everything from `SND.UNA` on, one segment's data a buffer. Its front part has been sent (the
//! un-acknowledged list), its rear part not yet. Sent buffers that may still arrive are also on a second list in the
//! order of their transmission, so that finding losses by time (RFC 8985) looks only at the oldest. No operation
//! walks the whole queue but a timeout's.

#[cfg(feature = "bbr")]
mod rate;
mod scoreboard;

use fullpipe_units::{Instant, SeqNum};

#[cfg(feature = "bbr")]
pub use self::rate::Before;
#[cfg(feature = "bbr")]
pub(crate) use self::rate::{LastSent, Rates};
use crate::{
    pool::{BufferId, Mark, NONE, Pool, Purpose, Queue, Run},
    socket::takes_short_ways,
    wire::tcp::{SackBlock, SackBlocks},
};

/// Blocks of an ACK that are remembered: as many as fit beside timestamps (RFC 2018, section 3).
const KNOWN: usize = if SackBlocks::MOST < 3 { SackBlocks::MOST } else { 3 };

/// The sending half of a connection.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Sender {
    /// `SND.UNA`.
    pub(crate) una: SeqNum,
    /// The number after the last data byte sent. `SND.NXT` is one more where the FIN was sent.
    pub(crate) nxt: SeqNum,
    /// The number after the last byte written.
    pub(crate) end: SeqNum,
    /// Bytes deemed lost and not retransmitted since.
    pub(crate) lost: u32,
    /// Bytes that the peer has reported by SACK.
    pub(crate) sacked: u32,
    queue: Queue,
    /// The first buffer with bytes that were never sent.
    unsent: BufferId,
    /// Buffers of which nothing was sent.
    waiting: u16,
    /// Order of transmission: oldest and latest.
    tx_head: BufferId,
    tx_tail: BufferId,
    /// No lost buffer comes before this one.
    lost_hint: BufferId,
    /// A buffer near which the last SACK news was.
    sack_hint: BufferId,
    /// The buffer with the highest SACKed bytes.
    sack_high: BufferId,
    pub(crate) transmit_budget: u16,
    pub(crate) unacknowledged_budget: u16,
    /// Bytes retransmitted after they were deemed lost, not reported since.
    pub(crate) repaired: u32,
    /// The first blocks of the previous ACK: only what is new is looked for.
    known: [SackBlock; KNOWN],
    #[cfg(feature = "bbr")]
    pub(crate) rates: Rates,
}

/// What an ACK delivered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delivered {
    now: Instant,
    min_rtt_us: u32,
    /// Bytes newly acknowledged or SACKed, and in how many buffers.
    pub(crate) bytes: u32,
    pub(crate) segments: u32,
    /// Of these, bytes SACKed.
    pub(crate) sacked: u32,
    /// When the oldest newly acknowledged segment was sent, or the first that was SACKed, if it was sent once: a round-trip sample
    /// (Karn).
    pub(crate) clean_sent_at: Option<Instant>,
    /// The delivered segment that was sent last (RFC 8985, section 6.2, step 2).
    pub(crate) latest: Option<Latest>,
    /// The lowest end of a delivered segment that was never retransmitted (RFC 8985, section 6.2, step 3).
    pub(crate) lowest_clean: Option<SeqNum>,
    /// ... for its rate, where that is asked for.
    #[cfg(feature = "bbr")]
    pub(crate) rate: Option<LastSent>,
}

/// A delivered segment, for RACK.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Latest {
    pub(crate) sent_at: Instant,
    pub(crate) end: SeqNum,
}

impl Delivered {
    pub(crate) const fn new(now: Instant, min_rtt_us: u32) -> Self {
        let (clean_sent_at, latest, lowest_clean) = (None, None, None);
        Self {
            now,
            min_rtt_us,
            bytes: 0,
            segments: 0,
            sacked: 0,
            clean_sent_at,
            latest,
            lowest_clean,
            #[cfg(feature = "bbr")]
            rate: None,
        }
    }

    /// What only RACK asks for.
    #[inline]
    fn add(&mut self, sent_at: Instant, end: SeqNum, retransmitted: bool) {
        if !cfg!(feature = "sack") {
            return;
        }
        // RFC 8985, section 6.2, step 2: what comes back sooner than a round trip answers an earlier transmission.
        if retransmitted && crate::time::us_since(self.now, sent_at) < self.min_rtt_us {
            return;
        }
        let newer = self.latest.is_none_or(|known| sent_after(sent_at, end, known.sent_at, known.end));
        if newer {
            self.latest = Some(Latest { sent_at, end });
        }
        if !retransmitted {
            self.lowest_clean = Some(self.lowest_clean.map_or(end, |known| known.earlier(end)));
        }
    }
}

/// RFC 8985, section 6.2: `RACK_sent_after`.
pub(crate) fn sent_after(a: Instant, a_end: SeqNum, b: Instant, b_end: SeqNum) -> bool {
    a > b || (a == b && a_end.after(b_end))
}

/// What may leave now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allowance {
    /// Bytes that the windows allow.
    pub(crate) bytes: u32,
    /// Bytes of one segment.
    pub(crate) mss: u32,
    /// Bytes that the device takes at once: `mss`, or more where it splits.
    pub(crate) burst: u32,
}

/// Data chosen to leave.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chosen {
    pub(crate) seq: SeqNum,
    pub(crate) run: Run,
    /// A write ended with the last byte.
    pub(crate) push: bool,
    /// Bytes per segment where the run holds several.
    pub(crate) segment: u16,
}

impl Sender {
    pub(crate) fn new(transmit_budget: u16, unacknowledged_budget: u16) -> Self {
        Self {
            una: SeqNum::new(0),
            nxt: SeqNum::new(0),
            end: SeqNum::new(0),
            queue: Queue::EMPTY,
            unsent: NONE,
            waiting: 0,
            tx_head: NONE,
            tx_tail: NONE,
            sacked: 0,
            lost: 0,
            repaired: 0,
            lost_hint: NONE,
            sack_hint: NONE,
            sack_high: NONE,
            known: [SackBlock { start: SeqNum::new(0), end: SeqNum::new(0) }; KNOWN],
            transmit_budget,
            unacknowledged_budget,
            #[cfg(feature = "bbr")]
            rates: Rates::default(),
        }
    }

    /// The first data byte has the number `first`.
    pub(crate) const fn start(&mut self, first: SeqNum) {
        (self.una, self.nxt, self.end) = (first, first, first);
    }

    /// Bytes written and not sent.
    pub(crate) fn unsent_bytes(&self) -> u32 {
        self.end.distance_from(self.nxt)
    }

    /// Bytes sent and not acknowledged.
    pub(crate) fn outstanding(&self) -> u32 {
        self.nxt.distance_from(self.una)
    }

    /// Bytes thought to be in the network (RFC 6675's pipe): a lost segment's retransmission takes its place.
    pub(crate) fn pipe(&self) -> u32 {
        self.outstanding().saturating_sub(self.sacked + self.lost)
    }

    /// Buffers of which something was sent.
    pub(crate) const fn held_sent(&self) -> u16 {
        self.queue.count - self.waiting
    }

    /// Buffers of which nothing was sent.
    pub(crate) const fn held_waiting(&self) -> u16 {
        self.waiting
    }

    /// The bytes that fill a buffer when segments have `mss` bytes, and the bytes of a segment made of whole buffers.
    #[inline]
    pub(crate) fn unit(pool: &Pool<'_>, mss: u32) -> (u32, u32) {
        let size = pool.buffer_size() as u32;
        if mss <= size && mss > 0 {
            return (mss, mss);
        }
        let buffers = mss.div_ceil(size).max(1);
        let fill = mss / buffers;
        (fill.max(1), fill.max(1) * buffers)
    }

    /// Copies what fits of `data` and returns how much. `push`: a write ends with it.
    pub(crate) fn write(&mut self, pool: &mut Pool<'_>, mut data: &[u8], mss: u32, push: bool) -> usize {
        let (fill, _) = Self::unit(pool, mss);
        let (tail, mut taken) = (self.queue.tail, 0);
        while !data.is_empty() {
            let mut fit = 0;
            // A buffer that has been sent whole is a segment of its own now.
            if taken == 0 && tail != NONE && self.unsent != NONE && !pool.slot(tail).mark.has(Mark::END) {
                fit = pool.append(tail, data, fill as usize);
            }
            if fit == 0 {
                if self.waiting >= self.transmit_budget {
                    break;
                }
                let Some(id) = pool.take(Purpose::Normal) else { break };
                pool.slot_mut(id).seq = self.end;
                self.queue.push_back(pool, id);
                self.waiting += 1;
                if self.unsent == NONE {
                    self.unsent = id;
                }
                fit = pool.append(id, data, fill as usize);
            }
            data = &data[fit..];
            taken += fit;
            self.end += fit as u32;
        }
        if taken > 0 && push {
            self.mark_push(pool);
        }
        taken
    }

    /// What was written last is pushed.
    pub(crate) fn mark_push(&self, pool: &mut Pool<'_>) {
        if self.queue.tail != NONE {
            pool.slot_mut(self.queue.tail).mark.set(Mark::PUSH);
        }
    }

    /// What is written next begins a buffer, and so a segment.
    pub(crate) fn end_record(&self, pool: &mut Pool<'_>) {
        if self.queue.tail != NONE {
            pool.slot_mut(self.queue.tail).mark.set(Mark::END);
        }
    }

    /// Whether a write would take at least one byte.
    pub(crate) fn has_room(&self, pool: &Pool<'_>, mss: u32) -> bool {
        let (fill, _) = Self::unit(pool, mss);
        let tail = |at: BufferId| !pool.slot(at).mark.has(Mark::END) && u32::from(pool.slot(at).end) < fill;
        let tail_room = self.unsent != NONE && tail(self.queue.tail);
        tail_room || (self.waiting < self.transmit_budget && pool.has(Purpose::Normal))
    }

    /// The next data that was never sent, as far as it is allowed.
    #[inline]
    pub(crate) fn choose(&self, pool: &Pool<'_>, allow: Allowance) -> Option<Chosen> {
        // The rest of a buffer whose front is lost waits for the retransmission.
        if self.unsent == NONE || pool.slot(self.unsent).mark.has(Mark::LOST) {
            return None;
        }
        let (fill, unit) = Self::unit(pool, allow.mss);
        // Several segments leave at once only whole.
        let most = match allow.bytes.min(allow.burst.max(unit)) {
            most if most >= 2 * unit => most / unit * unit,
            most => most.min(unit),
        };
        let mut credit = self.unacknowledged_budget.saturating_sub(self.held_sent());
        let first = pool.slot(self.unsent);
        let (offset, seq) = (first.sent, first.sent_end());
        let (mut id, mut len, mut push) = (self.unsent, 0, false);
        while id != NONE && len < most {
            let slot = pool.slot(id);
            if slot.sent == 0 {
                if credit == 0 {
                    break;
                }
                credit -= 1;
            }
            let piece = u32::from(slot.end - slot.sent);
            if len + piece > most {
                // Part of a buffer leaves only where nothing else does.
                if len == 0 {
                    (len, push) = (most, false);
                }
                break;
            }
            len += piece;
            push = slot.mark.has(Mark::PUSH);
            if piece != fill || slot.mark.has(Mark::END) {
                break;
            }
            id = slot.next;
        }
        (len > 0).then_some(Chosen { seq, run: Run { first: self.unsent, offset, len }, push, segment: unit as u16 })
    }

    /// The next `len` bytes that were never sent, as one segment, whatever buffers they lie in.
    #[cfg(feature = "path-search")]
    pub(crate) fn choose_one(&self, pool: &Pool<'_>, len: u32) -> Option<Chosen> {
        if self.unsent == NONE || pool.slot(self.unsent).mark.has(Mark::LOST) {
            return None;
        }
        let mut credit = self.unacknowledged_budget.saturating_sub(self.held_sent());
        let first = pool.slot(self.unsent);
        let (offset, seq) = (first.sent, first.sent_end());
        let (mut id, mut left, mut push) = (self.unsent, len, false);
        while left > 0 {
            if id == NONE {
                return None;
            }
            let slot = pool.slot(id);
            if slot.sent == 0 {
                credit = credit.checked_sub(1)?;
            }
            let piece = u32::from(slot.end - slot.sent);
            if piece < left && slot.mark.has(Mark::END) {
                return None;
            }
            push = piece <= left && slot.mark.has(Mark::PUSH);
            left -= piece.min(left);
            id = slot.next;
        }
        Some(Chosen { seq, run: Run { first: self.unsent, offset, len }, push, segment: len as u16 })
    }

    /// When the oldest unacknowledged data was last sent.
    pub(crate) fn oldest_sent_at(&self, pool: &Pool<'_>) -> Option<Instant> {
        (self.held_sent() > 0).then(|| pool.slot(self.queue.head).sent_at)
    }

    /// Notes that chosen new data left.
    #[inline]
    pub(crate) fn sent(&mut self, pool: &mut Pool<'_>, chosen: &Chosen, now: Instant) {
        #[cfg(feature = "bbr")]
        let before = self.rates.is_on.then(|| self.rates.before(now, self.outstanding() == 0));
        let mut left = chosen.run.len;
        while left > 0 && self.unsent != NONE {
            let id = self.unsent;
            let slot = pool.slot_mut(id);
            if slot.sent == 0 {
                self.waiting -= 1;
            }
            let piece = left.min(u32::from(slot.end - slot.sent));
            slot.sent += piece as u16;
            slot.resent = slot.sent;
            slot.sent_at = now;
            left -= piece;
            if slot.sent == slot.end {
                self.unsent = slot.next;
            }
            #[cfg(feature = "bbr")]
            if let Some(before) = before {
                pool.set_before(id, before);
            }
            self.list_as_latest(pool, id);
        }
        self.nxt += chosen.run.len;
    }

    /// Whether the next data that was never sent is more than so many bytes, or none of it is to be had.
    #[inline]
    pub(crate) fn cuts(&self, pool: &Pool<'_>, bytes: u32) -> bool {
        if self.unsent == NONE {
            return true;
        }
        let slot = pool.slot(self.unsent);
        u32::from(slot.end - slot.sent) > bytes
    }

    /// Notes that the next buffer of `mss` bytes that was never sent leaves whole, as [`choose`](Self::choose) and
    /// [`sent`](Self::sent) would; nothing where it is not like that. No delivery rates are taken.
    #[cfg(feature = "platforms")]
    #[inline]
    pub(crate) fn send_whole(&mut self, pool: &mut Pool<'_>, mss: u32, now: Instant) -> Option<Chosen> {
        let id = self.unsent;
        if id == NONE || self.held_sent() >= self.unacknowledged_budget || mss > pool.buffer_size() as u32 {
            return None;
        }
        let slot = pool.slot_mut(id);
        if slot.sent > 0 || u32::from(slot.end) != mss || slot.mark.has(Mark::LOST) || slot.mark.has(Mark::LISTED) {
            return None;
        }
        (slot.sent, slot.resent, slot.sent_at) = (slot.end, slot.end, now);
        let (seq, push, next) = (slot.seq, slot.mark.has(Mark::PUSH), slot.next);
        self.list_last(pool, id);
        self.unsent = next;
        self.waiting -= 1;
        self.nxt += mss;
        Some(Chosen { seq, run: Run { first: id, offset: 0, len: mss }, push, segment: mss as u16 })
    }

    /// The lost buffer to retransmit next, at most `mss` bytes of it.
    pub(crate) fn choose_lost(&mut self, pool: &Pool<'_>, mss: u32) -> Option<Chosen> {
        if self.lost == 0 {
            return None;
        }
        let mut id = if self.lost_hint == NONE { self.queue.head } else { self.lost_hint };
        while id != NONE && !pool.slot(id).mark.has(Mark::LOST) {
            id = pool.slot(id).next;
        }
        self.lost_hint = id;
        if id == NONE {
            return None;
        }
        Some(Self::part_of(pool, id, mss))
    }

    /// The buffer sent last, whole; for the tail loss probe.
    pub(crate) fn choose_last(&self, pool: &Pool<'_>, mss: u32) -> Option<Chosen> {
        let mut id = self.queue.tail;
        while id != NONE && pool.slot(id).sent_len() == 0 {
            id = pool.slot(id).prev;
        }
        (id != NONE && !pool.slot(id).mark.has(Mark::SACKED)).then(|| {
            let slot = pool.slot(id);
            let len = slot.sent_len().min(mss);
            let offset = slot.sent - len as u16;
            let seq = slot.seq + u32::from(offset);
            let push = slot.mark.has(Mark::PUSH) && slot.sent == slot.end;
            Chosen { seq, run: Run { first: id, offset, len }, push, segment: mss as u16 }
        })
    }

    fn part_of(pool: &Pool<'_>, id: BufferId, mss: u32) -> Chosen {
        let slot = pool.slot(id);
        // A retransmission in several parts (the segment size shrank) goes on where it stopped.
        let offset = if slot.resent < slot.sent { slot.resent.max(slot.start) } else { slot.start };
        let len = u32::from(slot.sent - offset).min(mss);
        let push = slot.mark.has(Mark::PUSH) && offset + len as u16 == slot.end;
        let seq = slot.seq + u32::from(offset);
        Chosen { seq, run: Run { first: id, offset, len }, push, segment: mss as u16 }
    }

    /// Notes that chosen data was retransmitted.
    pub(crate) fn resent(&mut self, pool: &mut Pool<'_>, chosen: &Chosen, now: Instant) {
        let id = chosen.run.first;
        #[cfg(feature = "bbr")]
        let before = self.rates.is_on.then(|| self.rates.before(now, false));
        #[cfg(feature = "bbr")]
        if let Some(before) = before {
            pool.set_before(id, before);
        }
        let slot = pool.slot_mut(id);
        slot.resent = chosen.run.offset + chosen.run.len as u16;
        slot.sent_at = now;
        slot.retransmits = slot.retransmits.saturating_add(1);
        if slot.resent < slot.sent {
            return;
        }
        slot.mark.set(Mark::RESENT);
        if slot.mark.has(Mark::LOST) {
            slot.mark.clear(Mark::LOST);
            slot.mark.set(Mark::REPAIR);
            self.lost -= slot.sent_len();
            self.repaired += slot.sent_len();
        }
        self.list_as_latest(pool, id);
    }

    /// Only RACK asks for the order of transmission.
    #[inline]
    fn list_as_latest(&mut self, pool: &mut Pool<'_>, id: BufferId) {
        if cfg!(feature = "sack") {
            self.unlist(pool, id);
            self.list_last(pool, id);
        }
    }

    /// The same for a buffer that is not listed.
    #[inline]
    fn list_last(&mut self, pool: &mut Pool<'_>, id: BufferId) {
        if !cfg!(feature = "sack") {
            return;
        }
        let tail = self.tx_tail;
        let slot = pool.slot_mut(id);
        slot.mark.set(Mark::LISTED);
        (slot.tx_prev, slot.tx_next) = (tail, NONE);
        if tail == NONE {
            self.tx_head = id;
        } else {
            pool.slot_mut(tail).tx_next = id;
        }
        self.tx_tail = id;
    }

    #[inline]
    fn unlist(&mut self, pool: &mut Pool<'_>, id: BufferId) {
        let slot = pool.slot_mut(id);
        if !slot.mark.has(Mark::LISTED) {
            return;
        }
        slot.mark.clear(Mark::LISTED);
        let (prev, next) = (slot.tx_prev, slot.tx_next);
        if prev == NONE {
            self.tx_head = next;
        } else {
            pool.slot_mut(prev).tx_next = next;
        }
        if next == NONE {
            self.tx_tail = prev;
        } else {
            pool.slot_mut(next).tx_prev = prev;
        }
    }

    /// The front of what [`acknowledge`](Self::acknowledge) takes: whole buffers that were sent once, and of which neither SACK nor
    /// a timer told anything. They are the first in both orders. Whether there are any.
    #[inline]
    fn acknowledge_plain(&mut self, pool: &mut Pool<'_>, ack: SeqNum, delivered: &mut Delivered) -> bool {
        if !takes_short_ways() {
            return false;
        }
        let (mut known, mut latest, mut gone) = (None, None, 0);
        loop {
            let id = self.queue.head;
            if id == NONE || id != self.tx_head {
                break;
            }
            let slot = pool.slot(id);
            let end = slot.last();
            if slot.retransmits > 0 || !slot.mark.is_plain() || slot.start == slot.end || !end.at_or_before(ack) {
                break;
            }
            let (next, tx_next, sent_at) = (slot.next, slot.tx_next, slot.sent_at);
            #[cfg(feature = "bbr")]
            if self.rates.is_on {
                delivered.note_rate(pool, id);
            }
            delivered.bytes += slot.len();
            known = known.or(Some((sent_at, end)));
            latest = Some(Latest { sent_at, end });
            gone += 1;
            self.forget(id, next);
            (self.queue.head, self.tx_head) = (next, tx_next);
            if next == NONE {
                self.queue.tail = NONE;
            } else {
                pool.slot_mut(next).prev = NONE;
            }
            if tx_next == NONE {
                self.tx_tail = NONE;
            } else {
                pool.slot_mut(tx_next).tx_prev = NONE;
            }
            pool.give(id);
        }
        let (Some((sent_at, end)), Some(latest)) = (known, latest) else { return false };
        self.queue.count -= gone;
        delivered.segments += u32::from(gone);
        delivered.clean_sent_at = Some(sent_at);
        delivered.add(latest.sent_at, latest.end, false);
        delivered.lowest_clean = delivered.lowest_clean.map(|lowest| lowest.earlier(end));
        true
    }

    /// Takes a cumulative acknowledgement of data up to `ack`, which lies between `una` and `nxt`.
    pub(crate) fn acknowledge(&mut self, pool: &mut Pool<'_>, ack: SeqNum, delivered: &mut Delivered) {
        let mut first = !self.acknowledge_plain(pool, ack, delivered);
        while self.queue.head != NONE {
            let id = self.queue.head;
            let slot = *pool.slot(id);
            if slot.first().at_or_after(ack) {
                break;
            }
            let whole = slot.last().at_or_before(ack);
            let gone = if whole { slot.len() } else { ack.distance_from(slot.first()) };
            if slot.mark.has(Mark::SACKED) {
                self.sacked -= gone;
            } else {
                delivered.bytes += gone;
                delivered.add(slot.sent_at, slot.first() + gone, slot.retransmits > 0);
                #[cfg(feature = "bbr")]
                if self.rates.is_on {
                    delivered.note_rate(pool, id);
                }
                if first && slot.retransmits == 0 {
                    delivered.clean_sent_at = Some(slot.sent_at);
                }
            }
            first = false;
            delivered.segments += u32::from(whole && !slot.mark.has(Mark::SACKED));
            if slot.mark.has(Mark::LOST) {
                self.lost -= gone;
            }
            if slot.mark.has(Mark::REPAIR) {
                self.repaired -= gone.min(self.repaired);
            }
            if !whole {
                let slot = pool.slot_mut(id);
                slot.start += gone as u16;
                slot.resent = slot.resent.max(slot.start);
                if slot.start >= slot.sent {
                    // What is left of it has not been sent: it is a new segment.
                    slot.mark.clear(Mark::LOST);
                    slot.mark.clear(Mark::REPAIR);
                    slot.mark.clear(Mark::RESENT);
                    slot.retransmits = 0;
                    self.unlist(pool, id);
                }
                break;
            }
            self.unlist(pool, id);
            self.forget(id, pool.slot(id).next);
            self.queue.remove(pool, id);
            pool.give(id);
        }
        self.una = ack;
    }

    /// No hint names `id` any more, which is the first of the queue; `next` comes behind it.
    #[inline]
    fn forget(&mut self, id: BufferId, next: BufferId) {
        if self.lost_hint == id {
            self.lost_hint = next;
        }
        if self.sack_hint == id {
            self.sack_hint = NONE;
        }
        if self.sack_high == id {
            self.sack_high = NONE;
        }
        if self.unsent == id {
            self.unsent = next;
        }
    }

    /// Reads what is known of so many buffers that are acknowledged, sent and written next: see [`Stack::touch`](crate::stack::Stack::touch).
    #[cfg(feature = "platforms")]
    pub(crate) fn touch(&self, pool: &Pool<'_>, buffers: u16) -> u32 {
        pool.touch(self.queue.head, buffers) ^ pool.touch(self.unsent, buffers) ^ pool.touch_free(buffers)
    }

    /// Gives all buffers back.
    pub(crate) fn clear(&mut self, pool: &mut Pool<'_>) {
        self.queue.clear(pool);
        (self.unsent, self.tx_head, self.tx_tail) = (NONE, NONE, NONE);
        (self.lost_hint, self.sack_hint, self.sack_high) = (NONE, NONE, NONE);
        (self.waiting, self.sacked, self.lost, self.repaired) = (0, 0, 0, 0);
        self.end = self.nxt;
    }
}
