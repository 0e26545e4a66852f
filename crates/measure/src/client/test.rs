//! One test, from the client's side.

use std::{
    io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant, SystemTime},
};

use fullpipe_probe::is_pause;
use fullpipe_units::{Bytes, Micros, Rate};
use socket2::{SockRef, Socket};

use super::{Agreed, Client, iperf2, session};
use crate::{
    control::Control,
    error::MeasureError,
    flow::Flow,
    lane::{self, Lane, Manner, Role},
    measurement::{Accounts, Cpu, Measurement, PeerKind},
    patience::Patience,
    report::{EndReport, FarReport},
    spec::{Length, Phase, Progress, TestDirection, TestSpec},
    sys::{host, sockopt, traffic_class},
    target,
    transfer::Moving,
    udp::{self, UdpFlow, UdpLane},
    wire::{self, Cookie, OurParams, Params, RESULTS_LIMIT, Results, State},
};

/// How often the control connection is looked at while payload moves.
const LOOK: Duration = Duration::from_millis(10);

/// The same where only being cancelled counts.
const REST: Duration = Duration::from_millis(100);

const SETTING_UP: &str = "setting up the test";
const RESULTS: &str = "the exchange of results";

type Report<'a> = &'a mut (dyn FnMut(Progress) + Send);

/// How the transfer came to its end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    Complete,
    Cancelled,
}

/// How payload is moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effort {
    /// Fast, and without changing what is measured.
    Truthful,
    /// As fast as the hosts can.
    Max,
}

pub(super) fn run(
    client: &mut Client,
    spec: &TestSpec,
    effort: Effort,
    cancel: &AtomicBool,
    progress: Report<'_>,
) -> Result<Measurement, MeasureError> {
    match client.kind {
        PeerKind::Fullpipe => {}
        PeerKind::Iperf3 => spec.check_foreign()?,
        PeerKind::Iperf2 => {
            iperf2::check(spec)?;
            return run_alone(client, spec, effort, cancel, progress);
        }
    }
    host::allow_files(u64::from(spec.streams) * 2);
    progress(phase(Phase::Idle, spec));
    if spec.pings > 0 && client.kind == PeerKind::Fullpipe {
        client.ping(spec.pings)?;
    }
    progress(phase(Phase::Connecting, spec));
    let started = SystemTime::now();
    let (mut control, cookie) = open_control(client, (spec, effort), cancel)?;
    let patience = || Patience::new(client.options.answer).unless(cancel);
    let lanes = Lanes::open(client, spec, &cookie, cancel)?;
    expect(&mut control, State::TestStart, patience())?;
    expect(&mut control, State::TestRunning, patience())?;
    let failed = |source| MeasureError::Io { peer: client.peer, operation: "starting the transfer", source };
    let begun = Begun { started, cookie, local_ends: lanes.local_ends() };
    let mut moving = lanes.start(spec, effort).map_err(failed)?;

    let ending = watch(client, spec, cancel, Some(&mut control), moving.as_mut(), progress)?;
    progress(phase(Phase::Finishing, spec));
    let own = moving.stop();
    let outcome = finish(client, &mut control, &own);
    moving.release(false);
    let mut warnings = Vec::new();
    let results = match (outcome, ending) {
        (Ok(results), _) => {
            control.close();
            Some(results)
        }
        (Err(error), Ending::Cancelled) => {
            warnings.push(format!("stopped before the far end gave its account: {error}"));
            None
        }
        (Err(error), Ending::Complete) => return Err(error),
    };
    warn(client, spec, results.as_ref(), &mut warnings);
    let accounts = Accounts {
        own,
        far: results.as_ref().and_then(|results| FarReport::from_json(results.ours.as_ref()?)),
        results,
        peer_name: &client.peer_name(),
        idle_rtt: client.idle_rtt,
        path_mtu: client.mtu.map(|mtu| [mtu.up.mtu, mtu.down.mtu]).unwrap_or_default(),
    };
    Ok(measurement(client, begun, &accounts, ending, warnings))
}

