//! `fullpipe lab run`.

use fullpipe_tune::{LabRunOptions, lab_run};

use super::super::{Ended, outcome};
use crate::{args::LabRunArgs, exit::Exit, failure::Failure, interrupt, output::Output, progress::Progress};

pub(crate) fn run(args: &LabRunArgs, output: Output) -> Ended {
    args.page.check()?;
    let scenario = super::scenario(&args.scenario)?;
    if scenario.device.is_some() {
        let message = format!(
            "in {name} one end is a small device, for which no kernel can stand; run `fullpipe stack table {name}`",
            name = scenario.name
        );
        return Err(Failure::new(Exit::ScenarioInvalid, &message));
    }
    super::enter()?;
    let cancel = interrupt::cancel_flag()?;
    let mut progress = Progress::new("lab run", output);
    let options = LabRunOptions {
        measure_only: args.check,
        congestion_control: args.congestion.clone(),
        ..LabRunOptions::default()
    };
    let result = lab_run(&scenario, &options, &cancel, &mut progress);
    progress.finish();
    outcome::show_expected("lab run", &result?, output, &args.page)
}
