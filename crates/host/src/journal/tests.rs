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
    let run = journal.start_run("tune example.org", Some("a"), &here()).expect("recorded");
    let entry = journal.intend(run, &intent("net.ipv4.tcp_ecn")).expect("recorded");
    journal.written(entry, Some(b"")).expect("marked");
    let told = journal.run(run).expect("there");
    assert_eq!((told.command.as_str(), told.host.as_deref(), &told.identity), ("tune example.org", Some("a"), &here()));
    assert_eq!(told.state, RunState::Open);
    let [entry] = told.entries.as_slice() else { panic!("one entry") };
    assert_eq!((&entry.before, entry.read_back.as_deref()), (&None, Some(&b""[..])), "absent and empty differ");
    assert_eq!(entry.state, EntryState::Written);
}

#[test]
fn keeping_and_forgetting_show_in_the_state() {
    let mut journal = Journal::in_memory().expect("a journal");
    let run = journal.start_run("tune", None, &here()).expect("recorded");
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
    let run = journal.start_run("tune", None, &here()).expect("recorded");
    for _ in 0..20 {
        journal.intend(run, &intent("net.ipv4.tcp_ecn")).expect("recorded");
    }
    drop(journal);
    let path = folder.path().join(FILE_NAME);
    let mut bytes = std::fs::read(&path).expect("there");
    bytes.iter_mut().skip(4096 * 2).take(4096).for_each(|byte| *byte = 0xa5);
    std::fs::write(&path, bytes).expect("written");
    let Err(error) = Journal::open(folder.path()) else { panic!("it is damaged") };
    assert!(matches!(error, JournalError::Corrupt { .. }), "{error:?}");
}

#[test]
fn a_newer_layout_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    drop(Journal::open(folder.path()).expect("opened"));
    let connection = Connection::open(folder.path().join(FILE_NAME)).expect("opened");
    connection.execute_batch("PRAGMA user_version = 99").expect("set");
    drop(connection);
    let Err(error) = Journal::open(folder.path()) else { panic!("it is newer") };
    assert!(matches!(error, JournalError::TooNew { found: 99, known: 1, .. }), "{error:?}");
}

#[test]
fn a_full_database_is_said_to_be_one() {
    let journal = Journal::in_memory().expect("a journal");
    let run = journal.start_run("tune", None, &here()).expect("recorded");
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
