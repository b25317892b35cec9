//! Socket.IO without a parser: the few strings that a session needs, which both ends know.

use crate::security::Security;
use crate::tls::{accept, connect};
use crate::webtransport;
use crate::{Result, Times};
use futures_util::{SinkExt, StreamExt};
use std::net::SocketAddr;
use std::time::Instant;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{WebSocketStream, accept_async, client_async};
use web_transport_quinn::{RecvStream, SendStream};

const OPEN: &str = r#"0{"sid":"a","upgrades":[],"pingInterval":25000,"pingTimeout":20000,"maxPayload":1000000}"#;
const CONNECT: &str = "40";
const CONNECTED: &str = r#"40{"sid":"b"}"#;

/// The event that a message is.
fn event(message: [u8; 1]) -> String {
    format!(r#"42["message","{}"]"#, char::from(message[0]))
}

pub(crate) async fn serve_websocket(address: SocketAddr) -> Result<()> {
    let listener = TcpListener::bind(address).await?;
    loop {
        let stream = accept(&listener).await?;
        tokio::spawn(async move {
            let mut socket = accept_async(stream).await?;
            socket.send(OPEN.into()).await?;
            next(&mut socket).await?;
            socket.send(CONNECTED.into()).await?;
            while let Ok(event) = next(&mut socket).await {
                socket.send(event).await?;
            }
            Result::Ok(())
        });
    }
}

async fn next<S: AsyncRead + AsyncWrite + Unpin>(socket: &mut WebSocketStream<S>) -> Result<Message> {
    Ok(socket.next().await.ok_or("the other end has closed")??)
}

pub(crate) async fn echo_websocket(address: SocketAddr, times: &mut Times) -> Result<()> {
    let uri = format!("ws://{address}/socket.io/?EIO=4&transport=websocket");
    let (mut socket, _) = client_async(uri, connect(address).await?).await?;
    next(&mut socket).await?;
    socket.send(CONNECT.into()).await?;
    next(&mut socket).await?;
    for message in times.messages() {
        let sent = Instant::now();
        let event = event(message);
        socket.send(event.as_str().into()).await?;
        let reply = next(&mut socket).await?;
        times.received(sent, &reply.into_data(), event.as_bytes())?;
    }
    Ok(())
}

pub(crate) async fn serve_webtransport(address: SocketAddr, security: &Security) -> Result<()> {
    let endpoint = webtransport::endpoint(address, security)?;
    loop {
        let session = webtransport::accept(&endpoint).await?;
        tokio::spawn(async move {
            let mut frames = Frames::new(session.accept_bi().await?);
            frames.next().await?;
            frames.send(OPEN.as_bytes()).await?;
            frames.next().await?;
            frames.send(CONNECTED.as_bytes()).await?;
            while let Ok(event) = frames.next().await {
                frames.send(&event).await?;
            }
            Result::Ok(())
        });
    }
}

pub(crate) async fn echo_webtransport(address: SocketAddr, security: &Security, times: &mut Times) -> Result<()> {
    let session = webtransport::connect(address, security).await?;
    let mut frames = Frames::new(session.open_bi().await?);
    frames.send(b"0").await?;
    frames.next().await?;
    frames.send(CONNECT.as_bytes()).await?;
    frames.next().await?;
    for message in times.messages() {
        let sent = Instant::now();
        let event = event(message);
        frames.send(event.as_bytes()).await?;
        let reply = frames.next().await?;
        times.received(sent, &reply, event.as_bytes())?;
    }
    webtransport::close(&session).await;
    Ok(())
}

/// Engine.IO's frames of text, of 125 bytes at most: a byte for the length, and the text.
struct Frames {
    sender: SendStream,
    receiver: RecvStream,
}

impl Frames {
    fn new((sender, receiver): (SendStream, RecvStream)) -> Self {
        Self { sender, receiver }
    }

    async fn send(&mut self, text: &[u8]) -> Result<()> {
        let mut frame = vec![u8::try_from(text.len())?];
        frame.extend_from_slice(text);
        Ok(self.sender.write_all(&frame).await?)
    }

    async fn next(&mut self) -> Result<Vec<u8>> {
        let mut length = [0];
        self.receiver.read_exact(&mut length).await?;
        let mut text = vec![0; usize::from(length[0])];
        self.receiver.read_exact(&mut text).await?;
        Ok(text)
    }
}
