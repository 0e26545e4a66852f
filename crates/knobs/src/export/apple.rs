//! macOS: scripts that set sysctls and undo it. Nothing here outlasts a restart.

use super::{
    Draft, ExportError,
    unix::{self, Calls, System},
};
use crate::Address;

pub(super) fn write(draft: &mut Draft<'_>) -> Result<(), ExportError> {
    let items = draft.items.clone();
    let mut calls = Calls::default();
    for item in &items {
        match item.knob() {
            Address::Sysctl(_) => calls.sysctl(item)?,
            Address::Link { property, .. } if property == "mtu" => calls.mtu(item)?,
            _ => draft.leave_out(item.knob(), "no file form is known for it here; set it by hand"),
        }
    }
    if calls.set.is_empty() {
        return Ok(());
    }
    let functions = include_str!("templates/bsd.sh");
    unix::scripts(draft, &calls, &System { functions, ..System::default() });
    draft.step("macOS forgets these values at a restart: run apply.sh again. No file that every version reads at boot is known.");
    Ok(())
}
