//! Builds the C example against the static library and runs it in a network namespace of its own.
#![cfg(target_os = "linux")]

mod build;

use std::path::Path;

use build::{compile, run, succeeds};

const TEST: &str = "a_c_program_moves_4_mb_both_ways";

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

#[test]
fn a_c_program_moves_4_mb_both_ways() {
    if let Some(missing) = missing() {
        println!("skipped {TEST}: {missing} is missing");
        return;
    }
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("transfer");
    compile(&["transfer.c", "peer.c"], &program);
    let program = program.to_string_lossy();
    // Over a TUN device, then over Ethernet.
    for arguments in [&["--net", &program][..], &["--net", &program, "ethernet"]] {
        let output = run("unshare", arguments).expect("unshare runs");
        let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{text}");
        assert!(text.contains("4194304 bytes each way, 256 of 256 buffers free"), "{text}");
    }
}
