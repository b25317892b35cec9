//! The client's part of HTTP long polling: opens a session and joins it, before it moves to WebSocket.

use super::{PATH, unspoken};
use crate::TransportError;
use crate::error::Outcome;
use bytes::Bytes;
use crosswind_socketio::{Handshake, Kind, MessageDecoder, Packet, Payload, decode_polling, encode_polling};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use std::pin::{Pin, pin};
use tokio::net::TcpStream;

/// Of a response: more than a session begins with.
const LONGEST: usize = 1 << 20;
const WHAT: &str = "cannot open a session by polling";

/// A session by polling, on one connection.
pub(super) struct PollingClient {
    sender: http1::SendRequest<Full<Bytes>>,
    connection: Pin<Box<http1::Connection<TokioIo<TcpStream>, Full<Bytes>>>>,
    host: String,
}

impl PollingClient {
    pub(super) async fn new(stream: TcpStream, host: String) -> Result<Self, TransportError> {
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(|e| failed(&e))?;
        Ok(Self { sender, connection: Box::pin(connection), host })
    }

    /// Asks for a session.
    pub(super) async fn open(&mut self) -> Result<Handshake, TransportError> {
        let body = self.request(Method::GET, "", String::new()).await?;
        match decode_polling(&body).next().transpose().map_err(unspoken(WHAT))? {
            Some(payload) => match Packet::parse(&payload).map_err(unspoken(WHAT))? {
                Packet::Open(json) => Handshake::parse(json).map_err(unspoken(WHAT)),
                other => Err(unexpected(other)),
            },
            None => Err(TransportError::with(WHAT, Outcome::Protocol, "an empty answer")),
        }
    }

    /// Joins the namespace, and says under which id.
    pub(super) async fn join(&mut self, sid: &str) -> Result<String, TransportError> {
        let query = format!("&sid={sid}");
        let join = encode_polling(&[Packet::Message("0")]).map_err(unspoken(WHAT))?;
        self.request(Method::POST, &query, join).await?;
        loop {
            let body = self.request(Method::GET, &query, String::new()).await?;
            for payload in decode_polling(&body) {
                if let Some(sid) = joined(&payload.map_err(unspoken(WHAT))?)? {
                    return Ok(sid);
                }
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
        let sender = &mut self.sender;
        let mut answer = pin!(async move {
            let response = sender.send_request(request).await.map_err(|e| failed(&e))?;
            if response.status() != StatusCode::OK {
                let cause = format!("the server says {}", response.status());
                return Err(TransportError::with(WHAT, Outcome::Protocol, cause));
            }
            let body = Limited::new(response.into_body(), LONGEST).collect().await;
            let body = body.map_err(|e| TransportError::with(WHAT, Outcome::Protocol, e.to_string()))?;
            String::from_utf8(body.to_bytes().into())
                .map_err(|e| TransportError::with(WHAT, Outcome::Protocol, e.to_string()))
        });
        tokio::select! {
            biased;
            answer = &mut answer => return answer,
            _ = &mut self.connection => {}
        }
        // The connection is over, but the answer may have come before.
        answer.await
    }
}

/// The Socket.IO id, if this is it.
fn joined(payload: &Payload) -> Result<Option<String>, TransportError> {
    match Packet::parse(payload).map_err(unspoken(WHAT))? {
        Packet::Message(text) => {
            let message = MessageDecoder::default().handle_text(text).map_err(unspoken(WHAT))?;
            let refused = || TransportError::with(WHAT, Outcome::Refused, "the server refuses the namespace");
            match message {
                Some(message) if message.kind == Kind::Connect => {
                    let sid = message.data.as_ref().and_then(|data| data["sid"].as_str());
                    sid.map(|sid| Some(sid.to_owned())).ok_or_else(refused)
                }
                Some(message) if message.kind == Kind::ConnectError => Err(refused()),
                _ => Err(TransportError::with(WHAT, Outcome::Protocol, "a message before the namespace is joined")),
            }
        }
        Packet::Noop => Ok(None),
        other => Err(unexpected(other)),
    }
}

fn unexpected(packet: Packet<'_>) -> TransportError {
    let cause = format!("a packet of type {} while a session begins", packet.type_char());
    TransportError::with(WHAT, Outcome::Protocol, cause)
}

/// What an error of HTTP means.
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
