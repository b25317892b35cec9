//! TLS 1.3 handshakes (RFC 8446) over TCP, and their errors as outcomes.

use crate::error::{Outcome, TransportError};
use crate::security::{self, Resumption};
use crate::settings::Settings;
use rustls::HandshakeKind;
use std::io;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::{TlsAcceptor, TlsConnector, client, server};

/// A client's stream, and the result of resumption.
pub(crate) struct Secured<T> {
    pub(crate) stream: client::TlsStream<T>,
    /// A session was resumed. Not known yet while the handshake is left to the first write.
    pub(crate) resumed: bool,
}

/// The client's end, once the server's certificate was accepted. It offers `protocols` (ALPN).
pub(crate) async fn client<T: AsyncRead + AsyncWrite + Unpin>(
    stream: T,
    settings: &Settings,
    protocols: &[&[u8]],
) -> Result<Secured<T>, TransportError> {
    connect(stream, settings, protocols, without_early_data(settings.resumption)).await
}

/// The same. With [`Resumption::EarlyData`], if allowed, the handshake is left to the first write and flush.
pub(crate) async fn client_early(
    stream: TcpStream,
    settings: &Settings,
    protocols: &[&[u8]],
) -> Result<Secured<TcpStream>, TransportError> {
    connect(stream, settings, protocols, settings.resumption).await
}

async fn connect<T: AsyncRead + AsyncWrite + Unpin>(
    stream: T,
    settings: &Settings,
    protocols: &[&[u8]],
    resumption: Resumption,
) -> Result<Secured<T>, TransportError> {
    let security = settings.security()?;
    let config = security.client(protocols, resumption)?;
    let connector = TlsConnector::from(config).early_data(resumption == Resumption::EarlyData);
    let stream =
        connector.connect(security.server_name().clone(), stream).await.map_err(failed("cannot agree on TLS"))?;
    let resumed = stream.get_ref().1.handshake_kind() == Some(HandshakeKind::Resumed);
    Ok(Secured { stream, resumed })
}

/// Accepts clients. All connections of a server share it, because it holds their sessions.
pub(crate) fn acceptor(settings: &Settings, protocols: &[&[u8]]) -> Result<TlsAcceptor, TransportError> {
    let config = settings.security()?.server(protocols, without_early_data(settings.resumption), false)?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// The server's end, once the client has finished its handshake.
pub(crate) async fn server<T: AsyncRead + AsyncWrite + Unpin>(
    stream: T,
    acceptor: &TlsAcceptor,
) -> Result<server::TlsStream<T>, TransportError> {
    acceptor.accept(stream).await.map_err(failed("cannot agree on TLS"))
}

/// For protocols over TLS without a use for early data.
const fn without_early_data(resumption: Resumption) -> Resumption {
    match resumption {
        Resumption::None => Resumption::None,
        Resumption::Session | Resumption::EarlyData => Resumption::Session,
    }
}

/// For `map_err`: an error from TLS or the kernel below it.
pub(crate) fn failed(what: &'static str) -> impl Fn(io::Error) -> TransportError {
    move |cause| error(what, &cause)
}

/// An error from TLS or the kernel below it.
pub(crate) fn error(what: &'static str, cause: &io::Error) -> TransportError {
    let tls = cause.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match tls {
        Some(tls) => TransportError::with(what, security::outcome(tls), tls.to_string()),
        None if cause.kind() == io::ErrorKind::InvalidData => {
            TransportError::with(what, Outcome::Protocol, cause.to_string())
        }
        None => TransportError::new(what, cause),
    }
}
