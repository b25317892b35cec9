//! A stream of TLS whose first flight may carry data (RFC 8446, section 2.3), at either end.
//!
//! tokio-rustls lets a client send early data, but its server neither reads that nor answers before the client's handshake is
//! complete, a round trip later. A server that takes early data therefore drives rustls itself.

use crate::TransportError;
use crate::security::Resumption;
use crate::settings::Settings;
use crate::tls::handshake;
use rustls::{HandshakeKind, ServerConfig, ServerConnection};
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::{TlsAcceptor, client, server};

/// Either end's stream.
pub(crate) enum TlsStream {
    Client(Box<ClientStream>),
    Server(Box<server::TlsStream<TcpStream>>),
    EarlyServer(Box<EarlyServerStream>),
}

/// Accepts clients: one for all connections of a server, for it holds their sessions.
pub(crate) enum Acceptor {
    Usual(TlsAcceptor),
    Early(Arc<ServerConfig>),
}

impl Acceptor {
    pub(crate) fn new(settings: &Settings, protocols: &[&[u8]]) -> Result<Self, TransportError> {
        if settings.resumption != Resumption::EarlyData {
            return Ok(Self::Usual(handshake::acceptor(settings, protocols)?));
        }
        let mut config = settings.security()?.server(protocols, settings.resumption, false)?;
        // The answer to early data need not wait for the client to finish.
        config.send_half_rtt_data = true;
        Ok(Self::Early(Arc::new(config)))
    }

    /// The server's end, once the client has finished its handshake or has sent early data.
    pub(crate) async fn accept(&self, stream: TcpStream) -> Result<TlsStream, TransportError> {
        match self {
            Self::Usual(acceptor) => Ok(TlsStream::Server(Box::new(handshake::server(stream, acceptor).await?))),
            Self::Early(config) => {
                let failed = handshake::failed("cannot agree on TLS");
                let session = ServerConnection::new(Arc::clone(config)).map_err(|e| failed(io::Error::other(e)))?;
                let mut stream = EarlyServerStream { tcp: stream, session, sending: false };
                std::future::poll_fn(|context| stream.poll_handshake(context)).await.map_err(failed)?;
                Ok(TlsStream::EarlyServer(Box::new(stream)))
            }
        }
    }
}

impl TlsStream {
    pub(crate) fn client(stream: client::TlsStream<TcpStream>, resumption: Resumption) -> Self {
        let wants_ticket = resumption != Resumption::None;
        Self::Client(Box::new(ClientStream { stream, wants_ticket, patient: true, sending: None }))
    }

    pub(crate) fn tcp(&self) -> &TcpStream {
        match self {
            Self::Client(client) => client.stream.get_ref().0,
            Self::Server(server) => server.get_ref().0,
            Self::EarlyServer(server) => &server.tcp,
        }
    }

    /// Whether a client's session was resumed, and whether its first flight carries data; until the server has answered:
    /// whether the client asks for that.
    pub(crate) fn resumption(&mut self) -> (bool, bool) {
        let Self::Client(client) = self else { return (false, false) };
        let session = client.stream.get_mut().1;
        if session.is_handshaking() {
            let asked = session.early_data().is_some();
            return (asked, asked);
        }
        (session.handshake_kind() == Some(HandshakeKind::Resumed), session.is_early_data_accepted())
    }

    /// Says that this is the end, in TLS and in TCP. A client that wants to resume its session waits for the server's ticket.
    pub(crate) fn poll_close(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut *self).poll_shutdown(context))?;
        let Self::Client(client) = self else { return Poll::Ready(Ok(())) };
        let mut left_over = [0; 1024];
        while client.wants_ticket && client.stream.get_ref().1.tls13_tickets_received() == 0 {
            let mut into = ReadBuf::new(&mut left_over);
            ready!(Pin::new(&mut client.stream).poll_read(context, &mut into))?;
            if into.filled().is_empty() {
                break;
            }
        }
        Poll::Ready(Ok(()))
    }
}

