//! Tests of the journal.

use super::*;

fn intent(place: &str) -> Intent<'_> {
    Intent { kind: EntryKind::Setting, place, before: None, intended: Some(b"1"), mode: None, persisted: false }
}

fn here() -> Identity {
    Identity { boot: Some("boot".into()), namespace: Some("net:[1]".into()) }
}

#[test]
fn a_run_is_told_as_it_was_recorded() {
    let journal = Journal::in_memory().expect("a journal");
    let run = journal
        .start_run(Start { command: "tune example.org", host: Some("a"), ..Start::default() }, &here())
        .expect("recorded");
    let entry = journal.intend(run, &intent("net.ipv4.tcp_ecn")).expect("recorded");
    journal.written(entry, Some(b"")).expect("marked");
    let read = journal.run(run).expect("there");
    assert_eq!((read.command.as_str(), read.host.as_deref(), &read.identity), ("tune example.org", Some("a"), &here()));
    assert_eq!(read.state, RunState::Open);
    let [entry] = read.entries.as_slice() else { panic!("one entry") };
    assert_eq!((&entry.before, entry.read_back.as_deref()), (&None, Some(&b""[..])), "absent and empty differ");
    assert_eq!(entry.state, EntryState::Written);
}

#[test]
fn keeping_and_forgetting_show_in_the_state() {
    let mut journal = Journal::in_memory().expect("a journal");
    let run = journal.start_run(Start::default(), &here()).expect("recorded");
    journal.intend(run, &intent("net.ipv4.tcp_ecn")).expect("recorded");
    journal.keep(run).expect("kept");
    assert_eq!(journal.run(run).expect("there").state, RunState::Kept);
    assert_eq!(journal.outstanding().expect("read").len(), 1);
    journal.forget(run).expect("forgotten");
    assert_eq!(journal.run(run).expect("there").state, RunState::Undone);
    assert!(journal.outstanding().expect("read").is_empty());
    assert!(matches!(journal.keep(RunId(7)), Err(JournalError::NoSuchRun { run: RunId(7) })));
}

#[test]
fn a_second_run_is_told_who_holds_the_lock() {
    let folder = tempfile::tempdir().expect("a folder");
    let first = Journal::open(folder.path()).expect("opened");
    let Err(error) = Journal::open(folder.path()) else { panic!("it is locked") };
    assert!(
        matches!(&error, JournalError::JournalLocked { pid: Some(pid), .. } if *pid == std::process::id()),
        "{error}"
    );
    assert!(Journal::look(folder.path()).expect("readable meanwhile").is_some());
    drop(first);
    Journal::open(folder.path()).expect("free again");
}

#[test]
fn looking_makes_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let state = folder.path().join("none");
    assert!(Journal::look(&state).expect("no error").is_none());
    assert!(!state.exists());
}

#[test]
fn damage_is_said_and_the_file_left_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(FILE_NAME);
    for content in [
        &b"not a database, though long enough to hold a header of one hundred bytes or even more than that"[..],
        b"SQLite format 3\0\x10\0\x01\x01\0\x40\x20\x20 and then rubbish",
    ] {
        let content = content.repeat(100);
        std::fs::write(&path, &content).expect("written");
        let Err(error) = Journal::open(folder.path()) else { panic!("it is damaged") };
        assert!(matches!(error, JournalError::Corrupt { .. }), "{error:?}");
        assert_eq!(std::fs::read(&path).expect("there"), content);
    }
}

#[test]
fn a_torn_page_is_found_when_the_journal_is_opened() {
    let folder = tempfile::tempdir().expect("a folder");
    let journal = Journal::open(folder.path()).expect("opened");
    let run = journal.start_run(Start::default(), &here()).expect("recorded");
    for _ in 0..20 {
        journal.intend(run, &intent("net.ipv4.tcp_ecn")).expect("recorded");
    }
    drop(journal);
    let path = folder.path().join(FILE_NAME);
    let mut bytes = std::fs::read(&path).expect("there");
    bytes.iter_mut().skip(4096 * 2).take(4096).for_each(|byte| *byte = 0xa5);
    std::fs::write(&path, bytes).expect("written");
    let Err(error) = Journal::open(folder.path()) else { panic!("it is damaged") };
    assert!(matches!(error, JournalError::Corrupt { .. } | JournalError::Damaged { .. }), "{error:?}");
}

