//! What every transport must do: each test goes through all registered transports, over IPv4 and IPv6.

#![allow(clippy::unwrap_used)] // helpers of tests, where a failure is a failed test

use crosswind_transport::driver::within;
use crosswind_transport::security::Security;
use crosswind_transport::{
    Call, Connection, Driver, Listener, Outcome, Payload, Purpose, Resumption, Settings, Stream, Streams,
    TransportError, TransportRef,
};
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// The longest that a test waits for anything. Only a failing test waits so long.
const PATIENCE: Duration = Duration::from_secs(30);
/// Sizes at which the encoding of a length changes (WebSocket, Engine.IO), and one that is larger than every buffer.
const SIZES: [usize; 6] = [1, 125, 126, 65_535, 65_536, 1_000_000];
const LOOPBACK: [IpAddr; 2] = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
/// The tests run over loopback interfaces, but send messages that also fit the packets of an ordinary path.
const MTU: u32 = 1500;

fn all() -> impl Iterator<Item = TransportRef> {
    crosswind_transport::all()
}

fn settings() -> Settings {
    Settings { security: Some(Arc::new(Security::new().unwrap())), ..Settings::default() }
}

fn over_tcp(transport: TransportRef) -> bool {
    !over_quic(transport) && transport.name() != "udp"
}

fn over_quic(transport: TransportRef) -> bool {
    ["quic", "webtransport", "http3"].iter().any(|part| transport.name().contains(part))
}

/// Whether a connection is open only after the server has answered in the transport's own protocol.
fn has_handshake(transport: TransportRef) -> bool {
    !["tcp", "udp", "http1", "h2c"].contains(&transport.name())
}

fn sizes(transport: TransportRef, address: IpAddr) -> Vec<usize> {
    let largest = transport.largest_message(address.is_ipv6(), MTU).unwrap_or(usize::MAX);
    SIZES.into_iter().filter(|&size| size <= largest).collect()
}

/// A message of `size` bytes that is valid UTF-8 and never repeats itself; messages of different seeds differ.
fn message(size: usize, seed: usize) -> Vec<u8> {
    let text: String = (seed..).map(|n| format!("{n:x}\u{e9}")).take(size / 3 + 2).collect();
    let end = (size.saturating_sub(1)..=size).rev().find(|&end| text.is_char_boundary(end)).unwrap();
    let mut bytes = text.as_bytes()[..end].to_vec();
    bytes.resize(size, b'.');
    bytes
}

/// Runs a server and a client, each on a thread of its own and with the driver that the transport needs.
fn between<S, C>(transport: TransportRef, settings: &Settings, address: IpAddr, server: S, client: C)
where
    S: AsyncFnOnce(Box<dyn Listener>) + Send,
    C: AsyncFnOnce(SocketAddr) + Send,
{
    let driver = transport.features().driver;
    let (send_address, address_of_server) = mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            driver
                .run(async {
                    let listener = transport.listen(SocketAddr::new(address, 0), settings).await.unwrap();
                    send_address.send(listener.address().unwrap()).unwrap();
                    server(listener).await;
                })
                .unwrap();
        });
        scope.spawn(move || driver.run(client(address_of_server.recv().unwrap())).unwrap());
    });
}

async fn bounded<T>(driver: Driver, call: Call<'_, T>) -> Result<T, TransportError> {
    driver.within(PATIENCE, "the test waits too long", call).await
}

async fn connect(transport: TransportRef, server: SocketAddr, settings: &Settings) -> Box<dyn Connection> {
    let connection = transport.connect(server, settings, PATIENCE).await;
    connection.unwrap_or_else(|e| panic!("{}: {e}", transport.name()))
}

