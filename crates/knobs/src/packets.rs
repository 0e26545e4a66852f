//! How large packets may be: what ends and hops take, what a tunnel leaves, and what of it is payload.
//!
//! What is *not* here: what to set for it, which is the planner's.

use std::str::FromStr;

/// The MTU of Ethernet (RFC 894), which every station of it takes.
pub const ETHERNET: u32 = 1500;
/// The header of an Ethernet frame: two addresses and a type.
pub const ETHERNET_HEADER: u32 = 14;
/// Headers of IPv4 and TCP without options.
const HEADERS: u32 = 20 + 20;
/// The smallest packet that every IPv4 host takes (RFC 791, section 3.1), and the largest that there is.
const SMALLEST: u32 = 576;
const LARGEST: u32 = 65_535;

/// Figures of vendors that count more than the packet. With the header: 1514 is the default of Windows' `*JumboPacket`
/// (Microsoft: keywords that can be edited), and drivers list 4088 and 9014 beside it. With the checksum, too, and with
/// a VLAN tag: 1518, 1522, 9018, 9022.
const FRAMES: [(u32, u32); 7] =
    [(1514, 1500), (1518, 1500), (1522, 1500), (4088, 4074), (9014, 9000), (9018, 9000), (9022, 9000)];

/// The MTU behind a figure that counts more than the packet; `None` for one that doesn't.
pub fn mtu_of_frame(figure: u32) -> Option<u32> {
    FRAMES.iter().find(|(frame, _)| *frame == figure).map(|(_, mtu)| *mtu)
}

/// What one end or one hop takes: any size up to one figure, or only the sizes of a list.
///
/// `9000` and `9216` are any size up to there; `1514,4088,9014` is the list of a driver, whose figures count the Ethernet
/// header: 1500, 4074 and 9000.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameSizes {
    text: String,
    mtus: Vec<u32>,
}

/// A text that is no list of sizes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no list of packet sizes; expected bytes from 576 to 65535, such as 9000 or 1514,4088,9014")]
pub struct ParseFrameSizesError {
    /// What was given.
    pub text: String,
}

impl FromStr for FrameSizes {
    type Err = ParseFrameSizesError;

    fn from_str(text: &str) -> Result<Self, ParseFrameSizesError> {
        let mtu = |word: &str| {
            let figure: u32 = word.trim().parse().ok()?;
            let mtu = mtu_of_frame(figure).unwrap_or(figure);
            (SMALLEST..=LARGEST).contains(&mtu).then_some(mtu)
        };
        let mtus: Option<Vec<u32>> = text.split(',').map(mtu).collect();
        let mtus = mtus.ok_or_else(|| ParseFrameSizesError { text: text.to_owned() })?;
        let words: Vec<&str> = text.split(',').map(str::trim).collect();
        Ok(Self { text: words.join(", "), mtus })
    }
}

impl FrameSizes {
    /// Whether packets of `mtu` pass. What Ethernet always takes need not stand in a driver's list.
    pub fn takes(&self, mtu: u32) -> bool {
        match self.mtus.as_slice() {
            [one] => mtu <= *one,
            many => mtu == ETHERNET || many.contains(&mtu),
        }
    }

    /// The largest packet that it takes.
    pub fn largest(&self) -> u32 {
        self.mtus.iter().copied().max().unwrap_or(ETHERNET)
    }

    /// What was given and, where that counts the Ethernet header, what it is without.
    pub fn words(&self) -> String {
        let plain: Vec<String> = self.mtus.iter().map(u32::to_string).collect();
        let plain = plain.join(", ");
        if plain == self.text { plain } else { format!("{} (an MTU of {plain} without the frame's header)", self.text) }
    }
}

/// What ESP in tunnel mode puts around a packet (RFC 4303), by its algorithms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ipsec {
    /// AES-GCM with a tag of 16 bytes (RFC 4106).
    AesGcm,
    /// AES-CBC (RFC 3602) with HMAC-SHA-1-96 (RFC 2404).
    AesCbcSha1,
    /// AES-CBC (RFC 3602) with HMAC-SHA-256-128 (RFC 4868).
    AesCbcSha256,
}

impl Ipsec {
    /// Bytes of the initialisation vector, bytes that the encrypted part comes in, bytes of the check value.
    const fn shape(self) -> (u32, u32, u32) {
        match self {
            // RFC 4303, section 2.4: the encrypted part ends on a boundary of 4 bytes whatever the cipher.
            Self::AesGcm => (8, 4, 16),
            Self::AesCbcSha1 => (16, 16, 12),
            Self::AesCbcSha256 => (16, 16, 16),
        }
    }

