//! `packets.arrow`: one row for each packet, as an Arrow IPC file. The columns are those of `docs/cell-protocol.md`.

use crate::{DropCause, LedgerError, PacketRecord};
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray, UInt8Array, UInt16Array, UInt32Array, UInt64Array};
use arrow_ipc::writer::FileWriter;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use crosswind_units::Instant;
use std::io::{BufWriter, Write};
use std::sync::Arc;

const FILE: &str = "the packet table";

/// Writes packet records, a record batch at a time.
///
/// A row is written when the packet's end is known, so that rows stand in the order of leaving; `direction` and `index` give
/// the order of entering.
pub struct PacketTable<W: Write> {
    writer: FileWriter<BufWriter<W>>,
    schema: SchemaRef,
    zero: Instant,
}

impl<W: Write> PacketTable<W> {
    /// A table whose times count from `zero` (the cell's ready time); earlier times are negative.
    pub fn new(writer: W, zero: Instant) -> Result<Self, LedgerError> {
        let schema = Arc::new(schema());
        Ok(Self { writer: FileWriter::try_new_buffered(writer, &schema)?, schema, zero })
    }

    /// Writes `records` as one record batch.
    pub fn append(&mut self, records: &[PacketRecord]) -> Result<(), LedgerError> {
        if records.is_empty() {
            return Ok(());
        }
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), self.columns(records))?;
        Ok(self.writer.write(&batch)?)
    }

    /// Writes the file's footer, without which it is no Arrow file, and gives the writer back.
    pub fn finish(self) -> Result<W, LedgerError> {
        let buffered = self.writer.into_inner()?;
        LedgerError::writing(FILE, buffered.into_inner().map_err(std::io::IntoInnerError::into_error))
    }

    /// The columns, in the order of `schema`.
    fn columns(&self, records: &[PacketRecord]) -> Vec<ArrayRef> {
        let ns = |at: Instant| ns_since(self.zero, at);
        let each = || records.iter();
        vec![
            Arc::new(StringArray::from_iter_values(each().map(|r| r.side.name()))),
            Arc::new(UInt64Array::from_iter_values(each().map(|r| r.index))),
            Arc::new(UInt32Array::from_iter_values(each().map(|r| u32::try_from(r.size.0).unwrap_or(u32::MAX)))),
            Arc::new(UInt8Array::from_iter_values(each().map(|r| r.headers.protocol))),
            Arc::new(UInt16Array::from_iter_values(each().map(|r| r.headers.source_port))),
            Arc::new(UInt16Array::from_iter_values(each().map(|r| r.headers.destination_port))),
            Arc::new(UInt32Array::from_iter_values(each().map(|r| r.headers.payload_bytes))),
            Arc::new(Int64Array::from_iter_values(each().map(|r| ns(r.entered)))),
            Arc::new(Int64Array::from_iter_values(each().map(|r| ns(r.due)))),
            Arc::new(each().map(|r| r.left.map(ns)).collect::<Int64Array>()),
            Arc::new(StringArray::from_iter_values(each().map(|r| r.verdict.name()))),
            Arc::new(each().map(|r| r.verdict.cause().map(DropCause::name)).collect::<StringArray>()),
        ]
    }
}

fn schema() -> Schema {
    let required = |name: &str, kind: DataType| Field::new(name, kind, false);
    Schema::new(vec![
        required("direction", DataType::Utf8),
        required("index", DataType::UInt64),
        required("size_bytes", DataType::UInt32),
        required("protocol", DataType::UInt8),
        required("source_port", DataType::UInt16),
        required("destination_port", DataType::UInt16),
        required("payload_bytes", DataType::UInt32),
        required("in_ns", DataType::Int64),
        required("due_ns", DataType::Int64),
        Field::new("out_ns", DataType::Int64, true),
        required("verdict", DataType::Utf8),
        Field::new("cause", DataType::Utf8, true),
    ])
}

/// The difference is right in both directions for 292 years, thanks to two's complement.
fn ns_since(zero: Instant, at: Instant) -> i64 {
    at.as_nanos().wrapping_sub(zero.as_nanos()) as i64
}
