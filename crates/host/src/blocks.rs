//! Receives a stream in blocks: a program wakes up less often than packets arrive.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Receives until `into` is full, the stream has ended or the socket's time limit has passed (recv(2), `MSG_WAITALL`).
/// The kernel takes each packet from the socket as it arrives, so the receive window moves as if a program had read it.
pub fn receive_block(socket: BorrowedFd<'_>, into: &mut [u8]) -> io::Result<usize> {
    Ok(nix::sys::socket::recv(socket.as_raw_fd(), into, nix::sys::socket::MsgFlags::MSG_WAITALL)?)
}

/// Sets the bytes needed before the kernel reports a socket readable (socket(7), `SO_RCVLOWAT`). It always does at the
/// stream's end, and when the receive window is about to close.
pub fn set_low_water_mark(socket: BorrowedFd<'_>, bytes: i32) -> io::Result<()> {
    // SAFETY: the kernel reads an integer of the given length.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_RCVLOWAT,
            (&raw const bytes).cast(),
            size_of::<i32>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd;

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (client, listener.accept().unwrap().0)
    }

    #[test]
    fn a_block_is_full_unless_the_stream_ends() {
        let (mut client, server) = pair();
        let writer = std::thread::spawn(move || {
            for _ in 0..4 {
                client.write_all(b"two").unwrap();
            }
        });
        let mut into = [0; 9];
        assert_eq!(receive_block(server.as_fd(), &mut into).unwrap(), 9);
        assert_eq!(&into, b"twotwotwo");
        assert_eq!(receive_block(server.as_fd(), &mut into).unwrap(), 3);
        assert_eq!(receive_block(server.as_fd(), &mut into).unwrap(), 0);
        writer.join().unwrap();
    }

    #[test]
    fn below_the_low_water_mark_a_socket_cannot_be_read() {
        let (mut client, server) = pair();
        let is_readable =
            || poll(&mut [PollFd::new(server.as_fd(), PollFlags::POLLIN)], PollTimeout::ZERO).unwrap() == 1;
        set_low_water_mark(server.as_fd(), 4).unwrap();
        client.write_all(b"two").unwrap();
        assert!(!is_readable());
        set_low_water_mark(server.as_fd(), 1).unwrap();
        assert!(is_readable());
    }
}
