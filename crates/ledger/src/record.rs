//! A packet's record: headers, entry, due time, departure, and fate.

use crate::table::Values::{Length, Text, Time, U8, U16, U32, U64};
use crate::{Column, Headers, Hold, Place, Row, Sending, Table, Timer, Waker};
use crosswind_path::{Cause, Side, TimeSpent};
use crosswind_units::{Bytes, Duration, Instant};

/// A packet, from its entry to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketRecord {
    /// Its direction.
    pub side: Side,
    /// Its position in that direction, from 0.
    pub index: u64,
    /// 0, or the copy's number if the path made it.
    pub copy: u16,
    /// The bit the path flipped, counted from the first.
    pub flipped_bit: Option<u32>,
    /// Its size on the IP layer.
    pub size: Bytes,
    /// Its headers.
    pub headers: Headers,
    /// Why its sender sent it when it did, if its kernel said so.
    pub sending: Option<Sending>,
    /// Its sender's waker, likewise.
    pub waker: Option<Waker>,
    /// When it entered the path.
    pub entered: Instant,
    /// When it was due to leave, or was dropped: the path's nominal time.
    pub due: Instant,
    /// The time from `entered` to `due`, by cause.
    pub spent: TimeSpent,
    /// The hop that marked it (ECN), if any.
    pub marked_in: Option<u8>,
    /// Its last hop.
    pub hop: u8,
    /// When it was written to the receiver's device; `None` if it never was.
    pub left: Option<Instant>,
    /// Its fate.
    pub verdict: Verdict,
}

impl PacketRecord {
    /// A packet in the path since `entered`, with a header of 40 bytes before its payload.
    pub fn new(side: Side, index: u64, entered: Instant, headers: Headers) -> Self {
        Self {
            side,
            index,
            copy: 0,
            flipped_bit: None,
            size: Bytes(u64::from(headers.payload_bytes) + 40),
            headers,
            sending: None,
            waker: None,
            entered,
            due: entered,
            spent: TimeSpent::default(),
            marked_in: None,
            hop: 0,
            left: None,
            verdict: Verdict::Queued,
        }
    }
}

/// `packets.arrow`.
pub type PacketTable<W> = Table<PacketRecord, W>;

/// Written when the packet's fate is known, so in the order of leaving; `direction` and `index` give the order of
/// entering.
impl Row for PacketRecord {
    const TABLE: &'static str = "the packet table";

