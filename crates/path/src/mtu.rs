//! The largest packet that the path's narrowest link takes.

use crate::{Cause, Departure, Element, ElementSettings, Packet};
use crosswind_units::{Bytes, Instant, Seed};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// A packet was larger than the link's MTU.
pub const MTU: Cause = Cause::new("mtu");

/// RFC 791: what every host has to take.
const MIN_MTU: u32 = 576;
/// What the length field of an IP packet holds.
const MAX_MTU: u32 = 65_535;

/// The path's MTU: larger packets are dropped, and ICMP tells their sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct MtuSettings {
    /// Largest IP packet that the path forwards; it may be smaller than the hosts' MTU (IPv4: 576 or more, IPv6: 1280 or more).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = MIN_MTU, max = MAX_MTU), extend("default_help" = "mtu"))]
    pub link_mtu_bytes: Option<u32>,
    /// Whether packets that are too large are dropped silently; otherwise ICMP reports them (fragmentation needed, packet too big).
    pub mtu_black_hole: bool,
}

impl ElementSettings for MtuSettings {
    fn element(&self, _seed: Seed) -> Option<Box<dyn Element>> {
        self.link_mtu_bytes.map(|bytes| Box::new(Mtu::new(Bytes(bytes.into()))) as Box<dyn Element>)
    }

    fn drop_causes(&self) -> &'static [Cause] {
        &[MTU]
    }

    fn is_random(&self) -> bool {
        false
    }
}

/// Drops packets that are larger than the link's MTU.
pub struct Mtu {
    largest: Bytes,
    out: VecDeque<Departure>,
}

impl Mtu {
    /// A link that takes packets of up to this size.
    pub fn new(largest: Bytes) -> Self {
        Self { largest, out: VecDeque::new() }
    }
}

impl Element for Mtu {
    fn handle_packet(&mut self, _now: Instant, packet: Packet) {
        self.out.push_back(if packet.size.0 > self.largest.0 {
            Departure::Dropped(packet, MTU)
        } else {
            Departure::Forwarded(packet)
        });
    }

    fn poll_packet(&mut self, _now: Instant) -> Option<Departure> {
        self.out.pop_front()
    }

    fn next_wakeup(&self) -> Option<Instant> {
        None
    }

    fn queued(&self) -> usize {
        self.out.len()
    }
}
