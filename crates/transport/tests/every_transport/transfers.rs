//! Many bytes in one direction.

use crate::{LOOPBACK, PATIENCE, all, between, connect, limited, message, settings};
use crosswind_transport::{Connection, Driver, Purpose, Stream, Streams, TransportRef};
use std::sync::LazyLock;

const TRANSFER: usize = 3_000_000;
const PART: usize = 128 * 1024;
/// Made once: meanwhile the thread of a QUIC connection answers nobody.
static CONTENT: LazyLock<Vec<u8>> = LazyLock::new(|| message(TRANSFER, 7));

async fn send_all(transport: TransportRef, stream: &mut Stream) {
    let driver = transport.features().driver;
    for (n, part) in CONTENT.chunks(PART).enumerate() {
        let sent = limited(driver, stream.sender.send_some(part)).await;
        sent.unwrap_or_else(|e| panic!("{}, part {n}: {e}", transport.name()));
    }
    limited(driver, stream.sender.finish()).await.unwrap_or_else(|e| panic!("{}: {e}", transport.name()));
}

async fn receive_all(driver: Driver, stream: &mut Stream) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut buffer = vec![0; PART];
    loop {
        match limited(driver, stream.receiver.receive_some(&mut buffer)).await.unwrap() {
            0 => return bytes,
            n => bytes.extend_from_slice(&buffer[..n]),
        }
    }
}

/// Keeps the connection until the client has received everything: user-space sending needs this end's running reactor.
async fn stay(transport: TransportRef, connection: &mut dyn Connection, mut done: tokio::sync::oneshot::Receiver<()>) {
    let features = transport.features();
    if features.driver == Driver::Reactor && features.streams != Streams::One {
        tokio::select! {
            done = &mut done => return done.unwrap(),
            next = connection.accept() => assert!(next.is_err(), "{}", transport.name()),
        }
    }
    // The client may have closed the connection as soon as it had everything.
    done.await.unwrap();
}

#[test]
fn an_upload_arrives_whole_and_ends() {
    for transport in all().filter(|transport| !transport.features().datagram) {
        let driver = transport.features().driver;
        let settings = settings();
        for address in LOOPBACK {
            let (report, done) = tokio::sync::oneshot::channel();
            between(
                transport,
                &settings,
                address,
                async |listener| {
                    let mut connection = limited(driver, listener.accept(PATIENCE)).await.unwrap();
                    let mut stream = limited(driver, connection.accept()).await.unwrap();
                    let bytes = receive_all(driver, &mut stream).await;
                    assert!(bytes == *CONTENT, "{}: {} bytes", transport.name(), bytes.len());
                    limited(driver, stream.sender.finish()).await.unwrap();
                    stay(transport, connection.as_mut(), done).await;
                },
                async |server| {
                    let mut connection = connect(transport, server, &settings).await;
                    let upload = Purpose::Upload(Some(TRANSFER as u64));
                    let mut stream = limited(driver, connection.open(upload)).await.unwrap();
                    send_all(transport, &mut stream).await;
                    let rest = limited(driver, stream.receiver.receive_some(&mut [0; 1])).await;
                    let rest = rest.unwrap_or_else(|e| panic!("{}: {e}", transport.name()));
                    assert_eq!(rest, 0, "{}", transport.name());
                    report.send(()).unwrap();
                    limited(driver, connection.close())
                        .await
                        .unwrap_or_else(|e| panic!("{}: close: {e}", transport.name()));
                },
            );
        }
    }
}

#[test]
fn a_download_arrives_whole_and_ends() {
    for transport in all().filter(|transport| !transport.features().datagram) {
        let features = transport.features();
        let driver = features.driver;
        let settings = settings();
        let asks = !features.http && !features.server_speaks_first;
        for address in LOOPBACK {
            let (report, done) = tokio::sync::oneshot::channel();
            between(
                transport,
                &settings,
                address,
                async |listener| {
                    let mut connection = limited(driver, listener.accept(PATIENCE)).await.unwrap();
                    let mut stream = limited(driver, connection.accept()).await.unwrap();
                    assert_eq!(stream.asked, features.http.then_some(TRANSFER as u64), "{}", transport.name());
                    if asks {
                        limited(driver, stream.receiver.receive(&mut [0; 1])).await.unwrap();
                    }
                    send_all(transport, &mut stream).await;
                    stay(transport, connection.as_mut(), done).await;
                },
                async |server| {
                    let mut connection = connect(transport, server, &settings).await;
                    let download = Purpose::Download(Some(TRANSFER as u64));
                    let mut stream = limited(driver, connection.open(download)).await.unwrap();
                    if asks {
                        limited(driver, stream.sender.send(&[0; 1])).await.unwrap();
                    }
                    let bytes = receive_all(driver, &mut stream).await;
                    assert!(bytes == *CONTENT, "{}: {} bytes", transport.name(), bytes.len());
                    report.send(()).unwrap();
                    limited(driver, connection.close()).await.unwrap();
                },
            );
        }
    }
}

#[test]
fn an_orderly_end_of_a_transfer_is_no_error() {
    let one_stream =
        |transport: &TransportRef| transport.features().streams == Streams::One && !transport.features().datagram;
    for transport in all().filter(one_stream) {
        let driver = transport.features().driver;
        let settings = settings();
        between(
            transport,
            &settings,
            LOOPBACK[0],
            async |listener| {
                let mut connection = limited(driver, listener.accept(PATIENCE)).await.unwrap();
                let mut stream = limited(driver, connection.accept()).await.unwrap();
                let end = limited(driver, stream.receiver.receive_some(&mut [0; 1])).await;
                assert_eq!(end.unwrap(), 0, "{}", transport.name());
            },
            async |server| {
                let mut connection = connect(transport, server, &settings).await;
                limited(driver, connection.close()).await.unwrap();
            },
        );
    }
}
