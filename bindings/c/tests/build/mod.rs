//! Compiles a C example against the static library.

#[path = "../../../../xtask/src/outside.rs"]
mod outside;

use std::{
    path::{Path, PathBuf},
    process::{Command, Output},
};

use outside::outside;

pub(crate) fn run(program: &str, arguments: &[&str]) -> Option<Output> {
    Command::new(program).args(arguments).output().ok()
}

pub(crate) fn succeeds(program: &str, arguments: &[&str]) -> bool {
    run(program, arguments).is_some_and(|output| output.status.success())
}

/// Examples into one program.
pub(crate) fn compile(examples: &[&str], program: &Path) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let compiled = Command::new("cc")
        .args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O1", "-I"])
        .arg(folder.join("include"))
        .args(examples.iter().map(|file| folder.join("examples").join(file)))
        .arg(library())
        .args(["-lpthread", "-ldl", "-lm", "-o"])
        .arg(program)
        .output()
        .expect("cc runs");
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
}

/// The static library. Of the whole workspace, which shares what the tests were built of: alone, features of dependencies
/// differ, and eleven crates are compiled a second time.
fn library() -> PathBuf {
    let built = outside(env!("CARGO"))
        .args(["build", "--quiet", "--lib", "--workspace"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status()
        .expect("cargo runs");
    assert!(built.success());
    // This program is in `deps`, the library beside that.
    let deps = std::env::current_exe().expect("a running program has a path");
    deps.ancestors().nth(2).expect("it lies below the target folder").join("libfullpipe.a")
}
