//! TLS 1.3 (RFC 8446) over TCP, with messages of a size known to both ends.

mod early;
pub(crate) mod handshake;
mod stream;

use crate::error::Outcome;
use crate::runtime::call::PollDone;
use crate::runtime::single_stream::{Duplex, SingleStream, Socket};
use crate::tcp::nonblocking::{self, Listening, SocketHandle};
use crate::{
    About, Call, Connecting, Connection, Driver, Features, Listener, Phases, Settings, Transport, TransportError,
    driver,
};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};
use stream::{Acceptor, TlsStream};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The agreed protocol (ALPN).
const PROTOCOL: &[u8] = b"crosswind";

/// The transport `tls`.
pub struct Tls;

impl Transport for Tls {
    fn about(&self) -> About {
        let features = Features {
            driver: Driver::Reactor,
            setup_round_trips: 2, // TCP 1, TLS 1.3 (RFC 8446) 1
            secure: true,
            early_data: true,
            shares_connection: true,
            ..Features::PLAIN
        };
        About { name: "tls", summary: "A stream of bytes in TLS 1.3 over TCP.", features }
    }

    fn listen<'a>(&'a self, address: SocketAddr, settings: &'a Settings) -> Call<'a, Box<dyn Listener>> {
        Call::new(async move {
            let acceptor = Arc::new(Acceptor::new(settings, &[PROTOCOL])?);
            let listening = Listening::new(address, settings)?;
            Ok(Box::new(TlsListener { listening, acceptor }) as Box<dyn Listener>)
        })
    }

    fn connect<'a>(&'a self, server: SocketAddr, settings: &'a Settings, timeout: Duration) -> Connecting<'a> {
        Call::new(driver::within(timeout, "cannot connect", connect(server, settings)))
    }
}

async fn connect(server: SocketAddr, settings: &Settings) -> Result<Box<dyn Connection>, TransportError> {
    let started = Instant::now();
    let tcp = nonblocking::connect(server, &settings.socket).await?;
    let connected = Instant::now();
    let (socket, client_port) = (SocketHandle::new(&tcp, settings)?, nonblocking::own_port(&tcp)?);
    let stream = handshake::client_early(tcp, settings, &[PROTOCOL]).await?.stream;
    let phases =
        Phases { transport: Some(connected - started), security: Some(connected.elapsed()), ..Phases::default() };
    let stream = TlsStream::client(stream, settings.resumption);
    Ok(Box::new(SingleStream::client(stream, Socket::Tcp(socket), client_port, phases)))
}

struct TlsListener {
    listening: Listening,
    acceptor: Arc<Acceptor>,
}

impl Listener for TlsListener {
    fn address(&self) -> Result<SocketAddr, TransportError> {
        self.listening.address()
    }

    fn accept(&self, _timeout: Duration) -> Call<'_, Box<dyn Connection>> {
        Call::new(async move {
            let (tcp, client) = self.listening.accept().await?;
            let (socket, acceptor) = (self.listening.handle(&tcp)?, Arc::clone(&self.acceptor));
            let handshake = async move { acceptor.accept(tcp).await };
            Ok(Box::new(SingleStream::server(handshake, Socket::Tcp(socket), client.port())) as Box<dyn Connection>)
        })
    }
}

impl Duplex for TlsStream {
    /// An incomplete record, at most 18 kB in rustls, and a decrypted one, 16 kB.
    const HELD_BACK: Option<u64> = Some(64 * 1024);

    fn poll_send(&mut self, context: &mut Context<'_>, message: &mut Option<&[u8]>) -> PollDone {
        let what = "cannot send";
        while let Some(rest) = message.filter(|rest| !rest.is_empty()) {
            match ready!(Pin::new(&mut *self).poll_write(context, rest)) {
                Ok(0) => return Poll::Ready(Err(TransportError::with(what, Outcome::Reset, "cannot write"))),
                Ok(written) => *message = Some(&rest[written..]),
                Err(e) => return Poll::Ready(Err(handshake::error(what, &e))),
            }
        }
        Pin::new(self).poll_flush(context).map_err(handshake::failed(what))
    }

    fn poll_finish(&mut self, context: &mut Context<'_>) -> PollDone {
        Pin::new(self).poll_shutdown(context).map_err(handshake::failed("cannot finish sending"))
    }

    fn poll_receive(&mut self, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> PollDone {
        while into.remaining() > 0 {
            let before = into.filled().len();
            ready!(self.poll_receive_some(context, into))?;
            if into.filled().len() == before {
                return Poll::Ready(Err(TransportError::closed("cannot receive")));
            }
        }
        Poll::Ready(Ok(()))
    }

    fn poll_receive_some(&mut self, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> PollDone {
        Pin::new(self).poll_read(context, into).map_err(handshake::failed("cannot receive"))
    }

    fn poll_close(&mut self, context: &mut Context<'_>) -> PollDone {
        TlsStream::poll_close(self, context).map_err(handshake::failed("cannot close"))
    }

    fn add_phases(&mut self, phases: &mut Phases) {
        (phases.resumed, phases.early_data) = self.resumption();
    }
}
