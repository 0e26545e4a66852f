//! `fullpipe settings`.

use std::path::PathBuf;

use fullpipe_host::{Host, SystemHost};
use fullpipe_knobs::{
    Platform,
    reading::{self, Merged, Reading, merge},
};
use fullpipe_report::{SettingsList, json, text};

use super::{Ended, input::Input, printed};
use crate::{args::SettingsArgs, failure::Failure, output::Output};

pub(super) fn run(args: &SettingsArgs, output: Output) -> Ended {
    let (readings, merged) = if args.from.is_empty() {
        (Vec::new(), Merged { settings: SystemHost::new().settings()?, ..Merged::default() })
    } else {
        of_files(&args.from, args.platform.as_ref())?
    };
    let list = SettingsList::new(&merged, &readings, args.all);
    printed(output.result(|| json::settings("settings", &list), |look| text::settings(&list, look)))
}

/// What files tell of the machine that they are all of.
pub(super) fn of_files(files: &[PathBuf], platform: Option<&Platform>) -> Result<(Vec<Reading>, Merged), Failure> {
    let read = |path: &PathBuf| {
        let input = Input::read(path, reading::LARGEST)?;
        Ok(reading::read(&input.name, &input.bytes)?)
    };
    let readings = files.iter().map(read).collect::<Result<Vec<_>, Failure>>()?;
    let merged = merge(&readings, platform)?;
    Ok((readings, merged))
}
