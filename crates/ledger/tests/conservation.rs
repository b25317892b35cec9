//! The ledger closes exactly when every count agrees, and otherwise names the counts that differ.

#![allow(clippy::unwrap_used)] // helpers of tests, where a failure is a failed test

use crosswind_ledger::{DeviceCounters, DropCause, Dropped, HopReport, Ledger, LedgerReport, Passed};
use crosswind_path::link::QUEUE_FULL;
use crosswind_path::{Cause, Side};
use crosswind_path::{loss, mtu};
use crosswind_units::Bytes;
use proptest::prelude::*;
use serde_json::json;

const LOSS: DropCause = DropCause::Path(loss::LOSS);
const QUEUE: DropCause = DropCause::Path(QUEUE_FULL);
const TOO_LARGE: DropCause = DropCause::Path(mtu::MTU);

/// Six packets of 100 bytes forward (3 delivered, 1 marked, 1 lost, 1 tail-dropped, 1 queued), one back, and the
/// counters.
fn a_small_cell() -> (Ledger, DeviceCounters, DeviceCounters) {
    let mut ledger = Ledger::new(1);
    for _ in 0..6 {
        ledger.handle_arrival(Side::Forward, Bytes(100));
    }
    for _ in 0..3 {
        ledger.handle_delivery(Side::Forward, Bytes(100));
    }
    ledger.handle_mark(Side::Forward, 0);
    ledger.handle_drop(Side::Forward, LOSS, 0);
    ledger.handle_drop(Side::Forward, QUEUE, 0);
    ledger.handle_arrival(Side::Reverse, Bytes(40));
    ledger.handle_delivery(Side::Reverse, Bytes(40));
    let client =
        DeviceCounters { sent: 6, sent_bytes: 600, received: 1, received_bytes: 40, ..DeviceCounters::default() };
    let server =
        DeviceCounters { sent: 1, sent_bytes: 40, received: 3, received_bytes: 300, ..DeviceCounters::default() };
    (ledger, client, server)
}

#[test]
fn a_closed_ledger_is_written_as_the_protocol_says() {
    let (ledger, client, server) = a_small_cell();
    let report = ledger.close([1, 0], client, server);
    assert_eq!(report.mismatches(), Vec::<String>::new());
    let mut written = serde_json::to_value(&report).unwrap();
    for direction in ["forward", "reverse"] {
        // The protocol names these three; each further kind of element may have a cause beside them.
        let dropped = written[direction]["dropped"].as_object_mut().unwrap();
        dropped.retain(|cause, _| ["loss", "queue", "device"].contains(&cause.as_str()));
    }
    assert_eq!(
        written,
        json!({
            "forward": {"in": 6, "duplicated": 0, "delivered": 3, "dropped": {"loss": 1, "queue": 1, "device": 0}, "marked": 1, "hops": [], "queued": 1,
                        "in_bytes": 600, "delivered_bytes": 300, "corrupted": 0, "icmp": 0},
            "reverse": {"in": 1, "duplicated": 0, "delivered": 1, "dropped": {"loss": 0, "queue": 0, "device": 0}, "marked": 0, "hops": [], "queued": 0,
                        "in_bytes": 40, "delivered_bytes": 40, "corrupted": 0, "icmp": 0},
            "closed": true,
        })
    );
}

#[test]
fn a_cause_that_the_ledger_does_not_know_is_counted_under_its_own_name() {
    let (mut ledger, mut client, server) = a_small_cell();
    ledger.handle_arrival(Side::Forward, Bytes(100));
    ledger.handle_drop(Side::Forward, DropCause::Path(Cause::new("corruption")), 0);
    (client.sent, client.sent_bytes) = (7, 700);
    let report = ledger.close([1, 0], client, server);
    assert_eq!(report.mismatches(), Vec::<String>::new());
    let dropped = serde_json::to_value(&report.forward.dropped).unwrap();
    assert_eq!([&dropped["loss"], &dropped["corruption"], &dropped["device"]], [1, 1, 0]);
}

#[test]
fn a_packet_that_the_path_never_saw_is_reported() {
    let (ledger, mut client, server) = a_small_cell();
    (client.sent, client.sent_bytes) = (8, 800);
    let report = ledger.close([1, 0], client, server);
    assert!(!report.closed);
    assert_eq!(
        report.mismatches(),
        [
            "forward: the client's device sent 8 packets, the path saw 6",
            "forward: the client's device sent 800 bytes, the path saw 600",
            "forward: 8 packets went in, 6 are accounted for",
        ]
    );
}

