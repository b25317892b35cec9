//! Background traffic: unresponsive packets from simulated hosts. They enter the link of their hop as other packets do,
//! wait in its queue, are dropped and marked, and leave the path behind it. No host gets one.
//!
//! Each source draws from its own stream, by the number of the draw, so its packets do not depend on the polling.

use crate::derive::{Deserialize, JsonSchema, Serialize};
use crate::{Arrival, Ecn, Effect, Element, ElementSettings, Leaving, Outcome, Packet, Schedule};
use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::collections::{BinaryHeap, VecDeque};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Reverse;
use crosswind_settings::SettingError;
use crosswind_units::{Bytes, Duration, Instant, Seed};

/// 1 Tbit/s, as a link.
const MAX_RATE_BPS: u64 = 1_000_000_000_000;

/// A packet of IP without anything in it.
const MIN_SIZE_BYTES: u64 = 20;

/// The limit of an IP packet's length field.
const MAX_SIZE_BYTES: u64 = 65_535;

/// An Ethernet frame is full.
const USUAL_SIZE: Bytes = Bytes(1500);

/// More hosts need no simulation one by one.
const MOST_FLOWS: u32 = 1000;

/// The shortest mean time on or off: 10 us.
const MIN_TIME_NS: u64 = 10_000;

/// The longest: 1000 s.
const MAX_TIME_NS: u64 = 1_000_000_000_000;

/// The most packets of a recording.
const MOST_PACKETS: usize = 10_000_000;

/// The longest recording: 1 day.
const MAX_LENGTH_S: f64 = 86_400.0;

const NANOS: f64 = 1e9;

/// When a source sends its packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    /// At equal distances.
    #[default]
    Constant,
    /// At random: the time between two is exponentially distributed.
    Poisson,
    /// At equal distances while the source is on, and none while it is off; both last exponentially distributed times.
    OnOff,
}

#[cfg(feature = "serde")]
impl Arrivals {
    #[allow(clippy::trivially_copy_pass_by_ref)] // as serde calls it
    fn is_constant(&self) -> bool {
        *self == Self::Constant
    }
}

/// Background traffic of others, which takes its place on the link and reacts to nothing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct BackgroundSettings {
    /// Rate of the background traffic in the mean over time, all its flows together, in bits of IP packets; 0: none, to compare with.
    #[serde(rename = "background_rate_bps", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = MAX_RATE_BPS), extend("default_help" = "none"))]
    pub rate_bps: Option<u64>,
    /// When its packets come.
    #[serde(rename = "background_arrivals", skip_serializing_if = "Arrivals::is_constant")]
    #[schemars(extend("default_help" = "constant", "only_with" = {"key": "background_rate_bps", "value": null}))]
    pub arrivals: Arrivals,
    /// Size of its packets on the IP layer.
    #[serde(rename = "background_size_bytes", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u64>", range(min = MIN_SIZE_BYTES, max = MAX_SIZE_BYTES), extend(
        "default_help" = "1500",
        "only_with" = {"key": "background_rate_bps", "value": null}
    ))]
    pub size: Option<Bytes>,
    /// Of how many flows it is, each with an equal share of the rate, times of its own, and hosts of its own.
    #[serde(rename = "background_flows", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = MOST_FLOWS), extend(
        "default_help" = "1",
        "only_with" = {"key": "background_rate_bps", "value": null}
    ))]
    pub flows: Option<u32>,
    /// How long a flow is on in the mean. It sends at its share of the rate times (on + off) / on then.
    #[serde(rename = "background_on_ns", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u64>", range(min = MIN_TIME_NS, max = MAX_TIME_NS), extend(
        "default_help" = "500 ms",
        "only_with" = {"key": "background_arrivals", "value": "on_off"}
    ))]
    pub on: Option<Duration>,
    /// How long a flow is off in the mean.
    #[serde(rename = "background_off_ns", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u64>", range(min = MIN_TIME_NS, max = MAX_TIME_NS), extend(
        "default_help" = "500 ms",
        "only_with" = {"key": "background_arrivals", "value": "on_off"}
    ))]
    pub off: Option<Duration>,
    /// Packets as recorded: a time in seconds and a size in bytes, one packet after the other; or a capture (pcap, pcapng), of which every
    /// IP packet counts. One mean distance after the last packet it begins again.
    #[serde(rename = "background_trace", skip_serializing_if = "Option::is_none")]
    #[schemars(inner(range(min = 0)), extend("default_help" = "none"))]
    pub trace: Option<Vec<f64>>,
    /// Whether nothing follows the last packet of the recording; otherwise it begins again.
    #[serde(rename = "background_once", skip_serializing_if = "core::ops::Not::not")]
    #[schemars(extend("default_help" = "false", "only_with" = {"key": "background_trace", "value": null}))]
    pub once: bool,
    /// Whether its packets take marks (ECN).
    #[serde(rename = "background_ecn", skip_serializing_if = "core::ops::Not::not")]
    #[schemars(extend("default_help" = "false"))]
    pub ecn: bool,
}

