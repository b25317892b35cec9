//! The server over TCP: WebSocket at once, or HTTP long polling that moves to it. A connection that only polls is served, and
//! ends as one without a stream.

use super::end::End;
use super::pipe::Pipe;
use super::{PATH, new_handshake, new_sid, unspoken};
use crate::TransportError;
use crate::error::Outcome;
use crate::halves::Half;
use crate::settings::Payload as Kind;
use crate::websocket::{Carrier, Incoming, Socket, outgoing};
use bytes::Bytes;
use crosswind_socketio::{
    Carrier as Over, Handshake, Kind as MessageKind, MessageDecoder, Packet, Payload, Session, decode_polling,
    encode_polling,
};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming as Body;
use hyper::header::{ACCESS_CONTROL_ALLOW_ORIGIN, CONTENT_TYPE, HeaderValue};
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use std::collections::HashMap;
use std::convert::Infallible;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio_tungstenite::tungstenite::handshake::server::create_response;

/// Sessions that poll at once, and what a client may say before it moves on, bytes.
const MOST_POLLING: usize = 1000;
const LONGEST_INBOX: usize = 1 << 20;
/// A session that has not asked for anything for so long is over.
const FORGOTTEN: Duration = Duration::from_secs(45);

/// The sessions that poll, by id.
#[derive(Default)]
pub(super) struct Polling(Mutex<HashMap<String, Arc<Polled>>>);

struct Polled {
    handshake: Handshake,
    socket_sid: String,
    state: Mutex<State>,
    changed: Notify,
}

struct State {
    joined: bool,
    /// What the client said, for the session once it has moved.
    inbox: Vec<Payload>,
    inbox_bytes: usize,
    outbox: Vec<Payload>,
    /// The client is about to move: whoever waits is sent away.
    moving: bool,
    /// It has moved.
    moved: bool,
    seen: Instant,
}

/// What a WebSocket is to carry: a new session, or one that polls.
struct Upgrade {
    upgraded: OnUpgrade,
    polled: Option<Arc<Polled>>,
}

