//! Captures as Wireshark's command-line reader reads them. Where tshark is not installed, the tests say so and pass; in CI
//! they fail.

#![allow(clippy::unwrap_used)] // helpers of tests, where a failure is a failed test

mod support;

use crosswind_ledger::{Capture, CaptureOptions, DropCause};
use crosswind_path::link::QUEUE_FULL;
use crosswind_path::loss::LOSS;
use crosswind_units::Instant;
use std::io::Write;
use std::process::{Command, Stdio};
use support::{datagram_v4, segment_v6};

/// 20 November 2026, 12:00:00.000000001 UTC.
const ORIGIN_NS: u64 = 1_795_176_000_000_000_001;

fn ns(ns: u64) -> Instant {
    Instant::from_nanos(ns)
}

fn capture(host: &str, snap_bytes: u32) -> Capture<Vec<u8>> {
    Capture::new(Vec::new(), CaptureOptions { host, snap_bytes, wall_clock_origin_ns: ORIGIN_NS }).unwrap()
}

/// The `fields` of every packet through `filter`, one line a packet, separated by `|`; `None` without tshark.
fn tshark(file: &[u8], filter: &str, fields: &[&str]) -> Option<Vec<String>> {
    let mut command = Command::new("tshark");
    command.args(["-r", "-", "-Y", filter, "-T", "fields", "-E", "separator=|"]);
    command.args(fields.iter().flat_map(|field| ["-e", field]));
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = match child {
        Ok(child) => child,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && std::env::var_os("CI").is_none() => {
            println!("not tested: tshark is not installed (Debian: apt install tshark)");
            return None;
        }
        Err(error) => panic!("cannot run tshark: {error}"),
    };
    child.stdin.take().unwrap().write_all(file).unwrap();
    let output = child.wait_with_output().unwrap();
    let complaints = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{complaints}");
    // tshark ends with status 0 on some broken files, and says so here.
    assert!(!complaints.contains("cut short") && !complaints.contains("damaged"), "{complaints}");
    Some(String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect())
}

#[test]
fn packets_carry_time_direction_interface_and_the_comment_of_a_drop() {
    let mut capture = capture("client", 65_535);
    capture.sent(ns(0), &datagram_v4(b"one"), None).unwrap();
    capture.sent(ns(10), &datagram_v4(b"two"), Some(DropCause::Path(LOSS))).unwrap();
    capture.sent(ns(1_000_000_019), &segment_v6(b"three"), Some(DropCause::Path(QUEUE_FULL))).unwrap();
    capture.received(ns(2_000_000_000), &segment_v6(b"")).unwrap();
    let file = capture.finish().unwrap();
    let fields = [
        "frame.time_epoch",
        "frame.interface_name",
        "frame.packet_flags_direction",
        "frame.comment",
        "frame.len",
        "_ws.col.Protocol",
    ];
    let Some(lines) = tshark(&file, "frame", &fields) else { return };
    assert_eq!(
        lines,
        [
            "1795176000.000000001|client|0x00000002||31|UDP",
            "1795176000.000000011|client|0x00000002|dropped: loss|31|UDP",
            "1795176001.000000020|client|0x00000002|dropped: queue|65|TCP",
            "1795176002.000000001|client|0x00000001||60|TCP",
        ]
    );
}

#[test]
fn tshark_counts_what_was_written() {
    let mut capture = capture("server", 65_535);
    let (mut lost, mut full) = (0, 0);
    for i in 0..3_000u64 {
        let packet = if i % 2 == 0 { datagram_v4(&vec![0; i as usize % 1_400]) } else { segment_v6(&[1; 7]) };
        match i % 10 {
            0..5 => capture.received(ns(i * 1_000), &packet).unwrap(),
            5 => {
                lost += 1;
                capture.sent(ns(i * 1_000), &packet, Some(DropCause::Path(LOSS))).unwrap();
            }
            6 => {
                full += 1;
                capture.sent(ns(i * 1_000), &packet, Some(DropCause::Path(QUEUE_FULL))).unwrap();
            }
            _ => capture.sent(ns(i * 1_000), &packet, None).unwrap(),
        }
    }
    let file = capture.finish().unwrap();
    let count = |filter| tshark(&file, filter, &["frame.number"]).map(|lines| lines.len());
    let Some(all) = count("frame.interface_name == \"server\"") else { return };
    assert_eq!(all, 3_000);
    assert_eq!(count("frame.packet_flags_direction == 1"), Some(1_500));
    assert_eq!(count("frame.comment == \"dropped: loss\""), Some(lost));
    assert_eq!(count("frame.comment == \"dropped: queue\""), Some(full));
    assert_eq!(count("_ws.malformed"), Some(0));
    assert_eq!(count("frame.time_delta < 0"), Some(0));
}

#[test]
fn a_packet_longer_than_the_limit_is_cut_and_keeps_its_length() {
    let mut capture = capture("client", 61);
    capture.sent(ns(0), &datagram_v4(&[0; 1_000]), None).unwrap();
    capture.sent(ns(1), &datagram_v4(&[0; 33]), None).unwrap();
    let file = capture.finish().unwrap();
    let Some(lines) = tshark(&file, "frame", &["frame.len", "frame.cap_len", "udp.dstport"]) else { return };
    assert_eq!(lines, ["1028|61|7777", "61|61|7777"]);
}

#[test]
fn an_empty_capture_opens() {
    let file = capture("client", 1_500).finish().unwrap();
    if let Some(lines) = tshark(&file, "frame", &["frame.number"]) {
        assert_eq!(lines, Vec::<String>::new());
    }
}
