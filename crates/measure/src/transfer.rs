//! The part of a test in which payload moves, the same for both ends: workers, sampler, counts.

use std::{
    io,
    net::Shutdown,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use fullpipe_diagnose::Buffer;
use fullpipe_socket::{Fixed, Info, Memory};
use fullpipe_units::{Bytes, Micros};

use crate::{
    flow::{Flow, Live},
    handshake::View,
    lane::{self, Baseline, Brakes, Lane, Manner, NOISE, Role, Run, Shared},
    max::{Pilot, Piloting},
    report::{EndReport, LaneReport},
    sampler::{Probe, Sampler, Series},
    sys::{
        cpu::{CpuClock, ProcessTime},
        send_file, sockopt,
    },
    wire::MAX_STREAMS,
};

/// A transfer that is going on. Dropping it stops everything.
#[derive(Debug)]
pub(crate) struct Moving {
    lanes: Vec<MovingLane>,
    run: Arc<Run>,
    budget: Option<u64>,
    workers: Vec<JoinHandle<()>>,
    sampler: Option<Sampler>,
    piloting: Option<Piloting>,
    cpu: CpuClock,
    process: ProcessTime,
    /// When the omitted time ended.
    steady_from: Option<Duration>,
}

#[derive(Debug)]
struct MovingLane {
    id: u32,
    role: Role,
    shared: Arc<Shared>,
    baseline: Baseline,
    view: View,
    /// The counts at the end of the omitted time.
    mark: Counts,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    /// When they were read: of a thousand connections on a busy machine the last is read long after the first.
    at: Duration,
    progress: u64,
    moved: u64,
    retransmits: u64,
}

impl Moving {
    /// Both ends start their clock here: the server when it has sent TEST_RUNNING, the client when it has read it.
    pub(crate) fn start(lanes: Vec<Lane>, manner: &Manner) -> io::Result<Self> {
        let sends = lanes.iter().any(|lane| lane.role == Role::Send);
        let mut payload = vec![0u8; if sends { manner.block.clamp(1, NOISE) } else { 0 }];
        // Noise, so that nothing on the path gains by compressing it.
        getrandom::fill(&mut payload).map_err(io::Error::other)?;
        let left = manner.budget.map(AtomicU64::new);
        // Where there is no such file, the payload is copied like any other.
        let content = || payload.iter().copied().cycle().take(manner.block).collect::<Vec<u8>>();
        let file = if manner.zerocopy && sends { send_file::unnamed(&content()).ok() } else { None };
        // Where there is none, payload moves as always; a client that asks for it hears so from its own end.
        let pilot = manner.max.and_then(|_| Pilot::new(&payload).ok()).map(Arc::new);
        let run = Arc::new(Run { start: Instant::now(), brakes: Brakes::default(), left, payload, file, pilot });
        let mut moving = Self {
            lanes: lanes.into_iter().map(MovingLane::new).collect(),
            run,
            budget: manner.budget,
            workers: Vec::new(),
            sampler: None,
            piloting: None,
            cpu: CpuClock::now(),
            process: ProcessTime::now(),
            steady_from: None,
        };
        if manner.sampling {
            moving.sampler = Some(Sampler::start(moving.probes(), moving.run.start)?);
        }
        let crowd = moving.lanes.len() > MAX_STREAMS as usize;
        for lane in &moving.lanes {
            moving.workers.push(lane::start_worker(&lane.shared, lane.role, (manner, crowd), &moving.run)?);
        }
        if let (Some(pilot), Some(trials)) = (&moving.run.pilot, manner.max) {
            moving.piloting = Some(Piloting::start(pilot, moving.probes(), moving.run.start, (trials, manner.block))?);
        }
        Ok(moving)
    }

    fn probes(&self) -> Vec<Probe> {
        self.lanes.iter().map(MovingLane::probe).collect()
    }

    fn report(&self, lane: &MovingLane, counts: Counts, mut series: Series) -> LaneReport {
        let end = counts.at;
        // Where nothing moved at all, that took the whole time.
        let first = lane.shared.first().unwrap_or_default();
        series.count_from(Micros::from(first));
        // Where bytes end the test, it was over with the last of them and not when that was noticed.
        let complete = self.budget.is_some_and(|budget| self.progress(lane.role) >= budget);
        let over = if complete && lane.role == Role::Receive { lane.shared.last().unwrap_or(end) } else { end };
        let memory = Memory::read(&lane.shared.stream).unwrap_or_default();
        let pinned = Fixed::read(&lane.shared.stream).unwrap_or_default();
        let sampled_send = series.sender.iter().filter_map(|sample| sample.send_buffer).max();
        let sampled_receive = series.receiver.iter().filter_map(|sample| sample.receive_buffer).max();
        let buffer = |largest: Option<Bytes>, pinned| largest.map(|largest| Buffer { largest, pinned });
        LaneReport {
            id: lane.id,
            role: lane.role,
            bytes: counts.progress,
            duration_us: Micros::from(over.saturating_sub(first)).get(),
            moved: counts.moved.saturating_sub(lane.mark.moved),
            steady_bytes: counts.progress.saturating_sub(lane.mark.progress),
            steady_us: Micros::from(end.saturating_sub(lane.mark.at)).get(),
            omitted_us: self.steady_from.map(|from| Micros::from(from.saturating_sub(first)).get()),
            retransmits: (lane.role == Role::Send).then(|| counts.retransmits.saturating_sub(lane.mark.retransmits)),
            congestion_control: sockopt::congestion(&lane.shared.stream),
            send_buffer: buffer(sampled_send.max(memory.send_buffer), pinned.send),
            receive_buffer: buffer(sampled_receive.max(memory.receive_buffer), pinned.receive),
            view: lane.view,
            datagrams: None,
            datagram_series: Vec::new(),
            path_mtu: Info::read(&lane.shared.stream).ok().and_then(|info| info.path_mtu),
            sender_samples: series.sender,
            receiver_samples: series.receiver,
        }
    }

    fn halt(&mut self) {
        let all = |brake: &AtomicBool| brake.store(true, Ordering::Relaxed);
        all(&self.run.brakes.senders);
        all(&self.run.brakes.receivers);
        for lane in &self.lanes {
            // Wakes a worker that sleeps in the kernel; one whose connection is gone needs no waking.
            drop(lane.shared.stream.shutdown(Shutdown::Both));
        }
        if let Some(sampler) = self.sampler.take() {
            drop(sampler.finish());
        }
        if let Some(piloting) = self.piloting.take() {
            drop(piloting.finish());
        }
        for worker in self.workers.drain(..) {
            // A worker that panicked has nothing more to say than that its lane stood still.
            drop(worker.join());
        }
    }
}

impl Flow for Moving {
    fn elapsed(&self) -> Duration {
        self.run.start.elapsed()
    }

    fn progress(&self, role: Role) -> u64 {
        self.lanes.iter().filter(|lane| lane.role == role).map(|lane| lane.shared.progress(role, &lane.baseline)).sum()
    }

    fn activity(&self) -> u64 {
        match self.budget {
            Some(_) => self.progress(Role::Send) + self.progress(Role::Receive),
            None => self.lanes.iter().map(|lane| lane.shared.moved()).sum(),
        }
    }

    fn live(&self) -> Live {
        let lane = self.lanes.iter().find(|lane| lane.role == Role::Send).or_else(|| self.lanes.first());
        let Some(info) = lane.and_then(|lane| Info::read(&lane.shared.stream).ok()) else { return Live::default() };
        let sends = lane.is_some_and(|lane| lane.role == Role::Send);
        Live {
            rtt_us: info.rtt,
            cwnd: info.cwnd.filter(|_| sends),
            window: info.send_window.filter(|_| sends),
            retransmits: sends.then(|| self.lanes.iter().map(|lane| lane.counts(self.run.start).retransmits).sum()),
            datagrams: None,
        }
    }

    fn is_complete(&self) -> bool {
        let complete = |role, budget| !self.has(role) || self.progress(role) >= budget;
        self.budget.is_some_and(|budget| complete(Role::Send, budget) && complete(Role::Receive, budget))
    }

    fn has(&self, role: Role) -> bool {
        self.lanes.iter().any(|lane| lane.role == role)
    }

    fn failure(&self) -> Option<io::ErrorKind> {
        self.lanes.iter().find_map(|lane| lane.shared.failure())
    }

    fn mark_steady(&mut self) {
        self.steady_from = Some(self.elapsed());
        self.cpu = CpuClock::now();
        self.process = ProcessTime::now();
        for lane in &mut self.lanes {
            lane.mark = lane.counts(self.run.start);
        }
    }

    fn is_marked(&self) -> bool {
        self.steady_from.is_some()
    }

    /// Receivers go on emptying their connections until [`Flow::release`], so that a peer that still sends is not
    /// blocked.
    fn stop(&mut self) -> EndReport {
        let end = self.elapsed();
        let counts: Vec<Counts> = self.lanes.iter().map(|lane| lane.counts(self.run.start)).collect();
        self.run.brakes.senders.store(true, Ordering::Relaxed);
        let push = self.piloting.take().map(Piloting::finish);
        let all = self.sampler.take().map(Sampler::finish).unwrap_or_default();
        let process = ProcessTime::now();
        let wall = end.saturating_sub(self.steady_from.unwrap_or_default()).as_secs_f64().max(1e-6);
        let percent = |now: f64, before: f64| (now - before).max(0.0) / wall * 100.0;
        let mut series = all.into_iter();
        let lanes = self.lanes.iter().zip(&counts);
        EndReport {
            cpu_busy: CpuClock::now().busiest_since(&self.cpu),
            cpu_user_percent: percent(process.user_s, self.process.user_s),
            cpu_system_percent: percent(process.system_s, self.process.system_s),
            processor: None,
            push,
            lanes: lanes.map(|(lane, counts)| self.report(lane, *counts, series.next().unwrap_or_default())).collect(),
        }
    }

    fn release(mut self: Box<Self>, abrupt: bool) {
        if abrupt {
            for lane in &self.lanes {
                // A connection that can't be reset is closed the slow way.
                drop(socket2::SockRef::from(&lane.shared.stream).set_linger(Some(Duration::ZERO)));
            }
        }
        self.halt();
    }
}

impl Drop for Moving {
    fn drop(&mut self) {
        self.halt();
    }
}

impl MovingLane {
    fn new(lane: Lane) -> Self {
        let info = Info::read(&lane.stream).ok();
        let baseline =
            info.as_ref().map(|info| Baseline::from_info(info, lane.opened, lane.preamble)).unwrap_or_default();
        let view = info.map(|info| View::from_info(&info, lane.saved_syn)).unwrap_or_default();
        Self {
            id: lane.id,
            role: lane.role,
            shared: Arc::new(Shared::new(lane.stream)),
            baseline,
            view,
            mark: Counts::default(),
        }
    }

    fn probe(&self) -> Probe {
        Probe { shared: Arc::clone(&self.shared), role: self.role, baseline: self.baseline }
    }

    fn counts(&self, start: Instant) -> Counts {
        let at = start.elapsed();
        let retransmits = Info::read(&self.shared.stream).ok().and_then(|info| info.retransmits);
        Counts {
            at,
            progress: self.shared.progress(self.role, &self.baseline),
            moved: self.shared.moved(),
            retransmits: retransmits.unwrap_or(0).saturating_sub(self.baseline.retransmits),
        }
    }
}
