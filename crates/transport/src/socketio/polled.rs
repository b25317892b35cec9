//! A session that the client polls by HTTP, at the server: what came and what is to go waits here.

use crate::TransportError;
use crate::error::Outcome;
use crate::runtime::halves::Half;
use crate::settings::SocketReadback;
use crate::websocket::Socket;
use crosswind_socketio::{Handshake, Kind as MessageKind, MessageDecoder, Packet, Payload};
use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio::time::{Sleep, sleep, timeout};

/// What waits one way, bytes, before whoever brings more has to wait.
const MOST_WAITING: usize = 1 << 20;
/// How long the end of a session may take.
const CLOSING: Duration = Duration::from_secs(1);

/// The sessions that poll, by id.
#[derive(Default)]
pub(super) struct Polling(pub(super) Mutex<HashMap<String, Arc<Polled>>>);

impl Polling {
    /// That session is not polled any more.
    pub(super) fn forget(&self, sid: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(sid);
    }
}

/// A session that is polled.
pub(super) struct Polled {
    pub(super) handshake: Handshake,
    pub(super) socket_sid: String,
    state: Mutex<State>,
    /// For requests that wait.
    changed: Notify,
}

struct State {
    joined: bool,
    /// What the client said.
    inbox: VecDeque<Payload>,
    inbox_bytes: usize,
    /// What it is to be told.
    outbox: Vec<Payload>,
    outbox_bytes: usize,
    place: Place,
    /// Where the client has moved, if somebody has the session.
    socket: Option<Socket>,
    /// Somebody has the session, who keeps its heartbeat.
    taken: bool,
    closed: bool,
    receiver: Option<Waker>,
    sender: Option<Waker>,
    seen: Instant,
}

/// Where the client is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Polling,
    /// About to move: what waits is sent away.
    Moving,
    Moved,
}

/// What a request brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Brought {
    /// Nothing that somebody need look at.
    Nothing,
    /// The first message of a session that nobody has yet.
    First,
    /// Something that must not come now, or nonsense.
    Wrong,
}

