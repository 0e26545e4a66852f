//! The keys of `share`.

use super::{Key, key};

/// What `share` prints.
pub const SHARE: &[Key] = &[
    key("pool", "object", "the device's packet buffers"),
    key("pool.buffers", "integer", "how many there are"),
    key("pool.buffer_bytes", "integer", "memory of one; B"),
    key("pool.reserve", "integer", "buffers that no socket gets"),
    key("pool.shared", "integer", "buffers of all sockets together"),
    key("pool.left", "integer", "buffers beyond the reserve that nobody gets"),
    key("shares[]", "object", "what some sockets of a group get, in the order of the groups"),
    key("shares[].sockets", "string", "the group, as it was asked for"),
    key("shares[].count", "integer", "how many of its sockets get this"),
    key("shares[].receive", "integer", "buffers for packets received in order"),
    key("shares[].out_of_order", "integer", "buffers for packets out of order"),
    key("shares[].transmit", "integer", "buffers for packets to send"),
    key("shares[].unacknowledged", "integer", "buffers for packets sent and not acknowledged"),
    key("shares[].buffers", "integer", "the four together, of one socket"),
    key("shares[].rate_bps", "integer?", "payload rate of one bulk socket, alone on the device; bit/s"),
    key("shares[].limiter", "string?", "what holds it then, as the simulator knows it"),
    key("shares[].latency_us", "integer?", "a message of an interactive socket, from request to last byte; us"),
    key("shares[].ample_latency_us", "integer?", "the same with as many buffers as can be; us"),
    key("shares[].calls[]", "object", "NetBurner's call for each of the four numbers"),
    key("shares[].calls[].function", "string", "its name, as `settings` has it"),
    key("shares[].calls[].value", "integer", "the number"),
    key("shares[].calls[].call", "string", "as it stands in a program"),
    key("shares[].calls[].reason", "string", "why this number"),
    key("total_bps", "integer", "what all bulk sockets reach together; bit/s"),
    key("device_bps", "integer", "what the device can move at most; bit/s"),
    key("wait_us", "integer?", "the longest that an interactive message waits behind packets of bulk sockets; us"),
    key("stop", "string", "why nobody gets more: `pool`, `plateau`, `device` or `wait`"),
    key("notes[]", "string", "what the reader must know besides"),
];
