//! Messages, their order, and their streams.

use crate::{LOOPBACK, PATIENCE, all, between, connect, echo, exchange, limited, message, settings, sizes};
use crosswind_transport::{Listener, Outcome, Payload, Purpose, Settings, Streams, TransportRef};

#[test]
fn every_message_comes_back_as_it_was() {
    for transport in all() {
        let kinds: &[Payload] =
            if transport.features().text { &[Payload::Binary, Payload::Text] } else { &[Payload::Binary] };
        for address in LOOPBACK {
            for &payload in kinds {
                let settings = Settings { payload, ..settings() };
                let sizes = sizes(transport, address);
                between(
                    transport,
                    &settings,
                    address,
                    async |listener| {
                        // UDP has no end.
                        let sizes = &sizes[..];
                        if transport.name() == "udp" {
                            return echo_datagrams(transport, listener.as_ref(), sizes).await;
                        }
                        let end = echo(transport, listener.as_ref(), sizes).await;
                        assert_eq!(end.outcome, Outcome::Closed, "{}: {end}", transport.name());
                    },
                    async |server| {
                        let mut connection = connect(transport, server, &settings).await;
                        let mut stream = None;
                        for (number, &size) in sizes.iter().enumerate() {
                            let result =
                                exchange(transport, connection.as_ref(), &mut stream, &message(size, number)).await;
                            result.unwrap_or_else(|e| panic!("{}: {size} bytes: {e}", transport.name()));
                        }
                        limited(transport.features().driver, connection.close()).await.unwrap();
                    },
                );
            }
        }
    }
}

async fn echo_datagrams(transport: TransportRef, listener: &dyn Listener, sizes: &[usize]) {
    let driver = transport.features().driver;
    let mut connection = limited(driver, listener.accept(PATIENCE)).await.unwrap();
    let mut stream = limited(driver, connection.accept()).await.unwrap();
    let mut buffer = vec![0; 65_536];
    for _ in sizes {
        let length = limited(driver, stream.receiver.receive(&mut buffer)).await.unwrap();
        limited(driver, stream.sender.send(&buffer[..length])).await.unwrap();
    }
}

#[test]
fn streams_do_not_wait_for_each_other() {
    for transport in all().filter(|transport| transport.features().streams == Streams::Many) {
        let driver = transport.features().driver;
        let settings = settings();
        for address in LOOPBACK {
            between(
                transport,
                &settings,
                address,
                async |listener| {
                    let mut connection = limited(driver, listener.accept(PATIENCE)).await.unwrap();
                    let mut streams = Vec::new();
                    for _ in 0..2 {
                        let mut stream = limited(driver, connection.accept()).await.unwrap();
                        let mut buffer = [0; 100];
                        limited(driver, stream.receiver.receive(&mut buffer)).await.unwrap();
                        streams.push((stream, buffer));
                    }
                    for (stream, buffer) in streams.iter_mut().rev() {
                        limited(driver, stream.sender.send(buffer)).await.unwrap();
                    }
                    let end = limited(driver, connection.accept()).await.err().unwrap();
                    assert_eq!(end.outcome, Outcome::Closed, "{}: {end}", transport.name());
                },
                async |server| {
                    let mut connection = connect(transport, server, &settings).await;
                    let mut streams = Vec::new();
                    for number in 0..2 {
                        let mut stream = limited(driver, connection.open(Purpose::Messages)).await.unwrap();
                        limited(driver, stream.sender.send(&message(100, number))).await.unwrap();
                        streams.push(stream);
                    }
                    for (number, stream) in streams.iter_mut().enumerate() {
                        let mut buffer = [0; 100];
                        limited(driver, stream.receiver.receive(&mut buffer)).await.unwrap();
                        assert_eq!(buffer[..], message(100, number), "{}", transport.name());
                    }
                    limited(driver, connection.close()).await.unwrap();
                },
            );
        }
    }
}
