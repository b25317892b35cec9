//! Message drops: each message's own packets dropped or corrupted by the path, found by entry time and size.
//!
//! A message's own packets are those with payload into its direction after it was handed over, up to the first large
//! enough to hold it: HTTP/2 sends the header in a packet before. That takes no keys, and so works for QUIC too.
//!
//! Retransmissions belong to no message. TCP's sequence numbers show them; QUIC's are encrypted, and there datagrams
//! too small for the message are acknowledgements, and those too large probe for a larger MTU.

use crosswind_ledger::{Headers, PacketRecord, TCP, UDP, Verdict};
use crosswind_path::Side;
use crosswind_units::Instant;
use crosswind_workload::Sample;
use std::collections::HashMap;

/// The datagram size every path has to take for QUIC, and senders begin with (RFC 9000, 14).
const SMALLEST_MAX_DATAGRAM: u32 = 1200;

/// Writes into each sample the number of its own packets, there and back, dropped by the path.
pub fn count_own_drops(samples: &mut [Sample], packets: &[PacketRecord]) {
    let [forward, reverse] = Side::BOTH.map(|side| carriers(packets, side));
    for sample in samples {
        let there = sample.sent.and_then(|at| drops(&forward, at, sample.sent_bytes));
        let back = sample.server_sent.and_then(|at| drops(&reverse, at, sample.received_bytes.max(1)));
        sample.own_drops = there.map(|there| there + back.unwrap_or(0));
    }
}

/// One side's packets that may carry a message for the first time, in order of entry.
fn carriers(packets: &[PacketRecord], side: Side) -> Vec<&PacketRecord> {
    let mut with_payload: Vec<&PacketRecord> = packets
        .iter()
        .filter(|packet| packet.side == side && packet.copy == 0 && packet.headers.payload_bytes > 0)
        .collect();
    with_payload.sort_by_key(|packet| packet.index);
    let (mut segments, mut datagrams) = (Segments::default(), Datagrams::default());
    with_payload.retain(|packet| match packet.headers.protocol {
        TCP => segments.has_new_data(&packet.headers),
        UDP => !datagrams.is_probe(packet),
        _ => true,
    });
    with_payload
}

/// The sending progress of one direction's streams.
#[derive(Default)]
struct Segments {
    /// The sequence number after the highest sent, by source and destination port.
    next: HashMap<(u16, u16), u32>,
}

impl Segments {
    /// Whether a segment has new data.
    fn has_new_data(&mut self, headers: &Headers) -> bool {
        let end = headers.sequence.wrapping_add(headers.payload_bytes);
        let next = self.next.entry((headers.source_port, headers.destination_port)).or_insert(headers.sequence);
        // Sequence numbers are modulo 2^32 (RFC 9293, 3.4).
        let is_new = end.wrapping_sub(*next).cast_signed() > 0;
        if is_new {
            *next = end;
        }
        is_new
    }
}

/// The largest datagrams known to arrive in one direction.
struct Datagrams {
    largest: u32,
}

impl Default for Datagrams {
    fn default() -> Self {
        Self { largest: SMALLEST_MAX_DATAGRAM }
    }
}

impl Datagrams {
    /// Whether a datagram is larger than any earlier arrival: then it probes the MTU, with padding (RFC 9000, 14.3).
    fn is_probe(&mut self, packet: &PacketRecord) -> bool {
        let payload = packet.headers.payload_bytes;
        let is_probe = payload > self.largest;
        if is_probe && packet.verdict == Verdict::Delivered && packet.flipped_bit.is_none() {
            self.largest = payload;
        }
        is_probe
    }
}

