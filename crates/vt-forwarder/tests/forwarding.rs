//! The kernel's packet handling without the kernel: a buffer is a vector.

#![allow(clippy::unwrap_used)] // helpers of tests, where a failure is a failed test

use crosswind_packet::{Hold, Place, Sending, ThreadName, Timer, Trigger, Waker};
use crosswind_path::{PathConfig, Side};
use crosswind_units::{Instant, Seed};
use crosswind_vt_forwarder::{Event, Events, Forwarding, Leaving, RawSending, Settings, SettingsError};
use serde_json::{Value, json};

const ORIGIN_NS: u64 = 5_000;
const PACKET: [u8; 40] = {
    let mut packet = [0; 40];
    packet[0] = 0x45;
    packet[3] = 40;
    packet
};

struct Buffer(Vec<u8>);

impl crosswind_vt_forwarder::Buffer for Buffer {
    fn bytes(&self) -> &[u8] {
        &self.0
    }
}

fn settings(path: &Value) -> Settings {
    let config = PathConfig::from_object(path.as_object().unwrap()).unwrap();
    let stages = Side::BOTH.map(|side| config.compiled(side, Seed(7)).unwrap());
    Settings { origin_ns: ORIGIN_NS, keeps_bytes: true, stages }
}

fn path(settings: Settings) -> Forwarding<Buffer> {
    Forwarding::new(settings)
}

/// All logged events, as comparable words.
fn written(path: &mut Forwarding<Buffer>) -> Vec<String> {
    let mut lines = Vec::new();
    while let Some(chunk) = path.take_events() {
        let mut events = Events::new(&chunk);
        lines.extend(events.by_ref().map(|event| match event {
            Event::Entered { side, at, size, bytes, dropped, .. } => {
                assert_eq!(bytes.len() as u64, size.0);
                format!("{} enters at {} dropped {}", side.name(), at.as_nanos(), dropped.is_some())
            }
            Event::Left { side, packet, at, taken } => {
                format!("{} {} leaves at {} taken {taken}", side.name(), packet.index, at.as_nanos())
            }
            Event::Dropped { packet, cause, .. } => format!("{} dropped by {}", packet.index, cause.name()),
            Event::Duplicated { .. } => "duplicated".into(),
            Event::Rest { packet, .. } => format!("{} stays", packet.index),
            Event::Ended { queued, .. } => format!("ended with {queued:?}"),
            other => format!("{other:?}"),
        }));
        assert_eq!(events.rest(), [0_u8; 0]);
        path.give_back_events(chunk);
    }
    lines
}

#[test]
fn a_packet_leaves_when_it_is_due_and_not_once_the_path_has_ended() {
    let mut path = path(settings(&json!({"forward": {"delay_ns": 1000, "lose": [1]}, "reverse": {}})));
    for now in [0, 10, 20] {
        path.handle_packet(0, Side::Forward, ORIGIN_NS + now, Buffer(PACKET.to_vec()), RawSending::default());
    }
    assert!(path.next_leaving().is_none());
    assert_eq!(path.next_wakeup(), Some(ORIGIN_NS + 1000));
    path.release(ORIGIN_NS + 1000);
    let Some(Leaving { waker, pair: 0, side: Side::Forward, bytes, marked: false, flipped_bit: None }) =
        path.next_leaving()
    else {
        panic!("nothing leaves");
    };
    assert_eq!((bytes, waker), (&PACKET[..], Place(Side::Forward, 0).number()));
    path.handle_offered(ORIGIN_NS + 1001, true);
    path.end();
    assert_eq!(path.next_wakeup(), None);
    path.report(ORIGIN_NS + 1002);
    let expected = [
        "forward enters at 0 dropped false",
        "forward enters at 10 dropped true",
        "forward enters at 20 dropped false",
        "1 dropped by loss",
        "forward 0 leaves at 1001 taken true",
        "2 stays",
        "ended with [1, 0]",
    ];
    assert_eq!(written(&mut path), expected);
}

