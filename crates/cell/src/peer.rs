//! The transports alone, on this machine's own addresses: a server that echoes, and a client that checks what comes back. For
//! programs that nobody here wrote, to be tried against ours.

use crate::{CellError, ErrorKind};
use crosswind_transport::security::{Security, Trust};
use crosswind_transport::{
    Connection, Driver, Features, Listener, Outcome, Payload, Purpose, Resumption, Settings, SocketSettings, Stream,
    Streams, TransportError, TransportRef, serving,
};
use futures_util::stream::{FuturesUnordered, StreamExt};
use serde::Deserialize;
use serde_json::{Value, json};
use std::io::Read;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// Largest message that is echoed whole, bytes.
const LARGEST: usize = 64 << 20;
/// Bytes a call, where messages have no boundaries.
const CHUNK: usize = 64 * 1024;
/// How long a server waits for a connection: it is ended from outside.
const FOREVER: Duration = Duration::from_hours(24);
/// How long an answer may take to be written to a peer that does not read.
const PATIENCE: Duration = Duration::from_mins(1);

/// A server to be started.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Serve {
    transport: String,
    address: SocketAddr,
    /// Until a signal ends it: what the end of standard input says otherwise.
    #[serde(default)]
    stay: bool,
}

/// A client to be run.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    transport: String,
    address: SocketAddr,
    #[serde(default = "localhost")]
    server_name: String,
    /// Certificates to trust.
    #[serde(default)]
    trust_pem: Option<String>,
    /// Trust anything.
    #[serde(default)]
    insecure: bool,
    #[serde(default)]
    path: String,
    sizes: Vec<usize>,
    #[serde(default)]
    payload: Payload,
    #[serde(default = "five_seconds")]
    timeout_ns: u64,
    #[serde(default)]
    method: Method,
    #[serde(default)]
    polling: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
enum Method {
    /// A message that comes back.
    #[default]
    Post,
    /// What is there.
    Get,
}

fn localhost() -> String {
    "localhost".into()
}

const fn five_seconds() -> u64 {
    5_000_000_000
}

fn read<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, CellError> {
    serde_json::from_str(text).map_err(|e| {
        CellError::bad_cell(format!("the argument is not what it should be: {e}")).hint("docs/cell-protocol.md, Peers")
    })
}

fn find(name: &str) -> Result<TransportRef, CellError> {
    crosswind_transport::find(name).map_err(|e| CellError::bad_cell(e.to_string()))
}

fn host(error: &TransportError) -> CellError {
    CellError::new(ErrorKind::Host, error.to_string())
}

/// Settings of sockets as a cell's default has them.
fn settings(security: Option<Security>, payload: Payload, path: String, polling: bool) -> Settings {
    Settings {
        socket: SocketSettings { nodelay: Some(true), ..SocketSettings::default() },
        resumption: Resumption::None,
        polling,
        payload,
        request_bytes: 0,
        path,
        security: security.map(Arc::new),
        qlog: None,
    }
}

/// Serves until standard input ends, or, where it is to stay, until the process is ended.
pub fn serve(text: &str) -> Result<(), CellError> {
    let wanted: Serve = read(text)?;
    let transport = find(&wanted.transport)?;
    let features = transport.features();
    let security = if features.secure { Some(Security::new().map_err(|e| host(&e))?) } else { None };
    let certificate = security.as_ref().map(|security| security.certificate_pem().to_owned());
    let hash = security.as_ref().map(Security::certificate_sha256);
    let settings = settings(security, Payload::Binary, String::new(), false);
    let told = |listener: &dyn Listener| -> Result<(), TransportError> {
        let address = listener.address()?;
        let listening = json!({
            "event": "listening", "address": address, "certificate_pem": certificate, "certificate_sha256": hash,
        });
        println!("{listening}");
        Ok(())
    };
    match features.driver {
        Driver::Thread => on_threads(transport, &wanted, &settings, &told),
        Driver::Reactor => {
            let stop = Arc::new(Notify::new());
            let ended = Arc::clone(&stop);
            std::thread::spawn(move || {
                wait_for_the_end(wanted.stay);
                ended.notify_one();
            });
            let served = Driver::Reactor.run(async {
                let listener = transport.listen(wanted.address, &settings).await?;
                told(listener.as_ref())?;
                tokio::select! {
                    () = stop.notified() => {}
                    () = serve_all(features, listener.as_ref()) => {}
                }
                Ok(())
            });
            served.and_then(|served| served).map_err(|e| host(&e))
        }
    }
}

