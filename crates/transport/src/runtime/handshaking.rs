//! A server's connection, perhaps still in handshakes.

use crate::TransportError;
use std::pin::Pin;

/// Handshakes in progress, then their result. Their future is kept here, so an interrupted wait can be resumed.
pub(crate) enum Handshaking<T> {
    InProgress(Pin<Box<dyn Future<Output = Result<T, TransportError>> + Send>>),
    Done(T),
    /// The handshakes failed, or the connection was ended.
    Over,
}

impl<T: Clone> Handshaking<T> {
    pub(crate) fn new(handshakes: impl Future<Output = Result<T, TransportError>> + Send + 'static) -> Self {
        Self::InProgress(Box::pin(handshakes))
    }

    /// Waits for the handshakes to be done.
    pub(crate) async fn done(&mut self) -> Result<T, TransportError> {
        match self {
            Self::Done(done) => Ok(done.clone()),
            Self::Over => Err(TransportError::closed("cannot accept a stream")),
            Self::InProgress(handshakes) => {
                let result = handshakes.await;
                *self = result.as_ref().map_or(Self::Over, |done| Self::Done(done.clone()));
                result
            }
        }
    }

    /// The handshakes' result, if done and the connection was not ended.
    pub(crate) fn get(&self) -> Option<&T> {
        match self {
            Self::Done(done) => Some(done),
            Self::InProgress(_) | Self::Over => None,
        }
    }

    /// Takes the handshakes' result, to end it.
    pub(crate) fn take(&mut self) -> Option<T> {
        match std::mem::replace(self, Self::Over) {
            Self::Done(done) => Some(done),
            Self::InProgress(_) | Self::Over => None,
        }
    }
}
