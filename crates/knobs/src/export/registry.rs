//! Windows before Vista: registry files and INF files, each with its undo.

use std::fmt::Write as _;

use super::{
    Before, Draft, Encoding, ExportError, Item,
    quote::{Inf, Language, Reg, Unfit, one_line},
};
use crate::{Address, recipe::unquoted};

const APPLY: &str = "fullpipe.reg";
const UNDO: &str = "fullpipe-undo.reg";
const REMOVE: &str = "fullpipe-remove.reg";
const INF: &str = "fullpipe.inf";
const UNDO_INF: &str = "fullpipe-undo.inf";
const REMOVE_INF: &str = "fullpipe-remove.inf";

/// A value of the registry with its type.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Data {
    Dword(u32),
    Text(String),
    /// As a registry file writes it: `hex:01,02`, `hex(7):...`.
    Raw(String),
}

/// One value to write or to delete.
struct Entry<'a> {
    key: &'a str,
    name: &'a str,
    /// `None` deletes it.
    data: Option<Data>,
    why: &'a str,
}

pub(super) fn write(draft: &mut Draft<'_>) -> Result<(), ExportError> {
    let mut items = std::mem::take(&mut draft.items);
    items.retain(|item| is_registry(item, draft));
    let [mut apply, mut undo] = [Vec::new(), Vec::new()];
    let mut unknown = false;
    for item in &items {
        let Address::Registry { key, value } = item.knob() else { continue };
        let data = item.to().map(|to| new_data(item, to)).transpose()?;
        apply.push(Entry { key, name: value, data, why: &item.change.reason });
        let before = match &item.before {
            Before::Value(text) => Some(Data::from_text(text).map_err(item.unfit(text, UNDO))?),
            Before::Absent => None,
            Before::Unknown => {
                unknown = true;
                None
            }
        };
        undo.push(Entry { key, name: value, data: before, why: "" });
    }
    undo.reverse();
    if !items.is_empty() {
        files(draft, &items, &apply, &undo, unknown)?;
    }
    draft.items = items;
    Ok(())
}

fn is_registry(item: &Item<'_>, draft: &mut Draft<'_>) -> bool {
    let Address::Registry { key, .. } = item.knob() else {
        draft.leave_out(item.knob(), "this version has no file form for it; set it by hand");
        return false;
    };
    if key.contains("{GUID}") {
        let why =
            "it is a setting of one adapter, and the plan doesn't say which: put the adapter's GUID in place of {GUID}";
        draft.leave_out(item.knob(), why);
        return false;
    }
    true
}

