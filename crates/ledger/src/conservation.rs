//! Conservation: per direction, packets in plus copies equal packets delivered, dropped for a cause, or still queued.
//!
//! The emulator's counts are checked against the kernel's for the two devices. A TUN device has these counters:
//! - `tx_packets` ([`DeviceCounters::sent`]): packets read by the emulator;
//! - `tx_dropped` ([`DeviceCounters::dropped_sending`]): packets too many for the device's ring;
//! - `rx_packets` ([`DeviceCounters::received`]): packets the device took from the emulator;
//! - `rx_dropped` ([`DeviceCounters::dropped_receiving`]): packets the device *refused*, counted by the emulator as
//!   well, and packets it took and then dropped before IP, counted by the kernel only.
//!
//! So the emulator's arrivals have to equal `sent`, and its deliveries `received`, plus its own ICMP messages to that
//! host about packets too large. Drops in `dropped_receiving` beyond the emulator's refused writes were first taken,
//! and are moved from delivered to dropped. A veth pair has the same counters, with its sender in the emulator's place.

use crate::reordering::Reordering;
use crate::{DropCause, Dropped, ReorderingReport};
use crosswind_path::{Cause, Side};
use crosswind_units::{Bytes, Instant};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::ops::Add;

/// One device's counters, read from the kernel when no packet moves any more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceCounters {
    /// `tx_packets`: packets the emulator read from the device.
    pub sent: u64,
    /// `rx_packets`: packets the device handed on to its host.
    pub received: u64,
    /// `tx_bytes`: IP packets on TUN, Ethernet frames on veth.
    pub sent_bytes: u64,
    /// `rx_bytes`, counted likewise.
    pub received_bytes: u64,
    /// `tx_dropped`: packets not among `sent`.
    pub dropped_sending: u64,
    /// `rx_dropped`: refused packets, not among `received`, and packets dropped after being counted there.
    pub dropped_receiving: u64,
}

impl Add for DeviceCounters {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            sent: self.sent + other.sent,
            received: self.received + other.received,
            sent_bytes: self.sent_bytes + other.sent_bytes,
            received_bytes: self.received_bytes + other.received_bytes,
            dropped_sending: self.dropped_sending + other.dropped_sending,
            dropped_receiving: self.dropped_receiving + other.dropped_receiving,
        }
    }
}

/// What became of background traffic in one direction, which no host has sent or gets. It is in no other count.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BackgroundReport {
    /// Packets that entered the links.
    #[serde(rename = "in")]
    pub entered: u64,
    /// Packets that the links have carried.
    pub carried: u64,
    /// Their bytes on the IP layer.
    pub carried_bytes: u64,
    /// Packets that were dropped, by cause.
    #[schemars(with = "BTreeMap<String, u64>")]
    pub dropped: Dropped,
    /// Of those carried, the ones with a mark of the path (ECN).
    pub marked: u64,
    /// Packets that were still in the path at the end.
    pub queued: u64,
}

/// What one hop did to the packets of one direction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HopReport {
    /// Packets that it dropped, by cause.
    #[schemars(with = "BTreeMap<String, u64>")]
    pub dropped: Dropped,
    /// Packets that it marked (ECN).
    pub marked: u64,
    /// Packets of background traffic that its link carried.
    #[serde(skip_serializing_if = "is_zero")]
    pub background_carried: u64,
    /// Packets of background traffic that it dropped.
    #[serde(skip_serializing_if = "is_zero")]
    pub background_dropped: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // as serde calls it
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// The kernel's queueing disciplines' work in one direction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// Drops and marks for each hop, the client's first.
    pub hops: Vec<HopReport>,
    /// Packets held at the end.
    pub queued: u64,
    /// Copies made.
    pub duplicated: u64,
    /// ICMP messages to the sending host about packets too large.
    pub icmp: u64,
    /// Their bytes.
    pub icmp_bytes: u64,
    /// Whether they flipped bits: a packet taken and then dropped by the receiving device counts as delivered.
    pub corrupts: bool,
}

/// The emulator's counts, by direction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    forward: Counts,
    reverse: Counts,
}

/// The result's `ledger`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LedgerReport {
    /// Client to server.
    pub forward: DirectionReport,
    /// Server to client.
    pub reverse: DirectionReport,
    /// Whether nothing is unaccounted for and all counts agree.
    pub closed: bool,
    #[serde(skip)]
    mismatches: Vec<String>,
}

