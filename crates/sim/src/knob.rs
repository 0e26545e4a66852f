//! Settings by name: `receiver.window=1M`, `path.rtt=80ms`. One table says what there is, how it is read and what it does.

use core::str::FromStr;

use fullpipe_path::{
    AggregateSpec, HopSpec, IpVersions, LossSpec, NoQueueSize, PathHop, PathSpec, QueueSize, QueueSpec, ThinSpec,
};
use fullpipe_tcp::{congestion::Algorithm, profile::Budgets};
use fullpipe_units::{Bytes, Micros, Rate};

use crate::{
    Application, Reader,
    spec::{Cross, HostSpec, ReceiveBuffer, SimError, Spec},
};

/// The longest that an acknowledgement waits for the ones that may replace it.
const HOLD: Micros = Micros::from_millis(5);
/// The most packets that leave together.
const BUNCH: u32 = 100;
/// The length of a packet of cross traffic: between a call's and a download's.
const CROSS_PACKET: u32 = 1_000;
/// The largest window and buffer that is simulated.
const MOST_BYTES: u64 = 32 << 20;

/// What a setting's value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Bytes: `64k`, `1.5M`.
    Size,
    /// Bits per second: `100M`.
    Rate,
    /// A time: `80ms`.
    Time,
    /// A whole number.
    Count,
    /// A part: `0.01%`, `0.001`.
    Fraction,
    /// A queue: `1bdp`, `100p`, `64k`, `20ms`.
    Queue,
    /// `on` or `off`.
    Switch,
    /// A word of a list.
    Word,
}

/// A setting that can be simulated.
#[derive(Clone, Copy, Debug)]
pub struct Knob {
    /// `receiver.window`.
    pub key: &'static str,
    /// What its value is.
    pub kind: Kind,
    /// What it does, for help.
    pub meaning: &'static str,
}

const fn knob(key: &'static str, kind: Kind, meaning: &'static str) -> Knob {
    Knob { key, kind, meaning }
}

/// All of them.
pub const KNOBS: &[Knob] = &[
    knob("receiver.window", Kind::Size, "receive buffer in payload, fixed: the window that is offered"),
    knob("receiver.window_max", Kind::Size, "largest size that the receive buffer grows to"),
    knob("receiver.scaling", Kind::Switch, "the window-scale option"),
    knob("receiver.shift", Kind::Count, "the window-scale shift, 0 to 14"),
    knob("receiver.delayed_ack", Kind::Time, "longest delay of an acknowledgement"),
    knob("receiver.ack_every", Kind::Count, "segments per acknowledgement, 1 or 2"),
    knob("receiver.buffers", Kind::Count, "packet buffers of a small device, all four budgets"),
    knob("receiver.out_of_order", Kind::Count, "packet buffers for data out of order"),
    knob("receiver.read_rate", Kind::Rate, "how fast the application reads"),
    knob("receiver.sack", Kind::Switch, "selective acknowledgements"),
    knob("receiver.timestamps", Kind::Switch, "the timestamps option"),
    knob("receiver.mtu", Kind::Size, "MTU of the interface"),
    knob("sender.buffer", Kind::Size, "send buffer in payload, fixed"),
    knob("sender.buffer_max", Kind::Size, "largest size that the send buffer grows to"),
    knob("sender.congestion", Kind::Word, "cubic, reno or bbr"),
    knob("sender.initial_window", Kind::Count, "initial congestion window in segments, 2 to 64"),
    knob("sender.nagle", Kind::Switch, "Nagle's algorithm"),
    knob("sender.buffers", Kind::Count, "packet buffers of a small device, all four budgets"),
    knob("sender.write", Kind::Size, "how much the application writes at a time, 1 B to 1 MiB"),
    knob(
        "sender.message",
        Kind::Size,
        "messages of this size, 2 B to 1 MiB, in two writes each; the next one waits for an answer of one byte",
    ),
    knob("sender.sack", Kind::Switch, "selective acknowledgements"),
    knob("sender.timestamps", Kind::Switch, "the timestamps option"),
    knob("sender.scaling", Kind::Switch, "the window-scale option"),
    knob("sender.mtu", Kind::Size, "MTU of the interface"),
    knob("path.rate", Kind::Rate, "rate of the link, both ways"),
    knob("path.rtt", Kind::Time, "round-trip time of the idle path"),
    knob("path.loss", Kind::Fraction, "random loss towards the receiver"),
    knob("path.queue", Kind::Queue, "queue in front of the link"),
    knob("path.mtu", Kind::Size, "largest packet"),
    knob("path.thin_acks", Kind::Count, "only every Nth acknowledgement passes, 1 to 1000"),
    knob(
        "path.aggregate",
        Kind::Time,
        "packets to the receiver are sent in bursts: each waits up to this long, or for 100 packets",
    ),
    knob("path.flows", Kind::Count, "parallel connections at the bottleneck, 1 to 100; the first is reported"),
    knob("path.cross", Kind::Rate, "cross traffic towards the receiver, in packets of 1,000 B"),
];

