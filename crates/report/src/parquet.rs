//! Parquet, for what reads Arrow's columns (pyarrow, DuckDB, Polars, Spark): a row per connection. What is *not* here: the
//! columns (`columns`), their meaning (`docs/json.md`), and compression, which these files are too small for.
//!
//! The crate's own writer of columns does it: going by way of Arrow would take another ten crates, and write the same.

use std::{io::Write, sync::Arc};

use parquet::{
    basic::{Compression, LogicalType, Repetition, Type as Physical},
    data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type},
    errors::ParquetError,
    file::{
        metadata::KeyValue,
        properties::WriterProperties,
        writer::{SerializedFileWriter, SerializedRowGroupWriter},
    },
    schema::types::Type,
};

use crate::{
    CaptureList,
    columns::{CONNECTIONS, Column, Values},
    row::Row,
};

/// Connections that are held as rows at once, and read as one group.
const GROUP: usize = 32 * 1024;

/// The columns as Arrow says them, so that its readers find the unit of each in the metadata of its field: an IPC message in
/// base64, as all writers of Arrow leave one. The tests of the Python package hold it against the columns, and print it.
const ARROW_SCHEMA: &str = include_str!("parquet/arrow-schema.txt");

/// Counts and rates: none of them is ever negative.
fn unsigned() -> LogicalType {
    LogicalType::integer(64, false)
}

/// Writes a row for each connection that is to be shown.
pub fn captures(list: &CaptureList, into: impl Write + Send) -> Result<(), ParquetError> {
    let fields = CONNECTIONS.iter().map(field).collect::<Result<_, _>>()?;
    let schema = Arc::new(Type::group_type_builder("connection").with_fields(fields).build()?);
    let units = CONNECTIONS.iter().filter(|column| !column.unit.is_empty());
    let units = units.map(|column| KeyValue::new(format!("unit.{}", column.name), column.unit.to_owned()));
    let version = KeyValue::new("schema".to_owned(), crate::json::SCHEMA.to_owned());
    let arrow = KeyValue::new("ARROW:schema".to_owned(), ARROW_SCHEMA.trim_end().to_owned());
    let properties = WriterProperties::builder()
        .set_compression(Compression::UNCOMPRESSED)
        .set_created_by(concat!("fullpipe version ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_key_value_metadata(Some(units.chain([version, arrow]).collect()))
        .build();
    let mut writer = SerializedFileWriter::new(into, schema, Arc::new(properties))?;
    let mut reports = list.connections.iter().take(list.shown).peekable();
    while reports.peek().is_some() {
        let rows: Vec<Row> = reports.by_ref().take(GROUP).map(|report| Row::from_report(&report)).collect();
        let mut group = writer.next_row_group()?;
        for column in CONNECTIONS {
            write(column, &rows, &mut group)?;
        }
        group.close()?;
    }
    writer.close()?;
    Ok(())
}

fn field(column: &Column<Row>) -> Result<Arc<Type>, ParquetError> {
    let (physical, logical, repetition) = match column.values {
        Values::Count(_) => (Physical::INT64, Some(unsigned()), Repetition::REQUIRED),
        Values::MaybeCount(_) => (Physical::INT64, Some(unsigned()), Repetition::OPTIONAL),
        Values::Number(_) => (Physical::DOUBLE, None, Repetition::REQUIRED),
        Values::Flag(_) => (Physical::BOOLEAN, None, Repetition::REQUIRED),
        Values::Text(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String), Repetition::REQUIRED),
        Values::MaybeText(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String), Repetition::OPTIONAL),
    };
    let field = Type::primitive_type_builder(column.name, physical).with_repetition(repetition);
    field.with_logical_type(logical).build().map(Arc::new)
}

