//! What a socket keeps of its options: less than an application may set, in less room.

use super::SocketOptions;
use crate::profile::{AckPolicy, Keepalive};

/// The options in force. The budgets are with the socket's two halves, the largest segment is in the sizes that were
/// agreed upon, and a limit that is not set is the largest.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kept {
    user_timeout_ms: u32,
    open_timeout_ms: u32,
    unsent_low: u32,
    reap_after_ms: u32,
    keepalive_idle_s: u32,
    keepalive_interval_s: u32,
    ack_delay_us: u32,
    keepalive_probes: u8,
    keeps_alive: bool,
    ack_segments: u8,
    pub(super) syn_retries: u8,
    pub(super) no_nagle: bool,
    pub(super) no_push: bool,
    pub(super) corked: bool,
    pub(super) no_options: bool,
}

const NEVER: u32 = u32::MAX;

impl Kept {
    pub(super) fn new(options: &SocketOptions) -> Self {
        let keepalive = options.keepalive.unwrap_or(Keepalive::USUAL);
        Self {
            user_timeout_ms: options.user_timeout_ms.unwrap_or(NEVER),
            open_timeout_ms: options.open_timeout_ms.unwrap_or(NEVER),
            unsent_low: options.unsent_low.unwrap_or(NEVER),
            reap_after_ms: options.reap_after_ms.unwrap_or(NEVER),
            keepalive_idle_s: keepalive.idle_s,
            keepalive_interval_s: keepalive.interval_s,
            ack_delay_us: options.ack.delay_us,
            keepalive_probes: keepalive.probes,
            keeps_alive: options.keepalive.is_some(),
            ack_segments: options.ack.segments,
            syn_retries: options.syn_retries,
            no_nagle: options.no_nagle,
            no_push: options.no_push,
            corked: options.corked,
            no_options: options.no_options,
        }
    }

    /// For how long data, or in a connection that is being opened the SYN, may be unacknowledged.
    pub(super) fn user_timeout_ms(&self, is_opening: bool) -> Option<u32> {
        let limit = if is_opening { self.user_timeout_ms.min(self.open_timeout_ms) } else { self.user_timeout_ms };
        Some(limit).filter(|limit| *limit != NEVER)
    }

    /// The bytes waiting to be sent from which on no more is taken.
    pub(super) fn unsent_low(&self) -> Option<u32> {
        Some(self.unsent_low).filter(|mark| *mark != NEVER)
    }

    /// For how long the peer may be silent.
    pub(super) fn reap_after_ms(&self) -> Option<u32> {
        Some(self.reap_after_ms).filter(|limit| *limit != NEVER)
    }

    pub(super) fn keepalive(&self) -> Option<Keepalive> {
        let (idle_s, interval_s, probes) = (self.keepalive_idle_s, self.keepalive_interval_s, self.keepalive_probes);
        self.keeps_alive.then_some(Keepalive { idle_s, interval_s, probes })
    }

    /// When to acknowledge. Quick acknowledgements are counted down from the start.
    pub(super) const fn ack(&self) -> AckPolicy {
        AckPolicy { segments: self.ack_segments, delay_us: self.ack_delay_us, quick: 0 }
    }
}
