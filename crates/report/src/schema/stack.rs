//! The keys of `stack`.

use super::{Key, key};

/// What `stack serve`, `stack connect` and `stack echo` print.
pub const STACK_RUN: &[Key] = &[
    key("scenario", "string?", "the scenario whose made path it ran over"),
    key("profile", "string", "the policy: `fullpipe`, `linux`, `freebsd`, `netburner`"),
    key("offload", "boolean", "whether super-packets were sent"),
    key("connections[]", "object", "one connection, in the order of their ends"),
    key("connections[].peer", "string", "address and port of the other end"),
    key("connections[].sent", "integer", "payload sent; B"),
    key("connections[].received", "integer", "payload received; B"),
    key("connections[].seconds", "number", "how long it took; s"),
    key("connections[].rate_bps", "integer", "payload of the busier direction by that time; bit/s"),
    key("connections[].segments_sent", "integer", "segments sent, of any kind; a super-packet is one"),
    key("connections[].segments_received", "integer", "segments received, of any kind; a super-packet is one"),
    key("connections[].retransmits", "integer", "data segments sent again"),
    key("connections[].timeouts", "integer", "retransmission timeouts"),
    key("connections[].rtt_us", "integer?", "smoothed round-trip time at the end; us"),
    key("connections[].mss", "integer?", "data bytes of a full segment; B"),
    key("connections[].failure", "string?", "why it ended early"),
    key("pool", "object", "the packet buffers"),
    key("pool.buffers", "integer", "all of them"),
    key("pool.free", "integer", "free at the end"),
    key("pool.most_used", "integer", "the most that were in use at one time"),
];

/// What `stack table` prints.
pub const DEVICE_TABLE: &[Key] = &[
    key("scenario", "string", "the scenario's name"),
    key("summary", "string", "one sentence"),
    key("published", "string?", "the figures that were published for the situation, as a quotation"),
    key("bytes", "integer", "payload of a transfer; B"),
    key("per_packet_us", "integer", "how long the device is busy with each packet; us"),
    key("rtt_us", "integer", "the path's round-trip time; us"),
    key("waits", "boolean", "whether the device's application waits for each set of buffers to be acknowledged"),
    key("sweep", "string", "which budgets were swept: `all`, `out_of_order`"),
    key("fitted[]", "string", "what was fitted to a published figure, and is no prediction"),
    key("tolerance", "number", "how far a prediction may be from its published figure, as a fraction of it"),
    key("rows[]", "object", "one number of buffers in one role"),
    key("rows[].buffers", "integer", "the number of buffers"),
    key("rows[].role", "string", "what the engine did: `sends`, `receives`"),
    key("rows[].seconds", "number", "how long a transfer took, the mean of all runs; s"),
    key("rows[].runs", "integer", "how many transfers"),
    key("rows[].rate_bps", "integer", "payload by time; bit/s"),
    key("rows[].retransmits", "integer", "data segments that the engine sent again, in all runs"),
    key("rows[].early_dropped", "integer", "bytes out of order that it dropped for want of buffers, in all runs; B"),
    key("rows[].published_s", "number?", "the published time; s"),
    key("rows[].deviation", "number?", "how far from it, as a fraction of it"),
    key("rows[].fitted", "boolean", "whether something was fitted to this published time"),
    key("rows[].valid", "boolean", "whether the made path kept its promises in all runs"),
    key("as_expected", "boolean", "whether every prediction is within the tolerance"),
];
