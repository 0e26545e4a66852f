//! The same captures through others' eyes: retransmissions as tcptrace and the sender's kernel count them, conversations
//! as tshark does.

use std::{fs, path::Path};

use xshell::{Shell, cmd};

use super::{
    index::Run,
    judge::{Connection, Judged},
};
use crate::setup;

/// tshark reads some 100,000 packets a second: captures with more than this many are left to the others.
const MOST_FOR_TSHARK: u64 = 20_000;

/// Retransmissions of one sender.
struct Repeats {
    /// Of ours, packets and bytes. A packet of a capture at the sender is often a super-segment.
    ours: (u64, u64),
    ours_out_of_order: u64,
    /// Of tcptrace, likewise.
    tcptrace: Option<(u64, u64, u64)>,
    /// Of the kernel, in segments.
    kernel: Option<u64>,
    mss: u64,
}

/// How the counts of one transfer compare.
#[derive(Debug, PartialEq, Eq)]
enum Comparison {
    Same,
    /// They count other things, and this is what.
    Explained(String),
    Open(String),
}

/// Prints, of each run, what the peers that are here counted at the sender.
pub(crate) fn print(shell: &Shell, dir: &Path, runs: &[Run], judged: &Judged) {
    for peer in ["tcptrace", "tshark"] {
        if !setup::is_here(shell, peer) {
            println!("not compared: {peer} is not here (Debian: {peer})");
        }
    }
    let at_sender = runs.iter().filter(|run| run.invalid.is_none() && run.variant.is_none()).filter_map(|run| {
        let file = &run.vantages.get(&run.sender)?.file;
        Some((run, file, judged.get(file)?))
    });
    let (mut all, mut same, mut explained, mut lines) = (0, 0, 0, Vec::new());
    let (mut conversations, mut same_conversations) = (0, 0);
    for (run, file, connection) in at_sender {
        let Some(repeats) = Repeats::count(shell, dir, run, file, connection) else { continue };
        all += 1;
        match repeats.comparison() {
            Comparison::Same => same += 1,
            Comparison::Explained(reason) => {
                explained += 1;
                lines.push(repeats.line(&run.name, &reason));
            }
            Comparison::Open(reason) => lines.push(repeats.line(&run.name, &format!("not explained: {reason}"))),
        }
        if connection.packets > MOST_FOR_TSHARK {
            continue;
        }
        if let Some(conversation) = Conversation::count(shell, &dir.join(file)) {
            conversations += 1;
            match conversation.difference(connection) {
                None => same_conversations += 1,
                Some(reason) => lines.push(format!("{}: {reason}", run.name)),
            }
        }
    }
    println!(
        "at the sender, {same} of {all} captures have the retransmissions that tcptrace and the kernel count, and in \
         {explained} more the difference is explained"
    );
    println!("{same_conversations} of {conversations} conversations have tshark's packets, bytes and duration");
    if !lines.is_empty() {
        println!("{:<36} {:>15} {:>21} {:>7}  difference", "run", "ours (ooo)", "tcptrace (ooo)", "kernel");
    }
    for line in lines {
        println!("{line}");
    }
}

impl Repeats {
    fn count(shell: &Shell, dir: &Path, run: &Run, file: &str, connection: &Connection) -> Option<Self> {
        let side = connection.main_side()?;
        let file = dir.join(file);
        let table = cmd!(shell, "tcptrace -l -n --csv {file}").quiet().ignore_stderr().read().ok();
        let watched = fs::read_to_string(dir.join(&run.tcp_info)).unwrap_or_default();
        Some(Self {
            ours: (side.retransmissions, side.retransmitted_bytes),
            ours_out_of_order: side.out_of_order,
            tcptrace: table.as_deref().and_then(of_tcptrace),
            kernel: of_kernel(&watched),
            mss: side.mss,
        })
    }

    /// What differs, and why where that is known.
    fn comparison(&self) -> Comparison {
        let (packets, bytes) = self.ours;
        // A packet beside the sender is often a super-segment.
        let segments = bytes.div_ceil(self.mss.max(1)).max(packets);
        let peer = self.tcptrace.map_or((0, 0, 0), |(theirs, their_bytes, late)| {
            let more = |theirs: u64, ours: u64| theirs.cast_signed() - ours.cast_signed();
            (more(theirs, packets), more(their_bytes, bytes), more(late, self.ours_out_of_order))
        });
        let kernel = self.kernel.map_or(0, |kernel| kernel.cast_signed() - segments.cast_signed());
        match (peer, kernel) {
            ((0, 0, 0), 0) => Comparison::Same,
            // A SYN or FIN takes one number of the sequence space.
            ((more, more_bytes, 0), kernel) if more > 0 && more == more_bytes && kernel == more => {
                Comparison::Explained(format!("{more} repeated SYN or FIN, which carry no payload"))
            }
            ((0, 0, 0), -1) => {
                Comparison::Explained("one after the last sample of ss, which is up to 250 ms old".into())
            }
            // Each packet rounds up to whole segments once.
            ((0, 0, 0), more) if more.unsigned_abs() <= packets => {
                Comparison::Explained(format!("{more} segments: packets that end in part of one"))
            }
            ((0, 1, 0), 0) => Comparison::Explained("a FIN on one of them takes a number of the sequence space".into()),
            ((0, more_bytes, 0), 0) => Comparison::Explained(format!(
                "tcptrace has {more_bytes:+} bytes in as many packets; the kernel counts as we do"
            )),
            ((more, more_bytes, late), kernel) => Comparison::Open(format!(
                "tcptrace {more:+} packets, {more_bytes:+} bytes, {late:+} out of order; the kernel {kernel:+} segments"
            )),
        }
    }

