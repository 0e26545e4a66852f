//! Results made by hand for the tests of this crate, realistic to the last figure.

use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime},
};

use fullpipe_capture::{Keep, Reader, Tracker};
use fullpipe_diagnose::{
    Buffer, Confidence, Detail, Diagnosis, End, Evidence, Limiter, PathRate, ReceiverSample, RttSummary, SenderSample,
    SynFacts, Transfer,
    proof::{Decision, Proof},
};
use fullpipe_host::RunId;
use fullpipe_knobs::{Address, Change, Plan, Settings, TakesEffect};
use fullpipe_measure::{
    Available, Capacity, CapacityOfDirection, Choice, Counted, Cpu, DirectionMeasurement, ExchangeReport, Harm,
    Latency, Left, Loaded, Measurement, Mechanism, MtuReport, PathMtu, PeerKind, Push, Refused, SizeRow, SizeSide,
    StreamsRow, TcpMtu, Trial, UnderLoad,
};
use fullpipe_tune::{
    Difference, Direction, DirectionProof, Expectation, HostSettings, KeptRun, Outcome, PathErrorSummary,
    PredictedGain, Restored, ScenarioFacts,
};
use fullpipe_units::{Bytes, Micros, Rate};

use crate::{CaptureFile, CaptureList, CaptureProblem, PresetLatency, PresetRow, PresetTable, Vantages};

/// What `fullpipe stack presets` finds.
pub(crate) fn presets() -> PresetTable {
    let row = |work, preset, latency: Option<(u64, u64)>, data_segments, seconds| PresetRow {
        work,
        preset,
        seconds,
        bytes: 4_000,
        latency: latency.map(|(p50_us, p99_us)| PresetLatency { p50_us, p99_us }),
        data_segments,
        acks: 2,
        peer_acks: data_segments / 2,
        wire_bytes: 4_000 + data_segments * 60,
        retransmits: 0,
        valid: true,
    };
    PresetTable {
        scenario: "netburner-wan".to_owned(),
        profile: "netburner",
        rtt_us: 7_500,
        message_bytes: 100,
        messages: 40,
        gap_us: 5_000,
        pieces: 500,
        piece_gap_us: 1_000,
        bulk_bytes: 100_000,
        rows: vec![
            row("messages", "default", Some((6_100, 8_200)), 27, 0.2),
            row("messages", "low_latency", Some((3_900, 4_100)), 40, 0.2),
            row("messages", "bulk", Some((104_000, 200_000)), 3, 0.4),
            row("requests", "default", Some((48_000, 49_000)), 80, 1.9),
            row("requests", "low_latency", Some((7_900, 8_100)), 80, 0.32),
            row("requests", "bulk", Some((208_000, 208_000)), 40, 8.3),
            row("pieces", "default", None, 64, 0.5),
            row("pieces", "low_latency", None, 330, 0.5),
            row("pieces", "bulk", None, 35, 0.5),
            row("bulk", "default", None, 72, 0.13),
            row("bulk", "low_latency", None, 75, 0.13),
            row("bulk", "bulk", None, 71, 0.06),
        ],
    }
}

/// What `fullpipe demo` finds on a good day.
pub(crate) fn demo() -> Outcome {
    Outcome {
        ends: None,
        scenario: Some(ScenarioFacts {
            name: "wan-80ms".to_owned(),
            summary: "100 Mbit/s with 80 ms between a client and an untuned file server".to_owned(),
            imitations: vec![
                "b is Linux wearing the window behaviour of Windows Server 2012 (window scale shift 0, 64,512 B); \
                 nothing here was measured on Windows"
                    .to_owned(),
            ],
            published: Some("5 to 6.5 Mbit/s before, 87 with SO_RCVBUF = 1 MB, 92 with a 1.5 MB window".to_owned()),
        }),
        before: vec![receive_window(), send_buffer()],
        hosts: vec![host_settings("a", "cubic"), host_settings("b", "bbr")],
        plan: plan(),
        proofs: vec![
            proof("a->b", Rate::from_bps(6_412_000), Rate::from_bps(93_870_000), false),
            proof("b->a", Rate::from_bps(6_390_000), Rate::from_bps(93_610_000), false),
        ],
        kept: Vec::new(),
        after: Vec::new(),
        restored: vec![
            Restored { host: "a".to_owned(), compared: 106, differences: Vec::new() },
            Restored { host: "b".to_owned(), compared: 106, differences: Vec::new() },
        ],
        path_error: Some(PathErrorSummary { p50_us: 12, p99_us: 87, max_us: 412, valid: true }),
        expectations: vec![
            Expectation {
                direction: "a->b".to_owned(),
                expected: "receive_window, 6.40 Mbit/s +-5 %".to_owned(),
                found: "receive_window, 6.41 Mbit/s".to_owned(),
                met: true,
            },
            Expectation {
                direction: "b->a".to_owned(),
                expected: "send_buffer, 6.40 Mbit/s +-5 %".to_owned(),
                found: "send_buffer, 6.39 Mbit/s".to_owned(),
                met: true,
            },
        ],
        notes: vec!["the demonstration changed nothing outside its own two namespaces".to_owned()],
    }
}

