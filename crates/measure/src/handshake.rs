//! What the two SYNs said, put together from the views of both ends.
//!
//! The SYN itself is seen only by the end that answers it (`TCP_SAVED_SYN`); what the SYN-ACK said follows from the
//! kernels' agreement. `TCPI_OPT_WSCALE` says that both carried the option, so that the shifts beside it are exact, a
//! shift of 0 included. Where it is missing, the saved SYN tells who left the option out: an answer carries it only
//! where the SYN did (RFC 7323, section 2.2).

use fullpipe_diagnose::SynFacts;
use fullpipe_socket::Info;
use serde::{Deserialize, Serialize};

use crate::sys::host;

/// What one end's kernel knows of the handshake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct View {
    /// Both SYNs carried the window-scale option.
    pub(crate) scaling: Option<bool>,
    pub(crate) own_shift: Option<u8>,
    pub(crate) peer_shift: Option<u8>,
    pub(crate) timestamps: Option<bool>,
    pub(crate) sack: Option<bool>,
    pub(crate) advertised_mss: Option<u16>,
    /// The SYN as it arrived, at the end that answered it.
    pub(crate) saved_syn: Option<SynFacts>,
    /// Whether this host's own SYNs carry the window-scale option.
    pub(crate) offers_scaling: Option<bool>,
}

/// What the two SYNs said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Handshake {
    /// Of the end that opened the connection.
    pub(crate) syn: Option<SynFacts>,
    /// Of the end that answered.
    pub(crate) syn_ack: Option<SynFacts>,
    /// What could not be seen.
    pub(crate) blind: Vec<String>,
}

impl View {
    /// Whether this end's kernel reported anything. Windows reports timestamps alone.
    pub(crate) fn is_seen(&self) -> bool {
        self.scaling.is_some() || self.timestamps.is_some()
    }

    pub(crate) fn from_info(info: &Info, saved_syn: Option<SynFacts>) -> Self {
        Self {
            scaling: info.scaling,
            own_shift: info.own_shift,
            peer_shift: info.peer_shift,
            timestamps: info.timestamps,
            sack: info.sack,
            advertised_mss: option_mss(info),
            saved_syn,
            offers_scaling: host::offers_window_scaling(),
        }
    }
}

/// The MSS option that this end sent. Where timestamps were agreed on, Linux keeps it less the 12 bytes that they take in
/// every segment (TCPOLEN_TSTAMP_ALIGNED).
fn option_mss(info: &Info) -> Option<u16> {
    let stamps = if info.timestamps? { 12 } else { 0 };
    u16::try_from(info.advertised_mss? + stamps).ok()
}

/// Puts the views together; `answerer` is absent where a foreign peer answered.
pub(crate) fn combine(opener: &View, answerer: Option<&View>) -> Handshake {
    let answerer = answerer.filter(|view| view.is_seen());
    if !opener.is_seen() && answerer.is_none() {
        return Handshake {
            blind: vec!["what the two SYNs said can't be read at either end".to_owned()],
            ..Handshake::default()
        };
    }
    let mut blind = Vec::new();
    let agreed = opener.scaling.or_else(|| answerer.and_then(|view| view.scaling));
    if agreed.is_none() {
        // A SYN without the option is a finding; one that nobody could read must not look like it.
        blind.push("window scaling can't be read: neither system reports it".to_owned());
        return Handshake { blind, ..Handshake::default() };
    }
    let agreed_shift = |of_opener: Option<u8>, of_answerer: Option<u8>| match agreed {
        Some(true) => of_opener.or(of_answerer),
        _ => None,
    };
    let sack_permitted = opener.sack.or_else(|| answerer.and_then(|view| view.sack)).unwrap_or(false);
    let timestamps = opener.timestamps.or_else(|| answerer.and_then(|view| view.timestamps)).unwrap_or(false);
    let saved = answerer.and_then(|view| view.saved_syn);
    let syn = saved.unwrap_or_else(|| SynFacts {
        mss: opener.advertised_mss,
        window_scale: agreed_shift(opener.own_shift, answerer.and_then(|view| view.peer_shift)),
        sack_permitted,
        timestamps,
        window: None,
    });
    if agreed == Some(false) {
        match (saved, opener.offers_scaling) {
            (None, Some(true)) => blind.push(
                "the far end's SYN-ACK had no window-scale option although this host's SYN offered it, or something on \
                 the path removed it: the far end can't be read"
                    .to_owned(),
            ),
            (Some(SynFacts { window_scale: None, .. }), Some(true)) => blind.push(
                "the SYN arrived without the window-scale option that the host which sent it now offers: something on \
                 the path removed it, or the setting has just changed"
                    .to_owned(),
            ),
            _ => {}
        }
    }
    let syn_ack = SynFacts {
        mss: answerer.and_then(|view| view.advertised_mss),
        window_scale: agreed_shift(opener.peer_shift, answerer.and_then(|view| view.own_shift)),
        sack_permitted,
        timestamps,
        window: None,
    };
    if answerer.is_none() {
        blind.push("the far end's MSS option and its own view of the handshake can't be read".to_owned());
    }
    Handshake { syn: Some(syn), syn_ack: Some(syn_ack), blind }
}