/// A test with a server that says nothing: what its kernel acknowledges is all that is known.
fn run_alone(
    client: &Client,
    spec: &TestSpec,
    effort: Effort,
    cancel: &AtomicBool,
    progress: Report<'_>,
) -> Result<Measurement, MeasureError> {
    host::allow_files(u64::from(spec.streams) * 2);
    progress(phase(Phase::Connecting, spec));
    let started = SystemTime::now();
    let cookie = session::cookie(client.peer)?;
    let lanes = Lanes::open(client, spec, &cookie, cancel)?;
    let failed = |source| MeasureError::Io { peer: client.peer, operation: "starting the transfer", source };
    let begun = Begun { started, cookie, local_ends: lanes.local_ends() };
    let streams = lanes.streams().map_err(failed)?;
    let mut moving = lanes.start(spec, effort).map_err(failed)?;
    let ending = watch(client, spec, cancel, None, moving.as_mut(), progress)?;
    progress(phase(Phase::Finishing, spec));
    let own = moving.stop();
    iperf2::take_leave(&streams, Patience::new(client.options.answer).unless(cancel));
    moving.release(false);
    let accounts =
        Accounts { own, far: None, results: None, peer_name: &client.peer_name(), idle_rtt: None, path_mtu: [None; 2] };
    let warnings = vec!["an iperf 2 server gives no account: the figures are of what it acknowledged".to_owned()];
    Ok(measurement(client, begun, &accounts, ending, warnings))
}

/// What is known of a test when it begins.
struct Begun {
    started: SystemTime,
    cookie: Cookie,
    local_ends: Vec<SocketAddr>,
}

/// What a test comes to by the accounts of its ends.
fn measurement(
    client: &Client,
    begun: Begun,
    accounts: &Accounts<'_>,
    ending: Ending,
    warnings: Vec<String>,
) -> Measurement {
    Measurement {
        peer: client.peer,
        peer_kind: client.kind,
        started: begun.started,
        cookie: begun.cookie.to_string(),
        local_ends: begun.local_ends,
        server_output: accounts.results.as_ref().and_then(|results| results.server_output.clone()),
        far_cpu: accounts.results.as_ref().map(Cpu::of_results),
        own_cpu: Cpu::of_report(&accounts.own),
        own_push: accounts.own.push.clone(),
        far_push: accounts.far.as_ref().and_then(|far| far.push.clone()),
        directions: accounts.directions(),
        cancelled: ending == Ending::Cancelled,
        warnings,
    }
}

/// A foreign server serves one client at a time and needs a moment between two.
fn open_control(
    client: &mut Client,
    test: (&TestSpec, Effort),
    cancel: &AtomicBool,
) -> Result<(Control, Cookie), MeasureError> {
    match client.agreed.take() {
        // A foreign server knows of no effort, so that it agreed to either.
        Some(agreed) if agreed.spec == *test.0 => return Ok((agreed.control, agreed.cookie)),
        Some(Agreed { control, .. }) => session::leave(control),
        None => {}
    }
    let again_until = Instant::now() + Duration::from_secs(3);
    loop {
        let cookie = session::cookie(client.peer)?;
        let attempt = || {
            let connecting = Patience::new(client.options.connect).unless(cancel);
            let stream = target::connect_control(client.peer, connecting)?;
            let answering = Patience::new(client.options.answer).unless(cancel);
            session::open_with(stream, client.peer, &client.signed(params(client.kind, test)), &cookie, answering)
        };
        match attempt() {
            Ok((control, State::CreateStreams)) => return Ok((control, cookie)),
            Ok((control, state)) => return Err(session::unexpected(control.peer(), SETTING_UP, state)),
            Err(MeasureError::Busy { .. } | MeasureError::Refused { .. } | MeasureError::Closed { .. })
                if client.kind == PeerKind::Iperf3 && Instant::now() < again_until =>
            {
                Patience::new(Duration::ZERO).unless(cancel).check_cancelled()?;
                thread::sleep(Duration::from_millis(100));
            }
            // It has answered before.
            Err(MeasureError::Refused { peer }) if client.kind == PeerKind::Iperf3 => {
                return Err(MeasureError::OneTest { peer });
            }
            Err(error) => return Err(error),
        }
    }
}

