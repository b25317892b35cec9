//! tungstenite's errors as outcomes.

use crate::TransportError;
use crate::error::Outcome;
use crate::tls::handshake;
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

/// The close code for the other end's error (section 7.4.1).
pub(super) fn close_code(cause: &Error) -> Option<CloseCode> {
    match (cause, error("", cause).outcome) {
        (Error::Utf8(_), _) => Some(CloseCode::Invalid),
        (_, Outcome::Protocol) => Some(CloseCode::Protocol),
        (_, Outcome::TooLarge) => Some(CloseCode::Size),
        _ => None,
    }
}
