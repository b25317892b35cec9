//! The few header fields in a packet's record: RFC 791 (IPv4), 8200 (IPv6), 9293 (TCP), 768 (UDP).
//!
//! The parser runs for every packet on the real-time thread: it allocates nothing, panics on no bytes, and every loop
//! is bounded.

use crosswind_path::{Ecn, Side};
use crosswind_units::Seed;

/// The most extension headers followed. Real packets have one or two; a hostile packet must not hold up the thread.
const MAX_EXTENSIONS: usize = 8;

const HOP_BY_HOP: u8 = 0;
/// TCP's IP protocol number.
pub const TCP: u8 = 6;
/// UDP's IP protocol number.
pub const UDP: u8 = 17;
/// TCP's FIN flag: the sender is done (RFC 9293).
pub const TCP_FIN: u8 = 0x01;
/// TCP's SYN flag: a new connection (RFC 9293).
pub const TCP_SYN: u8 = 0x02;
/// TCP's RST flag: the connection is aborted (RFC 9293).
pub const TCP_RST: u8 = 0x04;
/// TCP's PSH flag: the end of a write (RFC 9293, 3.9.1).
pub const TCP_PSH: u8 = 0x08;
/// TCP's ACK flag: the acknowledgement number is valid.
pub const TCP_ACK: u8 = 0x10;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const DESTINATION_OPTIONS: u8 = 60;
const MOBILITY: u8 = 135;
const HOST_IDENTITY: u8 = 139;
const SHIM6: u8 = 140;

/// A packet's header fields. An unreadable field is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Headers {
    /// IP version: 4, 6, or 0 when this is no IP packet.
    pub version: u8,
    /// IP protocol number: the transport, or the IPv6 extension header at which reading stopped.
    pub protocol: u8,
    /// TCP or UDP source port; 0 in every fragment but the first.
    pub source_port: u16,
    /// TCP or UDP destination port; 0 in every fragment but the first.
    pub destination_port: u16,
    /// TCP or UDP payload, clipped to the captured bytes. In later fragments everything after the IP header.
    pub payload_bytes: u32,
    /// TCP flags (CWR ECE URG ACK PSH RST SYN FIN), else 0.
    pub flags: u8,
    /// TCP sequence number of the first payload byte; the upper half of a datagram's tail.
    pub sequence: u32,
    /// TCP acknowledgement number; the lower half of a datagram's tail.
    pub acknowledgement: u32,
    /// TCP window as in the header: its scale is in the SYN's options.
    pub window: u16,
    /// TCP options.
    pub options: TcpOptions,
    /// IP's bits about congestion.
    pub ecn: Ecn,
}

/// The TCP options needed to follow a connection (RFC 9293, 7323, 2018).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TcpOptions {
    /// A SYN's window scale, in bits.
    pub window_shift: Option<u8>,
    /// Maximum segment size announced in a SYN; 0 if absent.
    pub largest_segment: u16,
    /// A SYN permits selective acknowledgements.
    pub sack_permitted: bool,
    /// There is a selective acknowledgement.
    pub has_sack: bool,
}

impl TcpOptions {
    /// Reads options, as far as they can be read.
    fn parse(mut rest: &[u8]) -> Self {
        const END: u8 = 0;
        const NOTHING: u8 = 1;
        const LARGEST_SEGMENT: u8 = 2;
        const WINDOW_SHIFT: u8 = 3;
        const SACK_PERMITTED: u8 = 4;
        const SACK: u8 = 5;
        let mut options = Self::default();
        while let Some((&kind, after)) = rest.split_first() {
            if kind == END {
                break;
            }
            if kind == NOTHING {
                rest = after;
                continue;
            }
            // The length counts kind and length.
            let length = usize::from(after.first().copied().unwrap_or(0));
            if length < 2 || length > rest.len() {
                break;
            }
            match (kind, &rest[2..length]) {
                (LARGEST_SEGMENT, &[high, low]) => options.largest_segment = u16::from_be_bytes([high, low]),
                (WINDOW_SHIFT, &[shift]) => options.window_shift = Some(shift),
                (SACK_PERMITTED, []) => options.sack_permitted = true,
                (SACK, blocks) if matches!(blocks.len(), 8 | 16 | 24 | 32) => options.has_sack = true,
                (LARGEST_SEGMENT | WINDOW_SHIFT | SACK_PERMITTED | SACK, _) => break,
                _ => {}
            }
            rest = &rest[length..];
        }
        options
    }
}

/// Header fields a queue classifies by, beside the flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Service {
    /// Source address; for IPv6 the XOR of its four words.
    pub source: u32,
    /// Destination address, likewise.
    pub destination: u32,
    /// Differentiated services codepoint (RFC 2474), 6 bits.
    pub dscp: u8,
}

impl Service {
    /// Reads an IP packet; all fields are 0 if it is too short.
    pub fn parse(packet: &[u8]) -> Self {
        let (addresses, dscp) = match packet {
            [0x40..=0x4f, service, ..] => (packet.get(12..20), service >> 2),
            [class @ 0x60..=0x6f, rest, ..] => (packet.get(8..40), (class << 2 | rest >> 6) & 0x3f),
            _ => (None, 0),
        };
        let Some((source, destination)) = addresses.map(|both| both.split_at(both.len() / 2)) else {
            return Self::default();
        };
        let word = |part: &[u8]| part.iter().fold(0, |word, byte| word << 8 | u32::from(*byte));
        let folded = |address: &[u8]| address.chunks(4).fold(0, |all, part| all ^ word(part));
        Self { source: folded(source), destination: folded(destination), dscp }
    }
}

