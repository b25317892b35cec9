//! Tables as Arrow IPC files. A column is declared once, with type, help and value; file, schema and catalogue follow.

use crate::LedgerError;
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray, UInt8Array, UInt16Array, UInt32Array, UInt64Array};
use arrow_ipc::writer::FileWriter;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use crosswind_settings::Unit;
use crosswind_units::Instant;
use serde::ser::{Serialize, SerializeStruct, Serializer};
use std::io::{BufWriter, Write};
use std::marker::PhantomData;
use std::sync::Arc;

/// A table's row.
pub trait Row: Sized + 'static {
    /// The table's name in errors: its file's name, if a cell writes it whole.
    const TABLE: &'static str;

    /// The columns, in the file's order.
    const COLUMNS: &'static [Column<Self>];
}

/// One column. A unit ends its name.
#[derive(Debug)]
pub struct Column<R> {
    name: &'static str,
    help: &'static str,
    nullable: bool,
    values: Values<R>,
}

/// A column's type, and its value for a row.
#[derive(Debug)]
pub enum Values<R> {
    /// A count in up to 8 bits.
    U8(fn(&R) -> Option<u8>),
    /// A count in up to 16 bits.
    U16(fn(&R) -> Option<u16>),
    /// A count in up to 32 bits.
    U32(fn(&R) -> Option<u32>),
    /// A count.
    U64(fn(&R) -> Option<u64>),
    /// Nanoseconds between two events.
    Length(fn(&R) -> Option<i64>),
    /// A time, stored as nanoseconds since the cell was ready; earlier ones are negative.
    Time(fn(&R) -> Option<Instant>),
    /// A text.
    Text(fn(&R) -> Option<&str>),
}

impl<R> Column<R> {
    /// A column with a value in every row.
    pub const fn required(name: &'static str, values: Values<R>, help: &'static str) -> Self {
        Self { name, help, nullable: false, values }
    }

    /// A column with nulls for absent or unknown values.
    pub const fn optional(name: &'static str, values: Values<R>, help: &'static str) -> Self {
        Self { name, help, nullable: true, values }
    }

    fn array(&self, rows: &[R], zero: Instant) -> ArrayRef {
        let rows = rows.iter();
        match self.values {
            Values::U8(of) => Arc::new(rows.map(of).collect::<UInt8Array>()),
            Values::U16(of) => Arc::new(rows.map(of).collect::<UInt16Array>()),
            Values::U32(of) => Arc::new(rows.map(of).collect::<UInt32Array>()),
            Values::U64(of) => Arc::new(rows.map(of).collect::<UInt64Array>()),
            Values::Length(of) => Arc::new(rows.map(of).collect::<Int64Array>()),
            Values::Time(of) => {
                Arc::new(rows.map(|row| of(row).map(|at| ns_between(zero, at))).collect::<Int64Array>())
            }
            Values::Text(of) => Arc::new(rows.map(of).collect::<StringArray>()),
        }
    }
}

impl<R> Values<R> {
    /// The type, and its name in the catalogue.
    const fn data_type(&self) -> (DataType, &'static str) {
        match self {
            Self::U8(_) => (DataType::UInt8, "u8"),
            Self::U16(_) => (DataType::UInt16, "u16"),
            Self::U32(_) => (DataType::UInt32, "u32"),
            Self::U64(_) => (DataType::UInt64, "u64"),
            Self::Length(_) | Self::Time(_) => (DataType::Int64, "i64"),
            Self::Text(_) => (DataType::Utf8, "utf8"),
        }
    }
}

/// As the catalogue lists it.
impl<R> Serialize for Column<R> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut column = serializer.serialize_struct("Column", 5)?;
        column.serialize_field("name", self.name)?;
        column.serialize_field("type", self.values.data_type().1)?;
        column.serialize_field("unit", &Unit::of_name(self.name))?;
        column.serialize_field("nullable", &self.nullable)?;
        column.serialize_field("help", self.help)?;
        column.end()
    }
}

/// Nanoseconds from one time to another: right in both directions for 292 years, thanks to two's complement.
pub const fn ns_between(from: Instant, to: Instant) -> i64 {
    to.as_nanos().wrapping_sub(from.as_nanos()) as i64
}

/// Writes rows to an Arrow IPC file, a record batch at a time.
pub struct Table<R: Row, W: Write> {
    writer: FileWriter<BufWriter<W>>,
    schema: SchemaRef,
    zero: Instant,
    rows: PhantomData<fn(&R)>,
}

impl<R: Row, W: Write> Table<R, W> {
    /// A table with times counted from `zero`, when the cell was ready.
    pub fn new(writer: W, zero: Instant) -> Result<Self, LedgerError> {
        let field = |column: &Column<R>| Field::new(column.name, column.values.data_type().0, column.nullable);
        let schema = Arc::new(Schema::new(R::COLUMNS.iter().map(field).collect::<Vec<_>>()));
        let writer = LedgerError::encoding(R::TABLE, FileWriter::try_new_buffered(writer, &schema))?;
        Ok(Self { writer, schema, zero, rows: PhantomData })
    }

    /// Writes `rows` as one record batch.
    pub fn append(&mut self, rows: &[R]) -> Result<(), LedgerError> {
        if rows.is_empty() {
            return Ok(());
        }
        let columns = R::COLUMNS.iter().map(|column| column.array(rows, self.zero)).collect();
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns);
        LedgerError::encoding(R::TABLE, batch.and_then(|batch| self.writer.write(&batch)))
    }

    /// Writes the file's footer, without which it is no Arrow file, and gives the writer back.
    pub fn finish(self) -> Result<W, LedgerError> {
        let buffered = LedgerError::encoding(R::TABLE, self.writer.into_inner())?;
        LedgerError::writing(R::TABLE, buffered.into_inner().map_err(std::io::IntoInnerError::into_error))
    }
}
