//! One test, from the server's side; a conversation branches off after the parameters.

use std::{
    net::{SocketAddr, TcpStream, UdpSocket},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc::Receiver,
    },
    time::{Duration, Instant, SystemTime},
};

use fullpipe_units::{Bytes, Micros, Rate};
use socket2::SockRef;
use tracing::{Level, debug};

use super::{
    Arrival, Server, ServerEvent, TOO_MANY, TURNED_AWAY, TestFigures, output,
    sources::{self, Kind},
    talk,
};
use crate::{
    auth,
    control::Control,
    error::MeasureError,
    exchange::{Answering, Answers},
    flow::Flow,
    lane::{self, Lane, Manner, Role},
    patience::Patience,
    report::EndReport,
    sys::{host, sockopt, traffic_class},
    transfer::Moving,
    udp::{Doorkeeper, UdpFlow, UdpLane},
    wire::{self, COOKIE_LEN, INDEX_LEN, PARAMS_ACCEPTED, Params, State},
};

/// How often the control connection is looked at while payload moves.
const LOOK: Duration = Duration::from_millis(10);

/// The same where only standing still and being stopped count.
const REST: Duration = Duration::from_millis(250);

/// A client's own figures; our own clients send less than a kilobyte per stream.
const CLIENT_RESULTS_LIMIT: u32 = 1 << 20;

/// iperf3 ends a test that lasts longer than announced by this: ten states of at most 4 s each.
const GRACE: Duration = Duration::from_secs(40);

const HANDSHAKE: &str = "the handshake";
const WAITING: &str = "waiting for data connections";
const TRANSFER: &str = "the transfer";
const RESULTS: &str = "the exchange of results";

pub(super) struct Session<'a> {
    pub(super) server: &'a Server,
    pub(super) control: Control,
    pub(super) peer: SocketAddr,
    arrivals: &'a Receiver<Arrival>,
    answers: &'a Arc<Answers>,
    pub(super) stop: &'a AtomicBool,
}

impl<'a> Session<'a> {
    pub(super) fn new(
        server: &'a Server,
        control: Control,
        peer: SocketAddr,
        (arrivals, answers): (&'a Receiver<Arrival>, &'a Arc<Answers>),
        stop: &'a AtomicBool,
    ) -> Self {
        Self { server, control, peer, arrivals, answers, stop }
    }

    /// Returns what to log.
    pub(super) fn run(mut self) -> Result<ServerEvent, MeasureError> {
        match self.converse_or_test() {
            Ok(line) => {
                self.control.close();
                Ok(line)
            }
            Err(MeasureError::Cancelled) => {
                let event = self.event(Level::INFO, "session_stopped", "ended, because the server was stopped");
                self.control.close();
                Ok(event)
            }
            Err(error) => Err(error),
        }
    }

    fn event(&self, level: Level, kind: &'static str, text: &str) -> ServerEvent {
        ServerEvent::with_peer(level, kind, self.peer, text)
    }

    fn converse_or_test(&mut self) -> Result<ServerEvent, MeasureError> {
        let patience = self.patience();
        self.control.write_state(State::ParamExchange, patience, HANDSHAKE)?;
        let value = self.control.read_json(PARAMS_ACCEPTED, patience, HANDSHAKE)?;
        let params = match Params::from_json(&value) {
            Ok(params) => params,
            Err(bad) => {
                self.tell_error(bad.code);
                let problem = bad.problem.to_owned();
                return Err(MeasureError::BadMessage { peer: self.peer, operation: HANDSHAKE, problem });
            }
        };
        let user = self.user(&params)?;
        let ours = params.ours.filter(|ours| ours.conversation);
        let hall = &self.server.hall;
        let room = if ours.is_some() { &hall.talks } else { &hall.tests };
        let (talks, tests) = self.server.options.shares();
        let (kind, share) = if ours.is_some() { (Kind::Talk, talks) } else { (Kind::Test, tests) };
        let place = hall.sources.take(kind, self.peer.ip(), share);
        let seat = place.and_then(|place| Some((Seat::take(room, self.server.options.max_clients)?, place)));
        let Some(_seat) = seat else {
            self.control.write_state(State::AccessDenied, patience, HANDSHAKE)?;
            return Ok(self.event(Level::WARN, TURNED_AWAY, TOO_MANY));
        };
        let Some(ours) = ours else {
            let figures = TestFigures { user, ..self.test(&params)? };
            let event = self.event(Level::INFO, "test_ended", &figures.to_string());
            return Ok(ServerEvent { test: Some(figures), ..event });
        };
        let line = talk::converse(self, ours.version)?;
        let line = user.map_or_else(|| line.clone(), |user| format!("{user}: {line}"));
        Ok(self.event(Level::INFO, "session_ended", &line))
    }

