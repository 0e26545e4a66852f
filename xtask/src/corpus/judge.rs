//! What `fullpipe read` finds in each capture, and in what `fullpipe watch` recorded meanwhile.

use std::{
    collections::BTreeMap,
    path::Path,
    process::Command,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use anyhow::{Context, Result};
use serde::Deserialize;

use super::index::{Allowed, Run, Vantage};

/// What was found, by file.
pub(crate) type Judged = BTreeMap<String, Connection>;

/// What was found live at the sender, by run; `None` where there was too little to judge.
pub(crate) type Live = BTreeMap<String, Option<Diagnosis>>;

#[derive(Deserialize)]
struct Document {
    #[serde(default)]
    connections: Vec<Connection>,
}

/// What `read --json` says of a recording.
#[derive(Deserialize)]
struct Recording {
    rows: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    sent_bps: u64,
    seen_s: f64,
    diagnosis: Option<Diagnosis>,
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
    pub(crate) diagnosis: Diagnosis,
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
pub(crate) struct Diagnosis {
    pub(crate) limiter: String,
    pub(crate) detail: Option<String>,
    pub(crate) share: f64,
    #[serde(default)]
    pub(crate) confidence: String,
    /// What else it may be, where the packets can't tell.
    #[serde(default)]
    pub(crate) or: Vec<Verdict>,
    #[serde(default)]
    pub(crate) evidence: Vec<Evidence>,
}

#[derive(Clone, Deserialize)]
pub(crate) struct Verdict {
    limiter: String,
    detail: Option<String>,
}

#[derive(Clone, Deserialize)]
pub(crate) struct Evidence {
    pub(crate) text: String,
}

/// How a verdict compares with what may be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Right,
    /// One that it names besides.
    Second,
    Wrong,
}

impl Connection {
    /// The end that sent more payload.
    pub(crate) fn main_side(&self) -> Option<&Side> {
        self.sides.values().max_by_key(|side| side.bytes)
    }
}

impl Diagnosis {
    pub(crate) fn answer(&self, allowed: &[Allowed]) -> Answer {
        let is_allowed = |limiter: &str, detail: Option<&String>| {
            allowed.iter().filter(|allowed| allowed.limiter == limiter).any(|allowed| match detail {
                Some(detail) if allowed.details.contains(detail) => true,
                // Whoever is told of a policer complains to its operator: it has to be there.
                Some(detail) if detail == "policed" => false,
                _ => allowed.details.is_empty(),
            })
        };
        match () {
            () if is_allowed(&self.limiter, self.detail.as_ref()) => Answer::Right,
            // A second verdict names no detail.
            () if self.or.iter().any(|other| allowed.iter().any(|one| one.limiter == other.limiter)) => Answer::Second,
            () => Answer::Wrong,
        }
    }

    /// Whether one of them names what the other names.
    pub(crate) fn shares_a_name(&self, other: &Self) -> bool {
        let names = |one: &Self| -> Vec<String> {
            std::iter::once(&one.limiter).chain(one.or.iter().map(|second| &second.limiter)).cloned().collect()
        };
        names(self).iter().any(|name| names(other).contains(name))
    }

    pub(crate) fn words(&self) -> String {
        let Self { limiter, detail, or, .. } = self;
        let words = |limiter: &String, detail: &Option<String>| {
            detail.as_ref().map_or_else(|| limiter.clone(), |detail| format!("{limiter}/{detail}"))
        };
        let others = or.iter().map(|other| words(&other.limiter, &other.detail));
        std::iter::once(words(limiter, detail)).chain(others).collect::<Vec<_>>().join(" or ")
    }
}

/// Reads each capture of each run that is valid; of its connections the one with most payload counts.
pub(crate) fn judge(program: &Path, dir: &Path, runs: &[Run]) -> Result<Judged> {
    let valid = runs.iter().filter(|run| run.invalid.is_none());
    let vantages: Vec<&Vantage> = valid.flat_map(|run| run.vantages.values()).collect();
    let next = AtomicUsize::new(0);
    let worker = || -> Result<Judged> {
        let mut judged = Judged::new();
        while let Some(vantage) = vantages.get(next.fetch_add(1, Ordering::Relaxed)) {
            judged.insert(vantage.file.clone(), read(program, &dir.join(&vantage.file))?);
        }
        Ok(judged)
    };
    thread::scope(|scope| {
        let count = thread::available_parallelism().map_or(1, usize::from);
        let workers: Vec<_> = (0..count).map(|_| scope.spawn(worker)).collect();
        let mut all = Judged::new();
        for worker in workers {
            all.append(&mut worker.join().map_err(|_| anyhow::anyhow!("a judging thread panicked"))??);
        }
        Ok(all)
    })
}

/// Reads each recording that lies beside a run that is valid and not a variant of another; the connection that sent most counts.
pub(crate) fn judge_live(program: &Path, dir: &Path, runs: &[Run]) -> Result<Live> {
    let mut live = Live::new();
    for run in runs.iter().filter(|run| run.invalid.is_none() && run.variant.is_none()) {
        let file = dir.join(format!("{}.jsonl", run.name));
        if file.exists() {
            let Recording { rows } = parsed(program, &file)?;
            let sent = |row: &Row| row.sent_bps as f64 * row.seen_s;
            let most = rows.into_iter().max_by(|a, b| sent(a).total_cmp(&sent(b)));
            live.insert(run.name.clone(), most.and_then(|row| row.diagnosis));
        }
    }
    Ok(live)
}

fn parsed<T: serde::de::DeserializeOwned>(program: &Path, file: &Path) -> Result<T> {
    let output = Command::new(program).arg("read").arg(file).arg("--json").output();
    let output = output.with_context(|| format!("run {}", program.display()))?;
    serde_json::from_slice(&output.stdout)
        .with_context(|| format!("understand what {} says of {}", program.display(), file.display()))
}

fn read(program: &Path, file: &Path) -> Result<Connection> {
    let document: Document = parsed(program, file)?;
    let connection = document.connections.into_iter().max_by_key(|connection| connection.bytes);
    connection.with_context(|| format!("no connection in {}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_verdict_counts_apart_from_the_first() {
        let connection = |diagnosis: &str| -> Connection {
            serde_json::from_str(&format!(
                r#"{{"packets": 9, "bytes": 5, "seconds": 1.0, "sides": {{}}, "diagnosis": {{"share": 0.5, {diagnosis}}}}}"#
            ))
            .unwrap()
        };
        let allowed = [
            Allowed { limiter: "path".to_owned(), details: vec![] },
            Allowed { limiter: "send_buffer".to_owned(), details: vec!["buffer_cap".to_owned()] },
        ];
        let answer = |diagnosis: &str| connection(diagnosis).diagnosis.answer(&allowed);
        assert_eq!(answer(r#""limiter": "path", "detail": "saturated""#), Answer::Right);
        assert_eq!(answer(r#""limiter": "path", "detail": "policed""#), Answer::Wrong, "no policer is there");
        assert_eq!(answer(r#""limiter": "send_buffer", "detail": null"#), Answer::Wrong);
        let both = r#""limiter": "application", "or": [{"limiter": "send_buffer", "detail": "buffer_cap"}]"#;
        assert_eq!(answer(both), Answer::Second);
        assert_eq!(connection(both).diagnosis.words(), "application or send_buffer/buffer_cap");
        let buffer = connection(r#""limiter": "send_buffer", "detail": "buffer_cap""#).diagnosis;
        let window = connection(r#""limiter": "receive_window", "detail": null"#).diagnosis;
        assert!(connection(both).diagnosis.shares_a_name(&buffer) && !buffer.shares_a_name(&window));
    }
}
