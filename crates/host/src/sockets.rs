//! Datagrams that the hosts' sockets dropped: the path delivered them, and no program received them.

use std::fs;

/// Datagrams whose socket's buffer was full, in the calling thread's namespace, over IPv4 and IPv6.
pub fn dropped_datagrams() -> u64 {
    let read = |file: &str| fs::read_to_string(file).unwrap_or_default();
    ipv4(&read("/proc/thread-self/net/snmp")) + ipv6(&read("/proc/thread-self/net/snmp6"))
}

/// `RcvbufErrors` of the two lines `Udp:`, the first of names, the second of values.
fn ipv4(text: &str) -> u64 {
    let mut lines = text.lines().filter(|line| line.starts_with("Udp:"));
    let (Some(names), Some(values)) = (lines.next(), lines.next()) else { return 0 };
    let mut columns = names.split_whitespace().zip(values.split_whitespace());
    columns.find(|(name, _)| *name == "RcvbufErrors").and_then(|(_, value)| value.parse().ok()).unwrap_or(0)
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
        let text = "Tcp: A B\nTcp: 1 2\nUdp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors\n\
                    Udp: 761 0 239 1000 239 0\nUdpLite: RcvbufErrors\nUdpLite: 5\n";
        assert_eq!(ipv4(text), 239);
        assert_eq!(ipv6("Ip6InReceives\t9\nUdp6RcvbufErrors                \t7\n"), 7);
    }

    #[test]
    fn without_the_counter_nothing_counts_as_dropped() {
        assert_eq!((ipv4(""), ipv4("Udp: A\n"), ipv6("")), (0, 0, 0));
    }
}
