//! One connection followed packet by packet: both directions, the handshake, and where between the ends it was captured.
//! What is *not* here: finding the connection of a segment (`track`), and what its figures mean (`story`).

pub(crate) mod bins;
mod clock;
mod copies;
mod drops;
mod early;
mod flight;
pub(crate) mod half;
mod ranges;
mod repeats;
mod setting;
mod spacing;
mod writes;

#[cfg(test)]
pub(crate) mod tests;

use crate::{
    Flags, Sender, TooBig,
    track::{options::Options, seen::Seen},
};
use copies::Copies;
use early::Early;
use half::Half;
use setting::Setting;

/// Samples of a timeline span half a round trip, and at least this long.
const LEAST_STEP_NS: u64 = 1_000_000;

/// A connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Connection {
    /// By [`Sender`]: what the low end and what the high end sends.
    pub(crate) halves: [Half; 2],
    copies: [Copies; 2],
    /// Who sent the first SYN without an acknowledgement.
    pub(crate) opener: Option<Sender>,
    /// Both ends sent one (RFC 9293, section 3.5).
    pub(crate) simultaneous: bool,
    syn_at_ns: [Option<u64>; 2],
    /// By [`Sender`]: the scale of the windows that it offers, 0 where that isn't known. Only a SYN changes it.
    shifts: [u8; 2],
    /// Where the SYN-ACK passed, and what acknowledges it is awaited.
    answered_ns: Option<u64>,
    pub(crate) established: bool,
    /// A SYN came first.
    from_its_syn: bool,
    pub(crate) syns: u32,
    pub(crate) reset_by: Option<Sender>,
    pub(crate) first_sender: Sender,
    pub(crate) first_number: u64,
    pub(crate) first_ns: u64,
    pub(crate) last_ns: u64,
    pub(crate) copied: u64,
    pub(crate) options_cut: bool,
    pub(crate) too_big_mtu: Option<u32>,
    pub(crate) hop_limits: [u8; 2],
    /// Numbers of the packets of the handshake.
    pub(crate) handshake: [Option<u64>; 3],
    pub(crate) handshake_ns: Option<u64>,
    /// From the first SYN to there.
    pub(crate) opened_ns: Option<u64>,
    /// SYNs and SYN-ACKs beyond the first.
    pub(crate) syn_retransmissions: u32,
    pub(crate) syn_ack_retransmissions: u32,
    /// What had been captured came again, from further back than packets change places ...
    appended: bool,
    /// ... and new data did.
    set_back: bool,
    pub(crate) setting: Setting,
    early: Early,
}

/// The other end.
pub(crate) const fn other(sender: Sender) -> Sender {
    match sender {
        Sender::Low => Sender::High,
        Sender::High => Sender::Low,
    }
}

impl Connection {
    /// One that begins with `first`, whatever was here before; the room that its lists had stays. `is_timeless` where no
    /// timeline is wanted: most connections are too short to be judged, and it is most of the work.
    pub(crate) fn restart(&mut self, first: &Seen, is_timeless: bool) {
        // In place: moving two kilobytes about is most of the time that a short connection takes. By name, all of them, so
        // that the compiler asks for what is added.
        let Self {
            halves,
            copies,
            opener,
            simultaneous,
            syn_at_ns,
            shifts,
            answered_ns,
            established,
            from_its_syn,
            syns,
            reset_by,
            first_sender,
            first_number,
            first_ns,
            last_ns,
            copied,
            options_cut,
            too_big_mtu,
            hop_limits,
            handshake,
            handshake_ns,
            opened_ns,
            syn_retransmissions,
            syn_ack_retransmissions,
            appended,
            set_back,
            setting,
            early,
        } = self;
        halves.iter_mut().for_each(|half| half.restart(is_timeless));
        copies.iter_mut().for_each(Copies::empty);
        early.empty();
        (*opener, *simultaneous, *reset_by, *established, *from_its_syn) = (None, false, None, false, false);
        (*syn_at_ns, *answered_ns, *handshake, *handshake_ns, *opened_ns) = ([None; 2], None, [None; 3], None, None);
        (*shifts, *syns, *syn_retransmissions, *syn_ack_retransmissions) = ([0; 2], 0, 0, 0);
        (*copied, *appended, *set_back, *setting) = (0, false, false, Setting::default());
        (*options_cut, *too_big_mtu, *hop_limits) = (false, None, [0; 2]);
        (*first_sender, *first_number) = (first.sender(), first.number);
        (*first_ns, *last_ns) = (first.at_ns, first.at_ns);
    }

    pub(crate) fn half(&self, sender: Sender) -> &Half {
        &self.halves[sender as usize]
    }

