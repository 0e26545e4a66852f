//! What a peer sends: iperf3's messages and ours.

/// Any bytes as each of the messages that a peer may send.
#[cfg(fuzzing)]
pub fn wire(data: &[u8]) {
    fullpipe_measure::fuzzing::wire(data);
}
