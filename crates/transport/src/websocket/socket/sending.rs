//! Messages on their way out.

use super::errors::{done, error};
use super::{Mask, Socket};
use crate::TransportError;
use crate::error::Outcome;
use crate::runtime::halves::Half;
use crate::settings::Payload;
use crate::tls::handshake;
use crate::websocket::frame::Header;
use bytes::Bytes;
use std::io::ErrorKind;
use std::task::{Context, Poll, ready};
use tokio_tungstenite::tungstenite::{Error, Message};

/// Of a message on its way out: what is masked before it is written, and what goes with its header where there is no mask.
const MASKED_PART: usize = 128 * 1024;
const FIRST_PART: usize = 16 * 1024;

/// A message on its way out.
pub(crate) struct Leaving<'a> {
    rest: &'a [u8],
    kind: Payload,
    way: Way,
}

enum Way {
    Unbegun,
    Begun { mask: Option<Mask>, done: usize },
    Written,
}

impl<'a> Leaving<'a> {
    pub(crate) fn new(message: &'a [u8], kind: Payload) -> Self {
        Self { rest: message, kind, way: Way::Unbegun }
    }
}

impl Socket {
    /// Sends a message. Given up in between, it must go to [`Self::leave`].
    pub(crate) fn poll_send(
        &mut self,
        context: &Context<'_>,
        message: &mut Leaving<'_>,
    ) -> Poll<Result<(), TransportError>> {
        let what = "cannot send";
        self.protocol.get_mut().set_task(Half::Sending, context);
        if matches!(message.way, Way::Unbegun) {
            check(message.rest, message.kind)?;
            ready!(self.poll_clear())?;
            self.begin(message)?;
        }
        if let Way::Begun { mask, done } = &mut message.way {
            let wire = self.protocol.get_mut();
            loop {
                ready!(wire.poll_left()).map_err(handshake::failed(what))?;
                if message.rest.is_empty() {
                    break;
                }
                let part = if mask.is_some() {
                    let part = message.rest.len().min(MASKED_PART);
                    wire.stage(&message.rest[..part], *mask, *done);
                    part
                } else {
                    ready!(wire.poll_put(message.rest)).map_err(handshake::failed(what))?
                };
                message.rest = &message.rest[part..];
                *done += part;
            }
            wire.close();
            message.way = Way::Written;
        }
        // What tungstenite had to say meanwhile, and TLS what it holds.
        match self.protocol.flush() {
            Err(Error::ConnectionClosed | Error::AlreadyClosed) => {
                let _ = self.poll_last_words();
                Poll::Ready(Ok(()))
            }
            flushed => done(what, flushed),
        }
    }

    /// Takes the rest of a message, if it was begun: it will be sent with what comes next.
    pub(crate) fn leave(&mut self, message: &Leaving<'_>) {
        if let Way::Begun { mask, done } = message.way {
            let wire = self.protocol.get_mut();
            wire.stage(message.rest, mask, done);
            wire.close();
        }
    }

    /// Takes a message from a task of `half`, to be sent when flushed. It is text if it has to be.
    pub(crate) fn queue(
        &mut self,
        half: Half,
        context: &Context<'_>,
        bytes: &[u8],
        kind: Payload,
    ) -> Result<(), TransportError> {
        self.protocol.get_mut().set_task(half, context);
        let mut message = Leaving::new(bytes, kind);
        match self.poll_clear() {
            Poll::Ready(clear) => clear?,
            // It waits in tungstenite's buffer, behind what is there.
            Poll::Pending => {
                let message = match kind {
                    Payload::Binary => Message::Binary(Bytes::copy_from_slice(bytes)),
                    Payload::Text => Message::Text(String::from_utf8_lossy(bytes).into_owned().into()),
                };
                return match self.protocol.write(message) {
                    // It was taken all the same.
                    Err(Error::Io(e)) if e.kind() == ErrorKind::WouldBlock => Ok(()),
                    result => result.map_err(|e| error("cannot send", &e)),
                };
            }
        }
        self.begin(&mut message)?;
        let wire = self.protocol.get_mut();
        if matches!(message.way, Way::Begun { mask: None, .. })
            && !message.rest.is_empty()
            && let Poll::Ready(put) = wire.poll_put(message.rest)
        {
            message.rest = &message.rest[put.map_err(handshake::failed("cannot send"))?..];
        }
        self.leave(&message);
        Ok(())
    }

    /// Waits until a frame can begin.
    fn poll_clear(&mut self) -> Poll<Result<(), TransportError>> {
        let what = "cannot send";
        if !self.protocol.can_write() {
            return Poll::Ready(Err(TransportError::closed(what)));
        }
        done(what, self.protocol.flush())
    }

    /// Begins a frame, with its header and the first part of `message`.
    fn begin(&mut self, message: &mut Leaving<'_>) -> Result<(), TransportError> {
        let mask = if self.at_server { None } else { Some(self.masks.draw()?) };
        let part = message.rest.len().min(if mask.is_some() { MASKED_PART } else { FIRST_PART });
        let wire = self.protocol.get_mut();
        wire.open();
        wire.stage_header(&Header::whole(message.kind, message.rest.len(), mask));
        wire.stage(&message.rest[..part], mask, 0);
        message.rest = &message.rest[part..];
        message.way = Way::Begun { mask, done: part };
        Ok(())
    }

    pub(crate) fn poll_flush(&mut self, half: Half, context: &Context<'_>) -> Poll<Result<(), TransportError>> {
        self.protocol.get_mut().set_task(half, context);
        done("cannot send", self.protocol.flush())
    }
}

/// Text must be text.
fn check(bytes: &[u8], kind: Payload) -> Result<(), TransportError> {
    match kind {
        Payload::Binary => Ok(()),
        Payload::Text => std::str::from_utf8(bytes)
            .map(|_| ())
            .map_err(|e| TransportError::with("cannot send", Outcome::Error, format!("no text: {e}"))),
    }
}
