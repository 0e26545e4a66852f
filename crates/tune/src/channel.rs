//! How an order and its answer cross the network: by Noise (revision 34), pattern NNpsk0, through `snow`.
//!
//! Each order has a handshake of its own, a round trip that asks the server for a channel. The shared key is mixed in
//! before anything else, so that a stranger's first message is refused before the server has computed anything on a curve,
//! and both ends prove that they hold the key. Both draw a new key pair each time: an order can't be replayed, and whoever
//! learns the shared key later can't read what was said before. The server's address as the client reached it is in the
//! prologue, so that an order for one host opens at no other.

use std::fmt;

use base64ct::{Base64, Encoding};
use snow::{Builder, HandshakeState, TransportState};

use crate::key::Key;

const PATTERN: &str = "Noise_NNpsk0_25519_ChaChaPoly_SHA256";
/// The largest message of Noise, and the seal on each.
const LARGEST: usize = 65_535;
const SEAL: usize = 16;

/// The other end does not have this key, or it is not who it says, or what it sent was altered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unsealed;

/// A client that asked for a channel and waits for the answer.
pub(crate) struct Asked(Box<HandshakeState>);

/// What one order and its answer go through.
pub(crate) struct Channel(Box<TransportState>);

impl Asked {
    /// Asks the server at `server` for a channel; with what to send it.
    pub(crate) fn new(key: &Key, server: &str) -> Result<(Self, String), Unsealed> {
        let mut state = key.builder(&prologue(server))?.build_initiator().map_err(|_| Unsealed)?;
        let asking = message(&mut state)?;
        Ok((Self(Box::new(state)), asking))
    }

    /// The channel, by what the server answered.
    pub(crate) fn open(mut self, answer: &str) -> Result<Channel, Unsealed> {
        read(&mut self.0, answer)?;
        Channel::from_handshake(*self.0)
    }
}

impl Channel {
    /// The server's: a channel for whoever sent `asking` to it at `server`; with what to answer.
    pub(crate) fn answer(key: &Key, server: &str, asking: &str) -> Result<(Self, String), Unsealed> {
        let mut state = key.builder(&prologue(server))?.build_responder().map_err(|_| Unsealed)?;
        read(&mut state, asking)?;
        let answer = message(&mut state)?;
        Ok((Self::from_handshake(state)?, answer))
    }

    fn from_handshake(state: HandshakeState) -> Result<Self, Unsealed> {
        Ok(Self(Box::new(state.into_transport_mode().map_err(|_| Unsealed)?)))
    }

    /// Text for the other end, sealed. Its length goes in front, because a row of messages could be cut short.
    pub(crate) fn seal(&mut self, text: &str) -> Result<String, Unsealed> {
        let plain = [&(text.len() as u64).to_be_bytes(), text.as_bytes()].concat();
        let mut sealed = Vec::with_capacity(plain.len() + SEAL * (1 + plain.len() / LARGEST));
        let mut one = [0; LARGEST];
        for part in plain.chunks(LARGEST - SEAL) {
            let length = self.0.write_message(part, &mut one).map_err(|_| Unsealed)?;
            sealed.extend_from_slice(&one[..length]);
        }
        Ok(Base64::encode_string(&sealed))
    }

    /// What the other end sealed.
    pub(crate) fn open(&mut self, text: &str) -> Result<String, Unsealed> {
        let sealed = Base64::decode_vec(text).map_err(|_| Unsealed)?;
        let mut plain = Vec::with_capacity(sealed.len());
        let mut one = [0; LARGEST];
        for part in sealed.chunks(LARGEST) {
            let length = self.0.read_message(part, &mut one).map_err(|_| Unsealed)?;
            plain.extend_from_slice(&one[..length]);
        }
        let (length, text) = plain.split_first_chunk().ok_or(Unsealed)?;
        if u64::from_be_bytes(*length) != text.len() as u64 {
            return Err(Unsealed);
        }
        String::from_utf8(text.to_vec()).map_err(|_| Unsealed)
    }
}

impl Key {
    fn builder<'k>(&'k self, prologue: &'k [u8]) -> Result<Builder<'k>, Unsealed> {
        let pattern = PATTERN.parse().map_err(|_| Unsealed)?;
        let builder = Builder::new(pattern).prologue(prologue).map_err(|_| Unsealed)?;
        builder.psk(0, self.shared()).map_err(|_| Unsealed)
    }
}

/// What both ends have to agree on before they say anything.
fn prologue(server: &str) -> Vec<u8> {
    format!("fullpipe order 3\n{server}").into_bytes()
}

/// The next message of a handshake; none of them carries anything.
fn message(state: &mut HandshakeState) -> Result<String, Unsealed> {
    let mut one = [0; 96];
    let length = state.write_message(&[], &mut one).map_err(|_| Unsealed)?;
    Ok(Base64::encode_string(&one[..length]))
}

