//! HTTP/1.1 (RFC 9112) and HTTP/2 (RFC 9113) over TCP, and over TLS.

mod body;
mod client;
mod engine;
mod errors;
mod link;
mod pieces;
mod server;

use crate::http::FEATURES;
use crate::http::request::Requests;
use crate::runtime::driver::within;
use crate::tcp::nonblocking;
use crate::tls::handshake;
use crate::{Call, Connection, Features, Listener, Outcome, Phases, Settings, Transport, TransportError};
use link::Link;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

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
                if self.secure { Some(handshake::acceptor(settings, &[self.version.protocol()])?) } else { None };
            let listening = nonblocking::Listening::new(address, &settings.socket)?;
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
        let stream = nonblocking::connect(server, &settings.socket).await?;
        let mut phases = Phases { transport: Some(started.elapsed()), ..Phases::default() };
        let (link, port) = (Link::new(&stream)?, nonblocking::own_port(&stream)?);
        if !self.secure {
            return client::Client::start(stream, self.version, link, requests, phases, port).await;
        }
        let started = Instant::now();
        let protocol = self.version.protocol();
        let secured = handshake::client(stream, settings, &[protocol]).await?;
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