/// A client's stream.
pub(crate) struct ClientStream {
    stream: client::TlsStream<TcpStream>,
    wants_ticket: bool,
    /// Receiving has not yet let sending go first.
    patient: bool,
    /// Sending waits for the handshake.
    sending: Option<Waker>,
}

impl ClientStream {
    fn poll_read(&mut self, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(context, into);
        if read.is_ready() || !self.stream.get_ref().1.is_handshaking() || self.sending.is_some() {
            return read;
        }
        // The first flight waits for early data. Who only receives has none to send, but who is about to send goes first.
        if std::mem::take(&mut self.patient) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        ready!(Pin::new(&mut self.stream).poll_flush(context))?;
        Pin::new(&mut self.stream).poll_read(context, into)
    }

    /// Remembers that sending waits for the handshake, which receiving then leaves alone.
    fn sent<T>(&mut self, result: Poll<T>, context: &Context<'_>) -> Poll<T> {
        let waits = result.is_pending() && self.stream.get_ref().1.is_handshaking();
        self.sending = waits.then(|| context.waker().clone());
        result
    }
}

/// A server's stream that reads early data, and answers it at once.
pub(crate) struct EarlyServerStream {
    tcp: TcpStream,
    session: ServerConnection,
    /// Sending waits for the kernel, and will send everything; receiving leaves it alone.
    sending: bool,
}

impl EarlyServerStream {
    fn poll_handshake(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.session.is_handshaking() && self.session.early_data().is_none() {
            if ready!(self.poll_packets(context))? == 0 {
                return Poll::Ready(Err(ErrorKind::UnexpectedEof.into()));
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Reads from the network, and answers what is TLS's own to answer.
    fn poll_packets(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let read = match self.session.read_tls(&mut Blocking { tcp: &mut self.tcp, context }) {
            Err(e) if e.kind() == ErrorKind::WouldBlock => return Poll::Pending,
            read => read?,
        };
        let processed = self.session.process_new_packets();
        if !self.sending
            && let Poll::Ready(Err(e)) = self.poll_write_out(context)
            && processed.is_ok()
        {
            return Poll::Ready(Err(e));
        }
        processed.map_err(|e| io::Error::new(ErrorKind::InvalidData, e))?;
        Poll::Ready(Ok(read))
    }

    fn poll_write_out(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.session.wants_write() {
            match self.session.write_tls(&mut Blocking { tcp: &mut self.tcp, context }) {
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Poll::Pending,
                Ok(0) => return Poll::Ready(Err(ErrorKind::WriteZero.into())),
                written => written?,
            };
        }
        Poll::Ready(Ok(()))
    }

    fn poll_read(&mut self, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        loop {
            let room = into.initialize_unfilled();
            let early = match self.session.early_data() {
                Some(mut early) => early.read(room)?,
                None => 0,
            };
            let read = if early > 0 { Ok(early) } else { self.session.reader().read(room) };
            match read {
                Err(e) if e.kind() == ErrorKind::WouldBlock => {}
                read => {
                    into.advance(read?);
                    return Poll::Ready(Ok(()));
                }
            }
            ready!(self.poll_packets(context))?;
        }
    }

    fn poll_write(&mut self, context: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        loop {
            let taken = self.session.writer().write(data)?;
            let out = self.poll_write_out(context)?;
            self.sending = out.is_pending();
            if taken > 0 || data.is_empty() {
                return Poll::Ready(Ok(taken));
            }
            ready!(out);
        }
    }

    fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let out = self.poll_write_out(context);
        self.sending = out.is_pending();
        out
    }
}

/// rustls reads and writes by calls that would block.
struct Blocking<'a, 'b> {
    tcp: &'a mut TcpStream,
    context: &'a mut Context<'b>,
}

fn blocking<T>(polled: Poll<io::Result<T>>) -> io::Result<T> {
    match polled {
        Poll::Ready(result) => result,
        Poll::Pending => Err(ErrorKind::WouldBlock.into()),
    }
}

impl Read for Blocking<'_, '_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut into = ReadBuf::new(into);
        blocking(Pin::new(&mut *self.tcp).poll_read(self.context, &mut into))?;
        Ok(into.filled().len())
    }
}

