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
use fullpipe_units::{Bytes, Micros};

use crate::{
    handshake::View,
    lane::{self, Baseline, Brakes, Lane, Manner, Role, Run, Shared},
    report::{EndReport, LaneReport},
    sampler::{Probe, Sampler, Series},
    sys::{
        cpu::{CpuClock, ProcessTime},
        sockopt,
        tcp_info::TcpInfo,
    },
};

/// A transfer that is going on. Dropping it stops everything.
#[derive(Debug)]
pub(crate) struct Moving {
    lanes: Vec<MovingLane>,
    run: Arc<Run>,
    budget: Option<u64>,
    workers: Vec<JoinHandle<()>>,
    sampler: Option<Sampler>,
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
    progress: u64,
    moved: u64,
    retransmits: u64,
}

impl Moving {
    /// Both ends start their clock here: the server when it has sent TEST_RUNNING, the client when it has read it.
    pub(crate) fn start(lanes: Vec<Lane>, manner: &Manner) -> io::Result<Self> {
        let sends = lanes.iter().any(|lane| lane.role == Role::Send);
        let mut payload = vec![0u8; if sends { manner.block.max(1) } else { 0 }];
        // Noise, so that nothing on the path gains by compressing it.
        getrandom::fill(&mut payload).map_err(io::Error::other)?;
        let left = manner.budget.map(AtomicU64::new);
        let run = Arc::new(Run { start: Instant::now(), brakes: Brakes::default(), left, payload });
        let mut moving = Self {
            lanes: lanes.into_iter().map(MovingLane::new).collect(),
            run,
            budget: manner.budget,
            workers: Vec::new(),
            sampler: None,
            cpu: CpuClock::now(),
            process: ProcessTime::now(),
            steady_from: None,
        };
        moving.sampler = Some(Sampler::start(moving.lanes.iter().map(MovingLane::probe).collect(), moving.run.start)?);
        for lane in &moving.lanes {
            moving.workers.push(lane::start_worker(&lane.shared, lane.role, manner, &moving.run)?);
        }
        Ok(moving)
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.run.start.elapsed()
    }

    /// Payload acknowledged (of the lanes that send) or read (of those that receive), since the start.
    pub(crate) fn progress(&self, role: Role) -> u64 {
        self.lanes.iter().filter(|lane| lane.role == role).map(|lane| lane.shared.progress(role, &lane.baseline)).sum()
    }

    /// A count that grows as long as payload moves; cheaper than [`Moving::progress`] where time ends the test.
    pub(crate) fn activity(&self) -> u64 {
        match self.budget {
            Some(_) => self.progress(Role::Send) + self.progress(Role::Receive),
            None => self.lanes.iter().map(|lane| lane.shared.moved()).sum(),
        }
    }

    /// Of the first connection, one that sends where there is one: its kernel measures under load.
    pub(crate) fn rtt(&self) -> Option<Micros> {
        let lane = self.lanes.iter().find(|lane| lane.role == Role::Send).or_else(|| self.lanes.first())?;
        TcpInfo::of(&lane.shared.stream).ok()?.rtt_us().map(|us| Micros::new(us.into()))
    }

    /// Whether bytes end the test and all of them have arrived.
    pub(crate) fn is_complete(&self) -> bool {
        let complete = |role, budget| !self.has(role) || self.progress(role) >= budget;
        self.budget.is_some_and(|budget| complete(Role::Send, budget) && complete(Role::Receive, budget))
    }

    pub(crate) fn has(&self, role: Role) -> bool {
        self.lanes.iter().any(|lane| lane.role == role)
    }

    /// The first connection that failed on its own.
    pub(crate) fn failure(&self) -> Option<io::ErrorKind> {
        self.lanes.iter().find_map(|lane| lane.shared.failure())
    }

    /// The omitted time is over: from here on counts the steady rate.
    pub(crate) fn mark_steady(&mut self) {
        self.steady_from = Some(self.elapsed());
        for lane in &mut self.lanes {
            lane.mark = lane.counts();
        }
    }

    pub(crate) fn is_marked(&self) -> bool {
        self.steady_from.is_some()
    }

