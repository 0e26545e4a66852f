//! `fullpipe apply`.

use std::collections::BTreeSet;

use fullpipe_host::{ApplyOptions, Host, SystemHost, apply, persist};
use fullpipe_knobs::{Plan, reading::LARGEST};
use fullpipe_report::{AppliedPlan, clean, json, text};

use super::{Ended, input::Input, journal, printed};
use crate::{args::ApplyArgs, confirm::confirm, exit::Exit, failure::Failure, output::Output};

pub(super) fn run(args: &ApplyArgs, output: Output) -> Ended {
    let plan = chosen(args)?;
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
    if !plan.changes.is_empty() && output.is_json() && !how.yes {
        let failure = Failure::nobody_to_ask();
        printed(output.result(|| json::not_confirmed(name, plan, &failure.problem()), |_| String::new()))?;
        return Ok(failure.exit);
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
    let json::ReadPlan { plan, unread } = std::str::from_utf8(&input.bytes)
        .map_err(|error| format!("it is no UTF-8 text: {error}"))
        .and_then(|text| json::read_plan(text).map_err(|error| error.problem))
        .map_err(|problem| {
            let hint = "give what `fullpipe plan`, `check` or `tune` printed with --json";
            invalid(&input.name, &format!("{}; {hint}", clean(&problem)))
        })?;
    let hosts: BTreeSet<&str> = plan.changes.iter().map(|change| change.host.as_str()).collect();
    let here = [fullpipe_measure::host_name(), SystemHost::new().settings()?.platform.to_string()];
    let wanted = match &args.host {
        Some(host) => hosts.get(host.as_str()),
        None => here.iter().find_map(|name| hosts.get(name.as_str())),
    };
    let Some(wanted) = wanted else {
        if hosts.is_empty() {
            return Ok(plan);
        }
        let asked = args.host.clone().unwrap_or_else(|| here.join(" or "));
        let names = hosts.iter().copied().collect::<Vec<_>>().join(", ");
        let words =
            format!("the plan changes {names} and not {asked}; if one of them is this host, name it with --host");
        return Err(invalid(&input.name, &words));
    };
    let changes = plan.changes.iter().filter(|change| change.host == *wanted).cloned().collect();
    let mut plan = Plan { changes, notes: plan.notes };
    // What nobody looked at is looked at now: it is shown, and what is journalled is compared with it.
    let mut host = SystemHost::new();
    plan.find_before(&unread, |knob| host.read(knob))?;
    Ok(plan)
}

fn invalid(file: &str, problem: &str) -> Failure {
    Failure::new(Exit::InputInvalid, &format!("reading {file}: {problem}"))
}
