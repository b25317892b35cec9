//! Bodies as hyper sends and receives them.

use super::end::ConnectionEnd;
use super::errors::{self, Abandoned};
use crate::TransportError;
use crate::http::body::{Source, Unsent};
use bytes::Bytes;
use http_body_util::channel::{Channel, Sender};
use http_body_util::{BodyExt, Either, Full};
use hyper::body::{Body, Incoming};

/// A body to send: whole, or in parts.
pub(super) type Outgoing = Either<Full<Bytes>, Channel<Bytes, Abandoned>>;

pub(super) fn empty() -> Outgoing {
    Either::Left(Full::default())
}

pub(super) fn whole(message: &[u8]) -> Outgoing {
    Either::Left(Full::new(Bytes::copy_from_slice(message)))
}

/// A body in parts, and their sender. `length` was announced.
pub(super) fn in_parts(length: Option<u64>, end: &ConnectionEnd) -> (PartSender, Outgoing) {
    // A part waits while hyper sends the one before.
    let (sender, body) = Channel::new(1);
    (PartSender { sender: Some(sender), unsent: Unsent(length), end: end.clone() }, Either::Right(body))
}

/// Sends a body's parts. Dropped before [`PartSender::finish`], it abandons the body.
pub(super) struct PartSender {
    sender: Option<Sender<Bytes, Abandoned>>,
    unsent: Unsent,
    end: ConnectionEnd,
}

impl PartSender {
    pub(super) async fn send(&mut self, part: &[u8]) -> Result<(), TransportError> {
        self.unsent.take(part.len())?;
        match &mut self.sender {
            Some(sender) if !part.is_empty() => {
                let sent = sender.send_data(Bytes::copy_from_slice(part)).await;
                sent.map_err(|_| self.end.error("cannot send"))
            }
            _ => Ok(()),
        }
    }

    /// The body is whole.
    pub(super) fn finish(mut self) -> Result<(), TransportError> {
        self.unsent.end()?;
        self.sender = None;
        Ok(())
    }
}

impl Drop for PartSender {
    fn drop(&mut self) {
        if let Some(sender) = self.sender.take() {
            sender.abort(Abandoned);
        }
    }
}

pub(super) struct FromHyper {
    pub(super) body: Incoming,
    pub(super) end: ConnectionEnd,
}

impl Source for FromHyper {
    async fn next(&mut self) -> Option<Result<Bytes, TransportError>> {
        loop {
            match self.body.frame().await? {
                // Trailers mean nothing here.
                Ok(frame) => {
                    if let Ok(piece) = frame.into_data() {
                        return Some(Ok(piece));
                    }
                }
                Err(e) => return Some(Err(errors::error("cannot receive", &e, &self.end))),
            }
        }
    }

    fn unreceived(&self) -> Option<u64> {
        self.body.size_hint().exact()
    }

    fn is_ended(&self) -> bool {
        self.body.is_end_stream()
    }
}
