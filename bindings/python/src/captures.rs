//! `read` and `diagnose`.

use std::{num::NonZeroUsize, sync::OnceLock};

use fullpipe_capture::Report;
use fullpipe_cli::library::{self, Look, Refusal};
use fullpipe_report::{
    CaptureList,
    columns::{CONNECTIONS, Moment, PROBLEMS, Row, TIMELINES},
};
use pyo3::prelude::*;

use crate::{
    answers,
    refusal::raise,
    source::{Given, Trouble},
    table::{BATCH, Table, no_room},
};

/// What captures held: three tables.
#[pyclass(frozen, module = "fullpipe")]
pub(crate) struct Captures {
    given: Given,
    look: Look,
    /// A row for each connection, those first that lost most time to a limit that can be lifted; the columns are those of
    /// `fullpipe read --parquet`.
    #[pyo3(get)]
    connections: Py<Table>,
    /// A row for each thing that could not be read: file, packet (absent where it is about the whole file) and message.
    #[pyo3(get)]
    problems: Py<Table>,
    timelines: OnceLock<Py<Table>>,
}

#[pymethods]
impl Captures {
    /// A row for each sample of each direction that was judged: bytes acknowledged and in flight, windows, round-trip time.
    /// Of captures that were given by path they are read when this is first asked for.
    #[getter]
    fn timelines(&self, py: Python<'_>) -> PyResult<Py<Table>> {
        if let Some(table) = self.timelines.get() {
            return Ok(table.clone_ref(py));
        }
        if !self.given.can_be_read_twice() {
            let text =
                "the timelines were left out, and a file object can't be read twice; read it with timelines=True";
            return Err(raise(py, &Refusal::usage(text)));
        }
        self.given.unchanged().map_err(|refusal| raise(py, &refusal))?;
        let look = Look { timelines: true, ..self.look.clone() };
        let (again, table) = seen(py, &self.given, &look, |list| Ok((connections(list)?, moments(list)?)))?;
        // What was written over with the same size and time would pass for the same, and so would what changes meanwhile.
        self.given.unchanged().map_err(|refusal| raise(py, &refusal))?;
        if !again.is_same(self.connections.get()) {
            return Err(raise(py, &self.given.changed()));
        }
        let table = Py::new(py, table)?;
        Ok(self.timelines.get_or_init(|| table).clone_ref(py))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let rows = |table: &Py<Table>| table.bind(py).len();
        Ok(format!("<fullpipe.Captures: {} connections, {} problems>", rows(&self.connections)?, rows(&self.problems)?))
    }
}

/// Read captures: pcap, pcapng or snoop, plain or compressed with gzip or zstd.
#[pyfunction]
#[pyo3(signature = (source, filter=None, threads=None, timelines=true))]
pub(crate) fn read(
    py: Python<'_>,
    source: &Bound<'_, PyAny>,
    filter: Option<String>,
    threads: Option<NonZeroUsize>,
    timelines: bool,
) -> PyResult<Captures> {
    let given = Given::from_object(source)?;
    // What can't be read twice is kept whole.
    let look = Look { filter, threads, timelines: timelines && !given.can_be_read_twice() };
    let (connections, problems, kept) = seen(py, &given, &look, |list| {
        let kept = if look.timelines { Some(moments(list)?) } else { None };
        let problems = Table::of(PROBLEMS, std::iter::once(list.problems.clone()))?;
        Ok((connections(list)?, problems, kept))
    })?;
    let kept = kept.map(|kept| Py::new(py, kept)).transpose()?;
    let timelines = kept.map_or_else(OnceLock::new, OnceLock::from);
    Ok(Captures { given, look, connections: Py::new(py, connections)?, problems: Py::new(py, problems)?, timelines })
}

/// What `fullpipe read --json` prints, as a dictionary.
#[pyfunction]
#[pyo3(signature = (source, filter=None, threads=None))]
pub(crate) fn diagnose<'py>(
    py: Python<'py>,
    source: &Bound<'py, PyAny>,
    filter: Option<String>,
    threads: Option<NonZeroUsize>,
) -> PyResult<Bound<'py, PyAny>> {
    let given = Given::from_object(source)?;
    let look = Look { filter, threads, timelines: false };
    let document = seen(py, &given, &look, |list| Ok(library::captures_document(list)))?;
    answers::dictionary(py, &document)
}

/// Looks at captures and makes something of what they held, both without the interpreter's lock.
fn seen<T: Send>(
    py: Python<'_>,
    given: &Given,
    look: &Look,
    make: impl FnOnce(&CaptureList) -> Result<T, arrow_schema::ArrowError> + Send,
) -> PyResult<T> {
    let trouble = Trouble::default();
    let found = py.detach(|| {
        let list = library::captures(look, |options, watcher| given.read(options, watcher, &trouble))?;
        Ok(make(&list))
    });
    if let Some(error) = trouble.take() {
        return Err(error);
    }
    found.map_err(|refusal| raise(py, &refusal))?.map_err(|error| no_room(&error))
}

fn connections(list: &CaptureList) -> Result<Table, arrow_schema::ArrowError> {
    let mut reports = list.connections.iter();
    let batches = std::iter::from_fn(move || {
        let rows: Vec<Row> = reports.by_ref().take(BATCH).map(|report| Row::from_report(&report)).collect();
        (!rows.is_empty()).then_some(rows)
    });
    Table::of(CONNECTIONS, batches)
}

/// A batch ends with the connection that fills it.
fn moments(list: &CaptureList) -> Result<Table, arrow_schema::ArrowError> {
    let mut reports = list.connections.iter();
    let batches = std::iter::from_fn(move || {
        let mut rows = Vec::new();
        for report in reports.by_ref() {
            let report: &Report = &report;
            rows.extend(Moment::all_of(report));
            if rows.len() >= BATCH {
                break;
            }
        }
        (!rows.is_empty()).then_some(rows)
    });
    Table::of(TIMELINES, batches)
}
