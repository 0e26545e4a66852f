//! A driver with a thread of its own, shared by the applications' threads.
//!
//! A call takes the lock, does its work on the stack and sends at once what comes of it; the thread is there for what
//! arrives and for timers. Whoever has to wait sleeps on one condition, which any news wakes.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    num::NonZeroU64,
    os::fd::{AsFd, OwnedFd},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant as SystemInstant},
};

use fullpipe_tcp::{
    heap::HeapStorage,
    profile::Profile,
    socket::{Endpoint, SocketOptions},
    stack::{SocketId, Stack},
};
use fullpipe_units::Instant;
use rustix::event::{EventfdFlags, eventfd};

use crate::{
    Connection, Driver, DriverCounts, Listener, Port, Settings, StackError,
    driver::{Next, wait_on},
};

/// The longest sleep of the thread, where nothing is due.
const LONGEST_SLEEP: Duration = Duration::from_secs(3_600);
/// How long `connect` waits: the patience of a person. The engine itself tries for two minutes.
const CONNECT_LIMIT: Duration = Duration::from_secs(75);

/// What a waiting thread looks again for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wake {
    /// What applications are notified of.
    News,
    /// Whatever the stack does.
    Anything,
}

/// A host of its own on a port. Clones are the same host; it ends with the last clone, connection and listener.
#[derive(Clone, Debug)]
pub struct Host {
    worker: Arc<Worker>,
}

/// The thread, ended when this is dropped.
#[derive(Debug)]
struct Worker {
    shared: Arc<Shared>,
    thread: Option<thread::JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    inner: Mutex<Inner>,
    news: Condvar,
    wake: OwnedFd,
    port: OwnedFd,
    stop: AtomicBool,
}

#[derive(Debug)]
struct Inner {
    driver: Driver,
    /// What the thread sleeps for; `None` while it works.
    asleep: Option<Next>,
    /// Threads that wait for news.
    waiting: usize,
    /// Of these, threads that wait for what is no news to applications: an acknowledgement, a last FIN.
    watching: usize,
    /// Why the port is gone.
    gone: Option<io::ErrorKind>,
}

impl Host {
    /// Starts a stack on `port`.
    ///
    /// # Errors
    /// A setting out of range, or what the system refuses.
    pub fn start(port: Port, settings: Settings) -> Result<Self, StackError> {
        let driver = Driver::new(port, &settings)?;
        let failed = |operation| move |source: io::Error| StackError::System { operation, source };
        let shared = Arc::new(Shared {
            wake: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
                .map_err(|error| StackError::system("make an event descriptor", error))?,
            port: driver.port().as_fd().try_clone_to_owned().map_err(failed("keep the port"))?,
            inner: Mutex::new(Inner { driver, asleep: None, waiting: 0, watching: 0, gone: None }),
            news: Condvar::new(),
            stop: AtomicBool::new(false),
        });
        let ours = Arc::clone(&shared);
        let thread = thread::Builder::new().name("stack".into()).spawn(move || {
            // Without it, sleeps end up to 50 us late.
            rustix::thread::set_current_timer_slack(NonZeroU64::new(1)).ok();
            ours.run();
        });
        let thread = Some(thread.map_err(failed("start the stack's thread"))?);
        Ok(Self { worker: Arc::new(Worker { shared, thread }) })
    }

    /// Calls the stack; `call` gets the time on its clock. What comes of it leaves at once.
    pub fn with<R>(&self, call: impl FnOnce(&mut Stack<HeapStorage>, Instant) -> R) -> R {
        let mut inner = self.shared().lock();
        let now = inner.driver.now();
        let result = call(inner.driver.stack(), now);
        self.shared().follow(inner);
        result
    }

    /// Opens a connection with the profile's options and waits until it stands.
    ///
    /// # Errors
    /// Why there is none.
    pub fn connect(&self, peer: SocketAddr) -> Result<Connection, StackError> {
        let options = self.default_options();
        self.connect_with(peer, options, CONNECT_LIMIT)
    }

    /// Opens a connection and waits until it stands, at most for `limit`.
    ///
    /// # Errors
    /// Why there is none.
    pub fn connect_with(
        &self,
        peer: SocketAddr,
        options: SocketOptions,
        limit: Duration,
    ) -> Result<Connection, StackError> {
        let connection = self.begin_connect(peer, options)?;
        if connection.stands_within(limit)? {
            return Ok(connection);
        }
        connection.abort();
        Err(StackError::TimedOut { operation: "connecting to", address: peer, seconds: limit.as_secs_f64() })
    }

    /// Opens a connection and doesn't wait: writing and reading do.
    ///
    /// # Errors
    /// Why it can't be opened.
    pub fn begin_connect(&self, peer: SocketAddr, options: SocketOptions) -> Result<Connection, StackError> {
        let remote = Endpoint::new(peer.ip(), peer.port());
        let opened = self.with(|stack, now| stack.connect(now, None, remote, options));
        let id = opened.map_err(|source| StackError::Open { operation: "connect to", address: peer, source })?;
        Ok(Connection::new(self.clone(), id, peer))
    }

