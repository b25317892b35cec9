//! From the real-time thread to the files: a [`Recorder`] on that thread, a [`Sink`] on its own thread.
//!
//! The recorder fills batches and sends full ones through a channel without ever waiting; the sink writes them and
//! sends the empty ones back. When the disk is too slow, packet records wait in memory (about 100 bytes each). Captured
//! packets' bytes wait only up to a limit: packets beyond it are left out of the capture, and counted.

use crate::{
    Capture, DropCause, FlowCounter, FlowInterval, Headers, LedgerError, PacketRecord, PacketTable, TCP, TCP_SYN, UDP,
};
use crosswind_path::{Packet, Side};
use crosswind_units::Instant;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

const RECORDS_PER_BATCH: usize = 4096;
const BYTES_PER_BATCH: usize = 256 * 1024;
/// The smallest packets have 40 bytes, so a batch is full of bytes before it is full of events.
const EVENTS_PER_BATCH: usize = BYTES_PER_BATCH / 40;
/// Capture bytes waiting for the disk at most: about half a second at 1 Gbit/s.
const MAX_WAITING_BYTES: u64 = 64 * 1024 * 1024;
/// Empty batches of each kind kept for reuse.
const SPARE_BATCHES: usize = 4;

/// The real-time thread's end. Where neither records nor captures are wanted, it does nothing.
#[derive(Debug)]
pub struct Recorder {
    packets: Option<BatchWriter<PacketBatch>>,
    capture: Option<BatchWriter<CaptureBatch>>,
    /// Whether only sent payloads are wanted.
    sent_payloads_only: bool,
    shared: Arc<Shared>,
}

/// The wanted bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Nobody's.
    Nothing,
    /// Packets of UDP and TCP with payload, and SYNs, as sent.
    SentPayloads,
    /// All packets, as sent and as received.
    Captures,
}

/// Hears the hosts' sent packets, if their bytes are wanted.
pub type HearSent = Box<dyn FnMut(Side, &[u8]) + Send>;

/// The disk's end, to be run on its own thread.
pub struct Sink {
    batches: Receiver<Batch>,
    spare_packets: SyncSender<PacketBatch>,
    spare_captures: SyncSender<CaptureBatch>,
    shared: Arc<Shared>,
    keeps_packets: usize,
    flows: Option<FlowCounter>,
    hears_sent: Option<HearSent>,
}

/// The files' contents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SinkReport {
    /// Rows in the packet table.
    pub packets: u64,
    /// Packets in both captures together.
    pub captured: u64,
    /// Packets missing in the capture because the disk was too slow.
    pub capture_missed: u64,
    /// The packet records, where the sink was to keep them in memory.
    pub kept: Vec<PacketRecord>,
    /// Each flow's packets, if counted.
    pub flows: Vec<FlowInterval>,
    /// Packet records beyond the limit.
    pub left_out: u64,
}

impl Recorder {
    /// A recorder for packet records, bytes, both or neither, and its sink.
    pub fn new(packets: bool, wanted: Wanted) -> (Self, Sink) {
        let (full, batches) = channel();
        let shared = Arc::new(Shared::default());
        let (spare_packets, packet_writer) = BatchWriter::new(packets, &full);
        let (spare_captures, capture_writer) = BatchWriter::new(wanted != Wanted::Nothing, &full);
        let recorder = Self {
            packets: packet_writer,
            capture: capture_writer,
            sent_payloads_only: wanted == Wanted::SentPayloads,
            shared: Arc::clone(&shared),
        };
        let sink =
            Sink { batches, spare_packets, spare_captures, shared, keeps_packets: 0, flows: None, hears_sent: None };
        (recorder, sink)
    }

    /// A recorder without output.
    pub fn off() -> Self {
        Self { packets: None, capture: None, sent_payloads_only: false, shared: Arc::default() }
    }

    /// Whether packet records are wanted.
    pub fn wants_packets(&self) -> bool {
        self.packets.is_some()
    }

    /// Whether packets' bytes are wanted.
    pub fn wants_bytes(&self) -> bool {
        self.capture.is_some()
    }

    /// Whether received packets' bytes are wanted.
    pub fn wants_received(&self) -> bool {
        self.capture.is_some() && !self.sent_payloads_only
    }

    /// Records a packet with a known fate.
    pub fn packet(&mut self, record: PacketRecord) {
        let Some(writer) = &mut self.packets else { return };
        writer.batch.records.push(record);
        if writer.batch.records.len() == RECORDS_PER_BATCH {
            writer.hand_over();
        }
    }

    /// Records a background packet out of the path, for the flows' counts.
    pub fn background(&mut self, side: Side, packet: &Packet, dropped: bool) {
        let Some(writer) = &mut self.packets else { return };
        writer.batch.background.push((side, *packet, dropped));
        if writer.batch.background.len() == RECORDS_PER_BATCH {
            writer.hand_over();
        }
    }

