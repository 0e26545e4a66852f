//! Recordings of made intervals.

use fullpipe_units::Bytes;

use super::*;
use crate::notes::Subject;

fn row(peer: &str, seen_s: f64, sent_bps: u64, seconds: &[(Limiter, f64)]) -> Row {
    Row {
        local: "192.0.2.1:443".parse().unwrap(),
        peer: peer.parse().unwrap(),
        owner: None,
        uid: Some(33),
        seen_s,
        is_older: false,
        sent_bps: Some(Rate::from_bps(sent_bps)),
        received_bps: Some(Rate::ZERO),
        rtt_us: None,
        min_rtt_us: None,
        peer_window: None,
        own_window: None,
        cwnd: None,
        in_flight: None,
        unread: Bytes::ZERO,
        waiting: Bytes::ZERO,
        send_buffer: None,
        receive_buffer: None,
        mss: None,
        congestion_control: None,
        retransmissions: Some(2),
        now: None,
        seconds: seconds.iter().copied().collect(),
        diagnosis: None,
        notes: Vec::new(),
    }
}

fn judged(mut row: Row, limiter: Limiter, share: f64) -> Row {
    let words = format!("{limiter} at {share}");
    row.diagnosis = Some(Diagnosis { limiter, share, ..Diagnosis::insufficient(words) });
    row
}

fn recording(frames: Vec<Vec<Row>>) -> String {
    let line = |(at, rows): (usize, Vec<Row>)| {
        let at_s = at as f64 + 1.0;
        let time = Some(format!("2026-11-23T14:00:0{at}Z"));
        let missing = vec!["names".to_owned()];
        let frame = Frame { time, at_s, interval_s: 1.0, connections: 90, rows, missing, ..Frame::default() };
        let mut document = serde_json::to_value(frame).unwrap();
        document["command"] = "watch".into();
        document.to_string() + "\n"
    };
    frames.into_iter().enumerate().map(line).collect()
}

fn all(frames: Vec<Vec<Row>>) -> Whole {
    whole(recording(frames).as_bytes(), &Filter::default()).unwrap()
}

const PEER: &str = "198.51.100.7:5000";

#[test]
fn a_connection_has_its_averages_and_what_held_it_longest() {
    let (buffer, path) = (Limiter::SendBuffer, Limiter::Path);
    let summed = all(vec![
        vec![judged(row(PEER, 1.0, 10_000_000, &[(path, 1.0)]), path, 1.0)],
        vec![judged(row(PEER, 2.0, 20_000_000, &[(path, 1.0), (buffer, 1.0)]), buffer, 0.5)],
        vec![judged(row(PEER, 3.0, 30_000_000, &[(path, 1.0), (buffer, 2.0)]), buffer, 0.8)],
        vec![judged(row(PEER, 4.0, 40_000_000, &[(path, 1.0), (buffer, 3.0)]), path, 0.4)],
    ]);
    assert_eq!((summed.intervals, summed.frame.interval_s, summed.frame.connections), (4, 4.0, 1));
    assert_eq!(summed.from.as_deref(), Some("2026-11-23T14:00:00Z"));
    assert_eq!(summed.frame.missing, ["names"], "said once");
    let row = &summed.frame.rows[0];
    assert_eq!((row.sent_bps, row.retransmissions), (Some(Rate::from_bps(25_000_000)), Some(8)));
    let diagnosis = row.diagnosis.as_ref().unwrap();
    assert_eq!((diagnosis.limiter, diagnosis.share), (buffer, 0.75));
    assert_eq!(diagnosis.shares, [(buffer, 0.75), (path, 0.25)].into());
}

#[test]
fn the_same_ends_again_are_another_connection_where_they_are_younger() {
    let summed = all(vec![
        vec![row(PEER, 5.0, 8_000, &[])],
        vec![],
        vec![row(PEER, 1.0, 16_000, &[]), row("198.51.100.8:1", 1.0, 0, &[])],
        vec![row(PEER, 2.0, 16_000, &[])],
    ]);
    let rates: Vec<u64> = summed.frame.rows.iter().map(|row| row.sent_bps.unwrap().bps()).collect();
    assert_eq!((rates, summed.frame.active), (vec![16_000, 8_000, 0], 2));
}

#[test]
fn what_was_noted_once_is_told_once_and_the_filter_holds() {
    let note = |text: &str| Note {
        subject: Subject::SendBufferSet,
        is_sure: true,
        is_trouble: true,
        text: text.to_owned(),
        fix: String::new(),
    };
    let noted = |seen_s, text| Row { notes: vec![note(text)], ..row(PEER, seen_s, 8_000, &[]) };
    let frames = vec![vec![noted(1.0, "first")], vec![noted(2.0, "second"), row("203.0.113.1:1", 1.0, 0, &[])]];
    let filter: Filter = "dst 198.51.100.0/24".parse().unwrap();
    let summed = whole(recording(frames).as_bytes(), &filter).unwrap();
    assert_eq!(summed.frame.rows.len(), 1);
    assert_eq!(summed.frame.rows[0].notes, [note("second")]);
    assert!(matches!(whole(&b"{}"[..], &filter), Err(RecordError::Document { .. })));
}
