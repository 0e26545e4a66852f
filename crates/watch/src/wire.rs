//! The bytes of `sock_diag`: what is asked, and what a kernel answers.
//!
//! A parser of our own, because `netlink-packet-sock-diag` (0.5) reads `struct tcp_info` into a fixed copy that ends before
//! the fields of kernels since 5.4, refuses the shorter one of older kernels, and allocates several times for each socket.
//! Here `fullpipe_socket::info::linux` reads it by its length, so that its layout stays known in one place, and nothing is
//! allocated. Any bytes may come: what doesn't fit is left out, never a panic.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use fullpipe_socket::{Bytes, Fixed, Info, Memory, info::linux};

use crate::look::Look;

/// The type of request and answer (`SOCK_DIAG_BY_FAMILY`, include/uapi/linux/sock_diag.h).
const BY_FAMILY: u16 = 20;
/// The older type, `TCPDIAG_GETSOCK`: one dump has both families, where the newer walks all sockets once for each.
const BOTH_FAMILIES: u16 = 18;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const REQUEST: u16 = 1;
/// `NLM_F_ROOT | NLM_F_MATCH`: all of them.
const DUMP: u16 = 0x300;
const TCP: u8 = 6;
/// `AF_INET`.
const V4: u8 = 2;
/// `AF_INET6`; IPv4 over such sockets, too.
const V6: u8 = 10;
/// `struct nlmsghdr`, `struct inet_diag_req_v2`, `struct inet_diag_msg`, `struct inet_diag_sockid`.
const HEADER: usize = 16;
const QUESTION: usize = 56;
/// `struct inet_diag_req`.
const OLD_QUESTION: usize = 60;
const ANSWER: usize = 72;
const SOCKET_ID: usize = 48;
/// Attributes of an answer (include/uapi/linux/inet_diag.h).
const INFO: u16 = 2;
const CONGESTION: u16 = 4;
const MEMORY: u16 = 7;
/// A bit for each attribute that is wanted.
const WANTED: u8 = 1 << (INFO - 1) | 1 << (CONGESTION - 1) | 1 << (MEMORY - 1);

/// The states of a TCP socket (include/net/tcp_states.h).
pub mod state {
    /// Data may flow both ways.
    pub const ESTABLISHED: u8 = 1;
    /// A SYN was sent.
    pub const SYN_SENT: u8 = 2;
    /// This end has said its last and waits for the acknowledgement.
    pub const FIN_WAIT1: u8 = 4;
    /// This end has said its last.
    pub const FIN_WAIT2: u8 = 5;
    /// The other end has said its last.
    pub const CLOSE_WAIT: u8 = 8;
    /// Both have, and this end waits for the acknowledgement.
    pub const LAST_ACK: u8 = 9;
    /// Waits for connections.
    pub const LISTEN: u8 = 10;
    /// Both have said their last at once.
    pub const CLOSING: u8 = 11;

    /// Those that are asked for: all in which payload may be on its way, and listeners.
    pub(crate) const ASKED: u32 = 1 << ESTABLISHED
        | 1 << SYN_SENT
        | 1 << FIN_WAIT1
        | 1 << FIN_WAIT2
        | 1 << CLOSE_WAIT
        | 1 << LAST_ACK
        | 1 << LISTEN
        | 1 << CLOSING;
}

/// Which socket: its ends, and the kernel's number for it, which is never given twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SocketId {
    /// Whether it is an IPv6 socket, whatever its addresses.
    pub is_v6: bool,
    /// This end.
    pub local: SocketAddr,
    /// The other end.
    pub peer: SocketAddr,
    /// The device that it is bound to.
    pub interface: u32,
    /// The kernel's number.
    pub cookie: u64,
}

/// Asks for every TCP socket.
pub fn ask_all(sequence: u32) -> Vec<u8> {
    let mut raw = header(HEADER + OLD_QUESTION, BOTH_FAMILIES, REQUEST | DUMP, sequence);
    raw.extend_from_slice(&[0, 0, 0, WANTED]);
    raw.extend_from_slice(&[0; SOCKET_ID]);
    raw.extend_from_slice(&state::ASKED.to_ne_bytes());
    raw.extend_from_slice(&[0; 4]);
    raw
}

