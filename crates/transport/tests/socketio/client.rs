//! Our client against a scripted server.

use crate::{PATIENCE, run};
use crosswind_socketio::{Packet, Payload, encode_polling};
use crosswind_transport::{Outcome, Purpose, Settings, find};
use futures_util::{SinkExt, StreamExt};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::accept_async;
use tokio_tungstenite::tungstenite::Message;

const OPEN: &str =
    r#"0{"sid":"a","upgrades":["websocket"],"pingInterval":25000,"pingTimeout":20000,"maxPayload":1000000}"#;
const JOINED: &str = r#"40{"sid":"b"}"#;
const LEAVE: &str = "41";
/// A message's text with one binary argument, which follows it.
const BINARY: &str = r#"451-["m",{"_placeholder":true,"num":0}]"#;

/// The server's output.
#[derive(Default)]
struct Script {
    /// In the answer to each poll, after the one opening the session.
    polls: &'static [&'static [&'static str]],
    /// Over the WebSocket with `3probe`, before the client's `5`.
    with_pong: &'static [&'static str],
    /// Over the WebSocket after the client's `5`. Items beginning with a `b` are binary.
    after_upgrade: &'static [&'static str],
}

/// A script's result.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    /// By the client: its messages, and how its connection ended.
    received: Vec<String>,
    end: Outcome,
    /// By the server over the WebSocket, until the client closes it.
    sent: Vec<String>,
}

fn seen(received: &[&str], sent: &[&str]) -> Seen {
    let owned = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
    Seen { received: owned(received), end: Outcome::Closed, sent: owned(sent) }
}

fn play(script: &Script) -> Result<Seen, Outcome> {
    run(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = listener.local_addr().unwrap();
        let settings = Settings { polling: true, ..Settings::default() };
        // A client unable to connect leaves the script.
        tokio::try_join!(async { Ok(serve(listener, script).await) }, async {
            let transport = find("socketio-websocket").unwrap();
            let connection = transport.connect(server, &settings, PATIENCE).await.map_err(|e| e.outcome)?;
            let mut stream = connection.open(Purpose::Messages).await.unwrap();
            let (mut received, mut into) = (Vec::new(), [0; 100]);
            loop {
                match stream.receiver.receive(&mut into).await {
                    Ok(length) => received.push(String::from_utf8_lossy(&into[..length]).into_owned()),
                    Err(e) => return Ok((received, e.outcome)),
                }
            }
        })
        .map(|(sent, (received, end))| Seen { received, end, sent })
    })
}

async fn serve(listener: TcpListener, script: &Script) -> Vec<String> {
    let (mut polling, _) = listener.accept().await.unwrap();
    assert!(request(&mut polling).await.starts_with("GET "));
    answer(&mut polling, OPEN).await;
    let poll = async {
        assert!(request(&mut polling).await.starts_with("POST "));
        answer(&mut polling, "ok").await;
        for &texts in script.polls {
            assert!(request(&mut polling).await.starts_with("GET "));
            let payloads: Vec<Payload> = texts.iter().map(|&text| payload(text)).collect();
            let packets: Vec<_> = payloads.iter().map(|payload| Packet::parse(payload).unwrap()).collect();
            answer(&mut polling, &encode_polling(&packets).unwrap()).await;
        }
    };
    let open = async { accept_async(listener.accept().await.unwrap().0).await.unwrap() };
    let ((), mut socket) = tokio::join!(poll, open);

    let mut sent = Vec::new();
    while let Some(Ok(Message::Text(text))) = socket.next().await {
        let answers: Vec<Message> = match text.as_str() {
            "2probe" => ["3probe"].iter().chain(script.with_pong).map(|&text| message(text)).collect(),
            "5" => script.after_upgrade.iter().map(|&text| message(text)).collect(),
            _ => Vec::new(),
        };
        sent.push(text.as_str().to_owned());
        for answer in answers {
            socket.feed(answer).await.unwrap();
        }
        socket.flush().await.unwrap();
    }
    sent
}

fn payload(text: &'static str) -> Payload {
    match text.strip_prefix('b') {
        Some(bytes) => Payload::Binary(bytes.as_bytes().into()),
        None => text.into(),
    }
}

