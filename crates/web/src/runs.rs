//! Runs: the program's own commands, started beside the server and followed.

use std::{
    collections::VecDeque,
    path::PathBuf,
    process::Stdio,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use fullpipe_report::html;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, BufReader},
    process::{Child, Command},
    sync::watch,
};

use crate::store::{About, Store};

/// Runs that are remembered.
const MOST_RUNS: usize = 20;
/// Events of a run: ten minutes of them and more. Later ones are left out, but for the last.
const MOST_EVENTS: usize = 20_000;
/// The largest document that is read of a run, in bytes.
const LARGEST: u64 = 64 << 20;
/// How long a command may take to end by itself when it is asked to.
#[cfg(unix)]
const PATIENCE: Duration = Duration::from_secs(10);
/// The longest line of progress, in bytes.
const LONGEST_LINE: usize = 16 << 10;

/// One command that runs, or that ran.
#[derive(Debug)]
pub(crate) struct Run {
    /// Its name, and its report's.
    pub(crate) name: String,
    /// The command line, for a person.
    pub(crate) line: String,
    events: Mutex<Vec<Arc<str>>>,
    /// How many events there are, and whether these are all.
    progress: watch::Sender<(usize, bool)>,
    /// Set to stop it.
    stop: watch::Sender<bool>,
}

impl Run {
    /// Whether it has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.progress.borrow().1
    }

    /// Asks it to stop: it ends with what it has until then.
    pub(crate) fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// Event `place`, once there is one; `None` after the last.
    pub(crate) async fn event(&self, place: usize) -> Option<Arc<str>> {
        let mut progress = self.progress.subscribe();
        let (count, _) = *progress.wait_for(|(count, is_over)| *count > place || *is_over).await.ok()?;
        if count > place { lock(&self.events).get(place).cloned() } else { None }
    }

    fn tell(&self, event: &Value) {
        self.push(event, false);
    }

    fn push(&self, event: &Value, is_last: bool) {
        let mut events = lock(&self.events);
        if events.len() < MOST_EVENTS || is_last {
            events.push(event.to_string().into());
        }
        self.progress.send_replace((events.len(), is_last));
    }
}

/// Why a run was not started.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NotStarted {
    /// Another one goes on: two at once would measure each other.
    Busy(String),
    /// The system said no.
    Failed(String),
}

/// All runs of this server.
#[derive(Debug)]
pub(crate) struct Runs {
    program: PathBuf,
    store: Store,
    runs: Mutex<VecDeque<Arc<Run>>>,
}

impl Runs {
    pub(crate) fn new(program: PathBuf, store: Store) -> Self {
        Self { program, store, runs: Mutex::default() }
    }

    /// The run of that name.
    pub(crate) fn get(&self, name: &str) -> Option<Arc<Run>> {
        lock(&self.runs).iter().find(|run| run.name == name).cloned()
    }

    /// The one that goes on.
    pub(crate) fn current(&self) -> Option<Arc<Run>> {
        lock(&self.runs).iter().find(|run| !run.has_ended()).cloned()
    }

    /// Starts a command; `after` is dropped when it has ended.
    pub(crate) fn start<T: Send + 'static>(&self, words: Vec<String>, after: T) -> Result<Arc<Run>, NotStarted> {
        let mut runs = lock(&self.runs);
        if let Some(run) = runs.iter().find(|run| !run.has_ended()) {
            return Err(NotStarted::Busy(run.name.clone()));
        }
        let now = jiff::Timestamp::now();
        let name = Store::name(now, words.first().map_or("run", String::as_str));
        let mut command = Command::new(&self.program);
        command
            .args(["--json", "--color", "never", "--progress", "json"])
            .args(words.first())
            .arg("--html")
            .arg(self.store.page(&name))
            .args(words.iter().skip(1))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        // A Ctrl-C at the terminal is for the server, which passes it on.
        #[cfg(unix)]
        command.process_group(0);
        let child = command
            .spawn()
            .map_err(|error| NotStarted::Failed(format!("starting {}: {error}", self.program.display())))?;
        let shown = words.iter().filter(|word| *word != "--").cloned().collect::<Vec<_>>().join(" ");
        let run = Arc::new(Run {
            name,
            line: format!("fullpipe {shown}"),
            events: Mutex::default(),
            progress: watch::Sender::new((0, false)),
            stop: watch::Sender::new(false),
        });
        runs.push_front(Arc::clone(&run));
        runs.truncate(MOST_RUNS);
        drop(runs);
        let follower = Follower { run: Arc::clone(&run), store: self.store.clone(), began: now.to_string(), words };
        tokio::spawn(async move {
            follower.follow(child).await;
            drop(after);
        });
        Ok(run)
    }

    /// Stops what runs, and waits for its end for at most `grace`; then it is killed with the server.
    pub(crate) async fn stop_all(&self, grace: Duration) {
        let Some(run) = self.current() else { return };
        run.stop();
        let mut progress = run.progress.subscribe();
        // Too late or not: the server ends.
        drop(tokio::time::timeout(grace, progress.wait_for(|(_, is_over)| *is_over)).await);
    }
}