    fn line(&self, name: &str, reason: &str) -> String {
        let known = |number: Option<u64>| number.map_or_else(|| "-".to_owned(), |number| number.to_string());
        let ours = format!("{} ({})", self.ours.0, self.ours_out_of_order);
        let tcptrace = self.tcptrace.map_or_else(|| "-".to_owned(), |(packets, _, late)| format!("{packets} ({late})"));
        format!("{name:<36} {ours:>15} {tcptrace:>21} {:>7}  {reason}", known(self.kernel))
    }
}

/// Retransmitted packets and bytes, and packets out of order, of the direction with most bytes. A program may open a connection to
/// ask for settings before the one with the data.
fn of_tcptrace(table: &str) -> Option<(u64, u64, u64)> {
    let mut lines = table.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    let names: Vec<&str> = lines.next()?.split(',').map(str::trim).collect();
    let rows: Vec<Vec<&str>> = lines.map(|line| line.split(',').map(str::trim).collect()).collect();
    let value = |row: &[&str], name: &str, way: &str| -> Option<u64> {
        let column = names.iter().position(|known| known.strip_suffix(way) == Some(name))?;
        row.get(column)?.parse().ok()
    };
    let ways = rows.iter().flat_map(|row| ["_a2b", "_b2a"].map(|way| (row, way)));
    let sent = ways.filter_map(|(row, way)| Some((value(row, "unique_bytes_sent", way)?, row, way)));
    let (_, row, way) = sent.max_by_key(|(bytes, ..)| *bytes)?;
    let of = |name: &str| value(row, name, way);
    Some((of("rexmt_data_pkts")?, of("rexmt_data_bytes")?, of("outoforder_pkts")?))
}

/// `retrans:0/86` of the last sample; a sample that doesn't say it has none.
fn of_kernel(watched: &str) -> Option<u64> {
    let last = watched.lines().rfind(|line| line.contains("bytes_sent:"))?;
    let retrans = last.split_ascii_whitespace().find_map(|word| word.strip_prefix("retrans:"));
    retrans.map_or(Some(0), |both| both.split('/').nth(1)?.parse().ok())
}

/// A line of `tshark -z conv,tcp`.
struct Conversation {
    packets: u64,
    bytes: u64,
    /// tshark prints bytes, kB or MB: how many bytes one of the last digit stands for.
    unit: u64,
    seconds: f64,
}

impl Conversation {
    fn count(shell: &Shell, file: &Path) -> Option<Self> {
        let table = cmd!(shell, "tshark -q -z conv,tcp -r {file}").quiet().ignore_stderr().read().ok()?;
        Self::in_table(&table)
    }

    /// `10.0.0.1:1 <-> 10.0.0.2:2  3054 7704 kB  3009 160 kB  6063 7864 kB  0.000000000  7.0006`
    fn in_table(table: &str) -> Option<Self> {
        let line = table.lines().find(|line| line.contains("<->"))?;
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let [.., packets, bytes, unit, _start, seconds] = &*words else { return None };
        let unit = match *unit {
            "bytes" => 1,
            "kB" => 1_000,
            "MB" => 1_000_000,
            _ => return None,
        };
        let bytes: u64 = bytes.parse().ok()?;
        Some(Self { packets: packets.parse().ok()?, bytes: bytes * unit, unit, seconds: seconds.parse().ok()? })
    }

    fn difference(&self, ours: &Connection) -> Option<String> {
        let is_same = self.packets == ours.packets
            && self.bytes.abs_diff(ours.ip_bytes) <= self.unit
            && (self.seconds - ours.seconds).abs() < 1e-3;
        (!is_same).then(|| {
            format!(
                "{} packets, {} bytes, {} s, and tshark: {} packets, {} bytes, {} s",
                ours.packets, ours.ip_bytes, ours.seconds, self.packets, self.bytes, self.seconds
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_the_peers_print() {
        let ss = "now 1.0\nFIN-WAIT-2 0 0 a b cubic bytes_sent:5 retrans:0/86 x\nnow 2.0\n";
        assert_eq!(of_kernel(ss), Some(86));
        assert_eq!(of_kernel("ESTAB 0 0 a b cubic bytes_sent:5 x\n"), Some(0));
        assert_eq!(of_kernel("now 1.0\n"), None);

        let csv = "#x\n\nconn_#,unique_bytes_sent_a2b,unique_bytes_sent_b2a,rexmt_data_pkts_b2a,rexmt_data_bytes_b2a,\
                   outoforder_pkts_b2a\n\n1, 0, 99, 6, 8688, 2\n";
        assert_eq!(of_tcptrace(csv), Some((6, 8_688, 2)));
        // redis-benchmark asks for the server's settings first.
        assert_eq!(of_tcptrace(&format!("{csv}2, 7, 9900, 5, 7240, 1\n")), Some((5, 7_240, 1)));

        let counts = |tcptrace, kernel| Repeats {
            ours: (23, 33_304),
            ours_out_of_order: 0,
            tcptrace: Some(tcptrace),
            kernel: Some(kernel),
            mss: 1_448,
        };
        assert_eq!(counts((23, 33_304, 0), 23).comparison(), Comparison::Same);
        let fin = counts((24, 33_305, 0), 24).comparison();
        assert_eq!(fin, Comparison::Explained("1 repeated SYN or FIN, which carry no payload".to_owned()));
        assert!(matches!(counts((20, 28_960, 3), 23).comparison(), Comparison::Open(_)));

        let conv =
            Conversation::in_table("a:1 <-> b:2  3054 7704 kB  3009 160 kB  6063 7864 kB  0.000000000  7.0006\n");
        let conv = conv.unwrap();
        assert_eq!((conv.packets, conv.bytes, conv.unit), (6_063, 7_864_000, 1_000));
    }
}
