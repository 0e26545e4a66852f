//! The virtual host: the engine, its clock, the packets that it has sent, and the thread that waits for it.
//!
//! packetdrill has two threads: the one that runs the script, and one for calls that the script expects to block.
//! Time moves only on the first, and only once the second has seen what has changed and, where its call is over, has
//! asked for the time (which is how packetdrill notes when a call returned).

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    thread::{self, ThreadId},
    time::Duration,
};

use fullpipe_tcp::{
    SecretKey,
    heap::HeapStorage,
    stack::{Config, Device, Stack},
};
use fullpipe_units::Instant;

use crate::{calls::File, flags::Flags};

/// Packet buffers of the host.
pub(crate) const BUFFERS: u16 = 16_000;
const BUFFER_SIZE: u16 = 1_548;
const SOCKETS: u16 = 64;

/// The thread in a call that blocks.
#[derive(Debug, PartialEq, Eq)]
enum Blocked {
    /// There is none.
    Nobody,
    /// It waits, and has seen what had changed up to this count.
    Waiting(u64),
    /// Its call is over; it has not asked for the time yet.
    Returning(ThreadId),
    /// It has, and has still to tell packetdrill what its call gave.
    Returned,
}

/// The host.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) flags: Flags,
    pub(crate) stack: Stack<HeapStorage>,
    pub(crate) now: Instant,
    pub(crate) files: BTreeMap<i32, File>,
    sent: VecDeque<(Instant, Vec<u8>)>,
    script: ThreadId,
    blocked: Blocked,
    /// Counts what has changed.
    changes: u64,
    /// How often in a row the script's thread has asked for the time.
    asked: u32,
    /// When the call that blocks gives up.
    pub(crate) deadline: Option<Instant>,
}

static HOST: Mutex<Option<Host>> = Mutex::new(None);
static CHANGED: Condvar = Condvar::new();

/// The host while this thread works on it.
pub(crate) type Held = MutexGuard<'static, Option<Host>>;

/// What a call that is no call of a script gives back where there is no host.
pub(crate) const NO_HOST: i32 = libc::ENOSYS;

/// How much virtual time passes without a packet until a script that waits for one has failed.
const PATIENCE: u64 = 4 * 3_600 * 1_000_000_000;
/// How much virtual time a call takes that the script does not expect to block.
const SHORT: u64 = 1_000_000;

impl Host {
    fn new(flags: Flags) -> Self {
        let device = Device::plain(flags.mtu);
        let mut config = Config::new(flags.local, device, SecretKey([7; 16]));
        config.profile = flags.profile;
        config.syn_cookies = flags.syn_cookies;
        config.syn_cookies_only = flags.syn_cookies_only;
        config.udp_port = flags.udp_port;
        config.fast_open_key = flags.fast_open_key;
        Self {
            flags,
            stack: Stack::new(HeapStorage::new(SOCKETS, BUFFERS, BUFFER_SIZE), config),
            now: Instant::from_nanos(1_000_000_000_000),
            files: BTreeMap::new(),
            sent: VecDeque::new(),
            script: thread::current().id(),
            blocked: Blocked::Nobody,
            changes: 0,
            asked: 0,
            deadline: None,
        }
    }

    /// A shell line of the script changes settings of the system.
    pub(crate) fn reconfigure(&mut self, flags: Flags) {
        *self.stack.profile_mut() = flags.profile;
        if flags.forget {
            self.stack.forget_peers();
        }
        self.flags = Flags { forget: false, ..flags };
    }

    /// One key of fast-open cookies and no former one.
    pub(crate) const fn use_fast_open_key(&mut self, key: SecretKey) {
        self.stack.set_fast_open_key(key);
        self.stack.set_fast_open_key(key);
    }

    /// After anything that may have changed something: takes what the stack sends, and wakes who waits.
    pub(crate) fn changed(&mut self) {
        while let Some(packet) = self.stack.poll_transmit(self.now) {
            let mut bytes = vec![0; packet.len()];
            packet.copy_to(&mut bytes);
            self.sent.push_back((self.now, bytes));
        }
        self.note_times();
        self.changes += 1;
        self.asked = 0;
        CHANGED.notify_all();
    }
}

/// A host as the flags say.
pub(crate) fn start(flags: Flags) {
    *hold() = Some(Host::new(flags));
}

/// Changes flags under way; a shell's exit status.
pub(crate) fn reconfigure(held: &mut Held, text: &str) -> i32 {
    let Some(host) = held.as_mut() else { return 1 << 8 };
    match host.flags.changed(text) {
        Ok(flags) => host.reconfigure(flags),
        Err(error) => {
            eprintln!("fullpipe: {error}");
            return 1 << 8;
        }
    }
    0
}

/// No host any more.
pub(crate) fn stop() {
    *hold() = None;
}

