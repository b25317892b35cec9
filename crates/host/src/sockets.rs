//! What a host's kernel has counted of its sockets: datagrams that it dropped, and TCP segments that it retransmitted.

use std::fs;

/// The kernel's counters of the calling thread's namespace (RFC 1213's, proc(5)).
const COUNTERS: &str = "/proc/thread-self/net/snmp";

/// Datagrams whose socket's buffer was full, in the calling thread's namespace, over IPv4 and IPv6.
pub fn dropped_datagrams() -> u64 {
    let read = |file: &str| fs::read_to_string(file).unwrap_or_default();
    counter(&read(COUNTERS), "Udp:", "RcvbufErrors").unwrap_or(0) + ipv6(&read("/proc/thread-self/net/snmp6"))
}

/// TCP segments that the host of the calling thread's namespace has retransmitted, those of handshakes included, over IPv4 and IPv6;
/// none where its kernel does not say.
pub fn retransmitted_segments() -> Option<u64> {
    counter(&fs::read_to_string(COUNTERS).unwrap_or_default(), "Tcp:", "RetransSegs")
}

/// The value of a counter of two lines, which begin alike: the first is of names, the second of values.
fn counter(text: &str, protocol: &str, wanted: &str) -> Option<u64> {
    let mut lines = text.lines().filter(|line| line.starts_with(protocol));
    let (names, values) = (lines.next()?, lines.next()?);
    let mut columns = names.split_whitespace().zip(values.split_whitespace());
    columns.find(|(name, _)| *name == wanted).and_then(|(_, value)| value.parse().ok())
}

/// The value of `Udp6RcvbufErrors`, which has a line of its own.
fn ipv6(text: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix("Udp6RcvbufErrors"));
    line.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
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
        assert_eq!(ipv6("Ip6InReceives\t9\nUdp6RcvbufErrors                \t7\n"), 7);
    }

    #[test]
    fn without_the_counter_nothing_counts() {
        let udp = |text| counter(text, "Udp:", "RcvbufErrors");
        assert_eq!((udp(""), udp("Udp: A\n"), ipv6("")), (None, None, 0));
    }
}
