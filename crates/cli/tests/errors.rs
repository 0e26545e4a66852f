//! Each kind of error that a network or a state folder can make, met by the real binary: kind, exit code, and that
//! nothing is left behind.
#![expect(clippy::unwrap_used, reason = "a test that fails may panic")]

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener},
    path::Path,
    process::{Command, Output, Stdio},
    thread,
};

use serde_json::Value;

fn fullpipe(state: &Path, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fullpipe"))
        .args(words)
        .env("FULLPIPE_STATE_DIR", state)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// Runs a command that must fail with this code, and gives its error.
fn fails(state: &Path, words: &[&str], code: i32) -> Value {
    let output = fullpipe(state, &[words, &["--json"]].concat());
    assert_eq!(output.status.code(), Some(code), "{words:?}: {output:?}");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {output:?}"));
    assert_eq!(document["schema"], "fullpipe/2");
    assert!(document["error"]["message"].is_string(), "{document}");
    document["error"].clone()
}

fn state() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

/// A server on loopback that answers one connection with `answer` and closes.
fn stranger(answer: &'static [u8]) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().take(4) {
            let mut stream = stream.unwrap();
            let mut first = [0; 64];
            // What the client says does not matter; it may also have gone.
            let heard = stream.read(&mut first);
            drop(heard.and_then(|_| stream.write_all(answer)));
        }
    });
    address
}

#[test]
fn an_earlier_result_that_has_no_sizes_is_said_before_anything_is_measured() {
    let folder = state();
    let file = folder.path().join("before.json");
    std::fs::write(&file, "root:x:0:0::/root:/bin/sh\n").unwrap();
    // Nobody listens: that would be the error where the server is asked first.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    for file in [file, folder.path().join("none")] {
        let file = file.to_string_lossy();
        let error = fails(folder.path(), &["measure", &address, "--sizes", "4k..64k", "--compare", &file], 24);
        assert!(error["message"].as_str().unwrap().contains("reading "), "{error}");
    }
}

#[test]
fn a_result_that_cannot_be_kept_is_said_before_anything_is_measured() {
    let state = state();
    let nowhere = state.path().join("no/such/folder.json");
    let words = ["measure", "127.0.0.1:1", "--sizes", "4k..64k", "--save", nowhere.to_str().unwrap()];
    let error = fullpipe(state.path(), &[&words[..], &["--json"]].concat());
    let document: Value = serde_json::from_slice(&error.stdout).unwrap();
    assert!(document["error"]["message"].as_str().unwrap().contains("writing "), "{document}");
    // One that could be kept is not left behind empty, and an earlier one stays, where nothing is measured.
    let kept = state.path().join("kept.json");
    for before in [None, Some("earlier")] {
        if let Some(text) = before {
            std::fs::write(&kept, text).unwrap();
        }
        let words = ["measure", "127.0.0.1:1", "--sizes", "4k..64k", "--save", kept.to_str().unwrap()];
        let output = fullpipe(state.path(), &words);
        assert!(!output.status.success());
        assert_eq!(std::fs::read_to_string(&kept).ok().as_deref(), before);
    }
}

#[test]
fn nothing_listens_there() {
    // Bound and closed again: nobody has the port.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = fails(state().path(), &["check", &address.to_string()], 5);
    assert_eq!(error["kind"], "refused");
    assert!(error["message"].as_str().unwrap().contains(&address.to_string()));
    assert!(error["hint"].as_str().unwrap().contains("fullpipe serve"));
}

#[test]
fn the_name_has_no_address() {
    // RFC 6761, section 6.4: `invalid` never resolves.
    let error = fails(state().path(), &["check", "nowhere.invalid"], 6);
    assert_eq!(error["kind"], "name_unknown");
    assert!(error["message"].as_str().unwrap().contains("nowhere.invalid"));
}

#[test]
fn the_text_names_no_host() {
    let error = fails(state().path(), &["check", "two words"], 2);
    assert_eq!(error["kind"], "usage");
}

