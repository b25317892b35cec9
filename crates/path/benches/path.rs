//! The path's cost: `cargo bench -p crosswind-path`. It prints figures and makes no judgement.

#![allow(clippy::unwrap_used)] // a benchmark that cannot run stops

use crosswind_path::{Arrival, Direction, DirectionConfig, Ecn};
use crosswind_units::{Bytes, Instant, Seed};
use serde_json::{Map, Value, json};
use std::hint::black_box;

const PACKETS: u64 = 5_000_000;

fn main() {
    let mut settings = Map::new();
    measure("no element", &settings, 120);
    for (number, (element, keys)) in (1..).zip([
        ("delay", json!({"delay_ns": 1_000_000})),
        ("link", json!({"rate_bps": 200_000_000_000_u64})),
        ("loss", json!({"loss": 0.01})),
        ("MTU", json!({"link_mtu_bytes": 1500})),
        ("corruption", json!({"corrupt": 0.01})),
        ("duplication", json!({"duplicate": 0.01})),
        ("grants", json!({"grant_period_ns": 10_000})),
    ]) {
        settings.extend(keys.as_object().unwrap().clone());
        measure(&format!("{number} elements, the last added: {element}"), &settings, 120);
    }
    measure("jitter", json!({"delay_ns": 1_000_000, "jitter_ns": 100_000, "reorder": true}).as_object().unwrap(), 120);
    let link = |discipline: &str| {
        json!({"link_mtu_bytes": 1500, "loss": 0.01, "rate_bps": 100_000_000_000_u64, "discipline": discipline,
               "queue": {"packets": 1000}, "delay_ns": 1_000_000})
        .as_object()
        .unwrap()
        .clone()
    };
    for discipline in ["fifo", "head_drop", "red", "codel", "fq_codel", "pie", "dualpi2", "cake"] {
        // 1500 bytes take 120 ns at this rate: half a load, and a little more than a load, so the queue fills.
        measure(&format!("MTU, loss, link with {discipline}, delay; half a load"), &link(discipline), 240);
        measure(&format!("MTU, loss, link with {discipline}, delay; a load of 102 %"), &link(discipline), 117);
    }
}

/// Packets per second, one every `gap_ns` in virtual time; eight flows, half of them ECN-capable.
fn measure(name: &str, settings: &Map<String, Value>, gap_ns: u64) {
    let only = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    if only.is_some_and(|only| !name.starts_with(&only)) {
        return;
    }
    let config = DirectionConfig::from_object(settings).unwrap();
    let mut direction = Direction::from_config(&config, Seed(1));
    let start = processor_time_ns();
    for index in 0..PACKETS {
        let now = Instant::from_nanos(index * gap_ns);
        let ecn = if index % 2 == 0 { Ecn::Ect0 } else { Ecn::NotCapable };
        direction
            .handle_packet(now, Arrival { size: Bytes(1500), flow: (index % 8) as u32, ecn, ..Arrival::default() });
        while let Some(departure) = direction.poll_packet(now) {
            black_box(departure);
        }
    }
    let each = (processor_time_ns() - start) as f64 / PACKETS as f64;
    println!("{name}: {:.1} million packets/s, {each:.0} ns each", 1e3 / each);
}

/// This thread's processor time: other load on the machine does not count.
fn processor_time_ns() -> u64 {
    let times = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    times.split(' ').next().unwrap().parse().unwrap()
}
