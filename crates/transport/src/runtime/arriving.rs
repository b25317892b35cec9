//! What a server has of a connection before its handshakes are done, and after.

use crate::TransportError;
use std::pin::Pin;

/// Handshakes, then what comes of them. They are kept here, so that a wait for them can be given up and taken up again.
pub(crate) enum Arriving<T> {
    Coming(Pin<Box<dyn Future<Output = Result<T, TransportError>> + Send>>),
    Up(T),
    Over,
}

impl<T: Clone> Arriving<T> {
    pub(crate) fn new(handshakes: impl Future<Output = Result<T, TransportError>> + Send + 'static) -> Self {
        Self::Coming(Box::pin(handshakes))
    }

    /// What came of the handshakes, once they are done.
    pub(crate) async fn up(&mut self) -> Result<T, TransportError> {
        match self {
            Self::Up(up) => Ok(up.clone()),
            Self::Over => Err(TransportError::closed("cannot accept a stream")),
            Self::Coming(handshakes) => {
                let done = handshakes.await;
                *self = done.as_ref().map_or(Self::Over, |up| Self::Up(up.clone()));
                done
            }
        }
    }

    /// Takes what is up, to be ended.
    pub(crate) fn take(&mut self) -> Option<T> {
        match std::mem::replace(self, Self::Over) {
            Self::Up(up) => Some(up),
            Self::Coming(_) | Self::Over => None,
        }
    }
}
