//! A bidirectional WebTransport stream, cut into Engine.IO's frames.

use crate::error::Outcome;
use crate::quic::endpoint::{self, ABORTED, Connected};
use crate::quic::session::Session;
use crate::runtime::call::PollDone;
use crate::webtransport::session::{OpenSession, session_error};
use crate::{Phases, TransportError};
use bytes::{Buf, BytesMut};
use crosswind_socketio::{Error, FrameDecoder, Payload, encode_frame};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use web_transport_quinn::{RecvStream, SendStream};

const READ_SIZE: usize = 64 * 1024;
/// The other end's time limit for receiving everything.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

pub(super) struct Frames {
    sender: SendStream,
    receiver: RecvStream,
    decoder: FrameDecoder,
    read_buffer: Vec<u8>,
    unsent: BytesMut,
    /// Bytes written, the stream's header included.
    sent: u64,
    session: Arc<OpenSession>,
    /// At the client.
    connected: Option<Connected>,
}

impl Frames {
    pub(super) fn new(
        session: Arc<OpenSession>,
        (sender, receiver): (SendStream, RecvStream),
        max_payload_bytes: usize,
        connected: Option<Connected>,
    ) -> Self {
        let decoder = FrameDecoder::new(max_payload_bytes as u64);
        // The client opens the stream, with a header.
        let sent = if connected.is_some() { <Arc<OpenSession>>::STREAM_HEADER } else { 0 };
        let (read_buffer, unsent) = (vec![0; READ_SIZE], BytesMut::new());
        Self { sender, receiver, decoder, read_buffer, unsent, sent, session, connected }
    }

    pub(super) fn start_send(&mut self, payload: &Payload) -> Result<(), TransportError> {
        encode_frame(payload, &mut self.unsent)
            .map_err(|e| TransportError::with("cannot send", Outcome::Error, e.to_string()))
    }

    pub(super) fn poll_flush(&mut self, context: &mut Context<'_>) -> PollDone {
        while !self.unsent.is_empty() {
            let written = ready!(Pin::new(&mut self.sender).poll_write(context, &self.unsent));
            let written = written.map_err(|e| error("cannot send", &e))?;
            self.unsent.advance(written);
            self.sent += written as u64;
        }
        Poll::Ready(Ok(()))
    }

    /// The stream's number, and the bytes written to it.
    pub(super) fn written(&self) -> (u64, u64) {
        (self.sender.quic_id().into(), self.sent)
    }

    pub(super) fn poll_payload(&mut self, context: &mut Context<'_>) -> Poll<Result<Payload, TransportError>> {
        let what = "cannot receive";
        loop {
            let frame = self.decoder.poll_frame().map_err(|e| {
                let too_long = matches!(e, Error::PayloadTooLong { .. });
                let outcome = if too_long { Outcome::TooLarge } else { Outcome::Protocol };
                TransportError::with(what, outcome, e.to_string())
            })?;
            if let Some(payload) = frame {
                return Poll::Ready(Ok(payload));
            }
            let mut into = ReadBuf::new(&mut self.read_buffer);
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

    pub(super) fn poll_finish(&mut self, context: &mut Context<'_>) -> PollDone {
        ready!(self.poll_flush(context))?;
        // It fails when it has been finished before.
        let _ = self.sender.finish();
        Poll::Ready(Ok(()))
    }

    /// Ends the session, once the other end has everything.
    pub(super) async fn close(self) {
        if let Some(connected) = &self.connected {
            connected.await_ticket().await;
        }
        let _ = tokio::time::timeout(CLOSE_TIMEOUT, self.sender.stopped()).await;
        self.session.close().await;
    }

    pub(super) fn abort(self) {
        self.session.end(ABORTED);
    }

    pub(super) fn add_phases(&self, phases: &mut Phases) {
        if let Some(connected) = &self.connected {
            let Phases { security, resumed, early_data, .. } = connected.phases();
            *phases = Phases { security, resumed, early_data, ..*phases };
        }
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
