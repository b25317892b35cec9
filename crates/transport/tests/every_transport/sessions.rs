//! Sessions moving from polling to another transport, and resumed TLS sessions.

use crate::{LOOPBACK, PATIENCE, all, between, connect, echo, exchange, limited, message, settings};
use crosswind_transport::{Outcome, Payload, Resumption, Settings, TransportRef};
use std::sync::mpsc;

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
                    // One connection for polling, and one for messages.
                    let mut polling = limited(driver, listener.accept(PATIENCE)).await.unwrap();
                    let (polled, end) = tokio::join!(
                        limited(driver, polling.accept()),
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
                    limited(driver, connection.close()).await.unwrap();
                },
            );
        }
    }
}

/// Whether each of three successive connections was resumed and had early data.
fn resumed(transport: TransportRef, resumption: Resumption) -> Vec<(bool, bool)> {
    let settings = Settings { resumption, ..settings() };
    let (report, seen) = mpsc::channel();
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
                report.send((phases.resumed, phases.early_data)).unwrap();
                limited(transport.features().driver, connection.close()).await.unwrap();
            }
        },
    );
    seen.try_iter().collect()
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
