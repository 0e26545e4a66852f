//! Replays every corpus through its target: what the fuzzer once found stays found, without a nightly toolchain.

use std::{
    fs,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
};

use fullpipe_fuzz::TARGETS;

fn files(target: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("read {}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry of a corpus").path()).collect();
    files.sort();
    files
}

#[test]
fn every_input_that_was_kept_passes() {
    let mut failures = Vec::new();
    for (target, body) in TARGETS {
        let files = files(target);
        assert!(!files.is_empty(), "the corpus of {target} is empty");
        for file in files {
            let data = fs::read(&file).expect("a file of a corpus");
            if catch_unwind(AssertUnwindSafe(|| body(&data))).is_err() {
                failures.push(file);
            }
        }
    }
    assert!(failures.is_empty(), "inputs that fail: {failures:#?}");
}

#[test]
fn no_input_at_all_passes() {
    for (_, body) in TARGETS {
        body(&[]);
    }
}
