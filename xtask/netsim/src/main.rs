//! smoltcp's `netsim` as `cargo test --release` builds it in smoltcp's own package: cargo's release profile, and all of its default
//! features. It moves BYTES over a path of RATE bit/s with a round trip of RTT microseconds and a queue of QUEUE packets, BUFFER bytes
//! in each of the sockets' buffers, and prints how many segments with data were sent, for how long in virtual time, and how much
//! processor time that took; s. `cargo xtask bench sim` runs it beside the simulator.

#[path = "../../../crates/sim/examples/bench_sim/clock.rs"]
mod clock;
#[path = "../../../crates/sim/examples/bench_sim/smoltcp.rs"]
mod smoltcp;

use std::{env, error::Error, fmt::Display};

use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha20Rng;

/// Whether a packet is lost, by the generator that smoltcp's test has.
struct Chance(ChaCha20Rng);

impl Chance {
    fn new(seed: u64) -> Self {
        Self(ChaCha20Rng::seed_from_u64(seed))
    }

    fn chance(&mut self, part: f64) -> bool {
        self.0.r#gen::<f64>() < part
    }
}

/// Its default features have no congestion control.
const fn prepare(_: &mut ::smoltcp::socket::tcp::Socket<'_>) {}

/// For the log, which nobody keeps, as in the test without RUST_LOG.
fn trace(packet: &impl Display) {
    log::trace!("{packet}");
}

fn main() -> Result<(), Box<dyn Error>> {
    let numbers: Vec<u64> = env::args().skip(1).map(|text| text.parse()).collect::<Result<_, _>>()?;
    let [bytes, rate_bps, rtt_us, queue, buffer] = numbers[..] else {
        return Err("usage: fullpipe-netsim BYTES RATE RTT QUEUE BUFFER".into());
    };
    let begun = clock::processor_time();
    let (segments, virtual_seconds) = smoltcp::transfer(bytes, rtt_us, buffer as usize, Some((rate_bps, queue)))?;
    println!("{segments} {virtual_seconds} {}", clock::processor_time() - begun);
    Ok(())
}
