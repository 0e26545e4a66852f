//! A device's packet buffers, shared out over its sockets.
//!
//! Each socket has four lists of buffers out of one pool: received, out of order, to send, unacknowledged. Every socket
//! gets the least that it works with, an interactive one what its messages take, and what is left goes to the bulk sockets,
//! packet by packet, to whichever gains most ([`divide`](divide::divide)). What a packet more gains comes from the
//! simulator's model of the device. The sum of all shares never exceeds the pool without its reserve, so that no socket can
//! run it dry.
//!
//! What is *not* here: the names of the calls (`fullpipe-knobs` has them), and sockets that open and close meanwhile.

mod divide;
mod model;
mod sockets;
mod words;

use fullpipe_diagnose::Limiter;
use fullpipe_tcp::profile::Budgets;
use fullpipe_units::{Bytes, Micros, Rate, bdp};
use thiserror::Error;

use crate::spec::SimError;
use divide::{Room, Wants, concave};
use model::{LEAST, Model, SEGMENT, Simulated, budgets};

pub use divide::Stop;
pub use sockets::{Kind, Sockets, SocketsError, parse as parse_sockets};
pub use words::notes;

/// Numbers of packets at which a bulk socket is simulated; between two of them the curve is a straight line.
const KNOTS: [u16; 14] = [LEAST, 6, 7, 8, 10, 12, 15, 18, 22, 26, 30, 35, 40, 43];
/// Memory of a packet buffer.
pub const BUFFER: Bytes = Bytes::new(1_548);
/// An interactive socket has enough where its messages take no longer than with as many as can be, within 1 %.
const AS_SOON: f64 = 1.01;

/// The device.
#[derive(Clone, Copy, Debug)]
pub struct Device {
    /// Buffers of the whole pool.
    pub pool: u32,
    /// Buffers that no socket gets: for the device's other parts, and for packets on their way in.
    pub reserve: u32,
    /// How long it is busy with a packet.
    pub per_packet: Micros,
    /// Rate of its own interface.
    pub link: Rate,
    /// The longest that an interactive message may wait behind packets of the bulk sockets.
    pub max_wait: Option<Micros>,
}

impl Device {
    /// What stays free where nobody says otherwise: a quarter.
    pub const fn default_reserve(pool: u32) -> u32 {
        pool / 4
    }

    /// The smallest pool that has `needed` buffers beyond its reserve, which is a quarter of it where that of `pool` is.
    fn enough(needed: u32, pool: u32, reserve: u32) -> u32 {
        if reserve != Self::default_reserve(pool) {
            return needed.saturating_add(reserve);
        }
        let least = needed.saturating_mul(4) / 3;
        if least - Self::default_reserve(least) < needed { least + 1 } else { least }
    }

    /// The time that a packet keeps the device or its link busy.
    fn slot(&self) -> Micros {
        let line = (SEGMENT + 40 + 38) * 8_000_000 / self.link.bps().max(1);
        self.per_packet.max(Micros::new(line))
    }
}

/// One of a socket's four numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Number {
    /// Buffers.
    pub buffers: u16,
    /// Why so many.
    pub reason: String,
}

/// What some sockets of a group get.
#[derive(Clone, Debug, PartialEq)]
pub struct Share {
    /// The place of their group.
    pub group: usize,
    /// How many get this share.
    pub count: u16,
    /// Received in order and not yet read.
    pub receive: Number,
    /// Received out of order.
    pub out_of_order: Number,
    /// Written and not yet sent.
    pub transmit: Number,
    /// Sent and not yet acknowledged.
    pub unacknowledged: Number,
    /// What one of them reaches, alone on the device: bulk sockets.
    pub rate: Option<Rate>,
    /// What holds it then.
    pub held: Option<Limiter>,
    /// How long a message takes, and how long with as many buffers as can be: interactive sockets.
    pub latency: Option<(Micros, Micros)>,
}

