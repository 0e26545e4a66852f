//! A device that is slow itself: its processor is busy for a while with each packet, whichever way it goes.

use core::time::Duration;
use std::collections::VecDeque;

use fullpipe_units::Instant;

use crate::packet::Packet;

/// The device's own time, and what waits for it.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Device {
    per_packet: Duration,
    busy_until: Instant,
    /// Whether the stack has more to send than the device had time for.
    pub(crate) has_more: bool,
    pub(crate) inbox: VecDeque<Packet>,
    /// Nanoseconds that it was busy so far.
    pub(crate) busy_nanos: u64,
}

impl Device {
    pub(crate) const fn new(per_packet: Duration) -> Self {
        Self { per_packet, busy_until: Instant::ZERO, busy_nanos: 0, inbox: VecDeque::new(), has_more: false }
    }

    /// Whether it takes no time.
    pub(crate) const fn is_free(&self) -> bool {
        self.per_packet.is_zero()
    }

    pub(crate) fn is_busy(&self, now: Instant) -> bool {
        self.busy_until > now
    }

    /// It handles a packet from now on.
    pub(crate) fn spend(&mut self, now: Instant) {
        self.busy_until = now + self.per_packet;
        self.busy_nanos += self.per_packet.as_nanos() as u64;
    }

    /// When it can go on, where something waits for it.
    pub(crate) fn next(&self) -> Option<Instant> {
        (self.has_more || !self.inbox.is_empty()).then_some(self.busy_until)
    }
}
