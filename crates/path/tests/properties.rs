//! What holds for every path and every traffic.

use std::time::Duration;

use fullpipe_path::{
    AggregateSpec, CoDelSpec, Departure, Discipline, Ecn, Fate, HopSpec, JitterSpec, LossSpec, Machine, MtuSpec,
    OneWay, OversizeVerdict, PolicerSpec, QueueSize, QueueSpec, RedSpec, ReorderBy, ReorderSpec, Segment, Spread,
    ThinSpec,
};
use fullpipe_units::{Bytes, Instant, Micros, Rate};
use proptest::{option, prelude::*};

const MTU: u32 = 1500;

/// A packet of the traffic: how long after the one before, how large, whether it takes marks, and of what it is an
/// acknowledgement.
#[derive(Clone, Debug)]
struct Arrival {
    gap_ns: u64,
    len: u32,
    ecn: Ecn,
    ack_of: Option<u32>,
}

fn arrivals() -> impl Strategy<Value = Vec<Arrival>> {
    let gap = prop_oneof![Just(0), 0_u64..100_000, 0_u64..50_000_000];
    let len = prop_oneof![Just(MTU), 20_u32..=MTU];
    let ecn = prop_oneof![Just(Ecn::NotEct), Just(Ecn::Ect0)];
    let ack_of = option::of(Just(1));
    let arrival = (gap, len, ecn, ack_of).prop_map(|(gap_ns, len, ecn, ack_of)| Arrival { gap_ns, len, ecn, ack_of });
    prop::collection::vec(arrival, 1..300)
}

fn discipline() -> impl Strategy<Value = Discipline> {
    prop_oneof![
        Just(Discipline::DropTail),
        any::<bool>().prop_map(|ecn| Discipline::Red(RedSpec { weight: 0.2, ecn, ..RedSpec::default() })),
        any::<bool>().prop_map(|ecn| Discipline::CoDel(CoDelSpec {
            target: Micros::new(500),
            interval: Micros::from_millis(5),
            ecn
        })),
    ]
}

fn size() -> impl Strategy<Value = QueueSize> {
    prop_oneof![
        (1_u32..100).prop_map(QueueSize::Packets),
        (1_500_u64..100_000).prop_map(|bytes| QueueSize::Bytes(Bytes::new(bytes))),
        (0.1_f64..3.0).prop_map(|multiple| QueueSize::Bdp { multiple, at_least: 2 }),
        (1_u64..50).prop_map(|ms| QueueSize::Time(Micros::from_millis(ms))),
    ]
}

fn loss() -> impl Strategy<Value = LossSpec> {
    prop_oneof![
        (0.0_f64..=1.0).prop_map(LossSpec::Bernoulli),
        (0.0_f64..=1.0, 0.01_f64..=1.0, 0.0_f64..=1.0, 0.0_f64..=1.0)
            .prop_map(|(p, r, good, bad)| LossSpec::GilbertElliott { p, r, good, bad }),
        (0_u64..100, 0_u64..100).prop_map(|(first, count)| LossSpec::Row { first, count }),
    ]
}

fn by() -> impl Strategy<Value = ReorderBy> {
    prop_oneof![
        (0_u64..20_000).prop_map(|us| ReorderBy::Later(Micros::new(us))),
        (0_u64..20_000).prop_map(|us| ReorderBy::Earlier(Micros::new(us))),
        (1_u32..10).prop_map(|packets| ReorderBy::Gap { packets, hold: Micros::from_millis(30) }),
    ]
}

