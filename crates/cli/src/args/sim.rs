//! The arguments of the simulator.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use fullpipe_units::{Bytes, Micros, Rate};

use crate::page::PageArgs;

/// Simulate a scenario in virtual time: the verdicts of `lab run`, in a second, on any system
///
/// The TCP engine, with the profiles of the scenario's hosts, runs over the scenario's path. The judge reads the simulated
/// connection as it reads a live one; next to its verdict stands what the engine knows held the sender. Nothing is measured
/// and nothing is changed. Exits with 1 if a verdict or a rate is not as the scenario expects.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fullpipe sim wan-80ms
  fullpipe sim wan-80ms --pcap wan.pcap && fullpipe read wan.pcap
  fullpipe sim netburner-wan
  fullpipe sim ./mine.toml --seed 7 --json
  fullpipe sim --all")]
pub(crate) struct SimArgs {
    /// Where a page of it goes.
    #[command(flatten)]
    pub(crate) page: PageArgs,
    /// Name of a scenario (`fullpipe lab list`) or a file
    #[arg(value_name = "SCENARIO", value_hint = ValueHint::FilePath, required_unless_present = "all")]
    pub(crate) scenario: Option<String>,
    /// Print the table of all published situations: published, by arithmetic, simulated, in the lab
    #[arg(long, conflicts_with_all = ["scenario", "seed", "series", "pcap"])]
    pub(crate) all: bool,
    /// Seed of everything random [default: the scenario's]
    #[arg(long, value_name = "N", value_parser = super::whole::<u64>(0..=u64::MAX))]
    pub(crate) seed: Option<u64>,
    /// With --json: every sample of both ends
    #[arg(long)]
    pub(crate) series: bool,
    /// Write a capture file of the sender's interface in the first direction
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) pcap: Option<PathBuf>,
}

/// Predict what settings would change on a path, before touching a machine
///
/// Simulates a bulk transfer over a path of one link. Each --set is one prediction; settings that belong together are
/// separated by commas. --sweep tries a range of one setting, draws the curve and names the smallest value on the plateau.
/// Settings are named sender.*, receiver.* and path.*: `--set help` lists them, `--from help` lists the platforms.
///
/// SEEN is what `check`, `tune` or `read` printed with --json: its path, its hosts and their limits are simulated; a note
/// says what the file does not contain. Flags override the file.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fullpipe what-if --rate 100M --rtt 80ms --from windows-2012 --to linux-6.18
  fullpipe what-if --rate 7M --to windows-xp --set receiver.scaling=on,receiver.window=128k
  fullpipe what-if --rate 100M --rtt 80ms --sweep receiver.window=16k..8M
  fullpipe what-if --rate 100M --rtt 80ms --open
  fullpipe what-if --rate 25M --rtt 8ms --from netburner --sweep sender.buffers=5..43 --bytes 4MB
  fullpipe check b.example --json | fullpipe what-if - --set receiver.scaling=on,receiver.window=1M
  fullpipe read slow.pcap --json | fullpipe what-if - --conn 3 --to-settings sysctl.conf
  fullpipe what-if --rate 1G --rtt 20ms --from-settings loader.conf sysctl.conf --from freebsd-14")]
pub(crate) struct WhatIfArgs {
    /// Write a page on which to try settings in a browser, with the simulator in it
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["seen", "sweep", "html"], help_heading = "Output")]
    pub(crate) interactive: Option<PathBuf>,
    /// Open that page in the browser
    #[arg(long, conflicts_with_all = ["seen", "sweep", "html"], help_heading = "Output")]
    pub(crate) open: bool,
    /// Where a page of it goes.
    #[command(flatten)]
    pub(crate) page: PageArgs,
    /// JSON document of `check`, `tune` or `read` to start from; `-` is standard input
    #[arg(value_name = "SEEN", value_hint = ValueHint::FilePath)]
    pub(crate) seen: Option<PathBuf>,
    /// Which connection of a `read` document, by its number [default: the first]
    #[arg(long, value_name = "N", value_parser = super::whole::<u64>(0..=u64::MAX), requires = "seen")]
    pub(crate) conn: Option<u64>,
    /// Which direction of a `check` document, such as `a->b` [default: all]
    #[arg(long, value_name = "NAME", requires = "seen")]
    pub(crate) direction: Option<String>,
    /// Rate of the path's link [default: 100M, or as in SEEN]
    #[arg(long, value_name = "RATE")]
    pub(crate) rate: Option<Rate>,
    /// Round-trip time of the idle path [default: 80ms, or as in SEEN]
    #[arg(long, value_name = "TIME")]
    pub(crate) rtt: Option<Micros>,
    /// Random loss towards the receiver: 0.01%, 0.0001 [default: 0, or as in SEEN]
    #[arg(long, value_name = "PART")]
    pub(crate) loss: Option<String>,
    /// Queue in front of the link: 1bdp, 100p, 64k, 20ms [default: 1bdp]
    #[arg(long, value_name = "SIZE")]
    pub(crate) queue: Option<String>,
    /// Platform of the sender [default: linux-6.18, or as in SEEN]
    #[arg(long, value_name = "PLATFORM")]
    pub(crate) from: Option<String>,
    /// Platform of the receiver [default: linux-6.18, or as in SEEN]
    #[arg(long, value_name = "PLATFORM")]
    pub(crate) to: Option<String>,
    /// Files with the sender's settings, as for `settings --from`
    #[arg(long, value_name = "FILE", num_args = 1.., value_hint = ValueHint::FilePath)]
    pub(crate) from_settings: Vec<PathBuf>,
    /// Files with the receiver's settings, likewise
    #[arg(long, value_name = "FILE", num_args = 1.., value_hint = ValueHint::FilePath)]
    pub(crate) to_settings: Vec<PathBuf>,
    /// Settings of one prediction, KEY=VALUE, several separated by commas; can be given several times
    #[arg(long, value_name = "SETTINGS")]
    pub(crate) set: Vec<String>,
    /// Try a range of one setting: KEY=FROM..TO
    #[arg(long, value_name = "RANGE")]
    pub(crate) sweep: Option<String>,
    /// Number of points
    #[arg(long, value_name = "N", default_value = "28", value_parser = super::positive::<usize>, requires = "sweep")]
    pub(crate) points: usize,
    /// Payload to transfer [default: as much as --seconds allow]
    #[arg(long, value_name = "SIZE")]
    pub(crate) bytes: Option<Bytes>,
    /// Longest virtual time of a transfer [default: 10, or by the round-trip time of SEEN]
    #[arg(long, value_name = "TIME", value_parser = super::seconds)]
    pub(crate) seconds: Option<Micros>,
    /// Seed of everything random
    #[arg(long, value_name = "N", default_value = "1", value_parser = super::whole::<u64>(0..=u64::MAX))]
    pub(crate) seed: u64,
}
