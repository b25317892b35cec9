//! Every HTTP version: against itself, against plain sockets, and against peers that violate the protocol.
#![allow(clippy::unwrap_used, clippy::expect_used)] // helpers of tests, where a failure is a failed test

mod ends;
mod rules;
mod streams;

use crosswind_transport::security::Security;
use crosswind_transport::{
    Connection, Driver, Listener, Outcome, Purpose, Settings, SocketSettings, Stream, TransportError, TransportRef,
    find, serving,
};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(20);
const ALL: [&str; 5] = ["http1", "https1", "h2c", "http2", "http3"];
const SHARED: [&str; 3] = ["h2c", "http2", "http3"];

fn settings() -> Settings {
    Settings {
        socket: SocketSettings { nodelay: Some(true), ..SocketSettings::default() },
        security: Some(Arc::new(Security::new().unwrap())),
        ..Settings::default()
    }
}

fn loopback() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|i| (i * 31 % 251) as u8).collect()
}

/// Answers one stream: sends as many bytes as were asked for, and echoes everything else.
async fn answer(mut stream: Stream) -> Result<(), TransportError> {
    if let Some(asked) = stream.asked {
        let piece = pattern(64 * 1024);
        let mut unsent = asked;
        while unsent > 0 {
            let length = unsent.min(piece.len() as u64);
            stream.sender.send_some(&piece[..length as usize]).await?;
            unsent -= length;
        }
        return stream.sender.finish().await;
    }
    let mut body = vec![0; 8 << 20];
    let length = stream.receiver.receive(&mut body).await?;
    stream.sender.send(&body[..length]).await?;
    assert_eq!(stream.receiver.receive(&mut body).await.unwrap_err().outcome, Outcome::Closed);
    stream.sender.finish().await
}

/// Serves every stream on every connection with `handle`, at once.
async fn serve<F: Future>(listener: &dyn Listener, handle: impl Fn(Stream) -> F) {
    let mut connections = FuturesUnordered::new();
    loop {
        tokio::select! {
            connection = listener.accept(PATIENCE) => connections.push(serve_one(connection.unwrap(), &handle)),
            Some(()) = connections.next() => {}
        }
    }
}

async fn serve_one<F: Future>(mut connection: Box<dyn Connection>, handle: &impl Fn(Stream) -> F) {
    serving::side_by_side(connection.as_mut(), |_, stream| {
        let handled = handle(stream);
        async {
            handled.await;
        }
    })
    .await;
}

/// Runs `client` against a server with `handle` for its streams.
fn with_server<F: Future, C: Future>(
    name: &str,
    settings: &Settings,
    handle: impl Fn(Stream) -> F,
    client: impl FnOnce(TransportRef, SocketAddr) -> C,
) -> C::Output {
    let transport = find(name).unwrap();
    let work = async {
        let listener = transport.listen(loopback(), settings).await.unwrap();
        let address = listener.address().unwrap();
        tokio::select! {
            () = serve(listener.as_ref(), handle) => unreachable!(),
            result = tokio::time::timeout(PATIENCE, client(transport, address)) => result.expect(name),
        }
    };
    Driver::Reactor.run(work).unwrap()
}

fn run<F: Future>(name: &str, work: F) -> F::Output {
    Driver::Reactor.run(async { tokio::time::timeout(PATIENCE, work).await.expect(name) }).unwrap()
}

async fn exchange(connection: &dyn Connection, message: &[u8]) -> Result<Vec<u8>, TransportError> {
    let mut stream = connection.open(Purpose::Messages).await?;
    stream.sender.send(message).await?;
    let mut reply = vec![0; message.len()];
    let length = stream.receiver.receive(&mut reply).await?;
    reply.truncate(length);
    assert_eq!(stream.receiver.receive(&mut [0; 1]).await.unwrap_err().outcome, Outcome::Closed);
    stream.sender.finish().await?;
    Ok(reply)
}

async fn drain(stream: &mut Stream) -> Result<Vec<u8>, TransportError> {
    let (mut all, mut piece) = (Vec::new(), vec![0; 100_000]);
    loop {
        match stream.receiver.receive_some(&mut piece).await? {
            0 => return Ok(all),
            length => all.extend_from_slice(&piece[..length]),
        }
    }
}
