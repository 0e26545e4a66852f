//! A conversation, from the server's side.

use std::{
    net::SocketAddr,
    panic::{self, AssertUnwindSafe},
    time::Duration,
};

use serde_json::{Value, json};

use super::session::Session;
use crate::{
    error::MeasureError,
    mtu::Echo,
    patience::Patience,
    talk::{self, Disconnect, Hello, Steward, StewardError},
    wire::{State, TALK_LIMIT, VERSION},
};

/// A request that has begun to arrive is there within this.
const FRAME: Duration = Duration::from_secs(30);

/// Answers requests until the client leaves; returns a line for the log.
pub(super) fn converse(session: &mut Session<'_>, version: u64) -> Result<String, MeasureError> {
    session.control.write_state(State::Conversation, session.patience(), "the handshake")?;
    let outcome = answer_all(session, version);
    let (how, line) = match outcome {
        Ok(()) => (Disconnect::Bye, Ok("the conversation ended".to_owned())),
        Err(MeasureError::Cancelled) => (Disconnect::ServerStopped, Err(MeasureError::Cancelled)),
        Err(error) => (Disconnect::Lost, Err(error)),
    };
    if let Some(steward) = &session.server.steward {
        steward.on_disconnect(session.peer, how);
    }
    line
}

fn answer_all(session: &mut Session<'_>, version: u64) -> Result<(), MeasureError> {
    const OPERATION: &str = "waiting for a request";
    let mut echo = None;
    loop {
        wait_for_request(session)?;
        let request = session.control.read_json(TALK_LIMIT, Patience::new(FRAME).unless(session.stop), OPERATION)?;
        let name = request.get("request").and_then(Value::as_str).unwrap_or_default();
        let is_bye = name == "bye";
        let reply = match name {
            // A client of another version learns ours here and decides.
            "hello" => Ok(Hello::of_this_host(session.server.steward.is_some())),
            _ if version != VERSION => Err(StewardError {
                kind: "version_mismatch".to_owned(),
                message: format!("this end speaks version {VERSION}"),
            }),
            "ping" | "bye" => Ok(Value::Null),
            "mtu_open" => open_echo(session, &mut echo),
            "mtu_close" => {
                echo = None;
                Ok(Value::Null)
            }
            _ => match &session.server.steward {
                Some(steward) => handle(steward.as_ref(), request, session.peer),
                None => Err(StewardError {
                    kind: "unknown_request".to_owned(),
                    message: "this server only measures; it grants no requests about its host".to_owned(),
                }),
            },
        };
        let patience = Patience::new(FRAME).unless(session.stop);
        session.control.write_json(&talk::answer(reply), patience, "answering a request")?;
        if is_bye {
            return Ok(());
        }
    }
}

/// A steward that panics has refused; the conversation, and its duty to undo at the end, go on.
fn handle(steward: &dyn Steward, request: Value, peer: SocketAddr) -> Result<Value, StewardError> {
    let guarded = panic::catch_unwind(AssertUnwindSafe(|| steward.handle(request, peer)));
    guarded.unwrap_or_else(|_| {
        let message = "the steward failed on this request; the server's own log tells more".to_owned();
        Err(StewardError { kind: "internal".to_owned(), message })
    })
}

/// The next request may be long in coming, but once it comes it comes at once.
fn wait_for_request(session: &Session<'_>) -> Result<(), MeasureError> {
    const OPERATION: &str = "waiting for a request";
    let patience = Patience::new(session.server.options.talk_idle).unless(session.stop);
    session.control.wait_readable(patience, OPERATION)
}

fn open_echo(session: &Session<'_>, echo: &mut Option<Echo>) -> Result<Value, StewardError> {
    let failed = |error: std::io::Error| StewardError {
        kind: "io".to_owned(),
        message: format!("opening a UDP socket for the MTU probe: {error}"),
    };
    // The old one ends first, so that there is never more than one per conversation.
    *echo = None;
    let local = session.control.stream().local_addr().map_err(failed)?;
    let opened = Echo::start(local.ip(), session.peer).map_err(failed)?;
    let reply = json!({ "port": opened.port(), "token": opened.token(), "mtu": opened.mtu() });
    *echo = Some(opened);
    Ok(reply)
}
