//! What the lab can do on this machine, with both ends on it: goodput and release error, from no rate limit down to
//! 10 Mbit/s, over 10 to 200 ms, with one connection and with 64, and what the path takes of a processor.
//! `cargo run --release -p fullpipe-lab --example bench_lab [-- SECONDS [REPEATS]]`

use std::process::ExitCode;

use fullpipe_lab::{bench, enter_user_namespace};

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<u32>());
    let (Ok(seconds), Ok(repeats)) = (arguments.next().unwrap_or(Ok(5)), arguments.next().unwrap_or(Ok(3))) else {
        eprintln!("usage: bench_lab [SECONDS [REPEATS]]");
        return ExitCode::from(2);
    };
    match enter_user_namespace().and_then(|()| bench::run(seconds, repeats)) {
        Ok(report) => {
            print!("{report}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("bench_lab: {error}");
            ExitCode::FAILURE
        }
    }
}
