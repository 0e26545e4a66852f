//! Random histories of two key holders over a real server and real connections.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::Relaxed},
};

use fullpipe_host::{UndoOptions, Which};
use fullpipe_measure::{Client, Server, ServerOptions, Target};

use super::*;
use crate::remote_end::RemoteEnd;

/// How many histories there are unless FULLPIPE_HISTORIES says otherwise, as `cargo xtask soak` does; and the steps of each.
const HISTORIES: u64 = 50;
const STEPS: u64 = 10;

const KNOBS: [&str; 2] = ["tcp_rmem", "tcp_wmem"];

/// A host as a folder, in memory where the system has such a folder: each history syncs its journal 50 times.
struct Served {
    folder: tempfile::TempDir,
    handler: Arc<HostHandler<FolderHost>>,
}

impl Served {
    fn new() -> Self {
        let memory = Path::new("/dev/shm");
        let folder = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap();
        let machine = folder.path().join("machine");
        fs::create_dir_all(machine.join("proc/sys/net/ipv4")).unwrap();
        fs::write(machine.join("platform"), "linux 6.18.44\n").unwrap();
        KNOBS.iter().for_each(|knob| fs::write(place(folder.path(), knob), OLD).unwrap());
        let state = folder.path().join("state");
        let guardian = guardian(folder.path(), &state);
        let end = LocalEnd::in_folder("b", FolderHost::new(machine), state, "serve", Some(guardian));
        let terms = Terms { key: Some(Key::from_text(KEY)), ..Terms::default() };
        Self { handler: Arc::new(HostHandler::new(end, terms, Arc::new(|_: &ServerEvent| {}))), folder }
    }

    fn values(&self) -> [String; 2] {
        KNOBS.map(|knob| fs::read_to_string(place(self.folder.path(), knob)).unwrap().trim().to_owned())
    }

    /// Undoes what was kept or is held, once nobody is there any more.
    fn clear(&self) {
        while !self.handler.guests().is_empty() {
            std::thread::sleep(Duration::from_millis(1));
        }
        // The server may still be undoing what the last one left; on a busy machine for longer than a run waits.
        let open = |_| Journal::open(&self.folder.path().join("state")).ok();
        let mut journal = (0..30).find_map(open).unwrap();
        let mut host = FolderHost::new(self.folder.path().join("machine"));
        let report = fullpipe_host::undo(&mut host, &mut journal, Which::All, UndoOptions::default()).unwrap();
        assert!(report.is_complete(), "{report:?}");
    }
}

fn place(folder: &Path, knob: &str) -> std::path::PathBuf {
    folder.join("machine/proc/sys/net/ipv4").join(knob)
}

/// A key holder, and what it has on trial.
struct Holder {
    client: Mutex<Client>,
    trials: Vec<Trial>,
}

impl Holder {
    fn new(target: &Target) -> Self {
        Self { client: Mutex::new(Client::connect(target).unwrap()), trials: Vec::new() }
    }

    /// One step. What the server refuses, such as a setting that the other has on trial, is no failure.
    fn step(&mut self, served: &Served, draw: &mut impl FnMut(u64) -> u64) {
        let mut end = RemoteEnd::new("b", &self.client, Some(Key::from_text(KEY)));
        match draw(6) {
            0 => {
                let ended = self.trials.last().is_some_and(|trial| end.undo(trial).is_ok());
                self.trials.truncate(self.trials.len() - usize::from(ended));
            }
            1 => drop(self.trials.last().map(|trial| end.keep(trial))),
            2 => drop(self.trials.last().map(|trial| end.hold(trial, Duration::from_secs(600)))),
            _ => {
                let at = usize::try_from(draw(2)).unwrap();
                let name = format!("net.ipv4.{}", KNOBS[at]);
                let to = format!("4096 131072 {}", 7_000_000 + draw(1_000));
                let change = change(&name, &served.values()[at], &to);
                self.trials.extend(end.apply(&[change], Stay::Running, Duration::from_secs(600)));
            }
        }
    }
}

#[test]
fn random_histories_of_two_key_holders_leave_the_host_as_it_began() {
    let seed = getrandom::u64().unwrap();
    let histories = std::env::var("FULLPIPE_HISTORIES").map_or(HISTORIES, |count| count.parse().unwrap());
    println!("seed {seed:#x}");
    let mut state = seed | 1;
    let mut draw = |most: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % most
    };
    let served = Served::new();
    let handler: Arc<dyn RequestHandler> = served.handler.clone();
    let server = Server::bind("127.0.0.1:0".parse().unwrap(), ServerOptions::default(), Some(handler)).unwrap();
    let target: Target = server.local_addr().to_string().parse().unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| server.run(&stop).unwrap());
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let mut applied = 0;
            for history in 0..histories {
                let mut holders: [Option<Holder>; 2] = [None, None];
                for _ in 0..STEPS {
                    let holder = &mut holders[usize::try_from(draw(2)).unwrap()];
                    match draw(8) {
                        // Without a word, or with one.
                        0 => drop(holder.take()),
                        1 => drop(holder.take().map(|holder| holder.client.into_inner().unwrap().bye())),
                        _ => {
                            let holder = holder.get_or_insert_with(|| Holder::new(&target));
                            let before = holder.trials.len();
                            holder.step(&served, &mut draw);
                            applied += u32::from(holder.trials.len() > before);
                        }
                    }
                }
                drop(holders);
                served.clear();
                assert_eq!(served.values(), [OLD, OLD], "seed {seed:#x}, history {history}");
            }
            println!("{histories} histories with {applied} trials");
            assert!(u64::from(applied) > histories / 2, "{applied} trials are no test");
        }));
        stop.store(true, Relaxed);
        ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}