/// Asks for one socket, by its ends and its number.
pub fn ask_one(id: &SocketId, sequence: u32) -> Vec<u8> {
    let mut raw = [0u8; SOCKET_ID];
    raw[0..2].copy_from_slice(&id.local.port().to_be_bytes());
    raw[2..4].copy_from_slice(&id.peer.port().to_be_bytes());
    let octets = |address: IpAddr| match address {
        IpAddr::V4(v4) if id.is_v6 => v4.to_ipv6_mapped().octets(),
        IpAddr::V4(v4) => {
            let mut all = [0; 16];
            all[..4].copy_from_slice(&v4.octets());
            all
        }
        IpAddr::V6(v6) => v6.octets(),
    };
    raw[4..20].copy_from_slice(&octets(id.local.ip()));
    raw[20..36].copy_from_slice(&octets(id.peer.ip()));
    raw[36..40].copy_from_slice(&id.interface.to_ne_bytes());
    raw[40..44].copy_from_slice(&(id.cookie as u32).to_ne_bytes());
    raw[44..48].copy_from_slice(&((id.cookie >> 32) as u32).to_ne_bytes());
    let mut request = header(HEADER + QUESTION, BY_FAMILY, REQUEST, sequence);
    request.extend_from_slice(&[if id.is_v6 { V6 } else { V4 }, TCP, WANTED, 0]);
    request.extend_from_slice(&state::ASKED.to_ne_bytes());
    request.extend_from_slice(&raw);
    request
}

fn header(len: usize, kind: u16, flags: u16, sequence: u32) -> Vec<u8> {
    let mut raw = Vec::with_capacity(len);
    raw.extend_from_slice(&(len as u32).to_ne_bytes());
    raw.extend_from_slice(&kind.to_ne_bytes());
    raw.extend_from_slice(&flags.to_ne_bytes());
    raw.extend_from_slice(&sequence.to_ne_bytes());
    raw.extend_from_slice(&[0; 4]);
    raw
}

/// One message of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer<'a> {
    /// A socket.
    Socket(Reading<'a>),
    /// That was all.
    Done,
    /// The kernel refuses, with this number (`ENOENT` is 2); 0 is none.
    Refused(i32),
}

/// What the kernel says of one socket; its parts are read when they are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading<'a> {
    /// Which one.
    pub id: SocketId,
    /// Its state, one of [`state`].
    pub state: u8,
    /// How often the segment that waits for its acknowledgement was sent again.
    pub backoffs: u8,
    /// Received and not read; of a listener: connections that wait to be accepted.
    pub unread: u32,
    /// Written and not acknowledged; of a listener: how many may wait.
    pub unacknowledged: u32,
    /// The user that it belongs to.
    pub uid: u32,
    /// Its inode: what `/proc/PID/fd` shows; 0 where no process has it any more.
    pub inode: u32,
    info: &'a [u8],
    memory: &'a [u8],
    congestion: &'a [u8],
}

impl Reading<'_> {
    /// What `TCP_INFO` tells. Before the peer has answered, its window and which options both use are not known, and the kernel's zeros
    /// are none.
    pub fn info(&self) -> Info {
        let info = linux::read(self.info);
        if self.state == state::SYN_SENT {
            return Info { send_window: None, scaling: None, sack: None, timestamps: None, ..info };
        }
        info
    }

    /// Payload acknowledged and received so far, without reading the rest.
    pub fn moved(&self) -> [u64; 2] {
        [number(self.info, 120), number(self.info, 128)]
    }

    /// Segments with payload sent so far, and those of them that were retransmissions, without reading the rest.
    pub fn segments(&self) -> [u64; 2] {
        [156, 100].map(|at| word(self.info, at).unwrap_or(0).into())
    }

    /// Time since this end last sent and last received payload, in milliseconds.
    pub fn quiet_ms(&self) -> [u32; 2] {
        [word(self.info, 44).unwrap_or(u32::MAX), word(self.info, 52).unwrap_or(u32::MAX)]
    }

    /// The smoothed round trip, in microseconds, without reading the rest.
    pub fn rtt_us(&self) -> Option<u32> {
        word(self.info, 68).filter(|&rtt| rtt > 0)
    }

    /// Its buffers.
    pub fn memory(&self) -> Memory {
        let bytes = |index: usize| word(self.memory, 4 * index).map(|count| Bytes::new(count.into()));
        Memory { receive_used: bytes(0), receive_buffer: bytes(1), send_buffer: bytes(3), send_used: bytes(5) }
    }

    /// Its congestion control, as the kernel names it.
    pub fn congestion(&self) -> Option<String> {
        let name = self.congestion.split(|&byte| byte == 0).next().filter(|name| !name.is_empty())?;
        Some(String::from_utf8_lossy(name).into_owned())
    }
}

