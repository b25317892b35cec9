//! A link: one packet at a time is transmitted at the rate; the others wait in a queue. After a change of rate, a
//! packet's rest is transmitted at the new one; a shrunken queue keeps its packets. At rate 0 the link stalls: nothing
//! leaves it, and packets wait.
//!
//! With a burst, the rate is a token bucket's: tokens come at the rate, up to the burst; a packet goes once it has all
//! its tokens, and then at the peak rate. A packet larger than the burst goes when the bucket is full, and leaves a
//! debt.

use crate::derive::{Deserialize, JsonSchema, Serialize};
use crate::queue::{AQM, AnyQueue, Limit, LinkFacts, Moment, QueueLimit, QueueSettings};
use crate::{Cause, Counting, Effect, Element, ElementSettings, Leaving, Packet, Schedule};
use alloc::boxed::Box;
use alloc::format;
use crosswind_settings::SettingError;
use crosswind_units::{BitRate, Bytes, Duration, Instant, Seed};

use alloc::collections::VecDeque;

pub use crate::queue::QUEUE_FULL;
pub use crate::rate::LinkRate;

/// 1 Tbit/s: far above one machine's forwarding rate.
const MAX_RATE_BPS: u64 = 1_000_000_000_000;

/// 1 GB, as a queue.
const MAX_BURST_BYTES: u64 = 1_000_000_000;

/// The link, which transmits one packet at a time, and the queue before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LinkSettings {
    /// Rate of the link; without one it is unlimited and has no queue. A change may set it to 0: nothing leaves the link until that ends.
    #[serde(rename = "rate_bps")]
    #[schemars(with = "Option<u64>", range(min = 0, max = MAX_RATE_BPS))]
    pub rate: Option<LinkRate>,
    /// Size of the queue before the link, without the packet in transmission.
    #[schemars(extend(
        "kind" = "queue",
        "default_help" = "1000 packets where there is a rate; with fq_codel 10240, with dualpi2 10000, with cake what is sent in four intervals, but at least 4 MiB",
        "only_with" = {"key": "rate_bps", "value": null}
    ))]
    pub queue: Option<QueueLimit>,
    #[allow(missing_docs)] // each of its keys has its own
    #[serde(flatten)]
    pub counting: Counting,
    /// What may be sent at once after a pause: the size of a token bucket that fills at the rate.
    #[serde(rename = "burst_bytes", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u64>", range(min = 1, max = MAX_BURST_BYTES), extend(
        "default_help" = "none: packets go evenly at the rate",
        "only_with" = {"key": "rate_bps", "value": null}
    ))]
    pub burst: Option<Bytes>,
    /// Rate at which a burst is sent.
    #[serde(rename = "peak_rate_bps", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u64>", range(min = 1, max = MAX_RATE_BPS), extend(
        "default_help" = "unlimited",
        "only_with" = {"key": "burst_bytes", "value": null}
    ))]
    pub peak_rate: Option<BitRate>,
    #[allow(missing_docs)] // each of its keys has its own
    #[serde(flatten)]
    pub queueing: QueueSettings,
}

impl LinkSettings {
    /// The queue's limit in Linux.
    pub fn default_queue(&self) -> QueueLimit {
        let rate = self.rate.and_then(LinkRate::moving);
        self.queueing.default_limit(rate)
    }

    /// Its properties for the queue.
    fn facts(&self) -> LinkFacts<'_> {
        let QueueSettings { signals, controller, .. } = &self.queueing;
        let limit = Limit::new(self.queue, self.rate);
        LinkFacts { rate: self.rate, limit, counting: self.counting, signals, controller }
    }

    /// A packet's rate on the wire; none if it takes no time.
    fn wire_rate(&self) -> Option<LinkRate> {
        match self.rate {
            Some(LinkRate::Of(_)) if self.burst.is_some() => self.peak_rate.map(LinkRate::Of),
            rate => rate,
        }
    }

    /// When a transmission with so much left ends; none where the link stands still.
    fn end(&self, since: Instant, left: u128) -> Option<Instant> {
        let took = match (self.wire_rate(), u64::try_from(left)) {
            (None, _) => 0,
            // A 64-bit division takes a third of a 128-bit one's time.
            (Some(rate), Ok(left)) => left / rate.moving()?.as_bps(),
            (Some(rate), _) => u64::try_from(left / u128::from(rate.moving()?.as_bps())).unwrap_or(u64::MAX),
        };
        Some(since + Duration::from_nanos(took))
    }

    /// The bits of a packet, in bit/s times ns.
    fn length(&self, size: Bytes) -> u128 {
        u128::from(self.counting.occupied(size).0) * 8 * NANOS
    }
}

