//! Speed, each with its peer or its aim beside it.

mod measure;

use anyhow::Result;
use clap::ValueEnum;
use xshell::{Shell, cmd};

/// What can be measured.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Bench {
    /// The lab's path: goodput at 10 ms and the release error at 100 Mbit/s.
    Lab,
    /// Captures: whole frames, headers only and 200,000 connections, beside tcptrace and tshark.
    Capture,
    /// The live test beside iperf3 and nuttcp: loopback and veth, by message size and number of connections.
    Measure,
    /// The TCP engine over TUN beside smoltcp and the kernel: goodput and processor time, both ways.
    Tcp,
}

/// Of which the median is shown.
const ROUNDS: u32 = 3;

/// Builds for release and measures.
pub(crate) fn run(shell: &Shell, what: Bench) -> Result<()> {
    match what {
        Bench::Lab => {
            cmd!(shell, "cargo run --release --locked --quiet --package fullpipe-lab --example bench_lab").run()?
        }
        Bench::Capture => {
            cmd!(shell, "cargo run --release --locked --quiet --package fullpipe-ingest --example bench_capture")
                .run()?
        }
        Bench::Measure => measure::run(shell, ROUNDS)?,
        Bench::Tcp => {
            cmd!(shell, "cargo run --release --locked --quiet --package fullpipe-stack --example bench_tcp").run()?
        }
    }
    Ok(())
}
