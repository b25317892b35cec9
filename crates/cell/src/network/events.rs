//! The output of a server of cells for other machines.

use super::unauthenticated::{LOG_WINDOW, RefusalLog};
use crate::event::write_line;
use serde::Serialize;
use std::io;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::time::Instant;

/// An output line, one JSON object each.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum ListenEvent {
    /// Clients can connect.
    Listening { address: SocketAddr, data_port: u16 },
    /// Somebody was turned away.
    Refused { peer: SocketAddr, reason: String },
    /// So many others were, in the last seconds.
    RefusedMore { count: u64, seconds: u64 },
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
pub struct Events {
    output: Mutex<io::Stdout>,
    refusals: Mutex<RefusalLog>,
}

impl Default for Events {
    fn default() -> Self {
        Self { output: Mutex::new(io::stdout()), refusals: Mutex::new(RefusalLog::new(Instant::now())) }
    }
}

impl Events {
    /// Prints an event. On failure nobody is left to read it.
    pub fn say(&self, event: &ListenEvent) {
        if let Ok(mut output) = self.output.lock() {
            let _ = write_line(&mut *output, event);
        }
    }

    /// Somebody was turned away: a line, unless there are many.
    pub fn say_refused(&self, peer: SocketAddr, reason: String) {
        if self.refusals.lock().is_ok_and(|mut log| log.handle_refusal(peer.ip())) {
            self.say(&ListenEvent::Refused { peer, reason });
        }
    }

    /// Says how many were turned away without a line. It is called every now and then.
    pub fn say_left_out(&self) {
        let left_out = self.refusals.lock().ok().and_then(|mut log| log.poll_left_out(Instant::now()));
        if let Some(count) = left_out {
            self.say(&ListenEvent::RefusedMore { count, seconds: LOG_WINDOW.as_secs() });
        }
    }
}
