//! Our client against our server.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use fullpipe_diagnose::Source;
use fullpipe_measure::{
    Client, Direction, Disconnect, Ends, Length, MeasureError, PeerKind, Phase, RequestError, RequestHandler,
    TestDirection, TestSpec, UdpSpec,
};
use fullpipe_units::{Bytes, Micros, Rate};
use serde_json::{Value, json};

use crate::support::{Running, quick_server, run, short};

#[test]
fn both_directions_are_measured_with_series_of_both_ends() {
    let server = Running::start();
    let spec = TestSpec { direction: TestDirection::Both, streams: 2, ..short() };
    let measurement = run(&server, &spec).unwrap();
    assert_eq!(measurement.peer_kind, PeerKind::Fullpipe);
    assert_eq!(measurement.warnings, Vec::<String>::new());
    let directions: Vec<Direction> = measurement.directions.iter().map(|d| d.direction).collect();
    assert_eq!(directions, [Direction::Up, Direction::Down]);
    for direction in &measurement.directions {
        assert_eq!(direction.transfers.len(), 2);
        assert!(direction.rate_bps.unwrap().bps() > 0);
        assert_eq!(direction.idle_rtt.unwrap().count, 3);
        let sum: u64 = direction.transfers.iter().map(|transfer| transfer.bytes.get()).sum();
        assert_eq!(sum, direction.bytes.get());
        for transfer in &direction.transfers {
            assert_eq!(transfer.source, Source::Live);
            assert_eq!(transfer.blind, Vec::<String>::new());
            assert!(transfer.sender_samples.len() > 1 && transfer.receiver_samples.len() > 1);
            assert!(transfer.sender_samples.is_sorted_by_key(|sample| sample.at_us));
            assert!(transfer.sender_samples.is_sorted_by_key(|sample| sample.acked));
            assert!(transfer.receiver_samples.is_sorted_by_key(|sample| sample.received));
            assert_eq!(transfer.sender.congestion_control.as_deref(), Some("cubic"));
            let last = transfer.sender_samples.last().unwrap();
            assert!(last.cwnd.is_some() && last.offered_window.is_some() && last.send_buffer.is_some());
        }
    }
}

#[test]
fn the_handshake_of_both_ends_is_known() {
    let server = Running::start();
    let measurement = run(&server, &TestSpec { direction: TestDirection::Both, ..short() }).unwrap();
    let [up, down] = [0, 1].map(|index| &measurement.directions[index].transfers[0]);
    // The client opened both connections, so that the same end said the same in both.
    assert_eq!(up.sender.opened, Some(true));
    assert_eq!(down.receiver.opened, Some(true));
    let (client, answer) = (up.sender.syn.unwrap(), up.receiver.syn.unwrap());
    assert_eq!(down.receiver.syn.unwrap().mss, client.mss);
    assert!(client.window.is_some(), "the SYN itself was saved");
    // Both ends of loopback have the same interface.
    assert_eq!(client.mss, answer.mss);
    assert_eq!(client.window_scale.is_some(), answer.window_scale.is_some());
}

#[test]
fn bytes_end_a_test_to_the_byte() {
    let server = Running::start();
    let size = Bytes::new(3_000_001);
    for direction in [TestDirection::Up, TestDirection::Down, TestDirection::Both] {
        let spec = TestSpec { direction, streams: 2, length: Length::Bytes(size), ..short() };
        let measurement = run(&server, &spec).unwrap();
        for direction in &measurement.directions {
            assert_eq!(direction.bytes, size, "{:?}", direction.direction);
        }
    }
}

