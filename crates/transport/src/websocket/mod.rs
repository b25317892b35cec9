//! WebSocket (RFC 6455) over TCP, and over TLS.

mod frame;
mod mask;
mod socket;
mod wire;

pub(crate) use socket::{Incoming, LARGEST, Socket};
use socket::{Leaving, Part};
pub(crate) use wire::Carrier;

use crate::error::Outcome;
use crate::runtime::halves::{Half, Halves};
use crate::settings::{Payload, SocketReadback};
use crate::tcp::nonblocking;
use crate::tcp::nonblocking::Listening;
use crate::tls::handshake;
use crate::{
    Call, Connection, Driver, Features, Listener, Phases, Purpose, Receiver, Sender, Settings, Stream, Transport,
    TransportError, driver,
};
use bytes::{Buf, Bytes};
use std::net::SocketAddr;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

/// What runs over TLS (ALPN): the upgrade is HTTP's.
const PROTOCOL: &[u8] = b"http/1.1";

/// The set-up is TCP's round trip and that of the upgrade request.
const FEATURES: Features =
    Features { driver: Driver::Reactor, setup_round_trips: 2, text: true, shares_connection: true, ..Features::PLAIN };

/// The transport `websocket`.
pub struct WebSocket;

/// The transport `wss`.
pub struct Wss;

impl Transport for WebSocket {
    fn name(&self) -> &'static str {
        "websocket"
    }

    fn summary(&self) -> &'static str {
        "Messages over WebSocket in cleartext."
    }

    fn features(&self) -> Features {
        FEATURES
    }

    fn listen<'a>(&'a self, address: SocketAddr, settings: &'a Settings) -> Call<'a, Box<dyn Listener>> {
        Call::new(async move { listen(address, settings, None) })
    }

    fn connect<'a>(
        &'a self,
        server: SocketAddr,
        settings: &'a Settings,
        timeout: Duration,
    ) -> Call<'a, Box<dyn Connection>> {
        Call::new(driver::within(timeout, "cannot connect", connect(server, settings, false)))
    }
}

impl Transport for Wss {
    fn name(&self) -> &'static str {
        "wss"
    }

    fn summary(&self) -> &'static str {
        "Messages over WebSocket in TLS 1.3."
    }

    fn features(&self) -> Features {
        Features { secure: true, setup_round_trips: 3, ..FEATURES }
    }

    fn listen<'a>(&'a self, address: SocketAddr, settings: &'a Settings) -> Call<'a, Box<dyn Listener>> {
        Call::new(async move { listen(address, settings, Some(handshake::acceptor(settings, &[PROTOCOL])?)) })
    }

    fn connect<'a>(
        &'a self,
        server: SocketAddr,
        settings: &'a Settings,
        timeout: Duration,
    ) -> Call<'a, Box<dyn Connection>> {
        Call::new(driver::within(timeout, "cannot connect", connect(server, settings, true)))
    }
}

fn listen(
    address: SocketAddr,
    settings: &Settings,
    acceptor: Option<TlsAcceptor>,
) -> Result<Box<dyn Listener>, TransportError> {
    let listening = Listening::new(address, &settings.socket)?;
    Ok(Box::new(WebSocketListener { listening, acceptor, payload: settings.payload }))
}

async fn connect(server: SocketAddr, settings: &Settings, secure: bool) -> Result<Box<dyn Connection>, TransportError> {
    let started = Instant::now();
    let stream = nonblocking::connect(server, &settings.socket).await?;
    let connected = Instant::now();
    let client_port = nonblocking::own_port(&stream)?;
    let mut phases = Phases { transport: Some(connected - started), ..Phases::default() };
    let (carrier, host) = if secure {
        let secured = handshake::client(stream, settings, &[PROTOCOL]).await?;
        phases.security = Some(connected.elapsed());
        phases.resumed = secured.resumed;
        let name = settings.security()?.server_name().to_str();
        let host = if name.contains(':') { server.to_string() } else { format!("{name}:{}", server.port()) };
        (Carrier::Secure(Box::new(secured.stream.into())), host)
    } else {
        (Carrier::Plain(stream), server.to_string())
    };
    let agreed = Instant::now();
    let path = if settings.path.is_empty() { "/" } else { &settings.path };
    let socket = Socket::client(carrier, &host, path).await?;
    phases.upgrade = Some(agreed.elapsed());
    let halves = Halves::new(End { socket, kind: settings.payload, follow: false, rest: Bytes::new() });
    Ok(Box::new(WebSocketConnection { state: State::Ready(halves), client_port, phases, taken: false }))
}

