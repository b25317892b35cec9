//! One end of a WebSocket connection (RFC 6455), polled by a task that sends and a task that receives.
//!
//! tungstenite has the rules: of the handshakes, of control frames, of fragments, of closing. A message in one frame does not
//! pass through its buffers, which would copy it twice on its way out and keep it whole, masked, on its way in.

mod errors;
mod opening;
mod sending;

pub(crate) use sending::Leaving;

use super::frame::Header;
use super::mask::{Mask, Masks};
use super::wire::{Carrier, Wire};
use crate::TransportError;
use crate::error::Outcome;
use crate::runtime::halves::Half;
use crate::settings::Payload;
use crate::tls::handshake;
use bytes::Bytes;
use errors::{code, done, error, too_long};
use std::future::{Future, poll_fn};
use std::io::{self, ErrorKind};
use std::pin::pin;
use std::task::{Context, Poll, ready};
use tokio::task::unconstrained;
use tokio_tungstenite::tungstenite::error::ProtocolError;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes, WebSocket};

/// No message may be larger, whatever it is received into.
pub(crate) const LARGEST: usize = 1 << 30;
/// Control frames are that long at most (section 5.5), however short the messages.
const LONGEST_CONTROL: usize = 125;
/// What a message grows by where its place grows with it.
const GROWTH: usize = 64 * 1024;

/// One end of a connection.
pub(crate) struct Socket {
    protocol: WebSocket<Wire>,
    at_server: bool,
    masks: Masks,
    /// A message in one frame, of which the header has come.
    arriving: Option<Arriving>,
    /// One in several has begun.
    fragmented: bool,
    /// tungstenite had something to say, and could not.
    unsaid: bool,
    /// Nothing more can be received, for this reason.
    over: Option<Outcome>,
}

/// A message, received as one.
pub(crate) enum Incoming {
    Text(String),
    Binary(Bytes),
}

/// What was received of a message whose parts can be had.
pub(crate) enum Part {
    /// So many of its bytes.
    Bytes(usize),
    /// All of it: its parts would make no sense alone.
    Whole(Incoming),
}

/// A message that is received in one frame.
struct Arriving {
    kind: Payload,
    mask: Option<Mask>,
    /// Of its bytes: how many are still to come, have come, and are in their place.
    left: usize,
    done: usize,
    placed: usize,
    /// Those in place, where they have no place of the receiver's.
    kept: Vec<u8>,
}

/// What comes next.
enum Next {
    /// A message in one frame: [`Socket::arriving`].
    Arriving,
    /// One that was in several.
    Whole(Incoming),
}

impl Socket {
    fn new(protocol: WebSocket<Wire>, at_server: bool) -> Self {
        Self { protocol, at_server, masks: Masks::new(), arriving: None, fragmented: false, unsaid: false, over: None }
    }

    pub(crate) fn carrier(&self) -> &Carrier {
        self.protocol.get_ref().carrier()
    }

    pub(crate) fn into_carrier(self) -> Carrier {
        self.protocol.into_inner().into_carrier()
    }

    /// The next message, of `limit` bytes at most. `Outcome::Closed` once the other end has closed in an orderly way.
    pub(crate) fn poll_message(
        &mut self,
        context: &mut Context<'_>,
        limit: usize,
    ) -> Poll<Result<Incoming, TransportError>> {
        self.begin_receiving(context)?;
        let error = match ready!(self.poll_next(limit.min(LARGEST))) {
            Ok(Next::Whole(message)) => return Poll::Ready(Ok(message)),
            Ok(Next::Arriving) => match ready!(self.poll_kept()) {
                Ok(message) => return Poll::Ready(Ok(message)),
                Err(e) => e,
            },
            Err(e) => e,
        };
        Poll::Ready(Err(self.end(context, &error)))
    }

    /// Receives the next message into `into`. Polled again after `Poll::Pending`, it must be for the same place, unless
    /// [`Self::keep`] came between.
    pub(crate) fn poll_receive(
        &mut self,
        context: &mut Context<'_>,
        into: &mut [u8],
    ) -> Poll<Result<(usize, Payload), TransportError>> {
        self.begin_receiving(context)?;
        let error = match ready!(self.poll_next(into.len().min(LARGEST))) {
            Ok(Next::Whole(message)) => {
                let (bytes, kind) = message.into_parts();
                // It is no longer than the limit was.
                into[..bytes.len()].copy_from_slice(&bytes);
                return Poll::Ready(Ok((bytes.len(), kind)));
            }
            Ok(Next::Arriving) => match ready!(self.poll_placed(into)) {
                Ok(received) => return Poll::Ready(Ok(received)),
                Err(e) => e,
            },
            Err(e) => e,
        };
        Poll::Ready(Err(self.end(context, &error)))
    }

