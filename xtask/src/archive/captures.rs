//! The captures. Transfers that were simulated or made in the lab are the originals; copies of them, between hosts of their own, are
//! mixed by time as a recorder sees them. A copy is judged as its original, so that what an archive has to say is known beforehand.

use std::{
    collections::BTreeMap,
    fs,
    io::{BufWriter, Write},
    net::Ipv4Addr,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};
use xshell::{Shell, cmd};

use super::Archive;

/// Scenarios whose transfers are simulated, with so many seeds each.
const SCENARIOS: [&str; 5] = ["adsl2", "bluetooth-hop", "hsdpa", "wan-80ms", "wan-80ms-sender"];
const SEEDS: u32 = 4;
/// A short connection: 28 packets of 2.2 kB, from SYN to FIN.
const SHORT: &str = "10m-100ms-cubic-lost-syn-ack-a";
const SHORT_IN_A_CAPTURE: usize = 50_000;
/// Captures of a rotated series; two groups of three are captures by themselves.
const ROTATED: usize = 4;
const SITES: [&str; 4] = ["lima", "lon", "nyc", "tokyo"];
const DAYS: u64 = 8;
/// Midnight of 18 November 2026 (UTC).
const FIRST_DAY: u64 = 1_794_960_000;
const SECOND: u64 = 1_000_000_000;
/// A recorder's span, in which connections begin.
const SPAN_S: u64 = 3600;

/// What an archive of the captures must say: connections and seconds lost, by limiter and receiver.
pub(super) type Expected = BTreeMap<(String, String), (u64, f64)>;

/// A transfer that is copied.
struct Original {
    name: String,
    packets: Vec<Packet>,
    ends: [[u8; 4]; 2],
    is_ab: bool,
    limiter: String,
    lost_s: f64,
}

/// A packet of it, IPv4 from its first byte on.
struct Packet {
    after_ns: u64,
    length: u32,
    data: Vec<u8>,
}

/// Captures that belong together: one, or a rotated series.
struct Group {
    files: Vec<PathBuf>,
    seed: u64,
    start_ns: u64,
}

/// A copy: of which original, and when it begins.
struct Copy {
    original: usize,
    start_ns: u64,
}

/// Makes those that are missing; gives all but the short ones.
pub(super) fn make(shell: &Shell, binary: &Path, out: &Path, arguments: &Archive) -> Result<Vec<PathBuf>> {
    let originals = originals(shell, binary, &out.join("originals"))?;
    let mut expected = Expected::new();
    let groups = groups(&out.join("captures"), arguments.captures);
    eprintln!("archive: {} captures in {} series", arguments.captures, groups.len());
    for group in &groups {
        let copies = group.copies(&originals, arguments.size * 1000);
        expect(&originals, &copies, &mut expected);
        group.write(&originals, &copies)?;
    }
    write_expected(out, &expected)?;
    let short = originals.iter().position(|one| one.name == SHORT).context("no short connection")?;
    for (number, first) in (0..arguments.short).step_by(SHORT_IN_A_CAPTURE).enumerate() {
        let count = SHORT_IN_A_CAPTURE.min(arguments.short - first);
        let file = out.join(format!("short/capture-{number:04}.pcap"));
        let group = Group { files: vec![file], seed: 0, start_ns: FIRST_DAY * SECOND };
        let step = SPAN_S * SECOND / count as u64;
        let copies: Vec<Copy> =
            (0..count as u64).map(|copy| Copy { original: short, start_ns: group.start_ns + copy * step }).collect();
        group.write(&originals, &copies)?;
    }
    Ok(groups.into_iter().flat_map(|group| group.files).collect())
}

