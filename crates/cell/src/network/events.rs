//! What a server of cells for other machines prints.

use crate::event::write_line;
use serde::Serialize;
use std::io;
use std::net::SocketAddr;
use std::sync::Mutex;

/// What is printed, one JSON object a line.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum ListenEvent {
    /// Clients can connect.
    Listening { address: SocketAddr, data_port: u16 },
    /// Somebody was turned away.
    Refused { peer: SocketAddr, reason: String },
    /// A client's cell has begun.
    CellStarted { peer: SocketAddr, id: String, workload: String, transport: String },
    /// It has ended.
    CellEnded {
        peer: SocketAddr,
        id: String,
        outcome: String,
        seconds: f64,
        connections: u64,
        received_bytes: u64,
        sent_bytes: u64,
    },
}

/// Prints events, from any thread.
#[derive(Debug)]
pub struct Events(Mutex<io::Stdout>);

impl Default for Events {
    fn default() -> Self {
        Self(Mutex::new(io::stdout()))
    }
}

impl Events {
    /// Prints an event. Where that fails there is nobody left to read it.
    pub fn say(&self, event: &ListenEvent) {
        if let Ok(mut output) = self.0.lock() {
            let _ = write_line(&mut *output, event);
        }
    }
}