impl Headers {
    /// Reads an IP packet.
    pub fn parse(packet: &[u8]) -> Self {
        match packet.first().map(|first| first >> 4) {
            Some(4) => parse_ipv4(packet),
            Some(6) => parse_ipv6(packet),
            _ => None,
        }
        .unwrap_or_default()
    }

    /// The client's port, for a packet in direction `side`.
    pub fn client_port(&self, side: Side) -> u16 {
        side.pick(self.source_port, self.destination_port)
    }

    /// The last eight bytes of a datagram's payload, its sender's mark; 0 for a shorter one. Meaningless for TCP.
    pub const fn tail(&self) -> u64 {
        ((self.sequence as u64) << 32) | self.acknowledgement as u64
    }

    /// A hash over version, protocol and ports, equal for all packets of a flow.
    pub const fn flow(&self) -> u32 {
        let ports = ((self.source_port as u64) << 16) | self.destination_port as u64;
        Seed(((self.version as u64) << 40) | ((self.protocol as u64) << 32) | ports).word(0) as u32
    }
}

fn parse_ipv4(packet: &[u8]) -> Option<Headers> {
    let fixed: &[u8; 20] = packet.first_chunk()?;
    let header_length = usize::from(fixed[0] & 0x0f) * 4;
    let total_length = usize::from(u16_at(fixed, 2));
    // Linux writes a total length of 0 into super-packets above 64 kB: then all bytes belong to the packet.
    let end = if total_length == 0 { packet.len() } else { total_length.min(packet.len()) };
    if header_length < fixed.len() || end < header_length {
        return None;
    }
    let offset = u16_at(fixed, 6) & 0x1fff;
    let headers = parse_transport(4, fixed[9], offset == 0, &packet[header_length..end]);
    Some(Headers { ecn: Ecn::from_bits(fixed[1]), ..headers })
}

fn parse_ipv6(packet: &[u8]) -> Option<Headers> {
    let (fixed, rest) = packet.split_first_chunk::<40>()?;
    let payload_length = usize::from(u16_at(fixed, 4));
    // 0 is a jumbogram (RFC 2675) or a super-packet: then, too, all bytes belong to the packet.
    let end = if payload_length == 0 { rest.len() } else { payload_length.min(rest.len()) };
    let mut rest = &rest[..end];
    let mut protocol = fixed[6];
    let mut first_fragment = true;
    for _ in 0..MAX_EXTENSIONS {
        let Some((next, length, offset)) = extension(protocol, rest) else { break };
        protocol = next;
        rest = &rest[length..];
        if offset != 0 {
            first_fragment = false;
            break;
        }
    }
    let headers = parse_transport(6, protocol, first_fragment, rest);
    Some(Headers { ecn: Ecn::from_bits(fixed[1] >> 4), ..headers })
}

/// Next header, own length and fragment offset of the extension header `protocol` at the start of `bytes`; `None` for a
/// transport or a truncated header.
fn extension(protocol: u8, bytes: &[u8]) -> Option<(u8, usize, u16)> {
    let start: &[u8; 8] = match protocol {
        HOP_BY_HOP | ROUTING | FRAGMENT | AUTHENTICATION | DESTINATION_OPTIONS | MOBILITY | HOST_IDENTITY | SHIM6 => {
            bytes.first_chunk()?
        }
        _ => return None,
    };
    let (length, offset) = match protocol {
        FRAGMENT => (8, u16_at(start, 2) >> 3),
        // RFC 4302: counted in 4 bytes, less 2; all others in 8 bytes, less 1.
        AUTHENTICATION => ((usize::from(start[1]) + 2) * 4, 0),
        _ => ((usize::from(start[1]) + 1) * 8, 0),
    };
    (length <= bytes.len()).then_some((start[0], length, offset))
}

fn parse_transport(version: u8, protocol: u8, first_fragment: bool, segment: &[u8]) -> Headers {
    let mut headers = Headers { version, protocol, ..Headers::default() };
    if protocol != TCP && protocol != UDP {
        return headers;
    }
    if !first_fragment {
        headers.payload_bytes = segment.len() as u32;
        return headers;
    }
    let Some(ports) = segment.first_chunk::<4>() else { return headers };
    headers.source_port = u16_at(ports, 0);
    headers.destination_port = u16_at(ports, 2);
    if protocol == TCP {
        if let Some(fixed) = segment.first_chunk::<20>() {
            let header_length = usize::from(fixed[12] >> 4) * 4;
            headers.flags = fixed[13];
            headers.sequence = u32::from_be_bytes([fixed[4], fixed[5], fixed[6], fixed[7]]);
            headers.acknowledgement = u32::from_be_bytes([fixed[8], fixed[9], fixed[10], fixed[11]]);
            headers.window = u16_at(fixed, 14);
            if header_length >= fixed.len() {
                headers.options = TcpOptions::parse(&segment[fixed.len()..header_length.min(segment.len())]);
                headers.payload_bytes = segment.len().saturating_sub(header_length) as u32;
            }
        }
    } else if let Some(fixed) = segment.first_chunk::<8>() {
        let length = usize::from(u16_at(fixed, 4));
        let end = if length == 0 { segment.len() } else { length.min(segment.len()) };
        let payload = segment.get(fixed.len()..end).unwrap_or_default();
        headers.payload_bytes = payload.len() as u32;
        if let Some(tail) = payload.last_chunk().map(|tail| u64::from_be_bytes(*tail)) {
            (headers.sequence, headers.acknowledgement) = ((tail >> 32) as u32, tail as u32);
        }
    }
    headers
}

fn u16_at<const N: usize>(bytes: &[u8; N], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}
