//! The client's side: writes requests, waits for responses and times them.

use std::{
    io,
    net::{SocketAddr, TcpStream},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use socket2::SockRef;

use super::{
    ExchangeSpec, Times,
    answer::{read_all, write_all},
    no_times, note,
};
use crate::{error::MeasureError, patience::Patience, sys::host, target, wire::Cookie};

/// How long a worker waits in the kernel before it looks whether it shall stop.
const WAKE_EVERY: Duration = Duration::from_millis(100);

/// The part of the time that is asked but not timed: connections and caches are cold.
const WARM_UP: u32 = 10;

/// What was timed.
pub(crate) struct Asked {
    pub(crate) times: Times,
    pub(crate) connecting: Times,
    /// Of requests alone, where each had a connection of its own.
    pub(crate) asking: Times,
    pub(crate) seconds: f64,
    pub(crate) processor: Option<u32>,
}

/// What all connections of a test share.
struct Asking<'a> {
    spec: &'a ExchangeSpec,
    peer: SocketAddr,
    cookie: &'a Cookie,
    start: Instant,
    stop: &'a AtomicBool,
    answered: &'a AtomicU64,
    heard: Mutex<Heard>,
    processor: AtomicU64,
}

/// What workers have timed.
struct Heard {
    times: Times,
    connecting: Times,
    asking: Times,
}

impl Heard {
    fn nothing() -> Self {
        Self { times: no_times(), connecting: no_times(), asking: no_times() }
    }
}

/// Asks until `stop` is set; `answered` counts the answers. Without `streams` each request opens a connection.
pub(crate) fn ask(
    spec: &ExchangeSpec,
    (peer, cookie): (SocketAddr, &Cookie),
    streams: &[TcpStream],
    stop: &AtomicBool,
    answered: &AtomicU64,
) -> Result<Asked, MeasureError> {
    let asking = Asking {
        spec,
        peer,
        cookie,
        start: Instant::now(),
        stop,
        answered,
        heard: Mutex::new(Heard::nothing()),
        processor: AtomicU64::new(u64::MAX),
    };
    let failed = |source| MeasureError::Io { peer, operation: "asking", source };
    let outcome: io::Result<()> = thread::scope(|scope| {
        let workers: Vec<_> = match streams {
            [] => (0..spec.streams).map(|_| scope.spawn(|| asking.connect_and_ask())).collect(),
            streams => streams.iter().map(|stream| scope.spawn(|| asking.ask_on(stream))).collect(),
        };
        workers.into_iter().filter_map(|worker| worker.join().ok()).collect()
    });
    let seconds = asking.start.elapsed().as_secs_f64();
    match outcome {
        // A server that went away says why on the control connection.
        Err(error) if !stop.load(Ordering::Relaxed) => return Err(failed(error)),
        _ => {}
    }
    let Heard { times, connecting, asking: alone } = asking.heard.into_inner().unwrap_or_else(PoisonError::into_inner);
    let processor = u32::try_from(asking.processor.load(Ordering::Relaxed)).ok();
    Ok(Asked { times, connecting, asking: alone, seconds, processor })
}

impl Asking<'_> {
    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn is_warm(&self) -> bool {
        self.start.elapsed() >= (self.spec.time / WARM_UP).min(Duration::from_millis(500))
    }

    fn ask_on(&self, stream: &TcpStream) -> io::Result<()> {
        stream.set_nodelay(self.spec.nodelay)?;
        stream.set_read_timeout(Some(WAKE_EVERY))?;
        stream.set_write_timeout(Some(WAKE_EVERY))?;
        stream.set_nonblocking(self.spec.spin)?;
        let mut exchange = Exchange::new(self.spec);
        let mut heard = Heard::nothing();
        let outcome = loop {
            if self.stopped() {
                break Ok(());
            }
            let began = Instant::now();
            if let Err(error) = exchange.once(stream, || self.stopped()) {
                break if self.stopped() { Ok(()) } else { Err(error) };
            }
            self.answered.fetch_add(1, Ordering::Relaxed);
            if self.is_warm() {
                note(&mut heard.times, began.elapsed());
            }
            self.rest(began);
        };
        self.give(&heard);
        outcome
    }

    fn connect_and_ask(&self) -> io::Result<()> {
        let mut exchange = Exchange::new(self.spec);
        let mut heard = Heard::nothing();
        let outcome = loop {
            if self.stopped() {
                break Ok(());
            }
            let began = Instant::now();
            match self.one_connection(&mut exchange) {
                Ok(connected) => {
                    self.answered.fetch_add(1, Ordering::Relaxed);
                    if self.is_warm() {
                        let whole = began.elapsed();
                        note(&mut heard.connecting, connected);
                        note(&mut heard.times, whole);
                        note(&mut heard.asking, whole.saturating_sub(connected));
                    }
                    self.rest(began);
                }
                Err(error) => break if self.stopped() { Ok(()) } else { Err(error) },
            }
        };
        self.give(&heard);
        outcome
    }

    /// Returns how long the handshake took.
    fn one_connection(&self, exchange: &mut Exchange<'_>) -> io::Result<Duration> {
        let began = Instant::now();
        let patience = Patience::new(Duration::from_secs(5)).unless(self.stop);
        let stream = target::connect(self.peer, patience, |_| Ok(())).map_err(io::Error::other)?;
        let connected = began.elapsed();
        stream.set_nodelay(self.spec.nodelay)?;
        stream.set_read_timeout(Some(WAKE_EVERY))?;
        write_all(&stream, self.cookie.as_bytes(), || self.stopped())?;
        exchange.once(&stream, || self.stopped())?;
        // Without this tens of thousands of ports would be waiting for their time to pass (TIME-WAIT).
        SockRef::from(&stream).set_linger(Some(Duration::ZERO))?;
        Ok(connected)
    }

    /// Until it is time for the next request.
    fn rest(&self, began: Instant) {
        let Some(every) = self.spec.every else { return };
        while !self.stopped()
            && let Some(rest) = every.checked_sub(began.elapsed()).filter(|rest| !rest.is_zero())
        {
            thread::sleep(rest.min(WAKE_EVERY));
        }
    }

    fn give(&self, own: &Heard) {
        self.processor.store(host::processor().map_or(u64::MAX, u64::from), Ordering::Relaxed);
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        // All have the same bounds, so that adding can't fail.
        heard.times += &own.times;
        heard.connecting += &own.connecting;
        heard.asking += &own.asking;
    }
}

/// A request to write and a response to read.
struct Exchange<'a> {
    spec: &'a ExchangeSpec,
    request: Vec<u8>,
    response: Vec<u8>,
}

impl<'a> Exchange<'a> {
    fn new(spec: &'a ExchangeSpec) -> Self {
        let pattern = spec.pattern();
        Self { spec, request: vec![5; pattern.request as usize], response: vec![0; pattern.response as usize] }
    }

    fn once(&mut self, stream: &TcpStream, stopped: impl Fn() -> bool) -> io::Result<()> {
        let half = if self.spec.split { self.request.len() / 2 } else { 0 };
        let (first, second) = self.request.split_at(half);
        write_all(stream, first, &stopped)?;
        write_all(stream, second, &stopped)?;
        read_all(stream, &mut self.response, self.spec.spin, stopped)
    }
}
