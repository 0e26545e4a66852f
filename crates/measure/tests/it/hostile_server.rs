//! What our client makes of servers that are none, that are busy, or that fail in the middle.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    thread,
    time::Duration,
};

use fullpipe_measure::{Client, Fault, Foreign, Length, MeasureError, Target, TestSpec};
use proptest::{
    prelude::*,
    test_runner::{Config, TestRunner},
};

use crate::support::{fake_server, quick, short, target};

fn connect(address: SocketAddr) -> Result<Client, MeasureError> {
    Client::connect_with(&target(address), quick(), &AtomicBool::new(false))
}

fn connect_to(behaviour: impl Fn(TcpStream) + Send + Sync + 'static) -> MeasureError {
    connect(fake_server(behaviour)).map(|_| ()).unwrap_err()
}

/// Holds a connection open without a word.
fn hold(mut stream: TcpStream) {
    drop(stream.read_to_end(&mut Vec::new()));
}

fn take(stream: &mut TcpStream, count: usize) -> Vec<u8> {
    let mut bytes = vec![0u8; count];
    drop(stream.read_exact(&mut bytes));
    bytes
}

fn take_frame(stream: &mut TcpStream) -> Vec<u8> {
    let length = take(stream, 4);
    take(stream, u32::from_be_bytes(length.try_into().unwrap()) as usize)
}

fn say(stream: &mut TcpStream, bytes: &[u8]) {
    // The client may have gone; then it is the client that the test looks at.
    drop(stream.write_all(bytes));
}

fn frame(text: &str) -> Vec<u8> {
    let mut frame = u32::try_from(text.len()).unwrap().to_be_bytes().to_vec();
    frame.extend_from_slice(text.as_bytes());
    frame
}

#[test]
fn strangers_are_named() {
    let silent = connect_to(hold);
    assert!(matches!(&silent, MeasureError::NotAServer { foreign: Foreign::Silent, .. }), "{silent}");
    let ssh = connect_to(|mut stream| {
        say(&mut stream, b"SSH-2.0-OpenSSH_9.2p1\r\n");
        hold(stream);
    });
    assert!(matches!(&ssh, MeasureError::NotAServer { foreign: Foreign::Ssh, .. }), "{ssh}");
    let web = connect_to(|mut stream| {
        // As web servers do, it waits for the end of the request's head.
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.extend(take(&mut stream, 1));
        }
        say(&mut stream, b"HTTP/1.1 400 Bad Request\r\n\r\n");
    });
    assert!(matches!(&web, MeasureError::NotAServer { foreign: Foreign::Http, .. }), "{web}");
    assert_eq!(web.fault(), Fault::Peer);
    let other = connect_to(|mut stream| say(&mut stream, b"\x1b[31mwelcome"));
    assert!(other.to_string().contains(".[31mwelcome"), "{other}");
}

#[test]
fn a_closed_port_an_unknown_name_and_a_bad_target_differ() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    assert!(matches!(connect(free), Err(MeasureError::Refused { peer }) if peer == free));
    let unknown = Client::connect_with(&"no-such-host.invalid".parse().unwrap(), quick(), &AtomicBool::new(false));
    let unknown = unknown.map(|_| ()).unwrap_err();
    assert!(matches!(unknown, MeasureError::UnknownName { .. } | MeasureError::LookupTimeout { .. }), "{unknown}");
    assert!(matches!("a b".parse::<Target>(), Err(MeasureError::BadTarget { .. })));
}

#[test]
fn busy_and_the_servers_own_errors_are_told_apart() {
    let answer_params_with = |bytes: &'static [u8]| {
        connect_to(move |mut stream| {
            take(&mut stream, 37);
            say(&mut stream, &[9]);
            take_frame(&mut stream);
            say(&mut stream, bytes);
        })
    };
    let at_once = connect_to(|mut stream| {
        take(&mut stream, 37);
        say(&mut stream, &[0xff]);
    });
    assert!(matches!(at_once, MeasureError::Busy { .. }), "{at_once}");
    assert!(matches!(answer_params_with(&[0xff]), MeasureError::Busy { .. }));
    let whole = answer_params_with(&[0xfe, 0, 0, 0, 142, 0, 0, 0, 5]);
    assert!(matches!(whole, MeasureError::ServerError { code: 142, errno: 5, .. }), "{whole}");
    let half = answer_params_with(&[0xfe, 0, 0, 0, 142]);
    assert!(matches!(half, MeasureError::ServerError { code: 142, errno: 0, .. }), "{half}");
    let closed = answer_params_with(&[]);
    assert!(matches!(closed, MeasureError::Closed { .. }), "{closed}");
}

