//! The far host as an end: its settings are asked for, and it is ordered to change them, over the conversation.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use fullpipe_host::{FarRun, Journal, JournalError, RunId};
use fullpipe_knobs::{Change, Settings};
use fullpipe_measure::{Client, MeasureError, RequestError};

use crate::{
    channel::{Asked, Unsealed},
    end::{End, Kept, Stay, Trial},
    error::TuneError,
    key::Key,
    remote::{Answer, Order, Request, address},
};

/// Why the plan has no changes for a server that was started plainly.
const SHARES_NOTHING: &str = "it does not share them, so the plan has no changes for it; start it there with \
                              `fullpipe serve --share-settings` and check again";

/// Why a key is of no use there.
const TAKES_NO_KEY: &str = "it takes no orders; start it there with `fullpipe serve --allow-tune --key-file FILE` and the \
                            same key, or leave --key-file out to change this host alone";

/// What an answer without a seal is worth.
const NOBODY_KNOWS: &str = "the answer is not sealed with this key, so that nobody knows whose it is; look there with \
                            `fullpipe status`";

/// A host that is reached through its `fullpipe serve`.
pub(crate) struct RemoteEnd<'c> {
    name: String,
    client: &'c Mutex<Client>,
    key: Option<Key>,
    memory: Option<Memory>,
    /// What each run of this conversation is to change, and its number in the memory once it stays.
    runs: BTreeMap<RunId, (Vec<Change>, Option<RunId>)>,
}

/// Where this machine remembers what stays at the far end.
#[derive(Clone, Debug)]
pub(crate) struct Memory {
    /// The folder of this machine's journal.
    pub(crate) state_dir: PathBuf,
    /// The command that it is remembered with.
    pub(crate) command: String,
    /// The server, as the next command reaches it again.
    pub(crate) server: String,
}

impl<'c> RemoteEnd<'c> {
    /// The far end of `client`'s conversation; it can be changed where there is a key.
    pub(crate) fn new(name: &str, client: &'c Mutex<Client>, key: Option<Key>) -> Self {
        Self { name: name.to_owned(), client, key, memory: None, runs: BTreeMap::new() }
    }

    /// Remembers in `memory` what stays there.
    pub(crate) fn with_memory(self, memory: Memory) -> Self {
        Self { memory: Some(memory), ..self }
    }

    /// Writes down that `run` is about to stay, before it does: what stays is known here whatever ends this process.
    fn remember(&mut self, run: RunId) -> Result<(), TuneError> {
        let (Some(memory), Some((changes, remembered @ None))) = (&self.memory, self.runs.get_mut(&run)) else {
            return Ok(());
        };
        let far = FarRun { server: memory.server.clone(), run };
        let mut journal = Journal::open(&memory.state_dir)?;
        *remembered = Some(journal.remember_far(&memory.command, &self.name, &far, changes)?);
        Ok(())
    }

    /// Notes in the memory what became of `run`.
    fn note(
        &self,
        run: RunId,
        what: impl FnOnce(&mut Journal, RunId) -> Result<(), JournalError>,
    ) -> Result<(), TuneError> {
        match (&self.memory, self.runs.get(&run)) {
            (Some(memory), Some((_, Some(remembered)))) => {
                Ok(what(&mut Journal::open(&memory.state_dir)?, *remembered)?)
            }
            _ => Ok(()),
        }
    }

    /// Has the far host undo a run that an earlier conversation kept; gives how many settings were written back.
    pub(crate) fn undo_kept(&self, run: RunId) -> Result<usize, TuneError> {
        const OPERATION: &str = "undo a run";
        match self.order(OPERATION, &Order::Undo(run.0))? {
            Answer::Undone(count) => Ok(count),
            _ => Err(self.unexpected(OPERATION)),
        }
    }

    fn ask(&self, operation: &'static str, request: &Request) -> Result<Answer, TuneError> {
        let refused = |reason| TuneError::Remote { operation, host: self.name.clone(), reason };
        let request = serde_json::to_value(request).map_err(|error| refused(error.to_string()))?;
        let answer = match self.client.lock().unwrap_or_else(PoisonError::into_inner).request(&request) {
            Err(MeasureError::Refusal { kind, message, .. }) if kind == RequestError::NOT_AUTHENTICATED => {
                return Err(refused(message));
            }
            answer => answer?,
        };
        match serde_json::from_value(answer) {
            Ok(Answer::Refused { reason }) => Err(refused(reason)),
            Ok(answer) => Ok(answer),
            Err(error) => Err(refused(format!("the answer can't be understood: {error}"))),
        }
    }

    /// Whether the server answers questions about its host at all.
    fn takes_requests(&self) -> bool {
        let client = self.client.lock().unwrap_or_else(PoisonError::into_inner);
        client.hello().is_some_and(|hello| hello.takes_requests)
    }

