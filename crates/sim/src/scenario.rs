//! Scenario files, as the lab reads them: their hosts are Linux with settings, or a small device.

use fullpipe_path::{DeviceSpec, Direction, HostSpec as Host, Roles, Scenario, Sweep};
use fullpipe_tcp::{congestion::Algorithm, profile::Budgets};
use fullpipe_units::{Bytes, Micros};

use crate::{
    Application, Reader,
    platform::platform,
    spec::{HostSpec, ReceiveBuffer, SendBuffer, SimError, Spec},
};

/// Linux' payload of a receive buffer before it has seen a segment (`TCP_DEFAULT_SCALING_RATIO`), in percent.
const RECEIVE_AT_FIRST: u64 = 50;
/// ... and afterwards: a full segment of 1,460 B takes about 2,500 B, seen on Linux 6.18.
const RECEIVE_LATER: u64 = 58;
/// Payload of a send buffer, in percent: 64 KB of 77,824 B in flight on average, seen on Linux 6.18.
const SEND: u64 = 83;
/// No kernel has a larger buffer; the engine's own bound is far below.
const MOST: u64 = 1 << 40;
/// `net.core.rmem_max` as it comes.
const LARGEST_SET: u64 = 212_992;
/// Packets that went before the first data of a measurement in the lab, away from who sends it and towards it: the connection that
/// the two ends talk over, a dozen questions for the round-trip time, the path's probes. Seen on paths of 258 and 332 ms; short
/// round trips have a few less.
const WENT_BEFORE: [u32; 2] = [35, 30];
/// The longest transfer of a device's table.
const LONGEST: Micros = Micros::from_secs(600);

/// The simulation of one direction of a scenario between two hosts.
///
/// # Errors
/// A setting has a value that is none.
pub fn from_scenario(scenario: &Scenario, direction: Direction) -> Result<Spec, SimError> {
    let mut path = scenario.path.clone();
    if direction == Direction::BToA {
        path.hops.reverse();
        for hop in &mut path.hops {
            std::mem::swap(&mut hop.ab, &mut hop.ba);
        }
    }
    let host = |side| linux(scenario.host(side), &scenario.test.congestion);
    Ok(Spec {
        path,
        seed: scenario.seed,
        went_before: WENT_BEFORE,
        sender: host(direction.sender())?,
        receiver: host(direction.receiver())?,
        names: [direction.sender(), direction.receiver()].map(|side| side.as_str().to_owned()),
        receiver_opens: direction == Direction::BToA,
        application: Application::MEASURED,
        reader: Reader::Eager,
        flows: scenario.test.streams,
        cross: None,
        bytes: None,
        time: Micros::from_secs(u64::from(scenario.test.seconds) + u64::from(scenario.test.omit)),
        omit: Micros::from_secs(scenario.test.omit.into()),
        capture: false,
        series: true,
    })
}

/// Linux with a scenario's settings.
fn linux(spec: &Host, congestion: &str) -> Result<HostSpec, SimError> {
    let mut host = platform("linux-6.18")?.host();
    set_congestion(&mut host, spec.application.congestion.as_deref().unwrap_or(congestion));
    for (address, value) in &spec.settings {
        let wrong = || SimError::value(address, value, "expected the form that the lab takes");
        match address.as_str() {
            "net.ipv4.tcp_window_scaling" => host.profile.window_scaling = value.trim() != "0",
            "net.ipv4.tcp_timestamps" => host.profile.timestamps = value.trim() != "0",
            "net.ipv4.tcp_sack" => host.profile.sack = value.trim() != "0",
            "net.ipv4.tcp_rmem" => {
                host.receive = receive_triple(value).ok_or_else(wrong)?;
                host.profile.window_shift = triple(value).map(|[_, _, most]| window_shift(most));
            }
            "net.ipv4.tcp_wmem" => (host.send.initial, host.send.max) = send_triple(value).ok_or_else(wrong)?,
            _ if address.starts_with("route ") && address.ends_with(" window") => {
                let window = value.trim().parse().map(Bytes::new).map_err(|_| wrong())?;
                // The kernel offers a shift that this window needs: none up to 65,535 B.
                host.profile.window_shift = (window.get() <= 65_535).then_some(0);
                host.receive = ReceiveBuffer { initial: window, max: window, pinned: false };
            }
            // What the wire does not show has no counterpart here.
            _ => {}
        }
    }
    // setsockopt doubles what it is given.
    if let Some(bytes) = spec.application.rcvbuf {
        let bytes = Bytes::new(bytes.get() * 2 * RECEIVE_LATER / 100);
        host.receive = ReceiveBuffer { initial: bytes, max: bytes, pinned: true };
    }
    // Paced, acknowledgements come evenly, and so does room: what a writer that is woken when a third is free has in flight
    // is its mean, which is what was seen. The engine doesn't pace; in its bursts the rule would count twice.
    host.send.wakes_at_third &= spec.application.max_pacing_rate.is_none();
    // ... and its segments are small: a millisecond's worth at the most (`tcp_tso_autosize`).
    host.send.fills_segments &= spec.application.max_pacing_rate.is_none();
    if let Some(bytes) = spec.application.sndbuf {
        let bytes = Bytes::new(bytes.get() * 2 * SEND / 100);
        host.send = SendBuffer { initial: bytes, max: bytes, pinned: true, ..host.send };
    }
    Ok(host)
}

