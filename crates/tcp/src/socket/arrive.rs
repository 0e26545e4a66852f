//! SEGMENT ARRIVES (RFC 9293, section 3.10.7), in the order of the RFC.

use fullpipe_units::{Instant, SeqNum};

use super::{
    Context, Events, Failure, Fin, Reply, Socket, State, Syn, leave::SOON_REPORTED, takes_short_ways, timer::Timer,
};
use crate::{
    congestion::CongestionControl as _,
    profile::{AckCount, BlindDefence, EcnPolicy, SynFin, TimeWait},
    recv::Accepted,
    time::{self, Millis, Stamp},
    wire::{
        ip::Ecn,
        tcp::{Flags, Segment},
    },
};

/// RFC 7323, section 5.5: after 24 days of silence the peer's clock may have wrapped.
const PAWS_IDLE: u32 = time::about_seconds(Instant::from_nanos(24 * 24 * 3_600 * 1_000_000_000));

impl Socket {
    /// Takes a segment for this connection.
    #[cfg_attr(all(target_pointer_width = "32", not(target_family = "wasm")), inline(never))]
    pub(crate) fn on_segment(&mut self, cx: &mut Context<'_, '_>, segment: &Segment<'_>, ecn: Ecn) -> Reply {
        self.counts.note(|counts| counts.segments_received = counts.segments_received.wrapping_add(1));
        self.train = 0;
        // An arrival lets go what waited for another write.
        self.kept.set_more(false);
        match self.state {
            State::Established if takes_short_ways() && self.is_next_data(cx, segment) => {
                self.take_next_data(cx, segment);
                Reply::None
            }
            // Section 3.10.7.1.
            State::Closed if segment.flags.has(Flags::RST) => Reply::None,
            State::Closed => Reply::Reset,
            State::SynSent => self.in_syn_sent(cx, segment),
            _ => self.in_others(cx, segment, ecn),
        }
    }

    /// Header prediction (Van Jacobson): whether this is what most segments of a long transfer are to its receiver, the next data
    /// in order and nothing else, while nothing of this end's waits for an acknowledgement.
    #[inline]
    fn is_next_data(&self, cx: &Context<'_, '_>, segment: &Segment<'_>) -> bool {
        let len = segment.payload.len() as u32;
        segment.flags.without(Flags::PSH) == Flags::ACK
            && segment.seq == self.rx.nxt
            && (1..=self.rx.window()).contains(&len)
            && self.rx.is_plain()
            && segment.ack == self.tx.nxt
            && segment.ack == self.tx.una
            && segment.options.sack.is_empty()
            && (self.syn, self.fin) == (Syn::Done, Fin::Open)
            && !self.orphan
            && self.is_undisturbed()
            && !self.is_stale(cx, segment)
    }

    /// Does with the next data what the long way ([`in_others`](Self::in_others)) would.
    #[inline]
    fn take_next_data(&mut self, cx: &mut Context<'_, '_>, segment: &Segment<'_>) {
        self.last_heard = Millis::new(cx.now);
        self.probes_unanswered = 0;
        self.update_window(segment);
        self.note_timestamp(cx, segment, segment.seq);
        if self.kept.discards() && self.rx.readable == 0 {
            let (before, len) = (self.rx.nxt, segment.payload.len() as u32);
            self.rx.pass(len);
            self.after_data(cx, len, before, Accepted { advanced: true, disorder: false });
            self.after_read(cx);
        } else {
            self.take_data(cx, segment.seq, segment.payload);
        }
    }