/// A journal on disk with one run of three entries.
fn begun(folder: &Path) -> PathBuf {
    let journal = Journal::open(folder).expect("opened");
    let run = journal.start_run(Start::default(), &here()).expect("recorded");
    for place in ["net.ipv4.tcp_ecn", "net.ipv4.tcp_sack", "net.ipv4.tcp_rmem"] {
        let entry = journal.intend(run, &intent(place)).expect("recorded");
        journal.written(entry, Some(b"1")).expect("marked");
    }
    folder.join(FILE_NAME)
}

#[test]
fn an_empty_or_missing_journal_that_was_begun_is_no_clean_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = begun(folder.path());
    std::fs::write(&path, b"").expect("emptied");
    for missing in [false, true] {
        if missing {
            std::fs::remove_file(&path).expect("removed");
        }
        for opened in [Journal::open(folder.path()).err(), Journal::look(folder.path()).err()] {
            assert!(matches!(&opened, Some(JournalError::Lost { .. })), "{missing}: {opened:?}");
        }
    }
}

#[test]
fn a_torn_journal_is_damage_wherever_it_is_torn() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = begun(folder.path());
    let whole = std::fs::read(&path).expect("there");
    for length in (0..whole.len()).step_by(509) {
        std::fs::write(&path, &whole[..length]).expect("torn");
        assert!(Journal::open(folder.path()).is_err(), "{length} of {} bytes pass for a journal", whole.len());
        if let Ok(journal) = Journal::open_damaged(folder.path()) {
            assert!(!journal.damage().is_empty(), "{length}");
        }
    }
}

#[test]
fn rows_that_can_be_read_are_told_beside_one_that_can_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = begun(folder.path());
    let connection = Connection::open(&path).expect("opened");
    connection.execute_batch("UPDATE entries SET before = x'39' WHERE id = 2").expect("changed");
    drop(connection);
    let Err(error) = Journal::open(folder.path()) else { panic!("a row is damaged") };
    assert!(error.to_string().contains("row 2 of entries"), "{error}");
    let journal = Journal::open_damaged(folder.path()).expect("readable");
    let runs = journal.outstanding().expect("read");
    let places: Vec<_> = runs.iter().flat_map(|run| &run.entries).map(|entry| entry.place.as_str()).collect();
    assert_eq!(places, ["net.ipv4.tcp_ecn", "net.ipv4.tcp_rmem"]);
    assert_eq!(journal.damage().len(), 1, "{:?}", journal.damage());
}

#[test]
fn a_row_that_is_missing_is_damage() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = begun(folder.path());
    Connection::open(&path).and_then(|c| c.execute_batch("DELETE FROM entries WHERE id = 3")).expect("changed");
    let Err(error) = Journal::open(folder.path()) else { panic!("a row is missing") };
    assert!(error.to_string().contains("row 3 of entries is missing"), "{error}");
}

#[test]
fn no_flipped_bit_changes_what_a_journal_tells_in_silence() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = begun(folder.path());
    let whole = std::fs::read(&path).expect("there");
    let sound = Journal::look(folder.path()).expect("read").expect("there").history().expect("read");
    let (mut same, mut said) = (0, 0);
    for at in 0..whole.len() {
        // Empty pages are most of the file: of a run of zeros, one byte in 16.
        if whole[at] == 0 && at % 16 != 0 {
            continue;
        }
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        std::fs::write(&path, &bytes).expect("written");
        match Journal::look(folder.path()) {
            Ok(Some(journal)) if journal.damage().is_empty() => {
                // In bytes that hold nothing; what is read is the same, or is an error.
                match journal.history() {
                    Ok(read) => assert_eq!(read, sound, "byte {at}"),
                    Err(_) => said += 1,
                }
                same += 1;
            }
            Ok(Some(journal)) => {
                said += 1;
                for run in journal.history().expect("what can be read") {
                    let sound = sound.iter().find(|sound| sound.id == run.id).expect("a run that there is");
                    assert!(run.entries.iter().all(|entry| sound.entries.contains(entry)), "byte {at}: {run:?}");
                }
            }
            Ok(None) => panic!("byte {at}: passes for no journal"),
            Err(_) => said += 1,
        }
    }
    assert!(said > 500, "{said} of {} flips were said", same + said);
}

