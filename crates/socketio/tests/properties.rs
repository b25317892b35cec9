//! Invariants: decoding reverses encoding, wherever the stream is cut, and no input panics a decoder.

#![allow(clippy::unwrap_used)] // helpers of tests, where a failure is a failed test

use crosswind_socketio::{
    Carrier, FrameDecoder, Handshake, Message, MessageDecoder, Packet, Payload, Session, decode_polling, encode_frame,
    encode_polling, parse_client_open,
};
use proptest::{collection::vec, prelude::*};

fn payload(shortest: usize) -> impl Strategy<Value = Payload> {
    prop_oneof![
        "\\PC{1,200}".prop_map(Payload::Text),
        vec(any::<u8>(), shortest..300).prop_map(|bytes| Payload::Binary(bytes.into())),
    ]
}

fn drain(decoder: &mut FrameDecoder, chunk: &[u8]) -> Vec<Payload> {
    decoder.handle_bytes(chunk);
    std::iter::from_fn(|| decoder.poll_frame().unwrap()).collect()
}

fn handshake() -> Handshake {
    Handshake {
        sid: "s".to_owned(),
        upgrades: Vec::new(),
        ping_interval_ms: 25_000,
        ping_timeout_ms: 20_000,
        max_payload_bytes: 1_000_000,
    }
}

proptest! {
    #[test]
    fn frames_survive_any_chunking(payloads in vec(payload(1), 0..8), cuts in vec(1_usize..400, 0..40)) {
        let mut stream = Vec::new();
        for payload in &payloads {
            encode_frame(payload, &mut stream).unwrap();
        }
        let mut decoder = FrameDecoder::new(1000);
        let mut decoded = Vec::new();
        let mut rest = &stream[..];
        for cut in cuts {
            let (chunk, after) = rest.split_at(cut.min(rest.len()));
            decoded.extend(drain(&mut decoder, chunk));
            rest = after;
        }
        decoded.extend(drain(&mut decoder, rest));
        prop_assert_eq!(decoded, payloads);
        prop_assert!(decoder.is_between_frames());
    }

    #[test]
    fn polling_payloads_come_back(payloads in vec(payload(0), 1..8)) {
        let packets: Vec<Packet> = payloads.iter().map(|payload| match payload {
            Payload::Text(text) => Packet::Message(text),
            Payload::Binary(bytes) => Packet::Binary(bytes),
        }).collect();
        let decoded: Vec<Payload> = decode_polling(&encode_polling(&packets).unwrap()).map(Result::unwrap).collect();
        prop_assert_eq!(decoded.iter().map(|payload| Packet::parse(payload).unwrap()).collect::<Vec<_>>(), packets);
    }

    #[test]
    fn events_come_back(name in "e.{0,20}", argument in payload(0)) {
        let event = Message::event(&name, argument.clone());
        let mut decoder = MessageDecoder::default();
        let mut decoded = decoder.handle_text(&event.encode().unwrap()).unwrap();
        for attachment in event.attachments {
            decoded = decoder.handle_binary(attachment).unwrap();
        }
        prop_assert_eq!(decoded.unwrap().into_event().unwrap(), (name, argument));
    }

    #[test]
    fn any_bytes_are_decoded_or_refused(bytes in vec(any::<u8>(), 0..100), text in "[0-9b]{0,2}[-/,{}\\[\\]a\":0-9\u{1e}]{0,30}") {
        let mut decoder = FrameDecoder::new(50);
        decoder.handle_bytes(&bytes);
        while let Ok(Some(payload)) = decoder.poll_frame() {
            let _ = Packet::parse(&payload);
        }
        decode_polling(&text).for_each(drop);
        let _ = (Handshake::parse(&text), parse_client_open(&text), MessageDecoder::default().handle_text(&text));
    }

    #[test]
    fn any_payloads_leave_a_session_sound(
        payloads in vec(prop_oneof!["[0-6](probe)?", "40", "4[0-6]1?-?.{0,9}", "0[{}a]*"].prop_map(Payload::Text), 0..12),
        client in any::<bool>(),
    ) {
        let server = || Session::server(Carrier::WebTransport, handshake(), "t".to_owned(), 0).unwrap();
        let mut session = if client { Session::client(Carrier::WebTransport, 0) } else { server() };
        for (now_ns, payload) in (0..).zip(&payloads) {
            session.handle_payload(payload, now_ns);
            prop_assert!(session.next_wakeup().is_none_or(|at| at > now_ns));
        }
    }
}
