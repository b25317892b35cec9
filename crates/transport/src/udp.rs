//! UDP (RFC 768), one message a datagram. At the server one socket serves every client: its "connection" answers whoever
//! sent the last message.

use crate::error::failed;
use crate::{Connection, Listener, SocketReadback, SocketSettings, Transport, TransportError};
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

/// The transport `udp`.
pub struct Udp;

impl Transport for Udp {
    fn name(&self) -> &'static str {
        "udp"
    }

    fn is_datagram(&self) -> bool {
        true
    }

    fn largest_message(&self, ipv6: bool) -> Option<usize> {
        // Both length fields have 16 bits. IPv4's counts its own header of 20 and UDP's of 8 (RFC 791), IPv6's payload
        // length UDP's alone (RFC 8200).
        Some(if ipv6 { 65_527 } else { 65_507 })
    }

    fn listen(&self, address: SocketAddr, settings: &SocketSettings) -> Result<Box<dyn Listener>, TransportError> {
        let socket = open(address, settings)?;
        socket.bind(&address.into()).map_err(failed("cannot bind"))?;
        Ok(Box::new(UdpServer { socket: socket.into() }))
    }

    fn connect(
        &self,
        server: SocketAddr,
        settings: &SocketSettings,
        timeout: Duration,
    ) -> Result<Box<dyn Connection>, TransportError> {
        let socket = open(server, settings)?;
        socket.connect(&server.into()).map_err(failed("cannot connect"))?;
        let socket = UdpSocket::from(socket);
        let client_port = socket.local_addr().map_err(failed("cannot read the own address"))?.port();
        let mut client = UdpClient { socket, client_port };
        client.set_timeout(timeout)?;
        Ok(Box::new(client))
    }
}

fn open(address: SocketAddr, settings: &SocketSettings) -> Result<Socket, TransportError> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))
        .map_err(failed("cannot open a socket"))?;
    settings.apply_buffers(&socket)?;
    Ok(socket)
}

fn readback(socket: &UdpSocket) -> Result<SocketReadback, TransportError> {
    let socket = SockRef::from(socket);
    let read = || {
        Ok(SocketReadback {
            send_buffer_bytes: socket.send_buffer_size()?,
            receive_buffer_bytes: socket.recv_buffer_size()?,
            ..SocketReadback::default()
        })
    };
    read().map_err(failed("cannot read the socket's settings back"))
}

fn set_timeout(socket: &UdpSocket, timeout: Duration) -> Result<(), TransportError> {
    let timeout = Some(timeout.max(Duration::from_micros(1)));
    socket.set_read_timeout(timeout).map_err(failed("cannot set a timeout"))?;
    socket.set_write_timeout(timeout).map_err(failed("cannot set a timeout"))
}

struct UdpServer {
    socket: UdpSocket,
}

impl UdpServer {
    fn share(&self) -> Result<UdpSocket, TransportError> {
        self.socket.try_clone().map_err(failed("cannot share a socket"))
    }
}

impl Listener for UdpServer {
    fn address(&self) -> Result<SocketAddr, TransportError> {
        self.socket.local_addr().map_err(failed("cannot read the listener's address"))
    }

    fn accept(&self, timeout: Duration) -> Result<Box<dyn Connection>, TransportError> {
        let socket = self.share()?;
        set_timeout(&socket, timeout)?;
        let own = self.address()?;
        Ok(Box::new(UdpPeers { socket, own, last: None }))
    }

    fn wake(&self) {
        // A datagram from itself ends one wait, by way of the host's loopback. Should it fail, the wait has a deadline.
        if let Ok(own) = self.socket.local_addr() {
            let _ = self.socket.send_to(&[], own);
        }
    }

    fn try_clone(&self) -> Result<Box<dyn Listener>, TransportError> {
        Ok(Box::new(Self { socket: self.share()? }))
    }
}

/// The server's end, for all clients.
struct UdpPeers {
    socket: UdpSocket,
    own: SocketAddr,
    last: Option<SocketAddr>,
}

impl Connection for UdpPeers {
    fn send(&mut self, message: &[u8]) -> Result<(), TransportError> {
        let Some(to) = self.last else {
            return Err(TransportError::closed("cannot answer before a message has come"));
        };
        self.socket.send_to(message, to).map(|_| ()).map_err(failed("cannot send"))
    }

    fn receive(&mut self, into: &mut [u8]) -> Result<usize, TransportError> {
        let (n, from) = self.socket.recv_from(into).map_err(failed("cannot receive"))?;
        if from == self.own {
            return Err(TransportError::closed("cannot receive")); // see `wake`
        }
        self.last = Some(from);
        Ok(n)
    }

    fn set_timeout(&mut self, timeout: Duration) -> Result<(), TransportError> {
        set_timeout(&self.socket, timeout)
    }

    fn client_port(&self) -> u16 {
        self.last.map_or(0, |peer| peer.port())
    }

    fn try_clone(&self) -> Result<Box<dyn Connection>, TransportError> {
        let socket = self.socket.try_clone().map_err(failed("cannot share a socket"))?;
        Ok(Box::new(Self { socket, own: self.own, last: self.last }))
    }

    fn readback(&self) -> Result<SocketReadback, TransportError> {
        readback(&self.socket)
    }
}

/// The client's end.
struct UdpClient {
    socket: UdpSocket,
    client_port: u16,
}

impl Connection for UdpClient {
    fn send(&mut self, message: &[u8]) -> Result<(), TransportError> {
        self.socket.send(message).map(|_| ()).map_err(failed("cannot send"))
    }

    fn receive(&mut self, into: &mut [u8]) -> Result<usize, TransportError> {
        self.socket.recv(into).map_err(failed("cannot receive"))
    }

    fn set_timeout(&mut self, timeout: Duration) -> Result<(), TransportError> {
        set_timeout(&self.socket, timeout)
    }

    fn client_port(&self) -> u16 {
        self.client_port
    }

    fn try_clone(&self) -> Result<Box<dyn Connection>, TransportError> {
        let socket = self.socket.try_clone().map_err(failed("cannot share a socket"))?;
        Ok(Box::new(Self { socket, client_port: self.client_port }))
    }

    fn readback(&self) -> Result<SocketReadback, TransportError> {
        readback(&self.socket)
    }
}
