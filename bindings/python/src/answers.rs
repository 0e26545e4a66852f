//! The program's documents as dictionaries, and the bandwidth-delay product.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
        mpsc::{self, RecvTimeoutError},
    },
    thread,
};

use fullpipe_cli::library::{self, Refusal};
use fullpipe_report::json;
use fullpipe_units::{Micros, Rate};
use pyo3::{exceptions::PyRuntimeError, prelude::*};
use serde_json::Value;

use crate::{refusal::raise, source::ASKED};

/// What `fullpipe WORDS --json` prints, as a dictionary, for the commands that have nothing to do with a terminal.
#[pyfunction]
pub(crate) fn document(py: Python<'_>, words: Vec<String>) -> PyResult<Bound<'_, PyAny>> {
    let stop = Arc::new(AtomicBool::new(false));
    let (answer, mut answered) = mpsc::channel();
    let asked_to_stop = stop.clone();
    thread::Builder::new().name("fullpipe".to_owned()).spawn(move || answer.send(library::document(&words, &stop)))?;
    loop {
        let said;
        (answered, said) = py.detach(move || {
            let said = answered.recv_timeout(ASKED);
            (answered, said)
        });
        match said {
            Ok(document) => return dictionary(py, &document.map_err(|refusal| raise(py, &refusal))?),
            Err(RecvTimeoutError::Disconnected) => return Err(PyRuntimeError::new_err("the answer broke off")),
            Err(RecvTimeoutError::Timeout) => {
                // Who pressed Ctrl-C waits no longer: the thread ends with what it has in hand, and nobody hears of it.
                py.check_signals().inspect_err(|_| asked_to_stop.store(true, Relaxed))?;
            }
        }
    }
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