    /// Lets in who shows a name and password, where these are asked for. Every answer takes the same time, so that it
    /// tells nothing of the key.
    fn user(&mut self, params: &Params) -> Result<Option<String>, MeasureError> {
        let Some(users) = &self.server.options.users else { return Ok(None) };
        let start = Instant::now();
        let checked = users.check(params.authtoken.as_deref(), SystemTime::now());
        std::thread::sleep(auth::ANSWER_AFTER.saturating_sub(start.elapsed()));
        match checked {
            Ok(user) => Ok(Some(user)),
            Err(reason) => {
                self.penalise(sources::WRONG_KEY);
                self.tell_error(142);
                let problem = format!("turned away: {reason}");
                Err(MeasureError::BadMessage { peer: self.peer, operation: HANDSHAKE, problem })
            }
        }
    }

    fn test(&mut self, params: &Params) -> Result<TestFigures, MeasureError> {
        let (time, omit) = duration(params);
        if time + omit > self.server.options.longest_test {
            self.tell_error(37);
            let problem = format!("a test of {} s is longer than this server allows", (time + omit).as_secs_f64());
            return Err(MeasureError::BadMessage { peer: self.peer, operation: HANDSHAKE, problem });
        }
        if let Some(problem) = self.beyond_limits(params) {
            // "Total required bandwidth is larger than server limit": the nearest that iperf3 has words for.
            self.tell_error(27);
            return Err(MeasureError::BadMessage { peer: self.peer, operation: HANDSHAKE, problem });
        }
        debug!(
            peer = %self.peer,
            connections = params.connections(),
            seconds = time.as_secs_f64(),
            omitted_s = omit.as_secs_f64(),
            udp = params.udp,
            "test agreed on"
        );
        host::allow_files(params.connections() as u64);
        // Greetings with datagrams have no cookie: no other test may wait for them from here on.
        let door = if params.udp { Some(self.hold_door()?) } else { None };
        let patience = self.patience();
        self.control.write_state(State::CreateStreams, patience, HANDSHAKE)?;
        let pattern = params.ours.and_then(|ours| ours.exchange);
        let lanes = if pattern.is_some_and(|pattern| pattern.connect) {
            Lanes::Tcp(Vec::new())
        } else if params.udp {
            Lanes::Udp(self.greeted(params, door)?)
        } else {
            Lanes::Tcp(self.lanes(params)?)
        };
        let patience = self.patience();
        self.control.write_state(State::TestStart, patience, HANDSHAKE)?;
        self.control.write_state(State::TestRunning, patience, HANDSHAKE)?;
        let failed = |source| MeasureError::Io { peer: self.peer, operation: "starting the transfer", source };
        let manner = self.manner(params);
        let mut moving: Box<dyn Flow> = match lanes {
            Lanes::Tcp(lanes) if pattern.is_some() => {
                let answering = Answering::start(lanes, pattern.unwrap_or_default(), self.answers);
                Box::new(answering.map_err(failed)?)
            }
            Lanes::Tcp(lanes) => Box::new(Moving::start(lanes, &manner).map_err(failed)?),
            Lanes::Udp(lanes) => Box::new(UdpFlow::start(lanes, &manner, params.counters_64bit).map_err(failed)?),
        };
        let watched = self.watch(params, moving.as_mut());
        if matches!(watched, Err(MeasureError::Cancelled | MeasureError::OverLimit { .. })) {
            // Before the data connections go, or the client would take it for a failure of these.
            let patience = Patience::new(Duration::from_secs(1));
            drop(self.control.write_state(State::ServerTerminate, patience, TRANSFER));
        }
        let report = moving.stop();
        // A foreign client may take a reset for a failure; ours waits for the results and not for the queue.
        moving.release(params.ours.is_some());
        self.server.hall.tested.fetch_add(1, Ordering::Relaxed);
        watched?;
        self.exchange(params, &report)?;
        Ok(figures(params, &report, pattern.map(|_| self.answers.count())))
    }

