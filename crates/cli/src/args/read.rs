//! The flags of `read`.

use std::{num::NonZeroUsize, path::PathBuf};

use clap::{Args, ValueHint};
use fullpipe_capture::Filter;

use crate::page::PageArgs;

/// Say why the connections of a packet capture were slow
///
/// Reads pcap, pcapng and snoop files, plain or compressed with gzip or zstd; `-` is standard input, so that tcpdump can
/// be piped in. A few lines per connection; first those that lost most time to a limit that can be lifted.
/// `--conn` shows one connection in full: handshake, what limited it when, evidence with packet numbers, and the setting
/// of the host that must change. What could not be read is listed too.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fullpipe read slow.pcap
  fullpipe read slow.pcapng.gz --conn 3
  fullpipe read slow.pcap --filter 'host 10.0.0.2 port 5201 time 3s..60s'
  tcpdump -i eth0 -s 128 -U -w - tcp | fullpipe read -
  fullpipe read slow.pcap --parquet slow.parquet
  fullpipe read slow.pcap --html slow.html
  fullpipe read slow.jsonl                        what `watch --record` wrote
  fullpipe read slow.pcap --conn 3 --xplot slow.xpl --png slow.png
  fullpipe read a.pcap b.pcap --json | jq '.connections[] | {a, b, limiter: .diagnosis.limiter}'

Filter: any of `host ADDRESS`, `port NUMBER`, `net ADDRESS/BITS`, `time FROM..TO` (since the first
segment); all must hold.")]
pub(crate) struct ReadArgs {
    /// Capture files, oldest first; `-` is standard input. Or one recording of `fullpipe watch`
    #[arg(value_name = "FILE", required = true, value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<PathBuf>,
    /// Show one connection in full, by its number
    #[arg(long, value_name = "N", value_parser = super::whole::<u64>(0..=u64::MAX), conflicts_with_all = ["csv", "top"])]
    pub(crate) conn: Option<u64>,
    /// Only segments that match
    #[arg(long, value_name = "FILTER")]
    pub(crate) filter: Option<Filter>,
    /// Show at most this many connections [default: 20, all with --json, --csv and --parquet]
    #[arg(long, value_name = "N", value_parser = super::positive::<NonZeroUsize>)]
    pub(crate) top: Option<NonZeroUsize>,
    /// Threads to read with; the result is the same [default: one per core, up to 6]
    #[arg(long, value_name = "N", value_parser = super::positive::<NonZeroUsize>)]
    pub(crate) threads: Option<NonZeroUsize>,
    /// Print CSV: one line per connection
    #[arg(long, conflicts_with = "json")]
    pub(crate) csv: bool,
    /// Also write those lines to a Parquet file, for pyarrow, DuckDB or Polars
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "conn")]
    pub(crate) parquet: Option<PathBuf>,
    /// Also write a time-sequence graph for xplot, as tcptrace -S does: of the first connection shown, or of --conn
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) xplot: Option<PathBuf>,
    /// Where a page of it goes.
    #[command(flatten)]
    pub(crate) page: PageArgs,
}
