//! What carries the payloads of a session.

use super::frames::Frames;
use super::polled::{Next, Requests};
use crate::TransportError;
use crate::runtime::halves::Half;
use crate::settings::Payload;
use crate::websocket::{Incoming, Socket};
use crosswind_socketio as io;
use std::task::{Context, Poll, ready};

/// A WebSocket, each message of which is a payload; a stream of WebTransport, cut into frames; or long polling.
pub(super) enum Pipe {
    WebSocket(Box<Socket>),
    WebTransport(Box<Frames>),
    /// Requests of HTTP, until the session moves to a WebSocket.
    Requests(Box<Requests>),
}

impl Pipe {
    /// Takes a payload from a task of `half`, to be sent when flushed.
    pub(super) fn queue(
        &mut self,
        half: Half,
        context: &mut Context<'_>,
        payload: &io::Payload,
    ) -> Result<(), TransportError> {
        match self {
            Self::WebSocket(socket) => {
                let kind = if matches!(payload, io::Payload::Text(_)) { Payload::Text } else { Payload::Binary };
                socket.queue(half, context, payload.as_bytes(), kind)
            }
            Self::WebTransport(frames) => frames.queue(payload),
            Self::Requests(requests) => requests.queue(payload),
        }
    }

    pub(super) fn poll_flush(&mut self, half: Half, context: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        match self {
            Self::WebSocket(socket) => socket.poll_flush(half, context),
            Self::WebTransport(frames) => frames.poll_flush(half, context),
            Self::Requests(requests) => requests.poll_flush(half, context),
        }
    }

    /// The next payload. One longer than `limit` is refused, by WebTransport after it has come.
    pub(super) fn poll_payload(
        &mut self,
        context: &mut Context<'_>,
        limit: usize,
    ) -> Poll<Result<io::Payload, TransportError>> {
        loop {
            let (socket, outbox) = match self {
                Self::WebSocket(socket) => {
                    return Poll::Ready(Ok(match ready!(socket.poll_message(context, limit))? {
                        Incoming::Binary(bytes) => io::Payload::Binary(bytes),
                        Incoming::Text(text) => io::Payload::Text(text),
                    }));
                }
                Self::WebTransport(frames) => return frames.poll_payload(context),
                Self::Requests(requests) => match ready!(requests.poll_payload(context))? {
                    Next::Payload(payload) => return Poll::Ready(Ok(payload)),
                    Next::Moved(socket, outbox) => (socket, outbox),
                },
            };
            *self = Self::WebSocket(socket);
            for payload in outbox {
                self.queue(Half::Receiving, context, &payload)?;
            }
            // What is left of it goes with what is sent next.
            let _ = self.poll_flush(Half::Receiving, context)?;
        }
    }

    /// Tells the other end that nothing more will come.
    pub(super) fn poll_finish(&mut self, context: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        match self {
            Self::WebSocket(socket) => socket.poll_finish(context),
            Self::WebTransport(frames) => frames.poll_finish(context),
            Self::Requests(requests) => {
                requests.finish();
                Poll::Ready(Ok(()))
            }
        }
    }

    /// The orderly end.
    pub(super) fn poll_close(&mut self, context: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        match self {
            Self::WebSocket(socket) => socket.poll_close(context),
            Self::WebTransport(frames) => frames.poll_finish(context),
            Self::Requests(requests) => requests.poll_close(context).map(Ok),
        }
    }
}
