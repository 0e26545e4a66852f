//! The rows: what an article's reader wants, the command for it, and what of its output is the answer.

use serde_json::Value;

/// Where the answer comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum From {
    /// The command alone: the same wherever it runs, so that the page is held to it.
    Anywhere,
    /// A measurement of this machine: written anew by `cargo xtask generate --measure` only.
    Measured,
}

/// One line of the page.
pub(crate) struct Row {
    /// Numbers are those of `docs/articles.md`; a row with two figures stands there twice.
    pub(crate) number: u8,
    pub(crate) article: &'static str,
    pub(crate) wants: &'static str,
    /// Behind `fullpipe`, unless it begins with `cargo`. `DIR` is a new folder, `HOST` a server beside it, `BEFORE` an earlier result; `A/` and `T/` stand
    /// for folders with input files.
    pub(crate) command: &'static str,
    pub(crate) from: From,
    pub(crate) answer: fn(&Value) -> String,
    pub(crate) published: &'static str,
}

const fn row(
    (number, article): (u8, &'static str),
    (wants, published): (&'static str, &'static str),
    command: &'static str,
    from: From,
    answer: fn(&Value) -> String,
) -> Row {
    Row { number, article, wants, command, from, answer, published }
}

pub(crate) const ROWS: &[Row] = &[
    row(
        (1, "004"),
        ("see that the window over the round trip is the cap", "64,512 B / 80 ms: 5 to 6.5 Mbit/s"),
        "lab run wan-80ms",
        From::Measured,
        |found| transfers(found, Some("a->b")),
    ),
    row(
        (2, "004"),
        ("see the same in the other direction, with the scale shift", "scale factor 0 in the SYN"),
        "lab run wan-80ms",
        From::Measured,
        |found| transfers(found, Some("b->a")),
    ),
    row(
        (3, "004"),
        ("see that the sender holds 64 KB in flight", "64 KB in flight, although the receiver offers 1.3 MB"),
        "lab run wan-80ms-sender",
        From::Measured,
        |found| transfers(found, None),
    ),
    row(
        (4, "004"),
        ("get past 64 KB where autotuning reads normal already", "Restricted, or SO_RCVBUF of 1 MB, or the registry"),
        "plan --platform windows-2012 --rate 100M --rtt 80ms --settings A/004-get-nettcpsetting.txt --peer 192.0.2.0/24",
        From::Anywhere,
        changes,
    ),
    row(
        (4, "004"),
        ("know what the registry values do on Server 2012", "TcpWindowSize of 1 MB, said to work"),
        "lint A/004-registry.reg --platform windows-2012 --rate 100M --rtt 80ms",
        From::Anywhere,
        findings,
    ),
    row(
        (5, "004"),
        ("size the buffers inside an application", "SO_RCVBUF and SO_SNDBUF of 1 MB"),
        "lint A/004-socket.cpp --platform windows-2012 --rate 1G --rtt 80ms",
        From::Anywhere,
        findings,
    ),
    row(
        (5, "004"),
        ("have a library do that, from the path it finds", "5 Mbit/s, with SO_RCVBUF of 1 MB 87"),
        "cargo run --release -p fullpipe-socket --example before_after -- 100M 8 80ms",
        From::Measured,
        before_after,
    ),
    row(
        (6, "004"),
        ("know the MTU under IPsec", "\"may require tuning\""),
        "plan --platform windows-2025 --rate 100M --rtt 80ms --ipsec aes-gcm",
        From::Anywhere,
        |found| note(found, "ESP tunnel"),
    ),
    row(
        (7, "002"),
        ("compute the window from rate and round trip", "51,750 B, in whole segments of 1,460 B"),
        "plan --platform windows-xp --rate 1.8M --rtt 230ms",
        From::Anywhere,
        changes,
    ),
    row(
        (8, "002"),
        ("set it for all adapters and for one", ".reg files to add it, an .inf to remove it"),
        "plan --platform windows-xp --rate 1.8M --rtt 230ms --settings A/002-adapter.reg --write DIR",
        From::Anywhere,
        |found| format!("{}; writes {}", changes(found), files(found)),
    ),
    row(
        (9, "002"),
        ("notice that a value is not accepted", "128,480 B for the adapter: 17,520 B stayed in use"),
        "lint A/002-adapter.reg --platform windows-xp --rate 1.8M --rtt 230ms",
        From::Anywhere,
        findings,
    ),
    row(
        (10, "002"),
        (
            "learn whether the window or the line is the limit",
            "3.5 Mbit/s on ADSL2+, with the larger window 7.0: the line full",
        ),
        "lab run adsl2",
        From::Measured,
        |found| format!("{}; with the larger window {}", transfers(found, None), proof(found)),
    ),
    row(
        (11, "003"),
        ("check sysctl.conf, loader.conf and rc.conf", "\"Not in 6.x\" behind net.isr.enable"),
        "lint A/003/sysctl.conf A/003/loader.conf A/003/rc.conf --platform freebsd-6.2 --rate 1G --rtt 1ms",
        From::Anywhere,
        findings,
    ),
    row(
        (12, "003"),
        ("choose the MTU that both ends and the switch take", "9014 as the MTU, from the drivers' lists"),
        "plan --platform freebsd-6.2 --rate 1G --rtt 1ms --settings A/003/sysctl.conf A/003/loader.conf A/003/rc.conf --mtu 16110 --peer-mtu 1514,4088,9014 --hop-mtu 9216",
        From::Anywhere,
        changes,
    ),
    row(
        (13, "003"),
        ("find the window of the plateau", "262,144 B; 131,072 B is less, more is no better"),
        "what-if --rate 1G --rtt 2ms --from freebsd-6 --to freebsd-6 --set receiver.scaling=on,sender.scaling=on,sender.buffer=1M --sweep receiver.window=32k..1M --points 11",
        From::Anywhere,
        plateau,
    ),
    row(
        (14, "003"),
        ("not run out of mbuf clusters", "nmbclusters of 30,720"),
        "plan --platform freebsd-6.2 --rate 1G --rtt 10ms --settings A/003/sysctl.conf A/003/loader.conf A/003/rc.conf",
        From::Anywhere,
        changes,
    ),
    row(
        (15, "003, 004"),
        ("measure as `iperf -c HOST -w 1M` does", "985 Mbit/s to Windows, 927 from it"),
        "measure HOST -w 1M -t 2",
        From::Measured,
        |found| format!("over loopback: {}", mbps(&found["directions"][0]["rate_bps"])),
    ),
    row(
        (16, "001"),
        ("share the pool among sockets", "256 buffers, 5 for each purpose"),
        "plan --platform netburner --rate 25M --rtt 9400us --connections 4",
        From::Anywhere,
        changes,
    ),
    row(
        (17, "001"),
        ("choose between latency and throughput", "Nagle and PSH by SO_NONAGLE and SO_NOPUSH"),
        "stack presets netburner-lan",
        From::Measured,
        presets,
    ),
    row(
        (18, "001"),
        ("know how many buffers a LAN wants", "0.907 s with 5, 0.658 s with 20"),
        "stack table netburner-lan",
        From::Measured,
        table,
    ),
    row(
        (18, "001"),
        ("know how many the Internet wants", "5.66 s with 5, 2.12 s with 20, 1.72 s with 40"),
        "stack table netburner-wan",
        From::Measured,
        table,
    ),
    row(
        (19, "001"),
        ("lose nothing to packets out of order", "out-of-order buffers: one less than the receive buffers"),
        "plan --platform netburner --rate 25M --rtt 9400us",
        From::Anywhere,
        |found| note(found, "SetOutOfOrderBuffers"),
    ),
    row(
        (19, "001"),
        (
            "get the buffers of dead peers back",
            "\"all those buffers will remain allocated until the socket is cleaned up\"",
        ),
        "plan --platform netburner --rate 25M --rtt 9400us",
        From::Anywhere,
        |found| note(found, "a peer that vanishes"),
    ),
    row(
        (20, "000"),
        ("measure message sizes before and after", "831 MB/s at 4 KB to 1.09 GB/s at 64 KB after the reset"),
        "measure HOST --sizes 4k..64k --compare BEFORE",
        From::Measured,
        comparison,
    ),
    row(
        (21, "000"),
        ("see delayed acknowledgements at work", "\"the latency of the ACK packets\""),
        "measure HOST --pattern request-response --pair 100/100 --split -t 2",
        From::Measured,
        split,
    ),
    row(
        (22, "000"),
        ("judge a profile that was changed", "the profiles date from Server 2012"),
        "plan --platform windows-2019 --rate 1G --rtt 40ms --settings T/profile-2019.txt",
        From::Anywhere,
        changes,
    ),
    row(
        (23, "000"),
        ("reset, apply anew, measure again", "`netsh interface tcp reset`, restart, script, psping"),
        "plan --platform windows-11 --procedure reset --write DIR",
        From::Anywhere,
        files,
    ),
    row(
        (23, "000"),
        ("the same, with a plan for the path to apply", "`netsh interface tcp reset`, restart, script, psping"),
        "plan --platform windows-11 --rate 10G --rtt 1ms --procedure reset --write DIR",
        From::Anywhere,
        files,
    ),
    row(
        (24, "all"),
        ("prove the gain, and take it back", "tests before and after"),
        "lab run hsdpa",
        From::Measured,
        proof,
    ),
];

fn array<'a>(found: &'a Value, pointer: &str) -> &'a [Value] {
    found.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn joined(parts: impl IntoIterator<Item = String>) -> String {
    let parts: Vec<String> = parts.into_iter().collect();
    if parts.is_empty() { "nothing".to_owned() } else { parts.join("; ") }
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or("?")
}

