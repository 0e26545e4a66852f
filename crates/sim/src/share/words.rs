//! What is said of shares beside their numbers, wherever they are shown.

use super::{Kind, Shares, Sockets, Stop};

impl Shares {
    /// Why nobody gets more: a word, and a sentence.
    pub fn stop_words(&self) -> (&'static str, String) {
        match self.stop {
            Stop::Pool => {
                ("pool", "the pool ends here: a larger BUFFER_POOL_SIZE or a smaller --reserve gives more".to_owned())
            }
            Stop::Plateau => {
                ("plateau", "no bulk socket gains 0.1 % by another buffer: what is left over stays free".to_owned())
            }
            Stop::Device => {
                let text =
                    format!("the device and its link move {} at most: further buffers gain nothing", self.ceiling);
                ("device", text)
            }
            Stop::Wait => {
                ("wait", "--max-wait ends here: more packets would make interactive messages wait longer".to_owned())
            }
        }
    }
}

/// What a reader must know of any answer for these sockets.
pub fn notes(groups: &[Sockets]) -> Vec<String> {
    let mut notes = vec![
        "a prediction: each socket is simulated alone on the device, and waits for the acknowledgements of one set of \
         buffers before it writes the next; together they reach no more than the device moves. Nothing was measured"
            .to_owned(),
        "the default time per packet is that of a published module (scenario netburner-lan); another device is faster or \
         slower: measure it and give --per-packet"
            .to_owned(),
        "the buffers go packet by packet to the socket that gains most; a packet more never gains more than the one before \
         it, so by this model no other way to hand them out reaches more (a gain below 0.1 % is not worth a buffer)"
            .to_owned(),
    ];
    if groups.iter().any(|group| group.kind == Kind::Interactive && group.rate.is_none()) {
        notes.push("interactive sockets without a rate have the link's, and without a round-trip time 1 ms".to_owned());
    }
    notes.push(
        "call them on each socket after connect() or accept(); headers of 2009 call SetSocketUnackBuffers \
         setsocketackbuffers"
            .to_owned(),
    );
    notes.push(
        "a peer that vanishes keeps its buffers: close dead sockets, with TcpSendKeepAlive and TcpGetLastRxTime to find \
         them; GetFreeCount() shows what is left of the pool"
            .to_owned(),
    );
    notes
}