#[test]
fn pinned_buffers_are_noticed_at_the_end_that_pinned() {
    let server = Running::start();
    let spec = TestSpec {
        direction: TestDirection::Both,
        send_buffer: Some(Bytes::new(100_000)),
        receive_buffer: Some(Bytes::new(200_000)),
        ..short()
    };
    for direction in run(&server, &spec).unwrap().directions {
        let transfer = &direction.transfers[0];
        let (send, receive) = (transfer.sender.send_buffer.unwrap(), transfer.receiver.receive_buffer.unwrap());
        // The kernel doubles what an application asks for (socket(7)).
        assert_eq!((send.pinned, send.largest), (true, Bytes::new(200_000)), "{:?}", direction.direction);
        assert_eq!((receive.pinned, receive.largest), (true, Bytes::new(400_000)), "{:?}", direction.direction);
    }
    let free = run(&server, &short()).unwrap();
    let transfer = &free.directions[0].transfers[0];
    assert!(!transfer.sender.send_buffer.unwrap().pinned && !transfer.receiver.receive_buffer.unwrap().pinned);
}

#[test]
fn a_receiver_that_copies_counts_the_same_bytes() {
    let server = Running::start();
    for direction in [TestDirection::Up, TestDirection::Down] {
        let spec = TestSpec { direction, copy: true, length: Length::Bytes(Bytes::new(2_000_000)), ..short() };
        assert_eq!(run(&server, &spec).unwrap().directions[0].bytes, Bytes::new(2_000_000));
    }
}

#[test]
fn the_omitted_time_counts_in_the_series_only() {
    let server = Running::start();
    let spec = TestSpec { direction: TestDirection::Both, omit: Duration::from_millis(200), ..short() };
    let mut phases = Vec::new();
    let mut client = Client::connect(&server.target()).unwrap();
    let spec = TestSpec { progress_every: Duration::from_millis(50), ..spec };
    let measurement = client.run(&spec, &AtomicBool::new(false), &mut |p| phases.push((p.phase, p.elapsed))).unwrap();
    let omitted =
        phases.iter().filter(|(phase, _)| *phase == Phase::Omitted).map(|(_, elapsed)| *elapsed).max().unwrap();
    assert!(omitted >= spec.omit, "the last omitted interval reaches to the end of that time: {omitted:?}");
    for direction in &measurement.directions {
        let ((bytes, whole), counted) = (direction.whole(), direction.counted[0]);
        assert!(whole.as_secs_f64() > direction.seconds + 0.1, "{whole} and {} s", direction.seconds);
        assert!(bytes > direction.bytes && direction.bytes == counted.bytes, "{bytes} and {counted:?}");
        assert_eq!(direction.steady_bps, direction.rate_bps);
        assert!(direction.omitted_us > Micros::from_millis(100), "{}", direction.omitted_us);
    }
    for phase in [Phase::Idle, Phase::Connecting, Phase::Omitted, Phase::Running, Phase::Finishing] {
        assert!(phases.iter().any(|(found, _)| *found == phase), "{phase:?} in {phases:?}");
    }
}

#[test]
fn a_cancelled_test_ends_cleanly_with_what_was_measured() {
    let server = Running::start();
    let mut client = Client::connect(&server.target()).unwrap();
    let cancel = AtomicBool::new(false);
    let spec = TestSpec {
        length: Length::Time(Duration::from_secs(60)),
        progress_every: Duration::from_millis(20),
        ..short()
    };
    let mut stop = |progress: fullpipe_measure::Progress| {
        if progress.phase == Phase::Running {
            cancel.store(true, Ordering::Relaxed);
        }
    };
    let measurement = client.run(&spec, &cancel, &mut stop).unwrap();
    assert!(measurement.cancelled);
    assert_eq!(measurement.warnings, Vec::<String>::new());
    assert!(measurement.directions[0].bytes > Bytes::ZERO);
    assert_eq!(measurement.directions[0].transfers[0].source, Source::Live);
    // And the server is free for the next.
    assert!(!client.run(&short(), &AtomicBool::new(false), &mut |_| ()).unwrap().cancelled);
}

#[test]
fn several_clients_are_served_at_once() {
    let server = Running::start();
    thread::scope(|scope| {
        let runs: Vec<_> = (0..4).map(|_| scope.spawn(|| run(&server, &short()).unwrap())).collect();
        for run in runs {
            assert!(run.join().unwrap().directions[0].bytes > Bytes::ZERO);
        }
    });
}