/// Two seconds up over one connection.
pub(crate) fn measurement() -> Measurement {
    let sample = |at: u64| SenderSample {
        at_us: Micros::new(at),
        acked: Bytes::new(at),
        offered_window: Some(Bytes::new(65_535)),
        cwnd: Some(Bytes::new(144_800)),
        mss: Some(1_448),
        rtt_us: Some(Micros::new(80_100)),
        rtt_var_us: Some(Micros::new(250)),
        path_mtu: Some(1_500),
        retransmits: Some(3),
        busy_us: Some(Micros::new(at)),
        rwnd_limited_us: Some(Micros::new(at / 2)),
        sndbuf_limited_us: Some(Micros::ZERO),
        ..SenderSample::default()
    };
    let received =
        |at: u64| ReceiverSample { at_us: Micros::new(at), received: Bytes::new(at), ..ReceiverSample::default() };
    let transfer = Transfer {
        sender: End { congestion_control: Some("cubic".to_owned()), ..End::default() },
        bytes: Bytes::new(2_000_000),
        duration_us: Micros::from_secs(2),
        path_mtu: Some(1_500),
        sender_samples: (0..=20).map(|index| sample(index * 100_000)).collect(),
        receiver_samples: (0..=20).map(|index| received(index * 100_000)).collect(),
        blind: vec!["a\x1b[31m".to_owned()],
        ..Transfer::default()
    };
    let rtt = RttSummary { min_us: Micros::new(80_000), p50_us: Micros::new(80_200), count: 10 };
    let cpu = Cpu { user_percent: 0.5, system_percent: 9.5 };
    let trial = Trial { mechanism: Mechanism::Splice, rate_bps: 8_000_000, seconds_per_gb: 0.05 };
    let choice = Choice {
        mechanism: Mechanism::Splice,
        reason: "1.50 times as fast as plain writes in the trials".to_owned(),
        trials: vec![trial],
        refused: vec![Refused { mechanism: Mechanism::Ring, reason: "not permitted".to_owned() }],
        left: Some(Left { at_s: 1.5, harm: Harm::Retransmissions }),
    };
    let push = Push { sending: Some(choice), receiving: None };
    Measurement {
        peer: "192.0.2.1:5201".parse().unwrap(),
        peer_kind: PeerKind::Fullpipe,
        started: SystemTime::UNIX_EPOCH + Duration::from_secs(1_767_225_600),
        cookie: "abcdefghijklmnopqrstuvwxyz234567abcd".to_owned(),
        local_ends: vec!["192.0.2.9:40000".parse().unwrap()],
        directions: vec![DirectionMeasurement {
            direction: fullpipe_measure::Direction::Up,
            omitted_us: Micros::ZERO,
            bytes: Bytes::new(2_000_000),
            seconds: 2.0,
            rate_bps: Some(Rate::from_bps(8_000_000)),
            steady_bps: Some(Rate::from_bps(8_000_000)),
            retransmits: Some(3),
            idle_rtt: Some(rtt),
            loaded_rtt: Some(rtt),
            kernel_mtu: Some(1_500),
            datagrams: None,
            datagram_series: Vec::new(),
            counted: vec![Counted::whole(&transfer)],
            transfers: vec![transfer],
        }],
        cancelled: false,
        server_output: Some("listening".to_owned()),
        own_cpu: cpu,
        far_cpu: Some(cpu),
        own_push: Some(push),
        far_push: None,
        warnings: vec!["something".to_owned()],
    }
}

