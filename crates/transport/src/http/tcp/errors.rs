//! What errors of HTTP mean for an exchange.

use super::Version;
use super::body::GivenUp;
use super::link::Fate;
use crate::tls::handshake;
use crate::{Outcome, TransportError};
use std::error::Error;
use std::io::{self, ErrorKind};

/// `cause` on a connection that came to `fate`, if it is over.
pub(super) fn error(what: &'static str, cause: &hyper::Error, fate: &Fate) -> TransportError {
    // Some only say that the connection is over, not why.
    let over = cause.is_canceled() || cause.is_closed() || is_dropped(cause);
    below(what, cause).unwrap_or_else(|| if over { fate.error(what) } else { of_hyper(what, cause) })
}

/// How a connection came to its `fate`.
pub(super) fn end(result: hyper::Result<()>, version: Version, fate: &Fate) -> Result<(), TransportError> {
    match result {
        // On Linux it breaks so for who still writes to an end that has said it is done, and closed. With nothing under way
        // that was orderly: what comes too late are frames that only keep the connection in order. In HTTP/1.1 there are none:
        // there hyper has passed over a reset before.
        Err(e) if version == Version::Two && fate.is_idle() && is_broken_pipe(&e) => Ok(()),
        result => result.map_err(|e| meaning("", &e)),
    }
}

fn is_broken_pipe(cause: &hyper::Error) -> bool {
    let mut source = cause.source();
    while let Some(inner) = source {
        let io = inner.downcast_ref::<io::Error>();
        let io = io.or_else(|| inner.downcast_ref::<h2::Error>().and_then(h2::Error::get_io));
        if let Some(io) = io {
            return io.kind() == ErrorKind::BrokenPipe;
        }
        source = inner.source();
    }
    false
}

/// `cause` by itself.
pub(super) fn meaning(what: &'static str, cause: &hyper::Error) -> TransportError {
    below(what, cause).unwrap_or_else(|| of_hyper(what, cause))
}

/// Whether the task that drives the connection was dropped, for which hyper has no other word than that it is not its fault.
fn is_dropped(cause: &hyper::Error) -> bool {
    let given_up = cause.source().and_then(|source| source.downcast_ref::<GivenUp>());
    cause.is_user() && given_up.is_none()
}

/// An error of what hyper works with.
fn below(what: &'static str, cause: &hyper::Error) -> Option<TransportError> {
    let mut source = cause.source();
    while let Some(inner) = source {
        if let Some(io) = inner.downcast_ref::<io::Error>() {
            return Some(of_io(what, io));
        }
        if let Some(two) = inner.downcast_ref::<h2::Error>() {
            return Some(of_two(what, two));
        }
        source = inner.source();
    }
    None
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
    // So hyper calls a body whose chunks make no sense.
    if cause.kind() == ErrorKind::InvalidInput {
        return TransportError::with(what, Outcome::Protocol, cause.to_string());
    }
    handshake::error(what, cause)
}

/// A stream that was reset, or a connection that is over (RFC 9113, section 7).
fn of_two(what: &'static str, cause: &h2::Error) -> TransportError {
    if let Some(io) = cause.get_io() {
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
