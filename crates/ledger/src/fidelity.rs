//! An emulation's exactness, and whether it is enough.

use crate::TimeReport;
use crosswind_settings::{Group, SettingError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A microsecond: no machine releases 99 % of packets more exactly.
const MIN_DELAY_ERROR_NS: u64 = 1_000;
/// A day: longer is a mistake in units.
const MAX_DELAY_ERROR_NS: u64 = 86_400_000_000_000;

/// How accurate the emulation must be. A cell that misses its budget is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(extend("varies" = false))]
pub struct Budget {
    /// Limit of the 99th percentile of packet lateness; in virtual time 100 µs by default.
    #[schemars(range(min = MIN_DELAY_ERROR_NS, max = MAX_DELAY_ERROR_NS))]
    pub delay_error_p99_ns: u64,
    /// Largest share of time that the emulator may wait for a CPU.
    #[schemars(range(min = 0, max = 1), extend("unit" = "probability"))]
    pub starvation: f64,
    /// Largest share of time that one thread of a host may wait for a CPU.
    #[schemars(range(min = 0, max = 1), extend("unit" = "probability"))]
    pub probe_starvation: f64,
    /// Limit of the time that CPU contention adds to a mean exchange: waiting threads of the hosts, and packets that left the
    /// path late. The larger of this and `exchange_delay_share` applies.
    #[schemars(range(min = 0, max = MAX_DELAY_ERROR_NS))]
    pub exchange_delay_ns: u64,
    /// The same as a share of the cell's own median exchange.
    #[schemars(range(min = 0, max = 1), extend("unit" = "probability"))]
    pub exchange_delay_share: f64,
}

/// How much time CPU contention added to exchanges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ExchangeDelay {
    /// Mean time for each exchange that threads of the hosts waited for a processor. Of a cell that ran alone, without what
    /// its own threads ran meanwhile: that is part of what is measured.
    pub hosts_ns: u64,
    /// Twice the mean delay error, once for each way.
    pub path_ns: u64,
    /// Median exchange.
    pub median_ns: u64,
}

/// Time of one thread, as the kernel's scheduler counts it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(into = "StarvationReport")]
pub struct Starvation {
    /// On a CPU.
    pub run_ns: u64,
    /// Ready to run, without a CPU.
    pub wait_ns: u64,
    /// From the thread's start to its end, whether it slept or not.
    pub elapsed_ns: u64,
}

/// The CPUs on which the threads were pinned; empty where none was.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Cpus {
    /// Those of the emulator's thread.
    pub emulator: Vec<u32>,
    /// Those of the two hosts.
    pub hosts: Vec<u32>,
}

/// Of each host, the thread that waited longest for a CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HostStarvation {
    /// The client's.
    pub client: Starvation,
    /// The server's.
    pub server: Starvation,
}

/// What was measured of an emulation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Observed {
    /// Distribution of (actual - due) release time.
    pub delay_error_ns: TimeReport,
    /// The emulator's thread; null in virtual time, as the next.
    pub starvation: Option<Starvation>,
    /// The hosts' threads.
    pub probe_starvation: Option<HostStarvation>,
    /// How much longer exchanges were; null where none succeeded.
    pub exchange_delay: Option<ExchangeDelay>,
    /// For how long the emulator left packets in the hosts' devices, because it could not have let them out of the path in time. What waited there
    /// was not in the path yet: its senders saw a slow device.
    pub held_ns: u64,
    /// Packets that the hosts' own devices and backlogs dropped.
    pub kernel_drops: u64,
    /// Whether the emulator ran at real-time priority.
    pub realtime: bool,
    /// Whether the kernel of virtual time carried the packets itself, and no thread of the cell.
    pub in_kernel: bool,
    /// Whether the memory of the cell was locked.
    pub memory_locked: bool,
    /// Which CPUs the threads were pinned to.
    pub cpus: Cpus,
}

/// The result's `fidelity`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FidelityReport {
    /// What was measured.
    #[serde(flatten)]
    pub observed: Observed,
    /// What it was held to.
    pub budget: Budget,
    /// Whether nothing exceeds the budget.
    pub within_budget: bool,
}

impl Budget {
    /// The budget in `object`, checked.
    pub fn from_object(object: &Map<String, Value>) -> Result<Self, SettingError> {
        crosswind_settings::read(object)
    }

    /// Every key.
    pub fn describe() -> &'static Group {
        crosswind_settings::describe::<Self>()
    }
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            delay_error_p99_ns: 1_000_000,
            starvation: 0.2,
            probe_starvation: 0.4,
            exchange_delay_ns: 20_000,
            exchange_delay_share: 0.02,
        }
    }
}

