//! webtransport, webtransport-datagram: web-transport-quinn.

use crate::quic::{accept as accept_quic, connect as connect_quic, echoes, endpoint as quic_endpoint};
use crate::security::{NAME, Security};
use crate::{Result, Times, within};
use bytes::Bytes;
use quinn::Endpoint;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use url::Url;
use web_transport_quinn::proto::ConnectRequest;
use web_transport_quinn::{ALPN, Request, Session};

pub(crate) fn endpoint(address: SocketAddr, security: &Security) -> Result<Endpoint> {
    quic_endpoint(address, security, ALPN.as_bytes())
}

pub(crate) async fn accept(endpoint: &Endpoint) -> Result<Session> {
    Ok(Request::accept(accept_quic(endpoint).await?).await?.ok().await?)
}

pub(crate) async fn connect(address: SocketAddr, security: &Security) -> Result<Session> {
    let connection = connect_quic(address, security, ALPN.as_bytes()).await?;
    let url = Url::parse(&format!("https://{NAME}:{}/", address.port()))?;
    Ok(Session::connect(connection, ConnectRequest::new(url)).await?)
}

/// Ends the session, and lets the runtime send the close.
pub(crate) async fn close(session: &Session) {
    session.close(0, b"");
    tokio::time::sleep(Duration::from_millis(2)).await;
}

echoes!();
