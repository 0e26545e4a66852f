//! One transfer each: both roles, both directions, both IP versions, over paths that lose, reorder and duplicate.

use std::{
    io::{Read, Write},
    net::{Shutdown, TcpStream},
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    thread,
    time::Instant,
};

use fullpipe_path::{HopSpec, LossSpec, QueueSize, QueueSpec, ReorderBy, ReorderSpec};
use fullpipe_stack::Connection;
use fullpipe_tcp::profile::{Budgets, Profile};
use fullpipe_units::{Micros, Rate};
use sha2::{Digest, Sha256};

use crate::world::{Between, LIMIT, World, cubic, may_run};

/// What the path does to packets.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Harm {
    Clean,
    Loss(f64),
    Reorder,
    Duplicate,
}

/// Who does what.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Part {
    /// The engine opens actively.
    connects: bool,
    /// The engine sends the data.
    sends: bool,
    v6: bool,
}

#[derive(Clone, Copy, Debug)]
struct Case {
    harm: Harm,
    rtt_ms: u64,
    mtu: u16,
    part: Part,
    bytes: usize,
    /// All four budgets.
    budget: u16,
    profile: &'static Profile,
    offload: bool,
}

const CALLER: Part = Part { connects: true, sends: true, v6: false };
const FETCHER: Part = Part { connects: true, sends: false, v6: false };
const SINK: Part = Part { connects: false, sends: false, v6: false };
const SOURCE: Part = Part { connects: false, sends: true, v6: false };

const fn over6(part: Part) -> Part {
    Part { v6: true, ..part }
}

const BASE: Case = Case {
    harm: Harm::Clean,
    rtt_ms: 20,
    mtu: 1500,
    part: CALLER,
    bytes: 2_000_000,
    budget: 43,
    profile: &Profile::DEFAULT,
    offload: false,
};

/// Chosen so that each value of each column meets each role and direction once, and the hard ones each other.
const CHOSEN: &[Case] = &[
    Case { rtt_ms: 5, offload: true, ..BASE },
    Case { rtt_ms: 5, part: FETCHER, offload: true, ..BASE },
    Case { rtt_ms: 5, part: over6(SINK), offload: true, ..BASE },
    Case { rtt_ms: 5, part: over6(SOURCE), offload: true, ..BASE },
    Case { harm: Harm::Loss(0.001), part: SOURCE, ..BASE },
    Case { harm: Harm::Loss(0.001), part: over6(FETCHER), offload: true, ..BASE },
    Case { harm: Harm::Loss(0.01), part: CALLER, ..BASE },
    Case { harm: Harm::Loss(0.01), part: SINK, offload: true, ..BASE },
    Case { harm: Harm::Loss(0.01), part: CALLER, profile: &Profile::NETBURNER, bytes: 300_000, ..BASE },
    Case { harm: Harm::Loss(0.01), part: SINK, profile: &Profile::NETBURNER, budget: 5, bytes: 300_000, ..BASE },
    Case { harm: Harm::Loss(0.05), part: over6(CALLER), bytes: 500_000, ..BASE },
    Case { harm: Harm::Loss(0.05), part: FETCHER, bytes: 500_000, offload: true, ..BASE },
    Case { harm: Harm::Reorder, part: CALLER, ..BASE },
    Case { harm: Harm::Reorder, part: over6(SINK), ..BASE },
    Case { harm: Harm::Reorder, part: SOURCE, profile: &Profile::LINUX, offload: true, ..BASE },
    Case { harm: Harm::Duplicate, part: over6(CALLER), ..BASE },
    Case { harm: Harm::Duplicate, part: FETCHER, profile: &Profile::FREEBSD, ..BASE },
    Case { rtt_ms: 600, part: CALLER, bytes: 600_000, ..BASE },
    Case { rtt_ms: 600, part: over6(SINK), bytes: 600_000, budget: 100, ..BASE },
    Case { rtt_ms: 600, harm: Harm::Loss(0.01), part: FETCHER, bytes: 300_000, ..BASE },
    Case { rtt_ms: 150, harm: Harm::Loss(0.01), part: SOURCE, bytes: 500_000, ..BASE },
    Case { mtu: 576, part: CALLER, ..BASE },
    Case { mtu: 576, part: SINK, harm: Harm::Loss(0.01), bytes: 500_000, offload: true, ..BASE },
    Case { mtu: 1280, part: over6(FETCHER), harm: Harm::Reorder, ..BASE },
    Case { mtu: 4088, part: over6(CALLER), harm: Harm::Loss(0.01), ..BASE },
    Case { mtu: 9014, part: CALLER, harm: Harm::Loss(0.001), ..BASE },
    Case { mtu: 9014, part: over6(SINK), offload: true, ..BASE },
    Case { mtu: 9014, part: FETCHER, harm: Harm::Duplicate, ..BASE },
    Case { budget: 5, part: CALLER, bytes: 500_000, ..BASE },
    Case { budget: 5, part: FETCHER, bytes: 500_000, ..BASE },
    Case { budget: 1, part: CALLER, bytes: 40_000, ..BASE },
    Case { budget: 1, part: SINK, bytes: 40_000, ..BASE },
];

#[test]
fn content_arrives_whole_between_the_engine_and_this_kernel() {
    if may_run("content_arrives_whole_between_the_engine_and_this_kernel") {
        run_all(CHOSEN);
    }
}

