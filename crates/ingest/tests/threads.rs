//! Random captures, damaged ones too, read the same with one thread and with four, whatever the pieces. `cargo xtask
//! soak` runs some twenty thousand of them.

use std::{io::Cursor, num::NonZeroUsize, ops::ControlFlow};

use fullpipe_capture::Keep;
use fullpipe_ingest::{Options, Source, Team, read_source};
use proptest::prelude::*;

/// Numbers from a seed (xorshift64, Marsaglia 2003).
struct Dice(u64);

impl Dice {
    /// Below `sides`.
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) % sides
    }
}

/// How far one connection has got: next numbers of both directions, and steps.
#[derive(Clone, Copy, Default)]
struct Talk {
    next: [u32; 2],
    step: u32,
}

/// A pcap file of raw IP: connections that take turns, mostly in order, with repeats, gaps, closed windows, resets, ports
/// that are used again, and pauses of up to some hours.
fn capture(seed: u64, packets: u32, connections: usize) -> Vec<u8> {
    let mut dice = Dice(seed | 1);
    let mut talks = vec![Talk::default(); connections];
    let mut micros = 1_000_000_u64;
    let mut file = [0xA1B2_C3D4_u32, 4 << 16 | 2, 0, 0, 65_535, 101].map(u32::to_le_bytes).concat();
    for number in 0..packets {
        let which = dice.roll(connections as u64) as usize;
        let packet = packet(&mut dice, &mut talks[which], which as u32, number);
        micros += if dice.roll(2_000) == 0 { dice.roll(20_000_000_000) } else { dice.roll(5_000) };
        let captured = if dice.roll(100) == 0 { dice.roll(packet.len() as u64) as usize } else { packet.len() };
        let length = u32::from(u16::from_be_bytes([packet[2], packet[3]]));
        for word in [(micros / 1_000_000) as u32, (micros % 1_000_000) as u32, captured as u32, length] {
            file.extend(word.to_le_bytes());
        }
        file.extend(&packet[..captured]);
    }
    file
}

/// The headers of the next packet.
fn packet(dice: &mut Dice, talk: &mut Talk, connection: u32, number: u32) -> Vec<u8> {
    let from = if talk.step < 3 { talk.step as usize & 1 } else { usize::from(dice.roll(3) == 0) };
    let (mut flags, mut payload) = match talk.step {
        0 => (0x02, 0),
        1 => (0x12, 0),
        _ => (0x10, if from == 0 { dice.roll(3) as u32 * 724 } else { 0 }),
    };
    match dice.roll(120) {
        0 => flags = 0x11,
        1 => flags = 0x14,
        2 => flags = dice.roll(512) as u8,
        3 => *talk = Talk { next: [dice.roll(1 << 32) as u32; 2], step: 0 },
        4 => payload = dice.roll(60_000) as u32,
        _ => {}
    }
    // Again, or past what the capture lost.
    let shift = match dice.roll(40) {
        0 => 0_u32.wrapping_sub(dice.roll(4_000) as u32),
        1 => dice.roll(4_000) as u32,
        _ => 0,
    };
    let seq = talk.next[from].wrapping_add(shift);
    let mut options = match (flags & 2 != 0, dice.roll(8)) {
        (true, _) => vec![2, 4, 5, 0xB4, 4, 2, 1, 3, 3, 7],
        (_, 0) => [&[1, 1, 5, 10][..], &seq.to_be_bytes(), &seq.wrapping_add(1_000).to_be_bytes()].concat(),
        _ => [&[1, 1, 8, 10][..], &number.to_be_bytes(), &(number / 2).to_be_bytes()].concat(),
    };
    options.resize(options.len().next_multiple_of(4), 0);
    let header = 20 + options.len() as u32;
    let window = if dice.roll(60) == 0 { 0 } else { dice.roll(65_536) as u16 };
    let ends = [[10, 0, (connection >> 8) as u8, connection as u8], [10, 1, 0, 1]];
    let ports = [2_000_u16, 443];
    let mut packet = vec![0x45, dice.roll(4) as u8];
    packet.extend((20 + header as u16 + payload as u16).to_be_bytes());
    packet.extend((number as u16).to_be_bytes());
    packet.extend([0x40, 0, 64, 6, 0, 0]);
    packet.extend([ends[from], ends[1 - from]].concat());
    packet.extend([ports[from].to_be_bytes(), ports[1 - from].to_be_bytes()].concat());
    packet.extend([seq.to_be_bytes(), talk.next[1 - from].to_be_bytes()].concat());
    packet.extend([(header as u8 / 4) << 4, flags]);
    packet.extend(window.to_be_bytes());
    packet.extend([0; 4]);
    packet.extend(options);
    talk.step += 1;
    talk.next[from] = seq.wrapping_add(payload).wrapping_add(u32::from(flags & 3 != 0));
    packet
}

/// All that is found, as text.
fn found(file: &[u8], threads: usize, piece: usize) -> Vec<String> {
    let threads = NonZeroUsize::new(threads).unwrap_or(NonZeroUsize::MIN);
    let mut team = Team::new(5, Keep { transfers: true }, threads);
    let options = Options { piece, ..Options::beside(threads) };
    let source = Source::new("made".to_owned(), Box::new(Cursor::new(file.to_vec())), None);
    let read = source.and_then(|source| read_source(source, 0, options, &mut team, |_| ControlFlow::Continue(())));
    let read = read.map(|outcome| (outcome.totals, format!("{:?}", outcome.problems)));
    let found = team.finish();
    let mut lines = vec![format!("{read:?} {} {}", found.segments, found.unlisted)];
    lines.extend(found.connections.iter().map(|report| format!("{report:?}")));
    lines
}

proptest! {
    #[test]
    fn a_random_capture_reads_the_same_with_one_thread_and_with_four(
        seed: u64, packets in 0_u32..13, connections in 0_u32..9, damage in proptest::option::weighted(0.3, any::<(u32, u8)>()),
        pieces in [100_usize..100_000, 100_usize..100_000],
    ) {
        let mut file = capture(seed, (1 << packets) - 1, 1 << connections);
        if let Some((at, byte)) = damage {
            let at = at as usize % file.len();
            file[at] = byte;
        }
        prop_assert_eq!(found(&file, 1, pieces[0]), found(&file, 4, pieces[1]));
    }
}