pub(super) fn params(kind: PeerKind, (spec, effort): (&TestSpec, Effort)) -> Params {
    let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let whole_seconds = |time: Duration| time.as_secs() + u64::from(time.subsec_nanos() > 0);
    let (time, num) = match spec.length {
        Length::Time(time) => (Some(time), 0),
        Length::Bytes(bytes) => (None, bytes.get()),
    };
    let buffer = |bytes: Option<Bytes>| bytes.and_then(|bytes| u32::try_from(bytes.get()).ok());
    let window = buffer(spec.send_buffer).filter(|_| spec.send_buffer == spec.receive_buffer);
    Params {
        omit_s: whole_seconds(spec.omit),
        time_s: time.map_or(0, whole_seconds),
        num,
        parallel: spec.streams,
        reverse: spec.direction == TestDirection::Down,
        bidirectional: spec.direction == TestDirection::Both,
        udp: spec.udp.is_some(),
        counters_64bit: spec.udp.is_some_and(|udp| udp.counters_64bit),
        block: spec.block.get(),
        nodelay: spec.nodelay,
        mss: spec.mss,
        bandwidth: spec.pace.map(Rate::bps),
        burst: spec.burst,
        fqrate: spec.max_pacing_rate.map(Rate::bps),
        tos: spec.tos.map(u32::from),
        zerocopy: spec.zerocopy,
        title: spec.title.clone(),
        extra_data: spec.extra_data.clone(),
        server_output: spec.server_output,
        congestion: spec.congestion_control.clone(),
        window,
        ours: Some(OurParams {
            version: wire::VERSION,
            copy: spec.copy,
            max: effort == Effort::Max,
            unsampled: !spec.sampling,
            indexed: kind == PeerKind::Fullpipe,
            time_ms: time.map(millis),
            omit_ms: Some(millis(spec.omit)),
            send_buffer: buffer(spec.send_buffer),
            receive_buffer: buffer(spec.receive_buffer),
            ..OurParams::default()
        }),
        ..Params::default()
    }
}

fn manner(spec: &TestSpec, effort: Effort) -> Manner {
    let budget = match spec.length {
        Length::Bytes(bytes) => Some(bytes.get()),
        Length::Time(_) => None,
    };
    Manner {
        block: usize::try_from(spec.block.get()).unwrap_or(1 << 20),
        copy: spec.copy,
        budget,
        zerocopy: spec.zerocopy,
        pace_bps: spec.pace.map(Rate::bps),
        burst: spec.burst,
        read_bps: None,
        sampling: spec.sampling,
        max: Some(spec.omit).filter(|_| effort == Effort::Max),
    }
}

/// The roles of the data connections, in order: first those that the client sends on, then those that it receives on.
fn roles(spec: &TestSpec) -> Vec<Role> {
    let roles: &[Role] = match spec.direction {
        TestDirection::Up => &[Role::Send],
        TestDirection::Down => &[Role::Receive],
        TestDirection::Both => &[Role::Send, Role::Receive],
    };
    roles.iter().flat_map(|role| (0..spec.streams).map(|_| *role)).collect()
}

/// The data connections of a test, ready to carry payload.
enum Lanes {
    Tcp(Vec<Lane>),
    Udp(Vec<UdpLane>),
}

impl Lanes {
    fn open(client: &Client, spec: &TestSpec, cookie: &Cookie, cancel: &AtomicBool) -> Result<Self, MeasureError> {
        if spec.udp.is_some() {
            return open_datagrams(client, spec, cancel).map(Self::Udp);
        }
        open_lanes(client, spec, cookie, cancel).map(Self::Tcp)
    }

