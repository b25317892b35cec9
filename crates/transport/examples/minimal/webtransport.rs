//! webtransport, webtransport-datagram: web-transport-quinn.

use crate::quic::{accept as accept_quic, connect as connect_quic, endpoint as quic_endpoint};
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

pub(crate) async fn serve_stream(address: SocketAddr, security: &Security) -> Result<()> {
    let endpoint = endpoint(address, security)?;
    loop {
        let session = accept(&endpoint).await?;
        tokio::spawn(async move {
            let (mut sender, mut receiver) = session.accept_bi().await?;
            let mut message = [0];
            while receiver.read(&mut message).await?.is_some() {
                sender.write_all(&message).await?;
            }
            Result::Ok(())
        });
    }
}

pub(crate) async fn echo_stream(address: SocketAddr, security: &Security, times: &mut Times) -> Result<()> {
    let session = connect(address, security).await?;
    let (mut sender, mut receiver) = session.open_bi().await?;
    let mut reply = [0];
    for message in times.messages() {
        let sent = Instant::now();
        let exchange = async {
            sender.write_all(&message).await?;
            Ok(receiver.read_exact(&mut reply).await?)
        };
        within(exchange).await?;
        times.received(sent, &reply, &message)?;
    }
    close(&session).await;
    Ok(())
}

pub(crate) async fn serve_datagrams(address: SocketAddr, security: &Security) -> Result<()> {
    let endpoint = endpoint(address, security)?;
    loop {
        let session = accept(&endpoint).await?;
        tokio::spawn(async move {
            while let Ok(message) = session.read_datagram().await {
                session.send_datagram(message)?;
            }
            Result::Ok(())
        });
    }
}

pub(crate) async fn echo_datagrams(address: SocketAddr, security: &Security, times: &mut Times) -> Result<()> {
    let session = connect(address, security).await?;
    for message in times.messages() {
        let sent = Instant::now();
        session.send_datagram(Bytes::copy_from_slice(&message))?;
        let reply = within(async { Ok(session.read_datagram().await?) }).await?;
        times.received(sent, &reply, &message)?;
    }
    close(&session).await;
    Ok(())
}
