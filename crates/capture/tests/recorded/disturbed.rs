//! The same captures as other gear would have written them: one direction later than the other, with a clock that is set back in the
//! middle, with each packet twice. What happened is the same, and so is the verdict.

use fullpipe_capture::{Counters, Keep, Report, Tracker};

use super::{RECORDED, bytes_of, read_bytes_into};

const MS: u64 = 1_000_000;

/// A packet of a pcap file: when, from which end, and its record behind the time.
#[derive(Clone)]
struct Packet {
    at_ns: u64,
    from: [u8; 4],
    rest: Vec<u8>,
}

/// The packets of a capture (microseconds, little-endian, IPv4 without a link's header), and the file's header with them.
fn packets(name: &str) -> (Vec<u8>, Vec<Packet>) {
    let bytes = bytes_of(name);
    let (header, mut rest) = bytes.split_at(24);
    assert_eq!((&header[..4], header[20]), (&[0xD4, 0xC3, 0xB2, 0xA1][..], 101), "{name}");
    let word = |bytes: &[u8], at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let mut packets = Vec::new();
    while rest.len() >= 16 && rest.len() >= 16 + word(rest, 8) as usize {
        let (packet, behind) = rest.split_at(16 + word(rest, 8) as usize);
        let at_ns = u64::from(word(packet, 0)) * 1_000 * MS + u64::from(word(packet, 4)) * 1_000;
        packets.push(Packet { at_ns, from: packet[28..32].try_into().unwrap(), rest: packet[8..].to_vec() });
        rest = behind;
    }
    (header.to_vec(), packets)
}

/// What is found in a capture after `disturb` has changed its packets.
fn found(name: &str, disturb: impl Fn(&mut Vec<Packet>, [u8; 4])) -> Report {
    let (mut bytes, mut packets) = packets(name);
    let payload = |end: [u8; 4]| -> usize {
        let len = |packet: &Packet| usize::from(u16::from_be_bytes([packet.rest[10], packet.rest[11]]));
        packets.iter().filter(|packet| packet.from == end).map(len).sum()
    };
    // The one whose packets have more bytes is the sender.
    let ends = [packets[0].from, packets.iter().find(|packet| packet.from != packets[0].from).unwrap().from];
    let sender = if payload(ends[0]) > payload(ends[1]) { ends[0] } else { ends[1] };
    disturb(&mut packets, sender);
    for Packet { at_ns, rest, .. } in packets {
        bytes.extend_from_slice(&((at_ns / MS / 1_000) as u32).to_le_bytes());
        bytes.extend_from_slice(&((at_ns / 1_000 % 1_000_000) as u32).to_le_bytes());
        bytes.extend_from_slice(&rest);
    }
    let mut tracker = Tracker::new(1, Keep::default());
    read_bytes_into(&bytes, &mut tracker);
    let found = tracker.finish();
    found.connections.get(0).unwrap().into_owned()
}

/// What is wrong with the verdict on a disturbed capture, if anything is.
fn difference(name: &str, how: &str, report: &Report) -> Option<String> {
    let expected = RECORDED.iter().find(|(recorded, ..)| name.starts_with(recorded));
    let expected = expected.map(|(_, limiter, detail)| (*limiter, *detail));
    let verdict = report.main_side().verdict.as_ref();
    let found = verdict.map(|verdict| (verdict.diagnosis.limiter, verdict.diagnosis.detail));
    (found.is_none() || found != expected).then(|| format!("{name}, {how}: {found:?} for {expected:?}"))
}

fn names() -> impl Iterator<Item = String> {
    RECORDED.iter().flat_map(|(name, ..)| ["a", "b"].map(|host| format!("{name}-{host}")))
}

#[test]
fn data_that_a_tap_wrote_behind_their_acknowledgements_were_not_sent_again() {
    let mut wrong = Vec::new();
    for name in names() {
        let before = found(&name, |_, _| {}).main_side().counters;
        for late_us in [50, 300] {
            let report = found(&name, |packets, sender| {
                let late = |packet: &Packet| if packet.from == sender { late_us * 1_000 } else { 0 };
                packets.iter_mut().for_each(|packet| packet.at_ns += late(packet));
                packets.sort_by_key(|packet| packet.at_ns);
            });
            let how = format!("data {late_us} us late");
            wrong.extend(difference(&name, &how, &report));
            let again = |counters: &Counters| (counters.retransmissions, counters.unseen);
            let (was, is) = (again(&before), again(&report.main_side().counters));
            wrong.extend((was != is).then(|| format!("{name}, {how}: {was:?} before, {is:?} now")));
        }
    }
    assert_eq!(wrong, [""; 0]);
}

