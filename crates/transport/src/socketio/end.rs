//! One end of a Socket.IO session: the state machine, its pipe, and its clock.

use super::pipe::Pipe;
use super::polling_session::Moved;
use crate::error::Outcome;
use crate::runtime::call::PollDone;
use crate::runtime::single_stream::{Duplex, poll_part, put_message};
use crate::runtime::tasks::Tasks;
use crate::settings::Payload as PayloadKind;
use crate::{Phases, TransportError};
use bytes::Bytes;
use crosswind_socketio::{CloseReason, Error, Event, Payload, Session};
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};
use tokio::io::ReadBuf;
use tokio::time::{Sleep, sleep_until};

/// The default name for a message's event.
const EVENT: &str = "message";

pub(super) struct End {
    session: Session,
    pipe: Pipe,
    /// Payloads not yet taken by the pipe.
    unsent: VecDeque<Payload>,
    started: Instant,
    alarm: Pin<Box<Sleep>>,
    alarm_ns: Option<u64>,
    /// The type of messages.
    kind: PayloadKind,
    event: String,
    /// Messages are sent in the last received one's form: text or binary, and event name.
    answers: bool,
    /// Of a partly received message.
    rest: Bytes,
    /// This end has left the session.
    left: bool,
    pipe_error: Option<TransportError>,
    /// How the session ended.
    over: Option<(Outcome, String)>,
    /// Ended with this.
    tasks: Option<Tasks>,
}

impl End {
    /// `session` makes the state machine, given its starting time.
    pub(super) fn new(
        pipe: Pipe,
        kind: PayloadKind,
        answers: bool,
        session: impl FnOnce(u64) -> Result<Session, Error>,
    ) -> Result<Self, TransportError> {
        let started = Instant::now();
        Ok(Self {
            session: session(0).map_err(|e| session_error("cannot open a session", &e))?,
            pipe,
            unsent: VecDeque::new(),
            started,
            alarm: Box::pin(sleep_until(started.into())),
            alarm_ns: None,
            kind,
            event: EVENT.to_owned(),
            answers,
            rest: Bytes::new(),
            left: false,
            pipe_error: None,
            over: None,
            tasks: None,
        })
    }

    /// Keeps the session's tasks.
    pub(super) fn hold(&mut self, tasks: Tasks) {
        self.tasks = Some(tasks);
    }

    /// Takes a payload received another way.
    pub(super) fn handle(&mut self, payload: &Payload) {
        self.session.handle_payload(payload, self.now_ns());
    }

    /// Drops the session's pending output: it was sent another way.
    pub(super) fn skip_output(&mut self) {
        while self.session.poll_payload().is_some() {}
    }

    /// Server: goes on where the client has moved. Sends `unsent` before anything else.
    pub(super) fn resume(&mut self, unsent: Vec<Payload>, received: &[Payload]) {
        unsent.into_iter().rev().for_each(|payload| self.unsent.push_front(payload));
        for payload in received {
            self.handle(payload);
        }
    }

    /// Client, upgrading: waits for the answer to its probe.
    pub(super) async fn probed(&mut self) -> Result<(), TransportError> {
        while poll_fn(|context| self.poll_event(context)).await? != Event::Probed {}
        Ok(())
    }

    /// Client, upgrading: polling has ended.
    pub(super) fn finish_upgrade(&mut self) -> Result<(), TransportError> {
        let now_ns = self.now_ns();
        self.session.finish_upgrade(now_ns).map_err(|e| session_error("cannot upgrade", &e))
    }

    /// Waits until messages can be sent.
    pub(super) async fn connected(&mut self) -> Result<(), TransportError> {
        while !matches!(poll_fn(|context| self.poll_event(context)).await?, Event::Connected { .. }) {}
        poll_fn(|context| self.poll_flush(context)).await
    }

    fn now_ns(&self) -> u64 {
        self.started.elapsed().as_nanos() as u64
    }

