//! Any message, of strangers and of key holders who mean ill. `cargo xtask soak` tries many more.

use base64ct::{Base64, Encoding};
use fullpipe_knobs::Settings;
use proptest::{prelude::*, test_runner::TestCaseResult};
use serde_json::{Map, json};

use super::*;

/// Words that mean something to a server, and some that don't.
const WORDS: [&str; 24] = [
    "request",
    "order",
    "sealed",
    "to",
    "asking",
    "settings",
    "channel",
    "apply",
    "undo",
    "keep",
    "hold",
    "changes",
    "host",
    "knob",
    "from",
    "within_s",
    "run",
    "stay",
    "running",
    "net.ipv4.tcp_rmem",
    "net.core.bpf_jit_enable",
    "b",
    SERVER,
    "4096 131072 7000000",
];

fn word() -> impl Strategy<Value = String> {
    prop_oneof![9 => prop::sample::select(&WORDS[..]).prop_map(str::to_owned), 1 => any::<String>()]
}

/// Any JSON, of words that may fit.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        4 => word().prop_map(Value::from),
        1 => any::<i64>().prop_map(Value::from),
        1 => any::<f64>().prop_map(Value::from),
        1 => prop::sample::select(vec![Value::Null, Value::Bool(true), json!(-1), json!(u64::MAX)]),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            1 => prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            3 => prop::collection::btree_map(word(), inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// An order that would be carried out, with one of its parts replaced.
fn nearly_an_order() -> impl Strategy<Value = Value> {
    let whole = serde_json::to_value(apply("net.ipv4.tcp_rmem", OLD, "4096 131072 7000000")).unwrap();
    let change = whole["apply"]["changes"][0].clone();
    let keys: Vec<String> = change.as_object().unwrap().keys().cloned().collect();
    (prop::sample::select(keys), value(), 0_usize..4).prop_map(move |(key, other, place)| {
        let mut order = whole.clone();
        match place {
            0 => order["apply"][key] = other,
            1 => order["apply"]["changes"] = other,
            2 => order["apply"]["within_s"] = other,
            _ => order["apply"]["changes"][0][key] = other,
        }
        order
    })
}

/// Every file of the machine.
fn files(folder: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() { all.extend(files(&path)) } else { all.push((path.clone(), fs::read(path).unwrap())) }
    }
    all.sort();
    all
}

/// Whatever was asked: once that client is gone, the machine is as it was.
fn hold(machine: &Machine, before: &[(std::path::PathBuf, Vec<u8>)], ends: Ends) -> TestCaseResult {
    machine.handler.on_disconnect(ends.peer, Disconnect::Bye);
    prop_assert_eq!(&files(&machine.folder.path().join("machine"))[..], before);
    Ok(())
}

#[test]
fn no_message_of_a_stranger_changes_anything_or_tells_a_setting() {
    let machine = Machine::new();
    let before = files(&machine.folder.path().join("machine"));
    proptest!(|(message in value(), body in nearly_an_order(), asking in prop::collection::vec(any::<u8>(), 0..90))| {
        let ends = peer(7);
        drop(machine.handler.handle(message, ends));
        let asking = Base64::encode_string(&asking);
        reason(&machine.ask(ends, &Request::Channel { to: SERVER.to_owned(), asking }));
        let order = |text: &[u8]| Request::Order { sealed: Base64::encode_string(text) };
        reason(&machine.ask(ends, &order(body.to_string().as_bytes())));
        // A channel that somebody else was given is of no use without the key.
        machine.channel(ends, SERVER);
        reason(&machine.ask(ends, &order(body.to_string().as_bytes())));
        reason(&machine.ask(ends, &Request::Settings));
        hold(&machine, &before, ends)?;
    });
}

#[test]
fn no_sealed_order_changes_what_the_list_does_not_have_or_lasts_beyond_its_session() {
    let machine = Machine::new();
    let before = files(&machine.folder.path().join("machine"));
    proptest!(|(body in prop_oneof![nearly_an_order(), value()])| {
        let ends = peer(8);
        machine.sealed(ends, SERVER, &body.to_string());
        for (path, bytes) in files(&machine.folder.path().join("machine")) {
            let was = before.iter().find(|(of, _)| *of == path).map(|(_, bytes)| bytes);
            prop_assert!(was == Some(&bytes) || path.ends_with("tcp_rmem"), "{path:?} of {body}");
        }
        hold(&machine, &before, ends)?;
    });
    // What was tried did no harm to those who come after.
    assert!(matches!(machine.apply(peer(9), OLD, "4096 131072 7000000"), Answer::Applied { .. }));
    let settings: Result<Settings, _> = machine.handler.end().settings();
    assert!(settings.is_ok());
}
