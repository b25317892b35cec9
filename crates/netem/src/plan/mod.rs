//! A path as queueing disciplines: each direction's stages, and netem's limits.

mod refused;
mod rounding;
mod stages;

use crosswind_path::{DirectionConfig, Hop, PathConfig, Side};
use crosswind_settings::{SettingError, plain};
use crosswind_units::{Instant, Probability, Seed};
use refused::{different_keys, refused_settings};
pub use stages::Stage;
use stages::{Needs, Wanted};

/// A packet passes so many namespaces at most: each takes one from its hop limit of 64.
const MOST_NAMESPACES: usize = 60;

/// The stages of the devices between the hosts.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Client to server.
    pub forward: Vec<Stage>,
    /// Server to client.
    pub reverse: Vec<Stage>,
    namespaces: usize,
    mtu: u32,
    seed: Seed,
    /// Of each hop: forward, reverse.
    needs: Vec<[Needs; 2]>,
}

impl Plan {
    /// The stages equivalent to `path` for packets of up to `mtu` bytes.
    ///
    /// # Errors
    /// Every key without a netem counterpart, in one sentence about `backend`.
    pub fn new(path: &PathConfig, mtu: u32, seed: Seed) -> Result<Self, SettingError> {
        let refused = refused_keys(path, mtu);
        if !refused.is_empty() {
            let problem = format!("netem cannot do {}", refused.join(", "));
            return Err(SettingError::new("backend", problem, "use the backend tun, or leave these keys out"));
        }
        let needs = |hop: &Hop| Side::BOTH.map(|side| Needs::of(&path.variants_of(hop, side).collect::<Vec<_>>()));
        let needs = path.hops.iter().map(needs).collect();
        let plan = Self { forward: Vec::new(), reverse: Vec::new(), namespaces: 1, mtu, seed, needs };
        let plan = plan.at(&path.timeline(seed).at(Instant::ZERO).0, 0);
        if plan.namespaces > MOST_NAMESPACES {
            let problem =
                format!("netem needs {} namespaces: packets would pass {MOST_NAMESPACES} at most", plan.namespaces);
            return Err(SettingError::new("backend", problem, "use the backend tun, or fewer hops"));
        }
        Ok(plan)
    }

    /// The same stages with the settings of other `hops`, the `number`th set.
    #[must_use]
    pub fn at(&self, hops: &[Hop], number: u64) -> Self {
        let [(mut forward, forward_end), (mut reverse, reverse_end)] =
            Side::BOTH.map(|side| self.direction(hops, side, number));
        // An MTU told to one direction's sender must not meet the other direction.
        let told = |stages: &[Stage], other: &[Stage]| {
            usize::from(stages.first().is_some_and(|stage| stage.mtu.is_some()) && !other.is_empty())
        };
        let needed = [
            forward.len() + forward_end.len() + told(&reverse, &forward),
            reverse.len() + reverse_end.len() + told(&forward, &reverse),
        ];
        let namespaces = needed.into_iter().max().unwrap_or_default().max(1);
        // Whoever forwards a packet with a flipped bit looks at its header: nobody but the receiver is to.
        for (stages, end) in [(&mut forward, forward_end), (&mut reverse, reverse_end)] {
            if !end.is_empty() {
                stages.resize(namespaces - end.len(), Stage::default());
                stages.extend(end);
            }
        }
        Self { forward, reverse, namespaces, needs: self.needs.clone(), ..*self }
    }

