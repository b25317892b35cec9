//! A body on its way in by HTTP/3.

use super::errors::stream_error;
use crate::http::pieces::Source;
use crate::{Outcome, TransportError};
use bytes::{Buf, Bytes};
use h3::error::StreamError;
use hyper::HeaderMap;
use hyper::header::CONTENT_LENGTH;
use std::task::{Context, Poll, ready};

/// The receiving half of a stream, of either end.
pub(super) trait Half: Send {
    fn poll_data(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, StreamError>>;
}

impl Half for h3::client::RequestStream<h3_quinn::RecvStream, Bytes> {
    fn poll_data(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, StreamError>> {
        self.poll_recv_data(context).map_ok(|piece| piece.map(taken))
    }
}

impl Half for h3::server::RequestStream<h3_quinn::RecvStream, Bytes> {
    fn poll_data(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, StreamError>> {
        self.poll_recv_data(context).map_ok(|piece| piece.map(taken))
    }
}

fn taken(mut piece: impl Buf) -> Bytes {
    piece.copy_to_bytes(piece.remaining())
}

/// Pieces from QUIC.
pub(super) struct FromQuic<H> {
    half: H,
    connection: quinn::Connection,
    left: Option<u64>,
}

impl<H> FromQuic<H> {
    /// What follows `headers` on `half`.
    pub(super) fn new(half: H, connection: quinn::Connection, headers: &HeaderMap) -> Self {
        let length = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        Self { half, connection, left: length }
    }
}

impl<H: Half> Source for FromQuic<H> {
    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, TransportError>>> {
        const WHAT: &str = "cannot receive";
        // RFC 9114, section 4.1.2: a body of another length than was announced is malformed.
        let malformed = |cause: &str| Poll::Ready(Some(Err(TransportError::with(WHAT, Outcome::Protocol, cause))));
        match ready!(self.half.poll_data(context)) {
            Ok(Some(piece)) => {
                if let Some(left) = &mut self.left {
                    let Some(less) = left.checked_sub(piece.len() as u64) else {
                        return malformed("the body is longer than was announced");
                    };
                    *left = less;
                }
                Poll::Ready(Some(Ok(piece)))
            }
            Ok(None) if self.left.is_some_and(|left| left > 0) => malformed("the body is shorter than was announced"),
            Ok(None) => Poll::Ready(None),
            Err(e) => Poll::Ready(Some(Err(stream_error(WHAT, &e, &self.connection)))),
        }
    }

    fn left(&self) -> Option<u64> {
        self.left
    }
}
