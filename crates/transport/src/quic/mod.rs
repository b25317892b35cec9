//! QUIC (RFC 9000): streams of bytes on which a message is a number of bytes that both ends know, and datagrams
//! (RFC 9221), one message each.

pub(crate) mod endpoint;
mod handshake;
mod offload;

use crate::error::failed;
use crate::quic::endpoint::{
    ABORTED, Connected, Endpoint, accept, client_endpoint, close, connect, connection_error, datagram_error,
    read_error, server_endpoint, write_error,
};
use crate::runtime::handshaking::Handshaking;
use crate::{
    Call, Carrier, Connection, Driver, Features, Listener, Outcome, Phases, Purpose, Receiver, Resumption, Sender,
    Settings, SocketReadback, Stream, Streams, Transport, TransportError,
};
use bytes::Bytes;
use quinn::VarInt;
use std::net::SocketAddr;
use std::time::Duration;

/// What the two ends agree to speak (ALPN).
const PROTOCOL: &[u8] = b"crosswind";

/// The largest datagram that quinn accepts as long as no packet of more than 1200 bytes is known to pass: less 1 byte of flags,
/// 8 of the peer's connection identifier, 4 of a packet number, 16 of a tag (RFC 9001, section 5.3), and 9 for the frame's
/// type and length at their longest.
pub(crate) const MAX_DATAGRAM: usize = 1200 - (1 + 8 + 4 + 16) - 9;

/// The transport `quic`.
pub struct Quic;

/// The transport `quic-datagram`.
pub struct QuicDatagram;

impl Transport for Quic {
    fn name(&self) -> &'static str {
        "quic"
    }

    fn summary(&self) -> &'static str {
        "Streams of bytes on one QUIC connection."
    }

    fn features(&self) -> Features {
        Features {
            driver: Driver::Reactor,
            carrier: Carrier::Quic,
            streams: Streams::Many,
            secure: true,
            early_data: true,
            shares_connection: true,
            // A stream exists for the other end as soon as something has been sent on it.
            server_speaks_first: false,
            ..Features::PLAIN
        }
    }

    fn listen<'a>(&'a self, address: SocketAddr, settings: &'a Settings) -> Call<'a, Box<dyn Listener>> {
        Call::done(listen(address, settings, false))
    }

    fn connect<'a>(
        &'a self,
        server: SocketAddr,
        settings: &'a Settings,
        timeout: Duration,
    ) -> Call<'a, Box<dyn Connection>> {
        Call::new(connect_client(server, settings, timeout, false))
    }
}

impl Transport for QuicDatagram {
    fn name(&self) -> &'static str {
        "quic-datagram"
    }

    fn summary(&self) -> &'static str {
        "Unreliable datagrams on one QUIC connection."
    }

    fn features(&self) -> Features {
        Features { datagram: true, streams: Streams::One, ..Quic.features() }
    }

    /// What fits whether or not MTU discovery finds larger packets to pass, so that the limit is the same in every run.
    fn largest_message(&self, _ipv6: bool, _mtu: u32) -> Option<usize> {
        Some(MAX_DATAGRAM)
    }

    fn listen<'a>(&'a self, address: SocketAddr, settings: &'a Settings) -> Call<'a, Box<dyn Listener>> {
        Call::done(listen(address, settings, true))
    }

    fn connect<'a>(
        &'a self,
        server: SocketAddr,
        settings: &'a Settings,
        timeout: Duration,
    ) -> Call<'a, Box<dyn Connection>> {
        Call::new(connect_client(server, settings, timeout, true))
    }
}

fn listen(address: SocketAddr, settings: &Settings, datagrams: bool) -> Result<Box<dyn Listener>, TransportError> {
    let endpoint = server_endpoint(address, settings, &[PROTOCOL])?;
    Ok(Box::new(QuicServer { endpoint, early: settings.resumption == Resumption::EarlyData, datagrams }))
}

async fn connect_client(
    server: SocketAddr,
    settings: &Settings,
    timeout: Duration,
    datagrams: bool,
) -> Result<Box<dyn Connection>, TransportError> {
    let Endpoint { quinn: endpoint, readback, .. } = client_endpoint(server, settings)?;
    let client_port = endpoint.local_addr().map_err(failed("cannot read the own address"))?.port();
    let connected = connect(&endpoint, server, settings, &[PROTOCOL], timeout).await?;
    Ok(Box::new(QuicClientConnection { connected, client_port, readback, datagrams }))
}

