//! Rules for every transport: each test goes through all registered ones, most over IPv4 and IPv6.

#![allow(clippy::unwrap_used)] // helpers of tests, where a failure is a failed test

mod ends;
mod messages;
mod sessions;
mod transfers;

use crosswind_transport::security::Security;
use crosswind_transport::{
    Call, Connection, Driver, Listener, Purpose, Settings, Stream, Streams, TransportError, TransportRef,
};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// A time limit reached only by a failing test.
const PATIENCE: Duration = Duration::from_secs(30);
/// Sizes at which a length's encoding changes, and one larger than any buffer.
const SIZES: [usize; 6] = [1, 125, 126, 65_535, 65_536, 1_000_000];
const LOOPBACK: [IpAddr; 2] = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
/// The usual paths' MTU, though not the loopback interface's.
const MTU: u32 = 1500;

fn all() -> impl Iterator<Item = TransportRef> {
    crosswind_transport::all()
}

fn settings() -> Settings {
    Settings { security: Some(Arc::new(Security::new().unwrap())), ..Settings::default() }
}

fn sizes(transport: TransportRef, address: IpAddr) -> Vec<usize> {
    let largest = transport.largest_message(address.is_ipv6(), MTU).unwrap_or(usize::MAX);
    SIZES.into_iter().filter(|&size| size <= largest).collect()
}

/// Text with pairwise different parts.
fn message(size: usize, seed: usize) -> Vec<u8> {
    let text: String = (seed..).map(|n| format!("{n:x}\u{e9}")).take(size / 3 + 2).collect();
    let end = (size.saturating_sub(1)..=size).rev().find(|&end| text.is_char_boundary(end)).unwrap();
    let mut bytes = text.as_bytes()[..end].to_vec();
    bytes.resize(size, b'.');
    bytes
}

/// Runs a server and a client, each on its own thread.
fn between<S, C>(transport: TransportRef, settings: &Settings, address: IpAddr, server: S, client: C)
where
    S: AsyncFnOnce(Box<dyn Listener>) + Send,
    C: AsyncFnOnce(SocketAddr) + Send,
{
    let driver = transport.features().driver;
    let (address_sender, server_address) = mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            driver
                .run(async {
                    let listener = transport.listen(SocketAddr::new(address, 0), settings).await.unwrap();
                    address_sender.send(listener.address().unwrap()).unwrap();
                    server(listener).await;
                })
                .unwrap();
        });
        scope.spawn(move || driver.run(client(server_address.recv().unwrap())).unwrap());
    });
}

async fn limited<T>(driver: Driver, call: Call<'_, T>) -> Result<T, TransportError> {
    driver.within(PATIENCE, "the test waits too long", call).await
}

async fn connect(transport: TransportRef, server: SocketAddr, settings: &Settings) -> Box<dyn Connection> {
    let connection = transport.connect(server, settings, PATIENCE).await;
    connection.unwrap_or_else(|e| panic!("{}: {e}", transport.name()))
}

/// Answers messages of these sizes on one connection, and returns the end of the wait for another one.
async fn echo(transport: TransportRef, listener: &dyn Listener, sizes: &[usize]) -> TransportError {
    let features = transport.features();
    let mut connection = limited(features.driver, listener.accept(PATIENCE)).await.unwrap();
    let mut stream = None;
    for &size in sizes {
        let mut current = match stream.take() {
            Some(stream) => stream,
            None => limited(features.driver, connection.accept()).await.unwrap_or_else(|e| panic!("{e}")),
        };
        let mut buffer = vec![0; size];
        let length = limited(features.driver, current.receiver.receive(&mut buffer)).await;
        let length = length.unwrap_or_else(|e| panic!("{} of {size}: {e}", transport.name()));
        limited(features.driver, current.sender.send(&buffer[..length])).await.unwrap();
        if features.streams != Streams::PerMessage {
            stream = Some(current);
        }
    }
    match stream {
        Some(mut stream) => match limited(features.driver, stream.receiver.receive(&mut [0; 1])).await {
            Ok(_) => panic!("{}: a message that nobody sent", transport.name()),
            Err(e) => e,
        },
        None => match limited(features.driver, connection.accept()).await {
            Ok(_) => panic!("{}: a stream that nobody opened", transport.name()),
            Err(e) => e,
        },
    }
}

/// Sends a message and receives its echo: on `stream`, or on a new one if each message needs one.
async fn exchange(
    transport: TransportRef,
    connection: &dyn Connection,
    stream: &mut Option<Stream>,
    message: &[u8],
) -> Result<(), TransportError> {
    let features = transport.features();
    let mut current = match stream.take() {
        Some(stream) => stream,
        None => limited(features.driver, connection.open(Purpose::Messages)).await?,
    };
    limited(features.driver, current.sender.send(message)).await?;
    let mut buffer = vec![0; message.len()];
    let length = limited(features.driver, current.receiver.receive(&mut buffer)).await?;
    assert!(buffer[..length] == *message, "{}: {} bytes came back changed", transport.name(), message.len());
    if features.streams != Streams::PerMessage {
        *stream = Some(current);
    }
    Ok(())
}
