//! The rules over counters made by hand, and the flow over a machine that stands in for Windows.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

/// A connection of 80 ms that was watched for five seconds.
fn seen(change: impl Fn(&mut Counters, &mut Counters)) -> Seen {
    let mut first = Counters::default();
    first.path.smoothed_rtt = 80;
    first.receive.max_rwin_sent = 64_512;
    first.receive.win_scale_sent = 8;
    first.observed.win_scale_rcvd = 7;
    first.observed.cur_rwin_rcvd = 3_000_000;
    first.congestion.cur_cwnd = 2_000_000;
    let mut last = first;
    change(&mut first, &mut last);
    Seen { first: Some(first), last, elapsed: Duration::from_secs(5) }
}

#[test]
fn a_scale_below_the_level_tells_of_a_buffer_that_was_set() {
    let small = seen(|_, last| last.receive.win_scale_sent = 0);
    let end = small.judge(Some("Normal")).receive;
    assert_eq!((end.pinned, end.largest), (Some(true), 64_512));
    assert!(end.why.contains("window scale 0 where the level gives 8") && end.why.contains("SO_RCVBUF"), "{}", end.why);
    for (level, words) in [(Some("disabled"), "`disabled`"), (None, "not known"), (Some("odd"), "not known")] {
        let end = small.judge(level).receive;
        assert!(end.pinned.is_none() && end.why.contains(words), "{level:?}: {}", end.why);
    }
    let at_the_level = seen(|_, last| last.receive.win_scale_sent = 2);
    assert_eq!(at_the_level.judge(Some("highlyrestricted")).receive.pinned, None);
    let unscaled = seen(|_, last| last.observed.win_scale_rcvd = 255);
    let end = unscaled.judge(Some("normal")).receive;
    assert!(end.pinned.is_none() && end.why.contains("no window scaling"), "{}", end.why);
}

#[test]
fn a_window_that_is_used_up_and_does_not_grow_was_set() {
    // 64,512 B in 80 ms are 806,400 B/s: 4,032,000 B in the five seconds.
    let full = |bytes| seen(move |_, last| last.data.thru_bytes_received = bytes);
    let end = full(4_032_000).judge(Some("normal")).receive;
    assert!(end.pinned == Some(true) && end.why.contains("64512 B came in each round trip"), "{}", end.why);
    let fresh = seen(|first, last| {
        first.receive.max_rwin_sent = 0;
        last.data.thru_bytes_received = 4_032_000;
    });
    assert_eq!(fresh.judge(Some("normal")).receive.pinned, Some(true), "counted only since it is watched");
    let some = seen(|_, last| last.receive.max_rwin_sent = 70_000);
    assert!(some.judge(Some("normal")).receive.why.contains("grew a little"));
    let idle = full(1_000_000).judge(Some("normal")).receive;
    assert!(idle.pinned.is_none() && idle.why.contains("was not what held it"), "{}", idle.why);
    let slow = seen(|_, last| {
        last.data.thru_bytes_received = 4_032_000;
        last.receive.cur_app_r_queue = 60_000;
    });
    assert!(slow.judge(Some("normal")).receive.why.contains("reads slowly"));
    let mut short = full(4_032_000);
    short.elapsed = Duration::from_millis(500);
    assert!(short.judge(Some("normal")).receive.why.contains("watch at least ten"));
}

#[test]
fn a_window_that_grows_is_tuned() {
    let grown = seen(|_, last| last.receive.max_rwin_sent = 1_000_000);
    assert_eq!(grown.judge(None).receive.pinned, Some(false));
    let opened = seen(|first, last| {
        first.receive.cur_app_r_queue = 60_000;
        last.receive.max_rwin_sent = 1_000_000;
    });
    assert_eq!(opened.judge(None).receive.pinned, None, "its application read again");
}

