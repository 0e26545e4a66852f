//! What is measured over emulated paths of known rate, round trip and MTU.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use fullpipe_lab::{Lab, LabOptions, preflight};
use fullpipe_measure::{
    Capacity, CapacityOfDirection, Client, Direction, ExchangeSpec, Length, Server, Target, TestDirection, TestSpec,
    UdpSpec,
};
use fullpipe_path::{
    HopSpec, IpVersions, LossSpec, MtuSpec, OversizeVerdict, PathHop, PathSpec, QueueSize, QueueSpec, Side,
};
use fullpipe_units::{Bytes, Micros, Rate};

use crate::support::{median, quick_server, short};

/// One lab at a time: they disturb each other's timing. `None`, and the reason printed, where there can be none.
pub(crate) fn turn(test: &str) -> Option<MutexGuard<'static, ()>> {
    static TURN: Mutex<()> = Mutex::new(());
    if let Err(error) = preflight() {
        println!("skipped {test}: {error}");
        return None;
    }
    if !rustix::process::geteuid().is_root() {
        println!("skipped {test}: a test can't enter a user namespace, for its process has threads already");
        return None;
    }
    Some(TURN.lock().unwrap_or_else(PoisonError::into_inner))
}

/// A path with a server of ours at its far end.
struct Made {
    stop: Arc<AtomicBool>,
    server: Option<JoinHandle<()>>,
    target: Target,
    lab: Lab,
}

impl Made {
    fn new(hop: HopSpec, ip: IpVersions) -> Self {
        Self::with_mtu(1_500, hop, ip)
    }

    fn with_mtu(mtu: u32, hop: HopSpec, ip: IpVersions) -> Self {
        let path = PathSpec { mtu, ip, hops: vec![PathHop { name: None, ab: hop.clone(), ba: hop }] };
        let lab = Lab::join(&path, 7, LabOptions::default()).unwrap();
        let address = SocketAddr::new(lab.host(Side::B).address(), 5201);
        let bound = lab.host(Side::B).run(|| Server::bind(address, quick_server(), None).unwrap()).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let server = lab.host(Side::B).spawn("server", move || bound.run(&seen).unwrap()).unwrap();
        Self { stop, server: Some(server), target: address.to_string().parse().unwrap(), lab }
    }

    fn measure<R: Send>(&self, measure: impl FnOnce(&mut Client) -> R + Send) -> R {
        let here = || {
            let mut client = Client::connect(&self.target).unwrap();
            let result = measure(&mut client);
            client.bye();
            result
        };
        self.lab.host(Side::A).run(here).unwrap()
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(server) = self.server.take() {
            drop(server.join());
        }
    }
}

fn link(rate_bps: u64, one_way: Micros, queue: Micros) -> HopSpec {
    let queue = QueueSpec { size: QueueSize::Time(queue), ..QueueSpec::default() };
    HopSpec { rate: Some(Rate::from_bps(rate_bps)), delay: one_way, queue, ..HopSpec::default() }
}

/// A machine that is busy with other things may spoil a run: then it is run again, five times at the most.
pub(crate) fn eventually(test: &str, mut run: impl FnMut() -> Result<(), String>) {
    let mut last = String::new();
    for _ in 0..5 {
        match run() {
            Ok(()) => return,
            Err(problem) => last = problem,
        }
        println!("{test}: again, {last}");
    }
    panic!("{test}: {last}");
}

fn near(what: &str, got: f64, want: f64, allowed: f64) -> Result<(), String> {
    if (got - want).abs() <= allowed { Ok(()) } else { Err(format!("{what}: {got}, but the path has {want}")) }
}

#[test]
fn the_rate_is_that_of_the_path() {
    let Some(_turn) = turn("the_rate_is_that_of_the_path") else { return };
    for (rate, one_way_ms) in [(10_000_000u64, 20), (100_000_000, 5)] {
        let made = Made::new(link(rate, Micros::from_millis(one_way_ms), Micros::from_millis(80)), IpVersions::V4);
        eventually("the_rate_is_that_of_the_path", || {
            for direction in [TestDirection::Up, TestDirection::Down] {
                let (length, omit) = (Length::Time(Duration::from_secs(3)), Duration::from_secs(1));
                let spec = TestSpec { direction, length, omit, ..short() };
                let measured = made.measure(|client| client.run(&spec, &AtomicBool::new(false), &mut |_| ()).unwrap());
                let steady = measured.directions[0].steady_bps.map_or(0.0, |rate| rate.bps() as f64);
                // The link counts IP packets of 1,500 B, of which 1,448 B are payload (timestamps take 12 B).
                let payload = rate as f64 * 1_448.0 / 1_500.0;
                near("the payload rate", steady, payload, payload * 0.02)?;
            }
            Ok(())
        });
    }
}

