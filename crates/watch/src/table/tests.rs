//! Made connections, second by second, through the bytes of the wire.

use std::collections::HashMap;

use fullpipe_diagnose::Detail;

use super::*;
use crate::wire::{self, Answer, state};

/// A connection of which every look can be made.
#[derive(Clone)]
struct Made {
    id: SocketId,
    state: u8,
    queues: [u32; 2],
    acked: u64,
    received: u64,
    in_flight: u64,
    not_sent: u32,
    window: u32,
    cwnd: u32,
    busy_us: u64,
    waited_us: u64,
    rtt_us: u32,
    retransmits: u32,
    memory: [u32; 9],
    options: u8,
}

impl Made {
    fn new(cookie: u64) -> Self {
        let (local, peer) = ("192.0.2.1:443".parse().unwrap(), SocketAddr::from(([198, 51, 100, 7], cookie as u16)));
        Self {
            id: SocketId { is_v6: false, local, peer, interface: 0, cookie },
            state: state::ESTABLISHED,
            queues: [0; 2],
            acked: 0,
            received: 0,
            in_flight: 0,
            not_sent: 0,
            window: 1 << 20,
            cwnd: 100,
            busy_us: 0,
            waited_us: 0,
            rtt_us: 40_000,
            retransmits: 0,
            memory: [0, 131_072, 0, 4_194_304, 0, 0, 0, 0, 0],
            // Timestamps, SACK and scaling.
            options: 7,
        }
    }

    fn raw(&self) -> Vec<u8> {
        let mut info = [0u8; 248];
        let mut put = |at: usize, bytes: &[u8]| info[at..at + bytes.len()].copy_from_slice(bytes);
        put(5, &[self.options, 0x77]);
        put(16, &1_448u32.to_ne_bytes());
        put(44, &60_000u32.to_ne_bytes());
        put(52, &60_000u32.to_ne_bytes());
        put(60, &1_500u32.to_ne_bytes());
        put(68, &self.rtt_us.to_ne_bytes());
        put(76, &0x7fff_ffffu32.to_ne_bytes());
        put(80, &self.cwnd.to_ne_bytes());
        put(100, &self.retransmits.to_ne_bytes());
        put(112, &u64::MAX.to_ne_bytes());
        put(120, &self.acked.to_ne_bytes());
        put(128, &self.received.to_ne_bytes());
        put(144, &self.not_sent.to_ne_bytes());
        put(148, &self.rtt_us.to_ne_bytes());
        put(168, &self.busy_us.to_ne_bytes());
        put(184, &self.waited_us.to_ne_bytes());
        put(200, &(self.acked + self.in_flight).to_ne_bytes());
        put(228, &self.window.to_ne_bytes());
        put(232, &65_536u32.to_ne_bytes());
        let memory: Vec<u8> = self.memory.iter().flat_map(|word| word.to_ne_bytes()).collect();
        wire::tests::laid_out(&self.id, self.state, self.queues, &[(2, &info), (7, &memory), (4, b"cubic\0")])
    }
}

/// Knows what a test says.
#[derive(Default)]
struct Known {
    owners: HashMap<u64, Owner>,
    fixed: Option<Fixed>,
}

impl Owners for Known {
    fn find(&mut self, _: &mut dyn Iterator<Item = u64>) {}

    fn owner(&self, handle: u64) -> Option<&Owner> {
        self.owners.get(&handle)
    }

    fn fixed(&mut self, _: u64) -> Option<Fixed> {
        self.fixed
    }
}

const SECOND: u64 = 1_000_000;

/// Looks at what `change` makes of the connections, for so many seconds, with nine looks in each.
fn watched(mut made: Vec<Made>, seconds: u64, owners: &mut Known, change: impl Fn(&mut Made)) -> Table {
    let limits = Limits {
        receive: Some([4_096, 131_072, 6_291_456]),
        send: Some([4_096, 16_384, 4_194_304]),
        scaling: Some(true),
    };
    let mut table = Table::new(Micros::new(10 * SECOND), limits);
    for look in 0..=9 * seconds {
        let at = Micros::new(look * SECOND / 9);
        let is_whole = look % 9 == 0;
        if is_whole {
            table.begin(at);
        }
        for one in &mut made {
            let raw = one.raw();
            for answer in wire::answers(&raw, 7) {
                match answer {
                    Answer::Socket(reading) if is_whole => table.take(&reading, at),
                    Answer::Socket(reading) => table.take_quick(&reading, at),
                    _ => panic!("{answer:?}"),
                }
            }
            change(one);
        }
        if is_whole {
            table.end();
            table.judge(owners);
        }
    }
    table
}

