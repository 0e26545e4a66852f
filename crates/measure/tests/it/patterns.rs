//! Requests and responses, sweeps, and latency under load, over loopback.

use std::{
    io::Read,
    net::TcpStream,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use fullpipe_measure::{Client, ExchangeReport, ExchangeSpec, Length, MeasureError, TestSpec};
use fullpipe_units::Bytes;

use crate::{
    interop::{Iperf3Server, iperf3_is_here},
    support::{Running, quick_server, short, target},
};

fn brief() -> ExchangeSpec {
    ExchangeSpec { time: Duration::from_millis(300), ..ExchangeSpec::default() }
}

fn exchange(server: &Running, spec: &ExchangeSpec) -> Result<ExchangeReport, MeasureError> {
    let mut client = Client::connect(&server.target())?;
    let report = client.exchange(spec, &AtomicBool::new(false), &mut |_| ());
    client.bye();
    report
}

#[test]
fn requests_are_answered_and_timed_asleep_and_spinning() {
    let server = Running::start();
    for spec in [
        brief(),
        ExchangeSpec { spin: true, ..brief() },
        ExchangeSpec { request: Bytes::new(70_000), response: Bytes::new(200_000), streams: 3, ..brief() },
        ExchangeSpec { request: Bytes::new(2), response: Bytes::new(1_000_000), split: true, ..brief() },
    ] {
        let report = exchange(&server, &spec).unwrap();
        let latency = report.latency.unwrap();
        assert!(report.transactions > 0 && latency.count > 0, "{report:?}");
        let ordered =
            [latency.min_us, latency.p50_us, latency.p90_us, latency.p99_us, latency.p99_99_us, latency.max_us];
        assert!(ordered.is_sorted(), "{latency:?}");
        assert_eq!(report.spin, spec.spin);
        if cfg!(target_os = "linux") {
            assert!(report.own_processor.is_some() && report.far_processor.is_some(), "{report:?}");
        }
        assert!(report.far_cpu.is_some() && report.connecting.is_none());
    }
}

#[test]
fn each_request_can_have_a_connection_of_its_own() {
    let server = Running::start();
    let report = exchange(&server, &ExchangeSpec { connect: true, streams: 2, ..brief() }).unwrap();
    let (latency, connecting) = (report.latency.unwrap(), report.connecting.unwrap());
    assert!(report.transactions > 0, "{report:?}");
    assert_eq!(latency.count, connecting.count);
    assert!(connecting.p50_us <= latency.p50_us);
    assert_eq!(report.asking.unwrap().count, connecting.count);
}

#[test]
fn requests_can_be_asked_at_a_pace() {
    let server = Running::start();
    for connect in [false, true] {
        let every = Some(Duration::from_millis(50));
        let report = exchange(&server, &ExchangeSpec { connect, every, ..brief() }).unwrap();
        // Six in 300 ms at the most, and one more at either end.
        assert!((1..=8).contains(&report.transactions), "{report:?}");
    }
}

#[test]
fn a_message_in_two_halves_waits_for_the_delayed_acknowledgement() {
    let server = Running::start();
    let whole = exchange(&server, &ExchangeSpec { request: Bytes::new(1_000), nodelay: false, ..brief() }).unwrap();
    let long = Duration::from_secs(1);
    let split = ExchangeSpec { request: Bytes::new(1_000), nodelay: false, split: true, time: long, ..brief() };
    let held = exchange(&server, &split).unwrap();
    let free = exchange(&server, &ExchangeSpec { nodelay: true, ..split }).unwrap();
    let median = |report: &ExchangeReport| report.latency.unwrap().p50_us;
    // The receiver's acknowledgement waits for 40 ms at the least (TCP_DELACK_MIN); a busy machine only adds to that.
    assert!(median(&held) > 35_000.0, "{held:?}");
    assert!(held.delayed > Some(0.5) && held.at_once_us < Some(35_000.0), "{held:?}");
    assert_eq!((whole.delayed, free.delayed), (None, None));
    let least = |report: &ExchangeReport| report.latency.unwrap().min_us;
    assert!(least(&whole) < 35_000.0 && least(&free) < 35_000.0, "{whole:?} {free:?}");
}

#[test]
fn a_request_of_one_byte_has_no_two_halves() {
    let server = Running::start();
    let error = exchange(&server, &ExchangeSpec { split: true, nodelay: false, ..brief() }).unwrap_err();
    assert!(error.to_string().contains("2 B or more"), "{error}");
}

#[test]
fn sizes_and_streams_are_swept_in_both_directions() {
    let server = Running::start();
    let mut client = Client::connect(&server.target()).unwrap();
    let spec = TestSpec { length: Length::Time(Duration::from_millis(200)), ..short() };
    let never = AtomicBool::new(false);
    let sizes = [1_000, 64_000].map(Bytes::new);
    let rows = client.sizes(&spec, &sizes, &never, &mut |_, _| ()).unwrap();
    assert_eq!(rows.iter().map(|row| row.size).collect::<Vec<_>>(), sizes);
    for row in &rows {
        assert!(row.rounds > 2 && row.round_trip_low_us <= row.round_trip_us, "{row:?}");
        for side in [row.up, row.down] {
            assert!(
                side.low_bps <= side.rate_bps && side.rate_bps <= side.high_bps && side.low_bps.is_some(),
                "{row:?}"
            );
            assert!(side.rate_bps.unwrap().bps() > 0 && side.messages_per_second.unwrap() > 0.0, "{row:?}");
            assert!(side.own_seconds_per_gb.is_some() && side.far_seconds_per_gb.is_some(), "{row:?}");
        }
        assert!(row.round_trip_us.unwrap() > 0.0 && row.split_us.is_some(), "{row:?}");
        if cfg!(target_os = "linux") {
            let shares = [row.up.window_share, row.up.buffer_share, row.down.window_share, row.down.buffer_share];
            assert!(shares.iter().all(|share| share.is_some_and(|share| (0.0..=1.0).contains(&share))), "{row:?}");
        }
    }
    let rows = client.sweep_streams(&spec, &[1, 3], &never, &mut |_, _| ()).unwrap();
    assert_eq!(rows.iter().map(|row| row.streams).collect::<Vec<_>>(), [1, 3]);
    assert!(rows.iter().all(|row| row.up_bps.is_some() && row.down_bps.is_some()));
    client.bye();
}

#[test]
fn latency_is_timed_beside_payload_in_each_direction() {
    let server = Running::start();
    let mut client = Client::connect(&server.target()).unwrap();
    let spec = TestSpec { length: Length::Time(Duration::from_millis(400)), ..short() };
    let report = client.under_load(&spec, &AtomicBool::new(false), &mut |_, _| ()).unwrap();
    assert!(report.idle.unwrap().count > 0 && report.idle_per_minute.unwrap() > 0.0);
    assert!(report.idle_connecting.unwrap().count > 0 && report.idle_asking.unwrap().count > 0);
    assert_eq!(report.loaded.len(), 2);
    for loaded in &report.loaded {
        assert!(loaded.latency.unwrap().count > 0 && loaded.rate_bps.unwrap().bps() > 0, "{loaded:?}");
        if cfg!(target_os = "linux") {
            let both = [loaded.foreign_per_minute, loaded.own_per_minute].map(Option::unwrap);
            assert!((loaded.per_minute.unwrap() - (both[0] + both[1]) / 2.0).abs() < 1.0, "{loaded:?}");
        }
    }
    client.bye();
}

#[test]
fn a_foreign_server_is_not_asked_what_it_can_not_answer() {
    if !iperf3_is_here("a_foreign_server_is_not_asked_what_it_can_not_answer") {
        return;
    }
    let server = Iperf3Server::start();
    let mut client = Client::connect(&target(server.address)).unwrap();
    let never = AtomicBool::new(false);
    let error = client.exchange(&brief(), &never, &mut |_| ()).unwrap_err();
    assert!(error.to_string().contains("needs `fullpipe serve`"), "{error}");
    assert!(matches!(client.under_load(&short(), &never, &mut |_, _| ()), Err(MeasureError::NeedsFullpipe { .. })));
    // Sizes need nothing of it; the round trips are left out.
    let spec = TestSpec { length: Length::Time(Duration::from_secs(1)), ..short() };
    let rows = client.sizes(&spec, &[Bytes::new(8_192)], &never, &mut |_, _| ()).unwrap();
    assert!(rows[0].round_trip_us.is_none() && rows[0].down.rate_bps.is_some(), "{rows:?}");
}

#[test]
fn asking_ends_with_what_was_timed_when_it_is_cancelled() {
    let server = Running::start();
    let mut client = Client::connect(&server.target()).unwrap();
    let cancel = AtomicBool::new(false);
    let spec = ExchangeSpec { time: Duration::from_secs(600), ..ExchangeSpec::default() };
    let report = client.exchange(&spec, &cancel, &mut |_| cancel.store(true, Ordering::Relaxed)).unwrap();
    assert!(report.cancelled && report.transactions > 0);
}

#[test]
fn a_client_that_opens_a_connection_and_asks_nothing_is_let_go() {
    let server = Running::with(quick_server(), None);
    let mut client = Client::connect(&server.target()).unwrap();
    let cancel = AtomicBool::new(false);
    let mut silent = TcpStream::connect(server.address).unwrap();
    let spec = ExchangeSpec { connect: true, ..brief() };
    client.exchange(&spec, &cancel, &mut |_| ()).unwrap();
    assert!(matches!(silent.read(&mut [0]), Ok(0) | Err(_)));
}
