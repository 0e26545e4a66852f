//! The path MTU of both directions: a responder is opened over the conversation, and `fullpipe_probe` does the rest.

use std::{net::SocketAddr, time::Duration};

use fullpipe_probe::mtu::{self, FarEnd, MtuReport};
use serde_json::json;

use crate::{control::Control, error::MeasureError, patience::Patience, talk};

/// Finds the path MTU of both directions with the far end of the conversation.
pub(crate) fn probe(control: &mut Control, rtt: Duration, answer: Duration) -> Result<MtuReport, MeasureError> {
    let peer = control.peer();
    let opened = talk::ask(control, &json!({ "request": "mtu_open" }), Patience::new(answer))?;
    let bad = || MeasureError::BadMessage {
        peer,
        operation: "opening the MTU probe",
        problem: "no port or token in the answer".to_owned(),
    };
    let port = opened["port"].as_u64().and_then(|port| u16::try_from(port).ok()).ok_or_else(bad)?;
    let far = FarEnd {
        address: SocketAddr::new(peer.ip(), port),
        token: opened["token"].as_u64().ok_or_else(bad)?,
        mtu: opened["mtu"].as_u64().and_then(|mtu| u32::try_from(mtu).ok()),
    };
    let local = control.stream().local_addr().map(|local| local.ip());
    let report = local.and_then(|local| mtu::probe(local, far, rtt)).map_err(|source| MeasureError::Io {
        peer,
        operation: "probing the path MTU",
        source,
    })?;
    talk::ask(control, &json!({ "request": "mtu_close" }), Patience::new(answer))?;
    Ok(report)
}
