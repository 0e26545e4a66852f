//! From the file as written to the scenario as meant: defaults, and what fields say about each other.

use std::{collections::BTreeMap, ops::Range};

use fullpipe_units::{Micros, Rate};
use toml::Spanned;

use super::{
    After, ApplicationSpec, DETAILS, DeviceSpec, Direction, ExpectSpec, FitSpec, Fitted, HostSpec, LIMITERS, Roles,
    Scenario, Sweep, TestSpec, raw,
    values::{Either, QueueText, Span},
};
use crate::{
    AggregateSpec, CoDelSpec, Discipline, HopSpec, IpVersions, JitterSpec, LossSpec, MtuSpec, OversizeVerdict, PathHop,
    PathSpec, PolicerSpec, QueueSize, QueueSpec, RateTrace, RedSpec, ReorderBy, ReorderSpec, Spread, ThinSpec,
};

/// What is wrong, and where in the text.
pub(super) struct Problem {
    pub(super) span: Range<usize>,
    pub(super) message: String,
}

fn problem<T>(span: Range<usize>, message: impl Into<String>) -> Result<T, Problem> {
    Err(Problem { span, message: message.into() })
}

/// The version of the file format.
const SCHEMA: i64 = 1;

/// Gives the text of a file that a scenario names, or says why not.
pub(super) type Reads<'a> = &'a dyn Fn(&str) -> Result<String, String>;

pub(super) fn scenario(raw: raw::Scenario, reads: Reads<'_>) -> Result<Scenario, Problem> {
    if *raw.schema.get_ref() != SCHEMA {
        let message = format!("schema {} is not known; this program reads schema {SCHEMA}", raw.schema.get_ref());
        return problem(raw.schema.span(), message);
    }
    let name_is_plain = |name: &str| {
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    };
    if !name_is_plain(raw.name.get_ref()) {
        return problem(raw.name.span(), "a scenario's name has lower-case letters, digits and hyphens only");
    }
    let device = raw.device.map(device).transpose()?;
    let (name_span, has_device) = (raw.name.span(), device.is_some());
    let test = match raw.test {
        Some(test) => test_spec(test),
        None if has_device => TestSpec { seconds: 1, omit: 0, streams: 1, congestion: "cubic".to_owned() },
        None => return problem(name_span, "a scenario has a `[test]`, unless a `[device]` is an end of it"),
    };
    let expect = match raw.expect {
        Some(expect) => expectations(expect)?,
        None if has_device => BTreeMap::new(),
        None => return problem(name_span, "a scenario has an `[expect]`, unless a `[device]` is an end of it"),
    };
    Ok(Scenario {
        name: raw.name.into_inner(),
        summary: raw.summary,
        published: raw.published,
        source: raw.source,
        seed: raw.seed.unwrap_or(1),
        path: path(raw.path, reads)?,
        a: host(raw.a),
        b: host(raw.b),
        test,
        expect,
        device,
    })
}

fn test_spec(raw: raw::Test) -> TestSpec {
    TestSpec {
        seconds: raw.seconds.0,
        omit: raw.omit.map_or(0, |count| count.0),
        streams: raw.streams.map_or(1, |count| count.0),
        congestion: raw.congestion.unwrap_or_else(|| "cubic".to_owned()),
    }
}

