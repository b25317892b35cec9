//! What a host's kernel has counted of its sockets: datagrams that it dropped, and TCP segments that it retransmitted.

use std::fs;

/// The kernel's counters of the calling thread's namespace (RFC 1213's, proc(5)).
const COUNTERS: &str = "/proc/thread-self/net/snmp";
const COUNTERS_IPV6: &str = "/proc/thread-self/net/snmp6";

/// Datagrams whose socket's buffer was full, in the calling thread's namespace, over IPv4 and IPv6.
pub fn dropped_datagrams() -> u64 {
    let read = |file: &str| fs::read_to_string(file).unwrap_or_default();
    let ipv6 = line(&read(COUNTERS_IPV6), "Udp6RcvbufErrors");
    counter(&read(COUNTERS), "Udp:", "RcvbufErrors").unwrap_or(0) + ipv6.unwrap_or(0)
}

/// TCP segments that the host of the calling thread's namespace has retransmitted, those of handshakes included, over IPv4 and IPv6;
/// none where its kernel does not say.
pub fn retransmitted_segments() -> Option<u64> {
    counter(&fs::read_to_string(COUNTERS).unwrap_or_default(), "Tcp:", "RetransSegs")
}

/// What a namespace that forwards has done about packets that were too large, over IPv4 and IPv6.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TooBig {
    /// Packets that it has dropped.
    pub dropped: u64,
    /// ICMP messages that it has sent.
    pub icmp: u64,
    /// Their bytes.
    pub icmp_bytes: u64,
}

/// An ICMP message about a packet of more than 576 bytes has 576 (RFC 1812, 4.3.2.3), one about IPv6 the least MTU (RFC 4443, 2.4).
const ICMP_BYTES: [u64; 2] = [576, 1280];

/// The same of the calling thread's namespace.
pub fn too_big() -> TooBig {
    let [ipv4, ipv6] = [COUNTERS, COUNTERS_IPV6].map(|file| fs::read_to_string(file).unwrap_or_default());
    let dropped = [counter(&ipv4, "Ip:", "FragFails"), line(&ipv6, "Ip6FragFails")].map(Option::unwrap_or_default);
    let sent = [counter(&ipv4, "Icmp:", "OutDestUnreachs"), line(&ipv6, "Icmp6OutPktTooBigs")];
    let sent = sent.map(Option::unwrap_or_default);
    let icmp_bytes = sent.iter().zip(ICMP_BYTES).map(|(sent, bytes)| sent * bytes).sum();
    TooBig { dropped: dropped.iter().sum(), icmp: sent.iter().sum(), icmp_bytes }
}

/// The value of a counter of two lines, which begin alike: the first is of names, the second of values.
fn counter(text: &str, protocol: &str, wanted: &str) -> Option<u64> {
    let mut lines = text.lines().filter(|line| line.starts_with(protocol));
    let (names, values) = (lines.next()?, lines.next()?);
    let mut columns = names.split_whitespace().zip(values.split_whitespace());
    columns.find(|(name, _)| *name == wanted).and_then(|(_, value)| value.parse().ok())
}

/// The value of a counter that has a line of its own, as those of IPv6.
fn line(text: &str, wanted: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.split_once(char::is_whitespace));
    lines.find(|(name, _)| *name == wanted).and_then(|(_, value)| value.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counter_is_found_by_name() {
        let text = "Tcp: ActiveOpens RetransSegs\nTcp: 1 12\nUdp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors\n\
                    Udp: 761 0 239 1000 239 0\nUdpLite: RcvbufErrors\nUdpLite: 5\n";
        assert_eq!(counter(text, "Udp:", "RcvbufErrors"), Some(239));
        assert_eq!(counter(text, "Tcp:", "RetransSegs"), Some(12));
        assert_eq!(line("Ip6InReceives\t9\nUdp6RcvbufErrors                \t7\n", "Udp6RcvbufErrors"), Some(7));
    }

    #[test]
    fn without_the_counter_nothing_counts() {
        let udp = |text| counter(text, "Udp:", "RcvbufErrors");
        assert_eq!((udp(""), udp("Udp: A\n"), line("", "Udp6RcvbufErrors")), (None, None, None));
    }
}
