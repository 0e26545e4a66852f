//! What must hold for every page.

use serde_json::json;

use super::*;

const HOSTILE: &str = "</script><img src=x onerror=alert(1)>\u{1b}[31m\u{202e}";

/// The document that a page carries, as a browser reads it.
fn carried(page: &str) -> Value {
    let from = page.find("<script id=\"document\" type=\"application/json\">").expect("the page carries its document");
    let text = &page[from..][page[from..].find('>').unwrap() + 1..];
    serde_json::from_str(&text[..text.find("</script>").unwrap()]).expect("it is JSON")
}

#[test]
fn text_from_elsewhere_is_never_markup() {
    let connection = json!({
        "number": 1, "a": HOSTILE, "b": HOSTILE, "direction": HOSTILE, "display_filter": HOSTILE,
        "advice": [{ "host": HOSTILE, "platform": HOSTILE, "settings": [HOSTILE], "look_at": [HOSTILE] }],
        "diagnosis": {
            "limiter": HOSTILE, "action": HOSTILE, "shares": { HOSTILE: 1.0 }, "blind": [HOSTILE],
            "evidence": [{ "text": HOSTILE, "first_packet": 1, "last_packet": 2 }],
            "or": [{ "limiter": HOSTILE, "decided_by": HOSTILE }],
        },
    });
    let documents = [
        json!({ "command": HOSTILE, "schema": HOSTILE, "connections": [connection], HOSTILE: HOSTILE,
            "files": [{ "file": HOSTILE }], "problems": [{ "file": HOSTILE, "message": HOSTILE }] }),
        json!({ "command": "check", "ends": { "a": HOSTILE, "b": HOSTILE }, "scenario": HOSTILE,
            "transfers": [{ "direction": HOSTILE, "congestion_control": HOSTILE, "diagnosis": connection["diagnosis"] }],
            "proofs": [{ "direction": HOSTILE, "knobs": [HOSTILE] }],
            "plan": { "changes": [{ "host": HOSTILE, "knob": HOSTILE, "to": HOSTILE, "reason": HOSTILE }], "notes": [HOSTILE] } }),
        json!({ "directions": [{ "direction": HOSTILE, "streams": [{ HOSTILE: HOSTILE }, {}] }], "situation": HOSTILE,
            "plateau": { "knob": HOSTILE, "value": HOSTILE, "rate_bps": 1 }, "error": { "message": HOSTILE, "hint": HOSTILE },
            "predictions": [{ "set": [HOSTILE] }, { "set": [HOSTILE] }] }),
        json!({ "mesh": HOSTILE, "bad": 1, "hosts": [{ "name": HOSTILE, "site": HOSTILE }, { "name": "b", "site": "b" }],
            "directions": [{ "from": HOSTILE, "to": "b", "limiter": HOSTILE, "rate_bps": 1, "slower": true, "against": HOSTILE },
                { "from": "b", "to": HOSTILE, "error": HOSTILE }],
            "suspect": { "text": HOSTILE, "action": HOSTILE, "limiter": HOSTILE, "names": [HOSTILE] } }),
    ];
    for document in documents {
        let page = page(&document, Charts::default());
        assert_eq!(carried(&page), document);
        assert_eq!(page.matches("<script").count(), 3, "the document, the charts and the program");
        let written = page.replace(&*SCRIPT, "");
        assert!(!written.contains("<img") && !written.contains(['\u{1b}', '\u{202e}']), "{document}");
    }
}

#[test]
fn what_decides_between_several_limiters_is_said_once() {
    let other = |limiter: &str| json!({ "limiter": limiter, "decided_by": "one stream at a time" });
    let diagnosis = json!({ "limiter": "path", "or": [other("receive_window"), other("send_buffer")] });
    let section = diagnosis::section(&diagnosis, None).0;
    assert_eq!(section.matches("one stream at a time").count(), 1, "{section}");
}

#[test]
fn only_the_pages_own_script_and_style_may_run() {
    let policy = policy(&SCRIPT, "", ALONE);
    assert!(policy.starts_with("default-src 'none'; script-src 'sha256-") && !policy.contains("unsafe"), "{policy}");
    let page = page(&json!({ "command": "sim" }), Charts::default());
    assert!(page.contains(&*SCRIPT) && page.contains(STYLE) && !SCRIPT.contains("</"));
    // Nothing that a browser would fetch, and no style attribute, which the policy forbids.
    for sign in ["http://", "https://", " src=", " href=\"/", " style=\"", " onload"] {
        assert!(!page.replace(&*SCRIPT, "").contains(sign), "{sign}");
    }
}

#[test]
fn the_page_to_try_settings_on_carries_its_choices_as_text() {
    let first = State { set: HOSTILE.to_owned(), rate: "\"><b>".to_owned(), ..State::default() };
    let choices = Choices { first, platforms: vec![HOSTILE.to_owned()], ..Choices::default() };
    let page = what_if(&choices);
    assert!(page.contains("'wasm-unsafe-eval'") && page.contains("<script id=\"simulator\""), "the simulator may run");
    assert!(!page.contains("<img") && !page.contains("\"><b>"), "what is chosen is text");
    assert_eq!(page.matches("</script>").count(), 3);
}

#[test]
fn a_limiters_name_is_its_word_in_json() {
    for limiter in fullpipe_diagnose::Limiter::ALL {
        assert_eq!(json::word(&limiter).as_deref(), Some(limiter.name()));
    }
}
