//! HTTP in all its versions: against itself, against plain sockets, and against peers that break the rules.
#![allow(clippy::unwrap_used, clippy::expect_used)] // helpers of tests, where a failure is a failed test

use crosswind_transport::security::Security;
use crosswind_transport::{
    Connection, Driver, Listener, Outcome, Purpose, Resumption, Settings, SocketSettings, Stream, Transport,
    TransportError, driver, find, serving,
};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use std::cell::RefCell;
use std::future::Future;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::{JoinHandle, spawn};
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

/// Answers one stream as a server of ours does: counts uploads, streams what was asked for, echoes the rest.
async fn answer(mut stream: Stream) -> Result<(), TransportError> {
    if let Some(asked) = stream.asked {
        let piece = pattern(64 * 1024);
        let mut left = asked;
        while left > 0 {
            let length = left.min(piece.len() as u64);
            stream.sender.send_some(&piece[..length as usize]).await?;
            left -= length;
        }
        return stream.sender.finish().await;
    }
    let mut body = vec![0; 8 << 20];
    let length = stream.receiver.receive(&mut body).await?;
    stream.sender.send(&body[..length]).await?;
    assert_eq!(stream.receiver.receive(&mut body).await.unwrap_err().outcome, Outcome::Closed);
    stream.sender.finish().await
}

/// Serves every stream of every connection with `handle`, at once.
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

