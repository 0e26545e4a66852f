//! The keys of the simulator.

use super::{Key, key};

/// What `sim` prints beside a run of the loop.
pub const SIMULATED: &[Key] = &[
    key("seed", "integer", "what decides every random element"),
    key("simulated[]", "object", "what only a simulation knows, a direction each"),
    key("simulated[].direction", "string", "as in `transfers`"),
    key("simulated[].truth", "object", "the fraction of time of each limiter, as the engine knows it"),
    key("simulated[].truth.*", "number", "0 to 1"),
    key("simulated[].queue_delay_us", "integer", "mean wait in front of the narrowest link; us"),
    key("simulated[].digest", "string", "a hash of the whole series: the same seed gives the same one"),
    key("simulated[].series", "object?", "with `--series`: the samples of the `sender` and of the `receiver`"),
];

/// What `what-if` and `demo --sim` print.
pub const WHAT_IF: &[Key] = &[
    key("situation", "string", "path and platforms, in words"),
    key("seed", "integer", "what decides every random element"),
    key("predictions[]", "object", "one set of settings"),
    key("predictions[].direction", "string?", "the direction, where there are two"),
    key("predictions[].set[]", "string", "a setting, `key=value`; none for things as they are"),
    key("predictions[].rate_bps", "integer", "payload rate; bit/s"),
    key("predictions[].measured_bps", "integer?", "the rate in the document, for things as they are; bit/s"),
    key("predictions[].limiter", "string", "as in `transfers[].diagnosis`"),
    key("predictions[].detail", "string?", "as in `transfers[].diagnosis`"),
    key("predictions[].truth", "string?", "the limiter of most of the time, as the engine knows it"),
    key("predictions[].seconds", "number?", "how long `--bytes` take, handshake included; s"),
    key("predictions[].retransmissions", "integer", "segments retransmitted"),
    key("predictions[].queue_delay_us", "integer", "mean wait in front of the narrowest link; us"),
    key("predictions[].memory_bytes", "integer", "the most payload that both hosts held; B"),
    key("predictions[].failure", "string?", "why the connection ended early"),
    key("plateau", "object?", "with `--sweep`: the smallest value that is as good as any"),
    key("plateau.knob", "string", "the setting"),
    key("plateau.value", "string", "its value"),
    key("plateau.rate_bps", "integer", "the payload rate with it; bit/s"),
    key("notes[]", "string", "what the reader must know besides"),
];

/// What `sim --all` prints.
pub const REFERENCE: &[Key] = &[
    key("rows[]", "object", "a case of a published situation"),
    key("rows[].scenario", "string", "the situation"),
    key("rows[].case", "string", "what of it"),
    key("rows[].published", "string?", "the published figure, as a quotation"),
    key("rows[].arithmetic", "string?", "how the arithmetic comes about"),
    key("rows[].arithmetic_bps", "integer?", "the payload rate that it gives; bit/s"),
    key("rows[].arithmetic_s", "number?", "the time of the transfer that it gives; s"),
    key("rows[].rate_bps", "integer?", "the simulated payload rate; bit/s"),
    key("rows[].seconds", "number?", "the simulated time of the transfer; s"),
    key("rows[].limiter", "string?", "what limits it there, as the engine knows it"),
    key("rows[].lab", "string?", "what the lab gave on Linux 6.18, where it was recorded"),
    key("notes[]", "string", "what the reader must know besides"),
];
