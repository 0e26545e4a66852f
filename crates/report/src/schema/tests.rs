//! The documents held against the table of keys, in both directions.

use std::collections::{BTreeMap, BTreeSet};

use fullpipe_host::{ApplyOptions, FolderHost, Host, Journal, UndoOptions, Which};
use serde_json::Value;

use super::*;
use crate::{Problem, PutBack, Reading, Standing, Unpinned, UnpinnedSocket, json, sample};

#[test]
fn every_key_of_an_outcome_is_documented_with_its_type_and_every_documented_key_exists() {
    let documents = [sample::hostile(), sample::tuned()].map(|outcome| json::outcome("demo", &outcome));
    hold(&documents, OUTCOME, &["transfers_after"]);
}

#[test]
fn a_document_that_knows_little_still_has_every_top_level_key() {
    let document = json::outcome("check", &sample::clean_path());
    for key in COMMON.iter().chain(OUTCOME) {
        let top = key.path.split(['.', '[']).next().unwrap();
        assert!(document.get(top).is_some(), "{top} is missing");
    }
    assert_eq!(document["proof"], Value::Null);
    assert_eq!(document["path_error_us"], Value::Null);
    assert_eq!(document["transfers"][0]["retransmissions"], Value::Null);
    assert_eq!(document["as_expected"], Value::Null, "nothing is expected of a real path");
}

