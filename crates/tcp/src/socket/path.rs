//! The path's segment size: what ICMP says (RFC 1191, RFC 8201, RFC 5927), and what silence says (RFC 4821).

use fullpipe_units::SeqNum;

use super::{Context, Failure, Phase, Socket, State, Syn};
use crate::{
    profile::IcmpErrors,
    time::Millis,
    wire::{icmp::Reason, ip},
};

impl Socket {
    /// An ICMP error quotes a segment of this connection, starting at `seq`; `overhead` is IP and TCP header. Returns the
    /// size that the path takes, where that is news.
    pub(crate) fn on_icmp(
        &mut self,
        cx: &mut Context<'_, '_>,
        reason: Reason,
        seq: SeqNum,
        overhead: u32,
    ) -> Option<u16> {
        // RFC 5927, section 4.1: it must quote what is in flight.
        let in_flight = seq.in_window(self.snd_una(), self.snd_nxt().distance_from(self.snd_una()).max(1));
        if self.state == State::Closed || !in_flight {
            return None;
        }
        match reason {
            Reason::TooBig(mtu) => return self.on_too_big(cx, mtu, overhead),
            // RFC 9293, section 3.9.2.2, SHLD-26: hard errors abort; RFC 5927, section 5.2: not a connection that
            // has been established, which an attacker could end so.
            // MUST-56: soft errors do not abort, unless a profile says so of those that are being opened.
            Reason::Hard | Reason::Prohibited | Reason::Soft => {
                let ends = match cx.profile.icmp_errors() {
                    IcmpErrors::None => false,
                    IcmpErrors::Hard => reason == Reason::Hard,
                    IcmpErrors::Prohibited => reason != Reason::Soft,
                    IcmpErrors::All => true,
                };
                if ends && matches!(self.state, State::SynSent | State::SynReceived) {
                    self.end(cx, Some(Failure::Unreachable));
                }
            }
        }
        None
    }

    fn on_too_big(&mut self, cx: &mut Context<'_, '_>, mtu: u32, overhead: u32) -> Option<u16> {
        // A router from before RFC 1191 tells no MTU; below the least that IP guarantees it is a lie (RFC 8201,
        // section 4, and, for IPv4, 552 as Linux has it, against forged ones).
        let least = if ip::is_v6(self.tuple.remote.addr) { 1280 } else { 552 };
        let mtu = mtu.max(least);
        let size = u16::try_from(mtu.saturating_sub(overhead)).unwrap_or(u16::MAX);
        if size >= self.path_mss {
            self.note_probe_too_big(cx, size);
            return None;
        }
        self.lower_to(cx, size);
        self.bound_search(size);
        if self.state == State::SynSent {
            // A SYN is too large only for its data; without it leaves at once.
            if self.tx.outstanding() > 0 {
                self.syn = Syn::Again;
            }
        } else {
            self.resend_smaller(cx);
        }
        Some(size)
    }

    /// What was sent too large is retransmitted, without the window paying for it: no congestion was seen.
    fn resend_smaller(&mut self, cx: &mut Context<'_, '_>) {
        if self.tx.outstanding() == 0 {
            return;
        }
        self.tx.mark_all_lost(cx.pool);
        if self.phase == Phase::Open {
            self.phase = Phase::Loss;
            self.recover = self.tx.nxt;
        }
    }

    /// RFC 4821, section 7.7, and RFC 8899's black-hole detection: full segments that time out again and again may
    /// be too large for a path that does not say so.
    pub(super) fn probe_for_black_hole(&mut self, cx: &Context<'_, '_>) {
        const STEPS: [u16; 3] = [1_180, 960, 512];
        if !cx.profile.mtu_probing || self.rtt.backoff() < 2 || u32::from(self.path_mss.min(self.peer_mss)) < 512 {
            return;
        }
        let current = self.path_mss.min(self.peer_mss);
        if let Some(size) = STEPS.into_iter().find(|size| *size < current) {
            self.lower_to(cx, size);
            self.bound_search(current - 1);
        }
    }

    fn lower_to(&mut self, cx: &Context<'_, '_>, size: u16) {
        self.path_mss = size;
        self.path_learnt_at = Millis::new(cx.now);
    }

    /// RFC 1191, section 6.3, and RFC 8201, section 4: after ten minutes the path may have become wider; a full
    /// segment tells. Where larger segments are searched for, a probe does.
    pub(super) fn raise_after_a_while(&mut self, cx: &Context<'_, '_>) {
        const TEN_MINUTES_MS: u32 = 600_000;
        if !Self::searches(cx)
            && self.path_mss < self.own_mss
            && Millis::new(cx.now).since(self.path_learnt_at) >= TEN_MINUTES_MS
        {
            self.path_mss = self.own_mss;
        }
    }
}
