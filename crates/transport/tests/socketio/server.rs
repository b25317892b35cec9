//! Our server against a scripted client.

use crate::{PATIENCE, run};
use crosswind_transport::{Connection, Listener, Settings, Stream, TransportError, find};
use futures_util::{SinkExt, StreamExt};
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::{JoinHandle, spawn_local};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{WebSocketStream, client_async};

/// A client's answer to joining, up to its id.
const JOINED: &str = "40{\"sid\":";
/// A message's text with one binary argument, which follows it.
const BINARY: &str = r#"451-["m",{"_placeholder":true,"num":0}]"#;

/// A connection's server end, and its stream.
type Accepted = Result<(Box<dyn Connection>, Stream), TransportError>;

/// A server, and connections to it.
struct Server {
    listener: Box<dyn Listener>,
    address: SocketAddr,
}

/// A session's requests.
struct Http {
    connection: TcpStream,
    query: String,
}

impl Server {
    async fn new() -> Self {
        let (settings, address) = (Settings::default(), "127.0.0.1:0".parse().unwrap());
        let listener = find("socketio-websocket").unwrap().listen(address, &settings).await.unwrap();
        let address = listener.address().unwrap();
        Self { listener, address }
    }

    /// A connection accepted by the server, and its stream as soon as there is one.
    async fn connect(&self) -> (TcpStream, JoinHandle<Accepted>) {
        let tcp = TcpStream::connect(self.address).await.unwrap();
        let mut connection = self.listener.accept(PATIENCE).await.unwrap();
        let accepted = spawn_local(async move {
            let stream = connection.accept().await?;
            Ok((connection, stream))
        });
        (tcp, accepted)
    }

    /// A session joined to the namespace.
    async fn poll(&self) -> (Http, JoinHandle<Accepted>) {
        let (connection, accepted) = self.connect().await;
        let mut http = Http { connection, query: String::new() };
        let open = http.fetch().await;
        let sid = open[0].strip_prefix("0{\"sid\":\"").unwrap().split('"').next().unwrap();
        http.query = format!("&sid={sid}");
        assert_eq!(http.post(&["40"]).await, 200);
        let joined = http.fetch().await;
        assert!(joined.len() == 1 && joined[0].starts_with(JOINED), "{joined:?}");
        (http, accepted)
    }

    /// A session with its stream, after the server received the message `a`.
    async fn poll_with_stream(&self) -> (Http, Box<dyn Connection>, Stream) {
        let (mut http, accepted) = self.poll().await;
        assert_eq!(http.post(&[&event("a")]).await, 200);
        let (connection, mut stream) = accepted.await.unwrap().unwrap();
        assert_eq!(receive(&mut stream).await, "a");
        (http, connection, stream)
    }

    /// A session's WebSocket, after the server's answer to the probe.
    async fn probe(&self, query: &str) -> (WebSocketStream<TcpStream>, JoinHandle<Accepted>) {
        let (tcp, accepted) = self.connect().await;
        let url = format!("ws://{}/socket.io/?EIO=4&transport=websocket{query}", self.address);
        let mut socket = client_async(url, tcp).await.unwrap().0;
        socket.send(Message::text("2probe")).await.unwrap();
        assert_eq!(next(&mut socket).await, "3probe");
        (socket, accepted)
    }
}

impl Http {
    /// The packets in a poll's answer.
    async fn fetch(&mut self) -> Vec<String> {
        let (status, body) = self.request("GET", "").await;
        assert_eq!(status, 200, "{body}");
        body.split('\x1e').map(str::to_owned).collect()
    }

    /// The answer's status.
    async fn post(&mut self, packets: &[&str]) -> u16 {
        self.request("POST", &packets.join("\x1e")).await.0
    }

    async fn request(&mut self, method: &str, body: &str) -> (u16, String) {
        let path = format!("/socket.io/?EIO=4&transport=polling{}", self.query);
        let length = body.len();
        let request = format!("{method} {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n{body}");
        self.connection.write_all(request.as_bytes()).await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(self.connection.read_u8().await.unwrap());
        }
        let head = String::from_utf8(head).unwrap().to_lowercase();
        let length = head.split("content-length: ").nth(1).unwrap().split('\r').next().unwrap();
        let mut body = vec![0; length.parse().unwrap()];
        self.connection.read_exact(&mut body).await.unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), String::from_utf8(body).unwrap())
    }
}

fn event(text: &str) -> String {
    format!("42[\"m\",\"{text}\"]")
}

fn events(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| event(text)).collect()
}

async fn receive(stream: &mut Stream) -> String {
    let mut into = [0; 100];
    let length = stream.receiver.receive(&mut into).await.unwrap();
    String::from_utf8_lossy(&into[..length]).into_owned()
}

async fn send(stream: &mut Stream, text: &str) {
    stream.sender.send(text.as_bytes()).await.unwrap();
}

/// The next text message.
async fn next(socket: &mut WebSocketStream<TcpStream>) -> String {
    socket.next().await.unwrap().unwrap().into_text().unwrap().as_str().to_owned()
}

/// The other connection has no stream.
async fn has_no_stream(accepted: JoinHandle<Accepted>) {
    let error = accepted.await.unwrap().err().unwrap();
    assert_eq!(error.to_string(), "the session has its stream: the other end closed");
}