#[test]
fn a_journal_of_the_first_layout_is_taken_over() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(FILE_NAME);
    let connection = Connection::open(&path).expect("opened");
    connection
        .execute_batch(
            "CREATE TABLE runs (id INTEGER PRIMARY KEY AUTOINCREMENT, started TEXT NOT NULL, command TEXT NOT NULL,
                host TEXT, boot TEXT, namespace TEXT, pid INTEGER NOT NULL, kept INTEGER NOT NULL DEFAULT 0);
             CREATE TABLE entries (id INTEGER PRIMARY KEY AUTOINCREMENT, run INTEGER NOT NULL REFERENCES runs (id),
                kind TEXT NOT NULL, place TEXT NOT NULL, before BLOB, intended BLOB, read_back BLOB, mode INTEGER,
                persisted INTEGER NOT NULL DEFAULT 0, state TEXT NOT NULL);
             CREATE INDEX entries_of_run ON entries (run, id);
             INSERT INTO runs VALUES (1, '2026-11-22T20:00:00Z', 'apply plan', NULL, 'b', 'n', 7, 1);
             INSERT INTO entries VALUES (1, 1, 'setting', 'net.ipv4.tcp_ecn', x'32', x'31', x'31', NULL, 0, 'written');
             PRAGMA user_version = 1;",
        )
        .expect("made");
    drop(connection);
    for look in [true, false] {
        let journal =
            if look { Journal::look(folder.path()).expect("read") } else { Journal::open(folder.path()).ok() };
        let runs = journal.expect("taken over").outstanding().expect("read");
        let [run] = runs.as_slice() else { panic!("one run: {runs:?}") };
        assert_eq!((run.state, run.command.as_str(), run.entries.len()), (RunState::Kept, "apply plan", 1));
    }
}

#[cfg(unix)]
#[test]
fn a_journal_that_others_could_have_written_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().expect("a folder");
    let path = begun(folder.path());
    let set = |path: &Path, mode| std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("set");
    let refused = || {
        let errors = [Journal::open(folder.path()).err(), Journal::look(folder.path()).err()];
        errors.iter().all(|error| matches!(error, Some(JournalError::Untrusted { .. })))
    };
    set(&path, 0o666);
    assert!(refused(), "a file that anybody may write");
    set(&path, 0o600);
    set(folder.path(), 0o777);
    assert!(refused(), "a folder that anybody may write");
    set(folder.path(), 0o700);
    Journal::open(folder.path()).expect("ours alone again");
}

#[cfg(unix)]
#[test]
fn a_link_in_the_state_folder_is_not_followed() {
    let (folder, other) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("another"));
    let target = other.path().join("theirs");
    std::fs::write(&target, "theirs").expect("written");
    for name in ["journal.lock", FILE_NAME, "journal.begun"] {
        let link = folder.path().join(name);
        std::os::unix::fs::symlink(&target, &link).expect("linked");
        assert!(Journal::open(folder.path()).is_err(), "{name}");
        assert_eq!(std::fs::read(&target).expect("there"), b"theirs", "{name}");
        std::fs::remove_file(link).expect("removed");
    }
}

#[test]
fn a_newer_layout_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    drop(Journal::open(folder.path()).expect("opened"));
    let connection = Connection::open(folder.path().join(FILE_NAME)).expect("opened");
    connection.execute_batch("PRAGMA user_version = 99").expect("set");
    drop(connection);
    let Err(error) = Journal::open(folder.path()) else { panic!("it is newer") };
    assert!(matches!(error, JournalError::TooNew { found: 99, known: 2, .. }), "{error:?}");
}

#[test]
fn a_full_database_is_said_to_be_one() {
    let journal = Journal::in_memory().expect("a journal");
    let run = journal.start_run(Start::default(), &here()).expect("recorded");
    journal.limit_to_present_size();
    let error = (0..10_000).find_map(|_| journal.intend(run, &intent("net.ipv4.tcp_ecn")).err()).expect("full");
    assert!(matches!(error, JournalError::DiskFull { .. }), "{error:?}");
}

impl Journal {
    /// Makes the database behave as on a full disk.
    pub(crate) fn limit_to_present_size(&self) {
        self.connection.query_row("PRAGMA max_page_count = 1", [], |_| Ok(())).expect("set");
    }
}
