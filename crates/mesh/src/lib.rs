//! Many hosts: each pair measured in turn by `fullpipe check` on one of the two, the matrix that comes of it, the one host
//! or site that is wrong, and a store of earlier runs against which a drop is noticed.
//!
//! What is *not* here: measuring and judging a pair (the program on the hosts does both, and its document is read), and
//! showing anything (`report`).

mod error;
mod hosts;
mod measure;
mod store;
mod verdict;

pub use error::{Fault, MeshError, StoreError};
pub use hosts::{Host, Hosts, LARGEST, SitePath};
pub use measure::{Cell, Found, Test, Unable, measure};
pub use store::{EarlierCell, EarlierRun, Store};
pub use verdict::{Criteria, Role, Slow, Slower, Suspect, SuspectKind, Verdict, judge};
