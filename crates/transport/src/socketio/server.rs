//! The server over TCP: WebSocket at once, or HTTP long polling, which may move to it.
//!
//! A session that moves before it says anything belongs to the connection it moves to. Otherwise it belongs to the one by which
//! its first message comes, whichever brings the others. A connection to which no session belongs ends as one without a stream.

use super::end::{Background, End};
use super::pipe::Pipe;
use super::polled::{Brought, Polled, Polling, Requests};
use super::{PATH, new_handshake, new_sid, unspoken};
use crate::TransportError;
use crate::error::Outcome;
use crate::runtime::halves::Half;
use crate::settings::Payload as Kind;
use crate::tcp::nonblocking;
use crate::websocket::{Carrier, Incoming, Socket};
use bytes::Bytes;
use crosswind_socketio::{Carrier as Over, Packet, Payload, Session, decode_polling, encode_polling};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming as Body;
use hyper::header::{ACCESS_CONTROL_ALLOW_ORIGIN, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio_tungstenite::tungstenite::handshake::server::create_response;

/// Sessions that poll at once, and what a client may say in one request or before it moves on, bytes.
const MOST_POLLING: usize = 1000;
const LONGEST_POST: usize = 16 << 20;
const LONGEST_PROBE: usize = 1 << 10;
/// A session that has not asked for anything for so long is over.
const FORGOTTEN: Duration = Duration::from_secs(45);

/// What the requests on a connection lead to.
#[derive(Default)]
struct Door {
    upgrade: Mutex<Option<Upgrade>>,
    begun: Mutex<Option<Arc<Polled>>>,
    changed: Notify,
}

/// What a WebSocket is to carry: a new session, or one that polls.
struct Upgrade {
    upgraded: OnUpgrade,
    polled: Option<Arc<Polled>>,
}

impl Door {
    /// Waits for a session that begins by polling.
    async fn begun(&self) -> Arc<Polled> {
        loop {
            let changed = self.changed.notified();
            if let Some(polled) = lock(&self.begun).take() {
                return polled;
            }
            changed.await;
        }
    }
}

/// Serves what comes on one connection, up to a session that can carry messages.
pub(super) async fn serve(stream: TcpStream, polling: &Arc<Polling>, kind: Kind) -> Result<End, TransportError> {
    let readback = nonblocking::readback(&stream)?;
    let door = Arc::new(Door::default());
    let (all, to) = (Arc::clone(polling), Arc::clone(&door));
    let mut served = Box::pin(async move {
        let service = service_fn(|request| {
            let (all, to) = (Arc::clone(&all), Arc::clone(&to));
            async move { Ok::<_, Infallible>(all.answer(request, &to).await) }
        });
        http1::Builder::new().serve_connection(TokioIo::new(stream), service).with_upgrades().await
    });
    let (polled, ended) = tokio::select! {
        biased;
        polled = door.begun() => (polled, false),
        // The last request may have begun a session.
        served = &mut served => {
            let begun = lock(&door.begun).take();
            match begun {
                Some(polled) => (polled, true),
                None => return upgrade(served, &door, polling, kind).await,
            }
        }
    };
    let pipe = Pipe::Requests(Box::new(Requests::new(Arc::clone(&polled), Arc::clone(polling), readback)));
    let mut end = polled_end(pipe, kind, &polled, true)?;
    if !ended {
        // It may bring more requests, of this session and of others.
        let all = Arc::clone(polling);
        let serving = tokio::spawn(async move {
            let served = served.await;
            let _ = upgrade(served, &door, &all, kind).await;
        });
        end.hold(Background(serving.abort_handle()));
    }
    end.connected().await?;
    Ok(end)
}

/// What becomes of a connection after its requests.
async fn upgrade(served: hyper::Result<()>, door: &Door, polling: &Polling, kind: Kind) -> Result<End, TransportError> {
    let what = "cannot accept a session";
    let Some(Upgrade { upgraded, polled }) = lock(&door.upgrade).take() else {
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
        let moved = moved(&polled, socket, kind).await;
        if moved.is_err() {
            polled.give_up_move();
        }
        let Some(end) = moved? else {
            return Err(TransportError::closed("the session has its stream"));
        };
        polling.forget(&polled.handshake.sid);
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

/// Goes through the probe. Returns the session, unless somebody has it, who then has the socket as well.
async fn moved(polled: &Polled, mut socket: Socket, kind: Kind) -> Result<Option<End>, TransportError> {
    let what = "cannot move a session to WebSocket";
    let unexpected = || TransportError::with(what, Outcome::Protocol, "another packet than expected");
    if text(&mut socket).await? != "2probe" {
        return Err(unexpected());
    }
    let mut answer = Some(b"3probe");
    poll_fn(|context| {
        if let Some(answer) = answer.take() {
            socket.queue(Half::Sending, context, answer, Kind::Text)?;
        }
        socket.poll_flush(Half::Sending, context)
    })
    .await?;
    polled.begin_move();
    if text(&mut socket).await? != "5" {
        return Err(unexpected());
    }
    let Some(unclaimed) = polled.finish_move(socket)? else { return Ok(None) };
    let mut end = polled_end(Pipe::WebSocket(Box::new(unclaimed.socket)), kind, polled, unclaimed.joined)?;
    end.send_first(unclaimed.outbox);
    for payload in &unclaimed.inbox {
        end.handle(payload);
    }
    Ok(Some(end))
}

/// The end of a session that began by polling.
fn polled_end(pipe: Pipe, kind: Kind, polled: &Polled, joined: bool) -> Result<End, TransportError> {
    let mut end = End::new(pipe, kind, true, |now_ns| {
        let sid = polled.socket_sid.clone();
        Session::server_upgrading(Over::WebSocket, polled.handshake.clone(), sid, joined, now_ns)
    })?;
    // The state machine has yet to see what was said already, and not to answer it again.
    end.handle(&Payload::from("2probe"));
    end.skip_output();
    end.handle(&Payload::from("5"));
    Ok(end)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Polling {
    async fn answer(&self, mut request: Request<Body>, door: &Door) -> Response<Full<Bytes>> {
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
                        *lock(&door.upgrade) = Some(Upgrade { upgraded, polled });
                        response.map(|()| Full::default())
                    }
                    Err(_) => refused(3, "Bad request"),
                }
            }
            (Some("polling"), None, &Method::GET) => {
                self.open().unwrap_or_else(|_| plain(StatusCode::INTERNAL_SERVER_ERROR, ""))
            }
            (Some("polling"), Some(polled), &Method::GET) => {
                let told = polled.told().await;
                packets(&told.iter().filter_map(|payload| Packet::parse(payload).ok()).collect::<Vec<_>>())
            }
            (Some("polling"), Some(polled), &Method::POST) => take(polled, request.into_body(), door).await,
            (Some("polling"), _, _) => refused(2, "Bad handshake method"),
            _ => refused(0, "Transport unknown"),
        }
    }

    /// A new session.
    fn open(&self) -> Result<Response<Full<Bytes>>, TransportError> {
        let handshake = new_handshake(vec!["websocket".to_owned()])?;
        let open = handshake.to_json();
        let polled = Polled::new(handshake, new_sid()?);
        let mut all = lock(&self.0);
        if all.len() >= MOST_POLLING {
            all.retain(|_, polled| !polled.is_forgotten(FORGOTTEN));
        }
        if all.len() >= MOST_POLLING {
            return Ok(plain(StatusCode::SERVICE_UNAVAILABLE, ""));
        }
        all.insert(polled.handshake.sid.clone(), Arc::new(polled));
        Ok(packets(&[Packet::Open(&open)]))
    }
}

/// Takes what a client posts.
async fn take(polled: Arc<Polled>, body: Body, door: &Door) -> Response<Full<Bytes>> {
    let Ok(body) = Limited::new(body, LONGEST_POST).collect().await else {
        return plain(StatusCode::PAYLOAD_TOO_LARGE, "");
    };
    let body = body.to_bytes();
    let payloads = std::str::from_utf8(&body).ok().and_then(|body| decode_polling(body).collect::<Result<_, _>>().ok());
    let brought = match payloads {
        Some(payloads) => polled.take(payloads).await,
        None => Brought::Wrong,
    };
    match brought {
        Brought::Wrong => return refused(3, "Bad request"),
        Brought::First => {
            *lock(&door.begun) = Some(polled);
            door.changed.notify_waiters();
        }
        Brought::Nothing => {}
    }
    plain(StatusCode::OK, "ok")
}

async fn text(socket: &mut Socket) -> Result<String, TransportError> {
    Ok(match poll_fn(|context| socket.poll_message(context, LONGEST_PROBE)).await? {
        Incoming::Text(text) => text,
        // No packet that is expected then.
        Incoming::Binary(_) => String::new(),
    })
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
