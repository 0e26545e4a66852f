//! `fullpipe plan`.

use std::{num::NonZeroU32, path::Path};

use fullpipe_host::{ExportFolder, Host, SystemHost};
use fullpipe_knobs::{
    Address, Goal, Packets, Plan, PlanRequest, Platform, PlatformRequest, Settings,
    export::{export, reset_procedure},
    plan_platform,
    reading::{Format, Reading, RemarkKind},
    verify::{Taken, Verified, verify},
};
use fullpipe_report::{PlatformPlan, clean, json, text};
use fullpipe_units::{Micros, Rate, bdp};

use serde_json::Value;

use super::{Ended, forecast, printed, settings};
use crate::{
    args::{GoalName, Hop, PlanArgs, PlannedPath, ProcedureName, Target},
    exit::Exit,
    failure::Failure,
    output::Output,
};

pub(super) fn run(args: &PlanArgs, output: Output) -> Ended {
    if let [_, after] = args.verify.as_slice() {
        let (platform, known, _) = target(args)?;
        let packets = packets(args)?;
        return show_verified(&request(args, platform, known.as_ref(), &packets), after, output);
    }
    with(args, |answer| printed(output.result(|| json::plan("plan", answer), |look| text::platform_plan(answer, look))))
}

/// What `--json` prints of a plan.
pub(crate) fn document(args: &PlanArgs) -> Result<Value, Failure> {
    with(args, |answer| Ok(json::plan("plan", answer)))
}

/// Makes the plan, and writes its files where that is asked for, before it is shown.
fn with<T>(args: &PlanArgs, show: impl FnOnce(&PlatformPlan<'_>) -> Result<T, Failure>) -> Result<T, Failure> {
    let (platform, known, unread) = target(args)?;
    let packets = packets(args)?;
    let request = request(args, platform, known.as_ref(), &packets);
    let has_path = args.rate.is_some() || !args.path.is_empty();
    if args.simulate && !has_path {
        return Err(Failure::new(
            Exit::Usage,
            "--simulate predicts a plan, and there is none without a path; give --rate and --rtt",
        ));
    }
    let mut plan = if has_path { plan_platform(&request) } else { Plan::default() };
    plan.notes.extend(as_a_whole(&args.path, &request));
    plan.notes.splice(0..0, unread);
    let forecast = if args.simulate { Some(forecast::of_plan(&plan, &request)?) } else { None };
    let forecast = forecast.as_ref();
    let Some(folder) = &args.write else {
        return show(&PlatformPlan { request: &request, plan: &plan, written: None, forecast, has_path });
    };
    let export = match args.procedure {
        Some(ProcedureName::Reset) => {
            reset_procedure(Some(&plan).filter(|_| has_path), &request.platform, request.settings)?
        }
        None => export(&plan, &request.platform, request.settings)?,
    };
    let files: Vec<_> =
        export.files.iter().map(|file| (file.name, file.contents.as_slice(), file.executable)).collect();
    ExportFolder::new(folder, args.force)?.write(&files)?;
    let shown = clean(&folder.to_string_lossy()).into_owned();
    show(&PlatformPlan { request: &request, plan: &plan, written: Some((&export, &shown)), forecast, has_path })
}

fn request<'a>(
    args: &'a PlanArgs,
    platform: Platform,
    settings: Option<&'a Settings>,
    packets: &'a Packets,
) -> PlatformRequest<'a> {
    let decides = args.path.iter().max_by_key(|path| bdp(path.rate, path.rtt)).map(|path| (path.rate, path.rtt));
    // The command line has a path, or a rate and a time; a path of no length would ask for nothing.
    let (rate, rtt) = decides.or_else(|| args.rate.zip(args.rtt)).unwrap_or((Rate::from_bps(1), Micros::new(1)));
    PlatformRequest {
        platform,
        rate,
        rtt,
        connections: connections(args),
        goal: match args.goal {
            GoalName::Bulk => Goal::Bulk,
            GoalName::Interactive => Goal::Interactive,
        },
        settings,
        memory_bound: args.memory,
        packets,
        peer: args.peer.as_deref(),
        allow_override: args.allow_override,
    }
}

/// The connections that may fill their buffers at once; of several paths those of all together.
fn connections(args: &PlanArgs) -> Option<u32> {
    if args.path.is_empty() {
        return args.connections.map(NonZeroU32::get);
    }
    let of_path = |path: &PlannedPath| path.connections.map_or(PlanRequest::DEFAULT_CONNECTIONS, NonZeroU32::get);
    Some(args.path.iter().map(of_path).fold(0, u32::saturating_add))
}

/// What is to be known of a plan for several paths.
fn as_a_whole(paths: &[PlannedPath], request: &PlatformRequest<'_>) -> Option<String> {
    let connections = request.connections.unwrap_or(PlanRequest::DEFAULT_CONNECTIONS);
    (paths.len() > 1).then(|| {
        format!(
            "planned for {} paths as a whole: {} x {} has the largest bandwidth-delay product ({}) and decides the sizes; \
             {connections} connections of all of them count for the memory",
            paths.len(),
            request.rate,
            request.rtt,
            bdp(request.rate, request.rtt),
        )
    })
}

