//! A message, and the hosts it goes between.

use crosswind_ledger::Position;
use crosswind_path::Side;
use crosswind_units::{Duration, Instant};

/// The host properties needed to read the wire.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(clippy::struct_excessive_bools)] // independent settings
pub struct Hosts {
    /// How long a host takes at most to answer a packet at once.
    pub promptness: Duration,
    /// Whether packets are in the hosts' sending and receiving order: recorded by the kernel that carries them.
    pub in_order: bool,
    /// Whether the path carries more than the packets that are recorded: background traffic.
    pub background: bool,
    /// How many bytes may wait before each direction's slowest link; none where other rules drop packets.
    pub queues: [Option<u64>; 2],
    /// Whether TCP sends tail loss probes.
    pub tail_loss_probes: bool,
    /// Whether TCP's congestion window shrinks while it is idle.
    pub slow_start_after_idle: bool,
    /// Nagle's algorithm: small segments wait for acknowledgement of everything before.
    pub nagle: bool,
    /// Whether TCP's packets are sent at a pace: by its congestion control or by the device's queueing discipline.
    pub pacing: bool,
    /// TCP's congestion control, if it is known to a model.
    pub growth: Option<Growth>,
    /// TCP's initial window in segments, where it is set.
    pub initial_window: Option<u64>,
    /// The size of TCP's send buffers, where it is set: `SO_SNDBUF`. Else the kernel lets them grow with the window.
    pub send_buffer: Option<u64>,
    /// How many later packets have to arrive before QUIC takes one for lost.
    pub quic_packet_threshold: u32,
    /// For how many round trips a packet may be unacknowledged while later ones are, before QUIC takes it for lost.
    pub quic_time_threshold: f64,
    /// How many bytes QUIC takes on a stream before it says more.
    pub quic_stream_window: u64,
    /// The same for all streams together.
    pub quic_connection_window: u64,
}

/// A congestion window's growth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// RFC 5681.
    Reno,
    /// RFC 9438.
    Cubic,
}

/// A message on its way from one host to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageTransit {
    /// Its direction.
    pub side: Side,
    /// The client's port on its connection.
    pub client_port: u16,
    /// When it was handed over.
    pub written: Instant,
    /// When it was received whole.
    pub received: Instant,
    /// Its size, without transport overhead.
    pub bytes: u64,
    /// Its bytes on its connection, with transport overhead; none if to be found by time.
    pub position: Option<Position>,
    /// Whether it is the only one in flight on its connection.
    pub alone: bool,
    /// Whether only data received in time counts.
    pub timed: bool,
}