fn triple(value: &str) -> Option<[u64; 3]> {
    value.split_whitespace().map(|word| word.parse().ok()).collect::<Option<Vec<u64>>>()?.try_into().ok()
}

/// The window shift of a kernel whose receive buffers grow to so many bytes (`tcp_select_initial_window`).
fn window_shift(most: u64) -> u8 {
    // Buffers that applications set are the least that it reckons with.
    most.max(LARGEST_SET).ilog2().saturating_sub(15).min(14) as u8
}

/// The payload of the three values of `tcp_rmem`.
pub(crate) fn receive_triple(value: &str) -> Option<ReceiveBuffer> {
    let [_, initial, max] = triple(value)?;
    let at_first = if initial >= max { RECEIVE_LATER } else { RECEIVE_AT_FIRST };
    Some(ReceiveBuffer {
        initial: Bytes::new(initial.min(MOST) * at_first / 100),
        max: Bytes::new(max.min(MOST) * RECEIVE_LATER / 100),
        pinned: false,
    })
}

/// The payload of the second and third of the values of `tcp_wmem`.
pub(crate) fn send_triple(value: &str) -> Option<(Bytes, Bytes)> {
    let [_, initial, max] = triple(value)?;
    Some((Bytes::new(initial.min(MOST) * SEND / 100), Bytes::new(max.min(MOST) * SEND / 100)))
}

/// The congestion control of that name, where the engine has it; CUBIC stands for the others.
fn set_congestion(host: &mut HostSpec, name: &str) {
    host.profile.congestion = Algorithm::from_name(name).unwrap_or(Algorithm::Cubic);
}

/// One line of a small device's table.
#[derive(Clone, Debug)]
pub struct DeviceRun {
    /// The number of buffers.
    pub buffers: u16,
    /// Whether the device sends.
    pub sends: bool,
    /// The published time in seconds.
    pub published: Option<f64>,
    /// One simulation for each run: they differ in their seeds.
    pub specs: Vec<Spec>,
}

/// The table of a scenario with a device: a line for each number of buffers.
///
/// # Errors
/// None that a scenario file that was read can have.
pub fn device_runs(scenario: &Scenario, device: &DeviceSpec) -> Result<Vec<DeviceRun>, SimError> {
    let roles: &[bool] = match device.roles {
        Roles::Sends => &[true],
        Roles::Receives => &[false],
        Roles::Both => &[true, false],
    };
    let mut lines = Vec::new();
    for &sends in roles {
        for &buffers in &device.buffers {
            let seed = |run: u32| fullpipe_path::Random::seed_of(scenario.seed, &format!("run {run}"));
            let specs = (0..device.runs).map(|run| device_spec(scenario, device, sends, buffers, seed(run)));
            lines.push(DeviceRun {
                buffers,
                sends,
                published: sends.then(|| device.published.get(&buffers).copied()).flatten(),
                specs: specs.collect::<Result<_, _>>()?,
            });
        }
    }
    Ok(lines)
}

fn device_spec(
    scenario: &Scenario,
    device: &DeviceSpec,
    sends: bool,
    buffers: u16,
    seed: u64,
) -> Result<Spec, SimError> {
    let mut own = platform("netburner")?.host();
    own.profile.budgets = match device.sweep {
        Sweep::All => Budgets::all(buffers),
        Sweep::OutOfOrder(others) => Budgets { out_of_order: buffers, ..Budgets::all(others) },
    };
    own.per_packet = device.per_packet;
    let kernel = linux(&scenario.b, &scenario.test.congestion)?;
    let direction = if sends { Direction::AToB } else { Direction::BToA };
    let mut spec = from_scenario(scenario, direction)?;
    // A device's transfer is the only one on its path.
    (spec.seed, spec.went_before) = (seed, [0; 2]);
    (spec.sender, spec.receiver) = if sends { (own, kernel) } else { (kernel, own) };
    spec.receiver_opens = false;
    spec.application = if sends && device.waits { Application::Waits } else { Application::BULK };
    spec.bytes = Some(device.bytes);
    (spec.time, spec.omit) = (LONGEST, Micros::ZERO);
    Ok(spec)
}
