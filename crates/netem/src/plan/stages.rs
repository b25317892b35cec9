//! One hop's direction as queueing disciplines, stage by stage.

use super::rounding::{sixteenths, weight_log};
use crate::discipline::{
    Cake, Codel, Discipline, Fifo, FqCodel, Htb, Jitter, Loss, Netem, Pie, Red, Tbf, micros, parts,
};
use crosswind_path::delay::{DelaySettings, Distribution};
use crosswind_path::link::{self, LinkRate, LinkSettings};
use crosswind_path::loss::{self, LossRule};
use crosswind_path::queue::{AQM, Discipline as Queue, QueueLimit, QueueSettings};
use crosswind_path::{Cause, Counting, DirectionConfig, mtu};
use crosswind_units::{BitRate, Bytes, Duration, Probability, Seed};

/// So many packets never wait: a line drops none.
const UNLIMITED: u32 = 1_000_000_000;

/// At this rate packets take no time, and netem keeps their order: none overtakes earlier ones.
const IN_ORDER: u64 = 1_000_000_000_000_000;

/// How early a bucket releases packets: its timer may be so late without costing throughput.
const TIMER_SLACK: Duration = Duration::from_micros(10);

/// The capacity of the kernel's distribution table.
const TABLE: u64 = 16_384;

/// The kernel draws no longer jitter without a table.
const LONGEST_UNIFORM: Duration = Duration::from_nanos(i32::MAX as u64);

/// One device's discipline, and perhaps an inner one for its packets. Without any it lets them pass.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stage {
    /// How packets count on the link and in byte-limited queues.
    pub counting: Counting,
    /// By how many bits sizes are larger to the kernel.
    pub shift: u8,
    /// The largest forwarded packet; senders of larger ones get a message.
    pub mtu: Option<u32>,
    /// Whether it makes copies.
    pub duplicates: bool,
    /// Its hop.
    pub hop: u8,
    /// The outer one first.
    pub disciplines: Vec<Applied>,
}

/// A discipline, and why it drops packets.
#[derive(Clone, Debug, PartialEq)]
pub struct Applied {
    /// The kernel's task.
    pub discipline: Discipline,
    /// The cause of its own drops; none if it should not drop any.
    pub cause: Option<Cause>,
    pub hop: u8,
}

/// All a hop ever does in one direction: it has the stages for that at all times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools)] // independent facts
pub struct Needs {
    pub loss: bool,
    pub duplicate: bool,
    pub corrupt: bool,
    pub delay: bool,
    pub jitter: bool,
    pub overtaking: bool,
    pub link_changes: bool,
    pub delay_changes: bool,
    /// By how many bits sizes and rates are larger to the kernel, so that rates are whole numbers.
    pub shift: u8,
}

/// The parameters for stages.
pub struct Wanted {
    /// The hosts' largest packet.
    pub mtu: u32,
    pub hop: u8,
}

/// How a link and its queue are emulated.
enum Link {
    /// The rate inside netem; its limit is the queue.
    Netem,
    /// A token bucket for one packet, with its limit as the queue; then the time on the wire.
    Bucket,
    /// An htb class, taking packets from any queue one by one; then the time on the wire.
    Class,
    /// A queue's own shaper; then the time on the wire.
    Shaper,
    /// The link's own token bucket; then the time on the wire at the peak rate.
    Burst,
}

impl Link {
    const fn of(settings: &LinkSettings, needs: Needs) -> Self {
        if matches!(settings.queueing.discipline, Queue::Cake) {
            Self::Shaper
        } else if settings.burst.is_some() {
            Self::Burst
        } else if needs.link_changes || !matches!(settings.queueing.discipline, Queue::Fifo) {
            Self::Class
        } else if matches!(settings.queue, Some(QueueLimit::Packets(_))) {
            Self::Netem
        } else {
            Self::Bucket
        }
    }
}