/// Everything that can be copied, with what the reader says of it by itself.
fn originals(shell: &Shell, binary: &Path, folder: &Path) -> Result<Vec<Original>> {
    fs::create_dir_all(folder)?;
    let mut files = Vec::new();
    for name in SCENARIOS {
        for seed in 1..=SEEDS {
            let file = folder.join(format!("{name}-{seed}.pcap"));
            let seed = seed.to_string();
            // Whether the verdict is the one that the scenario expects is no matter here.
            let simulated = cmd!(shell, "{binary} sim {name} --quiet --seed {seed} --pcap {file}");
            simulated.quiet().ignore_status().ignore_stdout().ignore_stderr().run()?;
            files.push(file);
        }
    }
    let lab = "crates/capture/tests/data";
    files.extend(shell.read_dir(lab)?.into_iter().filter(|file| file.extension().is_some_and(|end| end == "pcap")));
    let mut originals = Vec::new();
    for file in files {
        originals.extend(Original::read(shell, binary, &file).with_context(|| file.display().to_string())?);
    }
    ensure!(originals.len() > 20, "only {} transfers to copy", originals.len());
    Ok(originals)
}

impl Original {
    /// A capture of one connection over IPv4 and nothing else; of other captures none.
    fn read(shell: &Shell, binary: &Path, file: &Path) -> Result<Option<Self>> {
        let Some(packets) = packets(&fs::read(file)?) else { return Ok(None) };
        let csv = cmd!(shell, "{binary} read --csv --quiet {file}").quiet().ignore_stderr().read()?;
        let [names, row] = csv.lines().collect::<Vec<_>>()[..] else { return Ok(None) };
        let mut row = names.split(',').zip(row.split(',')).collect::<BTreeMap<_, _>>();
        let mut column = |name: &str| row.remove(name).with_context(|| format!("no column {name}"));
        let lost_s = column("share")?.parse::<f64>()? * column("sending_seconds")?.parse::<f64>()?;
        let [a, b] = ["a", "b"].map(|end| {
            let end = column(end)?;
            let address = end.rsplit_once(':').map_or(end, |(address, _)| address);
            Ok::<_, anyhow::Error>(address.parse::<Ipv4Addr>()?.octets())
        });
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let (ends, is_ab, limiter) = ([a?, b?], column("direction")? == "a->b", column("limiter")?.to_owned());
        Ok(Some(Self { name, packets, ends, is_ab, limiter, lost_s }))
    }

    fn bytes(&self) -> usize {
        self.packets.iter().map(|packet| 16 + packet.data.len()).sum()
    }
}

/// The packets of a pcap file of raw IP, if all are TCP over IPv4.
fn packets(file: &[u8]) -> Option<Vec<Packet>> {
    let number = |at: usize| Some(u32::from_le_bytes(file.get(at..at + 4)?.try_into().ok()?));
    let unit = match number(0)? {
        0xa1b2_c3d4 => 1000,
        0xa1b2_3c4d => 1,
        _ => return None,
    };
    // LINKTYPE_RAW
    if number(20)? != 101 {
        return None;
    }
    let (mut packets, mut at, mut first) = (Vec::new(), 24, None);
    while at < file.len() {
        let now = u64::from(number(at)?) * SECOND + u64::from(number(at + 4)?) * unit;
        let data = file.get(at + 16..at + 16 + number(at + 8)? as usize)?.to_vec();
        if data.first()? >> 4 != 4 || *data.get(9)? != 6 {
            return None;
        }
        let first = *first.get_or_insert(now);
        packets.push(Packet { after_ns: now.checked_sub(first)?, length: number(at + 12)?, data });
        at += 16 + packets.last()?.data.len();
    }
    Some(packets)
}

fn groups(folder: &Path, captures: usize) -> Vec<Group> {
    let (mut groups, mut made) = (Vec::new(), 0);
    while made < captures {
        let number = groups.len();
        let count = if number.is_multiple_of(3) { ROTATED.min(captures - made) } else { 1 };
        let folder = folder.join(SITES[number % SITES.len()]);
        let day = (number / SITES.len()) as u64 % DAYS;
        let files = (0..count).map(|place| match place {
            0 => folder.join(format!("capture-{number:04}.pcap")),
            _ => folder.join(format!("capture-{number:04}.pcap{place}")),
        });
        let start_ns = (FIRST_DAY + day * 86_400 + number as u64 % 22 * 3600) * SECOND;
        groups.push(Group { files: files.collect(), seed: number as u64, start_ns });
        made += count;
    }
    groups
}

