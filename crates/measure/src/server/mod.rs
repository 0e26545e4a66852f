//! The end that answers: iperf3 clients and our own, several at once, on one port.
//!
//! One thread accepts and never waits for a client; each connection gets a thread that reads its cookie within a
//! deadline. A cookie that is known belongs to a test that waits for data connections; any other opens a session.

mod event;
mod iperf2;
mod output;
mod session;
mod sources;
mod talk;

use std::{
    collections::HashMap,
    fmt, io,
    net::{IpAddr, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread,
    time::{Duration, Instant},
};

pub use event::{ServerEvent, TestFigures};
use fullpipe_diagnose::SynFacts;
use fullpipe_units::{Bytes, Network, Rate};
use session::Seat;
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use sources::{Kind, Sources};
use tracing::{Level, debug};

use crate::{
    auth::Users,
    control::Control,
    error::{Fault, Foreign, MeasureError},
    exchange::Answers,
    handshake,
    patience::Patience,
    sys::{sockopt, wait},
    talk::RequestHandler,
    target,
    udp::Door,
    wire::{COOKIE_LEN, Cookie, MAX_OWN_STREAMS, State},
};

/// The kind of event and the reason where somebody is not let in.
const TURNED_AWAY: &str = "turned_away";
const TOO_MANY: &str = "turned away, too many clients are here";

/// Takes what the server logs.
pub type Log = Arc<dyn Fn(&ServerEvent) + Send + Sync>;

/// What a server allows, and whom it tells.
#[derive(Clone)]
pub struct ServerOptions {
    /// Tests at the same time, and as many conversations; one more gets "busy".
    pub max_clients: usize,
    /// The longest test, omitted time included.
    pub longest_test: Duration,
    /// The highest payload rate of a test in each direction, all its connections together: senders are paced to it, and
    /// receivers read no faster.
    pub max_rate: Option<Rate>,
    /// The most payload of a test, both directions together; a test that reaches it is ended.
    pub max_bytes: Option<Bytes>,
    /// Who may come; everybody where it is empty.
    pub allow: Vec<Network>,
    /// Who may test, by name and password; everybody where it is absent.
    pub users: Option<Arc<Users>>,
    /// For each answer in the handshake.
    pub answer: Duration,
    /// For payload to move during a test.
    pub stall: Duration,
    /// For the next request of a conversation whose client has no test here either.
    pub talk_idle: Duration,
    /// Whether clients learn this host's name, system and congestion controls.
    pub introduce: bool,
    /// Serve one client, and return once it has tested and left: iperf3's `--one-off`.
    pub one_off: bool,
    /// Listen on IPv6 alone, where the address is `::`.
    pub only_v6: bool,
    /// Gets an event for each client that came, left or failed.
    pub log: Option<Log>,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            max_clients: 64,
            longest_test: Duration::from_secs(86_400),
            max_rate: None,
            max_bytes: None,
            allow: Vec::new(),
            users: None,
            answer: Duration::from_secs(10),
            stall: Duration::from_secs(30),
            talk_idle: Duration::from_secs(30),
            introduce: true,
            one_off: false,
            only_v6: false,
            log: None,
        }
    }
}

impl fmt::Debug for ServerOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerOptions")
            .field("max_clients", &self.max_clients)
            .field("longest_test", &self.longest_test)
            .field("max_rate", &self.max_rate)
            .field("max_bytes", &self.max_bytes)
            .field("allow", &self.allow)
            .field("users", &self.users)
            .field("answer", &self.answer)
            .field("stall", &self.stall)
            .field("talk_idle", &self.talk_idle)
            .field("introduce", &self.introduce)
            .field("one_off", &self.one_off)
            .field("only_v6", &self.only_v6)
            .field("log", &self.log.is_some())
            .finish()
    }
}

