//! The mark "congestion experienced" in the IP header: RFC 3168, with the checksum of IPv4 as RFC 1624 updates it.

const CONGESTION_EXPERIENCED: u8 = 0b11;

/// Marks an IP packet; other bytes stay unchanged.
pub fn mark(packet: &mut [u8]) {
    match packet.first().map(|first| first >> 4) {
        Some(4) => mark_ipv4(packet),
        Some(6) => mark_ipv6(packet),
        _ => {}
    }
}

fn mark_ipv4(packet: &mut [u8]) {
    let Some(header) = packet.first_chunk_mut::<20>() else { return };
    let before = u16::from_be_bytes([header[0], header[1]]);
    header[1] |= CONGESTION_EXPERIENCED;
    let after = u16::from_be_bytes([header[0], header[1]]);
    let sum = !u16::from_be_bytes([header[10], header[11]]);
    let mut sum = u32::from(sum) + u32::from(!before) + u32::from(after);
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    [header[10], header[11]] = (!(sum as u16)).to_be_bytes();
}

/// The traffic class lies across the first two bytes; its lowest bits are in the second.
const fn mark_ipv6(packet: &mut [u8]) {
    if let Some(header) = packet.first_chunk_mut::<40>() {
        header[1] |= CONGESTION_EXPERIENCED << 4;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Headers;
    use crosswind_path::Ecn;
    use std::vec;
    use std::vec::Vec;

    fn sum(bytes: &[u8]) -> u16 {
        let words = bytes.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
        let sum: u32 = words.sum();
        let folded = (sum & 0xffff) + (sum >> 16);
        !(((folded & 0xffff) + (folded >> 16)) as u16)
    }

    /// A packet of 40 bytes with these bits and a correct header checksum.
    fn ipv4(tos: u8, id: u16) -> Vec<u8> {
        let [high, low] = id.to_be_bytes();
        let mut packet = vec![0x45, tos, 0, 40, high, low, 0x40, 0, 64, 6, 0, 0, 198, 18, 0, 1, 198, 18, 0, 2];
        let checksum = sum(&packet).to_be_bytes();
        packet[10..12].copy_from_slice(&checksum);
        packet.resize(40, 7);
        packet
    }

    #[test]
    fn ipv4_keeps_a_correct_checksum_and_all_else() {
        for tos in [0b00, 0b01, 0b10, 0b11, 0xb8 | 0b10] {
            for id in 0..=u16::MAX {
                let before = ipv4(tos, id);
                let mut marked = before.clone();
                mark(&mut marked);
                assert_eq!(sum(&marked[..20]), 0, "tos {tos} id {id}");
                assert_eq!(marked[1], tos | 0b11);
                marked[1] = before[1];
                marked[10..12].copy_from_slice(&before[10..12]);
                assert_eq!(marked, before);
            }
        }
    }

    #[test]
    fn ipv6_keeps_class_and_label() {
        let mut packet = vec![0x6b, 0xa1, 0x23, 0x45, 0, 0, 6, 64];
        packet.resize(60, 9);
        let before = packet.clone();
        mark(&mut packet);
        assert_eq!(packet[..4], [0x6b, 0xb1, 0x23, 0x45]);
        assert_eq!(packet[4..], before[4..]);
        assert_eq!(Headers::parse(&packet).ecn, Ecn::Marked);
    }

    #[test]
    fn what_is_no_ip_packet_stays() {
        for bytes in [&[][..], &[0x45, 0, 0], &[0x60, 0, 0], &[0; 40]] {
            let mut packet = bytes.to_vec();
            mark(&mut packet);
            assert_eq!(packet, bytes);
        }
    }
}
