//! What a peer sends: iperf3's messages and ours, and what reaches a server that takes orders.

/// Any bytes as each of the messages that a peer may send.
#[cfg(fuzzing)]
pub fn wire(data: &[u8]) {
    fullpipe_measure::fuzzing::wire(data);
    fullpipe_probe::fuzzing::datagram(data);
}

/// Any bytes as a message to a server that takes orders, and as an order.
#[cfg(fuzzing)]
pub fn orders(data: &[u8]) {
    fullpipe_tune::fuzzing::orders(data);
}
