//! TCP, and other protocols beside it, over handwritten packet tables.

#[path = "../common/mod.rs"]
mod common;
mod connections;
mod counts;
mod http2;
mod properties;
mod transits;

use common::NO_HTTP;
use crosswind_attribution::{Attribution, DelayCause, Hosts, Interval, MessageTransit};
use crosswind_ledger::{
    DropCause, Headers, HttpEnd, HttpFrame, HttpWrite, PacketRecord, QuicLog, Sending, TCP, TCP_ACK, TcpOptions,
    Trigger, Verdict,
};
use crosswind_path::{Side, TimeSpent, loss::LOSS};
use crosswind_units::Instant;

const PORT: u16 = 40_000;
const PROPAGATION_US: u64 = 1000;
const HOSTS: Hosts = Hosts { nagle: true, ..common::HOSTS };

fn at(us: u64) -> Instant {
    Instant::from_nanos(us * 1000)
}

/// Packets as they enter a path without a link.
#[derive(Default)]
struct Wire {
    packets: Vec<PacketRecord>,
}

impl Wire {
    fn add(&mut self, side: Side, us: u64, arrives: bool, headers: Headers) {
        let index = self.packets.iter().filter(|it| it.side == side).count() as u64;
        let due = at(us + if arrives { PROPAGATION_US } else { 0 });
        let (source_port, destination_port) = if side == Side::Forward { (PORT, 80) } else { (80, PORT) };
        let headers = Headers { source_port, destination_port, ..headers };
        self.packets.push(PacketRecord {
            due,
            spent: TimeSpent { propagation: due.saturating_since(at(us)), ..TimeSpent::default() },
            left: arrives.then_some(due),
            verdict: if arrives { Verdict::Delivered } else { Verdict::Dropped(DropCause::Path(LOSS)) },
            ..PacketRecord::new(side, index, at(us), headers)
        });
    }

    /// A segment from the client.
    fn data(&mut self, us: u64, start: u32, bytes: u32, arrives: bool) {
        let headers =
            Headers { protocol: TCP, flags: TCP_ACK, sequence: 1 + start, payload_bytes: bytes, ..Headers::default() };
        self.add(Side::Forward, us, arrives, headers);
    }

    /// An acknowledgement from the server.
    fn ack(&mut self, us: u64, up_to: u32, window: u16, has_sack: bool) {
        let options = TcpOptions { has_sack, ..TcpOptions::default() };
        let headers = Headers {
            protocol: TCP,
            flags: TCP_ACK,
            acknowledgement: 1 + up_to,
            window,
            options,
            ..Headers::default()
        };
        self.add(Side::Reverse, us, true, headers);
    }

    /// The last packet is lost.
    fn lose_last(&mut self) {
        if let Some(last) = self.packets.last_mut() {
            (last.left, last.verdict) = (None, Verdict::Dropped(DropCause::Path(LOSS)));
        }
    }

    fn syns(&mut self) {
        let options = TcpOptions { sack_permitted: true, ..TcpOptions::default() };
        let syn = Headers { protocol: TCP, flags: 2, window: 60_000, options, ..Headers::default() };
        self.add(Side::Forward, 0, true, syn);
        self.add(Side::Reverse, 1000, true, Headers { flags: 2 | TCP_ACK, acknowledgement: 1, ..syn });
    }

    /// A transit's intervals: causes with microseconds, and timer expiries.
    fn pieces(&self, transit: MessageTransit) -> Vec<(DelayCause, u64, u32)> {
        self.pieces_at(HOSTS, transit)
    }

    fn pieces_at(&self, hosts: Hosts, transit: MessageTransit) -> Vec<(DelayCause, u64, u32)> {
        let pieces = Attribution::new(&self.packets, &<[QuicLog; 2]>::default(), &NO_HTTP, hosts).transit(transit);
        assert_is_whole(&pieces, transit.written, transit.received);
        pieces.iter().map(|it| (it.part, it.to.saturating_since(it.from).as_nanos() / 1000, it.count)).collect()
    }

    /// The same for a message to the server.
    fn forward(&self, written: u64, received: u64, bytes: u64, alone: bool) -> Vec<(DelayCause, u64, u32)> {
        self.pieces(MessageTransit { alone, ..transit(written, received, bytes) })
    }
}

/// A segment's reason without an obstacle.
const fn by(trigger: Trigger) -> Sending {
    Sending { trigger, held_by: None, held_since: None, written: None }
}

/// A message to the server.
fn transit(written: u64, received: u64, bytes: u64) -> MessageTransit {
    MessageTransit {
        side: Side::Forward,
        client_port: PORT,
        written: at(written),
        received: at(received),
        bytes,
        position: None,
        alone: true,
        timed: false,
    }
}

fn assert_is_whole(pieces: &[Interval], from: Instant, to: Instant) {
    let ends: Vec<_> = pieces.iter().map(|it| it.to).collect();
    let begins: Vec<_> = pieces.iter().map(|it| it.from).collect();
    assert_eq!([&[from][..], &ends].concat(), [&begins[..], &[to]].concat());
    assert!(pieces.iter().all(|it| it.from < it.to));
}

/// A client's or a server's HTTP/2 writes, with microseconds.
fn http(writes: impl IntoIterator<Item = (u64, u64, u64, u64, HttpFrame)>) -> Vec<HttpEnd> {
    let writes =
        writes.into_iter().map(|(us, start, end, stream, frame)| HttpWrite { at: at(us), start, end, stream, frame });
    vec![HttpEnd { client_port: PORT, began: at(2000), writes: writes.collect() }]
}