fn device(raw: raw::Device) -> Result<DeviceSpec, Problem> {
    // `Count` bounds them well below.
    let narrow = |count: u32| count as u16;
    if raw.buffers.get_ref().is_empty() {
        return problem(raw.buffers.span(), "a table over buffers needs one number of them at least");
    }
    let mut published = BTreeMap::new();
    for (buffers, seconds) in raw.published {
        let Ok(number) = buffers.get_ref().parse::<u16>() else {
            return problem(buffers.span(), format!("`{}` is no number of buffers", buffers.get_ref()));
        };
        if !(seconds > 0.0 && seconds < 3_600.0) {
            return problem(buffers.span(), format!("{seconds} is no time in seconds; give one above 0"));
        }
        published.insert(number, seconds);
    }
    let fitted = raw.fitted.into_iter().map(|fit| FitSpec {
        quantity: match fit.quantity {
            raw::Quantity::PerPacket => Fitted::PerPacket,
            raw::Quantity::Rtt => Fitted::Rtt,
        },
        buffers: narrow(fit.buffers.0),
        scenario: fit.scenario,
    });
    Ok(DeviceSpec {
        bytes: raw.bytes.0,
        per_packet: raw.per_packet.map_or(Micros::ZERO, |span| span.0),
        waits: raw.waits,
        buffers: raw.buffers.into_inner().into_iter().map(|count| narrow(count.0)).collect(),
        sweep: raw.receive.map_or(Sweep::All, |count| Sweep::OutOfOrder(narrow(count.0))),
        runs: raw.runs.map_or(1, |count| count.0),
        roles: match raw.role {
            raw::Role::Sends => Roles::Sends,
            raw::Role::Receives => Roles::Receives,
            raw::Role::Both => Roles::Both,
        },
        published,
        tolerance: raw.tolerance.map_or(0.2, |fraction| fraction.0),
        fitted: fitted.collect(),
    })
}

fn path(raw: raw::Path, reads: Reads<'_>) -> Result<PathSpec, Problem> {
    let ip = match raw.ip {
        raw::Ip::V4 => IpVersions::V4,
        raw::Ip::V6 => IpVersions::V6,
        raw::Ip::Both => IpVersions::Both,
    };
    check_mtu(*raw.mtu.get_ref(), ip, raw.mtu.span())?;
    if raw.hops.get_ref().is_empty() {
        return problem(raw.hops.span(), "a path needs at least one hop");
    }
    let mtu = raw.mtu.into_inner();
    let hops = raw.hops.into_inner().into_iter().map(|hop| path_hop(hop, mtu, ip, reads)).collect::<Result<_, _>>()?;
    Ok(PathSpec { mtu, ip, hops })
}

/// RFC 791 obliges every IPv4 link to carry 68 bytes, RFC 8200 every IPv6 link 1280; a packet has 65,535 at most.
fn check_mtu(mtu: u32, ip: IpVersions, span: Range<usize>) -> Result<(), Problem> {
    let (least, version) = if ip.has_v6() { (1_280, "IPv6") } else { (68, "IPv4") };
    if !(least..=65_535).contains(&mtu) {
        return problem(span, format!("an MTU of {mtu} is not possible; with {version} it is {least} to 65535"));
    }
    Ok(())
}

fn path_hop(mut raw: raw::Hop, path_mtu: u32, ip: IpVersions, reads: Reads<'_>) -> Result<PathHop, Problem> {
    let name = raw.name.take();
    let (ab, ba) = raw.legs();
    Ok(PathHop { name, ab: leg(ab, path_mtu, ip, reads)?, ba: leg(ba, path_mtu, ip, reads)? })
}

fn leg(raw: raw::Leg, path_mtu: u32, ip: IpVersions, reads: Reads<'_>) -> Result<HopSpec, Problem> {
    let trace = raw.trace.as_ref().map(|named| trace(named, raw.rate.is_some(), reads)).transpose()?;
    let rate = trace.as_ref().map(RateTrace::mean).or_else(|| raw.rate.map(|rate| rate.0));
    let delay = raw.delay.map_or(Micros::ZERO, |span| span.0);
    let mtu = raw.mtu.map(|mtu| hop_mtu(&mtu, ip)).transpose()?;
    let largest = mtu.map_or(path_mtu, |mtu| mtu.bytes.min(path_mtu));
    let overhead = raw.overhead.map_or(0, |count| count.0);
    Ok(HopSpec {
        rate,
        trace,
        overhead,
        queue: match raw.queue {
            Some(raw_queue) => queue(&raw_queue, rate, largest)?,
            None => QueueSpec::default(),
        },
        delay,
        jitter: raw.jitter.map(|raw| jitter(&raw, delay)).transpose()?,
        loss: raw.loss.map(|raw| loss(&raw)).transpose()?,
        reorder: raw.reorder.map(|raw| reorder(&raw, delay)).transpose()?,
        duplicate: raw.duplicate.map_or(0.0, |probability| probability.0),
        mtu,
        police: raw.police.map(|raw| bucket(&raw, largest)).transpose()?,
        shape: raw.shape.map(|shape| shaper(&shape, rate, overhead + largest)).transpose()?,
        thin_acks: raw.thin_acks.map(|raw| ThinSpec { every: raw.every.0, hold: hold(raw.hold) }),
        aggregate: raw.aggregate.map(|raw| AggregateSpec { packets: raw.packets.0, hold: hold(raw.hold) }),
    })
}

