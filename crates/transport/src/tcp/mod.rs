//! TCP (RFC 9293), with messages of a size known to both ends.

pub(crate) mod low_water_mark;
pub(crate) mod nonblocking;
pub(crate) mod sockets;
pub(crate) mod totals;

use crate::error::failed;
use crate::tcp::sockets::{Watched, Written};
use crate::tcp::totals::TcpTotals;
use crate::{
    About, Call, Connecting, Connection, Features, Listener, Phases, Purpose, Receiver, Sender, Settings,
    SocketReadback, SocketSettings, Stream, Transport, TransportError,
};
use crosswind_host::receive_block;
use crosswind_ledger::Position;
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Connections waiting to be accepted at most.
const BACKLOG: i32 = 1024;

/// The transport `tcp`.
pub struct Tcp;

impl Transport for Tcp {
    fn about(&self) -> About {
        About { name: "tcp", summary: "A stream of bytes over the kernel's TCP.", features: Features::PLAIN }
    }

    fn listen<'a>(&'a self, address: SocketAddr, settings: &'a Settings) -> Call<'a, Box<dyn Listener>> {
        Call::new(async move {
            let server = TcpServer { listener: listen(address, &settings.socket)?, settings: settings.clone() };
            Ok(Box::new(server) as Box<dyn Listener>)
        })
    }

    fn connect<'a>(&'a self, server: SocketAddr, settings: &'a Settings, timeout: Duration) -> Connecting<'a> {
        Call::new(async move {
            let before = Instant::now();
            let stream = connect(server, &settings.socket, timeout)?;
            let phases = Phases { transport: Some(before.elapsed()), ..Phases::default() };
            let client_port = stream.local_addr().map_err(failed("cannot read the own address"))?.port();
            let totals = settings.tcp_totals.clone();
            let watched = Watched::start(settings.tcp_sockets.as_ref(), &SockRef::from(&stream), "client", client_port);
            let stream = Arc::new(stream);
            Ok(Box::new(TcpConnection { watched, stream, client_port, timeout, phases, accepted: false, totals })
                as Box<dyn Connection>)
        })
    }
}

/// A listening socket, for every transport over TCP.
pub(crate) fn listen(address: SocketAddr, settings: &SocketSettings) -> Result<TcpListener, TransportError> {
    let socket = open(address)?;
    settings.apply_tcp(&socket)?;
    socket.set_reuse_address(true).map_err(failed("cannot listen"))?;
    socket.bind(&address.into()).map_err(failed("cannot bind"))?;
    socket.listen(BACKLOG).map_err(failed("cannot listen"))?;
    Ok(socket.into())
}

fn connect(server: SocketAddr, settings: &SocketSettings, timeout: Duration) -> Result<TcpStream, TransportError> {
    let socket = open(server)?;
    settings.apply_tcp(&socket)?;
    // A blocking connect is bounded by the send timeout (socket(7)), and saves a non-blocking one's calls.
    socket.set_write_timeout(Some(timeout)).map_err(failed("cannot set a timeout"))?;
    socket.set_read_timeout(Some(timeout)).map_err(failed("cannot set a timeout"))?;
    // After a signal the kernel is still connecting, and a second call waits for that.
    let connected = loop {
        match socket.connect(&server.into()) {
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            result => break result,
        }
    };
    connected.map_err(|cause| {
        let expired = cause.raw_os_error() == Some(EINPROGRESS);
        cannot_connect(if expired { ErrorKind::TimedOut.into() } else { cause })
    })?;
    Ok(socket.into())
}

/// Nobody answered in time, or another reason.
pub(crate) fn cannot_connect(cause: std::io::Error) -> TransportError {
    let expired = cause.kind() == ErrorKind::TimedOut;
    TransportError::new("cannot connect", &if expired { ErrorKind::TimedOut.into() } else { cause })
}

/// The socket's settings, as the kernel has them.
pub(crate) fn readback(socket: &SockRef<'_>) -> Result<SocketReadback, TransportError> {
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

/// connect(2)'s error after the send timeout.
const EINPROGRESS: i32 = 115;

pub(crate) fn open(address: SocketAddr) -> Result<Socket, TransportError> {
    Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP)).map_err(failed("cannot open a socket"))
}

struct TcpServer {
    listener: TcpListener,
    settings: Settings,
}

impl Listener for TcpServer {
    fn address(&self) -> Result<SocketAddr, TransportError> {
        self.listener.local_addr().map_err(failed("cannot read the listener's address"))
    }

    fn accept(&self, timeout: Duration) -> Call<'_, Box<dyn Connection>> {
        Call::done(self.accept_now(timeout))
    }

    fn wake(&self) {
        // Should it fail, every wait has a deadline.
        let _ = SockRef::from(&self.listener).shutdown(Shutdown::Both);
    }

    fn try_clone(&self) -> Result<Box<dyn Listener>, TransportError> {
        let listener = self.listener.try_clone().map_err(failed("cannot share a listener"))?;
        Ok(Box::new(Self { listener, settings: self.settings.clone() }))
    }
}

impl TcpServer {
    fn accept_now(&self, timeout: Duration) -> Result<Box<dyn Connection>, TransportError> {
        SockRef::from(&self.listener).set_read_timeout(Some(timeout)).map_err(failed("cannot set a timeout"))?;
        let (stream, peer) = self.listener.accept().map_err(failed("cannot accept"))?;
        if !self.settings.answers(peer.ip()) {
            return Err(TransportError::new("cannot accept", &ErrorKind::TimedOut.into()));
        }
        // Linux hands congestion control and buffer sizes down from the listener, but not TCP_NODELAY on every kernel.
        if let Some(on) = self.settings.socket.nodelay {
            stream.set_nodelay(on).map_err(failed("cannot set TCP_NODELAY"))?;
        }
        set_timeout(&stream, timeout)?;
        let phases = Phases::default();
        let watched =
            Watched::start(self.settings.tcp_sockets.as_ref(), &SockRef::from(&stream), "server", peer.port());
        Ok(Box::new(TcpConnection {
            watched,
            stream: Arc::new(stream),
            client_port: peer.port(),
            timeout,
            phases,
            accepted: false,
            totals: self.settings.tcp_totals.clone(),
        }))
    }
}

