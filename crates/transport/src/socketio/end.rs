//! One end of a Socket.IO session: the state machine, what it runs over, and its clock.

use super::pipe::Pipe;
use crate::TransportError;
use crate::error::Outcome;
use crate::runtime::halves::Half;
use crate::settings::Payload;
use crate::websocket::LARGEST;
use bytes::Bytes;
use crosswind_socketio as io;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};
use tokio::task::{AbortHandle, unconstrained};
use tokio::time::{Sleep, sleep_until};

/// The event that a message is, unless the other end calls it otherwise.
const EVENT: &str = "message";
/// JSON writes a character in six bytes at most, `\u0000`.
const ESCAPED: usize = 6;
/// What stands around a message's text, or in place of its bytes.
const AROUND: usize = 1024;

pub(super) struct End {
    session: io::Session,
    pipe: Pipe,
    /// To be sent before what the session has to send.
    before: Vec<io::Payload>,
    started: Instant,
    alarm: Pin<Box<Sleep>>,
    alarm_ns: Option<u64>,
    /// What messages are sent as.
    kind: Payload,
    event: String,
    /// They are sent as the last one came.
    follow: bool,
    /// Of a message that was received in part.
    pub(super) rest: Bytes,
    /// The session was left from here.
    left: bool,
    /// How what is below ended.
    ended: Option<TransportError>,
    /// How the session did.
    over: Option<(Outcome, String)>,
    /// What ends with this.
    background: Option<Background>,
}

/// A task that ends with whoever holds this.
pub(super) struct Background(pub(super) AbortHandle);

impl Drop for Background {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl End {
    /// `session` makes the state machine, with the time at which it begins.
    pub(super) fn new(
        pipe: Pipe,
        kind: Payload,
        follow: bool,
        session: impl FnOnce(u64) -> Result<io::Session, io::Error>,
    ) -> Result<Self, TransportError> {
        let started = Instant::now();
        Ok(Self {
            session: session(0).map_err(|e| broken("cannot open a session", &e))?,
            pipe,
            before: Vec::new(),
            started,
            alarm: Box::pin(sleep_until(started.into())),
            alarm_ns: None,
            kind,
            event: EVENT.to_owned(),
            follow,
            rest: Bytes::new(),
            left: false,
            ended: None,
            over: None,
            background: None,
        })
    }

    pub(super) fn hold(&mut self, background: Background) {
        self.background = Some(background);
    }

    pub(super) fn pipe(&self) -> &Pipe {
        &self.pipe
    }

    pub(super) fn into_pipe(self) -> Pipe {
        self.pipe
    }

    /// Takes a payload that came another way.
    pub(super) fn handle(&mut self, payload: &io::Payload) {
        self.session.handle_payload(payload, self.now_ns());
    }

    /// Drops what the session would send now: it was sent another way.
    pub(super) fn skip_output(&mut self) {
        while self.session.poll_payload().is_some() {}
    }

    /// What polling has not sent any more goes first.
    pub(super) fn send_first(&mut self, payloads: Vec<io::Payload>) {
        self.before.extend(payloads);
    }

    /// Client, upgrading: waits until what is below works.
    pub(super) async fn probed(&mut self) -> Result<(), TransportError> {
        poll_fn(|context| {
            loop {
                if ready!(self.poll_event(context, LARGEST))? == io::Event::Probed {
                    return Poll::Ready(Ok(()));
                }
            }
        })
        .await
    }

    /// Client, upgrading: polling is over.
    pub(super) fn finish_upgrade(&mut self) -> Result<(), TransportError> {
        let now_ns = self.now_ns();
        self.session.finish_upgrade(now_ns).map_err(|e| broken("cannot upgrade", &e))
    }

    /// Waits until messages can be sent; what has to be said for that is sent.
    pub(super) async fn connected(&mut self) -> Result<(), TransportError> {
        poll_fn(|context| {
            while !matches!(ready!(self.poll_event(context, LARGEST))?, io::Event::Connected { .. }) {}
            self.poll_out(Half::Receiving, context)
        })
        .await
    }

    /// The next message, of `limit` bytes or not much more.
    pub(super) fn poll_message(
        &mut self,
        context: &mut Context<'_>,
        limit: usize,
    ) -> Poll<Result<Bytes, TransportError>> {
        if !self.rest.is_empty() {
            return Poll::Ready(Ok(std::mem::take(&mut self.rest)));
        }
        loop {
            if let io::Event::Message { name, argument } = ready!(self.poll_event(context, limit))? {
                let (bytes, kind) = match argument {
                    io::Payload::Text(text) => (Bytes::from(text), Payload::Text),
                    io::Payload::Binary(bytes) => (bytes, Payload::Binary),
                };
                if self.follow {
                    (self.event, self.kind) = (name, kind);
                }
                return Poll::Ready(Ok(bytes));
            }
        }
    }

