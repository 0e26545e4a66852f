//! What `fullpipe read` finds in each capture, against what may be found.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use anyhow::{Context, Result};
use serde::Deserialize;
use xshell::{Shell, cmd};

use super::index::{Allowed, Run};

/// What was found, by file.
pub(crate) type Judged = BTreeMap<String, Connection>;

#[derive(Deserialize)]
struct Document {
    #[serde(default)]
    connections: Vec<Connection>,
}

/// What `read --json` says of a connection, as far as it matters here.
#[derive(Clone, Deserialize)]
pub(crate) struct Connection {
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    #[serde(default)]
    pub(crate) ip_bytes: u64,
    pub(crate) seconds: f64,
    pub(crate) sides: BTreeMap<String, Side>,
    diagnosis: Diagnosis,
}

/// What one end sent.
#[derive(Clone, Deserialize)]
pub(crate) struct Side {
    pub(crate) bytes: u64,
    pub(crate) mss: u64,
    pub(crate) retransmissions: u64,
    pub(crate) retransmitted_bytes: u64,
    pub(crate) out_of_order: u64,
}

#[derive(Clone, Deserialize)]
struct Diagnosis {
    limiter: String,
    detail: Option<String>,
    share: f64,
    #[serde(default)]
    evidence: Vec<Evidence>,
}

#[derive(Clone, Deserialize)]
struct Evidence {
    text: String,
}

/// How many of how many.
#[derive(Clone, Copy, Default)]
struct Part {
    of: usize,
    are: usize,
}

/// One line of the table of confusion.
#[derive(Default)]
struct Row {
    right: Part,
    /// How often each verdict was given.
    found: BTreeMap<String, usize>,
}

/// The sums.
pub(crate) struct Score {
    right: Part,
    agree: Part,
    false_alarms: usize,
}

impl Connection {
    /// The end that sent more payload.
    pub(crate) fn main_side(&self) -> Option<&Side> {
        self.sides.values().max_by_key(|side| side.bytes)
    }

    fn is_allowed(&self, allowed: &[Allowed]) -> bool {
        let found = &self.diagnosis;
        allowed.iter().filter(|allowed| allowed.limiter == found.limiter).any(|allowed| {
            allowed.details.is_empty() || found.detail.as_ref().is_some_and(|detail| allowed.details.contains(detail))
        })
    }

    fn words(&self) -> String {
        let Diagnosis { limiter, detail, .. } = &self.diagnosis;
        detail.as_ref().map_or_else(|| limiter.clone(), |detail| format!("{limiter}/{detail}"))
    }
}

impl Part {
    fn count(&mut self, is: bool) {
        self.of += 1;
        self.are += usize::from(is);
    }

    fn share(self) -> f64 {
        if self.of == 0 { 1.0 } else { self.are as f64 / self.of as f64 }
    }
}

impl std::fmt::Display for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {} ({:.1} %)", self.are, self.of, self.share() * 100.0)
    }
}

impl Score {
    pub(crate) fn reaches(&self, aim: f64) -> bool {
        self.right.of > 0 && self.right.share() >= aim && self.agree.share() >= aim && self.false_alarms == 0
    }
}

/// Reads each capture of each run that is valid; of its connections the one with most payload counts.
pub(crate) fn judge(shell: &Shell, program: &Path, dir: &Path, runs: &[Run]) -> Result<Judged> {
    let mut judged = Judged::new();
    for vantage in runs.iter().filter(|run| run.invalid.is_none()).flat_map(|run| run.vantages.values()) {
        let file = dir.join(&vantage.file);
        let text = cmd!(shell, "{program} read {file} --json").quiet().ignore_status().read()?;
        let document: Document = serde_json::from_str(&text)
            .with_context(|| format!("understand what {} says of {}", program.display(), vantage.file))?;
        let connection = document.connections.into_iter().max_by_key(|connection| connection.bytes);
        judged.insert(vantage.file.clone(), connection.with_context(|| format!("no connection in {}", vantage.file))?);
    }
    Ok(judged)
}

/// Prints the table of confusion, the misses, and the sums.
pub(crate) fn print(runs: &[Run], judged: &Judged) -> Score {
    let mut score = Score { right: Part::default(), agree: Part::default(), false_alarms: 0 };
    let mut rows: BTreeMap<(&str, String), Row> = BTreeMap::new();
    let mut misses = Vec::new();
    for run in runs.iter().filter(|run| run.invalid.is_none()) {
        let mut found = BTreeSet::new();
        for vantage in run.vantages.values() {
            let Some(connection) = judged.get(&vantage.file) else { continue };
            let is_right = connection.is_allowed(&vantage.allowed);
            let row = rows.entry((&run.case, expected(&vantage.allowed))).or_default();
            row.right.count(is_right);
            score.right.count(is_right);
            *row.found.entry(connection.words()).or_default() += 1;
            found.insert(&connection.diagnosis.limiter);
            let is_alarm =
                run.is_control() && !["path", "insufficient_evidence"].contains(&&*connection.diagnosis.limiter);
            score.false_alarms += usize::from(is_alarm);
            if !is_right {
                misses.push(miss(&vantage.file, &vantage.allowed, connection));
            }
        }
        // Where one end can't see what the other sees, there is nothing to agree on.
        let mut allowed = run.vantages.values().map(|vantage| &vantage.allowed);
        if allowed.next() == allowed.next() {
            score.agree.count(found.len() == 1);
        }
    }
    println!("{:<22} {:<44} {:>9}  found", "case", "expected", "right");
    for ((case, expected), Row { right, found }) in &rows {
        let found: Vec<String> = found.iter().map(|(words, count)| format!("{words} {count}")).collect();
        println!("{case:<22} {expected:<44} {:>4}/{:<4}  {}", right.are, right.of, found.join(", "));
    }
    for line in &misses {
        println!("{line}");
    }
    for run in runs {
        if let Some(reason) = &run.invalid {
            println!("not judged: {}: {reason}", run.name);
        }
    }
    println!("right: {}", score.right);
    println!("both ends agree: {}", score.agree);
    println!("false alarms on clean paths: {}", score.false_alarms);
    score
}

fn expected(allowed: &[Allowed]) -> String {
    let one = |allowed: &Allowed| match &*allowed.details {
        [] => allowed.limiter.clone(),
        details => format!("{}/{}", allowed.limiter, details.join("|")),
    };
    allowed.iter().map(one).collect::<Vec<_>>().join(" or ")
}

fn miss(file: &str, allowed: &[Allowed], connection: &Connection) -> String {
    let reason = connection.diagnosis.evidence.first().map_or("no evidence is given", |evidence| &evidence.text);
    let (found, share) = (connection.words(), connection.diagnosis.share);
    format!("miss: {file}: found {found} ({:.0} %), not {}: {reason}", share * 100.0, expected(allowed))
}
