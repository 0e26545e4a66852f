//! The program's documents as dictionaries, and the bandwidth-delay product.

use fullpipe_cli::library::{self, Refusal};
use fullpipe_report::json;
use fullpipe_units::{Micros, Rate};
use pyo3::prelude::*;
use serde_json::Value;

use crate::refusal::raise;

/// What `fullpipe WORDS --json` prints, as a dictionary, for the commands that have nothing to do with a terminal.
#[pyfunction]
pub(crate) fn document(py: Python<'_>, words: Vec<String>) -> PyResult<Bound<'_, PyAny>> {
    let document = py.detach(|| library::document(&words)).map_err(|refusal| raise(py, &refusal))?;
    dictionary(py, &document)
}

/// Rate times round-trip time, in bytes.
#[pyfunction]
pub(crate) fn bdp(py: Python<'_>, rate: &str, rtt: &str) -> PyResult<u64> {
    let wrong = |name: &str, text: &str, error: &dyn std::fmt::Display| {
        raise(py, &Refusal::usage(&format!("{name} {text:?}: {error}")))
    };
    let known_rate: Rate = rate.parse().map_err(|error| wrong("rate", rate, &error))?;
    let known_rtt: Micros = rtt.parse().map_err(|error| wrong("rtt", rtt, &error))?;
    Ok(fullpipe_units::bdp(known_rate, known_rtt).get())
}

/// As Python's own reader of JSON makes one.
pub(crate) fn dictionary<'py>(py: Python<'py>, document: &Value) -> PyResult<Bound<'py, PyAny>> {
    py.import("json")?.call_method1("loads", (json::to_string(document),))
}
