//! The live test: a client and a server that move payload and read `TCP_INFO` of both ends while they do.
//!
//! On the wire it is iperf3's handshake with one extra key, so that one port serves both worlds: a real iperf3 client
//! runs against [`Server`], and [`Client`] against a real iperf3 server, of which then only our own end is seen. Between
//! two of ours a second kind of session, the conversation, carries pings, MTU probes and whatever a [`RequestHandler`] answers.
//!
//! What comes out is a [`Measurement`] with one [`fullpipe_diagnose::Transfer`] per connection. What is *not* here: any
//! judgement of it (`diagnose`), the probes themselves (`probe`), and any setting of the host (`host`, behind the request handler). Threads and blocking sockets
//! throughout, each wait with a deadline.

mod auth;
mod capacity;
mod client;
mod control;
mod error;
mod exchange;
mod flow;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod handshake;
mod lane;
mod max;
mod measurement;
mod mtu;
mod patience;
mod report;
mod sampler;
mod server;
mod spec;
mod sys;
mod talk;
mod target;
mod transfer;
mod udp;
mod wire;

pub use auth::{AuthError, Credentials, Padding, Users};
pub use capacity::{Capacity, CapacityOfDirection};
pub use client::{Client, ClientOptions, Loaded, SizeRow, SizeSide, StreamsRow, TcpMtu, UnderLoad};
pub use error::{Fault, Foreign, MeasureError};
pub use exchange::{DELAYED, ExchangeReport, ExchangeSpec, Latency};
pub use fullpipe_probe::{
    mtu::{MtuReport, PathMtu},
    train::Available,
};
pub use max::{Choice, Harm, Left, Mechanism, Push, Refused, Trial};
pub use measurement::{Counted, Cpu, DirectionMeasurement, Measurement, PeerKind};
pub use server::{Log, Server, ServerEvent, ServerOptions, TestFigures};
pub use spec::{Direction, Length, Phase, Progress, TestDirection, TestSpec, UdpSpec};
pub use sys::host::{name as host_name, system};
pub use talk::{Disconnect, Ends, Hello, RequestError, RequestHandler};
pub use target::{DEFAULT_PORT, Family, Target};
pub use udp::{DatagramSample, Datagrams};
