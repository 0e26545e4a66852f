//! Speed, each with its peer or its aim beside it.

mod measure;
mod python;
mod tune;

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, ValueEnum};
use xshell::{Shell, cmd};

use crate::{profile::Build, setup};

/// What to measure, and which part of it.
#[derive(Args)]
pub(crate) struct Arguments {
    /// What to measure.
    #[arg(value_enum)]
    what: Bench,
    /// `measure`: only lines with all of these, such as `loopback,128K,1,apart` (path, size, streams, placement); `tune`: only
    /// cells, such as `100M,40ms,xp` (rate, round trip, handicap).
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// `measure`: only these tools, beside iperf3 as it is by default.
    #[arg(long, value_delimiter = ',')]
    tools: Vec<String>,
    /// `measure`, `python`: how often each line is run.
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// `measure`: keep the last processor busy for half of the time, as other work would.
    #[arg(long)]
    busy: bool,
    /// `measure`: the iperf3 to compare with [default: the newest that `interop` has built, else that of the system].
    #[arg(long)]
    iperf3: Option<PathBuf>,
    /// `tune`: start no further cell after so many seconds.
    #[arg(long, default_value_t = 7_200)]
    within: u64,
    /// `measure`, `python`, `tune`: the fullpipe to measure [default: built for release].
    #[arg(long)]
    fullpipe: Option<PathBuf>,
    /// `python`: the wheel to measure [default: built for release].
    #[arg(long)]
    wheel: Option<PathBuf>,
}

/// What can be measured.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Bench {
    /// The lab's path: goodput at 10 ms and the release error at 100 Mbit/s.
    Lab,
    /// Captures: whole frames, headers only and 200,000 connections, beside tcptrace and tshark.
    Capture,
    /// The live test beside iperf3 and nuttcp: loopback and veth, by message size and number of connections.
    Measure,
    /// The whole loop over a grid of emulated paths and handicaps (150 cells, as root): how much of each path it reaches, the memory
    /// beside the product, the seconds, and what it changes where nothing is wrong.
    Tune,
    /// The TCP engine over TUN beside smoltcp and the kernel: goodput and processor time, both ways.
    Tcp,
    /// The Python package beside the program: the same 40 captures (200 MB), with one thread.
    Python,
    /// The simulator: data segments per second, and a sweep of a thousand points.
    Sim,
}

/// Builds for release and measures.
pub(crate) fn run(shell: &Shell, arguments: &Arguments) -> Result<()> {
    match arguments.what {
        Bench::Lab => {
            cmd!(shell, "cargo run --release --locked --quiet --package fullpipe-lab --example bench_lab").run()?
        }
        Bench::Capture => {
            cmd!(shell, "cargo run --release --locked --quiet --package fullpipe-ingest --example bench_capture")
                .run()?
        }
        Bench::Measure => measure::run(shell, arguments)?,
        Bench::Python => python::run(shell, arguments)?,
        Bench::Tune => tune::run(shell, arguments)?,
        Bench::Sim => {
            // The peer as its own package builds it.
            let netsim = "xtask/netsim";
            cmd!(shell, "cargo build --release --locked --quiet --manifest-path {netsim}/Cargo.toml").run()?;
            let peer = format!("{netsim}/target/release/fullpipe-netsim");
            as_it_ships(shell, "fullpipe-sim", "bench_sim", &["--netsim", &peer])?
        }
        Bench::Tcp => as_it_ships(shell, "fullpipe-stack", "bench_tcp", &["1", "3"])?,
    }
    Ok(())
}

/// Runs an example compiled as it ships: the engine's calls are inlined across crates, and what is hot is known.
fn as_it_ships(shell: &Shell, package: &str, example: &str, arguments: &[&str]) -> Result<()> {
    let triple = &setup::host(shell)?;
    let packages = &["--package", package, "--package", "fullpipe-sim"];
    Build { command: "build", triple, packages, program: ["--example", example] }.run(shell)?;
    cmd!(shell, "target/{triple}/dist/examples/{example} {arguments...}").run()?;
    Ok(())
}
