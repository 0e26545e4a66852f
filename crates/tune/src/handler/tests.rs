//! Key holders on one host, in a folder that stands for it.
#![expect(clippy::unwrap_used, reason = "a test that fails may panic")]

use std::{fs, path::Path, sync::Arc};

use fullpipe_host::{
    FolderHost, Journal,
    guardian::{Bond, Guardian},
};
use fullpipe_knobs::{Address, Change};

use super::*;
use crate::{channel::Asked, end::Stay};

mod histories;
mod hostile;

const KEY: &str = "a key of more than sixteen bytes";
const SERVER: &str = "192.0.2.1:5201";
const OLD: &str = "4096 131072 33554432";

struct Machine {
    folder: tempfile::TempDir,
    handler: HostHandler<FolderHost>,
}

fn peer(port: u16) -> Ends {
    Ends { peer: SocketAddr::from(([192, 0, 2, 9], port)), local: SERVER.parse().unwrap() }
}

impl Machine {
    fn new() -> Self {
        Self::with(Terms::default())
    }

    fn with(terms: Terms) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let rmem = rmem(folder.path());
        fs::create_dir_all(rmem.parent().unwrap()).unwrap();
        fs::write(folder.path().join("machine/platform"), "linux 6.18.44\n").unwrap();
        fs::write(rmem, format!("{OLD}\n")).unwrap();
        let host = FolderHost::new(folder.path().join("machine"));
        let state = folder.path().join("state");
        let end = LocalEnd::in_folder("b", host, state.clone(), "serve", Some(guardian(folder.path(), &state)));
        let terms = Terms { key: Some(Key::from_text(KEY)), ..terms };
        Self { handler: HostHandler::new(end, terms, Arc::new(|_: &ServerEvent| {})), folder }
    }

    fn rmem(&self) -> String {
        fs::read_to_string(rmem(self.folder.path())).unwrap().trim().to_owned()
    }

    fn ask(&self, ends: Ends, request: &Request) -> Answer {
        match self.handler.handle(serde_json::to_value(request).unwrap(), ends) {
            Ok(answer) => serde_json::from_value(answer).unwrap(),
            Err(error) => refuse(&error.message),
        }
    }

    /// A channel to the server, which is reached as `to`.
    fn channel(&self, ends: Ends, to: &str) -> Channel {
        let (asked, asking) = Asked::new(&Key::from_text(KEY), to).unwrap();
        let answer = self.ask(ends, &Request::Channel { to: to.to_owned(), asking });
        let Answer::Channel(answer) = answer else { panic!("no channel: {answer:?}") };
        asked.open(&answer).unwrap()
    }

    /// What the server answers to text that is sealed for `to`.
    fn sealed(&self, ends: Ends, to: &str, body: &str) -> Answer {
        let mut channel = self.channel(ends, to);
        let answer = self.ask(ends, &Request::Order { sealed: channel.seal(body).unwrap() });
        let Answer::Sealed(sealed) = answer else { panic!("not sealed: {answer:?}") };
        serde_json::from_str(&channel.open(&sealed).unwrap()).unwrap()
    }

    fn order(&self, ends: Ends, order: &Order) -> Answer {
        self.sealed(ends, SERVER, &serde_json::to_string(order).unwrap())
    }

    fn apply(&self, ends: Ends, from: &str, to: &str) -> Answer {
        self.order(ends, &apply("net.ipv4.tcp_rmem", from, to))
    }
}