/// `spec` with these settings.
///
/// # Errors
/// A setting is unknown or can't be.
pub fn with(spec: &Spec, settings: &[(String, String)]) -> Result<Spec, SimError> {
    let mut spec = spec.clone();
    for (key, value) in settings {
        set(&mut spec, key, value)?;
    }
    Ok(spec)
}

/// A connection over one link, see [`link`].
///
/// # Errors
/// A value is out of bounds, or can't be read.
pub fn one_link(
    rate: Rate,
    rtt: Micros,
    loss: &str,
    queue_size: &str,
    [from, to]: [HostSpec; 2],
) -> Result<Spec, SimError> {
    Ok(Spec::new(link(rate, rtt, loss, queue_size)?, from, to))
}

/// A path of one link, as a person describes it: rate, round-trip time, loss such as `0.01%`, and a queue such as `1bdp`.
///
/// # Errors
/// A value is out of bounds, or can't be read.
pub fn link(rate: Rate, rtt: Micros, loss: &str, queue_size: &str) -> Result<PathSpec, SimError> {
    check_rtt("path.rtt", &rtt.to_string(), rtt)?;
    path(rate, rtt, fraction("--loss", loss)?, queue(queue_size)?)
}

/// The knob of that name.
///
/// # Errors
/// There is none; the nearest name is in the error.
pub fn find(key: &str) -> Result<&'static Knob, SimError> {
    KNOBS
        .iter()
        .find(|knob| knob.key == key.trim())
        .ok_or_else(|| SimError::unknown("setting", key.trim(), KNOBS.iter().map(|knob| knob.key)))
}

/// An emulated path of one hop.
///
/// # Errors
/// A value that no path has.
pub fn path(rate: Rate, rtt: Micros, loss: f64, queue: QueueSize) -> Result<PathSpec, SimError> {
    if !(1_000..=100_000_000_000).contains(&rate.bps()) {
        return Err(SimError::value("path.rate", rate, "a rate is from 1 kbit/s to 100 Gbit/s"));
    }
    let half = Micros::new(rtt.get() / 2);
    let hop = HopSpec {
        rate: Some(rate),
        delay: half,
        queue: QueueSpec { size: queue, ..QueueSpec::default() },
        ..HopSpec::default()
    };
    let ab = HopSpec { loss: (loss > 0.0).then_some(LossSpec::Bernoulli(loss)), ..hop.clone() };
    let ba = HopSpec {
        delay: rtt.saturating_sub(half),
        queue: QueueSpec { size: QueueSize::Packets(10_000), ..QueueSpec::default() },
        ..hop
    };
    Ok(PathSpec { mtu: 1500, ip: IpVersions::V4, hops: vec![PathHop { name: None, ab, ba }] })
}

/// A queue: `1bdp`, `100p`, `64k`, `20ms`.
///
/// # Errors
/// It is none of these.
pub fn queue(text: &str) -> Result<QueueSize, SimError> {
    text.parse().map_err(|error: NoQueueSize| SimError::value("path.queue", text, error.to_string()))
}

/// A part: `0.01%` or `0.0001`.
///
/// # Errors
/// It is none, or not from 0 to below 1.
pub fn fraction(key: &str, text: &str) -> Result<f64, SimError> {
    let value = fullpipe_units::fraction(text.trim())
        .ok_or_else(|| SimError::value(key, text, "expected a part such as 0.1% or 0.001"))?;
    if (0.0..1.0).contains(&value) { Ok(value) } else { Err(SimError::value(key, text, "a part is from 0 to below 1")) }
}

