//! Whether a server listens, by the kernel's tables of sockets (proc(5), /proc/net/tcp and its like).

use crosswind_transport::Carrier;
use std::fs;

/// A listening TCP socket's state (`include/net/tcp_states.h`).
const TCP_LISTEN: u8 = 0x0a;
/// The state of a bound, unconnected UDP socket.
const UDP_UNCONNECTED: u8 = 0x07;

/// Whether a socket in the calling thread's network namespace waits for clients on `port`, over one of `carriers`.
pub fn is_open(carriers: &[Carrier], port: u16) -> bool {
    carriers.iter().any(|&carrier| {
        // Without IPv6 there is no table of it.
        tables(carrier)
            .into_iter()
            .any(|table| fs::read_to_string(table).is_ok_and(|text| listens(&text, carrier, port)))
    })
}

/// A network namespace's tables with servers' sockets.
const fn tables(carrier: Carrier) -> [&'static str; 2] {
    match carrier {
        Carrier::Tcp => ["/proc/thread-self/net/tcp", "/proc/thread-self/net/tcp6"],
        Carrier::Udp | Carrier::Quic => ["/proc/thread-self/net/udp", "/proc/thread-self/net/udp6"],
    }
}

/// Whether one of these sockets waits for clients on `port`.
fn listens(table: &str, carrier: Carrier, port: u16) -> bool {
    let wanted = if carrier == Carrier::Tcp { TCP_LISTEN } else { UDP_UNCONNECTED };
    table.lines().skip(1).filter_map(local_port_and_state).any(|found| found == (port, wanted))
}

/// In `0: 00000000:1151 00000000:0000 0A ...`: 0x1151 and 0x0a.
fn local_port_and_state(line: &str) -> Option<(u16, u8)> {
    let mut words = line.split_ascii_whitespace().skip(1);
    let (local, _, state) = (words.next()?, words.next()?, words.next()?);
    let (_, port) = local.rsplit_once(':')?;
    Some((u16::from_str_radix(port, 16).ok()?, u8::from_str_radix(state, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TCP: &str = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000:1151 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 48577
   1: 0200C612:1152 0100C612:9C40 01 00000000:00000000 00:00000000 00000000     0        0 48578
";
    const UDP6: &str = "\
  sl  local_address                         remote_address                        st tx_queue rx_queue
  115: 00000000000000000000000000000000:1151 00000000000000000000000000000000:0000 07 00000000:00000000
";

    #[test]
    fn a_socket_that_listens_is_found_by_its_port() {
        assert!(listens(TCP, Carrier::Tcp, 4433));
        assert!(!listens(TCP, Carrier::Tcp, 4434), "a connection is no listener");
        assert!(listens(UDP6, Carrier::Quic, 4433) && listens(UDP6, Carrier::Udp, 4433));
        assert!(!listens(UDP6, Carrier::Tcp, 4433) && !listens("", Carrier::Tcp, 4433));
        assert!(!listens("header\nnonsense\n 0: x:y z w\n", Carrier::Tcp, 4433));
    }
}
