//! A device and a path that a user describes: which counts of buffers are worth their memory there.

use fullpipe_path::{Scenario, ScenarioError};
use fullpipe_units::{Micros, Rate};

/// A NetBurner's pool, and the memory of each of its buffers.
pub const POOL: u64 = 256;
/// See [`POOL`].
pub const BUFFER_BYTES: u64 = 1_548;
/// Buffers for packets out of order that each connection keeps beside its three lists.
const OUT_OF_ORDER: u64 = 5;
/// A count is as good as the best one where its transfer takes at most this much longer.
const AS_GOOD: f64 = 0.03;
/// Payload of a full packet on Ethernet, and the smallest count that is tried: with it a transfer takes longest.
const SEGMENT: u64 = 1_460;
const FEWEST: u64 = 5;
/// How long that transfer shall take, in seconds.
const LONGEST_S: u64 = 3;

/// What a user tells.
#[derive(Clone, Copy, Debug)]
pub struct OwnDevice {
    /// The slowest link's rate.
    pub rate: Rate,
    /// The path's round-trip time.
    pub rtt: Micros,
    /// The part of all packets that it loses, each way.
    pub loss: f64,
    /// How long the device is busy with a packet.
    pub per_packet: Micros,
    /// Whether its application waits for each set of buffers to be acknowledged before it writes the next.
    pub waits: bool,
    /// Connections that fill their buffers at the same time.
    pub connections: u16,
}

impl OwnDevice {
    /// The scenario that measures it.
    ///
    /// # Errors
    /// A figure is out of range.
    pub fn scenario(&self) -> Result<Scenario, ScenarioError> {
        let Self { rate, rtt, loss, per_packet, waits, .. } = self;
        let (rate, one_way, busy) = (rate.bps(), rtt.get() / 2, per_packet.get());
        // Several runs, because a loss more or less is much in a short transfer.
        let runs = if *loss > 0.0 { 5 } else { 1 };
        let text = format!(
            "schema = 1\nname = \"own-device\"\nsummary = \"a device of your own\"\nsource = \"the command line\"\nseed = 5\n\
             [path]\nmtu = 1500\nip = \"v4\"\n[[path.hops]]\nname = \"path\"\nrate = \"{rate}\"\noverhead = 38\n\
             delay = \"{one_way}us\"\nloss = {loss:?}\nqueue = {{ packets = 100 }}\n\
             [a]\nimitates = \"the engine with NetBurner's profile and the device's time per packet\"\n\
             [device]\nbytes = {}\nper_packet = \"{busy}us\"\nwaits = {waits}\nbuffers = [5, 10, 15, 20, 25, 30, 35, 40, 43]\nruns = {runs}\n",
            self.bytes()
        );
        Scenario::parse(&text, "the device on the command line")
    }

    /// Payload of a transfer: 4 MB at the most, and less where five buffers would take long for that.
    fn bytes(&self) -> u64 {
        let each_second = (FEWEST * SEGMENT * 1_000_000 / self.rtt.get().max(1)).min(self.rate.bps() / 8);
        (each_second * LONGEST_S).clamp(100_000, 4_000_000)
    }

    /// Buffers that the lists of all connections may hold by their counts: three of `buffers`, and those out of order.
    pub fn asked(&self, buffers: u16) -> u64 {
        (3 * u64::from(buffers) + OUT_OF_ORDER) * u64::from(self.connections)
    }

    /// Buffers that they can hold: no more than there are.
    pub fn held(&self, buffers: u16) -> u64 {
        self.asked(buffers).min(POOL)
    }

    /// Whether a quarter of the pool is left for everything else.
    pub fn fits(&self, buffers: u16) -> bool {
        self.asked(buffers) <= POOL * 3 / 4
    }

