//! `fullpipe confirm`.

use fullpipe_host::{EntryKind, Journal, JournalError, RunId, SystemHost, confirm};
use fullpipe_report::{Reading, json, text};

use super::{Ended, journal, printed, status::reading};
use crate::{args::ConfirmArgs, exit::Exit, failure::Failure, output::Output};

pub(super) fn run(args: &ConfirmArgs, output: Output) -> Ended {
    // Nothing was ever changed: no folder is made to say so.
    if journal::look()?.is_none() {
        return Err(JournalError::NoTrial.into());
    }
    let mut journal = journal::open()?;
    let run = chosen(args, &journal)?;
    let kept = confirm(&mut SystemHost::new(), &mut journal, run).map_err(Failure::of_confirmation)?;
    let changed = changed(&journal, run, !kept.boot_files.is_empty())?;
    let document = || json::confirmed("confirm", &kept, &changed);
    let ended = printed(output.result(document, |look| text::confirmed(&kept, &changed, look)))?;
    Ok(if ended == Exit::Ok && !kept.until_reboot().is_empty() { Exit::NotLasting } else { ended })
}

/// What somebody else set since the run did: kept as theirs, and said, because it is not what was confirmed.
fn changed(journal: &Journal, run: RunId, is_in_file: bool) -> Result<Vec<String>, Failure> {
    let mut host = SystemHost::new();
    let mut changed = Vec::new();
    let record = journal.run(run)?;
    for entry in record.entries.iter().filter(|entry| entry.kind == EntryKind::Setting && entry.state.is_outstanding())
    {
        let Reading::Other(now) = reading(&mut host, entry) else { continue };
        let now = now.unwrap_or_else(|| "absent".to_owned());
        let ours = entry.read_back.as_ref().or(entry.intended.as_ref());
        let ours = ours.map_or_else(|| "absent".into(), |bytes| String::from_utf8_lossy(bytes));
        let next = if is_in_file && entry.persisted {
            format!("; at the next boot it is {ours} again")
        } else {
            String::new()
        };
        changed.push(format!(
            "{} reads {now} and not {ours}: somebody changed it since, and that stays{next}",
            entry.place
        ));
    }
    Ok(changed)
}

fn chosen(args: &ConfirmArgs, journal: &Journal) -> Result<RunId, Failure> {
    if let Some(number) = args.run {
        return Ok(RunId(i64::try_from(number).unwrap_or(i64::MAX)));
    }
    let runs: Vec<RunId> = journal.on_trial()?.iter().map(|run| run.id).collect();
    match runs.as_slice() {
        [run] => Ok(*run),
        [] => Err(JournalError::NoTrial.into()),
        several => {
            let names = several.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            let message = format!("runs {names} are on trial; name the one to keep");
            Err(Failure::new(Exit::Usage, &message))
        }
    }
}
