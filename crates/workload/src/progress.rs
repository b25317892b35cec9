//! How far a workload is: written by its threads, read by whoever shows it.

use crate::error::{Fault, WorkloadError};
use crosswind_ledger::TimeHistogram;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts of exchanges so far.
#[derive(Debug)]
pub struct Progress {
    done: AtomicU64,
    lost: AtomicU64,
    times: Mutex<TimeHistogram>,
    /// Why the cell has no result, though its threads still run.
    fault: Mutex<Option<Fault>>,
}

/// Progress at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Ended exchanges, ok or not.
    pub done: u64,
    /// Those not ok.
    pub lost: u64,
    /// The ok ones' median time.
    pub median_ns: Option<u64>,
}

impl Default for Progress {
    fn default() -> Self {
        Self {
            done: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            times: Mutex::new(TimeHistogram::new()),
            fault: Mutex::default(),
        }
    }
}

impl Progress {
    /// An exchange has ended: after `ok_ns`, or it is lost.
    pub(crate) fn exchange_done(&self, ok_ns: Option<u64>) {
        match (ok_ns, self.times.lock()) {
            (Some(ns), Ok(mut times)) => times.record(ns),
            (Some(_), Err(_)) => {}
            (None, _) => {
                self.lost.fetch_add(1, Ordering::Relaxed);
            }
        }
        self.done.fetch_add(1, Ordering::Relaxed);
    }

    /// There will be no result, because of `error`; threads of the workload may still wait for long.
    pub(crate) fn fail(&self, error: &WorkloadError) {
        let hint = if let WorkloadError::Peer(fault) = error { fault.hint.clone() } else { None };
        self.fail_with(Fault { message: error.to_string(), hint });
    }

    /// Likewise.
    pub fn fail_with(&self, fault: Fault) {
        if let Ok(mut first) = self.fault.lock() {
            first.get_or_insert(fault);
        }
    }

    /// Why there will be no result, if so.
    pub fn fault(&self) -> Option<Fault> {
        self.fault.lock().ok()?.clone()
    }

    /// How far it is now.
    pub fn snapshot(&self) -> Snapshot {
        let report = self.times.lock().map(|times| times.report()).ok();
        Snapshot {
            done: self.done.load(Ordering::Relaxed),
            lost: self.lost.load(Ordering::Relaxed),
            median_ns: report.filter(|report| report.n > 0).map(|report| report.p50),
        }
    }
}
