//! Developer tasks: `cargo xtask test` sets up what is missing and runs every check; `cargo xtask --help` lists the rest.

mod archive;
mod bench;
mod check;
mod corpus;
mod dist;
mod interop;
mod lab_run;
mod outside;
mod packetdrill;
mod profile;
mod setup;
mod size;
mod soak;
mod validate;

use std::{env, os::unix::process::CommandExt as _};

use anyhow::Result;
use clap::{Parser, Subcommand};
use xshell::Shell;

/// Developer tasks of fullpipe.
#[derive(Parser)]
#[command(name = "cargo xtask", disable_help_subcommand = true)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Set up what is missing, then run formatting, lints and all tests. This is what CI runs.
    Test {
        /// Only these packages (`lab`, `tune`, ...); formatting and lints are then left out.
        packages: Vec<String>,
    },
    /// Install what tests need: peers to compare with, and what builds and runs for other systems (2 GB on the
    /// disk). What can't be had is named, and its tests skip.
    Setup,
    /// Speed, side by side with the peers, built for release.
    Bench(bench::Arguments),
    /// Archives at the size that they are for: makes a thousand captures and, with --prove, reads them with 1, 2 and 4 workers, by
    /// processes and on a Ray cluster of two nodes, kills a worker, stops a node, and compares (a quiet machine; hours if a slow one).
    Archive(archive::Archive),
    /// The measuring protocol against versions of iperf3 that are built from source.
    Interop {
        /// A git repository to build them from.
        #[arg(long, default_value = "https://github.com/esnet/iperf")]
        source: String,
    },
    /// Captures of transfers whose limiter is known, made over the lab's paths, and how often `fullpipe read` finds it.
    Corpus(corpus::Corpus),
    /// The simulator beside real kernels: goodput and verdicts on random paths, in the lab and simulated.
    ValidateSim(validate::Arguments),
    /// Crashes, power failures, flipped bits, histories of key holders, floods, messages of strangers and every fuzz target, in a
    /// loop with counts: nothing that the test run waits for. As root, with strace.
    #[command(args_conflicts_with_subcommands = true)]
    Soak {
        /// For how many minutes.
        #[arg(long, default_value_t = 30)]
        minutes: u32,
        #[command(subcommand)]
        only: Option<soak::Only>,
    },
    /// Run packetdrill scripts of others against the engine, in virtual time, and print how many pass.
    Packetdrill(packetdrill::Arguments),
    /// Flash and RAM of the smallest TCP application on a microcontroller, beside smoltcp.
    Size,
    /// Make what people install, in target/packages: static Linux programs, .deb, .rpm, a Windows zip, symbols and checksums.
    Dist(dist::Arguments),
    /// Write the generated files anew (docs, help snapshots); the test run checks that they are fresh.
    Generate {
        /// Also measure anew what `docs/articles.md` tells of measurements (some minutes, on a quiet machine).
        #[arg(long)]
        measure: bool,
        /// Of these measurements only the ones in this row.
        #[arg(long, requires = "measure")]
        row: Option<u8>,
        /// Instead of these, what is built into the pages: script, style, and what they compute as WebAssembly (Node.js and npm).
        #[arg(long, conflicts_with = "measure")]
        pages: bool,
    },
}

fn main() -> Result<()> {
    // Before cargo's variables are taken away: as the compiler, this needs them.
    if let Some(compiled) = profile::as_compiler() {
        return compiled;
    }
    // `cargo run` says which package this is; started anew, it and all that it starts don't know.
    if env::vars_os().any(|(name, _)| outside::says_which_package(&name)) {
        return Err(outside::outside(env::current_exe()?).args(env::args_os().skip(1)).exec().into());
    }
    let shell = Shell::new()?;
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace");
    shell.change_dir(root);
    match Arguments::parse().task {
        Task::Test { packages } => check::test(&shell, &packages),
        Task::Setup => {
            setup::all(&shell);
            Ok(())
        }
        Task::Bench(arguments) => bench::run(&shell, &arguments),
        Task::Archive(arguments) => archive::run(&shell, &arguments),
        Task::Interop { source } => interop::run(&shell, &source),
        Task::Corpus(corpus) => corpus::run(&shell, &corpus),
        Task::ValidateSim(arguments) => validate::run(&shell, &arguments),
        Task::Soak { minutes, only } => soak::run(&shell, minutes, only),
        Task::Packetdrill(arguments) => packetdrill::run(&shell, &arguments),
        Task::Dist(arguments) => dist::run(&shell, &arguments),
        Task::Size => size::run(&shell),
        Task::Generate { pages: true, .. } => check::generate_pages(&shell),
        Task::Generate { measure, row, .. } => check::generate(&shell, measure, row),
    }
}