#[test]
fn directions_are_a_and_b_whatever_the_ends_are_called() {
    let mut outcome = sample::tuned();
    let renamed = |name: &str| name.replace('a', "vm").replace('b', "192.0.2.7");
    outcome.ends = Some(["vm", "192.0.2.7"].map(str::to_owned));
    outcome.before.iter_mut().for_each(|one| one.name = renamed(&one.name));
    outcome.proofs.iter_mut().for_each(|one| one.direction = renamed(&one.direction));
    let document = json::outcome("tune", &outcome);
    assert_eq!(document["ends"], serde_json::json!({ "a": "vm", "b": "192.0.2.7" }));
    let all = |list: &str| -> Vec<String> {
        let list = document[list].as_array().unwrap().iter();
        list.map(|one| one["direction"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!((all("transfers"), all("proofs")), (vec!["a->b".to_owned(), "b->a".to_owned()], all("transfers")));
}

#[test]
fn a_plan_of_the_schema_before_is_read() {
    let text = json::to_string(&json::outcome("tune", &sample::tuned()));
    let before = text.replace("fullpipe/2", "fullpipe/1");
    assert_ne!(text, before);
    let changes = |text: &str| json::read_plan(text).unwrap().plan.changes;
    assert_eq!(changes(&before), changes(&text));
    assert!(json::read_plan(&text.replace("fullpipe/2", "fullpipe/3")).is_err());
}

#[test]
fn every_key_of_captures_is_documented() {
    let mut list = sample::captures();
    list.sort();
    list.shown = usize::MAX;
    hold(&[list, sample::captures_set_back()].map(|list| json::captures("read", &list)), CAPTURE, &[]);
}

#[test]
fn every_key_of_what_was_unpinned_is_documented() {
    let socket = UnpinnedSocket {
        process: "evil\u{1b}[2J".to_owned(),
        pid: 7,
        fd: 5,
        send_buffer: Some(fullpipe_units::Bytes::new(131_072)),
        receive_buffer: None,
        largest_window: None,
    };
    let done = Unpinned {
        run: 1,
        target: "evil".to_owned(),
        swallowed: Some([2, 1]),
        sockets: vec![socket],
        put_back: Some(PutBack { restored: 1, set_again: 0 }),
        before: Some(fullpipe_units::Rate::from_bps(6_000_000)),
        after: Some(fullpipe_units::Rate::from_bps(90_000_000)),
    };
    let document = json::unpinned(&done);
    assert_eq!(document["ratio"], 15.0);
    hold(&[document], UNPIN, &[]);
    let soon = json::unpinned(&Unpinned { after: None, ..done });
    assert!(soon["ratio"].is_null() && !json::to_string(&soon).contains('\u{1b}'));
}

#[test]
fn every_key_of_what_was_watched_is_documented() {
    let frame = sample::watched();
    let mut document = json::watch(&frame);
    // Documented elsewhere.
    for place in ["/rows/0/diagnosis", "/listeners/0/owner", "/listeners/0/note"] {
        let there = document.pointer_mut(place).unwrap();
        assert!(there.as_object().is_some_and(|keys| keys.len() > 4), "{there}");
        *there = serde_json::json!({});
    }
    hold(&[document], WATCH, &[]);
    let line = json::to_line(&json::watch(&frame));
    assert_eq!(line.matches('\n').count(), 1);
    assert!(!line.contains(['\u{1b}', '\u{202e}']), "a process chooses its name: {line}");
    let mut again = Vec::new();
    fullpipe_watch::record::read(line.as_bytes(), |frame| {
        again.push(frame);
        true
    })
    .unwrap();
    assert_eq!(again, [frame]);
}

#[test]
fn an_error_is_a_document_and_can_stand_beside_a_result() {
    let problem = Problem { kind: "refused", message: "connecting: refused".to_owned(), hint: Some("do".to_owned()) };
    hold(&[json::problem("check", &problem)], ERROR, &[]);
    let beside = json::with_problem(json::outcome("tune", &sample::tuned()), &problem);
    assert_eq!(beside["error"]["kind"], "refused");
    assert!(beside["transfers"].is_array());
}

#[test]
fn every_key_of_settings_is_documented() {
    let files = [
        ("sysctl.conf", "net.ipv4.tcp_sack = 1\nkern.x\nnet.ipv4.tcp_sack = 0\nvm.other = 1\n"),
        ("now.txt", "net.ipv4.tcp_sack = 1\nnet.ipv4.tcp_rmem = 4096\t131072\t6291456\nnet.ipv4.tcp_ecn = -7\n"),
        ("tweak.conf", "net.ipv4.tcp_rmem = 1 2 3\n"),
    ];
    let readings = files.map(|(name, text)| fullpipe_knobs::reading::read(name, text.as_bytes()).unwrap());
    let platform = "linux-6.18".parse().unwrap();
    let merged = fullpipe_knobs::reading::merge(&readings, Some(&platform)).unwrap();
    let list = crate::SettingsList::new(&merged, &readings, false);
    let connections = sample::connections();
    let with = crate::SettingsList { connections: Some(&connections), ..list.clone() };
    hold(&[json::settings("settings", &list), json::settings("settings", &with)], SETTINGS, &[]);
}

#[test]
fn every_key_of_predictions_and_of_the_published_situations_is_documented() {
    let rate = fullpipe_units::Rate::from_bps(6_450_000);
    let limiter = fullpipe_diagnose::Limiter::ReceiveWindow;
    let row = crate::ReferenceRow {
        scenario: "wan-80ms",
        case: "as it is",
        published: Some("6.5"),
        arithmetic: Some((crate::ReferenceFigure::Rate(rate), "64,512 B / 80 ms".to_owned())),
        simulated: crate::ReferenceFigure::Rate(rate),
        limiter: Some(limiter),
        lab: Some("6.4"),
    };
    let device = crate::ReferenceRow {
        arithmetic: Some((crate::ReferenceFigure::Seconds(0.5), "x".to_owned())),
        simulated: crate::ReferenceFigure::Seconds(0.5),
        ..row
    };
    let table = crate::ReferenceTable { rows: vec![row, device], notes: vec!["a note".to_owned()] };
    hold(&[json::reference("sim", &table)], REFERENCE, &[]);

    let row = crate::PredictionRow {
        direction: Some("a->b".to_owned()),
        set: vec!["receiver.window=1M".to_owned()],
        value: Some("1M".to_owned()),
        rate,
        measured: Some(rate),
        limiter,
        detail: Some(fullpipe_diagnose::Detail::ScaleZero),
        truth: Some(limiter),
        seconds: Some(0.5),
        retransmits: 1,
        queue_delay_us: 2,
        memory_bytes: 3,
        failure: Some("reset".to_owned()),
    };
    let found = crate::WhatIf {
        predictions: vec![row],
        plateau: Some(("receiver.window".to_owned(), 0)),
        notes: vec!["a note".to_owned()],
        ..crate::WhatIf::default()
    };
    hold(&[json::what_if("what-if", &found)], WHAT_IF, &[]);
}

#[test]
fn every_key_of_a_shared_pool_is_documented() {
    let row = crate::ShareRow {
        sockets: "4x bulk 25M 15ms".to_owned(),
        count: 4,
        of: 4,
        numbers: [3, 2, 15, 15].map(|buffers| (buffers, "because".to_owned())),
        rate: Some(fullpipe_units::Rate::from_bps(9_000_000)),
        held: Some(fullpipe_diagnose::Limiter::SendBuffer),
        latency: None,
    };
    let found = crate::PoolShares {
        pool: 256,
        rows: vec![row.clone(), crate::ShareRow { rate: None, held: None, latency: Some(Default::default()), ..row }],
        wait: Some(fullpipe_units::Micros::from_millis(3)),
        notes: vec!["a note".to_owned()],
        ..crate::PoolShares::default()
    };
    let alone = crate::PoolShares { wait: None, ..found.clone() };
    hold(&[json::share("share", &found), json::share("share", &alone)], SHARE, &[]);
}

#[test]
fn every_key_of_a_mesh_is_documented() {
    use fullpipe_mesh::{Cell, Criteria, EarlierCell, EarlierRun, Found, Hosts, judge};
    let hosts: Hosts = ["a", "b", "c"].map(|name| format!("[[host]]\nname = '{name}'\n")).concat().parse().unwrap();
    let rate = |mbps: u64| fullpipe_units::Rate::from_bps(mbps * 1_000_000);
    let found = |mbps, rtt: u64| {
        let rtt = Some(fullpipe_units::Micros::new(rtt)).filter(|rtt| rtt.get() > 0);
        Ok(Found { rate: rate(mbps), rtt, limiter: fullpipe_diagnose::Limiter::ReceiveWindow })
    };
    let all = [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)];
    let mut cells =
        all.map(|(from, to)| Cell { from, to, found: found(if to == 0 { 9 } else { 900 }, to as u64), unable: None });
    for cell in cells.iter_mut().filter(|cell| cell.from + cell.to == 3) {
        cell.unable = Some(fullpipe_mesh::Unable { host: 1, why: "no route".to_owned() });
    }
    let earlier = BTreeMap::from([(("b".to_owned(), "a".to_owned()), vec![rate(900)])]);
    let verdict = judge(&hosts, &cells, &earlier, Criteria::default());
    let report = |run, cells, verdict| crate::MeshReport { hosts: &hosts, cells, verdict, run };
    let document = json::mesh("mesh", &report(Some(1), &cells, &verdict));
    let failed = [(0, 1), (1, 0)].map(|(from, to)| Cell {
        from,
        to,
        found: Err("on a: \u{1b}[2Jrefused".to_owned()),
        unable: None,
    });
    let nothing = judge(&hosts, &failed, &BTreeMap::new(), Criteria::default());
    hold(&[document, json::mesh("mesh", &report(None, &failed, &nothing))], MESH, &[]);
    let (from, to) = ("a".to_owned(), "b".to_owned());
    let limiter = Some("path".to_owned());
    let measured = EarlierCell { from, to, rate: Some(rate(9)), rtt: None, limiter, error: None };
    let not = EarlierCell { rate: None, limiter: None, error: Some("refused".to_owned()), ..measured.clone() };
    let rtt = Some(fullpipe_units::Micros::new(1));
    let run = EarlierRun { number: 1, started: "2026-01-02T03:04:05Z".to_owned(), cells: vec![measured, not] };
    let mut later = run.clone();
    later.cells[0].rtt = rtt;
    hold(&[json::mesh_history("mesh", "x", &[later.clone(), run])], MESH_HISTORY, &[]);
    // What a host printed reaches the terminal cleaned.
    let look = crate::text::Look { width: 100, ..Default::default() };
    let text = crate::text::mesh(&report(None, &failed, &nothing), look);
    assert!(!text.contains("\u{1b}[2J"), "{text}");
    let plain = |text: &str| anstream::adapter::strip_str(text).to_string();
    assert!(plain(&text).contains("failed: a -> b: on a: "), "{text}");
    let text = plain(&crate::text::mesh(&report(Some(1), &cells, &verdict), look));
    assert!(text.contains("host a when it receives: 2 of its 2 directions are slow or failed"), "{text}");
    assert!(text.contains("one-sided: b can't measure to c, so c measured both directions: no route"), "{text}");
    assert!(text.contains("slower: b -> a, 9.00 Mbit/s after 900 Mbit/s (median of 1 earlier run)"), "{text}");
    let mut alone = later;
    alone.cells[0].error = Some("b can't".to_owned());
    let verbose = crate::text::Look { verbose: true, ..look };
    let text = plain(&crate::text::mesh_history("x", &[alone], verbose));
    assert!(text.contains("1 failed, 1 measured by one end alone"), "{text}");
    assert!(text.contains("a -> b 9.00 Mbit/s, limited by: path; b can't"), "{text}");
}

#[test]
fn every_key_of_the_engine_at_work_is_documented() {
    let connection = crate::StackConnection {
        peer: "192.0.2.1:7".parse().unwrap(),
        sent: 4_000_000,
        received: 0,
        seconds: 0.5,
        rate_bps: 64_000_000,
        segments_sent: 2_741,
        segments_received: 1_400,
        retransmits: 3,
        timeouts: 1,
        rtt_us: Some(80_000),
        mss: Some(1_448),
        failure: Some("the peer reset the connection".to_owned()),
    };
    let connections =
        vec![crate::StackConnection { rtt_us: None, mss: None, failure: None, ..connection.clone() }, connection];
    let run = crate::StackRun { scenario: Some("hsdpa".to_owned()), connections, ..crate::StackRun::default() };
    hold(&[json::stack_run("stack connect", &run)], STACK_RUN, &[]);
}

fn predicted(published_s: Option<f64>, deviation: Option<f64>, fitted: bool) -> crate::DeviceRow {
    crate::DeviceRow {
        buffers: 5,
        role: "sends",
        seconds: 0.9,
        runs: 1,
        rate_bps: 35_000_000,
        retransmits: 0,
        early_dropped: 0,
        published_s,
        deviation,
        fitted,
        valid: true,
        held: None,
        asked: None,
    }
}

/// A device whose figures were published.
fn published_device() -> crate::DeviceTable {
    let rows = vec![
        predicted(None, None, false),
        predicted(Some(0.5), Some(0.8), true),
        predicted(Some(0.907), Some(-0.1), false),
    ];
    let fitted = vec!["the path's round-trip time".to_owned()];
    let published = Some("0.907 s".to_owned());
    crate::DeviceTable { rows, fitted, published, tolerance: 0.2, ..crate::DeviceTable::default() }
}

#[test]
fn only_predictions_of_a_device_table_can_be_wrong() {
    let mut table = published_device();
    assert_eq!(json::device_table("stack table", &table)["as_expected"], Value::Bool(true));
    table.rows.push(predicted(Some(2.0), Some(-0.55), false));
    assert!(!table.as_expected());
}

#[test]
fn every_key_of_a_device_table_is_documented_and_ones_own_has_memory_and_advice_in_place_of_published_figures() {
    let row = |buffers: u16, seconds| crate::DeviceRow {
        buffers,
        role: "sends",
        seconds,
        runs: 1,
        rate_bps: 35_000_000,
        retransmits: 0,
        early_dropped: 0,
        published_s: None,
        deviation: None,
        fitted: false,
        valid: true,
        held: Some(u64::from(buffers) * 3 + 5),
        asked: Some(u64::from(buffers) * 3 + 5),
    };
    let advice =
        crate::DeviceAdvice { sends: Some(20), receives: Some(5), connections: 1, pool: 256, buffer_bytes: 1_548 };
    let rows = vec![row(5, 2.0), row(20, 1.0), row(80, 0.99)];
    let mut table = crate::DeviceTable { rows, advice: Some(advice), sweep: "all", ..crate::DeviceTable::default() };
    let document = json::device_table("stack table", &table);
    assert_eq!(
        (&document["rows"][1]["memory_bytes"], &document["advice"]["sends"]),
        (&Value::from(100_620), &Value::from(20))
    );
    hold(&[document, json::device_table("stack table", &published_device())], DEVICE_TABLE, &[]);
    let text = |table: &crate::DeviceTable| {
        let text = crate::text::device_table(table, crate::text::Look::default());
        let text = anstream::adapter::strip_str(&text).to_string();
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let shown = text(&table);
    assert!(shown.contains("65 100,620 B set this"), "{shown}");
    assert!(
        shown.contains("more than three quarters of the pool") && shown.contains("SetOutOfOrderBuffers of 4"),
        "{shown}"
    );
    table.advice = Some(crate::DeviceAdvice { sends: None, receives: None, connections: 40, ..advice });
    assert!(text(&table).contains("nothing: 40 connections"), "{}", text(&table));
}

#[test]
fn every_key_of_the_presets_is_documented() {
    hold(&[json::preset_table("stack presets", &sample::presets())], PRESET_TABLE, &[]);
}

#[test]
fn every_key_of_a_plan_for_a_platform_is_documented() {
    let packets = fullpipe_knobs::Packets::default();
    let request = fullpipe_knobs::PlatformRequest {
        packets: &packets,
        ..fullpipe_knobs::PlatformRequest::new(
            "windows-2012".parse().unwrap(),
            fullpipe_units::Rate::from_bps(100_000_000),
            fullpipe_units::Micros::from_millis(80),
        )
    };
    let plan = fullpipe_knobs::plan_platform(&request);
    let mut export = fullpipe_knobs::export::export(&plan, &request.platform, None).unwrap();
    export.left_out.push(fullpipe_knobs::export::LeftOut {
        knob: fullpipe_knobs::Address::sysctl("net.ipv4.tcp_sack"),
        why: "x".to_owned(),
    });
    let point = crate::ForecastPoint {
        rate: fullpipe_units::Rate::from_bps(9),
        limiter: fullpipe_diagnose::Limiter::Path,
        detail: None,
    };
    let row = crate::ForecastRow { direction: "sends", before: point, after: point };
    let forecast_of_one = crate::ChangeForecast { rows: vec![row], not_predicted: Some("why".to_owned()) };
    let forecast =
        crate::PlanForecast { changes: vec![forecast_of_one], whole: vec![row], notes: vec!["a note".to_owned()] };
    let answer = crate::PlatformPlan {
        request: &request,
        plan: &plan,
        written: Some((&export, "folder")),
        forecast: Some(&forecast),
        has_path: true,
    };
    hold(&[json::plan("plan", &answer)], PLAN, &["changes"]);
}

#[test]
fn every_key_of_what_was_applied_is_documented() {
    let mut plan = sample::plan();
    plan.changes.truncate(2);
    plan.notes.push("a note".to_owned());
    let run = fullpipe_host::Run {
        id: Some(fullpipe_host::RunId(7)),
        applied: vec![fullpipe_host::Applied {
            address: fullpipe_knobs::Address::sysctl("net.ipv4.tcp_sack"),
            before: Some("0".to_owned()),
            wanted: Some("1".to_owned()),
            now: Some("1".to_owned()),
            takes_effect: fullpipe_knobs::TakesEffect::Restart,
            at_start: false,
        }],
        boot_files: vec!["/etc/sysctl.d/x.conf".into()],
        not_persisted: vec![fullpipe_knobs::Address::sysctl("net.ipv4.tcp_sack")],
        overridden: vec![fullpipe_host::Overridden::NotRead { drop_in: "/etc/sysctl.d/x.conf".into() }],
        waiting: vec![fullpipe_knobs::Address::sysctl("kern.ipc.maxsockbuf")],
    };
    let done = crate::AppliedPlan { plan: &plan, run: &run, confirm_within: Some(std::time::Duration::from_secs(60)) };
    let document = json::applied("apply", &done);
    assert_eq!(document["restart_needed"], true);
    hold(&[document], APPLIED, &["changes"]);
}

#[test]
fn every_key_of_what_was_taken_is_documented() {
    use fullpipe_knobs::verify::{Taken, Verified};
    let one = |taken, value: Option<&str>| Verified {
        knob: fullpipe_knobs::Address::sysctl("a.b"),
        to: value.map(str::to_owned),
        found: value.map(str::to_owned),
        taken,
        message: "taken".to_owned(),
    };
    let all = [one(Taken::Yes, Some("1")), one(Taken::No, None), one(Taken::Unknown, None)];
    let unread = ["after.reg, line 3, was not read: it looks cut off".to_owned()];
    hold(&[json::verified("plan", &all, &unread)], VERIFIED, &[]);
    let text = crate::text::verified(&all, &unread, crate::text::Look::default());
    assert!(text.contains("1 value as planned, 1 not, 1 unknown; not all of the file"), "{text}");
    assert!(text.contains("line 3"), "{text}");
}

#[test]
fn every_key_of_findings_is_documented() {
    let text = "net.ipv4.tcp_tw_recycle = 1\nnet.ipv4.tcp_window_scaling = 0\nnet.ipv4.tcp_sack = 1\n";
    let request = fullpipe_knobs::lint::LintRequest::default();
    let findings = fullpipe_knobs::lint::lint(fullpipe_knobs::recipe::Kind::Sysctl, text, &request);
    let document = json::findings("lint", &[("x.conf".to_owned(), findings)]);
    assert!(document["errors"].as_u64() > Some(0), "{document}");
    hold(&[document], FINDINGS, &[]);
}

#[test]
fn every_key_of_a_measurement_is_documented() {
    use fullpipe_measure::{Datagrams, TestSpec};
    let stream = sample::measurement();
    let mut datagrams = stream.clone();
    let became = Datagrams { packets: 100, lost: 1, out_of_order: Some(0), jitter_us: Some(12.5) };
    datagrams.directions[0].datagrams = Some(became);
    datagrams.directions[0].transfers.clear();
    let spec = TestSpec::default();
    let documents = [&stream, &datagrams].map(|measurement| {
        let measured = crate::Measured { host: "far", spec: &spec, measurement, series: true };
        json::measured("measure", &measured)
    });
    let samples = ["directions[].streams[].series.sender", "directions[].streams[].series.receiver"];
    hold(&documents, MEASURED, &samples);
}

#[test]
fn every_key_of_several_measurements_is_documented_and_fits_the_screen() {
    let survey = sample::survey();
    let document = json::survey("measure", &survey);
    let sizes = json::sizes_of(&document);
    let compared = json::comparison(document.clone(), &crate::Comparison::new(&sizes, &sizes));
    hold(&[document, compared], SURVEY, &[]);
    let text = crate::text::survey(&survey, crate::text::Look::default());
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("Nagle's algorithm and delayed acknowledgements hold"), "{text}");
    assert!(text.contains("a black hole") && text.contains("both ends sleep"), "{text}");
}

#[test]
fn the_layout_of_iperf3_has_the_keys_that_dashboards_read() {
    let (spec, measurement) = (fullpipe_measure::TestSpec::default(), sample::measurement());
    let measured = crate::Measured { host: "far", spec: &spec, measurement: &measurement, series: false };
    let document = json::iperf3(&measured);
    for pointer in [
        "/start/test_start/num_streams",
        "/intervals/0/streams/0/bits_per_second",
        "/intervals/0/streams/0/rttvar",
        "/intervals/0/streams/0/pmtu",
        "/intervals/0/sum/retransmits",
        "/end/streams/0/sender/mean_rtt",
        "/end/streams/0/receiver/bytes",
        "/end/sum_sent/bits_per_second",
        "/end/sum_received/bits_per_second",
        "/end/cpu_utilization_percent/remote_total",
        "/start/timestamp/timesecs",
        "/start/connected/0/local_port",
    ] {
        assert!(document.pointer(pointer).is_some_and(Value::is_number), "{pointer}: {document:#}");
    }
    assert_eq!(document["start"]["timestamp"]["time"], "Thu, 01 Jan 2026 00:00:00 GMT");
    assert_eq!(document["end"]["sum_received"]["bytes"], 2_000_000);
    assert_eq!(crate::csv::measured(&measured).lines().count(), 1 + 4);
}

#[test]
fn omitted_time_counts_only_in_intervals_that_say_so() {
    use fullpipe_units::{Bytes, Micros};
    let spec = fullpipe_measure::TestSpec {
        progress_every: std::time::Duration::from_secs(1),
        ..fullpipe_measure::TestSpec::default()
    };
    let mut measurement = sample::measurement();
    let direction = &mut measurement.directions[0];
    direction.omitted_us = Micros::from_millis(500);
    (direction.bytes, direction.seconds) = (Bytes::new(1_600_000), 1.5);
    let (bytes, sent) = (direction.bytes, Bytes::new(1_700_000));
    direction.counted =
        vec![fullpipe_measure::Counted { bytes, sent, duration_us: Micros::from_millis(1_500), retransmits: Some(2) }];
    let measured = crate::Measured { host: "far", spec: &spec, measurement: &measurement, series: false };
    let document = json::iperf3(&measured);
    let intervals = document["intervals"].as_array().unwrap().iter().map(|one| &one["sum"]);
    let found: Vec<_> =
        intervals.map(|sum| (sum["omitted"] == true, sum["start"].as_f64(), sum["end"].as_f64())).collect();
    // iperf3's clock starts again.
    assert_eq!(found, [(true, Some(0.0), Some(0.5)), (false, Some(0.0), Some(1.0)), (false, Some(1.0), Some(1.5))]);
    for (pointer, wanted) in [
        ("/end/sum_received/bytes", 1_600_000),
        ("/end/sum_sent/bytes", 1_700_000),
        ("/end/streams/0/receiver/bytes", 1_600_000),
        ("/end/streams/0/sender/bytes", 1_700_000),
        ("/end/streams/0/sender/retransmits", 2),
    ] {
        assert_eq!(document.pointer(pointer), Some(&Value::from(wanted)), "{pointer}");
    }
    assert_eq!(document["end"]["sum_received"]["seconds"], 1.5);
    let text = crate::text::measured(&measured, crate::text::Look::default());
    assert!(text.contains("the first 0.50 s") && !text.contains("without slow start"), "{text}");
}

#[test]
fn intervals_of_datagrams_have_their_own_figures() {
    let spec = fullpipe_measure::TestSpec {
        udp: Some(fullpipe_measure::UdpSpec { counters_64bit: false }),
        progress_every: std::time::Duration::from_secs(1),
        ..fullpipe_measure::TestSpec::default()
    };
    let sample = |at_s: u64| fullpipe_measure::DatagramSample {
        at_us: fullpipe_units::Micros::from_secs(at_s),
        packets: 90 * at_s,
        bytes: 9_000 * at_s,
        lost: Some(10 * at_s),
        out_of_order: Some(0),
        jitter_us: Some(12.5),
    };
    let mut measurement = sample::measurement();
    let direction = &mut measurement.directions[0];
    direction.direction = fullpipe_measure::Direction::Down;
    (direction.transfers, direction.datagram_series) = (Vec::new(), (0..=2).map(sample).collect());
    let measured = crate::Measured { host: "far", spec: &spec, measurement: &measurement, series: false };
    let lines = [
        "direction,from_s,to_s,bytes,rate_bps,packets,lost,out_of_order,jitter_us",
        "down,0.000,1.000,9000,72000,90,10,0,12.5",
        "down,1.000,2.000,9000,72000,90,10,0,12.5",
    ];
    assert_eq!(crate::csv::measured(&measured).lines().collect::<Vec<_>>(), lines);
    let sum = json::iperf3(&measured)["intervals"][1]["sum"].clone();
    assert_eq!((sum["packets"].as_u64(), sum["lost_percent"].as_f64()), (Some(100), Some(10.0)), "{sum}");
}

#[test]
fn every_key_of_the_list_of_scenarios_is_documented() {
    let names = ["wan-80ms", "bluetooth-hop"];
    let scenarios = names.map(|name| fullpipe_path::Scenario::named(name).unwrap());
    hold(&[json::scenarios("lab list", &scenarios)], SCENARIOS, &[]);
}

const TIME: &str = "2026-01-01T00:00:00Z";

#[test]
fn a_page_is_a_document() {
    hold(&[json::page("man", ".TH x")], PAGE, &[]);
    let address = "[::]:5201".parse().unwrap();
    let listening = [("serve", None), ("web", Some("http://[::]:5201/"))]
        .map(|(command, url)| json::listening(command, TIME, address, url));
    hold(&listening, LISTENING, &[]);
    let steps = [
        serde_json::json!({ "kind": "phase", "text": "measuring a->b", "expected_s": 8.5 }),
        serde_json::json!({ "kind": "tick", "elapsed_s": 0.5, "rate_bps": 1, "rtt_us": 1 }),
        serde_json::json!({
            "kind": "tick", "elapsed_s": 0.5, "expected_s": null, "up_bps": 1, "down_bps": null, "rtt_us": null, "cwnd": 1,
            "window": 1, "retransmissions": 1,
        }),
    ];
    hold(&steps.map(|step| json::progress("check", TIME, &step)), PROGRESS, &[]);
    let event = json::Event {
        command: "serve",
        level: "info",
        kind: "test_ended",
        text: "1 stream",
        peer: Some("192.0.2.1:4711"),
        target: None,
        fields: &serde_json::Map::new(),
    };
    let logged = json::Event { kind: "log", peer: None, target: Some("fullpipe_measure"), ..event };
    hold(&[event, logged].map(|event| json::event(&event, TIME)), EVENT, &[]);
}

#[test]
fn hostile_text_survives_as_a_value_and_never_reaches_a_terminal() {
    let document = json::outcome("demo", &sample::hostile());
    let text = json::to_string(&document);
    assert!(!text.chars().any(|c| c != '\n' && fullpipe_page::is_harmful(c)), "{text}");
    let read: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(read, document);
}

/// Every key in `documents` is documented with its type, and every documented key occurs in one of them.
fn hold(documents: &[Value], keys: &[Key], nested_like_others: &[&str]) {
    let mut found = BTreeMap::new();
    for document in documents {
        assert_eq!(document["schema"], json::SCHEMA);
        walk(String::new(), document, &mut found);
    }
    let known: BTreeMap<_, _> = COMMON.iter().chain(keys).map(|key| (key.path, key.kind)).collect();
    for (path, kinds) in &found {
        if nested_like_others.iter().any(|prefix| path.starts_with(&format!("{prefix}[]."))) {
            continue;
        }
        let kind = known.get(path.as_str()).unwrap_or_else(|| panic!("{path} is not documented"));
        for found in kinds {
            let fits = kind.trim_end_matches('?') == *found
                || (*found == "null" && kind.ends_with('?'))
                || (*found == "integer" && kind.starts_with("number"));
            assert!(fits, "{path} is documented as {kind} and is {found}");
        }
    }
    for path in known.keys() {
        assert!(found.contains_key(*path), "{path} is documented and in no document");
    }
}

fn walk(path: String, value: &Value, found: &mut BTreeMap<String, BTreeSet<&'static str>>) {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        // An array is documented by its elements.
        Value::Array(elements) => {
            for element in elements {
                walk(format!("{path}[]"), element, found);
            }
            return;
        }
        Value::Object(_) => "object",
    };
    if !path.is_empty() {
        found.entry(path.clone()).or_default().insert(kind);
    }
    if let Value::Object(members) = value {
        for (name, member) in members {
            let name = if path.ends_with("shares") || path.ends_with("sides") || path == "rows[].seconds" {
                "*"
            } else {
                name
            };
            let dot = if path.is_empty() { "" } else { "." };
            walk(format!("{path}{dot}{name}"), member, found);
        }
    }
}

/// A folder that plays the host, and a journal with an undone run, one that stands and one that somebody overwrote.
fn journal() -> (tempfile::TempDir, FolderHost, Journal) {
    let folder = tempfile::tempdir().unwrap();
    let sysctls = folder.path().join("proc/sys/net/ipv4");
    std::fs::create_dir_all(&sysctls).unwrap();
    std::fs::create_dir_all(folder.path().join("etc/sysctl.d")).unwrap();
    for (name, value) in [("tcp_window_scaling", "0\n"), ("tcp_rmem", "4096\t87380\t129024\n")] {
        std::fs::write(sysctls.join(name), value).unwrap();
    }
    let mut host = FolderHost::new(folder.path());
    let mut journal = Journal::in_memory().unwrap();
    let changes = &sample::plan().changes;
    let options = ApplyOptions {
        command: "fullpipe tune far.example".to_owned(),
        persist: Some(folder.path().join("etc/sysctl.d")),
        ..ApplyOptions::default()
    };
    let first = fullpipe_host::apply(&mut host, &mut journal, &changes[..1], &options).unwrap().id.unwrap();
    fullpipe_host::undo(&mut host, &mut journal, Which::Run(first), UndoOptions::default()).unwrap();
    for change in &changes[..2] {
        fullpipe_host::apply(&mut host, &mut journal, std::slice::from_ref(change), &options).unwrap();
    }
    std::fs::write(sysctls.join("tcp_rmem"), "4096\t1\t2\n").unwrap();
    (folder, host, journal)
}

#[test]
fn every_key_about_the_journal_is_documented_and_exists() {
    let (folder, mut host, mut journal) = journal();
    let history = journal.history().unwrap();
    assert_eq!(history.len(), 3);
    let standing: Vec<_> = history
        .iter()
        .map(|run| {
            Standing::new(run.clone(), |entry| match host.read(&entry.place.parse().unwrap()) {
                Ok(now) if now.as_deref() == Some("1") => Reading::AsSet,
                Ok(now) => Reading::Other(now),
                Err(error) => Reading::Unreadable(error.to_string()),
            })
        })
        .collect();
    let recorded: Vec<_> = history.iter().cloned().map(Standing::recorded).collect();
    hold(&[json::history("history", &recorded)], RUNS, &[]);
    let both: Vec<_> = RUNS.iter().chain(STATUS).copied().collect();
    let mut theirs = Journal::in_memory().unwrap();
    let wmem = fullpipe_knobs::Address::sysctl("net.ipv4.tcp_wmem");
    std::fs::write(folder.path().join("proc/sys/net/ipv4/tcp_wmem"), "4096\t16384\t4194304\n").unwrap();
    let changes = [fullpipe_knobs::Change::unexplained(
        String::new(),
        wmem,
        Some("4096 16384 4194304".into()),
        Some("4096 16384 9000000".into()),
    )];
    fullpipe_host::apply(&mut host, &mut theirs, &changes, &ApplyOptions::default()).unwrap();
    host.write(&changes[0].knob, Some("4096 16384 8000000")).unwrap();
    let leave = UndoOptions { leave_changed: true, ..UndoOptions::default() };
    fullpipe_host::undo(&mut host, &mut theirs, Which::All, leave).unwrap();
    let left = fullpipe_host::left(&mut host, &theirs).unwrap();
    let status = json::status("status", &standing, &left, None);
    hold(std::slice::from_ref(&status), &both, &[]);
    assert_eq!(status["left_behind"], true);
    let dry = UndoOptions { dry_run: true, ..UndoOptions::default() };
    let would = fullpipe_host::undo(&mut host, &mut journal, Which::All, dry).unwrap();
    let report = fullpipe_host::undo(&mut host, &mut journal, Which::All, UndoOptions::default()).unwrap();
    let undo = json::undo("undo", &report);
    let problem = Problem { kind: "not_confirmed", message: "nobody to ask".to_owned(), hint: None };
    let refused = json::undo_not_confirmed("undo", &would, &problem);
    assert_eq!(
        refused["changes"].as_array().map(Vec::len),
        Some(3),
        "all that stands but the setting that somebody changed: {refused}"
    );
    assert_eq!(refused["error"]["kind"], "not_confirmed");
    assert_eq!(refused["changes"], undo["changes"], "what is told before is what is done");
    hold(std::slice::from_ref(&undo), UNDO, &[]);
    assert_eq!(undo["complete"], false, "somebody changed tcp_rmem, so it was left alone: {undo}");
}
