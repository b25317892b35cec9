//! The client of HTTP/1.1 and HTTP/2.

use super::body::{Outgoing, Tap, pieces};
use super::engine::{Driven, Engine, Of, Works};
use super::link::{Fate, Link, UnderWay};
use super::pieces::FromHyper;
use super::{Version, errors};
use crate::http::pieces::Arriving;
use crate::http::request::{Length, Requests};
use crate::http::{CONNECTION_WINDOW, MOST_HEADER_BYTES, STREAM_WINDOW};
use crate::{Call, Connection, Outcome, Phases, Purpose, Receiver, Sender, SocketReadback, Stream, TransportError};
use futures_util::future::{join, join_all};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

/// The client's end of a connection.
pub(super) struct Client {
    link: Link,
    engine: Engine,
    way: Way,
    requests: Arc<Requests>,
    /// HTTP/1.1 carries one request at a time: the others wait in line.
    turn: Option<Arc<Semaphore>>,
    phases: Phases,
    port: u16,
}

impl Client {
    /// Speaks HTTP over `io`, which is a socket or TLS over it.
    pub(super) async fn start(
        io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        version: Version,
        link: Link,
        requests: Requests,
        phases: Phases,
        port: u16,
    ) -> Result<Self, TransportError> {
        const WHAT: &str = "cannot begin HTTP";
        let (io, works) = (TokioIo::new(io), Works::default());
        let (dispatch, driven): (Dispatch, Box<dyn Driven>) = match version {
            Version::One => {
                let (dispatch, connection) = http1::handshake(io).await.map_err(|e| errors::meaning(WHAT, &e))?;
                (Dispatch::One(dispatch), Box::new(Of { connection: Box::pin(connection), wind_up: |_| {} }))
            }
            Version::Two => {
                let mut builder = http2::Builder::new(works.clone());
                builder
                    .initial_stream_window_size(STREAM_WINDOW)
                    .initial_connection_window_size(CONNECTION_WINDOW)
                    .max_header_list_size(MOST_HEADER_BYTES);
                let (dispatch, requests) = builder.handshake(io).await.map_err(|e| errors::meaning(WHAT, &e))?;
                // What hyper has put there by now is the connection itself: it ends after the last request has.
                let connection = join_all(works.take());
                let whole = async { join(requests, connection).await.0 };
                (Dispatch::Two(dispatch), Box::new(Of { connection: Box::pin(whole), wind_up: |_| {} }))
            }
        };
        let engine = Engine::new(driven, version, works, link.fate.clone());
        // HTTP/2 says at once what it allows.
        engine.turn();
        let way = Way { dispatch: Arc::new(Mutex::new(Some(dispatch))), fate: link.fate.clone() };
        let turn = (version == Version::One).then(|| Arc::new(Semaphore::new(1)));
        Ok(Self { link, engine, way, requests: Arc::new(requests), turn, phases, port })
    }

    async fn open_one(&self, purpose: Purpose) -> Result<Stream, TransportError> {
        let turn = match &self.turn {
            Some(turn) => Some(match Arc::clone(turn).try_acquire_owned() {
                Ok(held) => held,
                Err(_) => Arc::clone(turn).acquire_owned().await.map_err(|_| self.way.over())?,
            }),
            None => None,
        };
        // It may have ended since anybody looked.
        self.engine.turn();
        self.engine.until(self.way.ready()).await?;
        let (answer, awaited) = oneshot::channel();
        let mut sender = ClientSender {
            engine: self.engine.clone(),
            way: self.way.clone(),
            requests: Arc::clone(&self.requests),
            purpose,
            answer: Some(answer),
            tap: None,
        };
        if let Purpose::Download(bytes) = purpose {
            sender.ask(self.requests.download(bytes, Outgoing::empty())?)?;
        }
        let under_way = Some(Held { _turn: turn, _counted: self.link.fate.begin() });
        let reply = Reply { fate: self.link.fate.clone(), state: State::Unasked(awaited), under_way };
        let receiver = ClientReceiver { engine: self.engine.clone(), reply };
        Ok(Stream::new(sender, receiver))
    }
}

impl Client {
    /// Streams may still hold the engine: what it drives ends all the same.
    fn stop(&self) {
        self.link.fate.seal(Ok(()));
        self.engine.stop();
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.stop();
    }
}

