//! HTTP/1.1 as text, and peers that violate it.

use crate::{PATIENCE, answer, exchange, loopback, pattern, settings, with_server};
use crosswind_transport::{Driver, Outcome, Purpose, Settings, TransportError, driver, find};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread::{JoinHandle, spawn};
use std::time::Duration;

/// The response to `request`, until the server closes, each byte as a character.
fn ask(address: SocketAddr, request: &str) -> String {
    let mut socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.write_all(request.as_bytes()).unwrap();
    let mut response = Vec::new();
    socket.read_to_end(&mut response).unwrap();
    let response: String = response.into_iter().map(char::from).collect();
    // Only its date differs from run to run.
    response.split_inclusive("\r\n").filter(|line| !line.starts_with("date: ")).collect()
}

#[test]
fn plain_requests_get_plain_answers() {
    let close = "host: x\r\nconnection: close\r\n";
    let (ok, closed) = ("HTTP/1.1 200 OK\r\n", "connection: close\r\n");
    let ten: String = pattern(10).into_iter().map(char::from).collect();
    let cases = [
        (format!("GET /bytes/10 HTTP/1.1\r\n{close}\r\n"), format!("{ok}content-length: 10\r\n{closed}\r\n{ten}")),
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

/// A server that reads one request's header, returns it, and then acts as given.
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

/// The outcome of an exchange with such a server, and the header it read.
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
fn servers_that_violate_the_protocol() {
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
            // Until the client has finished: unread bytes would reset the connection.
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
fn requests_have_the_method_path_and_size_that_they_should() {
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
    // With no space for a padding field there is none, rather than a longer header.
    assert_eq!(header("", smallest - 1, Purpose::Messages).len(), bare.len());
}

#[test]
fn clients_that_violate_the_protocol_end_only_their_own_connection() {
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
