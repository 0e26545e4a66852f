//! The search for larger segments (RFC 4821, section 7; RFC 8899 in spirit): where the path is known to take less than
//! both ends would, a segment of new data is made larger now and then. Whether it arrives tells. What makes segments
//! smaller is in `path`. In a build without `path-search` the questions have fixed answers.

use crate::send::Chosen;

#[cfg(feature = "path-search")]
pub(super) use self::on::Search;

/// Whether a probe leaves now.
#[derive(Debug)]
#[cfg_attr(not(feature = "path-search"), expect(dead_code, reason = "such a build never sends one"))]
pub(super) enum ProbeChoice {
    /// There is none to send.
    No,
    /// Once the data under way has made room: what is acknowledged one segment at a time never leaves room for it and for
    /// those behind it, unless nothing else takes it (Linux's `tcp_mtu_probe` waits too).
    Wait,
    Send(Chosen),
}

#[cfg(feature = "path-search")]
mod on {
    use fullpipe_units::SeqNum;

    use super::ProbeChoice;
    use crate::{
        socket::{Context, Phase, Socket},
        time::Millis,
    };

    /// Section 7.3: the range is small enough. Linux's `tcp_probe_threshold`.
    const THRESHOLD: u16 = 8;
    /// Section 7.3: "When probing has converged, a timer SHOULD be set. ... MUST NOT be less than 5 minutes and is
    /// recommended to be 10 minutes". Linux's `tcp_probe_interval`.
    const INTERVAL_MS: u32 = 600_000;
    /// Full segments that leave behind a probe, so that duplicate acknowledgements tell of its loss (section 6.1).
    const TRAILING: u32 = 3;

    /// What is known above `path_mss`, which is section 7.1's `search_low`. Sizes are those of data without options.
    #[derive(Clone, Copy, Debug)]
    pub(in crate::socket) struct Search {
        /// `search_high`: nothing larger is worth trying.
        high: u16,
        /// The size of the probe under way, zero for none, and the number after its data.
        probe: u16,
        probe_end: SeqNum,
    }

    impl Search {
        /// Section 7.2: "The initial value for search_high SHOULD be the largest possible packet", unless an earlier connection
        /// has learnt better.
        pub(in crate::socket) const fn new(high: u16) -> Self {
            Self { high, probe: 0, probe_end: SeqNum::new(0) }
        }
    }

    impl Socket {
        /// Whether larger segments are searched for.
        pub(in crate::socket) const fn searches(cx: &Context<'_, '_>) -> bool {
            cx.profile.mtu_probing
        }

        /// The path takes no more than `high`.
        pub(in crate::socket) const fn bound_search(&mut self, high: u16) {
            (self.search.high, self.search.probe, self.path_pause_s) = (high, 0, 0);
        }

        /// Section 7.2: where the search begins.
        pub(in crate::socket) fn begin_search(&mut self, cx: &Context<'_, '_>) {
            if let (true, Some(initial)) = (Self::searches(cx), cx.profile.initial_mss) {
                self.path_mss = self.path_mss.min(initial.max(64));
            }
        }

        /// Data for a probe that may leave now, where there are `allowed` bytes of window.
        pub(in crate::socket) fn choose_probe(&mut self, cx: &Context<'_, '_>, allowed: u32) -> ProbeChoice {
            if !Self::searches(cx) || self.path_mss >= self.own_mss.min(self.peer_mss) {
                return ProbeChoice::No;
            }
            // Section 7.4: "It has no outstanding probes or losses."
            let is_quiet = self.search.probe == 0
                && self.phase == Phase::Open
                && self.tx.lost == 0
                && self.tx.sacked == 0
                && self.duplicate_acks == 0;
            let Some(size) = self.size_to_probe(cx).filter(|_| is_quiet) else { return ProbeChoice::No };
            let len = self.data_of(size);
            // "The available window is greater than the probe size." "Enough data is available to send the probe."
            let needed = len + TRAILING * self.mss();
            if self.tx.unsent_bytes() < needed || self.snd_wnd.min(self.window.cwnd) < needed {
                return ProbeChoice::No;
            }
            if allowed < needed && self.tx.outstanding() > 0 {
                return ProbeChoice::Wait;
            }
            let Some(chosen) = self.tx.choose_one(cx.pool, len).filter(|_| allowed >= needed) else {
                return ProbeChoice::No;
            };
            (self.search.probe, self.search.probe_end) = (size, chosen.seq + len);
            ProbeChoice::Send(chosen)
        }