/// Nanoseconds in a second.
const NANOS: u128 = 1_000_000_000;

impl ElementSettings for LinkSettings {
    fn element(settings: Schedule<Self>, seed: Seed) -> Option<Box<dyn Element>> {
        let limited = settings.ever(|settings| settings.rate.is_some());
        limited.then(|| Box::new(Link::new(settings, seed)) as Box<dyn Element>)
    }

    fn fixed_keys() -> &'static [&'static str] {
        QueueSettings::FIXED
    }

    fn drop_causes(&self) -> &'static [Cause] {
        &[QUEUE_FULL, AQM]
    }

    fn effect(&self) -> Effect {
        Effect {
            rate: self.rate.and_then(LinkRate::moving),
            queue: self.queue.map(|queue| queue.at_rate(self.rate.and_then(LinkRate::moving))),
            frame: self.counting.overhead(),
            manages_queue: self.queueing.discipline.is_active() && self.rate.is_some(),
            bursts: self.burst.is_some(),
            ..Effect::default()
        }
    }

    fn is_random(&self) -> bool {
        self.rate.is_some() && self.queueing.discipline.is_random()
    }

    fn check_lasting(&self) -> Result<(), SettingError> {
        if self.rate != Some(LinkRate::Stopped) {
            return Ok(());
        }
        let hint = "give a rate, and set it to 0 by a change or a trace for as long as the link stands still";
        Err(SettingError::new("rate_bps", "lets nothing pass: 0 may hold for a time only", hint))
    }

    fn complete(&mut self) -> Result<(), SettingError> {
        self.queue.map_or(Ok(()), |queue| queue.check("queue"))?;
        let needs_rate = |key: &str, given: bool, why: &str| match self.rate {
            None if given => {
                let problem = format!("is set but rate is not: {why}");
                Err(SettingError::new(key, problem, "set rate, or leave it out"))
            }
            _ => Ok(()),
        };
        needs_rate("queue", self.queue.is_some(), "an unlimited link has no queue")?;
        needs_rate("discipline", self.queueing != QueueSettings::default(), "an unlimited link has no queue")?;
        needs_rate("link_overhead_bytes", self.counting.added.is_some(), "an unlimited link is not occupied")?;
        needs_rate("link_mpu_bytes", self.counting.smallest.is_some(), "an unlimited link is not occupied")?;
        needs_rate("link_cells", self.counting.cells.is_some(), "an unlimited link is not occupied")?;
        needs_rate("burst_bytes", self.burst.is_some(), "an unlimited link sends everything at once")?;
        if self.peak_rate.is_some() && self.burst.is_none() {
            let problem = "is set but burst is not: packets go evenly at the rate";
            return Err(SettingError::new("peak_rate_bps", problem, "set burst, or leave it out"));
        }
        if let (Some(peak), Some(rate)) = (self.peak_rate, self.rate)
            && LinkRate::Of(peak) < rate
        {
            let problem = format!("{} is less than the rate of {}", peak.as_bps(), rate.as_bps());
            return Err(SettingError::new("peak_rate_bps", problem, "give a peak rate above the rate"));
        }
        self.queueing.complete()?;
        let default = self.default_queue();
        self.queue = self.rate.map(|_| self.queue.unwrap_or(default));
        Ok(())
    }
}

