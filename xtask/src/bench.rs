//! Speed, each with its peer or its aim beside it.

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
}

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
    }
    Ok(())
}
