//! Any history of calls, segments, losses and forgeries: nothing panics, nothing loops, no buffer is lost, and what
//! is read is what was written.

mod history;

use fullpipe_tcp::{
    fast_open::FastOpenPolicy,
    profile::{Budgets, Keepalive, Profile},
};
use history::{Change, History, Place, Step};
use proptest::prelude::*;

fn place() -> impl Strategy<Value = Place> {
    any::<prop::sample::Index>().prop_map(|index| Place(index.index(1 << 32) as u32))
}

fn change() -> impl Strategy<Value = Change> {
    let near = prop_oneof![-3_i32..4, -3_000_i32..3_000, any::<i32>()];
    prop_oneof![
        any::<u8>().prop_map(Change::Flags),
        near.clone().prop_map(Change::Seq),
        near.prop_map(Change::Ack),
        any::<u16>().prop_map(Change::Window),
        (place(), any::<u8>()).prop_map(|(at, value)| Change::Byte(at, value)),
        place().prop_map(Change::Cut),
        (place(), any::<u8>()).prop_map(|(at, value)| Change::Damage(at, value)),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let socket = 0_usize..6;
    let rate = || prop_oneof![3 => Just(0_u32), 1 => 0_u32..300_000];
    prop_oneof![
        2 => prop::option::of(5_000_u16..5_003).prop_map(|port| Step::Connect { port }),
        3 => Just(Step::Accept),
        8 => (socket.clone(), 0_usize..20_000).prop_map(|(socket, len)| Step::Write { socket, len }),
        8 => (socket.clone(), 0_usize..20_000).prop_map(|(socket, len)| Step::Read { socket, len }),
        1 => socket.clone().prop_map(|socket| Step::Shutdown { socket }),
        1 => socket.clone().prop_map(|socket| Step::Close { socket }),
        1 => socket.clone().prop_map(|socket| Step::Abort { socket }),
        1 => (socket.clone(), 1_u16..12, any::<bool>(), any::<bool>())
            .prop_map(|(socket, budget, no_nagle, no_push)| Step::Options { socket, budget, no_nagle, no_push }),
        1 => (socket, limit(), limit(), any::<bool>()).prop_map(|(socket, user_timeout_ms, reap_after_ms, keepalive)| {
            Step::Limits { socket, user_timeout_ms, reap_after_ms, keepalive }
        }),
        1 => Just(Step::Listener),
        1 => (0_usize..2, 1_u8..20).prop_map(|(host, count)| Step::Echoes { host, count }),
        12 => prop_oneof![8 => 0_u64..30_000, 8 => 0_u64..3_000_000, 1 => 0_u64..300_000_000].prop_map(|us| Step::Run { us }),
        2 => (rate(), rate(), rate(), prop_oneof![3 => Just(65_535_usize), 1 => 600_usize..1500])
            .prop_map(|(loss, reorder, duplicate, mtu)| Step::Path { loss, reorder, duplicate, mtu }),
        1 => Just(Step::Cut),
        6 => (0_usize..2, 0_usize..32, change()).prop_map(|(host, pick, change)| Step::Forge { host, pick, change }),
        2 => icmp(),
    ]
}

fn limit() -> impl Strategy<Value = Option<u32>> {
    prop::option::of(prop_oneof![1_u32..5_000, 1_u32..500_000])
}

/// Errors of either version: unreachable for all its reasons, too big, time exceeded.
fn icmp() -> impl Strategy<Value = Step> {
    let kind =
        prop::sample::select(vec![(3_u8, 4_u8), (3, 1), (3, 2), (3, 3), (3, 13), (11, 0), (2, 0), (1, 0), (1, 4)]);
    let by = prop_oneof![2 => Just(0), 1 => -3_000_i32..3_000];
    (0_usize..2, 0_usize..32, kind, prop_oneof![0_u16..100, 500_u16..1_600], by)
        .prop_map(|(host, pick, (kind, code), mtu, by)| Step::Icmp { host, pick, kind, code, mtu, by })
}

fn profile() -> impl Strategy<Value = Profile> {
    let base = prop::sample::select(vec![Profile::DEFAULT, Profile::NETBURNER, Profile::FREEBSD, Profile::LINUX]);
    (base, any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
        |(base, sack, rack, timestamps, keep, fast)| {
            let keepalive = keep.then_some(Keepalive { idle_s: 1, interval_s: 1, probes: 3 });
            let budgets = Budgets::all(5);
            let (mtu_probing, initial_mss) = (keep, keep.then_some(1_000));
            Profile {
                sack: base.sack && sack,
                rack,
                timestamps: base.timestamps && timestamps,
                keepalive,
                budgets,
                mtu_probing,
                initial_mss,
                fast_open: if fast { FastOpenPolicy::ON } else { base.fast_open },
                ..base
            }
        },
    )
}

/// More connections than the table holds: the data of a SYN that finds no entry holds no buffer.
#[test]
fn a_syn_without_an_entry_takes_no_buffer() {
    let profile = Profile { budgets: Budgets::all(5), fast_open: FastOpenPolicy::ON, ..Profile::DEFAULT };
    let mut history = History::new(0, [profile, profile]);
    for _ in 0..6 {
        history.apply(&Step::Connect { port: None });
        history.apply(&Step::Run { us: 15_000 });
        history.apply(&Step::Accept);
        history.check();
    }
    history.finish();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), max_shrink_iters: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn any_history_gives_every_buffer_back(
        v6: bool,
        seed: u64,
        profiles in [profile(), profile()],
        steps in prop::collection::vec(step(), 1..80),
    ) {
        let mut history = History::over(v6, seed, profiles);
        history.apply(&Step::Connect { port: None });
        for step in &steps {
            history.apply(step);
            history.check();
        }
        history.finish();
    }
}

/// More where there is time: `HISTORIES=20000 cargo test -p fullpipe-tcp --release --test histories`.
fn cases() -> u32 {
    std::env::var("HISTORIES").ok().and_then(|number| number.parse().ok()).unwrap_or(150)
}
