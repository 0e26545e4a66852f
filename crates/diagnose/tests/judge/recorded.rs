//! Transfers recorded on real Linux kernels (6.18) over an emulated path, one file each under `tests/data`. The name says
//! what held the transfer back and the sender's congestion control. To keep them small, samples are thinned and stand
//! as rows under one list of columns.

use std::{fs, path::Path};

use fullpipe_diagnose::{Confidence, Detail, Diagnosis, Limiter, PathRate, Transfer, diagnose};
use fullpipe_units::Rate;
use serde_json::{Map, Value};

use crate::report;

fn recorded(name: &str) -> Transfer {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name).with_extension("json");
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("read {}: {error}", path.display()));
    let mut transfer: Value = serde_json::from_str(&text).expect("a recording is JSON");
    for series in ["sender_samples", "receiver_samples"] {
        transfer[series] = as_objects(&transfer[series]);
    }
    serde_json::from_value(transfer).expect("a recording is a transfer")
}

fn as_objects(table: &Value) -> Value {
    let list = |key: &str| table[key].as_array().cloned().unwrap_or_default();
    let columns = list("columns");
    let object = |row: &Value| {
        let cells = row.as_array().cloned().unwrap_or_default();
        let named = columns.iter().zip(cells).map(|(name, cell)| (name.as_str().unwrap_or_default().to_owned(), cell));
        Value::Object(named.collect::<Map<String, Value>>())
    };
    list("rows").iter().map(object).collect()
}

/// What several connections carried together.
fn known(bps: u64) -> Option<PathRate> {
    Some(PathRate { rate_bps: Rate::from_bps(bps), lower_bound: false })
}

fn judged(name: &str) -> Diagnosis {
    let diagnosis = diagnose(&recorded(name));
    println!("{name}: {}", report(&diagnosis));
    diagnosis
}

#[test]
fn a_small_receive_window_on_real_kernels() {
    for name in ["receive-window-cubic", "receive-window-bbr"] {
        let diagnosis = judged(name);
        assert_eq!(diagnosis.limiter, Limiter::ReceiveWindow, "{name}");
        assert_eq!(diagnosis.detail, Some(Detail::ScaleZero), "{name}");
        assert!(diagnosis.share > 0.7 && diagnosis.confidence == Confidence::High, "{name}");
    }
}

#[test]
fn a_small_send_buffer_on_real_kernels() {
    for name in ["send-buffer-cubic", "send-buffer-bbr"] {
        let diagnosis = judged(name);
        assert_eq!(diagnosis.limiter, Limiter::SendBuffer, "{name}");
        assert!(diagnosis.share > 0.5, "{name}");
    }
}

#[test]
fn a_full_path_on_real_kernels() {
    for name in ["path-cubic", "path-bbr"] {
        let diagnosis = judged(name);
        assert_eq!((diagnosis.limiter, diagnosis.detail), (Limiter::Path, Some(Detail::Saturated)), "{name}");
        let attainable = diagnosis.attainable_bps.map_or(0, |rate| rate.bps());
        // 100 Mbit/s of IP packets with 1,448 of 1,500 bytes of payload are 96.5 Mbit/s.
        assert!((92_000_000..96_600_000).contains(&attainable), "{name}: {attainable}");
    }
}

#[test]
fn one_per_cent_of_loss_on_real_kernels() {
    let cubic = judged("loss-cubic");
    assert_eq!((cubic.limiter, cubic.detail), (Limiter::CongestionWindow, Some(Detail::Loss)));
    // BBR carries on at the path's rate: nothing holds it down but the path.
    assert_eq!(judged("loss-bbr").limiter, Limiter::Path);
}

#[test]
fn a_writer_that_refills_the_path_with_bursts_on_real_kernels() {
    // SO_SNDBUF of 250,000 B: each burst queues behind itself, up to a congestion window of more than the product, and the path
    // runs dry before the writer is woken again. It carried 0.66 and 0.52 of its rate.
    for name in ["refilled-reno", "refilled-cubic"] {
        let diagnosis = judged(name);
        assert_eq!(diagnosis.limiter, Limiter::SendBuffer, "{name}");
        assert!(diagnosis.share > 0.8, "{name}: {}", diagnosis.share);
    }
}

#[test]
fn a_buffer_that_is_seldom_seen_full_on_real_kernels() {
    // `tcp_wmem` of 1,332,375 B at the most, 556 Mbit/s and 47 ms. Each burst of acknowledgements wakes the writer, who fills the buffer, and
    // goes on until it is at two thirds again: there it is for most of the time, with nothing left to send. Linux counts nothing for it.
    let diagnosis = judged("at-wake-mark-cubic");
    assert_eq!(diagnosis.limiter, Limiter::SendBuffer, "{}", report(&diagnosis));
    assert!(diagnosis.share > 0.8, "{}", diagnosis.share);
}

#[test]
fn the_same_buffer_on_a_path_that_it_fills_on_real_kernels() {
    let full = judged("path-with-send-buffer-reno");
    assert_eq!((full.limiter, full.detail), (Limiter::Path, Some(Detail::Saturated)));
}

#[test]
fn a_loss_that_empties_the_path_once_is_no_writer_on_real_kernels() {
    // Slow start overshot, and its recovery took the flight down for 34 ms. The send buffer was just large enough to keep the path
    // full from then on, at 1.5 times the product.
    let full = judged("path-after-overshoot-cubic");
    assert_eq!((full.limiter, full.detail), (Limiter::Path, Some(Detail::Saturated)));
    assert!(full.share > 0.7, "{}", full.share);
}

