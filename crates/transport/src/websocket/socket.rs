//! One end of a WebSocket connection (RFC 6455), polled by a task that sends and a task that receives.
//!
//! tungstenite has the rules: of the handshakes, of control frames, of fragments, of closing. A message in one frame does not
//! pass through its buffers, which would copy it twice on its way out and keep it whole, masked, on its way in.

use super::frame::{Header, Mask, Masks};
use super::wire::{Carrier, Wire};
use crate::error::Outcome;
use crate::halves::Half;
use crate::settings::Payload;
use crate::{TransportError, secure};
use bytes::Bytes;
use std::borrow::BorrowMut;
use std::future::{Future, poll_fn};
use std::io::{self, ErrorKind};
use std::pin::pin;
use std::task::{Context, Poll, ready};
use tokio::task::unconstrained;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::error::{CapacityError, ProtocolError};
use tokio_tungstenite::tungstenite::handshake::client::{ClientHandshake, Response};
use tokio_tungstenite::tungstenite::handshake::server::{NoCallback, ServerHandshake};
use tokio_tungstenite::tungstenite::handshake::{HandshakeError, HandshakeRole, MidHandshake};
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes, WebSocket};

/// No message may be larger, whatever it is received into.
pub(crate) const LARGEST: usize = 1 << 30;
/// Control frames are that long at most (section 5.5), however short the messages.
const LONGEST_CONTROL: usize = 125;
/// tungstenite's: what passes through it is small.
const READ_BUFFER: usize = 4 * 1024;
/// Of a message on its way out: what is masked before it is written, and what goes with its header where there is no mask.
const MASKED_PART: usize = 128 * 1024;
const FIRST_PART: usize = 16 * 1024;
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

/// What comes next.
enum Next {
    /// A message in one frame: [`Socket::arriving`].
    Arriving,
    /// One that was in several.
    Whole(Incoming),
}

impl Socket {
    /// Upgrades a connection to `host`, asking for `path`.
    pub(crate) async fn client(carrier: Carrier, host: &str, path: &str) -> Result<Self, TransportError> {
        let what = "cannot upgrade to WebSocket";
        let failed = |e| error(what, &e);
        let request = format!("ws://{host}{path}").into_client_request().map_err(failed)?;
        let handshake = ClientHandshake::start(Wire::new(carrier), request, Some(config())).map_err(failed)?;
        let (mut protocol, response) = shake_hands(handshake).await.map_err(failed)?;
        protocol.get_mut().shaken();
        if names_extension(&response) {
            let cause = "the server names an extension that it was not asked for";
            return Err(TransportError::with(what, Outcome::Protocol, cause));
        }
        Ok(Self::new(protocol, false))
    }

    /// Waits for the client to upgrade the connection, whatever path it asks for.
    pub(crate) async fn server(carrier: Carrier) -> Result<Self, TransportError> {
        let mut wire = Wire::new(carrier);
        // Only lent: what it refuses, it drops without an answer.
        if let Err(e) = shake_hands(ServerHandshake::start(&mut wire, NoCallback, None)).await {
            if let Some(refusal) = refusal(&e) {
                wire.refuse(refusal).await;
            }
            return Err(error("cannot upgrade to WebSocket", &e));
        }
        wire.shaken();
        let protocol = WebSocket::from_raw_socket(wire, Role::Server, Some(config()));
        Ok(Self::new(protocol, true))
    }