/// One direction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DirectionReport {
    /// Packets that the sending host handed to its device.
    #[serde(rename = "in")]
    pub entered: u64,
    /// Copies that the path made of packets.
    pub duplicated: u64,
    /// Packets that the receiving host's device took.
    pub delivered: u64,
    /// Packets that were dropped, by cause.
    #[schemars(with = "BTreeMap<String, u64>")]
    pub dropped: Dropped,
    /// Delivered packets that the path had marked (ECN) instead of dropping them.
    pub marked: u64,
    /// What each hop dropped and marked, the client's first; empty where the path has one.
    pub hops: Vec<HopReport>,
    /// Packets that were still in the path at the end.
    pub queued: u64,
    /// Bytes that were read from the sending device.
    pub in_bytes: u64,
    /// Bytes that the receiving device took.
    pub delivered_bytes: u64,
    /// Of the packets delivered, those in which the path flipped a bit.
    pub corrupted: u64,
    /// ICMP messages that the sending host got from the path itself, about packets that were too large. They are in no other count.
    pub icmp: u64,
    /// Packets that arrived after one that had entered later, if any; only Crosswind's own emulator knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reordering: Option<ReorderingReport>,
    /// Background traffic, where there is any. It is in no other count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub background: Option<BackgroundReport>,
}

/// The emulator's counts in one direction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Counts {
    arrivals: u64,
    arrived_bytes: u64,
    deliveries: u64,
    delivered_bytes: u64,
    duplicated: u64,
    corrupted: u64,
    dropped: Dropped,
    hops: Vec<HopReport>,
    reordering: Reordering,
    /// To the sending host.
    icmp: Icmp,
    background: BackgroundReport,
}

/// The path's own ICMP messages to a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Icmp {
    taken: u64,
    taken_bytes: u64,
    refused: u64,
}

impl Ledger {
    /// An empty ledger, for a path with so many hops.
    pub fn new(hops: usize) -> Self {
        let counts = Counts { hops: vec![HopReport::default(); hops], ..Counts::default() };
        Self { forward: counts.clone(), reverse: counts }
    }

    /// A packet was read from the sender's device.
    pub fn handle_arrival(&mut self, side: Side, bytes: Bytes) {
        let counts = self.side(side);
        counts.arrivals += 1;
        counts.arrived_bytes += bytes.0;
    }

    /// The path has made a copy of a packet.
    pub fn handle_duplicate(&mut self, side: Side) {
        self.side(side).duplicated += 1;
    }

    /// A delivered packet has a flipped bit.
    pub fn handle_corruption(&mut self, side: Side) {
        self.side(side).corrupted += 1;
    }

    /// A packet was written to the receiver's device.
    pub fn handle_delivery(&mut self, side: Side, bytes: Bytes) {
        let counts = self.side(side);
        counts.deliveries += 1;
        counts.delivered_bytes += bytes.0;
    }

    /// A packet was dropped: by the path, in `hop`, or ([`DropCause::Device`]) by the receiver's device.
    pub fn handle_drop(&mut self, side: Side, cause: DropCause, hop: u8) {
        let counts = self.side(side);
        counts.dropped.add(cause, 1);
        if let (DropCause::Path(_), Some(hop)) = (cause, counts.hops.get_mut(usize::from(hop))) {
            hop.dropped.add(cause, 1);
        }
    }

    /// The packet `index` was delivered at a time, or dropped. Dropped copies do not count.
    pub fn handle_end(&mut self, side: Side, index: u64, delivered: Option<Instant>) {
        let reordering = &mut self.side(side).reordering;
        match delivered {
            Some(at) => reordering.handle_delivery(index, at),
            None => reordering.handle_drop(index),
        }
    }

    /// A packet written to the receiver's device was marked in `hop`.
    pub fn handle_mark(&mut self, side: Side, hop: u8) {
        if let Some(hop) = self.side(side).hops.get_mut(usize::from(hop)) {
            hop.marked += 1;
        }
    }

    /// A background packet has left the path behind the link of `hop`, marked or not.
    pub fn handle_background(&mut self, side: Side, hop: u8, bytes: Bytes, marked: bool) {
        let counts = self.side(side);
        counts.background.carried += 1;
        counts.background.carried_bytes += bytes.0;
        counts.background.marked += u64::from(marked);
        if let Some(hop) = counts.hops.get_mut(usize::from(hop)) {
            hop.background_carried += 1;
        }
    }

    /// A background packet was dropped in `hop`.
    pub fn handle_background_drop(&mut self, side: Side, cause: Cause, hop: u8) {
        let counts = self.side(side);
        counts.background.dropped.add(DropCause::Path(cause), 1);
        if let Some(hop) = counts.hops.get_mut(usize::from(hop)) {
            hop.background_dropped += 1;
        }
    }

