//! A conversation, from the server's side.

use std::{
    panic::{self, AssertUnwindSafe},
    time::{Duration, Instant},
};

use fullpipe_probe::{TOKEN_LEN, mtu, train};
use serde_json::{Value, json};

use super::{
    session::Session,
    sources::{self, Kind},
};
use crate::{
    error::MeasureError,
    patience::Patience,
    sys::wait,
    talk::{self, Disconnect, Ends, Hello, RequestError, RequestHandler},
    udp::Doorkeeper,
    wire::{State, TALK_LIMIT, VERSION},
};

/// A request that has begun to arrive is there within this.
const FRAME: Duration = Duration::from_secs(30);

/// Answers requests until the client leaves; returns a line for the log.
pub(super) fn converse(session: &mut Session<'_>, version: u64) -> Result<String, MeasureError> {
    session.control.write_state(State::Conversation, session.patience(), "the handshake")?;
    let outcome = answer_all(session, version);
    let (how, line) = match outcome {
        Ok(how) => (how, Ok("client disconnected".to_owned())),
        Err(MeasureError::Cancelled) => (Disconnect::ServerStopped, Err(MeasureError::Cancelled)),
        Err(error) => (Disconnect::Lost, Err(error)),
    };
    if let Some(handler) = &session.server.handler {
        handler.on_disconnect(session.peer, how);
    }
    line
}

/// How the client left.
fn answer_all(session: &mut Session<'_>, version: u64) -> Result<Disconnect, MeasureError> {
    const OPERATION: &str = "waiting for a request";
    let mut mtu_responder = None;
    let mut trains = Trains::default();
    loop {
        match wait_for_request(session) {
            // Between two requests a client may go without a word: nothing is left undone.
            Err(MeasureError::Closed { .. }) => return Ok(Disconnect::Lost),
            waited => waited?,
        }
        std::thread::sleep(session.server.hall.sources.pause(session.peer.ip(), Instant::now()));
        let request = session.control.read_json(TALK_LIMIT, Patience::new(FRAME).unless(session.stop), OPERATION)?;
        let name = request.get("request").and_then(Value::as_str).unwrap_or_default();
        let is_bye = name == "bye";
        let reply = match name {
            // A client of another version learns ours here and decides.
            "hello" => {
                let server = session.server;
                Ok(Hello::of_this_host(server.handler.is_some(), server.options.introduce))
            }
            _ if version != VERSION => Err(RequestError {
                kind: "version_mismatch".to_owned(),
                message: format!("this end speaks version {VERSION}"),
            }),
            "ping" | "bye" => Ok(Value::Null),
            "train_open" => trains.open(session),
            "train_close" => {
                trains = Trains::default();
                Ok(Value::Null)
            }
            "mtu_open" => open_mtu_responder(session, &mut mtu_responder),
            "mtu_close" => {
                mtu_responder = None;
                Ok(Value::Null)
            }
            _ => match &session.server.handler {
                Some(handler) => handle(handler.as_ref(), request, ends(session)?),
                None => Err(RequestError {
                    kind: "unknown_request".to_owned(),
                    message: "this server only measures; it grants no requests about its host".to_owned(),
                }),
            },
        };
        let is_stranger = reply.as_ref().is_err_and(|error| error.kind == RequestError::NOT_AUTHENTICATED);
        if is_stranger {
            // Before the answer: whoever has it may be here again at once.
            session.penalise(sources::WRONG_KEY);
        }
        let patience = Patience::new(FRAME).unless(session.stop);
        session.control.write_json(&talk::answer(reply), patience, "answering a request")?;
        if is_stranger {
            let problem = "its key is not the one of this server".to_owned();
            return Err(MeasureError::BadMessage { peer: session.peer, operation: "a request", problem });
        }
        if is_bye {
            return Ok(Disconnect::Bye);
        }
        trains.greet(session)?;
    }
}

/// A request handler that panics has refused; the conversation, and its duty to undo at the end, go on.
fn handle(handler: &dyn RequestHandler, request: Value, ends: Ends) -> Result<Value, RequestError> {
    let guarded = panic::catch_unwind(AssertUnwindSafe(|| handler.handle(request, ends)));
    guarded.unwrap_or_else(|_| {
        let message = "the request handler failed on this request; see the server's log".to_owned();
        Err(RequestError { kind: "internal".to_owned(), message })
    })
}

