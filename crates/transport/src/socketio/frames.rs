//! A bidirectional stream of WebTransport, cut into Engine.IO's frames.

use crate::TransportError;
use crate::error::Outcome;
use crate::quic::endpoint;
use crate::quic::endpoint::{ABORTED, connection_error};
use crate::runtime::halves::{Half, both};
use crate::websocket::LARGEST;
use bytes::{Buf, BytesMut};
use crosswind_socketio as io;
use quinn::VarInt;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use web_transport_quinn::proto::error_to_http3;
use web_transport_quinn::{RecvStream, SendStream, Session, SessionError, WebTransportError};

/// What is read at a time.
const READ_BUFFER: usize = 64 * 1024;
/// How long the end of a session may take.
const CLOSING: Duration = Duration::from_secs(1);

pub(super) struct Frames {
    sender: SendStream,
    receiver: RecvStream,
    decoder: io::FrameDecoder,
    read: Vec<u8>,
    left: BytesMut,
    sending: Waker,
    session: Live,
}

/// A session, which ends its connection when it is dropped: its own task would keep that open.
pub(super) struct Live(pub(super) Session);

impl Live {
    pub(super) fn end(&self, code: u32) {
        quinn::Connection::close(&self.0, VarInt::try_from(error_to_http3(code)).unwrap_or_default(), b"");
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.end(0);
    }
}

impl Frames {
    pub(super) fn new(session: Live, (sender, receiver): (SendStream, RecvStream)) -> Self {
        let decoder = io::FrameDecoder::new(LARGEST as u64);
        let sending = Waker::noop().clone();
        Self { sender, receiver, decoder, read: vec![0; READ_BUFFER], left: BytesMut::new(), sending, session }
    }

    pub(super) fn queue(&mut self, payload: &io::Payload) -> Result<(), TransportError> {
        io::encode_frame(payload, &mut self.left)
            .map_err(|e| TransportError::with("cannot send", Outcome::Error, e.to_string()))
    }

    pub(super) fn poll_flush(&mut self, half: Half, context: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        // A stream remembers one task that waits to send.
        let waker = match half {
            Half::Sending => {
                self.sending.clone_from(context.waker());
                self.sending.clone()
            }
            Half::Receiving if self.left.is_empty() => return Poll::Ready(Ok(())),
            Half::Receiving => both(context.waker(), &self.sending),
        };
        let mut context = Context::from_waker(&waker);
        while !self.left.is_empty() {
            let written = ready!(Pin::new(&mut self.sender).poll_write(&mut context, &self.left));
            self.left.advance(written.map_err(|e| error("cannot send", &e))?);
        }
        Poll::Ready(Ok(()))
    }

    pub(super) fn poll_payload(&mut self, context: &mut Context<'_>) -> Poll<Result<io::Payload, TransportError>> {
        let what = "cannot receive";
        loop {
            let frame = self.decoder.poll_frame().map_err(|e| {
                let too_long = matches!(e, io::Error::PayloadTooLong { .. });
                let outcome = if too_long { Outcome::TooLarge } else { Outcome::Protocol };
                TransportError::with(what, outcome, e.to_string())
            })?;
            if let Some(payload) = frame {
                return Poll::Ready(Ok(payload));
            }
            let mut into = ReadBuf::new(&mut self.read);
            ready!(Pin::new(&mut self.receiver).poll_read(context, &mut into)).map_err(|e| error(what, &e))?;
            if into.filled().is_empty() {
                return Poll::Ready(Err(if self.decoder.is_between_frames() {
                    TransportError::closed(what)
                } else {
                    TransportError::with(what, Outcome::Protocol, "the stream ends within a frame")
                }));
            }
            self.decoder.handle_bytes(into.filled());
        }
    }

    pub(super) fn poll_finish(&mut self, context: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        ready!(self.poll_flush(Half::Receiving, context))?;
        // It fails when it has been finished before.
        let _ = self.sender.finish();
        Poll::Ready(Ok(()))
    }

    /// Ends the session, once the other end has what was sent.
    pub(super) async fn close(self) {
        let _ = tokio::time::timeout(CLOSING, self.sender.stopped()).await;
        self.session.0.close(0, b"");
        let _ = tokio::time::timeout(CLOSING, self.session.0.closed()).await;
    }

    pub(super) fn abort(self) {
        self.session.end(ABORTED);
    }
}

fn error(what: &'static str, cause: &std::io::Error) -> TransportError {
    let inner = cause.get_ref();
    if let Some(read) = inner.and_then(|inner| inner.downcast_ref::<quinn::ReadError>()) {
        return match read {
            quinn::ReadError::ConnectionLost(lost) => session_error(what, &lost.clone().into()),
            read => endpoint::read_error(what, read),
        };
    }
    if let Some(write) = inner.and_then(|inner| inner.downcast_ref::<quinn::WriteError>()) {
        return match write {
            quinn::WriteError::ConnectionLost(lost) => session_error(what, &lost.clone().into()),
            write => endpoint::write_error(what, write),
        };
    }
    TransportError::new(what, cause)
}

pub(super) fn session_error(what: &'static str, error: &SessionError) -> TransportError {
    let outcome = match error {
        SessionError::ConnectionError(lost) => return connection_error(what, lost),
        SessionError::WebTransportError(WebTransportError::Closed(0, _)) => Outcome::Closed,
        SessionError::WebTransportError(WebTransportError::Closed(..)) => Outcome::Reset,
        SessionError::WebTransportError(_) | SessionError::SendDatagramError(_) => Outcome::Protocol,
    };
    TransportError::with(what, outcome, error.to_string())
}
