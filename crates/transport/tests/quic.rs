//! The transports over QUIC, on loopback: a client and an echoing server on one reactor.
#![allow(clippy::unwrap_used, clippy::expect_used)] // helpers of tests, where a failure is a failed test

use crosswind_transport::security::Security;
use crosswind_transport::{
    Connection, Driver, Listener, Outcome, Purpose, Resumption, Settings, SocketSettings, Stream, Transport,
    TransportError, driver, find, serving,
};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use std::net::{SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

const STREAMS: [&str; 2] = ["quic", "webtransport"];
const DATAGRAMS: [&str; 2] = ["quic-datagram", "webtransport-datagram"];
const ALL: [&str; 4] = ["quic", "webtransport", "quic-datagram", "webtransport-datagram"];
/// A time limit that only a failing test reaches.
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

#[test]
fn messages_come_back_whatever_their_size() {
    for name in STREAMS {
        let settings = settings();
        with_server(name, &settings, async |server| {
            let mut connection = connect(name, server, &settings).await;
            let mut stream = open(&*connection).await;
            for size in [1, 65_536, 1_000_000] {
                echo(&mut stream, size).await.unwrap();
            }
            connection.close().await.unwrap();
        });
    }
}

#[test]
fn twenty_streams_share_a_connection() {
    for name in STREAMS {
        let settings = settings();
        with_server(name, &settings, async |server| {
            let connection = connect(name, server, &settings).await;
            let mut streams: FuturesUnordered<_> = (0..20_usize)
                .map(|i| {
                    let connection = &connection;
                    async move {
                        let mut stream = open(&**connection).await;
                        echo(&mut stream, 1 + i * 5_000).await
                    }
                })
                .collect();
            while let Some(done) = streams.next().await {
                done.unwrap();
            }
        });
    }
}

#[test]
fn a_finished_stream_ends_in_order() {
    for name in STREAMS {
        let settings = settings();
        with_server(name, &settings, async |server| {
            let connection = connect(name, server, &settings).await;
            let mut stream = open(&*connection).await;
            echo(&mut stream, 10).await.unwrap();
            stream.sender.finish().await.unwrap();
            let mut buffer = [0; 8];
            assert_eq!(stream.receiver.receive_some(&mut buffer).await.unwrap(), 0, "{name}");
            assert_eq!(outcome(stream.receiver.receive(&mut buffer).await), Outcome::Closed, "{name}");
        });
    }
}

/// The outcomes at the server when the client ends the connection.
fn end_at_server(name: &str, end: impl AsyncFnOnce(&mut Box<dyn Connection>)) -> (Outcome, Outcome) {
    let settings = settings();
    let run = async {
        let listener = transport(name).listen("127.0.0.1:0".parse().unwrap(), &settings).await.unwrap();
        let server = listener.address().unwrap();
        let client = async {
            let mut connection = connect(name, server, &settings).await;
            let mut stream = open(&*connection).await;
            stream.sender.send(b"x").await.unwrap();
            assert_eq!(stream.receiver.receive(&mut [0; 1]).await.unwrap(), 1);
            end(&mut connection).await;
            outcome(stream.receiver.receive(&mut [0; 1]).await)
        };
        let server = async {
            let mut connection = listener.accept(LONG).await.unwrap();
            let mut stream = connection.accept().await.unwrap();
            assert_eq!(stream.receiver.receive(&mut [0; 1]).await.unwrap(), 1);
            stream.sender.send(b"x").await.unwrap();
            outcome(connection.accept().await)
        };
        tokio::time::timeout(LONG, async { tokio::join!(client, server) }).await.unwrap()
    };
    Driver::Reactor.run(run).unwrap()
}

#[test]
fn the_other_end_can_tell_an_orderly_end_from_an_abort() {
    for name in ALL {
        let closed = end_at_server(name, async |connection| connection.close().await.unwrap());
        assert_eq!(closed, (Outcome::Closed, Outcome::Closed), "{name}");
        let (client, server) = end_at_server(name, async |connection| connection.abort());
        assert_eq!(client, Outcome::Closed, "{name}");
        // A WebTransport session does not always know why its connection ended.
        let known = [Outcome::Reset, if name.starts_with("webtransport") { Outcome::Closed } else { Outcome::Reset }];
        assert!(known.contains(&server), "{name}: {server:?}");
    }
}

#[test]
fn a_datagram_beyond_the_largest_is_refused() {
    for (name, largest) in DATAGRAMS.into_iter().zip([1162, 1161]) {
        assert_eq!(transport(name).largest_message(false, 1500), Some(largest));
        let settings = settings();
        with_server(name, &settings, async |server| {
            let connection = connect(name, server, &settings).await;
            let mut stream = open(&*connection).await;
            for size in [largest, 1, 100] {
                echo(&mut stream, size).await.unwrap();
            }
            assert_eq!(outcome(stream.sender.send(&vec![0; largest + 1]).await), Outcome::TooLarge, "{name}");
            stream.sender.send(&[7; 100]).await.unwrap();
            assert_eq!(outcome(stream.receiver.receive(&mut [0; 99]).await), Outcome::TooLarge, "{name}");
            echo(&mut stream, 100).await.unwrap();
        });
    }
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

#[test]
fn a_session_is_resumed_if_the_settings_say_so() {
    for name in ALL {
        let [_, second] = twice(name, &resuming(Resumption::None));
        assert!(!second.resumed && !second.early_data, "{name}");
        let [first, second] = twice(name, &resuming(Resumption::Session));
        assert!(!first.resumed && second.resumed && !second.early_data, "{name}");
        assert!(second.security.is_some() && second.transport.is_none());
        assert_eq!(second.upgrade.is_some(), name.starts_with("webtransport"));
    }
}

#[test]
fn a_connection_that_only_opens_and_closes_leaves_a_session_too() {
    for name in ALL {
        let settings = resuming(Resumption::Session);
        with_server(name, &settings, async |server| {
            for n in 0..5 {
                let mut connection = connect(name, server, &settings).await;
                assert_eq!(connection.phases().resumed, n > 0, "{name}");
                connection.close().await.unwrap();
            }
        });
    }
}

#[test]
fn early_data_travels_in_the_first_flight() {
    for name in ["quic", "quic-datagram"] {
        let directory = directory(&format!("early-{name}"));
        let settings = Settings { qlog: Some(directory.clone()), ..resuming(Resumption::EarlyData) };
        let [first, second] = twice(name, &settings);
        assert!(!first.resumed && !first.early_data, "{name}");
        assert!(second.resumed && second.early_data, "{name}");
        // Packets of this type carry nothing but early data.
        let early = |event: &serde_json::Value| event["data"]["header"]["packet_type"] == "0RTT";
        assert!(qlog(&directory.join("server.qlog")).iter().any(early), "{name}");
        std::fs::remove_dir_all(directory).unwrap();
    }
}

#[test]
fn early_data_that_the_server_refuses_is_not_reported() {
    let settings = resuming(Resumption::EarlyData);
    twice("quic", &settings);
    // Another server with the same certificate, which does not know the session.
    with_server("quic", &settings, async |server| {
        let connection = connect("quic", server, &settings).await;
        assert!(connection.phases().early_data, "sent before the server has answered");
        let mut stream = open(&*connection).await;
        assert_eq!(outcome(echo(&mut stream, 50).await), Outcome::Error);
        let phases = connection.phases();
        assert!(!phases.early_data && !phases.resumed);
        echo(&mut open(&*connection).await, 50).await.unwrap();
    });
}

#[test]
fn webtransport_has_no_early_data() {
    let settings = resuming(Resumption::EarlyData);
    let run = transport("webtransport").listen("127.0.0.1:0".parse().unwrap(), &settings);
    assert_eq!(outcome(Driver::Reactor.run(run).unwrap()), Outcome::Error);
}

async fn try_connect(name: &str, server: SocketAddr, settings: &Settings, timeout: Duration) -> Outcome {
    outcome(transport(name).connect(server, settings, timeout).await)
}

#[test]
fn an_expired_certificate_is_refused() {
    let now = time::OffsetDateTime::now_utc();
    let security = Security::valid(now - time::Duration::days(3), now - time::Duration::days(1)).unwrap();
    let settings = Settings { security: Some(Arc::new(security)), ..Settings::default() };
    for name in ALL {
        with_server(name, &settings, async |server| {
            assert_eq!(try_connect(name, server, &settings, LONG).await, Outcome::Certificate, "{name}");
        });
    }
}

#[test]
fn another_certificate_is_refused() {
    for name in ALL {
        with_server(name, &settings(), async |server| {
            assert_eq!(try_connect(name, server, &settings(), LONG).await, Outcome::Certificate, "{name}");
        });
    }
}

#[test]
fn another_protocol_is_noticed() {
    let settings = settings();
    for (client, server_name) in [("quic", "webtransport"), ("webtransport", "quic")] {
        with_server(server_name, &settings, async |server| {
            assert_eq!(try_connect(client, server, &settings, LONG).await, Outcome::Protocol, "{client}");
        });
    }
}

#[test]
fn a_server_that_is_not_there_is_a_timeout() {
    let settings = settings();
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    for name in ALL {
        let started = Instant::now();
        let timeout = Duration::from_millis(200);
        let run = try_connect(name, silent.local_addr().unwrap(), &settings, timeout);
        assert_eq!(Driver::Reactor.run(run).unwrap(), Outcome::Timeout, "{name}");
        assert!(started.elapsed() >= timeout);
    }
}

#[test]
fn garbage_does_not_disturb_a_server() {
    for name in ALL {
        let settings = settings();
        with_server(name, &settings, async |server| {
            let vandal = UdpSocket::bind("127.0.0.1:0").unwrap();
            // Every first byte, and so every type of packet, with and without a version that the server speaks.
            for kind in 0..=u8::MAX {
                for (size, version) in [(1, 0), (21, 1), (1200, 1), (1200, 0x0a0a_0a0a), (65_000, 0)] {
                    let mut packet: Vec<u8> =
                        (0..size).map(|i: usize| (i.wrapping_mul(167) >> 2) as u8 ^ kind.rotate_left(3)).collect();
                    packet[0] = kind;
                    if let Some(place) = packet.get_mut(1..5) {
                        place.copy_from_slice(&u32::to_be_bytes(version));
                    }
                    client.send_to(&packet, server).unwrap();
                }
                tokio::task::yield_now().await;
            }
            let mut connection = connect(name, server, &settings).await;
            let mut stream = open(&*connection).await;
            echo(&mut stream, 1000).await.unwrap();
            connection.close().await.unwrap();
        });
    }
}

#[test]
fn ipv6_works_as_well() {
    for name in ALL {
        let settings = settings();
        let run = async {
            let listener = transport(name).listen("[::1]:0".parse().unwrap(), &settings).await.unwrap();
            let server = listener.address().unwrap();
            let client = async {
                let connection = connect(name, server, &settings).await;
                echo(&mut open(&*connection).await, 500).await.unwrap();
            };
            tokio::select! {
                () = client => {}
                () = serve(listener) => panic!("the server ended"),
            }
        };
        Driver::Reactor.run(run).unwrap();
    }
}

#[test]
fn settings_are_read_back() {
    for name in ALL {
        let socket = SocketSettings {
            congestion_control: Some("reno".into()),
            send_buffer: Some(50_000),
            receive_buffer: Some(60_000),
            ..SocketSettings::default()
        };
        let settings = Settings { socket: socket.clone(), ..settings() };
        with_server(name, &settings, async |server| {
            let connection = connect(name, server, &settings).await;
            let found = connection.readback().unwrap();
            assert_eq!(socket.mismatch(&found), None);
            assert_eq!((found.send_buffer_bytes, found.receive_buffer_bytes), (100_000, 120_000));
            assert_eq!(found.congestion_control.as_deref(), Some("reno"));
        });
        let unknown = SocketSettings { congestion_control: Some("vegas".into()), ..SocketSettings::default() };
        let settings = Settings { socket: unknown, ..settings.clone() };
        let run = transport(name).listen("127.0.0.1:0".parse().unwrap(), &settings);
        assert_eq!(outcome(Driver::Reactor.run(run).unwrap()), Outcome::Error);
    }
}

#[test]
fn a_closed_connection_gives_its_port_back() {
    for name in ALL {
        let settings = settings();
        with_server(name, &settings, async |server| {
            let mut ports = Vec::new();
            for n in 0..20 {
                let mut connection = connect(name, server, &settings).await;
                ports.push(connection.client_port());
                match n % 3 {
                    0 => connection.close().await.unwrap(),
                    1 => connection.abort(),
                    _ => {}
                }
            }
            for port in ports {
                // The endpoint forgets the connection after three probe timeouts (RFC 9000, section 10.2).
                while UdpSocket::bind(("0.0.0.0", port)).is_err() {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            }
        });
    }
}

#[test]
fn a_handshake_goes_on_after_a_wait_was_given_up() {
    for name in ALL {
        let settings = settings();
        let run = async {
            let listener = transport(name).listen("127.0.0.1:0".parse().unwrap(), &settings).await.unwrap();
            let server = listener.address().unwrap();
            let client = async {
                let connection = connect(name, server, &settings).await;
                echo(&mut open(&*connection).await, 500).await.unwrap();
            };
            let server = async {
                let mut connection = listener.accept(LONG).await.unwrap();
                // If the first stream is there at once, no wait was given up, and that stream is served.
                match driver::within(Duration::ZERO, "cannot accept", connection.accept()).await {
                    Ok(stream) => drop(tokio::join!(echo_back(stream), serve_connection(connection))),
                    Err(given_up) => {
                        assert_eq!(given_up.outcome, Outcome::Timeout);
                        serve_connection(connection).await;
                    }
                }
            };
            tokio::join!(client, server);
        };
        Driver::Reactor.run(run).unwrap();
    }
}

fn directory(name: &str) -> PathBuf {
    let directory = std::env::temp_dir().join(format!("crosswind-quic-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    directory
}

/// The records of a JSON text sequence (RFC 7464).
fn qlog(path: &std::path::Path) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(path).unwrap();
    let records = text.strip_prefix('\u{1e}').expect("a record separator at first").split('\u{1e}');
    records
        .map(|record| serde_json::from_str(record.strip_suffix('\n').expect("a line feed at last")).unwrap())
        .collect()
}

#[test]
fn both_ends_write_a_qlog() {
    let directory = directory("both");
    let settings = Settings { qlog: Some(directory.clone()), ..settings() };
    twice("webtransport", &settings);
    for side in ["client", "server"] {
        let records = qlog(&directory.join(format!("{side}.qlog")));
        let (first, events) = records.split_first().unwrap();
        assert_eq!(first["qlog_format"], "JSON-SEQ");
        assert_eq!(first["title"], format!("crosswind {side}"));
        let named = |name: &str| events.iter().filter(|event| event["name"].as_str().unwrap().ends_with(name)).count();
        assert!(named("packet_sent") >= 10 && named("packet_received") >= 10, "{side}");
        let of_last = &events.last().unwrap()["group_id"];
        assert!(events.iter().filter(|event| &event["group_id"] == of_last).count() >= 20, "{side}");
        // The log has both connections.
        let first = |event: &&serde_json::Value| {
            let header = &event["data"]["header"];
            event["name"] == "transport:packet_sent"
                && header["packet_type"] == "initial"
                && header["packet_number"] == 0
        };
        assert_eq!(events.iter().filter(first).count(), 2, "{side}");
    }
    std::fs::remove_dir_all(directory).unwrap();
}
