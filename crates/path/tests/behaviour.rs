//! What each element does to packets, by hand-counted times.

use fullpipe_path::{
    CoDelSpec, Departure, Discipline, Ecn, Fate, HopSpec, HopStats, JitterSpec, LossSpec, Machine, MtuSpec, OneWay,
    OversizeVerdict, QueueSize, QueueSpec, ReorderBy, ReorderSpec, Segment, Spread,
};
use fullpipe_units::{Bytes, Instant, Micros, Rate};

const MBIT: u64 = 1_000_000;

fn us(us: u64) -> Instant {
    Instant::from_nanos(us * 1_000)
}

fn ms(ms: u64) -> Micros {
    Micros::from_millis(ms)
}

fn one_way(hops: &[HopSpec]) -> OneWay<u32> {
    OneWay::new(hops, ms(80), 1500, 11)
}

fn link(bps: u64, packets: u32) -> HopSpec {
    HopSpec {
        rate: Some(Rate::from_bps(bps)),
        queue: QueueSpec { size: QueueSize::Packets(packets), discipline: Discipline::DropTail },
        ..HopSpec::default()
    }
}

/// Everything that ever comes out, polled exactly when the machine asks for it.
fn drain(machine: &mut OneWay<u32>) -> Vec<Departure<u32>> {
    let mut all = Vec::new();
    while let Some(at) = machine.next_timeout() {
        while let Some(departure) = machine.poll_transmit(at) {
            all.push(departure);
        }
    }
    all
}

fn order(departures: &[Departure<u32>]) -> Vec<u32> {
    departures.iter().map(|departure| departure.segment.handle).collect()
}

fn only_hop(machine: &OneWay<u32>) -> HopStats {
    machine.stats().next().expect("these paths have a hop")
}

#[test]
fn a_path_without_hops_delivers_at_once() {
    let mut path = one_way(&[]);
    path.on_packet(us(5), Segment::new(1500, 1));
    assert_eq!(path.poll_transmit(us(5)).map(|departure| departure.at), Some(us(5)));
}

#[test]
fn a_link_serialises_by_ip_length_and_overhead() {
    let mut path = one_way(&[HopSpec { overhead: 38, ..link(10 * MBIT, 10) }]);
    path.on_packet(us(0), Segment::new(1462, 1));
    path.on_packet(us(0), Segment::new(212, 2));
    let times: Vec<_> = drain(&mut path).iter().map(|departure| departure.at).collect();
    // 1500 B and 250 B at 10 Mbit/s: 1200 us, then 200 us.
    assert_eq!(times, [us(1_200), us(1_400)]);
}

#[test]
fn a_busy_link_does_not_drift() {
    // 1500 B at 7 Mbit/s last 1,714,285.714... ns: after 7 million bits exactly one second has passed.
    let mut path = one_way(&[link(7 * MBIT, 1_000)]);
    for i in 0..875 {
        path.on_packet(us(0), Segment::new(1000, i));
    }
    assert_eq!(drain(&mut path).last().map(|departure| departure.at), Some(us(1_000_000)));
}

#[test]
fn the_packet_in_service_does_not_count_against_the_queue() {
    let mut path = one_way(&[link(12 * MBIT, 2)]);
    for i in 0..5 {
        path.on_packet(us(0), Segment::new(1500, i));
    }
    assert_eq!(order(&drain(&mut path)), [0, 1, 2]);
    let stats = only_hop(&path);
    assert_eq!((stats.queue.dropped_full, stats.queue.max_packets), (2, 2));
    // 1500 B at 12 Mbit/s last 1 ms: nothing, 1 ms and 2 ms of waiting.
    assert_eq!(stats.queue.total_wait.as_millis(), 3);
    assert_eq!(stats.queue.mean_wait().as_millis(), 1);
}

