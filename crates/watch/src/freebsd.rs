//! FreeBSD: `net.inet.tcp.pcblist` for the connections, `kern.file` for their owners.
//!
//! Layouts of FreeBSD 12 to 15: `struct xinpgen` and `struct xinpcb` of sys/netinet/in_pcb.h, `struct xsocket` of
//! sys/sys/socketvar.h, `struct xtcpcb` of sys/netinet/tcp_var.h, `struct xfile` of sys/sys/file.h. They are the same on every
//! processor: each begins with its own length, and grows into spare fields only.
//!
//! What the table lacks: bytes and segments sent or received, round trips, what is in flight and the window scales. So there is no
//! rate, and hardly ever enough to judge by; windows, buffers, who set them, retransmissions and listen queues are there. Built, and
//! run **on no FreeBSD** so far: its tests run on bytes laid out as the headers say.

use std::collections::HashMap;

use fullpipe_socket::{Fixed, Info, Memory};

use crate::{
    owner::Owner,
    source::{Each, Source},
    table::Owners,
    table_row::TableRow,
    tables::{Fields, Found, Tables, asked, options, ssthresh, state},
    watcher::WatchError,
    wire::SocketId,
};

const PCBS: &str = "net.inet.tcp.pcblist";
const FILES: &str = "kern.file";
/// `struct xinpgen`, at the beginning and at the end of the table.
const HEAD: u64 = 64;
/// `struct xinpcb` lies behind the length of `struct xtcpcb`, `struct xsocket` behind the length of that.
const SOCKET: usize = 16;
const CONNECTION: usize = 256;
const GENERATION: usize = 304;
const VERSIONS: usize = 400;
/// `struct xtcpcb`, from `t_state` on; before it are the stack's name, a label and the congestion control's name.
const CONGESTION: usize = 504;
const CONGESTION_LENGTH: usize = 16;
const TCP: usize = 568;
/// `struct xsockbuf` of what is received and of what is sent.
const RECEIVE: usize = SOCKET + 168;
const SEND: usize = SOCKET + 204;
/// `INP_IPV4`.
const IPV4: u8 = 1;
/// `SB_AUTOSIZE` (sys/sys/sockbuf.h): set for each TCP socket, and taken away by SO_RCVBUF and SO_SNDBUF.
const AUTOMATIC: u16 = 0x800;
/// `DTYPE_SOCKET`.
const SOCKET_FILE: u16 = 2;

/// The sockets of a `net.inet.tcp.pcblist`. A table that ends early has those before its end.
pub(crate) fn sockets(table: &[u8]) -> impl Iterator<Item = TableRow> {
    records(table).filter_map(socket)
}

/// All records between the two heads.
fn records(table: &[u8]) -> impl Iterator<Item = Fields<'_>> {
    let mut rest = Fields(table);
    let length = |rest: &Fields<'_>| rest.u64(0).filter(|&length| length >= HEAD);
    let head = length(&rest).and_then(|length| rest.split(length.try_into().ok()?));
    std::iter::from_fn(move || {
        head?;
        // The second head is shorter than any record.
        let length = length(&rest).filter(|&length| length > HEAD)?;
        rest.split(length.try_into().ok()?)
    })
}

fn socket(record: Fields<'_>) -> Option<TableRow> {
    let state = record.i32(TCP).filter(|state| state::is_asked(*state))?;
    let is_v4 = record.u8(VERSIONS)? & IPV4 != 0;
    let id = SocketId {
        is_v6: !is_v4,
        // `struct in_conninfo`: flags, length and table, then `struct in_endpoints`.
        local: record.end(CONNECTION + 24, CONNECTION + 6, is_v4)?,
        peer: record.end(CONNECTION + 8, CONNECTION + 4, is_v4)?,
        interface: 0,
        cookie: record.u64(GENERATION)?,
    };
    let mut row = TableRow::new(id, record.u64(SOCKET + 8)?);
    row.uid = record.u32(SOCKET + 120);
    if state == state::LISTEN {
        row.queue = Some([record.u32(SOCKET + 104)?, record.u32(SOCKET + 112)?]);
        return Some(row);
    }
    row.unread = record.u32(RECEIVE)?;
    row.waiting = record.u32(SEND)?;
    row.memory = Memory {
        receive_used: record.bytes(RECEIVE),
        receive_buffer: record.bytes(RECEIVE + 4),
        send_used: record.bytes(SEND),
        send_buffer: record.bytes(SEND + 4),
    };
    let is_fixed = |buffer: usize| Some(record.u16(buffer + 32)? & AUTOMATIC == 0);
    row.fixed = Some(Fixed { receive: is_fixed(RECEIVE)?, send: is_fixed(SEND)? });
    row.congestion = record.text(CONGESTION, CONGESTION_LENGTH);
    row.received_before_ms = record.u32(TCP + 20);
    row.info = info(record, state);
    Some(row)
}

