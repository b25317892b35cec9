//! The kernel's answers about TCP sockets (`sock_diag(7)`), as bytes.
//!
//! Damaged bytes end the reading; they never panic.

use crate::tcp_info::{TcpInfo, parse};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// `linux/netlink.h`
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const NLM_F_REQUEST: u16 = 0x001;
const NLM_F_DUMP: u16 = 0x300;
/// Type bits above it are flags.
const NLA_TYPE_MASK: u16 = 0x3fff;
const MESSAGE_HEADER: usize = 16;
const ATTRIBUTE_HEADER: usize = 4;
/// The messages about closed sockets (`linux/sock_diag.h`).
const SOCK_DIAG_BY_FAMILY: u16 = 20;
/// The request for TCP sockets in all address families, and its answers (`linux/inet_diag.h`). The newer request has one
/// family, and each takes a walk through all the machine's sockets, which is what costs.
const TCPDIAG_GETSOCK: u16 = 18;
/// Attributes, and the size of `struct inet_diag_msg` (`linux/inet_diag.h`).
const INET_DIAG_INFO: u16 = 2;
const INET_DIAG_CONG: u16 = 4;
const INET_DIAG_SKMEMINFO: u16 = 7;
const SOCKET_BYTES: usize = 72;
/// The send buffer's place among the numbers in `INET_DIAG_SKMEMINFO` (`linux/sock_diag.h`).
const SK_MEMINFO_SNDBUF: usize = 3;
/// `include/net/tcp_states.h`
const TIME_WAIT: u8 = 6;
const CLOSE: u8 = 7;
const LISTEN: u8 = 10;
const NEW_SYN_RECV: u8 = 12;

/// A TCP socket, as its kernel describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiagSocket {
    /// The kernel's number, for this socket alone.
    pub cookie: u64,
    /// Its own address.
    pub local: SocketAddr,
    /// The other end's address.
    pub remote: SocketAddr,
    /// Whether it is closed, with final counts.
    pub is_closed: bool,
    /// The counts.
    pub info: TcpInfo,
    /// Its congestion control's name; none on closed sockets.
    pub congestion_control: Option<String>,
    /// Its send buffer in bytes: twice the `SO_SNDBUF` of a program with its own. None on closed sockets.
    pub send_buffer: Option<u32>,
}

/// The end of some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// There is more to come.
    More,
    /// The list is complete.
    Done,
    /// The kernel refused with this error number.
    Failed(i32),
}

/// Asks for all connected TCP sockets: a header and a `struct inet_diag_req`.
pub fn request() -> [u8; 76] {
    let mut bytes = [0; 76];
    bytes[0..4].copy_from_slice(&76_u32.to_ne_bytes());
    bytes[4..6].copy_from_slice(&TCPDIAG_GETSOCK.to_ne_bytes());
    bytes[6..8].copy_from_slice(&(NLM_F_REQUEST | NLM_F_DUMP).to_ne_bytes());
    let wanted = [INET_DIAG_INFO, INET_DIAG_CONG, INET_DIAG_SKMEMINFO].iter().fold(0, |all, it| all | 1 << (it - 1));
    bytes[19] = wanted;
    // These are no connections, or not yet.
    let left_out = [TIME_WAIT, CLOSE, LISTEN, NEW_SYN_RECV].iter().fold(0, |all, it| all | 1_u32 << it);
    bytes[68..72].copy_from_slice(&(!left_out).to_ne_bytes());
    bytes
}

/// Adds the sockets in some bytes from the kernel to `sockets`.
pub fn read(mut bytes: &[u8], sockets: &mut Vec<DiagSocket>) -> Answer {
    while let Some(length) = u32_at(bytes, 0) {
        let Some(body) = bytes.get(MESSAGE_HEADER..length as usize) else { break };
        match u16_at(bytes, 4) {
            Some(NLMSG_DONE) => return Answer::Done,
            Some(NLMSG_ERROR) => {
                // Negative.
                let number = u32_at(body, 0).map_or(0, u32::cast_signed).saturating_neg();
                return if number == 0 { Answer::Done } else { Answer::Failed(number) };
            }
            Some(TCPDIAG_GETSOCK | SOCK_DIAG_BY_FAMILY) => sockets.extend(socket(body)),
            _ => {}
        }
        bytes = after(bytes, length as usize);
    }
    Answer::More
}

/// One `struct inet_diag_msg` with attributes; none without counts.
fn socket(body: &[u8]) -> Option<DiagSocket> {
    let [family, state, ..] = *body else { return None };
    let address = |at: usize| -> Option<IpAddr> {
        let bytes: [u8; 16] = *body.get(at..)?.first_chunk()?;
        match i32::from(family) {
            libc::AF_INET => Some(IpAddr::V4(Ipv4Addr::from(*bytes.first_chunk::<4>()?))),
            // A socket for both families has IPv4 addresses inside IPv6 ones.
            libc::AF_INET6 => Some(IpAddr::V6(Ipv6Addr::from(bytes)).to_canonical()),
            _ => None,
        }
    };
    let port = |at: usize| u16_at(body, at).map(u16::from_be);
    let (mut info, mut congestion_control, mut send_buffer) = (None, None, None);
    for (kind, value) in attributes(body.get(SOCKET_BYTES..)?) {
        match kind {
            INET_DIAG_INFO => info = parse(value),
            INET_DIAG_CONG => congestion_control = text(value),
            INET_DIAG_SKMEMINFO => send_buffer = u32_at(value, 4 * SK_MEMINFO_SNDBUF),
            _ => {}
        }
    }
    Some(DiagSocket {
        cookie: u64::from(u32_at(body, 44)?) | u64::from(u32_at(body, 48)?) << 32,
        local: SocketAddr::new(address(8)?, port(4)?),
        remote: SocketAddr::new(address(24)?, port(6)?),
        is_closed: state == CLOSE,
        info: info?,
        congestion_control,
        send_buffer,
    })
}

fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(u16_at(bytes, 0)?);
        let (kind, value) = (u16_at(bytes, 2)? & NLA_TYPE_MASK, bytes.get(ATTRIBUTE_HEADER..length)?);
        bytes = after(bytes, length);
        Some((kind, value))
    })
}

/// The bytes after the first `length`, which are padded to four.
fn after(bytes: &[u8], length: usize) -> &[u8] {
    bytes.get(length.next_multiple_of(4)..).unwrap_or_default()
}

/// A text up to its zero byte.
fn text(value: &[u8]) -> Option<String> {
    let text = value.split(|&byte| byte == 0).next()?;
    std::str::from_utf8(text).ok().filter(|it| !it.is_empty()).map(str::to_owned)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|it| u16::from_ne_bytes(*it))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|it| u32::from_ne_bytes(*it))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Captured on Linux 6.18: both ends' sockets over loopback, 1000 bytes after the handshake; the client's send buffer
    /// was set to 16 KiB.
    const OPEN: &[u8] = include_bytes!("../captured/inet_diag_open");
    /// The client's, when it was closed.
    const CLOSED: &[u8] = include_bytes!("../captured/inet_diag_closed");
    /// The end of a list.
    const DONE: [u8; 20] = [20, 0, 0, 0, 3, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

    fn sockets_in(bytes: &[u8]) -> (Vec<DiagSocket>, Answer) {
        let mut sockets = Vec::new();
        let answer = read(bytes, &mut sockets);
        (sockets, answer)
    }

    #[test]
    fn a_list_has_each_socket_with_its_counts_and_its_settings() {
        let (sockets, answer) = sockets_in(OPEN);
        assert_eq!(answer, Answer::More);
        let [client, server] = sockets.as_slice() else { panic!("{sockets:?}") };
        assert_eq!((client.local, client.remote), (server.remote, server.local));
        assert_eq!((client.info.sent_bytes, server.info.sent_bytes, client.is_closed), (1000, 0, false));
        assert_eq!((client.congestion_control.as_deref(), client.info.segments_sent), (Some("bbr"), 1));
        // Twice the size asked for.
        assert_eq!(client.send_buffer, Some(32_768));
        assert_ne!(client.cookie, server.cookie);
        assert_eq!(sockets_in(&[OPEN, &DONE].concat()), (sockets, Answer::Done));
    }

    #[test]
    fn a_closed_socket_is_told_by_its_number_with_its_last_counts() {
        let (open, closed) = (sockets_in(OPEN).0, sockets_in(CLOSED).0);
        let [closed] = closed.as_slice() else { panic!("{closed:?}") };
        assert_eq!((closed.cookie, closed.local), (open[0].cookie, open[0].local));
        assert!(closed.is_closed && closed.congestion_control.is_none() && closed.send_buffer.is_none());
        assert_eq!((closed.info.sent_bytes, closed.info.receive_window_limited_us), (1000, 0));
    }

    #[test]
    fn an_error_has_its_number() {
        let mut bytes = DONE;
        bytes[4] = 2;
        assert_eq!(sockets_in(&bytes), (vec![], Answer::Done));
        bytes[16..].copy_from_slice(&(-libc::ENOENT).to_ne_bytes());
        assert_eq!(sockets_in(&bytes), (vec![], Answer::Failed(libc::ENOENT)));
    }

    #[test]
    fn an_address_inside_ipv6_is_that_of_ipv4() {
        let mut bytes = CLOSED.to_vec();
        let own = sockets_in(&bytes).0[0].local;
        bytes[16] = libc::AF_INET6 as u8;
        for at in [24, 40] {
            bytes.copy_within(at..at + 4, at + 12);
            bytes[at..at + 12].copy_from_slice(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff]);
        }
        assert_eq!(sockets_in(&bytes).0[0].local, own);
        bytes[24] = 0x20;
        assert!(sockets_in(&bytes).0[0].local.is_ipv6());
    }

    #[test]
    fn damaged_bytes_are_read_as_far_as_they_go() {
        for bytes in [OPEN, CLOSED] {
            for end in 0..bytes.len() {
                assert!(sockets_in(&bytes[..end]).0.len() < sockets_in(bytes).0.len());
            }
            for at in 0..bytes.len() {
                for value in [0, 1, 3, 4, 15, 16, 0x7f, 0x80, 0xff] {
                    let mut damaged = bytes.to_vec();
                    damaged[at] = value;
                    assert!(sockets_in(&damaged).0.len() <= 2);
                }
            }
        }
    }

    #[test]
    fn a_request_is_for_connections_with_counts_and_settings() {
        let bytes = request();
        assert_eq!((u32_at(&bytes, 0), &bytes[16..20]), (Some(76), &[0, 0, 0, 0b100_1010][..]));
        // Established ones, not listening ones.
        assert_eq!(u32_at(&bytes, 68).map(|states| states & (1 << 1 | 1 << 10)), Some(1 << 1));
    }
}
