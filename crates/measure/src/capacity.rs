//! The rate that is available in each direction: a responder is opened over the conversation and greeted at the server's
//! UDP port, and `fullpipe_probe` does the rest.

use std::{
    io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket},
    sync::atomic::AtomicBool,
    time::{Duration, Instant},
};

use fullpipe_probe::{
    TOKEN_LEN,
    train::{Available, Prober},
};
use serde::Serialize;
use serde_json::json;

use crate::{
    client::{Client, Done, greet},
    control::Control,
    error::MeasureError,
    patience::Patience,
    spec::Direction,
    talk,
};

/// What rates a path takes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Capacity {
    /// In the order in which they were asked for.
    pub directions: Vec<CapacityOfDirection>,
    /// The caller stopped it before its time.
    pub cancelled: bool,
}

/// What rate one direction takes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CapacityOfDirection {
    /// Which.
    pub direction: Direction,
    /// What was found.
    #[serde(flatten)]
    pub found: Available,
}

const OPERATION: &str = "the available rate";

impl Client {
    /// Finds the rate that is available in each of the directions. `cancel` ends it early with what was found until then.
    ///
    /// # Errors
    /// The connection's; [`MeasureError::NeedsFullpipe`] with a foreign server.
    pub fn capacity(
        &mut self,
        directions: &[Direction],
        cancel: &AtomicBool,
        done: Done<'_>,
    ) -> Result<Capacity, MeasureError> {
        let answer = self.patience();
        let (peer, control) = (self.peer(), self.control(OPERATION)?);
        let rtt = control_rtt(control, answer)?;
        let reply = talk::ask(control, &json!({ "request": "train_open" }), Patience::new(answer))?;
        let token = reply["token"].as_u64().ok_or_else(|| MeasureError::BadMessage {
            peer,
            operation: OPERATION,
            problem: "no token in the answer".to_owned(),
        })?;
        let prober = open(peer, token.to_be_bytes(), rtt, Patience::new(answer).unless(cancel));
        let measured = prober.and_then(|mut prober| {
            let failed = |source| MeasureError::Io { peer, operation: OPERATION, source };
            measure(&mut prober, directions, cancel, done).map_err(failed)
        });
        let closed = talk::ask(self.control(OPERATION)?, &json!({ "request": "train_close" }), Patience::new(answer));
        let measured = measured?;
        closed?;
        Ok(measured)
    }
}

fn control_rtt(control: &mut Control, answer: Duration) -> Result<Duration, MeasureError> {
    let start = Instant::now();
    talk::ask(control, &json!({ "request": "ping" }), Patience::new(answer))?;
    Ok(start.elapsed())
}

fn open(
    peer: SocketAddr,
    token: [u8; TOKEN_LEN],
    rtt: Duration,
    patience: Patience<'_>,
) -> Result<Prober, MeasureError> {
    let failed = |source| MeasureError::Io { peer, operation: OPERATION, source };
    let any: SocketAddr = match peer {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(any).map_err(failed)?;
    socket.connect(peer).map_err(failed)?;
    greet(&socket, peer, patience)?;
    Prober::new(socket, token, rtt).map_err(failed)
}

fn measure(prober: &mut Prober, directions: &[Direction], cancel: &AtomicBool, done: Done<'_>) -> io::Result<Capacity> {
    let mut measured = Vec::new();
    for (index, &direction) in directions.iter().enumerate() {
        done(index, directions.len());
        let found = match direction {
            Direction::Up => prober.towards(cancel)?,
            Direction::Down => prober.from_there(cancel)?,
        };
        measured.push(CapacityOfDirection { direction, found: found.available });
        if found.cancelled {
            return Ok(Capacity { directions: measured, cancelled: true });
        }
    }
    Ok(Capacity { directions: measured, cancelled: false })
}
