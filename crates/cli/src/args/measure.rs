//! The arguments of `measure`.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use fullpipe_measure::{DEFAULT_PORT, MeasureError, Target};
use fullpipe_units::{Bytes, Micros, Rate};

/// Measure what a connection carries: throughput, latency, message sizes, path MTU
///
/// HOST runs any iperf3 server, or `fullpipe serve`, which also tells its own end's view. The figures are the receiver's.
/// Nothing is judged (that is `check`) and nothing is changed. Options have the letters that they have in iperf3.
/// Ctrl-C ends the test with what was measured until then.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fullpipe measure far.example                     up for 10 s, with a line per second
  fullpipe measure far.example -R -P 4 -t 30       down, four connections
  fullpipe measure far.example -u -b 50M           loss and jitter of datagrams
  fullpipe measure far.example --sizes 4k..64k     rate, processor time and round trip of each message size
  fullpipe measure far.example --pattern request-response --pair 1/1 --pair 100/64k
  fullpipe measure far.example --latency-under-load
  fullpipe measure far.example --max -t 5          what the two hosts can push, whatever it takes
  fullpipe measure far.example --capacity          the rate that is available, with little load
  fullpipe measure far.example --iperf3-json       for dashboards that read iperf3's own layout
  fullpipe measure far.example --csv > series.csv  a line per interval and direction
  fullpipe measure far.example --username reader --rsa-public-key-path public.pem")]