fn first(table: &Table, owners: &mut Known) -> Row {
    table.rows(owners, &Filter::default(), Sort::Worst, 10).0.remove(0)
}

/// Moves `bytes` in each look, with all of `in_flight` on the way.
fn moves(one: &mut Made, bytes: u64, in_flight: u64) {
    one.acked += bytes;
    one.in_flight = in_flight;
    one.busy_us += SECOND / 9;
}

#[test]
fn a_used_up_window_is_the_judges_receive_window() {
    let mut one = Made::new(1);
    one.queues[1] = 300_000;
    one.window = 65_535;
    one.not_sent = 200_000;
    let mut owners = Known::default();
    // 65,535 B in each 40 ms.
    let table = watched(vec![one], 3, &mut owners, |one| moves(one, 182_000, 65_000));
    let row = first(&table, &mut owners);
    assert_eq!(row.limiter(), Some(Limiter::ReceiveWindow), "{row:?}");
    assert_eq!(row.now, Some(Limiter::ReceiveWindow));
    let time = row.seconds[&Limiter::ReceiveWindow];
    assert!((2.0..=3.0).contains(&time), "{time} s of three");
    assert_eq!(row.sent_bps.unwrap().bps(), 182_000 * 9 * 8);
}

#[test]
fn the_peer_that_left_scaling_out_is_named() {
    let mut one = Made::new(1);
    (one.options, one.window, one.not_sent, one.queues[1]) = (3, 65_535, 200_000, 300_000);
    let mut owners = Known::default();
    let table = watched(vec![one], 3, &mut owners, |one| moves(one, 182_000, 65_000));
    let row = first(&table, &mut owners);
    assert_eq!(row.diagnosis.as_ref().unwrap().detail, Some(Detail::ScalingAbsent), "{row:?}");
    let note = row.notes.iter().find(|note| note.subject == crate::Subject::NoScaling).unwrap();
    assert!(
        note.is_trouble && note.text.contains("the peer left it out") && note.fix.contains("at the peer"),
        "{note:?}"
    );
}

#[test]
fn a_send_buffer_that_was_set_is_named_and_how_sure_that_is() {
    let mut one = Made::new(1);
    one.queues[1] = 60_000;
    one.memory = [0, 131_072, 0, 131_072, 0, 120_000, 0, 0, 0];
    let go = |owners: &mut Known| {
        let table = watched(vec![one.clone()], 3, owners, |one| {
            moves(one, 166_000, 60_000);
            one.waited_us += SECOND / 27;
        });
        first(&table, owners)
    };
    let row = go(&mut Known { fixed: Some(Fixed { send: true, receive: false }), ..Known::default() });
    let diagnosis = row.diagnosis.as_ref().unwrap();
    assert_eq!((diagnosis.limiter, diagnosis.detail), (Limiter::SendBuffer, Some(Detail::PinnedByApplication)));
    let note = row.notes.iter().find(|note| note.subject == crate::Subject::SendBufferSet).unwrap();
    assert!(note.is_sure && note.is_trouble && note.text.contains("SO_SNDBUF"), "{note:?}");
    let row = go(&mut Known::default());
    let note = row.notes.iter().find(|note| note.subject == crate::Subject::SendBufferSet).unwrap();
    assert!(!note.is_sure && note.text.contains("likely"), "{note:?}");
}

#[test]
fn a_ceiling_of_the_applications_own_is_named_to_the_byte() {
    let one = Made { cwnd: 1_000, ..Made::new(1) };
    let mut owners = Known::default();
    let table = watched(vec![one], 4, &mut owners, |one| moves(one, 200_000, 72_400));
    let row = first(&table, &mut owners);
    assert_eq!(row.limiter(), Some(Limiter::Application), "{row:?}");
    let note = row.notes.iter().find(|note| note.subject == crate::Subject::OwnWindow).unwrap();
    assert!(note.text.contains("72,400 B") && note.fix.starts_with("nothing to set"), "{note:?}");
}

