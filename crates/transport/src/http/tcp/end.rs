//! How a connection ended.

use crate::{Outcome, TransportError};
use std::sync::{Arc, OnceLock};

#[derive(Clone, Default)]
pub(super) struct ConnectionEnd(Arc<OnceLock<(Outcome, String)>>);

impl ConnectionEnd {
    /// Only the first end counts.
    pub(super) fn set(&self, end: Result<(), TransportError>) {
        let _ = self.0.set(match end {
            Ok(()) => (Outcome::Closed, "the connection is closed".into()),
            Err(e) => (e.outcome, e.cause),
        });
    }

    /// This end dropped the connection.
    pub(super) fn set_aborted(&self) {
        self.set(Err(TransportError::with("", Outcome::Reset, "this end dropped the connection")));
    }

    /// The error for a call on an ended connection.
    pub(super) fn error(&self, what: &'static str) -> TransportError {
        match self.0.get() {
            Some((outcome, cause)) => TransportError::with(what, *outcome, cause.clone()),
            None => TransportError::closed(what),
        }
    }
}
