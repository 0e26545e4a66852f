//! The rate that a path takes, by short trains of datagrams: a train that is sent faster than the path takes it arrives
//! stretched, because its datagrams queue behind each other (Jain and Dovrolis, "End-to-End Available Bandwidth", 2002;
//! Hu and Steenkiste, "Evaluation and Characterization of Available Bandwidth Probing Techniques", 2003).
//!
//! Back-to-back trains give a first guess; paced ones then close in on the rate from both sides. Rates are those of IP
//! packets. A train is short: what a shaper lets through at once, before its limit shows, is taken for the path's rate.

mod prober;
mod responder;
mod search;

use std::{
    hint, io,
    net::UdpSocket,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

pub use prober::{Available, Measured, Prober};
pub use responder::Responder;

use crate::{TOKEN_LEN, is_pause};

const HEADER_LEN: usize = 36;

/// The most datagrams in a train.
const MOST_IN_TRAIN: u16 = 400;

/// The longest time between two of them.
const LONGEST_GAP: Duration = Duration::from_millis(20);

/// The kinds of datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// One of a train, either way.
    Probe = 1,
    /// "What of that train arrived?"
    ReportRequest = 2,
    /// "So many, and it took so long."
    Report = 3,
    /// "Send me a train."
    TrainRequest = 4,
    /// "That was all, and sending it took so long."
    TrainSent = 5,
}

/// The beginning of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Header {
    token: [u8; TOKEN_LEN],
    kind: Kind,
    /// Which train.
    train: u32,
    /// How many datagrams it has, or how many arrived.
    count: u16,
    /// Which of them this is.
    index: u16,
    /// Of the payload of each, in bytes.
    size: u16,
    /// Nanoseconds: when this one was sent, since the first; or how long the pairs that count took to arrive.
    ns: u64,
    /// Nanoseconds: the gap in which they are to be sent; or how long the pairs that count took to be sent.
    gap_ns: u64,
}

impl Header {
    /// Both directions' order of bytes is big endian; the rest up to `len` is zeros.
    fn datagram(&self, len: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(len.max(HEADER_LEN));
        bytes.extend_from_slice(&self.token);
        bytes.extend_from_slice(&[self.kind as u8, 0]);
        bytes.extend_from_slice(&self.train.to_be_bytes());
        for number in [self.count, self.index, self.size] {
            bytes.extend_from_slice(&number.to_be_bytes());
        }
        for number in [self.ns, self.gap_ns] {
            bytes.extend_from_slice(&number.to_be_bytes());
        }
        bytes.resize(len.max(HEADER_LEN), 0);
        bytes
    }

    fn parse(datagram: &[u8]) -> Option<Self> {
        let (token, rest) = datagram.split_first_chunk::<TOKEN_LEN>()?;
        let (&[kind, _], rest) = rest.split_first_chunk::<2>()?;
        let (train, rest) = rest.split_first_chunk::<4>()?;
        let (count, rest) = rest.split_first_chunk::<2>()?;
        let (index, rest) = rest.split_first_chunk::<2>()?;
        let (size, rest) = rest.split_first_chunk::<2>()?;
        let (ns, rest) = rest.split_first_chunk::<8>()?;
        let (gap_ns, _) = rest.split_first_chunk::<8>()?;
        let kinds = [Kind::Probe, Kind::ReportRequest, Kind::Report, Kind::TrainRequest, Kind::TrainSent];
        Some(Self {
            token: *token,
            kind: kinds.into_iter().find(|known| *known as u8 == kind)?,
            train: u32::from_be_bytes(*train),
            count: u16::from_be_bytes(*count),
            index: u16::from_be_bytes(*index),
            size: u16::from_be_bytes(*size),
            ns: u64::from_be_bytes(*ns),
            gap_ns: u64::from_be_bytes(*gap_ns),
        })
    }
}

/// What is seen of an arriving train: pairs of neighbours that were sent in the planned gap. A sender that was kept from
/// running leaves a longer one, in which queues empty: such a pair says nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Seen {
    train: u32,
    count: u16,
    pairs: u16,
    /// How long the pairs took to be sent, and to arrive.
    sent_ns: u64,
    came_ns: u64,
    last: Option<(Header, u64)>,
}

impl Seen {
    fn add(&mut self, header: Header, came_ns: u64) {
        if header.train != self.train {
            *self = Self { train: header.train, ..Self::default() };
        }
        self.count = self.count.saturating_add(1);
        if let Some((last, last_came_ns)) = self.last.replace((header, came_ns))
            && last.index.checked_add(1) == Some(header.index)
        {
            let sent_ns = header.ns.saturating_sub(last.ns);
            // As exactly as a program that isn't disturbed keeps a gap.
            if sent_ns <= header.gap_ns.saturating_add(header.gap_ns / 4).saturating_add(100_000) {
                self.pairs = self.pairs.saturating_add(1);
                self.sent_ns = self.sent_ns.saturating_add(sent_ns);
                self.came_ns = self.came_ns.saturating_add(came_ns.saturating_sub(last_came_ns));
            }
        }
    }
}

