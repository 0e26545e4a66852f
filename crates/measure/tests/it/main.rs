//! The live test over real sockets: against itself, against real iperf3 and against strangers.

#![expect(clippy::unwrap_used, reason = "helpers of tests may fail as tests do")]

#[cfg(target_os = "linux")]
mod accuracy;
mod auth;
#[cfg(target_os = "linux")]
mod flood;
mod hostile_client;
mod hostile_server;
mod interop;
mod iperf2;
mod loopback;
#[cfg(target_os = "linux")]
mod max;
#[cfg(target_os = "linux")]
mod message_sizes;
mod options;
mod patterns;
mod support;
mod transcript;
