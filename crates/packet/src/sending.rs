//! A TCP sender's reasons, by its kernel (`kernel/files/include/net/tcp_hold.h`).

use crate::{Place, ThreadName, Timer, Waker};
use core::mem::offset_of;
use crosswind_units::{Instant, named};

named! {
/// A segment's last obstacle.
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
    /// The device refused it.
    Failed = "failed",
    /// A full send buffer, while the program had more.
    SendBuffer = "send_buffer",
}
}

named! {
/// The event behind a segment.
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
    /// The tail loss probe's timer.
    LossProbeTimer = "loss_probe_timer",
    /// The timer for reordered packets.
    ReorderingTimer = "reordering_timer",
    /// The persist timer, for a closed window.
    PersistTimer = "persist_timer",
    /// The keepalive timer.
    KeepaliveTimer = "keepalive_timer",
    /// A delayed acknowledgement's timer.
    DelayedAckTimer = "delayed_ack_timer",
    /// A compressed acknowledgement's timer.
    CompressedAckTimer = "compressed_ack_timer",
    /// The pace's timer.
    PacingTimer = "pacing_timer",
    /// The host's queues have room for the socket again.
    SmallQueue = "small_queue",
}
}

/// A segment's reasons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sending {
    /// The host's reason to act.
    pub trigger: Trigger,
    /// The last obstacle for the head of the queue: new bytes, or retransmissions.
    pub held_by: Option<Hold>,
    /// Its beginning; for a pure acknowledgement, the time it was due.
    pub held_since: Option<Instant>,
    /// The writes with its first and its last byte.
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

/// The same as `struct crosswind_sending`. Times are the kernel's, nanoseconds; 0: none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct RawSending {
    /// The obstacle's beginning.
    pub held_since: u64,
    /// The write with its first byte.
    pub written_first: u64,
    /// The write with its last byte.
    pub written_last: u64,
    /// A [`Hold`] as a number.
    pub held_by: u8,
    /// A [`Trigger`] as a number.
    pub triggered_by: u8,
    /// A [`Waker`] as a number.
    pub waker: u64,
    /// For a timer, the beginning of a time with timers alone as wakers.
    pub timers_since: u64,
    /// The thread's earlier waker.
    pub before_timers: u64,
    /// The thread's name.
    pub thread: ThreadName,
}

impl RawSending {
    /// From the struct's bytes; missing ones are 0.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        let word = |at: usize| {
            let word = bytes.get(at..at + 8).and_then(|it| it.try_into().ok());
            word.map_or(0, u64::from_ne_bytes)
        };
        let byte = |at: usize| bytes.get(at).copied().unwrap_or_default();
        let mut thread = ThreadName::default();
        let name = offset_of!(Self, thread);
        thread.0.iter_mut().zip(name..).for_each(|(letter, at)| *letter = byte(at));
        Self {
            held_since: word(offset_of!(Self, held_since)),
            written_first: word(offset_of!(Self, written_first)),
            written_last: word(offset_of!(Self, written_last)),
            held_by: byte(offset_of!(Self, held_by)),
            triggered_by: byte(offset_of!(Self, triggered_by)),
            waker: word(offset_of!(Self, waker)),
            timers_since: word(offset_of!(Self, timers_since)),
            before_timers: word(offset_of!(Self, before_timers)),
            thread,
        }
    }

    /// The struct's bytes for a delivered packet; its receiver's threads get the number `waker`.
    pub fn delivered(waker: u64) -> [u8; size_of::<Self>()] {
        let mut bytes = [0; size_of::<Self>()];
        let at = offset_of!(Self, waker);
        bytes[at..at + 8].copy_from_slice(&waker.to_ne_bytes());
        bytes
    }

    /// The same with the path's times, by `own`; none for other packets than TCP's.
    pub fn read(self, own: impl Fn(u64) -> Instant) -> Option<Sending> {
        let time = |at: u64| (at > 0).then(|| own(at));
        Some(Sending {
            trigger: Trigger::from_number(self.triggered_by)?,
            held_by: Hold::from_number(self.held_by),
            held_since: time(self.held_since),
            written: time(self.written_first).zip(time(self.written_last)),
        })
    }

    /// Its sender's waker, as far as known, with the path's times, by `own`.
    pub fn waker(self, own: impl Fn(u64) -> Instant) -> Option<Waker> {
        let since = (self.timers_since > 0).then(|| own(self.timers_since));
        let timer = Timer { thread: self.thread, since, before: Place::from_number(self.before_timers) };
        Waker::from_number(self.waker, timer)
    }
}
