//! The server's machine: it listens for clients with the token, and serves one at a time.

use super::control::{BUSY_LIMIT, Control, PROTOCOL, boot_id, notice_silence};
use super::events::{Events, ListenEvent};
use super::messages::{FromClient, FromServer};
use super::serve::{Limits, Session};
use super::token::{End, Token};
use super::unauthenticated::{LOG_WINDOW, Unauthenticated};
use crate::{CellError, ErrorKind, spawn};
use crosswind_host::sysctl;
use crosswind_transport::Resumption;
use crosswind_transport::security::Security;
use serde::Deserialize;
use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A client's time limit for proving the token: a few round trips, and a segment lost twice.
const PROOF_LIMIT: Duration = Duration::from_secs(5);
/// The polling interval of a client waiting for its turn.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// The command line's request.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    address: SocketAddr,
    data_port: u16,
    #[serde(default)]
    limits: Limits,
}

/// State shared by all clients' threads.
struct Host {
    token: Token,
    tls: Arc<rustls::ServerConfig>,
    limits: Limits,
    data_port: u16,
    /// Held by the client being served.
    turn: Mutex<()>,
    /// The name its further connections give; they need no turn.
    group: Mutex<Vec<u8>>,
    unauthenticated: Mutex<Unauthenticated<TcpStream>>,
    events: Events,
}

/// Listens until a signal ends the process, or nobody reads its events any more.
pub fn listen(text: &str) -> Result<(), CellError> {
    let wanted: Wanted = serde_json::from_str(text).map_err(|error| {
        CellError::bad_cell(format!("the argument is not what it should be: {error}")).hint("docs/two-hosts.md")
    })?;
    let tls = Security::new()
        .and_then(|own| own.server(&[PROTOCOL], Resumption::None, false))
        .map_err(|e| CellError::internal(e.to_string()))?;
    let host = Arc::new(Host {
        token: Token::from_environment()?,
        tls: Arc::new(tls),
        limits: wanted.limits,
        data_port: wanted.data_port,
        turn: Mutex::default(),
        group: Mutex::default(),
        unauthenticated: Mutex::default(),
        events: Events::default(),
    });
    let listener = bind(wanted.address)?;
    try_data_port(wanted.address, wanted.data_port)?;
    let address = listener.local_addr().map_err(|e| cannot_listen(wanted.address, &e))?;
    let counting = Arc::clone(&host);
    spawn("log", move || {
        loop {
            std::thread::sleep(LOG_WINDOW);
            counting.events.say_left_out();
        }
    })?;
    host.events.say(&ListenEvent::Listening { address, data_port: wanted.data_port });
    loop {
        // A vanished client, or no descriptors: the next one may fare better.
        let Ok((socket, peer)) = listener.accept() else {
            std::thread::sleep(LOOK_INTERVAL);
            continue;
        };
        let Ok(ending) = socket.try_clone() else { continue };
        let (number, gone) = host.unauthenticated().add(peer.ip(), ending);
        if let Some(oldest) = gone {
            // Its thread sees the end.
            let _ = oldest.shutdown(Shutdown::Both);
        }
        let receiving = Arc::clone(&host);
        // At a process limit: the next one may fare better, too.
        if let Err(error) = spawn("client", move || receiving.receive_client(socket, peer, number)) {
            host.unauthenticated().remove(number);
            host.events.say_refused(peer, error.message);
            std::thread::sleep(LOOK_INTERVAL);
        }
    }
}

fn bind(address: SocketAddr) -> Result<TcpListener, CellError> {
    TcpListener::bind(address).map_err(|e| cannot_listen(address, &e))
}

/// Whether the measured transports' port is free: an error now, rather than in every cell.
fn try_data_port(address: SocketAddr, port: u16) -> Result<(), CellError> {
    let address = SocketAddr::new(address.ip(), port);
    bind(address)?;
    std::net::UdpSocket::bind(address).map(drop).map_err(|e| cannot_listen(address, &e))
}

fn cannot_listen(address: SocketAddr, cause: &io::Error) -> CellError {
    CellError::new(ErrorKind::Host, format!("cannot listen on {address}: {cause}"))
        .hint("another program may have the port: choose other ones with --port and --data-port")
}

