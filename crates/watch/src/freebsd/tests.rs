//! Tables laid out field by field as FreeBSD's headers have them, and any bytes at all.

use std::{io, net::SocketAddr};

use fullpipe_diagnose::Limiter;
use fullpipe_socket::Bytes;
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
    /// Of a listener: waiting, and how many may.
    queue: [u32; 2],
    /// In the buffers for receiving and sending, and the sizes of these.
    held: [u32; 2],
    sizes: [u32; 2],
    flags: [u16; 2],
    windows: [u32; 5],
    rexmits: u32,
}

impl Made {
    fn new() -> Self {
        Self {
            is_v6: false,
            local: "192.0.2.1:443".parse().unwrap(),
            peer: "198.51.100.7:50000".parse().unwrap(),
            state: state::ESTABLISHED,
            queue: [0; 2],
            held: [0, 20_000],
            sizes: [65_536, 32_768],
            flags: [AUTOMATIC, 0],
            // cwnd, ssthresh, maxseg, rcv_wnd, snd_wnd
            windows: [40_000, 1_073_725_440, 1_448, 65_700, 131_072],
            rexmits: 12,
        }
    }

    /// `struct xtcpcb` of FreeBSD 15, field after field, with the padding that a C compiler leaves.
    fn raw(&self, cookie: u64) -> Vec<u8> {
        let mut raw = Vec::new();
        let mut put = |bytes: &[u8]| raw.extend_from_slice(bytes);
        put(&744_u64.to_ne_bytes()); // xt_len
        put(&400_u64.to_ne_bytes()); // xi_len
        // xsocket: xso_len, xso_so, so_pcb, so_oobmark, so_splice_so, so_spare64[7]
        [240, 0xffff_f800_0000_1000, 7, 0].iter().for_each(|word: &u64| put(&word.to_ne_bytes()));
        put(&[0; 64]);
        // xso_protocol, xso_family, so_qlen, so_incqlen, so_qlimit, so_pgid, so_uid, then 32 bytes
        [6, 2, self.queue[0], 0, self.queue[1], 1, 80].iter().for_each(|word: &u32| put(&word.to_ne_bytes()));
        put(&[0; 32]);
        put(&[0; 12]); // so_type, so_options, so_linger, so_state, so_timeo, so_error
        for way in [0, 1] {
            // sb_cc, sb_hiwat, sb_mbcnt, sb_spare0, sb_spare1, sb_mbmax, sb_lowat, sb_timeo, sb_flags
            let words = [self.held[way], self.sizes[way], 256, 0, 0, 524_288, 1, 0];
            words.iter().for_each(|word| put(&word.to_ne_bytes()));
            put(&self.flags[way].to_ne_bytes());
            put(&[0; 2]);
        }
        put(&[0; 4]); // inc_flags, inc_len, inc_fibnum
        put(&self.peer.port().to_be_bytes());
        put(&self.local.port().to_be_bytes());
        for end in [self.peer, self.local] {
            match end {
                SocketAddr::V4(end) => {
                    put(&[0; 12]);
                    put(&end.ip().octets());
                }
                SocketAddr::V6(end) => put(&end.ip().octets()),
            }
        }
        put(&[0; 4]); // ie6_zoneid
        put(&[0; 4]); // padding
        put(&cookie.to_ne_bytes()); // inp_gencnt
        put(&[0; 40]); // inp_spare64[5]
        put(&[0; 28]); // inp_flow, inp_flowid, inp_flowtype, inp_flags, inp_flags2, inp_unused, in6p_cksum
        put(&[0; 16]); // inp_spare32[4]
        put(&[0; 4]); // in6p_hops, inp_ip_tos, pad8
        put(&[if self.is_v6 { 2 } else { 1 }, 64, 6, 0]); // inp_vflag, inp_ip_ttl, inp_ip_p, inp_ip_minttl
        put(&[0; 4]); // inp_spare8[4]
        let mut named = |name: &[u8], length: usize| {
            put(name);
            put(&vec![0; length - name.len()]);
        };
        named(b"freebsd", 32); // xt_stack
        named(b"", 64); // xt_logid
        named(b"cubic", 16); // xt_cc
        put(&[0; 48]); // spare64[6]
        put(&self.state.to_ne_bytes());
        put(&0x3e0_u32.to_ne_bytes()); // t_flags: scaling and timestamps by both, SACK
        // t_sndzerowin, t_sndrexmitpack, t_rcvoopack, t_rcvtime, then six timers and the log's state
        [3, self.rexmits, 5, 250, 0, 0, 0, 0, 0, 0].iter().for_each(|word| put(&word.to_ne_bytes()));
        self.windows.iter().for_each(|word| put(&word.to_ne_bytes()));
        put(&[0; 20]); // xt_ecn, t_dsack_bytes, t_dsack_tlp_bytes, t_dsack_pack, xt_encaps_port, spare16
        put(&[0; 88]); // spare32[22]
        assert_eq!(raw.len(), 744, "sizeof(struct xtcpcb)");
        raw
    }
}

