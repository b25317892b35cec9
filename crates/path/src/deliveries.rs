//! A link with a trace of deliveries, in the format of mahimahi (Netravali and others, "Mahimahi: accurate
//! record-and-replay for HTTP", USENIX ATC 2015, section 4): each number is a time in ms at which the link can deliver
//! 1500 bytes. Packets share an opportunity until its bytes are used, a packet may take several, and an unused
//! remainder is lost when nothing waits.

use crate::derive::{Deserialize, JsonSchema, Serialize};
use crate::queue::{Limit, QueueLimit};
use crate::{Cause, Effect, Element, ElementSettings, Leaving, Packet, Schedule};
use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use crosswind_settings::SettingError;
use crosswind_units::{BitRate, Duration, Instant, Seed};

use alloc::collections::VecDeque;

/// The queue for deliveries was full.
pub const DELIVERY_QUEUE: Cause = Cause::new("delivery_queue");

/// Bytes per delivery.
const DELIVERED: u64 = 1500;

/// Numbers in a trace: an hour at 1 Gbit/s has 300 million, more than any cellular trace.
const MOST_DELIVERIES: usize = 10_000_000;

const NS_PER_MS: u64 = 1_000_000;

/// Deliveries by a trace, as mahimahi's: the link of a cellular network as it was recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DeliverySettings {
    /// Times in ms at which the link delivers up to 1500 bytes, as a file of mahimahi's has them; after the last it begins again.
    #[serde(rename = "delivery_trace", skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default_help" = "none"))]
    pub trace: Option<Vec<u64>>,
    /// What may wait for deliveries.
    #[serde(rename = "delivery_queue", skip_serializing_if = "Option::is_none")]
    #[schemars(extend(
        "kind" = "queue",
        "default_help" = "1000 packets where there is a trace",
        "only_with" = {"key": "delivery_trace", "value": null}
    ))]
    pub queue: Option<QueueLimit>,
    /// Whether nothing is delivered after the last time of the trace; otherwise it begins again.
    #[serde(rename = "delivery_once")]
    #[schemars(extend("only_with" = {"key": "delivery_trace", "value": null}))]
    pub once: bool,
}

impl DeliverySettings {
    fn mean_rate(&self) -> Option<BitRate> {
        let trace = self.trace.as_ref()?;
        let bits = trace.len() as u128 * u128::from(DELIVERED) * 8 * 1000;
        BitRate::new((bits / u128::from((*trace.last()?).max(1))) as u64)
    }
}

impl ElementSettings for DeliverySettings {
    fn element(settings: Schedule<Self>, _seed: Seed) -> Option<Box<dyn Element>> {
        Some(Box::new(Deliveries::new(settings)?))
    }

    fn fixed_keys() -> &'static [&'static str] {
        &["delivery_trace", "delivery_once"]
    }

    fn drop_causes(&self) -> &'static [Cause] {
        &[DELIVERY_QUEUE]
    }

    fn effect(&self) -> Effect {
        if self.trace.as_ref().is_none_or(Vec::is_empty) {
            return Effect::default();
        }
        let rate = self.mean_rate();
        let queue = Some(self.queue.unwrap_or_default().at_rate(rate));
        Effect { rate, queue, changes: true, ..Effect::default() }
    }

    fn is_random(&self) -> bool {
        false
    }

    fn complete(&mut self) -> Result<(), SettingError> {
        let refuse = |problem: String| {
            Err(SettingError::new(
                "delivery_trace",
                problem,
                "a trace has times in ms, one a line, none before the last",
            ))
        };
        if let (Some(_), None) = (self.queue, &self.trace) {
            return Err(SettingError::new(
                "delivery_queue",
                "is set but delivery_trace is not",
                "set both, or neither",
            ));
        }
        self.queue.map_or(Ok(()), |queue| queue.check("delivery_queue"))?;
        let Some(trace) = &self.trace else { return Ok(()) };
        if trace.len() > MOST_DELIVERIES {
            return refuse(format!("has {} numbers, more than {MOST_DELIVERIES}", trace.len()));
        }
        if let Some(number) = trace.windows(2).position(|pair| pair[1] < pair[0]) {
            let (before, after) = (trace[number], trace[number + 1]);
            return refuse(format!(
                "has {after} as number {}, which is before the {before} in front of it",
                number + 2
            ));
        }
        match trace.last() {
            None => refuse("is empty".to_owned()),
            Some(0) => refuse("ends at 0: it lasts no time".to_owned()),
            Some(last) if *last > u64::MAX / NS_PER_MS / 1000 => refuse(format!("ends at {last} ms")),
            Some(_) => Ok(()),
        }
    }
}