/// An orderly end, also when the wait for it is given up.
struct Ending<'a>(&'a Client);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

impl Connection for Client {
    fn open(&self, purpose: Purpose) -> Call<'_, Stream> {
        Call::new(self.open_one(purpose))
    }

    fn accept(&mut self) -> Call<'_, Stream> {
        Call::done(Err(TransportError::unsupported("cannot accept a stream")))
    }

    fn phases(&self) -> Phases {
        self.phases
    }

    fn close(&mut self) -> Call<'_, ()> {
        Call::new(async {
            self.way.take();
            // HTTP/1.1 has no word for the end: with a response to come there is nothing orderly about it.
            if self.turn.as_ref().is_some_and(|turn| turn.available_permits() == 0) {
                self.stop();
            }
            let _end = Ending(self);
            self.engine.wind_up().await;
            Ok(())
        })
    }

    fn abort(&mut self) {
        self.link.abort();
        self.engine.stop();
    }

    fn client_port(&self) -> u16 {
        self.port
    }

    fn readback(&self) -> Result<SocketReadback, TransportError> {
        self.link.readback()
    }
}

/// A response on its way.
type Answer = Pin<Box<dyn Future<Output = hyper::Result<Response<Incoming>>> + Send>>;

/// Where requests go.
enum Dispatch {
    One(http1::SendRequest<Outgoing>),
    Two(http2::SendRequest<Outgoing>),
}

/// The same, for all streams; nothing once the connection is closed.
#[derive(Clone)]
struct Way {
    dispatch: Arc<Mutex<Option<Dispatch>>>,
    fate: Fate,
}

impl Way {
    fn with<T>(&self, act: impl FnOnce(&mut Dispatch) -> T) -> Option<T> {
        self.dispatch.lock().unwrap_or_else(PoisonError::into_inner).as_mut().map(act)
    }

    fn take(&self) {
        self.dispatch.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    fn over(&self) -> TransportError {
        self.fate.error("cannot ask")
    }

    /// When a request can be sent.
    async fn ready(&self) -> Result<(), TransportError> {
        poll_fn(|context| {
            let ready = self.with(|dispatch| match dispatch {
                Dispatch::One(dispatch) => dispatch.poll_ready(context),
                Dispatch::Two(dispatch) => dispatch.poll_ready(context),
            });
            match ready {
                Some(ready) => ready.map_err(|e| errors::error("cannot ask", &e, &self.fate)),
                None => Poll::Ready(Err(self.over())),
            }
        })
        .await
    }

    fn ask(&self, request: Request<Outgoing>) -> Result<Answer, TransportError> {
        let asked = self.with(|dispatch| -> Answer {
            match dispatch {
                Dispatch::One(dispatch) => Box::pin(dispatch.send_request(request)),
                Dispatch::Two(dispatch) => Box::pin(dispatch.send_request(request)),
            }
        });
        asked.ok_or_else(|| self.over())
    }
}

struct ClientSender {
    engine: Engine,
    way: Way,
    requests: Arc<Requests>,
    purpose: Purpose,
    /// Where the receiver waits; nothing once the request is on its way.
    answer: Option<oneshot::Sender<Answer>>,
    tap: Option<Tap>,
}

impl ClientSender {
    fn ask(&mut self, request: Request<Outgoing>) -> Result<(), TransportError> {
        let Some(answer) = self.answer.take() else {
            return Err(TransportError::with("cannot send", Outcome::Error, "a stream carries one message"));
        };
        // Nobody may want the answer: then the request is none to make.
        let _ = answer.send(self.way.ask(request)?);
        self.engine.turn();
        Ok(())
    }

    fn whole(&mut self, message: &[u8]) -> Result<(), TransportError> {
        let length = Length::Known(message.len() as u64);
        let request = self.requests.message(length, Outgoing::whole(message))?;
        self.ask(request)
    }

    fn end(&mut self) -> Result<(), TransportError> {
        let end = self.tap.take().map_or(Ok(()), |mut tap| tap.finish());
        self.engine.turn();
        end
    }

