//! A workload's measurements.

use crate::peer::PeersReport;
use crate::warning::Warning;
use crate::{PageObject, Sample};
use crosswind_host::Traffic;
use crosswind_transport::{Outcome, SocketReadback};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::HashMap;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

/// A workload's measurements.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// One sample per exchange, in numeric order.
    pub samples: Vec<Sample>,
    /// Exchanges under way at their flow's end; they are no samples.
    pub unfinished: u64,
    /// Why exchanges failed: the first error for each outcome.
    pub first_errors: HashMap<Outcome, String>,
    /// Pages' objects.
    pub objects: Vec<PageObject>,
    /// A client's and a server's socket settings, as the kernel has them.
    pub sockets: [Option<SocketReadback>; 2],
    /// The client's and the server's threads' CPU time.
    pub cpu_ns: [u64; 2],
    /// The hosts' traffic until every kept connection was open.
    pub setup: Option<Traffic>,
    /// The client program's end, for the workload `program`.
    pub program: Option<ProgramEnd>,
    /// The two ends, if one was a peer.
    pub peers: Option<PeersReport>,
    /// Notes for readers.
    pub warnings: Vec<Warning>,
}

/// How a program ended: one of the two is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ProgramEnd {
    /// Its exit status, if it ended by itself.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
}

impl From<ExitStatus> for ProgramEnd {
    fn from(status: ExitStatus) -> Self {
        Self { exit_code: status.code(), signal: status.signal() }
    }
}

/// How often exchanges ended in one way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct OutcomeCount {
    /// How they ended.
    pub outcome: Outcome,
    /// How many.
    pub count: u64,
    /// What went wrong with the first of them.
    pub first_error: Option<String>,
}

impl Measured {
    /// Failures among its `samples` by outcome, most frequent first.
    pub fn failures(&self, samples: &[Sample]) -> Vec<OutcomeCount> {
        let mut counts: HashMap<Outcome, u64> = HashMap::new();
        for sample in samples.iter().filter(|sample| sample.outcome != Outcome::Ok) {
            *counts.entry(sample.outcome).or_default() += 1;
        }
        let mut failures: Vec<OutcomeCount> = counts
            .into_iter()
            .map(|(outcome, count)| OutcomeCount {
                outcome,
                count,
                first_error: self.first_errors.get(&outcome).cloned(),
            })
            .collect();
        failures.sort_by_key(|failure| (std::cmp::Reverse(failure.count), failure.outcome.name()));
        failures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(outcomes: &[Outcome]) -> Measured {
        let samples = outcomes.iter().zip(0..).map(|(&outcome, number)| Sample { outcome, ..Sample::new(number, 0) });
        Measured { samples: samples.collect(), ..Measured::default() }
    }

    #[test]
    fn failures_are_counted_by_outcome_and_the_most_frequent_stands_first() {
        let mut measured =
            measured(&[Outcome::Closed, Outcome::Ok, Outcome::Timeout, Outcome::Timeout, Outcome::Certificate]);
        measured.first_errors.insert(Outcome::Timeout, "cannot exchange: timed out".into());
        let counts: Vec<_> =
            measured.failures(&measured.samples).into_iter().map(|f| (f.outcome, f.count, f.first_error)).collect();
        assert_eq!(
            counts,
            [
                (Outcome::Timeout, 2, Some("cannot exchange: timed out".into())),
                (Outcome::Certificate, 1, None),
                (Outcome::Closed, 1, None),
            ]
        );
    }

    #[test]
    fn a_program_ends_with_a_status_or_by_a_signal() {
        assert_eq!(ProgramEnd::from(ExitStatus::from_raw(3 << 8)), ProgramEnd { exit_code: Some(3), signal: None });
        assert_eq!(ProgramEnd::from(ExitStatus::from_raw(9)), ProgramEnd { exit_code: None, signal: Some(9) });
    }
}