    /// Listens on a port at all addresses. Connections get `options`; at most `backlog` wait to be accepted.
    ///
    /// # Errors
    /// Why it can't.
    pub fn listen(&self, port: u16, backlog: u16, options: SocketOptions) -> Result<Listener, StackError> {
        let opened = self.with(|stack, _| {
            let address = stack.config().addresses[0].unwrap_or(IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED));
            let listening = stack.listen(None, port, backlog, options);
            (SocketAddr::new(address, port), listening)
        });
        let (address, listening) = opened;
        let id = listening.map_err(|source| StackError::Open { operation: "listen on", address, source })?;
        Ok(Listener::new(self.clone(), id, address))
    }

    /// What the profile gives a new socket.
    pub fn default_options(&self) -> SocketOptions {
        SocketOptions::from_profile(&self.profile())
    }

    /// The profile in force.
    pub fn profile(&self) -> Profile {
        self.shared().lock().driver.stack().config().profile
    }

    /// Whether super-packets are sent.
    pub fn offload(&self) -> bool {
        self.shared().lock().driver.port().offload()
    }

    /// Free buffers of the pool.
    pub fn free_count(&self) -> u16 {
        self.shared().lock().driver.stack().free_count()
    }

    /// What the driver has counted.
    pub fn driver_counts(&self) -> DriverCounts {
        *self.shared().lock().driver.counts()
    }

    /// Waits until every connection that was let go has delivered what was written and its FIN, at most for `limit`;
    /// whether it came to that. Without, what has not left yet is lost with the host.
    pub fn settle(&self, limit: Duration) -> bool {
        let settled = self.wait_for(Wake::Anything, Some(limit), |stack, _| (stack.unfinished() == 0).then_some(()));
        matches!(settled, Ok(Some(())))
    }

    /// Tries `attempt` until it gives something, at most for `limit`; `None` where it did not in time.
    pub(crate) fn wait_for<R>(
        &self,
        wake: Wake,
        limit: Option<Duration>,
        mut attempt: impl FnMut(&mut Stack<HeapStorage>, Instant) -> Option<R>,
    ) -> Result<Option<R>, StackError> {
        let until = limit.and_then(|limit| SystemInstant::now().checked_add(limit));
        let shared = self.shared();
        let mut inner = shared.lock();
        loop {
            if let Some(kind) = inner.gone {
                return Err(StackError::system("use the port", kind));
            }
            // What this brings about wakes nobody who doesn't wait yet: it comes before the look, under the same lock.
            inner = shared.settle_work(inner);
            let now = inner.driver.now();
            let given = attempt(inner.driver.stack(), now);
            if given.is_some() {
                shared.follow(inner);
                return Ok(given);
            }
            let left = match until.map(|until| until.saturating_duration_since(SystemInstant::now())) {
                Some(Duration::ZERO) => return Ok(None),
                Some(left) => left,
                None => LONGEST_SLEEP,
            };
            let watching = usize::from(wake == Wake::Anything);
            (inner.waiting, inner.watching) = (inner.waiting + 1, inner.watching + watching);
            inner = shared.news.wait_timeout(inner, left).unwrap_or_else(PoisonError::into_inner).0;
            (inner.waiting, inner.watching) = (inner.waiting - 1, inner.watching - watching);
        }
    }

    fn shared(&self) -> &Shared {
        &self.worker.shared
    }

    /// Lets go of a connection; what was written is still sent.
    pub(crate) fn release(&self, id: SocketId) {
        self.with(|stack, now| stack.close(now, id).ok());
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.shared.stop.store(true, Relaxed);
        self.shared.wake();
        if let Some(thread) = self.thread.take() {
            // A panic over there was printed by its own thread, and there is nobody to hand it to.
            drop(thread.join());
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self) {
        // It fails only where the counter is full, and then the thread wakes anyway.
        rustix::io::write(&self.wake, &1_u64.to_ne_bytes()).ok();
    }

    /// After a call: sends what it made the stack want to send.
    fn follow(&self, inner: MutexGuard<'_, Inner>) {
        drop(self.settle_work(inner));
    }

    fn settle_work<'a>(&self, mut inner: MutexGuard<'a, Inner>) -> MutexGuard<'a, Inner> {
        let next = self.work(&mut inner);
        // The thread must not sleep past what is due now.
        let too_long = inner.asleep.is_some_and(|asleep| match (asleep.at, next.at) {
            (Some(planned), Some(at)) => at < planned || asleep.on_packet != next.on_packet,
            (None, Some(_)) => true,
            _ => false,
        });
        if too_long {
            inner.asleep = None;
            self.wake();
        }
        inner
    }

    fn work(&self, inner: &mut Inner) -> Next {
        let next = inner.driver.work().unwrap_or_else(|error| {
            inner.gone = Some(error.kind());
            Next { at: None, on_packet: false }
        });
        let mut any = inner.gone.is_some() || inner.watching > 0;
        while inner.driver.stack().poll_news().is_some() {
            any = true;
        }
        if any && inner.waiting > 0 {
            self.news.notify_all();
        }
        next
    }

    fn run(&self) {
        while !self.stop.load(Relaxed) {
            let (next, limit) = {
                let mut inner = self.lock();
                let next = self.work(&mut inner);
                let now = inner.driver.now();
                inner.asleep = Some(next);
                (next, next.at.map_or(LONGEST_SLEEP, |at| at.since(now).min(LONGEST_SLEEP)))
            };
            let port = next.on_packet.then(|| self.port.as_fd());
            if wait_on(port, Some(self.wake.as_fd()), limit).is_err() {
                return;
            }
            self.lock().asleep = None;
            rustix::io::read(&self.wake, &mut [0_u8; 8]).ok();
        }
    }
}