    /// Collects the data connections and puts them in the order in which the client counts them.
    fn lanes(&mut self, params: &Params) -> Result<Vec<Lane>, MeasureError> {
        let indexed = params.ours.is_some_and(|ours| ours.indexed);
        let mut arrived = self.arrived(params.connections())?;
        if indexed {
            for arrival in &mut arrived {
                arrival.order = self.index_of(arrival)?;
            }
        }
        arrived.sort_by_key(|arrival| arrival.order);
        if indexed && arrived.iter().zip(0..).any(|(arrival, index)| arrival.order != index) {
            let problem = "the data connections are not numbered from 0".to_owned();
            return Err(MeasureError::BadMessage { peer: self.peer, operation: WAITING, problem });
        }
        let pace_bps = self.manner(params).kernel_pace_bps();
        let lane = |(index, arrival): (usize, Arrival)| {
            let role = role_of(index, params);
            prepare(&arrival, params, role, pace_bps);
            let preamble = (COOKIE_LEN + if indexed { INDEX_LEN } else { 0 }) as u64;
            let id = wire::stream_id(index);
            Lane { id, role, stream: arrival.stream, saved_syn: arrival.syn, opened: false, preamble }
        };
        Ok(arrived.into_iter().enumerate().map(lane).collect())
    }

    /// Waits for all data connections; each has the time of an answer for itself.
    fn arrived(&mut self, wanted: usize) -> Result<Vec<Arrival>, MeasureError> {
        let mut patience = self.patience();
        let mut arrived: Vec<Arrival> = Vec::new();
        while arrived.len() < wanted {
            patience.check_cancelled()?;
            if patience.is_over() {
                self.tell_error(118);
                let after = patience.total();
                return Err(MeasureError::Timeout { peer: self.peer, operation: WAITING, after });
            }
            if let Ok(arrival) = self.arrivals.recv_timeout(LOOK) {
                arrived.push(arrival);
                patience = self.patience();
            } else if let Some(state) = self.control.poll_state(Duration::from_millis(1))? {
                // A client that gave up meanwhile says so, or is gone.
                return Err(ended_by(self.peer, state));
            }
        }
        Ok(arrived)
    }

