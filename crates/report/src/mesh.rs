//! What `mesh` found, as it is shown.

use fullpipe_mesh::{Cell, Hosts, Role, SuspectKind, Verdict};

/// A mesh that was measured.
#[derive(Clone, Copy, Debug)]
pub struct MeshReport<'a> {
    /// The hosts.
    pub hosts: &'a Hosts,
    /// Every direction.
    pub cells: &'a [Cell],
    /// What is said of them.
    pub verdict: &'a Verdict,
    /// The number of the run in the store.
    pub run: Option<i64>,
}

impl MeshReport<'_> {
    /// Who is suspected, in words.
    pub(crate) fn who(&self, kind: &SuspectKind) -> String {
        let host = |place: &usize| self.hosts.hosts[*place].name.as_str();
        let role = |role: &Role| match role {
            Role::Both => "",
            Role::Sends => " when it sends",
            Role::Receives => " when it receives",
        };
        match kind {
            SuspectKind::Host(place, as_what) => format!("host {}{}", host(place), role(as_what)),
            SuspectKind::Site(site, as_what) => format!("site {site}, to and from the other sites{}", role(as_what)),
            SuspectKind::Sites(a, b) => format!("between the sites {a} and {b}"),
            SuspectKind::Pair(a, b) => format!("between {} and {}", host(a), host(b)),
        }
    }

    /// Where to look next.
    pub(crate) fn next(&self, kind: &SuspectKind) -> String {
        match kind {
            SuspectKind::Host(place, _) => {
                let name = &self.hosts.hosts[*place].name;
                format!("look at {name}: `fullpipe settings --changed` there, its interface, its load")
            }
            SuspectKind::Site(site, _) => format!("look at what all of {site} goes through: its uplink, its firewall"),
            SuspectKind::Sites(..) => "look at what lies between the two".to_owned(),
            SuspectKind::Pair(a, b) => {
                let [a, b] = [a, b].map(|place| &self.hosts.hosts[*place]);
                format!("on {}: `fullpipe check {}` says more", a.name, b.address)
            }
        }
    }
}