    fn order(&self, operation: &'static str, order: &Order) -> Result<Answer, TuneError> {
        let refused = |reason: String| TuneError::Remote { operation, host: self.name.clone(), reason };
        let key =
            self.key.as_ref().ok_or_else(|| refused("changing it needs the shared key (--key-file)".to_owned()))?;
        let nobody = |_| refused(NOBODY_KNOWS.to_owned());
        let to = address(self.client.lock().unwrap_or_else(PoisonError::into_inner).peer());
        let (asked, asking) = Asked::new(key, &to).map_err(nobody)?;
        let Answer::Channel(answer) = self.ask(operation, &Request::Channel { to, asking })? else {
            return Err(refused("it gave no channel for orders; are both ends of the same version?".to_owned()));
        };
        let mut channel = asked.open(&answer).map_err(nobody)?;
        let body = serde_json::to_string(order).map_err(|error| refused(error.to_string()))?;
        let sealed = channel.seal(&body).map_err(nobody)?;
        let sealed = match self.ask(operation, &Request::Order { sealed }) {
            Ok(Answer::Sealed(sealed)) => sealed,
            // The order may have been carried out all the same: whoever is in between can say that it was not.
            Ok(_) => return Err(nobody(Unsealed)),
            Err(TuneError::Remote { reason, .. }) => return Err(refused(format!("{reason} ({NOBODY_KNOWS})"))),
            Err(error) => return Err(error),
        };
        let body = channel.open(&sealed).map_err(nobody)?;
        match serde_json::from_str(&body) {
            Ok(Answer::Refused { reason }) => Err(refused(reason)),
            Ok(answer) => Ok(answer),
            Err(error) => Err(refused(format!("the answer can't be understood: {error}"))),
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
        if !self.takes_requests() {
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
            Answer::Applied { run, read_back } => {
                let run = run.map(RunId);
                self.runs.extend(run.map(|run| (run, (changes.to_vec(), None))));
                Ok(Trial { run, read_back })
            }
            _ => Err(self.unexpected("apply changes")),
        }
    }

    fn undo(&mut self, trial: &Trial) -> Result<usize, TuneError> {
        let Some(run) = trial.run else { return Ok(0) };
        match self.order("undo a trial", &Order::Undo(run.0))? {
            Answer::Undone(count) => {
                self.note(run, Journal::far_is_undone)?;
                Ok(count)
            }
            _ => Err(self.unexpected("undo a trial")),
        }
    }

    fn hold(&mut self, trial: &Trial, within: Duration) -> Result<Duration, TuneError> {
        const OPERATION: &str = "leave changes on trial";
        let Some(run) = trial.run else { return Ok(within) };
        let within_s = u32::try_from(within.as_secs()).unwrap_or(u32::MAX);
        self.remember(run)?;
        match self.order(OPERATION, &Order::Hold { run: run.0, within_s })? {
            Answer::Held(seconds) => {
                self.note(run, Journal::far_is_kept)?;
                Ok(Duration::from_secs(seconds.into()))
            }
            _ => Err(self.unexpected(OPERATION)),
        }
    }

    fn keep(&mut self, trial: &Trial) -> Result<Kept, TuneError> {
        let Some(run) = trial.run else { return Ok(Kept::default()) };
        self.remember(run)?;
        match self.order("keep a trial", &Order::Keep(run.0))? {
            Answer::Kept(mut kept) => {
                self.note(run, Journal::far_is_kept)?;
                // Whoever sits here need not go there.
                kept.notes.extend(self.runs.get(&run).and_then(|(_, remembered)| *remembered).map(|own| {
                    format!("from here `fullpipe undo {own} --key-file FILE` takes it back, with the key of this tune")
                }));
                Ok(kept)
            }
            _ => Err(self.unexpected("keep a trial")),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        net::SocketAddr,
        sync::{
            Arc,
            atomic::{AtomicBool, Ordering::Relaxed},
        },
    };

    use fullpipe_measure::{Disconnect, Ends, RequestHandler, Server, ServerOptions};
    use serde_json::{Value, json};

    use super::*;
    use crate::channel::Channel;

    const KEY: &str = "a key of more than sixteen bytes";

    /// Whoever sits in between: lets the handshake through and says of the order what it likes.
    struct Liar(Value);

    impl RequestHandler for Liar {
        fn handle(&self, request: Value, _: Ends) -> Result<Value, RequestError> {
            if request["request"] != "channel" {
                return Ok(self.0.clone());
            }
            let text = |key: &str| request[key].as_str().unwrap().to_owned();
            let (_, answer) = Channel::answer(&Key::from_text(KEY), &text("to"), &text("asking")).unwrap();
            Ok(json!({ "channel": answer }))
        }

        fn on_disconnect(&self, _: SocketAddr, _: Disconnect) {}
    }

    #[test]
    fn an_answer_without_a_seal_is_never_taken_for_the_servers() {
        for said in [
            json!({ "refused": { "reason": "no such trial" } }),
            json!({ "undone": 1 }),
            json!({ "sealed": "AAAA" }),
            json!({ "sealed": "no base64!" }),
        ] {
            let handler: Arc<dyn RequestHandler> = Arc::new(Liar(said.clone()));
            let server = Server::bind("127.0.0.1:0".parse().unwrap(), ServerOptions::default(), Some(handler)).unwrap();
            let target = server.local_addr().to_string().parse().unwrap();
            let stop = AtomicBool::new(false);
            let error = std::thread::scope(|scope| {
                scope.spawn(|| server.run(&stop).unwrap());
                let client = Mutex::new(Client::connect(&target).unwrap());
                let error = RemoteEnd::new("b", &client, Some(Key::from_text(KEY))).undo_kept(RunId(1));
                stop.store(true, Relaxed);
                error.unwrap_err().to_string()
            });
            assert!(error.contains("nobody knows whose it is"), "{said}: {error}");
        }
    }
}
