//! The receiving half: reassembly in pool buffers, the offered window, and SACK blocks.
//!
//! Data in order waits in `queue` until it is read; data out of order waits in `early`, sorted. Both have budgets in
//! buffers. The offered window is what the free part of the receive budget can hold, to the byte, so a promise is
//! always kept: a small segment is appended to the last buffer rather than taking one of its own.

use fullpipe_units::SeqNum;

use crate::{
    pool::{BufferId, NONE, Pool, Purpose, Queue},
    profile::WindowStep,
    wire::tcp::{SackBlock, SackBlocks},
};

/// The receiving half of a connection.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Receiver {
    /// `RCV.NXT`.
    pub(crate) nxt: SeqNum,
    /// The right edge of the window ever promised; it never moves back (RFC 9293, section 3.8.6, SHLD-14).
    edge: SeqNum,
    /// Bytes that can be read.
    pub(crate) readable: u32,
    queue: Queue,
    early: Queue,
    pub(crate) budget: u16,
    pub(crate) early_budget: u16,
    /// Bytes that one buffer counts for: the announced segment size, as far as it fits.
    segment: u16,
    /// By how much the window may grow at least.
    step: WindowStep,
    /// Whether the peer's FIN has been seen, and its sequence number.
    has_fin: bool,
    /// Runs of early data, the latest touched first (RFC 2018, section 4).
    runs: SackBlocks,
    /// What arrived twice, for the next ACK (RFC 2883); empty for nothing.
    duplicate: SackBlock,
    fin: SeqNum,
    /// Bytes of early data dropped for lack of budget or buffers.
    pub(crate) dropped: u32,
}

const NO_BLOCK: SackBlock = SackBlock { start: SeqNum::new(0), end: SeqNum::new(0) };

/// What became of a segment's data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Accepted {
    /// `RCV.NXT` moved.
    pub(crate) advanced: bool,
    /// Data was out of order, or filled a gap, or arrived twice: acknowledge at once (RFC 5681, section 4.2).
    pub(crate) disorder: bool,
}

impl Receiver {
    pub(crate) fn new(budget: u16, early_budget: u16, step: WindowStep) -> Self {
        Self {
            nxt: SeqNum::new(0),
            edge: SeqNum::new(0),
            queue: Queue::EMPTY,
            readable: 0,
            early: Queue::EMPTY,
            runs: SackBlocks::EMPTY,
            duplicate: NO_BLOCK,
            budget,
            early_budget,
            segment: 536,
            step,
            has_fin: false,
            fin: SeqNum::new(0),
            dropped: 0,
        }
    }

    /// The announced segment size is known.
    pub(crate) fn set_segment(&mut self, mss: u16, pool: &Pool<'_>) {
        self.segment = mss.min(u16::try_from(pool.buffer_size()).unwrap_or(u16::MAX)).max(1);
    }

    /// The peer's SYN gave its sequence number: `first` is the number after it.
    pub(crate) const fn start(&mut self, first: SeqNum) {
        self.nxt = first;
        self.edge = first;
    }

    /// Bytes that the whole budget holds.
    pub(crate) fn capacity(&self) -> u32 {
        u32::from(self.budget) * u32::from(self.segment)
    }

    /// Bytes that are promised and have not arrived: the window for judging segments.
    pub(crate) fn window(&self) -> u32 {
        self.edge.distance_from(self.nxt)
    }

    /// Bytes that the free part of the budget holds.
    #[inline]
    pub(crate) fn free(&self, pool: &Pool<'_>) -> u32 {
        let buffers = self.budget.saturating_sub(self.queue.count);
        let tail = match self.queue.tail {
            NONE => 0,
            tail => u32::from(self.segment.saturating_sub(pool.slot(tail).end)),
        };
        u32::from(buffers) * u32::from(self.segment) + if buffers == 0 && self.over_budget() { 0 } else { tail }
    }

    const fn over_budget(&self) -> bool {
        self.queue.count > self.budget
    }

