//! A body on its way in by HTTP/1.1 or HTTP/2.

use super::errors;
use super::link::Fate;
use crate::TransportError;
use crate::http::pieces::Source;
use bytes::Bytes;
use hyper::body::{Body, Incoming};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// Pieces from hyper.
pub(super) struct FromHyper {
    pub(super) body: Incoming,
    pub(super) fate: Fate,
}

impl Source for FromHyper {
    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, TransportError>>> {
        loop {
            match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                // Trailers say nothing here.
                Some(Ok(frame)) => {
                    if let Ok(piece) = frame.into_data() {
                        return Poll::Ready(Some(Ok(piece)));
                    }
                }
                Some(Err(e)) => return Poll::Ready(Some(Err(errors::error("cannot receive", &e, &self.fate)))),
                None => return Poll::Ready(None),
            }
        }
    }

    fn left(&self) -> Option<u64> {
        self.body.size_hint().exact()
    }

    fn is_whole(&self) -> bool {
        self.body.is_end_stream()
    }
}
