//! http3, and bytes in bulk over it: h3 over quinn.

use crate::quic::{CHUNK, accept, close, connect, endpoint};
use crate::security::{NAME, Security};
use crate::{Result, Times, cpu_ns, within};
use bytes::{Buf, Bytes, BytesMut};
use h3::client::SendRequest;
use h3::quic::BidiStream;
use h3::server::{RequestResolver, RequestStream};
use h3_quinn::OpenStreams;
use httpdate::HttpDate;
use hyper::header::{CONTENT_LENGTH, DATE};
use hyper::{Request, Response};
use quinn::Connection;
use serde_json::json;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::time::{Duration, Instant, SystemTime};

const PROTOCOL: &[u8] = b"h3";

/// Answers requests; `bulk` has one on each connection.
pub(crate) async fn serve(address: SocketAddr, security: &Security, bulk: bool) -> Result<()> {
    let endpoint = endpoint(address, security, PROTOCOL)?;
    loop {
        let quic = accept(&endpoint).await?;
        tokio::spawn(async move {
            let before = cpu_ns()?;
            let mut builder = h3::server::builder();
            let quic = h3_quinn::Connection::new(quic);
            let mut connection = builder.send_grease(false).build::<_, Bytes>(quic).await?;
            // When the client has gone, there is an error here.
            while let Ok(Some(request)) = connection.accept().await {
                if bulk {
                    tokio::spawn(transfer_back(request));
                } else {
                    tokio::spawn(answer(request));
                }
            }
            if bulk {
                println!("{}", json!({"cpu_ns": cpu_ns()? - before}));
            }
            Result::Ok(())
        });
    }
}

async fn answer(request: RequestResolver<h3_quinn::Connection, Bytes>) -> Result<()> {
    let (_, mut stream) = request.resolve_request().await?;
    let mut message = BytesMut::new();
    while let Some(piece) = stream.recv_data().await? {
        message.extend_from_slice(piece.chunk());
    }
    respond(&mut stream, message.len() as u64).await?;
    stream.send_data(message.freeze()).await?;
    stream.finish().await?;
    Ok(())
}

async fn respond<S: BidiStream<Bytes>>(stream: &mut RequestStream<S, Bytes>, length: u64) -> Result<()> {
    let date = HttpDate::from(SystemTime::now()).to_string();
    let response = Response::builder().header(CONTENT_LENGTH, length).header(DATE, date).body(())?;
    Ok(stream.send_response(response).await?)
}

pub(crate) async fn echo(address: SocketAddr, security: &Security, times: &mut Times) -> Result<()> {
    let (connection, mut handle) = start(address, security).await?;
    let uri = format!("https://{NAME}:{}/echo", address.port());
    for message in times.messages() {
        let sent = Instant::now();
        let request = Request::post(&uri).header(CONTENT_LENGTH, message.len()).body(())?;
        let exchange = async {
            let mut stream = handle.send_request(request).await?;
            stream.send_data(Bytes::copy_from_slice(&message)).await?;
            stream.finish().await?;
            stream.recv_response().await?;
            let mut reply = Vec::new();
            while let Some(piece) = stream.recv_data().await? {
                reply.extend_from_slice(piece.chunk());
            }
            Ok(reply)
        };
        let reply = within(exchange).await?;
        times.received(sent, &reply, &message)?;
    }
    close(&connection).await;
    Ok(())
}

async fn start(address: SocketAddr, security: &Security) -> Result<(Connection, SendRequest<OpenStreams, Bytes>)> {
    let connection = connect(address, security, PROTOCOL).await?;
    let mut builder = h3::client::builder();
    let quic = h3_quinn::Connection::new(connection.clone());
    let (mut driver, handle) = builder.send_grease(false).build::<_, _, Bytes>(quic).await?;
    tokio::spawn(async move { poll_fn(|context| driver.poll_close(context)).await });
    Ok((connection, handle))
}

/// Sends so many bytes up and receives so many; returns the time.
pub(crate) async fn transfer(address: SocketAddr, security: &Security, up: u64, down: u64) -> Result<Duration> {
    let (connection, mut handle) = start(address, security).await?;
    let started = Instant::now();
    let uri = format!("https://{NAME}:{}/{down}", address.port());
    let mut stream = handle.send_request(Request::post(&uri).header(CONTENT_LENGTH, up).body(())?).await?;
    for chunk in chunks(up) {
        stream.send_data(chunk).await?;
    }
    stream.finish().await?;
    stream.recv_response().await?;
    let mut received = 0;
    while let Some(piece) = stream.recv_data().await? {
        received += piece.remaining() as u64;
    }
    let took = started.elapsed();
    close(&connection).await;
    // Time for the server to report its processor time.
    tokio::time::sleep(Duration::from_millis(50)).await;
    if received == down { Ok(took) } else { Err(format!("received {received} bytes of {down}").into()) }
}

/// Receives a body, and sends as many bytes as the path says.
async fn transfer_back(request: RequestResolver<h3_quinn::Connection, Bytes>) -> Result<()> {
    let (request, mut stream) = request.resolve_request().await?;
    while stream.recv_data().await?.is_some() {}
    let down = request.uri().path().trim_start_matches('/').parse()?;
    respond(&mut stream, down).await?;
    for chunk in chunks(down) {
        stream.send_data(chunk).await?;
    }
    Ok(stream.finish().await?)
}

/// So many bytes; all chunks share their memory.
fn chunks(mut unsent: u64) -> impl Iterator<Item = Bytes> {
    let chunk = Bytes::from(vec![0xab; CHUNK]);
    std::iter::from_fn(move || {
        let length = unsent.min(CHUNK as u64);
        unsent -= length;
        (length > 0).then(|| chunk.slice(..length as usize))
    })
}
