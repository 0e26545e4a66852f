//! The arguments of `share`.

use clap::Args;
use fullpipe_units::{Micros, Rate};

/// Divide a small device's packet buffers among its sockets
///
/// Each socket has four lists of buffers from one pool: received, out of order, to send, unacknowledged. Every socket gets
/// its minimum; an interactive one gets what its messages need, so that they never wait for a buffer; the bulk sockets
/// divide the rest for the highest total goodput. The gain of one more buffer comes from the simulator's model of the
/// device. The reserve stays free: no division can exhaust the pool. Prints NetBurner's calls; changes nothing.
///
/// A group of sockets is `[Nx] bulk RATE RTT` or `[Nx] interactive [RATE] [RTT] [message SIZE]`, with `receives` where the
/// device receives the payload and `loss PART` where the path loses packets; groups are separated by commas.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fullpipe share --buffers 256 --sockets \"4x bulk 25M 15ms, 2x interactive\"
  fullpipe share --sockets \"bulk 1M 600ms loss 1% receives, 8x interactive message 512B\" --reserve 9
  fullpipe share --sockets \"3x bulk 100M 500us, interactive\" --max-wait 5ms
  fullpipe share --sockets \"4x bulk 25M 15ms\" --json | jq -r '.shares[].calls[].call'")]
pub(crate) struct ShareArgs {
    /// The sockets that are open at once
    #[arg(long, value_name = "GROUPS")]
    pub(crate) sockets: String,
    /// Packet buffers of the whole device (BUFFER_POOL_SIZE)
    #[arg(long, value_name = "N", default_value = "256", value_parser = super::whole::<u32>(1..=1_000_000))]
    pub(crate) buffers: u32,
    /// Buffers that stay free [default: a quarter]
    #[arg(long, value_name = "N", value_parser = super::whole::<u32>(0..=u32::MAX))]
    pub(crate) reserve: Option<u32>,
    /// Longest wait of an interactive message behind packets of bulk sockets
    #[arg(long, value_name = "TIME")]
    pub(crate) max_wait: Option<Micros>,
    /// Processing time of the device per packet
    #[arg(long, value_name = "TIME", default_value = "138us")]
    pub(crate) per_packet: Micros,
    /// Rate of the device's interface, which all its sockets share
    #[arg(long, value_name = "RATE", default_value = "100M")]
    pub(crate) link: Rate,
}
