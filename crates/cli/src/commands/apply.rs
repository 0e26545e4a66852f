//! `fullpipe apply`.

use std::{collections::BTreeSet, time::Duration};

use fullpipe_host::{
    ApplyOptions, BootFile, Host, Lasting, Overridden, RunState, SystemHost, apply,
    guardian::{Bond, Guardian},
    no_survivor, persist, same_value,
};
use fullpipe_knobs::{Address, Change, Plan, reading::LARGEST};
use fullpipe_report::{AppliedPlan, clean, json, text};

use super::{Ended, guard, input::Input, journal, printed};
use crate::{args::ApplyArgs, confirm::confirm, exit::Exit, failure::Failure, output::Output};

pub(super) fn run(args: &ApplyArgs, output: Output) -> Ended {
    let mut plan = chosen(args)?;
    // Also of what is so already: that it won't stay so is as true.
    let (overridden, no_survivors) = if args.persist { not_lasting(&plan)? } else { Default::default() };
    leave_out_reached(&mut plan, args.persist)?;
    let is_lasting = no_survivors.is_empty() && !overridden.iter().any(Overridden::is_by_another);
    plan.notes.extend(overridden.iter().map(|overridden| clean(&overridden.to_string()).into_owned()));
    let is_left_out = |knob: &&Address| !plan.changes.iter().any(|change| change.knob == **knob);
    // What is applied has its own line.
    let left_out: Vec<String> = no_survivors.iter().filter(is_left_out).map(no_survivor).collect();
    plan.notes.extend(left_out);
    let command = format!("apply {}", clean(&args.plan.to_string_lossy()));
    let how = Changing { yes: args.yes, persist: args.persist, force: args.force, confirm_within: args.confirm_within };
    if args.dry_run {
        let files = boot_files(&plan, args.persist)?;
        return printed(
            output.result(|| json::dry_run("apply", &plan, &files), |look| text::dry_run(&plan, &files, look)),
        );
    }
    let ended = change("apply", &command, &plan, &how, output)?;
    Ok(if ended == Exit::Ok && !is_lasting && args.confirm_within.is_none() { Exit::NotLasting } else { ended })
}

/// Leaves out what is as planned already, so that a second time changes nothing, with a note. What shall also be in a
/// boot-time file is left out where it is there, too.
fn leave_out_reached(plan: &mut Plan, persist: bool) -> Result<(), Failure> {
    let Some(passing) = passing()? else { return Ok(()) };
    let mut host = SystemHost::new();
    let mut reached = Vec::new();
    for change in &mut plan.changes {
        // What is so for now is not reached.
        if passing.contains(&change.knob.to_string()) {
            continue;
        }
        // What can't be read fails when it is to be changed, with its name.
        let Ok(now) = host.read(&change.knob) else { continue };
        if same_value(&change.knob, now.as_deref(), change.to.as_deref()) {
            change.from = now;
            reached.push(change.knob.clone());
        }
    }
    if reached.is_empty() {
        return Ok(());
    }
    let is_written = boot_files(plan, persist)?.iter().all(|file| file.before.as_ref() == Some(&file.content));
    if !is_written {
        return Ok(());
    }
    plan.changes.retain(|change| !reached.contains(&change.knob));
    let names = reached.iter().map(Address::to_string).collect::<Vec<_>>().join(", ");
    plan.notes.push(format!("as planned already, and left as it is: {names}"));
    Ok(())
}

/// The places of what is in force but may be taken back: on trial, or left by an interrupted run. `None` where the journal
/// can't be trusted.
fn passing() -> Result<Option<BTreeSet<String>>, Failure> {
    let Some(journal) = journal::look()? else { return Ok(Some(BTreeSet::new())) };
    if !journal.damage().is_empty() {
        return Ok(None);
    }
    let runs = journal.outstanding()?.into_iter().filter(|run| run.state != RunState::Kept);
    Ok(Some(runs.flat_map(|run| run.entries).map(|entry| entry.place).collect()))
}

