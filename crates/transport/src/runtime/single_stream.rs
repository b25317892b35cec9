//! A connection with one stream from end to end.

use super::handshaking::Handshaking;
use super::shared::{Role, Shared};
use crate::error::Outcome;
use crate::runtime::call::PollDone;
use crate::tcp::low_water_mark::LowWaterMark;
use crate::tcp::nonblocking::SocketHandle;
use crate::tcp::sockets::Written;
use crate::{Call, Connection, Phases, Purpose, Receiver, Sender, SocketReadback, Stream, TransportError};
use bytes::{Buf, Bytes};
use crosswind_ledger::Position;
use socket2::SockRef;
use std::future::Future;
use std::sync::Weak;
use std::task::{Context, Poll, ready};
use tokio::io::ReadBuf;

/// A protocol's work on such a connection. After a dropped call any other may follow.
pub(crate) trait Duplex: Send + 'static {
    /// Sends `message`: takes it out once it need not be given again, and flushes.
    fn poll_send(&mut self, context: &mut Context<'_>, message: &mut Option<&[u8]>) -> PollDone;

    /// Signals the end of sending.
    fn poll_finish(&mut self, context: &mut Context<'_>) -> PollDone;

    /// Receives one message; without boundaries, as many bytes as fit into `into`.
    fn poll_receive(&mut self, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> PollDone;

    /// Receives the available bytes; nothing at the orderly end.
    fn poll_receive_some(&mut self, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> PollDone;

    /// For a byte stream over TCP: the most bytes taken from the socket and not handed on. None with messages.
    const HELD_BACK: Option<u64> = None;

    fn poll_close(&mut self, context: &mut Context<'_>) -> PollDone;

    /// The work left after the orderly end.
    fn after_close(self) -> impl Future<Output = ()> + Send
    where
        Self: Sized,
    {
        std::future::ready(())
    }

    /// Drops the connection without the orderly end. Where there is a TCP socket, it is reset.
    fn abort(self)
    where
        Self: Sized,
    {
    }

    /// For a QUIC stream: its number, and the bytes written to it.
    fn written(&self) -> Option<(u64, u64)> {
        None
    }

    /// Adds known setup phases of a client's connection.
    fn add_phases(&mut self, _phases: &mut Phases) {}
}

/// The connection's carrier.
pub(crate) enum Socket {
    Tcp(SocketHandle),
    /// The socket is the endpoint's.
    Quic(SocketReadback),
}

pub(crate) struct SingleStream<T> {
    shared: Handshaking<Shared<T>>,
    socket: Socket,
    client_port: u16,
    phases: Phases,
    /// The server's stream has been handed out.
    accepted: bool,
}

impl<T: Duplex> SingleStream<T> {
    pub(crate) fn client(duplex: T, socket: Socket, client_port: u16, phases: Phases) -> Self {
        let shared = Handshaking::Done(Shared::new(duplex));
        Self { shared, socket, client_port, phases, accepted: false }
    }

    /// The server's end, before its handshakes.
    pub(crate) fn server(
        handshakes: impl Future<Output = Result<T, TransportError>> + Send + 'static,
        socket: Socket,
        client_port: u16,
    ) -> Self {
        let shared = Handshaking::new(async move { handshakes.await.map(Shared::new) });
        Self { shared, socket, client_port, phases: Phases::default(), accepted: false }
    }

    fn stream(&self, shared: &Shared<T>) -> Stream {
        let written = match &self.socket {
            Socket::Tcp(socket) => socket.written(),
            Socket::Quic(_) => Written::new(None),
        };
        let mut sender = SingleSender { shared: shared.clone(), written, on_stream: None };
        sender.note_stream(false);
        let socket = match &self.socket {
            Socket::Tcp(socket) if T::HELD_BACK.is_some() => socket.socket(),
            _ => Weak::new(),
        };
        Stream::new(sender, SingleReceiver { shared: shared.clone(), socket, mark: LowWaterMark::new() })
    }
}

impl<T: Duplex> Connection for SingleStream<T> {
    fn open(&self, _purpose: Purpose) -> Call<'_, Stream> {
        let shared = self.shared.get().ok_or_else(|| TransportError::closed("cannot open a stream"));
        Call::done(shared.map(|shared| self.stream(shared)))
    }

    fn accept(&mut self) -> Call<'_, Stream> {
        Call::new(async move {
            let shared = self.shared.done().await?;
            if std::mem::replace(&mut self.accepted, true) {
                return Err(TransportError::closed("cannot accept a stream"));
            }
            Ok(self.stream(&shared))
        })
    }

    fn phases(&self) -> Phases {
        let mut phases = self.phases;
        if let Some(shared) = self.shared.get() {
            // An ended connection has nothing to add.
            let _ = shared.with("", |duplex| {
                duplex.add_phases(&mut phases);
                Ok(())
            });
        }
        phases
    }

    fn close(&mut self) -> Call<'_, ()> {
        Call::new(async move {
            let Some(shared) = self.shared.get() else { return Ok(()) };
            let closed = shared.poll(Role::Closer, "cannot close", T::poll_close).await;
            if let Some(duplex) = shared.end(Outcome::Closed) {
                duplex.after_close().await;
            }
            match closed {
                // It was over already.
                Err(e) if e.outcome == Outcome::Closed => Ok(()),
                closed => closed,
            }
        })
    }

    fn abort(&mut self) {
        if let Socket::Tcp(socket) = &mut self.socket {
            socket.reset_on_close();
        }
        if let Some(duplex) = self.shared.take().and_then(|shared| shared.end(Outcome::Reset)) {
            duplex.abort();
        }
    }

    fn client_port(&self) -> u16 {
        self.client_port
    }

    fn readback(&self) -> Result<SocketReadback, TransportError> {
        match &self.socket {
            Socket::Tcp(socket) => socket.readback(),
            Socket::Quic(readback) => Ok(readback.clone()),
        }
    }
}

struct SingleSender<T> {
    shared: Shared<T>,
    written: Written,
    /// The last message's position, on a QUIC stream.
    on_stream: Option<Position>,
}

impl<T: Duplex> SingleSender<T> {
    async fn write(&self, message: &[u8]) -> Result<(), TransportError> {
        let mut message = Some(message);
        let write = move |duplex: &mut T, context: &mut Context<'_>| duplex.poll_send(context, &mut message);
        self.shared.poll(Role::Sender, "cannot send", write).await
    }

    /// A message, or a part of one, was written, if on a QUIC stream.
    fn note_stream(&mut self, is_part: bool) {
        let before = match self.on_stream {
            Some(Position::Stream { start: Some(start), .. }) if is_part => Some(start),
            Some(Position::Stream { end, .. }) => end,
            _ => None,
        };
        // An ended connection has no position.
        let written = self.shared.with("", |duplex| Ok(duplex.written())).ok().flatten();
        self.on_stream = written.map(|(stream, end)| Position::Stream { stream, start: before, end: Some(end) });
    }
}

impl<T: Duplex> Sender for SingleSender<T> {
    fn send<'a>(&'a mut self, message: &'a [u8]) -> Call<'a, ()> {
        Call::new(async move {
            let sent = self.write(message).await;
            self.written.note_message();
            self.note_stream(false);
            sent
        })
    }

    fn send_some<'a>(&'a mut self, part: &'a [u8]) -> Call<'a, ()> {
        Call::new(async move {
            let sent = self.write(part).await;
            self.written.note_part();
            self.note_stream(true);
            sent
        })
    }

    fn position(&self) -> Option<Position> {
        self.written.position().or(self.on_stream)
    }

    fn finish(&mut self) -> Call<'_, ()> {
        Call::new(self.shared.poll(Role::Sender, "cannot finish sending", T::poll_finish))
    }
}

