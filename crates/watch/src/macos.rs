//! macOS: `net.inet.tcp.pcblist_n` for the connections and their owners.
//!
//! Each socket is a group of records that say their own length and kind: `struct xinpcb_n` of bsd/netinet/in_pcb.h, `struct
//! xsocket_n` and `struct xsockbuf_n` of bsd/sys/socketvar.h, `struct xtcpcb_n` of bsd/netinet/tcp_var.h (xnu; Apple calls them
//! private, and its netstat(1) reads them), laid out with an alignment of four bytes, each at a multiple of eight.
//!
//! What they lack: retransmissions, the smallest round trip, and bytes beyond 32 bits: those are counted here, from look to look.
//! Built, and run **on no macOS** so far: its tests run on bytes laid out as the headers say.

use std::collections::HashMap;

use fullpipe_socket::{Bytes, Fixed, Info, Memory};
use fullpipe_units::Micros;

use crate::{
    owner::Owner,
    source::{Each, Source},
    table::Owners,
    table_row::TableRow,
    tables::{Fields, Found, Tables, asked, options, ssthresh, state},
    watcher::WatchError,
    wire::SocketId,
};

const PCBS: &str = "net.inet.tcp.pcblist_n";
/// `struct xinpgen`, at the beginning and at the end of the table.
const HEAD: usize = 24;
/// The kinds of records.
const SOCKET: u32 = 0x1;
const RECEIVE: u32 = 0x2;
const SEND: u32 = 0x4;
const PCB: u32 = 0x10;
const TCP: u32 = 0x20;
/// `INP_IPV4`.
const IPV4: u8 = 1;
/// `SB_USRSIZE` (bsd/sys/socketvar.h): SO_RCVBUF or SO_SNDBUF was set.
const SET: u16 = 0x200;
/// `TCP_RTT_SHIFT`: `t_srtt` counts in this fraction of a millisecond.
const RTT_SHIFT: u32 = 5;
/// `TCP_MAX_WINSHIFT`: a larger shift is none.
const LARGEST_SHIFT: u8 = 14;

/// A socket, with its sequence numbers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Socket {
    row: TableRow,
    /// Acknowledged by the peer, and received, as the lower 32 bits of their count.
    moved: [u32; 2],
}

/// The sockets of a `net.inet.tcp.pcblist_n`. A table that ends early has those before its end.
pub(crate) fn sockets(table: &[u8]) -> impl Iterator<Item = Socket> {
    let mut records = records(table).peekable();
    std::iter::from_fn(move || {
        let mut group = vec![records.next()?];
        while let Some(record) = records.next_if(|record| record.u32(4) != Some(PCB)) {
            group.push(record);
        }
        Some(socket(&group))
    })
    .flatten()
}

/// All records between the two heads, each with its padding.
fn records(table: &[u8]) -> impl Iterator<Item = Fields<'_>> {
    let mut rest = Fields(table);
    let head = rest.split(HEAD);
    std::iter::from_fn(move || {
        head?;
        // The second head is shorter than any record.
        let length = usize::try_from(rest.u32(0)?).ok().filter(|&length| length > HEAD)?;
        rest.split(length.checked_next_multiple_of(8)?)
    })
}