/// An answer to every question at once.
pub(crate) fn survey() -> crate::Survey {
    let latency = Latency { count: 9, min_us: 1.0, mean_us: 2.0, p50_us: 40.0, max_us: 99.0, ..Latency::default() };
    let side = SizeSide {
        rate_bps: Some(Rate::from_bps(8_000_000)),
        low_bps: Some(Rate::from_bps(7_000_000)),
        high_bps: Some(Rate::from_bps(9_000_000)),
        min_bps: Some(Rate::from_bps(6_000_000)),
        max_bps: Some(Rate::from_bps(10_000_000)),
        messages_per_second: Some(1_000.5),
        own_seconds_per_gb: Some(0.25),
        far_seconds_per_gb: Some(0.25),
        retransmits: Some(0),
        window_share: Some(0.75),
        buffer_share: Some(0.0),
    };
    let cpu = Cpu { user_percent: 0.5, system_percent: 9.5 };
    let mtu = PathMtu { mtu: Some(1_400), black_hole: true, interface_mtu: Some(1_500) };
    let (round_trip_us, split_us, split_delayed) = (Some(55.5), Some(41_000.5), Some(0.9));
    let up = fullpipe_measure::Direction::Up;
    crate::Survey {
        sizes: vec![SizeRow {
            size: Bytes::new(1_000),
            rounds: 5,
            up: side,
            down: side,
            round_trip_us,
            round_trip_low_us: Some(50.5),
            round_trip_high_us: Some(60.5),
            round_trip_min_us: Some(45.5),
            round_trip_max_us: Some(65.5),
            split_us,
            split_delayed,
        }],
        streams: vec![StreamsRow { streams: 4, up_bps: side.rate_bps, down_bps: side.rate_bps, retransmits: Some(1) }],
        exchanges: vec![ExchangeReport {
            request: Bytes::new(100),
            response: Bytes::new(1),
            streams: 1,
            split: true,
            nodelay: false,
            spin: false,
            transactions: 9,
            seconds: 1.5,
            per_second: 6.5,
            latency: Some(latency),
            at_once_us: Some(55.5),
            delayed: Some(0.9),
            connecting: Some(latency),
            asking: Some(latency),
            own_processor: Some(0),
            far_processor: Some(1),
            own_cpu: cpu,
            far_cpu: Some(cpu),
            cancelled: false,
        }],
        under_load: Some(UnderLoad {
            streams: 4,
            idle: Some(latency),
            idle_connecting: Some(latency),
            idle_asking: Some(latency),
            idle_per_minute: Some(1.5e6),
            loaded: vec![Loaded {
                direction: up,
                rate_bps: side.rate_bps,
                steady: Some(false),
                latency: Some(latency),
                connecting: Some(latency),
                asking: Some(latency),
                own_rtt_us: Some(55.5),
                foreign_per_minute: Some(1.5e6),
                own_per_minute: Some(0.5e6),
                per_minute: Some(1e6),
            }],
        }),
        mtu: Some(MtuReport { up: mtu, down: mtu }),
        tcp_mtu: vec![TcpMtu { direction: up, path_mtu: Some(1_500), mss: Some(1_448), bytes: Bytes::ZERO }],
        capacity: Some(Capacity {
            directions: vec![CapacityOfDirection {
                direction: up,
                found: Available {
                    available_bps: side.rate_bps,
                    low_bps: side.rate_bps,
                    high_bps: side.rate_bps,
                    burst_bps: side.rate_bps,
                    trains: 20,
                    datagrams: 2_000,
                    lost: 1,
                    packet_bytes: 1_500,
                },
            }],
            cancelled: false,
        }),
        ..crate::Survey::new("far", "192.0.2.1:5201".parse().unwrap(), PeerKind::Fullpipe)
    }
}

