//! QUIC (RFC 9000): byte streams with messages of known size, and datagrams (RFC 9221), one message each.

pub(crate) mod endpoint;
mod handshake;
mod observed;
mod offload;
pub(crate) mod packets;
pub(crate) mod session;
mod socket;

use crate::{Settings, TransportError};
use bytes::Bytes;
use endpoint::{ABORTED, Connected, accept, close, connection_error, datagram_error, read_error, write_error};
use quinn::VarInt;
use session::{Over, Session};
use std::future::Future;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// The transport `quic`.
pub const QUIC: Over<quinn::Connection> = Over::streams("quic", "Streams of bytes on one QUIC connection.", 1, true);

/// The transport `quic-datagram`.
pub const QUIC_DATAGRAM: Over<quinn::Connection> =
    Over::datagrams("quic-datagram", "Unreliable datagrams on one QUIC connection.", &QUIC);

/// quinn's largest datagram while only packets of 1200 bytes are known to pass: less 1 byte of flags, 8 for the peer's
/// connection identifier, 4 for a packet number, 16 for a tag (RFC 9001, section 5.3), and 9 for the frame's longest
/// type and length.
pub(crate) const MAX_DATAGRAM: usize = 1200 - (1 + 8 + 4 + 16) - 9;

impl Session for quinn::Connection {
    const PROTOCOL: &'static [u8] = b"crosswind";
    const LARGEST_DATAGRAM: usize = MAX_DATAGRAM;
    type SendStream = quinn::SendStream;
    type RecvStream = quinn::RecvStream;

    async fn open(
        connected: &Connected,
        _server: SocketAddr,
        _settings: &Settings,
        _deadline: Instant,
    ) -> Result<(Self, Option<Duration>), TransportError> {
        Ok((connected.quinn.clone(), None))
    }

    fn accept(
        incoming: quinn::Incoming,
        early: bool,
    ) -> impl Future<Output = Result<Self, TransportError>> + Send + 'static {
        accept(incoming, early)
    }

    async fn open_stream(&self) -> Result<(quinn::SendStream, quinn::RecvStream), TransportError> {
        self.open_bi().await.map_err(|e| connection_error("cannot open a stream", &e))
    }

    async fn accept_stream(&self) -> Result<(quinn::SendStream, quinn::RecvStream), TransportError> {
        self.accept_bi().await.map_err(|e| connection_error("cannot accept a stream", &e))
    }

    fn number(stream: &quinn::SendStream) -> u64 {
        stream.id().into()
    }

    async fn write(stream: &mut quinn::SendStream, message: &[u8]) -> Result<(), TransportError> {
        stream.write_all(message).await.map_err(|e| write_error("cannot send", &e))
    }

    fn finish(stream: &mut quinn::SendStream) {
        let _ = stream.finish();
    }

    async fn read(stream: &mut quinn::RecvStream, into: &mut [u8]) -> Result<usize, TransportError> {
        let read = stream.read(into).await;
        read.map(Option::unwrap_or_default).map_err(|e| read_error("cannot receive", &e))
    }

    fn send_datagram(&self, message: Bytes) -> Result<(), TransportError> {
        self.send_datagram(message).map_err(|e| datagram_error("cannot send", &e))
    }

    async fn read_datagram(&self) -> Result<Bytes, TransportError> {
        self.read_datagram().await.map_err(|e| connection_error("cannot receive", &e))
    }

    async fn ended(&self) -> TransportError {
        connection_error("cannot accept a stream", &self.closed().await)
    }

    async fn close(&self) {
        close(self, VarInt::from_u32(0)).await;
    }

    fn abort(&self) {
        self.close(VarInt::from_u32(ABORTED), b"");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Driver;
    use crate::security::Security;
    use endpoint::{client_endpoint, connect, server_endpoint};
    use std::sync::Arc;

    /// quinn's own limit right after connecting, before MTU discovery has found larger packets to pass.
    #[test]
    fn the_largest_datagram_is_what_fits_right_after_connecting() {
        let settings = Settings { security: Some(Arc::new(Security::new().unwrap())), ..Settings::default() };
        let run = async {
            let server =
                server_endpoint("127.0.0.1:0".parse().unwrap(), &settings, &[quinn::Connection::PROTOCOL]).unwrap();
            let address = server.quinn.local_addr().unwrap();
            let client = client_endpoint(address, &settings).unwrap();
            let timeout = Duration::from_secs(20);
            let (client, accepted) = tokio::join!(
                async {
                    let connected = connect(&client.quinn, address, &settings, &[quinn::Connection::PROTOCOL], timeout)
                        .await
                        .unwrap();
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
