//! Opening a session: cookie, parameters, and what to make of a peer that is no server.

use std::{
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use crate::{
    control::Control,
    error::{Foreign, HANDSHAKE, MeasureError},
    patience::Patience,
    wire::{Cookie, Params, State},
};

/// A random cookie, or why the system has none to give.
pub(super) fn cookie(peer: SocketAddr) -> Result<Cookie, MeasureError> {
    let failed = |error: getrandom::Error| MeasureError::Io {
        peer,
        operation: "drawing a random cookie for the session",
        source: std::io::Error::other(error),
    };
    Cookie::random().map_err(failed)
}

/// Sends cookie and parameters; returns what the server answered to these: CREATE_STREAMS or a conversation.
pub(super) fn open_with(
    stream: TcpStream,
    peer: SocketAddr,
    params: &Params,
    cookie: &Cookie,
    patience: Patience<'_>,
) -> Result<(Control, State), MeasureError> {
    let mut control = Control::new(stream, peer)?;
    control.write_all(cookie.as_bytes(), patience, HANDSHAKE)?;
    match control.read_state(patience, HANDSHAKE) {
        Ok(State::ParamExchange) => {}
        Ok(State::AccessDenied) => return Err(MeasureError::Busy { peer }),
        Ok(State::ServerError) => return Err(server_error(&mut control, patience)),
        Ok(other) => return Err(stranger(&mut control, &[other.to_byte()])),
        Err(MeasureError::Timeout { .. }) => return Err(provoke(&mut control)),
        Err(error) => return Err(error),
    }
    control.write_json(&params.to_json(), patience, HANDSHAKE)?;
    match control.read_state(patience, HANDSHAKE)? {
        state @ (State::CreateStreams | State::Conversation) => Ok((control, state)),
        State::AccessDenied => Err(MeasureError::Busy { peer }),
        State::ServerError => Err(server_error(&mut control, patience)),
        State::ServerTerminate => Err(MeasureError::Terminated { peer }),
        other => Err(unexpected(peer, HANDSHAKE, other)),
    }
}

/// Takes leave of an iperf3 server that waits for data connections.
pub(super) fn leave(mut control: Control) {
    let patience = Patience::new(Duration::from_secs(1));
    // The server notices the end of the connection too, only later.
    drop(control.write_state(State::ClientTerminate, patience, "leaving"));
    control.close();
}

/// Reads what follows SERVER_ERROR: two numbers, of which old servers leave out the second, or both.
pub(super) fn server_error(control: &mut Control, patience: Patience<'_>) -> MeasureError {
    let peer = control.peer();
    let patience = patience.capped(Duration::from_secs(2));
    let mut number = || {
        let mut raw = [0u8; 4];
        control.read_exact(&mut raw, patience, "reading the server's error").ok().map(|()| i32::from_be_bytes(raw))
    };
    let (code, errno) = (number().unwrap_or(0), number().unwrap_or(0));
    MeasureError::ServerError { peer, code, errno }
}

pub(super) fn unexpected(peer: SocketAddr, operation: &'static str, state: State) -> MeasureError {
    let problem = format!("the state {state:?} does not belong here");
    MeasureError::BadMessage { peer, operation, problem }
}

/// A web server waits for the end of a line; then it complains in its own language.
fn provoke(control: &mut Control) -> MeasureError {
    let patience = Patience::new(Duration::from_secs(1));
    // Whether it takes it or not, what it says decides.
    drop(control.write_all(b"\r\n\r\n", patience, HANDSHAKE));
    stranger(control, &[])
}

fn stranger(control: &mut Control, first: &[u8]) -> MeasureError {
    let patience = Patience::new(Duration::from_secs(1));
    let mut said = first.to_vec();
    let mut chunk = [0u8; 64];
    while said.len() < 64 {
        match control.read_some(&mut chunk, patience, HANDSHAKE) {
            Ok(count) if count > 0 => said.extend(chunk.iter().take(count)),
            _ => break,
        }
    }
    MeasureError::NotAServer { peer: control.peer(), foreign: Foreign::named_by(&said) }
}
