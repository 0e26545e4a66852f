//! The thread that tries the mechanisms in turn, chooses one of them and watches what it does.
//!
//! Senders are tried first and receivers after them, each with what the other end does then: the fastest sender is another
//! one with a receiver that blocks than with one that sleeps for a set time. Both ends share the omitted time by the clock.

use std::{
    io,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU8, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use super::{
    Choice, Left, Mechanism, Push, Refused,
    choice::{Deeds, choose, harm, lasting_harm},
    tools::GATHERABLE,
};
use crate::{
    lane::Role,
    sampler::Probe,
    sys::{cpu, splice::Pages},
};

/// Turns of each mechanism, so that what changes meanwhile meets them all.
const ROUNDS: u32 = 3;

/// The part of the omitted time in which senders are tried, after slow start, and that of receivers.
const SENDERS: (f64, f64) = (0.10, 0.65);
const RECEIVERS: (f64, f64) = (0.67, 0.97);

/// The part of a turn that is not counted: what the one before has left in the queues.
const WARM_UP: f64 = 0.25;

/// A turn has to last so many round trips, or it shows nothing of what happens in it.
const ROUND_TRIPS: f64 = 4.0;

/// How often the connections are looked at after the choice; harm in two looks in a row is harm.
const LOOK: Duration = Duration::from_millis(50);

/// Over so many looks a rate says something.
const LONG: usize = 10;

/// As the number that a worker reads.
const MECHANISMS: [Mechanism; 6] =
    [Mechanism::Write, Mechanism::Gather, Mechanism::Ring, Mechanism::Splice, Mechanism::Wait, Mechanism::Drain];

/// What the workers of one end are ordered.
#[derive(Debug)]
pub(crate) struct Pilot {
    sending: AtomicU8,
    receiving: AtomicU8,
    pages: Arc<Pages>,
    refused: Mutex<Vec<Refused>>,
}

impl Pilot {
    /// Everything plain until the trials begin.
    pub(crate) fn new(noise: &[u8]) -> io::Result<Self> {
        Ok(Self {
            sending: AtomicU8::new(Mechanism::Write as u8),
            receiving: AtomicU8::new(Mechanism::Wait as u8),
            pages: Arc::new(Pages::filled_with(if noise.is_empty() { &[0] } else { noise })?),
            refused: Mutex::default(),
        })
    }

    pub(super) fn sending(&self) -> Mechanism {
        named(&self.sending)
    }

    pub(super) fn receiving(&self) -> Mechanism {
        named(&self.receiving)
    }

    pub(super) fn pages(&self) -> &Arc<Pages> {
        &self.pages
    }

    /// A worker could not; nobody is asked to use it again.
    pub(super) fn refuse(&self, mechanism: Mechanism, error: &io::Error) {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        if refused.iter().all(|refused| refused.mechanism != mechanism) {
            refused.push(Refused { mechanism, reason: error.to_string() });
        }
        drop(refused);
        if self.sending() == mechanism {
            self.sending.store(Mechanism::Write as u8, Ordering::Relaxed);
        }
    }

    fn refused(&self) -> Vec<Refused> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn tell(&self, role: Role, mechanism: Mechanism) {
        if self.refused().iter().any(|refused| refused.mechanism == mechanism) {
            return;
        }
        let order = match role {
            Role::Send => &self.sending,
            Role::Receive => &self.receiving,
        };
        order.store(mechanism as u8, Ordering::Relaxed);
    }
}

fn named(order: &AtomicU8) -> Mechanism {
    MECHANISMS.get(usize::from(order.load(Ordering::Relaxed))).copied().unwrap_or(Mechanism::Write)
}

/// A pilot at work.
#[derive(Debug)]
pub(crate) struct Piloting {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Push>,
}

impl Piloting {
    /// `omit` is the time for the trials; messages have `block` bytes.
    pub(crate) fn start(
        pilot: &Arc<Pilot>,
        probes: Vec<Probe>,
        start: Instant,
        (omit, block): (Duration, usize),
    ) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let flight = Flight { pilot: Arc::clone(pilot), probes, start, omit, block, stop: Arc::clone(&stop) };
        let thread = thread::Builder::new().name("measure-pilot".to_owned()).spawn(move || flight.fly())?;
        Ok(Self { stop, thread })
    }

    pub(crate) fn finish(self) -> Push {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.thread().unpark();
        self.thread.join().unwrap_or_default()
    }
}

