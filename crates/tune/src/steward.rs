//! The server's side: what a client may read and change on this host.
//!
//! Everything that a conversation put in force and did not keep is undone when it ends: by a farewell, by a lost
//! connection, or because the server is stopped. A server that was killed undoes what it finds open at its next start.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{Mutex, MutexGuard, PoisonError},
};

use fullpipe_host::Host;
use fullpipe_measure::{Disconnect, Steward, StewardError};
use serde_json::Value;

use crate::{
    end::{End, LocalEnd, Trial},
    error::TuneError,
    key::{self, Key},
    remote::{Answer, Order, Request},
};

/// Answers clients about this host.
pub(crate) struct HostSteward<H> {
    end: Mutex<LocalEnd<H>>,
    key: Option<Key>,
    guests: Mutex<BTreeMap<SocketAddr, Guest>>,
    log: Box<dyn Fn(&str) + Send + Sync>,
}

/// What one conversation has going.
#[derive(Default)]
struct Guest {
    /// Used up by the next order, whether its seal is right or not.
    nonce: Option<String>,
    /// In force and not kept, oldest first.
    trials: Vec<Trial>,
}

impl<H: Host + Send> HostSteward<H> {
    /// Lets clients read `end`, and change it where there is a key; `log` hears of every change.
    pub(crate) fn new(end: LocalEnd<H>, key: Option<Key>, log: Box<dyn Fn(&str) + Send + Sync>) -> Self {
        Self { end: Mutex::new(end), key, guests: Mutex::default(), log }
    }

    fn answer(&self, request: Request, peer: SocketAddr) -> Result<Answer, TuneError> {
        match request {
            Request::Settings => Ok(Answer::Settings(Box::new(self.end().settings()?))),
            Request::Challenge => {
                let nonce = key::nonce().map_err(TuneError::Random)?;
                self.guests().entry(peer).or_default().nonce = Some(nonce.clone());
                Ok(Answer::Nonce(nonce))
            }
            Request::Order { body, seal } => self.order(&body, &seal, peer),
        }
    }

    fn order(&self, body: &str, seal: &str, peer: SocketAddr) -> Result<Answer, TuneError> {
        let refuse = |reason: &str| Ok(Answer::Refused { reason: reason.to_owned() });
        let Some(key) = &self.key else {
            return refuse("this server lets nobody change settings; start it with --allow-tune and --key-file");
        };
        let Some(nonce) = self.guests().entry(peer).or_default().nonce.take() else {
            return refuse("no challenge was asked for before this order");
        };
        if !key.opens(&nonce, body, seal) {
            (self.log)(&format!("{peer}: an order with a wrong key was refused"));
            return refuse("the key is not the one of this server");
        }
        match serde_json::from_str(body) {
            Ok(Order::Apply { changes, stay }) => {
                let trial = self.end().apply(&changes, stay)?;
                (self.log)(&format!("{peer}: {} changes are on trial", changes.len()));
                let answer = Answer::Applied { run: trial.run.map(|run| run.0), read_back: trial.read_back.clone() };
                self.guests().entry(peer).or_default().trials.push(trial);
                Ok(answer)
            }
            Ok(Order::Undo(run)) => match self.take_trial(peer, run) {
                Some(trial) => {
                    let count = self.end().undo(&trial)?;
                    (self.log)(&format!("{peer}: run {run} was undone"));
                    Ok(Answer::Undone(count))
                }
                None => refuse("this conversation has no such trial"),
            },
            Ok(Order::Keep(run)) => match self.take_trial(peer, run) {
                Some(trial) => {
                    self.end().keep(&trial)?;
                    (self.log)(&format!("{peer}: run {run} is kept; `fullpipe undo` takes it back"));
                    Ok(Answer::Kept)
                }
                None => refuse("this conversation has no such trial"),
            },
            Err(_) => refuse("the order can't be understood; are both ends of the same version?"),
        }
    }

    fn take_trial(&self, peer: SocketAddr, run: i64) -> Option<Trial> {
        let mut guests = self.guests();
        let trials = &mut guests.get_mut(&peer)?.trials;
        let at = trials.iter().position(|trial| trial.run.is_some_and(|own| own.0 == run))?;
        Some(trials.remove(at))
    }

    // A thread that panicked while it held a lock left nothing half done: both are changed in single steps.
    fn end(&self) -> MutexGuard<'_, LocalEnd<H>> {
        self.end.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn guests(&self) -> MutexGuard<'_, BTreeMap<SocketAddr, Guest>> {
        self.guests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<H: Host + Send> Steward for HostSteward<H> {
    fn handle(&self, request: Value, peer: SocketAddr) -> Result<Value, StewardError> {
        let failed = |kind: &str, message: String| StewardError { kind: kind.to_owned(), message };
        let request = serde_json::from_value(request)
            .map_err(|error| failed("unknown_request", format!("the request can't be understood: {error}")))?;
        // An error of this host is an answer to the client: it says what could not be done here and why.
        let answer = self.answer(request, peer).unwrap_or_else(|error| Answer::Refused { reason: error.to_string() });
        serde_json::to_value(answer).map_err(|error| failed("internal", error.to_string()))
    }

    fn on_disconnect(&self, peer: SocketAddr, _how: Disconnect) {
        let Some(guest) = self.guests().remove(&peer) else { return };
        for trial in guest.trials.iter().rev() {
            match self.end().undo(trial) {
                Ok(_) => (self.log)(&format!("{peer}: gone; what was not kept is undone")),
                Err(error) => (self.log)(&format!("{peer}: gone; {error}")),
            }
        }
    }
}
