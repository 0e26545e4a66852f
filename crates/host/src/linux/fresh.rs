//! The kernel's own defaults, read from a network namespace that nobody has touched.
#![expect(unsafe_code, reason = "unshare has no safe form")]

use std::{io, thread};

use fullpipe_knobs::{Address, Catalogue, Family};
use rustix::thread::{UnshareFlags, unshare_unsafe};

use super::sysctls;
use crate::{HostError, reset::Defaults};

/// What a new namespace takes over from the first one instead of starting with it (tcp_sk_init() in net/ipv4/tcp_ipv4.c),
/// so that it tells nothing of the kernel's own default.
const INHERITED: [&str; 3] = ["net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem", "net.ipv4.tcp_congestion_control"];

/// The sysctls of TCP that each network namespace has for itself, as a new one starts.
pub(crate) fn defaults() -> Result<Defaults, HostError> {
    // The namespace goes with the thread, and no other thread ever sees it.
    let read = || {
        // SAFETY: only the network namespace is left, of a thread that ends here; no descriptor or memory is shared anew.
        unsafe { unshare_unsafe(UnshareFlags::NEWNET) }.map_err(|errno| HostError::File {
            operation: "make",
            path: "a network namespace, to read the kernel's defaults from".to_owned(),
            source: io::Error::from(errno),
        })?;
        of_this_namespace()
    };
    thread::scope(|scope| scope.spawn(read).join().unwrap_or_else(|payload| std::panic::resume_unwind(payload)))
}

fn of_this_namespace() -> Result<Defaults, HostError> {
    let catalogue = Catalogue::for_family(Family::Linux);
    let own = sysctls::all()?.into_iter().filter_map(|(address, value)| {
        let Address::Sysctl(name) = &address else { return None };
        let ours = name.starts_with("net.ipv4.") || catalogue.is_some_and(|rows| rows.find(&address).is_some());
        // What belongs to the whole machine is shown read-only in a namespace.
        let is_own = sysctls::writable(&address, name).is_ok();
        (ours && is_own && !INHERITED.contains(&name.as_str())).then_some((address, value?))
    });
    Ok(own.collect())
}
