//! A device's packet buffers over its sockets, ready to be shown.

use fullpipe_diagnose::Limiter;
use fullpipe_units::{Bytes, Micros, Rate};

/// What `share` found.
#[derive(Clone, Debug, Default)]
pub struct PoolShares {
    /// Buffers of the pool.
    pub pool: u32,
    /// Memory of one buffer.
    pub buffer: Bytes,
    /// Buffers that no socket gets.
    pub reserve: u32,
    /// Buffers of all sockets together.
    pub shared: u32,
    /// Buffers beyond the reserve that nobody gets.
    pub left: u32,
    /// What the bulk sockets reach together.
    pub total: Rate,
    /// What the device can move at most.
    pub device: Rate,
    /// The longest that an interactive message waits behind packets of bulk sockets; absent without interactive sockets.
    pub wait: Option<Micros>,
    /// Why nobody gets more: a word, and a sentence.
    pub stop: (&'static str, String),
    /// The shares.
    pub rows: Vec<ShareRow>,
    /// What the reader must know besides.
    pub notes: Vec<String>,
}

/// What some sockets of a group get.
#[derive(Clone, Debug)]
pub struct ShareRow {
    /// The group, as it was asked for.
    pub sockets: String,
    /// How many sockets of the group get this.
    pub count: u16,
    /// How many sockets the group has.
    pub of: u16,
    /// Received in order, out of order, to send, unacknowledged: as [`SHARE_CALLS`] has them, each with its reason.
    pub numbers: [(u16, String); 4],
    /// What one of them reaches.
    pub rate: Option<Rate>,
    /// What holds it then.
    pub held: Option<Limiter>,
    /// How long a message takes, and how long with ample buffers.
    pub latency: Option<(Micros, Micros)>,
}

/// NetBurner's calls for the four numbers of a socket, and the keys of the numbers in JSON.
pub const SHARE_CALLS: [(&str, &str); 4] = [
    ("SetSocketRxBuffers", "receive"),
    ("SetOutOfOrderBuffers", "out_of_order"),
    ("SetSocketTxBuffers", "transmit"),
    ("SetSocketUnackBuffers", "unacknowledged"),
];

impl ShareRow {
    /// Buffers of one of these sockets.
    pub fn buffers(&self) -> u32 {
        self.numbers.iter().map(|(buffers, _)| u32::from(*buffers)).sum()
    }

    /// The calls for one of these sockets, as they stand in a program.
    pub fn calls(&self) -> [String; 4] {
        std::array::from_fn(|place| format!("{}(fd, {});", SHARE_CALLS[place].0, self.numbers[place].0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_calls_are_those_of_the_catalogue() {
        let catalogue = fullpipe_knobs::Catalogue::for_family(fullpipe_knobs::Family::NetBurner).unwrap();
        for (name, _) in SHARE_CALLS {
            let knob = fullpipe_knobs::Address::Named { kind: "call".to_owned(), name: name.to_owned() };
            assert!(catalogue.find(&knob).is_some(), "{name}");
        }
    }
}