    /// Those that send first, as the directions are counted.
    fn local_ends(&self) -> Vec<SocketAddr> {
        let Self::Tcp(lanes) = self else { return Vec::new() };
        let of_role = |role| lanes.iter().filter(move |lane| lane.role == role);
        of_role(Role::Send).chain(of_role(Role::Receive)).filter_map(|lane| lane.stream.local_addr().ok()).collect()
    }

    fn streams(&self) -> io::Result<Vec<TcpStream>> {
        let Self::Tcp(lanes) = self else { return Ok(Vec::new()) };
        lanes.iter().map(|lane| lane.stream.try_clone()).collect()
    }

    fn start(self, spec: &TestSpec, effort: Effort) -> io::Result<Box<dyn Flow>> {
        Ok(match self {
            Self::Tcp(lanes) => Box::new(Moving::start(lanes, &manner(spec, effort))?),
            Self::Udp(lanes) => {
                let wide = spec.udp.is_some_and(|udp| udp.counters_64bit);
                Box::new(UdpFlow::start(lanes, &manner(spec, effort), wide)?)
            }
        })
    }
}

/// Greets the server from a socket per stream, one after another: it knows them by their order alone.
fn open_datagrams(client: &Client, spec: &TestSpec, cancel: &AtomicBool) -> Result<Vec<UdpLane>, MeasureError> {
    let failed = |source| MeasureError::Io { peer: client.peer, operation: SETTING_UP, source };
    let mut lanes = Vec::new();
    for (index, role) in roles(spec).into_iter().enumerate() {
        let patience = Patience::new(client.options.answer).unless(cancel);
        let any: SocketAddr = match client.peer {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let socket = UdpSocket::bind(any).and_then(|socket| {
            socket.connect(client.peer)?;
            set_up_datagrams(&socket, spec, role)?;
            Ok(socket)
        });
        let socket = socket.map_err(failed)?;
        greet(&socket, client.peer, patience)?;
        lanes.push(UdpLane { id: wire::stream_id(index), role, socket });
    }
    Ok(lanes)
}

fn set_up_datagrams(socket: &UdpSocket, spec: &TestSpec, role: Role) -> io::Result<()> {
    let socket = SockRef::from(socket);
    let size = |bytes: Bytes| usize::try_from(bytes.get()).unwrap_or(usize::MAX);
    match (role, spec.send_buffer, spec.receive_buffer) {
        (Role::Send, Some(bytes), _) => socket.set_send_buffer_size(size(bytes))?,
        (Role::Receive, _, Some(bytes)) => socket.set_recv_buffer_size(size(bytes))?,
        _ => {}
    }
    match spec.tos {
        Some(tos) => traffic_class::mark(&socket, tos.into()),
        None => Ok(()),
    }
}

/// The greeting may get lost, and a foreign server's port is closed for a moment between two streams. It is repeated
/// late, because a server that has heard it would count another one as payload.
pub(crate) fn greet(socket: &UdpSocket, peer: SocketAddr, patience: Patience<'_>) -> Result<(), MeasureError> {
    const AGAIN: Duration = Duration::from_secs(2);
    let failed = |source| MeasureError::Io { peer, operation: SETTING_UP, source };
    let mut said: Option<Instant> = None;
    let mut answer = [0u8; 64];
    while !patience.is_over() {
        patience.check_cancelled()?;
        if said.is_none_or(|said| said.elapsed() > AGAIN) {
            socket.send(&udp::HELLO).map_err(failed)?;
            said = Some(Instant::now());
        }
        socket.set_read_timeout(Some(patience.slice())).map_err(failed)?;
        match socket.recv(&mut answer) {
            // Versions before 3.12 answer otherwise; and where the server sends, its first payload may come before.
            Ok(_) => return Ok(()),
            Err(error) if is_pause(&error) => {}
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                said = None;
                thread::sleep(Duration::from_millis(20));
            }
            Err(error) => return Err(failed(error)),
        }
    }
    Err(MeasureError::Timeout { peer, operation: "greeting the server with a datagram", after: patience.total() })
}

