//! `fullpipe lab list`.

use fullpipe_path::Scenario;
use fullpipe_report::{json, text};

use super::super::{Ended, printed};
use crate::output::Output;

pub(crate) fn run(output: Output) -> Ended {
    let scenarios = Scenario::names().iter().map(|name| Scenario::named(name)).collect::<Result<Vec<_>, _>>()?;
    printed(output.result(|| json::scenarios("lab list", &scenarios), |look| text::scenarios(&scenarios, look)))
}
