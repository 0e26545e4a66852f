//! Payload in motion, as the two ends of a test watch it: over connections ([`crate::transfer`]) or in datagrams
//! ([`crate::udp`]).

use std::{io, time::Duration};

use fullpipe_units::{Bytes, Micros};

use crate::{lane::Role, report::EndReport, udp::Datagrams};

/// A transfer that is going on. Dropping it stops everything.
pub(crate) trait Flow {
    /// Since both ends started their clocks.
    fn elapsed(&self) -> Duration;

    /// Payload acknowledged (of the lanes that send) or read (of those that receive), since the start.
    fn progress(&self, role: Role) -> u64;

    /// A count that grows as long as payload moves; it may be cheaper than [`Flow::progress`].
    fn activity(&self) -> u64;

    /// What the kernel says now of the first connection, one that sends where there is one; of datagrams, what arrived.
    fn live(&self) -> Live;

    /// Whether bytes end the test and all of them have arrived.
    fn is_complete(&self) -> bool;

    fn has(&self, role: Role) -> bool;

    /// The first connection that failed on its own.
    fn failure(&self) -> Option<io::ErrorKind>;

    /// The omitted time is over: from here on counts the steady rate.
    fn mark_steady(&mut self);

    fn is_marked(&self) -> bool;

    /// Ends the counting and the sending.
    fn stop(&mut self) -> EndReport;

    /// Closes the data connections. `abrupt` throws away what is still queued, which on a slow path would otherwise
    /// occupy it long after the test; a foreign peer may take the reset for a failure.
    fn release(self: Box<Self>, abrupt: bool);
}

/// A glance at what is in motion.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Live {
    pub(crate) rtt_us: Option<Micros>,
    pub(crate) cwnd: Option<Bytes>,
    pub(crate) window: Option<Bytes>,
    /// Of all connections that send.
    pub(crate) retransmits: Option<u64>,
    /// Of all streams that receive.
    pub(crate) datagrams: Option<Datagrams>,
}
