//! The control connection: single bytes, exact reads and JSON frames, each within a deadline and a size.

use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use fullpipe_probe::is_pause;
use serde_json::Value;

use crate::{error::MeasureError, patience::Patience, wire::State};

/// One control connection, or one conversation.
#[derive(Debug)]
pub(crate) struct Control {
    stream: TcpStream,
    peer: SocketAddr,
}

impl Control {
    /// Small messages go out at once.
    pub(crate) fn new(stream: TcpStream, peer: SocketAddr) -> Result<Self, MeasureError> {
        let failed = |source| MeasureError::Io { peer, operation: "preparing the control connection", source };
        stream.set_nodelay(true).map_err(failed)?;
        Ok(Self { stream, peer })
    }

    pub(crate) fn peer(&self) -> SocketAddr {
        self.peer
    }

    pub(crate) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    pub(crate) fn into_stream(self) -> TcpStream {
        self.stream
    }

    pub(crate) fn read_exact(
        &mut self,
        buffer: &mut [u8],
        patience: Patience<'_>,
        operation: &'static str,
    ) -> Result<(), MeasureError> {
        let mut filled = 0;
        while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match self.read_some(rest, patience, operation)? {
                0 => return Err(MeasureError::Closed { peer: self.peer, operation }),
                count => filled += count,
            }
        }
        Ok(())
    }

    /// At least one byte; zero only where the peer closed.
    pub(crate) fn read_some(
        &mut self,
        buffer: &mut [u8],
        patience: Patience<'_>,
        operation: &'static str,
    ) -> Result<usize, MeasureError> {
        while !patience.is_over() {
            patience.check_cancelled()?;
            self.stream.set_read_timeout(Some(patience.slice())).map_err(|e| self.failed(operation, e))?;
            match self.stream.read(buffer) {
                Err(error) if is_pause(&error) => {}
                other => return other.map_err(|error| self.failed(operation, error)),
            }
        }
        Err(MeasureError::Timeout { peer: self.peer, operation, after: patience.total() })
    }

    /// Waits until the peer has said something that is not read yet.
    pub(crate) fn wait_readable(&self, patience: Patience<'_>, operation: &'static str) -> Result<(), MeasureError> {
        while !patience.is_over() {
            patience.check_cancelled()?;
            self.stream.set_read_timeout(Some(patience.slice())).map_err(|e| self.failed(operation, e))?;
            match self.stream.peek(&mut [0u8]) {
                Ok(0) => return Err(MeasureError::Closed { peer: self.peer, operation }),
                Ok(_) => return Ok(()),
                Err(error) if is_pause(&error) => {}
                Err(error) => return Err(self.failed(operation, error)),
            }
        }
        Err(MeasureError::Timeout { peer: self.peer, operation, after: patience.total() })
    }

    /// What the peer has said by now; `None` where it said nothing within `wait`.
    pub(crate) fn poll_state(&mut self, wait: Duration) -> Result<Option<State>, MeasureError> {
        const OPERATION: &str = "waiting during the test";
        let mut byte = [0u8];
        self.stream
            .set_read_timeout(Some(wait.max(Duration::from_millis(1))))
            .map_err(|error| self.failed(OPERATION, error))?;
        match self.stream.read(&mut byte) {
            Ok(0) => Err(MeasureError::Closed { peer: self.peer, operation: OPERATION }),
            Ok(_) => Ok(Some(State::from_byte(byte[0]))),
            Err(error) if is_pause(&error) => Ok(None),
            Err(error) => Err(self.failed(OPERATION, error)),
        }
    }

    pub(crate) fn read_state(
        &mut self,
        patience: Patience<'_>,
        operation: &'static str,
    ) -> Result<State, MeasureError> {
        let mut byte = [0u8];
        self.read_exact(&mut byte, patience, operation)?;
        Ok(State::from_byte(byte[0]))
    }

    pub(crate) fn write_all(
        &mut self,
        mut bytes: &[u8],
        patience: Patience<'_>,
        operation: &'static str,
    ) -> Result<(), MeasureError> {
        while !bytes.is_empty() {
            patience.check_cancelled()?;
            if patience.is_over() {
                return Err(MeasureError::Timeout { peer: self.peer, operation, after: patience.total() });
            }
            // Windows does not tell how much of a write was done that timed out: there it gets all the time there is.
            let wait = if cfg!(windows) { patience.left().max(patience.slice()) } else { patience.slice() };
            self.stream.set_write_timeout(Some(wait)).map_err(|e| self.failed(operation, e))?;
            match self.stream.write(bytes) {
                Ok(count) => bytes = bytes.get(count..).unwrap_or_default(),
                Err(error) if is_pause(&error) => {}
                Err(error) => return Err(self.failed(operation, error)),
            }
        }
        Ok(())
    }

    pub(crate) fn write_state(
        &mut self,
        state: State,
        patience: Patience<'_>,
        operation: &'static str,
    ) -> Result<(), MeasureError> {
        self.write_all(&[state.to_byte()], patience, operation)
    }

    /// A JSON frame: the length in 32 bits, big endian, and the text.
    pub(crate) fn read_json(
        &mut self,
        limit: u32,
        patience: Patience<'_>,
        operation: &'static str,
    ) -> Result<Value, MeasureError> {
        let mut length = [0u8; 4];
        self.read_exact(&mut length, patience, operation)?;
        let length = u32::from_be_bytes(length);
        if length > limit {
            let (bytes, limit) = (u64::from(length), u64::from(limit));
            return Err(MeasureError::TooLarge { peer: self.peer, operation, bytes, limit });
        }
        // Grows as bytes arrive, so that a mere announcement costs no memory.
        let mut text = Vec::new();
        let mut chunk = [0u8; 16 * 1024];
        while text.len() < length as usize {
            let want = chunk.len().min(length as usize - text.len());
            let Some(part) = chunk.get_mut(..want) else { break };
            self.read_exact(part, patience, operation)?;
            text.extend_from_slice(part);
        }
        serde_json::from_slice(&text).map_err(|error| MeasureError::BadMessage {
            peer: self.peer,
            operation,
            problem: format!("not JSON: {error}"),
        })
    }

    pub(crate) fn write_json(
        &mut self,
        value: &Value,
        patience: Patience<'_>,
        operation: &'static str,
    ) -> Result<(), MeasureError> {
        let text = value.to_string();
        let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
        // One write, so that the length does not travel in a segment of its own.
        let mut frame = length.to_be_bytes().to_vec();
        frame.extend_from_slice(text.as_bytes());
        self.write_all(&frame, patience, operation)
    }

    /// Says "no more" and reads what is left, so that the last byte is not lost to a reset.
    pub(crate) fn close(mut self) {
        let patience = Patience::new(Duration::from_secs(1));
        if self.stream.shutdown(std::net::Shutdown::Write).is_err() {
            return;
        }
        let mut rest = [0u8; 512];
        while matches!(self.read_some(&mut rest, patience, "closing"), Ok(count) if count > 0) {}
    }

    fn failed(&self, operation: &'static str, source: io::Error) -> MeasureError {
        let peer = self.peer;
        match source.kind() {
            io::ErrorKind::ConnectionReset
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::UnexpectedEof => MeasureError::Closed { peer, operation },
            io::ErrorKind::TimedOut | io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => {
                MeasureError::Unreachable { peer, source }
            }
            _ => MeasureError::Io { peer, operation, source },
        }
    }
}