/// A guardian that says so and does nothing: here the server itself takes everything back.
fn guardian(folder: &Path, state: &Path) -> Guardian {
    use std::os::unix::fs::PermissionsExt;
    let program = folder.join("guardian");
    fs::write(&program, "#!/bin/sh\necho $$ > \"$0.pid\"\necho ready\nexec cat > /dev/null\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    // Another test's child may have the script open for writing until it is another program (ETXTBSY).
    let start = || Guardian::start(&program, state, Bond::Parent).ok();
    (0..100)
        .find_map(|_| {
            start().or_else(|| {
                std::thread::sleep(Duration::from_millis(20));
                None
            })
        })
        .unwrap()
}

fn rmem(folder: &Path) -> std::path::PathBuf {
    folder.join("machine/proc/sys/net/ipv4/tcp_rmem")
}

fn apply(knob: &str, from: &str, to: &str) -> Order {
    Order::Apply { changes: vec![change(knob, from, to)], stay: Stay::Running, within_s: 60 }
}

fn change(knob: &str, from: &str, to: &str) -> Change {
    Change::unexplained("b".into(), knob.parse::<Address>().unwrap(), Some(from.into()), Some(to.into()))
}

/// What a client with this key asks for a channel with.
fn asking(key: &str) -> String {
    Asked::new(&Key::from_text(key), SERVER).unwrap().1
}

fn reason(answer: &Answer) -> &str {
    let Answer::Refused { reason } = answer else { panic!("not refused: {answer:?}") };
    reason
}

#[test]
fn a_setting_is_on_trial_by_one_key_holder_at_a_time_and_ends_as_it_began() {
    let machine = Machine::new();
    let (first, second) = (peer(1), peer(2));
    let Answer::Applied { run: Some(run), .. } = machine.apply(first, OLD, "4096 131072 7000000") else { panic!() };
    let refused = machine.apply(second, "4096 131072 7000000", "4096 131072 8000000");
    assert!(reason(&refused).contains(&format!("on trial by run {run}")), "{refused:?}");
    machine.handler.on_disconnect(first.peer, Disconnect::Bye);
    assert_eq!(machine.rmem(), OLD);
    assert!(matches!(machine.apply(second, OLD, "4096 131072 8000000"), Answer::Applied { .. }), "it is free now");
    machine.handler.on_disconnect(second.peer, Disconnect::Lost);
    assert_eq!(machine.rmem(), OLD);
}

#[test]
fn two_key_holders_in_any_order_leave_the_host_as_it_began() {
    let seed = getrandom::u64().unwrap();
    println!("seed {seed}");
    let machine = Machine::new();
    let mut state = seed | 1;
    let mut draw = |most: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % most
    };
    for history in 0..20u64 {
        for _ in 0..12 {
            let who = peer(u16::try_from(draw(2)).unwrap());
            match draw(4) {
                0 => machine.handler.on_disconnect(who.peer, Disconnect::Lost),
                1 => {
                    let run = machine.handler.guests().get(&who.peer).and_then(|guest| guest.trials.last()?.run);
                    drop(machine.order(who, &Order::Undo(run.map_or(0, |run| run.0))));
                }
                _ => {
                    let to = format!("4096 131072 {}", 7_000_000 + draw(1000));
                    drop(machine.apply(who, &machine.rmem(), &to));
                }
            }
        }
        for who in [0, 1] {
            machine.handler.on_disconnect(peer(who).peer, Disconnect::Bye);
        }
        assert_eq!(machine.rmem(), OLD, "seed {seed}, history {history}");
    }
}

#[test]
fn a_trial_stays_a_trial_until_its_undo_succeeded() {
    let machine = Machine::new();
    let Answer::Applied { run: Some(run), .. } = machine.apply(peer(1), OLD, "4096 131072 7000000") else { panic!() };
    let state = machine.folder.path().join("state");
    // The journal can't be opened for now.
    fs::rename(&state, state.with_extension("away")).unwrap();
    fs::write(&state, "no folder").unwrap();
    reason(&machine.order(peer(1), &Order::Undo(run)));
    fs::remove_file(&state).unwrap();
    fs::rename(state.with_extension("away"), &state).unwrap();
    assert!(matches!(machine.order(peer(1), &Order::Undo(run)), Answer::Undone(1)));
    assert_eq!(machine.rmem(), OLD);
    assert!(matches!(machine.order(peer(1), &Order::Undo(run)), Answer::Undone(0)), "nothing of it is left");
}

#[test]
fn what_one_end_kept_can_be_taken_back_by_the_same_conversation() {
    let machine = Machine::new();
    let Answer::Applied { run: Some(run), .. } = machine.apply(peer(1), OLD, "4096 131072 7000000") else { panic!() };
    assert!(matches!(machine.order(peer(1), &Order::Keep(run)), Answer::Kept(_)));
    assert!(matches!(machine.order(peer(2), &Order::Undo(run)), Answer::Refused { .. }), "it is another's");
    assert!(matches!(machine.order(peer(1), &Order::Undo(run)), Answer::Undone(1)));
    assert_eq!(machine.rmem(), OLD);
}

