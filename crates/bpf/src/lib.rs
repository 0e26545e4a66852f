//! BPF programs, and what loads them: [`Swallow`] keeps applications from fixing the buffers of new sockets, and [`Destinations`]
//! gives connections to one destination buffers of their own.
//!
//! A room of its own, because a loader (aya) is more than those who only watch should get, and because C is compiled for it:
//! `src/*.bpf.c`, whose objects are checked in beside them.
//!
//! [`Swallow`] lives as long as its process: the kernel detaches a program when the last descriptor of its link is closed, however
//! the process ends. What [`Destinations`] are given is kept as routes are: it is pinned in the BPF file system until it is taken
//! away again or the machine restarts.
//!
//! What is *not* here: which processes those are, and sockets that are open already (`fullpipe-watch`); the journal and the undo of
//! destinations (`fullpipe-host`).
//!
//! Read first: bpf(2), bpf-helpers(7), and Documentation/bpf/prog_cgroup_sockopt.rst of the kernel.
#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]

use std::{error::Error, io};

mod destination;
mod swallow;

pub use destination::{Buffers, Destinations, Place};
pub use swallow::{Swallow, Swallowed, Whose};

/// Why it can't be done.
#[derive(Debug, thiserror::Error)]
pub enum BpfError {
    /// Not allowed.
    #[error("{operation}: not permitted; run as root, or with CAP_BPF and CAP_NET_ADMIN")]
    Denied {
        /// What was tried.
        operation: &'static str,
    },
    /// The kernel, or what stands around it, has no room for it.
    #[error("{operation}: {reason}")]
    Refused {
        /// What was tried.
        operation: &'static str,
        /// What was said.
        reason: String,
    },
}

fn lacks(name: &str) -> BpfError {
    BpfError::Refused { operation: "reading the BPF object", reason: format!("it has no {name}") }
}

/// With the reason at the bottom of it.
fn refused(operation: &'static str, error: &(dyn Error + 'static)) -> BpfError {
    let mut reason = String::new();
    let mut next = Some(error);
    while let Some(cause) = next {
        if let Some(system) = cause.downcast_ref::<io::Error>()
            && system.kind() == io::ErrorKind::PermissionDenied
        {
            return BpfError::Denied { operation };
        }
        let text = cause.to_string();
        if !reason.contains(&text) {
            reason = if reason.is_empty() { text } else { format!("{reason}: {text}") };
        }
        next = cause.source();
    }
    BpfError::Refused { operation, reason }
}