    /// Section 3.10.7.3.
    fn in_syn_sent(&mut self, cx: &mut Context<'_, '_>, segment: &Segment<'_>) -> Reply {
        let flags = segment.flags;
        let has_ack = flags.has(Flags::ACK);
        // First: ISS < SEG.ACK <= SND.NXT.
        if has_ack && (segment.ack.at_or_before(self.iss()) || segment.ack.after(self.snd_nxt())) {
            return if flags.has(Flags::RST) { Reply::None } else { Reply::Reset };
        }
        // What echoes a timestamp that was not sent answers another SYN.
        let is_ours = |echo: u32| {
            let (first, now) = (self.timestamp(self.last_data_sent.instant()), self.timestamp(cx.now));
            echo.wrapping_sub(first) <= now.wrapping_sub(first)
        };
        if let (true, true, Some(timestamps)) = (self.timestamps_on, has_ack, segment.options.timestamps)
            && timestamps.echo != 0
            && !is_ours(timestamps.echo)
            && !flags.has(Flags::RST)
        {
            return Reply::Reset;
        }
        // Second.
        if flags.has(Flags::RST) {
            if has_ack {
                self.end(cx, Some(Failure::Refused));
            }
            return Reply::None;
        }
        // Fourth.
        let is_odd = flags.has(Flags::FIN) && !has_ack && cx.profile.syn_fin() == SynFin::Ignored;
        if !flags.has(Flags::SYN) || is_odd {
            return Reply::None;
        }
        self.last_heard = Millis::new(cx.now);
        self.take_peer_syn(cx, segment);
        let ecn_agreed = flags.has(Flags::ECE) && !flags.has(Flags::CWR);
        if !has_ack {
            // Simultaneous open: the same SYN again, now with an acknowledgement.
            let asks = flags.has(Flags::ECE) && flags.has(Flags::CWR);
            self.ecn_on = cfg!(feature = "ecn") && cx.profile.ecn != EcnPolicy::Off && asks;
            self.state = State::SynReceived;
            self.syn = Syn::Again;
            if !cx.profile.drops_crossing_text() {
                self.keep_crossing_text(cx, segment);
            }
            return Reply::None;
        }
        self.ecn_on = self.uses_ecn() && ecn_agreed;
        self.establish(cx);
        self.take_syn_ack(cx, segment);
        self.ack_now = true;
        if !segment.payload.is_empty() || flags.has(Flags::FIN) {
            self.rx.offer(cx.pool, self.window_limit());
            return self.take_text(cx, segment.seq + 1, segment);
        }
        Reply::None
    }

    /// "If there are other controls or text in the segment, queue them for processing after the ESTABLISHED state has been
    /// reached": the text; a FIN comes again.
    fn keep_crossing_text(&mut self, cx: &mut Context<'_, '_>, segment: &Segment<'_>) {
        let window = self.rx.offer(cx.pool, self.window_limit()) as usize;
        let text = segment.payload.get(..window).unwrap_or(segment.payload);
        if !text.is_empty() {
            self.take_data(cx, segment.seq + 1, text);
            self.timers.stop(Timer::DelayedAck);
            self.ack_now = false;
        }
    }

    /// The SYN has been acknowledged.
    fn establish(&mut self, cx: &Context<'_, '_>) {
        self.state = State::Established;
        let lost = self.rtt.backoff() > 0;
        if lost {
            // RFC 6298, section 5.7, and RFC 5681, section 3.1: one segment after a lost SYN.
            self.rtt.after_lost_syn();
            self.window.cwnd = self.mss();
        } else {
            let is_timed = self.syn == Syn::Waiting && !(self.passive && self.tx.outstanding() > 0);
            if is_timed && self.last_data_sent.instant() > Instant::ZERO {
                self.rtt.sample(time::us_since(cx.now, self.last_data_sent.instant()), 1);
            }
            self.window.cwnd = self.window.cwnd.max(cx.profile.initial_window_bytes(self.mss()));
        }
        self.syn = Syn::Done;
        let srtt = self.known_srtt();
        self.controller.on_established(cx.now, &mut self.window, srtt);
        self.recover = self.tx.una;
        self.begin_search(cx);
        self.cwr_until = self.tx.una;
        self.waiting_since = Millis::new(cx.now);
        self.grow_at = Stamp::new(time::after(cx.now, self.rtt.srtt().max(1_000)));
        self.timers.stop(Timer::Retransmit);
        self.timers.stop(Timer::State);
        self.arm_silence(cx.now);
        self.events.set(Events::CONNECTED);
        self.events.set(Events::WRITABLE);
    }