/// The longest wait of what is held back, where the file does not say: about what Wi-Fi and modems take.
fn hold(raw: Option<Span>) -> Micros {
    raw.map_or(Micros::from_millis(5), |span| span.0)
}

/// A trace stands in a file, or in the scenario itself where it has several lines.
fn trace(named: &Spanned<String>, has_rate: bool, reads: Reads<'_>) -> Result<RateTrace, Problem> {
    let wrong = |message: String| Problem { span: named.span(), message };
    if has_rate {
        return Err(wrong("a link has one of `rate` and `trace`".to_owned()));
    }
    let name = named.get_ref();
    if name.contains('\n') {
        return name.parse().map_err(|error| wrong(format!("the trace, {error}")));
    }
    let text = reads(name).map_err(|error| wrong(format!("the trace {name:?} can't be read: {error}")))?;
    text.parse().map_err(|error| wrong(format!("the trace {name:?}, {error}")))
}

fn shaper(spanned: &Spanned<raw::Police>, link: Option<Rate>, largest: u32) -> Result<PolicerSpec, Problem> {
    let spec = bucket(spanned, largest)?;
    match link {
        None => {
            problem(spanned.span(), "a shaper needs a `rate` in the same direction: that of the link which it feeds")
        }
        Some(link) if spec.rate >= link => problem(
            spanned.span(),
            format!("a shaper of {} before a link of {link} never makes anything wait", spec.rate),
        ),
        Some(_) => Ok(spec),
    }
}

fn bucket(spanned: &Spanned<raw::Police>, largest: u32) -> Result<PolicerSpec, Problem> {
    let raw = spanned.get_ref();
    if raw.burst.0.get() < u64::from(largest) {
        let message = format!("a bucket of {} never lets a packet of {largest} bytes pass", raw.burst.0);
        return problem(spanned.span(), message);
    }
    Ok(PolicerSpec { rate: raw.rate.0, burst: raw.burst.0 })
}

fn hop_mtu(raw: &Spanned<raw::Mtu>, ip: IpVersions) -> Result<MtuSpec, Problem> {
    let (bytes, oversize) = match *raw.get_ref() {
        Either::Plain(bytes) => (bytes, raw::Oversize::TooBig),
        Either::Table(table) => (table.bytes, table.oversize),
    };
    check_mtu(bytes, ip, raw.span())?;
    let oversize = match oversize {
        raw::Oversize::TooBig => OversizeVerdict::TooBig,
        raw::Oversize::Silent => OversizeVerdict::Silent,
    };
    Ok(MtuSpec { bytes, oversize })
}

