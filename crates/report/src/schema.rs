//! Every key of every JSON document, with type, unit and meaning: `docs/json.md` is rendered from here, and the tests
//! hold the documents against it.

mod capture;
mod measured;
mod mesh;
mod settings;
mod share;
mod sim;
mod stack;
mod unpin;
mod watch;

pub use capture::CAPTURE;
pub use measured::{MEASURED, SURVEY};
pub use mesh::{MESH, MESH_HISTORY};
pub use settings::{APPLIED, DRY_RUN, FINDINGS, PLAN, SETTINGS, VERIFIED};
pub use share::SHARE;
pub use sim::{REFERENCE, SIMULATED, WHAT_IF};
pub use stack::{DEVICE_TABLE, PRESET_TABLE, STACK_RUN};
pub use unpin::UNPIN;
pub use watch::WATCH;

/// One key of a document.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Where it is: `transfers[].rate_bps`; `*` stands for any key.
    pub path: &'static str,
    /// Its type: `string`, `number`, `integer`, `boolean`, `object`, `array`; with `?` it may be `null`.
    pub kind: &'static str,
    /// What it says, with its unit.
    pub meaning: &'static str,
}

/// One kind of document.
#[derive(Clone, Copy, Debug)]
pub struct Document {
    /// Its title.
    pub title: &'static str,
    /// The commands that print it.
    pub commands: &'static str,
    /// Its keys beside those that all documents have.
    pub keys: &'static [Key],
}

const fn key(path: &'static str, kind: &'static str, meaning: &'static str) -> Key {
    Key { path, kind, meaning }
}

/// The keys of every document.
pub const COMMON: &[Key] = &[
    key("schema", "string", "name and version of the schema: `fullpipe/2`"),
    key("command", "string", "the command that printed it: `check`, `lab run`"),
];

/// The keys of an error, which any command may print, alone or beside what it had found.
pub const ERROR: &[Key] = &[
    key("error", "object", "why the command could not be done"),
    key("error.kind", "string", "one of the kinds in [exit-codes.md](exit-codes.md)"),
    key("error.message", "string", "operation, object and cause"),
    key("error.hint", "string?", "what to do about it"),
];

