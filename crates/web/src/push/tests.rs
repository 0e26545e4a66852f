//! Answers as collectors give them, and a collector of a few lines that goes away and comes back.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::mpsc,
    thread,
};

use super::*;

fn pace() -> Pace {
    Pace::new(Duration::from_secs(60))
}

fn later(after: Option<u64>) -> Answer {
    Answer::Later { reason: "away".to_owned(), after: after.map(Duration::from_secs) }
}

#[test]
fn only_the_statuses_of_the_specification_are_tried_again() {
    let now = Timestamp::UNIX_EPOCH;
    for status in (400..600).map(|code| StatusCode::from_u16(code).unwrap()) {
        let is_later = matches!(answer(status, None, b"", now), Answer::Later { .. });
        assert_eq!(is_later, [429, 502, 503, 504].contains(&status.as_u16()), "{status}");
    }
    let said = answer(StatusCode::BAD_REQUEST, None, br#"{"code":3,"message":"no\u001b such field"}"#, now);
    assert!(
        matches!(&said, Answer::Refused(text) if text.contains("such field") && !text.contains('\u{1b}')),
        "{said:?}"
    );
}

#[test]
fn a_collector_that_asks_for_patience_gets_it_and_no_more_than_an_hour() {
    let now: Timestamp = "2026-11-25T08:00:00Z".parse().unwrap();
    for (value, seconds) in [
        ("7", Some(7)),
        ("Wed, 25 Nov 2026 08:01:30 GMT", Some(90)),
        ("Wed, 25 Nov 2026 07:00:00 GMT", Some(0)),
        ("99999999", Some(3600)),
        ("soon", None),
    ] {
        let wait = retry_after(&HeaderValue::from_static(value), now);
        assert_eq!(wait, seconds.map(Duration::from_secs), "{value}");
    }
    let mut pace = pace();
    pace.next(later(Some(30)), 0.0);
    assert_eq!(pace.wait, Duration::from_secs(30));
}

#[test]
fn points_that_were_rejected_are_told_of_once() {
    let body = br#"{"partialSuccess":{"rejectedDataPoints":"3","errorMessage":"too old"}}"#;
    let partly = || answer(StatusCode::OK, None, body, Timestamp::UNIX_EPOCH);
    assert_eq!(partly(), Answer::Taken(Some("3 points were rejected: too old".to_owned())));
    assert_eq!(answer(StatusCode::OK, None, b"{}", Timestamp::UNIX_EPOCH), Answer::Taken(None));
    let full = br#"{"partialSuccess":{}}"#;
    assert_eq!(answer(StatusCode::OK, None, full, Timestamp::UNIX_EPOCH), Answer::Taken(None));
    let mut pace = pace();
    assert!(pace.next(partly(), 0.0).is_some());
    assert!(pace.next(partly(), 0.0).is_none(), "it was said already");
    assert_eq!(pace.wait, pace.interval, "what was taken in part is not sent again");
}

#[test]
fn waits_double_up_to_a_bound_and_the_end_of_a_failure_is_reported() {
    let mut pace = pace();
    assert!(pace.next(later(None), 0.0).is_some_and(|line| line.contains("away")));
    let mut waits = vec![pace.wait.as_secs()];
    for _ in 0..8 {
        assert_eq!(pace.next(later(None), 0.0), None, "reported already");
        waits.push(pace.wait.as_secs());
    }
    assert_eq!(waits, [1, 2, 4, 8, 16, 32, 64, 64, 64]);
    pace.next(later(None), 1.0);
    assert_eq!(pace.wait, Duration::from_secs(96), "spread by half at the most");
    assert!(pace.next(Answer::Taken(None), 0.0).is_some_and(|line| line.contains("again")));
    assert_eq!((pace.wait, pace.next(Answer::Taken(None), 0.0)), (pace.interval, None));
}

#[test]
fn what_can_be_no_collector_is_refused_with_the_way_out() {
    let new = |url| Push::new(url, FIRST, FIRST).map(|push| push.url());
    assert_eq!(new("http://collector:4318/v1/metrics").unwrap(), "http://collector:4318/v1/metrics");
    assert!(matches!(new("https://collector:4318"), Err(PushError::Tls(_))));
    for url in ["collector:4318", "grpc://collector:4317", "/v1", "", "http://", "http://user:word@collector"] {
        assert!(matches!(new(url), Err(PushError::Address(_))), "{url}");
    }
    assert!(Push::new("http://a", FIRST, FIRST).unwrap().header("a b", "c").is_err());
}

/// Reads a request with its body.
fn request(stream: &mut BufReader<TcpStream>) -> Option<(String, String)> {
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line == "\r\n" {
            break;
        }
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        head += &line;
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    Some((head, String::from_utf8(body).unwrap()))
}

#[test]
fn pushes_go_on_over_one_connection_through_refusals_and_after_a_stop() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1/metrics", listener.local_addr().unwrap());
    let push = Push::new(&url, Duration::from_millis(10), Duration::from_secs(30)).unwrap();
    let push = push.header("x-key", "word").unwrap();
    let stop = AtomicBool::new(false);
    let (sent, heard) = mpsc::channel();
    // Answers, each for a request; the third with a status that a second attempt follows at once, the last one by hanging up.
    let statuses = ["200 OK", "400 Bad Request", "503 Service Unavailable\r\nretry-after: 0", "200 OK", ""];
    let server = thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let mut stream = BufReader::new(stream);
        for status in statuses {
            sent.send(request(&mut stream).unwrap()).unwrap();
            if !status.is_empty() {
                write!(stream.get_mut(), "HTTP/1.1 {status}\r\ncontent-length: 2\r\n\r\n{{}}").unwrap();
            }
        }
        drop(stream);
        // Whoever comes again has a new connection; the one after the stop has another.
        for stream in listener.incoming().take(2) {
            let mut stream = BufReader::new(stream.unwrap());
            while let Some(request) = request(&mut stream) {
                write!(stream.get_mut(), "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").unwrap();
                sent.send(request).unwrap();
            }
        }
    });
    thread::scope(|scope| {
        scope.spawn(|| push.run(|| "{\"a\":1}".to_owned(), &stop).unwrap());
        for _ in 0..statuses.len() + 2 {
            let (head, body) = heard.recv().unwrap();
            assert!(head.starts_with("POST /v1/metrics HTTP/1.1\r\n") && head.contains("x-key: word"), "{head}");
            assert!(head.contains("content-type: application/json"), "{head}");
            assert_eq!(body, "{\"a\":1}");
        }
        stop.store(true, Ordering::Relaxed);
    });
    server.join().unwrap();
}
