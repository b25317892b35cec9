//! What errors of HTTP/1.1 and HTTP/2 mean for an exchange.

use super::end::ConnectionEnd;
use super::version::Version;
use crate::tls::handshake;
use crate::{Outcome, TransportError};
use std::error::Error;
use std::io::{self, ErrorKind};

/// A body that its sender gave up before it was whole.
#[derive(Debug, thiserror::Error)]
#[error("the body was given up")]
pub(super) struct Abandoned;

/// The error of a request, on a connection that may have come to its `end`.
pub(super) fn error(what: &'static str, cause: &hyper::Error, end: &ConnectionEnd) -> TransportError {
    // Some errors only say that the connection has ended, not why.
    let ended = cause.is_canceled() || cause.is_closed() || is_task_dropped(cause);
    match below(what, cause) {
        Some(error) => error,
        None if ended => end.error(what),
        None => of_hyper(what, cause),
    }
}

/// How a connection ended, whose task had this result.
pub(super) fn end(result: hyper::Result<()>, version: Version) -> Result<(), TransportError> {
    match result {
        // The other end of HTTP/2 has closed in an orderly way, before it had read the last frames, which only keep the connection
        // in order. Every request that this cut off has its own error.
        Err(e) if version == Version::Http2 && is_broken_pipe(&e) => Ok(()),
        result => result.map_err(|e| meaning("", &e)),
    }
}

/// The error by itself.
pub(super) fn meaning(what: &'static str, cause: &hyper::Error) -> TransportError {
    below(what, cause).unwrap_or_else(|| of_hyper(what, cause))
}

/// Whether the task that drives the connection was dropped. hyper calls that an error of the user, like a body that was given up.
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

/// An error of what hyper works with.
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
    // hyper's error for a body whose chunks make no sense.
    if cause.kind() == ErrorKind::InvalidInput {
        return TransportError::with(what, Outcome::Protocol, cause.to_string());
    }
    handshake::error(what, cause)
}

/// A stream that was reset, or a connection that has ended (RFC 9113, section 7).
fn of_h2(what: &'static str, cause: &h2::Error) -> TransportError {
    if let Some(io) = cause.get_io() {
        // h2 keeps the kind of the kernel's error, not its number. Only the kernel's comes from there.
        if io.kind() == ErrorKind::TimedOut {
            return TransportError::with(what, Outcome::Reset, io.to_string());
        }
        return of_io(what, io);
    }
    let outcome = match cause.reason() {
        // This end found fault with what the other sent.
        Some(_) if cause.is_library() => Outcome::Protocol,
        Some(h2::Reason::NO_ERROR) => Outcome::Closed,
        Some(h2::Reason::CANCEL | h2::Reason::REFUSED_STREAM | h2::Reason::INTERNAL_ERROR) => Outcome::Reset,
        Some(_) => Outcome::Protocol,
        None => Outcome::Error,
    };
    TransportError::with(what, outcome, cause.to_string())
}
