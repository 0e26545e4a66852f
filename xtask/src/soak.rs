//! What takes long: property tests with many more cases, and the scenarios over and over.

use std::time::{Duration, Instant};

use anyhow::Result;
use xshell::{Shell, cmd};

/// Repeats until the time is over; a failure ends it with its seed printed.
pub(crate) fn run(shell: &Shell, minutes: u32) -> Result<()> {
    let end = Instant::now() + Duration::from_secs(u64::from(minutes) * 60);
    let _cases = shell.push_env("PROPTEST_CASES", "20000");
    let mut round = 0;
    while Instant::now() < end {
        round += 1;
        eprintln!("soak: round {round}");
        cmd!(shell, "cargo test --locked --workspace --no-fail-fast").run()?;
    }
    Ok(())
}