    /// The largest inner packet of an outer one of `outer` bytes over IPv4:
    ///
    /// ```text
    /// 20 IPv4 | 4 SPI, 4 sequence number | IV | inner packet, padding, 1 pad length, 1 next header | ICV
    /// 1500 - 20 - 8 -  8 - 16 = 1448, in 4s:  1448; - 2 = 1446   AES-GCM
    /// 1500 - 20 - 8 - 16 - 12 = 1444, in 16s: 1440; - 2 = 1438   AES-CBC with SHA-1
    /// 1500 - 20 - 8 - 16 - 16 = 1440, in 16s: 1440; - 2 = 1438   AES-CBC with SHA-256
    /// ```
    pub const fn inner(self, outer: u32) -> u32 {
        let (iv, block, icv) = self.shape();
        let room = outer.saturating_sub(20 + 8 + iv + icv);
        (room / block * block).saturating_sub(2)
    }

    /// That arithmetic with its numbers.
    pub fn arithmetic(self, outer: u32) -> String {
        let (iv, block, icv) = self.shape();
        let room = outer.saturating_sub(20 + 8 + iv + icv);
        format!(
            "{outer} - 20 (outer IPv4) - 8 (SPI and sequence number) - {iv} (IV) - {icv} (ICV) = {room}, in blocks of {block}: {}, - 2 (pad length and next header) = {}",
            room / block * block,
            self.inner(outer)
        )
    }

    /// Its name and where its sizes are from.
    pub const fn words(self) -> &'static str {
        match self {
            Self::AesGcm => "ESP tunnel with AES-GCM (RFC 4303, RFC 4106)",
            Self::AesCbcSha1 => "ESP tunnel with AES-CBC and HMAC-SHA-1-96 (RFC 4303, RFC 3602, RFC 2404)",
            Self::AesCbcSha256 => "ESP tunnel with AES-CBC and HMAC-SHA-256-128 (RFC 4303, RFC 3602, RFC 4868)",
        }
    }
}

/// What is known of the packets of a path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Packets {
    /// The interface whose MTU may be changed, as the system names it. Absent: the only one that settings tell.
    pub device: Option<String>,
    /// What this end's adapter takes. Absent: larger packets are not asked for.
    pub here: Option<FrameSizes>,
    /// What the other end's adapter takes.
    pub peer: Option<FrameSizes>,
    /// What each hop between them takes; none where a cable joins them. Absent: nobody said.
    pub hops: Option<Vec<FrameSizes>>,
    /// The tunnel that the packets go through.
    pub ipsec: Option<Ipsec>,
    /// Bytes that something else adds to each packet: 8 for PPPoE or for ESP inside UDP, 24 for GRE.
    pub overhead: u32,
}

impl Packets {
    /// Nothing is known, as by default.
    pub(crate) const UNKNOWN: Self =
        Self { device: None, here: None, peer: None, hops: None, ipsec: None, overhead: 0 };

    /// The ends and hops that said what they take, with their names.
    pub(crate) fn parties(&self) -> Vec<(String, &FrameSizes)> {
        let ends = [("this end", &self.here), ("the other end", &self.peer)];
        let ends = ends.into_iter().filter_map(|(name, sizes)| Some((name.to_owned(), sizes.as_ref()?)));
        let hops = self.hops.iter().flatten().zip(1..).map(|(sizes, number)| (format!("hop {number}"), sizes));
        ends.chain(hops).collect()
    }

    /// The largest MTU that both ends and every hop take; `None` where one of them said nothing, or where none is larger
    /// than Ethernet's.
    pub fn common(&self) -> Option<u32> {
        if self.here.is_none() || self.peer.is_none() || self.hops.is_none() {
            return None;
        }
        let parties = self.parties();
        let sizes = parties.iter().flat_map(|(_, sizes)| sizes.mtus.iter().copied());
        sizes.filter(|mtu| *mtu > ETHERNET && parties.iter().all(|(_, sizes)| sizes.takes(*mtu))).max()
    }

    /// The packets that a plan may count with.
    pub fn segment(&self) -> Segment {
        let outer = self.common().unwrap_or(ETHERNET);
        let packet = outer.saturating_sub(self.overhead);
        let inner = self.ipsec.map_or(packet, |ipsec| ipsec.inner(packet));
        Segment { outer, inner }
    }
}