impl Share {
    /// Buffers of one of these sockets.
    pub fn buffers(&self) -> u32 {
        [&self.receive, &self.out_of_order, &self.transmit, &self.unacknowledged]
            .into_iter()
            .map(|number| u32::from(number.buffers))
            .sum()
    }
}

/// The whole pool, shared out.
#[derive(Clone, Debug, PartialEq)]
pub struct Shares {
    /// In the order of the groups, the larger shares of a group first.
    pub shares: Vec<Share>,
    /// Buffers of all sockets together.
    pub shared: u32,
    /// Buffers beyond the reserve that nobody gets.
    pub left: u32,
    /// What all bulk sockets reach together: the sum, or what the device can do where that is less.
    pub total: Rate,
    /// What the device can move at most.
    pub ceiling: Rate,
    /// Why nobody gets more.
    pub stop: Stop,
    /// The longest that an interactive message waits behind packets of the bulk sockets.
    pub wait: Micros,
}

/// Why buffers can't be shared out.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum ShareError {
    /// Even the least shares don't fit.
    #[error(
        "{sockets} sockets need {needed} buffers at least ({least}), and a pool of {pool} has {} beyond its reserve of {reserve}; \
         build with BUFFER_POOL_SIZE {} or more, open fewer sockets at once, or give a smaller --reserve",
        pool.saturating_sub(*reserve),
        Device::enough(*needed, *pool, *reserve)
    )]
    Pool {
        /// How many sockets there are.
        sockets: u32,
        /// What they need at least.
        needed: u32,
        /// What one of each group needs.
        least: String,
        /// Buffers of the pool.
        pool: u32,
        /// Buffers that stay free.
        reserve: u32,
    },
    /// The bulk sockets' least shares are too many already for the wait that is allowed.
    #[error(
        "a wait of {max_wait} is shorter than the {wait} of the bulk sockets with their least shares; open fewer of them \
         at once, or give a longer --max-wait"
    )]
    Wait {
        /// What is allowed.
        max_wait: Micros,
        /// What it takes.
        wait: Micros,
    },
    /// A path or a device that can't be simulated.
    #[error(transparent)]
    Sim(#[from] SimError),
}

/// Shares the pool of a device out over its sockets.
///
/// # Errors
/// The least shares don't fit, or a path can't be simulated.
pub fn share(device: &Device, groups: &[Sockets]) -> Result<Shares, ShareError> {
    share_with(device, groups, &Simulated(*device))
}

/// Groups that are alike, whatever the order in which they were named.
struct Alike {
    sockets: Sockets,
    /// The places of its groups.
    places: Vec<usize>,
    /// Packets at least.
    least: u16,
    /// What more of them gain; bulk sockets.
    curve: Vec<f64>,
    /// A message's time, and with ample buffers; interactive sockets.
    latency: Option<(Micros, Micros)>,
}

