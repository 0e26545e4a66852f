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
    key("errors", "integer", "how many are errors; any makes the exit code 1"),
    key("warnings", "integer", "how many are warnings"),
    key("notes", "integer", "how many are notes"),
    key("fine", "integer", "how many are fine"),
];