/// What `check`, `tune`, `demo` and `lab run` print.
pub const OUTCOME: &[Key] = &[
    key("scenario", "string?", "the scenario's name, where the path was emulated"),
    key("scenario_facts", "object?", "what a reader must know of the emulated path"),
    key("scenario_facts.summary", "string", "one sentence"),
    key("scenario_facts.imitations[]", "string", "which end imitates another system, and how"),
    key("scenario_facts.published", "string?", "the figures that were published for the situation, as a quotation"),
    key("ends", "object", "the names of the two ends"),
    key("ends.a", "string", "the name of this end, or of the lab's first host"),
    key("ends.b", "string", "the name of the other end"),
    key("transfers[]", "object", "what was measured first, a direction each"),
    key("transfers[].direction", "string", "sender and receiver: `a->b` or `b->a`"),
    key("transfers[].rate_bps", "integer", "payload rate over the whole measurement, as the receiver counted; bit/s"),
    key("transfers[].steady_bps", "integer?", "payload rate without the slow start; bit/s"),
    key("transfers[].rtt_us", "integer?", "round-trip time without load; us"),
    key("transfers[].loaded_rtt_us", "integer?", "median round-trip time under load; us"),
    key("transfers[].bytes", "integer", "payload; B"),
    key("transfers[].seconds", "number", "how long it took; s"),
    key("transfers[].retransmissions", "integer?", "segments retransmitted"),
    key("transfers[].congestion_control", "string?", "the sender's congestion control, as its kernel names it"),
    key("transfers[].diagnosis", "object", "the judgement"),
    key(
        "transfers[].diagnosis.limiter",
        "string",
        "`application`, `receive_window`, `send_buffer`, `congestion_window`, `path`, `ack_delay`, `segment_size`, \
         `reordering`, `handshake`, `cpu` or `insufficient_evidence`",
    ),
    key(
        "transfers[].diagnosis.detail",
        "string?",
        "how it acts: `scaling_absent`, `scale_zero`, `window_ceiling`, `zero_window`, `slow_reader`, `buffer_cap`, \
         `slow_start`, `loss`, `rto`, `tail_loss`, `nagle`, `delayed_ack`, `mtu_black_hole`, `small_mss`, `policed`, \
         `saturated`, `idle`, `pinned_by_application`; more may come",
    ),
    key("transfers[].diagnosis.share", "number", "the fraction of time for which it was the limit, 0 to 1"),
    key(
        "transfers[].diagnosis.attainable_bps",
        "integer?",
        "the payload rate to expect without it; of a full or policed path what it carries, for all connections that share it; bit/s",
    ),
    key("transfers[].diagnosis.confidence", "string", "`low`, `medium` or `high`"),
    key("transfers[].diagnosis.or[]", "object", "what else explains what was seen, where nothing tells the two apart"),
    key("transfers[].diagnosis.or[].limiter", "string", "as in `limiter`"),
    key("transfers[].diagnosis.or[].decided_by", "string", "what would tell which of the two it is"),
    key("transfers[].diagnosis.shares", "object", "the fraction of time of each limiter; at most 1 together"),
    key("transfers[].diagnosis.shares.*", "number", "0 to 1"),
    key("transfers[].diagnosis.evidence[]", "object", "why, most important first"),
    key("transfers[].diagnosis.evidence[].text", "string", "a sentence with figures and arithmetic"),
    key("transfers[].diagnosis.evidence[].from_us", "integer?", "when it was seen first, since the first payload; us"),
    key("transfers[].diagnosis.evidence[].to_us", "integer?", "when it was seen last; us"),
    key("transfers[].diagnosis.evidence[].first_packet", "integer?", "`read`: the number of the first packet of it"),
    key("transfers[].diagnosis.evidence[].last_packet", "integer?", "`read`: the number of the last one"),
    key("transfers[].diagnosis.blind[]", "string", "what could not be seen"),
    key("transfers[].diagnosis.action", "string", "the one thing to do"),
    key("transfers[].seen", "object?", "what `what-if` takes from it besides; `null` where no kernel was read"),
    key("transfers[].seen.streams", "integer", "connections at once"),
    key("transfers[].seen.path_bps", "integer?", "payload rate that the path was seen to carry; bit/s"),
    key("transfers[].seen.path_mtu", "integer?", "the path's largest packet; B"),
    key("transfers[].seen.mss", "integer?", "payload of a full segment; B"),
    key("transfers[].seen.in_flight_bytes", "integer?", "the most that one connection had in flight; B"),
    key("transfers[].seen.offered_window_bytes", "integer?", "the largest window that the receiver offered; B"),
    key("transfers[].seen.ends[]", "object", "the sender, then the receiver"),
    key("transfers[].seen.ends[].role", "string", "`sender` or `receiver`"),
    key("transfers[].seen.ends[].name", "string", "its name"),
    key("transfers[].seen.ends[].platform", "string?", "its platform: `linux-6.18.44`"),
    key("transfers[].seen.ends[].syn_seen", "boolean", "whether its SYN was seen"),
    key("transfers[].seen.ends[].window_scale", "integer?", "the shift in it; `null`: no option, or not seen"),
    key("transfers[].seen.ends[].send_buffer_bytes", "integer?", "its send buffer, as its kernel counts; B"),
    key("transfers[].seen.ends[].receive_buffer_bytes", "integer?", "its receive buffer, likewise; B"),
    key("hosts[]", "object", "how a host was set before any change; one whose settings could not be read is missing"),
    key("hosts[].host", "string", "its name"),
    key("hosts[].platform", "string", "its platform: `linux-6.18.44`"),
    key("hosts[].compared", "integer", "how many of its settings could be compared with the default of this version"),
    key("hosts[].not_default[]", "object", "a setting that differs from it"),
    key("hosts[].not_default[].knob", "string", "the setting"),
    key("hosts[].not_default[].value", "string?", "its value; `null`: absent"),
    key("hosts[].not_default[].default", "string?", "what this version starts with"),
    key("hosts[].not_default[].meaning", "string", "what it does"),
    key("hosts[].not_default[].note", "string", "what to know of this version; empty where there is nothing"),
    key("plan", "object", "what to set"),
    key("plan.changes[]", "object", "one setting to change, in the order of application; undone in reverse"),
    key("plan.changes[].host", "string", "the host to change"),
    key(
        "plan.changes[].knob",
        "string",
        "the setting: `net.ipv4.tcp_rmem`, `route 10.0.0.0/24 window`, `link eth0 mtu`",
    ),
    key("plan.changes[].from", "string?", "its value now; `null`: absent"),
    key("plan.changes[].to", "string?", "its value to be; `null`: absent"),
    key("plan.changes[].reason", "string", "why"),
    key("plan.changes[].arithmetic", "string", "how the value comes about"),
    key("plan.changes[].memory_worst_case", "integer?", "the most memory that it can cost; B"),
    key("plan.changes[].takes_effect", "string", "`live`, `new_connections`, `interface_restart` or `restart`"),
    key("plan.changes[].undo", "string", "how to undo it by hand"),
    key("plan.changes[].source", "string", "where the catalogue has it from"),
    key("plan.notes[]", "string", "what the plan leaves alone and why"),
    key("proof", "object?", "the first of `proofs`; `null` where nothing was tried"),
    key("proof.direction", "string", "as in `proofs`"),
    key("proof.before_bps", "integer", "as in `proofs`"),
    key("proof.after_bps", "integer", "as in `proofs`"),
    key("proof.ratio", "number", "as in `proofs`"),
    key("proof.ratio_low", "number?", "as in `proofs`"),
    key("proof.ratio_high", "number?", "as in `proofs`"),
    key("proof.pairs", "integer", "as in `proofs`"),
    key("proof.decision", "string", "as in `proofs`"),
    key("proof.helped", "boolean", "as in `proofs`"),
    key("proof.kept", "boolean", "as in `proofs`"),
    key("proof.knobs[]", "string", "as in `proofs`"),
    key("proof.predicted_before_bps", "integer?", "as in `proofs`"),
    key("proof.predicted_after_bps", "integer?", "as in `proofs`"),
    key("proof.predicted_ratio", "number?", "as in `proofs`"),
    key("proofs[]", "object", "whether the plan helped, a direction each"),
    key("proofs[].direction", "string", "the direction that was measured"),
    key("proofs[].before_bps", "integer", "geometric mean of the payload rates without the changes; bit/s"),
    key("proofs[].after_bps", "integer", "geometric mean of the payload rates with them; bit/s"),
    key("proofs[].ratio", "number", "after / before"),
    key("proofs[].ratio_low", "number?", "lower end of the 95 % interval; `null` with fewer than two pairs"),
    key("proofs[].ratio_high", "number?", "upper end of the 95 % interval; `null` with fewer than two pairs"),
    key("proofs[].pairs", "integer", "how many pairs were measured"),
    key("proofs[].decision", "string", "what the pairs show: `helped`, `not_shown`, `harmed` or `need_more_pairs`"),
    key(
        "proofs[].helped",
        "boolean",
        "whether the changes helped: a direction that they are for gained, and none lost",
    ),
    key("proofs[].kept", "boolean", "whether the changes are still in force; never in `demo` and `lab run`"),
    key("proofs[].knobs[]", "string", "the settings that were tried together"),
    key(
        "proofs[].predicted_before_bps",
        "integer?",
        "`tune`: the rate that the simulator gives without the changes; bit/s",
    ),
    key("proofs[].predicted_after_bps", "integer?", "`tune`: the rate that it gives with them; bit/s"),
    key("proofs[].predicted_ratio", "number?", "after / before of the two"),
    key("kept[]", "object", "a run that was kept; `tune` only"),
    key("kept[].host", "string", "its host"),
    key("kept[].run", "integer", "its number in the journal there, as `undo` takes it"),
    key("kept[].lasts", "boolean", "whether all of it lasts beyond a reboot"),
    key("kept[].boot_files[]", "string", "a boot-time file that was written"),
    key(
        "kept[].until_reboot[]",
        "string",
        "what lasts only until the next reboot although more was asked for, and the way out",
    ),
    key("transfers_after[]", "object", "what was measured last with the changes in force; keys as in `transfers`"),
    key("restored[]", "object", "a host that was compared with its state at the start"),
    key("restored[].host", "string", "its name"),
    key("restored[].compared", "integer", "how many settings were compared"),
    key("restored[].differences[]", "object", "a setting that reads differently; none where the host reads as before"),
    key("restored[].differences[].knob", "string", "the setting"),
    key("restored[].differences[].before", "string?", "at the start; `null`: absent"),
    key("restored[].differences[].now", "string?", "now; `null`: absent"),
    key("path_error_us", "object?", "how late the emulated path released packets; `null` on a real path"),
    key("path_error_us.p50", "integer", "median; us"),
    key("path_error_us.p99", "integer", "99 of 100 packets; us"),
    key("path_error_us.max", "integer", "the largest; us"),
    key("path_valid", "boolean?", "whether the emulated path kept up, so that the result counts"),
    key(
        "expectations[]",
        "object",
        "what the scenario, or a gate of `check` (`--min-rate`, `--fail-on`), expects, and what came out",
    ),
    key("expectations[].direction", "string", "the direction"),
    key("expectations[].expected", "string", "in words and figures"),
    key("expectations[].found", "string", "what came out"),
    key("expectations[].met", "boolean", "whether the two agree"),
    key(
        "as_expected",
        "boolean?",
        "where a scenario or a gate expects something: whether every expectation was met, every host reads as before and the emulated path kept up",
    ),
    key("notes[]", "string", "what the reader must know besides"),
];

