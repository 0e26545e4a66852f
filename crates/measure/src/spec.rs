//! What to measure, and its progress.

use std::time::Duration;

use fullpipe_units::{Bytes, Micros, Rate};
use serde::{Deserialize, Serialize};

use crate::{
    error::MeasureError,
    udp::Datagrams,
    wire::{MAX_OWN_STREAMS, MAX_STREAMS},
};

/// A datagram holds at least its own number and the moment when it was sent.
const DATAGRAM_LEAST: u64 = 16;

/// What IPv4 takes in one datagram.
const DATAGRAM_MOST: u64 = 65_507;

/// Two of these stay below the 8 KiB that iperf3 takes as parameters since 3.18.
const LONGEST_TEXT: usize = 2_000;

/// Turns of 25 ms each, for four ways to send and two to receive.
const LEAST_TRIALS: Duration = Duration::from_millis(500);

/// One test.
#[derive(Clone, Debug, PartialEq)]
pub struct TestSpec {
    /// Who sends.
    pub direction: TestDirection,
    /// Connections in each direction, 1 to 2,048; a foreign server takes 128 at most.
    pub streams: u32,
    /// When the test is over.
    pub length: Length,
    /// Time at the beginning that the steady rate leaves out; comes on top of [`Length::Time`].
    pub omit: Duration,
    /// The size of the sender's writes, up to 1 MiB (iperf3's limit). iperf3's own default of 128 KiB leaves a third of
    /// a fast path unused, so that ours is 1 MB.
    pub block: Bytes,
    /// Datagrams instead of a byte stream: what gets lost stays lost, and is counted.
    pub udp: Option<UdpSpec>,
    /// The receiving application copies the payload, as most applications do, instead of discarding it in the kernel.
    pub copy: bool,
    /// Congestion control of the sending sockets; the system's default where absent.
    pub congestion_control: Option<String>,
    /// `SO_SNDBUF` of the sending sockets: an application that sets it switches automatic sizing off.
    pub send_buffer: Option<Bytes>,
    /// `SO_RCVBUF` of the receiving sockets, with the same effect. The far end sets it on the accepted connection, after
    /// the window-scale shift was negotiated.
    pub receive_buffer: Option<Bytes>,
    /// Payload rate that each sender paces itself to.
    pub pace: Option<Rate>,
    /// Writes of `block` that each sender makes without a pause, whatever its pace, up to 1,000 (iperf3's limit); 0 for one.
    pub burst: u32,
    /// `SO_MAX_PACING_RATE` of the sending sockets (iperf3's `--fq-rate`): the kernel spreads each sender's packets out to
    /// this rate at most. At most 34 Gbit/s, as the option takes 32 bits of bytes.
    pub max_pacing_rate: Option<Rate>,
    /// Small writes leave at once (`TCP_NODELAY`).
    pub nodelay: bool,
    /// The largest segment (`TCP_MAXSEG`).
    pub mss: Option<u16>,
    /// The byte with the differentiated-services code point (RFC 2474) that packets carry.
    pub tos: Option<u8>,
    /// Senders hand pages of a file to the kernel instead of copying from memory (`sendfile`), where the system can.
    pub zerocopy: bool,
    /// What to call the test; it stands in the server's log.
    pub title: Option<String>,
    /// Whatever shall stand beside the results at the server.
    pub extra_data: Option<String>,
    /// Ask for what the server would print.
    pub server_output: bool,
    /// How often progress is reported.
    pub progress_every: Duration,
    /// Pings before the load; 0 for none.
    pub pings: u32,
    /// Read `TCP_INFO` of all connections while payload moves. Without it there are totals, and no series to judge.
    pub sampling: bool,
}

/// What is special to a test with datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpSpec {
    /// Number datagrams with 64 bits instead of 32.
    pub counters_64bit: bool,
}

/// Who sends in a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TestDirection {
    /// The client.
    Up,
    /// The server.
    Down,
    /// Both at the same time, on connections of their own.
    Both,
}

/// When a test is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// After this time, to the millisecond (a foreign iperf3 server is given whole seconds, rounded up).
    Time(Duration),
    /// When this much payload has arrived in each direction.
    Bytes(Bytes),
}

/// One direction, as the client sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Direction {
    /// From the client to the server; `a->b` in documents, where `a` is the client.
    #[serde(rename = "a->b")]
    Up,
    /// From the server to the client.
    #[serde(rename = "b->a")]
    Down,
}

impl From<Direction> for TestDirection {
    fn from(direction: Direction) -> Self {
        match direction {
            Direction::Up => Self::Up,
            Direction::Down => Self::Down,
        }
    }
}

/// How far a test has come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// What is going on.
    pub phase: Phase,
    /// Since the phase of transfer began.
    pub elapsed: Duration,
    /// How long the transfer is to last; absent where bytes end it.
    pub expected: Option<Duration>,
    /// Payload rate from the client since the last report (acknowledged), where it sends.
    pub up_bps: Option<Rate>,
    /// Payload rate to the client since the last report, where it receives.
    pub down_bps: Option<Rate>,
    /// The smoothed round-trip time of the first sending connection, else of the first.
    pub rtt_us: Option<Micros>,
    /// The congestion window of the first sending connection of this end.
    pub cwnd: Option<Bytes>,
    /// The window that the peer of that connection offers.
    pub window: Option<Bytes>,
    /// Segments that this end's senders retransmitted so far.
    pub retransmits: Option<u64>,
    /// What became so far of the datagrams that this end receives.
    pub datagrams: Option<Datagrams>,
}

