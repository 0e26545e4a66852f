//! The iperf3 wire, and the one key by which both ends know each other as fullpipe.
//!
//! One TCP port. Every connection begins with the client's cookie; the first with a cookie is the control connection,
//! the others are data connections of that test. States are single bytes on the control connection; parameters and
//! results are JSON frames (length in 32 bits, big endian). Real peers ignore keys that they don't know, so that ours
//! travel under one key, `"fullpipe"`, in the parameters and in the results.
//!
//! The second kind of session is the *conversation*: parameters with `"fullpipe": {"version": 1, "conversation": true}`
//! are answered by the state byte [`State::Conversation`], 0x46 (`F`), which iperf3 never sends, and from there on both
//! ends speak JSON frames: a request, an answer. An iperf3 server answers 0x0A instead, by which it is recognised.

mod cookie;
mod number;
mod params;
mod results;
mod series;

pub(crate) use cookie::{COOKIE_LEN, Cookie};
pub(crate) use params::{OurParams, Params};
pub(crate) use results::{Results, StreamResult};
pub(crate) use series::{decode, encode, state_named};

/// What follows the cookie on a data connection where the parameters say `"indexed": true`: the number of the stream,
/// from 0, big endian. iperf3 knows its streams by the order in which they were opened, one after another; with the number
/// a client can open all at once.
pub(crate) const INDEX_LEN: usize = 2;

/// The version of what travels under the key `fullpipe`, and of the conversation.
pub(crate) const VERSION: u64 = 1;

/// iperf3 refuses parameters beyond 8 KiB since 3.18; our own servers take somewhat longer ones, for titles and tokens
/// of other versions.
pub(crate) const PARAMS_ACCEPTED: u32 = 64 * 1024;

/// Results of 128 streams with their series stay below this by far.
pub(crate) const RESULTS_LIMIT: u32 = 16 * 1024 * 1024;

/// One frame of a conversation, either way.
pub(crate) const TALK_LIMIT: u32 = 4 * 1024 * 1024;

/// The most streams in one direction (iperf3's limit).
pub(crate) const MAX_STREAMS: u32 = 128;

/// What one of our servers takes of one of our clients: a thread and a descriptor each.
pub(crate) const MAX_OWN_STREAMS: u32 = 2_048;

/// A byte on the control connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    TestStart,
    TestRunning,
    TestEnd,
    ParamExchange,
    CreateStreams,
    ServerTerminate,
    ClientTerminate,
    ExchangeResults,
    DisplayResults,
    IperfDone,
    AccessDenied,
    ServerError,
    /// Ours: the session is a conversation.
    Conversation,
    /// Anything else.
    Unknown(u8),
}

/// The byte of each state that has a name.
const STATES: [(State, u8); 13] = [
    (State::TestStart, 1),
    (State::TestRunning, 2),
    (State::TestEnd, 4),
    (State::ParamExchange, 9),
    (State::CreateStreams, 10),
    (State::ServerTerminate, 11),
    (State::ClientTerminate, 12),
    (State::ExchangeResults, 13),
    (State::DisplayResults, 14),
    (State::IperfDone, 16),
    (State::AccessDenied, 0xff),
    (State::ServerError, 0xfe),
    (State::Conversation, b'F'),
];

impl State {
    pub(crate) fn from_byte(byte: u8) -> Self {
        STATES.iter().find(|(_, b)| *b == byte).map_or(Self::Unknown(byte), |(state, _)| *state)
    }

    pub(crate) fn to_byte(self) -> u8 {
        match self {
            Self::Unknown(byte) => byte,
            named => STATES.iter().find(|(state, _)| *state == named).map_or(0, |(_, byte)| *byte),
        }
    }
}

/// The id of the stream that was opened as number `index`, counted from 0: 1, 3, 4, 5 (iperf3 skips 2).
pub(crate) fn stream_id(index: usize) -> u32 {
    let index = u32::try_from(index).unwrap_or(u32::MAX - 2);
    if index == 0 { 1 } else { index + 2 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ids_skip_two() {
        assert_eq!((0..5).map(stream_id).collect::<Vec<_>>(), [1, 3, 4, 5, 6]);
    }

    proptest! {
        #[test]
        fn every_byte_is_a_state_and_comes_back(byte: u8) {
            prop_assert_eq!(State::from_byte(byte).to_byte(), byte);
        }
    }
}
