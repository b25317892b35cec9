//! Streams, datagrams, and how they end.

use crate::{ALL, DATAGRAMS, LONG, STREAMS, connect, echo, open, outcome, settings, transport, with_server};
use crosswind_transport::{Connection, Driver, Outcome};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

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
