//! Builds the C example of the socket library and runs it.
#![cfg(target_os = "linux")]

mod build;

use std::path::Path;

use build::{compile, run, succeeds};

#[test]
fn a_c_client_of_64_kb_is_given_back_to_automatic_sizing() {
    if !succeeds("cc", &["--version"]) {
        println!("skipped a_c_client_of_64_kb_is_given_back_to_automatic_sizing: a C compiler (cc) is missing");
        return;
    }
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("tuned_client");
    compile(&["tuned_client.c"], &program);
    let output = run(&program.to_string_lossy(), &[]).expect("it starts");
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{text}");
    // 10 Gbit/s over 10 ms take 25,000,000 B: more than 64 KB on every kernel.
    assert!(text.contains("receive buffer: ") && !text.contains("left at 131,072 B: it holds"), "{text}");
    assert!(text.contains("connected: MTU ") && text.contains("scaling 1"), "{text}");
}