impl BackgroundSettings {
    fn size(&self) -> Bytes {
        self.size.unwrap_or(USUAL_SIZE)
    }

    /// The packets of the recording, and after how long it begins again, if it does.
    fn recording(&self) -> Option<Recording> {
        let numbers = self.trace.as_ref()?;
        let first = numbers.first().copied().unwrap_or_default();
        let nanos = |seconds: f64| Duration::from_nanos(((seconds - first) * NANOS + 0.5) as u64);
        let packets: Vec<_> = numbers.chunks_exact(2).map(|pair| (nanos(pair[0]), Bytes(pair[1] as u64))).collect();
        let last = packets.last().map_or(0, |(time, _)| time.as_nanos());
        let length = if self.once { None } else { Some(last + last / (packets.len() as u64 - 1).max(1)) };
        Some(Recording { packets, length: length.map(Duration::from_nanos), next: 0 })
    }

    /// Its mean load: bit/s and packets/s.
    fn load(&self) -> (f64, f64) {
        if let Some(recording) = self.recording() {
            let last = recording.packets.last().map_or(Duration::ZERO, |(time, _)| *time);
            let seconds = recording.length.unwrap_or(last).as_nanos().max(1) as f64 / NANOS;
            let bytes: u64 = recording.packets.iter().map(|(_, size)| size.0).sum();
            return (bytes as f64 * 8.0 / seconds, recording.packets.len() as f64 / seconds);
        }
        let rate = self.rate_bps.unwrap_or_default() as f64;
        (rate, rate / (8.0 * self.size().0 as f64))
    }
}

impl ElementSettings for BackgroundSettings {
    fn element(settings: Schedule<Self>, seed: Seed) -> Option<Box<dyn Element>> {
        let sends =
            settings.ever(|settings| settings.rate_bps.is_some_and(|rate| rate > 0) || settings.trace.is_some());
        sends.then(|| Box::new(Background::new(settings, seed)) as Box<dyn Element>)
    }

    fn fixed_keys() -> &'static [&'static str] {
        &["background_trace", "background_once"]
    }

    fn effect(&self) -> Effect {
        let (background_bps, background_packets_per_s) = self.load();
        Effect { background_bps, background_packets_per_s, ..Effect::default() }
    }

    fn is_random(&self) -> bool {
        self.rate_bps.is_some_and(|rate| rate > 0)
    }

    fn complete(&mut self) -> Result<(), SettingError> {
        let refuse = |key: &str, problem: String, hint: &str| Err(SettingError::new(key, problem, hint));
        if self.trace.is_some() && self.rate_bps.is_some() {
            let hint = "background traffic is made or recorded: leave one of them out";
            return refuse("background_trace", "and background_rate exclude each other".to_owned(), hint);
        }
        let of_rate = [
            ("background_arrivals", self.arrivals != Arrivals::default()),
            ("background_size_bytes", self.size.is_some()),
            ("background_flows", self.flows.is_some()),
        ];
        if let Some((key, _)) = of_rate.iter().find(|(_, given)| *given && self.rate_bps.is_none()) {
            let problem = "is set but background_rate is not".to_owned();
            return refuse(key, problem, "set background_rate, or leave it out");
        }
        let of_on_off = [("background_on_ns", self.on.is_some()), ("background_off_ns", self.off.is_some())];
        if let Some((key, _)) = of_on_off.iter().find(|(_, given)| *given && self.arrivals != Arrivals::OnOff) {
            let problem = "is set but background_arrivals is not on_off".to_owned();
            return refuse(key, problem, "set background_arrivals to on_off, or leave it out");
        }
        if self.once && self.trace.is_none() {
            let problem = "is set but background_trace is not".to_owned();
            return refuse("background_once", problem, "set background_trace, or leave it out");
        }
        if self.ecn && self.trace.is_none() && self.rate_bps.is_none() {
            let problem = "is set but there is no background traffic".to_owned();
            return refuse("background_ecn", problem, "set background_rate, or leave it out");
        }
        self.trace.as_deref().map_or(Ok(()), |numbers| check_recording(numbers, self.once))
    }
}

