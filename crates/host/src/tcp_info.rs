//! What the kernel has counted of one TCP connection (tcp(7), `TCP_INFO`).

use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Where the fields are in the kernel's `struct tcp_info` (include/uapi/linux/tcp.h), bytes. It only ever grows at its end.
const TOTAL_RETRANS: usize = 100;
const MIN_RTT: usize = 148;
const DATA_SEGS_OUT: usize = 156;
const NEEDED: usize = 160;

/// What the kernel has counted of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpInfo {
    /// Segments with data that this end has sent, retransmitted ones included.
    pub segments_sent: u32,
    /// Segments that it has retransmitted, those of the handshake included.
    pub retransmitted: u32,
    /// The shortest round trip that it has measured, microseconds.
    pub shortest_round_trip_us: Option<u32>,
}

/// What the kernel has counted of the connection on `socket`; none where it does not say.
pub fn tcp_info(socket: BorrowedFd<'_>) -> Option<TcpInfo> {
    let mut bytes = MaybeUninit::<[u8; 256]>::zeroed();
    let mut length: libc::socklen_t = 256;
    // SAFETY: the kernel writes at most `length` bytes into the buffer, which has as many; every byte of it is initialised.
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
    (result == 0 && length as usize >= NEEDED).then(|| parse(&bytes))
}

fn parse(bytes: &[u8; 256]) -> TcpInfo {
    let field = |at: usize| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let shortest = field(MIN_RTT);
    TcpInfo {
        segments_sent: field(DATA_SEGS_OUT),
        retransmitted: field(TOTAL_RETRANS),
        // All ones until the first measurement.
        shortest_round_trip_us: (shortest != u32::MAX && shortest != 0).then_some(shortest),
    }
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
    }

    #[test]
    fn what_is_no_tcp_socket_says_nothing() {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        assert_eq!(tcp_info(socket.as_fd()), None);
    }
}