fn files(
    draft: &mut Draft<'_>,
    items: &[Item<'_>],
    apply: &[Entry<'_>],
    undo: &[Entry<'_>],
    unknown: bool,
) -> Result<(), ExportError> {
    // Windows NT 4 reads the older form only, which is in the machine's code page.
    let old_form = !draft.is_at_least("2000");
    let form = if old_form {
        Form { head: "REGEDIT4", encoding: Encoding::Plain }
    } else {
        Form { head: "Windows Registry Editor Version 5.00", encoding: Encoding::Utf16 }
    };
    let platform = one_line(&draft.platform.to_string());
    if unknown {
        draft.windows_file(
            "save-first.cmd",
            "saves the registry keys as they are now (run it first, and keep what it writes)",
            &save_script(items)?,
            Encoding::Plain,
        );
        draft.step(
            "Run save-first.cmd. The values that are there now are not known here, and only they make an exact undo.",
        );
        draft.step("Where a saved file has one of the values below, plan again with --settings and that file: the export then puts it back. Where it has none of them, fullpipe-remove.reg is the exact undo.");
    }
    draft.step("As an administrator, open fullpipe.reg, or right-click fullpipe.inf and choose Install. One of them is enough.");
    draft.step("Restart Windows: these values are read when it starts. Then read them back and measure; never believe a write.");
    let text = form.text(&format!("Sets what fullpipe planned for {platform}."), apply, items, APPLY)?;
    draft.windows_file(APPLY, "sets the values", &text, form.encoding);
    let (name, what, head) = if unknown {
        (
            REMOVE,
            "puts back what is known of before and takes the other values away: an exact undo only where those were absent; else set them by hand to what save-first.cmd saved",
            "Takes away what is not known of before. NOT AN EXACT UNDO where such a value was there: set it to what save-first.cmd saved.",
        )
    } else {
        (
            UNDO,
            "puts back exactly what was there before, and takes away what was absent",
            "Puts back what was there before fullpipe.reg.",
        )
    };
    let text = form.text(head, undo, items, name)?;
    draft.windows_file(name, what, &text, form.encoding);
    let back = if unknown {
        "To undo, as far as it is known: open fullpipe-remove.reg (or install fullpipe-remove.inf), then restart."
    } else {
        "To undo: open fullpipe-undo.reg (or install fullpipe-undo.inf), then restart."
    };
    let text = inf(&format!("Sets what fullpipe planned for {platform}."), apply, items, INF)?;
    let encoding = inf_encoding(&text);
    draft.windows_file(INF, "sets the same values; for machines where .reg files are blocked", &text, encoding);
    if undo.iter().all(|entry| !matches!(entry.data, Some(Data::Raw(_)))) {
        let name = if unknown { REMOVE_INF } else { UNDO_INF };
        let text = inf(head, undo, items, name)?;
        let encoding = inf_encoding(&text);
        draft.windows_file(name, what, &text, encoding);
    } else {
        draft.step(
            "There is no undo .inf: an earlier value is of a type that .inf files can't write. Use fullpipe-undo.reg.",
        );
    }
    draft.step(back);
    Ok(())
}

/// Setup files are read in the code page of the machine unless they are UTF-16.
fn inf_encoding(text: &str) -> Encoding {
    if text.is_ascii() { Encoding::Plain } else { Encoding::Utf16 }
}

/// A script that saves the keys; regedit is on every version, reg.exe is not.
fn save_script(items: &[Item<'_>]) -> Result<String, ExportError> {
    let mut text = "@echo off\nsetlocal DisableDelayedExpansion\nrem Saves the registry keys that fullpipe's files change. Changes nothing.\n".to_owned();
    let mut saved: Vec<String> = Vec::new();
    for item in items {
        let Address::Registry { key, .. } = item.knob() else { continue };
        let file = "save-first.cmd";
        let long = Reg::long_key(key).map_err(item.unfit(key, file))?;
        let quoted = super::quote::Batch::literal(&long).map_err(item.unfit(key, file))?;
        if !saved.contains(&quoted) {
            saved.push(quoted);
        }
    }
    for (number, key) in (1..).zip(&saved) {
        line(
            &mut text,
            format_args!(
                "if exist \"%~dp0before-{number}.reg\" (echo before-{number}.reg is there already and is kept) else (regedit /e \"%~dp0before-{number}.reg\" {key})"
            ),
        );
    }
    Ok(text)
}

struct Form {
    head: &'static str,
    encoding: Encoding,
}

impl Form {
    fn text(
        &self,
        about: &str,
        entries: &[Entry<'_>],
        items: &[Item<'_>],
        file: &'static str,
    ) -> Result<String, ExportError> {
        let mut text = format!("{}\n\n; {}\n", self.head, Reg::comment(about));
        let mut open = None;
        for entry in entries {
            let item = item_of(items, entry);
            let key = Reg::key(entry.key).map_err(item.unfit(entry.key, file))?;
            if open.as_ref() != Some(&key) {
                line(&mut text, format_args!("\n{key}"));
                open = Some(key);
            }
            if !entry.why.is_empty() {
                line(&mut text, format_args!("; {}", Reg::comment(entry.why)));
            }
            let name = Reg::name(entry.name).map_err(item.unfit(entry.name, file))?;
            let data = entry
                .data
                .as_ref()
                .map_or_else(|| Ok("-".to_owned()), Data::reg)
                .map_err(item.unfit(entry.name, file))?;
            line(&mut text, format_args!("{name}={data}"));
        }
        if matches!(self.encoding, Encoding::Plain) && !text.is_ascii() {
            let item = items.iter().find(|item| !item.knob().to_string().is_ascii()).unwrap_or(&items[0]);
            return Err(item.unfit(&text, file)(Unfit(
                "this version's registry files hold ASCII safely and nothing else",
            )));
        }
        Ok(text)
    }
}

/// The item that an entry was made from; each entry has one.
fn item_of<'a, 'b>(items: &'a [Item<'b>], entry: &Entry<'_>) -> &'a Item<'b> {
    let same = |item: &&Item<'_>| matches!(item.knob(), Address::Registry { key, value } if key == entry.key && value == entry.name);
    items.iter().find(same).unwrap_or(&items[0])
}

fn inf(about: &str, entries: &[Entry<'_>], items: &[Item<'_>], file: &'static str) -> Result<String, ExportError> {
    let [mut add, mut delete] = [String::new(), String::new()];
    for entry in entries {
        let item = item_of(items, entry);
        // Checked as a key of a registry file first: then its root is HKLM.
        Reg::long_key(entry.key).map_err(item.unfit(entry.key, file))?;
        let below = entry.key.split_once('\\').map_or("", |(_, below)| below);
        let key = Inf::literal(below).map_err(item.unfit(entry.key, file))?;
        let name = Inf::literal(entry.name).map_err(item.unfit(entry.name, file))?;
        match &entry.data {
            Some(Data::Dword(value)) => line(&mut add, format_args!("HKLM,{key},{name},0x00010001,{value:#010x}")),
            Some(Data::Text(value)) => {
                let value = Inf::literal(value).map_err(item.unfit(value, file))?;
                line(&mut add, format_args!("HKLM,{key},{name},0x00000000,{value}"));
            }
            Some(Data::Raw(value)) => {
                return Err(item.unfit(value, file)(Unfit("a .inf file can't write values of this type")));
            }
            None => line(&mut delete, format_args!("HKLM,{key},{name}")),
        }
    }
    let mut text = format!("; {}\n[Version]\nSignature=\"$Windows NT$\"\n\n[DefaultInstall]\n", Inf::comment(about));
    for (directive, section, lines) in [("AddReg", "fullpipe.Add", &add), ("DelReg", "fullpipe.Delete", &delete)] {
        if !lines.is_empty() {
            line(&mut text, format_args!("{directive}={section}"));
        }
    }
    for (section, lines) in [("fullpipe.Add", &add), ("fullpipe.Delete", &delete)] {
        if !lines.is_empty() {
            line(&mut text, format_args!("\n[{section}]\n{}", lines.trim_end()));
        }
    }
    Ok(text)
}

/// A value that a plan asks for: all TCP values of Windows are numbers.
fn new_data(item: &Item<'_>, to: &str) -> Result<Data, ExportError> {
    dword(to).map(Data::Dword).ok_or_else(|| item.unfit(to, APPLY)(Unfit("it is no number of 32 bits")))
}

/// A number of 32 bits as plans and settings write it.
pub(super) fn dword(text: &str) -> Option<u32> {
    let text = text.trim();
    let hex = text.strip_prefix("0x").or_else(|| text.strip_prefix("dword:"));
    hex.map_or_else(|| text.parse().ok(), |digits| u32::from_str_radix(digits, 16).ok())
}

impl Data {
    /// A value as settings tell it (see `recipe`): a number is a `REG_DWORD`.
    fn from_text(text: &str) -> Result<Self, Unfit> {
        if let Some(value) = dword(text) {
            return Ok(Self::Dword(value));
        }
        // A text in quotation marks is one whatever it looks like.
        if let Some((text, "")) = text.strip_prefix('"').and_then(unquoted) {
            return Ok(Self::Text(text));
        }
        if !text.starts_with("hex") || !text.contains(':') {
            return Ok(Self::Text(text.to_owned()));
        }
        let fits = |c: char| c.is_ascii_hexdigit() || "hx(),: ".contains(c);
        if text.chars().all(fits) { Ok(Self::Raw(text.replace(' ', ""))) } else { Err(Unfit("it is no list of bytes")) }
    }

    fn reg(&self) -> Result<String, Unfit> {
        match self {
            Self::Dword(value) => Ok(format!("dword:{value:08x}")),
            Self::Text(text) => Reg::literal(text),
            Self::Raw(text) => Ok(text.clone()),
        }
    }
}

/// Writing to a text can't fail.
pub(super) fn line(text: &mut String, words: std::fmt::Arguments<'_>) {
    let written = writeln!(text, "{words}");
    debug_assert!(written.is_ok());
}
