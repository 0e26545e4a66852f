//! A machine that stands in for Windows: what it is asked, and what is made of its answers.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
};

use fullpipe_diagnose::Limiter;
use fullpipe_host::windows::connections::{Collection, Group};
use fullpipe_units::{Bytes, Micros, Rate};

use super::*;
use crate::source;

/// What the machine is like now.
#[derive(Default)]
struct State {
    connections: Vec<Connection>,
    counters: Counters,
    on: BTreeSet<(u16, u32)>,
    is_denied: bool,
    is_missing: bool,
    calls: usize,
}

#[derive(Clone, Default)]
struct Machine(Arc<Mutex<State>>);

impl Machine {
    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.0.lock().unwrap());
    }

    fn with(connections: &[Connection]) -> Self {
        let machine = Self::default();
        machine.change(|state| state.connections = connections.to_vec());
        machine
    }
}

fn connection(port: u16) -> Connection {
    Connection {
        local: "192.0.2.1:443".parse().unwrap(),
        remote: (std::net::Ipv4Addr::new(198, 51, 100, 7), port).into(),
        pid: 4_711,
    }
}

impl Statistics for Machine {
    fn connections(&self) -> Result<Vec<Connection>, StatisticsError> {
        Ok(self.0.lock().unwrap().connections.clone())
    }

    fn program(&self, pid: u32) -> Option<String> {
        (pid == 4_711).then(|| "nginx.exe".to_owned())
    }

    fn collection(&self, connection: &Connection, group: Group) -> Result<Collection, StatisticsError> {
        let mut state = self.0.lock().unwrap();
        state.calls += 1;
        if state.is_missing {
            return Err(StatisticsError::Missing { call: "GetPerTcpConnectionEStats" });
        }
        if !state.connections.contains(connection) {
            return Err(StatisticsError::Gone);
        }
        let is_on = state.on.contains(&(connection.remote.port(), group as u32));
        Ok(if is_on { Collection::On } else { Collection::Off })
    }

    fn collect(&mut self, connection: &Connection, group: Group, to: Collection) -> Result<(), StatisticsError> {
        let mut state = self.0.lock().unwrap();
        if state.is_denied {
            return Err(StatisticsError::Denied);
        }
        let group = (connection.remote.port(), group as u32);
        if to == Collection::On {
            state.on.insert(group)
        } else {
            state.on.remove(&group)
        };
        Ok(())
    }

    fn counters(&self, connection: &Connection) -> Result<Counters, StatisticsError> {
        let state = self.0.lock().unwrap();
        if state.connections.contains(connection) { Ok(state.counters) } else { Err(StatisticsError::Gone) }
    }
}

fn looks(system: &mut Windows<Machine>) -> Vec<SocketId> {
    let mut ids = Vec::new();
    system.all(&mut |look| ids.push(look.id())).unwrap();
    ids
}

#[test]
fn statistics_are_on_while_it_is_watched_and_off_again_at_the_end() {
    let machine = Machine::with(&[connection(1), connection(2)]);
    // Of the second one somebody else keeps them.
    machine.change(|state| state.on.extend(Group::ALL.map(|group| (2, group as u32))));
    let mut system = Windows::new(machine.clone());
    assert_eq!(looks(&mut system).len(), 2);
    assert_eq!(machine.0.lock().unwrap().on.len(), 12);
    let remarks = system.remarks();
    assert!(remarks[0].starts_with("untested on Windows") && remarks[1].contains("of 1 connections"), "{remarks:?}");
    assert_eq!(system.missing(), Vec::<String>::new());
    drop(system);
    let left: BTreeSet<u16> = machine.0.lock().unwrap().on.iter().map(|(port, _)| *port).collect();
    assert_eq!(left, BTreeSet::from([2]), "what was on stays on");
}

