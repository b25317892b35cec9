//! A WebTransport session, and its errors as outcomes.

use crate::quic::endpoint::{accept, connection_error, datagram_error};
use crate::{Outcome, TransportError};
use quinn::VarInt;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;
use web_transport_quinn::proto::error_to_http3;
use web_transport_quinn::{ReadError, Request, Session, SessionError, WebTransportError, WriteError};

/// The time limit for ending a session.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// A session, ended when the last handle on it and its streams is dropped.
pub(crate) struct OpenSession(pub(crate) Session);

impl OpenSession {
    pub(crate) fn end(&self, code: u32) {
        let code = VarInt::try_from(error_to_http3(code)).unwrap_or_default();
        quinn::Connection::close(&self.0, code, b"");
    }

    /// The session's orderly end; the other end answers by ending the connection.
    pub(crate) async fn close(&self) {
        self.0.close(0, b"");
        if tokio::time::timeout(CLOSE_TIMEOUT, self.0.closed()).await.is_err() {
            self.end(0);
        }
    }
}

impl Drop for OpenSession {
    fn drop(&mut self) {
        // The library's task for the session would keep the connection open.
        self.end(0);
    }
}

/// Accepts a client's session, whatever its path.
pub(crate) async fn accept_session(incoming: quinn::Incoming) -> Result<Arc<OpenSession>, TransportError> {
    let connection = accept(incoming, true).await?;
    let opened = async { Request::accept(connection.clone()).await?.ok().await };
    let session = opened.await.map_err(|e| opening_error("cannot accept a session", &connection, &e))?;
    Ok(Arc::new(OpenSession(session)))
}

/// Why no session was opened: the connection ended, or the other end does not speak the protocol.
pub(crate) fn opening_error(
    what: &'static str,
    connection: &quinn::Connection,
    error: &impl Display,
) -> TransportError {
    match connection.close_reason() {
        Some(reason) => session_error(what, &reason.into()),
        None => TransportError::with(what, Outcome::Protocol, error.to_string()),
    }
}

pub(crate) fn session_error(what: &'static str, error: &SessionError) -> TransportError {
    let outcome = match error {
        SessionError::ConnectionError(lost) => return connection_error(what, lost),
        SessionError::SendDatagramError(error) => return datagram_error(what, error),
        SessionError::WebTransportError(WebTransportError::Closed(0, _)) => Outcome::Closed,
        SessionError::WebTransportError(WebTransportError::Closed(..)) => Outcome::Reset,
        SessionError::WebTransportError(_) => Outcome::Protocol,
    };
    TransportError::with(what, outcome, error.to_string())
}

pub(super) fn read_error(what: &'static str, error: &ReadError) -> TransportError {
    let outcome = match error {
        ReadError::SessionError(error) => return session_error(what, error),
        ReadError::Reset(_) | ReadError::InvalidReset(_) => Outcome::Reset,
        ReadError::ClosedStream => Outcome::Closed,
        ReadError::IllegalOrderedRead => Outcome::Error,
    };
    TransportError::with(what, outcome, error.to_string())
}

pub(super) fn write_error(what: &'static str, error: &WriteError) -> TransportError {
    let outcome = match error {
        WriteError::SessionError(error) => return session_error(what, error),
        WriteError::Stopped(_) | WriteError::InvalidStopped(_) => Outcome::Reset,
        WriteError::ClosedStream => Outcome::Closed,
    };
    TransportError::with(what, outcome, error.to_string())
}