/// Accepts a connection, sends messages of these sizes back, and returns the error with which the connection then ends.
async fn echo(transport: TransportRef, listener: &dyn Listener, sizes: &[usize]) -> TransportError {
    let features = transport.features();
    let mut connection = bounded(features.driver, listener.accept(PATIENCE)).await.unwrap();
    let mut stream = None;
    for &size in sizes {
        let mut current = match stream.take() {
            Some(stream) => stream,
            None => bounded(features.driver, connection.accept()).await.unwrap_or_else(|e| panic!("{e}")),
        };
        let mut buffer = vec![0; size];
        let length = bounded(features.driver, current.receiver.receive(&mut buffer)).await;
        let length = length.unwrap_or_else(|e| panic!("{} of {size}: {e}", transport.name()));
        bounded(features.driver, current.sender.send(&buffer[..length])).await.unwrap();
        if features.streams != Streams::PerMessage {
            stream = Some(current);
        }
    }
    match stream {
        Some(mut stream) => match bounded(features.driver, stream.receiver.receive(&mut [0; 1])).await {
            Ok(_) => panic!("{}: a message out of nothing", transport.name()),
            Err(e) => e,
        },
        None => match bounded(features.driver, connection.accept()).await {
            Ok(_) => panic!("{}: a stream out of nothing", transport.name()),
            Err(e) => e,
        },
    }
}

/// Sends a message and receives it again: on `stream`, or on a new stream where each message has a stream of its own.
async fn exchange(
    transport: TransportRef,
    connection: &dyn Connection,
    stream: &mut Option<Stream>,
    message: &[u8],
) -> Result<(), TransportError> {
    let features = transport.features();
    let mut current = match stream.take() {
        Some(stream) => stream,
        None => bounded(features.driver, connection.open(Purpose::Messages)).await?,
    };
    bounded(features.driver, current.sender.send(message)).await?;
    let mut buffer = vec![0; message.len()];
    let length = bounded(features.driver, current.receiver.receive(&mut buffer)).await?;
    assert!(buffer[..length] == *message, "{}: {} bytes came back otherwise", transport.name(), message.len());
    if features.streams != Streams::PerMessage {
        *stream = Some(current);
    }
    Ok(())
}

#[test]
fn every_message_comes_back_as_it_was() {
    for transport in all() {
        let kinds: &[Payload] =
            if transport.features().text { &[Payload::Binary, Payload::Text] } else { &[Payload::Binary] };
        for address in LOOPBACK {
            for &payload in kinds {
                let settings = Settings { payload, ..settings() };
                let sizes = sizes(transport, address);
                between(
                    transport,
                    &settings,
                    address,
                    async |listener| {
                        // UDP has no sign that a connection ends.
                        let sizes = &sizes[..];
                        if transport.name() == "udp" {
                            return echo_datagrams(transport, listener.as_ref(), sizes).await;
                        }
                        let end = echo(transport, listener.as_ref(), sizes).await;
                        assert_eq!(end.outcome, Outcome::Closed, "{}: {end}", transport.name());
                    },
                    async |server| {
                        let mut connection = connect(transport, server, &settings).await;
                        let mut stream = None;
                        for (number, &size) in sizes.iter().enumerate() {
                            let result =
                                exchange(transport, connection.as_ref(), &mut stream, &message(size, number)).await;
                            result.unwrap_or_else(|e| panic!("{}: {size} bytes: {e}", transport.name()));
                        }
                        bounded(transport.features().driver, connection.close()).await.unwrap();
                    },
                );
            }
        }
    }
}

async fn echo_datagrams(transport: TransportRef, listener: &dyn Listener, sizes: &[usize]) {
    let driver = transport.features().driver;
    let mut connection = bounded(driver, listener.accept(PATIENCE)).await.unwrap();
    let mut stream = bounded(driver, connection.accept()).await.unwrap();
    let mut buffer = vec![0; 65_536];
    for _ in sizes {
        let length = bounded(driver, stream.receiver.receive(&mut buffer)).await.unwrap();
        bounded(driver, stream.sender.send(&buffer[..length])).await.unwrap();
    }
}