struct QuicServer {
    endpoint: Endpoint,
    /// Early data is answered before the handshake is done.
    early: bool,
    datagrams: bool,
}

impl Listener for QuicServer {
    fn address(&self) -> Result<SocketAddr, TransportError> {
        self.endpoint.quinn.local_addr().map_err(failed("cannot read the listener's address"))
    }

    fn accept(&self, _timeout: Duration) -> Call<'_, Box<dyn Connection>> {
        Call::new(async move {
            let incoming = self.endpoint.accept().await?;
            Ok(Box::new(QuicServerConnection {
                client_port: incoming.remote_address().port(),
                handshake: Handshaking::new(accept(incoming, self.early)),
                readback: self.endpoint.readback.clone(),
                datagrams: self.datagrams,
                accepted: false,
            }) as Box<dyn Connection>)
        })
    }
}

struct QuicClientConnection {
    connected: Connected,
    client_port: u16,
    readback: SocketReadback,
    datagrams: bool,
}

impl Connection for QuicClientConnection {
    fn open(&self, _purpose: Purpose) -> Call<'_, Stream> {
        let connection = &self.connected.quinn;
        Call::new(async move {
            if self.datagrams {
                return Ok(datagrams(connection));
            }
            let opened = connection.open_bi().await;
            opened.map(stream).map_err(|e| connection_error("cannot open a stream", &e))
        })
    }

    fn accept(&mut self) -> Call<'_, Stream> {
        Call::done(Err(TransportError::unsupported("cannot accept a stream at the client")))
    }

    fn phases(&self) -> Phases {
        self.connected.phases()
    }

    fn close(&mut self) -> Call<'_, ()> {
        Call::new(async move {
            self.connected.close(VarInt::from_u32(0)).await;
            Ok(())
        })
    }

    fn abort(&mut self) {
        self.connected.quinn.close(VarInt::from_u32(ABORTED), b"");
    }

    fn client_port(&self) -> u16 {
        self.client_port
    }

    fn readback(&self) -> Result<SocketReadback, TransportError> {
        Ok(self.readback.clone())
    }
}

struct QuicServerConnection {
    handshake: Handshaking<quinn::Connection>,
    client_port: u16,
    readback: SocketReadback,
    datagrams: bool,
    /// The stream of datagrams has been handed out.
    accepted: bool,
}

impl Connection for QuicServerConnection {
    fn open(&self, _purpose: Purpose) -> Call<'_, Stream> {
        Call::done(Err(TransportError::unsupported("cannot open a stream at the server")))
    }

    fn accept(&mut self) -> Call<'_, Stream> {
        Call::new(async move {
            let connection = self.handshake.done().await?;
            if !self.datagrams {
                let next = connection.accept_bi().await;
                return next.map(stream).map_err(|e| connection_error("cannot accept a stream", &e));
            }
            if self.accepted {
                return Err(connection_error("cannot accept a stream", &connection.closed().await));
            }
            self.accepted = true;
            Ok(datagrams(&connection))
        })
    }

    fn close(&mut self) -> Call<'_, ()> {
        Call::new(async move {
            if let Some(connection) = self.handshake.take() {
                close(&connection, VarInt::from_u32(0)).await;
            }
            Ok(())
        })
    }

    fn abort(&mut self) {
        if let Some(connection) = self.handshake.take() {
            connection.close(VarInt::from_u32(ABORTED), b"");
        }
    }

    fn client_port(&self) -> u16 {
        self.client_port
    }

    fn readback(&self) -> Result<SocketReadback, TransportError> {
        Ok(self.readback.clone())
    }
}

fn stream((sender, receiver): (quinn::SendStream, quinn::RecvStream)) -> Stream {
    Stream::new(QuicSender(sender), QuicReceiver(receiver))
}

fn datagrams(connection: &quinn::Connection) -> Stream {
    Stream::new(DatagramSender(connection.clone()), DatagramReceiver(connection.clone()))
}

struct QuicSender(quinn::SendStream);

impl Sender for QuicSender {
    fn send<'a>(&'a mut self, message: &'a [u8]) -> Call<'a, ()> {
        Call::new(async move { self.0.write_all(message).await.map_err(|e| write_error("cannot send", &e)) })
    }

    fn finish(&mut self) -> Call<'_, ()> {
        // It fails when it has been finished before.
        let _ = self.0.finish();
        Call::done(Ok(()))
    }
}

