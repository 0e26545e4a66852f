//! The lab as a whole.

use std::{
    sync::{Arc, Mutex, PoisonError, atomic::Ordering::Relaxed},
    time::Duration,
};

use fullpipe_path::{Direction, HopStats, PathSpec, Random, Scenario, Side};
use fullpipe_units::{Micros, Rate};
use tracing::debug;

use crate::{
    CouldNotKeepUp, LabError, LabHost, PathError,
    driver::{Driver, Priority},
    lane::{LaneShared, LaneSpec},
    stats::{Counts, LATE_US},
    steer::Split,
    tun::Tun,
};

/// How the lab itself works. The default is what measuring wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LabOptions {
    /// Let the kernels hand over super-packets. Without, each segment crosses the device alone.
    pub offload: bool,
    /// Run the path before all normal threads, where that is allowed.
    pub realtime: bool,
    /// Keep the processors from sleeping while packets are under way. Costs power, and no other thread any time.
    pub keep_awake: bool,
    /// As root, leave what a path of 300 Mbit/s or more hands over to other processors than that of its thread, which keeps to one
    /// then where it is real-time.
    pub steer: bool,
}

impl Default for LabOptions {
    fn default() -> Self {
        Self { offload: true, realtime: true, keep_awake: true, steer: true }
    }
}

/// Two hosts and the path between them. Dropping this stops the path and removes the hosts.
#[derive(Debug)]
pub struct Lab {
    // Stopped before the hosts go.
    driver: Driver,
    hosts: [LabHost; 2],
    lanes: [Arc<LaneShared>; 2],
    bare: Option<Tun>,
    rtt: Micros,
    since: Mutex<Baseline>,
}

/// What had been counted at the last reset.
#[derive(Clone, Debug)]
struct Baseline {
    errors: Counts,
    losses: Losses,
}

#[derive(Clone, Copy, Debug, Default)]
struct Losses {
    device: u64,
    refused: u64,
    out_of_memory: u64,
    malformed: u64,
}

impl Lab {
    /// Makes both hosts of a scenario, with its settings in force, and its path.
    ///
    /// # Errors
    /// What is needed where a right is missing, else what the kernel refused. Nothing stays behind.
    pub fn start(scenario: &Scenario) -> Result<Self, LabError> {
        let lab = Self::join(&scenario.path, scenario.seed, LabOptions::default())?;
        for side in Side::ALL {
            lab.host(side).apply(&scenario.host(side).settings)?;
            lab.host(side).put_first();
        }
        Ok(lab)
    }

    /// Makes two hosts with no settings of their own and `path` between them, whose random draws start from `seed`.
    ///
    /// # Errors
    /// As for [`start`](Self::start).
    pub fn join(path: &PathSpec, seed: u64, options: LabOptions) -> Result<Self, LabError> {
        Self::assemble(path, seed, options, None)
    }

    /// As [`join`](Self::join), but the path ends at `bare` without a kernel: what stands there reads and writes its
    /// packets, with an offload header before each, at the descriptor that comes with the lab. That side's host has no part in
    /// the path. Whether super-packets arrive is up to the kernel at the other end (`options.offload`).
    ///
    /// # Errors
    /// As for [`start`](Self::start).
    pub fn join_bare(path: &PathSpec, seed: u64, options: LabOptions, bare: Side) -> Result<(Self, Tun), LabError> {
        let [near, far] = Tun::pair().map_err(|source| LabError::system("make a pair of sockets", source))?;
        let mut lab = Self::assemble(path, seed, options, Some((bare, near)))?;
        // Else the path would read the end of the pair as soon as whoever stands there goes.
        lab.bare = Some(far.clone());
        Ok((lab, far))
    }

    fn assemble(path: &PathSpec, seed: u64, options: LabOptions, bare: Option<(Side, Tun)>) -> Result<Self, LabError> {
        if !crate::rights::is_privileged() {
            return Err(LabError::NeedsNamespaceRights);
        }
        crate::tun::check_access()?;
        let split = if options.steer && is_fast(path) { Split::next() } else { Ok(None) };
        let split = split.map_err(|source| LabError::system("ask which processors there are", source))?;
        let [a, b] = Side::ALL.map(|side| LabHost::create(side, path, options.offload, split.as_ref()));
        let hosts = [a?, b?];
        let lanes = [0, 1].map(|_| Arc::new(LaneShared::new()));
        let end = |side: Side| match &bare {
            Some((bare, tun)) if *bare == side => tun,
            _ => hosts[index(side)].tun(),
        };
        let lane = |direction: Direction| LaneSpec {
            hops: path.hops(direction),
            answer_delays: answer_delays(path, direction),
            rtt: path.rtt(),
            mtu: path.path_mtu(),
            // As `Scenario::one_way` has it, so that a simulation draws the same.
            seed: Random::seed_of(seed, direction.as_str()),
            from: end(direction.sender()).clone(),
            to: end(direction.receiver()).clone(),
            shared: Arc::clone(&lanes[index(direction.sender())]),
        };
        let processor = split.map(|split| split.path).filter(|_| hosts.iter().all(LabHost::is_steered));
        let driver = Driver::start(Direction::ALL.map(lane), options.realtime, options.keep_awake, processor)
            .map_err(|source| LabError::system("start the path's thread", source))?;
        let since = Mutex::new(Baseline { errors: Counts::zero(), losses: Losses::default() });
        Ok(Self { driver, hosts, lanes, bare: None, rtt: path.rtt(), since })
    }

    /// One of the hosts.
    pub fn host(&self, side: Side) -> &LabHost {
        &self.hosts[index(side)]
    }

    /// What the path's thread runs as.
    pub fn priority(&self) -> Priority {
        self.driver.priority()
    }