#[test]
fn a_queue_drains_while_nobody_polls() {
    let mut path = one_way(&[link(12 * MBIT, 1)]);
    path.on_packet(us(0), Segment::new(1500, 0));
    path.on_packet(us(0), Segment::new(1500, 1));
    // By 1 ms the first has left and the second is being serialised, though the driver slept.
    path.on_packet(us(1_000), Segment::new(1500, 2));
    let departures = drain(&mut path);
    assert_eq!(order(&departures), [0, 1, 2]);
    assert_eq!(departures.last().map(|departure| departure.at), Some(us(3_000)));
}

#[test]
fn a_queue_of_one_product_takes_one_product() {
    let spec = HopSpec {
        queue: QueueSpec { size: QueueSize::Bdp { multiple: 1.0, at_least: 64 }, discipline: Discipline::DropTail },
        ..link(100 * MBIT, 1)
    };
    let mut path = one_way(&[spec]);
    for i in 0..2_000 {
        path.on_packet(us(0), Segment::new(1500, i));
    }
    // 100 Mbit/s x 80 ms = 1,000,000 B = 666 full packets, and one in service.
    assert_eq!(drain(&mut path).len(), 667);
}

#[test]
fn a_small_product_still_takes_its_least() {
    let spec = HopSpec {
        queue: QueueSpec { size: QueueSize::Bdp { multiple: 1.0, at_least: 64 }, discipline: Discipline::DropTail },
        ..link(MBIT / 10, 1)
    };
    let mut path = one_way(&[spec]);
    for i in 0..200 {
        path.on_packet(us(0), Segment::new(1500, i));
    }
    assert_eq!(drain(&mut path).len(), 65);
}

#[test]
fn queues_measured_in_time_and_bytes_hold_that_much() {
    let queue = |size| QueueSpec { size, discipline: Discipline::DropTail };
    for (size, held) in [(QueueSize::Time(ms(10)), 10), (QueueSize::Bytes(Bytes::new(4_600)), 3)] {
        let mut path = one_way(&[HopSpec { queue: queue(size), ..link(12 * MBIT, 1) }]);
        for i in 0..50 {
            path.on_packet(us(0), Segment::new(1500, i));
        }
        assert_eq!(drain(&mut path).len(), held + 1, "{size:?}");
    }
}

#[test]
fn the_slowest_hop_sets_the_pace_and_delays_add_up() {
    let hop = |bps, delay| HopSpec { delay: ms(delay), ..link(bps, 100) };
    let mut path = one_way(&[hop(100 * MBIT, 10), hop(12 * MBIT, 20), hop(100 * MBIT, 5)]);
    for i in 0..3 {
        path.on_packet(us(0), Segment::new(1500, i));
    }
    let times: Vec<_> = drain(&mut path).iter().map(|departure| departure.at).collect();
    // 120 us + 1000 us + 120 us of serialisation and 35 ms of delay; then one per millisecond.
    assert_eq!(times, [us(36_240), us(37_240), us(38_240)]);
}

#[test]
fn the_driver_is_woken_for_departures_not_for_every_hop() {
    let hop = HopSpec { delay: ms(10), ..link(12 * MBIT, 100) };
    let mut path = one_way(&[hop.clone(), hop]);
    path.on_packet(us(0), Segment::new(1500, 0));
    // 1 ms of serialisation and both delays at the least.
    assert_eq!(path.next_timeout(), Some(us(21_000)));
    assert_eq!(path.poll_transmit(us(21_000)), None);
    assert_eq!(path.next_timeout(), Some(us(22_000)));
    assert!(path.poll_transmit(us(22_000)).is_some());
    assert_eq!(path.next_timeout(), None);
}

#[test]
fn too_large_is_answered_by_the_hop_that_minds() {
    let minds =
        |bytes, oversize| HopSpec { mtu: Some(MtuSpec { bytes, oversize }), delay: ms(5), ..HopSpec::default() };
    let mut path = one_way(&[minds(1500, OversizeVerdict::TooBig), minds(1400, OversizeVerdict::TooBig)]);
    path.on_packet(us(0), Segment::new(1501, 0));
    path.on_packet(us(0), Segment::new(1401, 1));
    path.on_packet(us(0), Segment::new(1400, 2));
    let fates: Vec<_> = drain(&mut path).iter().map(|d| (d.segment.handle, d.at, d.fate)).collect();
    assert_eq!(
        fates,
        [
            (0, us(0), Fate::TooBig { mtu: 1500, hop: 0 }),
            (1, us(5_000), Fate::TooBig { mtu: 1400, hop: 1 }),
            (2, us(10_000), Fate::Delivered)
        ]
    );
}

