//! When messages are to be sent, in an open loop.

use crate::Sample;
use crate::client::Client;
use crate::context::Context;
use crate::exchange::Exchange;
use crosswind_transport::TransportError;
use crosswind_units::{Duration, Instant};

/// A message to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Due {
    pub number: u64,
    /// Stream or channel.
    pub stream: u32,
    pub connection: u32,
    /// When, after the start.
    pub after: Duration,
}

/// The common parts of a run's messages.
#[derive(Clone, Copy)]
pub struct Schedule {
    pub size: usize,
    pub start: Instant,
}

impl Schedule {
    /// Messages of `size` bytes, the first of them in a moment.
    pub fn starting_now(context: &Context<'_>, size: usize) -> Self {
        Self { size, start: context.clock().now() + Duration::from_millis(1) }
    }
}

impl Due {
    pub fn sample(&self) -> Sample {
        Sample { stream: self.stream, ..Sample::new(self.number, self.connection) }
    }

    /// The message was never sent, because of `error`.
    pub fn unsent(&self, client: &Client<'_>, error: &TransportError) -> Exchange {
        client.context.progress.exchange_done(None);
        Exchange::new(self.sample(), Err(error.clone()))
    }
}