/// A run in which much went wrong, with texts that a hostile peer made up.
pub(crate) fn hostile() -> Outcome {
    let mut outcome = demo();
    outcome.before[0].name = "a->\x1b[31mevil\u{202e}".to_owned();
    outcome.before[0].congestion_control = Some("cubic\x1b]0;title\x07".to_owned());
    outcome.before[0].diagnosis.evidence[0].text = "line\r\nbreak \u{9b}2J".to_owned();
    outcome.before[0].diagnosis.or.push(fullpipe_diagnose::Alternative {
        limiter: Limiter::Application,
        decided_by: "a look at\x1b[7m the sender".to_owned(),
    });
    outcome.plan.changes[0].host = "\x1b[1mhost".to_owned();
    outcome.notes.push("\x1b[2J\x1b[H".to_owned());
    outcome.restored[1].differences.push(Difference {
        knob: Address::sysctl("net.ipv4.tcp_rmem"),
        before: Some("4096\t131072\t6291456".to_owned()),
        now: None,
    });
    outcome.expectations[1].met = false;
    outcome.path_error = Some(PathErrorSummary { p50_us: 900, p99_us: 21_000, max_us: 90_000, valid: false });
    outcome
}

/// A Linux host of which two settings are known.
fn host_settings(host: &str, congestion_control: &str) -> HostSettings {
    let values = [("net.ipv4.tcp_congestion_control", congestion_control), ("net.ipv4.tcp_window_scaling", "1")];
    let values = values.map(|(name, value)| (Address::sysctl(name), Some(value.to_owned())));
    let platform = "linux-6.18".parse().expect("a platform");
    HostSettings {
        host: host.to_owned(),
        settings: Settings { platform, values: values.into(), ..Settings::default() },
    }
}

/// A clean path: nothing to change.
pub(crate) fn clean_path() -> Outcome {
    let full = Direction {
        name: "here->far.example".to_owned(),
        rate_bps: Rate::from_bps(93_900_000),
        steady_bps: None,
        rtt_us: Some(Micros::new(5_120)),
        loaded_rtt_us: Some(Micros::new(17_300)),
        bytes: Bytes::new(93_900_000),
        duration_us: Micros::from_secs(8),
        retransmits: None,
        congestion_control: None,
        diagnosis: Diagnosis {
            limiter: Limiter::Path,
            detail: Some(Detail::Saturated),
            share: 0.995,
            attainable_bps: None,
            or: Vec::new(),
            confidence: Confidence::Medium,
            shares: BTreeMap::from([(Limiter::Path, 0.995), (Limiter::CongestionWindow, 0.005)]),
            evidence: vec![evidence("the round trip grew from 5.12 to 17.3 ms under load: the queue is standing")],
            blind: vec!["the far end is iperf3: its window and buffers were not read".to_owned()],
            action: "No TCP setting will help: the path is full.".to_owned(),
        },
        transfers: Vec::new(),
    };
    Outcome { before: vec![full], ..Outcome::default() }
}

/// A tuning run on real hosts: one direction helped and was kept, the other was undone.
pub(crate) fn tuned() -> Outcome {
    let mut outcome = demo();
    outcome.scenario = None;
    outcome.path_error = None;
    outcome.expectations.clear();
    outcome.restored.clear();
    outcome.proofs[0].kept = true;
    outcome.proofs[1].helped = false;
    outcome.proofs[1].decision = Decision::NotShown;
    outcome.proofs[1].proof = Proof {
        before_bps: Rate::from_bps(6_390_000),
        after_bps: Rate::from_bps(6_420_000),
        ratio: 1.005,
        ratio_low: Some(0.982),
        ratio_high: Some(1.028),
        pairs: 6,
        kept: false,
    };
    outcome.kept = vec![KeptRun {
        host: "a".to_owned(),
        run: RunId(7),
        lasts: false,
        boot_files: vec!["/etc/sysctl.d/90-fullpipe.conf".to_owned()],
        until_reboot: vec!["route default initrwnd does not survive a reboot".to_owned()],
    }];
    outcome.after = vec![Direction {
        rate_bps: Rate::from_bps(91_700_000),
        steady_bps: Some(Rate::from_bps(93_870_000)),
        diagnosis: Diagnosis { limiter: Limiter::Path, detail: Some(Detail::Saturated), ..receive_window().diagnosis },
        ..receive_window()
    }];
    outcome
}