    /// What a window of at most `limit` bytes would add to the promise, silly windows avoided: nothing, unless it is
    /// a segment or half of the capacity (RFC 9293, section 3.8.6.2.2, MUST-39), or the whole window is large enough.
    #[inline]
    pub(crate) fn window_growth(&self, pool: &Pool<'_>, limit: u32) -> u32 {
        let free = self.free(pool).min(limit);
        let growth = free.saturating_sub(self.window());
        let segment = u32::from(self.segment);
        let is_large = cfg!(feature = "platforms")
            && self.step == WindowStep::Byte
            && free >= segment.min(self.capacity() / 4).min(limit);
        let enough = if is_large { 1 } else { segment.min(self.capacity() / 2).min(limit).max(1) };
        if growth >= enough { growth } else { 0 }
    }

    /// Moves the promise and returns the window to offer.
    pub(crate) fn offer(&mut self, pool: &Pool<'_>, limit: u32) -> u32 {
        self.edge += self.window_growth(pool, limit);
        self.window().min(limit)
    }

    /// Whether early data waits for a gap to be filled.
    pub(crate) const fn has_gap(&self) -> bool {
        !self.early.is_empty()
    }

    /// Takes data that lies in the window (the caller has trimmed it) and starts at `seq`.
    #[inline]
    pub(crate) fn accept(&mut self, pool: &mut Pool<'_>, seq: SeqNum, data: &[u8]) -> Accepted {
        let had_gap = self.has_gap();
        // RFC 2883, section 4.2: what of it is here already, unless something older is to be reported.
        if cfg!(feature = "sack") && self.duplicate.is_empty() && !self.runs.is_empty() {
            self.duplicate = self.known_part(seq, seq + data.len() as u32);
        }
        if seq == self.nxt {
            let taken = self.append(pool, data);
            if taken > 0 && (had_gap || !self.runs.is_empty()) {
                self.pull_early(pool);
            }
            return Accepted { advanced: taken > 0, disorder: had_gap || taken < data.len() };
        }
        self.insert_early(pool, seq, data);
        Accepted { advanced: false, disorder: true }
    }

    /// Whether all that has arrived came in order, and the peer's end of data is not known.
    #[inline]
    pub(crate) const fn is_plain(&self) -> bool {
        self.early.is_empty() && self.runs.is_empty() && !self.has_fin
    }

    /// Takes `len` bytes that are next in order and that nobody will read, where nothing waits to be read.
    #[inline]
    pub(crate) fn pass(&mut self, len: u32) {
        self.nxt += len;
        self.edge = self.edge.later(self.nxt);
    }

    /// The first early data that lies between two numbers.
    fn known_part(&self, start: SeqNum, end: SeqNum) -> SackBlock {
        let parts = self
            .runs
            .as_slice()
            .iter()
            .map(|run| SackBlock { start: run.start.later(start), end: run.end.earlier(end) });
        let first = |a: SackBlock, b: SackBlock| if b.start.before(a.start) { b } else { a };
        parts.filter(|part| part.start.before(part.end)).reduce(first).unwrap_or(NO_BLOCK)
    }

    /// Notes where the peer's data ends; the first FIN counts.
    pub(crate) const fn note_fin(&mut self, at: SeqNum) {
        if !self.has_fin {
            (self.has_fin, self.fin) = (true, at);
        }
    }

    /// Whether the FIN is next in order.
    pub(crate) fn is_fin_next(&self) -> bool {
        self.has_fin && self.fin == self.nxt
    }

    /// Takes the FIN, which is next in order.
    pub(crate) fn take_fin(&mut self) {
        self.nxt += 1;
        self.edge = self.edge.later(self.nxt);
    }

    /// Notes that a segment, or its front, had arrived before (RFC 2883, section 4).
    pub(crate) const fn note_duplicate(&mut self, start: SeqNum, end: SeqNum) {
        self.duplicate = SackBlock { start, end };
    }

