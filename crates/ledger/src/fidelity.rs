//! How close the emulation came to what was asked, and whether that is close enough.

use crate::{LedgerError, TimeReport};
use serde::{Deserialize, Serialize};

/// What an emulation may be off by. Beyond it, a cell is not valid.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "RawBudget")]
pub struct Budget {
    /// Most that the 99th percentile of (actual - due) release time may be.
    pub delay_error_p99_ns: u64,
    /// Largest share of time that the emulator's thread may wait for a CPU, from 0 to 1.
    pub starvation: f64,
}

/// Time of the emulator's thread, as the kernel's scheduler counts it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(into = "StarvationReport")]
pub struct Starvation {
    /// On a CPU.
    pub run_ns: u64,
    /// Ready to run, without a CPU.
    pub wait_ns: u64,
    /// From its start to its end, asleep or not.
    pub elapsed_ns: u64,
}

/// The CPUs that were given to each part; empty where nothing was pinned.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Cpus {
    /// To the emulator's thread.
    pub emulator: Vec<u32>,
    /// To the two hosts.
    pub hosts: Vec<u32>,
}

/// The result's `fidelity`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FidelityReport {
    /// Distribution of (actual - due) release time.
    pub delay_error_ns: TimeReport,
    /// The emulator's thread.
    pub starvation: Starvation,
    /// Whether it ran at real-time priority.
    pub realtime: bool,
    /// Whether its memory was locked.
    pub memory_locked: bool,
    /// What was pinned where.
    pub cpus: Cpus,
    /// What was allowed.
    pub budget: Budget,
    /// Whether all of it was kept.
    pub within_budget: bool,
}

impl Budget {
    /// A budget, checked.
    pub fn new(delay_error_p99_ns: u64, starvation: f64) -> Result<Self, LedgerError> {
        if !(0.0..=1.0).contains(&starvation) {
            return Err(LedgerError::Starvation(starvation));
        }
        Ok(Self { delay_error_p99_ns, starvation })
    }
}

impl Default for Budget {
    fn default() -> Self {
        Self { delay_error_p99_ns: 1_000_000, starvation: 0.05 }
    }
}

impl Starvation {
    /// Waited of elapsed; 0 for a thread that never was. Not of ran + waited: for a thread that sleeps nearly always, the
    /// microsecond that every waking takes would look like want.
    pub fn fraction(&self) -> f64 {
        if self.elapsed_ns > 0 { self.wait_ns as f64 / self.elapsed_ns as f64 } else { 0.0 }
    }
}

impl FidelityReport {
    /// What was measured, against `budget`.
    pub fn new(
        delay_error_ns: TimeReport,
        starvation: Starvation,
        realtime: bool,
        memory_locked: bool,
        cpus: Cpus,
        budget: Budget,
    ) -> Self {
        let mut report =
            Self { delay_error_ns, starvation, realtime, memory_locked, cpus, budget, within_budget: false };
        report.within_budget = report.reasons().is_empty();
        report
    }

    /// Why the budget was missed, in words with figures; nothing when it was kept.
    pub fn reasons(&self) -> Vec<String> {
        let mut reasons = Vec::new();
        let (p99, allowed) = (self.delay_error_ns.p99, self.budget.delay_error_p99_ns);
        if p99 > allowed {
            reasons.push(format!(
                "packets left the path late: the 99th percentile of the delay error is {}, the budget {}",
                in_words(p99),
                in_words(allowed)
            ));
        }
        let (fraction, allowed) = (self.starvation.fraction(), self.budget.starvation);
        if fraction > allowed {
            reasons.push(format!(
                "the emulator waited for a CPU for {:.2} % of its time, the budget is {:.2} %",
                fraction * 100.0,
                allowed * 100.0
            ));
        }
        reasons
    }
}

/// Nanoseconds as people read them: `850 ns`, `12.5 us`, `3.2 ms`.
fn in_words(ns: u64) -> String {
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{:.1} us", ns as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} ms", ns as f64 / 1e6),
        _ => format!("{:.1} s", ns as f64 / 1e9),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawBudget {
    delay_error_p99_ns: u64,
    starvation: f64,
}

impl Default for RawBudget {
    fn default() -> Self {
        let Budget { delay_error_p99_ns, starvation } = Budget::default();
        Self { delay_error_p99_ns, starvation }
    }
}

impl TryFrom<RawBudget> for Budget {
    type Error = LedgerError;

    fn try_from(raw: RawBudget) -> Result<Self, LedgerError> {
        Self::new(raw.delay_error_p99_ns, raw.starvation)
    }
}

#[derive(Serialize)]
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