fn queue(spanned: &Spanned<raw::Queue>, rate: Option<Rate>, largest: u32) -> Result<QueueSpec, Problem> {
    let span = spanned.span();
    if rate.is_none() {
        return problem(span, "a queue needs a `rate` in the same direction, or nothing ever waits in it");
    }
    let too_small =
        |bytes| problem(span.clone(), format!("a queue of {bytes} never takes a packet of {largest} bytes"));
    let raw = match spanned.get_ref() {
        Either::Plain(QueueText(QueueSize::Bytes(bytes))) if bytes.get() < u64::from(largest) => {
            return too_small(*bytes);
        }
        Either::Plain(QueueText(size)) => return Ok(QueueSpec { size: *size, discipline: Discipline::DropTail }),
        Either::Table(table) => table,
    };
    let size = match (raw.packets, raw.bytes, raw.bdp, raw.time) {
        (Some(packets), None, None, None) => QueueSize::Packets(packets.0),
        (None, Some(bytes), None, None) if bytes.0.get() < u64::from(largest) => return too_small(bytes.0),
        (None, Some(bytes), None, None) => QueueSize::Bytes(bytes.0),
        (None, None, Some(multiple), None) if multiple > 0.0 && multiple <= 1_000.0 => {
            QueueSize::Bdp { multiple, at_least: raw.at_least.map_or(1, |count| count.0) }
        }
        (None, None, Some(multiple), None) => {
            return problem(span, format!("`bdp` is {multiple}; give a multiple above 0, at most 1000"));
        }
        (None, None, None, Some(Span(time))) if time > Micros::ZERO => QueueSize::Time(time),
        (None, None, None, Some(_)) => return problem(span, "`time` is zero; give a time above zero"),
        (None, None, None, None) => match QueueSpec::default().size {
            QueueSize::Bdp { multiple, at_least } => {
                QueueSize::Bdp { multiple, at_least: raw.at_least.map_or(at_least, |count| count.0) }
            }
            size => size,
        },
        _ => return problem(span, "a queue has one of `packets`, `bytes`, `bdp` and `time`"),
    };
    if raw.at_least.is_some() && !matches!(size, QueueSize::Bdp { .. }) {
        return problem(span, "`at_least` goes with `bdp` only");
    }
    let discipline = match (&raw.red, &raw.codel) {
        (None, None) => Discipline::DropTail,
        (Some(raw), None) => Discipline::Red(red(raw)?),
        (None, Some(raw)) => Discipline::CoDel(codel(raw)?),
        (Some(_), Some(_)) => return problem(span, "a queue has one of `red` and `codel`"),
    };
    Ok(QueueSpec { size, discipline })
}

fn red(spanned: &Spanned<raw::Red>) -> Result<RedSpec, Problem> {
    let (raw, default) = (spanned.get_ref(), RedSpec::default());
    let or = |value: Option<super::values::Probability>, default| value.map_or(default, |value| value.0);
    let spec = RedSpec {
        min: or(raw.min, default.min),
        max: or(raw.max, default.max),
        probability: or(raw.probability, default.probability),
        weight: or(raw.weight, default.weight),
        ecn: raw.ecn,
    };
    if spec.min >= spec.max {
        return problem(spanned.span(), "RED's `min` must be below its `max`; both are fractions of the limit");
    }
    if spec.probability <= 0.0 || spec.weight <= 0.0 {
        return problem(spanned.span(), "RED's `probability` and `weight` must be above 0");
    }
    Ok(spec)
}

fn codel(spanned: &Spanned<raw::CoDel>) -> Result<CoDelSpec, Problem> {
    let (raw, default) = (spanned.get_ref(), CoDelSpec::default());
    let target = raw.target.map_or(default.target, |span| span.0);
    let interval = raw.interval.map_or(default.interval, |span| span.0);
    if target == Micros::ZERO || interval <= target {
        return problem(spanned.span(), "CoDel's `target` must be above zero and its `interval` longer than that");
    }
    Ok(CoDelSpec { target, interval, ecn: raw.ecn })
}

fn jitter(spanned: &Spanned<raw::Jitter>, delay: Micros) -> Result<JitterSpec, Problem> {
    let raw = spanned.get_ref();
    let (spread, size) = match (raw.uniform, raw.normal) {
        (Some(Span(size)), None) => (Spread::Uniform(size), size),
        (None, Some(Span(size))) => (Spread::Normal(size), size),
        _ => return problem(spanned.span(), "a jitter has one of `uniform` and `normal`"),
    };
    if size > delay {
        let message = format!("a jitter of {size} around a delay of {delay} would deliver before sending");
        return problem(spanned.span(), message);
    }
    Ok(JitterSpec { spread, keep_order: raw.keep_order.unwrap_or(true) })
}

