//! One end of a WebSocket connection (RFC 6455), polled by a task that sends and a task that receives.

use super::wire::{Carrier, Wire};
use crate::error::Outcome;
use crate::halves::Half;
use crate::settings::Payload;
use crate::{TransportError, secure};
use bytes::Bytes;
use std::future::poll_fn;
use std::io::ErrorKind;
use std::task::{Context, Poll};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::error::{CapacityError, ProtocolError};
use tokio_tungstenite::tungstenite::handshake::client::ClientHandshake;
use tokio_tungstenite::tungstenite::handshake::server::{NoCallback, ServerHandshake};
use tokio_tungstenite::tungstenite::handshake::{HandshakeError, HandshakeRole, MidHandshake};
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes, WebSocket};

/// No message may be larger, whatever it is received into.
pub(crate) const LARGEST: usize = 1 << 30;
/// Control frames are that long at most (section 5.5), however short the messages.
const LONGEST_CONTROL: usize = 125;
/// What is read at a time. tungstenite clears it before every read.
const READ_BUFFER: usize = 32 * 1024;

/// One end of a connection.
pub(crate) struct Socket {
    protocol: WebSocket<Wire>,
    at_server: bool,
    /// Nothing more can be received, for this reason.
    over: Option<Outcome>,
}

/// A message.
pub(crate) struct Incoming {
    pub(crate) bytes: Bytes,
    pub(crate) kind: Payload,
}

impl Socket {
    /// Upgrades a connection to `host`, asking for `path`.
    pub(crate) async fn client(carrier: Carrier, host: &str, path: &str) -> Result<Self, TransportError> {
        let what = "cannot upgrade to WebSocket";
        let failed = |e| error(what, &e);
        let request = format!("ws://{host}{path}").into_client_request().map_err(failed)?;
        let handshake = ClientHandshake::start(Wire::new(carrier), request, Some(config())).map_err(failed)?;
        let (protocol, _) = shake_hands(handshake, |machine| machine).await.map_err(failed)?;
        Ok(Self { protocol, at_server: false, over: None })
    }

    /// Waits for the client to upgrade the connection, whatever path it asks for.
    pub(crate) async fn server(carrier: Carrier) -> Result<Self, TransportError> {
        let handshake = ServerHandshake::start(Wire::new(carrier), NoCallback, Some(config()));
        let protocol =
            shake_hands(handshake, |wire| wire).await.map_err(|e| error("cannot upgrade to WebSocket", &e))?;
        Ok(Self { protocol, at_server: true, over: None })
    }

    /// A connection upgraded by HTTP; `read` is what the client sent since.
    pub(crate) fn upgraded(carrier: Carrier, read: Vec<u8>) -> Self {
        let protocol = WebSocket::from_partially_read(Wire::new(carrier), read, Role::Server, Some(config()));
        Self { protocol, at_server: true, over: None }
    }

    pub(crate) fn carrier(&self) -> &Carrier {
        self.protocol.get_ref().carrier()
    }

    pub(crate) fn into_carrier(self) -> Carrier {
        self.protocol.into_inner().into_carrier()
    }

    /// The next message, of `limit` bytes at most. `Outcome::Closed` once the other end has closed in an orderly way.
    pub(crate) fn poll_message(
        &mut self,
        context: &mut Context<'_>,
        limit: usize,
    ) -> Poll<Result<Incoming, TransportError>> {
        let what = "cannot receive";
        if let Some(outcome) = self.over {
            return Poll::Ready(Err(TransportError::with(what, outcome, "nothing more can be received")));
        }
        let limit = limit.min(LARGEST);
        if self.protocol.get_config().max_message_size != Some(limit) {
            self.protocol.set_config(|config| {
                config.max_message_size = Some(limit);
                config.max_frame_size = Some(limit.max(LONGEST_CONTROL));
            });
        }
        self.protocol.get_mut().set_task(Half::Receiving, context);
        let error = loop {
            match self.protocol.read() {
                Ok(Message::Text(text)) => return arrived(text.into(), Payload::Text),
                Ok(Message::Binary(bytes)) => return arrived(bytes, Payload::Binary),
                Ok(Message::Close(_)) => {
                    // The answer is small: where it does not fit, the other end has stopped reading.
                    let _ = self.protocol.flush();
                    break Error::ConnectionClosed;
                }
                // tungstenite answers pings, when it next reads.
                Ok(_) => {}
                Err(Error::Io(e)) if e.kind() == ErrorKind::WouldBlock => return Poll::Pending,
                Err(e) => break e,
            }
        };
        let failure = self::error(what, &error);
        self.over = Some(failure.outcome);
        self.fail(failure.outcome);
        Poll::Ready(Err(failure))
    }

    /// Tells the other end that this is the end, and why, as far as it listens.
    fn fail(&mut self, outcome: Outcome) {
        let code = match outcome {
            Outcome::Protocol => CloseCode::Protocol,
            Outcome::TooLarge => CloseCode::Size,
            // The server closes TCP first (section 7.1.1).
            Outcome::Closed if self.at_server => CloseCode::Normal,
            _ => return,
        };
        let _ = self.protocol.close(Some(CloseFrame { code, reason: Utf8Bytes::from_static("") }));
        let _ = self.protocol.get_mut().poll_shutdown();
    }