/// Opens the data connections: with one of ours many at a time, since each takes a round trip; with a foreign server,
/// which knows them by their order alone, one after another.
pub(super) fn open_lanes(
    client: &Client,
    spec: &TestSpec,
    cookie: &Cookie,
    cancel: &AtomicBool,
) -> Result<Vec<Lane>, MeasureError> {
    // As many SYNs at once as no queue on the way minds.
    const WAVE: usize = 32;
    let wave = if client.kind == PeerKind::Fullpipe { WAVE } else { 1 };
    let roles: Vec<(usize, Role)> = roles(spec).into_iter().enumerate().collect();
    let open = |&(index, role): &(usize, Role)| {
        // Each has the time of an answer for itself: a hundred take longer than one.
        let patience = Patience::new(client.options.answer).unless(cancel);
        open_lane(client, spec, (index, role), cookie, patience)
    };
    let mut lanes = Vec::new();
    for wave in roles.chunks(wave) {
        let opened: Vec<Result<Lane, MeasureError>> = match wave {
            [one] => vec![open(one)],
            many => thread::scope(|scope| {
                let threads: Vec<_> = many.iter().map(|one| scope.spawn(move || open(one))).collect();
                threads.into_iter().filter_map(|thread| thread.join().ok()).collect()
            }),
        };
        lanes.extend(opened.into_iter().collect::<Result<Vec<_>, _>>()?);
    }
    Ok(lanes)
}

fn open_lane(
    client: &Client,
    spec: &TestSpec,
    (index, role): (usize, Role),
    cookie: &Cookie,
    patience: Patience<'_>,
) -> Result<Lane, MeasureError> {
    let peer = client.peer;
    let stream = target::connect(peer, patience, |socket| prepare(socket, spec, role))
        .map_err(|error| iperf2::refused(client.kind, error))?;
    let index_bytes = u16::try_from(index).unwrap_or(u16::MAX).to_be_bytes();
    let preamble = match client.kind {
        PeerKind::Fullpipe => [cookie.as_bytes().as_slice(), &index_bytes].concat(),
        PeerKind::Iperf3 => cookie.as_bytes().to_vec(),
        PeerKind::Iperf2 => iperf2::header(spec, peer).to_vec(),
    };
    let mut raw = Control::new(stream, peer)?;
    raw.write_all(&preamble, patience, SETTING_UP)?;
    let stream = raw.into_stream();
    stream.set_nodelay(spec.nodelay).map_err(|source| MeasureError::Io { peer, operation: SETTING_UP, source })?;
    let preamble = preamble.len() as u64;
    Ok(Lane { id: wire::stream_id(index), role, stream, saved_syn: None, opened: true, preamble })
}

/// What has to be set before the SYN: the buffers decide on the window scale.
fn prepare(socket: &Socket, spec: &TestSpec, role: Role) -> Result<(), MeasureError> {
    let failed = |option, value: String| move |source| MeasureError::Option { option, value, source };
    if let Some(name) = &spec.congestion_control {
        sockopt::set_congestion(socket, name).map_err(failed("the congestion control", crate::error::clean(name)))?;
    }
    if let Some(mss) = spec.mss {
        sockopt::set_max_segment(socket, mss).map_err(failed("TCP_MAXSEG", mss.to_string()))?;
    }
    if let Some(tos) = spec.tos {
        traffic_class::mark(&SockRef::from(socket), tos.into())
            .map_err(failed("the type of service", tos.to_string()))?;
    }
    if role == Role::Send
        && let Some(bytes_per_second) =
            lane::pacing(spec.max_pacing_rate.map(Rate::bps), spec.pace.filter(|_| spec.burst <= 1).map(Rate::bps))
    {
        // Where the kernel does not pace, the writes alone do.
        drop(sockopt::set_max_pacing_rate(socket, bytes_per_second));
    }
    let size = |bytes: Bytes| usize::try_from(bytes.get()).unwrap_or(usize::MAX);
    match (role, spec.send_buffer, spec.receive_buffer) {
        (Role::Send, Some(bytes), _) => {
            socket.set_send_buffer_size(size(bytes)).map_err(failed("SO_SNDBUF", bytes.to_string()))
        }
        (Role::Receive, _, Some(bytes)) => {
            socket.set_recv_buffer_size(size(bytes)).map_err(failed("SO_RCVBUF", bytes.to_string()))
        }
        _ => Ok(()),
    }
}

