//! What is in force only as long as a process runs, and sockets of other processes, as the journal has them.
//!
//! What `unpin` attaches ends with its process, however that ends; a socket that it gave back to automatic sizing stays so until
//! its buffers are put back or it is closed. What is *not* here: attaching programs, and finding those sockets (`cli`, `bpf`, `watch`).

use std::{fmt, io, str::FromStr};

use crate::{
    EntryKind, EntryState, Identity, Journal, JournalError, RunId,
    journal::{Intent, Start},
};

/// What a process has in force, as an entry's place has it: `calls of nginx swallowed by process 12 started 3456`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// What it is, for people.
    pub what: String,
    /// The process.
    pub pid: u32,
    /// When that process was started, in ticks since the start of the machine: numbers come again.
    pub start: u64,
}

/// A socket of another process, as an entry's place has it: `socket 4711 of process 12, descriptor 5`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldSocket {
    /// Its inode.
    pub inode: u32,
    /// The process.
    pub pid: u32,
    /// The descriptor there.
    pub fd: u32,
}

/// The buffers that an application set, as the kernel counts: `SO_SNDBUF 131072, SO_RCVBUF 131072`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FixedBuffers {
    /// The send buffer.
    pub send: Option<u32>,
    /// The receive buffer.
    pub receive: Option<u32>,
}

/// What a socket is that nobody set buffers of.
pub(crate) const AUTOMATIC: &str = "automatic";

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} by process {} started {}", self.what, self.pid, self.start)
    }
}

impl FromStr for Program {
    /// What was to be such a place.
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts = || {
            let (what, process) = text.rsplit_once(" by process ")?;
            let (pid, start) = process.split_once(" started ")?;
            Some(Self { what: what.to_owned(), pid: pid.parse().ok()?, start: start.parse().ok()? })
        };
        parts().ok_or_else(|| text.to_owned())
    }
}

impl fmt::Display for HeldSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "socket {} of process {}, descriptor {}", self.inode, self.pid, self.fd)
    }
}

impl FromStr for HeldSocket {
    /// What was to be such a place.
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts = || {
            let (inode, process) = text.strip_prefix("socket ")?.split_once(" of process ")?;
            let (pid, fd) = process.split_once(", descriptor ")?;
            Some(Self { inode: inode.parse().ok()?, pid: pid.parse().ok()?, fd: fd.parse().ok()? })
        };
        parts().ok_or_else(|| text.to_owned())
    }
}

impl fmt::Display for FixedBuffers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [("SO_SNDBUF", self.send), ("SO_RCVBUF", self.receive)];
        let texts = parts.iter().filter_map(|(name, size)| Some(format!("{name} {}", (*size)?)));
        f.write_str(&texts.collect::<Vec<_>>().join(", "))
    }
}

impl FromStr for FixedBuffers {
    /// What was to be such buffers.
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut buffers = Self::default();
        for part in text.split(", ") {
            let place = match part.split_once(' ') {
                Some(("SO_SNDBUF", size)) => Some((&mut buffers.send, size)),
                Some(("SO_RCVBUF", size)) => Some((&mut buffers.receive, size)),
                _ => None,
            };
            let (place, size) = place.ok_or_else(|| text.to_owned())?;
            *place = Some(size.parse().map_err(|_| text.to_owned())?);
        }
        Ok(buffers)
    }
}

impl Journal {
    /// Records that `program` is about to be attached. It is on disk when this returns.
    ///
    /// # Errors
    ///
    /// Where the journal can't be written.
    pub fn hold(&mut self, command: &str, program: &Program, identity: &Identity) -> Result<RunId, JournalError> {
        let run = self.start_run(Start { command, ..Start::default() }, identity)?;
        let (place, value) = (program.to_string(), Some(b"attached".as_slice()));
        let intent = Intent {
            kind: EntryKind::Program,
            place: &place,
            before: None,
            intended: value,
            mode: None,
            persisted: false,
        };
        let entry = self.intend(run, &intent)?;
        self.written(entry, value)?;
        Ok(run)
    }

    /// Records that a socket is about to be given back to automatic sizing, has `free` do so, and records that it did.
    ///
    /// # Errors
    ///
    /// Where the journal can't be written; inside, what `free` says.
    pub fn hold_socket(
        &mut self,
        run: RunId,
        socket: &HeldSocket,
        before: &FixedBuffers,
        free: impl FnOnce() -> io::Result<()>,
    ) -> Result<io::Result<()>, JournalError> {
        let (place, before) = (socket.to_string(), before.to_string());
        let automatic = Some(AUTOMATIC.as_bytes());
        let intent = Intent {
            kind: EntryKind::Socket,
            place: &place,
            before: Some(before.as_bytes()),
            intended: automatic,
            mode: None,
            persisted: false,
        };
        let entry = self.intend(run, &intent)?;
        let freed = free();
        match &freed {
            Ok(()) => self.written(entry, automatic)?,
            // Most often it is closed by now.
            Err(_) => self.mark(entry, EntryState::Gone)?,
        }
        Ok(freed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_as_it_is_written() {
        let program = Program { what: "calls of a by process b swallowed".to_owned(), pid: 7, start: 99 };
        assert_eq!(program.to_string().parse(), Ok(program));
        assert!("calls by process 7".parse::<Program>().is_err());
        let socket = HeldSocket { inode: 4_711, pid: 12, fd: 5 };
        assert_eq!(socket.to_string().parse(), Ok(socket));
        assert!("socket 1 of process 2".parse::<HeldSocket>().is_err());
        for (send, receive) in [(Some(1), None), (None, Some(2)), (Some(1), Some(2))] {
            let buffers = FixedBuffers { send, receive };
            assert_eq!(buffers.to_string().parse(), Ok(buffers));
        }
        assert!("SO_SNDBUF x".parse::<FixedBuffers>().is_err());
        assert!("".parse::<FixedBuffers>().is_err());
    }
}
