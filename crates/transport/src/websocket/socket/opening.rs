//! The opening handshake.

use super::errors::{error, refusal};
use super::{Carrier, Socket, Wire};
use crate::TransportError;
use crate::error::Outcome;
use crate::runtime::halves::Half;
use std::borrow::BorrowMut;
use std::future::poll_fn;
use std::task::Poll;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::handshake::client::{ClientHandshake, Response};
use tokio_tungstenite::tungstenite::handshake::server::{NoCallback, ServerHandshake};
use tokio_tungstenite::tungstenite::handshake::{HandshakeError, HandshakeRole, MidHandshake};
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, WebSocket};

/// tungstenite's: what passes through it is small.
const READ_BUFFER: usize = 4 * 1024;

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
}

fn config() -> WebSocketConfig {
    WebSocketConfig::default().read_buffer_size(READ_BUFFER)
}

/// Section 4.1: a client that asked for none must not take one.
fn names_extension(response: &Response) -> bool {
    response.headers().get_all("sec-websocket-extensions").iter().any(|names| !names.is_empty())
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
