//! Exact bytes and texts from the JavaScript originals, made with engine.io-parser 5.2.3 (`createPacketEncoderStream`,
//! `encodePayload`) and socket.io-parser 4.2.7 (`Encoder`) on Node 20.20.

#![allow(clippy::unwrap_used)] // helpers of tests, where a failure is a failed test

use bytes::Bytes;
use crosswind_socketio::{
    Error, FrameDecoder, Handshake, MAX_ATTACHMENTS, Message, MessageDecoder, MessageKind, Packet, Payload,
    decode_polling, encode_frame, encode_polling, parse_client_open,
};
use serde_json::{Value, json};

fn check_frame(packet: Packet, header: &[u8], payload: &[u8]) {
    let expected = [header, payload].concat();
    let mut frame = Vec::new();
    encode_frame(&packet.to_payload(), &mut frame).unwrap();
    assert_eq!(frame, expected);
    let mut decoder = FrameDecoder::new(payload.len() as u64);
    decoder.handle_bytes(&expected);
    let decoded = decoder.poll_frame().unwrap().unwrap();
    assert_eq!(Packet::parse(&decoded), Ok(packet));
    assert!(decoder.is_between_frames());
}

fn frame_error(bytes: &[u8], max_payload_bytes: u64) -> Error {
    let mut decoder = FrameDecoder::new(max_payload_bytes);
    decoder.handle_bytes(bytes);
    let error = decoder.poll_frame().unwrap_err();
    decoder.handle_bytes(b"\x012");
    assert_eq!(decoder.poll_frame(), Err(error.clone()), "a failed stream stays failed");
    error
}