struct WebSocketListener {
    listening: Listening,
    acceptor: Option<TlsAcceptor>,
    payload: Payload,
}

impl Listener for WebSocketListener {
    fn address(&self) -> Result<SocketAddr, TransportError> {
        self.listening.address()
    }

    fn accept(&self, _timeout: Duration) -> Call<'_, Box<dyn Connection>> {
        Call::new(async move {
            let (stream, client) = self.listening.accept().await?;
            let connection = WebSocketConnection {
                state: State::Accepted(stream, self.acceptor.clone(), self.payload),
                client_port: client.port(),
                phases: Phases::default(),
                taken: false,
            };
            Ok(Box::new(connection) as Box<dyn Connection>)
        })
    }
}

struct WebSocketConnection {
    state: State,
    client_port: u16,
    phases: Phases,
    taken: bool,
}

enum State {
    /// At the server, before the handshakes.
    Accepted(TcpStream, Option<TlsAcceptor>, Payload),
    Ready(Halves<End>),
    Gone,
}

/// One end of a connection.
struct End {
    socket: Socket,
    /// What messages are sent as.
    kind: Payload,
    /// They are sent as the last one came.
    follow: bool,
    /// Of a message that was received in part.
    rest: Bytes,
}

impl End {
    fn poll_receive(&mut self, context: &mut Context<'_>, into: &mut [u8]) -> Poll<Result<usize, TransportError>> {
        if !self.rest.is_empty() {
            let rest = std::mem::take(&mut self.rest);
            let Some(place) = into.get_mut(..rest.len()) else {
                let cause = "larger than expected";
                return Poll::Ready(Err(TransportError::with("cannot receive", Outcome::TooLarge, cause)));
            };
            place.copy_from_slice(&rest);
            return Poll::Ready(Ok(rest.len()));
        }
        let (length, kind) = ready!(self.socket.poll_receive(context, into))?;
        self.came(kind);
        Poll::Ready(Ok(length))
    }

    fn poll_some(&mut self, context: &mut Context<'_>, into: &mut [u8]) -> Poll<Result<usize, TransportError>> {
        loop {
            if !self.rest.is_empty() || into.is_empty() {
                let length = self.rest.len().min(into.len());
                self.rest.copy_to_slice(&mut into[..length]);
                return Poll::Ready(Ok(length));
            }
            match ready!(self.socket.poll_some(context, into))? {
                // An empty message is not the end.
                Part::Bytes(0) => {}
                Part::Bytes(length) => {
                    self.came(Payload::Binary);
                    return Poll::Ready(Ok(length));
                }
                Part::Whole(message) => {
                    let (bytes, kind) = message.into_parts();
                    self.rest = bytes;
                    self.came(kind);
                }
            }
        }
    }

    fn came(&mut self, kind: Payload) {
        if self.follow {
            self.kind = kind;
        }
    }
}

fn stream(halves: &Halves<End>) -> Stream {
    Stream::new(WebSocketSender(halves.clone()), WebSocketReceiver(halves.clone()))
}

impl Connection for WebSocketConnection {
    fn open(&self, _purpose: Purpose) -> Call<'_, Stream> {
        Call::new(async move {
            match &self.state {
                State::Ready(halves) => Ok(stream(halves)),
                State::Accepted(..) | State::Gone => Err(TransportError::closed("cannot open a stream")),
            }
        })
    }

    fn accept(&mut self) -> Call<'_, Stream> {
        Call::new(async move {
            if let State::Accepted(..) = self.state
                && let State::Accepted(tcp, acceptor, payload) = std::mem::replace(&mut self.state, State::Gone)
            {
                let carrier = Carrier::accept(tcp, acceptor.as_ref()).await?;
                let socket = Socket::server(carrier).await?;
                let end = End { socket, kind: payload, follow: true, rest: Bytes::new() };
                self.state = State::Ready(Halves::new(end));
            }
            match &self.state {
                State::Ready(halves) if !std::mem::replace(&mut self.taken, true) => Ok(stream(halves)),
                _ => Err(TransportError::closed("cannot accept a stream")),
            }
        })
    }

    fn phases(&self) -> Phases {
        self.phases
    }

    fn close(&mut self) -> Call<'_, ()> {
        Call::new(async move {
            let State::Ready(halves) = &self.state else { return Ok(()) };
            let closed =
                halves.poll(Half::Receiving, "cannot close", |end, context| end.socket.poll_close(context)).await;
            halves.end(Outcome::Closed);
            match closed {
                // It was over already.
                Err(e) if e.outcome == Outcome::Closed => Ok(()),
                closed => closed,
            }
        })
    }

    fn abort(&mut self) {
        match std::mem::replace(&mut self.state, State::Gone) {
            State::Accepted(tcp, ..) => Carrier::Plain(tcp).reset(),
            State::Ready(halves) => {
                if let Some(end) = halves.end(Outcome::Reset) {
                    end.socket.into_carrier().reset();
                }
            }
            State::Gone => {}
        }
    }

    fn client_port(&self) -> u16 {
        self.client_port
    }

    fn readback(&self) -> Result<SocketReadback, TransportError> {
        let what = "cannot read the socket's settings back";
        match &self.state {
            State::Accepted(tcp, ..) => nonblocking::readback(tcp),
            State::Ready(halves) => halves.with(what, |end| nonblocking::readback(end.socket.carrier().tcp())),
            State::Gone => Err(TransportError::closed(what)),
        }
    }
}