fn receive_window() -> Direction {
    Direction {
        name: "a->b".to_owned(),
        rate_bps: Rate::from_bps(6_412_000),
        steady_bps: Some(Rate::from_bps(6_441_000)),
        rtt_us: Some(Micros::new(80_060)),
        loaded_rtt_us: Some(Micros::new(80_240)),
        bytes: Bytes::new(6_412_416),
        duration_us: Micros::from_secs(8),
        retransmits: Some(0),
        congestion_control: Some("cubic".to_owned()),
        diagnosis: Diagnosis {
            limiter: Limiter::ReceiveWindow,
            detail: Some(Detail::ScaleZero),
            share: 0.974,
            attainable_bps: Some(Rate::from_bps(94_100_000)),
            or: Vec::new(),
            confidence: Confidence::High,
            shares: BTreeMap::from([
                (Limiter::ReceiveWindow, 0.974),
                (Limiter::CongestionWindow, 0.021),
                (Limiter::Application, 0.005),
            ]),
            evidence: vec![
                evidence("64,512 B x 8 / 80.0 ms = 6.45 Mbit/s; measured 6.41 Mbit/s"),
                evidence("b's SYN-ACK carries the window-scale option with shift 0, so no window exceeds 65,535 B"),
                evidence("the bytes in flight stood within one segment of the offered window in 779 of 800 samples"),
                evidence("the kernel says: limited by the receive window for 7.71 of 7.98 s"),
            ],
            blind: vec!["what the path carries beyond 94.1 Mbit/s".to_owned()],
            action: "On b, let the receive window grow to 1,000,000 B: raise net.ipv4.tcp_rmem.".to_owned(),
        },
        transfers: vec![seen()],
    }
}

/// What the kernels of both ends reported of it.
fn seen() -> Transfer {
    let buffer = Buffer { largest: Bytes::new(131_072), pinned: false };
    let end = |name: &str, shift| End {
        name: name.to_owned(),
        platform: Some("linux-6.18.44".to_owned()),
        syn: Some(SynFacts { window_scale: Some(shift), ..SynFacts::default() }),
        send_buffer: Some(buffer),
        receive_buffer: Some(buffer),
        ..End::default()
    };
    Transfer {
        sender: end("a", 7),
        receiver: end("b", 0),
        path_rate: Some(PathRate { rate_bps: Rate::from_bps(94_100_000), lower_bound: false }),
        path_mtu: Some(1_500),
        sender_samples: vec![SenderSample {
            in_flight: Some(Bytes::new(64_000)),
            offered_window: Some(Bytes::new(64_512)),
            mss: Some(1_448),
            ..SenderSample::default()
        }],
        ..Transfer::default()
    }
}

fn send_buffer() -> Direction {
    Direction {
        name: "b->a".to_owned(),
        rate_bps: Rate::from_bps(6_390_000),
        steady_bps: None,
        diagnosis: Diagnosis {
            limiter: Limiter::SendBuffer,
            detail: Some(Detail::BufferCap),
            share: 0.962,
            attainable_bps: Some(Rate::from_bps(94_100_000)),
            or: Vec::new(),
            confidence: Confidence::High,
            shares: BTreeMap::from([(Limiter::SendBuffer, 0.962), (Limiter::CongestionWindow, 0.038)]),
            evidence: vec![evidence("never more than 63,712 B in flight, while a offers 1,310,720 B")],
            blind: Vec::new(),
            action: "On b, let the send buffer grow: raise net.ipv4.tcp_wmem.".to_owned(),
        },
        ..receive_window()
    }
}

fn evidence(text: &str) -> Evidence {
    Evidence { text: text.to_owned(), from_us: Some(240_000), to_us: Some(7_990_000), packets: Some([4, 4_711]) }
}

