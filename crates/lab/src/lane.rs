//! One direction: frames from one device, their segments through the path, and out to the other device in time.
//!
//! The path alone decides which segments leave, in which order and when. What leaves in one go and belongs together
//! (consecutive segments of one frame, same ECN field) is written as one packet, as a network card with receive
//! offload would hand it up; nothing waits for that. What is *not* here: waiting (`driver`).

use std::{
    rc::Rc,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use fullpipe_path::{Departure, Fate, HopSpec, HopStats, Machine, OneWay, Segment};
use fullpipe_units::{Instant, Micros};

use crate::{
    driver::Clock,
    frame::{Frame, Reader, Run},
    stats::Histogram,
    too_big,
    tun::Tun,
};

/// Frames under way may hold so much memory. Loss beyond it is the lab's, not the path's, and makes a result invalid.
const MEMORY_MAX: usize = 1 << 30;
/// Frames read in one go before what is due is released: reading 4 x 64 KB takes some 50 us.
const READ_BUDGET: u32 = 4;
/// Counters that somebody was reading are published after so long, if not before.
const PUBLISHES_AGAIN: Duration = Duration::from_millis(1);

/// What one direction is made of.
#[derive(Clone, Debug)]
pub(crate) struct LaneSpec {
    pub(crate) hops: Vec<HopSpec>,
    /// How long the answer of each hop is under way, back to the sender.
    pub(crate) answer_delays: Vec<Duration>,
    pub(crate) rtt: Micros,
    pub(crate) mtu: u32,
    pub(crate) seed: u64,
    pub(crate) from: Tun,
    pub(crate) to: Tun,
    pub(crate) shared: Arc<LaneShared>,
}

/// What others may see of a lane while it runs.
#[derive(Debug)]
pub(crate) struct LaneShared {
    /// Planned against actual release.
    pub(crate) errors: Histogram,
    /// Packets that the receiving kernel refused.
    pub(crate) refused: AtomicU64,
    /// Segments dropped for want of memory.
    pub(crate) out_of_memory: AtomicU64,
    /// Packets that contradict their offload header.
    pub(crate) malformed: AtomicU64,
    hops: Mutex<Vec<HopStats>>,
}

impl LaneShared {
    pub(crate) fn new() -> Self {
        let zero = || AtomicU64::new(0);
        let (refused, out_of_memory, malformed) = (zero(), zero(), zero());
        Self { errors: Histogram::new(), refused, out_of_memory, malformed, hops: Mutex::default() }
    }

    /// What each hop counted, as of the last release.
    pub(crate) fn hops(&self) -> Vec<HopStats> {
        self.hops.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A segment on its way: which part of which frame.
#[derive(Clone, Debug)]
struct Piece {
    frame: Rc<Frame>,
    index: u16,
}

/// One direction at work. It stays on the thread that made it.
#[derive(Debug)]
pub(crate) struct Lane {
    spec: LaneSpec,
    reader: Reader,
    path: OneWay<Piece>,
    /// Segments that will leave in one write, and their planned times.
    run: Option<(Rc<Frame>, Run)>,
    planned: Vec<Instant>,
    /// Answers of routers on their way back.
    answers: Vec<(Instant, Vec<u8>)>,
    /// When the counters are published that somebody was reading.
    publishes_at: Option<Instant>,
}

impl Lane {
    pub(crate) fn new(spec: LaneSpec) -> Self {
        let path = OneWay::new(&spec.hops, spec.rtt, spec.mtu, spec.seed);
        Self {
            spec,
            reader: Reader::new(),
            path,
            run: None,
            planned: Vec::new(),
            answers: Vec::new(),
            publishes_at: None,
        }
    }

    /// The device that it reads from.
    pub(crate) fn source(&self) -> &Tun {
        &self.spec.from
    }

    /// Takes what waits at the device, up to a bound.
    pub(crate) fn receive(&mut self, clock: &Clock) {
        for _ in 0..READ_BUDGET {
            match self.reader.read(&self.spec.from) {
                Ok(Some(frame)) => self.send(clock.now(), &frame),
                Ok(None) => return,
                Err(_) => count(&self.spec.shared.malformed, 1),
            }
        }
    }

    fn send(&mut self, now: Instant, frame: &Rc<Frame>) {
        if self.reader.pool().held() > MEMORY_MAX {
            return count(&self.spec.shared.out_of_memory, frame.segments().into());
        }
        // What stays on its link (listener reports and the like) does not cross a path with routers.
        if frame.is_link_local_multicast() {
            return;
        }
        let ecn = frame.ecn();
        for index in 0..frame.segments() {
            let handle = Piece { frame: Rc::clone(frame), index };
            self.path.on_packet(
                now,
                Segment { ecn, ack_of: frame.acknowledges(), ..Segment::new(frame.wire_len(index), handle) },
            );
        }
    }

    /// Writes what is due. Returns whether anything was.
    pub(crate) fn release(&mut self, clock: &Clock) -> bool {
        let now = clock.now();
        let mut any = false;
        while let Some(departure) = self.path.poll_transmit(now) {
            any = true;
            match departure.fate {
                Fate::Delivered => self.deliver(departure, clock),
                Fate::TooBig { mtu, hop } => self.refuse(&departure, mtu, hop),
            }
        }
        self.flush(clock);
        self.answer(now);
        self.publish(now);
        any
    }

    fn deliver(&mut self, departure: Departure<Piece>, clock: &Clock) {
        let Segment { handle: Piece { frame, index }, ecn, .. } = departure.segment;
        match &mut self.run {
            Some((held, run)) if Rc::ptr_eq(held, &frame) && run.first + run.count == index && run.ecn == ecn => {
                run.count += 1;
            }
            _ => {
                self.flush(clock);
                self.run = Some((frame, Run { first: index, count: 1, ecn }));
            }
        }
        self.planned.push(departure.at);
    }

    fn flush(&mut self, clock: &Clock) {
        let Some((frame, run)) = self.run.take() else { return };
        if frame.write(&self.spec.to, run).is_err() {
            count(&self.spec.shared.refused, run.count.into());
        }
        let now = clock.now();
        for planned in self.planned.drain(..) {
            self.spec.shared.errors.record(now.as_nanos().saturating_sub(planned.as_nanos()));
        }
    }

    fn refuse(&mut self, departure: &Departure<Piece>, mtu: u32, hop: usize) {
        let Piece { frame, index } = &departure.segment.handle;
        if let Some(answer) = too_big::answer(&frame.segment(*index), mtu) {
            let delay = self.spec.answer_delays.get(hop).copied().unwrap_or_default();
            self.answers.push((departure.at + delay, answer));
        }
    }

    fn answer(&mut self, now: Instant) {
        if self.answers.iter().all(|(at, _)| *at > now) {
            return;
        }
        let spec = &self.spec;
        self.answers.retain(|(at, packet)| {
            let is_due = *at <= now;
            if is_due && spec.from.write_packet(packet).is_err() {
                count(&spec.shared.refused, 1);
            }
            !is_due
        });
    }

    fn publish(&mut self, now: Instant) {
        // A loss counts without anything leaving. Whoever reads holds the lock for a copy only, but may have lost its processor to
        // this thread meanwhile: it is not waited for, and nothing else may happen here for long.
        self.publishes_at = match self.spec.shared.hops.try_lock() {
            Ok(mut hops) => {
                hops.clear();
                hops.extend(self.path.stats());
                None
            }
            Err(_) => Some(now + PUBLISHES_AGAIN),
        };
    }

    /// When `release` may have something next.
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        let answer = self.answers.iter().map(|(at, _)| *at).min();
        [self.path.next_timeout(), answer, self.publishes_at].into_iter().flatten().min()
    }
}

/// Adds to a counter that has one writer.
fn count(counter: &AtomicU64, more: u64) {
    counter.store(counter.load(Relaxed) + more, Relaxed);
}
