//! Offloads, ring sizes and speed of an interface, over ethtool's generic netlink family.
//!
//! Netlink and not the older ioctl: it names each feature by itself, so that a group such as `tso`, of which some
//! members were off before, is put back exactly; and it needs no `unsafe`. Kernels before 5.9 lack it.
//!
//! Read first: `Documentation/networking/ethtool-netlink.rst` of the kernel.

use std::collections::BTreeSet;

use netlink_packet_core::{
    DecodeError, DefaultNla, Emitable, NLA_F_NESTED, NLM_F_ACK, NlasIterator, Parseable, ParseableParametrized,
};
use netlink_packet_generic::{
    GenlFamily, GenlHeader, GenlMessage,
    ctrl::{GenlCtrl, GenlCtrlCmd, nlas::GenlCtrlAttrs},
};
use netlink_sys::protocols::NETLINK_GENERIC;

use super::net::{Asking, Channel, NetError};

const FEATURES_GET: u8 = 11;
const FEATURES_SET: u8 = 12;
const RINGS_GET: u8 = 15;
const RINGS_SET: u8 = 16;
const LINKMODES_GET: u8 = 4;

/// `ETHTOOL_A_*_HEADER`, the same number in each message, and the name in it.
const HEADER: u16 = 1;
const HEADER_DEVICE: u16 = 2;

const FEATURES_HARDWARE: u16 = 2;
const FEATURES_WANTED: u16 = 3;
const FEATURES_ACTIVE: u16 = 4;
const FEATURES_FIXED: u16 = 5;

const BITSET_NOMASK: u16 = 1;
const BITSET_BITS: u16 = 3;
const BIT: u16 = 1;
const BIT_NAME: u16 = 2;
const BIT_VALUE: u16 = 3;

const RING_RX: u16 = 6;
const RING_TX: u16 = 9;
const SPEED: u16 = 5;
/// `SPEED_UNKNOWN`.
const UNKNOWN_SPEED: u32 = u32::MAX;

/// One of the two queues of descriptors between a driver and its device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ring {
    Receive,
    Transmit,
}

/// The features of an interface by name.
#[derive(Debug, Default)]
pub(super) struct Features {
    changeable: BTreeSet<String>,
    fixed: BTreeSet<String>,
    active: BTreeSet<String>,
}

/// The features for which ethtool(8) has one common name; any other name stands for the feature of that name.
fn members(offload: &str) -> Vec<&str> {
    match offload {
        "tso" => vec![
            "tx-tcp-segmentation",
            "tx-tcp6-segmentation",
            "tx-tcp-ecn-segmentation",
            "tx-tcp-accecn-segmentation",
            "tx-tcp-mangleid-segmentation",
        ],
        "gso" => vec!["tx-generic-segmentation"],
        "gro" => vec!["rx-gro"],
        "lro" => vec!["rx-lro"],
        "rx" => vec!["rx-checksum"],
        "tx" => vec!["tx-checksum-ipv4", "tx-checksum-ip-generic", "tx-checksum-ipv6", "tx-checksum-sctp"],
        "sg" => vec!["tx-scatter-gather", "tx-scatter-gather-fraglist"],
        feature => vec![feature],
    }
}

impl Features {
    /// The members of a group that are on or can be switched on, and of those the ones that are on.
    fn group<'a>(&self, offload: &'a str) -> (Vec<&'a str>, Vec<&'a str>) {
        let can =
            |name: &str| self.active.contains(name) || (self.changeable.contains(name) && !self.fixed.contains(name));
        let possible: Vec<_> = members(offload).into_iter().filter(|name| can(name)).collect();
        let on = possible.iter().copied().filter(|name| self.active.contains(*name)).collect();
        (possible, on)
    }

    /// `on`, `off`, or the names of those that are on where only some are; `None` where the device can't do it at all.
    pub(super) fn text(&self, offload: &str) -> Option<String> {
        let (possible, on) = self.group(offload);
        if possible.is_empty() {
            None
        } else if on.is_empty() {
            Some("off".to_owned())
        } else if on.len() == possible.len() {
            Some("on".to_owned())
        } else {
            Some(on.join(" "))
        }
    }

    /// Each member and whether `text` wants it on.
    fn wanted<'a>(&self, offload: &'a str, text: &str) -> Vec<(&'a str, bool)> {
        let named: BTreeSet<_> = text.split(' ').collect();
        self.group(offload).0.into_iter().map(|name| (name, text == "on" || named.contains(name))).collect()
    }
}

