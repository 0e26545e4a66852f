//! `fullpipe reset`.

use fullpipe_host::{RunId, SystemHost, reset};

use super::{
    Ended,
    apply::{Changing, change},
    undo,
};
use crate::{
    args::{ResetArgs, ResetTo},
    output::Output,
};

pub(super) fn run(args: &ResetArgs, output: Output) -> Ended {
    if let Some(number) = args.to_journal {
        return undo::back_to(RunId(i64::try_from(number).unwrap_or(i64::MAX)), args.yes, output);
    }
    let ResetTo::Defaults = args.to;
    let plan = reset::of_system(&mut SystemHost::new())?;
    change(
        "reset",
        "reset --to defaults",
        &plan,
        &Changing { yes: args.yes, persist: false, force: false, confirm_within: None },
        output,
    )
}
