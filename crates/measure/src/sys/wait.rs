//! Waiting for a socket, and what its errors mean, on every system.

use std::{io, time::Duration};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fd::AsFd,
    io::Errno,
};

/// Waits until `socket` has something to read or to accept; `false` where it has not within `wait`.
pub(crate) fn readable(socket: impl AsFd, wait: Duration) -> io::Result<bool> {
    ready(socket, PollFlags::IN, wait)
}

/// Waits until the kernel would wake a writer of `socket`; `false` where it would not within `wait`.
pub(crate) fn writable(socket: impl AsFd, wait: Duration) -> io::Result<bool> {
    ready(socket, PollFlags::OUT, wait)
}

fn ready(socket: impl AsFd, events: PollFlags, wait: Duration) -> io::Result<bool> {
    let wait = Timespec::try_from(wait).unwrap_or_default();
    match poll(&mut [PollFd::new(&socket, events)], Some(&wait)) {
        Ok(count) => Ok(count > 0),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Whether a connect that does not wait has begun.
pub(crate) fn is_connecting(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock || Errno::from_io_error(error) == Some(Errno::INPROGRESS)
}
