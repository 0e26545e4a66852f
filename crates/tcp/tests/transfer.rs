//! Transfers between two stacks over emulated paths: content, time, and every buffer back.

use fullpipe_pair::{Flow, Link, Net, config, open, transfer};
use fullpipe_tcp::{
    congestion::Algorithm,
    heap::HeapStorage,
    profile::{Budgets, EcnPolicy, Profile},
    socket::SocketOptions,
    stack::Stack,
};

/// A path, two profiles and a seed.
struct Case {
    name: &'static str,
    seed: u64,
    v6: bool,
    mtu: u16,
    links: [Link; 2],
    profiles: [Profile; 2],
    budgets: Budgets,
    sizes: [u64; 2],
    /// What the devices take at once.
    burst: u32,
}

impl Case {
    fn new(name: &'static str, seed: u64, link: Link) -> Self {
        Self {
            name,
            seed,
            v6: false,
            mtu: 1500,
            links: [link; 2],
            profiles: [Profile::DEFAULT; 2],
            budgets: Budgets::all(40),
            sizes: [1_000_000, 0],
            burst: 0,
        }
    }

    /// Runs the case and returns the seconds that the first direction took.
    fn run(self) -> f64 {
        eprintln!("case {} seed {}", self.name, self.seed);
        let host = |at: u8| {
            let mut config = config(at, self.v6, self.mtu, self.profiles[usize::from(at)]);
            (config.device.burst, config.device.checksum_offload) = (self.burst, self.burst > 0);
            Stack::new(HeapStorage::new(8, 256, 1548), config)
        };
        let mut net = Net::new(self.seed, self.links, [host(0), host(1)]);
        if std::env::var_os("TRACE").is_some() {
            net.trace = Some(fullpipe_pair::print);
        }
        let options = self.profiles.map(|profile| {
            let mut options = SocketOptions::from_profile(&profile);
            options.budgets = self.budgets;
            options
        });
        let ends = open(&mut net, self.v6, options);
        let start = net.now;
        let mut flows = [Flow::new(self.seed, self.sizes[0]), Flow::new(!self.seed, self.sizes[1])];
        transfer(&mut net, ends, &mut flows);
        flows[0].done_at.expect("transfer() ran to the end").since(start).as_secs_f64()
    }
}

fn lossy(delay_us: u64, per_million: u32) -> Link {
    Link { loss: per_million, ..Link::clean(delay_us) }
}

#[test]
fn a_clean_path_is_limited_by_the_window_alone() {
    // 40 buffers of 1448 bytes a round trip of 20 ms: 2.9 MB/s, after a slow start from ten segments.
    let seconds = Case::new("clean", 1, Link::clean(10_000)).run();
    assert!((0.34..0.45).contains(&seconds), "{seconds}");
}

#[test]
fn loss_of_one_in_a_hundred_is_repaired_both_ways() {
    for seed in 0..10 {
        let mut case = Case::new("loss", seed, lossy(10_000, 10_000));
        case.sizes = [400_000, 300_000];
        case.run();
    }
}

#[test]
fn every_kind_of_recovery_gets_through_heavy_loss() {
    for (sack, rack) in [(true, true), (true, false), (false, false)] {
        for congestion in [Algorithm::NewReno, Algorithm::Cubic] {
            for seed in 0..5 {
                let mut case = Case::new("heavy loss", seed, lossy(5_000, 100_000));
                let profile = Profile { sack, rack, congestion, timestamps: seed % 2 == 0, ..Profile::DEFAULT };
                case.profiles = [profile; 2];
                case.sizes = [150_000, 100_000];
                case.run();
            }
        }
    }
}

#[test]
fn reordering_duplication_and_jitter_leave_the_content_alone() {
    for seed in 0..10 {
        let link = Link { reorder: 20_000, duplicate: 10_000, loss: 5_000, jitter_us: 500, ..Link::clean(5_000) };
        let mut case = Case::new("disorder", seed, link);
        case.sizes = [400_000, 200_000];
        case.v6 = seed % 2 == 0;
        case.run();
    }
}

#[test]
fn five_buffers_carry_five_segments_a_round_trip() {
    let mut case = Case::new("netburner", 3, Link::clean(5_000));
    case.profiles = [Profile::NETBURNER, Profile::NETBURNER];
    case.budgets = Budgets::all(5);
    let seconds = case.run();
    // 7300 bytes in 10 ms: 730 kB/s.
    assert!((1.3..1.6).contains(&seconds), "{seconds}");
}

#[test]
fn a_slow_link_with_a_short_queue_is_filled() {
    for congestion in [Algorithm::NewReno, Algorithm::Cubic] {
        let link = Link { rate_bps: 10_000_000, queue: 30, ..Link::clean(10_000) };
        let mut case = Case::new("bottleneck", 5, link);
        case.profiles = [Profile { congestion, ..Profile::DEFAULT }; 2];
        case.budgets = Budgets::all(100);
        case.sizes = [4_000_000, 0];
        let seconds = case.run();
        // 10 Mbit/s carry 1448 of 1500 bytes: 3.31 s. Slow start overshoots twice what path and queue hold, so the first
        // reductions are to more than fits (RFC 5681, equation 4, by the flight).
        assert!((3.3..4.1).contains(&seconds), "{congestion:?} {seconds}");
    }
}