fn info(record: Fields<'_>, state: i32) -> Info {
    // The first versions of 12 have no windows; a congestion window is never nothing.
    let has_windows = record.u32(TCP + 48).is_some_and(|cwnd| cwnd > 0);
    let window = |at: usize| record.bytes(TCP + at).filter(|_| has_windows);
    let mut info = Info {
        mss: record.u32(TCP + 56).filter(|&mss| mss > 0),
        cwnd: window(48),
        ssthresh: record.u32(TCP + 52).and_then(ssthresh),
        receive_window: window(60),
        // Before the peer has answered, nothing is known of it.
        send_window: window(64).filter(|_| state >= state::ESTABLISHED),
        retransmits: record.u32(TCP + 12).map(u64::from),
        out_of_order: record.u32(TCP + 16),
        ..Info::default()
    };
    if let Some(flags) = record.u32(TCP + 4).filter(|_| state >= state::ESTABLISHED) {
        options(&mut info, flags);
    }
    info
}

/// Which process has which socket, by the socket's place in the kernel, and its descriptor there.
fn files(table: &[u8]) -> HashMap<u64, (u32, u32)> {
    let mut rest = Fields(table);
    let next = std::iter::from_fn(move || rest.split(rest.u64(0)?.try_into().ok()?));
    let socket = |file: Fields<'_>| {
        (file.u16(32)? == SOCKET_FILE).then_some(())?;
        Some((file.u64(56)?, (file.u32(8)?, file.u32(16)?)))
    };
    // Of several the first one: a child has its parent's descriptors.
    let mut found = HashMap::new();
    for (socket, file) in next.filter_map(socket) {
        found.entry(socket).or_insert(file);
    }
    found
}

/// The running system, or a test's.
pub(crate) struct FreeBsd<T> {
    tables: T,
    found: Found,
}

impl<T: Tables> FreeBsd<T> {
    pub(crate) fn new(tables: T) -> Self {
        Self { tables, found: Found::default() }
    }
}

impl<T: Tables> Owners for FreeBsd<T> {
    fn find(&mut self, handles: &mut dyn Iterator<Item = u64>) {
        let wanted = self.found.unknown(handles);
        if wanted.is_empty() {
            return;
        }
        // Without it no owner is known, which is said.
        let files = files(&self.tables.table(FILES).unwrap_or_default());
        for handle in wanted {
            match files.get(&handle) {
                Some(&(pid, fd)) => {
                    let process = self.tables.program(pid).unwrap_or_default();
                    self.found.add(handle, Owner { process, pid, fd: Some(fd), ..Owner::default() });
                }
                None => self.found.miss(handle),
            }
        }
    }

    fn owner(&self, handle: u64) -> Option<&Owner> {
        self.found.owner(handle)
    }
}

impl<T: Tables> Source for FreeBsd<T> {
    fn all(&mut self, each: Each<'_>) -> Result<(), WatchError> {
        let table = asked(&self.tables, PCBS)?;
        sockets(&table).for_each(|row| each(&row));
        Ok(())
    }

    fn these(&mut self, ids: &[SocketId], each: Each<'_>) -> Result<Vec<u64>, WatchError> {
        let table = asked(&self.tables, PCBS)?;
        Ok(crate::source::among(sockets(&table), ids, each))
    }

    fn reads_whole(&self) -> bool {
        true
    }

    fn queue_setting(&self) -> &'static str {
        "kern.ipc.soacceptqueue"
    }

    fn keep(&mut self, is_there: &dyn Fn(u64) -> bool) {
        self.found.keep(is_there);
    }

    fn hides_owners(&self) -> bool {
        self.found.hides()
    }

    fn missing(&self) -> Vec<String> {
        let mut missing = vec![
            "rates, round trips, and verdicts that rest on them: FreeBSD's table of connections has neither; \
             `fullpipe check` measures them"
                .to_owned(),
        ];
        if self.found.hides() {
            missing.push("processes of some connections: run as root".to_owned());
        }
        missing
    }

    fn remarks(&self) -> Vec<String> {
        vec!["untested on FreeBSD: read as its headers (12 to 15) have it, and run on none so far".to_owned()]
    }
}

#[cfg(test)]
mod tests;
