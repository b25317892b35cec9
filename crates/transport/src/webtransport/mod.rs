//! WebTransport over HTTP/3 (draft-ietf-webtrans-http3): a session by CONNECT. Its bidirectional streams carry bytes,
//! with messages of a size known to both ends, and its datagrams carry one message each.

pub(crate) mod session;

use crate::quic::MAX_DATAGRAM;
use crate::quic::endpoint::{ABORTED, Connected};
use crate::quic::session::{Over, Session};
use crate::{Outcome, Resumption, Settings, TransportError};
use bytes::Bytes;
use session::{OpenSession, accept_session, opening_error, read_error, session_error, write_error};
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use url::Url;
use web_transport_quinn::proto::ConnectRequest;
use web_transport_quinn::{ALPN, RecvStream, SendStream};

/// The transport `webtransport`: QUIC takes one round trip, the CONNECT request one; SETTINGS come with the handshake.
pub const WEBTRANSPORT: Over<Arc<OpenSession>> =
    Over::streams("webtransport", "Streams of bytes of a WebTransport session over HTTP/3.", 2, false);

/// The transport `webtransport-datagram`.
pub const WEBTRANSPORT_DATAGRAM: Over<Arc<OpenSession>> = Over::datagrams(
    "webtransport-datagram",
    "Unreliable datagrams of a WebTransport session over HTTP/3.",
    &WEBTRANSPORT,
);

impl Session for Arc<OpenSession> {
    const PROTOCOL: &'static [u8] = ALPN.as_bytes();
    /// A datagram has the session's identifier (its first stream's, 0) in one byte.
    const LARGEST_DATAGRAM: usize = MAX_DATAGRAM - 1;
    /// The stream's type in two bytes, and the session's identifier.
    const STREAM_HEADER: u64 = 3;
    type SendStream = SendStream;
    type RecvStream = RecvStream;

    /// CONNECT may not be sent as early data, for it is not safe to repeat (RFC 9114, section 10.9).
    fn check(settings: &Settings) -> Result<(), TransportError> {
        if settings.resumption == Resumption::EarlyData {
            return Err(TransportError::unsupported("cannot send early data"));
        }
        Ok(())
    }

    async fn open(
        connected: &Connected,
        server: SocketAddr,
        settings: &Settings,
        deadline: Instant,
    ) -> Result<(Self, Option<Duration>), TransportError> {
        let request = ConnectRequest::new(session_url(server.port(), settings)?);
        let started = Instant::now();
        let timeout = deadline.saturating_duration_since(started);
        let opened = crate::driver::within(timeout, "cannot open a session", async {
            let opened = web_transport_quinn::Session::connect(connected.quinn.clone(), request).await;
            opened.map_err(|e| opening_error("cannot open a session", &connected.quinn, &e))
        });
        let session = Self::new(OpenSession(opened.await?));
        Ok((session, Some(started.elapsed())))
    }

    fn accept(
        incoming: quinn::Incoming,
        _early: bool,
    ) -> impl Future<Output = Result<Self, TransportError>> + Send + 'static {
        accept_session(incoming)
    }

    async fn open_stream(&self) -> Result<(SendStream, RecvStream), TransportError> {
        self.0.open_bi().await.map_err(|e| session_error("cannot open a stream", &e))
    }

    async fn accept_stream(&self) -> Result<(SendStream, RecvStream), TransportError> {
        self.0.accept_bi().await.map_err(|e| session_error("cannot accept a stream", &e))
    }

    fn number(stream: &SendStream) -> u64 {
        stream.quic_id().into()
    }

    async fn write(stream: &mut SendStream, message: &[u8]) -> Result<(), TransportError> {
        stream.write_all(message).await.map_err(|e| write_error("cannot send", &e))
    }

    fn finish(stream: &mut SendStream) {
        let _ = stream.finish();
    }

    async fn read(stream: &mut RecvStream, into: &mut [u8]) -> Result<usize, TransportError> {
        let read = stream.read(into).await;
        read.map(Option::unwrap_or_default).map_err(|e| read_error("cannot receive", &e))
    }

    fn send_datagram(&self, message: Bytes) -> Result<(), TransportError> {
        self.0.send_datagram(message).map_err(|e| session_error("cannot send", &e))
    }

    async fn read_datagram(&self) -> Result<Bytes, TransportError> {
        self.0.read_datagram().await.map_err(|e| session_error("cannot receive", &e))
    }

    async fn ended(&self) -> TransportError {
        session_error("cannot accept a stream", &self.0.closed().await)
    }

    async fn close(&self) {
        self.as_ref().close().await;
    }

    /// The other end may see an orderly end: the library's task for the session closes the connection once more, which
    /// hides the reason from later calls.
    fn abort(&self) {
        self.end(ABORTED);
    }
}

/// The session's URL, with the server's name, not its address.
fn session_url(port: u16, settings: &Settings) -> Result<Url, TransportError> {
    let name = settings.security()?.server_name().to_str();
    let name = if name.contains(':') { format!("[{name}]") } else { name.into_owned() };
    let path = settings.path.strip_prefix('/').unwrap_or(&settings.path);
    Url::parse(&format!("https://{name}:{port}/{path}"))
        .map_err(|e| TransportError::with("cannot use the path", Outcome::Error, e.to_string()))
}
