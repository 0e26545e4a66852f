//! The documents of `mesh`.

use fullpipe_mesh::{EarlierRun, Role, SuspectKind};
use serde_json::{Value, json};

use super::document;
use crate::MeshReport;

/// What `mesh` found.
pub fn mesh(command: &str, found: &MeshReport<'_>) -> Value {
    let name = |place: usize| found.hosts.hosts[place].name.as_str();
    let verdict = found.verdict;
    let directions = found.cells.iter().enumerate().map(|(place, cell)| {
        let slow = verdict.slow.iter().find(|slow| slow.cell == place);
        let slower = verdict.slower.iter().find(|slower| slower.cell == place);
        let measured = cell.found.as_ref().ok();
        json!({
            "from": name(cell.from),
            "to": name(cell.to),
            "rate_bps": measured.map(|found| found.rate),
            "rtt_us": measured.and_then(|found| found.rtt),
            "limiter": measured.map(|found| found.limiter),
            "error": cell.found.as_ref().err(),
            "unable": cell.unable.as_ref().map(|unable| {
                json!({ "host": name(unable.host), "error": unable.why, "text": found.hosts.one_sided(cell) })
            }),
            "slow": slow.is_some(),
            "against_bps": slow.map(|slow| slow.against),
            "against": slow.map(|slow| if slow.is_declared { "declared" } else { "median" }),
            "slower": slower.is_some(),
            "before_bps": slower.map(|slower| slower.before),
        })
    });
    let suspect = verdict.suspect.as_ref().map(|suspect| {
        let (kind, names, role) = match &suspect.kind {
            SuspectKind::Host(place, role) => ("host", vec![name(*place)], *role),
            SuspectKind::Site(site, role) => ("site", vec![site.as_str()], *role),
            SuspectKind::Sites(a, b) => ("sites", vec![a.as_str(), b.as_str()], Role::Both),
            SuspectKind::Pair(a, b) => ("pair", vec![name(*a), name(*b)], Role::Both),
        };
        json!({
            "kind": kind,
            "names": names,
            "role": match role { Role::Both => "both", Role::Sends => "sender", Role::Receives => "receiver" },
            "directions": suspect.directions,
            "bad": suspect.bad,
            "limiter": suspect.limiter,
            "text": found.who(&suspect.kind),
            "action": found.next(&suspect.kind),
        })
    });
    document(
        command,
        json!({
            "mesh": found.hosts.name,
            "run": found.run,
            "hosts": found.hosts.hosts.iter()
                .map(|host| json!({ "name": host.name, "site": host.site, "address": host.address })).collect::<Vec<_>>(),
            "directions": directions.collect::<Vec<_>>(),
            "bad": verdict.bad,
            "suspect": suspect,
        }),
    )
}

/// Earlier runs of a mesh.
pub fn mesh_history(command: &str, name: &str, runs: &[EarlierRun]) -> Value {
    let run = |run: &EarlierRun| {
        let cell = |cell: &fullpipe_mesh::EarlierCell| {
            json!({
                "from": cell.from, "to": cell.to, "rate_bps": cell.rate, "rtt_us": cell.rtt,
                "limiter": cell.limiter, "error": cell.error,
            })
        };
        json!({
            "run": run.number,
            "started": run.started,
            "directions": run.cells.iter().map(cell).collect::<Vec<_>>(),
        })
    };
    document(command, json!({ "mesh": name, "runs": runs.iter().map(run).collect::<Vec<_>>() }))
}