#[test]
fn a_black_hole_says_nothing() {
    let mtu = Some(MtuSpec { bytes: 1400, oversize: OversizeVerdict::Silent });
    let mut path = one_way(&[HopSpec { mtu, ..HopSpec::default() }]);
    path.on_packet(us(0), Segment::new(1401, 0));
    assert!(drain(&mut path).is_empty());
    assert_eq!(only_hop(&path).black_holed, 1);
}

#[test]
fn a_lost_packet_has_used_the_link() {
    let mut path = one_way(&[HopSpec { loss: Some(LossSpec::Bernoulli(1.0)), ..link(12 * MBIT, 1) }]);
    for i in 0..3 {
        path.on_packet(us(0), Segment::new(1500, i));
    }
    assert!(drain(&mut path).is_empty());
    let stats = only_hop(&path);
    assert_eq!((stats.lost, stats.queue.dropped_full), (2, 1));
}

#[test]
fn a_duplicate_follows_its_original() {
    let mut path = one_way(&[HopSpec { duplicate: 1.0, delay: ms(1), ..HopSpec::default() }]);
    path.on_packet(us(0), Segment::new(100, 7));
    path.on_packet(us(10), Segment::new(100, 8));
    assert_eq!(order(&drain(&mut path)), [7, 7, 8, 8]);
}

/// Twenty packets, 1 ms apart, over a wire of 10 ms that takes about one in five out of order.
fn reordered(by: ReorderBy) -> (Vec<u32>, HopStats) {
    let reorder = Some(ReorderSpec { probability: 0.2, by });
    let mut path = one_way(&[HopSpec { delay: ms(10), reorder, ..HopSpec::default() }]);
    for i in 0..20 {
        path.on_packet(us(u64::from(i) * 1_000), Segment::new(1500, i));
    }
    let order = order(&drain(&mut path));
    (order, only_hop(&path))
}

/// How many places each packet that was overtaken, or that overtook, moved.
fn moves(order: &[u32]) -> Vec<i64> {
    let place = |handle: u32| order.iter().position(|&found| found == handle).expect("nothing is lost here") as i64;
    (0..20).map(|handle| place(handle) - i64::from(handle)).collect()
}

#[test]
fn a_packet_held_for_a_gap_comes_after_exactly_so_many() {
    let (order, stats) = reordered(ReorderBy::Gap { packets: 3, hold: ms(100) });
    assert!(stats.reordered > 0, "{order:?}");
    // Those near the end may run out of followers and wait for their hold instead.
    for (place, handle) in order.iter().enumerate().filter(|(_, handle)| **handle < 15) {
        let overtakers = order[..place].iter().filter(|other| *other > handle).count();
        assert!(overtakers == 0 || overtakers == 3, "{handle} in {order:?}");
    }
    assert!(!order.is_sorted());
}

#[test]
fn a_gap_that_is_never_filled_ends_with_its_hold() {
    let reorder = Some(ReorderSpec { probability: 1.0, by: ReorderBy::Gap { packets: 3, hold: ms(50) } });
    let mut path = one_way(&[HopSpec { delay: ms(10), reorder, ..HopSpec::default() }]);
    path.on_packet(us(0), Segment::new(1500, 0));
    assert_eq!(drain(&mut path).first().map(|departure| departure.at), Some(us(60_000)));
}

#[test]
fn later_lets_others_pass_and_earlier_passes_them() {
    let (order, stats) = reordered(ReorderBy::Later(Micros::new(2_500)));
    assert!(stats.reordered > 0 && moves(&order).contains(&2), "{order:?}");
    let (order, stats) = reordered(ReorderBy::Earlier(Micros::new(2_500)));
    assert!(stats.reordered > 0 && moves(&order).contains(&-2), "{order:?}");
}

