//! `fullpipe apply`.

use fullpipe_host::{ApplyOptions, Host, SystemHost, apply, persist};
use fullpipe_knobs::{Plan, reading::LARGEST};
use fullpipe_report::{AppliedPlan, clean, json, text};

use super::{Ended, input::Input, journal, printed};
use crate::{
    args::ApplyArgs,
    confirm::{self, confirm},
    exit::Exit,
    failure::Failure,
    output::Output,
};

pub(super) fn run(args: &ApplyArgs, output: Output) -> Ended {
    let plan = chosen(args)?;
    confirm::possible(output, args.yes)?;
    let command = format!("apply {}", clean(&args.plan.to_string_lossy()));
    change("apply", &command, &plan, &Changing { yes: args.yes, persist: args.persist, force: args.force }, output)
}

/// How changes are made.
pub(super) struct Changing {
    pub(super) yes: bool,
    pub(super) persist: bool,
    pub(super) force: bool,
}

/// Shows the changes, asks, applies them under the journal, and shows what became of them.
pub(super) fn change(name: &str, command: &str, plan: &Plan, how: &Changing, output: Output) -> Ended {
    if !output.is_json() && !how.yes {
        output.remark(&text::plan(plan, output.look()));
    }
    if !plan.changes.is_empty() {
        confirm(output, how.yes, "Make these changes?")?;
    }
    let run = if plan.changes.is_empty() {
        fullpipe_host::Run { id: None, applied: Vec::new(), boot_files: Vec::new(), not_persisted: Vec::new() }
    } else {
        let mut journal = journal::open()?;
        let options = ApplyOptions {
            command: command.to_owned(),
            host: None,
            accept_stale: how.force,
            persist: how.persist.then(persist::sysctl_dir),
        };
        let run = apply(&mut SystemHost::new(), &mut journal, &plan.changes, &options)?;
        // Nothing decides later whether it stays, as a proof does: it was asked for.
        run.id.map(|id| journal.keep(id)).transpose()?;
        run
    };
    let done = AppliedPlan { plan, run: &run };
    printed(output.result(|| json::applied(name, &done), |look| text::applied(&done, look)))
}

/// The changes of the plan that are for this host.
fn chosen(args: &ApplyArgs) -> Result<Plan, Failure> {
    let input = Input::read(&args.plan, LARGEST)?;
    let invalid = |words: String| Failure::new(Exit::InputInvalid, &format!("reading {}: {words}", input.name));
    let file = String::from_utf8(input.bytes.clone())
        .map_err(|_| "it is no UTF-8 text".to_owned())
        .and_then(|text| json::read_plan(&text).map_err(|error| error.problem));
    let file = file.map_err(|problem| {
        invalid(format!("{}; give what `fullpipe plan`, `check` or `tune` printed with --json", clean(&problem)))
    })?;
    let mut hosts: Vec<&str> = file.plan.changes.iter().map(|change| change.host.as_str()).collect();
    hosts.sort_unstable();
    hosts.dedup();
    let here = SystemHost::new().settings()?.platform.to_string();
    let named = this_host();
    let wanted = match &args.host {
        Some(host) => host.as_str(),
        None => hosts.iter().copied().find(|host| *host == named || *host == here).unwrap_or_default(),
    };
    if !hosts.is_empty() && !hosts.contains(&wanted) {
        let names = clean(&hosts.join(", ")).into_owned();
        let asked = args.host.as_deref().map_or_else(|| format!("{named} ({here})"), |host| clean(host).into_owned());
        return Err(invalid(format!(
            "the plan changes {names} and not {asked}; if one of them is this host, name it with --host"
        )));
    }
    let changes = file.plan.changes.iter().filter(|change| change.host == wanted).cloned().collect();
    Ok(Plan { changes, notes: file.plan.notes })
}

/// The name of this host, as the plans of `check` and `tune` have it.
fn this_host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
