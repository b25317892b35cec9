//! The common code of transports over QUIC with messages on byte streams or in datagrams: `quic`, on the connection
//! itself, and `webtransport`, on a session within it.

use super::endpoint::{Connected, Endpoint, client_endpoint, connect, server_endpoint};
use crate::error::failed;
use crate::runtime::handshaking::Handshaking;
use crate::{
    About, Call, Carrier, Connecting, Connection, Driver, Features, Listener, Outcome, Phases, Purpose, Receiver,
    Resumption, Sender, Settings, SocketReadback, Stream, Streams, Transport, TransportError,
};
use bytes::Bytes;
use crosswind_ledger::Position;
use std::future::Future;
use std::marker::PhantomData;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// A handle on an open connection or session.
pub trait Session: Clone + Send + Sync + Sized + 'static {
    /// The agreed protocol (ALPN).
    const PROTOCOL: &'static [u8];
    /// The largest datagram sure to pass.
    const LARGEST_DATAGRAM: usize;
    /// The client's bytes on a stream before its first message.
    const STREAM_HEADER: u64 = 0;
    /// A stream's halves.
    type SendStream: Send;
    type RecvStream: Send;

    /// Refuses unsupported settings.
    fn check(_settings: &Settings) -> Result<(), TransportError> {
        Ok(())
    }

    /// Opens it on the client's connection until `deadline`. Returns also its duration, if it takes an exchange.
    async fn open(
        connected: &Connected,
        server: SocketAddr,
        settings: &Settings,
        deadline: Instant,
    ) -> Result<(Self, Option<Duration>), TransportError>;

    /// Accepts it at the server; `early`: answers early data before the handshake is done.
    fn accept(
        incoming: quinn::Incoming,
        early: bool,
    ) -> impl Future<Output = Result<Self, TransportError>> + Send + 'static;

    async fn open_stream(&self) -> Result<(Self::SendStream, Self::RecvStream), TransportError>;
    async fn accept_stream(&self) -> Result<(Self::SendStream, Self::RecvStream), TransportError>;

    /// A stream's QUIC number.
    fn number(stream: &Self::SendStream) -> u64;
    async fn write(stream: &mut Self::SendStream, message: &[u8]) -> Result<(), TransportError>;
    /// Ends a half of a stream; nothing if already ended.
    fn finish(stream: &mut Self::SendStream);
    /// Reads the available bytes; 0 at the end.
    async fn read(stream: &mut Self::RecvStream, into: &mut [u8]) -> Result<usize, TransportError>;

    fn send_datagram(&self, message: Bytes) -> Result<(), TransportError>;
    async fn read_datagram(&self) -> Result<Bytes, TransportError>;

    /// Why it ended, once it has.
    async fn ended(&self) -> TransportError;
    /// Ends it in an orderly way.
    async fn close(&self);
    /// Ends it at once.
    fn abort(&self);
}

/// A transport of messages over a session.
pub struct Over<S> {
    about: About,
    session: PhantomData<fn() -> S>,
}

impl<S> Over<S> {
    /// On streams, with this session kind's other capabilities.
    pub const fn streams(name: &'static str, summary: &'static str, setup_round_trips: u32, early_data: bool) -> Self {
        let features = Features {
            driver: Driver::Reactor,
            carrier: Carrier::Quic,
            setup_round_trips,
            streams: Streams::Many,
            secure: true,
            early_data,
            shares_connection: true,
            // A stream exists for the other end as soon as something has been sent on it.
            server_speaks_first: false,
            ..Features::PLAIN
        };
        Self { about: About { name, summary, features }, session: PhantomData }
    }

    /// The same in datagrams.
    pub const fn datagrams(name: &'static str, summary: &'static str, streams: &Self) -> Self {
        let features = Features { datagram: true, streams: Streams::One, ..streams.about.features };
        Self { about: About { name, summary, features }, session: PhantomData }
    }
}

impl<S: Session> Transport for Over<S> {
    fn about(&self) -> About {
        self.about
    }

    /// The size sure to pass with or without MTU discovery, so every run has the same limit.
    fn largest_message(&self, _ipv6: bool, _mtu: u32) -> Option<usize> {
        self.about.features.datagram.then_some(S::LARGEST_DATAGRAM)
    }

