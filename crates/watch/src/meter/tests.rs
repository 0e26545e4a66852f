//! Made intervals, and the text that comes of them.

use std::net::Ipv4Addr;

use super::*;

fn owner(process: &str) -> Owner {
    Owner { process: process.to_owned(), ..Owner::default() }
}

fn slice<'a>(peer: [u8; 4], owner: Option<&'a Owner>, seconds: Option<&'a BTreeMap<Limiter, f64>>) -> Slice<'a> {
    Slice {
        peer: Ipv4Addr::from(peer).into(),
        owner,
        moved: [1_000, 0],
        segments: [10, 1],
        rtt: Some(Micros::from_millis(30)),
        seconds,
        fixed: Fixed { receive: false, send: true },
    }
}

fn series(text: &str) -> usize {
    text.lines().filter(|line| !line.starts_with('#')).count()
}

#[test]
fn seconds_and_counters_are_told_by_process_and_destination() {
    let (web, held) = (owner("nginx"), BTreeMap::from([(Limiter::SendBuffer, 0.75), (Limiter::Path, 0.25)]));
    let mut meter = Meter::new(Destinations::default());
    for _ in 0..2 {
        let totals = Totals {
            connections: 9,
            active: 1,
            overflows: 3,
            closed_windows: Some(2),
            look_s: 0.5,
            ..Totals::default()
        };
        meter.add([slice([192, 0, 2, 7], Some(&web), Some(&held))].into_iter(), totals);
    }
    let text = meter.exposition().text();
    let labels = r#"process="nginx",destination="192.0.2.0/24""#;
    for line in [
        &format!(r#"fullpipe_limited_seconds_total{{limiter="send_buffer",{labels}}} 1.5"#),
        &format!("fullpipe_sent_bytes_total{{{labels}}} 2000"),
        &format!("fullpipe_retransmitted_segments_total{{{labels}}} 2"),
        r#"fullpipe_round_trip_seconds_bucket{le="0.05",destination="192.0.2.0/24"} 2"#,
        r#"fullpipe_round_trip_seconds_bucket{le="0.02",destination="192.0.2.0/24"} 0"#,
        r#"fullpipe_pinned_sockets{process="nginx",buffer="send"} 1"#,
        "fullpipe_connections 9",
        "fullpipe_listen_overflows_total 6",
        "fullpipe_closed_windows_total 4",
        "fullpipe_look_seconds_total 1.0",
    ] {
        assert!(text.lines().any(|label| label == line), "{line}\n{text}");
    }
    assert!(text.ends_with("# EOF\n"), "{text}");

    meter.add(std::iter::empty(), Totals::default());
    let text = meter.exposition().text();
    assert!(!text.contains("fullpipe_pinned_sockets{"), "a socket that is gone is pinned no more: {text}");
    assert!(text.contains("} 1.5"), "a counter stays: {text}");
}

#[test]
fn no_number_of_processes_and_destinations_makes_more_series_than_the_bound() {
    let held = Limiter::ALL.iter().filter(|limiter| **limiter != Limiter::InsufficientEvidence);
    let held: BTreeMap<Limiter, f64> = held.map(|limiter| (*limiter, 0.1)).collect();
    let mut meter = Meter::new(Destinations::default());
    let mut last = 0;
    for round in 0..4_000_u32 {
        let [_, a, b, c] = round.to_be_bytes();
        let process = owner(&format!("p{}", round % 101));
        let one =
            Slice { fixed: Fixed { receive: true, send: true }, ..slice([10, b, c, a], Some(&process), Some(&held)) };
        let other = slice([11, b, c, a], None, None);
        let reason = REASONS[round as usize % REASONS.len()];
        meter.add_end(&one, End::Aborted(reason));
        meter.add([one, other].into_iter(), Totals { lost_ends: Some(0), ..Totals::default() });
        last = series(&meter.exposition().text());
        assert!(last <= MOST_SERIES, "{last} series after {round} rounds");
    }
    assert!(last > MOST_SERIES / 4, "{last} is far below the bound of {MOST_SERIES}");
    assert!(meter.exposition().text().contains(r#"process="other",destination="other""#));
}

#[test]
fn who_was_never_judged_takes_no_labels() {
    let scanner = owner("scan");
    let mut meter = Meter::new(Destinations::default());
    meter.add((0..200).map(|last| slice([198, 51, last, 1], Some(&scanner), None)), Totals::default());
    let text = meter.exposition().text();
    assert!(
        !text.contains("scan")
            && text.contains(r#"fullpipe_sent_bytes_total{process="other",destination="other"} 200000"#)
    );
    assert!(text.contains("fullpipe_named_pairs 0"), "{text}");
}

#[test]
fn destinations_that_were_named_are_told_and_all_others_together() {
    let (web, held) = (owner("nginx"), BTreeMap::from([(Limiter::Path, 1.0)]));
    let named = ["10.0.0.0/8", "10.7.0.0/16"].map(|text| text.parse().unwrap());
    let mut meter = Meter::new(Destinations::Named(named.to_vec()));
    let peers = [[10, 1, 1, 1], [10, 7, 1, 1], [192, 0, 2, 1]];
    meter.add(peers.into_iter().map(|peer| slice(peer, Some(&web), Some(&held))), Totals::default());
    let text = meter.exposition().text();
    for destination in ["10.0.0.0/8", "10.7.0.0/16", OTHER] {
        let label = format!(r#"destination="{destination}"}} 1000"#);
        assert_eq!(
            text.lines().filter(|line| line.starts_with("fullpipe_sent_bytes") && line.ends_with(&label)).count(),
            1
        );
    }
}

#[test]
fn a_hostile_name_stays_within_its_label() {
    let (hostile, held) = (owner("a\"} 1\n\u{202e}\\b"), BTreeMap::from([(Limiter::Path, 1.0)]));
    let mut meter = Meter::new(Destinations::default());
    meter.add([slice([192, 0, 2, 7], Some(&hostile), Some(&held))].into_iter(), Totals::default());
    let text = meter.exposition().text();
    assert!(text.contains(r#"process="a__ 1___b""#), "{text}");
}

#[test]
fn ends_are_told_by_reason_and_name_processes_only_where_destinations_are_named() {
    let web = owner("nginx");
    let ends = [End::Closed, End::Aborted("reset_by_peer"), End::Aborted("refused")];
    let text = |destinations: Destinations| {
        let mut meter = Meter::new(destinations);
        ends.iter().for_each(|end| meter.add_end(&slice([10, 1, 1, 1], Some(&web), None), *end));
        meter.exposition().text()
    };
    let named = text(Destinations::Named(vec!["10.0.0.0/8".parse().unwrap()]));
    for line in [
        r#"fullpipe_ended_connections_total{process="nginx",destination="10.0.0.0/8"} 3"#,
        r#"fullpipe_aborted_connections_total{reason="refused",process="nginx",destination="10.0.0.0/8"} 1"#,
        r#"fullpipe_sent_bytes_total{process="nginx",destination="10.0.0.0/8"} 3000"#,
    ] {
        assert!(named.lines().any(|label| label == line), "{line}\n{named}");
    }
    let found = text(Destinations::default());
    assert!(found.contains(r#"fullpipe_ended_connections_total{process="other",destination="other"} 3"#), "{found}");
}
