//! The flags of `unpin`.

use std::time::Duration;

use clap::Args;

use super::watch;

/// Return buffers that an application fixed to automatic sizing, without restarting it (Linux)
///
/// An application that sets SO_SNDBUF or SO_RCVBUF ends automatic sizing for that socket, and a fixed buffer bounds its rate to the buffer over
/// the round trip. For as long as this command runs, such calls of TARGET are swallowed for new sockets (a BPF program at its control
/// group), and its open sockets are given back (SO_BUF_LOCK); then everything is put back. An application that asks for the size
/// reads back what it set. The rate of its connections before and after stands at the end. `watch` names such applications.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fullpipe unpin iperf3                           every process of that name, later ones too
  fullpipe unpin 4711 --for 1h                    one process
  fullpipe unpin /system.slice/nginx.service --yes
  fullpipe unpin rsync --open-only                leaves new sockets alone: needs no BPF

TARGET is a control group if it begins with a slash, a process ID if it is a number, and otherwise
a process name.")]
pub(crate) struct UnpinArgs {
    /// Whose sockets: a process name, a process ID, or a control group
    #[arg(value_name = "TARGET")]
    pub(crate) target: String,
    /// Stop after this time, and put everything back [default: at Ctrl-C]
    #[arg(long = "for", value_name = "TIME", value_parser = watch::duration)]
    pub(crate) duration: Option<Duration>,
    /// Only sockets that are open; calls for new ones do what they did
    #[arg(long)]
    pub(crate) open_only: bool,
    /// Begin without asking
    #[arg(short, long)]
    pub(crate) yes: bool,
}
