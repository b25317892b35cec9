//! Packets into the path, and out of it.

use crate::buffers::Buffers;
use crate::log::Log;
use crate::{Event, Settings};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use crosswind_packet::{Headers, Place, RawSending, Service, icmp_about};
use crosswind_path::{Arrival, Cause, Departure, Direction, Packet, Path, Side};
use crosswind_units::{Bytes, Duration, Instant};

/// A packet still inside by then stays for good, as before a stalled link.
const PATH_EMPTY: Duration = Duration::from_secs(86_400);

/// A packet's bytes in the kernel.
pub trait Buffer {
    /// The packet.
    fn bytes(&self) -> &[u8];
}

/// A packet to hand to a host.
pub struct Leaving<'a> {
    /// As its receiver's threads know it: a [`Place`] as a number, or 0.
    pub waker: u64,
    /// The pair of hosts.
    pub pair: u8,
    /// The receiving host of this direction.
    pub side: Side,
    /// An IP packet.
    pub bytes: &'a [u8],
    /// Whether it is to be marked (ECN).
    pub marked: bool,
    /// The bit to flip, counted from the first.
    pub flipped_bit: Option<u32>,
}

/// Host packets in a path. Times are the kernel's, nanoseconds.
pub struct Forwarding<B> {
    path: Path,
    origin_ns: u64,
    keeps_bytes: bool,
    buffers: Buffers<B>,
    /// Departed, not yet handed to a host.
    departures: VecDeque<(Side, Departure)>,
    /// Handed out last, awaiting its outcome.
    offered: Option<(Side, Offer)>,
    /// Once delivery has stopped: packets lost to that since, forward and reverse.
    undeliverable: Option<[u64; 2]>,
    log: Log,
}

enum Offer {
    Packet(Packet),
    /// About a dropped packet.
    Message(Vec<u8>, Packet, Cause),
}

impl<B: Buffer> Forwarding<B> {
    /// An empty path.
    pub fn new(settings: Settings) -> Self {
        let [forward, reverse] = settings.stages.map(Direction::of_compiled);
        Self {
            path: Path::new(forward, reverse),
            origin_ns: settings.origin_ns,
            keeps_bytes: settings.keeps_bytes,
            buffers: Buffers::new(),
            departures: VecDeque::new(),
            offered: None,
            undeliverable: None,
            log: Log::default(),
        }
    }

    /// Takes a packet sent at `now` by a host, with its kernel's reasons.
    pub fn handle_packet(&mut self, pair: u8, side: Side, now: u64, buffer: B, sending: RawSending) {
        let (waker, sending) = (sending.waker(|at| self.own(at)), sending.read(|at| self.own(at)));
        let now = self.own(now);
        let bytes = buffer.bytes();
        let (headers, Service { source, destination, dscp }) = (Headers::parse(bytes), Service::parse(bytes));
        let size = Bytes(bytes.len() as u64);
        let token = self.buffers.take(buffer);
        let arrival =
            Arrival { size, flow: headers.flow(), source, destination, dscp, ecn: headers.ecn, buffer: token, pair };
        self.path.handle_packet(side, now, arrival);
        let before = self.departures.len();
        self.settle(side, now);
        let dropped = self.departures.range(before..).find_map(|(_, departure)| match departure {
            Departure::Dropped(packet, cause)
                if packet.buffer == token && packet.copy == 0 && !packet.is_background =>
            {
                Some(*cause)
            }
            _ => None,
        });
        let bytes = match self.buffers.get(token) {
            Some(buffer) if self.keeps_bytes => buffer.bytes(),
            _ => &[],
        };
        self.log.push(&Event::Entered { side, at: now, token, size, headers, sending, waker, dropped, bytes });
    }

    /// Releases due packets from the path.
    pub fn release(&mut self, now: u64) {
        let now = self.own(now);
        for side in Side::BOTH {
            self.settle(side, now);
        }
    }

    /// Whether anything waits for [`next_leaving`](Self::next_leaving).
    pub fn has_left(&self) -> bool {
        !self.departures.is_empty()
    }