pub(super) fn expect(control: &mut Control, wanted: State, patience: Patience<'_>) -> Result<(), MeasureError> {
    match control.read_state(patience, SETTING_UP)? {
        state if state == wanted => Ok(()),
        state => Err(ended_by(control, state, SETTING_UP)),
    }
}

/// What a state means that ends the test before its time.
pub(super) fn ended_by(control: &mut Control, state: State, operation: &'static str) -> MeasureError {
    let peer = control.peer();
    match state {
        State::AccessDenied => MeasureError::Busy { peer },
        State::ServerTerminate => MeasureError::Terminated { peer },
        State::ServerError => session::server_error(control, Patience::new(Duration::from_secs(2))),
        other => session::unexpected(peer, operation, other),
    }
}

/// Waits for the end of the transfer and tells of its progress; without `control` nobody tells why it broke off.
fn watch(
    client: &Client,
    spec: &TestSpec,
    cancel: &AtomicBool,
    mut control: Option<&mut Control>,
    moving: &mut dyn Flow,
    progress: Report<'_>,
) -> Result<Ending, MeasureError> {
    let mut last = Seen { at: Duration::ZERO, up: 0, down: 0 };
    let mut moved = (0, Instant::now());
    loop {
        let elapsed = moving.elapsed();
        if cancel.load(Ordering::Relaxed) {
            return Ok(Ending::Cancelled);
        }
        let omitted_ends = !moving.is_marked() && !spec.omit.is_zero() && elapsed >= spec.omit;
        if omitted_ends {
            moving.mark_steady();
        }
        let is_over = spec.expected().map_or_else(|| moving.is_complete(), |expected| elapsed >= expected);
        // An interval is omitted or it is not: none goes beyond that end. What is left at the end is one, too.
        let ends = omitted_ends || is_over && elapsed >= last.at + LOOK;
        if ends || elapsed >= last.at + spec.progress_every.max(LOOK) {
            let now = Seen { at: elapsed, up: moving.progress(Role::Send), down: moving.progress(Role::Receive) };
            progress(now.progress(&last, spec, moving));
            last = now;
        }
        if is_over {
            return Ok(Ending::Complete);
        }
        let total = moving.activity();
        if total > moved.0 {
            moved = (total, Instant::now());
        } else if moved.1.elapsed() > client.options.stall {
            return Err(MeasureError::Stalled { peer: client.peer, after: client.options.stall });
        }
        let wait = if moving.failure().is_some() { Duration::from_secs(1) } else { rest(spec, moving, last.at) };
        let said = match control.as_deref_mut() {
            Some(control) => control.poll_state(wait)?.map(|state| ended_by(control, state, "the transfer")),
            None => {
                thread::sleep(if moving.failure().is_some() { Duration::ZERO } else { wait });
                None
            }
        };
        match said {
            Some(ended) => return Err(ended),
            // The server had a second to say why.
            None if moving.failure().is_some() => {
                return Err(MeasureError::Closed { peer: client.peer, operation: "the transfer" });
            }
            None => {}
        }
    }
}

/// How long nothing but a word of the server needs this thread; `reported` is when progress was last reported. Each time that it wakes
/// on the processor of a receiver costs that one's connection the time of some hundred segments.
fn rest(spec: &TestSpec, moving: &dyn Flow, reported: Duration) -> Duration {
    let now = moving.elapsed();
    // The end of a test that bytes end is not known.
    let Some(expected) = spec.expected() else { return LOOK };
    let omitted = Some(spec.omit).filter(|omit| !moving.is_marked() && !omit.is_zero());
    let next =
        [expected, reported + spec.progress_every.max(LOOK)].into_iter().chain(omitted).min().unwrap_or(expected);
    next.saturating_sub(now).min(REST)
}

