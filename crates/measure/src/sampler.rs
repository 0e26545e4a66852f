//! The thread that reads `TCP_INFO` of all data connections of a test.
//!
//! One thread per end, so that the workers never stop to look at themselves. Each reading takes the socket's lock for a
//! moment, hence 100 readings per second and connection at the most, and fewer where the ends are as fast as a processor
//! can be; and memory is bounded: a series that grows too long drops every other sample and goes on half as often.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use fullpipe_diagnose::{ReceiverSample, SenderSample};
use fullpipe_socket::{Info, Memory, unread};
use fullpipe_units::{Bytes, Micros};

use crate::{
    lane::{Baseline, Role, Shared},
    wire,
};

/// The longest series that is kept.
pub(crate) const MAX_SAMPLES: usize = 2_000;

/// Readings are 10 ms apart at least, and a quarter of a round trip on long paths: in less than that nothing changes.
const SHORTEST: Duration = Duration::from_millis(10);
const LONGEST: Duration = Duration::from_millis(250);

/// From this many bytes in a second on it is the processors that are busy: there 100 readings in a second, with the two
/// changes of thread that each costs, took 6 % of the throughput of a virtual machine.
const FAST: f64 = 5e9 / 8.0;
/// Which part of the time so far fast connections are read after, and after how long at the most. On a path this short
/// nothing is left to see after some milliseconds, and the first second, too, shall lose less than a hundredth.
const NEAR: Duration = Duration::from_millis(1);
const RARE_WHEN_NEAR: (u32, Duration) = (5, Duration::from_millis(250));
const RARE_WHEN_FAR: (u32, Duration) = (20, Duration::from_millis(100));

/// Above this many connections readings get rarer, so that sampling stays a small part of the work.
const LANES_AT_FULL_RATE: usize = 8;

/// One connection to read.
#[derive(Debug)]
pub(crate) struct Probe {
    pub(crate) shared: Arc<Shared>,
    pub(crate) role: Role,
    pub(crate) baseline: Baseline,
}

/// What was read from one connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Series {
    pub(crate) sender: Vec<SenderSample>,
    pub(crate) receiver: Vec<ReceiverSample>,
}

/// A running sampler.
#[derive(Debug)]
pub(crate) struct Sampler {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<Series>>,
}

impl Sampler {
    pub(crate) fn start(probes: Vec<Probe>, start: Instant) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let thread =
            thread::Builder::new().name("measure-sampler".to_owned()).spawn(move || sample(&probes, start, &seen))?;
        Ok(Self { stop, thread })
    }

    /// Takes a last reading and returns all; one series per probe, in their order.
    pub(crate) fn finish(self) -> Vec<Series> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.thread().unpark();
        self.thread.join().unwrap_or_default()
    }
}

fn sample(probes: &[Probe], start: Instant, stop: &AtomicBool) -> Vec<Series> {
    let mut all = vec![Series::default(); probes.len()];
    let crowd = u32::try_from(probes.len().div_ceil(LANES_AT_FULL_RATE)).unwrap_or(1).max(1);
    let mut thinned = 1u32;
    let mut before = (start.elapsed(), 0);
    loop {
        let last = stop.load(Ordering::Relaxed);
        let mut rtt = Duration::MAX;
        for (probe, series) in probes.iter().zip(&mut all) {
            // A connection that is gone has no more to tell.
            let Ok(info) = Info::read(&probe.shared.stream) else { continue };
            let at_us = Micros::from(start.elapsed());
            match probe.role {
                Role::Send => series.sender.push(sender_sample(probe, &info, at_us)),
                Role::Receive => series.receiver.push(receiver_sample(probe, &info, at_us)),
            }
            rtt = rtt.min(info.rtt.unwrap_or_default().into());
        }
        if last {
            return all;
        }
        if all.iter().any(|series| series.sender.len().max(series.receiver.len()) >= MAX_SAMPLES) {
            all.iter_mut().for_each(Series::halve);
            thinned = thinned.saturating_mul(2);
        }
        let now = (start.elapsed(), probes.iter().map(|probe| probe.shared.moved()).sum::<u64>());
        let rate = (now.1 - before.1) as f64 / now.0.saturating_sub(before.0).as_secs_f64().max(1e-6);
        before = now;
        let pause = if rtt == Duration::MAX { SHORTEST } else { (rtt / 4).clamp(SHORTEST, LONGEST) };
        thread::park_timeout(pause.max(shortest(rate, now.0, rtt)) * crowd * thinned);
    }
}

/// The shortest pause at so many bytes a second, so long after the start. In proportion to the time so far, so that a short
/// test has enough readings, too.
fn shortest(rate: f64, elapsed: Duration, rtt: Duration) -> Duration {
    if rate < FAST {
        return SHORTEST;
    }
    let (part, rarest) = if rtt < NEAR { RARE_WHEN_NEAR } else { RARE_WHEN_FAR };
    (elapsed / part).clamp(SHORTEST, rarest)
}

impl Series {
    /// Drops every other sample, but never the first.
    pub(crate) fn halve(&mut self) {
        every_other(&mut self.sender);
        every_other(&mut self.receiver);
    }