#[test]
fn streams_do_not_wait_for_each_other() {
    for transport in all().filter(|transport| transport.features().streams == Streams::Many) {
        let driver = transport.features().driver;
        let settings = settings();
        for address in LOOPBACK {
            between(
                transport,
                &settings,
                address,
                async |listener| {
                    let mut connection = bounded(driver, listener.accept(PATIENCE)).await.unwrap();
                    let mut streams = Vec::new();
                    for _ in 0..2 {
                        let mut stream = bounded(driver, connection.accept()).await.unwrap();
                        let mut buffer = [0; 100];
                        bounded(driver, stream.receiver.receive(&mut buffer)).await.unwrap();
                        streams.push((stream, buffer));
                    }
                    for (stream, buffer) in streams.iter_mut().rev() {
                        bounded(driver, stream.sender.send(buffer)).await.unwrap();
                    }
                    let end = bounded(driver, connection.accept()).await.err().unwrap();
                    assert_eq!(end.outcome, Outcome::Closed, "{}: {end}", transport.name());
                },
                async |server| {
                    let mut connection = connect(transport, server, &settings).await;
                    let mut streams = Vec::new();
                    for number in 0..2 {
                        let mut stream = bounded(driver, connection.open(Purpose::Messages)).await.unwrap();
                        bounded(driver, stream.sender.send(&message(100, number))).await.unwrap();
                        streams.push(stream);
                    }
                    for (number, stream) in streams.iter_mut().enumerate() {
                        let mut buffer = [0; 100];
                        bounded(driver, stream.receiver.receive(&mut buffer)).await.unwrap();
                        assert_eq!(buffer[..], message(100, number), "{}", transport.name());
                    }
                    bounded(driver, connection.close()).await.unwrap();
                },
            );
        }
    }
}

const TRANSFER: usize = 3_000_000;
const PART: usize = 128 * 1024;

async fn send_all(driver: Driver, stream: &mut Stream) {
    let bytes = message(TRANSFER, 7);
    for part in bytes.chunks(PART) {
        bounded(driver, stream.sender.send_some(part)).await.unwrap();
    }
    bounded(driver, stream.sender.finish()).await.unwrap();
}

async fn receive_all(driver: Driver, stream: &mut Stream) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut buffer = vec![0; PART];
    loop {
        match bounded(driver, stream.receiver.receive_some(&mut buffer)).await.unwrap() {
            0 => return bytes,
            n => bytes.extend_from_slice(&buffer[..n]),
        }
    }
}

/// Keeps the connection going until the client has received everything. Transports in user space send only
/// while the server's reactor runs, and some only while the server waits for the next stream.
async fn stay(
    transport: TransportRef,
    connection: &mut dyn Connection,
    mut client_is_done: tokio::sync::oneshot::Receiver<()>,
) {
    let features = transport.features();
    if features.driver == Driver::Reactor && features.streams != Streams::One {
        tokio::select! {
            done = &mut client_is_done => return done.unwrap(),
            next = connection.accept() => assert!(next.is_err(), "{}", transport.name()),
        }
    }
    // The accept may have failed first, because a client that has everything may close the connection at once.
    client_is_done.await.unwrap();
}

