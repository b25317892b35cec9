//! Streams' contents and refusals.

use crate::{ALL, PATIENCE, SHARED, answer, drain, exchange, pattern, settings, with_server};
use crosswind_transport::{Outcome, Purpose, Settings, Stream, find};
use std::cell::RefCell;
use std::time::Duration;

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
fn streams_of_one_connection_are_answered_in_any_order() {
    for name in SHARED {
        let (settings, held) = (settings(), RefCell::new(Vec::new()));
        // The server answers only when it has all requests, and the last one first.
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
fn http1_serves_one_request_at_a_time_in_order() {
    for name in ["http1", "https1"] {
        let (settings, open, order) = (settings(), RefCell::new(0), RefCell::new(Vec::new()));
        let one_at_a_time = |stream: Stream| {
            let open = &open;
            async move {
                *open.borrow_mut() += 1;
                assert_eq!(*open.borrow(), 1);
                tokio::time::sleep(Duration::from_millis(5)).await;
                *open.borrow_mut() -= 1;
                answer(stream).await.unwrap();
            }
        };
        with_server(name, &settings, one_at_a_time, async |transport, address| {
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
fn a_message_that_does_not_fit_is_too_large() {
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
fn a_body_has_the_length_that_was_announced() {
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