impl Group {
    /// Drawn by the group's own seed, as many as fill its captures.
    fn copies(&self, originals: &[Original], size: usize) -> Vec<Copy> {
        let mut state = self.seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut draw = |below: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % below
        };
        let (mut copies, mut bytes) = (Vec::new(), 0);
        while bytes < size * self.files.len() {
            let original = draw(originals.len() as u64) as usize;
            bytes += originals[original].bytes();
            copies.push(Copy { original, start_ns: self.start_ns + draw(SPAN_S * 1000) * (SECOND / 1000) });
        }
        copies
    }

    /// Writes the captures, unless they are there: whole, or not at all.
    fn write(&self, originals: &[Original], copies: &[Copy]) -> Result<()> {
        if self.files.iter().all(|file| file.exists()) {
            return Ok(());
        }
        let mut order: Vec<(u64, usize, usize)> = Vec::new();
        for (number, copy) in copies.iter().enumerate() {
            let packets = originals[copy.original].packets.iter().enumerate();
            order.extend(packets.map(|(place, packet)| (copy.start_ns + packet.after_ns, number, place)));
        }
        order.sort_unstable();
        let step = order.len().div_ceil(self.files.len());
        for (file, part) in self.files.iter().zip(order.chunks(step)) {
            fs::create_dir_all(file.parent().context("a capture lies in a folder")?)?;
            let unfinished = file.with_extension("unfinished");
            let mut writer = BufWriter::new(fs::File::create(&unfinished)?);
            // Nanoseconds, version 2.4, raw IP.
            for word in [0xa1b2_3c4d_u32, 0x0004_0002, 0, 0, 65_535, 101] {
                writer.write_all(&word.to_le_bytes())?;
            }
            for &(at_ns, number, place) in part {
                let original = &originals[copies[number].original];
                let packet = &original.packets[place];
                let data = renamed(&packet.data, original, copies[number].original, number);
                let times = [at_ns / SECOND, at_ns % SECOND, data.len() as u64, u64::from(packet.length)];
                for word in times {
                    writer.write_all(&u32::try_from(word)?.to_le_bytes())?;
                }
                writer.write_all(&data)?;
            }
            writer.into_inner()?.sync_all()?;
            fs::rename(&unfinished, file)?;
        }
        Ok(())
    }
}

/// The hosts of a copy: a client of its own, and the server of its original.
fn hosts(original: usize, copy: usize) -> [[u8; 4]; 2] {
    let digits = |number: usize| [(number / 250 % 250) as u8, (number % 250) as u8 + 1];
    let ([high, low], [server_high, server_low]) = (digits(copy), digits(original));
    [[10, 100, high, low], [10, 200, server_high, server_low]]
}