struct Flight {
    pilot: Arc<Pilot>,
    probes: Vec<Probe>,
    start: Instant,
    omit: Duration,
    block: usize,
    stop: Arc<AtomicBool>,
}

impl Flight {
    fn fly(&self) -> Push {
        let mut sending = self.choice(Role::Send, SENDERS);
        let mut receiving = self.choice(Role::Receive, RECEIVERS);
        self.wait_until(self.omit);
        self.watch(&mut sending, &mut receiving);
        Push { sending: sending.map(|(choice, _)| choice), receiving: receiving.map(|(choice, _)| choice) }
    }

    /// The candidates, the plain one first.
    fn candidates(&self, role: Role) -> Vec<Mechanism> {
        match role {
            Role::Receive => vec![Mechanism::Wait, Mechanism::Drain],
            Role::Send if self.block <= GATHERABLE => {
                vec![Mechanism::Write, Mechanism::Gather, Mechanism::Ring, Mechanism::Splice]
            }
            Role::Send => vec![Mechanism::Write, Mechanism::Ring, Mechanism::Splice],
        }
    }

    /// Tries and chooses; `None` where this end does not do that. With it comes what the plain mechanism did.
    fn choice(&self, role: Role, (from, to): (f64, f64)) -> Option<(Choice, Deeds)> {
        if !self.probes.iter().any(|probe| probe.role == role) {
            return None;
        }
        let candidates = self.candidates(role);
        let plain = *candidates.first()?;
        let mut choice =
            Choice { mechanism: plain, reason: String::new(), trials: Vec::new(), refused: Vec::new(), left: None };
        self.wait_until(self.omit.mul_f64(from));
        let turn = self.omit.mul_f64((to - from) / f64::from(ROUNDS) / candidates.len() as f64);
        let rtt = f64::from(self.read(role).rtt_us) / 1e6;
        if rtt * ROUND_TRIPS > turn.as_secs_f64() {
            choice.reason =
                format!("a round trip of {:.1} ms is too long to try anything in the omitted time", rtt * 1e3);
            return Some((choice, Deeds::default()));
        }
        let mut tried: Vec<(Mechanism, Deeds)> = candidates.into_iter().map(|m| (m, Deeds::default())).collect();
        let begin = self.omit.mul_f64(from);
        for index in 0..ROUNDS * tried.len() as u32 {
            let place = index as usize % tried.len();
            let Some((mechanism, deeds)) = tried.get_mut(place) else { break };
            self.pilot.tell(role, *mechanism);
            self.wait_until(begin + turn * index + turn.mul_f64(WARM_UP));
            let before = self.read(role);
            self.wait_until(begin + turn * (index + 1));
            deeds.add(&self.read(role).since(&before));
        }
        choice.refused = self.pilot.refused();
        tried.retain(|(mechanism, _)| choice.refused.iter().all(|refused| refused.mechanism != *mechanism));
        let base = tried.first().map(|(_, deeds)| *deeds).unwrap_or_default();
        if let Some((mechanism, reason)) = choose(&tried) {
            choice.mechanism = mechanism;
            choice.reason = reason;
        }
        choice.trials = tried.iter().map(|(mechanism, deeds)| deeds.trial(*mechanism)).collect();
        self.pilot.tell(role, choice.mechanism);
        Some((choice, base))
    }