/// What `history` prints, and `status` for the runs that are in force.
pub const RUNS: &[Key] = &[
    key("runs[]", "object", "a run that changed something, newest first; `status`: of which something is in force"),
    key("runs[].run", "integer", "its number, as `undo` takes it"),
    key("runs[].started", "string", "when it began (RFC 3339, UTC)"),
    key("runs[].command", "string", "the command"),
    key("runs[].host", "string?", "the end that it changed, where it has a name"),
    key(
        "runs[].state",
        "string",
        "`open` (in force, never confirmed: interrupted), `on_trial` (taken back unless it is confirmed), `kept` or `undone`",
    ),
    key("runs[].namespace", "string?", "the network namespace or folder that it changed"),
    key("runs[].entries[]", "object", "what it changed, in that order"),
    key(
        "runs[].entries[].kind",
        "string",
        "`setting`, `file`, `far_run` (in force at a far end, where `tune` kept it), `program` (in force as long as a process \
         runs) or `socket` (the buffers of another process's socket)",
    ),
    key("runs[].entries[].knob", "string?", "the setting"),
    key("runs[].entries[].file", "string?", "the file"),
    key("runs[].entries[].far_run", "string?", "the server at the far end, and the number of the run there"),
    key("runs[].entries[].program", "string?", "what is in force, and by which process"),
    key("runs[].entries[].socket", "string?", "the socket, its process and its descriptor there"),
    key("runs[].entries[].before", "string?", "what was there; `null`: absent"),
    key("runs[].entries[].intended", "string?", "what was to be there; `null`: absent"),
    key("runs[].entries[].read_back", "string?", "what was read back after the write"),
    key(
        "runs[].entries[].persisted",
        "boolean",
        "whether it lasts beyond a reboot: false, too, where its boot-time file is gone",
    ),
    key("runs[].entries[].not_lasting", "string?", "why it does not last beyond a reboot although it was to"),
    key(
        "runs[].entries[].state",
        "string",
        "`intended` (perhaps not written), `written`, `undone`, `gone` or `left` (to whoever changed it since)",
    ),
    key("runs[].entries[].now", "string?", "`status` only: what the host reads now"),
    key("runs[].entries[].as_set", "boolean?", "`status` only: whether that is what the run had put there"),
    key("runs[].entries[].problem", "string?", "`status` only: why it can't be read"),
];

