//! What one interval showed: what is printed, and a line of a recording.

use std::{cmp::Reverse, collections::BTreeMap, net::SocketAddr};

use fullpipe_diagnose::{Diagnosis, Limiter};
use fullpipe_units::{Bytes, Micros, Rate};
use serde::{Deserialize, Serialize};

use crate::{filter::Filter, notes::Note, owner::Owner, wire::SocketId};

/// Connections that a recording holds of each interval: some megabytes.
pub const MOST_RECORDED: usize = 1_000;

/// One interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Frame {
    /// When it ended, as RFC 3339 has it; filled by who has a calendar.
    #[serde(default)]
    pub time: Option<String>,
    /// When it ended, since the watch began; in seconds.
    pub at_s: f64,
    /// How long it was; in seconds.
    pub interval_s: f64,
    /// Connections that there were.
    pub connections: usize,
    /// Of those, connections in which payload moved or waited.
    pub active: usize,
    /// Connections that passed the filter; of these `rows` has the first ones.
    pub matching: usize,
    /// The connections, in the order that was asked for.
    pub rows: Vec<Row>,
    /// Listening sockets whose queue is full.
    #[serde(default)]
    pub listeners: Vec<Listener>,
    /// What could not be seen, and what would show it.
    #[serde(default)]
    pub missing: Vec<String>,
    /// What else there is to know of the figures, and of what was done to have them.
    #[serde(default)]
    pub remarks: Vec<String>,
}

/// One connection in one interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// This end.
    pub local: SocketAddr,
    /// The other end.
    pub peer: SocketAddr,
    /// Whose it is, where that is known.
    pub owner: Option<Owner>,
    /// The user that it belongs to.
    #[serde(default)]
    pub uid: Option<u32>,
    /// How long it has been seen; in seconds.
    pub seen_s: f64,
    /// Whether it was there before the watch began, so that it is older than that.
    pub is_older: bool,
    /// Payload acknowledged in the interval, per second; `None` where the system counts no bytes.
    pub sent_bps: Option<Rate>,
    /// Payload received in the interval, per second; `None` where the system counts no bytes.
    pub received_bps: Option<Rate>,
    /// The smoothed round trip.
    pub rtt_us: Option<Micros>,
    /// The smallest round trip that was seen.
    pub min_rtt_us: Option<Micros>,
    /// The window that the peer offers.
    pub peer_window: Option<Bytes>,
    /// The window that this end offers.
    pub own_window: Option<Bytes>,
    /// The congestion window.
    pub cwnd: Option<Bytes>,
    /// Sent and not acknowledged.
    pub in_flight: Option<Bytes>,
    /// Received and not read.
    pub unread: Bytes,
    /// Written and not acknowledged.
    pub waiting: Bytes,
    /// The send buffer's size.
    pub send_buffer: Option<Bytes>,
    /// The receive buffer's size.
    pub receive_buffer: Option<Bytes>,
    /// The largest payload of a segment.
    pub mss: Option<u32>,
    /// The congestion control.
    pub congestion_control: Option<String>,
    /// Segments retransmitted in the interval; `None` where only one look was taken.
    pub retransmissions: Option<u64>,
    /// What limited it in this interval.
    pub now: Option<Limiter>,
    /// Seconds for which each limiter held since the watch began.
    pub seconds: BTreeMap<Limiter, f64>,
    /// What the judge says of the last seconds; `None` for a connection that did nothing, or was not among the busiest.
    pub diagnosis: Option<Diagnosis>,
    /// What else there is to know.
    pub notes: Vec<Note>,
}

/// A listening socket with a full queue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Listener {
    /// Where it listens.
    pub local: SocketAddr,
    /// Whose it is.
    pub owner: Option<Owner>,
    /// Connections that wait to be accepted.
    pub waiting: u32,
    /// How many may wait.
    pub most: u32,
    /// What it means.
    pub note: Note,
}

/// An order of connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// Those that a setting or a program holds back first, the busier ones before the others.
    #[default]
    Worst,
    /// By payload rate.
    Rate,
    /// By round trip.
    Rtt,
    /// By retransmissions.
    Retransmissions,
    /// By the process's name.
    Process,
    /// The longest seen first.
    Age,
}

impl Row {
    /// Both ways together; `None` where the system counts no bytes.
    pub fn rate(&self) -> Option<Rate> {
        Some(Rate::from_bps(self.sent_bps?.bps().saturating_add(self.received_bps?.bps())))
    }

    /// Whether more came in than went out.
    pub fn is_receiving(&self) -> bool {
        self.received_bps > self.sent_bps
    }

    /// The verdict's limiter, where there is one.
    pub fn limiter(&self) -> Option<Limiter> {
        let limiter = self.diagnosis.as_ref().map(|diagnosis| diagnosis.limiter);
        limiter.filter(|limiter| *limiter != Limiter::InsufficientEvidence)
    }

    /// How urgent it is; the smaller, the more.
    fn urgency(&self) -> u8 {
        urgency(self.limiter(), self.notes.iter().any(|note| note.is_trouble))
    }

    pub(crate) fn id(&self) -> SocketId {
        SocketId { is_v6: self.local.is_ipv6(), local: self.local, peer: self.peer, interface: 0, cookie: 0 }
    }
}

/// What somebody can do something about comes first, then the network, then what is as it should be.
pub(crate) fn urgency(limiter: Option<Limiter>, is_troubled: bool) -> u8 {
    match limiter {
        Some(
            Limiter::ReceiveWindow
            | Limiter::SendBuffer
            | Limiter::AckDelay
            | Limiter::SegmentSize
            | Limiter::Reordering
            | Limiter::Handshake
            | Limiter::Cpu,
        ) => 0,
        _ if is_troubled => 0,
        Some(Limiter::CongestionWindow) => 1,
        Some(Limiter::Path) => 2,
        Some(Limiter::Application) => 3,
        Some(Limiter::InsufficientEvidence) | None => 4,
    }
}

impl Sort {
    /// Puts `rows` into this order.
    pub fn apply(self, rows: &mut [Row]) {
        match self {
            Self::Worst => rows.sort_by_key(|row| (row.urgency(), Reverse((row.rate(), row.waiting)))),
            Self::Rate => rows.sort_by_key(|row| Reverse(row.rate())),
            Self::Rtt => rows.sort_by_key(|row| Reverse(row.rtt_us)),
            Self::Retransmissions => rows.sort_by_key(|row| Reverse((row.retransmissions, row.rate()))),
            Self::Process => {
                let name = |row: &Row| row.owner.as_ref().map(|owner| (owner.process.clone(), owner.pid));
                rows.sort_by_cached_key(|row| (name(row).is_none(), name(row), Reverse(row.rate())));
            }
            Self::Age => rows.sort_by(|a, b| b.is_older.cmp(&a.is_older).then(b.seen_s.total_cmp(&a.seen_s))),
        }
    }
}

impl Frame {
    /// The same interval as another filter, order and number of rows show it: for recordings, which have more.
    pub fn narrowed(mut self, filter: &Filter, sort: Sort, limit: usize) -> Self {
        let before = self.rows.len();
        self.rows.retain(|row| filter.passes(&row.id(), row.owner.as_ref()));
        if before != self.rows.len() {
            self.matching = self.rows.len();
        }
        sort.apply(&mut self.rows);
        self.rows.truncate(limit);
        self
    }
}