#[test]
fn ecn_marks_slow_the_sender_without_loss() {
    let link = Link { mark: 20_000, ..Link::clean(10_000) };
    let mut case = Case::new("ecn", 7, link);
    case.profiles = [Profile { ecn: EcnPolicy::Request, ..Profile::DEFAULT }; 2];
    case.budgets = Budgets::all(100);
    let marked = case.run();
    let clean = Case { budgets: Budgets::all(100), ..Case::new("no ecn", 7, Link::clean(10_000)) }.run();
    assert!(marked > clean * 1.2, "{marked} {clean}");
}

#[test]
fn a_device_that_splits_gets_large_segments_and_loses_nothing() {
    for seed in 0..6 {
        for (mtu, loss) in [(1500, 0), (1500, 20_000), (9_014, 10_000), (576, 10_000)] {
            let mut case = Case::new("large segments", seed, lossy(5_000, loss));
            (case.mtu, case.burst) = (mtu, 65_000);
            case.budgets = Budgets::all(100);
            case.sizes = [400_000, 100_000];
            case.run();
        }
    }
}

#[test]
fn every_mtu_works() {
    for (mtu, v6) in [(576, false), (1280, true), (1500, true), (4_000, false), (9_014, false), (9_014, true)] {
        let mut case = Case::new("mtu", u64::from(mtu), lossy(2_000, 5_000));
        (case.mtu, case.v6) = (mtu, v6);
        case.sizes = [300_000, 300_000];
        case.run();
    }
}

/// Mathis et al. (1997): one loss in `1/p` segments leaves `1.22 * MSS / (RTT * sqrt(p))`. Whatever finds the losses,
/// a long transfer must reach that, and without timeouts to speak of.
#[test]
fn loss_costs_what_the_square_root_law_says_and_few_timeouts() {
    const SIZE: u64 = 2_000_000;
    for (sack, rack) in [(true, true), (true, false), (false, false)] {
        for congestion in [Algorithm::NewReno, Algorithm::Cubic] {
            let profile = Profile { sack, rack, congestion, ..Profile::DEFAULT };
            let (mut seconds, mut timeouts, mut recoveries) = (0.0, 0, 0);
            for seed in 0..4 {
                let host = |at: u8| Stack::new(HeapStorage::new(4, 512, 1548), config(at, false, 1500, profile));
                let mut net = Net::new(seed, [lossy(5_000, 10_000), Link::clean(5_000)], [host(0), host(1)]);
                let mut options = SocketOptions::from_profile(&profile);
                options.budgets = Budgets::all(200);
                let ends = open(&mut net, false, [options; 2]);
                let start = net.now;
                let mut flow = Flow::new(seed, SIZE);
                while !flow.ended {
                    flow.pump_out(&mut net, 0, ends.0);
                    flow.pump_in(&mut net, 1, ends.1);
                    net.step(fullpipe_units::Instant::FAR_FUTURE);
                }
                seconds += flow.done_at.expect("it ended").since(start).as_secs_f64() / 4.0;
                let counts = *net.hosts[0].socket(ends.0).expect("not closed yet").counts();
                timeouts += counts.timeouts;
                recoveries += counts.recoveries;
            }
            let law = SIZE as f64 / (1.22 * 1448.0 / (0.010 * 0.1));
            eprintln!(
                "sack {sack} rack {rack} {congestion:?}: {seconds:.2} s, {recoveries} recoveries, {timeouts} timeouts"
            );
            assert!(seconds < law * 1.25, "sack {sack} rack {rack} {congestion:?}: {seconds} s instead of {law}");
            assert!(timeouts * 10 <= recoveries, "{timeouts} timeouts in {recoveries} recoveries");
        }
    }
}

/// RFC 4821 on a path that drops what is too large and says nothing: the size that fits is found, and what that took is no
/// congestion.
#[test]
fn larger_segments_are_found_without_a_loss_that_counts() {
    for (sack, rack, timestamps) in [(true, true, true), (true, false, false), (false, false, true)] {
        let profile =
            Profile { sack, rack, timestamps, mtu_probing: true, initial_mss: Some(1_000), ..Profile::DEFAULT };
        let host = |at: u8| Stack::new(HeapStorage::new(4, 256, 1548), config(at, false, 1500, profile));
        // A rate, so that what leaves at one moment does not arrive at one: RACK goes by the times.
        let narrow = Link { mtu: 1_300, rate_bps: 200_000_000, ..Link::clean(5_000) };
        let mut net = Net::new(1, [narrow, Link::clean(5_000)], [host(0), host(1)]);
        let mut options = SocketOptions::from_profile(&profile);
        options.budgets = Budgets::all(20);
        let ends = open(&mut net, false, [options; 2]);
        let mut flow = Flow::new(1, 40_000_000);
        while !flow.ended {
            flow.pump_out(&mut net, 0, ends.0);
            flow.pump_in(&mut net, 1, ends.1);
            net.step(fullpipe_units::Instant::FAR_FUTURE);
        }
        let info = net.hosts[0].info(ends.0).expect("not closed yet");
        let counts = *net.hosts[0].socket(ends.0).expect("not closed yet").counts();
        let fits = 1_300 - 40 - if timestamps { 12 } else { 0 };
        eprintln!("sack {sack} rack {rack}: {} of {fits} bytes, {} retransmitted", info.mss, counts.retransmits);
        assert!((fits - 8..=fits).contains(&info.mss), "{} bytes, {fits} fit", info.mss);
        assert_eq!((counts.timeouts, counts.recoveries), (0, 0), "sack {sack} rack {rack}");
    }
}