/// What `status` prints beside the runs.
pub const STATUS: &[Key] = &[
    key("left_behind", "boolean", "whether an interrupted run left something behind, which `undo` takes back"),
    key(
        "left[]",
        "object",
        "what `undo --leave-changed` left to whoever had changed it, where it is not as it was before the run",
    ),
    key("left[].run", "integer", "the run that had changed it"),
    key("left[].kind", "string", "`setting`, `file` or `socket`"),
    key("left[].knob", "string?", "the setting"),
    key("left[].file", "string?", "the file"),
    key("left[].socket", "string?", "the socket, its process and its descriptor there"),
    key("left[].before", "string?", "what was there before the run; `null`: absent"),
    key("left[].intended", "string?", "what the run put there; `null`: absent"),
    key("left[].now", "string?", "what is there now; `null`: absent, or `problem`"),
    key("left[].problem", "string?", "why it can't be read"),
    key(
        "left[].claims_undo",
        "boolean",
        "whether it is a file whose comment still says that `fullpipe undo` takes it back, which no undo does",
    ),
    key(
        "root_only",
        "string?",
        "the state folder of root, who also used fullpipe here; only root can see what of that is in force",
    ),
];

/// What `confirm` prints.
pub const CONFIRMED: &[Key] = &[
    key("run", "integer", "the run that is kept"),
    key("boot_files[]", "string", "a boot-time file that was written"),
    key("not_persisted[]", "string", "a setting that does not survive a reboot although that was asked for"),
    key(
        "notes[]",
        "string",
        "what another boot-time file sets again at the next boot, and what somebody changed since the run",
    ),
];