impl Look for Reading<'_> {
    fn id(&self) -> SocketId {
        self.id
    }

    fn queue(&self) -> Option<[u32; 2]> {
        (self.state == state::LISTEN).then_some([self.unread, self.unacknowledged])
    }

    fn backoffs(&self) -> u8 {
        self.backoffs
    }

    fn unread(&self) -> u32 {
        self.unread
    }

    fn waiting(&self) -> u32 {
        self.unacknowledged
    }

    fn uid(&self) -> Option<u32> {
        Some(self.uid)
    }

    fn handle(&self) -> u64 {
        self.inode.into()
    }

    fn info(&self) -> Info {
        Reading::info(self)
    }

    fn memory(&self) -> Memory {
        Reading::memory(self)
    }

    fn congestion(&self) -> Option<String> {
        Reading::congestion(self)
    }

    fn moved(&self) -> Option<[u64; 2]> {
        Some(Reading::moved(self))
    }

    fn segments(&self) -> [u64; 2] {
        Reading::segments(self)
    }

    fn quiet_ms(&self) -> [u32; 2] {
        Reading::quiet_ms(self)
    }

    fn rtt_us(&self) -> Option<u32> {
        Reading::rtt_us(self)
    }

    fn fixed(&self) -> Option<Fixed> {
        // Only a copy of the descriptor tells (`processes.rs`).
        None
    }
}

/// The messages of one datagram that answer the request with this `sequence`.
pub fn answers(datagram: &[u8], sequence: u32) -> impl Iterator<Item = Answer<'_>> {
    Messages(datagram).filter(move |message| message.sequence == sequence).filter_map(|message| match message.kind {
        NLMSG_DONE => Some(match word(message.body, 0).map(u32::cast_signed) {
            Some(error) if error < 0 => Answer::Refused(error.saturating_neg()),
            _ => Answer::Done,
        }),
        NLMSG_ERROR => Some(Answer::Refused(word(message.body, 0)?.cast_signed().saturating_neg())),
        BY_FAMILY | BOTH_FAMILIES => reading(message.body).map(Answer::Socket),
        _ => None,
    })
}

struct Messages<'a>(&'a [u8]);

struct Message<'a> {
    kind: u16,
    sequence: u32,
    body: &'a [u8],
}

impl<'a> Iterator for Messages<'a> {
    type Item = Message<'a>;

    fn next(&mut self) -> Option<Message<'a>> {
        let len = usize::try_from(word(self.0, 0)?).ok().filter(|&len| len >= HEADER)?;
        let message = Message { kind: half(self.0, 4)?, sequence: word(self.0, 8)?, body: self.0.get(HEADER..len)? };
        self.0 = self.0.get(len.next_multiple_of(4)..).unwrap_or_default();
        Some(message)
    }
}

fn reading(body: &[u8]) -> Option<Reading<'_>> {
    let [family, state, _timer, backoffs, ..] = *body.get(..ANSWER)? else { return None };
    let mut reading = Reading {
        id: socket_id(body.get(4..4 + SOCKET_ID)?, family)?,
        state,
        backoffs,
        unread: word(body, 56)?,
        unacknowledged: word(body, 60)?,
        uid: word(body, 64)?,
        inode: word(body, 68)?,
        info: &[],
        memory: &[],
        congestion: &[],
    };
    let mut rest = body.get(ANSWER..)?;
    while let Some((len, kind)) = half(rest, 0).zip(half(rest, 2)) {
        let Some(value) = rest.get(4..usize::from(len)) else { break };
        match kind {
            INFO => reading.info = value,
            MEMORY => reading.memory = value,
            CONGESTION => reading.congestion = value,
            _ => {}
        }
        rest = rest.get(usize::from(len).next_multiple_of(4)..).unwrap_or_default();
    }
    Some(reading)
}

fn socket_id(raw: &[u8], family: u8) -> Option<SocketId> {
    let port = |at: usize| Some(u16::from_be_bytes(*raw.get(at..)?.first_chunk()?));
    let is_v6 = match family {
        V4 => false,
        V6 => true,
        _ => return None,
    };
    let address = |at: usize| -> Option<IpAddr> {
        let raw = raw.get(at..)?;
        Some(if is_v6 {
            // IPv4 over an IPv6 socket is shown as what it is.
            Ipv6Addr::from(*raw.first_chunk::<16>()?).to_canonical()
        } else {
            Ipv4Addr::from(*raw.first_chunk::<4>()?).into()
        })
    };
    Some(SocketId {
        is_v6,
        local: SocketAddr::new(address(4)?, port(0)?),
        peer: SocketAddr::new(address(20)?, port(2)?),
        interface: word(raw, 36)?,
        cookie: u64::from(word(raw, 40)?) | u64::from(word(raw, 44)?) << 32,
    })
}

fn half(raw: &[u8], at: usize) -> Option<u16> {
    raw.get(at..)?.first_chunk().copied().map(u16::from_ne_bytes)
}

fn word(raw: &[u8], at: usize) -> Option<u32> {
    raw.get(at..)?.first_chunk().copied().map(u32::from_ne_bytes)
}

fn number(raw: &[u8], at: usize) -> u64 {
    raw.get(at..).and_then(|rest| rest.first_chunk().copied()).map_or(0, u64::from_ne_bytes)
}

#[cfg(test)]
pub(crate) mod tests;
