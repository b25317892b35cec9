//! An echo server.

use super::ends::{CHUNK, has_boundaries, host_error, print, read, settings};
use crate::CellError;
use crosswind_transport::security::Security;
use crosswind_transport::{
    Driver, Features, Listener, Outcome, Payload, Settings, Stream, TransportError, TransportRef, serving,
};
use crosswind_workload::serving::{FOREVER, serve_connections, serve_streams};
use serde::{Deserialize, Serialize};
use std::io::Read;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// Largest message echoed whole, bytes.
const LARGEST: usize = 64 << 20;
/// The time limit for writing an answer to a peer that does not read.
const ANSWER_TIMEOUT: Duration = Duration::from_mins(1);

/// A server to be started.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    transport: TransportRef,
    address: SocketAddr,
    /// Runs until a signal, instead of the end of standard input.
    #[serde(default)]
    stay: bool,
}

#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "lowercase")]
enum ServerEvent {
    Listening { address: SocketAddr, certificate_pem: Option<String>, certificate_sha256: Option<String> },
}

/// A server: its transport, address and certificate.
struct Server {
    wanted: Wanted,
    settings: Settings,
    certificate: Option<(String, String)>,
}

/// Serves until standard input ends, or, where it is to stay, until the process is ended.
pub fn serve(text: &str) -> Result<(), CellError> {
    let wanted: Wanted = read(text)?;
    let features = wanted.transport.features();
    let security = if features.secure { Some(Security::new().map_err(|e| host_error(&e))?) } else { None };
    let certificate =
        security.as_ref().map(|security| (security.certificate_pem().to_owned(), security.certificate_sha256()));
    let settings = settings(security, Payload::Binary, String::new(), false);
    let server = Server { wanted, settings, certificate };
    match features.driver {
        Driver::Thread => server.run_on_threads(),
        Driver::Reactor => server.run_on_reactor(),
    }
    .map_err(|e| host_error(&e))
}

impl Server {
    async fn listen(&self) -> Result<Box<dyn Listener>, TransportError> {
        let listener = self.wanted.transport.listen(self.wanted.address, &self.settings).await?;
        let (certificate_pem, certificate_sha256) = self.certificate.clone().unzip();
        print(&ServerEvent::Listening { address: listener.address()?, certificate_pem, certificate_sha256 });
        Ok(listener)
    }

    fn run_on_reactor(&self) -> Result<(), TransportError> {
        let stop = Arc::new(Notify::new());
        let (ended, stay) = (Arc::clone(&stop), self.wanted.stay);
        std::thread::spawn(move || {
            wait_for_the_end(stay);
            ended.notify_one();
        });
        let features = self.wanted.transport.features();
        Driver::Reactor.run(async {
            let listener = self.listen().await?;
            let serve = async |mut connection: Box<dyn crosswind_transport::Connection>| {
                serve_streams(features, connection.as_mut(), |_, stream| echo(features, stream)).await;
            };
            serve_connections(listener.as_ref(), stop.notified(), serve).await;
            Ok(())
        })?
    }

    fn run_on_threads(&self) -> Result<(), TransportError> {
        let features = self.wanted.transport.features();
        let listener = Driver::Thread.run(self.listen())??;
        std::thread::spawn(move || {
            while let Ok(accepted) = Driver::Thread.run(listener.accept(FOREVER)) {
                let Ok(mut connection) = accepted else { continue };
                let mut serving = move || {
                    let streams = serve_streams(features, connection.as_mut(), |_, stream| echo(features, stream));
                    let _ = Driver::Thread.run(streams);
                };
                if features.datagram {
                    serving();
                } else {
                    std::thread::spawn(serving);
                }
            }
        });
        wait_for_the_end(self.wanted.stay);
        Ok(())
    }
}

fn wait_for_the_end(stay: bool) {
    if stay {
        loop {
            std::thread::park();
        }
    }
    // Whatever ends standard input, nobody uses this server any more.
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}

/// Sends back received and requested bytes.
async fn echo(features: Features, mut stream: Stream) {
    if let Some(asked) = stream.asked {
        // A vanished client needs no answer.
        let _ = serving::give(stream.sender.as_mut(), asked, &vec![b'x'; CHUNK]).await;
        return;
    }
    let mut buffer = vec![0; if has_boundaries(features) { LARGEST } else { CHUNK }];
    loop {
        let received = if has_boundaries(features) {
            stream.receiver.receive(&mut buffer).await
        } else {
            stream.receiver.receive_some(&mut buffer).await
        };
        let length = match received {
            Ok(0) if !has_boundaries(features) => break,
            Ok(length) => length,
            Err(e) if e.outcome == Outcome::Timeout => continue,
            Err(_) => break,
        };
        let sending = stream.sender.send(&buffer[..length]);
        if features.driver.within(ANSWER_TIMEOUT, "cannot answer", sending).await.is_err() && !features.datagram {
            return;
        }
    }
    let _ = stream.sender.finish().await;
}