/// A hop that keeps order: anything but reordering and free jitter.
fn orderly_hop() -> impl Strategy<Value = HopSpec> {
    let spread = prop_oneof![
        (0_u64..5_000).prop_map(|us| Spread::Uniform(Micros::new(us))),
        (0_u64..5_000).prop_map(|us| Spread::Normal(Micros::new(us))),
    ];
    let mtu = (68_u32..=MTU, any::<bool>()).prop_map(|(bytes, silent)| MtuSpec {
        bytes,
        oversize: if silent { OversizeVerdict::Silent } else { OversizeVerdict::TooBig },
    });
    (
        option::of(10_000_u64..10_000_000_000),
        0_u32..60,
        (size(), discipline()),
        0_u64..20_000,
        option::of(spread),
        option::of(loss()),
        prop_oneof![Just(0.0), 0.0_f64..=1.0],
        option::weighted(0.2, mtu),
        (option::weighted(0.2, bucket()), option::weighted(0.2, bucket())),
        (
            option::weighted(0.2, (1_u32..9, 0_u64..9_000)),
            option::weighted(0.2, (1_u32..9, 0_u64..9_000)),
            any::<bool>(),
        ),
    )
        .prop_map(
            |(rate, overhead, (size, discipline), delay, spread, loss, duplicate, mtu, (police, shape), gathers)| {
                HopSpec {
                    rate: rate.map(Rate::from_bps),
                    trace: rate
                        .filter(|_| gathers.2)
                        .map(|bps| format!("0 {bps}\n7ms 0\n9ms {bps}\n13ms end").parse().expect("a trace")),
                    thin_acks: gathers.0.map(|(every, us)| ThinSpec { every, hold: Micros::new(us) }),
                    aggregate: gathers.1.map(|(packets, us)| AggregateSpec { packets, hold: Micros::new(us) }),
                    overhead,
                    queue: QueueSpec { size, discipline },
                    delay: Micros::new(delay),
                    jitter: spread.map(|spread| JitterSpec { spread, keep_order: true }),
                    loss,
                    reorder: None,
                    duplicate,
                    mtu,
                    police,
                    shape,
                }
            },
        )
}

fn bucket() -> impl Strategy<Value = PolicerSpec> {
    (10_000_u64..100_000_000, 1_500_u64..100_000)
        .prop_map(|(bps, burst)| PolicerSpec { rate: Rate::from_bps(bps), burst: Bytes::new(burst) })
}

fn any_hop() -> impl Strategy<Value = HopSpec> {
    (orderly_hop(), any::<bool>(), option::of((0.0_f64..=1.0, by()))).prop_map(|(mut hop, keep_order, reorder)| {
        hop.jitter = hop.jitter.map(|jitter| JitterSpec { keep_order, ..jitter });
        hop.reorder = reorder.map(|(probability, by)| ReorderSpec { probability, by });
        hop
    })
}

fn machine(hops: &[HopSpec], seed: u64) -> OneWay<usize> {
    OneWay::new(hops, Micros::from_millis(40), MTU, seed)
}

/// Sends `traffic` and polls whenever the machine asks, but only at multiples of `late` nanoseconds.
/// After the last arrival, runs until the machine is empty.
fn run(machine: &mut OneWay<usize>, traffic: &[Arrival], late: u64) -> Vec<Departure<usize>> {
    let mut out = Vec::new();
    let mut now = 0;
    for (handle, arrival) in traffic.iter().enumerate() {
        now += arrival.gap_ns;
        poll_until(machine, Instant::from_nanos(now), late, &mut out);
        machine.on_packet(
            Instant::from_nanos(now),
            Segment { ecn: arrival.ecn, ack_of: arrival.ack_of, ..Segment::new(arrival.len, handle) },
        );
    }
    poll_until(machine, Instant::FAR_FUTURE, late, &mut out);
    out
}

fn poll_until(machine: &mut OneWay<usize>, end: Instant, late: u64, out: &mut Vec<Departure<usize>>) {
    while let Some(next) = machine.next_timeout() {
        let wake = Instant::from_nanos(next.as_nanos().next_multiple_of(late.max(1)));
        if wake > end {
            return;
        }
        out.extend(std::iter::from_fn(|| machine.poll_transmit(wake)));
    }
}

