//! One connection's part in fast open (RFC 7413, section 4.2): what its SYN or SYN-ACK carries, and what became of it.
//! In a build without fast open the questions that the state machine asks have fixed answers.

#[cfg(not(feature = "fast-open"))]
pub(crate) use self::off::Part;
#[cfg(feature = "fast-open")]
pub(crate) use self::on::Part;

#[cfg(feature = "fast-open")]
mod on {
    use crate::{
        fast_open::{Answer, Offer},
        pool::Run,
        send::Allowance,
        socket::{Context, Socket, State, timer::Timer},
        wire::{
            fast_open::{Cookie, FastOpen, Format},
            tcp::{Options, Segment},
        },
    };

    /// Option bytes that a SYN with data is kept clear of: devices on the path that add options to SYNs would else
    /// make it too large.
    const RESERVED: u16 = 40;

    /// A connection's part.
    #[derive(Clone, Copy, Debug, Default)]
    pub(crate) struct Part {
        /// The form of the option that the SYN (until it is retransmitted), or the SYN-ACK, carries.
        option: Option<Format>,
        /// Of a client, the data bytes that its SYN may carry.
        room: u16,
        /// Of a client: whether its SYN asks or carries data, and whether it was retransmitted without.
        is_asking: bool,
        fell_back: bool,
        /// Of a server: whether the SYN's cookie was right, so that data may flow before the handshake is over.
        is_early: bool,
        /// Whether data of the SYN was acknowledged, by the one or the other.
        is_taken: bool,
        /// News for the cache of peers.
        answer: Option<Answer>,
    }

    impl Part {
        /// A client's, as the cache has it.
        pub(crate) fn of_client(offer: Offer) -> Self {
            let room = if offer.mss == 0 { 0 } else { offer.mss.saturating_sub(RESERVED) };
            Self { option: offer.option, room, is_asking: true, ..Self::default() }
        }

        /// A server's: whether it takes the SYN's data, and the form of the cookie that it gives.
        pub(crate) fn of_server(is_early: bool, option: Option<Format>) -> Self {
            Self { option, is_early, ..Self::default() }
        }

        pub(crate) const fn room(&self) -> u16 {
            self.room
        }
    }

    impl Socket {
        /// Whether data flows before the handshake is over (section 4.2.2).
        pub(crate) fn is_early(&self) -> bool {
            self.fast.is_early && self.state == State::SynReceived
        }

        /// Whether the data of a SYN was acknowledged.
        pub(crate) const fn syn_data_taken(&self) -> bool {
            self.fast.is_taken
        }

        /// The option without its cookie, which the stack knows.
        pub(crate) fn add_fast_open(&self, options: &mut Options) {
            let empty = |format| FastOpen { cookie: Cookie::NONE, format };
            // The answer to a SYN that crosses this end's asks for nothing.
            let is_crossing = self.fast.is_asking && self.state == State::SynReceived;
            options.fast_open = self.fast.option.filter(|_| !is_crossing).map(empty);
        }

        /// The segment size to announce: what this end takes, whatever is known of the path to the peer (RFC 9293, section
        /// 3.7.1); but a SYN that replaces one that was too large says how much arrives, as Linux has it.
        pub(crate) fn announced_mss(&self) -> u16 {
            if self.fast.fell_back { self.own_mss.min(self.path_mss) } else { self.own_mss }
        }

        /// The data that a client's first SYN carries (section 4.2.1). No PSH: it could not be distinguished from the SYN's.
        pub(crate) fn take_syn_data(&mut self, cx: &mut Context<'_, '_>) -> Run {
            let room = u32::from(self.fast.room);
            let allow = Allowance { bytes: room, mss: room.max(1), burst: room };
            let Some(chosen) = self.tx.choose(cx.pool, allow).filter(|_| room > 0) else { return Run::EMPTY };
            self.tx.sent(cx.pool, &chosen, cx.now);
            self.counts.note(|counts| counts.bytes_sent += u64::from(chosen.run.len));
            chosen.run
        }