fn check_recording(numbers: &[f64], once: bool) -> Result<(), SettingError> {
    let refuse = |problem: String| {
        let hint = "a recording has a time in seconds and a size in bytes for each packet, none before the last";
        Err(SettingError::new("background_trace", problem, hint))
    };
    if numbers.is_empty() {
        return refuse("has no packets".to_owned());
    }
    if !numbers.len().is_multiple_of(2) {
        return refuse(format!("has {} numbers: the last packet has no size", numbers.len()));
    }
    if numbers.len() / 2 > MOST_PACKETS {
        return refuse(format!("has {} packets, more than {MOST_PACKETS}", numbers.len() / 2));
    }
    let mut last = numbers[0];
    for (number, pair) in (1..).zip(numbers.chunks_exact(2)) {
        let (time, size) = (pair[0], pair[1]);
        if time < last {
            return refuse(format!("has packet {number} at {time} s, which is before the one in front of it"));
        }
        let is_whole = libm::trunc(size) >= size;
        if !is_whole || !(1..=MAX_SIZE_BYTES).contains(&(size as u64)) {
            return refuse(format!("has {size} for the size of packet {number}, which is not 1 to {MAX_SIZE_BYTES}"));
        }
        last = time;
    }
    let length = last - numbers[0];
    if length > MAX_LENGTH_S {
        return refuse(format!("lasts {length} s, longer than a day"));
    }
    if length == 0.0 && !once {
        return refuse("lasts no time, and would begin again at once: set background_once".to_owned());
    }
    Ok(())
}

/// Packet sources, and their packets.
pub struct Background {
    seed: Seed,
    /// Each flow's host.
    hosts: Seed,
    loads: Schedule<Load>,
    load: Load,
    /// How often the sources have begun.
    beginnings: u64,
    sources: Vec<Source>,
    /// When each source sends its next packet.
    due: BinaryHeap<Reverse<(Instant, usize)>>,
    recording: Option<Recording>,
    sent: u64,
    /// Sent packets, and other packets after some of them.
    out: VecDeque<Box<Packet>>,
}

/// The load by the settings.
#[derive(Clone, Copy)]
struct Load {
    rate_bps: u64,
    arrivals: Arrivals,
    size: Bytes,
    flows: u32,
    on_ns: f64,
    off_ns: f64,
    ecn: Ecn,
}

impl Load {
    fn of(settings: &BackgroundSettings) -> Self {
        let mean = |time: Option<Duration>| time.map_or(0.5 * NANOS, |time| time.as_nanos() as f64);
        Self {
            rate_bps: settings.rate_bps.unwrap_or_default(),
            arrivals: settings.arrivals,
            size: settings.size(),
            flows: settings.flows.unwrap_or(1),
            on_ns: mean(settings.on),
            off_ns: mean(settings.off),
            ecn: if settings.ecn { Ecn::Ect0 } else { Ecn::NotCapable },
        }
    }

    /// Mean time between packets of one flow, in ns.
    fn gap_ns(&self) -> f64 {
        self.size.0 as f64 * 8.0 * NANOS * f64::from(self.flows) / self.rate_bps as f64
    }
}

/// One flow.
struct Source {
    chance: Seed,
    draws: u64,
    began: Instant,
    /// Packets so far: those of a constant rate are so many distances after the first.
    sent: u64,
    /// How much of the first distance is over when it begins, from 0 to 1.
    phase: f64,
    /// For an on-off source: the end of its on time.
    on_until: f64,
    /// When its last packet was, or when it began, in ns.
    last: f64,
}

impl Source {
    fn new(chance: Seed, began: Instant, load: &Load) -> Self {
        let last = began.as_nanos() as f64;
        let mut source = Self { chance, draws: 0, began, sent: 0, phase: 0.0, on_until: last, last };
        source.phase = source.uniform();
        if load.arrivals == Arrivals::OnOff && source.uniform() * (load.on_ns + load.off_ns) < load.on_ns {
            source.on_until += source.exponential(load.on_ns);
        }
        source
    }

    /// From 0, with it, to 1, without it.
    fn uniform(&mut self) -> f64 {
        self.draws += 1;
        // A number's 53 bits.
        (self.chance.word(self.draws) >> 11) as f64 / 9_007_199_254_740_992.0
    }

    fn exponential(&mut self, mean: f64) -> f64 {
        -libm::log1p(-self.uniform()) * mean
    }

    /// When it sends its next packet.
    fn next(&mut self, load: &Load) -> Instant {
        let gap = load.gap_ns();
        let number = self.sent as f64;
        self.sent += 1;
        match load.arrivals {
            // From the beginning each time, so no error adds up.
            Arrivals::Constant => self.began + Duration::from_nanos(((number + self.phase) * gap) as u64),
            Arrivals::Poisson => {
                self.last += self.exponential(gap);
                Instant::from_nanos(self.last as u64)
            }
            Arrivals::OnOff => {
                // Distances are of the time on alone.
                let mut left =
                    gap * load.on_ns / (load.on_ns + load.off_ns) * if number == 0.0 { self.phase } else { 1.0 };
                while self.last + left > self.on_until {
                    left -= self.on_until - self.last;
                    self.last = self.on_until + self.exponential(load.off_ns);
                    self.on_until = self.last + self.exponential(load.on_ns);
                }
                self.last += left;
                Instant::from_nanos(self.last as u64)
            }
        }
    }
}

