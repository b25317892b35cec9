//! Sessions of Socket.IO that move from polling to WebSocket, against ends that follow a script: whatever is sent meanwhile, and
//! however it is sent, arrives once and in order. The official ends are tested in tests/peers.
#![allow(clippy::unwrap_used)] // helpers of tests, where a failure is a failed test

mod client;
mod server;

use crosswind_transport::Driver;
use std::future::Future;
use std::time::Duration;
use tokio::task::LocalSet;
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(30);

/// Runs a test, which ends in time, and what it spawns.
fn run<T>(test: impl Future<Output = T>) -> T {
    Driver::Reactor.run(async { timeout(PATIENCE, LocalSet::new().run_until(test)).await.unwrap() }).unwrap()
}
