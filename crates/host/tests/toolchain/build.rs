//! Building a package for another system. Nothing is run there.

use std::{
    process::Command,
    sync::{Mutex, PoisonError},
};

use crate::toolchain;

/// Two cargo-zigbuilds that are the first on a machine fail over the links that both make.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Builds the package whose test this is with `command`, which is cargo or stands for it, and `more` arguments; says that it
/// is skipped where the program `linker` or Rust's standard library for `target` is missing.
pub(crate) fn builds(name: &str, command: &[&str], linker: &str, target: &str, more: &[&str]) {
    if let Some(missing) = toolchain::missing(&[linker], target) {
        println!("skipped {name}: {missing} is missing");
        return;
    }
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let (program, first) = command.split_first().unwrap();
    let output = Command::new(program)
        .args(first)
        .args(["--quiet", "--profile", "cross", "--package", env!("CARGO_PKG_NAME")])
        .args(more)
        .args(["--target", target])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", toolchain::text(&output));
}
