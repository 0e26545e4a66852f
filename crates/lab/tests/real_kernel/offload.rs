//! The same bytes come out, whatever way packets cross the devices and whatever the path does to them.

use std::io::Write;

use fullpipe_lab::{Lab, LabOptions, Offload, Side};
use fullpipe_path::{
    CoDelSpec, Direction, Discipline, HopSpec, IpVersions, LossSpec, QueueSize, QueueSpec, ReorderBy, ReorderSpec,
};
use fullpipe_units::Micros;

use super::{address_of, bounded, connect, listen, path, rate, read_all, turn};

#[test]
fn bytes_survive_loss_reordering_and_duplication() {
    let Some(_turn) = turn("bytes_survive_loss_reordering_and_duplication") else { return };
    let rough = HopSpec {
        loss: Some(LossSpec::Bernoulli(0.005)),
        reorder: Some(ReorderSpec { probability: 0.01, by: ReorderBy::Later(Micros::new(500)) }),
        duplicate: 0.01,
        ..rate(200_000_000, Micros::from_millis(2))
    };
    for offload in [true, false] {
        let options = LabOptions { offload, ..LabOptions::default() };
        let lab = Lab::join(&path(rough.clone(), IpVersions::Both), 3, options).unwrap();
        assert_eq!(lab.host(Side::A).offload() == Offload::Off, !offload);
        for v6 in [false, true] {
            transfer(&lab, v6, 6 << 20);
        }
        let hop = lab.path_stats(Direction::AToB)[0];
        assert!(hop.lost > 0 && hop.reordered > 0 && hop.duplicated > 0, "the path did nothing: {hop:?}");
    }
}

#[test]
fn bytes_survive_marks_of_congestion() {
    let Some(_turn) = turn("bytes_survive_marks_of_congestion") else { return };
    let codel = CoDelSpec { ecn: true, target: Micros::from_millis(1), interval: Micros::from_millis(10) };
    let queue = QueueSpec { size: QueueSize::Packets(1_000), discipline: Discipline::CoDel(codel) };
    let marking = HopSpec { queue, ..rate(50_000_000, Micros::from_millis(2)) };
    let lab = Lab::join(&path(marking, IpVersions::Both), 3, LabOptions::default()).unwrap();
    for side in Side::ALL {
        lab.host(side).run(|| std::fs::write("/proc/sys/net/ipv4/tcp_ecn", "1")).unwrap().unwrap();
    }
    for v6 in [false, true] {
        transfer(&lab, v6, 4 << 20);
    }
    assert!(lab.path_stats(Direction::AToB)[0].queue.marked > 0, "nothing was marked");
}

#[test]
fn a_fast_path_hands_over_super_packets_and_a_slow_one_does_not() {
    let Some(_turn) = turn("a_fast_path_hands_over_super_packets_and_a_slow_one_does_not") else { return };
    for (hop, one_by_one) in [
        (HopSpec { delay: Micros::from_millis(1), ..HopSpec::default() }, false),
        (rate(20_000_000, Micros::from_millis(1)), true),
    ] {
        let lab = Lab::join(&path(hop, IpVersions::V4), 3, LabOptions::default()).unwrap();
        transfer(&lab, false, 4 << 20);
        let segments = lab.path_stats(Direction::AToB)[0].delivered;
        let received = lab.host(Side::B).run(received_packets).unwrap();
        if one_by_one {
            // 600 us between segments: only a lab that stood still for longer may have released two at a time.
            assert!(received * 10 > segments * 9, "{segments} segments came in {received} packets");
        } else {
            assert!(received * 4 < segments, "{segments} segments came in {received} packets");
        }
    }
}

/// Packets that the device handed to the kernel, each of which may stand for many segments.
fn received_packets() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap();
    let line = text.lines().find(|line| line.trim_start().starts_with(fullpipe_lab::DEVICE)).unwrap();
    line.split_ascii_whitespace().nth(2).unwrap().parse().unwrap()
}

fn transfer(lab: &Lab, v6: bool, bytes: usize) {
    let address = address_of(lab, Side::B, v6);
    let reader = read_all(lab, listen(lab, address));
    // No period that a segment could be shifted by unseen.
    let sent: Vec<u8> = (0..bytes).map(|i| (i * 31 + (i >> 8) * 7 + (i >> 16)) as u8).collect();
    let mut stream = bounded(connect(lab, address));
    stream.write_all(&sent).unwrap();
    drop(stream);
    let received = reader.join().unwrap().unwrap();
    assert_eq!(received.len(), sent.len());
    assert!(received == sent, "v6 {v6}: other bytes came out than went in");
}
