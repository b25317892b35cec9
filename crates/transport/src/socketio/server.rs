//! The server over TCP: WebSocket at once, or HTTP long polling, which may move to it.
//!
//! A session that moves before its first message belongs to its new connection. Otherwise it belongs to its first
//! message's connection, whichever bring the others. A connection without a session ends without a stream.

use super::end::End;
use super::opening::{Accepting, PATH, new_handshake, new_sid};
use super::pipe::Pipe;
use super::polling_session::{PollingPipe, PollingSession, PollingSessions, Posted, Unclaimed};
use crate::TransportError;
use crate::error::Outcome;
use crate::runtime::shared::lock;
use crate::runtime::tasks::Tasks;
use crate::settings::Payload as PayloadKind;
use crate::websocket::{Socket, Upgrade};
use bytes::Bytes;
use crosswind_socketio::{Carrier, Packet, Payload, Session, decode_polling, encode_polling};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{ACCESS_CONTROL_ALLOW_ORIGIN, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio_tungstenite::tungstenite::Message;

const MAX_POLLING: usize = 1000;
/// A client's largest post in one request, bytes.
const MAX_POST_BYTES: usize = 16 << 20;
/// A session without a request for so long is over.
const MAX_IDLE: Duration = Duration::from_secs(45);

/// The results of a connection's requests.
#[derive(Default)]
struct Requested {
    /// A WebSocket: for a new session, or for a polling one.
    upgrade: Mutex<Option<(Upgrade, Option<Arc<PollingSession>>)>>,
    /// A polling session, now this connection's.
    claimed: Mutex<Option<Arc<PollingSession>>>,
    changed: Notify,
}

impl Requested {
    async fn claimed(&self) -> Arc<PollingSession> {
        loop {
            let changed = self.changed.notified();
            if let Some(session) = lock(&self.claimed).take() {
                return session;
            }
            changed.await;
        }
    }
}

/// Serves a connection's requests, until they lead to a session able to carry messages.
pub(super) async fn serve(
    tcp: TcpStream,
    sessions: Arc<PollingSessions>,
    accepting: Accepting,
) -> Result<End, TransportError> {
    let requested = Arc::new(Requested::default());
    let mut served = Box::pin({
        let (sessions, requested) = (Arc::clone(&sessions), Arc::clone(&requested));
        async move {
            let service = service_fn(|request| {
                let (sessions, requested) = (Arc::clone(&sessions), Arc::clone(&requested));
                async move { Ok::<_, Infallible>(sessions.answer(request, &requested, accepting).await) }
            });
            http1::Builder::new().serve_connection(TokioIo::new(tcp), service).with_upgrades().await
        }
    });
    let (session, tasks) = tokio::select! {
        biased;
        session = requested.claimed() => {
            // The connection may bring more requests, of this session and of others.
            let (sessions, mut tasks) = (Arc::clone(&sessions), Tasks::default());
            tasks.spawn(async move {
                let served = served.await;
                // A session moving here has its stream elsewhere; its client sees failures.
                let _ = upgrade(served, &requested, &sessions, accepting).await;
            });
            (session, Some(tasks))
        }
        served = &mut served => {
            // The last request may have brought a session.
            let claimed = lock(&requested.claimed).take();
            match claimed {
                Some(session) => (session, None),
                None => return upgrade(served, &requested, &sessions, accepting).await,
            }
        }
    };
    let pipe = Pipe::Polling(Box::new(PollingPipe::new(Arc::clone(&session), sessions)));
    let mut end = polling_end(pipe, accepting.kind, &session, true)?;
    if let Some(tasks) = tasks {
        end.hold(tasks);
    }
    end.connected().await?;
    Ok(end)
}

/// A connection's next role, after its requests.
async fn upgrade(
    served: hyper::Result<()>,
    requested: &Requested,
    sessions: &Arc<PollingSessions>,
    accepting: Accepting,
) -> Result<End, TransportError> {
    let what = "cannot accept a session";
    let upgrade = lock(&requested.upgrade).take();
    let Some((upgrade, session)) = upgrade else {
        return Err(match served {
            Err(e) if e.is_parse() || e.is_parse_too_large() => {
                TransportError::with(what, Outcome::Protocol, e.to_string())
            }
            _ => TransportError::closed(what),
        });
    };
    let socket = upgrade.socket(accepting.max_message_bytes).await?;
    let mut end = if let Some(session) = session {
        match move_session(&session, socket, accepting.kind).await {
            Ok(Some(end)) => {
                sessions.remove(&session.handshake.sid);
                end
            }
            Ok(None) => return Err(TransportError::closed("the session has its stream")),
            Err(_) if session.cancel_move() => {
                let pipe = Pipe::Polling(Box::new(PollingPipe::new(Arc::clone(&session), Arc::clone(sessions))));
                polling_end(pipe, accepting.kind, &session, true)?
            }
            Err(e) => return Err(e),
        }
    } else {
        let (handshake, sid) = (new_handshake(Vec::new(), accepting.max_message_bytes)?, new_sid()?);
        End::new(Pipe::WebSocket(Box::new(socket)), accepting.kind, true, |now_ns| {
            Session::server(Carrier::WebSocket, handshake, sid, now_ns)
        })?
    };
    end.connected().await?;
    Ok(end)
}

/// Answers the client's probe, and moves its session here. None if the session belongs to another connection, which
/// then gets the socket as well.
async fn move_session(
    session: &PollingSession,
    mut socket: Socket,
    kind: PayloadKind,
) -> Result<Option<End>, TransportError> {
    let unexpected = || {
        let cause = "another packet than expected";
        TransportError::with("cannot move a session to WebSocket", Outcome::Protocol, cause)
    };
    if receive_text(&mut socket).await? != "2probe" {
        return Err(unexpected());
    }
    poll_fn(|context| socket.poll_ready(context)).await?;
    socket.start_send(Message::text("3probe"))?;
    poll_fn(|context| socket.poll_flush(context)).await?;
    session.begin_move();
    if receive_text(&mut socket).await? != "5" {
        return Err(unexpected());
    }
    let Some(Unclaimed { joined, moved }) = session.finish_move(socket)? else { return Ok(None) };
    let mut end = polling_end(Pipe::WebSocket(moved.socket), kind, session, joined)?;
    end.resume(moved.unsent, &moved.received);
    Ok(Some(end))
}

async fn receive_text(socket: &mut Socket) -> Result<String, TransportError> {
    let message = poll_fn(|context| socket.poll_message(context)).await?;
    // No binary packet is expected here.
    Ok(message.into_text().map(|text| text.as_str().to_owned()).unwrap_or_default())
}

/// The end of a session begun by polling.
fn polling_end(pipe: Pipe, kind: PayloadKind, session: &PollingSession, joined: bool) -> Result<End, TransportError> {
    let mut end = End::new(pipe, kind, true, |now_ns| {
        let sid = session.socket_sid.clone();
        Session::server_upgrading(Carrier::WebSocket, session.handshake.clone(), sid, joined, now_ns)
    })?;
    // The state machine has yet to see packets already answered, and must not answer them again.
    end.handle(&Payload::from("2probe"));
    end.skip_output();
    end.handle(&Payload::from("5"));
    Ok(end)
}

impl PollingSessions {
    async fn answer(
        &self,
        request: Request<Incoming>,
        requested: &Requested,
        accepting: Accepting,
    ) -> Response<Full<Bytes>> {
        if request.uri().path().trim_end_matches('/') != PATH.trim_end_matches('/') {
            return text(StatusCode::NOT_FOUND, "");
        }
        let query = request.uri().query().unwrap_or_default();
        let value = |key: &str| query.split('&').find_map(|pair| pair.strip_prefix(key)?.strip_prefix('='));
        if value("EIO") != Some("4") {
            return refusal(5, "Unsupported protocol version");
        }
        let session = match value("sid") {
            None => None,
            Some(sid) => match lock(&self.0).get(sid) {
                Some(session) => Some(Arc::clone(session)),
                None => return refusal(1, "Session ID unknown"),
            },
        };
        match (value("transport"), session, request.method()) {
            (Some("websocket"), session, _) => match Upgrade::begin(request) {
                Ok((response, upgrade)) => {
                    *lock(&requested.upgrade) = Some((upgrade, session));
                    response.map(|()| Full::default())
                }
                Err(_) => refusal(3, "Bad request"),
            },
            (Some("polling"), None, &Method::GET) => {
                self.open(accepting.max_message_bytes).unwrap_or_else(|_| text(StatusCode::INTERNAL_SERVER_ERROR, ""))
            }
            (Some("polling"), Some(session), &Method::GET) => {
                let fetched = session.fetch().await;
                packets(&fetched.iter().filter_map(|payload| Packet::parse(payload).ok()).collect::<Vec<_>>())
            }
            (Some("polling"), Some(session), &Method::POST) => post(session, request.into_body(), requested).await,
            (Some("polling"), _, _) => refusal(2, "Bad handshake method"),
            _ => refusal(0, "Transport unknown"),
        }
    }

    /// A new session.
    fn open(&self, max_message_bytes: usize) -> Result<Response<Full<Bytes>>, TransportError> {
        let handshake = new_handshake(vec!["websocket".to_owned()], max_message_bytes)?;
        let open = handshake.to_json();
        let session = PollingSession::new(handshake, new_sid()?);
        let mut all = lock(&self.0);
        if all.len() >= MAX_POLLING {
            all.retain(|_, session| !session.is_idle(MAX_IDLE));
        }
        if all.len() >= MAX_POLLING {
            return Ok(text(StatusCode::SERVICE_UNAVAILABLE, ""));
        }
        all.insert(session.handshake.sid.clone(), Arc::new(session));
        Ok(packets(&[Packet::Open(&open)]))
    }
}

async fn post(session: Arc<PollingSession>, body: Incoming, requested: &Requested) -> Response<Full<Bytes>> {
    let Ok(body) = Limited::new(body, MAX_POST_BYTES).collect().await else {
        return text(StatusCode::PAYLOAD_TOO_LARGE, "");
    };
    let body = body.to_bytes();
    let payloads = std::str::from_utf8(&body).ok().and_then(|body| decode_polling(body).collect::<Result<_, _>>().ok());
    let posted = match payloads {
        Some(payloads) => session.post(payloads).await,
        None => Posted::Rejected,
    };
    match posted {
        Posted::Rejected => return refusal(3, "Bad request"),
        Posted::Claims => {
            *lock(&requested.claimed) = Some(session);
            requested.changed.notify_waiters();
        }
        Posted::Accepted => {}
    }
    text(StatusCode::OK, "ok")
}

fn packets(packets: &[Packet<'_>]) -> Response<Full<Bytes>> {
    match encode_polling(packets) {
        Ok(body) => text(StatusCode::OK, body),
        Err(_) => text(StatusCode::INTERNAL_SERVER_ERROR, ""),
    }
}

/// engine.io's answer to a rejected request.
fn refusal(code: u8, message: &str) -> Response<Full<Bytes>> {
    let mut response = text(StatusCode::BAD_REQUEST, format!("{{\"code\":{code},\"message\":\"{message}\"}}"));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn text(status: StatusCode, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=UTF-8"));
    // Pages from anywhere may be clients.
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    response
}