/// A transmitter with a queue before it. A packet in transmission, or waiting for tokens, occupies the link, not the
/// queue.
pub struct Link {
    settings: Schedule<LinkSettings>,
    now: LinkSettings,
    queue: Box<dyn AnyQueue>,
    sending: Option<Sending>,
    /// A fraction of a nanosecond, carried over back-to-back transmissions, in bit/s times ns.
    remainder: u64,
    bucket: Bucket,
    /// Whether changes while the link was idle matter later.
    has_memory: bool,
    out: VecDeque<Leaving>,
}

/// The packet out of the queue.
struct Sending {
    packet: Box<Packet>,
    /// Whether it still waits for tokens.
    waits: bool,
    /// The beginning of the rest.
    since: Instant,
    /// Its rest on the wire, in bit/s times ns.
    left: u128,
    /// When it ends to wait, or to be transmitted, if the rate stays; none where the link stands still.
    end: Option<Instant>,
}

impl Link {
    /// An idle link; `seed` is its queue's.
    pub fn new(mut settings: Schedule<LinkSettings>, seed: Seed) -> Self {
        let now = *settings.at(Instant::ZERO);
        let queue = now.queueing.queue(&now.facts(), seed);
        let has_memory = settings.ever(|settings| settings.burst.is_some() || settings.queueing.discipline.is_active());
        let bucket = Bucket { tokens: Bucket::size(&now), at: Instant::ZERO };
        Self { settings, now, queue, sending: None, remainder: 0, bucket, has_memory, out: VecDeque::new() }
    }

    /// Takes a packet from the queue to the transmitter.
    fn begin(&mut self, now: Instant, packet: Box<Packet>) {
        let end = self.bucket.ready(now, &self.now, packet.size);
        self.sending = Some(Sending { packet, waits: true, since: now, left: 0, end });
        if end == Some(now) {
            self.transmit(now);
        }
    }

    /// Transmits the packet that waited for tokens until `start`.
    fn transmit(&mut self, start: Instant) {
        let Some(sending) = &mut self.sending else { return };
        self.bucket.take(start, &self.now, sending.packet.size);
        sending.packet.queue_until(start);
        (sending.waits, sending.since) = (false, start);
        sending.left = self.now.length(sending.packet.size) + u128::from(self.remainder);
        sending.end = self.now.end(start, sending.left);
    }

    /// Ends the transmissions due by `now`, and starts the next ones.
    fn advance(&mut self, now: Instant) {
        while let Some(packet) = self.finish(now) {
            let end = packet.at;
            self.out.push_back(Leaving::Forwarded(packet));
            self.send_next(end);
        }
    }

    /// The packet whose transmission ends next, if by `now`. Settings change in time.
    fn finish(&mut self, now: Instant) -> Option<Box<Packet>> {
        loop {
            let sending = self.sending.as_ref()?;
            let end = sending.end.filter(|end| *end <= now);
            let change =
                self.settings.next_change().filter(|change| *change <= now && end.is_none_or(|end| *change < end));
            match (change, end) {
                (Some(change), _) => self.change(change),
                (None, Some(end)) if sending.waits => self.transmit(end),
                (None, Some(end)) => return self.transmitted(end),
                (None, None) => return None,
            }
        }
    }

    /// The packet at the end of its transmission.
    fn transmitted(&mut self, end: Instant) -> Option<Box<Packet>> {
        let Sending { mut packet, since, left, .. } = self.sending.take()?;
        let used =
            self.now.wire_rate().map_or(left, |rate| u128::from(rate.as_bps()) * u128::from((end - since).as_nanos()));
        self.remainder = (left - used) as u64;
        packet.transmit(end - packet.at);
        Some(packet)
    }

    /// Takes the next packet out of the queue once the one before has been transmitted, at `end`.
    fn send_next(&mut self, end: Instant) {
        match self.queue.dequeue(&mut Moment::new(end, &mut self.out)) {
            Some(next) => self.begin(end, next),
            None => self.remainder = 0,
        }
    }

    /// Catches up on changes since the link fell idle. Without memory, only the present settings matter.
    fn wake(&mut self, now: Instant) {
        while let Some(change) = self.settings.next_change().filter(|change| *change <= now) {
            self.change(if self.has_memory { change } else { now });
        }
    }

