//! How connections end, and how they are refused.

use crate::{LOOPBACK, PATIENCE, all, between, connect, echo, exchange, limited, message, settings};
use crosswind_transport::driver::within;
use crosswind_transport::security::{Security, Sizes};
use crosswind_transport::{Carrier, Outcome, Settings, TransportRef};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

/// Both ends must agree before there is a connection.
fn has_handshake(transport: TransportRef) -> bool {
    !["tcp", "udp", "http1", "h2c"].contains(&transport.name())
}

fn over(carrier: Carrier) -> impl Fn(&TransportRef) -> bool {
    move |transport| transport.features().carrier == carrier
}

#[test]
fn an_abort_is_noticed_at_both_ends() {
    for transport in all().filter(|transport| !over(Carrier::Udp)(transport)) {
        let settings = settings();
        for address in LOOPBACK {
            let (report, noticed) = tokio::sync::oneshot::channel();
            between(
                transport,
                &settings,
                address,
                async |listener| {
                    let end = echo(transport, listener.as_ref(), &[10]).await;
                    assert!(matches!(end.outcome, Outcome::Reset | Outcome::Closed), "{}: {end}", transport.name());
                    report.send(()).unwrap();
                },
                async |server| {
                    let mut connection = connect(transport, server, &settings).await;
                    let mut stream = None;
                    exchange(transport, connection.as_ref(), &mut stream, &message(10, 0)).await.unwrap();
                    connection.abort();
                    if let Some(mut stream) = stream {
                        let end = limited(transport.features().driver, stream.receiver.receive(&mut [0; 1])).await;
                        let outcome = end.unwrap_err().outcome;
                        assert!(matches!(outcome, Outcome::Reset | Outcome::Closed), "{}", transport.name());
                    }
                    drop(connection);
                    // QUIC reports it from user space: its reactor must still run.
                    let _ = noticed.await;
                },
            );
        }
    }
}

/// The outcome of connecting to `server`, and of one message.
fn attempt(transport: TransportRef, server: SocketAddr, settings: &Settings, patience: Duration) -> Outcome {
    let driver = transport.features().driver;
    let outcome = driver.run(async {
        let attempt = async {
            let connection = transport.connect(server, settings, patience).await?;
            exchange(transport, connection.as_ref(), &mut None, &[0; 10]).await
        };
        within(PATIENCE, "the test waits too long", attempt).await.map_or_else(|e| e.outcome, |()| Outcome::Ok)
    });
    outcome.unwrap()
}

/// The outcome of connecting alone.
fn attempt_connection(transport: TransportRef, server: SocketAddr, settings: &Settings, patience: Duration) -> Outcome {
    let driver = transport.features().driver;
    let outcome = driver
        .run(async { transport.connect(server, settings, patience).await.map_or_else(|e| e.outcome, |_| Outcome::Ok) });
    outcome.unwrap()
}

#[test]
fn a_port_where_nobody_listens_refuses() {
    let settings = settings();
    for transport in all().filter(|transport| !over(Carrier::Udp)(transport)) {
        for address in LOOPBACK {
            // Port 1 is tcpmux's, which is not in use any more.
            let server = SocketAddr::new(address, 1);
            // A refusal need not reach QUIC.
            let over_quic = over(Carrier::Quic)(&transport);
            let patience = if over_quic { Duration::from_millis(500) } else { PATIENCE };
            let outcome = attempt_connection(transport, server, &settings, patience);
            if over_quic {
                assert!(matches!(outcome, Outcome::Timeout | Outcome::Refused), "{}: {outcome:?}", transport.name());
            } else {
                assert_eq!(outcome, Outcome::Refused, "{}", transport.name());
            }
        }
    }
}

#[test]
fn a_server_that_never_answers_is_a_timeout() {
    let settings = settings();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = silent.local_addr().unwrap();
    for transport in all().filter(over(Carrier::Tcp)).filter(|transport| has_handshake(*transport)) {
        let outcome = attempt_connection(transport, server, &settings, Duration::from_millis(100));
        assert_eq!(outcome, Outcome::Timeout, "{}", transport.name());
    }
}

#[test]
fn a_server_of_another_protocol_is_a_protocol_error() {
    let settings = settings();
    for transport in all().filter(over(Carrier::Tcp)).filter(|transport| transport.name() != "tcp") {
        let other = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = other.local_addr().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let (mut stream, _) = other.accept().unwrap();
                let _ = stream.read(&mut [0; 4096]);
                stream.write_all(&b"200 Nice to meet you\r\n\r\n".repeat(10)).unwrap();
                // Until the client has gone.
                while matches!(stream.read(&mut [0; 4096]), Ok(1..)) {}
            });
            let outcome = attempt(transport, server, &settings, PATIENCE);
            assert_eq!(outcome, Outcome::Protocol, "{}", transport.name());
        });
    }
}

#[test]
fn an_expired_certificate_is_refused() {
    let now = time::OffsetDateTime::now_utc();
    let expired =
        Security::valid(now - time::Duration::days(3), now - time::Duration::days(1), &[], Sizes::AsTheyCome).unwrap();
    let settings = Settings { security: Some(Arc::new(expired)), ..Settings::default() };
    for transport in all().filter(|transport| transport.features().secure) {
        between(
            transport,
            &settings,
            LOOPBACK[0],
            async |listener| {
                let driver = transport.features().driver;
                let mut connection = limited(driver, listener.accept(PATIENCE)).await.unwrap();
                assert!(limited(driver, connection.accept()).await.is_err(), "{}", transport.name());
            },
            async |server| {
                let connection = transport.connect(server, &settings, PATIENCE).await;
                assert_eq!(connection.err().unwrap().outcome, Outcome::Certificate, "{}", transport.name());
            },
        );
    }
}
