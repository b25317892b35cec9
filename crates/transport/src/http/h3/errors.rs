//! What errors of HTTP/3 mean for an exchange.

use crate::quic::endpoint::connection_error;
use crate::{Outcome, TransportError};
use h3::error::{Code, ConnectionError, LocalError, StreamError};
use quinn::VarInt;

/// A code of HTTP/3's as QUIC carries it.
pub(super) fn code(code: Code) -> VarInt {
    // All of section 8.1's fit.
    VarInt::from_u64(code.value()).unwrap_or(VarInt::MAX)
}

/// What an error on a stream of `connection` means.
pub(super) fn stream_error(what: &'static str, error: &StreamError, connection: &quinn::Connection) -> TransportError {
    let outcome = match error {
        // This end found fault with what the other sent.
        StreamError::StreamError { .. } => Outcome::Protocol,
        StreamError::RemoteTerminate { code, .. } => match *code {
            Code::H3_NO_ERROR => Outcome::Closed,
            Code::H3_FRAME_ERROR | Code::H3_FRAME_UNEXPECTED | Code::H3_MESSAGE_ERROR => Outcome::Protocol,
            _ => Outcome::Reset,
        },
        StreamError::ConnectionError(lost) => return lost_error(what, lost, connection),
        StreamError::HeaderTooBig { .. } => Outcome::TooLarge,
        StreamError::RemoteClosing => Outcome::Closed,
        _ => Outcome::Error,
    };
    TransportError::with(what, outcome, error.to_string())
}

/// What the end of `connection` means.
pub(super) fn lost_error(
    what: &'static str,
    error: &ConnectionError,
    connection: &quinn::Connection,
) -> TransportError {
    if let ConnectionError::Local { error: LocalError::Application { code, .. }, .. } = error
        && *code != Code::H3_NO_ERROR
    {
        return TransportError::with(what, Outcome::Protocol, error.to_string());
    }
    match connection.close_reason() {
        Some(reason) => connection_error(what, &reason),
        None => TransportError::with(what, Outcome::Closed, error.to_string()),
    }
}