/// The drops among the packets of a message of `bytes`; `None` if it never entered the path.
fn drops(carriers: &[&PacketRecord], handed_over: Instant, bytes: u64) -> Option<u32> {
    let from = carriers.partition_point(|packet| packet.entered < handed_over);
    let mut dropped = 0;
    for packet in &carriers[from..] {
        let holds_message = u64::from(packet.headers.payload_bytes) >= bytes;
        if holds_message || packet.headers.protocol != UDP {
            // A host drops a corrupted packet, whatever the path did with it afterwards.
            dropped += u32::from(packet.flipped_bit.is_some() || matches!(packet.verdict, Verdict::Dropped(_)));
        }
        if holds_message {
            return Some(dropped);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crosswind_ledger::{DropCause, Headers};

    fn packet(side: Side, index: u64, us: u64, payload: u32, dropped: bool) -> PacketRecord {
        let verdict = if dropped { Verdict::Dropped(DropCause::Device) } else { Verdict::Delivered };
        let at = Instant::from_nanos(us * 1000);
        let headers = Headers { payload_bytes: payload, ..Headers::default() };
        PacketRecord { verdict, ..PacketRecord::new(side, index, at, headers) }
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
    fn a_messages_own_packets_end_with_the_first_that_can_hold_it() {
        let packets = [
            packet(Side::Forward, 0, 5, 250, true),
            packet(Side::Forward, 1, 11, 0, true),   // an acknowledgement
            packet(Side::Forward, 2, 12, 30, false), // a header
            packet(Side::Forward, 2, 12, 250, true),
            packet(Side::Forward, 3, 112, 250, false),
            packet(Side::Reverse, 0, 152, 250, true),
        ];
        let mut samples = [sample(0, 10, 50), sample(1, 110, 150), sample(2, 210, 250)];
        count_own_drops(&mut samples, &packets);
        assert_eq!(samples.map(|sample| sample.own_drops), [Some(2), Some(1), None]);
    }

    fn segment(index: u64, us: u64, sequence: u32, payload: u32, dropped: bool) -> PacketRecord {
        let packet = packet(Side::Forward, index, us, payload, dropped);
        PacketRecord { headers: Headers { protocol: TCP, sequence, ..packet.headers }, ..packet }
    }

    #[test]
    fn a_segment_sent_again_is_no_messages_own_unless_there_is_new_data_in_it() {
        let wrapping = u32::MAX - 99;
        let packets = [
            segment(0, 11, wrapping, 200, true),
            segment(1, 111, wrapping, 200, true), // again
            segment(2, 112, 100, 200, false),     // the second message, after the numbers' end
            segment(3, 211, 100, 400, true),      // the second again, and the third
            segment(4, 212, 300, 200, true),      // the third again
        ];
        let mut samples = [sample(0, 10, 50), sample(1, 110, 150), sample(2, 210, 250)];
        count_own_drops(&mut samples, &packets);
        assert_eq!(samples.map(|sample| sample.own_drops), [Some(1), Some(0), Some(1)]);
    }

    fn datagram(side: Side, index: u64, us: u64, payload: u32, dropped: bool) -> PacketRecord {
        let packet = packet(side, index, us, payload, dropped);
        PacketRecord { headers: Headers { protocol: UDP, ..packet.headers }, ..packet }
    }

    #[test]
    fn neither_an_acknowledgement_nor_a_probe_of_the_mtu_is_a_messages_own() {
        let packets = [
            datagram(Side::Forward, 0, 11, 36, true),
            datagram(Side::Forward, 1, 12, 1452, true), // a probe
            datagram(Side::Forward, 2, 13, 241, false),
            datagram(Side::Reverse, 0, 51, 34, true),
            datagram(Side::Reverse, 1, 52, 230, true),
        ];
        let mut samples = [sample(0, 10, 50)];
        count_own_drops(&mut samples, &packets);
        assert_eq!(samples.map(|sample| sample.own_drops), [Some(1)]);
    }

    #[test]
    fn a_datagram_no_larger_than_a_probe_that_arrived_may_be_a_messages_own() {
        let packets = [
            datagram(Side::Forward, 0, 5, 1452, false), // a probe
            datagram(Side::Forward, 1, 11, 1452, true), // messages on several streams
        ];
        let mut samples = [sample(0, 10, 50)];
        count_own_drops(&mut samples, &packets);
        assert_eq!(samples.map(|sample| sample.own_drops), [Some(1)]);
    }
}
