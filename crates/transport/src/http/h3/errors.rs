//! HTTP/3 errors as outcomes.

use crate::quic::endpoint::connection_error;
use crate::{Outcome, TransportError};
use h3::error::{Code, ConnectionError, LocalError, StreamError};
use quinn::VarInt;

/// An HTTP/3 code in QUIC's encoding.
pub(super) fn code(code: Code) -> VarInt {
    // All codes in section 8.1 fit.
    VarInt::from_u64(code.value()).unwrap_or(VarInt::MAX)
}

/// The outcome of a stream error on `connection`.
pub(super) fn stream_error(what: &'static str, error: &StreamError, connection: &quinn::Connection) -> TransportError {
    let outcome = match error {
        // This end found a protocol violation.
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
