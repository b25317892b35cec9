//! A client: sends messages and checks the replies.

use super::ends::{CHUNK, has_boundaries, host_error, print, read, settings};
use crate::CellError;
use crosswind_transport::security::{Security, Trust};
use crosswind_transport::{
    Connection, Features, Outcome, Payload, Purpose, Stream, Streams, TransportError, TransportRef,
};
use crosswind_workload::number;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// A client to be run.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    transport: TransportRef,
    address: SocketAddr,
    #[serde(default = "localhost")]
    server_name: String,
    #[serde(default)]
    trust_pem: Option<String>,
    /// Trust any certificate.
    #[serde(default)]
    insecure: bool,
    #[serde(default)]
    path: String,
    sizes: Vec<usize>,
    #[serde(default)]
    payload: Payload,
    #[serde(default = "number::<5_000_000_000>")]
    timeout_ns: u64,
    #[serde(default)]
    method: Method,
    #[serde(default)]
    polling: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
enum Method {
    /// An echoed message.
    #[default]
    Post,
    /// A requested document.
    Get,
}

fn localhost() -> String {
    "localhost".into()
}

/// One message's output line.
#[derive(Debug, Serialize)]
struct Exchanged {
    size: usize,
    outcome: Outcome,
    received: usize,
    elapsed_ns: u64,
}

/// The final output line.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "lowercase")]
enum ClientEvent {
    /// The connection is closed, or never was there.
    Closed { outcome: Outcome, error: Option<String> },
}

/// Sends a message of each size and checks the replies.
pub fn call(text: &str) -> Result<(), CellError> {
    let wanted: Wanted = read(text)?;
    let features = wanted.transport.features();
    let trust = match (&wanted.trust_pem, wanted.insecure) {
        (_, true) => Trust::Anything,
        (Some(pem), false) => Trust::Roots(pem.clone()),
        (None, false) => Trust::Own,
    };
    let security = if features.secure {
        let own = Security::new().and_then(|own| own.expecting(&wanted.server_name, trust));
        Some(own.map_err(|e| host_error(&e))?)
    } else {
        None
    };
    let settings = settings(security, wanted.payload, wanted.path.clone(), wanted.polling);
    let timeout = Duration::from_nanos(wanted.timeout_ns);
    let result = features
        .driver
        .run(async {
            let connection = wanted.transport.connect(wanted.address, &settings, timeout).await?;
            let mut client = Client { wanted: &wanted, features, timeout, connection, kept: None };
            client.send_all().await?;
            features.driver.within(timeout, "cannot close", client.connection.close()).await
        })
        .and_then(|result| result);
    let (outcome, error) = match &result {
        Ok(()) => (Outcome::Ok, None),
        Err(error) => (error.outcome, Some(error.to_string())),
    };
    print(&ClientEvent::Closed { outcome, error });
    if result.is_err() {
        // The output has everything: an outcome is no failure of the program.
        std::process::exit(1);
    }
    Ok(())
}

struct Client<'a> {
    wanted: &'a Wanted,
    features: Features,
    timeout: Duration,
    connection: Box<dyn Connection>,
    /// The last message's stream, if the next one may use it.
    kept: Option<Stream>,
}

impl Client<'_> {
    async fn send_all(&mut self) -> Result<(), TransportError> {
        let (driver, timeout) = (self.features.driver, self.timeout);
        for &size in &self.wanted.sizes {
            let before = Instant::now();
            let result = driver.within(timeout, "cannot exchange", self.exchange(size)).await;
            let (outcome, received) = match &result {
                Ok(received) if *received == size || self.wanted.method == Method::Get => (Outcome::Ok, *received),
                Ok(received) => (Outcome::Error, *received),
                Err(error) => (error.outcome, 0),
            };
            print(&Exchanged { size, outcome, received, elapsed_ns: before.elapsed().as_nanos() as u64 });
            result?;
            if outcome != Outcome::Ok {
                return Err(changed());
            }
        }
        if let Some(mut stream) = self.kept.take() {
            stream.sender.finish().await?;
        }
        Ok(())
    }

    /// Returns the number of bytes received. Bytes other than those sent are an error.
    async fn exchange(&mut self, size: usize) -> Result<usize, TransportError> {
        if self.wanted.method == Method::Get {
            return self.get(size).await;
        }
        let mut stream = match self.kept.take() {
            Some(stream) => stream,
            None => self.connection.open(Purpose::Messages).await?,
        };
        let message = message(self.wanted.payload, size);
        let mut reply = vec![0; size];
        let length = if size == 0 && !has_boundaries(self.features) {
            0
        } else {
            stream.sender.send(&message).await?;
            stream.receiver.receive(&mut reply).await?
        };
        if reply[..length] != message[..length.min(size)] {
            return Err(changed());
        }
        if self.features.streams != Streams::PerMessage {
            self.kept = Some(stream);
        }
        Ok(length)
    }

    async fn get(&self, size: usize) -> Result<usize, TransportError> {
        let bytes = self.wanted.path.is_empty().then_some(size as u64);
        let mut stream = self.connection.open(Purpose::Download(bytes)).await?;
        let (mut buffer, mut received) = (vec![0; CHUNK], 0);
        loop {
            match stream.receiver.receive_some(&mut buffer).await? {
                0 => return Ok(received),
                count => received += count,
            }
        }
    }
}

fn changed() -> TransportError {
    TransportError::with("cannot exchange", Outcome::Error, "it came back changed")
}

/// `size` bytes; as text with as many characters beyond ASCII as fit.
fn message(payload: Payload, size: usize) -> Vec<u8> {
    match payload {
        Payload::Binary => (0..size).map(|i| (i % 251) as u8).collect(),
        Payload::Text => {
            let mut text = "\u{e9}\u{20ac}\u{1f30d}".repeat(size / 9);
            text.extend(std::iter::repeat_n('x', size - text.len()));
            text.into_bytes()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_has_its_size_and_is_text() {
        for size in [0, 1, 8, 9, 125, 126, 65_536] {
            let text = String::from_utf8(message(Payload::Text, size)).unwrap();
            assert_eq!(text.len(), size);
        }
        assert!(!message(Payload::Text, 9).is_ascii());
    }
}
