//! Wheels of the Python package: one for each system, for Python 3.9 and later (abi3).

use std::path::Path;

use anyhow::{Result, ensure};
use xshell::{Shell, cmd};

use crate::setup;

/// The systems, and whether zig links for them: with the symbols of an old glibc (manylinux2014), or without Apple's own tools.
const TARGETS: [(&str, bool); 5] = [
    ("x86_64-unknown-linux-gnu", true),
    ("aarch64-unknown-linux-gnu", true),
    ("x86_64-pc-windows-gnu", false),
    ("x86_64-apple-darwin", true),
    ("aarch64-apple-darwin", true),
];

/// What Apple's linker is told of a framework that every macOS has: where it lies, and what of it is used (by `iana-time-zone`, for
/// the readers of Arrow). Apple's own description of it comes with its tools alone.
const CORE_FOUNDATION: &str = "--- !tapi-tbd
tbd-version: 4
targets: [ x86_64-macos, arm64-macos ]
install-name: '/System/Library/Frameworks/CoreFoundation.framework/Versions/A/CoreFoundation'
exports:
  - targets: [ x86_64-macos, arm64-macos ]
    symbols: [ _CFRelease, _CFRetain, _CFStringGetBytes, _CFStringGetCStringPtr, _CFStringGetLength, _CFTimeZoneCopySystem,
               _CFTimeZoneGetName, _CFTimeZoneResetSystem ]
...
";

/// Makes them in `dist`.
pub(super) fn make(shell: &Shell, dist: &Path) -> Result<()> {
    setup::python(shell);
    let triples = TARGETS.map(|(triple, _)| triple);
    setup::linking(shell, &triples)?;
    let maturin = shell.current_dir().join("target/tools/python/bin/maturin");
    ensure!(maturin.exists(), "{} is not here, which makes wheels", maturin.display());
    shell.create_dir(dist)?;
    let frameworks = shell.current_dir().join("target/tools/apple");
    shell.write_file(frameworks.join("CoreFoundation.framework/CoreFoundation.tbd"), CORE_FOUNDATION)?;
    let _in_package = shell.push_dir("bindings/python");
    for (triple, by_zig) in TARGETS {
        let zig = by_zig.then_some("--zig");
        let search = format!("-Lframework={}", frameworks.display());
        let _flags = triple.ends_with("-apple-darwin").then(|| shell.push_env("RUSTFLAGS", search));
        cmd!(shell, "{maturin} build --quiet --locked --release {zig...} --target {triple} --out {dist}").run()?;
    }
    Ok(())
}
