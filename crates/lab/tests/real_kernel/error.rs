//! The lab says when it was not the path that it should have been.

use std::time::Duration;

use fullpipe_lab::{CouldNotKeepUp, Lab, Side};
use fullpipe_path::{HopSpec, IpVersions};
use fullpipe_units::Micros;

use super::{address_of, lab, path, turn, udp};

fn quiet_lab() -> Lab {
    lab(&path(HopSpec { delay: Micros::from_millis(5), ..HopSpec::default() }, IpVersions::V4))
}

/// A packet every millisecond for as long as `count` says.
fn trickle(lab: &Lab, count: u32) {
    let (from, _to) = (udp(lab, Side::A, false), udp(lab, Side::B, false));
    for _ in 0..count {
        from.send_to(&[0; 100], address_of(lab, Side::B, false)).unwrap();
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_path_that_stood_still_makes_no_valid_result() {
    let Some(_turn) = turn("a_path_that_stood_still_makes_no_valid_result") else { return };
    let lab = quiet_lab();
    std::thread::scope(|scope| {
        scope.spawn(|| trickle(&lab, 60));
        std::thread::sleep(Duration::from_millis(20));
        lab.stall(Duration::from_millis(250));
    });
    // The stall goes on after the trickle; what is under way leaves late.
    std::thread::sleep(Duration::from_millis(300));
    let found = lab.valid();
    assert!(matches!(found, Err(CouldNotKeepUp::Stalled { error, .. }) if error.max_us > 100_000), "{found:?}");
    lab.reset_error_stats();
    assert_eq!(lab.path_error(), fullpipe_lab::PathError::default());
    assert_eq!(lab.valid(), Ok(()));
}

#[test]
fn a_path_that_is_late_too_often_makes_no_valid_result() {
    let Some(_turn) = turn("a_path_that_is_late_too_often_makes_no_valid_result") else { return };
    let lab = quiet_lab();
    std::thread::scope(|scope| {
        let sender = scope.spawn(|| trickle(&lab, 200));
        while !sender.is_finished() {
            lab.stall(Duration::from_millis(20));
            std::thread::sleep(Duration::from_millis(40));
        }
    });
    let found = lab.valid();
    assert!(matches!(found, Err(CouldNotKeepUp::Late { .. } | CouldNotKeepUp::Stalled { .. })), "{found:?}");
    assert!(lab.path_error().late > 0);
}

#[test]
fn packets_that_the_device_drops_make_no_valid_result() {
    let Some(_turn) = turn("packets_that_the_device_drops_make_no_valid_result") else { return };
    let lab = quiet_lab();
    let from = udp(&lab, Side::A, false);
    lab.stall(Duration::from_secs(1));
    std::thread::sleep(Duration::from_millis(50));
    // More than the device holds for a reader.
    for _ in 0..20_000 {
        from.send_to(&[0; 10], address_of(&lab, Side::B, false)).ok();
    }
    let found = lab.valid();
    assert!(matches!(found, Err(CouldNotKeepUp::Lost { .. })), "{found:?}");
}