#[test]
fn what_is_in_flight_and_waits_for_its_own_host_was_set() {
    let sender = |held, waited: [u32; 3]| {
        seen(move |first, last| {
            (first.send.max_retx_queue, last.send.max_retx_queue) = (held, held);
            last.data.thru_bytes_acked = 4_032_000;
            [last.congestion.snd_lim_time_snd, last.congestion.snd_lim_time_rwin, last.congestion.snd_lim_time_cwnd] =
                waited;
        })
        .judge(Some("normal"))
        .send
    };
    let end = sender(65_536, [4_900, 50, 50]);
    assert!(end.pinned == Some(true) && end.why.contains("SO_SNDBUF") && end.why.contains("98 %"), "{}", end.why);
    assert_eq!(sender(65_536, [500, 4_500, 0]).pinned, None, "the other end's window");
    assert_eq!(sender(1_500_000, [4_900, 50, 50]).pinned, None, "never full");
    assert_eq!(sender(65_536, [0, 0, 0]).pinned, None, "nothing was counted");
}

#[test]
fn without_watching_only_the_scale_tells() {
    let once = |scale| {
        let mut seen = seen(|_, last| last.receive.win_scale_sent = scale);
        (seen.first, seen.elapsed) = (None, Duration::ZERO);
        seen.judge(Some("normal"))
    };
    assert_eq!(once(1).receive.pinned, Some(true));
    assert!(once(8).receive.why.contains("--watch") && once(8).send.why.contains("--watch"));
}

/// Windows with two connections: of the first some groups are on already, and the second ends meanwhile.
#[derive(Default)]
struct Machine {
    on: BTreeSet<(u32, u32)>,
    denied: bool,
    ended: bool,
}

impl Statistics for Machine {
    fn connections(&self) -> Result<Vec<Connection>, StatisticsError> {
        let end = |port| SocketAddr::from(([127, 0, 0, 1], port));
        Ok([1, 2].map(|pid| Connection { local: end(5201), remote: end(50_000), pid }).to_vec())
    }

    fn program(&self, pid: u32) -> Option<String> {
        (pid == 1).then(|| "iperf3.exe".to_owned())
    }

    fn collection(&self, connection: &Connection, group: Group) -> Result<Collection, StatisticsError> {
        let on = self.on.contains(&(connection.pid, group as u32));
        Ok(if on { Collection::On } else { Collection::Off })
    }

    fn collect(&mut self, connection: &Connection, group: Group, to: Collection) -> Result<(), StatisticsError> {
        let key = (connection.pid, group as u32);
        match to {
            Collection::On if self.denied => return Err(StatisticsError::Denied),
            Collection::On => drop(self.on.insert(key)),
            Collection::Off => drop(self.on.remove(&key)),
        }
        Ok(())
    }

    fn counters(&self, connection: &Connection) -> Result<Counters, StatisticsError> {
        let gone = connection.pid == 2 && self.ended;
        if gone { Err(StatisticsError::Gone) } else { Ok(seen(|_, last| last.receive.win_scale_sent = 0).last) }
    }
}

#[test]
fn statistics_are_off_again_afterwards_and_what_was_on_stays_on() {
    let start = BTreeSet::from([(1, Group::Rec as u32)]);
    let mut machine = Machine { on: start.clone(), ended: true, ..Machine::default() };
    let cancel = AtomicBool::new(false);
    let watch = Watch { time: Duration::from_millis(1), cancel: &cancel };
    let observed = observe(&mut machine, Some("normal"), Some(watch)).expect("observed");
    assert_eq!(machine.on, start);
    assert_eq!(observed[0].program.as_deref(), Some("iperf3.exe"));
    let verdict = observed[0].verdict.as_ref().expect("judged");
    assert_eq!(verdict.receive.pinned, Some(true));
    assert!(matches!(observed[1].verdict, Err(StatisticsError::Gone)));
}

#[test]
fn an_interrupted_watch_ends_and_switches_off_again() {
    let mut machine = Machine::default();
    let watch = Watch { time: Duration::from_secs(3_600), cancel: &AtomicBool::new(true) };
    let observed = observe(&mut machine, Some("normal"), Some(watch)).expect("observed at once");
    assert!(observed.iter().all(|one| one.verdict.is_ok()), "{observed:?}");
    assert!(machine.on.is_empty());
}

#[test]
fn nothing_is_switched_on_without_being_asked_to_watch() {
    let mut machine = Machine::default();
    let observed = observe(&mut machine, None, None).expect("observed");
    assert!(observed.iter().all(|one| matches!(one.verdict, Err(StatisticsError::Off))), "{observed:?}");
    assert!(machine.on.is_empty());
    machine.denied = true;
    let watch = Watch { time: Duration::from_secs(3_600), cancel: &AtomicBool::new(false) };
    let observed = observe(&mut machine, None, Some(watch)).expect("observed at once");
    assert!(observed.iter().all(|one| matches!(one.verdict, Err(StatisticsError::Denied))), "{observed:?}");
}