#[test]
fn an_event_says_why_the_sender_sent_and_what_it_acted_upon() {
    let mut path = path(settings(&json!({"forward": {}, "reverse": {}})));
    let raw = RawSending {
        held_since: ORIGIN_NS + 5,
        written_first: ORIGIN_NS + 3,
        written_last: ORIGIN_NS + 4,
        held_by: 2,
        triggered_by: 4,
        waker: Place(Side::Reverse, 12).number(),
        ..RawSending::default()
    };
    let timer = RawSending { waker: (1 << 61) + 321, timers_since: ORIGIN_NS + 6, ..RawSending::default() };
    path.handle_packet(0, Side::Forward, ORIGIN_NS + 9, Buffer(PACKET.to_vec()), raw);
    path.handle_packet(0, Side::Forward, ORIGIN_NS + 9, Buffer(PACKET.to_vec()), timer);
    let chunk = path.take_events().unwrap();
    let told: Vec<_> = Events::new(&chunk)
        .filter_map(
            |event| if let Event::Entered { sending, waker, .. } = event { Some((sending, waker)) } else { None },
        )
        .collect();
    let at = Instant::from_nanos;
    let sending = Sending {
        trigger: Trigger::Packet,
        held_by: Some(Hold::CongestionWindow),
        held_since: Some(at(5)),
        written: Some((at(3), at(4))),
    };
    let nap = Timer { thread: ThreadName::default(), since: Some(at(6)), before: None };
    assert_eq!(told, [(Some(sending), Some(Waker::Packet(Place(Side::Reverse, 12)))), (None, Some(Waker::Timer(nap)))]);
}

#[test]
fn copies_share_their_bytes_until_the_last_has_left() {
    let mut path = path(settings(&json!({"forward": {"duplicate": 1}, "reverse": {}})));
    path.handle_packet(0, Side::Forward, ORIGIN_NS, Buffer(PACKET.to_vec()), RawSending::default());
    let mut left = 0;
    while let Some(leaving) = path.next_leaving() {
        assert_eq!(leaving.bytes, PACKET);
        path.handle_offered(ORIGIN_NS, true);
        left += 1;
    }
    assert_eq!((left, path.is_empty()), (2, true));
}

#[test]
fn a_packet_that_is_too_large_is_answered() {
    let mut path = path(settings(&json!({"forward": {"link_mtu_bytes": 576}, "reverse": {}})));
    let large = [&PACKET[..], &[0; 600]].concat();
    path.handle_packet(0, Side::Forward, ORIGIN_NS, Buffer(large), RawSending::default());
    let answer = path.next_leaving().map(|leaving| (leaving.side, leaving.bytes[9]));
    assert_eq!(answer, Some((Side::Reverse, 1)), "ICMP to the sender");
    path.handle_offered(ORIGIN_NS, true);
    assert!(path.is_empty());
}

/// Fractions have to come out to the last bit, and each phase's settings.
#[test]
fn settings_come_out_as_they_went_in() {
    let path = json!({
        "forward": {"loss": 0.1, "loss_burst": 3.3, "duplicate": 0.7, "delay_ns": 30_000_000, "jitter_ns": 1_000_000, "jitter_correlation": 0.123_456_789},
        "reverse": {"rate_bps": 12_345, "queue": {"bytes": 4000}, "background_rate_bps": 100, "loss_sequence": [0, 1]},
        "changes": [{"start_ns": 10_000_000, "for_ns": 5_000_000, "every_ns": 20_000_000, "forward": {"loss": 1}, "reverse": {}}],
    });
    let settings = settings(&path);
    let text = settings.to_text().unwrap();
    assert_eq!(format!("{settings:?}"), format!("{:?}", Settings::from_text(text.as_bytes()).unwrap()));
    let of_others = text.replacen(|digit: char| digit.is_ascii_hexdigit(), "x", 1);
    assert_eq!(Settings::from_text(of_others.as_bytes()).err(), Some(SettingsError::OtherSources));
    let cut = &text.as_bytes()[..text.len() - 1];
    assert!(matches!(Settings::from_text(cut), Err(SettingsError::Malformed(_))));
}
