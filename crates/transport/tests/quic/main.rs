//! The transports over QUIC, on loopback: a client and an echoing server on one reactor.
#![allow(clippy::unwrap_used, clippy::expect_used)] // helpers of tests, where a failure is a failed test

mod endpoints;
mod handshakes;
mod streams;

use crosswind_transport::security::Security;
use crosswind_transport::{
    Connection, Driver, Listener, Outcome, Purpose, Resumption, Settings, Stream, Transport, TransportError, find,
    serving,
};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

const STREAMS: [&str; 2] = ["quic", "webtransport"];
const DATAGRAMS: [&str; 2] = ["quic-datagram", "webtransport-datagram"];
const ALL: [&str; 4] = ["quic", "webtransport", "quic-datagram", "webtransport-datagram"];
/// A time limit reached only by a failing test.
const LONG: Duration = Duration::from_secs(20);

fn settings() -> Settings {
    Settings { security: Some(Arc::new(Security::new().unwrap())), ..Settings::default() }
}

fn resuming(resumption: Resumption) -> Settings {
    Settings { resumption, ..settings() }
}

fn transport(name: &str) -> &'static dyn Transport {
    find(name).unwrap().get()
}

/// Runs `client` against an echoing server.
fn with_server<T>(name: &str, settings: &Settings, client: impl AsyncFnOnce(SocketAddr) -> T) -> T {
    let run = async {
        let listener = transport(name).listen("127.0.0.1:0".parse().unwrap(), settings).await.unwrap();
        let address = listener.address().unwrap();
        tokio::select! {
            result = tokio::time::timeout(LONG, client(address)) => result.expect("a client that hangs"),
            () = serve(listener) => panic!("the server ended"),
        }
    };
    Driver::Reactor.run(run).unwrap()
}

async fn serve(listener: Box<dyn Listener>) {
    let mut connections = FuturesUnordered::new();
    loop {
        tokio::select! {
            accepted = listener.accept(LONG) => match accepted {
                Ok(connection) => connections.push(serve_connection(connection)),
                Err(_) => return,
            },
            Some(()) = connections.next() => {}
        }
    }
}

async fn serve_connection(mut connection: Box<dyn Connection>) {
    serving::side_by_side(connection.as_mut(), |_, stream| echo_back(stream)).await;
}

async fn echo_back(mut stream: Stream) {
    let mut buffer = vec![0; 65_536];
    loop {
        match stream.receiver.receive_some(&mut buffer).await {
            // No test sends an empty datagram.
            Ok(0) => {
                let _ = stream.sender.finish().await;
                return;
            }
            Ok(n) if stream.sender.send(&buffer[..n]).await.is_ok() => {}
            _ => return,
        }
    }
}

async fn connect(name: &str, server: SocketAddr, settings: &Settings) -> Box<dyn Connection> {
    transport(name).connect(server, settings, LONG).await.unwrap()
}

async fn open(connection: &dyn Connection) -> Stream {
    connection.open(Purpose::Messages).await.unwrap()
}

/// Sends a message, and receives its echo meanwhile.
async fn echo(stream: &mut Stream, size: usize) -> Result<(), TransportError> {
    let message: Vec<u8> = (0..size).map(|i| (i % 251) as u8).collect();
    let mut back = vec![0; size];
    let (sent, received) = tokio::join!(stream.sender.send(&message), stream.receiver.receive(&mut back));
    sent?;
    assert_eq!(received?, size);
    assert!(message == back, "a message of {size} bytes came back changed");
    Ok(())
}

fn outcome<T>(result: Result<T, TransportError>) -> Outcome {
    result.map_or_else(|error| error.outcome, |_| Outcome::Ok)
}

fn directory(name: &str) -> PathBuf {
    let directory = std::env::temp_dir().join(format!("crosswind-quic-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    directory
}

/// A JSON text sequence's records (RFC 7464).
fn qlog(path: &std::path::Path) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(path).unwrap();
    let records = text.strip_prefix('\u{1e}').expect("a record separator at first").split('\u{1e}');
    records
        .map(|record| serde_json::from_str(record.strip_suffix('\n').expect("a line feed at last")).unwrap())
        .collect()
}

/// Connects, echoes and closes twice.
fn twice(name: &str, settings: &Settings) -> [crosswind_transport::Phases; 2] {
    with_server(name, settings, async |server| {
        let mut phases = Vec::new();
        for _ in 0..2 {
            let mut connection = connect(name, server, settings).await;
            let mut stream = open(&*connection).await;
            let at_first = connection.phases();
            echo(&mut stream, 50).await.unwrap();
            assert_eq!(connection.phases(), at_first, "{name}: what was hoped for held");
            phases.push(at_first);
            connection.close().await.unwrap();
        }
        phases.try_into().unwrap()
    })
}
