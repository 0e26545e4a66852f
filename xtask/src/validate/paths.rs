//! Paths drawn from a seed, and the scenario file of each.

use std::fmt;

use serde::Serialize;

/// The smallest and the largest rate; bit/s.
const RATES: (f64, f64) = (1.8e6, 1e9);
/// ... and round-trip time; us.
const ROUND_TRIPS: (f64, f64) = (1e3, 600e3);
/// Loss towards the receiver; most paths have none.
const LOSSES: [f64; 6] = [0.0, 0.0, 0.000_1, 0.0, 0.001, 0.01];
/// The queue, in bandwidth-delay products.
const QUEUES: [f64; 5] = [0.25, 0.5, 1.0, 2.0, 4.0];
/// How senders are controlled.
const CONTROLS: [&str; 3] = ["cubic", "reno", "bbr"];
/// Packets that every queue has room for.
const QUEUE_AT_LEAST: u32 = 20;
/// Payload of a Linux receive buffer and send buffer, as parts of what is set.
const RECEIVE_PAYLOAD: f64 = 0.58;
const SEND_PAYLOAD: f64 = 0.83;
/// The largest buffer that is set.
const MOST: f64 = 64e6;
/// The smallest window that is set: that of Windows XP.
const LEAST: f64 = 17_520.0;

/// Which window or buffer holds the sender, if any.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Windows {
    /// As the kernel comes: grows to 6 MB and 4 MB.
    Default,
    /// Four bandwidth-delay products both.
    Ample,
    /// The receive buffer holds so much payload.
    Receive(u64),
    /// The send buffer holds so much payload.
    Send(u64),
}

/// One path.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Drawn {
    pub(super) name: String,
    pub(super) seed: u64,
    pub(super) rate_bps: u64,
    pub(super) rtt_us: u64,
    pub(super) loss: f64,
    pub(super) queue: f64,
    pub(super) windows: Windows,
    pub(super) congestion: &'static str,
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    /// From 0 to 1.
    fn part(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// The numbers below `count` in random order.
    fn order(&mut self, count: u32) -> Vec<u32> {
        let mut all: Vec<u32> = (0..count).collect();
        for last in (1..all.len()).rev() {
            all.swap(last, (self.next() % (last as u64 + 1)) as usize);
        }
        all
    }
}

/// Each dimension is cut into as many parts as there are paths, and each part is used once (a Latin hypercube): few
/// paths, too, cover the whole range.
pub(super) fn draw(count: u32, seed: u64) -> Vec<Drawn> {
    let mut random = Random(seed);
    let [rates, round_trips, losses, queues, windows, congestion] = std::array::from_fn(|_| random.order(count));
    (0..count as usize)
        .map(|at| {
            let mut between = |(from, to): (f64, f64), stratum: u32| {
                from * (to / from).powf((f64::from(stratum) + random.part()) / f64::from(count))
            };
            let rate = between(RATES, rates[at]);
            let rtt = between(ROUND_TRIPS, round_trips[at]);
            let product = rate * rtt / 8e6;
            let window = (product * between((0.1, 0.8), windows[at])).max(LEAST) as u64;
            Drawn {
                name: format!("p{at:03}"),
                seed: random.next() % 1_000_000,
                rate_bps: rate as u64,
                rtt_us: rtt as u64,
                loss: LOSSES[losses[at] as usize % LOSSES.len()],
                queue: QUEUES[queues[at] as usize % QUEUES.len()],
                windows: match windows[at] % 4 {
                    0 => Windows::Default,
                    1 => Windows::Ample,
                    2 => Windows::Receive(window),
                    _ => Windows::Send(window),
                },
                congestion: CONTROLS[congestion[at] as usize % CONTROLS.len()],
            }
        })
        .collect()
}