impl ServerOptions {
    /// How many conversations, and how many tests, one address may have at once: enough for what a host runs side by side,
    /// and never all.
    fn shares(&self) -> (usize, usize) {
        let share = |part: usize| if self.max_clients <= 8 { self.max_clients } else { part };
        (share((self.max_clients / 4).max(8)), share(self.max_clients - self.max_clients / 8))
    }

    fn lets_in(&self, address: IpAddr) -> bool {
        self.allow.is_empty() || self.allow.iter().any(|network| network.contains(address))
    }
}

/// How often the thread that accepts looks whether it shall stop. Not more often, because each time costs the receivers that
/// run on the same processor (see `session`).
const LOOK: Duration = Duration::from_millis(250);

/// Connections whose cookie has not come yet; more are turned away, so that a flood of them costs bounded memory.
const MAX_GUESTS: usize = 256;

/// Sessions beyond the allowed ones that may be in their handshake, to be refused as "busy" there.
const MAX_UNDECIDED: usize = 16;

/// The end that answers. See the module's text.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    options: ServerOptions,
    handler: Option<Arc<dyn RequestHandler>>,
    hall: Hall,
    /// The UDP port of the same number, unless another program has it.
    door: Option<Door>,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("address", &self.address).finish_non_exhaustive()
    }
}

/// Who is here.
#[derive(Default)]
struct Hall {
    guests: AtomicUsize,
    sources: Sources,
    /// Whether guests are being turned away, and that was said.
    is_crowded: AtomicBool,
    accepted: AtomicU64,
    /// Tests that were begun and are over.
    tested: AtomicUsize,
    /// The only client that was to be served has left.
    is_over: AtomicBool,
    sessions: Mutex<HashMap<Cookie, Entrance>>,
    tests: AtomicUsize,
    talks: AtomicUsize,
}

/// Where the data connections of a test go.
#[derive(Clone)]
struct Entrance {
    arrivals: SyncSender<Arrival>,
    answers: Arc<Answers>,
}

/// Whom a connection is of.
enum Arrived {
    /// A client of iperf3's protocol.
    Client { control: Control, cookie: Cookie, syn: Option<SynFacts> },
    /// One of iperf 2, and how it opened.
    Iperf2 { stream: TcpStream, first: [u8; COOKIE_LEN] },
}

/// A data connection on its way to its test.
pub(crate) struct Arrival {
    /// In the order in which the kernel completed the handshakes: streams are known by that alone.
    pub(crate) order: u64,
    pub(crate) stream: TcpStream,
    pub(crate) syn: Option<SynFacts>,
}

impl Server {
    /// Listens; port 0 lets the system choose one, which [`Server::local_addr`] tells.
    ///
    /// # Errors
    /// [`MeasureError::Bind`].
    pub fn bind(
        address: SocketAddr,
        options: ServerOptions,
        handler: Option<Arc<dyn RequestHandler>>,
    ) -> Result<Self, MeasureError> {
        let failed = |source| MeasureError::Bind { address, source };
        let listener = listen(address, options.only_v6).map_err(failed)?;
        // An old kernel without it only leaves the client's SYN unseen.
        drop(sockopt::save_syn(&listener));
        let address = listener.local_addr().map_err(failed)?;
        let door = Door::open(address).ok();
        Ok(Self { listener, address, options, handler, hall: Hall::default(), door })
    }

