//! A fluid model of one TCP connection over one bottleneck, sampled as `TCP_INFO` would be: made timelines for the
//! judge. It knows slow start, CUBIC's growth and its 0.7, BBR's cycle, windows, buffers, a queue and random loss; it
//! knows nothing of single segments.

use fullpipe_diagnose::{
    Buffer, CongestionState, End, PathRate, ReceiverSample, RttSummary, SenderSample, Source, SynFacts, Transfer,
};
use fullpipe_units::{Bytes, Micros, Rate};

pub(crate) const MSS: f64 = 1_448.0;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Control {
    Cubic,
    Bbr,
}

/// The knobs of the model; `Default` is a clean CUBIC transfer over 100 Mbit/s and 40 ms with nothing in its way.
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) control: Control,
    pub(crate) path_bps: f64,
    pub(crate) rtt_us: f64,
    /// Queue before the bottleneck in bandwidth-delay products.
    pub(crate) queue: f64,
    pub(crate) seconds: f64,
    /// The window that the receiver offers.
    pub(crate) window: f64,
    /// The payload that the send buffer holds.
    pub(crate) send_buffer: f64,
    /// What the application writes, where it is slower than the network.
    pub(crate) app_bps: Option<f64>,
    /// Probability that a segment is lost on the wire.
    pub(crate) loss: f64,
    /// Duplicate SACKs per retransmission.
    pub(crate) spurious: f64,
    /// Whether slow start stops at the first delay (HyStart).
    pub(crate) hystart: bool,
    /// Fraction of the queue at which HyStart stops early, 0 for "as it should".
    pub(crate) early_exit: f64,
    pub(crate) known: Option<PathRate>,
    pub(crate) receiver_shift: Option<u8>,
    pub(crate) sender_shift: Option<u8>,
    pub(crate) pinned_receive: bool,
    pub(crate) pinned_send: bool,
    pub(crate) cpu: f64,
}

impl Default for World {
    fn default() -> Self {
        Self {
            control: Control::Cubic,
            path_bps: 100e6,
            rtt_us: 40_000.0,
            queue: 1.0,
            seconds: 10.0,
            window: 64e6,
            send_buffer: 64e6,
            app_bps: None,
            loss: 0.0,
            spurious: 0.0,
            hystart: true,
            early_exit: 0.0,
            known: None,
            receiver_shift: Some(10),
            sender_shift: Some(10),
            pinned_receive: false,
            pinned_send: false,
            cpu: 0.3,
        }
    }
}

/// The connection while the model runs.
struct State {
    cwnd: f64,
    ssthresh: Option<f64>,
    w_max: f64,
    epoch_us: f64,
    deaf_until_us: f64,
    full_since_us: Option<f64>,
    acked: f64,
    retransmits: f64,
    random: u64,
}

impl World {
    pub(crate) fn exact(rate_bps: f64) -> Option<PathRate> {
        Some(PathRate { rate_bps: Rate::from_bps(rate_bps as u64), lower_bound: false })
    }

    pub(crate) fn bdp(&self) -> f64 {
        self.path_bps * self.rtt_us / 8e6
    }

    pub(crate) fn transfer(&self) -> Transfer {
        let step = (self.rtt_us / 10.0).clamp(200.0, 5_000.0);
        let every = (self.rtt_us / 4.0).clamp(10_000.0, 250_000.0);
        let mut state = State {
            cwnd: 10.0 * MSS,
            ssthresh: None,
            w_max: 0.0,
            epoch_us: 0.0,
            deaf_until_us: 0.0,
            full_since_us: None,
            acked: 0.0,
            retransmits: 0.0,
            random: 11,
        };
        let (mut senders, mut receivers) = (Vec::new(), Vec::new());
        let (mut now, mut next) = (0.0, 0.0);
        while now <= self.seconds * 1e6 {
            let (in_flight, rate) = self.flow(&state, now);
            if now >= next {
                senders.push(self.sender_sample(&state, now, in_flight, rate));
                receivers.push(self.receiver_sample(&state, now));
                next += every;
            }
            state.acked += rate * step / 8e6;
            self.react(&mut state, now, step, in_flight, rate);
            now += step;
        }
        self.dress(state.acked, senders, receivers)
    }

