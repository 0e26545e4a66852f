//! The `fullpipe` binary; all of it is in the library beside.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    fullpipe_cli::main()
}
