//! Files of a cell: written under a `.part` name, renamed when whole. And the samples as an Arrow IPC file.

use crate::CellError;
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray, UInt32Array, UInt64Array};
use arrow_ipc::writer::FileWriter;
use arrow_schema::{ArrowError, DataType, Field, Schema};
use crosswind_units::Instant;
use crosswind_workload::{PageObject, Sample};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const ROWS_PER_BATCH: usize = 16_384;

/// A file that is not yet whole.
pub struct UnfinishedFile {
    name: &'static str,
    path: PathBuf,
    final_path: PathBuf,
}

impl UnfinishedFile {
    /// Begins `name` in `directory`.
    pub fn create(directory: &Path, name: &'static str) -> Result<(Self, File), CellError> {
        let unfinished = Self { name, path: directory.join(format!("{name}.part")), final_path: directory.join(name) };
        let file = File::create(&unfinished.path).map_err(|e| CellError::disk(name, &e))?;
        Ok((unfinished, file))
    }

    /// Everything is written: gives the file its name.
    pub fn complete(self) -> Result<(), CellError> {
        fs::rename(&self.path, &self.final_path).map_err(|e| CellError::disk(self.name, &e))
    }
}

/// Writes `samples.arrow`; times count from `zero`.
pub fn write_samples(directory: &Path, samples: &[Sample], zero: Instant) -> Result<(), CellError> {
    write(directory, "samples.arrow", schema(), samples, |rows| columns(rows, zero))
}

/// Writes `objects.arrow`, likewise.
pub fn write_objects(directory: &Path, objects: &[PageObject], zero: Instant) -> Result<(), CellError> {
    write(directory, "objects.arrow", object_schema(), objects, |rows| object_columns(rows, zero))
}

fn write<T>(
    directory: &Path,
    name: &'static str,
    schema: Schema,
    all: &[T],
    columns: impl Fn(&[T]) -> Vec<ArrayRef>,
) -> Result<(), CellError> {
    let (unfinished, file) = UnfinishedFile::create(directory, name)?;
    let write = || -> Result<(), ArrowError> {
        let schema = Arc::new(schema);
        let mut writer = FileWriter::try_new_buffered(file, &schema)?;
        for rows in all.chunks(ROWS_PER_BATCH) {
            writer.write(&RecordBatch::try_new(Arc::clone(&schema), columns(rows))?)?;
        }
        writer.finish()?;
        writer.into_inner()?.into_inner().map_err(io::IntoInnerError::into_error)?;
        Ok(())
    };
    write().map_err(|e| match e {
        ArrowError::IoError(_, cause) => CellError::disk(name, &cause),
        other => CellError::internal(format!("cannot encode {name}: {other}")),
    })?;
    unfinished.complete()
}

fn schema() -> Schema {
    let time = |name: &str| Field::new(name, DataType::Int64, true);
    let count = |name: &str| Field::new(name, DataType::UInt64, false);
    Schema::new(vec![
        count("exchange"),
        Field::new("connection", DataType::UInt32, false),
        time("intended_ns"),
        time("sent_ns"),
        time("received_ns"),
        time("connect_ns"),
        time("transport_ns"),
        time("security_ns"),
        time("upgrade_ns"),
        time("request_ns"),
        time("reply_ns"),
        time("server_ns"),
        count("sent_bytes"),
        count("received_bytes"),
        time("wire_ns"),
        Field::new("outcome", DataType::Utf8, false),
        Field::new("stream", DataType::UInt32, false),
        Field::new("own_drops", DataType::UInt32, true),
    ])
}

fn object_schema() -> Schema {
    let time = |name: &str| Field::new(name, DataType::Int64, true);
    Schema::new(vec![
        Field::new("page", DataType::UInt64, false),
        Field::new("object", DataType::Utf8, false),
        Field::new("connection", DataType::UInt32, false),
        time("queued_ns"),
        time("sent_ns"),
        time("first_ns"),
        time("received_ns"),
        Field::new("bytes", DataType::UInt64, false),
        Field::new("outcome", DataType::Utf8, false),
    ])
}

fn object_columns(rows: &[PageObject], zero: Instant) -> Vec<ArrayRef> {
    let time = |of: fn(&PageObject) -> Option<Instant>| -> ArrayRef {
        Arc::new(rows.iter().map(|row| of(row).map(|at| signed(at) - signed(zero))).collect::<Int64Array>())
    };
    vec![
        Arc::new(rows.iter().map(|row| Some(row.page)).collect::<UInt64Array>()),
        Arc::new(rows.iter().map(|row| Some(row.object.as_str())).collect::<StringArray>()),
        Arc::new(rows.iter().map(|row| Some(row.connection)).collect::<UInt32Array>()),
        time(|row| Some(row.queued)),
        time(|row| row.sent),
        time(|row| row.first),
        time(|row| row.received),
        Arc::new(rows.iter().map(|row| Some(row.bytes)).collect::<UInt64Array>()),
        Arc::new(rows.iter().map(|row| Some(row.outcome.name())).collect::<StringArray>()),
    ]
}

fn columns(rows: &[Sample], zero: Instant) -> Vec<ArrayRef> {
    let since = |from: Option<Instant>, to: Option<Instant>| Some(signed(to?) - signed(from?));
    let time = |of: fn(&Sample) -> Option<Instant>| -> ArrayRef {
        Arc::new(rows.iter().map(|row| since(Some(zero), of(row))).collect::<Int64Array>())
    };
    let length =
        |of: &dyn Fn(&Sample) -> Option<i64>| -> ArrayRef { Arc::new(rows.iter().map(of).collect::<Int64Array>()) };
    let count = |of: fn(&Sample) -> u64| -> ArrayRef {
        Arc::new(rows.iter().map(|row| Some(of(row))).collect::<UInt64Array>())
    };
    vec![
        count(|row| row.exchange),
        Arc::new(rows.iter().map(|row| Some(row.connection)).collect::<UInt32Array>()),
        time(|row| row.intended),
        time(|row| row.sent),
        time(|row| row.received),
        length(&|row| row.setup.map(|setup| setup.total_ns as i64)),
        length(&|row| row.setup?.transport_ns.map(|ns| ns as i64)),
        length(&|row| row.setup?.security_ns.map(|ns| ns as i64)),
        length(&|row| row.setup?.upgrade_ns.map(|ns| ns as i64)),
        length(&|row| since(row.sent, row.server_received)),
        length(&|row| since(row.server_sent, row.received)),
        length(&|row| since(row.server_received, row.server_sent)),
        count(|row| row.sent_bytes),
        count(|row| row.received_bytes),
        length(&|row| row.wire_ns.map(|ns| ns as i64)),
        Arc::new(rows.iter().map(|row| Some(row.outcome.name())).collect::<StringArray>()),
        Arc::new(rows.iter().map(|row| Some(row.stream)).collect::<UInt32Array>()),
        Arc::new(rows.iter().map(|row| row.own_drops).collect::<UInt32Array>()),
    ]
}

const fn signed(time: Instant) -> i64 {
    time.as_nanos() as i64
}
