//! The reference scenarios and clean controls on real kernels.
//!
//! One at a time: a lab measures time, and two of them on a small machine measure each other. A lab that could not keep
//! up refuses its result, and the run is repeated a few times; what it did measure is never repeated to please. On a
//! machine that is too busy for all attempts the test says so by name and is skipped.
#![expect(clippy::unwrap_used, reason = "a test that fails may panic")]

use std::sync::{Mutex, PoisonError, atomic::AtomicBool};

use fullpipe_diagnose::Limiter;
use fullpipe_path::Scenario;
use fullpipe_tune::{Event, LabRunOptions, Outcome, TuneError, demo, lab_run};

/// How often a run is repeated that the lab itself calls invalid.
const ATTEMPTS: u32 = 4;

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Runs until the lab could keep up; `None`, said by name, where this machine can make no lab.
fn run(test: &str, once: impl Fn() -> Result<Outcome, TuneError>) -> Option<Outcome> {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    if let Err(missing) = fullpipe_lab::preflight() {
        eprintln!("skipped: {test}: {missing}");
        return None;
    }
    for attempt in 1..=ATTEMPTS {
        match once() {
            Ok(outcome) if outcome.path_error.is_none_or(|error| error.valid) => return Some(outcome),
            Ok(outcome) => eprintln!("{test}: attempt {attempt} was invalid: {:?}", outcome.path_error),
            Err(TuneError::CouldNotKeepUp(why)) => eprintln!("{test}: attempt {attempt}: {why}"),
            Err(error) => panic!("{test}: {error}"),
        }
    }
    eprintln!("skipped: {test}: this machine was too busy for the lab {ATTEMPTS} times");
    None
}

