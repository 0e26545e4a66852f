//! A labelled corpus of captures, judged: `fullpipe-lab`'s example makes it, `fullpipe read` says why each transfer was
//! slow, and the tables here say how often that was right.

mod index;
mod judge;
mod peers;

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use clap::Args;
use xshell::{Shell, cmd};

use crate::setup;

/// Where the corpus goes, and what of it.
#[derive(Args)]
pub(crate) struct Corpus {
    /// The folder; what is there already is not made again. Without, it is removed at the end.
    dir: Option<PathBuf>,
    /// Only this case (`clean`, `loss`, ...).
    #[arg(long)]
    only: Option<String>,
    /// Keep the folder that was not named.
    #[arg(long)]
    keep: bool,
    /// Judge what is in the folder and make nothing.
    #[arg(long, requires = "dir")]
    judge_only: bool,
    /// Transfers at a time: more than one only where there are processors for it.
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// Judge with this `fullpipe` instead of building one.
    #[arg(long, value_name = "FILE")]
    with: Option<PathBuf>,
}

/// Below this part of right verdicts, and of vantages that agree, it fails.
const AIM: f64 = 0.98;

/// Makes, judges, compares.
pub(crate) fn run(shell: &Shell, corpus: &Corpus) -> Result<()> {
    let dir = corpus.dir.clone().unwrap_or_else(|| shell.current_dir().join("target/corpus"));
    if !corpus.judge_only && !make(shell, corpus, &dir)? {
        return Ok(());
    }
    let program = match &corpus.with {
        Some(program) => program.clone(),
        None => build(shell)?,
    };
    let mut runs = index::read(&dir)?;
    runs.retain(|run| corpus.only.as_ref().is_none_or(|only| *only == run.case));
    let judged = judge::judge(shell, &program, &dir, &runs)?;
    let score = judge::print(&runs, &judged);
    peers::print(shell, &dir, &runs, &judged);
    if corpus.dir.is_none() && !corpus.keep {
        fs::remove_dir_all(&dir).with_context(|| format!("remove {}", dir.display()))?;
    }
    if !score.reaches(AIM) {
        bail!("the aim is {:.0} % right, as many vantages that agree, and no false alarm on a clean path", AIM * 100.0);
    }
    Ok(())
}

/// Whether there is something to judge now.
fn make(shell: &Shell, corpus: &Corpus, dir: &Path) -> Result<bool> {
    for needed in ["tcpdump", "ss"] {
        if !setup::is_here(shell, needed) {
            eprintln!(
                "corpus: skipped: {needed} is not here (Debian: tcpdump iproute2), and captures are made with it"
            );
            return Ok(false);
        }
    }
    let only = corpus.only.iter().flat_map(|case| ["--only", case]);
    let jobs = corpus.jobs.to_string();
    cmd!(
        shell,
        "cargo run --release --locked --quiet --package fullpipe-lab --example corpus -- {dir} --jobs {jobs} {only...}"
    )
    .run()?;
    Ok(true)
}

fn build(shell: &Shell) -> Result<PathBuf> {
    cmd!(shell, "cargo build --release --locked --quiet --package fullpipe").run()?;
    let metadata = cargo_metadata::MetadataCommand::new().current_dir(shell.current_dir()).no_deps().exec()?;
    Ok(metadata.target_directory.join("release/fullpipe").into())
}
