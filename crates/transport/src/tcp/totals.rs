//! The kernel's counts for all TCP connections of one end together.

use crosswind_host::tcp_info;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use socket2::SockRef;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Sums over connections, each added when its end gives it up.
#[derive(Debug)]
pub struct TcpTotals {
    connections: AtomicU64,
    segments_sent: AtomicU64,
    retransmitted: AtomicU64,
    shortest_round_trip_ns: AtomicU64,
    busy_us: AtomicU64,
    receive_window_limited_us: AtomicU64,
    send_buffer_limited_us: AtomicU64,
}

/// The sums, to be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TcpReport {
    /// Connections.
    pub connections: u64,
    /// Segments with data that this end has sent, retransmitted ones included.
    pub segments_sent: u64,
    /// Segments that it has retransmitted, those of handshakes included.
    pub retransmitted: u64,
    /// The shortest round trip that its kernel has measured; null where it has measured none.
    pub shortest_round_trip_ns: Option<u64>,
    /// For how long something was in flight or to be sent.
    pub busy_ns: u64,
    /// Of that, for how long the receiver's window held it back.
    pub receive_window_limited_ns: u64,
    /// Of that, for how long nothing more was there to be sent because the send buffer was full.
    pub send_buffer_limited_ns: u64,
}

impl Default for TcpTotals {
    fn default() -> Self {
        Self {
            connections: AtomicU64::new(0),
            segments_sent: AtomicU64::new(0),
            retransmitted: AtomicU64::new(0),
            shortest_round_trip_ns: AtomicU64::new(u64::MAX),
            busy_us: AtomicU64::new(0),
            receive_window_limited_us: AtomicU64::new(0),
            send_buffer_limited_us: AtomicU64::new(0),
        }
    }
}

impl TcpTotals {
    /// Adds the kernel's counts for the connection on `socket`.
    pub(crate) fn add(&self, socket: &SockRef<'_>) {
        let Some(info) = tcp_info(socket.as_fd()) else { return };
        self.connections.fetch_add(1, Relaxed);
        self.segments_sent.fetch_add(info.segments_sent.into(), Relaxed);
        self.retransmitted.fetch_add(info.retransmitted.into(), Relaxed);
        self.busy_us.fetch_add(info.busy_us, Relaxed);
        self.receive_window_limited_us.fetch_add(info.receive_window_limited_us, Relaxed);
        self.send_buffer_limited_us.fetch_add(info.send_buffer_limited_us, Relaxed);
        if let Some(us) = info.shortest_round_trip_us {
            self.shortest_round_trip_ns.fetch_min(u64::from(us) * 1000, Relaxed);
        }
    }

    /// The sums so far; none without a connection.
    pub fn report(&self) -> Option<TcpReport> {
        let shortest = self.shortest_round_trip_ns.load(Relaxed);
        let report = TcpReport {
            connections: self.connections.load(Relaxed),
            segments_sent: self.segments_sent.load(Relaxed),
            retransmitted: self.retransmitted.load(Relaxed),
            shortest_round_trip_ns: (shortest != u64::MAX).then_some(shortest),
            busy_ns: self.busy_us.load(Relaxed) * 1000,
            receive_window_limited_ns: self.receive_window_limited_us.load(Relaxed) * 1000,
            send_buffer_limited_ns: self.send_buffer_limited_us.load(Relaxed) * 1000,
        };
        (report.connections > 0).then_some(report)
    }
}