    /// Keeps what was received in part, for `into` is about to go.
    pub(crate) fn keep(&mut self, into: &[u8]) {
        if let Some(arriving) = &mut self.arriving
            && arriving.kept.is_empty()
        {
            arriving.kept.extend_from_slice(&into[..arriving.placed]);
        }
    }

    /// Receives a part of a message.
    pub(crate) fn poll_some(
        &mut self,
        context: &mut Context<'_>,
        into: &mut [u8],
    ) -> Poll<Result<Part, TransportError>> {
        self.begin_receiving(context)?;
        let error = match ready!(self.poll_next(LARGEST)) {
            Ok(Next::Whole(message)) => return Poll::Ready(Ok(Part::Whole(message))),
            Ok(Next::Arriving) => {
                let parts = self.arriving.as_ref().is_some_and(|m| m.kind == Payload::Binary && m.placed == 0);
                let received = if parts {
                    ready!(self.poll_part(into)).map(Part::Bytes)
                } else {
                    ready!(self.poll_kept()).map(Part::Whole)
                };
                match received {
                    Ok(received) => return Poll::Ready(Ok(received)),
                    Err(e) => e,
                }
            }
            Err(e) => e,
        };
        Poll::Ready(Err(self.end(context, &error)))
    }

    fn begin_receiving(&mut self, context: &Context<'_>) -> Result<(), TransportError> {
        self.protocol.get_mut().set_task(Half::Receiving, context);
        let Some(outcome) = self.over else { return Ok(()) };
        let _ = self.poll_last_words();
        Err(TransportError::with("cannot receive", outcome, "nothing more can be received"))
    }

    /// The header of a message in one frame, or a whole message in several.
    fn poll_next(&mut self, limit: usize) -> Poll<Result<Next, Error>> {
        if self.unsaid {
            self.say()?;
        }
        if let Some(arriving) = &self.arriving {
            // Begun for a receiver that had more room.
            let size = arriving.left + arriving.placed;
            return Poll::Ready(if size <= limit { Ok(Next::Arriving) } else { Err(too_long(size, limit)) });
        }
        loop {
            if self.protocol.get_ref().is_taken() {
                let Some(header) = Header::parse(self.protocol.get_ref().input()) else {
                    if ready!(self.protocol.get_mut().poll_input()) {
                        continue;
                    }
                    return Poll::Ready(Err(self.end_of_input()));
                };
                if let Some(kind) = header.message()
                    && header.mask.is_some() == self.at_server
                    && header.payload_bytes <= limit as u64
                    && !self.fragmented
                    && self.protocol.can_read()
                {
                    self.protocol.get_mut().skip(header.own_bytes);
                    let left = header.payload_bytes as usize;
                    let mask = header.mask;
                    self.arriving = Some(Arriving { kind, mask, left, done: 0, placed: 0, kept: Vec::new() });
                    return Poll::Ready(Ok(Next::Arriving));
                }
                self.fragmented = header.leaves_message_open(self.fragmented);
                self.protocol.get_mut().give(header.payload_bytes.saturating_add(header.own_bytes as u64));
                self.limit(limit);
            }
            match self.protocol.read() {
                Ok(Message::Text(text)) => return arrived(Incoming::Text(text.as_str().to_owned())),
                Ok(Message::Binary(bytes)) => return arrived(Incoming::Binary(bytes)),
                Ok(Message::Close(_)) => return Poll::Ready(Err(Error::ConnectionClosed)),
                // The answer to a ping is to leave now, not when tungstenite next reads.
                Ok(_) => self.say()?,
                Err(Error::Io(e)) if e.kind() == ErrorKind::WouldBlock => {
                    if !self.protocol.get_ref().is_taken() {
                        return Poll::Pending;
                    }
                }
                Err(e) => return Poll::Ready(Err(e)),
            }
        }
    }