impl Write for Blocking<'_, '_> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        blocking(Pin::new(&mut *self.tcp).poll_write(self.context, data))
    }

    fn write_vectored(&mut self, data: &[IoSlice<'_>]) -> io::Result<usize> {
        blocking(Pin::new(&mut *self.tcp).poll_write_vectored(self.context, data))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
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
                client.sent(result, context)
            }
            Self::Server(server) => Pin::new(server).poll_write(context, data),
            Self::EarlyServer(server) => server.poll_write(context, data),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Client(client) => {
                let result = Pin::new(&mut client.stream).poll_flush(context);
                client.sent(result, context)
            }
            Self::Server(server) => Pin::new(server).poll_flush(context),
            Self::EarlyServer(server) => server.poll_flush(context),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Client(client) => {
                let result = Pin::new(&mut client.stream).poll_shutdown(context);
                client.sent(result, context)
            }
            Self::Server(server) => Pin::new(server).poll_shutdown(context),
            Self::EarlyServer(server) => {
                server.session.send_close_notify();
                ready!(server.poll_flush(context))?;
                Pin::new(&mut server.tcp).poll_shutdown(context)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::security::Security;
    use rustls::ClientConnection;
    use std::future::poll_fn;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    const PROTOCOLS: &[&[u8]] = &[b"test"];

    async fn pair(listener: &TcpListener) -> (TcpStream, TcpStream) {
        let client = TcpStream::connect(listener.local_addr().unwrap());
        let (client, accepted) = tokio::join!(client, listener.accept());
        (client.unwrap(), accepted.unwrap().0)
    }

    /// The client says nothing after its first flight, not even that it has finished its handshake.
    #[tokio::test]
    async fn early_data_is_answered_before_the_client_has_finished() {
        let security = Some(Arc::new(Security::new().unwrap()));
        let settings = Settings { security, resumption: Resumption::EarlyData, ..Settings::default() };
        let acceptor = Acceptor::new(&settings, PROTOCOLS).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();

        let (client, server) = pair(&listener).await;
        let (client, server) =
            tokio::join!(handshake::client_early(client, &settings, PROTOCOLS), acceptor.accept(server));
        let (mut client, mut server) = (client.unwrap().stream, server.unwrap());
        server.write_all(b"ticket").await.unwrap();
        client.read_exact(&mut [0; 6]).await.unwrap();

        let (mut tcp, server) = pair(&listener).await;
        let security = settings.security().unwrap();
        let config = security.client(PROTOCOLS, Resumption::EarlyData).unwrap();
        let mut client = ClientConnection::new(config, security.server_name().clone()).unwrap();
        client.early_data().unwrap().write_all(b"question").unwrap();
        let mut flight = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut flight).unwrap();
        }
        tcp.write_all(&flight).await.unwrap();

        let mut server = acceptor.accept(server).await.unwrap();
        let mut question = [0; 8];
        server.read_exact(&mut question).await.unwrap();
        assert_eq!(&question, b"question");
        server.write_all(b"answer").await.unwrap();
        server.flush().await.unwrap();

        let mut answer = [0; 6];
        let length = poll_fn(|context| {
            loop {
                match client.reader().read(&mut answer) {
                    Err(e) if e.kind() == ErrorKind::WouldBlock => {}
                    read => return Poll::Ready(read.unwrap()),
                }
                match client.read_tls(&mut Blocking { tcp: &mut tcp, context }) {
                    Err(e) if e.kind() == ErrorKind::WouldBlock => return Poll::Pending,
                    read => assert_ne!(read.unwrap(), 0),
                }
                client.process_new_packets().unwrap();
            }
        })
        .await;
        assert_eq!((length, &answer), (6, b"answer"));
        assert!(client.is_early_data_accepted());
    }
}
