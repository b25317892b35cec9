//! A server's session by HTTP long polling: received payloads, and those waiting to be fetched.

use crate::TransportError;
use crate::error::Outcome;
use crate::runtime::call::PollDone;
use crate::websocket::Socket;
use crosswind_socketio::{Handshake, MessageDecoder, MessageKind, Packet, Payload};
use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio::time::{Sleep, sleep, timeout};

/// A direction's buffer, bytes, before adding more has to wait.
const BUFFER_SIZE: usize = 1 << 20;
/// The time limit for ending a session.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

#[derive(Default)]
pub(super) struct PollingSessions(pub(super) Mutex<HashMap<String, Arc<PollingSession>>>);

impl PollingSessions {
    /// The session stops polling.
    pub(super) fn remove(&self, sid: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(sid);
    }
}

pub(super) struct PollingSession {
    pub(super) handshake: Handshake,
    pub(super) socket_sid: String,
    state: Mutex<State>,
    /// Wakes the waiting requests.
    changed: Notify,
}

struct State {
    /// The client has joined the namespace.
    joined: bool,
    received: VecDeque<Payload>,
    received_bytes: usize,
    unsent: Vec<Payload>,
    unsent_bytes: usize,
    place: Place,
    /// The client's new socket, for the session's connection.
    socket: Option<Box<Socket>>,
    /// The session belongs to a connection, which keeps its heartbeat.
    claimed: bool,
    closed: bool,
    receiver: Option<Waker>,
    sender: Option<Waker>,
    last_request: Instant,
}

/// Where the client is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Polling,
    /// About to move to a WebSocket: its waiting requests are answered.
    Moving,
    Moved,
}

/// The result of a client's post.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Posted {
    Accepted,
    /// They brought the session's first message: the session belongs to their connection.
    Claims,
    /// Not at this time, or never.
    Rejected,
}

