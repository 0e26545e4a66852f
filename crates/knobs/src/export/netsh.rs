//! Windows from Vista on: a batch file with netsh and its undo, for what netsh can do on that version.

use super::{
    Before, Draft, Encoding, ExportError, Item,
    quote::{Batch, Language, Unfit, bare},
    registry::line,
};
use crate::Address;

const APPLY: &str = "fullpipe-netsh.cmd";
const UNDO: &str = "fullpipe-netsh-undo.cmd";

const HEAD: &str = include_str!("templates/netsh_head.cmd");
const UNDO_GLOBAL: &str = include_str!("templates/netsh_undo_global.cmd");

/// Writes the batch files. `elsewhere` are the changes that another file makes: what netsh can't do of them is no loss.
pub(super) fn write(draft: &mut Draft<'_>, elsewhere: &[Address]) -> Result<(), ExportError> {
    let items = draft.items.clone();
    let (mut apply, mut undo, mut from_dump) = (Vec::new(), Vec::new(), false);
    for item in &items {
        match commands(item) {
            Ok(Some(commands)) => {
                apply.push((item, commands.apply));
                match commands.undo {
                    Some(command) => undo.push(command),
                    None => from_dump = true,
                }
            }
            Ok(None) if elsewhere.contains(item.knob()) => {}
            Ok(None) => draft.leave_out(item.knob(), "neither netsh nor a cmdlet of this version can set it and take it back without knowing what was there; set it by hand"),
            Err(_) if elsewhere.contains(item.knob()) => {}
            Err(error) => return Err(error),
        }
    }
    if apply.is_empty() {
        return Ok(());
    }
    let mut text = HEAD.to_owned();
    text.push_str(include_str!("templates/netsh_save.cmd"));
    for (item, command) in &apply {
        line(&mut text, format_args!("rem {}", Batch::comment(&item.change.reason)));
        line(&mut text, format_args!("{command}\nif errorlevel 1 goto failed"));
    }
    text.push_str(include_str!("templates/netsh_tail.cmd"));
    draft.windows_file(
        APPLY,
        "sets with netsh what netsh can set, for machines where PowerShell scripts are blocked",
        &text,
        Encoding::Plain,
    );
    undo.reverse();
    let mut text = HEAD.to_owned();
    if from_dump {
        text.push_str(UNDO_GLOBAL);
    }
    for command in &undo {
        line(&mut text, format_args!("{command}\nif errorlevel 1 goto failed"));
    }
    text.push_str(include_str!("templates/netsh_undo_tail.cmd"));
    let what = if from_dump {
        "undoes that, from what the first script saved in fullpipe-netsh-before.txt"
    } else {
        "undoes that: puts the earlier values back"
    };
    draft.windows_file(UNDO, what, &text, Encoding::Plain);
    if elsewhere.is_empty() {
        draft.step(
            "In a command prompt of an administrator: fullpipe-netsh.cmd. It saves what is there before it writes.",
        );
        draft.step("To undo: fullpipe-netsh-undo.cmd.");
    } else {
        draft.step("Where PowerShell scripts are blocked, use fullpipe-netsh.cmd and fullpipe-netsh-undo.cmd instead. Don't use both.");
    }
    Ok(())
}

/// The commands of one change; no undo where the state before is not known and is taken from netsh's own dump.
struct Commands {
    apply: String,
    undo: Option<String>,
}

/// `Ok(None)` where netsh can't make the change, or not with a way back.
fn commands(item: &Item<'_>) -> Result<Option<Commands>, ExportError> {
    let (known, unknown) = match &item.before {
        Before::Value(value) => (Some(value.as_str()), false),
        Before::Absent => (None, false),
        Before::Unknown => (None, true),
    };
    let Some(to) = item.to() else { return Ok(None) };
    match item.knob() {
        Address::Netsh { context, parameter } => {
            let Some(verb) = verb(context) else { return Ok(None) };
            // Only `set global` is in what `netsh interface tcp dump` prints on every version.
            let dumped = unknown && context == "tcp global";
            let Some(undo) = known.map(Some).or_else(|| dumped.then_some(None)) else { return Ok(None) };
            let parameter = bare(parameter).map_err(item.unfit(parameter, APPLY))?;
            let set = |value: &str| -> Result<String, ExportError> {
                let value = bare(value).map_err(item.unfit(value, APPLY))?;
                Ok(if context == "winsock" {
                    format!("netsh winsock set {parameter} {value}")
                } else {
                    format!("{verb} {parameter}={value}")
                })
            };
            Ok(Some(Commands { apply: set(to)?, undo: undo.map(set).transpose()? }))
        }
        Address::Link { device, property } if property == "mtu" => {
            let Some(before) = known else { return Ok(None) };
            let name = Batch::literal(device).map_err(item.unfit(device, APPLY))?;
            let set = |value: &str| match value.trim().parse::<u32>() {
                Ok(bytes) => Ok(format!("netsh interface ipv4 set subinterface {name} mtu={bytes} store=persistent")),
                Err(_) => Err(item.unfit(value, APPLY)(Unfit("an MTU is a number of bytes"))),
            };
            Ok(Some(Commands { apply: set(to)?, undo: Some(set(before)?) }))
        }
        _ => Ok(None),
    }
}

fn verb(context: &str) -> Option<&'static str> {
    match context {
        "tcp global" => Some("netsh interface tcp set global"),
        "tcp heuristics" => Some("netsh interface tcp set heuristics"),
        "winsock" => Some("netsh winsock set"),
        _ => None,
    }
}
