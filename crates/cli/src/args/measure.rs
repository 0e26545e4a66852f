//! The arguments of `measure`.

use std::path::PathBuf;

use clap::{ArgAction, Args, ValueEnum, ValueHint};
use fullpipe_measure::{DEFAULT_PORT, MeasureError, Target};
use fullpipe_units::{Bytes, Micros, Rate};

use super::up_to_a_day;
use crate::page::PageArgs;

/// Measure what a connection carries: throughput, latency, message sizes, path MTU
///
/// HOST runs any iperf3 server, or `fullpipe serve`, which also reports its own view. The figures are the receiver's.
/// Nothing is diagnosed (`check` does that) and nothing is changed. Letters mean what they mean in iperf3, except -v, which
/// is --verbose in every command. Ctrl-C ends the test with what was measured until then.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fullpipe measure far.example                     upload for 10 s, one line per second
  fullpipe measure far.example -R -P 4 -t 30       download, four connections
  fullpipe measure far.example -u -b 50M           loss and jitter of datagrams
  fullpipe measure far.example --sizes 4k..64k     rate, CPU and round trip of each message size
  fullpipe measure far.example --pattern request-response --pair 1/1 --pair 100/64k
  fullpipe measure far.example --latency-under-load
  fullpipe measure far.example --iperf2 -w 1M      an iperf 2 server, as `iperf -c ... -w 1M`
  fullpipe measure far.example --max -t 5          what the two hosts can push
  fullpipe measure far.example --capacity          available rate, with little load
  fullpipe measure far.example --iperf3-json       for dashboards that read iperf3's JSON
  fullpipe measure far.example --csv > series.csv  one line per interval and direction
  fullpipe measure far.example --username reader --rsa-public-key-path public.pem")]
