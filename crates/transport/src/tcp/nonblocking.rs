//! TCP on the reactor: the base for transports over TCP.

use crate::error::failed;
use crate::settings::{SocketReadback, SocketSettings};
use crate::tcp::sockets::{Watched, Written};
use crate::tcp::totals::TcpTotals;
use crate::{Settings, TransportError, tcp};
use socket2::{SockRef, Socket};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket, TcpStream};

/// A connection to `server`. The caller sets a time limit; otherwise the kernel's applies.
pub(crate) async fn connect(server: SocketAddr, settings: &SocketSettings) -> Result<TcpStream, TransportError> {
    let socket = tcp::open(server)?;
    settings.apply_tcp(&socket)?;
    socket.set_nonblocking(true).map_err(failed("cannot connect"))?;
    TcpSocket::from_std_stream(socket.into()).connect(server).await.map_err(tcp::cannot_connect)
}

#[derive(Debug)]
pub(crate) struct Listening {
    listener: TcpListener,
    settings: Settings,
}

impl Listening {
    pub(crate) fn new(address: SocketAddr, settings: &Settings) -> Result<Self, TransportError> {
        let listener = tcp::listen(address, &settings.socket)?;
        listener.set_nonblocking(true).map_err(failed("cannot listen"))?;
        let listener = TcpListener::from_std(listener).map_err(failed("cannot listen"))?;
        Ok(Self { listener, settings: settings.clone() })
    }

    pub(crate) fn address(&self) -> Result<SocketAddr, TransportError> {
        self.listener.local_addr().map_err(failed("cannot read the listener's address"))
    }

    /// A second handle on an accepted connection's socket.
    pub(crate) fn handle(&self, stream: &TcpStream) -> Result<SocketHandle, TransportError> {
        let client_port = stream.peer_addr().map_err(failed("cannot read the client's address"))?.port();
        SocketHandle::of(stream, &self.settings, "server", client_port)
    }

    /// The next connection, and its client. No connection is lost when the call is dropped.
    pub(crate) async fn accept(&self) -> Result<(TcpStream, SocketAddr), TransportError> {
        loop {
            match self.listener.accept().await {
                Ok((_, client)) if !self.settings.answers(client.ip()) => {}
                Ok((stream, client)) => {
                    // Linux hands congestion control and buffer sizes down from the listener, but not always
                    // TCP_NODELAY.
                    if let Some(on) = self.settings.socket.nodelay {
                        stream.set_nodelay(on).map_err(failed("cannot set TCP_NODELAY"))?;
                    }
                    return Ok((stream, client));
                }
                // That client gave up while waiting; the next one may not have.
                Err(e) if e.kind() == ErrorKind::ConnectionAborted => {}
                Err(e) => return Err(failed("cannot accept")(e)),
            }
        }
    }
}

/// The client's port, at the client.
pub(crate) fn own_port(stream: &TcpStream) -> Result<u16, TransportError> {
    Ok(stream.local_addr().map_err(failed("cannot read the own address"))?.port())
}

/// A second handle on a connection's socket; a library owns the first.
#[derive(Debug)]
pub(crate) struct SocketHandle {
    socket: Option<Arc<Socket>>,
    watched: Option<Arc<Watched>>,
    totals: Option<Arc<TcpTotals>>,
}

impl SocketHandle {
    /// For a client's connection.
    pub(crate) fn new(stream: &TcpStream, settings: &Settings) -> Result<Self, TransportError> {
        Self::of(stream, settings, "client", own_port(stream)?)
    }

    fn of(
        stream: &TcpStream,
        settings: &Settings,
        host: &'static str,
        client_port: u16,
    ) -> Result<Self, TransportError> {
        let socket = SockRef::from(stream).try_clone().map_err(failed("cannot share a socket"))?;
        let watched = Watched::start(settings.tcp_sockets.as_ref(), &SockRef::from(stream), host, client_port);
        Ok(Self { socket: Some(Arc::new(socket)), watched, totals: settings.tcp_totals.clone() })
    }

    /// Messages' positions among the socket's written bytes.
    pub(crate) fn written(&self) -> Written {
        Written::new(self.watched.clone())
    }

    /// The socket, as long as the connection has it: holding this keeps no connection open.
    pub(crate) fn socket(&self) -> Weak<Socket> {
        self.socket.as_ref().map(Arc::downgrade).unwrap_or_default()
    }

    /// The socket's settings, as the kernel has them.
    pub(crate) fn readback(&self) -> Result<SocketReadback, TransportError> {
        match &self.socket {
            Some(socket) => tcp::readback(&SockRef::from(&**socket)),
            None => Err(TransportError::closed("cannot read the socket's settings back")),
        }
    }

    /// Gives this handle up, and has the connection reset when the other one is dropped.
    pub(crate) fn reset_on_close(&mut self) {
        self.add_to_totals();
        self.watched = None;
        if let Some(socket) = self.socket.take() {
            // Failure means the connection is over, as wanted.
            let _ = socket.set_linger(Some(Duration::ZERO));
        }
    }

    fn add_to_totals(&self) {
        if let (Some(totals), Some(socket)) = (&self.totals, &self.socket) {
            totals.add(&SockRef::from(&**socket));
        }
    }
}

impl Drop for SocketHandle {
    fn drop(&mut self) {
        self.add_to_totals();
    }
}
