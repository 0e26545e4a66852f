//! What a socket's buffers may hold, what they hold, and whether a call has fixed them.

use std::io;

use fullpipe_units::Bytes;

use crate::{Handle, sys};

/// A socket's buffers at one moment, in bytes as the system counts them (Linux: with its own overhead).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// The receive buffer's size.
    pub receive_buffer: Option<Bytes>,
    /// What it holds.
    pub receive_used: Option<Bytes>,
    /// The send buffer's size.
    pub send_buffer: Option<Bytes>,
    /// What it holds, under way or not.
    pub send_used: Option<Bytes>,
}

impl Memory {
    /// Asks the system.
    ///
    /// # Errors
    /// The system's: that it can't tell, or that the socket is gone.
    #[cfg(target_os = "linux")]
    pub fn read(socket: &impl Handle) -> io::Result<Self> {
        // SK_MEMINFO_RMEM_ALLOC, _RCVBUF, _WMEM_ALLOC, _SNDBUF, _FWD_ALLOC, _WMEM_QUEUED (include/uapi/linux/sock_diag.h).
        let [receive_used, receive_buffer, _, send_buffer, _, send_used, ..] = sys::mem_info(socket)?;
        let bytes = |count: u32| Some(Bytes::new(count.into()));
        Ok(Self {
            receive_buffer: bytes(receive_buffer),
            receive_used: bytes(receive_used),
            send_buffer: bytes(send_buffer),
            send_used: bytes(send_used),
        })
    }

    /// Asks the system.
    ///
    /// # Errors
    /// The system's: that the socket is gone.
    #[cfg(not(target_os = "linux"))]
    pub fn read(socket: &impl Handle) -> io::Result<Self> {
        let reference = socket2::SockRef::from(socket);
        let bytes = |count: usize| Bytes::new(count as u64);
        let receive = reference.recv_buffer_size()?;
        let info = crate::Info::read(socket).unwrap_or_default();
        #[cfg(target_os = "freebsd")]
        let queued = sys::queued(socket).ok().map(Bytes::new);
        #[cfg(not(target_os = "freebsd"))]
        let queued = None;
        Ok(Self {
            // The options' values are on Windows not what automatic sizing has made of them.
            receive_buffer: info.receive_buffer.or_else(|| Some(bytes(receive)).filter(|_| cfg!(not(windows)))),
            receive_used: unread(socket),
            send_buffer: reference.send_buffer_size().ok().map(bytes).filter(|_| cfg!(not(windows))),
            send_used: info.send_queued.or(queued),
        })
    }
}

/// Received and not yet read by the application.
pub fn unread(socket: &impl Handle) -> Option<Bytes> {
    sys::unread(socket).ok().map(Bytes::new)
}

/// Which of a socket's buffers a call has fixed, so that the system sizes them no more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fixed {
    /// `SO_RCVBUF` was set.
    pub receive: bool,
    /// `SO_SNDBUF` was set.
    pub send: bool,
}

/// The bits of `SO_BUF_LOCK`.
#[cfg(target_os = "linux")]
const SEND_LOCK: i32 = 1;
#[cfg(target_os = "linux")]
const RECEIVE_LOCK: i32 = 2;

impl Fixed {
    /// Asks the system; `None` where it can't tell (all but Linux 5.15 and later).
    pub fn read(socket: &impl Handle) -> Option<Self> {
        #[cfg(target_os = "linux")]
        return sys::buffer_locks(socket)
            .ok()
            .map(|locks| Self { send: locks & SEND_LOCK != 0, receive: locks & RECEIVE_LOCK != 0 });
        #[cfg(not(target_os = "linux"))]
        {
            let _: &_ = socket;
            None
        }
    }

    /// Has the system size again what is not fixed here.
    ///
    /// # Errors
    ///
    /// Where the system can't (all but Linux 5.15 and later).
    pub fn put(self, socket: &impl Handle) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        {
            let bit = |set: bool, bit| if set { bit } else { 0 };
            sys::set_buffer_locks(socket, bit(self.send, SEND_LOCK) | bit(self.receive, RECEIVE_LOCK))
        }
        #[cfg(not(target_os = "linux"))]
        {
            let _: &_ = socket;
            Err(io::ErrorKind::Unsupported.into())
        }
    }
}
