//! TCP on the reactor: what every transport over TCP begins with.

use crate::error::failed;
use crate::settings::{SocketReadback, SocketSettings};
use crate::{TransportError, tcp};
use socket2::SockRef;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket, TcpStream};

/// A connection to `server`. Bounded by nothing but the kernel's patience: the caller bounds it.
pub(crate) async fn connect(server: SocketAddr, settings: &SocketSettings) -> Result<TcpStream, TransportError> {
    let socket = tcp::open(server)?;
    settings.apply_tcp(&socket)?;
    socket.set_nonblocking(true).map_err(failed("cannot connect"))?;
    TcpSocket::from_std_stream(socket.into()).connect(server).await.map_err(failed("cannot connect"))
}

/// A listening socket.
#[derive(Debug)]
pub(crate) struct Listening {
    listener: TcpListener,
    nodelay: Option<bool>,
}

impl Listening {
    pub(crate) fn new(address: SocketAddr, settings: &SocketSettings) -> Result<Self, TransportError> {
        let listener = tcp::listen(address, settings)?;
        listener.set_nonblocking(true).map_err(failed("cannot listen"))?;
        let listener = TcpListener::from_std(listener).map_err(failed("cannot listen"))?;
        Ok(Self { listener, nodelay: settings.nodelay })
    }

    pub(crate) fn address(&self) -> Result<SocketAddr, TransportError> {
        self.listener.local_addr().map_err(failed("cannot read the listener's address"))
    }

    /// The next connection, and its client. Nothing is lost when the call is dropped.
    pub(crate) async fn accept(&self) -> Result<(TcpStream, SocketAddr), TransportError> {
        loop {
            match self.listener.accept().await {
                Ok((stream, client)) => {
                    // Linux hands congestion control and buffer sizes down from the listener, but not TCP_NODELAY on
                    // every kernel.
                    if let Some(on) = self.nodelay {
                        stream.set_nodelay(on).map_err(failed("cannot set TCP_NODELAY"))?;
                    }
                    return Ok((stream, client));
                }
                // That client gave up while it waited; the next one may not have.
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

/// The socket's settings, as the kernel has them.
pub(crate) fn readback(stream: &TcpStream) -> Result<SocketReadback, TransportError> {
    tcp::readback(&SockRef::from(stream))
}

/// From now on dropping `stream` resets the connection.
pub(crate) fn reset_on_drop(stream: &TcpStream) {
    // Not being connected any more is what is wanted.
    let _ = SockRef::from(stream).set_linger(Some(Duration::ZERO));
}