#[test]
fn an_upload_arrives_whole_and_ends() {
    for transport in all().filter(|transport| !transport.features().datagram) {
        let driver = transport.features().driver;
        let settings = settings();
        for address in LOOPBACK {
            let (done, client_is_done) = tokio::sync::oneshot::channel();
            between(
                transport,
                &settings,
                address,
                async |listener| {
                    let mut connection = bounded(driver, listener.accept(PATIENCE)).await.unwrap();
                    let mut stream = bounded(driver, connection.accept()).await.unwrap();
                    let bytes = receive_all(driver, &mut stream).await;
                    assert!(bytes == message(TRANSFER, 7), "{}: {} bytes", transport.name(), bytes.len());
                    bounded(driver, stream.sender.finish()).await.unwrap();
                    stay(transport, connection.as_mut(), client_is_done).await;
                },
                async |server| {
                    let mut connection = connect(transport, server, &settings).await;
                    let upload = Purpose::Upload(Some(TRANSFER as u64));
                    let mut stream = bounded(driver, connection.open(upload)).await.unwrap();
                    send_all(driver, &mut stream).await;
                    let rest = bounded(driver, stream.receiver.receive_some(&mut [0; 1])).await;
                    let rest = rest.unwrap_or_else(|e| panic!("{}: {e}", transport.name()));
                    assert_eq!(rest, 0, "{}", transport.name());
                    done.send(()).unwrap();
                    bounded(driver, connection.close())
                        .await
                        .unwrap_or_else(|e| panic!("{}: close: {e}", transport.name()));
                },
            );
        }
    }
}

#[test]
fn a_download_arrives_whole_and_ends() {
    for transport in all().filter(|transport| !transport.features().datagram) {
        let features = transport.features();
        let driver = features.driver;
        let settings = settings();
        let asks = !features.http && !features.server_speaks_first;
        for address in LOOPBACK {
            let (done, client_is_done) = tokio::sync::oneshot::channel();
            between(
                transport,
                &settings,
                address,
                async |listener| {
                    let mut connection = bounded(driver, listener.accept(PATIENCE)).await.unwrap();
                    let mut stream = bounded(driver, connection.accept()).await.unwrap();
                    assert_eq!(stream.asked, features.http.then_some(TRANSFER as u64), "{}", transport.name());
                    if asks {
                        bounded(driver, stream.receiver.receive(&mut [0; 1])).await.unwrap();
                    }
                    send_all(driver, &mut stream).await;
                    stay(transport, connection.as_mut(), client_is_done).await;
                },
                async |server| {
                    let mut connection = connect(transport, server, &settings).await;
                    let download = Purpose::Download(Some(TRANSFER as u64));
                    let mut stream = bounded(driver, connection.open(download)).await.unwrap();
                    if asks {
                        bounded(driver, stream.sender.send(&[0; 1])).await.unwrap();
                    }
                    let bytes = receive_all(driver, &mut stream).await;
                    assert!(bytes == message(TRANSFER, 7), "{}: {} bytes", transport.name(), bytes.len());
                    done.send(()).unwrap();
                    bounded(driver, connection.close()).await.unwrap();
                },
            );
        }
    }
}

#[test]
fn an_orderly_end_of_a_transfer_is_no_error() {
    let one_stream =
        |transport: &TransportRef| transport.features().streams == Streams::One && !transport.features().datagram;
    for transport in all().filter(one_stream) {
        let driver = transport.features().driver;
        let settings = settings();
        between(
            transport,
            &settings,
            LOOPBACK[0],
            async |listener| {
                let mut connection = bounded(driver, listener.accept(PATIENCE)).await.unwrap();
                let mut stream = bounded(driver, connection.accept()).await.unwrap();
                let end = bounded(driver, stream.receiver.receive_some(&mut [0; 1])).await;
                assert_eq!(end.unwrap(), 0, "{}", transport.name());
            },
            async |server| {
                let mut connection = connect(transport, server, &settings).await;
                bounded(driver, connection.close()).await.unwrap();
            },
        );
    }
}