/// A connection with ethtool's family in the calling thread's network namespace.
pub(super) struct Ethtool {
    channel: Channel,
    family: u16,
}

impl Ethtool {
    pub(super) fn open() -> Result<Self, NetError> {
        let mut channel = Channel::open(NETLINK_GENERIC)?;
        let ask = GenlCtrl { cmd: GenlCtrlCmd::GetFamily, nlas: vec![GenlCtrlAttrs::FamilyName("ethtool".to_owned())] };
        let asking = Asking { operation: "find", object: "ethtool's netlink family (Linux 5.9 and later)" };
        let answers = channel.exchange(asking, NLM_F_ACK, GenlMessage::from_payload(ask))?;
        let family = answers.iter().flat_map(|answer| &answer.payload.nlas).find_map(|attribute| match attribute {
            GenlCtrlAttrs::FamilyId(id) => Some(*id),
            _ => None,
        });
        // An answer without a number would be a kernel's mistake; number 0 then gets a refusal that names the request.
        Ok(Self { channel, family: family.unwrap_or(0) })
    }

    pub(super) fn features(&mut self, device: &str) -> Result<Features, NetError> {
        let mut features = Features::default();
        for answer in self.ask("read the features of", device, FEATURES_GET, Vec::new())? {
            for (kind, value) in attributes(&answer) {
                match kind {
                    FEATURES_HARDWARE => features.changeable = names_set(value),
                    FEATURES_FIXED => features.fixed = names_set(value),
                    FEATURES_ACTIVE => features.active = names_set(value),
                    _ => {}
                }
            }
        }
        Ok(features)
    }

    /// Sets an offload to a text of the form that [`Features::text`] gives.
    pub(super) fn set_offload(&mut self, device: &str, offload: &str, text: &str) -> Result<(), NetError> {
        let features = self.features(device)?;
        let bits: Vec<u8> = features
            .wanted(offload, text)
            .into_iter()
            .flat_map(|(name, on)| {
                let mut bit = encode(BIT_NAME, &terminated(name));
                if on {
                    bit.extend(encode(BIT_VALUE, &[]));
                }
                encode(BIT | NLA_F_NESTED, &bit)
            })
            .collect();
        let bits = encode(BITSET_BITS | NLA_F_NESTED, &bits);
        let wanted = encode(FEATURES_WANTED | NLA_F_NESTED, &bits);
        self.ask("set the features of", device, FEATURES_SET, wanted).map(drop)
    }

    /// The length of a ring in descriptors; `None` where the driver doesn't tell.
    pub(super) fn ring(&mut self, device: &str, ring: Ring) -> Result<Option<u32>, NetError> {
        let answers = match self.ask("read the rings of", device, RINGS_GET, Vec::new()) {
            Err(error) if error.errno() == Some(libc::EOPNOTSUPP) => return Ok(None),
            answers => answers?,
        };
        Ok(answers.iter().find_map(|answer| word(answer, ring.attribute())))
    }

    pub(super) fn set_ring(&mut self, device: &str, ring: Ring, descriptors: u32) -> Result<(), NetError> {
        let size = encode(ring.attribute(), &descriptors.to_ne_bytes());
        self.ask("set the rings of", device, RINGS_SET, size).map(drop)
    }

    /// The speed in bit/s; `None` where there is no link or no such thing as a speed.
    pub(super) fn speed_bps(&mut self, device: &str) -> Option<u64> {
        let answers = self.ask("read the speed of", device, LINKMODES_GET, Vec::new()).ok()?;
        let megabits = answers.iter().find_map(|answer| word(answer, SPEED))?;
        (megabits != UNKNOWN_SPEED && megabits != 0).then(|| u64::from(megabits) * 1_000_000)
    }

    fn ask(
        &mut self,
        operation: &'static str,
        device: &str,
        command: u8,
        body: Vec<u8>,
    ) -> Result<Vec<Vec<u8>>, NetError> {
        let mut attributes = encode(HEADER | NLA_F_NESTED, &encode(HEADER_DEVICE, &terminated(device)));
        attributes.extend(body);
        let mut message = GenlMessage::from_payload(Body { command, attributes });
        message.set_resolved_family_id(self.family);
        let object = format!("link {device}");
        let answers = self.channel.exchange(Asking { operation, object: &object }, NLM_F_ACK, message)?;
        Ok(answers.into_iter().map(|answer| answer.payload.attributes).collect())
    }
}

impl Ring {
    fn attribute(self) -> u16 {
        match self {
            Self::Receive => RING_RX,
            Self::Transmit => RING_TX,
        }
    }
}