#[command(disable_version_flag = true)]
pub(crate) struct MeasureArgs {
    /// Where a page of it goes.
    #[command(flatten)]
    pub(crate) page: PageArgs,
    /// The far machine: name or address, with a port if it isn't 5201
    #[arg(value_name = "HOST", required_unless_present = "client", value_hint = ValueHint::Hostname)]
    pub(crate) host: Option<String>,
    /// iperf3's letter for HOST
    #[arg(short = 'c', long, value_name = "HOST", hide = true, conflicts_with = "host")]
    pub(crate) client: Option<String>,
    /// iperf3's letter for --verbose
    #[arg(short = 'V', hide = true)]
    pub(crate) verbose_as_iperf3: bool,
    /// Print the version; iperf3's letter for it is --verbose here
    #[arg(long, action = ArgAction::Version, help_heading = "Output")]
    pub(crate) version: Option<bool>,
    /// Server port, if HOST has none [default: 5201]
    #[arg(short = 'p', long, value_name = "N", value_parser = super::whole::<u16>(1..=u16::MAX), help_heading = "Test")]
    pub(crate) port: Option<u16>,
    /// The server sends
    #[arg(short = 'R', long, conflicts_with = "bidir", help_heading = "Test")]
    pub(crate) reverse: bool,
    /// Both ends send at the same time
    #[arg(long, help_heading = "Test")]
    pub(crate) bidir: bool,
    /// Parallel connections in each direction; an iperf3 server takes at most 128 [default: 1; 4 with
    /// --latency-under-load]
    #[arg(short = 'P', long, value_name = "N", value_parser = super::whole::<u16>(1..=2048), help_heading = "Test")]
    pub(crate) parallel: Option<u16>,
    /// Time to transmit, in seconds (or with a unit: 500ms) [default: 10; 2 for each step of a sweep, 4 with
    /// --latency-under-load]
    #[arg(short = 't', long, visible_alias = "seconds", value_name = "TIME", value_parser = time, help_heading = "Test")]
    pub(crate) time: Option<Micros>,
    /// Bytes to transmit in each direction, instead of --time
    #[arg(short = 'n', long, value_name = "SIZE", conflicts_with_all = ["time", "blockcount"], help_heading = "Test")]
    pub(crate) bytes: Option<Bytes>,
    /// Messages to transmit in each direction, instead of --time: of --length, else of iperf3's 128 KB (1448 B with -u); with a
    /// unit, 1k is 1024
    #[arg(short = 'k', long, value_name = "N", conflicts_with = "time", value_parser = messages, help_heading = "Test")]
    pub(crate) blockcount: Option<u64>,
    /// Omit the first N seconds, for slow start
    #[arg(short = 'O', long, value_name = "TIME", value_parser = time_or_none, help_heading = "Test")]
    pub(crate) omit: Option<Micros>,
    /// Length of a write or datagram [default: 1MB; 128 KB with -k; 10 ms of payload with -b;
    /// 1448 with -u]
    #[arg(short = 'l', long, value_name = "SIZE", help_heading = "Test")]
    pub(crate) length: Option<Bytes>,
    /// Target payload rate of each sender; with /N, in bursts of N writes or datagrams [default: unlimited; 1M with -u]
    #[arg(short = 'b', long, value_name = "RATE[/N]", value_parser = bitrate, help_heading = "Test")]
    pub(crate) bitrate: Option<Bitrate>,
    /// HOST runs an iperf 2 server: an upload over TCP to its port, 5001 unless another is given. It tells nothing, so that
    /// the figures are this end's
    #[arg(long, conflicts_with_all = NOT_IPERF2, help_heading = "Test")]
    pub(crate) iperf2: bool,
    /// UDP instead of TCP
    #[arg(short = 'u', long, help_heading = "Test")]
    pub(crate) udp: bool,
    /// Use 64-bit sequence numbers in datagrams
    #[arg(long, requires = "udp", help_heading = "Test")]
    pub(crate) udp_counters_64bit: bool,
    /// Sweep message sizes: rate and CPU time of each, and the effect of Nagle's algorithm and delayed ACKs
    #[arg(long, value_name = "FROM..TO", value_parser = sizes, conflicts_with_all = SIZES, help_heading = "Sweeps and other tests")]
    pub(crate) sizes: Option<Range>,
    /// Save the result of --sizes to this file, for a later --compare
    #[arg(long, value_name = "FILE", requires = "sizes", value_hint = ValueHint::FilePath, help_heading = "Sweeps and other tests")]
    pub(crate) save: Option<PathBuf>,
    /// Show the result of --sizes beside one saved earlier: MB/s and latency before and after, with the spread of the rounds and a
    /// mark (~) where a difference is within the noise; as CSV with --csv
    #[arg(long, value_name = "FILE", requires = "sizes", value_hint = ValueHint::FilePath, help_heading = "Sweeps and other tests")]
    pub(crate) compare: Option<PathBuf>,
    /// Sweep the number of connections: is one connection slow, or the path?
    #[arg(long, value_name = "FROM..TO", value_parser = numbers, conflicts_with_all = SINGLE, conflicts_with = "parallel", help_heading = "Sweeps and other tests")]
    pub(crate) streams: Option<Range>,
    /// Request/response mode: latency and transactions per second
    #[arg(long, value_name = "WHICH", conflicts_with_all = SINGLE, help_heading = "Sweeps and other tests")]
    pub(crate) pattern: Option<PatternName>,
    /// Sizes of request and response for --pattern; can be given several times [default: 1/1; 100/1 with --split]
    #[arg(long, value_name = "SIZE/SIZE", value_parser = pair, requires = "pattern", help_heading = "Sweeps and other tests")]
    pub(crate) pair: Vec<(Bytes, Bytes)>,
    /// Busy-poll instead of sleeping
    #[arg(long, requires = "pattern", help_heading = "Sweeps and other tests")]
    pub(crate) spin: bool,
    /// Write each request in two halves, with Nagle's algorithm on: shows what delayed ACKs cost
    #[arg(long, requires = "pattern", help_heading = "Sweeps and other tests")]
    pub(crate) split: bool,
    /// Measure round-trip time without load and under load in each direction, in ms and round trips per minute
    #[arg(long, conflicts_with_all = SINGLE, help_heading = "Sweeps and other tests")]
    pub(crate) latency_under_load: bool,
    /// Find the path MTU in each direction, ICMP black holes, and what TCP makes of them
    #[arg(long, conflicts_with_all = SINGLE, help_heading = "Sweeps and other tests")]
    pub(crate) mtu: bool,
    /// Estimate the available rate in each direction from short packet trains: little load, a few seconds
    #[arg(long, conflicts_with_all = SINGLE, help_heading = "Sweeps and other tests")]
    pub(crate) capacity: bool,
    /// Socket buffers of both ends (`SO_SNDBUF`, `SO_RCVBUF`); turns autotuning off
    #[arg(short = 'w', long, value_name = "SIZE", help_heading = "Sockets")]
    pub(crate) window: Option<Bytes>,
    /// Maximum segment size, in bytes
    #[arg(short = 'M', long, value_name = "N", value_parser = super::whole::<u16>(0..=u16::MAX), help_heading = "Sockets")]
    pub(crate) set_mss: Option<u16>,
    /// Turn Nagle's algorithm off (`TCP_NODELAY`)
    #[arg(short = 'N', long, help_heading = "Sockets")]
    pub(crate) no_delay: bool,
    /// The senders' congestion control, such as `cubic` or `bbr` [default: the system's]
    #[arg(short = 'C', long, value_name = "NAME", help_heading = "Sockets")]
    pub(crate) congestion: Option<String>,
    /// Pacing rate of each sender in the kernel (`SO_MAX_PACING_RATE`)
    #[arg(long, value_name = "RATE", help_heading = "Sockets")]
    pub(crate) fq_rate: Option<Rate>,
    /// TOS byte of the packets, 0 to 255; octal and hexadecimal as in C: 052, 0x34
    #[arg(short = 'S', long, value_name = "N", value_parser = tos, help_heading = "Sockets")]
    pub(crate) tos: Option<u8>,
    /// DSCP of the packets, 0 to 63 or a name: `ef`, `af11` to `af43`, `cs0` to `cs7`
    #[arg(long, value_name = "N|NAME", value_parser = dscp, conflicts_with = "tos", help_heading = "Sockets")]
    pub(crate) dscp: Option<u8>,
    /// Send from a file without copying (`sendfile`)
    #[arg(short = 'Z', long, help_heading = "Sockets")]
    pub(crate) zerocopy: bool,
    /// Maximum-throughput mode: what can these hosts push? Both ends first try which method is fastest (one more
    /// second, not counted); the result says which they used. Not what an application would get
    #[arg(long, conflicts_with_all = NOT_MAX, help_heading = "Sockets")]
    pub(crate) max: bool,
    /// Copy received data to user space, as an application does, instead of discarding it in the kernel
    #[arg(long, help_heading = "Sockets")]
    pub(crate) copy: bool,
    /// IPv4 only
    #[arg(short = '4', long, alias = "version4", conflicts_with = "ipv6", help_heading = "Sockets")]
    pub(crate) ipv4: bool,
    /// IPv6 only
    #[arg(short = '6', long, alias = "version6", help_heading = "Sockets")]
    pub(crate) ipv6: bool,
    /// User name for the server; the password comes from IPERF3_PASSWORD or a prompt
    #[arg(long, value_name = "NAME", requires = "rsa_public_key_path", help_heading = "Authentication")]
    pub(crate) username: Option<String>,
    /// Public RSA key of the server (PEM)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "username", help_heading = "Authentication")]
    pub(crate) rsa_public_key_path: Option<PathBuf>,
    /// Use PKCS #1 v1.5 padding, for servers before iperf3 3.17
    #[arg(long, requires = "username", help_heading = "Authentication")]
    pub(crate) use_pkcs1_padding: bool,
    /// Time between interval lines; 0 for none
    #[arg(short = 'i', long, value_name = "TIME", default_value = "1", value_parser = time_or_none, help_heading = "Output")]
    pub(crate) interval: Micros,
    /// Title of the test, in front of every line of text and in the server's log
    #[arg(short = 'T', long, value_name = "TEXT", help_heading = "Output")]
    pub(crate) title: Option<String>,
    /// Label included in the server's results
    #[arg(long, value_name = "TEXT", help_heading = "Output")]
    pub(crate) extra_data: Option<String>,
    /// Also show the server's output
    #[arg(long, help_heading = "Output")]
    pub(crate) get_server_output: bool,
    /// With --json: every sample of both ends
    #[arg(long, requires = "json", help_heading = "Output")]
    pub(crate) series: bool,
    /// Print JSON as iperf3 does
    #[arg(short = 'J', long, conflicts_with_all = ["json", "csv"], help_heading = "Output")]
    pub(crate) iperf3_json: bool,
    /// Print CSV: one line per interval and direction
    #[arg(long, conflicts_with = "json", help_heading = "Output")]
    pub(crate) csv: bool,
}