struct WebSocketSender(Halves<End>);

/// A message on its way out. Given up, its rest goes with the next one: the other end would take that for its rest.
struct Sending<'a> {
    halves: &'a Halves<End>,
    bytes: &'a [u8],
    message: Option<Leaving<'a>>,
}

impl Drop for Sending<'_> {
    fn drop(&mut self) {
        if let Some(message) = self.message.take() {
            // Where the connection has ended, nothing is left to be done.
            let _ = self.halves.with("", |end| {
                end.socket.leave(&message);
                Ok(())
            });
        }
    }
}

impl Sender for WebSocketSender {
    fn send<'a>(&'a mut self, message: &'a [u8]) -> Call<'a, ()> {
        let mut sending = Sending { halves: &self.0, bytes: message, message: None };
        Call::new(self.0.poll(Half::Sending, "cannot send", move |end, context| {
            let bytes = sending.bytes;
            let message = sending.message.get_or_insert_with(|| Leaving::new(bytes, end.kind));
            let sent = ready!(end.socket.poll_send(context, message));
            sending.message = None;
            Poll::Ready(sent)
        }))
    }

    fn finish(&mut self) -> Call<'_, ()> {
        let what = "cannot finish sending";
        Call::new(self.0.poll(Half::Sending, what, |end, context| end.socket.poll_finish(context)))
    }
}

struct WebSocketReceiver(Halves<End>);

/// A place for a message. Given up, what has come of it is kept.
struct Receiving<'a> {
    halves: &'a Halves<End>,
    into: &'a mut [u8],
    begun: bool,
}

impl Drop for Receiving<'_> {
    fn drop(&mut self) {
        if self.begun {
            let _ = self.halves.with("", |end| {
                end.socket.keep(self.into);
                Ok(())
            });
        }
    }
}

impl Receiver for WebSocketReceiver {
    fn receive<'a>(&'a mut self, into: &'a mut [u8]) -> Call<'a, usize> {
        let mut receiving = Receiving { halves: &self.0, into, begun: false };
        Call::new(self.0.poll(Half::Receiving, "cannot receive", move |end, context| {
            receiving.begun = true;
            let received = ready!(end.poll_receive(context, receiving.into));
            receiving.begun = false;
            Poll::Ready(received)
        }))
    }

