//! HTTP: a stream is one request and its response. A message is a request's body, its answer the response's.
//!
//! At the server `POST` to any path is a message or an upload, `GET /bytes/N` asks for N bytes; anything else is answered
//! without bothering whoever serves.

mod body;
mod client;
mod engine;
mod errors;
mod link;
mod pieces;
mod request;
mod server;
mod three;
mod three_client;
mod three_errors;
mod three_pieces;
mod three_server;

pub use three::Http3;

use crate::driver::within;
use crate::{
    Call, Connection, Driver, Features, Listener, Outcome, Phases, Settings, Streams, Transport, TransportError,
    secure, tcp_stream,
};
use link::Link;
use request::Requests;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Flow control of HTTP/2, at both ends: what Chromium grants a server, so that no window is what bounds a transfer below
/// 6 MiB in flight (15 MiB over all streams). The protocol's own default is 65,535 bytes for both (RFC 9113, section 6.9.2).
const STREAM_WINDOW: u32 = 6 * 1024 * 1024;
const CONNECTION_WINDOW: u32 = 15 * 1024 * 1024;
/// Requests at once on a connection of HTTP/2 (`SETTINGS_MAX_CONCURRENT_STREAMS`): beyond what a cell asks for.
const MOST_STREAMS: u32 = 1_000;
/// Of a header, where the protocol lets an end say so: `request_bytes` and more.
const MOST_HEADER_BYTES: u32 = 128 * 1024;

/// Which HTTP over TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    /// RFC 9112.
    One,
    /// RFC 9113.
    Two,
}

impl Version {
    /// Its name in TLS (ALPN).
    const fn protocol(self) -> &'static [u8] {
        match self {
            Self::One => b"http/1.1",
            Self::Two => b"h2",
        }
    }
}

/// The transports of HTTP over TCP.
pub struct Http {
    name: &'static str,
    summary: &'static str,
    version: Version,
    secure: bool,
}

/// The transport `http1`: HTTP/1.1 in cleartext.
pub static HTTP1: Http = Http {
    name: "http1",
    summary: "HTTP/1.1 in cleartext: a message is the body of a POST request, its answer that of the response.",
    version: Version::One,
    secure: false,
};
/// The transport `https1`: HTTP/1.1 over TLS.
pub static HTTPS1: Http = Http {
    name: "https1",
    summary: "HTTP/1.1 over TLS 1.3: a message is the body of a POST request.",
    version: Version::One,
    secure: true,
};
/// The transport `h2c`: HTTP/2 in cleartext, which the client knows beforehand (RFC 9113, section 3.3).
pub static H2C: Http = Http {
    name: "h2c",
    summary: "HTTP/2 in cleartext: a message is the body of a POST request.",
    version: Version::Two,
    secure: false,
};
/// The transport `http2`: HTTP/2 over TLS.
pub static HTTP2: Http = Http {
    name: "http2",
    summary: "HTTP/2 over TLS 1.3: a message is the body of a POST request.",
    version: Version::Two,
    secure: true,
};

const FEATURES: Features = Features {
    driver: Driver::Reactor,
    streams: Streams::PerMessage,
    http: true,
    server_speaks_first: false,
    ..Features::PLAIN
};

impl Transport for Http {
    fn name(&self) -> &'static str {
        self.name
    }

    fn summary(&self) -> &'static str {
        self.summary
    }

    fn features(&self) -> Features {
        let setup_round_trips = if self.secure { 2 } else { 1 };
        Features { secure: self.secure, setup_round_trips, shares_connection: self.version == Version::Two, ..FEATURES }
    }

    fn listen<'a>(&'a self, address: SocketAddr, settings: &'a Settings) -> Call<'a, Box<dyn Listener>> {
        Call::new(async move {
            let acceptor =
                if self.secure { Some(secure::acceptor(settings, &[self.version.protocol()])?) } else { None };
            let listening = tcp_stream::Listening::new(address, &settings.socket)?;
            Ok(Box::new(server::Server { listening, acceptor, version: self.version }) as Box<dyn Listener>)
        })
    }

    fn connect<'a>(
        &'a self,
        server: SocketAddr,
        settings: &'a Settings,
        timeout: Duration,
    ) -> Call<'a, Box<dyn Connection>> {
        Call::new(within(timeout, "cannot connect", async move {
            let connection = self.set_up(server, settings).await?;
            Ok(Box::new(connection) as Box<dyn Connection>)
        }))
    }
}

impl Http {
    async fn set_up(&self, server: SocketAddr, settings: &Settings) -> Result<client::Client, TransportError> {
        let requests = Requests::new(settings, server, self.secure, self.version == Version::One)?;
        let started = Instant::now();
        let stream = tcp_stream::connect(server, &settings.socket).await?;
        let mut phases = Phases { transport: Some(started.elapsed()), ..Phases::default() };
        let (link, port) = (Link::new(&stream)?, tcp_stream::own_port(&stream)?);
        if !self.secure {
            return client::Client::start(stream, self.version, link, requests, phases, port).await;
        }
        let started = Instant::now();
        let protocol = self.version.protocol();
        let secured = secure::client(stream, settings, &[protocol]).await?;
        phases.security = Some(started.elapsed());
        phases.resumed = secured.resumed;
        // A server that knows no ALPN speaks HTTP/1.1 (RFC 9113, section 3.2: h2 must be agreed on).
        let agreed = secured.stream.get_ref().1.alpn_protocol();
        if agreed != Some(protocol) && !(agreed.is_none() && self.version == Version::One) {
            let cause = "the server did not agree on the version";
            return Err(TransportError::with("cannot speak HTTP", Outcome::Protocol, cause));
        }
        client::Client::start(secured.stream, self.version, link, requests, phases, port).await
    }
}
