//! A path as queueing disciplines: what each direction passes, one stage after another, and what of a path netem cannot do.

use super::discipline::{Discipline, Netem, Tbf, parts};
use crosswind_path::link::{self, LinkRate};
use crosswind_path::{Cause, Counting, DirectionConfig, PathConfig, Side, loss, queue::QueueLimit};
use crosswind_settings::SettingError;
use crosswind_units::{Bytes, Duration, Seed};
use serde_json::{Map, Value};

/// So many packets never wait: a line drops none.
const UNLIMITED: u32 = 1_000_000_000;

/// How much earlier than it must a token bucket lets packets go: its timer may be late by that without costing throughput.
const TIMER_SLACK: Duration = Duration::from_micros(10);

/// Sizes of 16 bits that one attribute of a request has room for.
const LARGEST_TABLE: u32 = 32_000;

/// The keys that netem can do; all others have to be at their defaults.
const KEYS: [&str; 4] = ["loss", "rate_bps", "queue", "count"];

/// What the devices between the hosts do to packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Client to server.
    pub forward: Vec<Stage>,
    /// Server to client.
    pub reverse: Vec<Stage>,
}

/// What one device does: a discipline, and perhaps another one inside, to which it hands its packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage {
    /// What occupies the link and queues in bytes.
    pub counting: Counting,
    /// The outer one first.
    pub disciplines: Vec<Applied>,
}

/// A discipline, and why it drops packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// What the kernel is to do.
    pub discipline: Discipline,
    /// The cause of its own drops; none where it is not to drop any.
    pub cause: Option<Cause>,
}

impl Plan {
    /// What does to packets of up to `mtu` bytes what `path` does.
    ///
    /// # Errors
    /// Every key that netem has no counterpart for, in one sentence about `backend`.
    pub fn new(path: &PathConfig, mtu: u32, seed: Seed) -> Result<Self, SettingError> {
        let refused = refused_keys(path, mtu);
        if !refused.is_empty() {
            let problem = format!("netem cannot do {}", refused.join(", "));
            return Err(SettingError::new("backend", problem, "use the backend tun, or leave these keys out"));
        }
        let direction = |side: Side| {
            let hops = path.hops.iter().enumerate();
            let stages = hops
                .map(|(number, hop)| stages(hop.side(side), mtu, seed.child(side.name()).child(&number.to_string())));
            let mut stages: Vec<_> = stages.collect();
            if side == Side::Reverse {
                stages.reverse();
            }
            stages.concat()
        };
        Ok(Self { forward: direction(Side::Forward), reverse: direction(Side::Reverse) })
    }

    /// The stages of one direction, in the order in which packets pass them.
    pub fn side(&self, side: Side) -> &[Stage] {
        match side {
            Side::Forward => &self.forward,
            Side::Reverse => &self.reverse,
        }
    }

    /// How many namespaces between the hosts it takes: each has one device for each direction.
    pub fn namespaces(&self) -> usize {
        self.forward.len().max(self.reverse.len()).max(1)
    }
}