proptest! {
    #[test]
    fn every_segment_is_out_or_dropped_or_still_inside(
        hops in prop::collection::vec(any_hop(), 0..4), traffic in arrivals(), seed: u64, stop in 0_usize..300,
    ) {
        let mut path = machine(&hops, seed);
        // Stopped in the middle, with packets inside.
        let (mut now, mut out) = (0, 0);
        for (handle, arrival) in traffic.iter().enumerate().take(stop) {
            now += arrival.gap_ns;
            path.on_packet(Instant::from_nanos(now), Segment { ecn: arrival.ecn, ack_of: arrival.ack_of, ..Segment::new(arrival.len, handle) });
            out += std::iter::from_fn(|| path.poll_transmit(Instant::from_nanos(now)))
                .filter(|departure| departure.fate == Fate::Delivered)
                .count() as u64;
        }
        let sent = stop.min(traffic.len()) as u64;
        let mut arriving = sent;
        for (hop, stats) in path.stats().enumerate() {
            prop_assert_eq!(stats.arrived, arriving, "hop {}", hop);
            prop_assert_eq!(stats.arrived + stats.duplicated, stats.delivered + stats.dropped() + stats.inside);
            arriving = stats.delivered;
        }
        if hops.is_empty() {
            prop_assert_eq!(out, sent);
        } else {
            prop_assert_eq!(out, arriving);
        }
    }

    #[test]
    fn an_emptied_path_is_empty_and_asks_for_nothing(
        hops in prop::collection::vec(any_hop(), 1..4), traffic in arrivals(), seed: u64,
    ) {
        let mut path = machine(&hops, seed);
        run(&mut path, &traffic, 1);
        prop_assert_eq!(path.next_timeout(), None);
        prop_assert!(path.stats().all(|stats| stats.inside == 0));
    }

    #[test]
    fn order_is_kept_unless_reordering_is_asked_for(
        hops in prop::collection::vec(orderly_hop(), 1..4), traffic in arrivals(), seed: u64,
    ) {
        let mut path = machine(&hops, seed);
        let delivered: Vec<usize> = run(&mut path, &traffic, 1)
            .iter()
            .filter(|departure| departure.fate == Fate::Delivered)
            .map(|departure| departure.segment.handle)
            .collect();
        prop_assert!(delivered.is_sorted(), "{:?}", delivered);
    }

    #[test]
    fn planned_times_never_run_backwards(
        hops in prop::collection::vec(any_hop(), 1..4), traffic in arrivals(), seed: u64,
    ) {
        let mut path = machine(&hops, seed);
        let times: Vec<_> = run(&mut path, &traffic, 1)
            .iter()
            .filter(|departure| departure.fate == Fate::Delivered)
            .map(|departure| departure.at)
            .collect();
        prop_assert!(times.is_sorted());
    }

    #[test]
    fn a_driver_that_is_late_gets_the_same_departures(
        hops in prop::collection::vec(any_hop(), 1..4), traffic in arrivals(), seed: u64, late in 2_u64..20_000_000,
    ) {
        let mut exact = run(&mut machine(&hops, seed), &traffic, 1);
        let mut tardy = run(&mut machine(&hops, seed), &traffic, late);
        // Refusals and deliveries of one moment may be polled in either order.
        let key = |departure: &Departure<usize>| (departure.at, departure.segment.handle, departure.fate == Fate::Delivered);
        exact.sort_by_key(key);
        tardy.sort_by_key(key);
        prop_assert_eq!(exact, tardy);
    }

    #[test]
    fn a_rate_is_never_exceeded_over_any_window(
        bps in 10_000_u64..10_000_000_000, traffic in arrivals(), size in size(), discipline in discipline(),
    ) {
        let queue = QueueSpec { size, discipline };
        let hop = HopSpec { rate: Some(Rate::from_bps(bps)), queue, ..HopSpec::default() };
        let out = run(&mut machine(&[hop], 0), &traffic, 1);
        // Each packet's last bit leaves at its time, so between two of them go all bits but the first packet's. The
        // worst windows begin and end with a departure; a nanosecond is the resolution of a time.
        for from in 0..out.len() {
            let mut bits = 0_u128;
            for departure in &out[from + 1..] {
                bits += u128::from(departure.segment.len) * 8;
                let span = departure.at.since(out[from].at) + Duration::from_nanos(1);
                prop_assert!(bits * 1_000_000_000 <= span.as_nanos() * u128::from(bps));
            }
        }
    }

    #[test]
    fn a_link_is_never_idle_while_something_waits(bps in 100_000_u64..1_000_000_000, traffic in arrivals()) {
        let queue = QueueSpec { size: QueueSize::Packets(1_000), discipline: Discipline::DropTail };
        let hop = HopSpec { rate: Some(Rate::from_bps(bps)), queue, ..HopSpec::default() };
        let out = run(&mut machine(&[hop], 0), &traffic, 1);
        prop_assert_eq!(out.len(), traffic.len());
        let (mut now, mut free) = (0_u64, 0_u128);
        // In units of 1 / bps nanoseconds, exactly.
        for (arrival, departure) in traffic.iter().zip(&out) {
            now += arrival.gap_ns;
            let start = free.max(u128::from(now) * u128::from(bps));
            free = start + u128::from(arrival.len) * 8 * 1_000_000_000;
            let exact = free / u128::from(bps);
            let planned = u128::from(departure.at.as_nanos());
            // Every busy period starts on a whole nanosecond, so that each may be one short.
            prop_assert!(planned <= exact && exact - planned <= 300, "{planned} instead of {exact}");
            free = free.min((planned + 1) * u128::from(bps));
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_run(
        hops in prop::collection::vec(any_hop(), 1..4), traffic in arrivals(), seed: u64,
    ) {
        prop_assert_eq!(run(&mut machine(&hops, seed), &traffic, 1), run(&mut machine(&hops, seed), &traffic, 1));
    }
}