/// What one of two gets through, from loss to loss, the other doesn't.
#[test]
fn connections_to_one_address_are_judged_together() {
    let shares = |one: &mut Made| {
        let look = one.busy_us / (SECOND / 9);
        let has_more = (look / 3 + one.id.cookie).is_multiple_of(2);
        one.retransmits += if look % 3 == 2 { 3 } else { 0 };
        moves(one, if has_more { 28_000 } else { 12_000 }, 20_000);
    };
    let made = |cookie| Made { rtt_us: 115_000, not_sent: 200_000, cwnd: 14, ..Made::new(cookie) };
    let mut owners = Known::default();
    let row = first(&watched(vec![made(1), made(2)], 14, &mut owners, shares), &mut owners);
    let diagnosis = row.diagnosis.unwrap();
    let verdict = (diagnosis.limiter, diagnosis.detail, row.now);
    assert_eq!(verdict, (Limiter::Path, Some(Detail::Policed), Some(Limiter::Path)), "{:#?}", diagnosis.evidence);
    // 40,000 B at each of nine looks in a second.
    let text = &diagnosis.evidence[0].text;
    assert!(text.starts_with("2 connections to 198.51.100.7 carried 2.88 Mbit/s together"), "{text}");
}

#[test]
fn an_idle_connection_and_a_short_exchange_are_blamed_for_nothing() {
    let mut owners = Known::default();
    let table = watched(vec![Made::new(1)], 3, &mut owners, |_| {});
    let row = first(&table, &mut owners);
    assert_eq!((row.diagnosis.is_none(), row.notes.len(), row.seconds.len()), (true, 0, 0));
    let table = watched(vec![Made::new(1)], 3, &mut owners, |one| one.acked += 100);
    let row = first(&table, &mut owners);
    assert_eq!((row.limiter(), row.notes.len(), row.seconds.len()), (None, 0, 0), "{row:?}");
}

#[test]
fn a_closed_window_and_a_full_listener_are_named() {
    let mut one = Made::new(1);
    (one.window, one.not_sent, one.queues[1]) = (0, 50_000, 50_000);
    let mut listener = Made::new(2);
    (listener.state, listener.queues) = (state::LISTEN, [129, 128]);
    let mut owners = Known::default();
    let table = watched(vec![one, listener], 3, &mut owners, |_| {});
    let row = first(&table, &mut owners);
    assert_eq!(row.limiter(), Some(Limiter::ReceiveWindow), "{row:?}");
    assert!(row.notes.iter().any(|note| note.subject == crate::Subject::ZeroWindow), "{row:?}");
    assert_eq!((table.full.len(), table.full[0].waiting, table.len()), (1, 129, 1));
}

#[test]
fn what_is_gone_is_forgotten_and_many_connections_have_a_story_of_the_busiest_only() {
    let mut table = Table::new(Micros::new(10 * SECOND), Limits::default());
    let look = |table: &mut Table, second: u64, count: u64| {
        table.begin(Micros::new(second * SECOND));
        for cookie in 1..=count {
            // The later ones move more.
            let raw = Made { acked: second * cookie * 1_000, ..Made::new(cookie) }.raw();
            for answer in wire::answers(&raw, 7) {
                let Answer::Socket(reading) = answer else { panic!("{answer:?}") };
                table.take(&reading, Micros::new(second * SECOND));
            }
        }
        table.end()
    };
    assert!(look(&mut table, 0, 2_000).is_empty(), "nothing has moved yet");
    let quick = look(&mut table, 1, 2_000);
    assert_eq!((quick.len(), table.active, table.len()), (MOST_QUICK, 2_000, 2_000));
    assert!(quick.iter().all(|id| id.cookie > 1_900), "the busiest are looked at oftener");
    assert_eq!(table.entries.values().filter(|entry| entry.story.is_some()).count(), MOST_STORIES);
    // Others become the busiest: theirs is the room.
    table.entries.get_mut(&1).unwrap().moved = Some([0; 2]);
    look(&mut table, 5, 2_000);
    assert_eq!(table.entries.values().filter(|entry| entry.story.is_some()).count(), MOST_STORIES);
    look(&mut table, 6, 3);
    assert_eq!(table.len(), 3);
    let (rows, matching) = table.rows(&mut Known::default(), &"dport 2".parse().unwrap(), Sort::Rate, 10);
    assert_eq!((rows.len(), matching), (1, 1));
    assert!(rows[0].is_older);
}