impl ExchangeDelay {
    /// For `exchanges` with the median `median_ns`. None without any.
    ///
    /// Args: `waited_ns`: all threads' wait on both hosts. `released`, `error_ns`: packets out of the path, and their
    /// lateness in total.
    pub fn new(exchanges: u64, median_ns: Option<u64>, waited_ns: u64, released: u64, error_ns: u64) -> Option<Self> {
        let hosts_ns = waited_ns.checked_div(exchanges)?;
        Some(Self { hosts_ns, path_ns: 2 * error_ns.checked_div(released).unwrap_or(0), median_ns: median_ns? })
    }

    /// The used share of `budget`: 1 is all.
    pub fn share_of(self, budget: &Budget) -> f64 {
        let (delay, allowed) = (self.total_ns() as f64, self.allowed_ns(budget));
        if delay > 0.0 { delay / allowed } else { 0.0 }
    }

    const fn total_ns(self) -> u64 {
        self.hosts_ns + self.path_ns
    }

    fn allowed_ns(self, budget: &Budget) -> f64 {
        (budget.exchange_delay_share * self.median_ns as f64).max(budget.exchange_delay_ns as f64)
    }
}

impl Starvation {
    /// The share of the elapsed time the thread waited; 0 for a thread that never ran. Not a share of run and wait
    /// time: a mostly sleeping thread waits a microsecond at each wake-up, and would seem to starve. At most 1: the
    /// kernel books a wait when it ends, so one begun before the observation counts whole.
    pub fn fraction(&self) -> f64 {
        if self.elapsed_ns > 0 { (self.wait_ns as f64 / self.elapsed_ns as f64).min(1.0) } else { 0.0 }
    }
}

impl FidelityReport {
    /// Compares the observations with `budget`.
    pub fn new(observed: Observed, budget: Budget) -> Self {
        let mut report = Self { observed, budget, within_budget: false };
        report.within_budget = report.reasons().is_empty();
        report
    }

    /// A sentence for each figure beyond the budget; none when all are within it.
    pub fn reasons(&self) -> Vec<String> {
        let mut reasons = Vec::new();
        let (p99, allowed) = (self.observed.delay_error_ns.p99, self.budget.delay_error_p99_ns);
        if p99 > allowed {
            reasons.push(format!(
                "packets left the path late: the 99th percentile of the delay error is {}, the budget {}",
                with_unit(p99),
                with_unit(allowed)
            ));
        }
        let (fraction, allowed) = (self.observed.starvation.unwrap_or_default().fraction(), self.budget.starvation);
        if fraction > allowed {
            reasons.push(format!(
                "the emulator waited for a CPU for {:.2} % of its time, the budget is {:.2} %",
                fraction * 100.0,
                allowed * 100.0
            ));
        }
        let allowed = self.budget.probe_starvation;
        let HostStarvation { client, server } = self.observed.probe_starvation.unwrap_or_default();
        for (host, thread) in [("client", client), ("server", server)] {
            if thread.fraction() > allowed {
                reasons.push(format!(
                    "a thread of the {host} waited for a CPU for {:.2} % of its time, the budget is {:.2} %",
                    thread.fraction() * 100.0,
                    allowed * 100.0
                ));
            }
        }
        if let Some(delay) = self.observed.exchange_delay.filter(|delay| delay.share_of(&self.budget) > 1.0) {
            reasons.push(format!(
                "CPU contention added {} to the mean exchange, the budget is {}",
                with_unit(delay.total_ns()),
                with_unit(delay.allowed_ns(&self.budget) as u64)
            ));
        }
        reasons.extend(kernel_drops_in_words(self.observed.kernel_drops));
        reasons
    }
}

/// A sentence about drops by the hosts' own devices and backlogs; none without any.
pub fn kernel_drops_in_words(drops: u64) -> Option<String> {
    (drops > 0).then(|| format!("the hosts' devices dropped {drops} packets that the path was not asked to drop"))
}

/// Nanoseconds in the largest fitting unit: `850 ns`, `12.5 µs`, `3.2 ms`.
fn with_unit(ns: u64) -> String {
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{:.1} µs", ns as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} ms", ns as f64 / 1e6),
        _ => format!("{:.1} s", ns as f64 / 1e9),
    }
}

#[derive(Serialize, JsonSchema)]
struct StarvationReport {
    run_ns: u64,
    wait_ns: u64,
    elapsed_ns: u64,
    fraction: f64,
}

impl From<Starvation> for StarvationReport {
    fn from(starvation: Starvation) -> Self {
        let Starvation { run_ns, wait_ns, elapsed_ns } = starvation;
        Self { run_ns, wait_ns, elapsed_ns, fraction: starvation.fraction() }
    }
}
