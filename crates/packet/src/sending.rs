//! What a sender's kernel knows about why it sent a TCP segment when it did (`kernel/files/include/net/tcp_hold.h`).

use crosswind_units::{Instant, named};

named! {
/// What kept a segment from being sent last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Hold {
    /// The receiver's window.
    ReceiveWindow = "receive_window",
    /// The congestion window.
    CongestionWindow = "congestion_window",
    /// Nagle's algorithm.
    Nagle = "nagle",
    /// The program's wish: `TCP_CORK` or `MSG_MORE`.
    Cork = "cork",
    /// The pace.
    Pacing = "pacing",
    /// Its own packets in the host's queues: TCP small queues, and automatic corking.
    SmallQueue = "small_queue",
    /// Waiting for more, to send it at once.
    TsoDeferral = "tso_deferral",
    /// Waiting for enough data to probe a larger packet.
    MtuProbe = "mtu_probe",
    /// The device did not take it.
    Failed = "failed",
    /// A full send buffer, while the program had more.
    SendBuffer = "send_buffer",
}
}

named! {
/// What a host acted upon when it sent a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Trigger {
    /// Its program wrote.
    Write = "write",
    /// Its program read.
    Read = "read",
    /// Its program closed the connection.
    Close = "close",
    /// A packet came.
    Packet = "packet",
    /// The retransmission timer.
    RetransmissionTimer = "retransmission_timer",
    /// The timer of the tail loss probe.
    LossProbeTimer = "loss_probe_timer",
    /// The timer that gives reordered packets time.
    ReorderingTimer = "reordering_timer",
    /// The timer that asks a closed window.
    PersistTimer = "persist_timer",
    /// The keepalive timer.
    KeepaliveTimer = "keepalive_timer",
    /// The timer of a delayed acknowledgement.
    DelayedAckTimer = "delayed_ack_timer",
    /// The timer of a compressed acknowledgement.
    CompressedAckTimer = "compressed_ack_timer",
    /// The timer of the pace.
    PacingTimer = "pacing_timer",
    /// The host's queues have room for the socket again.
    SmallQueue = "small_queue",
}
}

/// Why a segment was sent when it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sending {
    /// What the host acted upon.
    pub trigger: Trigger,
    /// What had kept the head of its queue from being sent: of the new bytes, or of those to be sent again.
    pub held_by: Option<Hold>,
    /// Since when; of a pure acknowledgement, since when it was due.
    pub held_since: Option<Instant>,
    /// When its program wrote its first bytes, and the last.
    pub written: Option<(Instant, Instant)>,
}

impl Hold {
    /// As the kernel numbers it; none for 0.
    pub const fn from_number(number: u8) -> Option<Self> {
        Some(match number {
            1 => Self::ReceiveWindow,
            2 => Self::CongestionWindow,
            3 => Self::Nagle,
            4 => Self::Cork,
            5 => Self::Pacing,
            6 => Self::SmallQueue,
            7 => Self::TsoDeferral,
            8 => Self::MtuProbe,
            9 => Self::Failed,
            10 => Self::SendBuffer,
            _ => return None,
        })
    }
}

impl Trigger {
    /// As the kernel numbers it; none for 0.
    pub const fn from_number(number: u8) -> Option<Self> {
        Some(match number {
            1 => Self::Write,
            2 => Self::Read,
            3 => Self::Close,
            4 => Self::Packet,
            5 => Self::RetransmissionTimer,
            6 => Self::LossProbeTimer,
            7 => Self::ReorderingTimer,
            8 => Self::PersistTimer,
            9 => Self::KeepaliveTimer,
            10 => Self::DelayedAckTimer,
            11 => Self::CompressedAckTimer,
            12 => Self::PacingTimer,
            13 => Self::SmallQueue,
            _ => return None,
        })
    }
}

/// A segment's facts as the kernel hands them over: `struct crosswind_sending`. Times are the kernel's, nanoseconds; 0: none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct RawSending {
    /// Since when it was held back.
    pub held_since: u64,
    /// When its program wrote its first bytes.
    pub written_first: u64,
    /// And its last.
    pub written_last: u64,
    /// A [`Hold`] as a number.
    pub held_by: u8,
    /// A [`Trigger`] as a number.
    pub triggered_by: u8,
}

impl RawSending {
    /// The same with the path's times, by `own`; none of other packets than TCP's.
    pub fn read(self, own: impl Fn(u64) -> Instant) -> Option<Sending> {
        let time = |at: u64| (at > 0).then(|| own(at));
        Some(Sending {
            trigger: Trigger::from_number(self.triggered_by)?,
            held_by: Hold::from_number(self.held_by),
            held_since: time(self.held_since),
            written: time(self.written_first).zip(time(self.written_last)),
        })
    }
}