    /// What is in flight and the rate that results.
    fn flow(&self, state: &State, now: f64) -> (f64, f64) {
        let mut most = state.cwnd.min(self.window).min(self.send_buffer);
        if self.control == Control::Bbr && state.ssthresh.is_some() {
            // Eight phases of one round trip: probe, drain, cruise.
            let gain = match (now / self.rtt_us) as u64 % 8 {
                0 => 1.25,
                1 => 0.85,
                _ => 1.0,
            };
            most = most.min(gain * self.model(state));
        }
        if let Some(app) = self.app_bps {
            most = most.min(app * self.rtt_us / 8e6);
        }
        (most, most * 8e6 / self.rtt(most))
    }

    /// BBR's own product: what the bottleneck or a window let it see.
    fn model(&self, _: &State) -> f64 {
        self.bdp().min(self.window).min(self.send_buffer)
    }

    fn rtt(&self, in_flight: f64) -> f64 {
        self.rtt_us + ((in_flight - self.bdp()).max(0.0) * 8e6 / self.path_bps)
    }

    fn react(&self, state: &mut State, now: f64, step: f64, in_flight: f64, rate: f64) {
        let queue = (in_flight - self.bdp()).max(0.0);
        let overflow = queue > (self.queue * self.bdp()).max(10.0 * MSS);
        let segments = rate * step / 8e6 / MSS;
        let struck = self.loss > 0.0 && unit(&mut state.random) < 1.0 - (1.0 - self.loss).powf(segments);
        if struck || overflow && self.control == Control::Cubic {
            state.retransmits += if overflow { 20.0 } else { 1.0 };
        }
        match self.control {
            Control::Cubic => self.cubic(state, now, step, in_flight, struck || overflow),
            Control::Bbr => self.bbr(state, now, step, in_flight),
        }
    }

    fn cubic(&self, state: &mut State, now: f64, step: f64, in_flight: f64, lost: bool) {
        if lost {
            if now >= state.deaf_until_us {
                state.w_max = state.cwnd;
                state.cwnd = (state.cwnd * 0.7).max(2.0 * MSS);
                state.ssthresh = Some(state.cwnd);
                state.epoch_us = now;
                state.deaf_until_us = now + 1.5 * self.rtt(in_flight);
            }
        } else if in_flight < 0.95 * state.cwnd {
            // Not limited by the window: it doesn't grow past twice of what is used.
            let slow_start = state.ssthresh.is_none() && state.cwnd < 2.0 * in_flight;
            state.cwnd *= if slow_start { 2_f64.powf(step / self.rtt_us) } else { 1.0 };
            state.epoch_us = now;
        } else if state.ssthresh.is_none() {
            state.cwnd *= 2_f64.powf(step / self.rtt_us);
            let delayed = self.rtt(in_flight) - self.rtt_us > (self.rtt_us / 8.0).clamp(4_000.0, 16_000.0);
            let early = self.early_exit > 0.0 && state.cwnd > self.early_exit * self.bdp();
            if self.hystart && (delayed || early) {
                state.ssthresh = Some(state.cwnd);
                state.w_max = state.cwnd;
                state.epoch_us = now;
            }
        } else {
            // RFC 9438: W(t) = 0.4 (t - K)^3 + W_max in segments and seconds, and Reno's pace as the least.
            let (w_max, t) = (state.w_max / MSS, (now - state.epoch_us) / 1e6);
            let start = if state.deaf_until_us > 0.0 { 0.7 * w_max } else { w_max };
            let k = ((w_max - start) / 0.4).cbrt();
            let reno = start + 0.53 * t * 1e6 / self.rtt_us;
            state.cwnd = (0.4 * (t - k).powi(3) + w_max).max(reno).max(2.0) * MSS;
        }
    }

    fn bbr(&self, state: &mut State, now: f64, step: f64, in_flight: f64) {
        if state.ssthresh.is_some() {
            state.cwnd = 2.0 * self.model(state);
            return;
        }
        state.cwnd = (state.cwnd * 2_f64.powf(step / self.rtt_us)).min(2.9 * self.model(state));
        if in_flight >= self.model(state) {
            let since = *state.full_since_us.get_or_insert(now);
            // Full after three rounds without growth; not asked where the application or its buffer is the limit.
            if now - since > 3.0 * self.rtt_us && self.app_bps.is_none() && self.send_buffer > self.bdp() {
                state.ssthresh = Some(self.model(state));
            }
        }
    }

