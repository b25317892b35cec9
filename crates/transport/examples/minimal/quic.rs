//! quic, quic-datagram, and bytes in bulk: quinn. Bulk as quinn's own bench does it, without a copy at either end.

use crate::security::{NAME, Security};
use crate::{Result, Times, cpu_ns, within};
use bytes::Bytes;
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{ClientConfig, Connection, Endpoint, RecvStream, SendStream, ServerConfig, TransportConfig, VarInt};
use serde_json::json;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

const PROTOCOL: &[u8] = b"crosswind";
const STREAM_WINDOW: u32 = 16 << 20;
const CONNECTION_WINDOW: u32 = 64 << 20;
const SEND_WINDOW: u64 = 6 << 20;
/// Bytes per send call.
pub(crate) const CHUNK: usize = 1 << 20;
/// Packet-sized pieces per call at most.
const PIECES: usize = 32;

fn transport() -> Arc<TransportConfig> {
    let mut config = TransportConfig::default();
    config
        .stream_receive_window(VarInt::from_u32(STREAM_WINDOW))
        .receive_window(VarInt::from_u32(CONNECTION_WINDOW))
        .send_window(SEND_WINDOW)
        .max_idle_timeout(None);
    Arc::new(config)
}

pub(crate) fn endpoint(address: SocketAddr, security: &Security, protocol: &[u8]) -> Result<Endpoint> {
    let tls = QuicServerConfig::try_from(security.server(protocol)?)?;
    let mut config = ServerConfig::with_crypto(Arc::new(tls));
    config.transport_config(transport());
    Ok(Endpoint::server(config, address)?)
}

pub(crate) async fn accept(endpoint: &Endpoint) -> Result<Connection> {
    Ok(endpoint.accept().await.ok_or("the endpoint is closed")?.await?)
}

pub(crate) async fn connect(address: SocketAddr, security: &Security, protocol: &[u8]) -> Result<Connection> {
    let tls = QuicClientConfig::try_from(security.client(protocol)?)?;
    let mut config = ClientConfig::new(Arc::new(tls));
    config.transport_config(transport());
    let endpoint = Endpoint::client((Ipv4Addr::UNSPECIFIED, 0).into())?;
    Ok(endpoint.connect_with(config, address, NAME)?.await?)
}

/// Ends the connection, and lets the runtime send the close.
pub(crate) async fn close(connection: &Connection) {
    connection.close(VarInt::from_u32(0), b"");
    tokio::time::sleep(Duration::from_millis(2)).await;
}

/// Servers and clients for echoed messages, on streams and in datagrams, over this module's `accept`, `close`, `endpoint` and
/// `connect`; the last two may take a protocol.
macro_rules! echoes {
    ($($protocol:expr)?) => {
        pub(crate) async fn serve_stream(address: SocketAddr, security: &Security) -> Result<()> {
            let endpoint = endpoint(address, security $(, $protocol)?)?;
            loop {
                let connection = accept(&endpoint).await?;
                tokio::spawn(async move {
                    let (mut sender, mut receiver) = connection.accept_bi().await?;
                    let mut message = [0];
                    while receiver.read(&mut message).await?.is_some() {
                        sender.write_all(&message).await?;
                    }
                    Result::Ok(())
                });
            }
        }

        pub(crate) async fn echo_stream(address: SocketAddr, security: &Security, times: &mut Times) -> Result<()> {
            let connection = connect(address, security $(, $protocol)?).await?;
            let (mut sender, mut receiver) = connection.open_bi().await?;
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
            close(&connection).await;
            Ok(())
        }

        pub(crate) async fn serve_datagrams(address: SocketAddr, security: &Security) -> Result<()> {
            let endpoint = endpoint(address, security $(, $protocol)?)?;
            loop {
                let connection = accept(&endpoint).await?;
                tokio::spawn(async move {
                    while let Ok(message) = connection.read_datagram().await {
                        connection.send_datagram(message)?;
                    }
                    Result::Ok(())
                });
            }
        }

        pub(crate) async fn echo_datagrams(address: SocketAddr, security: &Security, times: &mut Times) -> Result<()> {
            let connection = connect(address, security $(, $protocol)?).await?;
            for message in times.messages() {
                let sent = Instant::now();
                connection.send_datagram(Bytes::copy_from_slice(&message))?;
                let reply = within(async { Ok(connection.read_datagram().await?) }).await?;
                times.received(sent, &reply, &message)?;
            }
            close(&connection).await;
            Ok(())
        }
    };
}

pub(crate) use echoes;

echoes!(PROTOCOL);

/// The first bytes on a bulk stream: how many bytes the client wants.
type Wanted = [u8; size_of::<u64>()];

pub(crate) async fn serve_bulk(address: SocketAddr, security: &Security) -> Result<()> {
    let endpoint = endpoint(address, security, PROTOCOL)?;
    loop {
        let connection = accept(&endpoint).await?;
        let before = cpu_ns()?;
        let (sender, mut receiver) = connection.accept_bi().await?;
        let mut wanted = Wanted::default();
        receiver.read_exact(&mut wanted).await?;
        receive(receiver).await?;
        send(sender, u64::from_be_bytes(wanted)).await?.stopped().await?;
        // The client ends once the connection does.
        println!("{}", json!({"cpu_ns": cpu_ns()? - before}));
        close(&connection).await;
    }
}

/// Sends so many bytes up and receives so many; returns the time.
pub(crate) async fn transfer(address: SocketAddr, security: &Security, up: u64, down: u64) -> Result<Duration> {
    let connection = connect(address, security, PROTOCOL).await?;
    let started = Instant::now();
    let (mut sender, receiver) = connection.open_bi().await?;
    sender.write_all(&down.to_be_bytes()).await?;
    send(sender, up).await?;
    let received = receive(receiver).await?;
    let took = started.elapsed();
    connection.closed().await;
    if received == down { Ok(took) } else { Err(format!("received {received} bytes of {down}").into()) }
}

async fn send(mut sender: SendStream, mut unsent: u64) -> Result<SendStream> {
    let chunk = Bytes::from(vec![0xab; CHUNK]);
    while unsent > 0 {
        let length = unsent.min(CHUNK as u64);
        sender.write_chunk(chunk.slice(..length as usize)).await?;
        unsent -= length;
    }
    sender.finish()?;
    Ok(sender)
}

async fn receive(mut receiver: RecvStream) -> Result<u64> {
    let mut pieces = vec![Bytes::new(); PIECES];
    let mut received = 0;
    while let Some(count) = receiver.read_chunks(&mut pieces).await? {
        received += pieces[..count].iter().map(|piece| piece.len() as u64).sum::<u64>();
    }
    Ok(received)
}
