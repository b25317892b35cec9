//! UDP (RFC 768), each message a datagram. At the server one socket serves every client: its "connection" answers the sender of
//! the last message.

use crate::error::failed;
use crate::settings::is_answered;
use crate::{
    About, Call, Carrier, Connecting, Connection, Features, Listener, Purpose, Receiver, Sender, Settings,
    SocketReadback, SocketSettings, Stream, Transport, TransportError,
};
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The transport `udp`.
pub struct Udp;

impl Transport for Udp {
    fn about(&self) -> About {
        let features = Features {
            carrier: Carrier::Udp,
            setup_round_trips: 0,
            datagram: true,
            shares_connection: true,
            ..Features::PLAIN
        };
        About { name: "udp", summary: "Datagrams over the kernel's UDP.", features }
    }

    fn largest_message(&self, ipv6: bool, _mtu: u32) -> Option<usize> {
        // Both length fields have 16 bits. IPv4's counts its own header of 20 and UDP's of 8 (RFC 791), IPv6's payload
        // length UDP's alone (RFC 8200).
        Some(if ipv6 { 65_527 } else { 65_507 })
    }

    fn listen<'a>(&'a self, address: SocketAddr, settings: &'a Settings) -> Call<'a, Box<dyn Listener>> {
        Call::new(async move {
            let socket = open(address, &settings.socket)?;
            socket.bind(&address.into()).map_err(failed("cannot bind"))?;
            let only_from = settings.only_from;
            Ok(Box::new(UdpServer { socket: Arc::new(socket.into()), only_from }) as Box<dyn Listener>)
        })
    }

    fn connect<'a>(&'a self, server: SocketAddr, settings: &'a Settings, timeout: Duration) -> Connecting<'a> {
        Call::new(async move {
            let socket = open(server, &settings.socket)?;
            socket.connect(&server.into()).map_err(failed("cannot connect"))?;
            let socket = UdpSocket::from(socket);
            let own = socket.local_addr().map_err(failed("cannot read the own address"))?;
            set_timeout(&socket, timeout)?;
            let socket = Arc::new(socket);
            Ok(Box::new(UdpConnection { socket, own, accepted: true, only_from: None }) as Box<dyn Connection>)
        })
    }
}

pub(crate) fn open(address: SocketAddr, settings: &SocketSettings) -> Result<Socket, TransportError> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))
        .map_err(failed("cannot open a socket"))?;
    settings.apply(&socket)?;
    Ok(socket)
}

/// Repeats `call` after a signal: the kernel does not restart calls on a socket with a timeout (signal(7)).
fn uninterrupted<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

/// The socket's settings, as the kernel has them.
pub(crate) fn readback(socket: &SockRef<'_>) -> Result<SocketReadback, TransportError> {
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
    socket: Arc<UdpSocket>,
    only_from: Option<IpAddr>,
}

impl Listener for UdpServer {
    fn address(&self) -> Result<SocketAddr, TransportError> {
        self.socket.local_addr().map_err(failed("cannot read the listener's address"))
    }

    fn accept(&self, timeout: Duration) -> Call<'_, Box<dyn Connection>> {
        let accepted = set_timeout(&self.socket, timeout).and_then(|()| {
            let (socket, only_from) = (Arc::clone(&self.socket), self.only_from);
            let connection = UdpConnection { socket, own: self.address()?, accepted: false, only_from };
            Ok(Box::new(connection) as Box<dyn Connection>)
        });
        Call::done(accepted)
    }

    fn wake(&self) {
        // A datagram to itself, by way of the host's loopback, ends one wait. Should it fail, the wait has a deadline.
        if let Ok(own) = self.socket.local_addr() {
            let _ = self.socket.send_to(&[], own);
        }
    }

    fn try_clone(&self) -> Result<Box<dyn Listener>, TransportError> {
        Ok(Box::new(Self { socket: Arc::clone(&self.socket), only_from: self.only_from }))
    }
}