    fn hold_door(&mut self) -> Result<Doorkeeper<'a>, MeasureError> {
        let Some(door) = &self.server.door else {
            self.tell_error(13);
            let problem = "the UDP port of this server is taken by another program".to_owned();
            return Err(MeasureError::BadMessage { peer: self.peer, operation: HANDSHAKE, problem });
        };
        let failed = |source| MeasureError::Io { peer: self.peer, operation: HANDSHAKE, source };
        let local = self.control.stream().local_addr().map_err(failed)?;
        let peer = self.control.stream().peer_addr().map_err(failed)?;
        door.hold((local, peer), self.patience())
    }

    /// Waits for the greetings of all streams with datagrams, in the time of one answer, since others wait meanwhile.
    fn greeted(&mut self, params: &Params, door: Option<Doorkeeper<'_>>) -> Result<Vec<UdpLane>, MeasureError> {
        let failed = |source| MeasureError::Io { peer: self.peer, operation: WAITING, source };
        let patience = self.patience();
        let mut lanes = Vec::new();
        while let Some(door) = door.as_ref().filter(|_| lanes.len() < params.connections()) {
            patience.check_cancelled()?;
            if patience.is_over() {
                self.tell_error(118);
                return Err(MeasureError::Timeout { peer: self.peer, operation: WAITING, after: patience.total() });
            }
            if let Some(socket) = door.answer().map_err(failed)? {
                let role = role_of(lanes.len(), params);
                prepare_datagrams(&socket, params, role);
                lanes.push(UdpLane { id: wire::stream_id(lanes.len()), role, socket });
            } else if let Some(state) = self.control.poll_state(Duration::from_millis(1))? {
                return Err(ended_by(self.peer, state));
            }
        }
        Ok(lanes)
    }

    /// The number that follows the cookie.
    fn index_of(&self, arrival: &Arrival) -> Result<u64, MeasureError> {
        let failed = |source| MeasureError::Io { peer: self.peer, operation: WAITING, source };
        let stream = arrival.stream.try_clone().map_err(failed)?;
        let mut index = [0u8; INDEX_LEN];
        Control::new(stream, self.peer)?.read_exact(&mut index, self.patience(), WAITING)?;
        Ok(u64::from(u16::from_be_bytes(index)))
    }

    /// Waits for the client to end the test.
    fn watch(&mut self, params: &Params, moving: &mut dyn Flow) -> Result<(), MeasureError> {
        let (time, omit) = duration(params);
        let limit = if time.is_zero() { self.server.options.longest_test } else { time + omit + GRACE };
        let mut moved = (0, Instant::now());
        loop {
            self.patience().check_cancelled()?;
            match self.control.poll_state(self.rest(params, moving))? {
                Some(State::TestEnd) => {
                    self.take_the_rest(params, moving);
                    return Ok(());
                }
                Some(state) => return Err(ended_by(self.peer, state)),
                None => {}
            }
            if let Some(limit) = self.server.options.max_bytes.filter(|limit| moving.activity() > limit.get()) {
                return Err(MeasureError::OverLimit { peer: self.peer, limit });
            }
            let elapsed = moving.elapsed();
            if !moving.is_marked() && !omit.is_zero() && elapsed >= omit {
                moving.mark_steady();
            }
            let total = moving.activity();
            if total > moved.0 {
                moved = (total, Instant::now());
            } else if moved.1.elapsed() > self.server.options.stall {
                self.tell_error(144);
                return Err(MeasureError::Stalled { peer: self.peer, after: self.server.options.stall });
            }
            if elapsed > limit {
                self.tell_error(160);
                return Err(MeasureError::Timeout { peer: self.peer, operation: TRANSFER, after: limit });
            }
        }
    }

    /// How long nothing but a word of the client needs this thread. Each time that it wakes on the processor of a receiver
    /// costs that one's connection the time of some hundred segments: at 100 Gbit/s, a hundred times a second are 8 %.
    fn rest(&self, params: &Params, moving: &dyn Flow) -> Duration {
        if self.server.options.max_bytes.is_some() {
            return LOOK;
        }
        let (_, omit) = duration(params);
        let steady = omit.saturating_sub(moving.elapsed());
        if moving.is_marked() || omit.is_zero() { REST } else { steady.clamp(LOOK, REST) }
    }

    /// Where bytes or blocks ended the test, the client has sent all of them, and the last are still on their way or unread: they
    /// are waited for as long as they come. A test that time ends is over at once, as with iperf3.
    fn take_the_rest(&self, params: &Params, moving: &dyn Flow) {
        const LONGEST: Duration = Duration::from_secs(5);
        const QUIET: Duration = Duration::from_millis(500);
        let (_, omit) = duration(params);
        let all = params.payload();
        if all == 0 || !omit.is_zero() || !moving.has(Role::Receive) {
            return;
        }
        let start = Instant::now();
        let mut seen = (moving.progress(Role::Receive), start);
        while seen.0 < all && seen.1.elapsed() < QUIET && start.elapsed() < LONGEST {
            if self.stop.load(Ordering::Relaxed) || moving.failure().is_some() {
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
            let now = moving.progress(Role::Receive);
            if now > seen.0 {
                seen = (now, Instant::now());
            }
        }
    }

    fn exchange(&mut self, params: &Params, report: &EndReport) -> Result<(), MeasureError> {
        let patience = Patience::new(self.server.options.answer.saturating_mul(3)).unless(self.stop);
        self.control.write_state(State::ExchangeResults, patience, RESULTS)?;
        // The client's own figures are its own affair; they are read because they stand in the way.
        self.control.read_json(CLIENT_RESULTS_LIMIT, patience, RESULTS)?;
        let series = params.ours.map(|_| report.series_budget());
        let mut results = report.results(series);
        results.server_output = params.server_output.then(|| output::text(self.peer, params, report));
        self.control.write_json(&results.to_json(), patience, RESULTS)?;
        self.control.write_state(State::DisplayResults, patience, RESULTS)?;
        // Some clients just close.
        drop(self.control.read_state(self.patience(), RESULTS));
        Ok(())
    }

    /// Why the test is more than this server allows.
    fn beyond_limits(&self, params: &Params) -> Option<String> {
        let options = &self.server.options;
        let wanted = params.bandwidth.map(|bps| bps.saturating_mul(u64::from(params.parallel)));
        if let (Some(wanted), Some(limit)) = (wanted, options.max_rate)
            && wanted > limit.bps()
        {
            return Some(format!("a test at {} is faster than this server allows ({limit})", Rate::from_bps(wanted)));
        }
        let limit = options.max_bytes.filter(|limit| params.num > limit.get())?;
        Some(format!("a test of {} is larger than this server allows ({limit})", Bytes::new(params.num)))
    }

    fn manner(&self, params: &Params) -> Manner {
        let (_, omit) = duration(params);
        let share = self.server.options.max_rate.map(|rate| (rate.bps() / u64::from(params.parallel)).max(1));
        Manner {
            block: usize::try_from(params.block).unwrap_or(1 << 20),
            copy: params.ours.is_some_and(|ours| ours.copy),
            // A client that omits some of the bytes decides itself when there were enough.
            budget: Some(params.num).filter(|&num| num > 0 && omit.is_zero()),
            zerocopy: params.zerocopy,
            pace_bps: params.bandwidth.into_iter().chain(share).min(),
            burst: params.burst,
            read_bps: share,
            sampling: !params.ours.is_some_and(|ours| ours.unsampled),
            // Where bytes end a test there is no time for trials.
            max: Some(omit).filter(|_| params.num == 0 && params.ours.is_some_and(|ours| ours.max)),
        }
    }

    /// Counts something against the client's address.
    pub(super) fn penalise(&self, penalty: Duration) {
        self.server.hall.sources.penalise(self.peer.ip(), penalty, Instant::now());
    }

    pub(super) fn patience(&self) -> Patience<'a> {
        Patience::new(self.server.options.answer).unless(self.stop)
    }

    /// Says in iperf3's words why the test ends here.
    fn tell_error(&mut self, code: i32) {
        let mut message = vec![State::ServerError.to_byte()];
        message.extend_from_slice(&code.to_be_bytes());
        message.extend_from_slice(&0i32.to_be_bytes());
        // The client notices the end of the connection as well.
        drop(self.control.write_all(&message, Patience::new(Duration::from_secs(1)), HANDSHAKE));
    }
}

