//! What is simulated: a path, two hosts, an application.

use fullpipe_path::PathSpec;
use fullpipe_tcp::profile::Profile;
use fullpipe_units::{Bytes, Micros, Rate};
use thiserror::Error;

use crate::{Application, Reader, platform};

/// The receive buffer of a host, in payload: the window that it offers follows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiveBuffer {
    /// At the start.
    pub initial: Bytes,
    /// The largest that it grows to; `initial` where it does not grow.
    pub max: Bytes,
    /// The application set it (`SO_RCVBUF`).
    pub pinned: bool,
}

/// The send buffer of a host, in payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendBuffer {
    /// At the start.
    pub initial: Bytes,
    /// The largest that it grows to; `initial` where it does not grow.
    pub max: Bytes,
    /// The application set it (`SO_SNDBUF`).
    pub pinned: bool,
    /// A writer that waits for room is woken when a third of it is free (Linux, `sk_stream_is_writeable`); otherwise as
    /// soon as there is any.
    pub wakes_at_third: bool,
    /// A segment that was begun is filled, up to 64 KB of payload, whatever the limit says: Linux looks for room only before
    /// it begins the next one (`tcp_sendmsg`).
    pub fills_segments: bool,
}

/// One end.
#[derive(Clone, Debug)]
pub struct HostSpec {
    /// The platform's name in catalogue spelling.
    pub platform: String,
    /// The engine's policy. Its budgets are overridden by the two buffers unless `budgets` says otherwise.
    pub profile: Profile,
    /// What it offers as a receiver.
    pub receive: ReceiveBuffer,
    /// What it holds as a sender.
    pub send: SendBuffer,
    /// A host that never answers acknowledges a pushed segment as soon as its application has read everything (Linux,
    /// `tcp_cleanup_rbuf`).
    pub acks_when_read: bool,
    /// The profile's budgets count as they are: small devices, whose settings are numbers of packet buffers.
    pub budgets: bool,
    /// `TCP_NODELAY`.
    pub no_nagle: bool,
    /// The interface's MTU, where it is smaller than the path's own.
    pub mtu: Option<u16>,
    /// How long the device is busy with each packet.
    pub per_packet: Micros,
}

impl HostSpec {
    /// A host as `platform` comes.
    ///
    /// # Errors
    /// The platform is unknown.
    pub fn named(name: &str) -> Result<Self, SimError> {
        Ok(platform(name)?.host())
    }
}

/// Traffic that takes no notice of anything, as a call or a video does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cross {
    /// Its mean rate, in IP bytes.
    pub rate: Rate,
    /// The length of its packets in bytes, IP headers included.
    pub packet: u32,
}

/// A whole simulation.
#[derive(Clone, Debug)]
pub struct Spec {
    /// What lies between the hosts.
    pub path: PathSpec,
    /// Decides every random element.
    pub seed: u64,
    /// Packets of others that went towards the receiver and towards the sender before: which packets are lost depends on it.
    pub went_before: [u32; 2],
    /// Host `a`, which sends, and host `b`, which receives. The path's direction `a->b` carries the payload.
    pub sender: HostSpec,
    /// See `sender`.
    pub receiver: HostSpec,
    /// Names of the two for reports.
    pub names: [String; 2],
    /// Whether the receiver opens the connection (a download).
    pub receiver_opens: bool,
    /// What the sending application does.
    pub application: Application,
    /// What the receiving application does.
    pub reader: Reader,
    /// Connections of this kind at the same bottleneck, at least one; the first is observed, the others take their share.
    pub flows: u32,
    /// Traffic of others in the direction of the payload, which yields to nothing.
    pub cross: Option<Cross>,
    /// Payload to send; without end where it is absent.
    pub bytes: Option<Bytes>,
    /// The longest virtual time, counted from the established connection.
    pub time: Micros,
    /// Time at the start that the steady rate leaves out.
    pub omit: Micros,
    /// Whether packets are kept for capture files, of either end.
    pub capture: bool,
    /// Whether the timeline is kept; a sweep only needs totals.
    pub series: bool,
}

impl Spec {
    /// Ten seconds of a bulk transfer from one host to another, the sender opening.
    pub fn new(path: PathSpec, sender: HostSpec, receiver: HostSpec) -> Self {
        Self {
            path,
            seed: 1,
            went_before: [0; 2],
            sender,
            receiver,
            names: ["sender".to_owned(), "receiver".to_owned()],
            receiver_opens: false,
            application: Application::BULK,
            reader: Reader::Eager,
            flows: 1,
            cross: None,
            bytes: None,
            time: Micros::from_secs(10),
            omit: Micros::ZERO,
            capture: false,
            series: true,
        }
    }
}

/// Why something can't be simulated.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum SimError {
    /// A name that is none.
    #[error("unknown {what} {name:?}{}; known are {known}", nearest.as_ref().map(|n| format!(", did you mean {n:?}?")).unwrap_or_default())]
    Unknown {
        /// Of what.
        what: &'static str,
        /// The name.
        name: String,
        /// The known one that is spelt most like it.
        nearest: Option<String>,
        /// All known ones.
        known: String,
    },
    /// A value out of range.
    #[error("{key} can't be {value}: {reason}")]
    Value {
        /// Of which setting.
        key: String,
        /// The value.
        value: String,
        /// Why.
        reason: String,
    },
    /// The engine refuses.
    #[error("the connection could not be opened: {0}")]
    Open(String),
}

impl SimError {
    pub(crate) fn value(key: &str, value: impl ToString, reason: impl Into<String>) -> Self {
        Self::Value { key: key.to_owned(), value: value.to_string(), reason: reason.into() }
    }

    pub(crate) fn unknown<'a>(what: &'static str, name: &str, known: impl Iterator<Item = &'a str> + Clone) -> Self {
        let near = known.clone().map(|one| (distance(name, one), one)).min();
        let nearest = near.filter(|(far, one)| *far <= one.len().max(3) / 2).map(|(_, one)| one.to_owned());
        Self::Unknown { what, name: name.to_owned(), nearest, known: known.collect::<Vec<_>>().join(", ") }
    }
}

/// Edits that make one word of the other (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
