//! `packets.arrow`, read back by the Arrow library's own reader.

#![allow(clippy::unwrap_used)] // helpers of tests, where a failure is a failed test

mod support;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use arrow_ipc::reader::FileReader;
use crosswind_ledger::{
    DropCause, Headers, Hold, LedgerError, PacketRecord, PacketTable, Place, Sending, ThreadName, Timer, Trigger,
    Verdict, Waker,
};
use crosswind_path::link::QUEUE_FULL;
use crosswind_path::loss::LOSS;
use crosswind_path::{Side, TimeSpent};
use crosswind_units::{Bytes, Duration, Instant};
use std::io::Cursor;
use support::SmallDisk;

const fn ns(ns: u64) -> Instant {
    Instant::from_nanos(ns)
}

const SPENT: TimeSpent = TimeSpent {
    propagation: Duration::from_nanos(1),
    serialisation: Duration::from_nanos(2),
    queueing: Duration::from_nanos(3),
    jitter: Duration::from_nanos(4),
};

const SENDING: Sending = Sending {
    trigger: Trigger::Packet,
    held_by: Some(Hold::Nagle),
    held_since: Some(ns(500)),
    written: Some((ns(600), ns(700))),
};

const NAP: Timer = Timer {
    thread: ThreadName(*b"worker\0\0\0\0\0\0\0\0\0\0"),
    since: Some(ns(800)),
    before: Some(Place(Side::Reverse, 8)),
};

fn record(side: Side, index: u64, left: Option<u64>, verdict: Verdict) -> PacketRecord {
    let headers = Headers {
        version: 4,
        protocol: 17,
        source_port: 40_000,
        destination_port: 53,
        payload_bytes: 12 + index as u32,
        ..Headers::default()
    };
    PacketRecord {
        copy: index as u16 % 2,
        flipped_bit: (index == 2).then_some(319),
        size: Bytes(40),
        due: ns(3_000),
        spent: SPENT,
        marked_in: (verdict == Verdict::Delivered).then_some(0),
        hop: 1,
        left: left.map(ns),
        sending: (index == 1).then_some(SENDING),
        waker: [Some(Waker::Packet(Place(Side::Forward, 7))), Some(Waker::Timer(NAP)), None]
            .get(index as usize)
            .copied()
            .flatten(),
        verdict,
        ..PacketRecord::new(side, index, ns(1_000 + index), headers)
    }
}

fn write(zero: Instant, batches: &[&[PacketRecord]]) -> Vec<u8> {
    let mut table = PacketTable::new(Vec::new(), zero).unwrap();
    for batch in batches {
        table.append(batch).unwrap();
    }
    table.finish().unwrap()
}

fn read(file: Vec<u8>) -> Vec<RecordBatch> {
    FileReader::try_new(Cursor::new(file), None).unwrap().collect::<Result<_, _>>().unwrap()
}

