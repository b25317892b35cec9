//! The client's part of HTTP long polling: opens a session and joins the namespace, before it moves to WebSocket.

use super::opening::{PATH, protocol_error};
use crate::TransportError;
use crate::error::Outcome;
use crate::runtime::tasks::Tasks;
use bytes::Bytes;
use crosswind_socketio::{Handshake, MessageDecoder, MessageKind, Packet, Payload, decode_polling, encode_polling};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

const MAX_RESPONSE_BYTES: usize = 16 << 20;
const WHAT: &str = "cannot open a session by polling";

/// A client's result of polling.
pub(super) struct Polled {
    /// Its id in the namespace.
    pub(super) socket_sid: String,
    /// The server's other payloads, in order: pings, and messages after the id. They belong to the session.
    pub(super) rest: Vec<Payload>,
}

/// A session by polling, on one connection.
pub(super) struct PollingClient {
    sender: http1::SendRequest<Full<Bytes>>,
    _tasks: Tasks,
    host: String,
}

impl PollingClient {
    pub(super) async fn new(stream: TcpStream, host: String) -> Result<Self, TransportError> {
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(|e| failed(&e))?;
        let mut tasks = Tasks::default();
        tasks.spawn(async move {
            // Requests fail with the reason.
            let _ = connection.await;
        });
        Ok(Self { sender, _tasks: tasks, host })
    }

    /// Asks for a session.
    pub(super) async fn open(&mut self) -> Result<Handshake, TransportError> {
        let body = self.request(Method::GET, "", String::new()).await?;
        match decode_polling(&body).next().transpose().map_err(protocol_error(WHAT))? {
            Some(payload) => match Packet::parse(&payload).map_err(protocol_error(WHAT))? {
                Packet::Open(json) => Handshake::parse(json).map_err(protocol_error(WHAT)),
                other => Err(unexpected(other)),
            },
            None => Err(TransportError::with(WHAT, Outcome::Protocol, "an empty answer")),
        }
    }

    /// Joins the namespace. Afterwards no poll is under way: the server holds its output until the session has moved.
    pub(super) async fn join(&mut self, sid: &str) -> Result<Polled, TransportError> {
        let query = format!("&sid={sid}");
        let join = encode_polling(&[Packet::Message("0")]).map_err(protocol_error(WHAT))?;
        self.request(Method::POST, &query, join).await?;
        let (mut socket_sid, mut rest) = (None, Vec::new());
        loop {
            let body = self.request(Method::GET, &query, String::new()).await?;
            for payload in decode_polling(&body) {
                let payload = payload.map_err(protocol_error(WHAT))?;
                if socket_sid.is_some() || is_ping(&payload) {
                    rest.push(payload);
                } else {
                    socket_sid = joined(&payload)?;
                }
            }
            if let Some(socket_sid) = socket_sid {
                return Ok(Polled { socket_sid, rest });
            }
        }
    }

    async fn request(&mut self, method: Method, query: &str, body: String) -> Result<String, TransportError> {
        let request = Request::builder()
            .method(method)
            .uri(format!("{PATH}?EIO=4&transport=polling{query}"))
            .header("host", &self.host)
            .header("content-type", "text/plain;charset=UTF-8")
            .body(Full::from(body))
            .map_err(|e| failed(&e))?;
        self.sender.ready().await.map_err(|e| failed(&e))?;
        let response = self.sender.send_request(request).await.map_err(|e| failed(&e))?;
        if response.status() != StatusCode::OK {
            let cause = format!("the server answered {}", response.status());
            return Err(TransportError::with(WHAT, Outcome::Protocol, cause));
        }
        let body = Limited::new(response.into_body(), MAX_RESPONSE_BYTES).collect().await;
        let body = body.map_err(protocol_error(WHAT))?;
        String::from_utf8(body.to_bytes().into()).map_err(protocol_error(WHAT))
    }
}

/// The session answers it when it has moved: the server waits for seconds.
fn is_ping(payload: &Payload) -> bool {
    matches!(Packet::parse(payload), Ok(Packet::Ping("")))
}

/// The client's id in the namespace, if this is the answer to joining.
fn joined(payload: &Payload) -> Result<Option<String>, TransportError> {
    match Packet::parse(payload).map_err(protocol_error(WHAT))? {
        Packet::Message(text) => {
            let message = MessageDecoder::default().handle_text(text).map_err(protocol_error(WHAT))?;
            let refused = || TransportError::with(WHAT, Outcome::Refused, "the server refuses the namespace");
            match message {
                Some(message) if message.kind == MessageKind::Connect => {
                    let sid = message.data.as_ref().and_then(|data| data["sid"].as_str());
                    sid.map(|sid| Some(sid.to_owned())).ok_or_else(refused)
                }
                Some(message) if message.kind == MessageKind::ConnectError => Err(refused()),
                _ => Err(TransportError::with(WHAT, Outcome::Protocol, "a message before the namespace is joined")),
            }
        }
        Packet::Noop => Ok(None),
        Packet::Close => Err(TransportError::closed(WHAT)),
        other => Err(unexpected(other)),
    }
}

fn unexpected(packet: Packet<'_>) -> TransportError {
    let cause = format!("a packet of type {} while a session begins", packet.type_char());
    TransportError::with(WHAT, Outcome::Protocol, cause)
}

/// An HTTP error as an outcome.
fn failed(error: &(dyn std::error::Error + 'static)) -> TransportError {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(kernel) = error.downcast_ref::<std::io::Error>() {
            return TransportError::new(WHAT, kernel);
        }
        cause = error.source();
    }
    let outcome = match error.downcast_ref::<hyper::Error>() {
        Some(hyper) if hyper.is_incomplete_message() || hyper.is_closed() || hyper.is_canceled() => Outcome::Closed,
        _ => Outcome::Protocol,
    };
    TransportError::with(WHAT, outcome, error.to_string())
}
