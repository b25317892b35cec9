//! The carrier of a session's payloads.

use super::frames::Frames;
use super::polling_session::PollingPipe;
use crate::TransportError;
use crate::runtime::call::PollDone;
use crate::websocket::Socket;
use crosswind_socketio::Payload;
use std::task::{Context, Poll, ready};
use tokio_tungstenite::tungstenite::Message;

/// A WebSocket with a payload per message; a WebTransport stream, cut into frames; or long polling.
pub(super) enum Pipe {
    WebSocket(Box<Socket>),
    WebTransport(Box<Frames>),
    /// HTTP requests, until the session moves to a WebSocket.
    Polling(Box<PollingPipe>),
}

impl Pipe {
    /// Waits until a payload can be sent.
    pub(super) fn poll_ready(&mut self, context: &mut Context<'_>) -> PollDone {
        match self {
            Self::WebSocket(socket) => socket.poll_ready(context),
            Self::WebTransport(_) | Self::Polling(_) => Poll::Ready(Ok(())),
        }
    }

    /// Takes a payload, after [`Self::poll_ready`].
    pub(super) fn start_send(&mut self, payload: Payload) -> Result<(), TransportError> {
        match self {
            Self::WebSocket(socket) => socket.start_send(match payload {
                Payload::Text(text) => Message::text(text),
                Payload::Binary(bytes) => Message::binary(bytes),
            }),
            Self::WebTransport(frames) => frames.start_send(&payload),
            Self::Polling(polling) => polling.start_send(payload),
        }
    }

    /// Sends the payloads taken.
    pub(super) fn poll_flush(&mut self, context: &mut Context<'_>) -> PollDone {
        match self {
            Self::WebSocket(socket) => socket.poll_flush(context),
            Self::WebTransport(frames) => frames.poll_flush(context),
            Self::Polling(polling) => polling.poll_flush(context),
        }
    }

    pub(super) fn poll_payload(&mut self, context: &mut Context<'_>) -> Poll<Result<Payload, TransportError>> {
        match self {
            Self::WebSocket(socket) => Poll::Ready(Ok(match ready!(socket.poll_message(context))? {
                Message::Text(text) => Payload::Text(text.as_str().to_owned()),
                message => Payload::Binary(message.into_data()),
            })),
            Self::WebTransport(frames) => frames.poll_payload(context),
            Self::Polling(polling) => polling.poll_payload(context),
        }
    }

    /// Tells the other end of the end of sending.
    pub(super) fn poll_finish(&mut self, context: &mut Context<'_>) -> PollDone {
        match self {
            Self::WebSocket(socket) => socket.poll_finish(context),
            Self::WebTransport(frames) => frames.poll_finish(context),
            Self::Polling(polling) => {
                polling.finish();
                Poll::Ready(Ok(()))
            }
        }
    }

    pub(super) fn poll_close(&mut self, context: &mut Context<'_>) -> PollDone {
        match self {
            Self::WebSocket(socket) => socket.poll_close(context),
            Self::WebTransport(frames) => frames.poll_finish(context),
            Self::Polling(polling) => polling.poll_close(context).map(Ok),
        }
    }
}
