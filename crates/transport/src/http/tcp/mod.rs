//! HTTP/1.1 (RFC 9112) and HTTP/2 (RFC 9113) over TCP, and over TLS: hyper.
//!
//! As in other programs on hyper each connection has its own task; a client sends requests through a handle on it, a
//! server answers them in a service.

mod body;
mod client;
mod end;
mod errors;
pub mod recording;
mod server;
mod version;

use super::features::FEATURES;
use super::request::Requests;
use crate::runtime::driver::within;
use crate::tcp::nonblocking::{self, Listening, SocketHandle};
use crate::tls::handshake;
use crate::{
    About, Call, Connecting, Connection, Features, Listener, Outcome, Phases, Settings, Transport, TransportError,
};
use client::{Client, Established};
use recording::{End, Recording};
use server::Server;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use version::Version;

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
    version: Version::Http1,
    secure: false,
};
/// The transport `https1`: HTTP/1.1 over TLS.
pub static HTTPS1: Http = Http {
    name: "https1",
    summary: "HTTP/1.1 over TLS 1.3: a message is the body of a POST request.",
    version: Version::Http1,
    secure: true,
};
/// The transport `h2c`: HTTP/2 in cleartext with prior knowledge (RFC 9113, section 3.3).
pub static H2C: Http = Http {
    name: "h2c",
    summary: "HTTP/2 in cleartext: a message is the body of a POST request.",
    version: Version::Http2,
    secure: false,
};
/// The transport `http2`: HTTP/2 over TLS.
pub static HTTP2: Http = Http {
    name: "http2",
    summary: "HTTP/2 over TLS 1.3: a message is the body of a POST request.",
    version: Version::Http2,
    secure: true,
};

impl Transport for Http {
    fn about(&self) -> About {
        let setup_round_trips = if self.secure { 2 } else { 1 };
        let shares_connection = self.version == Version::Http2;
        let features = Features { secure: self.secure, setup_round_trips, shares_connection, ..FEATURES };
        About { name: self.name, summary: self.summary, features }
    }

    fn listen<'a>(&'a self, address: SocketAddr, settings: &'a Settings) -> Call<'a, Box<dyn Listener>> {
        Call::new(async move {
            let acceptor =
                if self.secure { Some(handshake::acceptor(settings, &[self.version.protocol()])?) } else { None };
            let listening = Listening::new(address, settings)?;
            let (ends, windows) = (settings.http_ends.clone(), settings.http2);
            let server = Server { listening, acceptor, version: self.version, windows, ends };
            Ok(Box::new(server) as Box<dyn Listener>)
        })
    }

    fn connect<'a>(&'a self, server: SocketAddr, settings: &'a Settings, timeout: Duration) -> Connecting<'a> {
        Call::new(within(timeout, "cannot connect", async move {
            let client = self.start_client(server, settings).await?;
            Ok(Box::new(client) as Box<dyn Connection>)
        }))
    }
}

impl Http {
    async fn start_client(&self, server: SocketAddr, settings: &Settings) -> Result<Client, TransportError> {
        let requests = Requests::new(settings, server, self.secure, self.version == Version::Http1)?;
        let started = Instant::now();
        let tcp = nonblocking::connect(server, &settings.socket).await?;
        let phases = Phases { transport: Some(started.elapsed()), ..Phases::default() };
        let (socket, client_port) = (SocketHandle::new(&tcp, settings)?, nonblocking::own_port(&tcp)?);
        let recording =
            Recording::start(settings.http_ends.as_ref(), End::Client, self.version, self.secure, client_port);
        let mut established = Established { socket, phases, client_port, windows: settings.http2, recording };
        if !self.secure {
            return Client::start(tcp, self.version, established, requests).await;
        }
        let started = Instant::now();
        let protocol = self.version.protocol();
        let tcp = established.recording.below_tls(tcp);
        let secured = handshake::client(tcp, settings, &[protocol]).await?;
        established.phases.security = Some(started.elapsed());
        established.phases.resumed = secured.resumed;
        // A server without ALPN speaks HTTP/1.1 (RFC 9113, section 3.2: h2 must be agreed on).
        let agreed = secured.stream.get_ref().1.alpn_protocol();
        if agreed != Some(protocol) && !(agreed.is_none() && self.version == Version::Http1) {
            let cause = "the server did not agree on the version";
            return Err(TransportError::with("cannot speak HTTP", Outcome::Protocol, cause));
        }
        Client::start(secured.stream, self.version, established, requests).await
    }
}
