//! The arguments of `watch`.

use std::{num::NonZeroUsize, path::PathBuf, time::Duration};

use clap::{Args, ValueEnum, ValueHint};
use fullpipe_units::{Micros, ParseUnitError};
use fullpipe_watch::{Filter, Sort};

/// Watch this host's TCP connections: what limits each, worst first
///
/// Reads the system's own counters (Linux: sock_diag; Windows: ESTATS; FreeBSD and macOS: sysctl) once in each interval, and
/// those of the busiest connections more often, and judges them as `check` does. Sends no packet and changes nothing, but that
/// Windows keeps no statistics of a connection unless an administrator switches them on: `watch` does that for the first 512, and
/// switches them off when it ends. Without root it shows what it can and says what is missing. Not run on a real Windows, FreeBSD or
/// macOS so far (docs/watch.md). With FILE it shows a recording again, on any system.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fullpipe watch                                         redrawn each second; Ctrl-C ends it
  fullpipe watch --once                                  two looks a second apart
  fullpipe watch --filter 'dst 10.0.0.0/8 port 443 process nginx'
  fullpipe watch --for 60s --record slow.jsonl           and later: fullpipe watch slow.jsonl
  fullpipe watch --once --json | jq '.rows[] | {peer, limiter: .diagnosis.limiter}'
  nsenter --net --target 4711 fullpipe watch             the connections of a container")]
pub(crate) struct WatchArgs {
    /// A recording to show instead of this host
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["interval", "duration", "once", "record"])]
    pub(crate) file: Option<PathBuf>,
    /// Length of each interval
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = interval)]
    pub(crate) interval: Duration,
    /// Stop after this time
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    pub(crate) duration: Option<Duration>,
    /// Show one interval and exit
    #[arg(long, conflicts_with = "duration")]
    pub(crate) once: bool,
    /// Only these connections: `src` and `dst` with an address or network, `port`, `sport`, `dport`, `process` (`ngi*`), `pid`,
    /// `cgroup`
    #[arg(long, value_name = "TERMS")]
    pub(crate) filter: Option<Filter>,
    /// Sort order
    #[arg(long, value_name = "BY", default_value = "worst")]
    pub(crate) sort: SortName,
    /// At most this many connections [default: what fits the terminal; 100 elsewhere, 1000 in a recording]
    #[arg(long, value_name = "N", value_parser = super::positive::<NonZeroUsize>)]
    pub(crate) limit: Option<NonZeroUsize>,
    /// Also write each interval into this file, a line of JSON each
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) record: Option<PathBuf>,
}

/// An order of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SortName {
    /// What a setting or a program holds back first
    Worst,
    /// By rate
    Rate,
    /// By round-trip time
    Rtt,
    /// By retransmissions
    Retransmissions,
    /// By the process's name
    Process,
    /// The longest seen first
    Age,
}

impl From<SortName> for Sort {
    fn from(name: SortName) -> Self {
        match name {
            SortName::Worst => Self::Worst,
            SortName::Rate => Self::Rate,
            SortName::Rtt => Self::Rtt,
            SortName::Retransmissions => Self::Retransmissions,
            SortName::Process => Self::Process,
            SortName::Age => Self::Age,
        }
    }
}

pub(super) fn interval(text: &str) -> Result<Duration, String> {
    within(text, 100_000..=3_600_000_000, "expected a time from 100ms to 1h, such as 1s")
}

pub(super) fn duration(text: &str) -> Result<Duration, String> {
    within(text, 100_000..=2_592_000_000_000, "expected a time from 100ms to 720h, such as 30s")
}

fn within(text: &str, range: std::ops::RangeInclusive<u64>, expected: &str) -> Result<Duration, String> {
    let time: Micros = text.parse().map_err(|error: ParseUnitError| error.to_string())?;
    if range.contains(&time.get()) { Ok(Duration::from_micros(time.get())) } else { Err(expected.to_owned()) }
}
