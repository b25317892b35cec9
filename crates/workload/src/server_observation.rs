//! The server's observations of exchanges, to complete the clients'.

use crate::exchange::Trace;
use crosswind_ledger::Position;
use crosswind_units::{Duration, Instant};
use std::collections::HashMap;

/// The server's observation of one message or transfer.
#[derive(Clone, Copy, Debug)]
pub struct ServerObservation {
    /// The client's port.
    pub client_port: u16,
    /// The readable part of the message's number.
    pub tag: u64,
    /// When its first byte was there.
    pub first: Instant,
    /// When it was there whole.
    pub received: Instant,
    /// When the answer was begun.
    pub sent: Instant,
    /// Bytes received.
    pub bytes: u64,
    /// The answer's place among its connection's bytes, if known. It is not sent to the other machine.
    pub position: Option<Position>,
}

/// Bytes per [`ServerObservation`] between machines.
pub const OBSERVATION_BYTES: usize = 6 * 8;

impl ServerObservation {
    /// As bytes: six little-endian numbers; times are nanoseconds since `origin_ns`, by the server's clock.
    pub fn to_bytes(self, origin_ns: u64) -> [u8; OBSERVATION_BYTES] {
        let time = |instant: Instant| instant.as_nanos() + origin_ns;
        let numbers =
            [self.client_port.into(), self.tag, time(self.first), time(self.received), time(self.sent), self.bytes];
        let mut bytes = [0; OBSERVATION_BYTES];
        for (place, number) in bytes.chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    /// Reads them; `to_client` converts the server's times to the client's clock.
    pub fn from_bytes(bytes: &[u8; OBSERVATION_BYTES], to_client: impl Fn(u64) -> Instant) -> Self {
        let mut numbers = [0_u64; 6];
        for (number, place) in numbers.iter_mut().zip(bytes.chunks_exact(8)) {
            let mut eight = [0; 8];
            eight.copy_from_slice(place);
            *number = u64::from_le_bytes(eight);
        }
        let [client_port, tag, first, received, sent, bytes] = numbers;
        Self {
            client_port: client_port as u16,
            tag,
            first: to_client(first),
            received: to_client(received),
            sent: to_client(sent),
            bytes,
            position: None,
        }
    }
}

/// The server's observations, by the client's port.
pub struct ObservationsByPort {
    by_port: HashMap<u16, Vec<ServerObservation>>,
    tolerance: Duration,
}

impl ObservationsByPort {
    /// Sorts observations. Their times may be wrong by `tolerance`.
    pub fn new(all: Vec<ServerObservation>, tolerance: Duration) -> Self {
        let mut by_port: HashMap<u16, Vec<ServerObservation>> = HashMap::new();
        for observation in all {
            by_port.entry(observation.client_port).or_default().push(observation);
        }
        for list in by_port.values_mut() {
            list.sort_by_key(|observation| observation.received);
        }
        Self { by_port, tolerance }
    }

    /// The first message or transfer matching `trace`.
    pub fn find(&self, trace: Trace) -> Option<ServerObservation> {
        let list = self.by_port.get(&trace.client_port)?;
        let from = list.partition_point(|observation| observation.received + self.tolerance < trace.not_before);
        list[from..].iter().find(|observation| trace.tag.is_none_or(|tag| tag == observation.tag)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observation(client_port: u16, tag: u64, us: u64) -> ServerObservation {
        let at = Instant::from_nanos(us * 1000);
        ServerObservation { client_port, tag, first: at, received: at, sent: at, bytes: tag, position: None }
    }

    #[test]
    fn a_message_is_found_by_its_port_its_time_and_its_tag() {
        let all = ObservationsByPort::new(
            vec![observation(1, 7, 30), observation(1, 7, 10), observation(2, 7, 12), observation(1, 8, 20)],
            Duration::ZERO,
        );
        let find = |client_port, us: u64, tag| {
            let found = all.find(Trace { client_port, not_before: Instant::from_nanos(us * 1000), tag });
            found.map(|observation| (observation.received.as_nanos() / 1000, observation.tag))
        };
        assert_eq!(find(1, 0, Some(7)), Some((10, 7)));
        assert_eq!(find(1, 11, Some(7)), Some((30, 7)));
        assert_eq!(find(1, 11, None), Some((20, 8)));
        assert_eq!(find(1, 31, None), None);
        assert_eq!(find(3, 0, None), None);
    }

    #[test]
    fn what_was_seen_arrives_as_it_left() {
        let at = Instant::from_nanos;
        let observation = ServerObservation { client_port: 65_535, ..observation(0, u64::MAX, 0) };
        let observation =
            ServerObservation { first: at(1), received: at(2), sent: at(3), bytes: 1 << 40, ..observation };
        let back = ServerObservation::from_bytes(&observation.to_bytes(1000), |ns| at(ns - 990));
        assert_eq!((back.client_port, back.tag, back.bytes), (65_535, u64::MAX, 1 << 40));
        assert_eq!((back.first, back.received, back.sent), (at(11), at(12), at(13)));
    }
}
