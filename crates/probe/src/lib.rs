//! Probes of a path by UDP datagrams: its MTU in both directions ([`mtu`]), and the rate that is available ([`train`]).
//!
//! Each has two sides, a `Prober` and a `Responder`. The responder answers one prober, which it knows by a token of eight
//! bytes and by its address, for a bounded time and with a bounded number of datagrams, so that it can't be used to flood
//! anybody else. How the two ends agree on address and token is *not* here: `measure` does it on a control connection, and
//! whoever has another one can do it there. Not here either: any judgement of what was found, and TCP's own path MTU
//! discovery.
//!
//! Read first: RFC 8899 (packetization layer path MTU discovery for datagrams), and for trains the papers that [`train`]
//! names.

#[cfg(any(test, fuzzing))]
pub mod fuzzing;
pub mod mtu;
mod sys;
pub mod train;

use std::io;

/// The length of the token with which each datagram begins, in bytes.
pub const TOKEN_LEN: usize = 8;

/// Whether a read or a write only met the socket's timeout (EAGAIN; Windows has WSAETIMEDOUT for it), or a signal.
#[must_use]
pub fn is_pause(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
        || cfg!(windows) && error.kind() == io::ErrorKind::TimedOut
}