/// A queue, and its delivery times.
pub struct Deliveries {
    /// In ms.
    trace: Vec<u64>,
    once: bool,
    mean_rate: Option<BitRate>,
    settings: Schedule<DeliverySettings>,
    waiting: VecDeque<Box<Packet>>,
    waiting_bytes: u64,
    /// The first packet's undelivered bytes.
    left: u64,
    /// The next unused delivery, counted over all turns of the trace.
    next: u64,
    out: VecDeque<Leaving>,
}

impl Deliveries {
    /// An empty link with a trace checked by `complete`; none without a trace.
    pub fn new(settings: Schedule<DeliverySettings>) -> Option<Self> {
        let first = settings.phases().next()?;
        let (trace, once, mean_rate) = (first.trace.clone()?, first.once, first.mean_rate());
        let (waiting, out) = (VecDeque::new(), VecDeque::new());
        Some(Self { trace, once, mean_rate, settings, waiting, waiting_bytes: 0, left: 0, next: 0, out })
    }

    /// When a delivery is; none after the end of a trace without repetition.
    fn time(&self, delivery: u64) -> Option<Instant> {
        let count = self.trace.len() as u64;
        let (turn, number) = (delivery / count, (delivery % count) as usize);
        if turn > 0 && self.once {
            return None;
        }
        let turns = turn * self.trace[self.trace.len() - 1];
        Some(Instant::ZERO + Duration::from_millis(turns + self.trace[number]))
    }

    /// The first delivery after `now`.
    fn after(&self, now: Instant) -> u64 {
        let (count, length) = (self.trace.len() as u64, self.trace[self.trace.len() - 1]);
        let ms = now.as_nanos() / NS_PER_MS;
        // A turn's end is the next one's beginning, so both have to be passed.
        let turn = ms / length;
        let passed = self.trace.partition_point(|time| *time <= ms - turn * length) as u64;
        turn * count + passed
    }

    fn advance(&mut self, now: Instant) {
        while let Some(time) = self.time(self.next).filter(|time| !self.waiting.is_empty() && *time <= now) {
            self.deliver(time);
            self.next += 1;
        }
    }

    fn deliver(&mut self, time: Instant) {
        let mut bytes = DELIVERED;
        while bytes > 0 && !self.waiting.is_empty() {
            let taken = self.left.min(bytes);
            bytes -= taken;
            self.left -= taken;
            if self.left == 0
                && let Some(mut first) = self.waiting.pop_front()
            {
                self.waiting_bytes -= first.size.0;
                self.left = self.waiting.front().map_or(0, |next| next.size.0);
                first.queue_until(time);
                self.out.push_back(Leaving::Forwarded(first));
            }
        }
    }

    fn has_room(&mut self, now: Instant, size: u64) -> bool {
        let queue = self.settings.at(now).queue;
        Limit::at_rate(queue, self.mean_rate).takes(self.waiting.len(), self.waiting_bytes, size)
    }
}

impl Element for Deliveries {
    fn handle_packet(&mut self, packet: Box<Packet>) {
        let now = packet.at;
        self.advance(now);
        if packet.is_light && self.waiting.is_empty() {
            return self.out.push_back(Leaving::Forwarded(packet));
        }
        if !self.has_room(now, packet.size.0) {
            return self.out.push_back(Leaving::Dropped(packet, DELIVERY_QUEUE));
        }
        if self.waiting.is_empty() {
            self.next = self.after(now);
            self.left = packet.size.0;
        }
        self.waiting_bytes += packet.size.0;
        self.waiting.push_back(packet);
    }

    fn poll_packet(&mut self, now: Instant) -> Option<Leaving> {
        if self.out.is_empty() {
            self.advance(now);
        }
        self.out.pop_front()
    }

    fn next_wakeup(&self) -> Option<Instant> {
        if let Some(departure) = self.out.front() {
            return Some(departure.packet().at);
        }
        self.waiting.front()?;
        self.time(self.next + self.left.div_ceil(DELIVERED).max(1) - 1)
    }

    fn queued(&self) -> usize {
        self.out.len() + self.waiting.len()
    }
}