/// Sends the train that the header describes. A datagram that is late delays all that follow, since catching up would
/// send faster than planned.
fn send(socket: &UdpSocket, header: Header, stop: &AtomicBool) -> io::Result<()> {
    let gap = Duration::from_nanos(header.gap_ns).min(LONGEST_GAP);
    let start = Instant::now();
    let mut due = start;
    for index in 0..header.count.min(MOST_IN_TRAIN) {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let mut probe = Header { index, ..header }.datagram(header.size.into());
        wait_until(due);
        let now = Instant::now();
        due = now + gap;
        let ns = u64::try_from(now.saturating_duration_since(start).as_nanos()).unwrap_or(u64::MAX);
        // In its place in the header: see `datagram`.
        if let Some(place) = probe.get_mut(20..28) {
            place.copy_from_slice(&ns.to_be_bytes());
        }
        match socket.send(&probe) {
            Err(error) if !is_pause(&error) && error.kind() != io::ErrorKind::ConnectionRefused => return Err(error),
            // One that was not sent is as good as lost.
            _ => {}
        }
    }
    Ok(())
}

/// Sleeps for the most of it and spins for the rest: a sleep alone is late by more than the gaps of a fast train.
fn wait_until(due: Instant) {
    const SPUN: Duration = Duration::from_micros(300);
    if let Some(sleep) = due.saturating_duration_since(Instant::now()).checked_sub(SPUN) {
        thread::sleep(sleep);
    }
    while Instant::now() < due {
        hint::spin_loop();
    }
}

/// What becomes of a peer's datagram, for the fuzzer.
#[cfg(any(test, fuzzing))]
pub(crate) fn read_any(datagram: &[u8]) {
    let Some(header) = Header::parse(datagram) else { return };
    assert_eq!(Header::parse(&header.datagram(0)), Some(header));
    let mut seen = Seen::default();
    seen.add(header, header.ns);
    seen.add(Header { index: header.index.wrapping_add(1), ..header }, 0);
    assert!(seen.count <= 2 && seen.pairs <= 1);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn headers_survive_the_wire(
            token: [u8; TOKEN_LEN], train: u32, count: u16, index: u16, size: u16, ns: u64, gap_ns: u64, len in 0usize..2_000,
        ) {
            let header = Header { token, kind: Kind::Report, train, count, index, size, ns, gap_ns };
            let bytes = header.datagram(len);
            prop_assert_eq!(bytes.len(), len.max(HEADER_LEN));
            prop_assert_eq!(Header::parse(&bytes), Some(header));
        }

        #[test]
        fn no_datagram_of_a_stranger_panics(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            read_any(&bytes);
        }
    }

    #[test]
    fn no_datagram_of_a_train_is_sent_before_its_gap() {
        let far = UdpSocket::bind("127.0.0.1:0").unwrap();
        let near = UdpSocket::bind("127.0.0.1:0").unwrap();
        near.connect(far.local_addr().unwrap()).unwrap();
        let gap_ns = 2_000_000;
        let header =
            Header { token: [7; 8], kind: Kind::Probe, train: 1, count: 11, index: 0, size: 100, ns: 0, gap_ns };
        send(&near, header, &AtomicBool::new(false)).unwrap();
        let mut buffer = [0u8; 200];
        let mut before = None;
        for index in 0..11 {
            let count = far.recv(&mut buffer).unwrap();
            let probe = Header::parse(&buffer[..count]).unwrap();
            assert_eq!((count, probe.index), (100, index));
            assert!(before.is_none_or(|before| probe.ns >= before + gap_ns), "{before:?} {probe:?}");
            before = Some(probe.ns);
        }
    }

    #[test]
    fn a_pause_of_the_sender_is_no_stretch_of_the_path() {
        let probe = |index: u16, ns: u64| Header {
            token: [7; 8],
            kind: Kind::Probe,
            train: 1,
            count: 5,
            index,
            size: 100,
            ns,
            gap_ns: 1_000_000,
        };
        let mut seen = Seen::default();
        // Each takes twice as long to arrive; the third was sent much too late, the one before the last got lost.
        for (index, sent_us, came_us) in [(0, 0, 500), (1, 1_000, 2_500), (2, 9_000, 10_000), (4, 11_000, 14_000)] {
            seen.add(probe(index, sent_us * 1_000), came_us * 1_000);
        }
        assert_eq!((seen.count, seen.pairs, seen.sent_ns, seen.came_ns), (4, 1, 1_000_000, 2_000_000));
    }
}
