//! Tables laid out field by field as xnu's headers have them, and any bytes at all.

use std::{
    io,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use fullpipe_diagnose::Limiter;
use proptest::{collection::vec, prelude::*};

use super::*;
use crate::source;

/// A socket of which every look can be made.
#[derive(Clone)]
struct Made {
    is_v6: bool,
    local: SocketAddr,
    peer: SocketAddr,
    state: i32,
    queue: [u16; 2],
    held: [u32; 2],
    flags: [u16; 2],
    /// Acknowledged, sent and received, since the first numbers.
    acked: u32,
    sent: u32,
    received: u32,
    /// rcv_wnd, snd_wnd, snd_cwnd, snd_ssthresh
    windows: [u32; 4],
}

const FIRST: u32 = u32::MAX - 99;

impl Made {
    fn new() -> Self {
        Self {
            is_v6: false,
            local: "192.0.2.1:443".parse().unwrap(),
            peer: "198.51.100.7:50000".parse().unwrap(),
            state: state::ESTABLISHED,
            queue: [0; 2],
            held: [300, 70_000],
            flags: [0x4, SET],
            acked: 1_000,
            sent: 41_000,
            received: 77,
            windows: [131_072, 65_536, 50_000, 1_073_725_440],
        }
    }

    /// The records of one socket, each padded to a multiple of eight bytes.
    fn raw(&self, cookie: u64) -> Vec<u8> {
        let mut raw = Vec::new();
        raw.extend(self.pcb(cookie));
        raw.extend(self.socket());
        for (kind, way) in [(RECEIVE, 0), (SEND, 1)] {
            // sb_cc, sb_hiwat, sb_mbcnt, sb_mbmax, sb_lowat, then sb_flags and sb_timeo
            let mut record = Record::new(32, kind);
            [self.held[way], 131_072, 256, 1_048_576, 1].iter().for_each(|word| record.u32(*word));
            record.u16(self.flags[way]);
            record.u16(0);
            raw.extend(record.done());
        }
        let mut record = Record::new(136, 0x8);
        record.put(&[0xee; 128]);
        raw.extend(record.done());
        raw.extend(self.tcp());
        raw
    }

    fn pcb(&self, cookie: u64) -> Vec<u8> {
        let mut record = Record::new(104, PCB);
        record.put(&0x1122_u64.to_ne_bytes()); // xi_inpp
        record.put(&self.peer.port().to_be_bytes());
        record.put(&self.local.port().to_be_bytes());
        record.put(&0x3344_u64.to_ne_bytes()); // inp_ppcb
        record.put(&cookie.to_ne_bytes()); // inp_gencnt
        record.u32(0); // inp_flags
        record.u32(0); // inp_flow
        record.put(&[if self.is_v6 { 2 } else { 1 }, 64, 6, 0]); // inp_vflag, inp_ip_ttl, inp_ip_p, padding
        for end in [self.peer, self.local] {
            match end {
                SocketAddr::V4(end) => {
                    record.put(&[0; 12]);
                    record.put(&end.ip().octets());
                }
                SocketAddr::V6(end) => record.put(&end.ip().octets()),
            }
        }
        record.put(&[0; 4]); // inp4_ip_tos, padding
        record.put(&[0; 12]); // inp6_hlim, padding, inp6_cksum, inp6_ifindex, inp6_hops
        record.u32(0); // inp_flowhash
        record.u32(0); // inp_flags2
        record.done()
    }

    fn socket(&self) -> Vec<u8> {
        let mut record = Record::new(104, SOCKET);
        record.put(&0x5566_u64.to_ne_bytes()); // xso_so
        record.put(&[1, 0, 0, 0]); // so_type, padding
        record.u32(0); // so_options
        record.put(&[0; 4]); // so_linger, so_state
        record.put(&0x3344_u64.to_ne_bytes()); // so_pcb
        record.u32(6); // xso_protocol
        record.u32(2); // xso_family
        record.u16(self.queue[0]); // so_qlen
        record.u16(0); // so_incqlen
        record.u16(self.queue[1]); // so_qlimit
        record.u16(0); // so_timeo
        record.put(&[0; 4]); // so_error, padding
        [1, 0, 501, 4_711, 0].iter().for_each(|word| record.u32(*word)); // so_pgid, so_oobmark, so_uid, so_last_pid, so_e_pid
        record.put(&9_u64.to_ne_bytes()); // so_gencnt
        [0; 5].iter().for_each(|word| record.u32(*word)); // so_flags, so_flags1, so_usecount, so_retaincnt, xso_filter_flags
        record.done()
    }

    fn tcp(&self) -> Vec<u8> {
        let [receive_window, send_window, cwnd, ssthresh] = self.windows;
        let of = |bytes: u32| FIRST.wrapping_add(1).wrapping_add(bytes);
        let mut record = Record::new(204, TCP);
        record.put(&[0; 8]); // t_segq
        [0; 5].iter().for_each(|word| record.u32(*word)); // t_dupacks, t_timer[4]
        record.put(&self.state.to_ne_bytes());
        record.u32(0x3e0); // t_flags: scaling and timestamps by both, SACK
        record.u32(0); // t_force
        // snd_una, snd_max, snd_nxt, snd_up, snd_wl1, snd_wl2, iss, irs
        [of(self.acked), of(self.sent), of(self.sent), 0, 0, 0, FIRST, FIRST].iter().for_each(|word| record.u32(*word));
        // rcv_nxt, rcv_adv, rcv_wnd, rcv_up
        let next = of(self.received);
        [next, next.wrapping_add(receive_window), 1, 0].iter().for_each(|word| record.u32(*word));
        // snd_wnd, snd_cwnd, snd_ssthresh, t_maxopd
        [send_window, cwnd, ssthresh, 1_460].iter().for_each(|word| record.u32(*word));
        // t_rcvtime, t_starttime, t_rtttime, t_rtseq, t_rxtcur, t_maxseg, t_srtt, t_rttvar
        [0, 0, 0, 0, 230, 1_448, (41 << 5) | 8, 3].iter().for_each(|word| record.u32(*word));
        // t_rxtshift, t_rttmin, t_rttupdated, max_sndwnd, t_softerror
        [2, 30, 9, 65_536, 0].iter().for_each(|word| record.u32(*word));
        record.put(&[0, 0, 6, 5, 5, 6, 0, 0]); // t_oobflags, t_iobc, snd_scale, rcv_scale, request_r_scale, requested_s_scale
        [0; 8].iter().for_each(|word| record.u32(*word)); // ts_recent .. snd_ssthresh_prev
        record.done()
    }
}

/// A record with its length and kind; what a C compiler would put at its end is checked.
struct Record(Vec<u8>);

impl Record {
    fn new(length: u32, kind: u32) -> Self {
        let mut record = Self(Vec::new());
        record.u32(length);
        record.u32(kind);
        record
    }

    fn put(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    fn u32(&mut self, word: u32) {
        self.put(&word.to_ne_bytes());
    }

    fn u16(&mut self, half: u16) {
        self.put(&half.to_ne_bytes());
    }

    fn done(mut self) -> Vec<u8> {
        let length = usize::try_from(Fields(&self.0).u32(0).unwrap()).unwrap();
        assert_eq!(self.0.len(), length, "kind {:#x}", Fields(&self.0).u32(4).unwrap());
        self.0.resize(length.next_multiple_of(8), 0);
        self.0
    }
}

fn table(sockets: &[Made]) -> Vec<u8> {
    let mut head = 24_u32.to_ne_bytes().to_vec();
    head.resize(HEAD, 0);
    let mut raw = head.clone();
    for (cookie, socket) in (1..).zip(sockets) {
        raw.extend(socket.raw(cookie));
    }
    raw.extend(head);
    raw
}

/// A system that answers with what the test says.
#[derive(Clone, Default)]
struct System(Arc<Mutex<Vec<Made>>>);

impl Tables for System {
    fn table(&self, name: &str) -> io::Result<Vec<u8>> {
        if name == PCBS { Ok(table(&self.0.lock().unwrap())) } else { Err(io::ErrorKind::NotFound.into()) }
    }

    fn program(&self, pid: u32) -> Option<String> {
        (pid == 4_711).then(|| "curl".to_owned())
    }
}

#[test]
fn every_field_is_read_where_the_headers_have_it() {
    let six = Made { is_v6: true, local: "[2001:db8::1]:22".parse().unwrap(), ..Made::new() };
    let six = Made { peer: "[2001:db8::2]:50001".parse().unwrap(), ..six };
    let waits = Made { state: state::LISTEN, queue: [129, 128], ..Made::new() };
    let over = Made { state: 10, ..Made::new() };
    let found: Vec<Socket> = sockets(&table(&[Made::new(), six, waits, over])).collect();
    let [four, six, waits] = found.as_slice() else { panic!("TIME_WAIT is left out: {found:?}") };
    assert_eq!(four.moved, [1_000, 77]);
    let row = &four.row;
    assert_eq!((row.id.local, row.id.peer), ("192.0.2.1:443".parse().unwrap(), "198.51.100.7:50000".parse().unwrap()));
    assert_eq!((row.id.cookie, row.handle, row.uid), (1, 4_711, Some(501)));
    assert_eq!((row.unread, row.waiting, row.backoffs), (300, 70_000, 2));
    assert_eq!(row.fixed, Some(Fixed { receive: false, send: true }));
    let bytes = |bytes: u64| Some(Bytes::new(bytes));
    assert_eq!((row.memory.receive_buffer, row.memory.send_used), (bytes(131_072), bytes(70_000)));
    let info = row.info;
    assert_eq!((info.cwnd, info.ssthresh, info.mss), (bytes(50_000), None, Some(1_448)));
    assert_eq!((info.send_window, info.receive_window), (bytes(65_536), bytes(131_072)));
    assert_eq!((info.in_flight, info.not_sent), (bytes(40_000), bytes(30_000)));
    assert_eq!(info.rtt, Some(Micros::new(41_250)));
    assert_eq!((info.scaling, info.timestamps, info.sack), (Some(true), Some(true), Some(true)));
    assert_eq!((info.peer_shift, info.own_shift), (Some(6), Some(5)));
    assert_eq!((info.retransmits, info.min_rtt), (None, None), "the table lacks them");
    assert!(six.row.id.is_v6 && six.row.id.local.to_string() == "[2001:db8::1]:22");
    assert_eq!(waits.row.queue, Some([129, 128]));
}

#[test]
fn before_the_peer_has_answered_its_window_is_not_known_and_not_closed() {
    let asked = Made { state: state::SYN_SENT, ..Made::new() };
    let info = sockets(&table(&[asked])).next().unwrap().row.info;
    assert_eq!((info.send_window, info.scaling), (None, None));
}

/// So many seconds of one connection.
fn watched(seconds: u64, change: impl Fn(&mut Made)) -> crate::frame::Row {
    let made = System(Arc::new(Mutex::new(vec![Made::new()])));
    let mut system = MacOs::new(made.clone());
    source::watched(&mut system, seconds, || made.0.lock().unwrap().iter_mut().for_each(&change))
}

#[test]
fn a_window_that_is_used_up_is_the_verdict() {
    // 64 KiB in each round trip of 41.25 ms are 12.7 Mbit/s; the send buffer holds more, and so does the congestion window.
    let row = watched(10, |made| {
        made.acked = made.acked.wrapping_add(176_000);
        made.sent = made.acked.wrapping_add(65_536);
        made.held = [0, 100_000];
        made.windows = [131_072, 65_536, 500_000, 1_073_725_440];
    });
    assert_eq!(row.limiter(), Some(Limiter::ReceiveWindow), "{:?}", row.diagnosis);
    assert_eq!(row.sent_bps.unwrap().bps(), 176_000 * 9 * 8);
    assert_eq!((row.owner.unwrap().process.as_str(), row.retransmissions), ("curl", None));
}

#[test]
fn bytes_beyond_32_bits_are_counted() {
    let row = watched(10, |made| made.acked = made.acked.wrapping_add(1_000_000_000));
    assert_eq!(row.sent_bps.unwrap().bps(), 9 * 8 * 1_000_000_000);
}

#[test]
fn a_process_without_a_name_is_said_to_be_hidden() {
    let mut system = MacOs::new(System::default());
    system.find(&mut [4_711, 9, 0].into_iter());
    assert_eq!(system.owner(4_711).unwrap().pid, 4_711);
    assert!(system.owner(9).is_none() && system.hides_owners());
    assert!(system.missing().iter().any(|text| text.contains("root")));
}

proptest! {
    #[test]
    fn any_bytes_are_read(bytes in vec(any::<u8>(), 0..2_000)) {
        let _ = sockets(&bytes).count();
    }

    #[test]
    fn a_table_that_ends_anywhere_has_what_is_before(end in 0_usize..3_000) {
        let whole = table(&[Made::new(), Made::new(), Made::new()]);
        let size = (whole.len() - 2 * HEAD) / 3;
        let end = end.min(whole.len() - HEAD);
        prop_assert_eq!(sockets(&whole[..end]).count(), end.saturating_sub(HEAD) / size);
    }

    #[test]
    fn a_byte_that_is_wrong_breaks_nothing(at in 0_usize..1_000, byte: u8) {
        let mut wrong = table(&[Made::new(), Made::new()]);
        wrong[at] = byte;
        prop_assert!(sockets(&wrong).count() <= 2);
    }
}