#[test]
fn a_hundred_streams_are_paired_with_their_other_ends() {
    let server = Running::start();
    let spec = TestSpec {
        direction: TestDirection::Down,
        streams: 100,
        length: Length::Bytes(Bytes::new(20_000_000)),
        ..short()
    };
    let measurement = run(&server, &spec).unwrap();
    let direction = &measurement.directions[0];
    assert_eq!((direction.transfers.len(), direction.bytes), (100, Bytes::new(20_000_000)));
    for transfer in &direction.transfers {
        // What the sender's end says that it sent is what this end received: the two are of one connection. (The last
        // acknowledgement may still be delayed.)
        let last = transfer.sender_samples.last().unwrap();
        assert_eq!(last.acked.get() + last.in_flight.unwrap().get(), transfer.bytes.get());
    }
}

#[test]
fn one_client_more_than_allowed_is_told_busy() {
    let server = Running::with(fullpipe_measure::ServerOptions { max_clients: 1, ..quick_server() }, None);
    let first = Client::connect(&server.target()).unwrap();
    let second = Client::connect(&server.target());
    assert!(matches!(second, Err(MeasureError::Busy { .. })), "{second:?}");
    first.bye();
    server.wait_for_line(|line| line.ends_with("client disconnected"));
    Client::connect(&server.target()).unwrap();
}

#[test]
fn congestion_control_that_is_missing_here_is_an_error_that_names_it() {
    let server = Running::start();
    let spec = TestSpec { congestion_control: Some("no_such".to_owned()), ..short() };
    let error = run(&server, &spec).unwrap_err();
    assert!(matches!(error, MeasureError::Option { .. }) && error.to_string().contains("no_such"), "{error}");
}

#[test]
fn more_streams_than_iperf3_takes_are_measured_at_once() {
    let server =
        Running::with(fullpipe_measure::ServerOptions { answer: Duration::from_secs(20), ..quick_server() }, None);
    let options = fullpipe_measure::ClientOptions { answer: Duration::from_secs(20), ..Default::default() };
    let never = AtomicBool::new(false);
    let mut client = Client::connect_with(&server.target(), options, &never).unwrap();
    let spec = TestSpec { streams: 200, length: Length::Time(Duration::from_secs(1)), ..short() };
    let measurement = client.run(&spec, &never, &mut |_| ());
    let measurement = measurement.unwrap_or_else(|error| panic!("{error}: {:#?}", server.log()));
    client.bye();
    let up = &measurement.directions[0];
    let moved = up.transfers.iter().filter(|transfer| transfer.bytes > Bytes::ZERO).count();
    println!("{:?} over {} connections, {moved} of which moved payload", up.rate_bps, up.transfers.len());
    assert_eq!(up.transfers.len(), 200);
    // Two busy processors do not get round to every one within a second.
    assert!(moved > 100, "{moved}");
    assert_eq!(measurement.warnings, Vec::<String>::new());
}

#[test]
fn without_sampling_there_are_totals_and_no_series() {
    let server = Running::start();
    let measurement = run(&server, &TestSpec { sampling: false, ..short() }).unwrap();
    let up = &measurement.directions[0];
    assert!(up.rate_bps.unwrap().bps() > 0);
    assert!(up.transfers.iter().all(|t| t.sender_samples.is_empty() && t.receiver_samples.is_empty()));
}

#[test]
fn an_impossible_test_is_refused_before_anything_is_sent() {
    let server = Running::start();
    for spec in [
        TestSpec { streams: 0, ..short() },
        TestSpec { streams: 2_049, ..short() },
        TestSpec { block: Bytes::new(0), ..short() },
        TestSpec { length: Length::Bytes(Bytes::ZERO), ..short() },
        TestSpec { omit: Duration::from_secs(601), ..short() },
    ] {
        assert!(matches!(run(&server, &spec), Err(MeasureError::BadSpec { .. })), "{spec:?}");
    }
}