    /// Leaves what does harm, until the test is over.
    fn watch(&self, sending: &mut Option<(Choice, Deeds)>, receiving: &mut Option<(Choice, Deeds)>) {
        let mut ends = [(Role::Send, sending), (Role::Receive, receiving)].map(|(role, choice)| {
            let readings = vec![self.read(role)];
            (role, choice, readings, false)
        });
        while !self.is_over() {
            self.wait_until(self.start.elapsed() + LOOK);
            for (role, choice, readings, suspected) in &mut ends {
                let plain = if *role == Role::Send { Mechanism::Write } else { Mechanism::Wait };
                let Some((choice, base)) = choice.as_mut().filter(|(c, _)| c.mechanism != plain && c.left.is_none())
                else {
                    continue;
                };
                let now = self.read(*role);
                let short = readings.last().and_then(|before| harm(base, &now.since(before)));
                let long = readings.first().filter(|_| readings.len() >= LONG);
                let long = long.and_then(|before| lasting_harm(base, &now.since(before)));
                readings.push(now);
                if readings.len() > LONG {
                    readings.remove(0);
                }
                if let Some(harm) = long.or_else(|| short.filter(|_| *suspected)).filter(|_| !self.is_over()) {
                    self.pilot.tell(*role, plain);
                    choice.left = Some(Left { at_s: self.start.elapsed().as_secs_f64(), harm });
                }
                *suspected = short.is_some();
            }
        }
    }

    /// The last look meets connections that are about to end.
    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn wait_until(&self, at: Duration) {
        while let Some(rest) = at.checked_sub(self.start.elapsed()).filter(|rest| !rest.is_zero()) {
            if self.is_over() {
                return;
            }
            thread::park_timeout(rest);
        }
    }

    fn read(&self, role: Role) -> Reading {
        let mut reading =
            Reading { at: self.start.elapsed(), processor_s: cpu::process_seconds(), ..Reading::default() };
        for probe in self.probes.iter().filter(|probe| probe.role == role) {
            reading.take(probe);
        }
        reading
    }
}

/// All connections of a role at one moment.
#[derive(Clone, Copy, Debug, Default)]
struct Reading {
    at: Duration,
    processor_s: f64,
    bytes: u64,
    astray: u64,
    segments: u64,
    rtt_us: u32,
    held_back_us: u64,
}

impl Reading {
    fn take(&mut self, probe: &Probe) {
        let Ok(info) = fullpipe_socket::Info::read(&probe.shared.stream) else { return };
        let mss = u64::from(info.mss.unwrap_or(1_448).max(1));
        let rtt_us = u32::try_from(info.rtt.unwrap_or_default().get()).unwrap_or(u32::MAX);
        self.bytes += probe.shared.progress(probe.role, &probe.baseline);
        match probe.role {
            Role::Send => {
                self.astray += info.retransmits.unwrap_or(0);
                self.segments += info.bytes_sent.or(info.bytes_acked).unwrap_or(0) / mss;
                self.held_back_us += info.rwnd_limited.unwrap_or_default().get();
                self.rtt_us = self.rtt_us.max(rtt_us);
            }
            Role::Receive => {
                self.astray += u64::from(info.out_of_order.unwrap_or(0));
                self.segments += info.bytes_received.unwrap_or(0) / mss;
                // Of the handshake.
                self.rtt_us = self.rtt_us.max(rtt_us);
            }
        }
    }

    fn since(&self, before: &Self) -> Deeds {
        Deeds {
            bytes: self.bytes.saturating_sub(before.bytes),
            seconds: self.at.saturating_sub(before.at).as_secs_f64(),
            processor_s: (self.processor_s - before.processor_s).max(0.0),
            astray: self.astray.saturating_sub(before.astray),
            segments: self.segments.saturating_sub(before.segments),
            rtt_us: self.rtt_us,
            held_back_s: self.held_back_us.saturating_sub(before.held_back_us) as f64 / 1e6,
        }
    }
}
