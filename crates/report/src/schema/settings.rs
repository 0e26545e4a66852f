//! The keys of the documents about settings, plans for a platform, what was applied, and findings.

use super::{Key, key};

/// What `settings` prints.
pub const SETTINGS: &[Key] = &[
    key("platform", "string", "the platform and its version: `linux-6.18.44`, `windows-2012`"),
    key("settings[]", "object", "a setting, in the order of the names"),
    key("settings[].knob", "string", "the setting"),
    key("settings[].value", "string?", "its value; `null`: absent"),
    key("settings[].default", "string?", "what this version starts with, as the catalogue says it; `null`: not known"),
    key("settings[].is_default", "boolean?", "whether the value is the default; `null`: known in words only, or not"),
    key(
        "settings[].honoured",
        "string",
        "whether this version does what it says: `yes`, `partly`, `ignored`, `read_only`, `absent` or `unknown`",
    ),
    key("settings[].meaning", "string", "what it does; empty where the catalogue doesn't know it"),
    key("settings[].unit", "string", "the unit of its numbers; `none` where they have none"),
    key("settings[].note", "string", "what to know of this version; empty where there is nothing"),
    key("settings[].file", "string?", "the file that tells the value; `null`: read from this host"),
    key("settings[].line", "integer?", "the line in it, from 1"),
    key("settings[].column", "integer?", "the column in characters, from 1"),
    key("hidden", "integer", "how many are not told: absent, or not in the catalogue; `--all` tells them"),
    key("files[]", "object", "a file that was read"),
    key("files[].file", "string", "its name"),
    key("files[].format", "string", "what it was taken for: `sysctl_output`, `registry`, `netsh` ..."),
    key("files[].others", "integer", "how many settings it has that the catalogue doesn't know"),
    key("remarks[]", "object", "what is to be said of a line"),
    key("remarks[].file", "string", "the file"),
    key("remarks[].line", "integer", "the line, from 1"),
    key("remarks[].column", "integer", "the column in characters, from 1"),
    key("remarks[].kind", "string", "`unread`, `out_of_range`, `contradiction` or `note`"),
    key("remarks[].message", "string", "a sentence"),
    key("contradictions[]", "object", "two places that say different things of one setting"),
    key("contradictions[].knob", "string", "the setting"),
    key("contradictions[].taken", "object", "what counts"),
    key("contradictions[].taken.value", "string?", "the value; `null`: absent"),
    key("contradictions[].taken.file", "string", "the file"),
    key("contradictions[].taken.line", "integer", "the line, from 1"),
    key("contradictions[].taken.column", "integer", "the column, from 1"),
    key("contradictions[].left", "object", "what doesn't"),
    key("contradictions[].left.value", "string?", "the value; `null`: absent"),
    key("contradictions[].left.file", "string", "the file"),
    key("contradictions[].left.line", "integer", "the line, from 1"),
    key("contradictions[].left.column", "integer", "the column, from 1"),
    key("contradictions[].message", "string", "why the one counts"),
    key("tuning_level", "string?", "Windows, with `--connections`: the automatic tuning level that connections have"),
    key("connections[]", "object", "an established connection of this host; none without `--connections`"),
    key("connections[].local", "string", "address and port of this host"),
    key("connections[].remote", "string", "those of the other"),
    key("connections[].pid", "integer", "the process that it belongs to"),
    key("connections[].program", "string?", "the file name of its program; `null`: not told"),
    key("connections[].receive", "object?", "its receive window; `null`: there is a `problem`"),
    key("connections[].receive.largest", "integer", "the largest window that it offered; B"),
    key(
        "connections[].receive.pinned",
        "boolean?",
        "whether its application very likely set SO_RCVBUF; `null`: nothing tells",
    ),
    key("connections[].receive.why", "string", "what tells it, or why nothing does"),
    key("connections[].send", "object?", "its send buffer; `null`: there is a `problem`"),
    key("connections[].send.largest", "integer", "the most that was in flight; B"),
    key(
        "connections[].send.pinned",
        "boolean?",
        "whether its application very likely set SO_SNDBUF; `null`: nothing tells",
    ),
    key("connections[].send.why", "string", "what tells it, or why nothing does"),
    key("connections[].problem", "string?", "why its statistics could not be had"),
];

