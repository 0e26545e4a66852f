//! The arguments of `mesh`.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use fullpipe_units::Micros;

use super::seconds;
use crate::page::PageArgs;

/// Measure every pair of a set of hosts, and name the one at fault
///
/// Each pair is measured in turn, so that none disturbs another, by `fullpipe check` on one of its hosts over SSH to `fullpipe
/// serve` on the other. Draws rate and limiter of every direction, names the one host or site that explains what is slow,
/// keeps the run, and says what is slower than before. Changes no setting. Exits with 1 if a direction is slow, slower
/// or could not be measured.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fullpipe mesh hosts.toml
  fullpipe mesh hosts.toml --seconds 10 --json | jq .suspect
  fullpipe mesh hosts.toml --html mesh.html
  fullpipe mesh hosts.toml --history -v
  fullpipe mesh hosts.toml --store postgres://team@db.example.net/fullpipe

HOSTS is a TOML file. `site`, `address`, `run`, `program` and [[path]] can be left out:
  name = \"wan\"
  [[host]]
  name = \"p1\"
  site = \"paris\"
  address = \"192.0.2.1:5201\"        # where the others reach its `fullpipe serve`
  run = [\"ssh\", \"root@192.0.2.1\"]   # what runs a command there; [] is this machine
  [[host]]
  name = \"t1\"
  site = \"tokyo\"
  program = \"/opt/fullpipe\"
  [[path]]
  a = \"paris\"
  b = \"tokyo\"
  rate = \"1G\"                       # slow is what carries less than 80 % of it")]
pub(crate) struct MeshArgs {
    /// File with the hosts; `-` is standard input
    #[arg(value_name = "HOSTS", value_hint = ValueHint::FilePath)]
    pub(crate) hosts: PathBuf,
    /// Time to measure each direction, in seconds (or with a unit: 500ms)
    #[arg(long, value_name = "TIME", value_parser = seconds, default_value = "3")]
    pub(crate) seconds: Micros,
    /// Omit this much at the start, for slow start
    #[arg(long, value_name = "TIME", value_parser = seconds, default_value = "1")]
    pub(crate) omit: Micros,
    /// Report a direction that carries this many percent less than the median of its last ten runs
    #[arg(long, value_name = "PERCENT", default_value = "20", value_parser = super::whole::<u8>(1..=99))]
    pub(crate) drop: u8,
    /// What keeps the runs: an SQLite file, or postgres://user@host/database (password: PGPASSWORD) [default: mesh.sqlite in
    /// the state folder]
    #[arg(long, value_name = "FILE|URL", value_hint = ValueHint::FilePath)]
    pub(crate) store: Option<PathBuf>,
    /// Neither keep the run nor look at earlier ones
    #[arg(long, conflicts_with_all = ["store", "history"])]
    pub(crate) no_store: bool,
    /// Show earlier runs, newest first, and measure nothing
    #[arg(long)]
    pub(crate) history: bool,
    /// Also write the result as a page: one HTML file with the matrix, for any browser, offline
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "history", help_heading = "Output")]
    pub(crate) html: Option<PathBuf>,
}

impl MeshArgs {
    /// Where a page of it goes; a mesh has no chart of its own.
    pub(crate) fn page(&self) -> PageArgs {
        PageArgs { html: self.html.clone(), ..PageArgs::default() }
    }
}
