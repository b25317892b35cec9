//! A body on its way out: whether it is as long as was announced.

use crate::{Outcome, TransportError};

/// How much of a body is still to be given, if that was said.
pub(super) struct Left(pub(super) Option<u64>);

impl Left {
    /// `bytes` more of it.
    pub(super) fn take(&mut self, bytes: usize) -> Result<(), TransportError> {
        if let Some(left) = &mut self.0 {
            *left = left.checked_sub(bytes as u64).ok_or_else(|| {
                TransportError::with("cannot send", Outcome::TooLarge, "it is more than was announced")
            })?;
        }
        Ok(())
    }

    /// That was all.
    pub(super) fn end(&self) -> Result<(), TransportError> {
        match self.0 {
            None | Some(0) => Ok(()),
            Some(_) => Err(TransportError::with("cannot finish", Outcome::Error, "it is less than was announced")),
        }
    }
}
