//! The object is that of its source: what was compiled is written down beside it, as SHA-256 of both.
//!
//! `FULLPIPE_GENERATE=1` compiles anew. Compilers differ in their bytes, so that no comparison with a fresh object would hold.
#![expect(clippy::unwrap_used, reason = "a test that fails may panic")]

use std::{fs, path::Path, process::Command};

use sha2::{Digest, Sha256};

const PROGRAMS: [&str; 3] = ["unpin", "destination", "ends"];

/// As `sha256sum` prints them.
fn sums(folder: &Path, program: &str) -> String {
    let line = |file: &str| {
        let sum: String =
            Sha256::digest(fs::read(folder.join(file)).unwrap()).iter().map(|b| format!("{b:02x}")).collect();
        format!("{sum}  {file}\n")
    };
    line(&format!("{program}.bpf.c")) + &line(&format!("{program}.bpf.o"))
}

fn compile(folder: &Path, program: &str) {
    let flags = ["-O2", "-g", "-Wall", "-Werror", "-target", "bpf", "-fdebug-compilation-dir=."];
    let (source, object) = (format!("{program}.bpf.c"), format!("{program}.bpf.o"));
    let clang = Command::new("clang").args(flags).args(["-c", &source, "-o", &object]).current_dir(folder).status();
    assert!(clang.expect("clang is installed").success());
}

#[test]
fn each_object_is_of_its_source() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for program in PROGRAMS {
        let written = folder.join(format!("{program}.sha256"));
        if std::env::var_os("FULLPIPE_GENERATE").is_some() {
            compile(&folder, program);
            fs::write(&written, sums(&folder, program)).unwrap();
        }
        let written = fs::read_to_string(written).unwrap();
        assert!(written == sums(&folder, program), "the object is stale: see the head of {program}.bpf.c");
    }
}