    /// Where it listens.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop` is set, which ends running tests with a word to their clients. Returns when all have left.
    ///
    /// # Errors
    /// Those of the listening socket.
    pub fn run(&self, stop: &AtomicBool) -> Result<(), MeasureError> {
        let failed = |source| MeasureError::Bind { address: self.address, source };
        thread::scope(|scope| {
            while !stop.load(Ordering::Relaxed) && !self.hall.is_over.load(Ordering::Relaxed) {
                if !wait::readable(&self.listener, LOOK).map_err(failed)? {
                    continue;
                }
                let (stream, peer) = match self.listener.accept() {
                    // An IPv4 client of a socket for both kinds is shown as what it is.
                    Ok((stream, peer)) => (stream, SocketAddr::new(peer.ip().to_canonical(), peer.port())),
                    Err(error) if is_of_one_connection(&error) => continue,
                    Err(error) => {
                        // Out of descriptors or memory: give the sessions time to end instead of spinning.
                        let text = format!("accepting a connection: {error}");
                        self.log(&ServerEvent::own(Level::ERROR, "accept_failed", &text));
                        thread::sleep(Duration::from_millis(100));
                        continue;
                    }
                };
                if !self.options.lets_in(peer.ip()) {
                    let text = "turned away, its address is not among those that may come";
                    self.log(&ServerEvent::with_peer(Level::WARN, TURNED_AWAY, peer, text));
                    refuse(&stream);
                    continue;
                }
                if self.hall.sources.is_penalised(peer.ip(), Instant::now()) {
                    // Unsaid, or a flood would fill the log.
                    refuse(&stream);
                    continue;
                }
                let order = self.hall.accepted.fetch_add(1, Ordering::Relaxed);
                debug!(%peer, order, "connection accepted");
                let mut comes_in = self.hall.sources.arrive(order, peer.ip(), &stream, MAX_GUESTS);
                if !comes_in {
                    self.hall.wait_for_guests();
                    comes_in = self.hall.sources.arrive(order, peer.ip(), &stream, MAX_GUESTS);
                }
                let guests = self.hall.guests.fetch_add(1, Ordering::Relaxed);
                if !comes_in {
                    self.hall.guests.fetch_sub(1, Ordering::Relaxed);
                    // Once for each flood.
                    if !self.hall.is_crowded.swap(true, Ordering::Relaxed) {
                        let text = format!("turned away, {guests} others came and have not said who they are");
                        self.log(&ServerEvent::with_peer(Level::WARN, TURNED_AWAY, peer, &text));
                    }
                    refuse(&stream);
                    continue;
                }
                if guests < MAX_GUESTS / 2 {
                    self.hall.is_crowded.store(false, Ordering::Relaxed);
                }
                let spawned = thread::Builder::new()
                    .name("measure-guest".to_owned())
                    .spawn_scoped(scope, move || self.greet(stream, peer, order, stop));
                if let Err(error) = spawned {
                    self.hall.guests.fetch_sub(1, Ordering::Relaxed);
                    self.hall.sources.known(order);
                    let text = format!("starting a thread: {error}");
                    self.log(&ServerEvent::with_peer(Level::ERROR, "thread_failed", peer, &text));
                }
            }
            Ok(())
        })
    }