#[test]
fn what_no_boot_time_file_can_hold_is_said_to_be_gone_after_a_reboot() {
    let machine = Machine::new();
    let route = change("route default window", "65535", "1048576");
    fs::create_dir_all(machine.folder.path().join("machine/routes/default")).unwrap();
    fs::write(machine.folder.path().join("machine/routes/default/device"), "eth0\n").unwrap();
    fs::write(machine.folder.path().join("machine/routes/default/window"), "65535\n").unwrap();
    let order = Order::Apply { changes: vec![route], stay: Stay::BeyondRestart, within_s: 60 };
    let applied = machine.order(peer(1), &order);
    let Answer::Applied { run: Some(run), .. } = applied else { panic!("{applied:?}") };
    let Answer::Kept(kept) = machine.order(peer(1), &Order::Keep(run)) else { panic!() };
    assert!(!kept.lasts && kept.boot_files.is_empty(), "{kept:?}");
    let [why] = kept.until_reboot.as_slice() else { panic!("{kept:?}") };
    assert_eq!(why, "route default window does not survive a reboot; add it to the network configuration");
}

#[test]
fn what_a_conversation_kept_can_be_taken_back_by_a_later_one_and_nothing_else_of_the_host() {
    let machine = Machine::new();
    let Answer::Applied { run: Some(run), .. } = machine.apply(peer(1), OLD, "4096 131072 7000000") else { panic!() };
    assert!(matches!(machine.order(peer(1), &Order::Keep(run)), Answer::Kept(_)));
    machine.handler.on_disconnect(peer(1).peer, Disconnect::Bye);
    assert_eq!(machine.rmem(), "4096 131072 7000000");
    assert!(matches!(machine.order(peer(2), &Order::Undo(run)), Answer::Undone(1)));
    assert_eq!(machine.rmem(), OLD);
    assert!(reason(&machine.order(peer(2), &Order::Undo(run + 1))).contains("no run"));

    // What the administrator did there is not for key holders.
    let mut journal = Journal::open(&machine.folder.path().join("state")).unwrap();
    let mut host = FolderHost::new(machine.folder.path().join("machine"));
    let options = fullpipe_host::ApplyOptions { command: "apply plan.json".into(), ..Default::default() };
    let changes = [change("net.ipv4.tcp_rmem", OLD, "4096 131072 8000000")];
    let own = fullpipe_host::apply(&mut host, &mut journal, &changes, &options).unwrap().id.unwrap();
    journal.keep(own).unwrap();
    drop(journal);
    assert!(reason(&machine.order(peer(2), &Order::Undo(own.0))).contains("no run"));
    assert_eq!(machine.rmem(), "4096 131072 8000000");
}

#[test]
fn what_is_held_outlives_its_conversation_until_its_own_deadline() {
    let machine = Machine::new();
    let Answer::Applied { run: Some(run), .. } = machine.apply(peer(1), OLD, "4096 131072 7000000") else { panic!() };
    let state = machine.folder.path().join("state");
    let terms = || Journal::look(&state).unwrap().unwrap().run(RunId(run)).unwrap().trial.unwrap();
    let of_the_server = terms().owner;
    assert!(matches!(machine.order(peer(2), &Order::Hold { run, within_s: 600 }), Answer::Refused { .. }), "another's");
    assert!(matches!(machine.order(peer(1), &Order::Hold { run, within_s: 600 }), Answer::Held(600)));
    machine.handler.on_disconnect(peer(1).peer, Disconnect::Lost);
    assert_eq!(machine.rmem(), "4096 131072 7000000", "the conversation is over, and the trial is not");
    reason(&machine.apply(peer(2), "4096 131072 7000000", "4096 131072 8000000"));
    let trial = terms();
    assert!(trial.deadline_ms.is_some() && trial.owner != of_the_server, "a guardian of its own: {trial:?}");
    let mut journal = Journal::open(&state).unwrap();
    let mut host = FolderHost::new(machine.folder.path().join("machine"));
    fullpipe_host::confirm(&mut host, &mut journal, RunId(run)).expect("in time");
    assert_eq!(journal.on_trial().unwrap(), []);
}