#[test]
fn frames_of_every_packet_type() {
    check_frame(Packet::Open(""), b"\x01", b"0");
    check_frame(Packet::Open(r#"{"sid":"lv_VI97HAXpY6yYWAAAB"}"#), b"\x1f", br#"0{"sid":"lv_VI97HAXpY6yYWAAAB"}"#);
    check_frame(Packet::Close, b"\x01", b"1");
    check_frame(Packet::Ping(""), b"\x01", b"2");
    check_frame(Packet::Ping("probe"), b"\x06", b"2probe");
    check_frame(Packet::Pong(""), b"\x01", b"3");
    check_frame(Packet::Message(""), b"\x01", b"4");
    check_frame(Packet::Message("h\u{e9}llo \u{20ac}"), b"\x0b", b"4h\xc3\xa9llo \xe2\x82\xac");
    check_frame(Packet::Upgrade, b"\x01", b"5");
    check_frame(Packet::Noop, b"\x01", b"6");
    check_frame(Packet::Binary(&Bytes::from_static(&[0, 1, 254, 255])), b"\x84", &[0, 1, 254, 255]);
}

#[test]
fn headers_at_the_edges_of_their_lengths() {
    let edges: [(usize, &[u8], &[u8]); 4] = [
        (125, b"\x7d", b"\xfd"),
        (126, b"\x7e\x00\x7e", b"\xfe\x00\x7e"),
        (65_535, b"\x7e\xff\xff", b"\xfe\xff\xff"),
        (65_536, b"\x7f\x00\x00\x00\x00\x00\x01\x00\x00", b"\xff\x00\x00\x00\x00\x00\x01\x00\x00"),
    ];
    for (length, text_header, binary_header) in edges {
        let text = "a".repeat(length - 1);
        check_frame(Packet::Message(&text), text_header, format!("4{text}").as_bytes());
        check_frame(Packet::Binary(&vec![7; length].into()), binary_header, &vec![7; length]);
    }
}

#[test]
fn frames_that_are_refused() {
    assert_eq!(frame_error(b"\x00", 10), Error::EmptyFrame);
    assert_eq!(frame_error(b"\x80", 10), Error::EmptyFrame);
    assert_eq!(frame_error(b"\x7e\x00\x00", 10), Error::EmptyFrame);
    assert_eq!(frame_error(b"\x0b", 10), Error::PayloadTooLong { length_bytes: 11, max_bytes: 10 });
    let huge = frame_error(b"\xff\xff\xff\xff\xff\xff\xff\xff\xff", 10);
    assert_eq!(huge, Error::PayloadTooLong { length_bytes: u64::MAX, max_bytes: 10 });
    assert_eq!(frame_error(b"\x02\xc3\x28", 10), Error::NotUtf8);
    assert_eq!(encode_frame(&Payload::Binary(Bytes::new()), &mut Vec::new()), Err(Error::EmptyFrame));
    let mut longer_header_than_needed = FrameDecoder::new(10);
    longer_header_than_needed.handle_bytes(b"\x7e\x00\x012");
    assert_eq!(longer_header_than_needed.poll_frame(), Ok(Some("2".into())));
}

#[test]
fn packets_that_are_refused() {
    let error = |text: &str| Packet::parse(&text.into()).unwrap_err();
    assert_eq!(error(""), Error::EmptyPacket);
    assert_eq!(error("7"), Error::PacketType('7'));
    assert_eq!(error("\u{20ac}"), Error::PacketType('\u{20ac}'));
    assert_eq!(error("1x"), Error::PacketData('1'));
    assert_eq!(error("5x"), Error::PacketData('5'));
    assert_eq!(error("6x"), Error::PacketData('6'));
}

#[test]
fn a_polling_payload() {
    let expected = "0{}\u{1e}4a\u{20ac}\u{1e}bAQIDBAU=\u{1e}b\u{1e}b//4=\u{1e}2probe\u{1e}6";
    let (five, none, two) = (Bytes::from_static(&[1, 2, 3, 4, 5]), Bytes::new(), Bytes::from_static(&[255, 254]));
    let binaries = [Packet::Binary(&five), Packet::Binary(&none), Packet::Binary(&two)];
    let texts = [Packet::Open("{}"), Packet::Message("a\u{20ac}"), Packet::Ping("probe"), Packet::Noop];
    let packets = [&texts[..2], &binaries, &texts[2..]].concat();
    assert_eq!(encode_polling(&packets).unwrap(), expected);
    let payloads: Vec<Payload> = decode_polling(expected).map(Result::unwrap).collect();
    assert_eq!(payloads.iter().map(|payload| Packet::parse(payload).unwrap()).collect::<Vec<_>>(), packets);

    assert_eq!(encode_polling(&[Packet::Message("a\u{1e}b")]), Err(Error::RecordSeparator));
    assert!(matches!(decode_polling("b!").next(), Some(Err(Error::Base64(_)))));
}

#[test]
fn the_open_packet_of_an_official_server() {
    // socket.io 4.8.4, over WebSocket.
    let json =
        r#"{"sid":"b54JN-gwkJECpyBpAAAA","upgrades":[],"pingInterval":300,"pingTimeout":200,"maxPayload":1000000}"#;
    let handshake = Handshake::parse(json).unwrap();
    assert_eq!(handshake.sid, "b54JN-gwkJECpyBpAAAA");
    assert_eq!(handshake.upgrades, Vec::<String>::new());
    assert_eq!((handshake.ping_interval_ms, handshake.ping_timeout_ms), (300, 200));
    assert_eq!(handshake.max_payload_bytes, 1_000_000);
    assert_eq!(handshake.to_json(), json);

    let broken: [(&str, &str, &str); 9] = [
        ("b54JN-gwkJECpyBpAAAA", "", "sid"),
        ("b54JN-gwkJECpyBpAAAA", r"a\\b", "sid"),
        (r#""b54JN-gwkJECpyBpAAAA""#, "1", "sid"),
        ("[]", "[1]", "upgrades"),
        (r#""upgrades":[],"#, "", "upgrades"),
        ("300", "0", "pingInterval"),
        ("300", "2147483648", "pingInterval"),
        ("200", "0.5", "pingTimeout"),
        ("1000000", "9007199254740992", "maxPayload"),
    ];
    for (sound, wrong, named) in broken {
        let error = Handshake::parse(&json.replacen(sound, wrong, 1)).unwrap_err();
        assert!(matches!(error, Error::Handshake { field, .. } if field == named), "{wrong}: {error}");
    }
    assert!(matches!(Handshake::parse("{"), Err(Error::Json { .. })));
    assert_eq!(parse_client_open(""), Ok(None));
    assert_eq!(parse_client_open(r#"{"sid":"a-1"}"#), Ok(Some("a-1".to_owned())));
    assert!(matches!(parse_client_open("{}"), Err(Error::Handshake { field: "sid", .. })));
}

#[test]
fn messages_of_every_kind() {
    let message = |kind, namespace: &str, ack_id, data: Value, attachments: &[&'static [u8]]| {
        let attachments = attachments.iter().map(|bytes| Bytes::from_static(bytes)).collect();
        let data = if data.is_null() { None } else { Some(data) };
        Message { kind, namespace: namespace.to_owned(), ack_id, data, attachments }
    };
    let placeholder = |number: u32| json!({ "_placeholder": true, "num": number });
    let sid = json!({ "sid": "oSO0OpakMV_3jnilAAAA" });
    let two = json!(["e", placeholder(0), { "a": placeholder(1) }]);
    let control = "\0\u{1e}\u{8}\t\n\u{c}\r\"\\/\u{7f}\u{2028}\u{e9}\u{20ac}\u{1f600}";
    let vectors = [
        ("0", message(MessageKind::Connect, "/", None, Value::Null, &[])),
        (r#"0/admin,{"token":"t"}"#, message(MessageKind::Connect, "/admin", None, json!({ "token": "t" }), &[])),
        (r#"0{"sid":"oSO0OpakMV_3jnilAAAA"}"#, message(MessageKind::Connect, "/", None, sid, &[])),
        ("1", message(MessageKind::Disconnect, "/", None, Value::Null, &[])),
        ("1/admin,", message(MessageKind::Disconnect, "/admin", None, Value::Null, &[])),
        (r#"2["echo","a"]"#, message(MessageKind::Event, "/", None, json!(["echo", "a"]), &[])),
        (r#"2/admin,456["echo","a"]"#, message(MessageKind::Event, "/admin", Some(456), json!(["echo", "a"]), &[])),
        (
            "2[\"e\\\"\\\\/\",\"\\u0000\\u001e\\b\\t\\n\\f\\r\\\"\\\\/\u{7f}\u{2028}\u{e9}\u{20ac}\u{1f600}\"]",
            message(MessageKind::Event, "/", None, json!(["e\"\\/", control]), &[]),
        ),
        (
            r#"2["e",1,null,true,[],{}]"#,
            message(MessageKind::Event, "/", None, json!(["e", 1, null, true, [], {}]), &[]),
        ),
        ("312[]", message(MessageKind::Ack, "/", Some(12), json!([]), &[])),
        (
            r#"3/admin,9007199254740991["x"]"#,
            message(MessageKind::Ack, "/admin", Some((1 << 53) - 1), json!(["x"]), &[]),
        ),
        (
            r#"4/admin,{"message":"Not authorized"}"#,
            message(MessageKind::ConnectError, "/admin", None, json!({ "message": "Not authorized" }), &[]),
        ),
        (r#"4"no""#, message(MessageKind::ConnectError, "/", None, json!("no"), &[])),
        (
            r#"51-["echo",{"_placeholder":true,"num":0}]"#,
            message(MessageKind::Event, "/", None, json!(["echo", placeholder(0)]), &[&[1, 2, 3]]),
        ),
        (
            r#"52-/admin,7["e",{"_placeholder":true,"num":0},{"a":{"_placeholder":true,"num":1}}]"#,
            message(MessageKind::Event, "/admin", Some(7), two, &[&[1], &[2]]),
        ),
        (
            r#"61-3[{"_placeholder":true,"num":0}]"#,
            message(MessageKind::Ack, "/", Some(3), json!([placeholder(0)]), &[&[9]]),
        ),
    ];
    for (text, message) in vectors {
        assert_eq!(message.encode().unwrap(), text);
        let mut decoder = MessageDecoder::default();
        let mut decoded = decoder.handle_text(text).unwrap();
        for attachment in &message.attachments {
            assert_eq!(decoded, None, "{text} waits for its attachments");
            decoded = decoder.handle_binary(attachment.clone()).unwrap();
        }
        assert_eq!(decoded, Some(message), "{text}");
    }
    assert_eq!(Message::event("echo", "a".into()).encode().unwrap(), r#"2["echo","a"]"#);
}

#[test]
fn messages_that_are_refused() {
    let error = |text: &str| MessageDecoder::default().handle_text(text).unwrap_err();
    assert_eq!(error(""), Error::MessageType(None));
    assert_eq!(error("7"), Error::MessageType(Some('7')));
    for text in ["0[]", "1{}", "2", r#"2{"a":1}"#, "31", "4", "4[]"] {
        assert!(matches!(error(text), Error::MessageData(_)), "{text}: {}", error(text));
    }
    for text in ["2[]", r#"2[1,"x"]"#, r#"2["connect","x"]"#] {
        assert_eq!(error(text), Error::EventName, "{text}");
    }
    for text in ["05{}", "15", "3[]", r#"299999999999999999999["a"]"#] {
        assert_eq!(error(text), Error::AckId, "{text}");
    }
    for text in [r#"50-["a"]"#, r#"51["a"]"#, r#"5-["a"]"#, r#"5["a"]"#] {
        assert_eq!(error(text), Error::AttachmentCount, "{text}");
    }
    assert!(matches!(error(r#"2["a""#), Error::Json { .. }));
    assert_eq!(error(r#"517-["a"]"#), Error::TooManyAttachments(MAX_ATTACHMENTS + 1));
    for arguments in [r"", r#",{"_placeholder":true,"num":1}"#, r#",{"_placeholder":true,"num":"0"}"#] {
        assert_eq!(error(&format!(r#"51-["a"{arguments}]"#)), Error::Placeholders { attachments: 1 }, "{arguments}");
    }
    let twice = r#"{"_placeholder":true,"num":0}"#;
    assert_eq!(error(&format!(r#"52-["a",{twice},{twice}]"#)), Error::Placeholders { attachments: 2 });

    let mut decoder = MessageDecoder::default();
    assert_eq!(decoder.handle_binary(Bytes::new()), Err(Error::UnannouncedBinary));
    assert_eq!(decoder.handle_text(r#"51-["a",{"_placeholder":true,"num":0}]"#), Ok(None));
    assert_eq!(decoder.handle_text("1"), Err(Error::AttachmentsMissing { missing: 1 }));

    let attached = Message { attachments: vec![Bytes::new()], ..Message::new(MessageKind::Connect, None) };
    assert_eq!(attached.encode(), Err(Error::UnexpectedAttachments));
    for namespace in ["admin", "/a,b", ""] {
        let astray = Message { namespace: namespace.to_owned(), ..Message::new(MessageKind::Connect, None) };
        assert_eq!(astray.encode(), Err(Error::Namespace));
    }
}

#[test]
fn an_event_has_one_argument_text_or_binary() {
    let read = |text: &str| MessageDecoder::default().handle_text(text).unwrap().unwrap().into_event();
    assert_eq!(read(r#"2["echo","a"]"#), Ok(("echo".to_owned(), "a".into())));
    for text in
        [r#"2["echo"]"#, r#"2["echo",1]"#, r#"2["echo","a","b"]"#, r#"27["echo","a"]"#, r#"31["echo","a"]"#, "1"]
    {
        assert_eq!(read(text), Err(Error::Arguments), "{text}");
    }
    let bytes = Payload::Binary(Bytes::from_static(&[1]));
    assert_eq!(Message::event("e", bytes.clone()).into_event(), Ok(("e".to_owned(), bytes)));
}