/// One hop's stages in one direction. Stages for the direction's end are left to [`corruption`].
pub fn stages(config: &DirectionConfig, needs: Needs, wanted: &Wanted, seed: Seed) -> Vec<Stage> {
    let builder = Builder { config, needs, wanted, seed, shift: needs.shift };
    let mut stages = Vec::new();
    stages.extend(builder.largest_packet());
    let loss = needs.loss.then(|| builder.loss());
    let duplicates = needs.duplicate.then(|| builder.duplication());
    let (link, wire) = builder.link();
    match (loss, duplicates, link) {
        (Some(loss), None, Some((link, true))) => stages.push(builder.stage([vec![loss], link].concat())),
        (loss, duplicates, link) => {
            stages.extend(loss.map(|loss| builder.stage(vec![loss])));
            stages.extend(duplicates.map(|duplicates| Stage { duplicates: true, ..builder.stage(vec![duplicates]) }));
            stages.extend(link.map(|(link, _)| builder.stage(link)));
        }
    }
    stages.extend(builder.line(wire));
    stages
}

/// One hop's bit flips.
pub fn corruption(config: &DirectionConfig, hop: u8, seed: Seed) -> Applied {
    let corrupt = parts(config.corrupt.corrupt);
    let netem = Netem { limit_packets: UNLIMITED, corrupt, seed: Some(seed.word(4)), ..Netem::default() };
    Applied { discipline: Discipline::Netem(netem), cause: None, hop }
}

struct Builder<'a> {
    config: &'a DirectionConfig,
    needs: Needs,
    wanted: &'a Wanted,
    seed: Seed,
    shift: u8,
}

