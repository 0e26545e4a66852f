//! What `watch` saw in an interval.

use fullpipe_watch::{Frame, record::Whole};
use serde_json::{Value, json};

use super::{diagnosis, document};

/// One interval; also what a recording holds, a line each.
pub fn watch(frame: &Frame) -> Value {
    frame_document("watch", frame)
}

/// A whole recording, as one interval.
pub fn recording(whole: &Whole) -> Value {
    frame_document("read", &whole.frame)
}

fn frame_document(command: &str, frame: &Frame) -> Value {
    let mut body = json!(frame);
    // As every other command spells it.
    if let Some(rows) = body["rows"].as_array_mut() {
        for (value, row) in rows.iter_mut().zip(&frame.rows) {
            value["diagnosis"] = row.diagnosis.as_ref().map_or(Value::Null, diagnosis);
        }
    }
    document(command, body)
}
