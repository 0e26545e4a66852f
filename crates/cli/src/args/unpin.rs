//! The flags of `unpin`.

use std::time::Duration;

use clap::Args;

use super::watch;

/// Give the buffers that an application set back to automatic sizing, without restarting it (Linux)
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

TARGET is a control group where it begins with a slash, a process where it is a number, else the
name of processes.")]
pub(crate) struct UnpinArgs {
    /// Whose sockets: the name of processes, the number of one, or a control group
    #[arg(value_name = "TARGET")]
    pub(crate) target: String,
    /// End after this time, and put everything back [default: at Ctrl-C]
    #[arg(long = "for", value_name = "TIME", value_parser = watch::duration)]
    pub(crate) duration: Option<Duration>,
    /// Only sockets that are open; calls for new ones do what they did
    #[arg(long)]
    pub(crate) open_only: bool,
    /// Begin without asking
    #[arg(short, long)]
    pub(crate) yes: bool,
}
