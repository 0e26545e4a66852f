//! A table in Arrow's columns, handed over by the Arrow PyCapsule interface: whoever takes it reads this memory, without a
//! copy. What is *not* here: which columns there are (`fullpipe_report::columns`).

use std::{collections::HashMap, sync::Arc};

use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, RecordBatch, RecordBatchIterator, RecordBatchReader, StringArray,
    UInt64Array, ffi::FFI_ArrowSchema, ffi_stream::FFI_ArrowArrayStream,
};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use fullpipe_report::{
    columns::{Column, Values},
    json,
};
use pyo3::{exceptions::PyMemoryError, prelude::*, types::PyCapsule};

/// Rows in a batch: as many as in a group of the Parquet file.
pub(crate) const BATCH: usize = 32 * 1024;

/// A table in Arrow's columns: give it to `pyarrow.table`, `polars.DataFrame`, DuckDB or whatever else takes
/// `__arrow_c_stream__`. The metadata of each column says its `unit`; that of the table, the `schema`'s version.
#[pyclass(frozen, module = "fullpipe")]
pub(crate) struct Table {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl Table {
    /// A table of rows that come in batches.
    pub(crate) fn of<R>(columns: &[Column<R>], batches: impl Iterator<Item = Vec<R>>) -> Result<Self, ArrowError> {
        let fields: Vec<Field> = columns.iter().map(field).collect();
        let version = HashMap::from([("schema".to_owned(), json::SCHEMA.to_owned())]);
        let schema = Arc::new(Schema::new(fields).with_metadata(version));
        let batch = |rows: Vec<R>| {
            RecordBatch::try_new(schema.clone(), columns.iter().map(|column| array(column, &rows)).collect())
        };
        let batches = batches.map(batch).collect::<Result<_, _>>()?;
        Ok(Self { schema, batches })
    }

    /// Whether every row is the same.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.batches == other.batches
    }
}

fn field<R>(column: &Column<R>) -> Field {
    let (kind, is_nullable) = match column.values {
        Values::Count(_) => (DataType::UInt64, false),
        Values::MaybeCount(_) => (DataType::UInt64, true),
        Values::Number(_) => (DataType::Float64, false),
        Values::Flag(_) => (DataType::Boolean, false),
        Values::Text(_) => (DataType::Utf8, false),
        Values::MaybeText(_) => (DataType::Utf8, true),
    };
    let field = Field::new(column.name, kind, is_nullable);
    if column.unit.is_empty() {
        return field;
    }
    field.with_metadata(HashMap::from([("unit".to_owned(), column.unit.to_owned())]))
}

fn array<R>(column: &Column<R>, rows: &[R]) -> ArrayRef {
    match column.values {
        Values::Count(count) => Arc::new(rows.iter().map(count).collect::<UInt64Array>()),
        Values::MaybeCount(count) => Arc::new(rows.iter().map(count).collect::<UInt64Array>()),
        Values::Number(number) => Arc::new(rows.iter().map(number).collect::<Float64Array>()),
        Values::Flag(flag) => Arc::new(rows.iter().map(|row| Some(flag(row))).collect::<BooleanArray>()),
        Values::Text(text) => Arc::new(StringArray::from_iter_values(rows.iter().map(text))),
        Values::MaybeText(text) => Arc::new(rows.iter().map(text).collect::<StringArray>()),
    }
}

/// Arrow's own trouble with a table that we made: there was no room for it.
pub(crate) fn no_room(error: &ArrowError) -> PyErr {
    PyMemoryError::new_err(error.to_string())
}

#[pymethods]
impl Table {
    /// The Arrow C stream of the rows, for whoever takes one.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The protocol leaves it to the producer to give another schema than its own; this one doesn't.
        let _ = requested_schema;
        let batches = self.batches.clone().into_iter().map(Ok);
        let reader: Box<dyn RecordBatchReader + Send> =
            Box::new(RecordBatchIterator::new(batches, self.schema.clone()));
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(reader), c"arrow_array_stream")
    }

    /// The Arrow C schema of the columns.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.schema.as_ref()).map_err(|error| no_room(&error))?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// The names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<&str> {
        self.schema.fields().iter().map(|field| field.name().as_str()).collect()
    }

    /// The columns that have a unit, with it: `{"rate_bps": "bit/s", ...}`.
    #[getter]
    fn units(&self) -> HashMap<&str, &str> {
        let fields = self.schema.fields().iter();
        fields.filter_map(|field| Some((field.name().as_str(), field.metadata().get("unit")?.as_str()))).collect()
    }

    fn __len__(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    fn __repr__(&self) -> String {
        format!("<fullpipe.Table of {} rows: {}>", self.__len__(), self.column_names().join(", "))
    }
}
