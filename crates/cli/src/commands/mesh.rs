//! `fullpipe mesh`.

use std::{collections::BTreeMap, path::PathBuf};

use fullpipe_host::journal;
use fullpipe_mesh::{Criteria, Hosts, LARGEST, Store, Test, judge, measure};
use fullpipe_report::{MeshReport, html::Charts, json, text};
use fullpipe_tune::{Event, Observer as _};
use fullpipe_units::Micros;

use super::{Ended, input::Input, printed};
use crate::{args::MeshArgs, exit::Exit, failure::Failure, interrupt, output::Output, progress::Progress};

/// How many earlier runs are shown.
const SHOWN: i64 = 20;

/// The file in the state folder.
const FILE: &str = "mesh.sqlite";

pub(super) fn run(args: &MeshArgs, output: Output) -> Ended {
    let page = args.page();
    page.check()?;
    let input = Input::read(&args.hosts, LARGEST)?;
    let invalid = |problem: &str| Failure::new(Exit::InputInvalid, &format!("reading {}: {problem}", input.name));
    let text = std::str::from_utf8(&input.bytes).map_err(|error| invalid(&format!("it is no UTF-8 text: {error}")))?;
    let hosts: Hosts = text.parse().map_err(|error: fullpipe_mesh::MeshError| invalid(&error.to_string()))?;
    // Before anything is measured: a store that can't be had is known now.
    let mut store = if args.no_store { None } else { Some(Store::open(&file(args)?)?) };
    if args.history {
        let runs = store.as_mut().map(|store| store.runs(&hosts.name, SHOWN)).transpose()?.unwrap_or_default();
        let document = || json::mesh_history("mesh", &hosts.name, &runs);
        return printed(output.result(document, |look| text::mesh_history(&hosts.name, &runs, look)));
    }
    store.as_mut().map(Store::check_writable).transpose()?;
    let earlier = store.as_mut().map(|store| store.rates(&hosts.name)).transpose()?.unwrap_or_else(BTreeMap::new);
    let started = jiff::Timestamp::now();
    let cancel = interrupt::cancel_flag()?;
    let mut progress = Progress::new("mesh", output);
    let test = Test { seconds: args.seconds, omit: args.omit };
    let each = Micros::new((args.seconds.get() + args.omit.get()) * 2);
    let cells = measure(&hosts, test, &cancel, &mut |a, b, number, of| {
        let what = format!("pair {number} of {of}: {} and {}", a.name, b.name);
        progress.on(Event::Phase { what: &what, expected: Some(each) });
    });
    progress.finish();
    let cells = cells?;
    let criteria = Criteria { of_earlier: 1.0 - f64::from(args.drop) / 100.0, ..Criteria::default() };
    let verdict = judge(&hosts, &cells, &earlier, criteria);
    let kept = store.as_mut().map(|store| store.keep(&hosts, started, &cells)).transpose();
    let report =
        MeshReport { hosts: &hosts, cells: &cells, verdict: &verdict, run: kept.as_ref().ok().copied().flatten() };
    // What was measured is shown, too, where it can't be kept.
    let failure = kept.err().map(Failure::from);
    let document = || match &failure {
        None => json::mesh("mesh", &report),
        Some(failure) => json::with_problem(json::mesh("mesh", &report), &failure.problem()),
    };
    page.result(output, document, Charts::default, |look| text::mesh(&report, look))?;
    if let Some(failure) = failure {
        return if output.is_json() { Ok(failure.exit) } else { Err(failure) };
    }
    Ok(if verdict.bad == 0 && verdict.slower.is_empty() { Exit::Ok } else { Exit::NotAsExpected })
}

fn file(args: &MeshArgs) -> Result<PathBuf, Failure> {
    match &args.store {
        Some(file) => Ok(file.clone()),
        None => Ok(journal::state_dir()?.join(FILE)),
    }
}
