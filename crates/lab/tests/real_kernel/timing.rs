//! Delay, rate and loss are those of the path.

use std::{
    fs,
    io::{Read, Write},
    net::{Shutdown, TcpStream},
    thread,
    time::{Duration, Instant},
};

use fullpipe_lab::{DEVICE, Lab, LabOptions, Priority, Side};
use fullpipe_path::{Direction, HopSpec, IpVersions, LossSpec, Scenario};
use fullpipe_units::{Bytes, Micros, Rate};

use super::{address_of, bounded, connect, eventually, lab, listen, path, rate, turn, udp};

#[test]
fn a_connection_takes_one_round_trip_in_ipv4_and_ipv6() {
    let Some(_turn) = turn("a_connection_takes_one_round_trip_in_ipv4_and_ipv6") else { return };
    let one_way = HopSpec { delay: Micros::from_millis(20), ..HopSpec::default() };
    let lab = lab(&path(one_way, IpVersions::Both));
    for v6 in [false, true] {
        let address = address_of(&lab, Side::B, v6);
        let _listener = listen(&lab, address);
        let connect_time = || {
            let start = Instant::now();
            drop(TcpStream::connect(address).unwrap());
            start.elapsed()
        };
        let best = lab.host(Side::A).run(|| (0..10).map(|_| connect_time()).min().unwrap()).unwrap();
        assert!(best >= Duration::from_millis(40), "faster than the path, v6 {v6}: {best:?}");
        // The shortest of ten: the lab's own error and the ends' wake-ups, but no moment of a busy machine.
        assert!(best < Duration::from_millis(43), "slower than the path, v6 {v6}: {best:?}");
    }
}

#[test]
fn a_transfer_over_10_mbit_gets_the_payload_rate() {
    let Some(_turn) = turn("a_transfer_over_10_mbit_gets_the_payload_rate") else { return };
    // A machine that is busy with other things may spoil a run, and the lab says so: then it is run again.
    let runs = (0..5).map(|_| {
        let lab = lab(&path(rate(10_000_000, Micros::from_millis(10)), IpVersions::V4));
        (bulk_rate(&lab), lab.valid())
    });
    let valid = runs.into_iter().find_map(|(rate, valid)| valid.is_ok().then_some(rate));
    let Some(rate) = valid else {
        println!("skipped a_transfer_over_10_mbit_gets_the_payload_rate: the machine was too busy in five runs");
        return;
    };
    // 1448 of each 1500 bytes.
    let expected = 10_000_000.0 * 1_448.0 / 1_500.0;
    let ratio = rate.bps() as f64 / expected;
    assert!((ratio - 1.0).abs() < 0.02, "{rate}: {ratio} of the payload rate");
}

/// The rate at which b reads, leaving the first second out, over at least two more.
fn bulk_rate(lab: &Lab) -> Rate {
    let address = address_of(lab, Side::B, false);
    let listener = listen(lab, address);
    let receiver = lab
        .host(Side::B)
        .spawn("receiver", move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut block = vec![0; 64 << 10];
            let accepted = Instant::now();
            while accepted.elapsed() < Duration::from_secs(1) {
                assert!(stream.read(&mut block).unwrap() > 0);
            }
            let (start, mut bytes) = (Instant::now(), 0);
            while start.elapsed() < Duration::from_millis(2_500) {
                bytes += stream.read(&mut block).unwrap() as u64;
            }
            Rate::from_bytes(Bytes::new(bytes), start.elapsed().into()).unwrap()
        })
        .unwrap();
    let mut stream = bounded(connect(lab, address));
    // It ends when the receiver hangs up.
    let block = vec![1; 64 << 10];
    while stream.write_all(&block).is_ok() {}
    stream.shutdown(Shutdown::Both).ok();
    receiver.join().unwrap()
}

#[test]
fn loss_is_counted_and_lies_in_its_binomial_interval() {
    let Some(_turn) = turn("loss_is_counted_and_lies_in_its_binomial_interval") else { return };
    const PACKETS: u32 = 20_000;
    const PROBABILITY: f64 = 0.02;
    let mut spec = path(HopSpec::default(), IpVersions::V4);
    spec.hops[0].ab.loss = Some(LossSpec::Bernoulli(PROBABILITY));
    let lab = lab(&spec);
    let (from, to) = (udp(&lab, Side::A, false), udp(&lab, Side::B, false));
    let address = address_of(&lab, Side::B, false);
    to.set_nonblocking(true).unwrap();
    let arrived = || std::iter::repeat_with(|| to.recv(&mut [0; 4])).take_while(Result::is_ok).count() as u64;
    let mut received = 0;
    // A batch fits into the receiver's buffer, and the next one is sent when this one is there: a busy kernel may still be at what the path has
    // handed over.
    for batch in (100..=PACKETS).step_by(100) {
        for _ in 0..100 {
            from.send_to(&[0; 4], address).unwrap();
        }
        let hop = || lab.path_stats(Direction::AToB).first().copied().unwrap_or_default();
        let is_through = || hop().delivered + hop().lost == u64::from(batch);
        assert!(eventually(is_through), "lost before the path: {:?}", lab.path_error());
        let is_there = || {
            received += arrived();
            received == hop().delivered
        };
        assert!(eventually(is_there), "lost behind the path: {:?}", lab.path_error());
    }
    let hop = lab.path_stats(Direction::AToB)[0];
    // 4.5 standard deviations: the draws are seeded, so that this holds always or never.
    let (mean, deviation) =
        (f64::from(PACKETS) * PROBABILITY, (f64::from(PACKETS) * PROBABILITY * (1.0 - PROBABILITY)).sqrt());
    assert!((hop.lost as f64 - mean).abs() < 4.5 * deviation, "{} lost", hop.lost);
}