fn set_timeout(stream: &TcpStream, timeout: Duration) -> Result<(), TransportError> {
    stream.set_read_timeout(Some(timeout)).map_err(failed("cannot set a timeout"))?;
    stream.set_write_timeout(Some(timeout)).map_err(failed("cannot set a timeout"))
}

struct TcpConnection {
    watched: Option<Arc<Watched>>,
    stream: Arc<TcpStream>,
    client_port: u16,
    timeout: Duration,
    phases: Phases,
    accepted: bool,
    totals: Option<Arc<TcpTotals>>,
}

impl Drop for TcpConnection {
    fn drop(&mut self) {
        self.watched = None;
        if let Some(totals) = &self.totals {
            totals.add(&SockRef::from(&*self.stream));
        }
    }
}

impl TcpConnection {
    fn stream(&self) -> Stream {
        let receiver = TcpReceiver { stream: Arc::clone(&self.stream), timeout: self.timeout };
        let written = Written::new(self.watched.clone());
        Stream::new(TcpSender { stream: Arc::clone(&self.stream), written }, receiver)
    }
}

/// Drops a connection at once, and ends every wait for it.
fn reset(stream: &TcpStream) {
    let socket = SockRef::from(stream);
    // Failure means the connection is over, as wanted.
    let _ = socket.set_linger(Some(Duration::ZERO));
    let _ = socket.shutdown(Shutdown::Both);
}

impl Connection for TcpConnection {
    fn open(&self, _purpose: Purpose) -> Call<'_, Stream> {
        Call::done(Ok(self.stream()))
    }

    fn accept(&mut self) -> Call<'_, Stream> {
        let next =
            if self.accepted { Err(TransportError::closed("cannot accept a stream")) } else { Ok(self.stream()) };
        self.accepted = true;
        Call::done(next)
    }

    fn phases(&self) -> Phases {
        self.phases
    }

    fn abort(&mut self) {
        reset(&self.stream);
    }

    fn interrupter(&self) -> Option<Box<dyn Fn() + Send>> {
        let stream = Arc::downgrade(&self.stream);
        Some(Box::new(move || {
            if let Some(stream) = stream.upgrade() {
                reset(&stream);
            }
        }))
    }

    fn client_port(&self) -> u16 {
        self.client_port
    }

    fn readback(&self) -> Result<SocketReadback, TransportError> {
        readback(&SockRef::from(&*self.stream))
    }
}

struct TcpSender {
    stream: Arc<TcpStream>,
    written: Written,
}

impl TcpSender {
    fn write(&self, bytes: &[u8]) -> Result<(), TransportError> {
        (&*self.stream).write_all(bytes).map_err(failed("cannot send"))
    }
}

impl Sender for TcpSender {
    fn send<'a>(&'a mut self, message: &'a [u8]) -> Call<'a, ()> {
        let sent = self.write(message);
        self.written.note_message();
        Call::done(sent)
    }

    fn send_some<'a>(&'a mut self, part: &'a [u8]) -> Call<'a, ()> {
        let sent = self.write(part);
        self.written.note_part();
        Call::done(sent)
    }

    fn position(&self) -> Option<Position> {
        self.written.position()
    }

    fn finish(&mut self) -> Call<'_, ()> {
        Call::done(self.stream.shutdown(Shutdown::Write).map_err(failed("cannot finish sending")))
    }
}

struct TcpReceiver {
    stream: Arc<TcpStream>,
    timeout: Duration,
}

impl TcpReceiver {
    fn receive_now(&self, into: &mut [u8]) -> Result<usize, TransportError> {
        let started = Instant::now();
        let mut filled = 0;
        while filled < into.len() {
            // The socket's timeout is for each piece, this one for the message.
            if filled > 0 && started.elapsed() > self.timeout {
                return Err(TransportError::new("cannot receive", &ErrorKind::TimedOut.into()));
            }
            match self.receive_some_now(&mut into[filled..])? {
                0 => return Err(TransportError::closed("cannot receive")),
                n => filled += n,
            }
        }
        Ok(filled)
    }

    fn receive_some_now(&self, into: &mut [u8]) -> Result<usize, TransportError> {
        repeat_if_interrupted(|| (&*self.stream).read(into))
    }
}

fn repeat_if_interrupted(mut call: impl FnMut() -> std::io::Result<usize>) -> Result<usize, TransportError> {
    loop {
        match call() {
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            result => return result.map_err(failed("cannot receive")),
        }
    }
}

impl Receiver for TcpReceiver {
    fn receive<'a>(&'a mut self, into: &'a mut [u8]) -> Call<'a, usize> {
        Call::done(self.receive_now(into))
    }

    fn receive_some<'a>(&'a mut self, into: &'a mut [u8]) -> Call<'a, usize> {
        Call::done(self.receive_some_now(into))
    }

    fn receive_block<'a>(&'a mut self, into: &'a mut [u8], _to_come: u64) -> Call<'a, usize> {
        Call::done(repeat_if_interrupted(|| receive_block(self.stream.as_fd(), into)))
    }

    fn set_timeout(&mut self, timeout: Duration) -> Result<(), TransportError> {
        // A timeout of zero would mean none.
        self.timeout = timeout.max(Duration::from_micros(1));
        set_timeout(&self.stream, self.timeout)
    }
}
