//! How many segments a path carries per second of one core, for three paths. The lab needs 250,000.
//! `cargo run --release -p fullpipe-path --example segments_per_second`
#![expect(clippy::disallowed_methods, reason = "this measures the machine itself, which never sees this clock")]

use std::{hint::black_box, time::Instant as Clock};

use fullpipe_path::{
    HopSpec, JitterSpec, LossSpec, Machine, OneWay, QueueSize, QueueSpec, ReorderBy, ReorderSpec, Segment, Spread,
};
use fullpipe_units::{Instant, Micros, Rate};

const SEGMENTS: u64 = 5_000_000;

fn main() {
    let link = HopSpec {
        rate: Some(Rate::from_bps(1_000_000_000)),
        queue: QueueSpec { size: QueueSize::Packets(1_000), ..QueueSpec::default() },
        delay: Micros::from_millis(20),
        ..HopSpec::default()
    };
    let bad = HopSpec {
        jitter: Some(JitterSpec { spread: Spread::Normal(Micros::from_millis(1)), keep_order: true }),
        loss: Some(LossSpec::GilbertElliott { p: 0.001, r: 0.3, good: 0.0, bad: 1.0 }),
        reorder: Some(ReorderSpec {
            probability: 0.001,
            by: ReorderBy::Gap { packets: 3, hold: Micros::from_millis(9) },
        }),
        duplicate: 0.001,
        ..link.clone()
    };
    for (name, hops) in [
        ("one link", vec![link.clone()]),
        ("three links", vec![link.clone(), link.clone(), link]),
        ("one link with every impairment", vec![bad]),
    ] {
        let (seconds, carried) = run(&hops);
        let rate = SEGMENTS as f64 / seconds / 1e6;
        println!("{name}: {rate:.2} million segments/s, {carried} of {SEGMENTS} carried");
    }
}

/// Full segments at 1 Gbit/s, polled for every one of them, 20 ms of them under way.
fn run(hops: &[HopSpec]) -> (f64, u64) {
    let mut path: OneWay<[u64; 3]> = OneWay::new(hops, Micros::from_millis(40), 1500, 1);
    let start = Clock::now();
    let mut carried = 0;
    for i in 0..SEGMENTS {
        let now = Instant::from_nanos(i * 12_000);
        path.on_packet(now, Segment::new(1500, [i; 3]));
        while let Some(departure) = path.poll_transmit(now) {
            black_box(&departure);
            carried += 1;
        }
        black_box(path.next_timeout());
    }
    (start.elapsed().as_secs_f64(), carried)
}
