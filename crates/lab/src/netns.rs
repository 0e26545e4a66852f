//! Network namespaces held by file descriptors.
//!
//! Nothing is bound into the file system: when the descriptors and the threads inside are gone, by whatever way the
//! process ended, the kernel removes the namespace with all that is in it.

use std::{
    fs::File,
    io,
    os::fd::{AsFd, OwnedFd},
    panic,
    sync::Arc,
    thread,
};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::sys;

/// A network namespace. Clones are the same namespace.
#[derive(Clone, Debug)]
pub(crate) struct Namespace {
    descriptor: Arc<OwnedFd>,
}

impl Namespace {
    /// Makes a namespace with nothing in it but a loopback interface that is down.
    pub(crate) fn create() -> io::Result<Self> {
        on_fresh_thread(|| {
            sys::unshare_network()?;
            let descriptor = Arc::new(File::open("/proc/thread-self/ns/net")?.into());
            Ok(Self { descriptor })
        })
    }

    /// Moves the calling thread into this namespace, for good.
    pub(crate) fn enter(&self) -> io::Result<()> {
        move_into_link_name_space(self.descriptor.as_fd(), Some(LinkNameSpaceType::Network))?;
        Ok(())
    }

    /// Runs `work` on a fresh thread inside this namespace and hands its result back.
    ///
    /// # Panics
    /// Where `work` panics.
    pub(crate) fn run<R: Send>(&self, work: impl FnOnce() -> R + Send) -> io::Result<R> {
        on_fresh_thread(|| {
            self.enter()?;
            Ok(work())
        })
    }

    pub(crate) fn descriptor(&self) -> &Arc<OwnedFd> {
        &self.descriptor
    }
}

/// A namespace belongs to a thread, and one that can't be trusted to have its old one back must not be used again.
fn on_fresh_thread<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    thread::scope(|scope| scope.spawn(work).join().unwrap_or_else(|payload| panic::resume_unwind(payload)))
}
