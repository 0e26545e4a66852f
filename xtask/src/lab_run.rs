//! What `fullpipe lab run --json` and `fullpipe sim --json` print, as far as benches and comparisons read it.

use anyhow::{Context, Result, bail};
use serde::Deserialize;

#[derive(Deserialize)]
pub(crate) struct Document {
    #[serde(default)]
    pub(crate) transfers: Vec<Transfer>,
    #[serde(default)]
    pub(crate) transfers_after: Vec<Transfer>,
    pub(crate) plan: Option<Plan>,
    path_valid: Option<bool>,
    path_error_us: Option<PathError>,
    error: Option<Problem>,
}

/// How late packets left the path, in microseconds.
#[derive(Deserialize)]
struct PathError {
    p50: u64,
    p99: u64,
    max: u64,
}

#[derive(Deserialize)]
struct Problem {
    message: String,
}

#[derive(Deserialize)]
pub(crate) struct Transfer {
    rate_bps: f64,
    steady_bps: Option<f64>,
    pub(crate) retransmissions: Option<u64>,
    pub(crate) diagnosis: Diagnosis,
    pub(crate) seen: Option<Seen>,
}

#[derive(Deserialize)]
pub(crate) struct Seen {
    pub(crate) offered_window_bytes: Option<u64>,
}

#[derive(Deserialize)]
pub(crate) struct Diagnosis {
    pub(crate) limiter: String,
    pub(crate) detail: Option<String>,
}

#[derive(Deserialize)]
pub(crate) struct Plan {
    pub(crate) changes: Vec<Change>,
}

#[derive(Deserialize)]
pub(crate) struct Change {
    pub(crate) knob: String,
    pub(crate) to: Option<String>,
}

impl Document {
    /// The document of `which` command; an error in it is one.
    pub(crate) fn read(text: &str, which: &str) -> Result<Self> {
        let document: Self =
            serde_json::from_str(text).with_context(|| format!("{which}: the JSON is not what was expected"))?;
        if let Some(error) = &document.error {
            bail!("{which}: {}", error.message);
        }
        Ok(document)
    }

    /// Whether the emulated path kept its rate and its delay.
    pub(crate) fn is_valid(&self) -> bool {
        self.path_valid == Some(true)
    }

    /// How late packets left the path, where the lab says.
    pub(crate) fn lateness(&self) -> Option<String> {
        let ms = |us: u64| us as f64 / 1e3;
        self.path_error_us.as_ref().map(|PathError { p50, p99, max }| {
            format!("packets left late by {:.1} ms (p50), {:.1} ms (p99), {:.1} ms (max)", ms(*p50), ms(*p99), ms(*max))
        })
    }
}

impl Transfer {
    /// Payload without the slow start, where that is known; bit/s.
    pub(crate) fn bps(&self) -> f64 {
        self.steady_bps.unwrap_or(self.rate_bps)
    }
}
