//! Captures of real kernels over made paths, taken at both hosts (`-a`, `-b`): one connection each, headers only. The
//! verdict is that of the live test which they were taken of, whichever host captured it.
#![expect(clippy::unwrap_used, reason = "a test that fails may panic")]

use std::path::PathBuf;

use fullpipe_capture::{Findings, Keep, Reader, Tracker};
use fullpipe_diagnose::{Detail, Limiter};

/// File name without the host, and the live test's verdict.
const RECORDED: &[(&str, Limiter, Detail)] = &[
    ("wan-80ms-cubic-window", Limiter::ReceiveWindow, Detail::ScaleZero),
    ("wan-80ms-bbr-window", Limiter::ReceiveWindow, Detail::ScaleZero),
    ("wan-80ms-cubic-buffer", Limiter::SendBuffer, Detail::BufferCap),
    ("wan-80ms-bbr-buffer", Limiter::SendBuffer, Detail::BufferCap),
    ("adsl2-cubic-window", Limiter::ReceiveWindow, Detail::ScalingAbsent),
    ("bluetooth-hop-cubic-path", Limiter::Path, Detail::Saturated),
    ("clean-10m-40ms-bbr-path", Limiter::Path, Detail::Saturated),
];

fn read(name: &str) -> Findings {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name).with_extension("pcap");
    let bytes = std::fs::read(path).unwrap();
    let mut tracker = Tracker::new(1, Keep { transfers: true });
    let mut reader = Reader::new();
    let used = reader.read(&bytes, &mut tracker).unwrap();
    // A capture that ends within a packet is told so, and what came before counts.
    reader.finish(&bytes[used..], &mut tracker).unwrap();
    tracker.finish()
}

#[test]
fn both_hosts_captures_get_the_verdict_of_the_live_test() {
    for &(name, limiter, detail) in RECORDED {
        for host in ["a", "b"] {
            let found = read(&format!("{name}-{host}"));
            assert_eq!(found.connections.len(), 1, "{name}-{host}");
            let report = found.connections.get(0).unwrap();
            let side = report.main_side();
            let diagnosis = &side.verdict.as_ref().unwrap().diagnosis;
            assert_eq!((diagnosis.limiter, diagnosis.detail), (limiter, Some(detail)), "{name}-{host}: {diagnosis:#?}");
            assert!(diagnosis.evidence.iter().any(|evidence| evidence.packets.is_some()), "{name}-{host}");
        }
    }
}

#[test]
fn windows_and_round_trips_are_the_same_from_either_host() {
    for &(name, ..) in RECORDED {
        let [a, b] = ["a", "b"].map(|host| read(&format!("{name}-{host}")).connections.get(0).unwrap().into_owned());
        let trip = |report: &fullpipe_capture::Report| report.rtt.unwrap().get() as f64;
        assert!((trip(&a) / trip(&b) - 1.0).abs() < 0.2, "{name}: {:?} and {:?}", a.rtt, b.rtt);
        assert_eq!(a.sides[0].syn, b.sides[0].syn, "{name}");
        // One that grows was cut off at another size.
        let window = |report: &fullpipe_capture::Report| report.main_side().counters.largest_window;
        assert!(window(&a) == window(&b) || !name.ends_with("window"), "{name}");
    }
}

#[test]
fn the_arithmetic_of_the_window_stands_in_the_evidence() {
    let found = read("wan-80ms-cubic-window-b");
    let report = found.connections.get(0).unwrap();
    let verdict = report.main_side().verdict.as_ref().unwrap();
    let told: Vec<&str> = verdict.diagnosis.evidence.iter().map(|evidence| evidence.text.as_str()).collect();
    assert!(told[0].contains("65,535 B x 8 / 80."), "{told:?}");
    let spans: u64 = verdict.runs.iter().map(|run| run.to_us - run.from_us).sum();
    assert_eq!(Some(spans), verdict.runs.last().map(|run| run.to_us - verdict.runs[0].from_us), "no gaps");
}
