//! netem's limits, with reasons.

use super::rounding::{shift, sixteenths, weight_log};
use crosswind_path::link::{LinkRate, LinkSettings};
use crosswind_path::queue::{Discipline, QueueLimit, QueueSettings};
use crosswind_path::{Counting, DirectionConfig};
use crosswind_settings::plain;
use crosswind_units::{Duration, Probability};
use serde_json::{Map, Value};

/// 16-bit sizes that fit into one attribute of a request.
const LARGEST_TABLE: u32 = 32_000;

/// red's state for a mean queue has 31 bits, the weight's included.
const RED_BITS: u32 = 31;

/// The burst allowance of the kernel's pie.
const PIE_BURST: Duration = Duration::from_millis(150);

/// The MTU of the emulator's cake.
const CAKE_MTU: u32 = 1500;

/// The kernel's queues.
const QUEUES: [Discipline; 7] = [
    Discipline::Fifo,
    Discipline::HeadDrop,
    Discipline::Red,
    Discipline::Codel,
    Discipline::FqCodel,
    Discipline::Pie,
    Discipline::Cake,
];

/// The keys netem supports, with some values at least; all others have to be at their defaults.
const KEYS: &[&str] = &[
    "link_mtu_bytes",
    "mtu_black_hole",
    "loss",
    "loss_burst",
    "loss_enter",
    "loss_leave",
    "loss_in_bad",
    "loss_in_good",
    "loss_p13",
    "loss_p31",
    "loss_p32",
    "loss_p23",
    "loss_p14",
    "duplicate",
    "corrupt",
    "rate_bps",
    "queue",
    "count",
    "link_overhead_bytes",
    "link_mpu_bytes",
    "link_cells",
    "burst_bytes",
    "peak_rate_bps",
    "discipline",
    "queue_marks",
    "queue_target_ns",
    "queue_interval_ns",
    "queue_flows",
    "queue_quantum_bytes",
    "queue_update_ns",
    "queue_alpha",
    "queue_beta",
    "pie_burst_ns",
    "cake_tins",
    "cake_isolation",
    "red_min_bytes",
    "red_max_bytes",
    "red_probability",
    "red_weight",
    "delay_ns",
    "jitter_ns",
    "jitter_distribution",
    "jitter_values",
    "reorder",
    "reorder_share",
    "reorder_gap",
];

/// Every key in one direction of a hop without a netem counterpart, with the reason.
pub fn refused_settings(config: &DirectionConfig, mtu: u32) -> Vec<String> {
    let mut refused: Vec<String> = different_keys(&DirectionConfig::default(), config)
        .into_iter()
        .filter(|key| !KEYS.contains(&key.as_str()))
        .map(|key| format!("{} ({})", plain(&key), reason(&key)))
        .collect();
    refused.extend(refused_link(&config.link, mtu).into_iter().map(|(key, why)| format!("{} ({why})", plain(key))));
    refused
}

/// The keys of `config` with values other than in `base`.
pub fn different_keys(base: &DirectionConfig, config: &DirectionConfig) -> Vec<String> {
    let object = |config: &DirectionConfig| match serde_json::to_value(config) {
        Ok(Value::Object(object)) => object,
        _ => Map::new(),
    };
    let (base, given) = (object(base), object(config));
    let keys = given.iter().filter(|(key, value)| base.get(*key) != Some(value));
    keys.map(|(key, _)| key.clone()).collect()
}

/// Why there is no counterpart for a key.
fn reason(key: &str) -> &'static str {
    match key {
        "lose" | "lose_every" | "loss_sequence" => "it loses packets by chance alone",
        "hold" | "hold_time_ns" => "it delays packets by chance alone",
        "loss_bad_ns" | "loss_good_ns" => "its bursts are counted in packets, not in time",
        "bit_error_rate" => "its losses do not depend on a packet's size",
        "jitter_correlation" => "its correlation is a moving average, which changes the distribution",
        "grant_period_ns" | "grant_bytes" | "grant_queue" => "its slots begin with a packet, and it cuts none",
        "light_deliveries" | "delivery_trace" | "delivery_queue" | "delivery_once" => "it has no recorded deliveries",
        "dualpi2_coupling" | "dualpi2_step_ns" => "the kernel has no dualpi2 before 6.17",
        _ if key.starts_with("background_") => "it sends nothing of its own",
        _ => "this backend does not set it",
    }
}