#[test]
fn without_the_right_to_the_table_is_shown_and_what_is_missing_named() {
    let machine = Machine::with(&[connection(1)]);
    machine.change(|state| state.is_denied = true);
    let row = watched(&machine, 3, |_| {});
    assert_eq!((row.rate(), row.rtt_us, row.peer_window), (None, None, None));
    assert!(row.diagnosis.is_none() && row.owner.unwrap().process == "nginx.exe");
    let mut system = Windows::new(machine);
    looks(&mut system);
    let missing = system.missing();
    assert!(missing[0].contains("of 1 connections") && missing[0].contains("administrator"), "{missing:?}");
    assert_eq!(system.remarks().len(), 1, "nothing was switched on");
}

#[test]
fn a_system_without_statistics_is_asked_for_them_once() {
    let machine = Machine::with(&[connection(1), connection(2), connection(3)]);
    machine.change(|state| state.is_missing = true);
    let mut system = Windows::new(machine.clone());
    looks(&mut system);
    looks(&mut system);
    assert_eq!(machine.0.lock().unwrap().calls, 1);
    assert!(system.missing()[0].contains("GetPerTcpConnectionEStats is not in iphlpapi.dll"), "{:?}", system.missing());
}

#[test]
fn a_connection_keeps_its_number_and_another_one_with_its_ends_gets_its_own() {
    let machine = Machine::with(&[connection(1), connection(2)]);
    let mut system = Windows::new(machine.clone());
    let before = looks(&mut system);
    assert_eq!(looks(&mut system), before);
    machine.change(|state| state.connections.truncate(1));
    assert_eq!(system.these(&before, &mut |_| {}).unwrap(), [before[1].cookie]);
    looks(&mut system);
    machine.change(|state| state.connections.push(connection(2)));
    let after = looks(&mut system);
    assert!(after[0] == before[0] && after[1].cookie != before[1].cookie, "{before:?} {after:?}");
}

/// So many seconds; the first row.
fn watched(machine: &Machine, seconds: u64, change: impl Fn(&mut Counters)) -> crate::frame::Row {
    let mut system = Windows::new(machine.clone());
    source::watched(&mut system, seconds, || machine.change(|state| change(&mut state.counters)))
}

/// A ninth of a second of 64 KiB in each round trip of 40 ms; the peer's window held it all the time.
fn held(counters: &mut Counters) {
    counters.path.smoothed_rtt = 40;
    counters.path.rest[8] = 1_448;
    counters.data.thru_bytes_acked += 182_000;
    counters.data.data_segs_out += 126;
    counters.data.snd_una = counters.data.snd_una.wrapping_add(182_000);
    counters.data.snd_nxt = counters.data.snd_una.wrapping_add(65_536);
    counters.observed.cur_rwin_rcvd = 65_536;
    counters.observed.win_scale_rcvd = 7;
    counters.receive.win_scale_sent = 8;
    counters.congestion.cur_cwnd = 2_000_000;
    counters.congestion.snd_lim_time_rwin += 111;
    counters.send.cur_app_w_queue = 100_000;
}

#[test]
fn a_window_that_holds_the_sender_is_the_verdict() {
    let row = watched(&Machine::with(&[connection(1)]), 10, held);
    assert_eq!(row.limiter(), Some(Limiter::ReceiveWindow), "{:?}", row.diagnosis);
    assert_eq!(row.sent_bps, Some(Rate::from_bps(182_000 * 9 * 8)));
    assert_eq!((row.rtt_us, row.peer_window), (Some(Micros::from_millis(40)), Some(Bytes::new(65_536))));
    assert_eq!((row.waiting, row.uid), (Bytes::new(165_536), None));
    assert_eq!(row.owner.unwrap().fd, None);
}

#[test]
fn one_interval_is_enough_for_a_verdict() {
    let row = watched(&Machine::with(&[connection(1)]), 1, held);
    assert_eq!((row.peer_window, row.limiter()), (Some(Bytes::new(65_536)), Some(Limiter::ReceiveWindow)), "{row:?}");
}
