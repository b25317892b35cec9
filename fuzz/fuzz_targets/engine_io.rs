//! Engine.IO frames and packets from any bytes: the first byte chooses the stream's cuts, which must not matter.

#![no_main]

use crosswind_socketio::{
    Error, FrameDecoder, Handshake, Packet, Payload, decode_polling, encode_frame, encode_polling, parse_client_open,
};
use libfuzzer_sys::fuzz_target;

const MAX_PAYLOAD_BYTES: u64 = 4096;

fn decode<'a>(chunks: impl Iterator<Item = &'a [u8]>) -> (Vec<Payload>, Option<Error>) {
    let mut decoder = FrameDecoder::new(MAX_PAYLOAD_BYTES);
    let mut payloads = Vec::new();
    for chunk in chunks {
        decoder.handle_bytes(chunk);
        loop {
            match decoder.poll_frame() {
                Ok(Some(payload)) => payloads.push(payload),
                Ok(None) => break,
                Err(error) => return (payloads, Some(error)),
            }
        }
    }
    (payloads, None)
}

fuzz_target!(|input: &[u8]| {
    let Some((&cut, stream)) = input.split_first() else { return };
    let (payloads, error) = decode(std::iter::once(stream));
    assert_eq!(decode(stream.chunks(usize::from(cut) + 1)), (payloads.clone(), error));

    let mut again = Vec::new();
    for payload in &payloads {
        encode_frame(payload, &mut again).expect("a decoded frame is not empty");
        assert!(payload.as_bytes().len() as u64 <= MAX_PAYLOAD_BYTES);
        if let Ok(packet) = Packet::parse(payload) {
            assert_eq!(&packet.to_payload(), payload);
        }
    }
    assert!(again.len() <= stream.len(), "no header is shorter than ours");
    assert_eq!(decode(std::iter::once(&again[..])), (payloads, None));

    let Ok(text) = std::str::from_utf8(stream) else { return };
    let _ = parse_client_open(text);
    if let Ok(handshake) = Handshake::parse(text) {
        assert_eq!(Handshake::parse(&handshake.to_json()), Ok(handshake));
    }
    let Ok(polled) = decode_polling(text).collect::<Result<Vec<_>, _>>() else { return };
    let Ok(packets) = polled.iter().map(Packet::parse).collect::<Result<Vec<_>, _>>() else { return };
    assert_eq!(encode_polling(&packets).as_deref(), Ok(text));
});