struct SingleReceiver<T> {
    shared: Shared<T>,
    /// For a byte stream over TCP.
    socket: Weak<socket2::Socket>,
    mark: LowWaterMark,
}

impl<T: Duplex> SingleReceiver<T> {
    /// With so many bytes to come, the socket waits for some thousand at a time.
    fn wait_for(&mut self, to_come: u64) {
        if let (Some(socket), Some(held_back)) = (self.socket.upgrade(), T::HELD_BACK) {
            self.mark.set(&SockRef::from(&*socket), to_come.saturating_sub(held_back));
        }
    }

    fn receive_what_there_is<'a>(&'a mut self, into: &'a mut [u8]) -> Call<'a, usize> {
        let Self { shared, mark, .. } = self;
        let mut into = ReadBuf::new(into);
        Call::new(shared.poll(Role::Receiver, "cannot receive", move |duplex, context| {
            ready!(duplex.poll_receive_some(context, &mut into))?;
            mark.count(into.filled().len());
            Poll::Ready(Ok(into.filled().len()))
        }))
    }
}

impl<T: Duplex> Receiver for SingleReceiver<T> {
    fn receive<'a>(&'a mut self, into: &'a mut [u8]) -> Call<'a, usize> {
        self.wait_for(0);
        let mut into = ReadBuf::new(into);
        Call::new(self.shared.poll(Role::Receiver, "cannot receive", move |duplex, context| {
            duplex.poll_receive(context, &mut into).map_ok(|()| into.filled().len())
        }))
    }

    fn receive_some<'a>(&'a mut self, into: &'a mut [u8]) -> Call<'a, usize> {
        self.wait_for(0);
        self.receive_what_there_is(into)
    }

    fn receive_block<'a>(&'a mut self, into: &'a mut [u8], to_come: u64) -> Call<'a, usize> {
        self.wait_for(to_come);
        self.receive_what_there_is(into)
    }
}

/// Puts a whole message into a buffer, where it must fit.
pub(crate) fn put_message(message: &[u8], into: &mut ReadBuf<'_>) -> Result<(), TransportError> {
    if message.len() > into.remaining() {
        let cause = format!("a message of {} bytes is larger than was expected", message.len());
        return Err(TransportError::with("cannot receive", Outcome::TooLarge, cause));
    }
    into.put_slice(message);
    Ok(())
}

/// Receives a message and puts as much of it into a buffer as fits. Returns the rest; puts nothing at the orderly end.
pub(crate) fn poll_part(
    mut poll_message: impl FnMut() -> Poll<Result<Bytes, TransportError>>,
    into: &mut ReadBuf<'_>,
) -> Poll<Result<Bytes, TransportError>> {
    loop {
        match ready!(poll_message()) {
            // An empty message is not the end.
            Ok(message) if message.is_empty() => {}
            Ok(mut message) => {
                let length = message.len().min(into.remaining());
                into.put_slice(&message[..length]);
                message.advance(length);
                return Poll::Ready(Ok(message));
            }
            Err(e) if e.outcome == Outcome::Closed => return Poll::Ready(Ok(Bytes::new())),
            Err(e) => return Poll::Ready(Err(e)),
        }
    }
}
