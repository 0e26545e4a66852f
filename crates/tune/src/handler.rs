//! The server's side: what a client may read and change on this host.
//!
//! Everything that a conversation put in force and did not keep is undone when it ends: by a farewell, by a lost
//! connection, or because the server is stopped. A guardian of its own (`fullpipe_host::guardian`) does so where the server
//! was killed, or where a client keeps its trial for too long.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    ops::RangeInclusive,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use fullpipe_host::{Host, RunId};
use fullpipe_knobs::Settings;
use fullpipe_measure::{Disconnect, Ends, Log, RequestError, RequestHandler, ServerEvent};
use serde_json::Value;
use tracing::Level;

use crate::{
    allowed::Allowed,
    channel::{Channel, Unsealed},
    end::{End, LocalEnd, Trial},
    error::TuneError,
    key::Key,
    remote::{Answer, Order, Request, address},
};

/// How long a channel waits for its order, which comes within a round trip.
const CHANNEL_LIFE: Duration = Duration::from_secs(30);

/// The longest and the shortest time of a trial that an order may ask for. What a client says is not to be trusted with
/// the host for longer than a proof takes.
const TRIAL: RangeInclusive<u64> = 10..=1800;

/// The shortest and the longest time until somebody has to confirm at this host what an order left on trial.
const HOLD: RangeInclusive<u64> = 1..=86_400;

/// How long the settings that everybody may read are good for: reading them takes 10 ms of a processor.
const SHARED_LIFE: Duration = Duration::from_secs(1);

/// Answers clients about this host.
pub(crate) struct HostHandler<H> {
    end: Mutex<LocalEnd<H>>,
    terms: Terms,
    guests: Mutex<BTreeMap<SocketAddr, Guest>>,
    shared: Mutex<Option<(Instant, Settings)>>,
    log: Log,
}

/// Who may do what.
#[derive(Clone, Debug, Default)]
pub(crate) struct Terms {
    /// Whoever has this key may change settings.
    pub(crate) key: Option<Key>,
    /// These, and no others.
    pub(crate) allowed: Allowed,
    /// Whether everybody may read the settings.
    pub(crate) share: bool,
    /// Other addresses that clients reach this server by, through a translation of addresses.
    pub(crate) reached_as: Vec<SocketAddr>,
}

/// What one conversation has going.
#[derive(Default)]
struct Guest {
    /// Used up by the next order, whether it opens or not.
    channel: Option<Promised>,
    /// In force and not kept, oldest first. One is taken out when its undo succeeded, and no sooner.
    trials: Vec<Trial>,
    /// Kept or left on trial by this conversation, which may still take them back: another end may have failed to keep its own.
    kept: Vec<Trial>,
}

/// A channel that waits for its order.
struct Promised {
    channel: Channel,
    /// The server as the client reached it.
    to: String,
    given: Instant,
}

impl Guest {
    fn has(&self, run: i64) -> bool {
        self.trials.iter().chain(&self.kept).any(|trial| trial.run.is_some_and(|own| own.0 == run))
    }
}

impl<H: Host + Send> HostHandler<H> {
    /// Lets clients read `end`, and change it, as `terms` say; `log` hears of every change.
    pub(crate) fn new(end: LocalEnd<H>, terms: Terms, log: Log) -> Self {
        Self { end: Mutex::new(end), terms, guests: Mutex::default(), shared: Mutex::default(), log }
    }

    fn log(&self, level: Level, kind: &'static str, peer: SocketAddr, text: &str) {
        (self.log)(&ServerEvent::with_peer(level, kind, peer, text));
    }

    fn answer(&self, request: Request, ends: Ends) -> Result<Answer, RequestError> {
        Ok(match request {
            Request::Settings if self.terms.share => match self.shared() {
                Ok(settings) => Answer::Settings(Box::new(settings)),
                // An error of this host is an answer to the client: it says what could not be done here and why.
                Err(error) => refuse(&error.to_string()),
            },
            Request::Settings => refuse(
                "it tells them only to holders of its key (--key-file), or to everybody where it is started with \
                 `fullpipe serve --share-settings`",
            ),
            Request::Channel { to, asking } => self.channel(to, &asking, ends)?,
            Request::Order { sealed } => self.order(&sealed, ends),
        })
    }

