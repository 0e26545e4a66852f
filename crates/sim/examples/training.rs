//! What simulations usually do, for a compiler that counts it (profile-guided optimization; `cargo xtask dist` and `bench sim`). One
//! thread, the same at each run. None of these paths is one that the bench measures.

use std::error::Error;

use fullpipe_path::QueueSize;
use fullpipe_sim::{HostSpec, Spec, knob, predict};
use fullpipe_units::{Micros, Rate};

/// Transfers over one path.
struct Transfers {
    rate_bps: u64,
    rtt_ms: u64,
    /// Part of the packets towards the receiver.
    loss: f64,
    /// Each so long in the simulation.
    seconds: u64,
    /// Platforms of sender and receiver.
    hosts: [&'static str; 2],
    /// Connections at the bottleneck.
    flows: u32,
    /// One transfer for each of these, with the settings that belong together.
    set: &'static [&'static [(&'static str, &'static str)]],
}

const LINUX: [&str; 2] = ["linux-6.18"; 2];

const TRANSFERS: &[Transfers] = &[
    Transfers {
        rate_bps: 300_000_000,
        rtt_ms: 20,
        loss: 0.0,
        seconds: 10,
        hosts: LINUX,
        flows: 1,
        set: &[&[("receiver.window", "1M")], &[]],
    },
    Transfers {
        rate_bps: 300_000_000,
        rtt_ms: 20,
        loss: 0.001,
        seconds: 10,
        hosts: LINUX,
        flows: 1,
        set: &[&[("sender.congestion", "cubic")], &[("sender.congestion", "reno")], &[("sender.congestion", "bbr")]],
    },
    Transfers {
        rate_bps: 50_000_000,
        rtt_ms: 60,
        loss: 0.0,
        seconds: 10,
        hosts: LINUX,
        flows: 1,
        set: &[
            &[("receiver.window", "16k")],
            &[("receiver.window", "48k")],
            &[("receiver.window", "150k")],
            &[("receiver.window", "400k")],
            &[("receiver.window", "4M")],
        ],
    },
    // Many connections at one bottleneck go by rounds once each has a packet on the way.
    Transfers { rate_bps: 500_000_000, rtt_ms: 40, loss: 0.0, seconds: 3, hosts: LINUX, flows: 100, set: &[&[]] },
    Transfers {
        rate_bps: 20_000_000,
        rtt_ms: 100,
        loss: 0.005,
        seconds: 10,
        hosts: ["windows-11", "freebsd-14"],
        flows: 1,
        set: &[&[("receiver.window", "1M")]],
    },
    Transfers {
        rate_bps: 20_000_000,
        rtt_ms: 50,
        loss: 0.0,
        seconds: 10,
        hosts: ["linux-4.x", "windows-2012"],
        flows: 1,
        set: &[&[("receiver.window", "64k")], &[("path.thin_acks", "4")]],
    },
];

fn main() -> Result<(), Box<dyn Error>> {
    for Transfers { rate_bps, rtt_ms, loss, seconds, hosts: [sender, receiver], flows, set } in TRANSFERS {
        let path = knob::path(
            Rate::from_bps(*rate_bps),
            Micros::from_millis(*rtt_ms),
            *loss,
            QueueSize::Bdp { multiple: 1.0, at_least: 1 },
        )?;
        let mut spec = Spec::new(path, HostSpec::named(sender)?, HostSpec::named(receiver)?);
        (spec.flows, spec.time) = (*flows, Micros::from_secs(*seconds));
        for &settings in *set {
            let settings: Vec<_> = settings.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
            let prediction = predict(&spec, &settings)?;
            println!(
                "{rate_bps} bit/s, {rtt_ms} ms, {flows} connections, {}: {}",
                prediction.set.join(" "),
                prediction.rate
            );
        }
    }
    Ok(())
}