    /// Lets tungstenite say what it has to say.
    fn say(&mut self) -> Result<(), Error> {
        match self.protocol.flush() {
            Err(Error::Io(e)) if e.kind() == ErrorKind::WouldBlock => self.unsaid = true,
            result => {
                self.unsaid = false;
                result?;
            }
        }
        Ok(())
    }

    fn limit(&mut self, limit: usize) {
        if self.protocol.get_config().max_message_size != Some(limit) {
            self.protocol.set_config(|config| {
                config.max_message_size = Some(limit);
                config.max_frame_size = Some(limit.max(LONGEST_CONTROL));
            });
        }
    }

    /// Lets the next message pass.
    fn poll_drop_next(&mut self) -> Poll<Result<(), Error>> {
        if let Next::Arriving = ready!(self.poll_next(LARGEST))? {
            let mut waste = [0; 4096];
            while self.arriving.is_some() {
                ready!(self.poll_part(&mut waste))?;
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Why nothing more comes.
    fn end_of_input(&mut self) -> Error {
        match self.protocol.read() {
            Err(e) => e,
            Ok(_) => Error::Protocol(ProtocolError::ResetWithoutClosingHandshake),
        }
    }

    /// The rest of a message, in a place of its own.
    fn poll_kept(&mut self) -> Poll<Result<Incoming, Error>> {
        let Some(arriving) = &mut self.arriving else { return Poll::Ready(Err(Error::AlreadyClosed)) };
        if arriving.kept.capacity() == 0 {
            arriving.kept.reserve_exact(arriving.left);
        }
        while arriving.left > 0 {
            let end = arriving.placed + arriving.left.min(GROWTH);
            if arriving.kept.len() < end {
                arriving.kept.resize(end, 0);
            }
            if ready!(arriving.poll_take(self.protocol.get_mut(), end)) == 0 {
                return Poll::Ready(Err(self.end_of_input()));
            }
        }
        let (kind, mut bytes) = (arriving.kind, std::mem::take(&mut arriving.kept));
        bytes.truncate(arriving.placed);
        self.arriving = None;
        Poll::Ready(match kind {
            Payload::Text => String::from_utf8(bytes).map(Incoming::Text).map_err(Error::from),
            Payload::Binary => Ok(Incoming::Binary(bytes.into())),
        })
    }

    /// The rest of a message, in `into`.
    fn poll_placed(&mut self, into: &mut [u8]) -> Poll<Result<(usize, Payload), Error>> {
        let Some(arriving) = &mut self.arriving else { return Poll::Ready(Err(Error::AlreadyClosed)) };
        if !arriving.kept.is_empty() {
            into[..arriving.placed].copy_from_slice(&arriving.kept[..arriving.placed]);
            arriving.kept = Vec::new();
        }
        while arriving.left > 0 {
            let end = arriving.placed + arriving.left;
            let taken = ready!(arriving.poll_take_into(self.protocol.get_mut(), &mut into[arriving.placed..end]));
            arriving.placed += taken;
            if taken == 0 {
                return Poll::Ready(Err(self.end_of_input()));
            }
        }
        let (length, kind) = (arriving.placed, arriving.kind);
        self.arriving = None;
        if kind == Payload::Text {
            std::str::from_utf8(&into[..length])?;
        }
        Poll::Ready(Ok((length, kind)))
    }

    /// A part of a message.
    fn poll_part(&mut self, into: &mut [u8]) -> Poll<Result<usize, Error>> {
        let Some(arriving) = &mut self.arriving else { return Poll::Ready(Err(Error::AlreadyClosed)) };
        let most = arriving.left.min(into.len());
        let mut taken = 0;
        if most > 0 {
            taken = ready!(arriving.poll_take_into(self.protocol.get_mut(), &mut into[..most]));
            if taken == 0 {
                return Poll::Ready(Err(self.end_of_input()));
            }
        }
        if arriving.left == 0 {
            self.arriving = None;
        }
        Poll::Ready(Ok(taken))
    }

    /// Nothing more can be received, because of `error`.
    fn end(&mut self, context: &mut Context<'_>, error: &Error) -> TransportError {
        let failure = self::error("cannot receive", error);
        self.over = Some(failure.outcome);
        let code = code(error, failure.outcome);
        // The last words are few: where they do not fit, the other end has stopped reading. But a task whose budget of polls is
        // spent would be told so as well, and nobody need poll again.
        let _ = pin!(unconstrained(poll_fn(|_| self.poll_fail(code)))).poll(context);
        failure
    }

    /// Tells the other end that this is the end, and why, as far as it listens.
    fn poll_fail(&mut self, code: Option<CloseCode>) -> Poll<io::Result<()>> {
        let _ = match code {
            Some(code) => self.protocol.close(Some(CloseFrame { code, reason: Utf8Bytes::from_static("") })),
            None => self.protocol.flush(),
        };
        self.poll_last_words()
    }

    /// Sends what is left to be said when all is over.
    fn poll_last_words(&mut self) -> Poll<io::Result<()>> {
        match self.over {
            // The server closes TCP first (section 7.1.1).
            Some(Outcome::Closed) if !self.at_server => self.protocol.get_mut().poll_left(),
            Some(Outcome::Closed | Outcome::Protocol | Outcome::TooLarge) => self.protocol.get_mut().poll_shutdown(),
            _ => Poll::Ready(Ok(())),
        }
    }

    /// Sends the Close frame: nothing more will be sent.
    pub(crate) fn poll_finish(&mut self, context: &Context<'_>) -> Poll<Result<(), TransportError>> {
        self.protocol.get_mut().set_task(Half::Sending, context);
        match self.protocol.close(Some(normal())) {
            // The other end has said so too: what was taken before may not have left yet.
            Err(Error::ConnectionClosed | Error::AlreadyClosed) => {
                let _ = ready!(self.protocol.get_mut().poll_left());
                Poll::Ready(Ok(()))
            }
            result => done("cannot close", result),
        }
    }

    /// The closing handshake, and the orderly end of what is below.
    pub(crate) fn poll_close(&mut self, context: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        let what = "cannot close";
        self.protocol.get_mut().set_task(Half::Receiving, context);
        if self.over.is_none() || self.over == Some(Outcome::Closed) {
            match self.protocol.close(Some(normal())) {
                Err(Error::Io(e)) if e.kind() == ErrorKind::WouldBlock => return Poll::Pending,
                // Whatever else is the matter, reading says.
                _ => {}
            }
            let orderly = loop {
                if self.over.is_some() {
                    break true;
                }
                if let Err(e) = ready!(self.poll_drop_next()) {
                    break matches!(e, Error::ConnectionClosed);
                }
            };
            // The server closes TCP first (section 7.1.1).
            let wire = self.protocol.get_mut();
            while orderly && !self.at_server && ready!(wire.poll_input()) {
                wire.skip(wire.input().len());
            }
        }
        self.protocol.get_mut().poll_shutdown().map(|result| match result.map_err(handshake::failed(what)) {
            // The other end was faster.
            Err(e) if matches!(e.outcome, Outcome::Reset | Outcome::Closed) => Ok(()),
            result => result,
        })
    }
}

impl Incoming {
    pub(crate) fn into_parts(self) -> (Bytes, Payload) {
        match self {
            Self::Text(text) => (text.into(), Payload::Text),
            Self::Binary(bytes) => (bytes, Payload::Binary),
        }
    }
}

impl Arriving {
    /// Takes more of it into the place it keeps, up to `end`.
    fn poll_take(&mut self, wire: &mut Wire, end: usize) -> Poll<usize> {
        let mut kept = std::mem::take(&mut self.kept);
        let taken = self.poll_take_into(wire, &mut kept[self.placed..end]);
        self.kept = kept;
        let taken = ready!(taken);
        self.placed += taken;
        Poll::Ready(taken)
    }

    /// Takes more of it.
    fn poll_take_into(&mut self, wire: &mut Wire, into: &mut [u8]) -> Poll<usize> {
        let taken = ready!(wire.poll_take(into));
        if let Some(mask) = self.mask {
            mask.apply(&mut into[..taken], self.done);
        }
        self.left -= taken;
        self.done += taken;
        Poll::Ready(taken)
    }
}

fn arrived(message: Incoming) -> Poll<Result<Next, Error>> {
    Poll::Ready(Ok(Next::Whole(message)))
}

fn normal() -> CloseFrame {
    CloseFrame { code: CloseCode::Normal, reason: Utf8Bytes::from_static("") }
}
