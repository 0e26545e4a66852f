//! The state machine on a path of one link, and what any acknowledgement must leave behind.

use core::time::Duration;

use fullpipe_units::Instant;
use proptest::prelude::*;

use super::*;
use crate::congestion::{RateSample, tests::ack};

const MSS: u32 = 1_000;
const RTT_US: u32 = 50_000;
/// 10 MB/s for 50 ms: 500 segments in flight.
const LINK: u32 = 10_000_000;

/// A connection on a link of a rate: each round trip it delivers what it paced, at most what the link carries.
struct Path {
    bbr: Bbr,
    window: Window,
    delivered: u32,
    now: Instant,
    /// Bytes in the queue.
    queue: u32,
    in_flight: u32,
    rtt_us: u32,
}

impl Path {
    fn new() -> Self {
        let (mut bbr, mut window) = (Bbr::default(), Window::new(10 * MSS, u32::MAX));
        bbr.on_established(Instant::ZERO, &mut window, Some(RTT_US));
        let now = Instant::from_nanos(1_000_000_000);
        Self { bbr, window, delivered: 0, now, queue: 0, in_flight: 0, rtt_us: RTT_US }
    }

    /// One round trip, with one acknowledgement at its end.
    fn round(&mut self, app_limited: bool) {
        let pace = self.window.pacing.unwrap();
        let offered = scaled(pace, RTT_US, 1_000_000).min(self.window.cwnd);
        let carries = scaled(LINK, RTT_US, 1_000_000);
        let carried = (offered + self.queue).min(carries);
        self.queue = offered + self.queue - carried;
        self.in_flight = carried + self.queue;
        let took = RTT_US + scaled(self.queue, 1_000_000, LINK);
        self.now = self.now + Duration::from_micros(took.into());
        let before = self.delivered;
        self.delivered = self.delivered.wrapping_add(carried);
        let sample = RateSample {
            delivered: carried,
            delivered_before: before,
            interval_us: RTT_US,
            is_app_limited: app_limited,
        };
        let rtt_us = self.rtt_us + scaled(self.queue, 1_000_000, LINK);
        let seen = Ack {
            srtt_us: Some(rtt_us),
            cwnd: self.window.cwnd,
            in_flight: self.in_flight.min(self.window.cwnd),
            prior_in_flight: self.in_flight,
            delivered: self.delivered,
            rate: Some(sample),
            rtt_us: Some(rtt_us),
            ..ack(self.now, carried, MSS)
        };
        self.bbr.on_ack(&mut self.window, &seen);
    }

    fn until(&mut self, mode: Mode) -> u32 {
        for round in 0..400 {
            if self.bbr.mode() == mode {
                return round;
            }
            self.round(false);
        }
        panic!("never {mode:?}: {:?}", self.bbr);
    }
}

#[test]
fn the_start_doubles_until_the_rate_no_longer_grows_and_then_drains() {
    let mut path = Path::new();
    let rounds = path.until(Mode::Drain);
    // 10 segments, 20, .., 500, and three round trips without growth.
    assert!((6..=12).contains(&rounds), "{rounds}");
    assert_eq!(path.bbr.rate.get(), LINK);
    path.until(Mode::ProbeBandwidth);
    assert!(path.queue < 500 * MSS, "{}", path.queue);
}

#[test]
fn a_start_that_the_application_holds_goes_on() {
    let mut path = Path::new();
    for _ in 0..12 {
        path.round(true);
    }
    assert_eq!(path.bbr.mode(), Mode::Startup);
}

#[test]
fn the_cycle_asks_for_more_drains_and_cruises() {
    let mut path = Path::new();
    path.until(Mode::ProbeBandwidth);
    let mut gains = std::vec::Vec::new();
    for _ in 0..40 {
        path.round(false);
        if gains.last() != Some(&path.bbr.gain) {
            gains.push(path.bbr.gain);
        }
    }
    let up = gains.iter().position(|gain| *gain == 320).unwrap();
    assert_eq!(gains[up + 1], 192, "{gains:?}");
    assert!(gains.contains(&256), "{gains:?}");
    // Twice the product, and room for the bunch of a whole round trip that this path acknowledges at once.
    assert!((1_000 * MSS..1_600 * MSS).contains(&path.window.cwnd), "{}", path.window.cwnd);
}