/// What `undo` prints.
pub const UNDO: &[Key] = &[
    key("undone[]", "object", "a setting or file that was looked at, in that order"),
    key("undone[].run", "integer?", "its run"),
    key("undone[].kind", "string", "as `runs[].entries[].kind`"),
    key("undone[].place", "string", "the setting, the path of the file, the far run, the program or the socket"),
    key(
        "undone[].outcome",
        "string",
        "`restored`, `already_back`, `changed_since` (left alone), `left` (left to whoever changed it, for good: \
         --leave-changed), `gone`, `elsewhere` (left alone), `at_far_end` (left: give --key-file) or `failed`",
    ),
    key("undone[].now", "string?", "what is there now; `null`: absent, or unknown"),
    key("undone[].ours", "string?", "`changed_since`, `left`: what the run had put there"),
    key("undone[].before", "string?", "`changed_since`, `left`: what was there before the run"),
    key("undone[].by", "integer?", "`changed_since`: the later run that changed it"),
    key("undone[].why", "string?", "`gone`, `elsewhere`, `at_far_end`, `failed`: how or why"),
    key("complete", "boolean", "whether nothing is left to put back of what was asked for"),
    key("journal_problem", "string?", "why the journal could not be marked"),
    key("dry_run", "boolean", "`true`: nothing was changed, and the document says what would be"),
    key(
        "changes[]",
        "object",
        "what was put back, in that order, or would be: with --dry-run and beside the error `not_confirmed`",
    ),
    key("changes[].run", "integer", "the run that changed it"),
    key("changes[].knob", "string?", "the setting; `null`: it is something else"),
    key("changes[].file", "string?", "the path of the boot-time file; `null`: it is something else"),
    key("changes[].far_run", "string?", "the server at the far end, and the number of the run there"),
    key("changes[].program", "string?", "what is in force, and by which process"),
    key("changes[].socket", "string?", "the socket, its process and its descriptor there"),
    key("changes[].from", "string?", "what was there until then; `null`: absent"),
    key("changes[].to", "string?", "what was there before the run, and is again; `null`: absent"),
];

/// What `lab list` prints.
pub const SCENARIOS: &[Key] = &[
    key("scenarios[]", "object", "a scenario that comes with the program"),
    key("scenarios[].name", "string", "its name, as `lab run` takes it"),
    key("scenarios[].summary", "string", "one sentence"),
    key("scenarios[].published", "string?", "the figures that were published for the situation, as a quotation"),
    key("scenarios[].source", "string?", "where they were published"),
    key("scenarios[].imitates", "object", "the system that an end imitates"),
    key("scenarios[].imitates.a", "string?", "host a"),
    key("scenarios[].imitates.b", "string?", "host b"),
    key("scenarios[].rate_bps", "object", "the rate of the narrowest link; bit/s"),
    key("scenarios[].rate_bps.a->b", "integer?", "from a to b; `null`: no link has a rate"),
    key("scenarios[].rate_bps.b->a", "integer?", "from b to a"),
    key("scenarios[].rtt_us", "integer", "round-trip time of an empty path; us"),
];

/// What `serve` prints when it is ready; it goes on then.
pub const LISTENING: &[Key] = &[
    key("time", "string", "when, in UTC (RFC 3339)"),
    key("level", "string", "`info`"),
    key("event", "string", "`listening`"),
    key("address", "string", "the address that it listens on"),
    key("port", "integer", "the port"),
    key(
        "url",
        "string?",
        "`web`: the link to open, with the token where one is wanted; `agent`: where the figures are",
    ),
];