impl Drawn {
    /// As a scenario file.
    pub(super) fn scenario(&self) -> String {
        let Self { name, seed, rate_bps, rtt_us, loss, queue, congestion, .. } = self;
        // Ten round trips of slow start, then a dozen to look at.
        let round_trips = |count: u64| (rtt_us * count).div_ceil(1_000_000);
        let (omit, seconds) = (round_trips(10).clamp(1, 5), round_trips(12).clamp(3, 7));
        let loss = if *loss > 0.0 { format!("ab = {{ loss = {loss} }}\n") } else { String::new() };
        let buffer =
            |part: f64| ((4.0 * *rate_bps as f64 * *rtt_us as f64 / 8e6 / part).min(MOST) as u64).max(6_291_456);
        let (send, receive) = match self.windows {
            Windows::Default => (None, None),
            Windows::Ample => {
                (Some(("16384", buffer(SEND_PAYLOAD))), Some(("131072".to_owned(), buffer(RECEIVE_PAYLOAD))))
            }
            Windows::Receive(window) => {
                // Rounded up, so that it holds the window whole.
                let size = (window as f64 / RECEIVE_PAYLOAD).ceil() as u64;
                (Some(("16384", buffer(SEND_PAYLOAD))), Some((size.to_string(), size)))
            }
            Windows::Send(window) => {
                let size = (window as f64 / SEND_PAYLOAD) as u64;
                (Some(("16384", size)), Some(("131072".to_owned(), buffer(RECEIVE_PAYLOAD))))
            }
        };
        let send = send.map(|(at_first, most)| format!("\"net.ipv4.tcp_wmem\" = \"4096 {at_first} {most}\"\n"));
        let receive = receive.map(|(at_first, most)| format!("\"net.ipv4.tcp_rmem\" = \"4096 {at_first} {most}\"\n"));
        format!(
            "schema = 1\nname = \"{name}\"\nsummary = \"a path to compare the simulator with the kernel on\"\n\
             seed = {seed}\n\n[path]\nmtu = 1500\nip = \"v4\"\n\n[[path.hops]]\nname = \"link\"\nrate = \"{rate_bps}\"\n\
             delay = \"{delay}us\"\nqueue = {{ bdp = {queue:?}, at_least = {QUEUE_AT_LEAST} }}\n{loss}\n\
             [a.settings]\n{}\n[b.settings]\n{}\n[test]\nseconds = {seconds}\nomit = {omit}\ncongestion = \"{congestion}\"\n\n\
             [expect.\"a->b\"]\nlimiter = \"path\"\nafter = 0.5\n",
            send.unwrap_or_default(),
            receive.unwrap_or_default(),
            delay = rtt_us / 2,
        )
    }
}

impl Drawn {
    /// The same path, whose receiver offers what a kernel was seen to offer: which share of a buffer is payload is decided by
    /// how its first segment lay in memory (0.58 or 0.62 in the lab), which is nothing that a model of TCP knows.
    pub(super) fn offering(&self, window: u64) -> Self {
        match self.windows {
            Windows::Receive(_) => Self { windows: Windows::Receive(window), ..self.clone() },
            _ => self.clone(),
        }
    }
}

impl fmt::Display for Windows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::Ample => f.write_str("ample"),
            Self::Receive(bytes) => write!(f, "receive {bytes} B"),
            Self::Send(bytes) => write!(f, "send {bytes} B"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_decided_by_their_seed_and_cover_the_range() {
        let texts = |seed| draw(40, seed).iter().map(Drawn::scenario).collect::<Vec<_>>();
        assert_eq!(texts(1), texts(1));
        assert_ne!(texts(1), texts(2));
        let drawn = draw(40, 1);
        assert!(
            drawn.iter().any(|path| path.rate_bps < 2_500_000) && drawn.iter().any(|path| path.rate_bps > 800_000_000)
        );
        assert!(drawn.iter().any(|path| path.rtt_us < 1_300) && drawn.iter().any(|path| path.rtt_us > 500_000));
        for kind in CONTROLS {
            assert!(drawn.iter().filter(|path| path.congestion == kind).count() >= 13);
        }
        assert!(drawn.iter().any(|path| path.loss > 0.005) && drawn.iter().any(|path| path.queue < 0.3));
    }
}