fn silent(_: Event<'_>) {}

fn scenario(name: &str) -> Option<Outcome> {
    let scenario = Scenario::named(name).unwrap();
    let outcome = run(name, || lab_run(&scenario, &LabRunOptions::default(), &AtomicBool::new(false), &mut silent))?;
    assert!(outcome.as_expected(), "{name}: {:#?}\n{:#?}", outcome.expectations, judged(&outcome));
    assert!(!outcome.expectations.is_empty(), "{name} expects nothing");
    Some(outcome)
}

/// What was judged, for a failure's message.
fn judged(outcome: &Outcome) -> Vec<String> {
    let directions = outcome.before.iter().chain(&outcome.after);
    directions
        .map(|direction| format!("{}: {} {:#?}", direction.name, direction.rate_bps, direction.diagnosis))
        .collect()
}

/// The demo is the scenario `wan-80ms`, with lengths of its own.
#[test]
fn the_demo_gives_each_direction_its_verdict_lifts_both_and_leaves_nothing_behind() {
    let Some(outcome) = run("demo", || demo(&AtomicBool::new(false), &mut silent)) else { return };
    assert_eq!(outcome.expectations.len(), 6);
    assert!(outcome.as_expected(), "{:#?}\n{:#?}", outcome.expectations, judged(&outcome));
    let limiters: Vec<Limiter> = outcome.before.iter().map(|direction| direction.diagnosis.limiter).collect();
    assert_eq!(limiters, [Limiter::ReceiveWindow, Limiter::SendBuffer]);
    assert!(outcome.plan.changes.iter().all(|change| change.host == "b"), "{:#?}", outcome.plan);
    assert!(outcome.proofs.iter().all(|proof| proof.helped && !proof.kept && proof.proof.pairs >= 3));
    assert!(
        outcome.proofs.iter().all(|proof| proof.proof.ratio_low.is_some_and(|low| low > 10.0)),
        "{:#?}",
        outcome.proofs
    );
    assert!(outcome.restored.iter().all(|host| host.compared > 50 && host.differences.is_empty()));
}

#[test]
fn wan_80ms_sender_is_held_by_its_own_buffer() {
    scenario("wan-80ms-sender");
}

#[test]
fn hsdpa_is_held_by_the_window_of_the_notebook() {
    scenario("hsdpa");
}

#[test]
fn adsl2_is_held_by_the_window_of_the_notebook() {
    scenario("adsl2");
}

#[test]
fn a_bluetooth_hop_is_full_and_nothing_is_proposed() {
    let Some(outcome) = scenario("bluetooth-hop") else { return };
    assert!(outcome.plan.changes.is_empty() && outcome.proofs.is_empty(), "{:#?}", outcome.plan);
}

/// 128 windows of two segments carry 30 of 100 Mbit/s: the least that a first plan can be for.
const HIDDEN: &str = r#"
schema = 1
name = "hidden"
summary = "windows of two segments at the end of a long path"
seed = 7
path = { mtu = 1500, ip = "v4", hops = [{ name = "link", rate = "100M", delay = "50ms", queue = { bdp = 1.0, at_least = 64 } }] }
b = { settings = { "net.ipv4.tcp_window_scaling" = "0", "net.ipv4.tcp_timestamps" = "0", "net.ipv4.tcp_rmem" = "4096 5840 5840" } }
test = { seconds = 2, omit = 2, congestion = "cubic" }
expect = { "a->b" = { limiter = "receive_window", after = 0.6 } }
"#;

#[test]
fn a_plan_for_the_least_that_a_path_carries_is_gone_on_with_until_the_path_is_full() {
    let scenario = Scenario::parse(HIDDEN, "hidden").unwrap();
    let once = || lab_run(&scenario, &LabRunOptions::default(), &AtomicBool::new(false), &mut silent);
    let Some(outcome) = run("hidden", once) else { return };
    assert!(outcome.as_expected(), "{:#?}\n{:#?}", outcome.expectations, judged(&outcome));
    let window = outcome.plan.changes.iter().find(|change| change.knob.to_string() == "net.ipv4.tcp_rmem").unwrap();
    assert_eq!(window.from.as_deref().map(|from| from.split_whitespace().last()), Some(Some("5840")), "{window:#?}");
    assert!(outcome.plan.notes.iter().any(|note| note.contains("this plan is for that")), "{:#?}", outcome.plan.notes);
    assert!(outcome.restored.iter().all(|host| host.differences.is_empty()), "{:#?}", outcome.restored);
}

/// Each rate and each round-trip time of the clean paths once.
const DIAGONAL: [&str; 3] = ["clean-10m-5ms", "clean-100m-40ms", "clean-1g-200ms"];

/// Nothing is wrong on these paths: the path is the limit, and no change may be proposed.
fn clean(congestion_control: &str, wanted: impl Fn(&str) -> bool) {
    let mut names: Vec<String> = Scenario::names().into_iter().filter(|name| name.starts_with("clean-")).collect();
    assert_eq!(names.len(), 9, "three rates and three round-trip times: {names:?}");
    names.retain(|name| wanted(name));
    assert!(names.len() >= DIAGONAL.len(), "{names:?}");
    let mut false_alarms = Vec::new();
    for name in names {
        let scenario = Scenario::named(&name).unwrap();
        let options = LabRunOptions {
            measure_only: true,
            congestion_control: Some(congestion_control.to_owned()),
            ..LabRunOptions::default()
        };
        let label = format!("{name} under {congestion_control}");
        let Some(outcome) = run(&label, || lab_run(&scenario, &options, &AtomicBool::new(false), &mut silent)) else {
            return;
        };
        if !outcome.as_expected() {
            false_alarms.push(format!("{label}: {:#?}\n{:#?}", outcome.expectations, judged(&outcome)));
        }
    }
    assert!(false_alarms.is_empty(), "{}", false_alarms.join("\n"));
}

#[test]
fn clean_paths_raise_no_alarm_under_cubic() {
    clean("cubic", |_| true);
}

/// Ten seconds each: `cargo xtask soak` sets FULLPIPE_ALL_PATHS.
#[test]
fn clean_paths_raise_no_alarm_under_bbr() {
    let all = std::env::var_os("FULLPIPE_ALL_PATHS").is_some();
    clean("bbr", |name| all || DIAGONAL.contains(&name));
}
