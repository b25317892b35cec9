//! The emulator's accounts for every packet: counts, times, records and captures.

use super::punctuality::Punctuality;
use super::traffic::TrafficCounters;
use crosswind_ledger::{
    DropCause, Headers, Ledger, PacketRecord, PayloadClock, Recorder, Sending, TCP_SYN, TimeHistogram, Verdict, Waker,
};
use crosswind_path::{Departure, Packet, Side};
use crosswind_units::{Bytes, Instant};
use std::sync::Arc;

/// Both directions' accounts.
pub struct Accounts {
    ledger: Ledger,
    delay_error: TimeHistogram,
    queueing: [TimeHistogram; 2],
    recorder: Recorder,
    payload_clock: Arc<PayloadClock>,
    punctuality: Arc<Punctuality>,
    traffic: Arc<TrafficCounters>,
}

/// What is known of a packet besides its way through the path.
#[derive(Clone, Copy, Default)]
pub struct Known {
    pub headers: Headers,
    /// Where its sender's kernel says so.
    pub sending: Option<Sending>,
    pub waker: Option<Waker>,
}

/// The accounts when they are closed.
pub struct Totals {
    pub ledger: Ledger,
    pub delay_error: TimeHistogram,
    pub queueing: [TimeHistogram; 2],
}

impl Accounts {
    /// Empty accounts, for a path with so many hops.
    pub fn new(
        hops: usize,
        recorder: Recorder,
        payload_clock: Arc<PayloadClock>,
        punctuality: Arc<Punctuality>,
        traffic: Arc<TrafficCounters>,
    ) -> Self {
        Self {
            ledger: Ledger::new(hops),
            delay_error: TimeHistogram::new(),
            queueing: [TimeHistogram::new(), TimeHistogram::new()],
            recorder,
            payload_clock,
            punctuality,
            traffic,
        }
    }

    /// Makes the calling thread the one whose punctuality counts.
    pub fn start(&self) {
        self.punctuality.start();
    }

    /// A packet was read from the sender's device.
    pub fn handle_arrival(&mut self, side: Side, now: Instant, size: Bytes) {
        self.ledger.handle_arrival(side, size);
        self.traffic.count(now, side, size.0);
    }

    /// A packet has entered the path; `dropped` when the path dropped it on entry.
    pub fn handle_entry(&mut self, side: Side, now: Instant, bytes: &[u8], dropped: Option<DropCause>) {
        self.recorder.sent(side, now, bytes, dropped);
    }

    /// The path has made a copy of a packet.
    pub fn handle_duplicate(&mut self, side: Side) {
        self.ledger.handle_duplicate(side);
    }

    /// A packet is about to be written to the receiver's device. The payload clock is set before the host has the packet,
    /// because the receiving thread may read it at once.
    pub fn handle_release(&self, side: Side, headers: Headers, now: Instant) {
        let client_port = headers.client_port(side);
        if headers.flags & TCP_SYN != 0 {
            // A new connection; another may have had its port before.
            for side in Side::BOTH {
                self.payload_clock.reset(side, client_port);
            }
        } else if headers.payload_bytes > 0 {
            self.payload_clock.record(side, client_port, now);
        }
    }

    /// A packet was offered to the receiver's device at `actual`, whether or not the device took it.
    pub fn handle_departure(&mut self, side: Side, packet: &Packet, actual: Instant) {
        let error = actual.saturating_since(packet.at);
        self.delay_error.record(error.as_nanos());
        self.punctuality.record(error);
        self.queueing[side as usize].record(packet.spent.queueing.as_nanos());
    }

    /// The receiver's device took a packet at `actual`.
    pub fn handle_delivery(&mut self, side: Side, packet: &Packet, known: Known, bytes: &[u8], actual: Instant) {
        self.ledger.handle_delivery(side, packet.size);
        self.ledger.handle_end(side, packet.index, Some(actual));
        if let Some(hop) = packet.marked_in {
            self.ledger.handle_mark(side, hop);
        }
        if packet.flipped_bit.is_some() {
            self.ledger.handle_corruption(side);
        }
        self.recorder.received(side, actual, bytes);
        self.record(side, packet, known, Some(actual), Verdict::Delivered);
    }