fn write(
    column: &Column<Row>,
    rows: &[Row],
    group: &mut SerializedRowGroupWriter<'_, impl Write + Send>,
) -> Result<(), ParquetError> {
    let Some(mut written) = group.next_column()? else { return Ok(()) };
    match column.values {
        Values::Count(count) => {
            let values: Vec<i64> = rows.iter().map(|row| count(row).cast_signed()).collect();
            written.typed::<Int64Type>().write_batch(&values, None, None)?;
        }
        Values::MaybeCount(count) => {
            let all: Vec<Option<u64>> = rows.iter().map(count).collect();
            let values: Vec<i64> = all.iter().flatten().map(|count| count.cast_signed()).collect();
            written.typed::<Int64Type>().write_batch(&values, Some(&levels(&all)), None)?;
        }
        Values::Number(number) => {
            let values: Vec<f64> = rows.iter().map(number).collect();
            written.typed::<DoubleType>().write_batch(&values, None, None)?;
        }
        Values::Flag(flag) => {
            let values: Vec<bool> = rows.iter().map(flag).collect();
            written.typed::<BoolType>().write_batch(&values, None, None)?;
        }
        Values::Text(text) => {
            let values: Vec<ByteArray> = rows.iter().map(|row| text(row).as_str().into()).collect();
            written.typed::<ByteArrayType>().write_batch(&values, None, None)?;
        }
        Values::MaybeText(text) => {
            let all: Vec<Option<String>> = rows.iter().map(text).collect();
            let values: Vec<ByteArray> = all.iter().flatten().map(|text| text.as_str().into()).collect();
            written.typed::<ByteArrayType>().write_batch(&values, Some(&levels(&all)), None)?;
        }
    }
    written.close()
}

/// 1 where there is a value, 0 where there is none.
fn levels<T>(values: &[Option<T>]) -> Vec<i16> {
    values.iter().map(|value| i16::from(value.is_some())).collect()
}

#[cfg(test)]
mod tests {
    use parquet::{
        file::reader::{FileReader, SerializedFileReader},
        record::{Field, RowAccessor},
    };

    use super::*;
    use crate::{csv, sample};

    #[test]
    fn it_reads_back_as_the_comma_separated_values_do() {
        let list = sample::captures();
        let mut file = tempfile::tempfile().unwrap();
        captures(&list, &mut file).unwrap();
        let reader = SerializedFileReader::new(file).unwrap();
        let facts = reader.metadata().file_metadata();
        let metadata = facts.key_value_metadata().unwrap();
        let unit = |name: &str| metadata.iter().find(|pair| pair.key == name).and_then(|pair| pair.value.as_deref());
        assert_eq!(
            (unit("unit.rate_bps"), unit("unit.seconds"), unit("schema")),
            (Some("bit/s"), Some("s"), Some("fullpipe/2"))
        );
        let page = csv::captures(&list).unwrap();
        let names: Vec<&str> = facts.schema().get_fields().iter().map(|field| field.name()).collect();
        assert_eq!(page.lines().next().unwrap().split(',').collect::<Vec<_>>(), names);
        let rows: Vec<_> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
        assert_eq!(rows.len(), list.connections.len());
        let place = |name: &str| names.iter().position(|known| *known == name).unwrap();
        let report = list.connections.get(0).unwrap();
        assert_eq!(rows[0].get_ulong(place("bytes")).unwrap(), report.payload().get());
        assert_eq!(rows[0].get_string(place("limiter")).unwrap(), "receive_window");
        assert_eq!(rows[0].get_string(place("detail")).unwrap(), "scale_zero");
        assert_eq!(rows[0].get_ulong(place("window_scale_b")).unwrap(), 0);
        let first = ::csv::Reader::from_reader(page.as_bytes()).records().next().unwrap().unwrap();
        let absent: Vec<bool> = rows[0].get_column_iter().map(|(_, field)| *field == Field::Null).collect();
        assert_eq!(absent, first.iter().map(str::is_empty).collect::<Vec<_>>());
    }

    #[test]
    fn no_connection_is_no_row() {
        let mut bytes = Vec::new();
        captures(&CaptureList::default(), &mut bytes).unwrap();
        assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
    }
}
