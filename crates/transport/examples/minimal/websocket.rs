//! websocket, wss: tokio-tungstenite.

use crate::security::{NAME, Security};
use crate::tls::{accept, acceptor, connect, connect_secure};
use crate::{Result, Times, within};
use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use std::net::SocketAddr;
use std::time::Instant;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{WebSocketStream, accept_async, client_async};

const PROTOCOL: &[u8] = b"http/1.1";

pub(crate) async fn serve(transport: &str, address: SocketAddr, security: &Security) -> Result<()> {
    let (listener, acceptor) = (TcpListener::bind(address).await?, acceptor(security, PROTOCOL)?);
    loop {
        let (stream, acceptor, secure) = (accept(&listener).await?, acceptor.clone(), transport == "wss");
        tokio::spawn(async move {
            if secure {
                answer(accept_async(acceptor.accept(stream).await?).await?).await
            } else {
                answer(accept_async(stream).await?).await
            }
        });
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
        exchange(client_async(uri, stream).await?.0, times).await
    } else {
        let stream = connect(address).await?;
        exchange(client_async(format!("ws://{address}/"), stream).await?.0, times).await
    }
}

async fn exchange<S: AsyncRead + AsyncWrite + Unpin>(mut socket: WebSocketStream<S>, times: &mut Times) -> Result<()> {
    for message in times.messages() {
        let sent = Instant::now();
        let exchange = async {
            socket.send(Message::Binary(Bytes::copy_from_slice(&message))).await?;
            Ok(socket.next().await.ok_or("the server has closed")??)
        };
        let reply = within(exchange).await?;
        times.received(sent, &reply.into_data(), &message)?;
    }
    Ok(())
}