    const COLUMNS: &'static [Column<Self>] = &[
        Column::required("direction", Text(|row| Some(row.side.name())), "forward or reverse."),
        Column::required("index", U64(|row| Some(row.index)), "Its position in its direction, from 0."),
        Column::required("copy", U16(|row| Some(row.copy)), "0, or the number of the copy that the path made of it."),
        Column::optional(
            "flipped_bit",
            U32(|row| row.flipped_bit),
            "The bit that the path flipped, from its first one, 0.",
        ),
        Column::required(
            "size_bytes",
            U32(|row| Some(u32::try_from(row.size.0).unwrap_or(u32::MAX))),
            "Its size on the IP layer.",
        ),
        Column::required("protocol", U8(|row| Some(row.headers.protocol)), "IP protocol number."),
        Column::required("source_port", U16(|row| Some(row.headers.source_port)), "Port of its sender."),
        Column::required("destination_port", U16(|row| Some(row.headers.destination_port)), "Port of its receiver."),
        Column::required("payload_bytes", U32(|row| Some(row.headers.payload_bytes)), "What is behind its headers."),
        Column::required("in_ns", Time(|row| Some(row.entered)), "When it entered the path."),
        Column::required("due_ns", Time(|row| Some(row.due)), "When it was due to leave the path, or was dropped."),
        Column::optional("out_ns", Time(|row| row.left), "When it was written to the receiver's device."),
        Column::required(
            "verdict",
            Text(|row| Some(row.verdict.name())),
            "delivered, dropped, or queued: still in the path when the cell ended.",
        ),
        Column::optional(
            "cause",
            Text(|row| row.verdict.cause().map(DropCause::name)),
            "What dropped it: an element's cause, or device.",
        ),
        Column::required(
            "propagation_ns",
            Length(|row| ns(row.spent.propagation)),
            "Of its time until due, in flight.",
        ),
        Column::required(
            "serialisation_ns",
            Length(|row| ns(row.spent.serialisation)),
            "Of its time until due, being put on the wire.",
        ),
        Column::required(
            "queueing_ns",
            Length(|row| ns(row.spent.queueing)),
            "Of its time until due, waiting behind other packets.",
        ),
        Column::required(
            "jitter_ns",
            Length(|row| ns(row.spent.jitter)),
            "Of its time until due, otherwise held back.",
        ),
        Column::required(
            "marked",
            U8(|row| Some(row.marked_in.is_some().into())),
            "1 where the path has marked it (ECN: congestion experienced), else 0.",
        ),
        Column::optional(
            "hop",
            U8(|row| row.stopped_in().or(row.marked_in)),
            "The hop that dropped it or, where none did, marked it. The client's hop is 0.",
        ),
        Column::optional(
            "trigger",
            Text(|row| row.sending.map(|it| it.trigger.name())),
            "What its sender acted upon, where its kernel says so: of TCP, in virtual time.",
        ),
        Column::optional(
            "held_by",
            Text(|row| row.sending.and_then(|it| it.held_by).map(Hold::name)),
            "What had kept the head of its sender's queue from being sent, likewise.",
        ),
        Column::optional(
            "held_since_ns",
            Time(|row| row.sending.and_then(|it| it.held_since)),
            "Since when, likewise; of a pure acknowledgement, since when it was due.",
        ),
        Column::optional(
            "written_ns",
            Time(|row| row.sending.and_then(|it| it.written).map(|it| it.1)),
            "When its program had written its last byte, likewise.",
        ),
        Column::optional(
            "woken_by",
            Text(|row| row.waker.map(|it| if matches!(it, Waker::Packet(..)) { "packet" } else { "timer" })),
            "What its sender's thread acted upon, where its kernel says so (in virtual time), through other threads as well: a packet, or a timer.",
        ),
        Column::optional(
            "woken_by_direction",
            Text(|row| row.woken_by_packet().map(|it| it.0.name())),
            "Of a packet, its direction; of a timer, that of the packet that its thread had acted upon before.",
        ),
        Column::optional(
            "woken_by_index",
            U64(|row| row.woken_by_packet().map(|it| it.1)),
            "The packet's position in that direction.",
        ),
        Column::optional(
            "woken_thread",
            Text(|row| row.timer().map(|it| it.thread.as_str())),
            "Of a timer, the thread that it woke.",
        ),
        Column::optional(
            "slept_since_ns",
            Time(|row| row.timer().and_then(|it| it.since)),
            "When that thread went to sleep: the first time, if several timers woke it in a row.",
        ),
    ];
}

impl PacketRecord {
    /// Its sender's waking packet, if any: directly, or before a sleep.
    pub fn woken_by_packet(&self) -> Option<Place> {
        match self.waker? {
            Waker::Packet(place) => Some(place),
            Waker::Timer(timer) => timer.before,
        }
    }

    /// Its sender's waking timer, if any.
    pub const fn timer(&self) -> Option<&Timer> {
        match &self.waker {
            Some(Waker::Timer(timer)) => Some(timer),
            _ => None,
        }
    }

    /// The hop that dropped it, if any.
    const fn stopped_in(&self) -> Option<u8> {
        if matches!(self.verdict, Verdict::Dropped(DropCause::Path(_))) { Some(self.hop) } else { None }
    }
}

#[allow(clippy::unnecessary_wraps)] // as columns take it
const fn ns(length: Duration) -> Option<i64> {
    Some(length.as_nanos() as i64)
}

/// A packet's fate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The receiver's device took it.
    Delivered,
    /// It was dropped.
    Dropped(DropCause),
    /// It was still in the path when the cell ended.
    Queued,
}

impl Verdict {
    /// As stored.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Dropped(_) => "dropped",
            Self::Queued => "queued",
        }
    }

    /// Why it was dropped, if it was.
    pub const fn cause(self) -> Option<DropCause> {
        match self {
            Self::Dropped(cause) => Some(cause),
            Self::Delivered | Self::Queued => None,
        }
    }
}

/// The cause of a drop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DropCause {
    /// The emulated network, as configured.
    Path(Cause),
    /// A host's device, unintended.
    Device,
}

impl DropCause {
    /// As stored.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Path(cause) => cause.name(),
            Self::Device => "device",
        }
    }
}