/// Recorded packets, and the next one, counted over all turns.
struct Recording {
    packets: Vec<(Duration, Bytes)>,
    length: Option<Duration>,
    next: u64,
}

impl Recording {
    /// When the next one comes, and its size.
    fn next(&self) -> Option<(Instant, Bytes)> {
        let count = self.packets.len() as u64;
        let (turn, number) = (self.next / count, (self.next % count) as usize);
        let begin = match (turn, self.length) {
            (0, _) => 0,
            (_, None) => return None,
            (_, Some(length)) => length.as_nanos().saturating_mul(turn),
        };
        let (time, size) = self.packets[number];
        Some((Instant::from_nanos(begin) + time, size))
    }
}

impl Background {
    /// Sources that begin with time.
    pub fn new(settings: Schedule<BackgroundSettings>, seed: Seed) -> Self {
        let recording = settings.phases().next().and_then(BackgroundSettings::recording);
        let mut loads = settings.map(|settings| Load::of(&settings));
        let load = *loads.at(Instant::ZERO);
        let (sources, due, out) = (Vec::new(), BinaryHeap::new(), VecDeque::new());
        let hosts = seed.child("hosts");
        let mut background = Self { seed, hosts, loads, load, beginnings: 0, sources, due, recording, sent: 0, out };
        background.begin(Instant::ZERO);
        background
    }

    /// Starts every source anew, with the settings of `now`.
    fn begin(&mut self, now: Instant) {
        self.load = *self.loads.at(now);
        let chance = Seed(self.seed.word(self.beginnings));
        self.beginnings += 1;
        self.due.clear();
        self.sources.clear();
        if self.load.rate_bps == 0 {
            return;
        }
        for number in 0..self.load.flows as usize {
            let mut source = Source::new(Seed(chance.word(number as u64)), now, &self.load);
            self.due.push(Reverse((source.next(&self.load), number)));
            self.sources.push(source);
        }
    }

    /// When the next packet is sent, unless something changes before.
    fn next(&self) -> Option<Instant> {
        let recorded = self.recording.as_ref().and_then(Recording::next).map(|(time, _)| time);
        let made = self.due.peek().map(|Reverse((time, _))| *time);
        recorded.into_iter().chain(made).min()
    }

    /// Sends all packets due by `now`.
    fn send(&mut self, now: Instant) {
        loop {
            let next = self.next().filter(|time| *time <= now);
            match self.loads.next_change().filter(|change| *change <= next.unwrap_or(now)) {
                Some(change) => self.begin(change),
                None if next.is_some() => self.send_next(),
                None => return,
            }
        }
    }

    fn send_next(&mut self) {
        if let Some(recording) = &mut self.recording
            && let Some((time, size)) = recording.next()
        {
            recording.next += 1;
            return self.push(time, size, 0);
        }
        if let Some(Reverse((time, number))) = self.due.pop() {
            self.due.push(Reverse((self.sources[number].next(&self.load), number)));
            self.push(time, self.load.size, number);
        }
    }

    fn push(&mut self, time: Instant, size: Bytes, flow: usize) {
        let host = (self.hosts.word(flow as u64) >> 32) as u32;
        let arrival =
            Arrival { size, flow: host, source: host, destination: host, ecn: self.load.ecn, ..Arrival::default() };
        let packet = Packet { is_background: true, ..Packet::entering(self.sent, time, arrival) };
        self.sent += 1;
        self.out.push_back(Box::new(packet));
    }
}

impl Element for Background {
    fn judge_packet(&mut self, packet: &mut Packet) -> Outcome {
        let is_next = self.out.is_empty() && self.next_wakeup().is_none_or(|next| next > packet.at);
        if is_next { Outcome::Passes } else { Outcome::Stays }
    }

    fn handle_packet(&mut self, packet: Box<Packet>) {
        self.send(packet.at);
        self.out.push_back(packet);
    }

    fn poll_packet(&mut self, now: Instant) -> Option<Leaving> {
        if self.out.is_empty() {
            self.send(now);
        }
        self.out.pop_front().map(Leaving::Forwarded)
    }

    fn next_wakeup(&self) -> Option<Instant> {
        let waiting = self.out.front().map(|packet| packet.at);
        waiting.or_else(|| self.next().into_iter().chain(self.loads.next_change()).min())
    }

    fn queued(&self) -> usize {
        self.out.len()
    }

    fn background(&self) -> Option<u64> {
        Some(self.sent)
    }

    fn end_background(&mut self) {
        self.loads = Schedule::constant(self.load);
        self.due.clear();
        self.recording = None;
    }
}