proptest! {
    #[test]
    fn any_counters_are_judged(
        numbers in proptest::collection::vec(any::<u32>(), 12), scales in any::<(u8, u8)>(), wide in any::<(u64, usize)>(),
        elapsed in any::<u32>(), level in proptest::option::of("normal|disabled|experimental|x"),
    ) {
        let seen = seen(|first, last| {
            first.receive.max_rwin_sent = numbers[0];
            last.receive.max_rwin_sent = numbers[1];
            (last.receive.win_scale_sent, last.observed.win_scale_rcvd) = scales;
            (last.path.smoothed_rtt, last.path.sample_rtt) = (numbers[2], numbers[3]);
            last.data.thru_bytes_received = wide.0;
            last.data.thru_bytes_acked = wide.0;
            last.send.max_retx_queue = wide.1;
            last.receive.cur_app_r_queue = wide.1;
            last.congestion.snd_lim_time_snd = numbers[4];
            first.congestion.snd_lim_time_cwnd = numbers[5];
        });
        let verdict = Seen { elapsed: Duration::from_micros(elapsed.into()), ..seen }.judge(level.as_deref());
        prop_assert!(!verdict.receive.why.is_empty() && !verdict.send.why.is_empty());
    }
}

#[test]
fn what_a_connection_of_ones_own_tells_is_in_the_shape_of_other_kernels() {
    let mut counters = Counters::default();
    counters.data.snd_una = u32::MAX - 999;
    counters.data.snd_nxt = 64_000;
    counters.data.thru_bytes_acked = 9_000_000;
    counters.data.data_bytes_out = 9_002_921;
    (counters.path.smoothed_rtt, counters.path.rest[2], counters.path.rest[8]) = (80, 79, 1460);
    (counters.path.losses[1], counters.path.losses[5], counters.path.losses[6]) = (1, 3, 2_921);
    counters.receive.win_scale_sent = 8;
    counters.observed.win_scale_rcvd = 255;
    counters.observed.cur_rwin_rcvd = 64_512;
    counters.congestion.cur_cwnd = 70_080;
    counters.congestion.cur_ssthresh = u32::MAX;
    counters.congestion.snd_lim_time_rwin = 4_321;
    let info = counters.info();
    let millis = |ms| Some(fullpipe_units::Micros::from_millis(ms));
    let bytes = |bytes| Some(fullpipe_units::Bytes::new(bytes));
    assert_eq!((info.rtt, info.min_rtt, info.mss), (millis(80), millis(79), Some(1460)));
    assert_eq!((info.scaling, info.own_shift, info.peer_shift), (Some(false), Some(8), None));
    // Sequence numbers go round.
    assert_eq!((info.in_flight, info.cwnd, info.ssthresh), (bytes(65_000), bytes(70_080), None));
    assert_eq!((info.send_window, info.bytes_acked), (bytes(64_512), Some(9_000_000)));
    assert_eq!((info.timeouts, info.retransmits, info.bytes_retransmitted), (Some(1), Some(3), Some(2_921)));
    assert_eq!(info.rwnd_limited, millis(4_321));
    let nothing = Counters { path: PathRod { rest: [u32::MAX; 12], ..PathRod::default() }, ..Counters::default() };
    assert_eq!((nothing.info().rtt, nothing.info().min_rtt), (None, None));
}

#[test]
fn ones_own_statistics_are_switched_on_once_and_need_an_administrator() {
    let ends = [SocketAddr::from(([127, 0, 0, 1], 50_000)), SocketAddr::from(([127, 0, 0, 1], 5201))];
    let mut machine = Machine::default();
    assert_eq!(info(&mut machine, ends[0], ends[1]).expect("reported").own_shift, Some(0));
    assert_eq!(machine.on.len(), Group::ALL.len());
    machine.denied = true;
    assert!(info(&mut machine, ends[0], ends[1]).is_ok(), "they are on already");
    let denied = info(&mut Machine { denied: true, ..Machine::default() }, ends[0], ends[1]);
    assert!(matches!(denied, Err(StatisticsError::Denied)), "{denied:?}");
}