    fn sender_sample(&self, state: &State, now: f64, in_flight: f64, rate: f64) -> SenderSample {
        let capped = self.send_buffer <= in_flight * 1.01;
        let idle_writer = self.app_bps.is_some();
        let bytes = |value: f64| Some(Bytes::new(value as u64));
        let buffer = if capped { self.send_buffer * 1.5 } else { 2.5 * state.cwnd };
        let not_sent = if capped || idle_writer { 0.0 } else { 0.8 * state.cwnd };
        let bbr = self.control == Control::Bbr;
        SenderSample {
            at_us: Micros::new(now as u64),
            acked: Bytes::new(state.acked as u64),
            in_flight: bytes(in_flight),
            not_sent: bytes(not_sent),
            offered_window: bytes(self.window),
            cwnd: bytes(state.cwnd),
            ssthresh: state.ssthresh.and_then(bytes),
            mss: Some(MSS as u32),
            rtt_us: Some(Micros::new(self.rtt(in_flight) as u64)),
            min_rtt_us: Some(Micros::new(self.rtt_us as u64)),
            retransmits: Some(state.retransmits as u64),
            retransmitted: bytes(state.retransmits * MSS),
            timeouts: Some(0),
            dsacks: Some((state.retransmits * self.spurious) as u32),
            reordering_seen: Some((state.retransmits * self.spurious) as u32),
            pacing_rate_bps: Some(Rate::from_bps((if bbr { 1.0 } else { 1.2 * state.cwnd / in_flight } * rate) as u64)),
            delivery_rate_bps: Some(Rate::from_bps(rate as u64)),
            congestion_state: Some(CongestionState::Open),
            send_buffer: bytes(buffer),
            send_queued: bytes(if idle_writer { in_flight * 1.2 } else { 0.85 * buffer }),
            ..SenderSample::default()
        }
    }

    fn receiver_sample(&self, state: &State, now: f64) -> ReceiverSample {
        ReceiverSample {
            at_us: Micros::new(now as u64),
            received: Bytes::new(state.acked as u64),
            offered_window: Some(Bytes::new(self.window as u64)),
            unread: Some(Bytes::ZERO),
            ..ReceiverSample::default()
        }
    }

    fn dress(&self, acked: f64, sender_samples: Vec<SenderSample>, receiver_samples: Vec<ReceiverSample>) -> Transfer {
        let syn = |window_scale| {
            Some(SynFacts {
                mss: Some(1_460),
                window_scale,
                sack_permitted: true,
                timestamps: true,
                window: Some(64_240),
            })
        };
        let control = if self.control == Control::Bbr { "bbr" } else { "cubic" };
        let buffer = |largest: f64, pinned| Some(Buffer { largest: Bytes::new(largest as u64), pinned });
        let rtt_us = Micros::new(self.rtt_us as u64);
        Transfer {
            source: Source::Live,
            sender: End {
                name: "a".into(),
                syn: syn(self.sender_shift),
                congestion_control: Some(control.into()),
                send_buffer: buffer(self.send_buffer * 1.5, self.pinned_send),
                cpu_busy: Some(self.cpu),
                ..End::default()
            },
            receiver: End {
                name: "b".into(),
                syn: syn(self.receiver_shift),
                receive_buffer: buffer(self.window * 2.0, self.pinned_receive),
                cpu_busy: Some(self.cpu),
                ..End::default()
            },
            bytes: Bytes::new(acked as u64),
            duration_us: Micros::new((self.seconds * 1e6) as u64),
            idle_rtt: Some(RttSummary { min_us: rtt_us, p50_us: rtt_us, count: 5 }),
            path_mtu: Some(1_500),
            lost_size: None,
            full_size_passed: false,
            drops: None,
            opening: None,
            write: None,
            write_every_us: None,
            link_rate: None,
            path_rate: self.known,
            sender_samples,
            receiver_samples,
            blind: Vec::new(),
        }
    }
}

/// SplitMix64.
fn unit(state: &mut u64) -> f64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
}
