//! The loop between this host and a far one: `check` and `tune`, and `serve` on the other side.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError, atomic::AtomicBool, mpsc},
    time::Duration,
};

use fullpipe_diagnose::proof::Criteria;
use fullpipe_host::{
    FarRun, Journal, RunState, SystemHost, UndoOptions, Which,
    guardian::{Bond, Guardian},
    undo,
};
use fullpipe_knobs::Plan;
use fullpipe_measure::{
    Client, ClientOptions, Direction, Log, RequestHandler, Server, ServerEvent, ServerOptions, Target, host_name,
};
use serde_json::json;
use tracing::Level;

use crate::{
    allowed::Allowed,
    end::{Destination, End, Kept, LocalEnd, Stay, Trial},
    error::TuneError,
    event::{Event, Observer},
    handler::{HostHandler, Terms},
    key::Key,
    meter::{ClientMeter, Lengths},
    outcome::Outcome,
    plans::PlanOptions,
    remote_end::{Memory, RemoteEnd},
    round::{Applications, Round, RoundGoal, RoundOptions},
};

/// What `check` and `tune` are asked.
#[derive(Clone, Debug)]
pub struct FarOptions {
    /// The far end.
    pub target: Target,
    /// The directions, each measured alone.
    pub directions: Vec<Direction>,
    /// Parallel connections in the first measurement.
    pub streams: u32,
    /// Congestion control of the sending sockets; the system's default where absent.
    pub congestion_control: Option<String>,
    /// How long to measure; by the round-trip time where absent.
    pub lengths: Option<Lengths>,
    /// What the plan is for.
    pub plan_options: PlanOptions,
}

/// What `tune` is asked besides.
#[derive(Clone, Debug)]
pub struct TuneOptions {
    /// As for `check`.
    pub far: FarOptions,
    /// The key that the far host's server takes orders with.
    pub key: Option<Key>,
    /// Make what helped last beyond a restart.
    pub persist: bool,
    /// Leave what helped on trial for this long, until somebody confirms it on each host that was changed.
    pub confirm_within: Option<Duration>,
    /// Where the journal is.
    pub state_dir: PathBuf,
    /// The program that guards what is on trial (see [`fullpipe_host::guardian`]); without, a kill leaves it in force.
    pub guard: Option<PathBuf>,
    /// When a change counts as proved.
    pub criteria: Criteria,
    /// Change this host for connections to one destination alone.
    pub destination: Option<Destination>,
}

/// What `serve` is asked.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    /// Where to listen.
    pub address: SocketAddr,
    /// Whether clients may read this host's TCP settings.
    pub share_settings: bool,
    /// Whether clients with a key may change settings.
    pub allow_tune: Option<AllowTune>,
    /// What clients may do; its log is replaced by the one that `serve` is given.
    pub server: ServerOptions,
}

/// Who may change which settings of a server.
#[derive(Clone, Debug)]
pub struct AllowTune {
    /// Whoever has this key.
    pub key: Key,
    /// Where the journal is.
    pub state_dir: PathBuf,
    /// What may be set.
    pub allowed: Allowed,
    /// Other addresses that clients reach this server by.
    pub reached_as: Vec<SocketAddr>,
    /// As in [`TuneOptions::guard`].
    pub guard: Option<PathBuf>,
}

/// Measures and diagnoses; plans what to set; changes nothing.
pub fn check(options: &FarOptions, cancel: &AtomicBool, observer: &mut dyn Observer) -> Result<Outcome, TuneError> {
    let host = SystemHost::new();
    let mut here = LocalEnd::read_only(&host_name(), host);
    round(options, &mut here, None, None, RoundGoal::Plan, Criteria::default(), &mut |_| false, cancel, observer)
}

/// Measures, diagnoses and plans; with `consent` to the plan, tries it, proves it and keeps only what helped.
pub fn tune(
    options: &TuneOptions,
    consent: &mut dyn FnMut(&Plan) -> bool,
    cancel: &AtomicBool,
    observer: &mut dyn Observer,
) -> Result<Outcome, TuneError> {
    // Before anything is measured: a journal that can't be had is known now.
    drop(Journal::open(&options.state_dir)?);
    let guardian = guardian(options.guard.as_deref(), &options.state_dir)?;
    let (host, state) = (SystemHost::new(), options.state_dir.clone());
    let command = command(&options.far.target, options.destination.as_ref());
    let here = LocalEnd::in_folder(&host_name(), host, state, &command, guardian);
    let mut here = here.for_destination(options.destination.clone());
    let memory = Memory { state_dir: options.state_dir.clone(), command, server: options.far.target.to_string() };
    let goal = RoundGoal::Keep { persist: options.persist, confirm_within: options.confirm_within };
    round(&options.far, &mut here, options.key.clone(), Some(memory), goal, options.criteria, consent, cancel, observer)
}