/// Reads a saved SYN: IP header, TCP header, options. `None` where it is cut short or is no TCP.
pub(crate) fn parse_syn(packet: &[u8]) -> Option<SynFacts> {
    const TCP: u8 = 6;
    let tcp = match packet.first()? >> 4 {
        4 if *packet.get(9)? == TCP => packet.get(usize::from(packet.first()? & 0xf) * 4..)?,
        // The kernel saves the network header as it is; extension headers of a SYN are rare enough to be left unread.
        6 if *packet.get(6)? == TCP => packet.get(40..)?,
        _ => return None,
    };
    let window = u16::from_be_bytes([*tcp.get(14)?, *tcp.get(15)?]);
    let options = tcp.get(20..usize::from(tcp.get(12)? >> 4) * 4)?;
    let mut facts = SynFacts { window: Some(window), ..SynFacts::default() };
    read_options(options, &mut facts);
    Some(facts)
}

/// RFC 9293, section 3.1; stops at the first option that doesn't fit.
fn read_options(mut options: &[u8], facts: &mut SynFacts) {
    const MAX_SHIFT: u8 = 14;
    loop {
        let rest = match options {
            [] | [0, ..] => return,
            [1, rest @ ..] => rest,
            [kind, len, rest @ ..] => {
                let Some((body, rest)) = usize::from(*len).checked_sub(2).and_then(|n| rest.split_at_checked(n)) else {
                    return;
                };
                match (kind, body) {
                    (2, &[high, low]) => facts.mss = Some(u16::from_be_bytes([high, low])),
                    // A shift above 14 is used as 14 (RFC 7323, section 2.3).
                    (3, &[shift]) => facts.window_scale = Some(shift.min(MAX_SHIFT)),
                    (4, []) => facts.sack_permitted = true,
                    (8, [_, _, _, _, _, _, _, _]) => facts.timestamps = true,
                    _ => {}
                }
                rest
            }
            [_] => return,
        };
        options = rest;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn syn(options: &[u8]) -> Vec<u8> {
        let mut packet = vec![0u8; 40];
        packet[0] = 0x45;
        packet[9] = 6;
        packet[32] = u8::try_from((20 + options.len()) / 4).unwrap() << 4;
        packet[34..36].copy_from_slice(&64_240u16.to_be_bytes());
        packet.extend_from_slice(options);
        packet
    }

    #[test]
    fn a_linux_syn_is_read() {
        let options = [2, 4, 5, 180, 4, 2, 8, 10, 1, 2, 3, 4, 0, 0, 0, 0, 1, 3, 3, 7];
        let facts = parse_syn(&syn(&options)).unwrap();
        let expected = SynFacts {
            mss: Some(1460),
            window_scale: Some(7),
            sack_permitted: true,
            timestamps: true,
            window: Some(64_240),
        };
        assert_eq!(facts, expected);
    }

    #[test]
    fn shift_zero_is_not_the_same_as_no_option() {
        assert_eq!(parse_syn(&syn(&[1, 3, 3, 0])).unwrap().window_scale, Some(0));
        assert_eq!(parse_syn(&syn(&[2, 4, 5, 180])).unwrap().window_scale, None);
    }

    #[test]
    fn the_end_that_left_scaling_out_is_named() {
        let with = SynFacts { window_scale: Some(7), ..SynFacts::default() };
        let opener = View { scaling: Some(false), offers_scaling: Some(true), ..View::default() };
        let refused = View { scaling: Some(false), saved_syn: Some(with), ..View::default() };
        let handshake = combine(&opener, Some(&refused));
        assert_eq!(handshake.syn.unwrap().window_scale, Some(7));
        assert_eq!(handshake.syn_ack.unwrap().window_scale, None);

        let opener = View { offers_scaling: Some(false), ..opener };
        let without = View { saved_syn: Some(SynFacts::default()), ..refused };
        let handshake = combine(&opener, Some(&without));
        assert_eq!(handshake.syn.unwrap().window_scale, None);
        assert_eq!(handshake.blind, Vec::<String>::new());
    }

    #[test]
    fn a_shift_of_zero_that_both_agreed_on_is_exact() {
        let opener = View { scaling: Some(true), own_shift: Some(7), peer_shift: Some(0), ..View::default() };
        let handshake = combine(&opener, None);
        assert_eq!(handshake.syn.unwrap().window_scale, Some(7));
        assert_eq!(handshake.syn_ack.unwrap().window_scale, Some(0));
    }

    #[test]
    fn a_system_that_does_not_tell_of_scaling_is_not_one_without() {
        let windows = View { timestamps: Some(true), ..View::default() };
        let handshake = combine(&windows, None);
        assert_eq!((handshake.syn, handshake.syn_ack), (None, None));
        assert!(handshake.blind[0].contains("neither system reports it"), "{:?}", handshake.blind);
        // The far end's kernel tells for both.
        let with = SynFacts { window_scale: Some(8), ..SynFacts::default() };
        let linux = View { scaling: Some(true), own_shift: Some(7), saved_syn: Some(with), ..View::default() };
        let handshake = combine(&windows, Some(&linux));
        assert_eq!(handshake.syn.unwrap().window_scale, Some(8));
        assert_eq!(handshake.syn_ack.unwrap().window_scale, Some(7));
    }

    proptest! {
        #[test]
        fn no_packet_panics(packet in proptest::collection::vec(any::<u8>(), 0..120)) {
            let tcp_is_there = packet.len() >= 20;
            prop_assert!(tcp_is_there || parse_syn(&packet).is_none());
        }

        #[test]
        fn no_options_panic(options in proptest::collection::vec(any::<u8>(), 0..10)) {
            let mut options = options;
            options.resize(options.len().next_multiple_of(4), 0);
            prop_assert!(parse_syn(&syn(&options)).is_some());
        }
    }
}