#[test]
fn a_packet_that_vanished_inside_the_path_is_reported() {
    let (ledger, client, server) = a_small_cell();
    assert_eq!(
        ledger.close([0, 0], client, server).mismatches(),
        [
            "forward: 6 packets entered the path, 5 left it or wait in it",
            "forward: 6 packets went in, 5 are accounted for",
        ]
    );
}

#[test]
fn a_delivery_that_the_kernel_did_not_count_is_reported() {
    let (ledger, client, mut server) = a_small_cell();
    (server.received, server.received_bytes) = (2, 200);
    assert_eq!(
        ledger.close([1, 0], client, server).mismatches(),
        [
            "forward: the path delivered 3 packets, the server's device received 2",
            "forward: the path delivered 300 bytes, the server's device received 200",
            "forward: 6 packets went in, 5 are accounted for",
        ]
    );
}

#[test]
fn bytes_have_to_agree_as_well() {
    let (ledger, client, mut server) = a_small_cell();
    server.received_bytes = 299;
    assert_eq!(
        ledger.close([1, 0], client, server).mismatches(),
        ["forward: the path delivered 300 bytes, the server's device received 299"]
    );
}

#[test]
fn packets_that_never_reach_the_path_are_dropped_by_the_sending_device() {
    let (ledger, mut client, server) = a_small_cell();
    client.dropped_sending = 4;
    let report = ledger.close([1, 0], client, server);
    assert!(report.closed);
    assert_eq!((report.forward.entered, report.forward.dropped.count(DropCause::Device)), (10, 4));
}

#[test]
fn a_refused_write_is_one_drop_though_both_sides_count_it() {
    let (mut ledger, mut client, mut server) = a_small_cell();
    ledger.handle_arrival(Side::Forward, Bytes(100));
    ledger.handle_drop(Side::Forward, DropCause::Device, 0);
    (client.sent, client.sent_bytes) = (7, 700);
    for counted_by_kernel in [1, 0] {
        server.dropped_receiving = counted_by_kernel;
        let report = ledger.close([1, 0], client, server);
        assert!(report.closed, "{:?}", report.mismatches());
        assert_eq!((report.forward.delivered, report.forward.dropped.count(DropCause::Device)), (3, 1));
    }
}

#[test]
fn a_packet_dropped_after_the_device_took_it_was_not_delivered() {
    let (ledger, client, mut server) = a_small_cell();
    server.dropped_receiving = 2;
    let report = ledger.close([1, 0], client, server);
    assert!(report.closed);
    assert_eq!((report.forward.delivered, report.forward.dropped.count(DropCause::Device)), (1, 2));
}

#[test]
fn each_of_several_hops_has_what_it_dropped_and_marked() {
    let mut ledger = Ledger::new(2);
    for _ in 0..4 {
        ledger.handle_arrival(Side::Forward, Bytes(100));
    }
    ledger.handle_drop(Side::Forward, LOSS, 0);
    ledger.handle_drop(Side::Forward, QUEUE, 1);
    ledger.handle_delivery(Side::Forward, Bytes(100));
    ledger.handle_mark(Side::Forward, 1);
    ledger.handle_drop(Side::Forward, DropCause::Device, 1);
    let client = DeviceCounters { sent: 4, sent_bytes: 400, ..DeviceCounters::default() };
    let server = DeviceCounters { received: 1, received_bytes: 100, dropped_receiving: 1, ..DeviceCounters::default() };
    let report = ledger.close([0, 0], client, server);
    assert!(report.closed, "{:?}", report.mismatches());
    let hops: Vec<_> = report.forward.hops.iter().map(|hop| (hop.dropped.total(), hop.marked)).collect();
    // A device's drops are no hop's.
    assert_eq!((hops, report.forward.dropped.total(), report.forward.marked), (vec![(1, 0), (1, 1)], 3, 1));
}