/// A packet on the wire and what of it is the application's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The MTU of the path's links.
    pub outer: u32,
    /// The MTU inside of tunnels; the same without one.
    pub inner: u32,
}

impl Segment {
    /// The payload of a full segment over IPv4 without options (RFC 9293, section 3.7.1), at least 1.
    pub const fn mss(self) -> u32 {
        let mss = self.inner.saturating_sub(HEADERS);
        if mss == 0 { 1 } else { mss }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn packets(here: &str, peer: &str, hops: &[&str]) -> Packets {
        Packets {
            here: Some(here.parse().unwrap()),
            peer: Some(peer.parse().unwrap()),
            hops: Some(hops.iter().map(|hop| hop.parse().unwrap()).collect()),
            ..Packets::default()
        }
    }

    #[test]
    fn the_largest_common_size_wins_and_lists_are_taken_by_the_word() {
        for (here, peer, hops, common) in [
            ("9000", "9014", &[][..], Some(9000)),
            ("1500,4088,9014", "9000", &["9216"], Some(9000)),
            ("1514,4088,9014", "1514,4088", &["9216"], Some(4074)),
            ("1514,4088,9014", "7000", &["9216"], Some(4074)),
            ("16110", "9216", &["9600", "9198"], Some(9198)),
            // Each takes something large, but not the same.
            ("1514,4088", "1514,9014", &["9216"], None),
            ("9014", "9014", &["9216", "1500"], None),
            ("9014", "1500", &[], None),
        ] {
            assert_eq!(packets(here, peer, hops).common(), common, "{here} {peer} {hops:?}");
        }
        let silent = Packets { hops: None, ..packets("9014", "9014", &[]) };
        assert_eq!(silent.common(), None);
    }

    #[test]
    fn sizes_are_refused_where_they_are_none() {
        for text in ["", "big", "9000,", "500", "70000", "9000 4088"] {
            assert!(text.parse::<FrameSizes>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_tunnel_leaves_what_the_rfcs_say() {
        for (ipsec, mtu, inner, mss) in [
            (Ipsec::AesGcm, 1500, 1446, 1406),
            (Ipsec::AesCbcSha1, 1500, 1438, 1398),
            (Ipsec::AesCbcSha256, 1500, 1438, 1398),
            (Ipsec::AesGcm, 9000, 8946, 8906),
        ] {
            assert_eq!(ipsec.inner(mtu), inner, "{ipsec:?}");
            assert_eq!(Segment { outer: mtu, inner }.mss(), mss);
            assert!(ipsec.arithmetic(mtu).ends_with(&inner.to_string()));
        }
        // ESP inside of UDP: 8 bytes less on the outside.
        let nat = Packets { ipsec: Some(Ipsec::AesGcm), overhead: 8, ..Packets::default() };
        assert_eq!(nat.segment(), Segment { outer: 1500, inner: 1438 });
    }

    proptest! {
        #[test]
        fn the_inner_packet_with_all_that_is_added_fits_and_one_block_more_does_not(outer in 100_u32..65_536) {
            for ipsec in [Ipsec::AesGcm, Ipsec::AesCbcSha1, Ipsec::AesCbcSha256] {
                let (iv, block, icv) = ipsec.shape();
                let whole = |inner: u32| 20 + 8 + iv + (inner + 2).div_ceil(block) * block + icv;
                let inner = ipsec.inner(outer);
                prop_assert!(whole(inner) <= outer && whole(inner + 1) > outer);
            }
        }

        #[test]
        fn what_is_common_passes_everywhere(
            lists in proptest::collection::vec(proptest::collection::vec(proptest::sample::select(vec![1500_u32, 1514, 4088, 7000, 9000, 9014, 9216]), 1..4), 2..6),
        ) {
            let texts: Vec<String> = lists.iter().map(|list| list.iter().map(u32::to_string).collect::<Vec<_>>().join(",")).collect();
            let hops: Vec<&str> = texts[2..].iter().map(String::as_str).collect();
            let packets = packets(&texts[0], &texts[1], &hops);
            if let Some(mtu) = packets.common() {
                prop_assert!(mtu > 1500 && packets.parties().iter().all(|(_, sizes)| sizes.takes(mtu)));
            }
        }
    }
}