    /// The scale of the windows that `sender` offers: only where both SYNs carried the option (RFC 7323, section 2.2).
    pub(crate) fn shift(&self, sender: Sender) -> Option<u8> {
        let of = |sender: Sender| self.half(sender).syn.map(|syn| syn.window_scale);
        match (of(sender), of(other(sender))) {
            (Some(Some(shift)), Some(Some(_))) => Some(shift),
            (Some(None), _) | (_, Some(None)) => Some(0),
            // A SYN-ACK has the option only in answer to one.
            (Some(Some(shift)), None) if self.opener != Some(sender) => Some(shift),
            _ => None,
        }
    }

    /// One segment, in the order of the file.
    pub(crate) fn on(&mut self, seen: &Seen, options: &Options) {
        // The order of the file holds; a clock that was set back doesn't undo what happened. (Copying each segment would
        // be a quarter of the time in here.)
        let later;
        let seen = if seen.at_ns < self.last_ns || self.setting.is_behind() {
            let at_ns = self.setting.time_ns(seen.at_ns);
            if at_ns < self.last_ns {
                let by_ns = self.last_ns - at_ns;
                let is_far = by_ns > copies::LONGEST_NS;
                // Nobody repeats what is yet to be sent: one capture was appended to another that has the same packets. New data
                // from the past comes of a clock that was set back, and from then on so may a retransmission.
                if (is_far || self.appended) && !self.set_back && self.carries_nothing_new(seen) {
                    self.appended = true;
                    self.copied += 1;
                    return;
                }
                self.set_back |= is_far;
                if self.setting.goes_back(by_ns, self.last_ns, seen.number) {
                    self.halves.iter_mut().for_each(Half::forget_round_trips);
                }
            }
            later = seen.at(at_ns.max(self.last_ns));
            &later
        } else {
            seen
        };
        if self.early.is_empty() && !self.is_early(seen, options) {
            self.take(seen, options);
        } else {
            self.take_in_turn(seen, options);
        }
    }

    /// No more segments come.
    pub(crate) fn end(&mut self) {
        while let Some((ack, options)) = self.early.pop() {
            self.take_late(&ack, &options);
        }
    }

    /// Whether a segment acknowledges data that were not captured before it, and may be yet.
    #[inline]
    fn is_early(&self, seen: &Seen, options: &Options) -> bool {
        let data = self.half(other(seen.sender()));
        Early::may_wait(seen)
            && if seen.flags.has(Flags::SYN) {
                !data.is_begun()
            } else {
                data.lacks(seen.ack, Early::edge(seen, options))
            }
    }

    /// One segment where others wait for data, or this one is to.
    #[cold]
    fn take_in_turn(&mut self, seen: &Seen, options: &Options) {
        let own = seen.sender() as usize;
        while let Some((ack, options)) = self.early.pop_before(seen, |edge| self.halves[own].is_below(edge, 0)) {
            self.take_late(&ack, &options);
        }
        if self.early.are_before(seen) || self.is_early(seen, options) {
            self.early.push(seen, options);
            return;
        }
        self.take_late(seen, options);
        while let Some((ack, options)) = self.early.first().filter(|(ack, options)| !self.is_early(ack, options)) {
            self.early.pop();
            self.take_late(&ack, &options);
        }
    }

    /// One segment that waited, or others did.
    fn take_late(&mut self, seen: &Seen, options: &Options) {
        self.take(&seen.at(seen.at_ns.max(self.last_ns)), options);
    }

    /// One segment, later than those before it.
    fn take(&mut self, seen: &Seen, options: &Options) {
        let sender = seen.sender();
        self.last_ns = seen.at_ns;
        let is_old = self.carries_nothing_new(seen);
        // Only what is old can be a copy, and needs the round trip.
        let trip_ns = if is_old { self.trip_ns() } else { 0 };
        if self.copies[sender as usize].is_copy(seen, is_old, trip_ns) {
            self.copied += 1;
            return;
        }
        for half in &mut self.halves {
            let snd_max = half.snd_max();
            half.flight.advance(seen.at_ns, snd_max);
        }
        self.hop_limits[sender as usize] = seen.hop_limit;
        let is_syn = seen.flags.has(Flags::SYN);
        if is_syn {
            self.on_syn(seen, options);
            self.shifts = [Sender::Low, Sender::High].map(|sender| self.shift(sender).unwrap_or(0));
        } else if !self.established && self.answered_ns.is_some() {
            self.on_answer(seen);
        }
        let [low, high] = &mut self.halves;
        let (own, peer) = if sender == Sender::Low { (low, high) } else { (high, low) };
        if let Some([value, echo]) = seen.timestamps() {
            // Towards the other end, and back from this one.
            peer.near.sent(seen.at_ns, value);
            if seen.flags.has(Flags::ACK) && !is_syn {
                own.near.echoed(seen.at_ns, echo, seen.len);
            }
        }
        own.on_segment(seen, peer.syn.and_then(|syn| syn.mss));
        peer.on_ack(seen, options, self.shifts[sender as usize]);
        if seen.flags.has(Flags::RST) {
            self.reset_by.get_or_insert(sender);
        }
    }