#[test]
fn pings_and_the_path_mtu_of_loopback_are_known() {
    let server = Running::start();
    let mut client = Client::connect(&server.target()).unwrap();
    assert_eq!(client.peer_kind(), PeerKind::Fullpipe);
    assert!(client.hello().unwrap().available.contains(&"reno".to_owned()));
    let rtt = client.ping(5).unwrap();
    assert!(rtt.count == 5 && rtt.min_us <= rtt.p50_us);
    let mtu = client.probe_mtu().unwrap();
    for direction in [mtu.up, mtu.down] {
        assert!(direction.mtu.unwrap() >= 16_384 && !direction.black_hole, "{direction:?}");
    }
    let measurement = client.run(&short(), &AtomicBool::new(false), &mut |_| ()).unwrap();
    assert_eq!(measurement.directions[0].transfers[0].path_mtu, mtu.up.mtu);
}

#[test]
fn a_server_that_does_not_introduce_itself_tells_its_version_alone() {
    let server = Running::with(fullpipe_measure::ServerOptions { introduce: false, ..quick_server() }, None);
    let client = Client::connect(&server.target()).unwrap();
    let hello = client.hello().unwrap();
    assert!(!hello.program.is_empty(), "{hello:?}");
    assert!(hello.host.is_empty() && hello.platform.is_empty(), "{hello:?}");
    assert!(hello.congestion_control.is_none() && hello.available.is_empty(), "{hello:?}");
}

#[derive(Default)]
struct Recorder(Mutex<Vec<(SocketAddr, Disconnect)>>);

impl RequestHandler for Recorder {
    fn handle(&self, request: Value, ends: Ends) -> Result<Value, RequestError> {
        let peer = ends.peer;
        match request["request"].as_str() {
            Some("who") => Ok(json!({ "you": peer.to_string(), "said": request["word"] })),
            Some("panic") => panic!("on purpose"),
            Some("open") => Err(RequestError::not_authenticated("a wrong key")),
            _ => Err(RequestError { kind: "unknown_request".to_owned(), message: "not\u{1b}[2J known".to_owned() }),
        }
    }

    fn on_disconnect(&self, peer: SocketAddr, how: Disconnect) {
        self.0.lock().unwrap().push((peer, how));
    }
}

impl Recorder {
    fn wait_for(&self, count: usize) -> Vec<(SocketAddr, Disconnect)> {
        for _ in 0..2_000 {
            let seen = self.0.lock().unwrap().clone();
            if seen.len() >= count {
                return seen;
            }
            thread::sleep(Duration::from_millis(10));
        }
        panic!("the request handler was not notified of the end");
    }
}

#[test]
fn a_request_handler_answers_and_learns_how_each_conversation_ended() {
    let recorder = Arc::new(Recorder::default());
    let server = Running::with(quick_server(), Some(recorder.clone()));
    let mut client = Client::connect(&server.target()).unwrap();
    let local = client.local().unwrap();
    assert!(client.hello().unwrap().takes_requests);
    let answer = client.request(&json!({ "request": "who", "word": "x".repeat(500_000) })).unwrap();
    assert_eq!(answer["you"], local.to_string());
    assert_eq!(answer["said"].as_str().unwrap().len(), 500_000);
    let refused = client.request(&json!({ "request": "other" }));
    match refused {
        Err(MeasureError::Refusal { request, kind, message, .. }) => {
            assert_eq!((request.as_str(), kind.as_str()), ("other", "unknown_request"));
            assert_eq!(message, "not.[2J known");
        }
        other => panic!("{other:?}"),
    }
    assert!(matches!(client.request(&json!({ "request": "panic" })), Err(MeasureError::Refusal { .. })));
    client.ping(1).unwrap();
    client.bye();
    assert_eq!(recorder.wait_for(1), [(local, Disconnect::Bye)]);

    let lost = Client::connect(&server.target()).unwrap();
    let local = lost.local().unwrap();
    drop(lost);
    assert_eq!(recorder.wait_for(2)[1], (local, Disconnect::Lost));

    let left = Client::connect(&server.target()).unwrap();
    server.stop();
    assert_eq!(recorder.wait_for(3)[2], (left.local().unwrap(), Disconnect::ServerStopped));
}