impl PollingSession {
    pub(super) fn new(handshake: Handshake, socket_sid: String) -> Self {
        let state = State {
            joined: false,
            received: VecDeque::new(),
            received_bytes: 0,
            unsent: Vec::new(),
            unsent_bytes: 0,
            place: Place::Polling,
            socket: None,
            claimed: false,
            closed: false,
            receiver: None,
            sender: None,
            last_request: Instant::now(),
        };
        Self { handshake, socket_sid, state: Mutex::new(state), changed: Notify::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// There has been no request for this long.
    pub(super) fn is_idle(&self, after: Duration) -> bool {
        self.lock().last_request.elapsed() >= after
    }

    /// Waits for payloads to fetch, for a reason not to wait, or until the client expects a sign of life.
    pub(super) async fn fetch(&self) -> Vec<Payload> {
        let longest_wait = Duration::from_millis(self.handshake.ping_interval_ms);
        loop {
            let changed = self.changed.notified();
            {
                let mut state = self.lock();
                state.last_request = Instant::now();
                if !state.unsent.is_empty() {
                    state.unsent_bytes = 0;
                    wake(&mut state.sender);
                    return std::mem::take(&mut state.unsent);
                }
                if state.place != Place::Polling || state.closed {
                    return vec![Packet::Noop.to_payload()];
                }
            }
            if timeout(longest_wait, changed).await.is_err() {
                let packet = if self.lock().claimed { Packet::Noop } else { Packet::Ping("") };
                return vec![packet.to_payload()];
            }
        }
    }

    /// Takes a client's posted payloads, once the buffer has space for them.
    pub(super) async fn post(&self, payloads: Vec<Payload>) -> Posted {
        loop {
            let changed = self.changed.notified();
            {
                let mut state = self.lock();
                state.last_request = Instant::now();
                if state.closed {
                    return Posted::Rejected;
                }
                if state.received_bytes <= BUFFER_SIZE {
                    let accepted = payloads.into_iter().all(|payload| state.accept(payload, &self.socket_sid));
                    wake(&mut state.receiver);
                    self.changed.notify_waiters();
                    let claims = !state.received.is_empty() && !state.claimed && state.place == Place::Polling;
                    state.claimed |= accepted && claims;
                    return match (accepted, claims) {
                        (false, _) => Posted::Rejected,
                        (true, true) => Posted::Claims,
                        (true, false) => Posted::Accepted,
                    };
                }
                // Nobody empties the buffer.
                if !state.claimed {
                    return Posted::Rejected;
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

    /// The client has not moved. Says whether it has sent its first message meanwhile: then the session belongs to the caller's
    /// connection from now on.
    pub(super) fn cancel_move(&self) -> bool {
        let mut state = self.lock();
        if state.place == Place::Moving {
            state.place = Place::Polling;
        }
        let claims = state.place == Place::Polling && !state.claimed && !state.received.is_empty();
        state.claimed |= claims;
        claims
    }

    /// The client has moved, for the first time. A session without a connection yet is given back, with its socket.
    pub(super) fn finish_move(&self, socket: Socket) -> Result<Option<Unclaimed>, TransportError> {
        let mut state = self.lock();
        if std::mem::replace(&mut state.place, Place::Moved) == Place::Moved {
            let cause = "the session has moved before";
            return Err(TransportError::with("cannot move a session to WebSocket", Outcome::Protocol, cause));
        }
        let socket = Box::new(socket);
        if state.claimed {
            state.socket = Some(socket);
            wake(&mut state.receiver);
            wake(&mut state.sender);
            return Ok(None);
        }
        // Nobody would see later posts.
        state.closed = true;
        Ok(Some(Unclaimed { joined: state.joined, moved: state.take_moved(socket) }))
    }

    fn close(&self) -> MutexGuard<'_, State> {
        let mut state = self.lock();
        state.closed = true;
        wake(&mut state.receiver);
        self.changed.notify_waiters();
        state
    }
}

/// A session moved to a WebSocket.
pub(super) struct Moved {
    pub(super) socket: Box<Socket>,
    /// Its client's posts, unseen so far.
    pub(super) received: Vec<Payload>,
    /// Payloads its client has not fetched: sent over the WebSocket, before anything else.
    pub(super) unsent: Vec<Payload>,
}

/// One that moved before it belonged to a connection.
pub(super) struct Unclaimed {
    pub(super) joined: bool,
    pub(super) moved: Moved,
}

impl State {
    fn take_moved(&mut self, socket: Box<Socket>) -> Moved {
        let (received, unsent) = (std::mem::take(&mut self.received).into(), std::mem::take(&mut self.unsent));
        Moved { socket, received, unsent }
    }

    /// Takes a packet, if the client may send it now.
    fn accept(&mut self, payload: Payload, socket_sid: &str) -> bool {
        match Packet::parse(&payload) {
            Ok(Packet::Message(message)) if !self.joined => {
                let message = MessageDecoder::default().handle_text(message);
                if !matches!(message, Ok(Some(message)) if message.kind == MessageKind::Connect && message.namespace == "/")
                {
                    return false;
                }
                self.joined = true;
                self.unsent.push(Payload::Text(format!("40{{\"sid\":\"{socket_sid}\"}}")));
                true
            }
            Ok(Packet::Close) if !self.claimed => {
                self.closed = true;
                true
            }
            Ok(Packet::Message(_) | Packet::Binary(_)) if self.joined => self.keep(payload),
            Ok(Packet::Pong(_) | Packet::Close) if self.claimed => self.keep(payload),
            Ok(Packet::Pong(_) | Packet::Noop) => true,
            _ => false,
        }
    }

    fn keep(&mut self, payload: Payload) -> bool {
        self.received_bytes += payload.as_bytes().len();
        self.received.push_back(payload);
        true
    }
}

fn wake(waiting: &mut Option<Waker>) {
    if let Some(waker) = waiting.take() {
        waker.wake();
    }
}

/// Carries a polling session's payloads, until it moves.
pub(super) struct PollingPipe {
    session: Arc<PollingSession>,
    sessions: Arc<PollingSessions>,
    closing: Option<Pin<Box<Sleep>>>,
}

impl PollingPipe {
    pub(super) fn new(session: Arc<PollingSession>, sessions: Arc<PollingSessions>) -> Self {
        Self { session, sessions, closing: None }
    }

    pub(super) fn start_send(&mut self, payload: Payload) -> Result<(), TransportError> {
        let mut state = self.session.lock();
        if state.closed {
            return Err(TransportError::closed("cannot send"));
        }
        state.unsent_bytes += payload.as_bytes().len();
        state.unsent.push(payload);
        self.session.changed.notify_waiters();
        Ok(())
    }

    pub(super) fn poll_flush(&mut self, context: &Context<'_>) -> PollDone {
        let mut state = self.session.lock();
        if state.closed || state.unsent_bytes <= BUFFER_SIZE {
            return Poll::Ready(Ok(()));
        }
        state.sender = Some(context.waker().clone());
        Poll::Pending
    }

    /// The moved session, once.
    pub(super) fn take_moved(&mut self) -> Option<Moved> {
        let mut state = self.session.lock();
        let socket = state.socket.take()?;
        Some(state.take_moved(socket))
    }

    pub(super) fn poll_payload(&mut self, context: &Context<'_>) -> Poll<Result<Payload, TransportError>> {
        let mut state = self.session.lock();
        if let Some(payload) = state.received.pop_front() {
            state.received_bytes -= payload.as_bytes().len();
            self.session.changed.notify_waiters();
            return Poll::Ready(Ok(payload));
        }
        if state.closed {
            return Poll::Ready(Err(TransportError::closed("cannot receive")));
        }
        state.receiver = Some(context.waker().clone());
        Poll::Pending
    }

    pub(super) fn finish(&self) {
        drop(self.session.close());
    }

    /// Waits a little for the client to fetch the rest.
    pub(super) fn poll_close(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.session.close();
        if state.unsent.is_empty() {
            return Poll::Ready(());
        }
        state.sender = Some(context.waker().clone());
        self.closing.get_or_insert_with(|| Box::pin(sleep(CLOSE_TIMEOUT))).as_mut().poll(context)
    }
}

impl Drop for PollingPipe {
    fn drop(&mut self) {
        drop(self.session.close());
        self.sessions.remove(&self.session.handshake.sid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session() -> PollingSession {
        let handshake = Handshake {
            sid: "a".to_owned(),
            upgrades: Vec::new(),
            ping_interval_ms: 1,
            ping_timeout_ms: 1,
            max_payload_bytes: 1,
        };
        PollingSession::new(handshake, "b".to_owned())
    }

    fn packets(texts: &[&str]) -> Vec<Payload> {
        texts.iter().map(|&text| text.into()).collect()
    }

    #[tokio::test]
    async fn a_client_that_waits_long_is_pinged() {
        assert_eq!(session().fetch().await, packets(&["2"]));
    }

    #[tokio::test]
    async fn the_first_message_claims_the_session() {
        let session = session();
        assert_eq!(session.post(packets(&["42[\"m\",\"a\"]"])).await, Posted::Rejected);
        assert_eq!(session.post(packets(&["40"])).await, Posted::Accepted);
        assert_eq!(session.fetch().await, packets(&["40{\"sid\":\"b\"}"]));
        assert_eq!(session.post(packets(&["3"])).await, Posted::Accepted);
        assert_eq!(session.post(packets(&["42[\"m\",\"a\"]"])).await, Posted::Claims);
        assert_eq!(session.post(packets(&["42[\"m\",\"b\"]"])).await, Posted::Accepted);
    }

    #[tokio::test]
    async fn the_buffer_of_an_unclaimed_session_does_not_grow_without_end() {
        let session = session();
        session.post(packets(&["40"])).await;
        session.begin_move();
        let long = format!("4{}", "x".repeat(BUFFER_SIZE));
        assert_eq!(session.post(packets(&[&long])).await, Posted::Accepted);
        assert_eq!(session.post(packets(&["4x"])).await, Posted::Rejected);
    }
}