        /// The SYN has to be retransmitted: without option and data, which may be why it was lost (section 4.2.1).
        pub(crate) fn fall_back(&mut self) {
            if self.state == State::SynSent && self.fast.is_asking && !self.fast.fell_back {
                (self.fast.option, self.fast.room, self.fast.fell_back) = (None, 0, true);
                self.fast.answer = Some(Answer::Lost);
            }
        }

        /// The SYN-ACK came, and with it `Socket::establish`: its number may acknowledge data, all or in part; the rest
        /// leaves again at once, which is no sign of congestion (section 4.2.1).
        pub(crate) fn take_syn_ack(&mut self, cx: &mut Context<'_, '_>, segment: &Segment<'_>) {
            let had_data = self.tx.outstanding() > 0;
            let first = self.tx.una;
            if segment.ack.after(first) {
                let mut delivered = crate::send::Delivered::new(cx.now, 0);
                self.take_acknowledged(cx, segment.ack, &mut delivered);
            }
            let some = self.tx.una.after(first);
            self.fast.is_taken = some && self.tx.outstanding() == 0;
            if self.tx.outstanding() > 0 {
                self.tx.mark_all_lost(cx.pool);
            }
            if self.fast.is_asking {
                self.fast.answer = Some(match (had_data, self.fast.fell_back) {
                    (true, _) if some => Answer::Taken,
                    (_, true) => Answer::Late,
                    (true, false) => Answer::Ignored,
                    (false, false) => Answer::Asked,
                });
            }
        }

        /// The peer's SYN, taken with a right cookie (section 4.2.2): its data is there to be read, and answers may leave.
        pub(crate) fn open_early(mut self, cx: &mut Context<'_, '_>, syn: &Segment<'_>) -> Self {
            if !self.fast.is_early {
                return self;
            }
            self.window.cwnd = cx.profile.initial_window_bytes(self.mss());
            self.rx.offer(cx.pool, self.window_limit());
            if !syn.payload.is_empty() {
                let reply = self.take_text(cx, syn.seq + 1, syn);
                debug_assert_eq!(reply, super::super::Reply::None, "an application may still accept it");
                self.fast.is_taken = self.rx.readable > 0;
                self.timers.stop(Timer::DelayedAck);
            }
            self
        }

        /// The handshake of an early connection is over: what it sent before is timed from now.
        pub(crate) fn after_early(&mut self, cx: &Context<'_, '_>) {
            if self.tx.outstanding() > 0 {
                self.arm_retransmit(cx);
                self.arm_tail_loss(cx);
            }
        }

        /// What the cache of peers should learn.
        pub(crate) const fn take_answer(&mut self) -> Option<Answer> {
            self.fast.answer.take()
        }
    }
}

#[cfg(not(feature = "fast-open"))]
mod off {
    use crate::{
        pool::Run,
        socket::{Context, Socket},
        wire::tcp::{Options, Segment},
    };

    /// Nothing.
    #[derive(Clone, Copy, Debug, Default)]
    pub(crate) struct Part {}

    #[expect(clippy::unused_self, reason = "the questions are those of the build that has fast open")]
    impl Part {
        const fn is_early(self) -> bool {
            false
        }
    }

    #[expect(clippy::unused_self, reason = "the questions are those of the build that has fast open")]
    impl Socket {
        pub(crate) const fn is_early(&self) -> bool {
            self.fast.is_early()
        }

        pub(crate) const fn open_early(self, _: &mut Context<'_, '_>, _: &Segment<'_>) -> Self {
            self
        }

        pub(crate) const fn syn_data_taken(&self) -> bool {
            false
        }

        pub(crate) const fn add_fast_open(&self, _: &mut Options) {}

        pub(crate) const fn announced_mss(&self) -> u16 {
            self.own_mss
        }

        pub(crate) const fn take_syn_data(&self, _: &mut Context<'_, '_>) -> Run {
            Run::EMPTY
        }

        pub(crate) const fn fall_back(&self) {}

        pub(crate) const fn take_syn_ack(&self, _: &mut Context<'_, '_>, _: &Segment<'_>) {}

        pub(crate) const fn after_early(&self, _: &Context<'_, '_>) {}
    }
}