    /// A packet was dropped.
    pub fn handle_drop(&mut self, side: Side, packet: &Packet, known: Known, cause: DropCause) {
        self.ledger.handle_drop(side, cause, packet.hop);
        if packet.copy == 0 {
            self.ledger.handle_end(side, packet.index, None);
        }
        self.record(side, packet, known, None, Verdict::Dropped(cause));
    }

    /// A background packet has left the path, or was dropped.
    pub fn handle_background(&mut self, side: Side, departure: &Departure) {
        let packet = departure.packet();
        self.recorder.background(side, packet, matches!(departure, Departure::Dropped(..)));
        match departure {
            Departure::Dropped(_, cause) => self.ledger.handle_background_drop(side, *cause, packet.hop),
            _ => self.ledger.handle_background(side, packet.hop, packet.size, packet.marked_in.is_some()),
        }
    }

    /// The total of background packets into the path so far.
    pub fn handle_background_sent(&mut self, side: Side, packets: u64) {
        self.ledger.handle_background_sent(side, packets);
    }

    /// The path sent an ICMP message to the sending host of direction `side`; its device has `taken` it or not.
    pub fn handle_icmp(&mut self, side: Side, message: &[u8], now: Instant, taken: bool) {
        self.ledger.handle_icmp(side, Bytes(message.len() as u64), taken);
        if taken {
            self.recorder.received(side.opposite(), now, message);
        }
    }

    /// A packet is still in the path at the end.
    pub fn handle_rest(&mut self, side: Side, packet: &Packet, known: Known) {
        self.record(side, packet, known, None, Verdict::Queued);
    }

    /// Hands the last records over and gives the totals.
    pub fn close(self) -> Totals {
        self.recorder.finish();
        Totals { ledger: self.ledger, delay_error: self.delay_error, queueing: self.queueing }
    }

    fn record(&mut self, side: Side, packet: &Packet, known: Known, left: Option<Instant>, verdict: Verdict) {
        self.recorder.packet(PacketRecord {
            side,
            index: packet.index,
            copy: packet.copy,
            flipped_bit: packet.flipped_bit,
            size: packet.size,
            headers: known.headers,
            sending: known.sending,
            waker: known.waker,
            entered: packet.entered,
            due: packet.at,
            spent: packet.spent,
            marked_in: packet.marked_in,
            hop: packet.hop,
            left,
            verdict,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crosswind_path::Arrival;
    use crosswind_units::Duration;

    #[test]
    fn queueing_is_what_the_packet_says_and_not_what_is_left_of_its_time() {
        let mut accounts = Accounts::new(
            1,
            Recorder::off(),
            Arc::new(PayloadClock::new()),
            Arc::new(Punctuality::new(Duration::ZERO)),
            Arc::default(),
        );
        let arrival = Arrival { size: Bytes(1250), ..Arrival::default() };
        let mut packet = Packet::entering(0, Instant::ZERO, arrival);
        packet.hold(Duration::from_millis(7));
        packet.queue_until(Instant::from_nanos(9_000_000));
        packet.transmit(Duration::from_millis(1));
        packet.propagate(Duration::from_millis(20));
        assert_eq!(packet.at, Instant::from_nanos(30_000_000));
        accounts.handle_departure(Side::Forward, &packet, Instant::from_nanos(30_000_500));
        let totals = accounts.close();
        let [forward, reverse] = totals.queueing.map(|times| times.report());
        assert_eq!((forward.n, forward.max, reverse.n), (1, 2_000_000, 0));
        assert_eq!(totals.delay_error.report().max, 500);
    }
}