    /// The smallest count that is about as fast as the best one, of those that fit; of one direction's counts, ascending, and
    /// seconds.
    ///
    /// More buffers never make a transfer slower: where one measured so, the path's luck did it, and both stand for the same time.
    pub fn advised(&self, measured: impl Iterator<Item = (u16, f64)>) -> Option<u16> {
        let fitting: Vec<(u16, f64)> = measured.filter(|(buffers, _)| self.fits(*buffers)).collect();
        let seconds: Vec<f64> = fitting.iter().map(|(_, seconds)| *seconds).collect();
        let smoothed = never_rising(&seconds);
        let best = *smoothed.last()?;
        let as_good = |(_, seconds): &(_, f64)| *seconds <= best * (1.0 + AS_GOOD);
        fitting.iter().zip(smoothed).find(as_good).map(|((buffers, _), _)| *buffers)
    }
}

/// The figures that never rise and are nearest to these by least squares (isotonic regression, pool adjacent violators).
fn never_rising(figures: &[f64]) -> Vec<f64> {
    let mut pools: Vec<(f64, usize)> = Vec::new();
    for figure in figures {
        let (mut sum, mut count) = (*figure, 1);
        while let Some((below, members)) =
            pools.pop_if(|(below, members)| *below / (*members as f64) < sum / count as f64)
        {
            sum += below;
            count += members;
        }
        pools.push((sum, count));
    }
    pools.into_iter().flat_map(|(sum, count)| std::iter::repeat_n(sum / count as f64, count)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(connections: u16) -> OwnDevice {
        let (rate, rtt) = (Rate::from_bps(25_000_000), Micros::new(7_454));
        OwnDevice { rate, rtt, loss: 0.0, per_packet: Micros::new(138), waits: true, connections }
    }

    #[test]
    fn what_a_user_tells_is_a_scenario() {
        let lossy = OwnDevice { loss: 0.01, rtt: Micros::from_millis(600), waits: false, ..own(1) };
        let scenario = lossy.scenario().unwrap();
        assert_eq!(scenario.path.rtt(), lossy.rtt);
        let device = scenario.device.unwrap();
        // 5 x 1,460 B / 600 ms x 3 s = 36,498 B, and 100,000 at the least.
        assert_eq!((device.bytes.get(), device.runs, device.waits), (100_000, 5, false));
        let quick = own(1).scenario().unwrap().device.unwrap();
        assert_eq!((quick.bytes.get(), quick.runs, quick.waits), (2_938_017, 1, true));
    }

    #[test]
    fn one_lucky_count_of_a_lossy_path_is_not_taken_for_the_plateau() {
        // 10 was lucky in its losses, 20 unlucky.
        let measured = [(5, 9.0), (10, 5.9), (15, 6.1), (20, 6.6), (25, 4.1), (30, 4.2), (35, 4.0), (40, 4.1)];
        assert_eq!(own(1).advised(measured.into_iter()), Some(25));
        let measured = [(5, 9.0), (10, 3.9), (15, 4.6), (20, 4.2), (25, 4.1), (30, 4.2)];
        assert_eq!(own(1).advised(measured.into_iter()), Some(10));
        assert_eq!(never_rising(&[3.0, 1.0, 2.0, 1.0]), [3.0, 1.5, 1.5, 1.0]);
        assert_eq!(never_rising(&[1.0, 2.0, 3.0]), [2.0; 3]);
    }

    #[test]
    fn the_smallest_count_on_the_plateau_is_advised() {
        let measured = [(5, 5.66), (20, 2.12), (40, 1.72), (43, 1.70)];
        assert_eq!(own(1).advised(measured.into_iter()), Some(40));
        // (3 x 20 + 5) x 2 = 130 of 192 buffers; 40 would be 250.
        assert_eq!(own(2).advised(measured.into_iter()), Some(20));
        assert_eq!(own(20).advised(measured.into_iter()), None);
        assert_eq!(own(2).held(20), 130);
        // (3 x 43 + 5) x 2 = 268 are asked for, and 256 there.
        assert_eq!((own(2).asked(43), own(2).held(43)), (268, POOL));
    }
}
