//! A device that is slow itself: it is busy for a while with each packet, whichever way it goes.
//!
//! So the figures that were published about small devices can be reproduced with the engine on a fast machine. A real
//! device's time per packet is an interrupt, a copy and a checksum; here it is one number.

use std::time::Duration;

use fullpipe_units::Instant;

/// The device's own time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    per_packet: Duration,
    busy_until: Instant,
    /// Nothing waited when it was looked at last: what comes next begins when it comes.
    idle: bool,
}

impl Pace {
    pub(crate) fn new(per_packet: Duration) -> Self {
        Self { per_packet, busy_until: Instant::ZERO, idle: true }
    }

    /// Whether the device takes no time.
    pub(crate) fn is_free(&self) -> bool {
        self.per_packet.is_zero()
    }

    /// When the device can take a packet; `None` for now.
    pub(crate) fn busy(&self, now: Instant) -> Option<Instant> {
        (self.busy_until > now).then_some(self.busy_until)
    }

    /// A packet was handled. Where another one waited already, the time counts from the planned end of the last one, so
    /// that sleeping too long doesn't add up.
    pub(crate) fn spend(&mut self, now: Instant, packets: u32) {
        let from = if self.idle { now } else { self.busy_until };
        self.busy_until = from + self.per_packet * packets;
        self.idle = false;
    }

    /// Nothing waits.
    pub(crate) fn rest(&mut self) {
        self.idle = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: Duration = Duration::from_micros(1);

    #[test]
    fn sleeping_too_long_does_not_add_up() {
        let mut pace = Pace::new(US * 100);
        let at = |us: u32| Instant::ZERO + US * us;
        pace.spend(at(1_000), 1);
        assert_eq!(pace.busy(at(1_050)), Some(at(1_100)));
        // 30 us late, and a packet waited.
        pace.spend(at(1_130), 1);
        assert_eq!(pace.busy(at(1_131)), Some(at(1_200)));
        pace.rest();
        pace.spend(at(5_000), 2);
        assert_eq!(pace.busy(at(5_000)), Some(at(5_200)));
    }
}