    /// Records `packet`, sent by `side`'s sender at `at`; `dropped` if the path dropped it on entry.
    pub fn sent(&mut self, side: Side, at: Instant, packet: &[u8], dropped: Option<DropCause>) {
        if self.sent_payloads_only && !opens_or_carries(packet) {
            return;
        }
        let sender = side.pick(Host::Client, Host::Server);
        self.capture(sender, at, packet, CaptureEventKind::Sent(dropped));
    }

    /// Records `packet`, received by `side`'s receiver at `at`.
    pub fn received(&mut self, side: Side, at: Instant, packet: &[u8]) {
        if self.sent_payloads_only {
            return;
        }
        let receiver = side.pick(Host::Server, Host::Client);
        self.capture(receiver, at, packet, CaptureEventKind::Received);
    }

    /// Sends the last batches. The sink ends when it has written them.
    pub fn finish(self) {}

    fn capture(&mut self, host: Host, at: Instant, packet: &[u8], kind: CaptureEventKind) {
        let Some(writer) = &self.capture else { return };
        if !writer.batch.has_space_for(packet.len()) {
            self.hand_over_capture();
        }
        let Some(writer) = &mut self.capture else { return };
        if self.shared.waiting_bytes.load(Ordering::Relaxed) > MAX_WAITING_BYTES {
            self.shared.capture_missed.fetch_add(1, Ordering::Relaxed);
            return;
        }
        writer.batch.push(host, at, packet, kind);
    }

    fn hand_over_capture(&mut self) {
        if let Some(writer) = &mut self.capture {
            self.shared.waiting_bytes.fetch_add(writer.batch.bytes.len() as u64, Ordering::Relaxed);
            writer.hand_over();
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.hand_over_capture();
        if let Some(writer) = &mut self.packets {
            writer.hand_over();
        }
    }
}

impl Sink {
    /// Makes the sink keep the first `most` packet records in memory as well, for use at the end.
    #[must_use]
    pub const fn keeping_packets(mut self, most: usize) -> Self {
        self.keeps_packets = most;
        self
    }

    /// Makes the sink count packets by flow.
    #[must_use]
    pub fn counting_flows(mut self, flows: Option<FlowCounter>) -> Self {
        self.flows = flows;
        self
    }

    /// Makes the sink report every packet sent by hosts, if the recorder takes its bytes.
    #[must_use]
    pub fn telling_of_sent(mut self, hears: Option<HearSent>) -> Self {
        self.hears_sent = hears;
        self
    }

    const fn room(&self, report: &SinkReport) -> usize {
        self.keeps_packets.saturating_sub(report.kept.len())
    }

    /// Writes the recorder's batches until the recorder has finished or is gone, then finishes the files. `captures` are the
    /// client's and the server's.
    ///
    /// After an error the recorder goes on, and its batches are lost: the path never stops for a disk.
    pub fn run<P: Write, C: Write>(
        mut self,
        mut packet_table: Option<PacketTable<P>>,
        mut captures: Option<(Capture<C>, Capture<C>)>,
    ) -> Result<SinkReport, LedgerError> {
        let mut report = SinkReport::default();
        while let Ok(batch) = self.batches.recv() {
            match batch {
                Batch::Packets(mut batch) => {
                    if let Some(table) = &mut packet_table {
                        table.append(&batch.records)?;
                        report.packets += batch.records.len() as u64;
                    }
                    if let Some(flows) = &mut self.flows {
                        batch.records.iter().for_each(|record| flows.count(record));
                        for (side, packet, dropped) in &batch.background {
                            flows.count_background(*side, packet, *dropped);
                        }
                    }
                    let (kept, left_out) = batch.records.split_at(self.room(&report).min(batch.records.len()));
                    report.kept.extend_from_slice(kept);
                    if self.keeps_packets > 0 {
                        report.left_out += left_out.len() as u64;
                    }
                    batch.clear();
                    let _ = self.spare_packets.try_send(batch);
                }
                Batch::Capture(mut batch) => {
                    if let Some(hears) = &mut self.hears_sent {
                        batch.tell_of_sent(hears);
                    }
                    if let Some((client, server)) = &mut captures {
                        batch.write(client, server)?;
                        report.captured += batch.events.len() as u64;
                    }
                    self.shared.waiting_bytes.fetch_sub(batch.bytes.len() as u64, Ordering::Relaxed);
                    batch.clear();
                    let _ = self.spare_captures.try_send(batch);
                }
            }
        }
        if let Some(table) = packet_table {
            table.finish()?;
        }
        if let Some((client, server)) = captures {
            client.finish()?;
            server.finish()?;
        }
        report.flows = self.flows.map(FlowCounter::finish).unwrap_or_default();
        report.capture_missed = self.shared.capture_missed.load(Ordering::Relaxed);
        Ok(report)
    }
}

#[derive(Debug, Default)]
struct Shared {
    /// Capture bytes sent and not yet written.
    waiting_bytes: AtomicU64,
    capture_missed: AtomicU64,
}

/// Fills one kind of batches, and sends full ones to the sink.
#[derive(Debug)]
struct BatchWriter<B> {
    batch: B,
    full: Sender<Batch>,
    spare: Receiver<B>,
}

impl<B: BatchContents> BatchWriter<B> {
    fn new(wanted: bool, full: &Sender<Batch>) -> (SyncSender<B>, Option<Self>) {
        let (give_back, spare) = sync_channel(SPARE_BATCHES);
        if !wanted {
            return (give_back, None);
        }
        // Allocated now, so the real-time thread seldom has to allocate.
        for _ in 0..SPARE_BATCHES {
            let _ = give_back.try_send(B::empty());
        }
        (give_back, Some(Self { batch: B::empty(), full: full.clone(), spare }))
    }

