//! What `mesh` found, as it is shown.

use fullpipe_mesh::{Cell, Hosts, Verdict};

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