fn share_with(device: &Device, groups: &[Sockets], model: &dyn Model) -> Result<Shares, ShareError> {
    let mut alike = alike(groups);
    for one in &mut alike {
        match one.sockets.kind {
            Kind::Bulk => one.curve = curve(&one.sockets, model)?,
            Kind::Interactive => (one.least, one.latency) = quick_enough(&one.sockets, model)?,
        }
    }
    let needed: u32 = alike.iter().map(|one| u32::from(one.sockets.count) * least_buffers(one)).sum();
    let there = device.pool.saturating_sub(device.reserve);
    if needed > there {
        let each = alike.iter().map(|one| format!("{} {}", least_buffers(one), one.sockets.kind));
        return Err(ShareError::Pool {
            sockets: groups.iter().map(|group| u32::from(group.count)).sum(),
            needed,
            least: format!("each {}", each.collect::<Vec<_>>().join(", ")),
            pool: device.pool,
            reserve: device.reserve,
        });
    }
    let bulk: Vec<&Alike> = alike.iter().filter(|one| one.sockets.kind == Kind::Bulk).collect();
    let sends = bulk.iter().any(|one| one.sockets.sends) || bulk.is_empty();
    let ceiling = model.ceiling(sends)?;
    let at_least: u64 = bulk.iter().map(|one| u64::from(one.sockets.count) * u64::from(one.least)).sum();
    let packets = packets_that_may_wait(device, at_least)?;
    let wants: Vec<Wants> =
        bulk.iter().map(|one| Wants { count: one.sockets.count, curve: one.curve.clone() }).collect();
    let room = Room { buffers: there - needed, ceiling: ceiling.bps() as f64, packets };
    let (steps, stop) = divide::divide(&wants, room);

    let mut shares = Vec::new();
    let mut sum = 0;
    let mut in_flight = 0;
    let mut steps = steps.into_iter();
    for one in &alike {
        let counts = match one.sockets.kind {
            Kind::Bulk => steps.next().unwrap_or_default().into_iter().map(|more| one.least + more).collect(),
            Kind::Interactive => vec![one.least; one.sockets.count.into()],
        };
        if one.sockets.kind == Kind::Bulk {
            in_flight += counts.iter().copied().map(u64::from).sum::<u64>();
        }
        let mut counts = counts.as_slice();
        for &group in &one.places {
            let (own, others) = counts.split_at(groups[group].count.into());
            counts = others;
            for packets in own.chunk_by(|a, b| a == b) {
                let share = explained(one, group, packets, device, model)?;
                sum += share.rate.map_or(0, Rate::bps) * u64::from(share.count);
                shares.push(share);
            }
        }
    }
    shares.sort_by_key(|share| (share.group, core::cmp::Reverse(share.buffers())));
    let shared = shares.iter().map(|share| share.buffers() * u32::from(share.count)).sum();
    Ok(Shares {
        shared,
        left: there.saturating_sub(shared),
        total: Rate::from_bps(sum).min(ceiling),
        ceiling,
        stop,
        wait: Micros::new(device.slot().get() * in_flight),
        shares,
    })
}

/// The groups in an order that depends on nothing but themselves, those that are alike together.
fn alike(groups: &[Sockets]) -> Vec<Alike> {
    let key = |one: &Sockets| (one.kind, one.sends, one.rate, one.rtt, one.loss.to_bits(), one.message.get());
    let mut order: Vec<usize> = (0..groups.len()).collect();
    order.sort_by_key(|place| key(&groups[*place]));
    let mut alike: Vec<Alike> = Vec::new();
    for place in order {
        match alike.last_mut().filter(|last| key(&last.sockets) == key(&groups[place])) {
            Some(last) => {
                last.sockets.count += groups[place].count;
                last.places.push(place);
            }
            None => alike.push(Alike {
                sockets: groups[place].clone(),
                places: vec![place],
                least: LEAST,
                curve: Vec::new(),
                latency: None,
            }),
        }
    }
    alike
}

fn least_buffers(one: &Alike) -> u32 {
    all(&budgets(&one.sockets, one.least))
}

fn all(budgets: &Budgets) -> u32 {
    [budgets.receive, budgets.out_of_order, budgets.transmit, budgets.unacknowledged].into_iter().map(u32::from).sum()
}

/// What one socket reaches with 5, 6, ... packets.
fn curve(sockets: &Sockets, model: &dyn Model) -> Result<Vec<f64>, SimError> {
    let mut raw: Vec<f64> = Vec::new();
    let mut before: Option<(u16, f64)> = None;
    for packets in KNOTS {
        let rate = model.bulk(sockets, packets)?.0.bps() as f64;
        if let Some((from, at)) = before {
            let slope = (rate - at) / f64::from(packets - from);
            raw.extend((from + 1..packets).map(|between| at + slope * f64::from(between - from)));
        }
        raw.push(rate);
        before = Some((packets, rate));
    }
    Ok(concave(&raw))
}

/// The least number of packets with which a message takes no longer than with ample ones; and both times.
fn quick_enough(sockets: &Sockets, model: &dyn Model) -> Result<(u16, Option<(Micros, Micros)>), SimError> {
    let most = *Budgets::UNSCALED.end();
    let ample = model.latency(sockets, most)?;
    for packets in LEAST..most {
        let own = model.latency(sockets, packets)?;
        if own.get() as f64 <= ample.get() as f64 * AS_SOON {
            return Ok((packets, Some((own, ample))));
        }
    }
    Ok((most, Some((ample, ample))))
}