#[test]
fn an_abort_is_noticed_at_both_ends() {
    for transport in all().filter(|transport| transport.name() != "udp") {
        let settings = settings();
        for address in LOOPBACK {
            let (server_noticed, server_has_noticed) = tokio::sync::oneshot::channel();
            between(
                transport,
                &settings,
                address,
                async |listener| {
                    let end = echo(transport, listener.as_ref(), &[10]).await;
                    let ended = matches!(end.outcome, Outcome::Reset | Outcome::Closed);
                    assert!(ended, "{}: {end}", transport.name());
                    server_noticed.send(()).unwrap();
                },
                async |server| {
                    let mut connection = connect(transport, server, &settings).await;
                    let mut stream = None;
                    exchange(transport, connection.as_ref(), &mut stream, &message(10, 0)).await.unwrap();
                    connection.abort();
                    if let Some(mut stream) = stream {
                        let end = bounded(transport.features().driver, stream.receiver.receive(&mut [0; 1])).await;
                        let outcome = end.unwrap_err().outcome;
                        assert!(matches!(outcome, Outcome::Reset | Outcome::Closed), "{}", transport.name());
                    }
                    drop(connection);
                    // QUIC sends its close from user space, so the reactor must run until the server has noticed.
                    let _ = server_has_noticed.await;
                },
            );
        }
    }
}

/// The outcome of a connection to `server` and of an exchange of one message on it.
fn attempt(transport: TransportRef, server: SocketAddr, settings: &Settings, patience: Duration) -> Outcome {
    let driver = transport.features().driver;
    let outcome = driver.run(async {
        let attempt = async {
            let connection = transport.connect(server, settings, patience).await?;
            exchange(transport, connection.as_ref(), &mut None, &[0; 10]).await
        };
        within(PATIENCE, "the test waits too long", attempt).await.map_or_else(|e| e.outcome, |()| Outcome::Ok)
    });
    outcome.unwrap()
}

/// The outcome of a connection to `server`. Unlike [`attempt`], it works without the timer of a reactor (tcp, udp).
fn attempt_connection(transport: TransportRef, server: SocketAddr, settings: &Settings, patience: Duration) -> Outcome {
    let driver = transport.features().driver;
    let outcome = driver
        .run(async { transport.connect(server, settings, patience).await.map_or_else(|e| e.outcome, |_| Outcome::Ok) });
    outcome.unwrap()
}

#[test]
fn a_port_where_nobody_listens_refuses() {
    let settings = settings();
    for transport in all().filter(|transport| transport.name() != "udp") {
        for address in LOOPBACK {
            // Port 1 belongs to tcpmux, which no machine has served for decades.
            let server = SocketAddr::new(address, 1);
            // The kernel's refusal may not reach QUIC, whose attempt then ends by its timeout.
            let patience = if over_quic(transport) { Duration::from_millis(500) } else { PATIENCE };
            let outcome = attempt_connection(transport, server, &settings, patience);
            if over_quic(transport) {
                assert!(matches!(outcome, Outcome::Timeout | Outcome::Refused), "{}: {outcome:?}", transport.name());
            } else {
                assert_eq!(outcome, Outcome::Refused, "{}", transport.name());
            }
        }
    }
}

#[test]
fn a_server_that_never_answers_is_given_up() {
    let settings = settings();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = silent.local_addr().unwrap();
    for transport in all().filter(|transport| over_tcp(*transport) && has_handshake(*transport)) {
        let outcome = attempt_connection(transport, server, &settings, Duration::from_millis(100));
        assert_eq!(outcome, Outcome::Timeout, "{}", transport.name());
    }
}

#[test]
fn a_server_of_another_protocol_is_a_protocol_error() {
    let settings = settings();
    for transport in all().filter(|transport| over_tcp(*transport) && transport.name() != "tcp") {
        let strange = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = strange.local_addr().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let (mut stream, _) = strange.accept().unwrap();
                let _ = stream.read(&mut [0; 4096]);
                stream.write_all(&b"200 Nice to meet you\r\n\r\n".repeat(10)).unwrap();
                // Reads until the client has closed the connection.
                while matches!(stream.read(&mut [0; 4096]), Ok(1..)) {}
            });
            let outcome = attempt(transport, server, &settings, PATIENCE);
            assert_eq!(outcome, Outcome::Protocol, "{}", transport.name());
        });
    }
}