impl Builder<'_> {
    const fn applied(&self, discipline: Discipline, cause: Option<Cause>) -> Applied {
        Applied { discipline, cause, hop: self.wanted.hop }
    }

    fn netem(&self, netem: Netem, number: u64, cause: Option<Cause>) -> Applied {
        self.applied(Discipline::Netem(Netem { seed: Some(self.seed.word(number)), ..netem }), cause)
    }

    const fn stage(&self, disciplines: Vec<Applied>) -> Stage {
        let (counting, shift) = (self.config.link.counting, self.shift);
        Stage { counting, shift, mtu: None, duplicates: false, hop: self.wanted.hop, disciplines }
    }

    /// Bytes occupied by the largest packet, as the kernel counts it.
    fn largest(&self) -> u64 {
        self.config.link.counting.occupied(Bytes(self.wanted.mtu.into())).0 << self.shift
    }

    fn rate(&self, rate: BitRate) -> u64 {
        (rate.as_bps() << self.shift) / 8
    }

    /// A route with an MTU makes the kernel tell the sender; a bucket too small drops in silence.
    fn largest_packet(&self) -> Option<Stage> {
        let largest = self.config.mtu.link_mtu_bytes.filter(|largest| *largest < self.wanted.mtu)?;
        if !self.config.mtu.mtu_black_hole {
            return Some(Stage { mtu: Some(largest), ..self.stage(Vec::new()) });
        }
        let bucket =
            Tbf { rate_bytes_per_s: IN_ORDER, burst: Bytes(largest.into()), limit_bytes: u32::MAX, ..Tbf::default() };
        let bucket = self.applied(Discipline::Tbf(bucket), Some(mtu::MTU));
        Some(Stage { counting: Counting::IP, shift: 0, ..self.stage(vec![bucket]) })
    }

    fn loss(&self) -> Applied {
        let loss = match self.config.loss.rule() {
            LossRule::None | LossRule::Other => Loss::default(),
            LossRule::Independent(probability) => Loss::Independent(parts(probability)),
            LossRule::Markov { rows, loss } => markov(&rows, &loss),
        };
        self.netem(Netem { limit_packets: UNLIMITED, loss, ..Netem::default() }, 0, Some(loss::LOSS))
    }

    fn duplication(&self) -> Applied {
        let duplicate = parts(self.config.duplicate.duplicate);
        self.netem(Netem { limit_packets: UNLIMITED, duplicate, ..Netem::default() }, 3, None)
    }

    /// The link, and whether it can be inside the loss's netem; and the following wire's rate, 0 without one.
    fn link(&self) -> (Option<(Vec<Applied>, bool)>, u64) {
        let settings = &self.config.link;
        let Some(rate) = settings.rate.and_then(LinkRate::moving) else { return (None, 0) };
        let rate_bytes_per_s = self.rate(rate);
        let bytes = |limit: u64| (limit << self.shift) as u32;
        let limit = settings.queue.unwrap_or_default().at_rate(Some(rate));
        match (Link::of(settings, self.needs), limit) {
            (Link::Netem, QueueLimit::Packets(packets)) => {
                // netem also holds the packet on the wire.
                let limit_packets = (packets + 1) as u32;
                let netem = Netem { limit_packets, rate_bytes_per_s, ..Netem::default() };
                (Some((vec![self.netem(netem, 1, Some(link::QUEUE_FULL))], true)), 0)
            }
            (Link::Bucket, QueueLimit::Bytes(limit)) => {
                // netem counts no bytes. A bucket of one packet lets each go when the one before is over; netem then
                // takes its time.
                let burst = Bytes(self.largest() + in_slack(rate_bytes_per_s));
                let limit_bytes = bytes(limit);
                let bucket = Tbf { rate_bytes_per_s, burst, limit_bytes, ..Tbf::default() };
                let bucket = self.applied(Discipline::Tbf(bucket), Some(link::QUEUE_FULL));
                (Some((vec![bucket], true)), rate_bytes_per_s)
            }
            (Link::Shaper, _) => (Some((self.queue(limit, rate_bytes_per_s), false)), rate_bytes_per_s),
            (Link::Burst, limit) => {
                let burst = Bytes(settings.burst.map_or(0, |burst| burst.0 << self.shift));
                let peak = settings.peak_rate.map_or(0, |peak| self.rate(peak));
                let peak_burst = if peak > 0 { Bytes(self.largest() + in_slack(peak)) } else { Bytes(0) };
                // Without its own limit, as another queue replaces the inner one.
                let bucket = Tbf { rate_bytes_per_s, burst, peak_bytes_per_s: peak, peak_burst, limit_bytes: 0 };
                // The packet waiting for tokens is still in the queue.
                let limit = match limit {
                    QueueLimit::Packets(packets) => QueueLimit::Packets(packets + 1),
                    QueueLimit::Bytes(bytes) => QueueLimit::Bytes((bytes << self.shift) + self.largest()),
                    QueueLimit::Time(_) => limit,
                };
                let bucket = self.applied(Discipline::Tbf(bucket), None);
                (Some(([vec![bucket], self.queue(limit, rate_bytes_per_s)].concat(), false)), peak)
            }
            (_, limit) => {
                let class = self.applied(Discipline::Htb(Htb::new(rate_bytes_per_s, TIMER_SLACK)), None);
                let limit = match limit {
                    QueueLimit::Bytes(bytes) => QueueLimit::Bytes(bytes << self.shift),
                    other => other,
                };
                (Some(([vec![class], self.queue(limit, rate_bytes_per_s)].concat(), false)), rate_bytes_per_s)
            }
        }
    }

    /// The queue inside the shaper.
    fn queue(&self, limit: QueueLimit, rate_bytes_per_s: u64) -> Vec<Applied> {
        let QueueSettings { discipline, signals, fq_codel, controller, cake, red, .. } = &self.config.link.queueing;
        let fifo = match limit {
            QueueLimit::Packets(packets) => Discipline::Pfifo(Fifo { limit: packets as u32 }),
            QueueLimit::Bytes(bytes) => Discipline::Bfifo(Fifo { limit: bytes as u32 }),
            QueueLimit::Time(_) => Discipline::Pfifo(Fifo { limit: UNLIMITED }),
        };
        let limit_packets = if let QueueLimit::Packets(packets) = limit { packets as u32 } else { UNLIMITED };
        let ecn = signals.marking.unwrap_or_default();
        let time = |time: Option<Duration>| time.and_then(micros).unwrap_or_default();
        let codel =
            || Codel { limit_packets, target_us: time(signals.target), interval_us: time(signals.interval), ecn };
        let full = Some(link::QUEUE_FULL);
        #[allow(clippy::match_wildcard_for_single_variants)] // others are refused
        match discipline {
            Queue::Fifo => vec![self.applied(fifo, full)],
            Queue::HeadDrop => vec![self.applied(Discipline::PfifoHeadDrop(Fifo { limit: limit_packets }), full)],
            Queue::Codel => vec![self.applied(Discipline::Codel(codel()), Some(AQM))],
            Queue::FqCodel => {
                let flows = fq_codel.flows.unwrap_or_default();
                let quantum_bytes = fq_codel.quantum.unwrap_or_default().0 as u32;
                let queue = FqCodel { codel: codel(), flows, quantum_bytes };
                vec![self.applied(Discipline::FqCodel(queue), Some(AQM))]
            }
            Queue::Pie => {
                let [alpha, beta] =
                    [controller.alpha, controller.beta].map(|gain| sixteenths(gain).unwrap_or_default());
                let (target_us, update_us) = (time(signals.target), time(controller.update));
                let queue = Pie { limit_packets, target_us, update_us, alpha, beta, ecn };
                vec![self.applied(Discipline::Pie(queue), Some(AQM))]
            }
            Queue::Red => {
                let red = Red {
                    minimum: red.minimum.unwrap_or_default(),
                    maximum: red.maximum.unwrap_or_default(),
                    weight_log: weight_log(red.weight.unwrap_or(1.0)).unwrap_or_default(),
                    probability: red.probability.unwrap_or_default(),
                    ecn,
                    rate_bytes_per_s,
                };
                vec![self.applied(Discipline::Red(red), Some(AQM)), self.applied(fifo, full)]
            }
            Queue::Cake => {
                let cake = Cake {
                    rate_bytes_per_s,
                    tins: cake.tins.unwrap_or_default(),
                    isolation: cake.isolation.unwrap_or_default(),
                    target_us: time(signals.target),
                    interval_us: time(signals.interval),
                };
                vec![self.applied(Discipline::Cake(cake), Some(AQM))]
            }
            _ => Vec::new(),
        }
    }

    /// The time on the wire, and then the delay: together where they are the same in any order.
    fn line(&self, wire: u64) -> Vec<Stage> {
        let delay = &self.config.delay;
        let line = Netem { limit_packets: UNLIMITED, ..Netem::default() };
        let on_wire = |netem: Netem| Netem { rate_bytes_per_s: wire, ..netem };
        let mut netem = Netem { delay: delay.delay, ..line.clone() };
        let own_stage = self.needs.jitter || self.needs.overtaking || self.needs.delay_changes;
        if own_stage {
            netem.jitter = jitter(delay).unwrap_or_default();
            if let Some((share, gap)) = delay.overtaking_packets() {
                (netem.reorder, netem.reorder_gap) = (parts(share), gap as u32);
            }
            if (self.needs.jitter || self.needs.delay_changes) && !delay.reorder {
                netem.rate_bytes_per_s = IN_ORDER;
            }
        }
        let mut stages = Vec::new();
        if wire > 0 && own_stage {
            stages.push(self.stage(vec![self.netem(on_wire(line), 5, None)]));
        }
        if self.needs.delay || own_stage {
            let netem = if own_stage { netem } else { on_wire(netem) };
            stages.push(self.stage(vec![self.netem(netem, 2, None)]));
        } else if wire > 0 {
            stages.push(self.stage(vec![self.netem(on_wire(netem), 2, None)]));
        }
        stages
    }
}

