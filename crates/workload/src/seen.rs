//! What the server saw of exchanges, to be added to what their clients know.

use crate::exchange::Trace;
use crosswind_units::{Duration, Instant};
use std::collections::HashMap;

/// What the server saw of one message or transfer.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// The client's port.
    pub client_port: u16,
    /// What could be read of the message's number.
    pub tag: u64,
    /// When its first byte was there.
    pub first: Instant,
    /// When it was there whole.
    pub received: Instant,
    /// When the answer was begun.
    pub sent: Instant,
    /// Bytes received.
    pub bytes: u64,
}

/// What the server saw, by the port of the client.
pub struct SeenByPort {
    by_port: HashMap<u16, Vec<Seen>>,
    tolerance: Duration,
}

impl SeenByPort {
    /// Sorts what was seen. Its times may be wrong by `tolerance`.
    pub fn new(all: Vec<Seen>, tolerance: Duration) -> Self {
        let mut by_port: HashMap<u16, Vec<Seen>> = HashMap::new();
        for seen in all {
            by_port.entry(seen.client_port).or_default().push(seen);
        }
        for list in by_port.values_mut() {
            list.sort_by_key(|seen| seen.received);
        }
        Self { by_port, tolerance }
    }

    /// The first message or transfer that fits `trace`.
    pub fn find(&self, trace: Trace) -> Option<Seen> {
        let list = self.by_port.get(&trace.client_port)?;
        let from = list.partition_point(|seen| seen.received + self.tolerance < trace.not_before);
        list[from..].iter().find(|seen| trace.tag.is_none_or(|tag| tag == seen.tag)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(client_port: u16, tag: u64, us: u64) -> Seen {
        let at = Instant::from_nanos(us * 1000);
        Seen { client_port, tag, first: at, received: at, sent: at, bytes: tag }
    }

    #[test]
    fn a_message_is_found_by_its_port_its_time_and_its_tag() {
        let all = SeenByPort::new(vec![seen(1, 7, 30), seen(1, 7, 10), seen(2, 7, 12), seen(1, 8, 20)], Duration::ZERO);
        let find = |client_port, us: u64, tag| {
            let found = all.find(Trace { client_port, not_before: Instant::from_nanos(us * 1000), tag });
            found.map(|seen| (seen.received.as_nanos() / 1000, seen.tag))
        };
        assert_eq!(find(1, 0, Some(7)), Some((10, 7)));
        assert_eq!(find(1, 11, Some(7)), Some((30, 7)));
        assert_eq!(find(1, 11, None), Some((20, 8)));
        assert_eq!(find(1, 31, None), None);
        assert_eq!(find(3, 0, None), None);
    }
}
