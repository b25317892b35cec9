//! Traces from any bytes, as tables over time and as CellReplay's: each is refused with its line, or its link is replayed.

#![no_main]

use crosswind_path::world::World;
use crosswind_path::{PathConfig, Side};
use crosswind_units::{Instant, Seed};
use libfuzzer_sys::fuzz_target;
use serde_json::json;

fuzz_target!(|text: &str| {
    let settings = json!({"changes": [{"trace": "trace"}]});
    let settings = settings.as_object().expect("it is one");
    match PathConfig::read(settings, &|_| Ok(text.to_owned())) {
        Ok(config) => {
            let mut world = World::new(config.direction(Side::Forward, Seed(1)));
            for at in [0, 1, 2_000_000_000] {
                world.send_at(Instant::from_nanos(at), 1500);
            }
            for _ in 0..3 {
                // A link may stand still for good.
                let Some((packet, _)) = world.next_fate() else { break };
                assert!(packet.at >= packet.entered && packet.at - packet.entered == packet.spent.total());
            }
            config.effect(Side::Forward);
        }
        // Mutually exclusive keys have no line.
        Err(error) => assert!(!error.problem.is_empty() && !error.hint.is_empty(), "{error}"),
    }
});