/// What a test is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Connecting and agreeing on the test.
    Connecting,
    /// Round trips without load.
    Idle,
    /// Transferring, still in the omitted time.
    Omitted,
    /// Transferring.
    Running,
    /// Exchanging results.
    Finishing,
}

impl Default for TestSpec {
    /// One stream up for 10 s.
    fn default() -> Self {
        Self {
            direction: TestDirection::Up,
            streams: 1,
            length: Length::Time(Duration::from_secs(10)),
            omit: Duration::ZERO,
            block: Bytes::new(1_000_000),
            udp: None,
            copy: false,
            congestion_control: None,
            send_buffer: None,
            receive_buffer: None,
            pace: None,
            burst: 0,
            max_pacing_rate: None,
            nodelay: false,
            mss: None,
            tos: None,
            zerocopy: false,
            title: None,
            extra_data: None,
            server_output: false,
            progress_every: Duration::from_millis(500),
            pings: 10,
            sampling: true,
        }
    }
}

impl TestSpec {
    pub(crate) fn check(&self) -> Result<(), MeasureError> {
        let refuse = |field, value: String, reason| Err(MeasureError::BadSpec { field, value, reason });
        if !(1..=MAX_OWN_STREAMS).contains(&self.streams) {
            return refuse("the number of streams", self.streams.to_string(), "1 to 2,048 are possible");
        }
        if self.udp.is_some() && self.streams > MAX_STREAMS {
            return refuse("the number of streams", self.streams.to_string(), "1 to 128 are possible with datagrams");
        }
        if !(1..=1 << 20).contains(&self.block.get()) {
            return refuse("the block size", self.block.to_string(), "1 B to 1 MiB are possible");
        }
        if self.udp.is_some() && !(DATAGRAM_LEAST..=DATAGRAM_MOST).contains(&self.block.get()) {
            return refuse("the datagram", self.block.to_string(), "16 B to 65,507 B are possible");
        }
        if self.pace.is_some_and(|pace| pace.bps() == 0) {
            return refuse("the rate", "0 bit/s".to_owned(), "leave it out for as fast as possible");
        }
        if self.omit > Duration::from_secs(600) {
            return refuse("the omitted time", format!("{} s", self.omit.as_secs_f64()), "at most 600 s are possible");
        }
        let day = Duration::from_secs(86_400);
        match self.length {
            Length::Time(time) if time < Duration::from_millis(1) || time > day => {
                return refuse("the duration", format!("{} s", time.as_secs_f64()), "1 ms to a day are possible");
            }
            Length::Bytes(Bytes::ZERO) => return refuse("the size", "0 B".to_owned(), "there is nothing to send"),
            _ => {}
        }
        if let Some(mss) = self.mss.filter(|mss| !(88..=32_767).contains(mss)) {
            return refuse("the segment size", format!("{mss} B"), "88 B to 32,767 B are possible");
        }
        let long = [&self.title, &self.extra_data].into_iter().flatten().find(|text| text.len() > LONGEST_TEXT);
        if let Some(text) = long {
            let value = format!("{} bytes long", text.len());
            return refuse("the title or the extra data", value, "at most 2,000 bytes fit beside the parameters");
        }
        for buffer in [self.send_buffer, self.receive_buffer].into_iter().flatten() {
            if !(1..=512 << 20).contains(&buffer.get()) {
                return refuse("a socket buffer", buffer.to_string(), "1 B to 512 MiB are possible");
            }
        }
        Ok(())
    }

    /// What a test as fast as can be needs beside that.
    pub(crate) fn check_max(&self) -> Result<(), MeasureError> {
        let refuse = |field, value: &str, reason| Err(MeasureError::BadSpec { field, value: value.to_owned(), reason });
        if !cfg!(target_os = "linux") {
            return refuse("the effort", "the greatest", "only on Linux there is anything faster to try; leave it out");
        }
        if self.omit < LEAST_TRIALS {
            let omit = format!("{} s", self.omit.as_secs_f64());
            return refuse("the omitted time", &omit, "at least 0.5 s are needed to try what is fastest");
        }
        if matches!(self.length, Length::Bytes(_)) {
            return refuse("the end", "a number of bytes", "to be as fast as can be takes a test that time ends");
        }
        let set = [(self.udp.is_some(), "datagrams"), (self.copy, "copying"), (self.zerocopy, "a file")];
        let set = set.into_iter().chain([(self.pace.is_some(), "a rate")]).find(|(is_set, _)| *is_set);
        match set {
            Some((_, what)) => refuse("the way to move payload", what, "to be as fast as can be means to choose it"),
            None => Ok(()),
        }
    }

    /// What only a foreign server refuses; it would say no more than that the number is too large.
    pub(crate) fn check_foreign(&self) -> Result<(), MeasureError> {
        if self.streams <= MAX_STREAMS {
            return Ok(());
        }
        Err(MeasureError::BadSpec {
            field: "the number of streams",
            value: self.streams.to_string(),
            reason: "an iperf3 server takes 128 at most; `fullpipe serve` takes 2,048",
        })
    }

    /// How long the transfer lasts with its omitted time, where time ends it.
    pub(crate) fn expected(&self) -> Option<Duration> {
        match self.length {
            Length::Time(time) => Some(time + self.omit),
            Length::Bytes(_) => None,
        }
    }
}