/// Loss and the link, then the delay, as the path's elements are ordered.
fn stages(config: &DirectionConfig, mtu: u32, seed: Seed) -> Vec<Stage> {
    let counting = config.link.counting;
    let seed = |index: u64| Some(seed.word(index));
    let line = Netem { limit_packets: UNLIMITED, ..Netem::default() };
    let mut delay = Netem { delay: config.delay.delay, seed: seed(2), ..line.clone() };
    let mut first = Vec::new();
    if config.loss.probability.as_fraction() > 0.0 {
        let loss = Netem { loss: parts(config.loss.probability), seed: seed(0), ..line };
        first.push(Applied { discipline: Discipline::Netem(loss), cause: Some(loss::LOSS) });
    }
    if let Some(rate) = config.link.rate.and_then(LinkRate::moving) {
        let rate_bytes_per_s = rate.as_bps() / 8;
        let discipline = if let QueueLimit::Bytes(bytes) = config.link.queue.unwrap_or_default().at_rate(Some(rate)) {
            // netem counts no bytes. A bucket of one packet lets each go when the one before is over, and netem then takes its time.
            delay.rate_bytes_per_s = rate_bytes_per_s;
            let slack = u128::from(rate_bytes_per_s) * u128::from(TIMER_SLACK.as_nanos());
            let burst = Bytes(counting.occupied(Bytes(mtu.into())).0 + slack.div_ceil(1_000_000_000) as u64);
            Discipline::Tbf(Tbf { rate_bytes_per_s, burst, limit_bytes: bytes as u32 })
        } else {
            // The packet on the wire is among those that netem holds.
            let limit_packets = (packets(config.link.queue).unwrap_or_default() + 1) as u32;
            Discipline::Netem(Netem { limit_packets, rate_bytes_per_s, seed: seed(1), ..Netem::default() })
        };
        first.push(Applied { discipline, cause: Some(link::QUEUE_FULL) });
    }
    let mut stages = Vec::new();
    let delays = delay.delay > Duration::ZERO || delay.rate_bytes_per_s > 0;
    let delay = Applied { discipline: Discipline::Netem(delay), cause: None };
    if !first.is_empty() {
        stages.push(Stage { counting, disciplines: first });
    }
    if delays {
        stages.push(Stage { counting, disciplines: vec![delay] });
    }
    stages
}

/// The limit of a queue in packets, if it is in packets.
fn packets(limit: Option<QueueLimit>) -> Option<u64> {
    if let QueueLimit::Packets(packets) = limit.unwrap_or_default() { Some(packets) } else { None }
}

/// Every key that netem has no counterpart for, with the reason.
fn refused_keys(path: &PathConfig, mtu: u32) -> Vec<String> {
    let mut refused = Vec::new();
    if !path.changes.is_empty() {
        refused.push("changes (its settings stay as they are)".to_owned());
    }
    for (number, hop) in path.hops.iter().enumerate() {
        for side in Side::BOTH {
            let hop_name = if hop.name.is_empty() { String::new() } else { format!("hops.{number}.") };
            let reasons = refused_settings(hop.side(side), mtu);
            refused.extend(reasons.into_iter().map(|reason| format!("{hop_name}{}.{reason}", side.name())));
        }
    }
    refused
}

fn refused_settings(config: &DirectionConfig, mtu: u32) -> Vec<String> {
    let object = |config: &DirectionConfig| match serde_json::to_value(config) {
        Ok(Value::Object(object)) => object,
        _ => Map::new(),
    };
    let (given, default) = (object(config), object(&DirectionConfig::default()));
    let mut refused: Vec<String> = given
        .iter()
        .filter(|(key, value)| default.get(*key) != Some(value) && !KEYS.contains(&key.as_str()) && *key != "delay_ns")
        .filter(|(key, value)| key.as_str() != "link_mtu_bytes" || value.as_u64() != Some(mtu.into()))
        .map(|(key, _)| format!("{key} ({})", reason(key)))
        .collect();
    if let Some(rate) = config.link.rate.and_then(LinkRate::moving).filter(|rate| rate.as_bps() % 8 != 0) {
        refused.push(format!("rate_bps {} (its rates are whole bytes a second)", rate.as_bps()));
    }
    if packets(config.link.queue).is_none() && !matches!(config.link.queue, Some(QueueLimit::Bytes(_))) {
        refused.push("queue (its limits are packets or bytes)".to_owned());
    }
    if config.link.counting == Counting::Ethernet && mtu > LARGEST_TABLE {
        refused.push(format!("count with an MTU of {mtu} (its table of sizes ends at {LARGEST_TABLE})"));
    }
    refused
}

