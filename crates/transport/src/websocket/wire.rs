//! What WebSocket runs over, in the calls that tungstenite makes: those that say "would block".

use super::frame::Header;
use super::mask::Mask;
use crate::TransportError;
use crate::runtime::halves::{Half, both};
use crate::tcp::nonblocking;
use crate::tls::handshake;
use std::future::poll_fn;
use std::io::{self, ErrorKind, Read, Write};
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::{TlsAcceptor, TlsStream};

/// What is read at a time, unless a message has a place of its own to go to.
const INPUT: usize = 32 * 1024;
/// Then so much: what has come is unmasked while the processor's caches still have it.
const AT_ONCE: usize = 128 * 1024;
/// So much is copied and masked in one go, for the same reason.
const MASKED_AT_ONCE: usize = 16 * 1024;
/// Of what follows a request that was refused, in reads.
const MOST_UNREAD: usize = 16;

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
            Some(acceptor) => Self::Secure(Box::new(handshake::server(stream, acceptor).await?.into())),
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
        nonblocking::reset_on_drop(self.tcp());
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

/// A carrier, what is on its way through it, and the tasks to wake.
///
/// A stream remembers one task that reads and one that writes. Receiving writes too (pongs), and must not push a task that
/// waits to send out of its place: then both are woken.
///
/// tungstenite is given what it asks for, one frame at a time: what it is not given is for [`Self::take`]. And it waits with
/// what it has to say as long as somebody else's frame is open.
pub(super) struct Wire {
    carrier: Carrier,
    half: Half,
    receiving: Waker,
    sending: Waker,
    /// What came, and from and until which place it waits to be taken.
    input: Vec<u8>,
    from: usize,
    until: usize,
    /// How much of it is tungstenite's; all up to the end of a head of HTTP as long as the handshake lasts.
    given: u64,
    shaking_hands: bool,
    /// Nothing more comes, for this reason.
    ended: bool,
    trouble: Option<io::Error>,
    /// Taken, but not yet by the kernel.
    left: Vec<u8>,
    written: usize,
    /// A frame is written in part; these wait for its end.
    open: bool,
    waiting: Vec<Waker>,
}

impl Wire {
    pub(super) fn new(carrier: Carrier) -> Self {
        let nobody = || Waker::noop().clone();
        Self {
            carrier,
            half: Half::Receiving,
            receiving: nobody(),
            sending: nobody(),
            input: vec![0; INPUT],
            from: 0,
            until: 0,
            given: 0,
            shaking_hands: true,
            ended: false,
            trouble: None,
            left: Vec::new(),
            written: 0,
            open: false,
            waiting: Vec::new(),
        }
    }