/// What would not last: because another boot-time file sets it again after ours, and because none can hold it.
fn not_lasting(plan: &Plan) -> Result<(Vec<Overridden>, Vec<Address>), Failure> {
    let mut host = SystemHost::new();
    let of_kind = |kind: Lasting| plan.changes.iter().filter(move |change| SystemHost::new().lasting(change) == kind);
    let no_survivors = of_kind(Lasting::Not).map(|change| change.knob.clone()).collect();
    let in_file: Vec<&Change> = of_kind(Lasting::InFile).collect();
    let overridden = if in_file.is_empty() { Vec::new() } else { host.overridden(&persist::sysctl_dir(), &in_file)? };
    Ok((overridden, no_survivors))
}

/// The boot-time files as they would be.
fn boot_files(plan: &Plan, persist: bool) -> Result<Vec<BootFile>, Failure> {
    if !persist {
        return Ok(Vec::new());
    }
    let mut host = SystemHost::new();
    let changes: Vec<&Change> = plan.changes.iter().filter(|change| host.lasting(change) == Lasting::InFile).collect();
    Ok(host.boot_files(&persist::sysctl_dir(), &changes)?)
}

/// This host, where the plan has it under another name.
const HERE: &str = "here";

/// How changes are made.
pub(super) struct Changing {
    pub(super) yes: bool,
    pub(super) persist: bool,
    pub(super) force: bool,
    /// Taken back after this time unless somebody confirms.
    pub(super) confirm_within: Option<Duration>,
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
        fullpipe_host::Run::default()
    } else {
        let state_dir = fullpipe_host::journal::state_dir()?;
        let mut journal = journal::open()?;
        // It is there before anything is changed, and stays when this process ends.
        let start = |_| {
            Guardian::start(&guard::program()?, &state_dir, Bond::Deadline)
                .map_err(|error| Failure::system("starting the guardian of what is on trial", &error))
        };
        let guardian = how.confirm_within.map(start).transpose()?;
        let options = ApplyOptions {
            command: command.to_owned(),
            host: None,
            accept_stale: how.force,
            persist: how.persist.then(persist::sysctl_dir),
            trial: guardian.as_ref().map(|guardian| guardian.trial(how.confirm_within)),
        };
        let run = apply(&mut SystemHost::new(), &mut journal, &plan.changes, &options)?;
        // Nothing decides later whether it stays, as a proof does: it was asked for.
        if guardian.is_none() {
            run.id.map(|id| journal.keep(id)).transpose()?;
        }
        run
    };
    let done = AppliedPlan { plan, run: &run, confirm_within: how.confirm_within };
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
    let only = || hosts.first().filter(|_| hosts.len() == 1);
    let wanted = match args.host.as_deref() {
        Some(host) => hosts.get(host).or_else(|| only().filter(|_| host == HERE)),
        None => here.iter().find_map(|name| hosts.get(name.as_str())),
    };
    let Some(wanted) = wanted else {
        if hosts.is_empty() {
            return Ok(plan);
        }
        let asked = clean(args.host.as_deref().unwrap_or(&here.join(" or "))).into_owned();
        let names = hosts.iter().copied().collect::<Vec<_>>().join(", ");
        let here = only().map(|_| HERE);
        let options = hosts.iter().copied().chain(here).map(|host| format!("--host {host}"));
        let options = options.collect::<Vec<_>>().join(" or ");
        let words = format!(
            "the plan changes {names} and not {asked}; give {options} if that is this host under another name, or run \
             `fullpipe apply` there"
        );
        return Err(invalid(&input.name, &words));
    };
    let (left, changes): (Vec<_>, Vec<_>) =
        plan.changes.iter().filter(|change| change.host == *wanted).cloned().partition(|c| c.left_to().is_some());
    let mut notes = plan.notes;
    let words = |change: &Change| Some(format!("{} is left to {}", change.knob, change.left_to()?));
    notes.extend(left.iter().filter_map(words));
    let mut plan = Plan { changes, notes };
    // What nobody looked at is looked at now: it is shown, and what is journalled is compared with it.
    let mut host = SystemHost::new();
    plan.find_before(&unread, |knob| host.read(knob))?;
    Ok(plan)
}

fn invalid(file: &str, problem: &str) -> Failure {
    Failure::new(Exit::InputInvalid, &format!("reading {file}: {problem}"))
}
