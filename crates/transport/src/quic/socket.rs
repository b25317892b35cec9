//! quinn's UDP socket on tokio, with three system calls for a packet and its answer: one to wait, one to receive, one
//! to send.
//!
//! quinn's own takes two or three more. It receives until the kernel has no datagrams left; but the kernel fills a
//! batch as far as it can, so less than a full one was everything. And it is woken for room to send, that is after each
//! packet.

use crate::runtime::beside;
use quinn::udp::{RecvMeta, Transmit, UdpSocketState};
use quinn::{AsyncTimer, AsyncUdpSocket, Runtime, TokioRuntime, UdpPoller};
use std::fmt::{self, Debug, Formatter};
use std::future::Future;
use std::io::{self, ErrorKind, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Instant;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// tokio, with this module's sockets, and tasks beside the thread's work.
#[derive(Debug)]
pub(super) struct Reactor;

impl Runtime for Reactor {
    fn new_timer(&self, due: Instant) -> Pin<Box<dyn AsyncTimer>> {
        TokioRuntime.new_timer(due)
    }

    fn spawn(&self, future: Pin<Box<dyn Future<Output = ()> + Send>>) {
        beside::spawn(future);
    }

    fn wrap_udp_socket(&self, socket: UdpSocket) -> io::Result<Arc<dyn AsyncUdpSocket>> {
        let state = UdpSocketState::new((&socket).into())?;
        #[expect(
            deprecated,
            reason = "its successor is for descriptors that may close; a socket's lives as long as the socket"
        )]
        let readable = AsyncFd::with_interest(socket, Interest::READABLE)?;
        Ok(Arc::new(DatagramSocket { state, readable, is_full: AtomicBool::new(false) }))
    }

    fn now(&self) -> Instant {
        TokioRuntime.now()
    }
}

#[derive(Debug)]
struct DatagramSocket {
    state: UdpSocketState,
    readable: AsyncFd<UdpSocket>,
    /// The last datagram found no room.
    is_full: AtomicBool,
}

impl DatagramSocket {
    /// Waits for room, on a second handle: the first is not to be told of it for each packet.
    async fn wait_for_room(&self) -> io::Result<()> {
        let handle = tokio::net::UdpSocket::from_std(self.readable.get_ref().try_clone()?)?;
        handle.writable().await?;
        self.is_full.store(false, Ordering::Relaxed);
        Ok(())
    }
}

impl AsyncUdpSocket for DatagramSocket {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Box::pin(Room { socket: self, waiting: None })
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        let sent = self.state.send(self.readable.get_ref().into(), transmit);
        if sent.as_ref().is_err_and(|e| e.kind() == ErrorKind::WouldBlock) {
            self.is_full.store(true, Ordering::Relaxed);
        }
        sent
    }

    fn poll_recv(
        &self,
        context: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
        described: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        loop {
            let mut ready = ready!(self.readable.poll_read_ready(context))?;
            let received = self.state.recv(self.readable.get_ref().into(), buffers, described);
            match received {
                Err(e) if e.kind() == ErrorKind::WouldBlock => ready.clear_ready(),
                Ok(datagrams) => {
                    // The next datagram makes it ready again: tokio's epoll is edge-triggered.
                    if datagrams < buffers.len() {
                        ready.clear_ready();
                    }
                    return Poll::Ready(Ok(datagrams));
                }
                Err(e) => return Poll::Ready(Err(e)),
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.readable.get_ref().local_addr()
    }

    fn may_fragment(&self) -> bool {
        self.state.may_fragment()
    }

    fn max_transmit_segments(&self) -> usize {
        self.state.max_gso_segments()
    }

    fn max_receive_segments(&self) -> usize {
        self.state.gro_segments()
    }
}

type Waiting = Pin<Box<dyn Future<Output = io::Result<()>> + Send + Sync>>;

/// A connection waiting for room in the socket's buffer, perhaps among others.
struct Room {
    socket: Arc<DatagramSocket>,
    waiting: Option<Waiting>,
}

impl UdpPoller for Room {
    fn poll_writable(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.waiting.is_none() && !self.socket.is_full.load(Ordering::Relaxed) {
            return Poll::Ready(Ok(()));
        }
        let socket = Arc::clone(&self.socket);
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(async move { socket.wait_for_room().await }));
        let result = ready!(waiting.as_mut().poll(context));
        self.waiting = None;
        Poll::Ready(result)
    }
}

impl Debug for Room {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Room").field("socket", &self.socket).finish_non_exhaustive()
    }
}