        /// Section 7.3: "MUST select a probe size that is larger than search_low and smaller than or equal to
        /// search_high".
        fn size_to_probe(&mut self, cx: &Context<'_, '_>) -> Option<u16> {
            let limit = self.own_mss.min(self.peer_mss);
            let waited_ms = Millis::new(cx.now).since(self.path_learnt_at);
            if waited_ms < u32::from(self.path_pause_s) * 1_000 {
                return None;
            }
            if self.search.high.min(limit).saturating_sub(self.path_mss) < THRESHOLD {
                if waited_ms < INTERVAL_MS {
                    return None;
                }
                self.search.high = limit;
            }
            // Most paths take all or are narrow for good: the whole first, then half of what is left.
            let high = self.search.high;
            Some(if high >= limit { limit } else { self.path_mss + (high - self.path_mss).div_ceil(2) })
        }

        /// The data bytes of a segment of `size`, less its options.
        fn data_of(&self, size: u16) -> u32 {
            self.mss() + u32::from(size) - u32::from(self.path_mss.min(self.peer_mss))
        }

        /// Section 7.6.1: the probe was acknowledged. The window counts bytes, and so stays as it is (section 7.3's "MUST
        /// be rescaled").
        /// Whether a probe is under way.
        pub(in crate::socket) const fn probes_path(&self) -> bool {
            self.search.probe > 0
        }

        pub(in crate::socket) fn note_probe_acknowledged(&mut self, cx: &Context<'_, '_>) {
            let Search { probe, probe_end, .. } = self.search;
            if probe > 0 && self.tx.una.at_or_after(probe_end) {
                self.search.probe = 0;
                self.search.high = self.search.high.max(probe);
                self.path_mss = probe;
                self.path_learnt_at = Millis::new(cx.now);
            }
        }

        /// Losses were found. Returns whether only the probe is lost, which is no sign of congestion (section 7.6.2); where
        /// something else is, nothing is learnt (section 7.6.4).
        pub(in crate::socket) fn probe_alone_is_lost(&mut self, cx: &mut Context<'_, '_>) -> bool {
            let (size, start, end) = (self.search.probe, self.probe_start(), self.search.probe_end);
            self.search.probe = 0;
            if size == 0 || self.tx.lost_between(cx.pool, start, end) != self.tx.lost {
                return false;
            }
            self.search.probe = size;
            self.fail_probe(cx, size - 1);
            true
        }

        /// The probe is too large: `high` is the most that may not be. Its data leaves again in smaller segments.
        fn fail_probe(&mut self, cx: &mut Context<'_, '_>, high: u16) {
            let start = self.probe_start();
            self.bound_search(high);
            self.path_learnt_at = Millis::new(cx.now);
            // Section 7.6.2: after a loss that was no congestion, no probe for as many round trips as the window has segments,
            // about what lies between two losses that are.
            let rounds = self.window.cwnd / self.mss();
            let pause_ms = rounds.saturating_mul(self.rtt.srtt().div_ceil(1_000));
            self.path_pause_s = u16::try_from(pause_ms.div_ceil(1_000)).unwrap_or(u16::MAX);
            self.tx.mark_lost_between(cx.pool, start, self.search.probe_end);
            // Duplicate acknowledgements of what has left tell nothing more.
            self.recover = self.tx.nxt;
        }

        fn probe_start(&self) -> SeqNum {
            self.search.probe_end - self.data_of(self.search.probe.max(self.path_mss))
        }

        /// ICMP says that `size` is the most, which is less than the probe and no less than what the path is known to take.
        pub(in crate::socket) fn note_probe_too_big(&mut self, cx: &mut Context<'_, '_>, size: u16) {
            if size < self.search.probe {
                self.fail_probe(cx, size);
                self.path_pause_s = 0;
            }
        }

        /// A timeout: the probe is as good as lost, and the timeout is a sign of congestion all the same (section 7.6.3).
        pub(in crate::socket) const fn note_probe_timeout(&mut self) {
            if self.search.probe > 0 {
                self.bound_search(self.search.probe - 1);
            }
        }
    }
}

#[cfg(not(feature = "path-search"))]
mod off {
    use super::ProbeChoice;
    use crate::socket::{Context, Socket};

    #[expect(clippy::unused_self, reason = "the questions are those of the build that searches")]
    impl Socket {
        pub(in crate::socket) const fn searches(_: &Context<'_, '_>) -> bool {
            false
        }

        pub(in crate::socket) const fn bound_search(&self, _: u16) {}

        pub(in crate::socket) const fn begin_search(&self, _: &Context<'_, '_>) {}

        pub(in crate::socket) const fn choose_probe(&self, _: &Context<'_, '_>, _: u32) -> ProbeChoice {
            ProbeChoice::No
        }

        pub(in crate::socket) const fn probes_path(&self) -> bool {
            false
        }

        pub(in crate::socket) const fn note_probe_acknowledged(&self, _: &Context<'_, '_>) {}

        pub(in crate::socket) const fn probe_alone_is_lost(&self, _: &Context<'_, '_>) -> bool {
            false
        }

        pub(in crate::socket) const fn note_probe_too_big(&self, _: &Context<'_, '_>, _: u16) {}

        pub(in crate::socket) const fn note_probe_timeout(&self) {}
    }
}
