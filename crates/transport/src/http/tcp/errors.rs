//! HTTP/1.1 and HTTP/2 errors as outcomes.

use super::end::ConnectionEnd;
use super::version::Version;
use crate::tls::handshake;
use crate::{Outcome, TransportError};
use std::error::Error;
use std::io::{self, ErrorKind};

/// A body abandoned by its sender.
#[derive(Debug, thiserror::Error)]
#[error("the body was given up")]
pub(super) struct Abandoned;

/// A request's error, on a connection perhaps at its `end`.
pub(super) fn error(what: &'static str, cause: &hyper::Error, end: &ConnectionEnd) -> TransportError {
    // Some errors only report the connection's end, not the reason.
    let ended = cause.is_canceled() || cause.is_closed() || is_task_dropped(cause);
    match below(what, cause) {
        Some(error) => error,
        None if ended => end.error(what),
        None => of_hyper(what, cause),
    }
}

/// A connection's end, from its task's result.
pub(super) fn end(result: hyper::Result<()>, version: Version) -> Result<(), TransportError> {
    match result {
        // An HTTP/2 peer closed in order before reading the last control frames. Requests cut off have their own
        // errors.
        Err(e) if version == Version::Http2 && is_broken_pipe(&e) => Ok(()),
        result => result.map_err(|e| meaning("", &e)),
    }
}

/// The error by itself.
pub(super) fn meaning(what: &'static str, cause: &hyper::Error) -> TransportError {
    below(what, cause).unwrap_or_else(|| of_hyper(what, cause))
}

/// Whether the connection's task was dropped. hyper calls that a user error, like an abandoned body.
fn is_task_dropped(cause: &hyper::Error) -> bool {
    let abandoned = cause.source().and_then(|source| source.downcast_ref::<Abandoned>());
    cause.is_user() && abandoned.is_none()
}

fn sources(cause: &hyper::Error) -> impl Iterator<Item = &(dyn Error + 'static)> {
    std::iter::successors(cause.source(), |&inner| inner.source())
}

fn is_broken_pipe(cause: &hyper::Error) -> bool {
    let io = sources(cause).find_map(|inner| {
        inner.downcast_ref::<io::Error>().or_else(|| inner.downcast_ref::<h2::Error>().and_then(h2::Error::get_io))
    });
    io.is_some_and(|e| e.kind() == ErrorKind::BrokenPipe)
}

/// An error from a layer below hyper.
fn below(what: &'static str, cause: &hyper::Error) -> Option<TransportError> {
    sources(cause).find_map(|inner| match (inner.downcast_ref::<io::Error>(), inner.downcast_ref::<h2::Error>()) {
        (Some(io), _) => Some(of_io(what, io)),
        (_, Some(h2)) => Some(of_h2(what, h2)),
        (None, None) => None,
    })
}

fn of_hyper(what: &'static str, cause: &hyper::Error) -> TransportError {
    let outcome = if cause.is_incomplete_message() || cause.is_canceled() || cause.is_closed() {
        Outcome::Closed
    } else if cause.is_timeout() {
        Outcome::Timeout
    } else if cause.is_user() {
        Outcome::Error
    } else {
        Outcome::Protocol
    };
    TransportError::with(what, outcome, cause.to_string())
}

fn of_io(what: &'static str, cause: &io::Error) -> TransportError {
    // hyper's error for malformed chunks.
    if cause.kind() == ErrorKind::InvalidInput {
        return TransportError::with(what, Outcome::Protocol, cause.to_string());
    }
    handshake::error(what, cause)
}

/// A reset stream, or an ended connection (RFC 9113, section 7).
fn of_h2(what: &'static str, cause: &h2::Error) -> TransportError {
    if let Some(io) = cause.get_io() {
        // h2 keeps the kernel error's kind, not its number. This kind comes only from the kernel.
        if io.kind() == ErrorKind::TimedOut {
            return TransportError::with(what, Outcome::Reset, io.to_string());
        }
        return of_io(what, io);
    }
    let outcome = match cause.reason() {
        // This end found a protocol violation.
        Some(_) if cause.is_library() => Outcome::Protocol,
        Some(h2::Reason::NO_ERROR) => Outcome::Closed,
        Some(h2::Reason::CANCEL | h2::Reason::REFUSED_STREAM | h2::Reason::INTERNAL_ERROR) => Outcome::Reset,
        Some(_) => Outcome::Protocol,
        None => Outcome::Error,
    };
    TransportError::with(what, outcome, cause.to_string())
}
