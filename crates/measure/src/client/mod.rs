//! The end that asks.
//!
//! A [`Client`] keeps a conversation with a fullpipe server open (for pings, MTU probes and requests to its request handler) and
//! runs tests on connections of their own. Against a foreign iperf3 server there is no conversation, only tests.

mod exchange;
mod iperf2;
mod load;
mod session;
mod survey;
mod test;

use std::{
    net::SocketAddr,
    sync::atomic::AtomicBool,
    time::{Duration, Instant, SystemTime},
};

use fullpipe_diagnose::RttSummary;
use fullpipe_probe::mtu::MtuReport;
use fullpipe_units::Micros;
use serde_json::{Value, json};
use tracing::debug;

use crate::{
    auth::Credentials,
    control::Control,
    error::{MeasureError, clean},
    exchange::{ExchangeReport, ExchangeSpec, delayed_part},
    measurement::{Measurement, PeerKind, summary},
    mtu,
    patience::Patience,
    spec::{Progress, TestSpec},
    talk::{self, Hello},
    target::{Family, Target},
    wire::{Cookie, OurParams, Params, State, TALK_LIMIT},
};

pub use self::{
    load::{Loaded, UnderLoad},
    survey::{SizeRow, SizeSide, StreamsRow, TcpMtu},
};
pub(crate) use self::{survey::Done, test::greet};

/// How long a client waits for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientOptions {
    /// For a name to be resolved and a connection to be made.
    pub connect: Duration,
    /// For each answer in the handshake and in the conversation.
    pub answer: Duration,
    /// For payload to move during a test.
    pub stall: Duration,
    /// Which addresses of the server's name to use.
    pub family: Family,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            answer: Duration::from_secs(10),
            stall: Duration::from_secs(15),
            family: Family::Any,
        }
    }
}

/// The end that asks. See the module's text.
#[derive(Debug)]
pub struct Client {
    target: Target,
    credentials: Option<Credentials>,
    peer: SocketAddr,
    options: ClientOptions,
    kind: PeerKind,
    talk: Option<Talk>,
    agreed: Option<Agreed>,
    idle_rtt: Option<RttSummary>,
    mtu: Option<MtuReport>,
}

/// A session in which a foreign server waits for the data connections of a test: one that was started for a single test
/// (`iperf3 -s -1`) gives no second.
#[derive(Debug)]
struct Agreed {
    control: Control,
    cookie: Cookie,
    spec: TestSpec,
}

#[derive(Debug)]
struct Talk {
    control: Control,
    hello: Hello,
}

/// How long requests are written at once for comparison, beside those in two halves.
const AT_ONCE_LEAST: Duration = Duration::from_millis(60);
const AT_ONCE_MOST: Duration = Duration::from_millis(500);

impl Client {
    /// Connects with the usual deadlines.
    ///
    /// # Errors
    /// Every way in which a server can be missing, foreign or busy has its own variant of [`MeasureError`].
    pub fn connect(target: &Target) -> Result<Self, MeasureError> {
        Self::connect_with(target, ClientOptions::default(), &AtomicBool::new(false))
    }

    /// Connects; `cancel` ends the attempt early.
    ///
    /// # Errors
    /// As [`Client::connect`], and [`MeasureError::Cancelled`].
    pub fn connect_with(target: &Target, options: ClientOptions, cancel: &AtomicBool) -> Result<Self, MeasureError> {
        Self::connect_as(target, options, None, cancel)
    }

    /// Connects to a server that wants to know who comes.
    ///
    /// # Errors
    /// As [`Client::connect_with`]; a wrong name or password is a [`MeasureError::ServerError`] with code 142, or
    /// [`MeasureError::Closed`] with iperf3 3.21.
    pub fn connect_as(
        target: &Target,
        options: ClientOptions,
        credentials: Option<Credentials>,
        cancel: &AtomicBool,
    ) -> Result<Self, MeasureError> {
        Self::connect_for(target, options, (credentials, None), cancel)
    }

