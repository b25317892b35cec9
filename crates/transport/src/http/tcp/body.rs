//! A body on its way out: whole, or in pieces as they are given.

use super::link::Fate;
use crate::TransportError;
use crate::http::body::Left;
use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// A body, as hyper takes it.
pub(super) enum Outgoing {
    Whole(Bytes),
    Pieces(Pieces),
}

impl Outgoing {
    pub(super) const fn empty() -> Self {
        Self::Whole(Bytes::new())
    }

    /// The one copy that is made of a message.
    pub(super) fn whole(message: &[u8]) -> Self {
        Self::Whole(Bytes::copy_from_slice(message))
    }
}

/// A body ended before it was whole, by whoever gave it.
#[derive(Debug, thiserror::Error)]
#[error("the body was given up")]
pub(super) struct GivenUp;

impl Body for Outgoing {
    type Data = Bytes;
    type Error = GivenUp;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        match self.get_mut() {
            Self::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            Self::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Self::Pieces(pieces) => pieces.poll_piece(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_empty(),
            Self::Pieces(pieces) => pieces.shared.lock().is_over(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Pieces(pieces) => pieces.left.map_or_else(SizeHint::new, SizeHint::with_exact),
        }
    }
}

/// Both ends of a body in pieces, `length` long if that is known, on a connection that comes to `fate`.
pub(super) fn pieces(length: Option<u64>, fate: &Fate) -> (Tap, Pieces) {
    let shared = Arc::new(Shared::default());
    (Tap { shared: Arc::clone(&shared), left: Left(length), fate: fate.clone() }, Pieces { shared, left: length })
}

#[derive(Default)]
struct Shared(Mutex<State>);

/// One piece waits at a time: whoever gives them waits for the connection.
#[derive(Default)]
struct State {
    piece: Option<Bytes>,
    /// No further piece comes; `Some(true)` if that is as it should be.
    ended: Option<bool>,
    /// Nobody takes pieces any more.
    unwanted: bool,
    taker: Option<Waker>,
    giver: Option<Waker>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn is_over(&self) -> bool {
        self.piece.is_none() && self.ended == Some(true)
    }

    fn end(&mut self, well: bool) {
        if self.ended.is_none() {
            self.ended = Some(well);
            wake(&mut self.taker);
        }
    }
}

fn wake(waiting: &mut Option<Waker>) {
    if let Some(waker) = waiting.take() {
        waker.wake();
    }
}

/// Where pieces go in. Dropped before [`Tap::finish`], the body is given up.
pub(super) struct Tap {
    shared: Arc<Shared>,
    left: Left,
    fate: Fate,
}

impl Tap {
    /// Gives a piece, when there is room for it.
    pub(super) async fn give(&mut self, part: &[u8]) -> Result<(), TransportError> {
        self.left.take(part.len())?;
        if part.is_empty() {
            return Ok(());
        }
        poll_fn(|context| {
            let mut state = self.shared.lock();
            if state.unwanted {
                return Poll::Ready(Err(self.fate.error("cannot send")));
            }
            if state.piece.is_some() {
                state.giver = Some(context.waker().clone());
                return Poll::Pending;
            }
            state.piece = Some(Bytes::copy_from_slice(part));
            wake(&mut state.taker);
            Poll::Ready(Ok(()))
        })
        .await
    }

    /// The body is whole.
    pub(super) fn finish(&mut self) -> Result<(), TransportError> {
        let end = self.left.end();
        self.shared.lock().end(end.is_ok());
        end
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        self.shared.lock().end(false);
    }
}

/// Where they come out.
pub(super) struct Pieces {
    shared: Arc<Shared>,
    left: Option<u64>,
}

impl Pieces {
    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, GivenUp>>> {
        let mut state = self.shared.lock();
        if let Some(piece) = state.piece.take() {
            wake(&mut state.giver);
            if let Some(left) = &mut self.left {
                *left = left.saturating_sub(piece.len() as u64);
            }
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        match state.ended {
            Some(true) => Poll::Ready(None),
            Some(false) => Poll::Ready(Some(Err(GivenUp))),
            None => {
                state.taker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl Drop for Pieces {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.unwanted = true;
        wake(&mut state.giver);
    }
}