    /// Reads the cookie and finds out whose connection this is.
    fn greet(&self, stream: TcpStream, peer: SocketAddr, order: u64, stop: &AtomicBool) {
        let begin = Instant::now();
        let arrived = self.cookie_of(stream, peer, stop);
        if let Ok(Arrived::Iperf2 { stream, first }) = arrived {
            self.hall.guests.fetch_sub(1, Ordering::Relaxed);
            self.hall.sources.known(order);
            return self.serve_iperf2(&stream, peer, &first, stop);
        }
        self.hall.guests.fetch_sub(1, Ordering::Relaxed);
        self.hall.sources.known(order);
        if matches!(arrived, Err(MeasureError::NotAClient { .. })) {
            let is_late = begin.elapsed() >= self.options.answer;
            let penalty = if is_late { sources::SILENCE } else { sources::NONSENSE };
            self.hall.sources.penalise(peer.ip(), penalty, Instant::now());
        }
        let (control, cookie, syn) = match arrived {
            Ok(Arrived::Client { control, cookie, syn }) => (control, cookie, syn),
            Ok(Arrived::Iperf2 { .. }) | Err(MeasureError::Cancelled) => return,
            Err(error) => return self.log(&failed(peer, &error)),
        };
        // Half of all places for one address at the most, so that there is always one for another.
        let share = self.options.max_clients.saturating_add(MAX_UNDECIDED);
        // A client of ours opens all its connections without waiting for us.
        let (sender, arrivals) = sync_channel(MAX_OWN_STREAMS as usize);
        let entrance = Entrance { arrivals: sender, answers: Arc::default() };
        let answers = Arc::clone(&entrance.answers);
        let known = {
            let mut sessions = self.hall.sessions();
            let known = sessions.get(&cookie).cloned();
            if known.is_none() {
                // Those that have not yet said what they want get a little room of their own.
                if sessions.len() >= self.options.max_clients.saturating_mul(2).saturating_add(MAX_UNDECIDED) {
                    drop(sessions);
                    self.log(&ServerEvent::with_peer(Level::WARN, TURNED_AWAY, peer, TOO_MANY));
                    return refuse(control.stream());
                }
                sessions.insert(cookie, entrance);
            }
            known
        };
        match known {
            Some(Entrance { arrivals: entrance, answers }) => {
                if let Some(pattern) = answers.pattern() {
                    return answers.answer(control.stream(), pattern, stop);
                }
                if let Err(late) = entrance.try_send(Arrival { order, stream: control.into_stream(), syn }) {
                    let (std::sync::mpsc::TrySendError::Full(late) | std::sync::mpsc::TrySendError::Disconnected(late)) =
                        late;
                    refuse(&late.stream);
                }
            }
            None => {
                match self.hall.sources.take(Kind::Session, peer.ip(), share) {
                    Some(_place) => self.serve(control, peer, (&arrivals, &answers), stop),
                    None => refuse(control.stream()),
                }
                let mut sessions = self.hall.sessions();
                sessions.remove(&cookie);
                // A client of ours holds a conversation while it tests; one of iperf3 is a test.
                if self.options.one_off && sessions.is_empty() && self.hall.tested.load(Ordering::Relaxed) > 0 {
                    self.hall.is_over.store(true, Ordering::Relaxed);
                }
            }
        }
    }

    fn cookie_of(&self, stream: TcpStream, peer: SocketAddr, stop: &AtomicBool) -> Result<Arrived, MeasureError> {
        let failed = |source| MeasureError::Io { peer, operation: "preparing an accepted connection", source };
        stream.set_nonblocking(false).map_err(failed)?;
        target::guard_against_vanished_peer(&SockRef::from(&stream).try_clone().map_err(failed)?).map_err(failed)?;
        let syn = sockopt::saved_syn(&stream).ok().and_then(|packet| handshake::parse_syn(&packet));
        let mut control = Control::new(stream, peer)?;
        let patience = Patience::new(self.options.answer).unless(stop);
        let mut bytes = [0u8; COOKIE_LEN];
        let mut filled = 0;
        while filled < COOKIE_LEN {
            let rest = bytes.get_mut(filled..).unwrap_or_default();
            match control.read_some(rest, patience, "reading the cookie") {
                Ok(count) if count > 0 => filled += count,
                Err(MeasureError::Cancelled) => return Err(MeasureError::Cancelled),
                Ok(_) | Err(_) => {
                    let said = bytes.get(..filled).unwrap_or_default();
                    return Err(MeasureError::NotAClient { peer, foreign: Foreign::named_by(said) });
                }
            }
        }
        match Cookie::received(bytes) {
            Ok(cookie) => Ok(Arrived::Client { control, cookie, syn }),
            Err(Foreign::Iperf2) => Ok(Arrived::Iperf2 { stream: control.into_stream(), first: bytes }),
            Err(foreign) => Err(MeasureError::NotAClient { peer, foreign }),
        }
    }

