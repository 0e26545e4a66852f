//! From a diagnosis to a plan.
//!
//! What is *not* here: measuring, reading and writing (the caller brings what was read), and judging what limits a
//! transfer (`diagnose`). The planner believes the diagnosis and asks one question: which setting of which host holds
//! this limiter down, and what is the smallest value that fills the pipe?
//!
//! What it never does:
//! - lower a value, or change one that the administrator set in a boot-time file, unless that is allowed for;
//! - propose anything where the path, the application or nothing at all is the limit;
//! - promise more memory than the bound that it states.
//!
//! A value that differs from the kernel's default but stands in no file may be raised: the diagnosis names it as the
//! limit, raising a ceiling takes nothing away from anyone, and the change is undone exactly.

mod authority;
mod autotuning;
pub(crate) mod bsd;
pub mod destination;
mod linux;
mod mtu;
pub(crate) mod netburner;
mod notes;
mod platform;
mod route;
mod settle;
pub(crate) mod sizing;
pub(crate) mod templates;
pub(crate) mod windows;

use core::net::IpAddr;

use fullpipe_diagnose::{Diagnosis, Limiter, PathRate, Transfer};
use fullpipe_units::{Bytes, Micros};

use crate::Plan;

pub use authority::conflicts;
pub use fullpipe_units::sizing::Goal;
pub use platform::{PlatformRequest, plan_platform};

/// What the planner is asked.
#[derive(Clone, Debug)]
pub struct PlanRequest<'a> {
    /// The hosts whose settings could be read, by the names that the transfers' ends have.
    pub hosts: Vec<PlanHost<'a>>,
    /// The transfers and what was found to limit them: one, or one for each direction.
    pub flows: Vec<Flow<'a>>,
    /// The rate to plan for, where the user names one. It takes the place of each transfer's own path rate.
    pub rate: Option<PathRate>,
    /// The round-trip time to plan for, where the user names one, instead of the transfer's idle median.
    pub rtt: Option<Micros>,
    /// How many connections may fill their buffers at once, at least 1. It decides the memory, and only that.
    pub connections: u32,
    /// The most memory that TCP buffers of a host may take in the worst case. Absent: the host's own bound, which is
    /// the second value of `tcp_mem` (above it the kernel holds buffers back by itself) or a sixteenth of its memory.
    pub memory_bound: Option<Bytes>,
    /// What the hosts are for.
    pub goal: Goal,
    /// Whether values that the administrator set in boot-time files may be raised, too.
    pub allow_override: bool,
    /// Whether no transfer was measured: then what harms any lossy or fast path is turned on, too.
    pub(crate) is_assumed: bool,
}

/// One host of a request.
#[derive(Clone, Copy, Debug)]
pub struct PlanHost<'a> {
    /// Its name, as in `End::name`.
    pub name: &'a str,
    /// Its settings.
    pub settings: &'a crate::Settings,
    /// The address of the other end, which tells the route in use. Absent: every route that can bound the transfer
    /// counts.
    pub peer: Option<IpAddr>,
}

/// One direction and its diagnosis.
#[derive(Clone, Copy, Debug)]
pub struct Flow<'a> {
    /// What passed.
    pub transfer: &'a Transfer,
    /// What limited it.
    pub diagnosis: &'a Diagnosis,
}

impl<'a> PlanRequest<'a> {
    /// How many connections a plan counts on when nobody says: the parallel streams of a few bulk clients, and few
    /// enough that a small machine's memory bound doesn't cut the value below what one connection needs.
    pub const DEFAULT_CONNECTIONS: u32 = 16;

    /// A request with the defaults.
    pub fn new(hosts: Vec<PlanHost<'a>>, flows: Vec<Flow<'a>>) -> Self {
        Self {
            hosts,
            flows,
            rate: None,
            rtt: None,
            connections: Self::DEFAULT_CONNECTIONS,
            memory_bound: None,
            goal: Goal::Bulk,
            allow_override: false,
            is_assumed: false,
        }
    }

    /// The host named `name`.
    pub(crate) fn host(&self, name: &str) -> Option<&PlanHost<'a>> {
        self.hosts.iter().find(|host| host.name == name)
    }
}

/// What to set on which host so that the transfers fill their path, and why.
///
/// Planning again on settings with the plan applied, with the same transfers, gives no further change, as long as these
/// ran under the settings that the first plan was given.
pub fn plan(request: &PlanRequest<'_>) -> Plan {
    let mut plan = Plan::default();
    for host in &request.hosts {
        for conflict in conflicts(host.settings) {
            plan.notes.push(format!("{}: {conflict}", host.name));
        }
    }
    let mut wanted = linux::Wanted::default();
    for flow in &request.flows {
        match flow.diagnosis.limiter {
            Limiter::ReceiveWindow => linux::receive_window(request, flow, &mut wanted, &mut plan),
            Limiter::SendBuffer => linux::send_buffer(request, flow, &mut wanted, &mut plan),
            _ => notes::other_limiters(request, flow, &mut wanted, &mut plan),
        }
    }
    if request.is_assumed {
        linux::recovery(request, &mut wanted);
    }
    settle::settle(request, &wanted, &mut plan);
    plan
}

#[cfg(test)]
mod platform_tests;
#[cfg(test)]
mod tests;