#[cfg(target_os = "linux")]
#[test]
fn a_guardian_that_was_killed_is_replaced_before_the_next_trial() {
    let machine = Machine::new();
    let process = || fs::read_to_string(machine.folder.path().join("guardian.pid")).unwrap().trim().to_owned();
    let state = |process: &str| {
        let status = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        status.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next())
    };
    let first = process();
    assert!(std::process::Command::new("kill").args(["-9", &first]).status().unwrap().success());
    while state(&first) != Some('Z') {
        std::thread::sleep(Duration::from_millis(1));
    }
    let answer = machine.apply(peer(1), OLD, "4096 131072 7000000");
    assert!(matches!(answer, Answer::Applied { .. }), "{answer:?}");
    let second = process();
    assert_ne!(second, first);
    assert!(state(&second).is_some_and(|state| state != 'Z'), "{second}");
}

#[test]
fn an_undo_of_the_administrator_ends_a_trial_while_the_server_runs() {
    let machine = Machine::new();
    let Answer::Applied { run: Some(run), .. } = machine.apply(peer(1), OLD, "4096 131072 7000000") else { panic!() };
    let mut journal = Journal::open(&machine.folder.path().join("state")).expect("not locked between orders");
    let mut host = FolderHost::new(machine.folder.path().join("machine"));
    let undone = fullpipe_host::undo(&mut host, &mut journal, fullpipe_host::Which::All, Default::default()).unwrap();
    assert!(undone.is_complete());
    drop(journal);
    assert_eq!(machine.rmem(), OLD);
    reason(&machine.order(peer(1), &Order::Keep(run)));
}

#[test]
fn only_what_is_allowed_is_set_and_a_refusal_tells_no_value() {
    let machine = Machine::new();
    let secret = machine.folder.path().join("machine/proc/sys/net/ipv4/tcp_fastopen_key");
    fs::write(&secret, "a-secret").unwrap();
    let answer = machine.order(peer(1), &apply("net.ipv4.tcp_fastopen_key", "guess", "0-0-0-0"));
    assert!(!reason(&answer).contains("a-secret"), "{answer:?}");
    reason(&machine.apply(peer(1), OLD, "1 1 1"));
    let many = vec![change("net.ipv4.tcp_rmem", OLD, "4096 131072 7000000"); 3000];
    reason(&machine.order(peer(1), &Order::Apply { changes: many, stay: Stay::Running, within_s: 60 }));
    assert_eq!(machine.rmem(), OLD);
}

#[test]
fn an_order_for_another_server_is_refused_here() {
    let order = serde_json::to_string(&apply("net.ipv4.tcp_rmem", OLD, "4096 131072 7000000")).unwrap();
    let other = "198.51.100.7:5201";
    let machine = Machine::new();
    assert!(reason(&machine.sealed(peer(1), other, &order)).contains("--reached-as"));
    assert_eq!(machine.rmem(), OLD);
    // Nor does it open for whoever passes it on under this server's name.
    let (_, asking) = Asked::new(&Key::from_text(KEY), other).unwrap();
    let passed_on = Request::Channel { to: SERVER.to_owned(), asking };
    assert!(reason(&machine.ask(peer(1), &passed_on)).contains("key"));
    let known = Machine::with(Terms { reached_as: vec![other.parse().unwrap()], ..Terms::default() });
    let answer = known.sealed(peer(1), other, &order);
    assert!(matches!(answer, Answer::Applied { .. }), "{answer:?}");
}

#[test]
fn a_wrong_key_is_told_from_any_other_refusal() {
    let wrong = [asking("another key of sixteen bytes"), "no base64!".to_owned(), String::new()];
    let machine = Machine::new();
    let kind = |asking: &str| {
        let request = Request::Channel { to: SERVER.to_owned(), asking: asking.to_owned() };
        machine.handler.handle(serde_json::to_value(request).unwrap(), peer(1)).map_err(|error| error.kind)
    };
    for asking in &wrong {
        assert_eq!(kind(asking), Err(RequestError::NOT_AUTHENTICATED.to_owned()), "{asking}");
    }
    kind(&asking(KEY)).expect("a channel");
    reason(&machine.ask(peer(1), &Request::Order { sealed: String::new() }));
}

