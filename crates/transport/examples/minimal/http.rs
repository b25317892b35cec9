//! http1, https1, h2c, http2: hyper.

use crate::security::{NAME, Security};
use crate::tls::{accept, accept_secure, acceptor, connect, connect_secure};
use crate::{Result, Times};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::HOST;
use hyper::service::service_fn;
use hyper::{Request, Response, client, server};
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::net::SocketAddr;
use std::time::Instant;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;

const STREAM_WINDOW: u32 = 6 * 1024 * 1024;
const CONNECTION_WINDOW: u32 = 15 * 1024 * 1024;

const fn protocol(two: bool) -> &'static [u8] {
    if two { b"h2" } else { b"http/1.1" }
}

pub(crate) async fn serve(transport: &str, address: SocketAddr, security: &Security) -> Result<()> {
    let (secure, two) = (is_secure(transport), is_two(transport));
    let (listener, acceptor) = (TcpListener::bind(address).await?, acceptor(security, protocol(two))?);
    loop {
        // A client that has gone ends in an error here.
        let _ = if secure {
            serve_one(accept_secure(&listener, &acceptor).await?, two).await
        } else {
            serve_one(accept(&listener).await?, two).await
        };
    }
}

fn is_secure(transport: &str) -> bool {
    matches!(transport, "https1" | "http2")
}

fn is_two(transport: &str) -> bool {
    matches!(transport, "h2c" | "http2")
}

async fn serve_one(stream: impl AsyncRead + AsyncWrite + Unpin + 'static, two: bool) -> hyper::Result<()> {
    let io = TokioIo::new(stream);
    if !two {
        return server::conn::http1::Builder::new().serve_connection(io, service_fn(answer)).await;
    }
    server::conn::http2::Builder::new(TokioExecutor::new())
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .serve_connection(io, service_fn(answer))
        .await
}

async fn answer(request: Request<Incoming>) -> hyper::Result<Response<Full<Bytes>>> {
    let message = request.into_body().collect().await?.to_bytes();
    Ok(Response::new(Full::new(message)))
}

pub(crate) async fn echo(transport: &str, address: SocketAddr, security: &Security, times: &mut Times) -> Result<()> {
    let two = is_two(transport);
    let uri = match (two, is_secure(transport)) {
        (false, _) => "/echo".to_owned(),
        (true, false) => format!("http://{address}/echo"),
        (true, true) => format!("https://{NAME}:{}/echo", address.port()),
    };
    let mut way = if is_secure(transport) {
        Way::new(connect_secure(address, security, protocol(two)).await?, two).await?
    } else {
        Way::new(connect(address).await?, two).await?
    };
    let host = if is_secure(transport) { format!("{NAME}:{}", address.port()) } else { address.to_string() };
    for message in times.messages() {
        let sent = Instant::now();
        let mut request = Request::post(&uri);
        if !two {
            request = request.header(HOST, &host);
        }
        let response = way.send(request.body(Full::new(Bytes::copy_from_slice(&message)))?).await?;
        let reply = response.into_body().collect().await?.to_bytes();
        times.back(sent, &reply, &message)?;
    }
    Ok(())
}

/// Where requests go.
enum Way {
    One(client::conn::http1::SendRequest<Full<Bytes>>),
    Two(client::conn::http2::SendRequest<Full<Bytes>>),
}

impl Way {
    async fn new(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, two: bool) -> Result<Self> {
        let io = TokioIo::new(stream);
        if !two {
            let (way, connection) = client::conn::http1::handshake(io).await?;
            tokio::spawn(connection);
            return Ok(Self::One(way));
        }
        let (way, connection) = client::conn::http2::Builder::new(TokioExecutor::new())
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .handshake(io)
            .await?;
        tokio::spawn(connection);
        Ok(Self::Two(way))
    }

    async fn send(&mut self, request: Request<Full<Bytes>>) -> hyper::Result<Response<Incoming>> {
        match self {
            Self::One(way) => {
                way.ready().await?;
                way.send_request(request).await
            }
            Self::Two(way) => {
                way.ready().await?;
                way.send_request(request).await
            }
        }
    }
}