/// `TcpWindowSize = 64240`, with what tells one from another.
fn changes(found: &Value) -> String {
    joined(array(found, "/changes").iter().map(|change| {
        let knob = text(change, "knob");
        let (key, name) = knob.rsplit_once('\\').unwrap_or(("", knob));
        let adapter = if key.contains("Interfaces") { " (one adapter)" } else { "" };
        format!("`{name}`{adapter} = {}", change["to"].as_str().unwrap_or("removed"))
    }))
}

/// The smallest value on the plateau, and what half of it gives.
fn plateau(found: &Value) -> String {
    let plateau = &found["plateau"];
    let value = text(plateau, "value");
    let bytes: u64 = value.chars().filter(char::is_ascii_digit).collect::<String>().parse().unwrap_or_default();
    let half = format!("{}={}", text(plateau, "knob"), bytes / 2);
    let is_half = |one: &&Value| array(one, "/set").iter().any(|set| *set == half.as_str());
    let below = array(found, "/predictions").iter().find(is_half).map_or(&Value::Null, |below| &below["rate_bps"]);
    format!("simulated: {value} gives {}, half of it {}", mbps(&plateau["rate_bps"]), mbps(below))
}

fn findings(found: &Value) -> String {
    let findings = array(found, "/findings").iter().filter(|finding| finding["level"] != "ok");
    joined(findings.map(|finding| {
        let file = text(finding, "file").rsplit('/').next().unwrap_or_default();
        format!("{file}:{}: {}: {}", finding["line"], text(finding, "level"), text(finding, "rule"))
    }))
}

