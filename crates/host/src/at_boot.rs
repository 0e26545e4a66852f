//! What other boot-time files make of a run's values at the next boot: files come and go after a run, so it is looked at each
//! time somebody asks.

use std::path::Path;

use fullpipe_knobs::{Address, Change};

use crate::{Entry, EntryKind, Host, HostError, Lasting, Overridden, RunRecord, persist};

/// What keeps the boot-time files of a run from deciding what its settings are at the next boot.
pub fn overridden_at_boot<H: Host + ?Sized>(host: &mut H, run: &RunRecord) -> Result<Vec<Overridden>, HostError> {
    let outstanding = || run.entries.iter().filter(|entry| entry.persisted && entry.state.is_outstanding());
    let change = |entry: &Entry| {
        let address: Address = entry.place.parse().ok()?;
        let (from, to) = (Entry::text(entry.before.as_ref()), Entry::text(entry.intended.as_ref()));
        Some(Change::unexplained(String::new(), address, from, to))
    };
    let changes: Vec<Change> = outstanding()
        .filter(|entry| entry.kind == EntryKind::Setting)
        .filter_map(change)
        .filter(|change| host.lasting(change) == Lasting::InFile)
        .collect();
    if changes.is_empty() {
        return Ok(Vec::new());
    }
    let file = outstanding().find(|entry| entry.kind == EntryKind::File);
    let folder = file.and_then(|file| Path::new(&file.place).parent()).map(Path::to_owned);
    host.overridden(&folder.unwrap_or_else(persist::sysctl_dir), &changes.iter().collect::<Vec<_>>())
}