/// As the history has it.
fn command(target: &Target, destination: Option<&Destination>) -> String {
    let mut command = format!("tune {target}");
    if let Some(Destination { prefix, metrics }) = destination {
        command.push_str(" --destination");
        command.extend(prefix.map(|prefix| format!(" {prefix}")));
        let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "0".to_owned());
        command.extend(metrics.iter().map(|(name, set)| format!(" --route {name}={}", value(set))));
    }
    command
}

/// Has the far host of `far` undo that run, which `tune` kept there earlier; gives how many settings were written back, none
/// where nothing of it was in force any more.
///
/// # Errors
///
/// Where the server can't be reached, takes no orders or not with this key, or could not put everything back.
pub fn undo_far(far: &FarRun, key: Key, cancel: &AtomicBool) -> Result<usize, TuneError> {
    let target: Target = far.server.parse()?;
    let client = Mutex::new(Client::connect_with(&target, ClientOptions::default(), cancel)?);
    RemoteEnd::new(&target.host, &client, Some(key)).undo_kept(far.run)
}

/// The guardian of what this process puts on trial.
fn guardian(program: Option<&Path>, state_dir: &Path) -> Result<Option<Guardian>, TuneError> {
    let start = |program| Guardian::start(program, state_dir, Bond::Parent);
    program.map(start).transpose().map_err(|source| TuneError::Guardian { source })
}

#[expect(clippy::too_many_arguments, reason = "the two callers differ in exactly these, and each has its own type")]
fn round(
    options: &FarOptions,
    here: &mut dyn End,
    key: Option<Key>,
    memory: Option<Memory>,
    goal: RoundGoal,
    criteria: Criteria,
    consent: &mut dyn FnMut(&Plan) -> bool,
    cancel: &AtomicBool,
    observer: &mut dyn Observer,
) -> Result<Outcome, TuneError> {
    let what = format!("connecting to {}", options.target);
    observer.on(Event::Phase { what: &what, expected: None });
    let client = Client::connect_with(&options.target, ClientOptions::default(), cancel)?;
    let (peer, local) = (client.peer().ip(), client.local().map(|address| address.ip()));
    here.meets(peer)?;
    let is_ours = client.hello().is_some();
    let client = Mutex::new(client);
    let mut far: Box<dyn End> = if is_ours {
        let has_key = key.is_some();
        let mut far = RemoteEnd::new(&options.target.host, &client, key);
        if let Some(memory) = memory.filter(|_| has_key) {
            far = far.with_memory(memory);
        }
        if has_key {
            // Before anything is measured: a key that opens nothing there is known now.
            far.settings()?;
        }
        Box::new(far)
    } else {
        Box::new(Unreadable(options.target.host.clone()))
    };
    let round_options = RoundOptions {
        directions: options.directions.clone(),
        streams: options.streams,
        congestion_control: options.congestion_control.clone(),
        lengths: options.lengths,
        trial_lengths: None,
        plan_options: options.plan_options,
        criteria,
        goal,
    };
    let outcome = std::thread::scope(|scope| {
        let (here_still, over) = mpsc::channel();
        scope.spawn(|| stay_awake(&client, HEARTBEAT, over));
        let outcome = Round {
            options: &round_options,
            meter: &mut ClientMeter { client: &client, cancel },
            ends: [here, far.as_mut()],
            peers: [Some(peer), local],
            applications: Applications::default(),
            consent,
            observer,
            cancel,
        }
        .run();
        drop(here_still);
        outcome
    });
    drop(far);
    // The server hears that all is as it should be.
    client.into_inner().unwrap_or_else(PoisonError::into_inner).bye();
    outcome
}

/// How often a server hears that its client is still there: it ends conversations that say nothing for half a minute.
const HEARTBEAT: Duration = Duration::from_secs(8);

/// Keeps the conversation alive until `over` is closed, also while somebody thinks about a plan.
fn stay_awake(client: &Mutex<Client>, every: Duration, over: mpsc::Receiver<()>) {
    let ping = json!({ "request": "ping" });
    while over.recv_timeout(every) == Err(mpsc::RecvTimeoutError::Timeout) {
        // Locked, it is asked or measured with. A connection that is lost is for whoever uses it next to say.
        let Ok(mut client) = client.try_lock() else { continue };
        if client.hello().is_none() || client.request(&ping).is_err() {
            return;
        }
    }
}

