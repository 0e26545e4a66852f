//! A queue of sends that the kernel works off (io_uring).
#![expect(unsafe_code, reason = "an entry of the queue is a pointer that the kernel follows later")]

use std::{io, net::TcpStream, os::fd::AsRawFd, sync::Arc, time::Duration};

use io_uring::{IoUring, opcode, types};

use super::splice::Pages;

/// Sends that wait in the kernel. More gain nothing: 64 were as fast as 16 with 4 KiB each.
const DEPTH: u32 = 16;

/// How long a wait lasts before the caller gets to look whether it shall stop.
const WAKE_EVERY: Duration = Duration::from_millis(200);

/// The queue of one connection, used by one thread. It keeps the pages alive that its entries point to.
pub(crate) struct Ring {
    ring: IoUring,
    pages: Arc<Pages>,
    in_flight: u32,
}

impl Ring {
    /// For the thread that will use it.
    pub(crate) fn new(pages: Arc<Pages>) -> io::Result<Self> {
        // Linux 6.1; an older kernel interrupts the thread to tell of what is done.
        let ring = IoUring::builder().setup_single_issuer().setup_defer_taskrun().build(DEPTH);
        let ring = ring.or_else(|_| IoUring::new(DEPTH))?;
        if !ring.params().is_feature_ext_arg() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        Ok(Self { ring, pages, in_flight: 0 })
    }

    /// Fills the queue with messages of `len` bytes, waits until one is done and tells how many bytes those that are done
    /// had.
    pub(crate) fn send(&mut self, stream: &TcpStream, len: usize) -> io::Result<usize> {
        let message = self.pages.first(len);
        let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
        let flags = libc::MSG_WAITALL | libc::MSG_NOSIGNAL;
        while self.in_flight < DEPTH {
            let send = opcode::Send::new(types::Fd(stream.as_raw_fd()), message.as_ptr(), length).flags(flags).build();
            // SAFETY: the message lies in `self.pages`, which live until every entry is done (see `Drop`), and the kernel
            // only reads it; the connection is open for as long as the caller lends it, and a descriptor that were closed
            // would be an error and not a danger.
            if unsafe { self.ring.submission().push(&send) }.is_err() {
                break;
            }
            self.in_flight += 1;
        }
        self.reap()
    }

    /// Waits until nothing is left that the kernel works on; returns what was sent meanwhile.
    pub(crate) fn settle(&mut self) -> io::Result<usize> {
        let mut sent = 0;
        while self.in_flight > 0 {
            sent += self.reap()?;
        }
        Ok(sent)
    }

    fn reap(&mut self) -> io::Result<usize> {
        let timeout = types::Timespec::from(WAKE_EVERY);
        match self.ring.submitter().submit_with_args(1, &types::SubmitArgs::new().timespec(&timeout)) {
            Ok(_) => {}
            Err(error) if matches!(error.raw_os_error(), Some(libc::ETIME | libc::EINTR | libc::EBUSY)) => {}
            Err(error) => return Err(error),
        }
        let (mut sent, mut failed) = (0, None);
        for done in self.ring.completion() {
            self.in_flight = self.in_flight.saturating_sub(1);
            match usize::try_from(done.result()) {
                Ok(count) => sent += count,
                Err(_) => failed = Some(io::Error::from_raw_os_error(-done.result())),
            }
        }
        match failed {
            // What was sent counts first; an error of the connection comes again.
            Some(error) if sent == 0 => Err(error),
            _ => Ok(sent),
        }
    }
}

impl Drop for Ring {
    /// Whoever ends a test shuts its connections down, which ends every entry: this wait has an end.
    fn drop(&mut self) {
        while self.in_flight > 0 {
            let before = self.in_flight;
            if self.reap().is_err() && self.in_flight == before {
                // The queue itself is broken; the kernel ends what is in it when it is closed.
                return;
            }
        }
    }
}
