//! What the path costs: `cargo bench -p crosswind-path`. It prints figures and makes no judgement.

#![allow(clippy::unwrap_used)] // a benchmark that cannot run stops

use crosswind_path::{Arrival, Direction, DirectionConfig, Ecn};
use crosswind_units::{Bytes, Instant, Seed};
use serde_json::{Value, json};
use std::hint::black_box;
use std::time;

const PACKETS: u64 = 5_000_000;

fn main() {
    measure("no element", &json!({}), 100);
    measure("delay", &json!({"delay_ns": 10_000_000}), 100);
    measure("loss", &json!({"loss": 0.01}), 100);
    let link = |discipline: &str| {
        json!({"link_mtu_bytes": 1500, "loss": 0.01, "rate_bps": 100_000_000_000_u64, "discipline": discipline,
               "queue": {"packets": 1000}, "delay_ns": 1_000_000})
    };
    for discipline in ["fifo", "head_drop", "red", "codel", "fq_codel", "pie", "dualpi2"] {
        // 1500 bytes take 120 ns at this rate: half of what the link carries, and what fills its queue.
        measure(&format!("MTU, loss, link with {discipline}, delay; half a load"), &link(discipline), 240);
        measure(&format!("MTU, loss, link with {discipline}, delay; a load of 102 %"), &link(discipline), 117);
    }
}

/// Packets a second, one every `gap_ns` of virtual time; eight flows, of which every other takes marks.
fn measure(name: &str, settings: &Value, gap_ns: u64) {
    let config = DirectionConfig::from_object(settings.as_object().unwrap()).unwrap();
    let mut direction = Direction::from_config(&config, Seed(1));
    let start = time::Instant::now();
    for index in 0..PACKETS {
        let now = Instant::from_nanos(index * gap_ns);
        let ecn = if index % 2 == 0 { Ecn::Ect0 } else { Ecn::NotCapable };
        direction.handle_packet(now, Arrival { size: Bytes(1500), flow: (index % 8) as u32, ecn, buffer: 0 });
        while let Some(departure) = direction.poll_packet(now) {
            black_box(departure);
        }
    }
    let rate = PACKETS as f64 / start.elapsed().as_secs_f64() / 1e6;
    println!("{name}: {rate:.1} million packets/s");
}