fn wait_for_the_end(stay: bool) {
    if stay {
        loop {
            std::thread::park();
        }
    }
    // Whatever ends it, nobody talks to us any more.
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}

fn on_threads(
    transport: TransportRef,
    wanted: &Serve,
    settings: &Settings,
    told: &dyn Fn(&dyn Listener) -> Result<(), TransportError>,
) -> Result<(), CellError> {
    let features = transport.features();
    let listener =
        Driver::Thread.run(transport.listen(wanted.address, settings)).and_then(|it| it).map_err(|e| host(&e))?;
    told(listener.as_ref()).map_err(|e| host(&e))?;
    std::thread::spawn(move || {
        while let Ok(accepted) = Driver::Thread.run(listener.accept(FOREVER)) {
            let Ok(connection) = accepted else { continue };
            let serving = move || {
                let _ = Driver::Thread.run(serve_connection(features, connection));
            };
            if features.datagram {
                serving();
            } else {
                std::thread::spawn(serving);
            }
        }
    });
    wait_for_the_end(wanted.stay);
    Ok(())
}

async fn serve_all(features: Features, listener: &dyn Listener) {
    let mut connections = FuturesUnordered::new();
    loop {
        tokio::select! {
            Some(()) = connections.next(), if !connections.is_empty() => {}
            accepted = listener.accept(FOREVER) => match accepted {
                Ok(connection) => connections.push(serve_connection(features, connection)),
                Err(_) => tokio::task::yield_now().await,
            },
        }
    }
}

async fn serve_connection(features: Features, mut connection: Box<dyn Connection>) {
    if features.streams == Streams::One {
        if let Ok(stream) = connection.accept().await {
            echo(features, stream).await;
        }
        return;
    }
    serving::side_by_side(connection.as_mut(), |_, stream| echo(features, stream)).await;
}

/// Whether what is sent as one message is received as one.
const fn has_boundaries(features: Features) -> bool {
    features.datagram || features.text || features.http
}

/// Sends back what comes, and what is asked for.
async fn echo(features: Features, mut stream: Stream) {
    if let Some(asked) = stream.asked {
        let part = vec![b'x'; CHUNK];
        // A client that is gone needs no answer.
        let _ = serving::give(stream.sender.as_mut(), asked, &part).await;
        return;
    }
    let mut buffer = vec![0; if has_boundaries(features) { LARGEST } else { CHUNK }];
    loop {
        let received = if has_boundaries(features) {
            stream.receiver.receive(&mut buffer).await
        } else {
            stream.receiver.receive_some(&mut buffer).await
        };
        let length = match received {
            Ok(0) if !has_boundaries(features) => break,
            Ok(length) => length,
            Err(e) if e.outcome == Outcome::Timeout => continue,
            Err(_) => break,
        };
        let sending = stream.sender.send(&buffer[..length]);
        if features.driver.within(PATIENCE, "cannot answer", sending).await.is_err() && !features.datagram {
            return;
        }
    }
    let _ = stream.sender.finish().await;
}