    /// Proves to a holder of the key that this server has it, too.
    fn channel(&self, to: String, asking: &str, ends: Ends) -> Result<Answer, RequestError> {
        let Some(key) = &self.terms.key else {
            let reason = "this server does not allow changes of settings; start it with --allow-tune and --key-file";
            return Ok(refuse(reason));
        };
        match Channel::answer(key, &to, asking) {
            Ok((channel, answer)) => {
                let promised = Promised { channel, to, given: Instant::now() };
                self.guests().entry(ends.peer).or_default().channel = Some(promised);
                Ok(Answer::Channel(answer))
            }
            Err(Unsealed) => {
                self.log(Level::WARN, "order_refused", ends.peer, "an order with a wrong key was refused");
                Err(RequestError::not_authenticated("the key is not the one of this server"))
            }
        }
    }

    /// Opens an order, does what it says, and seals the answer.
    fn order(&self, sealed: &str, ends: Ends) -> Answer {
        let promised = self.guests().get_mut(&ends.peer).and_then(|guest| guest.channel.take());
        let Some(Promised { mut channel, to, given }) = promised else {
            return refuse("no channel was asked for before this order");
        };
        if given.elapsed() > CHANNEL_LIFE {
            return refuse("the channel of this order is too old; ask for another");
        }
        let Ok(body) = channel.open(sealed) else {
            self.log(Level::WARN, "order_refused", ends.peer, "an order that was altered was refused");
            return refuse("the order was altered on the way");
        };
        let answer = if self.is_here(&to, ends.local) {
            let done = serde_json::from_str(&body).map(|order| self.carry_out(order, ends.peer));
            match done {
                Ok(done) => done.unwrap_or_else(|error| refuse(&error.to_string())),
                Err(_) => refuse("the order can't be understood; are both ends of the same version?"),
            }
        } else {
            self.log(Level::WARN, "order_refused", ends.peer, &format!("an order for {to} was refused"));
            refuse(&format!(
                "this order is for the server at {to}, and it came to {}: somebody passed it on; where an address is \
                 translated on the way, start the server with --reached-as {to}",
                address(ends.local)
            ))
        };
        let sealed = serde_json::to_string(&answer).ok().and_then(|body| channel.seal(&body).ok());
        sealed.map_or_else(|| refuse("the answer could not be sealed"), Answer::Sealed)
    }

    /// Whether an order for `to` is for this server.
    fn is_here(&self, to: &str, local: SocketAddr) -> bool {
        let own = std::iter::once(local).chain(self.terms.reached_as.iter().copied());
        own.map(address).any(|own| own == to)
    }

