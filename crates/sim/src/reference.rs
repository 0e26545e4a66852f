//! The ten published situations: what was published, what the arithmetic says, what the simulator gives, and what real
//! kernels gave in the lab where that was recorded.
//!
//! Two of them have no scenario file, because what they tell of the path is not enough for one: their round-trip time is
//! chosen so that the published figure before the change comes out, and a note says so.

use fullpipe_diagnose::Limiter;
use fullpipe_path::{Direction, QueueSize, Scenario, ScenarioError};
use fullpipe_units::{Bytes, Micros, Rate, window_limited_rate};
use thiserror::Error;

use crate::{HostSpec, Spec, device_runs, from_scenario, knob, spec::SimError, sweep::predict, world};

/// A device's time per packet and its share of an acknowledgement, as in the planner's model of a device.
const ACK_SHARE: f64 = 1.5;
const ON_THE_WIRE: f64 = 1_538.0;

/// A rate, or how long a transfer takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Figure {
    /// Payload rate.
    Rate(Rate),
    /// Time of the whole transfer in seconds.
    Seconds(f64),
}

/// One line of the table.
#[derive(Clone, Debug)]
pub struct Reference {
    /// The situation.
    pub scenario: &'static str,
    /// What of it.
    pub case: &'static str,
    /// The published figure, as a quotation.
    pub published: Option<&'static str>,
    /// What the arithmetic says, and how.
    pub arithmetic: Option<(Figure, String)>,
    /// What the simulator gives.
    pub simulated: Figure,
    /// What holds the sender there, as the engine knows it.
    pub limiter: Option<Limiter>,
    /// What `fullpipe lab run` or `stack table` gave on Linux 6.18, where it was written down.
    pub lab: Option<&'static str>,
}