/// Serves what comes on one connection, up to a session that can carry messages.
pub(super) async fn serve(stream: TcpStream, polling: &Arc<Polling>, kind: Kind) -> Result<End, TransportError> {
    let what = "cannot accept a session";
    let upgrade = Arc::new(Mutex::new(None));
    let service = service_fn(|request| {
        let (polling, upgrade) = (Arc::clone(polling), Arc::clone(&upgrade));
        async move { Ok::<_, Infallible>(polling.answer(request, &upgrade).await) }
    });
    let served = hyper::server::conn::http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades()
        .await;
    let Some(Upgrade { upgraded, polled }) = lock(&upgrade).take() else {
        return Err(match served {
            Err(e) if e.is_parse() || e.is_parse_too_large() => {
                TransportError::with(what, Outcome::Protocol, e.to_string())
            }
            _ => TransportError::closed(what),
        });
    };
    let upgraded = upgraded.await.map_err(unspoken(what))?;
    let parts = upgraded
        .downcast::<TokioIo<TcpStream>>()
        .map_err(|_| TransportError::with(what, Outcome::Error, "another stream than expected"))?;
    let socket = Socket::upgraded(Carrier::Plain(parts.io.into_inner()), parts.read_buf.into());
    let mut end = if let Some(polled) = polled {
        let end = polled.moved(socket, kind).await?;
        lock(&polling.0).remove(&polled.handshake.sid);
        end
    } else {
        let (handshake, sid) = (new_handshake(Vec::new())?, new_sid()?);
        End::new(Pipe::WebSocket(Box::new(socket)), kind, true, |now_ns| {
            Session::server(Over::WebSocket, handshake, sid, now_ns)
        })?
    };
    end.connected().await?;
    Ok(end)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Polling {
    async fn answer(&self, mut request: Request<Body>, upgrade: &Mutex<Option<Upgrade>>) -> Response<Full<Bytes>> {
        if request.uri().path().trim_end_matches('/') != PATH.trim_end_matches('/') {
            return plain(StatusCode::NOT_FOUND, "");
        }
        let query = request.uri().query().unwrap_or_default();
        let value = |key: &str| query.split('&').find_map(|pair| pair.strip_prefix(key)?.strip_prefix('='));
        if value("EIO") != Some("4") {
            return refused(5, "Unsupported protocol version");
        }
        let polled = match value("sid") {
            None => None,
            Some(sid) => match lock(&self.0).get(sid) {
                Some(polled) => Some(Arc::clone(polled)),
                None => return refused(1, "Session ID unknown"),
            },
        };
        match (value("transport"), polled, request.method()) {
            (Some("websocket"), polled, _) => {
                let upgraded = hyper::upgrade::on(&mut request);
                match create_response(&request.map(|_| ())) {
                    Ok(response) => {
                        *lock(upgrade) = Some(Upgrade { upgraded, polled });
                        response.map(|()| Full::default())
                    }
                    Err(_) => refused(3, "Bad request"),
                }
            }
            (Some("polling"), None, &Method::GET) => {
                self.open().unwrap_or_else(|_| plain(StatusCode::INTERNAL_SERVER_ERROR, ""))
            }
            (Some("polling"), Some(polled), &Method::GET) => polled.poll().await,
            (Some("polling"), Some(polled), &Method::POST) => polled.take(request.into_body()).await,
            (Some("polling"), _, _) => refused(2, "Bad handshake method"),
            _ => refused(0, "Transport unknown"),
        }
    }

    /// A new session.
    fn open(&self) -> Result<Response<Full<Bytes>>, TransportError> {
        let handshake = new_handshake(vec!["websocket".to_owned()])?;
        let open = handshake.to_json();
        let state = State {
            joined: false,
            inbox: Vec::new(),
            inbox_bytes: 0,
            outbox: Vec::new(),
            moving: false,
            moved: false,
            seen: Instant::now(),
        };
        let polled = Polled { socket_sid: new_sid()?, handshake, state: Mutex::new(state), changed: Notify::new() };
        let mut all = lock(&self.0);
        if all.len() >= MOST_POLLING {
            all.retain(|_, polled| lock(&polled.state).seen.elapsed() < FORGOTTEN);
        }
        if all.len() >= MOST_POLLING {
            return Ok(plain(StatusCode::SERVICE_UNAVAILABLE, ""));
        }
        all.insert(polled.handshake.sid.clone(), Arc::new(polled));
        Ok(packets(&[Packet::Open(&open)]))
    }
}

impl Polled {
    /// Waits until there is something to say, or until the client is to move.
    async fn poll(&self) -> Response<Full<Bytes>> {
        loop {
            let changed = self.changed.notified();
            {
                let mut state = lock(&self.state);
                state.seen = Instant::now();
                if !state.outbox.is_empty() {
                    let outbox = std::mem::take(&mut state.outbox);
                    let out: Vec<_> = outbox.iter().filter_map(|payload| Packet::parse(payload).ok()).collect();
                    return packets(&out);
                }
                if state.moving {
                    return packets(&[Packet::Noop]);
                }
            }
            changed.await;
        }
    }

    /// Takes what a client posts.
    async fn take(&self, body: Body) -> Response<Full<Bytes>> {
        let Ok(body) = Limited::new(body, LONGEST_INBOX).collect().await else {
            return plain(StatusCode::PAYLOAD_TOO_LARGE, "");
        };
        let body = body.to_bytes();
        let taken = std::str::from_utf8(&body).is_ok_and(|body| {
            let mut state = lock(&self.state);
            state.seen = Instant::now();
            decode_polling(body).all(|payload| payload.is_ok_and(|payload| state.take(payload, &self.socket_sid)))
        });
        self.changed.notify_waiters();
        if taken { plain(StatusCode::OK, "ok") } else { refused(3, "Bad request") }
    }

    /// Goes through the probe and takes the session over.
    async fn moved(&self, mut socket: Socket, kind: Kind) -> Result<End, TransportError> {
        let what = "cannot move a session to WebSocket";
        let unexpected = || TransportError::with(what, Outcome::Protocol, "another packet than expected");
        if text(&mut socket).await? != "2probe" {
            return Err(unexpected());
        }
        let mut answer = Some(outgoing(Bytes::from_static(b"3probe"), Kind::Text)?);
        poll_fn(|context| {
            if let Some(answer) = answer.take() {
                socket.queue(Half::Sending, context, answer)?;
            }
            socket.poll_flush(Half::Sending, context)
        })
        .await?;
        lock(&self.state).moving = true;
        self.changed.notify_waiters();
        if text(&mut socket).await? != "5" {
            return Err(unexpected());
        }
        let (joined, inbox, outbox) = {
            let mut state = lock(&self.state);
            if std::mem::replace(&mut state.moved, true) {
                return Err(unexpected());
            }
            (state.joined, std::mem::take(&mut state.inbox), std::mem::take(&mut state.outbox))
        };
        let mut end = End::new(Pipe::WebSocket(Box::new(socket)), kind, true, |now_ns| {
            let sid = self.socket_sid.clone();
            Session::server_upgrading(Over::WebSocket, self.handshake.clone(), sid, joined, now_ns)
        })?;
        // The state machine has yet to see what was said already, and not to answer it again.
        end.handle(&Payload::from("2probe"));
        end.skip_output();
        end.handle(&Payload::from("5"));
        end.send_first(outbox);
        for payload in &inbox {
            end.handle(payload);
        }
        Ok(end)
    }
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
            Ok(Packet::Message(_) | Packet::Binary(_)) if self.joined => {
                self.inbox_bytes += payload.as_bytes().len();
                self.inbox.push(payload);
                self.inbox_bytes <= LONGEST_INBOX
            }
            Ok(Packet::Pong(_) | Packet::Noop | Packet::Close) => true,
            _ => false,
        }
    }
}

async fn text(socket: &mut Socket) -> Result<String, TransportError> {
    let Incoming { bytes, .. } = poll_fn(|context| socket.poll_message(context, LONGEST_INBOX)).await?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn packets(packets: &[Packet<'_>]) -> Response<Full<Bytes>> {
    match encode_polling(packets) {
        Ok(body) => plain(StatusCode::OK, body),
        Err(_) => plain(StatusCode::INTERNAL_SERVER_ERROR, ""),
    }
}

/// What engine.io says to a request that it does not take.
fn refused(code: u8, message: &str) -> Response<Full<Bytes>> {
    let mut response = plain(StatusCode::BAD_REQUEST, format!("{{\"code\":{code},\"message\":\"{message}\"}}"));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn plain(status: StatusCode, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=UTF-8"));
    // Pages from anywhere may be clients.
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    response
}
