//! One end of a WebSocket connection, polled by its sender, receiver and closer.

use super::errors::{close_code, error};
use crate::error::Outcome;
use crate::runtime::call::PollDone;
use crate::{Settings, TransportError};
use futures_util::{Sink, Stream};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::handshake::client::Response;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

/// The layer below a WebSocket: TCP, TLS, or either after HTTP.
pub(crate) type Io = Box<dyn ReadWrite>;

pub(crate) trait ReadWrite: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> ReadWrite for T {}

/// tungstenite's own message limit, bytes.
const DEFAULT_MAX_MESSAGE_BYTES: usize = 64 << 20;

pub(crate) fn max_message_bytes(settings: &Settings) -> usize {
    settings.max_message_bytes.unwrap_or(DEFAULT_MAX_MESSAGE_BYTES)
}

/// A message may be one frame.
fn config(max_message_bytes: usize) -> WebSocketConfig {
    WebSocketConfig::default().max_message_size(Some(max_message_bytes)).max_frame_size(Some(max_message_bytes))
}

pub(crate) struct Socket {
    stream: WebSocketStream<Io>,
    /// This end has sent a Close frame, other than in answer to one.
    finished: bool,
    /// The other end has sent one.
    closed: bool,
}

impl Socket {
    /// Upgrades a connection to `host`, asking for `path`.
    pub(crate) async fn client(
        io: Io,
        host: &str,
        path: &str,
        max_message_bytes: usize,
    ) -> Result<Self, TransportError> {
        let what = "cannot upgrade to WebSocket";
        let request = format!("ws://{host}{path}").into_client_request().map_err(|e| error(what, &e))?;
        let upgraded = client_async_with_config(request, io, Some(config(max_message_bytes))).await;
        let (stream, response) = upgraded.map_err(|e| error(what, &e))?;
        if names_extension(&response) {
            let cause = "the server names an extension that it was not asked for";
            return Err(TransportError::with(what, Outcome::Protocol, cause));
        }
        Ok(Self { stream, finished: false, closed: false })
    }

    /// The server's end, after HTTP.
    pub(crate) async fn server(io: Io, max_message_bytes: usize) -> Self {
        let stream = WebSocketStream::from_raw_socket(io, Role::Server, Some(config(max_message_bytes))).await;
        Self { stream, finished: false, closed: false }
    }

    /// Waits until a message can be sent.
    pub(crate) fn poll_ready(&mut self, context: &mut Context<'_>) -> PollDone {
        Pin::new(&mut self.stream).poll_ready(context).map_err(|e| error("cannot send", &e))
    }

    /// Takes a message, after [`Self::poll_ready`].
    pub(crate) fn start_send(&mut self, message: Message) -> Result<(), TransportError> {
        Pin::new(&mut self.stream).start_send(message).map_err(|e| error("cannot send", &e))
    }

    pub(crate) fn poll_flush(&mut self, context: &mut Context<'_>) -> PollDone {
        ready!(Pin::new(&mut self.stream).poll_flush(context)).map_err(|e| error("cannot send", &e))?;
        // A server's tungstenite writes its last Close frame without flushing, so TLS may still keep it.
        Pin::new(self.stream.get_mut()).poll_flush(context).map_err(|e| error("cannot send", &Error::Io(e)))
    }

    /// The next text or binary message. `Outcome::Closed` once the other end has closed in an orderly way.
    pub(crate) fn poll_message(&mut self, context: &mut Context<'_>) -> Poll<Result<Message, TransportError>> {
        while !self.closed {
            match ready!(Pin::new(&mut self.stream).poll_next(context)) {
                Some(Ok(message @ (Message::Text(_) | Message::Binary(_)))) => return Poll::Ready(Ok(message)),
                Some(Ok(Message::Close(_))) => self.closed = true,
                // tungstenite answers pings when it is polled again.
                Some(Ok(_)) => {}
                Some(Err(e)) => {
                    self.fail(context, &e);
                    return Poll::Ready(Err(error("cannot receive", &e)));
                }
                None => break,
            }
        }
        // The answer to the Close frame; it fails when the other end does not wait for it.
        let _ = ready!(self.poll_flush(context));
        Poll::Ready(Err(TransportError::closed("cannot receive")))
    }

    /// Tells the other end about its error (section 7.1.7), which tungstenite leaves to its user.
    fn fail(&mut self, context: &mut Context<'_>, cause: &Error) {
        if let Some(code) = close_code(cause)
            && !std::mem::replace(&mut self.finished, true)
        {
            // An unsent frame may go when this end finishes or closes; it is not required.
            let frame = CloseFrame { code, reason: Utf8Bytes::from_static("") };
            let _ = self.start_send(Message::Close(Some(frame)));
            let _ = self.poll_flush(context);
        }
    }

    /// Sends a Close frame: nothing more will be sent.
    pub(crate) fn poll_finish(&mut self, context: &mut Context<'_>) -> PollDone {
        if !std::mem::replace(&mut self.finished, true) && !self.closed {
            let frame = CloseFrame { code: CloseCode::Normal, reason: Utf8Bytes::from_static("") };
            self.start_send(Message::Close(Some(frame)))?;
        }
        self.poll_flush(context)
    }

    /// The closing handshake, and the orderly end of the layers below. The server closes TCP first (section 7.1.1).
    pub(crate) fn poll_close(&mut self, context: &mut Context<'_>) -> PollDone {
        // Whatever fails here, receiving says why.
        let _ = ready!(self.poll_finish(context));
        while let Some(received) = ready!(Pin::new(&mut self.stream).poll_next(context)) {
            if received.is_err() {
                break;
            }
        }
        // The other end may have been faster.
        let _ = ready!(Pin::new(self.stream.get_mut()).poll_shutdown(context));
        Poll::Ready(Ok(()))
    }
}

/// Section 4.1: a client without requested extensions must not accept one.
fn names_extension(response: &Response) -> bool {
    response.headers().get_all("sec-websocket-extensions").iter().any(|names| !names.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, BufStream, duplex};

    #[tokio::test]
    async fn a_server_flushes_its_answer_to_a_close_frame() {
        let (near, mut far) = duplex(1 << 10);
        // It buffers writes until flushed, as TLS does while its socket is full.
        let mut server = Socket::server(Box::new(BufStream::new(near)), 1 << 10).await;
        // A masked Close frame without a body (section 5.5.1), and an unmasked one as the answer.
        far.write_all(&[0x88, 0x80, 1, 2, 3, 4]).await.unwrap();
        let end = poll_fn(|context| server.poll_message(context)).await.unwrap_err();
        assert_eq!(end.outcome, Outcome::Closed);
        drop(server);
        let mut answer = Vec::new();
        far.read_to_end(&mut answer).await.unwrap();
        assert_eq!(answer, [0x88, 0]);
    }
}
