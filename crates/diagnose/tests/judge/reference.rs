//! The reference situations, whole: what a user gets to read.

use fullpipe_diagnose::{Diagnosis, diagnose};

use crate::world::{Control, World};

/// Rounds the shares, so that a snapshot doesn't hang on the last bit of a sum.
fn rounded(world: &World) -> Diagnosis {
    let mut diagnosis = diagnose(&world.transfer());
    diagnosis.share = (diagnosis.share * 1e4).round() / 1e4;
    for share in diagnosis.shares.values_mut() {
        *share = (*share * 1e4).round() / 1e4;
    }
    diagnosis
}

fn wan_80ms() -> World {
    World { rtt_us: 80_000.0, known: World::exact(94.1e6), path_bps: 94.1e6, ..World::default() }
}

#[test]
fn wan_80ms_before() {
    let world = World { window: 64_512.0, receiver_shift: Some(0), pinned_receive: true, ..wan_80ms() };
    insta::assert_json_snapshot!(rounded(&world));
}

#[test]
fn wan_80ms_sender() {
    insta::assert_json_snapshot!(rounded(&World { window: 1_300_000.0, send_buffer: 64_000.0, ..wan_80ms() }));
}

#[test]
fn wan_80ms_after() {
    insta::assert_json_snapshot!(rounded(&wan_80ms()));
}

#[test]
fn hsdpa() {
    let world =
        World { path_bps: 1.8e6, rtt_us: 230_000.0, window: 17_520.0, receiver_shift: None, ..World::default() };
    insta::assert_json_snapshot!(rounded(&world));
}

#[test]
fn bluetooth_hop() {
    insta::assert_json_snapshot!(rounded(&World {
        path_bps: 723e3,
        rtt_us: 230_000.0,
        seconds: 20.0,
        ..World::default()
    }));
}

#[test]
fn one_per_cent_loss() {
    insta::assert_json_snapshot!(rounded(&World { loss: 0.01, ..wan_80ms() }));
}

#[test]
fn full_under_bbr_without_a_known_rate() {
    insta::assert_json_snapshot!(rounded(&World { control: Control::Bbr, known: None, ..wan_80ms() }));
}
