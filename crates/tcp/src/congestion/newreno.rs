//! The standard algorithm (RFC 5681).

use fullpipe_units::Instant;

use super::{Ack, CongestionControl, Window};

/// Additive increase of a segment a round trip, halving on loss.
#[derive(Clone, Copy, Debug, Default)]
pub struct NewReno {
    /// Bytes acknowledged in congestion avoidance since the window last grew.
    acked: u32,
}

impl CongestionControl for NewReno {
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        let mut left = ack.acked;
        if window.in_slow_start() {
            left = ack.slow_start(window);
        }
        // RFC 5681, section 3.1: one SMSS for each window of bytes acknowledged.
        self.acked = self.acked.saturating_add(left);
        if left > 0 && self.acked >= window.cwnd {
            self.acked -= window.cwnd;
            window.cwnd = window.cwnd.saturating_add(ack.mss);
        }
    }

    fn on_congestion(&mut self, _: &Window, _: Instant, flight: u32, mss: u32) -> u32 {
        self.acked = 0;
        // RFC 5681, section 3.1, equation 4.
        (flight / 2).max(2 * mss)
    }

    fn on_idle(&mut self, _: u32) {
        self.acked = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::tests;

    fn ack(acked: u32) -> Ack {
        Ack { srtt_us: Some(10_000), ..tests::ack(Instant::ZERO, acked, 1000) }
    }

    #[test]
    fn slow_start_doubles_and_avoidance_adds_a_segment_a_round() {
        let mut reno = NewReno::default();
        let mut window = Window::new(10_000, 20_000);
        for _ in 0..10 {
            reno.on_ack(&mut window, &ack(1000));
        }
        assert_eq!(window.cwnd, 20_000);
        for _ in 0..20 {
            reno.on_ack(&mut window, &ack(1000));
        }
        assert_eq!(window.cwnd, 21_000);
    }

    #[test]
    fn loss_halves_the_flight_and_leaves_two_segments() {
        let mut reno = NewReno::default();
        let window = Window::new(20_000, 20_000);
        assert_eq!(reno.on_congestion(&window, Instant::ZERO, 20_000, 1000), 10_000);
        assert_eq!(reno.on_congestion(&window, Instant::ZERO, 1_000, 1000), 2_000);
    }
}