#[test]
fn every_column_is_read_back_as_it_was_written() {
    let batches = read(write(
        ns(2_000),
        &[
            &[
                record(Side::Forward, 0, Some(3_500), Verdict::Delivered),
                record(Side::Reverse, 1, None, Verdict::Dropped(DropCause::Path(LOSS))),
                record(Side::Reverse, 2, None, Verdict::Dropped(DropCause::Path(QUEUE_FULL))),
                record(Side::Forward, 3, None, Verdict::Dropped(DropCause::Device)),
                record(Side::Forward, 4, None, Verdict::Queued),
            ],
            &[],
            &[record(Side::Forward, 5, Some(9_000), Verdict::Delivered)],
        ],
    ));
    assert_eq!(batches.iter().map(RecordBatch::num_rows).collect::<Vec<_>>(), [5, 1]);
    let batch = &batches[0];
    let schema = batch.schema();
    let names: Vec<_> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    let documented = "direction index copy flipped_bit size_bytes protocol source_port destination_port payload_bytes in_ns due_ns out_ns \
                      verdict cause propagation_ns serialisation_ns queueing_ns jitter_ns marked hop \
                      trigger held_by held_since_ns written_ns \
                      woken_by woken_by_direction woken_by_index woken_thread slept_since_ns";
    assert_eq!(names, documented.split_whitespace().collect::<Vec<_>>());

    let text = |name: &str| {
        batch.column_by_name(name).unwrap().as_string::<i32>().iter().map(|v| v.map(str::to_owned)).collect::<Vec<_>>()
    };
    let some = |values: [&str; 5]| values.map(|value| Some(value.to_owned())).to_vec();
    assert_eq!(text("direction"), some(["forward", "reverse", "reverse", "forward", "forward"]));
    assert_eq!(text("verdict"), some(["delivered", "dropped", "dropped", "dropped", "queued"]));
    assert_eq!(text("cause"), [None, Some("loss"), Some("queue"), Some("device"), None].map(|v| v.map(str::to_owned)));

    let column = |name: &str| batch.column_by_name(name).unwrap();
    assert_eq!(column("index").as_primitive::<UInt64Type>().values(), &[0, 1, 2, 3, 4]);
    assert_eq!(column("copy").as_primitive::<UInt16Type>().values(), &[0, 1, 0, 1, 0]);
    let flipped: Vec<_> = column("flipped_bit").as_primitive::<UInt32Type>().iter().collect();
    assert_eq!(flipped, [None, None, Some(319), None, None]);
    assert_eq!(column("size_bytes").as_primitive::<UInt32Type>().values(), &[40; 5]);
    assert_eq!(column("protocol").as_primitive::<UInt8Type>().values(), &[17; 5]);
    assert_eq!(column("source_port").as_primitive::<UInt16Type>().values(), &[40_000; 5]);
    assert_eq!(column("destination_port").as_primitive::<UInt16Type>().values(), &[53; 5]);
    assert_eq!(column("payload_bytes").as_primitive::<UInt32Type>().values(), &[12, 13, 14, 15, 16]);
    // Times before the cell was ready are negative.
    assert_eq!(column("in_ns").as_primitive::<Int64Type>().values(), &[-1000, -999, -998, -997, -996]);
    assert_eq!(column("due_ns").as_primitive::<Int64Type>().values(), &[1000; 5]);
    for (part, value) in [("propagation", 1), ("serialisation", 2), ("queueing", 3), ("jitter", 4)] {
        assert_eq!(column(&format!("{part}_ns")).as_primitive::<Int64Type>().values(), &[value; 5]);
    }
    assert_eq!(column("marked").as_primitive::<UInt8Type>().values(), &[1, 0, 0, 0, 0]);
    let hops: Vec<_> = column("hop").as_primitive::<UInt8Type>().iter().collect();
    assert_eq!(hops, [Some(0), Some(1), Some(1), None, None]);
    let second = |value: &str| [None, Some(value.to_owned()), None, None, None];
    assert_eq!((text("trigger"), text("held_by")), (second("packet").to_vec(), second("nagle").to_vec()));
    let time = |name: &str| column(name).as_primitive::<Int64Type>().iter().collect::<Vec<_>>();
    assert_eq!(time("held_since_ns"), [None, Some(-1_500), None, None, None]);
    assert_eq!(time("written_ns"), [None, Some(-1_300), None, None, None]);
    let first_two =
        |first: Option<&str>, second: &str| [first.map(str::to_owned), Some(second.to_owned()), None, None, None];
    assert_eq!(text("woken_by"), first_two(Some("packet"), "timer"));
    assert_eq!(text("woken_by_direction"), first_two(Some("forward"), "reverse"));
    let woken: Vec<_> = column("woken_by_index").as_primitive::<UInt64Type>().iter().collect();
    assert_eq!(woken, [Some(7), Some(8), None, None, None]);
    assert_eq!(text("woken_thread"), first_two(None, "worker"));
    assert_eq!(time("slept_since_ns"), [None, Some(-1_200), None, None, None]);
    let out = column("out_ns").as_primitive::<Int64Type>();
    assert_eq!((out.value(0), out.null_count()), (1_500, 4));
}

#[test]
fn a_table_without_packets_has_its_schema() {
    let file = write(Instant::ZERO, &[]);
    let reader = FileReader::try_new(Cursor::new(file), None).unwrap();
    assert_eq!((reader.schema().fields().len(), reader.num_batches()), (29, 0));
}

#[test]
fn a_table_that_is_cut_off_cannot_be_read() {
    let file = write(Instant::ZERO, &[&[record(Side::Forward, 0, None, Verdict::Queued)]]);
    for length in [0, 8, file.len() / 2, file.len() - 1] {
        assert!(FileReader::try_new(Cursor::new(file[..length].to_vec()), None).is_err(), "{length}");
    }
}

#[test]
fn a_full_disk_is_reported_as_one_wherever_the_file_ends() {
    let records = vec![record(Side::Forward, 0, None, Verdict::Queued); 4096];
    let write = |capacity| -> Result<(), LedgerError> {
        let mut table = PacketTable::new(SmallDisk(capacity), Instant::ZERO)?;
        table.append(&records)?;
        table.append(&records)?;
        table.finish().map(drop)
    };
    let whole = write_length(&records);
    write(whole).unwrap();
    for capacity in [0, 1_000, whole / 3, whole / 2, whole - 1] {
        match write(capacity) {
            Err(LedgerError::Write { file: "the packet table", source }) => {
                assert_eq!(source.kind(), std::io::ErrorKind::StorageFull);
            }
            other => panic!("{capacity} of {whole} bytes: {other:?}"),
        }
    }
}

fn write_length(records: &[PacketRecord]) -> usize {
    write(Instant::ZERO, &[records, records]).len()
}