/// What a command logs on standard error, an object on a line of its own for each event.
pub const EVENT: &[Key] = &[
    key("time", "string", "when, in UTC (RFC 3339)"),
    key(
        "level",
        "string",
        "`info`; `warning`: what a client did wrong or was refused; `error`: what this host failed at; with `RUST_LOG` or `-v` \
         of `serve` also `debug` and `trace`",
    ),
    key(
        "event",
        "string",
        "what happened: `test_ended`, `session_ended`, `session_stopped`, `session_failed`, `turned_away`, `accept_failed`, \
         `thread_failed`, `order_refused`, `trial_begun`, `run_on_trial`, `run_kept`, `run_undone`, `undo_failed`, \
         `sized_automatically` (`unpin`); `log`: what a part of the program logs",
    ),
    key("text", "string", "the same as a sentence"),
    key("peer", "string?", "the client: address and port"),
    key("target", "string?", "the part of the program that logs it"),
    key(
        "fields",
        "object",
        "what it logs besides; of `test_ended`: `connections`, `duration_us`, `received_bytes`, `sent_bytes`, and where there is \
         one `user`, `client`, `title`, `requests` (answered)",
    ),
];

/// What `--progress json` tells on standard error, an object on a line of its own for each step.
pub const PROGRESS: &[Key] = &[
    key("time", "string", "when, in UTC (RFC 3339)"),
    key("progress", "object", "the step"),
    key("progress.kind", "string", "`phase`: something begins; `tick`: it goes on; `note`: a step is done"),
    key("progress.text", "string?", "what begins or was done, a sentence"),
    key("progress.elapsed_s", "number?", "since it began; s"),
    key("progress.expected_s", "number?", "about how long it takes; s"),
    key("progress.rate_bps", "integer?", "payload rate of the last interval, of a `check` and its like; bit/s"),
    key("progress.up_bps", "integer?", "likewise of `measure`, from here; bit/s"),
    key("progress.down_bps", "integer?", "likewise, to here; bit/s"),
    key("progress.rtt_us", "integer?", "smoothed round-trip time; us"),
    key("progress.cwnd", "integer?", "`measure`: congestion window of the first sender; B"),
    key("progress.window", "integer?", "`measure`: the window that its peer offers; B"),
    key("progress.retransmissions", "integer?", "`measure`: segments retransmitted so far"),
];

/// What `completions`, `man` and `exit-codes` print.
pub const PAGE: &[Key] = &[key("text", "string", "the whole page or script")];

/// All kinds of documents.
pub const DOCUMENTS: &[Document] = &[
    Document { title: "A run of the loop", commands: "`check`, `tune`, `demo`, `lab run`, `sim`", keys: OUTCOME },
    Document { title: "A measurement", commands: "`measure`", keys: MEASURED },
    Document {
        title: "Several measurements",
        commands: "`measure` with `--sizes`, `--streams`, `--pattern`, `--latency-under-load`, `--mtu` or `--capacity`",
        keys: SURVEY,
    },
    Document { title: "A mesh of hosts", commands: "`mesh`", keys: MESH },
    Document { title: "Earlier runs of a mesh", commands: "`mesh --history`", keys: MESH_HISTORY },
    Document { title: "The journal", commands: "`history`, `show`, `status`", keys: RUNS },
    Document { title: "What is in force", commands: "`status`, beside the runs", keys: STATUS },
    Document { title: "A confirmation", commands: "`confirm`", keys: CONFIRMED },
    Document { title: "An undo", commands: "`undo`, `reset --to-journal`", keys: UNDO },
    Document { title: "Settings", commands: "`settings`", keys: SETTINGS },
    Document { title: "A plan for a platform", commands: "`plan`; `apply` takes it as a file", keys: PLAN },
    Document { title: "What was applied", commands: "`apply`, `reset`", keys: APPLIED },
    Document { title: "What would be applied", commands: "`apply --dry-run`", keys: DRY_RUN },
    Document { title: "What was taken of a plan", commands: "`plan --verify`", keys: VERIFIED },
    Document { title: "Findings", commands: "`lint`; `--sarif` writes SARIF 2.1.0 instead", keys: FINDINGS },
    Document { title: "Captures", commands: "`read`", keys: CAPTURE },
    Document {
        title: "The connections of this host in an interval",
        commands: "`watch`; without `--once` an object on a line of its own for each interval, as `--record` writes them; \
                   `read` of such a recording: all of it as one interval",
        keys: WATCH,
    },
    Document { title: "Buffers given back", commands: "`unpin`", keys: UNPIN },
    Document { title: "The scenarios", commands: "`lab list`", keys: SCENARIOS },
    Document { title: "The engine at work", commands: "`stack serve`, `stack connect`, `stack echo`", keys: STACK_RUN },
    Document { title: "A device over its buffers", commands: "`stack table`", keys: DEVICE_TABLE },
    Document { title: "The presets beside each other", commands: "`stack presets`", keys: PRESET_TABLE },
    Document { title: "A simulation", commands: "`sim`, beside the keys of a run of the loop", keys: SIMULATED },
    Document { title: "The published situations", commands: "`sim --all`", keys: REFERENCE },
    Document { title: "Predictions", commands: "`what-if`, `demo --sim`", keys: WHAT_IF },
    Document { title: "A pool shared out", commands: "`share`", keys: SHARE },
    Document { title: "A server that is ready", commands: "`serve`, `web`, `agent`", keys: LISTENING },
    Document {
        title: "An event (standard error)",
        commands: "`serve`, `unpin`; with `RUST_LOG` every command",
        keys: EVENT,
    },
    Document {
        title: "Progress (standard error)",
        commands: "`check`, `tune`, `demo`, `lab run`, `measure` with `--progress json`",
        keys: PROGRESS,
    },
    Document { title: "A page", commands: "`completions`, `man`, `exit-codes`", keys: PAGE },
];