struct Follower {
    run: Arc<Run>,
    store: Store,
    began: String,
    words: Vec<String>,
}

impl Follower {
    async fn follow(self, mut child: Child) {
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let document = async {
            let mut text = Vec::new();
            if let Some(stdout) = stdout {
                // What is too large or cut is no JSON, which is reported below.
                drop(stdout.take(LARGEST).read_to_end(&mut text).await);
            }
            serde_json::from_slice::<Value>(&text).ok()
        };
        let progress = async {
            let Some(stderr) = stderr else { return };
            let mut reader = BufReader::new(stderr);
            let mut line = Vec::new();
            while let Ok(1..) = (&mut reader).take(LONGEST_LINE as u64).read_until(b'\n', &mut line).await {
                let text = String::from_utf8_lossy(&line);
                let text = text.trim_end();
                let event = serde_json::from_str::<Value>(text).ok().map(|mut event| event["progress"].take());
                match event.filter(Value::is_object) {
                    Some(event) => self.run.tell(&event),
                    None if !text.is_empty() => self.run.tell(&json!({ "kind": "note", "text": text })),
                    None => {}
                }
                line.clear();
            }
        };
        let stop = self.stop_when_asked(child.id());
        // Once both are closed the program has ended, or will not say anything more.
        let document = tokio::select! {
            (document, ()) = async { tokio::join!(document, progress) } => document,
            () = stop => {
                // Where it has ended meanwhile, there is nothing to kill.
                child.start_kill().ok();
                None
            }
        };
        let exit = child.wait().await.ok().and_then(|status| status.code());
        self.finish(document, exit);
    }

    /// Passes the wish to stop on; ends where that does not help, and then the program is to be killed.
    async fn stop_when_asked(&self, id: Option<u32>) {
        let mut stop = self.run.stop.subscribe();
        if stop.wait_for(|stop| *stop).await.is_err() {
            // Nobody can ask any more.
            return std::future::pending().await;
        }
        #[cfg(unix)]
        if let Some(id) = id.and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw) {
            // Where it has ended already, there is nothing to stop.
            rustix::process::kill_process(id, rustix::process::Signal::INT).ok();
            tokio::time::sleep(PATIENCE).await;
        }
        // Other systems have no signal that it would take for Ctrl-C.
        #[cfg(not(unix))]
        let _ = id;
    }

    fn finish(self, document: Option<Value>, exit: Option<i32>) {
        let document = document.unwrap_or_else(|| {
            let how = exit.map_or_else(|| "was ended by a signal".to_owned(), |code| format!("ended with {code}"));
            json!({
                "schema": "fullpipe/2", "command": self.words.first(),
                "error": { "kind": "system", "message": format!("{} {how} and printed no result", self.run.line) },
            })
        });
        let about = About { began: self.began, words: self.words, headline: html::headline(&document), exit };
        let has_page = self.store.page(&self.run.name).is_file();
        let page = (!has_page).then(|| html::page(&document, html::Charts::default()));
        let last = match self.store.keep(&self.run.name, page.as_deref(), &about) {
            Ok(()) => {
                json!({ "kind": "done", "report": format!("/reports/{}", self.run.name), "text": about.headline })
            }
            Err(error) => {
                json!({ "kind": "done", "text": format!("{}; the report could not be kept: {error}", about.headline) })
            }
        };
        self.run.push(&last, true);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is behind it is whole after each statement.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
