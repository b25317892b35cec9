//! TCP (RFC 9293), a message being a number of bytes that both ends know.

use crate::error::failed;
use crate::{Connection, Listener, SocketReadback, SocketSettings, Transport, TransportError};
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// Connections waiting to be accepted.
const BACKLOG: i32 = 1024;

/// The transport `tcp`.
pub struct Tcp;

impl Transport for Tcp {
    fn name(&self) -> &'static str {
        "tcp"
    }

    fn is_datagram(&self) -> bool {
        false
    }

    fn largest_message(&self, _ipv6: bool) -> Option<usize> {
        None
    }

    fn listen(&self, address: SocketAddr, settings: &SocketSettings) -> Result<Box<dyn Listener>, TransportError> {
        let socket = open(address)?;
        settings.apply_tcp(&socket)?;
        socket.set_reuse_address(true).map_err(failed("cannot listen"))?;
        socket.bind(&address.into()).map_err(failed("cannot bind"))?;
        socket.listen(BACKLOG).map_err(failed("cannot listen"))?;
        Ok(Box::new(TcpServer { listener: socket.into(), nodelay: settings.nodelay }))
    }

    fn connect(
        &self,
        server: SocketAddr,
        settings: &SocketSettings,
        timeout: Duration,
    ) -> Result<Box<dyn Connection>, TransportError> {
        let socket = open(server)?;
        settings.apply_tcp(&socket)?;
        // A blocking connect is bounded by the send timeout (socket(7)), and saves the calls of a non-blocking one.
        socket.set_write_timeout(Some(timeout)).map_err(failed("cannot set a timeout"))?;
        socket.set_read_timeout(Some(timeout)).map_err(failed("cannot set a timeout"))?;
        socket.connect(&server.into()).map_err(|cause| {
            let expired = cause.raw_os_error() == Some(EINPROGRESS);
            TransportError::new("cannot connect", &if expired { ErrorKind::TimedOut.into() } else { cause })
        })?;
        let stream = TcpStream::from(socket);
        let client_port = stream.local_addr().map_err(failed("cannot read the own address"))?.port();
        Ok(Box::new(TcpConnection { stream, client_port, timeout }))
    }
}

/// What connect(2) says when the send timeout has passed.
const EINPROGRESS: i32 = 115;

fn open(address: SocketAddr) -> Result<Socket, TransportError> {
    Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP)).map_err(failed("cannot open a socket"))
}

struct TcpServer {
    listener: TcpListener,
    nodelay: Option<bool>,
}

impl Listener for TcpServer {
    fn address(&self) -> Result<SocketAddr, TransportError> {
        self.listener.local_addr().map_err(failed("cannot read the listener's address"))
    }

    fn accept(&self, timeout: Duration) -> Result<Box<dyn Connection>, TransportError> {
        SockRef::from(&self.listener).set_read_timeout(Some(timeout)).map_err(failed("cannot set a timeout"))?;
        let (stream, peer) = self.listener.accept().map_err(failed("cannot accept"))?;
        // Linux hands congestion control and buffer sizes down from the listener, but not TCP_NODELAY on every kernel.
        if let Some(on) = self.nodelay {
            stream.set_nodelay(on).map_err(failed("cannot set TCP_NODELAY"))?;
        }
        let mut connection = TcpConnection { stream, client_port: peer.port(), timeout };
        connection.set_timeout(timeout)?;
        Ok(Box::new(connection))
    }

    fn wake(&self) {
        // Whether it worked shows in the waits, which have deadlines of their own.
        let _ = SockRef::from(&self.listener).shutdown(Shutdown::Both);
    }

    fn try_clone(&self) -> Result<Box<dyn Listener>, TransportError> {
        let listener = self.listener.try_clone().map_err(failed("cannot share a listener"))?;
        Ok(Box::new(Self { listener, nodelay: self.nodelay }))
    }
}

struct TcpConnection {
    stream: TcpStream,
    client_port: u16,
    timeout: Duration,
}

impl Connection for TcpConnection {
    fn send(&mut self, message: &[u8]) -> Result<(), TransportError> {
        self.stream.write_all(message).map_err(failed("cannot send"))
    }

    fn receive(&mut self, into: &mut [u8]) -> Result<usize, TransportError> {
        let started = Instant::now();
        let mut filled = 0;
        loop {
            match self.receive_some(&mut into[filled..])? {
                0 => return Err(TransportError::closed("cannot receive")),
                n => filled += n,
            }
            if filled == into.len() {
                return Ok(filled);
            }
            // The socket's timeout bounds each piece; this one bounds the message.
            if started.elapsed() > self.timeout {
                return Err(TransportError::new("cannot receive", &ErrorKind::TimedOut.into()));
            }
        }
    }

    fn receive_some(&mut self, into: &mut [u8]) -> Result<usize, TransportError> {
        loop {
            match self.stream.read(into) {
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                result => return result.map_err(failed("cannot receive")),
            }
        }
    }

    fn set_timeout(&mut self, timeout: Duration) -> Result<(), TransportError> {
        // A timeout of zero would mean none.
        self.timeout = timeout.max(Duration::from_micros(1));
        let timeout = Some(self.timeout);
        self.stream.set_read_timeout(timeout).map_err(failed("cannot set a timeout"))?;
        self.stream.set_write_timeout(timeout).map_err(failed("cannot set a timeout"))
    }

    fn finish_sending(&mut self) -> Result<(), TransportError> {
        self.stream.shutdown(Shutdown::Write).map_err(failed("cannot finish sending"))
    }

    fn abort(&mut self) -> Result<(), TransportError> {
        let socket = SockRef::from(&self.stream);
        socket.set_linger(Some(Duration::ZERO)).map_err(failed("cannot abort"))?;
        // Wakes whoever still waits on a clone. Not being connected any more is what was wanted.
        let _ = self.stream.shutdown(Shutdown::Both);
        Ok(())
    }

    fn client_port(&self) -> u16 {
        self.client_port
    }

    fn try_clone(&self) -> Result<Box<dyn Connection>, TransportError> {
        let stream = self.stream.try_clone().map_err(failed("cannot share a connection"))?;
        Ok(Box::new(Self { stream, client_port: self.client_port, timeout: self.timeout }))
    }

    fn readback(&self) -> Result<SocketReadback, TransportError> {
        let socket = SockRef::from(&self.stream);
        let read = || {
            let congestion_control = socket.tcp_congestion()?;
            let name = congestion_control.split(|&b| b == 0).next().unwrap_or_default();
            Ok(SocketReadback {
                congestion_control: Some(String::from_utf8_lossy(name).into_owned()),
                nodelay: Some(socket.tcp_nodelay()?),
                maximum_segment_bytes: Some(socket.tcp_mss()?),
                send_buffer_bytes: socket.send_buffer_size()?,
                receive_buffer_bytes: socket.recv_buffer_size()?,
            })
        };
        read().map_err(failed("cannot read the socket's settings back"))
    }
}