/// One of the places for tests, or for conversations; dropping it gives it back.
pub(super) struct Seat<'a>(&'a AtomicUsize);

impl<'a> Seat<'a> {
    pub(super) fn take(room: &'a AtomicUsize, places: usize) -> Option<Self> {
        let seat = Self(room);
        // Where there was no place, dropping the seat takes the count back.
        (room.fetch_add(1, Ordering::Relaxed) < places).then_some(seat)
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn ended_by(peer: SocketAddr, state: State) -> MeasureError {
    match state {
        State::ClientTerminate => MeasureError::Terminated { peer },
        other => {
            let problem = format!("the state {other:?} does not belong here");
            MeasureError::BadMessage { peer, operation: TRANSFER, problem }
        }
    }
}

/// Time and omitted time.
fn duration(params: &Params) -> (Duration, Duration) {
    let of = |ours: Option<u64>, seconds| ours.map_or_else(|| Duration::from_secs(seconds), Duration::from_millis);
    let ours = params.ours.unwrap_or_default();
    (of(ours.time_ms, params.time_s), of(ours.omit_ms, params.omit_s))
}

/// What this end does on the connection that was opened as number `index`.
fn role_of(index: usize, params: &Params) -> Role {
    // The client opens those that it sends on first.
    let client_sends = if params.bidirectional { index < params.parallel as usize } else { !params.reverse };
    if client_sends { Role::Receive } else { Role::Send }
}

/// The data connections of a test, ready to carry payload.
enum Lanes {
    Tcp(Vec<Lane>),
    Udp(Vec<UdpLane>),
}

/// As [`prepare`], for a socket with datagrams.
fn prepare_datagrams(socket: &UdpSocket, params: &Params, role: Role) {
    let socket = SockRef::from(socket);
    if let Some(bytes) = params.window {
        drop(match role {
            Role::Send => socket.set_send_buffer_size(bytes as usize),
            Role::Receive => socket.set_recv_buffer_size(bytes as usize),
        });
    }
    if let Some(tos) = params.tos {
        drop(traffic_class::mark(&socket, tos));
    }
}

/// Sets a congestion control, if it is one that there is. For another the kernel would load a module, which is not a client's to
/// decide.
fn set_congestion(stream: &TcpStream, name: &str, available: &[String]) {
    if available.iter().any(|available| available == name) {
        drop(sockopt::set_congestion(stream, name));
    }
}

/// Options that the client asked for. One that can't be set is left as it was: the results tell the congestion control
/// that was used and the sizes that the buffers had. `pace_bps` is what a sender paces itself to.
fn prepare(arrival: &Arrival, params: &Params, role: Role, pace_bps: Option<u64>) {
    let socket = SockRef::from(&arrival.stream);
    drop(socket.set_tcp_nodelay(params.nodelay));
    let ours = params.ours.unwrap_or_default();
    let has_own = ours.send_buffer.or(ours.receive_buffer).is_some();
    let window = params.window.filter(|_| !has_own);
    let (send, receive) = match role {
        Role::Send => (ours.send_buffer.or(window), window),
        Role::Receive => (window, ours.receive_buffer.or(window)),
    };
    if let Some(bytes) = send {
        drop(socket.set_send_buffer_size(bytes as usize));
    }
    if let Some(bytes) = receive {
        drop(socket.set_recv_buffer_size(bytes as usize));
    }
    if let Some(name) = &params.congestion {
        set_congestion(&arrival.stream, name, &host::available_congestion_controls());
    }
    if let Some(mss) = params.mss {
        drop(sockopt::set_max_segment(&arrival.stream, mss));
    }
    if let Some(tos) = params.tos {
        drop(traffic_class::mark(&socket, tos));
    }
    if role == Role::Send
        && let Some(bytes_per_second) = lane::pacing(params.fqrate, pace_bps)
    {
        drop(sockopt::set_max_pacing_rate(&arrival.stream, bytes_per_second));
    }
}

fn figures(params: &Params, report: &EndReport, requests: Option<u64>) -> TestFigures {
    let total = |role| Bytes::new(report.lanes.iter().filter(|lane| lane.role == role).map(|lane| lane.bytes).sum());
    // iperf3 gives its number alone.
    let named = |version: &String| {
        if version.starts_with(|c: char| c.is_ascii_digit()) { format!("iperf3 {version}") } else { version.clone() }
    };
    TestFigures {
        user: None,
        client: params.client_version.as_ref().map(named),
        title: params.title.clone(),
        connections: report.lanes.len() as u64,
        duration: Micros::new(report.lanes.iter().map(|lane| lane.duration_us).max().unwrap_or(0)),
        received: total(Role::Receive),
        sent: total(Role::Send),
        requests,
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_client_chooses_among_the_congestion_controls_that_there_are() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("bound");
        let stream = TcpStream::connect(listener.local_addr().expect("an address")).expect("connected");
        let now = || sockopt::congestion(&stream).expect("one");
        sockopt::set_congestion(&stream, "cubic").expect("every kernel has it");
        // The kernel has it, too: what it does not have it would look for among its modules.
        set_congestion(&stream, "reno", &["cubic".to_owned()]);
        assert_eq!(now(), "cubic");
        set_congestion(&stream, "reno", &["cubic".to_owned(), "reno".to_owned()]);
        assert_eq!(now(), "reno");
    }
}