/// `docs/json.md`.
pub fn markdown() -> String {
    let mut text = String::from(INTRODUCTION);
    text += "\n## Every document\n\n";
    text += &table(COMMON);
    text += "\n## An error\n\nAny command; alone, or beside what the run had found before it failed.\n\n";
    text += &table(ERROR);
    text += SINCE_BEFORE;
    for document in DOCUMENTS {
        text += &format!("\n## {}\n\n{}\n\n{}", document.title, document.commands, table(document.keys));
    }
    text
}

const INTRODUCTION: &str = "\
# JSON

`--json` on every command prints one object on standard output, also where the command fails. Nothing else goes there.

- Rates are in bit/s (`*_bps`), times in microseconds (`*_us`) or seconds (`seconds`, `*_s`), sizes in bytes.
- Every key below is always there. `null` means \"not known\" or \"does not apply\"; a type with `?` may be `null`.
- `x[]` is one element of the array `x`; an array may be empty. `*` stands for any key.
- Keys keep their names and meanings as long as `schema` says `fullpipe/2`. New keys may come: skip what you don't know.
- Texts may come from a peer. Control characters in them are escaped, so that a terminal can show the document.
";

const SINCE_BEFORE: &str = "
## From `fullpipe/1` to `fullpipe/2`

One word for one thing in every command. `apply` and `what-if` read documents of both.

| command | `fullpipe/1` | `fullpipe/2` |
|---|---|---|
| all but `read` | `retransmits` | `retransmissions`, as `read` always had it; `--csv` and `--series` too |
| `check`, `tune` | `direction`: `vm->192.0.2.7` | `a->b` or `b->a`; the names are in `ends` |
| `measure` | `direction`: `up` or `down` | `a->b` (from here to the host) or `b->a` |
| `measure` | `directions[].idle_rtt_us` | `directions[].rtt_us`, as in `transfers[]` |
| `check`, `tune` | `as_expected`: `true` | `null`: only a scenario expects something |
| `plan --simulate` | `directions[].direction`: `receives` or `sends` | `directions[].role`: `receiver` or `sender` |

A script that reads the former key goes on with
`jq 'walk(if type == \"object\" and has(\"retransmissions\") then .retransmits = .retransmissions else . end)'`.
`measure --iperf3-json` keeps iperf3's own names.
";

fn table(keys: &[Key]) -> String {
    let mut text = String::from("| key | type | meaning |\n|---|---|---|\n");
    for key in keys {
        text += &format!("| `{}` | {} | {} |\n", key.path, key.kind, key.meaning);
    }
    text
}

#[cfg(test)]
mod tests;