    /// After HTTP, with what came since.
    pub(super) fn upgraded(carrier: Carrier, read: Vec<u8>) -> Self {
        let until = read.len();
        let mut input = read;
        input.resize(INPUT.max(until), 0);
        Self { input, until, shaking_hands: false, ..Self::new(carrier) }
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

    /// What came and nobody has taken.
    pub(super) fn input(&self) -> &[u8] {
        &self.input[self.from..self.until]
    }

    /// Waits for more of it. `false` at the end, of which tungstenite reads why.
    pub(super) fn poll_input(&mut self) -> Poll<bool> {
        if self.ended {
            return Poll::Ready(false);
        }
        if self.from == self.until {
            (self.from, self.until) = (0, 0);
        } else if self.until == self.input.len() {
            self.input.copy_within(self.from.., 0);
            (self.from, self.until) = (0, self.until - self.from);
        }
        let mut into = ReadBuf::new(&mut self.input[self.until..]);
        let result = ready!(self.carrier.poll_read(&mut Context::from_waker(&self.receiving), &mut into));
        let read = into.filled().len();
        self.until += read;
        Poll::Ready(self.came(result, read))
    }

    fn came(&mut self, result: io::Result<()>, read: usize) -> bool {
        self.trouble = result.err();
        self.ended = self.trouble.is_some() || read == 0;
        !self.ended
    }

    /// Drops the first `bytes` of the input.
    pub(super) fn skip(&mut self, bytes: usize) {
        self.from += bytes;
    }

    /// Gives tungstenite the next `bytes`.
    pub(super) fn give(&mut self, bytes: u64) {
        self.given = bytes;
    }

    /// The handshake is over.
    pub(super) fn shaken(&mut self) {
        self.shaking_hands = false;
    }

    /// It has taken all that it was given.
    pub(super) fn is_taken(&self) -> bool {
        self.given == 0
    }

    /// Takes what comes next into `into`; a lot of it without a detour. Zero at the end, of which tungstenite reads why.
    pub(super) fn poll_take(&mut self, into: &mut [u8]) -> Poll<usize> {
        if self.from == self.until {
            if self.ended {
                return Poll::Ready(0);
            }
            if into.len() >= self.input.len() {
                let part = into.len().min(AT_ONCE);
                let mut into = ReadBuf::new(&mut into[..part]);
                let result = ready!(self.carrier.poll_read(&mut Context::from_waker(&self.receiving), &mut into));
                let read = into.filled().len();
                self.came(result, read);
                return Poll::Ready(read);
            }
            if !ready!(self.poll_input()) {
                return Poll::Ready(0);
            }
        }
        let taken = self.input().len().min(into.len());
        into[..taken].copy_from_slice(&self.input()[..taken]);
        self.from += taken;
        Poll::Ready(taken)
    }

    /// Somebody's frame has not been written whole: others wait, and are woken.
    pub(super) fn is_open(&mut self) -> bool {
        if self.open {
            let waker = match self.half {
                Half::Receiving => &self.receiving,
                Half::Sending => &self.sending,
            };
            if !self.waiting.iter().any(|waiting| waiting.will_wake(waker)) {
                self.waiting.push(waker.clone());
            }
        }
        self.open
    }

    /// Begins a frame. What was taken before must have left.
    pub(super) fn open(&mut self) {
        self.open = true;
    }

    /// The frame that was begun is whole.
    pub(super) fn close(&mut self) {
        self.open = false;
        self.waiting.drain(..).for_each(Waker::wake);
    }

    /// Takes a part of a frame, masked where it has to be; `masked` bytes of it were before.
    pub(super) fn stage(&mut self, bytes: &[u8], mask: Option<Mask>, masked: usize) {
        for (number, part) in bytes.chunks(MASKED_AT_ONCE).enumerate() {
            let start = self.left.len();
            self.left.extend_from_slice(part);
            if let Some(mask) = mask {
                mask.apply(&mut self.left[start..], masked + number * MASKED_AT_ONCE);
            }
        }
    }

    /// Takes a header.
    pub(super) fn stage_header(&mut self, header: &Header) {
        header.write(&mut self.left);
    }

    /// Writes as it is, after what was taken.
    pub(super) fn poll_put(&mut self, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let writer = self.writer();
        let mut context = Context::from_waker(&writer);
        ready!(self.poll_write_left(&mut context))?;
        match ready!(self.carrier.poll_write(&mut context, bytes))? {
            0 => Poll::Ready(Err(ErrorKind::WriteZero.into())),
            n => Poll::Ready(Ok(n)),
        }
    }

    /// Says that nothing more will be sent, in TLS and in TCP.
    pub(super) fn poll_shutdown(&mut self) -> Poll<io::Result<()>> {
        if self.is_open() {
            return Poll::Pending;
        }
        let writer = self.writer();
        let mut context = Context::from_waker(&writer);
        ready!(self.poll_write_left(&mut context))?;
        self.carrier.poll_shutdown(&mut context)
    }

    /// Answers a request for something else than WebSocket, and ends.
    pub(super) async fn refuse(&mut self, answer: &str) {
        self.left.extend_from_slice(answer.as_bytes());
        let ended = poll_fn(|context| {
            self.set_task(Half::Receiving, context);
            self.poll_shutdown()
        });
        if ended.await.is_ok() {
            // What came meanwhile, unread, would make the kernel take the answer back.
            for _ in 0..MOST_UNREAD {
                self.skip(self.input().len());
                if !matches!(self.poll_input(), Poll::Ready(true)) {
                    break;
                }
            }
        }
    }

    /// Sends what was taken.
    pub(super) fn poll_left(&mut self) -> Poll<io::Result<()>> {
        let writer = self.writer();
        self.poll_write_left(&mut Context::from_waker(&writer))
    }

    fn writer(&self) -> Waker {
        match self.half {
            Half::Sending => self.sending.clone(),
            Half::Receiving => both(&self.receiving, &self.sending),
        }
    }

    fn poll_write_left(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
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

/// How much of `input` comes before what may follow a head of HTTP. The last line waits for the next, which may be empty.
fn head_part(input: &[u8]) -> usize {
    let mut last = input.len();
    for (place, _) in input.iter().enumerate().filter(|(_, byte)| **byte == b'\n') {
        match input[place + 1..] {
            [b'\n', ..] => return place + 2,
            [b'\r', b'\n', ..] => return place + 3,
            _ => last = place,
        }
    }
    last
}

fn blocking<T>(polled: Poll<io::Result<T>>) -> io::Result<T> {
    match polled {
        Poll::Ready(result) => result,
        Poll::Pending => Err(ErrorKind::WouldBlock.into()),
    }
}

impl Read for Wire {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.shaking_hands && self.given == 0 {
            self.given = head_part(self.input()) as u64;
            if self.given == 0 && !blocking(self.poll_input().map(Ok))? {
                self.given = self.input().len() as u64;
                break;
            }
        }
        if self.given == 0 {
            return match self.trouble.take() {
                Some(e) => Err(e),
                None if self.ended => Ok(0),
                None => Err(ErrorKind::WouldBlock.into()),
            };
        }
        let most = into.len().min(usize::try_from(self.given).unwrap_or(usize::MAX));
        let read = blocking(self.poll_take(&mut into[..most]).map(Ok))?;
        self.given -= read as u64;
        match self.trouble.take() {
            Some(e) if read == 0 => Err(e),
            trouble => {
                self.trouble = trouble;
                Ok(read)
            }
        }
    }
}

impl Write for Wire {
    /// Takes all or nothing.
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        if self.is_open() {
            return Err(ErrorKind::WouldBlock.into());
        }
        let writer = self.writer();
        let mut context = Context::from_waker(&writer);
        blocking(self.poll_write_left(&mut context))?;
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
        if self.is_open() {
            return Err(ErrorKind::WouldBlock.into());
        }
        if self.left.is_empty() && matches!(self.carrier, Carrier::Plain(_)) {
            return Ok(());
        }
        let writer = self.writer();
        let mut context = Context::from_waker(&writer);
        blocking(self.poll_write_left(&mut context))?;
        blocking(self.carrier.poll_flush(&mut context))
    }
}
