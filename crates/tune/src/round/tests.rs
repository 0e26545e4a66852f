//! What is left in force where an end fails, over ends that only remember.

use fullpipe_diagnose::RttSummary;
use fullpipe_host::RunId;
use fullpipe_knobs::Address;
use fullpipe_measure::Measurement;

use super::*;

/// An end that has its values or not, and may be made to fail.
#[derive(Default)]
struct Memory {
    name: &'static str,
    /// Numbers of the trials in force, kept ones too.
    in_force: Vec<i64>,
    kept: Vec<i64>,
    next: i64,
    held: Vec<i64>,
    keeps_as: Kept,
    fails_to_keep: bool,
    fails_to_apply: bool,
    /// How often an undo fails before it succeeds.
    undo_failures: u32,
    /// An administrator there has taken back what is on trial.
    is_taken_back: bool,
}

impl Memory {
    fn refuse(&self, operation: &'static str) -> TuneError {
        TuneError::Remote { operation, host: self.name.to_owned(), reason: "as the test says".to_owned() }
    }
}

impl End for Memory {
    fn name(&self) -> &str {
        self.name
    }

    fn settings(&mut self) -> Result<Settings, TuneError> {
        Ok(Settings::default())
    }

    fn closed(&self) -> Option<String> {
        None
    }

    fn apply(&mut self, changes: &[Change], _: Stay, _: Duration) -> Result<Trial, TuneError> {
        if self.fails_to_apply {
            return Err(self.refuse("apply"));
        }
        self.next += 1;
        self.in_force.push(self.next);
        Ok(Trial { run: Some(RunId(self.next)), read_back: changes.iter().map(|change| change.to.clone()).collect() })
    }

    fn undo(&mut self, trial: &Trial) -> Result<usize, TuneError> {
        if self.undo_failures > 0 {
            self.undo_failures -= 1;
            return Err(self.refuse("undo"));
        }
        self.in_force.retain(|run| trial.run != Some(RunId(*run)));
        Ok(usize::from(!self.is_taken_back))
    }

    fn hold(&mut self, trial: &Trial, within: Duration) -> Result<Duration, TuneError> {
        if self.fails_to_keep {
            return Err(self.refuse("hold"));
        }
        self.held.extend(trial.run.map(|run| run.0));
        Ok(within)
    }

    fn keep(&mut self, trial: &Trial) -> Result<Kept, TuneError> {
        if self.fails_to_keep {
            return Err(self.refuse("keep"));
        }
        self.kept.extend(trial.run.map(|run| run.0));
        Ok(self.keeps_as.clone())
    }
}

struct NoMeter;

impl Meter for NoMeter {
    fn prepare(&mut self) -> Result<Option<RttSummary>, TuneError> {
        Ok(None)
    }

    fn measure(&mut self, _: &TestSpec, _: &mut dyn Observer) -> Result<Measurement, TuneError> {
        Err(TuneError::Interrupted)
    }
}

fn change(host: &str) -> Change {
    Change::unexplained(host.to_owned(), Address::sysctl("net.ipv4.tcp_rmem"), None, Some("1 2 3".to_owned()))
}

const MINUTE: Duration = Duration::from_secs(60);

/// Puts a change in force at both ends and has them kept.
fn keep_both(a: &mut Memory, b: &mut Memory, confirm_within: Option<Duration>) -> Result<Outcome, TuneError> {
    let mut outcome = Outcome::default();
    with_both(a, b, confirm_within, |round, trials| round.keep_all(trials, &mut outcome))?;
    Ok(outcome)
}

