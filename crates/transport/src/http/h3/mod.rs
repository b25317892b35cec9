//! HTTP/3 (RFC 9114): h3 over quinn, with the settings in `quic::endpoint`. The library has no dynamic table for QPACK,
//! so fields are not compressed by earlier requests; and grease frames (section 7.2.8) are off, so runs are alike.

mod body;
mod client;
mod errors;
mod server;

use super::features::FEATURES;
use super::request::Requests;
use crate::error::failed;
use crate::quic::endpoint::{client_endpoint, connect, server_endpoint};
use crate::runtime::driver::within;
use crate::{About, Call, Carrier, Connecting, Connection, Features, Listener, Resumption, Settings, Transport};
use client::Client;
use server::Server;
use std::net::SocketAddr;
use std::time::Duration;

/// Its name in TLS (ALPN).
const PROTOCOL: &[u8] = b"h3";

/// The transport `http3`.
pub struct Http3;

impl Transport for Http3 {
    fn about(&self) -> About {
        let features =
            Features { carrier: Carrier::Quic, secure: true, early_data: true, shares_connection: true, ..FEATURES };
        About {
            name: "http3",
            summary: "HTTP/3: a message is the body of a POST request, its answer that of the response.",
            features,
        }
    }

    fn listen<'a>(&'a self, address: SocketAddr, settings: &'a Settings) -> Call<'a, Box<dyn Listener>> {
        let listen = || {
            let endpoint = server_endpoint(address, settings, &[PROTOCOL])?;
            let early = settings.resumption == Resumption::EarlyData;
            Ok(Box::new(Server { endpoint, early }) as Box<dyn Listener>)
        };
        Call::done(listen())
    }

    fn connect<'a>(&'a self, server: SocketAddr, settings: &'a Settings, timeout: Duration) -> Connecting<'a> {
        Call::new(async move {
            let requests = Requests::new(settings, server, true, false)?;
            let endpoint = client_endpoint(server, settings)?;
            let port = endpoint.quinn.local_addr().map_err(failed("cannot read the own address"))?.port();
            let connected = connect(&endpoint.quinn, server, settings, &[PROTOCOL], timeout).await?;
            let client = Client::start(connected, endpoint.readback, requests, port);
            let client = within(timeout, "cannot begin HTTP", client).await?;
            Ok(Box::new(client) as Box<dyn Connection>)
        })
    }
}
