//! What two machines say to each other about settings: requests, and their answers.
//!
//! Changing needs the server's consent (`serve --allow-tune`) and the shared key, and what is not confirmed with `keep`
//! is undone when the conversation ends, however it ends. Reading takes the key as well, unless the server shares its
//! settings with everybody. Orders and the answers to them go through a [`Channel`](crate::channel::Channel).

use std::net::SocketAddr;

use fullpipe_knobs::{Change, Settings};
use serde::{Deserialize, Serialize};

use crate::end::{Kept, Stay};

/// An end of a connection as both ends write it.
pub(crate) fn address(end: SocketAddr) -> String {
    SocketAddr::new(end.ip().to_canonical(), end.port()).to_string()
}

/// A request in a conversation, beside those that `measure` answers itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case")]
pub(crate) enum Request {
    /// The settings of the far host.
    Settings,
    /// A channel for the next order.
    Channel {
        /// The server as the client reached it, which the server compares with where it was reached: address and port.
        to: String,
        /// The first message of a handshake.
        asking: String,
    },
    /// An order.
    Order {
        /// The JSON text of an [`Order`], sealed.
        sealed: String,
    },
}

/// What the far host shall do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Order {
    /// Report the settings of this host.
    Settings,
    /// Put these changes in force, on trial.
    Apply {
        /// In this order.
        changes: Vec<Change>,
        /// For how long, if the trial is kept.
        stay: Stay,
        /// Seconds after which the host takes them back by itself.
        within_s: u32,
    },
    /// Undo the trial with this number, or, of a conversation that is over, the run that it kept.
    Undo(i64),
    /// Leave the trial with this number in force for so many seconds, and after that only if somebody confirms it there.
    Hold {
        /// The number.
        run: i64,
        /// Seconds.
        within_s: u32,
    },
    /// Keep the trial with this number: from now on only `fullpipe undo` there takes it back.
    Keep(i64),
}

/// The answer to a [`Request`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    /// To `Settings`.
    Settings(Box<Settings>),
    /// To `Channel`: the second message of the handshake.
    Channel(String),
    /// To an order to apply: the number of the trial, and each change's value as read back.
    Applied {
        /// The journal's number of the run; absent where everything was in force already.
        run: Option<i64>,
        /// Read back, in the order of the changes.
        read_back: Vec<Option<String>>,
    },
    /// To an order to undo: how many settings were written back.
    Undone(usize),
    /// To an order to keep: for how long it lasts there.
    Kept(Kept),
    /// To an order to hold: for so many seconds.
    Held(u32),
    /// To an order: the JSON text of the answer proper, an [`Answer`], sealed.
    Sealed(String),
    /// The request was understood and not carried out.
    Refused {
        /// Why, and the way out.
        reason: String,
    },
}
