//! Why something could not be done, as Python's exceptions: `fullpipe/_errors.py` has one for each kind.

use fullpipe_cli::library::Refusal;
use pyo3::prelude::*;

/// The exception for it.
pub(crate) fn raise(py: Python<'_>, refusal: &Refusal) -> PyErr {
    let problem = &refusal.problem;
    let made = py.import("fullpipe._errors").and_then(|errors| {
        errors.call_method1("made", (problem.kind, &problem.message, &problem.hint, refusal.exit_code))
    });
    made.map_or_else(|error| error, PyErr::from_value)
}