fn reason(key: &str) -> &'static str {
    match key {
        "link_mtu_bytes" | "mtu_black_hole" => "its devices take what the hosts' devices take",
        _ => "this backend does not set it",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn direction(settings: &Value) -> DirectionConfig {
        DirectionConfig::from_object(settings.as_object().unwrap()).unwrap()
    }

    fn forward(settings: &Value) -> Vec<Stage> {
        let path = PathConfig::one_hop(direction(settings), DirectionConfig::default());
        Plan::new(&path, 1500, Seed(1)).unwrap().forward
    }

    fn netems(stage: &Stage) -> Vec<(Netem, Option<Cause>)> {
        let netem = |applied: &Applied| match &applied.discipline {
            Discipline::Netem(netem) => (Netem { seed: None, ..netem.clone() }, applied.cause),
            Discipline::Tbf(tbf) => panic!("{tbf:?}"),
        };
        stage.disciplines.iter().map(netem).collect()
    }

    #[test]
    fn the_link_comes_before_the_delay_and_only_the_link_and_the_loss_drop() {
        let stages = forward(&json!({"loss": 0.5, "rate_bps": 8_000_000, "queue": {"packets": 20}, "delay_ns": 10}));
        let line = Netem { limit_packets: UNLIMITED, ..Netem::default() };
        let lossy = Netem { loss: 1 << 31, ..line.clone() };
        let link = Netem { limit_packets: 21, rate_bytes_per_s: 1_000_000, ..Netem::default() };
        let delay = Netem { delay: Duration::from_nanos(10), ..line };
        assert_eq!(netems(&stages[0]), [(lossy, Some(loss::LOSS)), (link, Some(link::QUEUE_FULL))]);
        assert_eq!(netems(&stages[1]), [(delay, None)]);
        assert_eq!((stages.len(), forward(&json!({})).len()), (2, 0));
    }

    #[test]
    fn a_queue_in_bytes_is_a_token_bucket_and_netem_puts_its_packets_on_the_wire() {
        let stages = forward(&json!({"rate_bps": 8_000_000, "queue": {"bytes": 30_000}}));
        let bucket = Tbf { rate_bytes_per_s: 1_000_000, burst: Bytes(1510), limit_bytes: 30_000 };
        assert_eq!(stages[0].disciplines[0].discipline, Discipline::Tbf(bucket));
        let wire = Netem { limit_packets: UNLIMITED, rate_bytes_per_s: 1_000_000, ..Netem::default() };
        assert_eq!((netems(&stages[1]), stages.len()), (vec![(wire, None)], 2));
    }

    #[test]
    fn the_way_back_meets_the_hops_in_the_other_order() {
        let hop = |delay: u64| json!({"name": delay.to_string(), "reverse": {"delay_ns": delay}});
        let hops = json!({"hops": [hop(1), hop(2)]});
        let path = PathConfig::from_object(hops.as_object().unwrap()).unwrap();
        let plan = Plan::new(&path, 1500, Seed(1)).unwrap();
        let delays = plan.reverse.iter().map(|stage| netems(stage)[0].0.delay.as_nanos()).collect::<Vec<_>>();
        assert_eq!((delays, plan.forward.len(), plan.namespaces()), (vec![2, 1], 0, 2));
    }

    #[test]
    fn all_that_netem_cannot_do_is_said_at_once() {
        let path = json!({
            "forward": {"rate_bps": 1001, "link_mtu_bytes": 1400},
            "reverse": {"mtu_black_hole": true, "link_mtu_bytes": 1500},
            "changes": [{"start_ns": 5, "forward": {"loss": 0.5}}]
        });
        let path = PathConfig::from_object(path.as_object().unwrap()).unwrap();
        let error = Plan::new(&path, 1500, Seed(1)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "backend netem cannot do changes (its settings stay as they are), forward.link_mtu_bytes (its devices take what \
             the hosts' devices take), forward.rate_bps 1001 (its rates are whole bytes a second), reverse.mtu_black_hole \
             (its devices take what the hosts' devices take)"
        );
    }
}