#[test]
fn after_ten_seconds_four_segments_look_for_the_least_round_trip_time() {
    let mut path = Path::new();
    path.until(Mode::ProbeBandwidth);
    // The path has become longer: the least is not seen again.
    path.rtt_us = RTT_US + 10_000;
    path.until(Mode::ProbeRtt);
    assert_eq!(path.window.cwnd, 4 * MSS);
    assert!(path.window.is_app_limited);
    let begun = path.now;
    let held = path.until(Mode::ProbeBandwidth);
    assert!(path.now.since(begun).as_millis() >= 200 && held >= 2, "{held}");
    assert_eq!(path.bbr.least_us.map(|us| us >= RTT_US + 10_000), Some(true));
    assert!(path.window.cwnd > 400 * MSS, "{}", path.window.cwnd);
}

#[test]
fn a_loss_conserves_packets_for_a_round_and_gives_the_window_back() {
    let mut path = Path::new();
    path.until(Mode::ProbeBandwidth);
    let before = path.window.cwnd;
    path.bbr.on_congestion(&path.window, path.now, 0, MSS);
    let seen = |delivered, recovery, lost| Ack {
        in_flight: 300 * MSS,
        delivered,
        recovery,
        lost,
        ..ack(path.now, 2 * MSS, MSS)
    };
    path.bbr.on_ack(&mut path.window, &seen(path.delivered + 2 * MSS, Recovery::Fast, MSS));
    assert_eq!(path.window.cwnd, 302 * MSS);
    path.bbr.on_ack(&mut path.window, &seen(path.delivered + 4 * MSS, Recovery::Open, 0));
    assert!(path.window.cwnd >= before.min(path.bbr.prior_window), "{}", path.window.cwnd);
}

proptest! {
    /// Whatever comes: no overflow, never less than a segment, a rate that is not zero.
    #[test]
    fn any_acknowledgement_leaves_a_window_and_a_rate(
        steps in prop::collection::vec((any::<u32>(), 0_u32..1 << 30, any::<u32>(), 0_u8..3, any::<u32>(), any::<bool>(), 0_u32..1 << 30), 1..60),
        mss in 64_u32..9_000
    ) {
        let (mut bbr, mut window) = (Bbr::default(), Window::new(10 * mss, u32::MAX));
        bbr.on_established(Instant::ZERO, &mut window, None);
        let (mut now, mut delivered, mut lost_in_all) = (Instant::from_nanos(1), 0_u32, 0_u32);
        for (us, acked, interval, recovery, rtt, limited, lost) in steps {
            now = now + Duration::from_micros(us.into());
            let before = delivered;
            delivered = delivered.wrapping_add(acked);
            lost_in_all = lost_in_all.wrapping_add(lost);
            let recovery = [Recovery::Open, Recovery::Fast, Recovery::Timeout][usize::from(recovery)];
            if recovery != Recovery::Open {
                bbr.on_congestion(&window, now, 0, mss);
            }
            let sample = RateSample { delivered: acked, delivered_before: before, interval_us: (interval >> 1).max(1), is_app_limited: limited };
            let seen = Ack {
                srtt_us: Some(rtt.max(1)), cwnd: window.cwnd, in_flight: lost, prior_in_flight: acked, delivered, lost, lost_in_all,
                recovery, rate: (interval & 1 == 0).then_some(sample), rtt_us: Some(rtt), departs_in_us: us,
                ..ack(now, acked, mss)
            };
            bbr.on_ack(&mut window, &seen);
            if recovery == Recovery::Timeout {
                bbr.on_timeout(&seen);
            }
            prop_assert!(window.cwnd >= mss && window.cwnd <= 1 << 30, "{window:?}");
            prop_assert!(window.pacing.is_some_and(|rate| rate > 0));
        }
    }
}