#[test]
fn a_wrong_key_is_answered_and_ends_the_conversation() {
    let recorder = Arc::new(Recorder::default());
    let server = Running::with(quick_server(), Some(recorder.clone()));
    let mut client = Client::connect(&server.target()).unwrap();
    let local = client.local().unwrap();
    match client.request(&json!({ "request": "open" })) {
        Err(MeasureError::Refusal { kind, message, .. }) => {
            assert_eq!((kind.as_str(), message.as_str()), (RequestError::NOT_AUTHENTICATED, "a wrong key"));
        }
        other => panic!("{other:?}"),
    }
    let again = client.request(&json!({ "request": "who" }));
    assert!(!matches!(again, Ok(_) | Err(MeasureError::Refusal { .. })), "{again:?}");
    assert_eq!(recorder.wait_for(1), [(local, Disconnect::Lost)]);
}

#[test]
fn a_stopped_server_tells_the_client_of_a_running_test() {
    let server = Running::start();
    let mut client = Client::connect(&server.target()).unwrap();
    let spec = TestSpec {
        length: Length::Time(Duration::from_secs(60)),
        progress_every: Duration::from_millis(20),
        ..short()
    };
    let outcome = client.run(&spec, &AtomicBool::new(false), &mut |progress| {
        if progress.phase == Phase::Running {
            server.stop();
        }
    });
    assert!(matches!(outcome, Err(MeasureError::Terminated { .. })), "{outcome:?}");
}

#[test]
fn datagrams_are_counted_at_both_ends() {
    let server = Running::start();
    let spec = TestSpec {
        direction: TestDirection::Both,
        streams: 2,
        udp: Some(UdpSpec { counters_64bit: true }),
        block: Bytes::new(1_200),
        pace: Some(Rate::from_bps(2_000_000)),
        omit: Duration::from_millis(100),
        progress_every: Duration::from_millis(20),
        ..short()
    };
    let mut client = Client::connect(&server.target()).unwrap();
    let mut so_far = Vec::new();
    let mut watch = |progress: fullpipe_measure::Progress| so_far.extend(progress.datagrams);
    let measurement = client.run(&spec, &AtomicBool::new(false), &mut watch).unwrap();
    let arrived = so_far.last().unwrap();
    assert!(arrived.packets > 0 && arrived.lost <= arrived.packets && arrived.jitter_us.is_some(), "{arrived:?}");
    for direction in &measurement.directions {
        let datagrams = direction.datagrams.unwrap();
        assert!(datagrams.packets > 0 && datagrams.out_of_order == Some(0), "{datagrams:?}");
        assert_eq!(direction.transfers.len(), 0);
        assert!(direction.bytes.get() >= 1_200);
        // The series also has the time that was omitted.
        let last = direction.datagram_series.last().unwrap();
        assert!(last.packets >= datagrams.packets && last.bytes >= direction.bytes.get(), "{direction:?}");
        assert!(
            last.lost.is_some() && last.jitter_us.is_some() && direction.datagram_series.len() > 2,
            "{direction:?}"
        );
        assert!(direction.datagram_series.is_sorted_by_key(|sample| (sample.at_us, sample.packets)), "{direction:?}");
    }
}