/// Fills `into` from a stream of bytes, from which `some` receives those that there are.
pub(crate) async fn fill(
    into: &mut [u8],
    mut some: impl AsyncFnMut(&mut [u8]) -> Result<usize, TransportError>,
) -> Result<usize, TransportError> {
    let mut filled = 0;
    while filled < into.len() {
        match some(&mut into[filled..]).await? {
            0 => return Err(TransportError::closed("cannot receive")),
            n => filled += n,
        }
    }
    Ok(filled)
}

struct QuicReceiver(quinn::RecvStream);

impl QuicReceiver {
    async fn some(&mut self, into: &mut [u8]) -> Result<usize, TransportError> {
        if into.is_empty() {
            return Ok(0);
        }
        let read = self.0.read(into).await;
        read.map(Option::unwrap_or_default).map_err(|e| read_error("cannot receive", &e))
    }
}

impl Receiver for QuicReceiver {
    fn receive<'a>(&'a mut self, into: &'a mut [u8]) -> Call<'a, usize> {
        Call::new(fill(into, async |rest: &mut [u8]| self.some(rest).await))
    }

    fn receive_some<'a>(&'a mut self, into: &'a mut [u8]) -> Call<'a, usize> {
        Call::new(self.some(into))
    }
}

struct DatagramSender(quinn::Connection);

impl Sender for DatagramSender {
    fn send<'a>(&'a mut self, message: &'a [u8]) -> Call<'a, ()> {
        Call::done(check_size(message, MAX_DATAGRAM).and_then(|()| {
            let sent = self.0.send_datagram(Bytes::copy_from_slice(message));
            sent.map_err(|e| datagram_error("cannot send", &e))
        }))
    }
}

struct DatagramReceiver(quinn::Connection);

impl Receiver for DatagramReceiver {
    fn receive<'a>(&'a mut self, into: &'a mut [u8]) -> Call<'a, usize> {
        Call::new(async move {
            let message = self.0.read_datagram().await.map_err(|e| connection_error("cannot receive", &e))?;
            copy_datagram(&message, into)
        })
    }

    fn receive_some<'a>(&'a mut self, into: &'a mut [u8]) -> Call<'a, usize> {
        self.receive(into)
    }
}

/// Refuses a message of more than `max` bytes.
pub(crate) fn check_size(message: &[u8], max: usize) -> Result<(), TransportError> {
    if message.len() <= max {
        return Ok(());
    }
    let cause = format!("{} bytes are more than {max}", message.len());
    Err(TransportError::with("cannot send a datagram", Outcome::TooLarge, cause))
}

/// Copies a datagram `into` a buffer where it fits.
pub(crate) fn copy_datagram(message: &[u8], into: &mut [u8]) -> Result<usize, TransportError> {
    let Some(place) = into.get_mut(..message.len()) else {
        let cause = format!("a datagram of {} bytes", message.len());
        return Err(TransportError::with("cannot receive", Outcome::TooLarge, cause));
    };
    place.copy_from_slice(message);
    Ok(message.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::security::Security;
    use std::sync::Arc;

    /// What quinn itself says right after connecting, before MTU discovery has found larger packets to pass.
    #[test]
    fn the_largest_datagram_is_what_fits_right_after_connecting() {
        let settings = Settings { security: Some(Arc::new(Security::new().unwrap())), ..Settings::default() };
        let run = async {
            let server = server_endpoint("127.0.0.1:0".parse().unwrap(), &settings, &[PROTOCOL]).unwrap();
            let address = server.quinn.local_addr().unwrap();
            let client = client_endpoint(address, &settings).unwrap();
            let timeout = Duration::from_secs(20);
            let (client, accepted) = tokio::join!(
                async {
                    let connected = connect(&client.quinn, address, &settings, &[PROTOCOL], timeout).await.unwrap();
                    (connected.quinn.max_datagram_size(), connected)
                },
                async {
                    let connection = accept(server.quinn.accept().await.unwrap(), true).await.unwrap();
                    (connection.max_datagram_size(), connection)
                }
            );
            assert_eq!(client.0, Some(MAX_DATAGRAM));
            // The server knows the client's limit, and may send, before the handshake is done.
            assert_eq!(accepted.0, Some(MAX_DATAGRAM));
        };
        Driver::Reactor.run(run).unwrap();
    }
}
