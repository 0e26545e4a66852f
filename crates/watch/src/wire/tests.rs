//! Answers that a kernel gave (Linux 6.18, x86-64), made ones, and any bytes at all.

use proptest::{collection::vec, prelude::*};

use super::*;

/// What a kernel said of three sockets: a listener on 127.0.0.1:45678 whose receive buffer was set to 64 KB, its accepted
/// connection of which 20,000 B were read, and the other end of that, whose send buffer was set to 64 KB and filled.
#[cfg(target_endian = "little")]
const RECORDED: &[u8] = include_bytes!("recorded.bin");

/// One answer, as a kernel lays it out; also for the tests of other modules.
pub(crate) fn laid_out(id: &SocketId, state: u8, queues: [u32; 2], attributes: &[(u16, &[u8])]) -> Vec<u8> {
    let question = ask_one(id, 0);
    let mut body = vec![if id.is_v6 { 10 } else { 2 }, state, 0, 0];
    body.extend_from_slice(&question[HEADER + 8..]);
    body.extend_from_slice(&[0; 4]);
    for word in [queues[0], queues[1], 1_000, 4_711] {
        body.extend_from_slice(&word.to_ne_bytes());
    }
    for (kind, value) in attributes {
        body.extend_from_slice(&(value.len() as u16 + 4).to_ne_bytes());
        body.extend_from_slice(&kind.to_ne_bytes());
        body.extend_from_slice(value);
        body.resize(body.len().next_multiple_of(4), 0);
    }
    message(BY_FAMILY, 7, &body)
}

fn message(kind: u16, sequence: u32, body: &[u8]) -> Vec<u8> {
    let mut raw = ((HEADER + body.len()) as u32).to_ne_bytes().to_vec();
    raw.extend_from_slice(&kind.to_ne_bytes());
    raw.extend_from_slice(&[0; 2]);
    raw.extend_from_slice(&sequence.to_ne_bytes());
    raw.extend_from_slice(&[0; 4]);
    raw.extend_from_slice(body);
    raw
}

fn id(is_v6: bool, local: &str, peer: &str) -> SocketId {
    SocketId { is_v6, local: local.parse().unwrap(), peer: peer.parse().unwrap(), interface: 3, cookie: 0x1_0000_0002 }
}

#[test]
#[cfg(target_endian = "little")]
fn what_a_kernel_said_is_read() {
    let answers: Vec<_> = answers(RECORDED, 7).collect();
    let sockets: Vec<&Reading<'_>> = answers
        .iter()
        .filter_map(|answer| if let Answer::Socket(reading) = answer { Some(reading) } else { None })
        .collect();
    assert_eq!((sockets.len(), answers.last()), (3, Some(&Answer::Done)));
    let listener = sockets.iter().find(|reading| reading.state == state::LISTEN).unwrap();
    assert_eq!((listener.unread, listener.unacknowledged), (0, 5));
    let of = |port: u16| {
        let is = |reading: &&&Reading<'_>| reading.state == state::ESTABLISHED && reading.id.peer.port() == port;
        *sockets.iter().find(is).unwrap()
    };
    let sender = of(45_678);
    assert_eq!(sender.memory().send_buffer, Some(Bytes::new(131_072)));
    assert!(sender.memory().send_used > Some(Bytes::ZERO) && sender.unacknowledged > 0, "{sender:?}");
    assert_eq!(sender.info().scaling, Some(true));
    assert!(sender.moved()[0] > 20_000 && sender.moved()[1] == 0, "{sender:?}");
    assert!(sender.congestion().is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_lowercase())));
    let receiver = of(sender.id.local.port());
    assert_eq!(receiver.memory().receive_buffer, Some(Bytes::new(131_072)));
    assert_eq!(u64::from(receiver.unread) + 20_000, receiver.moved()[1]);
    assert!(receiver.inode != 0 && receiver.id.cookie != sender.id.cookie);
}