/// Runs `client` against a server that treats its streams with `handle`.
fn with_server<F: Future, C: Future>(
    name: &str,
    settings: &Settings,
    handle: impl Fn(Stream) -> F,
    client: impl FnOnce(&'static dyn Transport, SocketAddr) -> C,
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

/// Everything that comes until the end.
async fn drain(stream: &mut Stream) -> Result<Vec<u8>, TransportError> {
    let (mut all, mut piece) = (Vec::new(), vec![0; 100_000]);
    loop {
        match stream.receiver.receive_some(&mut piece).await? {
            0 => return Ok(all),
            length => all.extend_from_slice(&piece[..length]),
        }
    }
}

#[test]
fn messages_come_back_byte_for_byte() {
    for name in ALL {
        let settings = settings();
        with_server(name, &settings, answer, async |transport, address| {
            let mut connection = transport.connect(address, &settings, PATIENCE).await.unwrap();
            for size in [0, 1, 65_536, 1_000_000, 3] {
                let message = pattern(size);
                assert!(exchange(connection.as_ref(), &message).await.unwrap() == message, "{name}, {size}");
            }
            let phases = connection.phases();
            assert_eq!(phases.transport.is_some(), name != "http3", "{name}");
            assert_eq!(phases.security.is_some(), transport.features().secure, "{name}");
            assert_eq!(phases.upgrade, None);
            assert_ne!(connection.client_port(), 0);
            assert!(connection.readback().unwrap().receive_buffer_bytes > 0);
            connection.close().await.unwrap();
            assert!(connection.open(Purpose::Messages).await.is_err(), "{name}");
        });
    }
}

#[test]
fn many_bytes_go_up_and_down() {
    const BYTES: usize = 5_000_000;
    for name in ALL {
        let settings = settings();
        with_server(name, &settings, answer, async |transport, address| {
            let connection = transport.connect(address, &settings, PATIENCE).await.unwrap();
            for length in [Some(BYTES as u64), None] {
                let Stream { mut sender, mut receiver, .. } = connection.open(Purpose::Upload(length)).await.unwrap();
                let sent = pattern(BYTES);
                let upload = async {
                    for part in sent.chunks(70_000) {
                        sender.send_some(part).await.unwrap();
                    }
                    sender.finish().await.unwrap();
                };
                let (mut back, mut piece) = (Vec::new(), vec![0; 50_000]);
                let download = async {
                    loop {
                        match receiver.receive_some(&mut piece).await.unwrap() {
                            0 => break,
                            length => back.extend_from_slice(&piece[..length]),
                        }
                    }
                };
                tokio::join!(upload, download);
                assert!(back == sent, "{name}, {length:?}");
                assert_eq!(receiver.receive_some(&mut [0; 1]).await.unwrap(), 0);
            }
            for bytes in [0, 1, BYTES as u64] {
                let mut stream = connection.open(Purpose::Download(Some(bytes))).await.unwrap();
                stream.sender.finish().await.unwrap();
                let body = drain(&mut stream).await.unwrap();
                assert_eq!(body.len() as u64, bytes, "{name}");
                assert!(body.chunks(64 * 1024).all(|chunk| chunk == pattern(chunk.len())), "{name}");
            }
        });
    }
}

#[test]
fn an_upload_is_counted_and_answered_by_nothing() {
    for name in ALL {
        let (settings, counted) = (settings(), RefCell::new(Vec::new()));
        let count = |mut stream: Stream| {
            let counted = &counted;
            async move {
                assert_eq!(stream.asked, None);
                let body = drain(&mut stream).await.unwrap();
                counted.borrow_mut().push(body.len());
                stream.sender.finish().await.unwrap();
            }
        };
        with_server(name, &settings, count, async |transport, address| {
            let connection = transport.connect(address, &settings, PATIENCE).await.unwrap();
            let part = pattern(100_000);
            for length in [Some(0), Some(5_000_000), None] {
                let mut stream = connection.open(Purpose::Upload(length)).await.unwrap();
                for _ in 0..length.unwrap_or(5_000_000) / 100_000 {
                    stream.sender.send_some(&part).await.unwrap();
                }
                stream.sender.finish().await.unwrap();
                assert!(drain(&mut stream).await.unwrap().is_empty(), "{name}");
            }
        });
        assert_eq!(counted.into_inner(), [0, 5_000_000, 5_000_000], "{name}");
    }
}

#[test]
fn streams_of_one_connection_make_headway_side_by_side() {
    for name in SHARED {
        let (settings, held) = (settings(), RefCell::new(Vec::new()));
        // Nothing is answered before all have come, and then the last comes first.
        let hold = |stream: Stream| {
            let held = &held;
            async move {
                held.borrow_mut().push(stream);
                if held.borrow().len() == 50 {
                    let all = std::mem::take(&mut *held.borrow_mut());
                    for stream in all.into_iter().rev() {
                        answer(stream).await.unwrap();
                    }
                }
            }
        };
        with_server(name, &settings, hold, async |transport, address| {
            let connection = transport.connect(address, &settings, PATIENCE).await.unwrap();
            let connection = connection.as_ref();
            let exchanges = (0..50).map(async |i| exchange(connection, &pattern(i * 100)).await.unwrap());
            let replies = futures_util::future::join_all(exchanges).await;
            assert!(replies.iter().enumerate().all(|(i, reply)| *reply == pattern(i * 100)), "{name}");
        });
    }
}

#[test]
fn http1_serves_one_at_a_time_in_turn() {
    for name in ["http1", "https1"] {
        let (settings, open, order) = (settings(), RefCell::new(0), RefCell::new(Vec::new()));
        let one = |stream: Stream| {
            let open = &open;
            async move {
                *open.borrow_mut() += 1;
                assert_eq!(*open.borrow(), 1);
                tokio::time::sleep(Duration::from_millis(5)).await;
                *open.borrow_mut() -= 1;
                answer(stream).await.unwrap();
            }
        };
        with_server(name, &settings, one, async |transport, address| {
            let connection = transport.connect(address, &settings, PATIENCE).await.unwrap();
            let (connection, order) = (connection.as_ref(), &order);
            let exchanges = (0..5).map(async |i| {
                let reply = exchange(connection, &pattern(i)).await.unwrap();
                order.borrow_mut().push(reply.len());
            });
            futures_util::future::join_all(exchanges).await;
        });
        assert_eq!(order.into_inner(), [0, 1, 2, 3, 4], "{name}");
    }
}

#[test]
fn what_does_not_fit_is_too_large() {
    for name in ALL {
        let settings = settings();
        let send_twice = async |mut stream: Stream| {
            let short = stream.receiver.receive(&mut [0; 10]).await;
            assert!(matches!(short, Err(e) if e.outcome == Outcome::TooLarge));
            stream.sender.send(&[1; 100]).await.unwrap();
            assert_eq!(stream.sender.send(&[1; 100]).await.unwrap_err().outcome, Outcome::Closed);
        };
        with_server(name, &settings, send_twice, async |transport, address| {
            let connection = transport.connect(address, &settings, PATIENCE).await.unwrap();
            let mut stream = connection.open(Purpose::Messages).await.unwrap();
            stream.sender.send(&[1; 11]).await.unwrap();
            assert!(stream.sender.send(&[1]).await.is_err());
            let received = stream.receiver.receive(&mut [0; 99]).await;
            assert_eq!(received.unwrap_err().outcome, Outcome::TooLarge, "{name}");
        });
    }
}

#[test]
fn a_body_is_as_long_as_was_said() {
    for name in ALL {
        let settings = settings();
        with_server(name, &settings, answer, async |transport, address| {
            let connection = transport.connect(address, &settings, PATIENCE).await.unwrap();
            let mut stream = connection.open(Purpose::Upload(Some(10))).await.unwrap();
            stream.sender.send_some(&[0; 6]).await.unwrap();
            assert_eq!(stream.sender.send_some(&[0; 6]).await.unwrap_err().outcome, Outcome::TooLarge, "{name}");
            drop(stream);

            let connection = transport.connect(address, &settings, PATIENCE).await.unwrap();
            let mut stream = connection.open(Purpose::Upload(Some(10))).await.unwrap();
            stream.sender.send_some(&[0; 6]).await.unwrap();
            assert_eq!(stream.sender.finish().await.unwrap_err().outcome, Outcome::Error, "{name}");
            drop(stream.sender);
            assert!(stream.receiver.receive(&mut [0; 10]).await.is_err(), "{name}");
        });
    }
}

#[test]
fn a_stream_dropped_without_an_answer_fails() {
    for name in ALL {
        let settings = settings();
        with_server(
            name,
            &settings,
            async |stream| drop(stream),
            async |transport, address| {
                let connection = transport.connect(address, &settings, PATIENCE).await.unwrap();
                let failed = exchange(connection.as_ref(), &[1; 10]).await.unwrap_err();
                assert!(matches!(failed.outcome, Outcome::Protocol | Outcome::Reset), "{name}: {failed}");
            },
        );
    }
}

#[test]
fn a_server_that_never_answers_is_a_timeout_and_the_others_go_on() {
    for name in ALL {
        let settings = settings();
        let some = async |mut stream: Stream| {
            let mut body = [0; 10];
            match stream.receiver.receive(&mut body).await {
                Ok(1) => std::future::pending::<()>().await,
                Ok(length) => stream.sender.send(&body[..length]).await.unwrap(),
                Err(_) => {}
            }
        };
        with_server(name, &settings, some, async |transport, address| {
            let connection = transport.connect(address, &settings, PATIENCE).await.unwrap();
            let silent = exchange(connection.as_ref(), &[1]);
            let late = driver::within(Duration::from_millis(50), "cannot exchange", silent).await;
            assert_eq!(late.unwrap_err().outcome, Outcome::Timeout, "{name}");
            let next = exchange(connection.as_ref(), &[1, 2]).await;
            // HTTP/1.1 has no way to give up a request but to give up its connection.
            if transport.features().shares_connection {
                assert_eq!(next.unwrap(), [1, 2], "{name}");
            } else {
                assert_eq!(next.unwrap_err().outcome, Outcome::Closed, "{name}");
            }
        });
    }
}

#[test]
fn nothing_received_is_lost_when_a_wait_is_given_up() {
    for name in ALL {
        let settings = settings();
        let slow = async |mut stream: Stream| {
            for byte in 0..10 {
                tokio::time::sleep(Duration::from_millis(3)).await;
                stream.sender.send_some(&[byte]).await.unwrap();
            }
            stream.sender.finish().await.unwrap();
        };
        with_server(name, &settings, slow, async |transport, address| {
            let connection = transport.connect(address, &settings, PATIENCE).await.unwrap();
            let mut stream = connection.open(Purpose::Download(Some(10))).await.unwrap();
            let (mut all, mut piece) = (Vec::new(), [0; 4]);
            loop {
                let some = stream.receiver.receive_some(&mut piece);
                match driver::within(Duration::from_millis(1), "cannot receive", some).await {
                    Ok(0) => break,
                    Ok(length) => all.extend_from_slice(&piece[..length]),
                    Err(e) => assert_eq!(e.outcome, Outcome::Timeout),
                }
            }
            assert_eq!(all, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9], "{name}");
        });
    }
}

/// How the server's wait ends when the client closes or aborts.
#[test]
fn ends_are_seen_by_the_other_end() {
    for name in ALL {
        // hyper takes a reset between two requests of HTTP/1.1 for an end, except of TLS.
        let aborted = if name == "http1" { Outcome::Closed } else { Outcome::Reset };
        for (how, expected) in [("close", Outcome::Closed), ("abort", aborted)] {
            let (settings, transport) = (settings(), find(name).unwrap());
            let work = async {
                let listener = transport.listen(loopback(), &settings).await.unwrap();
                let address = listener.address().unwrap();
                let server = async {
                    let mut connection = listener.accept(PATIENCE).await.unwrap();
                    let stream = connection.accept().await.unwrap();
                    answer(stream).await.unwrap();
                    connection.accept().await.err().unwrap()
                };
                let client = async {
                    let mut connection = transport.connect(address, &settings, PATIENCE).await.unwrap();
                    exchange(connection.as_ref(), &[1; 10]).await.unwrap();
                    match how {
                        "close" => connection.close().await.unwrap(),
                        _ => connection.abort(),
                    }
                };
                let (end, ()) = tokio::join!(server, client);
                assert_eq!(end.outcome, expected, "{name}, {how}: {end}");
            };
            run(name, work);
        }
    }
}

#[test]
fn a_server_that_aborts_ends_the_wait_of_its_client() {
    for name in ALL {
        let (settings, transport) = (settings(), find(name).unwrap());
        let work = async {
            let listener = transport.listen(loopback(), &settings).await.unwrap();
            let address = listener.address().unwrap();
            let server = async {
                let mut connection = listener.accept(PATIENCE).await.unwrap();
                let stream = connection.accept().await.unwrap();
                connection.abort();
                drop((stream, connection));
            };
            let client = async {
                let connection = transport.connect(address, &settings, PATIENCE).await.unwrap();
                exchange(connection.as_ref(), &[1; 10]).await.unwrap_err()
            };
            let ((), end) = tokio::join!(server, client);
            assert_eq!(end.outcome, Outcome::Reset, "{name}: {end}");
        };
        run(name, work);
    }
}

#[test]
fn an_end_of_its_own_ends_a_clients_waits() {
    for name in ALL {
        for how in ["close", "abort", "drop"] {
            let settings = settings();
            with_server(
                name,
                &settings,
                async |_stream| std::future::pending::<()>().await,
                async |transport, address| {
                    let mut connection = transport.connect(address, &settings, PATIENCE).await.unwrap();
                    let mut stream = connection.open(Purpose::Messages).await.unwrap();
                    stream.sender.send(&[1]).await.unwrap();
                    let mut into = [0; 1];
                    let early = stream.receiver.receive(&mut into);
                    assert!(driver::within(Duration::from_millis(20), "", early).await.is_err());
                    match how {
                        // HTTP/2 goes on for as long as it takes; the caller has no more time than that.
                        "close" => drop(driver::within(Duration::from_millis(100), "", connection.close()).await),
                        "abort" => connection.abort(),
                        _ => drop(connection),
                    }
                    let ended = stream.receiver.receive(&mut [0; 1]).await.unwrap_err();
                    assert!(matches!(ended.outcome, Outcome::Reset | Outcome::Closed), "{name}, {how}: {ended}");
                    assert!(how != "abort" || name == "http3" || ended.outcome == Outcome::Reset, "{name}: {ended}");
                },
            );
        }
    }
}

#[test]
fn over_ipv6() {
    for name in ALL {
        let (settings, transport) = (settings(), find(name).unwrap());
        let work = async {
            let listener = transport.listen("[::1]:0".parse().unwrap(), &settings).await.unwrap();
            let address = listener.address().unwrap();
            tokio::select! {
                () = serve(listener.as_ref(), answer) => unreachable!(),
                () = async {
                    let connection = transport.connect(address, &settings, PATIENCE).await.unwrap();
                    assert_eq!(exchange(connection.as_ref(), b"message").await.unwrap(), b"message", "{name}");
                } => {}
            }
        };
        run(name, work);
    }
}

/// What runs on its own ends with the connection, at both ends, however it ends.
#[test]
fn no_task_outlives_its_connection() {
    for name in ["http1", "https1", "h2c", "http2"] {
        for how in ["close", "abort", "drop", "drop while waiting"] {
            let (settings, transport) = (settings(), find(name).unwrap());
            let work = async {
                let listener = transport.listen(loopback(), &settings).await.unwrap();
                let address = listener.address().unwrap();
                let server = async { listener.accept(PATIENCE).await.unwrap() };
                let client = transport.connect(address, &settings, PATIENCE);
                let accepted = async {
                    let mut accepted = server.await;
                    let stream = accepted.accept().await;
                    (accepted, stream)
                };
                let asked = async {
                    let connection = client.await.unwrap();
                    let mut stream = connection.open(Purpose::Messages).await.unwrap();
                    stream.sender.send(&[1]).await.unwrap();
                    (connection, stream)
                };
                let ((mut accepted, at_server), (mut connection, mut at_client)) = tokio::join!(accepted, asked);
                let metrics = tokio::runtime::Handle::current().metrics();
                assert!(metrics.num_alive_tasks() > 0, "{name}");
                if how != "drop while waiting" {
                    let mut at_server = at_server.unwrap();
                    at_server.sender.send(&[2]).await.unwrap();
                    let mut reply = [0; 1];
                    tokio::select! {
                        answer = at_client.receiver.receive(&mut reply) => assert_eq!(answer.unwrap(), 1, "{name}"),
                        _ = accepted.accept() => panic!("{name}: nothing more was asked"),
                    }
                }
                match how {
                    "close" => connection.close().await.unwrap(),
                    "abort" => connection.abort(),
                    _ => {}
                }
                drop((connection, accepted));
                for _ in 0..100 {
                    tokio::task::yield_now().await;
                }
                assert_eq!(metrics.num_alive_tasks(), 0, "{name}, {how}");
            };
            run(name, work);
        }
    }
}

#[test]
fn sessions_are_resumed() {
    for (name, early) in [("https1", false), ("http2", false), ("http3", false), ("http3", true)] {
        let resumption = if early { Resumption::EarlyData } else { Resumption::Session };
        let settings = Settings { resumption, ..settings() };
        with_server(name, &settings, answer, async |transport, address| {
            for resumed in [false, true] {
                let mut connection = transport.connect(address, &settings, PATIENCE).await.unwrap();
                assert_eq!(exchange(connection.as_ref(), b"message").await.unwrap(), b"message");
                let phases = connection.phases();
                assert_eq!(phases.resumed, resumed, "{name}");
                assert_eq!(phases.early_data, resumed && early, "{name}");
                connection.close().await.unwrap();
            }
        });
    }
}

#[test]
fn certificates_and_versions_are_checked() {
    for name in ["https1", "http2", "http3"] {
        let (ours, others) = (settings(), settings());
        let transport = find(name).unwrap();
        with_server(name, &ours, answer, async |_, address| {
            let refused = transport.connect(address, &others, PATIENCE).await.err().unwrap();
            assert_eq!(refused.outcome, Outcome::Certificate, "{name}: {refused}");
        });
    }
    let settings = settings();
    for (server, client) in [("https1", "http2"), ("http2", "https1")] {
        with_server(server, &settings, answer, async |_, address| {
            let refused = find(client).unwrap().connect(address, &settings, PATIENCE).await.err().unwrap();
            assert_eq!(refused.outcome, Outcome::Protocol, "{client} to {server}: {refused}");
        });
    }
}

/// What a plain client gets for `request` until the server closes, a byte a character.
fn ask(address: SocketAddr, request: &str) -> String {
    let mut socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.write_all(request.as_bytes()).unwrap();
    let mut response = Vec::new();
    socket.read_to_end(&mut response).unwrap();
    let response: String = response.into_iter().map(char::from).collect();
    // Its date is the only part that differs from run to run.
    response.split_inclusive("\r\n").filter(|line| !line.starts_with("date: ")).collect()
}

#[test]
fn plain_requests_get_plain_answers() {
    let close = "host: x\r\nconnection: close\r\n";
    let (ok, closed) = ("HTTP/1.1 200 OK\r\n", "connection: close\r\n");
    let ten: String = pattern(10).into_iter().map(char::from).collect();
    let cases = [
        (format!("GET /bytes/10 HTTP/1.1\r\n{close}\r\n"), format!("{ok}{closed}content-length: 10\r\n\r\n{ten}")),
        (format!("GET /bytes/0 HTTP/1.1\r\n{close}\r\n"), format!("{ok}{closed}content-length: 0\r\n\r\n")),
        (format!("HEAD /bytes/10 HTTP/1.1\r\n{close}\r\n"), format!("{ok}content-length: 10\r\n{closed}\r\n")),
        (
            format!("POST /any?at=all HTTP/1.1\r\n{close}content-length: 5\r\n\r\nhello"),
            format!("{ok}{closed}content-length: 5\r\n\r\nhello"),
        ),
        (
            format!("POST /echo HTTP/1.1\r\n{close}transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n1\r\nd\r\n0\r\n\r\n"),
            format!("{ok}{closed}content-length: 4\r\n\r\nabcd"),
        ),
        (
            format!("POST /echo HTTP/1.1\r\n{close}content-length: 2\r\nexpect: 100-continue\r\n\r\nok"),
            format!("HTTP/1.1 100 Continue\r\n\r\n{ok}{closed}content-length: 2\r\n\r\nok"),
        ),
        (
            format!("GET /other HTTP/1.1\r\n{close}\r\n"),
            format!("HTTP/1.1 404 Not Found\r\n{closed}content-length: 0\r\n\r\n"),
        ),
        (
            format!("DELETE /bytes/1 HTTP/1.1\r\n{close}\r\n"),
            format!("HTTP/1.1 405 Method Not Allowed\r\nallow: GET, HEAD, POST\r\n{closed}content-length: 0\r\n\r\n"),
        ),
        ("nonsense\r\n\r\n".into(), format!("HTTP/1.1 400 Bad Request\r\n{closed}content-length: 0\r\n\r\n")),
    ];
    let settings = settings();
    with_server("http1", &settings, answer, async |_, address| {
        for (request, response) in cases {
            let asked = request.clone();
            let got = tokio::task::spawn_blocking(move || ask(address, &asked)).await.unwrap();
            assert_eq!(got, response, "{request}");
        }
    });
}

/// A server that reads one request's header, hands it back, and does as it is told.
fn plain_server(act: impl FnOnce(TcpStream) + Send + 'static) -> (SocketAddr, JoinHandle<String>) {
    let listener = TcpListener::bind(loopback()).unwrap();
    let address = listener.local_addr().unwrap();
    let server = spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut header = Vec::new();
        while !header.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            if socket.read(&mut byte).unwrap() == 0 {
                break;
            }
            header.extend(byte);
        }
        act(socket);
        String::from_utf8(header).unwrap()
    });
    (address, server)
}