    /// Appends to what can be read; returns how much, which is less where the pool is empty.
    #[inline]
    fn append(&mut self, pool: &mut Pool<'_>, mut data: &[u8]) -> usize {
        let mut taken = 0;
        while !data.is_empty() {
            let mut fit = 0;
            if self.queue.tail != NONE {
                fit = pool.append(self.queue.tail, data, usize::from(self.segment));
            }
            if fit == 0 {
                let Some(id) = self.take_in_order(pool) else { break };
                self.queue.push_back(pool, id);
                fit = pool.append(id, data, usize::from(self.segment));
            }
            data = &data[fit..];
            taken += fit;
            self.nxt += fit as u32;
            self.readable += fit as u32;
        }
        // What was taken beyond the promise (none, if the caller trimmed) would turn the window negative.
        self.edge = self.edge.later(self.nxt);
        taken
    }

    /// A buffer for data at the in-order edge. Where the pool is empty, the connection's own latest early data makes
    /// room: it was not acknowledged but by SACK, which allows that (RFC 2018, section 8), and without the
    /// in-order data it would never be of use.
    fn take_in_order(&mut self, pool: &mut Pool<'_>) -> Option<BufferId> {
        if let Some(id) = pool.take(Purpose::Urgent) {
            return Some(id);
        }
        let last = self.early.tail;
        if last == NONE {
            return None;
        }
        let start = pool.slot(last).first();
        self.early.remove(pool, last);
        pool.give(last);
        self.cut_runs(start);
        pool.take(Purpose::Urgent)
    }

    /// Moves early data that has become in-order.
    #[inline]
    fn pull_early(&mut self, pool: &mut Pool<'_>) {
        while self.early.head != NONE && pool.slot(self.early.head).first().at_or_before(self.nxt) {
            let id = self.early.head;
            self.early.remove(pool, id);
            let (first, last) = (pool.slot(id).first(), pool.slot(id).last());
            if last.at_or_before(self.nxt) {
                pool.give(id);
                continue;
            }
            let slot = pool.slot_mut(id);
            slot.start += self.nxt.distance_from(first) as u16;
            self.readable += slot.len();
            self.nxt = last;
            // Small pieces share a buffer, as they would have, had they come in order.
            let tail = self.queue.tail;
            if tail != NONE && pool.append_from(tail, id, usize::from(self.segment)) {
                pool.give(id);
            } else {
                self.queue.push_back(pool, id);
            }
        }
        self.edge = self.edge.later(self.nxt);
        let nxt = self.nxt;
        self.runs.retain(|run| run.end.after(nxt));
    }

    /// Puts data that is ahead of a gap in its place.
    fn insert_early(&mut self, pool: &mut Pool<'_>, mut seq: SeqNum, mut data: &[u8]) {
        let (start, end) = (seq, seq + data.len() as u32);
        // Most early data arrives behind all other, so the place is looked for from the back.
        let mut before = self.early.tail;
        while before != NONE && pool.slot(before).first().after(seq) {
            before = pool.slot(before).prev;
        }
        let mut fresh = false;
        while !data.is_empty() {
            // What the buffer in front holds already.
            if before != NONE {
                let known = pool.slot(before).last();
                if known.after(seq) {
                    let skip = (known.distance_from(seq) as usize).min(data.len());
                    data = &data[skip..];
                    seq += skip as u32;
                    continue;
                }
            }
            let next = if before == NONE { self.early.head } else { pool.slot(before).next };
            let gap = if next == NONE { usize::MAX } else { pool.slot(next).first().distance_from(seq) as usize };
            if gap == 0 {
                before = next;
                continue;
            }
            let piece = &data[..data.len().min(gap)];
            let mut fit = 0;
            if before != NONE && pool.slot(before).last() == seq {
                fit = pool.append(before, piece, usize::from(self.segment));
            }
            if fit == 0 {
                let id = if self.early.count < self.early_budget { pool.take(Purpose::Normal) } else { None };
                let Some(id) = id else {
                    self.dropped = self.dropped.saturating_add(data.len() as u32);
                    break;
                };
                pool.slot_mut(id).seq = seq;
                self.early.insert_after(pool, before, id);
                fit = pool.append(id, piece, usize::from(self.segment));
                before = id;
            }
            fresh = true;
            data = &data[fit..];
            seq += fit as u32;
        }
        if !cfg!(feature = "sack") {
            return;
        }
        if seq.after(start) {
            self.add_run(SackBlock { start, end: seq });
        }
        if !fresh && seq == end {
            // More exactly than the runs tell, of which only four are kept.
            self.duplicate = SackBlock { start, end };
        }
    }