/// A message of ethtool's family: its attributes as bytes.
#[derive(Clone, Debug)]
struct Body {
    command: u8,
    attributes: Vec<u8>,
}

impl GenlFamily for Body {
    fn family_name() -> &'static str {
        "ethtool"
    }

    fn command(&self) -> u8 {
        self.command
    }

    fn version(&self) -> u8 {
        1
    }
}

impl Emitable for Body {
    fn buffer_len(&self) -> usize {
        self.attributes.len()
    }

    fn emit(&self, buffer: &mut [u8]) {
        buffer.copy_from_slice(&self.attributes);
    }
}

impl ParseableParametrized<[u8], GenlHeader> for Body {
    fn parse_with_param(bytes: &[u8], header: GenlHeader) -> Result<Self, DecodeError> {
        Ok(Self { command: header.cmd, attributes: bytes.to_vec() })
    }
}

fn encode(kind: u16, value: &[u8]) -> Vec<u8> {
    let attribute = DefaultNla::new(kind, value.to_vec());
    let mut bytes = vec![0; attribute.buffer_len()];
    attribute.emit(&mut bytes);
    bytes
}

fn terminated(text: &str) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    bytes.push(0);
    bytes
}

/// The attributes in these bytes, as far as they are whole.
fn attributes(bytes: &[u8]) -> impl Iterator<Item = (u16, Vec<u8>)> + '_ {
    NlasIterator::new(bytes).map_while(Result::ok).filter_map(|attribute| {
        let value = netlink_packet_core::Nla::value_len(&DefaultNla::parse(&attribute).ok()?);
        attribute.value().get(..value).map(|value| (attribute.kind(), value.to_vec()))
    })
}

fn word(answer: &[u8], wanted: u16) -> Option<u32> {
    let (_, value) = attributes(answer).find(|(kind, _)| *kind == wanted)?;
    Some(u32::from_ne_bytes(value.try_into().ok()?))
}

/// The names of the bits that are set in a bitset in its verbose form.
fn names_set(bitset: Vec<u8>) -> BTreeSet<String> {
    let listed_means_set = attributes(&bitset).any(|(kind, _)| kind == BITSET_NOMASK);
    let bits = attributes(&bitset).find(|(kind, _)| *kind == BITSET_BITS).map(|(_, bits)| bits).unwrap_or_default();
    attributes(&bits)
        .filter_map(|(_, bit)| {
            let set = listed_means_set || attributes(&bit).any(|(kind, _)| kind == BIT_VALUE);
            let (_, name) = attributes(&bit).find(|(kind, _)| *kind == BIT_NAME)?;
            set.then(|| String::from_utf8_lossy(&name).trim_end_matches('\0').to_owned())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn a_group_reads_as_on_off_or_the_names_that_are_on() {
        let mut features = Features {
            changeable: set(&["tx-tcp-segmentation", "tx-tcp6-segmentation", "rx-gro"]),
            fixed: set(&["rx-gro"]),
            active: set(&["tx-tcp-segmentation"]),
        };
        assert_eq!(features.text("tso").as_deref(), Some("tx-tcp-segmentation"));
        assert_eq!(features.text("gro"), None, "fixed and off: this device can't");
        features.active = set(&["tx-tcp-segmentation", "tx-tcp6-segmentation"]);
        assert_eq!(features.text("tso").as_deref(), Some("on"));
        features.active = set(&["rx-gro"]);
        assert_eq!(features.text("tso").as_deref(), Some("off"));
        assert_eq!(features.text("gro").as_deref(), Some("on"), "fixed and on");
    }

    #[test]
    fn a_partial_group_is_wanted_back_as_it_was() {
        let features =
            Features { changeable: set(&["tx-tcp-segmentation", "tx-tcp6-segmentation"]), ..Features::default() };
        let wanted = features.wanted("tso", "tx-tcp6-segmentation");
        assert_eq!(wanted, [("tx-tcp-segmentation", false), ("tx-tcp6-segmentation", true)]);
    }

    #[test]
    fn torn_bytes_do_no_harm() {
        let bits = encode(BIT | NLA_F_NESTED, &encode(BIT_NAME, b"rx-gro\0"));
        let mut bitset = encode(BITSET_NOMASK, &[]);
        bitset.extend(encode(BITSET_BITS | NLA_F_NESTED, &bits));
        assert_eq!(names_set(bitset.clone()), set(&["rx-gro"]));
        for length in 0..bitset.len() {
            let torn = names_set(bitset.get(..length).expect("a part").to_vec());
            assert!(torn.is_empty(), "{length}");
        }
    }
}