    async fn give(&mut self, part: &[u8]) -> Result<(), TransportError> {
        if self.answer.is_some() {
            let length = match self.purpose {
                Purpose::Upload(length) => length,
                _ => None,
            };
            let (tap, body) = pieces(length, &self.way.fate);
            let request = match (self.purpose, length) {
                (Purpose::Upload(_), Some(bytes)) => self.requests.upload(Length::Known(bytes), Outgoing::Pieces(body)),
                (Purpose::Upload(_), None) => self.requests.upload(Length::Unknown, Outgoing::Pieces(body)),
                _ => self.requests.message(Length::Unknown, Outgoing::Pieces(body)),
            }?;
            self.ask(request)?;
            self.tap = Some(tap);
        }
        match &mut self.tap {
            Some(tap) => self.engine.until(tap.give(part)).await?,
            None => return Err(TransportError::with("cannot send", Outcome::Error, "the request is whole")),
        }
        self.engine.turn();
        Ok(())
    }
}

impl Sender for ClientSender {
    fn send<'a>(&'a mut self, message: &'a [u8]) -> Call<'a, ()> {
        match self.purpose {
            Purpose::Messages => Call::done(self.whole(message)),
            Purpose::Upload(_) => Call::new(self.give(message)),
            Purpose::Download(_) => Call::done(Ok(())),
        }
    }

    fn send_some<'a>(&'a mut self, part: &'a [u8]) -> Call<'a, ()> {
        match self.purpose {
            Purpose::Messages | Purpose::Upload(_) => Call::new(self.give(part)),
            Purpose::Download(_) => Call::done(Ok(())),
        }
    }

    fn finish(&mut self) -> Call<'_, ()> {
        if self.answer.is_some() && matches!(self.purpose, Purpose::Upload(_)) {
            return Call::new(async {
                self.give(&[]).await?;
                self.end()
            });
        }
        Call::done(self.end())
    }
}

struct ClientReceiver {
    engine: Engine,
    reply: Reply,
}

/// The response, on its way.
struct Reply {
    fate: Fate,
    state: State,
    /// Given back once the response is whole.
    under_way: Option<Held>,
}

/// What a request holds of the connection.
struct Held {
    _turn: Option<OwnedSemaphorePermit>,
    _counted: UnderWay,
}

enum State {
    Unasked(oneshot::Receiver<Answer>),
    Asked(Answer),
    Answered(Arriving<FromHyper>),
    Failed,
}

impl Reply {
    /// The response's body, once its header has come.
    async fn body(&mut self) -> Result<&mut Arriving<FromHyper>, TransportError> {
        while !matches!(self.state, State::Answered(_)) {
            let next = match &mut self.state {
                State::Unasked(awaited) => {
                    awaited.await.map(State::Asked).map_err(|_| self.fate.error("cannot receive"))
                }
                State::Asked(answer) => match answer.await {
                    Ok(response) => answered(response, &self.fate),
                    Err(e) => Err(errors::error("cannot receive", &e, &self.fate)),
                },
                State::Answered(_) => break,
                State::Failed => Err(TransportError::closed("cannot receive")),
            };
            match next {
                Ok(state) => self.state = state,
                Err(e) => {
                    self.state = State::Failed;
                    self.under_way = None;
                    return Err(e);
                }
            }
        }
        match &mut self.state {
            State::Answered(body) => Ok(body),
            _ => Err(TransportError::closed("cannot receive")),
        }
    }

    async fn whole(&mut self, into: &mut [u8]) -> Result<usize, TransportError> {
        let received = self.body().await?.whole(into).await;
        self.settle();
        received
    }

    async fn some(&mut self, into: &mut [u8]) -> Result<usize, TransportError> {
        let received = self.body().await?.some(into).await;
        self.settle();
        received
    }

    fn settle(&mut self) {
        if matches!(&self.state, State::Answered(body) if body.is_over()) {
            self.under_way = None;
        }
    }
}

fn answered(response: Response<Incoming>, fate: &Fate) -> Result<State, TransportError> {
    let status = response.status();
    if !status.is_success() {
        let cause = format!("the server answered {status}");
        return Err(TransportError::with("cannot receive", Outcome::Protocol, cause));
    }
    Ok(State::Answered(Arriving::new(FromHyper { body: response.into_body(), fate: fate.clone() })))
}

impl Receiver for ClientReceiver {
    fn receive<'a>(&'a mut self, into: &'a mut [u8]) -> Call<'a, usize> {
        Call::new(self.engine.until(self.reply.whole(into)))
    }

    fn receive_some<'a>(&'a mut self, into: &'a mut [u8]) -> Call<'a, usize> {
        Call::new(self.engine.until(self.reply.some(into)))
    }
}
