//! A router's message to the sender of a packet too large for the next link.

use alloc::vec;
use alloc::vec::Vec;
use crosswind_units::Bytes;

/// The longest IPv4 message: RFC 1812, section 4.3.2.3. IPv6's is as long as the minimum MTU: RFC 4443, section 2.4.
const LONGEST_IPV4: usize = 576;
const LONGEST_IPV6: usize = 1280;
const HEADER_IPV4: usize = 20;
const HEADER_IPV6: usize = 40;
const HEADER_ICMP: usize = 8;
const TIME_TO_LIVE: u8 = 64;
const ICMP: u8 = 1;
const ICMPV6: u8 = 58;

/// The ICMP message about `packet`, larger than `mtu`: "fragmentation needed" for IPv4 (RFC 792, with the MTU by RFC
/// 1191), "packet too big" for IPv6 (RFC 4443). Its source is the packet's destination, the one address every host here
/// has a route to. `None` for packets excluded by the RFCs.
pub fn icmp_about(packet: &[u8], mtu: Bytes) -> Option<Vec<u8>> {
    match packet.first()? >> 4 {
        4 => about_ipv4(packet, mtu),
        6 => about_ipv6(packet, mtu),
        _ => None,
    }
}

fn about_ipv4(packet: &[u8], mtu: Bytes) -> Option<Vec<u8>> {
    let header = usize::from(packet.first()? & 0x0f) * 4;
    let is_later_fragment = u16::from_be_bytes([*packet.get(6)?, *packet.get(7)?]) & 0x1fff != 0;
    let kind = *packet.get(header)?;
    // RFC 1122, section 3.2.2: nothing about an ICMP error or a later fragment.
    if is_later_fragment || (packet[9] == ICMP && ![0, 8, 13, 14].contains(&kind)) {
        return None;
    }
    let quoted = &packet[..packet.len().min(LONGEST_IPV4 - HEADER_IPV4 - HEADER_ICMP)];
    let mut icmp = vec![3, 4, 0, 0, 0, 0];
    icmp.extend(u16::try_from(mtu.0).ok()?.to_be_bytes());
    icmp.extend(quoted);
    let sum = checksum(&icmp, 0);
    icmp[2..4].copy_from_slice(&sum.to_be_bytes());
    let length = u16::try_from(HEADER_IPV4 + icmp.len()).ok()?.to_be_bytes();
    let mut message = vec![0x45, 0xc0, length[0], length[1], 0, 0, 0, 0, TIME_TO_LIVE, ICMP, 0, 0];
    message.extend(packet.get(16..20)?);
    message.extend(packet.get(12..16)?);
    let sum = checksum(&message, 0);
    message[10..12].copy_from_slice(&sum.to_be_bytes());
    message.extend(icmp);
    Some(message)
}

fn about_ipv6(packet: &[u8], mtu: Bytes) -> Option<Vec<u8>> {
    // RFC 4443, section 2.4: nothing about an ICMPv6 error (types below 128).
    if *packet.get(6)? == ICMPV6 && *packet.get(HEADER_IPV6)? < 128 {
        return None;
    }
    let quoted = &packet[..packet.len().min(LONGEST_IPV6 - HEADER_IPV6 - HEADER_ICMP)];
    let mut icmp = vec![2, 0, 0, 0];
    icmp.extend(u32::try_from(mtu.0).ok()?.to_be_bytes());
    icmp.extend(quoted);
    let (source, destination) = (packet.get(24..40)?, packet.get(8..24)?);
    let length = u16::try_from(icmp.len()).ok()?;
    let pseudo = [source, destination, &u32::from(length).to_be_bytes(), &[0, 0, 0, ICMPV6]].concat();
    let sum = checksum(&icmp, !checksum(&pseudo, 0));
    icmp[2..4].copy_from_slice(&sum.to_be_bytes());
    let length = length.to_be_bytes();
    let mut message = vec![0x60, 0, 0, 0, length[0], length[1], ICMPV6, TIME_TO_LIVE];
    message.extend(source);
    message.extend(destination);
    message.extend(icmp);
    Some(message)
}

/// RFC 1071, continued from the sum `before`.
fn checksum(bytes: &[u8], before: u16) -> u16 {
    let words = bytes.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)])));
    let mut sum: u32 = words.sum::<u32>() + u32::from(before);
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ipv4(protocol: u8, first: u8, fragment: u16) -> Vec<u8> {
        let [high, low] = fragment.to_be_bytes();
        let mut packet = vec![0x45, 0, 0x05, 0xdc, 0, 1, high, low, 64, protocol, 0, 0, 198, 18, 0, 1, 198, 18, 0, 2];
        packet.resize(1500, first);
        packet
    }

    #[test]
    fn ipv4_says_fragmentation_needed_with_the_mtu_and_what_it_is_about() {
        let packet = ipv4(6, 7, 0x4000);
        let message = icmp_about(&packet, Bytes(1400)).expect("a message");
        assert_eq!(message.len(), 576);
        assert_eq!(message[12..20], [198, 18, 0, 2, 198, 18, 0, 1], "from the destination to the source");
        assert_eq!(message[20..22], [3, 4]);
        assert_eq!(message[26..28], 1400_u16.to_be_bytes());
        assert_eq!(message[28..], packet[..548]);
        // A sum over a message with its checksum is zero.
        assert_eq!((checksum(&message[..20], 0), checksum(&message[20..], 0)), (0, 0));
    }

    #[test]
    fn ipv6_says_packet_too_big_with_the_mtu_and_what_it_is_about() {
        let mut packet = vec![0x60, 0, 0, 0, 0x05, 0xb4, 17, 64];
        packet.extend([1; 16].into_iter().chain([2; 16]));
        packet.resize(1500, 7);
        let message = icmp_about(&packet, Bytes(1400)).expect("a message");
        assert_eq!(message.len(), 1280);
        assert_eq!((&message[8..24], &message[24..40]), (&[2; 16][..], &[1; 16][..]));
        assert_eq!((message[40], message[41]), (2, 0));
        assert_eq!(message[44..48], 1400_u32.to_be_bytes());
        assert_eq!(message[48..], packet[..1232]);
        let pseudo = [&message[8..40], &1240_u32.to_be_bytes(), &[0, 0, 0, 58]].concat();
        assert_eq!(checksum(&message[40..], !checksum(&pseudo, 0)), 0);
    }

    #[test]
    fn nothing_is_said_about_an_error_or_a_later_fragment() {
        assert!(icmp_about(&ipv4(1, 8, 0), Bytes(1400)).is_some(), "an echo request");
        assert_eq!(icmp_about(&ipv4(1, 3, 0), Bytes(1400)), None);
        assert_eq!(icmp_about(&ipv4(17, 0, 0x0010), Bytes(1400)), None);
        assert_eq!(icmp_about(&[0x45, 0, 0], Bytes(1400)), None, "no whole header");
        assert_eq!(icmp_about(&[], Bytes(1400)), None);
    }
}
