//! Reordered packets: overtaken by later ones (RFC 4737).
//!
//! A packet in order costs a comparison. Memory is bounded by the packets inside the path: the overtaken ones, and
//! ranges dropped ahead of the latest delivery.

use crosswind_units::Instant;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

/// Overtaken packets in one direction, over all flows (RFC 4737).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ReorderingReport {
    /// Packets that arrived after one that had entered later (section 3: Type-P-Reordered).
    pub packets: u64,
    /// The largest reordering extent: arrivals from the first later packet's to the overtaken one's (section 4.2).
    pub extent: u64,
    /// The largest late-time offset: the time between the same two (section 4.3).
    pub late_time_offset_ns: u64,
}

/// The order of one direction's packets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reordering {
    report: ReorderingReport,
    /// The index after the largest delivered one.
    next: u64,
    arrivals: u64,
    /// Overtaken packets still in the path, by index: number and time of the first later arrival.
    overtaken: BTreeMap<u64, (u64, Instant)>,
    /// Dropped packets from `next` on, in order.
    dropped: VecDeque<Range<u64>>,
}

impl Reordering {
    /// A packet, or the first of its copies, was delivered.
    pub fn handle_delivery(&mut self, index: u64, at: Instant) {
        if index >= self.next {
            self.arrivals += 1;
            if index > self.next || !self.dropped.is_empty() {
                self.overtake(index, at);
            }
            self.next = index + 1;
        } else if let Some((arrival, since)) = self.overtaken.remove(&index) {
            self.arrivals += 1;
            let ReorderingReport { packets, extent, late_time_offset_ns } = &mut self.report;
            *packets += 1;
            *extent = (*extent).max(self.arrivals - arrival);
            *late_time_offset_ns = (*late_time_offset_ns).max(at.saturating_since(since).as_nanos());
        }
    }

    /// A packet was dropped.
    pub fn handle_drop(&mut self, index: u64) {
        if index < self.next {
            self.overtaken.remove(&index);
            return;
        }
        let position = self.dropped.partition_point(|it| it.end < index);
        match self.dropped.get_mut(position) {
            Some(range) if range.contains(&index) => {}
            Some(range) if range.start == index + 1 => range.start = index,
            Some(range) if range.end == index => {
                range.end += 1;
                if let Some(next) = self.dropped.get(position + 1).filter(|it| it.start == index + 1).cloned() {
                    self.dropped[position].end = next.end;
                    self.dropped.remove(position + 1);
                }
            }
            _ => self.dropped.insert(position, index..index + 1),
        }
    }

    /// The report, if packets were reordered.
    pub fn report(&self) -> Option<ReorderingReport> {
        Some(self.report).filter(|it| it.packets > 0)
    }

    /// The packet `index` overtakes those before it in the path.
    fn overtake(&mut self, index: u64, at: Instant) {
        let mut from = self.next;
        while let Some(range) = self.dropped.front_mut().filter(|it| it.start <= index) {
            self.overtaken.extend((from..range.start).map(|it| (it, (self.arrivals, at))));
            from = range.end;
            if range.end > index + 1 {
                range.start = index + 1;
                break;
            }
            self.dropped.pop_front();
        }
        self.overtaken.extend((from..index).map(|it| (it, (self.arrivals, at))));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Straight from RFC 4737: each arrival is compared with all before it.
    fn by_definition(arrivals: &[(u64, u64)]) -> ReorderingReport {
        let mut report = ReorderingReport::default();
        for (i, &(index, at)) in arrivals.iter().enumerate() {
            let Some(j) = arrivals[..i].iter().position(|it| it.0 > index) else { continue };
            report.packets += 1;
            report.extent = report.extent.max((i - j) as u64);
            report.late_time_offset_ns = report.late_time_offset_ns.max(at - arrivals[j].1);
        }
        report
    }

    #[test]
    fn the_example_of_rfc_4737_has_its_extents() {
        // Section 7: packets 4, 5 and 6 arrive after 7 to 10.
        let mut order = Reordering::default();
        for (at, index) in [1, 2, 3, 7, 8, 9, 10, 4, 5, 6, 11].into_iter().enumerate() {
            order.handle_delivery(index, Instant::from_nanos(at as u64 * 10));
        }
        assert_eq!(order.report(), Some(ReorderingReport { packets: 3, extent: 6, late_time_offset_ns: 60 }));
    }

    proptest! {
        #[test]
        fn packets_are_reordered_as_rfc_4737_defines_it(
            keys in prop::collection::vec((0..40u64, prop::bool::weighted(0.3), prop::bool::weighted(0.2)), 1..60),
        ) {
            // Packets enter one after the other, and leave after a time of their own: dropped, or with a copy.
            let mut leaving: Vec<_> = keys.iter().zip(0..).map(|(&(time, dropped, copied), index)| (index + time, index, dropped, copied)).collect();
            leaving.sort_unstable();
            let (mut order, mut arrivals) = (Reordering::default(), Vec::new());
            for (at, index, dropped, copied) in leaving {
                if dropped {
                    order.handle_drop(index);
                    continue;
                }
                arrivals.push((index, at));
                for _ in 0..=u32::from(copied) {
                    order.handle_delivery(index, Instant::from_nanos(at));
                }
            }
            prop_assert_eq!(order.report().unwrap_or_default(), by_definition(&arrivals));
            prop_assert!(order.overtaken.is_empty());
            // Dropped packets that nothing followed are one range where they are next to each other.
            let ranges: Vec<_> = order.dropped.iter().cloned().collect();
            prop_assert!(ranges.windows(2).all(|it| it[0].end < it[1].start) && ranges.iter().all(|it| it.start >= order.next));
        }
    }
}