    fn carry_out(&self, order: Order, peer: SocketAddr) -> Result<Answer, TuneError> {
        match order {
            Order::Settings => Ok(Answer::Settings(Box::new(self.end().settings()?))),
            Order::Apply { changes, stay, within_s } => {
                // Before anything is read: a refusal that named what is there would show what nobody may see.
                if let Some(reason) = self.terms.allowed.refusal(&changes) {
                    self.log(Level::WARN, "order_refused", peer, &format!("refused: {reason}"));
                    return Ok(refuse(&reason));
                }
                let within = Duration::from_secs(u64::from(within_s).clamp(*TRIAL.start(), *TRIAL.end()));
                let trial = self.end().apply(&changes, stay, within)?;
                let count = changes.len();
                let text = format!("{count} change{} on trial", if count == 1 { "" } else { "s" });
                self.log(Level::INFO, "trial_begun", peer, &text);
                let answer = Answer::Applied { run: trial.run.map(|run| run.0), read_back: trial.read_back.clone() };
                self.guests().entry(peer).or_default().trials.push(trial);
                Ok(answer)
            }
            Order::Undo(run) => match self.trial(peer, run) {
                Some(trial) => {
                    let count = self.end().undo(&trial)?;
                    self.forget(peer, run);
                    self.log(Level::INFO, "run_undone", peer, &format!("run {run} was undone"));
                    Ok(Answer::Undone(count))
                }
                // As long as a conversation lasts, what it kept is its own.
                None if self.guests().values().any(|guest| guest.has(run)) => Ok(refuse("it is another session's")),
                None => match self.end().undo_kept(RunId(run))? {
                    Some(count) => {
                        self.log(Level::INFO, "run_undone", peer, &format!("run {run}, kept earlier, was undone"));
                        Ok(Answer::Undone(count))
                    }
                    None => Ok(refuse(&format!(
                        "it has no run {run} that an order kept; what was changed there otherwise, or is on trial, is left \
                         to `fullpipe undo` there"
                    ))),
                },
            },
            Order::Hold { run, within_s } => match self.trial(peer, run) {
                Some(trial) => {
                    let within = Duration::from_secs(u64::from(within_s).clamp(*HOLD.start(), *HOLD.end()));
                    let within_s = self.end().hold(&trial, within)?.as_secs();
                    // The end of this conversation is not its end any more.
                    self.forget(peer, run);
                    self.guests().entry(peer).or_default().kept.push(trial);
                    let text = format!("run {run} is undone in {within_s} s unless `fullpipe confirm {run}` comes");
                    self.log(Level::INFO, "run_on_trial", peer, &text);
                    Ok(Answer::Held(u32::try_from(within_s).unwrap_or(u32::MAX)))
                }
                None => Ok(refuse("this session has no such trial")),
            },
            Order::Keep(run) => match self.trial(peer, run) {
                Some(trial) => {
                    let kept = self.end().keep(&trial)?;
                    self.forget(peer, run);
                    self.guests().entry(peer).or_default().kept.push(trial);
                    let text = format!("run {run} is kept; `fullpipe undo {run}` takes it back");
                    self.log(Level::INFO, "run_kept", peer, &text);
                    Ok(Answer::Kept(kept))
                }
                None => Ok(refuse("this session has no such trial")),
            },
        }
    }

    /// The settings for everybody, not older than a moment.
    fn shared(&self) -> Result<Settings, TuneError> {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        match &*shared {
            Some((read, settings)) if read.elapsed() < SHARED_LIFE => Ok(settings.clone()),
            _ => {
                let settings = self.end().settings()?;
                *shared = Some((Instant::now(), settings.clone()));
                Ok(settings)
            }
        }
    }

    fn trial(&self, peer: SocketAddr, run: i64) -> Option<Trial> {
        let guests = self.guests();
        let guest = guests.get(&peer)?;
        guest.trials.iter().chain(&guest.kept).find(|trial| trial.run.is_some_and(|own| own.0 == run)).cloned()
    }

    fn forget(&self, peer: SocketAddr, run: i64) {
        if let Some(guest) = self.guests().get_mut(&peer) {
            let is_other = |trial: &Trial| trial.run.is_none_or(|own| own.0 != run);
            guest.trials.retain(is_other);
            guest.kept.retain(is_other);
        }
    }

    // A thread that panicked while it held a lock left nothing half done: both are changed in single steps.
    fn end(&self) -> MutexGuard<'_, LocalEnd<H>> {
        self.end.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn guests(&self) -> MutexGuard<'_, BTreeMap<SocketAddr, Guest>> {
        self.guests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn refuse(reason: &str) -> Answer {
    Answer::Refused { reason: reason.to_owned() }
}

impl<H: Host + Send> RequestHandler for HostHandler<H> {
    fn handle(&self, request: Value, ends: Ends) -> Result<Value, RequestError> {
        let failed = |kind: &str, message: String| RequestError { kind: kind.to_owned(), message };
        let request = serde_json::from_value(request)
            .map_err(|error| failed("unknown_request", format!("the request can't be understood: {error}")))?;
        let answer = self.answer(request, ends)?;
        serde_json::to_value(answer).map_err(|error| failed("internal", error.to_string()))
    }

    fn on_disconnect(&self, peer: SocketAddr, _how: Disconnect) {
        let Some(guest) = self.guests().remove(&peer) else { return };
        for trial in guest.trials.iter().rev() {
            match self.end().undo(trial) {
                Ok(_) => {
                    let text = "client disconnected; what was not kept is undone";
                    self.log(Level::INFO, "run_undone", peer, text);
                }
                // In the journal it is on trial as before: its guardian goes on trying, and `status` names it.
                Err(error) => {
                    self.log(Level::ERROR, "undo_failed", peer, &format!("client disconnected; {error}"));
                }
            }
        }
    }
}

#[cfg(all(test, unix))]
mod tests;
