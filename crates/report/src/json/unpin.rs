//! What `unpin` did.

use serde_json::{Value, json};

use super::document;
use crate::Unpinned;

/// Sockets that were given back to automatic sizing, for a time.
pub fn unpinned(unpinned: &Unpinned) -> Value {
    let sockets = unpinned.sockets.iter().map(|socket| {
        json!({
            "process": socket.process,
            "pid": socket.pid,
            "fd": socket.fd,
            "send_buffer": socket.send_buffer,
            "receive_buffer": socket.receive_buffer,
            "largest_window": socket.largest_window,
        })
    });
    document(
        "unpin",
        json!({
            "run": unpinned.run,
            "target": unpinned.target,
            "swallowed": unpinned.swallowed.map(|[send, receive]| json!({ "send": send, "receive": receive })),
            "sockets": sockets.collect::<Vec<_>>(),
            "put_back": unpinned.put_back.map(|back| back.restored),
            "set_again": unpinned.put_back.map(|back| back.set_again),
            "before_bps": unpinned.before,
            "after_bps": unpinned.after,
            "ratio": unpinned.ratio(),
        }),
    )
}