/// Sets one thing.
///
/// # Errors
/// The key is unknown or the value can't be.
pub fn set(spec: &mut Spec, key: &str, value: &str) -> Result<(), SimError> {
    let knob = find(key)?;
    let value = value.trim();
    if let Some(name) = knob.key.strip_prefix("path.") {
        match name {
            // Each has the memory of its largest buffers: 0.8 MB for Linux.
            "flows" => spec.flows = count(knob, value, 1, 100)? as u32,
            "cross" => spec.cross = Some(Cross { rate: rate(knob, value)?, packet: CROSS_PACKET }),
            _ => set_path(&mut spec.path, knob, name, value)?,
        }
        return Ok(());
    }
    let (host, name) = match knob.key.strip_prefix("sender.") {
        Some(name) => (&mut spec.sender, name),
        None => (&mut spec.receiver, knob.key.strip_prefix("receiver.").unwrap_or(knob.key)),
    };
    match name {
        "window" => {
            let bytes = size(knob, value)?;
            window(host, knob, value, bytes)?;
            host.receive = ReceiveBuffer { initial: bytes, max: bytes, pinned: true };
        }
        "window_max" => {
            let bytes = size(knob, value)?;
            window(host, knob, value, bytes)?;
            host.receive.max = bytes;
            host.receive.initial = host.receive.initial.min(bytes);
        }
        "scaling" => host.profile.window_scaling = switch(knob, value)?,
        "shift" => host.profile.window_shift = Some(count(knob, value, 0, 14)? as u8),
        "delayed_ack" => {
            let time = time(knob, value)?;
            if time.get() >= 500_000 {
                return Err(SimError::value(knob.key, value, "an acknowledgement waits less than 500 ms (RFC 9293)"));
            }
            host.profile.ack.delay_us = time.get() as u32;
        }
        "ack_every" => host.profile.ack.segments = count(knob, value, 1, 2)? as u8,
        "buffers" => {
            let buffers = count(knob, value, 1, 4_096)? as u16;
            host.budgets = true;
            host.profile.budgets = Budgets::all(buffers);
        }
        "out_of_order" => {
            host.budgets = true;
            host.profile.budgets.out_of_order = count(knob, value, 0, 4_096)? as u16;
        }
        "write" => spec.application = Application::Bulk { write: at_a_time(knob, value, 1)?, patience: None },
        "message" => spec.application = Application::Messages { size: at_a_time(knob, value, 2)? },
        "read_rate" => spec.reader = Reader::Slow { rate: rate(knob, value)?, chunk: 16 << 10 },
        "sack" => host.profile.sack = switch(knob, value)?,
        "timestamps" => host.profile.timestamps = switch(knob, value)?,
        "mtu" => host.mtu = Some(mtu(knob, value)?),
        "buffer" => {
            let bytes = size(knob, value)?;
            (host.send.initial, host.send.max, host.send.pinned) = (bytes, bytes, true);
        }
        "buffer_max" => {
            host.send.max = size(knob, value)?;
            host.send.initial = host.send.initial.min(host.send.max);
        }
        "congestion" => {
            let unknown = || SimError::unknown("congestion control", value, ["cubic", "reno", "bbr"].into_iter());
            host.profile.congestion = Algorithm::from_name(value).ok_or_else(unknown)?;
        }
        "initial_window" => host.profile.initial_window = count(knob, value, 2, 64)? as u8,
        _ => host.no_nagle = !switch(knob, value)?,
    }
    Ok(())
}

