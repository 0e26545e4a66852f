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

/// A plan, and what each direction alone would have of it.
#[derive(Clone, Debug)]
pub(crate) struct Planned {
    /// For all directions.
    pub(crate) whole: Plan,
    /// For each direction alone.
    pub(crate) of_each: Vec<Plan>,
    /// What the path was seen to carry, for a direction that something is changed for, is the least that it carries.
    pub(crate) path_may_carry_more: bool,
}

impl Planned {
    /// With what `further` adds, which was planned for the directions `tried` with this plan in force.
    pub(crate) fn gone_on(&self, tried: &[usize], further: Self) -> Self {
        let mut of_each = self.of_each.clone();
        for (&at, plan) in tried.iter().zip(further.of_each) {
            of_each[at] = gone_on(&of_each[at], plan);
        }
        Self { whole: gone_on(&self.whole, further.whole), of_each, path_may_carry_more: further.path_may_carry_more }
    }
}

/// Two plans in turn as one: what the second one sets, from what there was before the first.
fn gone_on(first: &Plan, second: Plan) -> Plan {
    let same = |a: &Change, b: &Change| a.host == b.host && a.knob == b.knob;
    let (again, new): (Vec<Change>, Vec<Change>) =
        second.changes.into_iter().partition(|change| first.changes.iter().any(|before| same(before, change)));
    let mut changes: Vec<Change> = first.changes.clone();
    for change in again {
        for before in changes.iter_mut().filter(|before| same(before, &change)) {
            let Change { from, undo, reason, .. } = before.clone();
            *before = Change { from, undo, reason, ..change.clone() };
        }
    }
    changes.extend(new);
    changes.retain(|change| change.from != change.to);
    let notes = second.notes.into_iter().filter(|note| !first.notes.contains(note));
    Plan { changes, notes: first.notes.iter().cloned().chain(notes).collect() }
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
pub(crate) fn groups(planned: &Planned) -> Vec<Group> {
    let Planned { whole, of_each, .. } = planned;
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

/// The directions of all groups, in order.
pub(crate) fn directions(groups: &[Group]) -> Vec<usize> {
    groups.iter().flat_map(|group| &group.directions).copied().collect::<BTreeSet<_>>().into_iter().collect()
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

    fn planned(whole: &[Change], of_each: &[&[Change]]) -> Planned {
        let of_each = of_each.iter().map(|changes| plan_of(changes)).collect();
        Planned { whole: plan_of(whole), of_each, path_may_carry_more: false }
    }

    #[test]
    fn changes_for_different_directions_are_proved_apart() {
        let (window, buffer) = (change("b", "net.ipv4.tcp_rmem"), change("b", "net.ipv4.tcp_wmem"));
        let groups = groups(&planned(
            &[window.clone(), buffer.clone()],
            &[std::slice::from_ref(&window), std::slice::from_ref(&buffer)],
        ));
        assert_eq!(groups.len(), 2);
        assert_eq!(groups[0], Group { directions: [0].into(), changes: vec![window] });
        assert_eq!(groups[1], Group { directions: [1].into(), changes: vec![buffer] });
        assert_eq!(directions(&groups), [0, 1]);
    }

    #[test]
    fn a_change_for_both_directions_binds_them_together() {
        let scaling = change("b", "net.ipv4.tcp_window_scaling");
        let (window, other) = (change("b", "net.ipv4.tcp_rmem"), change("a", "net.ipv4.tcp_rmem"));
        let groups = groups(&planned(
            &[window.clone(), other.clone(), scaling.clone()],
            &[&[window.clone(), scaling.clone()], &[other.clone(), scaling.clone()]],
        ));
        assert_eq!(groups, [Group { directions: [0, 1].into(), changes: vec![window, other, scaling] }]);
    }

    #[test]
    fn a_plan_that_is_gone_on_with_goes_from_what_there_was_and_is_undone_to_that() {
        let set = |knob: &str, from: &str, to: &str| Change {
            from: Some(from.to_owned()),
            to: Some(to.to_owned()),
            undo: format!("set {from}"),
            ..change("b", knob)
        };
        let (window, scaling) = ("net.ipv4.tcp_rmem", "net.ipv4.tcp_window_scaling");
        let first = [set(window, "1", "2"), set(scaling, "0", "1")];
        let further = [set(window, "2", "3"), set("net.ipv4.tcp_wmem", "4", "5")];
        // The second direction alone was tried and measured again.
        let whole = planned(&first, &[&[], &first]).gone_on(&[1], planned(&further, &[&further]));
        let expected = [set(window, "1", "3"), first[1].clone(), further[1].clone()];
        assert_eq!(whole.whole.changes, expected);
        assert_eq!((whole.of_each[0].changes.len(), &whole.of_each[1].changes[..]), (0, &expected[..]));

        let back = [set(window, "2", "1")];
        let back = planned(&first, &[&first]).gone_on(&[0], planned(&back, &[&back]));
        assert_eq!(back.whole.changes, first[1..], "what is as it was is no change");
    }
}