    fn listen<'a>(&'a self, address: SocketAddr, settings: &'a Settings) -> Call<'a, Box<dyn Listener>> {
        Call::done(Server::<S>::listen(address, settings, self.about.features.datagram))
    }

    fn connect<'a>(&'a self, server: SocketAddr, settings: &'a Settings, timeout: Duration) -> Connecting<'a> {
        Call::new(ClientConnection::<S>::connect(server, settings, timeout, self.about.features.datagram))
    }
}

struct Server<S> {
    endpoint: Endpoint,
    early: bool,
    datagrams: bool,
    session: PhantomData<fn() -> S>,
}

impl<S: Session> Server<S> {
    fn listen(address: SocketAddr, settings: &Settings, datagrams: bool) -> Result<Box<dyn Listener>, TransportError> {
        S::check(settings)?;
        let endpoint = server_endpoint(address, settings, &[S::PROTOCOL])?;
        let early = settings.resumption == Resumption::EarlyData;
        Ok(Box::new(Self { endpoint, early, datagrams, session: PhantomData }))
    }
}

impl<S: Session> Listener for Server<S> {
    fn address(&self) -> Result<SocketAddr, TransportError> {
        self.endpoint.quinn.local_addr().map_err(failed("cannot read the listener's address"))
    }

    fn accept(&self, _timeout: Duration) -> Call<'_, Box<dyn Connection>> {
        Call::new(async move {
            let incoming = self.endpoint.accept().await?;
            Ok(Box::new(ServerConnection {
                client_port: incoming.remote_address().port(),
                handshake: Handshaking::new(S::accept(incoming, self.early)),
                readback: self.endpoint.readback.clone(),
                datagrams: self.datagrams,
                accepted: false,
            }) as Box<dyn Connection>)
        })
    }
}

struct ClientConnection<S> {
    session: S,
    connected: Connected,
    upgrade: Option<Duration>,
    client_port: u16,
    readback: SocketReadback,
    datagrams: bool,
}

impl<S: Session> ClientConnection<S> {
    async fn connect(
        server: SocketAddr,
        settings: &Settings,
        timeout: Duration,
        datagrams: bool,
    ) -> Result<Box<dyn Connection>, TransportError> {
        S::check(settings)?;
        let deadline = Instant::now() + timeout;
        let Endpoint { quinn: endpoint, readback, .. } = client_endpoint(server, settings)?;
        let client_port = endpoint.local_addr().map_err(failed("cannot read the own address"))?.port();
        let connected = connect(&endpoint, server, settings, &[S::PROTOCOL], timeout).await?;
        let (session, upgrade) = S::open(&connected, server, settings, deadline).await?;
        Ok(Box::new(Self { session, connected, upgrade, client_port, readback, datagrams }))
    }
}

impl<S: Session> Connection for ClientConnection<S> {
    fn open(&self, _purpose: Purpose) -> Call<'_, Stream> {
        Call::new(async move {
            if self.datagrams {
                return Ok(datagrams(&self.session));
            }
            Ok(stream(&self.session, self.session.open_stream().await?, [S::STREAM_HEADER, 0]))
        })
    }

    fn phases(&self) -> Phases {
        Phases { upgrade: self.upgrade, ..self.connected.phases() }
    }

    fn close(&mut self) -> Call<'_, ()> {
        Call::new(async move {
            self.connected.await_ticket().await;
            self.session.close().await;
            Ok(())
        })
    }

    fn abort(&mut self) {
        self.session.abort();
    }

    fn client_port(&self) -> u16 {
        self.client_port
    }

    fn readback(&self) -> Result<SocketReadback, TransportError> {
        Ok(self.readback.clone())
    }
}

struct ServerConnection<S> {
    handshake: Handshaking<S>,
    client_port: u16,
    readback: SocketReadback,
    datagrams: bool,
    /// The datagram stream has been handed out.
    accepted: bool,
}

impl<S: Session> Connection for ServerConnection<S> {
    fn accept(&mut self) -> Call<'_, Stream> {
        Call::new(async move {
            let session = self.handshake.done().await?;
            if !self.datagrams {
                return Ok(stream(&session, session.accept_stream().await?, [0, S::STREAM_HEADER]));
            }
            if self.accepted {
                return Err(session.ended().await);
            }
            self.accepted = true;
            Ok(datagrams(&session))
        })
    }

    fn close(&mut self) -> Call<'_, ()> {
        Call::new(async move {
            if let Some(session) = self.handshake.take() {
                session.close().await;
            }
            Ok(())
        })
    }

    fn abort(&mut self) {
        if let Some(session) = self.handshake.take() {
            session.abort();
        }
    }

    fn client_port(&self) -> u16 {
        self.client_port
    }

    fn readback(&self) -> Result<SocketReadback, TransportError> {
        Ok(self.readback.clone())
    }
}

