//! An exchange as its client leaves it: with its error, if it failed, and a key to the server's observations.

use crate::message;
use crate::{PageObject, Sample};
use crosswind_ledger::Position;
use crosswind_transport::{Outcome, TransportError};
use crosswind_units::Instant;
use std::collections::HashMap;

/// A message's and its reply's.
pub type Positions = [Option<Position>; 2];

/// One exchange, as its client knows it.
#[derive(Debug)]
pub struct Exchange {
    /// The samples' row.
    pub sample: Sample,
    /// Why it failed.
    pub error: Option<TransportError>,
    /// The key to the server's observations.
    pub trace: Option<Trace>,
    pub objects: Vec<PageObject>,
}

/// The key to the server's observations of an exchange.
#[derive(Clone, Copy, Debug)]
pub struct Trace {
    pub client_port: u16,
    /// The server cannot have seen it before.
    pub not_before: Instant,
    /// The readable part of the message's number, if any.
    pub tag: Option<u64>,
}

impl Exchange {
    /// An exchange ended with `result`.
    pub fn new(sample: Sample, result: Result<(), TransportError>) -> Self {
        let mut exchange = Self { sample, error: None, trace: None, objects: Vec::new() };
        match result {
            Ok(()) => exchange.sample.outcome = Outcome::Ok,
            Err(error) => exchange.fail(error),
        }
        exchange
    }

    /// An exchange of `message`, sent by `sample`, and what was received by `now`: a reply's length, and where both are.
    pub fn replied(
        mut sample: Sample,
        message: &[u8],
        client_port: u16,
        now: Instant,
        received: Result<(usize, Positions), TransportError>,
        is_expected: impl FnOnce(usize) -> bool,
    ) -> Self {
        let not_before = sample.sent.unwrap_or(now);
        let result = received.and_then(|(length, positions)| {
            sample.received = Some(now);
            (sample.positions, sample.received_bytes) = (positions, length as u64);
            if is_expected(length) { Ok(()) } else { Err(message::changed()) }
        });
        sample.failed = result.is_err().then_some(now);
        let trace = Some(Trace { client_port, not_before, tag: Some(message::read(message)) });
        Self { trace, ..Self::new(sample, result) }
    }

    /// Makes it a failed exchange, whatever its outcome was before.
    pub fn fail(&mut self, error: TransportError) {
        self.sample.outcome = error.outcome;
        self.error = Some(error);
    }
}

/// The first error of each outcome, in words. `exchanges` are in numeric order.
pub fn first_errors(exchanges: &[Exchange]) -> HashMap<Outcome, String> {
    let mut first = HashMap::new();
    for Exchange { sample, error, .. } in exchanges {
        if let Some(error) = error.as_ref().filter(|error| error.outcome == sample.outcome) {
            first.entry(sample.outcome).or_insert_with(|| error.to_string());
        }
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_error_of_each_outcome_is_kept() {
        let failed = |number, outcome, cause: &str| {
            Exchange::new(Sample::new(number, 0), Err(TransportError::with("cannot exchange", outcome, cause)))
        };
        let mut recovered = failed(0, Outcome::Reset, "the sender saw the end");
        recovered.sample.outcome = Outcome::Ok;
        let exchanges = [
            recovered,
            failed(1, Outcome::Reset, "first"),
            Exchange::new(Sample::new(2, 0), Ok(())),
            failed(3, Outcome::Reset, "second"),
            failed(4, Outcome::Closed, "early"),
        ];
        let expected = [(Outcome::Reset, "cannot exchange: first"), (Outcome::Closed, "cannot exchange: early")];
        assert_eq!(first_errors(&exchanges), expected.map(|(outcome, text)| (outcome, text.to_owned())).into());
    }
}