fn refused_link(link: &LinkSettings, mtu: u32) -> Vec<(&'static str, String)> {
    let rate = match link.rate {
        None => return Vec::new(),
        Some(LinkRate::Stopped) => return vec![("rate_bps", "it stops no link".to_owned())],
        Some(LinkRate::Of(rate)) => rate,
    };
    let mut refused = Vec::new();
    let mut refuse = |key: &'static str, is: bool, why: &str| {
        if is {
            refused.push((key, why.to_owned()));
        }
    };
    let queueing = &link.queueing;
    let QueueSettings { signals, controller, red, .. } = queueing;
    let is = |disciplines: &[Discipline]| disciplines.contains(&queueing.discipline);
    let whole = shift(link) == 0;
    let limit = link.queue.unwrap_or_default().at_rate(Some(rate));
    let in_packets = matches!(limit, QueueLimit::Packets(_));
    let cake = is(&[Discipline::Cake]);
    refuse("queue", cake && limit != link.default_queue(), "cake's limit is of memory, not of bytes of packets");
    refuse("burst_bytes", cake && link.burst.is_some(), "cake has a shaper of its own");
    refuse("discipline", cake && mtu != CAKE_MTU, "cake's target depends on the MTU: it is 1500 here");
    let key = if is(&[Discipline::Dualpi2]) { "dualpi2_step_ns" } else { "discipline" };
    refuse("discipline", !is(&QUEUES), reason(key));
    refuse(
        "rate_bps",
        !whole && queueing.discipline.is_active(),
        "with this discipline its rates are whole bytes a second",
    );
    refuse(
        "queue",
        !in_packets && is(&[Discipline::HeadDrop]),
        "its queue that drops at the head is limited in packets",
    );
    let counts = is(&[Discipline::Codel, Discipline::FqCodel, Discipline::Pie]);
    refuse("queue", !in_packets && counts, "with this discipline it is limited in packets");
    let largest = match limit {
        QueueLimit::Bytes(bytes) => {
            (bytes + link.counting.occupied(crosswind_units::Bytes(mtu.into())).0) << shift(link)
        }
        QueueLimit::Packets(packets) => packets + 1,
        QueueLimit::Time(_) => 0,
    };
    refuse("queue", largest > u64::from(u32::MAX), "its limits have 32 bits");
    let occupied = link.counting.occupied(crosswind_units::Bytes(mtu.into()));
    refuse("burst_bytes", link.burst.is_some_and(|burst| burst < occupied), "a bucket has to hold the largest packet");
    for (key, time) in [
        ("queue_target_ns", signals.target),
        ("queue_interval_ns", signals.interval),
        ("queue_update_ns", controller.update),
    ] {
        refuse(
            key,
            time.is_some_and(|time| super::super::discipline::micros(time).is_none()),
            "its times are whole microseconds",
        );
    }
    for (key, gain) in [("queue_alpha", controller.alpha), ("queue_beta", controller.beta)] {
        refuse(key, is(&[Discipline::Pie]) && sixteenths(gain).is_none(), "it counts in sixteenths, up to 2");
    }
    refuse("pie_burst_ns", queueing.pie.burst_allowance.is_some_and(|burst| burst != PIE_BURST), "it is 150 ms");
    let log = red.weight.map(weight_log);
    refuse("red_weight", log == Some(None), "it is a power of a half");
    let bits = red.maximum.map_or(0, |maximum| u64::BITS - maximum.0.leading_zeros());
    refuse(
        "red_max_bytes",
        bits + log.flatten().map_or(0, u32::from) > RED_BITS,
        "with this weight it has no such mean queue",
    );
    refuse("red_probability", red.probability == Some(Probability::ZERO), "it is more than 0");
    if (link.counting != Counting::IP || !whole) && mtu > LARGEST_TABLE {
        let why = format!("with an MTU of {mtu}: its table of sizes ends at {LARGEST_TABLE}");
        refused.push((if whole { "count" } else { "rate_bps" }, why));
    }
    refused
}
