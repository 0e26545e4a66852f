//! Random situations: a path, two platforms, an application, and at most one handicap.

use fullpipe_path::{PolicerSpec, QueueSize, Random};
use fullpipe_sim::{Application, HostSpec, PLATFORMS, SimError, Spec, knob};
use fullpipe_units::{Bytes, Micros, Rate};

/// What is wrong, by construction. It need not be what limits: the truth of the run says that.
const FAMILIES: [&str; 12] = [
    "clean",
    "window",
    "send_buffer",
    "paced_writer",
    "slow_reader",
    "loss",
    "policed",
    "messages",
    "responses",
    "small_queue",
    "small_mtu",
    "stretched_acks",
];

/// One situation.
pub(crate) struct Drawn {
    pub(crate) family: &'static str,
    /// For whoever looks into it.
    pub(crate) words: String,
    pub(crate) spec: Spec,
}

struct Dice(Random);

impl Dice {
    /// Uniform in the logarithm.
    fn between(&mut self, from: f64, to: f64) -> f64 {
        from * (to / from).powf(self.0.unit())
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[((self.0.unit() * all.len() as f64) as usize).min(all.len() - 1)]
    }
}

/// The situation of this seed.
pub(crate) fn draw(seed: u64) -> Result<Drawn, SimError> {
    let mut dice = Dice(Random::new(Random::seed_of(seed, "situation")));
    let family = dice.of(&FAMILIES);
    let rate = dice.between(1e6, 2e8);
    let rtt_us = dice.between(2e3, 300e3);
    let product = (rate * rtt_us / 8e6).max(30_000.0);
    let multiple = if family == "small_queue" { dice.between(0.05, 0.25) } else { dice.between(0.5, 4.0) };
    let queue = QueueSize::Bdp { multiple, at_least: if family == "small_queue" { 8 } else { 32 } };
    let loss = if family == "loss" { dice.between(1e-4, 2e-2) } else { 0.0 };
    let path = knob::path(Rate::from_bps(rate as u64), Micros::new(rtt_us as u64), loss, queue)?;
    let names = [0, 1].map(|_| dice.of(PLATFORMS).name);
    let mut spec = Spec::new(path, HostSpec::named(names[0])?, HostSpec::named(names[1])?);
    spec.seed = seed;
    spec.capture = true;
    spec.receiver_opens = dice.0.chance(0.3);
    spec.time = Micros::new(((rtt_us * 60.0) as u64).clamp(3_000_000, 12_000_000));
    let handicap = handicap(family, &mut spec, &mut dice, rate, product)?;
    let words = format!(
        "{} -> {}, {:.1} Mbit/s, {:.1} ms, queue {multiple:.2} products{handicap}",
        names[0],
        names[1],
        rate / 1e6,
        rtt_us / 1e3
    );
    Ok(Drawn { family, words, spec })
}

/// Puts it into the situation; what it is, in words.
fn handicap(family: &str, spec: &mut Spec, dice: &mut Dice, rate: f64, product: f64) -> Result<String, SimError> {
    let part = dice.between(0.05, 0.6);
    let size = (product * part).max(6_000.0) as u64;
    Ok(match family {
        // Above 64 KB without window scaling there is no such window: then the situation is as it was.
        "window" if knob::set(spec, "receiver.window", &size.to_string()).is_ok() => format!(", window {size} B"),
        "send_buffer" => {
            knob::set(spec, "sender.buffer", &size.to_string())?;
            format!(", send buffer {size} B")
        }
        "paced_writer" => {
            let rate = Rate::from_bps((rate * part) as u64);
            spec.application = Application::Paced { rate, write: dice.of(&[1_000, 8_192, 65_536]) };
            format!(", {:?}", spec.application)
        }
        "slow_reader" => {
            knob::set(spec, "receiver.read_rate", &((rate * part) as u64).to_string())?;
            format!(", read at {:.0} % of the rate", part * 100.0)
        }
        "loss" => {
            let loss = spec.path.hops[0].ab.loss.map_or(0.0, |loss| loss.mean());
            format!(", loss {:.2} %", loss * 100.0)
        }
        "policed" => {
            let policed = Rate::from_bps((rate * dice.between(0.2, 0.8)) as u64);
            let burst = Bytes::new((product * dice.between(0.2, 2.0)) as u64);
            spec.path.hops[0].ab.police = Some(PolicerSpec { rate: policed, burst });
            format!(", policed at {policed}, burst {burst}")
        }
        "messages" => {
            spec.application = Application::Messages { size: dice.between(64.0, 2_000.0) as u32 };
            format!(", {:?}", spec.application)
        }
        "responses" => {
            let response = dice.between(2_000.0, 1e6) as u32;
            let think = Micros::new(dice.between(1e3, 200e3) as u64);
            spec.application = Application::Responses { request: 200, response, think };
            format!(", {:?}", spec.application)
        }
        "small_mtu" => {
            let mtu = dice.of(&[576, 900, 1_280]);
            knob::set(spec, "receiver.mtu", &mtu.to_string())?;
            format!(", MTU {mtu}")
        }
        "stretched_acks" => {
            let delay = dice.of(&[100, 200, 400]);
            knob::set(spec, "receiver.delayed_ack", &format!("{delay}ms"))?;
            format!(", acknowledgements delayed by {delay} ms")
        }
        _ => String::new(),
    })
}
