//! How a connection ended.

use crate::{Outcome, TransportError};
use std::sync::{Arc, OnceLock};

/// How a connection ended, once it has.
#[derive(Clone, Default)]
pub(super) struct ConnectionEnd(Arc<OnceLock<(Outcome, String)>>);

impl ConnectionEnd {
    /// The first end that is set is the one that counts.
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

    /// The error of a call that finds the connection ended.
    pub(super) fn error(&self, what: &'static str) -> TransportError {
        match self.0.get() {
            Some((outcome, cause)) => TransportError::with(what, *outcome, cause.clone()),
            None => TransportError::closed(what),
        }
    }
}