pub(crate) fn plan() -> Plan {
    Plan {
        changes: vec![
            Change {
                host: "b".to_owned(),
                knob: Address::sysctl("net.ipv4.tcp_window_scaling"),
                from: Some("0".to_owned()),
                to: Some("1".to_owned()),
                reason: "without window scaling no window exceeds 65,535 B".to_owned(),
                arithmetic: "65,535 B x 8 / 80.0 ms = 6.55 Mbit/s".to_owned(),
                memory_worst_case: None,
                takes_effect: TakesEffect::NewConnections,
                undo: "sysctl -w net.ipv4.tcp_window_scaling=0".to_owned(),
                source: "Documentation/networking/ip-sysctl.rst, tcp_window_scaling".to_owned(),
            },
            Change {
                host: "b".to_owned(),
                knob: Address::sysctl("net.ipv4.tcp_rmem"),
                from: Some("4096\t87380\t129024".to_owned()),
                to: Some("4096\t87380\t2621440".to_owned()),
                reason: "the receive buffer must hold a bandwidth-delay product and the kernel's overhead".to_owned(),
                arithmetic: "100 Mbit/s x 80.0 ms / 8 = 1,000,000 B; x 2 for overhead, x 1.25 for headroom".to_owned(),
                memory_worst_case: Some(Bytes::new(41_943_040)),
                takes_effect: TakesEffect::NewConnections,
                undo: "sysctl -w net.ipv4.tcp_rmem='4096 87380 129024'".to_owned(),
                source: "Documentation/networking/ip-sysctl.rst, tcp_rmem".to_owned(),
            },
            Change {
                host: "a".to_owned(),
                knob: Address::Route { destination: "10.0.0.0/24".to_owned(), attribute: "congctl".to_owned() },
                from: None,
                to: Some("cubic".to_owned()),
                reason: "an example of a setting that was absent".to_owned(),
                arithmetic: String::new(),
                memory_worst_case: None,
                takes_effect: TakesEffect::NewConnections,
                undo: "ip route change 10.0.0.0/24 dev fp0".to_owned(),
                source: "ip-route(8)".to_owned(),
            },
        ],
        notes: vec!["net.ipv4.tcp_low_latency is left alone: it does nothing since Linux 4.14".to_owned()],
    }
}

fn proof(direction: &str, before: Rate, after: Rate, kept: bool) -> DirectionProof {
    DirectionProof {
        direction: direction.to_owned(),
        knobs: vec![Address::sysctl("net.ipv4.tcp_window_scaling"), Address::sysctl("net.ipv4.tcp_rmem")],
        proof: Proof {
            before_bps: before,
            after_bps: after,
            ratio: 14.64,
            ratio_low: Some(14.49),
            ratio_high: Some(14.79),
            pairs: 3,
            kept: true,
        },
        decision: Decision::Helped,
        helped: true,
        kept,
        predicted: Some(PredictedGain { before_bps: before, after_bps: Rate::from_bps(93_000_000) }),
    }
}

/// A real capture of one connection, limited by its receiver's window.
pub(crate) fn captures() -> CaptureList {
    captured(CAPTURE)
}

/// The same with a clock that is set back by five seconds after a hundred packets.
pub(crate) fn captures_set_back() -> CaptureList {
    let (mut bytes, mut at) = (CAPTURE.to_vec(), 24);
    for number in 1.. {
        let Some(record) = bytes.get_mut(at..at + 16) else { break };
        let word = |at: usize| u32::from_le_bytes([record[at], record[at + 1], record[at + 2], record[at + 3]]);
        let (seconds, length) = (word(0), word(8));
        if number > 100 {
            record[..4].copy_from_slice(&(seconds - 5).to_le_bytes());
        }
        at += 16 + length as usize;
    }
    captured(&bytes)
}

const CAPTURE: &[u8] = include_bytes!("../../capture/tests/data/wan-80ms-cubic-window-b.pcap");

fn captured(bytes: &[u8]) -> CaptureList {
    let mut tracker = Tracker::new(1, Keep::default());
    let mut reader = Reader::new();
    let used = reader.read(bytes, &mut tracker).unwrap();
    reader.finish(&bytes[used..], &mut tracker).unwrap();
    let problem = |packet| CaptureProblem { file: "a\u{1b}[31m.pcap".to_owned(), packet, message: "cut".to_owned() };
    CaptureList {
        vantages: vec![Vantages { near: 1, far: 2, agree: true }],
        connections: tracker.finish().connections,
        shown: usize::MAX,
        unlisted: 0,
        unanswered: 0,
        files: vec![CaptureFile {
            name: "a.pcap".to_owned(),
            place: 0,
            lasted: Micros::new(4_000_000),
            packets: 868,
            bytes: 1_000_000,
            segments: 868,
        }],
        problems: vec![problem(Some(7)), problem(None)],
        problem_count: 2,
    }
}