/// Why a line can't be made.
#[derive(Debug, Error)]
pub enum ReferenceError {
    /// A scenario that comes with the program can't be read.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// It can't be simulated.
    #[error(transparent)]
    Sim(#[from] SimError),
}

/// What the reader of the table must know.
pub const NOTES: &[&str] = &[
    "gigabit-jumbo: nobody published the round-trip time; 1.05 ms is chosen, with which a window of 17,520 B gives the \
     published 134 Mbit/s. Hosts take no time here: the 626 Mbit/s of the old ones are their processors'",
    "gigabit-jumbo: windows are whole segments here, so with 9,000 B packets 17,520 B hold one of them: the MTU alone does harm",
    "win10g-delack: nobody published the path; 0.2 ms is chosen, with which a window without scaling gives the published \
     322 MB/s (2.58 Gbit/s)",
    "lab: as recorded on Linux 6.18; (plan): with the window that `fullpipe` planned there",
    "netburner-lan, netburner-wan: the device's time per packet and the line's round-trip time are fitted to one published \
     figure each (20 and 5 buffers); the others are predictions. The line is a bucket of 15,000 B before 100 Mbit/s",
];

/// A case between two hosts: its settings, what was published, the window that the arithmetic takes, what the lab gave.
struct Case {
    scenario: &'static str,
    direction: Direction,
    case: &'static str,
    set: &'static [(&'static str, &'static str)],
    published: Option<&'static str>,
    window: Option<u64>,
    lab: Option<&'static str>,
}

const CASES: &[Case] = &[
    Case {
        scenario: "wan-80ms",
        direction: Direction::AToB,
        case: "as it is",
        set: &[],
        published: Some("5 to 6.5 Mbit/s"),
        window: Some(64_512),
        lab: Some("6.41 Mbit/s"),
    },
    Case {
        scenario: "wan-80ms",
        direction: Direction::AToB,
        case: "window 1 MB",
        set: &[("receiver.shift", "7"), ("receiver.window", "1MB")],
        published: Some("87 Mbit/s"),
        window: Some(1_000_000),
        lab: None,
    },
    Case {
        scenario: "wan-80ms",
        direction: Direction::AToB,
        case: "window 1.5 MB",
        set: &[("receiver.shift", "7"), ("receiver.window", "1.5MB")],
        published: Some("92 Mbit/s"),
        window: Some(1_500_000),
        lab: Some("96.2 Mbit/s (plan)"),
    },
    Case {
        scenario: "wan-80ms-sender",
        direction: Direction::BToA,
        case: "as it is",
        set: &[],
        published: Some("~6.5 Mbit/s"),
        window: Some(64_512),
        lab: Some("6.1 Mbit/s"),
    },
    Case {
        scenario: "hsdpa",
        direction: Direction::AToB,
        case: "as it is",
        set: &[],
        published: None,
        window: Some(17_520),
        lab: Some("0.6 Mbit/s"),
    },
    Case {
        scenario: "hsdpa",
        direction: Direction::AToB,
        case: "window 64,240 B",
        set: &[("receiver.window", "64240")],
        published: None,
        window: Some(64_240),
        lab: Some("1.8 Mbit/s (plan)"),
    },
    Case {
        scenario: "adsl2",
        direction: Direction::AToB,
        case: "as it is",
        set: &[],
        published: Some("3.5 Mbit/s"),
        window: Some(17_520),
        lab: Some("3.5 Mbit/s"),
    },
    Case {
        scenario: "adsl2",
        direction: Direction::AToB,
        case: "window 64,240 B",
        set: &[("receiver.window", "64240")],
        published: Some("7.0 Mbit/s"),
        window: Some(64_240),
        lab: None,
    },
    Case {
        scenario: "bluetooth-hop",
        direction: Direction::AToB,
        case: "as it is",
        set: &[],
        published: Some("723 kbit/s"),
        window: None,
        lab: None,
    },
];

/// What the lab gave for a device: scenario, buffers, seconds.
const DEVICE_LAB: &[(&str, u16, &str)] = &[
    ("netburner-lan", 5, "0.84 s"),
    ("netburner-lan", 20, "0.66 s (fitted)"),
    ("netburner-wan", 5, "5.74 s (fitted)"),
    ("netburner-wan", 20, "2.07 s"),
    ("netburner-wan", 40, "1.72 s"),
];

/// The whole table.
///
/// # Errors
/// A scenario can't be read or simulated.
pub fn reference() -> Result<Vec<Reference>, ReferenceError> {
    let mut rows = CASES.iter().map(between_hosts).collect::<Result<Vec<_>, _>>()?;
    for (name, cases) in [
        ("netburner-lan", &[(5, "5 buffers", Some("0.907 s")), (20, "20 buffers", Some("0.658 s"))][..]),
        (
            "netburner-wan",
            &[(5, "5 buffers", Some("5.66 s")), (20, "20 buffers", Some("2.12 s")), (40, "40 buffers", Some("1.72 s"))],
        ),
        (
            "lossy-devices",
            &[
                (1, "1 out of order", None),
                (19, "19 out of order", Some("one less than receive wins")),
                (20, "20 out of order", None),
            ],
        ),
    ] {
        devices(name, cases, &mut rows)?;
    }
    gigabit(&mut rows)?;
    windows_10g(&mut rows)?;
    Ok(rows)
}

fn between_hosts(case: &Case) -> Result<Reference, ReferenceError> {
    let scenario = Scenario::named(case.scenario)?;
    let spec = from_scenario(&scenario, case.direction)?;
    let rtt = scenario.path.rtt();
    // What the serialisation of two segments adds is part of the published round trip of slow links.
    let busy = scenario.path.loaded_rtt(case.direction, 2, 0);
    let rtt = if busy.get() > rtt.get() * 102 / 100 { busy } else { rtt };
    row(case.scenario, case.case, case.published, &spec, case.set, case.window, rtt, case.lab)
}

#[expect(clippy::too_many_arguments, reason = "a row has that many cells")]
fn row(
    scenario: &'static str,
    case: &'static str,
    published: Option<&'static str>,
    spec: &Spec,
    set: &[(&str, &str)],
    window: Option<u64>,
    rtt: Micros,
    lab: Option<&'static str>,
) -> Result<Reference, ReferenceError> {
    let set: Vec<_> = set.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let found = predict(spec, &set)?;
    let mut path = spec.clone();
    for (key, value) in &set {
        knob::set(&mut path, key, value)?;
    }
    let link = path.path.bottleneck(Direction::AToB).unwrap_or_default();
    let mtu = u64::from(path.path.path_mtu().max(100));
    let most = Rate::from_bps(link.bps() / mtu * (mtu - 52));
    let limited = window.and_then(|bytes| Some((bytes, window_limited_rate(Bytes::new(bytes), rtt)?)));
    let arithmetic = match limited.filter(|(_, rate)| *rate < most) {
        Some((bytes, rate)) => (Figure::Rate(rate), format!("{} / {rtt}", Bytes::new(bytes))),
        None => (Figure::Rate(most), format!("{link} x {} / {mtu}", mtu - 52)),
    };
    Ok(Reference {
        scenario,
        case,
        published,
        arithmetic: Some(arithmetic),
        simulated: Figure::Rate(found.rate),
        limiter: found.truth.or(Some(found.limiter)),
        lab,
    })
}

/// Buffers, their name, and what was published for them.
type DeviceCase = (u16, &'static str, Option<&'static str>);

fn devices(name: &'static str, cases: &[DeviceCase], rows: &mut Vec<Reference>) -> Result<(), ReferenceError> {
    let scenario = Scenario::named(name)?;
    let Some(device) = &scenario.device else { return Ok(()) };
    let lines = device_runs(&scenario, device)?;
    for &(buffers, case, published) in cases {
        let Some(line) = lines.iter().find(|line| line.buffers == buffers) else { continue };
        let mut seconds = 0.0;
        let mut limiter = None;
        for spec in &line.specs {
            let outcome = world::run(spec)?;
            seconds += outcome.finished.unwrap_or(spec.time).as_secs_f64() / line.specs.len() as f64;
            limiter = limiter.or_else(|| outcome.truth.limiter());
        }
        let (rtt, link) = (scenario.path.rtt(), scenario.path.bottleneck(Direction::AToB).unwrap_or_default());
        let arithmetic = device.waits.then(|| {
            let own = device.per_packet.get() as f64 * ACK_SHARE;
            // A shaper lets the first packets of each set through at the device's pace.
            let shaper = scenario.path.hops.iter().find_map(|hop| hop.ab.shape);
            let burst = shaper.map_or(0.0, |shaper| shaper.burst.get() as f64 / ON_THE_WIRE);
            let held = (f64::from(buffers) - burst).max(0.0) / f64::from(buffers);
            let slower = (ON_THE_WIRE * 8e6 / link.bps() as f64 * held).max(own);
            let packet = rtt.get() as f64 / f64::from(buffers) + slower;
            let seconds = device.bytes.get() as f64 / 1_460.0 * packet / 1e6;
            (Figure::Seconds(seconds), format!("{rtt} / {buffers} + {slower:.0} us a packet"))
        });
        let lab = DEVICE_LAB.iter().find(|(own, count, _)| *own == name && *count == buffers).map(|(.., lab)| *lab);
        let simulated = Figure::Seconds(seconds);
        rows.push(Reference { scenario: name, case, published, arithmetic, simulated, limiter, lab });
    }
    Ok(())
}

fn lan(rate: Rate, rtt: Micros, from: &str, to: &str) -> Result<Spec, SimError> {
    let path = knob::path(rate, rtt, 0.0, QueueSize::Bdp { multiple: 1.0, at_least: 256 })?;
    let mut spec = Spec::new(path, HostSpec::named(from)?, HostSpec::named(to)?);
    (spec.time, spec.omit) = (Micros::from_millis(300), Micros::from_millis(100));
    Ok(spec)
}

fn gigabit(rows: &mut Vec<Reference>) -> Result<(), ReferenceError> {
    let rtt = Micros::new(1_046);
    let spec = lan(Rate::from_bps(1_000_000_000), rtt, "freebsd-6", "windows-xp")?;
    let name = "gigabit-jumbo";
    let large: &[(&str, &str)] =
        &[("receiver.scaling", "on"), ("receiver.window", "256k"), ("sender.buffer", "256k"), ("path.mtu", "9000")];
    rows.push(row(name, "as it is", Some("134 Mbit/s"), &spec, &[], Some(17_520), rtt, None)?);
    let jumbo: &[(&str, &str)] = &[("path.mtu", "9000")];
    rows.push(row(name, "MTU alone", Some("hardly better"), &spec, jumbo, Some(17_520), rtt, None)?);
    rows.push(row(name, "MTU and 262,144 B", Some("626 Mbit/s"), &spec, large, Some(262_144), rtt, None)?);
    Ok(())
}

fn windows_10g(rows: &mut Vec<Reference>) -> Result<(), ReferenceError> {
    let rtt = Micros::new(203);
    let spec = lan(Rate::from_bps(10_000_000_000), rtt, "windows-10", "windows-10")?;
    let name = "win10g-delack";
    let before: &[(&str, &str)] = &[("receiver.scaling", "off")];
    rows.push(row(name, "no window scaling", Some("56 to 322 MB/s"), &spec, before, Some(65_535), rtt, None)?);
    rows.push(row(name, "after reset", Some("831 MB/s to 1.09 GB/s"), &spec, &[], Some(16 << 20), rtt, None)?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_published_situation_is_there_and_near_the_arithmetic() {
        let rows = reference().unwrap();
        let mut names: Vec<_> = rows.iter().map(|row| row.scenario).collect();
        names.dedup();
        assert_eq!(names.len(), 9 + usize::from(names.contains(&"wan-80ms-sender")), "{names:?}");
        for row in &rows {
            let Some((arithmetic, words)) = &row.arithmetic else { continue };
            let (expected, found) = match (arithmetic, row.simulated) {
                (Figure::Rate(expected), Figure::Rate(found)) => (expected.bps() as f64, found.bps() as f64),
                (Figure::Seconds(expected), Figure::Seconds(found)) => (*expected, found),
                _ => panic!("{row:?}"),
            };
            // A larger MTU makes windows of whole segments smaller: 17,520 B are one segment of 8,960 B.
            let tolerance = if row.case == "MTU alone" { 0.6 } else { 0.17 };
            assert!((found / expected - 1.0).abs() <= tolerance, "{row:?}: {words}");
        }
    }
}