    /// Connects and asks for a first test in the same breath, which a later [`Client::run`] with the same specification
    /// then runs: all that a server needs that was started for a single test. Whoever does not run it next leaves that
    /// session.
    ///
    /// # Errors
    /// As [`Client::connect_as`], and [`MeasureError::BadSpec`] before anything is sent.
    pub fn connect_for(
        target: &Target,
        options: ClientOptions,
        (credentials, first): (Option<Credentials>, Option<&TestSpec>),
        cancel: &AtomicBool,
    ) -> Result<Self, MeasureError> {
        first.map_or(Ok(()), TestSpec::check)?;
        let addresses = target.resolve(options.family, Patience::new(options.connect).unless(cancel))?;
        let stream = crate::target::connect_any(&addresses, Patience::new(options.connect).unless(cancel))?;
        let answer = || Patience::new(options.answer).unless(cancel);
        let peer = stream.peer_addr().map_err(|source| MeasureError::Unreachable {
            peer: addresses.first().copied().unwrap_or_else(|| ([0, 0, 0, 0], target.port).into()),
            source,
        })?;
        let cookie = session::cookie(peer)?;
        let params = with_token(first.map_or_else(Params::conversation, asked_first), credentials.as_ref());
        let (mut control, state) = session::open_with(stream, peer, &params, &cookie, answer())?;
        let mut client = Self {
            target: target.clone(),
            credentials,
            peer,
            options,
            kind: PeerKind::Iperf3,
            talk: None,
            agreed: None,
            idle_rtt: None,
            mtu: None,
        };
        if state == State::Conversation {
            let reply = talk::ask(&mut control, &json!({ "request": "hello" }), answer())?;
            let hello = Hello::from_json(peer, &reply)?;
            client.kind = PeerKind::Fullpipe;
            debug!(%peer, version = ?hello.version, takes_requests = hello.takes_requests, "connected to fullpipe");
            client.talk = Some(Talk { control, hello });
        } else {
            // The handshake's own round trip is all that a foreign server shows without load.
            client.idle_rtt = handshake_rtt(&control);
            debug!(%peer, idle_rtt = ?client.idle_rtt, "connected to iperf3");
            match first {
                Some(spec) => client.agreed = Some(Agreed { control, cookie, spec: spec.clone() }),
                None => session::leave(control),
            }
        }
        Ok(client)
    }

    /// What answers at the far end.
    pub fn peer_kind(&self) -> PeerKind {
        self.kind
    }

    /// The server's address.
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// This end's address on the conversation; absent with a foreign server.
    pub fn local(&self) -> Option<SocketAddr> {
        self.talk.as_ref()?.control.stream().local_addr().ok()
    }

    /// What a fullpipe server said of itself; absent with a foreign one.
    pub fn hello(&self) -> Option<&Hello> {
        self.talk.as_ref().map(|talk| &talk.hello)
    }

    /// Round trips without load: `count` small requests one after another. The smallest is the kernel's own where that
    /// is smaller still, since an answer also waits for both programs to wake up.
    ///
    /// # Errors
    /// The connection's, and [`MeasureError::NeedsFullpipe`] with a foreign server.
    pub fn ping(&mut self, count: u32) -> Result<RttSummary, MeasureError> {
        let patience = self.options.answer;
        let peer = self.peer;
        let control = self.control("ping")?;
        let mut times = Vec::new();
        for _ in 0..count.clamp(1, 10_000) {
            let start = Instant::now();
            talk::ask(control, &json!({ "request": "ping" }), Patience::new(patience))?;
            times.push(Micros::from(start.elapsed()));
        }
        let kernel = fullpipe_socket::Info::read(control.stream()).ok().and_then(|info| info.min_rtt);
        let mut rtt = summary(times).ok_or(MeasureError::Closed { peer, operation: "ping" })?;
        if let Some(kernel) = kernel {
            rtt.min_us = rtt.min_us.min(kernel);
        }
        self.idle_rtt = Some(rtt);
        Ok(rtt)
    }

    /// The largest IP packets that pass in each direction, and whether larger ones vanish without a word.
    ///
    /// # Errors
    /// The connection's, and [`MeasureError::NeedsFullpipe`] with a foreign server.
    pub fn probe_mtu(&mut self) -> Result<MtuReport, MeasureError> {
        let patience = self.options.answer;
        let rtt = match self.idle_rtt {
            Some(rtt) => rtt,
            None => self.ping(survey::PINGS)?,
        };
        let control = self.control("the path MTU")?;
        let report = mtu::probe(control, Duration::from(rtt.p50_us), patience)?;
        self.mtu = Some(report);
        Ok(report)
    }

    /// Asks the far end's request handler.
    ///
    /// # Errors
    /// [`MeasureError::Refusal`] carries the request handler's own reason; otherwise the connection's errors.
    pub fn request(&mut self, request: &Value) -> Result<Value, MeasureError> {
        // A request handler may have to read a whole machine's settings, or wait for a disk.
        let patience = self.options.answer.saturating_mul(3);
        let text = request.to_string();
        let peer = self.peer;
        if text.len() > TALK_LIMIT as usize {
            let (bytes, limit) = (text.len() as u64, u64::from(TALK_LIMIT));
            return Err(MeasureError::TooLarge { peer, operation: "a request", bytes, limit });
        }
        talk::ask(self.control("a request to the far host")?, request, Patience::new(patience))
    }