    /// Section 3.10.7.4: SYN-RECEIVED and the synchronized states.
    fn in_others(&mut self, cx: &mut Context<'_, '_>, segment: &Segment<'_>, ecn: Ecn) -> Reply {
        let flags = segment.flags;
        if self.state == State::TimeWait && flags.has(Flags::SYN) && !flags.has(Flags::ACK) && self.may_reopen(segment)
        {
            // No listener would begin a connection with a SYN that has FIN, unless the profile says so.
            let begins = !flags.has(Flags::FIN) || cx.profile.syn_fin() == SynFin::Syn;
            return if begins { Reply::Reopen(self.snd_nxt()) } else { Reply::None };
        }
        let mut seq = segment.seq;
        if self.state == State::SynReceived && flags.has(Flags::SYN) && seq == self.irs {
            if !flags.has(Flags::ACK) {
                // The SYN again: the SYN-ACK was lost.
                self.syn = Syn::Again;
                return Reply::None;
            }
            // Simultaneous open: the peer's SYN-ACK. Its SYN is known; the rest counts.
            if self.uses_sack() && cx.profile.drops_crossing_text() {
                self.rx.note_duplicate(seq, seq + 1);
            }
            seq += 1;
            self.ack_now = true;
        }
        if self.state == State::TimeWait && !flags.has(Flags::RST) && cx.profile.time_wait() == TimeWait::AnyButTheAck {
            self.answer_in_time_wait(cx, segment);
            return Reply::None;
        }
        // First: sequence number.
        if !self.is_acceptable(cx, segment, seq) {
            self.refuse(cx, segment);
            return Reply::None;
        }
        // Second: reset.
        if flags.has(Flags::RST) {
            self.on_reset(cx, seq);
            return Reply::None;
        }
        // Fourth: SYN (RFC 5961, section 4.2).
        if flags.has(Flags::SYN) && seq == segment.seq {
            let takes_it = cx.profile.blind_defence() == BlindDefence::None;
            if takes_it && self.state.is_synchronized() && self.state != State::TimeWait {
                self.end(cx, Some(Failure::Reset));
                self.reset_due = true;
                return Reply::None;
            }
            self.challenge(cx);
            return Reply::None;
        }
        self.last_heard = Millis::new(cx.now);
        self.probes_unanswered = 0;
        // Fifth: ACK.
        if !flags.has(Flags::ACK) {
            return Reply::None;
        }
        if self.state == State::SynReceived {
            if !(segment.ack.after(self.iss()) && segment.ack.at_or_before(self.snd_nxt())) {
                return Reply::Reset;
            }
            self.establish(cx);
            (self.snd_wl1, self.snd_wl2) = (seq, segment.ack);
            self.snd_wnd = u32::from(segment.window) << self.snd_shift;
            self.max_wnd = self.max_wnd.max(self.snd_wnd);
            self.after_early(cx);
        }
        if !self.on_ack(cx, segment) {
            return Reply::None;
        }
        self.note_timestamp(cx, segment, seq);
        if self.fin == Fin::Done {
            self.after_fin_acknowledged(cx);
        }
        self.note_ecn(flags, ecn, segment);
        // Seventh and eighth: text and FIN. Urgent data is ordinary data here (see `refusals`).
        if !segment.payload.is_empty() || flags.has(Flags::FIN) {
            return self.take_text(cx, seq, segment);
        }
        Reply::None
    }

    /// RFC 9293, section 3.6.1, MAY-2, and RFC 6191: a new connection may replace one in TIME-WAIT, if its numbers
    /// or its clock are beyond the old one's.
    fn may_reopen(&self, segment: &Segment<'_>) -> bool {
        let newer_clock = match segment.options.timestamps {
            Some(timestamps) if self.timestamps_on => is_newer(timestamps.val, self.ts_recent),
            _ => false,
        };
        newer_clock || segment.seq.after(self.rx.nxt)
    }