/// A client with the token.
struct Proven {
    control: Control,
    /// The server's own.
    proof: Vec<u8>,
    /// The name for its further connections.
    group: Vec<u8>,
    /// For a further connection: the group of the client it serves.
    joins: Option<Vec<u8>>,
}

impl Host {
    /// A client from its first byte to its last.
    fn receive_client(&self, socket: TcpStream, peer: SocketAddr, number: u64) {
        let proven = self.prove(socket);
        self.unauthenticated().remove(number);
        let Proven { mut control, proof, group, joins } = match proven {
            Ok(proven) => proven,
            Err(reason) => return self.events.say_refused(peer, reason),
        };
        let turn = if let Some(served) = joins {
            if *self.group() != served {
                return self.refuse(peer, &mut control, "the client whose flow this is has gone");
            }
            None
        } else {
            let Some(turn) = self.wait_for_turn() else {
                let message = "the server measures for another client, and still did after 30 s";
                return self.refuse(peer, &mut control, message);
            };
            Some(turn)
        };
        if turn.is_some() {
            *self.group() = group;
        }
        let hello = FromServer::Hello {
            version: env!("CARGO_PKG_VERSION").into(),
            proof,
            kernel: sysctl::get("kernel.osrelease").unwrap_or_default(),
            boot_id: boot_id(),
        };
        if control.send(&hello).is_ok() {
            let Self { events, limits, data_port, .. } = self;
            Session { events, limits: *limits, data_port: *data_port, peer, control }.run();
        }
        if turn.is_some() {
            self.group().clear();
        }
    }

    fn refuse(&self, peer: SocketAddr, control: &mut Control, message: &str) {
        self.events.say_refused(peer, message.into());
        let (kind, message, hint) = (ErrorKind::Network, message.to_owned(), Some("try again later".into()));
        let _ = control.send(&FromServer::Refused { kind, message, hint });
    }

    fn group(&self) -> MutexGuard<'_, Vec<u8>> {
        self.group.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn unauthenticated(&self) -> MutexGuard<'_, Unauthenticated<TcpStream>> {
        self.unauthenticated.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A client with the token; or the reason for refusing it.
    fn prove(&self, socket: TcpStream) -> Result<Proven, String> {
        let words = |e: &io::Error| format!("no proof of the token: {e}");
        let until = Instant::now() + PROOF_LIMIT;
        notice_silence(&socket).map_err(|e| words(&e))?;
        let (mut control, material) =
            Control::accept(socket, Arc::clone(&self.tls), PROOF_LIMIT).map_err(|e| words(&e))?;
        let first = control.receive(until.saturating_duration_since(Instant::now())).map_err(|e| words(&e))?;
        let Some(FromClient::Hello { version, proof, group: joins }) = first else {
            return Err("no proof of the token".into());
        };
        let mut refuse = |message: String, hint: &str| {
            let kind = ErrorKind::Network;
            let _ = control.send(&FromServer::Refused { kind, message: message.clone(), hint: Some(hint.into()) });
            Err(message)
        };
        if !self.token.is_proven(End::Client, &material, &proof) {
            return refuse(
                "the token is wrong".into(),
                "crosswind serve prints the right one when it starts; --token-file names a file that has it",
            );
        }
        if version != env!("CARGO_PKG_VERSION") {
            let own = env!("CARGO_PKG_VERSION");
            let message = format!("the server is Crosswind {own}, the client is {version}");
            return refuse(message, "install the same version on both machines");
        }
        control.trust();
        let proof = self.token.prove(End::Server, &material);
        Ok(Proven { control, proof, group: self.token.group(&material), joins })
    }

    fn wait_for_turn(&self) -> Option<MutexGuard<'_, ()>> {
        let until = Instant::now() + BUSY_LIMIT;
        loop {
            match self.turn.try_lock() {
                Ok(turn) => return Some(turn),
                // Whoever panicked is not being served any more.
                Err(std::sync::TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
                Err(std::sync::TryLockError::WouldBlock) if Instant::now() < until => std::thread::sleep(LOOK_INTERVAL),
                Err(std::sync::TryLockError::WouldBlock) => return None,
            }
        }
    }
}
