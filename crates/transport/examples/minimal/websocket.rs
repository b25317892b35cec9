//! websocket, wss: tokio-tungstenite.

use crate::security::{NAME, Security};
use crate::tls::{accept, accept_secure, acceptor, connect, connect_secure};
use crate::{Result, Times};
use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use std::net::SocketAddr;
use std::time::Instant;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::{WebSocketStream, accept_async_with_config, client_async_with_config};

const PROTOCOL: &[u8] = b"http/1.1";

pub(crate) fn config() -> WebSocketConfig {
    WebSocketConfig::default().read_buffer_size(32 * 1024)
}

pub(crate) async fn serve(transport: &str, address: SocketAddr, security: &Security) -> Result<()> {
    let (listener, acceptor) = (TcpListener::bind(address).await?, acceptor(security, PROTOCOL)?);
    loop {
        if transport == "wss" {
            answer(accept_async_with_config(accept_secure(&listener, &acceptor).await?, Some(config())).await?).await?;
        } else {
            answer(accept_async_with_config(accept(&listener).await?, Some(config())).await?).await?;
        }
    }
}

async fn answer<S: AsyncRead + AsyncWrite + Unpin>(mut socket: WebSocketStream<S>) -> Result<()> {
    while let Some(Ok(Message::Binary(message))) = socket.next().await {
        socket.send(Message::Binary(message)).await?;
    }
    Ok(())
}

pub(crate) async fn echo(transport: &str, address: SocketAddr, security: &Security, times: &mut Times) -> Result<()> {
    if transport == "wss" {
        let uri = format!("wss://{NAME}:{}/", address.port());
        let stream = connect_secure(address, security, PROTOCOL).await?;
        exchange(client_async_with_config(uri, stream, Some(config())).await?.0, times).await
    } else {
        let stream = connect(address).await?;
        exchange(client_async_with_config(format!("ws://{address}/"), stream, Some(config())).await?.0, times).await
    }
}

async fn exchange<S: AsyncRead + AsyncWrite + Unpin>(mut socket: WebSocketStream<S>, times: &mut Times) -> Result<()> {
    for message in times.messages() {
        let sent = Instant::now();
        socket.send(Message::Binary(Bytes::copy_from_slice(&message))).await?;
        let reply = socket.next().await.ok_or("the server has closed")??;
        times.back(sent, &reply.into_data(), &message)?;
    }
    Ok(())
}
