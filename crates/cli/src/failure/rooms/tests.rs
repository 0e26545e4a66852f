//! One error of each family and kind, as a user meets it.

use std::time::Duration;

use fullpipe_knobs::Address;
use fullpipe_report::json;

use super::*;

fn io(kind: io::ErrorKind) -> io::Error {
    kind.into()
}

#[test]
fn every_situation_that_a_user_can_meet_has_its_kind() {
    let peer = "192.0.2.1:5201".parse().unwrap();
    let knob = Address::sysctl("net.ipv4.tcp_rmem");
    let path = std::path::PathBuf::from("/state");
    let cases: Vec<(Failure, &str)> = vec![
        (MeasureError::BadTarget { text: "a b".into() }.into(), "usage"),
        (
            MeasureError::UnknownName { host: "no.example".into(), source: io(io::ErrorKind::Other) }.into(),
            "name_unknown",
        ),
        (MeasureError::Unreachable { peer, source: io(io::ErrorKind::HostUnreachable) }.into(), "unreachable"),
        (MeasureError::Refused { peer }.into(), "refused"),
        (MeasureError::NoIperf2 { peer }.into(), "refused"),
        (MeasureError::Timeout { peer, operation: "connecting", after: Duration::from_secs(5) }.into(), "unreachable"),
        (MeasureError::Busy { peer }.into(), "busy"),
        (MeasureError::NotAServer { peer, foreign: fullpipe_measure::Foreign::Http }.into(), "not_a_server"),
        (MeasureError::VersionMismatch { peer, theirs: 2, ours: 1 }.into(), "version_mismatch"),
        (MeasureError::Closed { peer, operation: "measuring" }.into(), "connection_lost"),
        (
            MeasureError::Refusal { peer, request: "apply".into(), kind: "k".into(), message: "no".into() }.into(),
            "peer_declined",
        ),
        (MeasureError::Cancelled.into(), "interrupted"),
        (MeasureError::Bind { address: peer, source: io(io::ErrorKind::AddrInUse) }.into(), "address_unavailable"),
        (MeasureError::Bind { address: peer, source: io(io::ErrorKind::PermissionDenied) }.into(), "no_permission"),
        (
            HostError::NoPermission {
                operation: "write",
                address: knob.clone(),
                source: io(io::ErrorKind::PermissionDenied),
            }
            .into(),
            "no_permission",
        ),
        (HostError::ReadOnly { address: knob.clone(), why: "here" }.into(), "setting_unavailable"),
        (
            HostError::Missing { operation: "read", address: knob.clone(), platform: "linux 2.6".into() }.into(),
            "setting_unavailable",
        ),
        (JournalError::JournalLocked { path: path.clone(), pid: Some(7) }.into(), "journal_locked"),
        (JournalError::StateDir { path: path.clone(), source: io(io::ErrorKind::StorageFull) }.into(), "disk_full"),
        (JournalError::StateDir { path, source: io(io::ErrorKind::NotADirectory) }.into(), "journal_unusable"),
        (MeshError::Folder { store: "/s".into(), source: io(io::ErrorKind::StorageFull) }.into(), "disk_full"),
        (MeshError::Layout { store: "/s".into(), found: 9, known: 1 }.into(), "input_invalid"),
        (MeshError::ReadOnly { store: "/s".into() }.into(), "no_permission"),
        (MeshError::Address { problem: String::new() }.into(), "usage"),
        (MeshError::NoPostgres.into(), "unsupported"),
        (MeshError::Interrupted.into(), "interrupted"),
        (JournalError::NoSuchRun { run: fullpipe_host::RunId(9) }.into(), "run_unknown"),
        (ApplyFault::Stale { address: knob, planned: None, now: Some("1".into()) }.into(), "changed_since"),
        (LabError::AppArmor.into(), "no_permission"),
        (LabError::TunMissing.into(), "unsupported"),
        (CouldNotKeepUp::Lost { packets: 3, place: "the device's queue" }.into(), "path_not_kept"),
        (fullpipe_path::Scenario::named("wan-81ms").unwrap_err().into(), "scenario_invalid"),
        (TuneError::Interrupted.into(), "interrupted"),
    ];
    for (failure, kind) in cases {
        let problem = failure.problem();
        assert_eq!(problem.kind, kind, "{problem:?}");
        assert!(!problem.message.is_empty());
        let document = json::problem("check", &problem);
        assert_eq!(document["error"]["kind"], kind);
    }
}

#[test]
fn a_scenario_that_is_not_there_is_answered_with_those_that_are() {
    let problem = Failure::from(fullpipe_path::Scenario::named("wan-81ms").unwrap_err()).problem();
    assert_eq!(problem.message, "no scenario is named `wan-81ms`");
    assert!(problem.hint.unwrap().contains("wan-80ms"));
}

#[test]
fn a_failed_change_says_whether_something_stays_changed() {
    let fault = HostError::ReadOnly { address: Address::sysctl("net.ipv4.tcp_rmem"), why: "here" };
    let problem = Failure::from(ApplyError { fault: Box::new(fault.into()), rollback: Vec::new() }).problem();
    assert!(problem.message.ends_with("(nothing stays changed)"), "{problem:?}");
}