impl Polled {
    pub(super) fn new(handshake: Handshake, socket_sid: String) -> Self {
        let state = State {
            joined: false,
            inbox: VecDeque::new(),
            inbox_bytes: 0,
            outbox: Vec::new(),
            outbox_bytes: 0,
            place: Place::Polling,
            socket: None,
            taken: false,
            closed: false,
            receiver: None,
            sender: None,
            seen: Instant::now(),
        };
        Self { handshake, socket_sid, state: Mutex::new(state), changed: Notify::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nobody has asked for anything for that long.
    pub(super) fn is_forgotten(&self, after: Duration) -> bool {
        self.lock().seen.elapsed() >= after
    }

    /// Waits until there is something to tell, or no reason to wait; within the time after which the client wants to hear
    /// something.
    pub(super) async fn told(&self) -> Vec<Payload> {
        let patience = Duration::from_millis(self.handshake.ping_interval_ms);
        loop {
            let changed = self.changed.notified();
            {
                let mut state = self.lock();
                state.seen = Instant::now();
                if !state.outbox.is_empty() {
                    state.outbox_bytes = 0;
                    wake(&mut state.sender);
                    return std::mem::take(&mut state.outbox);
                }
                if state.place != Place::Polling || state.closed {
                    return vec![Packet::Noop.to_payload()];
                }
            }
            if timeout(patience, changed).await.is_err() {
                let packet = if self.lock().taken { Packet::Noop } else { Packet::Ping("") };
                return vec![packet.to_payload()];
            }
        }
    }

    /// Takes what the client said, once there is room for it.
    pub(super) async fn take(&self, payloads: Vec<Payload>) -> Brought {
        loop {
            let changed = self.changed.notified();
            {
                let mut state = self.lock();
                state.seen = Instant::now();
                if state.closed {
                    return Brought::Wrong;
                }
                if state.inbox_bytes <= MOST_WAITING {
                    let right = payloads.into_iter().all(|payload| state.take(payload, &self.socket_sid));
                    wake(&mut state.receiver);
                    self.changed.notify_waiters();
                    let first = !state.inbox.is_empty() && !state.taken && state.place == Place::Polling;
                    state.taken |= right && first;
                    return match (right, first) {
                        (false, _) => Brought::Wrong,
                        (true, true) => Brought::First,
                        (true, false) => Brought::Nothing,
                    };
                }
                // Nobody would make room.
                if !state.taken {
                    return Brought::Wrong;
                }
            }
            changed.await;
        }
    }

    /// The client is about to move to a WebSocket.
    pub(super) fn begin_move(&self) {
        self.lock().place = Place::Moving;
        self.changed.notify_waiters();
    }

    /// It did not.
    pub(super) fn give_up_move(&self) {
        let mut state = self.lock();
        if state.place == Place::Moving {
            state.place = Place::Polling;
        }
    }

    /// It has moved, for the first time. Gives the socket back, with what was said and is to be said, if nobody has the session.
    pub(super) fn finish_move(&self, socket: Socket) -> Result<Option<Unclaimed>, TransportError> {
        let mut state = self.lock();
        if std::mem::replace(&mut state.place, Place::Moved) == Place::Moved {
            let cause = "the session has moved before";
            return Err(TransportError::with("cannot move a session to WebSocket", Outcome::Protocol, cause));
        }
        if state.taken {
            state.socket = Some(socket);
            wake(&mut state.receiver);
            return Ok(None);
        }
        let (inbox, outbox) = (std::mem::take(&mut state.inbox).into(), std::mem::take(&mut state.outbox));
        Ok(Some(Unclaimed { socket, joined: state.joined, inbox, outbox }))
    }

    fn close(&self) -> MutexGuard<'_, State> {
        let mut state = self.lock();
        state.closed = true;
        wake(&mut state.receiver);
        self.changed.notify_waiters();
        state
    }
}

/// A session that moved before anybody had it.
pub(super) struct Unclaimed {
    pub(super) socket: Socket,
    pub(super) joined: bool,
    pub(super) inbox: Vec<Payload>,
    pub(super) outbox: Vec<Payload>,
}

impl State {
    /// Takes a packet; says whether it may come now.
    fn take(&mut self, payload: Payload, socket_sid: &str) -> bool {
        match Packet::parse(&payload) {
            Ok(Packet::Message(message)) if !self.joined => {
                let message = MessageDecoder::default().handle_text(message);
                if !matches!(message, Ok(Some(message)) if message.kind == MessageKind::Connect && message.namespace == "/")
                {
                    return false;
                }
                self.joined = true;
                self.outbox.push(Payload::Text(format!("40{{\"sid\":\"{socket_sid}\"}}")));
                true
            }
            Ok(Packet::Close) if !self.taken => {
                self.closed = true;
                true
            }
            Ok(Packet::Message(_) | Packet::Binary(_)) if self.joined => self.keep(payload),
            Ok(Packet::Pong(_) | Packet::Close) if self.taken => self.keep(payload),
            Ok(Packet::Pong(_) | Packet::Noop) => true,
            _ => false,
        }
    }

    fn keep(&mut self, payload: Payload) -> bool {
        self.inbox_bytes += payload.as_bytes().len();
        self.inbox.push_back(payload);
        true
    }
}

fn wake(waiting: &mut Option<Waker>) {
    if let Some(waker) = waiting.take() {
        waker.wake();
    }
}

/// What carries the payloads of a session that is polled, until it moves.
pub(super) struct Requests {
    polled: Arc<Polled>,
    all: Arc<Polling>,
    /// Of the connection that brought the first message.
    pub(super) readback: SocketReadback,
    closing: Option<Pin<Box<Sleep>>>,
}

impl Requests {
    pub(super) fn new(polled: Arc<Polled>, all: Arc<Polling>, readback: SocketReadback) -> Self {
        Self { polled, all, readback, closing: None }
    }