/// Two connections of a Windows host: one whose application set its buffer, one whose statistics are off.
pub(crate) fn connections() -> crate::Connections {
    use fullpipe_host::windows::connections::{Connection, Counters, Observed, Seen, StatisticsError};

    let end = |port| std::net::SocketAddr::from(([192, 0, 2, 1], port));
    let mut last = Counters::default();
    last.receive.max_rwin_sent = 64_512;
    last.receive.win_scale_sent = 0;
    last.observed.win_scale_rcvd = 7;
    let seen = Seen { first: None, last, elapsed: Duration::ZERO };
    let one = |pid, program: Option<&str>, verdict| Observed {
        connection: Connection { local: end(5201), remote: end(50_000), pid },
        program: program.map(str::to_owned),
        verdict,
    };
    crate::Connections {
        level: Some("normal".to_owned()),
        observed: vec![
            one(4711, Some("ftp\u{1b}[31m.exe"), Ok(seen.judge(Some("normal")))),
            one(4, None, Err(StatisticsError::Off)),
        ],
    }
}

/// An interval of a watch with a hostile process in it.
pub(crate) fn watched() -> fullpipe_watch::Frame {
    use fullpipe_watch::{Frame, Listener, Note, Owner, Row, Subject};
    let owner = Owner {
        process: "evil\u{1b}[2J\u{202e}x".to_owned(),
        pid: 4_711,
        fd: Some(12),
        cgroup: Some("/system.slice/evil.service".to_owned()),
        container: Some("4f4f4f4f4f4f".to_owned()),
    };
    let note = Note {
        subject: Subject::SendBufferSet,
        is_sure: true,
        is_trouble: true,
        text: "the application set SO_SNDBUF: 131,072 B as the kernel counts, and automatic sizing is off".to_owned(),
        fix: "leave SO_SNDBUF out of the application".to_owned(),
    };
    let diagnosis = Diagnosis {
        limiter: Limiter::SendBuffer,
        detail: Some(Detail::PinnedByApplication),
        share: 0.93,
        confidence: Confidence::Medium,
        shares: [(Limiter::SendBuffer, 0.93)].into(),
        action: "leave it to the system".to_owned(),
        ..Diagnosis::insufficient("64 KB were in flight".to_owned())
    };
    let row = Row {
        local: "192.0.2.1:443".parse().expect("an address"),
        peer: "[2001:db8:ffff:eeee:dddd:cccc:bbbb:aaaa]:50000".parse().expect("an address"),
        owner: Some(owner.clone()),
        uid: Some(33),
        seen_s: 12.0,
        is_older: true,
        sent_bps: Some(Rate::from_bps(13_000_000)),
        received_bps: Some(Rate::from_bps(900)),
        rtt_us: Some(Micros::from_millis(40)),
        min_rtt_us: Some(Micros::from_millis(39)),
        peer_window: Some(Bytes::new(3_145_728)),
        own_window: Some(Bytes::new(65_536)),
        cwnd: Some(Bytes::new(250_000)),
        in_flight: Some(Bytes::new(64_000)),
        unread: Bytes::ZERO,
        waiting: Bytes::new(64_000),
        send_buffer: Some(Bytes::new(131_072)),
        receive_buffer: Some(Bytes::new(131_072)),
        mss: Some(1_448),
        congestion_control: Some("cubic".to_owned()),
        retransmissions: Some(0),
        now: Some(Limiter::SendBuffer),
        seconds: [(Limiter::SendBuffer, 11.5), (Limiter::Application, 0.5)].into(),
        diagnosis: Some(diagnosis),
        notes: vec![note.clone()],
    };
    let unknown = Row { owner: None, diagnosis: None, notes: Vec::new(), seconds: [].into(), ..row.clone() };
    Frame {
        time: Some("2026-11-23T14:00:00.25Z".to_owned()),
        at_s: 12.0,
        interval_s: 1.0,
        connections: 40,
        active: 2,
        matching: 3,
        rows: vec![row, unknown],
        listeners: vec![Listener {
            local: "[::]:443".parse().expect("an address"),
            owner: Some(owner),
            waiting: 129,
            most: 128,
            note: Note { subject: Subject::ListenQueue, text: "129 connections wait".to_owned(), ..note },
        }],
        missing: vec!["processes of other users: run as root".to_owned()],
        remarks: vec!["the statistics (ESTATS) of 3 connections were off: they are on for this watch".to_owned()],
    }
}