/// The scheduling policy of the calling thread, as `proc_pid_stat(5)` has it in field 41: 0 for a normal one, 2 for SCHED_RR.
fn policy() -> String {
    let text = fs::read_to_string("/proc/thread-self/stat").unwrap();
    let (_, after_name) = text.rsplit_once(") ").unwrap();
    after_name.split(' ').nth(38).unwrap().to_owned()
}

#[test]
fn the_ends_of_a_scenario_do_not_wait_behind_other_programs() {
    let Some(_turn) = turn("the_ends_of_a_scenario_do_not_wait_behind_other_programs") else { return };
    let lab = Lab::start(&Scenario::named("wan-80ms").unwrap()).unwrap();
    if lab.priority() != Priority::RealTime {
        println!("skipped the_ends_of_a_scenario_do_not_wait_behind_other_programs: no right to real-time priority");
        return;
    }
    let host = lab.host(Side::B);
    assert_eq!(host.run(policy).unwrap(), "2");
    assert_eq!(host.run(|| thread::spawn(policy).join().unwrap()).unwrap(), "2");
    assert_eq!(host.spawn("server", policy).unwrap().join().unwrap(), "2");
    // A user's own programs do not come before the others of the machine.
    let output = host.command("cut").args(["-d", " ", "-f", "41", "/proc/self/stat"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "0");
    assert_eq!(policy(), "0", "and this thread is as it was");
}

#[test]
fn what_a_fast_path_hands_over_is_left_to_other_processors() {
    let Some(_turn) = turn("what_a_fast_path_hands_over_is_left_to_other_processors") else { return };
    let [slow, fast] = [100_000_000, 300_000_000].map(|bps| path(rate(bps, Micros::from_millis(1)), IpVersions::V4));
    // As an end of the path sees it, 0 for none; with 32 processors and fewer it is one number.
    let steered = |lab: &Lab, side: Side| {
        let file = format!("/sys/class/net/{DEVICE}/queues/rx-0/rps_cpus");
        let mask = lab.host(side).command("cat").arg(file).output().unwrap();
        let mask = String::from_utf8(mask.stdout).unwrap();
        u32::from_str_radix(mask.trim().rsplit(',').next()?, 16).ok()
    };
    let lab = Lab::join(&fast, 1, LabOptions { steer: false, ..LabOptions::default() }).unwrap();
    if thread::available_parallelism().unwrap().get() == 1 || steered(&lab, Side::A).is_none() {
        println!(
            "skipped what_the_path_hands_over_is_left_to_other_processors: one processor, or no RPS in this kernel"
        );
        return;
    }
    assert_eq!(Side::ALL.map(|side| steered(&lab, side)), [Some(0); 2]);
    drop(lab);
    let lab = Lab::join(&slow, 1, LabOptions::default()).unwrap();
    assert_eq!(Side::ALL.map(|side| steered(&lab, side)), [Some(0); 2]);
    drop(lab);
    let lab = Lab::join(&fast, 1, LabOptions::default()).unwrap();
    let tasks = fs::read_dir("/proc/self/task").unwrap().map(|task| task.unwrap().path());
    let of_path = |file: &str| fs::read_to_string(file).is_ok_and(|name| name.trim() == "lab-path");
    let task = tasks.into_iter().find(|task| of_path(task.join("comm").to_str().unwrap())).unwrap();
    let status = fs::read_to_string(task.join("status")).unwrap();
    let own: Option<u32> = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")?.trim().parse().ok());
    for side in Side::ALL {
        let mask = steered(&lab, side).unwrap();
        assert_ne!(mask, 0);
        match lab.priority() {
            Priority::RealTime => assert!(mask.checked_shr(own.unwrap()).unwrap_or(0) & 1 == 0, "{own:?}, {mask:x}"),
            _ => assert_eq!(own, None, "a normal thread may run anywhere"),
        }
    }
}
