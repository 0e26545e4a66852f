//! The plan over both ends, and which direction each of its changes is for.

use std::{collections::BTreeSet, net::IpAddr};

use fullpipe_diagnose::PathRate;
use fullpipe_knobs::{
    Change, Plan, Settings,
    planner::{Flow, PlanHost, PlanRequest, plan},
};

use crate::outcome::Direction;

/// One end as the planner sees it.
pub(crate) struct PlannedHost<'a> {
    pub(crate) name: &'a str,
    pub(crate) settings: &'a Settings,
    pub(crate) peer: Option<IpAddr>,
}

/// What the user wants of a plan.
#[derive(Clone, Copy, Debug)]
pub struct PlanOptions {
    /// The rate to plan for, instead of the one that the path was seen to carry.
    pub rate: Option<fullpipe_units::Rate>,
    /// How many connections may fill their buffers at once.
    pub connections: u32,
    /// The most memory that TCP buffers of a host may take.
    pub memory_bound: Option<fullpipe_units::Bytes>,
    /// Whether values that the administrator set in boot-time files may be raised, too.
    pub allow_override: bool,
}

impl Default for PlanOptions {
    fn default() -> Self {
        Self { rate: None, connections: PlanRequest::DEFAULT_CONNECTIONS, memory_bound: None, allow_override: false }
    }
}

/// Changes that stand or fall together, and the directions that they are for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Group {
    /// Indices into the directions.
    pub(crate) directions: BTreeSet<usize>,
    /// In the plan's order.
    pub(crate) changes: Vec<Change>,
}

/// The plan for all directions.
pub(crate) fn for_directions(hosts: &[PlannedHost<'_>], directions: &[&Direction], plan_options: &PlanOptions) -> Plan {
    let flows: Vec<Flow<'_>> = directions
        .iter()
        .filter_map(|direction| Some(Flow { transfer: direction.transfers.first()?, diagnosis: &direction.diagnosis }))
        .collect();
    let hosts =
        hosts.iter().map(|host| PlanHost { name: host.name, settings: host.settings, peer: host.peer }).collect();
    let mut request = PlanRequest::new(hosts, flows);
    request.rate = plan_options.rate.map(|rate_bps| PathRate { rate_bps, lower_bound: false });
    request.connections = plan_options.connections;
    request.memory_bound = plan_options.memory_bound;
    request.allow_override = plan_options.allow_override;
    plan(&request)
}

/// Splits a plan into what can be proved apart: a change belongs to each direction whose own plan has it, and
/// directions that share a change share their fate.
pub(crate) fn groups(whole: &Plan, of_each: &[Plan]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for change in &whole.changes {
        let has = |plan: &Plan| plan.changes.iter().any(|c| c.host == change.host && c.knob == change.knob);
        let mut group = Group {
            directions: of_each.iter().enumerate().filter(|(_, plan)| has(plan)).map(|(i, _)| i).collect(),
            changes: Vec::new(),
        };
        let (joined, apart): (Vec<Group>, Vec<Group>) =
            groups.into_iter().partition(|other| !other.directions.is_disjoint(&group.directions));
        for other in joined {
            group.directions.extend(other.directions);
            group.changes.extend(other.changes);
        }
        group.changes.push(change.clone());
        groups = apart;
        groups.push(group);
    }
    groups
}

#[cfg(test)]
mod tests {
    use fullpipe_knobs::Address;

    use super::*;

    fn change(host: &str, knob: &str) -> Change {
        Change::unexplained(host.to_owned(), knob.parse::<Address>().unwrap(), None, Some("1".to_owned()))
    }

    fn plan_of(changes: &[Change]) -> Plan {
        Plan { changes: changes.to_vec(), notes: Vec::new() }
    }

    #[test]
    fn changes_for_different_directions_are_proved_apart() {
        let (window, buffer) = (change("b", "net.ipv4.tcp_rmem"), change("b", "net.ipv4.tcp_wmem"));
        let groups = groups(
            &plan_of(&[window.clone(), buffer.clone()]),
            &[plan_of(std::slice::from_ref(&window)), plan_of(std::slice::from_ref(&buffer))],
        );
        assert_eq!(groups.len(), 2);
        assert_eq!(groups[0], Group { directions: [0].into(), changes: vec![window] });
        assert_eq!(groups[1], Group { directions: [1].into(), changes: vec![buffer] });
    }

    #[test]
    fn a_change_for_both_directions_binds_them_together() {
        let scaling = change("b", "net.ipv4.tcp_window_scaling");
        let (window, other) = (change("b", "net.ipv4.tcp_rmem"), change("a", "net.ipv4.tcp_rmem"));
        let groups = groups(
            &plan_of(&[window.clone(), other.clone(), scaling.clone()]),
            &[plan_of(&[window.clone(), scaling.clone()]), plan_of(&[other.clone(), scaling.clone()])],
        );
        assert_eq!(groups, [Group { directions: [0, 1].into(), changes: vec![window, other, scaling] }]);
    }
}
