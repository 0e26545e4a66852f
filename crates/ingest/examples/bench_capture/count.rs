//! Reading down to segments and which connection each belongs to, or all the way to judged connections.

use std::{fs::File, io::Read, num::NonZeroUsize, ops::ControlFlow, path::PathBuf, time::Instant};

use fullpipe_capture::{Keep, Key, Segment, Sink, Table, TooBig};
use fullpipe_ingest::{Options, Reading, Team, read_all};

/// Adds up what it gets, for each connection.
struct Count {
    segments: u64,
    payload: u64,
    /// Segments of each connection.
    table: Table<u64>,
}

impl Sink for Count {
    fn segment(&mut self, segment: &Segment<'_>) {
        self.segments += 1;
        self.payload += u64::from(segment.payload_len);
        let (slot, _) = self.table.find_or_insert(&Key::from_flow(&segment.flow).0);
        *self.table.value_mut(slot) += 1;
    }

    fn too_big(&mut self, _: &TooBig) {}
}

pub(crate) fn count(arguments: &[&str]) {
    let mut count = Count { segments: 0, payload: 0, table: Table::new(1) };
    read(arguments, &mut count);
    println!("{} segments, {} payload bytes, {} connections", count.segments, count.payload, count.table.len());
}

/// The floor: a loop that walks from record to record and looks at the lengths of IP and TCP, and at nothing else.
pub(crate) fn walk(path: &str) -> std::io::Result<()> {
    const PIECE: usize = 1 << 20;
    let mut file = File::open(path)?;
    let (mut piece, mut held) = (vec![0; 2 * PIECE], 0);
    let (mut packets, mut payload) = (0_u64, 0_u64);
    file.read_exact(&mut piece[..24])?;
    loop {
        let more = file.read(&mut piece[held..held + PIECE])?;
        let whole = held + more;
        let mut at = 0;
        while let Some(record) = piece[..whole].get(at..at + 16) {
            let captured = u32::from_le_bytes([record[8], record[9], record[10], record[11]]) as usize;
            let Some(frame) = piece[..whole].get(at + 16..at + 16 + captured) else { break };
            let total = u64::from(u16::from_be_bytes([frame[16], frame[17]]));
            payload += total - 4 * (u64::from(frame[14] & 15) + u64::from(frame[46] >> 4));
            packets += 1;
            at += 16 + captured;
        }
        if more == 0 {
            break;
        }
        piece.copy_within(at..whole, 0);
        held = whole - at;
    }
    println!("{packets} packets, {payload} payload bytes");
    Ok(())
}

pub(crate) fn follow(arguments: &[&str]) {
    let (mut threads, mut rest) = (NonZeroUsize::MIN, Vec::new());
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match *argument {
            "--threads" => threads = arguments.next().and_then(|count| count.parse().ok()).unwrap_or(threads),
            other => rest.push(other),
        }
    }
    let mut team = Team::new(1, Keep::default(), threads);
    read(&rest, &mut team);
    let findings = team.finish();
    println!("{} segments, {} connections", findings.segments, findings.connections.len());
}

fn read<S: Sink>(arguments: &[&str], sink: &mut S) {
    let mut options = Options::default();
    let mut paths = Vec::new();
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match *argument {
            "--ahead" => options.reading = Reading::Ahead,
            "--piece" => options.piece = arguments.next().and_then(|piece| piece.parse().ok()).unwrap_or(options.piece),
            path => paths.push(PathBuf::from(path)),
        }
    }
    let start = Instant::now();
    let mut read = 0;
    let captures = read_all(&paths, options, sink, |progress| {
        read = progress.bytes;
        ControlFlow::Continue(())
    });
    let seconds = start.elapsed().as_secs_f64();
    for file in &captures.files {
        println!("{}: {:?}", file.name, file.totals);
        for problem in file.problems.listed() {
            println!("  packet {}: {}", problem.packet, problem.kind);
        }
        if let Some(broken) = &file.broken {
            println!("  {broken}");
        }
    }
    for error in &captures.failed {
        println!("{error}");
    }
    let packets: u64 = captures.files.iter().map(|file| file.totals.packets).sum();
    let (gb, mega) = (read as f64 / seconds / 1e9, packets as f64 / seconds / 1e6);
    println!("{seconds:.3} s, {gb:.2} GB/s, {mega:.2} Mpps");
}
