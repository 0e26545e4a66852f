//! The far host as an end: its settings are asked for, and it is ordered to change them, over the conversation.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use fullpipe_host::RunId;
use fullpipe_knobs::{Change, Settings};
use fullpipe_measure::Client;

use crate::{
    end::{End, Stay, Trial},
    error::TuneError,
    key::{Key, Sealed, What},
    remote::{Answer, Order, Request, address},
};

/// Why the plan has no changes for a server that was started plainly.
const SHARES_NOTHING: &str = "it shares them with nobody, so the plan has no changes for it; start it there with \
                              `fullpipe serve --share-settings` and check again";

/// Why a key is of no use there.
const TAKES_NO_KEY: &str = "it takes no orders; start it there with `fullpipe serve --allow-tune --key-file FILE` and the \
                            same key, or leave --key-file out to change this host alone";

/// A host that is reached through its `fullpipe serve`.
pub(crate) struct RemoteEnd<'c> {
    name: String,
    client: &'c Mutex<Client>,
    key: Option<Key>,
}

impl<'c> RemoteEnd<'c> {
    /// The far end of `client`'s conversation; it can be changed where there is a key.
    pub(crate) fn new(name: &str, client: &'c Mutex<Client>, key: Option<Key>) -> Self {
        Self { name: name.to_owned(), client, key }
    }

    fn ask(&self, operation: &'static str, request: &Request) -> Result<Answer, TuneError> {
        let refused = |reason| TuneError::Remote { operation, host: self.name.clone(), reason };
        let request = serde_json::to_value(request).map_err(|error| refused(error.to_string()))?;
        let answer = self.client.lock().unwrap_or_else(PoisonError::into_inner).request(&request)?;
        match serde_json::from_value(answer) {
            Ok(Answer::Refused { reason }) => Err(refused(reason)),
            Ok(answer) => Ok(answer),
            Err(error) => Err(refused(format!("the answer can't be understood: {error}"))),
        }
    }

    /// Whether the server answers questions about its host at all.
    fn has_steward(&self) -> bool {
        let client = self.client.lock().unwrap_or_else(PoisonError::into_inner);
        client.hello().is_some_and(|hello| hello.steward)
    }

    fn order(&self, operation: &'static str, order: &Order) -> Result<Answer, TuneError> {
        let refused = |reason: String| TuneError::Remote { operation, host: self.name.clone(), reason };
        let key =
            self.key.as_ref().ok_or_else(|| refused("changing it needs the shared key (--key-file)".to_owned()))?;
        let Answer::Nonce(nonce) = self.ask(operation, &Request::Challenge)? else {
            return Err(refused("it gave no nonce".to_owned()));
        };
        let body = serde_json::to_string(order).map_err(|error| refused(error.to_string()))?;
        let to = address(self.client.lock().unwrap_or_else(PoisonError::into_inner).peer());
        let seal = key.seal(&Sealed { what: What::Order, server: &to, nonce: &nonce, body: &body });
        match self.ask(operation, &Request::Order { body, to: to.clone(), seal })? {
            Answer::Sealed { body, seal }
                if key.opens(&Sealed { what: What::Answer, server: &to, nonce: &nonce, body: &body }, &seal) =>
            {
                match serde_json::from_str(&body) {
                    Ok(Answer::Refused { reason }) => Err(refused(reason)),
                    Ok(answer) => Ok(answer),
                    Err(error) => Err(refused(format!("the answer can't be understood: {error}"))),
                }
            }
            _ => Err(refused(
                "its answer is not sealed with this key, so that nobody knows whose it is; look there with \
                 `fullpipe status`"
                    .to_owned(),
            )),
        }
    }

    fn unexpected(&self, operation: &'static str) -> TuneError {
        TuneError::Remote { operation, host: self.name.clone(), reason: "it answered something else".to_owned() }
    }
}

impl End for RemoteEnd<'_> {
    fn name(&self) -> &str {
        &self.name
    }

    fn settings(&mut self) -> Result<Settings, TuneError> {
        const OPERATION: &str = "read the settings";
        if !self.has_steward() {
            let reason = if self.key.is_some() { TAKES_NO_KEY } else { SHARES_NOTHING };
            return Err(TuneError::Remote { operation: OPERATION, host: self.name.clone(), reason: reason.to_owned() });
        }
        let answer = if self.key.is_some() {
            self.order(OPERATION, &Order::Settings)
        } else {
            self.ask(OPERATION, &Request::Settings)
        };
        match answer? {
            Answer::Settings(settings) => Ok(*settings),
            _ => Err(self.unexpected(OPERATION)),
        }
    }

    fn closed(&self) -> Option<String> {
        self.key.is_none().then(|| {
            format!(
                "it takes `fullpipe serve --allow-tune --key-file FILE` on {} and the same key here to change it from afar",
                self.name
            )
        })
    }

    fn apply(&mut self, changes: &[Change], stay: Stay, within: Duration) -> Result<Trial, TuneError> {
        let within_s = u32::try_from(within.as_secs()).unwrap_or(u32::MAX);
        match self.order("apply changes", &Order::Apply { changes: changes.to_vec(), stay, within_s })? {
            Answer::Applied { run, read_back } => Ok(Trial { run: run.map(RunId), read_back }),
            _ => Err(self.unexpected("apply changes")),
        }
    }

    fn undo(&mut self, trial: &Trial) -> Result<usize, TuneError> {
        let Some(run) = trial.run else { return Ok(0) };
        match self.order("undo a trial", &Order::Undo(run.0))? {
            Answer::Undone(count) => Ok(count),
            _ => Err(self.unexpected("undo a trial")),
        }
    }

    fn hold(&mut self, trial: &Trial, within: Duration) -> Result<Duration, TuneError> {
        const OPERATION: &str = "leave changes on trial";
        let Some(run) = trial.run else { return Ok(within) };
        let within_s = u32::try_from(within.as_secs()).unwrap_or(u32::MAX);
        match self.order(OPERATION, &Order::Hold { run: run.0, within_s })? {
            Answer::Held(seconds) => Ok(Duration::from_secs(seconds.into())),
            _ => Err(self.unexpected(OPERATION)),
        }
    }

    fn keep(&mut self, trial: &Trial) -> Result<(), TuneError> {
        let Some(run) = trial.run else { return Ok(()) };
        match self.order("keep a trial", &Order::Keep(run.0))? {
            Answer::Kept => Ok(()),
            _ => Err(self.unexpected("keep a trial")),
        }
    }
}