    pub(super) fn queue(&mut self, payload: &Payload) -> Result<(), TransportError> {
        let mut state = self.polled.lock();
        if state.closed {
            return Err(TransportError::closed("cannot send"));
        }
        state.outbox_bytes += payload.as_bytes().len();
        state.outbox.push(payload.clone());
        self.polled.changed.notify_waiters();
        Ok(())
    }

    pub(super) fn poll_flush(&mut self, half: Half, context: &Context<'_>) -> Poll<Result<(), TransportError>> {
        let mut state = self.polled.lock();
        if half == Half::Receiving || state.closed || state.outbox_bytes <= MOST_WAITING {
            return Poll::Ready(Ok(()));
        }
        state.sender = Some(context.waker().clone());
        Poll::Pending
    }

    pub(super) fn poll_payload(&mut self, context: &Context<'_>) -> Poll<Result<Next, TransportError>> {
        let mut state = self.polled.lock();
        if let Some(payload) = state.inbox.pop_front() {
            state.inbox_bytes -= payload.as_bytes().len();
            self.polled.changed.notify_waiters();
            return Poll::Ready(Ok(Next::Payload(payload)));
        }
        if let Some(socket) = state.socket.take() {
            wake(&mut state.sender);
            let outbox = std::mem::take(&mut state.outbox);
            return Poll::Ready(Ok(Next::Moved(Box::new(socket), outbox)));
        }
        if state.closed {
            return Poll::Ready(Err(TransportError::closed("cannot receive")));
        }
        state.receiver = Some(context.waker().clone());
        Poll::Pending
    }

    pub(super) fn finish(&self) {
        drop(self.polled.close());
    }

    /// Waits a little for the client to ask for what it is to be told.
    pub(super) fn poll_close(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.polled.close();
        if state.outbox.is_empty() {
            return Poll::Ready(());
        }
        state.sender = Some(context.waker().clone());
        self.closing.get_or_insert_with(|| Box::pin(sleep(CLOSING))).as_mut().poll(context)
    }
}

impl Drop for Requests {
    fn drop(&mut self) {
        drop(self.polled.close());
        self.all.forget(&self.polled.handshake.sid);
    }
}

/// What comes next of a session that is polled.
pub(super) enum Next {
    Payload(Payload),
    /// It has moved; this is to be sent there.
    Moved(Box<Socket>, Vec<Payload>),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn polled() -> Polled {
        let handshake = Handshake {
            sid: "a".to_owned(),
            upgrades: Vec::new(),
            ping_interval_ms: 1,
            ping_timeout_ms: 1,
            max_payload_bytes: 1,
        };
        Polled::new(handshake, "b".to_owned())
    }

    fn packets(texts: &[&str]) -> Vec<Payload> {
        texts.iter().map(|&text| text.into()).collect()
    }

    #[tokio::test]
    async fn who_waits_long_is_pinged() {
        assert_eq!(polled().told().await, packets(&["2"]));
    }

    #[tokio::test]
    async fn the_first_message_begins_a_session() {
        let polled = polled();
        assert_eq!(polled.take(packets(&["42[\"m\",\"a\"]"])).await, Brought::Wrong);
        assert_eq!(polled.take(packets(&["40"])).await, Brought::Nothing);
        assert_eq!(polled.told().await, packets(&["40{\"sid\":\"b\"}"]));
        assert_eq!(polled.take(packets(&["3"])).await, Brought::Nothing);
        assert_eq!(polled.take(packets(&["42[\"m\",\"a\"]"])).await, Brought::First);
        assert_eq!(polled.take(packets(&["42[\"m\",\"b\"]"])).await, Brought::Nothing);
    }

    #[tokio::test]
    async fn nobody_fills_a_session_that_nobody_has() {
        let polled = polled();
        polled.take(packets(&["40"])).await;
        polled.begin_move();
        let long = format!("4{}", "x".repeat(MOST_WAITING));
        assert_eq!(polled.take(packets(&[&long])).await, Brought::Nothing);
        assert_eq!(polled.take(packets(&["4x"])).await, Brought::Wrong);
    }
}
