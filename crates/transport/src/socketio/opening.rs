//! The parameters that open sessions.

use crate::error::Outcome;
use crate::settings::Payload;
use crate::websocket::max_message_bytes;
use crate::{Settings, TransportError};
use crosswind_socketio::Handshake;
use ring::rand::{SecureRandom, SystemRandom};
use std::fmt::{Display, Write};

/// Where Socket.IO's servers are by default.
pub const PATH: &str = "/socket.io/";
/// As in engine.io 6.
const PING_INTERVAL_MS: u64 = 25_000;
const PING_TIMEOUT_MS: u64 = 20_000;

/// For `map_err`: the other end does not keep to the protocol.
pub fn protocol_error<E: Display>(what: &'static str) -> impl Fn(E) -> TransportError {
    move |error| TransportError::with(what, Outcome::Protocol, error.to_string())
}

pub fn new_handshake(upgrades: Vec<String>, max_message_bytes: usize) -> Result<Handshake, TransportError> {
    Ok(Handshake {
        sid: new_sid()?,
        upgrades,
        ping_interval_ms: PING_INTERVAL_MS,
        ping_timeout_ms: PING_TIMEOUT_MS,
        max_payload_bytes: max_message_bytes as u64,
    })
}

/// An unguessable id.
pub fn new_sid() -> Result<String, TransportError> {
    let mut bytes = [0; 16];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| TransportError::with("cannot open a session", Outcome::Error, "no randomness"))?;
    Ok(bytes.iter().fold(String::new(), |mut sid, byte| {
        // Writing to a string does not fail.
        let _ = write!(sid, "{byte:02x}");
        sid
    }))
}

/// A server's settings for every connection.
#[derive(Clone, Copy)]
pub struct Accepting {
    /// The type of messages, until one was received.
    pub kind: Payload,
    pub max_message_bytes: usize,
}

impl Accepting {
    pub fn new(settings: &Settings) -> Self {
        Self { kind: settings.payload, max_message_bytes: max_message_bytes(settings) }
    }
}
