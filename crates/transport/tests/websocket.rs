//! WebSocket against plain sockets, and cancelled calls. The protocol's rules are tested in tests/peers.
#![allow(clippy::unwrap_used)] // helpers of tests, where a failure is a failed test

use crosswind_transport::{Connection, Driver, Outcome, Purpose, Receiver, Sender, Settings, Stream, find};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const PATIENCE: Duration = Duration::from_secs(30);
const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
    Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|place| (place % 251) as u8).collect()
}

/// The result for `frames` at a server expecting up to ten bytes, and the server's output meanwhile.
fn received(frames: &[u8]) -> (Result<usize, Outcome>, Vec<u8>) {
    let settings = Settings::default();
    let work = async {
        let listener = find("websocket").unwrap().listen("127.0.0.1:0".parse().unwrap(), &settings).await.unwrap();
        let mut client = TcpStream::connect(listener.address().unwrap()).await.unwrap();
        client.write_all(REQUEST).await.unwrap();
        let mut connection = listener.accept(PATIENCE).await.unwrap();
        let mut stream = connection.accept().await.unwrap();
        client.write_all(frames).await.unwrap();
        let result = stream.receiver.receive(&mut [0; 10]).await.map_err(|e| e.outcome);
        connection.abort();
        let mut answers = Vec::new();
        // The connection ends by a reset.
        let _ = client.read_to_end(&mut answers).await;
        let head = answers.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
        (result, answers.split_off(head + 4))
    };
    Driver::Reactor.run(work).unwrap()
}

#[test]
fn an_empty_message_is_a_message() {
    assert_eq!(received(&[0x82, 0x80, 0, 0, 0, 0]).0, Ok(0));
}

#[test]
fn a_header_that_announces_too_much_is_refused_before_anything_follows() {
    let exabyte = [0x82, 0xff, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    // 1009: too big (RFC 6455, section 7.4.1).
    assert_eq!(received(&exabyte), (Err(Outcome::TooLarge), vec![0x88, 2, 0x03, 0xf1]));
}

#[test]
fn a_message_that_does_not_fit_is_too_large() {
    let eleven = [0x82, 0x8b, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11];
    assert_eq!(received(&eleven).0, Err(Outcome::TooLarge));
}

#[test]
fn a_client_must_mask() {
    assert_eq!(received(&[0x82, 1, 7]), (Err(Outcome::Protocol), vec![0x88, 2, 0x03, 0xea]));
}

/// A control frame may have 125 bytes, even where shorter messages are expected.
#[test]
fn a_ping_is_answered_with_its_payload() {
    let mut frames = vec![0x89, 0x80 | 0x7d, 0, 0, 0, 0];
    frames.extend([b'p'; 125]);
    frames.extend([0x82, 0x81, 0, 0, 0, 0, b'm']);
    let mut pong = vec![0x8a, 125];
    pong.extend([b'p'; 125]);
    assert_eq!(received(&frames), (Ok(1), pong));
}

/// A connection and its one stream, at the client and at the server.
async fn both_ends() -> [(Box<dyn Connection>, Stream); 2] {
    let (settings, transport) = (Settings::default(), find("websocket").unwrap());
    let listener = transport.listen("127.0.0.1:0".parse().unwrap(), &settings).await.unwrap();
    let address = listener.address().unwrap();
    let (client, server) = tokio::join!(transport.connect(address, &settings, PATIENCE), async {
        let mut connection = listener.accept(PATIENCE).await.unwrap();
        let stream = connection.accept().await.unwrap();
        (connection, stream)
    });
    let client = client.unwrap();
    let stream = client.open(Purpose::Messages).await.unwrap();
    [(client, stream), server]
}

async fn give_up_and_go_on(sender: &mut dyn Sender, receiver: &mut dyn Receiver) {
    // The message is larger than the kernel's buffers.
    let message = pattern(30_000_000);
    let mut into = vec![0; message.len()];
    let wait = Duration::from_millis(20);
    assert!(tokio::time::timeout(wait, sender.send(&message)).await.is_err());
    assert!(tokio::time::timeout(wait, receiver.receive(&mut into)).await.is_err());
    into.fill(0);
    let (sent, received) = tokio::join!(sender.send(b"next"), receiver.receive(&mut into));
    sent.unwrap();
    assert_eq!(received.unwrap(), message.len());
    assert!(into == message);
    assert_eq!(receiver.receive(&mut into).await.unwrap(), 4);
    assert_eq!(&into[..4], b"next");
}

#[test]
fn calls_that_are_given_up_lose_nothing() {
    let work = async {
        let [(_client, mut at_client), (_server, mut at_server)] = both_ends().await;
        for _ in 0..2 {
            give_up_and_go_on(at_client.sender.as_mut(), at_server.receiver.as_mut()).await;
            give_up_and_go_on(at_server.sender.as_mut(), at_client.receiver.as_mut()).await;
        }
    };
    Driver::Reactor.run(work).unwrap();
}

#[test]
fn a_message_may_be_received_in_parts_and_the_rest_at_once() {
    let work = async {
        let [mut client, mut server] = both_ends().await;
        let message = pattern(100_000);
        let (sent, received) = tokio::join!(client.1.sender.send(&message), async {
            let mut into = vec![0; message.len()];
            let some = server.1.receiver.receive_some(&mut into[..1000]).await.unwrap();
            let rest = server.1.receiver.receive(&mut into[some..]).await.unwrap();
            assert_eq!(some + rest, message.len());
            into
        });
        sent.unwrap();
        assert!(received == message);
    };
    Driver::Reactor.run(work).unwrap();
}

/// Both directions are full at the same time, and each task waits for the other end to read.
#[test]
fn large_messages_cross_each_other() {
    let work = async {
        let [(_client, client), (_server, server)] = both_ends().await;
        let message = pattern(10_000_000);
        let send = async |mut sender: Box<dyn Sender>| {
            for _ in 0..3 {
                sender.send(&message).await.unwrap();
            }
        };
        let receive = async |mut receiver: Box<dyn Receiver>| {
            let mut into = vec![0; message.len()];
            for _ in 0..3 {
                assert_eq!(receiver.receive(&mut into).await.unwrap(), message.len());
                assert!(into == message);
            }
        };
        tokio::join!(send(client.sender), receive(client.receiver), send(server.sender), receive(server.receiver));
    };
    Driver::Reactor.run(async { tokio::time::timeout(PATIENCE, work).await.unwrap() }).unwrap();
}

/// The limit is the library's, unless set.
#[test]
fn the_largest_message_is_a_setting() {
    for (max_message_bytes, expected) in [(None, Ok(70_000)), (Some(60_000), Err(Outcome::TooLarge))] {
        let (settings, transport) = (Settings { max_message_bytes, ..Settings::default() }, find("websocket").unwrap());
        let work = async {
            let listener = transport.listen("127.0.0.1:0".parse().unwrap(), &settings).await.unwrap();
            let address = listener.address().unwrap();
            let client = async {
                let connection = transport.connect(address, &settings, PATIENCE).await.unwrap();
                let mut stream = connection.open(Purpose::Messages).await.unwrap();
                stream.sender.send(&pattern(70_000)).await.unwrap();
                (connection, stream)
            };
            let server = async {
                let mut connection = listener.accept(PATIENCE).await.unwrap();
                let mut stream = connection.accept().await.unwrap();
                stream.receiver.receive(&mut vec![0; 100_000]).await.map_err(|e| e.outcome)
            };
            let (_client, received) = tokio::join!(client, server);
            assert_eq!(received, expected);
        };
        Driver::Reactor.run(work).unwrap();
    }
}
