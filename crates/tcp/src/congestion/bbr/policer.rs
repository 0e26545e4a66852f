//! A policer on the path: two spans of much loss with the same rate, from loss to loss, tell its rate.

use super::super::{Ack, scaled};
use crate::{divide, time::millis};

/// Round trips of a span: at the least, and for how many its rate stands.
const LEAST_ROUNDS: u8 = 4;
const STANDS_ROUNDS: u8 = 48;
/// A span counts where a fifth and more was lost: 50 of 256.
const LOSS: u64 = 50;
/// Two rates are the same within an eighth, or 500 bytes per second.
const NEAR: u32 = 500;

/// What is known of a policer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Policer {
    rate: u32,
    is_known: bool,
    is_sampling: bool,
    rounds: u8,
    /// Where the span began.
    delivered: u32,
    lost: u32,
    at_ms: u32,
}

impl Policer {
    pub(super) const fn is_known(&self) -> bool {
        self.is_known
    }

    /// Its rate, where there is one.
    pub(super) const fn rate(&self) -> Option<u32> {
        if self.is_known { Some(self.rate) } else { None }
    }

    const fn begin(&mut self, ack: &Ack) {
        (self.delivered, self.lost, self.at_ms, self.rounds) = (ack.delivered, ack.lost_in_all, millis(ack.now), 0);
    }

    const fn forget(&mut self, ack: &Ack) {
        (self.rate, self.is_known, self.is_sampling) = (0, false, false);
        self.begin(ack);
    }

    /// Takes an acknowledgement; whether a rate has stood for long enough, so that the path is to be asked again.
    pub(super) fn sample(&mut self, ack: &Ack, is_round_start: bool, is_cycling: bool) -> bool {
        if self.is_known {
            if is_cycling && is_round_start {
                self.rounds += 1;
                if self.rounds >= STANDS_ROUNDS {
                    self.forget(ack);
                    return true;
                }
            }
            return false;
        }
        if !self.is_sampling {
            // From a loss on: the policer's tokens are used up.
            if ack.lost == 0 {
                return false;
            }
            self.begin(ack);
            self.is_sampling = true;
        }
        if ack.rate.is_some_and(|sample| sample.is_app_limited) {
            self.forget(ack);
            return false;
        }
        self.rounds += u8::from(is_round_start);
        if self.rounds < LEAST_ROUNDS {
            return false;
        }
        if self.rounds > 4 * LEAST_ROUNDS {
            self.forget(ack);
            return false;
        }
        if ack.lost > 0 {
            self.end(ack);
        }
        false
    }

    /// A span is over.
    fn end(&mut self, ack: &Ack) {
        let lost = ack.lost_in_all.wrapping_sub(self.lost);
        let delivered = ack.delivered.wrapping_sub(self.delivered);
        if delivered == 0 || u64::from(lost) << 8 < LOSS * u64::from(delivered) {
            return;
        }
        let ms = millis(ack.now).wrapping_sub(self.at_ms);
        if ms == 0 || ms >= 1 << 31 {
            return;
        }
        let rate = scaled(delivered, 1_000, ms);
        let differ = rate.abs_diff(self.rate);
        if self.rate > 0 && (differ <= self.rate / 8 || differ <= NEAR) {
            self.rate = divide::by(u64::from(rate) + u64::from(self.rate), 2) as u32;
            (self.is_known, self.rounds) = (true, 0);
            return;
        }
        self.rate = rate;
        self.begin(ack);
    }
}