    /// The total of background packets into the path so far. The rest are still in it.
    pub fn handle_background_sent(&mut self, side: Side, packets: u64) {
        let background = &mut self.side(side).background;
        background.entered = packets;
        background.queued = packets.saturating_sub(background.carried + background.dropped.total());
    }

    /// Whether background traffic was in the path.
    pub const fn has_background(&self) -> bool {
        self.forward.background.entered + self.reverse.background.entered > 0
    }

    /// An ICMP message was written to the sender's device, `taken` or not.
    pub fn handle_icmp(&mut self, side: Side, bytes: Bytes, taken: bool) {
        let icmp = &mut self.side(side).icmp;
        if taken {
            icmp.taken += 1;
            icmp.taken_bytes += bytes.0;
        } else {
            icmp.refused += 1;
        }
    }

    /// Balances the counts: `queued` packets, by side (forward first), are still in the path. The devices have to be read
    /// after the emulator's last read and write.
    pub fn close(&self, queued: [u64; 2], client: DeviceCounters, server: DeviceCounters) -> LedgerReport {
        let mut mismatches = Vec::new();
        let without = |device: DeviceCounters, icmp: Icmp| DeviceCounters {
            received: device.received.saturating_sub(icmp.taken),
            received_bytes: device.received_bytes.saturating_sub(icmp.taken_bytes),
            dropped_receiving: device.dropped_receiving.saturating_sub(icmp.refused),
            ..device
        };
        let (client, server) = (without(client, self.forward.icmp), without(server, self.reverse.icmp));
        let forward = Endpoints { side: Side::Forward, sender: client, receiver: server };
        let reverse = Endpoints { side: Side::Reverse, sender: server, receiver: client };
        forward.check(&self.forward, queued[0], &mut mismatches);
        reverse.check(&self.reverse, queued[1], &mut mismatches);
        LedgerReport::new(
            forward.report(&self.forward, queued[0]),
            reverse.report(&self.reverse, queued[1]),
            mismatches,
        )
    }

    fn side(&mut self, side: Side) -> &mut Counts {
        side.pick(&mut self.forward, &mut self.reverse)
    }
}

impl LedgerReport {
    /// The direct path's ledger, without an emulator: the two devices of a veth pair against each other.
    pub fn from_devices(client: DeviceCounters, server: DeviceCounters) -> Self {
        let mut mismatches = Vec::new();
        let [forward, reverse] =
            [(Side::Forward, client, server), (Side::Reverse, server, client)].map(|(side, sender, receiver)| {
                let ends = Endpoints { side, sender, receiver };
                // Both ends count a packet refused by a veth device: the sender's as not sent.
                let refused_by_receiver = sender.dropped_sending;
                let late = receiver.dropped_receiving.saturating_sub(refused_by_receiver);
                if sender.sent != receiver.received {
                    mismatches.push(format!(
                        "{}: {} sent {} packets, {} received {}",
                        side.name(),
                        ends.sender_name(),
                        sender.sent,
                        ends.receiver_name(),
                        receiver.received
                    ));
                }
                let mut dropped = Dropped::default();
                dropped.add(DropCause::Device, sender.dropped_sending + late);
                DirectionReport {
                    entered: sender.sent + sender.dropped_sending,
                    delivered: receiver.received.saturating_sub(late),
                    dropped,
                    in_bytes: sender.sent_bytes,
                    delivered_bytes: receiver.received_bytes,
                    ..DirectionReport::default()
                }
            });
        Self::new(forward, reverse, mismatches)
    }

    /// The ledger for a path of queueing disciplines: their drops and queues, between the hosts' devices, which count
    /// `header` bytes per packet beside IP.
    pub fn from_disciplines(
        client: DeviceCounters,
        server: DeviceCounters,
        [forward, reverse]: [Passed; 2],
        header: u64,
    ) -> Self {
        let bytes = |all: u64, packets: u64, icmp: u64| all.saturating_sub(header * packets + icmp);
        // The receiver in one direction also got the path's messages about packets in the other.
        let direction = |sender: DeviceCounters, receiver: DeviceCounters, passed: &Passed, other: &Passed| {
            let refused = if passed.corrupts { 0 } else { receiver.dropped_receiving };
            let mut dropped = Dropped::default();
            passed.hops.iter().for_each(|hop| dropped.add_all(&hop.dropped));
            dropped.add(DropCause::Device, sender.dropped_sending + refused);
            DirectionReport {
                entered: sender.sent + sender.dropped_sending,
                duplicated: passed.duplicated,
                delivered: receiver.received.saturating_sub(refused + other.icmp),
                dropped,
                marked: passed.hops.iter().map(|hop| hop.marked).sum(),
                hops: several(&passed.hops),
                queued: passed.queued,
                in_bytes: bytes(sender.sent_bytes, sender.sent, 0),
                delivered_bytes: bytes(receiver.received_bytes, receiver.received, other.icmp_bytes),
                corrupted: 0,
                icmp: passed.icmp,
                reordering: None,
                background: None,
            }
        };
        let ways = [direction(client, server, &forward, &reverse), direction(server, client, &reverse, &forward)];
        let [forward, reverse] = ways;
        Self::new(forward, reverse, Vec::new())
    }

