//! One connection's share of an echo, for either loop.

use crate::Sample;
use crate::config::Echo;
use crate::context::Context;
use crosswind_transport::{Connection, SocketReadback, Transport, TransportError};
use std::sync::OnceLock;
use std::time::Duration;

/// A sample, and where its connection came from: to find what the server saw.
pub struct Sent {
    pub sample: Sample,
    pub client_port: u16,
    pub tag: u64,
}

/// What one connection's thread works with.
pub struct Lane<'a> {
    pub config: &'a Echo,
    pub context: &'a Context<'a>,
    pub transport: &'static dyn Transport,
    pub timeout: Duration,
    pub connection: u32,
    pub readback: &'a OnceLock<SocketReadback>,
}

impl Lane<'_> {
    /// The numbers of this connection's messages: every `connections`-th of all.
    pub fn numbers(&self) -> impl Iterator<Item = u64> + use<> {
        (u64::from(self.connection)..self.config.messages).step_by(self.config.connections as usize)
    }

    /// Opens a connection; says how long it took.
    pub fn open(&self) -> Result<(Box<dyn Connection>, u64), TransportError> {
        let clock = self.context.clock();
        let before = clock.now();
        let connection = self.transport.connect(self.context.server_address(), &self.context.settings, self.timeout)?;
        let took = clock.now() - before;
        if self.readback.get().is_none()
            && let Ok(found) = connection.readback()
        {
            let _ = self.readback.set(found);
        }
        Ok((connection, took.as_nanos()))
    }
}