#[command(disable_version_flag = true)]
pub(crate) struct MeasureArgs {
    /// The far machine: a name or an address, with a port where it isn't 5201
    #[arg(value_name = "HOST", required_unless_present = "client", value_hint = ValueHint::Hostname)]
    pub(crate) host: Option<String>,
    /// As iperf3 has it
    #[arg(short = 'c', long, value_name = "HOST", hide = true, conflicts_with = "host")]
    pub(crate) client: Option<String>,
    /// As iperf3 has it: more is shown
    #[arg(short = 'V', hide = true)]
    pub(crate) verbose_as_iperf3: bool,
    /// The server's port, where HOST has none [default: 5201]
    #[arg(short = 'p', long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..), help_heading = "Test")]
    pub(crate) port: Option<u16>,
    /// The server sends
    #[arg(short = 'R', long, conflicts_with = "bidir", help_heading = "Test")]
    pub(crate) reverse: bool,
    /// Both ends send at the same time
    #[arg(long, help_heading = "Test")]
    pub(crate) bidir: bool,
    /// Connections at once in each direction; an iperf3 server takes 128 at most [default: 1; 4 with
    /// --latency-under-load]
    #[arg(short = 'P', long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=2048), help_heading = "Test")]
    pub(crate) parallel: Option<u16>,
    /// How long to measure, in seconds (or with a unit: 500ms) [default: 10; 2 for each test of several, 4 with
    /// --latency-under-load]
    #[arg(short = 't', long, value_name = "TIME", value_parser = time, help_heading = "Test")]
    pub(crate) time: Option<Micros>,
    /// How much to transfer instead, in each direction
    #[arg(short = 'n', long, value_name = "SIZE", conflicts_with_all = ["time", "blockcount"], help_heading = "Test")]
    pub(crate) bytes: Option<Bytes>,
    /// How many messages to transfer instead, in each direction
    #[arg(short = 'k', long, value_name = "N", conflicts_with = "time", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Test")]
    pub(crate) blockcount: Option<u64>,
    /// Time at the beginning that does not count, for the slow start
    #[arg(short = 'O', long, value_name = "TIME", value_parser = time, help_heading = "Test")]
    pub(crate) omit: Option<Micros>,
    /// The size of a message, which is of one write or datagram [default: 1MB; 10 ms of
    /// payload with -b; 1448 with -u]
    #[arg(short = 'l', long, value_name = "SIZE", help_heading = "Test")]
    pub(crate) length: Option<Bytes>,
    /// Payload rate of each sender [default: as fast as possible; 1M with -u]
    #[arg(short = 'b', long, value_name = "RATE", help_heading = "Test")]
    pub(crate) bitrate: Option<Rate>,
    /// Datagrams instead of connections
    #[arg(short = 'u', long, help_heading = "Test")]
    pub(crate) udp: bool,
    /// Number datagrams with 64 bits
    #[arg(long, requires = "udp", help_heading = "Test")]
    pub(crate) udp_counters_64bit: bool,
    /// Sweep message sizes: rate and processor time of each, and what Nagle's algorithm and delayed acknowledgements do
    #[arg(long, value_name = "FROM..TO", value_parser = sizes, conflicts_with_all = SIZES, help_heading = "Questions of several tests")]
    pub(crate) sizes: Option<Range>,
    /// Keep what --sizes found in this file, for a later --compare
    #[arg(long, value_name = "FILE", requires = "sizes", value_hint = ValueHint::FilePath, help_heading = "Questions of several tests")]
    pub(crate) save: Option<PathBuf>,
    /// Show beside what --sizes found what an earlier --save kept: MB/s and latency before and after; with --csv as a table
    #[arg(long, value_name = "FILE", requires = "sizes", value_hint = ValueHint::FilePath, help_heading = "Questions of several tests")]
    pub(crate) compare: Option<PathBuf>,
    /// Sweep the number of connections: is it one that is slow, or the path?
    #[arg(long, value_name = "FROM..TO", value_parser = numbers, conflicts_with_all = SINGLE, conflicts_with = "parallel", help_heading = "Questions of several tests")]
    pub(crate) streams: Option<Range>,
    /// Ask and answer instead of filling the path: latency, and answers in a second
    #[arg(long, value_name = "WHICH", conflicts_with_all = SINGLE, help_heading = "Questions of several tests")]
    pub(crate) pattern: Option<PatternName>,
    /// Sizes of request and response for --pattern; can be given several times [default: 1/1]
    #[arg(long, value_name = "SIZE/SIZE", value_parser = pair, requires = "pattern", help_heading = "Questions of several tests")]
    pub(crate) pair: Vec<(Bytes, Bytes)>,
    /// Both ends ask their kernels again and again instead of sleeping
    #[arg(long, requires = "pattern", help_heading = "Questions of several tests")]
    pub(crate) spin: bool,
    /// Write each request in two halves and leave Nagle's algorithm on
    #[arg(long, requires = "pattern", help_heading = "Questions of several tests")]
    pub(crate) split: bool,
    /// Time round trips without load and beside payload in each direction, in milliseconds and per minute
    #[arg(long, conflicts_with_all = SINGLE, help_heading = "Questions of several tests")]
    pub(crate) latency_under_load: bool,
    /// Find the largest packet that passes in each direction, whether larger ones vanish without a word, and what TCP
    /// makes of it
    #[arg(long, conflicts_with_all = SINGLE, help_heading = "Questions of several tests")]
    pub(crate) mtu: bool,
    /// Find the rate that is available in each direction, by short trains of datagrams: little load, a few seconds
    #[arg(long, conflicts_with_all = SINGLE, help_heading = "Questions of several tests")]
    pub(crate) capacity: bool,
    /// Socket buffers of both ends; switches their automatic sizing off
    #[arg(short = 'w', long, value_name = "SIZE", help_heading = "Sockets")]
    pub(crate) window: Option<Bytes>,
    /// The largest segment, in bytes
    #[arg(short = 'M', long, value_name = "N", help_heading = "Sockets")]
    pub(crate) set_mss: Option<u16>,
    /// Small messages leave at once (`TCP_NODELAY`)
    #[arg(short = 'N', long, help_heading = "Sockets")]
    pub(crate) no_delay: bool,
    /// The senders' congestion control, such as `cubic` or `bbr`
    #[arg(short = 'C', long, value_name = "NAME", help_heading = "Sockets")]
    pub(crate) congestion: Option<String>,
    /// The most that the kernel lets each sender send, its packets spread out evenly (`SO_MAX_PACING_RATE`)
    #[arg(long, value_name = "RATE", help_heading = "Sockets")]
    pub(crate) fq_rate: Option<Rate>,
    /// The byte of the type of service (differentiated services)
    #[arg(short = 'S', long, value_name = "N", help_heading = "Sockets")]
    pub(crate) tos: Option<u8>,
    /// Send from a file without copying (`sendfile`)
    #[arg(short = 'Z', long, help_heading = "Sockets")]
    pub(crate) zerocopy: bool,
    /// What can these hosts push? As fast as can be, by ways that change what is measured: both ends try first what is
    /// fastest (a second more, which does not count), and the result says what they did
    #[arg(long, conflicts_with_all = NOT_MAX, help_heading = "Sockets")]
    pub(crate) max: bool,
    /// The receiver copies what arrives, as an application does, instead of discarding it in the kernel
    #[arg(long, help_heading = "Sockets")]
    pub(crate) copy: bool,
    /// IPv4 only
    #[arg(short = '4', long, conflicts_with = "ipv6", help_heading = "Sockets")]
    pub(crate) ipv4: bool,
    /// IPv6 only
    #[arg(short = '6', long, help_heading = "Sockets")]
    pub(crate) ipv6: bool,
    /// Show this name to the server, with the password from the variable IPERF3_PASSWORD, or asked for on the terminal
    #[arg(long, value_name = "NAME", requires = "rsa_public_key_path", help_heading = "Authentication")]
    pub(crate) username: Option<String>,
    /// The server's public RSA key (PEM)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "username", help_heading = "Authentication")]
    pub(crate) rsa_public_key_path: Option<PathBuf>,
    /// Pad as PKCS #1 v1.5 does, for servers before 3.17 of iperf3
    #[arg(long, requires = "username", help_heading = "Authentication")]
    pub(crate) use_pkcs1_padding: bool,
    /// Time between two lines
    #[arg(short = 'i', long, value_name = "TIME", default_value = "1", value_parser = time, help_heading = "Output")]
    pub(crate) interval: Micros,
    /// What to call the test in the server's log
    #[arg(short = 'T', long, value_name = "TEXT", help_heading = "Output")]
    pub(crate) title: Option<String>,
    /// Text that shall stand beside the results at the server
    #[arg(long, value_name = "TEXT", help_heading = "Output")]
    pub(crate) extra_data: Option<String>,
    /// Also show what the server prints
    #[arg(long, help_heading = "Output")]
    pub(crate) get_server_output: bool,
    /// With --json: every sample of both ends
    #[arg(long, requires = "json", help_heading = "Output")]
    pub(crate) series: bool,
    /// Print JSON in iperf3's own layout
    #[arg(short = 'J', long, conflicts_with_all = ["json", "csv"], help_heading = "Output")]
    pub(crate) iperf3_json: bool,
    /// Print a line per interval and direction, separated by commas
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
        if let Some(port) = self.port.filter(|_| target.port == DEFAULT_PORT) {
            target.port = port;
        }
        Ok(target)
    }
}

/// As `SINGLE`, but that a sweep of sizes can be printed as CSV.
const SIZES: [&str; 9] =
    ["reverse", "bidir", "bytes", "blockcount", "udp", "series", "iperf3_json", "get_server_output", "title"];

/// What makes sense for one test only.
const SINGLE: [&str; 10] =
    ["reverse", "bidir", "bytes", "blockcount", "udp", "series", "iperf3_json", "csv", "get_server_output", "title"];

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

/// A time whose bare number means seconds.
fn time(text: &str) -> Result<Micros, String> {
    let bare = text.trim().ends_with(|c: char| c.is_ascii_digit());
    let text = if bare { format!("{text}s") } else { text.to_owned() };
    let time: Micros = text.parse().map_err(|error: fullpipe_units::ParseUnitError| error.to_string())?;
    if (10_000..=86_400_000_000).contains(&time.get()) {
        Ok(time)
    } else {
        Err("expected a time from 10ms to a day (86400)".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