#[test]
fn what_several_connections_carried_is_all_that_the_path_carries_on_real_kernels() {
    // The transfer alone shows a path that runs dry; a rate that others did not exceed is the path's all the same.
    let mut transfer = recorded("refilled-reno");
    transfer.path_rate = transfer.rate().map(|rate_bps| PathRate { rate_bps, lower_bound: true });
    assert_ne!(diagnose(&transfer).limiter, Limiter::SendBuffer);
}

#[test]
fn a_writer_that_nearly_fills_a_path_of_a_known_rate_on_real_kernels() {
    // `tcp_wmem` of 77,824 B at the most, 10 Mbit/s and 40 ms: 85 % of what several connections carry together. What is in flight falls
    // below the product of that rate, though not of its own, and the kernel counts 70 % of the time for the buffer.
    let mut transfer = recorded("refilled-small-cubic");
    transfer.path_rate = known(9_710_000);
    let diagnosis = diagnose(&transfer);
    assert_eq!(diagnosis.limiter, Limiter::SendBuffer, "{}", report(&diagnosis));
    assert!(diagnosis.share > 0.8, "{}", diagnosis.share);
    // Where several carry no more, the path is full.
    transfer.path_rate = known(8_600_000);
    assert_eq!(diagnose(&transfer).limiter, Limiter::Path);
}

#[test]
fn a_buffer_and_a_window_that_nearly_fill_a_path_of_a_known_rate_on_real_kernels() {
    // The same, with a window of 65,535 B, 1.3 products: 87 % of the path. Bursts of the writer queue behind themselves, and sometimes
    // use the window up; the kernel counts next to nothing for either.
    let mut transfer = recorded("refilled-small-both-cubic");
    transfer.path_rate = known(9_650_000);
    let diagnosis = diagnose(&transfer);
    assert_eq!(diagnosis.limiter, Limiter::SendBuffer, "{}", report(&diagnosis));
    transfer.path_rate = known(8_600_000);
    assert_eq!(diagnose(&transfer).limiter, Limiter::Path);
}

#[test]
fn a_window_and_a_buffer_that_hold_in_turn_on_real_kernels() {
    // 65,535 B of window, 76 KB of buffer, 1 Gbit/s, 1 ms, paced at 2 Gbit/s: most samples fall into the pacing of a burst and find a
    // part of each free. The congestion window has grown to a little more than twice what is in flight.
    let mut transfer = recorded("window-and-buffer-cubic");
    transfer.path_rate = known(963_000_000);
    let check = |transfer: &Transfer| {
        let diagnosis = diagnose(transfer);
        println!("{}", report(&diagnosis));
        assert_eq!(diagnosis.limiter, Limiter::ReceiveWindow);
        assert!(diagnosis.share > 0.6, "{}", diagnosis.share);
        assert!(diagnosis.shares[&Limiter::SendBuffer] > 0.1, "{:?}", diagnosis.shares);
    };
    check(&transfer);
    // A machine that is busy meanwhile is not what is in the way.
    (transfer.sender.cpu_busy, transfer.receiver.cpu_busy) = (Some(0.99), Some(0.99));
    check(&transfer);
    // Where several connections carry no more, the path is full.
    transfer.path_rate = known(370_000_000);
    assert_eq!(diagnose(&transfer).limiter, Limiter::Path);
}

#[test]
fn an_application_that_writes_bursts_into_the_same_buffer_on_real_kernels() {
    // 256 KB, a pause of 50 ms: they queue behind themselves, too.
    assert_eq!(judged("application-bursts-cubic").limiter, Limiter::Application);
}

#[test]
fn a_policer_whose_first_burst_was_not_seen_on_real_kernels() {
    // 10 Mbit/s and 100 KB on a link of 50 Mbit/s, five seconds from the middle of the transfer, as `watch` looks at it.
    for name in ["policed-bbr", "policed-cubic"] {
        let diagnosis = judged(name);
        assert_eq!((diagnosis.limiter, diagnosis.detail), (Limiter::Path, Some(Detail::Policed)), "{name}");
    }
}

#[test]
fn losses_by_chance_at_one_height_are_no_full_queue_on_real_kernels() {
    // One segment in a hundred: four losses struck at about the same flight, and round trips show no queue.
    let cubic = judged("loss-at-one-height-cubic");
    assert_eq!((cubic.limiter, cubic.detail), (Limiter::CongestionWindow, Some(Detail::Loss)));
}

#[test]
fn a_black_hole_whose_first_timeouts_are_out_of_sight_on_real_kernels() {
    // Five seconds in which the timer ran out once or twice, for the fifth time in a row.
    let hole = judged("black-hole-bbr");
    assert_eq!((hole.limiter, hole.detail), (Limiter::SegmentSize, Some(Detail::MtuBlackHole)));
}

#[test]
fn a_window_that_opened_before_the_first_looks_on_real_kernels() {
    for name in ["opening-bbr", "opening-and-silence-bbr"] {
        let diagnosis = judged(name);
        assert_eq!(
            (diagnosis.limiter, diagnosis.detail),
            (Limiter::CongestionWindow, Some(Detail::SlowStart)),
            "{name}"
        );
    }
}

#[test]
fn a_pace_that_the_application_set_is_the_applications_on_real_kernels() {
    // 25 Mbit/s of 100, over 60 ms, recorded without what the application had set: nothing else tells it from a full path.
    let mut transfer = recorded("paced-bbr");
    assert_eq!(diagnose(&transfer).limiter, Limiter::Path);
    for sample in &mut transfer.sender_samples {
        sample.max_pacing_rate_bps = Some(Rate::from_bps(25_000_000));
    }
    let diagnosis = diagnose(&transfer);
    assert_eq!(diagnosis.limiter, Limiter::Application);
    assert!(report(&diagnosis).contains("SO_MAX_PACING_RATE"), "{}", report(&diagnosis));
}
