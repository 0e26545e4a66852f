//! `fullpipe settings`.

use std::{path::PathBuf, time::Duration};

#[cfg(windows)]
use fullpipe_host::windows::connections::{SystemStatistics, Watch, observe};
use fullpipe_host::{Host, SystemHost};
use fullpipe_knobs::{
    Platform, Settings,
    reading::{self, Dead, Merged, Reading, Remark, RemarkKind, merge},
};
use fullpipe_report::{Connections, SettingsList, json, text};

use super::{Ended, input::Input, printed};
use crate::{args::SettingsArgs, exit::Exit, failure::Failure, output::Output};

pub(super) fn run(args: &SettingsArgs, output: Output) -> Ended {
    let (readings, merged) = if args.from.is_empty() {
        (Vec::new(), Merged { settings: SystemHost::new().settings()?, ..Merged::default() })
    } else {
        of_files(&args.from, args.platform.as_ref())?
    };
    let connections = args.connections.then(|| connections(&merged.settings, args.watch)).transpose()?;
    let mut list =
        SettingsList { connections: connections.as_ref(), ..SettingsList::new(&merged, &readings, args.all) };
    if let Some(part) = &args.name {
        list.only(part);
        if list.rows.is_empty() {
            let platform = &list.merged.settings.platform;
            let words = format!("no setting shown for {platform} has {part:?} in its name; --all includes absent ones");
            return Err(Failure::new(Exit::Usage, &words));
        }
    }
    if args.changed {
        list.only_changed();
    }
    printed(output.result(|| json::settings("settings", &list), |look| text::settings(&list, look)))
}

/// This host's connections.
#[cfg(windows)]
fn connections(settings: &Settings, watch: Option<Duration>) -> Result<Connections, Failure> {
    let level = SystemHost::new().tuning_level(settings);
    // What was switched on is switched off again, also where Ctrl-C ends the watch.
    let cancel = crate::interrupt::cancel_flag()?;
    let watch = watch.map(|time| Watch { time, cancel: &cancel });
    let observed = observe(&mut SystemStatistics::new()?, level.as_deref(), watch)?;
    Ok(Connections { level, observed })
}

#[cfg(not(windows))]
fn connections(_: &Settings, _: Option<Duration>) -> Result<Connections, Failure> {
    let words = "--connections reads Windows' own statistics of connections, and this is no Windows; `fullpipe check` \
                 tells of pinned buffers of the connections that it makes, and `ss -tmi` shows those of others on Linux";
    Err(Failure::new(Exit::Unsupported, words))
}

/// What files tell of the machine that they are all of.
pub(super) fn of_files(files: &[PathBuf], platform: Option<&Platform>) -> Result<(Vec<Reading>, Merged), Failure> {
    let read = |path: &PathBuf| {
        let input = Input::read(path, reading::LARGEST)?;
        Ok(reading::read(&input.name, &input.bytes)?)
    };
    let mut readings = files.iter().map(read).collect::<Result<Vec<_>, Failure>>()?;
    let merged = merge(&readings, platform)?;
    for Dead { file, place, message, .. } in &merged.dead {
        if let Some(reading) = readings.iter_mut().find(|reading| reading.file == *file) {
            reading.remarks.push(Remark { kind: RemarkKind::Inactive, place: *place, message: message.clone() });
        }
    }
    Ok((readings, merged))
}