#[test]
fn the_loss_is_that_of_the_path() {
    let Some(_turn) = turn("the_loss_is_that_of_the_path") else { return };
    let loss = 0.03;
    let hop = HopSpec { delay: Micros::from_millis(5), loss: Some(LossSpec::Bernoulli(loss)), ..HopSpec::default() };
    let made = Made::new(hop, IpVersions::V4);
    eventually("the_loss_is_that_of_the_path", || {
        for direction in [TestDirection::Up, TestDirection::Down] {
            let spec = TestSpec {
                direction,
                udp: Some(UdpSpec { counters_64bit: false }),
                block: Bytes::new(1_000),
                pace: Some(Rate::from_bps(8_000_000)),
                length: Length::Time(Duration::from_secs(3)),
                ..short()
            };
            let measured = made.measure(|client| client.run(&spec, &AtomicBool::new(false), &mut |_| ()).unwrap());
            let datagrams = measured.directions[0].datagrams.unwrap();
            println!("{direction:?}: {datagrams}");
            // Of n datagrams with that probability each, 99.9 % of all runs are within 3.3 standard deviations; those that
            // are still on their way at the end count as lost, which are 5 ms of 8 Mbit/s.
            let sent = datagrams.packets as f64;
            let allowed = 3.3 * (sent * loss * (1.0 - loss)).sqrt() + 5.0;
            near("datagrams lost", datagrams.lost as f64, sent * loss, allowed)?;
            near("datagrams sent", sent, 3_000.0, 300.0)?;
        }
        Ok(())
    });
}

#[test]
fn the_idle_round_trip_is_that_of_the_path() {
    let Some(_turn) = turn("the_idle_round_trip_is_that_of_the_path") else { return };
    let made = Made::new(HopSpec { delay: Micros::from_millis(20), ..HopSpec::default() }, IpVersions::V4);
    eventually("the_idle_round_trip_is_that_of_the_path", || {
        let never = AtomicBool::new(false);
        let kept = ExchangeSpec { time: Duration::from_millis(900), ..ExchangeSpec::default() };
        let renewed = ExchangeSpec { connect: true, ..kept };
        let [kept, renewed] =
            [kept, renewed].map(|spec| made.measure(|client| client.exchange(&spec, &never, &mut |_| ()).unwrap()));
        // 100 us + 1 %.
        near("a request", kept.latency.unwrap().min_us, 40_000.0, 500.0)?;
        near("a new connection", renewed.connecting.unwrap().min_us, 40_000.0, 500.0)
    });
}

#[test]
fn the_available_rate_is_that_of_the_path() {
    let Some(_turn) = turn("the_available_rate_is_that_of_the_path") else { return };
    for rate in [10_000_000u64, 80_000_000] {
        let made = Made::new(link(rate, Micros::from_millis(5), Micros::from_millis(100)), IpVersions::V4);
        eventually("the_available_rate_is_that_of_the_path", || {
            let never = AtomicBool::new(false);
            let both = [Direction::Up, Direction::Down];
            let capacity: Capacity = made.measure(|client| client.capacity(&both, &never, &mut |_, _| ()).unwrap());
            println!("{rate}: {capacity:?}");
            for CapacityOfDirection { found, .. } in &capacity.directions {
                let bps = |rate: Option<Rate>| rate.map_or(0.0, |rate| rate.bps() as f64);
                let rate = rate as f64;
                near("the rate", bps(found.available_bps), rate, rate / 10.0)?;
                near("its lower end", bps(found.low_bps), rate, rate / 5.0)?;
                // A busy machine can't always send faster than 80 Mbit/s in time: then the answer is "at least".
                if found.high_bps.is_some() || rate < 20e6 {
                    near("its upper end", bps(found.high_bps), rate, rate / 5.0)?;
                }
            }
            Ok(())
        });
    }
}

#[test]
fn the_path_mtu_is_exact_in_both_directions() {
    let Some(_turn) = turn("the_path_mtu_is_exact_in_both_directions") else { return };
    for (mtu, verdict) in [(1_400, OversizeVerdict::TooBig), (1_373, OversizeVerdict::Silent)] {
        let narrow = MtuSpec { bytes: mtu, oversize: verdict };
        let hop = HopSpec { delay: Micros::from_millis(2), mtu: Some(narrow), ..HopSpec::default() };
        let made = Made::new(hop, IpVersions::V4);
        let report = made.measure(|client| client.probe_mtu().unwrap());
        for found in [report.up, report.down] {
            assert_eq!((found.mtu, found.black_hole), (Some(mtu), verdict == OversizeVerdict::Silent), "{report:?}");
        }
        let views = made.measure(|client| client.tcp_mtu(&AtomicBool::new(false)).unwrap());
        assert_eq!(views.len(), 2);
        for view in views {
            let carried = view.bytes > Bytes::ZERO;
            match verdict {
                // The kernel heard of it from the probes already.
                OversizeVerdict::TooBig => {
                    // IPv4 and TCP headers, and timestamps.
                    assert_eq!((carried, view.path_mtu, view.mss), (true, Some(mtu), Some(mtu - 52)), "{view:?}");
                }
                // Linux does not find out by itself where net.ipv4.tcp_mtu_probing is 0, as it is usually.
                _ => assert_eq!((carried, view.path_mtu, view.mss), (false, Some(1_500), Some(1_448)), "{view:?}"),
            }
        }
    }
}

