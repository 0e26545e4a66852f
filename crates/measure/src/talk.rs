//! The conversation: requests and answers as JSON frames, one at a time.
//!
//! A request is an object with the name under `request`; an answer is `{"ok": ..}` or
//! `{"error": {"kind": .., "message": ..}}`. `hello`, `ping`, `mtu_open`, `mtu_close` and `bye` are answered here; all
//! other names go to the server's [`RequestHandler`].

use std::net::SocketAddr;

use serde_json::{Value, json};

use crate::{
    control::Control,
    error::{MeasureError, clean},
    patience::Patience,
    sys::host,
    wire::{TALK_LIMIT, VERSION},
};

/// Answers the requests that measuring knows nothing of, with an authentication of its own.
///
/// Called from the thread of the conversation; several conversations call at the same time. The address and port of the
/// client's end name the conversation until [`RequestHandler::on_disconnect`].
pub trait RequestHandler: Send + Sync {
    /// Answers one request.
    ///
    /// # Errors
    /// Whatever the request can't be granted for; kind and message travel to the client.
    fn handle(&self, request: Value, ends: Ends) -> Result<Value, RequestError>;

    /// The conversation is over. Called once per conversation, whether it ever asked for something or not.
    fn on_disconnect(&self, peer: SocketAddr, how: Disconnect);
}

/// The two ends of a conversation's connection, as the server has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    /// The client's.
    pub peer: SocketAddr,
    /// Where the client reached the server.
    pub local: SocketAddr,
}

/// How a conversation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disconnect {
    /// The client took its leave.
    Bye,
    /// The connection ended without a word, or its client said something that is no request.
    Lost,
    /// The server was stopped.
    ServerStopped,
}

/// Why a request handler did not grant a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct RequestError {
    /// A word for programs: `unknown_request`, [`RequestError::NOT_AUTHENTICATED`], ...
    pub kind: String,
    /// The reason, for persons.
    pub message: String,
}

impl RequestError {
    /// The kind of a request whose key is wrong: it counts against the address that it came from, and ends the conversation,
    /// so that a key is tried once for each connection.
    pub const NOT_AUTHENTICATED: &str = "not_authenticated";

    /// A request whose key is wrong.
    pub fn not_authenticated(message: &str) -> Self {
        Self { kind: Self::NOT_AUTHENTICATED.to_owned(), message: message.to_owned() }
    }
}

/// What a fullpipe server says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hello {
    /// The version of the conversation.
    pub version: u64,
    /// The version of its program.
    pub program: String,
    /// Its host name.
    pub host: String,
    /// Its platform in catalogue spelling.
    pub platform: String,
    /// The congestion control that its sockets get.
    pub congestion_control: Option<String>,
    /// The congestion controls that it has.
    pub available: Vec<String>,
    /// Whether it has a request handler, so that its settings can be asked for.
    pub takes_requests: bool,
}

impl Hello {
    /// `introduce`: with what tells this host from others.
    pub(crate) fn of_this_host(takes_requests: bool, introduce: bool) -> Value {
        if !introduce {
            return json!({ "version": VERSION, "program": env!("CARGO_PKG_VERSION"), "takes_requests": takes_requests });
        }
        json!({
            "version": VERSION,
            "program": env!("CARGO_PKG_VERSION"),
            "host": host::name(),
            "platform": host::platform(),
            "congestion_control": host::congestion_control(),
            "available": host::available_congestion_controls(),
            "takes_requests": takes_requests,
        })
    }

    pub(crate) fn from_json(peer: SocketAddr, value: &Value) -> Result<Self, MeasureError> {
        let text = |key| value.get(key).and_then(Value::as_str).map(clean);
        let words = value.get("available").and_then(Value::as_array);
        let version = value.get("version").and_then(Value::as_u64).unwrap_or(0);
        if version != VERSION {
            return Err(MeasureError::VersionMismatch { peer, theirs: version, ours: VERSION });
        }
        Ok(Self {
            version,
            program: text("program").unwrap_or_default(),
            host: text("host").unwrap_or_default(),
            platform: text("platform").unwrap_or_default(),
            congestion_control: text("congestion_control"),
            available: words.into_iter().flatten().take(64).filter_map(Value::as_str).map(clean).collect(),
            takes_requests: value
                .get("takes_requests")
                .or_else(|| value.get("steward"))
                .and_then(Value::as_bool)
                .unwrap_or(false),
        })
    }
}

/// One request and its answer.
pub(crate) fn ask(control: &mut Control, request: &Value, patience: Patience<'_>) -> Result<Value, MeasureError> {
    const OPERATION: &str = "a request";
    control.write_json(request, patience, OPERATION)?;
    let mut answer = control.read_json(TALK_LIMIT, patience, OPERATION)?;
    if let Some(ok) = answer.get_mut("ok") {
        return Ok(ok.take());
    }
    let peer = control.peer();
    let text = |value: Option<&Value>, other: &str| clean(value.and_then(Value::as_str).unwrap_or(other));
    match answer.get("error") {
        Some(error) => Err(MeasureError::Refusal {
            peer,
            request: text(request.get("request"), "?"),
            kind: text(error.get("kind"), "unknown"),
            message: text(error.get("message"), "no reason given"),
        }),
        None => {
            let problem = "the answer is neither `ok` nor `error`".to_owned();
            Err(MeasureError::BadMessage { peer, operation: OPERATION, problem })
        }
    }
}

pub(crate) fn answer(outcome: Result<Value, RequestError>) -> Value {
    match outcome {
        Ok(value) => json!({ "ok": value }),
        Err(error) => json!({ "error": { "kind": error.kind, "message": error.message } }),
    }
}