/// The packet between other hosts, with a header checksum that is right (RFC 791, section 3.1).
fn renamed(data: &[u8], original: &Original, number: usize, copy: usize) -> Vec<u8> {
    let mut data = data.to_vec();
    for place in [12, 16] {
        let end = usize::from(data[place..place + 4] == original.ends[1]);
        data[place..place + 4].copy_from_slice(&hosts(number, copy)[end]);
    }
    let header = usize::from(data[0] & 15) * 4;
    data[10..12].fill(0);
    let mut sum: u32 = data[..header].chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    data[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    data
}

fn expect(originals: &[Original], copies: &[Copy], expected: &mut Expected) {
    for (number, copy) in copies.iter().enumerate() {
        let original = &originals[copy.original];
        let receiver = Ipv4Addr::from(hosts(copy.original, number)[usize::from(original.is_ab)]).to_string();
        let entry = expected.entry((original.limiter.clone(), receiver)).or_default();
        entry.0 += 1;
        entry.1 += original.lost_s;
    }
}

/// For the copy of this program that reads the captures.
fn write_expected(out: &Path, expected: &Expected) -> Result<()> {
    let rows: Vec<_> = expected.iter().map(|((limiter, host), (count, lost))| (limiter, host, count, lost)).collect();
    Ok(fs::write(out.join("expected.json"), serde_json::to_vec(&rows)?)?)
}

/// What [`make`] wrote.
pub(super) fn read_expected(out: &Path) -> Result<Expected> {
    let rows: Vec<(String, String, u64, f64)> = serde_json::from_slice(&fs::read(out.join("expected.json"))?)?;
    Ok(rows.into_iter().map(|(limiter, host, count, lost)| ((limiter, host), (count, lost))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(packets: &[(u32, &[u8])]) -> Vec<u8> {
        let mut file = [0xa1b2_3c4d_u32, 0x0004_0002, 0, 0, 65_535, 101].map(u32::to_le_bytes).concat();
        for (after, data) in packets {
            file.extend([7, *after, data.len() as u32, 1500].map(u32::to_le_bytes).concat());
            file.extend(*data);
        }
        file
    }

    /// An IPv4 header (RFC 791) before a TCP header of zeros.
    fn segment(from: [u8; 4], to: [u8; 4]) -> Vec<u8> {
        let mut data = vec![0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 6, 0, 0];
        data.extend([from, to].concat());
        data.extend([0; 20]);
        data
    }

    fn original() -> Original {
        let ends = [[10, 80, 0, 1], [10, 80, 0, 2]];
        let whole = file(&[(5, &segment(ends[0], ends[1])), (9, &segment(ends[1], ends[0]))]);
        let packets = packets(&whole).unwrap();
        Original { name: "x".to_owned(), packets, ends, is_ab: true, limiter: "path".to_owned(), lost_s: 2.0 }
    }

    #[test]
    fn a_copy_is_between_other_hosts_at_another_time_and_is_counted_for_its_receiver() {
        let original = original();
        let folder = std::env::temp_dir().join(format!("fullpipe-copy-{}", std::process::id()));
        let files = vec![folder.join("a.pcap"), folder.join("a.pcap1")];
        let group = Group { files: files.clone(), seed: 1, start_ns: 9 * SECOND };
        let copies = [Copy { original: 0, start_ns: 9 * SECOND }, Copy { original: 0, start_ns: 8 * SECOND }];
        let originals = [original];
        group.write(&originals, &copies).unwrap();
        let read: Vec<Packet> = files.iter().flat_map(|file| packets(&fs::read(file).unwrap()).unwrap()).collect();
        fs::remove_dir_all(&folder).unwrap();
        let ends: Vec<&[u8]> = read.iter().map(|packet| &packet.data[12..20]).collect();
        let [one, other] = [hosts(0, 0), hosts(0, 1)];
        let there_and_back = |[a, b]: [[u8; 4]; 2]| [[a, b].concat(), [b, a].concat()];
        assert_eq!(
            ends,
            [there_and_back(other), there_and_back(one)].concat(),
            "the earlier first, a file for each two"
        );
        for packet in &read {
            let words = packet.data[..20].chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
            let sum: u32 = words.sum();
            assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff, "the sum of a header with its checksum (RFC 1071)");
        }
        let mut expected = Expected::new();
        expect(&originals, &copies, &mut expected);
        assert_eq!(expected, Expected::from([(("path".to_owned(), "10.200.0.1".to_owned()), (2, 4.0))]));
    }

    #[test]
    fn captures_are_drawn_the_same_each_time_and_fill_what_was_asked_for() {
        let originals = [original(), original()];
        let groups = groups(Path::new("x"), 10);
        assert_eq!(groups.iter().map(|group| group.files.len()).collect::<Vec<_>>(), [4, 1, 1, 4]);
        for group in &groups {
            let copies = group.copies(&originals, 1000);
            assert!(copies.len() * originals[0].bytes() >= 1000 * group.files.len());
            let again = group.copies(&originals, 1000);
            assert!(copies.iter().zip(&again).all(|(a, b)| (a.original, a.start_ns) == (b.original, b.start_ns)));
        }
    }
}