    fn poll_message(&mut self, context: &mut Context<'_>) -> Poll<Result<Bytes, TransportError>> {
        if !self.rest.is_empty() {
            return Poll::Ready(Ok(std::mem::take(&mut self.rest)));
        }
        loop {
            if let Event::Message { name, argument } = ready!(self.poll_event(context))? {
                let (bytes, kind) = match argument {
                    Payload::Text(text) => (Bytes::from(text), PayloadKind::Text),
                    Payload::Binary(bytes) => (bytes, PayloadKind::Binary),
                };
                if self.answers {
                    (self.event, self.kind) = (name, kind);
                }
                return Poll::Ready(Ok(bytes));
            }
        }
    }

    /// Takes a message, to be sent by [`Self::poll_flush`].
    fn emit(&mut self, message: &[u8]) -> Result<(), TransportError> {
        let what = "cannot send";
        let emitted = match self.kind {
            PayloadKind::Binary => self.session.emit(&self.event, Payload::Binary(Bytes::copy_from_slice(message))),
            PayloadKind::Text => {
                let text = std::str::from_utf8(message)
                    .map_err(|e| TransportError::with(what, Outcome::Error, format!("not text: {e}")))?;
                self.session.emit_text(&self.event, text)
            }
        };
        emitted.map_err(|error| match (&self.over, &error) {
            (Some((outcome, cause)), _) => TransportError::with(what, *outcome, cause.clone()),
            (None, Error::NotNow { .. }) => TransportError::closed(what),
            (None, Error::PayloadTooLong { .. }) => TransportError::with(what, Outcome::TooLarge, error.to_string()),
            (None, _) => TransportError::with(what, Outcome::Error, error.to_string()),
        })
    }

    /// Sends pending output to the other end's present location.
    fn poll_flush(&mut self, context: &mut Context<'_>) -> PollDone {
        if let Pipe::Polling(polling) = &mut self.pipe
            && let Some(Moved { socket, received, unsent }) = polling.take_moved()
        {
            self.pipe = Pipe::WebSocket(socket);
            self.resume(unsent, &received);
        }
        while let Some(payload) = self.session.poll_payload() {
            self.unsent.push_back(payload);
        }
        while !self.unsent.is_empty() {
            ready!(self.pipe.poll_ready(context))?;
            if let Some(payload) = self.unsent.pop_front() {
                self.pipe.start_send(payload)?;
            }
        }
        self.pipe.poll_flush(context)
    }

    fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<Result<Event, TransportError>> {
        loop {
            if let Some((outcome, cause)) = &self.over {
                let error = TransportError::with("cannot receive", *outcome, cause.clone());
                // The last packets; they fail when the other end has gone.
                let _ = ready!(self.poll_flush(context));
                let _ = ready!(self.pipe.poll_finish(context));
                return Poll::Ready(Err(error));
            }
            // Unsent output goes later; a permanent failure shows in receiving.
            let _ = self.poll_flush(context);
            match self.session.poll_event() {
                // The other end is to close the pipe.
                Some(Event::Closed(CloseReason::Local)) => {
                    self.left = true;
                    let _ = self.pipe.poll_finish(context);
                }
                Some(Event::Closed(reason)) => {
                    self.set_over(&reason);
                    continue;
                }
                Some(event) => return Poll::Ready(Ok(event)),
                None => {}
            }
            match self.pipe.poll_payload(context) {
                Poll::Ready(Ok(payload)) => self.handle(&payload),
                Poll::Ready(Err(_)) if self.left => self.set_over(&CloseReason::Local),
                Poll::Ready(Err(e)) => {
                    self.pipe_error = Some(e);
                    self.session.handle_transport_closed();
                }
                Poll::Pending => {
                    if !self.poll_alarm(context) {
                        return Poll::Pending;
                    }
                    let now_ns = self.now_ns();
                    self.session.handle_wakeup(now_ns);
                }
            }
        }
    }