    fn answer_in_time_wait(&mut self, cx: &Context<'_, '_>, segment: &Segment<'_>) {
        let flags = segment.flags;
        if !flags.has(Flags::ACK) {
            return;
        }
        if flags.has(Flags::FIN) {
            self.timers.set(Timer::State, cx.now, cx.profile.time_wait_us);
        }
        let is_the_ack = flags == Flags::ACK && segment.payload.is_empty();
        if !is_the_ack || segment.seq != self.rx.nxt || segment.ack != self.snd_nxt() {
            self.ack_now = true;
        }
    }

    /// PAWS (RFC 7323, section 5.3, R1): the segment is older than what has arrived.
    #[inline]
    fn is_stale(&self, cx: &Context<'_, '_>, segment: &Segment<'_>) -> bool {
        let (true, Some(timestamps)) = (self.uses_timestamps(), segment.options.timestamps) else { return false };
        let recent = time::about_seconds(cx.now).saturating_sub(self.ts_recent_at) < PAWS_IDLE;
        recent && is_newer(self.ts_recent, timestamps.val)
    }

    /// RFC 9293, section 3.10.7.4, first, and PAWS (RFC 7323, section 5.3, R1).
    fn is_acceptable(&self, cx: &Context<'_, '_>, segment: &Segment<'_>, seq: SeqNum) -> bool {
        if !segment.flags.has(Flags::RST) && self.is_stale(cx, segment) {
            return false;
        }
        let (nxt, window) = (self.rx.nxt, self.rx.window());
        let len = segment.seq_len() - seq.distance_from(segment.seq);
        if segment.flags.has(Flags::RST) && len == 0 {
            return seq.in_window(nxt, window.max(1));
        }
        if len == 0 || window == 0 {
            // The right edge itself is right for a segment without data: a peer whose whole window is in flight
            // sends its acknowledgements from there. With the window shut, data is not taken, but the rest of the
            // segment is (MUST-66): the text is trimmed to nothing later.
            return seq.in_window(nxt, window + 1);
        }
        seq.in_window(nxt, window) || (seq + (len - 1)).in_window(nxt, window)
    }

    /// An unacceptable segment is answered, unless it is a reset. Segments without data are answered sparingly,
    /// so that two confused ends do not acknowledge each other for ever.
    fn refuse(&mut self, cx: &Context<'_, '_>, segment: &Segment<'_>) {
        if segment.flags.has(Flags::RST) {
            return;
        }
        if self.state == State::TimeWait {
            // "Acknowledge it, and restart the 2 MSL timeout."
            if segment.flags.has(Flags::FIN) {
                self.timers.set(Timer::State, cx.now, cx.profile.time_wait_us);
            }
        } else {
            // Out of the window or not, the peer lives.
            self.last_heard = Millis::new(cx.now);
        }
        if segment.payload.is_empty() && !segment.flags.has(Flags::FIN) {
            self.challenge(cx);
            return;
        }
        let end = segment.seq + segment.payload.len() as u32;
        if self.uses_sack() && end.at_or_before(self.rx.nxt) && segment.seq.before(end) {
            self.rx.note_duplicate(segment.seq, end);
        }
        self.ack_now = true;
    }

    /// Section 3.10.7.4, second, with RFC 5961, section 3.2: only the exact number resets.
    fn on_reset(&mut self, cx: &mut Context<'_, '_>, seq: SeqNum) {
        if seq != self.rx.nxt && cx.profile.blind_defence() == BlindDefence::Challenge {
            self.challenge(cx);
            return;
        }
        match self.state {
            // The application may have seen it already, or will: with what came before the reset (RFC 7413,
            // section 4.2.2, "the server might have accepted the data").
            State::SynReceived if self.is_early() => self.end(cx, Some(Failure::Reset)),
            State::SynReceived if self.passive => {
                // Back to LISTEN: the listener is still there.
                self.orphan = true;
                self.end(cx, Some(Failure::Reset));
            }
            State::SynReceived => self.end(cx, Some(Failure::Refused)),
            State::TimeWait => self.end(cx, None),
            _ => self.end(cx, Some(Failure::Reset)),
        }
    }

