//! TLS 1.3 (RFC 8446) over TCP, a message being a number of bytes that both ends know.

pub(crate) mod handshake;
mod stream;

use crate::error::Outcome;
use crate::runtime::halves::{Half, Halves};
use crate::settings::SocketReadback;
use crate::tcp::nonblocking;
use crate::tcp::nonblocking::Listening;
use crate::tls::stream::{Acceptor, TlsStream};
use crate::{
    Call, Connection, Driver, Features, Listener, Phases, Purpose, Receiver, Sender, Settings, Stream, Transport,
    TransportError, driver,
};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// What the two ends agree to speak (ALPN).
const PROTOCOL: &[u8] = b"crosswind";

/// The transport `tls`.
pub struct Tls;

impl Transport for Tls {
    fn name(&self) -> &'static str {
        "tls"
    }

    fn summary(&self) -> &'static str {
        "A stream of bytes in TLS 1.3 over TCP."
    }

    fn features(&self) -> Features {
        Features {
            driver: Driver::Reactor,
            setup_round_trips: 2, // TCP 1, TLS 1.3 (RFC 8446) 1
            secure: true,
            early_data: true,
            shares_connection: true,
            ..Features::PLAIN
        }
    }

    fn listen<'a>(&'a self, address: SocketAddr, settings: &'a Settings) -> Call<'a, Box<dyn Listener>> {
        Call::new(async move {
            let acceptor = Arc::new(Acceptor::new(settings, &[PROTOCOL])?);
            let listening = Listening::new(address, &settings.socket)?;
            Ok(Box::new(TlsListener { listening, acceptor }) as Box<dyn Listener>)
        })
    }

    fn connect<'a>(
        &'a self,
        server: SocketAddr,
        settings: &'a Settings,
        timeout: Duration,
    ) -> Call<'a, Box<dyn Connection>> {
        Call::new(driver::within(timeout, "cannot connect", connect(server, settings)))
    }
}

async fn connect(server: SocketAddr, settings: &Settings) -> Result<Box<dyn Connection>, TransportError> {
    let before = Instant::now();
    let stream = nonblocking::connect(server, &settings.socket).await?;
    let connected = Instant::now();
    let client_port = nonblocking::own_port(&stream)?;
    let stream = handshake::client_early(stream, settings, &[PROTOCOL]).await?.stream;
    let phases =
        Phases { transport: Some(connected - before), security: Some(connected.elapsed()), ..Phases::default() };
    let halves = Halves::new(TlsStream::client(stream, settings.resumption));
    Ok(Box::new(TlsConnection { end: End::Ready(halves), client_port, phases, taken: false }))
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
            let (stream, client) = self.listening.accept().await?;
            let connection = TlsConnection {
                end: End::Accepted(stream, Arc::clone(&self.acceptor)),
                client_port: client.port(),
                phases: Phases::default(),
                taken: false,
            };
            Ok(Box::new(connection) as Box<dyn Connection>)
        })
    }
}

struct TlsConnection {
    end: End,
    client_port: u16,
    phases: Phases,
    taken: bool,
}

enum End {
    /// At the server, before the handshake.
    Accepted(TcpStream, Arc<Acceptor>),
    Ready(Halves<TlsStream>),
    Gone,
}

impl TlsConnection {
    fn stream(halves: &Halves<TlsStream>) -> Stream {
        Stream::new(TlsSender(halves.clone()), TlsReceiver(halves.clone()))
    }
}