fn read(state: &mut HandshakeState, text: &str) -> Result<(), Unsealed> {
    let mut one = [0; 96];
    let bytes = Base64::decode(text, &mut one).map_err(|_| Unsealed)?;
    state.read_message(bytes, &mut []).map_err(|_| Unsealed).map(drop)
}

impl fmt::Debug for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Asked(..)")
    }
}

impl fmt::Debug for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Channel(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVER: &str = "192.0.2.1:5201";

    fn key() -> Key {
        Key::from_text("a long enough key")
    }

    /// A client's channel and the server's.
    fn pair() -> (Channel, Channel) {
        let (asked, asking) = Asked::new(&key(), SERVER).unwrap();
        let (server, answer) = Channel::answer(&key(), SERVER, &asking).unwrap();
        (asked.open(&answer).unwrap(), server)
    }

    #[test]
    fn what_one_end_sealed_the_other_opens_whatever_its_length() {
        for length in [0, 1, LARGEST - SEAL - 8, LARGEST - SEAL - 7, LARGEST, 400_000] {
            let (mut client, mut server) = pair();
            let order = "o".repeat(length);
            assert_eq!(server.open(&client.seal(&order).unwrap()).unwrap(), order);
            let answer = "a".repeat(length);
            assert_eq!(client.open(&server.seal(&answer).unwrap()).unwrap(), answer);
        }
    }

    #[test]
    fn whoever_listens_reads_nothing_of_an_order() {
        let (mut client, mut server) = pair();
        let text = "net.ipv4.tcp_rmem 4096 131072 7000000";
        let [order, answer] = [client.seal(text).unwrap(), server.seal(text).unwrap()];
        for sealed in [&order, &answer] {
            let bytes = Base64::decode_vec(sealed).unwrap();
            assert!(!bytes.windows(8).any(|part| text.as_bytes().windows(8).any(|of| part == of)));
        }
        let (mut again, _) = pair();
        assert_ne!(order, again.seal(text).unwrap(), "the same order is another one each time");
    }

    #[test]
    fn nobody_without_the_key_and_no_other_server_gets_a_channel() {
        let (asked, asking) = Asked::new(&key(), SERVER).unwrap();
        let other = Key::from_text("another long key!");
        assert_eq!(Channel::answer(&other, SERVER, &asking).unwrap_err(), Unsealed);
        assert_eq!(Channel::answer(&key(), "192.0.2.2:5201", &asking).unwrap_err(), Unsealed);
        for wrong in ["", "AAAA", "no base64!", &"A".repeat(4_000), &asking[4..]] {
            assert_eq!(Channel::answer(&key(), SERVER, wrong).unwrap_err(), Unsealed, "{wrong}");
        }
        // A server that has another key can't answer for this one.
        let (_, stranger) = Asked::new(&other, SERVER).unwrap();
        assert_eq!(asked.open(&stranger).unwrap_err(), Unsealed);
    }

    #[test]
    fn an_order_is_neither_altered_nor_cut_nor_replayed_nor_turned_back() {
        let damages: [fn(&mut Vec<u8>); 6] = [
            |bytes| bytes[0] ^= 1,
            |bytes| bytes[70_000] ^= 1,
            |bytes| bytes.truncate(LARGEST),
            |bytes| drop(bytes.drain(..LARGEST)),
            |bytes| bytes.extend([0; 20]),
            Vec::clear,
        ];
        for damage in damages {
            let (mut client, mut server) = pair();
            let mut bytes = Base64::decode_vec(&client.seal(&"x".repeat(100_000)).unwrap()).unwrap();
            damage(&mut bytes);
            assert_eq!(server.open(&Base64::encode_string(&bytes)).unwrap_err(), Unsealed);
        }
        let (mut client, mut server) = pair();
        let sealed = client.seal("keep 7").unwrap();
        assert_eq!(client.open(&sealed).unwrap_err(), Unsealed, "an order is no answer");
        assert_eq!(server.open(&sealed).unwrap(), "keep 7");
        assert_eq!(server.open(&sealed).unwrap_err(), Unsealed, "once");
        let (_, mut later) = pair();
        assert_eq!(later.open(&sealed).unwrap_err(), Unsealed, "nor in another session");
    }

    #[test]
    fn a_first_message_that_is_said_again_opens_nothing() {
        let (asked, asking) = Asked::new(&key(), SERVER).unwrap();
        let (_, answer) = Channel::answer(&key(), SERVER, &asking).unwrap();
        let (mut again, _) = Channel::answer(&key(), SERVER, &asking).unwrap();
        let order = asked.open(&answer).unwrap().seal("keep 7").unwrap();
        assert_eq!(again.open(&order).unwrap_err(), Unsealed);
    }
}