fn message(text: &'static str) -> Message {
    match payload(text) {
        Payload::Text(text) => Message::text(text),
        Payload::Binary(bytes) => Message::binary(bytes),
    }
}

/// The next request, without its body: one packet of two bytes or nothing.
async fn request(stream: &mut TcpStream) -> String {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        request.push(stream.read_u8().await.unwrap());
    }
    let request = String::from_utf8(request).unwrap();
    if request.starts_with("POST ") {
        let mut body = [0; 2];
        stream.read_exact(&mut body).await.unwrap();
        assert_eq!(&body, b"40");
    }
    request
}

async fn answer(stream: &mut TcpStream, body: &str) {
    let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    stream.write_all(answer.as_bytes()).await.unwrap();
}

#[test]
fn messages_after_the_upgrade_arrive() {
    let script = Script { polls: &[&[JOINED]], after_upgrade: &[r#"42["m","a"]"#, LEAVE], ..Script::default() };
    assert_eq!(play(&script), Ok(seen(&["a"], &["2probe", "5"])));
}

#[test]
fn messages_in_the_answer_to_the_poll_that_joins_arrive_first() {
    let script = Script {
        polls: &[&["6"], &[JOINED, r#"42["m","a"]"#, BINARY, "bb", r#"42["m","c"]"#]],
        after_upgrade: &[r#"42["m","d"]"#, LEAVE],
        ..Script::default()
    };
    assert_eq!(play(&script), Ok(seen(&["a", "b", "c", "d"], &["2probe", "5"])));
}

#[test]
fn a_message_may_begin_in_a_poll_and_end_on_the_websocket() {
    let script = Script {
        polls: &[&[JOINED, r#"42["m","a"]"#, BINARY]],
        after_upgrade: &["bb", r#"42["m","c"]"#, LEAVE],
        ..Script::default()
    };
    assert_eq!(play(&script), Ok(seen(&["a", "b", "c"], &["2probe", "5"])));
}

#[test]
fn messages_that_follow_the_pong_at_once_arrive_after_those_of_the_poll() {
    let script = Script {
        polls: &[&[JOINED, r#"42["m","a"]"#]],
        with_pong: &[r#"42["m","b"]"#, "6", r#"42["m","c"]"#],
        after_upgrade: &["6", r#"42["m","d"]"#, LEAVE],
    };
    assert_eq!(play(&script), Ok(seen(&["a", "b", "c", "d"], &["2probe", "5"])));
}

#[test]
fn a_ping_in_a_poll_is_answered_once_the_session_has_moved() {
    let before: &[&[_]] = &[&["2", JOINED]];
    let in_a_poll_of_its_own: &[&[_]] = &[&["2"], &[JOINED]];
    let after: &[&[_]] = &[&[JOINED, "2"]];
    for polls in [before, in_a_poll_of_its_own, after] {
        let script = Script { polls, after_upgrade: &[r#"42["m","a"]"#, LEAVE], ..Script::default() };
        assert_eq!(play(&script), Ok(seen(&["a"], &["2probe", "5", "3"])), "{polls:?}");
    }
}

#[test]
fn a_server_that_leaves_after_joining_is_noticed_with_what_it_said_before() {
    for end in [LEAVE, "1"] {
        let polls: &[&[_]] = match end {
            LEAVE => &[&[JOINED, r#"42["m","a"]"#, LEAVE]],
            _ => &[&[JOINED, r#"42["m","a"]"#, "1"]],
        };
        assert_eq!(play(&Script { polls, ..Script::default() }), Ok(seen(&["a"], &["2probe", "5"])), "{end}");
    }
}

#[test]
fn a_server_that_closes_before_the_client_has_joined_is_no_error_of_protocol() {
    assert_eq!(play(&Script { polls: &[&["1"]], ..Script::default() }), Err(Outcome::Closed));
}

#[test]
fn a_message_before_the_client_has_joined_is_an_error() {
    let polls: &[&[_]] = &[&[r#"42["m","a"]"#, JOINED]];
    assert_eq!(play(&Script { polls, ..Script::default() }), Err(Outcome::Protocol));
}
