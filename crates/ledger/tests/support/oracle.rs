//! An independent header parser for the tests and the fuzz target: the library etherparse.

use crosswind_ledger::{Headers, TcpOptions};
use crosswind_path::Ecn;
use etherparse::{
    IpNumber, Ipv6ExtensionSlice, LaxNetSlice, LaxSlicedPacket, TcpOptionElement, TcpOptionReadError, TcpSlice,
    UdpSlice,
};

/// `packet` read by etherparse; `None` if it gives up, or if the two parsers differ on purpose.
pub fn oracle(packet: &[u8]) -> Option<Headers> {
    let sliced = LaxSlicedPacket::from_ip(packet).ok()?;
    if sliced.stop_err.is_some() {
        return None;
    }
    let (version, class, payload, later_fragment) = match sliced.net? {
        LaxNetSlice::Ipv4(ip) => {
            let header = ip.header();
            // With an impossible total length, etherparse reads the bytes present; ours reads nothing.
            let impossible = (1..u16::from(header.ihl()) * 4).contains(&header.total_len());
            if impossible || ip.extensions().auth.is_some() {
                return None;
            }
            (
                4,
                header.dcp().value() << 2 | header.ecn().value(),
                ip.payload().clone(),
                header.fragments_offset().value() != 0,
            )
        }
        LaxNetSlice::Ipv6(ip) => {
            let mut later_fragment = false;
            let mut followed = 0;
            for extension in ip.extensions().clone() {
                followed += 1;
                // After a fragment's offset there are no more headers; etherparse reads on.
                if later_fragment || followed > 8 {
                    return None;
                }
                if let Ipv6ExtensionSlice::Fragment(fragment) = extension {
                    later_fragment = fragment.fragment_offset().value() != 0;
                }
            }
            (6, ip.header().traffic_class(), ip.payload().clone(), later_fragment)
        }
        LaxNetSlice::Arp(_) => return None,
    };
    // For etherparse these are transports.
    if version == 6 && matches!(payload.ip_number.0, 135 | 139 | 140) {
        return None;
    }
    let mut headers =
        Headers { version, protocol: payload.ip_number.0, ecn: Ecn::from_bits(class), ..Headers::default() };
    match payload.ip_number {
        IpNumber::TCP | IpNumber::UDP if later_fragment => headers.payload_bytes = payload.payload.len() as u32,
        IpNumber::TCP => {
            let tcp = TcpSlice::from_slice(payload.payload).ok()?;
            headers.source_port = tcp.source_port();
            headers.destination_port = tcp.destination_port();
            headers.payload_bytes = tcp.payload().len() as u32;
            headers.sequence = tcp.sequence_number();
            headers.acknowledgement = tcp.acknowledgment_number();
            headers.window = tcp.window_size();
            headers.options = options(&tcp)?;
            headers.flags = flags(&tcp);
        }
        IpNumber::UDP => {
            let udp = UdpSlice::from_slice_lax(payload.payload).ok()?;
            // With a datagram shorter than its own header, etherparse reads the bytes present; ours reads nothing.
            if (1..8).contains(&udp.length()) {
                return None;
            }
            headers.source_port = udp.source_port();
            headers.destination_port = udp.destination_port();
            headers.payload_bytes = udp.payload().len() as u32;
            if let Some(&[a, b, c, d, e, f, g, h]) = udp.payload().last_chunk() {
                headers.sequence = u32::from_be_bytes([a, b, c, d]);
                headers.acknowledgement = u32::from_be_bytes([e, f, g, h]);
            }
        }
        _ => {}
    }
    Some(headers)
}

/// As far as etherparse can read them; `None` if it ends at an option ours skips by its length (RFC 9293): an unknown
/// one, or timestamps with a wrong length.
fn options(tcp: &TcpSlice<'_>) -> Option<TcpOptions> {
    let mut options = TcpOptions::default();
    for option in tcp.options_iterator() {
        let option = match option {
            Ok(option) => option,
            Err(TcpOptionReadError::UnknownId(_) | TcpOptionReadError::UnexpectedSize { option_id: 8, .. }) => {
                return None;
            }
            Err(_) => break,
        };
        match option {
            TcpOptionElement::MaximumSegmentSize(size) => options.largest_segment = size,
            TcpOptionElement::WindowScale(shift) => options.window_shift = Some(shift),
            TcpOptionElement::SelectiveAcknowledgementPermitted => options.sack_permitted = true,
            TcpOptionElement::SelectiveAcknowledgement(..) => options.has_sack = true,
            TcpOptionElement::Noop | TcpOptionElement::Timestamp(..) => {}
        }
    }
    Some(options)
}

fn flags(tcp: &TcpSlice<'_>) -> u8 {
    let flags = [tcp.fin(), tcp.syn(), tcp.rst(), tcp.psh(), tcp.ack(), tcp.urg(), tcp.ece(), tcp.cwr()].into_iter();
    flags.enumerate().map(|(bit, set)| u8::from(set) << bit).sum()
}
