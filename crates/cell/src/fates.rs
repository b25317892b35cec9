//! What became of each message's own packets: found by the time and size of what entered the path.
//!
//! A message's own packets are those with payload that entered its direction after the message was handed over, up to the first
//! that has room for it: HTTP/2 sends the header in a packet before. That takes neither sequence numbers nor keys, and so holds
//! for QUIC as for TCP. What is sent again later is not the message's own.

use crosswind_ledger::{PacketRecord, Verdict};
use crosswind_path::Side;
use crosswind_units::Instant;
use crosswind_workload::Sample;

/// Writes into each sample how many of its own packets, there and back, the path dropped.
pub fn find_fates(samples: &mut [Sample], packets: &[PacketRecord]) {
    let [forward, reverse] = Side::BOTH.map(|side| {
        let mut of_side: Vec<&PacketRecord> = packets.iter().filter(|packet| packet.side == side).collect();
        of_side.sort_by_key(|packet| packet.index);
        of_side
    });
    for sample in samples {
        let there = sample.sent.and_then(|at| drops(&forward, at, sample.sent_bytes));
        let back = sample.server_sent.and_then(|at| drops(&reverse, at, sample.received_bytes.max(1)));
        sample.own_drops = there.map(|there| there + back.unwrap_or(0));
    }
}

/// How many were dropped of the packets of a message of `bytes`; `None` when it never came to the path.
fn drops(packets: &[&PacketRecord], handed_over: Instant, bytes: u64) -> Option<u32> {
    let from = packets.partition_point(|packet| packet.entered < handed_over);
    let mut dropped = 0;
    for packet in packets[from..].iter().filter(|packet| packet.headers.payload_bytes > 0) {
        dropped += u32::from(matches!(packet.verdict, Verdict::Dropped(_)));
        if u64::from(packet.headers.payload_bytes) >= bytes {
            return Some(dropped);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crosswind_ledger::{DropCause, Headers};
    use crosswind_units::Bytes;

    fn packet(side: Side, index: u64, us: u64, payload: u32, dropped: bool) -> PacketRecord {
        let verdict = if dropped { Verdict::Dropped(DropCause::Device) } else { Verdict::Delivered };
        let at = Instant::from_nanos(us * 1000);
        PacketRecord {
            side,
            index,
            size: Bytes(u64::from(payload) + 40),
            headers: Headers { payload_bytes: payload, ..Headers::default() },
            entered: at,
            due: at,
            left: None,
            verdict,
        }
    }

    fn sample(number: u64, sent_us: u64, answered_us: u64) -> Sample {
        let at = |us: u64| Some(Instant::from_nanos(us * 1000));
        Sample {
            sent: at(sent_us),
            server_sent: at(answered_us),
            sent_bytes: 200,
            received_bytes: 200,
            ..Sample::new(number, 0)
        }
    }

    #[test]
    fn a_messages_own_packets_end_with_the_first_that_has_room_for_it() {
        let packets = [
            packet(Side::Forward, 0, 5, 250, true),
            packet(Side::Forward, 1, 11, 0, true),   // an acknowledgement
            packet(Side::Forward, 2, 12, 30, false), // a header
            packet(Side::Forward, 2, 12, 250, true),
            packet(Side::Forward, 3, 112, 250, false),
            packet(Side::Reverse, 0, 152, 250, true),
        ];
        let mut samples = [sample(0, 10, 50), sample(1, 110, 150), sample(2, 210, 250)];
        find_fates(&mut samples, &packets);
        assert_eq!(samples.map(|sample| sample.own_drops), [Some(2), Some(1), None]);
    }
}