#[test]
fn a_clock_that_is_set_back_changes_no_verdict() {
    let (mut wrong, mut hidden) = (Vec::new(), 0);
    for name in names() {
        let (rtt, packets) = (found(&name, |_, _| {}).rtt.unwrap(), packets(&name).1);
        let middle = packets.len() / 2;
        let gap_ns = packets[middle].at_ns - packets[middle - 1].at_ns;
        for back_ms in [70, 5_000] {
            let report = found(&name, |packets, _| {
                packets.iter_mut().skip(middle).for_each(|packet| packet.at_ns -= back_ms * MS);
            });
            let how = format!("set back by {back_ms} ms");
            // What passed meanwhile is not known, and counts as nothing; who waited for as long sees nothing of it.
            let by_ns = (back_ms * MS).saturating_sub(gap_ns);
            if by_ns < 20 * MS {
                hidden += 1;
                continue;
            }
            wrong.extend(difference(&name, &how, &report));
            let told = report.clock_set_back.map(|back| (back.packet, back.by.get()));
            // What carries nothing new might belong to another copy of the capture.
            let is_told = told.is_some_and(|(packet, by_us)| {
                (1..5).contains(&(packet - middle as u64)) && by_us.abs_diff(by_ns / 1_000) < back_ms * 100
            });
            let trip = report.rtt.unwrap();
            let is_close = trip.get().abs_diff(rtt.get()) < 1_000;
            wrong
                .extend((!is_close || !is_told).then(|| format!("{name}, {how}: {rtt}, {trip}, {told:?}, {by_ns} ns")));
        }
    }
    assert_eq!(wrong, [""; 0]);
    assert!(hidden < 10, "{hidden} of {}", 2 * names().count());
}

#[test]
fn packets_that_were_captured_twice_count_once() {
    let mut wrong = Vec::new();
    for name in names() {
        let before = found(&name, |_, _| {}).main_side().counters.packets;
        let report = found(&name, |packets, _| {
            let mut copies = packets.clone();
            copies.iter_mut().for_each(|copy| copy.at_ns += MS / 20);
            packets.append(&mut copies);
            packets.sort_by_key(|packet| packet.at_ns);
        });
        wrong.extend(difference(&name, "each twice", &report));
        let now = report.main_side().counters.packets;
        wrong.extend((now != before).then(|| format!("{name}: {before} packets before, {now} now")));
    }
    assert_eq!(wrong, [""; 0]);
}

/// The record with the packet in another one's, as a load balancer sends it on (IP in IP; RFC 2003). `by` says which of several sent it.
fn wrapped(record: &[u8], by: u8) -> Vec<u8> {
    let length = |at: usize| u32::from_le_bytes(record[at..at + 4].try_into().unwrap()) + 20;
    let total = u16::from_be_bytes([record[10], record[11]]) + 20;
    let mut outer = vec![0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 4, 0, 0, 192, 0, 2, by, 198, 51, 100, 7];
    outer[2..4].copy_from_slice(&total.to_be_bytes());
    [&length(0).to_le_bytes()[..], &length(4).to_le_bytes(), &outer, &record[8..]].concat()
}

#[test]
fn one_direction_in_a_tunnel_is_of_the_same_connection() {
    let mut wrong = Vec::new();
    for name in names() {
        let before = found(&name, |_, _| {}).sides.each_ref().map(|side| side.counters.packets);
        for (how, tunnels, is_of_sender) in
            [("requests in a tunnel", 1, false), ("data in one of two tunnels", 2, true)]
        {
            let report = found(&name, |packets, sender| {
                for (number, packet) in packets.iter_mut().enumerate() {
                    if (packet.from == sender) == is_of_sender {
                        // Behind the handshake the balancers take turns.
                        let by = if number < 4 { 0 } else { number as u8 % tunnels };
                        packet.rest = wrapped(&packet.rest, by);
                    }
                }
            });
            wrong.extend(difference(&name, how, &report));
            let now = report.sides.each_ref().map(|side| side.counters.packets);
            wrong.extend((now != before).then(|| format!("{name}, {how}: {before:?} packets before, {now:?} now")));
        }
    }
    assert_eq!(wrong, [""; 0]);
}
