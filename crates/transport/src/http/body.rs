//! Bodies: the unsent rest of an announced one, and a received one as messages or as bytes.

use crate::{Outcome, TransportError};
use bytes::{Buf, Bytes};

/// The body's unsent bytes, if its length was announced.
pub(super) struct Unsent(pub(super) Option<u64>);

impl Unsent {
    /// Counts `bytes` as sent.
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

/// The source of a received body's pieces.
pub(super) trait Source: Send {
    /// The next piece; nothing at the end. No piece is lost when the call is dropped.
    async fn next(&mut self) -> Option<Result<Bytes, TransportError>>;

    /// The bytes still to come, if announced.
    fn unreceived(&self) -> Option<u64>;

    /// Whether the end is already known.
    fn is_ended(&self) -> bool;
}

/// A received body. Dropping a call loses nothing.
pub(super) struct Received<S> {
    state: State<S>,
    /// The rest of a piece larger than the caller's buffer.
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

    /// Receives everything, as one message.
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

    /// Receives the available bytes; zero at its end.
    pub(super) async fn some(&mut self, into: &mut [u8]) -> Result<usize, TransportError> {
        let Some(mut piece) = self.piece().await? else { return Ok(0) };
        let length = piece.len().min(into.len());
        piece.copy_to_slice(&mut into[..length]);
        self.rest = piece;
        Ok(length)
    }

    /// The next piece, never empty.
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
