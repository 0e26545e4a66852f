//! Link layers: from the number that a file gives to the layer that reads it, and the names of those that are not read.
//! What is *not* here: what frames carry (`net/`).

mod cooked;
mod ethernet;
mod ppp;
mod wireless;

pub(crate) use ethernet::ethertype;

use crate::{
    problem::ProblemKind,
    segment::Sink,
    view::Walked,
    walk::{Packet, Walk},
};

/// A link layer, as the file names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    /// A number of tcpdump.org's list, which pcap and pcapng share.
    Tcpdump(u32),
    /// A number of snoop's own list (RFC 1761, section 4).
    Snoop(u32),
}

/// Takes a frame to the layer that reads it.
#[inline]
pub(crate) fn enter<S: Sink>(walk: &mut Walk<'_, S>, packet: &Packet<'_>) -> Walked {
    let number = match packet.link {
        Link::Tcpdump(1) => return walk.ethernet(packet.view),
        Link::Tcpdump(number) => number,
        Link::Snoop(number) => match number {
            0 | 4 => 1,
            2 => 6,
            8 => 10,
            _ => return Err(ProblemKind::UnknownSnoopLink(number)),
        },
    };
    dispatch(walk, number, packet)
}

/// By the number of <https://www.tcpdump.org/linktypes.html>; a few systems wrote their own numbers for raw IP.
fn dispatch<S: Sink>(walk: &mut Walk<'_, S>, number: u32, packet: &Packet<'_>) -> Walked {
    walk.deeper()?;
    let view = packet.view;
    match number {
        0 | 108 => walk.loopback(view),
        1 => walk.ethernet(view),
        6 => walk.token_ring(view),
        9 | 50 => walk.ppp(view),
        10 => walk.fddi(view),
        12 | 14 | 101 => walk.ip(view),
        51 => walk.pppoe(view),
        100 | 106 => walk.llc(view),
        104 => walk.cisco_hdlc(view),
        105 => walk.wifi(view),
        107 => walk.frame_relay(view),
        109 => walk.encapsulated(view),
        113 => walk.cooked(view),
        117 => walk.firewall_log(view),
        119 => walk.prism(view),
        122 => walk.fibre_channel(view),
        127 => walk.radiotap(view),
        163 => walk.avs(view),
        166 => walk.ppp_marked(view),
        192 => {
            // Its own length and the link type stand in the header, the little end first.
            let (length, inner) = (u16::from_le_bytes(view.array(2)?), u32::from_le_bytes(view.array(4)?));
            dispatch(walk, inner, &Packet { view: view.skip(usize::from(length))?, ..*packet })
        }
        204 => walk.ppp(view.skip(1)?),
        205 => walk.cisco_hdlc(view.skip(1)?),
        206 => walk.frame_relay(view.skip(1)?),
        219 => walk.mpls(view),
        228 => walk.ipv4(view),
        229 => walk.ipv6(view),
        239 => walk.netfilter_log(view, packet.is_big_endian),
        240 => walk.ethernet(view.skip(4)?),
        // Over InfiniBand: an address of 20 bytes for each end, then a header of 4 (RFC 4391, section 6).
        242 => walk.ethertype(view.u16(40)?, view.skip(44)?),
        258 => {
            let (length, inner) = (u32::from_le_bytes(view.array(0)?), u32::from_le_bytes(view.array(8)?));
            dispatch(walk, inner, &Packet { view: view.skip(length as usize)?, ..*packet })
        }
        276 => walk.cooked_2(view),
        281 => walk.tagged_ethernet(view),
        282 => walk.ethernet(view.skip(4)?),
        _ => Err(ProblemKind::UnknownLink(number)),
    }
}

/// The names, on tcpdump.org's list, of link layers that are not read.
pub(crate) fn name(number: u32) -> Option<&'static str> {
    Some(match number {
        2 => "EXP_ETHERNET",
        3 => "AX25",
        4 => "PRONET",
        5 => "CHAOS",
        7 => "ARCNET_BSD",
        8 => "SLIP",
        99 => "SYMANTEC_FIREWALL",
        102 => "SLIP_BSDOS",
        103 => "PPP_BSDOS",
        110 => "LANE8023",
        111 => "HIPPI",
        112 => "NETBSD_HDLC",
        114 => "LTALK",
        115 => "ECONET",
        116 => "IPFILTER",
        118 => "CISCO_IOS",
        120 => "IEEE802_11_AIRONET",
        123 => "SUNATM",
        128 => "TZSP",
        129 => "ARCNET_LINUX",
        130..=137 | 164 | 167 | 168 | 174 | 178..=181 | 183 | 194 | 200 | 232..=234 | 238 => "JUNIPER",
        138 => "APPLE_IP_OVER_IEEE1394",
        139 => "MTP2_WITH_PHDR",
        140 => "MTP2",
        141 => "MTP3",
        142 => "SCCP",
        143 => "DOCSIS",
        144 => "LINUX_IRDA",
        147..=162 => "USER",
        165 => "BACNET_MS_TP",
        169 => "GPRS_LLC",
        175 | 176 | 197 => "ERF",
        177 | 203 | 207 => "LAPD or LAPB",
        182 => "MFR",
        186 | 189 | 220 | 249 | 266 | 288 | 293..=295 => "USB",
        187 | 201 | 254 | 255 => "BLUETOOTH",
        190 | 227 => "CAN",
        191 | 195 | 215 | 230 | 283 => "IEEE802_15_4",
        196 => "SITA",
        202 => "AX25_KISS",
        209 => "I2C_LINUX",
        210 => "FLEXRAY",
        212 => "LIN",
        217 | 218 => "GSMTAP",
        224 | 225 => "FC_2",
        226 => "IPNET",
        231 => "DBUS",
        241 | 291 => "NETANALYZER",
        243 => "MPEG_2_TS",
        245 => "NFC_LLCP",
        247 => "INFINIBAND",
        248 => "SCTP",
        251 | 256 | 272 => "BLUETOOTH_LE",
        252 => "WIRESHARK_UPPER_PDU",
        253 => "NETLINK",
        257 => "PROFIBUS_DL",
        259 => "EPON",
        264 => "ISO_14443",
        271 => "VSOCK",
        274 => "ETHERNET_MPACKET",
        284 | 285 => "DSA_TAG",
        289 => "ATSC_ALP",
        _ => return None,
    })
}