#[test]
fn another_version_is_named() {
    let error = connect_to(|mut stream| {
        take(&mut stream, 37);
        say(&mut stream, &[9]);
        take_frame(&mut stream);
        say(&mut stream, b"F");
        take_frame(&mut stream);
        say(&mut stream, &frame(r#"{"ok":{"version":9}}"#));
        hold(stream);
    });
    assert!(matches!(error, MeasureError::VersionMismatch { theirs: 9, ours: 1, .. }), "{error}");
}

/// An iperf3 server that keeps to the rules for so many steps of a test and then does something else. The first session
/// is the one by which the client finds out what it is.
fn fails_after(steps: u32, then: fn(TcpStream)) -> SocketAddr {
    let sessions = Arc::new(AtomicU32::new(0));
    fake_server(move |mut control| {
        let session = sessions.fetch_add(1, Ordering::Relaxed);
        if session == 2 {
            return hold(control);
        }
        take(&mut control, 37);
        say(&mut control, &[9]);
        take_frame(&mut control);
        if session == 0 {
            say(&mut control, &[10]);
            return hold(control);
        }
        for step in 1..=steps {
            match step {
                1 => say(&mut control, &[10]),
                2 => {
                    while sessions.load(Ordering::Relaxed) < 3 {
                        thread::sleep(Duration::from_millis(5));
                    }
                    say(&mut control, &[1]);
                }
                3 => say(&mut control, &[2]),
                4 => drop(take(&mut control, 1)),
                5 => say(&mut control, &[13]),
                6 => drop(take_frame(&mut control)),
                _ => say(&mut control, &frame(r#"{"streams":[{"id":1,"bytes":5}]}"#)),
            }
        }
        then(control);
    })
}

fn run_against(address: SocketAddr) -> MeasureError {
    let mut client = connect(address).unwrap();
    let spec = TestSpec { length: Length::Time(Duration::from_millis(200)), ..short() };
    client.run(&spec, &AtomicBool::new(false), &mut |_| ()).map(|_| ()).unwrap_err()
}

#[test]
fn a_server_that_dies_at_any_step_is_an_error_and_no_hang() {
    // Before it offers streams a foreign server may just be between two tests, and is asked again for a while.
    for steps in 1..=7 {
        let error = run_against(fails_after(steps, drop));
        assert!(matches!(error, MeasureError::Closed { .. }), "{steps}: {error}");
    }
}

#[test]
fn a_server_that_falls_silent_at_any_step_is_a_timeout() {
    thread::scope(|scope| {
        for steps in [1, 2, 4, 5, 6, 7] {
            scope.spawn(move || {
                let error = run_against(fails_after(steps, hold));
                assert!(matches!(error, MeasureError::Timeout { .. }), "{steps}: {error}");
            });
        }
    });
}

#[test]
fn a_server_that_is_stopped_or_fails_in_the_test_says_so() {
    let error = run_against(fails_after(3, |mut control| {
        say(&mut control, &[11]);
        hold(control);
    }));
    assert!(matches!(error, MeasureError::Terminated { .. }), "{error}");
    let error = run_against(fails_after(3, |mut control| {
        say(&mut control, &[0xfe, 0, 0, 0, 144, 0, 0, 0, 0]);
        hold(control);
    }));
    assert!(matches!(error, MeasureError::ServerError { code: 144, .. }), "{error}");
}

#[test]
fn giant_and_senseless_results_are_refused() {
    let giant = run_against(fails_after(6, |mut control| {
        say(&mut control, &u32::MAX.to_be_bytes());
        hold(control);
    }));
    assert!(matches!(giant, MeasureError::TooLarge { bytes: 4_294_967_295, .. }), "{giant}");
    let senseless = run_against(fails_after(6, |mut control| {
        say(&mut control, &frame("{\"streams\": 7}"));
        hold(control);
    }));
    assert!(matches!(senseless, MeasureError::BadMessage { .. }), "{senseless}");
}

#[test]
fn a_path_that_stops_carrying_is_a_stall() {
    let address = fails_after(3, hold);
    let mut client = connect(address).unwrap();
    // Nobody sends anything down.
    let spec = TestSpec {
        direction: fullpipe_measure::TestDirection::Down,
        length: Length::Time(Duration::from_secs(60)),
        ..short()
    };
    let outcome = client.run(&spec, &AtomicBool::new(false), &mut |_| ());
    assert!(matches!(outcome, Err(MeasureError::Stalled { .. })), "{outcome:?}");
}

#[test]
fn waiting_for_a_silent_server_can_be_cancelled() {
    let address = fake_server(hold);
    let cancel = AtomicBool::new(true);
    let outcome = Client::connect_with(&target(address), fullpipe_measure::ClientOptions::default(), &cancel);
    assert!(matches!(outcome, Err(MeasureError::Cancelled)), "{outcome:?}");
}

#[test]
fn random_bytes_of_a_server_are_an_error_and_never_a_panic() {
    let mut runner = TestRunner::new(Config { cases: 60, failure_persistence: None, ..Config::default() });
    let words = proptest::collection::vec(any::<u8>(), 0..60);
    runner
        .run(&(words, any::<bool>()), |(words, polite)| {
            // PARAM_EXCHANGE and CREATE_STREAMS: an iperf3 server says no more.
            prop_assume!(polite || !words.starts_with(&[9, 10]));
            let error = connect_to(move |mut stream| {
                take(&mut stream, 37);
                if polite {
                    say(&mut stream, &[9]);
                    take_frame(&mut stream);
                    say(&mut stream, b"F");
                    take_frame(&mut stream);
                }
                say(&mut stream, &words);
            });
            prop_assert!(!error.to_string().chars().any(char::is_control));
            Ok(())
        })
        .unwrap();
}