/// The client's end, or the server's for all clients.
struct UdpConnection {
    socket: Arc<UdpSocket>,
    own: SocketAddr,
    accepted: bool,
    only_from: Option<IpAddr>,
}

impl Connection for UdpConnection {
    fn open(&self, _purpose: Purpose) -> Call<'_, Stream> {
        let stream = Stream::new(
            UdpClientSender { socket: Arc::clone(&self.socket) },
            UdpClientReceiver { socket: Arc::clone(&self.socket) },
        );
        Call::done(Ok(stream))
    }

    fn accept(&mut self) -> Call<'_, Stream> {
        if std::mem::replace(&mut self.accepted, true) {
            return Call::done(Err(TransportError::closed("cannot accept a stream")));
        }
        let last = Arc::new(Mutex::new(None));
        let stream = Stream::new(
            UdpServerSender { socket: Arc::clone(&self.socket), to: Arc::clone(&last) },
            UdpServerReceiver { socket: Arc::clone(&self.socket), own: self.own, last, only_from: self.only_from },
        );
        Call::done(Ok(stream))
    }

    fn client_port(&self) -> u16 {
        self.own.port()
    }

    fn readback(&self) -> Result<SocketReadback, TransportError> {
        readback(&SockRef::from(&*self.socket))
    }
}

/// The last message's sender, for the answer.
type LastSender = Arc<Mutex<Option<SocketAddr>>>;

struct UdpServerSender {
    socket: Arc<UdpSocket>,
    to: LastSender,
}

impl Sender for UdpServerSender {
    fn send<'a>(&'a mut self, message: &'a [u8]) -> Call<'a, ()> {
        let sent = match self.to.lock().ok().and_then(|to| *to) {
            Some(to) => uninterrupted(|| self.socket.send_to(message, to)).map(|_| ()).map_err(failed("cannot send")),
            None => Err(TransportError::closed("cannot answer before a message was received")),
        };
        Call::done(sent)
    }
}

struct UdpServerReceiver {
    socket: Arc<UdpSocket>,
    own: SocketAddr,
    last: LastSender,
    only_from: Option<IpAddr>,
}

impl UdpServerReceiver {
    fn receive_now(&self, into: &mut [u8]) -> Result<usize, TransportError> {
        let (n, from) = uninterrupted(|| self.socket.recv_from(into)).map_err(failed("cannot receive"))?;
        if from == self.own {
            return Err(TransportError::closed("cannot receive")); // see `wake`
        }
        if !is_answered(self.only_from, from.ip()) {
            return Err(TransportError::new("cannot receive", &ErrorKind::TimedOut.into()));
        }
        if let Ok(mut last) = self.last.lock() {
            *last = Some(from);
        }
        Ok(n)
    }
}

impl Receiver for UdpServerReceiver {
    fn receive<'a>(&'a mut self, into: &'a mut [u8]) -> Call<'a, usize> {
        Call::done(self.receive_now(into))
    }

    fn set_timeout(&mut self, timeout: Duration) -> Result<(), TransportError> {
        set_timeout(&self.socket, timeout)
    }

    fn client_port(&self) -> Option<u16> {
        self.last.lock().ok().and_then(|last| last.map(|peer| peer.port()))
    }
}

struct UdpClientSender {
    socket: Arc<UdpSocket>,
}

impl Sender for UdpClientSender {
    fn send<'a>(&'a mut self, message: &'a [u8]) -> Call<'a, ()> {
        Call::done(uninterrupted(|| self.socket.send(message)).map(|_| ()).map_err(failed("cannot send")))
    }
}

struct UdpClientReceiver {
    socket: Arc<UdpSocket>,
}

impl Receiver for UdpClientReceiver {
    fn receive<'a>(&'a mut self, into: &'a mut [u8]) -> Call<'a, usize> {
        Call::done(uninterrupted(|| self.socket.recv(into)).map_err(failed("cannot receive")))
    }

    fn set_timeout(&mut self, timeout: Duration) -> Result<(), TransportError> {
        set_timeout(&self.socket, timeout)
    }
}
