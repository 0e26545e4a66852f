//! A device that is slow itself: its time per packet bounds what it does, and tables tell what was fitted.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use fullpipe_path::Scenario;
use fullpipe_stack::{
    StackError,
    experiment::{self, Application, Outcome, Trial, table},
};
use fullpipe_tcp::{
    profile::{Budgets, Profile},
    socket::SocketOptions,
};
use fullpipe_units::{Bytes, Micros};

use crate::world::{LIMIT, may_run};

const PER_PACKET: Duration = Duration::from_micros(400);

fn scenario() -> Scenario {
    Scenario::named("netburner-lan").unwrap()
}

fn trial(buffers: u16, sends: bool) -> Trial {
    Trial {
        profile: Profile::NETBURNER,
        options: SocketOptions { budgets: Budgets::all(buffers), ..SocketOptions::from_profile(&Profile::NETBURNER) },
        per_packet: PER_PACKET,
        bytes: 300_000,
        sends,
        application: Application::Streams,
        limit: LIMIT,
    }
}

fn run(trial: &Trial) -> Outcome {
    let outcome = experiment::run(&scenario().path, 1, trial, &AtomicBool::new(false)).unwrap();
    println!("{} B, sends {}: {outcome:?}", trial.bytes, trial.sends);
    outcome
}

#[test]
fn a_device_is_no_faster_than_its_time_per_packet() {
    if !may_run("a_device_is_no_faster_than_its_time_per_packet") {
        return;
    }
    for sends in [true, false] {
        let outcome = run(&trial(20, sends));
        // Each packet waits until the device has done with the one before, whenever its thread is let run.
        let packets = outcome.counts.segments_sent + outcome.counts.segments_received;
        let least = PER_PACKET.as_secs_f64() * f64::from(packets - 1);
        let took = outcome.device_seconds;
        assert!(took >= least, "sends {sends}: {took} s for {packets} packets");
        let payload = outcome.counts.bytes_sent + outcome.counts.bytes_received;
        assert_eq!(payload, 300_000);
    }
}

#[test]
fn an_application_that_waits_needs_a_round_trip_for_each_set_of_buffers() {
    if !may_run("an_application_that_waits_needs_a_round_trip_for_each_set_of_buffers") {
        return;
    }
    let waits = run(&Trial { application: Application::Waits, ..trial(5, true) });
    let sets = (300_000_f64 / (5.0 * 1_460.0)).ceil();
    // A set: five packets and what acknowledges them, one after the other, and the path's round trip.
    let least = sets * (PER_PACKET.as_secs_f64() * 5.0 + 0.5e-3);
    assert!(waits.seconds >= least, "{} s, at least {least} s", waits.seconds);
}

#[test]
fn a_table_has_a_row_for_each_role_and_number_of_buffers_and_marks_what_was_fitted() {
    if !may_run("a_table_has_a_row_for_each_role_and_number_of_buffers_and_marks_what_was_fitted") {
        return;
    }
    let scenario = scenario();
    let mut device = scenario.device.clone().unwrap();
    (device.bytes, device.per_packet, device.buffers) = (Bytes::new(100_000), Micros::new(50), vec![5, 20]);
    let seen = AtomicUsize::new(0);
    let count = |_: &experiment::Row| {
        seen.fetch_add(1, Relaxed);
    };
    let rows = table(&scenario, &device, &count, &AtomicBool::new(false)).unwrap();
    let facts: Vec<_> = rows.iter().map(|row| (row.sends, row.buffers, row.published, row.fitted)).collect();
    let expected = [
        (true, 5, Some(0.907), false),
        (true, 20, Some(0.658), true),
        (false, 5, None, false),
        (false, 20, None, false),
    ];
    assert_eq!(facts, expected);
    assert_eq!(seen.load(Relaxed), 4);
    for row in &rows {
        assert!(row.seconds() > 0.0 && row.runs.len() == 1);
        assert_eq!(row.deviation().is_some(), row.published.is_some());
    }
}

#[test]
fn a_table_that_is_stopped_ends_early() {
    if !may_run("a_table_that_is_stopped_ends_early") {
        return;
    }
    let scenario = scenario();
    let mut device = scenario.device.clone().unwrap();
    // An hour, were it not stopped.
    (device.bytes, device.per_packet, device.buffers) = (Bytes::new(4_000_000_000), Micros::new(1_000), vec![5]);
    let stop = AtomicBool::new(false);
    let rows = Mutex::new(0);
    let ended = std::thread::scope(|scope| {
        let made = scope.spawn(|| table(&scenario, &device, &|_| *rows.lock().unwrap() += 1, &stop));
        std::thread::sleep(Duration::from_millis(500));
        stop.store(true, Relaxed);
        made.join().unwrap()
    });
    assert!(matches!(ended, Err(StackError::Stopped)), "{ended:?}");
    assert_eq!(*rows.lock().unwrap(), 0);
}