    /// A sentence for each two counts in disagreement; none when the ledger is closed.
    pub fn mismatches(&self) -> Vec<String> {
        self.mismatches.clone()
    }

    fn new(forward: DirectionReport, reverse: DirectionReport, mut mismatches: Vec<String>) -> Self {
        for (side, direction) in [(Side::Forward, &forward), (Side::Reverse, &reverse)] {
            let accounted = direction.delivered + direction.dropped.total() + direction.queued;
            let all = direction.entered + direction.duplicated;
            if all != accounted {
                mismatches.push(format!(
                    "{}: {all} packets went in{}, {accounted} are accounted for",
                    side.name(),
                    copies(direction.duplicated)
                ));
            }
        }
        Self { forward, reverse, closed: mismatches.is_empty(), mismatches }
    }
}

fn several(hops: &[HopReport]) -> Vec<HopReport> {
    if hops.len() > 1 { hops.to_vec() } else { Vec::new() }
}

/// The text about copies among incoming packets.
fn copies(count: u64) -> String {
    if count == 0 { String::new() } else { format!(" or are copies ({count})") }
}

/// One direction and the devices at its ends.
struct Endpoints {
    side: Side,
    sender: DeviceCounters,
    receiver: DeviceCounters,
}

impl Endpoints {
    fn report(&self, counts: &Counts, queued: u64) -> DirectionReport {
        let late = self.receiver.dropped_receiving.saturating_sub(counts.dropped.count(DropCause::Device));
        let mut dropped = counts.dropped.clone();
        dropped.add(DropCause::Device, self.sender.dropped_sending + late);
        DirectionReport {
            entered: self.sender.sent + self.sender.dropped_sending,
            delivered: self.receiver.received.saturating_sub(late),
            duplicated: counts.duplicated,
            dropped,
            marked: counts.hops.iter().map(|hop| hop.marked).sum(),
            hops: several(&counts.hops),
            queued,
            in_bytes: self.sender.sent_bytes,
            delivered_bytes: self.receiver.received_bytes,
            corrupted: counts.corrupted,
            icmp: counts.icmp.taken,
            reordering: counts.reordering.report(),
            background: (counts.background.entered > 0).then(|| counts.background.clone()),
        }
    }

    /// The emulator's counts against the kernel's, and against themselves.
    fn check(&self, counts: &Counts, queued: u64, mismatches: &mut Vec<String>) {
        let mut expect_equal = |kernel: u64, emulator: u64, sentence: String| {
            if kernel != emulator {
                mismatches.push(format!("{}: {sentence}", self.side.name()));
            }
        };
        let (sender, receiver) = (self.sender_name(), self.receiver_name());
        let (sent, arrived) = (self.sender.sent, counts.arrivals);
        expect_equal(sent, arrived, format!("{sender} sent {sent} packets, the path saw {arrived}"));
        let (sent, arrived) = (self.sender.sent_bytes, counts.arrived_bytes);
        expect_equal(sent, arrived, format!("{sender} sent {sent} bytes, the path saw {arrived}"));
        let (taken, written) = (self.receiver.received, counts.deliveries);
        expect_equal(taken, written, format!("the path delivered {written} packets, {receiver} received {taken}"));
        let (taken, written) = (self.receiver.received_bytes, counts.delivered_bytes);
        expect_equal(taken, written, format!("the path delivered {written} bytes, {receiver} received {taken}"));
        let background = &counts.background;
        let (sent, left) = (background.entered, background.carried + background.dropped.total() + background.queued);
        expect_equal(sent, left, format!("{sent} packets of background traffic went in, {left} are accounted for"));
        let left = counts.deliveries + counts.dropped.total() + queued;
        let entered = counts.arrivals + counts.duplicated;
        let copies = copies(counts.duplicated);
        expect_equal(
            entered,
            left,
            format!("{entered} packets entered the path{copies}, {left} left it or wait in it"),
        );
    }

    fn sender_name(&self) -> &'static str {
        self.side.pick("the client's device", "the server's device")
    }

    fn receiver_name(&self) -> &'static str {
        self.side.pick("the server's device", "the client's device")
    }
}