impl MeasureArgs {
    /// The server as it was given.
    pub(crate) fn host(&self) -> &str {
        self.host.as_ref().or(self.client.as_ref()).map_or("", String::as_str)
    }

    /// The server: `HOST`, or what `-c` says, with the port of `-p` where it has none of its own.
    pub(crate) fn server(&self) -> Result<Target, MeasureError> {
        let mut target: Target = self.host().parse()?;
        if let Some(port) =
            self.port.or_else(|| self.iperf2.then_some(IPERF2_PORT)).filter(|_| target.port == DEFAULT_PORT)
        {
            target.port = port;
        }
        Ok(target)
    }
}

/// Where an iperf 2 server listens unless it is told otherwise.
const IPERF2_PORT: u16 = 5001;

/// A rate, and how many writes go out without a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bitrate {
    pub(crate) rate: Rate,
    /// 0 for a pause after each.
    pub(crate) burst: u32,
}

/// As `SINGLE`, but that a sweep of sizes can be printed as CSV.
const SIZES: [&str; 9] =
    ["reverse", "bidir", "bytes", "blockcount", "udp", "series", "iperf3_json", "get_server_output", "title"];

/// What makes sense for one test only.
const SINGLE: [&str; 10] =
    ["reverse", "bidir", "bytes", "blockcount", "udp", "series", "iperf3_json", "csv", "get_server_output", "title"];