    /// Takes a message, to be sent by [`Self::poll_out`].
    pub(super) fn emit(&mut self, message: &[u8]) -> Result<(), TransportError> {
        let what = "cannot send";
        let emitted = match self.kind {
            Payload::Binary => self.session.emit(&self.event, io::Payload::Binary(Bytes::copy_from_slice(message))),
            Payload::Text => {
                let text = std::str::from_utf8(message)
                    .map_err(|e| TransportError::with(what, Outcome::Error, format!("no text: {e}")))?;
                self.session.emit_text(&self.event, text)
            }
        };
        emitted.map_err(|error| match (&self.over, &error) {
            (Some((outcome, cause)), _) => TransportError::with(what, *outcome, cause.clone()),
            (None, io::Error::NotNow { .. }) => TransportError::closed(what),
            (None, io::Error::PayloadTooLong { .. }) => {
                TransportError::with(what, Outcome::TooLarge, error.to_string())
            }
            (None, _) => TransportError::with(what, Outcome::Error, error.to_string()),
        })
    }

    /// Sends what there is to send.
    pub(super) fn poll_out(&mut self, half: Half, context: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        for payload in std::mem::take(&mut self.before) {
            self.pipe.queue(half, context, &payload)?;
        }
        while let Some(payload) = self.session.poll_payload() {
            self.pipe.queue(half, context, &payload)?;
        }
        self.pipe.poll_flush(half, context)
    }

    /// Leaves; nothing more is sent or received.
    pub(super) fn poll_finish(&mut self, context: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        self.session.close();
        unless_over(ready!(self.poll_out(Half::Sending, context)))?;
        if self.over.is_some() { self.pipe.poll_finish(context).map(unless_over) } else { Poll::Ready(Ok(())) }
    }

    /// Leaves, and ends what is below in an orderly way.
    pub(super) fn poll_close(&mut self, context: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        self.session.close();
        unless_over(ready!(self.poll_out(Half::Receiving, context)))?;
        self.pipe.poll_close(context).map(unless_over)
    }

    fn now_ns(&self) -> u64 {
        self.started.elapsed().as_nanos() as u64
    }

    fn poll_event(&mut self, context: &mut Context<'_>, limit: usize) -> Poll<Result<io::Event, TransportError>> {
        let what = "cannot receive";
        if let Some((outcome, cause)) = &self.over {
            let over = TransportError::with(what, *outcome, cause.clone());
            self.say_last(context);
            return Poll::Ready(Err(over));
        }
        let longest = limit.saturating_mul(ESCAPED).saturating_add(AROUND);
        loop {
            // Where it cannot be sent, receiving says why.
            let _ = self.poll_out(Half::Receiving, context);
            match self.session.poll_event() {
                // The other end is to close what is below.
                Some(io::Event::Closed(io::CloseReason::Local)) => {
                    self.left = true;
                    let _ = self.pipe.poll_finish(context);
                }
                Some(io::Event::Closed(reason)) => return Poll::Ready(Err(self.end(context, &reason))),
                Some(event) => return Poll::Ready(Ok(event)),
                None => {}
            }
            match self.pipe.poll_payload(context, longest) {
                Poll::Ready(Ok(payload)) => self.handle(&payload),
                Poll::Ready(Err(_)) if self.left => {
                    return Poll::Ready(Err(self.end(context, &io::CloseReason::Local)));
                }
                Poll::Ready(Err(e)) => {
                    self.ended = Some(e);
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

    fn poll_alarm(&mut self, context: &mut Context<'_>) -> bool {
        let Some(wakeup_ns) = self.session.next_wakeup() else { return false };
        if self.alarm_ns != Some(wakeup_ns) {
            self.alarm_ns = Some(wakeup_ns);
            self.alarm.as_mut().reset((self.started + Duration::from_nanos(wakeup_ns)).into());
        }
        let rings = self.alarm.as_mut().poll(context).is_ready();
        if rings {
            self.alarm_ns = None;
        }
        rings
    }

    fn end(&mut self, context: &mut Context<'_>, reason: &io::CloseReason) -> TransportError {
        let what = "cannot receive";
        let error = match (reason, self.ended.take()) {
            (io::CloseReason::TransportClosed, Some(ended)) => ended,
            (io::CloseReason::Protocol(error), _) => broken(what, error),
            (io::CloseReason::Refused(cause), _) => TransportError::with(what, Outcome::Refused, cause.clone()),
            (io::CloseReason::ConnectTimeout | io::CloseReason::PingTimeout, _) => {
                TransportError::with(what, Outcome::Timeout, "the other end says nothing")
            }
            _ => TransportError::closed(what),
        };
        self.over = Some((error.outcome, error.cause.clone()));
        self.say_last(context);
        error
    }

    /// Ends what is below: at once, for nobody need poll again, and a task whose budget of polls is spent would be put off.
    fn say_last(&mut self, context: &mut Context<'_>) {
        let _ = pin!(unconstrained(poll_fn(|context| {
            // What cannot be sent now, because the other end does not read, goes when this end finishes or closes. It may be
            // gone already.
            let _ = self.poll_out(Half::Receiving, context);
            self.pipe.poll_finish(context)
        })))
        .poll(context);
    }
}

/// The other end may have been faster.
fn unless_over(result: Result<(), TransportError>) -> Result<(), TransportError> {
    match result {
        Err(e) if matches!(e.outcome, Outcome::Closed | Outcome::Reset) => Ok(()),
        result => result,
    }
}

fn broken(what: &'static str, error: &io::Error) -> TransportError {
    let outcome = if matches!(error, io::Error::PayloadTooLong { .. }) { Outcome::TooLarge } else { Outcome::Protocol };
    TransportError::with(what, outcome, error.to_string())
}
