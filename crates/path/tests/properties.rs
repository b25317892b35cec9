//! Properties of every direction: each packet leaves once, in order, and never early.
#![allow(clippy::unwrap_used)]

use crosswind_path::world::{Fate, World};
use crosswind_path::{Direction, DirectionConfig};
use crosswind_units::{Instant, Seed};
use proptest::prelude::*;
use serde_json::json;
use std::collections::BTreeSet;

fn configs() -> impl Strategy<Value = DirectionConfig> {
    let packets = (1_u64..20).prop_map(|packets| json!({"packets": packets}));
    let bytes = (1_u64..20_000).prop_map(|bytes| json!({"bytes": bytes}));
    let link = (1_u64..1_000_000_000, prop_oneof![packets, bytes]);
    let count = prop_oneof![Just("ip"), Just("ethernet")];
    (0_u64..50_000_000, 0.0..=1.0_f64, proptest::option::of(link), count).prop_map(|(delay_ns, loss, link, count)| {
        let mut settings = json!({"delay_ns": delay_ns, "loss": loss, "count": count});
        if let Some((rate_bps, queue)) = link {
            settings["rate_bps"] = rate_bps.into();
            settings["queue"] = queue;
        }
        DirectionConfig::from_object(settings.as_object().unwrap()).unwrap()
    })
}

proptest! {
    #[test]
    fn every_packet_leaves_once_in_order_and_never_early(
        config in configs(),
        seed in any::<u64>(),
        sends in proptest::collection::vec((0_u64..10_000_000, 20_u64..1500), 1..100),
    ) {
        let mut world = World::new(Direction::from_config(&config, Seed(seed)));
        for &(at, size) in &sends {
            world.send_at(Instant::from_nanos(at), size);
        }
        let mut seen = BTreeSet::new();
        let mut last_delivery = None;
        let mut last_index = None;
        while let Some((packet, fate)) = world.next_fate() {
            prop_assert!(seen.insert(packet.index));
            prop_assert_eq!(packet.entered + packet.spent.total(), packet.at);
            prop_assert_eq!(packet.at, match fate { Fate::Delivered(at) | Fate::Dropped(at, _) => at });
            if let Fate::Delivered(at) = fate {
                prop_assert!(at >= packet.entered + config.longest_delay());
                if let Some(rate) = config.link.rate {
                    let wire = rate.transmission(config.link.counting.occupied(packet.size), 0).duration;
                    prop_assert!(at >= packet.entered + config.longest_delay() + wire);
                }
                prop_assert!(last_delivery <= Some(at));
                prop_assert!(last_index < Some(packet.index));
                (last_delivery, last_index) = (Some(at), Some(packet.index));
            }
        }
        prop_assert_eq!(seen.len(), sends.len());
        prop_assert_eq!(world.queued(), 0);
    }

    #[test]
    fn polling_late_changes_no_nominal_time(
        config in configs(),
        sends in proptest::collection::vec((0_u64..1_000_000, 20_u64..1500), 1..50),
    ) {
        let mut sends = sends;
        sends.sort_unstable();
        let mut exact = World::new(Direction::from_config(&config, Seed(1)));
        let mut late = Direction::from_config(&config, Seed(1));
        for &(at, size) in &sends {
            exact.send_at(Instant::from_nanos(at), size);
            late.handle_packet(Instant::from_nanos(at), crosswind_units::Bytes(size), 0);
        }
        let far = Instant::from_nanos(u64::MAX);
        let mut nominal: Vec<_> = std::iter::from_fn(|| late.poll_packet(far)).map(|departure| match departure {
            crosswind_path::Departure::Forwarded(p) => (p.index, Fate::Delivered(p.at)),
            crosswind_path::Departure::Dropped(p, cause) => (p.index, Fate::Dropped(p.at, cause)),
        }).collect();
        let mut fates = exact.run();
        nominal.sort_by_key(|(index, _)| *index);
        fates.sort_by_key(|(index, _)| *index);
        prop_assert_eq!(nominal, fates);
    }
}