    /// RFC 5961, section 7: a challenge ACK, unless this second has seen enough of them. The count is the socket's
    /// own, so that it tells an attacker nothing about others.
    pub(super) fn challenge(&mut self, cx: &Context<'_, '_>) {
        let now = Millis::new(cx.now);
        if now.since(self.challenge_window) >= 1_000 {
            self.challenge_window = now;
            self.challenges_left = cx.profile.challenge_acks;
        }
        if self.challenges_left > 0 {
            self.challenges_left -= 1;
            self.counts.note(|counts| counts.challenges += 1);
            self.ack_now = true;
        }
    }

    /// RFC 7323, section 4.3: the timestamp of the segment that the next ACK answers.
    fn note_timestamp(&mut self, cx: &Context<'_, '_>, segment: &Segment<'_>, seq: SeqNum) {
        if let (true, Some(timestamps)) = (self.uses_timestamps(), segment.options.timestamps)
            && seq.at_or_before(self.last_ack_sent)
            && !is_newer(self.ts_recent, timestamps.val)
        {
            (self.ts_recent, self.ts_recent_at) = (timestamps.val, time::about_seconds(cx.now));
        }
    }

    /// RFC 3168, section 6.1.3.
    fn note_ecn(&mut self, flags: Flags, ecn: Ecn, segment: &Segment<'_>) {
        if !self.uses_ecn() {
            return;
        }
        if flags.has(Flags::CWR) {
            self.echo_ce = false;
        }
        if ecn == Ecn::Ce && !segment.payload.is_empty() {
            self.echo_ce = true;
        }
    }

    /// Seventh and eighth: `segment`'s data and FIN, the data starting at `seq`.
    #[inline]
    pub(super) fn take_text(&mut self, cx: &mut Context<'_, '_>, seq: SeqNum, segment: &Segment<'_>) -> Reply {
        if !(self.state.can_receive() || self.is_early()) {
            // After the peer's FIN nothing can come; what does is ignored.
            return Reply::None;
        }
        let len = segment.payload.len() as u32;
        let (nxt, window) = (self.rx.nxt, self.rx.window());
        let (start, end) = (seq.later(nxt), (seq + len).earlier(nxt + window));
        if self.orphan && (seq + len).after(nxt) {
            // RFC 9293, section 3.6.1, SHLD-3: nobody will read it. The connection is over, and the reset is what any
            // segment for a closed one gets (section 3.10.7.1), as with Linux and FreeBSD.
            self.end(cx, Some(Failure::Aborted));
            return Reply::Reset;
        }
        if segment.flags.has(Flags::FIN) && (seq + len).at_or_before(nxt + window) {
            self.rx.note_fin(seq + len);
        }
        if self.uses_sack() && seq.before(nxt) && len > 0 {
            self.rx.note_duplicate(seq, nxt.earlier(seq + len));
            self.ack_now = true;
        }
        if start.before(end) {
            let from = start.distance_from(seq) as usize;
            let data = &segment.payload[from..from + end.distance_from(start) as usize];
            self.take_data(cx, start, data);
        } else {
            self.ack_now = true;
        }
        if self.rx.is_fin_next() {
            self.take_fin(cx);
        }
        Reply::None
    }

    #[inline]
    fn take_data(&mut self, cx: &mut Context<'_, '_>, start: SeqNum, data: &[u8]) {
        let before = self.rx.nxt;
        let accepted = self.rx.accept(cx.pool, start, data);
        self.after_data(cx, data.len() as u32, before, accepted);
    }

