//! The arguments of the simulator.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use fullpipe_units::{Bytes, Micros, Rate};

/// Simulate a scenario in virtual time: the verdicts of `lab run`, in a moment, on any system
///
/// The TCP engine, dressed as the scenario's hosts, runs over the scenario's path. The judge reads the simulated connection
/// as it reads a live one; beside its word stands what the engine knows. Nothing is measured and nothing is changed. Ends
/// with exit code 1 where a verdict or a rate is not as the scenario expects.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fullpipe sim wan-80ms
  fullpipe sim wan-80ms --pcap wan.pcap && fullpipe read wan.pcap
  fullpipe sim netburner-wan
  fullpipe sim ./mine.toml --seed 7 --json")]
pub(crate) struct SimArgs {
    /// The name of a scenario (`fullpipe lab list`) or a file
    #[arg(value_name = "SCENARIO", value_hint = ValueHint::FilePath)]
    pub(crate) scenario: String,
    /// What decides every random element, instead of the scenario's
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// With --json, also every sample of both ends
    #[arg(long)]
    pub(crate) series: bool,
    /// Write what the sender's interface saw in the first direction into a capture file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) pcap: Option<PathBuf>,
}

/// Predict what settings would change on a path, before touching a machine
///
/// Simulates a bulk transfer over a path of one link. Each --set is one prediction; settings that belong together are
/// separated by commas. --sweep tries a range of one setting, draws the curve and names the smallest value on the plateau.
/// Settings are named sender.*, receiver.* and path.*: `--set help` lists them, `--from help` lists the platforms.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fullpipe what-if --rate 100M --rtt 80ms --from windows-2012 --to linux-6.18
  fullpipe what-if --rate 7M --to windows-xp --set receiver.scaling=on,receiver.window=128k
  fullpipe what-if --rate 100M --rtt 80ms --sweep receiver.window=16k..8M
  fullpipe what-if --rate 25M --rtt 8ms --from netburner --sweep sender.buffers=5..43 --bytes 4MB")]
pub(crate) struct WhatIfArgs {
    /// Rate of the path's link
    #[arg(long, value_name = "RATE", default_value = "100M")]
    pub(crate) rate: Rate,
    /// Round-trip time of the idle path
    #[arg(long, value_name = "TIME", default_value = "80ms")]
    pub(crate) rtt: Micros,
    /// Random loss towards the receiver: 0.01%, 0.0001
    #[arg(long, value_name = "PART", default_value = "0")]
    pub(crate) loss: String,
    /// Queue in front of the link: 1bdp, 100p, 64k, 20ms
    #[arg(long, value_name = "SIZE", default_value = "1bdp")]
    pub(crate) queue: String,
    /// Platform of the sender
    #[arg(long, value_name = "PLATFORM", default_value = "linux-6.18")]
    pub(crate) from: String,
    /// Platform of the receiver
    #[arg(long, value_name = "PLATFORM", default_value = "linux-6.18")]
    pub(crate) to: String,
    /// Settings of one prediction, KEY=VALUE, several separated by commas; can be given several times
    #[arg(long, value_name = "SETTINGS")]
    pub(crate) set: Vec<String>,
    /// Try a range of one setting: KEY=FROM..TO
    #[arg(long, value_name = "RANGE")]
    pub(crate) sweep: Option<String>,
    /// Points of the range
    #[arg(long, value_name = "N", default_value = "28", requires = "sweep")]
    pub(crate) points: usize,
    /// Payload to transfer; without, the rate of --seconds counts
    #[arg(long, value_name = "SIZE")]
    pub(crate) bytes: Option<Bytes>,
    /// Virtual time of a transfer, at most
    #[arg(long, value_name = "TIME", value_parser = super::seconds, default_value = "10")]
    pub(crate) seconds: Micros,
    /// What decides every random element
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) seed: u64,
}
