//! The arguments of `archive` and `report`, which the Python package reads further.

use std::ffi::OsString;

use clap::{Args, ValueHint};

/// Read any number of captures into an archive, and query it (Python package)
///
/// A year of captures becomes a Parquet data set with a row for each connection, on all processors of this machine or on a
/// Ray cluster; queries say what was lost to which limiter, where, and since when. The Python package `fullpipe` does it,
/// with pyarrow, DuckDB and Ray: this command starts it, and where it is not installed exits with 21 and says how to get it.
/// FULLPIPE_PYTHON names the Python that has it [default: python3, python]. The exit code is the package's.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fullpipe archive /srv/captures --out archive
  fullpipe archive s3://bucket/captures --out archive --workers 8
  fullpipe archive /srv/captures --out archive --address auto      on the Ray cluster that runs here
  fullpipe archive query limiters archive
  fullpipe archive query change archive --at 2026-11-24
  fullpipe archive -- --help                                       all its options
  fullpipe report archive --html archive.html

More: docs/archive.md.")]
pub(crate) struct ArchiveArgs {
    /// What `python -m fullpipe.archive` takes: INPUT... --out DIR, `query NAME DIR`, `hash DIR`
    #[arg(value_name = "WORD", required = true, trailing_var_arg = true, allow_hyphen_values = true, value_hint = ValueHint::AnyPath)]
    pub(crate) words: Vec<OsString>,
}

/// Draw an archive as a page (Python package)
///
/// What was lost by day and limiter, by destination and by prefix, hosts without window scaling, and what could not be read:
/// one HTML file, offline. `fullpipe archive` makes archives; the same Python package is needed.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fullpipe report archive --html archive.html
  fullpipe report archive --html november.html --since 2026-11-01 --until 2026-12-01
  fullpipe report archive --html change.html --at 2026-11-24")]
pub(crate) struct ReportArgs {
    /// The archive and what `python -m fullpipe.archive report` takes: DIR --html FILE
    #[arg(value_name = "WORD", required = true, trailing_var_arg = true, allow_hyphen_values = true, value_hint = ValueHint::AnyPath)]
    pub(crate) words: Vec<OsString>,
}