fn loss(spanned: &Spanned<raw::Loss>) -> Result<LossSpec, Problem> {
    match spanned.get_ref() {
        Either::Plain(probability) => Ok(LossSpec::Bernoulli(probability.0)),
        Either::Table(raw) if raw.p.0 > 0.0 && raw.r.0 <= 0.0 => {
            problem(spanned.span(), "with `r` = 0 a bad state never ends; give a probability above 0")
        }
        Either::Table(raw) => Ok(LossSpec::GilbertElliott {
            p: raw.p.0,
            r: raw.r.0,
            good: raw.good.map_or(0.0, |probability| probability.0),
            bad: raw.bad.map_or(1.0, |probability| probability.0),
        }),
    }
}

fn reorder(spanned: &Spanned<raw::Reorder>, delay: Micros) -> Result<ReorderSpec, Problem> {
    let raw = spanned.get_ref();
    let by = match (raw.later, raw.earlier, raw.gap) {
        (Some(Span(span)), None, None) => ReorderBy::Later(span),
        (None, Some(Span(span)), None) if span > delay => {
            let message = format!("`earlier` is {span}, more than the delay of {delay}");
            return problem(spanned.span(), message);
        }
        (None, Some(Span(span)), None) => ReorderBy::Earlier(span),
        (None, None, Some(packets)) => {
            // Longer than the gap lasts in a flow of any speed worth testing, shorter than a usual RTO.
            let hold = raw.hold.map_or(Micros::from_millis(100), |span| span.0);
            ReorderBy::Gap { packets: packets.0, hold }
        }
        _ => return problem(spanned.span(), "reordering has one of `later`, `earlier` and `gap`"),
    };
    if raw.hold.is_some() && raw.gap.is_none() {
        return problem(spanned.span(), "`hold` goes with `gap` only");
    }
    Ok(ReorderSpec { probability: raw.probability.0, by })
}

fn host(raw: raw::Host) -> HostSpec {
    HostSpec {
        imitates: raw.imitates,
        settings: raw.settings.into_iter().map(|(name, value)| (name, value.0)).collect(),
        application: ApplicationSpec {
            rcvbuf: raw.application.rcvbuf.map(|size| size.0),
            sndbuf: raw.application.sndbuf.map(|size| size.0),
            congestion: raw.application.congestion,
            max_pacing_rate: raw.application.max_pacing_rate.map(|rate| rate.0),
        },
    }
}

type RawExpectations = Spanned<BTreeMap<Spanned<String>, Spanned<raw::Expect>>>;

fn expectations(raw: RawExpectations) -> Result<BTreeMap<Direction, ExpectSpec>, Problem> {
    if raw.get_ref().is_empty() {
        return problem(raw.span(), "a scenario expects something in `a->b`, `b->a` or both");
    }
    let mut all = BTreeMap::new();
    for (direction, expected) in raw.into_inner() {
        let known = Direction::ALL.into_iter().find(|known| known.as_str() == direction.get_ref());
        let Some(known) = known else {
            let message = format!("unknown direction `{}`, expected `a->b` or `b->a`", direction.get_ref());
            return problem(direction.span(), message);
        };
        all.insert(known, expectation(expected)?);
    }
    Ok(all)
}

fn expectation(spanned: Spanned<raw::Expect>) -> Result<ExpectSpec, Problem> {
    let span = spanned.span();
    let raw = spanned.into_inner();
    let after = match (raw.after, raw.no_change) {
        (Some(fraction), false) => After::Fraction(fraction.0),
        (None, true) => After::NoChange,
        _ => return problem(span, "expect one of `after` (a fraction of the payload rate) and `no_change = true`"),
    };
    Ok(ExpectSpec {
        limiter: one_of(raw.limiter, "limiter", LIMITERS)?,
        detail: raw.detail.map(|detail| one_of(detail, "detail", DETAILS)).transpose()?,
        rate: raw.rate.map(|rate| rate.0),
        tolerance: raw.tolerance.map_or(0.05, |fraction| fraction.0),
        after,
    })
}

fn one_of(text: Spanned<String>, what: &str, known: &[&str]) -> Result<String, Problem> {
    if known.contains(&text.get_ref().as_str()) {
        return Ok(text.into_inner());
    }
    let message = format!("unknown {what} `{}`, expected one of {}", text.get_ref(), known.join(", "));
    problem(text.span(), message)
}
