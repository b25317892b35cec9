//! A namespace's TCP sockets, whoever has opened them (`sock_diag(7)`).

use crate::error::{HostError, Result};
use crate::inet_diag::{Answer, DiagSocket, read, request};
use netlink_sys::protocols::NETLINK_SOCK_DIAG;
use netlink_sys::{Socket, SocketAddr};
use std::io;

/// The kernel's largest answer is half as long.
const LARGEST_ANSWER: usize = 64 * 1024;
/// Room for some thousand closed sockets between two readings, where the machine allows as much.
const CLOSED_BUFFER: usize = 4 << 20;
/// Messages about closed sockets, by address family (`linux/sock_diag.h`).
const CLOSED_GROUPS: [u32; 2] = [1, 3];

/// A connection to the kernel's list of a namespace's TCP sockets.
pub struct SocketDiag {
    open: Socket,
    /// None if this kernel tells nothing about closed sockets.
    closed: Option<Socket>,
}

impl SocketDiag {
    /// Connects, in the calling thread's namespace.
    pub fn connect() -> Result<Self> {
        let failed = |error| HostError::new("cannot ask the kernel about TCP sockets", error);
        let open = connect().map_err(failed)?;
        Ok(Self { open, closed: connect_to_closed().ok() })
    }

    /// Adds all connected sockets to `sockets`, then those closed since the last call.
    pub fn read(&self, sockets: &mut Vec<DiagSocket>) -> Result<()> {
        let failed = |error| HostError::new("cannot list TCP sockets", error);
        self.open.send(&request(), 0).map_err(failed)?;
        loop {
            match read(&receive(&self.open).map_err(failed)?, sockets) {
                Answer::More => {}
                Answer::Done => break,
                Answer::Failed(number) => return Err(failed(io::Error::from_raw_os_error(number))),
            }
        }
        if let Some(closed) = &self.closed {
            loop {
                match receive(closed) {
                    Ok(bytes) => {
                        read(&bytes, sockets);
                    }
                    // Some were too many for the buffer; later ones are behind them.
                    Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {}
                    Err(_) => break,
                }
            }
        }
        Ok(())
    }
}

fn connect() -> io::Result<Socket> {
    let socket = Socket::new(NETLINK_SOCK_DIAG)?;
    socket.connect(&SocketAddr::new(0, 0))?;
    Ok(socket)
}

fn connect_to_closed() -> io::Result<Socket> {
    let mut socket = Socket::new(NETLINK_SOCK_DIAG)?;
    socket.bind_auto()?;
    socket.set_rx_buf_sz(CLOSED_BUFFER as libc::c_int)?;
    socket.set_non_blocking(true)?;
    for group in CLOSED_GROUPS {
        socket.add_membership(group)?;
    }
    Ok(socket)
}

fn receive(socket: &Socket) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(LARGEST_ANSWER);
    socket.recv(&mut bytes, 0)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    /// Both ends of a connection that has carried three bytes, and what the kernel says of them before and after its end.
    fn told(address: &str) -> [Vec<DiagSocket>; 2] {
        let diag = SocketDiag::connect().unwrap();
        let listener = TcpListener::bind(address).unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, own) = listener.accept().unwrap();
        client.write_all(b"one").unwrap();
        server.read_exact(&mut [0; 3]).unwrap();
        let of_connection = || {
            let mut sockets = Vec::new();
            diag.read(&mut sockets).unwrap();
            sockets.retain(|it| [it.local, it.remote].contains(&own));
            sockets.sort_by_key(|it| it.local != own);
            sockets
        };
        let open = of_connection();
        drop(client);
        drop(server);
        let mut closed: Vec<DiagSocket> = Vec::new();
        // The kernel tells about closed sockets in its own time.
        while closed.iter().filter(|it| it.is_closed).count() < 2 {
            closed.extend(of_connection());
        }
        closed.retain(|it| it.is_closed);
        closed.sort_by_key(|it| it.local != own);
        [open, closed]
    }

    #[test]
    fn sockets_are_told_while_they_are_open_and_when_they_close() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let [open, closed] = told(address);
            for sockets in [&open, &closed] {
                assert_eq!(sockets.iter().map(|it| it.info.sent_bytes).collect::<Vec<_>>(), [3, 0]);
            }
            assert!(open.iter().all(|it| it.congestion_control.is_some() && it.send_buffer.is_some()));
            assert_eq!(open[0].local, open[1].remote);
            assert_eq!([open[0].cookie, open[1].cookie], [closed[0].cookie, closed[1].cookie]);
        }
    }
}
