//! Socket.IO sessions moving from polling to WebSocket, against scripted ends: everything sent meanwhile arrives once
//! and in order, however it is sent. The official ends are tested in tests/peers.
#![allow(clippy::unwrap_used)] // helpers of tests, where a failure is a failed test

mod client;
mod server;

use crosswind_transport::Driver;
use std::future::Future;
use std::time::Duration;
use tokio::task::LocalSet;
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(30);

/// Runs a test within a time limit, with its spawned tasks.
fn run<T>(test: impl Future<Output = T>) -> T {
    Driver::Reactor.run(async { timeout(PATIENCE, LocalSet::new().run_until(test)).await.unwrap() }).unwrap()
}
