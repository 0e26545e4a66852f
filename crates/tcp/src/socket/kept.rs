//! What a socket keeps of its options: less than an application may set, in less room.

use super::SocketOptions;
use crate::profile::{AckPolicy, Keepalive};

/// The options in force. The budgets are with the socket's two halves, the largest segment is in the sizes that were
/// agreed upon, and a limit that is not set is the largest.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Kept {
    switches: u8,
    ack_segments: u8,
    keepalive_probes: u8,
    pub(super) syn_retries: u8,
    ack_delay_us: u32,
    user_timeout_ms: u32,
    #[cfg(feature = "platforms")]
    unsent_low: u32,
    reap_after_ms: u32,
    keepalive_idle_s: u32,
    keepalive_interval_s: u32,
}

const NEVER: u32 = u32::MAX;

const KEEPS_ALIVE: u8 = 1;
const NO_NAGLE: u8 = 1 << 1;
const NO_PUSH: u8 = 1 << 2;
const CORKED: u8 = 1 << 3;
const NO_OPTIONS: u8 = 1 << 4;
/// More was announced with the last write: what is less than a segment waits for it, or for the peer.
const MORE: u8 = 1 << 5;

/// What arrives in order is thrown away at once.
#[cfg(feature = "platforms")]
const DISCARDS: u8 = 1 << 6;

const fn switches(options: &SocketOptions) -> u8 {
    let always = options.keepalive.is_some() as u8 | (options.no_nagle as u8) << 1 | (options.no_push as u8) << 2;
    #[cfg(feature = "platforms")]
    let always = always | (options.discards as u8) << 6;
    if cfg!(feature = "platforms") {
        always | (options.corked as u8) << 3 | (options.no_options as u8) << 4
    } else {
        always
    }
}

impl Kept {
    pub(super) fn new(options: &SocketOptions) -> Self {
        let keepalive = options.keepalive.unwrap_or(Keepalive::USUAL);
        Self {
            user_timeout_ms: options.user_timeout_ms.unwrap_or(NEVER),
            #[cfg(feature = "platforms")]
            // Zero is no mark, as on Linux (tcp(7)).
            unsent_low: options.unsent_low.filter(|mark| *mark > 0).unwrap_or(NEVER),
            reap_after_ms: options.reap_after_ms.unwrap_or(NEVER),
            keepalive_idle_s: keepalive.idle_s,
            keepalive_interval_s: keepalive.interval_s,
            ack_delay_us: options.ack.delay_us,
            keepalive_probes: keepalive.probes,
            switches: switches(options),
            ack_segments: options.ack.segments,
            syn_retries: options.syn_retries,
        }
    }

    pub(super) const fn set_more(&mut self, is_on: bool) {
        if !cfg!(feature = "platforms") {
            return;
        }
        self.switches = if is_on { self.switches | MORE } else { self.switches & !MORE };
    }

    const fn has(&self, switch: u8) -> bool {
        self.switches & switch != 0
    }

    pub(super) const fn no_nagle(&self) -> bool {
        self.has(NO_NAGLE)
    }

    pub(super) const fn no_push(&self) -> bool {
        self.has(NO_PUSH)
    }

    /// Whether partial segments wait for more data.
    pub(super) const fn gathers(&self) -> bool {
        self.has(if cfg!(feature = "platforms") { NO_PUSH | CORKED | MORE } else { NO_PUSH })
    }

    /// Whether what arrives in order is thrown away at once.
    #[cfg(feature = "platforms")]
    pub(super) const fn discards(&self) -> bool {
        self.has(DISCARDS)
    }

    #[cfg(not(feature = "platforms"))]
    #[expect(clippy::unused_self, reason = "without other platforms all of it waits to be read")]
    pub(super) const fn discards(&self) -> bool {
        false
    }

    pub(super) const fn no_options(&self) -> bool {
        cfg!(feature = "platforms") && self.has(NO_OPTIONS)
    }

    /// For how long data may be unacknowledged.
    pub(super) fn user_timeout_ms(&self) -> Option<u32> {
        Some(self.user_timeout_ms).filter(|limit| *limit != NEVER)
    }

    /// The bytes waiting to be sent from which on no more is taken.
    #[cfg(feature = "platforms")]
    pub(super) fn unsent_low(&self) -> Option<u32> {
        Some(self.unsent_low).filter(|mark| *mark != NEVER)
    }

    #[cfg(not(feature = "platforms"))]
    #[expect(clippy::unused_self, reason = "without other platforms no mark is kept")]
    pub(super) const fn unsent_low(&self) -> Option<u32> {
        None
    }

    /// For how long the peer may be silent.
    pub(super) fn reap_after_ms(&self) -> Option<u32> {
        Some(self.reap_after_ms).filter(|limit| *limit != NEVER)
    }

    pub(super) fn keepalive(&self) -> Option<Keepalive> {
        let (idle_s, interval_s, probes) = (self.keepalive_idle_s, self.keepalive_interval_s, self.keepalive_probes);
        self.has(KEEPS_ALIVE).then_some(Keepalive { idle_s, interval_s, probes })
    }

    /// When to acknowledge. Quick acknowledgements are counted down from the start.
    pub(super) const fn ack(&self) -> AckPolicy {
        AckPolicy { segments: self.ack_segments, delay_us: self.ack_delay_us, quick: 0 }
    }
}
