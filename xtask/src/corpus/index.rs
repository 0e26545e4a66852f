//! `corpus.json`, as the generator writes it.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::{Context, Result};
use serde::Deserialize;

/// One transfer.
#[derive(Deserialize)]
pub(crate) struct Run {
    pub(crate) name: String,
    pub(crate) case: String,
    pub(crate) sender: String,
    /// Why it can't be judged, where it can't.
    pub(crate) invalid: Option<String>,
    /// By host.
    pub(crate) vantages: BTreeMap<String, Vantage>,
    pub(crate) tcp_info: String,
    pub(crate) congestion: String,
    /// What kind of transfer, of which sender's stack.
    #[serde(default = "lab")]
    pub(crate) family: String,
    #[serde(default = "linux")]
    pub(crate) stack: String,
    /// What was done to its captures afterwards; their counts are then no longer the kernel's.
    #[serde(default)]
    pub(crate) variant: Option<String>,
}

fn lab() -> String {
    "lab".to_owned()
}

fn linux() -> String {
    "linux".to_owned()
}

/// One capture of it.
#[derive(Deserialize)]
pub(crate) struct Vantage {
    pub(crate) file: String,
    pub(crate) allowed: Vec<Allowed>,
}

/// A limiter that is right, with the details that are; none of them means any.
#[derive(Deserialize, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Allowed {
    pub(crate) limiter: String,
    pub(crate) details: Vec<String>,
}

impl Run {
    /// Nothing is in its way but the path, and the path was full.
    pub(crate) fn is_control(&self) -> bool {
        let is_path = |allowed: &Allowed| allowed.limiter == "path" && allowed.details.is_empty();
        self.case.starts_with("clean") && self.vantages.values().all(|vantage| vantage.allowed.iter().all(is_path))
    }
}

impl Vantage {
    /// A window or a buffer holds it, and nothing else may be said.
    pub(crate) fn is_settable(&self) -> bool {
        self.allowed.iter().all(|allowed| ["receive_window", "send_buffer"].contains(&&*allowed.limiter))
    }
}

pub(crate) fn read(dir: &Path) -> Result<Vec<Run>> {
    let file = dir.join("corpus.json");
    let text = fs::read(&file).with_context(|| format!("read {}", file.display()))?;
    serde_json::from_slice(&text).with_context(|| format!("understand {}", file.display()))
}