    /// A message that a packet of `sender` was too big.
    pub(crate) fn on_too_big(&mut self, notice: &TooBig, sender: Sender) {
        self.halves[sender as usize].counters.too_big += 1;
        self.too_big_mtu = notice.mtu.or(self.too_big_mtu);
    }

    /// Whether both ends said that they are done.
    pub(crate) fn is_closed(&self) -> bool {
        self.reset_by.is_some() || self.halves.iter().all(|half| half.fin.is_some())
    }

    /// What samples span at least: half a round trip.
    pub(crate) fn step_ns(&self) -> u64 {
        (self.trip_ns() / 2).max(LEAST_STEP_NS)
    }

    /// Takes no more room for its timeline than its story needs. More segments may come, repeats of the last ones.
    #[cold]
    pub(crate) fn settle(&mut self) {
        let step_ns = self.step_ns();
        for half in &mut self.halves {
            let keeps_departures = crate::story::is_worth_comparing(half);
            if let Some(bins) = &mut half.flight.bins {
                bins.settle(step_ns, keeps_departures);
            }
        }
    }

    #[inline]
    fn carries_nothing_new(&self, seen: &Seen) -> bool {
        if seen.flags.has(Flags::SYN.with(Flags::FIN)) {
            return true;
        }
        if seen.len == 0 {
            self.half(other(seen.sender())).is_acked(seen.ack)
        } else {
            self.half(seen.sender()).is_below(seen.seq, seen.len)
        }
    }

    /// The shortest round trip between the ends, as far as it is known.
    pub(crate) fn trip_ns(&self) -> u64 {
        let [low, high] = &self.halves;
        let of = |half: &Half| half.near.least_ns.and(half.far.least_ns).map(|far_ns| half.near_ns() + far_ns);
        of(low).into_iter().chain(of(high)).min().unwrap_or(0)
    }

    #[cold]
    fn on_syn(&mut self, seen: &Seen, options: &Options) {
        let sender = seen.sender();
        let (own, peer) = (sender as usize, other(sender) as usize);
        let now = seen.at_ns;
        self.syns += 1;
        self.halves[own].syn = Some(options.syn);
        self.halves[own].syn_window = Some(seen.window);
        self.syn_at_ns[own] = Some(now);
        if !seen.flags.has(Flags::ACK) {
            self.simultaneous |= self.opener.is_some_and(|opener| opener != sender);
            self.opener.get_or_insert(sender);
            self.syn_retransmissions += u32::from(self.handshake[0].is_some() && !self.simultaneous);
            self.handshake[0].get_or_insert(seen.number);
            self.from_its_syn |= self.halves.iter().all(|half| half.counters.packets == 0);
            return;
        }
        self.opener.get_or_insert_with(|| other(sender));
        self.syn_ack_retransmissions += u32::from(self.handshake[1].is_some());
        self.handshake[1].get_or_insert(seen.number);
        if let Some(syn_ns) = self.syn_at_ns[peer] {
            // From here to the end that answered, and back.
            self.note_way(sender, now.saturating_sub(syn_ns), 0);
        }
        self.answered_ns = Some(now);
    }

    /// What may acknowledge the SYN-ACK.
    #[cold]
    fn on_answer(&mut self, seen: &Seen) {
        let sender = seen.sender();
        let Some(answered_ns) = self.answered_ns else { return };
        if self.opener != Some(sender) || !seen.flags.has(Flags::ACK) {
            return;
        }
        let now = seen.at_ns;
        self.established = true;
        self.handshake[2] = Some(seen.number);
        self.note_way(sender, now.saturating_sub(answered_ns), seen.len);
        self.opened_ns = self.from_its_syn.then(|| now.saturating_sub(self.first_ns));
        self.handshake_ns = self.syn_at_ns[sender as usize].map(|syn_ns| now.saturating_sub(syn_ns));
    }

    /// From the place of capture to `end` and back, with `len` bytes of payload, took this long: it is near to its own data
    /// and far from the other's.
    fn note_way(&mut self, end: Sender, took_ns: u64, len: u32) {
        let near = &mut self.halves[end as usize].near;
        near.note(took_ns, len);
        near.is_way = true;
        self.halves[other(end) as usize].far.note(took_ns, len);
    }
}
