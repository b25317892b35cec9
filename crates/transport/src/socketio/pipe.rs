//! What carries the payloads of a session.

use super::frames::Frames;
use crate::TransportError;
use crate::halves::Half;
use crate::settings::Payload;
use crate::websocket::{Incoming, Socket, outgoing};
use bytes::Bytes;
use crosswind_socketio as io;
use std::task::{Context, Poll, ready};

/// A WebSocket, each message of which is a payload; or a stream of WebTransport, cut into frames.
pub(super) enum Pipe {
    WebSocket(Box<Socket>),
    WebTransport(Box<Frames>),
}

impl Pipe {
    /// Takes a payload from a task of `half`, to be sent when flushed.
    pub(super) fn queue(
        &mut self,
        half: Half,
        context: &mut Context<'_>,
        payload: io::Payload,
    ) -> Result<(), TransportError> {
        match self {
            Self::WebSocket(socket) => {
                let message = match payload {
                    io::Payload::Text(text) => outgoing(Bytes::from(text), Payload::Text)?,
                    io::Payload::Binary(bytes) => outgoing(bytes, Payload::Binary)?,
                };
                socket.queue(half, context, message)
            }
            Self::WebTransport(frames) => frames.queue(&payload),
        }
    }

    pub(super) fn poll_flush(&mut self, half: Half, context: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        match self {
            Self::WebSocket(socket) => socket.poll_flush(half, context),
            Self::WebTransport(frames) => frames.poll_flush(half, context),
        }
    }

    /// The next payload. One longer than `limit` is refused, by WebTransport after it has come.
    pub(super) fn poll_payload(
        &mut self,
        context: &mut Context<'_>,
        limit: usize,
    ) -> Poll<Result<io::Payload, TransportError>> {
        match self {
            Self::WebSocket(socket) => {
                let Incoming { bytes, kind } = ready!(socket.poll_message(context, limit))?;
                Poll::Ready(Ok(match kind {
                    Payload::Binary => io::Payload::Binary(bytes),
                    Payload::Text => io::Payload::Text(String::from_utf8_lossy(&bytes).into_owned()),
                }))
            }
            Self::WebTransport(frames) => frames.poll_payload(context),
        }
    }

    /// Tells the other end that nothing more will come.
    pub(super) fn poll_finish(&mut self, context: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        match self {
            Self::WebSocket(socket) => socket.poll_finish(context),
            Self::WebTransport(frames) => frames.poll_finish(context),
        }
    }

    /// The orderly end.
    pub(super) fn poll_close(&mut self, context: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        match self {
            Self::WebSocket(socket) => socket.poll_close(context),
            Self::WebTransport(frames) => frames.poll_finish(context),
        }
    }
}
