//! Why the loop could not go on. Whatever it is, what was on trial was undone before.

use std::{io, net::IpAddr};

use fullpipe_host::{ApplyError, HostError, JournalError};
#[cfg(target_os = "linux")]
use fullpipe_lab::{CouldNotKeepUp, LabError};
use fullpipe_measure::MeasureError;
use fullpipe_path::ScenarioError;
use fullpipe_units::Network;

use crate::key::KeyError;

/// Why the loop could not go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TuneError {
    /// A measurement failed.
    #[error(transparent)]
    Measure(#[from] MeasureError),
    /// The emulated path could not be made.
    #[cfg(target_os = "linux")]
    #[error(transparent)]
    Lab(#[from] LabError),
    /// The emulated path did not keep its promises, so that no result over it counts.
    #[cfg(target_os = "linux")]
    #[error(transparent)]
    CouldNotKeepUp(#[from] CouldNotKeepUp),
    /// The scenario can't be used.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// This host's settings could not be read.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The journal can't be used.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A change failed; what this run had changed was undone.
    #[error(transparent)]
    Apply(#[from] ApplyError),
    /// The key can't be used.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The far host did not do what it was asked.
    #[error("{operation} on {host}: {reason}")]
    Remote {
        /// What was asked.
        operation: &'static str,
        /// The far host.
        host: String,
        /// Why it was not done.
        reason: String,
    },
    /// Something on trial could not be undone.
    #[error("undo the trial on {host}: {remaining} settings still differ; run `fullpipe undo` there")]
    NotUndone {
        /// The host.
        host: String,
        /// How many.
        remaining: usize,
    },
    /// Somebody took back what was on trial, as an administrator may, or its time was over.
    #[error("what was on trial on {host} was taken back there meanwhile; nothing was kept")]
    TakenBack {
        /// The host.
        host: String,
    },
    /// The measurement reported nothing of a direction that it was asked for.
    #[error("measure {direction}: no payload arrived; check firewalls between the ends")]
    NothingMeasured {
        /// The direction.
        direction: String,
    },
    /// The process that takes back what is not confirmed could not be started; nothing was changed.
    #[error("start the guardian of what is on trial: {source}")]
    Guardian {
        /// What the system said.
        source: io::Error,
    },
    /// What is measured is no connection to the destination that is to be tuned.
    #[error(
        "{peer} is not in {prefix}, so that no measurement would tell what is set for it; name a prefix that it is in"
    )]
    OtherDestination {
        /// The other end.
        peer: IpAddr,
        /// The destination.
        prefix: Network,
    },
    /// A file could not be read.
    #[error("read {file}: {source}")]
    File {
        /// The file.
        file: String,
        /// What the system said.
        source: io::Error,
    },
    /// The user stopped it; what was on trial was undone.
    #[error("interrupted; what was on trial was undone")]
    Interrupted,
}
