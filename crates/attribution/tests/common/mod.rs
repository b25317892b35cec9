//! Shared by tests and the benchmark: Linux hosts without Nagle's algorithm and HTTP.

use crosswind_attribution::{Growth, Hosts};
use crosswind_ledger::HttpEnd;
use crosswind_units::Duration;

pub static NO_HTTP: [Vec<HttpEnd>; 2] = [Vec::new(), Vec::new()];
pub const HOSTS: Hosts = Hosts {
    promptness: Duration::from_micros(2),
    in_order: false,
    background: false,
    queues: [None, None],
    tail_loss_probes: true,
    slow_start_after_idle: true,
    nagle: false,
    growth: Some(Growth::Reno),
    pacing: false,
    initial_window: None,
    send_buffer: None,
    quic_packet_threshold: 3,
    quic_time_threshold: 9.0 / 8.0,
    quic_stream_window: 1 << 24,
    quic_connection_window: 1 << 26,
};
