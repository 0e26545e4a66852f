//! Builds the C example against the static library and runs it in a network namespace of its own.
#![cfg(target_os = "linux")]

use std::{
    path::{Path, PathBuf},
    process::{Command, Output},
};

const TEST: &str = "a_c_program_moves_4_mb_both_ways";

fn run(program: &str, arguments: &[&str]) -> Option<Output> {
    Command::new(program).args(arguments).output().ok()
}

fn succeeds(program: &str, arguments: &[&str]) -> bool {
    run(program, arguments).is_some_and(|output| output.status.success())
}

/// What this machine lacks.
fn missing() -> Option<&'static str> {
    if !succeeds("cc", &["--version"]) {
        return Some("a C compiler (cc)");
    }
    if !Path::new("/dev/net/tun").exists() {
        return Some("/dev/net/tun");
    }
    if !succeeds("ip", &["-V"]) {
        return Some("ip (iproute2)");
    }
    (!succeeds("unshare", &["--net", "true"])).then_some("the right to make a network namespace (unshare --net)")
}

/// The static library, built like this test.
fn library() -> PathBuf {
    let built = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--lib", "--package", env!("CARGO_PKG_NAME")])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status()
        .expect("cargo runs");
    assert!(built.success());
    // This program is in `deps`, the library beside that.
    let deps = std::env::current_exe().expect("a running program has a path");
    deps.ancestors().nth(2).expect("it lies below the target folder").join("libfullpipe.a")
}

#[test]
fn a_c_program_moves_4_mb_both_ways() {
    if let Some(missing) = missing() {
        println!("skipped {TEST}: {missing} is missing");
        return;
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("transfer");
    let compiled = Command::new("cc")
        .args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O1", "-I"])
        .arg(folder.join("include"))
        .args(["transfer.c", "peer.c"].map(|file| folder.join("examples").join(file)))
        .arg(library())
        .args(["-lpthread", "-ldl", "-lm", "-o"])
        .arg(&program)
        .output()
        .expect("cc runs");
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let program = program.to_string_lossy();
    // Over a TUN device, then over Ethernet.
    for arguments in [&["--net", &program][..], &["--net", &program, "ethernet"]] {
        let output = run("unshare", arguments).expect("unshare runs");
        let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{text}");
        assert!(text.contains("4194304 bytes each way, 256 of 256 buffers free"), "{text}");
    }
}
