//! `fullpipe plan`.

use std::num::NonZeroU32;

use fullpipe_host::{ExportFolder, Host, SystemHost};
use fullpipe_knobs::{Goal, Platform, PlatformRequest, Settings, export::export, plan_platform};
use fullpipe_report::{PlatformPlan, clean, json, text};

use super::{Ended, printed, settings};
use crate::{
    args::{GoalName, PlanArgs, Target},
    exit::Exit,
    failure::Failure,
    output::Output,
};

pub(super) fn run(args: &PlanArgs, output: Output) -> Ended {
    let (platform, known) = target(args)?;
    let request = PlatformRequest {
        platform,
        rate: args.rate,
        rtt: args.rtt,
        connections: args.connections.map(NonZeroU32::get),
        goal: match args.goal {
            GoalName::Bulk => Goal::Bulk,
            GoalName::Interactive => Goal::Interactive,
        },
        settings: known.as_ref(),
        memory_bound: args.memory,
    };
    let plan = plan_platform(&request);
    let Some(folder) = &args.write else {
        return show(&PlatformPlan { request: &request, plan: &plan, written: None }, output);
    };
    let export = export(&plan, &request.platform, request.settings)?;
    let files: Vec<_> =
        export.files.iter().map(|file| (file.name, file.contents.as_slice(), file.executable)).collect();
    ExportFolder::new(folder, args.force)?.write(&files)?;
    let shown = clean(&folder.to_string_lossy()).into_owned();
    show(&PlatformPlan { request: &request, plan: &plan, written: Some((&export, &shown)) }, output)
}

fn show(answer: &PlatformPlan<'_>, output: Output) -> Ended {
    printed(output.result(|| json::plan("plan", answer), |look| text::platform_plan(answer, look)))
}

/// The platform to plan for, and the machine's settings where they can be known.
fn target(args: &PlanArgs) -> Result<(Platform, Option<Settings>), Failure> {
    let settings = match (&args.platform, args.settings.as_slice()) {
        (Some(Target::This), [_, ..]) => {
            return Err(Failure::new(
                Exit::Usage,
                "`--platform this` reads this host, and --settings tells of another machine; give one of the two",
            ));
        }
        (Some(Target::This) | None, []) => SystemHost::new().settings()?,
        (Some(Target::Platform(platform)), []) => return Ok((platform.clone(), None)),
        (Some(Target::Platform(platform)), files) => settings::of_files(files, Some(platform))?.1.settings,
        (None, files) => settings::of_files(files, None)?.1.settings,
    };
    Ok((settings.platform.clone(), Some(settings)))
}