/// What an iperf 2 server doesn't do, or isn't asked.
const NOT_IPERF2: [&str; 13] = [
    "reverse",
    "bidir",
    "udp",
    "sizes",
    "streams",
    "pattern",
    "latency_under_load",
    "mtu",
    "capacity",
    "max",
    "get_server_output",
    "username",
    "extra_data",
];

/// What leaves nothing to try.
const NOT_MAX: [&str; 11] = [
    "bytes",
    "blockcount",
    "bitrate",
    "udp",
    "copy",
    "zerocopy",
    "sizes",
    "streams",
    "pattern",
    "latency_under_load",
    "capacity",
];

/// How the ends speak to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PatternName {
    /// On connections that stay open
    RequestResponse,
    /// On a connection for each request, so that setting it up is timed, too
    ConnectRequestResponse,
}

/// A range to sweep, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    from: u64,
    to: u64,
}

impl Range {
    /// From end to end, each twice the one before, or more where that would be too many.
    pub(crate) fn steps(self) -> Vec<u64> {
        const MOST: usize = 9;
        let by = |factor: u64| {
            let mut steps: Vec<u64> =
                std::iter::successors(Some(self.from), |step| step.checked_mul(factor).filter(|next| *next < self.to))
                    .collect();
            if self.to > self.from {
                steps.push(self.to);
            }
            steps
        };
        [2, 4, 8].map(by).into_iter().find(|steps| steps.len() <= MOST).unwrap_or_else(|| by(16))
    }
}

fn range(text: &str, read: impl Fn(&str) -> Option<u64>, most: u64) -> Result<Range, String> {
    let (from, to) = text.split_once("..").unwrap_or((text, text));
    read(from)
        .zip(read(to))
        .filter(|(from, to)| (1..=*to).contains(from) && *to <= most)
        .map(|(from, to)| Range { from, to })
        .ok_or_else(|| format!("expected FROM..TO between 1 and {most}"))
}

fn sizes(text: &str) -> Result<Range, String> {
    range(text, |part| part.parse().ok().map(Bytes::get), 1 << 20)
}

fn numbers(text: &str) -> Result<Range, String> {
    range(text, |part| part.parse().ok(), 128)
}

fn pair(text: &str) -> Result<(Bytes, Bytes), String> {
    let (request, response) = text.split_once('/').ok_or("expected two sizes with a slash between: 100/64k")?;
    let size = |text: &str| text.parse().map_err(|error: fullpipe_units::ParseUnitError| error.to_string());
    Ok((size(request)?, size(response)?))
}

/// As [`up_to_a_day`]; iperf3's 0 is a test without end.
fn time(text: &str) -> Result<Micros, String> {
    if text.trim() == "0" {
        return Err("a test without end is not possible; give -t 86400, and end it with Ctrl-C".to_owned());
    }
    up_to_a_day(text)
}

/// A number of messages with a unit, as iperf3 takes it.
fn messages(text: &str) -> Result<u64, String> {
    let number = text.parse().ok().map(Bytes::get).filter(|number| *number > 0);
    number.ok_or_else(|| "expected a number of messages of at least 1, such as 1000 or 1k".to_owned())
}

/// As [`up_to_a_day`], or no time at all.
fn time_or_none(text: &str) -> Result<Micros, String> {
    if text.trim() == "0" { Ok(Micros::new(0)) } else { up_to_a_day(text) }
}

