//! What WebSocket runs over, in the calls that tungstenite makes: those that say "would block".

use crate::halves::{Half, both};
use crate::{TransportError, secure, tcp_stream};
use std::io::{self, ErrorKind, Read, Write};
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::{TlsAcceptor, TlsStream};

/// TCP, or TLS over it.
pub(crate) enum Carrier {
    Plain(TcpStream),
    Secure(Box<TlsStream<TcpStream>>),
}

impl Carrier {
    /// At the server: with the TLS handshake, if there is to be one.
    pub(crate) async fn accept(stream: TcpStream, acceptor: Option<&TlsAcceptor>) -> Result<Self, TransportError> {
        Ok(match acceptor {
            None => Self::Plain(stream),
            Some(acceptor) => Self::Secure(Box::new(secure::server(stream, acceptor).await?.into())),
        })
    }

    pub(crate) fn tcp(&self) -> &TcpStream {
        match self {
            Self::Plain(stream) => stream,
            Self::Secure(stream) => stream.get_ref().0,
        }
    }

    /// Drops it, and the connection with it, without the orderly end.
    pub(crate) fn reset(self) {
        tcp_stream::reset_on_drop(self.tcp());
    }

    fn poll_read(&mut self, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Plain(stream) => Pin::new(stream).poll_read(context, into),
            Self::Secure(stream) => Pin::new(stream).poll_read(context, into),
        }
    }

    fn poll_write(&mut self, context: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        match self {
            Self::Plain(stream) => Pin::new(stream).poll_write(context, data),
            Self::Secure(stream) => Pin::new(stream).poll_write(context, data),
        }
    }

    fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Plain(_) => Poll::Ready(Ok(())),
            Self::Secure(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Secure(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}

/// A carrier, and the tasks to wake.
///
/// A stream remembers one task that reads and one that writes. Receiving writes too (pongs), and must not push a task that
/// waits to send out of its place: then both are woken.
pub(super) struct Wire {
    carrier: Carrier,
    half: Half,
    receiving: Waker,
    sending: Waker,
    /// Taken from tungstenite, but not yet by the kernel. tungstenite would move its whole buffer after every part.
    left: Vec<u8>,
    written: usize,
}

impl Wire {
    pub(super) fn new(carrier: Carrier) -> Self {
        let nobody = || Waker::noop().clone();
        Self { carrier, half: Half::Receiving, receiving: nobody(), sending: nobody(), left: Vec::new(), written: 0 }
    }

    pub(super) fn carrier(&self) -> &Carrier {
        &self.carrier
    }

    pub(super) fn into_carrier(self) -> Carrier {
        self.carrier
    }

    /// Says whose calls are to follow.
    pub(super) fn set_task(&mut self, half: Half, context: &Context<'_>) {
        self.half = half;
        match half {
            Half::Receiving => self.receiving.clone_from(context.waker()),
            Half::Sending => self.sending.clone_from(context.waker()),
        }
    }

    /// Says that nothing more will be sent, in TLS and in TCP.
    pub(super) fn poll_shutdown(&mut self) -> Poll<io::Result<()>> {
        let writer = self.writer();
        let mut context = Context::from_waker(&writer);
        ready!(self.poll_left(&mut context))?;
        self.carrier.poll_shutdown(&mut context)
    }

    fn writer(&self) -> Waker {
        match self.half {
            Half::Sending => self.sending.clone(),
            Half::Receiving => both(&self.receiving, &self.sending),
        }
    }

    fn poll_left(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.written < self.left.len() {
            match ready!(self.carrier.poll_write(context, &self.left[self.written..]))? {
                0 => return Poll::Ready(Err(ErrorKind::WriteZero.into())),
                n => self.written += n,
            }
        }
        self.left.clear();
        self.written = 0;
        Poll::Ready(Ok(()))
    }
}

fn blocking<T>(polled: Poll<io::Result<T>>) -> io::Result<T> {
    match polled {
        Poll::Ready(result) => result,
        Poll::Pending => Err(ErrorKind::WouldBlock.into()),
    }
}

impl Read for Wire {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut into = ReadBuf::new(into);
        blocking(self.carrier.poll_read(&mut Context::from_waker(&self.receiving), &mut into))?;
        Ok(into.filled().len())
    }
}

impl Write for Wire {
    /// Takes all or nothing.
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let writer = self.writer();
        let mut context = Context::from_waker(&writer);
        blocking(self.poll_left(&mut context))?;
        let mut written = 0;
        while written < data.len() {
            match self.carrier.poll_write(&mut context, &data[written..]) {
                Poll::Ready(Ok(0)) => return Err(ErrorKind::WriteZero.into()),
                Poll::Ready(n) => written += n?,
                Poll::Pending => {
                    self.left.extend_from_slice(&data[written..]);
                    break;
                }
            }
        }
        Ok(data.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.left.is_empty() && matches!(self.carrier, Carrier::Plain(_)) {
            return Ok(());
        }
        let writer = self.writer();
        let mut context = Context::from_waker(&writer);
        blocking(self.poll_left(&mut context))?;
        blocking(self.carrier.poll_flush(&mut context))
    }
}