#[test]
fn an_expired_certificate_is_refused() {
    let now = time::OffsetDateTime::now_utc();
    let expired = Security::valid(now - time::Duration::days(3), now - time::Duration::days(1)).unwrap();
    let settings = Settings { security: Some(Arc::new(expired)), ..Settings::default() };
    for transport in all().filter(|transport| transport.features().secure) {
        between(
            transport,
            &settings,
            LOOPBACK[0],
            async |listener| {
                let driver = transport.features().driver;
                let mut connection = bounded(driver, listener.accept(PATIENCE)).await.unwrap();
                assert!(bounded(driver, connection.accept()).await.is_err(), "{}", transport.name());
            },
            async |server| {
                let connection = transport.connect(server, &settings, PATIENCE).await;
                assert_eq!(connection.err().unwrap().outcome, Outcome::Certificate, "{}", transport.name());
            },
        );
    }
}

#[test]
fn a_session_that_polls_first_carries_messages_in_the_end() {
    for transport in all().filter(|transport| transport.features().polling) {
        let driver = transport.features().driver;
        for payload in [Payload::Binary, Payload::Text] {
            let settings = Settings { polling: true, payload, ..settings() };
            between(
                transport,
                &settings,
                LOOPBACK[0],
                async |listener| {
                    // One connection is for polling, and another one carries the messages.
                    let mut polling = bounded(driver, listener.accept(PATIENCE)).await.unwrap();
                    let (polled, end) = tokio::join!(
                        bounded(driver, polling.accept()),
                        echo(transport, listener.as_ref(), &[10, 1000])
                    );
                    assert_eq!(polled.err().unwrap().outcome, Outcome::Closed, "{}", transport.name());
                    assert_eq!(end.outcome, Outcome::Closed, "{}: {end}", transport.name());
                },
                async |server| {
                    let mut connection = connect(transport, server, &settings).await;
                    let mut stream = None;
                    for size in [10, 1000] {
                        let result = exchange(transport, connection.as_ref(), &mut stream, &message(size, size)).await;
                        result.unwrap_or_else(|e| panic!("{}: {e}", transport.name()));
                    }
                    bounded(driver, connection.close()).await.unwrap();
                },
            );
        }
    }
}

/// Opens three connections, one after another; returns of each whether it was resumed and whether it sent early data.
fn resumed(transport: TransportRef, resumption: Resumption) -> Vec<(bool, bool)> {
    let settings = Settings { resumption, ..settings() };
    let (send_phases, phases_of_connections) = mpsc::channel();
    between(
        transport,
        &settings,
        LOOPBACK[0],
        async |listener| {
            for _ in 0..3 {
                let end = echo(transport, listener.as_ref(), &[100]).await;
                assert_eq!(end.outcome, Outcome::Closed, "{}: {end}", transport.name());
            }
        },
        async |server| {
            for number in 0..3 {
                let mut connection = connect(transport, server, &settings).await;
                let mut stream = None;
                let result = exchange(transport, connection.as_ref(), &mut stream, &message(100, number)).await;
                result.unwrap_or_else(|e| panic!("{}: {e}", transport.name()));
                let phases = connection.phases();
                send_phases.send((phases.resumed, phases.early_data)).unwrap();
                bounded(transport.features().driver, connection.close()).await.unwrap();
            }
        },
    );
    phases_of_connections.try_iter().collect()
}

#[test]
fn sessions_are_resumed_where_they_are_to_be() {
    for transport in all().filter(|transport| transport.features().secure) {
        let name = transport.name();
        assert_eq!(resumed(transport, Resumption::None), [(false, false); 3], "{name}");
        assert_eq!(resumed(transport, Resumption::Session), [(false, false), (true, false), (true, false)], "{name}");
        if transport.features().early_data {
            let early = resumed(transport, Resumption::EarlyData);
            assert_eq!(early, [(false, false), (true, true), (true, true)], "{name}");
        }
    }
}