    /// Sends the batch. When the sink is gone, the batch is lost, and the sink's error says why.
    fn hand_over(&mut self) {
        let next = self.spare.try_recv().unwrap_or_else(|_| B::empty());
        let _ = self.full.send(std::mem::replace(&mut self.batch, next).into_batch());
    }
}

trait BatchContents {
    fn empty() -> Self;
    fn clear(&mut self);
    fn into_batch(self) -> Batch;
}

#[derive(Debug)]
enum Batch {
    Packets(PacketBatch),
    Capture(CaptureBatch),
}

#[derive(Debug)]
struct PacketBatch {
    records: Vec<PacketRecord>,
    /// Background traffic, and whether it was dropped.
    background: Vec<(Side, Packet, bool)>,
}

#[derive(Debug)]
struct CaptureBatch {
    events: Vec<CaptureEvent>,
    bytes: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
struct CaptureEvent {
    host: Host,
    at: Instant,
    kind: CaptureEventKind,
    length: usize,
}

#[derive(Clone, Copy, Debug)]
enum Host {
    Client,
    Server,
}

#[derive(Clone, Copy, Debug)]
enum CaptureEventKind {
    Sent(Option<DropCause>),
    Received,
}

impl BatchContents for PacketBatch {
    fn empty() -> Self {
        Self { records: Vec::with_capacity(RECORDS_PER_BATCH), background: Vec::new() }
    }

    fn clear(&mut self) {
        self.records.clear();
        self.background.clear();
    }

    fn into_batch(self) -> Batch {
        Batch::Packets(self)
    }
}

impl BatchContents for CaptureBatch {
    fn empty() -> Self {
        Self { events: Vec::with_capacity(EVENTS_PER_BATCH), bytes: Vec::with_capacity(BYTES_PER_BATCH) }
    }

    fn clear(&mut self) {
        self.events.clear();
        self.bytes.clear();
    }

    fn into_batch(self) -> Batch {
        Batch::Capture(self)
    }
}

impl CaptureBatch {
    fn has_space_for(&self, length: usize) -> bool {
        self.events.len() < EVENTS_PER_BATCH && self.bytes.len() + length <= BYTES_PER_BATCH
    }

    fn push(&mut self, host: Host, at: Instant, packet: &[u8], kind: CaptureEventKind) {
        self.bytes.extend_from_slice(packet);
        self.events.push(CaptureEvent { host, at, kind, length: packet.len() });
    }

    fn tell_of_sent(&self, hears: &mut HearSent) {
        let mut bytes = self.bytes.as_slice();
        for event in &self.events {
            let (packet, rest) = bytes.split_at(event.length);
            bytes = rest;
            match (event.kind, event.host) {
                (CaptureEventKind::Sent(_), Host::Client) => hears(Side::Forward, packet),
                (CaptureEventKind::Sent(_), Host::Server) => hears(Side::Reverse, packet),
                (CaptureEventKind::Received, _) => {}
            }
        }
    }

    fn write<C: Write>(&self, client: &mut Capture<C>, server: &mut Capture<C>) -> Result<(), LedgerError> {
        let mut bytes = self.bytes.as_slice();
        for event in &self.events {
            let (packet, rest) = bytes.split_at(event.length);
            bytes = rest;
            let capture = match event.host {
                Host::Client => &mut *client,
                Host::Server => &mut *server,
            };
            match event.kind {
                CaptureEventKind::Sent(dropped) => capture.sent(event.at, packet, dropped)?,
                CaptureEventKind::Received => capture.received(event.at, packet)?,
            }
        }
        Ok(())
    }
}

/// Whether an IP packet has a payload of UDP or TCP, or opens a connection.
fn opens_or_carries(packet: &[u8]) -> bool {
    let headers = Headers::parse(packet);
    matches!(headers.protocol, UDP | TCP) && (headers.payload_bytes > 0 || headers.flags & TCP_SYN != 0)
}