    /// Puts a run in front, joined with those that it touches (RFC 2018, section 4).
    fn add_run(&mut self, mut run: SackBlock) {
        for known in self.runs.as_slice() {
            if known.start.at_or_before(run.end) && known.end.at_or_after(run.start) {
                run.start = run.start.earlier(known.start);
                run.end = run.end.later(known.end);
            }
        }
        self.runs.retain(|known| known.end.before(run.start) || known.start.after(run.end));
        // The oldest falls out.
        self.runs.push_front(run);
    }

    /// Early data from `edge` on was dropped.
    fn cut_runs(&mut self, edge: SeqNum) {
        self.runs.retain(|run| run.start.before(edge));
        for run in self.runs.as_mut_slice() {
            run.end = run.end.earlier(edge);
        }
    }

    /// The blocks for the next ACK, at most `limit`; the report of a duplicate comes first and once.
    pub(crate) fn sack_blocks(&mut self, limit: usize) -> SackBlocks {
        let mut blocks = SackBlocks::EMPTY;
        if !self.duplicate.is_empty() {
            blocks.push(core::mem::replace(&mut self.duplicate, NO_BLOCK));
        }
        for run in self.runs.as_slice() {
            blocks.push(*run);
        }
        blocks.truncate(limit);
        blocks
    }

    /// Whether the next ACK has something to tell beyond its number.
    pub(crate) fn has_sack(&self) -> bool {
        !self.runs.is_empty() || !self.duplicate.is_empty()
    }

    /// Gives up to `most` bytes of what can be read to `take`, piece by piece, and returns how much.
    pub(crate) fn read(&mut self, pool: &mut Pool<'_>, most: usize, mut take: impl FnMut(&[u8])) -> usize {
        let mut taken = 0;
        while taken < most && !self.queue.is_empty() {
            let data = pool.data(self.queue.head);
            let len = data.len().min(most - taken);
            take(&data[..len]);
            taken += len;
            self.consume(pool, len);
        }
        taken
    }

    /// The first piece of what can be read, in place.
    pub(crate) fn peek<'p>(&self, pool: &'p Pool<'_>) -> &'p [u8] {
        if self.queue.is_empty() { &[] } else { pool.data(self.queue.head) }
    }

    /// Copies what can be read into `out`, leaves it there, and returns how much.
    pub(crate) fn peek_into(&self, pool: &Pool<'_>, out: &mut [u8]) -> usize {
        let (mut copied, mut id) = (0, self.queue.head);
        while id != NONE && copied < out.len() {
            let data = pool.data(id);
            let len = data.len().min(out.len() - copied);
            out[copied..copied + len].copy_from_slice(&data[..len]);
            copied += len;
            id = pool.slot(id).next;
        }
        copied
    }

    /// Drops the first `len` bytes of the first piece.
    #[cfg_attr(not(all(target_pointer_width = "32", not(target_family = "wasm"))), inline)]
    pub(crate) fn consume(&mut self, pool: &mut Pool<'_>, len: usize) {
        let head = self.queue.head;
        if head == NONE {
            return;
        }
        let slot = pool.slot_mut(head);
        let len = len.min(slot.len() as usize);
        slot.start += len as u16;
        self.readable -= len as u32;
        if slot.start == slot.end {
            self.queue.remove(pool, head);
            pool.give(head);
        }
    }

    /// Gives the buffers of early data back.
    pub(crate) fn clear_early(&mut self, pool: &mut Pool<'_>) {
        self.early.clear(pool);
        self.runs.truncate(0);
    }

    /// Gives all buffers back.
    pub(crate) fn clear(&mut self, pool: &mut Pool<'_>) {
        self.queue.clear(pool);
        self.readable = 0;
        self.clear_early(pool);
    }

    /// Buffers held: in order, and early.
    pub(crate) const fn held(&self) -> (u16, u16) {
        (self.queue.count, self.early.count)
    }
}

#[cfg(test)]
#[path = "recv_tests.rs"]
mod tests;