    /// What each hop counted since the start, first hop of this direction first.
    pub fn path_stats(&self, direction: Direction) -> Vec<HopStats> {
        self.lanes[index(direction.sender())].hops()
    }

    /// How far the lab was from the path that it makes, over both directions, since the start or the last reset.
    pub fn path_error(&self) -> PathError {
        let since = self.since.lock().unwrap_or_else(PoisonError::into_inner);
        PathError::from_counts(&self.errors().since(&since.errors), self.losses().since(&since.losses).total())
    }

    /// Forgets what [`path_error`](Self::path_error) and [`valid`](Self::valid) look at: call it before a measurement.
    pub fn reset_error_stats(&self) {
        let mut since = self.since.lock().unwrap_or_else(PoisonError::into_inner);
        *since = Baseline { errors: self.errors(), losses: self.losses() };
        for lane in &self.lanes {
            lane.errors.reset_max();
        }
    }

    /// Whether what was measured since the start or the last reset is the path's doing and not the lab's.
    ///
    /// Three things make it the lab's:
    /// - The median of the release error is above 1 % of the round-trip time, or its p99 above 10 %, and above 200 us.
    ///   Lateness doesn't add up (each segment has its own planned time), so it changes no rate of the path; it lengthens
    ///   round trips, and a window-limited flow loses as much rate as its round trips get longer on average: 1 to 2 % is
    ///   below what the scenarios tolerate. 200 us is what a lab can promise on a shared machine.
    /// - A segment left more than 100 ms late: half of the least retransmission timeout of Linux (200 ms), beyond which
    ///   timers may fire because of the lab alone.
    /// - Packets were lost anywhere but in the emulated path.
    ///
    /// What it can't see: how late the lab read a packet from its device. Reading and releasing share a thread, so that
    /// whatever delays the one shows in the other as long as packets are under way.
    ///
    /// # Errors
    /// Which of them it was.
    pub fn valid(&self) -> Result<(), CouldNotKeepUp> {
        let since = self.since.lock().unwrap_or_else(PoisonError::into_inner).losses;
        self.losses().since(&since).check()?;
        let error = self.path_error();
        let [half_us, limit_us] = [100, 10].map(|part| (self.rtt.get() / part).max(LATE_US));
        debug!(?error, "what the path owes to its plan");
        if error.max_us > STALL_US {
            return Err(CouldNotKeepUp::Stalled { error, limit_us: STALL_US });
        }
        if error.p99_us > limit_us {
            return Err(CouldNotKeepUp::Late { share: 99, late_us: error.p99_us, limit_us });
        }
        if error.p50_us > half_us {
            return Err(CouldNotKeepUp::Late { share: 50, late_us: error.p50_us, limit_us: half_us });
        }
        Ok(())
    }

    /// Makes the path stand still for `span`, as an overloaded machine would: for tests of [`valid`](Self::valid).
    pub fn stall(&self, span: Duration) {
        self.driver.stall(span);
    }

    fn errors(&self) -> Counts {
        let [one, two] = &self.lanes;
        one.errors.counts().plus(&two.errors.counts())
    }

    fn losses(&self) -> Losses {
        // A device that can't be asked any more is gone, and all packets with it.
        let device = self.hosts.iter().map(|host| host.dropped().unwrap_or(u64::MAX / 4)).sum();
        self.lanes.iter().fold(Losses { device, ..Losses::default() }, |sum, lane| Losses {
            refused: sum.refused + lane.refused.load(Relaxed),
            out_of_memory: sum.out_of_memory + lane.out_of_memory.load(Relaxed),
            malformed: sum.malformed + lane.malformed.load(Relaxed),
            ..sum
        })
    }
}

/// From this rate on, the packets of many connections are more than one thread carries, with what the kernel does for each; below it, they
/// arrive sooner where the same processor goes on with them (by some 70 us of a round trip, in a virtual machine).
const STEERED_FROM: Rate = Rate::from_bps(300_000_000);

fn is_fast(path: &PathSpec) -> bool {
    Direction::ALL.into_iter().any(|direction| path.bottleneck(direction).is_none_or(|rate| rate >= STEERED_FROM))
}

fn index(side: Side) -> usize {
    match side {
        Side::A => 0,
        Side::B => 1,
    }
}

/// See [`Lab::valid`].
const STALL_US: u64 = 100_000;

impl Losses {
    fn since(&self, earlier: &Self) -> Self {
        Self {
            device: self.device.saturating_sub(earlier.device),
            refused: self.refused.saturating_sub(earlier.refused),
            out_of_memory: self.out_of_memory.saturating_sub(earlier.out_of_memory),
            malformed: self.malformed.saturating_sub(earlier.malformed),
        }
    }

    fn total(&self) -> u64 {
        self.device + self.refused + self.out_of_memory + self.malformed
    }

    fn check(&self) -> Result<(), CouldNotKeepUp> {
        for (packets, place) in [
            (self.device, "the devices' own queues"),
            (self.refused, "refused by the receiving kernel"),
            (self.out_of_memory, "no memory left for packets under way"),
            (self.malformed, "not readable as packets"),
        ] {
            if packets > 0 {
                return Err(CouldNotKeepUp::Lost { packets, place });
            }
        }
        Ok(())
    }
}

/// How long an answer of each hop needs back to the sender: the delays of the hops before it, the other way.
fn answer_delays(path: &PathSpec, direction: Direction) -> Vec<Duration> {
    let mut back = path.hops(direction.reverse());
    back.reverse();
    let delays = back.iter().scan(Duration::ZERO, |sum, hop| {
        let before = *sum;
        *sum += Duration::from(hop.delay);
        Some(before)
    });
    delays.collect()
}
