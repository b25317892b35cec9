//! Bodies: how much of one that is sent was announced, and one that is received as messages or as bytes.

use crate::{Outcome, TransportError};
use bytes::{Buf, Bytes};

/// How much of a body is still to be sent, if its length was announced.
pub(super) struct Unsent(pub(super) Option<u64>);

impl Unsent {
    /// `bytes` of it are sent.
    pub(super) fn take(&mut self, bytes: usize) -> Result<(), TransportError> {
        if let Some(unsent) = &mut self.0 {
            *unsent = unsent.checked_sub(bytes as u64).ok_or_else(|| {
                TransportError::with("cannot send", Outcome::TooLarge, "it is more than was announced")
            })?;
        }
        Ok(())
    }

    /// Nothing more is sent.
    pub(super) fn end(&self) -> Result<(), TransportError> {
        match self.0 {
            None | Some(0) => Ok(()),
            Some(_) => Err(TransportError::with("cannot finish", Outcome::Error, "it is less than was announced")),
        }
    }
}

/// Where the pieces of a received body come from.
pub(super) trait Source: Send {
    /// The next piece; nothing at the end. No piece is lost when the call is dropped.
    async fn next(&mut self) -> Option<Result<Bytes, TransportError>>;

    /// How many bytes are still to come, if that was announced.
    fn unreceived(&self) -> Option<u64>;

    /// Whether it is already known that nothing more will come.
    fn is_ended(&self) -> bool;
}

/// A body that is received. Nothing of it is lost when a call is dropped.
pub(super) struct Received<S> {
    state: State<S>,
    /// The rest of a piece that was larger than the buffer it was to go into.
    rest: Bytes,
}

enum State<S> {
    Receiving(S),
    Ended,
    Failed,
}

impl<S: Source> Received<S> {
    pub(super) const fn new(source: S) -> Self {
        Self { state: State::Receiving(source), rest: Bytes::new() }
    }

    /// Nothing more will be received.
    pub(super) const fn is_over(&self) -> bool {
        !matches!(self.state, State::Receiving(_))
    }

    /// Receives all of it, as one message.
    pub(super) async fn message(&mut self, into: &mut [u8]) -> Result<usize, TransportError> {
        let unreceived = match &self.state {
            State::Receiving(source) => source.unreceived(),
            State::Ended if !self.rest.is_empty() => Some(0),
            State::Ended | State::Failed => return Err(TransportError::closed("cannot receive")),
        };
        let length = unreceived.map(|unreceived| unreceived.saturating_add(self.rest.len() as u64));
        if length.is_some_and(|length| length > into.len() as u64) {
            return Err(self.too_large());
        }
        let mut filled = 0;
        while let Some(piece) = self.piece().await? {
            let Some(place) = into.get_mut(filled..filled + piece.len()) else { return Err(self.too_large()) };
            place.copy_from_slice(&piece);
            filled += piece.len();
        }
        Ok(filled)
    }

    /// Receives what there is of it; zero bytes at its end.
    pub(super) async fn some(&mut self, into: &mut [u8]) -> Result<usize, TransportError> {
        let Some(mut piece) = self.piece().await? else { return Ok(0) };
        let length = piece.len().min(into.len());
        piece.copy_to_slice(&mut into[..length]);
        self.rest = piece;
        Ok(length)
    }

    /// The next piece, which is never empty.
    async fn piece(&mut self) -> Result<Option<Bytes>, TransportError> {
        if !self.rest.is_empty() {
            return Ok(Some(std::mem::take(&mut self.rest)));
        }
        loop {
            let source = match &mut self.state {
                State::Receiving(source) => source,
                State::Ended => return Ok(None),
                State::Failed => return Err(TransportError::closed("cannot receive")),
            };
            match source.next().await {
                Some(Ok(piece)) if piece.is_empty() => {}
                Some(Ok(piece)) => {
                    if source.is_ended() {
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