fn ends(session: &Session<'_>) -> Result<Ends, MeasureError> {
    let peer = session.peer;
    let failed = |source| MeasureError::Io { peer, operation: "asking for the server's own address", source };
    Ok(Ends { peer, local: session.control.stream().local_addr().map_err(failed)? })
}

/// The next request may be long in coming, but once it comes it comes at once. While a test of this address runs, nobody
/// waits for one: its client asks again when it has ended.
fn wait_for_request(session: &Session<'_>) -> Result<(), MeasureError> {
    const OPERATION: &str = "waiting for a request";
    const LOOK: Duration = Duration::from_secs(1);
    let idle = session.server.options.talk_idle;
    let sources = &session.server.hall.sources;
    let mut since = Instant::now();
    loop {
        let left = idle.saturating_sub(since.elapsed());
        let look = Patience::new(left.min(LOOK)).unless(session.stop);
        match session.control.wait_readable(look, OPERATION) {
            Err(MeasureError::Timeout { .. }) if sources.has(Kind::Test, session.peer.ip()) => since = Instant::now(),
            Err(MeasureError::Timeout { .. }) if since.elapsed() < idle => {}
            Err(MeasureError::Timeout { peer, operation, .. }) => {
                return Err(MeasureError::Timeout { peer, operation, after: idle });
            }
            done => return done,
        }
    }
}

/// Trains of datagrams: at first the door is held until their client greets, then a thread answers them.
#[derive(Default)]
struct Trains<'a> {
    waiting: Option<(Doorkeeper<'a>, [u8; TOKEN_LEN])>,
    responder: Option<train::Responder>,
}

impl<'a> Trains<'a> {
    fn open(&mut self, session: &Session<'a>) -> Result<Value, RequestError> {
        let refused = |kind: &str, message| RequestError { kind: kind.to_owned(), message };
        // The old one ends first, so that there is never more than one per conversation.
        *self = Self::default();
        let Some(door) = &session.server.door else {
            return Err(refused("udp_port", "the UDP port of this server is taken by another program".to_owned()));
        };
        let failed = |error: std::io::Error| refused("io", format!("opening a UDP socket: {error}"));
        let mut token = [0u8; TOKEN_LEN];
        getrandom::fill(&mut token).map_err(|error| failed(std::io::Error::other(error)))?;
        let stream = session.control.stream();
        let ends = (stream.local_addr().map_err(failed)?, stream.peer_addr().map_err(failed)?);
        let keeper = door.hold(ends, session.patience()).map_err(|error| refused(error.kind(), error.to_string()))?;
        self.waiting = Some((keeper, token));
        Ok(json!({ "token": u64::from_be_bytes(token) }))
    }

    /// Waits for the greeting of the client that was just asked to greet, in the time of one answer, since others
    /// wait meanwhile.
    fn greet(&mut self, session: &Session<'_>) -> Result<(), MeasureError> {
        let Some((keeper, token)) = self.waiting.take() else { return Ok(()) };
        let failed = |source| MeasureError::Io { peer: session.peer, operation: "waiting for datagrams", source };
        let patience = session.patience();
        // A client whose datagrams are blocked goes on with the conversation.
        while !patience.is_over() && !wait::readable(session.control.stream(), Duration::ZERO).map_err(failed)? {
            patience.check_cancelled()?;
            if let Some(socket) = keeper.answer().map_err(failed)? {
                let limit = session.server.options.max_rate;
                self.responder = Some(train::Responder::start(socket, token, limit).map_err(failed)?);
                return Ok(());
            }
        }
        Ok(())
    }
}

fn open_mtu_responder(session: &Session<'_>, responder: &mut Option<mtu::Responder>) -> Result<Value, RequestError> {
    let failed = |error: std::io::Error| RequestError {
        kind: "io".to_owned(),
        message: format!("opening a UDP socket for the MTU probe: {error}"),
    };
    // The old one ends first, so that there is never more than one per conversation.
    *responder = None;
    let local = session.control.stream().local_addr().map_err(failed)?;
    let opened = mtu::Responder::start(local.ip(), session.peer).map_err(failed)?;
    let reply = json!({ "port": opened.port(), "token": opened.token(), "mtu": opened.mtu() });
    *responder = Some(opened);
    Ok(reply)
}