/// What had arrived at some moment.
struct Seen {
    at: Duration,
    up: u64,
    down: u64,
}

impl Seen {
    fn progress(&self, before: &Self, spec: &TestSpec, moving: &dyn Flow) -> Progress {
        let over = Micros::from(self.at.saturating_sub(before.at));
        let rate = |role, now: u64, then: u64| {
            moving.has(role).then(|| Rate::from_bytes(Bytes::new(now.saturating_sub(then)), over)).flatten()
        };
        let live = moving.live();
        let omitted = before.at < spec.omit;
        Progress {
            elapsed: self.at,
            up_bps: rate(Role::Send, self.up, before.up),
            down_bps: rate(Role::Receive, self.down, before.down),
            rtt_us: live.rtt_us,
            cwnd: live.cwnd,
            window: live.window,
            retransmits: live.retransmits,
            datagrams: live.datagrams,
            ..phase(if omitted { Phase::Omitted } else { Phase::Running }, spec)
        }
    }
}

fn phase(phase: Phase, spec: &TestSpec) -> Progress {
    let expected = spec.expected();
    Progress {
        phase,
        elapsed: Duration::ZERO,
        expected,
        up_bps: None,
        down_bps: None,
        rtt_us: None,
        cwnd: None,
        window: None,
        retransmits: None,
        datagrams: None,
    }
}

/// Ends the test on the wire and exchanges the results. Not cancelled: a test that was stopped ends cleanly as well.
pub(super) fn finish(client: &Client, control: &mut Control, own: &EndReport) -> Result<Results, MeasureError> {
    // What is queued on the path stands before our words, and the far end's account behind them.
    let patience = Patience::new(client.options.answer.saturating_mul(3));
    let peer = control.peer();
    control.write_state(State::TestEnd, patience, RESULTS)?;
    match control.read_state(patience, RESULTS)? {
        State::ExchangeResults => {}
        state => return Err(ended_by(control, state, RESULTS)),
    }
    control.write_json(&own.results(None).to_json(), patience, RESULTS)?;
    let value = control.read_json(RESULTS_LIMIT, patience, RESULTS)?;
    let results = Results::from_json(&value).ok_or_else(|| MeasureError::BadMessage {
        peer,
        operation: RESULTS,
        problem: "the results name no streams".to_owned(),
    })?;
    match control.read_state(patience, RESULTS)? {
        State::DisplayResults => {}
        state => return Err(ended_by(control, state, RESULTS)),
    }
    // The results are here; that the server hears it is its own affair.
    drop(control.write_state(State::IperfDone, patience, RESULTS));
    Ok(results)
}

fn warn(client: &Client, spec: &TestSpec, results: Option<&Results>, warnings: &mut Vec<String>) {
    let used = results.and_then(|results| results.congestion_used.as_deref());
    let down = spec.direction != TestDirection::Up;
    if let (Some(wanted), Some(used), true) = (&spec.congestion_control, used, down)
        && wanted != used
    {
        warnings.push(format!("the far end has no congestion control `{wanted}` and used `{used}`"));
    }
    if client.kind == PeerKind::Iperf3 {
        if (spec.send_buffer.is_some() || spec.receive_buffer.is_some()) && spec.send_buffer != spec.receive_buffer {
            warnings.push("a foreign server can't set one socket buffer alone: only this end's was set".to_owned());
        }
        if spec.copy && spec.direction != TestDirection::Down {
            warnings.push("a foreign server decides itself whether it copies what it receives".to_owned());
        }
    } else if results.is_some_and(|results| results.ours.is_none()) {
        warnings.push("the far end did not give its account of the test: only this end was seen".to_owned());
    }
}