    /// A connection of iperf 2 is a test of its own. It has no name to show.
    fn serve_iperf2(&self, stream: &TcpStream, peer: SocketAddr, first: &[u8; COOKIE_LEN], stop: &AtomicBool) {
        if self.options.users.is_some() {
            let text = "turned away: an iperf 2, which has no names and passwords; use iperf3 or fullpipe there";
            return self.log(&ServerEvent::with_peer(Level::WARN, TURNED_AWAY, peer, text));
        }
        let (_, share) = self.options.shares();
        let place = self.hall.sources.take(Kind::Test, peer.ip(), share);
        let seat = place.and_then(|place| Some((Seat::take(&self.hall.tests, self.options.max_clients)?, place)));
        let Some(_seat) = seat else {
            return self.log(&ServerEvent::with_peer(Level::WARN, TURNED_AWAY, peer, TOO_MANY));
        };
        let opening = iperf2::Opening::read(first);
        let event = match iperf2::serve(stream, opening, first.len(), (&self.options, stop)) {
            Ok((figures, stopped)) => {
                let ended = stopped.map_or_else(String::new, |why| format!("; ended: {why}"));
                let event = ServerEvent::with_peer(Level::INFO, "test_ended", peer, &format!("{figures}{ended}"));
                ServerEvent { test: Some(figures), ..event }
            }
            Err(source) => failed(peer, &MeasureError::Io { peer, operation: "a test of iperf 2", source }),
        };
        self.log(&event);
        self.hall.tested.fetch_add(1, Ordering::Relaxed);
        if self.options.one_off && self.hall.sessions().is_empty() {
            self.hall.is_over.store(true, Ordering::Relaxed);
        }
    }

    fn serve(
        &self,
        control: Control,
        peer: SocketAddr,
        arriving: (&Receiver<Arrival>, &Arc<Answers>),
        stop: &AtomicBool,
    ) {
        match session::Session::new(self, control, peer, arriving, stop).run() {
            Ok(event) => self.log(&event),
            Err(error) => self.log(&failed(peer, &error)),
        }
    }

    fn log(&self, event: &ServerEvent) {
        if let Some(log) = &self.options.log {
            log(event);
        }
    }
}

impl Hall {
    /// A thousand connections of one test come faster than a busy machine reads their cookies: those that have come get a
    /// moment before the next one is turned away. In a flood, once: whoever is honest would wait behind it.
    fn wait_for_guests(&self) {
        if self.is_crowded.load(Ordering::Relaxed) {
            return;
        }
        for _ in 0..500 {
            if self.guests.load(Ordering::Relaxed) < MAX_GUESTS {
                return;
            }
            thread::sleep(Duration::from_millis(1));
        }
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<Cookie, Entrance>> {
        // Nothing is left half done under this lock, so that a panic elsewhere does not spoil the map.
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A session that ended with an error.
fn failed(peer: SocketAddr, error: &MeasureError) -> ServerEvent {
    ServerEvent::with_peer(level(error), "session_failed", peer, &error.to_string())
}

/// "Busy", as far as the peer still listens.
fn refuse(stream: &TcpStream) {
    use std::io::Write;
    let mut stream = stream;
    drop(stream.set_write_timeout(Some(Duration::from_millis(100))));
    drop(stream.write(&[State::AccessDenied.to_byte()]));
}

/// How bad it is that a client ended so.
fn level(error: &MeasureError) -> Level {
    match error {
        // Its user pressed Ctrl-C.
        MeasureError::Terminated { .. } | MeasureError::Cancelled => Level::INFO,
        _ if error.fault() == Fault::Os => Level::ERROR,
        _ => Level::WARN,
    }
}

fn listen(address: SocketAddr, only_v6: bool) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    // Elsewhere it lets a restarted server have its port back at once; on Windows it would let two have the same port.
    #[cfg(not(windows))]
    socket.set_reuse_address(true)?;
    if address.is_ipv6() && address.ip().is_unspecified() {
        // `::` serves IPv4 too, unless that is not wanted.
        socket.set_only_v6(only_v6)?;
    }
    socket.bind(&address.into())?;
    socket.listen(256)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

/// Errors of `accept` that say something about that connection only (accept(2)).
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind as Kind;
    matches!(
        error.kind(),
        Kind::WouldBlock
            | Kind::Interrupted
            | Kind::ConnectionAborted
            | Kind::ConnectionReset
            | Kind::HostUnreachable
            | Kind::NetworkUnreachable
    ) || sockopt::is_of_one_connection(error)
}
