//! The kernel's socket counters for a host: dropped datagrams, and retransmitted TCP segments.

use std::fs;

/// The kernel's counters for the calling thread's namespace (RFC 1213's, proc(5)).
const COUNTERS: &str = "/proc/thread-self/net/snmp";
const COUNTERS_IPV6: &str = "/proc/thread-self/net/snmp6";

/// The kernel's counts for a host, over IPv4 and IPv6.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Datagrams dropped at a full socket buffer.
    pub dropped_datagrams: u64,
    /// Retransmitted TCP segments, handshakes included; none if the kernel does not count them.
    pub retransmitted_segments: Option<u64>,
}

impl Counted {
    /// In the calling thread's namespace.
    pub fn read() -> Self {
        let [both, ipv6] = [COUNTERS, COUNTERS_IPV6].map(|file| fs::read_to_string(file).unwrap_or_default());
        let dropped = [counter(&both, "Udp:", "RcvbufErrors"), line(&ipv6, "Udp6RcvbufErrors")];
        Self {
            dropped_datagrams: dropped.into_iter().flatten().sum(),
            retransmitted_segments: counter(&both, "Tcp:", "RetransSegs"),
        }
    }
}

impl std::ops::Add for Counted {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        let segments = self.retransmitted_segments.zip(other.retransmitted_segments);
        Self {
            dropped_datagrams: self.dropped_datagrams + other.dropped_datagrams,
            retransmitted_segments: segments.map(|(a, b)| a + b),
        }
    }
}

/// A forwarding namespace's handling of packets too large, over IPv4 and IPv6.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TooBig {
    /// Dropped packets.
    pub dropped: u64,
    /// ICMP messages sent.
    pub icmp: u64,
    /// Their bytes.
    pub icmp_bytes: u64,
}

/// An ICMP message about a large packet has 576 bytes (RFC 1812, 4.3.2.3), or IPv6's minimum MTU (RFC 4443, 2.4).
const ICMP_BYTES: [u64; 2] = [576, 1280];

/// The same for the calling thread's namespace.
pub fn too_big() -> TooBig {
    let [ipv4, ipv6] = [COUNTERS, COUNTERS_IPV6].map(|file| fs::read_to_string(file).unwrap_or_default());
    let dropped = [counter(&ipv4, "Ip:", "FragFails"), line(&ipv6, "Ip6FragFails")].map(Option::unwrap_or_default);
    let sent = [counter(&ipv4, "Icmp:", "OutDestUnreachs"), line(&ipv6, "Icmp6OutPktTooBigs")];
    let sent = sent.map(Option::unwrap_or_default);
    let icmp_bytes = sent.iter().zip(ICMP_BYTES).map(|(sent, bytes)| sent * bytes).sum();
    TooBig { dropped: dropped.iter().sum(), icmp: sent.iter().sum(), icmp_bytes }
}

/// A counter's value from two lines with the same beginning: names, then values.
fn counter(text: &str, protocol: &str, wanted: &str) -> Option<u64> {
    let mut lines = text.lines().filter(|line| line.starts_with(protocol));
    let (names, values) = (lines.next()?, lines.next()?);
    let mut columns = names.split_whitespace().zip(values.split_whitespace());
    columns.find(|(name, _)| *name == wanted).and_then(|(_, value)| value.parse().ok())
}

/// The value of a counter with its own line, as IPv6's.
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
