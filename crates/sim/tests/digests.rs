//! The same seed gives the same series everywhere: here, on Windows, in a browser, and on any number of threads.

#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "../examples/digests/cases.rs"]
mod cases;

use std::{fs, path::Path, thread};

/// What `cargo run --release -p fullpipe-sim --example digests -- few` prints: the cases that take no time.
const KNOWN: &str = include_str!("digests.txt");

#[test]
fn the_same_seed_gives_the_series_that_are_on_record() {
    let found: String = cases::cases(false).iter().map(cases::line).collect();
    if std::env::var_os("FULLPIPE_WRITE_DIGESTS").is_some() {
        fs::write(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/digests.txt"), &found).unwrap();
        return;
    }
    assert_eq!(found, KNOWN.replace('\r', ""), "written anew with FULLPIPE_WRITE_DIGESTS=1");
}

#[test]
fn threads_change_nothing() {
    let cases = cases::cases(false);
    let whole: String = cases.iter().map(cases::line).collect();
    for threads in [2, 3, 8] {
        let parts: Vec<String> = thread::scope(|scope| {
            let started: Vec<_> = cases
                .chunks(cases.len().div_ceil(threads))
                .map(|part| scope.spawn(|| part.iter().map(cases::line).collect()))
                .collect();
            started.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(parts.concat(), whole, "{threads} threads");
    }
}