    fn receive_some<'a>(&'a mut self, into: &'a mut [u8]) -> Call<'a, usize> {
        Call::new(self.0.poll(Half::Receiving, "cannot receive", move |end, context| {
            match ready!(end.poll_some(context, into)) {
                Err(e) if e.outcome == Outcome::Closed => Poll::Ready(Ok(0)),
                received => Poll::Ready(received),
            }
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
        Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

    /// What becomes of `frames` at a server that expects up to ten bytes, and what it sends before the message comes.
    async fn received(frames: &[u8]) -> (Result<usize, Outcome>, Vec<u8>) {
        let settings = Settings::default();
        let listener = listen("127.0.0.1:0".parse().unwrap(), &settings, None).unwrap();
        let mut client = TcpStream::connect(listener.address().unwrap()).await.unwrap();
        client.write_all(REQUEST).await.unwrap();
        let mut connection = listener.accept(Duration::ZERO).await.unwrap();
        let mut stream = connection.accept().await.unwrap();
        client.write_all(frames).await.unwrap();
        let result = stream.receiver.receive(&mut [0; 10]).await.map_err(|e| e.outcome);
        connection.abort();
        let mut said = Vec::new();
        // It ends by a reset.
        let _ = client.read_to_end(&mut said).await;
        let header = said.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
        (result, said.split_off(header + 4))
    }

    #[tokio::test]
    async fn an_empty_message_is_a_message() {
        assert_eq!(received(&[0x82, 0x80, 0, 0, 0, 0]).await.0, Ok(0));
    }

    #[tokio::test]
    async fn a_header_that_promises_too_much_is_refused_before_anything_follows() {
        let exabyte = [0x82, 0xff, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(received(&exabyte).await.0, Err(Outcome::TooLarge));
        let eleven = [0x82, 0x8b, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11];
        assert_eq!(received(&eleven).await.0, Err(Outcome::TooLarge));
    }

    #[tokio::test]
    async fn a_client_must_mask() {
        assert_eq!(received(&[0x82, 1, 7]).await.0, Err(Outcome::Protocol));
    }

    /// However short the messages that are expected, a control frame may have 125 bytes.
    #[tokio::test]
    async fn a_ping_is_answered_with_what_it_carries() {
        let mut frames = vec![0x89, 0x80 | 0x7d, 0, 0, 0, 0];
        frames.extend([b'p'; 125]);
        frames.extend([0x82, 0x81, 0, 0, 0, 0, b'm']);
        let (result, said) = received(&frames).await;
        assert_eq!(result, Ok(1));
        let mut pong = vec![0x8a, 125];
        pong.extend([b'p'; 125]);
        assert_eq!(said, pong);
    }

    /// A connection, and its one stream, at the client and at the server.
    async fn both_ends() -> [(Box<dyn Connection>, Stream); 2] {
        let settings = Settings::default();
        let listener = listen("127.0.0.1:0".parse().unwrap(), &settings, None).unwrap();
        let address = listener.address().unwrap();
        let (client, server) = tokio::join!(connect(address, &settings, false), async {
            let mut connection = listener.accept(Duration::ZERO).await.unwrap();
            let stream = connection.accept().await.unwrap();
            (connection, stream)
        });
        let client = client.unwrap();
        let stream = client.open(Purpose::Messages).await.unwrap();
        [(client, stream), server]
    }

    async fn give_up_and_go_on(sender: &mut dyn Sender, receiver: &mut dyn Receiver) {
        // More than the kernel's buffers hold.
        let message: Vec<u8> = (0..30_000_000_u32).map(|n| (n % 251) as u8).collect();
        let mut into = vec![0; message.len()];
        let wait = Duration::from_millis(20);
        assert!(tokio::time::timeout(wait, sender.send(&message)).await.is_err());
        assert!(tokio::time::timeout(wait, receiver.receive(&mut into)).await.is_err());
        into.fill(0);
        let (sent, received) = tokio::join!(sender.send(b"next"), receiver.receive(&mut into));
        sent.unwrap();
        assert_eq!(received.unwrap(), message.len());
        assert!(into == message);
        assert_eq!(receiver.receive(&mut into).await.unwrap(), 4);
        assert_eq!(&into[..4], b"next");
    }

    #[tokio::test]
    async fn what_is_given_up_goes_on_where_it_was() {
        let [(_client, mut at_client), (_server, mut at_server)] = both_ends().await;
        for _ in 0..2 {
            give_up_and_go_on(at_client.sender.as_mut(), at_server.receiver.as_mut()).await;
            give_up_and_go_on(at_server.sender.as_mut(), at_client.receiver.as_mut()).await;
        }
    }

    #[tokio::test]
    async fn a_message_may_be_received_in_parts_and_the_rest_at_once() {
        let [mut client, mut server] = both_ends().await;
        let message: Vec<u8> = (0..100_000_u32).map(|n| (n % 251) as u8).collect();
        let (sent, received) = tokio::join!(client.1.sender.send(&message), async {
            let mut into = vec![0; message.len()];
            let some = server.1.receiver.receive_some(&mut into[..1000]).await.unwrap();
            let rest = server.1.receiver.receive(&mut into[some..]).await.unwrap();
            assert_eq!(some + rest, message.len());
            into
        });
        sent.unwrap();
        assert!(received == message);
    }
}
