//! The flags of `web`.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use fullpipe_units::Bytes;

/// Look at results in a browser, start checks there, drop captures
///
/// A page on this machine: reports that were kept, a check or a measurement started and followed with live charts, a capture dropped
/// on the page and read, settings tried in the simulator, and what was changed on this machine. It changes no setting, and
/// asks nothing of any network but the tests that you start. Only this machine can reach it unless --listen says otherwise;
/// then the link has a token. Anybody who can reach it without a token can start tests as you: on a machine with other users give
/// --token. It speaks HTTP without TLS: beyond this machine use it inside `ssh -L 7070:127.0.0.1:7070 HOST`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fullpipe web --open
  fullpipe web --listen 127.0.0.1:8080 --token
  fullpipe web --listen 192.0.2.7:7070        the link that it prints has a token")]
pub(crate) struct WebArgs {
    /// Address and port to listen on; a port alone listens on localhost only
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7070")]
    pub(crate) listen: String,
    /// Require a token on this machine, too
    #[arg(long)]
    pub(crate) token: bool,
    /// Host name that browsers may use, besides localhost and IP addresses; can be given several times
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Vec<String>,
    /// Open it in a browser
    #[arg(long)]
    pub(crate) open: bool,
    /// Folder that keeps the reports [default: the folder `reports` beside the journal]
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub(crate) dir: Option<PathBuf>,
    /// Largest capture that is accepted
    #[arg(long, value_name = "SIZE", default_value = "4GB")]
    pub(crate) largest: Bytes,
}
