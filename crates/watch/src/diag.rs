//! The `sock_diag` socket: asks, and hands each answer over as it comes, so that a dump of any size needs one buffer.

use std::io;

use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_SOCK_DIAG};

use crate::{
    watcher::WatchError,
    wire::{self, Answer, Reading, SocketId},
};

/// More than the kernel puts into one datagram of a dump (32 KB, `netlink_dump`).
const BUFFER: usize = 128 << 10;

const ENOENT: i32 = 2;
const EPERM: i32 = 1;

/// A connection with the kernel's tables of sockets of one network namespace.
pub(crate) struct Diag {
    socket: Socket,
    buffer: Vec<u8>,
    sequence: u32,
}

impl Diag {
    /// Connects in the calling thread's present network namespace, and stays there.
    pub(crate) fn open() -> Result<Self, WatchError> {
        let open = || {
            let mut socket = Socket::new(NETLINK_SOCK_DIAG)?;
            socket.bind_auto()?;
            socket.connect(&SocketAddr::new(0, 0))?;
            Ok(socket)
        };
        // A kernel without netlink diagnostics does not know the protocol.
        let socket = open().map_err(|source: io::Error| match source.kind() {
            io::ErrorKind::Unsupported => WatchError::NoDiag,
            _ if source.raw_os_error() == Some(93) => WatchError::NoDiag,
            _ => WatchError::System { operation: "opening a sock_diag socket", source },
        })?;
        Ok(Self { socket, buffer: vec![0; BUFFER], sequence: 0 })
    }

    /// Every TCP socket.
    pub(crate) fn all(&mut self, each: &mut dyn FnMut(&Reading<'_>)) -> Result<(), WatchError> {
        self.sequence = self.sequence.wrapping_add(1);
        self.send(&wire::ask_all(self.sequence))?;
        loop {
            let len = self.receive()?;
            for answer in wire::answers(&self.buffer[..len], self.sequence) {
                match answer {
                    Answer::Socket(reading) => each(&reading),
                    Answer::Done => return Ok(()),
                    Answer::Refused(number) => return Err(refused(number)),
                }
            }
        }
    }

    /// One socket; false where it is gone.
    pub(crate) fn one(&mut self, id: &SocketId, each: &mut dyn FnMut(&Reading<'_>)) -> Result<bool, WatchError> {
        self.sequence = self.sequence.wrapping_add(1);
        self.send(&wire::ask_one(id, self.sequence))?;
        loop {
            let len = self.receive()?;
            match wire::answers(&self.buffer[..len], self.sequence).next() {
                Some(Answer::Socket(reading)) => {
                    each(&reading);
                    return Ok(true);
                }
                Some(Answer::Done | Answer::Refused(_)) => return Ok(false),
                // Left over from an earlier question.
                None => {}
            }
        }
    }

    fn send(&self, request: &[u8]) -> Result<(), WatchError> {
        let sent = self.socket.send(request, 0);
        sent.map(drop).map_err(|source| WatchError::System { operation: "asking sock_diag", source })
    }

    fn receive(&mut self) -> Result<usize, WatchError> {
        loop {
            match self.socket.recv(&mut &mut self.buffer[..], 0) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(WatchError::System { operation: "reading sock_diag", source }),
                Ok(0) => return Err(WatchError::NoDiag),
                Ok(len) => return Ok(len),
            }
        }
    }
}

fn refused(number: i32) -> WatchError {
    match number {
        // No module for this family or protocol, and none could be loaded.
        ENOENT => WatchError::NoDiag,
        EPERM => WatchError::Denied,
        _ => WatchError::System { operation: "asking sock_diag", source: io::Error::from_raw_os_error(number) },
    }
}