#[test]
fn tests_with_datagrams_that_begin_together_keep_their_streams_apart() {
    let server =
        Running::with(fullpipe_measure::ServerOptions { answer: Duration::from_secs(10), ..quick_server() }, None);
    let spec = TestSpec {
        direction: TestDirection::Up,
        udp: Some(UdpSpec { counters_64bit: false }),
        block: Bytes::new(1_000),
        pace: Some(Rate::from_bps(800_000)),
        ..short()
    };
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let datagrams = run(&server, &spec).unwrap().directions[0].datagrams.unwrap();
                assert!(datagrams.packets > 0 && datagrams.out_of_order == Some(0), "{datagrams:?}");
            });
        }
    });
}

#[test]
fn who_is_not_on_the_list_is_turned_away() {
    let options = fullpipe_measure::ServerOptions { allow: vec!["192.0.2.0/24".parse().unwrap()], ..quick_server() };
    let server = Running::with(options, None);
    assert!(matches!(run(&server, &short()), Err(MeasureError::Busy { .. } | MeasureError::Closed { .. })));
    server.wait_for_line(|line| line.contains("not among those that may come"));
    let options = fullpipe_measure::ServerOptions { allow: vec!["127.0.0.0/8".parse().unwrap()], ..quick_server() };
    run(&Running::with(options, None), &short()).unwrap();
}

#[test]
fn trains_find_a_rate_in_both_directions() {
    let server = Running::start();
    let mut client = Client::connect(&server.target()).unwrap();
    let both = [Direction::Up, Direction::Down];
    let capacity = client.capacity(&both, &AtomicBool::new(false), &mut |_, _| ()).unwrap();
    for direction in &capacity.directions {
        let found = &direction.found;
        assert!(found.burst_bps.unwrap() > Rate::from_bps(1_000_000), "{found:?}");
        assert!(found.available_bps.is_some() && found.trains > 5 && found.packet_bytes == 1_500, "{found:?}");
    }
    // The conversation goes on, and a search can be stopped.
    assert_eq!(client.ping(2).unwrap().count, 2);
    let stopped = client.capacity(&both, &AtomicBool::new(true), &mut |_, _| ());
    assert!(matches!(stopped, Err(MeasureError::Cancelled)), "{stopped:?}");
    client.bye();
}

#[test]
fn a_client_that_leaves_between_two_requests_is_no_problem_and_a_stranger_is_one() {
    let server = Running::start();
    drop(Client::connect(&server.target()).unwrap());
    server.wait_for_line(|line| line.ends_with("client disconnected"));
    assert!(server.problems().is_empty(), "{:?}", server.problems());
    std::io::Write::write_all(&mut std::net::TcpStream::connect(server.address).unwrap(), b"GET / HTTP/1.1\r\n\r\n")
        .unwrap();
    server.wait_for_line(|line| line.contains("HTTP"));
    assert_eq!(server.problems().len(), 1, "{:?}", server.problems());
}

#[test]
fn a_server_for_one_client_ends_with_it() {
    let server = Running::with(fullpipe_measure::ServerOptions { one_off: true, ..quick_server() }, None);
    // Whoever only looks does not count.
    Client::connect(&server.target()).unwrap().bye();
    server.wait_for_line(|line| line.ends_with("client disconnected"));
    let mut client = Client::connect(&server.target()).unwrap();
    for _ in 0..2 {
        client.run(&short(), &AtomicBool::new(false), &mut |_| ()).unwrap();
    }
    client.bye();
    assert!(server.wait_for_end(), "{:?}", server.log());
}

/// At this rate one message takes a second; a burst does not wait for it.
#[test]
fn a_burst_is_sent_without_a_pause_whatever_the_rate_in_both_directions() {
    let server = Running::start();
    for direction in [TestDirection::Up, TestDirection::Down] {
        let slow = TestSpec { direction, pace: Some(Rate::from_bps(8_000)), block: Bytes::new(1_000), ..short() };
        let moved = |spec: &TestSpec| run(&server, spec).unwrap().directions[0].bytes.get();
        let (alone, burst) = (moved(&slow), moved(&TestSpec { burst: 40, ..slow.clone() }));
        assert!(alone < 10_000 && burst >= 40_000, "{direction:?}: {alone}, {burst}");
    }
}
