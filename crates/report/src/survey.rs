//! What `measure` found with several tests that answer one question.

use std::net::SocketAddr;

use fullpipe_measure::{Capacity, ExchangeReport, MtuReport, PeerKind, SizeRow, StreamsRow, TcpMtu, UnderLoad};

/// The answer; what was not asked is empty.
#[derive(Clone, Debug)]
pub struct Survey {
    /// The far end, as the user named it.
    pub host: String,
    /// Its address.
    pub peer: SocketAddr,
    /// What it is.
    pub peer_kind: PeerKind,
    /// The caller stopped it before its time.
    pub cancelled: bool,
    /// By message size.
    pub sizes: Vec<SizeRow>,
    /// By number of connections.
    pub streams: Vec<StreamsRow>,
    /// Requests and responses, a pair of sizes each.
    pub exchanges: Vec<ExchangeReport>,
    /// Round trips without and with load.
    pub under_load: Option<UnderLoad>,
    /// The path MTU of both directions.
    pub mtu: Option<MtuReport>,
    /// What TCP makes of it, a direction each.
    pub tcp_mtu: Vec<TcpMtu>,
    /// The rate that is available.
    pub capacity: Option<Capacity>,
}

impl Survey {
    /// Nothing yet.
    pub fn new(host: &str, peer: SocketAddr, peer_kind: PeerKind) -> Self {
        Self {
            host: host.to_owned(),
            peer,
            peer_kind,
            cancelled: false,
            sizes: Vec::new(),
            streams: Vec::new(),
            exchanges: Vec::new(),
            under_load: None,
            mtu: None,
            tcp_mtu: Vec::new(),
            capacity: None,
        }
    }
}