fn files(found: &Value) -> String {
    joined(array(found, "/files").iter().map(|file| format!("`{}`", text(file, "name"))))
}

fn note(found: &Value, words: &str) -> String {
    let mut notes = array(found, "/notes").iter().filter_map(Value::as_str);
    notes.find(|note| note.contains(words)).unwrap_or("nothing").to_owned()
}

fn mbps(bps: &Value) -> String {
    bps.as_f64().map_or_else(|| "?".to_owned(), |bps| format!("{:.1} Mbit/s", bps / 1e6))
}

/// The rate and the verdict of each direction, or of one.
fn transfers(found: &Value, only: Option<&str>) -> String {
    let wanted = |transfer: &&Value| only.is_none_or(|only| transfer["direction"] == only);
    joined(array(found, "/transfers").iter().filter(wanted).map(|transfer| {
        let (verdict, limiter) = (&transfer["diagnosis"], text(&transfer["diagnosis"], "limiter").replace('_', " "));
        let detail = verdict["detail"].as_str().map(|detail| format!(", {}", detail.replace('_', " ")));
        let rate = mbps(&transfer["rate_bps"]);
        format!("{}: {rate}, {limiter}{}", text(transfer, "direction"), detail.unwrap_or_default())
    }))
}

/// A client before and after, in each direction, with what its buffer held.
fn before_after(found: &Value) -> String {
    let rows = array(found, "/rows");
    joined(rows.chunks_exact(2).map(|pair| {
        let shown = |row: &Value| {
            let used = row["used_bytes"].as_f64().unwrap_or_default() / 1024.0;
            format!("{} with {used:.0} KiB in its buffer", mbps(&row["rate_bps"]))
        };
        format!("{}: {}, then {}", text(&pair[0], "direction"), shown(&pair[0]), shown(&pair[1]))
    }))
}

