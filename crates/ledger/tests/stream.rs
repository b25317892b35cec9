//! From recorder to sink: no record is lost, the recorder never waits, and a slow or full disk is handled.

#![allow(clippy::unwrap_used)] // helpers of tests, where a failure is a failed test

mod support;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_ipc::reader::FileReader;
use crosswind_ledger::{
    Capture, CaptureOptions, Headers, LedgerError, PacketRecord, PacketTable, Recorder, SinkReport, Wanted,
};
use crosswind_path::Side;
use crosswind_units::Instant;
use std::io::{Cursor, Write};
use support::{Memory, SmallDisk, datagram_v4};

fn record(index: u64) -> PacketRecord {
    PacketRecord::new(Side::Forward, index, Instant::ZERO, Headers::default())
}

fn capture<W: Write>(writer: W, host: &str) -> Capture<W> {
    Capture::new(writer, CaptureOptions { host, snap_bytes: 65_535, wall_clock_origin_ns: 0 }).unwrap()
}

type NoCaptures = Option<(Capture<Vec<u8>>, Capture<Vec<u8>>)>;

#[test]
fn every_record_arrives_once_and_in_order() {
    let count = 4096 * 11 + 5;
    let file = Memory::default();
    let table = PacketTable::new(file.clone(), Instant::ZERO).unwrap();
    let (mut recorder, sink) = Recorder::new(true, Wanted::Nothing);
    let report = std::thread::scope(|scope| {
        let sink = scope.spawn(move || sink.run(Some(table), NoCaptures::None));
        (0..count).for_each(|index| recorder.packet(record(index)));
        recorder.finish();
        sink.join().unwrap().unwrap()
    });
    assert_eq!(report, SinkReport { packets: count, ..SinkReport::default() });
    let read: Vec<u64> = FileReader::try_new(Cursor::new(file.bytes()), None)
        .unwrap()
        .flat_map(|batch| {
            batch.unwrap().column_by_name("index").unwrap().as_primitive::<UInt64Type>().values().to_vec()
        })
        .collect();
    assert_eq!(read, (0..count).collect::<Vec<_>>());
}

#[test]
fn a_capture_through_the_recorder_equals_one_that_is_written_directly() {
    let (client, server) = (Memory::default(), Memory::default());
    let captures = (capture(client.clone(), "client"), capture(server.clone(), "server"));
    let (mut expected_client, mut expected_server) = (capture(Vec::new(), "client"), capture(Vec::new(), "server"));
    let (mut recorder, sink) = Recorder::new(false, Wanted::Captures);
    let sink = std::thread::spawn(move || sink.run(None::<PacketTable<Vec<u8>>>, Some(captures)));
    for i in 0..2_000u64 {
        let (at, packet) = (Instant::from_nanos(i), datagram_v4(&vec![i as u8; (i % 1_400) as usize]));
        recorder.sent(Side::Forward, at, &packet, None);
        recorder.received(Side::Forward, at, &packet);
        recorder.sent(Side::Reverse, at, &packet, None);
        expected_client.sent(at, &packet, None).unwrap();
        expected_server.received(at, &packet).unwrap();
        expected_server.sent(at, &packet, None).unwrap();
    }
    recorder.finish();
    let report = sink.join().unwrap().unwrap();
    assert_eq!(report, SinkReport { captured: 6_000, ..SinkReport::default() });
    assert!(client.bytes() == expected_client.finish().unwrap());
    assert!(server.bytes() == expected_server.finish().unwrap());
}

#[test]
fn a_recorder_that_is_off_records_nothing() {
    let mut recorder = Recorder::off();
    assert!(!recorder.wants_packets());
    recorder.packet(record(0));
    recorder.sent(Side::Forward, Instant::ZERO, &[0; 100], None);
    recorder.finish();
}

#[test]
fn a_recorder_that_is_dropped_unfinished_still_sends_its_last_batches() {
    let (mut recorder, sink) = Recorder::new(true, Wanted::Captures);
    recorder.packet(record(0));
    recorder.received(Side::Forward, Instant::ZERO, &datagram_v4(b"x"));
    drop(recorder);
    let table = PacketTable::new(Vec::new(), Instant::ZERO).unwrap();
    let captures = (capture(Vec::new(), "client"), capture(Vec::new(), "server"));
    let report = sink.run(Some(table), Some(captures)).unwrap();
    assert_eq!(report, SinkReport { packets: 1, captured: 1, ..SinkReport::default() });
}

#[test]
fn while_the_disk_stands_still_captures_have_gaps_and_all_records_wait() {
    let (mut recorder, sink) = Recorder::new(true, Wanted::Captures);
    let packet = [0x45; 1_500];
    let sent = 100_000; // 150 MB
    for index in 0..sent {
        recorder.sent(Side::Forward, Instant::ZERO, &packet, None);
        recorder.packet(record(index));
    }
    recorder.finish();
    let table = PacketTable::new(std::io::sink(), Instant::ZERO).unwrap();
    let captures = (capture(std::io::sink(), "client"), capture(std::io::sink(), "server"));
    let report = sink.run(Some(table), Some(captures)).unwrap();
    assert_eq!((report.packets, report.captured + report.capture_missed), (sent, sent));
    let captured_bytes = report.captured * 1_500;
    let limit = 64 * 1024 * 1024;
    assert!((limit..=limit + 256 * 1024).contains(&captured_bytes), "{captured_bytes}");
}

#[test]
fn after_a_full_disk_the_recorder_goes_on_and_the_sink_says_why() {
    let (mut recorder, sink) = Recorder::new(true, Wanted::Nothing);
    let table = PacketTable::new(SmallDisk(100_000), Instant::ZERO).unwrap();
    let sink = std::thread::spawn(move || sink.run(Some(table), NoCaptures::None));
    (0..50_000).for_each(|index| recorder.packet(record(index)));
    let error = sink.join().unwrap().unwrap_err();
    (0..50_000).for_each(|index| recorder.packet(record(index)));
    recorder.finish();
    assert!(matches!(error, LedgerError::Write { file: "the packet table", .. }), "{error}");

    let (mut recorder, sink) = Recorder::new(false, Wanted::Captures);
    let captures = (capture(SmallDisk(10_000), "client"), capture(SmallDisk(10_000), "server"));
    (0..100).for_each(|_| recorder.sent(Side::Reverse, Instant::ZERO, &[0; 1_500], None));
    recorder.finish();
    let error = sink.run(None::<PacketTable<Vec<u8>>>, Some(captures)).unwrap_err();
    assert!(error.to_string().starts_with("cannot write a capture: "), "{error}");
}