#[test]
fn a_channel_is_good_for_one_order_and_a_short_time() {
    let machine = Machine::new();
    let body = serde_json::to_string(&Order::Settings).unwrap();
    let mut channel = machine.channel(peer(1), SERVER);
    let order = Request::Order { sealed: channel.seal(&body).unwrap() };
    let age = |by: Duration| {
        let mut guests = machine.handler.guests();
        let promised = guests.get_mut(&peer(1).peer).unwrap().channel.as_mut().unwrap();
        promised.given = promised.given.checked_sub(by).expect("the machine runs for longer");
    };
    age(CHANNEL_LIFE / 2);
    assert!(matches!(machine.ask(peer(1), &order), Answer::Sealed(_)));
    assert!(reason(&machine.ask(peer(1), &order)).contains("no channel"));
    let mut channel = machine.channel(peer(1), SERVER);
    age(CHANNEL_LIFE * 2);
    let order = Request::Order { sealed: channel.seal(&body).unwrap() };
    assert!(reason(&machine.ask(peer(1), &order)).contains("too old"));
}

#[test]
fn an_order_of_another_session_is_refused() {
    let machine = Machine::new();
    let body = serde_json::to_string(&apply("net.ipv4.tcp_rmem", OLD, "4096 131072 7000000")).unwrap();
    let order = Request::Order { sealed: machine.channel(peer(1), SERVER).seal(&body).unwrap() };
    machine.channel(peer(2), SERVER);
    assert!(reason(&machine.ask(peer(2), &order)).contains("altered"));
    assert_eq!(machine.rmem(), OLD);
}

#[test]
fn strangers_are_told_settings_only_where_the_server_shares_them() {
    assert!(reason(&Machine::new().ask(peer(1), &Request::Settings)).contains("key"));
    let open = Machine::with(Terms { share: true, ..Terms::default() });
    assert!(matches!(open.ask(peer(1), &Request::Settings), Answer::Settings(_)));
}

#[test]
fn no_order_has_a_trial_last_for_longer_than_the_longest() {
    let deadline_of = |within_s: u32| {
        let machine = Machine::new();
        let changes = vec![change("net.ipv4.tcp_rmem", OLD, "4096 131072 7000000")];
        let answer = machine.order(peer(1), &Order::Apply { changes, stay: Stay::Running, within_s });
        let Answer::Applied { run: Some(run), .. } = answer else { panic!("{answer:?}") };
        let journal = Journal::look(&machine.folder.path().join("state")).unwrap().unwrap();
        let deadline = journal.run(RunId(run)).unwrap().trial.unwrap().deadline_ms.unwrap();
        let held = machine.order(peer(1), &Order::Hold { run, within_s });
        let Answer::Held(held) = held else { panic!("{held:?}") };
        (deadline, u64::from(held))
    };
    let (longest, _) = deadline_of(u32::try_from(*TRIAL.end()).unwrap());
    let (deadline, held) = deadline_of(u32::MAX);
    // The two began at most so far apart, and what was asked for is 136 years.
    assert!(deadline - longest < 3_600_000, "{} ms more", deadline - longest);
    assert_eq!(held, *HOLD.end());
}

#[test]
fn settings_for_everybody_are_not_read_anew_for_each_who_asks() {
    let machine = Machine::with(Terms { share: true, ..Terms::default() });
    let setting = || match machine.ask(peer(1), &Request::Settings) {
        Answer::Settings(settings) => settings.values[&"net.ipv4.tcp_rmem".parse().unwrap()].clone().unwrap(),
        answer => panic!("{answer:?}"),
    };
    assert_eq!(setting(), OLD);
    fs::write(rmem(machine.folder.path()), "4096 131072 7000000\n").unwrap();
    let read_at = |moment: Instant| machine.handler.shared.lock().unwrap().as_mut().unwrap().0 = moment;
    read_at(Instant::now() + SHARED_LIFE * 60);
    assert_eq!(setting(), OLD, "what was just read is not read again");
    read_at(Instant::now().checked_sub(SHARED_LIFE * 2).expect("the machine runs for longer"));
    assert_eq!(setting(), "4096 131072 7000000");
}
