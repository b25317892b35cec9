//! QUIC frames as in RFC 9000; packets with any frames, and any bytes.

use crosswind_ledger::{Frames, QuicFrame};
use proptest::prelude::*;

fn all(payload: &[u8]) -> (Vec<QuicFrame>, bool) {
    let mut frames = Frames::new(payload);
    let found = frames.by_ref().collect();
    (found, frames.is_whole())
}

/// RFC 9000, A.1 and 16: a number in as few bytes as it takes.
fn number(number: u64) -> Vec<u8> {
    match number {
        0..0x40 => vec![number as u8],
        0x40..0x4000 => (number as u16 | 0x4000).to_be_bytes().to_vec(),
        0x4000..0x4000_0000 => (number as u32 | 0x8000_0000).to_be_bytes().to_vec(),
        _ => (number | 0xc000_0000_0000_0000).to_be_bytes().to_vec(),
    }
}

fn numbers(all: &[u64]) -> Vec<u8> {
    all.iter().flat_map(|&it| number(it)).collect()
}

/// A frame as it is sent. Stream and datagram frames have lengths, so others may follow.
fn encode(frame: QuicFrame) -> Vec<u8> {
    let with_bytes = |header: Vec<u8>, length: u32| [header, vec![0xab; length as usize]].concat();
    match frame {
        QuicFrame::Ping => vec![1],
        QuicFrame::Ack { smallest, largest } => numbers(&[2, largest, 25, 0, largest - smallest]),
        QuicFrame::Crypto { offset, length } => with_bytes(numbers(&[6, offset, length.into()]), length),
        QuicFrame::Stream { stream, offset, length, is_last } => {
            with_bytes(numbers(&[0x0e | u64::from(is_last), stream, offset, length.into()]), length)
        }
        QuicFrame::Datagram { length } => with_bytes(numbers(&[0x31, length.into()]), length),
        QuicFrame::MaxData(limit) => numbers(&[0x10, limit]),
        QuicFrame::MaxStreamData { stream, limit } => numbers(&[0x11, stream, limit]),
        QuicFrame::MaxStreams(limit) => numbers(&[0x12, limit]),
        QuicFrame::DataBlocked(limit) => numbers(&[0x14, limit]),
        QuicFrame::StreamDataBlocked { stream, limit } => numbers(&[0x15, stream, limit]),
        QuicFrame::StreamsBlocked(limit) => numbers(&[0x16, limit]),
        QuicFrame::NewConnectionId { length } => {
            with_bytes([numbers(&[0x18, 5, 3]), vec![length]].concat(), u32::from(length) + 16)
        }
        QuicFrame::HandshakeDone => vec![0x1e],
        QuicFrame::Close => numbers(&[0x1c, 7, 0, 0]),
        QuicFrame::Other => numbers(&[0x19, 3]),
        QuicFrame::StreamLimits { .. } | QuicFrame::Retry => unreachable!("none that is sent as a frame"),
    }
}

#[test]
fn numbers_have_the_lengths_that_their_first_bits_say() {
    // RFC 9000, A.1.
    let examples: [(&[u8], u64); 5] = [
        (&[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c], 151_288_809_941_952_652),
        (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
        (&[0x7b, 0xbd], 15_293),
        (&[0x25], 37),
        (&[0x40, 0x25], 37),
    ];
    for (bytes, value) in examples {
        assert_eq!(all(&[&[0x10], bytes].concat()), (vec![QuicFrame::MaxData(value)], true));
    }
}

#[test]
fn an_acknowledgement_with_gaps_and_marks_is_passed_over_whole() {
    // Packets 90 to 100, 70 to 80 and 68; three counts of marks.
    let ack = numbers(&[3, 100, 0, 2, 10, 8, 10, 0, 0, 1, 2, 3]);
    let expected = vec![QuicFrame::Ack { smallest: 90, largest: 100 }, QuicFrame::Ping];
    assert_eq!(all(&[ack, vec![0, 0, 1, 0]].concat()), (expected, true));
    // A range below 0.
    assert_eq!(all(&numbers(&[2, 10, 0, 1, 5, 4, 0])), (vec![], false));
}

#[test]
fn what_has_no_length_reaches_to_the_end() {
    let stream = QuicFrame::Stream { stream: 4, offset: 0, length: 3, is_last: true };
    assert_eq!(all(b"\x09\x04abc"), (vec![stream], true));
    assert_eq!(all(b"\x30abc"), (vec![QuicFrame::Datagram { length: 3 }], true));
}

#[test]
fn a_frame_that_is_unknown_ends_the_packet_and_says_so() {
    assert_eq!(all(&[1, 0x3f, 1, 1]), (vec![QuicFrame::Ping], false));
}

fn frame() -> impl Strategy<Value = QuicFrame> {
    let (position, length) = (0_u64..1 << 61, 0_u32..200);
    prop_oneof![
        Just(QuicFrame::Ping),
        Just(QuicFrame::HandshakeDone),
        Just(QuicFrame::Close),
        Just(QuicFrame::Other),
        (0_u8..21).prop_map(|length| QuicFrame::NewConnectionId { length }),
        (position.clone(), length.clone())
            .prop_map(|(smallest, more)| QuicFrame::Ack { smallest, largest: smallest + u64::from(more) }),
        (position.clone(), length.clone()).prop_map(|(offset, length)| QuicFrame::Crypto { offset, length }),
        (position.clone(), position.clone(), length.clone(), any::<bool>())
            .prop_map(|(stream, offset, length, is_last)| QuicFrame::Stream { stream, offset, length, is_last }),
        length.prop_map(|length| QuicFrame::Datagram { length }),
        position.clone().prop_map(QuicFrame::MaxData),
        position.clone().prop_map(QuicFrame::MaxStreams),
        position.clone().prop_map(QuicFrame::DataBlocked),
        position.clone().prop_map(QuicFrame::StreamsBlocked),
        (position.clone(), position.clone()).prop_map(|(stream, limit)| QuicFrame::MaxStreamData { stream, limit }),
        (position.clone(), position).prop_map(|(stream, limit)| QuicFrame::StreamDataBlocked { stream, limit }),
    ]
}

proptest! {
    #[test]
    fn frames_are_read_as_they_were_written(frames in prop::collection::vec(frame(), 0..12), padding in 0_usize..20) {
        let payload: Vec<u8> = frames.iter().flat_map(|&it| [vec![0; padding], encode(it)].concat()).collect();
        prop_assert_eq!(all(&payload), (frames, true));
    }

    #[test]
    fn any_bytes_have_an_end(payload in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(all(&payload).0.len() <= payload.len());
    }

    #[test]
    fn what_is_cut_off_has_the_frames_before_the_cut(
        frames in prop::collection::vec(frame(), 1..6), cut in any::<prop::sample::Index>(),
    ) {
        let payload: Vec<u8> = frames.iter().flat_map(|&it| encode(it)).collect();
        let (found, _) = all(&payload[..cut.index(payload.len())]);
        prop_assert!(frames.starts_with(&found));
    }
}