    /// Counts time from the first payload byte, `first` after the start. What was read before that moment is left out,
    /// except the last reading, which becomes the moment zero.
    pub(crate) fn count_from(&mut self, first: Micros) {
        count_from(&mut self.sender, first, |sample| &mut sample.at_us);
        count_from(&mut self.receiver, first, |sample| &mut sample.at_us);
    }
}

pub(crate) fn every_other<S>(samples: &mut Vec<S>) {
    let mut index = 0usize;
    samples.retain(|_| {
        index += 1;
        index % 2 == 1
    });
}

fn count_from<S>(samples: &mut Vec<S>, first: Micros, at: impl Fn(&mut S) -> &mut Micros) {
    let before = samples.iter_mut().map(&at).take_while(|at| **at < first).count();
    samples.drain(..before.saturating_sub(1));
    for sample in samples {
        let at = at(sample);
        *at = at.saturating_sub(first);
    }
}

fn sender_sample(probe: &Probe, info: &Info, at_us: Micros) -> SenderSample {
    let baseline = &probe.baseline;
    let acked = info.bytes_acked.map_or_else(|| probe.shared.moved(), |acked| acked.saturating_sub(baseline.acked));
    // What was sent once and is not acknowledged; else what the kernel itself says (Linux before 4.19: from segments).
    let outstanding = || {
        let sent_once = info.bytes_sent?.saturating_sub(info.bytes_retransmitted?);
        Some(Bytes::new((sent_once + u64::from(baseline.opened)).saturating_sub(info.bytes_acked?)))
    };
    let memory = Memory::read(&probe.shared.stream).unwrap_or_default();
    SenderSample {
        at_us,
        acked: Bytes::new(acked),
        in_flight: outstanding().or(info.in_flight),
        not_sent: info.not_sent,
        offered_window: info.send_window,
        cwnd: info.cwnd,
        ssthresh: info.ssthresh,
        mss: info.mss,
        rtt_us: info.rtt,
        rtt_var_us: info.rtt_var,
        path_mtu: info.path_mtu,
        min_rtt_us: info.min_rtt,
        retransmits: info.retransmits,
        retransmitted: info.bytes_retransmitted.map(Bytes::new),
        timeouts: info.timeouts,
        backoffs: None,
        lost: info.lost,
        reordering_seen: info.reordering_seen,
        dsacks: info.dsacks,
        heard: info.segments_received,
        delivered_ce: info.delivered_ce,
        delivery_rate_bps: info.delivery_rate,
        delivery_app_limited: info.delivery_app_limited,
        pacing_rate_bps: info.pacing_rate,
        max_pacing_rate_bps: info.max_pacing_rate,
        congestion_state: info.congestion_state.and_then(|number| wire::state_named(number.into())),
        busy_us: info.busy,
        rwnd_limited_us: info.rwnd_limited,
        sndbuf_limited_us: info.sndbuf_limited,
        send_buffer: memory.send_buffer,
        send_queued: memory.send_used,
        packets: None,
    }
}

fn receiver_sample(probe: &Probe, info: &Info, at_us: Micros) -> ReceiverSample {
    let received = info.bytes_received.map(|n| n.saturating_sub(probe.baseline.received));
    ReceiverSample {
        at_us,
        received: Bytes::new(received.unwrap_or_else(|| probe.shared.moved())),
        offered_window: info.receive_window,
        unread: unread(&probe.shared.stream),
        out_of_order: info.out_of_order,
        receive_buffer: Memory::read(&probe.shared.stream).ok().and_then(|memory| memory.receive_buffer),
        receive_space: info.receive_space,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> ReceiverSample {
        ReceiverSample { at_us: Micros::new(us), ..ReceiverSample::default() }
    }

    #[test]
    fn time_counts_from_the_first_byte() {
        let mut series = Series { receiver: vec![at(0), at(10), at(20), at(30)], ..Series::default() };
        series.count_from(Micros::new(15));
        assert_eq!(series.receiver, [at(0), at(5), at(15)]);
    }

    #[test]
    fn fast_connections_are_read_less_often_the_longer_they_run() {
        let millis = Duration::from_millis;
        for (rate, elapsed, rtt, pause) in [
            (FAST / 2.0, millis(5_000), NEAR / 2, SHORTEST),
            (FAST, millis(50), NEAR / 2, SHORTEST),
            (FAST, millis(1_000), NEAR / 2, millis(200)),
            (FAST, millis(1_000), NEAR, millis(50)),
            (10.0 * FAST, millis(60_000), NEAR / 2, RARE_WHEN_NEAR.1),
            (10.0 * FAST, millis(60_000), NEAR, RARE_WHEN_FAR.1),
        ] {
            assert_eq!(shortest(rate, elapsed, rtt), pause, "{rate} {elapsed:?} {rtt:?}");
        }
    }

    #[test]
    fn halving_keeps_the_first() {
        let mut series = Series { receiver: (0..5).map(at).collect(), ..Series::default() };
        series.halve();
        assert_eq!(series.receiver, [at(0), at(2), at(4)]);
    }
}