fn proof(found: &Value) -> String {
    let proof = &found["proof"];
    let ratio = proof["ratio"].as_f64().unwrap_or_default();
    format!("{} before, {} after, {ratio:.2} times; undone", mbps(&proof["before_bps"]), mbps(&proof["after_bps"]))
}

fn presets(found: &Value) -> String {
    let rows = array(found, "/rows").iter().filter(|row| row["work"] == "requests");
    let requests = joined(rows.map(|row| {
        let us = row["latency_us"]["p50"].as_f64().unwrap_or_default();
        format!("{} {:.1} ms", text(row, "preset"), us / 1e3)
    }));
    format!("a request in two writes, median: {requests}")
}

/// The published counts of buffers, each with ours and what was fitted.
fn table(found: &Value) -> String {
    let rows = array(found, "/rows").iter().filter(|row| row["published_s"].is_number());
    joined(rows.map(|row| {
        let (ours, off) = (row["seconds"].as_f64().unwrap_or_default(), row["deviation"].as_f64().unwrap_or_default());
        let fitted = if row["fitted"] == true { "fitted".to_owned() } else { format!("{:+.0} %", off * 100.0) };
        format!("{ours:.3} s with {} ({fitted})", row["buffers"])
    }))
}

fn comparison(found: &Value) -> String {
    let rate = |value: &Value| value.as_f64().map_or_else(|| "?".to_owned(), |bps| format!("{:.0}", bps / 8e6));
    let rows = array(found, "/comparison").iter();
    let sizes = rows.map(|row| {
        let up = &row["up_bps"];
        let noise = if up["within_noise"] == true { " (within noise)" } else { "" };
        format!("{} B {} -> {} MB/s{noise}", row["size"], rate(&up["before"]), rate(&up["after"]))
    });
    format!("two sweeps over loopback, nothing changed between: {}", joined(sizes))
}

fn split(found: &Value) -> String {
    let exchange = &found["exchanges"][0];
    let ms = |us: &Value| us.as_f64().unwrap_or_default() / 1e3;
    format!(
        "over loopback, requests of 100 B in two halves: median {:.2} ms, written at once {:.3} ms; \"{}\"",
        ms(&exchange["latency"]["p50_us"]),
        ms(&exchange["at_once_us"]),
        found["conclusions"][0]["text"].as_str().unwrap_or_default()
    )
}