impl Connection for TlsConnection {
    fn open(&self, _purpose: Purpose) -> Call<'_, Stream> {
        Call::new(async move {
            match &self.end {
                End::Ready(halves) => Ok(Self::stream(halves)),
                End::Accepted(..) | End::Gone => Err(TransportError::closed("cannot open a stream")),
            }
        })
    }

    fn accept(&mut self) -> Call<'_, Stream> {
        Call::new(async move {
            match std::mem::replace(&mut self.end, End::Gone) {
                End::Accepted(stream, acceptor) => {
                    let halves = Halves::new(acceptor.accept(stream).await?);
                    let stream = Self::stream(&halves);
                    self.end = End::Ready(halves);
                    self.taken = true;
                    Ok(stream)
                }
                End::Ready(halves) if !self.taken => {
                    let stream = Self::stream(&halves);
                    self.end = End::Ready(halves);
                    self.taken = true;
                    Ok(stream)
                }
                end => {
                    self.end = end;
                    Err(TransportError::closed("cannot accept a stream"))
                }
            }
        })
    }

    fn phases(&self) -> Phases {
        let End::Ready(halves) = &self.end else { return self.phases };
        let (resumed, early_data) = halves.with("", |stream| Ok(stream.resumption())).unwrap_or_default();
        Phases { resumed, early_data, ..self.phases }
    }

    fn close(&mut self) -> Call<'_, ()> {
        Call::new(async move {
            let End::Ready(halves) = &self.end else { return Ok(()) };
            let what = "cannot close";
            let closed = halves
                .poll(Half::Sending, what, |stream, context| {
                    stream.poll_close(context).map_err(handshake::failed(what))
                })
                .await;
            halves.end(Outcome::Closed);
            match closed {
                // It was over already.
                Err(e) if e.outcome == Outcome::Closed => Ok(()),
                closed => closed,
            }
        })
    }

    fn abort(&mut self) {
        match std::mem::replace(&mut self.end, End::Gone) {
            End::Accepted(stream, _) => nonblocking::reset_on_drop(&stream),
            End::Ready(halves) => {
                if let Some(stream) = halves.end(Outcome::Reset) {
                    nonblocking::reset_on_drop(stream.tcp());
                }
            }
            End::Gone => {}
        }
    }

    fn client_port(&self) -> u16 {
        self.client_port
    }

    fn readback(&self) -> Result<SocketReadback, TransportError> {
        let what = "cannot read the socket's settings back";
        match &self.end {
            End::Accepted(stream, _) => nonblocking::readback(stream),
            End::Ready(halves) => halves.with(what, |stream| nonblocking::readback(stream.tcp())),
            End::Gone => Err(TransportError::closed(what)),
        }
    }
}

struct TlsSender(Halves<TlsStream>);

impl Sender for TlsSender {
    fn send<'a>(&'a mut self, message: &'a [u8]) -> Call<'a, ()> {
        let mut left = message;
        let what = "cannot send";
        Call::new(self.0.poll(Half::Sending, what, move |stream, context| {
            while !left.is_empty() {
                match ready!(Pin::new(&mut *stream).poll_write(context, left)) {
                    Ok(0) => return Poll::Ready(Err(TransportError::with(what, Outcome::Reset, "cannot write"))),
                    Ok(n) => left = &left[n..],
                    Err(e) => return Poll::Ready(Err(handshake::error(what, &e))),
                }
            }
            Pin::new(stream).poll_flush(context).map_err(handshake::failed(what))
        }))
    }

    fn finish(&mut self) -> Call<'_, ()> {
        let what = "cannot finish sending";
        Call::new(self.0.poll(Half::Sending, what, move |stream, context| {
            Pin::new(stream).poll_shutdown(context).map_err(handshake::failed(what))
        }))
    }
}

struct TlsReceiver(Halves<TlsStream>);

impl Receiver for TlsReceiver {
    fn receive<'a>(&'a mut self, into: &'a mut [u8]) -> Call<'a, usize> {
        let what = "cannot receive";
        let mut into = ReadBuf::new(into);
        Call::new(self.0.poll(Half::Receiving, what, move |stream, context| {
            while into.remaining() > 0 {
                let before = into.filled().len();
                ready!(poll_read(stream, context, &mut into))?;
                if into.filled().len() == before {
                    return Poll::Ready(Err(TransportError::closed(what)));
                }
            }
            Poll::Ready(Ok(into.filled().len()))
        }))
    }

    fn receive_some<'a>(&'a mut self, into: &'a mut [u8]) -> Call<'a, usize> {
        let mut into = ReadBuf::new(into);
        Call::new(self.0.poll(Half::Receiving, "cannot receive", move |stream, context| {
            poll_read(stream, context, &mut into).map_ok(|()| into.filled().len())
        }))
    }
}

fn poll_read(
    stream: &mut TlsStream,
    context: &mut Context<'_>,
    into: &mut ReadBuf<'_>,
) -> Poll<Result<(), TransportError>> {
    Pin::new(stream).poll_read(context, into).map_err(handshake::failed("cannot receive"))
}
