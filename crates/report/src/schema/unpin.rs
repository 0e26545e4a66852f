//! The keys of `unpin`.

use super::{Key, key};

/// What `unpin` prints at its end.
pub const UNPIN: &[Key] = &[
    key("run", "integer", "its run in the journal"),
    key("target", "string", "whose sockets, as it was asked for"),
    key("swallowed", "object?", "calls for new sockets that were swallowed; `null` with `--open-only`"),
    key("swallowed.send", "integer", "of `SO_SNDBUF`"),
    key("swallowed.receive", "integer", "of `SO_RCVBUF`"),
    key("sockets[]", "object", "a socket that was open and was given back to automatic sizing"),
    key("sockets[].process", "string", "the process's name, as it chose it"),
    key("sockets[].pid", "integer", "its number"),
    key("sockets[].fd", "integer", "the socket's file descriptor there"),
    key("sockets[].send_buffer", "integer?", "the send buffer that was set, as the kernel counts; B"),
    key("sockets[].receive_buffer", "integer?", "the receive buffer that was set, likewise; B"),
    key(
        "sockets[].largest_window",
        "integer?",
        "the largest window that its window scale allows, where that was chosen for the small buffer and holds the connection \
         still; B",
    ),
    key(
        "put_back",
        "integer?",
        "how many of those have their fixed buffers again; `null`: another run had the journal, and `undo` puts them back",
    ),
    key(
        "set_again",
        "integer?",
        "how many had a buffer set again by their application, which is left alone; what is in neither count is closed",
    ),
    key("before_bps", "integer?", "payload rate of all connections of the target before; bit/s"),
    key("after_bps", "integer?", "the same in the last seconds, at most 30; `null`: it ended too soon; bit/s"),
    key("ratio", "number?", "the one over the other"),
];
