//! A whole path and its arithmetic.

use fullpipe_units::{Bytes, Micros, Rate, bdp};

use crate::{Direction, HopSpec, LossSpec};

/// What lies between two hosts.
#[derive(Clone, Debug, PartialEq)]
pub struct PathSpec {
    /// The MTU that both hosts see on their own interface, in bytes.
    pub mtu: u32,
    /// The IP versions in use.
    pub ip: IpVersions,
    /// Hops in order from `a` to `b`.
    pub hops: Vec<PathHop>,
}

/// One hop of a path, both directions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PathHop {
    /// What it stands for: `radio`, `internet`.
    pub name: Option<String>,
    /// From `a` to `b`.
    pub ab: HopSpec,
    /// From `b` to `a`.
    pub ba: HopSpec,
}

/// Which versions of IP the hosts have addresses of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IpVersions {
    /// IPv4 alone.
    V4,
    /// IPv6 alone.
    V6,
    /// Both.
    Both,
}

impl IpVersions {
    /// Whether the hosts have IPv4 addresses.
    pub const fn has_v4(self) -> bool {
        matches!(self, Self::V4 | Self::Both)
    }

    /// Whether the hosts have IPv6 addresses.
    pub const fn has_v6(self) -> bool {
        matches!(self, Self::V6 | Self::Both)
    }
}

/// What stands before the payload in each full segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headers {
    /// IPv6 (40 bytes) instead of IPv4 (20 bytes, no options).
    pub ipv6: bool,
    /// The TCP timestamps option, 12 bytes with its padding (RFC 7323, appendix A), on top of the 20 bytes of TCP.
    pub timestamps: bool,
}

impl Headers {
    /// Bytes of headers per segment.
    pub const fn len(self) -> u32 {
        let ip = if self.ipv6 { 40 } else { 20 };
        let options = if self.timestamps { 12 } else { 0 };
        ip + 20 + options
    }

    /// Never: TCP and IP have headers.
    pub const fn is_empty(self) -> bool {
        false
    }
}

impl PathSpec {
    /// The hops in the order in which `direction` passes them.
    pub fn hops(&self, direction: Direction) -> Vec<HopSpec> {
        match direction {
            Direction::AToB => self.hops.iter().map(|hop| hop.ab.clone()).collect(),
            Direction::BToA => self.hops.iter().rev().map(|hop| hop.ba.clone()).collect(),
        }
    }

    fn legs(&self, direction: Direction) -> impl Iterator<Item = &HopSpec> {
        self.hops.iter().map(move |hop| match direction {
            Direction::AToB => &hop.ab,
            Direction::BToA => &hop.ba,
        })
    }

    /// The round-trip time of a packet of no length on the idle path: all delays of both directions, without
    /// serialisation and without jitter.
    pub fn rtt(&self) -> Micros {
        Direction::ALL
            .into_iter()
            .flat_map(|direction| self.legs(direction))
            .fold(Micros::ZERO, |sum, hop| sum + hop.delay)
    }

    /// The round-trip time on the idle path of `packets` packets of full size sent together in `direction`, from the
    /// first bit of the first one to the acknowledgement of the last (`ack` bytes long).
    ///
    /// Two packets, because a receiver may acknowledge every second one (RFC 5681, section 4.2): that is the round
    /// trip of a connection that is held by its window, and on a slow link it is far longer than [`rtt`](Self::rtt).
    pub fn loaded_rtt(&self, direction: Direction, packets: u32, ack: u32) -> Micros {
        let forth = self.serialisation(direction, self.path_mtu());
        // The packets follow each other through the hops; only at the slowest does the second one wait.
        let slowest = self.legs(direction).map(|hop| time_on(hop, self.path_mtu())).max().unwrap_or_default();
        let behind = slowest * u64::from(packets.saturating_sub(1));
        let nanos = forth + behind + self.serialisation(direction.reverse(), ack);
        self.rtt() + Micros::new(nanos / 1_000)
    }

    /// Nanoseconds that a packet of `len` bytes spends on all links of `direction` together.
    fn serialisation(&self, direction: Direction, len: u32) -> u64 {
        self.legs(direction).map(|hop| time_on(hop, len)).sum()
    }

    /// The part of all packets that `direction` loses at random in the long run.
    pub fn loss(&self, direction: Direction) -> f64 {
        let kept = |hop: &HopSpec| 1.0 - hop.loss.as_ref().map_or(0.0, LossSpec::mean);
        1.0 - self.legs(direction).map(kept).product::<f64>()
    }

    /// The largest packet that passes every hop in both directions, in bytes.
    pub fn path_mtu(&self) -> u32 {
        Direction::ALL
            .into_iter()
            .flat_map(|direction| self.legs(direction))
            .filter_map(|hop| hop.mtu.map(|mtu| mtu.bytes))
            .fold(self.mtu, u32::min)
    }

    /// The rate of the slowest link in `direction`, headers included, or of a slower shaper before one; `None` where no hop
    /// has a rate.
    pub fn bottleneck(&self, direction: Direction) -> Option<Rate> {
        self.legs(direction).filter_map(HopSpec::drain).min()
    }

    /// The rate of the slowest policer in `direction`, where it lets less through than the slowest link.
    pub fn policer(&self, direction: Direction) -> Option<Rate> {
        let slowest = self.legs(direction).filter_map(|hop| Some(hop.police?.rate)).min();
        slowest.filter(|policed| self.bottleneck(direction).is_none_or(|link| *policed < link))
    }

    /// The bandwidth-delay product of `direction`; `None` where no hop has a rate.
    pub fn bdp(&self, direction: Direction) -> Option<Bytes> {
        Some(bdp(self.bottleneck(direction)?, self.rtt()))
    }

    /// The most TCP payload that `direction` carries in full segments: 1448 of each 1500 bytes with IPv4, timestamps
    /// and no link overhead. `None` where no hop has a rate.
    pub fn payload_rate(&self, direction: Direction, headers: Headers) -> Option<Rate> {
        let mtu = self.path_mtu();
        let payload = u128::from(mtu.saturating_sub(headers.len()));
        self.legs(direction)
            .flat_map(|hop| {
                let link = hop.drain().map(|rate| (rate, hop.overhead));
                let policer = hop.police.map(|policer| (policer.rate, 0));
                [link, policer]
            })
            .flatten()
            .map(|(rate, overhead)| {
                let wire = u128::from(mtu) + u128::from(overhead);
                let bps = u128::from(rate.bps()) * payload / wire.max(1);
                Rate::from_bps(u64::try_from(bps).unwrap_or(u64::MAX))
            })
            .min()
    }
}

/// Nanoseconds that a packet of `len` bytes takes on the hop's link; 0 without one. A shaper lets a first burst through.
fn time_on(hop: &HopSpec, len: u32) -> u64 {
    let bits = (u64::from(len) + u64::from(hop.overhead)) * 8;
    let nanos = u128::from(bits) * 1_000_000_000;
    nanos.checked_div(hop.rate.map_or(0, |rate| rate.bps().into())).map_or(0, |nanos| nanos as u64)
}
