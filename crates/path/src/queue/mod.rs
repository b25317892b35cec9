//! Queues before a link, one discipline a file, with its keys. The list of disciplines is here.

mod backlog;
mod cake;
mod codel;
mod discipline;
mod dualpi2;
mod fifo;
mod fq_codel;
mod pie;
mod red;
mod shared;
mod updates;

pub(crate) use backlog::Limit;
pub use backlog::QueueLimit;
pub use cake::{Isolation, Tins};
pub use discipline::{AQM, QUEUE_FULL};
pub(crate) use discipline::{LinkFacts, Moment};

use crate::derive::{Deserialize, JsonSchema, Serialize};
use alloc::boxed::Box;
use cake::{Cake, CakeSettings};
use codel::Codel;
use crosswind_settings::SettingError;
use crosswind_units::{BitRate, Instant, Seed};
use discipline::{Managed, Queue};
use dualpi2::{DualPi2, DualPi2Settings};
use fifo::Fifo;
use fq_codel::{FqCodel, FqCodelSettings};
use pie::{Pie, PieSettings};
use red::{Red, RedSettings};
use shared::{Controller, Signals, fill};

/// Which packets a queue drops or marks, and which goes next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Discipline {
    /// First in, first out; where the queue is full, arriving packets are dropped.
    #[default]
    Fifo,
    /// First in, first out; where the queue is full, the packets that have waited longest are dropped.
    HeadDrop,
    /// Random early detection (Floyd and Jacobson 1993).
    Red,
    /// Controlled delay (RFC 8289).
    Codel,
    /// A queue with controlled delay for each flow (RFC 8290).
    FqCodel,
    /// Proportional integral controller enhanced (RFC 8033).
    Pie,
    /// Two queues, for senders of L4S and others (RFC 9332).
    Dualpi2,
    /// Common applications kept enhanced: a queue for each flow, equal shares for hosts, and tins by DSCP ("Piece of CAKE", LANMAN 2018).
    Cake,
}

/// Applies `$does` to a discipline's type `$queue`.
macro_rules! of_queue {
    ($discipline:expr, $queue:ident => $does:expr) => {
        match $discipline {
            Discipline::Fifo => of_queue!(@ Fifo<false>, $queue, $does),
            Discipline::HeadDrop => of_queue!(@ Fifo<true>, $queue, $does),
            Discipline::Red => of_queue!(@ Red, $queue, $does),
            Discipline::Codel => of_queue!(@ Codel, $queue, $does),
            Discipline::FqCodel => of_queue!(@ FqCodel, $queue, $does),
            Discipline::Pie => of_queue!(@ Pie, $queue, $does),
            Discipline::Dualpi2 => of_queue!(@ DualPi2, $queue, $does),
            Discipline::Cake => of_queue!(@ Cake, $queue, $does),
        }
    };
    (@ $type:ty, $queue:ident, $does:expr) => {{
        type $queue = $type;
        $does
    }};
}

impl Discipline {
    /// Whether it drops or marks packets before the queue is full.
    pub const fn is_active(self) -> bool {
        of_queue!(self, Queue => Queue::IS_ACTIVE)
    }

    /// Whether it draws random numbers.
    pub const fn is_random(self) -> bool {
        of_queue!(self, Queue => Queue::IS_RANDOM)
    }
}

/// The discipline of the queue, and its parameters. Those that it does not have are not there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[allow(missing_docs)] // each of the keys inside has its own
pub struct QueueSettings {
    /// Which packets the queue before the link drops or marks, and which goes next.
    #[schemars(extend("only_with" = {"key": "rate_bps", "value": null}))]
    pub discipline: Discipline,
    #[serde(flatten)]
    pub signals: Signals,
    #[serde(flatten)]
    pub fq_codel: FqCodelSettings,
    #[serde(flatten)]
    pub controller: Controller,
    #[serde(flatten)]
    pub pie: PieSettings,
    #[serde(flatten)]
    pub dualpi2: DualPi2Settings,
    #[serde(flatten)]
    pub cake: CakeSettings,
    #[serde(flatten)]
    pub red: RedSettings,
}

impl AsRef<()> for QueueSettings {
    fn as_ref(&self) -> &() {
        &()
    }
}

macro_rules! own_settings {
    ($($field:ident: $settings:ty),*) => {
        $(impl AsRef<$settings> for QueueSettings {
            fn as_ref(&self) -> &$settings {
                &self.$field
            }
        })*
    };
}
own_settings!(fq_codel: FqCodelSettings, pie: PieSettings, dualpi2: DualPi2Settings, cake: CakeSettings, red: RedSettings);

impl QueueSettings {
    /// Constant keys.
    pub(crate) const FIXED: &'static [&'static str] = &["discipline", "queue_flows", "cake_tins", "cake_isolation"];

    /// The discipline's limit in Linux.
    pub(crate) fn default_limit(&self, rate: Option<BitRate>) -> QueueLimit {
        let interval = self.signals.interval.unwrap_or_default();
        of_queue!(self.discipline, Queue => Queue::limit(rate, interval))
    }

    /// Fills in the discipline's parameters, and refuses others.
    pub(crate) fn complete(&mut self) -> Result<(), SettingError> {
        let is = |discipline| self.discipline == discipline;
        let signals = of_queue!(self.discipline, Queue => Queue::signals(self.signals.interval));
        let controller = of_queue!(self.discipline, Queue => Queue::controller());
        fill(&mut self.signals.marking, signals.marking, "queue_marks", "red, codel, fq_codel or pie")?;
        self.cake.complete(is(Discipline::Cake))?;
        self.signals.complete_times(&signals)?;
        self.fq_codel.complete(is(Discipline::FqCodel))?;
        self.controller.complete(&controller)?;
        self.pie.complete(is(Discipline::Pie))?;
        self.dualpi2.complete(is(Discipline::Dualpi2))?;
        self.red.complete(is(Discipline::Red))
    }

    /// The initial queue.
    pub(crate) fn queue(&self, link: &LinkFacts<'_>, seed: Seed) -> Box<dyn AnyQueue> {
        of_queue!(self.discipline, Queue => Box::new(Queue::new(link, self.as_ref(), seed)))
    }
}

/// A queue that finds its keys among those of all disciplines.
pub(crate) trait AnyQueue: Queue {
    /// Changes the settings from `now` on. Packets beyond a new limit stay.
    fn change_all(&mut self, now: Instant, link: &LinkFacts<'_>, settings: &QueueSettings);
}

impl<Q: Managed> AnyQueue for Q
where
    QueueSettings: AsRef<Q::Own>,
{
    fn change_all(&mut self, now: Instant, link: &LinkFacts<'_>, settings: &QueueSettings) {
        self.change(now, link, settings.as_ref());
    }
}
