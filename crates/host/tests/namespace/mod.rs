//! A fresh network namespace for one test.
#![expect(unsafe_code, reason = "unshare(2) has no safe form in rustix")]

use std::thread;

use rustix::thread::{UnshareFlags, unshare_unsafe};

/// Runs `test` on a thread of its own in a network namespace of its own, which goes away with the thread.
/// Says so and returns without running it where the right to make one is missing.
pub(crate) fn in_fresh_namespace(name: &str, test: impl FnOnce() + Send + 'static) {
    let outcome = thread::spawn(move || {
        // SAFETY: descriptors stay shared; only the network namespace of this new thread changes.
        unsafe { unshare_unsafe(UnshareFlags::NEWNET) }.map(|()| test())
    })
    .join();
    match outcome {
        Ok(Ok(())) => {}
        Ok(Err(errno)) => println!("skipped {name}: can't make a network namespace: {errno}"),
        Err(panic) => std::panic::resume_unwind(panic),
    }
}