#[test]
fn what_disciplines_dropped_and_hold_is_what_one_device_sent_and_the_other_did_not_receive() {
    let frames = |packets: u64| packets * 114;
    let client = DeviceCounters { sent: 6, sent_bytes: frames(6), ..DeviceCounters::default() };
    let server = DeviceCounters { received: 3, received_bytes: frames(3), ..DeviceCounters::default() };
    let mut dropped = Dropped::default();
    dropped.add(LOSS, 1);
    dropped.add(QUEUE, 1);
    let passed = |queued| {
        let hops = vec![HopReport { dropped: dropped.clone(), ..HopReport::default() }];
        let hole = Passed { hops, queued, ..Passed::default() };
        [hole, Passed::default()]
    };
    let report = LedgerReport::from_disciplines(client, server, passed(1), 14);
    assert!(report.closed, "{:?}", report.mismatches());
    let forward = &report.forward;
    assert_eq!((forward.entered, forward.delivered, forward.in_bytes, forward.delivered_bytes), (6, 3, 600, 300));
    let report = LedgerReport::from_disciplines(client, server, passed(0), 14);
    assert_eq!(report.mismatches(), ["forward: 6 packets went in, 5 are accounted for"]);
}

#[test]
fn on_the_direct_path_the_counts_of_the_two_devices_are_compared() {
    let client =
        DeviceCounters { sent: 5, sent_bytes: 500, received: 2, received_bytes: 80, ..DeviceCounters::default() };
    let server =
        DeviceCounters { sent: 2, sent_bytes: 80, received: 5, received_bytes: 500, ..DeviceCounters::default() };
    let report = LedgerReport::from_devices(client, server);
    assert!(report.closed);
    assert_eq!((report.forward.entered, report.forward.delivered), (5, 5));

    // Both ends count a packet refused by the receiver's device; it is one drop.
    let (sender, receiver) =
        (DeviceCounters { dropped_sending: 1, ..client }, DeviceCounters { dropped_receiving: 1, ..server });
    let report = LedgerReport::from_devices(sender, receiver);
    assert!(report.closed);
    assert_eq!(
        (report.forward.entered, report.forward.delivered, report.forward.dropped.count(DropCause::Device)),
        (6, 5, 1)
    );

    let report = LedgerReport::from_devices(client, DeviceCounters { received: 4, ..server });
    assert_eq!(
        report.mismatches(),
        [
            "forward: the client's device sent 5 packets, the server's device received 4",
            "forward: 5 packets went in, 4 are accounted for",
        ]
    );
}

/// A packet's fate, as counted by the emulator and the two devices.
#[derive(Clone, Copy, Debug)]
enum Fate {
    RingFull,
    Lost,
    TailDropped,
    Queued,
    Delivered,
    Refused,
    DroppedLate,
    /// And its sender is told so by ICMP.
    TooLarge,
    /// And the sender's device refuses the ICMP message.
    TooLargeUntold,
    /// And a copy of it, with a flipped bit.
    Duplicated,
    /// But its copy is dropped.
    CopyLost,
}

fn fate() -> impl Strategy<Value = (Side, Fate, u64)> {
    let fates = [
        Fate::RingFull,
        Fate::Lost,
        Fate::TailDropped,
        Fate::Queued,
        Fate::Delivered,
        Fate::Refused,
        Fate::DroppedLate,
        Fate::TooLarge,
        Fate::TooLargeUntold,
        Fate::Duplicated,
        Fate::CopyLost,
    ];
    (prop::sample::select(Side::BOTH.to_vec()), prop::sample::select(fates.to_vec()), 20..=1500u64)
}

