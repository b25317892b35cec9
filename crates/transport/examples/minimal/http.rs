//! http1, https1, h2c, http2: hyper.

use crate::security::{NAME, Security};
use crate::tls::{accept, acceptor, connect, connect_secure};
use crate::{Result, Times, within};
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

const fn protocol(http2: bool) -> &'static [u8] {
    if http2 { b"h2" } else { b"http/1.1" }
}

fn is_secure(transport: &str) -> bool {
    matches!(transport, "https1" | "http2")
}

fn is_http2(transport: &str) -> bool {
    matches!(transport, "h2c" | "http2")
}

pub(crate) async fn serve(transport: &str, address: SocketAddr, security: &Security) -> Result<()> {
    let (secure, http2) = (is_secure(transport), is_http2(transport));
    let (listener, acceptor) = (TcpListener::bind(address).await?, acceptor(security, protocol(http2))?);
    loop {
        let (stream, acceptor) = (accept(&listener).await?, acceptor.clone());
        tokio::spawn(async move {
            if secure {
                serve_connection(acceptor.accept(stream).await?, http2).await
            } else {
                serve_connection(stream, http2).await
            }
        });
    }
}

async fn serve_connection(stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static, http2: bool) -> Result<()> {
    let io = TokioIo::new(stream);
    if http2 {
        let mut builder = server::conn::http2::Builder::new(TokioExecutor::new());
        builder.initial_stream_window_size(STREAM_WINDOW).initial_connection_window_size(CONNECTION_WINDOW);
        builder.serve_connection(io, service_fn(answer)).await?;
    } else {
        server::conn::http1::Builder::new().serve_connection(io, service_fn(answer)).await?;
    }
    Ok(())
}

async fn answer(request: Request<Incoming>) -> hyper::Result<Response<Full<Bytes>>> {
    let message = request.into_body().collect().await?.to_bytes();
    Ok(Response::new(Full::new(message)))
}

pub(crate) async fn echo(transport: &str, address: SocketAddr, security: &Security, times: &mut Times) -> Result<()> {
    let http2 = is_http2(transport);
    let uri = match (http2, is_secure(transport)) {
        (false, _) => "/echo".to_owned(),
        (true, false) => format!("http://{address}/echo"),
        (true, true) => format!("https://{NAME}:{}/echo", address.port()),
    };
    let mut handle = if is_secure(transport) {
        Handle::new(connect_secure(address, security, protocol(http2)).await?, http2).await?
    } else {
        Handle::new(connect(address).await?, http2).await?
    };
    let host = if is_secure(transport) { format!("{NAME}:{}", address.port()) } else { address.to_string() };
    for message in times.messages() {
        let sent = Instant::now();
        let mut request = Request::post(&uri);
        if !http2 {
            request = request.header(HOST, &host);
        }
        let request = request.body(Full::new(Bytes::copy_from_slice(&message)))?;
        let exchange = async { Ok(handle.send(request).await?.into_body().collect().await?.to_bytes()) };
        let reply = within(exchange).await?;
        times.received(sent, &reply, &message)?;
    }
    Ok(())
}

/// Sends requests; its connection has a task of its own.
enum Handle {
    Http1(client::conn::http1::SendRequest<Full<Bytes>>),
    Http2(client::conn::http2::SendRequest<Full<Bytes>>),
}

impl Handle {
    async fn new(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, http2: bool) -> Result<Self> {
        let io = TokioIo::new(stream);
        if !http2 {
            let (handle, connection) = client::conn::http1::handshake(io).await?;
            tokio::spawn(connection);
            return Ok(Self::Http1(handle));
        }
        let (handle, connection) = client::conn::http2::Builder::new(TokioExecutor::new())
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .handshake(io)
            .await?;
        tokio::spawn(connection);
        Ok(Self::Http2(handle))
    }

    async fn send(&mut self, request: Request<Full<Bytes>>) -> hyper::Result<Response<Incoming>> {
        match self {
            Self::Http1(handle) => {
                handle.ready().await?;
                handle.send_request(request).await
            }
            Self::Http2(handle) => {
                handle.ready().await?;
                handle.send_request(request).await
            }
        }
    }
}