/// A far end that only measures: a foreign iperf3 server.
struct Unreadable(String);

impl Unreadable {
    fn refuse(&self, operation: &'static str) -> TuneError {
        TuneError::Remote {
            operation,
            host: self.0.clone(),
            reason: "an iperf3 server can only measure; run `fullpipe serve` there".to_owned(),
        }
    }
}

impl End for Unreadable {
    fn name(&self) -> &str {
        &self.0
    }

    fn settings(&mut self) -> Result<fullpipe_knobs::Settings, TuneError> {
        Err(self.refuse("read the settings"))
    }

    fn closed(&self) -> Option<String> {
        Some("an iperf3 server can only measure; run `fullpipe serve` there".to_owned())
    }

    fn apply(&mut self, _: &[fullpipe_knobs::Change], _: Stay, _: Duration) -> Result<Trial, TuneError> {
        Err(self.refuse("apply changes"))
    }

    fn undo(&mut self, _: &Trial) -> Result<usize, TuneError> {
        Err(self.refuse("undo a trial"))
    }

    fn hold(&mut self, _: &Trial, _: Duration) -> Result<Duration, TuneError> {
        Err(self.refuse("leave changes on trial"))
    }

    fn keep(&mut self, _: &Trial) -> Result<Kept, TuneError> {
        Err(self.refuse("keep a trial"))
    }
}

/// Serves measurements until `stop` is set; `ready` hears the address, `log` an event for each thing of note.
pub fn serve(
    options: &ServeOptions,
    stop: &AtomicBool,
    ready: &mut dyn FnMut(SocketAddr),
    log: Log,
) -> Result<(), TuneError> {
    let handler = handler(options, &log)?;
    let server_options = ServerOptions { log: Some(Arc::clone(&log)), ..options.server.clone() };
    let server = Server::bind(options.address, server_options, handler)?;
    ready(server.local_addr());
    Ok(server.run(stop)?)
}

fn handler(options: &ServeOptions, log: &Log) -> Result<Option<Arc<dyn RequestHandler>>, TuneError> {
    let mut host = SystemHost::new();
    let name = host_name();
    let tell = Arc::clone(log);
    Ok(match &options.allow_tune {
        Some(tune) => {
            let mut journal = Journal::open(&tune.state_dir)?;
            undo_leftovers(&mut host, &mut journal, log)?;
            drop(journal);
            let guardian = guardian(tune.guard.as_deref(), &tune.state_dir)?;
            let end = LocalEnd::in_folder(&name, host, tune.state_dir.clone(), "serve", guardian);
            let terms = Terms {
                key: Some(tune.key.clone()),
                allowed: tune.allowed.clone(),
                share: options.share_settings,
                reached_as: tune.reached_as.clone(),
            };
            Some(Arc::new(HostHandler::new(end, terms, tell)))
        }
        None if options.share_settings => {
            let terms = Terms { share: true, ..Terms::default() };
            Some(Arc::new(HostHandler::new(LocalEnd::read_only(&name, host), terms, tell)))
        }
        None => None,
    })
}

/// A server that was killed left its trials in force: nobody is there any more to keep them.
fn undo_leftovers(host: &mut SystemHost, journal: &mut Journal, log: &Log) -> Result<(), TuneError> {
    for run in journal.outstanding()? {
        if run.state == RunState::Open && run.command == "serve" {
            let report = undo(host, journal, Which::Run(run.id), UndoOptions::default())?;
            let restored = report.entries.iter().filter(|entry| entry.outcome.is_restored()).count();
            let all = report.entries.len();
            let text = format!("run {} was left on trial; {restored} of {all} settings are back", run.id);
            log(&ServerEvent::own(Level::WARN, "run_undone", &text));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;

    #[test]
    fn a_client_whose_user_thinks_is_not_taken_for_one_that_is_gone() {
        let options = ServerOptions { talk_idle: Duration::from_secs(2), ..ServerOptions::default() };
        let server = Server::bind("127.0.0.1:0".parse().unwrap(), options, None).unwrap();
        let target: Target = server.local_addr().to_string().parse().unwrap();
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| server.run(&stop).unwrap());
            let pinged = Client::connect(&target).and_then(|client| {
                let client = Mutex::new(client);
                std::thread::scope(|scope| {
                    let (here_still, over) = mpsc::channel();
                    scope.spawn(|| stay_awake(&client, Duration::from_millis(100), over));
                    // Twice as long as the server waits.
                    std::thread::sleep(Duration::from_secs(4));
                    drop(here_still);
                });
                client.lock().unwrap().ping(1)
            });
            stop.store(true, Relaxed);
            pinged.unwrap();
        });
    }
}