fn socket(group: &[Fields<'_>]) -> Option<Socket> {
    let of = |kind: u32| group.iter().copied().find(|record| record.u32(4) == Some(kind));
    let (pcb, socket, tcp) = (of(PCB)?, of(SOCKET)?, of(TCP)?);
    let state = tcp.i32(36).filter(|state| state::is_asked(*state))?;
    let is_v4 = pcb.u8(44)? & IPV4 != 0;
    let id = SocketId {
        is_v6: !is_v4,
        local: pcb.end(64, 18, is_v4)?,
        peer: pcb.end(48, 16, is_v4)?,
        interface: 0,
        cookie: pcb.u64(28)?,
    };
    // The process that used it last.
    let mut row = TableRow::new(id, socket.u32(68)?.into());
    row.uid = socket.u32(64);
    if state == state::LISTEN {
        row.queue = Some([socket.u16(44)?, socket.u16(48)?].map(u32::from));
        return Some(Socket { row, moved: [0; 2] });
    }
    let [receive, send] = [RECEIVE, SEND].map(of);
    let buffer = |record: Option<Fields<'_>>, at: usize| record.and_then(|record| record.bytes(at));
    row.memory = Memory {
        receive_used: buffer(receive, 8),
        receive_buffer: buffer(receive, 12),
        send_used: buffer(send, 8),
        send_buffer: buffer(send, 12),
    };
    row.unread = receive.and_then(|record| record.u32(8)).unwrap_or(0);
    row.waiting = send.and_then(|record| record.u32(8)).unwrap_or(0);
    let is_set = |record: Option<Fields<'_>>| Some(record?.u16(28)? & SET != 0);
    row.fixed = is_set(receive).zip(is_set(send)).map(|(receive, send)| Fixed { receive, send });
    row.backoffs = tcp.u32(144).and_then(|shift| shift.try_into().ok()).unwrap_or(0);
    row.info = info(tcp, state, row.waiting)?;
    // The SYN took the first number of each.
    let passed = |now: usize, first: usize| {
        Some(if state < state::ESTABLISHED { 0 } else { tcp.u32(now)?.wrapping_sub(tcp.u32(first)?).wrapping_sub(1) })
    };
    Some(Socket { row, moved: [passed(48, 72)?, passed(80, 76)?] })
}

fn info(tcp: Fields<'_>, state: i32, waiting: u32) -> Option<Info> {
    let between = |from: usize, to: usize| Some(tcp.u32(to)?.wrapping_sub(tcp.u32(from)?));
    let in_flight = between(48, 52)?;
    let mut info = Info {
        mss: tcp.u32(132).filter(|&mss| mss > 0),
        rtt: tcp.u32(136).filter(|&srtt| srtt > 0).map(|srtt| Micros::new((u64::from(srtt) * 1_000) >> RTT_SHIFT)),
        cwnd: tcp.bytes(100),
        ssthresh: tcp.u32(104).and_then(ssthresh),
        in_flight: Some(Bytes::new(in_flight.into())),
        not_sent: Some(Bytes::new(waiting.saturating_sub(in_flight).into())),
        // Before the peer has answered, nothing is known of it.
        send_window: tcp.bytes(96).filter(|_| state >= state::ESTABLISHED),
        // What was advertised last, as `tcpi_rcv_wnd` has it.
        receive_window: between(80, 84).map(|window| Bytes::new(window.into())),
        ..Info::default()
    };
    if state >= state::ESTABLISHED {
        options(&mut info, tcp.u32(40)?);
        let shift = |at: usize| tcp.u8(at).filter(|&shift| shift <= LARGEST_SHIFT && info.scaling == Some(true));
        (info.peer_shift, info.own_shift) = (shift(166), shift(167));
    }
    Some(info)
}

/// What a connection moved, beyond 32 bits.
#[derive(Clone, Copy, Debug)]
struct Counted {
    last: [u32; 2],
    all: [u64; 2],
}

/// The running system, or a test's.
pub(crate) struct MacOs<T> {
    tables: T,
    found: Found,
    counted: HashMap<u64, Counted>,
}

impl<T: Tables> MacOs<T> {
    pub(crate) fn new(tables: T) -> Self {
        Self { tables, found: Found::default(), counted: HashMap::new() }
    }

    /// All of them now, with bytes that don't wrap.
    fn look(&mut self) -> Result<Vec<TableRow>, WatchError> {
        let table = asked(&self.tables, PCBS)?;
        let mut counted = HashMap::new();
        let all = sockets(&table).map(|Socket { mut row, moved }| {
            let cookie = row.id.cookie;
            let new = Counted { last: moved, all: moved.map(u64::from) };
            let count = self.counted.get(&cookie).map_or(new, |before| Counted {
                last: moved,
                all: [0, 1].map(|way: usize| before.all[way] + u64::from(moved[way].wrapping_sub(before.last[way]))),
            });
            counted.insert(cookie, count);
            [row.info.bytes_acked, row.info.bytes_received] = count.all.map(Some);
            row
        });
        let all = all.collect();
        self.counted = counted;
        Ok(all)
    }
}

impl<T: Tables> Owners for MacOs<T> {
    fn find(&mut self, handles: &mut dyn Iterator<Item = u64>) {
        for handle in self.found.unknown(handles) {
            // A handle is the process's number.
            let Ok(pid) = u32::try_from(handle) else { continue };
            match self.tables.program(pid) {
                Some(process) => self.found.add(handle, Owner { process, pid, ..Owner::default() }),
                None => self.found.miss(handle),
            }
        }
    }

    fn owner(&self, handle: u64) -> Option<&Owner> {
        self.found.owner(handle)
    }
}

impl<T: Tables> Source for MacOs<T> {
    fn all(&mut self, each: Each<'_>) -> Result<(), WatchError> {
        self.look()?.iter().for_each(|row| each(row));
        Ok(())
    }

    fn these(&mut self, ids: &[SocketId], each: Each<'_>) -> Result<Vec<u64>, WatchError> {
        Ok(crate::source::among(self.look()?.into_iter(), ids, each))
    }

    fn reads_whole(&self) -> bool {
        true
    }

    fn queue_setting(&self) -> &'static str {
        "kern.ipc.somaxconn"
    }

    fn keep(&mut self, is_there: &dyn Fn(u64) -> bool) {
        self.found.keep(is_there);
    }

    fn hides_owners(&self) -> bool {
        self.found.hides()
    }

    fn missing(&self) -> Vec<String> {
        let mut missing = vec!["retransmissions: macOS' table of connections doesn't count them".to_owned()];
        if self.found.hides() {
            missing.push("names of some processes: run as root".to_owned());
        }
        missing
    }

    fn remarks(&self) -> Vec<String> {
        vec!["untested on macOS: read as the headers of xnu have it, and run on none so far".to_owned()]
    }
}

#[cfg(test)]
mod tests;