#[test]
fn what_a_connection_moved_before_it_was_seen_first_counts_unless_it_was_there_before_all() {
    let mut table = Table::new(Micros::new(10 * SECOND), Limits::default());
    let look = |table: &mut Table, second: u64, made: &[(u64, u64)]| {
        table.begin(Micros::new(second * SECOND));
        for &(cookie, acked) in made {
            let raw = Made { acked, ..Made::new(cookie) }.raw();
            let Some(Answer::Socket(reading)) = wire::answers(&raw, 7).next() else { panic!("no socket") };
            table.take(&reading, Micros::new(second * SECOND));
        }
        table.end();
        let slices: u64 = table.slices(&Known::default()).map(|slice| slice.moved[0]).sum();
        let (rows, _) = table.rows(&mut Known::default(), &Filter::default(), Sort::Rate, 10);
        (slices, rows.iter().map(|row| row.sent_bps.unwrap().bps()).sum::<u64>())
    };
    assert_eq!(look(&mut table, 0, &[(1, 7_000)]), (0, 0));
    assert_eq!(look(&mut table, 2, &[(1, 7_000), (2, 5_000)]), (5_000, 20_000));
    assert_eq!(look(&mut table, 3, &[(1, 7_500), (2, 5_000)]), (500, 4_000));
}

#[test]
fn of_very_many_the_quiet_ones_are_left_out_in_between() {
    let mut table = Table::new(Micros::new(10 * SECOND), Limits::default());
    let many = MANY as u64 + 1;
    let take = |table: &mut Table, cookie: u64, acked: u64, second: u64| {
        let raw = Made { acked, ..Made::new(cookie) }.raw();
        let Some(Answer::Socket(reading)) = wire::answers(&raw, 7).next() else { panic!("no socket") };
        table.take(&reading, Micros::new(second * SECOND));
    };
    let whole = |table: &mut Table, second: u64, busy: u64| {
        table.begin(Micros::new(second * SECOND));
        (1..=many).for_each(|cookie| take(table, cookie, if cookie <= busy { second * 1_000 } else { 0 }, second));
        table.end();
    };
    whole(&mut table, 0, 3);
    assert!(table.is_large());
    whole(&mut table, 1, 3);
    let lively: Vec<u64> = table.begin_lively(Micros::new(2 * SECOND)).iter().map(|id| id.cookie).collect();
    assert_eq!(lively.iter().collect::<std::collections::BTreeSet<_>>().len(), 3, "{lively:?}");
    take(&mut table, 1, 5_000, 2);
    take(&mut table, 2, 1_000, 2);
    table.forget(3);
    table.end_lively();
    assert_eq!((table.len(), table.active), (MANY, 1), "quiet ones are still there, and one is gone");
    let rates = |table: &Table, port: u16| {
        let filter = format!("dport {port}").parse().unwrap();
        table.rows(&mut Known::default(), &filter, Sort::Rate, 10).0[0].sent_bps.unwrap().bps()
    };
    assert_eq!((rates(&table, 1), rates(&table, 2), rates(&table, 9)), (32_000, 0, 0));
    // One that was left out has its rate over all of the time since it was looked at.
    whole(&mut table, 5, 9);
    assert_eq!(rates(&table, 9), 5_000 * 8 / 4);
    let (rows, matching) = table.rows(&mut Known::default(), &Filter::default(), Sort::Rate, 5);
    assert_eq!((rows.len(), matching), (5, many as usize));
    assert!(rows.iter().all(|row| row.peer.port() <= 9), "{rows:?}");
    // With most of them at work there is nothing to leave out.
    whole(&mut table, 6, many);
    assert!(!table.is_large());
}

#[test]
fn both_ends_on_one_host_are_judged_together() {
    let sender = Made { window: 20_000, not_sent: 100_000, queues: [0, 120_000], ..Made::new(1) };
    let id = SocketId { local: sender.id.peer, peer: sender.id.local, cookie: 2, ..sender.id };
    // Its application leaves more unread than it still offers.
    let receiver = Made { id, queues: [50_000, 0], ..Made::new(2) };
    let mut owners = Known::default();
    let table = watched(vec![sender, receiver], 3, &mut owners, |one| {
        if one.id.cookie == 1 {
            moves(one, 40_000, 19_000);
        } else {
            one.received += 40_000;
        }
    });
    let (rows, _) = table.rows(&mut owners, &Filter::default(), Sort::Worst, 10);
    let sender = rows.iter().find(|row| row.local.port() == 443).unwrap();
    let diagnosis = sender.diagnosis.as_ref().unwrap();
    assert_eq!(
        (diagnosis.limiter, diagnosis.detail),
        (Limiter::ReceiveWindow, Some(Detail::SlowReader)),
        "{diagnosis:?}"
    );
    assert!(!diagnosis.blind.iter().any(|text| text.contains("receiver was not seen")), "{diagnosis:?}");
}
