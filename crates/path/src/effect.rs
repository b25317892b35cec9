//! A path's overall effect on traffic, whatever its elements.

use crate::derive::{JsonSchema, Serialize};
use crate::queue::QueueLimit;
use crosswind_units::{BitRate, Bytes, Duration, Probability};

/// What a direction, or one of its elements, does to traffic: what models, designs and forecasts need to know of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[allow(clippy::struct_excessive_bools)] // each is a fact of its own
pub struct Effect {
    /// Mean delay of a packet, without the time on the wire or behind other packets.
    #[serde(rename = "delay_ns")]
    #[schemars(with = "u64")]
    pub delay: Duration,
    /// Share of packets that is lost, whatever the traffic.
    #[schemars(with = "f64")]
    pub loss: Probability,
    /// Probability that a bit is wrong, by which a packet of n bytes is lost with 1-(1-rate)^(8n); `loss` is that of 1500 bytes.
    #[serde(skip_serializing_if = "is_zero")]
    pub bit_error_rate: f64,
    /// Rate that is not exceeded; none where it is unlimited.
    #[serde(rename = "rate_bps")]
    #[schemars(with = "Option<u64>")]
    pub rate: Option<BitRate>,
    /// What a packet occupies on the wire beside its IP bytes.
    #[serde(rename = "frame_bytes")]
    #[schemars(with = "u64")]
    pub frame: Bytes,
    /// Share of packets that is lost among those behind a lost one: `loss` where losses are independent, more where they come together.
    #[schemars(with = "f64")]
    pub loss_after_loss: Probability,
    /// How long after a loss the share of further ones is still above (or below) `loss` by an e-th of what it is right behind: where it is by
    /// time that losses come together. None where it is by packets, or they do not.
    #[serde(rename = "loss_memory_ns")]
    #[schemars(with = "Option<u64>")]
    pub loss_memory: Option<Duration>,
    /// What may wait before the slowest link; none where there is no link.
    pub queue: Option<QueueLimit>,
    /// The largest packet that passes; none where that is what the hosts' devices take.
    pub mtu_bytes: Option<u32>,
    /// Background traffic that enters it, in the mean; 0 where there is none.
    #[serde(skip_serializing_if = "is_zero")]
    pub background_bps: f64,
    /// Its packets.
    #[serde(skip_serializing_if = "is_zero")]
    pub background_packets_per_s: f64,
    /// Whether it delays packets at random.
    pub random_delay: bool,
    /// Whether a packet may leave before one that entered earlier, also where settings change.
    pub reorders: bool,
    /// Whether the queue drops or marks packets before it is full.
    pub manages_queue: bool,
    /// Whether the link sends bursts faster than at its rate.
    pub bursts: bool,
    /// Whether it is something else at other times. What it is then is not in the other fields.
    pub changes: bool,
    /// The longest time for which every packet is lost at other times, one change after the other not counted.
    #[serde(rename = "outage_ns")]
    #[schemars(with = "u64")]
    pub outage: Duration,
}

#[cfg(feature = "serde")]
#[allow(clippy::trivially_copy_pass_by_ref)] // as serde calls it
fn is_zero(number: &f64) -> bool {
    *number == 0.0
}

impl Effect {
    /// This effect, and then the `next` one.
    #[must_use]
    pub fn then(self, next: Self) -> Self {
        let (rate, queue) = match (self.rate, next.rate) {
            (Some(a), Some(b)) if b < a => (next.rate, next.queue),
            (Some(_), _) => (self.rate, self.queue),
            (None, _) => (next.rate, next.queue),
        };
        Self {
            delay: self.delay + next.delay,
            loss: self.loss.or(next.loss),
            bit_error_rate: 1.0 - (1.0 - self.bit_error_rate) * (1.0 - next.bit_error_rate),
            rate,
            frame: Bytes(self.frame.0.max(next.frame.0)),
            loss_after_loss: self.both_lost(&next),
            loss_memory: self.memory_with(&next),
            queue,
            mtu_bytes: self.mtu_bytes.into_iter().chain(next.mtu_bytes).min(),
            background_bps: self.background_bps + next.background_bps,
            background_packets_per_s: self.background_packets_per_s + next.background_packets_per_s,
            random_delay: self.random_delay || next.random_delay,
            reorders: self.reorders || next.reorders,
            manages_queue: self.manages_queue || next.manages_queue,
            bursts: self.bursts || next.bursts,
            changes: self.changes || next.changes,
            outage: self.outage.max(next.outage),
        }
    }

    fn is_clustered(&self) -> bool {
        (self.loss_after_loss.as_fraction() - self.loss.as_fraction()).abs() > 1e-9
    }

    fn memory_with(&self, next: &Self) -> Option<Duration> {
        match (self.is_clustered(), next.is_clustered()) {
            (true, true) => self.loss_memory.zip(next.loss_memory).map(|(one, other)| one.max(other)),
            (true, false) => self.loss_memory,
            (false, true) => next.loss_memory,
            (false, false) => None,
        }
    }

    /// The share of lost packets behind a lost one, where both lose packets, each as if the other did not.
    fn both_lost(&self, next: &Self) -> Probability {
        let all = self.loss.or(next.loss);
        if [self, next].iter().all(|effect| effect.loss_after_loss == effect.loss) {
            return all;
        }
        let passes = 1.0 - all.as_fraction();
        // Two packets in a row pass both where they pass each.
        let pass_each = [self, next].map(|effect| {
            let (loss, again) = (effect.loss.as_fraction(), effect.loss_after_loss.as_fraction());
            1.0 - 2.0 * loss + loss * again
        });
        let lost_twice = 1.0 - 2.0 * passes + pass_each[0] * pass_each[1];
        Probability::new((lost_twice / all.as_fraction()).clamp(0.0, 1.0)).unwrap_or_default()
    }
}