/// `1M`, or `1M/10` as iperf3 has it: 10 writes without a pause.
fn bitrate(text: &str) -> Result<Bitrate, String> {
    const MOST_IN_BURST: u32 = 1_000;
    let (rate, burst) = text.split_once('/').map_or((text, None), |(rate, burst)| (rate, Some(burst)));
    let rate = rate.parse().map_err(|error: fullpipe_units::ParseUnitError| error.to_string())?;
    let count = |burst: &str| burst.parse().ok().filter(|burst| (1..=MOST_IN_BURST).contains(burst));
    match burst.map(count) {
        None => Ok(Bitrate { rate, burst: 0 }),
        Some(Some(burst)) => Ok(Bitrate { rate, burst }),
        Some(None) => Err(format!("expected RATE/N with N from 1 to {MOST_IN_BURST}: `1M/10`")),
    }
}

/// A number as C's `strtol` with base 0 reads it, which is what iperf3 calls: 0x for hexadecimal, 0 for octal.
fn c_number(text: &str) -> Option<u8> {
    let (digits, base) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None if text.len() > 1 && text.starts_with('0') => (&text[1..], 8),
        None => (text, 10),
    };
    u8::from_str_radix(digits, base).ok()
}

fn tos(text: &str) -> Result<u8, String> {
    c_number(text).ok_or_else(|| "expected 0 to 255, as 52, 064 or 0x34".to_owned())
}

/// The byte of a differentiated-services code point: classes of RFC 2474 (`cs`), RFC 2597 (`af`), RFC 3246 (`ef`), RFC 8622 (`le`).
fn dscp(text: &str) -> Result<u8, String> {
    let lower = text.to_ascii_lowercase();
    let digits: Vec<u8> = lower.bytes().filter(u8::is_ascii_digit).map(|digit| digit - b'0').collect();
    let point = match (lower.trim_end_matches(|c: char| c.is_ascii_digit()), &digits[..]) {
        ("ef", []) => Some(46),
        ("le", []) => Some(1),
        ("cs", &[class @ 0..=7]) => Some(8 * class),
        ("af", &[class @ 1..=4, precedence @ 1..=3]) => Some(8 * class + 2 * precedence),
        _ => c_number(text).filter(|point| *point < 64),
    };
    point.map(|point| point << 2).ok_or_else(|| "expected 0 to 63, ef, le, af11 to af43 or cs0 to cs7".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes are those of iperf3's `--dscp`.
    #[test]
    fn marks_and_bursts_are_iperf3s() {
        for (text, byte) in [
            ("ef", 0xb8),
            ("AF11", 0x28),
            ("af43", 0x98),
            ("cs0", 0),
            ("cs7", 0xe0),
            ("10", 40),
            ("0x2e", 0xb8),
            ("012", 40),
        ] {
            assert_eq!(dscp(text), Ok(byte), "{text}");
        }
        for text in ["", "64", "af44", "af51", "cs8", "efx", "-1", "af1", "ef1"] {
            assert!(dscp(text).is_err(), "{text}");
        }
        assert_eq!(["52", "064", "0x34"].map(tos), [Ok(52), Ok(52), Ok(52)]);
        assert_eq!(time_or_none("0"), Ok(Micros::new(0)));
        assert_eq!((messages("1K"), messages("1000"), messages("0").is_err()), (Ok(1_024), Ok(1_000), true));
        let rate = Rate::from_bps(1_000_000);
        assert_eq!(bitrate("1M"), Ok(Bitrate { rate, burst: 0 }));
        assert_eq!(bitrate("1M/10"), Ok(Bitrate { rate, burst: 10 }));
        for text in ["1M/", "1M/0", "1M/1001", "/10", "1M/x"] {
            assert!(bitrate(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_range_is_swept_from_end_to_end_in_few_steps() {
        assert_eq!(sizes("4k..64k").unwrap().steps(), [4096, 8192, 16_384, 32_768, 65_536]);
        assert_eq!(numbers("1..16").unwrap().steps(), [1, 2, 4, 8, 16]);
        assert_eq!(numbers("3").unwrap().steps(), [3]);
        let wide = sizes("1..1M").unwrap().steps();
        assert_eq!((wide.first(), wide.last(), wide.len()), (Some(&1), Some(&1_048_576), 8));
    }

    #[test]
    fn what_is_no_range_or_pair_is_refused() {
        for text in ["", "0..5", "9..3", "1..2000", "a..b", ".."] {
            assert!(numbers(text).is_err(), "{text}");
        }
        assert!(sizes("1..2M").is_err() && pair("100").is_err() && pair("1/x").is_err());
        assert_eq!(pair("100/64k").unwrap(), (Bytes::new(100), Bytes::new(65_536)));
    }
}
