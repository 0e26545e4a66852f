//! BPF programs, and what loads them: [`Swallow`] keeps applications from fixing the buffers of new sockets, and [`Destinations`]
//! gives connections to one destination buffers of their own. [`Ends`] changes nothing: it tells of connections that end.
//!
//! A room of its own, because a loader (aya) is more than those who only watch should get, and because C is compiled for it:
//! `src/*.bpf.c`, whose objects are checked in beside them.
//!
//! [`Swallow`] and [`Ends`] live as long as their process: the kernel detaches a program when the last descriptor of its link is closed, however
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

use aya::{
    Ebpf,
    programs::{Program, ProgramError},
};

mod destination;
mod ends;
mod swallow;

pub use destination::{Buffers, Destinations, Place};
pub use ends::{Ended, Ends, How};
pub use swallow::{Swallow, Swallowed, Whose};

/// Why it can't be done.
#[derive(Debug, thiserror::Error)]
pub enum BpfError {
    /// Not allowed.
    #[error("{operation}: not permitted; run as root, or with {rights}")]
    Denied {
        /// What was tried.
        operation: &'static str,
        /// What it takes.
        rights: &'static str,
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

/// What programs take that do something to sockets.
const NETWORK: &str = "CAP_BPF and CAP_NET_ADMIN";
/// `EPERM` of asm-generic/errno-base.h.
const EPERM: i32 = 1;
/// What is tried where the kernel's verifier may say no.
const LOADING: &str = "loading a BPF program";

/// The program of this name in the object.
fn program<'e, P>(ebpf: &'e mut Ebpf, name: &str) -> Result<&'e mut P, BpfError>
where
    &'e mut P: TryFrom<&'e mut Program, Error = ProgramError>,
{
    let program = ebpf.program_mut(name).ok_or_else(|| lacks(name))?;
    program.try_into().map_err(|error| refused("finding a BPF program", &error))
}

fn lacks(name: &str) -> BpfError {
    BpfError::Refused { operation: "reading the BPF object", reason: format!("it has no {name}") }
}

/// With the reason at the bottom of it.
fn refused(operation: &'static str, error: &(dyn Error + 'static)) -> BpfError {
    let mut reason = String::new();
    let mut next = Some(error);
    while let Some(cause) = next {
        // The verifier's no is EACCES, too (bpf(2)), and no right helps there.
        if let Some(system) = cause.downcast_ref::<io::Error>()
            && system.kind() == io::ErrorKind::PermissionDenied
            && (operation != LOADING || system.raw_os_error() == Some(EPERM))
        {
            return BpfError::Denied { operation, rights: NETWORK };
        }
        let text = cause.to_string();
        if !reason.contains(&text) {
            reason = if reason.is_empty() { text } else { format!("{reason}: {text}") };
        }
        next = cause.source();
    }
    BpfError::Refused { operation, reason }
}