#[test]
fn messages_are_fetched_or_sent_over_the_websocket_and_stay_in_order() {
    run(async {
        let server = Server::new().await;
        let (mut polling, _connection, mut stream) = server.poll_with_stream().await;
        send(&mut stream, "b").await;
        send(&mut stream, "c").await;
        let (mut socket, accepted) = server.probe(&polling.query).await;
        send(&mut stream, "d").await;
        assert_eq!(polling.fetch().await, events(&["b", "c", "d"]));
        assert_eq!(polling.fetch().await, ["6"], "a poll does not wait any more");
        send(&mut stream, "e").await;
        send(&mut stream, "f").await;
        socket.send(Message::text("5")).await.unwrap();
        socket.send(Message::text(event("g"))).await.unwrap();
        assert_eq!(receive(&mut stream).await, "g");
        send(&mut stream, "h").await;
        for text in ["e", "f", "h"] {
            assert_eq!(next(&mut socket).await, event(text));
        }
        has_no_stream(accepted).await;
    });
}

#[test]
fn a_poll_that_waits_is_answered_when_the_client_moves() {
    run(async {
        let server = Server::new().await;
        let (mut polling, _connection, mut stream) = server.poll_with_stream().await;
        let query = polling.query.clone();
        let (fetched, (mut socket, _accepted)) = tokio::join!(polling.fetch(), server.probe(&query));
        assert_eq!(fetched, ["6"]);
        send(&mut stream, "b").await;
        socket.send(Message::text("5")).await.unwrap();
        socket.send(Message::text(event("c"))).await.unwrap();
        assert_eq!(receive(&mut stream).await, "c");
        assert_eq!(next(&mut socket).await, event("b"));
    });
}

#[test]
fn a_message_that_is_posted_before_the_move_comes_before_those_of_the_websocket() {
    run(async {
        let server = Server::new().await;
        let (mut polling, _connection, mut stream) = server.poll_with_stream().await;
        let (mut socket, _accepted) = server.probe(&polling.query).await;
        // A message with one binary argument is cut in two.
        assert_eq!(polling.post(&[&event("b"), BINARY]).await, 200);
        socket.send(Message::text("5")).await.unwrap();
        socket.send(Message::binary("c")).await.unwrap();
        socket.send(Message::text(event("d"))).await.unwrap();
        for text in ["b", "c", "d"] {
            assert_eq!(receive(&mut stream).await, text);
        }
    });
}

#[test]
fn a_server_that_only_sends_goes_on_over_the_websocket() {
    run(async {
        let server = Server::new().await;
        let (polling, _connection, mut stream) = server.poll_with_stream().await;
        let (mut socket, _accepted) = server.probe(&polling.query).await;
        // More than the server keeps for a client that does not fetch.
        let long = "x".repeat(2 << 20);
        let sent = async {
            send(&mut stream, &long).await;
            send(&mut stream, "b").await;
        };
        let received = async {
            socket.send(Message::text("5")).await.unwrap();
            (next(&mut socket).await, next(&mut socket).await)
        };
        let ((), received) = tokio::join!(sent, received);
        assert!(received == (event(&long), event("b")));
    });
}

#[test]
fn a_server_that_closes_while_the_client_moves_says_the_rest_over_the_websocket() {
    run(async {
        let server = Server::new().await;
        let (polling, mut connection, mut stream) = server.poll_with_stream().await;
        let (mut socket, _accepted) = server.probe(&polling.query).await;
        send(&mut stream, "b").await;
        let received = async {
            socket.send(Message::text("5")).await.unwrap();
            let mut received = Vec::new();
            while let Some(Ok(message)) = socket.next().await {
                received.extend(message.is_text().then(|| message.into_text().unwrap().as_str().to_owned()));
            }
            received
        };
        let (closed, received) = tokio::join!(connection.close(), received);
        closed.unwrap();
        assert_eq!(received, [event("b"), "41".to_owned()]);
    });
}

#[test]
fn a_session_that_moves_before_its_first_message_takes_along_what_was_posted_meanwhile() {
    run(async {
        let server = Server::new().await;
        let (mut polling, _accepted) = server.poll().await;
        let (mut socket, accepted) = server.probe(&polling.query).await;
        assert_eq!(polling.post(&[&event("a"), BINARY]).await, 200);
        socket.send(Message::text("5")).await.unwrap();
        socket.send(Message::binary("b")).await.unwrap();
        socket.send(Message::text(event("c"))).await.unwrap();
        let (_connection, mut stream) = accepted.await.unwrap().unwrap();
        for text in ["a", "b", "c"] {
            assert_eq!(receive(&mut stream).await, text);
        }
        assert_eq!(polling.post(&[&event("d")]).await, 400, "nobody would see it");
        send(&mut stream, "e").await;
        assert_eq!(next(&mut socket).await, event("e"));
    });
}

#[test]
fn a_session_that_does_not_move_after_all_keeps_what_was_posted_meanwhile() {
    run(async {
        let server = Server::new().await;
        let (mut polling, _accepted) = server.poll().await;
        let (socket, accepted) = server.probe(&polling.query).await;
        assert_eq!(polling.post(&[&event("a")]).await, 200);
        drop(socket);
        let (_connection, mut stream) = accepted.await.unwrap().unwrap();
        assert_eq!(receive(&mut stream).await, "a");
        send(&mut stream, "b").await;
        assert_eq!(polling.fetch().await, events(&["b"]));
        assert_eq!(polling.post(&[&event("c")]).await, 200);
        assert_eq!(receive(&mut stream).await, "c");
    });
}