fn table(sockets: &[Made]) -> Vec<u8> {
    let mut head = HEAD.to_ne_bytes().to_vec();
    head.resize(64, 0);
    let mut raw = head.clone();
    for (cookie, socket) in (1..).zip(sockets) {
        raw.extend(socket.raw(cookie));
    }
    raw.extend(head);
    raw
}

/// `struct xfile`.
fn file(pid: u32, fd: u32, kind: u16, socket: u64) -> Vec<u8> {
    let mut raw = 128_u64.to_ne_bytes().to_vec();
    [pid, 0, fd, 0].iter().for_each(|word| raw.extend(word.to_ne_bytes()));
    raw.extend([0; 8]); // xf_file
    raw.extend(kind.to_ne_bytes());
    raw.extend([0; 2 + 12 + 8]); // padding, xf_count, xf_msgcount, padding, xf_offset
    raw.extend(socket.to_ne_bytes());
    raw.resize(128, 0);
    raw
}

/// A system that answers with these tables.
struct System {
    pcbs: Vec<u8>,
    files: Vec<u8>,
}

impl Tables for System {
    fn table(&self, name: &str) -> io::Result<Vec<u8>> {
        match name {
            PCBS => Ok(self.pcbs.clone()),
            FILES => Ok(self.files.clone()),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn program(&self, pid: u32) -> Option<String> {
        (pid == 4_711).then(|| "nginx".to_owned())
    }
}

#[test]
fn every_field_is_read_where_the_headers_have_it() {
    let six = Made { is_v6: true, local: "[2001:db8::1]:22".parse().unwrap(), ..Made::new() };
    let six = Made { peer: "[2001:db8::2]:50001".parse().unwrap(), ..six };
    let waits = Made { state: state::LISTEN, queue: [129, 128], ..Made::new() };
    let over = Made { state: 10, ..Made::new() };
    let found: Vec<TableRow> = sockets(&table(&[Made::new(), six, waits, over])).collect();
    let [four, six, waits] = found.as_slice() else { panic!("TIME_WAIT is left out: {found:?}") };
    assert_eq!(
        (four.id.local, four.id.peer),
        ("192.0.2.1:443".parse().unwrap(), "198.51.100.7:50000".parse().unwrap())
    );
    assert_eq!((four.id.cookie, four.handle, four.uid), (1, 0xffff_f800_0000_1000, Some(80)));
    assert_eq!((four.unread, four.waiting, four.received_before_ms), (0, 20_000, Some(250)));
    let bytes = |bytes: u64| Some(Bytes::new(bytes));
    assert_eq!((four.memory.receive_buffer, four.memory.send_buffer), (bytes(65_536), bytes(32_768)));
    assert_eq!((four.memory.receive_used, four.memory.send_used), (bytes(0), bytes(20_000)));
    assert_eq!(four.fixed, Some(Fixed { receive: false, send: true }));
    assert_eq!(four.congestion.as_deref(), Some("cubic"));
    let info = four.info;
    assert_eq!((info.cwnd, info.ssthresh, info.mss), (bytes(40_000), None, Some(1_448)));
    assert_eq!((info.receive_window, info.send_window), (bytes(65_700), bytes(131_072)));
    assert_eq!((info.retransmits, info.out_of_order), (Some(12), Some(5)));
    assert_eq!((info.scaling, info.timestamps, info.sack), (Some(true), Some(true), Some(true)));
    assert_eq!((info.rtt, info.bytes_acked, info.in_flight), (None, None, None), "the table lacks them");
    assert!(six.id.is_v6 && six.id.local.to_string() == "[2001:db8::1]:22" && six.id.peer.port() == 50_001);
    assert_eq!((waits.queue, waits.id.cookie), (Some([129, 128]), 3));
}

#[test]
fn before_the_peer_has_answered_its_window_is_not_known_and_not_closed() {
    let asked = Made { state: state::SYN_SENT, ..Made::new() };
    let info = sockets(&table(&[asked])).next().unwrap().info;
    assert_eq!((info.send_window, info.scaling), (None, None));
}

#[test]
fn a_version_without_windows_has_none_rather_than_closed_ones() {
    let old = Made { windows: [0; 5], ..Made::new() };
    let info = sockets(&table(&[old])).next().unwrap().info;
    assert_eq!((info.cwnd, info.send_window, info.receive_window, info.mss), (None, None, None, None));
}

#[test]
fn owners_are_found_by_the_place_of_their_socket() {
    let socket = 0xffff_f800_0000_1000;
    let files = [file(1, 3, 1, socket), file(4_711, 12, 2, socket), file(4_712, 12, 2, socket)].concat();
    let mut system = FreeBsd::new(System { pcbs: table(&[Made::new()]), files });
    system.find(&mut [socket, 9, 0].into_iter());
    let owner = system.owner(socket).unwrap();
    assert_eq!((owner.process.as_str(), owner.pid, owner.fd), ("nginx", 4_711, Some(12)));
    assert!(
        system.owner(9).is_none() && system.hides_owners() && system.missing().iter().any(|text| text.contains("root"))
    );
    system.keep(&|_| false);
    assert!(system.owner(socket).is_none() && !system.hides_owners());
}

#[test]
fn some_are_looked_at_and_the_others_are_told_to_be_gone() {
    let mut system = FreeBsd::new(System { pcbs: table(&[Made::new(), Made::new()]), files: Vec::new() });
    let mut all = Vec::new();
    system.all(&mut |look| all.push(look.id())).unwrap();
    let over = SocketId { cookie: 77, ..all[0] };
    let mut some = Vec::new();
    let gone = system.these(&[all[1], over], &mut |look| some.push(look.id())).unwrap();
    assert_eq!((some, gone), (vec![all[1]], vec![77]));
}

/// Ten seconds of one connection.
fn watched(made: &Made) -> crate::frame::Row {
    let mut system = FreeBsd::new(System { pcbs: table(std::slice::from_ref(made)), files: Vec::new() });
    source::watched(&mut system, 10, || {})
}

#[test]
fn without_counts_of_bytes_there_is_no_rate_and_no_guess() {
    let row = watched(&Made::new());
    assert_eq!((row.rate(), row.rtt_us), (None, None));
    assert_eq!(row.limiter(), None, "{:?}", row.diagnosis);
    assert_eq!(row.diagnosis.unwrap().limiter, Limiter::InsufficientEvidence);
    assert_eq!((row.peer_window, row.retransmissions), (Some(Bytes::new(131_072)), Some(0)));
    let set = row.notes.iter().find(|note| note.text.contains("SO_SNDBUF")).expect("it was set");
    assert!(set.is_sure, "{set:?}");
}

#[test]
fn a_window_that_stays_closed_is_named() {
    let closed = Made { windows: [40_000, 1_073_725_440, 1_448, 65_700, 0], ..Made::new() };
    let row = watched(&closed);
    assert!(row.notes.iter().any(|note| note.text.contains("window was closed")), "{:?}", row.notes);
}

proptest! {
    #[test]
    fn any_bytes_are_read(bytes in vec(any::<u8>(), 0..2_000)) {
        let _ = sockets(&bytes).count();
        let _ = files(&bytes);
    }

    #[test]
    fn a_table_that_ends_anywhere_has_what_is_before(end in 0_usize..64 + 3 * 744) {
        let whole = table(&[Made::new(), Made::new(), Made::new()]);
        prop_assert_eq!(sockets(&whole[..end]).count(), end.saturating_sub(64) / 744);
    }

    #[test]
    fn a_byte_that_is_wrong_breaks_nothing(at in 0_usize..64 + 2 * 744, byte: u8) {
        let mut wrong = table(&[Made::new(), Made::new()]);
        wrong[at] = byte;
        prop_assert!(sockets(&wrong).count() <= 2);
    }
}