    /// Data of `len` bytes was taken, in front of which `before` was the next number.
    #[inline]
    fn after_data(&mut self, cx: &Context<'_, '_>, len: u32, before: SeqNum, accepted: Accepted) {
        if accepted.advanced {
            self.counts.note(|counts| counts.bytes_received += u64::from(self.rx.nxt.distance_from(before)));
            self.events.set(Events::READABLE);
        } else {
            self.counts.note(|counts| counts.out_of_order += 1);
            if !self.uses_sack() {
                self.duplicates_due = self.duplicates_due.saturating_add(1);
            }
        }
        let grows = cfg!(feature = "platforms") && self.rx.budget < self.grow_to;
        if grows {
            self.rx.budget = (self.rx.budget + 2).min(self.grow_to);
            self.rx.early_budget = self.rx.early_budget.max(self.rx.budget);
        }
        self.seen_mss = self.seen_mss.max(u16::try_from(len).unwrap_or(u16::MAX)).min(self.own_mss);
        self.unacked_rx = self.unacked_rx.saturating_add(len);
        let policy = self.kept.ack();
        // A window that has grown is told at once, and takes one of the quick acknowledgements at the start only where their number
        // is even (`tcp_grow_window`: `icsk_ack.quick |= 1`).
        self.quick_left |= u8::from(grows);
        let quick = self.quick_left > 0;
        self.quick_left = self.quick_left.saturating_sub(1);
        // RFC 5681, section 4.2: at once for what is out of order or fills a gap; else for every second full-sized
        // segment, or after a time (RFC 9293, section 3.8.6.3).
        if cfg!(feature = "platforms") && accepted.advanced {
            self.reports = 0;
        }
        if accepted.disorder && !quick && self.waits_with_report(cx) {
            return;
        }
        let enough = match cx.profile.ack_count() {
            AckCount::FullSized => self.unacked_rx >= u32::from(policy.segments.max(1)) * u32::from(self.seen_mss),
            AckCount::Any => true,
        };
        if accepted.disorder
            || quick
            || policy.segments <= 1
            || (enough && len > 0 && self.unacked_rx > len)
            || self.unacked_rx >= u32::from(policy.segments.max(1)) * u32::from(self.own_mss)
        {
            self.ack_now = true;
        } else if !self.timers.is_set(Timer::DelayedAck) {
            self.timers.set(Timer::DelayedAck, cx.now, policy.delay_us);
        }
    }

    /// Whether an acknowledgement that only reports what is out of order waits for others (`__tcp_ack_snd_check`).
    fn waits_with_report(&mut self, cx: &Context<'_, '_>) -> bool {
        const MOST: u8 = 44;
        const LONGEST_US: u32 = 1_000;
        if !(cfg!(feature = "platforms") && cx.profile.compresses_sacks && self.uses_sack() && self.rx.has_gap()) {
            return false;
        }
        self.reports += 1;
        if self.reports <= SOON_REPORTED || self.reports > SOON_REPORTED + MOST {
            return false;
        }
        if !self.timers.is_set(Timer::DelayedAck) {
            self.timers.set(Timer::DelayedAck, cx.now, (self.rtt.srtt() / 20).min(LONGEST_US));
        }
        true
    }

    /// Eighth: the FIN is next in order.
    fn take_fin(&mut self, cx: &mut Context<'_, '_>) {
        self.rx.take_fin();
        // What was sent beyond the end is no data.
        self.rx.clear_early(cx.pool);
        self.ack_now = true;
        self.events.set(Events::READABLE);
        match self.state {
            State::Established => self.state = State::CloseWait,
            State::FinWait1 => {
                self.state = State::Closing;
                if cx.profile.repeats_fin() && self.fin == Fin::Waiting {
                    self.fin = Fin::Due;
                }
            }
            State::FinWait2 => {
                self.enter_time_wait(cx);
                self.ack_now = true;
            }
            _ => {}
        }
    }
}

/// Whether timestamp `a` is after `b`, modulo 2^32.
const fn is_newer(a: u32, b: u32) -> bool {
    SeqNum::new(a).after(SeqNum::new(b))
}
