//! Connection setup, and its refusals.

use crate::{
    ALL, LONG, connect, directory, echo, echo_back, open, outcome, qlog, resuming, serve_connection, settings,
    transport, twice, with_server,
};
use crosswind_transport::{Driver, Outcome, Resumption, Settings, driver};
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

#[test]
fn a_session_is_resumed_if_the_settings_say_so() {
    for name in ALL {
        let [_, second] = twice(name, &resuming(Resumption::None));
        assert!(!second.resumed && !second.early_data, "{name}");
        let [first, second] = twice(name, &resuming(Resumption::Session));
        assert!(!first.resumed && second.resumed && !second.early_data, "{name}");
        assert!(second.security.is_some() && second.transport.is_none());
        assert_eq!(second.upgrade.is_some(), name.starts_with("webtransport"));
    }
}

#[test]
fn a_connection_that_only_opens_and_closes_leaves_a_session_too() {
    for name in ALL {
        let settings = resuming(Resumption::Session);
        with_server(name, &settings, async |server| {
            for n in 0..5 {
                let mut connection = connect(name, server, &settings).await;
                assert_eq!(connection.phases().resumed, n > 0, "{name}");
                connection.close().await.unwrap();
            }
        });
    }
}

#[test]
fn early_data_travels_in_the_first_flight() {
    for name in ["quic", "quic-datagram"] {
        let directory = directory(&format!("early-{name}"));
        let settings = Settings { qlog: Some(directory.clone()), ..resuming(Resumption::EarlyData) };
        let [first, second] = twice(name, &settings);
        assert!(!first.resumed && !first.early_data, "{name}");
        assert!(second.resumed && second.early_data, "{name}");
        // Packets of this type carry only early data.
        let early = |event: &serde_json::Value| event["data"]["header"]["packet_type"] == "0RTT";
        assert!(qlog(&directory.join("server.qlog")).iter().any(early), "{name}");
        std::fs::remove_dir_all(directory).unwrap();
    }
}

#[test]
fn early_data_that_the_server_refuses_is_not_reported() {
    let settings = resuming(Resumption::EarlyData);
    twice("quic", &settings);
    // Another server with the same certificate, which does not know the session.
    with_server("quic", &settings, async |server| {
        let connection = connect("quic", server, &settings).await;
        assert!(connection.phases().early_data, "hoped for");
        let mut stream = open(&*connection).await;
        assert_eq!(outcome(echo(&mut stream, 50).await), Outcome::Error);
        let phases = connection.phases();
        assert!(!phases.early_data && !phases.resumed);
        echo(&mut open(&*connection).await, 50).await.unwrap();
    });
}

#[test]
fn webtransport_has_no_early_data() {
    let settings = resuming(Resumption::EarlyData);
    let run = transport("webtransport").listen("127.0.0.1:0".parse().unwrap(), &settings);
    assert_eq!(outcome(Driver::Reactor.run(run).unwrap()), Outcome::Error);
}

async fn try_connect(name: &str, server: SocketAddr, settings: &Settings, timeout: Duration) -> Outcome {
    outcome(transport(name).connect(server, settings, timeout).await)
}

#[test]
fn another_certificate_is_refused() {
    for name in ALL {
        with_server(name, &settings(), async |server| {
            assert_eq!(try_connect(name, server, &settings(), LONG).await, Outcome::Certificate, "{name}");
        });
    }
}

#[test]
fn another_protocol_is_noticed() {
    let settings = settings();
    for (client, server_name) in [("quic", "webtransport"), ("webtransport", "quic")] {
        with_server(server_name, &settings, async |server| {
            assert_eq!(try_connect(client, server, &settings, LONG).await, Outcome::Protocol, "{client}");
        });
    }
}

#[test]
fn a_server_that_is_not_there_is_a_timeout() {
    let settings = settings();
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    for name in ALL {
        let started = Instant::now();
        let timeout = Duration::from_millis(200);
        let run = try_connect(name, silent.local_addr().unwrap(), &settings, timeout);
        assert_eq!(Driver::Reactor.run(run).unwrap(), Outcome::Timeout, "{name}");
        assert!(started.elapsed() >= timeout);
    }
}

#[test]
fn a_handshake_goes_on_after_a_wait_was_given_up() {
    for name in ALL {
        let settings = settings();
        let run = async {
            let listener = transport(name).listen("127.0.0.1:0".parse().unwrap(), &settings).await.unwrap();
            let server = listener.address().unwrap();
            let client = async {
                let connection = connect(name, server, &settings).await;
                echo(&mut open(&*connection).await, 500).await.unwrap();
            };
            let server = async {
                let mut connection = listener.accept(LONG).await.unwrap();
                // If the first stream is there at once, no wait was given up, and that stream is served.
                match driver::within(Duration::ZERO, "cannot accept", connection.accept()).await {
                    Ok(stream) => drop(tokio::join!(echo_back(stream), serve_connection(connection))),
                    Err(given_up) => {
                        assert_eq!(given_up.outcome, Outcome::Timeout);
                        serve_connection(connection).await;
                    }
                }
            };
            tokio::join!(client, server);
        };
        Driver::Reactor.run(run).unwrap();
    }
}
