//! Samples of the delivery rate, as Linux's `tcp_rate.c` takes them (draft-ietf-ccwg-bbr, section 4.1): each segment remembers
//! what had been delivered when it left.

use fullpipe_units::Instant;

use super::Delivered;
use crate::{
    congestion::RateSample,
    pool::{BufferId, Pool},
    time::micros,
};

/// What a segment remembers of the moment at which it left. Times are microseconds modulo 2^32.
#[derive(Clone, Copy, Debug)]
pub struct Before {
    delivered: u32,
    delivered_at: u32,
    first_sent_at: u32,
    is_app_limited: bool,
}

impl Before {
    /// Nothing.
    pub const NOTHING: Self = Self { delivered: 0, delivered_at: 0, first_sent_at: 0, is_app_limited: false };
}

/// Of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rates {
    pub(crate) is_on: bool,
    /// Bytes delivered and lost since the connection began, modulo 2^32.
    pub(crate) delivered: u32,
    pub(crate) lost: u32,
    /// When something was last delivered, and when the latest segment delivered was sent.
    delivered_at: u32,
    first_sent_at: u32,
    /// Until so much is delivered, samples are the application's.
    app_limited_until: Option<u32>,
}

impl Rates {
    /// What a segment that leaves now remembers; `is_first` where nothing is outstanding.
    pub(super) fn before(&mut self, now: Instant, is_first: bool) -> Before {
        if is_first {
            let now = micros(now);
            (self.delivered_at, self.first_sent_at) = (now, now);
        }
        Before {
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            is_app_limited: self.app_limited_until.is_some(),
        }
    }

    /// The application, or the algorithm, leaves the path idle: what is in flight now is less than it could be.
    pub(crate) const fn limited_by_application(&mut self, in_flight: u32) {
        if self.is_on {
            self.app_limited_until = Some(self.delivered.wrapping_add(in_flight));
        }
    }

    pub(crate) const fn is_app_limited(&self) -> bool {
        self.app_limited_until.is_some()
    }

    /// An acknowledgement has delivered `bytes`: the sample, and the round-trip time where that is certain.
    pub(crate) fn sample(&mut self, bytes: u32, delivered: &Delivered) -> (Option<RateSample>, Option<u32>) {
        let now = micros(delivered.now);
        self.delivered = self.delivered.wrapping_add(bytes);
        if self.app_limited_until.is_some_and(|until| (self.delivered.wrapping_sub(until) as i32) > 0) {
            self.app_limited_until = None;
        }
        if bytes > 0 {
            self.delivered_at = now;
        }
        let Some(latest) = delivered.rate else { return (None, None) };
        let sent_at = micros(latest.sent_at);
        self.first_sent_at = sent_at;
        let rtt_us = (!latest.is_retransmitted).then(|| now.wrapping_sub(sent_at));
        let sent_us = sent_at.wrapping_sub(latest.before.first_sent_at);
        let interval_us = sent_us.max(now.wrapping_sub(latest.before.delivered_at));
        // In less than a round trip nothing is delivered that was sent at its beginning.
        let is_whole = (1..1 << 31).contains(&interval_us) && interval_us >= delivered.min_rtt_us;
        let sample = RateSample {
            delivered: self.delivered.wrapping_sub(latest.before.delivered),
            delivered_before: latest.before.delivered,
            interval_us,
            is_app_limited: latest.before.is_app_limited,
        };
        (is_whole.then_some(sample), rtt_us)
    }
}

/// The delivered segment that was sent last.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LastSent {
    pub(super) sent_at: Instant,
    pub(super) is_retransmitted: bool,
    pub(super) before: Before,
}

impl Delivered {
    /// Notes a delivered segment.
    pub(super) fn note_rate(&mut self, pool: &Pool<'_>, id: BufferId) {
        let slot = pool.slot(id);
        if self.rate.is_none_or(|known| slot.sent_at >= known.sent_at) {
            let (sent_at, is_retransmitted) = (slot.sent_at, slot.retransmits > 0);
            self.rate = Some(LastSent { sent_at, is_retransmitted, before: pool.before(id) });
        }
    }
}