#[test]
fn before_the_peer_has_answered_its_window_is_not_known_and_not_closed() {
    let id = id(false, "192.0.2.1:50000", "198.51.100.7:443");
    let info = |state: u8| {
        let raw = laid_out(&id, state, [0, 1], &[(INFO, &[0; 240])]);
        let Some(Answer::Socket(reading)) = answers(&raw, 7).next() else { panic!("no socket") };
        let info = reading.info();
        (info.send_window, info.scaling, info.sack)
    };
    assert_eq!(info(state::SYN_SENT), (None, None, None));
    assert_eq!(info(state::ESTABLISHED), (Some(Bytes::ZERO), Some(false), Some(false)));
}

#[test]
fn a_socket_is_asked_for_by_the_ends_that_its_answer_had() {
    for id in [
        id(false, "192.0.2.1:443", "198.51.100.7:50000"),
        id(true, "[2001:db8::1]:443", "[2001:db8::2]:50000"),
        // IPv4 over an IPv6 socket.
        id(true, "192.0.2.1:443", "198.51.100.7:50000"),
    ] {
        let raw = laid_out(&id, state::ESTABLISHED, [1, 2], &[]);
        let Some(Answer::Socket(reading)) = answers(&raw, 7).next() else { panic!("no socket") };
        assert_eq!(reading.id, id);
        assert_eq!((reading.unread, reading.unacknowledged, reading.uid, reading.inode), (1, 2, 1_000, 4_711));
    }
}

#[test]
fn only_what_answers_the_question_counts() {
    let id = id(false, "192.0.2.1:1", "192.0.2.2:2");
    let mut raw = laid_out(&id, state::ESTABLISHED, [0; 2], &[]);
    raw.extend(message(NLMSG_ERROR, 7, &(-2i32).to_ne_bytes()));
    assert_eq!(answers(&raw, 8).count(), 0, "left over from a question that was given up");
    assert_eq!(answers(&raw, 7).last(), Some(Answer::Refused(2)));
    assert_eq!(answers(&message(NLMSG_DONE, 7, &(-1i32).to_ne_bytes()), 7).next(), Some(Answer::Refused(1)));
    assert_eq!(answers(&message(NLMSG_DONE, 7, &0i32.to_ne_bytes()), 7).next(), Some(Answer::Done));
}

#[test]
fn an_old_kernel_and_a_strange_name_are_read_as_far_as_they_go() {
    let mut info = [0u8; 104];
    info[68..72].copy_from_slice(&25_000u32.to_ne_bytes());
    let id = id(false, "192.0.2.1:1", "192.0.2.2:2");
    let raw =
        laid_out(&id, state::ESTABLISHED, [0; 2], &[(INFO, &info), (CONGESTION, b"\xff\x1b[2J\0x"), (99, b"abc")]);
    let Some(Answer::Socket(reading)) = answers(&raw, 7).next() else { panic!("no socket") };
    assert_eq!((reading.rtt_us(), reading.moved()), (Some(25_000), [0, 0]));
    assert_eq!(reading.info().bytes_acked, None);
    assert_eq!(reading.congestion().unwrap(), "\u{fffd}\u{1b}[2J");
    assert_eq!(reading.memory(), Memory::default());
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_a_panic(raw in vec(any::<u8>(), 0..600), sequence in any::<u32>()) {
        for answer in answers(&raw, sequence) {
            if let Answer::Socket(reading) = answer {
                let _ = (reading.info(), reading.memory(), reading.congestion(), reading.moved(), reading.quiet_ms());
            }
        }
    }

    #[test]
    fn an_answer_that_is_cut_or_changed_anywhere_is_no_panic(
        cut in 0usize..400, at in 0usize..400, byte in any::<u8>(), info in vec(any::<u8>(), 0..260),
    ) {
        let id = id(false, "192.0.2.1:1", "192.0.2.2:2");
        let mut raw = laid_out(&id, state::ESTABLISHED, [9; 2], &[(INFO, &info), (MEMORY, &info), (CONGESTION, &info)]);
        if let Some(place) = raw.get_mut(at) {
            *place = byte;
        }
        raw.truncate(cut);
        for answer in answers(&raw, 7) {
            if let Answer::Socket(reading) = answer {
                let _ = (reading.info(), reading.memory(), reading.congestion(), reading.moved(), reading.quiet_ms());
            }
        }
    }
}