    /// Ends the counting and the sending. Receivers go on emptying their connections until [`Moving::release`], so that
    /// a peer that still sends is not blocked.
    pub(crate) fn stop(&mut self) -> EndReport {
        let end = self.elapsed();
        let counts: Vec<Counts> = self.lanes.iter().map(MovingLane::counts).collect();
        self.run.brakes.senders.store(true, Ordering::Relaxed);
        let all = self.sampler.take().map(Sampler::finish).unwrap_or_default();
        let process = ProcessTime::now();
        let wall = end.as_secs_f64().max(1e-6);
        let percent = |now: f64, before: f64| (now - before).max(0.0) / wall * 100.0;
        let mut series = all.into_iter();
        let lanes = self.lanes.iter().zip(&counts);
        EndReport {
            cpu_busy: CpuClock::now().busiest_since(&self.cpu),
            cpu_user_percent: percent(process.user_s, self.process.user_s),
            cpu_system_percent: percent(process.system_s, self.process.system_s),
            lanes: lanes
                .map(|(lane, counts)| self.report(lane, *counts, end, series.next().unwrap_or_default()))
                .collect(),
        }
    }

    fn report(&self, lane: &MovingLane, counts: Counts, end: Duration, mut series: Series) -> LaneReport {
        // Where nothing moved at all, that took the whole time.
        let first = lane.shared.first().unwrap_or_default();
        series.count_from(Micros::from(first));
        // Where bytes end the test, it was over with the last of them and not when that was noticed.
        let complete = self.budget.is_some_and(|budget| self.progress(lane.role) >= budget);
        let over = if complete && lane.role == Role::Receive { lane.shared.last().unwrap_or(end) } else { end };
        let largest = |sampled: Option<Bytes>, now: Option<u32>| {
            let now = now.map(|bytes| Bytes::new(bytes.into()));
            sampled.max(now)
        };
        let memory = sockopt::mem_info(&lane.shared.stream).ok();
        let pinned = sockopt::pinned_buffers(&lane.shared.stream).unwrap_or_default();
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
            steady_us: Micros::from(end.saturating_sub(self.steady_from.unwrap_or_default())).get(),
            omitted_us: self.steady_from.map(|from| Micros::from(from.saturating_sub(first)).get()),
            retransmits: (lane.role == Role::Send).then(|| counts.retransmits.saturating_sub(lane.mark.retransmits)),
            congestion_control: sockopt::congestion(&lane.shared.stream),
            send_buffer: buffer(largest(sampled_send, memory.map(|m| m.send_buffer)), pinned.send),
            receive_buffer: buffer(largest(sampled_receive, memory.map(|m| m.receive_buffer)), pinned.receive),
            view: lane.view,
            path_mtu: TcpInfo::of(&lane.shared.stream).ok().and_then(|info| info.path_mtu()),
            sender_samples: series.sender,
            receiver_samples: series.receiver,
        }
    }

    /// Closes the data connections. `abrupt` throws away what is still queued, which on a slow path would otherwise
    /// occupy it long after the test; a foreign peer may take the reset for a failure.
    pub(crate) fn release(mut self, abrupt: bool) {
        if abrupt {
            for lane in &self.lanes {
                // A connection that can't be reset is closed the slow way.
                drop(socket2::SockRef::from(&lane.shared.stream).set_linger(Some(Duration::ZERO)));
            }
        }
        self.halt();
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
        for worker in self.workers.drain(..) {
            // A worker that panicked has nothing more to say than that its lane stood still.
            drop(worker.join());
        }
    }
}

impl Drop for Moving {
    fn drop(&mut self) {
        self.halt();
    }
}

impl MovingLane {
    fn new(lane: Lane) -> Self {
        let info = TcpInfo::of(&lane.stream).ok();
        let baseline = info.as_ref().map(|info| Baseline::of(info, lane.opened, lane.preamble)).unwrap_or_default();
        let view = info.map(|info| View::of(&info, lane.saved_syn)).unwrap_or_default();
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

    fn counts(&self) -> Counts {
        let retransmits = TcpInfo::of(&self.shared.stream).ok().and_then(|info| info.total_retransmits());
        Counts {
            progress: self.shared.progress(self.role, &self.baseline),
            moved: self.shared.moved(),
            retransmits: u64::from(retransmits.unwrap_or(0)).saturating_sub(self.baseline.retransmits),
        }
    }
}
