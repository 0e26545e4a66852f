//! The Python package `fullpipe`: captures as Arrow tables, plans and predictions as dictionaries. What is *not* here: any
//! answer of its own. Captures are read by `ingest`, tables have the columns of `report`, and documents are those of the
//! program.
//!
//! Whatever takes long runs without the interpreter's lock, and looks now and then whether Ctrl-C was pressed.

mod answers;
mod captures;
mod refusal;
mod source;
mod table;

use pyo3::prelude::*;

/// The part of `fullpipe` that is no Python; `fullpipe/__init__.py` is what users import.
#[pymodule(name = "_fullpipe")]
fn extension(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<captures::Captures>()?;
    module.add_class::<table::Table>()?;
    module.add_function(wrap_pyfunction!(captures::read, module)?)?;
    module.add_function(wrap_pyfunction!(captures::diagnose, module)?)?;
    module.add_function(wrap_pyfunction!(answers::document, module)?)?;
    module.add_function(wrap_pyfunction!(answers::bdp, module)?)?;
    Ok(())
}