    /// The next packet to hand to a host. [`handle_offered`](Self::handle_offered) has to follow.
    pub fn next_leaving(&mut self) -> Option<Leaving<'_>> {
        while let Some((side, departure)) = self.departures.pop_front() {
            let packet = *departure.packet();
            if packet.is_background {
                let cause = if let Departure::Dropped(_, cause) = departure { Some(cause) } else { None };
                self.log.push(&Event::Background { side, packet, cause });
                continue;
            }
            match departure {
                Departure::Duplicated(_) => {
                    self.buffers.share(packet.buffer);
                    self.log.push(&Event::Duplicated { side });
                }
                Departure::Forwarded(_) => {
                    let Some(packets) = &mut self.undeliverable else {
                        self.offered = Some((side, Offer::Packet(packet)));
                        return self.leaving();
                    };
                    packets[side as usize] += 1;
                    self.log.push(&Event::Rest { side, packet });
                    self.buffers.give_back(packet.buffer);
                }
                Departure::Dropped(_, cause) => {
                    let told = packet.told_mtu.filter(|_| self.undeliverable.is_none());
                    let message = told.and_then(|mtu| icmp_about(self.bytes(packet.buffer), Bytes(mtu.into())));
                    if let Some(message) = message {
                        self.offered = Some((side, Offer::Message(message, packet, cause)));
                        return self.leaving();
                    }
                    self.log.push(&Event::Dropped { side, packet, cause });
                    self.buffers.give_back(packet.buffer);
                }
            }
        }
        None
    }

    /// Whether the host's device took the last packet at `now`.
    pub fn handle_offered(&mut self, now: u64, taken: bool) {
        let at = self.own(now);
        match self.offered.take() {
            Some((side, Offer::Packet(packet))) => {
                self.log.push(&Event::Left { side, packet, at, taken });
                self.buffers.give_back(packet.buffer);
            }
            Some((side, Offer::Message(message, packet, cause))) => {
                self.log.push(&Event::Icmp { side, at, taken, bytes: &message });
                self.log.push(&Event::Dropped { side, packet, cause });
                self.buffers.give_back(packet.buffer);
            }
            None => {}
        }
    }

    /// When [`release`](Self::release) is to be called next, if nothing is sent before.
    pub fn next_wakeup(&self) -> Option<u64> {
        let next = self.path.next_wakeup().filter(|_| self.undeliverable.is_none())?;
        Some(self.origin_ns.saturating_add(next.as_nanos()))
    }

    /// Whether no host packet is inside.
    pub fn is_empty(&self) -> bool {
        self.path.queued() == [0, 0] && self.departures.is_empty()
    }

    /// From now on nothing is handed to hosts.
    pub fn end(&mut self) {
        self.undeliverable.get_or_insert([0, 0]);
    }

    /// Logs the packets left inside. Nothing may happen afterwards.
    pub fn report(&mut self, now: u64) {
        while self.next_leaving().is_some() {}
        let undeliverable = self.undeliverable.unwrap_or_default();
        let inside = self.path.queued();
        let end = self.own(now) + PATH_EMPTY;
        self.path.end_background();
        let background = self.path.background();
        for side in Side::BOTH {
            while let Some(departure) = self.path.poll_packet(side, end) {
                let packet = *departure.packet();
                if packet.is_background {
                    // It was inside at the end.
                    continue;
                }
                let event = match departure {
                    Departure::Duplicated(_) => Event::Duplicated { side },
                    _ => Event::Rest { side, packet },
                };
                self.log.push(&event);
            }
        }
        let queued = [inside[0] + undeliverable[0], inside[1] + undeliverable[1]];
        self.log.push(&Event::Ended { queued, background });
    }

    /// The number of full event chunks.
    pub fn full_chunks(&self) -> usize {
        self.log.full()
    }

    /// The oldest events; none where all have been taken.
    pub fn take_events(&mut self) -> Option<Vec<u8>> {
        self.log.take()
    }

    /// Takes back a chunk from [`take_events`](Self::take_events).
    pub fn give_back_events(&mut self, chunk: Vec<u8>) {
        self.log.give_back(chunk);
    }

    fn settle(&mut self, side: Side, now: Instant) {
        while let Some(departure) = self.path.poll_packet(side, now) {
            self.departures.push_back((side, departure));
        }
    }

    fn leaving(&self) -> Option<Leaving<'_>> {
        let (side, offer) = self.offered.as_ref()?;
        Some(match offer {
            Offer::Packet(packet) => Leaving {
                waker: Place(*side, packet.index).number(),
                pair: packet.pair,
                side: *side,
                bytes: self.bytes(packet.buffer),
                marked: packet.marked_in.is_some(),
                flipped_bit: packet.flipped_bit,
            },
            Offer::Message(message, packet, _) => {
                let side = side.opposite();
                Leaving { waker: 0, pair: packet.pair, side, bytes: message, marked: false, flipped_bit: None }
            }
        })
    }

    fn bytes(&self, token: u32) -> &[u8] {
        self.buffers.get(token).map_or(&[], Buffer::bytes)
    }

    /// The kernel's time on the path's clock.
    fn own(&self, now: u64) -> Instant {
        Instant::from_nanos(now.saturating_sub(self.origin_ns))
    }
}
