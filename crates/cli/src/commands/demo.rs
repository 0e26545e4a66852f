//! `fullpipe demo`.

use fullpipe_tune::demo;

use super::{Ended, lab, outcome};
use crate::{args::DemoArgs, interrupt, output::Output, progress::Progress};

pub(super) fn run(args: &DemoArgs, output: Output) -> Ended {
    args.page.check()?;
    lab::enter()?;
    let cancel = interrupt::cancel_flag()?;
    let mut progress = Progress::new("demo", output);
    let result = demo(&cancel, &mut progress);
    progress.finish();
    outcome::show_expected("demo", &result?, output, &args.page)
}