#[test]
fn jitter_stays_in_its_bounds_and_in_order() {
    let jitter = |keep_order| JitterSpec { spread: Spread::Uniform(ms(5)), keep_order };
    let run = |keep_order| {
        let mut path = one_way(&[HopSpec { delay: ms(10), jitter: Some(jitter(keep_order)), ..HopSpec::default() }]);
        for i in 0..1_000 {
            path.on_packet(us(u64::from(i) * 100), Segment::new(1500, i));
        }
        drain(&mut path)
    };
    let kept = run(true);
    assert!(order(&kept).is_sorted());
    let free = run(false);
    assert!(!order(&free).is_sorted());
    for departures in [kept, free] {
        for departure in departures {
            let spent = departure.at.since(us(u64::from(departure.segment.handle) * 100)).as_micros();
            assert!((5_000..=15_000).contains(&spent), "{spent} us");
        }
    }
}

#[test]
fn normal_jitter_has_its_mean_and_deviation() {
    let jitter = Some(JitterSpec { spread: Spread::Normal(ms(2)), keep_order: false });
    let mut path = one_way(&[HopSpec { delay: ms(20), jitter, ..HopSpec::default() }]);
    let n = 20_000_u32;
    for i in 0..n {
        path.on_packet(us(u64::from(i)), Segment::new(1500, i));
    }
    let spent: Vec<f64> = drain(&mut path)
        .iter()
        .map(|departure| departure.at.since(us(u64::from(departure.segment.handle))).as_secs_f64() * 1e3)
        .collect();
    let mean = spent.iter().sum::<f64>() / f64::from(n);
    let variance = spent.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / f64::from(n);
    // Five standard errors: 2 / sqrt(20,000) and 2 / sqrt(40,000) ms.
    assert!((mean - 20.0).abs() < 0.071, "{mean} ms");
    assert!((variance.sqrt() - 2.0).abs() < 0.05, "{} ms", variance.sqrt());
}

#[test]
fn adding_a_random_element_leaves_the_draws_of_the_others() {
    let loss = Some(LossSpec::Bernoulli(0.3));
    let survivors = |spec: HopSpec| {
        let mut path = one_way(&[spec]);
        for i in 0..200 {
            path.on_packet(us(u64::from(i) * 1_000), Segment::new(1500, i));
        }
        let mut order = order(&drain(&mut path));
        order.sort_unstable();
        order
    };
    let plain = survivors(HopSpec { loss, ..HopSpec::default() });
    let jitter = Some(JitterSpec { spread: Spread::Uniform(ms(1)), keep_order: false });
    assert_eq!(survivors(HopSpec { loss, jitter, delay: ms(5), ..HopSpec::default() }), plain);
    assert!(plain.len() > 100 && plain.len() < 180);
}

#[test]
fn codel_marks_on_a_whole_path() {
    let discipline = Discipline::CoDel(CoDelSpec { ecn: true, ..CoDelSpec::default() });
    let queue = QueueSpec { size: QueueSize::Packets(1_000), discipline };
    let mut path = one_way(&[HopSpec { queue, ..link(12 * MBIT, 1) }]);
    // 1.25 of the rate: the queue stands after 100 ms.
    for i in 0..1_000 {
        path.on_packet(us(u64::from(i) * 800), Segment { ecn: Ecn::Ect0, ..Segment::new(1500, i) });
    }
    let marked = drain(&mut path).iter().filter(|departure| departure.segment.ecn == Ecn::Ce).count() as u64;
    let stats = only_hop(&path);
    assert!(marked > 3, "{stats:?}");
    assert_eq!((stats.queue.marked, stats.queue.dropped_codel), (marked, 0));
}

#[test]
fn a_clock_that_steps_back_upsets_nothing() {
    let mut path = one_way(&[HopSpec { delay: ms(1), ..HopSpec::default() }]);
    path.on_packet(us(500), Segment::new(1500, 0));
    path.on_packet(us(100), Segment::new(1500, 1));
    assert_eq!(order(&drain(&mut path)), [0, 1]);
}