/// What `plan` prints.
pub const PLAN: &[Key] = &[
    key("platform", "string", "the platform that it is for: `windows-2012`"),
    key("rate_bps", "integer", "the rate that was planned for; bit/s"),
    key("rtt_us", "integer", "the round-trip time that was planned for; us"),
    key("goal", "string", "`bulk` or `interactive`"),
    key("mtu", "integer", "the largest packet that the plan counts with, inside of tunnels; B"),
    key("mss", "integer", "the payload of a full segment of it, without options; B"),
    key("from_settings", "boolean", "whether the machine's own settings were known; else the platform's defaults"),
    key(
        "changes[]",
        "object",
        "one setting to change, in the order of application; keys as in `plan.changes`. Without `from_settings` a `from` of `null` is not known",
    ),
    key(
        "changes[].from_known",
        "boolean",
        "whether `from` is what is there; else nobody looked, and `apply` looks itself",
    ),
    key("notes[]", "string", "what that version can't do, what to do instead, and what is left alone"),
    key("folder", "string?", "the folder of `--write`"),
    key("files[]", "object", "a file that was written there"),
    key("files[].name", "string", "its name in the folder"),
    key("files[].what", "string", "what it is for"),
    key("files[].bytes", "integer", "its size; B"),
    key("left_out[]", "object", "a change that no file makes; empty without `--write`"),
    key("left_out[].knob", "string", "the setting"),
    key("left_out[].why", "string", "why, and what to do instead"),
];

/// What `apply` and `reset` print.
pub const APPLIED: &[Key] = &[
    key("run", "integer?", "the run, as `undo` takes it; `null`: everything was so already"),
    key(
        "changes[]",
        "object",
        "what was asked for; keys as in `plan.changes`. It also stands beside the error `not_confirmed`",
    ),
    key("notes[]", "string", "what is left alone, and why"),
    key("applied[]", "object", "what became of each change, in that order"),
    key("applied[].knob", "string", "the setting"),
    key("applied[].before", "string?", "what was there; `null`: absent"),
    key("applied[].wanted", "string?", "what was to be there; `null`: absent"),
    key("applied[].now", "string?", "what was read back; `null`: absent"),
    key("applied[].unchanged", "boolean", "whether it was so already"),
    key("applied[].clamped", "boolean", "whether the system took another value than the one asked for"),
    key("applied[].takes_effect", "string", "`live`, `new_connections`, `interface_restart` or `restart`"),
    key("applied[].needs_restart", "boolean", "whether it acts only when the machine starts again"),
    key(
        "applied[].at_start",
        "boolean",
        "whether only a boot-time file has it: the running system keeps the old value until it starts again",
    ),
    key("restart_needed", "boolean", "whether that holds for any of them"),
    key("boot_files[]", "string", "a boot-time file that was written"),
    key("not_persisted[]", "string", "a setting that does not last beyond a restart although that was asked for"),
    key(
        "confirm_within_s",
        "integer?",
        "seconds until everything is taken back unless `confirm` comes; `null`: it stays",
    ),
];

/// What `apply --dry-run` prints.
pub const DRY_RUN: &[Key] = &[
    key("dry_run", "boolean", "`true`: nothing was changed"),
    key("changes[]", "object", "what would be changed; keys as in `plan.changes`"),
    key("notes[]", "string", "what is left alone, and why"),
    key("files[]", "object", "a boot-time file that `--persist` would write"),
    key("files[].path", "string", "where it is"),
    key("files[].removed[]", "string", "a line that would go"),
    key("files[].added[]", "string", "a line that would come"),
];

/// What `plan --verify` prints.
pub const VERIFIED: &[Key] = &[
    key("verified[]", "object", "a change of the plan that the settings before lead to"),
    key("verified[].knob", "string", "the setting"),
    key("verified[].to", "string?", "what was planned; `null` for removed"),
    key("verified[].found", "string?", "what is there afterwards; `null` where it is absent or not told"),
    key("verified[].taken", "string", "`yes`, `no`, or `unknown` where the files don't tell"),
    key("verified[].message", "string", "the verdict in words"),
];

/// What `lint` prints.
pub const FINDINGS: &[Key] = &[
    key("findings[]", "object", "what is to be said of a line, file by file"),
    key("findings[].file", "string", "the file"),
    key("findings[].line", "integer", "the line, from 1"),
    key("findings[].level", "string", "`error`, `warning`, `note` or `ok`"),
    key("findings[].rule", "string", "the rule, which keeps its name"),
    key("findings[].message", "string", "what is wrong, or what the line does"),
    key("findings[].fix", "string?", "what to write instead"),
    key("findings[].knob", "string?", "the setting that the line is about"),
    key("findings[].platform", "string?", "the platform that it was judged for"),
    key("findings[].text", "string?", "the line itself, cut at 160 characters"),
    key("errors", "integer", "how many are errors; any makes the exit code 1"),
    key("warnings", "integer", "how many are warnings"),
    key("notes", "integer", "how many are notes"),
    key("fine", "integer", "how many are fine"),
];
