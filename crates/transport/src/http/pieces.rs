//! A body on its way in, whatever version it comes by.

use crate::{Outcome, TransportError};
use bytes::{Buf, Bytes};
use std::future::poll_fn;
use std::task::{Context, Poll};

/// Pieces of a body.
pub(super) trait Source: Send {
    /// The next piece.
    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, TransportError>>>;

    /// How many bytes are still to come, if that was said.
    fn left(&self) -> Option<u64>;

    /// Whether it is known by now that nothing more comes.
    fn is_whole(&self) -> bool {
        false
    }
}

/// A body on its way in, of which nothing is lost when a call on it is dropped.
pub(super) struct Arriving<S> {
    state: State<S>,
    /// Of a piece that was larger than what it was to go into.
    rest: Bytes,
}

enum State<S> {
    Coming(S),
    Ended,
    Failed,
}

impl<S: Source> Arriving<S> {
    pub(super) const fn new(source: S) -> Self {
        Self { state: State::Coming(source), rest: Bytes::new() }
    }

    /// Nothing more comes.
    pub(super) const fn is_over(&self) -> bool {
        !matches!(self.state, State::Coming(_))
    }

    /// All of it, as one message.
    pub(super) async fn whole(&mut self, into: &mut [u8]) -> Result<usize, TransportError> {
        let left = match &self.state {
            State::Coming(source) => source.left(),
            State::Ended if !self.rest.is_empty() => Some(0),
            State::Ended | State::Failed => return Err(TransportError::closed("cannot receive")),
        };
        let length = left.map(|left| left.saturating_add(self.rest.len() as u64));
        if length.is_some_and(|length| length > into.len() as u64) {
            return Err(self.too_large());
        }
        let mut filled = 0;
        while let Some(piece) = self.piece().await? {
            let Some(room) = into.get_mut(filled..filled + piece.len()) else { return Err(self.too_large()) };
            room.copy_from_slice(&piece);
            filled += piece.len();
        }
        Ok(filled)
    }

    /// What there is of it; zero at its end.
    pub(super) async fn some(&mut self, into: &mut [u8]) -> Result<usize, TransportError> {
        let Some(mut piece) = self.piece().await? else { return Ok(0) };
        let length = piece.len().min(into.len());
        into[..length].copy_from_slice(&piece[..length]);
        piece.advance(length);
        self.rest = piece;
        Ok(length)
    }

    /// The next piece, never an empty one.
    async fn piece(&mut self) -> Result<Option<Bytes>, TransportError> {
        if !self.rest.is_empty() {
            return Ok(Some(std::mem::take(&mut self.rest)));
        }
        loop {
            let source = match &mut self.state {
                State::Coming(source) => source,
                State::Ended => return Ok(None),
                State::Failed => return Err(TransportError::closed("cannot receive")),
            };
            match poll_fn(|context| source.poll_piece(context)).await {
                Some(Ok(piece)) if piece.is_empty() => {}
                Some(Ok(piece)) => {
                    // To ask once more would cost the connection a turn, only to say so.
                    if source.is_whole() {
                        self.state = State::Ended;
                    }
                    return Ok(Some(piece));
                }
                Some(Err(e)) => {
                    self.state = State::Failed;
                    return Err(e);
                }
                None => self.state = State::Ended,
            }
        }
    }

    fn too_large(&mut self) -> TransportError {
        (self.state, self.rest) = (State::Failed, Bytes::new());
        TransportError::with("cannot receive", Outcome::TooLarge, "the message is larger than was allowed for")
    }
}
