//! `fullpipe status`.

use fullpipe_host::{Entry, EntryKind, Host, Journal, SystemHost, left, overridden_at_boot, same_value};
use fullpipe_knobs::Address;
use fullpipe_report::{Reading, Standing, json, text};

use super::{Ended, journal, printed};
use crate::output::Output;

pub(super) fn run(output: Output) -> Ended {
    let journal = journal::look()?;
    let runs = journal.as_ref().map_or_else(|| Ok(Vec::new()), Journal::outstanding)?;
    let mut host = SystemHost::new();
    let mut standing = Vec::new();
    for run in runs {
        let beside = Standing::new(run, |entry| reading(&mut host, entry));
        standing.push(beside_boot_files(&mut host, beside));
    }
    let left = journal.as_ref().map_or_else(|| Ok(Vec::new()), |journal| left(&mut host, journal))?;
    printed(output.result(
        || json::status("status", &standing, &left, fullpipe_host::journal::roots_state_dir()),
        |look| text::status(&standing, &left, journal::is_all(), look),
    ))?;
    Ok(journal::exit_of_look("status", journal.as_ref(), output))
}

/// A run with what other boot-time files make of it; as it is where they can't be read.
pub(super) fn beside_boot_files(host: &mut SystemHost, standing: Standing) -> Standing {
    let overridden = overridden_at_boot(host, &standing.run).unwrap_or_default();
    standing.with_overridden(overridden)
}

/// What the host reads where `entry` was written.
pub(super) fn reading(host: &mut SystemHost, entry: &Entry) -> Reading {
    if entry.kind == EntryKind::FarRun {
        return Reading::NotLooked;
    }
    #[cfg(target_os = "linux")]
    if matches!(entry.kind, EntryKind::Program | EntryKind::Socket) {
        let ours = entry.intended.as_deref().map(String::from_utf8_lossy);
        return match fullpipe_host::linux::held::held(entry) {
            Some(now) if ours.is_some_and(|ours| ours == now) => Reading::AsSet,
            now => Reading::Other(now),
        };
    }
    if entry.kind == EntryKind::File {
        return match std::fs::read(&entry.place) {
            Ok(now) if Some(&now) == entry.intended.as_ref() => Reading::AsSet,
            Ok(now) => Reading::Other(Some(format!("otherwise (file of {} B)", now.len()))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Reading::Other(None),
            Err(error) => Reading::Unreadable(error.to_string()),
        };
    }
    let address: Address = match entry.place.parse() {
        Ok(address) => address,
        Err(error) => return Reading::Unreadable(format!("{error}")),
    };
    let ours = entry.read_back.as_ref().or(entry.intended.as_ref()).map(|bytes| String::from_utf8_lossy(bytes));
    match host.read(&address) {
        Ok(now) if same_value(&address, now.as_deref(), ours.as_deref()) => Reading::AsSet,
        Ok(now) => Reading::Other(now),
        Err(error) => Reading::Unreadable(error.to_string()),
    }
}
