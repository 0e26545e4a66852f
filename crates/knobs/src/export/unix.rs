//! Linux, FreeBSD and macOS: one shape of script that saves, sets, reads back and undoes.
//!
//! Fixed functions (templates) and calls of them: what comes from a plan is only ever a quoted argument.

use super::{
    Before, Draft, ExportError, Item,
    quote::{Conf, Language, Sh, Unfit, device, sysctl},
    registry::line,
};
use crate::Address;

pub(super) const APPLY: &str = "apply.sh";
pub(super) const UNDO: &str = "undo.sh";

/// Calls of the fixed functions, by the part of the script that they belong to.
#[derive(Default)]
pub(super) struct Calls {
    /// Saves what is there, in the order of the plan.
    pub(super) save: String,
    /// Sets and reads back.
    pub(super) set: String,
    /// Puts back, one for each line of `set`; written in reverse.
    pub(super) undo: Vec<String>,
}

impl Calls {
    /// The calls for a sysctl that can be set while the system runs.
    pub(super) fn sysctl(&mut self, item: &Item<'_>) -> Result<(), ExportError> {
        let Address::Sysctl(name) = item.knob() else { return Ok(()) };
        let quoted = sysctl(name).and_then(Sh::literal).map_err(item.unfit(name, APPLY))?;
        let Some(to) = item.to() else {
            return Err(item.unfit("", APPLY)(Unfit("a sysctl can't be removed, only set")));
        };
        let to = value(item, to)?;
        self.add(item, "sysctl", &[quoted, to])
    }

    /// The calls for an interface's MTU.
    pub(super) fn mtu(&mut self, item: &Item<'_>) -> Result<(), ExportError> {
        let (Address::Link { device: name, .. }, Some(to)) = (item.knob(), item.to()) else { return Ok(()) };
        let quoted = device(name).and_then(Sh::literal).map_err(item.unfit(name, APPLY))?;
        let bytes = mtu(item, to)?;
        self.add(item, "mtu", &[quoted, format!("'{bytes}'")])
    }

    /// The calls for one setting: `arguments` are its quoted names and the quoted new value.
    pub(super) fn add(&mut self, item: &Item<'_>, kind: &str, arguments: &[String]) -> Result<(), ExportError> {
        let [names @ .., _] = arguments else { return Ok(()) };
        let all = arguments.join(" ");
        let save = format!("save_{kind} {}", names.join(" "));
        if !self.save.lines().any(|known| known == save) {
            line(&mut self.save, format_args!("{save}"));
        }
        line(&mut self.set, format_args!("# {}\nset_{kind} {all}", Sh::comment(&item.change.reason)));
        let known = match &item.before {
            Before::Value(before) => format!(" {}", value(item, before)?),
            Before::Absent | Before::Unknown => String::new(),
        };
        self.undo.push(format!("restore_{kind} {all}{known}"));
        Ok(())
    }
}

/// The bytes of an MTU.
pub(super) fn mtu(item: &Item<'_>, to: &str) -> Result<u32, ExportError> {
    to.trim().parse().map_err(|_| item.unfit(to, APPLY)(Unfit("an MTU is a number of bytes")))
}

/// A value as a quoted argument with single spaces, as the scripts compare it.
pub(super) fn value(item: &Item<'_>, text: &str) -> Result<String, ExportError> {
    Conf::literal(text).and_then(|text| Sh::literal(&text)).map_err(item.unfit(text, APPLY))
}

/// `name = value` lines with their reasons, in the order of the plan.
pub(super) fn conf(items: &[&Item<'_>], file: &'static str, separator: &str) -> Result<String, ExportError> {
    let mut text = String::new();
    for item in items {
        let (Address::Sysctl(name), Some(to)) = (item.knob(), item.to()) else { continue };
        let name = sysctl(name).map_err(item.unfit(name, file))?;
        let to = Conf::literal(to).map_err(item.unfit(to, file))?;
        line(&mut text, format_args!("\n# {}\n{name}{separator}{to}", Conf::comment(&item.change.reason)));
    }
    Ok(text)
}

/// What differs between the systems.
#[derive(Default)]
pub(super) struct System {
    /// Functions that are this system's own.
    pub(super) functions: &'static str,
    /// Calls that refuse to go on, before anything is saved or written.
    pub(super) check: &'static str,
    /// Calls that put in place what the rest needs, after all was saved, and go no further until the system has it.
    pub(super) first: String,
    /// Calls that put files in place, after all was saved.
    pub(super) install: String,
    /// Calls that take the files away.
    pub(super) uninstall: String,
    /// What to do after the first run of apply.sh, for the README.
    pub(super) then: Vec<String>,
}

/// Adds both scripts.
pub(super) fn scripts(draft: &mut Draft<'_>, calls: &Calls, system: &System) {
    let platform = Sh::comment(&draft.platform.to_string());
    let common = include_str!("templates/common.sh");
    let System { functions, check, first, install, uninstall, then } = system;
    let Calls { save, set, .. } = calls;
    let text = format!(
        "#!/bin/sh\n# Written by fullpipe for {platform}: saves what is there, sets the values, reads each back.\n# undo.sh beside it puts back what was saved.\n{common}{functions}\n{check}begin_save\n{save}end_save\n{first}{install}\n{set}finish\n"
    );
    draft.unix_file(APPLY, "saves what is there into before.txt, sets the values, reads each back (as root)", &text);
    let undo: Vec<&str> = calls.undo.iter().rev().map(String::as_str).collect();
    let text = format!(
        "#!/bin/sh\n# Written by fullpipe for {platform}: takes back what apply.sh did, in reverse order.\n# A value that is not the one that apply.sh wrote is somebody else's and is left alone.\n{common}{functions}\n{}\n{uninstall}finish_undo\n",
        undo.join("\n")
    );
    draft.unix_file(UNDO, "puts back what was there before apply.sh, last change first (as root)", &text);
    draft.step("As root: sh apply.sh. It saves what is there into before.txt beside it before it writes anything: keep that file.");
    then.iter().for_each(|step| draft.step(step));
    draft.step("To undo: sh undo.sh.");
    if draft.items.iter().any(|item| item.before == Before::Unknown) {
        draft.step(
            "The values before are not known here: undo.sh takes them from before.txt, so it needs a run of apply.sh.",
        );
    }
}