/// Sends a message of each size and checks what comes back.
pub fn call(text: &str) -> Result<(), CellError> {
    let wanted: Call = read(text)?;
    let transport = find(&wanted.transport)?;
    let features = transport.features();
    let trust = match (&wanted.trust_pem, wanted.insecure) {
        (_, true) => Trust::Anything,
        (Some(pem), false) => Trust::Roots(pem.clone()),
        (None, false) => Trust::Own,
    };
    let security = if features.secure {
        let own = Security::new().and_then(|own| own.expecting(&wanted.server_name, trust)).map_err(|e| host(&e))?;
        Some(own)
    } else {
        None
    };
    let settings = settings(security, wanted.payload, wanted.path.clone(), wanted.polling);
    let timeout = Duration::from_nanos(wanted.timeout_ns);
    let result = features
        .driver
        .run(async {
            let mut connection = transport.connect(wanted.address, &settings, timeout).await?;
            messages(&wanted, features, timeout, connection.as_ref()).await?;
            features.driver.within(timeout, "cannot close", connection.close()).await
        })
        .and_then(|result| result);
    let (outcome, error) = match &result {
        Ok(()) => (Outcome::Ok, Value::Null),
        Err(e) => (e.outcome, e.to_string().into()),
    };
    println!("{}", json!({"event": "closed", "outcome": outcome.name(), "error": error}));
    if result.is_err() {
        // The lines say it all: an outcome is no failure of the program.
        std::process::exit(1);
    }
    Ok(())
}

async fn messages(
    wanted: &Call,
    features: Features,
    timeout: Duration,
    connection: &dyn Connection,
) -> Result<(), TransportError> {
    let mut kept: Option<Stream> = None;
    for &size in &wanted.sizes {
        let before = Instant::now();
        let one = exchange(wanted, features, connection, &mut kept, size);
        let result = features.driver.within(timeout, "cannot exchange", one).await;
        let (outcome, received) = match &result {
            Ok(received) if *received == size || wanted.method == Method::Get => (Outcome::Ok, *received),
            Ok(received) => (Outcome::Error, *received),
            Err(e) => (e.outcome, 0),
        };
        let elapsed_ns = before.elapsed().as_nanos() as u64;
        println!(
            "{}",
            json!({"size": size, "outcome": outcome.name(), "received": received, "elapsed_ns": elapsed_ns})
        );
        result?;
        if outcome != Outcome::Ok {
            return Err(TransportError::with("cannot exchange", outcome, "it came back changed"));
        }
    }
    if let Some(mut stream) = kept {
        stream.sender.finish().await?;
    }
    Ok(())
}

/// Received bytes; what came back changed is an error.
async fn exchange(
    wanted: &Call,
    features: Features,
    connection: &dyn Connection,
    kept: &mut Option<Stream>,
    size: usize,
) -> Result<usize, TransportError> {
    if wanted.method == Method::Get {
        let named = wanted.path.is_empty().then_some(size as u64);
        let mut stream = connection.open(Purpose::Download(named)).await?;
        let (mut buffer, mut received) = (vec![0; CHUNK], 0);
        loop {
            match stream.receiver.receive_some(&mut buffer).await? {
                0 => return Ok(received),
                count => received += count,
            }
        }
    }
    let mut stream = match kept.take() {
        Some(stream) => stream,
        None => connection.open(Purpose::Messages).await?,
    };
    let message = message(wanted.payload, size);
    let mut reply = vec![0; size];
    let length = if size == 0 && !has_boundaries(features) {
        0
    } else {
        stream.sender.send(&message).await?;
        stream.receiver.receive(&mut reply).await?
    };
    if reply[..length] != message[..length.min(size)] {
        return Err(TransportError::with("cannot exchange", Outcome::Error, "it came back changed"));
    }
    if features.streams != Streams::PerMessage {
        *kept = Some(stream);
    }
    Ok(length)
}

/// `size` bytes; as text with as many characters beyond ASCII as fit.
fn message(payload: Payload, size: usize) -> Vec<u8> {
    match payload {
        Payload::Binary => (0..size).map(|i| (i % 251) as u8).collect(),
        Payload::Text => {
            let mut text = "\u{e9}\u{20ac}\u{1f30d}".repeat(size / 9);
            text.extend(std::iter::repeat_n('x', size - text.len()));
            text.into_bytes()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_has_its_size_and_is_text() {
        for size in [0, 1, 8, 9, 125, 126, 65_536] {
            let text = String::from_utf8(message(Payload::Text, size)).unwrap();
            assert_eq!(text.len(), size);
        }
        assert!(!message(Payload::Text, 9).is_ascii());
    }
}