    /// One direction's stages, and its necessarily last one.
    fn direction(&self, hops: &[Hop], side: Side, change: u64) -> (Vec<Stage>, Vec<Stage>) {
        let mut hops: Vec<(usize, &Hop)> = hops.iter().enumerate().collect();
        if side == Side::Reverse {
            hops.reverse();
        }
        let (mut all, mut flips) = (Vec::new(), Vec::new());
        for (number, hop) in hops {
            let (config, needs) = (hop.side(side), self.needs[number][usize::from(side == Side::Reverse)]);
            let seed = self.seed.child(side.name()).child(&number.to_string());
            // netem draws the same numbers again where it is told the same seed.
            let seed = if change == 0 { seed } else { seed.child(&change.to_string()) };
            let wanted = Wanted { mtu: self.mtu, hop: number as u8 };
            all.extend(stages::stages(config, needs, &wanted, seed));
            if needs.corrupt {
                flips.push(stages::corruption(config, number as u8, seed));
            }
        }
        let end = if flips.is_empty() { Vec::new() } else { vec![Stage { disciplines: flips, ..Stage::default() }] };
        (all, end)
    }

    /// One direction's stages, in packet order.
    pub fn side(&self, side: Side) -> &[Stage] {
        side.pick(&self.forward, &self.reverse)
    }

    /// The same, to be changed.
    pub fn side_mut(&mut self, side: Side) -> &mut Vec<Stage> {
        side.pick(&mut self.forward, &mut self.reverse)
    }

    /// How many hops the path has.
    pub const fn hops(&self) -> usize {
        self.needs.len()
    }

    /// How many namespaces between the hosts it takes: each has one device for each direction.
    pub const fn namespaces(&self) -> usize {
        self.namespaces
    }
}

impl Needs {
    fn of(variants: &[DirectionConfig]) -> Self {
        let ever = |is: &dyn Fn(&DirectionConfig) -> bool| variants.iter().any(is);
        let differ = |is: &dyn Fn(&DirectionConfig, &DirectionConfig) -> bool| {
            variants.windows(2).any(|pair| is(&pair[0], &pair[1]))
        };
        Self {
            loss: ever(&|config| config.loss.rule() != crosswind_path::loss::LossRule::None),
            duplicate: ever(&|config| config.duplicate.duplicate > Probability::ZERO),
            corrupt: ever(&|config| config.corrupt.corrupt > Probability::ZERO),
            delay: ever(&|config| config.delay.delay.as_nanos() > 0),
            jitter: ever(&|config| config.delay.jitter.as_nanos() > 0),
            overtaking: ever(&|config| config.delay.overtaking_packets().is_some()),
            link_changes: differ(&|one, other| one.link != other.link),
            delay_changes: differ(&|one, other| one.delay != other.delay),
            shift: variants.iter().map(|config| rounding::shift(&config.link)).max().unwrap_or_default(),
        }
    }
}

/// Every key different between `base` and `variant`, if the change needs other disciplines or the kernel rounds it.
fn refused_change(base: &DirectionConfig, variant: &DirectionConfig, needs: Needs) -> Vec<String> {
    let kinds = |config: &DirectionConfig| {
        let stages = stages::stages(config, needs, &Wanted { mtu: 1500, hop: 0 }, Seed(0));
        let kinds =
            |stage: &Stage| stage.disciplines.iter().map(|applied| applied.discipline.kind()).collect::<Vec<_>>();
        stages.iter().map(|stage| (stage.counting, stage.mtu, kinds(stage))).collect::<Vec<_>>()
    };
    let mut refused = Vec::new();
    if kinds(base) != kinds(variant) || base.mtu != variant.mtu {
        let differ = different_keys(base, variant).into_iter().filter(|key| SHAPING.contains(&key.as_str()));
        refused.extend(differ.map(|key| format!("{} (it changes over time, and the disciplines stay)", plain(&key))));
    }
    if needs.link_changes && variant.link.burst.is_some() {
        refused.push("burst (its bucket is full again at each change of the link)".to_owned());
    }
    refused
}

/// The keys that decide the disciplines.
const SHAPING: [&str; 7] =
    ["rate_bps", "queue", "count", "burst_bytes", "peak_rate_bps", "link_mtu_bytes", "mtu_black_hole"];