    fn change(&mut self, time: Instant) {
        let before = core::mem::replace(&mut self.now, *self.settings.at(time));
        self.bucket.change(time, &before, &self.now);
        self.queue.change_all(time, &self.now.facts(), &self.now.queueing);
        let Some(mut sending) = self.sending.take() else { return };
        if sending.waits {
            sending.end = self.bucket.ready(time, &self.now, sending.packet.size);
        } else {
            let sent = before
                .wire_rate()
                .map_or(u128::MAX, |rate| u128::from(rate.as_bps()) * u128::from((time - sending.since).as_nanos()));
            sending.left = sending.left.saturating_sub(sent);
            sending.since = time;
            sending.end = self.now.end(time, sending.left);
        }
        self.sending = Some(sending);
    }
}

impl Element for Link {
    fn handle_packet(&mut self, packet: Box<Packet>) {
        let now = packet.at;
        self.advance(now);
        if self.sending.is_some() {
            self.queue.enqueue(&mut Moment::new(now, &mut self.out), packet);
        } else {
            self.wake(now);
            if let Some(packet) = self.queue.pass(&mut Moment::new(now, &mut self.out), packet) {
                self.begin(now, packet);
            }
        }
    }

    fn poll_packet(&mut self, now: Instant) -> Option<Leaving> {
        if let Some(departure) = self.out.pop_front() {
            return Some(departure);
        }
        let packet = self.finish(now)?;
        self.send_next(packet.at);
        Some(Leaving::Forwarded(packet))
    }

    fn next_wakeup(&self) -> Option<Instant> {
        if let Some(departure) = self.out.front() {
            return Some(departure.packet().at);
        }
        let end = self.sending.as_ref()?.end;
        self.settings.next_change().into_iter().chain(end).min()
    }

    fn queued(&self) -> usize {
        self.out.len() + self.queue.len() + usize::from(self.sending.is_some())
    }
}

/// A token bucket. Tokens are counted in bit/s times ns, so no fraction is lost.
struct Bucket {
    /// Less than 0 is a debt.
    tokens: i128,
    at: Instant,
}

impl Bucket {
    /// Its size by `settings`.
    fn size(settings: &LinkSettings) -> i128 {
        settings.burst.map_or(0, |burst| i128::from(burst.0) * 8 * NANOS as i128)
    }

    /// Lets tokens come until `now`, even beyond the bucket's size.
    fn fill(&mut self, now: Instant, settings: &LinkSettings) {
        let passed = i128::from(now.saturating_since(self.at).as_nanos());
        self.tokens += passed * settings.rate.map_or(0, |rate| i128::from(rate.as_bps()));
        self.at = now;
    }

    /// From when on, at `now` or later, there are tokens for a packet of `size`; none where the link stands still.
    fn ready(&mut self, now: Instant, settings: &LinkSettings, size: Bytes) -> Option<Instant> {
        let Some(rate) = settings.rate else { return Some(now) };
        let rate = rate.moving()?;
        if settings.burst.is_none() {
            return Some(now);
        }
        self.fill(now, settings);
        self.tokens = self.tokens.min(Self::size(settings));
        let needed = (settings.length(size) as i128).min(Self::size(settings)) - self.tokens;
        let wait = u128::try_from(needed).unwrap_or(0).div_ceil(u128::from(rate.as_bps()));
        Some(now + Duration::from_nanos(u64::try_from(wait).unwrap_or(u64::MAX)))
    }

    /// Takes the tokens of a packet leaving at `now`. An excess beyond the bucket's size is a fraction of a nanosecond
    /// by which the packet could have gone earlier: the next one has it.
    fn take(&mut self, now: Instant, settings: &LinkSettings, size: Bytes) {
        if settings.burst.is_some() {
            self.fill(now, settings);
            self.tokens -= settings.length(size) as i128;
        }
    }

    /// Continues with other settings from `now` on; a new bucket begins full.
    fn change(&mut self, now: Instant, before: &LinkSettings, settings: &LinkSettings) {
        if before.burst.is_some() {
            self.fill(now, before);
            self.tokens = self.tokens.min(Self::size(settings));
        } else {
            *self = Self { tokens: Self::size(settings), at: now };
        }
    }
}
