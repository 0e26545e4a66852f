//! As fast as can be: that something is chosen and reported, not how fast it is (that is `cargo xtask bench measure`).

use std::{sync::atomic::AtomicBool, time::Duration};

use fullpipe_measure::{
    Choice, Client, Length, MeasureError, Measurement, Mechanism, PeerKind, Target, TestDirection, TestSpec, UdpSpec,
};
use fullpipe_units::{Bytes, Rate};

use crate::{
    interop::{Iperf3Server, iperf3_is_here},
    support::{Running, short, target},
};

fn long_enough() -> TestSpec {
    TestSpec { omit: Duration::from_millis(600), length: Length::Time(Duration::from_millis(400)), ..short() }
}

fn run_max(target: &Target, spec: &TestSpec) -> Result<Measurement, MeasureError> {
    let mut client = Client::connect(target)?;
    let measurement = client.run_max(spec, &AtomicBool::new(false), &mut |_| ());
    client.bye();
    measurement
}

/// That a choice is what its trials say, or that it is reported why there were none.
fn is_explained(choice: &Choice, plain: Mechanism) {
    println!("{choice:?}");
    assert!(!choice.reason.is_empty());
    let tried: Vec<Mechanism> = choice.trials.iter().map(|trial| trial.mechanism).collect();
    assert!(tried.is_empty() || tried.first() == Some(&plain), "{tried:?}");
    assert!(choice.mechanism == plain || tried.contains(&choice.mechanism), "{choice:?}");
    assert!(choice.refused.iter().all(|refused| !tried.contains(&refused.mechanism)), "{choice:?}");
}

#[test]
fn both_ends_say_what_they_tried_and_chose() {
    let server = Running::start();
    for (block, streams) in [(4_096, 1), (1_000_000, 2)] {
        let spec = TestSpec { direction: TestDirection::Both, block: Bytes::new(block), streams, ..long_enough() };
        let measurement = run_max(&server.target(), &spec).unwrap();
        let (own, far) = (measurement.own_push.unwrap(), measurement.far_push.unwrap());
        for end in [&own, &far] {
            is_explained(end.sending.as_ref().unwrap(), Mechanism::Write);
            is_explained(end.receiving.as_ref().unwrap(), Mechanism::Wait);
        }
        assert!(measurement.directions.iter().all(|direction| direction.steady_bps.unwrap().bps() > 0));
    }
}

#[test]
fn a_plain_test_says_nothing_of_it() {
    let server = Running::start();
    let measurement = crate::support::run(&server, &short()).unwrap();
    assert_eq!((measurement.own_push, measurement.far_push), (None, None));
}

#[test]
fn a_real_server_is_pushed_from_our_end_alone() {
    if !iperf3_is_here("a_real_server_is_pushed_from_our_end_alone") {
        return;
    }
    let server = Iperf3Server::start();
    // A real server counts whole seconds.
    let spec = TestSpec {
        omit: Duration::from_secs(1),
        length: Length::Time(Duration::from_secs(1)),
        block: Bytes::new(131_072),
        ..short()
    };
    let measurement = run_max(&target(server.address), &spec).unwrap();
    assert_eq!(measurement.peer_kind, PeerKind::Iperf3);
    is_explained(measurement.own_push.unwrap().sending.as_ref().unwrap(), Mechanism::Write);
    assert_eq!(measurement.far_push, None);
}

#[test]
fn what_leaves_nothing_to_try_is_refused() {
    let server = Running::start();
    let fine = long_enough();
    for spec in [
        TestSpec { omit: Duration::ZERO, ..fine.clone() },
        TestSpec { length: Length::Bytes(Bytes::new(1_000_000)), ..fine.clone() },
        TestSpec { udp: Some(UdpSpec { counters_64bit: false }), block: Bytes::new(1_448), ..fine.clone() },
        TestSpec { copy: true, ..fine.clone() },
        TestSpec { zerocopy: true, ..fine.clone() },
        TestSpec { pace: Some(Rate::from_bps(1_000_000)), ..fine },
    ] {
        assert!(matches!(run_max(&server.target(), &spec), Err(MeasureError::BadSpec { .. })), "{spec:?}");
    }
}
