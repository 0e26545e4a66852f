//! What is measured over made paths of known rate, round trip and MTU.

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
use fullpipe_measure::{Capacity, Client, Direction, ExchangeSpec, Length, Server, Target, TestSpec};
use fullpipe_path::{HopSpec, IpVersions, MtuSpec, OversizeVerdict, PathHop, PathSpec, QueueSize, QueueSpec, Side};
use fullpipe_units::{Micros, Rate};

use crate::support::{quick_server, short};

/// One lab at a time: they disturb each other's timing. `None`, and the reason printed, where there can be none.
fn turn(test: &str) -> Option<MutexGuard<'static, ()>> {
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
        let path = PathSpec { mtu: 1_500, ip, hops: vec![PathHop { name: None, ab: hop.clone(), ba: hop }] };
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
fn eventually(test: &str, mut run: impl FnMut() -> Result<(), String>) {
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
            for found in &capacity.directions {
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
        // Somewhere between half full and full, on the way up and on the way down.
        for loaded in &result.loaded {
            near("under load", loaded.latency.unwrap().p50_us, 120_000.0, 60_000.0)?;
        }
        Ok(())
    });
}