/// What an exchange with such a server comes to.
fn against(
    name: &str,
    settings: &Settings,
    purpose: Purpose,
    patience: Duration,
    act: impl FnOnce(TcpStream) + Send + 'static,
) -> (Outcome, String) {
    let (address, server) = plain_server(act);
    let work = async {
        let connection = find(name).unwrap().connect(address, settings, PATIENCE).await?;
        let mut stream = connection.open(purpose).await?;
        stream.sender.send(&[b'm'; 3]).await?;
        let mut into = [0; 100];
        driver::within(patience, "cannot receive", stream.receiver.receive(&mut into)).await?;
        Ok::<(), TransportError>(())
    };
    let result = Driver::Reactor.run(work).unwrap();
    (result.map_or_else(|e| e.outcome, |()| Outcome::Ok), server.join().unwrap())
}

#[test]
fn servers_that_break_the_rules() {
    let settings = settings();
    let cases: [(&str, &'static [u8], &[Outcome]); 9] = [
        ("http1", b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok", &[Outcome::Ok]),
        ("http1", b"HTTP/1.1 200 OK\r\ncontent-length: 20\r\n\r\nok", &[Outcome::Closed]),
        ("http1", b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", &[Outcome::Protocol]),
        ("http1", b"HTTP/1.1 200 OK\r\ncontent-length: 200\r\n\r\nok", &[Outcome::TooLarge]),
        ("http1", b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 2\r\n\r\nno", &[Outcome::Protocol]),
        ("http1", b"HTTP/1.1 200 OK\r\ncontent-le", &[Outcome::Closed]),
        ("http1", b"\x00\x01\x02 nonsense\r\n\r\n", &[Outcome::Protocol]),
        ("http1", b"", &[Outcome::Closed]),
        ("h2c", b"HTTP/1.1 400 Bad Request\r\n\r\n", &[Outcome::Protocol]),
    ];
    for (name, response, expected) in cases {
        let (outcome, _) = against(name, &settings, Purpose::Messages, PATIENCE, move |mut socket| {
            socket.write_all(response).unwrap();
            socket.shutdown(Shutdown::Write).unwrap();
            // Until the client is done: what it sent and nobody read would reset the connection.
            let _ = socket.read_to_end(&mut Vec::new());
        });
        assert!(expected.contains(&outcome), "{name}, {}: {outcome:?}", String::from_utf8_lossy(response));
    }
    for name in ["http1", "h2c"] {
        let (outcome, _) = against(name, &settings, Purpose::Messages, Duration::from_millis(50), |mut socket| {
            let _ = socket.read_to_end(&mut Vec::new());
        });
        assert_eq!(outcome, Outcome::Timeout, "{name}");
    }
}

#[test]
fn a_reset_is_a_reset() {
    // Closing with a byte unread resets (RFC 2525, section 2.17).
    let (outcome, _) =
        against(
            "http1",
            &settings(),
            Purpose::Messages,
            PATIENCE,
            |socket| while socket.peek(&mut [0; 1]).unwrap() == 0 {},
        );
    assert_eq!(outcome, Outcome::Reset);
}

#[test]
fn requests_are_what_they_should_be() {
    let header = |path: &str, request_bytes: usize, purpose: Purpose| {
        let settings = Settings { request_bytes, path: path.into(), ..settings() };
        let (_, header) = against("http1", &settings, purpose, PATIENCE, |mut socket| {
            let _ = socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
            let _ = socket.read_to_end(&mut Vec::new());
        });
        header
    };
    let lines =
        |header: &str| header.split("\r\n").map(|line| line.split(':').next().unwrap().to_owned()).collect::<Vec<_>>();

    let bare = header("", 0, Purpose::Messages);
    assert!(bare.starts_with("POST /echo HTTP/1.1\r\nhost: 127.0.0.1:"), "{bare}");
    assert_eq!(lines(&bare), ["POST /echo HTTP/1.1", "host", "content-length", "", ""]);
    assert!(header("/where?a=b", 0, Purpose::Messages).starts_with("POST /where?a=b HTTP/1.1\r\n"));
    assert!(header("/file", 0, Purpose::Download(None)).starts_with("GET /file HTTP/1.1\r\n"));
    assert!(header("", 0, Purpose::Download(None)).starts_with("GET / HTTP/1.1\r\n"));
    assert!(header("/file", 0, Purpose::Download(Some(7))).starts_with("GET /bytes/7 HTTP/1.1\r\n"));
    assert!(header("", 0, Purpose::Upload(Some(3))).starts_with("POST /upload HTTP/1.1\r\n"));
    assert!(header("", 0, Purpose::Upload(None)).contains("\r\ntransfer-encoding: chunked\r\n"));

    let smallest = bare.len() + "x-padding: \r\n".len();
    for bytes in [smallest, smallest + 1, 400, 8_000] {
        let header = header("", bytes, Purpose::Messages);
        assert_eq!(header.len(), bytes);
        assert_eq!(lines(&header), ["POST /echo HTTP/1.1", "host", "content-length", "x-padding", "", ""]);
    }
    for purpose in
        [Purpose::Upload(None), Purpose::Upload(Some(12_345)), Purpose::Download(Some(50_000)), Purpose::Download(None)]
    {
        assert_eq!(header("", 400, purpose).len(), 400, "{purpose:?}");
    }
    // Not enough room for a field: none, rather than a longer header.
    assert_eq!(header("", smallest - 1, Purpose::Messages).len(), bare.len());
}

#[test]
fn a_padded_header_passes_in_every_version() {
    for name in ALL {
        let settings = Settings { request_bytes: 60_000, ..settings() };
        with_server(name, &settings, answer, async |transport, address| {
            let connection = transport.connect(address, &settings, PATIENCE).await.unwrap();
            for _ in 0..3 {
                assert_eq!(exchange(connection.as_ref(), b"message").await.unwrap(), b"message", "{name}");
            }
        });
    }
}

#[test]
fn nobody_listens() {
    let settings = settings();
    let free = TcpListener::bind(loopback()).unwrap().local_addr().unwrap();
    for name in ["http1", "https1", "h2c", "http2"] {
        let work = async { find(name).unwrap().connect(free, &settings, PATIENCE).await.err().unwrap() };
        assert_eq!(Driver::Reactor.run(work).unwrap().outcome, Outcome::Refused, "{name}");
    }
}

/// What anybody may send to a server leaves it standing.
#[test]
fn clients_that_break_the_rules_end_their_own_connection_only() {
    for name in ["http1", "https1", "h2c", "http2"] {
        let settings = settings();
        with_server(name, &settings, answer, async |transport, address| {
            for nonsense in [
                &b"\x16\x03\x01\x00\x00\xff\xff"[..],
                b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\xff\xff",
                &[0; 16_000],
            ] {
                let send = move || {
                    let mut socket = TcpStream::connect(address).unwrap();
                    let _ = socket.write_all(nonsense);
                    let _ = socket.shutdown(Shutdown::Write);
                    let _ = socket.read_to_end(&mut Vec::new());
                };
                tokio::task::spawn_blocking(send).await.unwrap();
            }
            let connection = transport.connect(address, &settings, PATIENCE).await.unwrap();
            assert_eq!(exchange(connection.as_ref(), b"message").await.unwrap(), b"message", "{name}");
        });
    }
}