/// Counts packets with these fates: the ledger, the packets still queued, the client's and the server's device.
fn count_all(packets: &[(Side, Fate, u64)]) -> (Ledger, [u64; 2], DeviceCounters, DeviceCounters) {
    let mut ledger = Ledger::new(1);
    let mut queued = [0, 0];
    let mut devices = [DeviceCounters::default(); 2];
    for &(side, fate, bytes) in packets {
        let (sender, receiver) = side.pick((0, 1), (1, 0));
        if matches!(fate, Fate::RingFull) {
            devices[sender].dropped_sending += 1;
            continue;
        }
        devices[sender].sent += 1;
        devices[sender].sent_bytes += bytes;
        let bytes = Bytes(bytes);
        ledger.handle_arrival(side, bytes);
        let delivered = match fate {
            Fate::Duplicated => 2,
            Fate::Delivered | Fate::DroppedLate | Fate::CopyLost => 1,
            _ => 0,
        };
        for _ in 0..delivered {
            ledger.handle_delivery(side, bytes);
            devices[receiver].received += 1;
            devices[receiver].received_bytes += bytes.0;
        }
        match fate {
            Fate::RingFull | Fate::Delivered => {}
            Fate::Duplicated => {
                ledger.handle_duplicate(side);
                ledger.handle_corruption(side);
            }
            Fate::CopyLost => {
                ledger.handle_duplicate(side);
                ledger.handle_drop(side, LOSS, 0);
            }
            Fate::Lost => ledger.handle_drop(side, LOSS, 0),
            Fate::TailDropped => ledger.handle_drop(side, QUEUE, 0),
            Fate::Queued => queued[sender] += 1,
            Fate::TooLarge => {
                ledger.handle_icmp(side, Bytes(576), true);
                ledger.handle_drop(side, TOO_LARGE, 0);
                devices[sender].received += 1;
                devices[sender].received_bytes += 576;
            }
            Fate::TooLargeUntold => {
                ledger.handle_icmp(side, Bytes(576), false);
                ledger.handle_drop(side, TOO_LARGE, 0);
                devices[sender].dropped_receiving += 1;
            }
            Fate::Refused => {
                ledger.handle_drop(side, DropCause::Device, 0);
                devices[receiver].dropped_receiving += 1;
            }
            Fate::DroppedLate => devices[receiver].dropped_receiving += 1,
        }
    }
    (ledger, queued, devices[0], devices[1])
}

proptest! {
    #[test]
    fn every_packet_is_accounted_for(packets in prop::collection::vec(fate(), 0..200)) {
        let (ledger, queued, client, server) = count_all(&packets);
        let report = ledger.close(queued, client, server);
        prop_assert!(report.closed, "{:?}", report.mismatches());
        for (side, direction) in [(Side::Forward, report.forward), (Side::Reverse, report.reverse)] {
            let count = |wanted: fn(&Fate) -> bool| {
                packets.iter().filter(|(at, fate, _)| *at == side && wanted(fate)).count() as u64
            };
            prop_assert_eq!(direction.entered, count(|_| true));
            let duplicated = count(|s| matches!(s, Fate::Duplicated));
            let delivered = count(|s| matches!(s, Fate::Delivered | Fate::CopyLost)) + 2 * duplicated;
            prop_assert_eq!(direction.delivered, delivered);
            prop_assert_eq!(direction.duplicated, count(|s| matches!(s, Fate::Duplicated | Fate::CopyLost)));
            prop_assert_eq!(direction.corrupted, duplicated);
            prop_assert_eq!(direction.dropped.count(LOSS), count(|s| matches!(s, Fate::Lost | Fate::CopyLost)));
            let too_large = count(|s| matches!(s, Fate::TooLarge | Fate::TooLargeUntold));
            prop_assert_eq!(direction.dropped.count(TOO_LARGE), too_large);
            prop_assert_eq!(direction.icmp, count(|s| matches!(s, Fate::TooLarge)));
            prop_assert_eq!(direction.dropped.count(QUEUE), count(|s| matches!(s, Fate::TailDropped)));
            let device = |s: &Fate| matches!(s, Fate::RingFull | Fate::Refused | Fate::DroppedLate);
            prop_assert_eq!(direction.dropped.count(DropCause::Device), count(device));
            prop_assert_eq!(direction.queued, count(|s| matches!(s, Fate::Queued)));
        }
    }

    /// A single wrong count, by any amount, keeps the ledger from closing.
    #[test]
    fn no_wrong_count_goes_unnoticed(
        packets in prop::collection::vec(fate(), 0..100),
        which in 0..10usize,
        error in 1..1000u64,
    ) {
        let (ledger, mut queued, mut client, mut server) = count_all(&packets);
        let count = match which {
            0 => &mut queued[0],
            1 => &mut queued[1],
            2 => &mut client.sent,
            3 => &mut client.received,
            4 => &mut client.sent_bytes,
            5 => &mut client.received_bytes,
            6 => &mut server.sent,
            7 => &mut server.received,
            8 => &mut server.sent_bytes,
            _ => &mut server.received_bytes,
        };
        *count += error;
        let report = ledger.close(queued, client, server);
        prop_assert!(!report.closed);
        prop_assert!(!report.mismatches().is_empty());
    }
}