/// Puts a change in force at both ends and does something with it.
fn with_both<T>(
    a: &mut Memory,
    b: &mut Memory,
    confirm_within: Option<Duration>,
    then: impl FnOnce(&mut Round<'_>, InForce) -> Result<T, TuneError>,
) -> Result<T, TuneError> {
    let options = RoundOptions {
        directions: vec![fullpipe_measure::Direction::Up],
        streams: 1,
        congestion_control: None,
        lengths: None,
        trial_lengths: None,
        plan_options: PlanOptions::default(),
        criteria: Criteria::default(),
        goal: RoundGoal::Keep { persist: false, confirm_within },
    };
    let changes = [change(a.name), change(b.name)];
    let mut round = Round {
        options: &options,
        meter: &mut NoMeter,
        ends: [a, b],
        peers: [None, None],
        applications: Applications::default(),
        consent: &mut |_| true,
        observer: &mut |_: Event<'_>| {},
        cancel: &AtomicBool::new(false),
    };
    let trials = round.put_in_force(&changes.iter().collect::<Vec<_>>(), Stay::Running)?;
    then(&mut round, trials)
}

#[test]
fn where_one_end_can_not_keep_its_changes_neither_has_them() {
    for (failing, within) in [(0, None), (1, None), (0, Some(MINUTE)), (1, Some(MINUTE))] {
        let mut ends = ["a", "b"].map(|name| Memory { name, ..Memory::default() });
        ends[failing].fails_to_keep = true;
        let [a, b] = &mut ends;
        keep_both(a, b, within).expect_err("one end fails");
        assert!(ends.iter().all(|end| end.in_force.is_empty()), "{failing}: something stayed in force");
    }
}

#[test]
fn what_is_to_be_confirmed_is_left_on_trial_at_both_ends_and_each_is_named() {
    let mut ends = ["a", "b"].map(|name| Memory { name, ..Memory::default() });
    let [a, b] = &mut ends;
    let notes = keep_both(a, b, Some(MINUTE)).expect("held").notes;
    assert!(ends.iter().all(|end| end.kept.is_empty() && end.held == [1] && end.in_force == [1]));
    assert!(notes[0].contains("a: on trial as run 1") && notes[1].contains("b: on trial as run 1"), "{notes:?}");
    assert!(notes.iter().all(|note| note.contains("in 60 s unless `fullpipe confirm 1`")), "{notes:?}");
}

#[test]
fn what_lasts_is_said_as_each_end_reports_it_and_never_as_it_was_asked_for() {
    let file = "/etc/sysctl.d/90-fullpipe.conf".to_owned();
    let why = "net.ipv4.tcp_rmem: /etc/sysctl.d/99-admin.conf:1 says `1 2 3`".to_owned();
    let overridden = Kept { boot_files: vec![file.clone()], until_reboot: vec![why], ..Kept::default() };
    let lasting = Kept { lasts: true, boot_files: vec![file], ..Kept::default() };
    for (kept, said) in [
        (Kept::default(), vec!["a: kept as run 1, which lasts until the next reboot; `fullpipe undo 1` takes it back"]),
        (
            lasting,
            vec![
                "a: kept as run 1, which lasts beyond a reboot (/etc/sysctl.d/90-fullpipe.conf); `fullpipe undo 1` takes \
                 it back",
            ],
        ),
        (
            overridden,
            vec![
                "a: kept as run 1 (/etc/sysctl.d/90-fullpipe.conf); `fullpipe undo 1` takes it back",
                "a: until reboot: net.ipv4.tcp_rmem: /etc/sysctl.d/99-admin.conf:1 says `1 2 3`",
            ],
        ),
    ] {
        let mut ends = ["a", "b"].map(|name| Memory { name, ..Memory::default() });
        ends[0].keeps_as = kept.clone();
        let [a, b] = &mut ends;
        let outcome = keep_both(a, b, None).expect("kept");
        assert_eq!(outcome.notes[..said.len()], said);
        let run = &outcome.kept[0];
        assert_eq!((&run.boot_files, &run.until_reboot), (&kept.boot_files, &kept.until_reboot));
        assert_eq!((outcome.kept.len(), run.lasts), (2, kept.lasts));
    }
}

#[test]
fn an_undo_that_fails_once_is_tried_again() {
    let mut ends = ["a", "b"].map(|name| Memory { name, undo_failures: 1, ..Memory::default() });
    ends[1].fails_to_keep = true;
    let [a, b] = &mut ends;
    let error = keep_both(a, b, None).expect_err("one end fails");
    assert!(error.to_string().contains("keep"), "{error}");
    assert!(ends.iter().all(|end| end.in_force.is_empty()));
}

#[test]
fn where_one_end_refuses_its_changes_the_other_does_not_have_them_either() {
    let mut ends = ["a", "b"].map(|name| Memory { name, ..Memory::default() });
    ends[1].fails_to_apply = true;
    let [a, b] = &mut ends;
    keep_both(a, b, None).expect_err("one end refuses");
    assert!(ends.iter().all(|end| end.in_force.is_empty()), "something stayed in force");
}

#[test]
fn what_an_administrator_took_back_ends_the_proof_and_is_no_failure_of_a_clean_up() {
    for ends_proof in [true, false] {
        let mut ends = ["a", "b"].map(|name| Memory { name, ..Memory::default() });
        ends[1].is_taken_back = true;
        let [a, b] = &mut ends;
        let ended = with_both(a, b, None, |round, trials| match ends_proof {
            true => round.end_trials(&mut vec![trials]),
            false => round.undo_all(&mut vec![trials]).map(drop),
        });
        match ended {
            Err(TuneError::TakenBack { host }) => assert!(ends_proof && host == "b"),
            other => assert!(!ends_proof && other.is_ok(), "{other:?}"),
        }
        assert!(ends.iter().all(|end| end.in_force.is_empty()), "the other end has its own back");
    }
}
