//! The object is that of its source: what was compiled is written down beside it, as SHA-256 of both.
//!
//! `FULLPIPE_GENERATE=1` compiles anew. Compilers differ in their bytes, so that no comparison with a fresh object would hold.
#![expect(clippy::unwrap_used, reason = "a test that fails may panic")]

use std::{fs, path::Path, process::Command};

use sha2::{Digest, Sha256};

const SOURCE: &str = "unpin.bpf.c";
const OBJECT: &str = "unpin.bpf.o";
const SUMS: &str = "unpin.sha256";

/// As `sha256sum` prints them.
fn sums(folder: &Path) -> String {
    let line = |file: &str| {
        let sum: String =
            Sha256::digest(fs::read(folder.join(file)).unwrap()).iter().map(|b| format!("{b:02x}")).collect();
        format!("{sum}  {file}\n")
    };
    line(SOURCE) + &line(OBJECT)
}

fn compile(folder: &Path) {
    let flags = ["-O2", "-g", "-Wall", "-Werror", "-target", "bpf", "-fdebug-compilation-dir=."];
    let clang = Command::new("clang").args(flags).args(["-c", SOURCE, "-o", OBJECT]).current_dir(folder).status();
    assert!(clang.expect("clang is installed").success());
}

#[test]
fn the_object_is_of_this_source() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    if std::env::var_os("FULLPIPE_GENERATE").is_some() {
        compile(&folder);
        fs::write(folder.join(SUMS), sums(&folder)).unwrap();
    }
    let written = fs::read_to_string(folder.join(SUMS)).unwrap();
    assert!(written == sums(&folder), "the object is stale: see the head of {SOURCE}");
}