/// Bytes arriving within a timer's slack.
fn in_slack(rate_bytes_per_s: u64) -> u64 {
    let slack = u128::from(rate_bytes_per_s) * u128::from(TIMER_SLACK.as_nanos());
    slack.div_ceil(1_000_000_000) as u64
}

fn jitter(delay: &DelaySettings) -> Option<Jitter> {
    let values = delay.jitter_quantiles(TABLE)?;
    let uniform = delay.values.is_none() && delay.distribution.unwrap_or_default() == Distribution::Uniform;
    if uniform && delay.jitter <= LONGEST_UNIFORM {
        return Some(Jitter { scale: delay.jitter, table: None });
    }
    Some(Jitter::of_table(delay.jitter, &values))
}

/// The kernel adds some of these up: rounded down, they do not come to more than the largest number.
fn part(probability: f64) -> u32 {
    (probability * f64::from(u32::MAX)) as u32
}

fn markov(rows: &[Vec<f64>], loss: &[f64]) -> Loss {
    match rows {
        [good, bad] => Loss::GilbertElliott([
            part(good[1]),
            part(bad[0]),
            // The kernel loses the values above.
            u32::MAX - parts(Probability::new(loss[1]).unwrap_or_default()),
            part(loss[0]),
        ]),
        [one, two, three, _] => Loss::FourStates([one[2], three[0], three[1], one[3], two[2]].map(part)),
        _ => Loss::default(),
    }
}
