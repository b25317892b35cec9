//! A server's TLS end that reads early data (RFC 8446, section 2.3) and answers it at once.
//!
//! tokio-rustls lets a client send early data, but its server neither reads that nor answers before the client's
//! handshake is complete, a round trip later. So this end of the stream drives rustls itself.

use rustls::{ServerConfig, ServerConnection};
use std::future::poll_fn;
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// A stream's server end; its first flight may carry data.
pub(super) struct EarlyServerStream {
    tcp: TcpStream,
    session: ServerConnection,
}

impl EarlyServerStream {
    /// Waits until the client has finished its handshake or has sent early data.
    pub(super) async fn accept(tcp: TcpStream, config: &Arc<ServerConfig>) -> io::Result<Self> {
        let session = ServerConnection::new(Arc::clone(config)).map_err(io::Error::other)?;
        let mut stream = Self { tcp, session };
        poll_fn(|context| stream.poll_handshake(context)).await?;
        Ok(stream)
    }

    fn poll_handshake(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.session.is_handshaking() && self.session.early_data().is_none() {
            if ready!(self.poll_packets(context))? == 0 {
                return Poll::Ready(Err(ErrorKind::UnexpectedEof.into()));
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Reads from the network, and sends TLS's own answers.
    fn poll_packets(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let read = match self.session.read_tls(&mut WouldBlock { tcp: &mut self.tcp, context }) {
            Err(e) if e.kind() == ErrorKind::WouldBlock => return Poll::Pending,
            read => read?,
        };
        let processed = self.session.process_new_packets();
        let flushed = self.poll_flush(context);
        // The packets' fault says more than the failure to send the alert about it.
        processed.map_err(|e| io::Error::new(ErrorKind::InvalidData, e))?;
        if let Poll::Ready(Err(e)) = flushed {
            return Poll::Ready(Err(e));
        }
        Poll::Ready(Ok(read))
    }

    pub(super) fn poll_read(&mut self, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        loop {
            let unfilled = into.initialize_unfilled();
            let early = match self.session.early_data() {
                Some(mut early) => early.read(unfilled)?,
                None => 0,
            };
            let read = if early > 0 { Ok(early) } else { self.session.reader().read(unfilled) };
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

    pub(super) fn poll_write(&mut self, context: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        loop {
            let written = self.session.writer().write(data)?;
            let flushed = self.poll_flush(context)?;
            if written > 0 || data.is_empty() {
                return Poll::Ready(Ok(written));
            }
            ready!(flushed);
        }
    }

    pub(super) fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.session.wants_write() {
            match self.session.write_tls(&mut WouldBlock { tcp: &mut self.tcp, context }) {
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Poll::Pending,
                Ok(0) => return Poll::Ready(Err(ErrorKind::WriteZero.into())),
                written => written?,
            };
        }
        Poll::Ready(Ok(()))
    }

    pub(super) fn poll_shutdown(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.session.send_close_notify();
        ready!(self.poll_flush(context))?;
        Pin::new(&mut self.tcp).poll_shutdown(context)
    }
}

/// The socket as rustls reads and writes it: where a call would have to wait, it says so.
struct WouldBlock<'a, 'b> {
    tcp: &'a mut TcpStream,
    context: &'a mut Context<'b>,
}

fn would_block<T>(polled: Poll<io::Result<T>>) -> io::Result<T> {
    match polled {
        Poll::Ready(result) => result,
        Poll::Pending => Err(ErrorKind::WouldBlock.into()),
    }
}

impl Read for WouldBlock<'_, '_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut into = ReadBuf::new(into);
        would_block(Pin::new(&mut *self.tcp).poll_read(self.context, &mut into))?;
        Ok(into.filled().len())
    }
}

impl Write for WouldBlock<'_, '_> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        would_block(Pin::new(&mut *self.tcp).poll_write(self.context, data))
    }

    fn write_vectored(&mut self, data: &[IoSlice<'_>]) -> io::Result<usize> {
        would_block(Pin::new(&mut *self.tcp).poll_write_vectored(self.context, data))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::security::{Resumption, Security};
    use crate::settings::Settings;
    use crate::tls::handshake;
    use crate::tls::stream::Acceptor;
    use rustls::ClientConnection;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    const PROTOCOLS: &[&[u8]] = &[b"test"];

    async fn pair(listener: &TcpListener) -> (TcpStream, TcpStream) {
        let client = TcpStream::connect(listener.local_addr().unwrap());
        let (client, accepted) = tokio::join!(client, listener.accept());
        (client.unwrap(), accepted.unwrap().0)
    }

    /// The client is silent after its first flight and does not even finish its handshake.
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
                match client.read_tls(&mut WouldBlock { tcp: &mut tcp, context }) {
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
