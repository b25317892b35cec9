//! Flow queue `CoDel` (RFC 8290): each flow has its own queue with `CoDel`, the queues take turns by bytes, and new
//! flows go first. Over the limit, the queue with the most bytes loses packets at its head.

use super::backlog::{Backlog, Limit, QueueLimit};
use super::codel::{Control, Rules, SIGNALS};
use super::discipline::{LinkFacts, Managed, Moment, QUEUE_FULL, Queue};
use super::shared::{Signals, fill};
use crate::Packet;
use crate::derive::{Deserialize, JsonSchema, Serialize};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use crosswind_settings::SettingError;
use crosswind_units::{BitRate, Bytes, Duration, Instant, Seed};

const MAX_FLOWS: u32 = 65_536;

/// Maximum drops at once over the limit, as in Linux, where half a queue goes.
const DROP_BATCH: usize = 64;

/// The keys of `FQ-CoDel`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct FqCodelSettings {
    /// Queues among which flows are divided.
    #[serde(rename = "queue_flows", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = MAX_FLOWS), extend(
        "default_help" = "1024",
        "only_with" = {"key": "discipline", "value": ["fq_codel"]}
    ))]
    pub flows: Option<u32>,
    /// What a flow sends in its turn.
    #[serde(rename = "queue_quantum_bytes", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u64>", range(min = 256, max = 1_000_000_000), extend(
        "default_help" = "1514 bytes",
        "only_with" = {"key": "discipline", "value": ["fq_codel"]}
    ))]
    pub quantum: Option<Bytes>,
}

impl FqCodelSettings {
    /// Fills in defaults if the discipline `is` chosen, else refuses its keys.
    pub fn complete(&mut self, is: bool) -> Result<(), SettingError> {
        fill(&mut self.flows, is.then_some(1024), "queue_flows", "fq_codel")?;
        fill(&mut self.quantum, is.then_some(Bytes(1514)), "queue_quantum_bytes", "fq_codel")
    }
}

/// Queues with `CoDel`, in turns.
pub struct FqCodel {
    flows: Vec<Flow>,
    new: VecDeque<usize>,
    old: VecDeque<usize>,
    limit: Limit,
    rules: Rules,
    quantum: i64,
    len: usize,
    bytes: u64,
    seed: Seed,
}

#[derive(Default)]
struct Flow {
    backlog: Backlog,
    control: Control,
    /// Bytes left in its turn.
    deficit: i64,
    listed: bool,
}

impl FqCodel {
    fn flow_of(&self, packet: &Packet) -> usize {
        let word = u128::from(self.seed.word(packet.flow.into()));
        ((word * self.flows.len() as u128) >> 64) as usize
    }

    /// Makes room: drops half the packets in the queue with the most bytes.
    fn drop_from_fattest(&mut self, moment: &mut Moment<'_>) {
        // Among equals, the first.
        let fattest = self.flows.iter_mut().rev().max_by_key(|flow| flow.backlog.bytes());
        let Some(flow) = fattest else { return };
        let before = flow.backlog.bytes();
        for _ in 0..DROP_BATCH {
            let Some(packet) = flow.backlog.pop() else { break };
            moment.drop(packet, QUEUE_FULL);
            flow.control.add_drops(1);
            self.len -= 1;
            if before - flow.backlog.bytes() >= before / 2 {
                break;
            }
        }
        self.bytes -= before - flow.backlog.bytes();
    }
}

impl FqCodelSettings {
    fn quantum(&self) -> i64 {
        self.quantum.map_or(1, |quantum| quantum.0 as i64)
    }
}

impl Queue for FqCodel {
    fn enqueue(&mut self, moment: &mut Moment<'_>, packet: Box<Packet>) {
        let number = self.flow_of(&packet);
        let flow = &mut self.flows[number];
        self.bytes += flow.backlog.size(&packet);
        self.len += 1;
        flow.backlog.push(packet);
        if !flow.listed {
            flow.listed = true;
            flow.deficit = self.quantum;
            self.new.push_back(number);
        }
        if self.limit.is_exceeded(self.len, self.bytes) {
            self.drop_from_fattest(moment);
        }
    }

    fn dequeue(&mut self, moment: &mut Moment<'_>) -> Option<Box<Packet>> {
        loop {
            let is_new = !self.new.is_empty();
            let number = if is_new { self.new.pop_front() } else { self.old.pop_front() }?;
            let flow = &mut self.flows[number];
            if flow.deficit <= 0 {
                flow.deficit += self.quantum;
                self.old.push_back(number);
                continue;
            }
            let (backlog, len, bytes) = (&mut flow.backlog, &mut self.len, &mut self.bytes);
            let packet = flow.control.dequeue(&self.rules, moment, || {
                let packet = backlog.pop()?;
                *len -= 1;
                *bytes -= backlog.size(&packet);
                Some((packet, *bytes))
            });
            if let Some(packet) = packet {
                flow.deficit -= flow.backlog.size(&packet) as i64;
                if is_new {
                    self.new.push_front(number);
                } else {
                    self.old.push_front(number);
                }
                return Some(packet);
            }
            // A new flow running empty goes through the old ones once, so restarting starves nobody.
            if is_new && !self.old.is_empty() {
                self.old.push_back(number);
            } else {
                flow.listed = false;
            }
        }
    }

    fn len(&self) -> usize {
        self.len
    }
}

impl Managed for FqCodel {
    type Own = FqCodelSettings;

    fn signals(_interval: Option<Duration>) -> Signals {
        SIGNALS
    }

    fn limit(_rate: Option<BitRate>, _interval: Duration) -> QueueLimit {
        QueueLimit::Packets(10_240)
    }

    fn new(link: &LinkFacts<'_>, own: &Self::Own, seed: Seed) -> Self {
        let flows = own.flows.unwrap_or(1);
        let flow = || Flow { backlog: Backlog::new(link.counting), ..Flow::default() };
        Self {
            flows: (0..flows).map(|_| flow()).collect(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            limit: link.limit,
            rules: Rules::of(link),
            quantum: own.quantum(),
            len: 0,
            bytes: 0,
            seed,
        }
    }

    fn change(&mut self, _now: Instant, link: &LinkFacts<'_>, own: &Self::Own) {
        self.limit = link.limit;
        self.rules = Rules::of(link);
        self.quantum = own.quantum();
    }
}