/// What the files afterwards say of a plan that is made from those before.
fn show_verified(request: &PlatformRequest<'_>, after: &Path, output: Output) -> Ended {
    let (readings, merged) = settings::of_files(&[after.to_owned()], Some(&request.platform))?;
    let mut verified = verify(request, &merged.settings);
    let of_machine = |one: &Verified| !matches!(one.knob, Address::Socket(_));
    let lost = unread(&readings);
    // What the files don't tell, they may have lost: a plan is verified where all of it is known.
    let failed = !lost.is_empty() || verified.iter().any(|one| one.taken != Taken::Yes && of_machine(one));
    let why = lost.first().cloned().or_else(|| no_export(&readings)).map_or_else(String::new, |why| format!("; {why}"));
    for one in verified.iter_mut().filter(|one| one.taken == Taken::Unknown && of_machine(one)) {
        one.message = format!("not known: {}{why}; save them again and compare again", one.message);
    }
    printed(output.result(|| json::verified("plan", &verified, &lost), |look| text::verified(&verified, &lost, look)))?;
    Ok(if failed { Exit::NotAsExpected } else { Exit::Ok })
}

/// Why a registry file does not tell which values its keys lack.
fn no_export(readings: &[Reading]) -> Option<String> {
    let partial = readings.iter().find(|reading| reading.format == Format::Registry && reading.keys.is_empty())?;
    Some(format!(
        "{} is no whole export, which ends with an empty line and has no comments: what it lacks may have been cut off",
        clean(&partial.file)
    ))
}

/// What the command line says of packets.
fn packets(args: &PlanArgs) -> Result<Packets, Failure> {
    let sizes: Vec<_> = args
        .hop_mtu
        .iter()
        .filter_map(|hop| if let Hop::Sizes(sizes) = hop { Some(sizes.clone()) } else { None })
        .collect();
    let direct = sizes.len() < args.hop_mtu.len();
    if direct && !sizes.is_empty() {
        return Err(Failure::new(
            Exit::Usage,
            "`--hop-mtu direct` says that there is no hop, and another --hop-mtu names one; give one of the two",
        ));
    }
    Ok(Packets {
        device: args.device.clone(),
        here: args.mtu.clone(),
        peer: args.peer_mtu.clone(),
        hops: (!args.hop_mtu.is_empty()).then_some(sizes),
        ipsec: args.ipsec.map(Into::into),
        overhead: args.overhead,
    })
}

/// The platform to plan for, the machine's settings where they can be known, and a sentence for each line of its files that
/// could not be read.
fn target(args: &PlanArgs) -> Result<(Platform, Option<Settings>, Vec<String>), Failure> {
    let files = args.verify.get(..1).unwrap_or(&args.settings);
    let (readings, settings) = match (&args.platform, files) {
        (Some(Target::This), [_, ..]) => {
            return Err(Failure::new(
                Exit::Usage,
                "`--platform this` reads this host, and --settings describes another machine; give one of the two",
            ));
        }
        (Some(Target::This) | None, []) => (Vec::new(), SystemHost::new().settings()?),
        (Some(Target::Platform(platform)), []) => return Ok((platform.clone(), None, Vec::new())),
        (target, files) => {
            let platform = if let Some(Target::Platform(platform)) = target { Some(platform) } else { None };
            let (readings, merged) = settings::of_files(files, platform)?;
            (readings, merged.settings)
        }
    };
    let mut notes: Vec<String> =
        unread(&readings).into_iter().map(|words| format!("{words}; this plan was made without it")).collect();
    let inactive = remarks(&readings, &[RemarkKind::Inactive]);
    notes.extend(inactive.into_iter().map(|(place, words)| format!("{place}: {words}")));
    Ok((settings.platform.clone(), Some(settings), notes))
}

/// A sentence for each line of files that could not be read.
fn unread(readings: &[Reading]) -> Vec<String> {
    let lost = remarks(readings, &[RemarkKind::Unread, RemarkKind::Misspelt]);
    lost.into_iter().map(|(place, words)| format!("{place}, was not read: {words}")).collect()
}

/// The remarks of some kinds: the file and line of each, and its words.
fn remarks<'a>(readings: &'a [Reading], kinds: &[RemarkKind]) -> Vec<(String, &'a str)> {
    let all = readings.iter().flat_map(|reading| reading.remarks.iter().map(move |remark| (&reading.file, remark)));
    let wanted = all.filter(|(_, remark)| kinds.contains(&remark.kind));
    let named = |file: &str, line: u32| format!("{}, line {line}", clean(file));
    wanted.map(|(file, remark)| (named(file, remark.place.line), remark.message.as_str())).collect()
}