    /// Takes a message from a task of `half`, to be sent when flushed.
    pub(crate) fn queue(&mut self, half: Half, context: &Context<'_>, message: Message) -> Result<(), TransportError> {
        self.protocol.get_mut().set_task(half, context);
        match self.protocol.write(message) {
            // It was taken all the same.
            Err(Error::Io(e)) if e.kind() == ErrorKind::WouldBlock => Ok(()),
            result => result.map_err(|e| error("cannot send", &e)),
        }
    }

    pub(crate) fn poll_flush(&mut self, half: Half, context: &Context<'_>) -> Poll<Result<(), TransportError>> {
        self.protocol.get_mut().set_task(half, context);
        done("cannot send", self.protocol.flush())
    }

    /// Sends the Close frame: nothing more will be sent.
    pub(crate) fn poll_finish(&mut self, context: &Context<'_>) -> Poll<Result<(), TransportError>> {
        self.protocol.get_mut().set_task(Half::Sending, context);
        match self.protocol.close(Some(normal())) {
            // The other end has said so too.
            Err(Error::ConnectionClosed | Error::AlreadyClosed) => Poll::Ready(Ok(())),
            result => done("cannot close", result),
        }
    }

    /// The closing handshake, and the orderly end of what is below.
    pub(crate) fn poll_close(&mut self, context: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        let what = "cannot close";
        self.protocol.get_mut().set_task(Half::Receiving, context);
        if self.over.is_none() || self.over == Some(Outcome::Closed) {
            match self.protocol.close(Some(normal())) {
                Err(Error::Io(e)) if e.kind() == ErrorKind::WouldBlock => return Poll::Pending,
                // Whatever else is the matter, reading says.
                _ => {}
            }
            loop {
                match self.protocol.read() {
                    Ok(_) => {}
                    Err(Error::Io(e)) if e.kind() == ErrorKind::WouldBlock => return Poll::Pending,
                    Err(_) => break,
                }
            }
        }
        self.protocol.get_mut().poll_shutdown().map(|result| match result.map_err(secure::failed(what)) {
            // The other end was faster.
            Err(e) if matches!(e.outcome, Outcome::Reset | Outcome::Closed) => Ok(()),
            result => result,
        })
    }
}

/// A message to send. Fails on text that is none.
pub(crate) fn outgoing(bytes: Bytes, kind: Payload) -> Result<Message, TransportError> {
    match kind {
        Payload::Binary => Ok(Message::Binary(bytes)),
        Payload::Text => Utf8Bytes::try_from(bytes)
            .map(Message::Text)
            .map_err(|e| TransportError::with("cannot send", Outcome::Error, format!("no text: {e}"))),
    }
}

fn arrived(bytes: Bytes, kind: Payload) -> Poll<Result<Incoming, TransportError>> {
    Poll::Ready(Ok(Incoming { bytes, kind }))
}

fn normal() -> CloseFrame {
    CloseFrame { code: CloseCode::Normal, reason: Utf8Bytes::from_static("") }
}

fn config() -> WebSocketConfig {
    WebSocketConfig::default().read_buffer_size(READ_BUFFER)
}

fn done(what: &'static str, result: Result<(), Error>) -> Poll<Result<(), TransportError>> {
    match result {
        Err(Error::Io(e)) if e.kind() == ErrorKind::WouldBlock => Poll::Pending,
        result => Poll::Ready(result.map_err(|e| error(what, &e))),
    }
}

/// Goes through the opening handshake.
async fn shake_hands<R: HandshakeRole<InternalStream = Wire>, T>(
    handshake: MidHandshake<R>,
    made: impl Fn(R::FinalResult) -> T,
) -> Result<T, Error> {
    let mut handshake = Some(handshake);
    poll_fn(|context| {
        let Some(mut under_way) = handshake.take() else { return Poll::Ready(Err(Error::AlreadyClosed)) };
        under_way.get_mut().get_mut().set_task(Half::Receiving, context);
        match under_way.handshake() {
            Ok(result) => Poll::Ready(Ok(made(result))),
            Err(HandshakeError::Interrupted(under_way)) => {
                handshake = Some(under_way);
                Poll::Pending
            }
            Err(HandshakeError::Failure(e)) => Poll::Ready(Err(e)),
        }
    })
    .await
}

fn error(what: &'static str, cause: &Error) -> TransportError {
    let outcome = match cause {
        Error::Io(e) => return secure::error(what, e),
        Error::ConnectionClosed
        | Error::AlreadyClosed
        | Error::Protocol(ProtocolError::SendAfterClosing | ProtocolError::HandshakeIncomplete) => Outcome::Closed,
        Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => Outcome::Reset,
        Error::Capacity(CapacityError::MessageTooLong { .. }) | Error::WriteBufferFull(_) => Outcome::TooLarge,
        _ => Outcome::Protocol,
    };
    TransportError::with(what, outcome, cause.to_string())
}