/// The whole product: 288 transfers, some three minutes.
#[test]
#[ignore = "a soak: every harm with every round-trip time, MTU, role and direction"]
fn content_arrives_whole_in_every_combination() {
    if !may_run("content_arrives_whole_in_every_combination") {
        return;
    }
    let mut all = Vec::new();
    for harm in [Harm::Clean, Harm::Loss(0.001), Harm::Loss(0.01), Harm::Loss(0.05), Harm::Reorder, Harm::Duplicate] {
        for rtt_ms in [5, 80, 600] {
            for mtu in [576, 1280, 1500, 9014] {
                for part in [CALLER, FETCHER, SINK, SOURCE] {
                    let v6 = mtu > 576 && all.len() % 2 == 1;
                    let part = Part { v6, ..part };
                    let bytes = if rtt_ms == 600 { 300_000 } else { 1_000_000 };
                    all.push(Case { harm, rtt_ms, mtu, part, bytes, offload: all.len() % 3 == 0, ..BASE });
                }
            }
        }
    }
    run_all(&all);
}

/// Several at a time: most of a transfer is waiting.
fn run_all(cases: &[Case]) {
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Relaxed)) {
                    run(case, case.bytes as u64 ^ case.rtt_ms);
                }
            });
        }
    });
}

fn run(case: &Case, seed: u64) {
    let start = Instant::now();
    let Case { harm, rtt_ms, mtu, part, bytes, budget, profile, offload } = case;
    let profile = profile.name;
    let name = format!(
        "seed {seed}: {bytes} B, {harm:?}, {rtt_ms} ms, MTU {mtu}, {part:?}, budget {budget}, {profile}, offload {offload}"
    );
    println!("{name}");
    let between = Between { hop: hop(case), mtu: case.mtu, seed, offload: case.offload };
    let world = World::new(&between, |settings| settings.profile = *case.profile);
    let mut options = world.options();
    options.budgets = Budgets::all(case.budget);
    let Part { connects, sends, v6 } = case.part;
    let expected = digest(&content(case.bytes));
    let (mut engine, kernel) = if connects {
        let listener = world.kernel_listens(v6, 5001);
        let engine = world.engine.connect_with(world.kernel(v6, 5001), options, LIMIT).unwrap();
        (engine, listener.accept().unwrap().0)
    } else {
        let listener = world.engine.listen(5001, 4, options).unwrap();
        let kernel = world.kernel_connects(v6, 5001).unwrap();
        (listener.accept(Some(LIMIT)).unwrap().unwrap(), kernel)
    };
    cubic(&kernel);
    engine.set_timeout(Some(LIMIT));
    let got = if sends {
        engine_sends(&mut engine, kernel, case.bytes)
    } else {
        kernel_sends(&mut engine, kernel, case.bytes)
    };
    assert_eq!(got, expected, "{name}");
    let counts = engine.counts();
    engine.close();
    assert!(world.engine.settle(LIMIT), "{name}");
    assert!(world.pool_is_whole(), "{name}");
    let sent = counts.map(|counts| (counts.segments_sent, counts.retransmits, counts.timeouts));
    println!("  {:.1} s {name} segments, retransmits, timeouts {sent:?}", start.elapsed().as_secs_f64());
}

fn engine_sends(engine: &mut Connection, mut kernel: TcpStream, bytes: usize) -> Vec<u8> {
    let reader = thread::spawn(move || {
        let mut all = Vec::new();
        kernel.read_to_end(&mut all).unwrap();
        digest(&all)
    });
    engine.write_all(&content(bytes)).unwrap();
    engine.shutdown_write().unwrap();
    let digest = reader.join().unwrap();
    assert_eq!(engine.read(&mut [0]).unwrap(), 0);
    digest
}

fn kernel_sends(engine: &mut Connection, mut kernel: TcpStream, bytes: usize) -> Vec<u8> {
    let writer = thread::spawn(move || {
        kernel.write_all(&content(bytes)).unwrap();
        kernel.shutdown(Shutdown::Write).unwrap();
        kernel
    });
    let mut all = Vec::new();
    engine.read_to_end(&mut all).unwrap();
    drop(writer.join().unwrap());
    digest(&all)
}

fn hop(case: &Case) -> HopSpec {
    let queue = QueueSpec { size: QueueSize::Bdp { multiple: 2.0, at_least: 64 }, ..QueueSpec::default() };
    let mut hop = HopSpec {
        rate: Some(Rate::from_bps(200_000_000)),
        delay: Micros::new(case.rtt_ms * 500),
        queue,
        ..HopSpec::default()
    };
    match case.harm {
        Harm::Clean => {}
        Harm::Loss(probability) => hop.loss = Some(LossSpec::Bernoulli(probability)),
        Harm::Reorder => {
            hop.reorder = Some(ReorderSpec { probability: 0.02, by: ReorderBy::Later(Micros::from_millis(4)) });
        }
        Harm::Duplicate => hop.duplicate = 0.02,
    }
    hop
}

/// Bytes that repeat nowhere: a segment in the wrong place shows.
fn content(bytes: usize) -> Vec<u8> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    (0..bytes)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as u8
        })
        .collect()
}

fn digest(bytes: &[u8]) -> Vec<u8> {
    Sha256::digest(bytes).to_vec()
}
