//! http3: h3 over quinn.

use crate::quic::{accept, close, connect, endpoint};
use crate::security::{NAME, Security};
use crate::{Result, Times};
use bytes::{Buf, Bytes, BytesMut};
use h3::server::RequestResolver;
use httpdate::HttpDate;
use hyper::header::{CONTENT_LENGTH, DATE};
use hyper::{Request, Response};
use std::future::poll_fn;
use std::net::SocketAddr;
use std::time::{Instant, SystemTime};

const PROTOCOL: &[u8] = b"h3";

pub(crate) async fn serve(address: SocketAddr, security: &Security) -> Result<()> {
    let endpoint = endpoint(address, security, PROTOCOL)?;
    loop {
        let connection = h3_quinn::Connection::new(accept(&endpoint).await?);
        let mut builder = h3::server::builder();
        let mut connection = builder.send_grease(false).build::<_, Bytes>(connection).await?;
        // A client that has gone ends in an error here.
        while let Ok(Some(request)) = connection.accept().await {
            tokio::spawn(answer(request));
        }
    }
}

async fn answer(request: RequestResolver<h3_quinn::Connection, Bytes>) -> Result<()> {
    let (_, mut stream) = request.resolve_request().await?;
    let mut message = BytesMut::new();
    while let Some(piece) = stream.recv_data().await? {
        message.extend_from_slice(piece.chunk());
    }
    let date = HttpDate::from(SystemTime::now()).to_string();
    stream
        .send_response(Response::builder().header(CONTENT_LENGTH, message.len()).header(DATE, date).body(())?)
        .await?;
    stream.send_data(message.freeze()).await?;
    stream.finish().await?;
    Ok(())
}

pub(crate) async fn echo(address: SocketAddr, security: &Security, times: &mut Times) -> Result<()> {
    let connection = connect(address, security, PROTOCOL).await?;
    let mut builder = h3::client::builder();
    let quic = h3_quinn::Connection::new(connection.clone());
    let (mut driver, mut way) = builder.send_grease(false).build::<_, _, Bytes>(quic).await?;
    tokio::spawn(async move { poll_fn(|context| driver.poll_close(context)).await });
    let uri = format!("https://{NAME}:{}/echo", address.port());
    for message in times.messages() {
        let sent = Instant::now();
        let request = Request::post(&uri).header(CONTENT_LENGTH, message.len()).body(())?;
        let mut stream = way.send_request(request).await?;
        stream.send_data(Bytes::copy_from_slice(&message)).await?;
        stream.finish().await?;
        stream.recv_response().await?;
        let mut reply = Vec::new();
        while let Some(piece) = stream.recv_data().await? {
            reply.extend_from_slice(piece.chunk());
        }
        times.back(sent, &reply, &message)?;
    }
    close(&connection).await;
    Ok(())
}
