//! A body received by HTTP/3.

use super::errors::stream_error;
use crate::http::body::Source;
use crate::{Outcome, TransportError};
use bytes::{Buf, Bytes};
use h3::error::StreamError;
use hyper::HeaderMap;
use hyper::header::CONTENT_LENGTH;

/// A stream's receiving half, at either end.
pub(super) trait ReceivingHalf: Send {
    async fn data(&mut self) -> Result<Option<Bytes>, StreamError>;
}

impl ReceivingHalf for h3::client::RequestStream<h3_quinn::RecvStream, Bytes> {
    async fn data(&mut self) -> Result<Option<Bytes>, StreamError> {
        Ok(self.recv_data().await?.map(into_bytes))
    }
}

impl ReceivingHalf for h3::server::RequestStream<h3_quinn::RecvStream, Bytes> {
    async fn data(&mut self) -> Result<Option<Bytes>, StreamError> {
        Ok(self.recv_data().await?.map(into_bytes))
    }
}

fn into_bytes(mut piece: impl Buf) -> Bytes {
    piece.copy_to_bytes(piece.remaining())
}

pub(super) struct FromStream<H> {
    half: H,
    connection: quinn::Connection,
    unreceived: Option<u64>,
}

impl<H> FromStream<H> {
    /// The body behind `headers` on `half`.
    pub(super) fn new(half: H, connection: quinn::Connection, headers: &HeaderMap) -> Self {
        let length = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        Self { half, connection, unreceived: length }
    }
}

impl<H: ReceivingHalf> Source for FromStream<H> {
    async fn next(&mut self) -> Option<Result<Bytes, TransportError>> {
        const WHAT: &str = "cannot receive";
        // RFC 9114, section 4.1.2: a body shorter or longer than announced is malformed.
        let malformed = |cause: &str| Some(Err(TransportError::with(WHAT, Outcome::Protocol, cause)));
        match self.half.data().await {
            Ok(Some(piece)) => {
                if let Some(unreceived) = &mut self.unreceived {
                    let Some(rest) = unreceived.checked_sub(piece.len() as u64) else {
                        return malformed("the body is longer than was announced");
                    };
                    *unreceived = rest;
                }
                Some(Ok(piece))
            }
            Ok(None) if self.unreceived.is_some_and(|unreceived| unreceived > 0) => {
                malformed("the body is shorter than was announced")
            }
            Ok(None) => None,
            Err(e) => Some(Err(stream_error(WHAT, &e, &self.connection))),
        }
    }

    fn unreceived(&self) -> Option<u64> {
        self.unreceived
    }

    /// Only the stream's end tells.
    fn is_ended(&self) -> bool {
        false
    }
}
