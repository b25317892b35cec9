//! Each flow's packets, in equal intervals of time.

use crate::Values::{Text, Time, U16, U64};
use crate::{Column, PacketRecord, Row, TCP, UDP, Verdict};
use crosswind_path::{Packet, Side};
use crosswind_units::{Duration, Instant};
use std::collections::BTreeMap;

/// One flow's packets in one direction that left the path within one interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowInterval {
    /// The flow, 0 for the workload, or `None` for packets of neither TCP nor UDP, and for background traffic.
    pub flow: Option<u16>,
    /// Whether it is background traffic, without a host at either end.
    pub is_background: bool,
    /// Their direction.
    pub side: Side,
    /// When the interval began.
    pub from: Instant,
    /// Delivered packets.
    pub packets: u64,
    /// Their bytes on the IP layer.
    pub bytes: u64,
    /// Dropped packets.
    pub dropped: u64,
    /// Packets delivered with the path's mark (ECN).
    pub marked: u64,
    /// Packets still in the path at the cell's end.
    pub queued: u64,
    /// How long the delivered packets waited behind others, all together.
    pub queueing: Duration,
}

impl Row for FlowInterval {
    const TABLE: &'static str = "flows.arrow";

    const COLUMNS: &'static [Column<Self>] = &[
        Column::optional(
            "flow",
            U16(|row| row.flow),
            "0: the workload; from 1: the flows beside it; null: packets of neither TCP nor UDP, and background traffic.",
        ),
        Column::required("direction", Text(|row| Some(row.side.name())), "forward or reverse."),
        Column::required("from_ns", Time(|row| Some(row.from)), "When the interval began."),
        Column::required("packets", U64(|row| Some(row.packets)), "Packets that were delivered within it."),
        Column::required("bytes", U64(|row| Some(row.bytes)), "Their bytes on the IP layer."),
        Column::required("dropped", U64(|row| Some(row.dropped)), "Packets that were dropped within it."),
        Column::required("marked", U64(|row| Some(row.marked)), "Of those delivered, marked by the path (ECN)."),
        Column::required("queued", U64(|row| Some(row.queued)), "Packets that were in the path when the cell ended."),
        Column::required(
            "queueing_ns",
            U64(|row| Some(row.queueing.as_nanos())),
            "How long those delivered waited behind other packets, all together.",
        ),
        Column::required(
            "background",
            U16(|row| Some(row.is_background.into())),
            "1: background traffic, which no host has sent or gets: delivered is what the link has carried of it; else 0.",
        ),
    ];
}

/// Counts packets by flow, identified by the server's port; packets to no flow's port are the workload's.
#[derive(Debug)]
pub struct FlowCounter {
    zero: Instant,
    interval: Duration,
    /// The server's port for each flow, from flow 1.
    ports: Vec<u16>,
    intervals: BTreeMap<(bool, Option<u16>, Side, u64), FlowInterval>,
}

impl FlowCounter {
    /// Counts in intervals of this length from `zero`; `ports` are the flows' server ports in order, without the
    /// workload's.
    ///
    /// # Panics
    /// If `interval` is 0.
    pub fn new(zero: Instant, interval: Duration, ports: Vec<u16>) -> Self {
        assert!(interval > Duration::ZERO, "an interval has a length");
        Self { zero, interval, ports, intervals: BTreeMap::new() }
    }

    /// Counts a packet with a known fate.
    pub fn count(&mut self, record: &PacketRecord) {
        let server_port = record.side.pick(record.headers.destination_port, record.headers.source_port);
        let has_ports = matches!(record.headers.protocol, TCP | UDP);
        let beside = || self.ports.iter().position(|&port| port == server_port).map_or(0, |flow| flow as u16 + 1);
        let flow = has_ports.then(beside);
        let row = self.row(flow, false, record.side, record.due);
        match record.verdict {
            Verdict::Delivered => {
                row.packets += 1;
                row.bytes += record.size.0;
                row.marked += u64::from(record.marked_in.is_some());
                row.queueing += record.spent.queueing;
            }
            Verdict::Dropped(_) => row.dropped += 1,
            Verdict::Queued => row.queued += 1,
        }
    }

    /// Counts a background packet out of the path, `dropped` or not.
    pub fn count_background(&mut self, side: Side, packet: &Packet, dropped: bool) {
        let row = self.row(None, true, side, packet.at);
        if dropped {
            row.dropped += 1;
        } else {
            row.packets += 1;
            row.bytes += packet.size.0;
            row.marked += u64::from(packet.marked_in.is_some());
            row.queueing += packet.spent.queueing;
        }
    }

    fn row(&mut self, flow: Option<u16>, is_background: bool, side: Side, left: Instant) -> &mut FlowInterval {
        let number = left.saturating_since(self.zero).as_nanos() / self.interval.as_nanos();
        let from = self.zero + Duration::from_nanos(number * self.interval.as_nanos());
        self.intervals.entry((is_background, flow, side, number)).or_insert(FlowInterval {
            flow,
            is_background,
            side,
            from,
            packets: 0,
            bytes: 0,
            dropped: 0,
            marked: 0,
            queued: 0,
            queueing: Duration::ZERO,
        })
    }

    /// All intervals with departures, by flow, direction and time.
    pub fn finish(self) -> Vec<FlowInterval> {
        self.intervals.into_values().collect()
    }
}