#[test]
fn the_largest_jumbo_packet_is_found() {
    let Some(_turn) = turn("the_largest_jumbo_packet_is_found") else { return };
    for (interface, narrow) in [(9_000, None), (9_014, Some(4_088))] {
        let mtu = narrow.map(|bytes| MtuSpec { bytes, oversize: OversizeVerdict::TooBig });
        let hop = HopSpec { delay: Micros::from_millis(1), mtu, ..HopSpec::default() };
        let made = Made::with_mtu(interface, hop, IpVersions::V4);
        let report = made.measure(|client| client.probe_mtu().unwrap());
        let expected = Some(narrow.unwrap_or(interface));
        assert_eq!((report.up.mtu, report.down.mtu), (expected, expected), "{report:?}");
    }
}

#[test]
fn a_queue_shows_as_latency_under_load() {
    let Some(_turn) = turn("a_queue_shows_as_latency_under_load") else { return };
    let made = Made::new(link(20_000_000, Micros::from_millis(5), Micros::from_millis(150)), IpVersions::V4);
    eventually("a_queue_shows_as_latency_under_load", || {
        let never = AtomicBool::new(false);
        let load = TestSpec { length: Length::Time(Duration::from_millis(2_000)), streams: 4, ..short() };
        let result = made.measure(|client| client.under_load(&load, &never, &mut |_, _| ()).unwrap());
        near("idle", result.idle.unwrap().min_us, 10_000.0, 200.0)?;
        // 60 s of 10 ms are 6,000; a mean also has the times at which the programs waited for a processor.
        near("idle round trips per minute", result.idle_per_minute.unwrap(), 4_600.0, 1_500.0)?;
        // Somewhere between half full and full, on the way up and on the way down.
        for loaded in &result.loaded {
            near("under load", loaded.latency.unwrap().p50_us, 120_000.0, 60_000.0)?;
            let full = 60e6 / 120_000.0;
            near("round trips per minute", loaded.per_minute.unwrap(), full, full)?;
        }
        Ok(())
    });
}

/// One run of each kind in turn: what it carried, its round trip under load, and what was retransmitted.
fn by_turns(made: &Made, spec: &TestSpec, rounds: usize) -> [Vec<[f64; 3]>; 2] {
    let never = AtomicBool::new(false);
    let mut found = [Vec::new(), Vec::new()];
    for _ in 0..rounds {
        for (copy, found) in [true, false].into_iter().zip(&mut found) {
            let spec = TestSpec { copy, ..spec.clone() };
            let measurement = made.measure(|client| client.run(&spec, &never, &mut |_| ()).unwrap());
            let up = &measurement.directions[0];
            let rtt = up.loaded_rtt.unwrap().p50_us.get() as f64;
            let segments = up.bytes.get() as f64 / 1_448.0;
            let again = up.retransmits.unwrap() as f64 / segments.max(1.0);
            found.push([up.rate_bps.unwrap().bps() as f64, rtt, again]);
        }
    }
    found
}

fn middle(runs: &[[f64; 3]], figure: usize) -> f64 {
    median(runs.iter().map(|run| run[figure]))
}

#[test]
fn a_receiver_that_discards_in_the_kernel_measures_what_one_that_reads_does() {
    const NAME: &str = "a_receiver_that_discards_in_the_kernel_measures_what_one_that_reads_does";
    let Some(_turn) = turn(NAME) else { return };
    let millis = Micros::from_millis;
    let time = Length::Time(millis(1_500).into());
    let usual = TestSpec { length: time, ..short() };
    let small = TestSpec { receive_buffer: Some(Bytes::new(16_384)), ..usual.clone() };
    // A queue that fills, one that overflows, and a window that holds the sender back.
    let cases = [
        ("full queue", link(20_000_000, millis(10), millis(60)), &usual, 0.10),
        // When a loss comes decides on much of a rate; a receiver that did harm would halve it every time.
        ("losses", link(20_000_000, millis(10), millis(6)), &usual, 0.35),
        ("16 KB window", link(20_000_000, millis(10), millis(60)), &small, 0.25),
    ];
    for (case, hop, spec, rate_allowed) in cases {
        let made = Made::new(hop, IpVersions::V4);
        eventually(NAME, || {
            let [reads, discards] = by_turns(&made, spec, 3);
            for (figure, name, allowed) in [(0, "rate", rate_allowed), (1, "round trip under load", 0.15)] {
                let ratio = middle(&discards, figure) / middle(&reads, figure);
                println!("{case}: {name} {ratio:.3} of that of a reader ({:.0})", middle(&reads, figure));
                near(&format!("{case}: {name}"), ratio, 1.0, allowed)?;
            }
            let [reads, discards] = [middle(&reads, 2), middle(&discards, 2)];
            println!(
                "{case}: {:.3} % of the segments retransmitted, {:.3} % with a reader",
                discards * 100.0,
                reads * 100.0
            );
            // Losses come in bursts at the end of slow start: one more or less is noise, four times as many are not.
            near(&format!("{case}: retransmitted"), discards, reads, reads * 0.75 + 0.002)
        });
    }
}
