//! The path's MTU.

use crate::derive::{Deserialize, JsonSchema, Serialize};
use crate::{Cause, Effect, Element, ElementSettings, Outcome, Schedule, filter};
use alloc::boxed::Box;
use crosswind_units::Seed;

/// A packet was larger than the link's MTU.
pub const MTU: Cause = Cause::new("mtu");

/// RFC 791: every host's minimum.
const MIN_MTU: u32 = 576;
/// The limit of an IP packet's length field.
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
    fn element(settings: Schedule<Self>, _seed: Seed) -> Option<Box<dyn Element>> {
        settings.ever(|settings| settings.link_mtu_bytes.is_some()).then(|| largest_packet(settings))
    }

    fn drop_causes(&self) -> &'static [Cause] {
        &[MTU]
    }

    fn effect(&self) -> Effect {
        Effect { mtu_bytes: self.link_mtu_bytes, ..Effect::default() }
    }

    fn is_random(&self) -> bool {
        false
    }
}

/// Drops packets larger than the MTU.
pub fn largest_packet(mut settings: Schedule<MtuSettings>) -> Box<dyn Element> {
    filter(move |packet| {
        let settings = settings.at(packet.at);
        match settings.link_mtu_bytes {
            Some(largest) if packet.size.0 > u64::from(largest) => {
                packet.told_mtu = (!settings.mtu_black_hole).then_some(largest);
                Outcome::Drops(MTU)
            }
            _ => Outcome::Passes,
        }
    })
}
