//! The keys of `mesh`.

use super::{Key, key};

/// What `mesh` prints.
pub const MESH: &[Key] = &[
    key("mesh", "string", "its name in the file of hosts"),
    key("run", "integer?", "the number of the run in the store; `null`: it is not kept"),
    key("hosts[]", "object", "a host, in the order of the file"),
    key("hosts[].name", "string", "its name"),
    key("hosts[].site", "string", "its site; its own name where the file has none"),
    key("hosts[].address", "string", "where others reach it"),
    key("directions[]", "object", "a direction of a pair"),
    key("directions[].from", "string", "the host that sent"),
    key("directions[].to", "string", "the host that received"),
    key("directions[].rate_bps", "integer?", "payload rate; `null`: it could not be measured; bit/s"),
    key("directions[].rtt_us", "integer?", "round-trip time without load; us"),
    key("directions[].limiter", "string?", "what limited it, as in `transfers[].diagnosis`"),
    key("directions[].error", "string?", "why it could not be measured, from either host"),
    key(
        "directions[].unable",
        "object?",
        "who could not measure the pair, so that the other end measured both directions",
    ),
    key("directions[].unable.host", "string", "that host"),
    key("directions[].unable.error", "string", "what went wrong there"),
    key("directions[].unable.text", "string", "both, in words"),
    key("directions[].slow", "boolean", "whether it is slow"),
    key("directions[].against_bps", "integer?", "the rate that it was held against; `null`: it is not slow; bit/s"),
    key("directions[].against", "string?", "what that is: `declared` for its path, or the `median` of all directions"),
    key("directions[].slower", "boolean", "whether it got slower than in earlier runs"),
    key("directions[].before_bps", "integer?", "the median of these; `null`: it did not; bit/s"),
    key("bad", "integer", "how many directions are slow or could not be measured"),
    key("suspect", "object?", "the one part of the mesh that explains them; `null`: none does"),
    key("suspect.kind", "string", "`host`, `site`, `sites` (between two) or `pair` (between two hosts)"),
    key("suspect.names[]", "string", "its name, or the two names"),
    key("suspect.role", "string", "in which of its directions: `both`, `sender` or `receiver`"),
    key("suspect.directions", "integer", "how many directions it has"),
    key("suspect.bad", "integer", "how many of them are slow or could not be measured"),
    key("suspect.limiter", "string?", "what limited most of these"),
    key("suspect.text", "string", "who it is, in words"),
    key("suspect.action", "string", "where to look next"),
];

/// What `mesh --history` prints.
pub const MESH_HISTORY: &[Key] = &[
    key("mesh", "string", "its name in the file of hosts"),
    key("runs[]", "object", "a run that was kept, newest first"),
    key("runs[].run", "integer", "its number"),
    key("runs[].started", "string", "when it began (RFC 3339, UTC)"),
    key("runs[].directions[]", "object", "a direction; keys as without `--history`"),
    key("runs[].directions[].from", "string", "the host that sent"),
    key("runs[].directions[].to", "string", "the host that received"),
    key("runs[].directions[].rate_bps", "integer?", "payload rate; bit/s"),
    key("runs[].directions[].rtt_us", "integer?", "round-trip time without load; us"),
    key("runs[].directions[].limiter", "string?", "what limited it"),
    key(
        "runs[].directions[].error",
        "string?",
        "why it could not be measured; beside a rate: who could not, so that the other end did",
    ),
];