    /// Whether it is time to call `handle_wakeup`.
    fn poll_alarm(&mut self, context: &mut Context<'_>) -> bool {
        let Some(wakeup_ns) = self.session.next_wakeup() else { return false };
        if self.alarm_ns != Some(wakeup_ns) {
            self.alarm_ns = Some(wakeup_ns);
            self.alarm.as_mut().reset((self.started + Duration::from_nanos(wakeup_ns)).into());
        }
        let due = self.alarm.as_mut().poll(context).is_ready();
        if due {
            self.alarm_ns = None;
        }
        due
    }

    fn set_over(&mut self, reason: &CloseReason) {
        let what = "cannot receive";
        let error = match (reason, self.pipe_error.take()) {
            (CloseReason::TransportClosed, Some(error)) => error,
            (CloseReason::Protocol(error), _) => session_error(what, error),
            (CloseReason::Refused(cause), _) => TransportError::with(what, Outcome::Refused, cause.clone()),
            (CloseReason::ConnectTimeout, _) => TransportError::with(what, Outcome::Timeout, "the other end is silent"),
            // Neither a timeout, after which a server would go on waiting, nor an orderly end: data may be missing.
            (CloseReason::PingTimeout, _) => {
                TransportError::with(what, Outcome::Reset, "the other end has been silent for too long")
            }
            _ => TransportError::closed(what),
        };
        self.over = Some((error.outcome, error.cause));
    }
}

impl Duplex for End {
    fn poll_send(&mut self, context: &mut Context<'_>, message: &mut Option<&[u8]>) -> PollDone {
        if let Some(message) = message.take() {
            self.emit(message)?;
        }
        self.poll_flush(context)
    }

    /// Leaves the session: nothing more is sent or received.
    fn poll_finish(&mut self, context: &mut Context<'_>) -> PollDone {
        self.session.close();
        ignore_end(ready!(self.poll_flush(context)))?;
        if self.over.is_some() { self.pipe.poll_finish(context).map(ignore_end) } else { Poll::Ready(Ok(())) }
    }

    fn poll_receive(&mut self, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> PollDone {
        let message = ready!(self.poll_message(context))?;
        Poll::Ready(put_message(&message, into))
    }

    fn poll_receive_some(&mut self, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> PollDone {
        self.rest = ready!(poll_part(|| self.poll_message(context), into))?;
        Poll::Ready(Ok(()))
    }

    /// Leaves the session, and ends the pipe in an orderly way.
    fn poll_close(&mut self, context: &mut Context<'_>) -> PollDone {
        self.session.close();
        ignore_end(ready!(self.poll_flush(context)))?;
        self.pipe.poll_close(context).map(ignore_end)
    }

    async fn after_close(self) {
        if let Pipe::WebTransport(frames) = self.pipe {
            frames.close().await;
        }
    }

    /// Where the session polls, the client finds it gone.
    fn abort(self) {
        if let Pipe::WebTransport(frames) = self.pipe {
            frames.abort();
        }
    }

    fn written(&self) -> Option<(u64, u64)> {
        match &self.pipe {
            Pipe::WebTransport(frames) => Some(frames.written()),
            Pipe::WebSocket(_) | Pipe::Polling(_) => None,
        }
    }

    fn add_phases(&mut self, phases: &mut Phases) {
        if let Pipe::WebTransport(frames) = &self.pipe {
            frames.add_phases(phases);
        }
    }
}

/// The other end may have closed first.
fn ignore_end(result: Result<(), TransportError>) -> Result<(), TransportError> {
    match result {
        Err(e) if matches!(e.outcome, Outcome::Closed | Outcome::Reset) => Ok(()),
        result => result,
    }
}

fn session_error(what: &'static str, error: &Error) -> TransportError {
    let outcome = if matches!(error, Error::PayloadTooLong { .. }) { Outcome::TooLarge } else { Outcome::Protocol };
    TransportError::with(what, outcome, error.to_string())
}