fn set_path(path: &mut PathSpec, knob: &Knob, name: &str, value: &str) -> Result<(), SimError> {
    let hop = path.hops.iter_mut().min_by_key(|hop| hop.ab.drain().map_or(u64::MAX, Rate::bps));
    let Some(hop) = hop else { return Ok(()) };
    match name {
        "rate" => {
            let rate = rate(knob, value)?;
            (hop.ab.rate, hop.ba.rate) = (Some(rate), Some(rate));
            (hop.ab.shape, hop.ba.shape) = (None, None);
        }
        "rtt" => {
            let rtt = time(knob, value)?;
            check_rtt(knob.key, value, rtt)?;
            for hop in &mut path.hops {
                (hop.ab.delay, hop.ba.delay) = (Micros::ZERO, Micros::ZERO);
            }
            if let Some(first) = path.hops.first_mut() {
                first.ab.delay = Micros::new(rtt.get() / 2);
                first.ba.delay = rtt.saturating_sub(first.ab.delay);
            }
        }
        "loss" => {
            let loss = fraction(knob.key, value)?;
            hop.ab.loss = (loss > 0.0).then_some(LossSpec::Bernoulli(loss));
        }
        "queue" => hop.ab.queue.size = queue(value)?,
        "thin_acks" => {
            let every = count(knob, value, 1, 1_000)? as u32;
            hop.ba.thin_acks = Some(ThinSpec { every, hold: HOLD });
        }
        "aggregate" => {
            let hold = time(knob, value)?;
            if hold > Micros::from_secs(1) {
                return Err(SimError::value(knob.key, value, "packets are held for 1 s at most"));
            }
            hop.ab.aggregate = Some(AggregateSpec { packets: BUNCH, hold });
        }
        _ => path.mtu = mtu(knob, value)?.into(),
    }
    Ok(())
}

/// Whether the header can say such a window.
fn window(host: &HostSpec, knob: &Knob, value: &str, bytes: Bytes) -> Result<(), SimError> {
    let most = u64::from(*Budgets::UNSCALED.end()) * 1460;
    if !host.profile.window_scaling && bytes.get() > 65_535 {
        let reason = format!(
            "{} has no window scaling, without which no window is larger than 65,535 B ({most} B in whole segments); set \
             receiver.scaling=on first",
            host.platform
        );
        return Err(SimError::value(knob.key, value, reason));
    }
    Ok(())
}

fn parsed<T: FromStr<Err: ToString>>(knob: &Knob, value: &str) -> Result<T, SimError> {
    value.parse().map_err(|error: T::Err| SimError::value(knob.key, value, error.to_string()))
}

fn size(knob: &Knob, value: &str) -> Result<Bytes, SimError> {
    let bytes: Bytes = parsed(knob, value)?;
    if (536..=MOST_BYTES).contains(&bytes.get()) {
        Ok(bytes)
    } else {
        Err(SimError::value(knob.key, value, "a size is from 536 B to 32 MiB here"))
    }
}

/// What an application writes at a time, of at least `least` bytes.
fn at_a_time(knob: &Knob, value: &str, least: u64) -> Result<u32, SimError> {
    let bytes: Bytes = parsed(knob, value)?;
    let most = 1 << 20;
    if (least..=most).contains(&bytes.get()) {
        Ok(bytes.get() as u32)
    } else {
        Err(SimError::value(knob.key, value, format!("expected {least} B to 1 MiB")))
    }
}

fn rate(knob: &Knob, value: &str) -> Result<Rate, SimError> {
    let rate: Rate = parsed(knob, value)?;
    if (1_000..=100_000_000_000).contains(&rate.bps()) {
        Ok(rate)
    } else {
        Err(SimError::value(knob.key, value, "a rate is from 1 kbit/s to 100 Gbit/s"))
    }
}

fn time(knob: &Knob, value: &str) -> Result<Micros, SimError> {
    parsed(knob, value)
}

fn check_rtt(key: &str, value: &str, rtt: Micros) -> Result<(), SimError> {
    let is_within = rtt <= Micros::from_secs(10);
    if is_within { Ok(()) } else { Err(SimError::value(key, value, "a round trip is 10 s at most")) }
}

fn mtu(knob: &Knob, value: &str) -> Result<u16, SimError> {
    let bytes: Bytes = parsed(knob, value)?;
    u16::try_from(bytes.get())
        .ok()
        .filter(|mtu| (576..=9_216).contains(mtu))
        .ok_or_else(|| SimError::value(knob.key, value, "an MTU is from 576 to 9216 B here"))
}

fn count(knob: &Knob, value: &str, least: u64, most: u64) -> Result<u64, SimError> {
    let number: Option<u64> = value.parse().ok().filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| SimError::value(knob.key, value, format!("expected a whole number from {least} to {most}")))
}

fn switch(knob: &Knob, value: &str) -> Result<bool, SimError> {
    match value.to_ascii_lowercase().as_str() {
        "on" | "1" | "true" | "yes" => Ok(true),
        "off" | "0" | "false" | "no" => Ok(false),
        _ => Err(SimError::value(knob.key, value, "expected on or off")),
    }
}
