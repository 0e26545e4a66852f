//! Parquet, for what reads Arrow's columns (pyarrow, DuckDB, Polars, Spark): a row per connection. What is *not* here: the
//! columns' meaning (`docs/json.md`), and compression, which these files are too small for.
//!
//! The crate's own writer of columns does it: going by way of Arrow would take another ten crates, and write the same.

use std::{io::Write, sync::Arc};

use parquet::{
    basic::{Compression, LogicalType, Repetition, Type as Physical},
    data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type},
    errors::ParquetError,
    file::{
        metadata::KeyValue,
        properties::WriterProperties,
        writer::{SerializedFileWriter, SerializedRowGroupWriter},
    },
    schema::types::Type,
};

use crate::{capture::CaptureList, json::word, row::Row};

/// Connections that are held as rows at once, and read as one group.
const GROUP: usize = 32 * 1024;

/// Counts and rates: none of them is ever negative.
fn unsigned() -> LogicalType {
    LogicalType::integer(64, false)
}

/// A column: its name, which is that of the JSON document's key, its unit, and what it holds.
struct Column {
    name: &'static str,
    /// Empty where there is none.
    unit: &'static str,
    values: Values,
}

enum Values {
    Count(fn(&Row) -> u64),
    MaybeCount(fn(&Row) -> Option<u64>),
    Number(fn(&Row) -> f64),
    Text(fn(&Row) -> String),
    MaybeText(fn(&Row) -> Option<String>),
}

const fn column(name: &'static str, unit: &'static str, values: Values) -> Column {
    Column { name, unit, values }
}

/// In the order of the comma-separated values.
const COLUMNS: &[Column] = &[
    column("number", "", Values::Count(|row| row.number)),
    column("a", "", Values::Text(|row| row.a.clone())),
    column("b", "", Values::Text(|row| row.b.clone())),
    column("packets", "", Values::Count(|row| row.packets)),
    column("bytes", "B", Values::Count(|row| row.bytes)),
    column("seconds", "s", Values::Number(|row| row.seconds)),
    column("direction", "", Values::Text(|row| row.direction.to_owned())),
    column("rate_bps", "bit/s", Values::MaybeCount(|row| row.rate_bps)),
    column("rtt_us", "us", Values::MaybeCount(|row| row.rtt_us)),
    column("retransmissions", "packets", Values::Count(|row| row.retransmissions)),
    column("out_of_order", "packets", Values::Count(|row| row.out_of_order)),
    column("mss", "B", Values::Count(|row| row.mss.into())),
    column("window_scale_a", "", Values::MaybeCount(|row| row.window_scale_a.map(u64::from))),
    column("window_scale_b", "", Values::MaybeCount(|row| row.window_scale_b.map(u64::from))),
    column("limiter", "", Values::Text(|row| word(&row.limiter).unwrap_or_default())),
    column("detail", "", Values::MaybeText(|row| row.detail.as_ref().and_then(word))),
    column("share", "of the time", Values::Number(|row| row.share)),
    column("attainable_bps", "bit/s", Values::MaybeCount(|row| row.attainable_bps)),
    column("action", "", Values::Text(|row| row.action.clone())),
];

/// Writes a row for each connection that is to be shown.
pub fn captures(list: &CaptureList, into: impl Write + Send) -> Result<(), ParquetError> {
    let fields = COLUMNS.iter().map(Column::field).collect::<Result<_, _>>()?;
    let schema = Arc::new(Type::group_type_builder("connection").with_fields(fields).build()?);
    let units = COLUMNS.iter().filter(|column| !column.unit.is_empty());
    let units = units.map(|column| KeyValue::new(format!("unit.{}", column.name), column.unit.to_owned()));
    let version = KeyValue::new("schema".to_owned(), crate::json::SCHEMA.to_owned());
    let properties = WriterProperties::builder()
        .set_compression(Compression::UNCOMPRESSED)
        .set_created_by(concat!("fullpipe version ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_key_value_metadata(Some(units.chain([version]).collect()))
        .build();
    let mut writer = SerializedFileWriter::new(into, schema, Arc::new(properties))?;
    let mut reports = list.connections.iter().take(list.shown).peekable();
    while reports.peek().is_some() {
        let rows: Vec<Row> = reports.by_ref().take(GROUP).map(|report| Row::of(&report)).collect();
        let mut group = writer.next_row_group()?;
        for column in COLUMNS {
            column.write(&rows, &mut group)?;
        }
        group.close()?;
    }
    writer.close()?;
    Ok(())
}

impl Column {
    fn field(&self) -> Result<Arc<Type>, ParquetError> {
        let (physical, logical, repetition) = match self.values {
            Values::Count(_) => (Physical::INT64, Some(unsigned()), Repetition::REQUIRED),
            Values::MaybeCount(_) => (Physical::INT64, Some(unsigned()), Repetition::OPTIONAL),
            Values::Number(_) => (Physical::DOUBLE, None, Repetition::REQUIRED),
            Values::Text(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String), Repetition::REQUIRED),
            Values::MaybeText(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String), Repetition::OPTIONAL),
        };
        let field = Type::primitive_type_builder(self.name, physical).with_repetition(repetition);
        field.with_logical_type(logical).build().map(Arc::new)
    }

    fn write(
        &self,
        rows: &[Row],
        group: &mut SerializedRowGroupWriter<'_, impl Write + Send>,
    ) -> Result<(), ParquetError> {
        let Some(mut column) = group.next_column()? else { return Ok(()) };
        match self.values {
            Values::Count(count) => {
                let values: Vec<i64> = rows.iter().map(|row| count(row).cast_signed()).collect();
                column.typed::<Int64Type>().write_batch(&values, None, None)?;
            }
            Values::MaybeCount(count) => {
                let all: Vec<Option<u64>> = rows.iter().map(count).collect();
                let values: Vec<i64> = all.iter().flatten().map(|count| count.cast_signed()).collect();
                column.typed::<Int64Type>().write_batch(&values, Some(&levels(&all)), None)?;
            }
            Values::Number(number) => {
                let values: Vec<f64> = rows.iter().map(number).collect();
                column.typed::<DoubleType>().write_batch(&values, None, None)?;
            }
            Values::Text(text) => {
                let values: Vec<ByteArray> = rows.iter().map(|row| text(row).as_str().into()).collect();
                column.typed::<ByteArrayType>().write_batch(&values, None, None)?;
            }
            Values::MaybeText(text) => {
                let all: Vec<Option<String>> = rows.iter().map(text).collect();
                let values: Vec<ByteArray> = all.iter().flatten().map(|text| text.as_str().into()).collect();
                column.typed::<ByteArrayType>().write_batch(&values, Some(&levels(&all)), None)?;
            }
        }
        column.close()
    }
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
