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

/// The nice value of an end's threads: some thirty times the share of a program at 0, and below the emulated path, which is
/// real-time.
const BEFORE_OTHERS: i32 = -15;

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

    /// Runs `work` on a fresh thread inside this namespace and hands its result back. The thread, and those that it
    /// starts, come before other programs where the kernel allows it: an end that waits for a processor is slower than
    /// its path.
    ///
    /// # Panics
    /// Where `work` panics.
    pub(crate) fn run<R: Send>(&self, work: impl FnOnce() -> R + Send) -> io::Result<R> {
        on_fresh_thread(|| {
            self.enter()?;
            // Without the right to (CAP_SYS_NICE, RLIMIT_NICE) it takes its turn like everybody else.
            sys::set_nice(BEFORE_OTHERS).ok();
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
