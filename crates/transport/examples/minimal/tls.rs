//! tls: tokio-rustls.

use crate::security::Security;
use crate::{Result, Times, within};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::{TlsAcceptor, TlsConnector, client};

const PROTOCOL: &[u8] = b"crosswind";

pub(crate) async fn accept(listener: &TcpListener) -> Result<TcpStream> {
    let (stream, _) = listener.accept().await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

pub(crate) async fn connect(address: SocketAddr) -> Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

pub(crate) fn acceptor(security: &Security, protocol: &[u8]) -> Result<TlsAcceptor> {
    Ok(TlsAcceptor::from(Arc::new(security.server(protocol)?)))
}

pub(crate) async fn connect_secure(
    address: SocketAddr,
    security: &Security,
    protocol: &[u8],
) -> Result<client::TlsStream<TcpStream>> {
    let connector = TlsConnector::from(Arc::new(security.client(protocol)?));
    Ok(connector.connect(Security::name()?, connect(address).await?).await?)
}

pub(crate) async fn serve(address: SocketAddr, security: &Security) -> Result<()> {
    let (listener, acceptor) = (TcpListener::bind(address).await?, acceptor(security, PROTOCOL)?);
    loop {
        let (stream, acceptor) = (accept(&listener).await?, acceptor.clone());
        tokio::spawn(async move {
            let mut stream = acceptor.accept(stream).await?;
            let mut message = [0];
            while stream.read(&mut message).await? > 0 {
                stream.write_all(&message).await?;
                stream.flush().await?;
            }
            Result::Ok(())
        });
    }
}

pub(crate) async fn echo(address: SocketAddr, security: &Security, times: &mut Times) -> Result<()> {
    let mut stream = connect_secure(address, security, PROTOCOL).await?;
    let mut reply = [0];
    for message in times.messages() {
        let sent = Instant::now();
        let exchange = async {
            stream.write_all(&message).await?;
            stream.flush().await?;
            Ok(stream.read_exact(&mut reply).await?)
        };
        within(exchange).await?;
        times.received(sent, &reply, &message)?;
    }
    Ok(())
}
