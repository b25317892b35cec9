//! A TLS stream with data in its first flight (RFC 8446, section 2.3), at either end.

use super::early::EarlyServerStream;
use super::handshake;
use crate::TransportError;
use crate::security::Resumption;
use crate::settings::Settings;
use rustls::{HandshakeKind, ServerConfig};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::{TlsAcceptor, client, server};

pub(super) enum TlsStream {
    Client(Box<ClientStream>),
    Server(Box<server::TlsStream<TcpStream>>),
    EarlyServer(Box<EarlyServerStream>),
}

/// Accepts clients. All connections of a server share it, because it holds their sessions.
pub(super) enum Acceptor {
    WithoutEarlyData(TlsAcceptor),
    WithEarlyData(Arc<ServerConfig>),
}

impl Acceptor {
    pub(super) fn new(settings: &Settings, protocols: &[&[u8]]) -> Result<Self, TransportError> {
        if settings.resumption != Resumption::EarlyData {
            return Ok(Self::WithoutEarlyData(handshake::acceptor(settings, protocols)?));
        }
        let mut config = settings.security()?.server(protocols, settings.resumption, false)?;
        // The answer to early data need not wait for the client to finish.
        config.send_half_rtt_data = true;
        Ok(Self::WithEarlyData(Arc::new(config)))
    }

    /// The server's end, once the client has finished its handshake or has sent early data.
    pub(super) async fn accept(&self, tcp: TcpStream) -> Result<TlsStream, TransportError> {
        match self {
            Self::WithoutEarlyData(acceptor) => {
                Ok(TlsStream::Server(Box::new(handshake::server(tcp, acceptor).await?)))
            }
            Self::WithEarlyData(config) => {
                let stream = EarlyServerStream::accept(tcp, config).await;
                Ok(TlsStream::EarlyServer(Box::new(stream.map_err(handshake::failed("cannot agree on TLS"))?)))
            }
        }
    }
}

impl TlsStream {
    pub(super) fn client(stream: client::TlsStream<TcpStream>, resumption: Resumption) -> Self {
        let wants_ticket = resumption != Resumption::None;
        Self::Client(Box::new(ClientStream { stream, wants_ticket, handshake_left_to_sender: true, sending: false }))
    }

    /// Whether a client's session was resumed, and whether its first flight carries data; before the server's answer:
    /// whether the client asks for it.
    pub(super) fn resumption(&mut self) -> (bool, bool) {
        let Self::Client(client) = self else { return (false, false) };
        let session = client.stream.get_mut().1;
        if session.is_handshaking() {
            let asked = session.early_data().is_some();
            return (asked, asked);
        }
        (session.handshake_kind() == Some(HandshakeKind::Resumed), session.is_early_data_accepted())
    }

    /// Signals the end, in TLS and in TCP. A client with resumption waits for the server's ticket.
    pub(super) fn poll_close(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut *self).poll_shutdown(context))?;
        let Self::Client(client) = self else { return Poll::Ready(Ok(())) };
        let mut unread = [0; 1024];
        while client.wants_ticket && client.stream.get_ref().1.tls13_tickets_received() == 0 {
            let mut into = ReadBuf::new(&mut unread);
            ready!(Pin::new(&mut client.stream).poll_read(context, &mut into))?;
            if into.filled().is_empty() {
                break;
            }
        }
        Poll::Ready(Ok(()))
    }
}

pub(super) struct ClientStream {
    stream: client::TlsStream<TcpStream>,
    wants_ticket: bool,
    /// Receiving has not yet let sending go first.
    handshake_left_to_sender: bool,
    /// A sending task waits for the handshake.
    sending: bool,
}

impl ClientStream {
    /// With early data the handshake begins when something is sent. A client that only receives begins it here, but
    /// only after a task about to send had the opportunity: its data belongs in the first flight.
    fn poll_read(&mut self, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(context, into);
        if read.is_ready() || !self.stream.get_ref().1.is_handshaking() || self.sending {
            return read;
        }
        if std::mem::take(&mut self.handshake_left_to_sender) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        ready!(Pin::new(&mut self.stream).poll_flush(context))?;
        Pin::new(&mut self.stream).poll_read(context, into)
    }

    fn note_sending<T>(&mut self, result: Poll<T>) -> Poll<T> {
        self.sending = result.is_pending() && self.stream.get_ref().1.is_handshaking();
        result
    }
}

impl AsyncRead for TlsStream {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Client(client) => client.poll_read(context, into),
            Self::Server(server) => Pin::new(server).poll_read(context, into),
            Self::EarlyServer(server) => server.poll_read(context, into),
        }
    }
}

impl AsyncWrite for TlsStream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        match &mut *self {
            Self::Client(client) => {
                let result = Pin::new(&mut client.stream).poll_write(context, data);
                client.note_sending(result)
            }
            Self::Server(server) => Pin::new(server).poll_write(context, data),
            Self::EarlyServer(server) => server.poll_write(context, data),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Client(client) => {
                let result = Pin::new(&mut client.stream).poll_flush(context);
                client.note_sending(result)
            }
            Self::Server(server) => Pin::new(server).poll_flush(context),
            Self::EarlyServer(server) => server.poll_flush(context),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Client(client) => {
                let result = Pin::new(&mut client.stream).poll_shutdown(context);
                client.note_sending(result)
            }
            Self::Server(server) => Pin::new(server).poll_shutdown(context),
            Self::EarlyServer(server) => server.poll_shutdown(context),
        }
    }
}
