//! What an undo left to whoever had changed it since: it is no longer ours to take back, and not what was there before us.
//! What is *not* here: leaving it (`undo`).

use std::{collections::BTreeSet, path::Path};

use fullpipe_knobs::{Address, persist::TAKEN_BACK};

use crate::{
    Entry, EntryKind, EntryState, Host, Identity, Journal, JournalError, RunId, RunRecord, plain_file, same_value,
    undo::differ,
};

/// Something that was left to whoever had changed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// The run that had changed it before.
    pub run: RunId,
    /// What that run had changed.
    pub entry: Entry,
    /// What is there now, `None` where nothing is; or why it can't be read.
    pub now: Result<Option<Vec<u8>>, String>,
}

impl Left {
    /// Whether it is a file that still says of itself that an undo takes it back.
    pub fn claims_an_undo(&self) -> bool {
        let Ok(Some(now)) = &self.now else { return false };
        self.entry.kind == EntryKind::File && String::from_utf8_lossy(now).contains(TAKEN_BACK)
    }
}

/// What was left, newest first, and is still not as it was before the run. Where a later run of ours is in force at the same
/// place, that run tells of it.
///
/// # Errors
///
/// Where the journal can't be read, or the host can't tell which system it is.
pub fn left<H: Host + ?Sized>(host: &mut H, journal: &Journal) -> Result<Vec<Left>, JournalError> {
    let here = host.identity().map_err(|source| JournalError::Host { source: Box::new(source) })?;
    let (mut told, mut found) = (BTreeSet::new(), Vec::new());
    for run in journal.history()? {
        for entry in run.entries.iter().rev() {
            let is_left = entry.state == EntryState::Left;
            if !(is_left || entry.state.is_outstanding()) {
                continue;
            }
            // The newest of a place tells of it.
            let is_newest = told.insert(entry.place.clone());
            if is_left && is_newest {
                let now = now(host, &here, &run, entry);
                found.extend(now.map(|now| Left { run: run.id, entry: entry.clone(), now }));
            }
        }
    }
    Ok(found)
}

/// What is there now; `None` where nothing of the run can be left there.
fn now<H: Host + ?Sized>(
    host: &mut H,
    here: &Identity,
    run: &RunRecord,
    entry: &Entry,
) -> Option<Result<Option<Vec<u8>>, String>> {
    let restarted = differ(&here.boot, &run.identity.boot);
    match entry.kind {
        EntryKind::File => {
            let now = plain_file::read(Path::new(&entry.place));
            Some(now.map_err(|error| error.to_string())).filter(|now| now.as_ref() != Ok(&entry.before))
        }
        // What did not last went with the restart; and another namespace was never changed.
        EntryKind::Setting if restarted && !entry.persisted => None,
        EntryKind::Setting if !restarted && differ(&here.namespace, &run.identity.namespace) => None,
        EntryKind::Setting => {
            let address: Address = match entry.place.parse() {
                Ok(address) => address,
                Err(error) => return Some(Err(format!("{error}"))),
            };
            let before = Entry::text(entry.before.as_ref());
            match host.read(&address) {
                Ok(now) if same_value(&address, now.as_deref(), before.as_deref()) => None,
                Ok(now) => Some(Ok(now.map(String::into_bytes))),
                Err(error) if error.object_is_gone() => None,
                Err(error) => Some(Err(error.to_string())),
            }
        }
        #[cfg(target_os = "linux")]
        EntryKind::Socket if !restarted => {
            let now = crate::linux::held::held(entry)?.into_bytes();
            Some(Ok(Some(now))).filter(|now| now.as_ref() != Ok(&entry.before))
        }
        // A program and a far end's run are never left to anybody.
        EntryKind::Socket | EntryKind::Program | EntryKind::FarRun => None,
    }
}
