//! What can this host push? The fastest way to move payload, found by trying the ways that there are.
//!
//! Every way but the plain ones changes something of what a measurement is about: who wakes up when, how many messages are
//! under way at once, how long an acknowledgement waits. Hence a test that asks for it ([`crate::Client::run_max`]) begins
//! with trials in its omitted time, says what it chose and why, and goes back to plain writes or reads as soon as round
//! trip, window or retransmissions show harm. Nothing that judges a path uses it (`xtask/tests/house.rs` holds us to it).
//!
//! Not here: the system calls themselves (`sys`), and the counting (`transfer`).

#[cfg(target_os = "linux")]
mod choice;
#[cfg(target_os = "linux")]
mod pilot;
#[cfg(not(target_os = "linux"))]
#[path = "pilot_elsewhere.rs"]
mod pilot;
#[cfg(target_os = "linux")]
mod tools;

use serde::{Deserialize, Serialize};

use crate::error::clean;

pub(crate) use self::pilot::{Pilot, Piloting};
#[cfg(not(target_os = "linux"))]
pub(crate) use self::pilot::{receive, send};
#[cfg(target_os = "linux")]
pub(crate) use self::tools::{receive, send};

/// A way to move payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mechanism {
    /// One call writes one message, which the kernel copies.
    Write,
    /// One call writes several messages (`writev`).
    Gather,
    /// Messages are queued, and the kernel works the queue off (io_uring).
    Ring,
    /// Pages of a huge page go into the connection as they are (vmsplice, splice).
    Splice,
    /// A read waits for a megabyte, which the kernel discards.
    Wait,
    /// Nobody waits for payload: what has come is discarded after each short sleep.
    Drain,
}

impl Mechanism {
    /// What to call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Write => "plain writes",
            Self::Gather => "several messages in a write",
            Self::Ring => "a queue in the kernel (io_uring)",
            Self::Splice => "pages without copying (vmsplice)",
            Self::Wait => "reads that wait",
            Self::Drain => "a timed drain",
        }
    }
}

/// What one end did to be fast, for each role that it had.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Push {
    /// How it sent.
    pub sending: Option<Choice>,
    /// How it received.
    pub receiving: Option<Choice>,
}

impl Push {
    /// As it came from the far end: its texts are for a terminal.
    pub(crate) fn cleaned(mut self) -> Self {
        for choice in [&mut self.sending, &mut self.receiving].into_iter().flatten() {
            choice.reason = clean(&choice.reason);
            // There are no more mechanisms than this.
            choice.refused.truncate(8);
            choice.trials.truncate(8);
            for refused in &mut choice.refused {
                refused.reason = clean(&refused.reason);
            }
        }
        self
    }
}

/// What was tried and what came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Choice {
    /// What was used after the trials.
    pub mechanism: Mechanism,
    /// Why it was chosen.
    pub reason: String,
    /// What was measured of each.
    pub trials: Vec<Trial>,
    /// What can't be used here.
    pub refused: Vec<Refused>,
    /// Why the chosen one was left before the end.
    pub left: Option<Left>,
}

/// How one mechanism did.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Which.
    pub mechanism: Mechanism,
    /// Payload acknowledged or read in a second, in bits.
    pub rate_bps: u64,
    /// Processor seconds of this end's process for 10^9 bytes.
    pub seconds_per_gb: f64,
}

/// A mechanism that this system, or this test, does not take.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// Which.
    pub mechanism: Mechanism,
    /// What the system said.
    pub reason: String,
}

/// A mechanism was given up for the plain one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Left {
    /// After so many seconds of the transfer.
    pub at_s: f64,
    /// What it did.
    pub harm: Harm,
}

/// What a mechanism does to a connection that a plain one does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Harm {
    /// More than a thousandth more of the segments were retransmitted, or came out of order.
    Retransmissions,
    /// The round-trip time more than doubled, and by more than a millisecond.
    RoundTrip,
    /// The receiver's window held the sender back, who became slower by that.
    Window,
    /// It carries less than a plain one did.
    Rate,
}

impl Harm {
    /// As the end of a sentence.
    pub fn name(self) -> &'static str {
        match self {
            Self::Retransmissions => "segments were lost or came out of order",
            Self::RoundTrip => "the round-trip time rose",
            Self::Window => "the receiver's window held it back",
            Self::Rate => "it became slower than the plain way",
        }
    }
}
