//! Ends of exchanges and connections, and the calls they end.

use crate::{ALL, PATIENCE, answer, exchange, loopback, run, settings, with_server};
use crosswind_transport::{Outcome, Purpose, Stream, driver, find};
use std::time::Duration;

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
            // In HTTP/1.1 a request can only be given up together with its connection.
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
        // For hyper a reset between two HTTP/1.1 requests is an orderly end, except under TLS.
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
                        // HTTP/2 waits for the response, the caller not for long.
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
fn no_task_outlives_its_connection() {
    for name in ["http1", "https1", "h2c", "http2"] {
        for how in ["close", "abort", "drop", "drop while waiting"] {
            let (settings, transport) = (settings(), find(name).unwrap());
            let work = async {
                let listener = transport.listen(loopback(), &settings).await.unwrap();
                let address = listener.address().unwrap();
                let serve = async {
                    let mut connection = listener.accept(PATIENCE).await.unwrap();
                    let stream = connection.accept().await.unwrap();
                    (connection, stream)
                };
                let ask = async {
                    let connection = transport.connect(address, &settings, PATIENCE).await.unwrap();
                    let mut stream = connection.open(Purpose::Messages).await.unwrap();
                    stream.sender.send(&[1]).await.unwrap();
                    (connection, stream)
                };
                let ((at_server, mut accepted), (mut at_client, mut asked)) = tokio::join!(serve, ask);
                if how != "drop while waiting" {
                    accepted.sender.send(&[2]).await.unwrap();
                    assert_eq!(asked.receiver.receive(&mut [0; 1]).await.unwrap(), 1, "{name}");
                }
                match how {
                    "close" => at_client.close().await.unwrap(),
                    "abort" => at_client.abort(),
                    _ => {}
                }
                drop((at_client, at_server));
                // The reactor drops the streams when it next runs.
                for _ in 0..10 {
                    tokio::task::yield_now().await;
                }
                let tasks = tokio::runtime::Handle::current().metrics().num_alive_tasks();
                assert_eq!(tasks, 0, "{name}, {how}");
                drop((accepted, asked));
            };
            run(name, work);
        }
    }
}