/// A stream keeps the session open. `sent` and `received` are bytes before the first message.
fn stream<S: Session>(
    session: &S,
    (sender, receiver): (S::SendStream, S::RecvStream),
    [sent, received]: [u64; 2],
) -> Stream {
    let number = S::number(&sender);
    Stream::new(
        StreamSender { stream: sender, number, sent, _session: session.clone() },
        StreamReceiver { stream: receiver, number, received, _session: session.clone() },
    )
}

fn datagrams<S: Session>(session: &S) -> Stream {
    Stream::new(DatagramSender { session: session.clone(), sent: 0 }, DatagramReceiver(session.clone()))
}

struct StreamSender<S: Session> {
    stream: S::SendStream,
    number: u64,
    sent: u64,
    _session: S,
}

impl<S: Session> Sender for StreamSender<S> {
    fn send<'a>(&'a mut self, message: &'a [u8]) -> Call<'a, ()> {
        self.sent += message.len() as u64;
        Call::new(S::write(&mut self.stream, message))
    }

    fn position(&self) -> Option<Position> {
        Some(Position::Stream { stream: self.number, start: None, end: Some(self.sent) })
    }

    fn finish(&mut self) -> Call<'_, ()> {
        S::finish(&mut self.stream);
        Call::done(Ok(()))
    }
}

struct StreamReceiver<S: Session> {
    stream: S::RecvStream,
    number: u64,
    received: u64,
    _session: S,
}

impl<S: Session> StreamReceiver<S> {
    async fn some(&mut self, into: &mut [u8]) -> Result<usize, TransportError> {
        if into.is_empty() {
            return Ok(0);
        }
        let read = S::read(&mut self.stream, into).await?;
        self.received += read as u64;
        Ok(read)
    }
}

impl<S: Session> Receiver for StreamReceiver<S> {
    fn receive<'a>(&'a mut self, into: &'a mut [u8]) -> Call<'a, usize> {
        Call::new(async move {
            let mut filled = 0;
            while filled < into.len() {
                match self.some(&mut into[filled..]).await? {
                    0 => return Err(TransportError::closed("cannot receive")),
                    n => filled += n,
                }
            }
            Ok(filled)
        })
    }

    fn receive_some<'a>(&'a mut self, into: &'a mut [u8]) -> Call<'a, usize> {
        Call::new(self.some(into))
    }

    fn position(&self) -> Option<Position> {
        Some(Position::Stream { stream: self.number, start: None, end: Some(self.received) })
    }
}

struct DatagramSender<S> {
    session: S,
    sent: u64,
}

impl<S: Session> Sender for DatagramSender<S> {
    fn send<'a>(&'a mut self, message: &'a [u8]) -> Call<'a, ()> {
        if message.len() > S::LARGEST_DATAGRAM {
            let cause = format!("{} bytes are more than {}", message.len(), S::LARGEST_DATAGRAM);
            return Call::done(Err(TransportError::with("cannot send a datagram", Outcome::TooLarge, cause)));
        }
        let sent = self.session.send_datagram(Bytes::copy_from_slice(message));
        self.sent += u64::from(sent.is_ok());
        Call::done(sent)
    }

    fn position(&self) -> Option<Position> {
        self.sent.checked_sub(1).map(Position::Datagram)
    }
}

struct DatagramReceiver<S>(S);

impl<S: Session> Receiver for DatagramReceiver<S> {
    fn receive<'a>(&'a mut self, into: &'a mut [u8]) -> Call<'a, usize> {
        Call::new(async move {
            let message = self.0.read_datagram().await?;
            let Some(place) = into.get_mut(..message.len()) else {
                let cause = format!("a datagram of {} bytes", message.len());
                return Err(TransportError::with("cannot receive", Outcome::TooLarge, cause));
            };
            place.copy_from_slice(&message);
            Ok(message.len())
        })
    }
}
