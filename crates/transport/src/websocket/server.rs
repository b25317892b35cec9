//! The server's opening handshake (RFC 6455, section 4.2): an HTTP request upgraded to a WebSocket.

use super::socket::{Io, Socket};
use crate::TransportError;
use crate::error::Outcome;
use bytes::Bytes;
use http_body_util::Empty;
use hyper::body::Incoming;
use hyper::header::{CONNECTION, HeaderValue, SEC_WEBSOCKET_VERSION, UPGRADE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::future::ready;
use std::sync::{Mutex, PoisonError};
use tokio_tungstenite::tungstenite::Error;
use tokio_tungstenite::tungstenite::error::ProtocolError;
use tokio_tungstenite::tungstenite::handshake::server::create_response;

const WHAT: &str = "cannot upgrade to WebSocket";

/// A connection that becomes a WebSocket once its request is answered.
pub(crate) struct Upgrade(OnUpgrade);

impl Upgrade {
    /// Reads `request`; its answer is the response.
    pub(crate) fn begin<B>(mut request: Request<B>) -> Result<(Response<()>, Self), Error> {
        let upgrade = Self(hyper::upgrade::on(&mut request));
        Ok((create_response(&request.map(|_| ()))?, upgrade))
    }

    /// Waits for the answer to be sent.
    pub(crate) async fn socket(self, max_message_bytes: usize) -> Result<Socket, TransportError> {
        let upgraded = self.0.await;
        let upgraded = upgraded.map_err(|e| TransportError::with(WHAT, Outcome::Protocol, e.to_string()))?;
        Ok(Socket::server(Box::new(TokioIo::new(upgraded)), max_message_bytes).await)
    }
}

/// Waits for the client to upgrade the connection, whatever path it asks for.
pub(super) async fn accept(io: Io, max_message_bytes: usize) -> Result<Socket, TransportError> {
    let begun = Mutex::new(None);
    let service = service_fn(|request: Request<Incoming>| {
        ready(Ok::<_, Infallible>(match Upgrade::begin(request) {
            Ok((response, upgrade)) => {
                *begun.lock().unwrap_or_else(PoisonError::into_inner) = Some(upgrade);
                response.map(|()| Empty::<Bytes>::new())
            }
            Err(e) => refusal(&e),
        }))
    });
    let served = http1::Builder::new().serve_connection(TokioIo::new(io), service).with_upgrades().await;
    let upgrade = begun.lock().unwrap_or_else(PoisonError::into_inner).take();
    match (upgrade, served) {
        (Some(upgrade), _) => upgrade.socket(max_message_bytes).await,
        (None, Err(e)) if e.is_parse() || e.is_parse_too_large() => {
            Err(TransportError::with(WHAT, Outcome::Protocol, e.to_string()))
        }
        (None, _) => Err(TransportError::closed(WHAT)),
    }
}

/// The answer to a request without WebSocket (section 4.2.1), or for another version (section 4.4).
fn refusal(error: &Error) -> Response<Empty<Bytes>> {
    let mut response = Response::new(Empty::new());
    *response.status_mut() = StatusCode::BAD_REQUEST;
    if matches!(error, Error::Protocol(ProtocolError::MissingSecWebSocketVersionHeader)) {
        *response.status_mut() = StatusCode::UPGRADE_REQUIRED;
        response.headers_mut().insert(UPGRADE, HeaderValue::from_static("websocket"));
        response.headers_mut().insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
    }
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}