    /// Runs a test. `cancel` ends it early and cleanly, with what was measured until then; `progress` is called from
    /// this thread.
    ///
    /// # Errors
    /// [`MeasureError::BadSpec`] before anything is sent; otherwise the connections' errors.
    pub fn run(
        &mut self,
        spec: &TestSpec,
        cancel: &AtomicBool,
        progress: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<Measurement, MeasureError> {
        spec.check()?;
        test::run(self, spec, test::Effort::Truthful, cancel, progress)
    }

    /// Runs a test as fast as the hosts can: not how a path behaves, but what can be pushed through it. Both ends try in the
    /// omitted time how they are fastest, where the far end is one of ours; a foreign one does what it always does. For
    /// figures only: no diagnosis may be made of it.
    ///
    /// # Errors
    /// As [`Client::run`]; also for a test that leaves no time to try anything, or nothing to choose.
    pub fn run_max(
        &mut self,
        spec: &TestSpec,
        cancel: &AtomicBool,
        progress: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<Measurement, MeasureError> {
        spec.check()?;
        spec.check_max()?;
        test::run(self, spec, test::Effort::Max, cancel, progress)
    }

    /// Asks and times the answers. `progress` hears how many there were, every second.
    ///
    /// # Errors
    /// [`MeasureError::BadSpec`] before anything is sent, [`MeasureError::NeedsFullpipe`] with a foreign server; otherwise
    /// the connections' errors.
    pub fn exchange(
        &mut self,
        spec: &ExchangeSpec,
        cancel: &AtomicBool,
        progress: &mut (dyn FnMut(u64) + Send),
    ) -> Result<ExchangeReport, MeasureError> {
        spec.check()?;
        if !spec.split || spec.nodelay {
            return exchange::run(self, spec, cancel, progress).map(|(report, _)| report);
        }
        // What waits for an acknowledgement shows beside the same requests, written at once.
        let time = (spec.time / 10).clamp(AT_ONCE_LEAST, AT_ONCE_MOST).min(spec.time);
        let at_once = ExchangeSpec { split: false, nodelay: true, time, every: None, ..*spec };
        let at_once = exchange::run(self, &at_once, cancel, &mut |_| ())?.0.latency;
        let (report, asked) = exchange::run(self, spec, cancel, progress)?;
        Ok(ExchangeReport {
            at_once_us: at_once.map(|latency| latency.p50_us),
            delayed: at_once.and_then(|latency| delayed_part(&asked.times, latency.min_us)),
            ..report
        })
    }

    /// Ends the conversation with a word, so that the far end's request handler knows that nothing was lost.
    pub fn bye(mut self) {
        if let Some(Agreed { control, .. }) = self.agreed.take() {
            session::leave(control);
        }
        if let Some(Talk { mut control, .. }) = self.talk.take() {
            let patience = Patience::new(self.options.answer.min(Duration::from_secs(2)));
            // Whether it is still heard or not, the connection ends here.
            drop(talk::ask(&mut control, &json!({ "request": "bye" }), patience));
            control.close();
        }
    }

    /// For each answer.
    pub(crate) fn patience(&self) -> Duration {
        self.options.answer
    }

    pub(crate) fn control(&mut self, operation: &'static str) -> Result<&mut Control, MeasureError> {
        let peer = self.peer;
        self.talk.as_mut().map(|talk| &mut talk.control).ok_or(MeasureError::NeedsFullpipe { peer, operation })
    }

    /// The parameters, with who we are.
    fn signed(&self, params: Params) -> Params {
        with_token(params, self.credentials.as_ref())
    }

    /// What to call the far end.
    fn peer_name(&self) -> String {
        clean(&self.target.host)
    }
}

/// The parameters of a test, by which one of ours opens a conversation and a foreign server the test.
fn asked_first(spec: &TestSpec) -> Params {
    let params = test::params(PeerKind::Iperf3, (spec, test::Effort::Truthful));
    let ours = OurParams { conversation: true, ..params.ours.unwrap_or_default() };
    Params { ours: Some(ours), ..params }
}

/// A token of its own for each session, since it holds the moment.
fn with_token(params: Params, credentials: Option<&Credentials>) -> Params {
    Params { authtoken: credentials.and_then(|credentials| credentials.token(SystemTime::now())), ..params }
}

fn handshake_rtt(control: &Control) -> Option<RttSummary> {
    let info = fullpipe_socket::Info::read(control.stream()).ok()?;
    let rtt = info.rtt?;
    Some(RttSummary { min_us: info.min_rtt.unwrap_or(rtt).min(rtt), p50_us: rtt, count: 1 })
}