/// Every key without a netem counterpart, with the reason.
fn refused_keys(path: &PathConfig, mtu: u32) -> Vec<String> {
    let mut refused = Vec::new();
    for hop in &path.hops {
        for side in Side::BOTH {
            let hop_name = if hop.name.is_empty() { String::new() } else { format!("hop.{}.", hop.name) };
            let variants: Vec<_> = path.variants_of(hop, side).collect();
            let mut reasons: Vec<String> = Vec::new();
            for variant in &variants {
                reasons.extend(refused_settings(variant, mtu));
                reasons.extend(refused_change(hop.side(side), variant, Needs::of(&variants)));
            }
            for reason in reasons {
                let reason = format!("{hop_name}{}.{reason}", side.name());
                if !refused.contains(&reason) {
                    refused.push(reason);
                }
            }
        }
    }
    refused
}

#[cfg(test)]
mod tests {
    use super::stages::Applied;
    use super::*;
    use crate::discipline::{Discipline, Loss, Netem, Tbf, parts};
    use crosswind_path::{Cause, link, loss};
    use crosswind_units::{Bytes, Duration};
    use serde_json::{Value, json};

    const UNLIMITED: u32 = 1_000_000_000;

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
            other => panic!("{other:?}"),
        };
        stage.disciplines.iter().map(netem).collect()
    }

    #[test]
    fn the_link_comes_before_the_delay_and_only_the_link_and_the_loss_drop() {
        let stages = forward(&json!({"loss": 0.5, "rate_bps": 8_000_000, "queue": {"packets": 20}, "delay_ns": 10}));
        let line = Netem { limit_packets: UNLIMITED, ..Netem::default() };
        let lossy = Netem { loss: Loss::Independent(1 << 31), ..line.clone() };
        let link = Netem { limit_packets: 21, rate_bytes_per_s: 1_000_000, ..Netem::default() };
        let delay = Netem { delay: Duration::from_nanos(10), ..line };
        assert_eq!(netems(&stages[0]), [(lossy, Some(loss::LOSS)), (link, Some(link::QUEUE_FULL))]);
        assert_eq!(netems(&stages[1]), [(delay, None)]);
        assert_eq!((stages.len(), forward(&json!({})).len()), (2, 0));
    }

    #[test]
    fn a_queue_in_bytes_is_a_token_bucket_and_netem_puts_its_packets_on_the_wire() {
        let stages = forward(&json!({"rate_bps": 8_000_000, "queue": {"bytes": 30_000}}));
        let bucket = Tbf { rate_bytes_per_s: 1_000_000, burst: Bytes(1510), limit_bytes: 30_000, ..Tbf::default() };
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
    fn rates_that_are_no_whole_bytes_make_sizes_larger() {
        let stages = forward(&json!({"rate_bps": 1001, "queue": {"packets": 20}}));
        assert_eq!((netems(&stages[0])[0].0.rate_bytes_per_s, stages[0].shift), (1001, 3));
        let stages = forward(&json!({"rate_bps": 1004, "queue": {"bytes": 3000}}));
        let Discipline::Tbf(bucket) = &stages[0].disciplines[0].discipline else { panic!("{stages:?}") };
        assert_eq!((bucket.rate_bytes_per_s, bucket.limit_bytes, bucket.burst), (251, 6000, Bytes(3001)));
    }

    #[test]
    fn flipped_bits_come_last_and_messages_about_sizes_meet_no_other_direction() {
        let path = json!({"forward": {"corrupt": 0.5, "link_mtu_bytes": 1400, "delay_ns": 5}, "reverse": {"delay_ns": 5, "rate_bps": 1001, "burst_bytes": 1500}});
        let plan = Plan::new(&PathConfig::from_object(path.as_object().unwrap()).unwrap(), 1500, Seed(1)).unwrap();
        assert_eq!((plan.forward.len(), plan.reverse.len(), plan.namespaces()), (3, 2, 3));
        assert_eq!((plan.forward[0].mtu, plan.forward[0].disciplines.len()), (Some(1400), 0));
        let flipped =
            Netem { corrupt: parts(Probability::new(0.5).unwrap()), limit_packets: UNLIMITED, ..Netem::default() };
        assert_eq!(netems(&plan.forward[2]), [(flipped, None)]);
    }

    #[test]
    fn jitter_keeps_the_order_and_has_a_stage_behind_the_wire() {
        let settings = json!({"rate_bps": 8_000_000, "queue": {"bytes": 9000}, "delay_ns": 9_000, "jitter_ns": 1000});
        let stages = forward(&settings);
        let rates: Vec<_> = stages[1..].iter().map(|stage| netems(stage)[0].0.rate_bytes_per_s).collect();
        assert_eq!(rates, [1_000_000, 1_000_000_000_000_000]);
        let mut overtaking = settings;
        overtaking["reorder"] = json!(true);
        assert_eq!(netems(&forward(&overtaking)[2])[0].0.rate_bytes_per_s, 0);
    }

    #[test]
    fn what_changes_over_time_has_its_stages_from_the_beginning() {
        let path = json!({
            "forward": {"rate_bps": 8_000_000, "queue": {"packets": 9}},
            "changes": [{"start_ns": 5, "forward": {"loss": 0.5, "rate_bps": 8001}}],
        });
        let path = PathConfig::from_object(path.as_object().unwrap()).unwrap();
        let plan = Plan::new(&path, 1500, Seed(1)).unwrap();
        let (hops, next) = path.timeline(Seed(1)).at(Instant::from_nanos(5));
        let later = plan.at(&hops, 1);
        let kinds = |plan: &Plan| -> Vec<_> {
            plan.forward.iter().flat_map(|stage| &stage.disciplines).map(|applied| applied.discipline.kind()).collect()
        };
        assert_eq!((kinds(&plan), next), (vec!["netem", "htb", "pfifo", "netem"], None));
        assert_eq!(kinds(&plan), kinds(&later));
        let rates = [&plan, &later].map(|plan| match &plan.forward[1].disciplines[0].discipline {
            Discipline::Htb(htb) => htb.rate_bytes_per_s,
            other => panic!("{other:?}"),
        });
        assert_eq!((rates, plan.forward[1].shift), ([8_000_000, 8001], 3));
        assert_ne!(plan.forward[0], later.forward[0]);
    }

    #[test]
    fn changes_that_take_other_disciplines_are_refused() {
        let changes = json!([
            {"start_ns": 5, "forward": {"link_mtu_bytes": 1400}},
            {"start_ns": 5, "reverse": {"rate_bps": 8000}},
            {"start_ns": 9, "forward": {"rate_bps": 0}},
        ]);
        let path = json!({"forward": {"rate_bps": 8000, "burst_bytes": 9000}, "changes": changes});
        let error = Plan::new(&PathConfig::from_object(path.as_object().unwrap()).unwrap(), 1500, Seed(1)).unwrap_err();
        let refused = [
            "forward.link_mtu (it",
            "reverse.rate (it changes",
            "forward.rate (it stops no link)",
            "forward.burst (its bucket",
        ];
        assert!(refused.iter().all(|key| error.to_string().contains(key)), "{error}");
    }

    #[test]
    fn all_that_netem_cannot_do_is_said_at_once() {
        let path = json!({
            "forward": {"rate_bps": 8000, "discipline": "pie", "queue_alpha": 0.1, "jitter_correlation": 0.5, "delay_ns": 9, "jitter_ns": 2},
            "reverse": {"lose": [3], "grant_period_ns": 1_000_000},
        });
        let path = PathConfig::from_object(path.as_object().unwrap()).unwrap();
        let error = Plan::new(&path, 1500, Seed(1)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "backend netem cannot do forward.jitter_correlation (its correlation is a moving average, which changes the \
             distribution), forward.queue_alpha (it counts in sixteenths, up to 2), reverse.lose (it loses packets by chance alone), \
             reverse.grant_period (its slots begin with a packet, and it cuts none), reverse.grant_queue (its slots begin with a \
             packet, and it cuts none)"
        );
    }
}
