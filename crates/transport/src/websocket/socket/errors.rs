//! What tungstenite's errors mean: to whoever called, and to the other end.

use crate::TransportError;
use crate::error::Outcome;
use crate::tls::handshake;
use std::io::ErrorKind;
use std::task::Poll;
use tokio_tungstenite::tungstenite::Error;
use tokio_tungstenite::tungstenite::error::{CapacityError, ProtocolError};
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

pub(super) fn error(what: &'static str, cause: &Error) -> TransportError {
    let outcome = match cause {
        Error::Io(e) => return handshake::error(what, e),
        Error::ConnectionClosed
        | Error::AlreadyClosed
        | Error::Protocol(ProtocolError::SendAfterClosing | ProtocolError::HandshakeIncomplete) => Outcome::Closed,
        Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => Outcome::Reset,
        Error::Capacity(CapacityError::MessageTooLong { .. }) | Error::WriteBufferFull(_) => Outcome::TooLarge,
        _ => Outcome::Protocol,
    };
    TransportError::with(what, outcome, cause.to_string())
}

pub(super) fn done(what: &'static str, result: Result<(), Error>) -> Poll<Result<(), TransportError>> {
    match result {
        Err(Error::Io(e)) if e.kind() == ErrorKind::WouldBlock => Poll::Pending,
        result => Poll::Ready(result.map_err(|e| error(what, &e))),
    }
}

pub(super) fn too_long(size: usize, max_size: usize) -> Error {
    Error::Capacity(CapacityError::MessageTooLong { size, max_size })
}

/// What is said to the other end about `error`, which had `outcome` (section 7.4.1).
pub(super) fn code(error: &Error, outcome: Outcome) -> Option<CloseCode> {
    match (error, outcome) {
        (Error::Utf8(_), _) => Some(CloseCode::Invalid),
        (_, Outcome::Protocol) => Some(CloseCode::Protocol),
        (_, Outcome::TooLarge) => Some(CloseCode::Size),
        _ => None,
    }
}

/// The answer to a handshake that was refused for `error` (sections 4.2.1 and 4.4), unless nobody is left to hear it.
pub(super) fn refusal(error: &Error) -> Option<&'static str> {
    match error {
        Error::Io(_) | Error::Protocol(ProtocolError::HandshakeIncomplete) => None,
        Error::Protocol(ProtocolError::MissingSecWebSocketVersionHeader) => Some(
            "HTTP/1.1 426 Upgrade Required\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
             Connection: Upgrade, close\r\nContent-Length: 0\r\n\r\n",
        ),
        _ => Some("HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"),
    }
}
