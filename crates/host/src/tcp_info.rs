//! The kernel's counts for one TCP connection (tcp(7), `TCP_INFO`).

use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Field offsets in the kernel's `struct tcp_info` (include/uapi/linux/tcp.h), bytes. It only ever grows at its end.
const RTO: usize = 8;
const SND_MSS: usize = 16;
const UNACKED: usize = 24;
const LOST: usize = 32;
const RETRANS: usize = 36;
const RTT: usize = 68;
const RTTVAR: usize = 72;
const SND_SSTHRESH: usize = 76;
const SND_CWND: usize = 80;
const TOTAL_RETRANS: usize = 100;
const BYTES_ACKED: usize = 120;
const NOTSENT_BYTES: usize = 144;
const MIN_RTT: usize = 148;
const DATA_SEGS_OUT: usize = 156;
const DELIVERY_RATE: usize = 160;
const BUSY_TIME: usize = 168;
const RWND_LIMITED: usize = 176;
const SNDBUF_LIMITED: usize = 184;
const BYTES_SENT: usize = 200;
const BYTES_RETRANS: usize = 208;
/// As many as Linux 4.19 has.
const NEEDED: usize = 216;
/// The kernel's slow start threshold where there is none (include/net/tcp.h).
const NO_THRESHOLD: u32 = 0x7fff_ffff;

/// The kernel's counts for a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpInfo {
    /// Data segments sent by this end, retransmissions included.
    pub segments_sent: u32,
    /// Retransmitted segments, the handshake's included.
    pub retransmitted: u32,
    /// The shortest measured round trip, microseconds.
    pub shortest_round_trip_us: Option<u32>,
    /// The congestion window, segments.
    pub congestion_window: u32,
    /// Up to where the window grows by slow start, segments; none before the first loss.
    pub slow_start_threshold: Option<u32>,
    /// Segment size, bytes.
    pub segment_bytes: u32,
    /// Segments in flight, not acknowledged.
    pub unacknowledged: u32,
    /// Those marked lost.
    pub lost: u32,
    /// Those sent again.
    pub sent_again: u32,
    /// The smoothed round trip, microseconds.
    pub smoothed_round_trip_us: u32,
    /// The mean deviation from it, microseconds.
    pub round_trip_variation_us: u32,
    /// The retransmission timeout, microseconds.
    pub retransmission_timeout_us: u32,
    /// How fast data has arrived lately, bytes a second.
    pub delivery_rate: u64,
    /// For how long something was in flight or to be sent, microseconds.
    pub busy_us: u64,
    /// The part limited by the receiver's window.
    pub receive_window_limited_us: u64,
    /// The part limited by a full send buffer.
    pub send_buffer_limited_us: u64,
    /// Data bytes sent, retransmissions included.
    pub sent_bytes: u64,
    /// Data bytes sent again.
    pub retransmitted_bytes: u64,
    /// Acknowledged bytes; at the client the SYN counts as one.
    pub acknowledged_bytes: u64,
    /// Unsent bytes in the send buffer.
    pub unsent_bytes: u32,
}

/// The kernel's counts for the connection on `socket`; none if unavailable.
pub fn tcp_info(socket: BorrowedFd<'_>) -> Option<TcpInfo> {
    let mut bytes = MaybeUninit::<[u8; 256]>::zeroed();
    let mut length: libc::socklen_t = 256;
    // SAFETY: the kernel writes at most `length` bytes into the buffer, which has as many, all initialised.
    let (result, bytes) = unsafe {
        let result = libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            bytes.as_mut_ptr().cast(),
            &raw mut length,
        );
        (result, bytes.assume_init())
    };
    bytes.get(..length as usize).filter(|_| result == 0).and_then(parse)
}

/// The counts in the kernel's `struct tcp_info`; none if it has too few.
pub fn parse(bytes: &[u8]) -> Option<TcpInfo> {
    if bytes.len() < NEEDED {
        return None;
    }
    let field = |at: usize| bytes.get(at..).and_then(|from| from.first_chunk()).map_or(0, |it| u32::from_ne_bytes(*it));
    let large = |at: usize| bytes.get(at..).and_then(|from| from.first_chunk()).map_or(0, |it| u64::from_ne_bytes(*it));
    let shortest = field(MIN_RTT);
    let threshold = field(SND_SSTHRESH);
    Some(TcpInfo {
        segments_sent: field(DATA_SEGS_OUT),
        retransmitted: field(TOTAL_RETRANS),
        // All ones until the first measurement.
        shortest_round_trip_us: (shortest != u32::MAX && shortest != 0).then_some(shortest),
        congestion_window: field(SND_CWND),
        slow_start_threshold: (threshold < NO_THRESHOLD).then_some(threshold),
        segment_bytes: field(SND_MSS),
        unacknowledged: field(UNACKED),
        lost: field(LOST),
        sent_again: field(RETRANS),
        smoothed_round_trip_us: field(RTT),
        round_trip_variation_us: field(RTTVAR),
        retransmission_timeout_us: field(RTO),
        delivery_rate: large(DELIVERY_RATE),
        busy_us: large(BUSY_TIME),
        receive_window_limited_us: large(RWND_LIMITED),
        send_buffer_limited_us: large(SNDBUF_LIMITED),
        sent_bytes: large(BYTES_SENT),
        retransmitted_bytes: large(BYTES_RETRANS),
        acknowledged_bytes: large(BYTES_ACKED),
        unsent_bytes: field(NOTSENT_BYTES),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd;

    #[test]
    fn segments_with_data_are_counted() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        client.write_all(b"one").unwrap();
        server.read_exact(&mut [0; 3]).unwrap();
        let (sender, receiver) = (tcp_info(client.as_fd()).unwrap(), tcp_info(server.as_fd()).unwrap());
        assert_eq!((sender.segments_sent, sender.retransmitted), (1, 0));
        assert_eq!((receiver.segments_sent, receiver.retransmitted), (0, 0));
        assert!(sender.shortest_round_trip_us.is_some_and(|us| us < 1_000_000));
        assert_eq!((sender.sent_bytes, sender.retransmitted_bytes, sender.slow_start_threshold), (3, 0, None));
        assert!(sender.congestion_window >= 2 && sender.segment_bytes > 500, "{sender:?}");
        assert!(sender.smoothed_round_trip_us > 0 && sender.retransmission_timeout_us >= sender.smoothed_round_trip_us);
    }

    #[test]
    fn what_is_no_tcp_socket_says_nothing() {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        assert_eq!(tcp_info(socket.as_fd()), None);
    }
}
