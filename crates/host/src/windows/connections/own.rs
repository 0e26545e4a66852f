//! This program's own connections on a Windows whose sockets tell nothing of themselves (before 10 1703 and Server 2019):
//! their ESTATS, in the shape that `fullpipe_socket` reads from other kernels.
//!
//! Not run on such a Windows yet: Wine has no ESTATS, and what follows is Microsoft's documents (`tcpestats.h`, RFC 4898).

use std::net::SocketAddr;

use fullpipe_socket::Info;
use fullpipe_units::{Bytes, Micros};

use super::{Connection, Counters, Statistics, StatisticsError, switch_on};

/// What ESTATS tell of one connection between `local` and `remote`. Its statistics are switched on at the first look, which
/// takes an administrator, and end with the connection.
///
/// # Errors
/// Where this Windows has no such statistics, or doesn't let them be switched on.
pub fn info(system: &mut impl Statistics, local: SocketAddr, remote: SocketAddr) -> Result<Info, StatisticsError> {
    // The calls take the two ends alone.
    let connection = Connection { local, remote, pid: 0 };
    // For as long as the connection lasts.
    switch_on(system, &connection, &mut Vec::new())?;
    Ok(system.counters(&connection)?.info())
}

/// Lends ESTATS to `fullpipe_socket::Info::read` wherever a socket tells nothing of itself.
#[cfg(windows)]
pub fn lend() {
    fullpipe_socket::info::ask_elsewhere(|local, remote| {
        let ask = || info(&mut super::SystemStatistics::new()?, local, remote);
        ask().map_err(std::io::Error::other)
    });
}

/// The option was not sent, or not received: the document's -1.
const NO_OPTION: u8 = 255;
/// Places in [`super::PathRod`]: `losses` begins with `FastRetran`, `rest` with `RttVar`.
const TIMEOUTS: usize = 1;
const PACKETS_RETRANSMITTED: usize = 5;
const BYTES_RETRANSMITTED: usize = 6;
const DSACK_DUPS: usize = 25;
const MIN_RTT: usize = 2;
const CUR_MSS: usize = 8;

impl Counters {
    /// What they tell, in the shape of other kernels' answers. Times are whole milliseconds.
    pub fn info(&self) -> Info {
        let Self { data, congestion, path, send, receive, observed } = self;
        let shift = |shift: u8| Some(shift).filter(|shift| *shift != NO_OPTION);
        let [own, peer] = [shift(receive.win_scale_sent), shift(observed.win_scale_rcvd)];
        let bytes = |bytes: u32| Some(Bytes::new(bytes.into()));
        let millis = |ms: u32| Some(ms).filter(|ms| *ms > 0).map(|ms| Micros::from_millis(ms.into()));
        let loss = |at: usize| path.losses.get(at).map(|count| u64::from(*count));
        Info {
            scaling: Some(own.is_some() && peer.is_some()),
            own_shift: own,
            peer_shift: peer,
            mss: path.rest.get(CUR_MSS).copied().filter(|mss| *mss > 0),
            rtt: millis(path.smoothed_rtt),
            // All ones are no round-trip time.
            min_rtt: path.rest.get(MIN_RTT).copied().filter(|ms| *ms != u32::MAX).and_then(millis),
            cwnd: bytes(congestion.cur_cwnd),
            ssthresh: Some(congestion.cur_ssthresh).filter(|bytes| *bytes < u32::MAX).and_then(bytes),
            in_flight: bytes(data.snd_nxt.wrapping_sub(data.snd_una)),
            not_sent: u64::try_from(send.cur_app_w_queue).ok().map(Bytes::new),
            send_window: bytes(observed.cur_rwin_rcvd),
            receive_window: bytes(receive.cur_rwin_sent),
            bytes_acked: Some(data.thru_bytes_acked),
            bytes_received: Some(data.thru_bytes_received),
            bytes_sent: Some(data.data_bytes_out),
            bytes_retransmitted: loss(BYTES_RETRANSMITTED),
            retransmits: loss(PACKETS_RETRANSMITTED),
            timeouts: loss(TIMEOUTS),
            dsacks: path.losses.get(DSACK_DUPS).copied(),
            // "Sender limited" is more than a full send buffer, and left out, as with SIO_TCP_INFO.
            rwnd_limited: Some(Micros::from_millis(congestion.snd_lim_time_rwin.into())),
            ..Info::default()
        }
    }
}