/// The host for this thread alone.
pub(crate) fn hold() -> Held {
    HOST.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether the thread in a blocking call has yet to look at what has changed.
fn is_unsettled(host: &Host) -> bool {
    match host.blocked {
        Blocked::Nobody | Blocked::Returned => false,
        Blocked::Waiting(seen) => seen < host.changes,
        Blocked::Returning(_) => true,
    }
}

/// Lets the thread in a blocking call see what has changed. A real second is far more than it needs.
fn settle(mut held: Held) -> Held {
    while held.as_ref().is_some_and(is_unsettled) {
        let (again, waited) =
            CHANGED.wait_timeout(held, Duration::from_secs(1)).unwrap_or_else(PoisonError::into_inner);
        held = again;
        if waited.timed_out() {
            break;
        }
    }
    held
}

/// Lets time pass up to `until`, or to the next packet.
fn pass(mut held: Held, until: Instant, to_packet: bool) -> Held {
    loop {
        held = settle(held);
        let Some(host) = held.as_mut() else { return held };
        if to_packet && !host.sent.is_empty() {
            return held;
        }
        let deadline = host.deadline.filter(|at| *at > host.now);
        match host.stack.next_timeout().into_iter().chain(deadline).min().filter(|at| *at <= until) {
            Some(at) => {
                host.now = host.now.max(at);
                host.stack.on_timeout(host.now);
                host.changed();
            }
            None => {
                host.now = host.now.max(until);
                return held;
            }
        }
    }
}

/// A packet arrives. What becomes of it shows in what is sent.
pub(crate) fn arrive(mut held: Held, packet: &[u8]) {
    let Some(host) = held.as_mut() else { return };
    if let Err(why) = host.stack.on_packet(host.now, packet, false) {
        eprintln!("fullpipe: the packet was dropped: {why:?}");
    }
    host.note_arrivals();
    host.changed();
    drop(settle(held));
}

/// Lets `ns` nanoseconds pass.
pub(crate) fn sleep(mut held: Held, ns: u64) {
    if let Some(host) = held.as_mut().filter(|host| host.blocked == Blocked::Returned) {
        // packetdrill's lock is free while it sleeps: the other thread gets it now.
        host.blocked = Blocked::Nobody;
        drop(held);
        thread::sleep(Duration::from_millis(5));
        held = hold();
    }
    let Some(until) = held.as_ref().map(|host| host.now.as_nanos() + ns) else { return };
    drop(pass(held, Instant::from_nanos(until), false));
}

/// The next packet that the host sends and when it was sent, waiting for it; `None` when it sends none.
pub(crate) fn next_packet(held: Held) -> Option<(Instant, Vec<u8>)> {
    let before = held.as_ref()?.now;
    let mut held = pass(held, Instant::from_nanos(before.as_nanos() + PATIENCE), true);
    held.as_mut()?.sent.pop_front()
}

/// The time in nanoseconds. packetdrill spins through the last microseconds before an event: asking again and again
/// lets time pass.
pub(crate) fn time(mut held: Held) -> u64 {
    let Some(host) = held.as_mut() else { return 0 };
    if matches!(host.blocked, Blocked::Returning(thread) if thread == thread::current().id()) {
        host.blocked = Blocked::Returned;
        CHANGED.notify_all();
    }
    let now = host.now.as_nanos();
    if thread::current().id() != host.script {
        return now;
    }
    host.asked += 1;
    if host.asked > 16 {
        let asked = host.asked;
        let mut held = pass(held, Instant::from_nanos(now + 1_000), false);
        if let Some(host) = held.as_mut() {
            host.asked = asked;
        }
    }
    now
}

/// Waits until `attempt` gives something. On the script's own thread only a moment passes; then `None`.
pub(crate) fn wait_for<T>(mut held: Held, mut attempt: impl FnMut(&mut Host) -> Option<T>) -> (Held, Option<T>) {
    let on_script = held.as_ref().is_none_or(|host| host.script == thread::current().id());
    let end = held.as_ref().map_or(0, |host| host.now.as_nanos() + SHORT);
    loop {
        let Some(host) = held.as_mut() else { return (held, None) };
        if let Some(result) = attempt(host) {
            if !on_script && host.blocked != Blocked::Nobody {
                host.blocked = Blocked::Returning(thread::current().id());
            }
            return (held, Some(result));
        }
        if on_script {
            if host.now.as_nanos() >= end {
                return (held, None);
            }
            let step = Instant::from_nanos((host.now.as_nanos() + 100_000).min(end));
            held = pass(held, step, false);
            continue;
        }
        host.blocked = Blocked::Waiting(host.changes);
        CHANGED.notify_all();
        held = CHANGED.wait(held).unwrap_or_else(PoisonError::into_inner);
    }
}