/// Packets beyond `at_least` that may wait in the device together.
fn packets_that_may_wait(device: &Device, at_least: u64) -> Result<u32, ShareError> {
    let Some(max_wait) = device.max_wait else { return Ok(u32::MAX) };
    let slot = device.slot().get().max(1);
    let packets = (max_wait.get() / slot).checked_sub(at_least);
    let packets = packets.ok_or_else(|| ShareError::Wait { max_wait, wait: Micros::new(at_least * slot) })?;
    Ok(u32::try_from(packets).unwrap_or(u32::MAX))
}

/// One share with its reasons. `packets` has one number for each of its sockets.
fn explained(
    one: &Alike,
    group: usize,
    packets: &[u16],
    device: &Device,
    model: &dyn Model,
) -> Result<Share, SimError> {
    let Some(&own) = packets.first() else { return Err(SimError::value("--sockets", 0, "a group has a socket")) };
    let sockets = &one.sockets;
    let budgets = budgets(sockets, own);
    let bulk = if sockets.kind == Kind::Bulk { Some(model.bulk(sockets, own)?) } else { None };
    let payload = match bulk {
        Some((rate, _)) => bulk_words(one, own, rate, device),
        None => message_words(one, own),
    };
    let number = |buffers: u16, reason: String| Number { buffers, reason };
    let out_of_order = if sockets.sends {
        format!("one less than the {} received in order: a gap leaves no room for more", budgets.receive)
    } else {
        format!("one less than the {} received in order: a lost packet needs one of them itself", budgets.receive)
    };
    let (receive, transmit, unacknowledged) = if sockets.sends {
        let least = "the least that the call takes: the peer sends little (acknowledgements take no buffer)".to_owned();
        (least, payload, "every packet that was written stays until it is acknowledged".to_owned())
    } else {
        let least = "the least that the call takes: the device sends little there".to_owned();
        (payload, least.clone(), least)
    };
    Ok(Share {
        group,
        count: packets.len() as u16,
        receive: number(budgets.receive, receive),
        out_of_order: number(budgets.out_of_order, out_of_order),
        transmit: number(budgets.transmit, transmit),
        unacknowledged: number(budgets.unacknowledged, unacknowledged),
        rate: bulk.map(|(rate, _)| rate),
        held: bulk.and_then(|(_, held)| held),
        latency: one.latency,
    })
}

fn bulk_words(one: &Alike, own: u16, reached: Rate, device: &Device) -> String {
    let sockets = &one.sockets;
    let rate = sockets.rate.map_or(device.link, |rate| rate.min(device.link));
    let product = bdp(rate, sockets.rtt).get();
    let at = usize::from(own - one.least);
    let more = match (one.curve.get(at), one.curve.get(at + 1)) {
        (Some(now), Some(next)) if *now > 0.0 => {
            format!("; a packet more would gain {:.1} %", (next / now - 1.0).max(0.0) * 100.0)
        }
        _ => format!("; more than {own} have no effect, a window ends at 65,535 B"),
    };
    format!(
        "{rate} x {} = {} = {:.1} packets of {} on the way; with {own} the simulator gives {reached}{more}",
        sockets.rtt,
        Bytes::new(product),
        product as f64 / SEGMENT as f64,
        Bytes::new(SEGMENT),
    )
}

fn message_words(one: &Alike, own: u16) -> String {
    let message = one.sockets.message;
    let segments = message.get().div_ceil(SEGMENT);
    let times = one.latency.map_or_else(String::new, |(own_time, ample)| {
        format!(
            "; with {own} the simulator gives {own_time} from request to last byte, with {} {ample}",
            Budgets::UNSCALED.end()
        )
    });
    format!("a message of {message} is {segments} packet{}{times}", if segments == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests;
