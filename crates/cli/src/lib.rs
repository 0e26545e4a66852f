//! The `fullpipe` program: an argument table and exit codes, as a library so that the Python package answers with the very
//! documents that the program prints ([`library`]).
//!
//! Nothing here measures, judges or sets anything. `args` is the one table from which parsing, help, man pages and
//! completions come; `exit` lists every exit code; `failure` turns every error of the other rooms into a kind, a
//! message and a hint; `commands` has one thin module per command.
#![forbid(unsafe_code)]

mod args;
mod commands;
mod confirm;
mod exit;
mod failure;
mod generated;
mod interrupt;
pub mod library;
mod logs;
mod output;
mod page;
mod password;
mod progress;

use std::process::ExitCode;

/// The program.
pub fn main() -> ExitCode {
    // Windows before 10 1703 and Server 2019: there no socket tells of itself.
    #[cfg(windows)]
    fullpipe_host::windows::connections::lend();
    let line: Vec<_> = std::env::args_os().collect();
    ExitCode::from(match args::parse(&line) {
        Ok(cli) => commands::run(cli),
        Err(error) => failure::usage(&error, &line).code(),
    })
}
