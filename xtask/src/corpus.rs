//! A labelled corpus of captures, judged: `fullpipe-lab`'s example makes it, `fullpipe read` says why each transfer was
//! slow, and the tables here say how often that was right.

mod index;
mod judge;
mod peers;
mod score;

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail, ensure};
use clap::{Args, ValueEnum};
use xshell::{Shell, cmd};

use crate::setup;

/// Where the corpus goes, and what of it.
#[derive(Args)]
pub(crate) struct Corpus {
    /// The folder; what is there already is not made again. Without, it is removed at the end. With `--sim`: captures of both
    /// ends, and the live verdict, of what is judged wrongly.
    dir: Option<PathBuf>,
    /// Only this case (`clean`, `loss`, ...).
    #[arg(long)]
    only: Option<String>,
    /// Transfers by others instead of the lab's own, in a folder of this name: `train`, on which rules are made, or `held`,
    /// on which they are tried, or `drawn`: the scenes of both with figures by `--seed`, which nobody has seen.
    #[arg(long, value_enum)]
    part: Option<Part>,
    /// Of those so many at the most.
    #[arg(long, value_name = "N", requires = "part")]
    most: Option<usize>,
    /// Of those only this family (`writers`, `receivers`, `programs`, `requests`, `paths`, `variants`).
    #[arg(long, requires = "part")]
    family: Option<String>,
    /// Name each miss of `held` and `drawn` too: whoever reads them can't try rules on it any more.
    #[arg(long)]
    misses: bool,
    /// Keep the folder that was not named.
    #[arg(long)]
    keep: bool,
    /// Judge what is in the folder and make nothing.
    #[arg(long, requires = "dir")]
    judge_only: bool,
    /// Transfers at a time: more than one only where there are processors for it.
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// Instead, simulate so many random transfers, and judge each live and from captures of both ends against what is known
    /// to have limited it. Prints the confusion and the seeds that fail.
    #[arg(long, value_name = "N", conflicts_with_all = ["only", "part", "keep", "with"])]
    sim: Option<u64>,
    /// `--sim`: the first seed; every transfer has its own. `--part drawn`: the seed of all. 1 where none is given.
    #[arg(long)]
    seed: Option<u64>,
    /// Judge with this `fullpipe` instead of building one.
    #[arg(long, value_name = "FILE")]
    with: Option<PathBuf>,
}

/// What the transfers are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    Train,
    Held,
    Drawn,
}

impl Part {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Held => "held",
            Self::Drawn => "drawn",
        }
    }
}

impl Corpus {
    fn seed(&self) -> Result<u64> {
        ensure!(
            self.seed.is_none() || self.sim.is_some() || self.part == Some(Part::Drawn),
            "`--seed` is for `--sim` and `--part drawn`: the figures of the others are fixed"
        );
        Ok(self.seed.unwrap_or(1))
    }
}

/// Below this part of right verdicts, and of vantages that agree, it fails.
const AIM: f64 = 0.98;

/// Makes, judges, compares.
pub(crate) fn run(shell: &Shell, corpus: &Corpus) -> Result<()> {
    let seed = corpus.seed()?;
    if let Some(count) = corpus.sim {
        let [count, seed, jobs] = [count, seed, corpus.jobs as u64].map(|number| number.to_string());
        let dir = &corpus.dir;
        cmd!(
            shell,
            "cargo run --release --locked --quiet --package fullpipe-sim --example corpus_sim -- {count} {seed} {jobs} {dir...}"
        )
        .run()?;
        return Ok(());
    }
    let dir = corpus.dir.clone().unwrap_or_else(|| shell.current_dir().join("target/corpus"));
    let program = match &corpus.with {
        Some(program) => fs::canonicalize(program).with_context(|| format!("find {}", program.display()))?,
        None => build(shell)?,
    };
    if !corpus.judge_only && !make(shell, corpus, &dir, &program)? {
        return Ok(());
    }
    let within = corpus.part.map_or_else(|| dir.clone(), |part| dir.join(part.as_str()));
    let mut runs = index::read(&within)?;
    runs.retain(|run| corpus.only.as_ref().is_none_or(|only| *only == run.case));
    runs.retain(|run| corpus.family.as_ref().is_none_or(|family| *family == run.family));
    let judged = judge::judge(&program, &within, &runs)?;
    let live = judge::judge_live(&program, &within, &runs)?;
    let shows_misses = corpus.misses || matches!(corpus.part, None | Some(Part::Train));
    let score = score::print(&runs, &judged, shows_misses);
    score::print_live(&runs, &judged, &live, shows_misses);
    peers::print(shell, &within, &runs, &judged);
    if corpus.dir.is_none() && !corpus.keep {
        fs::remove_dir_all(&dir).with_context(|| format!("remove {}", dir.display()))?;
    }
    if !score.reaches(AIM) {
        bail!("the aim is {:.0} % right, as many vantages that agree, and no false alarm on a clean path", AIM * 100.0);
    }
    Ok(())
}

/// Whether there is something to judge now.
fn make(shell: &Shell, corpus: &Corpus, dir: &Path, program: &Path) -> Result<bool> {
    for needed in ["tcpdump", "ss"] {
        if !setup::is_here(shell, needed) {
            eprintln!(
                "corpus: skipped: {needed} is not here (Debian: tcpdump iproute2), and captures are made with it"
            );
            return Ok(false);
        }
    }
    if corpus.part.is_some() {
        setup::programs(shell);
    }
    let jobs = corpus.jobs.to_string();
    let seed = corpus.seed.map(|seed| seed.to_string());
    let most = corpus.most.map(|most| most.to_string());
    let named = [
        ("--jobs", Some(&*jobs)),
        ("--only", corpus.only.as_deref()),
        ("--part", corpus.part.map(Part::as_str)),
        ("--seed", seed.as_deref()),
        ("--most", most.as_deref()),
        ("--family", corpus.family.as_deref()),
    ];
    let options = named.into_iter().filter_map(|(name, value)| Some([name, value?])).flatten();
    cmd!(shell, "cargo run --release --locked --quiet --package fullpipe-lab --example corpus -- {dir} --watch {program} {options...}")
        .run()?;
    Ok(true)
}

/// Builds `fullpipe` for release; where it lies.
pub(crate) fn build(shell: &Shell) -> Result<PathBuf> {
    cmd!(shell, "cargo build --release --locked --quiet --package fullpipe").run()?;
    let metadata = cargo_metadata::MetadataCommand::new().current_dir(shell.current_dir()).no_deps().exec()?;
    Ok(metadata.target_directory.join("release/fullpipe").into())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        corpus: Corpus,
    }

    #[test]
    fn a_seed_is_refused_where_nothing_is_drawn() {
        let seed = |words: &[&str]| {
            let line = Line::try_parse_from([&["corpus"], words].concat()).unwrap();
            line.corpus.seed().ok()
        };
        assert_eq!(seed(&["dir"]), Some(1));
        assert_eq!(seed(&["--sim", "9", "--seed", "7"]), Some(7));
        assert_eq!(seed(&["dir", "--part", "drawn", "--seed", "7"]), Some(7));
        assert_eq!(seed(&["dir", "--seed", "7"]), None);
        assert_eq!(seed(&["dir", "--part", "held", "--seed", "7"]), None);
    }
}