    /// A connection upgraded by HTTP; `read` is what the client sent since.
    pub(crate) fn upgraded(carrier: Carrier, read: Vec<u8>) -> Self {
        let wire = Wire::upgraded(carrier, read);
        Self::new(WebSocket::from_raw_socket(wire, Role::Server, Some(config())), true)
    }

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
                ready!(wire.poll_left()).map_err(secure::failed(what))?;
                if message.rest.is_empty() {
                    break;
                }
                let part = if mask.is_some() {
                    let part = message.rest.len().min(MASKED_PART);
                    wire.stage(&message.rest[..part], *mask, *done);
                    part
                } else {
                    ready!(wire.poll_put(message.rest)).map_err(secure::failed(what))?
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
            message.rest = &message.rest[put.map_err(secure::failed("cannot send"))?..];
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
        self.protocol.get_mut().poll_shutdown().map(|result| match result.map_err(secure::failed(what)) {
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

fn too_long(size: usize, max_size: usize) -> Error {
    Error::Capacity(CapacityError::MessageTooLong { size, max_size })
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

fn normal() -> CloseFrame {
    CloseFrame { code: CloseCode::Normal, reason: Utf8Bytes::from_static("") }
}

fn config() -> WebSocketConfig {
    WebSocketConfig::default().read_buffer_size(READ_BUFFER)
}

fn done(what: &'static str, result: Result<(), Error>) -> Poll<Result<(), TransportError>> {
    match result {
        Err(Error::Io(e)) if e.kind() == ErrorKind::WouldBlock => Poll::Pending,
        result => Poll::Ready(result.map_err(|e| error(what, &e))),
    }
}

/// What is said to the other end about `error`, which had `outcome` (section 7.4.1).
fn code(error: &Error, outcome: Outcome) -> Option<CloseCode> {
    match (error, outcome) {
        (Error::Utf8(_), _) => Some(CloseCode::Invalid),
        (_, Outcome::Protocol) => Some(CloseCode::Protocol),
        (_, Outcome::TooLarge) => Some(CloseCode::Size),
        _ => None,
    }
}

/// Section 4.1: a client that asked for none must not take one.
fn names_extension(response: &Response) -> bool {
    response.headers().get_all("sec-websocket-extensions").iter().any(|names| !names.is_empty())
}

/// The answer to a handshake that was refused for `error` (sections 4.2.1 and 4.4), unless nobody is left to hear it.
fn refusal(error: &Error) -> Option<&'static str> {
    match error {
        Error::Io(_) | Error::Protocol(ProtocolError::HandshakeIncomplete) => None,
        Error::Protocol(ProtocolError::MissingSecWebSocketVersionHeader) => Some(
            "HTTP/1.1 426 Upgrade Required\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
             Connection: Upgrade, close\r\nContent-Length: 0\r\n\r\n",
        ),
        _ => Some("HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"),
    }
}

/// Goes through the opening handshake.
async fn shake_hands<R>(handshake: MidHandshake<R>) -> Result<R::FinalResult, Error>
where
    R: HandshakeRole,
    R::InternalStream: BorrowMut<Wire>,
{
    let mut handshake = Some(handshake);
    poll_fn(|context| {
        let Some(mut under_way) = handshake.take() else { return Poll::Ready(Err(Error::AlreadyClosed)) };
        under_way.get_mut().get_mut().borrow_mut().set_task(Half::Receiving, context);
        match under_way.handshake() {
            Ok(result) => Poll::Ready(Ok(result)),
            Err(HandshakeError::Interrupted(under_way)) => {
                handshake = Some(under_way);
                Poll::Pending
            }
            Err(HandshakeError::Failure(e)) => Poll::Ready(Err(e)),
        }
    })
    .await
}

fn error(what: &'static str, cause: &Error) -> TransportError {
    let outcome = match cause {
        Error::Io(e) => return secure::error(what, e),
        Error::ConnectionClosed
        | Error::AlreadyClosed
        | Error::Protocol(ProtocolError::SendAfterClosing | ProtocolError::HandshakeIncomplete) => Outcome::Closed,
        Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => Outcome::Reset,
        Error::Capacity(CapacityError::MessageTooLong { .. }) | Error::WriteBufferFull(_) => Outcome::TooLarge,
        _ => Outcome::Protocol,
    };
    TransportError::with(what, outcome, cause.to_string())
}