#[test]
fn a_web_server_is_not_a_server() {
    let address = stranger(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
    let error = fails(state().path(), &["check", &address.to_string()], 7);
    assert_eq!(error["kind"], "not_a_server");
    assert!(error["message"].as_str().unwrap().contains("HTTP"), "{error}");
}

#[test]
fn what_a_stranger_says_never_reaches_the_terminal_as_a_command() {
    let address = stranger(b"220 \x1b[2J\x1b]0;owned\x07 ready\r\n");
    let output = fullpipe(state().path(), &["check", &address.to_string(), "--color=never"]);
    assert_eq!(output.status.code(), Some(7), "{output:?}");
    for byte in output.stdout.iter().chain(&output.stderr) {
        assert!(*byte == b'\n' || !byte.is_ascii_control(), "{output:?}");
    }
}

#[test]
fn tuning_without_anybody_to_ask_needs_yes_and_touches_nothing() {
    let state = state();
    let error = fails(state.path(), &["tune", "127.0.0.1"], 20);
    assert_eq!(error["kind"], "not_confirmed");
    assert!(error["hint"].as_str().unwrap().contains("--yes"));
    assert_eq!(std::fs::read_dir(state.path()).unwrap().count(), 0, "the state folder was touched");
}

#[test]
fn a_key_that_is_missing_or_too_short_is_refused() {
    let state = state();
    let file = state.path().join("key");
    let key = file.to_str().unwrap();
    let missing = fails(state.path(), &["tune", "127.0.0.1", "--yes", "--key-file", key], 2);
    assert!(missing["message"].as_str().unwrap().contains(key), "{missing}");
    std::fs::write(&file, "short").unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
        let open = fails(state.path(), &["serve", "127.0.0.1:0", "--allow-tune", "--key-file", key], 2);
        assert!(open["hint"].as_str().unwrap().contains("chmod 600"), "{open}");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
    let short = fails(state.path(), &["serve", "127.0.0.1:0", "--allow-tune", "--key-file", key], 2);
    assert!(short["message"].as_str().unwrap().contains("5 bytes"), "{short}");
}

#[test]
fn an_address_in_use_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let error = fails(state().path(), &["serve", &address], 23);
    assert_eq!(error["kind"], "address_unavailable");
    assert!(error["message"].as_str().unwrap().contains(&address));
}

#[test]
fn a_scenario_that_is_unknown_or_wrong_is_named_with_its_line() {
    let state = state();
    let error = fails(state.path(), &["lab", "run", "wan-81ms"], 17);
    assert_eq!(error["kind"], "scenario_invalid");
    assert!(error["hint"].as_str().unwrap().contains("wan-80ms"));

    let missing = fails(state.path(), &["lab", "run", "./none.toml"], 17);
    assert!(missing["message"].as_str().unwrap().contains("./none.toml"));

    let file = state.path().join("wrong.toml");
    std::fs::write(&file, "name = \"x\"\nsummry = \"y\"\n").unwrap();
    let wrong = fails(state.path(), &["lab", "run", file.to_str().unwrap()], 17);
    assert!(wrong["message"].as_str().unwrap().contains("summry"), "{wrong}");
}

#[test]
fn no_history_is_an_empty_history_and_makes_no_folder() {
    let state = state();
    let none = state.path().join("none");
    for (words, key) in [(["history"].as_slice(), "runs"), (&["status"], "runs"), (&["undo"], "undone")] {
        let output = fullpipe(&none, &[words, &["--json"]].concat());
        assert!(output.status.success(), "{words:?}: {output:?}");
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(document[key], Value::Array(Vec::new()), "{words:?}");
    }
    assert!(!none.exists());
}

#[test]
fn a_run_that_the_journal_does_not_have_is_unknown() {
    let error = fails(state().path(), &["undo", "7", "--yes"], 22);
    assert_eq!(error["kind"], "run_unknown");
    assert!(error["message"].as_str().unwrap().contains('7'));
}

#[test]
fn a_journal_that_another_run_holds_is_locked() {
    let state = state();
    let held = fullpipe_host::Journal::open(state.path()).unwrap();
    let error = fails(state.path(), &["undo", "--all", "--yes"], 14);
    assert_eq!(error["kind"], "journal_locked");
    assert!(error["message"].as_str().unwrap().contains(&std::process::id().to_string()), "{error}");
    // Looking needs no lock.
    assert!(fullpipe(state.path(), &["history"]).status.success());
    drop(held);
    assert!(fullpipe(state.path(), &["undo", "--all", "--yes"]).status.success());
}

#[test]
fn a_journal_that_is_none_is_unusable_and_stays_as_it_is() {
    let state = state();
    let file = state.path().join(fullpipe_host::journal::FILE_NAME);
    std::fs::write(&file, b"this is no journal, but text of some length that nobody shall lose").unwrap();
    let before = std::fs::read(&file).unwrap();
    for command in ["history", "status", "undo"] {
        let error = fails(state.path(), &[command], 15);
        assert_eq!(error["kind"], "journal_unusable", "{command}");
    }
    assert_eq!(std::fs::read(&file).unwrap(), before);
}

#[test]
fn a_state_folder_that_is_a_file_is_unusable() {
    let state = state();
    let file = state.path().join("file");
    std::fs::write(&file, "").unwrap();
    let error = fails(&file, &["undo", "3", "--yes"], 15);
    assert_eq!(error["kind"], "journal_unusable");
}
