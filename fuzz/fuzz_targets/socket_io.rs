//! Socket.IO messages and whole sessions from any frames: the first byte chooses the session they are fed to.

#![no_main]

use crosswind_socketio::{
    Carrier, Error, Event, FrameDecoder, Handshake, Joined, Message, MessageDecoder, Packet, Payload, Session,
};
use libfuzzer_sys::fuzz_target;

fn session(choice: u8) -> Session {
    let handshake = Handshake {
        sid: "s".to_owned(),
        upgrades: Vec::new(),
        ping_interval_ms: 300,
        ping_timeout_ms: 200,
        max_payload_bytes: 1000,
    };
    let carrier = if choice & 1 == 0 { Carrier::WebSocket } else { Carrier::WebTransport };
    let joined = if choice & 8 == 0 { Joined::No } else { Joined::As("t".to_owned()) };
    match (choice >> 1) & 3 {
        0 => Session::client(carrier, 0),
        1 => Session::client_upgrading(carrier, handshake, joined, 0).expect("the handshake is sound"),
        2 => Session::server(carrier, handshake, "t".to_owned(), 0).expect("the handshake is sound"),
        _ => Session::server_upgrading(carrier, handshake, "t".to_owned(), joined != Joined::No, 0)
            .expect("the handshake is sound"),
    }
}

fn check_message(message: Message) {
    let mut decoder = MessageDecoder::default();
    let text = message.encode().expect("a decoded message can be encoded");
    let mut again = decoder.handle_text(&text).expect("and decoded again");
    for attachment in &message.attachments {
        again = decoder.handle_binary(attachment.clone()).expect("and its attachments belong to it");
    }
    let again = again.expect("and is whole with them");
    assert_eq!((again.kind, &again.namespace, again.ack_id), (message.kind, &message.namespace, message.ack_id));
    assert_eq!(again.attachments, message.attachments);
    assert_eq!(again.into_event(), message.into_event());
}

fuzz_target!(|input: &[u8]| {
    let Some((&choice, stream)) = input.split_first() else { return };
    let (mut session, mut messages) = (session(choice), Some(MessageDecoder::default()));
    let mut frames = FrameDecoder::new(4096);
    frames.handle_bytes(stream);
    let (mut now_ns, mut ended) = (0, false);
    while let Ok(Some(payload)) = frames.poll_frame() {
        if let (Some(decoder), Ok(packet)) = (&mut messages, Packet::parse(&payload)) {
            let decoded = match packet {
                Packet::Message(text) => decoder.handle_text(text),
                Packet::Binary(bytes) => decoder.handle_binary(bytes.clone()),
                _ => Ok(None),
            };
            match decoded {
                Ok(message) => message.into_iter().for_each(check_message),
                Err(_) => messages = None,
            }
        }

        session.handle_payload(&payload, now_ns);
        while let Some(event) = session.poll_event() {
            assert!(!ended, "nothing happens after the end");
            match event {
                Event::Probed => session.finish_upgrade(now_ns).expect("the probe was answered"),
                Event::Connected { .. } => {
                    let emitted = session.emit("e", "a".into());
                    assert!(matches!(emitted, Ok(()) | Err(Error::PayloadTooLong { .. })));
                }
                Event::Message { .. } => {}
                Event::Closed(_) => ended = true,
            }
        }
        while let Some(sent) = session.poll_payload() {
            assert!(Packet::parse(&sent).is_ok() && sent != Payload::from(""));
        }
        match session.next_wakeup() {
            Some(at) if choice & 16 != 0 => {
                assert!(at > now_ns, "what is due has been done");
                now_ns = at;
                session.handle_wakeup(now_ns);
            }
            wakeup => assert_eq!(wakeup.is_none(), ended),
        }
    }
});
